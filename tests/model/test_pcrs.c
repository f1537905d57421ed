/* SPDX-License-Identifier: MIT */
#include "config.h"

#include <criterion/criterion.h>
#include <stdio.h>

#include "pcr/pcr_events.h"
#include "tec/base/json.h"
#include "tec/model/pcrs.h"

#define REF "quay.io/x/fedora-coreos@sha256:" MOK_LIST

static struct json_object *entry_of(const char *kernel)
{
	struct pcr_events e = PCR_EVENTS_INIT;
	struct json_object *o;

	add_pcr4(&e, SHIM_A, GRUB_A, kernel);
	add_pcr14(&e);
	o = model_pcrs_entry_json(REF, 1800000000000000, &e);
	pcr_events_fini(&e);
	return o;
}

/* {} with this entry under "coreos", as text; the caller frees. */
static char *text_with(struct json_object *take_entry)
{
	struct err err = ERR_INIT;
	char *text = model_pcrs_edit("{}", 2, "coreos", take_entry, &err);

	cr_assert(text, "%s", err.text);
	return text;
}

Test(model_pcrs, an_entry_is_read_as_written)
{
	cleanup_free char *text = text_with(entry_of(KERNEL_A));
	cleanup_model_pcrs struct model_pcrs *m = model_pcrs_parse(text, strlen(text));
	const struct model_pcrs_entry *e = model_pcrs_find(m, "coreos");

	cr_assert_null(m->why);
	cr_assert(e && !e->why, "%s", e ? e->why : "");
	cr_assert_str_eq(e->reference, REF);
	cr_assert_str_eq(value_of(&e->events, 4), PCR4_A);
	cr_assert_str_eq(value_of(&e->events, 14), PCR14);
	cr_assert(strstr(
		text, "{\"coreos\":{\"first_seen\":\"2027-01-15T08:00:00.000000Z\",\"pcrs\":["));
	cr_assert_null(model_pcrs_find(m, "coreo"));
	cr_assert_null(model_pcrs_find(m, ""));
}

Test(model_pcrs, the_empty_text_has_no_entry)
{
	cleanup_model_pcrs struct model_pcrs *m = model_pcrs_parse("{}", 2);

	cr_assert(!m->why && m->n == 0);
	cr_assert_null(model_pcrs_find(m, "coreos"));
}

Test(model_pcrs, a_text_that_is_no_object_is_refused_whole)
{
	static const char *const bad[] = {"", "[]", "null", "\"{}\"", "{", "{}{}", "{\"a\":1,}",
		"{\"a\":{},\"a\":{}}", "{\"a\":'b'}", "{\"a\":[[[[[[[[1]]]]]]]]}"};

	for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
		struct err err = ERR_INIT;
		cleanup_model_pcrs struct model_pcrs *m = model_pcrs_parse(bad[i], strlen(bad[i]));

		cr_assert(m->why && m->n == 0, "%s", bad[i]);
		cr_assert_null(model_pcrs_edit(bad[i], strlen(bad[i]), "a", NULL, &err));
		cr_assert_eq(err.kind, ERR_INVALID);
	}
}

Test(model_pcrs, there_is_an_end_to_entries)
{
	cleanup_strbuf struct strbuf text = STRBUF_INIT;

	strbuf_addc(&text, '{');
	for (int i = 0; i < 4097; i++)
		strbuf_addf(&text, "%s\"n%d\":0", i ? "," : "", i);
	strbuf_addc(&text, '}');
	cleanup_model_pcrs struct model_pcrs *m = model_pcrs_parse(text.data, text.len);
	cr_assert(m->why && strstr(m->why, "more than 4096"));
}

/* A change to a good entry, and what is said. value NULL: the member is taken out. */
static const struct {
	const char *member, *value, *says;
} spoiled[] = {
	{"reference", NULL, "reference is missing"},
	{"reference", "7", "reference is missing"},
	{"reference", "null", "reference is missing"},
	{"first_seen", NULL, "first_seen is missing"},
	{"first_seen", "\"yesterday\"", "first_seen is missing"},
	{"first_seen", "1800000000", "first_seen is missing"},
	{"pcrs", NULL, "list of PCRs is missing"},
	{"pcrs", "{}", "list of PCRs is missing"},
	{"pcrs", "[]", "list of PCRs is missing"},
	{"pcrs",
		"[{\"id\":14,\"value\":\"" PCR14
		"\",\"events\":[{\"name\":\"EV_IPL\",\"pcr\":14,\"hash\":\"" MOK_LIST
		"\",\"id\":\"Pcr14MokList\"}]}]",
		"does not match its events"},
};

Test(model_pcrs, a_bad_entry_says_why_and_spoils_no_other)
{
	for (size_t i = 0; i < ARRAY_LEN(spoiled); i++) {
		struct json_object *o = entry_of(KERNEL_A);
		struct err err = ERR_INIT;

		json_object_object_del(o, spoiled[i].member);
		if (spoiled[i].value)
			json_add(o, spoiled[i].member, json_tokener_parse(spoiled[i].value));
		cleanup_free char *one = text_with(o);
		cleanup_free char *two =
			model_pcrs_edit(one, strlen(one), "a", entry_of(KERNEL_B), &err);
		cleanup_model_pcrs struct model_pcrs *m = model_pcrs_parse(two, strlen(two));
		const struct model_pcrs_entry *bad = model_pcrs_find(m, "coreos");

		cr_assert(bad && bad->why && strstr(bad->why, spoiled[i].says), "%s %s: %s",
			spoiled[i].member, spoiled[i].value, bad ? bad->why : "");
		cr_assert_eq(bad->events.n, 0);
		cr_assert_null(model_pcrs_find(m, "a")->why);
	}
}

Test(model_pcrs, an_entry_that_is_no_object_is_bad)
{
	static const char text[] = "{\"a\":null,\"b\":1,\"c\":[],\"d\":\"x\",\"A b\":1,\"../e\":1}";
	cleanup_model_pcrs struct model_pcrs *m = model_pcrs_parse(text, sizeof(text) - 1);

	cr_assert_eq(m->n, 4); /* the last two cannot be names of objects */
	for (size_t i = 0; i < m->n; i++)
		cr_assert(m->v[i].why && m->v[i].reference[0] == '\0');
}

Test(model_pcrs, both_registers_are_needed)
{
	for (int i = 0; i < 2; i++) {
		struct pcr_events e = PCR_EVENTS_INIT;

		if (i == 0)
			add_pcr4(&e, SHIM_A, GRUB_A, KERNEL_A);
		else
			add_pcr14(&e);
		cleanup_free char *text = text_with(model_pcrs_entry_json(REF, 1, &e));
		cleanup_model_pcrs struct model_pcrs *m = model_pcrs_parse(text, strlen(text));
		cr_assert(strstr(m->v[0].why, i == 0 ? "no value of PCR 14" : "no value of PCR 4"));
		pcr_events_fini(&e);
	}
}

Test(model_pcrs, editing_leaves_the_others_as_they_are)
{
	static const char before[] = "{\"z\":{\"extra\":[1,2]},\"coreos\":1,\"b\":\"c/d\"}";
	struct err err = ERR_INIT;
	cleanup_free char *set = model_pcrs_edit(
		before, sizeof(before) - 1, "coreos", json_tokener_parse("{}"), &err);
	cleanup_free char *gone = model_pcrs_edit(set, strlen(set), "coreos", NULL, &err);
	cleanup_free char *same = model_pcrs_edit(gone, strlen(gone), "coreos", NULL, &err);

	cr_assert_str_eq(set, "{\"z\":{\"extra\":[1,2]},\"coreos\":{},\"b\":\"c/d\"}");
	cr_assert_str_eq(gone, "{\"z\":{\"extra\":[1,2]},\"b\":\"c/d\"}");
	cr_assert_str_eq(same, gone);
}
