/* SPDX-License-Identifier: MIT */
/* A watch says when the definitions changed; they are read again as a whole then, which is rare. */
#include "config.h"

#include "tec/apistore/kinds.h"

#include <stdio.h>
#include <string.h>

#include "tec/apistore/face.h"
#include "tec/apistore/watch.h"
#include "tec/base/json.h"
#include "tec/base/mem.h"

#define CRDS     "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
#define SEEN_MAX (256u << 10)
#define RBAC     "rbac.authorization.k8s.io"

static const struct apistore_kind_names builtin[] = {
	{"", "v1", "ConfigMap", "configmaps", "configmap", {"cm"}, true, false, false, false},
	{"", "v1", "Event", "events", "event", {"ev"}, true, false, false, false},
	{"", "v1", "Namespace", "namespaces", "namespace", {"ns"}, false, true, false, false},
	{"", "v1", "Pod", "pods", "pod", {"po"}, true, true, false, false},
	{"", "v1", "PersistentVolumeClaim", "persistentvolumeclaims", "persistentvolumeclaim",
		{"pvc"}, true, true, false, false},
	{"", "v1", "Secret", "secrets", "secret", {""}, true, false, false, false},
	{"", "v1", "Service", "services", "service", {"svc"}, true, true, false, false},
	{"", "v1", "ServiceAccount", "serviceaccounts", "serviceaccount", {"sa"}, true, false,
		false, false},
	{"apiextensions.k8s.io", "v1", "CustomResourceDefinition", "customresourcedefinitions",
		"customresourcedefinition", {"crd", "crds"}, false, true, false, false},
	{"authentication.k8s.io", "v1", "SelfSubjectReview", "selfsubjectreviews",
		"selfsubjectreview", {""}, false, false, false, false},
	{"authorization.k8s.io", "v1", "SelfSubjectAccessReview", "selfsubjectaccessreviews",
		"selfsubjectaccessreview", {""}, false, false, false, false},
	{"authorization.k8s.io", "v1", "SelfSubjectRulesReview", "selfsubjectrulesreviews",
		"selfsubjectrulesreview", {""}, false, false, false, false},
	{"apps", "v1", "Deployment", "deployments", "deployment", {"deploy"}, true, true, false,
		true},
	{"apps", "v1", "ReplicaSet", "replicasets", "replicaset", {"rs"}, true, true, false, true},
	{"batch", "v1", "Job", "jobs", "job", {""}, true, true, false, true},
	{"coordination.k8s.io", "v1", "Lease", "leases", "lease", {""}, true, false, false, false},
	{"events.k8s.io", "v1", "Event", "events", "event", {"ev"}, true, false, false, false},
	{"networking.k8s.io", "v1", "Ingress", "ingresses", "ingress", {"ing"}, true, true, false,
		true},
	{"networking.k8s.io", "v1", "NetworkPolicy", "networkpolicies", "networkpolicy", {"netpol"},
		true, false, false, true},
	{"policy", "v1", "PodDisruptionBudget", "poddisruptionbudgets", "poddisruptionbudget",
		{"pdb"}, true, true, false, true},
	{RBAC, "v1", "Role", "roles", "role", {""}, true, false, false, false},
	{RBAC, "v1", "RoleBinding", "rolebindings", "rolebinding", {""}, true, false, false, false},
};

static void copy(char *out, size_t size, const char *from)
{
	snprintf(out, size, "%s", from ? from : "");
}

/* One version of a definition; false: that is not served. */
static bool read_crd(struct json_object *crd, size_t i, struct apistore_kind_names *out)
{
	struct json_object *v = json_object_array_get_idx(json_get_arr(crd, "spec/versions"), i);
	struct json_object *shorts = json_get_arr(crd, "spec/names/shortNames");

	if (!json_get_bool(v, "served", false))
		return false;
	*out = (struct apistore_kind_names){.custom = true};
	copy(out->group, sizeof(out->group), json_get_str(crd, "spec/group"));
	copy(out->version, sizeof(out->version), json_get_str(v, "name"));
	copy(out->kind, sizeof(out->kind), json_get_str(crd, "spec/names/kind"));
	copy(out->plural, sizeof(out->plural), json_get_str(crd, "spec/names/plural"));
	copy(out->singular, sizeof(out->singular), json_get_str(crd, "spec/names/singular"));
	for (size_t k = 0; shorts && k < json_object_array_length(shorts) && k < 3; k++)
		copy(out->short_names[k], sizeof(out->short_names[k]),
			json_object_get_string(json_object_array_get_idx(shorts, k)));
	out->namespaced = str_eq(json_get_str(crd, "spec/scope"), "Namespaced");
	out->status = json_get(v, "subresources/status");
	return out->group[0] && out->version[0] && out->kind[0] && out->plural[0];
}

/* ---- what there is */

struct known {
	struct apistore_kind_names names;
	struct apistore_kind kind; /* points into names */
};

struct apistore_kinds {
	struct loop *loop;
	struct apistore_objects *objects; /* borrowed */
	struct apistore_watch *watch;     /* owned; of the definitions */
	struct defer reload;
	struct known **known; /* owned, the built-in ones first */
	size_t n;
};

static void add_known(struct apistore_kinds *k, const struct apistore_kind_names *names)
{
	struct known *it = xcalloc(1, sizeof(*it));

	it->names = *names;
	it->kind = (struct apistore_kind){.group = it->names.group,
		.resource = it->names.plural,
		.kind = it->names.kind,
		.generation = it->names.custom || it->names.generation,
		.status = it->names.status,
		.custom = it->names.custom};
	ARRAY_GROW(k->known, k->n);
	k->known[k->n++] = it;
}

static void forget(struct apistore_kinds *k, size_t from)
{
	while (k->n > from)
		free(k->known[--k->n]);
}

static void reload(void *arg)
{
	struct apistore_kinds *k = arg;
	cleanup_json struct json_object *list = apistore_face_get(k->objects, CRDS);
	struct json_object *crds = json_get_arr(list, "items");
	struct body seen = BODY_INIT;

	while (k->watch && apistore_watch_take(k->watch, &seen, SEEN_MAX) == APISTORE_WATCH_MORE)
		body_fini(&seen); /* what changed is in the list */
	body_fini(&seen);
	if (!list)
		return; /* the database failed, and said so: what was known goes on */
	forget(k, ARRAY_LEN(builtin));
	for (size_t i = 0; crds && i < json_object_array_length(crds); i++) {
		struct json_object *crd = json_object_array_get_idx(crds, i);
		struct json_object *versions = json_get_arr(crd, "spec/versions");
		struct apistore_kind_names names;

		for (size_t v = 0; versions && v < json_object_array_length(versions); v++)
			if (read_crd(crd, v, &names))
				add_known(k, &names);
	}
}

static void on_ready(void *arg)
{
	struct apistore_kinds *k = arg;

	defer_call(&k->reload, k->loop, reload, k);
}

struct apistore_kinds *apistore_kinds_new(void)
{
	struct apistore_kinds *k = xcalloc(1, sizeof(*k));

	for (size_t i = 0; i < ARRAY_LEN(builtin); i++)
		add_known(k, &builtin[i]);
	return k;
}

void apistore_kinds_free(struct apistore_kinds *k)
{
	if (!k)
		return;
	apistore_watch_free(k->watch);
	defer_cancel(&k->reload);
	forget(k, 0);
	free(k->known);
	free(k);
}

void apistore_kinds_follow(struct apistore_kinds *k, struct loop *l, struct apistore_objects *s)
{
	struct apistore_answer refused = {0};
	struct apistore_target t;
	struct err err = ERR_INIT;

	k->loop = l;
	k->objects = s;
	if (apistore_target_parse(CRDS "?watch=true", &t, &err) < 0)
		DIE("%s", err.text);
	k->watch = apistore_watch_new(s, &t, on_ready, k, &refused);
	apistore_target_fini(&t);
	apistore_answer_fini(&refused);
	reload(k);
}

const struct apistore_kind *apistore_kinds_of(void *arg, const char *group, const char *resource)
{
	const struct apistore_kinds *k = arg;

	for (size_t i = 0; i < k->n; i++)
		if (str_eq(k->known[i]->names.plural, resource) &&
			str_eq(k->known[i]->names.group, group))
			return &k->known[i]->kind;
	return NULL;
}

const struct apistore_kind_names *apistore_kinds_find(
	const struct apistore_kinds *k, const char *group, const char *version, const char *plural)
{
	for (size_t i = 0; i < k->n; i++) {
		const struct apistore_kind_names *n = &k->known[i]->names;

		if (str_eq(n->plural, plural) && str_eq(n->group, group) &&
			str_eq(n->version, version))
			return n;
	}
	return NULL;
}

/* ---- documents */

static struct json_object *words(const char *const *w)
{
	struct json_object *a = json_arr();

	for (; *w; w++)
		json_push(a, json_object_new_string(*w));
	return a;
}

static void add_bool(struct json_object *o, const char *name, bool v)
{
	json_add(o, name, json_object_new_boolean(v));
}

struct resources {
	const char *group, *version;
	struct json_object *list;
	bool found;
};

static void add_resource(const struct apistore_kind_names *k, struct resources *r)
{
	static const char *const verbs[] = {"create", "delete", "deletecollection", "get", "list",
		"patch", "update", "watch", NULL},
				 *const status_verbs[] = {"get", "patch", "update", NULL};
	cleanup_free char *name = xasprintf("%s/status", k->plural);
	struct json_object *o;

	if (!str_eq(k->group, r->group) || !str_eq(k->version, r->version))
		return;
	r->found = true;
	o = json_obj();
	json_add_str(json_add_str(o, "name", k->plural), "singularName", k->singular);
	add_bool(o, "namespaced", k->namespaced);
	json_add_str(o, "kind", k->kind);
	json_add(o, "verbs", words(verbs));
	if (k->short_names[0][0]) {
		const char *shorts[] = {
			k->short_names[0], k->short_names[1][0] ? k->short_names[1] : NULL, NULL};

		json_add(o, "shortNames", words(shorts));
	}
	json_push(r->list, o);
	if (!k->status)
		return;
	o = json_obj();
	json_add_str(json_add_str(o, "name", name), "singularName", "");
	add_bool(o, "namespaced", k->namespaced);
	json_add(json_add_str(o, "kind", k->kind), "verbs", words(status_verbs));
	json_push(r->list, o);
}

static struct json_object *resources(
	const struct apistore_kinds *k, const char *group, const char *version)
{
	cleanup_free char *gv = xasprintf("%s%s%s", group, group[0] ? "/" : "", version);
	struct json_object *o = json_obj();
	struct resources r = {group, version, json_arr(), false};

	json_add_str(json_add_str(o, "kind", "APIResourceList"), "apiVersion", "v1");
	json_add_str(o, "groupVersion", gv);
	json_add(o, "resources", r.list);
	for (size_t i = 0; i < k->n; i++)
		add_resource(&k->known[i]->names, &r);
	if (r.found)
		return o;
	json_object_put(o);
	return NULL;
}

static struct json_object *group_version(const char *group, const char *version)
{
	cleanup_free char *gv = xasprintf("%s/%s", group, version);

	return json_add_str(json_add_str(json_obj(), "groupVersion", gv), "version", version);
}

struct groups {
	struct json_object *list;
	const char *only; /* NULL: all */
};

/* The first version that a group is met with is the preferred one. */
static void add_group(const struct apistore_kind_names *k, struct groups *g)
{
	struct json_object *o = NULL, *versions;

	if (!k->group[0] || (g->only && !str_eq(g->only, k->group)))
		return;
	for (size_t i = 0; i < json_object_array_length(g->list); i++)
		if (str_eq(json_get_str(json_object_array_get_idx(g->list, i), "name"), k->group))
			o = json_object_array_get_idx(g->list, i);
	if (!o) {
		o = json_add_str(json_obj(), "name", k->group);
		json_add(o, "versions", json_arr());
		json_add(o, "preferredVersion", group_version(k->group, k->version));
		json_push(g->list, o);
	}
	versions = json_get_arr(o, "versions");
	for (size_t i = 0; i < json_object_array_length(versions); i++)
		if (str_eq(json_get_str(json_object_array_get_idx(versions, i), "version"),
			    k->version))
			return;
	json_push(versions, group_version(k->group, k->version));
}

static struct json_object *groups(const struct apistore_kinds *k, const char *only)
{
	struct json_object *o = json_obj();
	struct groups g = {json_arr(), only};

	for (size_t i = 0; i < k->n; i++)
		add_group(&k->known[i]->names, &g);
	if (!only) {
		json_add_str(json_add_str(o, "kind", "APIGroupList"), "apiVersion", "v1");
		return json_add(o, "groups", g.list);
	}
	json_object_put(o);
	o = json_object_get(json_object_array_get_idx(g.list, 0));
	json_object_put(g.list);
	if (o)
		json_add_str(json_add_str(o, "kind", "APIGroup"), "apiVersion", "v1");
	return o;
}

static struct json_object *versions(const char *server)
{
	struct json_object *o = json_obj(), *a = json_obj();
	const char *const v1[] = {"v1", NULL};

	json_add_str(o, "kind", "APIVersions");
	json_add(o, "versions", words(v1));
	json_add_str(json_add_str(a, "clientCIDR", "0.0.0.0/0"), "serverAddress", server);
	return json_add(o, "serverAddressByClientCIDRs", json_push(json_arr(), a));
}

struct json_object *apistore_kinds_document(
	const struct apistore_kinds *k, const char *path, const char *server)
{
	cleanup_free char *copy_of = xstrdup(path);
	size_t len = strlen(copy_of);
	char *group, *version;

	if (len > 1 && copy_of[len - 1] == '/')
		copy_of[len - 1] = '\0';
	if (str_eq(copy_of, "/api"))
		return versions(server);
	if (str_eq(copy_of, "/apis"))
		return groups(k, NULL);
	if (str_starts(copy_of, "/api/"))
		return resources(k, "", copy_of + strlen("/api/"));
	if (!str_starts(copy_of, "/apis/"))
		return NULL;
	group = copy_of + strlen("/apis/");
	version = strchr(group, '/');
	if (!version)
		return groups(k, group);
	*version++ = '\0';
	return resources(k, group, version);
}
