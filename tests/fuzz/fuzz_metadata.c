/* SPDX-License-Identifier: MIT */
/*
 * Values of every type at every place of an object's metadata. Three bytes are a write: how, to which
 * kind, and what stands where in the object that is sent from then on. Whatever was sent: the answer is
 * one of a list, a refusal changes nothing, and metadata that was stored is of its type.
 */
#include "config.h"

#include <stdint.h>

#include "../../src/apireq/decode.h"
#include "tec/apireq/patch.h"
#include "tec/apireq/request.h"
#include "tec/base/json.h"
#include "tec/base/mem.h"
#include "tec/schema/builtin.h"
#include "tec/schema/crd.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define KINDS 2

static struct store_kind kinds[KINDS] = {{.group = "example.io",
						 .resource = "things",
						 .kind = "Thing",
						 .generation = true,
						 .status = true,
						 .custom = true},
	{.group = "", .resource = "configmaps", .kind = "ConfigMap"}};
static const struct store_schema schema = {.kinds = kinds, .n_kinds = KINDS};

static const struct {
	const char *path, *gv;
} of_kind[KINDS] = {{"/apis/example.io/v1/namespaces/ns/things", "example.io/v1"},
	{"/api/v1/namespaces/ns/configmaps", "v1"}};

static const char whole[] =
	"{\"name\":\"a\",\"namespace\":\"ns\",\"generateName\":\"a\",\"selfLink\":\"\",\"generation\":1,"
	"\"creationTimestamp\":null,\"labels\":{\"a\":\"b\"},\"annotations\":{\"a\":\"b\"},"
	"\"finalizers\":[\"x.io/f\"],\"ownerReferences\":[{\"apiVersion\":\"v1\",\"kind\":\"K\","
	"\"name\":\"n\",\"uid\":\"u\",\"controller\":true}],\"managedFields\":[{\"manager\":\"m\","
	"\"operation\":\"Update\",\"apiVersion\":\"v1\",\"fieldsType\":\"FieldsV1\","
	"\"fieldsV1\":{\"f:metadata\":{\"f:labels\":{\"f:a\":{}}}}}]}";

#define LAST "/annotations/kubectl.kubernetes.io~1last-applied-configuration"

static const char *const places[] = {"", "/name", "/generateName", "/namespace", "/selfLink",
	"/uid", "/resourceVersion", "/generation", "/creationTimestamp", "/deletionTimestamp",
	"/deletionGracePeriodSeconds", "/labels", "/labels/a", "/annotations", "/annotations/a",
	LAST, "/ownerReferences", "/ownerReferences/0", "/ownerReferences/-",
	"/ownerReferences/0/apiVersion", "/ownerReferences/0/kind", "/ownerReferences/0/name",
	"/ownerReferences/0/uid", "/ownerReferences/0/controller",
	"/ownerReferences/0/blockOwnerDeletion", "/finalizers", "/finalizers/0", "/finalizers/-",
	"/managedFields", "/managedFields/0", "/managedFields/-", "/managedFields/0/manager",
	"/managedFields/0/operation", "/managedFields/0/apiVersion", "/managedFields/0/time",
	"/managedFields/0/fieldsType", "/managedFields/0/subresource", "/managedFields/0/fieldsV1",
	"/managedFields/0/fieldsV1/f:metadata", "/managedFields/0/fieldsV1/.",
	"/managedFields/0/fieldsV1/k:{}", "/managedFields/0/fieldsV1/v:null", "/unknown"};

static const char *const values[] = {"null", "1", "-1", "1e400", "true", "\"x\"", "\"\"", "\"a\"",
	"\"Apply\"", "\"2026-01-02T03:04:05Z\"", "[]", "{}", "[null]", "[[]]", "[1]", "[\"x\"]",
	"[{}]", "[{},null]", "[{\"a\":null}]", "{\"a\":null}", "{\"a\":1}", "{\"a\":\"b\"}",
	"{\"f:a\":{}}", "{\"k:{\\\"uid\\\":\\\"u\\\"}\":{\".\":{}}}", "{\"i:0\":{},\"v:1\":{}}",
	"\"{\\\"apiVersion\\\":\\\"v1\\\",\\\"metadata\\\":[null]}\""};

static const struct write {
	const char *method, *type, *query;
} writes[] = {{"POST", NULL, ""}, {"POST", NULL, "?dryRun=All&fieldValidation=Strict"},
	{"PUT", NULL, "/a"}, {"PUT", NULL, "/a/status"}, {"DELETE", NULL, "/a"},
	{"PATCH", "application/merge-patch+json", "/a"},
	{"PATCH", "application/merge-patch+json", "/a/status"},
	{"PATCH", "application/strategic-merge-patch+json", "/a"},
	{"PATCH", "application/json-patch+json", "/a"},
	{"PATCH", "application/apply-patch+yaml", "/a?fieldManager=m"},
	{"PATCH", "application/apply-patch+yaml", "/a?fieldManager=kubectl&force=true"},
	{"PATCH", "application/apply-patch+yaml", "/a/status?fieldManager=m"}};

static struct json_object *parsed(const char *text)
{
	struct err err = ERR_INIT;
	struct json_object *o = json_parse(text, strlen(text), &json_limits_object, &err);

	if (err_is_set(&err))
		DIE("%s: %s", text, err.text);
	return o;
}

/* A kind with a schema, made once. */
static void make_kinds(void)
{
	static struct schema_crd *crd;
	static const char text[] =
		"{\"metadata\":{\"name\":\"things.example.io\"},\"spec\":{\"group\":\"example.io\","
		"\"scope\":\"Namespaced\",\"names\":{\"plural\":\"things\",\"singular\":\"thing\","
		"\"kind\":\"Thing\",\"listKind\":\"ThingList\"},"
		"\"versions\":[{\"name\":\"v1\",\"served\":true,\"storage\":true,\"subresources\":{\"status\":{}},"
		"\"schema\":{\"openAPIV3Schema\":{\"type\":\"object\"}}}]}}";
	struct err err = ERR_INIT;
	cleanup_json struct json_object *o = crd ? NULL : parsed(text);

	if (crd)
		return;
	crd = schema_crd_new(o, &err);
	if (!crd)
		DIE("the definition is refused: %s", err.text);
	kinds[0].schema = &crd->kind;
	kinds[1].schema = schema_builtin_kind("", "v1", "ConfigMap");
}

static void check_stored(struct store_objects *s, size_t kind)
{
	const struct store_key key = {kind ? "configmaps" : "things.example.io", "ns", "a"};
	cleanup_json struct json_object *o = store_objects_get(s, &key), *again = json_copy(o);
	cleanup_schema_texts struct schema_texts unknown = {NULL, 0, 0};
	struct err err = ERR_INIT;

	if (!o)
		return;
	if (apireq_decode(NULL, again, &unknown, &err) < 0 || unknown.n > 0)
		DIE("metadata that cannot be: %s", err.text);
	if (!json_object_equal(json_get(o, "metadata"), json_get(again, "metadata")))
		DIE("metadata that reads as something else: %s",
			json_object_to_json_string(json_get(o, "metadata")));
}

static void send(
	struct store_objects *s, const struct write *w, size_t kind, struct json_object *body)
{
	static const int codes[] = {200, 201, 400, 404, 405, 409, 415, 422, 500};
	cleanup_free char *path = xasprintf("%s%s", of_kind[kind].path, w->query),
			  *text = json_text(body);
	cleanup_apireq_request_info struct apireq_request_info t;
	uint64_t rv = store_objects_rv(s);
	struct apireq_answer a;
	struct err err = ERR_INIT;
	size_t i = 0;

	if (apireq_request_info_parse(path, &t, &err) < 0)
		DIE("%s", err.text);
	a = apireq_request(s, &t,
		&(const struct apireq_request){.method = w->method,
			.content_type = w->type,
			.body = text,
			.len = strlen(text)});
	while (i < ARRAY_LEN(codes) && codes[i] != a.code)
		i++;
	if (i == ARRAY_LEN(codes) || (a.code == 500 && strstr(a.body, "database")))
		DIE("%s %s %s: %s", w->method, path, text, a.body);
	if (a.code >= 300 && store_objects_rv(s) != rv)
		DIE("a refusal that changed something: %s", a.body);
	apireq_answer_fini(&a);
	if (store_objects_commit(s, &err) < 0)
		DIE("not stored: %s", err.text);
	check_stored(s, kind);
}

/* The operation that puts a value at a place, as a JSON patch. */
static struct json_object *placing(uint8_t where, uint8_t what)
{
	cleanup_free char *text =
		xasprintf("[{\"op\":\"add\",\"path\":\"/metadata%s\",\"value\":%s}]",
			places[where % ARRAY_LEN(places)], values[what % ARRAY_LEN(values)]);

	return parsed(text);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct err err = ERR_INIT;
	struct store_db *db = store_db_open(&(const struct store_db_conf){0}, &err);
	struct json_object *sent = json_add(json_obj(), "metadata", parsed(whole));
	struct store_objects *s;

	if (!db)
		DIE("%s", err.text);
	make_kinds();
	s = store_objects_new(db, &schema, NULL);
	for (; size >= 3; data += 3, size -= 3) {
		const struct write *w = &writes[data[0] % ARRAY_LEN(writes)];
		size_t kind = data[0] / 64 % KINDS;
		cleanup_json struct json_object *patch = placing(data[1], data[2]);
		bool by_patch = str_eq(w->type, "application/json-patch+json");

		json_add_str(sent, "kind", kinds[kind].kind);
		json_add_str(sent, "apiVersion", of_kind[kind].gv);
		(void)!apireq_patch_json(&sent, patch, &err);
		err_clear(&err);
		send(s, w, kind, by_patch ? patch : sent);
		if (data[0] >= 128)
			json_add(sent, "metadata", parsed(whole));
	}
	json_object_put(sent);
	store_objects_free(s);
	return 0;
}
