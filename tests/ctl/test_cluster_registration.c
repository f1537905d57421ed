/* SPDX-License-Identifier: MIT */
/* The registration key, and what the cluster says about who can register. */
#include "config.h"

#include <stdio.h>

#include "ctl/inputs.h"
#include "ctl/keys.h"
#include "tec/model/cluster.h"
#include "tec/render/regkey.h"

#define AT_KEY                                                                                      \
	"{\"publicTrusteeAddr\":\"kbs-service\",\"publicAttestationKeyRegisterAddr\":\"reg:8001\"," \
	"\"registration\":{\"machine\":\"AtKey\"}}"
/* Ids live for a minute, a key for 500 of them. */
#define AT_KEY_SHORT                                                                                \
	"{\"publicTrusteeAddr\":\"kbs-service\",\"publicAttestationKeyRegisterAddr\":\"reg:8001\"," \
	"\"registration\":{\"machine\":\"AtKey\",\"pendingTTL\":\"1m\"}}"
#define MINUTE   60000ull
#define CURRENT  RENDER_REGKEY_CURRENT
#define PREVIOUS RENDER_REGKEY_PREVIOUS

TestSuite(ctl_cluster_registration, .init = inputs_up, .fini = inputs_down, .timeout = 120);

/* ---- the key */

/* The 32 bytes as base64; "": there is no such Secret. */
static const char *key(const char *secret)
{
	struct json_object *o = world_get(&w, &kobj_secret, secret);

	return o ? json_get_str(o, "data/key") : "";
}

static const char *announced(const char *secret)
{
	cleanup_free char *name = xasprintf(MODEL_ANNOUNCED_PREFIX "%s", secret);

	return world_annotation(&w, &kobj_cluster, "tec", name);
}

static void plant(const char *name)
{
	cleanup_free char *text = xasprintf(
		"{\"metadata\":{\"name\":\"%s\",\"ownerReferences\":[{\"apiVersion\":\"x/v1\",\"kind\":"
		"\"TrustedExecutionCluster\",\"name\":\"tec\",\"uid\":\"%s\",\"controller\":true}]},\"type\":"
		"\"Opaque\",\"immutable\":true,\"data\":{\"key\":\"AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA=\"}}",
		name, world_str(&w, &kobj_cluster, "tec", "metadata/uid"));

	fake_api_put(w.api, &kobj_secret, NS, text);
}

static void set_machine(const char *how)
{
	cleanup_free char *patch =
		xasprintf("{\"spec\":{\"registration\":{\"machine\":\"%s\"}}}", how);

	fake_api_merge(w.api, &kobj_cluster, NS, "tec", patch);
	world_run(&w, 60000);
}

Test(ctl_cluster_registration, the_key_is_made_for_AtKey_only)
{
	struct json_object *o;

	install(SPEC);
	cr_assert_str_eq(key(CURRENT), "");
	set_machine("AtKey");
	o = world_get(&w, &kobj_secret, CURRENT);
	cr_assert(o);
	cr_assert_eq(strlen(key(CURRENT)), 44);
	cr_assert(json_get_bool(o, "immutable", false));
	cr_assert(kobj_owner_is_exactly(o, world_str(&w, &kobj_cluster, "tec", "metadata/uid")));
	cr_assert(announced(CURRENT));
	cr_assert_null(world_get(&w, &kobj_secret, PREVIOUS));
	cr_assert_str_eq(world_reason(&w, &kobj_cluster, "tec", "RegistrationOpen"), "Open");
	fake_transport_forget(w.life->f);
	world_run(&w, DAY);
	reboot();
	cr_assert_eq(fake_transport_writes(w.life->f), 0);
}

Test(ctl_cluster_registration, a_key_is_replaced_and_the_old_one_counts_on)
{
	cleanup_free char *was = NULL;

	install(AT_KEY);
	was = xstrdup(key(CURRENT));
	world_run(&w, 30 * DAY - HOUR);
	cr_assert_str_eq(key(CURRENT), was);
	world_run(&w, 2 * HOUR);
	cr_assert_str_neq(key(CURRENT), "");
	cr_assert_str_neq(key(CURRENT), was);
	cr_assert_str_eq(key(PREVIOUS), was);
	world_run(&w, 3 * DAY - 4 * HOUR);
	cr_assert_str_eq(key(PREVIOUS), was);
	world_run(&w, 6 * HOUR);
	cr_assert_str_eq(key(PREVIOUS), "");
	cr_assert_null(announced(PREVIOUS));
	cr_assert_str_eq(world_cond(&w, &kobj_cluster, "tec", "Installed"), "True");
	cr_assert_eq(events_with("Repaired"), 0);
}

/* The old key can be looked up at each moment: ids that were handed out are valid. */
Test(ctl_cluster_registration, a_kill_at_any_write_of_a_change_ends_the_same)
{
	for (unsigned n = 1; n <= 8; n++) {
		cleanup_free char *was = NULL;
		unsigned deaths = 0;

		world_stop(&w);
		world_start(&w);
		install(AT_KEY_SHORT);
		was = xstrdup(key(CURRENT));
		world_run(&w, 498 * MINUTE);
		fake_transport_die_after(w.life->f, n);
		for (unsigned i = 0; i < 15; i++) {
			world_run(&w, 10000);
			cr_assert(str_eq(key(CURRENT), was) || str_eq(key(PREVIOUS), was), "%u", n);
			if (!fake_transport_is_dead(w.life->f))
				continue;
			world_kill(&w);
			world_boot(&w, "c");
			if (++deaths < 4)
				fake_transport_die_after(w.life->f, n);
		}
		world_kill(&w);
		world_boot(&w, "c");
		world_run(&w, MINUTE);
		cr_assert(deaths > 0 || n > 5);
		cr_assert_str_neq(key(CURRENT), was, "%u", n);
		cr_assert_str_neq(key(CURRENT), "", "%u", n);
		cr_assert_str_eq(key(PREVIOUS), was, "%u", n);
		world_run(&w, 5 * MINUTE);
		cr_assert_str_eq(key(PREVIOUS), "", "%u", n);
		cr_assert_str_eq(world_cond(&w, &kobj_cluster, "tec", "Installed"), "True");
	}
}

Test(ctl_cluster_registration, a_planted_key_is_reported_and_not_copied)
{
	world_boot(&w, "c");
	world_run(&w, 2000);
	fake_api_hold_watches(w.api, true);
	world_cluster(&w, "tec", AT_KEY_SHORT);
	plant(CURRENT);
	fake_api_hold_watches(w.api, false);
	world_run(&w, 60000);
	cr_assert_str_eq(world_reason(&w, &kobj_cluster, "tec", "Installed"), "Conflict");
	cr_assert(strstr(installed_message(), "kubectl delete secret " CURRENT " -n " NS));
	cr_assert_str_eq(
		world_reason(&w, &kobj_cluster, "tec", "RegistrationOpen"), "NoRegistrationKey");
	world_run(&w, 600 * MINUTE);
	cr_assert_null(world_get(&w, &kobj_secret, PREVIOUS));
	cr_assert_str_eq(key(CURRENT), "AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA=");
	cr_assert_null(announced(CURRENT));
	fake_api_delete(w.api, &kobj_secret, NS, CURRENT);
	world_run(&w, 60000);
	cr_assert(announced(CURRENT));
	cr_assert_str_eq(world_cond(&w, &kobj_cluster, "tec", "Installed"), "True");
	cr_assert_str_eq(world_reason(&w, &kobj_cluster, "tec", "RegistrationOpen"), "Open");
}

Test(ctl_cluster_registration, a_planted_previous_key_stops_the_change_only)
{
	cleanup_free char *was = NULL;

	install(AT_KEY_SHORT);
	was = xstrdup(key(CURRENT));
	plant(PREVIOUS);
	world_run(&w, 510 * MINUTE);
	cr_assert_str_eq(key(CURRENT), was);
	cr_assert_str_eq(key(PREVIOUS), "AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA=");
	cr_assert_null(announced(PREVIOUS));
	cr_assert(strstr(installed_message(), "kubectl delete secret " PREVIOUS));
	cr_assert_str_eq(world_reason(&w, &kobj_cluster, "tec", "RegistrationOpen"), "Open");
	fake_api_delete(w.api, &kobj_secret, NS, PREVIOUS);
	world_run(&w, MINUTE);
	cr_assert_str_eq(key(PREVIOUS), was);
	cr_assert_str_neq(key(CURRENT), was);
}

Test(ctl_cluster_registration, a_deleted_key_is_another_one_and_the_old_one_does_not_come_back)
{
	cleanup_free char *was = NULL, *text = NULL;

	install(AT_KEY);
	was = xstrdup(key(CURRENT));
	text = json_text(world_get(&w, &kobj_secret, CURRENT));
	fake_api_delete(w.api, &kobj_secret, NS, CURRENT);
	world_run(&w, 60000);
	cr_assert_str_neq(key(CURRENT), was);
	fake_api_delete(w.api, &kobj_secret, NS, CURRENT);
	fake_api_put(w.api, &kobj_secret, NS, text); /* somebody knows it */
	world_run(&w, 60000);
	cr_assert_str_eq(world_reason(&w, &kobj_cluster, "tec", "Installed"), "Conflict");
}

Test(ctl_cluster_registration, back_to_AtRequest_the_key_stays_for_nodes_on_their_way)
{
	cleanup_free char *was = NULL;

	install(AT_KEY_SHORT);
	was = xstrdup(key(CURRENT));
	world_run(&w, 300 * MINUTE);
	set_machine("AtRequest");
	world_run(&w, 200 * MINUTE);
	cr_assert_str_eq(key(CURRENT), was);
	world_run(&w, 5 * MINUTE);
	cr_assert_str_eq(key(CURRENT), "");
	cr_assert_null(announced(CURRENT));
	set_machine("AtKey");
	cr_assert_str_neq(key(CURRENT), "");
	cr_assert_str_neq(key(CURRENT), was);
}

/* ---- who can register */

static const char *open_message(void)
{
	const char *s =
		fake_api_condition(w.api, &kobj_cluster, NS, "tec", "RegistrationOpen", "message");

	return s ? s : "";
}

static void machine(unsigned n, const char *by)
{
	char name[32], id[64];

	snprintf(name, sizeof(name), "m%u", n);
	snprintf(id, sizeof(id), "00000000-0000-4000-8000-%012u", n);
	world_machine(&w, name, id, by);
}

Test(ctl_cluster_registration, counts_are_reported)
{
	install(SPEC);
	cr_assert_str_eq(world_cond(&w, &kobj_cluster, "tec", "RegistrationOpen"), "True");
	cr_assert(strstr(open_message(), "0 Machines and 0 keys (registration.pendingLimit 10000"));
	machine(1, "listener");
	machine(2, NULL); /* an administrator's is not waited for */
	world_ak(&w, "k", test_pem[0], ID_B, "listener");
	world_run(&w, 120000);
	cr_assert(strstr(open_message(), "1 Machines and 1 keys"), "%s", open_message());
	cr_assert(strstr(open_message(), "in total: 2"));
	cr_assert(strstr(open_message(), "listeners created 0 for a registered key"));
	world_machine(&w, "by-key", "00000000-0000-8000-8000-000000000003", "listener");
	world_run(&w, 120000);
	cr_assert(strstr(open_message(), "in total: 3"), "%s", open_message());
	cr_assert(strstr(open_message(), "listeners created 1 for a registered key"));
	cr_assert_eq(events_with("Open"), 0);
}

Test(ctl_cluster_registration, a_crowd_costs_one_status_a_minute)
{
	install(SPEC);
	w.life->env.repeat_revoked_ms = 0;
	ctl_kind_off(w.life->machine); /* what is delivered has counts of its own */
	world_run(&w, 60000);
	fake_transport_forget(w.life->f);
	for (unsigned i = 0; i < 300; i++) {
		machine(i, "listener");
		world_run(&w, 1000);
	}
	cr_assert_leq(applies("trustedexecutionclusters"), 6);
	world_run(&w, 60000);
	cr_assert(strstr(open_message(), "300 Machines"));
}

/* A person who looks soon after a burst sees all of it, although a status was written meanwhile. */
Test(ctl_cluster_registration, the_end_of_a_burst_is_counted_soon)
{
	install(SPEC);
	fake_transport_forget(w.life->f);
	for (unsigned i = 0; i < 60; i++) {
		machine(i, "listener");
		world_run(&w, 50);
	}
	world_run(&w, 4000);
	cr_assert(strstr(open_message(), "in total: 60 "), "%s", open_message());
	cr_assert(strstr(open_message(), ": 60 Machines and 0 keys"), "%s", open_message());
	cr_assert_leq(applies("trustedexecutionclusters"), 4);
}

Test(ctl_cluster_registration, a_limit_is_reported_with_an_event_and_what_to_do)
{
	install("{\"publicTrusteeAddr\":\"kbs-service\",\"registration\":{\"pendingLimit\":3}}");
	for (unsigned i = 0; i < 3; i++)
		machine(i, "listener");
	world_run(&w, 30000);
	cr_assert_str_eq(world_cond(&w, &kobj_cluster, "tec", "RegistrationOpen"), "False");
	cr_assert_str_eq(
		world_reason(&w, &kobj_cluster, "tec", "RegistrationOpen"), "PendingLimitReached");
	cr_assert(strstr(open_message(), "3 Machines"));
	cr_assert(strstr(open_message(), "kubectl get machines"));
	cr_assert_eq(events_with("PendingLimitReached"), 1);
	fake_api_delete(w.api, &kobj_machine, NS, "m0");
	ctl_kind_off(w.life->machine);
	fake_api_merge(w.api, &kobj_machine, NS, "m0", "{\"metadata\":{\"finalizers\":null}}");
	world_run(&w, 30000);
	cr_assert_str_eq(world_reason(&w, &kobj_cluster, "tec", "RegistrationOpen"), "Open");
	cr_assert_eq(events_with("Open"), 1);
}

Test(ctl_cluster_registration, around_a_limit_it_flips_every_ten_seconds_at_most)
{
	install("{\"publicTrusteeAddr\":\"kbs-service\",\"registration\":{\"pendingLimit\":3}}");
	ctl_kind_off(w.life->machine);
	machine(0, "listener");
	machine(1, "listener");
	world_run(&w, 60000);
	fake_transport_forget(w.life->f);
	for (unsigned i = 0; i < 60; i++) {
		machine(2, "listener");
		world_run(&w, 1500);
		fake_api_delete(w.api, &kobj_machine, NS, "m2");
		world_run(&w, 500);
	}
	cr_assert_leq(applies("trustedexecutionclusters"), 13);
}

Test(ctl_cluster_registration, the_other_reasons)
{
	install("{\"publicTrusteeAddr\":\"kbs-service\",\"registration\":{\"machineLimit\":1}}");
	machine(0, NULL);
	world_run(&w, 30000);
	cr_assert_str_eq(
		world_reason(&w, &kobj_cluster, "tec", "RegistrationOpen"), "MachineLimitReached");
	fake_api_merge(w.api, &kobj_cluster, NS, "tec",
		"{\"spec\":{\"registration\":{\"pendingLimit\":1,\"machineLimit\":5}}}");
	world_ak(&w, "k", test_pem[0], ID_B, "listener");
	world_run(&w, 30000);
	cr_assert_str_eq(
		world_reason(&w, &kobj_cluster, "tec", "RegistrationOpen"), "PendingLimitReached");
	cr_assert(strstr(open_message(), "kubectl get attestationkeys"));
	fake_api_merge(w.api, &kobj_cluster, NS, "tec",
		"{\"spec\":{\"registration\":{\"mode\":\"Manual\"}}}");
	world_run(&w, 30000);
	cr_assert_str_eq(world_reason(&w, &kobj_cluster, "tec", "RegistrationOpen"), "ModeManual");
	world_cluster(&w, "zz", SPEC);
	world_run(&w, 30000);
	cr_assert_str_eq(world_reason(&w, &kobj_cluster, "zz", "RegistrationOpen"), "NotServed");
	cr_assert_eq(events_with("ModeManual") + events_with("NotServed"), 0);
}

/* ---- who can read a disk key */

#define ADDR            "\"publicTrusteeAddr\":\"kbs-service\""
#define SHARED          "\"trustee\":{\"keyIsolation\":\"Shared\"}"
#define VOLUMES         "\"trustee\":{\"keyIsolation\":\"Shared\",\"delivery\":\"Volumes\"}"
#define REGISTRATION(m) "\"registration\":{" m "}"

Test(ctl_cluster_registration, who_can_read_a_disk_key)
{
	static const struct {
		const char *spec, *reason;
	} cases[] = {
		{"{" ADDR "}", "PerMachine"},
		{"{" ADDR "," REGISTRATION("\"mode\":\"Manual\"") "}", "PerMachine"},
		{"{" ADDR "," SHARED "}", "SharedWithStrangers"},
		{"{" ADDR "," VOLUMES "}", "SharedWithStrangers"},
		{"{" ADDR "," SHARED "," REGISTRATION("\"machine\":\"AtRequest\"") "}",
			"SharedWithStrangers"},
		{"{" ADDR "," SHARED "," REGISTRATION("\"mode\":\"Manual\"") "}",
			"SharedAmongNodes"},
		{"{" ADDR "," SHARED "," REGISTRATION("\"approval\":\"Manual\"") "}",
			"SharedAmongNodes"},
	};

	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		const char *status = str_eq(cases[i].reason, "PerMachine") ? "True" : "False", *m;

		world_stop(&w);
		world_start(&w);
		world_cluster(&w, "tec", cases[i].spec);
		world_boot(&w, "c");
		world_run(&w, 30000);
		cr_assert_str_eq(world_reason(&w, &kobj_cluster, "tec", "KeysIsolated"),
			cases[i].reason, "%s", cases[i].spec);
		cr_assert_str_eq(world_cond(&w, &kobj_cluster, "tec", "KeysIsolated"), status);
		m = fake_api_condition(w.api, &kobj_cluster, NS, "tec", "KeysIsolated", "message");
		cr_assert_eq(!strstr(m, "delivery Volumes requires Shared"),
			!strstr(cases[i].spec, "Volumes"), "%s", m);
	}
	world_cluster(&w, "zz", SPEC);
	world_run(&w, 30000);
	cr_assert_str_eq(world_reason(&w, &kobj_cluster, "zz", "KeysIsolated"), "NotServed");
}

Test(ctl_cluster_registration, what_is_shared_with_strangers_is_one_event_for_each_change)
{
	install("{" ADDR "," SHARED "}");
	world_run(&w, DAY);
	reboot();
	cr_assert_eq(events_with("SharedWithStrangers"), 0);
	fake_api_merge(w.api, &kobj_cluster, NS, "tec",
		"{\"spec\":{\"registration\":{\"approval\":\"Manual\"}}}");
	world_run(&w, 60000);
	fake_api_merge(w.api, &kobj_cluster, NS, "tec",
		"{\"spec\":{\"registration\":{\"approval\":\"Automatic\"}}}");
	world_run(&w, DAY);
	cr_assert_eq(events_with("SharedWithStrangers"), 1);
	cr_assert_eq(events_with("SharedAmongNodes") + events_with("PerMachine"), 0);
}
