/* SPDX-License-Identifier: MIT */
/*
 * What failed by itself and is tried again. A key that failed waits in a heap by its own deadline,
 * one timer for all of them; policies and values, sent one at a time, share one deadline. Whether
 * Trustee is away is told from failures in a row, not from one of them. A name that is refused
 * again and again while Trustee answers does not count, so that it delays nothing but itself.
 */
#include "config.h"

#include "push_internal.h"

#include <string.h>

#include "tec/base/clock.h"
#include "tec/base/log.h"
#include "tec/base/mem.h"

#define FIRST_MS    100u
#define LOST_MAX_MS 500u   /* nothing came back: short, as many in a row count as away */
#define SAID_MAX_MS 30000u /* it answers, and does not take this */
#define AWAY_AFTER  5u
#define ROOM_MIN    2u

/* ---- how it goes */

/* No answer of Trustee's itself: it did not come, or something in between gave it. */
static bool is_lost(const struct err *err)
{
	return !err->http || err->http == 429 || err->http >= 502;
}

bool push_is_refused(const struct err *err)
{
	/* A handshake that failed is no answer of Trustee's: its next certificate may be the right
	 * one, and nothing was sent. */
	return (err->kind == ERR_DENIED && err->http) || err->kind == ERR_INVALID;
}

bool push_is_away(struct kbs_push *p, const struct err *err, unsigned tries)
{
	unsigned least = p->conf.window < ROOM_MIN ? p->conf.window : ROOM_MIN;

	if (push_is_refused(err) || err->kind == ERR_CONFLICT)
		return true;
	if (is_lost(err)) {
		p->room = p->room / 2 > least ? p->room / 2 : least;
		/* What answers next may be another process, with an empty store and its own
		 * policies: a key must not go there before ours. */
		p->probe_wanted = p->hold = true;
	}
	if ((is_lost(err) || !tries) && p->in_row < AWAY_AFTER)
		p->in_row++;
	return p->in_row >= AWAY_AFTER;
}

void push_went_well(struct kbs_push *p)
{
	p->in_row = 0;
	if (p->room < p->conf.window)
		p->room++;
}

/* A read says less than a write: its disk may be full. */
void push_is_back(struct kbs_push *p)
{
	if (p->in_row > AWAY_AFTER - 2)
		p->in_row = AWAY_AFTER - 2;
}

uint32_t push_jitter(struct kbs_push *p, uint32_t ms)
{
	uint64_t seed[2] = {++p->jitter_seq, (uintptr_t)p};

	return ms - (uint32_t)(str_hash(seed, sizeof(seed)) % (ms / 5 + 1));
}

static uint32_t delay(struct kbs_push *p, const struct err *err, unsigned tries)
{
	uint32_t max = is_lost(err) ? LOST_MAX_MS : SAID_MAX_MS;
	uint32_t ms = tries < 16 ? FIRST_MS << tries : max;

	ms = push_jitter(p, ms < max ? ms : max);
	if (err->retry_after_ms > ms)
		ms = err->retry_after_ms < SAID_MAX_MS ? err->retry_after_ms : SAID_MAX_MS;
	return ms;
}

static void say(const struct kbs_push *p, const char *name, uint32_t ms, const struct err *err)
{
	log_info(NULL, "Trustee request failed, it is sent again",
		"trustee=%s name=%s retry_ms=%u reason=%s", log_esc(p->target), log_esc(name), ms,
		log_esc(err->text));
}

/* ---- one at a time */

void push_retry_serial(struct kbs_push *p, const char *what, const struct err *err)
{
	uint32_t ms = delay(p, err, p->serial_tries);

	p->serial_tries++;
	say(p, what, ms, err);
	timer_set(&p->serial_wait, ms);
}

/* ---- keys */

static void swap(struct push_wait *a, struct push_wait *b)
{
	struct push_wait x = *a;

	*a = *b;
	*b = x;
}

static void waits_push(struct push_waits *h, const struct push_wait *w)
{
	size_t i = h->n++;

	if (i == h->cap) {
		h->cap = h->cap ? h->cap * 2 : 8;
		h->v = xreallocarray(h->v, h->cap, sizeof(*h->v));
	}
	h->v[i] = *w;
	for (; i && h->v[i].due_ms < h->v[(i - 1) / 2].due_ms; i = (i - 1) / 2)
		swap(&h->v[i], &h->v[(i - 1) / 2]);
}

static struct push_wait waits_pop(struct push_waits *h)
{
	struct push_wait first = h->v[0];

	h->v[0] = h->v[--h->n];
	for (size_t i = 0, least = 0;; i = least) {
		for (size_t k = 2 * i + 1; k <= 2 * i + 2; k++)
			if (k < h->n && h->v[k].due_ms < h->v[least].due_ms)
				least = k;
		if (least == i)
			break;
		swap(&h->v[i], &h->v[least]);
	}
	if (!h->n) {
		free(h->v);
		memset(h, 0, sizeof(*h));
	}
	return first;
}

void push_retry_key(struct kbs_push *p, struct kbs_entry *e, unsigned tries, const struct err *err)
{
	uint32_t ms = delay(p, err, tries);
	const struct push_wait w = {
		.e = e, .due_ms = clock_boot_ms() + ms, .tries = tries < 255 ? tries + 1 : tries};

	say(p, e->name, ms, err);
	kbs_sync_lost(p->sync, p->t, e);
	waits_push(&p->waits[!!e->holder], &w);
}

struct kbs_entry *push_wait_due(struct kbs_push *p, bool delivery)
{
	struct push_waits *h = &p->waits[delivery];

	while (h->n && h->v[0].e->forgotten)
		kbs_sync_landed(p->sync, p->t, waits_pop(h).e, false, NULL);
	return h->n && h->v[0].due_ms <= clock_boot_ms() ? h->v[0].e : NULL;
}

unsigned push_wait_take(struct kbs_push *p, bool delivery)
{
	return waits_pop(&p->waits[delivery]).tries;
}

bool push_is_waiting(const struct kbs_push *p)
{
	return p->waits[0].n || p->waits[1].n;
}

void push_wait_drop(struct kbs_push *p)
{
	for (int d = 0; d < 2; d++)
		while (p->waits[d].n)
			kbs_sync_landed(p->sync, p->t, waits_pop(&p->waits[d]).e, false, NULL);
	timer_cancel(&p->wait);
	timer_cancel(&p->serial_wait);
	p->serial_tries = 0;
}

/* What is due and was not taken has to wait for an answer, which wakes us. */
void push_wait_arm(struct kbs_push *p)
{
	uint64_t now = clock_boot_ms(), first = UINT64_MAX;

	for (int d = 0; d < 2; d++)
		if (p->waits[d].n && p->waits[d].v[0].due_ms > now &&
			p->waits[d].v[0].due_ms < first)
			first = p->waits[d].v[0].due_ms;
	if (first == UINT64_MAX)
		timer_cancel(&p->wait);
	else
		timer_set(&p->wait, (uint32_t)(first - now));
}
