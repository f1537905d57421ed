/* SPDX-License-Identifier: MIT */
/* Each object is stored once more as being deleted and without its finalizers, whose controllers no
 * longer exist. */
#include "config.h"

#include "tec/apireq/unserved.h"

#include "tec/store/gc.h"
#include "tec/apireq/rights.h"
#include "tec/apireq/request_info.h"
#include "tec/base/json.h"
#include "tec/base/log.h"
#include "tec/base/mem.h"

#define DEFINITIONS "customresourcedefinitions.apiextensions.k8s.io"
#define BINDINGS    "rolebindings.rbac.authorization.k8s.io"

static bool is_served(const struct store_objects *s, const char *resource)
{
	for (size_t i = 0; i < store_objects_schema(s)->n_kinds; i++) {
		const struct store_kind *k = &store_objects_schema(s)->kinds[i];
		cleanup_free char *qualified = apireq_request_info_qualify(k->resource, k->group);

		if (str_eq(qualified, resource))
			return true;
	}
	return false;
}

/* Did the operator, or tecctl for it, create the object? The log does not count these. Kinds of owners
 * are compared alone: the owner may have been deleted, and names say nothing here. */
static bool is_ours(
	const struct store_objects *s, const struct store_key *key, struct json_object *o)
{
	static const char *const kinds[][2] = {{"services", "TrustedExecutionCluster"},
		{"jobs.batch", "ApprovedImage"}, {"pods", "Job"}};
	struct json_object *owners = json_get_arr(o, "metadata/ownerReferences");

	for (size_t i = 0; i < ARRAY_LEN(kinds); i++)
		for (size_t k = 0; k < json_len(owners); k++)
			if (str_eq(key->resource, kinds[i][0]) &&
				str_eq(json_get_str(json_at(owners, k), "kind"), kinds[i][1]))
				return true;
	return str_eq(key->resource, DEFINITIONS) && is_served(s, key->name);
}

struct dropping {
	struct store_objects *s;
	size_t n; /* objects that users created */
	struct err *err;
};

/* Delete one object. A RoleBinding to an existing role stays. */
static void drop(void *arg, const struct store_key *key)
{
	struct dropping *d = arg;
	struct json_object *o = err_is_set(d->err) ? NULL : store_objects_get(d->s, key);

	if (o && str_eq(key->resource, BINDINGS) &&
		apireq_rights_is_role(
			json_get_str(o, "roleRef/kind"), json_get_str(o, "roleRef/name"))) {
		json_object_put(o);
		return;
	}
	if (o) {
		d->n += !is_ours(d->s, key, o);
		json_drop(store_objects_meta(o), "finalizers");
		/* Keep what it owns, such as a Machine and its key. */
		store_gc_mark(o, STORE_ORPHAN);
		json_object_put(store_objects_put(d->s, key, o));
	}
	if (!err_is_set(d->err))
		(void)store_objects_trouble(d->s, d->err);
}

/* Walk all resources that have objects. RoleBindings are served, but those to former roles must
 * go. */
int apireq_unserved_drop(struct store_objects *s, struct err *err)
{
	cleanup_strbuf struct strbuf dropped = STRBUF_INIT;
	cleanup_free char *resource = NULL;
	size_t total = 0;
	int rc;

	while ((rc = store_db_next_resource(
			store_objects_db(s), resource ? resource : "", &resource, err)) > 0) {
		const struct store_scan scan = {.resource = resource, .only_keys = true};
		struct dropping d = {s, 0, err};

		/* Rows (store/rows.h) have a slash. They are not objects and must never be
		 * dropped: they hold the keys of all nodes. */
		if (strchr(resource, '/') ||
			(is_served(s, resource) && !str_eq(resource, BINDINGS)))
			continue;
		if (store_db_scan_keys(store_objects_db(s), &scan, drop, &d, err) < 0 ||
			err_is_set(err))
			return err_wrap(err, "%s, which are no longer served", resource);
		if (d.n > 0)
			strbuf_addf(&dropped, "%s%zu %s", total ? ", " : "", d.n, resource);
		total += d.n;
	}
	if (rc == 0 && total > 0)
		log_warn(NULL, "deleted objects of kinds that are no longer served",
			"count=%zu resource=%s", total, log_esc(strbuf_str(&dropped)));
	return rc;
}
