/* SPDX-License-Identifier: MIT */
/*
 * The interface through which every request of the operator to a Kubernetes API passes.
 * Implementations ("makers"): HTTPS (k8s/client), in-process, fake (tests/fake); k8s/gate wraps any
 * of them. Callers cannot tell which one they have. The rules of loop/op.h hold for all.
 *
 * A request in flight is one struct k8s_exchange: one heap object, one op, in the caller's scope.
 * It owns the request, whose body is wiped when the exchange ends; the data of the maker and of the
 * receiver are in the same memory.
 */
#ifndef TEC_K8S_TRANSPORT_H
#define TEC_K8S_TRANSPORT_H

#include <stddef.h>
#include <stdint.h>

#include "tec/base/body.h"
#include "tec/base/err.h"
#include "tec/loop/loop.h"
#include "tec/loop/op.h"

struct k8s_request {
	/* Static strings. verb and resource are for metrics; verb: get list watch create apply
	 * patch delete. content_type NULL: no body. */
	const char *method, *content_type, *verb, *resource;
	char *path;       /* on the heap, with query: "/api/v1/namespaces/a/secrets?limit=500" */
	struct body body; /* data NULL: none */
	uint32_t deadline_ms; /* 0: 15,000; with on_data: none, the answer is a stream */
	uint32_t silence_ms;  /* streams only */
	bool yields;          /* gives way to requests that do not (httpc.h) */
};

struct k8s_answer {
	int status;
	uint32_t retry_after_ms;
	const char *body; /* borrowed for the call, then wiped: may be Secret data */
	size_t body_len;
};

typedef void (*k8s_answer_fn)(void *arg, const struct err *err, const struct k8s_answer *answer);
typedef int (*k8s_data_fn)(void *arg, const char *data, size_t len, struct err *err);

/* The receiver of the answer. on_data NULL: the body is collected for done. Otherwise the bytes of
 * a 2xx go to on_data as they arrive, other bodies to done. */
struct k8s_receiver {
	k8s_data_fn on_data;
	k8s_answer_fn done;
	void (*fini)(void *arg); /* called after done or a cancel; NULL: nothing to release */
};

struct k8s_transport;

/* For makers: the FIRST member of their own struct, which is zeroed otherwise. */
struct k8s_exchange {
	struct op op; /* first */
	struct k8s_transport *t;
	struct k8s_request req;
	struct k8s_receiver to;
	void *arg; /* the receiver's */
	struct defer failed;
	struct err err;
	const char *code; /* code for metrics; NULL: derived from err and answer */
	uint64_t start_us;
};

struct k8s_transport_ops {
	void (*start)(struct k8s_exchange *x);
	/* Release what the maker holds of x. Runs once, before done or on a cancel. */
	void (*stop)(struct k8s_exchange *x);
	void (*free)(struct k8s_transport *t);
};
/* The first member of every maker's transport. */
struct k8s_transport {
	const struct k8s_transport_ops *ops;
	struct loop *loop;
	size_t exchange_size; /* size of the maker's struct that embeds k8s_exchange */
};

/* Start a request. Takes path and body of req. */
struct op *k8s_transport_start(struct k8s_transport *t, struct op_scope *scope,
	struct k8s_request *take_req, k8s_data_fn on_data, k8s_answer_fn done, void *arg);
/* Start a request with a receiver whose `arg` is a copy of `own`, kept in the exchange; size 0: `own`
 * itself. */
struct op *k8s_transport_start_own(struct k8s_transport *t, struct op_scope *scope,
	struct k8s_request *take_req, const struct k8s_receiver *to, const void *own, size_t size);
void k8s_transport_free(struct k8s_transport *t); /* NULL is fine */

/* For makers: end x and count it in tec_api_requests_total{verb,code}; answer NULL: none. */
void k8s_transport_end(
	struct k8s_exchange *x, const struct err *err, const struct k8s_answer *answer);
/* For makers: end x from the loop without an answer, when x->err is already set as it starts. */
void k8s_transport_fail(struct k8s_exchange *x);

/*
 * Turn an answer that is not 2xx (or err) into a struct err by RFC 9110 status and the Status
 * object's reason: 404 NOT_FOUND, 409 CONFLICT, 410 GONE, 401/403 DENIED, 400/405/406/413/415/422
 * INVALID, 429 and 5xx TRANSIENT with retry_after_ms. Returns 0 for a 2xx.
 */
int k8s_answer_check(const struct err *transport_err, const struct k8s_answer *answer,
	struct err *err) MUST_CHECK;

#endif
