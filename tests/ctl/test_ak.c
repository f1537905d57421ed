/* SPDX-License-Identifier: MIT */
#include "config.h"

#include <criterion/criterion.h>
#include <stdio.h>
#include <string.h>

#include "ctl/keys.h"
#include "ctl/world.h"
#include "tec/base/clock.h"
#include "tec/base/json.h"
#include "tec/base/mem.h"
#include "tec/model/ak.h"
#include "tec/model/machine.h"

/* ---- decide: every view there is */

static bool gone(enum kbs_observed far)
{
	return far == KBS_OBSERVED_ABSENT || far == KBS_OBSERVED_NONE;
}

static void check(const struct ctl_ak_view *v, enum ctl_ak_do d)
{
	bool alive = v->found && !v->deleting;

	switch (d) {
	case CTL_AK_APPROVE:
		cr_assert(alive && (v->machine || v->approved) &&
			  (v->annotated || v->approved || v->allowed));
		/* What Trustee can verify is bound first. */
		cr_assert(!v->verifiable || v->approved);
		cr_assert(!v->invalid);
		break;
	case CTL_AK_UNAPPROVE:
		cr_assert(alive && !v->approved && v->left_over &&
			  !(v->machine && v->annotated && !v->invalid));
		break;
	case CTL_AK_IGNORE:
		cr_assert(alive && v->ignored);
		break;
	case CTL_AK_BIND:
		cr_assert(alive && v->machine && v->verifiable && v->bindable && !v->ignored);
		cr_assert(!v->invalid);
		cr_assert(v->annotated || (v->allowed && !v->approved));
		break;
	case CTL_AK_DECLARE:
		/* Behind a Secret that remembers it, of a live approved key, and only when the
		 * earlier key is gone. */
		cr_assert(alive && v->approved && v->stamped && v->usable && !v->duplicate);
		cr_assert(v->secret == CTL_AK_SECRET_OURS && v->secret_held && !v->secret_deleting);
		cr_assert(v->others_clear || v->declared);
		break;
	case CTL_AK_CREATE_SECRET:
		cr_assert(
			alive && v->approved && v->secret == CTL_AK_SECRET_ABSENT && !v->must_read);
		break;
	case CTL_AK_ADD_SECRET_FINALIZER:
		cr_assert(
			alive && v->approved && v->secret == CTL_AK_SECRET_OURS && v->secret_live);
		break;
	case CTL_AK_DROP_SECRET_FINALIZER:
		cr_assert(v->secret_live && v->recorded == CTL_RECORDED);
		/* fall through */
	case CTL_AK_RECORD:
		cr_assert(v->secret_held && v->secret_deleting && v->revoked && gone(v->observed));
		cr_assert(v->secret == CTL_AK_SECRET_OURS || v->secret == CTL_AK_SECRET_STALE);
		break;
	case CTL_AK_DELETE_SECRET:
		cr_assert(!v->secret_deleting && v->revoked && gone(v->observed));
		cr_assert(v->secret == CTL_AK_SECRET_STALE ||
			  (v->secret == CTL_AK_SECRET_OURS && (!alive || !v->approved)));
		break;
	case CTL_AK_EXPIRE:
		cr_assert(alive && v->overdue && !v->approved && !v->annotated && v->confirmed);
		break;
	case CTL_AK_REVOKE:
		cr_assert(v->secret == CTL_AK_SECRET_STALE || v->secret == CTL_AK_SECRET_OURS ||
			  v->declared);
		cr_assert(!alive || !v->approved || !v->usable || v->duplicate ||
			  v->secret == CTL_AK_SECRET_STALE || v->secret_deleting);
		break;
	default:
		break;
	}
	if (!alive)
		cr_assert(d != CTL_AK_APPLY_STATUS && d != CTL_AK_APPROVE && d != CTL_AK_DECLARE);
}

static void effect_on_secret(struct ctl_ak_view *v, enum ctl_ak_do d)
{
	switch (d) {
	case CTL_AK_READ_SECRET:
		if (v->secret == CTL_AK_SECRET_ABSENT)
			v->secret = CTL_AK_SECRET_FOREIGN;
		v->must_read = false;
		v->secret_live = true;
		break;
	case CTL_AK_CREATE_SECRET:
		v->secret = CTL_AK_SECRET_OURS;
		v->secret_held = true;
		v->secret_deleting = false;
		break;
	case CTL_AK_ADD_SECRET_FINALIZER:
		v->secret_held = true;
		break;
	case CTL_AK_DELETE_SECRET:
		v->secret_deleting = v->secret_held;
		if (!v->secret_held)
			v->secret = CTL_AK_SECRET_ABSENT;
		break;
	case CTL_AK_DROP_SECRET_FINALIZER:
		v->secret = CTL_AK_SECRET_ABSENT;
		v->secret_held = v->secret_deleting = v->secret_live = false;
		break;
	default:
		break;
	}
}

static void effect(struct ctl_ak_view *v, enum ctl_ak_do d)
{
	v->status_ok = d == CTL_AK_APPLY_STATUS;
	effect_on_secret(v, d);
	switch (d) {
	case CTL_AK_CONFIRM:
		v->confirmed = true;
		break;
	case CTL_AK_IGNORE:
		v->ignored = false;
		break;
	case CTL_AK_BIND:
		v->approved = v->usable = true;
		v->left_over = v->inherited = false;
		break;
	case CTL_AK_APPROVE:
		v->approved = v->stamped = v->machine = true;
		v->left_over = v->annotated = false;
		break;
	case CTL_AK_UNAPPROVE:
		v->stamped = v->left_over = v->allowed = false;
		break;
	case CTL_AK_DECLARE:
		v->declared = v->fresh = true;
		v->revoked = false;
		break;
	case CTL_AK_REVOKE:
		v->declared = v->fresh = false;
		v->revoked = true;
		break;
	case CTL_AK_RECORD:
		v->recorded = CTL_RECORD_WAITS;
		break;
	case CTL_AK_EXPIRE:
		v->found = false;
		v->declared = v->fresh = false; /* withdrawn when it is seen to go */
		if (v->secret == CTL_AK_SECRET_OURS)
			v->secret = v->secret_held ? CTL_AK_SECRET_STALE : CTL_AK_SECRET_FOREIGN;
		break;
	default:
		break;
	}
}

static void settle(struct ctl_ak_view *v)
{
	for (int i = 0; i < 20; i++) {
		enum ctl_ak_do d = ctl_ak_decide(v);

		check(v, d);
		if (d == CTL_AK_NOTHING)
			return;
		effect(v, d);
	}
	cr_assert(false, "does not settle");
}

#define BITS   16
#define GRANTS (5 * 3 * 4)

/* How far its approval came, what an administrator said, and what the key is worth. */
static bool grant_of(int grant, struct ctl_ak_view *v)
{
	int approval = grant % 5, said = grant / 5 % 3, worth = grant / 15;

	v->left_over = approval == 1;
	v->inherited = approval == 2;
	v->approved = approval >= 3;
	v->stamped = approval == 4;
	v->annotated = said == 1;
	v->ignored = said == 2;
	v->verifiable = worth == 1 || worth == 2;
	v->invalid = worth == 3;
	v->usable = worth == 2 || (worth == 1 && !v->approved);
	return !(worth == 1 && !v->approved) && !(v->inherited && !v->verifiable) &&
	       !(v->invalid && v->approved);
}

static bool view_of(
	uint32_t bits, int grant, int secret, enum kbs_observed far, struct ctl_ak_view *v)
{
	*v = (struct ctl_ak_view){
		.found = true,
		.deleting = bits & 1,
		.machine = bits >> 1 & 1,
		.allowed = bits >> 2 & 1,
		.bindable = bits >> 3 & 1,
		.secret_held = bits >> 4 & 1,
		.secret_deleting = bits >> 5 & 1,
		.secret_live = bits >> 6 & 1,
		.must_read = bits >> 7 & 1,
		.duplicate = bits >> 8 & 1,
		.others_clear = bits >> 9 & 1,
		.declared = bits >> 10 & 1,
		.fresh = bits >> 11 & 1,
		.revoked = bits >> 12 & 1,
		.confirmed = bits >> 13 & 1,
		.overdue = bits >> 14 & 1,
		.status_ok = bits >> 15 & 1,
		.secret = (enum ctl_ak_secret)secret,
		.observed = far,
	};
	if (!grant_of(grant, v))
		return false;
	/* What a look cannot find together. */
	return !(v->invalid && (v->allowed || v->declared)) &&
	       (v->machine || !(v->approved || v->allowed || v->left_over || v->inherited)) &&
	       (!v->fresh || v->declared) && !(v->declared && v->revoked) &&
	       !(v->declared && secret == CTL_AK_SECRET_STALE) && !(v->allowed && v->left_over) &&
	       (secret != CTL_AK_SECRET_ABSENT ||
		       (!v->secret_held && !v->secret_deleting && !v->secret_live)) &&
	       (secret != CTL_AK_SECRET_STALE || v->secret_held) &&
	       (secret != CTL_AK_SECRET_OURS || !v->secret_deleting || v->secret_held);
}

Test(ctl_ak_decide, every_view_settles)
{
	static const enum kbs_observed fars[] = {KBS_OBSERVED_UNKNOWN, KBS_OBSERVED_ABSENT};
	struct ctl_ak_view v;

	for (uint32_t bits = 0; bits < 1u << BITS; bits++) {
		for (int n = 0; n < CTL_AK_SECRET_N * GRANTS; n++) {
			for (size_t f = 0; f < ARRAY_LEN(fars); f++) {
				if (!view_of(bits, n % GRANTS, n / GRANTS, fars[f], &v))
					continue;
				v.recorded =
					(enum ctl_recorded)((bits + (unsigned)n) % CTL_RECORDED_N);
				settle(&v);
			}
		}
	}
}

/* Trustee keeps what another operator delivered until the key is bound here. */
Test(ctl_ak_decide, what_is_inherited_is_not_revoked)
{
	struct ctl_ak_view v;

	for (uint32_t bits = 0; bits < 1u << BITS; bits++) {
		if (view_of(bits, 2 + 2 * 15, CTL_AK_SECRET_OURS, KBS_OBSERVED_UNKNOWN, &v) &&
			!v.deleting && !v.secret_deleting)
			cr_assert_neq(ctl_ak_decide(&v), CTL_AK_REVOKE);
	}
}

Test(ctl_ak_decide, every_far_state_is_either_gone_or_not)
{
	struct ctl_ak_view v = {.secret = CTL_AK_SECRET_STALE,
		.secret_held = true,
		.secret_deleting = true,
		.secret_live = true,
		.revoked = true};

	for (int far = KBS_OBSERVED_NONE; far <= KBS_OBSERVED_ABSENT; far++) {
		v.observed = (enum kbs_observed)far;
		cr_assert_eq(ctl_ak_decide(&v) == CTL_AK_DROP_SECRET_FINALIZER, gone(v.observed));
	}
}

Test(ctl_ak_decide, a_secret_without_a_key_never_outlives_the_confirmation)
{
	for (uint32_t bits = 0; bits < 1u << BITS; bits++) {
		struct ctl_ak_view v,
			keyless = {.secret = CTL_AK_SECRET_STALE, .secret_held = true};

		if (!view_of(bits, 0, CTL_AK_SECRET_STALE, KBS_OBSERVED_UNKNOWN, &v) || (bits & 1))
			continue;
		keyless.secret_deleting = v.secret_deleting;
		keyless.secret_live = v.secret_live;
		keyless.revoked = v.revoked;
		keyless.observed = KBS_OBSERVED_UNKNOWN;
		settle(&keyless);
		cr_assert_eq(keyless.secret, CTL_AK_SECRET_STALE);
		cr_assert(keyless.secret_held && keyless.revoked);
		keyless.observed = KBS_OBSERVED_ABSENT;
		keyless.recorded = CTL_RECORD_MISSING;
		settle(&keyless);
		cr_assert(keyless.secret_held && keyless.recorded == CTL_RECORD_WAITS);
		keyless.recorded = CTL_RECORDED;
		settle(&keyless);
		cr_assert_eq(keyless.secret, CTL_AK_SECRET_ABSENT);
	}
}

/* ---- on an API */

#define SPEC                                                                                       \
	"{\"publicTrusteeAddr\":\"kbs-service\",\"publicAttestationKeyRegisterAddr\":\"reg:8001\"}"

static struct world w;
static unsigned nth_write;

static void up(void)
{
	world_start(&w);
	world_since(&w);
	world_cluster(&w, "tec", SPEC);
}

static void down(void)
{
	world_stop(&w);
}

TestSuite(ctl_ak, .init = up, .fini = down);

static const char *owner_of(const char *name)
{
	struct json_object *a =
		json_get_arr(world_get(&w, &kobj_ak, name), "metadata/ownerReferences");

	return a && json_object_array_length(a) == 1
		       ? json_get_str(json_object_array_get_idx(a, 0), "name")
		       : NULL;
}

static bool secret_held(const char *name)
{
	struct json_object *o = world_get(&w, &kobj_secret, name);

	return o && kobj_has_finalizer(o, MODEL_AK_SECRET_FINALIZER);
}

static const char *identity_name(const char *pem)
{
	static char name[300];

	identity_of(pem, name);
	return name;
}

static void ask_approval(const char *name)
{
	fake_api_merge(w.api, &kobj_ak, NS, name,
		"{\"metadata\":{\"annotations\":{\"" MODEL_APPROVED_ANNOTATION "\":\"true\"}}}");
	world_run(&w, 5000);
}

static void register_a(void)
{
	world_machine(&w, "a", ID_A, "listener");
	world_ak(&w, "k0", test_pem[0], ID_A, "listener");
	world_boot(&w, NULL);
	world_run(&w, 5000);
}

Test(ctl_ak, is_approved_owned_kept_in_a_secret_and_declared)
{
	register_a();
	cr_assert_str_eq(world_reason(&w, &kobj_ak, "k0", "Approved"), "MachineCreated");
	cr_assert_str_eq(owner_of("k0"), "a");
	cr_assert(world_marked(&w, &kobj_ak, "k0", MODEL_APPROVED_AT_ANNOTATION));
	cr_assert_str_eq(
		world_marked(&w, &kobj_ak, "k0", MODEL_APPROVED_BY_ANNOTATION), "operator");
	cr_assert(world_marked(&w, &kobj_machine, "a", MODEL_BOUND_AT_ANNOTATION));
	cr_assert(str_starts(world_marked(&w, &kobj_machine, "a", MODEL_BOUND_KEY_ANNOTATION),
		world_str(&w, &kobj_ak, "k0", "metadata/uid")));
	cr_assert(secret_held("k0"));
	cr_assert(identity_declared(&w, test_pem[0]));
	cr_assert_str_eq(world_reason(&w, &kobj_ak, "k0", "Delivered"), "NotAvailable");
	cr_assert_str_eq(world_cond(&w, &kobj_machine, "a", "AttestationKeyBound"), "True");
	cr_assert_str_eq(world_reason(&w, &kobj_machine, "a", "Ready"), "NotAvailable");
	trustee_has_identity(&w, test_pem[0], ID_A, true);
	trustee_has_key(&w, ID_A, true);
	world_run(&w, 5000);
	cr_assert_str_eq(world_cond(&w, &kobj_ak, "k0", "Delivered"), "True");
	cr_assert_str_eq(world_cond(&w, &kobj_machine, "a", "Ready"), "True");
}

static void trustee_is(enum kbs_target_state state)
{
	kbs_sync_set_status(w.life->caches.sync, "kbs-service", state, NULL, "told by the test.");
	world_run(&w, 5000);
}

Test(ctl_ak, while_trustee_is_filled_arrivals_are_told_at_the_end)
{
	register_a();
	trustee_is(KBS_TARGET_POPULATING);
	trustee_has_identity(&w, test_pem[0], ID_A, true);
	trustee_has_key(&w, ID_A, true);
	world_run(&w, 30000); /* the hourly walk may come to either after 56 s */
	cr_assert_str_eq(world_cond(&w, &kobj_ak, "k0", "Delivered"), "False");
	cr_assert_str_eq(world_cond(&w, &kobj_machine, "a", "Delivered"), "False");
	trustee_is(KBS_TARGET_IN_SYNC);
	cr_assert_str_eq(world_cond(&w, &kobj_ak, "k0", "Delivered"), "True");
	cr_assert_str_eq(world_cond(&w, &kobj_machine, "a", "Ready"), "True");
}

/* As after a start that finds a dirty sentinel. */
Test(ctl_ak, while_trustee_is_filled_again_what_was_delivered_stays_so)
{
	register_a();
	trustee_has_identity(&w, test_pem[0], ID_A, true);
	trustee_has_key(&w, ID_A, true);
	world_run(&w, 5000);
	world_kill(&w);
	world_boot(&w, NULL);
	world_run(&w, 100);
	trustee_is(KBS_TARGET_PROBING);
	trustee_is(KBS_TARGET_POPULATING);
	trustee_has_identity(&w, test_pem[0], ID_A, true);
	trustee_is(KBS_TARGET_POPULATING);
	trustee_has_key(&w, ID_A, true);
	trustee_is(KBS_TARGET_IN_SYNC);
	cr_assert_eq(fake_transport_count(w.life->f, "PATCH", "machines"), 0);
	cr_assert_eq(fake_transport_count(w.life->f, "PATCH", "attestationkeys"), 0);
	trustee_has_key(&w, ID_A, false);
	trustee_is(KBS_TARGET_UNREACHABLE);
	cr_assert_str_eq(world_cond(&w, &kobj_machine, "a", "Ready"), "False");
}

Test(ctl_ak, while_trustee_is_filled_what_goes_is_let_go)
{
	register_a();
	trustee_has_identity(&w, test_pem[0], ID_A, true);
	trustee_has_key(&w, ID_A, true);
	world_run(&w, 5000);
	trustee_is(KBS_TARGET_POPULATING);
	fake_api_delete(w.api, &kobj_machine, NS, "a");
	world_run(&w, 5000);
	cr_assert(world_get(&w, &kobj_machine, "a"));
	trustee_has_identity(&w, test_pem[0], ID_A, false);
	trustee_has_key(&w, ID_A, false);
	world_run(&w, 5000);
	cr_assert_null(world_get(&w, &kobj_machine, "a"));
}

Test(ctl_ak, settled_makes_no_request)
{
	uint64_t rv;

	register_a();
	world_ak(&w, "k1", test_pem[1], ID_A, NULL);
	world_ak(&w, "k2", "no key at all", ID_A, NULL);
	world_ak(&w, "k3", test_pem[2], NULL, NULL);
	world_run(&w, 30000);
	rv = fake_api_rv(w.api);
	fake_transport_forget(w.life->f);
	world_run(&w, 3 * 3600 * 1000);
	cr_assert_eq(fake_transport_writes(w.life->f), 0);
	cr_assert_eq(fake_transport_count(w.life->f, "get", NULL), 0);
	world_kill(&w);
	world_boot(&w, NULL);
	world_run(&w, 30000);
	cr_assert_eq(fake_transport_writes(w.life->f), 0);
	cr_assert_eq(fake_api_rv(w.api), rv);
	cr_assert(identity_declared(&w, test_pem[0]));
	cr_assert(!identity_declared(&w, test_pem[1]));
}

Test(ctl_ak, machine_first_or_key_first)
{
	world_boot(&w, NULL);
	world_ak(&w, "k0", test_pem[0], ID_A, NULL);
	world_run(&w, 5000);
	cr_assert_str_eq(world_reason(&w, &kobj_ak, "k0", "Approved"), "Registration");
	cr_assert_null(world_get(&w, &kobj_secret, "k0"));
	world_machine(&w, "a", ID_A, NULL);
	world_run(&w, 5000);
	cr_assert_str_eq(world_cond(&w, &kobj_ak, "k0", "Approved"), "True");
}

Test(ctl_ak, a_listeners_key_that_was_there_before_its_machine_waits_for_a_person)
{
	world_boot(&w, NULL);
	world_ak(&w, "k0", test_pem[0], ID_A, "listener");
	world_run(&w, 5000);
	world_machine(&w, "a", ID_A, "listener");
	world_run(&w, 5000);
	cr_assert_str_eq(world_reason(&w, &kobj_ak, "k0", "Approved"), "ManualApproval");
	ask_approval("k0");
	cr_assert_str_eq(world_reason(&w, &kobj_ak, "k0", "Approved"), "ApprovedManually");
	cr_assert_null(
		world_annotation(&w, &kobj_ak, "k0", MODEL_APPROVED_ANNOTATION)); /* consumed */
	cr_assert_str_eq(owner_of("k0"), "a");
}

/* Timestamps have a resolution of a second: what the listener saw decides. */
Test(ctl_ak, a_key_of_the_same_second_counts_only_when_the_listener_saw_its_machine)
{
	struct json_object *old = model_ak_new_json("k0", test_pem[0], ID_A);

	world_boot(&w, NULL);
	fake_api_put_json(w.api, &kobj_ak, NS, old); /* of a listener that notes nothing */
	world_machine(&w, "a", ID_A, "listener");
	world_run(&w, 5000);
	cr_assert_str_eq(world_reason(&w, &kobj_ak, "k0", "Approved"), "ManualApproval");
	world_ak(&w, "k1", test_pem[1], ID_A, "listener");
	world_run(&w, 5000);
	cr_assert_str_eq(world_cond(&w, &kobj_ak, "k1", "Approved"), "True");
}

Test(ctl_ak, a_key_for_a_machine_that_was_made_anew_waits_for_a_person)
{
	struct json_object *k = model_ak_new_json("k0", test_pem[0], ID_A);

	world_machine(&w, "a", ID_A, "listener");
	model_ak_note_seen(k, "00000000-0000-4000-8000-0000000000ff");
	fake_api_put_json(w.api, &kobj_ak, NS, k);
	world_boot(&w, NULL);
	world_run(&w, 5000);
	cr_assert_str_eq(world_reason(&w, &kobj_ak, "k0", "Approved"), "ManualApproval");
}

Test(ctl_ak, manual_approval_waits)
{
	fake_api_merge(w.api, &kobj_cluster, NS, "tec",
		"{\"spec\":{\"registration\":{\"approval\":\"Manual\"}}}");
	register_a();
	cr_assert_str_eq(world_reason(&w, &kobj_ak, "k0", "Approved"), "ManualApproval");
	cr_assert_null(owner_of("k0"));
}

Test(ctl_ak, a_spec_that_lost_manual_approval_approves_nothing)
{
	fake_api_merge(w.api, &kobj_cluster, NS, "tec",
		"{\"spec\":{\"registration\":{\"approval\":\"Manual\"}}}");
	world_boot(&w, NULL);
	world_run(&w, 5000);
	world_kill(&w);
	fake_api_merge(w.api, &kobj_cluster, NS, "tec", "{\"spec\":{\"registration\":null}}");
	register_a();
	cr_assert_str_eq(world_reason(&w, &kobj_cluster, "tec", "Installed"), "Conflict");
	cr_assert_null(owner_of("k0"));
	cr_assert_str_eq(world_cond(&w, &kobj_ak, "k0", "Approved"), "False");
}

/* The body of the last Event with this reason about this object; "": none. */
static const char *event_of(const char *name, const char *reason)
{
	cleanup_free char *object = xasprintf("\"name\":\"%s\"", name);
	const char *found = "";

	for (size_t i = 0; i < fake_transport_requests(w.life->f); i++) {
		const struct fake_request *r = fake_transport_request(w.life->f, i);

		if (str_eq(r->resource, "events") && r->body && strstr(r->body, reason) &&
			strstr(r->body, object))
			found = r->body;
	}
	return found;
}

Test(ctl_ak, a_second_key_is_held_also_when_the_first_is_gone)
{
	register_a();
	world_ak(&w, "k1", test_pem[1], ID_A, "listener");
	world_run(&w, 5000);
	cr_assert_str_eq(world_reason(&w, &kobj_ak, "k1", "Approved"), "MachineHasKey");
	cr_assert_null(owner_of("k1"));
	cr_assert_null(world_get(&w, &kobj_secret, "k1"));
	cr_assert(!identity_declared(&w, test_pem[1]));
	fake_api_delete(w.api, &kobj_ak, NS, "k0");
	world_run(&w, 60000);
	cr_assert_str_eq(world_reason(&w, &kobj_ak, "k1", "Approved"), "MachineHasKey");
	cr_assert(strstr(fake_api_condition(w.api, &kobj_ak, NS, "k1", "Approved", "message"),
		"that is gone"));
	cr_assert(strstr(event_of("k1", "MachineHasKey"), "k1"));
	cr_assert(!identity_declared(&w, test_pem[0]) && !identity_declared(&w, test_pem[1]));
	trustee_has_identity(&w, test_pem[0], ID_A, false);
	ask_approval("k1");
	cr_assert_str_eq(world_reason(&w, &kobj_ak, "k1", "Approved"), "ApprovedManually");
	cr_assert(identity_declared(&w, test_pem[1]));
}

Test(ctl_ak, two_that_register_at_once_one_wins)
{
	world_machine(&w, "a", ID_A, "listener");
	world_boot(&w, NULL);
	world_run(&w, 5000);
	for (int i = 0; i < 2; i++) {
		struct json_object *k = model_ak_new_json(i ? "k1" : "k0", test_pem[i], ID_A);

		model_ak_note_seen(k, world_seen(&w, ID_A));
		fake_api_put_json(w.api, &kobj_ak, NS, k);
	}
	world_run(&w, 60000);
	cr_assert_neq(owner_of("k0") != NULL, owner_of("k1") != NULL);
	cr_assert_neq(identity_declared(&w, test_pem[0]), identity_declared(&w, test_pem[1]));
}

Test(ctl_ak, an_admin_replaces_a_key_old_identity_first)
{
	register_a();
	trustee_has_identity(&w, test_pem[0], ID_A, true);
	world_ak(&w, "k1", test_pem[1], ID_A, NULL);
	world_run(&w, 5000);
	ask_approval("k1");
	world_run(&w, 60000);
	cr_assert_str_eq(world_reason(&w, &kobj_ak, "k1", "Approved"), "ApprovedManually");
	cr_assert_str_eq(world_reason(&w, &kobj_ak, "k0", "Approved"), "MachineHasKey");
	cr_assert_null(owner_of("k0"));
	cr_assert(!identity_declared(&w, test_pem[0]));
	cr_assert(!identity_declared(&w, test_pem[1])); /* the old one is not confirmed gone */
	cr_assert(secret_held("k0"));
	trustee_has_identity(&w, test_pem[0], ID_A, false);
	world_run(&w, 5000);
	cr_assert(identity_declared(&w, test_pem[1]));
	cr_assert_null(world_get(&w, &kobj_secret, "k0"));
	cr_assert(world_get(&w, &kobj_ak, "k0")); /* held, not deleted */
}

Test(ctl_ak, a_restart_in_the_middle_of_a_replacement_still_waits)
{
	register_a();
	world_ak(&w, "k1", test_pem[1], ID_A, NULL);
	world_run(&w, 5000);
	ask_approval("k1");
	world_kill(&w);
	world_boot(&w, NULL);
	world_run(&w, 60000);
	cr_assert(!identity_declared(&w, test_pem[1]));
	trustee_has_identity(&w, test_pem[0], ID_A, false);
	world_run(&w, 5000);
	cr_assert(identity_declared(&w, test_pem[1]));
}

Test(ctl_ak, a_deleted_keys_secret_stays_until_trustee_confirms)
{
	char name[300];

	register_a();
	fake_api_delete(w.api, &kobj_ak, NS, "k0");
	world_run(&w, 60000);
	fake_api_collect(w.api);
	cr_assert(secret_held("k0"));
	cr_assert(!identity_declared(&w, test_pem[0]));
	world_kill(&w);
	world_boot(&w, NULL);
	world_run(&w, 60000);
	cr_assert(secret_held("k0"));
	trustee_has_identity(&w, test_pem[0], ID_A, false);
	world_run(&w, 5000);
	cr_assert_null(world_get(&w, &kobj_secret, "k0"));
	identity_of(test_pem[0], name);
	cr_assert(
		!kbs_sync_is_revoked(w.life->caches.sync, KBS_REFVALUE, name)); /* and forgotten */
}

Test(ctl_ak, an_orphaned_secret_is_revoked_and_deleted)
{
	register_a();
	/* kubectl delete --cascade=orphan */
	fake_api_merge(w.api, &kobj_secret, NS, "k0", "{\"metadata\":{\"ownerReferences\":null}}");
	fake_api_delete(w.api, &kobj_ak, NS, "k0");
	world_run(&w, 5000);
	trustee_has_identity(&w, test_pem[0], ID_A, false);
	world_run(&w, 5000);
	cr_assert_null(world_get(&w, &kobj_secret, "k0"));
}

Test(ctl_ak, the_same_key_registered_again_waits_for_the_first_to_be_revoked)
{
	register_a();
	fake_api_delete(w.api, &kobj_ak, NS, "k0");
	world_ak(&w, "k0", test_pem[0], ID_A, NULL);
	world_run(&w, 60000);
	cr_assert_str_eq(world_reason(&w, &kobj_ak, "k0", "Approved"), "MachineHasKey");
	ask_approval("k0");
	cr_assert_str_eq(world_cond(&w, &kobj_ak, "k0", "Approved"), "True");
	cr_assert(!identity_declared(&w, test_pem[0]));
	trustee_has_identity(&w, test_pem[0], ID_A, false);
	world_run(&w, 5000);
	cr_assert(identity_declared(&w, test_pem[0]));
	cr_assert(secret_held("k0"));
}

Test(ctl_ak, a_deleted_machine_takes_its_identity_along)
{
	register_a();
	fake_api_delete(w.api, &kobj_machine, NS, "a");
	world_run(&w, 60000);
	cr_assert(world_get(&w, &kobj_machine, "a"));
	cr_assert(!identity_declared(&w, test_pem[0]));
	trustee_has_key(&w, ID_A, false);
	world_run(&w, 5000);
	cr_assert(world_get(&w, &kobj_machine, "a")); /* the identity is still there */
	trustee_has_identity(&w, test_pem[0], ID_A, false);
	world_run(&w, 5000);
	cr_assert_null(world_get(&w, &kobj_machine, "a"));
	fake_api_collect(w.api);
	world_run(&w, 60000);
	cr_assert_null(world_get(&w, &kobj_ak, "k0"));
	/* the one that looks last may have to hear it once more */
	trustee_has_identity(&w, test_pem[0], ID_A, false);
	world_run(&w, 5000);
	fake_api_collect(w.api);
	cr_assert_null(world_get(&w, &kobj_secret, "k0"));
}

Test(ctl_ak, a_secret_of_another_is_never_touched)
{
	world_machine(&w, "a", ID_A, NULL);
	world_machine(&w, "b", ID_B, NULL);
	world_boot(&w, NULL);
	world_run(&w, 5000);
	/* a key named like another Machine's disk key */
	world_ak(&w, ID_B, test_pem[0], ID_A, NULL);
	world_run(&w, 60000);
	cr_assert_str_eq(world_reason(&w, &kobj_ak, ID_B, "Delivered"), "Conflict");
	cr_assert(world_str(&w, &kobj_secret, ID_B, "data/root"));
	cr_assert(!secret_held(ID_B));
	cr_assert(!identity_declared(&w, test_pem[0]));
	fake_api_delete(w.api, &kobj_ak, NS, ID_B);
	world_run(&w, 60000);
	cr_assert(world_str(&w, &kobj_secret, ID_B, "data/root"));
	cr_assert_str_eq(world_cond(&w, &kobj_machine, "b", "KeyReady"), "True");
}

/* As the Rust operator's tests have them. */
Test(ctl_ak, an_older_text_that_is_not_a_key_is_approved_and_never_sent)
{
	world_machine(&w, "a", ID_A, NULL);
	world_ak(&w, "text", "my public key", ID_A, NULL);
	fake_api_merge(w.api, &kobj_ak, NS, "text",
		"{\"metadata\":{\"creationTimestamp\":\"2024-01-01T00:00:00Z\"}}");
	world_boot(&w, NULL);
	world_run(&w, 5000);
	cr_assert_str_eq(world_cond(&w, &kobj_ak, "text", "Approved"), "True");
	cr_assert_str_eq(world_reason(&w, &kobj_ak, "text", "Delivered"), "InvalidKey");
	cr_assert(secret_held("text"));
	/* and does not hold the Machine */
	world_ak(&w, "k0", test_pem[0], ID_A, NULL);
	world_run(&w, 5000);
	cr_assert_str_eq(world_cond(&w, &kobj_ak, "k0", "Approved"), "True");
	cr_assert(identity_declared(&w, test_pem[0]));
	fake_api_delete(w.api, &kobj_ak, NS, "text");
	world_run(&w, 5000);
	cr_assert_null(world_get(&w, &kobj_secret, "text"));
}

Test(ctl_ak, what_can_never_attest_is_not_approved)
{
	world_machine(&w, "a", ID_A, NULL);
	world_ak(&w, "text", "my public key", ID_A, NULL);
	world_boot(&w, NULL);
	world_run(&w, 5000);
	cr_assert_str_eq(world_cond(&w, &kobj_ak, "text", "Approved"), "False");
	cr_assert_str_eq(world_reason(&w, &kobj_ak, "text", "Approved"), "InvalidKey");
	cr_assert_str_eq(world_reason(&w, &kobj_ak, "text", "Delivered"), "NotApproved");
	/* Not by an administrator either, whose annotation stays. */
	ask_approval("text");
	world_run(&w, 60000);
	cr_assert_str_eq(world_reason(&w, &kobj_ak, "text", "Approved"), "InvalidKey");
	cr_assert_str_eq(world_annotation(&w, &kobj_ak, "text", MODEL_APPROVED_ANNOTATION), "true");
	cr_assert_null(owner_of("text"));
	cr_assert_null(world_get(&w, &kobj_secret, "text"));
	cr_assert_null(world_marked(&w, &kobj_machine, "a", MODEL_BOUND_AT_ANNOTATION));
	/* The Machine is free for a key. */
	world_ak(&w, "k0", test_pem[0], ID_A, NULL);
	world_run(&w, 5000);
	cr_assert_str_eq(world_cond(&w, &kobj_ak, "k0", "Approved"), "True");
}

/* Version 0.2.0 approved them. */
Test(ctl_ak, an_approval_of_what_can_never_attest_is_withdrawn)
{
	cleanup_free char *patch = NULL;

	world_machine(&w, "a", ID_A, NULL);
	world_ak(&w, "text", "my public key", ID_A, NULL);
	patch = xasprintf(
		"{\"metadata\":{\"ownerReferences\":[{\"apiVersion\":"
		"\"trusted-execution-clusters.io/v1alpha1\",\"kind\":\"Machine\",\"name\":\"a\",\"uid\":\"%s\","
		"\"controller\":true,\"blockOwnerDeletion\":true}]}}",
		world_str(&w, &kobj_machine, "a", "metadata/uid"));
	fake_api_merge(w.api, &kobj_ak, NS, "text", patch);
	world_mark(
		&w, &kobj_ak, "text", MODEL_APPROVED_AT_ANNOTATION, "2027-01-01T00:00:00.000000Z");
	world_mark(&w, &kobj_ak, "text", MODEL_APPROVED_BY_ANNOTATION, "operator");
	world_boot(&w, NULL);
	world_run(&w, 5000);
	cr_assert_str_eq(world_reason(&w, &kobj_ak, "text", "Approved"), "InvalidKey");
	cr_assert_null(owner_of("text"));
	cr_assert_null(world_marked(&w, &kobj_ak, "text", MODEL_APPROVED_AT_ANNOTATION));
}

Test(ctl_ak, one_key_for_two_machines_is_the_first_ones)
{
	register_a();
	world_machine(&w, "b", ID_B, NULL);
	world_run(&w, 1000);
	world_ak(&w, "other", test_pem[0], ID_B, NULL);
	world_run(&w, 60000);
	cr_assert_str_eq(world_reason(&w, &kobj_ak, "other", "Delivered"), "Conflict");
	cr_assert_str_eq(world_reason(&w, &kobj_ak, "k0", "Delivered"), "NotAvailable");
	/* and what Trustee has of the first is not taken for the other Machine's */
	trustee_has_key(&w, ID_A, true);
	trustee_has_key(&w, ID_B, true);
	trustee_has_identity(&w, test_pem[0], ID_A, true);
	world_run(&w, 5000);
	cr_assert_str_eq(world_cond(&w, &kobj_machine, "a", "Delivered"), "True");
	cr_assert_str_eq(world_cond(&w, &kobj_machine, "b", "Delivered"), "False");
	/* whatever order a new life looks in */
	for (int i = 0; i < 4; i++) {
		world_kill(&w);
		world_boot(&w, NULL);
		world_run(&w, 5000);
		cr_assert_str_eq(world_reason(&w, &kobj_ak, "other", "Delivered"), "Conflict");
	}
	/* It goes when what is there is confirmed to be the first one's: this life does not know.
	 */
	fake_api_delete(w.api, &kobj_ak, NS, "other");
	world_run(&w, 60000);
	cr_assert(secret_held("other"));
	trustee_has_identity(&w, test_pem[0], ID_A, true);
	world_run(&w, 5000);
	cr_assert_null(world_get(&w, &kobj_secret, "other"));
	cr_assert(identity_declared(&w, test_pem[0]));
}

/* ---- keys of one name */

/* Trustee holds what is declared under the one name. */
static void trustee_holds_list(void)
{
	struct kbs_sync *sync = w.life->caches.sync;
	struct kbs_target_status t;
	uint8_t sha256[SHA256_LEN];

	cr_assert(kbs_sync_target(sync, 0, &t));
	cr_assert(kbs_sync_desired(sync, KBS_REFVALUE, identity_name(test_pem[0]), sha256));
	kbs_sync_confirm(sync, t.name, KBS_REFVALUE, identity_name(test_pem[0]), sha256);
	world_run(&w, 5000);
}

/* Under the one name: -1 not declared, 0 waits for a place, 1 in the list. */
static int place_of(const char *ak)
{
	bool has_place;

	if (!kbs_sync_object_in(
		    w.life->caches.sync, KBS_REFVALUE, identity_name(test_pem[0]), ak, &has_place))
		return -1;
	return has_place;
}

/* k0 is Machine a's and there; other is Machine b's, and both are in one list. */
static void two_of_one_name(const char *pem)
{
	register_a();
	trustee_has_identity(&w, test_pem[0], ID_A, true);
	world_machine(&w, "b", ID_B, NULL);
	world_run(&w, 1000);
	world_ak(&w, "other", pem, ID_B, NULL);
	world_run(&w, 5000);
	cr_assert_eq(place_of("k0"), 1);
	cr_assert_eq(place_of("other"), 1);
}

Test(ctl_ak, two_keys_of_one_name_share_it)
{
	cleanup_free char *pem = same_name_as_first(0);

	two_of_one_name(pem);
	cr_assert_str_eq(world_reason(&w, &kobj_ak, "other", "Delivered"), "NotAvailable");
	trustee_holds_list();
	trustee_has_key(&w, ID_A, true);
	trustee_has_key(&w, ID_B, true);
	world_run(&w, 5000);
	cr_assert_str_eq(world_cond(&w, &kobj_ak, "k0", "Delivered"), "True");
	cr_assert_str_eq(world_cond(&w, &kobj_ak, "other", "Delivered"), "True");
	cr_assert_str_eq(world_cond(&w, &kobj_machine, "a", "Delivered"), "True");
	cr_assert_str_eq(world_cond(&w, &kobj_machine, "b", "Delivered"), "True");
}

Test(ctl_ak, of_two_keys_one_is_let_go_when_the_list_without_it_is_confirmed)
{
	static const char *const names[] = {"k0", "other"}, *const left[] = {"other", "k0"};

	for (int i = 0; i < 2; i++) {
		cleanup_free char *pem = same_name_as_first(0);

		two_of_one_name(pem);
		trustee_holds_list();
		fake_api_delete(w.api, &kobj_ak, NS, names[i]);
		world_run(&w, 60000);
		cr_assert_eq(place_of(names[i]), -1);
		cr_assert_eq(place_of(left[i]), 1);
		cr_assert(secret_held(names[i]), "the list with both may still be there");
		/* Nor does a new life, that was not told either. */
		world_kill(&w);
		fake_api_collect(w.api);
		world_boot(&w, NULL);
		world_run(&w, 60000);
		cr_assert(secret_held(names[i]));
		trustee_holds_list();
		fake_api_collect(w.api);
		cr_assert_null(world_get(&w, &kobj_secret, names[i]));
		cr_assert_eq(place_of(left[i]), 1);
		cr_assert_str_eq(world_cond(&w, &kobj_ak, left[i], "Delivered"), "True");
		down();
		up();
	}
}

Test(ctl_ak, a_deleted_machine_waits_for_the_list_without_its_key)
{
	cleanup_free char *pem = same_name_as_first(0);

	two_of_one_name(pem);
	trustee_holds_list();
	trustee_has_key(&w, ID_B, true);
	fake_api_delete(w.api, &kobj_machine, NS, "b");
	world_run(&w, 60000);
	trustee_has_key(&w, ID_B, false);
	world_run(&w, 5000);
	cr_assert(world_get(&w, &kobj_machine, "b"), "the identity is still there");
	cr_assert_eq(place_of("other"), -1);
	cr_assert_eq(place_of("k0"), 1);
	trustee_holds_list();
	cr_assert_null(world_get(&w, &kobj_machine, "b"));
}

/* The Machine's new key has the name of the one it replaces, and of a stranger's. */
Test(ctl_ak, a_replacement_of_the_same_name_waits_for_the_old_key_to_go)
{
	cleanup_free char *stranger = same_name_as_first(0), *second = same_name_as_first(1);

	two_of_one_name(stranger);
	trustee_holds_list();
	world_ak(&w, "k1", second, ID_A, NULL);
	world_run(&w, 5000);
	ask_approval("k1");
	world_run(&w, 60000);
	cr_assert_eq(place_of("k0"), -1);
	cr_assert_eq(place_of("k1"), -1, "the old one is not confirmed gone");
	trustee_holds_list();
	cr_assert_eq(place_of("k1"), 1);
	cr_assert_eq(place_of("other"), 1);
	trustee_holds_list();
	cr_assert_null(world_get(&w, &kobj_secret, "k0"));
}

/* More keys of one name than a list holds: the oldest Machines have the places. */
static void a_crowd_of_one_name(unsigned n)
{
	for (unsigned i = 0; i < n; i++) {
		cleanup_free char *pem = same_name_as_first(i);
		char machine[16], ak[16], id[64];

		snprintf(machine, sizeof(machine), "m%u", i);
		snprintf(ak, sizeof(ak), "x%u", i);
		snprintf(id, sizeof(id), "00000000-0000-4000-8000-0000000001%02u", i);
		world_machine(&w, machine, id, NULL);
		world_run(&w, 1000);
		world_ak(&w, ak, pem, id, NULL);
		world_run(&w, 1000);
	}
}

Test(ctl_ak, a_full_list_gives_its_places_to_the_oldest_machines)
{
	world_machine(&w, "a", ID_A, NULL); /* the oldest, whose key comes last */
	world_boot(&w, NULL);
	world_run(&w, 2000);
	a_crowd_of_one_name(KBS_LIST_MAX + 1);
	trustee_holds_list();
	cr_assert_eq(place_of("x31"), 1);
	cr_assert_eq(place_of("x32"), 0);
	cr_assert_str_eq(world_reason(&w, &kobj_ak, "x32", "Delivered"), "TooManyKeys");
	cr_assert_str_eq(world_reason(&w, &kobj_ak, "x31", "Delivered"), "Delivered");
	world_ak(&w, "k0", test_pem[0], ID_A, NULL);
	world_run(&w, 5000);
	trustee_holds_list();
	cr_assert_str_eq(world_reason(&w, &kobj_ak, "k0", "Delivered"), "Delivered");
	cr_assert_str_eq(world_reason(&w, &kobj_ak, "x31", "Delivered"), "TooManyKeys");
	/* The same in whatever order a new life looks. */
	for (int i = 0; i < 3; i++) {
		world_kill(&w);
		world_boot(&w, NULL);
		world_run(&w, 5000);
		trustee_holds_list();
		cr_assert_eq(place_of("k0"), 1);
		cr_assert_eq(place_of("x30"), 1);
		cr_assert_eq(place_of("x31"), 0);
		cr_assert_eq(place_of("x32"), 0);
	}
	/* What waits is let go at once, what goes gives its place to the next. */
	fake_api_delete(w.api, &kobj_ak, NS, "x32");
	world_run(&w, 5000);
	fake_api_collect(w.api);
	cr_assert_null(world_get(&w, &kobj_secret, "x32"));
	fake_api_delete(w.api, &kobj_ak, NS, "x7");
	world_run(&w, 5000);
	cr_assert_eq(place_of("x31"), 1);
	trustee_holds_list();
	cr_assert_str_eq(world_reason(&w, &kobj_ak, "x31", "Delivered"), "Delivered");
}

Test(ctl_ak, a_deleted_secret_is_made_again_after_revocation)
{
	register_a();
	fake_api_delete(w.api, &kobj_secret, NS, "k0");
	world_run(&w, 5000);
	cr_assert(secret_held("k0"));
	trustee_has_identity(&w, test_pem[0], ID_A, false);
	world_run(&w, 5000);
	cr_assert(secret_held("k0"));
	cr_assert_null(world_str(&w, &kobj_secret, "k0", "metadata/deletionTimestamp"));
	cr_assert(identity_declared(&w, test_pem[0]));
}

Test(ctl_ak, a_finalizer_that_was_taken_off_is_put_back)
{
	register_a();
	fake_api_merge(
		w.api, &kobj_secret, NS, "k0", "{\"metadata\":{\"finalizers\":[\"other/x\"]}}");
	world_run(&w, 5000);
	cr_assert(secret_held("k0"));
	cr_assert(kobj_has_finalizer(world_get(&w, &kobj_secret, "k0"), "other/x"));
}

Test(ctl_ak, what_was_not_approved_expires_an_admins_never)
{
	world_ak(&w, "k0", test_pem[0], ID_A, "listener");
	world_ak(&w, "k1", test_pem[1], ID_B, NULL);
	world_boot(&w, NULL);
	world_run(&w, 23 * 3600 * 1000);
	cr_assert(world_get(&w, &kobj_ak, "k0"));
	world_run(&w, 2 * 3600 * 1000);
	cr_assert_null(world_get(&w, &kobj_ak, "k0"));
	cr_assert(world_get(&w, &kobj_ak, "k1"));
}

Test(ctl_ak, an_approved_one_and_its_machine_never_expire)
{
	register_a();
	world_run(&w, 80 * 3600ull * 1000);
	cr_assert_str_eq(owner_of("k0"), "a");
	cr_assert(!json_get(world_get(&w, &kobj_machine, "a"), "metadata/deletionTimestamp"));
	/* not even when the key is deleted */
	fake_api_delete(w.api, &kobj_ak, NS, "k0");
	world_run(&w, 80 * 3600ull * 1000);
	cr_assert(!json_get(world_get(&w, &kobj_machine, "a"), "metadata/deletionTimestamp"));
}

/* Owned by the Machine and approved, without our marks. */
static void rust_approved(const char *name, const char *pem, const char *created)
{
	cleanup_free char *patch = xasprintf(
		"{\"metadata\":{\"creationTimestamp\":\"%s\",\"ownerReferences\":[{\"apiVersion\":"
		"\"trusted-execution-clusters.io/v1alpha1\",\"kind\":\"Machine\",\"name\":\"a\",\"uid\":\"%s\","
		"\"controller\":true,\"blockOwnerDeletion\":true}]},\"status\":{\"conditions\":[{\"type\":"
		"\"Approved\",\"status\":\"True\",\"reason\":\"MachineCreated\",\"message\":\"\","
		"\"lastTransitionTime\":\"2024-01-01T00:00:00Z\"}]}}",
		created, world_str(&w, &kobj_machine, "a", "metadata/uid"));

	world_ak(&w, name, pem, ID_A, NULL);
	fake_api_merge(w.api, &kobj_ak, NS, name, patch);
}

Test(ctl_ak, a_secret_that_lost_its_owner_is_not_let_go_unconfirmed)
{
	register_a();
	trustee_has_identity(&w, test_pem[0], ID_A, true);
	fake_api_merge(w.api, &kobj_secret, NS, "k0", "{\"metadata\":{\"ownerReferences\":null}}");
	world_run(&w, 60000);
	cr_assert(secret_held("k0"));
	cr_assert_null(world_str(&w, &kobj_secret, "k0", "metadata/deletionTimestamp"));
	cr_assert(!identity_declared(&w, test_pem[0]));
	trustee_has_identity(&w, test_pem[0], ID_A, false);
	world_run(&w, 5000);
	cr_assert(identity_declared(&w, test_pem[0])); /* made again, and ours */
	cr_assert(json_get_arr(world_get(&w, &kobj_secret, "k0"), "metadata/ownerReferences"));
}

/* The Secret of another operator's Machine, which was there before this one. */
static void rust_secret(void)
{
	cleanup_free char *text = xasprintf(
		"{\"metadata\":{\"name\":\"%s\",\"ownerReferences\":[{\"apiVersion\":\"x/v1\",\"kind\":\"Machine\","
		"\"name\":\"a\",\"uid\":\"%s\",\"controller\":true}]},\"type\":\"Opaque\",\"data\":{\"root\":"
		"\"eyJrZXlfdHlwZSI6Im9jdCIsImtleSI6IkFBQUFBQUFBQUFBQUFBQUFBQUFBQUFBQUFBQUFBQUFBIn0=\"}}",
		ID_A, world_str(&w, &kobj_machine, "a", "metadata/uid"));

	fake_api_put(w.api, &kobj_secret, NS, text);
}

Test(ctl_ak, keys_the_rust_operator_approved_are_taken_over_the_youngest_counts)
{
	world_machine(&w, "a", ID_A, NULL);
	rust_secret();
	rust_approved("old", test_pem[0], "2024-01-01T00:00:00Z");
	rust_approved("new", test_pem[1], "2025-01-01T00:00:00Z");
	world_since(&w);
	world_boot(&w, NULL);
	world_run(&w, 60000);
	cr_assert_str_eq(owner_of("new"), "a");
	cr_assert_null(owner_of("old"));
	cr_assert(world_marked(&w, &kobj_ak, "new", MODEL_APPROVED_AT_ANNOTATION));
	cr_assert(str_starts(world_marked(&w, &kobj_machine, "a", MODEL_BOUND_KEY_ANNOTATION),
		world_str(&w, &kobj_ak, "new", "metadata/uid")));
	cr_assert(identity_declared(&w, test_pem[1]));
	cr_assert(!identity_declared(&w, test_pem[0]));
}

/* As long as the disk key is not a key of ours, what Trustee holds stays. */
Test(ctl_ak, what_waits_to_be_taken_over_is_not_revoked)
{
	world_machine(&w, "a", ID_A, NULL);
	rust_approved("k0", test_pem[0], "2025-01-01T00:00:00Z");
	world_since(&w);
	rust_secret(); /* later than the marker: a conflict */
	world_boot(&w, NULL);
	world_run(&w, 60000);
	cr_assert_str_eq(world_reason(&w, &kobj_machine, "a", "KeyReady"), "Conflict");
	cr_assert_str_eq(world_cond(&w, &kobj_ak, "k0", "Approved"), "True");
	cr_assert_null(world_marked(&w, &kobj_machine, "a", MODEL_BOUND_KEY_ANNOTATION));
	cr_assert_eq(
		kbs_sync_is_revoked(w.life->caches.sync, KBS_REFVALUE, identity_name(test_pem[0])),
		false);
}

Test(ctl_ak, approval_by_another_operator_after_the_marker_is_none)
{
	world_since(&w);
	world_machine(&w, "a", ID_A, NULL);
	rust_approved("k0", test_pem[0], "2027-06-01T00:00:00Z");
	fake_api_merge(w.api, &kobj_cluster, NS, "tec",
		"{\"spec\":{\"registration\":{\"approval\":\"Manual\"}}}");
	world_boot(&w, NULL);
	world_run(&w, 60000);
	cr_assert_str_eq(world_cond(&w, &kobj_ak, "k0", "Approved"), "False");
	cr_assert(!identity_declared(&w, test_pem[0]));
}

/* It may have had a key of which nothing is left. */
Test(ctl_ak, a_machine_that_was_there_before_takes_a_key_only_from_a_person)
{
	world_machine(&w, "a", ID_A, NULL);
	rust_secret();
	world_since(&w);
	world_ak(&w, "k0", test_pem[0], ID_A, NULL);
	world_boot(&w, NULL);
	world_run(&w, 60000);
	cr_assert_str_eq(world_reason(&w, &kobj_ak, "k0", "Approved"), "MachineHasKey");
	ask_approval("k0");
	cr_assert_str_eq(world_reason(&w, &kobj_ak, "k0", "Approved"), "ApprovedManually");
	cr_assert(identity_declared(&w, test_pem[0]));
}

static const char *message_of(const char *name)
{
	return fake_api_condition(w.api, &kobj_ak, NS, name, "Approved", "message");
}

/* As much as it may have had a key after the backup; one that was made since then is like any. */
Test(ctl_ak, a_restored_machine_without_a_key_takes_one_only_from_a_person)
{
	world_since(&w);
	world_machine(&w, "a", ID_A, NULL);
	world_boot(&w, NULL);
	world_run(&w, 2000);
	w.life->caches.restored_s = clock_wall_s();
	world_run(&w, 2000);
	world_machine(&w, "b", ID_B, NULL);
	world_ak(&w, "k0", test_pem[0], ID_A, NULL);
	world_ak(&w, "k1", test_pem[1], ID_B, NULL);
	world_run(&w, 60000);
	cr_assert_str_eq(world_reason(&w, &kobj_ak, "k0", "Approved"), "MachineHasKey");
	cr_assert(strstr(message_of("k0"), "Machine a was restored from a backup"));
	cr_assert_str_eq(world_reason(&w, &kobj_ak, "k1", "Approved"), "MachineCreated");
	ask_approval("k0");
	cr_assert_str_eq(world_reason(&w, &kobj_ak, "k0", "Approved"), "ApprovedManually");
	cr_assert(identity_declared(&w, test_pem[0]));
}

Test(ctl_ak, a_machine_made_in_the_second_of_a_restore_counts_as_restored)
{
	world_since(&w);
	world_boot(&w, NULL);
	world_run(&w, 2000);
	w.life->caches.restored_s = clock_wall_s();
	world_machine(&w, "a", ID_A, NULL);
	world_ak(&w, "k0", test_pem[0], ID_A, NULL);
	world_run(&w, 60000);
	cr_assert_str_eq(world_reason(&w, &kobj_ak, "k0", "Approved"), "MachineHasKey");
}

/* What it has is its own. */
Test(ctl_ak, a_restored_machine_keeps_its_key)
{
	register_a();
	w.life->caches.restored_s = clock_wall_s();
	world_run(&w, 60000);
	cr_assert_str_eq(owner_of("k0"), "a");
	cr_assert_str_eq(world_reason(&w, &kobj_ak, "k0", "Approved"), "MachineCreated");
	cr_assert(identity_declared(&w, test_pem[0]));
}

/* ---- approvals that count for nothing */

static void create_approved(const char *name, const char *pem)
{
	struct json_object *o = model_ak_new_json(name, pem, ID_A);

	json_add_str(json_get_obj(o, "metadata/annotations"), MODEL_APPROVED_ANNOTATION, "true");
	fake_api_put_json(w.api, &kobj_ak, NS, o);
	loop_drain(w.loop);
}

Test(ctl_ak, an_approval_that_came_with_the_key_replaces_nothing)
{
	register_a();
	create_approved("k1", test_pem[1]);
	world_run(&w, 60000);
	cr_assert_str_eq(owner_of("k0"), "a");
	cr_assert_null(owner_of("k1"));
	cr_assert_str_eq(world_reason(&w, &kobj_ak, "k1", "Approved"), "MachineHasKey");
	cr_assert_null(world_annotation(&w, &kobj_ak, "k1", MODEL_APPROVED_ANNOTATION));
	cr_assert(strstr(message_of("k1"),
		"approved=true was set when the key was created and does not count."));
	cr_assert(strstr(event_of("k1", "ApprovalIgnored"),
		"kubectl annotate attestationkey k1 -n " NS " " MODEL_APPROVED_ANNOTATION "=true"));
	ask_approval("k1");
	cr_assert_str_eq(owner_of("k1"), "a");
	cr_assert_null(strstr(message_of("k1"), "does not count"));
}

/* Whatever is killed in between. */
static void die_later(void)
{
	fake_transport_die_after(w.life->f, nth_write);
}

Test(ctl_ak, an_approval_that_came_with_the_key_never_counts_over_kills)
{
	for (nth_write = 1; nth_write < 12; nth_write++) {
		char name[16];

		world_kill(&w);
		snprintf(name, sizeof(name), "k%u", nth_write);
		if (nth_write == 1)
			world_machine(&w, "a", ID_A, "listener");
		fake_api_merge(w.api, &kobj_cluster, NS, "tec",
			"{\"spec\":{\"registration\":{\"approval\":\"Manual\"}}}");
		create_approved(name, test_pem[0]);
		w.arm = die_later;
		world_boot(&w, NULL);
		world_run(&w, 5000);
		world_kill(&w);
		w.arm = NULL;
		world_boot(&w, NULL);
		world_run(&w, 5000);
		cr_assert_str_eq(
			world_cond(&w, &kobj_ak, name, "Approved"), "False", "%u", nth_write);
		cr_assert_null(owner_of(name));
		fake_api_delete(w.api, &kobj_ak, NS, name);
	}
}

/* A listener that was broken into writes whatever it likes, once. */
Test(ctl_ak, owner_and_marks_that_came_with_the_key_prove_nothing)
{
	cleanup_free char *patch = NULL;

	register_a();
	patch = xasprintf(
		"{\"metadata\":{\"annotations\":{\"" MODEL_APPROVED_AT_ANNOTATION
		"\":\"2020-01-01T00:00:00.000000Z\",\"" MODEL_APPROVED_BY_ANNOTATION
		"\":\"admin\"},\"ownerReferences\":[{\"apiVersion\":"
		"\"trusted-execution-clusters.io/v1alpha1\",\"kind\":\"Machine\",\"name\":\"a\",\"uid\":\"%s\","
		"\"controller\":true,\"blockOwnerDeletion\":true}]}}",
		world_str(&w, &kobj_machine, "a", "metadata/uid"));
	world_kill(&w);
	world_ak(&w, "k1", test_pem[1], ID_A, NULL);
	fake_api_merge(w.api, &kobj_ak, NS, "k1", patch);
	world_boot(&w, NULL);
	world_run(&w, 60000);
	cr_assert_str_eq(owner_of("k0"), "a");
	cr_assert_null(owner_of("k1"));
	cr_assert(identity_declared(&w, test_pem[0]) && !identity_declared(&w, test_pem[1]));
}

/* A key goes with its Machine; the next Machine of this id does not inherit it. */
Test(ctl_ak, a_key_of_a_gone_machine_is_not_taken_over_by_itself)
{
	world_machine(&w, "a", ID_A, NULL);
	rust_approved("k0", test_pem[0], "2024-01-01T00:00:00Z");
	fake_api_delete(w.api, &kobj_machine, NS, "a");
	world_machine(&w, "b", ID_A, NULL);
	world_boot(&w, NULL);
	world_run(&w, 60000);
	cr_assert_str_eq(world_reason(&w, &kobj_ak, "k0", "Approved"), "Registration");
	cr_assert_str_eq(owner_of("k0"), "a");
	cr_assert(!identity_declared(&w, test_pem[0]));
}

/* What one node costs the API: announcement, disk key, bound key, status; approval, Secret, status;
 * the cluster's counts; Events. */
Test(ctl_ak, a_registration_costs_few_requests)
{
	world_boot(&w, NULL);
	world_run(&w, 30000);
	fake_transport_forget(w.life->f);
	world_machine(&w, "a", ID_A, "listener");
	world_ak(&w, "k0", test_pem[0], ID_A, "listener");
	world_run(&w, 5000);
	cr_assert_eq(fake_transport_count(w.life->f, "get", NULL), 0);
	cr_assert_leq(fake_transport_writes(w.life->f) -
			      fake_transport_count(w.life->f, "create", "events"),
		8, "%zu writes", fake_transport_writes(w.life->f));
}
