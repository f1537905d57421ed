/* SPDX-License-Identifier: MIT */
/* Wiring of broker/, and reporting of its verdicts: a log line for each, and an Event for a
 * refusal. */
#include "config.h"

#include "embedded.h"

#include "embedded_store.h"

#include <stddef.h>
#include <string.h>

#include "tec/apistore/rows.h"
#include "tec/base/mem.h"
#include "tec/broker/kbsd.h"
#include "tec/broker/transport.h"
#include "tec/model/ak.h"
#include "tec/model/cluster.h"
#include "tec/render/trustee.h"
#include "tec/state/machine.h"

#define SIGNER_TABLE "broker/signer"
#define SIGNER_NAME  "key.pem"
/* As in kbs-config.toml: a token outlives the approval of its node by at most a minute. */
#define TOKEN_S    60
#define BODY_MAX   65536
#define N_POLICIES 6

struct embedded {
	struct loop *loop;
	const struct options *options; /* borrowed */
	struct broker_store *store;
	struct pki_key *signer;
	struct broker_policy policies[N_POLICIES];
	struct broker_attest *attest;
	struct broker_kbsd *kbsd;
	bool tls;
	struct embedded_nodes nodes;
};

/* ---- the signer of tokens */

/* Create the key and commit it at once: a token must not be signed by a key that a crash would
 * lose. */
static struct pki_key *make_signer(struct apistore_objects *objects, struct err *err)
{
	cleanup_pki_key struct pki_key *key = pki_key_new_p256();
	cleanup_secret struct secret *pem = pki_key_private_pem(key);

	if (apistore_rows_set(objects, SIGNER_TABLE, SIGNER_NAME, secret_peek(pem), secret_len(pem),
		    err) < 0 ||
		apistore_objects_commit(objects, err) < 0)
		return NULL;
	return steal_ptr(&key);
}

/* Read the key that signs attestation tokens, or create it on the first start. */
static struct pki_key *load_signer(struct apistore_objects *objects, struct err *err)
{
	cleanup_secret struct secret *pem = NULL;
	void *data;
	size_t len;

	if (apistore_rows_get(objects, SIGNER_TABLE, SIGNER_NAME, &data, &len, err) < 0) {
		if (err->kind != ERR_NOT_FOUND)
			return NULL;
		err_clear(err);
		return make_signer(objects, err);
	}
	pem = secret_new_copy(data, len);
	secret_wipe(data, len);
	free(data);
	return pki_key_from_pem(pem, err);
}

/* ---- policies */

/* List every policy that the operator may declare, so that the broker recognises them by their
 * text: both ways to share keys, with and without PCR 7. */
static void name_policies(struct broker_policy out[N_POLICIES])
{
	size_t n = 0;

	for (int shared = 0; shared < 2; shared++) {
		struct model_cluster c = {
			.isolation = shared ? MODEL_ISOLATION_SHARED : MODEL_ISOLATION_PER_MACHINE};
		enum rats_policy policy = shared ? RATS_POLICY_SHARED : RATS_POLICY_PER_MACHINE;

		out[n++] = (struct broker_policy){
			render_trustee_resource_policy(&c), true, policy, false};
		c.pcr7 = MODEL_PCR7_IGNORE;
		out[n++] = (struct broker_policy){
			render_trustee_attestation_policy(&c), false, policy, false};
		c.pcr7 = MODEL_PCR7_REQUIRE;
		out[n++] = (struct broker_policy){
			render_trustee_attestation_policy(&c), false, policy, true};
	}
}

/* ---- verdicts */

/* The object that a verdict is about. It is the Machine only if the Machine's own key has
 * proved who asks; otherwise anybody could raise Events about any Machine. */
static const struct kobj *concerned(const struct embedded *e, const struct broker_judged *j,
	const char *spki, const struct kobj_gvk **gvk)
{
	const struct model_machine *m = j->key_proved && j->machine
						? state_machine_of_id(e->nodes.state, j->machine)
						: NULL;

	*gvk = m ? &kobj_machine : &kobj_ak;
	if (m)
		return &m->obj;
	return j->key_proved && *spki ? k8s_cache_first(e->nodes.state->aks, 1, spki) : NULL;
}

/* The length of the address in "address:port". */
static int host_len(const char *peer)
{
	const char *colon = strrchr(peer, ':');

	return (int)(colon ? colon - peer : (ptrdiff_t)strlen(peer));
}

/* Log a verdict of the broker; post an Event for a refusal. */
static void on_judged(void *arg, const struct broker_judged *j)
{
	const struct embedded *e = arg;
	/* The most specific reason that is known, for the log only. */
	const char *reason = j->path                     ? "resource"
			     : j->flaw != RATS_FLAW_NONE ? rats_flaw_name(j->flaw)
			     : j->pcr >= 0               ? "boot"
							 : "policy";
	char spki[SHA256_HEX_LEN + 1] = "";
	const struct kobj_gvk *gvk;
	const struct kobj *about;
	struct log_ctx lc = {.ns = e->nodes.ns};

	if (j->evidence)
		bytes_to_hex(j->evidence->ak.sha256, SHA256_LEN, spki);
	about = concerned(e, j, spki, &gvk);
	if (about) {
		lc.kind = gvk->kind;
		lc.name = about->name;
		lc.uid = about->uid;
	}
	if (!j->why) {
		log_info(about ? &lc : NULL, "node attested", "peer=%s spki=%s", log_esc(j->peer),
			spki);
		return;
	}
	log_warn(about ? &lc : NULL, "node refused", "peer=%s spki=%s reason=%s text=%s",
		log_esc(j->peer), spki, reason, log_esc(j->why));
	if (about) /* without the port: it differs with each attempt and would defeat aggregation */
		k8s_events_post(e->nodes.events, gvk, about, K8S_EVENT_WARNING,
			"AttestationRefused", "Attest", "The node at %.*s receives no key. %s",
			host_len(j->peer), j->peer, j->why);
}

/* ---- life */

/* Sessions and their limits are those of the options; verdicts come back through on_judged(). */
static void new_attest(struct embedded *e)
{
	const struct options_guard *g = &e->options->guard;
	const struct broker_attest_conf conf = {.store = e->store,
		.signer = e->signer,
		.policies = e->policies,
		.n_policies = N_POLICIES,
		.sample = g->sample,
		.token_s = TOKEN_S,
		.session_ms = g->session_ms,
		.sessions = g->sessions,
		.sessions_per_source = g->sessions_per_source,
		.on_judged = on_judged,
		.arg = e};

	e->attest = broker_attest_new(&conf);
}

/* The listener comes later (embedded_listen): it needs the state, which needs a transport. */
struct embedded *embedded_new(
	struct loop *l, struct apistore_objects *objects, const struct options *o, struct err *err)
{
	struct pki_key *signer = load_signer(objects, err);
	struct embedded *e;

	if (!signer) {
		err_wrap(err, "cannot load the key that signs attestation tokens");
		return NULL;
	}
	e = xcalloc(1, sizeof(*e));
	e->loop = l;
	e->options = o;
	e->signer = signer;
	e->store = embedded_store_new(objects);
	name_policies(e->policies);
	new_attest(e);
	return e;
}

void embedded_free(struct embedded *e)
{
	if (!e)
		return;
	broker_kbsd_free(e->kbsd);
	broker_attest_free(e->attest);
	broker_store_free(e->store);
	pki_key_free(e->signer);
	free(e);
}

struct kbs_transport *embedded_transport(struct embedded *e)
{
	return broker_transport_new(e->loop, e->store);
}

/* The broker holds a key until attested_mark() decides. */
static void on_held(void *arg, struct broker_held *h)
{
	const struct embedded *e = arg;

	attested_mark(e->nodes.attested, e->nodes.api, e->nodes.ns, h);
}

/* The same limits as for registration; --listen-kbs is also the guard's option. */
int embedded_listen(struct embedded *e, const struct embedded_nodes *nodes, struct err *err)
{
	const struct broker_kbsd_conf conf = {.name = "kbs",
		.max_body = BODY_MAX,
		.max_connections = e->options->max_connections,
		.rate = nodes->rate,
		.attest = e->attest,
		.on_held = on_held,
		.arg = e};

	e->nodes = *nodes;
	e->kbsd = broker_kbsd_new(e->loop, &conf);
	if (httpd_listen(broker_kbsd_httpd(e->kbsd), e->options->guard.listen_kbs, err) < 0)
		return err_wrap(err, "--listen-kbs");
	return 0;
}

struct httpd *embedded_httpd(struct embedded *e)
{
	return e->kbsd ? broker_kbsd_httpd(e->kbsd) : NULL;
}

bool *embedded_tls(struct embedded *e)
{
	return &e->tls;
}
