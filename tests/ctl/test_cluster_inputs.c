/* SPDX-License-Identifier: MIT */
/* What restarts Trustee and what does not: its certificate, its token signers, another operator's
 * Deployment. */
#include "config.h"

#include <criterion/criterion.h>
#include <stdio.h>
#include <string.h>

#include "ctl/keys.h"
#include "ctl/world.h"
#include "tec/base/clock.h"
#include "tec/base/json.h"
#include "tec/base/mem.h"
#include "tec/kobj/owner.h"
#include "tec/model/ak.h"
#include "tec/model/machine.h"
#include "tec/pki/cert.h"
#include "tec/pki/key.h"
#include "tec/render/token.h"

#define SPEC     "{\"publicTrusteeAddr\":\"kbs-service\"}"
#define TLS_SPEC "{\"publicTrusteeAddr\":\"kbs-service\",\"trusteeSecret\":\"my-tls\"}"
#define DEPLOY   "trustee-deployment"
#define HOUR     3600000ull
#define DAY      (24 * HOUR)

static struct world w;

static void up(void)
{
	world_start(&w);
}

static void down(void)
{
	world_stop(&w);
}

TestSuite(ctl_cluster_inputs, .init = up, .fini = down);

/* ---- the hands of others */

static void tls(const char *crt, const char *key, const char *ca)
{
	cleanup_free char *text = xasprintf(
		"{\"metadata\":{\"name\":\"my-tls\"},\"type\":\"kubernetes.io/tls\",\"data\":{"
		"\"tls.crt\":\"%s\",\"tls.key\":\"%s\",\"ca.crt\":\"%s\"}}",
		crt, key, ca);

	fake_api_put(w.api, &kobj_secret, NS, text);
}

/* A signer as we make it, whose certificate ends in so many days; cluster NULL: nobody's. */
static void signer(const char *name, unsigned days, const char *cluster)
{
	cleanup_pki_key struct pki_key *key = pki_key_new_p256();
	cleanup_strbuf struct strbuf cert = STRBUF_INIT, b64 = STRBUF_INIT;
	struct json_object *o = json_obj(), *meta = json_obj(), *data = json_obj();
	struct err err = ERR_INIT;

	cr_assert_eq(pki_cert_self_signed(key, name, clock_wall_s(), days, &cert, &err), 0);
	bytes_to_b64(&b64, cert.data, cert.len);
	json_add_str(meta, "name", name);
	if (cluster)
		json_add(meta, "ownerReferences",
			json_push(json_arr(),
				kobj_owner_json(&kobj_cluster, cluster,
					world_str(&w, &kobj_cluster, cluster, "metadata/uid"))));
	json_add_str(json_add_str(data, "key.pem", "QQ=="), "cert.pem", strbuf_str(&b64));
	json_add(json_add(o, "metadata", meta), "data", data);
	fake_api_put_json(w.api, &kobj_secret, NS, json_add_str(o, "type", "Opaque"));
}

static void install(const char *spec)
{
	world_cluster(&w, "tec", spec);
	world_boot(&w, "cma");
	world_run(&w, 60000);
	cr_assert_str_eq(world_cond(&w, &kobj_cluster, "tec", "Installed"), "True");
	fake_transport_forget(w.life->f);
}

static void reboot(void)
{
	world_kill(&w);
	world_boot(&w, "cma");
	world_run(&w, 60000);
}

/* ---- what is there */

static struct json_object *template(void)
{
	return json_get_obj(world_get(&w, &kobj_deployment, DEPLOY), "spec/template");
}

static const char *noted(const char *which)
{
	cleanup_free char *name = xasprintf("trusted-execution-clusters.io/%s", which);
	const char *s = kobj_annotation(template(), name);

	return s ? s : "";
}

/* Does the Pod mount this Secret? */
static bool mounts(const char *secret)
{
	struct json_object *a = json_get_arr(template(), "spec/volumes");

	for (size_t i = 0; a && i < json_object_array_length(a); i++)
		if (str_eq(json_get_str(json_object_array_get_idx(a, i), "secret/secretName"),
			    secret))
			return true;
	return false;
}

static const char *config(void)
{
	return json_get_str(json_get_obj(world_get(&w, &kobj_configmap, "trustee-data"), "data"),
		"kbs-config.toml");
}

static size_t applies(const char *resource)
{
	return fake_transport_count(w.life->f, "apply", resource);
}

static const char *installed_message(void)
{
	const char *s = fake_api_condition(w.api, &kobj_cluster, NS, "tec", "Installed", "message");

	return s ? s : "";
}

static size_t events_with(const char *reason)
{
	cleanup_free char *want = xasprintf("\"reason\":\"%s\"", reason);
	size_t n = 0;

	for (size_t i = 0; i < fake_transport_requests(w.life->f); i++) {
		const struct fake_request *r = fake_transport_request(w.life->f, i);

		n += str_eq(r->resource, "events") && r->body && strstr(r->body, want);
	}
	return n;
}

/* ---- from nothing, and again */

Test(ctl_cluster_inputs, the_first_template_knows_certificate_and_signer)
{
	tls("QQ==", "Qg==", "Qw==");
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
	tls("QQ==", "Qg==", "Qw==");
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
	cr_assert_gt(fake_api_rv(w.api), rv); /* its absence is told */
}

Test(ctl_cluster_inputs, a_changed_status_or_label_costs_one_read)
{
	tls("QQ==", "Qg==", "Qw==");
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

	tls("QQ==", "Qg==", "Qw==");
	install(TLS_SPEC);
	was = xstrdup(noted("tls-hash"));
	tls("RA==", "RQ==", "Qw==");
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
	/* each of the three counts, and where one ends */
	tls("RA==", "RQ==", "RA==");
	world_run(&w, 5000);
	cr_assert_eq(applies("deployments"), 2);
	tls("RA==", "RA==", "RQ==");
	world_run(&w, 5000);
	cr_assert_eq(applies("deployments"), 3);
}

Test(ctl_cluster_inputs, a_certificate_rotated_while_no_operator_ran_is_one_restart)
{
	tls("QQ==", "Qg==", "Qw==");
	install(TLS_SPEC);
	world_kill(&w);
	tls("RA==", "RQ==", "Qw==");
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
		tls("QQ==", "Qg==", "Qw==");
		install(TLS_SPEC);
		was = xstrdup(noted("tls-hash"));
		fake_transport_fault(w.life->f, (enum fake_fault)fault, 2);
		tls("RA==", "RQ==", "Qw==");
		world_run(&w, HOUR);
		cr_assert_str_neq(noted("tls-hash"), was, "fault %d", fault);
		cr_assert_eq(json_get_int(world_get(&w, &kobj_deployment, DEPLOY),
				     "metadata/generation", 0),
			2, "fault %d", fault);
	}
}

Test(ctl_cluster_inputs, a_certificate_that_is_gone_or_half_restarts_nothing)
{
	cleanup_free char *was = NULL;

	tls("QQ==", "Qg==", "Qw==");
	install(TLS_SPEC);
	was = xstrdup(noted("tls-hash"));
	fake_api_delete(w.api, &kobj_secret, NS, "my-tls");
	world_run(&w, 60000);
	cr_assert(strstr(installed_message(), "does not exist"));
	tls("", "Qg==", "Qw=="); /* as cert-manager begins */
	world_run(&w, 60000);
	cr_assert(strstr(installed_message(), "has no tls.crt and tls.key"));
	tls("QQ==", "Qg==", "Qw==");
	world_run(&w, 2 * HOUR);
	cr_assert_str_eq(installed_message(), "Everything is in place.");
	cr_assert_eq(applies("deployments"), 0);
	cr_assert_str_eq(noted("tls-hash"), was);
}

Test(ctl_cluster_inputs, a_certificate_that_may_not_be_read_stops_nothing_else)
{
	struct fake_expect *e;

	tls("QQ==", "Qg==", "Qw==");
	world_cluster(&w, "tec", TLS_SPEC);
	world_boot(&w, "");
	e = fake_transport_expect(w.life->f, "GET", "/api/v1/namespaces/" NS "/secrets/my-tls*");
	fake_expect_times(e, 0);
	fake_expect_answer(
		e, 403, "{\"kind\":\"Status\",\"reason\":\"Forbidden\",\"message\":\"no rights\"}");
	ctl_cluster_on(w.life->cluster);
	world_run(&w, 2 * HOUR);
	cr_assert_str_eq(world_cond(&w, &kobj_cluster, "tec", "Installed"), "True");
	cr_assert(strstr(installed_message(), "can be read"));
	cr_assert_str_eq(noted("tls-hash"), "");
	cr_assert_leq(fake_transport_count(w.life->f, "get", "secrets"), 3);
}

Test(ctl_cluster_inputs, another_trustee_secret_is_one_restart)
{
	tls("QQ==", "Qg==", "Qw==");
	install(TLS_SPEC);
	fake_api_put(w.api, &kobj_secret, NS,
		"{\"metadata\":{\"name\":\"new-tls\"},\"data\":{\"tls.crt\":\"RA==\",\"tls.key\":\"RQ==\"}}");
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

Test(ctl_cluster_inputs, somebody_elses_next_signer_is_told_and_not_touched)
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

Test(ctl_cluster_inputs, a_signer_of_ours_that_the_cache_does_not_show_is_adopted)
{
	const char *cert;

	world_cluster(&w, "tec", SPEC);
	world_boot(&w, "");
	fake_api_hold_watches(w.api, true);
	signer("trustee-token", 3650, "tec");
	cert = json_get_str(
		json_get_obj(world_get(&w, &kobj_secret, "trustee-token"), "data"), "cert.pem");
	ctl_cluster_on(w.life->cluster);
	world_run(&w, 60000);
	cr_assert(world_get(&w, &kobj_deployment, DEPLOY));
	cr_assert_eq(strlen(noted("token-hash")), 16);
	cr_assert_str_eq(
		json_get_str(json_get_obj(world_get(&w, &kobj_secret, "trustee-token"), "data"),
			"cert.pem"),
		cert);
	fake_api_hold_watches(w.api, false);
	world_run(&w, 60000);
	cr_assert_str_eq(world_cond(&w, &kobj_cluster, "tec", "Installed"), "True");
}

Test(ctl_cluster_inputs, a_deleted_signer_is_made_anew_with_one_restart)
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

/* ---- taking over */

/* An object with its one owner. */
static void owned(const struct kobj_gvk *gvk, const char *name, const struct kobj_gvk *owner_gvk,
	const char *owner, const char *rest)
{
	cleanup_json struct json_object *ref =
		kobj_owner_json(owner_gvk, owner, world_str(&w, owner_gvk, owner, "metadata/uid"));
	cleanup_free char *ref_text = json_text(ref);
	cleanup_free char *text =
		xasprintf("{\"metadata\":{\"name\":\"%s\",\"ownerReferences\":[%s]},%s}", name,
			ref_text, rest);

	fake_api_put(w.api, gvk, NS, text);
}

#define RUST_DEPLOYMENT                                                                            \
	"\"spec\":{\"replicas\":1,\"selector\":{\"matchLabels\":{\"app\":\"kbs\"}},\"template\":{" \
	"\"metadata\":{\"labels\":{\"app\":\"kbs\"}},\"spec\":{\"containers\":[{\"name\":\"kbs\"," \
	"\"volumeMounts\":[{\"name\":\"auth\",\"mountPath\":\"/key\"},{\"name\":\"" ID_A           \
	"\",\"mountPath\":\"/opt/trustee/kbs-repository/default/" ID_A "\"}]}],"                   \
	"\"volumes\":[{\"name\":\"auth\",\"secret\":{\"secretName\":\"trustee-auth\"}},"           \
	"{\"name\":\"" ID_A "\",\"secret\":{\"secretName\":\"" ID_A "\"}}]}}}"
#define RUST_ROOT "eyJrZXlfdHlwZSI6Im9jdCIsImtleSI6IkFBQUFBQUFBQUFBQUFBQUFBQUFBQUFBQUFBQUFBQUFBIn0="

/* As the Rust operator leaves a namespace with one node. */
static void rust_leaves(void)
{
	cleanup_strbuf struct strbuf pem = STRBUF_INIT;
	cleanup_free char *ak = NULL;

	world_cluster(&w, "tec", SPEC);
	owned(&kobj_secret, "trustee-auth", &kobj_cluster, "tec",
		"\"type\":\"Opaque\",\"data\":{\"private.key\":\"QQ==\",\"public.pub\":\"Qg==\"}");
	owned(&kobj_configmap, "trustee-data", &kobj_cluster, "tec",
		"\"data\":{\"kbs-config.toml\":\"x\",\"reference-values.json\":\"[]\"}");
	owned(&kobj_deployment, DEPLOY, &kobj_cluster, "tec", RUST_DEPLOYMENT);
	owned(&kobj_deployment, "register-server", &kobj_cluster, "tec", "\"spec\":{}");
	owned(&kobj_machine, "machine-a", &kobj_cluster, "tec", "\"spec\":{\"id\":\"" ID_A "\"}");
	fake_api_merge(w.api, &kobj_machine, NS, "machine-a",
		"{\"metadata\":{\"finalizers\":[\"finalizer.machine.trusted-execution-clusters.io\"]}}");
	owned(&kobj_secret, ID_A, &kobj_machine, "machine-a",
		"\"type\":\"Opaque\",\"data\":{\"root\":\"" RUST_ROOT "\"}");
	world_ak(&w, "ak-a", test_pem[0], ID_A, NULL);
	bytes_to_b64(&pem, test_pem[0], strlen(test_pem[0]));
	ak = xasprintf("\"type\":\"Opaque\",\"data\":{\"public_key\":\"%s\"}", strbuf_str(&pem));
	owned(&kobj_secret, "ak-a", &kobj_ak, "ak-a", ak);
	fake_api_merge(w.api, &kobj_secret, NS, "ak-a",
		"{\"metadata\":{\"finalizers\":[\"" MODEL_AK_SECRET_FINALIZER "\"]}}");
}

Test(ctl_cluster_inputs, a_rust_installation_is_taken_over_with_its_keys)
{
	cleanup_free char *was = NULL;

	rust_leaves();
	was = xstrdup(world_str(&w, &kobj_deployment, DEPLOY, "metadata/uid"));
	world_boot(&w, "cma");
	world_run(&w, 60000);
	cr_assert_str_eq(world_cond(&w, &kobj_cluster, "tec", "Installed"), "True", "%s",
		installed_message());
	cr_assert_str_neq(world_str(&w, &kobj_deployment, DEPLOY, "metadata/uid"), was);
	cr_assert(!mounts(ID_A) && mounts("trustee-token"));
	cr_assert_eq(events_with("TakenOver"), 1);
	cr_assert_eq(fake_transport_count(w.life->f, "delete", "deployments"), 2);
	cr_assert_null(world_get(&w, &kobj_deployment, "register-server"));
	/* no key is another one, and it waits for Trustee */
	cr_assert_str_eq(world_str(&w, &kobj_secret, ID_A, "data/root"), RUST_ROOT);
	cr_assert(world_annotation(&w, &kobj_machine, "machine-a", MODEL_KEY_SHA256_ANNOTATION));
	cr_assert_str_eq(world_cond(&w, &kobj_machine, "machine-a", "KeyReady"), "True");
	cr_assert_str_eq(world_cond(&w, &kobj_ak, "ak-a", "Approved"), "True");
	cr_assert(key_declared(&w, ID_A));
	cr_assert(identity_declared(&w, test_pem[0]));
	cr_assert_str_eq(
		json_get_str(json_get_obj(world_get(&w, &kobj_secret, "trustee-auth"), "data"),
			"private.key"),
		"QQ==");
	reboot();
	cr_assert_eq(fake_transport_writes(w.life->f), 0);
}

Test(ctl_cluster_inputs, the_old_deployment_goes_on_while_a_new_one_could_not_start)
{
	rust_leaves();
	fake_api_delete(w.api, &kobj_secret, NS, "trustee-auth");
	fake_api_put(w.api, &kobj_secret, NS,
		"{\"metadata\":{\"name\":\"trustee-auth\"},\"data\":{\"private.key\":\"QQ==\"}}");
	signer("trustee-token", 3650, NULL);
	fake_api_merge(
		w.api, &kobj_cluster, NS, "tec", "{\"spec\":{\"trusteeSecret\":\"my-tls\"}}");
	world_boot(&w, "c");
	world_run(&w, HOUR);
	cr_assert(mounts(ID_A) && strstr(installed_message(), "trustee-token"));
	fake_api_delete(w.api, &kobj_secret, NS, "trustee-token");
	world_run(&w, HOUR);
	cr_assert(mounts(ID_A) && strstr(installed_message(), "trustee-auth"));
	fake_api_delete(w.api, &kobj_secret, NS, "trustee-auth");
	world_run(&w, HOUR);
	cr_assert(mounts(ID_A) && strstr(installed_message(), "my-tls"));
	cr_assert_str_eq(world_reason(&w, &kobj_cluster, "tec", "Installed"), "Installing");
	fake_transport_forget(w.life->f);
	world_run(&w, 2 * HOUR);
	cr_assert_eq(fake_transport_writes(w.life->f), 0);
	tls("QQ==", "Qg==", "Qw==");
	world_run(&w, 60000);
	cr_assert(!mounts(ID_A) && mounts("my-tls"));
	cr_assert_str_eq(world_cond(&w, &kobj_cluster, "tec", "Installed"), "True");
}

/* What the new Pod mounts is there before the old one goes: that is the whole gap. */
Test(ctl_cluster_inputs, the_old_deployment_goes_when_all_else_is_in_place)
{
	size_t deleted = 0, applied = 0, i = 0;

	rust_leaves();
	world_boot(&w, "c");
	world_run(&w, 60000);
	for (; i < fake_transport_requests(w.life->f); i++) {
		const struct fake_request *r = fake_transport_request(w.life->f, i);

		if (str_eq(r->verb, "delete") && strstr(r->path, DEPLOY))
			deleted = i;
		else if (str_eq(r->verb, "apply") && strstr(r->path, DEPLOY))
			applied = i;
		else if (str_eq(r->verb, "create") && str_eq(r->resource, "secrets"))
			cr_assert_eq(deleted, 0);
		else if (str_eq(r->resource, "configmaps") && strstr(r->path, "trustee-"))
			cr_assert(deleted == 0 || str_eq(r->method, "GET"));
	}
	cr_assert(deleted && applied > deleted);
}

Test(ctl_cluster_inputs, nobodys_deployment_of_that_form_is_a_conflict)
{
	uint64_t rv;

	fake_api_put(w.api, &kobj_deployment, NS,
		"{\"metadata\":{\"name\":\"" DEPLOY "\"}," RUST_DEPLOYMENT "}");
	world_cluster(&w, "tec", SPEC);
	world_boot(&w, "cma");
	world_run(&w, 60000);
	cr_assert_str_eq(world_reason(&w, &kobj_cluster, "tec", "Installed"), "Conflict");
	cr_assert(mounts(ID_A));
	cr_assert_eq(fake_transport_count(w.life->f, "delete", NULL), 0);
	cr_assert_eq(applies("deployments"), 0);
	rv = fake_api_rv(w.api);
	reboot();
	cr_assert_eq(fake_api_rv(w.api), rv);
}

Test(ctl_cluster_inputs, another_owners_deployment_of_that_form_stays)
{
	fake_api_put(w.api, &kobj_deployment, NS,
		"{\"metadata\":{\"name\":\"" DEPLOY
		"\",\"ownerReferences\":[{\"apiVersion\":\"x/v1\","
		"\"kind\":\"TrustedExecutionCluster\",\"name\":\"t\",\"uid\":\"other\","
		"\"controller\":true}]}," RUST_DEPLOYMENT "}");
	world_cluster(&w, "tec", SPEC);
	world_boot(&w, "cma");
	world_run(&w, 60000);
	cr_assert_str_eq(world_reason(&w, &kobj_cluster, "tec", "Installed"), "Conflict");
	cr_assert_eq(fake_transport_count(w.life->f, "delete", NULL), 0);
	cr_assert(mounts(ID_A));
}
