/* SPDX-License-Identifier: MIT */
/* registration.machine AtKey over both listeners, with the in-memory API behind them. */
#include "config.h"

#include "srv/srv_testing.h"

TestSuite(srv_atkey, .timeout = SUITE_LIMIT);

#define UUID_1   "3f1c2b9a-6d0e-4c53-9a7b-2f8e5d104c6f"
#define MADE_UP  "00000000-0000-8000-8000-000000000001"
#define SUCCESS  "{\"status\":\"success\"}"
#define ERROR(m) "{\"status\":\"error\",\"message\":\"" m "\"}"
#define KNOWN    ERROR("Public key already registered")
#define MOVED                                                                                      \
	ERROR("Public key already registered for another machine; an administrator can rebind it " \
	      "by deleting the old AttestationKey")
#define NOT_HERE                                                                                    \
	ERROR("No Machine has this uuid, and it was not handed out here or has expired: fetch the " \
	      "Ignition configuration again")
#define NO_UUID                                                                                    \
	ERROR("The request must include the uuid of a Machine (registration.machine "              \
	      "AtKey)")

#define SPEC_WITH(more)                                                                            \
	"{\"publicTrusteeAddr\":\"t.example.org\",\"publicAttestationKeyRegisterAddr\":"           \
	"\"a.example.org\",\"registration\":{" more "}}"
#define AT_KEY     SPEC_WITH("\"machine\":\"AtKey\"")
#define AT_REQUEST SPEC_WITH("\"machine\":\"AtRequest\"")

static void put_key(struct rig *r, const char *b64)
{
	cleanup_free char *text = xasprintf("{\"metadata\":{\"name\":\"" RENDER_REGKEY_CURRENT
					    "\"},\"data\":{\"key\":\"%s\"}}",
		b64);
	cleanup_free char *patch = NULL;
	char hex[SHA256_HEX_LEN + 1];

	fake_api_put(r->api, &kobj_secret, NS, text);
	cr_assert(model_content_sha256(
		fake_api_get(r->api, &kobj_secret, NS, RENDER_REGKEY_CURRENT), hex));
	patch = xasprintf(
		"{\"metadata\":{\"annotations\":{\"" MODEL_ANNOUNCED_PREFIX RENDER_REGKEY_CURRENT
		"\":\"%s %s\"}}}",
		json_get_str(fake_api_get(r->api, &kobj_cluster, NS, "tec"), "metadata/uid"), hex);
	fake_api_merge(r->api, &kobj_cluster, NS, "tec", patch);
	loop_drain(r->loop);
	fake_transport_forget(r->ft);
}

static void open_at_key(struct rig *r, const char *spec)
{
	rig_open(r, spec);
	put_key(r, "AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8=");
}

/* As an administrator edits it. */
static void edit(struct rig *r, const char *spec)
{
	cleanup_free char *patch = xasprintf("{\"spec\":%s}", spec);

	fake_api_merge(r->api, &kobj_cluster, NS, "tec", patch);
	loop_drain(r->loop);
	fake_transport_forget(r->ft);
}

static void get_uuid(struct rig *r, char uuid[UUID_TEXT_LEN + 1])
{
	static const char before[] = "default/";
	struct cli_reply a;
	const char *at;

	rig_ask(r, r->port, GET_IGNITION, &a);
	cr_assert_eq(a.status, 200, "%d %s", a.status, a.body);
	at = strstr(a.body, before);
	cr_assert_not_null(at);
	memcpy(uuid, at + sizeof(before) - 1, UUID_TEXT_LEN);
	uuid[UUID_TEXT_LEN] = '\0';
	cr_assert(uuid_valid(uuid, UUID_TEXT_LEN), "%s", uuid);
	cli_reply_fini(&a);
}

static void expect(struct rig *r, const char *pem, const char *uuid, int status, unsigned retry_s,
	const char *body)
{
	struct cli_reply a;

	rig_register(r, pem, uuid, &a);
	rig_expect(&a, status, retry_s, body, uuid ? uuid : "no uuid");
}

Test(srv_atkey, asking_for_ignition_makes_no_request_at_all)
{
	char a[UUID_TEXT_LEN + 1], b[UUID_TEXT_LEN + 1];
	struct rig r;

	open_at_key(&r, AT_KEY);
	for (int i = 0; i < 50; i++)
		get_uuid(&r, a);
	get_uuid(&r, b);
	cr_assert_str_neq(a, b);
	cr_assert_eq(a[14], '8');
	cr_assert_eq(fake_transport_requests(r.ft), 0);
	cr_assert_eq(srv_pending_count(r.env.pending), 0);
	rig_close(&r);
}

Test(srv_atkey, a_key_brings_its_machine_first)
{
	cleanup_json struct json_object *m = NULL, *k = NULL;
	char uuid[UUID_TEXT_LEN + 1];
	cleanup_free char *name = NULL;
	struct rig r;

	open_at_key(&r, AT_KEY);
	get_uuid(&r, uuid);
	expect(&r, KEY_A, uuid, 201, 0, SUCCESS);
	cr_assert_eq(fake_transport_requests(r.ft), 2);
	cr_assert_str_eq(fake_transport_request(r.ft, 0)->path, MACHINES);
	cr_assert_str_eq(fake_transport_request(r.ft, 1)->path, AKS);
	m = fake_request_json(fake_transport_request(r.ft, 0));
	k = fake_request_json(fake_transport_request(r.ft, 1));
	cr_assert_str_eq(json_get_str(m, "spec/id"), uuid);
	cr_assert_str_eq(json_get_str(k, "spec/uuid"), uuid);
	name = model_machine_name(uuid);
	cr_assert_str_eq(kobj_annotation(k, MODEL_MACHINE_SEEN_ANNOTATION),
		json_get_str(fake_api_get(r.api, &kobj_machine, NS, name), "metadata/uid"));
	expect(&r, KEY_A, uuid, 409, 0, KNOWN);
	cr_assert_eq(fake_transport_requests(r.ft), 2);
	rig_close(&r);
}

Test(srv_atkey, all_else_is_403_and_makes_nothing)
{
	struct rig r;

	open_at_key(&r, AT_KEY);
	expect(&r, KEY_A, NULL, 403, 0, NO_UUID);
	expect(&r, KEY_A, UUID_1, 403, 0, NOT_HERE);
	expect(&r, KEY_A, MADE_UP, 403, 0, NOT_HERE);
	cr_assert_eq(fake_transport_requests(r.ft), 0);
	fake_api_put(r.api, &kobj_machine, NS,
		"{\"metadata\":{\"name\":\"by-hand\"},\"spec\":{\"id\":\"" UUID_1 "\"}}");
	loop_drain(r.loop);
	expect(&r, KEY_A, UUID_1, 201, 0, SUCCESS);
	cr_assert_eq(rig_posts(&r), 1, "no second Machine");
	rig_close(&r);
}

Test(srv_atkey, a_known_key_makes_no_machine)
{
	char first[UUID_TEXT_LEN + 1], again[UUID_TEXT_LEN + 1];
	struct rig r;

	for (int lag = 0; lag < 2; lag++) {
		open_at_key(&r, AT_KEY);
		get_uuid(&r, first);
		get_uuid(&r, again);
		fake_api_hold_watches(r.api, lag);
		expect(&r, KEY_A, first, 201, 0, SUCCESS);
		expect(&r, KEY_A, again, 409, 0, MOVED);
		cr_assert_eq(fake_api_count(r.api, &kobj_machine, NS), 1);
		fake_api_hold_watches(r.api, false);
		loop_drain(r.loop);
		rig_close(&r);
	}
}

Test(srv_atkey, a_machine_made_a_moment_ago_is_known)
{
	char uuid[UUID_TEXT_LEN + 1];
	struct rig r;

	open_at_key(&r, AT_KEY);
	get_uuid(&r, uuid);
	fake_api_hold_watches(r.api, true);
	expect(&r, KEY_A, uuid, 201, 0, SUCCESS);
	expect(&r, KEY_B, uuid, 201, 0, SUCCESS);
	cr_assert_eq(fake_api_count(r.api, &kobj_machine, NS), 1);
	cr_assert_eq(fake_transport_count(r.ft, "create", "machines"), 1);
	cr_assert_eq(fake_transport_count(r.ft, "get", "machines"), 0);
	cr_assert_eq(srv_pending_count(r.env.pending), 3);
	fake_api_hold_watches(r.api, false);
	loop_drain(r.loop);
	cr_assert_eq(srv_pending_count(r.env.pending), 3);
	rig_close(&r);
}

/* Another listener was quicker, and the cache does not have its Machine yet. */
Test(srv_atkey, a_machine_that_is_there_already_is_fine)
{
	cleanup_free char *machine = NULL;
	char uuid[UUID_TEXT_LEN + 1];
	struct rig r;

	open_at_key(&r, AT_KEY);
	get_uuid(&r, uuid);
	fake_api_hold_watches(r.api, true);
	machine = xasprintf(
		"{\"metadata\":{\"name\":\"machine-%s\"},\"spec\":{\"id\":\"%s\"}}", uuid, uuid);
	fake_api_put(r.api, &kobj_machine, NS, machine);
	expect(&r, KEY_A, uuid, 201, 0, SUCCESS);
	cr_assert_eq(fake_api_count(r.api, &kobj_machine, NS), 1);
	cr_assert_eq(fake_transport_count(r.ft, "get", "machines"), 1);
	fake_api_hold_watches(r.api, false);
	loop_drain(r.loop);
	rig_close(&r);
}

Test(srv_atkey, without_the_registration_key_it_is_503)
{
	struct cli_reply a;
	struct rig r;

	rig_open(&r, AT_KEY);
	rig_ask(&r, r.port, GET_IGNITION, &a);
	rig_expect(&a, 503, 5,
		"{\"code\":503,\"message\":\"The registration key is not ready yet\"}", "ignition");
	expect(&r, KEY_A, MADE_UP, 503, 5, ERROR("The registration key is not ready yet"));
	expect(&r, KEY_A, NULL, 403, 0, NO_UUID);
	rig_close(&r);
}

Test(srv_atkey, manual_takes_keys_of_machines_that_exist_alone)
{
	char uuid[UUID_TEXT_LEN + 1];
	struct rig r;

	open_at_key(&r, AT_KEY);
	get_uuid(&r, uuid);
	edit(&r, SPEC_WITH("\"machine\":\"AtKey\",\"mode\":\"Manual\""));
	cr_assert_eq(rig_status(&r, r.port, GET_IGNITION), 403);
	expect(&r, KEY_A, uuid, 403, 0, NOT_HERE);
	cr_assert_eq(rig_posts(&r), 0);
	rig_close(&r);
}

Test(srv_atkey, a_switch_and_back_loses_no_node_on_its_way)
{
	char at_request[UUID_TEXT_LEN + 1], at_key[UUID_TEXT_LEN + 1];
	struct rig r;

	open_at_key(&r, AT_REQUEST);
	get_uuid(&r, at_request);
	cr_assert_eq(rig_posts(&r), 1);
	edit(&r, AT_KEY);
	get_uuid(&r, at_key);
	expect(&r, KEY_A, at_request, 201, 0, SUCCESS);
	edit(&r, AT_REQUEST);
	expect(&r, KEY_B, at_key, 201, 0, SUCCESS);
	cr_assert_eq(fake_api_count(r.api, &kobj_machine, NS), 2);
	cr_assert_eq(fake_api_count(r.api, &kobj_ak, NS), 2);
	rig_close(&r);
}

Test(srv_atkey, limits_hold_before_the_disk_is_encrypted_and_after)
{
	char uuid[UUID_TEXT_LEN + 1], late[UUID_TEXT_LEN + 1];
	struct rig r;

	open_at_key(&r, SPEC_WITH("\"machine\":\"AtKey\",\"pendingLimit\":1"));
	get_uuid(&r, uuid);
	get_uuid(&r, late);
	expect(&r, KEY_A, uuid, 201, 0, SUCCESS);
	fake_transport_forget(r.ft);
	cr_assert_eq(rig_status(&r, r.port, GET_IGNITION), 503);
	expect(&r, KEY_B, late, 503, 60,
		ERROR("Too many Machines wait for their key (registration.pendingLimit)"));
	cr_assert_eq(fake_transport_count(r.ft, "POST", "machines"), 0);
	cr_assert_eq(fake_transport_count(r.ft, "POST", "attestationkeys"), 0);
	cr_assert_eq(fake_transport_count(r.ft, "POST", "events"), 1, "told once");
	cr_assert(strstr(strbuf_str(&r.log), "limit=pendingLimit"));
	cr_assert_eq(srv_pending_count(r.env.pending), 2);
	rig_close(&r);
}

Test(srv_atkey, a_machine_without_its_key_counts_until_the_cache_knows_better)
{
	char uuid[UUID_TEXT_LEN + 1];
	struct fake_expect *e;
	struct rig r;

	open_at_key(&r, AT_KEY);
	get_uuid(&r, uuid);
	e = fake_transport_expect(r.ft, "POST", MACHINES);
	fake_expect_answer(e, 422, "{\"kind\":\"Status\",\"reason\":\"Invalid\"}");
	cr_assert_eq(rig_register_status(&r, KEY_A, uuid), 500);
	cr_assert_eq(fake_transport_count(r.ft, "POST", "attestationkeys"), 0, "Machine first");
	e = fake_transport_expect(r.ft, "POST", AKS);
	fake_expect_fail(e, ERR_TRANSIENT, "lost");
	cr_assert_eq(rig_register_status(&r, KEY_A, uuid), 503);
	cr_assert_eq(fake_api_count(r.api, &kobj_machine, NS), 1);
	expect(&r, KEY_A, uuid, 201, 0, SUCCESS);
	cr_assert_eq(srv_pending_count(r.env.pending), 2);
	rig_close(&r);
}

Test(srv_atkey, a_client_that_leaves_cancels_each_call)
{
	static const char *const path[] = {MACHINES, AKS};

	for (size_t i = 0; i < ARRAY_LEN(path); i++) {
		char uuid[UUID_TEXT_LEN + 1];
		struct fake_expect *e;
		struct rig r;
		struct cli c;

		open_at_key(&r, AT_KEY);
		get_uuid(&r, uuid);
		e = fake_transport_expect(r.ft, "POST", path[i]);
		c = rig_begin_register(&r, KEY_A, uuid, e);
		cli_close(&c);
		while (fake_expect_open(e))
			loop_turn(r.loop, 1);
		cr_assert_eq(httpd_in_flight(srv_listener_httpd(r.ak)), 0);
		clock_fake_advance(10000);
		cr_assert_eq(srv_pending_count(r.env.pending), i);
		rig_close(&r);
	}
}
