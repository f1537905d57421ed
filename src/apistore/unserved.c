/* SPDX-License-Identifier: MIT */
/* Nobody reads these objects any more: each is stored once again, as one that nothing holds. */
#include "config.h"

#include "tec/apistore/unserved.h"

#include "tec/base/json.h"
#include "tec/base/log.h"
#include "tec/base/mem.h"

#include "apistore_internal.h"

static const char *const resources[] = {"deployments.apps", "ingresses.networking.k8s.io",
	"leases.coordination.k8s.io", "networkpolicies.networking.k8s.io", "persistentvolumeclaims",
	"poddisruptionbudgets.policy", "replicasets.apps", "services"};

/* As namespace and name, each with its NUL byte. */
static bool note_name(void *arg, const struct apistore_version *v)
{
	struct strbuf *names = arg;

	strbuf_add(names, v->key.ns, strlen(v->key.ns) + 1);
	strbuf_add(names, v->key.name, strlen(v->key.name) + 1);
	return true;
}

static bool is_our_service(const struct apistore_key *key, struct json_object *o)
{
	struct json_object *owners = json_get_arr(o, "metadata/ownerReferences");

	for (size_t i = 0; owners && i < json_object_array_length(owners); i++)
		if (str_eq(json_get_str(json_object_array_get_idx(owners, i), "kind"),
			    "TrustedExecutionCluster"))
			return str_eq(key->resource, "services");
	return false;
}

/* Adds to *n what a person made. */
static int drop(
	struct apistore_objects *s, const struct apistore_key *key, size_t *n, struct err *err)
{
	struct json_object *o = apistore_objects_get(s, key), *meta;

	if (!o)
		return apistore_objects_trouble(s, err) ? -1 : 0;
	*n += !is_our_service(key, o);
	meta = apistore_objects_meta(o);
	json_add_str(meta, "deletionTimestamp", json_get_str(meta, "creationTimestamp"));
	json_object_object_del(meta, "finalizers");
	json_object_put(apistore_objects_put(s, key, o));
	return apistore_objects_trouble(s, err) ? -1 : 0;
}

static int drop_all(struct apistore_objects *s, const char *resource, size_t *n, struct err *err)
{
	cleanup_strbuf struct strbuf names = STRBUF_INIT;
	const struct apistore_scan scan = {.resource = resource, .only_keys = true};

	if (apistore_db_scan(s->db, &scan, note_name, &names, err) < 0)
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

int apistore_unserved_drop(struct apistore_objects *s, struct err *err)
{
	cleanup_strbuf struct strbuf dropped = STRBUF_INIT;
	size_t total = 0;

	for (size_t i = 0; i < ARRAY_LEN(resources); i++) {
		size_t n = 0;

		if (drop_all(s, resources[i], &n, err) < 0)
			return err_wrap(err, "%s, which are no longer served", resources[i]);
		if (n > 0)
			strbuf_addf(&dropped, "%s%zu %s", total ? ", " : "", n, resources[i]);
		total += n;
	}
	if (total > 0)
		log_warn(NULL, "objects of kinds that are no longer served were deleted",
			"count=%zu resource=%s", total, log_esc(strbuf_str(&dropped)));
	return 0;
}
