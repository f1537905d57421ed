/* SPDX-License-Identifier: MIT */
/*
 * struct err: what went wrong, as a value. It owns nothing, so it may be copied and dropped freely.
 *
 * A fallible function returns 0/-1 or pointer/NULL and takes `struct err *err` last (never NULL).
 * It sets it exactly once, where the failure happened; callers add context with err_wrap() and the
 * top logs it once. `kind` decides what a caller does; `text` is for people and never holds key
 * material. Setting an already set error asserts.
 */
#ifndef TEC_BASE_ERR_H
#define TEC_BASE_ERR_H

#include <stdbool.h>
#include <stdint.h>

#define MUST_CHECK        __attribute__((warn_unused_result))
#define PRINTF_LIKE(f, a) __attribute__((format(printf, f, a)))

enum err_kind {
	ERR_NONE = 0,
	ERR_TRANSIENT, /* try again later, after retry_after_ms when that is set */
	ERR_CONFLICT,  /* another writer changed or holds it: read again, then decide */
	ERR_NOT_FOUND,
	ERR_GONE,    /* a resourceVersion or session is too old: start over */
	ERR_DENIED,  /* credentials or policy: a person has to act */
	ERR_INVALID, /* the input is wrong and will stay wrong */
	ERR_BUG,     /* an answer that should be impossible */
};

struct err {
	enum err_kind kind;
	int sys;                 /* errno, or 0 */
	int http;                /* HTTP status, or 0 */
	uint32_t retry_after_ms; /* what the server asked for, or 0 */
	char text[256];
};

#define ERR_INIT                                                                                   \
	{                                                                                          \
		.kind = ERR_NONE                                                                   \
	}

const char *err_kind_name(enum err_kind kind);

/* All return -1, so that `return err_set(...)` reads well. */
int err_set(struct err *err, enum err_kind kind, const char *fmt, ...) PRINTF_LIKE(3, 4);
int err_set_errno(struct err *err, enum err_kind kind, int sys, const char *fmt, ...)
	PRINTF_LIKE(4, 5); /* appends ": strerror" */
int err_set_http(struct err *err, enum err_kind kind, int http, const char *fmt, ...)
	PRINTF_LIKE(4, 5);
/* A request that was not sent because this process is not the leader any more. */
int err_set_lease_lost(struct err *err);
/* Prefixes "context: " to a set error; kind and numbers stay. */
int err_wrap(struct err *err, const char *fmt, ...) PRINTF_LIKE(2, 3);

void err_clear(struct err *err);

static inline bool err_is_set(const struct err *err)
{
	return err->kind != ERR_NONE;
}

#endif
