/* SPDX-License-Identifier: MIT */
#include "config.h"

#include <criterion/criterion.h>

#include "model/entry.h"

static struct json_object *pcrs(const char *kernel)
{
	struct pcr_events e = PCR_EVENTS_INIT;
	struct json_object *o;

	add_pcr4(&e, SHIM_A, GRUB_A, kernel);
	add_pcr14(&e);
	o = pcr_events_json(&e);
	pcr_events_fini(&e);
	return o;
}

static struct json_object *element(const char *when, bool secure_boot)
{
	struct json_object *o = json_add_str(json_obj(), "when", when);

	json_add_bool(o, "secure_boot", secure_boot);
	return json_add(o, "pcrs", pcrs(KERNEL_A));
}

Test(model_variants, what_is_written_is_read)
{
	cleanup_json struct json_object *made = NULL,
					*list = json_push(
						json_push(json_arr(), element("once", true)),
						element("Secure Boot off", false));
	cleanup_model_variants struct model_variants v, again;

	model_variants_read(list, &v);
	cr_assert_eq(v.n, 2);
	cr_assert_str_eq(v.v[0].when, "once");
	cr_assert(v.v[0].secure_boot && !v.v[1].secure_boot);
	cr_assert_str_eq(value_of(&v.v[0].events, 4), PCR4_A);
	cr_assert_str_eq(value_of(&v.v[0].events, 14), PCR14);
	made = model_variants_json(&v);
	cr_assert(json_object_equal(made, list));
	model_variants_read(made, &again);
	cr_assert_eq(again.n, 2);
}

static const char *const hostile[] = {
	"null",
	"7",
	"[]",
	"{}",
	"{\"when\":\"x\",\"secure_boot\":true}",
	"{\"when\":\"x\",\"secure_boot\":true,\"pcrs\":[]}",
	"{\"when\":\"x\",\"secure_boot\":true,\"pcrs\":7}",
	"{\"when\":\"x\",\"secure_boot\":true,\"pcrs\":[{\"id\":4,\"value\":\"" PCR4_A
	"\",\"events\":[]}]}",
};

/* One that would do, with a member taken out or of another type. */
static struct json_object *without(int i)
{
	struct json_object *o = element("x", true), *seven;
	struct pcr_events e = PCR_EVENTS_INIT;

	switch (i) {
	case 0:
		json_object_object_del(o, "when");
		break;
	case 1:
		json_add_int(o, "when", 7);
		break;
	case 2:
		json_object_object_del(o, "secure_boot");
		break;
	case 3:
		json_add_str(o, "secure_boot", "true");
		break;
	case 4: /* PCR 4 alone */
		json_object_array_del_idx(json_get_arr(o, "pcrs"), 1, 1);
		break;
	case 5: /* PCR 14 alone */
		json_object_array_del_idx(json_get_arr(o, "pcrs"), 0, 1);
		break;
	default: /* one register more */
		add_pcr7(&e, SBAT_42);
		seven = pcr_events_json(&e);
		json_push(json_get_arr(o, "pcrs"),
			json_object_get(json_object_array_get_idx(seven, 0)));
		json_object_put(seven);
		pcr_events_fini(&e);
	}
	return o;
}

Test(model_variants, a_wrong_element_does_not_count_and_spoils_no_other)
{
	for (size_t i = 0; i < ARRAY_LEN(hostile) + 7; i++) {
		cleanup_json struct json_object *list = json_push(
			json_push(json_arr(), i < ARRAY_LEN(hostile)
						      ? json_tokener_parse(hostile[i])
						      : without((int)(i - ARRAY_LEN(hostile)))),
			element("good", true));
		cleanup_model_variants struct model_variants v;

		model_variants_read(list, &v);
		cr_assert_eq(v.n, 1, "%zu", i);
		cr_assert_str_eq(v.v[0].when, "good");
	}
}

Test(model_variants, there_is_an_end_to_them)
{
	cleanup_json struct json_object *list = json_arr(), *text = json_tokener_parse("\"x\"");
	cleanup_model_variants struct model_variants v;

	for (int i = 0; i < 40; i++)
		json_push(list, element("x", true));
	model_variants_read(list, &v);
	cr_assert_eq(v.n, MODEL_VARIANTS_MAX);
	model_variants_fini(&v);
	model_variants_read(text, &v);
	cr_assert_eq(v.n, 0);
	model_variants_read(NULL, &v);
	cr_assert_eq(v.n, 0);
}

/* In the whole text: an entry stays good whatever its variants are. */
Test(model_variants, an_entry_has_them_and_stays_good)
{
	static const char *const lists[] = {"[]", "7", "null", "[7]"};

	for (size_t i = 0; i <= ARRAY_LEN(lists); i++) {
		cleanup_model_pcrs struct model_pcrs *m = entry_with("variants",
			i < ARRAY_LEN(lists) ? json_tokener_parse(lists[i])
					     : json_push(json_arr(), element("x", false)));

		cr_assert(m->n == 1 && !m->v[0].why, "%zu: %s", i, m->why ? m->why : m->v[0].why);
		cr_assert_eq(m->v[0].variants.n, i < ARRAY_LEN(lists) ? 0u : 1u);
	}
}

/* Only a chain without shim leaves PCR 14 zero, and it has to say so. */
Test(model_variants, no_shim_is_believed_of_a_chain_without_one_alone)
{
	static const char zero[] =
		"0000000000000000000000000000000000000000000000000000000000000000";
	static const struct {
		enum pcr_event_id pcr4;
		bool list, no_shim, good;
	} cases[] = {{PCR4_UKI, false, true, true}, {PCR4_GRUB, false, true, true},
		{PCR4_UKI, true, false, true}, {PCR4_SHIM, true, false, true},
		{PCR4_SHIM, false, true, false}, {PCR4_UKI, true, true, false},
		{PCR4_UKI, false, false, false}};

	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		cleanup_pcr_events struct pcr_events e = PCR_EVENTS_INIT;
		struct err err = ERR_INIT;

		add(&e, cases[i].pcr4, SHIM_A);
		if (cases[i].list)
			add(&e, PCR14_MOK_LIST, MOK_LIST);
		if (cases[i].no_shim)
			add(&e, PCR14_NO_SHIM, zero);
		cr_expect_eq(model_variant_check(&e, &err) == 0, cases[i].good, "case %zu: %s", i,
			err.text);
	}
}
