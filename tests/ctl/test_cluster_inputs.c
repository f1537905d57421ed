/* SPDX-License-Identifier: MIT */
/* What restarts Trustee and what does not: its certificate and its token signers. */
#include "config.h"

#include "ctl/inputs.h"

TestSuite(ctl_cluster_inputs, .init = inputs_up, .fini = inputs_down);

/* ---- from nothing, and again */

Test(ctl_cluster_inputs, the_first_template_knows_certificate_and_signer)
{
	tls(0);
	install(TLS_SPEC);
	cr_assert_eq(strlen(noted("tls-hash")), 16);
	cr_assert_eq(strlen(noted("token-hash")), 16);
	cr_assert(mounts("trustee-token"));
	cr_assert_eq(
		json_get_int(world_get(&w, &kobj_deployment, DEPLOY), "metadata/generation", 0), 1);
}

Test(ctl_cluster_inputs, a_restart_of_the_operator_writes_nothing)
{
	uint64_t rv;

	world_cluster(&w, "tec", TLS_SPEC);
	tls(0);
	signer("trustee-token", 300, "tec");
	world_boot(&w, "cma");
	world_run(&w, 2 * HOUR); /* two signers in the template */
	cr_assert(mounts("trustee-token") && mounts("trustee-token-2"));
	rv = fake_api_rv(w.api);
	reboot();
	cr_assert_eq(fake_transport_writes(w.life->f), 0);
	cr_assert_leq(fake_transport_count(w.life->f, "get", NULL), 11);
	/* nor does one without the certificate's Secret */
	fake_api_delete(w.api, &kobj_secret, NS, "my-tls");
	reboot();
	world_run(&w, 2 * HOUR);
	cr_assert_eq(applies("deployments"), 0);
	cr_assert_eq(applies("configmaps"), 0);
	cr_assert_eq(strlen(noted("tls-hash")), 16);
	cr_assert_gt(fake_api_rv(w.api), rv); /* its absence is reported */
}

Test(ctl_cluster_inputs, a_changed_status_or_label_costs_one_read)
{
	tls(0);
	install(TLS_SPEC);
	fake_api_merge(w.api, &kobj_deployment, NS, DEPLOY, "{\"status\":{\"readyReplicas\":1}}");
	world_run(&w, 5000);
	cr_assert_eq(fake_transport_count(w.life->f, "get", NULL), 1);
	fake_api_merge(w.api, &kobj_secret, NS, "trustee-token",
		"{\"metadata\":{\"labels\":{\"a\":\"b\"}}}");
	world_run(&w, 5000);
	cr_assert_eq(fake_transport_count(w.life->f, "get", NULL), 2);
	fake_api_merge(
		w.api, &kobj_secret, NS, "my-tls", "{\"metadata\":{\"labels\":{\"a\":\"b\"}}}");
	world_run(&w, 2 * HOUR);
	/* read for the Deployment, and by who connects to Trustee (its ca.crt) */
	cr_assert_leq(fake_transport_count(w.life->f, "get", NULL), 4);
	cr_assert_eq(fake_transport_writes(w.life->f), 0);
}

/* ---- the certificate */

Test(ctl_cluster_inputs, a_rotated_certificate_is_one_restart)
{
	cleanup_free char *was = NULL;

	tls(0);
	install(TLS_SPEC);
	was = xstrdup(noted("tls-hash"));
	tls(1);
	world_run(&w, 2 * HOUR);
	cr_assert_eq(applies("deployments"), 1);
	cr_assert_eq(applies("configmaps"), 0);
	cr_assert_str_neq(noted("tls-hash"), was);
	cr_assert_eq(
		json_get_int(world_get(&w, &kobj_deployment, DEPLOY), "metadata/generation", 0), 2);
	cr_assert_eq(events_with("Restarted"), 1);
	cr_assert_eq(events_with("Repaired"), 0);
	/* only what depends on it is looked at again */
	cr_assert_eq(fake_transport_count(w.life->f, "get", "deployments"), 1);
	cr_assert_eq(fake_transport_count(w.life->f, "get", "configmaps"), 1);
	cr_assert_eq(fake_transport_count(w.life->f, "get", "services"), 0);
}

Test(ctl_cluster_inputs, each_member_of_a_certificate_counts_and_where_it_ends)
{
	/* What stands before and after the PEM of the three members. */
	static const char *const next[][3][2] = {
		{{"", ""}, {"", ""}, {"", "x"}},
		{{"", ""}, {"", "x"}, {"", "x"}},
		{{"", "x"}, {"", "x"}, {"", "x"}},
		{{"", "AA\n"}, {"", ""}, {"", ""}},
		{{"", ""}, {"AA\n", ""}, {"", ""}},
		{{"", ""}, {"", "AA\n"}, {"", ""}},
		{{"", ""}, {"", ""}, {"AA\n", ""}},
	};
	const char *pem[3];

	tls(0);
	install(TLS_SPEC);
	pem[0] = pem[2] = pair(0)->crt;
	pem[1] = pair(0)->key;
	for (size_t i = 0; i < ARRAY_LEN(next); i++) {
		char *text[3];

		for (int k = 0; k < 3; k++)
			text[k] = xasprintf("%s%s%s", next[i][k][0], pem[k], next[i][k][1]);
		tls_as("my-tls", text[0], text[1], text[2]);
		world_run(&w, 5000);
		cr_assert_eq(applies("deployments"), i + 1, "%zu: %s", i, installed_message());
		for (int k = 0; k < 3; k++)
			free(text[k]);
	}
}

Test(ctl_cluster_inputs, a_certificate_rotated_while_no_operator_ran_is_one_restart)
{
	tls(0);
	install(TLS_SPEC);
	world_kill(&w);
	tls(1);
	world_boot(&w, "cma");
	world_run(&w, 2 * HOUR);
	cr_assert_eq(applies("deployments"), 1);
	cr_assert_eq(events_with("Restarted"), 1);
	cr_assert_eq(events_with("Repaired"), 0);
}

/* With any request failing in any way: one new template, nothing twice. */
Test(ctl_cluster_inputs, a_rotation_under_faults_ends_the_same)
{
	for (int fault = FAKE_FAULT_409; fault <= FAKE_FAULT_SILENCE; fault++) {
		cleanup_free char *was = NULL;

		world_stop(&w);
		world_start(&w);
		tls(0);
		install(TLS_SPEC);
		was = xstrdup(noted("tls-hash"));
		fake_transport_fault(w.life->f, (enum fake_fault)fault, 2);
		tls(1);
		world_run(&w, HOUR);
		cr_assert_str_neq(noted("tls-hash"), was, "fault %d", fault);
		cr_assert_eq(json_get_int(world_get(&w, &kobj_deployment, DEPLOY),
				     "metadata/generation", 0),
			2, "fault %d", fault);
	}
}

Test(ctl_cluster_inputs, a_certificate_that_is_gone_or_unusable_restarts_nothing)
{
	cleanup_free char *was = NULL, *reversed = NULL;

	tls(0);
	install(TLS_SPEC);
	was = xstrdup(noted("tls-hash"));
	fake_api_delete(w.api, &kobj_secret, NS, "my-tls");
	world_run(&w, 60000);
	cr_assert(strstr(installed_message(), "does not exist"));
	tls_as("my-tls", pair(0)->crt, "", pair(0)->crt);
	world_run(&w, 60000);
	cr_assert(strstr(installed_message(), "tls.key is missing"), "%s", installed_message());
	tls_as("my-tls", "", pair(0)->key, ""); /* as cert-manager begins */
	world_run(&w, 60000);
	cr_assert(strstr(installed_message(), "tls.crt is missing"), "%s", installed_message());
	/* Trustee would not start with another's key, nor without the guard with a wrong order. */
	tls_as("my-tls", pair(0)->crt, pair(1)->key, pair(0)->crt);
	world_run(&w, 60000);
	cr_assert(strstr(installed_message(), "tls.key does not match"), "%s", installed_message());
	reversed = xasprintf("%s%s", pair(1)->crt, pair(0)->crt);
	tls_as("my-tls", reversed, pair(0)->key, pair(0)->crt);
	world_run(&w, 60000);
	cr_assert(strstr(installed_message(), "wrong order"), "%s", installed_message());
	tls(0);
	world_run(&w, 2 * HOUR);
	cr_assert(str_starts(installed_message(), "All objects are installed."));
	cr_assert_null(strstr(installed_message(), "my-tls"));
	cr_assert_eq(applies("deployments"), 0);
	cr_assert_str_eq(noted("tls-hash"), was);
}

Test(ctl_cluster_inputs, a_certificate_that_may_not_be_read_stops_nothing_else)
{
	struct fake_expect *e;

	tls(0);
	world_cluster(&w, "tec", TLS_SPEC);
	world_boot(&w, "");
	e = fake_transport_expect(w.life->f, "GET", "/api/v1/namespaces/" NS "/secrets/my-tls*");
	fake_expect_times(e, 0);
	fake_expect_answer(
		e, 403, "{\"kind\":\"Status\",\"reason\":\"Forbidden\",\"message\":\"no rights\"}");
	ctl_cluster_on(w.life->cluster);
	world_run(&w, 2 * HOUR);
	cr_assert_str_eq(world_cond(&w, &kobj_cluster, "tec", "Installed"), "True");
	cr_assert(strstr(installed_message(), "may not be read"));
	cr_assert_str_eq(noted("tls-hash"), "");
	cr_assert_leq(fake_transport_count(w.life->f, "get", "secrets"), 3);
}

Test(ctl_cluster_inputs, another_trustee_secret_is_one_restart)
{
	tls(0);
	install(TLS_SPEC);
	tls_as("new-tls", pair(1)->crt, pair(1)->key, pair(1)->crt);
	fake_api_merge(
		w.api, &kobj_cluster, NS, "tec", "{\"spec\":{\"trusteeSecret\":\"new-tls\"}}");
	world_run(&w, 2 * HOUR);
	cr_assert(mounts("new-tls") && !mounts("my-tls"));
	cr_assert_eq(applies("deployments"), 1);
	fake_api_delete(w.api, &kobj_secret, NS, "my-tls"); /* nobody's any more */
	world_run(&w, 2 * HOUR);
	cr_assert_eq(applies("deployments"), 1);
}

/* ---- signers */

Test(ctl_cluster_inputs, a_signer_near_its_end_is_replaced_in_two_restarts)
{
	cleanup_free char *first = NULL;

	world_cluster(&w, "tec", SPEC);
	signer("trustee-token", 366, "tec");
	install(SPEC);
	first = xstrdup(noted("token-hash"));
	world_run(&w, DAY + 2 * HOUR); /* less than a year now, and the new one is young */
	cr_assert(world_get(&w, &kobj_secret, "trustee-token-2"));
	cr_assert_eq(events_with("SignerMade"), 1);
	world_run(&w, 2 * HOUR);
	cr_assert_eq(applies("deployments"), 1);
	cr_assert_eq(applies("configmaps"), 1);
	cr_assert(mounts("trustee-token") && mounts("trustee-token-2"));
	cr_assert(strstr(config(), "/opt/trustee/token-old/1/cert.pem"));
	cr_assert(strstr(noted("token-hash"), first));
	world_run(&w, DAY);
	cr_assert_eq(applies("deployments"), 2);
	cr_assert_eq(applies("configmaps"), 2);
	cr_assert(!mounts("trustee-token") && mounts("trustee-token-2"));
	cr_assert_null(strstr(config(), "token-old"));
	cr_assert_null(world_get(&w, &kobj_secret, "trustee-token"));
	cr_assert_eq(events_with("Restarted"), 2);
	cr_assert_eq(events_with("Repaired"), 0);
	fake_transport_forget(w.life->f);
	world_run(&w, DAY);
	reboot();
	cr_assert_eq(fake_transport_writes(w.life->f), 0);
}

Test(ctl_cluster_inputs, a_new_signer_signs_after_an_hour)
{
	world_cluster(&w, "tec", SPEC);
	signer("trustee-token", 300, "tec");
	clock_fake_advance(2 * HOUR); /* it is not a new one itself */
	world_boot(&w, "c");
	world_run(&w, HOUR - 60000);
	cr_assert(!mounts("trustee-token-2"));
	world_run(&w, 70000);
	cr_assert(mounts("trustee-token-2"));
}

/* What Trustee mounts is known before a plan is made of it. */
Test(ctl_cluster_inputs, a_restart_beside_a_signer_that_somebody_holds_writes_nothing)
{
	world_cluster(&w, "tec", SPEC);
	signer("trustee-token", 300, "tec");
	fake_api_merge(w.api, &kobj_secret, NS, "trustee-token",
		"{\"metadata\":{\"finalizers\":[\"x/held\"]}}");
	install(SPEC);
	world_run(&w, 2 * DAY);
	cr_assert(world_str(&w, &kobj_secret, "trustee-token", "metadata/deletionTimestamp"));
	cr_assert_eq(fake_transport_count(w.life->f, "delete", "secrets"), 1);
	reboot();
	cr_assert_eq(fake_transport_writes(w.life->f), 0);
}

Test(ctl_cluster_inputs, a_signer_that_cannot_be_made_stops_no_repair)
{
	struct fake_expect *e;

	world_cluster(&w, "tec", SPEC);
	signer("trustee-token", 366, "tec");
	install(SPEC);
	e = fake_transport_expect(w.life->f, "POST", "/api/v1/namespaces/" NS "/secrets*");
	fake_expect_times(e, 0);
	fake_expect_answer(
		e, 403, "{\"kind\":\"Status\",\"reason\":\"Forbidden\",\"message\":\"quota\"}");
	world_run(&w, 2 * DAY);
	cr_assert(strstr(installed_message(), "cannot create Secret trustee-token-2: "));
	cr_assert_leq(fake_transport_count(w.life->f, "create", "secrets"), 2 * 24 * 3600 / 25);
	fake_api_delete(w.api, &kobj_service, NS, "kbs-service");
	world_run(&w, 60000);
	cr_assert(world_get(&w, &kobj_service, "kbs-service"));
}

Test(ctl_cluster_inputs, another_cluster_knows_nothing_of_the_one_before)
{
	tls(0);
	install(TLS_SPEC);
	fake_api_delete(w.api, &kobj_secret, NS, "my-tls");
	fake_api_delete(w.api, &kobj_cluster, NS, "tec");
	fake_api_collect(w.api);
	world_run(&w, 60000);
	world_cluster(&w, "tec", TLS_SPEC);
	world_run(&w, 60000);
	cr_assert(world_get(&w, &kobj_deployment, DEPLOY));
	cr_assert_str_eq(noted("tls-hash"), "");
	cr_assert_eq(strlen(noted("token-hash")), 16);
}

Test(ctl_cluster_inputs, a_kill_at_any_write_of_a_renewal_ends_the_same)
{
	for (unsigned n = 1; n <= 6; n++) {
		world_stop(&w);
		world_start(&w);
		world_cluster(&w, "tec", SPEC);
		signer("trustee-token", 300, "tec");
		world_boot(&w, "c");
		for (unsigned i = 0; i < 40; i++) {
			if (i % n == 0)
				fake_transport_die_after(w.life->f, n);
			world_run(&w, HOUR);
			if (fake_transport_is_dead(w.life->f)) {
				world_kill(&w);
				world_boot(&w, "c");
			}
		}
		world_kill(&w);
		world_boot(&w, "c");
		world_run(&w, DAY);
		cr_assert_null(world_get(&w, &kobj_secret, "trustee-token"), "%u", n);
		cr_assert(world_get(&w, &kobj_secret, "trustee-token-2"), "%u", n);
		cr_assert_null(world_get(&w, &kobj_secret, "trustee-token-3"), "%u", n);
		cr_assert(mounts("trustee-token-2") && !mounts("trustee-token"));
	}
}

Test(ctl_cluster_inputs, somebody_elses_next_signer_is_reported_and_not_touched)
{
	uint64_t rv;

	world_cluster(&w, "tec", SPEC);
	signer("trustee-token", 366, "tec");
	signer("trustee-token-2", 3650, NULL);
	install(SPEC); /* it is in nobody's way yet */
	world_run(&w, 3 * DAY);
	cr_assert_str_eq(world_reason(&w, &kobj_cluster, "tec", "Installed"), "Conflict");
	cr_assert(strstr(installed_message(), "trustee-token-2"));
	cr_assert(mounts("trustee-token") && !mounts("trustee-token-2"));
	cr_assert_eq(applies("deployments"), 0);
	rv = fake_api_rv(w.api);
	world_run(&w, DAY);
	cr_assert_eq(fake_api_rv(w.api), rv);
	fake_api_delete(w.api, &kobj_secret, NS, "trustee-token-2");
	world_run(&w, 3 * DAY);
	cr_assert_str_eq(world_cond(&w, &kobj_cluster, "tec", "Installed"), "True");
	cr_assert(mounts("trustee-token-2"));
}

Test(ctl_cluster_inputs, somebody_elses_first_signer_is_not_mounted)
{
	signer("trustee-token", 3650, NULL);
	world_cluster(&w, "tec", SPEC);
	world_boot(&w, "cma");
	world_run(&w, 60000);
	cr_assert_str_eq(world_reason(&w, &kobj_cluster, "tec", "Installed"), "Conflict");
	cr_assert(strstr(installed_message(), "trustee-token"));
	cr_assert_null(world_get(&w, &kobj_deployment, DEPLOY));
	cr_assert(world_get(&w, &kobj_service, "kbs-service")); /* the rest is */
	fake_api_delete(w.api, &kobj_secret, NS, "trustee-token");
	world_run(&w, 60000);
	cr_assert_str_eq(world_cond(&w, &kobj_cluster, "tec", "Installed"), "True");
	cr_assert(world_get(&w, &kobj_deployment, DEPLOY));
	/* ... and one that takes the place of ours later is not either */
	fake_transport_forget(w.life->f);
	signer("trustee-token", 3650, NULL);
	world_run(&w, 60000);
	cr_assert_str_eq(world_reason(&w, &kobj_cluster, "tec", "Installed"), "Conflict");
	fake_api_merge(w.api, &kobj_deployment, NS, DEPLOY, "{\"status\":{\"readyReplicas\":1}}");
	world_run(&w, 60000);
	cr_assert_eq(applies("deployments"), 0);
}

/* Made by us, and the answer was lost. */
Test(ctl_cluster_inputs, a_signer_of_ours_that_the_cache_does_not_show_is_adopted)
{
	world_cluster(&w, "tec", SPEC);
	world_boot(&w, "");
	fake_transport_latency(w.life->f, 10);
	ctl_cluster_on(w.life->cluster);
	while (!world_annotation(&w, &kobj_cluster, "tec", MODEL_ANNOUNCED_PREFIX "trustee-token"))
		world_run(&w, 1);
	world_run(&w, 9);
	fake_api_hold_watches(w.api, true);
	fake_transport_fault(w.life->f, FAKE_FAULT_CUT, 1);
	world_run(&w, 5);
	cr_assert(world_get(&w, &kobj_secret, "trustee-token"));
	world_run(&w, 20);
	fake_transport_fault(w.life->f, FAKE_FAULT_CUT, 0);
	world_run(&w, 60000);
	cr_assert(world_get(&w, &kobj_deployment, DEPLOY));
	cr_assert_eq(strlen(noted("token-hash")), 16);
	cr_assert_eq(fake_api_count(w.api, &kobj_secret, NS), 2);
	fake_api_hold_watches(w.api, false);
	world_run(&w, 60000);
	cr_assert_str_eq(world_cond(&w, &kobj_cluster, "tec", "Installed"), "True");
}

/* Who may create Secrets and sees the cluster object: the right type, members and owner. */
Test(ctl_cluster_inputs, a_planted_signer_is_reported_and_never_used)
{
	cleanup_free char *was = NULL;

	install(SPEC);
	was = xstrdup(noted("token-hash"));
	signer("trustee-token-2", 7300, "tec");
	world_run(&w, 2 * DAY);
	cr_assert_str_eq(world_reason(&w, &kobj_cluster, "tec", "Installed"), "Conflict");
	cr_assert(strstr(installed_message(), "kubectl delete secret trustee-token-2 -n " NS));
	cr_assert_eq(events_with("Conflict"), 1);
	cr_assert(mounts("trustee-token") && !mounts("trustee-token-2"));
	cr_assert_str_eq(noted("token-hash"), was);
	cr_assert_eq(applies("deployments"), 0);
	cr_assert_eq(fake_transport_count(w.life->f, "delete", NULL), 0);
	reboot();
	cr_assert_eq(fake_transport_writes(w.life->f), 0);
	signer("trustee-token-3", 7300, "tec");
	fake_api_delete(w.api, &kobj_secret, NS, "trustee-token-2");
	world_run(&w, 60000);
	cr_assert(strstr(installed_message(), "kubectl delete secret trustee-token-3 "));
	cr_assert_eq(events_with("Conflict"), 1); /* each is named once */
	fake_api_delete(w.api, &kobj_secret, NS, "trustee-token-3");
	world_run(&w, 60000);
	cr_assert_str_eq(world_cond(&w, &kobj_cluster, "tec", "Installed"), "True");
	cr_assert_eq(applies("deployments"), 0);
}

Test(ctl_cluster_inputs, a_planted_signer_does_not_sign_before_ours_is_made)
{
	world_boot(&w, "cma");
	world_run(&w, 2000);
	fake_api_hold_watches(w.api, true); /* the operator is late */
	world_cluster(&w, "tec", SPEC);
	signer("trustee-token", 7300, "tec");
	fake_api_hold_watches(w.api, false);
	world_run(&w, 60000);
	cr_assert_null(world_get(&w, &kobj_deployment, DEPLOY));
	cr_assert_str_eq(world_reason(&w, &kobj_cluster, "tec", "Installed"), "Conflict");
	fake_api_delete(w.api, &kobj_secret, NS, "trustee-token");
	world_run(&w, 60000);
	cr_assert_str_eq(world_cond(&w, &kobj_cluster, "tec", "Installed"), "True");
	cr_assert(mounts("trustee-token"));
}

Test(ctl_cluster_inputs, what_a_planted_signer_grew_out_of_ours_is_not_ours)
{
	install(SPEC);
	fake_api_merge(w.api, &kobj_secret, NS, "trustee-token",
		"{\"data\":{\"key.pem\":\"QkI=\"}}"); /* who may patch */
	world_run(&w, 60000);
	cr_assert_str_eq(world_reason(&w, &kobj_cluster, "tec", "Installed"), "Conflict");
	cr_assert_eq(applies("deployments"), 0);
	fake_api_merge(w.api, &kobj_deployment, NS, DEPLOY, "{\"spec\":{\"replicas\":3}}");
	world_run(&w, 60000);
	cr_assert_eq(applies("deployments"), 0); /* not written to mount it */
}

Test(ctl_cluster_inputs, an_administrator_adopts_what_came_later)
{
	char time[CLOCK_RFC3339_LEN];
	cleanup_free char *patch = NULL;

	install(SPEC);
	world_run(&w, 2 * DAY);
	signer("trustee-token-2", 7300, "tec");
	world_run(&w, HOUR);
	clock_format(clock_wall_s() + 86400, time);
	patch = xasprintf("{\"metadata\":{\"annotations\":{\"" MODEL_ADOPT_BEFORE_ANNOTATION
			  "\":\"%s\"}}}",
		time);
	fake_api_merge(w.api, &kobj_cluster, NS, "tec", patch);
	world_run(&w, 60000); /* in the future: taken off */
	cr_assert_null(world_annotation(&w, &kobj_cluster, "tec", MODEL_ADOPT_BEFORE_ANNOTATION));
	cr_assert_eq(events_with("AdoptBeforeIgnored"), 1);
	cr_assert(!mounts("trustee-token-2"));
	free(steal_ptr(&patch));
	clock_format(clock_wall_s(), time);
	patch = xasprintf("{\"metadata\":{\"annotations\":{\"" MODEL_ADOPT_BEFORE_ANNOTATION
			  "\":\"%s\"}}}",
		time);
	fake_api_merge(w.api, &kobj_cluster, NS, "tec", patch);
	world_run(&w, 2 * HOUR);
	cr_assert(mounts("trustee-token-2"));
	cr_assert_str_eq(world_cond(&w, &kobj_cluster, "tec", "Installed"), "True");
	cr_assert(world_annotation(
		&w, &kobj_cluster, "tec", MODEL_ANNOUNCED_PREFIX "trustee-token-2"));
}

Test(ctl_cluster_inputs, announcements_go_with_their_secrets)
{
	world_cluster(&w, "tec", SPEC);
	signer("trustee-token", 366, "tec");
	install(SPEC);
	cr_assert(
		world_annotation(&w, &kobj_cluster, "tec", MODEL_ANNOUNCED_PREFIX "trustee-token"));
	fake_api_merge(w.api, &kobj_cluster, NS, "tec",
		"{\"metadata\":{\"annotations\":{\"" MODEL_ANNOUNCED_PREFIX
		"trustee-token-9\":\"other-uid 00\"}}}");
	world_run(&w, 3 * DAY);
	cr_assert_null(world_get(&w, &kobj_secret, "trustee-token"));
	cr_assert_null(
		world_annotation(&w, &kobj_cluster, "tec", MODEL_ANNOUNCED_PREFIX "trustee-token"));
	cr_assert_null(world_annotation(
		&w, &kobj_cluster, "tec", MODEL_ANNOUNCED_PREFIX "trustee-token-9"));
	cr_assert(world_annotation(
		&w, &kobj_cluster, "tec", MODEL_ANNOUNCED_PREFIX "trustee-token-2"));
}

Test(ctl_cluster_inputs, a_deleted_signer_is_replaced_with_one_restart)
{
	cleanup_free char *was = NULL;

	install(SPEC);
	was = xstrdup(noted("token-hash"));
	fake_api_delete(w.api, &kobj_secret, NS, "trustee-token");
	world_run(&w, 2 * HOUR);
	cr_assert(world_get(&w, &kobj_secret, "trustee-token"));
	cr_assert_str_neq(noted("token-hash"), was);
	cr_assert_eq(applies("deployments"), 1);
}

Test(ctl_cluster_inputs, a_signer_whose_certificate_is_none_is_replaced)
{
	world_cluster(&w, "tec", SPEC);
	signer("trustee-token", 3650, "tec");
	fake_api_merge(
		w.api, &kobj_secret, NS, "trustee-token", "{\"data\":{\"cert.pem\":\"eA==\"}}");
	install(SPEC);
	world_run(&w, 3 * DAY);
	cr_assert(mounts("trustee-token-2") && !mounts("trustee-token"));
	cr_assert_null(world_get(&w, &kobj_secret, "trustee-token"));
}
