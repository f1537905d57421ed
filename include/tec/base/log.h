/* SPDX-License-Identifier: MIT */
/*
 * Logging: one line per change, key=value (or one JSON object), to stderr.
 *   log_info(&lc, "key pushed", "took_ms=%u", ms)
 *   2026-01-02T03:04:05Z info msg="key pushed" kind=Machine ns=a name=b uid=c took_ms=12
 * `fields` is a printf format of space-separated key=value pairs; log_esc() escapes outside strings
 * for it. Key names must be in the list in log.c (an unknown one asserts in tests). A struct secret
 * cannot be logged, because it is not a string.
 */
#ifndef TEC_BASE_LOG_H
#define TEC_BASE_LOG_H

#include <stdbool.h>
#include <stddef.h>

#include "tec/base/err.h"

/* In the order of the choices of --log-level and --log-format (src/cmd/options.c). */
enum log_level { LOG_DEBUG, LOG_INFO, LOG_WARN, LOG_ERROR };
enum log_format { LOG_TEXT, LOG_JSON };

/* The object that a line concerns; any member may be NULL. Strings are borrowed for the call. */
struct log_ctx {
	const char *kind, *ns, *name, *uid;
};

void log_setup(enum log_level level, enum log_format format);

/* lc may be NULL. `fields` may be NULL or "". */
void log_at(enum log_level level, const struct log_ctx *lc, const char *msg, const char *fields,
	...) PRINTF_LIKE(4, 5);
/* The macros below do not evaluate their arguments if the line is not written. */
bool log_is_on(enum log_level level);
#define log_unless_off(level, ...) (log_is_on(level) ? log_at(level, __VA_ARGS__) : (void)0)
#define log_debug(lc, msg, ...)    log_unless_off(LOG_DEBUG, lc, msg, __VA_ARGS__)
#define log_info(lc, msg, ...)     log_unless_off(LOG_INFO, lc, msg, __VA_ARGS__)
#define log_warn(lc, msg, ...)     log_unless_off(LOG_WARN, lc, msg, __VA_ARGS__)
#define log_error(lc, msg, ...)    log_unless_off(LOG_ERROR, lc, msg, __VA_ARGS__)
/* Log msg with err_kind=, errno=, http= and err="text". */
void log_err(
	enum log_level level, const struct log_ctx *lc, const char *msg, const struct err *err);

/* Quote and escape s as one field value. The results live in a ring of 8 buffers of 512 bytes; longer
 * values are truncated and end in "...". */
const char *log_esc(const char *s);
const char *log_escn(const char *s, size_t len);

/* Tests: fn receives every complete line instead of stderr; NULL restores stderr. */
void log_capture(void (*fn)(enum log_level level, const char *line, void *arg), void *arg);

#endif
