/* SPDX-License-Identifier: MIT */
/*
 * struct kbsd: a key broker that speaks Trustee's protocol, on a listener of its own. So far its
 * admin side: resources, reference values, policies (trustee-protocol.md section 4), /healthz.
 * Policies are kept and listed, not evaluated.
 *
 * Who owns what: store and admin key are borrowed, and the store may be exchanged between two
 * requests; everything else of the configuration is copied. on_request runs from the loop before
 * each reply that a handler makes (what the listener itself refuses, 405, 411, 413..., it does not
 * see).
 *
 * Every refusal is JSON of `type` and `detail`. Statuses say what happened, unless `quirks` asks
 * for those of the real one: 404 for a path that does not exist, 401 for everything else, and no
 * Content-Type.
 */
#ifndef TEC_STANDALONE_KBSD_H
#define TEC_STANDALONE_KBSD_H

#include <stdbool.h>
#include <stddef.h>

#include "tec/base/err.h"
#include "tec/jose/jws.h"
#include "tec/loop/loop.h"
#include "tec/net/httpd.h"
#include "tec/standalone/kbsstore.h"

#define KBSD_MAX_BODY      ((size_t)8 << 20)
#define KBSD_MAX_BODY_MOST ((size_t)32 << 20)

struct kbsd;

struct kbsd_event {
	const char *verb; /* static: resource-put, refvalue-get, ... ; other */
	const char *method, *target;
	int status;
	const char *type; /* of the refusal; "" when it was none */
};

struct kbsd_conf {
	const char *name;                   /* static; label in logs and metrics */
	const struct jws_public *admin_key; /* borrowed */
	const char *issuer, *audience;      /* what a token must name; NULL: anything */
	size_t max_body;                    /* 0: KBSD_MAX_BODY */
	bool quirks;
	struct kbsstore *store;
	void (*on_request)(void *arg, const struct kbsd_event *e); /* NULL: nobody looks */
	void *arg;
};

struct kbsd *kbsd_new(struct loop *l, const struct kbsd_conf *conf);
void kbsd_free(struct kbsd *k);           /* closes all connections at once */
struct httpd *kbsd_httpd(struct kbsd *k); /* to listen, for TLS, to drain */
void kbsd_set_store(struct kbsd *k, struct kbsstore *store);

/* As the real one starts: the stock policies, where the store has none under their names. */
int kbsd_seed(struct kbsstore *store, struct err *err) MUST_CHECK;

#endif
