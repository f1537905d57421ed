/* SPDX-License-Identifier: MIT */
/*
 * The seam to one Trustee's admin API (trustee-protocol.md section 4), of the same shape as
 * k8s/transport.h. Two makers: HTTPS (kbs/client) and fake (tests/fake/kbs.c). op rules
 * (loop/op.h) hold for every maker. Authentication is the maker's business: no caller sees a token.
 */
#ifndef TEC_KBS_TRANSPORT_H
#define TEC_KBS_TRANSPORT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "tec/base/err.h"
#include "tec/loop/op.h"

struct kbs_request {
	const char *method;       /* GET POST DELETE */
	const char *path;         /* "/kbs/v0/resource/default/<uuid>/root" */
	const char *content_type; /* NULL without body */
	const void *body;         /* copied; the copy is wiped */
	size_t body_len;
	uint32_t deadline_ms; /* 0: 10,000 */
	size_t max_answer;    /* 0: 256 KiB */
	const char
		*verb; /* static, for metrics: resource-put, resource-delete, refvalue-put, ... */
};

struct kbs_answer {
	int status;
	/* Last segment of the error body's `type` ("PluginInternalError"); "" when there is none.
	 * The status alone means nothing: the real server answers 401 for nearly everything. */
	const char *type;
	const char *body; /* borrowed for the call, NUL-terminated */
	size_t body_len;
	uint32_t retry_after_ms;
};

typedef void (*kbs_answer_fn)(void *arg, const struct err *err, const struct kbs_answer *answer);

struct kbs_transport;
struct kbs_transport_ops {
	struct op *(*start)(struct kbs_transport *t, struct op_scope *scope,
		const struct kbs_request *req, kbs_answer_fn done, void *arg);
	void (*free)(struct kbs_transport *t);
};
/* First member of every maker's struct. */
struct kbs_transport {
	const struct kbs_transport_ops *ops;
	struct loop *loop;
	/* Every request is refused (ERR_CONFLICT, nothing is sent) while this is set and returns
	 * false: the lease's renew deadline. */
	bool (*may_send)(void *arg);
	void *may_send_arg;
};

/* Checks may_send, counts (tec_trustee_requests_total{verb,code}), then asks the maker. req is
 * copied as needed. */
struct op *kbs_transport_start(struct kbs_transport *t, struct op_scope *scope,
	const struct kbs_request *req, kbs_answer_fn done, void *arg);
void kbs_transport_free(struct kbs_transport *t); /* NULL is fine */

/* For makers: the last segment of an error body's `type`; "" when the body has none, or one that is
 * no plain word. */
#define KBS_TYPE_MAX 64
void kbs_answer_type(const char *body, size_t len, char out[KBS_TYPE_MAX]);

/*
 * Turns an answer that is no 200 (or err) into a struct err, by `type` first: AdminAuthAccess,
 * AdminAuthInitialization DENIED; ParsePolicyError and status 413 INVALID; RvpsError on a GET of a
 * value NOT_FOUND (the caller says so with reads_value); everything else TRANSIENT, a 200 with an
 * HTML page and what was no HTTP at all too. 0 for any other 200.
 */
int kbs_answer_check(const struct err *transport_err, const struct kbs_answer *answer,
	bool reads_value, struct err *err) MUST_CHECK;

#endif
