/* SPDX-License-Identifier: MIT */
/*
 * struct guard_look: whether Trustee answers, by one small request after another: GET /healthz,
 * where every answer counts, as Trustee before v0.21 has no such path. What asks for it costs
 * Trustee nothing, whoever asks and how often.
 *
 * The HTTP client and TLS are borrowed and outlive it. Nothing calls back; before the first answer
 * Trustee counts as one that does not answer.
 */
#ifndef TEC_GUARD_LOOK_H
#define TEC_GUARD_LOOK_H

#include <stdbool.h>

#include "tec/loop/loop.h"
#include "tec/net/httpc.h"

struct guard_look;
/* upstream: without a slash at its end. every_ms: from one answer to the next request. */
struct guard_look *guard_look_new(struct loop *l, struct httpc *http, const char *upstream,
	struct httpc_tls *tls, uint32_t every_ms);
void guard_look_free(struct guard_look *k); /* NULL is fine */
bool guard_look_answers(const struct guard_look *k);

#endif
