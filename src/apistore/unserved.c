/* SPDX-License-Identifier: MIT */
/* Each object is stored once more as being deleted and without its finalizers, whose controllers no
 * longer exist. */
#include "config.h"

#include "tec/apistore/unserved.h"

#include "tec/apistore/gc.h"
#include "tec/apistore/rights.h"
#include "tec/apistore/target.h"
#include "tec/base/json.h"
#include "tec/base/log.h"
#include "tec/base/mem.h"

#define DEFINITIONS "customresourcedefinitions.apiextensions.k8s.io"
#define BINDINGS    "rolebindings.rbac.authorization.k8s.io"

/* Is this the table of rows (apistore/rows.h)? They are not objects and must never be dropped: they
 * hold the keys of all nodes. */
static bool is_row(const char *resource)
{
	return strchr(resource, '/') != NULL;
}

static bool is_served(const struct apistore_objects *s, const char *resource)
{
	for (size_t i = 0; i < apistore_objects_schema(s)->n_kinds; i++) {
		const struct apistore_kind *k = &apistore_objects_schema(s)->kinds[i];
		cleanup_free char *qualified = apistore_target_qualify(k->resource, k->group);

		if (str_eq(qualified, resource))
			return true;
	}
	return false;
}

/* Collect namespace and name, each with its NUL. */
static bool note_name(void *arg, const struct apistore_version *v)
{
	struct strbuf *names = arg;

	strbuf_add(names, v->key.ns, strlen(v->key.ns) + 1);
	strbuf_add(names, v->key.name, strlen(v->key.name) + 1);
	return true;
}

/* Compare kinds only: the owner may have been deleted, and names say nothing here. */
static bool is_owned_by(struct json_object *o, const char *kind)
{
	struct json_object *owners = json_get_arr(o, "metadata/ownerReferences");

	for (size_t i = 0; i < json_len(owners); i++)
		if (str_eq(json_get_str(json_at(owners, i), "kind"), kind))
			return true;
	return false;
}

/* Did the operator, or tecctl for it, create the object? The log does not count these. */
static bool is_ours(
	const struct apistore_objects *s, const struct apistore_key *key, struct json_object *o)
{
	static const char *const owners[][2] = {{"services", "TrustedExecutionCluster"},
		{"jobs.batch", "ApprovedImage"}, {"pods", "Job"}};

	for (size_t i = 0; i < ARRAY_LEN(owners); i++)
		if (str_eq(key->resource, owners[i][0]))
			return is_owned_by(o, owners[i][1]);
	return str_eq(key->resource, DEFINITIONS) && is_served(s, key->name);
}

/* Is this a RoleBinding to an existing role, which must stay? */
static bool is_served_binding(const struct apistore_key *key, struct json_object *o)
{
	return str_eq(key->resource, BINDINGS) &&
	       apistore_rights_is_role(
		       json_get_str(o, "roleRef/kind"), json_get_str(o, "roleRef/name"));
}

/* Delete one object. *n counts those that users created. */
static int drop(
	struct apistore_objects *s, const struct apistore_key *key, size_t *n, struct err *err)
{
	struct json_object *o = apistore_objects_get(s, key);

	if (!o)
		return apistore_objects_trouble(s, err) ? -1 : 0;
	if (is_served_binding(key, o)) {
		json_object_put(o);
		return 0;
	}
	*n += !is_ours(s, key, o);
	json_drop(apistore_objects_meta(o), "finalizers");
	apistore_gc_mark(
		o, APISTORE_ORPHAN); /* keeps what it owns, such as a Machine and its key */
	json_object_put(apistore_objects_put(s, key, o));
	return apistore_objects_trouble(s, err) ? -1 : 0;
}

/* Collect the names first, because dropping writes to the table that the scan reads. */
static int drop_all(struct apistore_objects *s, const char *resource, size_t *n, struct err *err)
{
	cleanup_strbuf struct strbuf names = STRBUF_INIT;
	const struct apistore_scan scan = {.resource = resource, .only_keys = true};

	if (apistore_db_scan(apistore_objects_db(s), &scan, note_name, &names, err) < 0)
		return -1;
	for (const char *at = names.data, *end = at + names.len; at < end;) {
		const char *ns = at, *name = ns + strlen(ns) + 1;
		const struct apistore_key key = {resource, ns, name};

		if (drop(s, &key, n, err) < 0)
			return -1;
		at = name + strlen(name) + 1;
	}
	return 0;
}

/* Walk all resources that have objects. RoleBindings are served, but those to former roles must
 * go. */
int apistore_unserved_drop(struct apistore_objects *s, struct err *err)
{
	cleanup_strbuf struct strbuf dropped = STRBUF_INIT;
	cleanup_free char *resource = NULL;
	size_t total = 0;
	int rc;

	while ((rc = apistore_db_next_resource(
			apistore_objects_db(s), resource ? resource : "", &resource, err)) > 0) {
		size_t n = 0;

		if (is_row(resource) || (is_served(s, resource) && !str_eq(resource, BINDINGS)))
			continue;
		if (drop_all(s, resource, &n, err) < 0)
			return err_wrap(err, "%s, which are no longer served", resource);
		if (n > 0)
			strbuf_addf(&dropped, "%s%zu %s", total ? ", " : "", n, resource);
		total += n;
	}
	if (rc == 0 && total > 0)
		log_warn(NULL, "deleted objects of kinds that are no longer served",
			"count=%zu resource=%s", total, log_esc(strbuf_str(&dropped)));
	return rc;
}
