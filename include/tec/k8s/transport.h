/* SPDX-License-Identifier: MIT */
/*
 * The one seam: everything the operator says to a Kubernetes API goes through struct k8s_transport.
 * Three makers: HTTPS (k8s/client), in-process (standalone/apiserver, later), fake (tests/fake).
 * Callers cannot tell which they have. op rules (loop/op.h) hold for every maker.
 */
#ifndef TEC_K8S_TRANSPORT_H
#define TEC_K8S_TRANSPORT_H

#include <stddef.h>
#include <stdint.h>

#include "tec/base/err.h"
#include "tec/loop/op.h"

struct k8s_request {
	const char *method;       /* GET POST PUT PATCH DELETE */
	const char *path;         /* with query: "/api/v1/namespaces/a/secrets?limit=500" */
	const char *content_type; /* NULL without body */
	const char *body;
	size_t body_len;
	uint32_t deadline_ms; /* 0: 15,000; with on_data: none */
	uint32_t silence_ms;  /* streams only */
	/* For metrics; static strings. verb: get list watch create apply patch delete. */
	const char *verb, *resource;
};

struct k8s_answer {
	int status;
	uint32_t retry_after_ms;
	const char *body; /* borrowed for the call; may hold Secret data: the transport wipes it
			     afterwards */
	size_t body_len;
};

typedef void (*k8s_answer_fn)(void *arg, const struct err *err, const struct k8s_answer *answer);
typedef int (*k8s_data_fn)(void *arg, const char *data, size_t len, struct err *err);

struct k8s_transport;
struct k8s_transport_ops {
	/* on_data NULL: the answer's body is collected. Otherwise 2xx bytes go to on_data as they
	 * come, other bodies to done. */
	struct op *(*start)(struct k8s_transport *t, struct op_scope *scope,
		const struct k8s_request *req, k8s_data_fn on_data, k8s_answer_fn done, void *arg);
	void (*free)(struct k8s_transport *t);
};
/* First member of every maker's struct. */
struct k8s_transport {
	const struct k8s_transport_ops *ops;
	struct loop *loop;
	/* Writes are refused (ERR_DENIED, without a request) while this is set and returns false:
	 * the lease's renew deadline. */
	bool (*may_write)(void *arg);
	void *may_write_arg;
};

/* Checks may_write, counts (tec_api_requests_total{verb,code}), then asks the maker. req is copied
 * as needed. */
struct op *k8s_transport_start(struct k8s_transport *t, struct op_scope *scope,
	const struct k8s_request *req, k8s_data_fn on_data, k8s_answer_fn done, void *arg);
void k8s_transport_free(struct k8s_transport *t); /* NULL is fine */

/*
 * Turns an answer that is no 2xx (or err) into a struct err by RFC 9110 status and the Status
 * object's reason: 404 NOT_FOUND, 409 CONFLICT, 410 GONE, 401/403 DENIED, 400/405/406/413/415/422
 * INVALID, 429 and 5xx TRANSIENT with retry_after_ms. Returns 0 for a 2xx.
 */
int k8s_answer_check(const struct err *transport_err, const struct k8s_answer *answer,
	struct err *err) MUST_CHECK;

#endif
