/* SPDX-License-Identifier: MIT */
#include "config.h"

#include <criterion/criterion.h>
#include <stdio.h>
#include <string.h>

#include "fixture.h"
#include "tec/base/json.h"
#include "tec/base/mem.h"

static const uint8_t extra[SHA256_LEN] = {1, 2, 3};

static enum rats_flaw read_flaw(struct json_object *o)
{
	enum rats_flaw flaw = RATS_FLAW_NONE;
	struct rats_evidence e;
	struct err err = ERR_INIT;

	if (rats_evidence_read(o, &e, &flaw, &err) == 0)
		return RATS_FLAW_NONE;
	cr_expect_eq(err.kind, ERR_INVALID);
	cr_expect_neq(flaw, RATS_FLAW_NONE);
	return flaw;
}

Test(rats_evidence, reads_what_a_tpm_made_and_writes_it_again)
{
	struct fixture_quote q;
	enum rats_flaw flaw;
	struct rats_evidence e;
	struct err err = ERR_INIT;
	cleanup_strbuf struct strbuf text = STRBUF_INIT;
	cleanup_json struct json_object *o = NULL, *again = NULL;

	fixture_quote(extra, &q);
	o = fixture_evidence(&q);
	cr_assert_eq(rats_evidence_read(o, &e, &flaw, &err), 0, "%s", err.text);
	cr_assert_eq(e.tee, RATS_TEE_TPM);
	cr_assert_eq(e.ak.bits, 2048);
	cr_assert_eq(memcmp(e.pcrs, q.pcrs, sizeof(q.pcrs)), 0);
	cr_assert_eq(memcmp(e.quote.extra_data, extra, sizeof(extra)), 0);
	cr_assert_eq(rats_evidence_signed(&e, &err), 0, "%s", err.text);
	rats_evidence_write(&e, &text);
	again = json_parse(text.data, text.len, &json_limits_public, &err);
	cr_assert(json_object_equal(o, again), "%s", strbuf_str(&text));
}

/* One that a TPM really signs: a selection of other registers in the place of 4 and 14. */
Test(rats_evidence, refuses_every_selection_but_one_of_all_24)
{
	static const struct {
		uint8_t bytes[64];
		size_t len;
	} t[] = {
		{{0, 0, 0, 0}, 4},
		{{0, 0, 0, 3, 0, 11, 3, 0x0f, 0, 1, 0, 11, 3, 0xe0, 0x3f, 0x80, 0, 11, 3, 0, 0x80,
			 0xff},
			22},
		{{0, 0, 0, 2, 0, 11, 3, 0xff, 0xff, 0xff, 0, 11, 3, 0, 0, 0}, 16},
		{{0, 0, 0, 2, 0, 11, 3, 0xff, 0xff, 0xff, 0, 4, 3, 0xff, 0xff, 0xff}, 16},
		{{0, 0, 0, 1, 0, 12, 3, 0xff, 0xff, 0xff}, 10},
		{{0, 0, 0, 1, 0, 4, 3, 0xff, 0xff, 0xff}, 10},
		{{0, 0, 0, 1, 0, 11, 3, 0xff, 0xff, 0xfe}, 10},
		{{0, 0, 0, 1, 0, 11, 3, 0x1f, 0, 0}, 10},
		{{0, 0, 0, 1, 0, 11, 2, 0xff, 0xff}, 9},
		{{0, 0, 0, 1, 0, 11, 4, 0xff, 0xff, 0xff, 0}, 11},
		{{0, 0, 0, 1, 0, 11, 4, 0xff, 0xff, 0xff, 0xff}, 11},
		{{0, 0, 0, 1, 0, 11, 0}, 7},
		{{0xff, 0xff, 0xff, 0xff, 0, 11, 3, 0xff, 0xff, 0xff}, 10},
	};

	for (size_t i = 0; i < ARRAY_LEN(t); i++) {
		cleanup_json struct json_object *o = NULL;
		struct fixture_quote q;

		fixture_quote(extra, &q);
		fixture_quote_select(&q, t[i].bytes, t[i].len);
		o = fixture_evidence(&q);
		cr_expect_eq(read_flaw(o), RATS_FLAW_QUOTE, "%zu", i);
	}
}

Test(rats_evidence, refuses_a_quote_with_any_byte_more_or_less)
{
	for (int d = -1; d <= 1; d += 2) {
		cleanup_json struct json_object *o = NULL, *s = NULL;
		struct fixture_quote q;

		fixture_quote(extra, &q);
		q.attest_len += (size_t)d;
		fixture_sign(&q);
		o = fixture_evidence(&q);
		cr_expect_eq(read_flaw(o), RATS_FLAW_QUOTE, "attest %d", d);
		fixture_quote(extra, &q);
		q.sig_len += (size_t)d;
		s = fixture_evidence(&q);
		cr_expect_eq(read_flaw(s), RATS_FLAW_QUOTE, "signature %d", d);
	}
}

Test(rats_evidence, refuses_values_that_the_quote_does_not_cover)
{
	cleanup_json struct json_object *o = NULL;
	struct fixture_quote q;

	fixture_quote(extra, &q);
	q.pcrs[4][0] ^= 1;
	o = fixture_evidence(&q);
	cr_assert_eq(read_flaw(o), RATS_FLAW_PCRS);
}

/* Nothing that no TPM can have made is decoded into its place. */
Test(rats_evidence, refuses_what_is_longer_than_any_tpm_makes_it)
{
	static const char *const members[] = {"message", "signature"};
	static const size_t sizes[] = {RATS_QUOTE_MAX, RATS_SIGNATURE_MAX};
	uint8_t bytes[RATS_SIGNATURE_MAX + 2] = {0};
	struct fixture_quote q;

	fixture_quote(extra, &q);
	for (size_t i = 0; i < 2; i++)
		for (size_t more = 0; more < 3; more++) {
			cleanup_json struct json_object *o = fixture_evidence(&q);
			cleanup_strbuf struct strbuf b64 = STRBUF_INIT;

			bytes_to_b64(&b64, bytes, sizes[i] + more);
			json_add_str(json_get(o, "tpm_quote"), members[i], strbuf_str(&b64));
			cr_expect_eq(read_flaw(o), RATS_FLAW_QUOTE);
		}
}

/* A change of the quote that leaves it well-formed is for the signature to find. */
Test(rats_evidence, a_changed_quote_is_not_signed)
{
	cleanup_json struct json_object *o = NULL;
	struct fixture_quote q;
	struct rats_evidence e;
	enum rats_flaw flaw;
	struct err err = ERR_INIT;

	fixture_quote(extra, &q);
	q.attest[12] ^= 1; /* extraData */
	o = fixture_evidence(&q);
	cr_assert_eq(rats_evidence_read(o, &e, &flaw, &err), 0, "%s", err.text);
	cr_assert_eq(rats_evidence_signed(&e, &err), -1);
	cr_assert_eq(err.kind, ERR_DENIED);
}

static struct json_object *member(struct json_object *o, const char *path)
{
	struct json_object *v = json_get(o, path);

	cr_assert(v, "%s", path);
	return v;
}

Test(rats_evidence, refuses_each_member_missing_or_of_another_type)
{
	static const struct {
		const char *object, *name;
	} t[] = {{NULL, "ak_public"}, {NULL, "tpm_quote"}, {"tpm_quote", "signature"},
		{"tpm_quote", "message"}, {"tpm_quote", "pcrs"}};
	struct fixture_quote q;

	fixture_quote(extra, &q);
	for (size_t i = 0; i < ARRAY_LEN(t) * 3; i++) {
		cleanup_json struct json_object *o = fixture_evidence(&q);
		struct json_object *in = t[i / 3].object ? member(o, t[i / 3].object) : o;
		const char *name = t[i / 3].name;

		switch (i % 3) {
		case 0:
			json_object_object_del(in, name);
			break;
		case 1:
			json_add(in, name, json_object_new_int(7));
			break;
		case 2:
			json_add(in, name, NULL);
			break;
		}
		cr_expect_neq(read_flaw(o), RATS_FLAW_NONE, "%s, case %zu", name, i % 3);
	}
}

Test(rats_evidence, refuses_second_spellings)
{
	static const struct {
		const char *name;
		enum rats_flaw flaw;
	} t[] = {{"ak_public", RATS_FLAW_KEY}, {"tpm_quote/message", RATS_FLAW_QUOTE},
		{"tpm_quote/signature", RATS_FLAW_QUOTE}};
	static const char *const changes[] = {"%s\n", " %s", "%s=", "%sAAAA", "%.40s", "%.0s"};
	struct fixture_quote q;

	fixture_quote(extra, &q);
	for (size_t i = 0; i < ARRAY_LEN(t) * ARRAY_LEN(changes); i++) {
		size_t change = i % ARRAY_LEN(changes), which = i / ARRAY_LEN(changes);
		cleanup_json struct json_object *o = fixture_evidence(&q);
		struct json_object *v = member(o, t[which].name);
		char text[1024];

#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wformat-nonliteral"
		snprintf(text, sizeof(text), changes[change], json_object_get_string(v));
#pragma GCC diagnostic pop
		json_object_set_string(v, text);
		cr_expect_eq(read_flaw(o), t[which].flaw, "%s %zu", t[which].name, change);
	}
}

/* Policies compare the values as text, so they are written in lower case. */
Test(rats_evidence, upper_case_values_are_written_in_lower_case)
{
	cleanup_json struct json_object *o = NULL;
	cleanup_strbuf struct strbuf text = STRBUF_INIT;
	struct rats_evidence e;
	struct fixture_quote q;
	enum rats_flaw flaw;
	struct err err = ERR_INIT;

	fixture_quote(extra, &q);
	o = fixture_evidence(&q);
	json_object_array_put_idx(member(o, "tpm_quote/pcrs"), 10,
		json_object_new_string(
			"0A0a0A0a0A0a0A0a0A0a0A0a0A0a0A0a0A0a0A0a0A0a0A0a0A0a0A0a0A0a0A0a"));
	cr_assert_eq(rats_evidence_read(o, &e, &flaw, &err), 0, "%s", err.text);
	rats_evidence_write(&e, &text);
	cr_assert(strstr(strbuf_str(&text),
		",\"0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a\","));
}

Test(rats_evidence, refuses_lists_of_other_values)
{
	static const char *const values[] = {"", "00", "0404",
		"040404040404040404040404040404040404040404040404040404040404040G",
		"0404040404040404040404040404040404040404040404040404040404040404040404",
		"0A0A0A0A0A0A0A0A0A0A0A0A0A0A0A0A0A0A0A0A0A0A0A0A0A0A0A0A0A0A0A0A"};
	struct fixture_quote q;

	fixture_quote(extra, &q);
	for (size_t i = 0; i < ARRAY_LEN(values) + 3; i++) {
		cleanup_json struct json_object *o = fixture_evidence(&q);
		struct json_object *a = member(o, "tpm_quote/pcrs");

		if (i < ARRAY_LEN(values))
			json_object_array_put_idx(a, 4, json_object_new_string(values[i]));
		else if (i == ARRAY_LEN(values))
			json_object_array_del_idx(a, 23, 1);
		else if (i == ARRAY_LEN(values) + 1)
			json_push_str(a, values[0]);
		else
			json_object_array_put_idx(a, 0, NULL);
		cr_expect_eq(read_flaw(o), RATS_FLAW_PCRS, "%zu", i);
	}
}

Test(rats_evidence, knows_a_sample_by_its_members)
{
	static const struct {
		const char *text;
		enum rats_flaw flaw;
	} t[] = {
		{"{\"svn\":\"1\",\"report_data\":\"AA==\"}", RATS_FLAW_NONE},
		{"{\"svn\":1,\"report_data\":\"AA==\"}", RATS_FLAW_TEE},
		{"{\"svn\":\"1\"}", RATS_FLAW_TEE},
		{"{\"svn\":\"1\",\"report_data\":\"AA==\",\"x\":1}", RATS_FLAW_NONE},
		{"{\"svn\":\"1\",\"x\":1}", RATS_FLAW_TEE},
		{"{\"svn\":\"1\",\"report_data\":\"AA==\",\"ak_public\":\"\"}", RATS_FLAW_SYNTAX},
		{"{}", RATS_FLAW_TEE},
		{"[]", RATS_FLAW_TEE},
		{"\"tpm\"", RATS_FLAW_TEE},
		{"{\"quote\":\"\",\"cc_eventlog\":\"\"}", RATS_FLAW_TEE},
	};

	for (size_t i = 0; i < ARRAY_LEN(t); i++) {
		struct err err = ERR_INIT;
		cleanup_json struct json_object *o =
			json_parse(t[i].text, strlen(t[i].text), &json_limits_public, &err);

		cr_expect_eq(read_flaw(o), t[i].flaw, "%s", t[i].text);
	}
}
