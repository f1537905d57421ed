/* SPDX-License-Identifier: MIT */
/*
 * Answers, and Status objects with message, reason and details as kube-apiserver words them. The
 * caller owns an answer (apireq_answer_fini).
 */
#ifndef TEC_APIREQ_STATUS_H
#define TEC_APIREQ_STATUS_H

#include <json-c/json.h>

#include "tec/apireq/request_info.h"
#include "tec/base/err.h"
#include "tec/schema/cause.h"

struct apireq_listing;

struct apireq_answer {
	int code;
	char *body; /* owned; may hold Secret data */
	size_t len;
	struct schema_texts warnings; /* owned: to be sent as Warning headers */
	struct apireq_listing *more;  /* owned: the rest of a list after body; NULL: nothing */
};
/* What kube-apiserver calls the object of refused options. */
extern const struct apireq_request_info apireq_status_options;

void apireq_answer_fini(struct apireq_answer *a); /* wipes the body */
/* Append the rest of a list to the body. -1: the database failed. */
int apireq_answer_whole(struct apireq_answer *a, struct err *err) MUST_CHECK;

struct apireq_answer apireq_status_object(int code, struct json_object *o); /* borrowed */
/* The path is not an API path, 404 in plain text, or apireq_request_info_parse() failed otherwise. */
struct apireq_answer apireq_status_no_target(const struct err *err);
/* NotFound 404, AlreadyExists 409. */
struct apireq_answer apireq_status_absent(const struct apireq_request_info *t);
struct apireq_answer apireq_status_exists(const struct apireq_request_info *t);
/* Conflict 409. what: the resource, or the kind where kube-apiserver names it instead. */
struct apireq_answer apireq_status_conflict(
	const struct apireq_request_info *t, const char *what, const char *why);
/* Invalid 422 with one cause. field: a path such as "metadata.finalizers". problem: "Forbidden",
 * "Invalid value", "Required value" and the like. */
struct apireq_answer apireq_status_invalid(const struct apireq_request_info *t, const char *kind,
	const char *field, const char *problem, const char *why);
/* The same with several causes. */
struct apireq_answer apireq_status_causes(
	const struct apireq_request_info *t, const char *kind, const struct schema_causes *causes);
/* Forbidden 403: the user lacks the right. resource "": the target is a non-resource path. */
struct apireq_answer apireq_status_denied(const struct apireq_request_info *t, const char *message);
/* Any other error, without details of an object; the reason follows from the code. */
struct apireq_answer apireq_status_refusal(int code, const char *fmt, ...) PRINTF_LIKE(2, 3);
struct apireq_answer apireq_status_vrefusal(int code, const char *fmt, va_list ap);
/* Timeout 504: the client asked for a resourceVersion that does not exist yet. */
struct apireq_answer apireq_status_too_large(uint64_t wanted, uint64_t current);
/* The database failed: InternalError 500, or 507 if the disk is full. */
struct apireq_answer apireq_status_storage(const struct err *err);
/* Conflict 409 of an apply, with only the causes as details. */
struct apireq_answer apireq_status_conflicts(const char *message, struct json_object *take_causes);
struct apireq_answer apireq_status_success(const char *message); /* NULL: none */
struct apireq_answer apireq_status_deleted(const struct apireq_request_info *t, const char *uid);

#endif
