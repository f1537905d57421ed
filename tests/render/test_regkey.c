/* SPDX-License-Identifier: MIT */
#include "config.h"

#include "tec/render/regkey.h"

#include <criterion/criterion.h>
#include <stdio.h>
#include <string.h>

#include "tec/base/json.h"
#include "tec/base/mem.h"

#define DAY 86400
#define NOW 1800000000
#define NONE                                                                                       \
	{                                                                                          \
		false, 0, NULL                                                                     \
	}

Test(render_regkey, what_follows)
{
	static const struct {
		bool at_key;
		int64_t ttl_s;
		struct render_regkey current, previous;
		enum render_regkey_do what;
		int64_t again_s; /* from now; 0: never */
	} t[] = {
		{true, DAY, NONE, NONE, RENDER_REGKEY_MAKE, 0},
		{false, DAY, NONE, NONE, RENDER_REGKEY_NOTHING, 0},
		{true, DAY, {true, NOW, "a"}, NONE, RENDER_REGKEY_NOTHING, 30 * DAY},
		{true, DAY, {true, NOW - 30 * DAY + 1, "a"}, NONE, RENDER_REGKEY_NOTHING, 1},
		{true, DAY, {true, NOW - 30 * DAY, "a"}, NONE, RENDER_REGKEY_COPY, 0},
		{true, DAY, {true, NOW - 30 * DAY, "a"}, {true, NOW, "a"}, RENDER_REGKEY_DROP, 0},
		{true, DAY, NONE, {true, NOW, "a"}, RENDER_REGKEY_MAKE, 0},
		{true, DAY, {true, NOW, "b"}, {true, NOW, "a"}, RENDER_REGKEY_NOTHING, 3 * DAY},
		{true, DAY, {true, NOW - 3 * DAY, "b"}, {true, NOW - 4 * DAY, "a"},
			RENDER_REGKEY_DROP_PREVIOUS, 0},
		/* how long it took to make the new one does not count against the old one */
		{true, DAY, {true, NOW - DAY, "b"}, {true, NOW - 9 * DAY, "a"},
			RENDER_REGKEY_NOTHING, 2 * DAY},
		/* an old previous goes before the next one is made */
		{true, DAY, {true, NOW - 30 * DAY, "b"}, {true, NOW - 31 * DAY, "a"},
			RENDER_REGKEY_DROP_PREVIOUS, 0},
		/* a clock that went back: the copy is not needed */
		{true, DAY, {true, NOW, "a"}, {true, NOW, "a"}, RENDER_REGKEY_DROP_PREVIOUS,
			30 * DAY},
		/* pendingTTL: 0 is a day, long ones 30 of them, short ones 500 epochs at most */
		{true, 0, {true, NOW, "a"}, NONE, RENDER_REGKEY_NOTHING, 30 * DAY},
		{true, 10 * DAY, {true, NOW, "a"}, NONE, RENDER_REGKEY_NOTHING, 300 * DAY},
		{true, 60, {true, NOW, "a"}, NONE, RENDER_REGKEY_NOTHING, 500 * 60},
		{true, 1, {true, NOW, "a"}, NONE, RENDER_REGKEY_NOTHING, 500},
		/* switched off: nodes are on their way */
		{false, DAY, {true, NOW - 30 * DAY, "a"}, NONE, RENDER_REGKEY_NOTHING, 3 * DAY},
		{false, DAY, {true, NOW - 33 * DAY, "a"}, NONE, RENDER_REGKEY_DROP, 0},
		{false, DAY, {true, NOW, "b"}, {true, NOW, "a"}, RENDER_REGKEY_NOTHING, 3 * DAY},
		{false, DAY, {true, NOW - 30 * DAY, "a"}, {true, NOW, "a"},
			RENDER_REGKEY_DROP_PREVIOUS, 3 * DAY},
		{false, DAY, NONE, {true, NOW, "a"}, RENDER_REGKEY_DROP_PREVIOUS, 0},
	};

	for (size_t i = 0; i < ARRAY_LEN(t); i++) {
		struct render_regkey_plan p;

		render_regkey_plan(
			NOW, t[i].at_key, t[i].ttl_s * 1000, &t[i].current, &t[i].previous, &p);
		cr_assert_eq(p.what, t[i].what, "%zu: %d", i, p.what);
		cr_assert_eq(p.again_s, t[i].again_s ? NOW + t[i].again_s : INT64_MAX, "%zu: %lld",
			i, (long long)p.again_s);
	}
}

struct keys {
	struct render_regkey current, previous;
	char text[2][24];
	unsigned n;
};

static void act(struct keys *k, enum render_regkey_do what, int64_t now_s)
{
	switch (what) {
	case RENDER_REGKEY_MAKE:
		snprintf(k->text[0], sizeof(k->text[0]), "%u", k->n++);
		k->current = (struct render_regkey){true, now_s, k->text[0]};
		break;
	case RENDER_REGKEY_COPY:
		memcpy(k->text[1], k->text[0], sizeof(k->text[0]));
		k->previous = (struct render_regkey){true, now_s, k->text[1]};
		break;
	case RENDER_REGKEY_DROP:
		k->current.there = false;
		break;
	case RENDER_REGKEY_DROP_PREVIOUS:
		k->previous.there = false;
		break;
	case RENDER_REGKEY_NOTHING:
		break;
	}
}

static bool knows(const struct keys *k, const char *key)
{
	return (k->current.there && str_eq(k->current.content, key)) ||
	       (k->previous.there && str_eq(k->previous.content, key));
}

/*
 * Over a year, with an operator that is away for a random time after each act: an id that was
 * handed out counts as long as it lives, and what was not due is not done.
 */
Test(render_regkey, no_id_ends_early_whenever_the_operator_is_away)
{
	static const int64_t lives[] = {60, 3600, DAY, 20 * DAY};

	for (size_t i = 0; i < ARRAY_LEN(lives); i++) {
		for (unsigned seed = 1; seed <= 50; seed++) {
			struct keys k = {.n = 0};
			int64_t step = lives[i] / 4, now_s = NOW, back_s = 0;
			char handed[24] = "";
			int64_t handed_s = 0;
			unsigned r = seed;

			for (int n = 0; n < 8000; n++, now_s += step) {
				struct render_regkey_plan p;

				if (now_s >= back_s) {
					render_regkey_plan(now_s, true, lives[i] * 1000, &k.current,
						&k.previous, &p);
					act(&k, p.what, now_s);
					r = r * 1103515245 + 12345;
					if (p.what != RENDER_REGKEY_NOTHING && (r >> 16) % 3 == 0)
						back_s = now_s + (int64_t)((r >> 18) % 40) * step;
				}
				if (handed[0] && now_s - handed_s <= lives[i])
					cr_assert(knows(&k, handed), "life %lld seed %u",
						(long long)lives[i], seed);
				if (k.current.there && now_s - handed_s > lives[i]) {
					snprintf(handed, sizeof(handed), "%s", k.current.content);
					handed_s = now_s;
				}
			}
			cr_assert_gt(k.n, 2);
		}
	}
}

Test(render_regkey, every_state_settles)
{
	static const int64_t ages[] = {0, 2 * DAY, 4 * DAY, 40 * DAY};

	for (unsigned bits = 0; bits < 16; bits++) {
		for (unsigned a = 0; a < 16; a++) {
			struct keys k = {.n = 2, .text = {"0", "0"}};
			unsigned acts = 0;

			if (bits & 8)
				memcpy(k.text[1], "1", 2);
			k.current = (struct render_regkey){bits & 1, NOW - ages[a & 3], k.text[0]};
			k.previous =
				(struct render_regkey){bits & 2, NOW - ages[a >> 2], k.text[1]};
			for (;;) {
				struct render_regkey_plan p;

				render_regkey_plan(
					NOW, bits & 4, DAY * 1000, &k.current, &k.previous, &p);
				if (p.what == RENDER_REGKEY_NOTHING)
					break;
				act(&k, p.what, NOW);
				cr_assert_lt(++acts, 6, "state %u ages %u", bits, a);
			}
			if (bits & 4)
				cr_assert(k.current.there);
		}
	}
}

/* Whatever there is, nothing is left after two acts, and the one that may be copied goes last. */
Test(render_regkey, everything_handed_out_can_be_ended)
{
	struct render_regkey there = {.there = true}, gone = {.there = false};

	cr_assert_eq(render_regkey_end(&there, &there), RENDER_REGKEY_DROP_PREVIOUS);
	cr_assert_eq(render_regkey_end(&gone, &there), RENDER_REGKEY_DROP_PREVIOUS);
	cr_assert_eq(render_regkey_end(&there, &gone), RENDER_REGKEY_DROP);
	cr_assert_eq(render_regkey_end(&gone, &gone), RENDER_REGKEY_NOTHING);
}

Test(render_regkey, the_secret)
{
	struct model_cluster c = {.obj = {.name = "tec", .uid = "u-1"}};
	cleanup_secret struct secret *key = secret_new_copy("0123456789abcdef0123456789abcdef", 32);
	cleanup_secret struct secret *text =
		render_regkey_secret(&c, "ns", RENDER_REGKEY_PREVIOUS, key);
	struct err err = ERR_INIT;
	cleanup_json struct json_object *o = json_parse(
		(const char *)secret_peek(text), secret_len(text), &json_limits_object, &err);

	cr_assert(o, "%s", err.text);
	cr_assert_str_eq(json_get_str(o, "metadata/name"), RENDER_REGKEY_PREVIOUS);
	cr_assert_str_eq(json_get_str(o, "type"), "Opaque");
	cr_assert(json_get_bool(o, "immutable", false));
	cr_assert_eq(json_object_object_length(json_get_obj(o, "data")), 1);
	cr_assert_str_eq(
		json_get_str(o, "data/key"), "MDEyMzQ1Njc4OWFiY2RlZjAxMjM0NTY3ODlhYmNkZWY=");
	cr_assert_str_eq(json_get_str(json_object_array_get_idx(
					      json_get_arr(o, "metadata/ownerReferences"), 0),
				 "uid"),
		"u-1");
}
