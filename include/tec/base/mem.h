/* SPDX-License-Identifier: MIT */
/*
 * Memory: allocation that cannot fail (out of memory aborts, because state lives in the API and a
 * restart is cheap), and release by declaration: an owning local is `cleanup_free char *p = NULL;`.
 */
#ifndef TEC_BASE_MEM_H
#define TEC_BASE_MEM_H

#include <stddef.h>
#include <stdlib.h>

/* Built with AddressSanitizer, which needs more memory and whose leak checker attaches to the process. */
#if defined(__SANITIZE_ADDRESS__)
#define HAVE_ASAN 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define HAVE_ASAN 1
#endif
#endif

void *xmalloc(size_t size);
void *xcalloc(size_t n, size_t size); /* zeroed; overflow aborts */
void *xrealloc(void *p, size_t size);
void *xreallocarray(void *p, size_t n, size_t size);
char *xstrdup(const char *s); /* NULL stays NULL */
char *xstrndup(const char *s, size_t len);
/* Replace an owned string by a copy of s, which may be NULL. */
void xreplace(char **to, const char *s);
void *xmemdup(const void *p, size_t len); /* adds a NUL byte, not counted */
char *xasprintf(const char *fmt, ...) __attribute__((format(printf, 1, 2)));

/* Print which object and state is impossible, then abort. */
_Noreturn void die_impossible(const char *file, int line, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));
#define DIE(...) die_impossible(__FILE__, __LINE__, __VA_ARGS__)

/* The only way to return a cleanup variable: yields its value and leaves NULL. */
static inline void *steal_ptr_(void *pp)
{
	void *p = *(void **)pp;
	*(void **)pp = NULL;
	return p;
}
#define steal_ptr(pp) ((__typeof__(*(pp)))steal_ptr_(pp))

static inline void cleanup_free_(void *pp)
{
	free(*(void **)pp);
}
#define cleanup_free __attribute__((cleanup(cleanup_free_)))

/* DEFINE_CLEANUP(kobj_cleanup_, const struct kobj *, kobj_unref) defines the function for a cleanup
 * attribute. */
#define DEFINE_CLEANUP(name, type, func)                                                           \
	static inline void name(type *pp)                                                          \
	{                                                                                          \
		if (*pp)                                                                           \
			func(*pp);                                                                 \
	}

/* Make room for one more element after the n of array v. The capacity is always the next power of
 * two, so it need not be stored; an array must grow by this macro only. */
#define ARRAY_GROW(v, n)                                                                           \
	do {                                                                                       \
		if (((n) & ((n)-1)) == 0)                                                          \
			(v) = xreallocarray((v), (n) ? (size_t)(n)*2 : 1, sizeof(*(v)));           \
	} while (0)

#define ARRAY_LEN(a)                    (sizeof(a) / sizeof((a)[0]))
#define container_of(ptr, type, member) ((type *)((char *)(ptr)-offsetof(type, member)))

#endif
