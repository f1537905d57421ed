/* SPDX-License-Identifier: MIT */
/*
 * Every state that one Machine and its disk key can get into, found by searching: two operators at
 * once, each with caches that may be behind, each killed at any moment with a create on its way;
 * somebody who plants Secrets, and somebody who deletes them. What is decided is decided by the
 * controller's own function; what a request does to the API is told here in a few lines. A write of
 * the Machine succeeds only when the operator's cache shows the Machine as it is.
 */
#include "config.h"

#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>

#include "tec/ctl/machine.h"

/* What a Secret holds: a key of ours by number, or one that we never made. */
enum { NONE, KEY_1, KEY_2, KEY_3, PLANTED, LEGACY, N_CONTENTS };
#define N_KEYS 3

struct machine {
	unsigned finalizer : 1, delivered : 1, bound : 1;
	unsigned announced : 3; /* bit per key */
	unsigned inherited : 1; /* LEGACY is announced */
};

struct operator_ {
	struct machine m; /* cache */
	unsigned secret : 3;
	unsigned made : 3;     /* in hand, not answered yet */
	unsigned declared : 3; /* in memory */
};

struct situation {
	struct machine m;
	unsigned secret : 3;
	unsigned late : 3; /* creates of killed operators, on their way: bit per key */
	unsigned born : 2; /* keys made so far */
	unsigned sent : 6; /* contents that Trustee was ever given */
	struct operator_ op[2];
};

static bool shared, older;

static bool same(const struct machine *a, const struct machine *b)
{
	return a->finalizer == b->finalizer && a->delivered == b->delivered &&
	       a->bound == b->bound && a->announced == b->announced && a->inherited == b->inherited;
}

static bool announces(const struct machine *m, unsigned content)
{
	if (content == LEGACY)
		return m->inherited;
	return content >= KEY_1 && content <= KEY_3 && m->announced >> (content - 1) & 1;
}

static bool marked(const struct machine *m)
{
	return m->announced || m->inherited || m->delivered || m->bound;
}

static struct ctl_machine_view view_of(const struct operator_ *o)
{
	const struct machine *m = &o->m;
	bool delivered = m->delivered || m->bound;

	return (struct ctl_machine_view){
		.found = true,
		.id_ok = true,
		.owns_id = true,
		.has_finalizer = m->finalizer,
		.status_ok = true,
		.luks = o->secret == NONE ? CACHES_LUKS_ABSENT : CACHES_LUKS_OK,
		.announced = m->announced || m->inherited,
		.delivered = delivered,
		.in_hand = o->made && announces(m, o->made),
		.key_ours = announces(m, o->secret),
		.inherits = older && o->secret == LEGACY && !marked(m),
		.lost = older && m->finalizer && !marked(m),
		.must_mark = shared && !delivered,
		.may_deliver = m->bound || (shared && delivered),
		.can_restore = o->declared && announces(m, o->declared),
		.declared = o->declared && o->declared == o->secret,
		.observed_key = KBS_OBSERVED_PENDING,
		.observed_ids = KBS_OBSERVED_NONE,
	};
}

/* The answer of a create: AlreadyExists is followed by a read. */
static void create(struct situation *s, struct operator_ *o, unsigned content)
{
	if (s->secret == NONE)
		s->secret = content;
	o->secret = s->secret;
}

static void write_machine(struct situation *s, struct operator_ *o, struct machine m)
{
	if (same(&s->m, &o->m))
		s->m = m;
	o->m = s->m;
}

static void fix_hash(struct machine *m, unsigned content)
{
	m->announced = content <= KEY_3 ? 1u << (content - 1) : 0;
	m->inherited = content == LEGACY;
}

/* False: the search goes no further, all keys that it allows were made. */
static bool act(struct situation *s, struct operator_ *o, enum ctl_machine_do d)
{
	struct machine m = o->m;

	switch (d) {
	case CTL_MACHINE_ANNOUNCE:
		if (!o->made && s->born == N_KEYS)
			return false;
		if (!o->made)
			o->made = ++s->born;
		m.finalizer = 1;
		m.announced |= 1u << (o->made - 1);
		write_machine(s, o, m);
		return true;
	case CTL_MACHINE_ADD_FINALIZER:
		m.finalizer = 1;
		write_machine(s, o, m);
		return true;
	case CTL_MACHINE_CREATE_SECRET:
		create(s, o, o->made);
		o->made = NONE;
		return true;
	case CTL_MACHINE_RESTORE_SECRET:
		create(s, o, o->declared);
		return true;
	case CTL_MACHINE_INHERIT:
	case CTL_MACHINE_MARK_DELIVERED:
		m.finalizer = m.delivered = 1;
		fix_hash(&m, o->secret);
		write_machine(s, o, m);
		return true;
	case CTL_MACHINE_DECLARE:
		cr_assert(s->m.delivered || s->m.bound, "delivered without a mark");
		o->declared = o->secret;
		s->sent |= 1u << o->secret;
		return true;
	default:
		cr_assert(false, "act %d", (int)d);
		return false;
	}
}

/* What the controller of AttestationKeys does: only while the key stands there, or is marked. */
static void bind(struct situation *s, struct operator_ *o)
{
	struct machine m = o->m;

	if (m.bound || !(m.delivered || announces(&m, o->secret)))
		return;
	if (!m.delivered)
		fix_hash(&m, o->secret);
	m.bound = 1;
	write_machine(s, o, m);
}

static void check(const struct situation *s)
{
	unsigned n = 0;

	for (int i = 0; i < N_CONTENTS; i++)
		n += s->sent >> i & 1;
	cr_assert(!(s->sent >> PLANTED & 1), "a planted key was delivered");
	cr_assert_leq(n, 1, "two keys were delivered: %x", s->sent);
	cr_assert(!(s->sent >> LEGACY & 1) || older);
	cr_assert(!older || s->born == 0, "a disk may be encrypted with what was there");
}

/* With nobody else about, one operator comes to rest, and a key that can be used is used. */
static void check_settles(struct situation s)
{
	struct operator_ *o = &s.op[0];

	for (int i = 0; i < 20; i++) {
		struct ctl_machine_view v;
		enum ctl_machine_do d;

		o->m = s.m;
		o->secret = s.secret;
		v = view_of(o);
		d = ctl_machine_decide(&v);
		if (d == CTL_MACHINE_NOTHING) {
			cr_assert(!announces(&s.m, s.secret) || !v.may_deliver || v.declared);
			cr_assert(!shared || !announces(&s.m, s.secret) || v.declared);
			return;
		}
		if (!act(&s, o, d))
			return;
		check(&s);
	}
	cr_assert(false, "does not settle");
}

/* ---- the search */

static struct situation *states;
static size_t n_states, n_room;
static uint32_t *table; /* index + 1 */
static size_t table_size;

static uint64_t pack_machine(const struct machine *m)
{
	return m->finalizer | m->delivered << 1 | m->bound << 2 | m->announced << 3 |
	       m->inherited << 6;
}

static uint64_t pack(const struct situation *s)
{
	uint64_t k = pack_machine(&s->m);

	k = k << 3 | s->secret;
	k = k << 3 | s->late;
	k = k << 2 | s->born;
	k = k << 6 | s->sent;
	for (int i = 0; i < 2; i++) {
		k = k << 7 | pack_machine(&s->op[i].m);
		k = k << 3 | s->op[i].secret;
		k = k << 3 | s->op[i].made;
		k = k << 3 | s->op[i].declared;
	}
	return k;
}

static size_t slot_of(const struct situation *s)
{
	uint64_t k = pack(s);
	size_t i = (size_t)((k * 0x9e3779b97f4a7c15u) >> 20) & (table_size - 1);

	while (table[i] && pack(&states[table[i] - 1]) != k)
		i = (i + 1) & (table_size - 1);
	return i;
}

static void add(const struct situation *s)
{
	size_t i = slot_of(s);

	if (table[i])
		return;
	check(s);
	cr_assert_lt(n_states * 2, table_size, "the search is too large");
	if (n_states == n_room) {
		n_room = n_room ? n_room * 2 : 1024;
		states = realloc(states, n_room * sizeof(*states));
		cr_assert(states);
	}
	states[n_states++] = *s;
	table[i] = (uint32_t)n_states;
}

static void kill_and_start(struct situation *s, struct operator_ *o)
{
	o->made = o->declared = NONE;
	o->m = s->m;
	o->secret = s->secret;
}

/* Everything that one operator may do next, or have done to it. */
static void expand_operator(const struct situation *from, int i)
{
	struct ctl_machine_view v = view_of(&from->op[i]);
	enum ctl_machine_do d = ctl_machine_decide(&v);
	struct situation s = *from;

	if (d != CTL_MACHINE_NOTHING && act(&s, &s.op[i], d)) {
		add(&s);
		kill_and_start(&s, &s.op[i]); /* before it could do anything with the answer */
		add(&s);
	}
	s = *from;
	if (d == CTL_MACHINE_CREATE_SECRET) { /* killed with the create on its way */
		s.late |= 1u << (s.op[i].made - 1);
		kill_and_start(&s, &s.op[i]);
		add(&s);
	}
	s = *from;
	kill_and_start(&s, &s.op[i]);
	add(&s);
	s = *from;
	s.op[i].m = s.m; /* events of one kind come before those of the other */
	add(&s);
	s = *from;
	s.op[i].secret = s.secret;
	add(&s);
	s = *from;
	bind(&s, &s.op[i]);
	add(&s);
}

static void expand_world(const struct situation *from)
{
	struct situation s = *from;

	if (s.secret == NONE) {
		s.secret = PLANTED;
		add(&s);
	}
	s = *from;
	s.secret = NONE; /* kubectl delete */
	add(&s);
	for (unsigned k = 0; k < N_KEYS; k++) {
		s = *from;
		if (!(s.late >> k & 1))
			continue;
		s.late &= ~(1u << k);
		if (s.secret == NONE)
			s.secret = KEY_1 + k;
		add(&s);
	}
}

static void search(struct situation start, size_t at_least)
{
	table_size = 1u << 25;
	table = calloc(table_size, sizeof(*table));
	cr_assert(table);
	n_states = 0;
	for (int i = 0; i < 2; i++)
		kill_and_start(&start, &start.op[i]);
	add(&start);
	for (size_t i = 0; i < n_states; i++) {
		struct situation s = states[i];

		expand_operator(&s, 0);
		expand_operator(&s, 1);
		expand_world(&s);
		check_settles(s);
	}
	cr_log_info("%zu states", n_states);
	cr_assert_geq(n_states, at_least);
	free(table);
	free(steal_ptr(&states));
	n_room = 0;
}

TestSuite(ctl_machine_states, .timeout = 600);

Test(ctl_machine_states, a_new_machine_per_machine)
{
	shared = older = false;
	search((struct situation){.secret = NONE}, 50000);
}

Test(ctl_machine_states, a_new_machine_shared)
{
	shared = true;
	older = false;
	search((struct situation){.secret = NONE}, 50000);
}

Test(ctl_machine_states, one_taken_over_with_its_secret)
{
	older = true;
	for (int i = 0; i < 2; i++) {
		shared = i;
		search((struct situation){.m.finalizer = 1, .secret = LEGACY}, 200);
	}
}

Test(ctl_machine_states, one_taken_over_without_its_secret_gets_no_other_key)
{
	older = true;
	for (int i = 0; i < 2; i++) {
		shared = i;
		search((struct situation){.m.finalizer = 1, .secret = NONE}, 4);
	}
}
