/* SPDX-License-Identifier: MIT */
/* Shared by kbsd.c (listener, routes, answers) and kbsd_admin.c (what the admin calls do) and
 * nobody else. */
#ifndef TEC_STANDALONE_KBSD_INTERNAL_H
#define TEC_STANDALONE_KBSD_INTERNAL_H

#include "tec/standalone/kbsauth.h"
#include "tec/standalone/kbsd.h"

#define KBSD_PREFIX          "/kbs/v0/"
#define KBSD_RESOURCE        KBSD_PREFIX "resource/"
#define KBSD_REFERENCE_VALUE KBSD_PREFIX "reference-value/"
#define KBSD_REGO            ".rego"

struct kbsd {
	struct httpd *httpd;
	struct kbsauth auth; /* its strings are the copies below */
	char *issuer, *audience;
	bool quirks;
	struct kbsstore *store; /* borrowed */
	void (*on_request)(void *arg, const struct kbsd_event *e);
	void *arg;
};

/* What an answer is about; the verb is static. */
struct kbsd_call {
	struct kbsd *k;
	struct httpd_req *req;
	const char *verb;
};

/* kbsd.c: both end the request. */
void kbsd_reply(const struct kbsd_call *c, const char *content_type, const void *body, size_t len);
/* status: the honest one. type: the last segment of the error's URL. */
void kbsd_refuse(const struct kbsd_call *c, int status, const char *type, const char *fmt, ...)
	PRINTF_LIKE(4, 5);

/* kbsd_admin.c: handlers of the routes. */
void kbsd_resource_put(struct httpd_req *req, void *arg);
void kbsd_resource_delete(struct httpd_req *req, void *arg);
void kbsd_values_put(struct httpd_req *req, void *arg);
void kbsd_value_get(struct httpd_req *req, void *arg);
void kbsd_attestation_policy_put(struct httpd_req *req, void *arg);
void kbsd_resource_policy_put(struct httpd_req *req, void *arg);
void kbsd_resource_policy_get(struct httpd_req *req, void *arg);

#endif
