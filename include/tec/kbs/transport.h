/* SPDX-License-Identifier: MIT */
/*
 * The seam to one Trustee's admin API. Implementations: HTTPS (kbs/client), the broker in this
 * process (broker/transport) and a fake (tests/fake/kbs.c). A request is one op (loop/op.h):
 * counting, the lease check and judging the answer happen here, so all implementations behave
 * alike. The body is not copied: it is handed down, and back with the answer in case the request
 * must be repeated. Authentication is the implementation's business: callers never see a token.
 */
#ifndef TEC_KBS_TRANSPORT_H
#define TEC_KBS_TRANSPORT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "tec/base/body.h"
#include "tec/base/err.h"
#include "tec/loop/op.h"

struct kbs_answer {
	int status; /* 0: no answer */
	/* Last segment of the error body's `type` ("PluginInternalError"); "" if absent. The
	 * status alone is meaningless: the real server answers 401 for nearly everything. */
	const char *type;
	const char *body; /* borrowed for the call, NUL-terminated */
	size_t body_len;
	uint32_t retry_after_ms;
	struct body *sent; /* the request's: body_move() it to send it again; NULL: no body */
};

struct kbs_request {
	const char *method;       /* static: GET POST DELETE */
	const char *path;         /* "/kbs/v0/resource/default/<uuid>/root"; copied */
	const char *content_type; /* static; NULL without body */
	struct body body;         /* taken, and wiped in the end; BODY_INIT: none */
	uint32_t deadline_ms;     /* 0: 10,000 */
	size_t max_answer;        /* 0: 256 KiB */
	bool reads_value;         /* an RvpsError means: no such value */
	const char *verb;         /* static, for metrics: resource-put, resource-delete, ... */
	/* Called with the answer before `done`. True: *req (with the same path) is the next
	 * request of the same op. NULL: no further request. */
	bool (*next)(struct kbs_request *req, const struct err *err, const struct kbs_answer *a);
};

/* err: the result of kbs_answer_check(). answer is never NULL. */
typedef void (*kbs_done_fn)(void *arg, const struct err *err, const struct kbs_answer *answer);

struct kbs_call; /* a request in flight */
struct kbs_transport;
struct kbs_transport_ops {
	/* Copies what it needs of req, may take its body, and begins an op in scope that ends
	 * with kbs_call_answer(). */
	void (*start)(struct kbs_transport *t, struct op_scope *scope, struct kbs_request *req,
		struct kbs_call *call);
	/* The token was refused: use a new one for the next request. NULL: there are no tokens. */
	void (*renew)(struct kbs_transport *t);
	void (*free)(struct kbs_transport *t);
};
/* First member of each implementation's struct. */
struct kbs_transport {
	const struct kbs_transport_ops *ops;
	struct loop *loop;
	unsigned n_calls; /* in flight; 0 when it is freed */
	/* If set and false, no request is sent (err_set_lease_lost()): the lease's renew
	 * deadline has passed. */
	bool (*may_send)(void *arg);
	void *may_send_arg;
};

/* Counted as tec_trustee_requests_total{verb,code}. A request whose token is refused is repeated
 * once with a new token: Trustee's clock may have differed from ours when the token was made. */
struct op *kbs_transport_start(struct kbs_transport *t, struct op_scope *scope,
	struct kbs_request *take_req, kbs_done_fn done, void *arg);
void kbs_transport_free(struct kbs_transport *t); /* NULL is fine */

/* Called by implementations when the op of `start` has finished; sets answer->type. May free the
 * transport. */
void kbs_call_answer(struct kbs_call *call, const struct err *err, const struct kbs_answer *answer);

/* The last segment of an error body's `type`; "" if the body has none or it is not a plain word. */
#define KBS_TYPE_MAX 64
void kbs_answer_type(const char *body, size_t len, char out[KBS_TYPE_MAX]);

/*
 * Turn an answer other than 200 (or err) into a struct err, by `type` first: AdminAuthAccess and
 * AdminAuthInitialization are DENIED; ParsePolicyError and status 413 INVALID; RvpsError on a GET
 * of a value NOT_FOUND; everything else TRANSIENT, including a 200 with an HTML page and data that
 * is not HTTP. 0 for any other 200.
 */
int kbs_answer_check(const struct err *transport_err, const struct kbs_answer *answer,
	bool reads_value, struct err *err) MUST_CHECK;

#endif
