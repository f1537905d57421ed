/* SPDX-License-Identifier: MIT */
/* One function per kind, in a table. The texts are kube-apiserver's. */
#include "config.h"

#include "decode.h"
#include "rules.h"

#include <ctype.h>

#include "tec/base/bytes.h"
#include "tec/base/json.h"
#include "tec/base/mem.h"
#include "tec/base/secret.h"

struct rule {
	const struct apistore_target *t;
	const char *kind;
	struct json_object *o, *was;
	struct apistore_answer *refused;
};

static int bad_request(const struct rule *r, const char *why)
{
	*r->refused = apistore_status_refusal(400, "BadRequest",
		"%s in version \"v1\" cannot be handled as a %s: %s", r->kind, r->kind, why);
	return -1;
}

/* In the words of Go's decoder. */
static int bad_type(
	const struct rule *r, const char *member, struct json_object *v, const char *want)
{
	cleanup_free char *why =
		xasprintf("json: cannot unmarshal %s into Go struct field %s.%s of type %s",
			apistore_decode_type(v), r->kind, member, want);

	return bad_request(r, why);
}

/* Says where, and nothing of what stands there. */
static int bad_base64(const struct rule *r, const char *text, size_t len)
{
	cleanup_free char *why = NULL;
	size_t at = 0;

	while (at < len && (isalnum((unsigned char)text[at]) || strchr("+/", text[at])))
		at++;
	why = xasprintf("illegal base64 data at input byte %zu", at);
	return bad_request(r, why);
}

/* ---- data of Secrets and ConfigMaps */

/* A map of texts, or of base64 that decodes. One without members is none. */
static int check_data(const struct rule *r, const char *member, bool base64)
{
	struct json_object *data = json_get(r->o, member);

	if (data && !json_object_is_type(data, json_type_object))
		return bad_type(r, member, data, "map[string]string");
	if (data && json_object_object_length(data) == 0)
		json_object_object_del(r->o, member);
	data = json_get(r->o, member);
	if (!data)
		return 0;
	json_object_object_foreach (data, name, value) {
		const char *text = json_object_get_string(value);
		size_t len = value ? (size_t)json_object_get_string_len(value) : 0, n = len;

		(void)name;
		if (value && !json_object_is_type(value, json_type_string))
			return bad_type(r, member, value, base64 ? "[]uint8" : "string");
		if (base64 && len > 0) {
			uint8_t *bytes = NULL;

			if (bytes_from_b64(text, len, &bytes, &n) < 0)
				return bad_base64(r, text, len);
			secret_wipe(bytes, n);
			free(bytes);
		}
	}
	return 0;
}

/* ---- Secrets */

static int merge_string_data(const struct rule *r)
{
	struct json_object *text = json_get(r->o, "stringData"), *data = json_get_obj(r->o, "data");

	if (!text) {
		json_object_object_del(r->o, "stringData");
		return 0;
	}
	if (!json_object_is_type(text, json_type_object))
		return bad_type(r, "stringData", text, "map[string]string");
	if (!data)
		json_add(r->o, "data", data = json_obj());
	json_object_object_foreach (text, name, value) {
		cleanup_strbuf struct strbuf b64 = STRBUF_INIT;

		if (value && !json_object_is_type(value, json_type_string))
			return bad_type(r, "stringData", value, "string");
		if (value)
			bytes_to_b64(&b64, json_object_get_string(value),
				(size_t)json_object_get_string_len(value));
		json_add_str(data, name, strbuf_str(&b64));
		if (b64.data)
			secret_wipe(b64.data, b64.cap);
	}
	json_wipe(text);
	json_object_object_del(r->o, "stringData");
	return 0;
}

static int secret(const struct rule *r)
{
	struct json_object *type = json_get(r->o, "type");

	if (type && !json_object_is_type(type, json_type_string))
		return bad_request(r, "type is not a string");
	if (!type || json_object_get_string_len(type) == 0)
		json_add_str(r->o, "type", "Opaque");
	return merge_string_data(r) < 0 ? -1 : check_data(r, "data", true);
}

/* ---- ConfigMaps */

static int configmap(const struct rule *r)
{
	return check_data(r, "data", false) < 0 ? -1 : check_data(r, "binaryData", true);
}

/* ---- Namespaces */

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
