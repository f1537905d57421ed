/* SPDX-License-Identifier: MIT */
/*
 * Reads the options of a write. CreateOptions, UpdateOptions and PatchOptions come from the query,
 * DeleteOptions from the body, or from the query where the body has none. All errors are reported
 * at once.
 */
#include "config.h"

#include "options.h"

#include <stdio.h>
#include <string.h>

#include "tec/base/json.h"
#include "tec/base/mem.h"

/* ---- field manager */

/* Check the name of a field manager, which is stored in each entry of managedFields. */
static void check_manager(const char *manager, struct schema_causes *causes)
{
	size_t at = 0;

	if (strlen(manager) > APIREQ_MANAGER_MAX)
		schema_cause_add(causes, SCHEMA_TOO_LONG, "fieldManager", NULL,
			"must have at most %d bytes", APIREQ_MANAGER_MAX);
	while ((unsigned char)manager[at] >= ' ' && manager[at] != 0x7f)
		at++;
	if (manager[at])
		schema_cause_add_text(causes, SCHEMA_INVALID, "fieldManager", manager,
			"must not contain control characters");
}

/* Choose the field manager as kube-apiserver does: from the query, or else the product in
 * User-Agent. */
static void read_manager(const struct apireq_request_info *t, const struct apireq_request *r,
	struct apireq_options *out, struct schema_causes *causes)
{
	cleanup_free char *param = apireq_request_info_param(t, "fieldManager");
	const char *agent = r->user_agent ? r->user_agent : "unknown";
	size_t n = 0;

	if (param && *param) {
		check_manager(param, causes);
		snprintf(out->manager, sizeof(out->manager), "%s", param);
		return;
	}
	for (; *agent && *agent != '/' && n < APIREQ_MANAGER_MAX; agent++)
		if (*agent >= ' ' && *agent < 0x7f)
			out->manager[n++] = *agent;
	if (n == 0)
		snprintf(out->manager, sizeof(out->manager), "unknown");
}

/* ---- options of several kinds */

/* Read dryRun: the list in the body, or else all such parameters of the query. */
static void read_dry(const struct apireq_request_info *t, struct json_object *body,
	struct apireq_options *out, struct schema_causes *causes)
{
	cleanup_json struct json_object *query = apireq_request_info_params(t, "dryRun");
	struct json_object *list = json_get_arr(body, "dryRun");
	size_t n;

	if (!list || json_len(list) == 0)
		list = query;
	n = json_len(list);
	out->dry = n > 0;
	for (size_t i = 0; i < n; i++) {
		struct json_object *v = json_at(list, i);

		if (json_object_is_type(v, json_type_string) &&
			str_eq(json_object_get_string(v), "All"))
			continue;
		schema_cause_add(
			causes, SCHEMA_UNSUPPORTED, "dryRun", list, "supported values: \"All\"");
		return;
	}
}

/* Read fieldValidation. Its default is Warn for clients that can show warnings, and else Ignore. */
static void read_fields(const struct apireq_request_info *t, const struct apireq_request *r,
	struct apireq_options *out, struct schema_causes *causes)
{
	static const char *const names[] = {[APIREQ_FIELDS_IGNORE] = "Ignore",
		[APIREQ_FIELDS_WARN] = "Warn",
		[APIREQ_FIELDS_STRICT] = "Strict"};
	cleanup_free char *param = apireq_request_info_param(t, "fieldValidation");

	out->fields = r->warns ? APIREQ_FIELDS_WARN : APIREQ_FIELDS_IGNORE;
	if (!param || !*param)
		return;
	for (size_t i = 0; i < ARRAY_LEN(names); i++)
		if (str_eq(param, names[i])) {
			out->fields = (enum apireq_fields)i;
			return;
		}
	schema_cause_add_text(causes, SCHEMA_UNSUPPORTED, "fieldValidation", param,
		"supported values: \"\", \"Ignore\", \"Strict\", \"Warn\"");
}

/* ---- options of deletions */

/* Check the types of the members of DeleteOptions that are used, and gracePeriodSeconds in the query.
 * Its value is not used: everything is deleted at once. */
static int check_delete(const struct apireq_request_info *t, struct json_object *body,
	struct apireq_answer *refused)
{
	static const struct {
		const char *member;
		enum json_type type;
	} members[] = {{"gracePeriodSeconds", json_type_int},
		{"orphanDependents", json_type_boolean}, {"propagationPolicy", json_type_string},
		{"dryRun", json_type_array}, {"preconditions", json_type_object}};
	cleanup_free char *grace = apireq_request_info_param(t, "gracePeriodSeconds");
	const char *digits = grace && (*grace == '-' || *grace == '+') ? grace + 1 : grace;

	for (size_t i = 0; i < ARRAY_LEN(members); i++) {
		struct json_object *v = json_get(body, members[i].member);

		if (!v || json_object_is_type(v, members[i].type))
			continue;
		*refused = apireq_status_refusal(400, "%s must be of type %s, not %s",
			members[i].member, json_type_to_name(members[i].type),
			json_type_to_name(json_object_get_type(v)));
		return -1;
	}
	if (!digits || (*digits && strspn(digits, "0123456789") == strlen(digits)))
		return 0;
	*refused = apireq_status_refusal(400, "gracePeriodSeconds must be a whole number");
	return -1;
}

/* Read propagationPolicy or its deprecated form orphanDependents, from the body or the query. "nil" in
 * the message is what kube-apiserver lists as well. */
static void read_policy(const struct apireq_request_info *t, struct json_object *body,
	struct apireq_options *out, struct schema_causes *causes)
{
	static const char *const names[] = {[STORE_BACKGROUND] = "Background",
		[STORE_FOREGROUND] = "Foreground",
		[STORE_ORPHAN] = "Orphan"};
	cleanup_free char *param = apireq_request_info_param(t, "propagationPolicy"),
			  *old = apireq_request_info_param(t, "orphanDependents");
	const char *given = json_get_str(body, "propagationPolicy"),
		   *policy = given ? given : param;
	bool in_body = json_get(body, "orphanDependents") != NULL,
	     orphan = in_body ? json_get_bool(body, "orphanDependents", false)
			      : apireq_request_info_flag(t, "orphanDependents");

	if (policy && (in_body || old))
		schema_cause_add_text(causes, SCHEMA_INVALID, "propagationPolicy", policy,
			"must not be set together with orphanDependents");
	if (!policy) {
		if (in_body || old)
			out->policy = orphan ? STORE_ORPHAN : STORE_BACKGROUND;
		return;
	}
	for (size_t i = STORE_BACKGROUND; i < ARRAY_LEN(names); i++)
		if (str_eq(policy, names[i])) {
			out->policy = (enum store_policy)i;
			return;
		}
	schema_cause_add_text(causes, SCHEMA_UNSUPPORTED, "propagationPolicy", policy,
		"supported values: \"Foreground\", \"Background\", \"Orphan\", \"nil\"");
}

/* The field manager of a deletion is read but not checked: kube-apiserver ignores it there. */
int apireq_options_read(const struct apireq_request_info *t, const struct apireq_request *r,
	struct json_object *body, struct apireq_options *out, struct apireq_answer *refused)
{
	cleanup_schema_causes struct schema_causes causes = {NULL, 0, 0}, ignored = {NULL, 0, 0};
	cleanup_free char *force = apireq_request_info_param(t, "force");
	bool is_delete = str_eq(r->method, "DELETE"), is_patch = str_eq(r->method, "PATCH");

	if (is_delete && check_delete(t, body, refused) < 0)
		return -1;
	if (is_delete)
		read_policy(t, body, out, &causes);
	if (is_patch && force && !(r->content_type && strstr(r->content_type, "apply-patch")))
		schema_cause_add(&causes, SCHEMA_FORBIDDEN, "force", NULL,
			"may not be specified for non-apply patch");
	read_manager(t, r, out, is_delete ? &ignored : &causes);
	read_dry(t, is_delete ? body : NULL, out, &causes);
	if (!is_delete)
		read_fields(t, r, out, &causes);
	if (causes.n == 0)
		return 0;
	*refused = apireq_status_causes(&apireq_status_options,
		is_delete                   ? "DeleteOptions"
		: is_patch                  ? "PatchOptions"
		: str_eq(r->method, "POST") ? "CreateOptions"
					    : "UpdateOptions",
		&causes);
	return -1;
}
