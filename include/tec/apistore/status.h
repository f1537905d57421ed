/* SPDX-License-Identifier: MIT */
/*
 * Answers without an object: Kubernetes Status objects, with message, reason and details in the
 * words of kube-apiserver. The caller owns an answer (apistore_answer_fini).
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
	struct schema_texts warnings;  /* owned: for the client's user */
	struct apistore_listing *more; /* owned: what follows the body; NULL: nothing */
};
void apistore_answer_fini(struct apistore_answer *a); /* wipes */

struct apistore_answer apistore_status_object(int code, struct json_object *o); /* borrowed */
/* NotFound 404, AlreadyExists 409. */
struct apistore_answer apistore_status_absent(const struct apistore_target *t);
struct apistore_answer apistore_status_exists(const struct apistore_target *t);
/* Conflict 409. what: the resource, or the kind where kube-apiserver says that. */
struct apistore_answer apistore_status_conflict(
	const struct apistore_target *t, const char *what, const char *why);
/* Invalid 422: field is "metadata.finalizers"-like, problem "Forbidden", "Invalid value" or
 * "Required value". */
struct apistore_answer apistore_status_invalid(const struct apistore_target *t, const char *kind,
	const char *field, const char *problem, const char *why);
/* The same with all that is wrong. */
struct apistore_answer apistore_status_causes(
	const struct apistore_target *t, const char *kind, const struct schema_causes *causes);
/* Any other refusal, with neither object nor details. */
struct apistore_answer apistore_status_refusal(int code, const char *reason, const char *fmt, ...)
	PRINTF_LIKE(3, 4);
/* Timeout 504: a version that is not there yet. */
struct apistore_answer apistore_status_too_large(uint64_t wanted, uint64_t current);
/* 500, with the cause: what kube-apiserver says of an object that it cannot answer for. */
struct apistore_answer apistore_status_internal(const char *fmt, ...) PRINTF_LIKE(1, 2);
/* InternalError 500, or 507 when the disk is full: the database failed. */
struct apistore_answer apistore_status_storage(const struct err *err);
struct apistore_answer apistore_status_forbidden(
	const struct apistore_target *t, const char *fmt, ...) PRINTF_LIKE(2, 3);
/* Conflict 409 of an apply: the details are the causes alone. */
struct apistore_answer apistore_status_conflicts(
	const char *message, struct json_object *take_causes);
struct apistore_answer apistore_status_success(void);
struct apistore_answer apistore_status_deleted(const struct apistore_target *t, const char *uid);

#endif
