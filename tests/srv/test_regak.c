/* SPDX-License-Identifier: MIT */
/* Port 8001 over real sockets, with the in-memory API behind it. */
#include "config.h"

#include "srv/srv_testing.h"
#include "tec/pki/spki.h"

TestSuite(srv_regak, .timeout = SUITE_LIMIT);

#define UUID_1   "3f1c2b9a-6d0e-4c53-9a7b-2f8e5d104c6f"
#define UUID_2   "00000000-0000-4000-8000-000000000001"
#define SUCCESS  "{\"status\":\"success\"}"
#define ERROR(m) "{\"status\":\"error\",\"message\":\"" m "\"}"
#define KNOWN    ERROR("Public key already registered")
#define MOVED                                                                                      \
	ERROR("Public key already registered for another machine; an administrator can rebind it " \
	      "by deleting the old AttestationKey")
#define AWAY ERROR("The cluster API is unavailable; try again later")

static void name_of(const char *pem, char out[MODEL_AK_NAME_LEN + 1])
{
	struct pki_spki spki;
	struct err err = ERR_INIT;

	cr_assert_eq(pki_spki_parse_pem(pem, strlen(pem), &spki, &err), 0, "%s", err.text);
	model_ak_name(spki.sha256, MODEL_AK_NAME, out);
}

static const struct fake_request *only_post(const struct rig *r)
{
	const struct fake_request *found = NULL;

	for (size_t i = 0; i < fake_transport_requests(r->ft); i++)
		if (str_eq(fake_transport_request(r->ft, i)->method, "POST")) {
			cr_assert_null(found, "more than one POST");
			found = fake_transport_request(r->ft, i);
		}
	cr_assert_not_null(found, "no POST");
	return found;
}

Test(srv_regak, makes_the_key_under_a_name_that_follows_from_it)
{
	cleanup_json struct json_object *ak = NULL, *pem = json_object_new_string(KEY_A);
	cleanup_free char *want = NULL, *text = NULL;
	char name[MODEL_AK_NAME_LEN + 1];
	struct cli_reply a;
	struct rig r;

	name_of(KEY_A, name);
	rig_open(&r, OPEN_SPEC);
	rig_register(&r, KEY_A, UUID_1, &a);
	rig_expect(&a, 201, 0, SUCCESS, "first");
	cr_assert_str_eq(only_post(&r)->path, AKS);
	ak = fake_request_json(only_post(&r));
	text = json_text(ak);
	want = xasprintf("{\"apiVersion\":\"trusted-execution-clusters.io/v1alpha1\",\"kind\":"
			 "\"AttestationKey\",\"metadata\":{\"name\":\"%s\",\"annotations\":{"
			 "\"trusted-execution-clusters.io/created-by\":\"listener\","
			 "\"trusted-execution-clusters.io/machine-seen\":\"none\"}},\"spec\":{"
			 "\"publicKey\":%s,\"uuid\":\"" UUID_1 "\"}}",
		name, json_object_to_json_string_ext(pem, JSON_C_TO_STRING_NOSLASHESCAPE));
	cr_assert_str_eq(text, want);
	rig_close(&r);
}

/* The same key in other clothes is stored in one form. */
Test(srv_regak, stores_the_canonical_pem_and_accepts_both_names_and_methods)
{
	static const char one_line[] = "-----BEGIN PUBLIC KEY-----\\n%s\\n-----END PUBLIC KEY-----";
	cleanup_strbuf struct strbuf crlf = STRBUF_INIT, joined = STRBUF_INIT;
	cleanup_free char *long_pem = NULL;
	const char *const bodies[] = {
		"{\"public_key\":\"%s\"}",
		"{\"attestation_key\":\"%s\"}",
		"{\"attestation_key\":\"%s\",\"uuid\":null}",
		" {\"more\":[1,{\"public_key\":\"x\"}],\"platform\":null,\"public_key\":\"%s\"}\n",
	};

	for (const char *p = KEY_A; *p; p++)
		strbuf_adds(&crlf, *p == '\n' ? "\\r\\n" : (char[]){*p, '\0'});
	for (const char *p = KEY_A_LINES; *p; p++)
		if (*p != '\n')
			strbuf_addc(&joined, *p);
	long_pem = xasprintf(one_line, strbuf_str(&joined));
	for (size_t i = 0; i < 2 * ARRAY_LEN(bodies); i++) {
		const char *pem = i % 2 ? strbuf_str(&crlf) : long_pem;
		cleanup_strbuf struct strbuf body = STRBUF_INIT;
		cleanup_free char *text = NULL;
		cleanup_json struct json_object *ak = NULL;
		const char *form = bodies[i / 2], *at = strstr(form, "%s");
		struct rig r;

		strbuf_add(&body, form, (size_t)(at - form));
		strbuf_adds(&body, pem);
		strbuf_adds(&body, at + 2);
		text = rig_put_text(i % 2 ? "PUT" : "POST", strbuf_str(&body), body.len,
			i % 3 ? "application/json; charset=utf-8" : NULL);
		rig_open(&r, OPEN_SPEC);
		cr_assert_eq(rig_status(&r, r.ak_port, text), 201, "%s", text);
		ak = fake_request_json(only_post(&r));
		cr_assert_str_eq(json_get_str(ak, "spec/publicKey"), KEY_A);
		cr_assert_null(json_get(ak, "spec/uuid"));
		rig_close(&r);
	}
}

#define SENTENCE(what) what "; " KEY_WANTED
#define KEY_WANTED                                                                                 \
	"send one PEM block \\\"PUBLIC KEY\\\" (SubjectPublicKeyInfo) with an RSA public key of "  \
	"2048 to 4096 bits with exponent 65537."
#define JSON_BAD(what) "The body is not valid JSON: JSON: " what

/* Bodies that are refused with 400; %K stands for a good key. */
static const struct bad {
	const char *body, *message;
} bad[] = {
	{"", JSON_BAD("expected a value at byte 0")},
	{"x", JSON_BAD("expected a value at byte 0")},
	{"{", NULL},
	{"{\"public_key\":\"%K\"} x", NULL},
	{"{\"public_key\":\"%K\",}", NULL},
	{"{'public_key':'a'}", NULL},
	{"{\"public_key\":\"\xff\xfe\"}", JSON_BAD("invalid UTF-8")},
	{"{\"public_key\":\"\xed\xa0\x80\"}", JSON_BAD("invalid UTF-8")},
	{"{\"public_key\":\"a\\u0000b\"}", NULL},
	{"{\"public_key\":\"a\nb\"}", NULL},
	{"{\"public_key\":\"%K\",\"public_key\":\"%K\"}", NULL},
	{"{\"public_key\":\"%K\",\"public\\u005fkey\":\"%K\"}", NULL},
	{"{\"public_key\":\"%K\",\"a\":[[[[[[[[1]]]]]]]]}", NULL},
	{"null", JSON_BAD("the value is null")},
	{"[]", "The body must be a JSON object"},
	{"\"%K\"", "The body must be a JSON object"},
	{"17", "The body must be a JSON object"},
	{"{}", "public_key is missing: a PEM \\\"PUBLIC KEY\\\" string"},
	{"{\"public_key\":null}", "public_key is missing: a PEM \\\"PUBLIC KEY\\\" string"},
	{"{\"public_key\":5}", "public_key is missing: a PEM \\\"PUBLIC KEY\\\" string"},
	{"{\"public_key\":[\"%K\"]}", "public_key is missing: a PEM \\\"PUBLIC KEY\\\" string"},
	{"{\"public_key\":{\"a\":\"%K\"}}",
		"public_key is missing: a PEM \\\"PUBLIC KEY\\\" string"},
	{"{\"Public_Key\":\"%K\"}", "public_key is missing: a PEM \\\"PUBLIC KEY\\\" string"},
	{"{\"public_key\":5,\"attestation_key\":\"%K\"}",
		"public_key and attestation_key are synonyms: send only one of them"},
	{"{\"public_key\":\"%K\",\"attestation_key\":\"%K\"}",
		"public_key and attestation_key are synonyms: send only one of them"},
	{"{\"public_key\":\"%K\",\"uuid\":5}", "uuid must be a lower-case UUID"},
	{"{\"public_key\":\"%K\",\"uuid\":\"\"}", "uuid must be a lower-case UUID"},
	{"{\"public_key\":\"%K\",\"uuid\":\"3F1C2B9A-6D0E-4C53-9A7B-2F8E5D104C6F\"}",
		"uuid must be a lower-case UUID"},
	{"{\"public_key\":\"%K\",\"uuid\":\"" UUID_1 "x\"}", "uuid must be a lower-case UUID"},
	{"{\"public_key\":\"%K\",\"uuid\":\"../../secrets/trustee-auth-0000000000\"}",
		"uuid must be a lower-case UUID"},
	{"{\"public_key\":\"\"}", SENTENCE("The public key is empty")},
	{"{\"public_key\":\"hunter2\"}", SENTENCE("The public key does not begin with a PEM line")},
	{"{\"public_key\":\"%K%K\"}", NULL},
	{"{\"public_key\":\"-----BEGIN PRIVATE KEY-----\\nTUlJ\\n-----END PRIVATE KEY-----\\n\"}",
		"This is a private key and must stay on its machine; " KEY_WANTED},
};

/* Replaces %K in form by a PEM text with \n escaped. */
static char *fill(const char *form, const char *pem)
{
	struct strbuf b = STRBUF_INIT;

	for (; *form; form++) {
		if (form[0] != '%' || form[1] != 'K') {
			strbuf_addc(&b, *form);
			continue;
		}
		for (const char *p = pem; *p; p++)
			strbuf_adds(&b, *p == '\n' ? "\\n" : (char[]){*p, '\0'});
		form++;
	}
	return strbuf_steal(&b);
}

static void expect_400(struct rig *r, const char *body, size_t len, const char *message)
{
	cleanup_free char *want =
		message ? xasprintf("{\"status\":\"error\",\"message\":\"%s\"}", message) : NULL;
	struct cli_reply a;

	rig_put(r, body, len, &a);
	cr_assert_eq(a.status, 400, "%d for %s", a.status, body);
	cr_assert(str_starts(a.body, "{\"status\":\"error\",\"message\":\"") &&
			  str_ends(a.body, "\"}"),
		"%s", a.body);
	cr_assert(!want || str_eq(a.body, want), "%s\nnot %s", a.body, want);
	cr_assert(
		!strstr(a.body, "MII") && !strstr(a.body, "hunter2") && !strstr(a.body, "secrets"),
		"input in %s", a.body);
	cli_reply_fini(&a);
}

Test(srv_regak, refuses_malformed_bodies_without_touching_the_api)
{
	cleanup_strbuf struct strbuf many = STRBUF_INIT;
	struct rig r;

	rig_open(&r, OPEN_SPEC);
	for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
		cleanup_free char *body = fill(bad[i].body, KEY_A);

		expect_400(&r, body, strlen(body), bad[i].message);
	}
	expect_400(&r, "{\"public_key\":\"a\0b\"}", 20, NULL);
	expect_400(&r, "{}\0", 3, NULL);
	strbuf_adds(&many, "{\"a\":[0");
	for (int i = 0; i < 256; i++)
		strbuf_adds(&many, ",0");
	strbuf_adds(&many, "]}");
	expect_400(&r, many.data, many.len, NULL);
	cr_assert_eq(fake_transport_requests(r.ft), 0);
	cr_assert(!strstr(strbuf_str(&r.log), "hunter2"));
	rig_close(&r);
}

Test(srv_regak, refuses_keys_that_trustee_could_not_verify)
{
	static const struct {
		const char *pem, *message;
	} table[] = {
		{KEY_EC, SENTENCE("This is an elliptic curve key, which Trustee cannot verify")},
		{KEY_1024, SENTENCE("The RSA key has 1024 bits")},
		{KEY_E3, SENTENCE("The RSA key's exponent is not 65537")},
	};
	struct rig r;

	rig_open(&r, OPEN_SPEC);
	for (size_t i = 0; i < ARRAY_LEN(table); i++) {
		cleanup_free char *body = rig_key_body(table[i].pem, UUID_1);

		expect_400(&r, body, strlen(body), table[i].message);
	}
	cr_assert_eq(fake_transport_requests(r.ft), 0);
	rig_close(&r);
}

Test(srv_regak, bodies_may_have_16_kib)
{
	cleanup_free char *key = fill("{\"public_key\":\"%K\",\"pad\":\"", KEY_A);
	cleanup_strbuf struct strbuf body = STRBUF_INIT;
	struct cli_reply a;
	struct rig r;

	strbuf_adds(&body, key);
	while (body.len < 16384 - 2)
		strbuf_addc(&body, 'x');
	strbuf_adds(&body, "\"}");
	rig_open(&r, OPEN_SPEC);
	rig_put(&r, body.data, body.len, &a);
	rig_expect(&a, 201, 0, SUCCESS, "16384 bytes");
	strbuf_addc(&body, ' ');
	rig_put(&r, body.data, body.len, &a);
	rig_expect(&a, 413, 0, ERROR("the body is too large"), "16385 bytes");
	cr_assert_eq(rig_posts(&r), 1);
	rig_close(&r);
}

Test(srv_regak, heads_that_are_refused)
{
	static const struct {
		const char *text;
		int status;
		const char *body, *allow;
	} table[] = {
		{"GET /register-ak HTTP/1.1\r\nHost: x\r\n\r\n", 405,
			ERROR("allowed methods: POST, PUT"), "POST, PUT"},
		{"HEAD /register-ak HTTP/1.1\r\nHost: x\r\n\r\n", 405, NULL, "POST, PUT"},
		{"PUT / HTTP/1.1\r\nHost: x\r\nContent-Length: 0\r\n\r\n", 404,
			ERROR("no such path"), NULL},
		{"PUT /register-ak HTTP/1.1\r\nHost: x\r\n\r\n", 411,
			ERROR("a Content-Length is required"), NULL},
		{"PUT /register-ak HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n", 411,
			ERROR("a Content-Length is required; Transfer-Encoding is not accepted"),
			NULL},
		{"PUT /register-ak HTTP/1.1\r\nHost: x\r\nContent-Type: text/plain\r\n"
		 "Content-Length: 2\r\n\r\n{}",
			415, ERROR("the body must be application/json"), NULL},
		{"PUT /register-ak HTTP/1.1\r\nHost: x\r\nContent-Length: 2\r\nContent-Length: "
		 "2\r\n\r\n{}",
			400, ERROR("malformed request"), NULL},
		{"BREW /register-ak HTTP/1.1\r\nHost: x\r\n\r\n", 501, ERROR("unknown method"),
			NULL},
	};
	struct rig r;

	rig_open(&r, OPEN_SPEC);
	for (size_t i = 0; i < ARRAY_LEN(table); i++) {
		const char *allow;
		struct cli_reply a;

		rig_ask(&r, r.ak_port, table[i].text, &a);
		allow = cli_header(&a, "Allow");
		cr_assert(str_eq(allow, table[i].allow), "Allow: %s", allow);
		if (table[i].body)
			rig_expect(&a, table[i].status, 0, table[i].body, table[i].text);
		else
			cr_assert_eq(a.status, table[i].status);
		cli_reply_fini(&a);
	}
	cr_assert_eq(rig_posts(&r), 0);
	rig_close(&r);
}

Test(srv_regak, refuses_what_the_cluster_does_not_allow)
{
	static const struct {
		const char *spec;
		unsigned retry_s;
		const char *body;
	} table[] = {
		{NULL, 30, ERROR("No TrustedExecutionCluster is installed")},
		{"{\"registration\":{\"mode\":\"Token\"}}", 60,
			ERROR("registration.mode Token has no effect in this version and is not "
			      "served")},
		{"{\"registration\":{\"endorsement\":\"Required\"}}", 60,
			ERROR("registration.endorsement Required has no effect in this version and "
			      "is not served")},
		{"{\"trustee\":{\"plaintext\":\"Refuse\"}}", 5,
			ERROR("The cluster refuses plain HTTP and names no TLS Secret for this "
			      "listener")},
	};

	for (size_t i = 0; i < ARRAY_LEN(table); i++) {
		struct cli_reply a;
		struct rig r;

		rig_open(&r, table[i].spec);
		rig_register(&r, KEY_A, UUID_1, &a);
		rig_expect(&a, 503, table[i].retry_s, table[i].body, table[i].body);
		cr_assert_eq(rig_posts(&r), 0);
		rig_close(&r);
	}
}

Test(srv_regak, manual_mode_and_no_address_still_take_keys)
{
	struct rig r;

	rig_open(&r, "{\"registration\":{\"mode\":\"Manual\"}}");
	cr_assert_eq(rig_register_status(&r, KEY_A, UUID_1), 201);
	rig_close(&r);
}

Test(srv_regak, known_keys_are_answered_from_the_cache)
{
	struct cli_reply a;
	struct rig r;

	rig_open(&r, OPEN_SPEC);
	cr_assert_eq(rig_register_status(&r, KEY_A, UUID_1), 201);
	cr_assert_eq(rig_register_status(&r, KEY_B, NULL), 201);
	fake_transport_forget(r.ft);
	rig_register(&r, KEY_A, UUID_1, &a);
	rig_expect(&a, 409, 0, KNOWN, "same uuid");
	rig_register(&r, KEY_A, NULL, &a);
	rig_expect(&a, 409, 0, KNOWN, "no uuid asked");
	rig_register(&r, KEY_B, NULL, &a);
	rig_expect(&a, 409, 0, KNOWN, "never a uuid");
	rig_register(&r, KEY_A, UUID_2, &a);
	rig_expect(&a, 409, 0, MOVED, "another uuid, no Machine");
	cr_assert_eq(fake_transport_requests(r.ft), 0);
	rig_close(&r);
}

Test(srv_regak, a_key_under_a_random_name_is_known_too)
{
	cleanup_json struct json_object *o = json_obj();
	struct cli_reply a;
	struct rig r;

	rig_open(&r, OPEN_SPEC);
	json_add(o, "metadata", json_add_str(json_obj(), "name", "ak-x7k2p"));
	json_add(o, "spec",
		json_add_str(json_add_str(json_obj(), "publicKey", KEY_A), "uuid", UUID_1));
	fake_api_put_json(r.api, &kobj_ak, NS, json_copy(o));
	loop_drain(r.loop);
	fake_transport_forget(r.ft);
	rig_register(&r, KEY_A, UUID_1, &a);
	rig_expect(&a, 409, 0, KNOWN, "by SPKI");
	cr_assert_eq(fake_transport_requests(r.ft), 0);
	rig_close(&r);
}

/* ---- the same key without uuid and with one */

Test(srv_regak, a_key_without_uuid_does_not_block_the_same_key_with_one)
{
	char name[MODEL_AK_NAME_LEN + 1];
	struct cli_reply a;
	struct rig r;

	for (int lag = 0; lag < 2; lag++) {
		rig_open(&r, OPEN_SPEC);
		fake_api_hold_watches(r.api, lag);
		cr_assert_eq(rig_register_status(&r, KEY_A, NULL), 201, "a stranger");
		cr_assert_eq(rig_register_status(&r, KEY_A, UUID_1), 201, "the node");
		rig_register(&r, KEY_A, UUID_1, &a);
		rig_expect(&a, 409, 0, KNOWN, "the node again");
		rig_register(&r, KEY_A, UUID_2, &a);
		rig_expect(&a, 409, 0, MOVED, "somebody with another uuid");
		rig_register(&r, KEY_A, NULL, &a);
		rig_expect(&a, 409, 0, KNOWN, "the stranger again");
		name_of(KEY_A, name);
		cr_assert_str_eq(
			json_get_str(fake_api_get(r.api, &kobj_ak, NS, name), "spec/uuid"), UUID_1);
		cr_assert_eq(fake_api_count(r.api, &kobj_ak, NS), 2);
		fake_api_hold_watches(r.api, false);
		loop_drain(r.loop);
		rig_close(&r);
	}
}

Test(srv_regak, a_key_with_uuid_is_the_same_key_without_one)
{
	struct cli_reply a;
	struct rig r;

	rig_open(&r, OPEN_SPEC);
	cr_assert_eq(rig_register_status(&r, KEY_A, UUID_1), 201);
	rig_register(&r, KEY_A, NULL, &a);
	rig_expect(&a, 409, 0, KNOWN, "a stranger, later");
	rig_close(&r);
}

/* As version 0.1.0 named it; the cache knows it, or it does not yet. */
Test(srv_regak, a_name_that_a_key_without_uuid_took_has_a_spare)
{
	char name[MODEL_AK_NAME_LEN + 1], spare[MODEL_AK_NAME_LEN + 8];
	struct cli_reply a;
	struct rig r;

	name_of(KEY_A, name);
	snprintf(spare, sizeof(spare), "%s-uuid", name);
	for (int lag = 0; lag < 2; lag++) {
		rig_open(&r, OPEN_SPEC);
		fake_api_hold_watches(r.api, lag);
		fake_api_put_json(r.api, &kobj_ak, NS, model_ak_new_json(name, KEY_A, NULL));
		loop_drain(r.loop);
		cr_assert_eq(rig_register_status(&r, KEY_A, UUID_1), 201);
		cr_assert_str_eq(
			json_get_str(fake_api_get(r.api, &kobj_ak, NS, spare), "spec/uuid"),
			UUID_1);
		rig_register(&r, KEY_A, UUID_1, &a);
		rig_expect(&a, 409, 0, KNOWN, "again");
		fake_api_hold_watches(r.api, false);
		loop_drain(r.loop);
		rig_close(&r);
	}
}

/* ---- which Machine was there */

static const char *seen_on(struct rig *r, const char *pem)
{
	char name[MODEL_AK_NAME_LEN + 1];

	name_of(pem, name);
	return kobj_annotation(
		fake_api_get(r->api, &kobj_ak, NS, name), MODEL_MACHINE_SEEN_ANNOTATION);
}

static const char *uid_of(struct rig *r, const char *machine)
{
	return json_get_str(fake_api_get(r->api, &kobj_machine, NS, machine), "metadata/uid");
}

Test(srv_regak, notes_the_machine_that_it_saw)
{
	struct rig r;

	rig_open(&r, OPEN_SPEC);
	fake_api_put(r.api, &kobj_machine, NS,
		"{\"metadata\":{\"name\":\"by-hand\"},\"spec\":{\"id\":\"" UUID_1 "\"}}");
	loop_drain(r.loop);
	fake_transport_forget(r.ft);
	cr_assert_eq(rig_register_status(&r, KEY_A, UUID_1), 201);
	cr_assert_str_eq(seen_on(&r, KEY_A), uid_of(&r, "by-hand"));
	cr_assert_eq(fake_transport_requests(r.ft), 1, "from the cache");
	fake_api_hold_watches(r.api, true);
	fake_api_put(r.api, &kobj_machine, NS,
		"{\"metadata\":{\"name\":\"machine-" UUID_2 "\"},\"spec\":{\"id\":\"" UUID_2
		"\"}}");
	cr_assert_eq(rig_register_status(&r, KEY_B, UUID_2), 201);
	cr_assert_str_eq(seen_on(&r, KEY_B), uid_of(&r, "machine-" UUID_2), "made a moment ago");
	cr_assert_eq(rig_register_status(&r, KEY_C, NULL), 201);
	fake_api_hold_watches(r.api, false);
	loop_drain(r.loop);
	rig_close(&r);
}

Test(srv_regak, a_machine_made_here_a_moment_ago_is_not_read)
{
	char name[sizeof("machine-") + UUID_TEXT_LEN];
	struct cli_reply a;
	struct rig r;

	rig_open(&r, OPEN_SPEC);
	fake_api_hold_watches(r.api, true);
	rig_ask(&r, r.port, GET_IGNITION, &a);
	cr_assert_eq(a.status, 200);
	snprintf(name, sizeof(name), "machine-%.*s", UUID_TEXT_LEN, strstr(a.body, "default/") + 8);
	cli_reply_fini(&a);
	cr_assert_eq(rig_register_status(&r, KEY_A, name + 8), 201);
	cr_assert_eq(fake_transport_requests(r.ft), 2, "a Machine and its key");
	cr_assert_str_eq(seen_on(&r, KEY_A), uid_of(&r, name));
	fake_api_hold_watches(r.api, false);
	loop_drain(r.loop);
	rig_close(&r);
}

Test(srv_regak, a_machine_with_the_name_and_another_id_was_not_seen)
{
	struct rig r;

	rig_open(&r, OPEN_SPEC);
	fake_api_put(r.api, &kobj_machine, NS,
		"{\"metadata\":{\"name\":\"machine-" UUID_1 "\"},\"spec\":{\"id\":\"" UUID_2
		"\"}}");
	cr_assert_eq(rig_register_status(&r, KEY_A, UUID_1), 201);
	cr_assert_str_eq(seen_on(&r, KEY_A), MODEL_SEEN_NONE);
	rig_close(&r);
}

static size_t events_about(struct rig *r, const char *reason, const char *name)
{
	size_t n = 0;

	for (size_t i = 0; i < fake_transport_requests(r->ft); i++) {
		const struct fake_request *q = fake_transport_request(r->ft, i);
		cleanup_json struct json_object *o = NULL;

		if (!str_eq(q->method, "POST") || !strstr(q->path, "/events"))
			continue;
		o = fake_request_json(q);
		cr_assert_null(strstr(q->body, "BEGIN"), "key in an Event");
		n += str_eq(json_get_str(o, "reason"), reason) &&
		     str_eq(json_get_str(o, "regarding/name"), name);
	}
	return n;
}

Test(srv_regak, another_uuid_is_told_to_the_machine_that_has_the_key)
{
	struct cli_reply a;
	struct rig r;

	rig_open(&r, OPEN_SPEC);
	fake_api_put(r.api, &kobj_machine, NS,
		"{\"metadata\":{\"name\":\"old\"},\"spec\":{\"id\":\"" UUID_1 "\"}}");
	fake_api_put(r.api, &kobj_machine, NS,
		"{\"metadata\":{\"name\":\"new\"},\"spec\":{\"id\":\"" UUID_2 "\"}}");
	cr_assert_eq(rig_register_status(&r, KEY_A, UUID_1), 201);
	fake_transport_forget(r.ft);
	rig_register(&r, KEY_A, UUID_2, &a);
	rig_expect(&a, 409, 0, MOVED, "another uuid");
	cr_assert_eq(events_about(&r, "KeyReregistered", "old"), 1);
	cr_assert_eq(events_about(&r, "KeyOfAnotherMachine", "new"), 1);
	rig_register(&r, KEY_A, UUID_2, &a);
	rig_expect(&a, 409, 0, MOVED, "again");
	cr_assert_eq(fake_api_count(r.api, &kobj_ak, NS), 1);
	rig_close(&r);
}

/* The watch lags behind: only the API knows. */
Test(srv_regak, already_exists_is_looked_up)
{
	struct cli_reply a;
	struct rig r;

	rig_open(&r, OPEN_SPEC);
	fake_api_hold_watches(r.api, true);
	cr_assert_eq(rig_register_status(&r, KEY_A, UUID_1), 201);
	rig_register(&r, KEY_A, UUID_1, &a);
	rig_expect(&a, 409, 0, KNOWN, "same uuid");
	rig_register(&r, KEY_A, UUID_2, &a);
	rig_expect(&a, 409, 0, MOVED, "another uuid");
	cr_assert_eq(fake_transport_count(r.ft, "get", "attestationkeys"), 2);
	cr_assert_eq(srv_pending_count(r.env.pending), 0);
	fake_api_hold_watches(r.api, false);
	loop_drain(r.loop);
	rig_close(&r);
}

Test(srv_regak, a_lookup_that_fails_or_takes_too_long_is_503)
{
	struct fake_expect *get;
	struct cli_reply a;
	struct rig r;
	struct cli c;

	rig_open(&r, OPEN_SPEC);
	fake_api_hold_watches(r.api, true);
	cr_assert_eq(rig_register_status(&r, KEY_A, UUID_1), 201);
	get = fake_transport_expect(r.ft, "GET", AKS "/*");
	fake_expect_answer(get, 404, "{\"kind\":\"Status\",\"reason\":\"NotFound\"}");
	rig_register(&r, KEY_A, UUID_1, &a);
	rig_expect(&a, 503, 5, AWAY, "gone meanwhile");
	get = fake_transport_expect(r.ft, "GET", AKS "/*");
	c = rig_begin_register(&r, KEY_A, UUID_1, get);
	loop_advance(r.loop, 10000);
	cr_assert(cli_reply(&c, &a, false));
	rig_expect(&a, 503, 5, AWAY, "too slow");
	cr_assert_not(fake_expect_open(get));
	rig_forgets(&r);
	cli_close(&c);
	rig_close(&r);
}

Test(srv_regak, api_errors_are_neutral_answers)
{
	static const struct {
		int api;
		uint32_t api_retry_ms;
		int status;
		unsigned retry_s;
	} table[] = {{403, 0, 503, 5}, {404, 0, 503, 5}, {409, 0, 503, 5}, {422, 0, 500, 0},
		{429, 1, 503, 1}, {500, 0, 503, 5}, {503, 30000, 503, 30}};
	struct rig r;

	rig_open(&r, OPEN_SPEC);
	for (size_t i = 0; i < ARRAY_LEN(table); i++) {
		struct fake_expect *e = fake_transport_expect(r.ft, "POST", AKS);
		cleanup_free char *what = xasprintf("API %d", table[i].api);
		struct cli_reply a;

		fake_expect_retry_after(e, table[i].api_retry_ms);
		fake_expect_answer(e, table[i].api,
			"{\"kind\":\"Status\",\"reason\":\"Conflict\",\"message\":\"SECRET\"}");
		rig_register(&r, KEY_A, UUID_1, &a);
		rig_expect(&a, table[i].status, table[i].retry_s,
			table[i].status == 500 ? ERROR("Internal error") : AWAY, what);
	}
	cr_assert_eq(srv_pending_count(r.env.pending), 1, "the same key again and again");
	rig_forgets(&r);
	rig_close(&r);
}

Test(srv_regak, a_client_that_leaves_cancels_either_call)
{
	for (int second = 0; second < 2; second++) {
		struct fake_expect *e;
		struct rig r;
		struct cli c;

		rig_open(&r, OPEN_SPEC);
		fake_api_hold_watches(r.api, true);
		if (second)
			cr_assert_eq(rig_register_status(&r, KEY_A, UUID_1), 201);
		e = fake_transport_expect(r.ft, second ? "GET" : "POST", second ? AKS "/*" : AKS);
		c = rig_begin_register(&r, KEY_A, UUID_1, e);
		cr_assert_eq(srv_pending_count(r.env.pending), 1);
		cli_close(&c);
		while (fake_expect_open(e))
			loop_turn(r.loop, 1);
		cr_assert_eq(httpd_in_flight(srv_listener_httpd(r.ak)), 0);
		rig_forgets(&r);
		rig_close(&r);
	}
}

Test(srv_regak, goes_down_with_requests_under_way)
{
	struct fake_expect *e;
	struct rig r;
	struct cli c;

	rig_open(&r, OPEN_SPEC);
	e = fake_transport_expect(r.ft, "POST", AKS);
	c = rig_begin_register(&r, KEY_A, UUID_1, e);
	rig_close(&r);
	cli_close(&c);
}

Test(srv_regak, keys_that_wait_for_one_machine_are_limited)
{
	struct cli_reply a;
	struct rig r;

	rig_open(&r, "{\"registration\":{\"waitingKeysPerMachine\":1,\"pendingLimit\":2}}");
	cr_assert_eq(rig_register_status(&r, KEY_A, UUID_1), 201);
	rig_register(&r, KEY_B, UUID_1, &a);
	rig_expect(&a, 503, 60,
		ERROR("Too many keys wait for this Machine (registration.waitingKeysPerMachine)"),
		"second key");
	cr_assert_eq(rig_register_status(&r, KEY_B, UUID_2), 201);
	rig_register(&r, KEY_C, NULL, &a);
	rig_expect(&a, 503, 60,
		ERROR("Too many keys wait for approval (registration.pendingLimit)"), "third key");
	cr_assert_eq(fake_api_count(r.api, &kobj_ak, NS), 2);
	rig_close(&r);
}

Test(srv_regak, logs_no_key)
{
	struct rig r;

	rig_open(&r, OPEN_SPEC);
	cr_assert_eq(rig_register_status(&r, KEY_A, UUID_1), 201);
	cr_assert(strstr(strbuf_str(&r.log), "msg=\"attestation key registered\""), "%s",
		strbuf_str(&r.log));
	cr_assert(strstr(strbuf_str(&r.log), "machine=" UUID_1));
	cr_assert(!strstr(strbuf_str(&r.log), "MII") && !strstr(strbuf_str(&r.log), "BEGIN"));
	rig_close(&r);
}
