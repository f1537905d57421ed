/* SPDX-License-Identifier: MIT */
/*
 * The Kubernetes API over HTTPS: what kubectl and client-go ask of an API server, answered from a
 * set of objects. No user is anonymous but for /healthz, /livez, /readyz and /version; who asks is
 * known by apistore/user, what he may by apistore/rights. Answers are JSON, refusals Status objects.
 *
 * The objects are borrowed and go last. Everything a client costs is bounded: heads, bodies, what
 * waits for a watch that is not read.
 */
#ifndef TEC_APISTORE_APISERVER_H
#define TEC_APISTORE_APISERVER_H

#include "tec/apistore/authority.h"
#include "tec/apistore/kinds.h"
#include "tec/apistore/objects.h"
#include "tec/loop/loop.h"
#include "tec/net/httpd.h"

struct apistore_apiserver;

typedef int (*apistore_hand_in_fn)(void *arg, const char *ns, const char *name, const char *message,
	size_t len, struct err *err);

struct apistore_apiserver_conf {
	struct apistore_objects *objects;     /* borrowed */
	struct apistore_kinds *kinds;         /* borrowed */
	struct apistore_authority *authority; /* borrowed */
	const char *version;                  /* of this program, for /version */
	unsigned max_connections;
	/* Is all there that clients want? Says what is not. NULL: always. */
	bool (*ready)(void *arg, const char **why);
	void *ready_arg;
	/* PUT .../approvedimages/NAME/values, for system:masters: takes the values of an image. err:
	 * NOT_FOUND, CONFLICT, TRANSIENT, INVALID. NULL: there is no such subresource. */
	apistore_hand_in_fn hand_in;
	void *hand_in_arg;
	/* Appends what GET /metrics answers; NULL: there is no /metrics. */
	void (*metrics)(struct strbuf *out);
};

struct apistore_apiserver *apistore_apiserver_new(
	struct loop *l, const struct apistore_apiserver_conf *conf, struct err *err) MUST_CHECK;
void apistore_apiserver_free(struct apistore_apiserver *a);           /* NULL is fine */
struct httpd *apistore_apiserver_httpd(struct apistore_apiserver *a); /* to listen, ask the port */
/* Stops accepting and ends every watch. */
void apistore_apiserver_drain(struct apistore_apiserver *a);

#endif
