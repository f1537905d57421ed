/* SPDX-License-Identifier: MIT */
/*
 * From what the controllers decided to what a Trustee holds, on an in-memory API and an in-memory
 * Trustee, and back again.
 */
#include "config.h"

#include "ctl/nodes.h"
#include "tec/base/clock.h"
#include "tec/ctl/trustee.h"
#include "tec/kbs/push.h"
#include "tec/model/ak.h"
#include "tec/model/cluster.h"
#include "tec/model/lost.h"

#define SPEC "{" ADDRESS "}"
#define EXTERNAL                                                                                   \
	"{\"publicTrusteeAddr\":\"far.example:8443\",\"trustee\":{\"deploy\":\"External\"}}"
#define SHARED(more) "{\"spec\":{\"trustee\":{\"keyIsolation\":\"Shared\"" more "}}}"

static void up(void)
{
	nodes_up();
	world_since(&w);
}

TestSuite(ctl_trustee, .init = up, .fini = nodes_down, .timeout = 120);

static const char *identity(const char *pem)
{
	static char name[300];

	identity_of(pem, name);
	return fake_kbs_value(kbs, name);
}

static void install(const char *spec)
{
	world_cluster(&w, "tec", spec);
	world_boot(&w, NULL);
	world_run(&w, 20000);
}

Test(ctl_trustee, a_node_is_delivered_and_revoked)
{
	install(SPEC);
	cr_assert_str_eq(synced(), "Synced");
	join(20000);
	cr_assert(resource(ID_A));
	cr_assert(strstr(identity(test_pem[0]), ID_A));
	cr_assert_str_eq(world_cond(&w, &kobj_machine, "a", "Delivered"), "True");
	cr_assert_str_eq(world_cond(&w, &kobj_machine, "a", "Ready"), "True");
	cr_assert_str_eq(world_cond(&w, &kobj_ak, "key", "Delivered"), "True");
	fake_api_delete(w.api, &kobj_machine, NS, "a");
	world_run(&w, 20000);
	cr_assert_null(world_get(&w, &kobj_machine, "a"));
	cr_assert_null(resource(ID_A));
	cr_assert_str_eq(identity(test_pem[0]), "null");
}

Test(ctl_trustee, one_node_costs_six_requests_and_rest_costs_none)
{
	install(SPEC);
	fake_kbs_forget(kbs);
	join(20000);
	cr_assert_leq(fake_kbs_requests(kbs), 7, "%zu", fake_kbs_requests(kbs)); /* and a probe */
	fake_kbs_forget(kbs);
	world_run(&w, 170000); /* a probe in ten seconds at most, and nothing else */
	cr_assert_leq(fake_kbs_requests(kbs), 17);
	cr_assert_eq(fake_kbs_count(kbs, "GET", "operator.generation"), fake_kbs_requests(kbs));
}

static void eight_machines(int from)
{
	char id[40], name[16];

	for (int i = from; i < from + 8; i++) {
		snprintf(id, sizeof(id), "0000%04d-0000-4000-8000-00000000000a", i);
		snprintf(name, sizeof(name), "m%d", i);
		world_machine(&w, name, id, "listener");
	}
	world_run(&w, 30000);
}

/* A key at a time for storage that loses what comes at the same time; more as soon as spec says so.
 */
Test(ctl_trustee, no_more_keys_are_sent_at_once_than_spec_allows)
{
	install(SPEC);
	fake_api_merge(w.api, &kobj_cluster, NS, "tec", SHARED(",\"window\":1"));
	world_run(&w, 20000);
	fake_kbs_latency(kbs, 200);
	fake_kbs_forget(kbs);
	eight_machines(0);
	cr_assert_eq(fake_kbs_resources(kbs), (size_t)8, "%zu", fake_kbs_resources(kbs));
	cr_assert_eq(fake_kbs_count(kbs, "POST", "/resource/"), (size_t)8);
	cr_assert_leq(
		fake_kbs_most_in_flight(kbs), (size_t)2); /* a probe or the sentinel beside it */
	fake_api_merge(w.api, &kobj_cluster, NS, "tec", SHARED(",\"window\":4"));
	world_run(&w, 2000);
	eight_machines(8);
	cr_assert_eq(fake_kbs_resources(kbs), (size_t)16);
	cr_assert_geq(fake_kbs_most_in_flight(kbs), (size_t)4);
}

/* Somebody else's may have LocalJson storage; the operator's own has not. */
Test(ctl_trustee, without_a_window_in_spec_only_ours_gets_several_keys_at_once)
{
	admin_key("trustee-auth");
	install(EXTERNAL);
	fake_api_merge(w.api, &kobj_cluster, NS, "tec", SHARED(""));
	world_run(&w, 20000);
	fake_kbs_latency(kbs, 200);
	eight_machines(0);
	cr_assert_eq(fake_kbs_resources(kbs), (size_t)8, "%zu", fake_kbs_resources(kbs));
	cr_assert_leq(fake_kbs_most_in_flight(kbs), (size_t)2);
	world_stop(&w);
	fake_kbs_free(kbs);
	nodes_up();
	world_since(&w);
	install("{" ADDRESS ",\"trustee\":{\"keyIsolation\":\"Shared\"}}");
	fake_kbs_latency(kbs, 200);
	eight_machines(0);
	cr_assert_eq(fake_kbs_resources(kbs), (size_t)8, "%zu", fake_kbs_resources(kbs));
	cr_assert_geq(fake_kbs_most_in_flight(kbs), (size_t)8);
}

Test(ctl_trustee, what_was_lost_is_put_back)
{
	install(SPEC);
	join(20000);
	fake_kbs_lose_store(kbs);
	world_run(&w, 200000);
	cr_assert(resource(ID_A));
	cr_assert(strstr(identity(test_pem[0]), ID_A));
	cr_assert(fake_kbs_policy(kbs, true) && fake_kbs_policy(kbs, false));
}

Test(ctl_trustee, a_new_pod_is_asked_at_once)
{
	install(SPEC);
	join(20000);
	fake_kbs_lose_store(kbs);
	fake_api_put(w.api, &kobj_pod, NS,
		"{\"metadata\":{\"name\":\"p\",\"labels\":{\"app\":\"kbs\"}},\"status\":{\"conditions\":"
		"[{\"type\":\"Ready\",\"status\":\"True\"}]}}");
	world_run(&w, 3000);
	cr_assert(resource(ID_A));
}

Test(ctl_trustee, a_restart_sends_nothing)
{
	install(SPEC);
	join(20000);
	world_kill(&w);
	fake_kbs_forget(kbs);
	world_boot(&w, NULL);
	world_run(&w, 20000);
	cr_assert_leq(fake_kbs_requests(kbs), 2, "%zu", fake_kbs_requests(kbs));
	cr_assert_eq(fake_kbs_count(kbs, "GET", KBS_SENTINEL), fake_kbs_requests(kbs));
	cr_assert_str_eq(world_cond(&w, &kobj_machine, "a", "Delivered"), "True");
	/* nor does it write what it revokes a moment later */
	cr_assert_eq(fake_transport_writes(w.life->f), 0, "%zu", fake_transport_writes(w.life->f));
}

Test(ctl_trustee, after_a_restart_without_an_answer_nobody_knows)
{
	install(SPEC);
	join(20000);
	world_kill(&w);
	fake_kbs_down(kbs, true);
	world_boot(&w, NULL);
	world_run(&w, 20000);
	cr_assert_str_eq(world_cond(&w, &kobj_machine, "a", "Delivered"), "False");
	cr_assert_str_eq(world_cond(&w, &kobj_ak, "key", "Delivered"), "False");
	cr_assert_str_eq(synced(), "NotAvailable");
}

Test(ctl_trustee, another_admin_key_is_used_at_once)
{
	admin_key("trustee-auth"); /* an administrator's: this Trustee is not the operator's */
	install(EXTERNAL);
	fake_kbs_forget(kbs);
	for (int i = 0; i < 3; i++) {
		fake_api_merge(w.api, &kobj_secret, NS, "trustee-auth",
			i % 2 ? "{\"data\":{\"private.key\":\"a2V5\"}}"
			      : "{\"data\":{\"private.key\":\"a2V6\"}}");
		world_run(&w, 3000);
		cr_assert_eq(fake_kbs_requests(kbs), (size_t)i + 1, "%zu", fake_kbs_requests(kbs));
	}
	cr_assert_str_eq(synced(), "Synced");
}

Test(ctl_trustee, nothing_is_revoked_while_it_is_away)
{
	install(SPEC);
	join(20000);
	fake_kbs_down(kbs, true);
	fake_api_delete(w.api, &kobj_machine, NS, "a");
	world_run(&w, 3600000);
	cr_assert(world_get(&w, &kobj_machine, "a"));
	cr_assert_str_eq(synced(), "NotAvailable");
	fake_kbs_down(kbs, false);
	world_run(&w, 60000);
	cr_assert_null(world_get(&w, &kobj_machine, "a"));
	cr_assert_null(resource(ID_A));
}

Test(ctl_trustee, a_refusal_is_reported)
{
	world_cluster(&w, "tec", SPEC);
	for (unsigned i = 1; i < 40; i++)
		fake_kbs_fault(kbs, i, NULL, FAKE_KBS_REFUSE, 401, "AdminAuthAccess", NULL);
	world_boot(&w, NULL);
	world_run(&w, 30000);
	cr_assert_str_eq(synced(), "Refused");
	cr_assert_leq(fake_kbs_requests(kbs), 3);
}

Test(ctl_trustee, an_admin_key_that_was_not_announced_is_never_used)
{
	install(SPEC);
	cr_assert_str_eq(synced(), "Synced");
	world_machine(&w, "a", ID_A, NULL);
	fake_api_merge(
		w.api, &kobj_secret, NS, "trustee-auth", "{\"data\":{\"private.key\":\"a2V6\"}}");
	world_run(&w, 3000);
	fake_kbs_forget(kbs);
	world_run(&w, 60000);
	cr_assert_eq(fake_kbs_requests(kbs), 0);
	cr_assert_str_eq(synced(), "NotAvailable");
	cr_assert_str_eq(world_reason(&w, &kobj_cluster, "tec", "Installed"), "Conflict");
	world_kill(&w);
	world_boot(&w, NULL);
	world_run(&w, 60000);
	cr_assert_eq(fake_kbs_requests(kbs), 0);
	fake_api_delete(w.api, &kobj_secret, NS, "trustee-auth");
	world_run(&w, 60000);
	cr_assert_str_eq(synced(), "Synced");
}

Test(ctl_trustee, an_external_one_is_remembered_over_a_deleted_cluster_and_a_restart)
{
	admin_key("trustee-auth");
	install(EXTERNAL);
	cr_assert(world_get(&w, &kobj_configmap, "tec-trustees"));
	fake_api_merge(w.api, &kobj_cluster, NS, "tec", SHARED(""));
	world_machine(&w, "a", ID_A, NULL);
	world_run(&w, 20000);
	cr_assert(resource(ID_A));
	fake_kbs_down(kbs, true);
	fake_api_delete(w.api, &kobj_cluster, NS, "tec");
	world_run(&w, 5000);
	world_kill(&w);
	world_boot(&w, NULL);
	fake_api_delete(w.api, &kobj_machine, NS, "a");
	world_run(&w, 60000);
	cr_assert(world_get(&w, &kobj_machine, "a"), "a finalizer went although keys are there");
	fake_kbs_down(kbs, false);
	world_run(&w, 60000);
	cr_assert_null(world_get(&w, &kobj_machine, "a"));
	cr_assert_null(resource(ID_A));
	cr_assert_null(world_get(&w, &kobj_configmap, "tec-trustees"));
}

/* Somebody fills the memory with what cannot be read: it is written again as it was. */
Test(ctl_trustee, memory_that_cannot_be_read_is_written_again)
{
	struct k8s_cache *cache;
	struct err err = ERR_INIT;
	char rv[24];

	admin_key("trustee-auth");
	install(EXTERNAL);
	fake_api_merge(w.api, &kobj_cluster, NS, "tec", SHARED(""));
	world_machine(&w, "a", ID_A, NULL);
	world_run(&w, 20000);
	cr_assert(resource(ID_A));
	cache = w.life->caches.cache[CACHES_CONFIGMAPS];
	fake_api_hold_watches(w.api, true);
	fake_api_merge(
		w.api, &kobj_configmap, NS, "tec-trustees", "{\"data\":{\"trustees.json\":\"x\"}}");
	snprintf(rv, sizeof(rv), "%llu", (unsigned long long)fake_api_rv(w.api));
	cr_assert_eq(k8s_cache_put_unreadable(cache, "tec-trustees",
			     world_str(&w, &kobj_configmap, "tec-trustees", "metadata/uid"), rv,
			     false, &err),
		0);
	world_run(&w, 5000);
	cr_assert_not(k8s_cache_find(cache, "tec-trustees")->unreadable);
	fake_api_hold_watches(w.api, false);
	world_run(&w, 5000);
	cr_assert(strstr(
		json_get_str(json_get_obj(world_get(&w, &kobj_configmap, "tec-trustees"), "data"),
			"trustees.json"),
		"far.example"));
	fake_api_delete(w.api, &kobj_machine, NS, "a");
	world_run(&w, 20000);
	cr_assert_null(resource(ID_A));
}

Test(ctl_trustee, a_missing_secret_is_named)
{
	install(EXTERNAL);
	cr_assert(strstr(synced_message(), "trustee-auth"));
	cr_assert_eq(fake_kbs_requests(kbs), 0);
	admin_key("trustee-auth");
	world_run(&w, 20000);
	cr_assert_str_eq(synced(), "Synced");
}

static const char *armed_url;

static void arm_url(void)
{
	w.life->env.kbs_url = armed_url;
}

Test(ctl_trustee, plain_text_is_refused_when_spec_says_so)
{
	static const struct {
		const char *spec, *url, *says;
	} cases[] = {
		{"{\"publicTrusteeAddr\":\"kbs-service\",\"trustee\":{\"plaintext\":\"Refuse\"}}",
			NULL, "spec.trusteeSecret is not set"},
		{"{\"publicTrusteeAddr\":\"kbs-service\",\"trustee\":{\"plaintext\":\"Refuse\"}}",
			"http://trustee.test:8080", "--kbs-url is an http:// URL"},
		{"{\"publicTrusteeAddr\":\"far:1\",\"trusteeSecret\":\"tls\",\"trustee\":"
		 "{\"deploy\":\"External\",\"plaintext\":\"Refuse\"}}",
			"http://trustee.test:8080", "--kbs-url is an http:// URL"},
		{"{\"publicTrusteeAddr\":\"far:1\",\"trusteeSecret\":\"tls\",\"trusteeServers\":"
		 "[{\"address\":\"other:1\",\"adminSecret\":\"trustee-auth\"}],"
		 "\"trustee\":{\"deploy\":\"External\",\"plaintext\":\"Refuse\"}}",
			NULL, "has no caSecret"},
	};

	admin_key("trustee-auth");
	fake_api_put(w.api, &kobj_secret, NS,
		"{\"metadata\":{\"name\":\"tls\"},\"data\":{\"ca.crt\":\"Y2E=\"}}");
	world_machine(&w, "a", ID_A, NULL);
	w.arm = arm_url;
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		armed_url = cases[i].url;
		install(cases[i].spec);
		cr_assert_eq(w.n_plain, 0, "case %zu", i);
		cr_assert(strstr(synced_message(), cases[i].says), "%s", synced_message());
		cr_assert(strstr(synced_message(), "plaintext to Allow"), "%s", synced_message());
		/* Not by a deleted cluster either, nor by what memory says of its servers. */
		fake_api_delete(w.api, &kobj_cluster, NS, "tec");
		world_run(&w, 20000);
		world_kill(&w);
		world_boot(&w, NULL);
		world_run(&w, 20000);
		cr_assert_eq(w.n_plain, 0, "case %zu", i);
		world_kill(&w);
	}
}

static void arm_here(void)
{
	w.life->env.kbs_url = NULL;
	w.life->caches.kbs_in_process = true;
}

Test(ctl_trustee, broker_of_this_process_needs_no_secret_and_no_tls)
{
	w.arm = arm_here;
	install("{\"publicTrusteeAddr\":\"far:1\",\"trusteeServers\":"
		"[{\"address\":\"other:1\",\"adminSecret\":\"trustee-auth\"}],"
		"\"trustee\":{\"deploy\":\"External\",\"plaintext\":\"Refuse\"}}");
	cr_assert_eq(w.n_here, 1);
	cr_assert_eq(w.n_plain, 0);
	/* The other one is another machine's: nothing changes for it. */
	cr_assert(strstr(synced_message(), "Trustee at other:1: spec.trustee.plaintext is Refuse"),
		"%s", synced_message());
	cr_assert_not(strstr(synced_message(), "far:1"));
	world_kill(&w);
	fake_api_delete(w.api, &kobj_cluster, NS, "tec");
	install("{\"publicTrusteeAddr\":\"far:1\",\"trustee\":"
		"{\"deploy\":\"External\",\"plaintext\":\"Refuse\"}}");
	cr_assert_str_eq(synced(), "Synced");
}

Test(ctl_trustee, plain_text_is_stopped_when_spec_begins_to_refuse_it)
{
	install(SPEC);
	join(20000);
	cr_assert_gt(w.n_plain, 0);
	fake_api_merge(w.api, &kobj_cluster, NS, "tec",
		"{\"spec\":{\"trustee\":{\"plaintext\":\"Refuse\"}}}");
	world_run(&w, 1000);
	fake_kbs_forget(kbs);
	world_machine(&w, "b", ID_B, NULL);
	world_run(&w, 60000);
	cr_assert_eq(fake_kbs_requests(kbs), 0);
	fake_api_merge(w.api, &kobj_cluster, NS, "tec", SHARED(",\"plaintext\":\"Allow\""));
	world_run(&w, 20000);
	cr_assert(resource(ID_B));
}

Test(ctl_trustee, lost_leadership_sends_nothing_more)
{
	install(SPEC);
	join(2500);
	ctl_cluster_off(w.life->cluster);
	ctl_kind_off(w.life->machine);
	ctl_kind_off(w.life->ak);
	ctl_trustee_off(w.life->trustee);
	fake_kbs_forget(kbs);
	world_run(&w, 600000);
	cr_assert_eq(fake_kbs_requests(kbs), 0);
}

Test(ctl_trustee, a_new_key_comes_after_the_old_one_is_gone)
{
	size_t n;

	install(SPEC);
	join(20000);
	fake_kbs_forget(kbs);
	world_ak(&w, "second", test_pem[1], ID_A, NULL);
	world_run(&w, 5000);
	fake_api_merge(w.api, &kobj_ak, NS, "second",
		"{\"metadata\":{\"annotations\":{\"" MODEL_APPROVED_ANNOTATION "\":\"true\"}}}");
	world_run(&w, 30000);
	cr_assert_str_eq(identity(test_pem[0]), "null");
	cr_assert(strstr(identity(test_pem[1]), ID_A));
	n = fake_kbs_count(kbs, "POST", "reference-value");
	cr_assert_geq(n, 3, "the old one and the new one went in one message");
}

/* ---- servers that leave */

#define OTHER                                                                                      \
	"{\"publicTrusteeAddr\":\"far.example:8443\",\"trustee\":{\"deploy\":\"External\"},"       \
	"\"trusteeServers\":[{\"address\":\"other:1\",\"adminSecret\":\"trustee-auth\"}]}"

Test(ctl_trustee, one_that_leaves_spec_is_reported_once)
{
	admin_key("trustee-auth");
	install(OTHER);
	cr_assert_eq(kbs_sync_targets(w.life->caches.sync), 2);
	cr_assert_eq(world_events(&w, "TrusteeLeft"), 0);
	/* Without the mirror: an administrator's word that nothing was lost. */
	fake_api_merge(w.api, &kobj_cluster, NS, "tec",
		"{\"metadata\":{\"annotations\":{\"" MODEL_EXTENDED_ANNOTATION
		"\":null}},\"spec\":{\"trusteeServers\":null}}");
	world_run(&w, 60000);
	cr_assert_eq(kbs_sync_targets(w.life->caches.sync), 1);
	cr_assert_eq(world_events(&w, "TrusteeLeft"), 1);
	cr_assert_eq(world_events(&w, "other:1"), 1);
	cr_assert_null(strstr(
		world_str(&w, &kobj_configmap, "tec-trustees", "data/trustees.json"), "other:1"));
}

Test(ctl_trustee, a_spec_that_lost_its_servers_takes_none_of_them_away)
{
	admin_key("trustee-auth");
	install(OTHER);
	fake_api_merge(w.api, &kobj_cluster, NS, "tec", SHARED(""));
	world_machine(&w, "a", ID_A, NULL);
	world_run(&w, 20000);
	cr_assert(resource(ID_A));
	/* As another operator's CRD prunes it. */
	fake_api_merge(w.api, &kobj_cluster, NS, "tec",
		"{\"spec\":{\"trusteeServers\":null,\"trustee\":null}}");
	for (int i = 0; i < 2; i++) {
		world_run(&w, 60000);
		cr_assert_eq(kbs_sync_targets(w.life->caches.sync), 2, "life %d", i);
		cr_assert_eq(world_events(&w, "TrusteeLeft"), 0);
		cr_assert(
			strstr(world_str(&w, &kobj_configmap, "tec-trustees", "data/trustees.json"),
				"other:1"));
		if (i)
			break;
		world_kill(&w);
		world_boot(&w, NULL);
	}
	fake_api_delete(w.api, &kobj_machine, NS, "a");
	world_run(&w, 60000);
	cr_assert_null(resource(ID_A), "what has to be revoked is");
	cr_assert_null(world_get(&w, &kobj_machine, "a"));
}

Test(ctl_trustee, its_own_one_under_a_new_address_is_one)
{
	install("{}");
	join(20000);
	fake_api_merge(w.api, &kobj_cluster, NS, "tec",
		"{\"spec\":{\"publicTrusteeAddr\":\"trustee.example:443\"}}");
	world_run(&w, 20000);
	cr_assert_eq(kbs_sync_targets(w.life->caches.sync), 1);
	cr_assert_str_eq(synced(), "Synced");
	cr_assert_eq(world_events(&w, "TrusteeLeft"), 0);
}

/* ---- servers that are lost for good */

#define TWO_MORE                                                                                   \
	"{\"publicTrusteeAddr\":\"far.example:8443\",\"trustee\":{\"deploy\":\"External\","        \
	"\"keyIsolation\":\"Shared\"},\"trusteeServers\":[{\"address\":\"b:1\",\"adminSecret\":"   \
	"\"for-b\"},{\"address\":\"c:1\",\"adminSecret\":\"for-c\"}]}"
#define LOST(address)                                                                              \
	"{\\\"address\\\":\\\"" address                                                            \
	"\\\",\\\"at\\\":\\\"2026-01-02T03:04:05Z\\\",\\\"by\\\":\\\"ann\\\"}"
#define ANNOTATE(entries)                                                                          \
	"{\"metadata\":{\"annotations\":{\"" MODEL_LOST_ANNOTATION "\":\"[" entries "]\"}}}"

static void annotate_lost(const char *patch)
{
	fake_api_merge(w.api, &kobj_cluster, NS, "tec", patch);
	world_run(&w, 20000);
}

static const char *remembered(void)
{
	return world_str(&w, &kobj_configmap, "tec-trustees", "data/trustees.json");
}

static bool waits_for(const char *says)
{
	return world_get(&w, &kobj_machine, "a") &&
	       str_eq(world_reason(&w, &kobj_machine, "a", "Delivered"), "Revoking") &&
	       strstr(fake_api_condition(w.api, &kobj_machine, NS, "a", "Delivered", "message"),
		       says) &&
	       strstr(fake_api_condition(w.api, &kobj_machine, NS, "a", "Ready", "message"), says);
}

/* Machine a is delivered to three servers, of which b and c then do not answer and leave spec. */
static void two_go_away(void)
{
	admin_key("trustee-auth");
	admin_key("for-b");
	admin_key("for-c");
	install(TWO_MORE);
	world_machine(&w, "a", ID_A, NULL);
	world_run(&w, 20000);
	cr_assert(resource(ID_A));
	fake_api_delete(w.api, &kobj_secret, NS, "for-b");
	fake_api_delete(w.api, &kobj_secret, NS, "for-c");
	world_run(&w, 5000);
	cr_assert_null(strstr(remembered(), MODEL_SERVER_AWAY), "%s", remembered());
	fake_api_merge(w.api, &kobj_cluster, NS, "tec", "{\"spec\":{\"trusteeServers\":null}}");
	fake_api_delete(w.api, &kobj_machine, NS, "a");
	world_run(&w, 60000);
}

Test(ctl_trustee, each_lost_server_is_waited_for_until_it_is_declared_lost)
{
	cleanup_free char *b = NULL;

	two_go_away();
	cr_assert(waits_for("tecctl server lost b:1"));
	cr_assert(waits_for("tecctl server lost c:1"));
	cr_assert(strstr(synced_message(), "tecctl server lost b:1"), "%s", synced_message());
	b = xasprintf("{\"address\":\"b:1\",\"adminSecret\":\"for-b\",\"primary\":false,"
		      "\"cluster\":\"%s\",\"away\":true}",
		world_str(&w, &kobj_cluster, "tec", "metadata/uid"));
	cr_assert(strstr(remembered(), b), "%s", remembered());
	annotate_lost(ANNOTATE(LOST("b:1")));
	cr_assert(waits_for("tecctl server lost c:1"));
	cr_assert_not(waits_for("b:1"));
	cr_assert_null(strstr(remembered(), "b:1"), "%s", remembered());
	cr_assert_eq(world_events(&w, "TrusteeLost"), 1);
	cr_assert_eq(world_events(&w, "by ann"), 1);
	cr_assert_str_eq(world_reason(&w, &kobj_cluster, "tec", "Installed"), "Conflict");
	world_kill(&w);
	world_boot(&w, NULL);
	world_run(&w, 20000);
	cr_assert_eq(kbs_sync_targets(w.life->caches.sync), 2);
	cr_assert(waits_for("c:1"));
	annotate_lost(ANNOTATE(LOST("b:1") "," LOST("c:1")));
	cr_assert_null(world_get(&w, &kobj_machine, "a"));
	cr_assert_eq(kbs_sync_targets(w.life->caches.sync), 1);
	cr_assert_eq(world_events(&w, "TrusteeLeft"), 0);
	cr_assert_str_eq(
		world_reason(&w, &kobj_cluster, "tec", "Installed"), "InstallationCompleted");
	cr_assert_str_eq(synced(), "Synced");
}

/* The record normally covers thirty days. */
Test(ctl_trustee, what_a_lost_server_has_to_revoke_is_recorded_until_it_is_back)
{
	static const char *const ids[] = {ID_B, "00000000-0000-4000-8000-00000000000c"};
	char path[RATS_RESOURCE_PATH_MAX];

	rats_resource_path(ID_A, path);
	two_go_away();
	annotate_lost(ANNOTATE(LOST("b:1") "," LOST("c:1")));
	cr_assert_null(world_get(&w, &kobj_machine, "a"));
	for (int i = 0; i < 2; i++) {
		const char *text;

		world_machine(&w, "b", ids[i], NULL);
		world_run(&w, 20000);
		cr_assert(resource(ids[i]));
		clock_fake_advance(UINT64_C(40) * 86400 * 1000);
		fake_api_delete(w.api, &kobj_machine, NS, "b");
		world_run(&w, 60000);
		cr_assert_null(world_get(&w, &kobj_machine, "b"));
		text = world_str(&w, &kobj_configmap, "tec-revoked-0", "data/deleted");
		cr_assert_eq(strstr(text, path) != NULL, i == 0, "%d: %s", i, text);
		if (i)
			break;
		/* Back, and in sync: lost no longer. */
		admin_key("for-b");
		admin_key("for-c");
		fake_api_merge(w.api, &kobj_cluster, NS, "tec",
			"{\"spec\":{\"trusteeServers\":[{\"address\":\"b:1\",\"adminSecret\":\"for-b\"}]}}");
		world_run(&w, 60000);
		cr_assert_str_eq(synced(), "Synced");
		text = world_annotation(&w, &kobj_cluster, "tec", MODEL_LOST_ANNOTATION);
		cr_assert(strstr(text, "c:1") && !strstr(text, "b:1"), "%s", text);
		fake_api_merge(w.api, &kobj_cluster, NS, "tec",
			"{\"spec\":{\"trusteeServers\":[{\"address\":\"c:1\",\"adminSecret\":\"for-c\"}]}}");
		world_run(&w, 60000);
		cr_assert_null(world_annotation(&w, &kobj_cluster, "tec", MODEL_LOST_ANNOTATION));
	}
}

/* The store of this process needs no record, but a server that may come back does. */
Test(ctl_trustee, a_lost_server_needs_the_record_beside_the_broker_of_this_process)
{
	w.arm = arm_here;
	for (int lost = 0; lost < 2; lost++) {
		const char *text;

		install("{\"publicTrusteeAddr\":\"far:1\",\"trustee\":"
			"{\"deploy\":\"External\",\"keyIsolation\":\"Shared\"}}");
		if (lost)
			annotate_lost(ANNOTATE(LOST("b:1")));
		world_machine(&w, "a", lost ? ID_B : ID_A, NULL);
		world_run(&w, 20000);
		cr_assert(resource(lost ? ID_B : ID_A));
		fake_api_delete(w.api, &kobj_machine, NS, "a");
		world_run(&w, 60000);
		cr_assert_null(world_get(&w, &kobj_machine, "a"));
		text = world_get(&w, &kobj_configmap, "tec-revoked-0")
			       ? world_str(&w, &kobj_configmap, "tec-revoked-0", "data/deleted")
			       : "";
		cr_assert_eq(strstr(text, lost ? ID_B : ID_A) != NULL, lost, "%s", text);
		world_kill(&w);
		fake_api_delete(w.api, &kobj_cluster, NS, "tec");
	}
}

Test(ctl_trustee, a_server_in_spec_is_not_given_up)
{
	admin_key("trustee-auth");
	admin_key("for-b");
	install(TWO_MORE);
	world_machine(&w, "a", ID_A, NULL);
	world_run(&w, 20000);
	annotate_lost(ANNOTATE(LOST("b:1") "," LOST("c:1") "," LOST("far.example:8443")));
	cr_assert_eq(kbs_sync_targets(w.life->caches.sync), 3);
	cr_assert_eq(world_events(&w, "TrusteeLost"), 0);
	fake_api_delete(w.api, &kobj_machine, NS, "a");
	world_run(&w, 60000);
	cr_assert(waits_for("c:1")); /* its Secret is missing */
}

/* Nothing is approved meanwhile: to boot the node would not help. */
Test(ctl_trustee, a_node_that_waits_because_spec_lost_its_servers_says_so)
{
	two_go_away();
	world_machine(&w, "b", ID_B, "listener");
	world_run(&w, 2000);
	world_ak(&w, "key", test_pem[0], ID_B, "listener");
	world_run(&w, 20000);
	cr_assert_str_eq(world_reason(&w, &kobj_machine, "b", "AttestationKeyBound"), "Conflict");
	cr_assert(strstr(
		fake_api_condition(w.api, &kobj_machine, NS, "b", "AttestationKeyBound", "message"),
		"trusteeServers"));
	cr_assert_str_eq(world_reason(&w, &kobj_ak, "key", "Approved"), "Conflict");
	annotate_lost(ANNOTATE(LOST("b:1") "," LOST("c:1")));
	cr_assert_str_eq(world_reason(&w, &kobj_machine, "b", "AttestationKeyBound"), "Bound");
	cr_assert_str_eq(world_cond(&w, &kobj_machine, "b", "Ready"), "True");
}

/* ---- what is said of them */

/* ---- a Trustee that another cluster administers */

#define OTHER_UID "0a1b2c3d-1111-4222-8333-444455556666"
#define THIRD_UID "0a1b2c3d-1111-4222-8333-000000000003"

static void is_others(void)
{
	fake_kbs_put_value(kbs, KBS_SENTINEL,
		"{\"cluster\":\"" OTHER_UID "\",\"session\":\"\",\"sum\":\"00\"}");
}

/* Tell whether the stored sentinel names this cluster; "": no cluster. */
static bool sentinel_names(const char *uid)
{
	cleanup_free char *text = xasprintf("\"cluster\":\"%s\"", uid);

	return strstr(fake_kbs_value(kbs, KBS_SENTINEL), text) != NULL;
}

static size_t kbs_writes(void)
{
	return fake_kbs_requests(kbs) - fake_kbs_count(kbs, "GET", NULL);
}

Test(ctl_trustee, anothers_trustee_is_left_alone_until_spec_takes_it_over)
{
	admin_key("trustee-auth");
	is_others();
	install(EXTERNAL);
	join(20000);
	cr_assert_str_eq(synced(), "Conflict");
	cr_assert_str_eq(world_cond(&w, &kobj_cluster, "tec", "TrusteeSynced"), "False");
	cr_assert(strstr(synced_message(), "far.example:8443"));
	cr_assert(strstr(synced_message(), OTHER_UID));
	cr_assert(strstr(synced_message(), "spec.trustee.takeOver"));
	cr_assert_eq(world_events(&w, OTHER_UID), 1);
	cr_assert_str_eq(world_cond(&w, &kobj_machine, "a", "Delivered"), "False");
	fake_api_merge(w.api, &kobj_cluster, NS, "tec",
		"{\"spec\":{\"trustee\":{\"takeOver\":\"" THIRD_UID "\"}}}");
	world_run(&w, 60000);
	cr_assert_str_eq(synced(), "Conflict");
	cr_assert_eq(kbs_writes(), 0);
	fake_api_merge(w.api, &kobj_cluster, NS, "tec",
		"{\"spec\":{\"trustee\":{\"takeOver\":\"" OTHER_UID "\"}}}");
	world_run(&w, 5000);
	cr_assert_str_eq(synced(), "Synced");
	cr_assert(resource(ID_A));
	cr_assert_eq(world_events(&w, OTHER_UID), 1);
	/* The other one takes it back: the two do not take turns, not even after a restart. */
	world_run(&w, 5000);
	is_others();
	world_run(&w, 20000);
	cr_assert_str_eq(synced(), "Conflict");
	cr_assert_eq(world_events(&w, OTHER_UID), 2);
	world_kill(&w);
	world_boot(&w, NULL);
	world_run(&w, 60000);
	cr_assert_str_eq(synced(), "Conflict");
	/* Somebody decides once more. */
	for (int i = 0; i < 2; i++) {
		fake_api_merge(w.api, &kobj_cluster, NS, "tec",
			i ? "{\"spec\":{\"trustee\":{\"takeOver\":\"" OTHER_UID "\"}}}"
			  : "{\"spec\":{\"trustee\":{\"takeOver\":\"" THIRD_UID "\"}}}");
		world_run(&w, 20000);
		cr_assert_str_eq(synced(), i ? "Synced" : "Conflict");
	}
}

/* A key that may still be there is not forgotten, and cannot be revoked. */
Test(ctl_trustee, in_a_conflict_a_machine_waits_for_its_end)
{
	admin_key("trustee-auth");
	install(EXTERNAL);
	join(20000);
	is_others();
	world_run(&w, 20000);
	fake_api_delete(w.api, &kobj_machine, NS, "a");
	world_run(&w, 60000);
	cr_assert(world_get(&w, &kobj_machine, "a"));
	cr_assert(resource(ID_A));
	fake_api_merge(w.api, &kobj_cluster, NS, "tec",
		"{\"spec\":{\"trustee\":{\"takeOver\":\"" OTHER_UID "\"}}}");
	world_run(&w, 20000);
	cr_assert_null(world_get(&w, &kobj_machine, "a"));
	cr_assert_null(resource(ID_A));
}

static void arm_in_process(void)
{
	w.life->caches.kbs_in_process = true;
}

Test(ctl_trustee, its_own_trustee_and_broker_know_no_other_cluster)
{
	is_others();
	install(SPEC);
	cr_assert_str_eq(synced(), "Synced");
	is_others();
	world_run(&w, 30000);
	cr_assert_str_eq(synced(), "Synced");
	world_kill(&w);
	is_others();
	w.arm = arm_in_process;
	fake_api_delete(w.api, &kobj_cluster, NS, "tec");
	install(EXTERNAL);
	cr_assert_str_eq(synced(), "Synced");
}

static const char *uid_of_cluster(void)
{
	return world_str(&w, &kobj_cluster, "tec", "metadata/uid");
}

Test(ctl_trustee, a_cluster_made_again_goes_on_at_its_external_trustee)
{
	cleanup_free char *first = NULL;

	admin_key("trustee-auth");
	install(EXTERNAL);
	first = xstrdup(uid_of_cluster());
	cr_assert(sentinel_names(first));
	/* A Machine that stays: not everything is taken back. */
	world_machine(&w, "a", ID_A, NULL);
	world_ak(&w, "key", test_pem[0], ID_A, NULL);
	world_run(&w, 20000);
	fake_api_delete(w.api, &kobj_cluster, NS, "tec");
	world_run(&w, 20000);
	cr_assert(sentinel_names(first));
	world_cluster(&w, "tec", EXTERNAL);
	world_run(&w, 30000);
	cr_assert_str_eq(synced(), "Synced");
	cr_assert(sentinel_names(uid_of_cluster()));
	cr_assert_not(sentinel_names(first));
	/* The same while no operator runs. */
	world_kill(&w);
	fake_api_delete(w.api, &kobj_cluster, NS, "tec");
	world_cluster(&w, "tec", EXTERNAL);
	world_boot(&w, NULL);
	world_run(&w, 30000);
	cr_assert_str_eq(synced(), "Synced");
	cr_assert(sentinel_names(uid_of_cluster()));
}

Test(ctl_trustee, a_deleted_cluster_leaves_its_external_trustee_to_the_next_one)
{
	cleanup_free char *first = NULL;

	admin_key("trustee-auth");
	install(EXTERNAL);
	first = xstrdup(uid_of_cluster());
	join(20000);
	cr_assert(resource(ID_A));
	fake_api_delete(w.api, &kobj_cluster, NS, "tec");
	world_run(&w, 10000);
	cr_assert(sentinel_names(first), "it still holds a key");
	fake_api_delete(w.api, &kobj_machine, NS, "a");
	world_run(&w, 20000);
	cr_assert_null(resource(ID_A));
	cr_assert(sentinel_names(""));
	cr_assert_null(world_get(&w, &kobj_configmap, "tec-trustees"));
	world_run(&w, 60000);
	cr_assert(sentinel_names(""));
}

/* The process ends at any time of it. */
Test(ctl_trustee, a_restart_does_not_forget_to_leave_it)
{
	for (uint64_t ms = 0; ms < 6000; ms += 400) {
		admin_key("trustee-auth");
		install(EXTERNAL);
		join(20000);
		fake_api_delete(w.api, &kobj_cluster, NS, "tec");
		fake_api_delete(w.api, &kobj_machine, NS, "a");
		world_run(&w, ms);
		world_kill(&w);
		world_boot(&w, NULL);
		world_run(&w, 30000);
		cr_assert(sentinel_names(""), "after %u ms: %s", (unsigned)ms,
			fake_kbs_value(kbs, KBS_SENTINEL));
		cr_assert_null(world_get(&w, &kobj_configmap, "tec-trustees"));
		nodes_down();
		up();
	}
}

Test(ctl_trustee_text, names_each_that_is_not_in_sync_and_why)
{
	static const struct {
		enum kbs_target_state state;
		const char *error, *text, *said;
	} rows[] = {
		{KBS_TARGET_UNREACHABLE, NULL, NULL, "Trustee at x: it cannot be reached yet."},
		{KBS_TARGET_UNREACHABLE, "no route", NULL, "Trustee at x: no route."},
		{KBS_TARGET_UNREACHABLE, NULL, "Secret a does not exist yet.",
			"Trustee at x: Secret a does not exist yet."},
		{KBS_TARGET_PROBING, NULL, NULL, "Trustee at x: it has not answered yet."},
		{KBS_TARGET_POPULATING, NULL, NULL,
			"Trustee at x: policies, values and keys are being sent."},
		{KBS_TARGET_REFUSED, "HTTP 401 AdminAuthAccess", NULL,
			"Trustee at x: it rejects updates: HTTP 401 AdminAuthAccess."},
		{KBS_TARGET_CONFLICT, "the cluster with uid u administers it", NULL,
			"Trustee at x: the cluster with uid u administers it, so nothing is sent. Use another Trustee for "
			"one of the two clusters; or, to replace the other cluster there, set spec.trustee.takeOver to its UID."},
		{KBS_TARGET_IN_SYNC, NULL, NULL, "Changes are being sent to Trustee."},
	};
	struct kbs_sync *s = kbs_sync_new();
	cleanup_strbuf struct strbuf out = STRBUF_INIT;

	cr_assert_str_eq(ctl_trustee_why(s, NULL, &out), "No Trustee is administered.");
	kbs_sync_target_add(s, "x");
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		kbs_sync_set_status(s, "x", rows[i].state, rows[i].error, rows[i].text);
		cr_assert_str_eq(ctl_trustee_why(s, NULL, &out), rows[i].said);
	}
	kbs_sync_set_status(s, "x", KBS_TARGET_UNREACHABLE, "a", NULL);
	kbs_sync_target_add(s, "y");
	cr_assert_str_eq(ctl_trustee_why(s, NULL, &out),
		"Trustee at x: a. Trustee at y: it has not answered yet.");
	cr_assert_str_eq(ctl_trustee_lacking(s, NULL, KBS_RESOURCE, "n", &out),
		"Trustee at x, y has not confirmed it yet.");
	kbs_sync_free(s);
}

/* Only what spec no longer names can be declared lost. */
Test(ctl_trustee_text, tells_the_way_out_for_a_server_that_does_not_answer)
{
	static const struct {
		const char *name, *error;
		enum kbs_target_state state;
		const char *why, *lacking;
	} rows[] = {
		{"gone:1", "no route", KBS_TARGET_UNREACHABLE,
			"Trustee at gone:1: no route. It does not answer and is no longer in spec. If it is lost for good: tecctl "
			"server lost gone:1",
			"Trustee at gone:1 does not answer and is no longer in spec. If it is lost for good: tecctl server lost "
			"gone:1"},
		{"gone:1", NULL, KBS_TARGET_PROBING, "Trustee at gone:1: it has not answered yet.",
			"Trustee at gone:1 has not confirmed it yet."},
		{"gone:1", "denied", KBS_TARGET_REFUSED,
			"Trustee at gone:1: it rejects updates: denied.",
			"Trustee at gone:1 has not confirmed it yet."},
		{"far:1", "no route", KBS_TARGET_UNREACHABLE,
			"Trustee at far:1: no route. If it is lost for good, remove it from spec.trusteeServers.",
			"Trustee at far:1 has not confirmed it yet."},
		{"own:1", "no route", KBS_TARGET_UNREACHABLE, "Trustee at own:1: no route.",
			"Trustee at own:1 has not confirmed it yet."},
	};
	cleanup_json struct json_object *o = json_tokener_parse(
		"{\"metadata\":{\"name\":\"tec\",\"uid\":\"u\",\"resourceVersion\":\"1\"},\"spec\":"
		"{\"publicTrusteeAddr\":\"own:1\",\"trusteeServers\":[{\"address\":\"far:1\"}]}}");
	struct err err = ERR_INIT;
	cleanup_kobj const struct kobj *k = model_cluster_extract(o, &err);

	cr_assert(k, "%s", err.text);
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		struct kbs_sync *s = kbs_sync_new();
		cleanup_strbuf struct strbuf out = STRBUF_INIT;

		kbs_sync_target_add(s, rows[i].name);
		kbs_sync_set_status(s, rows[i].name, rows[i].state, rows[i].error, NULL);
		cr_expect_str_eq(ctl_trustee_why(s, model_cluster(k), &out), rows[i].why);
		cr_expect_str_eq(ctl_trustee_lacking(s, model_cluster(k), KBS_RESOURCE, "n", &out),
			rows[i].lacking);
		kbs_sync_free(s);
	}
}
