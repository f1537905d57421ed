/* SPDX-License-Identifier: MIT */
/*
 * Logging: one line per change, key=value (or one JSON object), to stderr.
 *   log_info(&lc, "key pushed", "took_ms=%u", ms)
 *   2026-01-02T03:04:05Z info msg="key pushed" kind=Machine ns=a name=b uid=c took_ms=12
 * `fields` is a printf format of space separated key=value pairs; log_esc() makes an outside string
 * safe inside it. Key names come from the list in log.c (an unknown one asserts in tests). Secrets
 * cannot be passed: they are not strings.
 */
#ifndef TEC_BASE_LOG_H
#define TEC_BASE_LOG_H

#include <stdbool.h>
#include <stddef.h>

#include "tec/base/err.h"

/* In the order of the choices of --log-level and --log-format (src/cmd/options.c). */
enum log_level { LOG_DEBUG, LOG_INFO, LOG_WARN, LOG_ERROR };
enum log_format { LOG_TEXT, LOG_JSON };

/* The object a line is about; any member may be NULL. Strings are borrowed for the call. */
struct log_ctx {
	const char *kind, *ns, *name, *uid;
};

void log_setup(enum log_level level, enum log_format format);

/* lc may be NULL. `fields` may be NULL or "". */
void log_at(enum log_level level, const struct log_ctx *lc, const char *msg, const char *fields,
	...) PRINTF_LIKE(4, 5);
/* Of a line that is not written, nothing is evaluated. */
bool log_is_on(enum log_level level);
#define log_unless_off(level, ...) (log_is_on(level) ? log_at(level, __VA_ARGS__) : (void)0)
#define log_debug(lc, msg, ...)    log_unless_off(LOG_DEBUG, lc, msg, __VA_ARGS__)
#define log_info(lc, msg, ...)     log_unless_off(LOG_INFO, lc, msg, __VA_ARGS__)
#define log_warn(lc, msg, ...)     log_unless_off(LOG_WARN, lc, msg, __VA_ARGS__)
#define log_error(lc, msg, ...)    log_unless_off(LOG_ERROR, lc, msg, __VA_ARGS__)
/* msg plus err_kind=, errno=, http=, err="text". */
void log_err(
	enum log_level level, const struct log_ctx *lc, const char *msg, const struct err *err);

/* Quotes and escapes s for one field value; up to 8 results live at once (a ring of 512-byte
 * buffers, cut with "..."). */
const char *log_esc(const char *s);
const char *log_escn(const char *s, size_t len);

/* Tests: every finished line goes here instead of stderr; NULL restores. */
void log_capture(void (*fn)(enum log_level level, const char *line, void *arg), void *arg);

#endif
