/* SPDX-License-Identifier: MIT */
/* The in-memory API for tests: what it knows of our kinds, and how a test changes it directly. */
#include "config.h"

#include "fake/api.h"

#include <criterion/criterion.h>

#include "tec/apireq/representation.h"
#include "tec/store/gc.h"
#include "tec/apireq/patch.h"
#include "tec/apireq/request_info.h"
#include "tec/apireq/transport.h"
#include "tec/store/watch.h"
#include "tec/base/json.h"
#include "tec/base/mem.h"

static const struct store_kind kinds[] = {
	{.group = "trusted-execution-clusters.io",
		.generation = true,
		.status = true,
		.custom = true},
	{.group = "confidentialcontainers.org", .generation = true, .status = true, .custom = true},
	{.group = "apps", .generation = true, .status = true},
	{.group = "batch", .generation = true, .status = true},
};

/* Of what the operator renders in a cluster. */
static const struct store_list lists[] = {{"conditions", {"type"}}, {"containers", {"name"}},
	{"env", {"name"}}, {"imagePullSecrets", {"name"}}, {"initContainers", {"name"}},
	{"ports", {"port", "containerPort", "protocol"}}, {"volumeMounts", {"mountPath"}},
	{"volumes", {"name"}}};

static const struct store_schema schema = {
	.kinds = kinds, .n_kinds = ARRAY_LEN(kinds), .lists = {lists, ARRAY_LEN(lists)}};

/* An object that a test may still look at. */
struct fake_seen {
	char *path;
	struct json_object *o; /* owned */
};

struct fake_api *fake_api_new(struct loop *l)
{
	struct fake_api *api = xcalloc(1, sizeof(*api));
	struct err err = ERR_INIT;
	struct store_db *db = store_db_open(&(const struct store_db_conf){0}, &err);

	cr_assert_not_null(db, "%s", err.text);
	api->objects = store_objects_new(db, &schema, l);
	api->inner = apireq_transport_new(l, api->objects);
	return api;
}

void fake_api_free(struct fake_api *api)
{
	cr_assert_null(api->transports, "free transports before their API");
	k8s_transport_free(api->inner);
	store_objects_free(api->objects);
	for (size_t i = 0; i < api->n_seen; i++) {
		free(api->seen[i].path);
		json_object_put(api->seen[i].o);
	}
	free(api->seen);
	free(api);
}

static char *resource_of(const struct kobj_gvk *gvk)
{
	return apireq_request_info_qualify(
		gvk->plural, apireq_representation_renames(gvk->group) ? "" : gvk->group);
}

static struct fake_seen *seen(struct fake_api *api, const char *path)
{
	for (size_t i = 0; i < api->n_seen; i++)
		if (str_eq(api->seen[i].path, path))
			return &api->seen[i];
	ARRAY_GROW(api->seen, api->n_seen);
	api->seen[api->n_seen] = (struct fake_seen){xstrdup(path), NULL};
	return &api->seen[api->n_seen++];
}

struct json_object *fake_api_get(
	struct fake_api *api, const struct kobj_gvk *gvk, const char *ns, const char *name)
{
	cleanup_free char *resource = resource_of(gvk);
	cleanup_free char *path = xasprintf("%s/%s/%s", resource, ns, name);
	struct json_object *o =
		store_objects_get(api->objects, &(const struct store_key){resource, ns, name});
	struct fake_seen *have = seen(api, path);

	if (o && str_eq(json_get_str(o, "metadata/resourceVersion"),
			 json_get_str(have->o, "metadata/resourceVersion"))) {
		json_object_put(o);
	} else {
		json_object_put(have->o);
		have->o = o;
	}
	return have->o;
}

void fake_api_put_json(struct fake_api *api, const struct kobj_gvk *gvk, const char *ns,
	struct json_object *take_o)
{
	cleanup_free char *resource = resource_of(gvk);
	cleanup_free char *name = xstrdup(json_get_str(take_o, "metadata/name"));
	cleanup_strbuf struct strbuf version = STRBUF_INIT;

	cr_assert_not_null(name, "fake_api_put: an object needs metadata.name");
	kobj_api_version(gvk, &version);
	json_add_str(json_add_str(take_o, "apiVersion", strbuf_str(&version)), "kind", gvk->kind);
	json_object_put(store_objects_put(
		api->objects, &(const struct store_key){resource, ns, name}, take_o));
}

static struct json_object *parse_or_fail(const char *text)
{
	struct err err = ERR_INIT;
	struct json_object *o = json_parse(text, strlen(text), &json_limits_object, &err);

	cr_assert(json_object_is_type(o, json_type_object), "not a JSON object: %s: %s", err.text,
		text);
	return o;
}

void fake_api_put(
	struct fake_api *api, const struct kobj_gvk *gvk, const char *ns, const char *text)
{
	fake_api_put_json(api, gvk, ns, parse_or_fail(text));
}

void fake_api_merge(struct fake_api *api, const struct kobj_gvk *gvk, const char *ns,
	const char *name, const char *patch)
{
	cleanup_free char *resource = resource_of(gvk);
	cleanup_json struct json_object *p = parse_or_fail(patch);
	struct json_object *o = json_copy(fake_api_get(api, gvk, ns, name));

	cr_assert_not_null(o, "fake_api_merge: no %s %s", gvk->kind, name);
	apireq_patch_merge(o, p);
	json_object_put(
		store_objects_put(api->objects, &(const struct store_key){resource, ns, name}, o));
}

void fake_api_delete(
	struct fake_api *api, const struct kobj_gvk *gvk, const char *ns, const char *name)
{
	cleanup_free char *resource = resource_of(gvk);
	cleanup_json struct json_object *o = store_gc_delete(
		api->objects, &(const struct store_key){resource, ns, name}, STORE_POLICY_DEFAULT);

	cr_assert_not_null(o, "fake_api_delete: no %s %s", gvk->kind, name);
}

size_t fake_api_count(struct fake_api *api, const struct kobj_gvk *gvk, const char *ns)
{
	cleanup_free char *resource = resource_of(gvk);

	return store_objects_count(api->objects, resource, ns);
}

const char *fake_api_condition(struct fake_api *api, const struct kobj_gvk *gvk, const char *ns,
	const char *name, const char *type, const char *member)
{
	struct json_object *o = fake_api_get(api, gvk, ns, name),
			   *a = o ? json_get_arr(o, "status/conditions") : NULL;

	for (size_t i = 0; a && i < json_object_array_length(a); i++)
		if (str_eq(json_get_str(json_object_array_get_idx(a, i), "type"), type))
			return json_get_str(json_object_array_get_idx(a, i), member);
	return NULL;
}

uint64_t fake_api_rv(const struct fake_api *api)
{
	return store_objects_rv(api->objects);
}

size_t fake_api_collect(struct fake_api *api)
{
	return store_gc_collect(api->objects);
}

void fake_api_drop_watches(struct fake_api *api)
{
	store_watch_all(api->objects, true);
}

void fake_api_forget_history(struct fake_api *api)
{
	store_watch_compact(api->objects);
}

void fake_api_bookmark(struct fake_api *api)
{
	store_watch_all(api->objects, false);
}

void fake_api_hold_watches(struct fake_api *api, bool hold)
{
	api->held = hold;
	if (!hold)
		fake_transport_release(api);
}

bool fake_api_hides(const struct fake_api *api, const char *path)
{
	for (size_t i = 0; i < api->n_hidden; i++) {
		cleanup_strbuf struct strbuf version = STRBUF_INIT;
		cleanup_free char *plural = xasprintf("/%s", api->hidden[i]->plural);
		const char *at;

		kobj_api_version(api->hidden[i], &version);
		strbuf_addc(&version, '/');
		at = strstr(path, strbuf_str(&version));
		at = at ? strstr(at, plural) : NULL;
		if (at && strchr("/?", at[strlen(plural)]))
			return true;
	}
	return false;
}

void fake_api_hide(struct fake_api *api, const struct kobj_gvk *gvk, bool hidden)
{
	size_t i = 0;

	while (i < api->n_hidden && api->hidden[i] != gvk)
		i++;
	if (hidden && i == api->n_hidden) {
		cr_assert_lt(i, ARRAY_LEN(api->hidden));
		api->hidden[api->n_hidden++] = gvk;
	} else if (!hidden && i < api->n_hidden) {
		api->hidden[i] = api->hidden[--api->n_hidden];
	}
}
