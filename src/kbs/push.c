/* SPDX-License-Identifier: MIT */
/*
 * The states of one Trustee, its probe and its retries. Nothing here knows what is sent; a probe is
 * judged against the sentinel we last wrote (then what was seen still stands) or against the sum of
 * what is wanted (then all of it is there). In every other case the far side is unknown and is told
 * everything. An error never drops anything: what failed is unknown and pending again, by itself
 * (push_wait.c), or with all that is in flight when Trustee is away or refuses us.
 */
#include "config.h"

#include "push_internal.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

#include "tec/base/clock.h"
#include "tec/base/json.h"
#include "tec/base/log.h"
#include "tec/base/mem.h"
#include "tec/base/metric.h"
#include "tec/base/uuid.h"

#define BACKOFF_MIN_MS 200u
#define BACKOFF_MAX_MS 30000u
#define SETTLE_MAX_MS  10000u

static struct metric states = METRIC_GAUGE_INIT(
	"tec_trustee_state", "1 for the state that a Trustee is in.", "trustee", "state");

const char *kbs_push_state_name(enum kbs_push_state s)
{
	switch (s) {
	case KBS_PUSH_UNREACHABLE:
		return "Unreachable";
	case KBS_PUSH_PROBING:
		return "Probing";
	case KBS_PUSH_POPULATING:
		return "Populating";
	case KBS_PUSH_IN_SYNC:
		return "InSync";
	case KBS_PUSH_REFUSED:
		return "Refused";
	}
	return "?";
}

static enum kbs_target_state told_as(enum kbs_push_state s)
{
	switch (s) {
	case KBS_PUSH_REFUSED:
		return KBS_TARGET_REFUSED;
	case KBS_PUSH_POPULATING:
		return KBS_TARGET_POPULATING;
	case KBS_PUSH_IN_SYNC:
		return KBS_TARGET_IN_SYNC;
	case KBS_PUSH_PROBING:
		return KBS_TARGET_ASKING;
	case KBS_PUSH_UNREACHABLE:
		break;
	}
	return KBS_TARGET_WAITING;
}

/* Which moves make sense; a move to where it is changes the text only. */
static bool may_move(enum kbs_push_state from, enum kbs_push_state to)
{
	switch (from) {
	case KBS_PUSH_UNREACHABLE:
	case KBS_PUSH_REFUSED:
		return to == KBS_PUSH_PROBING || to == KBS_PUSH_UNREACHABLE;
	case KBS_PUSH_PROBING:
		return true;
	case KBS_PUSH_POPULATING:
		return true;
	case KBS_PUSH_IN_SYNC:
		return true;
	}
	return false;
}

void push_set_state(struct kbs_push *p, enum kbs_push_state state, const char *why)
{
	bool moved = p->state != state;

	if (!moved && strcmp(p->why, why) == 0)
		return;
	assert(!moved || may_move(p->state, state));
	if (moved) {
		metric_drop(&states, p->target, kbs_push_state_name(p->state));
		metric_set(&states, p->target, kbs_push_state_name(state), 1);
		log_at(state == KBS_PUSH_UNREACHABLE || state == KBS_PUSH_REFUSED ? LOG_WARN
										  : LOG_INFO,
			NULL, "Trustee state", "trustee=%s state=%s reason=%s", log_esc(p->target),
			kbs_push_state_name(state), log_esc(why));
	}
	p->state = state;
	(void)snprintf(p->why, sizeof(p->why), "%s", why);
	/* After a failure, what was told is so until it answers: every object would look again. */
	if (state != KBS_PUSH_PROBING || !p->failed)
		kbs_sync_target_says(p->sync, p->target, told_as(state), p->why);
	if (p->conf.on_state)
		p->conf.on_state(p->conf.arg);
}

/* ---- flights */

void push_flight_free(struct push_flight *f)
{
	*f->prevp = f->next;
	if (f->next)
		f->next->prevp = f->prevp;
	free(f->item);
	free(f);
}

/* Nothing of it will be answered: what it carried is unknown. */
static void ground(struct kbs_push *p)
{
	op_scope_cancel(&p->ops);
	while (p->flights) {
		struct push_flight *f = p->flights;

		for (size_t i = 0; i < f->n; i++)
			if (f->item[i].e)
				kbs_sync_landed(p->sync, p->t, f->item[i].e, false, NULL);
		push_flight_free(f);
	}
	push_wait_drop(p);
	p->check_due = p->check_due || p->checking;
	push_check_stop(p);
	p->n_resources = 0;
	p->serial = p->again_flying = false;
}

void push_note_revoked(struct kbs_push *p, enum kbs_sort sort, const char *name)
{
	size_t len = strlen(name);
	struct push_again *a;

	if (!timer_is_set(&p->again_timer))
		return;
	a = xcalloc(1, sizeof(*a) + len + 1);
	memcpy(a->name, name, len);
	a->next = p->again[sort];
	p->again[sort] = a;
}

static int by_name(const void *a, const void *b)
{
	return strcmp(
		(*(struct push_again *const *)a)->name, (*(struct push_again *const *)b)->name);
}

/* What was revoked several times is repeated once: no message may name it twice. */
static void again_sort(struct push_again **list)
{
	cleanup_free struct push_again **v = NULL;
	size_t n = 0;

	for (const struct push_again *a = *list; a; a = a->next)
		n++;
	v = xcalloc(n + 1, sizeof(struct push_again *));
	n = 0;
	for (struct push_again *a = *list; a; a = a->next)
		v[n++] = a;
	qsort(v, n, sizeof(struct push_again *), by_name);
	for (size_t i = 0; i < n; i++) {
		if (i + 1 < n && strcmp(v[i]->name, v[i + 1]->name) == 0) {
			free(v[i]);
			continue;
		}
		*list = v[i];
		list = &v[i]->next;
	}
	*list = NULL;
}

void push_drop_again(struct kbs_push *p, enum kbs_sort sort, size_t n)
{
	while (n-- && p->again[sort]) {
		struct push_again *a = p->again[sort];

		p->again[sort] = a->next;
		free(a);
	}
}

/* ---- errors */

static uint32_t next_backoff(struct kbs_push *p)
{
	uint32_t ms = p->backoff_ms ? p->backoff_ms : BACKOFF_MIN_MS;

	p->backoff_ms = ms * 2 > BACKOFF_MAX_MS ? BACKOFF_MAX_MS : ms * 2;
	return push_jitter(p, ms);
}

void push_fail(struct kbs_push *p, const struct err *err)
{
	struct err told = *err;
	bool refused = push_is_refused(err);
	uint32_t after = !refused                  ? next_backoff(p)
			 : err->kind == ERR_DENIED ? p->conf.denied_ms
						   : p->conf.refused_ms;
	char why[sizeof(p->why)];

	p->failed = true;
	ground(p);
	timer_cancel(&p->probe);
	timer_cancel(&p->sentinel);
	if (!refused && told.retry_after_ms > after)
		after = told.retry_after_ms > BACKOFF_MAX_MS ? BACKOFF_MAX_MS : told.retry_after_ms;
	(void)snprintf(
		why, sizeof(why), refused ? "it refuses what is sent: %s." : "%s.", told.text);
	push_set_state(p, refused ? KBS_PUSH_REFUSED : KBS_PUSH_UNREACHABLE, why);
	timer_set(&p->retry, after);
}

static void on_retry(void *arg)
{
	struct kbs_push *p = arg;

	if (!p->transport)
		return;
	p->probe_wanted = p->hold = true;
	p->waiting_since_ms = clock_boot_ms();
	/* Why it was not reached is true until it answers. */
	cleanup_free char *why = xstrdup(*p->why ? p->why : "it is being asked what it holds.");
	push_set_state(p, KBS_PUSH_PROBING, why);
	push_ask(p);
}

/* ---- probe */

static bool says(struct json_object *o, const struct kbs_sum *sum)
{
	char hex[SHA256_HEX_LEN + 1];

	kbs_sum_hex(sum, hex);
	return str_eq(json_get_str(o, "sum"), hex);
}

/* Nobody has written there since we did: what was seen still stands. */
static bool is_ours(struct kbs_push *p, struct json_object *o)
{
	if (!p->known)
		return false;
	if (str_eq(json_get_str(o, "session"), p->session)) {
		p->clean = p->sent = false;
		return true;
	}
	if (p->sent && says(o, &p->sent_sum)) {
		p->far_sum = p->sent_sum;
		p->clean = true;
		p->sent = false;
		return true;
	}
	p->sent = false;
	return p->clean && says(o, &p->far_sum);
}

/* Nothing that was seen of the far side stands any more. */
static void start_anew(struct kbs_push *p, bool sentinel)
{
	p->clean = sentinel; /* whatever it says, a kill now must not leave it standing */
	memset(&p->far_sum, 0, sizeof(p->far_sum));
	p->sent = p->shared_emptied = p->marked = false;
	p->shared_mode = kbs_sync_wanted_policies(p->sync)->shared;
	p->policy_attestation = p->policy_resource = NULL;
	p->known = true; /* unknown is what is noted of each from here on */
	p->check_due = p->conf.read_back;
	for (struct push_flight *f = p->flights; f; f = f->next)
		f->stale = true;
	kbs_sync_unknown(p->sync, p->t);
	push_set_state(p, KBS_PUSH_POPULATING, "it is being filled.");
}

/* What a sentinel that is there says. */
static void judge(struct kbs_push *p, struct json_object *o)
{
	const struct kbs_policies *policies = kbs_sync_wanted_policies(p->sync);
	struct kbs_sum want;

	p->order = PUSH_VALUES_FIRST;
	if (!str_eq(json_get_str(o, "cluster"), p->cluster_uid)) {
		p->known = false;
		return;
	}
	if (is_ours(p, o))
		return;
	kbs_sync_sum(p->sync, &want);
	p->known = says(o, &want);
	if (!p->known)
		return;
	p->clean = p->shared_emptied = true;
	p->far_sum = want;
	p->policy_attestation = policies->attestation;
	p->policy_resource = policies->resource;
	p->shared_mode = policies->shared;
	kbs_sync_all_confirmed(p->sync, p->t);
}

static void on_probe(void *arg, const struct err *err, const struct kbs_answer *answer)
{
	struct kbs_push *p = arg;
	cleanup_json struct json_object *o = NULL;
	struct err bad = ERR_INIT;
	bool was_known = p->known;

	p->serial = false;
	if (err_is_set(err) && err->kind != ERR_NOT_FOUND) {
		if (p->failed || !p->known || push_is_away(p, err, p->serial_tries)) {
			push_fail(p, err);
			return;
		}
		p->probe_wanted = true;
		push_retry_serial(p, "probe", err);
		return;
	}
	if (p->failed)
		push_is_back(p);
	p->failed = p->hold = false;
	/* Not the end of a backoff: a far side that answers may still take no write. */
	if (!err_is_set(err))
		o = json_parse(answer->body, answer->body_len, &json_limits_object, &bad);
	if (o) {
		judge(p, o);
	} else { /* no sentinel, or no sentence of ours: the store was lost */
		p->order = PUSH_POLICIES_FIRST;
		p->known = false;
	}
	if (!p->known) {
		if (was_known)
			log_warn(NULL, "Trustee holds something else than we left there",
				"trustee=%s", log_esc(p->target));
		start_anew(p, o != NULL);
	} else {
		p->marked = true;
	}
	timer_set(&p->probe, p->conf.probe_ms);
	push_ask(p);
}

static void start_probe(struct kbs_push *p)
{
	uint64_t now = clock_boot_ms(), rest = now - kbs_sync_changed_ms(p->sync);

	/* What is wanted is still being collected: a judgement now would find a difference. */
	if (!p->known && rest < p->conf.settle_ms && now - p->waiting_since_ms < SETTLE_MAX_MS) {
		timer_set(&p->probe, p->conf.settle_ms - rest);
		return;
	}
	p->probe_wanted = false;
	p->serial = true;
	(void)kbs_admin_get_value(p->transport, &p->ops, KBS_SENTINEL, on_probe, p);
}

static void on_probe_timer(void *arg)
{
	struct kbs_push *p = arg;

	/* Between a loss and the first message of values there is nothing to find. */
	if (p->known && !p->marked) {
		timer_set(&p->probe, p->conf.probe_ms);
		return;
	}
	p->probe_wanted = true;
	push_ask(p);
}

/* ---- what to do now */

static void work(void *arg)
{
	struct kbs_push *p = arg;

	if (!p->transport || p->state == KBS_PUSH_UNREACHABLE || p->state == KBS_PUSH_REFUSED)
		return;
	if (!kbs_sync_wanted_policies(p->sync)->attestation)
		return;
	if (p->probe_wanted && !p->serial && !timer_is_set(&p->serial_wait))
		start_probe(p);
	if (p->known && !p->hold)
		push_work(p);
	push_wait_arm(p);
}

void push_ask(struct kbs_push *p)
{
	defer_call(&p->work, p->loop, work, p);
}

/* A change, or the end of a wait. */
static void on_wake(void *arg)
{
	push_ask(arg);
}

static void on_sentinel(void *arg)
{
	struct kbs_push *p = arg;

	p->sentinel_due = true;
	push_ask(p);
}

static void on_again(void *arg)
{
	struct kbs_push *p = arg;

	p->again_due = true;
	again_sort(&p->again[KBS_RESOURCE]);
	again_sort(&p->again[KBS_REFVALUE]);
	push_ask(p);
}

/* ---- the interface */

static void defaults(struct kbs_push_conf *c)
{
	c->window = c->window ? c->window : 32;
	c->max_body = c->max_body ? c->max_body : 512u * 1024;
	c->probe_ms = c->probe_ms ? c->probe_ms : 15000;
	c->settle_ms = c->settle_ms ? c->settle_ms : 500;
	c->sentinel_ms = c->sentinel_ms ? c->sentinel_ms : 3000;
	c->denied_ms = c->denied_ms ? c->denied_ms : 20000;
	c->refused_ms = c->refused_ms ? c->refused_ms : 300000;
}

struct kbs_push *kbs_push_new(struct loop *l, struct kbs_sync *sync,
	const struct kbs_push_conf *conf, struct kbs_transport *take_t)
{
	struct kbs_push *p = xcalloc(1, sizeof(*p));
	char session[UUID_TEXT_LEN + 1];

	p->loop = l;
	p->sync = sync;
	p->conf = *conf;
	defaults(&p->conf);
	p->target = xstrdup(conf->target);
	p->cluster_uid = xstrdup(conf->cluster_uid);
	uuid_new_v4(session);
	p->session = xstrdup(session);
	p->batch_max = SIZE_MAX;
	p->room = p->conf.window;
	timer_init(&p->retry, l, on_retry, p);
	timer_init(&p->probe, l, on_probe_timer, p);
	timer_init(&p->sentinel, l, on_sentinel, p);
	timer_init(&p->again_timer, l, on_again, p);
	timer_init(&p->wait, l, on_wake, p);
	timer_init(&p->check, l, push_check_on_timer, p);
	timer_init(&p->serial_wait, l, on_wake, p);
	p->t = kbs_sync_attach(sync, p->target, on_wake, p);
	metric_set(&states, p->target, kbs_push_state_name(p->state), 1);
	if (conf->repeat_revoked_ms)
		timer_set(&p->again_timer, conf->repeat_revoked_ms);
	if (take_t)
		kbs_push_set_transport(p, take_t, NULL);
	return p;
}

void kbs_push_free(struct kbs_push *p)
{
	if (!p)
		return;
	ground(p);
	defer_cancel(&p->work);
	timer_fini(&p->retry);
	timer_fini(&p->probe);
	timer_fini(&p->sentinel);
	timer_fini(&p->again_timer);
	timer_fini(&p->wait);
	timer_fini(&p->check);
	timer_fini(&p->serial_wait);
	push_drop_again(p, KBS_RESOURCE, SIZE_MAX);
	push_drop_again(p, KBS_REFVALUE, SIZE_MAX);
	metric_drop(&states, p->target, kbs_push_state_name(p->state));
	kbs_sync_detach(p->sync, p->t);
	kbs_sync_target_remove(p->sync, p->target);
	kbs_transport_free(p->transport);
	free(p->target);
	free(p->cluster_uid);
	free(p->session);
	free(p);
}

void kbs_push_set_transport(struct kbs_push *p, struct kbs_transport *take_t, const char *why)
{
	ground(p);
	kbs_transport_free(p->transport);
	p->transport = take_t;
	p->backoff_ms = p->in_row = 0;
	p->room = p->conf.window;
	p->batch_max = SIZE_MAX;
	timer_cancel(&p->retry);
	timer_cancel(&p->probe);
	timer_cancel(&p->sentinel);
	if (take_t)
		on_retry(p);
	else
		push_set_state(p, KBS_PUSH_UNREACHABLE, why ? why : "it cannot be reached yet.");
}

void kbs_push_probe(struct kbs_push *p)
{
	if (!p->transport)
		return;
	if (p->state == KBS_PUSH_UNREACHABLE || p->state == KBS_PUSH_REFUSED) {
		timer_set(&p->retry, 0);
		return;
	}
	p->probe_wanted = p->hold = true;
	push_ask(p);
}

void kbs_push_finish(struct kbs_push *p)
{
	p->finishing = true;
	push_ask(p);
}

bool kbs_push_is_finished(struct kbs_push *p)
{
	return !p->transport || p->state != KBS_PUSH_IN_SYNC || push_is_done(p);
}

void kbs_push_set_window(struct kbs_push *p, unsigned window)
{
	p->conf.window = window;
	p->room = p->room < window ? p->room : window;
}

enum kbs_push_state kbs_push_state(const struct kbs_push *p)
{
	return p->state;
}

const char *kbs_push_why(const struct kbs_push *p)
{
	return p->why;
}
