/* SPDX-License-Identifier: MIT */
/*
 * Answers, and Status objects with message, reason and details as kube-apiserver words them. The
 * caller owns an answer (apistore_answer_fini).
 */
#ifndef TEC_APISTORE_STATUS_H
#define TEC_APISTORE_STATUS_H

#include <json-c/json.h>

#include "tec/apistore/target.h"
#include "tec/base/err.h"
#include "tec/schema/cause.h"

struct apistore_listing;

struct apistore_answer {
	int code;
	char *body; /* owned; may hold Secret data */
	size_t len;
	struct schema_texts warnings;  /* owned: to be sent as Warning headers */
	struct apistore_listing *more; /* owned: the rest of a list after body; NULL: nothing */
};
/* What kube-apiserver calls the object of refused options. */
extern const struct apistore_target apistore_status_options;

void apistore_answer_fini(struct apistore_answer *a); /* wipes the body */
/* Append the rest of a list to the body. -1: the database failed. */
int apistore_answer_whole(struct apistore_answer *a, struct err *err) MUST_CHECK;

struct apistore_answer apistore_status_object(int code, struct json_object *o); /* borrowed */
/* The path is not an API path, 404 in plain text, or apistore_target_parse() failed otherwise. */
struct apistore_answer apistore_status_no_target(const struct err *err);
/* NotFound 404, AlreadyExists 409. */
struct apistore_answer apistore_status_absent(const struct apistore_target *t);
struct apistore_answer apistore_status_exists(const struct apistore_target *t);
/* Conflict 409. what: the resource, or the kind where kube-apiserver names it instead. */
struct apistore_answer apistore_status_conflict(
	const struct apistore_target *t, const char *what, const char *why);
/* Invalid 422 with one cause. field: a path such as "metadata.finalizers". problem: "Forbidden",
 * "Invalid value", "Required value" and the like. */
struct apistore_answer apistore_status_invalid(const struct apistore_target *t, const char *kind,
	const char *field, const char *problem, const char *why);
/* The same with several causes. */
struct apistore_answer apistore_status_causes(
	const struct apistore_target *t, const char *kind, const struct schema_causes *causes);
/* Forbidden 403: the user lacks the right. resource "": the target is a non-resource path. */
struct apistore_answer apistore_status_denied(const struct apistore_target *t, const char *message);
/* Any other error, without details of an object; the reason follows from the code. */
struct apistore_answer apistore_status_refusal(int code, const char *fmt, ...) PRINTF_LIKE(2, 3);
struct apistore_answer apistore_status_vrefusal(int code, const char *fmt, va_list ap);
/* Timeout 504: the client asked for a resourceVersion that does not exist yet. */
struct apistore_answer apistore_status_too_large(uint64_t wanted, uint64_t current);
/* The database failed: InternalError 500, or 507 if the disk is full. */
struct apistore_answer apistore_status_storage(const struct err *err);
/* Conflict 409 of an apply, with only the causes as details. */
struct apistore_answer apistore_status_conflicts(
	const char *message, struct json_object *take_causes);
struct apistore_answer apistore_status_success(const char *message); /* NULL: none */
struct apistore_answer apistore_status_deleted(const struct apistore_target *t, const char *uid);

#endif
