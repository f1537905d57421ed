/* SPDX-License-Identifier: MIT */
/*
 * struct err: an error as a value. It owns nothing, so it may be copied and discarded freely.
 *
 * A fallible function returns 0/-1 or pointer/NULL and takes `struct err *err` last (never NULL).
 * The error is set exactly once, where the failure happens; callers add context with err_wrap() and
 * the outermost one logs it once. `kind` decides what a caller does; `text` is for people and never
 * contains key material. Setting an error that is already set asserts.
 */
#ifndef TEC_BASE_ERR_H
#define TEC_BASE_ERR_H

#include <stdbool.h>
#include <stdint.h>

#define MUST_CHECK        __attribute__((warn_unused_result))
#define PRINTF_LIKE(f, a) __attribute__((format(printf, f, a)))

enum err_kind {
	ERR_NONE = 0,
	ERR_TRANSIENT, /* retry later, after retry_after_ms if that is set */
	ERR_CONFLICT,  /* another writer changed or holds the object: read it again, then decide */
	ERR_NOT_FOUND,
	ERR_GONE,    /* a resourceVersion or session is too old: start over */
	ERR_DENIED,  /* refused credentials or policy: a person has to act */
	ERR_INVALID, /* the input is wrong; a retry would fail again */
	ERR_BUG,     /* a result that should be impossible */
};

#define ERR_TEXT_SIZE 512 /* a sentence of another server fits, with what was being done */

struct err {
	enum err_kind kind;
	int sys;                 /* errno, or 0 */
	int http;                /* HTTP status, or 0 */
	uint32_t retry_after_ms; /* the server's Retry-After, or 0 */
	char text[ERR_TEXT_SIZE];
};

#define ERR_INIT                                                                                   \
	{                                                                                          \
		.kind = ERR_NONE                                                                   \
	}

const char *err_kind_name(enum err_kind kind);

/* All return -1, so that `return err_set(...)` reads well. */
int err_set(struct err *err, enum err_kind kind, const char *fmt, ...) PRINTF_LIKE(3, 4);
/* The same for a function that returns a pointer. */
void *err_null(struct err *err, enum err_kind kind, const char *fmt, ...) PRINTF_LIKE(3, 4);
int err_set_errno(struct err *err, enum err_kind kind, int sys, const char *fmt, ...)
	PRINTF_LIKE(4, 5); /* appends ": strerror" */
int err_set_http(struct err *err, enum err_kind kind, int http, const char *fmt, ...)
	PRINTF_LIKE(4, 5);
/* For a request that was not sent because this process is no longer the leader. */
int err_set_lease_lost(struct err *err);
/* Prefix a set error with "context: "; kind and numbers are kept. */
int err_wrap(struct err *err, const char *fmt, ...) PRINTF_LIKE(2, 3);

void err_clear(struct err *err);

static inline bool err_is_set(const struct err *err)
{
	return err->kind != ERR_NONE;
}

#endif
