/* SPDX-License-Identifier: MIT */
/*
 * Two counters updated by cache changes, and two for places whose objects no cache shows yet.
 * Places are found by object name, when the cache shows the object, and by uuid, to count the
 * keys of one Machine. Kept places are queued in the order of their expiry, so expired ones are
 * at the head.
 */
#include "config.h"

#include "tec/srv/pending.h"

#include <stdio.h>
#include <string.h>
#include <sys/queue.h>

#include "tec/base/clock.h"
#include "tec/base/mem.h"
#include "tec/base/metric.h"
#include "tec/base/str.h"
#include "tec/base/table.h"
#include "tec/base/uuid.h"
#include "tec/model/pending.h"
#include "tec/net/addr.h"
#include "tec/srv/share.h"

#define KEEP_MS     10000 /* for the cache to show an object */
#define TELL_MS     60000 /* between two reports of one limit */
#define SOURCES_MAX 4096  /* bounds the memory for source addresses */
#define NAME_MAX_   64    /* machine-UUID, or MODEL_AK_NAME_LEN */

static struct metric waiting = METRIC_GAUGE_INIT("tec_registration_pending",
	"Objects created by listeners that nothing has matched yet, by kind.", "kind", NULL);

struct srv_place {
	struct srv_pending *p;
	bool key;          /* else a Machine */
	bool seen;         /* the cache shows the object and counts it */
	bool kept;         /* the request is over; in the queue */
	uint64_t until_ms; /* boot time at which a kept place expires */
	char name[NAME_MAX_];
	char uuid[UUID_TEXT_LEN + 1]; /* of a key; "": without */
	char peer[ADDR_TEXT_LEN];     /* of a Machine */
	char *made_uid;               /* owned; NULL: not created, or unknown */
	struct table_link by_name, by_uuid;
	TAILQ_ENTRY(srv_place) link; /* in kept */
};

struct srv_pending {
	const struct caches *caches; /* borrowed */
	size_t pending_machines, pending_aks;
	size_t machine_places, key_places; /* places whose objects no cache shows */
	struct sources *share;
	struct table by_name, by_uuid;
	TAILQ_HEAD(, srv_place) kept;
	uint64_t told_ms[SRV_LIMIT_N];  /* 0: never */
	unsigned left_out[SRV_LIMIT_N]; /* refusals since the last report */
};

const struct srv_limit_words srv_limits[SRV_LIMIT_N] = {
	[SRV_LIMIT_NONE] = {"none", ""},
	[SRV_LIMIT_MACHINES] = {"pendingLimit",
		"Too many Machines wait for their key (registration.pendingLimit)"},
	[SRV_LIMIT_ALL_MACHINES] = {"machineLimit",
		"The cluster has reached its limit of Machines (registration.machineLimit)"},
	[SRV_LIMIT_NEVER_ATTESTED] = {"neverAttested",
		"Too many Machines have not attested yet (half of registration.machineLimit)"},
	[SRV_LIMIT_SHARE] = {"source",
		"Too many Machines were created for this address within an hour (registration.pendingLimit)"},
	[SRV_LIMIT_KEYS] = {"pendingKeys",
		"Too many keys wait for approval (registration.pendingLimit)"},
	[SRV_LIMIT_WAITING_KEYS] = {"waitingKeysPerMachine",
		"Too many keys wait for this Machine (registration.waitingKeysPerMachine)"},
};

/* ---- places */

/* The counter that a place adds to until the cache shows its object. */
static size_t *counter(struct srv_place *e)
{
	return e->key ? &e->p->key_places : &e->p->machine_places;
}

/* Names are cut to NAME_MAX_, which all names of listeners fit. */
static struct srv_place *place_new(
	struct srv_pending *p, bool key, const char *name, const char *uuid, const char *peer)
{
	struct srv_place *e = xcalloc(1, sizeof(*e));

	e->p = p;
	e->key = key;
	snprintf(e->name, sizeof(e->name), "%s", name);
	snprintf(e->uuid, sizeof(e->uuid), "%s", uuid ? uuid : "");
	snprintf(e->peer, sizeof(e->peer), "%s", peer ? peer : "");
	table_add(&p->by_name, &e->by_name, table_hash_str(e->name));
	if (*e->uuid)
		table_add(&p->by_uuid, &e->by_uuid, table_hash_str(e->uuid));
	++*counter(e);
	return e;
}

static void place_free(struct srv_place *e)
{
	if (!e->seen)
		--*counter(e);
	table_remove(&e->p->by_name, &e->by_name);
	if (*e->uuid)
		table_remove(&e->p->by_uuid, &e->by_uuid);
	if (e->kept)
		TAILQ_REMOVE(&e->p->kept, e, link);
	free(e->made_uid);
	free(e);
}

/* A process without that cache will never see the object, so there is nothing to wait for. */
void srv_place_keep(struct srv_place *e, const char *made_uid)
{
	if (e->seen || !(e->key ? e->p->caches->aks : e->p->caches->machines)) {
		place_free(e);
		return;
	}
	e->kept = true;
	e->made_uid = xstrdup(made_uid);
	e->until_ms = clock_boot_ms() + KEEP_MS;
	TAILQ_INSERT_TAIL(&e->p->kept, e, link);
}

void srv_place_give_back(struct srv_place *e)
{
	if (!e->key)
		srv_share_give_back(e->p->share, e->peer);
	place_free(e);
}

/* An object that the cache did not show in time was not created, or is already gone. */
static void drop_old(struct srv_pending *p)
{
	struct srv_place *e;

	while ((e = TAILQ_FIRST(&p->kept)) && e->until_ms <= clock_boot_ms())
		place_free(e);
}

/* The cache shows the object: it counts there from now on. A kept place ends; one of a running
 * request is only marked, as the request still owns it. */
static void on_shown(struct srv_pending *p, bool key, const struct kobj *o)
{
	struct srv_place *e;

	if (!o || p->by_name.n == 0)
		return;
	TABLE_WITH_HASH (e, by_name, &p->by_name, table_hash_str(o->name)) {
		if (e->key != key || e->seen || !str_eq(e->name, o->name))
			continue;
		if (e->kept) {
			place_free(e);
		} else {
			e->seen = true;
			--*counter(e);
		}
	}
}

/* ---- caches */

static void on_machine(void *arg, const struct kobj *was, const struct kobj *now)
{
	struct srv_pending *p = arg;

	p->pending_machines += model_pending_machine(model_machine(now));
	p->pending_machines -= model_pending_machine(model_machine(was));
	metric_set(&waiting, "Machine", NULL, (double)p->pending_machines);
	on_shown(p, false, now);
}

static void on_ak(void *arg, const struct kobj *was, const struct kobj *now)
{
	struct srv_pending *p = arg;

	p->pending_aks += model_pending_ak(model_ak(now));
	p->pending_aks -= model_pending_ak(model_ak(was));
	metric_set(&waiting, "AttestationKey", NULL, (double)p->pending_aks);
	on_shown(p, true, now);
}

/* Either cache may be absent; its objects then count only while they are places. */
struct srv_pending *srv_pending_new(const struct caches *caches)
{
	struct srv_pending *p = xcalloc(1, sizeof(*p));

	p->caches = caches;
	p->share = srv_share_new(SOURCES_MAX);
	TAILQ_INIT(&p->kept);
	if (caches->machines)
		k8s_cache_listen(caches->machines, on_machine, p);
	if (caches->aks)
		k8s_cache_listen(caches->aks, on_ak, p);
	return p;
}

/* All listeners must be gone: a place that a request still holds would be left dangling. */
void srv_pending_free(struct srv_pending *p)
{
	struct srv_place *e;

	if (!p)
		return;
	while ((e = TAILQ_FIRST(&p->kept)))
		place_free(e);
	if (p->by_name.n > 0)
		DIE("%u registrations outlive their listeners", (unsigned)p->by_name.n);
	table_fini(&p->by_name);
	table_fini(&p->by_uuid);
	sources_free(p->share);
	free(p);
}

/* ---- limits */

/* Counts include places. never_attested stays 0 until it is known since when attestation is
 * marked: older Machines would all seem unattested. */
static struct model_pending counts(struct srv_pending *p)
{
	drop_old(p);
	return (struct model_pending){
		.machines = p->pending_machines + p->machine_places,
		.keys = p->pending_aks + p->key_places,
		.all_machines = (p->caches->machines ? k8s_cache_count(p->caches->machines) : 0) +
				p->machine_places,
		.never_attested = p->caches->marks_since_s
					  ? p->caches->never_attested + p->machine_places
					  : 0,
	};
}

size_t srv_pending_count(struct srv_pending *p)
{
	struct model_pending n = counts(p);

	return n.machines + n.keys;
}

size_t srv_pending_under_way(struct srv_pending *p)
{
	drop_old(p);
	return p->machine_places + p->key_places;
}

/* The cluster's limits before the source's share, so that the reason is the most general one. */
enum srv_limit srv_pending_machine_limit(
	struct srv_pending *p, const struct model_cluster *c, const char *peer)
{
	struct model_pending n = counts(p);

	if (model_pending_is_reached(c, &n, MODEL_PENDING_MACHINES))
		return SRV_LIMIT_MACHINES;
	if (model_pending_is_reached(c, &n, MODEL_PENDING_ALL_MACHINES))
		return SRV_LIMIT_ALL_MACHINES;
	if (model_pending_is_reached(c, &n, MODEL_PENDING_NEVER_ATTESTED))
		return SRV_LIMIT_NEVER_ATTESTED;
	return srv_share_count(p->share, peer) >= model_pending_share(c) ? SRV_LIMIT_SHARE
									 : SRV_LIMIT_NONE;
}

struct srv_place *srv_pending_take_machine(struct srv_pending *p, const struct model_cluster *c,
	const char *peer, const char *name, enum srv_limit *why)
{
	*why = srv_pending_machine_limit(p, c, peer);
	if (*why != SRV_LIMIT_NONE)
		return NULL;
	srv_share_add(p->share, peer);
	return place_new(p, false, name, NULL, peer);
}

/* Count the waiting keys of one uuid, in the cache and under way. It visits at most limit + 1
 * keys in the cache: the walk ends as soon as the limit is met. */
static int count_waiting(struct srv_pending *p, const char *uuid, int limit)
{
	const struct kobj *o = p->caches->aks ? k8s_cache_first(p->caches->aks, 0, uuid) : NULL;
	const struct srv_place *e;
	int n = 0;

	for (; o && n < limit; o = k8s_cache_next(p->caches->aks, 0, o))
		n += model_pending_ak(model_ak(o));
	TABLE_WITH_HASH (e, by_uuid, &p->by_uuid, table_hash_str(uuid))
		n += !e->seen && str_eq(e->uuid, uuid);
	return n;
}

/* Find the kept place of an earlier attempt with unknown outcome: it is the same object and must
 * not count twice. */
static struct srv_place *take_again(struct srv_pending *p, const char *name, const char *uuid)
{
	struct srv_place *e;

	TABLE_WITH_HASH (e, by_name, &p->by_name, table_hash_str(name)) {
		if (!e->key || !e->kept || !str_eq(e->name, name) ||
			!str_eq(e->uuid, uuid ? uuid : ""))
			continue;
		TAILQ_REMOVE(&p->kept, e, link);
		e->kept = false;
		free(steal_ptr(&e->made_uid));
		return e;
	}
	return NULL;
}

/* The first key of a known Machine passes pendingLimit, so that strangers who fill it cannot lock
 * out a node. */
struct srv_place *srv_pending_take_key(struct srv_pending *p, const struct model_cluster *c,
	const char *name, const char *uuid, bool machine, enum srv_limit *why)
{
	struct model_pending n = counts(p);
	int waiting_keys = uuid ? count_waiting(p, uuid, c->waiting_keys) : 0;
	struct srv_place *again = take_again(p, name, uuid);
	bool first = machine && waiting_keys == 0 &&
		     !(p->caches->aks && k8s_cache_first(p->caches->aks, 0, uuid));

	*why = SRV_LIMIT_NONE;
	if (again)
		return again;
	if (waiting_keys >= c->waiting_keys)
		*why = SRV_LIMIT_WAITING_KEYS;
	else if (!first && model_pending_is_reached(c, &n, MODEL_PENDING_KEYS))
		*why = SRV_LIMIT_KEYS;
	return *why == SRV_LIMIT_NONE ? place_new(p, true, name, uuid, NULL) : NULL;
}

/* MADE wins over OPEN: two requests with the same key may be under way at once. */
enum srv_under_way srv_pending_key_under_way(
	struct srv_pending *p, const char *name, const char **uuid)
{
	enum srv_under_way found = SRV_UNDER_WAY_NONE;
	const struct srv_place *e;

	drop_old(p);
	TABLE_WITH_HASH (e, by_name, &p->by_name, table_hash_str(name)) {
		if (!e->key || !str_eq(e->name, name))
			continue;
		if (e->made_uid) {
			*uuid = e->uuid;
			return SRV_UNDER_WAY_MADE;
		}
		if (!e->kept)
			found = SRV_UNDER_WAY_OPEN;
	}
	return found;
}

const char *srv_pending_made_machine(struct srv_pending *p, const char *name)
{
	const struct srv_place *e;

	drop_old(p);
	TABLE_WITH_HASH (e, by_name, &p->by_name, table_hash_str(name))
		if (!e->key && e->made_uid && *e->made_uid && str_eq(e->name, name))
			return e->made_uid;
	return NULL;
}

/* A refused crowd must not flood the log and the API with reports of itself. */
bool srv_pending_may_tell(struct srv_pending *p, enum srv_limit l, unsigned *left_out)
{
	uint64_t now = clock_boot_ms();

	if (p->told_ms[l] && now - p->told_ms[l] < TELL_MS) {
		p->left_out[l]++;
		return false;
	}
	*left_out = p->left_out[l];
	p->left_out[l] = 0;
	p->told_ms[l] = now;
	return true;
}
