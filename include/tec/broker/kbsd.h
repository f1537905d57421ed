/* SPDX-License-Identifier: MIT */
/*
 * struct broker_kbsd: a key broker that speaks Trustee's protocol on a listener of its own: the
 * admin side (broker/admin), the nodes' side (broker/attest) and /healthz.
 *
 * Ownership: the configuration is copied, without what it points to. on_answer runs from the loop before each reply and may
 * change it; it does not see what the listener itself refuses (404 outside the API, 411, 413...).
 */
#ifndef TEC_BROKER_KBSD_H
#define TEC_BROKER_KBSD_H

#include "tec/broker/admin.h"
#include "tec/broker/attest.h"
#include "tec/loop/loop.h"
#include "tec/net/httpd.h"

struct broker_kbsd;

/* The response with a resource for a node, until it may be sent. It ends with broker_held_end()
 * or with the request, which cancels what was started in ops. */
struct broker_held {
	struct op_scope *ops;
	const char *path; /* of the resource */
	void *arg;        /* for its owner */
};
/* err NULL: send the resource; NOT_FOUND: it was deleted meanwhile; any other: the node must
 * retry (503). */
void broker_held_end(struct broker_held *take, const struct err *err);

struct broker_kbsd_conf {
	const char *name;                 /* static; label in logs and metrics */
	const struct broker_admin *admin; /* borrowed, with a check; NULL: no admin API here */
	size_t max_body;
	unsigned max_connections;     /* 0: httpd_conf_default's */
	struct ratelimit *rate;       /* borrowed; NULL: off */
	struct broker_attest *attest; /* borrowed; NULL: nodes cannot attest */
	void (*on_answer)(
		void *arg, const struct broker_request *r, struct broker_answer *a); /* or NULL */
	/* Called before a node gets a resource; NULL: it is sent at once. */
	void (*on_held)(void *arg, struct broker_held *h);
	void *arg;
	/* As in httpd_conf; NULL: JSON with type and detail. */
	const char *(*error_body)(struct strbuf *out, int status, const char *message);
};

struct broker_kbsd *broker_kbsd_new(struct loop *l, const struct broker_kbsd_conf *conf);
void broker_kbsd_free(struct broker_kbsd *k);           /* closes all connections at once */
struct httpd *broker_kbsd_httpd(struct broker_kbsd *k); /* borrowed: to bind, set TLS, drain */

#endif
