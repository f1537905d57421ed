/* SPDX-License-Identifier: MIT */
/*
 * An operator that decides and knows another one which may do so too, its peer: what it does until that
 * one is read, and then. The peer is an API server alone, and its operator a test that writes its spec.
 */
#include "config.h"

#include <criterion/criterion.h>

#include "ctl/nodes.h"
#include "tec/base/bytes.h"
#include "tec/base/metric.h"
#include "tec/model/mark.h"
#include "tec/caches/cluster.h"

#define SETTLE 30000
#define CONFIG                                                                                     \
	"apiVersion: v1\nkind: Config\ncurrent-context: c\ncontexts:\n- name: c\n  context: "      \
	"{cluster: k, user: u, namespace: " NS "}\nclusters:\n- name: k\n  cluster: {server: "     \
	"'https://peer.test:6443'}\nusers:\n- name: u\n  user: {token: t}\n"

static struct world peer;

static void up(void)
{
	nodes_up();
	memset(&peer, 0, sizeof(peer));
	peer.loop = w.loop;
	w.source = peer.api = fake_api_new(w.loop);
}

static void down(void)
{
	world_kill(&w);
	fake_api_free(peer.api);
	nodes_down();
}

TestSuite(ctl_peer, .init = up, .fini = down, .timeout = 120);

static void put_config(void)
{
	cleanup_strbuf struct strbuf b64 = STRBUF_INIT;
	cleanup_free char *text = NULL;

	bytes_to_b64(&b64, CONFIG, strlen(CONFIG));
	text = xasprintf("{\"metadata\":{\"name\":\"peer\"},\"data\":{\"kubeconfig\":\"%s\"}}",
		strbuf_str(&b64));
	fake_api_put(w.api, &kobj_secret, NS, text);
}

static const char *uid_of(struct world *of)
{
	return world_str(of, &kobj_cluster, "tec", "metadata/uid");
}

static void spec(struct world *of, const char *members)
{
	cleanup_free char *patch = xasprintf("{\"spec\":{%s}}", members);

	fake_api_merge(of->api, &kobj_cluster, NS, "tec", patch);
}

static void mark(struct world *of, const char *annotation, const char *payload)
{
	cleanup_free char *text = model_mark_text(uid_of(of), payload);
	cleanup_free char *patch =
		xasprintf("{\"metadata\":{\"annotations\":{\"%s\":\"%s\"}}}", annotation, text);

	fake_api_merge(of->api, &kobj_cluster, NS, "tec", patch);
}

/* The two, which were promoted back and forth: this one decides, with epoch 2. */
static void two(const char *peer_spec)
{
	cleanup_free char *there = xasprintf("{" ADDRESS ",%s}", peer_spec);

	world_cluster(&peer, "tec", there);
	world_cluster(&w, "tec",
		"{" ADDRESS
		",\"authority\":\"Self\",\"epoch\":2,\"follow\":{\"kubeconfigSecret\":\"peer\"}}");
	mark(&w, MODEL_CLUSTER_FOLLOWED_MARK, uid_of(&peer));
	put_config();
}

static void arm(void)
{
	w.life->env.follow = ctl_follow_state(w.life->follow);
	ctl_follow_listen(
		w.life->follow, (void (*)(void *))ctl_cluster_look_again, w.life->cluster);
}

static void boot(void)
{
	w.arm = arm;
	world_boot(&w, NULL);
	world_run(&w, SETTLE);
}

/* Whether the peer's API server answers. */
static void reach(bool reachable)
{
	fake_api_hide(peer.api, &kobj_cluster, !reachable);
	if (!reachable)
		fake_api_drop_watches(peer.api);
	if (w.life)
		world_run(&w, SETTLE);
}

static const char *reason(void)
{
	return world_reason(&w, &kobj_cluster, "tec", "Authority");
}

static const char *message(void)
{
	return fake_api_condition(w.api, &kobj_cluster, NS, "tec", "Authority", "message");
}

static const char *authority(void)
{
	return world_str(&w, &kobj_cluster, "tec", "spec/authority");
}

static bool decides(void)
{
	return caches_cluster_decides(&w.life->caches);
}

static bool metric(const char *line)
{
	cleanup_strbuf struct strbuf text = STRBUF_INIT;

	metric_render(&text);
	return strstr(strbuf_str(&text), line) != NULL;
}

static bool makes(const char *name, const char *id)
{
	world_machine(&w, name, id, NULL);
	world_run(&w, SETTLE);
	return world_get(&w, &kobj_secret, id) != NULL;
}

#define FOLLOWS "\"authority\":\"Following\",\"follow\":{\"kubeconfigSecret\":\"x\"},\"epoch\":"

Test(ctl_peer, what_is_read_decides_who_goes_on)
{
	static const struct {
		const char *spec;
		bool knows; /* this one */
		const char *reason, *authority;
		bool too;
	} rows[] = {
		{FOLLOWS "1", true, "Self", "Self", false},
		{FOLLOWS "9", true, "Self", "Self", false},
		{"\"authority\":\"Frozen\",\"epoch\":2", true, "Self", "Self", false},
		{"\"authority\":\"Frozen\",\"epoch\":3", true, "PeerDecides", "Frozen", false},
		{"\"authority\":\"Self\"", true, "Self", "Self", true},
		{"\"authority\":\"Self\",\"epoch\":1", false, "Self", "Self", true},
		{"\"authority\":\"Self\",\"epoch\":2", false, "PeerDecides", "Frozen", false},
		{"\"authority\":\"Self\",\"epoch\":3", true, "PeerDecides", "Frozen", false},
		{"\"authority\":\"Self\",\"epoch\":3", false, "PeerDecides", "Frozen", false},
	};

	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		two(rows[i].spec);
		if (rows[i].knows)
			mark(&peer, MODEL_CLUSTER_FOLLOWED_MARK, uid_of(&w));
		boot();
		cr_assert_str_eq(reason(), rows[i].reason, "row %zu: %s", i, message());
		cr_assert_str_eq(authority(), rows[i].authority, "row %zu", i);
		cr_assert_eq(decides(), str_eq(rows[i].authority, "Self"), "row %zu", i);
		cr_assert_eq(strstr(message(), "decides too") != NULL, rows[i].too, "row %zu", i);
		cr_assert_eq(world_events(&w, "PeerDecidesToo"), rows[i].too, "row %zu", i);
		cr_assert(metric(rows[i].too ? "tec_authority_peer{state=\"DecidesToo\"} 1"
					     : "tec_authority_peer{state=\"DecidesToo\"} 0"));
		world_kill(&w);
		fake_api_delete(w.api, &kobj_cluster, NS, "tec");
		fake_api_delete(peer.api, &kobj_cluster, NS, "tec");
	}
}

Test(ctl_peer, one_that_was_not_read_since_the_start_may_decide)
{
	cleanup_free char *key = NULL;

	two(FOLLOWS "1");
	boot();
	join(SETTLE);
	cr_assert(resource(ID_A));
	key = xstrdup(resource(ID_A));
	cr_assert_str_eq(authority_status("peerEpoch"), "1");
	cr_assert_str_eq(authority_status("seen"), "-", "it is read now");
	world_kill(&w);
	reach(false);
	boot();
	cr_assert_str_eq(reason(), "PeerUnknown", "%s", message());
	cr_assert(strstr(message(), "--from-lost"), "%s", message());
	cr_assert_str_eq(world_reason(&w, &kobj_cluster, "tec", "RegistrationOpen"), "PeerUnknown");
	cr_assert_str_eq(authority(), "Self");
	cr_assert_str_eq(authority_status("peerEpoch"), "1", "as it was read before");
	cr_assert_eq(world_events(&w, "PeerUnknown"), 1);
	cr_assert(metric("tec_authority_peer{state=\"Unknown\"} 1"));
	cr_assert_not(makes("b", ID_B));
	cr_assert_str_eq(resource(ID_A), key, "nodes get their keys");
	fake_transport_forget(w.life->f);
	world_run(&w, 600 * 1000);
	cr_assert_eq(fake_transport_writes(w.life->f), 0, "rest costs nothing");
	/* It answers: it follows, so this one goes on, with what waited. */
	reach(true);
	cr_assert_str_eq(reason(), "Self", "%s", message());
	cr_assert(world_get(&w, &kobj_secret, ID_B));
	fake_transport_forget(w.life->f);
	world_run(&w, 1200 * 1000);
	cr_assert_eq(fake_transport_writes(w.life->f), 0);
	/* And goes on when it is away again: a partition is seen, not prevented. */
	reach(false);
	cr_assert_str_eq(reason(), "Self");
	cr_assert_str_neq(authority_status("seen"), "-");
	cr_assert(decides());
}

Test(ctl_peer, a_raised_epoch_confirms)
{
	two("\"authority\":\"Self\",\"epoch\":1");
	reach(false);
	boot();
	cr_assert_not(makes("b", ID_B));
	spec(&w, "\"epoch\":3");
	world_run(&w, SETTLE);
	cr_assert_str_eq(reason(), "Self", "%s", message());
	cr_assert(world_get(&w, &kobj_secret, ID_B));
	/* That is over with the process: the peer may have been told as much since. */
	world_kill(&w);
	boot();
	cr_assert_str_eq(reason(), "PeerUnknown");
	spec(&peer, "\"epoch\":4");
	reach(true);
	cr_assert_str_eq(reason(), "PeerDecides");
	cr_assert_str_eq(authority(), "Frozen");
	cr_assert_str_eq(authority_status("peerEpoch"), "4");
	/* It is lost with what it decided: then this one may be taken. */
	reach(false);
	cr_assert_str_eq(reason(), "Frozen");
	spec(&w, "\"authority\":\"Self\",\"epoch\":5");
	world_run(&w, SETTLE);
	cr_assert_str_eq(reason(), "Self");
	reach(true);
	cr_assert_str_eq(reason(), "Self");
	cr_assert(strstr(message(), "decides too"));
}

Test(ctl_peer, one_that_decides_is_not_overruled_by_a_lower_epoch)
{
	two("\"authority\":\"Self\",\"epoch\":7");
	boot();
	cr_assert_str_eq(reason(), "PeerDecides");
	spec(&w, "\"authority\":\"Self\",\"epoch\":6");
	world_run(&w, SETTLE);
	cr_assert_str_eq(authority(), "Frozen");
	cr_assert_not(makes("b", ID_B));
	spec(&w, "\"authority\":\"Self\",\"epoch\":8");
	world_run(&w, SETTLE);
	cr_assert_str_eq(authority(), "Self");
	cr_assert(world_get(&w, &kobj_secret, ID_B));
}

Test(ctl_peer, one_that_is_retired_never_decides_again)
{
	two("\"authority\":\"Retired\",\"epoch\":9");
	boot();
	cr_assert_str_eq(reason(), "Self", "%s", message());
	world_kill(&w);
	reach(false);
	boot();
	cr_assert_str_eq(reason(), "Self", "that was noted");
	cr_assert(makes("b", ID_B));
	cr_assert_eq(ctl_follow_state(w.life->follow)->is, CTL_FOLLOW_OFF);
}

Test(ctl_peer, another_cluster_in_its_place_says_nothing)
{
	two(FOLLOWS "1");
	fake_api_delete(peer.api, &kobj_cluster, NS, "tec");
	world_cluster(&peer, "tec", "{" ADDRESS "}");
	boot();
	cr_assert_str_eq(reason(), "PeerUnknown");
	cr_assert(strstr(message(), "not the same as before"), "%s", message());
	cr_assert_not(makes("b", ID_B));
	/* The administrator takes it away. */
	fake_api_merge(w.api, &kobj_cluster, NS, "tec",
		"{\"spec\":{\"follow\":null},\"metadata\":{\"annotations\":{\"" MODEL_EXTENDED_ANNOTATION
		"\":null}}}");
	world_run(&w, SETTLE);
	cr_assert_str_eq(reason(), "Self");
	cr_assert(world_get(&w, &kobj_secret, ID_B));
}

Test(ctl_peer, one_that_is_forgotten_is_not_waited_for)
{
	two(FOLLOWS "1");
	reach(false);
	boot();
	cr_assert_not(makes("b", ID_B));
	fake_api_merge(w.api, &kobj_cluster, NS, "tec",
		"{\"metadata\":{\"annotations\":{\"" MODEL_CLUSTER_FOLLOWED_MARK "\":null}}}");
	world_run(&w, SETTLE);
	cr_assert_str_eq(reason(), "Self");
	cr_assert(world_get(&w, &kobj_secret, ID_B), "what waited is looked at");
}

Test(ctl_peer, without_one_nothing_is_asked)
{
	world_cluster(&w, "tec", "{" ADDRESS ",\"follow\":{\"kubeconfigSecret\":\"peer\"}}");
	put_config();
	boot();
	cr_assert_str_eq(reason(), "Self");
	cr_assert(decides());
	cr_assert_null(w.source_f);
	cr_assert_not(metric("tec_authority_peer{"));
}

Test(ctl_peer, a_connection_that_dies_without_a_sign_is_noticed)
{
	two(FOLLOWS "1");
	boot();
	fake_transport_fault(w.source_f, FAKE_FAULT_SILENCE, 1);
	fake_api_drop_watches(peer.api);
	world_run(&w, 300 * 1000);
	spec(&peer, "\"authority\":\"Self\",\"epoch\":3");
	world_run(&w, 300 * 1000);
	cr_assert_str_eq(reason(), "Self", "it cannot be known");
	fake_transport_fault(w.source_f, FAKE_FAULT_SILENCE, 0);
	world_run(&w, 30 * 1000);
	cr_assert_str_eq(authority(), "Frozen", "30 seconds after the link's return");
}
