/* SPDX-License-Identifier: MIT */
#include "config.h"

#include <dirent.h>
#include <stdlib.h>

#include "apireq/things.h"

#include "tec/apihttp/protobuf.h"
#include "tec/base/bytes.h"
#include "tec/base/file.h"

static void put_length(struct strbuf *out, size_t n)
{
	for (; n > 0x7f; n >>= 7)
		strbuf_addc(out, (char)((n & 0x7f) | 0x80));
	strbuf_addc(out, (char)n);
}

/* The file of a sample with this ending instead of its own; the caller frees. */
static char *read_sample(const char *dir, const char *name, const char *ending, size_t *len)
{
	cleanup_free char *path =
		xasprintf("%s/%.*s%s", dir, (int)(strrchr(name, '.') - name), name, ending);
	struct err err = ERR_INIT;
	char *data = file_read(path, 1u << 20, len, NULL, &err);

	cr_assert_not_null(data, "%s: %s", path, err.text);
	return data;
}

/* A body as kubectl sends it; `raw` is the object's own message. */
static void envelope(
	struct strbuf *out, const char *version, const char *kind, const char *raw, size_t len)
{
	cleanup_strbuf struct strbuf type = STRBUF_INIT;

	strbuf_addc(&type, 0x0a);
	strbuf_addc(&type, (char)strlen(version));
	strbuf_adds(&type, version);
	strbuf_addc(&type, 0x12);
	strbuf_addc(&type, (char)strlen(kind));
	strbuf_adds(&type, kind);
	strbuf_add(out, "k8s\0\x0a", 5);
	strbuf_addc(out, (char)type.len);
	strbuf_add(out, type.data, type.len);
	strbuf_addc(out, 0x12);
	put_length(out, len);
	strbuf_add(out, raw, len);
	strbuf_add(out, "\x1a\0\"\0", 4);
}

/* What kubectl 1.34 sent for: create configmap a --from-literal=x=y. */
#define CONFIGMAP_A                                                                                \
	"\x0a\x0f\x0a\x01"                                                                         \
	"a\x12\0\x1a\0\"\0*\0002\0008\0B\0\x12\x06\x0a\x01x\x12\x01y"

Test(apihttp_protobuf, a_configmap_is_its_json)
{
	cleanup_strbuf struct strbuf b = STRBUF_INIT;
	cleanup_json struct json_object *o = NULL;
	struct err err = ERR_INIT;

	envelope(&b, "v1", "ConfigMap", CONFIGMAP_A, sizeof(CONFIGMAP_A) - 1);
	o = apihttp_protobuf_read(b.data, b.len, &err);
	cr_assert_not_null(o, "%s", err.text);
	same_json(o,
		"{\"metadata\":{\"name\":\"a\"},\"data\":{\"x\":\"y\"},\"apiVersion\":\"v1\",\"kind\":\"ConfigMap\"}");
}

Test(apihttp_protobuf, values_are_what_json_would_say)
{
	static const struct {
		const char *version, *kind, *raw;
		size_t len;
		const char *want;
	} cases[] = {
#define RAW(t) t, sizeof(t) - 1
		{"v1", "Secret", RAW("\x0a\0\x12\x07\x0a\x01k\x12\x02\xff\0\x1a\x06Opaque(\0"),
			"{\"metadata\":{},\"data\":{\"k\":\"/wA=\"},\"type\":\"Opaque\",\"immutable\":false,\"apiVersion\":\"v1\",\"kind\":\"Secret\"}"},
		{"v1", "Secret", RAW("\x12\x03\x0a\x01k"),
			"{\"data\":{\"k\":\"\"},\"apiVersion\":\"v1\",\"kind\":\"Secret\"}"},
		{"v1", "ConfigMap",
			RAW("\x0a\x11"
			    "B\x08\x08\x80\x94\xeb\xdc\x06\x10\0r\x01"
			    "f8\x05P\0"),
			"{\"metadata\":{\"creationTimestamp\":\"2027-03-17T17:59:28Z\",\"finalizers\":[\"f\"],\"generation\":5,\"deletionGracePeriodSeconds\":0},\"apiVersion\":\"v1\",\"kind\":\"ConfigMap\"}"},
		{"v1", "ConfigMap", RAW("\x7a\x02zz\x80\x01\x05"),
			"{\"apiVersion\":\"v1\",\"kind\":\"ConfigMap\"}"},
		{"rbac.authorization.k8s.io/v1", "RoleBinding",
			RAW("\x0a\0\x12\x0a\x0a\x04User\x12\0\x1a\x02u"), NULL},
		{"rbac.authorization.k8s.io/v1", "RoleBinding",
			RAW("\x0a\0\x12\x0b\x0a\x04User\x12\0\x1a\x01u"),
			"{\"metadata\":{},\"subjects\":[{\"kind\":\"User\",\"name\":\"u\"}],\"apiVersion\":\"rbac.authorization.k8s.io/v1\",\"kind\":\"RoleBinding\"}"},
		{"example.io/v1", "DeleteOptions", RAW("\x08\0\x1a\0"), NULL},
		{"example.io/v1", "DeleteOptions", RAW("\x08\0\"\x06Orphan"),
			"{\"gracePeriodSeconds\":0,\"propagationPolicy\":\"Orphan\",\"apiVersion\":\"example.io/v1\",\"kind\":\"DeleteOptions\"}"},
	};

	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		cleanup_strbuf struct strbuf b = STRBUF_INIT;
		cleanup_json struct json_object *o = NULL;
		struct err err = ERR_INIT;

		envelope(&b, cases[i].version, cases[i].kind, cases[i].raw, cases[i].len);
		o = apihttp_protobuf_read(b.data, b.len, &err);
		cr_expect_eq(o != NULL, cases[i].want != NULL, "%zu: %s", i, err.text);
		if (o && cases[i].want)
			same_json(o, cases[i].want);
	}
}

Test(apihttp_protobuf, hostile_bytes_are_refused)
{
	static const struct {
		const char *data;
		size_t len;
	} cases[] = {
		{RAW("")},
		{RAW("k8s")},
		{RAW("k8s\0")},
		{RAW("{}")},
		{RAW("k8s\0\x0a\x7f")},
		{RAW("k8s\0\x0a\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01")},
		{RAW("k8s\0\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01")},
		{RAW("k8s\0\x0b\x0c")},
		{RAW("k8s\0\x0a\x0f\x12\x0d"
		     "DeleteOptions\x12\0")}, /* of no version */
		{RAW("k8s\0\x02\0")},
		{RAW("k8s\0\x08\x01")},
		{RAW("k8s\0\x0a\x04\x0a\x02\xff\xfe")},
		{RAW("k8s\0\x0a\x04\x0a\x02v\0")},
		{RAW("k8s\0\x0a\x0f\x0a\x02v1\x12\x09"
		     "ConfigMap\x12\x04\x0a\x02\x0a\x05")},
		{RAW("k8s\0\x0a\x0f\x0a\x02v1\x12\x09"
		     "ConfigMap\x12\x02\x12\0")},
		{RAW("k8s\0\x0a\x0f\x0a\x02v1\x12\x09"
		     "ConfigMap\x12\x02\x08\x01")},
		{RAW("k8s\0\x0a\x0f\x0a\x02v1\x12\x09"
		     "ConfigMap\x1a\x04gzip")},
	};

	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		struct err err = ERR_INIT;

		cr_expect_null(apihttp_protobuf_read(cases[i].data, cases[i].len, &err), "%zu", i);
		cr_expect_eq(err.kind, ERR_INVALID, "%zu", i);
	}
}

/* Small bytes that would be a large object. */
Test(apihttp_protobuf, what_a_body_may_cost_is_bounded)
{
	cleanup_strbuf struct strbuf many = STRBUF_INIT;
	cleanup_json struct json_object *o = NULL;
	struct err err = ERR_INIT;

	for (unsigned i = 0; i < 300000; i++)
		strbuf_add(&many, "\x12\0", 2); /* an empty subject */
	{
		cleanup_strbuf struct strbuf b = STRBUF_INIT;

		err = (struct err)ERR_INIT;
		envelope(&b, "rbac.authorization.k8s.io/v1", "RoleBinding", many.data, 200000);
		o = apihttp_protobuf_read(b.data, b.len, &err);
		cr_expect_not_null(o, "100,000 of them are read: %s", err.text);
		strbuf_fini(&b);
		envelope(&b, "rbac.authorization.k8s.io/v1", "RoleBinding", many.data, many.len);
		cr_expect_null(apihttp_protobuf_read(b.data, b.len, &err));
	}
}

/*
 * tests/data/protobuf: what Kubernetes' own encoders make of one object, as protobuf and as JSON, with
 * every member of every type that the table names (tec-test-clients protobuf-samples DIR).
 */
Test(apihttp_protobuf, samples_of_every_member_are_their_json)
{
	cleanup_free char *dir = xasprintf("%s/protobuf", getenv("TEST_DATA"));
	DIR *d = opendir(dir);
	unsigned n = 0;

	cr_assert_not_null(d, "%s", dir);
	for (struct dirent *e; (e = readdir(d));) {
		cleanup_json struct json_object *have = NULL, *want = NULL;
		cleanup_free char *wire = NULL, *text = NULL;
		size_t wire_len = 0, text_len = 0, len = strlen(e->d_name);
		struct err err = ERR_INIT;

		if (len < 4 || strcmp(e->d_name + len - 3, ".pb") != 0)
			continue;
		wire = read_sample(dir, e->d_name, ".pb", &wire_len);
		text = read_sample(dir, e->d_name, ".json", &text_len);
		want = json_parse(text, text_len, &json_limits_object, &err);
		cr_assert_not_null(want, "%s: %s", e->d_name, err.text);
		have = apihttp_protobuf_read(wire, wire_len, &err);
		cr_expect_not_null(have, "%s: %s", e->d_name, err.text);
		if (have && !json_object_equal(have, want))
			cr_expect_fail("%s:\n%s\nwanted:\n%s", e->d_name,
				json_object_to_json_string(have), json_object_to_json_string(want));
		n++;
	}
	closedir(d);
	cr_expect_geq(n, 20, "%u", n);
}

Test(apihttp_protobuf, what_kubectl_does_not_send_is_not_read)
{
	static const char *const kinds[][3] = {
		{"apps/v1", "DaemonSet", "DaemonSet of apps/v1 is accepted only as JSON or YAML"},
		{"v1", "Event", "Event of v1 is accepted only as JSON or YAML"},
		{"events.k8s.io/v1", "Event",
			"Event of events.k8s.io/v1 is accepted only as JSON or YAML"},
		{"v1", "Namespace", "Namespace of v1 is accepted only as JSON or YAML"}};

	for (size_t i = 0; i < ARRAY_LEN(kinds); i++) {
		cleanup_strbuf struct strbuf b = STRBUF_INIT;
		struct err err = ERR_INIT;

		envelope(&b, kinds[i][0], kinds[i][1], "", 0);
		cr_expect_null(apihttp_protobuf_read(b.data, b.len, &err));
		cr_expect_eq(err.kind, ERR_NOT_FOUND);
		cr_expect_str_eq(err.text, kinds[i][2]);
	}
}
