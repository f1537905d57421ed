/* SPDX-License-Identifier: MIT */
/*
 * struct guard_certfile: the server certificate of listeners from two PEM files, read again every
 * 10 s and when asked: a mounted Secret is replaced without a word. Files that cannot be used leave
 * the last good pair in place, which is logged once per change.
 *
 * The listeners are borrowed and outlive it.
 */
#ifndef TEC_GUARD_CERTFILE_H
#define TEC_GUARD_CERTFILE_H

#include <stddef.h>

#include "tec/loop/loop.h"
#include "tec/net/httpd.h"

#define GUARD_CERTFILE_LISTENERS 2

struct guard_certfile;
/* NULL with ERR_INVALID: the files cannot be used, which at the start is an error. */
struct guard_certfile *guard_certfile_new(struct loop *l, const char *cert_path,
	const char *key_path, struct httpd *const listeners[GUARD_CERTFILE_LISTENERS],
	struct err *err) MUST_CHECK;
void guard_certfile_free(struct guard_certfile *c); /* NULL is fine */
void guard_certfile_reload(struct guard_certfile *c);

#endif
