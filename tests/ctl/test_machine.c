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

static bool gone(enum kbs_observed far)
{
	return far == KBS_OBSERVED_ABSENT || far == KBS_OBSERVED_NONE;
}

static void check(const struct ctl_machine_view *v, enum ctl_machine_do d)
{
	bool holds = v->id_ok && v->owns_id, alive = v->found && !v->deleting;

	switch (d) {
	case CTL_MACHINE_ANNOUNCE:
		MUST(alive && holds && v->luks == CACHES_LUKS_ABSENT && !v->must_read &&
			!v->delivered && !v->lost && !v->in_hand);
		break;
	case CTL_MACHINE_CREATE_SECRET:
		MUST(alive && holds && (v->has_finalizer || !v->announced) &&
			v->luks == CACHES_LUKS_ABSENT && !v->must_read && !v->delivered &&
			!v->lost && v->in_hand);
		break;
	case CTL_MACHINE_RESTORE_SECRET:
		MUST(alive && holds && v->has_finalizer && v->luks == CACHES_LUKS_ABSENT &&
			!v->must_read && v->delivered && v->can_restore);
		break;
	case CTL_MACHINE_INHERIT:
		MUST(alive && holds && v->luks == CACHES_LUKS_OK && !v->key_ours && v->inherits);
		break;
	case CTL_MACHINE_MARK_DELIVERED:
		MUST(alive && holds && v->luks == CACHES_LUKS_OK && v->key_ours && v->must_mark);
		break;
	case CTL_MACHINE_DECLARE:
		MUST(alive && holds && v->key_ours && v->may_deliver &&
			(v->luks == CACHES_LUKS_OK || v->luks == CACHES_LUKS_DELETING));
		break;
	case CTL_MACHINE_RECALL:
	case CTL_MACHINE_NOTE_RECALL:
		MUST(alive && holds && v->recall);
		MUST(d == CTL_MACHINE_RECALL || (v->path_revoked && gone(v->observed_key)));
		break;
	case CTL_MACHINE_DROP_FINALIZER:
		MUST(v->recorded == CTL_RECORDED);
		/* fall through */
	case CTL_MACHINE_RECORD:
		MUST(v->found && v->deleting && v->has_finalizer && v->revoked &&
			gone(v->observed_ids) && (!holds || gone(v->observed_key)));
		break;
	case CTL_MACHINE_REVOKE:
		MUST(v->found && v->deleting && v->has_finalizer);
		break;
	case CTL_MACHINE_EXPIRE:
		MUST(alive && v->overdue && (!v->bound || v->never_attested) && v->confirmed);
		break;
	case CTL_MACHINE_ADD_FINALIZER:
	case CTL_MACHINE_ADOPT:
	case CTL_MACHINE_READ_SECRET:
		MUST(alive && holds);
		break;
	case CTL_MACHINE_CONFIRM:
	case CTL_MACHINE_APPLY_STATUS:
		MUST(v->found);
		break;
	case CTL_MACHINE_NOTHING:
		break;
	case CTL_MACHINE_N_DO:
		MUST(false);
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
		v->has_finalizer = true;
		break;
	case CTL_MACHINE_ADOPT:
		v->adopt = false;
		break;
	case CTL_MACHINE_READ_SECRET:
		v->must_read = false;
		v->luks = read_foreign ? CACHES_LUKS_FOREIGN : CACHES_LUKS_OK;
		v->key_ours = !read_foreign;
		break;
	case CTL_MACHINE_ANNOUNCE:
		v->has_finalizer = v->announced = v->in_hand = true;
		break;
	case CTL_MACHINE_CREATE_SECRET:
		v->in_hand = false;
		v->luks = CACHES_LUKS_OK;
		v->key_ours = true;
		break;
	case CTL_MACHINE_RESTORE_SECRET:
		v->luks = CACHES_LUKS_OK;
		v->key_ours = true;
		break;
	case CTL_MACHINE_INHERIT:
		v->has_finalizer = v->announced = v->delivered = v->key_ours = true;
		v->inherits = v->must_mark = false;
		break;
	case CTL_MACHINE_MARK_DELIVERED:
		v->delivered = true;
		v->must_mark = false;
		break;
	case CTL_MACHINE_DECLARE:
		v->declared = true;
		break;
	case CTL_MACHINE_RECALL:
		v->path_revoked = true;
		v->declared = false;
		break;
	case CTL_MACHINE_NOTE_RECALL:
		v->recall = false;
		break;
	case CTL_MACHINE_REVOKE:
		v->revoked = true;
		v->declared = false;
		break;
	case CTL_MACHINE_RECORD:
		v->recorded = CTL_RECORD_WAITS;
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

	for (int i = 0; i < 14; i++) {
		enum ctl_machine_do d = ctl_machine_decide(v);

		check(v, d);
		if (d == CTL_MACHINE_NOTHING)
			return births;
		births += d == CTL_MACHINE_ANNOUNCE || d == CTL_MACHINE_CREATE_SECRET;
		effect(v, d, read_foreign);
	}
	cr_assert_fail("does not settle");
	return births;
}

#define N_BITS 22

static struct ctl_machine_view view_of(uint32_t bits, int luks, int observed_key, int observed_ids)
{
	return (struct ctl_machine_view){
		.found = true,
		.deleting = bits & 1,
		.has_finalizer = bits >> 1 & 1,
		.id_ok = bits >> 2 & 1,
		.owns_id = bits >> 3 & 1,
		.revoked = bits >> 4 & 1,
		.status_ok = bits >> 5 & 1,
		.adopt = bits >> 6 & 1,
		.overdue = bits >> 7 & 1,
		.bound = bits >> 8 & 1,
		.must_read = bits >> 9 & 1,
		.announced = bits >> 10 & 1,
		.delivered = bits >> 11 & 1,
		.in_hand = bits >> 12 & 1,
		.key_ours = bits >> 13 & 1,
		.inherits = bits >> 14 & 1,
		.lost = bits >> 15 & 1,
		.must_mark = bits >> 16 & 1,
		.may_deliver = bits >> 17 & 1,
		.recall = bits >> 18 & 1,
		.can_restore = bits >> 19 & 1,
		.declared = bits >> 20 & 1,
		.never_attested = bits >> 21 & 1,
		.path_revoked = bits & 1u << 20 ? false : bits >> 4 & 1,
		.confirmed = bits >> 5 & 1,
		.luks = (enum caches_luks)luks,
		.observed_key = (enum kbs_observed)observed_key,
		.observed_ids = (enum kbs_observed)observed_ids,
	};
}

/* Views that only a look with a mistake could have are left out: what is not announced is not ours,
 * and a Machine that is not deleted does not look at what must be gone. */
Test(ctl_machine_decide, every_view_settles_and_no_delivered_key_is_made_again)
{
	for (uint32_t bits = 0; bits < 1u << N_BITS; bits++) {
		if (bits & 1 && bits >> 6)
			continue; /* deleting: nothing else is looked at */
		for (int luks = 0; luks < CACHES_LUKS_N; luks++) {
			for (int far = 0; far < (bits & 1 ? 25 : 5); far++) {
				struct ctl_machine_view v = view_of(bits, luks, far / 5, far % 5);
				bool had = v.delivered || v.lost,
				     secret = luks != CACHES_LUKS_ABSENT;
				unsigned births;

				if (!(bits & 1))
					v.observed_key = (enum kbs_observed)far;
				births = settle(&v, bits & 1u << 5);
				MUST(births <= 2); /* announced, made */
				MUST(births == 0 || (!had && !secret));
			}
		}
	}
}

Test(ctl_machine_decide, no_deletion_leaves_a_key_or_waits_for_ever)
{
	for (uint32_t bits = 1; bits < 1u << 6; bits += 2) { /* deleting */
		for (int far = 0; far < 25 * CTL_RECORDED_N; far++) {
			struct ctl_machine_view v =
				view_of(bits, CACHES_LUKS_OK, far / 5 % 5, far % 5);
			bool held = v.has_finalizer, holds = v.id_ok && v.owns_id;
			bool clear = gone(v.observed_ids) && (!holds || gone(v.observed_key));

			v.recorded = (enum ctl_recorded)(far / 25);
			clear = clear && v.recorded == CTL_RECORDED;
			settle(&v, false);
			MUST((v.found && v.has_finalizer) == (held && !clear));
			v.observed_key = v.observed_ids = KBS_OBSERVED_ABSENT;
			settle(&v, false);
			MUST(!held || v.recorded != CTL_RECORD_MISSING);
			v.recorded = CTL_RECORDED;
			settle(&v, false);
			MUST(!v.has_finalizer);
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
	struct ctl_machine_view fresh = {.found = true, .id_ok = true, .owns_id = true}, v = fresh;

	cr_assert_eq(ctl_machine_decide(&v), CTL_MACHINE_ANNOUNCE);
	v.has_finalizer = v.announced = v.in_hand = true;
	cr_assert_eq(ctl_machine_decide(&v), CTL_MACHINE_CREATE_SECRET);
	v.must_read = true;
	cr_assert_eq(ctl_machine_decide(&v), CTL_MACHINE_READ_SECRET);
	v.must_read = v.in_hand = false;
	v.luks = CACHES_LUKS_OK;
	v.key_ours = v.must_mark = true;
	cr_assert_eq(ctl_machine_decide(&v), CTL_MACHINE_MARK_DELIVERED);
	v.must_mark = false;
	v.delivered = v.may_deliver = true;
	cr_assert_eq(ctl_machine_decide(&v), CTL_MACHINE_DECLARE);
	v.declared = true;
	cr_assert_eq(ctl_machine_decide(&v), CTL_MACHINE_APPLY_STATUS);
	v.status_ok = true;
	cr_assert_eq(ctl_machine_decide(&v), CTL_MACHINE_NOTHING);
	v.has_finalizer = false;
	cr_assert_eq(ctl_machine_decide(&v), CTL_MACHINE_ADD_FINALIZER);
	v.has_finalizer = true;
	v.luks = CACHES_LUKS_ABSENT;
	cr_assert_eq(ctl_machine_decide(&v), CTL_MACHINE_NOTHING); /* KeyLost */
	v.can_restore = true;
	cr_assert_eq(ctl_machine_decide(&v), CTL_MACHINE_RESTORE_SECRET);
	v.key_ours = false;
	v.declared = false;
	v.luks = CACHES_LUKS_OK;
	cr_assert_eq(
		ctl_machine_decide(&v), CTL_MACHINE_NOTHING); /* another key: never delivered */
	v.delivered = v.may_deliver = false;
	v.inherits = true;
	cr_assert_eq(ctl_machine_decide(&v), CTL_MACHINE_INHERIT);
}

/* ---- on an API */

static struct world w;

static void up(void)
{
	world_start(&w);
	world_since(&w);
}

static void down(void)
{
	world_stop(&w);
}

TestSuite(ctl_machine, .init = up, .fini = down);

#define SPEC                                                                                        \
	"{\"publicTrusteeAddr\":\"kbs-service\",\"publicAttestationKeyRegisterAddr\":\"reg:8001\"," \
	"\"trustee\":{\"keyIsolation\":\"Shared\"}}"
#define SPEC_PER_MACHINE                                                                           \
	"{\"publicTrusteeAddr\":\"kbs-service\",\"publicAttestationKeyRegisterAddr\":\"reg:8001\"}"

static const char *owner_uid(const struct kobj_gvk *gvk, const char *name)
{
	struct json_object *a = json_get_arr(world_get(&w, gvk, name), "metadata/ownerReferences");

	return a ? json_get_str(json_object_array_get_idx(a, 0), "uid") : NULL;
}

/* A quota, a webhook: whoever looks at the Machine sees why it has no key. */
Test(ctl_machine, a_refused_secret_is_in_the_status)
{
	struct fake_expect *e;

	world_cluster(&w, "tec", SPEC);
	world_boot(&w, NULL);
	world_run(&w, 5000);
	e = fake_transport_expect(w.life->f, "POST", "/api/v1/namespaces/" NS "/secrets*");
	fake_expect_times(e, 4);
	fake_expect_answer(e, 403, "{\"kind\":\"Status\",\"message\":\"exceeded quota\"}");
	world_machine(&w, "a", ID_A, "listener");
	world_run(&w, 1000);
	cr_assert_str_eq(world_reason(&w, &kobj_machine, "a", "KeyReady"), "KeyPending");
	cr_assert(strstr(fake_api_condition(w.api, &kobj_machine, NS, "a", "KeyReady", "message"),
		"exceeded quota"));
	world_run(&w, 60000);
	cr_assert_str_eq(world_cond(&w, &kobj_machine, "a", "KeyReady"), "True");
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
	cr_assert(world_marked(&w, &kobj_machine, "a", MODEL_KEY_SHA256_ANNOTATION));
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

/* What is true only while other nodes join is not written; but no node can hold another's status
 * back for long. */
Test(ctl_machine, a_status_yields_to_what_is_in_flight_for_ten_seconds)
{
	world_cluster(&w, "tec", SPEC);
	world_boot(&w, NULL);
	world_run(&w, 10000);
	fake_expect_answer_after(
		fake_transport_expect(w.life->f, "PATCH",
			"/apis/trusted-execution-clusters.io/v1alpha1/namespaces/" NS
			"/machines/b*"),
		14000, 500, NULL);
	world_machine(&w, "b", ID_B, "listener");
	world_machine(&w, "a", ID_A, "listener");
	world_run(&w, 10000);
	cr_assert(world_get(&w, &kobj_secret, ID_A));
	cr_assert_str_empty(world_cond(&w, &kobj_machine, "a", "KeyReady"));
	world_run(&w, 500);
	cr_assert_str_eq(world_cond(&w, &kobj_machine, "a", "KeyReady"), "True");
	cr_assert_null(world_get(&w, &kobj_secret, ID_B));
}

static unsigned statuses(const char *resource)
{
	unsigned n = 0;

	for (size_t i = 0; i < fake_transport_requests(w.life->f); i++) {
		const struct fake_request *r = fake_transport_request(w.life->f, i);

		n += str_eq(r->resource, resource) && strstr(r->path, "/status?") != NULL;
	}
	return n;
}

/* As in a burst that keeps the API server busy. */
Test(ctl_machine, of_many_that_join_at_once_no_transitional_status_is_written)
{
	char name[16], id[40];
	unsigned n = ARRAY_LEN(test_pem);

	world_cluster(&w, "tec", SPEC_PER_MACHINE);
	world_boot(&w, NULL);
	world_run(&w, 10000);
	fake_transport_forget(w.life->f);
	fake_transport_latency(w.life->f, 1500);
	for (unsigned i = 0; i < n; i++) {
		snprintf(name, sizeof(name), "m%u", i);
		snprintf(id, sizeof(id), "00000000-0000-4000-8000-%012u", i);
		world_machine(&w, name, id, "listener");
		snprintf(name, sizeof(name), "k%u", i);
		world_ak(&w, name, test_pem[i], id, "listener");
	}
	world_run(&w, 30000);
	for (unsigned i = 0; i < n; i++) {
		snprintf(name, sizeof(name), "m%u", i);
		cr_assert_str_eq(
			world_cond(&w, &kobj_machine, name, "AttestationKeyBound"), "True");
	}
	cr_assert_eq(statuses("machines"), n);
	cr_assert_eq(statuses("attestationkeys"), n);
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
	cr_assert_str_eq(world_reason(&w, &kobj_machine, "a", "KeyReady"), "Conflict");
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
	cr_assert_eq(observed_key(&w, ID_A), KBS_OBSERVED_PRESENT);
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

Test(ctl_machine, one_of_a_restored_store_never_expires)
{
	world_cluster(&w, "tec", SPEC);
	world_machine(&w, "a", ID_A, "listener");
	world_boot(&w, NULL);
	w.life->caches.restored_s = clock_wall_s();
	world_run(&w, 2000);
	world_machine(&w, "b", ID_B, "listener");
	world_run(&w, 50 * 3600 * 1000);
	cr_assert(!json_get(world_get(&w, &kobj_machine, "a"), "metadata/deletionTimestamp"));
	cr_assert(json_get(world_get(&w, &kobj_machine, "b"), "metadata/deletionTimestamp"));
}

static void mark_attested(const char *name)
{
	cleanup_free char *patch = xasprintf(
		"{\"metadata\":{\"annotations\":{\"trusted-execution-clusters.io/last-attested\":\"%s "
		"2026-01-01T00:00:00Z\"}}}",
		world_str(&w, &kobj_machine, name, "metadata/uid"));

	fake_api_merge(w.api, &kobj_machine, NS, name, patch);
}

Test(ctl_machine, where_keys_are_marked_a_bound_one_that_never_attested_expires)
{
	world_cluster(&w, "tec", SPEC);
	world_boot(&w, NULL);
	w.life->caches.marks_since_s = clock_wall_s();
	world_run(&w, 2000);
	world_machine(&w, "a", ID_A, "listener");
	world_machine(&w, "b", ID_B, "listener");
	world_ak(&w, "k0", test_pem[0], ID_A, "listener");
	world_ak(&w, "k1", test_pem[1], ID_B, "listener");
	world_run(&w, 5000);
	cr_assert(key_declared(&w, ID_A) && key_declared(&w, ID_B));
	mark_attested("b");
	world_run(&w, 23 * 3600 * 1000);
	cr_assert(key_declared(&w, ID_A));
	world_run(&w, 2 * 3600 * 1000);
	cr_assert(json_get(world_get(&w, &kobj_machine, "a"), "metadata/deletionTimestamp"));
	cr_assert(!key_declared(&w, ID_A));
	trustee_has_key(&w, ID_A, false);
	world_run(&w, 5000);
	cr_assert_null(world_get(&w, &kobj_machine, "a"));
	cr_assert(!json_get(world_get(&w, &kobj_machine, "b"), "metadata/deletionTimestamp"));
	cr_assert(key_declared(&w, ID_B));
}

Test(ctl_machine, a_bound_one_from_before_the_marks_never_expires)
{
	world_cluster(&w, "tec", SPEC);
	world_machine(&w, "a", ID_A, "listener");
	world_ak(&w, "k0", test_pem[0], ID_A, "listener");
	world_boot(&w, NULL);
	w.life->caches.marks_since_s = clock_wall_s();
	world_run(&w, 50 * 3600 * 1000);
	cr_assert(!json_get(world_get(&w, &kobj_machine, "a"), "metadata/deletionTimestamp"));
	cr_assert(key_declared(&w, ID_A));
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
	cr_assert(kbs_sync_is_revoked(w.life->caches.sync, KBS_RESOURCE, "default/" ID_A "/root"));
	trustee_has_key(&w, ID_A, false);
	cr_assert(!kbs_sync_is_revoked(
		w.life->caches.sync, KBS_RESOURCE, "default/" ID_A "/root")); /* forgotten */
}

/* A new leader whose watch is behind: the key was delivered, and its Secret is gone. */
Test(ctl_machine, a_stale_cache_never_leads_to_a_second_key)
{
	world_cluster(&w, "tec", SPEC);
	world_machine(&w, "a", ID_A, NULL);
	world_boot(&w, "c");
	k8s_watch_stop(w.life->watch[CACHES_MACHINES]);
	world_mark(&w, &kobj_machine, "a", MODEL_DELIVERED_AT_ANNOTATION, "2027-01-01T00:00:00Z");
	ctl_kind_on(w.life->machine);
	world_run(&w, 60000);
	cr_assert_null(world_get(&w, &kobj_secret, ID_A));
	cr_assert_null(world_marked(&w, &kobj_machine, "a", MODEL_KEY_SHA256_ANNOTATION));
}

/* The other way round: the Secret is there, the cache does not show it. */
Test(ctl_machine, a_secret_the_cache_does_not_show_is_read_and_kept)
{
	cleanup_free char *before = NULL;
	struct json_object *secret;

	world_cluster(&w, "tec", SPEC_PER_MACHINE);
	world_machine(&w, "a", ID_A, NULL);
	world_boot(&w, NULL);
	before = xstrdup(world_str(&w, &kobj_secret, ID_A, "data/root"));
	secret = json_copy(world_get(&w, &kobj_secret, ID_A));
	json_object_object_del(json_get_obj(secret, "metadata"), "uid");
	json_object_object_del(json_get_obj(secret, "metadata"), "resourceVersion");
	world_kill(&w);
	fake_api_delete(w.api, &kobj_secret, NS, ID_A);
	world_boot(&w, "c");
	k8s_watch_stop(w.life->watch[CACHES_SECRETS]);
	fake_api_put_json(w.api, &kobj_secret, NS, secret);
	ctl_kind_on(w.life->machine);
	world_run(&w, 60000);
	cr_assert_str_eq(world_str(&w, &kobj_secret, ID_A, "data/root"), before);
	cr_assert_eq(fake_transport_count(w.life->f, "create", "secrets"), 1);
	cr_assert_str_eq(world_cond(&w, &kobj_machine, "a", "KeyReady"), "True");
}

/* A cache that never shows what the API has is not a reason for a busy loop. */
Test(ctl_machine, acts_without_effect_are_slowed_down)
{
	world_cluster(&w, "tec", SPEC);
	world_machine(&w, "a", ID_A, NULL);
	world_boot(&w, NULL);
	ctl_kind_off(w.life->machine);
	fake_api_merge(w.api, &kobj_machine, NS, "a",
		"{\"metadata\":{\"annotations\":{\"" MODEL_DELIVERED_AT_ANNOTATION "\":null}}}");
	world_run(&w, 1000);
	k8s_watch_stop(w.life->watch[CACHES_SECRETS]);
	k8s_cache_remove(w.life->caches.cache[CACHES_SECRETS], ID_A,
		NULL); /* remembered as gone: no answer brings it back */
	fake_transport_forget(w.life->f);
	ctl_kind_on(w.life->machine);
	world_run(&w, 600000);
	cr_assert_gt(fake_transport_requests(w.life->f), 10);
	cr_assert_lt(fake_transport_requests(w.life->f), 1500);
}

/* How long until the condition has this status, which it has not now. */
static unsigned ms_until(const char *condition, const char *status)
{
	unsigned ms = 0;

	while (!str_eq(world_cond(&w, &kobj_machine, "a", condition), status)) {
		cr_assert_lt(ms, 60000);
		world_run(&w, 10);
		ms += 10;
	}
	cr_assert_gt(ms, 0);
	return ms;
}

Test(ctl_machine, a_status_that_is_overtaken_is_written_again_at_once)
{
	world_cluster(&w, "tec", SPEC_PER_MACHINE);
	world_machine(&w, "a", ID_A, NULL);
	world_ak(&w, "k", test_pem[0], ID_A, "listener");
	world_boot(&w, NULL);
	world_run(&w, 60000);
	cr_assert_str_eq(world_cond(&w, &kobj_machine, "a", "AttestationKeyBound"), "True");
	fake_transport_latency(w.life->f, 1000);
	fake_api_merge(w.api, &kobj_machine, NS, "a", "{\"status\":{\"conditions\":null}}");
	ms_until("KeyReady", "True");
	trustee_has_key(&w, ID_A, true); /* the answer is still on its way */
	trustee_has_identity(&w, test_pem[0], ID_A, true);
	cr_assert_lt(ms_until("Ready", "True"), 1300);
}

/* A Machine that waits for pendingTTL is looked at again for that alone. */
Test(ctl_machine, failures_that_are_over_delay_nothing_later)
{
	world_cluster(&w, "tec", SPEC);
	world_machine(&w, "a", ID_A, "listener");
	world_boot(&w, NULL);
	world_run(&w, 60000);
	for (int i = 0; i < 6; i++) {
		fake_expect_answer(
			fake_transport_expect(w.life->f, "PATCH",
				"/apis/trusted-execution-clusters.io/v1alpha1/namespaces/" NS
				"/machines/a/status*"),
			500, NULL);
		fake_api_merge(w.api, &kobj_machine, NS, "a", "{\"status\":{\"conditions\":null}}");
		cr_assert_lt(ms_until("KeyReady", "True"), 1400);
		world_run(&w, 60000);
	}
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
	cr_assert_eq(kbs_sync_targets(w.life->caches.sync), 0);
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
	fake_transport_die_after(w.life->f, 2); /* announced, made */
}

Test(ctl_machine, a_key_that_is_not_delivered_yet_holds_the_id)
{
	cleanup_free char *before = NULL;

	world_machine(&w, "z", ID_A, NULL);
	w.arm = die_after_the_key;
	world_boot(&w, "m");
	before = xstrdup(world_str(&w, &kobj_secret, ID_A, "data/root"));
	cr_assert(before);
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
	k8s_cache_remove(w.life->caches.cache[CACHES_MACHINES], "a",
		NULL); /* gone in one event, finalizer and all */
	cr_assert(kbs_sync_is_revoked(w.life->caches.sync, KBS_RESOURCE, "default/" ID_A "/root"));
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
	cr_assert_str_eq(world_reason(&w, &kobj_machine, "a", "KeyReady"), "Conflict");
	cr_assert_null(world_annotation(&w, &kobj_machine, "a", MODEL_KEY_SHA256_ANNOTATION));
}

#define OTHER_HASH "0000000000000000000000000000000000000000000000000000000000000000"

Test(ctl_machine, only_the_key_that_was_announced_is_restored)
{
	world_cluster(&w, "tec", SPEC);
	world_machine(&w, "a", ID_A, NULL);
	world_boot(&w, NULL);
	world_mark(&w, &kobj_machine, "a", MODEL_KEY_SHA256_ANNOTATION, OTHER_HASH);
	fake_api_delete(w.api, &kobj_secret, NS, ID_A);
	world_run(&w, 60000);
	cr_assert_null(world_get(&w, &kobj_secret, ID_A));
	cr_assert_str_eq(world_reason(&w, &kobj_machine, "a", "KeyReady"), "KeyLost");
}

/* ---- marks */

/* A well-formed key with the Machine as its owner, as who may create Secrets can write one. */
static void plant(const char *machine, const char *id)
{
	cleanup_free char *text = xasprintf(
		"{\"metadata\":{\"name\":\"%s\",\"ownerReferences\":[{\"apiVersion\":\"x/v1\",\"kind\":\"Machine\","
		"\"name\":\"%s\",\"uid\":\"%s\",\"controller\":true}]},\"type\":\"Opaque\",\"data\":{\"root\":"
		"\"eyJrZXlfdHlwZSI6Im9jdCIsImtleSI6IkFBQUFBQUFBQUFBQUFBQUFBQUFBQUFBQUFBQUFBQUFBIn0=\"}}",
		id, machine, world_str(&w, &kobj_machine, machine, "metadata/uid"));

	fake_api_put(w.api, &kobj_secret, NS, text);
}

Test(ctl_machine, a_planted_key_is_never_declared_and_its_deletion_mends_all)
{
	const char *message;

	world_cluster(&w, "tec", SPEC);
	world_machine(&w, "a", ID_A, NULL);
	plant("a", ID_A);
	world_boot(&w, NULL);
	world_run(&w, 60000);
	cr_assert_str_eq(world_reason(&w, &kobj_machine, "a", "KeyReady"), "Conflict");
	message = fake_api_condition(w.api, &kobj_machine, NS, "a", "KeyReady", "message");
	cr_assert(strstr(message, "kubectl delete secret " ID_A " -n " NS), "%s", message);
	cr_assert(!key_declared(&w, ID_A));
	fake_api_delete(w.api, &kobj_secret, NS, ID_A);
	world_run(&w, 5000);
	cr_assert_str_eq(world_cond(&w, &kobj_machine, "a", "KeyReady"), "True");
	cr_assert(key_declared(&w, ID_A));
}

static void plant_at_the_announcement(void)
{
	fake_transport_die_after(w.life->f, 1);
}

Test(ctl_machine, a_key_planted_after_the_announcement_is_none_either)
{
	world_cluster(&w, "tec", SPEC);
	world_machine(&w, "a", ID_A, NULL);
	w.arm = plant_at_the_announcement;
	world_boot(&w, "m");
	cr_assert(world_marked(&w, &kobj_machine, "a", MODEL_KEY_SHA256_ANNOTATION));
	cr_assert_null(world_get(&w, &kobj_secret, ID_A));
	world_kill(&w);
	plant("a", ID_A);
	w.arm = NULL;
	world_boot(&w, NULL);
	world_run(&w, 60000);
	cr_assert_str_eq(world_reason(&w, &kobj_machine, "a", "KeyReady"), "Conflict");
	cr_assert(!key_declared(&w, ID_A));
}

/* Killed between announcement and create: the next life announces another one beside it. */
Test(ctl_machine, announcing_again_keeps_what_was_announced)
{
	cleanup_free char *first = NULL;

	world_cluster(&w, "tec", SPEC_PER_MACHINE);
	world_machine(&w, "a", ID_A, NULL);
	w.arm = plant_at_the_announcement;
	world_boot(&w, "m");
	first = xstrdup(world_marked(&w, &kobj_machine, "a", MODEL_KEY_SHA256_ANNOTATION));
	world_kill(&w);
	w.arm = NULL;
	world_boot(&w, NULL);
	world_run(&w, 5000);
	cr_assert(str_starts(
		world_marked(&w, &kobj_machine, "a", MODEL_KEY_SHA256_ANNOTATION), first));
	cr_assert_str_eq(world_cond(&w, &kobj_machine, "a", "KeyReady"), "True");
}

Test(ctl_machine, marks_that_came_with_the_machine_count_for_nothing)
{
	world_cluster(&w, "tec", SPEC);
	fake_api_put(w.api, &kobj_machine, NS,
		"{\"metadata\":{\"name\":\"a\",\"annotations\":{\"" MODEL_KEY_SHA256_ANNOTATION
		"\":\"" OTHER_HASH "\",\"" MODEL_BOUND_AT_ANNOTATION
		"\":\"2027-01-01T00:00:00Z\",\"" MODEL_BOUND_KEY_ANNOTATION "\":\"x " OTHER_HASH
		"\",\"" MODEL_DELIVERED_AT_ANNOTATION
		"\":\"2027-01-01T00:00:00Z\"}},\"spec\":{\"id\":\"" ID_A "\"}}");
	world_boot(&w, NULL);
	world_run(&w, 5000);
	cr_assert_str_eq(world_cond(&w, &kobj_machine, "a", "KeyReady"), "True");
	cr_assert(key_declared(&w, ID_A));
	cr_assert_null(world_marked(&w, &kobj_machine, "a", MODEL_BOUND_AT_ANNOTATION));
}

Test(ctl_machine, shared_marks_before_it_declares_and_fixes_the_hash)
{
	const char *hashes;

	world_cluster(&w, "tec", SPEC);
	world_machine(&w, "a", ID_A, NULL);
	w.arm = plant_at_the_announcement;
	world_boot(&w, "m");
	world_kill(&w);
	w.arm = die_after_the_key;
	world_boot(&w, "cm");
	cr_assert(!key_declared(&w, ID_A));
	cr_assert_null(world_marked(&w, &kobj_machine, "a", MODEL_DELIVERED_AT_ANNOTATION));
	world_kill(&w);
	w.arm = NULL;
	world_boot(&w, NULL);
	world_run(&w, 5000);
	cr_assert(world_marked(&w, &kobj_machine, "a", MODEL_DELIVERED_AT_ANNOTATION));
	hashes = world_marked(&w, &kobj_machine, "a", MODEL_KEY_SHA256_ANNOTATION);
	cr_assert_eq(strlen(hashes), SHA256_HEX_LEN, "%s", hashes);
	cr_assert(key_declared(&w, ID_A));
}

Test(ctl_machine, nothing_is_declared_before_a_key_is_bound)
{
	world_cluster(&w, "tec", SPEC_PER_MACHINE);
	world_machine(&w, "a", ID_A, "listener");
	world_boot(&w, NULL);
	world_run(&w, 60000);
	cr_assert_str_eq(world_cond(&w, &kobj_machine, "a", "KeyReady"), "True");
	cr_assert(!key_declared(&w, ID_A));
	cr_assert(!kbs_sync_is_revoked(w.life->caches.sync, KBS_RESOURCE, "default/" ID_A "/root"));
	world_ak(&w, "k0", test_pem[0], ID_A, "listener");
	world_run(&w, 5000);
	cr_assert(world_marked(&w, &kobj_machine, "a", MODEL_BOUND_KEY_ANNOTATION));
	cr_assert(key_declared(&w, ID_A));
	cr_assert(identity_declared(&w, test_pem[0]));
}

Test(ctl_machine, a_switch_to_per_machine_takes_back_what_nobody_is_bound_to)
{
	world_cluster(&w, "tec", SPEC);
	world_machine(&w, "a", ID_A, NULL);
	world_machine(&w, "b", ID_B, NULL);
	world_ak(&w, "k0", test_pem[0], ID_B, NULL);
	world_boot(&w, NULL);
	world_run(&w, 5000);
	cr_assert(key_declared(&w, ID_A) && key_declared(&w, ID_B));
	fake_api_merge(w.api, &kobj_cluster, NS, "tec",
		"{\"spec\":{\"trustee\":{\"keyIsolation\":\"PerMachine\"}}}");
	world_run(&w, 5000);
	cr_assert(!key_declared(&w, ID_A));
	cr_assert(key_declared(&w, ID_B));
	trustee_has_key(&w, ID_A, false);
	world_run(&w, 5000);
	cr_assert(str_ends(world_marked(&w, &kobj_machine, "a", MODEL_DELIVERED_AT_ANNOTATION),
		MODEL_DELIVERED_REVOKED));
	/* once: the next life sends nothing */
	world_kill(&w);
	world_boot(&w, NULL);
	world_run(&w, 5000);
	cr_assert(!kbs_sync_is_revoked(w.life->caches.sync, KBS_RESOURCE, "default/" ID_A "/root"));
	/* and back: marked again before it is declared */
	fake_api_merge(w.api, &kobj_cluster, NS, "tec",
		"{\"spec\":{\"trustee\":{\"keyIsolation\":\"Shared\"}}}");
	world_run(&w, 5000);
	cr_assert(key_declared(&w, ID_A));
	cr_assert(!str_ends(world_marked(&w, &kobj_machine, "a", MODEL_DELIVERED_AT_ANNOTATION),
		MODEL_DELIVERED_REVOKED));
}

/* ---- taking over */

static void old_machine(const char *name, const char *id, bool secret)
{
	world_machine(&w, name, id, NULL);
	fake_api_merge(w.api, &kobj_machine, NS, name,
		"{\"metadata\":{\"finalizers\":[\"" MODEL_MACHINE_FINALIZER "\"]}}");
	if (secret)
		plant(name, id);
}

Test(ctl_machine, what_is_older_is_taken_over_with_its_key)
{
	cleanup_free char *before = NULL;

	world_cluster(&w, "tec", SPEC);
	old_machine("a", ID_A, true);
	old_machine("b", ID_B, false);
	world_since(&w);
	before = xstrdup(world_str(&w, &kobj_secret, ID_A, "data/root"));
	world_boot(&w, NULL);
	world_run(&w, 5000);
	cr_assert_str_eq(world_cond(&w, &kobj_machine, "a", "KeyReady"), "True");
	cr_assert_str_eq(world_str(&w, &kobj_secret, ID_A, "data/root"), before);
	cr_assert(world_marked(&w, &kobj_machine, "a", MODEL_DELIVERED_AT_ANNOTATION));
	cr_assert(key_declared(&w, ID_A));
	cr_assert_str_eq(world_reason(&w, &kobj_machine, "b", "KeyReady"), "KeyLost");
	cr_assert_null(world_get(&w, &kobj_secret, ID_B));
}

Test(ctl_machine, a_younger_secret_of_an_older_machine_is_a_conflict)
{
	world_cluster(&w, "tec", SPEC);
	old_machine("a", ID_A, false);
	world_since(&w);
	plant("a", ID_A);
	world_boot(&w, NULL);
	world_run(&w, 5000);
	cr_assert_str_eq(world_reason(&w, &kobj_machine, "a", "KeyReady"), "Conflict");
	cr_assert(!key_declared(&w, ID_A));
}

Test(ctl_machine, what_version_0_1_0_noted_otherwise_is_not_taken_over)
{
	world_cluster(&w, "tec", SPEC);
	old_machine("a", ID_A, true);
	fake_api_merge(w.api, &kobj_machine, NS, "a",
		"{\"metadata\":{\"annotations\":{\"" MODEL_KEY_SHA256_ANNOTATION "\":\"" OTHER_HASH
		"\"}}}");
	world_since(&w);
	world_boot(&w, NULL);
	world_run(&w, 5000);
	cr_assert_str_eq(world_reason(&w, &kobj_machine, "a", "KeyReady"), "Conflict");
}

Test(ctl_machine, keys_taken_over_without_a_bound_one_are_revoked_once)
{
	world_cluster(&w, "tec", SPEC_PER_MACHINE);
	old_machine("a", ID_A, true);
	world_since(&w);
	world_boot(&w, NULL);
	world_run(&w, 5000);
	cr_assert(kbs_sync_is_revoked(w.life->caches.sync, KBS_RESOURCE, "default/" ID_A "/root"));
	trustee_has_key(&w, ID_A, false);
	world_run(&w, 5000);
	cr_assert(str_ends(world_marked(&w, &kobj_machine, "a", MODEL_DELIVERED_AT_ANNOTATION),
		MODEL_DELIVERED_REVOKED));
	cr_assert_str_eq(world_cond(&w, &kobj_machine, "a", "KeyReady"), "True");
}
