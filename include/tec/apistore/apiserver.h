/* SPDX-License-Identifier: MIT */
/*
 * The Kubernetes API over HTTPS: the part that kubectl and client-go need, served from the object
 * store. Anonymous requests are limited to /healthz, /livez, /readyz and /version. apistore/user
 * authenticates the others, apistore/rights authorizes them. Answers are JSON; errors are Status
 * objects.
 *
 * The objects are borrowed and must outlive the server. What a client can consume is bounded:
 * header and body sizes, connections, and the buffer of a watch that the client does not read.
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
	/* Is the server ready? If not, *why says what is missing. NULL: always ready. */
	bool (*ready)(void *arg, const char **why);
	void *ready_arg;
	/* Accepts the values of an image, sent by system:masters with PUT
	 * .../approvedimages/NAME/values. err: NOT_FOUND, CONFLICT, TRANSIENT, INVALID. NULL: the
	 * subresource is not served. */
	apistore_hand_in_fn hand_in;
	void *hand_in_arg;
	/* Appends the body of GET /metrics. NULL: /metrics is not served. */
	void (*metrics)(struct strbuf *out);
};

struct apistore_apiserver *apistore_apiserver_new(
	struct loop *l, const struct apistore_apiserver_conf *conf, struct err *err) MUST_CHECK;
void apistore_apiserver_free(struct apistore_apiserver *a); /* NULL is fine */
struct httpd *apistore_apiserver_httpd(
	struct apistore_apiserver *a); /* for its listener and port */
/* Stop accepting connections and end every watch; requests in flight are finished. */
void apistore_apiserver_drain(struct apistore_apiserver *a);

#endif
