/* SPDX-License-Identifier: MIT */
/*
 * spec.authority Following, with a whole operator as the source: what it decides is copied, and both
 * could go on with it. Two worlds on one loop.
 */
#include "config.h"

#include <criterion/criterion.h>
#include <stdio.h>

#include "ctl/followed.h"
#include "tec/base/clock.h"
#include "tec/base/uuid.h"
#include "tec/kbs/push.h"
#include "tec/model/ak.h"
#include "pcr/pcr_events.h"
#include "tec/model/configmap.h"
#include "tec/model/machine.h"
#include "tec/model/image.h"
#include "tec/rats/ticket.h"
#include "tec/caches/digest.h"
#include "tec/caches/record.h"

TestSuite(ctl_follow, .init = up, .fini = down, .timeout = 300);

static const char *root_of(struct world *of, const char *id)
{
	return world_str(of, &kobj_secret, id, "data/root");
}

static bool has(const struct kobj_gvk *gvk, const char *name)
{
	return world_get(&w, gvk, name) != NULL;
}

Test(ctl_follow, nodes_are_copied_and_get_their_key_here)
{
	source_with_nodes();
	follow();
	in_step();
	cr_assert_str_eq(state()->peer, "https://source.test:6443 " NS);
	cr_assert_str_eq(state()->uid, world_str(&src, &kobj_cluster, "tec", "metadata/uid"));
	cr_assert_str_eq(root_of(&w, ID_A), root_of(&src, ID_A));
	cr_assert_str_eq(root_of(&w, ID_B), root_of(&src, ID_B));
	cr_assert(resource(ID_A), "its node gets it from our Trustee");
	cr_assert_null(resource(ID_B), "no key is bound to it");
	cr_assert(identity_declared(&w, test_pem[0]));
	cr_assert_str_eq(world_str(&w, &kobj_ak, "key", "spec/uuid"), ID_A);
	/* A node that joins there while it is followed. */
	world_ak(&src, "other", test_pem[1], ID_B, NULL);
	world_run(&w, SETTLE);
	cr_assert(resource(ID_B));
	in_step();
}

/* Of what is written here for the nodes, without statuses and the cluster's own objects. */
static unsigned writes(void)
{
	unsigned n = 0;

	for (size_t i = 0; i < fake_transport_requests(w.life->f); i++) {
		const struct fake_request *r = fake_transport_request(w.life->f, i);

		n += !str_eq(r->method, "GET") && !strstr(r->path, "/status") &&
		     (str_eq(r->resource, "machines") || str_eq(r->resource, "attestationkeys") ||
			     (str_eq(r->resource, "secrets") && !strstr(r->body, "trustee-")));
	}
	return n;
}

Test(ctl_follow, six_writes_with_a_key_and_three_without)
{
	source_with_nodes();
	put_config("token: t");
	world_cluster(&w, "tec", FOLLOW);
	world_boot(&w, "cf");
	world_run(&w, 60000);
	cr_assert_str_eq(root_of(&w, ID_B), root_of(&src, ID_B));
	cr_assert(has(&kobj_secret, "key"));
	cr_assert_eq(writes(), 9, "%u", writes());
	fake_transport_forget(w.life->f);
	world_run(&w, 3600 * 1000);
	cr_assert_eq(writes(), 0);
}

static unsigned told;

static void count_call(void *arg)
{
	told++;
}

static void count_calls(void)
{
	ctl_follow_listen(w.life->follow, count_call, NULL);
}

/* A listener looks at the whole cluster. */
Test(ctl_follow, many_copies_are_told_in_few_notifications)
{
	char name[16], id[UUID_TEXT_LEN + 1];

	source_with_nodes();
	for (unsigned i = 0; i < 300; i++) {
		snprintf(name, sizeof(name), "n%u", i);
		snprintf(id, sizeof(id), "33333333-2222-3333-4444-%012u", i);
		world_machine(&src, name, id, NULL);
	}
	world_run(&src, SETTLE);
	w.arm = count_calls;
	told = 0;
	follow();
	in_step();
	cr_assert(has(&kobj_machine, "n299"));
	cr_assert_leq(told, 20, "%u", told);
}

static void be_self(struct world *of)
{
	fake_api_merge(of->api, &kobj_cluster, NS, "tec",
		"{\"spec\":{\"authority\":\"Self\",\"epoch\":1}}");
}

Test(ctl_follow, a_switch_to_self_finds_nothing_to_repair)
{
	cleanup_free char *a = NULL, *b = NULL;

	source_with_nodes();
	follow();
	in_step();
	world_kill(&src);
	a = xstrdup(root_of(&w, ID_A));
	b = xstrdup(root_of(&w, ID_B));
	fake_transport_forget(w.life->f);
	be_self(&w);
	world_run(&w, 10 * SETTLE);
	cr_assert_eq(writes(), 0);
	cr_assert_eq(state()->is, CTL_FOLLOW_IN_STEP, "its epoch is read, and nothing else");
	cr_assert_str_eq(root_of(&w, ID_A), a);
	cr_assert_str_eq(root_of(&w, ID_B), b);
	cr_assert_str_eq(world_cond(&w, &kobj_machine, "a", "Ready"), "True");
	cr_assert_str_eq(world_reason(&w, &kobj_machine, "b", "KeyReady"), "KeyMade");
	cr_assert_str_eq(world_cond(&w, &kobj_ak, "key", "Delivered"), "True");
	cr_assert(resource(ID_A));
}

Test(ctl_follow, another_content_is_a_conflict_and_stays)
{
	cleanup_free char *mine = NULL;

	source_with_nodes();
	world_cluster(&w, "tec", "{" ADDRESS "}");
	world_boot(&w, NULL);
	world_run(&w, SETTLE);
	world_machine(&w, "a", ID_A, NULL);
	world_machine(&w, "b", ID_A, NULL);
	world_run(&w, SETTLE);
	mine = xstrdup(root_of(&w, ID_A));
	put_config("token: t");
	fake_api_merge(w.api, &kobj_cluster, NS, "tec",
		"{\"spec\":{\"authority\":\"Following\",\"follow\":{\"kubeconfigSecret\":\"source\"}}}");
	world_run(&w, 60000);
	cr_assert_eq(state()->is, CTL_FOLLOW_CONFLICT, "%d %s", (int)state()->is, state()->why);
	cr_assert(strstr(state()->why, "a") && strstr(state()->why, "never overwritten"));
	cr_assert_str_eq(root_of(&w, ID_A), mine);
	/* An administrator deletes what is wrong. */
	fake_api_delete(w.api, &kobj_machine, NS, "b");
	fake_api_delete(w.api, &kobj_machine, NS, "a");
	world_run(&w, SETTLE);
	fake_api_collect(w.api);
	world_run(&w, SETTLE);
	in_step();
	cr_assert_str_eq(root_of(&w, ID_A), root_of(&src, ID_A));
}

static void arm_death(void)
{
	fake_transport_die_after(w.life->f, 1);
}

/* Killed after each write in turn, it ends the same. */
Test(ctl_follow, a_kill_at_any_write_changes_nothing)
{
	unsigned deaths = 0;

	source_with_nodes();
	put_config("token: t");
	world_cluster(&w, "tec", FOLLOW);
	w.arm = arm_death;
	for (bool died = true; died; deaths += died) {
		world_boot(&w, "f");
		world_run(&w, 60000);
		died = fake_transport_is_dead(w.life->f);
		world_kill(&w);
		cr_assert_lt(deaths, 200);
	}
	w.arm = NULL;
	world_boot(&w, "cmaf");
	world_run(&w, 60000);
	cr_assert_geq(deaths, 9, "%u", deaths);
	in_step();
	cr_assert_str_eq(root_of(&w, ID_A), root_of(&src, ID_A));
	cr_assert(resource(ID_A));
}

/* ---- the source */

Test(ctl_follow, another_cluster_is_refused)
{
	source_with_nodes();
	follow();
	in_step();
	fake_api_delete(src.api, &kobj_cluster, NS, "tec");
	world_run(&w, SETTLE);
	cr_assert_eq(state()->is, CTL_FOLLOW_UNREACHABLE);
	cr_assert(strstr(state()->why, "No readable TrustedExecutionCluster"));
	world_cluster(&src, "tec", "{" ADDRESS "}");
	world_run(&src, SETTLE);
	world_machine(&src, "c", "00000000-0000-4000-8000-00000000000c", NULL);
	world_run(&w, SETTLE);
	cr_assert_eq(state()->is, CTL_FOLLOW_OTHER);
	cr_assert_not(has(&kobj_machine, "c"));
	cr_assert(resource(ID_A));
}

Test(ctl_follow, an_unusable_kubeconfig_says_why)
{
	static const char *const users[][2] = {
		{"exec: {command: /bin/sh, apiVersion: client.authentication.k8s.io/v1}",
			"program"},
		{"tokenFile: /etc/shadow", "file"},
		{"client-certificate: a, client-key: b", "file"},
	};

	world_cluster(&w, "tec", FOLLOW);
	world_boot(&w, NULL);
	world_run(&w, SETTLE);
	cr_assert_eq(state()->is, CTL_FOLLOW_UNREACHABLE);
	cr_assert(strstr(state()->why, "Secret source"), "%s", state()->why);
	for (size_t i = 0; i < ARRAY_LEN(users); i++) {
		put_config(users[i][0]);
		world_run(&w, SETTLE);
		cr_assert_eq(state()->is, CTL_FOLLOW_UNREACHABLE);
		cr_assert(strstr(state()->why, users[i][1]), "%s", state()->why);
		cr_assert_str_empty(w.server);
	}
	put_config("token: t");
	world_run(&w, 60000);
	in_step();
}

Test(ctl_follow, a_source_that_is_away_is_said_and_told_each_hour)
{
	source_with_nodes();
	follow();
	in_step();
	fake_transport_fault(w.source_f, FAKE_FAULT_500, 1);
	fake_api_drop_watches(src.api);
	world_run(&w, SETTLE);
	cr_assert_eq(state()->is, CTL_FOLLOW_UNREACHABLE);
	cr_assert(resource(ID_A));
	cr_assert_eq(world_events(&w, "SourceAway"), 0);
	world_run(&w, 26 * 3600 * 1000);
	cr_assert(world_events(&w, "SourceAway") >= 1 && world_events(&w, "SourceAway") <= 4);
	cr_assert(resource(ID_A), "nodes get their keys as of then");
	fake_transport_fault(w.source_f, FAKE_FAULT_500, 0);
	world_run(&w, 120000);
	in_step();
}

Test(ctl_follow, an_absence_of_less_than_an_hour_is_told_in_minutes)
{
	source_with_nodes();
	follow();
	in_step();
	fake_api_merge(w.api, &kobj_cluster, NS, "tec",
		"{\"spec\":{\"follow\":{\"maxStaleness\":\"10m\"}}}");
	fake_transport_fault(w.source_f, FAKE_FAULT_500, 1);
	fake_api_drop_watches(src.api);
	world_run(&w, 20 * 60 * 1000);
	cr_assert_eq(world_events(&w, "SourceAway"), 1);
	cr_expect_eq(world_events(&w, "was last read 0 hours ago"), 0);
	cr_expect_eq(world_events(&w, "was last read 10 minutes ago"), 1);
}

/* After a moment, in which watches are resumed, and after an hour, where they are lists. */
Test(ctl_follow, a_source_that_is_back_is_noticed_soon)
{
	source_with_nodes();
	follow();
	in_step();
	for (unsigned away_ms = 3000; away_ms <= 3600 * 1000; away_ms *= 1200) {
		fake_transport_fault(w.source_f, FAKE_FAULT_500, 1);
		fake_api_drop_watches(src.api);
		world_run(&w, away_ms);
		cr_assert_eq(state()->is, CTL_FOLLOW_UNREACHABLE);
		fake_transport_fault(w.source_f, FAKE_FAULT_500, 0);
		world_run(&w, 15000);
		in_step();
	}
}

/* ---- decide */

static struct ctl_follow_machine_view machine_view(void)
{
	return (struct ctl_follow_machine_view){.may_copy = true,
		.may_take = true,
		.there = true,
		.here = true,
		.held = true,
		.same = true,
		.ready = true,
		.marked = true,
		.has_key = true,
		.secret = CTL_FOLLOW_SECRET_SAME};
}

Test(ctl_follow, decide_copies_a_machine_in_order)
{
	struct ctl_follow_machine_view v = machine_view();

#define IS(d)                                                                                      \
	cr_assert_eq(ctl_follow_machine_decide(&v), CTL_FOLLOW_MACHINE_##d, "line %d", __LINE__)
	IS(NOTHING);
	v.secret = CTL_FOLLOW_SECRET_ABSENT;
	IS(CREATE_SECRET);
	v.must_read = true;
	IS(READ_SECRET);
	v.marked = false;
	IS(MARK);
	v.waits = true;
	IS(NOTHING);
	v.here = false;
	IS(CREATE);
	v.may_copy = false;
	IS(NOTHING);
	v = machine_view();
	v.marked = false;
	v.secret = CTL_FOLLOW_SECRET_OTHER;
	IS(NOTHING);
	v = machine_view();
	v.withheld = true;
	IS(MARK);
	v.same = false;
	IS(NOTHING);
}

Test(ctl_follow, decide_takes_a_machine_away_in_order)
{
	struct ctl_follow_machine_view v = machine_view();

	v.there = false;
	IS(WITHHOLD);
	v.withheld = true;
	IS(REVOKE);
	v.revoked = true;
	IS(NOTHING);
	v.deleted = true;
	IS(DELETE);
	v.may_take = false;
	IS(NOTHING);
	v.may_take = true;
	v.deleting = true;
	v.revoked = false;
	IS(REVOKE);
	v.revoked = true;
	IS(NOTHING);
	v.gone = true;
	v.recorded = CTL_RECORD_MISSING;
	IS(RECORD);
	v.recorded = CTL_RECORD_WAITS;
	IS(NOTHING);
	v.recorded = CTL_RECORD_FAILS;
	IS(NOTHING);
	v.recorded = CTL_RECORDED;
	IS(DROP_FINALIZER);
	v.held = false;
	IS(NOTHING);
#undef IS
}

/* ---- what is taken away */

#define ID(n) "00000000-0000-4000-8000-0000000000" n

/* Machines m10 to m(10 + n), as of an administrator, beside those of source_with_nodes(). */
static void more_machines(unsigned n)
{
	for (unsigned i = 0; i < n; i++) {
		char name[8], id[40];

		snprintf(name, sizeof(name), "m%u", 10 + i);
		snprintf(id, sizeof(id), ID("") "%u", 10 + i);
		world_machine(&src, name, id, NULL);
		world_mark(&src, &kobj_machine, name, MODEL_BOUND_AT_ANNOTATION,
			"2027-01-15T08:00:00Z");
	}
	world_run(&src, SETTLE);
}

Test(ctl_follow, what_is_deleted_there_is_revoked_and_deleted_here)
{
	source_with_nodes();
	follow();
	in_step();
	cr_assert(resource(ID_A));
	fake_kbs_down(kbs, true);
	world_kill(&src); /* its finalizer holds the Machine there */
	fake_api_delete(src.api, &kobj_machine, NS, "a");
	world_run(&w, SETTLE);
	cr_assert(has(&kobj_machine, "a"), "no Trustee has confirmed");
	cr_assert_gt(state()->behind, 0);
	cr_assert_neq(state()->is, CTL_FOLLOW_IN_STEP);
	/* The deletion is remembered here. */
	world_kill(&w);
	fake_kbs_down(kbs, false);
	world_boot(&w, NULL);
	world_run(&w, 60000);
	fake_api_collect(w.api);
	world_run(&w, SETTLE);
	cr_assert_not(has(&kobj_machine, "a"));
	cr_assert_not(has(&kobj_secret, ID_A));
	cr_assert_null(resource(ID_A));
	cr_assert(has(&kobj_machine, "b"));
}

static bool is_recorded(enum model_record_kind kind, const char *name)
{
	return caches_record_has(&w.life->caches, kind, name, 0);
}

/* The Trustee here is restored from a backup of before the deletion, and its operator starts. */
Test(ctl_follow, a_trustee_that_is_restored_loses_what_was_deleted_there)
{
	char path[RATS_RESOURCE_PATH_MAX], name[300];

	source_with_nodes();
	follow();
	in_step();
	rats_resource_path(ID_A, path);
	identity_of(test_pem[0], name);
	fake_api_delete(src.api, &kobj_machine, NS, "a");
	world_run(&w, 60000);
	fake_api_collect(src.api);
	fake_api_collect(w.api);
	world_run(&w, 60000);
	fake_api_collect(w.api);
	world_run(&w, SETTLE);
	cr_assert_not(has(&kobj_machine, "a"));
	cr_assert_not(has(&kobj_secret, "key"));
	cr_assert(is_recorded(MODEL_RECORD_RESOURCE, path));
	cr_assert(is_recorded(MODEL_RECORD_VALUE, name));
	in_step();
	world_kill(&w);
	fake_kbs_lose_store(kbs);
	fake_kbs_put_resource(kbs, path, "the key of a backup");
	world_boot(&w, NULL);
	world_run(&w, 60000);
	cr_assert_null(resource(ID_A));
	in_step();
}

/* As one that this operator handed out while it decided: its listener takes it no more. */
Test(ctl_follow, the_id_of_a_machine_that_was_deleted_there_is_recorded)
{
	cleanup_secret struct secret *mac = secret_new_random(RATS_TICKET_KEY_LEN);
	const struct rats_ticket_scope scope = {.cluster_uid = "u", .mode = "Open"};
	const uint8_t random[RATS_TICKET_RANDOM_LEN] = {1, 2, 3, 4, 5, 6};
	int64_t day_ms = INT64_C(24) * 3600 * 1000;
	char id[UUID_TEXT_LEN + 1];

	rats_ticket_make(mac, &scope, random, rats_ticket_epoch(clock_wall_s(), day_ms), id);
	source_with_nodes();
	fake_api_merge(src.api, &kobj_cluster, NS, "tec",
		"{\"spec\":{\"registration\":{\"machine\":\"AtKey\"}}}");
	world_machine(&src, "t", id, "listener");
	world_run(&src, 2000);
	world_ak(&src, "third", test_pem[2], id, "listener");
	world_run(&src, SETTLE);
	follow();
	in_step();
	fake_api_delete(src.api, &kobj_machine, NS, "t");
	world_run(&w, 60000);
	cr_assert_not(has(&kobj_machine, "t"));
	cr_assert(is_recorded(MODEL_RECORD_ID, id));
}

#define FORBIDDEN                                                                                  \
	"{\"kind\":\"Status\",\"status\":\"Failure\",\"reason\":\"Forbidden\",\"code\":403}"

/* It takes the finalizer off only when that is written. */
Test(ctl_follow, a_machine_stays_until_its_deletion_is_recorded)
{
	struct fake_expect *e;

	source_with_nodes();
	follow();
	in_step();
	e = fake_transport_expect(w.life->f, "POST", "/api/v1/namespaces/" NS "/configmaps*");
	fake_expect_answer(e, 403, FORBIDDEN);
	fake_expect_times(e, 0);
	fake_api_delete(src.api, &kobj_machine, NS, "a");
	world_run(&w, 60000);
	cr_assert_null(resource(ID_A));
	cr_assert(has(&kobj_machine, "a"));
	cr_assert_gt(state()->behind, 0);
}

Test(ctl_follow, a_deleted_key_is_revoked_and_its_secret_released)
{
	source_with_nodes();
	follow();
	in_step();
	fake_api_delete(src.api, &kobj_ak, NS, "key");
	world_run(&w, 60000);
	cr_assert_not(has(&kobj_ak, "key"));
	cr_assert_not(has(&kobj_secret, "key"));
	cr_assert_not(identity_declared(&w, test_pem[0]));
	cr_assert(has(&kobj_machine, "a"));
	cr_assert_str_eq(root_of(&w, ID_A), root_of(&src, ID_A));
	in_step();
	/* Another key is not approved by itself: the Machine was bound. */
	world_kill(&src);
	be_self(&w);
	world_ak(&w, "next", test_pem[1], ID_A, NULL);
	world_run(&w, SETTLE);
	cr_assert_str_eq(world_reason(&w, &kobj_ak, "next", "Approved"), "MachineHasKey");
}

/* Nobody sees the deletion: the follower is not there. */
Test(ctl_follow, what_a_list_no_longer_shows_is_withheld_until_it_shows_again)
{
	cleanup_free char *key = NULL;

	source_with_nodes();
	more_machines(20);
	follow();
	in_step();
	key = xstrdup(resource(ID_A));
	world_kill(&w);
	world_kill(&src);
	fake_api_merge(src.api, &kobj_machine, NS, "a", "{\"metadata\":{\"finalizers\":null}}");
	fake_api_delete(src.api, &kobj_machine, NS, "a");
	world_boot(&w, NULL);
	world_run(&w, 60000);
	cr_assert_null(resource(ID_A));
	cr_assert(has(&kobj_machine, "a") && has(&kobj_secret, ID_A) && has(&kobj_ak, "key"));
	cr_assert_eq(state()->is, CTL_FOLLOW_COPYING);
	cr_assert_eq(state()->behind, 1);
	cr_assert(strstr(state()->why, "Machine a"), "%s", state()->why);
	/* A restart gives nothing back. */
	world_kill(&w);
	world_boot(&w, NULL);
	world_run(&w, 60000);
	cr_assert_null(resource(ID_A));
	/* Set to decide, it does with what it has. */
	be_self(&w);
	world_run(&w, 60000);
	cr_assert_str_eq(resource(ID_A), key);
}

static void source_loses(const char *machine)
{
	fake_api_merge(src.api, &kobj_machine, NS, machine, "{\"metadata\":{\"finalizers\":null}}");
	fake_api_delete(src.api, &kobj_machine, NS, machine);
}

/* Somebody confirms it here: tecctl follow --confirm-deletes. */
Test(ctl_follow, what_is_withheld_goes_when_it_is_deleted_here)
{
	source_with_nodes();
	world_ak(&src, "other", test_pem[1], ID_B, NULL);
	more_machines(20);
	follow();
	in_step();
	world_kill(&w);
	world_kill(&src);
	source_loses("a");
	fake_api_delete(src.api, &kobj_ak, NS, "key");
	world_boot(&w, NULL);
	world_run(&w, 60000);
	cr_assert_not_null(world_annotation(&w, &kobj_machine, "a", MODEL_WITHHELD_ANNOTATION));
	cr_assert_not_null(world_annotation(&w, &kobj_ak, "key", MODEL_WITHHELD_ANNOTATION));
	cr_assert_eq(state()->behind, 2);
	fake_api_delete(w.api, &kobj_machine, NS, "a");
	fake_api_delete(w.api, &kobj_ak, NS, "key");
	world_run(&w, SETTLE);
	fake_api_collect(w.api);
	world_run(&w, SETTLE);
	cr_assert_not(has(&kobj_machine, "a") || has(&kobj_secret, ID_A));
	cr_assert_not(has(&kobj_ak, "key") || has(&kobj_secret, "key"));
	cr_assert_not(identity_declared(&w, test_pem[0]));
	in_step();
}

/* The source is that of an older backup, and that is accepted: tecctl follow --accept-source. */
Test(ctl_follow, what_a_restored_source_lacks_goes_when_it_is_deleted_here)
{
	static const char *const lost[] = {"a", "m10", "m11", "m12"};

	source_with_nodes();
	more_machines(4);
	follow();
	in_step();
	world_kill(&w);
	world_kill(&src);
	for (size_t i = 0; i < ARRAY_LEN(lost); i++)
		source_loses(lost[i]);
	fake_api_delete(src.api, &kobj_ak, NS, "key");
	world_boot(&w, NULL);
	world_run(&w, 60000);
	cr_assert_eq(state()->is, CTL_FOLLOW_WENT_BACK);
	cr_assert(strstr(state()->why, "--accept-source"), "%s", state()->why);
	/* One of them: all of it goes while the rest still says that the source went back. */
	fake_api_delete(w.api, &kobj_ak, NS, "key");
	fake_api_delete(w.api, &kobj_machine, NS, "a");
	world_run(&w, 2000);
	fake_api_collect(w.api);
	world_run(&w, SETTLE);
	cr_assert_eq(state()->is, CTL_FOLLOW_WENT_BACK);
	cr_assert_not(has(&kobj_machine, "a") || has(&kobj_secret, "key"));
	cr_assert_null(resource(ID_A));
	cr_assert_not(identity_declared(&w, test_pem[0]));
	cr_assert(has(&kobj_machine, "m10"));
	for (size_t i = 1; i < ARRAY_LEN(lost); i++)
		fake_api_delete(w.api, &kobj_machine, NS, lost[i]);
	world_run(&w, SETTLE);
	fake_api_collect(w.api);
	world_run(&w, SETTLE);
	cr_assert_not(has(&kobj_machine, "m12"));
	in_step();
}

/* A listener made it at another replica, after its cluster was Frozen: that cluster follows now. */
Test(ctl_follow, a_machine_of_here_alone_without_a_key_hinders_nothing)
{
	struct caches_digest ours, theirs;

	source_with_nodes();
	follow();
	in_step();
	world_machine(&w, "late", ID("99"), "listener");
	world_ak(&w, "late-key", test_pem[1], ID("99"), "listener");
	world_run(&w, SETTLE);
	cr_assert_not_null(world_annotation(&w, &kobj_machine, "late", MODEL_WITHHELD_ANNOTATION));
	in_step();
	cr_assert(
		strstr(state()->why, "Machine late, AttestationKey late-key"), "%s", state()->why);
	cr_assert(strstr(state()->why, "--confirm-deletes"), "%s", state()->why);
	caches_digest(w.life->env.caches, &ours);
	caches_digest(src.life->env.caches, &theirs);
	cr_assert_str_eq(ours.hex, theirs.hex);
	fake_api_delete(w.api, &kobj_machine, NS, "late");
	fake_api_delete(w.api, &kobj_ak, NS, "late-key");
	world_run(&w, SETTLE);
	in_step();
	cr_assert_str_empty(state()->why);
}

Test(ctl_follow, much_missing_at_once_takes_nothing_away)
{
	source_with_nodes();
	more_machines(4);
	follow();
	in_step();
	world_kill(&w);
	world_kill(&src);
	for (unsigned i = 0; i < 3; i++) {
		char name[8];

		snprintf(name, sizeof(name), "m%u", 10 + i);
		fake_api_merge(
			src.api, &kobj_machine, NS, name, "{\"metadata\":{\"finalizers\":null}}");
		fake_api_delete(src.api, &kobj_machine, NS, name);
	}
	fake_api_delete(src.api, &kobj_machine, NS, "a");
	world_boot(&w, NULL);
	world_run(&w, 60000);
	cr_assert_eq(state()->is, CTL_FOLLOW_WENT_BACK, "%d %s", (int)state()->is, state()->why);
	cr_assert(resource(ID_A));
	cr_assert(has(&kobj_machine, "m10"));
	cr_assert_null(world_annotation(&w, &kobj_machine, "m10", MODEL_WITHHELD_ANNOTATION));
	fake_api_merge(src.api, &kobj_cluster, NS, "tec",
		"{\"spec\":{\"registration\":{\"mode\":\"Manual\"}}}");
	world_run(&w, SETTLE);
	cr_assert_null(world_str(&w, &kobj_cluster, "tec", "spec/registration/mode"));
	/* Its Machines are there again. */
	for (unsigned i = 0; i < 3; i++) {
		char name[8], id[40];

		snprintf(name, sizeof(name), "m%u", 10 + i);
		snprintf(id, sizeof(id), ID("") "%u", 10 + i);
		world_machine(&src, name, id, NULL);
	}
	world_run(&w, 60000);
	cr_assert_str_eq(world_str(&w, &kobj_cluster, "tec", "spec/registration/mode"), "Manual");
}

Test(ctl_follow, a_failed_list_and_an_empty_one_take_nothing_away)
{
	source_with_nodes();
	follow();
	in_step();
	world_kill(&src);
	fake_api_hide(src.api, &kobj_machine, true);
	fake_api_forget_history(src.api);
	fake_api_drop_watches(src.api);
	world_run(&w, 600000);
	cr_assert_eq(state()->is, CTL_FOLLOW_UNREACHABLE);
	cr_assert(resource(ID_A));
	world_kill(&w);
	fake_api_hide(src.api, &kobj_machine, false);
	for (unsigned i = 0; i < 2; i++) {
		const char *name = i ? "a" : "b";

		fake_api_merge(
			src.api, &kobj_machine, NS, name, "{\"metadata\":{\"finalizers\":null}}");
		fake_api_delete(src.api, &kobj_machine, NS, name);
	}
	world_boot(&w, NULL);
	world_run(&w, 60000);
	cr_assert_eq(state()->is, CTL_FOLLOW_WENT_BACK);
	cr_assert(resource(ID_A));
}

/* ---- images */

static const char *entry_of(struct world *of, const char *name)
{
	static char hex[SHA256_HEX_LEN + 1];
	const char *text = world_str(of, &kobj_configmap, "image-pcrs", "data/image-pcrs.json");
	cleanup_model_pcrs struct model_pcrs *m =
		text ? model_pcrs_parse(text, strlen(text)) : NULL;
	const struct model_pcrs_entry *e = m ? model_pcrs_find(m, name) : NULL;

	if (e)
		memcpy(hex, e->sha256, sizeof(hex));
	return e && !e->why ? hex : NULL;
}

#define IMAGE "quay.io/x/coreos@sha256:" MOK_LIST

/* As its operator left it: the image, and values that are announced on it if `announced`. */
static void source_image(const char *name, bool announced)
{
	struct pcr_events e = PCR_EVENTS_INIT;
	cleanup_json struct json_object *map = json_obj(), *data = json_obj();
	cleanup_free char *text = NULL,
			  *image = xasprintf(
				  "{\"metadata\":{\"name\":\"%s\"},\"spec\":{\"image\":\"" IMAGE
				  "\",\"secureBoot\":\"Any\"}}",
				  name);

	add_pcr4(&e, SHIM_A, GRUB_A, KERNEL_A);
	add_pcr14(&e);
	json_add(map, name, model_pcrs_entry_json(IMAGE, 1800000000000000, &e));
	pcr_events_fini(&e);
	text = json_text(map);
	json_add(data, "data", json_add_str(json_obj(), "image-pcrs.json", text));
	json_add(data, "metadata", json_add_str(json_obj(), "name", "image-pcrs"));
	fake_api_put_json(src.api, &kobj_configmap, NS, json_object_get(data));
	fake_api_put(src.api, &kobj_image, NS, image);
	if (announced)
		world_mark(&src, &kobj_image, name, MODEL_IMAGE_PCRS_MARK, entry_of(&src, name));
}

Test(ctl_follow, images_are_copied_with_the_values_that_the_source_wrote)
{
	source_image("good", true);
	follow();
	in_step();
	cr_assert_str_eq(world_str(&w, &kobj_image, "good", "spec/image"), IMAGE);
	cr_assert_str_eq(world_str(&w, &kobj_image, "good", "spec/secureBoot"), "Any");
	cr_assert_not_null(entry_of(&w, "good"));
	cr_assert_str_eq(
		entry_of(&w, "good"), world_marked(&w, &kobj_image, "good", MODEL_IMAGE_PCRS_MARK));
	fake_api_merge(src.api, &kobj_image, NS, "good", "{\"spec\":{\"secureBoot\":null}}");
	world_run(&w, SETTLE);
	cr_assert_null(world_str(&w, &kobj_image, "good", "spec/secureBoot"));
	fake_api_delete(src.api, &kobj_image, NS, "good");
	world_run(&w, SETTLE);
	cr_assert_not(has(&kobj_image, "good"));
	in_step();
}

/* After a promotion the follower is the one that approved it. */
Test(ctl_follow, an_image_with_our_finalizer_goes_when_it_is_deleted_there)
{
	source_image("good", true);
	follow();
	in_step();
	fake_api_merge(w.api, &kobj_image, NS, "good",
		"{\"metadata\":{\"finalizers\":[\"" MODEL_IMAGE_FINALIZER "\"]}}");
	world_run(&w, SETTLE);
	fake_api_delete(src.api, &kobj_image, NS, "good");
	world_run(&w, SETTLE);
	cr_assert_not(has(&kobj_image, "good"));
	cr_assert_null(entry_of(&w, "good"));
	in_step();
}

Test(ctl_follow, values_that_the_source_did_not_announce_are_not_copied)
{
	source_image("planted", false);
	follow();
	cr_assert(has(&kobj_image, "planted"));
	cr_assert_null(entry_of(&w, "planted"));
}

Test(ctl_follow, decide_copies_an_image_in_order)
{
	struct ctl_follow_image_view v = {.may_copy = true, .may_take = true, .there = true};

#define IS(d) cr_assert_eq(ctl_follow_image_decide(&v), CTL_FOLLOW_IMAGE_##d, "line %d", __LINE__)
	IS(CREATE);
	v.here = true;
	IS(NOTHING);
	v.same = true;
	IS(PATCH);
	v.patched = true;
	IS(NOTHING);
	v.has_entry = true;
	IS(ANNOUNCE);
	v.announced = true;
	IS(NOTHING);
	v.writable = true;
	IS(READ);
	v.text_read = true;
	IS(WRITE);
	v.written = true;
	IS(NOTHING);
	v.deleted = true;
	IS(DELETE);
	v.may_take = false;
	IS(NOTHING);
#undef IS
}

/* ---- one external Trustee for both */

#define ONE_TRUSTEE "\"trustee\":{\"deploy\":\"External\""

static void merge_spec(struct world *of, const char *spec)
{
	cleanup_free char *text = xasprintf("{\"spec\":{%s}}", spec);

	fake_api_merge(of->api, &kobj_cluster, NS, "tec", text);
}

static bool is_filled_by(struct world *of)
{
	return strstr(fake_kbs_value(kbs, KBS_SENTINEL),
		       world_str(of, &kobj_cluster, "tec", "metadata/uid")) != NULL;
}

static const char *synced_of(struct world *of)
{
	return world_reason(of, &kobj_cluster, "tec", "TrusteeSynced");
}

static size_t kbs_writes(void)
{
	return fake_kbs_requests(kbs) - fake_kbs_count(kbs, "GET", NULL);
}

/* The source fills the Trustee, and w follows it. */
static void share_trustee(void)
{
	cleanup_free char *spec = NULL;

	src.kbs = kbs;
	admin_key("trustee-auth");
	fake_api_put(src.api, &kobj_secret, NS,
		json_object_to_json_string(world_get(&w, &kobj_secret, "trustee-auth")));
	merge_spec(&src, ONE_TRUSTEE "}");
	source_with_nodes();
	cr_assert_str_eq(synced_of(&src), "Synced");
	cr_assert(resource(ID_A));
	put_config("token: t");
	spec = xasprintf("{" ADDRESS
			 ",\"authority\":\"Following\",\"follow\":{\"kubeconfigSecret\":"
			 "\"source\"}," ONE_TRUSTEE ",\"takeOver\":\"%s\"}}",
		world_str(&src, &kobj_cluster, "tec", "metadata/uid"));
	fake_kbs_forget(kbs);
	world_cluster(&w, "tec", spec);
	world_boot(&w, NULL);
	world_run(&w, 60000);
}

Test(ctl_follow, one_trustee_is_left_to_the_cluster_that_is_followed)
{
	share_trustee();
	in_step();
	cr_assert_str_eq(root_of(&w, ID_A), root_of(&src, ID_A));
	cr_assert_eq(kbs_sync_targets(w.life->caches.sync), 0);
	cr_assert_eq(kbs_writes(), 0);
	cr_assert(is_filled_by(&src));
	cr_assert_str_eq(synced(), "Following");
	cr_assert(strstr(synced_message(), "The cluster that this one follows"), "%s",
		synced_message());
	/* What the source deletes goes here, too, without a word of Trustee. */
	fake_api_delete(src.api, &kobj_machine, NS, "a");
	world_run(&w, 60000);
	cr_assert_null(world_get(&src, &kobj_machine, "a"));
	cr_assert_null(resource(ID_A));
	cr_assert_null(world_get(&w, &kobj_machine, "a"));
	in_step();
	/* And nothing is sent after a restart, or while the Trustee is empty. */
	fake_kbs_forget(kbs);
	world_kill(&w);
	world_kill(&src);
	fake_kbs_lose_store(kbs);
	world_boot(&w, NULL);
	world_run(&w, 60000);
	cr_assert_eq(fake_kbs_requests(kbs), 0);
}

/* The keys are those of the other cluster's nodes. */
Test(ctl_follow, who_retires_leaves_the_one_trustee_as_it_is)
{
	share_trustee();
	merge_spec(&w, "\"authority\":\"Retired\"");
	world_run(&w, 60000);
	cr_assert_str_eq(world_reason(&w, &kobj_cluster, "tec", "Authority"), "Retired");
	cr_assert_str_eq(synced(), "Retired");
	cr_assert_null(json_get_arr(world_get(&w, &kobj_machine, "a"), "metadata/finalizers"));
	world_kill(&w);
	world_boot(&w, NULL);
	world_run(&w, 60000);
	cr_assert_str_eq(world_reason(&w, &kobj_cluster, "tec", "Authority"), "Retired");
	cr_assert_eq(kbs_writes(), 0);
	cr_assert(resource(ID_A));
	cr_assert(is_filled_by(&src));
}

Test(ctl_follow, who_decided_last_retires_and_revokes_in_the_one_trustee)
{
	share_trustee();
	merge_spec(&src, "\"authority\":\"Frozen\"");
	merge_spec(&w, "\"authority\":\"Self\",\"epoch\":1");
	world_run(&w, 30000);
	cr_assert(is_filled_by(&w));
	merge_spec(&w, "\"authority\":\"Retired\"");
	world_run(&w, 60000);
	cr_assert_str_eq(world_reason(&w, &kobj_cluster, "tec", "Authority"), "Retired");
	cr_assert_null(resource(ID_A));
}

static void arm_in_process(void)
{
	w.life->caches.kbs_in_process = true;
}

/* Two of --standalone may have one address. */
Test(ctl_follow, the_broker_of_this_process_is_left_to_nobody)
{
	share_trustee();
	world_kill(&w);
	w.arm = arm_in_process;
	world_boot(&w, NULL);
	world_run(&w, 60000);
	in_step();
	cr_assert_str_eq(synced(), "Synced");
}

Test(ctl_follow, one_trustee_moves_with_each_promotion)
{
	share_trustee();
	for (int epoch = 1; epoch <= 3; epoch++) {
		struct world *from = epoch % 2 ? &src : &w, *to = epoch % 2 ? &w : &src;
		cleanup_free char
			*takes = xasprintf("\"authority\":\"Self\",\"epoch\":%d", epoch),
			*swaps = xasprintf(
				"\"authority\":\"Following\",\"trustee\":{\"takeOver\":\"%s\"}",
				world_str(to, &kobj_cluster, "tec", "metadata/uid"));

		merge_spec(from, "\"authority\":\"Frozen\"");
		world_run(&w, 20000);
		cr_assert(is_filled_by(from), "%d", epoch);
		merge_spec(to, takes);
		world_run(&w, 30000);
		cr_assert(is_filled_by(to), "%d", epoch);
		cr_assert_str_eq(synced_of(to), "Synced", "%d", epoch);
		/* The one that gave it away does not take it back, whatever its spec says. */
		cr_assert_str_eq(synced_of(from), "Conflict", "%d", epoch);
		cr_assert_eq(world_events(from, "TrusteeLeft"), 0);
		merge_spec(from, swaps);
		world_run(&w, 30000);
		cr_assert_str_eq(synced_of(from), "Following", "%d", epoch);
		cr_assert_eq(world_events(from, "TrusteeLeft"), 0);
		fake_kbs_forget(kbs);
		world_run(&w, 60000);
		cr_assert_eq(kbs_writes(), 0, "%d", epoch);
		cr_assert(resource(ID_A), "%d", epoch);
	}
}
