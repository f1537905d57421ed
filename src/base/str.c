/* SPDX-License-Identifier: MIT */
/*
 * Growing strings, parsers for numbers and durations, the keyed hash. The parsers are strict: no
 * signs, no blanks, no overflow. A duration that is not a whole number of milliseconds is refused, so
 * that no value is rounded to 0, which often means "off".
 */
#include "config.h"

#include "tec/base/str.h"

#include <sodium.h>
#include <stdio.h>

#include "tec/base/mem.h"

#define STRBUF_MAX ((size_t)64 << 20)

void strbuf_fini(struct strbuf *b)
{
	free(b->data);
	memset(b, 0, sizeof(*b));
}

void strbuf_reset(struct strbuf *b)
{
	b->len = 0;
	if (b->data)
		b->data[0] = '\0';
}

/* Make room for `more` bytes and the NUL, doubling the capacity. The bytes move to new memory, because
 * realloc would leave a copy of a secret behind. Exceeding the limit is a bug of the caller, which must
 * bound its input. */
static void reserve(struct strbuf *b, size_t more)
{
	char *grown;
	size_t cap;

	if (more > STRBUF_MAX || b->len + more > STRBUF_MAX)
		DIE("strbuf of %zu bytes would grow by %zu", b->len, more);
	if (b->len + more < b->cap)
		return;
	cap = b->cap ? b->cap : 64;
	while (cap <= b->len + more)
		cap *= 2;
	grown = xmalloc(cap);
	if (b->data) {
		memcpy(grown, b->data, b->len + 1);
		sodium_memzero(b->data, b->cap);
		free(b->data);
	}
	b->data = grown;
	b->cap = cap;
}

/* The bytes are uninitialised until the caller writes them. */
char *strbuf_extend(struct strbuf *b, size_t len)
{
	char *at;

	reserve(b, len);
	at = b->data + b->len;
	b->len += len;
	b->data[b->len] = '\0';
	return at;
}

void strbuf_add(struct strbuf *b, const void *data, size_t len)
{
	char *at = strbuf_extend(b, len);

	if (len > 0)
		memcpy(at, data, len);
}

void strbuf_adds(struct strbuf *b, const char *s)
{
	strbuf_add(b, s, strlen(s));
}

void strbuf_addf(struct strbuf *b, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	strbuf_vaddf(b, fmt, ap);
	va_end(ap);
}

/* Format into the free space, and once more if it was too small; the arguments need a copy for
 * that. */
void strbuf_vaddf(struct strbuf *b, const char *fmt, va_list ap)
{
	va_list again;
	int len;

	va_copy(again, ap);
	reserve(b, 32);
	len = vsnprintf(b->data + b->len, b->cap - b->len, fmt, ap);
	if (len < 0)
		DIE("cannot format \"%s\"", fmt);
	if ((size_t)len >= b->cap - b->len) {
		reserve(b, (size_t)len);
		vsnprintf(b->data + b->len, b->cap - b->len, fmt, again);
	}
	va_end(again);
	b->len += (size_t)len;
}

/* Costs a move of the rest, so callers drop large parts rarely instead of small parts often. */
void strbuf_drop(struct strbuf *b, size_t n)
{
	if (n > b->len)
		DIE("dropping %zu of %zu bytes", n, b->len);
	if (n == 0)
		return;
	b->len -= n;
	memmove(b->data, b->data + n, b->len + 1);
}

/* Hand the buffer to the caller and leave an empty strbuf. */
char *strbuf_steal(struct strbuf *b)
{
	char *s = b->data ? b->data : xstrdup("");

	memset(b, 0, sizeof(*b));
	return s;
}

bool str_starts(const char *s, const char *prefix)
{
	return strncmp(s, prefix, strlen(prefix)) == 0;
}

bool str_ends(const char *s, const char *suffix)
{
	size_t len = strlen(s), n = strlen(suffix);

	return len >= n && memcmp(s + len - n, suffix, n) == 0;
}

int str_order(const void *a, const void *b)
{
	return strcmp(*(const char *const *)a, *(const char *const *)b);
}

/* SipHash with a random key per process: an attacker who chooses keys (cookies, addresses) cannot
 * make them collide. So hashes are never stored or sent. */
uint64_t str_hash(const void *data, size_t len)
{
	static unsigned char key[crypto_shorthash_KEYBYTES];
	static bool have_key;
	uint64_t hash;

	_Static_assert(crypto_shorthash_BYTES == sizeof(hash), "SipHash-2-4 is 64 bits");
	if (!have_key) {
		if (sodium_init() < 0)
			DIE("cannot initialise libsodium");
		randombytes_buf(key, sizeof(key));
		have_key = true;
	}
	crypto_shorthash((unsigned char *)&hash, data, len, key);
	return hash;
}

/* Leading zeros are accepted, so a caller that needs one spelling must check for them. */
int str_to_u64(const char *s, uint64_t max, uint64_t *out)
{
	uint64_t v = 0;

	if (!s || !*s)
		return -1;
	for (; *s; s++) {
		if (*s < '0' || *s > '9')
			return -1;
		if (__builtin_mul_overflow(v, 10, &v) ||
			__builtin_add_overflow(v, (uint64_t)(*s - '0'), &v))
			return -1;
	}
	if (v > max)
		return -1;
	*out = v;
	return 0;
}

/* Parse one term such as "1.5h" and add its nanoseconds to *total. */
static int duration_term(const char **s, uint64_t *total)
{
	static const struct {
		const char *name;
		uint64_t ns;
	} units[] = {{"ms", 1000000}, {"h", 3600000000000}, {"m", 60000000000}, {"s", 1000000000}};
	uint64_t whole = 0, frac = 0, scale = 1, unit = 0;
	const char *p = *s;

	if (*p < '0' || *p > '9')
		return -1;
	for (; *p >= '0' && *p <= '9'; p++) {
		if (__builtin_mul_overflow(whole, 10, &whole) ||
			__builtin_add_overflow(whole, (uint64_t)(*p - '0'), &whole))
			return -1;
	}
	if (*p == '.') {
		if (p[1] < '0' || p[1] > '9')
			return -1;
		for (p++; *p >= '0' && *p <= '9'; p++) {
			if (scale >= 1000000) /* at most 6 digits: frac * 1 h fits 64 bits */
				return -1;
			frac = frac * 10 + (uint64_t)(*p - '0');
			scale *= 10;
		}
	}
	for (size_t i = 0; i < ARRAY_LEN(units) && unit == 0; i++) /* "ms" before "m" */
		if (str_starts(p, units[i].name)) {
			p += strlen(units[i].name);
			unit = units[i].ns;
		}
	if (unit == 0 || __builtin_mul_overflow(whole, unit, &whole))
		return -1;
	if (frac * unit % (scale * 1000000) != 0) /* a fraction of a millisecond */
		return -1;
	if (__builtin_add_overflow(whole, frac * unit / scale, &whole) ||
		__builtin_add_overflow(*total, whole, total))
		return -1;
	*s = p;
	return 0;
}

/* The syntax of Go's time.ParseDuration without signs and units below a millisecond; "0" needs no
 * unit there either. */
int str_to_duration_ms(const char *s, int64_t *out_ms)
{
	uint64_t ns = 0;

	if (!s || !*s)
		return -1;
	if (strcmp(s, "0") == 0) {
		*out_ms = 0;
		return 0;
	}
	while (*s) {
		if (duration_term(&s, &ns) < 0)
			return -1;
	}
	if (ns > INT64_MAX) /* the limit of Go's time.Duration */
		return -1;
	*out_ms = (int64_t)(ns / 1000000);
	return 0;
}

/* Upper-case hex digits, which RFC 3986 section 2.1 recommends. */
void str_percent_encode(struct strbuf *out, const char *s, size_t len)
{
	static const char hex[] = "0123456789ABCDEF";

	for (size_t i = 0; i < len; i++) {
		unsigned char c = (unsigned char)s[i];

		if ((c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
			c == '-' || c == '.' || c == '_' || c == '~') {
			strbuf_addc(out, (char)c);
		} else {
			char enc[3] = {'%', hex[c >> 4], hex[c & 15]};

			strbuf_add(out, enc, sizeof(enc));
		}
	}
}

bool str_host_port(const char *address, char **host, const char **port)
{
	const char *end = address[0] == '[' ? strchr(address, ']') : strchr(address, ':');
	size_t len = !end ? strlen(address) : (size_t)(end - address) + (address[0] == '[');
	uint64_t number;

	*port = address[len] ? address + len + 1 : NULL;
	if (len == 0 || (address[0] == '[' && !end) || (address[len] && address[len] != ':') ||
		strpbrk(address, "/ \t?#@%\"\\") ||
		(*port && (str_to_u64(*port, 65535, &number) < 0 || !number)))
		return false;
	*host = xstrndup(address, len);
	return true;
}

char *str_host(const char *address)
{
	cleanup_free char *host = NULL;
	const char *port;
	size_t len;

	if (!address || !str_host_port(address, &host, &port))
		return NULL;
	len = strlen(host);
	return host[0] == '[' ? xstrndup(host + 1, len - 2) : steal_ptr(&host);
}
