/* SPDX-License-Identifier: MIT */
/* Builds Status objects. The texts are kube-apiserver's: clients and their users know them. */
#include "config.h"

#include "tec/apireq/status.h"

#include <inttypes.h>

#include "tec/base/json.h"

const struct apireq_request_info apireq_status_options = {
	.group = (char *)"meta.k8s.io", .name = (char *)""};

struct apireq_answer apireq_status_no_target(const struct err *err)
{
	if (err->kind != ERR_NOT_FOUND)
		return apireq_status_refusal(400, "%s", err->text);
	return (struct apireq_answer){
		.code = 404, .body = xstrdup(err->text), .len = strlen(err->text)};
}

struct apireq_answer apireq_status_object(int code, struct json_object *o)
{
	struct apireq_answer a = {.code = code, .body = json_text(o)};

	a.len = strlen(a.body);
	return a;
}

/* Build a Status. reason, message and details may be NULL. Only failures have a code, as in
 * kube-apiserver. */
static struct apireq_answer status(
	int code, const char *reason, const char *message, struct json_object *take_details)
{
	cleanup_json struct json_object *o = json_obj();

	json_add_str(o, "kind", "Status");
	json_add_str(o, "apiVersion", "v1");
	json_add(o, "metadata", json_obj());
	json_add_str(o, "status", code < 300 ? "Success" : "Failure");
	json_add_str(o, "message", message);
	json_add_str(o, "reason", reason);
	if (take_details)
		json_add(o, "details", take_details);
	if (code >= 300)
		json_add_int(o, "code", code);
	return apireq_status_object(code, o);
}

/* Return details with the name and group of the target. kube-apiserver calls the resource "kind"
 * here. */
static struct json_object *details(const struct apireq_request_info *t, const char *kind)
{
	struct json_object *d = json_add_str(json_obj(), "name", t->name[0] ? t->name : NULL);

	json_add_str(d, "group", t->group[0] ? t->group : NULL);
	return json_add_str(d, "kind", kind);
}

/* Answer with a Status whose message is about one object: RESOURCE "NAME" AFTER. */
static struct apireq_answer about(
	const struct apireq_request_info *t, int code, const char *reason, const char *after)
{
	cleanup_free char *resource = apireq_request_info_qualify(t->resource, t->group);
	cleanup_free char *message = xasprintf("%s \"%s\" %s", resource, t->name, after);

	return status(code, reason, message, details(t, t->resource));
}

struct apireq_answer apireq_status_absent(const struct apireq_request_info *t)
{
	return about(t, 404, "NotFound", "not found");
}

struct apireq_answer apireq_status_exists(const struct apireq_request_info *t)
{
	return about(t, 409, "AlreadyExists", "already exists");
}

struct apireq_answer apireq_status_conflict(
	const struct apireq_request_info *t, const char *what, const char *why)
{
	cleanup_free char *name = apireq_request_info_qualify(what, t->group);
	cleanup_free char *message =
		xasprintf("Operation cannot be fulfilled on %s \"%s\": %s", name, t->name, why);

	return status(409, "Conflict", message, details(t, what));
}

/* The reason of the cause follows from the problem: both come from the same error type of
 * kube-apiserver. */
struct apireq_answer apireq_status_invalid(const struct apireq_request_info *t, const char *kind,
	const char *field, const char *problem, const char *why)
{
	cleanup_free char *what = apireq_request_info_qualify(kind, t->group);
	cleanup_free char *text = xasprintf("%s%s%s", problem, *why ? ": " : "", why);
	cleanup_free char *message =
		xasprintf("%s \"%s\" is invalid: %s: %s", what, t->name, field, text);
	struct json_object *cause = json_add_str(json_obj(), "reason",
		str_eq(problem, "Forbidden")           ? "FieldValueForbidden"
		: str_eq(problem, "Required value")    ? "FieldValueRequired"
		: str_eq(problem, "Too long")          ? "FieldValueTooLong"
		: str_eq(problem, "Unsupported value") ? "FieldValueNotSupported"
						       : "FieldValueInvalid");

	json_add_str(json_add_str(cause, "message", text), "field", field);
	return status(422, "Invalid", message,
		json_add(details(t, kind), "causes", json_push(json_arr(), cause)));
}

struct apireq_answer apireq_status_causes(
	const struct apireq_request_info *t, const char *kind, const struct schema_causes *causes)
{
	cleanup_free char *what = apireq_request_info_qualify(kind, t->group),
			  *text = schema_causes_text(causes);
	cleanup_free char *message = xasprintf("%s \"%s\" is invalid: %s", what, t->name, text);

	return status(422, "Invalid", message,
		json_add(details(t, kind), "causes", schema_causes_json(causes)));
}

/* The reason follows from the code, as in kube-apiserver; 500 has none here. */
static const char *reason_of(int code)
{
	static const struct {
		int code;
		const char *reason;
	} reasons[] = {{400, "BadRequest"}, {401, "Unauthorized"}, {403, "Forbidden"},
		{404, "NotFound"}, {405, "MethodNotAllowed"}, {406, "NotAcceptable"},
		{408, "Timeout"}, {409, "Conflict"}, {410, "Expired"},
		{413, "RequestEntityTooLarge"}, {415, "UnsupportedMediaType"}, {422, "Invalid"},
		{429, "TooManyRequests"}, {500, NULL}, {503, "ServiceUnavailable"}};

	for (size_t i = 0; i < ARRAY_LEN(reasons); i++)
		if (reasons[i].code == code)
			return reasons[i].reason;
	return "";
}

/* Errors 404 and 405 carry empty details, as kube-apiserver's do. */
struct apireq_answer apireq_status_vrefusal(int code, const char *fmt, va_list ap)
{
	cleanup_strbuf struct strbuf message = STRBUF_INIT;

	strbuf_vaddf(&message, fmt, ap);
	return status(code, reason_of(code), strbuf_str(&message),
		code == 404 || code == 405 ? json_obj() : NULL);
}

struct apireq_answer apireq_status_refusal(int code, const char *fmt, ...)
{
	struct apireq_answer a;
	va_list ap;

	va_start(ap, fmt);
	a = apireq_status_vrefusal(code, fmt, ap);
	va_end(ap);
	return a;
}

struct apireq_answer apireq_status_denied(const struct apireq_request_info *t, const char *message)
{
	return status(403, "Forbidden", message, details(t, t->resource[0] ? t->resource : NULL));
}

/* client-go's reflector recognizes the cause by its reason and lists again. */
struct apireq_answer apireq_status_too_large(uint64_t wanted, uint64_t current)
{
	cleanup_free char *message =
		xasprintf("Timeout: Too large resource version: %" PRIu64 ", current: %" PRIu64,
			wanted, current);
	struct json_object *cause = json_add_str(json_obj(), "reason", "ResourceVersionTooLarge");

	json_add_str(cause, "message", "Too large resource version");
	return status(504, "Timeout", message,
		json_add_int(json_add(json_obj(), "causes", json_push(json_arr(), cause)),
			"retryAfterSeconds", 1));
}

/* The reason InsufficientStorage is ours: kube-apiserver has no answer for a full disk. */
struct apireq_answer apireq_status_storage(const struct err *err)
{
	cleanup_free char *message = xasprintf("Internal error occurred: %s", err->text);

	return status(err->http == 507 ? 507 : 500,
		err->http == 507 ? "InsufficientStorage" : "InternalError", message, NULL);
}

struct apireq_answer apireq_status_conflicts(const char *message, struct json_object *take_causes)
{
	return status(409, "Conflict", message, json_add(json_obj(), "causes", take_causes));
}

struct apireq_answer apireq_status_success(const char *message)
{
	return status(200, NULL, message, NULL);
}

struct apireq_answer apireq_status_deleted(const struct apireq_request_info *t, const char *uid)
{
	return status(200, NULL, NULL, json_add_str(details(t, t->resource), "uid", uid));
}
