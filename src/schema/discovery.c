/* SPDX-License-Identifier: MIT */
/*
 * Discovery documents from one list of kinds: the built-in table, and our CRDs. Groups are in
 * kube-apiserver's order of priority, ours after them. No group has two versions.
 */
#include "config.h"

#include "tec/schema/discovery.h"

#include <string.h>

#include "tec/base/bytes.h"
#include "tec/base/json.h"
#include "tec/base/mem.h"
#include "tec/schema/builtin.h"

static const char *const group_order[] = {"", "events.k8s.io", "authentication.k8s.io",
	"authorization.k8s.io", "rbac.authorization.k8s.io"};

/* Groups that are not listed rank last, in alphabetical order. */
static size_t group_rank(const char *group)
{
	size_t i = 0;

	while (i < ARRAY_LEN(group_order) && !str_eq(group, group_order[i]))
		i++;
	return i;
}

/* Kinds of one group must be adjacent: the documents are built from runs of one group. */
static int by_place(const void *a, const void *b)
{
	const struct schema_kind *x = *(const struct schema_kind *const *)a,
				 *y = *(const struct schema_kind *const *)b;
	size_t i = group_rank(x->group), j = group_rank(y->group);
	int c = i != j ? (i < j ? -1 : 1) : strcmp(x->group, y->group);

	return c ? c : strcmp(x->plural, y->plural);
}

const struct schema_kind *schema_served_at(const struct schema_served *s, size_t i)
{
	size_t own = schema_builtin_count();

	if (i < own)
		return schema_builtin_at(i);
	return i - own < s->n ? &s->crds[i - own]->kind : NULL;
}

/* Built-in kinds win, so that a CRD cannot replace one. */
const struct schema_kind *schema_served_kind(
	const struct schema_served *s, const char *group, const char *version, const char *plural)
{
	const struct schema_kind *k;

	for (size_t i = 0; (k = schema_served_at(s, i)); i++)
		if (str_eq(k->group, group) && str_eq(k->version, version) &&
			str_eq(k->plural, plural))
			break;
	return k;
}

/* All kinds in the order of the documents, NULL-terminated; the caller frees the array. Rebuilt for
 * every document: discovery requests are rare. */
static const struct schema_kind **all_kinds(const struct schema_served *s)
{
	size_t n = schema_builtin_count() + s->n;
	const struct schema_kind **k = xcalloc(n + 1, sizeof(*k));

	for (size_t i = 0; i < n; i++)
		k[i] = schema_served_at(s, i);
	qsort(k, n, sizeof(*k), by_place);
	return k;
}

/* ---- groups */

static struct json_object *text_list(const char *const *list)
{
	struct json_object *a = json_arr();

	for (; *list; list++)
		json_push_str(a, *list);
	return a;
}

/* kube-apiserver lists the verbs of custom resources in another order. */
static struct json_object *verb_list(const struct schema_kind *k, unsigned verbs)
{
	static const char *const custom[] = {"delete", "deletecollection", "get", "list", "patch",
		"create", "update", "watch", NULL};
	const char *names[9];

	schema_verb_names(verbs, names);
	return text_list(k->crd && verbs == SCHEMA_VERBS_ALL ? custom : names);
}

/* What a client may do with a kind, and how people may call it. */
static void add_usage(struct json_object *o, const struct schema_kind *k)
{
	json_add(o, "verbs", verb_list(k, k->verbs));
	if (k->short_names)
		json_add(o, "shortNames", text_list(k->short_names));
	if (k->categories)
		json_add(o, "categories", text_list(k->categories));
}

static struct json_object *document(const char *kind, const char *version)
{
	return json_add_str(json_add_str(json_obj(), "kind", kind), "apiVersion", version);
}

static struct json_object *version_entry(const struct schema_kind *k)
{
	cleanup_free char *gv = xasprintf("%s/%s", k->group, k->version);

	return json_add_str(json_add_str(json_obj(), "groupVersion", gv), "version", k->version);
}

/* Count the kinds from k on that belong to the group of the first. */
static size_t same_group(const struct schema_kind **k)
{
	size_t n = 1;

	while (k[n] && str_eq(k[n]->group, k[0]->group))
		n++;
	return n;
}

/* The single version of a group is also its preferred one. */
static struct json_object *group_entry(const struct schema_kind *k, struct json_object *take_o)
{
	json_add_str(take_o, "name", k->group);
	json_add(take_o, "versions", json_push(json_arr(), version_entry(k)));
	return json_add(take_o, "preferredVersion", version_entry(k));
}

/* The one client CIDR tells every client to use this server's address. */
struct json_object *schema_discovery_versions(const char *server)
{
	struct json_object *o = json_add_str(json_obj(), "kind", "APIVersions"),
			   *client = json_obj();

	json_add(o, "versions", json_push_str(json_arr(), "v1"));
	json_add_str(client, "clientCIDR", "0.0.0.0/0");
	json_add_str(client, "serverAddress", server);
	return json_add(o, "serverAddressByClientCIDRs", json_push(json_arr(), client));
}

/* The core group is not listed here: clients find it at /api. */
struct json_object *schema_discovery_groups(const struct schema_served *s)
{
	cleanup_free const struct schema_kind **all = all_kinds(s);
	struct json_object *groups = json_arr();

	for (const struct schema_kind **k = all; *k; k += same_group(k))
		if (*(*k)->group)
			json_push(groups, group_entry(*k, json_obj()));
	return json_add(document("APIGroupList", "v1"), "groups", groups);
}

/* The core group ("") has no document of this kind. */
struct json_object *schema_discovery_group(const struct schema_served *s, const char *group)
{
	const struct schema_kind *k;

	for (size_t i = 0; *group && (k = schema_served_at(s, i)); i++)
		if (str_eq(k->group, group))
			return group_entry(k, document("APIGroup", "v1"));
	return NULL;
}

/* ---- resources of one version */

/* A subresource is an entry of its own, named RESOURCE/SUBRESOURCE. */
static void push_resource(struct json_object *list, const struct schema_kind *k)
{
	cleanup_free char *text = xasprintf("%s/%s/%s", k->group, k->version, k->kind);
	cleanup_strbuf struct strbuf b64 = STRBUF_INIT;
	struct json_object *o = json_obj();
	uint8_t hash[SHA256_LEN];

	json_add_str(o, "name", k->plural);
	json_add_str(o, "singularName", k->singular);
	json_add_bool(o, "namespaced", k->namespaced);
	json_add_str(o, "kind", k->kind);
	add_usage(o, k);
	if (k->verbs & SCHEMA_VERB_GET) {
		/* Clients only compare it: the first 8 bytes of a hash over what is stored. */
		bytes_sha256(text, strlen(text), hash);
		bytes_to_b64(&b64, hash, 8);
		json_add_str(o, "storageVersionHash", strbuf_str(&b64));
	}
	json_push(list, o);
	for (size_t i = 0; i < k->n_subs; i++) {
		const struct schema_sub *sub = &k->subs[i];
		cleanup_free char *name = xasprintf("%s/%s", k->plural, sub->name);

		o = json_obj();
		json_add_str(o, "name", name);
		json_add_str(o, "singularName", "");
		json_add_bool(o, "namespaced", k->namespaced);
		json_add_str(o, "group", sub->group);
		json_add_str(o, "version", sub->version);
		json_add_str(o, "kind", sub->kind ? sub->kind : k->kind);
		json_add(o, "verbs", verb_list(k, sub->verbs));
		json_push(list, o);
	}
}

/* A version without kinds does not exist; the caller answers NULL with a 404. */
struct json_object *schema_discovery_resources(
	const struct schema_served *s, const char *group, const char *version)
{
	cleanup_free const struct schema_kind **k = all_kinds(s);
	cleanup_free char *gv = xasprintf("%s%s%s", group, *group ? "/" : "", version);
	struct json_object *list = json_arr(), *o;

	for (size_t i = 0; k[i]; i++)
		if (str_eq(k[i]->group, group) && str_eq(k[i]->version, version))
			push_resource(list, k[i]);
	if (json_len(list) == 0) {
		json_object_put(list);
		return NULL;
	}
	o = json_add_str(json_obj(), "kind", "APIResourceList");
	if (*group) /* the document of the core group lacks this member, as kube-apiserver's */
		json_add_str(o, "apiVersion", "v1");
	return json_add(json_add_str(o, "groupVersion", gv), "resources", list);
}

/* ---- aggregated */

/* Built-in kinds leave their own group and version empty. */
static struct json_object *response_kind(
	const struct schema_kind *k, const char *group, const char *version, const char *kind)
{
	struct json_object *o = json_obj();

	json_add_str(o, "group", group ? group : k->crd ? k->group : "");
	json_add_str(o, "version", version ? version : k->crd ? k->version : "");
	return json_add_str(o, "kind", kind ? kind : k->kind);
}

/* responseKind is what a request returns; for subresource token it is another kind. */
static struct json_object *aggregated_resource(const struct schema_kind *k)
{
	struct json_object *o = json_obj(), *subs = json_arr();

	json_add_str(o, "resource", k->plural);
	json_add(o, "responseKind", response_kind(k, NULL, NULL, NULL));
	json_add_str(o, "scope", k->namespaced ? "Namespaced" : "Cluster");
	json_add_str(o, "singularResource", k->singular);
	add_usage(o, k);
	for (size_t i = 0; i < k->n_subs; i++) {
		const struct schema_sub *sub = &k->subs[i];
		struct json_object *e = json_add_str(json_obj(), "subresource", sub->name);

		json_add(e, "responseKind", response_kind(k, sub->group, sub->version, sub->kind));
		json_push(subs, json_add(e, "verbs", verb_list(k, sub->verbs)));
	}
	if (k->n_subs)
		return json_add(o, "subresources", subs);
	json_object_put(subs);
	return o;
}

/* One request instead of one per group: kubectl asks for this form first. freshness is always
 * Current: there are no aggregated servers whose documents could be stale. */
struct json_object *schema_discovery_aggregated(
	const struct schema_served *s, bool core, const char *version)
{
	cleanup_free const struct schema_kind **all = all_kinds(s);
	const struct schema_kind **k = all;
	cleanup_free char *api = xasprintf("apidiscovery.k8s.io/%s", version);
	struct json_object *items = json_arr();

	while (*k) {
		const struct schema_kind *first = *k, **end = k + same_group(k);
		struct json_object *metadata, *resources, *v;

		if (core != !*first->group) {
			k = end;
			continue;
		}
		metadata = json_add_str(json_obj(), "name", core ? NULL : first->group);
		resources = json_arr();
		while (k < end)
			json_push(resources, aggregated_resource(*k++));
		v = json_add_str(json_obj(), "version", first->version);
		json_add_str(json_add(v, "resources", resources), "freshness", "Current");
		json_push(items, json_add(json_add(json_obj(), "metadata", metadata), "versions",
					 json_push(json_arr(), v)));
	}
	return json_add(json_add(document("APIGroupDiscoveryList", api), "metadata", json_obj()),
		"items", items);
}
