/* SPDX-License-Identifier: MIT */
/* The TLS Secrets that spec names: whose CA is accepted, and what is reported. */
#include "config.h"

#include "ctl/inputs.h"

TestSuite(ctl_cluster_tls, .init = inputs_up, .fini = inputs_down, .timeout = 120);

struct ca {
	struct strbuf pem, sha256;
};

static void ca_make(struct ca *ca, int which)
{
	struct err err = ERR_INIT;

	*ca = (struct ca){.pem = STRBUF_INIT, .sha256 = STRBUF_INIT};
	cr_assert_eq(pki_cert_read_bundle(pair(which)->crt, strlen(pair(which)->crt), &ca->pem,
			     &ca->sha256, &err),
		0);
}

static void ca_fini(struct ca *ca)
{
	strbuf_fini(&ca->pem);
	strbuf_fini(&ca->sha256);
}

/* A Secret of this name, whose ca.crt is all of PEM. */
static void put(const char *name, const char *pem)
{
	tls_as(name, pair(0)->crt, pair(0)->key, pem);
	world_run(&w, 10000);
}

static void list(const char *a, const char *b)
{
	cleanup_free char *patch =
		xasprintf("{\"spec\":{\"tls\":{\"caSHA256\":[\"%s\",\"%s\"]}}}", a, b);

	fake_api_merge(w.api, &kobj_cluster, NS, "tec", patch);
	world_run(&w, 10000);
}

#define MANY                                                                                             \
	"{\"publicTrusteeAddr\":\"kbs-service\",\"trusteeSecret\":\"t\",\"registerServerSecret\":\"r\"," \
	"\"attestationKeyRegisterSecret\":\"a\",\"trusteeServers\":[{\"address\":\"x:1\",\"caSecret\":"  \
	"\"s\"}]}"

#define HEX "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"

static const char *const named[] = {"t", "r", "a", "s"};

Test(ctl_cluster_tls, a_ca_that_is_not_listed_is_refused_with_a_condition_and_an_event)
{
	struct ca ours, other;

	ca_make(&ours, 0);
	ca_make(&other, 1);
	for (size_t i = 0; i < ARRAY_LEN(named); i++)
		put(named[i], strbuf_str(&ours.pem));
	install(MANY);
	for (size_t i = 0; i < ARRAY_LEN(named); i++) {
		cleanup_free char *both =
			xasprintf("%s%s", strbuf_str(&ours.pem), strbuf_str(&other.pem));
		cleanup_free char *text = xasprintf("Secret %s (", named[i]);

		list(strbuf_str(&ours.sha256), HEX);
		cr_assert_str_eq(world_cond(&w, &kobj_cluster, "tec", "Installed"), "True");
		fake_transport_forget(w.life->f);
		put(named[i], both);
		cr_assert_str_eq(world_reason(&w, &kobj_cluster, "tec", "Installed"), "Refused");
		cr_assert_str_eq(world_cond(&w, &kobj_cluster, "tec", "Installed"), "False");
		cr_assert(strstr(installed_message(), text), "%s", installed_message());
		cr_assert(strstr(installed_message(), strbuf_str(&other.sha256)));
		cr_assert(!strstr(installed_message(), strbuf_str(&ours.sha256)));
		cr_assert_eq(events_with("Refused"), 2, "of Installed and RegistrationOpen");
		list(strbuf_str(&other.sha256), strbuf_str(&ours.sha256));
		cr_assert_str_eq(world_cond(&w, &kobj_cluster, "tec", "Installed"), "True", "%s",
			installed_message());
		put(named[i], strbuf_str(&ours.pem));
	}
	put("t", "garbage");
	cr_assert(strstr(installed_message(), "its ca.crt is unusable"), "%s", installed_message());
	cr_assert_eq(events_with("TLSSecretIsYounger"), 0);
	ca_fini(&ours);
	ca_fini(&other);
}

Test(ctl_cluster_tls, nothing_is_sent_to_a_trustee_with_a_ca_that_is_not_listed)
{
	struct ca ours, other;
	const char *message;

	ca_make(&ours, 0);
	ca_make(&other, 1);
	put("my-tls", strbuf_str(&ours.pem));
	world_cluster(&w, "tec", TLS_SPEC);
	list(strbuf_str(&ours.sha256), HEX);
	world_boot(&w, NULL);
	world_run(&w, 30000);
	message = fake_api_condition(w.api, &kobj_cluster, NS, "tec", "TrusteeSynced", "message");
	cr_assert(!strstr(message, "caSHA256"), "%s", message);
	put("my-tls", strbuf_str(&other.pem));
	world_run(&w, 30000);
	message = fake_api_condition(w.api, &kobj_cluster, NS, "tec", "TrusteeSynced", "message");
	cr_assert(strstr(message, "spec.tls.caSHA256 does not list"), "%s", message);
	cr_assert_str_eq(world_cond(&w, &kobj_cluster, "tec", "TrusteeSynced"), "False");
	ca_fini(&ours);
	ca_fini(&other);
}

static size_t younger(void)
{
	return events_with("TLSSecretIsYounger");
}

Test(ctl_cluster_tls, a_secret_younger_than_the_cluster_is_one_event)
{
	struct ca ours;
	size_t made;

	ca_make(&ours, 0);
	put("t", strbuf_str(&ours.pem));
	world_cluster(&w, "tec", MANY);
	world_boot(&w, "cma");
	world_run(&w, 60000);
	cr_assert_eq(younger(), 0, "it was there first");
	put("r", strbuf_str(&ours.pem));
	cr_assert_eq(younger(), 1);
	cr_assert_eq(world_events(&w, strbuf_str(&ours.sha256)), 1);
	world_run(&w, DAY);
	fake_api_merge(w.api, &kobj_secret, NS, "r", "{\"metadata\":{\"labels\":{\"a\":\"b\"}}}");
	world_run(&w, DAY);
	cr_assert_eq(younger(), 1);
	made = fake_api_count(w.api, &kobj_event, NS);
	reboot();
	cr_assert_eq(younger(), 1);
	cr_assert_eq(fake_api_count(w.api, &kobj_event, NS), made, "the API has it already");
	fake_transport_forget(w.life->f);
	fake_api_delete(w.api, &kobj_secret, NS, "r");
	world_run(&w, 5000);
	put("r", strbuf_str(&ours.pem));
	cr_assert_eq(younger(), 1, "it is another Secret");
	cr_assert_eq(fake_api_count(w.api, &kobj_event, NS), made + 1);
	put("a", "garbage");
	cr_assert_eq(younger(), 1, "nobody is told to trust it");
	list(strbuf_str(&ours.sha256), HEX);
	put("s", strbuf_str(&ours.pem));
	cr_assert_eq(younger(), 1, "the list vouches for it");
	ca_fini(&ours);
}

static const char *registration(const char *what)
{
	return fake_api_condition(w.api, &kobj_cluster, NS, "tec", "RegistrationOpen", what);
}

/* What a listener and nodes cannot use closes the registration, and the same words are in both
 * conditions and in the Event. */
Test(ctl_cluster_tls, an_unusable_secret_is_named_in_conditions_and_an_event)
{
	const char *crt = pair(0)->crt, *key = pair(0)->key, *other = pair(1)->crt;
	cleanup_free char *reversed = xasprintf("%s%s", other, crt);
	const struct {
		const char *secret, *crt, *key, *ca, *says; /* says NULL: it can be used */
	} cases[] = {
		{"r", crt, pair(1)->key, crt, "tls.key does not match tls.crt"},
		{"t", crt, "", crt, "tls.key is missing"},
		{"t", "", key, crt, "tls.crt is missing"},
		{"a", crt, "garbage", crt, "tls.key is not a private key"},
		{"a", crt, key, other, "cannot verify tls.crt with ca.crt"},
		{"t", crt, key, "", "ca.crt has no usable certificate"},
		{"s", crt, key, "", "ca.crt has no usable certificate"},
		{"s", "", "garbage", other, NULL},
		{"r", crt, key, "", NULL},
		{"t", reversed, key, crt, NULL},
	};

	for (size_t i = 0; i < ARRAY_LEN(named); i++)
		put(named[i], crt);
	install(MANY);
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		cleanup_free char *what = xasprintf("Secret %s (", cases[i].secret);
		const char *message;

		cr_assert_str_eq(world_cond(&w, &kobj_cluster, "tec", "Installed"), "True");
		cr_assert_str_eq(registration("status"), "True");
		fake_transport_forget(w.life->f);
		tls_as(cases[i].secret, cases[i].crt, cases[i].key, cases[i].ca);
		world_run(&w, 20000);
		message = installed_message();
		if (!cases[i].says) {
			cr_assert_null(strstr(message, what), "%zu: %s", i, message);
			continue;
		}
		cr_assert_str_eq(world_reason(&w, &kobj_cluster, "tec", "Installed"), "Refused");
		cr_assert(strstr(message, what) && strstr(message, cases[i].says), "%zu: %s", i,
			message);
		cr_assert_str_eq(registration("status"), "False");
		cr_assert_str_eq(registration("reason"), "Refused");
		cr_assert(strstr(registration("message"), cases[i].says), "%s",
			registration("message"));
		cr_assert_gt(world_events(&w, cases[i].says), 0, "%zu", i);
		put(cases[i].secret, crt);
	}
}

Test(ctl_cluster_tls, a_certificate_that_runs_out_is_reported_by_then)
{
	cleanup_pki_key struct pki_key *key = pki_key_new_p256();
	cleanup_secret struct secret *pem = pki_key_private_pem(key);
	cleanup_free char *text = xstrndup((const char *)secret_peek(pem), secret_len(pem));
	cleanup_strbuf struct strbuf cert = STRBUF_INIT;
	struct err err = ERR_INIT;

	cr_assert_eq(pki_cert_self_signed(key, "kbs-service", clock_wall_s(), 1, &cert, &err), 0);
	tls_as("my-tls", strbuf_str(&cert), text, strbuf_str(&cert));
	install("{\"publicTrusteeAddr\":\"kbs-service:443\",\"trusteeSecret\":\"my-tls\"}");
	world_run(&w, 23 * HOUR);
	cr_assert_str_eq(world_cond(&w, &kobj_cluster, "tec", "Installed"), "True");
	world_run(&w, 3 * HOUR);
	cr_assert_str_eq(world_reason(&w, &kobj_cluster, "tec", "Installed"), "Refused");
	cr_assert(strstr(installed_message(), "tls.crt expired at"), "%s", installed_message());
}

Test(ctl_cluster_tls, the_public_address_has_to_be_covered)
{
	static const char *const other[] = {
		"kbs", "kbs-service.example.org:443", "10.0.0.1", "[::1]:8080"};
	static const char *const same[] = {"kbs-service", "kbs-service:1", "kbs-service.:1"};

	tls(0);
	install(TLS_SPEC);
	for (size_t i = 0; i < ARRAY_LEN(other) + ARRAY_LEN(same); i++) {
		bool covered = i >= ARRAY_LEN(other);
		const char *address = covered ? same[i - ARRAY_LEN(other)] : other[i];
		cleanup_free char *patch =
			xasprintf("{\"spec\":{\"publicTrusteeAddr\":\"%s\"}}", address);

		fake_api_merge(w.api, &kobj_cluster, NS, "tec", patch);
		world_run(&w, 20000);
		cr_assert(!strstr(installed_message(), "does not cover") == covered, "%s: %s",
			address, installed_message());
	}
}
