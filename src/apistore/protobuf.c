/* SPDX-License-Identifier: MIT */
/*
 * Driven by tables of field numbers, which Kubernetes never changes. What encoding/json leaves out
 * (omitempty) is left out here; a field whose type is a pointer in Go is kept with any value. Fields
 * that are not in the tables are passed over, as a server of another version would.
 */
#include "config.h"

#include "tec/apistore/protobuf.h"

#include <string.h>

#include "tec/base/bytes.h"
#include "tec/base/clock.h"
#include "tec/base/json.h"
#include "tec/base/mem.h"
#include "tec/base/secret.h"

enum type {
	STRING,
	STRING_PTR,
	STRINGS,
	INT,
	INT_PTR,
	BOOL,
	BOOL_PTR,
	TIME,
	MICROTIME,
	OBJECT,
	OBJECTS,
	TEXT_MAP,  /* of strings */
	BYTES_MAP, /* of bytes, base64 in JSON */
};

struct field {
	unsigned number;
	const char *name;
	enum type type;
	const struct field *of; /* of OBJECT and OBJECTS */
};
/* clang-format off: one line, one message */
#define END                                                                                        \
	{                                                                                          \
		0, NULL, STRING, NULL                                                              \
	}
static const struct field owner[] = {{1, "kind", STRING, NULL}, {3, "name", STRING, NULL},
	{4, "uid", STRING, NULL}, {5, "apiVersion", STRING, NULL},
	{6, "controller", BOOL_PTR, NULL}, {7, "blockOwnerDeletion", BOOL_PTR, NULL}, END};
static const struct field meta[] = {{1, "name", STRING, NULL}, {2, "generateName", STRING, NULL},
	{3, "namespace", STRING, NULL}, {5, "uid", STRING, NULL},
	{6, "resourceVersion", STRING, NULL}, {7, "generation", INT, NULL},
	{8, "creationTimestamp", TIME, NULL}, {9, "deletionTimestamp", TIME, NULL},
	{10, "deletionGracePeriodSeconds", INT_PTR, NULL}, {11, "labels", TEXT_MAP, NULL},
	{12, "annotations", TEXT_MAP, NULL}, {13, "ownerReferences", OBJECTS, owner},
	{14, "finalizers", STRINGS, NULL}, END};
#define META                                                                                       \
	{                                                                                          \
		1, "metadata", OBJECT, meta                                                        \
	}
static const struct field name_only[] = {{1, "name", STRING, NULL}, END};
static const struct field reference[] = {{1, "kind", STRING, NULL}, {2, "namespace", STRING, NULL},
	{3, "name", STRING, NULL}, {4, "uid", STRING, NULL}, {5, "apiVersion", STRING, NULL},
	{6, "resourceVersion", STRING, NULL}, {7, "fieldPath", STRING, NULL}, END};
static const struct field configmap[] = {META, {2, "data", TEXT_MAP, NULL},
	{3, "binaryData", BYTES_MAP, NULL}, {4, "immutable", BOOL_PTR, NULL}, END};
static const struct field secret[] = {META, {2, "data", BYTES_MAP, NULL}, {3, "type", STRING, NULL},
	{4, "stringData", TEXT_MAP, NULL}, {5, "immutable", BOOL_PTR, NULL}, END};
static const struct field namespace_spec[] = {{1, "finalizers", STRINGS, NULL}, END};
static const struct field namespace_status[] = {{1, "phase", STRING, NULL}, END};
static const struct field namespace_[] = {
	META, {2, "spec", OBJECT, namespace_spec}, {3, "status", OBJECT, namespace_status}, END};
static const struct field account[] = {META, {2, "secrets", OBJECTS, reference},
	{3, "imagePullSecrets", OBJECTS, name_only},
	{4, "automountServiceAccountToken", BOOL_PTR, NULL}, END};
static const struct field source[] = {
	{1, "component", STRING, NULL}, {2, "host", STRING, NULL}, END};
static const struct field series[] = {
	{1, "count", INT, NULL}, {2, "lastObservedTime", MICROTIME, NULL}, END};
static const struct field event[] = {META, {2, "involvedObject", OBJECT, reference},
	{3, "reason", STRING, NULL}, {4, "message", STRING, NULL}, {5, "source", OBJECT, source},
	{6, "firstTimestamp", TIME, NULL}, {7, "lastTimestamp", TIME, NULL},
	{8, "count", INT, NULL}, {9, "type", STRING, NULL}, {10, "eventTime", MICROTIME, NULL},
	{11, "series", OBJECT, series}, {12, "action", STRING, NULL},
	{13, "related", OBJECT, reference}, {14, "reportingComponent", STRING, NULL},
	{15, "reportingInstance", STRING, NULL}, END};
static const struct field lease_spec[] = {{1, "holderIdentity", STRING_PTR, NULL},
	{2, "leaseDurationSeconds", INT_PTR, NULL}, {3, "acquireTime", MICROTIME, NULL},
	{4, "renewTime", MICROTIME, NULL}, {5, "leaseTransitions", INT_PTR, NULL}, END};
static const struct field lease[] = {META, {2, "spec", OBJECT, lease_spec}, END};
static const struct field rule[] = {{1, "verbs", STRINGS, NULL}, {2, "apiGroups", STRINGS, NULL},
	{3, "resources", STRINGS, NULL}, {4, "resourceNames", STRINGS, NULL},
	{5, "nonResourceURLs", STRINGS, NULL}, END};
static const struct field role[] = {META, {2, "rules", OBJECTS, rule}, END};
static const struct field subject[] = {{1, "kind", STRING, NULL}, {2, "apiGroup", STRING, NULL},
	{3, "name", STRING, NULL}, {4, "namespace", STRING, NULL}, END};
static const struct field role_ref[] = {
	{1, "apiGroup", STRING, NULL}, {2, "kind", STRING, NULL}, {3, "name", STRING, NULL}, END};
static const struct field binding[] = {
	META, {2, "subjects", OBJECTS, subject}, {3, "roleRef", OBJECT, role_ref}, END};
static const struct field bound[] = {{1, "kind", STRING, NULL}, {2, "apiVersion", STRING, NULL},
	{3, "name", STRING, NULL}, {4, "uid", STRING, NULL}, END};
static const struct field token_spec[] = {{1, "audiences", STRINGS, NULL},
	{3, "boundObjectRef", OBJECT, bound}, {4, "expirationSeconds", INT_PTR, NULL}, END};
static const struct field token[] = {META, {2, "spec", OBJECT, token_spec}, END};
static const struct field res_attr[] = {{1, "namespace", STRING, NULL}, {2, "verb", STRING, NULL},
	{3, "group", STRING, NULL}, {4, "version", STRING, NULL}, {5, "resource", STRING, NULL},
	{6, "subresource", STRING, NULL}, {7, "name", STRING, NULL}, END};
static const struct field path_attr[] = {{1, "path", STRING, NULL}, {2, "verb", STRING, NULL}, END};
static const struct field access_spec[] = {{1, "resourceAttributes", OBJECT, res_attr},
	{2, "nonResourceAttributes", OBJECT, path_attr}, END};
static const struct field access_review[] = {META, {2, "spec", OBJECT, access_spec}, END};
static const struct field rules_spec[] = {{1, "namespace", STRING, NULL}, END};
static const struct field rules_review[] = {META, {2, "spec", OBJECT, rules_spec}, END};
static const struct field self_review[] = {META, END};
static const struct field precondition[] = {
	{1, "uid", STRING_PTR, NULL}, {2, "resourceVersion", STRING_PTR, NULL}, END};
static const struct field delete_options[] = {{1, "gracePeriodSeconds", INT_PTR, NULL},
	{2, "preconditions", OBJECT, precondition}, {3, "orphanDependents", BOOL_PTR, NULL},
	{4, "propagationPolicy", STRING_PTR, NULL}, {5, "dryRun", STRINGS, NULL}, END};
/* clang-format on */

static const struct {
	const char *version, *kind;
	const struct field *fields;
} messages[] = {
	{"v1", "ConfigMap", configmap},
	{"v1", "Secret", secret},
	{"v1", "Namespace", namespace_},
	{"v1", "ServiceAccount", account},
	{"v1", "Event", event},
	{"v1", "DeleteOptions", delete_options},
	{"meta.k8s.io/v1", "DeleteOptions", delete_options},
	{"coordination.k8s.io/v1", "Lease", lease},
	{"rbac.authorization.k8s.io/v1", "Role", role},
	{"rbac.authorization.k8s.io/v1", "RoleBinding", binding},
	{"authentication.k8s.io/v1", "TokenRequest", token},
	{"authentication.k8s.io/v1", "SelfSubjectReview", self_review},
	{"authorization.k8s.io/v1", "SelfSubjectAccessReview", access_review},
	{"authorization.k8s.io/v1", "SelfSubjectRulesReview", rules_review},
};

/* ---- the wire */

struct reader {
	const uint8_t *p, *end;
};

/* One field as it came: number, and a value or bytes. */
struct item {
	unsigned number;
	bool is_bytes;
	uint64_t value;
	struct reader bytes;
};

static bool read_varint(struct reader *r, uint64_t *out)
{
	*out = 0;
	for (unsigned shift = 0; shift < 64 && r->p < r->end; shift += 7) {
		uint8_t b = *r->p++;

		*out |= (uint64_t)(b & 0x7f) << shift;
		if (!(b & 0x80))
			return shift < 63 || b <= 1;
	}
	return false;
}

/* False: not a field. Groups, which are not in use, are none. */
static bool read_item(struct reader *r, struct item *out)
{
	uint64_t key, n = 0;

	if (!read_varint(r, &key) || key >> 3 == 0 || key >> 3 > 536870911)
		return false;
	*out = (struct item){.number = (unsigned)(key >> 3)};
	switch (key & 7) {
	case 0:
		return read_varint(r, &out->value);
	case 1:
		n = 8;
		break;
	case 5:
		n = 4;
		break;
	case 2:
		out->is_bytes = true;
		if (!read_varint(r, &n))
			return false;
		break;
	default:
		return false;
	}
	if (n > (uint64_t)(r->end - r->p))
		return false;
	out->bytes = (struct reader){r->p, r->p + n};
	r->p += n;
	return true;
}

static size_t length(const struct reader *r)
{
	return (size_t)(r->end - r->p);
}

/* ---- values; NULL: malformed */

static struct json_object *text_of(const struct reader *r)
{
	if (!bytes_valid_utf8((const char *)r->p, length(r)) || memchr(r->p, '\0', length(r)))
		return NULL;
	return json_object_new_string_len((const char *)r->p, (int)length(r));
}

static struct json_object *base64_of(const struct reader *r)
{
	cleanup_strbuf struct strbuf b = STRBUF_INIT;
	struct json_object *o;

	bytes_to_b64(&b, r->p, length(r));
	o = json_object_new_string_len(strbuf_str(&b), (int)b.len);
	if (b.data)
		secret_wipe(b.data, b.len);
	return o;
}

/* A time message; "": none was set. */
static struct json_object *time_of(struct reader r, bool micro)
{
	char text[CLOCK_RFC3339_US_LEN] = "";
	int64_t seconds = 0, nanos = 0;
	bool set = r.p < r.end;
	struct item it;

	while (r.p < r.end) {
		if (!read_item(&r, &it))
			return NULL;
		if (it.number == 1)
			seconds = (int64_t)it.value;
		else if (it.number == 2)
			nanos = (int64_t)it.value;
	}
	if (seconds < 0 || seconds > INT64_C(253402300799) || nanos < 0 || nanos > 999999999)
		return set && seconds < 0 ? json_object_new_string("") : NULL; /* year 1: not set */
	if (micro && set)
		clock_format_us(seconds * 1000000 + nanos / 1000, text);
	else if (set)
		clock_format(seconds, text);
	return json_object_new_string(text);
}

static bool read_pair(struct reader r, bool bytes, struct json_object *into)
{
	cleanup_json struct json_object *key = NULL, *value = NULL;
	struct item it;

	while (r.p < r.end) {
		if (!read_item(&r, &it) || !it.is_bytes)
			return false;
		if (it.number == 1) {
			json_object_put(key);
			key = text_of(&it.bytes);
		} else if (it.number == 2) {
			json_object_put(value);
			value = bytes ? base64_of(&it.bytes) : text_of(&it.bytes);
		}
	}
	if (!key)
		return false;
	json_add(into, json_object_get_string(key),
		value ? json_object_get(value) : json_object_new_string(""));
	return true;
}

static struct json_object *member(struct json_object *o, const char *name, bool array)
{
	struct json_object *m = NULL;

	if (!json_object_object_get_ex(o, name, &m))
		json_add(o, name, m = array ? json_arr() : json_obj());
	return m;
}

static struct json_object *read_message(struct reader r, const struct field *fields);

static bool is_empty_text(struct json_object *o)
{
	return json_object_get_string_len(o) == 0;
}

static bool add_number(struct json_object *o, const struct field *f, const struct item *it)
{
	bool is_bool = f->type == BOOL || f->type == BOOL_PTR;

	if (it->is_bytes)
		return false;
	if (it->value || f->type == INT_PTR || f->type == BOOL_PTR)
		json_add(o, f->name,
			is_bool ? json_object_new_boolean(it->value != 0)
				: json_object_new_int64((int64_t)it->value));
	return true;
}

static bool add_value(struct json_object *o, const struct field *f, const struct item *it)
{
	struct json_object *v;

	if (f->type == INT || f->type == INT_PTR || f->type == BOOL || f->type == BOOL_PTR)
		return add_number(o, f, it);
	if (!it->is_bytes)
		return false;
	if (f->type == TEXT_MAP || f->type == BYTES_MAP)
		return read_pair(it->bytes, f->type == BYTES_MAP, member(o, f->name, false));
	v = f->type == OBJECT || f->type == OBJECTS   ? read_message(it->bytes, f->of)
	    : f->type == TIME || f->type == MICROTIME ? time_of(it->bytes, f->type == MICROTIME)
						      : text_of(&it->bytes);
	if (!v)
		return false;
	if (f->type == OBJECTS || f->type == STRINGS)
		json_push(member(o, f->name, true), v);
	else if ((f->type == OBJECT && json_object_object_length(v) == 0) ||
		 ((f->type == STRING || f->type == TIME || f->type == MICROTIME) &&
			 is_empty_text(v)))
		json_object_put(v); /* as omitempty */
	else
		json_add(o, f->name, v);
	return true;
}

/* The tables have no cycle, so neither has this. */
static struct json_object *read_message(struct reader r, const struct field *fields)
{
	cleanup_json struct json_object *o = json_obj();
	struct item it;

	while (r.p < r.end) {
		const struct field *f = fields;

		if (!read_item(&r, &it))
			return NULL;
		while (f->name && f->number != it.number)
			f++;
		if (f->name && !add_value(o, f, &it))
			return NULL;
	}
	return steal_ptr(&o);
}

/* ---- the envelope: runtime.Unknown */

static const struct field type_meta[] = {
	{1, "apiVersion", STRING, NULL}, {2, "kind", STRING, NULL}, END};

static struct json_object *read_object(
	struct json_object *type, const struct reader *raw, struct err *err)
{
	const char *version = json_get_str(type, "apiVersion"), *kind = json_get_str(type, "kind");
	struct json_object *o;
	size_t i = 0;

	while (i < ARRAY_LEN(messages) &&
		(!str_eq(messages[i].version, version) || !str_eq(messages[i].kind, kind)))
		i++;
	if (i == ARRAY_LEN(messages) && str_eq(kind, "DeleteOptions"))
		i = 5; /* clients name the version of what is deleted */
	if (i == ARRAY_LEN(messages)) {
		err_set(err, ERR_NOT_FOUND, "%.80s of %.80s is only read as JSON or YAML",
			kind ? kind : "an object", version ? version : "no version");
		return NULL;
	}
	o = read_message(*raw, messages[i].fields);
	if (!o)
		err_set(err, ERR_INVALID, "the protobuf body is malformed");
	else
		json_add_str(json_add_str(o, "apiVersion", version), "kind", kind);
	return o;
}

struct json_object *apistore_protobuf_read(const char *data, size_t len, struct err *err)
{
	struct reader r = {(const uint8_t *)data, (const uint8_t *)data + len}, raw = {NULL, NULL};
	cleanup_json struct json_object *type = NULL;
	bool ok = len >= 4 && memcmp(data, "k8s", 4) == 0;
	struct item it;

	r.p += ok ? 4 : 0;
	while (ok && r.p < r.end) {
		ok = read_item(&r, &it) && it.is_bytes;
		if (ok && it.number == 1) {
			json_object_put(type);
			type = read_message(it.bytes, type_meta);
			ok = type;
		} else if (ok && it.number == 2) {
			raw = it.bytes;
		} else if (ok && it.number == 3) {
			ok = length(&it.bytes) == 0; /* an encoding */
		}
	}
	if (!ok || !type || !json_get_str(type, "apiVersion")) {
		err_set(err, ERR_INVALID, "the protobuf body is malformed");
		return NULL;
	}
	return read_object(type, &raw, err);
}
