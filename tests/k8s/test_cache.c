/* SPDX-License-Identifier: MIT */
#include "config.h"

#include "tec/k8s/cache.h"

#include <criterion/criterion.h>
#include <malloc.h>
#include <signal.h>
#include <stdio.h>

#include "tec/base/mem.h"

struct thing {
	struct kobj k;
	const char *group, *id;
};

static struct kobj *make(const char *name, const char *uid, unsigned rv, int64_t created_s,
	const char *group, const char *id)
{
	cleanup_kobj_pack struct kobj_pack p = KOBJ_PACK_INIT;
	struct thing t = {.k.created_s = created_s};
	char text[24];

	snprintf(text, sizeof(text), "%u", rv);
	kobj_pack_str(&p, offsetof(struct kobj, name), name);
	kobj_pack_str(&p, offsetof(struct kobj, uid), uid);
	kobj_pack_str(&p, offsetof(struct kobj, rv), text);
	kobj_pack_str(&p, offsetof(struct thing, group), group);
	kobj_pack_str(&p, offsetof(struct thing, id), id);
	return kobj_pack_finish(&p, &t, sizeof(t));
}

static const char *value_of(const struct kobj *o, unsigned i)
{
	const struct thing *t = (const struct thing *)o;

	return i == 0 ? t->group : t->id;
}

/* The cache extracts: here, what was made for it. */
static struct kobj *made;

static struct kobj *extract(struct json_object *o, struct err *err)
{
	(void)o;
	(void)err;
	return steal_ptr(&made);
}

static const struct k8s_cache_type type = {extract, sizeof(struct thing), value_of, 2};

static void put(struct k8s_cache *c, struct kobj *take_k)
{
	made = take_k;
	k8s_cache_put(c, NULL);
}

static void put_event(struct k8s_cache *c, struct kobj *take_k)
{
	struct err err = ERR_INIT;

	made = take_k;
	cr_assert_eq(k8s_cache_put_event(c, NULL, &err), 0);
}

/* "name name name": the objects of one value in order. */
static const char *chain(const struct k8s_cache *c, unsigned i, const char *value)
{
	static char out[512];

	out[0] = '\0';
	for (const struct kobj *o = k8s_cache_first(c, i, value); o; o = k8s_cache_next(c, i, o))
		snprintf(out + strlen(out), sizeof(out) - strlen(out), "%s%s", out[0] ? " " : "",
			o->name);
	return out;
}

struct seen {
	struct k8s_cache *c;
	unsigned added, changed, deleted;
	bool saw_state;
};

static void on_change(void *arg, const struct kobj *was, const struct kobj *now)
{
	struct seen *s = arg;

	s->added += !was;
	s->changed += was && now;
	s->deleted += !now;
	/* the cache already is in its new state, and may be read */
	s->saw_state = k8s_cache_find(s->c, now ? now->name : was->name) == now;
	(void)chain(s->c, 0, "g");
}

static struct kobj *extract_smaller(struct json_object *o, struct err *err)
{
	cleanup_kobj_pack struct kobj_pack p = KOBJ_PACK_INIT;
	struct kobj k = {0};

	(void)o;
	(void)err;
	kobj_pack_str(&p, offsetof(struct kobj, name), "a");
	return kobj_pack_finish(&p, &k, sizeof(k));
}

Test(k8s_cache, an_extractor_of_another_struct_is_refused, .signal = SIGABRT)
{
	static const struct k8s_cache_type wrong = {
		extract_smaller, sizeof(struct thing), value_of, 2};

	k8s_cache_put(k8s_cache_new(&wrong), NULL);
}

Test(k8s_cache, objects_are_found_by_name_and_index)
{
	struct k8s_cache *c = k8s_cache_new(&type);

	put(c, make("b", "u1", 1, 20, "g", "1"));
	put(c, make("a", "u2", 2, 30, "g", NULL));
	put(c, make("z", "u3", 3, 10, "g", "2"));
	put(c, make("c", "u4", 4, 20, "g", "2"));
	cr_expect_eq(k8s_cache_count(c), 4);
	cr_expect_str_eq(k8s_cache_find(c, "c")->uid, "u4");
	cr_expect_null(k8s_cache_find(c, "d"));
	cr_expect_null(k8s_cache_find(c, NULL));
	cr_expect_str_eq(chain(c, 0, "g"), "z b c a", "oldest first, then by name");
	cr_expect_str_eq(chain(c, 1, "1"), "b");
	cr_expect_str_eq(chain(c, 1, "2"), "z c");
	cr_expect_str_eq(chain(c, 1, "3"), "");
	cr_expect_str_eq(chain(c, 1, NULL), "");
	put(c, make("z", "u3", 9, 10, "h", NULL));
	cr_expect_str_eq(chain(c, 0, "g"), "b c a", "an object can move");
	cr_expect_str_eq(chain(c, 0, "h"), "z");
	cr_expect_str_eq(chain(c, 1, "2"), "c");
	k8s_cache_remove(c, "b", "other");
	cr_expect_not_null(k8s_cache_find(c, "b"), "another object's uid removes nothing");
	k8s_cache_remove(c, "b", "u1");
	k8s_cache_remove(c, "c", NULL);
	k8s_cache_remove(c, "nobody", NULL);
	cr_expect_str_eq(chain(c, 0, "g"), "a");
	cr_expect_eq(k8s_cache_count(c), 2);
	k8s_cache_free(c);
	k8s_cache_free(NULL);
}

Test(k8s_cache, listeners_hear_each_change_once)
{
	struct k8s_cache *c = k8s_cache_new(&type);
	struct seen s = {.c = c};

	k8s_cache_listen(c, on_change, &s);
	put(c, make("a", "u1", 5, 1, "g", NULL));
	cr_expect(s.saw_state && s.added == 1);
	put(c, make("a", "u1", 5, 1, "g", NULL));
	cr_expect_eq(s.changed, 0, "the same resourceVersion is not a change");
	put(c, make("a", "u1", 4, 1, "g", NULL));
	cr_expect_eq(s.changed, 0, "an event that an answer overtook is not a change");
	put(c, make("a", "u1", 6, 1, "g", NULL));
	cr_expect(s.saw_state && s.changed == 1);
	put(c, make("a", "u2", 3, 1, "g", NULL));
	cr_expect_eq(
		s.changed, 2, "another object of the name counts whatever its resourceVersion");
	k8s_cache_remove(c, "a", "u2");
	cr_expect(s.saw_state && s.deleted == 1);
	k8s_cache_free(c);
	cr_expect_eq(s.deleted, 1, "free tells nobody");
}

static void on_gone(void *arg, const struct kobj *was, const struct kobj *now)
{
	struct seen *s = arg;

	if (!now)
		s->saw_state = k8s_cache_saw_delete(s->c);
}

Test(k8s_cache, an_event_is_told_from_a_list_that_does_not_show_it)
{
	struct k8s_cache *c = k8s_cache_new(&type);
	struct seen s = {.c = c};

	k8s_cache_listen(c, on_gone, &s);
	put(c, make("a", "u1", 5, 1, "g", NULL));
	k8s_cache_remove(c, "a", "u1");
	cr_expect(s.saw_state);
	cr_expect_not(k8s_cache_saw_delete(c), "only within the call");
	put(c, make("b", "u2", 6, 1, "g", NULL));
	k8s_cache_relist_begin(c);
	k8s_cache_relist_end(c);
	cr_expect_not(s.saw_state, "a list");
	s.saw_state = true;
	put(c, make("c", "u3", 7, 1, "g", NULL));
	k8s_cache_clear(c);
	cr_expect_not(s.saw_state);
	k8s_cache_free(c);
}

Test(k8s_cache, a_late_answer_raises_nobody_from_the_dead)
{
	struct k8s_cache *c = k8s_cache_new(&type);

	put_event(c, make("a", "u1", 5, 1, "g", NULL));
	k8s_cache_remove(c, "a", "u1");
	put(c, make("a", "u1", 6, 1, "g", NULL));
	cr_expect_null(k8s_cache_find(c, "a"));
	put(c, make("a", "u2", 7, 1, "g", NULL));
	cr_expect_not_null(k8s_cache_find(c, "a"), "a new object of the name is welcome");
	k8s_cache_remove(c, "a", NULL);
	put_event(c, make("a", "u1", 8, 1, "g", NULL));
	cr_expect_not_null(k8s_cache_find(c, "a"), "the API's own word counts");
	k8s_cache_free(c);
}

Test(k8s_cache, a_relist_removes_what_it_did_not_show)
{
	struct k8s_cache *c = k8s_cache_new(&type);
	struct seen s = {.c = c};

	k8s_cache_listen(c, on_change, &s);
	for (int round = 0; round < 3; round++) {
		k8s_cache_relist_begin(c);
		put_event(c, make("a", "u1", 9, 1, "g", NULL));
		put_event(c, make("b", "u2", 9, 2, "g", NULL));
		if (round == 0)
			cr_expect_not(k8s_cache_filled(c));
		put(c, make(round == 0 ? "c" : "d", round == 0 ? "u3" : "u4", 9, 3, "g", NULL));
		cr_expect_not_null(
			k8s_cache_find(c, "c"), "old objects stay visible until the end");
		k8s_cache_relist_end(c);
		cr_expect(k8s_cache_filled(c));
		cr_expect_str_eq(chain(c, 0, "g"), round == 0 ? "a b c" : "a b d");
		if (round == 1)
			put(c, make("c", "u9", 10, 0, "x", NULL));
	}
	cr_expect_eq(s.added, 5);
	cr_expect_eq(s.deleted, 2);
	cr_expect_eq(s.changed, 0, "unchanged objects make no noise");
	k8s_cache_free(c);
}

Test(k8s_cache, an_abandoned_relist_removes_nothing)
{
	struct k8s_cache *c = k8s_cache_new(&type);

	put(c, make("a", "u1", 1, 1, "g", NULL));
	put(c, make("b", "u2", 1, 1, "g", NULL));
	k8s_cache_relist_begin(c);
	put_event(c, make("a", "u1", 1, 1, "g", NULL));
	k8s_cache_relist_abandon(c);
	cr_expect_not(k8s_cache_filled(c));
	cr_expect_eq(k8s_cache_count(c), 2);
	k8s_cache_relist_begin(c);
	k8s_cache_relist_begin(c); /* begun again */
	put_event(c, make("b", "u2", 1, 1, "g", NULL));
	k8s_cache_relist_end(c);
	cr_expect_str_eq(chain(c, 0, "g"), "b");
	k8s_cache_free(c);
}

Test(k8s_cache, a_relist_may_go_back_in_time)
{
	struct k8s_cache *c = k8s_cache_new(&type);

	put_event(c, make("a", "u1", 900, 1, "g", NULL));
	k8s_cache_relist_begin(c);
	put_event(c, make("a", "u1", 5, 1, "h", NULL));
	k8s_cache_relist_end(c);
	cr_expect_str_eq(k8s_cache_find(c, "a")->rv, "5", "a server restored from a backup");
	k8s_cache_free(c);
}

static void put_unreadable(
	struct k8s_cache *c, const char *name, const char *uid, const char *rv, bool deleting)
{
	struct err err = ERR_INIT;

	cr_assert_eq(k8s_cache_put_unreadable(c, name, uid, rv, deleting, &err), 0, "%s", err.text);
}

Test(k8s_cache, what_cannot_be_read_is_there_and_in_no_index)
{
	struct k8s_cache *c = k8s_cache_new(&type);
	struct seen seen = {.c = c};
	struct err err = ERR_INIT;
	const struct thing *t;

	k8s_cache_listen(c, on_change, &seen);
	put_event(c, make("a", "u1", 5, 1, "g", "i"));
	put_unreadable(c, "a", "u1", "6", false);
	t = (const struct thing *)k8s_cache_find(c, "a");
	cr_assert(t && t->k.unreadable && !t->k.deleting);
	cr_expect(!t->group && !t->id, "as large as readers take it to be, and empty");
	cr_expect_eq(t->k.size, sizeof(*t));
	cr_expect_null(k8s_cache_first(c, 0, "g"));
	cr_expect_null(k8s_cache_next(c, 0, &t->k));
	cr_expect_eq(k8s_cache_unreadable(c), 1);
	put_unreadable(c, "a", "u1", "6", false);
	put_unreadable(c, "a", "u1", "3", false);
	cr_expect_eq(seen.changed, 1, "the same and an older version say nothing new");
	put_event(c, make("a", "u1", 7, 1, "g", "i"));
	cr_expect_eq(k8s_cache_unreadable(c), 0);
	cr_expect_not_null(k8s_cache_first(c, 0, "g"));
	put_unreadable(c, "b", "u2", "8", true);
	cr_expect(k8s_cache_find(c, "b")->deleting);
	k8s_cache_relist_begin(c);
	put_unreadable(c, "b", "u2", "8", true);
	k8s_cache_relist_end(c);
	cr_expect_str_eq(k8s_cache_find(c, "b")->name, "b");
	cr_expect_null(k8s_cache_find(c, "a"), "absent from a list is absent");
	k8s_cache_remove(c, "b", "u2");
	cr_expect_null(k8s_cache_find(c, "b"));
	cr_expect_eq(k8s_cache_unreadable(c), 0);
	cr_expect_eq(k8s_cache_put_unreadable(c, "", "u", "1", false, &err), -1);
	k8s_cache_free(c);
}

Test(k8s_cache, the_last_good_version_stays_while_it_cannot_have_changed)
{
	static const struct {
		const char *uid;
		bool immutable, deleting, stays;
	} table[] = {
		{"u1", true, false, true},
		{"u1", false, false, false},
		{"u2", true, false, false},
		{"u1", true, true, false},
	};

	for (size_t i = 0; i < ARRAY_LEN(table); i++) {
		struct k8s_cache *c = k8s_cache_new(&type);
		struct kobj *k = make("a", "u1", 5, 1, "g", "i");

		k->immutable = table[i].immutable;
		put_event(c, k);
		k8s_cache_relist_begin(c);
		put_unreadable(c, "a", table[i].uid, "6", table[i].deleting);
		k8s_cache_relist_end(c);
		cr_assert_not_null(k8s_cache_find(c, "a"), "%zu", i);
		cr_expect_eq(k8s_cache_find(c, "a")->unreadable, !table[i].stays, "%zu", i);
		k8s_cache_free(c);
	}
}

static unsigned pseudo(unsigned *state)
{
	*state = *state * 1664525u + 1013904223u;
	return *state >> 8;
}

Test(k8s_cache, random_changes_keep_index_and_count_right)
{
	struct k8s_cache *c = k8s_cache_new(&type);
	unsigned rnd = 7, live[200] = {0};
	char name[16], uid[16], group[16];

	for (unsigned step = 1; step < 20000; step++) {
		unsigned i = pseudo(&rnd) % 200, g = pseudo(&rnd) % 5;

		snprintf(name, sizeof(name), "n%u", i);
		snprintf(uid, sizeof(uid), "u%u", i);
		snprintf(group, sizeof(group), "g%u", g);
		if (pseudo(&rnd) % 3) {
			put_event(c, make(name, uid, step, i / 10, g ? group : NULL, name));
			live[i] = g + 1;
		} else {
			k8s_cache_remove(c, name, uid);
			live[i] = 0;
		}
	}
	for (unsigned g = 1; g < 5; g++) {
		size_t want = 0, have = 0;
		int64_t last = -1;

		snprintf(group, sizeof(group), "g%u", g);
		for (unsigned i = 0; i < 200; i++)
			want += live[i] == g + 1;
		for (const struct kobj *o = k8s_cache_first(c, 0, group); o;
			o = k8s_cache_next(c, 0, o)) {
			cr_expect_geq(o->created_s, last);
			last = o->created_s;
			have++;
		}
		cr_expect_eq(have, want);
	}
	for (unsigned i = 0; i < 200; i++) {
		snprintf(name, sizeof(name), "n%u", i);
		cr_expect_eq(k8s_cache_find(c, name) != NULL, live[i] != 0);
		cr_expect_eq(k8s_cache_first(c, 1, name) != NULL, live[i] != 0);
	}
	k8s_cache_free(c);
}

#ifndef __SANITIZE_ADDRESS__
Test(k8s_cache, ten_thousand_objects_cost_little_beside_themselves)
{
	enum { N = 10000 };
	struct kobj **all = xcalloc(N, sizeof(*all));
	struct k8s_cache *c = k8s_cache_new(&type);
	size_t before, used;
	char name[32];

	for (int i = 0; i < N; i++) {
		snprintf(name, sizeof(name), "machine-%d", i);
		/* one index with a single value for all, one with a value for each */
		all[i] = make(name, name, (unsigned)i + 1, i * 7919 % N, "owner", name);
	}
	before = mallinfo2().uordblks + mallinfo2().hblkhd;
	for (int i = 0; i < N; i++)
		put_event(c, all[i]);
	used = mallinfo2().uordblks + mallinfo2().hblkhd - before;
	cr_log_info("%zu bytes per object with two indexes", used / N);
	cr_expect_leq(used / N, 104);
	k8s_cache_free(c);
	free(all);
}
#endif
