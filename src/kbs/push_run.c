/* SPDX-License-Identifier: MIT */
/*
 * Running: one request for each key, in a window. A key that failed waits for its own backoff. What
 * has waited is sent before what is new, and revocations before deliveries. A request that replaces
 * or removes a key waits until the sentinel is dirty. Sends no value and no policy.
 */
#include "config.h"

#include "push_internal.h"

#include <string.h>

#include "tec/base/mem.h"

/* ---- requests */

static void on_due(void *arg);

static void move(struct push_request *f, struct push_requests *to)
{
	if (f->list)
		TAILQ_REMOVE(f->list, f, link);
	f->list = to;
	TAILQ_INSERT_TAIL(to, f, link);
}

struct push_request *push_request_new(struct kbs_push *p)
{
	struct push_request *f = xcalloc(1, sizeof(*f));

	f->p = p;
	timer_init(&f->retry, p->loop, on_due, f);
	move(f, &p->in_flight);
	return f;
}

static void request_free(struct push_request *f)
{
	TAILQ_REMOVE(f->list, f, link);
	timer_fini(&f->retry);
	free(f->item);
	free(f);
}

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

void push_finish_unknown(struct push_request *f)
{
	for (size_t i = 0; i < f->n; i++)
		kbs_sync_finish(f->p->sync, f->p->t, f->item[i].e, false, NULL);
	request_free(f);
}

void push_finish_all_unknown(struct kbs_push *p)
{
	struct push_requests *all[] = {&p->in_flight, &p->waiting, &p->due[0], &p->due[1]};

	for (size_t i = 0; i < ARRAY_LEN(all); i++)
		while (!TAILQ_EMPTY(all[i]))
			push_finish_unknown(TAILQ_FIRST(all[i]));
	p->n_resources = 0;
	p->repeat_flying = false;
}

/* ---- revocations that are repeated */

static void note_revoked(struct kbs_push *p, enum kbs_kind kind, const char *name)
{
	uint32_t hash = table_hash_str(name);
	struct push_repeat *a;
	size_t len = strlen(name);

	if (!timer_is_set(&p->repeat_timer))
		return;
	TABLE_WITH_HASH (a, link, &p->repeated, hash)
		if (a->link.owner == kind && strcmp(a->name, name) == 0)
			return; /* a message must not contain a name twice */
	a = xcalloc(1, sizeof(*a) + len + 1);
	memcpy(a->name, name, len);
	a->link.owner = kind;
	table_add(&p->repeated, &a->link, hash);
	a->next = p->repeat[kind];
	p->repeat[kind] = a;
}

void push_repeat_drop(struct kbs_push *p, enum kbs_kind kind, size_t n)
{
	while (n-- && p->repeat[kind]) {
		struct push_repeat *a = p->repeat[kind];

		p->repeat[kind] = a->next;
		table_remove(&p->repeated, &a->link);
		free(a);
	}
}

void push_finish_confirmed(struct push_request *f)
{
	struct kbs_push *p = f->p;

	if (f->stale) {
		push_finish_unknown(f);
		return;
	}
	for (size_t i = 0; i < f->n; i++) {
		struct push_item *x = &f->item[i];

		if (x->revoke || x->e->taken_back)
			note_revoked(p, (enum kbs_kind)x->e->kind, x->e->name);
		kbs_sync_finish(p->sync, p->t, x->e, true, x->revoke ? NULL : x->sha256);
	}
	request_free(f);
}

/* ---- keys */

/* It has waited long enough. */
static void on_due(void *arg)
{
	struct push_request *f = arg;

	move(f, &f->p->due[!f->item->e->objects]);
	push_wake(f->p);
}

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

static void on_key(void *arg, const struct err *err, const struct kbs_answer *answer)
{
	struct push_request *f = arg;
	struct kbs_push *p = f->p;

	(void)answer;
	p->n_resources--;
	p->repeat_flying = false;
	if (err_is_set(err)) {
		key_failed(f, err);
		return;
	}
	backoff_reset(&p->backoff);
	push_succeeded(p);
	push_repeat_drop(p, KBS_RESOURCE, f->repeats);
	push_finish_confirmed(f);
	push_wake(p);
}

/* The first one that is due. */
static struct push_request *first_due(struct kbs_push *p, bool revoked)
{
	struct push_request *f;

	while ((f = TAILQ_FIRST(&p->due[revoked])) != NULL && f->item->e->forgotten)
		push_finish_unknown(f);
	return f;
}

bool push_start_keys(struct kbs_push *p)
{
	while (p->n_resources < p->allowed && !p->repeat_flying) {
		struct push_request *f = first_due(p, true);
		struct kbs_entry *e = f ? f->item->e : kbs_sync_peek(p->sync, p->t, KBS_RESOURCE);

		if (!f && (!e || e->objects) && (f = first_due(p, false)) != NULL)
			e = f->item->e;
		if (!e)
			return false;
		/* Nothing is replaced or removed while a clean sentinel is stored. */
		if ((!e->objects || kbs_seen_of(e, p->t) == KBS_SEEN_OTHER) &&
			(p->clean || p->sent))
			return true;
		if (f)
			move(f, &p->in_flight);
		else
			kbs_sync_take(p->sync, p->t, e);
		f = f ? f : push_request_new(p);
		f->n = 0;
		f->stale = false;
		push_request_add(f, e); /* what is wanted of it now */
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

/* Called when nothing else is left, so that every revocation is confirmed. Of a name that was
 * declared again, or that lists other objects, the value is sent. Keys one at a time: they are few.
 */
bool push_start_repeat(struct kbs_push *p)
{
	const struct push_repeat *a;
	struct push_request *f;

	if (!p->repeat_due)
		return false;
	if (p->repeat[KBS_REFVALUE]) {
		push_repeat_values(p);
		return true;
	}
	while ((a = p->repeat[KBS_RESOURCE]) && kbs_sync_object(p->sync, KBS_RESOURCE, a->name))
		push_repeat_drop(p, KBS_RESOURCE, 1);
	p->repeat_due = a != NULL;
	if (!a)
		return false;
	if (p->clean || p->sent) {
		push_start_dirty(p);
		return true;
	}
	f = push_request_new(p);
	f->repeats = 1;
	p->n_resources++;
	p->repeat_flying = true;
	(void)kbs_admin_delete_resource(p->transport, &p->ops, a->name, on_key, f);
	return true;
}
