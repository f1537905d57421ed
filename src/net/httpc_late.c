/* SPDX-License-Identifier: MIT */
/*
 * Wrappers for the functions of libcurl that httpc calls; each forwards to the loaded library. curl.h
 * declares them, so a wrong prototype does not compile. The argument type of a variadic function
 * follows from the option's number, as defined in curl.h.
 */
#include "config.h"

#include "tec/net/httpc_late.h"

#include <assert.h>
#include <curl/curl.h>
#include <dlfcn.h>
#include <stdarg.h>

#include "tec/base/log.h"

/* The interface has had this number since 2006. */
#define LIBRARY "libcurl.so.4"

#define FUNCTIONS(X)                                                                               \
	X(curl_easy_cleanup)                                                                       \
	X(curl_easy_getinfo)                                                                       \
	X(curl_easy_header)                                                                        \
	X(curl_easy_init)                                                                          \
	X(curl_easy_reset)                                                                         \
	X(curl_easy_setopt)                                                                        \
	X(curl_easy_strerror)                                                                      \
	X(curl_global_cleanup)                                                                     \
	X(curl_global_init_mem)                                                                    \
	X(curl_multi_add_handle)                                                                   \
	X(curl_multi_assign)                                                                       \
	X(curl_multi_cleanup)                                                                      \
	X(curl_multi_info_read)                                                                    \
	X(curl_multi_init)                                                                         \
	X(curl_multi_remove_handle)                                                                \
	X(curl_multi_setopt)                                                                       \
	X(curl_multi_socket_action)                                                                \
	X(curl_multi_strerror)                                                                     \
	X(curl_slist_append)                                                                       \
	X(curl_slist_free_all)

/* curl.h's type-checking macros would replace the definitions below. */
#undef curl_easy_getinfo
#undef curl_easy_setopt
#undef curl_multi_setopt

#define MEMBER(name) __typeof__(name) *name;
#define NAME(name)   #name,
#define COUNT(name)  +1
enum { N_FUNCTIONS = 0 FUNCTIONS(COUNT) };

static union {
	struct {
		FUNCTIONS(MEMBER)
	} f;
	void *all[N_FUNCTIONS]; /* dlsym() has one type for all */
} lib;
static_assert(sizeof(lib.f) == sizeof(lib.all), "functions and data have pointers of one size");

/* RTLD_NOW, so that a library with unresolved symbols fails here and not in the middle of a
 * request. */
int httpc_late_load(struct err *err)
{
	static const char *const names[] = {FUNCTIONS(NAME)};
	void *library = dlopen(LIBRARY, RTLD_NOW | RTLD_LOCAL);

	if (!library)
		return err_set(err, ERR_INVALID,
			"cannot load the HTTP client for registries: %s; next step: install libcurl",
			log_esc(dlerror()));
	for (size_t i = 0; i < N_FUNCTIONS; i++) {
		lib.all[i] = dlsym(library, names[i]);
		if (!lib.all[i])
			return err_set(err, ERR_INVALID,
				"%s does not have %s; next step: install libcurl 7.88 or later",
				LIBRARY, names[i]);
	}
	return 0;
}

/* ---- easy */

CURL *curl_easy_init(void)
{
	return lib.f.curl_easy_init();
}

void curl_easy_cleanup(CURL *easy)
{
	lib.f.curl_easy_cleanup(easy);
}

void curl_easy_reset(CURL *easy)
{
	lib.f.curl_easy_reset(easy);
}

/* Every result is stored through a pointer, whatever its type. */
CURLcode curl_easy_getinfo(CURL *easy, CURLINFO info, ...)
{
	va_list ap;
	void *out;

	va_start(ap, info);
	out = va_arg(ap, void *);
	va_end(ap);
	return lib.f.curl_easy_getinfo(easy, info, out);
}

/* CURLOPTTYPE_* are ranges of option numbers: long, pointer, function, offset, blob. */
CURLcode curl_easy_setopt(CURL *easy, CURLoption option, ...)
{
	CURLcode rc;
	va_list ap;

	va_start(ap, option);
	if (option < CURLOPTTYPE_OBJECTPOINT)
		rc = lib.f.curl_easy_setopt(easy, option, va_arg(ap, long));
	else if (option >= CURLOPTTYPE_OFF_T && option < CURLOPTTYPE_BLOB)
		rc = lib.f.curl_easy_setopt(easy, option, va_arg(ap, curl_off_t));
	else
		rc = lib.f.curl_easy_setopt(easy, option, va_arg(ap, void *));
	va_end(ap);
	return rc;
}

const char *curl_easy_strerror(CURLcode code)
{
	return lib.f.curl_easy_strerror(code);
}

CURLHcode curl_easy_header(CURL *easy, const char *name, size_t index, unsigned origin, int request,
	struct curl_header **out)
{
	return lib.f.curl_easy_header(easy, name, index, origin, request, out);
}

/* ---- multi */

CURLM *curl_multi_init(void)
{
	return lib.f.curl_multi_init();
}

CURLMcode curl_multi_cleanup(CURLM *multi)
{
	return lib.f.curl_multi_cleanup(multi);
}

/* As above; httpc sets no multi option with an offset. */
CURLMcode curl_multi_setopt(CURLM *multi, CURLMoption option, ...)
{
	CURLMcode rc;
	va_list ap;

	va_start(ap, option);
	if (option < (CURLMoption)CURLOPTTYPE_OBJECTPOINT)
		rc = lib.f.curl_multi_setopt(multi, option, va_arg(ap, long));
	else
		rc = lib.f.curl_multi_setopt(multi, option, va_arg(ap, void *));
	va_end(ap);
	return rc;
}

CURLMcode curl_multi_add_handle(CURLM *multi, CURL *easy)
{
	return lib.f.curl_multi_add_handle(multi, easy);
}

CURLMcode curl_multi_remove_handle(CURLM *multi, CURL *easy)
{
	return lib.f.curl_multi_remove_handle(multi, easy);
}

CURLMcode curl_multi_assign(CURLM *multi, curl_socket_t fd, void *data)
{
	return lib.f.curl_multi_assign(multi, fd, data);
}

CURLMsg *curl_multi_info_read(CURLM *multi, int *waiting)
{
	return lib.f.curl_multi_info_read(multi, waiting);
}

CURLMcode curl_multi_socket_action(CURLM *multi, curl_socket_t fd, int events, int *running)
{
	return lib.f.curl_multi_socket_action(multi, fd, events, running);
}

const char *curl_multi_strerror(CURLMcode code)
{
	return lib.f.curl_multi_strerror(code);
}

/* ---- the rest */

CURLcode curl_global_init_mem(long flags, curl_malloc_callback m, curl_free_callback f,
	curl_realloc_callback r, curl_strdup_callback s, curl_calloc_callback c)
{
	return lib.f.curl_global_init_mem(flags, m, f, r, s, c);
}

void curl_global_cleanup(void)
{
	lib.f.curl_global_cleanup();
}

struct curl_slist *curl_slist_append(struct curl_slist *list, const char *text)
{
	return lib.f.curl_slist_append(list, text);
}

void curl_slist_free_all(struct curl_slist *list)
{
	lib.f.curl_slist_free_all(list);
}
