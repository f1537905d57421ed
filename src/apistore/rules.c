/* SPDX-License-Identifier: MIT */
/* One function per built-in kind, in a table: defaults and checks as in kube-apiserver. */
#include "config.h"

#include "rules.h"

#include "tec/base/bytes.h"
#include "tec/base/json.h"
#include "tec/base/mem.h"
#include "tec/base/secret.h"

#include "tec/apistore/objects.h"

struct rule {
	const struct apistore_target *t;
	const char *kind;
	struct json_object *o, *was;
	struct apistore_answer *refused;
};

/* Refuse a value that is not base64, without quoting it: it may be a secret. */
static int bad_base64(const struct rule *r, const char *member)
{
	*r->refused = apistore_status_refusal(400,
		"%s in version \"v1\" cannot be handled as a %s: %s: a value is not base64",
		r->kind, r->kind, member);
	return -1;
}

/* ---- data of Secrets and ConfigMaps */

/* Check that all values of a map decode as base64. Their type, string, was checked before. */
static int check_base64(const struct rule *r, const char *member)
{
	struct json_object *data = json_get_obj(r->o, member);

	if (!data)
		return 0;
	json_each (data, name, value) {
		const char *text = json_object_get_string(value);
		size_t len = value ? (size_t)json_object_get_string_len(value) : 0, n = len;
		uint8_t *bytes = NULL;

		(void)name;
		if (len == 0)
			continue;
		if (bytes_from_b64(text, len, &bytes, &n) < 0)
			return bad_base64(r, member);
		secret_wipe(bytes, n);
		free(bytes);
	}
	return 0;
}

/* Drop an empty map, which kube-apiserver does not store. */
static void drop_empty(const struct rule *r, const char *member)
{
	struct json_object *data = json_get_obj(r->o, member);

	if (data && json_len(data) == 0)
		json_drop(r->o, member);
}

/* ---- Secrets */

/* Encode stringData into data, where it replaces members of the same name, and drop it. */
static void merge_string_data(const struct rule *r)
{
	struct json_object *text = json_get_obj(r->o, "stringData"),
			   *data = json_get_obj(r->o, "data");

	if (text && !data)
		json_add(r->o, "data", data = json_obj());
	if (text) {
		json_each (text, name, value) {
			cleanup_strbuf struct strbuf b64 = STRBUF_INIT;

			if (value)
				bytes_to_b64(&b64, json_object_get_string(value),
					(size_t)json_object_get_string_len(value));
			json_add_str(data, name, strbuf_str(&b64));
			if (b64.data)
				secret_wipe(b64.data, b64.cap);
		}
		json_wipe(text);
	}
	json_drop(r->o, "stringData");
}

static int secret(const struct rule *r)
{
	const char *type = json_get_str(r->o, "type");

	if (!type || !*type)
		json_add_str(r->o, "type", "Opaque");
	merge_string_data(r);
	drop_empty(r, "data");
	return check_base64(r, "data");
}

/* ---- ConfigMaps */

static int configmap(const struct rule *r)
{
	drop_empty(r, "data");
	drop_empty(r, "binaryData");
	return check_base64(r, "binaryData");
}

/* ---- Namespaces */

/* Set the label with the name, and for a new Namespace its finalizer and phase. */
static int namespace(const struct rule *r)
{
	struct json_object *m = apistore_objects_meta(r->o), *labels = json_get_obj(m, "labels");

	if (!labels)
		json_add(m, "labels", labels = json_obj());
	json_add_str(labels, "kubernetes.io/metadata.name", r->t->name);
	if (r->was)
		return 0;
	if (!json_get_obj(r->o, "spec"))
		json_add(r->o, "spec", json_obj());
	json_add(json_get(r->o, "spec"), "finalizers", json_push_str(json_arr(), "kubernetes"));
	json_add(r->o, "status", json_add_str(json_obj(), "phase", "Active"));
	return 0;
}

/* Run the rule of the kind; kinds without one pass. Both texts and object may hold secrets, so no
 * value is quoted in an error. */
int apistore_rules(const struct apistore_target *t, struct json_object *o, struct json_object *was,
	struct apistore_answer *refused)
{
	static const struct {
		const char *resource;
		int (*check)(const struct rule *r);
	} rules[] = {{"secrets", secret}, {"configmaps", configmap}, {"namespaces", namespace}};
	const struct rule r = {t, json_get_str(o, "kind"), o, was, refused};

	for (size_t i = 0; i < ARRAY_LEN(rules); i++)
		if (str_eq(t->qualified, rules[i].resource))
			return rules[i].check(&r);
	return 0;
}
