/* SPDX-License-Identifier: MIT */
/*
 * spec.authority Following: what the followed cluster asks of nodes is copied, with the ConfigMaps and
 * Secrets that it names. Two worlds on one loop; no controller of the source is needed.
 */
#include "config.h"

#include <criterion/criterion.h>

#include "ctl/nodes.h"
#include "tec/base/clock.h"
#include "tec/model/cluster.h"
#include "tec/pki/cert.h"
#include "tec/pki/key.h"
#include "tec/caches/cluster.h"
#include "tec/caches/digest.h"

#define SETTLE 30000
#define CONFIG                                                                                     \
	"apiVersion: v1\nkind: Config\ncurrent-context: c\ncontexts:\n- name: c\n  context: "      \
	"{cluster: k, user: u, namespace: " NS "}\nclusters:\n- name: k\n  cluster: {server: "     \
	"'https://source.test:6443'}\nusers:\n- name: u\n  user: {token: t}\n"
#define FOLLOW ADDRESS ",\"authority\":\"Following\",\"follow\":{\"kubeconfigSecret\":\"source\"}"

static struct world src;

static void put_data(struct world *of, const struct kobj_gvk *gvk, const char *name,
	const char *member, const char *value)
{
	cleanup_strbuf struct strbuf b64 = STRBUF_INIT;
	cleanup_free char *text = NULL;

	bytes_to_b64(&b64, value, strlen(value));
	text = xasprintf("{\"metadata\":{\"name\":\"%s\"},\"data\":{\"%s\":\"%s\"}}", name, member,
		gvk == &kobj_secret ? strbuf_str(&b64) : value);
	fake_api_put(of->api, gvk, NS, text);
}

static void up(void)
{
	nodes_up();
	memset(&src, 0, sizeof(src));
	src.loop = w.loop;
	w.source = src.api = fake_api_new(w.loop);
	put_data(&w, &kobj_secret, "source", "kubeconfig", CONFIG);
}

static void down(void)
{
	world_kill(&w);
	fake_api_free(src.api);
	nodes_down();
}

TestSuite(ctl_follow_spec, .init = up, .fini = down, .timeout = 300);

static void follow(const char *theirs, const char *ours)
{
	cleanup_free char *a = xasprintf("{" ADDRESS "%s}", theirs);
	cleanup_free char *b = xasprintf("{" FOLLOW "%s}", ours);

	world_cluster(&src, "anchor", a);
	world_cluster(&w, "tec", b);
	world_boot(&w, NULL);
	world_run(&w, 60000);
}

static void source_spec(const char *spec)
{
	cleanup_free char *patch = xasprintf("{\"spec\":%s}", spec);

	fake_api_merge(src.api, &kobj_cluster, NS, "anchor", patch);
	world_run(&w, SETTLE);
}

static const struct ctl_follow_state *state(void)
{
	return ctl_follow_state(w.life->follow);
}

static void in_step(void)
{
	cr_assert_eq(state()->is, CTL_FOLLOW_IN_STEP, "%d %s", (int)state()->is, state()->why);
	cr_assert_eq(state()->behind, 0);
}

static void in_conflict(const char *name)
{
	cr_assert_eq(state()->is, CTL_FOLLOW_CONFLICT, "%d %s", (int)state()->is, state()->why);
	cr_assert(strstr(state()->why, name) && strstr(state()->why, "never overwritten"), "%s",
		state()->why);
}

/* Both operators show the digest of what they have. */
static void same_digest(void)
{
	struct caches there = CACHES_INIT;
	struct caches_digest a, b;

	for (int i = 0; i < CACHES_N_KINDS; i++)
		there.cache[i] = k8s_cache_new(&caches_kinds[i].cache);
	k8s_cache_put(there.clusters, world_get(&src, &kobj_cluster, "anchor"));
	caches_digest(&there, &a);
	caches_digest(&w.life->caches, &b);
	for (int i = 0; i < CACHES_N_KINDS; i++)
		k8s_cache_free(there.cache[i]);
	cr_assert_str_eq(a.hex, b.hex);
}

static const char *data_of(const struct kobj_gvk *gvk, const char *name, const char *member)
{
	static char path[100];

	snprintf(path, sizeof(path), "data/%s", member);
	return world_str(&w, gvk, name, path);
}

static unsigned writes(void)
{
	unsigned n = 0;

	for (size_t i = 0; i < fake_transport_requests(w.life->f); i++) {
		const struct fake_request *r = fake_transport_request(w.life->f, i);

		n += !str_eq(r->method, "GET") && !strstr(r->path, "/status") &&
		     !str_eq(r->resource, "leases") && !str_eq(r->resource, "events");
	}
	return n;
}

#define VARS "SecureBoot-8be4df61-93ca-11d2-aa0d-00e098032b8c"
#define SPEC                                                                                         \
	",\"attestation\":{\"platformConfigMaps\":[\"rack\"]},\"registration\":{\"mode\":\"Token\"," \
	"\"tokenSecret\":\"tokens\",\"endorsementCAConfigMap\":\"vendors\",\"pendingTTL\":\"1h\"},"  \
	"\"trustee\":{\"keyIsolation\":\"Shared\",\"window\":4}"

static void source_has_what_it_names(void)
{
	put_data(&src, &kobj_configmap, "rack", VARS, "one");
	put_data(&src, &kobj_configmap, "vendors", "any.pem", "roots");
	put_data(&src, &kobj_secret, "tokens", "key", "01234567890123456789012345678901");
}

Test(ctl_follow_spec, spec_and_what_it_names_are_copied)
{
	source_has_what_it_names();
	follow(SPEC, ",\"registration\":{\"machineLimit\":7},\"trustee\":{\"window\":8}");
	in_step();
	same_digest();
	cr_assert_str_eq(world_str(&w, &kobj_cluster, "tec", "spec/registration/mode"), "Token");
	cr_assert_str_eq(
		world_str(&w, &kobj_cluster, "tec", "spec/trustee/keyIsolation"), "Shared");
	cr_assert_eq(json_get_int(world_get(&w, &kobj_cluster, "tec"), "spec/trustee/window", 0), 8,
		"what is not copied stays");
	cr_assert_eq(json_get_int(world_get(&w, &kobj_cluster, "tec"),
			     "spec/registration/machineLimit", -1),
		-1);
	cr_assert_str_eq(data_of(&kobj_configmap, "rack", VARS), "one");
	cr_assert_str_eq(data_of(&kobj_configmap, "vendors", "any.pem"), "roots");
	cr_assert_str_eq(data_of(&kobj_secret, "tokens", "key"),
		"MDEyMzQ1Njc4OTAxMjM0NTY3ODkwMTIzNDU2Nzg5MDE=");
	/* At rest it writes nothing, and reads nothing of what it knows. */
	fake_transport_forget(w.life->f);
	fake_transport_forget(w.source_f);
	world_run(&w, 3600 * 1000);
	cr_assert_eq(writes(), 0);
	for (size_t i = 0; i < fake_transport_requests(w.source_f); i++)
		cr_assert_null(strstr(fake_transport_request(w.source_f, i)->path, "/rack"));
}

/* Without the mirror that would be a spec which lost something. */
Test(ctl_follow_spec, what_the_source_takes_out_of_spec_goes_here)
{
	source_has_what_it_names();
	follow(SPEC, "");
	in_step();
	cr_assert_str_eq(world_annotation(&w, &kobj_cluster, "tec", MODEL_EXTENDED_ANNOTATION),
		caches_cluster(&w.life->caches)->extended_spec);
	source_spec(
		"{\"registration\":{\"tokenSecret\":null,\"mode\":\"Open\"},\"attestation\":null,"
		"\"trustee\":{\"keyIsolation\":null}}");
	in_step();
	same_digest();
	cr_assert_null(caches_cluster(&w.life->caches)->extended_lost);
	cr_assert_null(world_str(&w, &kobj_cluster, "tec", "spec/registration/tokenSecret"));
	cr_assert_null(json_get(world_get(&w, &kobj_cluster, "tec"), "spec/attestation"));
	cr_assert(data_of(&kobj_secret, "tokens", "key"), "what nobody names is left");
}

Test(ctl_follow_spec, spec_comes_after_what_it_names)
{
	unsigned cluster = 0, rack = 0;

	source_has_what_it_names();
	follow(SPEC, "");
	for (unsigned i = 0; i < fake_transport_requests(w.life->f); i++) {
		const struct fake_request *r = fake_transport_request(w.life->f, i);

		if (str_eq(r->method, "POST") && r->body && strstr(r->body, "\"rack\""))
			rack = rack ? rack : i;
		if (str_eq(r->method, "PATCH") && r->body && strstr(r->body, "platformConfigMaps"))
			cluster = cluster ? cluster : i;
	}
	cr_assert(rack && cluster && rack < cluster, "%u %u", rack, cluster);
}

Test(ctl_follow_spec, a_change_of_content_is_copied_whole)
{
	source_has_what_it_names();
	follow(SPEC, "");
	in_step();
	fake_api_put(src.api, &kobj_configmap, NS,
		"{\"metadata\":{\"name\":\"rack\"},\"data\":{\"MokListRT\":\"two\"},\"binaryData\":{\"" VARS
		"\":\"dGhyZWU=\"}}");
	put_data(&src, &kobj_secret, "tokens", "key", "another key of thirty-two bytes!");
	world_run(&w, SETTLE);
	in_step();
	cr_assert_null(data_of(&kobj_configmap, "rack", VARS));
	cr_assert_str_eq(data_of(&kobj_configmap, "rack", "MokListRT"), "two");
	cr_assert_str_eq(world_str(&w, &kobj_configmap, "rack", "binaryData/" VARS), "dGhyZWU=");
	cr_assert_str_eq(data_of(&kobj_secret, "tokens", "key"),
		"YW5vdGhlciBrZXkgb2YgdGhpcnR5LXR3byBieXRlcyE=");
	/* A copy that somebody deletes or changes here comes again. */
	fake_api_delete(w.api, &kobj_configmap, NS, "rack");
	fake_api_merge(w.api, &kobj_secret, NS, "tokens", "{\"data\":{\"key\":\"YQ==\"}}");
	world_run(&w, SETTLE);
	in_step();
	cr_assert_str_eq(data_of(&kobj_configmap, "rack", "MokListRT"), "two");
	cr_assert_str_eq(data_of(&kobj_secret, "tokens", "key"),
		"YW5vdGhlciBrZXkgb2YgdGhpcnR5LXR3byBieXRlcyE=");
}

Test(ctl_follow_spec, another_content_is_a_conflict_until_somebody_deletes_it)
{
	source_has_what_it_names();
	put_data(&w, &kobj_configmap, "rack", VARS, "mine");
	put_data(&w, &kobj_secret, "tokens", "key", "my own token key");
	follow(SPEC, "");
	in_conflict("rack");
	cr_assert_str_eq(data_of(&kobj_configmap, "rack", VARS), "mine");
	cr_assert_str_eq(data_of(&kobj_configmap, "vendors", "any.pem"), "roots");
	cr_assert_null(
		world_str(&w, &kobj_cluster, "tec", "spec/registration/mode"), "spec waits for it");
	fake_api_delete(w.api, &kobj_configmap, NS, "rack");
	world_run(&w, SETTLE);
	in_conflict("Secret tokens");
	fake_api_delete(w.api, &kobj_secret, NS, "tokens");
	world_run(&w, SETTLE);
	in_step();
	cr_assert_str_eq(data_of(&kobj_configmap, "rack", VARS), "one");
}

/* Both have it already, as after a promotion: later changes follow. */
Test(ctl_follow_spec, the_same_content_becomes_a_copy)
{
	source_has_what_it_names();
	put_data(&w, &kobj_configmap, "rack", VARS, "one");
	follow(SPEC, "");
	in_step();
	cr_assert_str_eq(world_annotation(&w, &kobj_configmap, "rack", MODEL_COPIED_ANNOTATION),
		world_str(&src, &kobj_cluster, "anchor", "metadata/uid"));
	put_data(&src, &kobj_configmap, "rack", VARS, "two");
	world_run(&w, SETTLE);
	in_step();
	cr_assert_str_eq(data_of(&kobj_configmap, "rack", VARS), "two");
}

/* ---- CAs of trusteeServers, which is each cluster's own */

static void new_ca(char out[2048])
{
	cleanup_pki_key struct pki_key *key = pki_key_new_p256();
	cleanup_strbuf struct strbuf pem = STRBUF_INIT;
	struct err err = ERR_INIT;

	cr_assert_eq(pki_cert_self_signed(key, "ca", clock_wall_s(), 10, &pem, &err), 0);
	snprintf(out, 2048, "%s", strbuf_str(&pem));
}

#define SERVER(ca) ",\"trusteeServers\":[{\"address\":\"far:1\",\"caSecret\":\"" ca "\"}]"

Test(ctl_follow_spec, the_ca_of_a_server_is_copied_without_its_key)
{
	cleanup_strbuf struct strbuf b64 = STRBUF_INIT;
	cleanup_free char *text = NULL;
	char one[2048], two[2048];

	new_ca(one);
	new_ca(two);
	bytes_to_b64(&b64, one, strlen(one));
	text = xasprintf("{\"metadata\":{\"name\":\"far-ca\"},\"data\":{\"ca.crt\":\"%s\","
			 "\"tls.key\":\"cHJpdmF0ZQ==\",\"key\":\"cHJpdmF0ZQ==\"}}",
		strbuf_str(&b64));
	fake_api_put(src.api, &kobj_secret, NS, text);
	follow(SERVER("far-ca"), "");
	in_step();
	cr_assert_str_eq(data_of(&kobj_secret, "far-ca", "ca.crt"), strbuf_str(&b64));
	cr_assert_eq(
		json_len(json_get_obj(world_get(&w, &kobj_secret, "far-ca"), "data")), (size_t)1);
	cr_assert_null(json_get(world_get(&w, &kobj_cluster, "tec"), "spec/trusteeServers"));
	put_data(&src, &kobj_secret, "far-ca", "ca.crt", two);
	world_run(&w, SETTLE);
	in_step();
	strbuf_fini(&b64);
	b64 = (struct strbuf)STRBUF_INIT;
	bytes_to_b64(&b64, two, strlen(two));
	cr_assert_str_eq(data_of(&kobj_secret, "far-ca", "ca.crt"), strbuf_str(&b64));
}

/* Two that name theirs alike, as standalone operators do. */
Test(ctl_follow_spec, a_ca_that_this_cluster_has_stays_its_own)
{
	cleanup_free char *mine = NULL;
	char one[2048], two[2048];

	new_ca(one);
	new_ca(two);
	put_data(&src, &kobj_secret, "far-ca", "ca.crt", one);
	put_data(&w, &kobj_secret, "far-ca", "ca.crt", two);
	mine = xstrdup(data_of(&kobj_secret, "far-ca", "ca.crt"));
	follow(SERVER("far-ca"), "");
	in_step();
	cr_assert_str_eq(data_of(&kobj_secret, "far-ca", "ca.crt"), mine);
	cr_assert_null(world_annotation(&w, &kobj_secret, "far-ca", MODEL_COPIED_ANNOTATION));
}

Test(ctl_follow_spec, what_is_no_ca_is_not_copied)
{
	put_data(&src, &kobj_secret, "far-ca", "ca.crt", "a private key in the wrong place");
	follow(SERVER("far-ca"), "");
	in_step();
	cr_assert_null(world_get(&w, &kobj_secret, "far-ca"));
}

/* ---- faults */

Test(ctl_follow_spec, what_spec_names_and_is_not_there_is_not_waited_for)
{
	follow(SPEC, "");
	in_step();
	same_digest();
	put_data(&src, &kobj_configmap, "rack", VARS, "late");
	world_run(&w, SETTLE);
	in_step();
	cr_assert_str_eq(data_of(&kobj_configmap, "rack", VARS), "late");
}

static void arm_death(void)
{
	fake_transport_die_after(w.life->f, 1);
}

Test(ctl_follow_spec, a_kill_at_any_write_changes_nothing)
{
	unsigned deaths = 0;

	source_has_what_it_names();
	world_cluster(&src, "anchor", "{" ADDRESS SPEC "}");
	world_cluster(&w, "tec", "{" FOLLOW "}");
	w.arm = arm_death;
	for (bool died = true; died; deaths += died) {
		world_boot(&w, "f");
		world_run(&w, 60000);
		died = fake_transport_is_dead(w.life->f);
		world_kill(&w);
		cr_assert_lt(deaths, 50);
	}
	w.arm = NULL;
	world_boot(&w, NULL);
	world_run(&w, 60000);
	cr_assert_geq(deaths, 5, "%u", deaths);
	in_step();
	same_digest();
}

Test(ctl_follow_spec, another_kubeconfig_ends_what_is_being_read)
{
	source_has_what_it_names();
	follow(SPEC, "");
	in_step();
	fake_transport_latency(w.source_f, 5000);
	fake_transport_forget(w.source_f);
	put_data(&src, &kobj_configmap, "rack", VARS, "two");
	world_run(&w, 500);
	cr_assert(strstr(fake_transport_request(w.source_f, 0)->path, "/rack"));
	fake_api_merge(
		w.api, &kobj_secret, NS, "source", "{\"metadata\":{\"labels\":{\"a\":\"b\"}}}");
	world_run(&w, 500);
	world_run(&w, 60000);
	in_step();
	cr_assert_str_eq(data_of(&kobj_configmap, "rack", VARS), "two");
}

/* As where ours delivers by volumes, which needs Shared. */
Test(ctl_follow_spec, what_the_api_refuses_is_said_and_tried_again)
{
	struct fake_expect *e;

	source_has_what_it_names();
	follow(SPEC, "");
	in_step();
	e = fake_transport_expect(w.life->f, "PATCH",
		"/apis/trusted-execution-clusters.io/v1alpha1/namespaces/" NS
		"/trustedexecutionclusters/tec");
	fake_expect_answer(e, 422,
		"{\"kind\":\"Status\",\"status\":\"Failure\",\"reason\":\"Invalid\",\"message\":"
		"\"Volumes requires Shared\",\"code\":422}");
	fake_expect_times(e, 3);
	fake_api_merge(src.api, &kobj_cluster, NS, "anchor",
		"{\"spec\":{\"trustee\":{\"keyIsolation\":\"PerMachine\"}}}");
	world_run(&w, 2500);
	cr_assert_eq(state()->is, CTL_FOLLOW_COPYING);
	cr_assert(strstr(state()->why, "keyIsolation") &&
			  strstr(state()->why, "Volumes requires Shared"),
		"%s", state()->why);
	world_run(&w, 60000);
	in_step();
	same_digest();
}

Test(ctl_follow_spec, a_spec_that_lost_something_there_is_not_copied)
{
	source_has_what_it_names();
	follow(SPEC, "");
	in_step();
	world_mark(&src, &kobj_cluster, "anchor", MODEL_EXTENDED_ANNOTATION, "x");
	source_spec("{\"registration\":null}");
	cr_assert_eq(state()->is, CTL_FOLLOW_COPYING);
	cr_assert_eq(state()->behind, 1);
	cr_assert(strstr(state()->why, "source's spec lost"), "%s", state()->why);
	cr_assert_str_eq(world_str(&w, &kobj_cluster, "tec", "spec/registration/mode"), "Token");
}

Test(ctl_follow_spec, decide_in_order)
{
	struct ctl_follow_named_view v = {0};

#define IS(d) cr_assert_eq(ctl_follow_named_decide(&v), CTL_FOLLOW_NAMED_##d, "line %d", __LINE__)
	IS(NOTHING);
	v.there = true;
	IS(READ_THERE);
	v.there_read = true;
	IS(NOTHING);
	v.has = true;
	IS(READ_THERE);
	v.in_hand = true;
	IS(CREATE);
	v.here = true;
	IS(READ_HERE);
	v.deleting = true;
	IS(WAIT);
	v.deleting = false;
	v.here_read = true;
	IS(CONFLICT);
	v.own = true;
	IS(NOTHING);
	v.copied = true;
	IS(UPDATE);
	v.in_hand = false;
	IS(READ_THERE);
	v.same = true;
	IS(NOTHING);
	v.copied = false;
	IS(NOTHING);
	v.own = false;
	IS(ADOPT);
#undef IS
}
