/* SPDX-License-Identifier: MIT */
#include "config.h"

#include "tec/kobj/condition.h"

#include <criterion/criterion.h>

#include "tec/base/bytes.h"
#include "tec/base/json.h"
#include "tec/base/utf8.h"

struct thing {
	struct kobj k;
	int before;
	struct kobj_cond cond[3];
};
static const char *const types[] = {"Ready", "KeyReady", "Bound"};

static struct thing *extract(const char *conditions)
{
	cleanup_strbuf struct strbuf b = STRBUF_INIT;
	cleanup_kobj_pack struct kobj_pack p = KOBJ_PACK_INIT;
	cleanup_json struct json_object *o = NULL;
	struct err err = ERR_INIT;
	struct thing t = {0};

	strbuf_addf(&b,
		"{\"metadata\":{\"name\":\"a\",\"uid\":\"u\",\"resourceVersion\":\"1\"},\"status\":{\"conditions\":%s}}",
		conditions);
	o = json_parse(strbuf_str(&b), b.len, &json_limits_object, &err);
	cr_assert_not_null(o, "%s", err.text);
	cr_assert_eq(kobj_meta_read(&p, o, &t.k, &err), 0);
	kobj_cond_read(&p, o, types, 3, t.cond, offsetof(struct thing, cond));
	return (struct thing *)kobj_pack_finish(&p, &t, sizeof(t));
}

static void want_three(struct kobj_cond_want w[3])
{
	kobj_cond_want(&w[0], "Ready", KOBJ_COND_TRUE, "AllGood", "all %d of %s", 3, "them");
	kobj_cond_want(&w[1], "KeyReady", KOBJ_COND_UNKNOWN, "Waiting", "%s", "");
	kobj_cond_want(&w[2], "Bound", KOBJ_COND_ABSENT, NULL, "%s", "");
}

#define HAVE                                                                                            \
	"[{\"type\":\"Other\",\"status\":\"True\"},"                                                    \
	"{\"type\":\"Ready\",\"status\":\"True\",\"reason\":\"AllGood\",\"message\":\"all 3 of them\"," \
	"\"observedGeneration\":5,\"lastTransitionTime\":\"2026-01-02T03:04:05Z\"},"                    \
	"{\"type\":\"KeyReady\",\"status\":\"Unknown\",\"reason\":\"Waiting\",\"message\":\"\","        \
	"\"observedGeneration\":5,\"lastTransitionTime\":\"2026-01-02T03:04:06Z\"}]"

Test(kobj_condition, what_we_wrote_reads_back_as_the_same)
{
	struct thing *t = extract(HAVE);
	struct kobj_cond_want w[3];

	want_three(w);
	cr_expect_eq(t->cond[0].status, KOBJ_COND_TRUE);
	cr_expect_str_eq(t->cond[0].reason, "AllGood");
	cr_expect_eq(t->cond[0].transition_s, 1767323045);
	cr_expect_eq(t->cond[2].status, KOBJ_COND_ABSENT);
	cr_expect_null(t->cond[2].reason);
	cr_expect(kobj_cond_same(t->cond, w, 3, 5));
	kobj_unref(&t->k);
}

Test(kobj_condition, each_difference_counts)
{
	struct thing *t = extract(HAVE);
	struct kobj_cond_want w[3];

	want_three(w);
	cr_expect_not(kobj_cond_same(t->cond, w, 3, 6), "generation");
	kobj_cond_want(&w[0], "Ready", KOBJ_COND_FALSE, "AllGood", "all 3 of them");
	cr_expect_not(kobj_cond_same(t->cond, w, 3, 5), "status");
	kobj_cond_want(&w[0], "Ready", KOBJ_COND_TRUE, "Other", "all 3 of them");
	cr_expect_not(kobj_cond_same(t->cond, w, 3, 5), "reason");
	kobj_cond_want(&w[0], "Ready", KOBJ_COND_TRUE, "AllGood", "all 4 of them");
	cr_expect_not(kobj_cond_same(t->cond, w, 3, 5), "message");
	kobj_cond_want(&w[0], "Ready", KOBJ_COND_ABSENT, NULL, "%s", "");
	cr_expect_not(kobj_cond_same(t->cond, w, 3, 5), "should be absent");
	want_three(w);
	kobj_cond_want(&w[2], "Bound", KOBJ_COND_FALSE, "No", "no");
	cr_expect_not(kobj_cond_same(t->cond, w, 3, 5), "should be there");
	kobj_unref(&t->k);
}

Test(kobj_condition, transition_time_moves_only_with_the_status)
{
	struct thing *t = extract(HAVE);
	struct kobj_cond_want w[3];
	cleanup_json struct json_object *a = NULL, *fresh = NULL;
	cleanup_free char *text = NULL, *fresh_text = NULL;

	want_three(w);
	kobj_cond_want(&w[0], "Ready", KOBJ_COND_TRUE, "Still", "another text");
	kobj_cond_want(&w[1], "KeyReady", KOBJ_COND_FALSE, "KeyLost", "gone");
	a = kobj_cond_json(t->cond, w, 3, 9, 1767330000);
	text = json_text(a);
	cr_expect_str_eq(text,
		"[{\"type\":\"Ready\",\"status\":\"True\",\"observedGeneration\":9,\"lastTransitionTime\":\"2026-01-02T03:04:05Z\","
		"\"reason\":\"Still\",\"message\":\"another text\"},"
		"{\"type\":\"KeyReady\",\"status\":\"False\",\"observedGeneration\":9,\"lastTransitionTime\":\"2026-01-02T05:00:00Z\","
		"\"reason\":\"KeyLost\",\"message\":\"gone\"}]");
	fresh = kobj_cond_json(NULL, w, 1, 1, 1767330000);
	fresh_text = json_text(fresh);
	cr_expect(strstr(fresh_text, "2026-01-02T05:00:00Z"));
	kobj_unref(&t->k);
}

Test(kobj_condition, malformed_conditions_are_absent_ones)
{
	static const char *const bad[] = {"null", "{}", "[]", "[7,null,\"Ready\"]",
		"[{\"type\":\"Ready\"}]", "[{\"type\":\"Ready\",\"status\":\"Maybe\"}]",
		"[{\"type\":\"Ready\",\"status\":true}]"};

	for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
		struct thing *t = extract(bad[i]);

		cr_expect_eq(t->cond[0].status, KOBJ_COND_ABSENT, "%s", bad[i]);
		kobj_unref(&t->k);
	}
}

Test(kobj_condition, a_long_message_is_cut_between_characters)
{
	struct kobj_cond_want w;
	char text[1600];

	for (size_t shift = 0; shift < 4; shift++) {
		memset(text, 'a', sizeof(text));
		for (size_t i = shift; i + 3 < sizeof(text); i += 3)
			memcpy(text + i, "\xe2\x82\xac", 3);
		text[sizeof(text) - 2 - (sizeof(text) - 2 - shift) % 3] = '\0';
		kobj_cond_want(&w, "Ready", KOBJ_COND_TRUE, "R", "%s", text);
		cr_expect(utf8_valid(w.message, strlen(w.message)), "shift %zu", shift);
		cr_expect_gt(strlen(w.message), sizeof(w.message) - 5);
	}
	kobj_cond_want(&w, "Ready", KOBJ_COND_TRUE, "R", "bad \xff\xc3 byte");
	cr_expect_str_eq(w.message, "bad ?? byte");
}

Test(kobj_condition, all_of_them_fit_one_object)
{
	/* 12 conditions and the rest of a cluster object stay below KOBJ_PACK_MAX */
	cr_expect_geq(KOBJ_PACK_MAX, 12 + 3 + 20);
}
