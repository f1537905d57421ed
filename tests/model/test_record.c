/* SPDX-License-Identifier: MIT */
#include "config.h"

#include <criterion/criterion.h>
#include <string.h>

#include "tec/base/mem.h"
#include "tec/model/record.h"

#define ID   "00000000-0000-4000-8000-00000000000a"
#define PATH "default/" ID "/root"

static struct model_record *r;

static void down(void)
{
	model_record_free(r);
}

TestSuite(model_record, .fini = down);

Test(model_record, what_is_added_is_found)
{
	cleanup_strbuf struct strbuf text = STRBUF_INIT;

	model_record_add(&text, MODEL_RECORD_VALUE, "ak.one", 1800000002);
	model_record_add(&text, MODEL_RECORD_RESOURCE, PATH, 1800000001);
	model_record_add(&text, MODEL_RECORD_ID, ID, 1800000003);
	model_record_add(&text, MODEL_RECORD_DROPPED, "-", 5);
	model_record_add(&text, MODEL_RECORD_VALUE, "boot.00.ff", 7);
	r = model_record_parse(strbuf_str(&text));
	cr_assert_eq(r->n, 5);
	cr_assert_eq(r->newest_s, 1800000003);
	cr_assert_eq(model_record_find(r, MODEL_RECORD_VALUE, "ak.one")->at_s, 1800000002);
	cr_assert_eq(model_record_find(r, MODEL_RECORD_RESOURCE, PATH)->at_s, 1800000001);
	cr_assert_eq(model_record_find(r, MODEL_RECORD_ID, ID)->at_s, 1800000003);
	cr_assert_eq(model_record_find(r, MODEL_RECORD_DROPPED, "-")->at_s, 5);
	cr_assert(model_record_find(r, MODEL_RECORD_VALUE, "boot.00.ff"));
	cr_assert_null(model_record_find(r, MODEL_RECORD_VALUE, ID));
	cr_assert_null(model_record_find(r, MODEL_RECORD_VALUE, "ak.on"));
	cr_assert_null(model_record_find(NULL, MODEL_RECORD_ID, ID));
}

Test(model_record, of_one_name_the_latest_time_counts)
{
	r = model_record_parse("5 value ak.a\n9 value ak.a\n7 value ak.a\n");
	cr_assert_eq(r->n, 1);
	cr_assert_eq(model_record_find(r, MODEL_RECORD_VALUE, "ak.a")->at_s, 9);
}

/* The ConfigMap may have been edited: of a line that is none of ours nothing follows. */
Test(model_record, other_lines_are_left_out)
{
	static const char *const lines[] = {"", " ", "5", "5 value", "5 value ", "5  value ak.a",
		"5 value ak.a b", "-5 value ak.a", "+5 value ak.a", " 5 value ak.a",
		"5x value ak.a", "99999999999999999999 value ak.a", "100000000000 value ak.a",
		"5 values ak.a", "5 value 0.operator.generation", "5 value tpm_pcr4",
		"5 value trusted_aks", "5 value ak.a/b", "5 value ak.\xc3\xa4", "5 value boot.a\tb",
		"5 resource ak.a", "5 resource default/" ID "/key", "5 resource other/" ID "/root",
		"5 resource default/" ID, "5 resource /default/" ID "/root", "5 resource x/" PATH,
		"5 id machine", "5 id " ID "0", "5 dropped x", "5 resource " ID, "0x5 value ak.a"};

	for (size_t i = 0; i < ARRAY_LEN(lines); i++) {
		cleanup_free char *text = xasprintf("3 value ak.z\n%s\n4 id " ID, lines[i]);

		r = model_record_parse(text);
		cr_assert_eq(r->n, 2, "%s", lines[i]);
		cr_assert_eq(r->newest_s, 4);
		model_record_free(steal_ptr(&r));
	}
}

Test(model_record, is_bounded)
{
	cleanup_strbuf struct strbuf text = STRBUF_INIT;

	for (unsigned i = 0; i < MODEL_RECORD_IDS_MAX + 100; i++)
		strbuf_addf(&text, "%u value ak.%u\n", i, i);
	strbuf_adds(&text, "1 value ak.");
	for (unsigned i = 0; i < 400; i++)
		strbuf_addc(&text, 'a');
	r = model_record_parse(strbuf_str(&text));
	cr_assert_eq(r->n, MODEL_RECORD_IDS_MAX);
	cr_assert(model_record_find(r, MODEL_RECORD_VALUE, "ak.4095"));
	cr_assert_null(model_record_find(r, MODEL_RECORD_VALUE, "ak.4096"));
}

Test(model_record, names_of_the_configmaps)
{
	char name[sizeof(MODEL_RECORD_REVOKED) + 10];

	model_record_name(63, name);
	cr_assert_str_eq(name, "tec-revoked-63");
	cr_assert(model_record_is_name(name));
	cr_assert(model_record_is_name("tec-deleted-ids"));
	cr_assert(!model_record_is_name("tec-trustees"));
	cr_assert(!model_record_is_name("tec-deleted-ids-2"));
}
