/* SPDX-License-Identifier: MIT */
/* The counts behind registration's limits, moved by changes of the caches. */
#include "config.h"

#include <criterion/criterion.h>

#include "srv/srv_keys.h"
#include "tec/base/clock.h"
#include "tec/base/json.h"
#include "tec/base/mem.h"
#include "tec/kobj/gvk.h"
#include "tec/model/ak.h"
#include "tec/model/machine.h"
#include "tec/srv/pending.h"

#define LISTENER "\"trusted-execution-clusters.io/created-by\":\"listener\""
#define BOUND(name)                                                                                \
	"\"trusted-execution-clusters.io/bound-at\":\"uid-" name " 2026-01-02T03:04:05Z\""
#define OWNER                                                                                      \
	"[{\"apiVersion\":\"trusted-execution-clusters.io/v1alpha1\",\"kind\":\"Machine\","        \
	"\"name\":\"m\",\"uid\":\"owner\",\"controller\":true}]"

struct counts {
	struct caches caches;
	struct srv_pending *p;
	struct model_cluster limits;
	unsigned rv;
};

static void counts_open(struct counts *t)
{
	memset(t, 0, sizeof(*t));
	t->caches.machines = k8s_cache_new(&caches_kinds[CACHES_MACHINES].cache);
	t->caches.aks = k8s_cache_new(&caches_kinds[CACHES_AKS].cache);
	t->p = srv_pending_new(&t->caches);
	t->limits.pending_limit = 10000;
	t->limits.machine_limit = 50000;
	t->limits.waiting_keys = 4;
}

static void counts_close(struct counts *t)
{
	k8s_cache_free(t->caches.machines);
	k8s_cache_free(t->caches.aks);
	srv_pending_free(t->p);
}

static void object(struct counts *t, struct k8s_cache *cache, const char *name,
	const char *annotations, const char *owners, const char *uuid)
{
	cleanup_free char *text = xasprintf(
		"{\"metadata\":{\"name\":\"%s\",\"uid\":\"uid-%s\",\"resourceVersion\":\"%u\","
		"\"creationTimestamp\":\"2026-01-02T03:04:05Z\",\"annotations\":{%s},"
		"\"ownerReferences\":%s},\"spec\":{\"%s\":\"%s\",\"publicKey\":\"k\"}}",
		name, name, ++t->rv, annotations, owners ? owners : "[]",
		cache == t->caches.aks ? "uuid" : "id", uuid ? uuid : name);
	struct err err = ERR_INIT;
	cleanup_json struct json_object *o =
		json_parse(text, strlen(text), &json_limits_object, &err);

	cr_assert_not_null(o, "%s", err.text);
	k8s_cache_put(cache, o);
}

static void machine(struct counts *t, const char *name, const char *annotations)
{
	object(t, t->caches.machines, name, annotations, NULL, NULL);
}

static void key(struct counts *t, const char *name, const char *annotations, const char *owners,
	const char *uuid)
{
	object(t, t->caches.aks, name, annotations, owners, uuid);
}

Test(srv_pending, counts_what_a_listener_made_and_nothing_matched)
{
	struct counts t;

	counts_open(&t);
	machine(&t, "a", LISTENER);
	machine(&t, "b", "");
	machine(&t, "c", LISTENER "," BOUND("c"));
	cr_assert_eq(srv_pending_count(t.p), 1);
	key(&t, "d", LISTENER, NULL, "u");
	key(&t, "e", "", NULL, "u");
	key(&t, "f", LISTENER, OWNER, "u");
	cr_assert_eq(srv_pending_count(t.p), 2);
	counts_close(&t);
}

Test(srv_pending, follows_changes_and_deletes)
{
	struct counts t;

	counts_open(&t);
	machine(&t, "a", LISTENER);
	machine(&t, "a", LISTENER);
	cr_assert_eq(srv_pending_count(t.p), 1, "the same one again");
	machine(&t, "a", LISTENER "," BOUND("a"));
	cr_assert_eq(srv_pending_count(t.p), 0);
	machine(&t, "a", LISTENER);
	key(&t, "k", LISTENER, NULL, "u");
	cr_assert_eq(srv_pending_count(t.p), 2);
	key(&t, "k", LISTENER, OWNER, "u");
	cr_assert_eq(srv_pending_count(t.p), 1);
	k8s_cache_remove(t.caches.machines, "a", NULL);
	k8s_cache_remove(t.caches.aks, "k", NULL);
	cr_assert_eq(srv_pending_count(t.p), 0);
	counts_close(&t);
}

Test(srv_pending, a_relist_and_a_clear_leave_no_residue)
{
	struct counts t;

	counts_open(&t);
	machine(&t, "a", LISTENER);
	machine(&t, "b", LISTENER);
	key(&t, "k", LISTENER, NULL, "u");
	k8s_cache_relist_begin(t.caches.machines);
	machine(&t, "b", LISTENER);
	machine(&t, "c", LISTENER);
	machine(&t, "d", LISTENER "," BOUND("d"));
	k8s_cache_relist_end(t.caches.machines);
	cr_assert_eq(srv_pending_count(t.p), 3, "b, c and k");
	k8s_cache_relist_begin(t.caches.machines);
	k8s_cache_relist_abandon(t.caches.machines);
	cr_assert_eq(srv_pending_count(t.p), 3);
	k8s_cache_clear(t.caches.machines);
	cr_assert_eq(srv_pending_count(t.p), 1);
	k8s_cache_relist_begin(t.caches.aks);
	k8s_cache_relist_end(t.caches.aks);
	cr_assert_eq(srv_pending_count(t.p), 0);
	counts_close(&t);
}

#define PEER "192.0.2.1:1000"

static struct srv_place *take_machine(struct counts *t, const char *name, enum srv_limit want)
{
	enum srv_limit why;
	struct srv_place *e = srv_pending_take_machine(t->p, &t->limits, PEER, name, &why);

	cr_assert_eq(why, want, "%s: %s", name, srv_limits[why].name);
	cr_assert_eq(e == NULL, want != SRV_LIMIT_NONE);
	return e;
}

static struct srv_place *take_key(
	struct counts *t, const char *name, const char *uuid, bool first, enum srv_limit want)
{
	enum srv_limit why;
	struct srv_place *e = srv_pending_take_key(t->p, &t->limits, name, uuid, first, &why);

	cr_assert_eq(why, want, "%s: %s", name, srv_limits[why].name);
	cr_assert_eq(e == NULL, want != SRV_LIMIT_NONE);
	return e;
}

static void machine_fits(struct counts *t, enum srv_limit want)
{
	cr_assert_eq(srv_pending_machine_limit(t->p, &t->limits, PEER), want);
}

Test(srv_pending, machines_and_keys_have_a_room_each)
{
	struct srv_place *m, *k;
	struct counts t;

	counts_open(&t);
	t.limits.pending_limit = 2;
	machine(&t, "a", LISTENER);
	m = take_machine(&t, "b", SRV_LIMIT_NONE);
	take_machine(&t, "c", SRV_LIMIT_MACHINES);
	k = take_key(&t, "k", NULL, false, SRV_LIMIT_NONE);
	key(&t, "l", LISTENER, NULL, "u");
	take_key(&t, "n", NULL, false, SRV_LIMIT_KEYS);
	srv_place_give_back(m);
	machine_fits(&t, SRV_LIMIT_NONE);
	srv_place_give_back(k);
	srv_place_give_back(take_key(&t, "n", NULL, false, SRV_LIMIT_NONE));
	counts_close(&t);
}

Test(srv_pending, the_first_key_of_a_waiting_machine_is_taken_whatever_else_waits)
{
	struct srv_place *k;
	struct counts t;

	counts_open(&t);
	t.limits.pending_limit = 1;
	key(&t, "stray", LISTENER, NULL, NULL);
	take_key(&t, "k1", "u", false, SRV_LIMIT_KEYS);
	k = take_key(&t, "k1", "u", true, SRV_LIMIT_NONE);
	take_key(&t, "k2", "u", true, SRV_LIMIT_KEYS);
	srv_place_give_back(k);
	key(&t, "bound", LISTENER, OWNER, "u");
	take_key(&t, "k2", "u", true, SRV_LIMIT_KEYS);
	counts_close(&t);
}

Test(srv_pending, machine_limit_counts_all_machines_and_creates_under_way)
{
	struct srv_place *m;
	struct counts t;

	counts_open(&t);
	t.limits.machine_limit = 3;
	machine(&t, "a", "");
	machine(&t, "b", LISTENER "," BOUND("b"));
	m = take_machine(&t, "c", SRV_LIMIT_NONE);
	take_machine(&t, "d", SRV_LIMIT_ALL_MACHINES);
	srv_place_give_back(
		take_key(&t, "k", "u", false, SRV_LIMIT_NONE)); /* keys have their own */
	srv_place_give_back(m);
	counts_close(&t);
}

Test(srv_pending, keys_of_one_uuid_are_limited_whoever_holds_the_machine)
{
	struct counts t;

	counts_open(&t);
	t.limits.waiting_keys = 2;
	key(&t, "approved", LISTENER, OWNER, "u");
	key(&t, "by-hand", "", NULL, "u");
	key(&t, "k1", LISTENER, NULL, "u");
	srv_place_give_back(take_key(&t, "x", "u", true, SRV_LIMIT_NONE));
	key(&t, "k2", LISTENER, NULL, "u");
	take_key(&t, "x", "u", true, SRV_LIMIT_WAITING_KEYS);
	srv_place_give_back(take_key(&t, "x", "other", true, SRV_LIMIT_NONE));
	srv_place_give_back(take_key(&t, "x", NULL, false, SRV_LIMIT_NONE));
	k8s_cache_remove(t.caches.aks, "k1", NULL);
	srv_place_give_back(take_key(&t, "x", "u", true, SRV_LIMIT_NONE));
	counts_close(&t);
}

Test(srv_pending, a_crowd_at_once_does_not_pass_the_keys_of_one_machine)
{
	struct srv_place *e[100];
	enum srv_limit why;
	struct counts t;
	int n = 0;

	counts_open(&t);
	for (int i = 0; i < 100; i++) {
		cleanup_free char *name = xasprintf("k%d", i);

		e[n] = srv_pending_take_key(t.p, &t.limits, name, "u", true, &why);
		n += e[n] != NULL;
	}
	cr_assert_eq(n, 4);
	/* The API has answered, and the watch has told of none of them. */
	for (int i = 0; i < n; i++)
		srv_place_keep(e[i], "uid");
	take_key(&t, "late", "u", true, SRV_LIMIT_WAITING_KEYS);
	key(&t, "k0", LISTENER, NULL, "u");
	key(&t, "k1", LISTENER, NULL, "u");
	cr_assert_eq(srv_pending_count(t.p), 4, "each counts once");
	cr_assert_eq(srv_pending_under_way(t.p), 2, "those that no cache shows");
	take_key(&t, "late", "u", true, SRV_LIMIT_WAITING_KEYS);
	k8s_cache_remove(t.caches.aks, "k1", NULL);
	srv_place_give_back(take_key(&t, "late", "u", true, SRV_LIMIT_NONE));
	counts_close(&t);
}

Test(srv_pending, a_place_counts_until_the_cache_shows_it_or_ten_seconds)
{
	struct srv_place *m;
	struct counts t;

	clock_fake_start(1000, 1790000000);
	counts_open(&t);
	m = take_machine(&t, "a", SRV_LIMIT_NONE);
	cr_assert_eq(srv_pending_count(t.p), 1);
	machine(&t, "a", LISTENER);
	cr_assert_eq(srv_pending_count(t.p), 1, "the event overtook the answer");
	srv_place_keep(m, "uid");
	cr_assert_eq(srv_pending_count(t.p), 1);
	srv_place_keep(take_machine(&t, "b", SRV_LIMIT_NONE), "uid");
	cr_assert_eq(srv_pending_count(t.p), 2);
	machine(&t, "b", LISTENER "," BOUND("b"));
	cr_assert_eq(srv_pending_count(t.p), 1, "matched already");
	srv_place_keep(take_machine(&t, "c", SRV_LIMIT_NONE), NULL);
	clock_fake_advance(9999);
	cr_assert_eq(srv_pending_count(t.p), 2);
	clock_fake_advance(1);
	cr_assert_eq(srv_pending_count(t.p), 1, "it never came");
	counts_close(&t);
	clock_fake_stop();
}

Test(srv_pending, a_source_has_its_share_of_machines_bound_or_not)
{
	enum srv_limit why;
	struct counts t;

	clock_fake_start(1000, 1790000000);
	counts_open(&t);
	t.limits.pending_limit = 20;
	for (int i = 0; i < 16; i++) {
		cleanup_free char *name = xasprintf("m%d", i);
		cleanup_free char *bound = xasprintf(LISTENER "," BOUND("%s"), name);

		srv_place_keep(take_machine(&t, name, SRV_LIMIT_NONE), "uid");
		machine(&t, name, bound);
	}
	cr_assert_eq(srv_pending_count(t.p), 0);
	take_machine(&t, "one-more", SRV_LIMIT_SHARE);
	srv_place_give_back(
		srv_pending_take_machine(t.p, &t.limits, "192.0.2.2:1000", "another", &why));
	cr_assert_eq(why, SRV_LIMIT_NONE, "another source");
	for (int i = 0; i < 16; i++) {
		cleanup_free char *name = xasprintf("m%d", i);

		k8s_cache_remove(t.caches.machines, name, NULL);
	}
	take_machine(&t, "one-more", SRV_LIMIT_SHARE);
	clock_fake_advance(70 * 60 * 1000);
	srv_place_give_back(take_machine(&t, "one-more", SRV_LIMIT_NONE));
	counts_close(&t);
	clock_fake_stop();
}

/* With AtKey a stranger's Machines are bound at once, and never expire: none of them pends. */
Test(srv_pending, one_source_does_not_use_up_the_limit_of_machines)
{
	enum srv_limit why;
	struct counts t;

	counts_open(&t);
	t.limits.machine_limit = 40;
	for (int i = 0; i < 24; i++) {
		cleanup_free char *name = xasprintf("m%d", i);
		cleanup_free char *bound = xasprintf(LISTENER "," BOUND("%s"), name);

		machine(&t, name, bound);
	}
	for (int i = 24; i < 39; i++) {
		cleanup_free char *name = xasprintf("m%d", i);
		cleanup_free char *bound = xasprintf(LISTENER "," BOUND("%s"), name);

		srv_place_keep(take_machine(&t, name, SRV_LIMIT_NONE), "uid");
		machine(&t, name, bound);
	}
	t.limits.machine_limit = 48;
	srv_place_keep(take_machine(&t, "m39", SRV_LIMIT_NONE), "uid");
	take_machine(&t, "one-more", SRV_LIMIT_SHARE);
	srv_place_give_back(
		srv_pending_take_machine(t.p, &t.limits, "192.0.2.2:1000", "another", &why));
	cr_assert_eq(why, SRV_LIMIT_NONE, "another source");
	t.limits.machine_limit = 40;
	take_machine(&t, "one-more", SRV_LIMIT_ALL_MACHINES);
	counts_close(&t);
}

Test(srv_pending, what_was_not_made_takes_nothing_of_the_share)
{
	struct counts t;

	counts_open(&t);
	for (int i = 0; i < 100; i++)
		srv_place_give_back(take_machine(&t, "a", SRV_LIMIT_NONE));
	counts_close(&t);
}

Test(srv_pending, a_key_under_way_is_known_by_its_name)
{
	const char *uuid = NULL;
	struct srv_place *k;
	struct counts t;

	counts_open(&t);
	cr_assert_eq(srv_pending_key_under_way(t.p, "k", &uuid), SRV_UNDER_WAY_NONE);
	k = take_key(&t, "k", "u", true, SRV_LIMIT_NONE);
	cr_assert_eq(srv_pending_key_under_way(t.p, "k", &uuid), SRV_UNDER_WAY_OPEN);
	srv_place_keep(k, NULL);
	cr_assert_eq(srv_pending_key_under_way(t.p, "k", &uuid), SRV_UNDER_WAY_NONE,
		"nobody knows, so it is tried again");
	cr_assert_eq(take_key(&t, "k", "u", true, SRV_LIMIT_NONE), k, "in its old place");
	cr_assert_eq(srv_pending_count(t.p), 1);
	srv_place_keep(k, "uid");
	cr_assert_eq(srv_pending_key_under_way(t.p, "k", &uuid), SRV_UNDER_WAY_MADE);
	cr_assert_str_eq(uuid, "u");
	key(&t, "k", LISTENER, NULL, "u");
	cr_assert_eq(srv_pending_key_under_way(t.p, "k", &uuid), SRV_UNDER_WAY_NONE, "shown");
	counts_close(&t);
}

Test(srv_pending, a_machine_made_here_is_known_until_the_cache_shows_it)
{
	struct srv_place *m;
	struct counts t;

	clock_fake_start(1000, 1790000000);
	counts_open(&t);
	m = take_machine(&t, "m", SRV_LIMIT_NONE);
	cr_assert_null(srv_pending_made_machine(t.p, "m"), "on its way");
	srv_place_keep(m, "uid-m");
	cr_assert_str_eq(srv_pending_made_machine(t.p, "m"), "uid-m");
	cr_assert_null(srv_pending_made_machine(t.p, "n"));
	machine(&t, "m", LISTENER);
	cr_assert_null(srv_pending_made_machine(t.p, "m"), "shown");
	srv_place_keep(take_machine(&t, "lost", SRV_LIMIT_NONE), NULL);
	cr_assert_null(srv_pending_made_machine(t.p, "lost"), "it may not have been made");
	srv_place_keep(take_machine(&t, "no-uid", SRV_LIMIT_NONE), "");
	cr_assert_null(srv_pending_made_machine(t.p, "no-uid"));
	srv_place_keep(take_key(&t, "k", "u", true, SRV_LIMIT_NONE), "uid-k");
	cr_assert_null(srv_pending_made_machine(t.p, "k"), "a key");
	srv_place_keep(take_machine(&t, "late", SRV_LIMIT_NONE), "uid-late");
	clock_fake_advance(10000);
	cr_assert_null(srv_pending_made_machine(t.p, "late"), "the watch is late: it is read");
	counts_close(&t);
	clock_fake_stop();
}

Test(srv_pending, a_limit_is_told_once_a_minute)
{
	unsigned left_out = 9;
	struct counts t;

	clock_fake_start(1000, 1790000000);
	counts_open(&t);
	cr_assert(srv_pending_may_tell(t.p, SRV_LIMIT_KEYS, &left_out));
	cr_assert_eq(left_out, 0);
	cr_assert_not(srv_pending_may_tell(t.p, SRV_LIMIT_KEYS, &left_out));
	cr_assert_not(srv_pending_may_tell(t.p, SRV_LIMIT_KEYS, &left_out));
	cr_assert(srv_pending_may_tell(t.p, SRV_LIMIT_SHARE, &left_out), "another one");
	clock_fake_advance(60000);
	cr_assert(srv_pending_may_tell(t.p, SRV_LIMIT_KEYS, &left_out));
	cr_assert_eq(left_out, 2);
	counts_close(&t);
	clock_fake_stop();
}

Test(srv_pending, a_role_without_caches_counts_its_own_creates)
{
	const struct caches without = CACHES_INIT;
	struct srv_pending *p = srv_pending_new(&without);
	struct model_cluster limits = {.pending_limit = 1, .machine_limit = 1, .waiting_keys = 1};
	struct srv_place *m;
	enum srv_limit why;

	m = srv_pending_take_machine(p, &limits, PEER, "a", &why);
	cr_assert_not_null(m);
	cr_assert_null(srv_pending_take_machine(p, &limits, PEER, "b", &why));
	srv_place_keep(m, "uid");
	cr_assert_eq(srv_pending_count(p), 0);
	srv_pending_free(p);
}
