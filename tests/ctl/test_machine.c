/* SPDX-License-Identifier: MIT */
#include "config.h"

#include <criterion/criterion.h>
#include <stdio.h>
#include <string.h>

#include "ctl/keys.h"
#include "ctl/world.h"
#include "tec/base/clock.h"
#include "tec/base/json.h"
#include "tec/model/machine.h"

/* ---- decide: every view there is */

static bool gone(enum kbs_far far)
{
	return far == KBS_FAR_ABSENT || far == KBS_FAR_NONE;
}

static void check(const struct ctl_machine_view *v, enum ctl_machine_do d)
{
	bool holds = v->id_ok && v->is_holder, alive = v->found && !v->deleting;

	switch (d) {
	case CTL_MACHINE_CREATE_SECRET:
		cr_assert(alive && holds && v->has_finalizer && v->luks == CTL_LUKS_ABSENT &&
			  !v->must_read && !v->key_made && v->confirmed);
		break;
	case CTL_MACHINE_RESTORE_SECRET:
		cr_assert(alive && holds && v->has_finalizer && v->luks == CTL_LUKS_ABSENT &&
			  !v->must_read && v->key_made && v->can_restore);
		break;
	case CTL_MACHINE_NOTE_KEY:
		cr_assert(alive && holds && v->luks == CTL_LUKS_OK && !v->key_made);
		break;
	case CTL_MACHINE_BIND:
		cr_assert(alive && holds && v->has_finalizer && v->must_bind);
		break;
	case CTL_MACHINE_DECLARE:
		cr_assert(alive && holds && v->has_finalizer && v->key_made && v->key_matches &&
			  (v->luks == CTL_LUKS_OK || v->luks == CTL_LUKS_DELETING));
		break;
	case CTL_MACHINE_DROP_FINALIZER:
		cr_assert(v->found && v->deleting && v->has_finalizer && v->revoked &&
			  v->confirmed && gone(v->far_ids) && (!holds || gone(v->far_key)));
		break;
	case CTL_MACHINE_REVOKE:
		cr_assert(v->found && v->deleting && v->has_finalizer);
		break;
	case CTL_MACHINE_EXPIRE:
		cr_assert(alive && v->overdue && !v->bound && v->confirmed);
		break;
	case CTL_MACHINE_ADD_FINALIZER:
	case CTL_MACHINE_ADOPT:
	case CTL_MACHINE_READ_SECRET:
		cr_assert(alive && holds);
		break;
	case CTL_MACHINE_CONFIRM:
	case CTL_MACHINE_APPLY_STATUS:
		cr_assert(v->found);
		break;
	case CTL_MACHINE_NOTHING:
		break;
	case CTL_MACHINE_N_DO:
		cr_assert(false);
	}
}

/* What the act does to what is seen. Every write may make the status untrue. */
static void effect(struct ctl_machine_view *v, enum ctl_machine_do d, bool read_foreign)
{
	v->status_ok = d == CTL_MACHINE_APPLY_STATUS;
	switch (d) {
	case CTL_MACHINE_CONFIRM:
		v->confirmed = true;
		break;
	case CTL_MACHINE_ADD_FINALIZER:
		v->has_finalizer = v->confirmed = true;
		break;
	case CTL_MACHINE_ADOPT:
		v->adopt = false;
		break;
	case CTL_MACHINE_READ_SECRET:
		v->must_read = false;
		v->luks = read_foreign ? CTL_LUKS_FOREIGN : CTL_LUKS_OK;
		break;
	case CTL_MACHINE_CREATE_SECRET:
		v->luks = CTL_LUKS_OK;
		break;
	case CTL_MACHINE_RESTORE_SECRET:
		v->luks = CTL_LUKS_OK;
		v->key_matches = true;
		break;
	case CTL_MACHINE_NOTE_KEY:
		v->key_made = v->key_matches = true;
		v->must_bind = false;
		break;
	case CTL_MACHINE_BIND:
		v->must_bind = false;
		break;
	case CTL_MACHINE_DECLARE:
		v->declared = true;
		break;
	case CTL_MACHINE_REVOKE:
		v->revoked = true;
		v->declared = false;
		break;
	case CTL_MACHINE_DROP_FINALIZER:
		v->has_finalizer = false;
		v->found = false;
		break;
	case CTL_MACHINE_EXPIRE:
		v->deleting = v->found = v->has_finalizer;
		break;
	default:
		break;
	}
}

static unsigned settle(struct ctl_machine_view *v, bool read_foreign)
{
	unsigned births = 0;
	bool had_key = v->key_made;

	for (int i = 0; i < 14; i++) {
		enum ctl_machine_do d = ctl_machine_decide(v);

		check(v, d);
		if (d == CTL_MACHINE_NOTHING)
			return births;
		births += d == CTL_MACHINE_CREATE_SECRET;
		effect(v, d, read_foreign);
	}
	cr_assert(false, "does not settle; had_key %d", had_key);
	return births;
}

static struct ctl_machine_view view_of(uint32_t bits, int luks, int far_key, int far_ids)
{
	return (struct ctl_machine_view){
		.found = true,
		.deleting = bits & 1,
		.has_finalizer = bits >> 1 & 1,
		.id_ok = bits >> 2 & 1,
		.is_holder = bits >> 3 & 1,
		.confirmed = bits >> 4 & 1,
		.adopt = bits >> 5 & 1,
		.overdue = bits >> 6 & 1,
		.bound = bits >> 7 & 1,
		.must_read = bits >> 8 & 1,
		.key_made = bits >> 9 & 1,
		.key_matches = bits >> 10 & 1,
		.can_restore = bits >> 11 & 1,
		.declared = bits >> 12 & 1,
		.revoked = bits >> 13 & 1,
		.status_ok = bits >> 14 & 1,
		.must_bind = bits >> 15 & 1,
		.luks = (enum ctl_luks)luks,
		.far_key = (enum kbs_far)far_key,
		.far_ids = (enum kbs_far)far_ids,
	};
}

Test(ctl_machine_decide, every_view_settles_and_no_made_key_is_made_again)
{
	for (uint32_t bits = 0; bits < 1u << 16; bits++) {
		for (int luks = 0; luks < CTL_LUKS_N; luks++) {
			for (int far = 0; far < 25; far++) {
				struct ctl_machine_view v = view_of(bits, luks, far / 5, far % 5);
				bool had_key = v.key_made, had_secret = v.luks != CTL_LUKS_ABSENT;
				unsigned births = settle(&v, bits & 1u << 4);

				cr_assert(births <= 1);
				cr_assert(births == 0 || (!had_key && !had_secret));
			}
		}
	}
}

Test(ctl_machine_decide, no_deletion_leaves_a_key_or_waits_for_ever)
{
	for (uint32_t bits = 1; bits < 1u << 16; bits += 2) { /* deleting */
		for (int far = 0; far < 25; far++) {
			struct ctl_machine_view v = view_of(bits, CTL_LUKS_OK, far / 5, far % 5);
			bool held = v.has_finalizer, holds = v.id_ok && v.is_holder;
			bool clear = gone(v.far_ids) && (!holds || gone(v.far_key));

			settle(&v, false);
			cr_assert_eq(v.found && v.has_finalizer, held && !clear);
			v.far_key = v.far_ids = KBS_FAR_ABSENT;
			settle(&v, false);
			cr_assert(!v.has_finalizer);
		}
	}
}

Test(ctl_machine_decide, nothing_is_found_nothing_is_done)
{
	struct ctl_machine_view v = {.found = false, .overdue = true};

	cr_assert_eq(ctl_machine_decide(&v), CTL_MACHINE_NOTHING);
}

Test(ctl_machine_decide, the_first_difference_in_order_wins)
{
	struct ctl_machine_view fresh = {.found = true, .id_ok = true, .is_holder = true},
				v = fresh;

	cr_assert_eq(ctl_machine_decide(&v), CTL_MACHINE_ADD_FINALIZER);
	v.has_finalizer = true;
	cr_assert_eq(ctl_machine_decide(&v), CTL_MACHINE_CONFIRM);
	v.confirmed = true;
	cr_assert_eq(ctl_machine_decide(&v), CTL_MACHINE_CREATE_SECRET);
	v.must_read = true;
	cr_assert_eq(ctl_machine_decide(&v), CTL_MACHINE_READ_SECRET);
	v.must_read = false;
	v.luks = CTL_LUKS_OK;
	cr_assert_eq(ctl_machine_decide(&v), CTL_MACHINE_NOTE_KEY);
	v.key_made = v.key_matches = true;
	cr_assert_eq(ctl_machine_decide(&v), CTL_MACHINE_DECLARE);
	v.declared = v.must_bind = true;
	cr_assert_eq(ctl_machine_decide(&v), CTL_MACHINE_BIND);
	v.must_bind = false;
	cr_assert_eq(ctl_machine_decide(&v), CTL_MACHINE_APPLY_STATUS);
	v.status_ok = true;
	cr_assert_eq(ctl_machine_decide(&v), CTL_MACHINE_NOTHING);
	v.luks = CTL_LUKS_ABSENT;
	cr_assert_eq(ctl_machine_decide(&v), CTL_MACHINE_NOTHING); /* KeyLost */
	v.can_restore = true;
	cr_assert_eq(ctl_machine_decide(&v), CTL_MACHINE_RESTORE_SECRET);
	v.key_matches = false;
	v.declared = false;
	v.luks = CTL_LUKS_OK;
	cr_assert_eq(
		ctl_machine_decide(&v), CTL_MACHINE_NOTHING); /* another key: never handed out */
}

/* ---- on an API */

static struct world w;

static void up(void)
{
	world_start(&w);
}

static void down(void)
{
	world_stop(&w);
}

TestSuite(ctl_machine, .init = up, .fini = down);

#define SPEC                                                                                       \
	"{\"publicTrusteeAddr\":\"kbs-service\",\"publicAttestationKeyRegisterAddr\":\"reg:8001\"}"

static const char *owner_uid(const struct kobj_gvk *gvk, const char *name)
{
	struct json_object *a = json_get_arr(world_get(&w, gvk, name), "metadata/ownerReferences");

	return a ? json_get_str(json_object_array_get_idx(a, 0), "uid") : NULL;
}

Test(ctl_machine, makes_the_key_once_and_says_so)
{
	world_cluster(&w, "tec", SPEC);
	world_machine(&w, "a", ID_A, "listener");
	world_boot(&w, NULL);
	world_run(&w, 5000);
	cr_assert_str_eq(world_cond(&w, &kobj_machine, "a", "KeyReady"), "True");
	cr_assert_str_eq(
		world_reason(&w, &kobj_machine, "a", "AttestationKeyBound"), "NoApprovedKey");
	cr_assert_str_eq(world_cond(&w, &kobj_machine, "a", "Ready"), "False");
	cr_assert(world_get(&w, &kobj_secret, ID_A));
	cr_assert_str_eq(
		owner_uid(&kobj_secret, ID_A), world_str(&w, &kobj_machine, "a", "metadata/uid"));
	cr_assert(json_get_bool(world_get(&w, &kobj_secret, ID_A), "immutable", false));
	cr_assert(world_annotation(&w, &kobj_machine, "a", MODEL_KEY_SHA256_ANNOTATION));
	cr_assert(kobj_has_finalizer(world_get(&w, &kobj_machine, "a"), MODEL_MACHINE_FINALIZER));
	cr_assert(key_declared(&w, ID_A));
	cr_assert_eq(fake_transport_count(w.life->f, "create", "secrets"),
		3); /* and the cluster's two */
}

Test(ctl_machine, settled_makes_no_request)
{
	uint64_t rv;

	world_cluster(&w, "tec", SPEC);
	world_machine(&w, "a", ID_A, "listener");
	world_boot(&w, NULL);
	world_run(&w, 30000);
	rv = fake_api_rv(w.api);
	fake_transport_forget(w.life->f);
	world_run(&w, 3 * 3600 * 1000);
	cr_assert_eq(fake_transport_writes(w.life->f), 0);
	cr_assert_eq(fake_transport_count(w.life->f, "get", NULL), 0);
	cr_assert_eq(fake_api_rv(w.api), rv);
	/* and a new life finds nothing to do either */
	world_kill(&w);
	world_boot(&w, NULL);
	world_run(&w, 30000);
	cr_assert_eq(fake_transport_writes(w.life->f), 0);
	cr_assert_eq(fake_api_rv(w.api), rv);
	cr_assert(key_declared(&w, ID_A));
}

Test(ctl_machine, a_deleted_one_waits_until_trustee_confirms)
{
	world_cluster(&w, "tec", SPEC);
	world_machine(&w, "a", ID_A, NULL);
	world_boot(&w, NULL);
	world_run(&w, 5000);
	trustee_has_key(&w, ID_A, true);
	fake_api_delete(w.api, &kobj_machine, NS, "a");
	world_run(&w, 120000);
	cr_assert(world_get(&w, &kobj_machine, "a"));
	cr_assert_str_eq(world_reason(&w, &kobj_machine, "a", "Delivered"), "Revoking");
	cr_assert(!key_declared(&w, ID_A));
	/* a new life has to hear it again */
	world_kill(&w);
	world_boot(&w, NULL);
	world_run(&w, 120000);
	cr_assert(world_get(&w, &kobj_machine, "a"));
	trustee_has_key(&w, ID_A, false);
	world_run(&w, 1000);
	cr_assert_null(world_get(&w, &kobj_machine, "a"));
	fake_api_collect(w.api);
	world_run(&w, 1000);
	cr_assert_null(world_get(&w, &kobj_secret, ID_A));
}

Test(ctl_machine, without_any_trustee_a_deleted_one_goes)
{
	world_machine(&w, "a", ID_A, NULL);
	world_boot(&w, NULL);
	world_run(&w, 5000);
	cr_assert_str_eq(world_cond(&w, &kobj_machine, "a", "KeyReady"), "True");
	fake_api_delete(w.api, &kobj_machine, NS, "a");
	world_run(&w, 5000);
	cr_assert_null(world_get(&w, &kobj_machine, "a"));
}

Test(ctl_machine, a_trustee_deployment_that_is_left_is_a_trustee)
{
	world_cluster(&w, "tec", SPEC);
	world_machine(&w, "a", ID_A, NULL);
	world_boot(&w, NULL);
	world_run(&w, 5000);
	world_kill(&w);
	fake_api_delete(w.api, &kobj_cluster, NS, "tec");
	fake_api_delete(w.api, &kobj_machine, NS, "a");
	world_boot(&w, NULL);
	world_run(&w, 60000);
	cr_assert(world_get(&w, &kobj_machine, "a"));
	fake_api_collect(w.api); /* the Deployment goes with its owner */
	world_run(&w, 60000);
	cr_assert_null(world_get(&w, &kobj_machine, "a"));
}

Test(ctl_machine, a_deleted_secret_is_restored_from_memory)
{
	cleanup_free char *before = NULL;

	world_cluster(&w, "tec", SPEC);
	world_machine(&w, "a", ID_A, NULL);
	world_boot(&w, NULL);
	world_run(&w, 5000);
	before = xstrdup(world_str(&w, &kobj_secret, ID_A, "data/root"));
	fake_api_delete(w.api, &kobj_secret, NS, ID_A);
	world_run(&w, 5000);
	cr_assert_str_eq(world_str(&w, &kobj_secret, ID_A, "data/root"), before);
	cr_assert_str_eq(world_cond(&w, &kobj_machine, "a", "KeyReady"), "True");
}

Test(ctl_machine, a_lost_key_is_never_made_again)
{
	world_cluster(&w, "tec", SPEC);
	world_machine(&w, "a", ID_A, NULL);
	world_boot(&w, NULL);
	world_run(&w, 5000);
	world_kill(&w);
	fake_api_delete(w.api, &kobj_secret, NS, ID_A);
	world_boot(&w, NULL);
	world_run(&w, 3 * 3600 * 1000);
	cr_assert_null(world_get(&w, &kobj_secret, ID_A));
	cr_assert_str_eq(world_reason(&w, &kobj_machine, "a", "KeyReady"), "KeyLost");
	cr_assert_eq(fake_transport_count(w.life->f, "create", "secrets"), 0);
}

Test(ctl_machine, another_key_in_the_secret_is_not_handed_out)
{
	cleanup_free char *text = NULL;

	world_cluster(&w, "tec", SPEC);
	world_machine(&w, "a", ID_A, NULL);
	world_boot(&w, NULL);
	world_run(&w, 5000);
	world_kill(&w);
	fake_api_delete(w.api, &kobj_secret, NS, ID_A);
	/* the same shape and owner */
	text = xasprintf(
		"{\"metadata\":{\"name\":\"%s\",\"ownerReferences\":[{\"apiVersion\":\"x/v1\",\"kind\":\"Machine\","
		"\"name\":\"a\",\"uid\":\"%s\",\"controller\":true}]},\"type\":\"Opaque\",\"data\":{\"root\":"
		"\"eyJrZXlfdHlwZSI6Im9jdCIsImtleSI6IkFBQUFBQUFBQUFBQUFBQUFBQUFBQUFBQUFBQUFBQUFBIn0=\"}}",
		ID_A, world_str(&w, &kobj_machine, "a", "metadata/uid"));
	fake_api_put(w.api, &kobj_secret, NS, text);
	world_boot(&w, NULL);
	world_run(&w, 60000);
	cr_assert_str_eq(world_reason(&w, &kobj_machine, "a", "KeyReady"), "KeyMalformed");
	cr_assert(!key_declared(&w, ID_A));
}

Test(ctl_machine, a_foreign_secret_is_never_touched)
{
	fake_api_put(w.api, &kobj_secret, NS,
		"{\"metadata\":{\"name\":\"" ID_A
		"\"},\"type\":\"Opaque\",\"data\":{\"root\":\"AAAA\"}}");
	world_cluster(&w, "tec", SPEC);
	world_machine(&w, "a", ID_A, NULL);
	world_boot(&w, NULL);
	world_run(&w, 60000);
	cr_assert_str_eq(world_str(&w, &kobj_secret, ID_A, "data/root"), "AAAA");
	cr_assert_str_eq(world_reason(&w, &kobj_machine, "a", "KeyReady"), "KeyMalformed");
	cr_assert_null(world_annotation(&w, &kobj_machine, "a", MODEL_KEY_SHA256_ANNOTATION));
	/* once it is gone, the key is made */
	fake_api_delete(w.api, &kobj_secret, NS, ID_A);
	world_run(&w, 5000);
	cr_assert_str_eq(world_cond(&w, &kobj_machine, "a", "KeyReady"), "True");
}

Test(ctl_machine, the_second_with_an_id_has_no_effect_and_takes_over_later)
{
	cleanup_free char *first = NULL;

	world_cluster(&w, "tec", SPEC);
	world_boot(&w, NULL);
	world_machine(&w, "a", ID_A, NULL);
	world_run(&w, 5000);
	first = xstrdup(world_str(&w, &kobj_secret, ID_A, "data/root"));
	world_machine(&w, "b", ID_A, NULL);
	world_run(&w, 5000);
	cr_assert_str_eq(world_reason(&w, &kobj_machine, "b", "KeyReady"), "DuplicateID");
	cr_assert(!kobj_has_finalizer(world_get(&w, &kobj_machine, "b"), MODEL_MACHINE_FINALIZER));
	cr_assert_str_eq(world_str(&w, &kobj_secret, ID_A, "data/root"), first);
	fake_api_delete(w.api, &kobj_machine, NS, "a");
	world_run(&w, 30000);
	cr_assert_str_eq(
		world_reason(&w, &kobj_machine, "b", "KeyReady"), "DuplicateID"); /* still held */
	trustee_has_key(&w, ID_A, false);
	world_run(&w, 30000);
	cr_assert_null(world_get(&w, &kobj_machine, "a"));
	cr_assert(!key_declared(&w, ID_A));
	fake_api_collect(w.api);
	world_run(&w, 30000);
	cr_assert_str_eq(world_cond(&w, &kobj_machine, "b", "KeyReady"), "True");
	cr_assert_str_neq(world_str(&w, &kobj_secret, ID_A, "data/root"), first);
}

Test(ctl_machine, an_older_one_that_shows_up_late_does_not_take_the_key)
{
	cleanup_free char *first = NULL;

	world_cluster(&w, "tec", SPEC);
	world_boot(&w, NULL);
	world_machine(&w, "z", ID_A, NULL);
	world_run(&w, 500);
	first = xstrdup(world_str(&w, &kobj_secret, ID_A, "data/root"));
	fake_api_put(w.api, &kobj_machine, NS,
		"{\"metadata\":{\"name\":\"a\",\"creationTimestamp\":\"2020-01-01T00:00:00Z\"},\"spec\":{\"id\":\"" ID_A
		"\"}}");
	world_run(&w, 30000);
	cr_assert_str_eq(world_reason(&w, &kobj_machine, "a", "KeyReady"), "DuplicateID");
	cr_assert_str_eq(world_cond(&w, &kobj_machine, "z", "KeyReady"), "True");
	cr_assert(key_declared(&w, ID_A));
	cr_assert_str_eq(world_str(&w, &kobj_secret, ID_A, "data/root"), first);
}

Test(ctl_machine, a_deleted_duplicate_leaves_the_holders_things)
{
	world_cluster(&w, "tec", SPEC);
	world_boot(&w, NULL);
	world_machine(&w, "a", ID_A, NULL);
	world_run(&w, 5000);
	trustee_has_key(&w, ID_A, true);
	fake_api_put(w.api, &kobj_machine, NS,
		"{\"metadata\":{\"name\":\"b\",\"finalizers\":[\"" MODEL_MACHINE_FINALIZER
		"\",\"other/x\"]},\"spec\":{\"id\":\"" ID_A "\"}}");
	world_run(&w, 5000);
	fake_api_delete(w.api, &kobj_machine, NS, "b");
	world_run(&w, 5000);
	cr_assert(key_declared(&w, ID_A));
	cr_assert_eq(far_key(&w, ID_A), KBS_FAR_PRESENT);
	/* ours is off, the other's is not ours to take */
	cr_assert(!kobj_has_finalizer(world_get(&w, &kobj_machine, "b"), MODEL_MACHINE_FINALIZER));
	cr_assert(kobj_has_finalizer(world_get(&w, &kobj_machine, "b"), "other/x"));
}

Test(ctl_machine, an_invalid_id_is_told_and_has_no_effect)
{
	world_cluster(&w, "tec", SPEC);
	world_machine(&w, "a", "NOT-A-UUID", NULL);
	world_boot(&w, NULL);
	world_run(&w, 5000);
	cr_assert_str_eq(world_reason(&w, &kobj_machine, "a", "KeyReady"), "InvalidID");
	cr_assert_str_eq(world_reason(&w, &kobj_machine, "a", "Ready"), "InvalidID");
	cr_assert_eq(fake_transport_count(w.life->f, "create", "secrets"), 2);
	fake_api_delete(w.api, &kobj_machine, NS, "a");
	world_run(&w, 100);
	cr_assert_null(world_get(&w, &kobj_machine, "a"));
}

Test(ctl_machine, what_nobody_claimed_expires_and_an_admins_never)
{
	world_cluster(&w, "tec", SPEC);
	world_machine(&w, "a", ID_A, "listener");
	world_machine(&w, "b", ID_B, NULL);
	world_boot(&w, NULL);
	world_run(&w, 23 * 3600 * 1000);
	cr_assert(world_get(&w, &kobj_machine, "a"));
	world_run(&w, 2 * 3600 * 1000);
	cr_assert(json_get(world_get(&w, &kobj_machine, "a"), "metadata/deletionTimestamp"));
	cr_assert(!json_get(world_get(&w, &kobj_machine, "b"), "metadata/deletionTimestamp"));
	trustee_has_key(&w, ID_A, false);
	world_run(&w, 1000);
	cr_assert_null(world_get(&w, &kobj_machine, "a"));
}

Test(ctl_machine, without_a_key_listener_nothing_expires)
{
	world_cluster(&w, "tec", "{\"publicTrusteeAddr\":\"kbs-service\"}");
	world_machine(&w, "a", ID_A, "listener");
	world_boot(&w, NULL);
	world_run(&w, 50 * 3600 * 1000);
	cr_assert(!json_get(world_get(&w, &kobj_machine, "a"), "metadata/deletionTimestamp"));
}

Test(ctl_machine, a_listeners_without_owner_is_adopted_an_admins_is_not)
{
	world_machine(&w, "a", ID_A, "listener");
	world_machine(&w, "b", ID_B, NULL);
	world_cluster(&w, "tec", SPEC);
	world_boot(&w, NULL);
	world_run(&w, 5000);
	cr_assert_str_eq(
		owner_uid(&kobj_machine, "a"), world_str(&w, &kobj_cluster, "tec", "metadata/uid"));
	cr_assert_null(owner_uid(&kobj_machine, "b"));
}

Test(ctl_machine, one_forced_away_leaves_a_revocation)
{
	world_cluster(&w, "tec", SPEC);
	world_machine(&w, "a", ID_A, NULL);
	world_boot(&w, NULL);
	world_run(&w, 5000);
	fake_api_merge(w.api, &kobj_machine, NS, "a", "{\"metadata\":{\"finalizers\":null}}");
	fake_api_delete(w.api, &kobj_machine, NS, "a");
	world_run(&w, 5000);
	cr_assert_null(world_get(&w, &kobj_machine, "a"));
	cr_assert(!key_declared(&w, ID_A));
	cr_assert(kbs_sync_is_revoked(w.life->sync, KBS_RESOURCE, "default/" ID_A "/root"));
	trustee_has_key(&w, ID_A, false);
	cr_assert(!kbs_sync_is_revoked(
		w.life->sync, KBS_RESOURCE, "default/" ID_A "/root")); /* forgotten */
}

/* A new leader whose watch is behind: the Machine had a key, and its Secret is gone. */
Test(ctl_machine, a_stale_cache_never_leads_to_a_second_key)
{
	world_cluster(&w, "tec", SPEC);
	world_machine(&w, "a", ID_A, NULL);
	world_boot(&w, "c");
	k8s_watch_stop(w.life->watch[W_MACHINES]);
	fake_api_merge(w.api, &kobj_machine, NS, "a",
		"{\"metadata\":{\"finalizers\":[\"" MODEL_MACHINE_FINALIZER
		"\"],\"annotations\":{\"" MODEL_KEY_SHA256_ANNOTATION
		"\":\"0000000000000000000000000000000000000000000000000000000000000000\"}}}");
	ctl_machine_on(w.life->machine);
	world_run(&w, 60000);
	cr_assert_null(world_get(&w, &kobj_secret, ID_A));
	cr_assert_str_eq(world_reason(&w, &kobj_machine, "a", "KeyReady"), "KeyLost");
}

/* The other way round: the Secret is there, the cache does not show it. */
Test(ctl_machine, a_secret_the_cache_does_not_show_is_read_and_kept)
{
	cleanup_free char *before = NULL;
	struct json_object *secret;

	world_cluster(&w, "tec", SPEC);
	world_machine(&w, "a", ID_A, NULL);
	world_boot(&w, NULL);
	before = xstrdup(world_str(&w, &kobj_secret, ID_A, "data/root"));
	secret = json_copy(world_get(&w, &kobj_secret, ID_A));
	json_object_object_del(json_get_obj(secret, "metadata"), "uid");
	json_object_object_del(json_get_obj(secret, "metadata"), "resourceVersion");
	world_kill(&w);
	fake_api_delete(w.api, &kobj_secret, NS, ID_A);
	fake_api_merge(w.api, &kobj_machine, NS, "a",
		"{\"metadata\":{\"annotations\":{\"" MODEL_KEY_SHA256_ANNOTATION "\":null}}}");
	world_boot(&w, "c");
	k8s_watch_stop(w.life->watch[W_SECRETS]);
	fake_api_put_json(w.api, &kobj_secret, NS, secret);
	ctl_machine_on(w.life->machine);
	world_run(&w, 60000);
	cr_assert_str_eq(world_str(&w, &kobj_secret, ID_A, "data/root"), before);
	cr_assert_eq(fake_transport_count(w.life->f, "create", "secrets"), 1);
	cr_assert(world_annotation(&w, &kobj_machine, "a", MODEL_KEY_SHA256_ANNOTATION));
}

/* A cache that never shows what the API has is no reason for a busy loop. */
Test(ctl_machine, acts_without_effect_are_slowed_down)
{
	world_cluster(&w, "tec", SPEC);
	world_machine(&w, "a", ID_A, NULL);
	world_boot(&w, NULL);
	ctl_machine_off(w.life->machine);
	fake_api_merge(w.api, &kobj_machine, NS, "a",
		"{\"metadata\":{\"annotations\":{\"" MODEL_KEY_SHA256_ANNOTATION "\":null}}}");
	world_run(&w, 1000);
	k8s_watch_stop(w.life->watch[W_SECRETS]);
	k8s_cache_remove(w.life->cache[W_SECRETS], ID_A,
		NULL); /* remembered as gone: no answer brings it back */
	fake_transport_forget(w.life->f);
	ctl_machine_on(w.life->machine);
	world_run(&w, 600000);
	cr_assert_gt(fake_transport_requests(w.life->f), 10);
	cr_assert_lt(fake_transport_requests(w.life->f), 1500);
}

/* Controllers that start in another order must not think that no Trustee is there. */
Test(ctl_machine, an_administered_trustee_counts_before_anybody_named_it)
{
	world_cluster(&w, "tec", SPEC);
	world_machine(&w, "a", ID_A, NULL);
	world_boot(&w, NULL);
	world_kill(&w);
	fake_api_delete(w.api, &kobj_machine, NS, "a");
	world_boot(&w, "m");
	world_run(&w, 60000);
	cr_assert_eq(kbs_sync_targets(w.life->sync), 0);
	cr_assert(kobj_has_finalizer(world_get(&w, &kobj_machine, "a"), MODEL_MACHINE_FINALIZER));
}

static void late_older_one(void)
{
	fake_api_put(w.api, &kobj_machine, NS,
		"{\"metadata\":{\"name\":\"older\",\"creationTimestamp\":\"2020-01-01T00:00:00Z\"},\"spec\":{\"id\":\"" ID_A
		"\"}}");
}

Test(ctl_machine, a_noted_key_holds_the_id_even_when_its_secret_is_lost)
{
	world_cluster(&w, "tec", SPEC);
	world_machine(&w, "z", ID_A, NULL);
	world_boot(&w, NULL);
	world_kill(&w);
	fake_api_delete(w.api, &kobj_secret, NS, ID_A);
	late_older_one();
	world_boot(&w, NULL);
	world_run(&w, 30000);
	cr_assert_str_eq(world_reason(&w, &kobj_machine, "older", "KeyReady"), "DuplicateID");
	cr_assert_str_eq(world_reason(&w, &kobj_machine, "z", "KeyReady"), "KeyLost");
	cr_assert_null(world_get(&w, &kobj_secret, ID_A));
}

static void die_after_the_key(void)
{
	fake_transport_die_after(w.life->f, 2); /* finalizer, Secret */
}

Test(ctl_machine, a_key_that_is_not_noted_yet_holds_the_id)
{
	cleanup_free char *before = NULL;

	world_machine(&w, "z", ID_A, NULL);
	w.arm = die_after_the_key;
	world_boot(&w, "m");
	before = xstrdup(world_str(&w, &kobj_secret, ID_A, "data/root"));
	cr_assert(before && !world_annotation(&w, &kobj_machine, "z", MODEL_KEY_SHA256_ANNOTATION));
	world_kill(&w);
	late_older_one();
	w.arm = NULL;
	world_boot(&w, NULL);
	world_run(&w, 30000);
	cr_assert_str_eq(world_cond(&w, &kobj_machine, "z", "KeyReady"), "True");
	cr_assert_str_eq(world_str(&w, &kobj_secret, ID_A, "data/root"), before);
}

Test(ctl_machine, one_forced_away_whose_key_was_lost_leaves_a_revocation_too)
{
	world_cluster(&w, "tec", SPEC);
	world_machine(&w, "a", ID_A, NULL);
	world_boot(&w, NULL);
	world_kill(&w);
	fake_api_delete(w.api, &kobj_secret, NS, ID_A);
	world_boot(&w, NULL);
	world_run(&w, 5000);
	cr_assert(!key_declared(&w, ID_A));
	fake_api_merge(
		w.api, &kobj_machine, NS, "a", "{\"metadata\":{\"deletionTimestamp\":null}}");
	k8s_cache_remove(
		w.life->cache[W_MACHINES], "a", NULL); /* gone in one event, finalizer and all */
	cr_assert(kbs_sync_is_revoked(w.life->sync, KBS_RESOURCE, "default/" ID_A "/root"));
}

Test(ctl_machine, a_secret_of_another_kind_is_foreign_even_with_our_owner)
{
	cleanup_free char *text = NULL;

	world_cluster(&w, "tec", SPEC);
	world_machine(&w, "a", ID_A, NULL);
	text = xasprintf(
		"{\"metadata\":{\"name\":\"%s\",\"ownerReferences\":[{\"apiVersion\":\"x/v1\",\"kind\":\"Machine\","
		"\"name\":\"a\",\"uid\":\"%s\",\"controller\":true}]},\"type\":\"kubernetes.io/tls\"}",
		ID_A, world_str(&w, &kobj_machine, "a", "metadata/uid"));
	fake_api_put(w.api, &kobj_secret, NS, text);
	world_boot(&w, NULL);
	world_run(&w, 5000);
	cr_assert_str_eq(world_reason(&w, &kobj_machine, "a", "KeyReady"), "KeyMalformed");
	cr_assert_null(world_annotation(&w, &kobj_machine, "a", MODEL_KEY_SHA256_ANNOTATION));
}

Test(ctl_machine, only_the_key_that_was_noted_is_restored)
{
	world_cluster(&w, "tec", SPEC);
	world_machine(&w, "a", ID_A, NULL);
	world_boot(&w, NULL);
	fake_api_merge(w.api, &kobj_machine, NS, "a",
		"{\"metadata\":{\"annotations\":{\"" MODEL_KEY_SHA256_ANNOTATION
		"\":\"0000000000000000000000000000000000000000000000000000000000000000\"}}}");
	fake_api_delete(w.api, &kobj_secret, NS, ID_A);
	world_run(&w, 60000);
	cr_assert_null(world_get(&w, &kobj_secret, ID_A));
	cr_assert_str_eq(world_reason(&w, &kobj_machine, "a", "KeyReady"), "KeyLost");
}
