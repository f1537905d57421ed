/* SPDX-License-Identifier: MIT */
/*
 * Two books, revocations and IDs, each with a list of waiting entries. A write is the whole text
 * of one ConfigMap, which is created, or patched with the resourceVersion in the cache: after a
 * conflict it is written again with the changes in between. Entries that are too old are left out
 * of each write.
 */
#include "config.h"

#include "tec/ctl/record.h"

#include <stdio.h>
#include <string.h>
#include <sys/queue.h>

#include "ctl_internal.h"
#include "tec/base/backoff.h"
#include "tec/base/clock.h"
#include "tec/base/json.h"
#include "tec/base/log.h"
#include "tec/base/mem.h"
#include "tec/base/table.h"
#include "tec/loop/timer.h"
#include "tec/rats/ticket.h"
#include "tec/render/regkey.h"

#define DAY_S     (24 * 60 * 60)
#define GATHER_MS 300   /* collects entries into one write */
#define FULL_MS   10000 /* polling interval while a book is full */
/* A listener may use the previous registration key for so long after a new one was created. */
#define SETTLE_S 60

enum book { REVOKED, IDS, N_BOOKS };

struct waiting {
	struct table_link link; /* by name */
	TAILQ_ENTRY(waiting) next;
	enum model_record_kind kind;
	int64_t at_s;
	struct ctl_runner *waker; /* borrowed */
	char *key;                /* owned */
	char name[];
};
TAILQ_HEAD(waitings, waiting);

struct ctl_record {
	const struct ctl_env *env; /* borrowed */
	struct op_scope ops;
	struct op *call;
	struct timer due;
	struct backoff backoff;
	struct waitings waiting[N_BOOKS];     /* owned, oldest first */
	struct table by_name;                 /* of all waiting entries */
	bool ids_first;                       /* the last write tried IDs first */
	int64_t ids_end_s;                    /* ctl_record_end_ids() */
	enum book writing;                    /* of the call */
	char problem[N_BOOKS][ERR_TEXT_SIZE]; /* why the last write failed; "": it did not */
};

/* ---- waiting entries */

static enum book book_of(enum model_record_kind kind)
{
	return kind == MODEL_RECORD_ID ? IDS : REVOKED;
}

/* Find a waiting entry of this name; key NULL: of any key. */
static struct waiting *find(const struct ctl_record *r, enum model_record_kind kind,
	const char *name, const struct ctl_runner *waker, const char *key)
{
	struct waiting *w;

	TABLE_WITH_HASH (w, link, &r->by_name, table_hash_str(name))
		if (w->kind == kind && str_eq(w->name, name) &&
			(!key || (w->waker == waker && str_eq(w->key, key))))
			return w;
	return NULL;
}

/* Remove an entry from both its list and the table. */
static void waiting_free(struct ctl_record *r, struct waiting *w)
{
	TAILQ_REMOVE(&r->waiting[book_of(w->kind)], w, next);
	table_remove(&r->by_name, &w->link);
	free(w->key);
	free(w);
}

/* ---- recorded entries */

/* Entries in an ID record may be of another kind if a client edited it. */
static bool id_counts(const struct ctl_record *r, const struct model_record_entry *e)
{
	return e->kind == MODEL_RECORD_ID && ctl_record_id_counts(r, e->name);
}

/* Tell whether an entry is kept when its ConfigMap is written again. */
static bool stays(const struct ctl_record *r, enum book b, const struct model_record_entry *e)
{
	if (b == REVOKED)
		return e->kind != MODEL_RECORD_ID &&
		       e->at_s >= caches_record_oldest_s(r->env->caches);
	return id_counts(r, e) &&
	       (e->at_s >= r->ids_end_s || clock_wall_s() < r->ids_end_s + SETTLE_S);
}

/* Entries that expired do not count: they leave the ConfigMap with the next write. */
static size_t count(const struct ctl_record *r, enum book b, const struct model_record *record)
{
	size_t n = 0;

	for (size_t i = 0; record && i < record->n; i++)
		n += stays(r, b, &record->v[i]);
	return n;
}

/* Choose the ConfigMap for the next revocations: the first with free entries, or else the one
 * with the oldest entries, which are dropped. -1: none can be written. */
static int choose(const struct ctl_record *r, bool *drops)
{
	char name[sizeof(MODEL_RECORD_REVOKED) + 10];
	int64_t oldest = INT64_MAX;
	int best = -1;

	*drops = false;
	for (unsigned i = 0; i < MODEL_RECORD_MAPS; i++) {
		const struct model_configmap *m;

		model_record_name(i, name);
		m = caches_configmap(r->env->caches, name);
		if (m && (m->plain.obj.unreadable || m->plain.obj.immutable))
			continue;
		if (!m || count(r, REVOKED, m->record) < MODEL_RECORD_ENTRIES) {
			*drops = false;
			return (int)i;
		}
		*drops = true;
		if (m->record->newest_s < oldest) {
			oldest = m->record->newest_s;
			best = (int)i;
		}
	}
	return best;
}

/* ---- a write */

static void on_done(void *arg, const struct err *err, const struct k8s_result *result);

/* Create or patch one ConfigMap: the text so far, up to `room` waiting entries, oldest first (the
 * others wait for the next write), and those of the record that are still needed. The UID in the
 * patch keeps it from reaching a replaced object. */
static void write_map(struct ctl_record *r, const char *name, enum book b,
	const struct model_record *record, size_t room, struct strbuf *text)
{
	const struct model_configmap *m = caches_configmap(r->env->caches, name);
	cleanup_json struct json_object *o = NULL;
	struct json_object *meta;
	struct waiting *w;

	TAILQ_FOREACH (w, &r->waiting[b], next) {
		if (room-- == 0)
			break;
		model_record_add(text, w->kind, w->name, w->at_s);
	}
	for (size_t i = 0; record && i < record->n; i++) {
		const struct model_record_entry *e = &record->v[i];

		if (stays(r, b, e))
			model_record_add(text, e->kind, e->name, e->at_s);
	}
	if (m) {
		o = ctl_patch_of(&m->plain.obj, &meta);
		json_add(meta, "labels",
			json_add_str(json_obj(), "app.kubernetes.io/managed-by", "tec-operator"));
	} else {
		o = ctl_configmap_new(name, r->env->ns);
	}
	json_add_str(json_get_obj(o, "metadata/labels"), MODEL_RECORD_LABEL,
		b == IDS ? "ids" : "revoked");
	json_add(o, "data", json_add_str(json_obj(), MODEL_RECORD_FILE, strbuf_str(text)));
	r->writing = b;
	op_hold(&r->call, m ? k8s_call_merge_patch(r->env->api, &r->ops, &kobj_configmap,
				      r->env->ns, name, o, on_done, r)
			    : k8s_call_create(r->env->api, &r->ops, &kobj_configmap, r->env->ns, o,
				      0, on_done, r));
}

/* Called before the write, which may still fail: better one warning too many. */
static void tell_dropped(struct ctl_record *r)
{
	const struct model_cluster *c = caches_cluster(r->env->caches);

	log_warn(NULL, "too many revocations, the oldest are no longer recorded", NULL);
	if (c)
		k8s_events_post(r->env->events, &kobj_cluster, &c->obj, K8S_EVENT_WARNING,
			"RevocationsForgotten", "Revoke",
			"More was revoked within %d days than can be recorded (ConfigMaps " MODEL_RECORD_REVOKED
			"N), and the oldest revocations were dropped. They are not repeated when a Trustee is restored to an "
			"older state: do not restore a backup that is older than them.",
			MODEL_RECORD_DAYS);
}

/* Write the waiting revocations. False: nothing can be written now. */
static bool write_revoked(struct ctl_record *r)
{
	cleanup_strbuf struct strbuf text = STRBUF_INIT;
	char name[sizeof(MODEL_RECORD_REVOKED) + 10];
	const struct model_record *record;
	bool drops;
	int map;

	if (TAILQ_EMPTY(&r->waiting[REVOKED]) || (map = choose(r, &drops)) < 0)
		return false;
	model_record_name((unsigned)map, name);
	record = caches_record(r->env->caches, name);
	if (drops) {
		tell_dropped(r);
		model_record_add(&text, MODEL_RECORD_DROPPED, "-", record->newest_s);
		record = NULL;
	}
	write_map(r, name, REVOKED, record,
		MODEL_RECORD_ENTRIES - count(r, REVOKED, record) - drops, &text);
	return true;
}

/* IDs are never dropped while valid: when the book is full, further ones wait. */
static bool write_ids(struct ctl_record *r)
{
	const struct model_configmap *m = caches_configmap(r->env->caches, MODEL_RECORD_IDS);
	cleanup_strbuf struct strbuf text = STRBUF_INIT;
	size_t n = m ? count(r, IDS, m->record) : 0;

	if (TAILQ_EMPTY(&r->waiting[IDS]) || n >= MODEL_RECORD_IDS_MAX ||
		(m && m->plain.obj.unreadable))
		return false;
	write_map(r, MODEL_RECORD_IDS, IDS, m ? m->record : NULL, MODEL_RECORD_IDS_MAX - n, &text);
	return true;
}

/* Start one write, if there is anything to write and nothing in flight. */
static void work(void *arg)
{
	struct ctl_record *r = arg;

	if (r->call)
		return;
	r->ids_first = !r->ids_first; /* a failing book does not block the other */
	if (k8s_cache_filled(r->env->caches->configmaps) &&
		(r->ids_first ? write_ids(r) || write_revoked(r)
			      : write_revoked(r) || write_ids(r)))
		return;
	if (r->by_name.n)
		timer_set(&r->due, FULL_MS);
}

/* Any end of a write. A refusal is shown in the conditions of all waiting objects; a conflict
 * only means writing again with the newer version. */
static void on_done(void *arg, const struct err *err, const struct k8s_result *result)
{
	struct ctl_record *r = arg;
	char *problem = r->problem[r->writing];
	bool had_problem = *problem;
	struct waiting *w;

	if (!err_is_set(err)) {
		backoff_reset(&r->backoff);
		*problem = '\0';
		ctl_take_answer(r->env->caches->configmaps, result->object, true);
	} else if (ctl_err_is_refusal(err)) {
		snprintf(problem, sizeof(r->problem[0]), "%s", err->text);
	}
	if (had_problem != (*problem != '\0')) /* the conditions of all that wait show it */
		TAILQ_FOREACH (w, &r->waiting[r->writing], next)
			ctl_runner_wake(w->waker, w->key);
	if (err_is_set(err) && err->kind != ERR_CONFLICT)
		log_err(LOG_WARN, NULL,
			"cannot record deletions, finalizers stay until they are recorded", err);
	if (r->by_name.n)
		timer_set(&r->due,
			err_is_set(err) ? backoff_next(&r->backoff, BACKOFF_MIN_MS, BACKOFF_MAX_MS)
					: GATHER_MS);
}

/* ---- the cache */

/* An entry is done when the cache shows it, whoever wrote it. */
static void on_change(void *arg, const struct kobj *was, const struct kobj *now)
{
	struct ctl_record *r = arg;
	const struct model_record *record = now && model_record_is_name(now->name)
						    ? ((const struct model_configmap *)now)->record
						    : NULL;
	struct waiting *w, *next;

	for (int b = 0; record && b < N_BOOKS; b++) {
		for (w = TAILQ_FIRST(&r->waiting[b]); w; w = next) {
			const struct model_record_entry *e =
				model_record_find(record, w->kind, w->name);

			next = TAILQ_NEXT(w, next);
			if (!e || e->at_s < w->at_s)
				continue;
			ctl_runner_wake(w->waker, w->key);
			waiting_free(r, w);
		}
	}
}

/* ---- the interface */

/* Any server with its own store is enough, also one named in spec.trusteeServers, or a lost one, which
 * may come back. */
bool ctl_record_is_wanted(const struct ctl_record *r)
{
	const struct model_cluster *c = caches_cluster(r->env->caches);
	bool others = (!r->env->caches->kbs_in_process &&
			      !(c && c->delivery == MODEL_DELIVERY_VOLUMES)) ||
		      (c && c->lost_servers);

	for (unsigned i = 0; c && i < c->n_servers; i++)
		others |= c->server_admin[i] != NULL;
	return others;
}

/* A revocation recorded more than a day ago is recorded again: it expires earlier, and may stem
 * from another deletion of the same name. */
enum ctl_recorded ctl_record_state(
	const struct ctl_record *r, enum model_record_kind kind, const char *name, int64_t at_s)
{
	int64_t since_s = kind == MODEL_RECORD_ID ? at_s : clock_wall_s() - DAY_S;

	if (caches_record_has(r->env->caches, kind, name, since_s))
		return CTL_RECORDED;
	if (!find(r, kind, name, NULL, NULL))
		return CTL_RECORD_MISSING;
	return *r->problem[book_of(kind)] ? CTL_RECORD_FAILS : CTL_RECORD_WAITS;
}

/* Several keys may wait for one name; each has its own entry, so that all are woken. */
void ctl_record_add(struct ctl_record *r, enum model_record_kind kind, const char *name,
	int64_t at_s, struct ctl_runner *waker, const char *key)
{
	size_t len = strlen(name);
	struct waiting *w;

	if (find(r, kind, name, waker, key))
		return;
	w = xcalloc(1, sizeof(*w) + len + 1);
	memcpy(w->name, name, len);
	w->kind = kind;
	w->at_s = at_s;
	w->waker = waker;
	w->key = xstrdup(key);
	TAILQ_INSERT_TAIL(&r->waiting[book_of(kind)], w, next);
	table_add(&r->by_name, &w->link, table_hash_str(name));
	if (!r->call && !r->backoff.ms)
		timer_set_earlier(&r->due, GATHER_MS);
}

const char *ctl_record_problem(const struct ctl_record *r)
{
	return *r->problem[REVOKED] ? r->problem[REVOKED] : r->problem[IDS];
}

/* Without AtKey, and without a registration key that is still announced, no listener accepts any
 * ID. */
bool ctl_record_id_counts(const struct ctl_record *r, const char *id)
{
	const struct model_cluster *c = caches_cluster(r->env->caches);

	if (!c) /* IDs issued for a cluster end with it */
		return caches_cluster_unknown(r->env->caches);
	return (c->reg_machine == MODEL_REG_AT_KEY ||
		       model_cluster_announced(c, RENDER_REGKEY_CURRENT)) &&
	       rats_ticket_counts(id, rats_ticket_epoch(clock_wall_s(), c->pending_ttl_ms));
}

/* Called in each step of the cluster, so it only notes the time. */
void ctl_record_end_ids(struct ctl_record *r, int64_t before_s)
{
	r->ids_end_s = before_s;
}

/* Called for each look of the cluster, so the cheap comparison of the count comes first. */
bool ctl_record_ids_full(const struct ctl_record *r)
{
	const struct model_record *ids = caches_record(r->env->caches, MODEL_RECORD_IDS);
	size_t n = 0;

	for (size_t i = 0; ids && ids->n >= MODEL_RECORD_IDS_MAX && i < ids->n; i++)
		n += id_counts(r, &ids->v[i]) && ids->v[i].at_s >= r->ids_end_s;
	return n >= MODEL_RECORD_IDS_MAX;
}

/* ---- life */

struct ctl_record *ctl_record_new(const struct ctl_env *env)
{
	struct ctl_record *r = xcalloc(1, sizeof(*r));

	r->env = env;
	timer_init(&r->due, env->loop, work, r);
	for (int b = 0; b < N_BOOKS; b++)
		TAILQ_INIT(&r->waiting[b]);
	k8s_cache_listen(env->caches->configmaps, on_change, r);
	return r;
}

/* Waiting names are not lost: the objects that wait still have their finalizers. */
void ctl_record_off(struct ctl_record *r)
{
	struct waiting *w;

	op_scope_cancel(&r->ops);
	timer_cancel(&r->due);
	backoff_reset(&r->backoff);
	memset(r->problem, 0, sizeof(r->problem));
	for (int b = 0; b < N_BOOKS; b++)
		while ((w = TAILQ_FIRST(&r->waiting[b])) != NULL)
			waiting_free(r, w);
}

void ctl_record_free(struct ctl_record *r)
{
	if (!r)
		return;
	ctl_record_off(r);
	timer_fini(&r->due);
	table_fini(&r->by_name);
	free(r);
}
