/* SPDX-License-Identifier: MIT */
/*
 * Leader election as in client-go: the lease of another holder has expired when its record did not
 * change for the record's duration by our own boot clock. The holder counts its deadline from
 * before a renewal was sent, so it stops writing before another process can start. Every write is a
 * merge patch with the resourceVersion last seen; after a conflict the record is read again.
 *
 * Only a record that another program wrote (the Trustee operator, which never releases its lease)
 * may count from its last renewal instead of from our first read: see passed_ms().
 */
#include "config.h"

#include "tec/k8s/lease.h"

#include <assert.h>
#include <inttypes.h>
#include <string.h>

#include "tec/base/backoff.h"
#include "tec/base/clock.h"
#include "tec/base/json.h"
#include "tec/base/log.h"
#include "tec/base/mem.h"
#include "tec/base/metric.h"
#include "tec/k8s/call.h"
#include "tec/loop/timer.h"

#define DURATION_MS   15000 /* of the record: after it another process may take over */
#define DEADLINE_MS   10000 /* of a renewal; must end before the duration does */
#define RETRY_MS      2000
#define RELEASE_MS    2000
#define FOREIGN_MAX_S 3600 /* upper limit for the duration in another holder's record */
/* The part of a record's duration that is watched in any case, three renewals of 15 s: a holder that
 * is alive is seen to renew, also one with longer periods (137 s, renewed every 26 s). */
#define WATCH_MS(duration_s) ((duration_s)*1000 * 2 / 5)

static struct metric leader_gauge = METRIC_GAUGE_INIT(
	"tec_lease_state", "1 for the state of the leader election.", "state", NULL);

static const char *const state_names[] = {
	[K8S_LEASE_IDLE] = "idle",
	[K8S_LEASE_STANDBY] = "standby",
	[K8S_LEASE_LEADER] = "leader",
	[K8S_LEASE_RELEASED] = "released",
};

struct k8s_lease {
	struct k8s_transport *t; /* borrowed */
	char *ns, *name, *identity;
	void (*on_change)(void *arg, bool leader);
	void *arg;
	enum k8s_lease_state state;
	struct op_scope ops;
	struct op *call;
	struct timer next;   /* to step() */
	struct timer limit;  /* deadline of the call in flight */
	struct timer lose;   /* the renew deadline */
	uint64_t sent_ms;    /* start of the call in flight, boot clock */
	uint64_t renewed_ms; /* start of the last successful renewal, boot clock */
	/* the record as last seen */
	char *rv; /* NULL: unknown, read it first */
	uint64_t seen_hash,
		seen_ms;    /* hash of its spec, and since when it is unchanged (boot clock) */
	uint64_t passed_ms; /* of its duration, before seen_ms */
	char *holder;
	int64_t transitions, holder_duration_s;
	bool failing; /* logged */
	/* release */
	struct timer release_end;
	bool releasing;
	void (*released)(void *arg);
	void *released_arg;
};

static void step(void *arg);

static struct log_ctx context(const struct k8s_lease *s)
{
	return (struct log_ctx){.kind = "Lease", .ns = s->ns, .name = s->name};
}

/* The only writer of the state. on_change is called when leadership begins or ends. */
static void set_state(struct k8s_lease *s, enum k8s_lease_state to, const char *reason)
{
	enum k8s_lease_state from = s->state;
	struct log_ctx lc = context(s);
	bool ok = false;

	if (from == to)
		return;
	switch (from) {
	case K8S_LEASE_IDLE:
		ok = to == K8S_LEASE_STANDBY || to == K8S_LEASE_RELEASED;
		break;
	case K8S_LEASE_STANDBY:
	case K8S_LEASE_LEADER:
		ok = to != K8S_LEASE_IDLE;
		break;
	case K8S_LEASE_RELEASED:
		break;
	}
	if (!ok)
		DIE("lease %s: %s -> %s", s->name, state_names[from], state_names[to]);
	s->state = to;
	metric_set(&leader_gauge, state_names[from], NULL, 0);
	metric_set(&leader_gauge, state_names[to], NULL, 1);
	log_info(&lc,
		to == K8S_LEASE_LEADER     ? "became leader"
		: from == K8S_LEASE_LEADER ? "no longer leader"
					   : "leader election",
		"state=%s reason=%s holder=%s", state_names[to], log_esc(reason),
		log_esc(s->holder ? s->holder : ""));
	if (s->on_change && (from == K8S_LEASE_LEADER || to == K8S_LEASE_LEADER))
		s->on_change(s->arg, to == K8S_LEASE_LEADER);
}

static void step_after(struct k8s_lease *s, uint32_t ms)
{
	if (s->state != K8S_LEASE_RELEASED || s->releasing)
		timer_set(&s->next, ms);
}

/* Add up to 20 % to the delay, so that candidates do not all ask at the same moment. */
static void step_about(struct k8s_lease *s, uint32_t ms)
{
	step_after(s, (uint32_t)backoff_spread(ms, ms + ms / 5));
}

/* Called when we know that the lease is not ours any more. may_write() already returned false at
 * the deadline. */
static void lose(struct k8s_lease *s, const char *reason)
{
	timer_cancel(&s->lose);
	set_state(s, K8S_LEASE_STANDBY, reason);
}

static void on_deadline(void *arg)
{
	struct k8s_lease *s = arg;

	lose(s, "not renewed in time");
}

/*
 * When another program last wrote the record: the newest of renewTime, by the holder's clock, and
 * of the times in managedFields, by the API server's clock and cut to seconds. 0: it was this
 * program, or nobody knows.
 */
static int64_t foreign_renewal_us(struct json_object *o)
{
	struct json_object *entries = json_get_arr(o, "metadata/managedFields");
	size_t n = entries ? json_object_array_length(entries) : 0;
	int64_t theirs = 0, ours = 0, renewed, us;

	for (size_t i = 0; i < n; i++) {
		struct json_object *e = json_object_array_get_idx(entries, i);
		const char *manager = json_get_str(e, "manager");
		int64_t *newest = str_eq(manager, K8S_FIELD_MANAGER) ? &ours : &theirs;

		if (clock_parse(json_get_str(e, "time"), &us) == 0 && us > *newest)
			*newest = us;
	}
	if (theirs <= ours || clock_parse(json_get_str(o, "spec/renewTime"), &renewed) != 0)
		return 0;
	theirs += 999999;
	return renewed > theirs ? renewed : theirs;
}

/*
 * Return how much of the duration had passed when the record was read for the first time, so that a
 * lease that nobody renews is not waited for in full. Clocks of nodes may differ by minutes. If
 * ours is behind, this is less than the truth or 0. If ours is ahead, WATCH_MS remain, in which a
 * holder that is alive renews. Our own replicas release their lease, and always wait in full.
 */
static uint64_t passed_ms(const struct k8s_lease *s, struct json_object *o)
{
	int64_t renewed_us = foreign_renewal_us(o),
		most = s->holder_duration_s * 1000 - WATCH_MS(s->holder_duration_s),
		ms = (clock_wall_us() - renewed_us) / 1000;

	if (!renewed_us || most <= 0 || ms <= 0)
		return 0;
	return (uint64_t)(ms < most ? ms : most);
}

/* Return the time until another holder's record expires, 0 if it has expired. */
static uint64_t left_ms(const struct k8s_lease *s)
{
	uint64_t end = s->seen_ms + (uint64_t)s->holder_duration_s * 1000 - s->passed_ms,
		 now = clock_boot_ms();

	return end > now ? end - now : 0;
}

/* Store what the record says and, when its spec changed, the time of the change: expiry is measured
 * from there, because clocks of nodes differ. */
static void observe(struct k8s_lease *s, struct json_object *o)
{
	cleanup_strbuf struct strbuf text = STRBUF_INIT;
	struct json_object *spec = json_get_obj(o, "spec");
	const char *rv = json_get_str(o, "metadata/resourceVersion"),
		   *holder = json_get_str(spec, "holderIdentity");
	bool first = s->seen_ms == 0, changed;
	uint64_t hash;

	if (spec)
		json_canonical(&text, spec);
	hash = str_hash(strbuf_str(&text), text.len);
	changed = first || hash != s->seen_hash;
	if (changed)
		s->seen_ms = clock_boot_ms();
	s->seen_hash = hash;
	xreplace(&s->rv, rv);
	xreplace(&s->holder, holder ? holder : "");
	s->transitions = json_get_int(spec, "leaseTransitions", 0);
	s->holder_duration_s = json_get_int(spec, "leaseDurationSeconds", DURATION_MS / 1000);
	if (s->holder_duration_s < 1)
		s->holder_duration_s = 1;
	if (s->holder_duration_s > FOREIGN_MAX_S)
		s->holder_duration_s = FOREIGN_MAX_S;
	if (changed)
		s->passed_ms = first ? passed_ms(s, o) : 0;
}

static bool is_ours(const struct k8s_lease *s)
{
	return str_eq(s->holder, s->identity);
}

/* ---- calls */

/* Log a series of failures once. A conflict and an absent Lease belong to normal operation. An API
 * server that does not answer us may not have answered the holder either, which is alive then. */
static void call_ended(struct k8s_lease *s, const struct err *err)
{
	struct log_ctx lc = context(s);
	bool failed = err_is_set(err) && err->kind != ERR_CONFLICT && err->kind != ERR_NOT_FOUND;

	timer_cancel(&s->limit);
	if (failed && !s->failing)
		log_err(LOG_WARN, &lc,
			err->kind == ERR_DENIED
				? "access to the Lease is denied, so nothing is reconciled; apply the Role of this release"
				: "lease request failed",
			err);
	if (failed)
		s->passed_ms = 0;
	s->failing = failed;
}

/* Cancel a call without an answer after half of the renew deadline, while there is time for another
 * attempt. The next read shows whether it was written. */
static void on_limit(void *arg)
{
	struct k8s_lease *s = arg;
	struct err err = ERR_INIT;

	op_cancel(&s->call);
	err_set(&err, ERR_TRANSIENT, "no answer in time");
	call_ended(s, &err);
	xreplace(&s->rv, NULL);
	step_about(s, s->state == K8S_LEASE_LEADER ? RETRY_MS / 10 : RETRY_MS);
}

static void start_call(struct k8s_lease *s, struct op *call)
{
	op_hold(&s->call, call);
	timer_set(&s->limit, DEADLINE_MS / 2);
}

/* End the release at its first result: the lease is written, was not ours, or RELEASE_MS have
 * passed. */
static void finish_release(void *lease)
{
	struct k8s_lease *s = lease;
	void (*done)(void *) = s->released;
	void *arg = s->released_arg;

	op_cancel(&s->call);
	timer_cancel(&s->limit);
	timer_cancel(&s->next);
	timer_cancel(&s->release_end);
	s->releasing = false;
	s->released = NULL;
	if (done)
		done(arg); /* may free s */
}

/* Handle the answer to a write that makes us the holder. The write was sent at sent_ms. */
static void renewed(struct k8s_lease *s, struct json_object *o)
{
	uint64_t end = s->sent_ms + DEADLINE_MS, now = clock_boot_ms();

	observe(s, o);
	if (!is_ours(s) || now >= end) { /* the answer came after the deadline */
		step_after(s, RETRY_MS / 10);
		return;
	}
	s->renewed_ms = s->sent_ms;
	timer_set(&s->lose, end - now);
	set_state(s, K8S_LEASE_LEADER, "acquired");
	if (s->state == K8S_LEASE_LEADER)
		step_after(s, RETRY_MS);
}

/* A write that failed may still have been applied, so the record is read before the next write. */
static void on_written(void *arg, const struct err *err, const struct k8s_result *r)
{
	struct k8s_lease *s = arg;

	call_ended(s, err);
	if (s->state == K8S_LEASE_RELEASED && (!err_is_set(err) || err->kind != ERR_CONFLICT)) {
		finish_release(s);
		return;
	}
	if (!err_is_set(err) && r->object) {
		renewed(s, r->object);
		return;
	}
	xreplace(&s->rv, NULL);
	if (err->kind == ERR_NOT_FOUND && s->state == K8S_LEASE_LEADER)
		lose(s, "the Lease was deleted"); /* the next one may be another process's */
	/* soon, but never without a pause: a server that always answers so must not be asked in a
	 * loop */
	step_about(s, err->kind == ERR_CONFLICT || err->kind == ERR_NOT_FOUND ? RETRY_MS / 10
									      : RETRY_MS / 2);
}

/* Create, renew, take over or release (holder "") the record; the server refuses all but one of
 * those that write at the same time: of two candidates that found no Lease, one creates it, and the
 * resourceVersion guards a patch. leaseTransitions counts changes of the holder. A released record
 * has a duration of 1 s, as client-go writes it. */
static void write_record(struct k8s_lease *s, const char *holder)
{
	cleanup_json struct json_object *o = json_obj();
	cleanup_strbuf struct strbuf version = STRBUF_INIT;
	struct json_object *spec = json_obj(), *metadata = json_obj();
	char now[CLOCK_RFC3339_US_LEN];

	clock_format_us(clock_wall_us(), now);
	json_add_str(spec, "holderIdentity", holder);
	json_add_int(spec, "leaseDurationSeconds", *holder ? DURATION_MS / 1000 : 1);
	json_add_str(spec, "renewTime", now);
	if (*holder && (!s->rv || !is_ours(s))) {
		json_add_str(spec, "acquireTime", now);
		json_add_int(spec, "leaseTransitions", s->rv ? s->transitions + 1 : 0);
	}
	s->sent_ms = clock_boot_ms();
	if (s->rv) {
		json_add(o, "metadata", json_add_str(metadata, "resourceVersion", s->rv));
		json_add(o, "spec", spec);
		start_call(s, k8s_call_merge_patch(s->t, &s->ops, &kobj_lease, s->ns, s->name, o,
				      on_written, s));
		return;
	}
	kobj_api_version(&kobj_lease, &version);
	json_add_str(json_add_str(o, "apiVersion", strbuf_str(&version)), "kind", kobj_lease.kind);
	json_add(o, "metadata", json_add_str(metadata, "name", s->name));
	json_add(o, "spec", spec);
	start_call(s, k8s_call_create(s->t, &s->ops, &kobj_lease, s->ns, o, DEADLINE_MS / 2,
			      on_written, s));
}

/* Another process holds the lease: read it again, at the latest when it expires. */
static void wait_for_holder(struct k8s_lease *s, uint64_t left, bool log)
{
	struct log_ctx lc = context(s);
	char expires[CLOCK_RFC3339_LEN];

	if (log) {
		clock_format(clock_wall_s() + (int64_t)(left + 999) / 1000, expires);
		log_info(&lc, "waiting for the Lease, which another process holds",
			"holder=%s expires=%s", log_esc(s->holder), expires);
	}
	step_about(s, left < RETRY_MS ? (uint32_t)left : RETRY_MS);
}

/* Decide what the record requires: create it, renew it, take it over, or wait. */
static void on_read(void *arg, const struct err *err, const struct k8s_result *r)
{
	struct k8s_lease *s = arg;
	bool absent = err->kind == ERR_NOT_FOUND, first = s->seen_ms == 0;
	uint64_t left;

	call_ended(s, err);
	if (!err_is_set(err) && r->object)
		observe(s, r->object);
	else
		xreplace(&s->rv, NULL);
	if (s->state == K8S_LEASE_RELEASED) {
		if (s->rv && is_ours(s))
			write_record(s, "");
		else
			finish_release(s);
		return;
	}
	if (s->state == K8S_LEASE_LEADER && (absent || (s->rv && !is_ours(s))))
		lose(s, absent ? "the Lease was deleted" : "another process holds it");
	if (s->state == K8S_LEASE_RELEASED)
		return;
	left = left_ms(s);
	/* An empty holder is a lease that was released. Otherwise wait until the record is unchanged
	 * for its duration. */
	if (absent || (s->rv && (is_ours(s) || !*s->holder || !left)))
		write_record(s, s->identity);
	else if (s->rv)
		wait_for_holder(s, left, first);
	else
		step_about(s, RETRY_MS);
}

/* A leader renews with the resourceVersion of its last write, without reading first. The others
 * read. */
static void step(void *arg)
{
	struct k8s_lease *s = arg;

	op_cancel(&s->call);
	if (s->rv && (s->state == K8S_LEASE_LEADER || s->state == K8S_LEASE_RELEASED))
		write_record(s, s->state == K8S_LEASE_LEADER ? s->identity : "");
	else
		start_call(s, k8s_call_get(s->t, &s->ops, &kobj_lease, s->ns, s->name, on_read, s));
}

/* ---- owner's side */

struct k8s_lease *k8s_lease_new(
	struct loop *l, struct k8s_transport *t, const struct k8s_lease_conf *conf)
{
	struct k8s_lease *s = xcalloc(1, sizeof(*s));

	s->t = t;
	s->ns = xstrdup(conf->ns);
	s->name = xstrdup(conf->name);
	s->identity = xstrdup(conf->identity);
	s->on_change = conf->on_change;
	s->arg = conf->arg;
	assert(s->identity[0]);
	timer_init(&s->next, l, step, s);
	timer_init(&s->limit, l, on_limit, s);
	timer_init(&s->lose, l, on_deadline, s);
	timer_init(&s->release_end, l, finish_release, s);
	return s;
}

void k8s_lease_free(struct k8s_lease *s)
{
	if (!s)
		return;
	op_scope_cancel(&s->ops);
	timer_fini(&s->next);
	timer_fini(&s->limit);
	timer_fini(&s->lose);
	timer_fini(&s->release_end);
	free(s->ns);
	free(s->name);
	free(s->identity);
	free(s->rv);
	free(s->holder);
	free(s);
}

void k8s_lease_start(struct k8s_lease *s)
{
	if (s->state != K8S_LEASE_IDLE)
		return;
	set_state(s, K8S_LEASE_STANDBY, "start");
	timer_set(&s->next, 0);
}

/* Evaluated for every write: a blocked loop or a suspended machine cannot extend the lease. */
bool k8s_lease_may_write(void *arg)
{
	const struct k8s_lease *s = arg;

	return s->state == K8S_LEASE_LEADER && clock_boot_ms() < s->renewed_ms + DEADLINE_MS;
}

enum k8s_lease_state k8s_lease_state(const struct k8s_lease *s)
{
	return s->state;
}

/* Writing stops at once, before the record is released: the next leader may start at any moment
 * after that. */
void k8s_lease_release(struct k8s_lease *s, void (*done)(void *arg), void *arg)
{
	bool held = s->state == K8S_LEASE_LEADER, unsure = s->call != NULL;

	assert(s->state != K8S_LEASE_RELEASED);
	s->releasing = true;
	s->released = done;
	s->released_arg = arg;
	timer_cancel(&s->lose);
	timer_cancel(&s->next);
	timer_cancel(&s->limit);
	/* A renewal in flight may still be written, with a resourceVersion that we do not know:
	 * read the record first. */
	op_cancel(&s->call);
	if (unsure)
		xreplace(&s->rv, NULL);
	set_state(s, K8S_LEASE_RELEASED, "released");
	if (held || unsure)
		step(s);
	timer_set(&s->release_end, held || unsure ? RELEASE_MS : 0);
}
