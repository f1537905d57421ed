/* SPDX-License-Identifier: MIT */
/*
 * struct guard_certfile: the server certificate of listeners from two PEM files, reloaded every 10
 * s and on request, because a mounted Secret changes without notice. Unusable files leave the last
 * good pair in use, which is logged once per change.
 *
 * The listeners are borrowed and must outlive it.
 */
#ifndef TEC_GUARD_CERTFILE_H
#define TEC_GUARD_CERTFILE_H

#include <stddef.h>

#include "tec/loop/loop.h"
#include "tec/net/httpd.h"

#define GUARD_CERTFILE_LISTENERS 2

struct guard_certfile;
/* NULL with ERR_INVALID: the files are unusable, which is fatal at the start. */
struct guard_certfile *guard_certfile_new(struct loop *l, const char *cert_path,
	const char *key_path, struct httpd *const listeners[GUARD_CERTFILE_LISTENERS],
	struct err *err) MUST_CHECK;
void guard_certfile_free(struct guard_certfile *c); /* NULL is fine */
void guard_certfile_reload(struct guard_certfile *c);

#endif
