/* SPDX-License-Identifier: MIT */
/* The counts behind registration's limits, moved by changes of the caches. */
#include "config.h"

#include <criterion/criterion.h>

#include "srv/srv_keys.h"
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
	struct k8s_cache *machines, *aks;
	struct srv_pending *p;
	struct model_cluster limits;
	unsigned rv;
};

static const struct k8s_cache_type machine_type = {
	model_machine_extract, sizeof(struct model_machine), model_machine_index, 1};
static const struct k8s_cache_type ak_type = {
	model_ak_extract, sizeof(struct model_ak), model_ak_index, 3};

static void counts_open(struct counts *t)
{
	memset(t, 0, sizeof(*t));
	t->machines = k8s_cache_new(&machine_type);
	t->aks = k8s_cache_new(&ak_type);
	t->p = srv_pending_new(t->machines, t->aks);
	t->limits.pending_limit = 10000;
	t->limits.machine_limit = 50000;
	t->limits.waiting_keys = 4;
}

static void counts_close(struct counts *t)
{
	k8s_cache_free(t->machines);
	k8s_cache_free(t->aks);
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
		cache == t->aks ? "uuid" : "id", uuid ? uuid : name);
	struct err err = ERR_INIT;
	cleanup_json struct json_object *o =
		json_parse(text, strlen(text), &json_limits_object, &err);

	cr_assert_not_null(o, "%s", err.text);
	k8s_cache_put(cache, o);
}

static void machine(struct counts *t, const char *name, const char *annotations)
{
	object(t, t->machines, name, annotations, NULL, NULL);
}

static void key(struct counts *t, const char *name, const char *annotations, const char *owners,
	const char *uuid)
{
	object(t, t->aks, name, annotations, owners, uuid);
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
	k8s_cache_remove(t.machines, "a", NULL);
	k8s_cache_remove(t.aks, "k", NULL);
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
	k8s_cache_relist_begin(t.machines);
	machine(&t, "b", LISTENER);
	machine(&t, "c", LISTENER);
	machine(&t, "d", LISTENER "," BOUND("d"));
	k8s_cache_relist_end(t.machines);
	cr_assert_eq(srv_pending_count(t.p), 3, "b, c and k");
	k8s_cache_relist_begin(t.machines);
	k8s_cache_relist_abandon(t.machines);
	cr_assert_eq(srv_pending_count(t.p), 3);
	k8s_cache_clear(t.machines);
	cr_assert_eq(srv_pending_count(t.p), 1);
	k8s_cache_relist_begin(t.aks);
	k8s_cache_relist_end(t.aks);
	cr_assert_eq(srv_pending_count(t.p), 0);
	counts_close(&t);
}

Test(srv_pending, pending_limit_includes_creates_under_way)
{
	struct counts t;
	const char *why = NULL;

	counts_open(&t);
	t.limits.pending_limit = 2;
	machine(&t, "a", LISTENER);
	cr_assert(srv_pending_machine_allowed(t.p, &t.limits, &why));
	cr_assert(srv_pending_key_allowed(t.p, &t.limits, NULL, &why));
	srv_pending_begin(t.p);
	cr_assert_not(srv_pending_machine_allowed(t.p, &t.limits, &why));
	cr_assert_not(srv_pending_key_allowed(t.p, &t.limits, NULL, &why));
	cr_assert(strstr(why, "registration.pendingLimit"));
	srv_pending_end(t.p);
	cr_assert(srv_pending_machine_allowed(t.p, &t.limits, &why));
	counts_close(&t);
}

Test(srv_pending, machine_limit_counts_all_machines_and_creates_under_way)
{
	struct counts t;
	const char *why = NULL;

	counts_open(&t);
	t.limits.machine_limit = 3;
	machine(&t, "a", "");
	machine(&t, "b", LISTENER "," BOUND("b"));
	cr_assert(srv_pending_machine_allowed(t.p, &t.limits, &why));
	srv_pending_begin(t.p);
	cr_assert_not(srv_pending_machine_allowed(t.p, &t.limits, &why));
	cr_assert(strstr(why, "registration.machineLimit"));
	cr_assert(srv_pending_key_allowed(t.p, &t.limits, NULL, &why), "keys have their own");
	srv_pending_end(t.p);
	counts_close(&t);
}

Test(srv_pending, keys_of_one_uuid_are_limited_whoever_holds_the_machine)
{
	struct counts t;
	const char *why = NULL;

	counts_open(&t);
	t.limits.waiting_keys = 2;
	key(&t, "approved", LISTENER, OWNER, "u");
	key(&t, "by-hand", "", NULL, "u");
	key(&t, "k1", LISTENER, NULL, "u");
	cr_assert(srv_pending_key_allowed(t.p, &t.limits, "u", &why));
	key(&t, "k2", LISTENER, NULL, "u");
	cr_assert_not(srv_pending_key_allowed(t.p, &t.limits, "u", &why));
	cr_assert(strstr(why, "registration.waitingKeysPerMachine"));
	cr_assert(srv_pending_key_allowed(t.p, &t.limits, "other", &why));
	cr_assert(srv_pending_key_allowed(t.p, &t.limits, NULL, &why));
	k8s_cache_remove(t.aks, "k1", NULL);
	cr_assert(srv_pending_key_allowed(t.p, &t.limits, "u", &why));
	counts_close(&t);
}

Test(srv_pending, a_role_without_caches_counts_its_own_creates)
{
	struct srv_pending *p = srv_pending_new(NULL, NULL);
	struct model_cluster limits = {.pending_limit = 1, .machine_limit = 1, .waiting_keys = 1};
	const char *why = NULL;

	cr_assert(srv_pending_machine_allowed(p, &limits, &why));
	cr_assert(srv_pending_key_allowed(p, &limits, "u", &why));
	srv_pending_begin(p);
	cr_assert_not(srv_pending_machine_allowed(p, &limits, &why));
	srv_pending_end(p);
	cr_assert_eq(srv_pending_count(p), 0);
	srv_pending_free(p);
}
