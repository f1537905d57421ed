/* SPDX-License-Identifier: MIT */
/*
 * Allocation that aborts instead of failing. The message goes to stderr without allocation and without
 * the logger (which allocates), then the process aborts: a restart rebuilds all state from the API.
 */
#include "config.h"

#include "tec/base/mem.h"

#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

/* The text is bounded and written with one write(2), as memory may be exhausted or corrupt. */
_Noreturn void die_impossible(const char *file, int line, const char *fmt, ...)
{
	char text[1024];
	size_t len;
	va_list ap;

	len = (size_t)snprintf(text, 256, "fatal: %.200s:%d: ", file, line);
	va_start(ap, fmt);
	vsnprintf(text + len, sizeof(text) - len - 1, fmt, ap);
	va_end(ap);
	len = strlen(text);
	text[len++] = '\n';
	if (write(STDERR_FILENO, text, len) < 0)
		abort(); /* stderr is unusable; checked only to satisfy the compiler */
	abort();
}

/* One message for all allocations; the size tells a runaway request from exhausted memory. */
static void *must(void *p, size_t size)
{
	if (!p)
		DIE("out of memory (%zu bytes)", size);
	return p;
}

/* malloc(0) may return NULL, which is not a failure: one byte is requested instead. */
void *xmalloc(size_t size)
{
	return must(malloc(size ? size : 1), size);
}

void *xcalloc(size_t n, size_t size)
{
	size_t total;

	if (__builtin_mul_overflow(n, size, &total))
		DIE("size overflow (%zu x %zu)", n, size);
	return must(calloc(1, total ? total : 1), total);
}

void *xrealloc(void *p, size_t size)
{
	return must(realloc(p, size ? size : 1), size);
}

/* Check the product: an overflow would allocate too little and be written past its end. */
void *xreallocarray(void *p, size_t n, size_t size)
{
	size_t total;

	if (__builtin_mul_overflow(n, size, &total))
		DIE("size overflow (%zu x %zu)", n, size);
	return xrealloc(p, total);
}

char *xstrdup(const char *s)
{
	return s ? xmemdup(s, strlen(s)) : NULL;
}

void xreplace(char **to, const char *s)
{
	char *copy = xstrdup(s); /* s may be a part of *to */

	free(*to);
	*to = copy;
}

char *xstrndup(const char *s, size_t len)
{
	return xmemdup(s, strnlen(s, len));
}

/* The additional NUL makes bytes from outside safe to pass to C string functions. */
void *xmemdup(const void *p, size_t len)
{
	char *copy;

	if (len == SIZE_MAX)
		DIE("size overflow (%zu + 1)", len);
	copy = xmalloc(len + 1);
	if (len > 0)
		memcpy(copy, p, len);
	copy[len] = '\0';
	return copy;
}

char *xasprintf(const char *fmt, ...)
{
	char *s = NULL;
	va_list ap;
	int len;

	va_start(ap, fmt);
	len = vasprintf(&s, fmt, ap);
	va_end(ap);
	if (len < 0)
		DIE("out of memory (asprintf)");
	return s;
}
