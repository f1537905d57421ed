/* SPDX-License-Identifier: MIT */
/*
 * The columns of the built-in kinds and what stands in them, as kubectl get -o wide shows it; a
 * client leaves out those with a priority. Kinds without an entry have Name and Created At.
 */
#include "config.h"

#include <string.h>

#include "table_internal.h"
#include "tec/base/json.h"
#include "tec/base/mem.h"
#include "tec/schema/table.h"

#define NAME                                                                                       \
	{                                                                                          \
		.name = "Name", .type = "string", .format = "name", .description = "Its name."     \
	}
#define COLUMN(n)                                                                                  \
	{                                                                                          \
		.name = n, .type = "string", .format = "", .description = n "."                    \
	}
#define NUMBER(n)                                                                                  \
	{                                                                                          \
		.name = n, .type = "integer", .format = "", .description = n "."                   \
	}
#define WIDE(n)                                                                                    \
	{                                                                                          \
		.name = n, .type = "string", .format = "", .description = n ".", .priority = 1     \
	}
#define AGE        COLUMN("Age")
#define CONTAINERS WIDE("Containers"), WIDE("Images"), WIDE("Selector")

static void push_name(struct table_row *r)
{
	table_member(r, "metadata/name", "");
}

static void push_age(struct table_row *r)
{
	table_age(r, "metadata/creationTimestamp");
}

static size_t members(struct json_object *o, const char *path)
{
	struct json_object *v = json_get_obj(o, path);

	return v ? (size_t)json_object_object_length(v) : 0;
}

/* A member of every element of a list, joined. */
static char *joined(struct json_object *list, const char *member, const char *between)
{
	struct strbuf b = STRBUF_INIT;

	for (size_t i = 0; i < table_length(list); i++) {
		struct json_object *e = json_object_array_get_idx(list, i);
		const char *s = member ? json_get_str(e, member) : json_object_get_string(e);

		strbuf_addf(&b, "%s%s", i ? between : "", s ? s : "");
	}
	return strbuf_steal(&b);
}

static void push_containers(struct table_row *r, const char *selector)
{
	struct json_object *c = json_get_arr(r->o, "spec/template/spec/containers");

	table_take(r, joined(c, "name", ","));
	table_take(r, joined(c, "image", ","));
	table_parts_selector(r, selector);
}

/* ---- kinds: those without a function here are filled in by a file of their own */

static const struct schema_column pod[] = {NAME, COLUMN("Ready"), COLUMN("Status"),
	COLUMN("Restarts"), AGE, WIDE("IP"), WIDE("Node"), WIDE("Nominated Node"),
	WIDE("Readiness Gates")};

static bool condition(struct json_object *o, const char *type)
{
	struct json_object *a = json_get_arr(o, "status/conditions");

	for (size_t i = 0; i < table_length(a); i++) {
		struct json_object *c = json_object_array_get_idx(a, i);

		if (str_eq(json_get_str(c, "type"), type))
			return str_eq(json_get_str(c, "status"), "True");
	}
	return false;
}

static const char *job_status(struct json_object *o)
{
	return condition(o, "Complete")                            ? "Complete"
	       : condition(o, "Failed")                            ? "Failed"
	       : json_get(o, "metadata/deletionTimestamp") != NULL ? "Terminating"
	       : condition(o, "Suspended")                         ? "Suspended"
	       : condition(o, "FailureTarget")                     ? "FailureTarget"
	       : condition(o, "SuccessCriteriaMet")                ? "SuccessCriteriaMet"
								   : "Running";
}

static const struct schema_column job[] = {
	NAME, COLUMN("Status"), COLUMN("Completions"), COLUMN("Duration"), AGE, CONTAINERS};
static void fill_job(struct table_row *r)
{
	int64_t start = table_seconds(json_get_str(r->o, "status/startTime")),
		end = table_seconds(json_get_str(r->o, "status/completionTime"));
	long long done = json_get_int(r->o, "status/succeeded", 0),
		  side = json_get_int(r->o, "spec/parallelism", 0);
	char duration[SCHEMA_AGE_LEN] = "";

	push_name(r);
	table_text(r, job_status(r->o));
	if (json_get(r->o, "spec/completions"))
		table_take(r, xasprintf("%lld/%lld", done,
				      (long long)json_get_int(r->o, "spec/completions", 0)));
	else if (side > 1)
		table_take(r, xasprintf("%lld/1 of %lld", done, side));
	else
		table_take(r, xasprintf("%lld/1", done));
	if (start >= 0)
		schema_age_text((end >= 0 ? end : r->now_s) - start, duration);
	table_text(r, duration);
	push_age(r);
	push_containers(r, "spec/selector");
}

static const struct schema_column configmap[] = {NAME, COLUMN("Data"), AGE};
static void fill_configmap(struct table_row *r)
{
	push_name(r);
	table_int(r, (int64_t)(members(r->o, "data") + members(r->o, "binaryData")));
	push_age(r);
}

static const struct schema_column secret[] = {NAME, COLUMN("Type"), COLUMN("Data"), AGE};
static void fill_secret(struct table_row *r)
{
	push_name(r);
	table_member(r, "type", "");
	table_int(r, (int64_t)members(r->o, "data"));
	push_age(r);
}

static const struct schema_column event[] = {COLUMN("Last Seen"), COLUMN("Type"), COLUMN("Reason"),
	COLUMN("Object"), WIDE("Subobject"), WIDE("Source"), COLUMN("Message"), WIDE("First Seen"),
	WIDE("Count"),
	{.name = "Name",
		.type = "string",
		.format = "name",
		.description = "Its name.",
		.priority = 1}};

static const struct schema_column namespace[] = {NAME, COLUMN("Status"), AGE};
static void fill_namespace(struct table_row *r)
{
	push_name(r);
	table_member(r, "status/phase", "");
	push_age(r);
}

static const struct schema_column account[] = {NAME, COLUMN("Secrets"), AGE};
static void fill_account(struct table_row *r)
{
	push_name(r);
	table_int(r, (int64_t)table_length(json_get_arr(r->o, "secrets")));
	push_age(r);
}

static void push_subjects(struct table_row *r, const char *kind)
{
	struct json_object *a = json_get_arr(r->o, "subjects");
	struct strbuf b = STRBUF_INIT;

	for (size_t i = 0; i < table_length(a); i++) {
		struct json_object *e = json_object_array_get_idx(a, i);
		const char *ns = json_get_str(e, "namespace"), *name = json_get_str(e, "name");

		if (!str_eq(json_get_str(e, "kind"), kind))
			continue;
		strbuf_adds(&b, b.len ? ", " : "");
		if (str_eq(kind, "ServiceAccount"))
			strbuf_addf(&b, "%s/", ns ? ns : "");
		strbuf_adds(&b, name ? name : "");
	}
	table_take(r, strbuf_steal(&b));
}

static const struct schema_column rolebinding[] = {
	NAME, COLUMN("Role"), AGE, WIDE("Users"), WIDE("Groups"), WIDE("ServiceAccounts")};
static void fill_rolebinding(struct table_row *r)
{
	const char *kind = json_get_str(r->o, "roleRef/kind"),
		   *name = json_get_str(r->o, "roleRef/name");

	push_name(r);
	table_take(r, xasprintf("%s/%s", kind ? kind : "", name ? name : ""));
	push_age(r);
	push_subjects(r, "User");
	push_subjects(r, "Group");
	push_subjects(r, "ServiceAccount");
}

static const struct schema_column plain[] = {NAME,
	{.name = "Created At", .type = "date", .format = "", .description = "When it was made."}};
static void fill_plain(struct table_row *r)
{
	push_name(r);
	table_member(r, "metadata/creationTimestamp", "");
}

#define KIND(g, k, c, f)                                                                           \
	{                                                                                          \
		g, k, c, ARRAY_LEN(c), f                                                           \
	}
static const struct table_kind kinds[] = {
	KIND("", "ConfigMap", configmap, fill_configmap),
	KIND("", "Event", event, table_fill_event),
	KIND("", "Namespace", namespace, fill_namespace),
	KIND("", "Pod", pod, table_fill_pod),
	KIND("", "Secret", secret, fill_secret),
	KIND("", "ServiceAccount", account, fill_account),
	KIND("batch", "Job", job, fill_job),
	KIND("events.k8s.io", "Event", event, table_fill_event),
	KIND("rbac.authorization.k8s.io", "RoleBinding", rolebinding, fill_rolebinding),
};

const struct table_kind *table_builtin(const char *group, const char *kind)
{
	static const struct table_kind other = KIND("", "", plain, fill_plain);

	for (size_t i = 0; i < ARRAY_LEN(kinds); i++)
		if (str_eq(kinds[i].group, group) && str_eq(kinds[i].kind, kind))
			return &kinds[i];
	return &other;
}
