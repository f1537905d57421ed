/* SPDX-License-Identifier: MIT */
/* Wiring of broker/: its store, the mark of each delivery on the Machine, and reports of its
 * verdicts: a log line for each, and an Event for a refusal. */
#include "config.h"

#include "embedded.h"

#include <inttypes.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include "tec/store/rows.h"
#include "tec/base/clock.h"
#include "tec/base/json.h"
#include "tec/base/log.h"
#include "tec/base/mem.h"
#include "tec/broker/kbsd.h"
#include "tec/broker/transport.h"
#include "tec/ctl/machine.h"
#include "tec/k8s/call.h"
#include "tec/kobj/gvk.h"
#include "tec/model/ak.h"
#include "tec/model/cluster.h"
#include "tec/rats/names.h"
#include "tec/render/trustee.h"
#include "tec/caches/cluster.h"
#include "tec/caches/machine.h"

#define SIGNER_TABLE "broker/signer"
#define SIGNER_NAME  "key.pem"
#define MARKS_TABLE  "broker/marks"
#define MARKS_ROW    "since"
#define DAY_S        86400
/* As in kbs-config.toml: a token outlives the approval of its node by at most a minute. */
#define TOKEN_S    60
#define BODY_MAX   65536
#define N_POLICIES 8

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

/* ---- the store, in sealed rows of the API's database */

/* Maps the broker's namespaces to tables. */
struct rows {
	struct broker_store base; /* first */
	struct store_objects *objects;
	void *last; /* owned, wiped: what rows_get() returned last */
	size_t last_len;
};

static const char *const tables[BROKER_STORE_N] = {
	[BROKER_STORE_KBS] = "broker/kbs",
	[BROKER_STORE_REPOSITORY] = "broker/repository",
	[BROKER_STORE_REFERENCE_VALUE] = "broker/reference_value",
	[BROKER_STORE_ATTESTATION_POLICY] = "broker/attestation_service_policy",
};

/* A value may be a disk key: wipe it before its memory is reused. */
static void forget_last(struct rows *r)
{
	if (r->last)
		secret_wipe(r->last, r->last_len);
	free(steal_ptr(&r->last));
}

static int rows_set(struct broker_store *s, enum broker_store_ns ns, const char *key,
	const void *data, size_t len, struct err *err)
{
	return store_rows_set(((struct rows *)s)->objects, tables[ns], key, data, len, err);
}

/* The value is borrowed until the next read, as broker/store.h allows. */
static int rows_get(struct broker_store *s, enum broker_store_ns ns, const char *key,
	struct broker_store_value *out, struct err *err)
{
	struct rows *r = (struct rows *)s;

	forget_last(r);
	if (store_rows_get(r->objects, tables[ns], key, &r->last, &r->last_len, err) < 0)
		return -1;
	*out = (struct broker_store_value){r->last, r->last_len};
	return 0;
}

static int rows_remove(
	struct broker_store *s, enum broker_store_ns ns, const char *key, struct err *err)
{
	return store_rows_remove(((struct rows *)s)->objects, tables[ns], key, err);
}

static int rows_list(struct broker_store *s, enum broker_store_ns ns, const char *prefix,
	broker_store_key_fn fn, void *arg, struct err *err)
{
	return store_rows_list(((struct rows *)s)->objects, tables[ns], prefix, fn, arg, err);
}

struct settle {
	struct op op; /* first */
	struct store_wait wait;
	broker_store_settled_fn fn;
	void *arg;
};

static void settle_abort(struct op *op)
{
	struct settle *w = (struct settle *)op;

	store_wait_cancel(&w->wait);
	free(w);
}

/* The op ends before its callback, which may free its owner. */
static void on_stored(void *arg, const struct err *err)
{
	struct settle *w = arg;

	op_finish(&w->op);
	w->fn(w->arg, err);
	free(w);
}

/* Report when everything written so far is on disk: rows are committed once per turn of the
 * loop. */
static struct op *rows_settle(
	struct broker_store *s, struct op_scope *scope, broker_store_settled_fn fn, void *arg)
{
	struct settle *w = xcalloc(1, sizeof(*w));

	w->fn = fn;
	w->arg = arg;
	op_begin(&w->op, scope, settle_abort);
	store_objects_when_stored(((struct rows *)s)->objects, &w->wait, on_stored, w);
	return &w->op;
}

static void rows_free(struct broker_store *s)
{
	forget_last((struct rows *)s);
	free(s);
}

static const struct broker_store_ops rows_ops = {
	rows_set, rows_get, rows_remove, rows_list, rows_settle, rows_free};

/* ---- who has received its disk key */

/*
 * One sealed row, "SINCE RESTORED", holds the time since when every key delivery has been marked.
 * The row is removed by the change that names another server, before a key can be on its way
 * there; once no other server is named, it is written again with the current time. In doubt there
 * is no row: then no Machine counts as never attested, and none is deleted for that.
 */
struct attested {
	struct store_objects *objects;
	struct caches *caches;
	bool here;
};

/* If the row cannot be written, marks_since_s is 0: nothing is concluded from missing marks. */
static void set_row(struct attested *a, int64_t since_s)
{
	cleanup_free char *text = xasprintf("%" PRId64 " %" PRId64, since_s, a->caches->restored_s);
	struct err err = ERR_INIT;
	int rc = since_s ? store_rows_set(
				   a->objects, MARKS_TABLE, MARKS_ROW, text, strlen(text), &err)
			 : store_rows_remove(a->objects, MARKS_TABLE, MARKS_ROW, &err);

	a->caches->marks_since_s = rc < 0 ? 0 : since_s;
	if (rc < 0 && err.kind != ERR_NOT_FOUND)
		log_err(LOG_ERROR, NULL, "cannot store since when attestations are recorded", &err);
}

static void take_later(void *arg, const struct kobj *o)
{
	int64_t *s = arg;

	*s = o->created_s > *s ? o->created_s : *s;
}

/* Until both lists are complete, a server or Machine may be missing from them. Only while no other
 * server has the keys of this cluster does a missing mark prove anything. */
void attested_check(struct attested *a)
{
	struct caches *s = a->caches;
	const struct model_cluster *c = caches_cluster_policy(s);
	bool alone = a->here && c && c->n_servers == 0 && c->delivery != MODEL_DELIVERY_VOLUMES;
	int64_t since_s = alone ? clock_wall_s() : 0;

	if (!k8s_cache_filled(s->clusters) || !k8s_cache_filled(s->machines) ||
		alone == (s->marks_since_s != 0))
		return;
	/* Later than each existing Machine, in case the clock was ahead when one was created. */
	if (alone)
		k8s_cache_each(s->machines, take_later, &since_s);
	set_row(a, since_s);
	s->never_attested = 0; /* no Machine is younger than marks_since_s */
}

/* Another server may have been named or removed. */
static void on_cluster(void *arg, const struct kobj *was, const struct kobj *now)
{
	attested_check(arg);
}

/* Keep the count of Machines whose node has never had its disk key. */
static void on_machine(void *arg, const struct kobj *was, const struct kobj *now)
{
	struct attested *a = arg;
	struct caches *s = a->caches;

	s->never_attested += caches_machine_never_attested(s, now ? model_machine(now) : NULL);
	s->never_attested -= caches_machine_never_attested(s, was ? model_machine(was) : NULL);
}

/* No row is not an error: marks_since_s stays 0, as for a row from before the last restoration.
 * The listeners are registered for the life of the caches, which end before `a` is freed. */
struct attested *attested_new(
	struct store_objects *objects, struct caches *caches, bool here, struct err *err)
{
	struct attested *a = xcalloc(1, sizeof(*a));
	int64_t since_s, restored_s;
	void *data;
	size_t len;

	*a = (struct attested){objects, caches, here};
	if (store_rows_get(objects, MARKS_TABLE, MARKS_ROW, &data, &len, err) == 0) {
		cleanup_free char *text = xstrndup(data, len);

		free(data);
		if (sscanf(text, "%" SCNd64 " %" SCNd64, &since_s, &restored_s) == 2 &&
			restored_s == caches->restored_s)
			caches->marks_since_s = since_s;
	} else if (err->kind != ERR_NOT_FOUND) {
		free(a);
		err_wrap(err, "cannot read since when attestations are recorded");
		return NULL;
	}
	err_clear(err);
	k8s_cache_listen(caches->clusters, on_cluster, a);
	k8s_cache_listen(caches->machines, on_machine, a);
	return a;
}

void attested_free(struct attested *a)
{
	free(a);
}

/* End the request for a key with an error; text may be empty. */
static void refuse(struct broker_held *h, enum err_kind kind, const char *text)
{
	struct err err = ERR_INIT;

	(void)!err_set(&err, kind, "%s", text);
	broker_held_end(h, &err);
}

/* The Machine whose disk key the path names; NULL: another resource, or no such Machine. */
static const struct model_machine *machine_of(const struct attested *a, const char *path)
{
	char id[UUID_TEXT_LEN + 1];

	return rats_resource_is_root(path, id) ? caches_machine_of_id(a->caches, id) : NULL;
}

/* The API answered the mark. A failed write is harmless if the Machine has an older mark: that
 * already protects it from deletion. */
static void on_marked(void *arg, const struct err *err, const struct k8s_result *r)
{
	struct broker_held *h = arg;
	struct attested *a = h->arg;
	const struct model_machine *m = machine_of(a, h->path);

	if (err->kind == ERR_NOT_FOUND ||
		(r->object && json_get(r->object, "metadata/deletionTimestamp"))) {
		refuse(h, ERR_NOT_FOUND, "");
	} else if (!err_is_set(err) || (m && !caches_machine_never_attested(a->caches, m))) {
		broker_held_end(h, NULL); /* marked, or an older mark protects the Machine */
	} else {
		log_err(LOG_WARN, NULL, "disk key withheld, the attestation cannot be recorded",
			err);
		refuse(h, ERR_TRANSIENT, "The attestation cannot be recorded.");
	}
}

/* One write per Machine and day: a mark of today is as good as a new one. */
static void mark(
	struct attested *a, struct k8s_transport *api, const char *ns, struct broker_held *h)
{
	const struct model_machine *m = machine_of(a, h->path);
	int64_t now_s = clock_wall_s();
	cleanup_json struct json_object *o = NULL;

	h->arg = a;
	if (!k8s_cache_filled(a->caches->machines)) {
		refuse(h, ERR_TRANSIENT, "The list of Machines is still being read.");
	} else if (!m) {
		broker_held_end(h, NULL);
	} else if (m->obj.deleting) {
		refuse(h, ERR_NOT_FOUND, "");
	} else if (m->attested_s && now_s >= m->attested_s && now_s - m->attested_s < DAY_S) {
		broker_held_end(h, NULL);
	} else {
		o = ctl_machine_attested_json(m, now_s);
		(void)k8s_call_apply(api, h->ops, &kobj_machine, ns, o, on_marked, h);
	}
}

/* ---- policies */

/* List every policy that the operator may declare, so that the broker recognises them by their
 * text: both ways to share keys, each with and without PCR 7, and once per boot or at any time. */
static void name_policies(struct broker_policy out[N_POLICIES])
{
	size_t n = 0;

	for (int shared = 0; shared < 2; shared++) {
		struct model_cluster c = {
			.isolation = shared ? MODEL_ISOLATION_SHARED : MODEL_ISOLATION_PER_MACHINE};
		enum rats_policy policy = shared ? RATS_POLICY_SHARED : RATS_POLICY_PER_MACHINE;

		for (int strict = 0; strict < 2; strict++) {
			c.pcr7 = strict ? MODEL_PCR7_REQUIRE : MODEL_PCR7_IGNORE;
			c.release = strict ? MODEL_RELEASE_ONCE_PER_BOOT : MODEL_RELEASE_ANY_TIME;
			out[n++] = (struct broker_policy){
				.text = render_trustee_attestation_policy(&c),
				.policy = policy,
				.require_pcr7 = strict};
			out[n++] =
				(struct broker_policy){.text = render_trustee_resource_policy(&c),
					.resource = true,
					.policy = policy,
					.once_per_boot = strict};
		}
	}
}

/* ---- verdicts */

/* The object that a verdict is about. It is the Machine only if the Machine's own key has
 * proved who asks; otherwise anybody could raise Events about any Machine. */
static const struct kobj *concerned(const struct embedded *e, const struct broker_judged *j,
	const char *spki, const struct kobj_gvk **gvk)
{
	const struct model_machine *m = j->key_proved && j->machine
						? caches_machine_of_id(e->nodes.caches, j->machine)
						: NULL;

	*gvk = m ? &kobj_machine : &kobj_ak;
	if (m)
		return &m->obj;
	return j->key_proved && *spki ? k8s_cache_first(e->nodes.caches->aks, 1, spki) : NULL;
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
	const char *port = strrchr(j->peer, ':');
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
			(int)(port ? port - j->peer : (ptrdiff_t)strlen(j->peer)), j->peer, j->why);
}

/* ---- life */

/* Sessions and their limits are those of the options. The key that signs tokens is created on the
 * first start and committed at once: a token must not be signed by a key that a crash would lose.
 * The listener comes later (embedded_listen): it needs the caches, which need a transport. */
struct embedded *embedded_new(
	struct loop *l, struct store_objects *objects, const struct options *o, struct err *err)
{
	struct embedded *e = xcalloc(1, sizeof(*e));
	struct rows *rows;
	struct broker_attest_conf conf = {.policies = e->policies,
		.n_policies = N_POLICIES,
		.sample = o->guard.sample,
		.token_s = TOKEN_S,
		.session_ms = o->guard.session_ms,
		.sessions = o->guard.sessions,
		.sessions_per_source = o->guard.sessions_per_source,
		.on_judged = on_judged,
		.arg = e};

	e->signer = store_rows_get_key(objects, SIGNER_TABLE, SIGNER_NAME, err);
	if (!e->signer && err->kind == ERR_NOT_FOUND) {
		cleanup_pki_key struct pki_key *key = pki_key_new_p256();

		err_clear(err);
		if (store_rows_set_key(objects, SIGNER_TABLE, SIGNER_NAME, key, err) == 0 &&
			store_objects_commit(objects, err) == 0)
			e->signer = steal_ptr(&key);
	}
	if (!e->signer) {
		err_wrap(err, "cannot load the key that signs attestation tokens");
		free(e);
		return NULL;
	}
	e->loop = l;
	e->options = o;
	rows = xcalloc(1, sizeof(*rows));
	rows->base.ops = &rows_ops;
	rows->objects = objects;
	e->store = &rows->base;
	name_policies(e->policies);
	conf.store = e->store;
	conf.signer = e->signer;
	e->attest = broker_attest_new(&conf);
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

/* The broker holds a key until mark() decides. */
static void on_held(void *arg, struct broker_held *h)
{
	const struct embedded *e = arg;

	mark(e->nodes.attested, e->nodes.api, e->nodes.ns, h);
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
	return options_listen(
		broker_kbsd_httpd(e->kbsd), "--listen-kbs", e->options->guard.listen_kbs, err);
}

struct httpd *embedded_httpd(struct embedded *e)
{
	return e->kbsd ? broker_kbsd_httpd(e->kbsd) : NULL;
}

bool *embedded_tls(struct embedded *e)
{
	return &e->tls;
}
