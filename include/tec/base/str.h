/* SPDX-License-Identifier: MIT */
/*
 * struct strbuf: a growing byte string, always NUL-terminated at `len`. It is embedded: STRBUF_INIT
 * is the empty one, strbuf_fini() or cleanup_strbuf releases it. It aborts above a hard limit of
 * 64 MiB: callers must limit outside input before they append it. Key material belongs in a struct
 * secret (base/secret.h) or must be wiped with secret_strbuf_fini().
 */
#ifndef TEC_BASE_STR_H
#define TEC_BASE_STR_H

#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

struct strbuf {
	char *data; /* owned; never NULL after the first append, use strbuf_str() to read */
	size_t len;
	size_t cap;
};
#define STRBUF_INIT                                                                                \
	{                                                                                          \
		NULL, 0, 0                                                                         \
	}

void strbuf_fini(struct strbuf *b);
void strbuf_reset(struct strbuf *b); /* empties it but keeps the memory */
void strbuf_add(struct strbuf *b, const void *data, size_t len);
/* Append len bytes that the caller must write before the next call; returns their address. */
char *strbuf_extend(struct strbuf *b, size_t len);
void strbuf_adds(struct strbuf *b, const char *s);
void strbuf_addf(struct strbuf *b, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
void strbuf_vaddf(struct strbuf *b, const char *fmt, va_list ap)
	__attribute__((format(printf, 2, 0)));
static inline void strbuf_addc(struct strbuf *b, char c)
{
	if (b->cap - b->len < 2) {
		strbuf_add(b, &c, 1);
		return;
	}
	b->data[b->len++] = c;
	b->data[b->len] = '\0';
}
void strbuf_drop(struct strbuf *b, size_t n); /* removes n bytes from the front */
char *strbuf_steal(struct strbuf *b);         /* the caller frees; "" when empty, never NULL */
static inline const char *strbuf_str(const struct strbuf *b)
{
	return b->data ? b->data : "";
}
#define cleanup_strbuf __attribute__((cleanup(strbuf_fini)))

static inline bool str_eq(const char *a, const char *b)
{
	return a == b || (a && b && strcmp(a, b) == 0);
}
bool str_starts(const char *s, const char *prefix);
bool str_ends(const char *s, const char *suffix);
/* Compare two elements of an array of texts by bytes, for qsort() and bsearch(). */
int str_order(const void *a, const void *b);
uint64_t str_hash(const void *data, size_t len); /* for hash tables; keyed per process (SipHash) */

/* Parse decimal digits only: no sign, blank, overflow or trailing data; -1 otherwise. */
int str_to_u64(const char *s, uint64_t max, uint64_t *out) __attribute__((warn_unused_result));
/* Parse a Go-style duration of one or more terms ("24h", "1h30m", "90s", "250ms") or "0" into
 * milliseconds. */
int str_to_duration_ms(const char *s, int64_t *out_ms) __attribute__((warn_unused_result));

/* Percent-encode everything except the unreserved characters of RFC 3986. */
void str_percent_encode(struct strbuf *out, const char *s, size_t len);

/* Split HOST[:PORT]. "[::1]" keeps its brackets; *port points into address, NULL: there is none. The
 * caller frees *host. False: it is neither. */
bool str_host_port(const char *address, char **host, const char **port);
/* The host of HOST[:PORT] without brackets; NULL: no address, or a malformed one. The caller frees. */
char *str_host(const char *address);

#endif
