/* SPDX-License-Identifier: MIT */
/*
 * The states of one Trustee, its errors, and which phase acts. An error never drops anything: what
 * failed is unknown and pending again, alone, or with everything in flight if Trustee is
 * unreachable or refuses us. Several failures in a row mean that it is unreachable, one does not. A
 * name that is refused repeatedly while Trustee answers does not count, so it delays nothing but
 * itself.
 */
#include "config.h"

#include "push_internal.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

#include "tec/base/clock.h"
#include "tec/base/log.h"
#include "tec/base/mem.h"
#include "tec/base/metric.h"
#include "tec/base/uuid.h"

#define AWAY_MIN_MS 200u   /* first delay of a probe */
#define SAID_MAX_MS 30000u /* longest delay if Trustee answers but does not accept the request */
#define LOST_MAX_MS 500u   /* longest delay without an answer: several in a row mean unreachable */
#define FIRST_MS    100u   /* first delay of a request */
#define AWAY_AFTER  5u     /* failures in a row that mean unreachable */
#define ALLOWED_MIN 2u     /* the window never shrinks below this */

static struct metric states = METRIC_GAUGE_INIT(
	"tec_trustee_state", "1 for the state that a Trustee is in.", "trustee", "state");

/* Values of the metric's label and of the log. */
static const char *state_name(enum kbs_target_state s)
{
	switch (s) {
	case KBS_TARGET_UNREACHABLE:
		return "Unreachable";
	case KBS_TARGET_PROBING:
		return "Probing";
	case KBS_TARGET_POPULATING:
		return "Populating";
	case KBS_TARGET_IN_SYNC:
		return "InSync";
	case KBS_TARGET_REFUSED:
		return "Refused";
	}
	return "?";
}

/* Which changes of state are valid. */
static bool may_move(enum kbs_target_state from, enum kbs_target_state to)
{
	switch (from) {
	case KBS_TARGET_UNREACHABLE:
	case KBS_TARGET_REFUSED:
		return to == KBS_TARGET_PROBING || to == KBS_TARGET_UNREACHABLE;
	case KBS_TARGET_PROBING:
	case KBS_TARGET_POPULATING:
	case KBS_TARGET_IN_SYNC:
		return true;
	}
	return false;
}

/* The only writer of p->state: checks the move, logs it and reports it to kbs_sync. */
void push_set_state(struct kbs_push *p, enum kbs_target_state state)
{
	bool bad = state == KBS_TARGET_UNREACHABLE || state == KBS_TARGET_REFUSED;

	if (state == KBS_TARGET_POPULATING || state == KBS_TARGET_IN_SYNC)
		p->error[0] = '\0';
	if (p->state != state) {
		assert(may_move(p->state, state));
		metric_drop(&states, p->target, state_name(p->state));
		metric_set(&states, p->target, state_name(state), 1);
		log_at(bad ? LOG_WARN : LOG_INFO, NULL, "Trustee state",
			"trustee=%s state=%s reason=%s", log_esc(p->target), state_name(state),
			log_esc(p->text ? p->text : p->error));
		p->state = state;
	}
	/* After a failure the reported state stays until Trustee answers: otherwise every object would
	 * be examined again at each probe. */
	if (state != KBS_TARGET_PROBING || !p->failed)
		kbs_sync_set_status(
			p->sync, p->target, state, *p->error ? p->error : NULL, p->text);
}

/* ---- errors */

/* Whether Trustee itself did not answer: no answer at all, or one from a proxy. */
static bool is_lost(const struct err *err)
{
	return !err->http || err->http == 429 || err->http >= 502;
}

/* Whether a short wait is pointless. A failed TLS handshake is not an answer of Trustee: its
 * next certificate may be the right one, and nothing was sent. */
static bool is_refused(const struct err *err)
{
	return (err->kind == ERR_DENIED && err->http) || err->kind == ERR_INVALID;
}

/* Halve the window on a lost answer, and count failures in a row. */
bool push_is_away(struct kbs_push *p, const struct err *err, bool first)
{
	unsigned least = p->conf.window < ALLOWED_MIN ? p->conf.window : ALLOWED_MIN;

	if (is_refused(err) || err->kind == ERR_CONFLICT)
		return true;
	if (is_lost(err)) {
		p->allowed = p->allowed / 2 > least ? p->allowed / 2 : least;
		/* The next answer may come from another process, with an empty store and its own
		 * policies: no key must be sent there before our policies. */
		p->probe_wanted = p->hold = true;
	}
	if ((is_lost(err) || first) && p->in_row < AWAY_AFTER)
		p->in_row++;
	return p->in_row >= AWAY_AFTER;
}

/* Grow the window by one (additive increase, as TCP does). */
void push_succeeded(struct kbs_push *p)
{
	p->in_row = 0;
	if (p->allowed < p->conf.window)
		p->allowed++;
}

/* Retry-After is honoured up to SAID_MAX_MS: a proxy may send hours. */
uint32_t push_delay(struct kbs_push *p, struct backoff *b, const char *what, const struct err *err)
{
	uint32_t ms = backoff_next(b, FIRST_MS, is_lost(err) ? LOST_MAX_MS : SAID_MAX_MS);

	if (err->retry_after_ms > ms)
		ms = err->retry_after_ms < SAID_MAX_MS ? err->retry_after_ms : SAID_MAX_MS;
	log_info(NULL, "Trustee request failed, will be retried",
		"trustee=%s name=%s retry_ms=%u reason=%s", log_esc(p->target), log_esc(what), ms,
		log_esc(err->text));
	return ms;
}

/* Cancel all requests in flight: whether Trustee executed them is unknown. */
static void cancel_all(struct kbs_push *p)
{
	op_scope_cancel(&p->ops);
	push_finish_all_unknown(p);
	timer_cancel(&p->serial_wait);
	timer_cancel(&p->probe);
	timer_cancel(&p->sentinel);
	/* The next phase starts with a probe and its own backoff. */
	backoff_reset(&p->serial_backoff);
	p->check_due = p->check_due || p->checking;
	push_check_stop(p);
	p->serial = false;
}

/* A refusal needs a person (a key or a certificate), so it is retried slowly. */
void push_fail(struct kbs_push *p, const struct err *err)
{
	const struct err why = *err; /* err may belong to a request that is freed here */
	bool refused = is_refused(&why);
	uint32_t after = refused ? (why.kind == ERR_DENIED ? p->conf.denied_ms : p->conf.refused_ms)
				 : backoff_next(&p->backoff, AWAY_MIN_MS, SAID_MAX_MS);

	p->failed = true;
	cancel_all(p);
	if (!refused && why.retry_after_ms > after)
		after = why.retry_after_ms > SAID_MAX_MS ? SAID_MAX_MS : why.retry_after_ms;
	(void)snprintf(p->error, sizeof(p->error), "%s", why.text);
	push_set_state(p, refused ? KBS_TARGET_REFUSED : KBS_TARGET_UNREACHABLE);
	timer_set(&p->retry, after);
}

/* Every way back starts with a probe: the store may have been replaced meanwhile. */
static void on_retry(void *arg)
{
	struct kbs_push *p = arg;

	if (!p->transport)
		return;
	p->probe_wanted = p->hold = true;
	p->waiting_since_ms = clock_boot_ms();
	push_set_state(p, KBS_TARGET_PROBING);
	push_wake(p);
}

/* ---- what to do now */

/* Switch between one value per identity and one shared array. All identities are sent again in
 * the new form, then the policies. True: requests in the old form must end first. */
static bool change_mode(struct kbs_push *p)
{
	if (p->shared_mode == p->sync->policies.shared)
		return false;
	/* Requests in flight carry the old form: wait for their answers. */
	if (!TAILQ_EMPTY(&p->in_flight) || p->serial)
		return true;
	p->shared_mode = !p->shared_mode;
	p->shared_emptied = false;
	/* Everything is unknown again and therefore queued. */
	kbs_sync_assume(p->sync, p->t, false);
	return false;
}

/* Everything is sent: read back once, and write the clean sentinel after its debounce. */
static void all_sent(struct kbs_push *p)
{
	struct kbs_sum want;

	backoff_reset(&p->backoff);
	push_set_state(p, KBS_TARGET_IN_SYNC);
	if (p->check_due && !p->checking)
		push_check_start(p);
	if (!timer_is_set(&p->probe))
		timer_set(&p->probe, p->conf.probe_ms);
	if (push_sentinel_is_right(p)) {
		timer_cancel(&p->sentinel);
		p->sentinel_due = false;
	} else if (p->sentinel_due || p->finishing) {
		/* A clean sentinel whose answer was lost may be stored, with another sum than the
		 * one that is due now: a probe could not distinguish the two. */
		kbs_sync_sum(p->sync, &want);
		if (p->sent && memcmp(&want, &p->sent_sum, sizeof(want)) != 0)
			push_start_dirty(p);
		else
			push_start_clean(p);
	} else if (!timer_is_set(&p->sentinel)) {
		timer_set(&p->sentinel, p->conf.sentinel_ms);
	}
}

/* Send what may be sent now, in an order that never opens access: no key is readable before the
 * policies and values that restrict it are stored. */
static void send_next(struct kbs_push *p)
{
	bool filled = p->state == KBS_TARGET_IN_SYNC, values, policies, first, empties = false,
	     must_dirty = false;

	if (!p->transport || p->state == KBS_TARGET_UNREACHABLE || p->state == KBS_TARGET_REFUSED ||
		!p->sync->policies.attestation)
		return;
	if (p->probe_wanted && !p->serial && !timer_is_set(&p->serial_wait))
		push_probe_start(p);
	if (!p->known || p->hold || change_mode(p))
		return;
	/* What is missing decides the phase; the order of the conditions below is the order of
	 * safety. */
	policies = push_policies_are_there(p);
	values = push_values_are_left(p, &empties);
	first = !policies && p->order == PUSH_POLICIES_FIRST;
	/* Keys follow everything that decides who may read them. */
	if (policies && (filled || (!values && !p->serial)))
		must_dirty = push_start_keys(p);
	must_dirty = must_dirty || (!policies && (p->clean || p->sent));
	if (p->serial || timer_is_set(&p->serial_wait))
		return;
	if (must_dirty && (first || !values))
		push_start_dirty(p);
	else if (first)
		push_start_policy(p);
	else if (values)
		push_start_values(p, empties);
	else if (!policies)
		push_start_policy(p);
	else if (!push_keys_are_left(p) && !push_start_repeat(p))
		all_sent(p);
	else if (!filled)
		push_set_state(p, KBS_TARGET_POPULATING);
}

/* `asked` covers this turn only: the next turn may find another process behind the same address. */
static void work(void *arg)
{
	struct kbs_push *p = arg;

	send_next(p);
	p->asked = false;
}

void push_wake(struct kbs_push *p)
{
	kbs_sync_wake(p->sync, p->t);
}

static void on_wake(void *arg)
{
	push_wake(arg);
}

/* The debounce has ended: write the clean sentinel if everything is still sent. */
static void on_sentinel(void *arg)
{
	struct kbs_push *p = arg;

	p->sentinel_due = true;
	push_wake(p);
}

/* The last requests of an earlier leader must have arrived by now. */
static void on_repeat(void *arg)
{
	struct kbs_push *p = arg;

	push_repeat_early(p);
	push_wake(p);
}

/* ---- the interface */

/* Zero means default, so that callers and tests set only what they need. */
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

/* Without a transport the push stays UNREACHABLE until kbs_push_set_transport(). */
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
	p->allowed = p->conf.window;
	TAILQ_INIT(&p->in_flight);
	TAILQ_INIT(&p->waiting);
	TAILQ_INIT(&p->due[0]);
	TAILQ_INIT(&p->due[1]);
	timer_init(&p->retry, l, on_retry, p);
	timer_init(&p->probe, l, push_probe_on_timer, p);
	timer_init(&p->sentinel, l, on_sentinel, p);
	timer_init(&p->repeat_timer, l, on_repeat, p);
	timer_init(&p->check, l, push_check_next, p);
	timer_init(&p->serial_wait, l, on_wake, p);
	/* From here on kbs_sync calls work() when something changes. */
	p->t = kbs_sync_attach(sync, p->target, l, work, p);
	metric_set(&states, p->target, state_name(p->state), 1);
	if (conf->repeat_revoked_ms)
		timer_set(&p->repeat_timer, conf->repeat_revoked_ms);
	if (take_t)
		kbs_push_set_transport(p, take_t, NULL);
	return p;
}

/* The requests go first: they hold references into kbs_sync's entries. */
void kbs_push_free(struct kbs_push *p)
{
	if (!p)
		return;
	cancel_all(p);
	timer_fini(&p->retry);
	timer_fini(&p->probe);
	timer_fini(&p->sentinel);
	timer_fini(&p->repeat_timer);
	timer_fini(&p->check);
	timer_fini(&p->serial_wait);
	push_repeat_fini(p);
	metric_drop(&states, p->target, state_name(p->state));
	kbs_sync_detach(p->sync, p->t);
	kbs_sync_target_remove(p->sync, p->target);
	kbs_transport_free(p->transport);
	free(p->target);
	free(p->cluster_uid);
	free(p->session);
	free(p->text);
	free(p);
}

/* The old transport may only be freed after its requests are cancelled. */
void kbs_push_set_transport(struct kbs_push *p, struct kbs_transport *take_t, const char *why)
{
	cancel_all(p);
	kbs_transport_free(p->transport);
	p->transport = take_t;
	backoff_reset(&p->backoff);
	p->in_row = 0;
	p->allowed = p->conf.window;
	p->batch_max = SIZE_MAX;
	timer_cancel(&p->retry);
	free(p->text);
	p->text = take_t ? NULL : xstrdup(why);
	/* on_retry() also sets the state: PROBING is the only way out of UNREACHABLE. */
	if (take_t) {
		on_retry(p);
	} else {
		p->error[0] = '\0';
		push_set_state(p, KBS_TARGET_UNREACHABLE);
	}
}

/* While Trustee is away, the pending retry is brought forward instead. */
void kbs_push_probe(struct kbs_push *p)
{
	if (!p->transport)
		return;
	if (p->state == KBS_TARGET_UNREACHABLE || p->state == KBS_TARGET_REFUSED) {
		timer_set(&p->retry, 0);
		return;
	}
	p->probe_wanted = p->hold = true;
	push_wake(p);
}

void kbs_push_finish(struct kbs_push *p)
{
	p->finishing = true;
	push_wake(p);
}

/* A Trustee that is not in sync counts as finished: shutdown must not wait for it. */
bool kbs_push_is_finished(struct kbs_push *p)
{
	return !p->transport || p->state != KBS_TARGET_IN_SYNC ||
	       (!p->serial && !push_keys_are_left(p) &&
		       !kbs_sync_peek(p->sync, p->t, KBS_REFVALUE) && push_policies_are_there(p) &&
		       push_sentinel_is_right(p));
}

void kbs_push_set_window(struct kbs_push *p, unsigned window)
{
	p->conf.window = window;
	p->allowed = p->allowed < window ? p->allowed : window;
}
