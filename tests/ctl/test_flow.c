/* SPDX-License-Identifier: MIT */
/*
 * One story with everything in it, told over and over: with every fault at every request, and with
 * a kill at every write. Its end must be the same, and no disk key may ever be another one than the
 * first that was noted.
 */
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

#define SPEC                                                                                        \
	"{\"publicTrusteeAddr\":\"kbs-service\",\"publicAttestationKeyRegisterAddr\":\"reg:8001\"," \
	"\"registration\":{\"pendingTTL\":\"240h\"}}"

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

TestSuite(ctl_flow, .init = up, .fini = down, .timeout = 600);

static enum fake_fault fault;
static unsigned nth, deaths;

static void arm_fault(void)
{
	fake_transport_fault(w.life->f, fault, nth);
}

/* Once. */
static void arm_death(void)
{
	if (deaths == 0)
		fake_transport_die_after(w.life->f, nth);
}

static void arm_every_death(void)
{
	fake_transport_die_after(w.life->f, nth);
}

/* Boots again when the operator was killed. */
static bool revive(void)
{
	if (!fake_transport_is_dead(w.life->f))
		return false;
	world_kill(&w);
	deaths++;
	world_boot(&w, NULL);
	return true;
}

static char *key_of(const char *id)
{
	const char *root = world_str(&w, &kobj_secret, id, "data/root");

	return root ? xstrdup(root) : NULL;
}

/* The key that was noted is the key that is there. */
static void check_key(const char *machine, const char *id, char **first)
{
	bool noted = world_get(&w, &kobj_machine, machine) &&
		     world_annotation(&w, &kobj_machine, machine, MODEL_KEY_SHA256_ANNOTATION);
	cleanup_free char *now = key_of(id);

	if (!*first && noted && now)
		*first = steal_ptr(&now);
	else if (*first && world_get(&w, &kobj_machine, machine))
		cr_assert_str_eq(now, *first);
}

static void run_checked(uint64_t ms, char **first_a, char **first_b)
{
	for (uint64_t t = 0; t < ms; t += 500) {
		world_run(&w, 500);
		revive();
		check_key("a", ID_A, first_a);
		check_key("b", ID_B, first_b);
	}
}

/* Trustee answers what it is asked to hold; a new life has to be told again. */
static void confirm_all_gone(void)
{
	trustee_has_key(&w, ID_A, false);
	trustee_has_identity(&w, test_pem[0], ID_A, false);
	trustee_has_identity(&w, test_pem[1], ID_A, false);
}

static void end_state(void)
{
	cr_assert_null(world_get(&w, &kobj_machine, "a"));
	cr_assert_str_eq(world_reason(&w, &kobj_ak, "k0", "Approved"),
		"Registration"); /* replaced, not deleted */
	cr_assert_null(world_get(&w, &kobj_ak, "k1"));
	cr_assert_null(world_get(&w, &kobj_secret, ID_A));
	cr_assert_null(world_get(&w, &kobj_secret, "k0"));
	cr_assert_null(world_get(&w, &kobj_secret, "k1"));
	cr_assert_str_eq(world_cond(&w, &kobj_machine, "b", "KeyReady"), "True");
	cr_assert_str_eq(world_cond(&w, &kobj_machine, "b", "AttestationKeyBound"), "True");
	cr_assert(world_get(&w, &kobj_secret, ID_B));
	cr_assert(world_get(&w, &kobj_secret, "k2"));
	cr_assert_str_eq(world_cond(&w, &kobj_ak, "k2", "Approved"), "True");
	cr_assert_str_eq(world_cond(&w, &kobj_cluster, "tec", "Installed"), "True");
	cr_assert(key_declared(&w, ID_B));
	cr_assert(identity_declared(&w, test_pem[2]));
	cr_assert(!key_declared(&w, ID_A));
	cr_assert(!identity_declared(&w, test_pem[0]));
	cr_assert(!identity_declared(&w, test_pem[1]));
	cr_assert_eq(fake_api_count(w.api, &kobj_secret, NS), 4); /* and the cluster's two */
}

static void tell_story(void (*arm)(void), uint64_t patience_ms)
{
	w.arm = arm;
	deaths = 0;
	cleanup_free char *first_a = NULL;
	cleanup_free char *first_b = NULL;

	world_cluster(&w, "tec", SPEC);
	world_machine(&w, "a", ID_A, "listener");
	world_ak(&w, "k0", test_pem[0], ID_A, "listener");
	world_machine(&w, "b", ID_B, NULL);
	world_boot(&w, NULL);
	run_checked(patience_ms, &first_a, &first_b);
	world_ak(&w, "k2", test_pem[2], ID_B, NULL);
	world_ak(&w, "k1", test_pem[1], ID_A, NULL);
	run_checked(patience_ms, &first_a, &first_b);
	fake_api_merge(w.api, &kobj_ak, NS, "k1",
		"{\"metadata\":{\"annotations\":{\"" MODEL_APPROVED_ANNOTATION "\":\"true\"}}}");
	run_checked(patience_ms, &first_a, &first_b);
	cr_assert(first_a && first_b);
	cr_assert(!identity_declared(&w, test_pem[1])); /* the old one is not confirmed gone */
	fake_api_delete(w.api, &kobj_machine, NS, "a");
	run_checked(patience_ms, &first_a, &first_b);
	cr_assert(world_get(&w, &kobj_machine, "a")); /* nothing goes before Trustee has spoken */
	for (int i = 0; i < 12; i++) {
		confirm_all_gone();
		run_checked(patience_ms / 4, &first_a, &first_b);
		fake_api_collect(w.api);
	}
	cr_assert_not_null(world_get(&w, &kobj_secret, ID_B));
}

/* The faults end; what is left to do is done. */
static void calm_down(void)
{
	w.arm = NULL;
	fake_transport_fault(w.life->f, fault, 0);
	for (int i = 0; i < 8; i++) {
		world_run(&w, 90000);
		confirm_all_gone();
		fake_api_collect(w.api);
	}
	end_state();
}

static void again(void)
{
	down();
	up();
}

Test(ctl_flow, undisturbed)
{
	tell_story(NULL, 10000);
	end_state();
}

static void with_fault(enum fake_fault f, unsigned from, unsigned to)
{
	for (nth = from; nth <= to; nth++) {
		fault = f;
		tell_story(arm_fault, 60000);
		calm_down();
		again();
	}
}

Test(ctl_flow, conflicts)
{
	with_fault(FAKE_FAULT_409, 2, 12);
}

Test(ctl_flow, expired_watches)
{
	with_fault(FAKE_FAULT_410, 2, 6);
}

Test(ctl_flow, too_many_requests)
{
	with_fault(FAKE_FAULT_429, 2, 12);
}

Test(ctl_flow, server_errors)
{
	with_fault(FAKE_FAULT_500, 2, 12);
}

Test(ctl_flow, answers_that_are_lost)
{
	with_fault(FAKE_FAULT_CUT, 2, 12);
}

Test(ctl_flow, silence)
{
	with_fault(FAKE_FAULT_SILENCE, 3, 9);
}

/* Killed after the nth write of a life, once. */
Test(ctl_flow, killed_at_every_write)
{
	for (nth = 1; nth <= 60; nth++) {
		tell_story(arm_death, 10000);
		if (nth < 50)
			cr_assert_eq(deaths, 1);
		calm_down();
		again();
	}
}

Test(ctl_flow, every_life_dies_after_a_few_writes)
{
	/* A key that was announced is made by nobody else: a life has to get from one to the other,
	 * with two Machines at once. */
	for (nth = 4; nth <= 8; nth++) {
		cleanup_free char *first_a = NULL;
		cleanup_free char *first_b = NULL;

		world_cluster(&w, "tec", SPEC);
		world_machine(&w, "a", ID_A, "listener");
		world_ak(&w, "k0", test_pem[0], ID_A, "listener");
		world_machine(&w, "b", ID_B, NULL);
		world_ak(&w, "k2", test_pem[2], ID_B, NULL);
		deaths = 0;
		w.arm = arm_every_death;
		world_boot(&w, NULL);
		for (int i = 0; i < 200; i++) {
			world_run(&w, 1000);
			check_key("a", ID_A, &first_a);
			check_key("b", ID_B, &first_b);
			revive();
		}
		cr_assert_geq(deaths, 2, "%u", deaths);
		w.arm = NULL;
		world_kill(&w);
		world_boot(&w, NULL);
		world_run(&w, 10000);
		check_key("a", ID_A, &first_a);
		cr_assert(first_a && first_b);
		cr_assert_str_eq(world_cond(&w, &kobj_machine, "a", "AttestationKeyBound"), "True");
		cr_assert_str_eq(world_cond(&w, &kobj_machine, "b", "AttestationKeyBound"), "True");
		cr_assert_eq(fake_api_count(w.api, &kobj_secret, NS), 6);
		again();
	}
}
