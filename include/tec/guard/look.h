/* SPDX-License-Identifier: MIT */
/*
 * struct guard_look: whether Trustee answers, determined by one small request after another to GET
 * /healthz. Any status counts as an answer, because Trustee before v0.21 has no such path. Asking
 * this module causes no request, however often it happens.
 *
 * The HTTP client and TLS are borrowed and must outlive it. It has no callbacks; before the first
 * answer, Trustee counts as not answering.
 */
#ifndef TEC_GUARD_LOOK_H
#define TEC_GUARD_LOOK_H

#include <stdbool.h>

#include "tec/loop/loop.h"
#include "tec/net/httpc.h"

struct guard_look;
/* upstream: without a trailing slash. every_ms: from one answer to the next request. */
struct guard_look *guard_look_new(struct loop *l, struct httpc *http, const char *upstream,
	struct httpc_tls *tls, uint32_t every_ms);
void guard_look_free(struct guard_look *k); /* NULL is fine */
bool guard_look_answers(const struct guard_look *k);

#endif
