/* SPDX-License-Identifier: MIT */
/*
 * Lists of names that are revoked once more, each name once. A request takes the names it repeats
 * out of the list and puts them back if it fails. A name that is wanted again meanwhile is skipped.
 */
#include "config.h"

#include "push_internal.h"

#include <string.h>

#include "tec/base/mem.h"

/* The table finds duplicates; the chain gives the order. */
static void put(struct push_repeats *l, struct push_repeat *a, enum kbs_kind kind)
{
	a->link.owner = kind;
	table_add(&l->names, &a->link, table_hash_str(a->name));
	a->next = l->first[kind];
	l->first[kind] = a;
}

/* Both kinds share the table; `owner` distinguishes them. */
static bool has(const struct push_repeats *l, enum kbs_kind kind, const char *name)
{
	const struct push_repeat *a;

	TABLE_WITH_HASH (a, link, &l->names, table_hash_str(name))
		if (a->link.owner == kind && strcmp(a->name, name) == 0)
			return true;
	return false;
}

static void add(struct push_repeats *l, enum kbs_kind kind, const char *name)
{
	size_t len = strlen(name);
	struct push_repeat *a;

	if (has(l, kind, name))
		return; /* a message must not contain a name twice */
	a = xcalloc(1, sizeof(*a) + len + 1);
	memcpy(a->name, name, len);
	put(l, a, kind);
}

/* Remove the first name of a kind; the caller owns it. */
static struct push_repeat *pop(struct push_repeats *l, enum kbs_kind kind)
{
	struct push_repeat *a = l->first[kind];

	if (a) {
		l->first[kind] = a->next;
		table_remove(&l->names, &a->link);
	}
	return a;
}

/* Move all names to `to`, or free them. */
static void move_all(struct push_repeats *l, struct push_repeats *to)
{
	struct push_repeat *a;

	for (int kind = 0; kind < 2; kind++) {
		while ((a = pop(l, (enum kbs_kind)kind)) != NULL) {
			if (to)
				add(to, (enum kbs_kind)kind, a->name);
			free(a);
		}
	}
}

/* After the early part of our term nothing is noted: later revocations cannot be overtaken. */
void push_repeat_note(struct kbs_push *p, enum kbs_kind kind, const char *name)
{
	if (timer_is_set(&p->repeat_timer))
		add(&p->early, kind, name);
}

void push_repeat_early(struct kbs_push *p)
{
	move_all(&p->early, &p->due_again);
}

static void add_due(void *arg, enum kbs_kind kind, const char *name)
{
	struct kbs_push *p = arg;

	add(&p->due_again, kind, name);
}

/* each_revoked returns false while the record is not loaded; then the next turn tries again. */
bool push_repeat_past(struct kbs_push *p)
{
	p->past_due = p->past_due && !p->conf.each_revoked(p->conf.revoked_arg, add_due, p);
	return !p->past_due;
}

/* A name that is wanted again is sent anyway. A list is not: an earlier leader may have sent one
 * with an object that was withdrawn since. */
static bool is_due(const struct kbs_push *p, enum kbs_kind kind, const char *name)
{
	const struct kbs_entry *e = kbs_entry_find(p->sync, kind, name);

	return !e || !e->objects || e->taken_back;
}

/* Names that are wanted again are dropped on the way. */
const char *push_repeat_next(struct kbs_push *p, enum kbs_kind kind)
{
	const struct push_repeat *a;

	while ((a = p->due_again.first[kind]) != NULL && !is_due(p, kind, a->name))
		free(pop(&p->due_again, kind));
	return a ? a->name : NULL;
}

void push_repeat_take(struct push_request *f, enum kbs_kind kind)
{
	struct push_repeat *a = pop(&f->p->due_again, kind);

	a->next = f->repeats;
	f->repeats = a;
	f->n_repeats++;
}

/* Put the names back if the request failed. */
void push_repeat_end(struct push_request *f, bool done)
{
	while (f->repeats) {
		struct push_repeat *a = f->repeats;

		f->repeats = a->next;
		if (!done)
			add(&f->p->due_again, (enum kbs_kind)a->link.owner, a->name);
		free(a);
	}
	f->n_repeats = 0;
}

void push_repeat_fini(struct kbs_push *p)
{
	move_all(&p->early, NULL);
	move_all(&p->due_again, NULL);
	table_fini(&p->early.names);
	table_fini(&p->due_again.names);
}
