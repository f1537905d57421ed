/* SPDX-License-Identifier: MIT */
/* Port 8000 over real sockets, with the in-memory API behind it. */
#include "config.h"

#include "srv/srv_testing.h"
#include "tec/model/mark.h"

TestSuite(srv_regignition, .timeout = SUITE_LIMIT);

#define TRUSTEE    "\"publicTrusteeAddr\":\"t.example.org\""
#define SPEC(more) "{" TRUSTEE "," more "}"

/* The only Machine there is. */
static struct json_object *only_machine(struct rig *r)
{
	struct json_object *o;
	const struct fake_request *req = NULL;

	cr_assert_eq(rig_posts(r), 1);
	for (size_t i = 0; i < fake_transport_requests(r->ft); i++)
		if (str_eq(fake_transport_request(r->ft, i)->method, "POST"))
			req = fake_transport_request(r->ft, i);
	cr_assert_str_eq(req->path, MACHINES);
	cr_assert_str_eq(req->content_type, "application/json");
	o = fake_request_json(req);
	cr_assert(uuid_valid(json_get_str(o, "spec/id"), UUID_TEXT_LEN));
	return o;
}

Test(srv_regignition, answers_the_ignition_of_a_new_machine)
{
	static const char want[] =
		"{\"ignition\":{\"version\":\"3.6.0\"},\"storage\":{\"filesystems\":[{\"device\":"
		"\"/dev/mapper/root\",\"format\":\"ext4\",\"label\":\"root\",\"wipeFilesystem\":"
		"true}],\"luks\":[{\"name\":\"root\",\"label\":\"root\",\"device\":"
		"\"/dev/disk/by-partlabel/root\",\"wipeVolume\":true,\"clevis\":{\"custom\":{"
		"\"pin\":\"trustee\",\"needsNetwork\":true,\"config\":\"{\\\"servers\\\":[{"
		"\\\"url\\\":\\\"http://trustee.example.org:8443\\\",\\\"cert\\\":\\\"\\\"}],"
		"\\\"path\\\":\\\"default/UUID/root\\\",\\\"attestation_key\\\":{"
		"\\\"registration\\\":{\\\"url\\\":"
		"\\\"http://register.example.org:8001/register-ak\\\",\\\"uuid\\\":\\\"UUID\\\","
		"\\\"cert\\\":\\\"\\\"}}}\"}}}]}}";
	struct rig r;
	struct cli_reply a;
	cleanup_json struct json_object *machine = NULL;
	cleanup_free char *body = NULL;

	rig_open(&r, OPEN_SPEC);
	rig_ask(&r, r.port, GET_IGNITION, &a);
	machine = only_machine(&r);
	body = rig_replaced(want, "UUID", json_get_str(machine, "spec/id"));
	cr_assert_eq(a.status, 200);
	cr_assert_str_eq(a.body, body);
	cr_assert_str_eq(cli_header(&a, "Content-Type"),
		"application/vnd.coreos.ignition+json; version=3.6.0");
	cr_assert_str_eq(cli_header(&a, "Cache-Control"), "no-store");
	cli_reply_fini(&a);
	rig_close(&r);
}

Test(srv_regignition, machine_is_marked_and_owned_by_the_cluster)
{
	struct rig r;
	cleanup_json struct json_object *machine = NULL;
	cleanup_free char *text = NULL, *want = NULL;
	const char *uuid, *uid;

	rig_open(&r, OPEN_SPEC);
	cr_assert_eq(rig_status(&r, r.port,
			     "GET /ignition-clevis-pin-trustee HTTP/1.1\r\nHost: x\r\n\r\n"),
		200);
	machine = only_machine(&r);
	uuid = json_get_str(machine, "spec/id");
	uid = json_get_str(fake_api_get(r.api, &kobj_cluster, NS, "tec"), "metadata/uid");
	text = json_text(machine);
	want = xasprintf(
		"{\"apiVersion\":\"trusted-execution-clusters.io/v1alpha1\",\"kind\":"
		"\"Machine\",\"metadata\":{\"name\":\"machine-%s\",\"annotations\":{"
		"\"trusted-execution-clusters.io/created-by\":\"listener\"},"
		"\"ownerReferences\":[{\"apiVersion\":"
		"\"trusted-execution-clusters.io/v1alpha1\",\"kind\":"
		"\"TrustedExecutionCluster\",\"name\":\"tec\",\"uid\":\"%s\","
		"\"controller\":true,\"blockOwnerDeletion\":true}]},\"spec\":{\"id\":\"%s\"}}",
		uuid, uid, uuid);
	cr_assert_str_eq(text, want);
	rig_close(&r);
}

Test(srv_regignition, every_request_is_another_machine)
{
	struct rig r;

	rig_open(&r, OPEN_SPEC);
	for (int i = 0; i < 5; i++)
		cr_assert_eq(rig_status(&r, r.port, GET_IGNITION), 200);
	cr_assert_eq(fake_api_count(r.api, &kobj_machine, NS), 5);
	cr_assert_eq(srv_pending_count(r.env.pending), 5);
	rig_close(&r);
}

/* One client after the other, while what their answers are made of changes. */
Test(srv_regignition, an_answer_follows_cluster_version_and_certificate)
{
	static const char *const versions[] = {"3.6.0", "3.6.0", "3.4.0", "3.6.0"};
	static const char *const addresses[] = {"a.example.org", "a.example.org", "b.example.org"};
	struct testing_pem cas[] = {testing_make_pem(1, 3600), testing_make_pem(1, 3600)};
	char ask[256], want[64];
	struct cli_reply a;
	struct rig r;

	rig_open(&r, SPEC("\"registration\":{}"));
	for (size_t i = 0; i < ARRAY_LEN(versions); i++) {
		snprintf(ask, sizeof(ask),
			"GET /ignition HTTP/1.1\r\nHost: x\r\n"
			"Accept: application/vnd.coreos.ignition+json;version=%s\r\n\r\n",
			versions[i]);
		rig_ask(&r, r.port, ask, &a);
		snprintf(want, sizeof(want), "{\"ignition\":{\"version\":\"%s\"}", versions[i]);
		cr_assert_eq(strncmp(a.body, want, strlen(want)), 0, "%zu: %s", i, a.body);
		cli_reply_fini(&a);
	}
	for (size_t i = 0; i < ARRAY_LEN(addresses); i++) {
		snprintf(ask, sizeof(ask), "{\"publicTrusteeAddr\":\"%s\"}", addresses[i]);
		rig_cluster(&r, ask);
		rig_ask(&r, r.port, GET_IGNITION, &a);
		cr_assert(strstr(a.body, addresses[i]), "%zu: %s", i, a.body);
		cli_reply_fini(&a);
	}
	rig_cluster(&r, SPEC("\"trusteeSecret\":\"ca\""));
	for (size_t i = 0; i < ARRAY_LEN(cas); i++) {
		rig_secret(&r, "ca", NULL, NULL, cas[i].cert);
		rig_ask(&r, r.port, GET_IGNITION, &a);
		snprintf(want, sizeof(want), "%.40s", cas[i].cert + 160); /* of the third line */
		cr_assert(strstr(a.body, want), "%zu: %s", i, a.body);
		cli_reply_fini(&a);
		testing_pem_fini(&cas[i]);
	}
	rig_close(&r);
}

struct refusal {
	const char *what, *spec;
	int status;
	unsigned retry_s;
	const char *message;
};

static const struct refusal refusals[] = {
	{"no cluster", NULL, 503, 30, "No TrustedExecutionCluster is installed"},
	{"no address", "{}", 503, 30, "spec.publicTrusteeAddr of the cluster is not set"},
	{"Manual", SPEC("\"registration\":{\"mode\":\"Manual\"}"), 403, 0,
		"Only administrators create Machines (registration.mode Manual)"},
	{"Token", SPEC("\"registration\":{\"mode\":\"Token\"}"), 503, 60,
		"registration.mode Token has no effect in this version and is not served"},
	{"plain text refused here", SPEC("\"trustee\":{\"plaintext\":\"Refuse\"}"), 503, 5,
		"The cluster refuses plain HTTP and names no TLS Secret for this listener"},
	{"Trustee's Secret missing", SPEC("\"trusteeSecret\":\"none\""), 503, 10,
		"A TLS Secret of the cluster is missing or has no ca.crt"},
	{"the key listener's Secret missing",
		SPEC("\"publicAttestationKeyRegisterAddr\":\"a\","
		     "\"attestationKeyRegisterSecret\":\"none\""),
		503, 10, "A TLS Secret of the cluster is missing or has no ca.crt"},
	{"a further server's Secret missing",
		SPEC("\"trusteeServers\":[{\"address\":\"b\",\"caSecret\":\"none\"}]"), 503, 10,
		"A TLS Secret of the cluster is missing or has no ca.crt"},
};

Test(srv_regignition, refuses_before_any_machine_is_made)
{
	for (size_t i = 0; i < ARRAY_LEN(refusals); i++) {
		const struct refusal *t = &refusals[i];
		cleanup_free char *body =
			xasprintf("{\"code\":%d,\"message\":\"%s\"}", t->status, t->message);
		struct cli_reply a;
		struct rig r;

		rig_open(&r, t->spec);
		rig_ask(&r, r.port, GET_IGNITION, &a);
		rig_expect(&a, t->status, t->retry_s, body, t->what);
		cr_assert_eq(rig_posts(&r), 0, "%s", t->what);
		rig_close(&r);
	}
}

Test(srv_regignition, refuses_a_spec_that_lost_what_its_annotation_has)
{
	struct rig r;
	struct cli_reply a;

	rig_open(&r, NULL);
	fake_api_put(r.api, &kobj_cluster, NS,
		"{\"metadata\":{\"name\":\"tec\",\"annotations\":{\"" MODEL_EXTENDED_ANNOTATION
		"\":\"{\\\"registration\\\":{\\\"mode\\\":\\\"Manual\\\"}}\"}},\"spec\":{" TRUSTEE
		"}}");
	loop_drain(r.loop);
	rig_ask(&r, r.port, GET_IGNITION, &a);
	rig_expect(&a, 503, 60,
		"{\"code\":503,\"message\":\"The cluster lost settings; an administrator must "
		"confirm them\"}",
		"lost");
	cr_assert_eq(rig_posts(&r), 0);
	rig_close(&r);
}

Test(srv_regignition, refuses_while_the_operator_does_not_decide)
{
	static const struct {
		const char *authority;
		int status, wait_s;
		const char *body;
	} cases[] = {
		{"Frozen", 503, 30,
			"{\"code\":503,\"message\":\"spec.authority is Frozen: nodes cannot register now\"}"},
		{"Following", 503, 30,
			"{\"code\":503,\"message\":\"spec.authority is Following: nodes register with the operator that decides\"}"},
		{"Retired", 410, 0,
			"{\"code\":410,\"message\":\"spec.authority is Retired: nodes can no longer register here; use the operator that took over\"}"},
	};
	struct rig r;
	struct cli_reply a;

	rig_open(&r, NULL);
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		cleanup_free char *o = xasprintf(
			"{\"metadata\":{\"name\":\"tec\"},\"spec\":{\"authority\":\"%s\"," TRUSTEE
			"}}",
			cases[i].authority);

		fake_api_put(r.api, &kobj_cluster, NS, o);
		loop_drain(r.loop);
		rig_ask(&r, r.port, GET_IGNITION, &a);
		rig_expect(&a, cases[i].status, cases[i].wait_s, cases[i].body, cases[i].authority);
	}
	cr_assert_eq(rig_posts(&r), 0);
	rig_close(&r);
}

Test(srv_regignition, refuses_while_another_operator_may_decide)
{
	cleanup_free char *mark = NULL, *patch = NULL;
	struct rig r;
	struct cli_reply a;

	rig_open(&r, SPEC("\"follow\":{\"kubeconfigSecret\":\"s\"}"));
	mark = model_mark_text(
		json_get_str(fake_api_get(r.api, &kobj_cluster, NS, "tec"), "metadata/uid"), "u");
	patch = xasprintf("{\"metadata\":{\"annotations\":{\"" MODEL_CLUSTER_FOLLOWED_MARK
			  "\":\"%s\"}}}",
		mark);
	fake_api_merge(r.api, &kobj_cluster, NS, "tec", patch);
	r.caches.peer = CACHES_PEER_UNKNOWN;
	loop_drain(r.loop);
	rig_ask(&r, r.port, GET_IGNITION, &a);
	rig_expect(&a, 503, 30,
		"{\"code\":503,\"message\":\"It is unknown whether another operator decides: nodes cannot register until this is known\"}",
		"unknown");
	cr_assert_eq(rig_posts(&r), 0);
	rig_close(&r);
}

Test(srv_regignition, refuses_to_name_a_plain_address_when_the_cluster_refuses_them)
{
	static const char *const specs[] = {
		SPEC("\"registerServerSecret\":\"tls\",\"trustee\":{\"plaintext\":\"Refuse\"}"),
		SPEC("\"registerServerSecret\":\"tls\",\"trusteeSecret\":\"tls\","
		     "\"publicAttestationKeyRegisterAddr\":\"a\",\"trustee\":{\"plaintext\":"
		     "\"Refuse\"}"),
		SPEC("\"registerServerSecret\":\"tls\",\"trusteeSecret\":\"tls\","
		     "\"trusteeServers\":[{\"address\":\"b\"}],\"trustee\":{\"plaintext\":"
		     "\"Refuse\"}"),
	};

	for (size_t i = 0; i < ARRAY_LEN(specs); i++) {
		struct testing_pem pem = testing_make_pem(1, 3600);
		struct cli_reply a;
		struct rig r;
		struct cli c;

		rig_open(&r, NULL);
		rig_secret(&r, "tls", pem.cert, pem.key, pem.cert);
		rig_cluster(&r, specs[i]);
		c = cli_open(r.loop, r.port);
		cr_assert(cli_handshake(&c, TLS1_2_VERSION, TLS1_3_VERSION, NULL));
		cli_send(&c, GET_IGNITION);
		cr_assert(cli_reply(&c, &a, false));
		rig_expect(&a, 503, 60,
			"{\"code\":503,\"message\":\"The cluster refuses plain text and names no "
			"TLS Secret for an address\"}",
			specs[i]);
		cr_assert_eq(rig_posts(&r), 0);
		cli_close(&c);
		testing_pem_fini(&pem);
		rig_close(&r);
	}
}

Test(srv_regignition, says_that_it_starts_until_every_cache_is_filled)
{
	static const char *const slow[] = {MACHINES "*", AKS "*"};

	for (size_t i = 0; i < ARRAY_LEN(slow); i++) {
		struct cli_reply a;
		struct fake_expect *e;
		struct rig r;

		rig_init(&r);
		e = fake_transport_expect(r.ft, "GET", slow[i]);
		rig_start(&r);
		cr_assert(fake_expect_open(e));
		fake_api_put(r.api, &kobj_cluster, NS,
			"{\"metadata\":{\"name\":\"tec\"},\"spec\":" OPEN_SPEC "}");
		loop_drain(r.loop);
		rig_ask(&r, r.port, GET_IGNITION, &a);
		rig_expect(&a, 503, 5, "{\"code\":503,\"message\":\"The operator is starting\"}",
			slow[i]);
		cr_assert_eq(rig_posts(&r), 0);
		rig_close(&r);
	}
}

/* A Machine made before the marker would count as one that was here before this operator: no key would be approved for it. */
Test(srv_regignition, makes_no_machine_before_the_time_of_the_first_start_is_recorded)
{
	struct cli_reply a;
	struct rig r;

	rig_init(&r);
	r.caches.marker_s = INT64_MIN;
	rig_start(&r);
	fake_api_put(r.api, &kobj_cluster, NS,
		"{\"metadata\":{\"name\":\"tec\"},\"spec\":" OPEN_SPEC "}");
	loop_drain(r.loop);
	rig_ask(&r, r.port, GET_IGNITION, &a);
	rig_expect(
		&a, 503, 5, "{\"code\":503,\"message\":\"The operator is starting\"}", "unknown");
	cr_assert_eq(rig_posts(&r), 0);
	r.caches.marker_s = START_S;
	rig_ask(&r, r.port, GET_IGNITION, &a);
	cr_assert_eq(a.status, 200);
	cli_reply_fini(&a);
	rig_close(&r);
}

/* Whether TLS is to be spoken is not known before the first list of clusters. */
Test(srv_regignition, accepts_nobody_before_it_knows_what_to_speak)
{
	struct fake_expect *e;
	struct rig r;
	struct cli c;

	rig_init(&r);
	e = fake_transport_expect(r.ft, "GET", API_PATH "/trustedexecutionclusters*");
	rig_start(&r);
	cr_assert(fake_expect_open(e));
	c = cli_open(r.loop, r.port);
	cli_send(&c, GET_IGNITION);
	cr_assert(cli_wait_eof(&c));
	cr_assert_eq(c.in.len, 0, "%s", strbuf_str(&c.in));
	cli_close(&c);
	rig_close(&r);
}

#define TLS_REFUSE SPEC("\"registerServerSecret\":\"tls\",\"trustee\":{\"plaintext\":\"Refuse\"}")

Test(srv_regignition, a_plain_connection_ends_when_tls_begins)
{
	struct testing_pem pem = testing_make_pem(1, 3600);
	struct cli idle, half;
	struct rig r;

	rig_open(&r, NULL);
	idle = cli_open(r.loop, r.port);
	cli_send(&idle, GET_IGNITION);
	cr_assert_eq(cli_status(&idle), 503);
	half = cli_open(r.loop, r.port);
	cli_send(&half, "GET /igni");
	loop_drain(r.loop);
	rig_secret(&r, "tls", pem.cert, pem.key, pem.cert);
	rig_cluster(&r, TLS_REFUSE);
	cr_assert(cli_wait_eof(&idle));
	cr_assert(cli_wait_eof(&half));
	cr_assert_eq(idle.in.len + half.in.len, 0);
	cr_assert_eq(rig_posts(&r), 0);
	cli_close(&idle);
	cli_close(&half);
	testing_pem_fini(&pem);
	rig_close(&r);
}

/* The certificate is still missing, so the connection stays; what it waits for must not be sent. */
Test(srv_regignition, an_answer_under_way_is_not_sent_in_plain_text_once_tls_is_named)
{
	static const char *const specs[] = {
		TLS_REFUSE,
		SPEC("\"registerServerSecret\":\"tls\""),
		SPEC("\"trustee\":{\"plaintext\":\"Refuse\"}"),
	};

	for (size_t i = 0; i < ARRAY_LEN(specs); i++) {
		struct fake_expect *e;
		struct cli_reply a;
		struct rig r;
		struct cli c;

		rig_open(&r, OPEN_SPEC);
		e = fake_transport_expect(r.ft, "POST", MACHINES);
		c = rig_begin(&r, r.port, GET_IGNITION, e);
		rig_cluster(&r, specs[i]);
		fake_expect_answer(e, 201,
			"{\"metadata\":{\"name\":\"m\",\"uid\":\"u\",\"resourceVersion\":\"9\"}}");
		cr_assert(cli_reply(&c, &a, false));
		cr_assert_eq(a.status, 503, "%s: %d %s", specs[i], a.status, a.body);
		cr_assert_null(strstr(a.body, "ignition"), "%s", a.body);
		cli_reply_fini(&a);
		cli_close(&c);
		rig_close(&r);
	}
}

struct asked {
	const char *request;
	int status;
	const char *allow;
};

#define ASK(line, more) line " HTTP/1.1\r\nHost: x\r\n" more "\r\n"
#define GET_IF(header)  ASK("GET /ignition", header "\r\n")

static const struct asked never_creating[] = {
	{ASK("HEAD /ignition", ""), 405, "GET"},
	{ASK("POST /ignition", "Content-Length: 0\r\n"), 405, "GET"},
	{ASK("DELETE /ignition-clevis-pin-trustee", ""), 405, "GET"},
	{ASK("GET /", ""), 404, NULL},
	{ASK("GET /ignition/", ""), 404, NULL},
	{ASK("GET /ignitionx", ""), 404, NULL},
	{ASK("GET /register-ak", ""), 404, NULL},
	{GET_IF("If-None-Match: *"), 412, NULL},
	{GET_IF("If-None-Match: \"a\""), 412, NULL},
	{GET_IF("If-Match: *"), 412, NULL},
	{GET_IF("If-Modified-Since: Sat, 01 Jan 2000 00:00:00 GMT"), 412, NULL},
	{GET_IF("If-Unmodified-Since: Sat, 01 Jan 2000 00:00:00 GMT"), 412, NULL},
	{GET_IF("If-Range: \"a\""), 412, NULL},
	{"GET /ignition HTTP/1.1\r\n\r\n", 400, NULL},
	{GET_IF("Transfer-Encoding: chunked"), 411, NULL},
	{GET_IF("Content-Length: 99999"), 413, NULL},
	{GET_IF("Expect: miracles"), 417, NULL},
};

Test(srv_regignition, only_a_plain_get_creates)
{
	struct rig r;

	rig_open(&r, OPEN_SPEC);
	for (size_t i = 0; i < ARRAY_LEN(never_creating); i++) {
		const struct asked *t = &never_creating[i];
		cleanup_free char *begin = xasprintf("{\"code\":%d,\"message\":\"", t->status);
		const char *allow;
		struct cli_reply a;

		rig_ask(&r, r.port, t->request, &a);
		cr_assert_eq(a.status, t->status, "%d for %s", a.status, t->request);
		if (strncmp(t->request, "HEAD", 4) != 0)
			cr_assert(
				str_starts(a.body, begin) && str_ends(a.body, "\"}"), "%s", a.body);
		allow = cli_header(&a, "Allow");
		cr_assert(str_eq(allow, t->allow), "Allow %s for %s", allow, t->request);
		cli_reply_fini(&a);
	}
	cr_assert_eq(rig_posts(&r), 0);
	rig_close(&r);
}

Test(srv_regignition, accept_chooses_the_version)
{
	static const struct {
		const char *accept, *version; /* NULL: 406 */
	} table[] = {
		{"*/*", "3.6.0"},
		{"application/vnd.coreos.ignition+json;version=3.2.0", "3.2.0"},
		{"application/vnd.coreos.ignition+json;version=3.4.0, */*;q=0.1", "3.4.0"},
		{"application/vnd.coreos.ignition+json; version=\"3.3.0\"", "3.3.0"},
		{"application/vnd.coreos.ignition+json;version=3.9.0", "3.6.0"},
		{"application/vnd.coreos.ignition+json;version=3.1.0", NULL},
		{"application/vnd.coreos.ignition+json;version=2.3.0", NULL},
		{"text/html", NULL},
	};
	struct rig r;
	size_t made = 0;

	rig_open(&r, OPEN_SPEC);
	for (size_t i = 0; i < ARRAY_LEN(table); i++) {
		cleanup_free char *text = xasprintf(
			"GET /ignition HTTP/1.1\r\nHost: x\r\nAccept: %s\r\n\r\n", table[i].accept);
		cleanup_free char *type = xasprintf("application/vnd.coreos.ignition+json; "
						    "version=%s",
			table[i].version ? table[i].version : "");
		struct cli_reply a;

		rig_ask(&r, r.port, text, &a);
		if (table[i].version) {
			made++;
			cr_assert_eq(a.status, 200, "%s", text);
			cr_assert_str_eq(cli_header(&a, "Content-Type"), type);
			cli_reply_fini(&a);
		} else {
			rig_expect(&a, 406, 0,
				"{\"code\":406,\"message\":\"Only Ignition 3.2.0 or later is served; "
				"the Accept header does not include it\"}",
				text);
		}
	}
	cr_assert_eq(rig_posts(&r), made);
	rig_close(&r);
}

Test(srv_regignition, pending_limit_counts_what_is_there_and_what_is_under_way)
{
	static const char body[] = "{\"code\":503,\"message\":\"Too many Machines wait for their "
				   "key (registration.pendingLimit)\"}";
	struct rig r;
	struct cli_reply a;
	struct fake_expect *e;
	struct cli c;

	rig_open(&r, SPEC("\"registration\":{\"pendingLimit\":2}"));
	cr_assert_eq(rig_status(&r, r.port, GET_IGNITION), 200);
	e = fake_transport_expect(r.ft, "POST", MACHINES);
	c = rig_begin(&r, r.port, GET_IGNITION, e);
	rig_ask(&r, r.port, GET_IGNITION, &a);
	rig_expect(&a, 503, 60, body, "one there, one under way");
	fake_expect_answer(e, 403, "");
	cr_assert_eq(cli_status(&c), 503);
	cr_assert_eq(rig_status(&r, r.port, GET_IGNITION), 200, "the one under way failed");
	rig_ask(&r, r.port, GET_IGNITION, &a);
	rig_expect(&a, 503, 60, body, "two there");
	cli_close(&c);
	rig_close(&r);
}

Test(srv_regignition, machine_limit_counts_everybodys_machines)
{
	struct rig r;
	struct cli_reply a;

	rig_open(&r, SPEC("\"registration\":{\"machineLimit\":2}"));
	fake_api_put(r.api, &kobj_machine, NS,
		"{\"metadata\":{\"name\":\"by-hand\"},\"spec\":{\"id\":\"x\"}}");
	loop_drain(r.loop);
	cr_assert_eq(rig_status(&r, r.port, GET_IGNITION), 200);
	rig_ask(&r, r.port, GET_IGNITION, &a);
	rig_expect(&a, 503, 60,
		"{\"code\":503,\"message\":\"The cluster has reached its limit of Machines "
		"(registration.machineLimit)\"}",
		"limit");
	rig_close(&r);
}

#define AWAY     "{\"code\":503,\"message\":\"The cluster API is unavailable; try again later\"}"
#define INTERNAL "{\"code\":500,\"message\":\"Internal error\"}"

Test(srv_regignition, api_errors_are_neutral_answers)
{
	static const struct {
		int api; /* 0: no answer */
		uint32_t api_retry_ms;
		int status;
		unsigned retry_s;
	} table[] = {
		{0, 0, 503, 5},
		{400, 0, 500, 0},
		{401, 0, 503, 5},
		{403, 0, 503, 5},
		{404, 0, 503, 5},
		{409, 0, 503, 5},
		{422, 0, 500, 0},
		{429, 6500, 503, 7},
		{500, 0, 503, 5},
		{503, 0, 503, 5},
		{504, 0, 503, 5},
	};
	struct rig r;

	rig_open(&r, OPEN_SPEC);
	for (size_t i = 0; i < ARRAY_LEN(table); i++) {
		struct fake_expect *e = fake_transport_expect(r.ft, "POST", MACHINES);
		cleanup_free char *what = xasprintf("API %d", table[i].api);
		struct cli_reply a;

		fake_expect_retry_after(e, table[i].api_retry_ms);
		if (table[i].api)
			fake_expect_answer(e, table[i].api,
				"{\"kind\":\"Status\",\"message\":\"SECRET\",\"reason\":\"R\"}");
		else
			fake_expect_fail(e, ERR_TRANSIENT, "SECRET");
		rig_ask(&r, r.port, GET_IGNITION, &a);
		rig_expect(&a, table[i].status, table[i].retry_s,
			table[i].status == 500 ? INTERNAL : AWAY, what);
	}
	cr_assert_eq(fake_api_count(r.api, &kobj_machine, NS), 0);
	cr_assert_eq(srv_pending_count(r.env.pending), 4, "no answer, and the server's errors");
	rig_forgets(&r);
	rig_close(&r);
}

Test(srv_regignition, an_answer_that_is_no_json_is_an_error)
{
	struct rig r;
	struct cli_reply a;
	struct fake_expect *e;

	rig_open(&r, OPEN_SPEC);
	e = fake_transport_expect(r.ft, "POST", MACHINES);
	fake_expect_answer(e, 201, "<html>");
	rig_ask(&r, r.port, GET_IGNITION, &a);
	rig_expect(&a, 500, 0, INTERNAL, "html");
	rig_close(&r);
}

Test(srv_regignition, api_deadline_is_below_the_requests)
{
	struct rig r;
	struct cli_reply a;
	struct fake_expect *e;
	struct cli c;

	rig_open(&r, OPEN_SPEC);
	e = fake_transport_expect(r.ft, "POST", MACHINES);
	c = rig_begin(&r, r.port, GET_IGNITION, e);
	cr_assert_eq(fake_expect_request(e)->deadline_ms, 10000);
	loop_advance(r.loop, 9999);
	cr_assert(fake_expect_open(e));
	loop_advance(r.loop, 1);
	cr_assert(cli_reply(&c, &a, false));
	rig_expect(&a, 503, 5, AWAY, "slow API");
	cli_close(&c);
	rig_close(&r);
}

/* A slow sender leaves the API call less time, never none and never more than the request has. */
Test(srv_regignition, api_deadline_shrinks_with_the_time_left)
{
	static const struct {
		uint32_t late_ms, deadline_ms;
	} table[] = {{3000, 10000}, {9000, 5000}, {13500, 750}, {14998, 1}, {14999, 1}};

	for (size_t i = 0; i < ARRAY_LEN(table); i++) {
		struct fake_expect *e;
		struct cli_reply a;
		struct rig r;
		struct cli c;

		rig_open(&r, OPEN_SPEC);
		e = fake_transport_expect(r.ft, "POST", MACHINES);
		c = cli_open(r.loop, r.port);
		cli_send(&c, "GET /ignition HTTP/1.1\r\n");
		while (httpd_in_flight(srv_listener_httpd(r.ign)) == 0)
			loop_turn(r.loop, 1);
		loop_advance(r.loop, table[i].late_ms);
		cli_send(&c, "Host: x\r\n\r\n");
		while (!fake_expect_started(e))
			loop_turn(r.loop, 1);
		cr_assert_eq(fake_expect_request(e)->deadline_ms, table[i].deadline_ms,
			"%u ms late: %u", table[i].late_ms, fake_expect_request(e)->deadline_ms);
		loop_advance(r.loop, table[i].deadline_ms);
		cr_assert(cli_reply(&c, &a, false));
		if (table[i].late_ms < 14999)
			rig_expect(&a, 503, 5, AWAY, "late");
		cli_reply_fini(&a);
		cli_close(&c);
		rig_close(&r);
	}
}

Test(srv_regignition, a_client_that_leaves_cancels_the_call)
{
	struct rig r;
	struct fake_expect *e;
	struct cli c;

	rig_open(&r, OPEN_SPEC);
	e = fake_transport_expect(r.ft, "POST", MACHINES);
	c = rig_begin(&r, r.port, GET_IGNITION, e);
	cr_assert_eq(srv_pending_count(r.env.pending), 1);
	cli_close(&c);
	while (fake_expect_open(e))
		loop_turn(r.loop, 1);
	cr_assert_eq(httpd_in_flight(srv_listener_httpd(r.ign)), 0);
	rig_forgets(&r);
	rig_close(&r);
}

Test(srv_regignition, goes_down_with_requests_under_way)
{
	struct rig r;
	struct fake_expect *e;
	struct cli c;

	rig_open(&r, OPEN_SPEC);
	e = fake_transport_expect(r.ft, "POST", MACHINES);
	c = rig_begin(&r, r.port, GET_IGNITION, e);
	rig_close(&r);
	cli_close(&c);
}

Test(srv_regignition, a_cluster_that_goes_meanwhile_is_not_answered_for)
{
	struct rig r;
	struct cli_reply a;
	struct fake_expect *e;
	struct cli c;

	rig_open(&r, OPEN_SPEC);
	e = fake_transport_expect(r.ft, "POST", MACHINES);
	c = rig_begin(&r, r.port, GET_IGNITION, e);
	fake_api_delete(r.api, &kobj_cluster, NS, "tec");
	loop_drain(r.loop);
	fake_expect_answer(e, 201, "{\"metadata\":{\"resourceVersion\":\"7\"}}");
	cr_assert(cli_reply(&c, &a, false));
	rig_expect(&a, 503, 30,
		"{\"code\":503,\"message\":\"No TrustedExecutionCluster is installed\"}", "gone");
	cli_close(&c);
	rig_close(&r);
}

/* Not 429, at which Ignition gives up. */
Test(srv_regignition, rate_limit_answers_503)
{
	struct rig r;
	struct cli_reply a;
	struct cli c;

	rig_init(&r);
	srv_listener_free(r.ign);
	r.env.rate = ratelimit_new(3, 1, 16);
	r.ign = srv_regignition_new(&r.env);
	cr_assert_eq(
		httpd_listen(srv_listener_httpd(r.ign), "127.0.0.1:0", &(struct err)ERR_INIT), 0);
	r.port = httpd_port(srv_listener_httpd(r.ign));
	rig_start(&r);
	rig_cluster(&r, OPEN_SPEC);
	c = cli_open(r.loop, r.port);
	for (int i = 0; i < 3; i++) {
		cli_send(&c, GET_IGNITION);
		cr_assert_eq(cli_status(&c), 200);
	}
	cli_send(&c, GET_IGNITION);
	cr_assert(cli_reply(&c, &a, false));
	rig_expect(&a, 503, 1, "{\"code\":503,\"message\":\"too many requests from this address\"}",
		"fourth");
	cli_close(&c);
	rig_ask(&r, r.port, GET_IGNITION, &a);
	rig_expect(&a, 503, 1, "{\"code\":503,\"message\":\"too many requests from this address\"}",
		"a new connection");
	cr_assert_eq(rig_posts(&r), 3);
	rig_close(&r);
}

Test(srv_regignition, logs_who_registered_and_nothing_of_the_key)
{
	struct rig r;
	struct cli_reply a;

	rig_open(&r, OPEN_SPEC);
	rig_ask(&r, r.port, GET_IGNITION, &a);
	cli_reply_fini(&a);
	cr_assert(strstr(strbuf_str(&r.log),
			  "msg=\"machine registered\" kind=Machine ns=ns name=machine-"),
		"%s", strbuf_str(&r.log));
	cr_assert(strstr(strbuf_str(&r.log), "peer=127.0.0.1:") ||
			  strstr(strbuf_str(&r.log), "peer=\"127.0.0.1:"),
		"%s", strbuf_str(&r.log));
	rig_close(&r);
}
