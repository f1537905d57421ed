/* SPDX-License-Identifier: MIT */
/*
 * The Secrets that the operator makes for the cluster, against everything that may stand in their
 * place: each planted object, with one operator and with two, killed after each number of writes.
 * Always: nothing that was not announced is mounted, what is somebody else's is neither changed nor
 * deleted, and it ends.
 */
#include "config.h"

#include "ctl/inputs.h"
#include "tec/model/content.h"
#include "tec/model/mark.h"

TestSuite(ctl_cluster_own, .init = inputs_up, .fini = inputs_down, .timeout = 300);

static struct {
	const char *name;
	char *data;
} own[] = {{"trustee-auth", NULL}, {"trustee-token", NULL}};

/* What another one would make; a signer has to have a certificate, or it is replaced. */
static void make_data(void)
{
	cleanup_pki_key struct pki_key *key = pki_key_new_p256();
	cleanup_strbuf struct strbuf cert = STRBUF_INIT, b64 = STRBUF_INIT;
	struct err err = ERR_INIT;

	cr_assert_eq(pki_cert_self_signed(key, "x", clock_wall_s(), 3650, &cert, &err), 0);
	bytes_to_b64(&b64, cert.data, cert.len);
	own[0].data = xstrdup("{\"private.key\":\"QQ==\",\"public.pub\":\"Qg==\"}");
	own[1].data = xasprintf("{\"key.pem\":\"QQ==\",\"cert.pem\":\"%s\"}", strbuf_str(&b64));
}

enum planted {
	NOBODY,         /* nothing is planted */
	OF_OUR_FORM,    /* type, members and owner are right */
	ANNOUNCED_SELF, /* ... and the cluster came with an announcement without its uid */
	OF_NOBODY,      /* no owner */
	OF_TWO,         /* owned by the cluster and by somebody else */
	OTHER_TYPE,
	ONE_MEMBER_MORE,
	N_PLANTED,
	OLDER, /* of our form, before the marker */
	N_CASES,
};

static bool is_foreign(enum planted p)
{
	return p != NOBODY && p != OLDER;
}

/* What was planted, as it stands there; NULL: nothing was. */
static char *planted_text;

static void plant(unsigned i, enum planted p)
{
	cleanup_free char *text = NULL, *refs = NULL;
	const char *uid = world_str(&w, &kobj_cluster, "tec", "metadata/uid");

	refs = xasprintf(
		"{\"apiVersion\":\"x/v1\",\"kind\":\"TrustedExecutionCluster\",\"name\":\"tec\",\"uid\":\"%s\",\"controller\":true}%s",
		uid,
		p == OF_TWO
			? ",{\"apiVersion\":\"v1\",\"kind\":\"Pod\",\"name\":\"p\",\"uid\":\"u\"}"
			: "");
	text = xasprintf(
		"{\"metadata\":{\"name\":\"%s\",\"ownerReferences\":[%s]},\"type\":\"%s\",\"data\":%.*s%s}}",
		own[i].name, p == OF_NOBODY ? "" : refs,
		p == OTHER_TYPE ? "kubernetes.io/tls" : "Opaque", (int)strlen(own[i].data) - 1,
		own[i].data, p == ONE_MEMBER_MORE ? ",\"more\":\"QQ==\"" : "");
	fake_api_put(w.api, &kobj_secret, NS, text);
	planted_text = json_text(world_get(&w, &kobj_secret, own[i].name));
}

/* A cluster whose maker knows the content that he will plant, but no uid. */
static void cluster_with_announcement(unsigned i)
{
	cleanup_free char *secret = xasprintf("{\"data\":%s}", own[i].data), *text = NULL;
	struct err err = ERR_INIT;
	cleanup_json struct json_object *o =
		json_parse(secret, strlen(secret), &json_limits_object, &err);
	char hex[SHA256_HEX_LEN + 1];

	cr_assert(model_content_sha256(o, hex));
	text = xasprintf("{\"metadata\":{\"name\":\"tec\",\"annotations\":{"
			 "\"" MODEL_ANNOUNCED_PREFIX "%s\":\" %s\"}},\"spec\":" SPEC "}",
		own[i].name, hex);
	fake_api_put(w.api, &kobj_cluster, NS, text);
}

static bool is_announced(const char *name)
{
	cleanup_free char *annotation = xasprintf(MODEL_ANNOUNCED_PREFIX "%s", name);
	struct json_object *secret = world_get(&w, &kobj_secret, name);
	char hex[SHA256_HEX_LEN + 1];

	return secret && model_content_sha256(secret, hex) &&
	       model_mark_announces(
		       model_mark(world_get(&w, &kobj_cluster, "tec"), annotation), hex);
}

static void check(unsigned i, enum planted p, const char *where)
{
	cleanup_free char *text = NULL;

	if (world_get(&w, &kobj_deployment, DEPLOY))
		for (unsigned k = 0; k < ARRAY_LEN(own); k++)
			cr_assert(
				is_announced(own[k].name), "%s: %s is mounted", where, own[k].name);
	if (!planted_text)
		return;
	text = json_text(world_get(&w, &kobj_secret, own[i].name));
	cr_assert_str_eq(text, planted_text, "%s: %s was touched", where, own[i].name);
	if (is_foreign(p))
		cr_assert(!is_announced(own[i].name), "%s", where);
}

/* Lives of one operator or two; each dies after so many writes, twice, and comes again. */
static void live(unsigned i, enum planted p, bool two, unsigned nth, const char *where)
{
	struct life *lives[2] = {NULL, NULL};
	unsigned deaths = 0;

	for (unsigned s = 0; s < 60; s++) {
		for (unsigned k = 0; k < (two ? 2 : 1); k++) {
			w.life = lives[k];
			if (w.life && !fake_transport_is_dead(w.life->f))
				continue;
			world_kill(&w);
			world_boot(&w, "c");
			if (deaths++ < 4)
				fake_transport_die_after(w.life->f, nth);
			lives[k] = w.life;
		}
		world_run(&w, 1000);
		check(i, p, where);
	}
	for (unsigned k = 0; k < 2; k++) {
		w.life = lives[k];
		world_kill(&w);
	}
}

static void one_case(unsigned i, enum planted p, bool two, unsigned nth)
{
	cleanup_free char *where = xasprintf(
		"%s, planted %d, %s, %u writes", own[i].name, p, two ? "two" : "one", nth);

	world_stop(&w);
	world_start(&w);
	if (p != OLDER) { /* the marker first */
		world_boot(&w, "");
		world_kill(&w);
		clock_fake_advance(2000);
	}
	if (p == ANNOUNCED_SELF)
		cluster_with_announcement(i);
	else
		world_cluster(&w, "tec", SPEC);
	if (p != NOBODY)
		plant(i, p);
	live(i, p, two, nth, where);
	world_boot(&w, "c");
	world_run(&w, 120000);
	check(i, p, where);
	if (is_foreign(p)) {
		cr_assert_str_eq(world_reason(&w, &kobj_cluster, "tec", "Installed"), "Conflict",
			"%s: %s", where, installed_message());
		cr_assert(strstr(installed_message(), own[i].name), "%s", where);
		cr_assert(strstr(installed_message(), "kubectl delete secret"), "%s", where);
		cr_assert_null(world_get(&w, &kobj_deployment, DEPLOY), "%s", where);
		free(steal_ptr(&planted_text));
		fake_api_delete(w.api, &kobj_secret, NS, own[i].name);
		world_run(&w, 120000);
		check(i, NOBODY, where);
	}
	free(steal_ptr(&planted_text));
	cr_assert_str_eq(world_cond(&w, &kobj_cluster, "tec", "Installed"), "True", "%s: %s", where,
		installed_message());
	cr_assert(world_get(&w, &kobj_deployment, DEPLOY), "%s", where);
	fake_transport_forget(w.life->f);
	world_run(&w, 2 * HOUR);
	cr_assert_eq(fake_transport_writes(w.life->f), 0, "%s", where);
}

static void every_case(unsigned i, bool two)
{
	make_data();
	for (int p = NOBODY; p < N_CASES; p++)
		for (unsigned nth = 1; p != N_PLANTED && nth <= 8; nth++)
			one_case(i, (enum planted)p, two, nth);
	free(own[0].data);
	free(own[1].data);
}

Test(ctl_cluster_own, every_state_of_the_admin_key)
{
	every_case(0, false);
}

Test(ctl_cluster_own, every_state_of_the_token_signer)
{
	every_case(1, false);
}

Test(ctl_cluster_own, every_state_of_the_admin_key_with_two_operators)
{
	every_case(0, true);
}

Test(ctl_cluster_own, every_state_of_the_token_signer_with_two_operators)
{
	every_case(1, true);
}
