/* SPDX-License-Identifier: MIT */
/*
 * The Kubernetes API over HTTPS: the part that kubectl and client-go need, served from the object
 * store. Anonymous requests are limited to /healthz, /livez, /readyz and /version. apireq/user
 * authenticates the others, apireq/rights authorizes them. Answers are JSON; errors are Status
 * objects.
 *
 * The objects are borrowed and must outlive the server. What a client can consume is bounded:
 * header and body sizes, connections, and the buffer of a watch that the client does not read.
 */
#ifndef TEC_APIHTTP_LISTENER_H
#define TEC_APIHTTP_LISTENER_H

#include "tec/apihttp/authority.h"
#include "tec/apireq/kinds.h"
#include "tec/store/objects.h"
#include "tec/loop/loop.h"
#include "tec/net/httpd.h"

struct apihttp_listener;

typedef int (*apihttp_hand_in_fn)(void *arg, const char *ns, const char *name, const char *message,
	size_t len, struct err *err);

struct apihttp_listener_conf {
	struct store_objects *objects;       /* borrowed */
	struct apireq_kinds *kinds;          /* borrowed */
	struct apihttp_authority *authority; /* borrowed */
	const char *version;                 /* of this program, for /version */
	unsigned max_connections;
	/* Is the server ready? If not, *why says what is missing. NULL: always ready. */
	bool (*ready)(void *arg, const char **why);
	void *ready_arg;
	/* Accepts the values of an image, sent by system:masters with PUT
	 * .../approvedimages/NAME/values. err: NOT_FOUND, CONFLICT, TRANSIENT, INVALID. NULL: the
	 * subresource is not served. */
	apihttp_hand_in_fn hand_in;
	void *hand_in_arg;
	/* Appends the body of GET /metrics. NULL: /metrics is not served. */
	void (*metrics)(struct strbuf *out);
};

struct apihttp_listener *apihttp_listener_new(
	struct loop *l, const struct apihttp_listener_conf *conf, struct err *err) MUST_CHECK;
void apihttp_listener_free(struct apihttp_listener *a);           /* NULL is fine */
struct httpd *apihttp_listener_httpd(struct apihttp_listener *a); /* for its listener and port */
/* Stop accepting connections and end every watch; requests in flight are finished. */
void apihttp_listener_drain(struct apihttp_listener *a);

#endif
