/* SPDX-License-Identifier: MIT */
/*
 * An error is text in a fixed buffer plus numbers, so setting one cannot fail. Text that does not fit
 * is truncated at a UTF-8 boundary and ends in "...". Setting an error twice asserts, because the
 * first cause is the relevant one.
 */
#include "config.h"

#include "tec/base/err.h"

#include <assert.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

/* The value of err_kind= in logs: do not change these words, log searches depend on them. */
const char *err_kind_name(enum err_kind kind)
{
	static const char *const names[] = {
		"none", "transient", "conflict", "not-found", "gone", "denied", "invalid", "bug"};

	return kind < sizeof(names) / sizeof(names[0]) ? names[kind] : "unknown";
}

/* End a truncated text with "...". `want` is the length that snprintf would have written. */
static void mark_cut(char *text, size_t cap, int want)
{
	size_t end;

	if (want >= 0 && (size_t)want < cap)
		return;
	end = cap - 4;
	while (end > 0 && ((unsigned char)text[end] & 0xc0) == 0x80)
		end--;
	memcpy(text + end, "...", 4);
}

static void set_text(struct err *err, enum err_kind kind, const char *fmt, va_list ap)
	__attribute__((format(printf, 3, 0)));
/* Set kind and text of an error that must be unset; all other members become 0. */
static void set_text(struct err *err, enum err_kind kind, const char *fmt, va_list ap)
{
	char text[sizeof(err->text)]; /* an argument may point to err->text */
	int want;

	assert(err->kind == ERR_NONE);
	assert(kind != ERR_NONE);
	want = vsnprintf(text, sizeof(text), fmt, ap);
	mark_cut(text, sizeof(text), want);
	err_clear(err);
	err->kind = kind;
	memcpy(err->text, text, sizeof(text));
}

int err_set(struct err *err, enum err_kind kind, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	set_text(err, kind, fmt, ap);
	va_end(ap);
	return -1;
}

void *err_null(struct err *err, enum err_kind kind, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	set_text(err, kind, fmt, ap);
	va_end(ap);
	return NULL;
}

/* strerror is used because the program has one thread; its text follows the locale, which is never
 * set. */
int err_set_errno(struct err *err, enum err_kind kind, int sys, const char *fmt, ...)
{
	size_t len;
	va_list ap;
	int want;

	va_start(ap, fmt);
	set_text(err, kind, fmt, ap);
	va_end(ap);
	err->sys = sys;
	len = strlen(err->text);
	want = snprintf(err->text + len, sizeof(err->text) - len, ": %s", strerror(sys));
	mark_cut(err->text, sizeof(err->text), want < 0 ? want : (int)len + want);
	return -1;
}

int err_set_http(struct err *err, enum err_kind kind, int http, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	set_text(err, kind, fmt, ap);
	va_end(ap);
	err->http = http;
	return -1;
}

int err_set_lease_lost(struct err *err)
{
	/* CONFLICT, because another process may act now and nothing needs to be repaired. */
	return err_set(err, ERR_CONFLICT, "not sent: this process no longer holds the lease");
}

/* If the result is too long, the end of the original text is lost: the context names the object and
 * must stay. */
int err_wrap(struct err *err, const char *fmt, ...)
{
	char text[sizeof(err->text)];
	size_t len;
	va_list ap;
	int want;

	assert(err->kind != ERR_NONE);
	va_start(ap, fmt);
	want = vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	mark_cut(text, sizeof(text), want);
	len = strlen(text);
	want = snprintf(text + len, sizeof(text) - len, ": %s", err->text);
	mark_cut(text, sizeof(text), want < 0 ? want : (int)len + want);
	memcpy(err->text, text, sizeof(text));
	return -1;
}

void err_clear(struct err *err)
{
	memset(err, 0, sizeof(*err));
}
