/* SPDX-License-Identifier: MIT */
/*
 * Secrets and ConfigMaps: their keys, their size, and the members that a Secret of a known type
 * must have. Values are base64 that was checked before. A value that is decoded here is wiped
 * afterwards; causes name the place of a value, never its content.
 */
#include "config.h"

#include "builtin_internal.h"

#include <ctype.h>
#include <string.h>

#include "tec/base/bytes.h"
#include "tec/base/json.h"
#include "tec/base/mem.h"
#include "tec/base/secret.h"
#include "tec/kobj/key.h"

#define DATA_MAX (1u << 20)
#define KEY_TEXT "must be letters, digits, '-', '_' and '.'"
#define ACCOUNT  "kubernetes.io/service-account.name"

/* Add a cause about a member of a map: "data[tls.crt]". */
static void at_key(struct look *l, const char *map, const char *key, enum schema_problem p,
	const char *value, const char *why)
{
	cleanup_free char *field = xasprintf("%s[%s]", map, key);

	schema_cause_add_text(l->causes, p, field, value, why);
}

/* The characters of a file name, because each key becomes a file in a volume. */
static void data_key(struct look *l, const char *map, const char *key)
{
	size_t n = strlen(key), good = 0;

	while (good < n && (isalnum((unsigned char)key[good]) || strchr("-_.", key[good])))
		good++;
	if (n > KOBJ_NAME_MAX)
		at_key(l, map, key, SCHEMA_INVALID, key, "must have at most 253 characters");
	if (n == 0 || good < n)
		at_key(l, map, key, SCHEMA_INVALID, key, KEY_TEXT);
	if (str_eq(key, ".") || str_starts(key, ".."))
		at_key(l, map, key, SCHEMA_INVALID, key, "must not be '.' or begin with '..'");
}

/* Compute the decoded length of valid base64 from its length and padding. */
static size_t decoded_len(struct json_object *v)
{
	const char *text = json_object_get_string(v);
	size_t n = v ? (size_t)json_object_get_string_len(v) : 0;

	return n < 4 ? 0 : n / 4 * 3 - (text[n - 1] == '=') - (text[n - 2] == '=');
}

/* Check the keys of one map and return the total size of its values. other: the map that must not
 * have the same keys; NULL: none, and the values are base64. */
static size_t data(struct look *l, struct json_object *o, const char *map, const char *other)
{
	struct json_object *m = json_get_obj(o, map), *also = other ? json_get_obj(o, other) : NULL;
	bool base64 = !other;
	size_t size = 0;

	if (!m)
		return 0;
	json_each (m, key, v) {
		data_key(l, map, key);
		if (also && json_object_object_get_ex(also, key, NULL))
			at_key(l, map, key, SCHEMA_INVALID, key, "is in binaryData, too");
		if (json_object_is_type(v, json_type_string))
			size += base64 ? decoded_len(v) : (size_t)json_object_get_string_len(v);
	}
	return size;
}

/* The limit of 1 MiB is kube-apiserver's, and counts values only. */
static void data_size(struct look *l, const char *field, size_t size)
{
	if (size > DATA_MAX)
		schema_cause_add(l->causes, SCHEMA_TOO_LONG, field, NULL,
			"must have at most %u bytes", DATA_MAX);
}

/* Both maps share the limit. "[]" is the field that kube-apiserver reports for it. */
void look_configmap(struct look *l, struct json_object *o)
{
	size_t size = data(l, o, "data", "binaryData");

	data_size(l, "[]", size + data(l, o, "binaryData", NULL));
}

/* ---- Secrets by type */

/* A key with value null exists, which json_get() would not tell from an absent one. */
static bool has_key(struct json_object *data, const char *key, struct json_object **v)
{
	*v = NULL;
	return data && json_object_object_get_ex(data, key, v);
}

/* The key must exist; its value may be empty, as in kube-apiserver. */
static bool needs_key(struct look *l, struct json_object *data, const char *key)
{
	struct json_object *v;

	if (has_key(data, key, &v))
		return true;
	at_key(l, "data", key, SCHEMA_REQUIRED, NULL, "");
	return false;
}

/* Check that the credentials of a registry are a JSON object. */
static void docker(struct look *l, struct json_object *data, const char *key)
{
	struct json_object *v, *o;
	struct err err = ERR_INIT;
	uint8_t *bytes = NULL;
	size_t n = 0;

	if (!needs_key(l, data, key) || !has_key(data, key, &v))
		return;
	if (v && (!json_object_is_type(v, json_type_string) ||
			 bytes_from_b64(json_object_get_string(v),
				 (size_t)json_object_get_string_len(v), &bytes, &n) < 0))
		return; /* not base64: already refused */
	o = json_parse(bytes ? (const char *)bytes : "", n, &json_limits_object, &err);
	if (!json_object_is_type(o, json_type_object))
		at_key(l, "data", key, SCHEMA_INVALID, NULL, "must be a JSON object");
	json_wipe(o);
	json_object_put(o);
	if (bytes)
		secret_wipe(bytes, n);
	free(bytes);
}

static void docker_config(struct look *l, struct json_object *o, struct json_object *data)
{
	(void)o;
	docker(l, data, ".dockercfg");
}

static void docker_config_json(struct look *l, struct json_object *o, struct json_object *data)
{
	(void)o;
	docker(l, data, ".dockerconfigjson");
}

/* One of username and password suffices; without both, each is reported as missing. */
static void basic_auth(struct look *l, struct json_object *o, struct json_object *data)
{
	struct json_object *v;

	(void)o;
	if (has_key(data, "username", &v) || has_key(data, "password", &v))
		return;
	(void)needs_key(l, data, "username");
	(void)needs_key(l, data, "password");
}

/* Unlike the other types, an empty key is refused. */
static void ssh_auth(struct look *l, struct json_object *o, struct json_object *data)
{
	struct json_object *v;

	(void)o;
	if (!has_key(data, "ssh-privatekey", &v) || look_empty(v))
		at_key(l, "data", "ssh-privatekey", SCHEMA_REQUIRED, NULL, "");
}

/* The certificate and key are not parsed: kube-apiserver does not either. */
static void tls(struct look *l, struct json_object *o, struct json_object *data)
{
	(void)o;
	(void)needs_key(l, data, "tls.crt");
	(void)needs_key(l, data, "tls.key");
}

/* The annotation names the ServiceAccount; whether it exists is not checked here. */
static void account_token(struct look *l, struct json_object *o, struct json_object *data)
{
	struct json_object *annotations = json_get_obj(o, "metadata/annotations"), *v = NULL;

	(void)data;
	if (!annotations || !json_object_object_get_ex(annotations, ACCOUNT, &v) || look_empty(v))
		at_key(l, "metadata.annotations", ACCOUNT, SCHEMA_REQUIRED, NULL, "");
}

/* Other types, including Opaque and custom ones, have no rules. */
void look_secret(struct look *l, struct json_object *o)
{
	static const struct {
		const char *type;
		void (*check)(struct look *l, struct json_object *o, struct json_object *data);
	} types[] = {{"kubernetes.io/service-account-token", account_token},
		{"kubernetes.io/dockercfg", docker_config},
		{"kubernetes.io/dockerconfigjson", docker_config_json},
		{"kubernetes.io/basic-auth", basic_auth}, {"kubernetes.io/ssh-auth", ssh_auth},
		{"kubernetes.io/tls", tls}};
	const char *type = json_get_str(o, "type");

	data_size(l, "data", data(l, o, "data", NULL));
	for (size_t i = 0; i < ARRAY_LEN(types); i++)
		if (str_eq(type, types[i].type))
			types[i].check(l, o, json_get_obj(o, "data"));
}
