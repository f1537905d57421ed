/* SPDX-License-Identifier: MIT */
/*
 * Running: one request per key, in a window. A key that failed waits for its own backoff. Retries
 * are sent before new work, and revocations before deliveries. A request that replaces or removes a
 * key waits until the sentinel is dirty. Sends no values and no policies.
 */
#include "config.h"

#include "push_internal.h"

#include <string.h>

#include "tec/base/mem.h"

/* ---- requests */

static void on_due(void *arg);

/* Append to a list; a request is always in exactly one. */
static void move(struct push_request *f, struct push_requests *to)
{
	if (f->list)
		TAILQ_REMOVE(f->list, f, link);
	f->list = to;
	TAILQ_INSERT_TAIL(to, f, link);
}

/* Owned by the list it is in; freed by push_finish_confirmed() or push_finish_unknown(). */
struct push_request *push_request_new(struct kbs_push *p)
{
	struct push_request *f = xcalloc(1, sizeof(*f));

	f->p = p;
	timer_init(&f->retry, p->loop, on_due, f);
	move(f, &p->in_flight);
	return f;
}

/* The items were finished before: their in-flight bits are cleared. */
static void request_free(struct push_request *f)
{
	TAILQ_REMOVE(f->list, f, link);
	timer_fini(&f->retry);
	free(f->item);
	free(f);
}

/* Record what is sent: the entry may change while the request is in flight. */
void push_request_add(struct push_request *f, struct kbs_entry *e)
{
	struct push_item *i;

	if (f->n == f->cap) {
		f->cap = f->cap ? f->cap * 2 : 1;
		f->item = xreallocarray(f->item, f->cap, sizeof(*f->item));
	}
	i = &f->item[f->n++];
	*i = (struct push_item){.e = e, .revoke = !e->objects};
	memcpy(i->sha256, e->sha256, SHA256_LEN);
}

/* Queue what the request carried again, and free the request. */
void push_finish_unknown(struct push_request *f)
{
	for (size_t i = 0; i < f->n; i++)
		kbs_sync_finish(f->p->sync, f->p->t, f->item[i].e, false, NULL);
	push_repeat_end(f, false);
	request_free(f);
}

/* Covers requests in flight and those waiting for another try. */
void push_finish_all_unknown(struct kbs_push *p)
{
	struct push_requests *all[] = {&p->in_flight, &p->waiting, &p->due[0], &p->due[1]};

	for (size_t i = 0; i < ARRAY_LEN(all); i++)
		while (!TAILQ_EMPTY(all[i]))
			push_finish_unknown(TAILQ_FIRST(all[i]));
	p->n_resources = p->n_repeated = 0;
}

/* An answer from before the store was lost confirms nothing. */
void push_finish_confirmed(struct push_request *f)
{
	struct kbs_push *p = f->p;

	if (f->stale) {
		push_finish_unknown(f);
		return;
	}
	for (size_t i = 0; i < f->n; i++) {
		struct push_item *x = &f->item[i];

		/* A late request of an earlier leader could undo this: repeat it later. */
		if (x->revoke || x->e->taken_back)
			push_repeat_note(p, (enum kbs_kind)x->e->kind, x->e->name);
		kbs_sync_finish(p->sync, p->t, x->e, true, x->revoke ? NULL : x->sha256);
	}
	push_repeat_end(f, true);
	request_free(f);
}

/* ---- keys */

/* The backoff has ended: queue the request again by what is desired now. */
static void on_due(void *arg)
{
	struct push_request *f = arg;

	move(f, &f->p->due[!f->item->e->objects]);
	push_wake(f->p);
}

/* Keep the request for another try, unless Trustee is unreachable. */
static void key_failed(struct push_request *f, const struct err *err)
{
	struct kbs_push *p = f->p;
	struct kbs_entry *e = f->n ? f->item->e : NULL;

	if (!e) {
		push_serial_failed(p, f, "repeated revocation", err);
		return;
	}
	if (push_is_away(p, err, !f->backoff.ms)) {
		push_fail(p, err);
		return;
	}
	move(f, &p->waiting);
	timer_set(&f->retry, push_delay(p, &f->backoff, e->name, err));
	kbs_set_seen(p->sync, e, p->t, KBS_SEEN_UNKNOWN);
	push_wake(p);
}

/* Both a put and a delete end here; the entry's state decides what was confirmed. */
static void on_key(void *arg, const struct err *err, const struct kbs_answer *answer)
{
	struct push_request *f = arg;
	struct kbs_push *p = f->p;

	(void)answer;
	p->n_resources--;
	p->n_repeated -= f->n_repeats > 0;
	if (err_is_set(err)) {
		key_failed(f, err);
		return;
	}
	backoff_reset(&p->backoff);
	push_succeeded(p);
	push_finish_confirmed(f);
	push_wake(p);
}

/* The first retry that is due. Entries forgotten meanwhile are dropped. */
static struct push_request *first_due(struct kbs_push *p, bool revoked)
{
	struct push_request *f;

	while ((f = TAILQ_FIRST(&p->due[revoked])) != NULL && f->item->e->forgotten)
		push_finish_unknown(f);
	return f;
}

/* Order: due revocations, new revocations, due deliveries, new deliveries. */
bool push_start_keys(struct kbs_push *p)
{
	while (p->n_resources < p->allowed && !p->n_repeated) {
		struct push_request *f = first_due(p, true);
		struct kbs_entry *e = f ? f->item->e : kbs_sync_peek(p->sync, p->t, KBS_RESOURCE);

		/* No revocation is left: a due delivery comes before a new one. */
		if (!f && (!e || e->objects) && (f = first_due(p, false)) != NULL)
			e = f->item->e;
		if (!e)
			return false;
		/* A clean sentinel would hide this change from the next process. */
		if (p->clean || p->sent)
			return true;
		if (f)
			move(f, &p->in_flight);
		else
			kbs_sync_take(p->sync, p->t, e);
		/* A retry keeps its request and with it the backoff. */
		f = f ? f : push_request_new(p);
		f->n = 0;
		f->stale = false;
		push_request_add(f, e); /* the current desired value */
		p->n_resources++;
		if (e->objects)
			(void)kbs_admin_put_resource(
				p->transport, &p->ops, e->name, kbs_entry_render(e), on_key, f);
		else
			(void)kbs_admin_delete_resource(p->transport, &p->ops, e->name, on_key, f);
	}
	return false;
}

bool push_keys_are_left(struct kbs_push *p)
{
	return !TAILQ_EMPTY(&p->in_flight) || !TAILQ_EMPTY(&p->waiting) ||
	       !TAILQ_EMPTY(&p->due[0]) || !TAILQ_EMPTY(&p->due[1]) ||
	       kbs_sync_peek(p->sync, p->t, KBS_RESOURCE);
}

/* Repeat revocations. Called when nothing else is left, so every first revocation is confirmed.
 * If the name lists other objects, their value is sent instead. One window at a time, so new
 * work waits for no more than that. */
bool push_start_repeat(struct kbs_push *p)
{
	if (!push_repeat_past(p))
		return true;
	if (push_repeat_next(p, KBS_REFVALUE)) {
		push_repeat_values(p);
		return true;
	}
	if (!push_repeat_next(p, KBS_RESOURCE))
		return false;
	if (p->clean || p->sent) {
		push_start_dirty(p);
		return true;
	}
	while (p->n_resources < p->allowed && push_repeat_next(p, KBS_RESOURCE)) {
		struct push_request *f = push_request_new(p);

		push_repeat_take(f, KBS_RESOURCE);
		p->n_resources++;
		p->n_repeated++;
		(void)kbs_admin_delete_resource(p->transport, &p->ops, f->repeats->name, on_key, f);
	}
	return true;
}
