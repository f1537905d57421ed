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
#define WIDE(n)                                                                                    \
	{                                                                                          \
		.name = n, .type = "string", .format = "", .description = n ".", .priority = 1     \
	}
#define AGE COLUMN("Age")

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

/* ---- kinds: those without a function here are filled in by a file of their own */

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
	KIND("", "Secret", secret, fill_secret),
	KIND("", "ServiceAccount", account, fill_account),
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
