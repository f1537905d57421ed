/* SPDX-License-Identifier: MIT */
#include "config.h"

#include <criterion/criterion.h>
#include <stdio.h>

#include "model/entry.h"

#define VARIABLES MOK_LIST

static struct json_object *element(const char *name)
{
	struct pcr_events e = PCR_EVENTS_INIT;
	struct json_object *o = json_obj();

	add_pcr7(&e, SBAT_42);
	json_add_str(o, "name", name);
	json_add_str(o, "variables", VARIABLES);
	json_add(o, "pcrs", pcr_events_json(&e));
	pcr_events_fini(&e);
	return o;
}

static void read_list(const char *text, struct model_platforms *out)
{
	cleanup_json struct json_object *o = json_tokener_parse(text);

	model_platforms_read(o, out);
}

Test(model_platforms, what_is_written_is_read)
{
	cleanup_json struct json_object *list = json_push(json_push(json_arr(), element("ovmf")),
		json_tokener_parse("{\"name\":\"old.box\",\"variables\":\"" VARIABLES
				   "\",\"why\":\"Secure Boot is off\",\"more\":1}"));
	cleanup_model_platforms struct model_platforms p, again;
	const struct model_platform *m;

	model_platforms_read(list, &p);
	cr_assert_eq(p.n, 2);
	m = model_platforms_find(&p, "ovmf");
	cr_assert(m && !m->bad && !m->why);
	cr_assert_str_eq(value_of(&m->events, 7), PCR7_A);
	cr_assert_str_eq(hex_of(m->variables), VARIABLES);
	m = model_platforms_find(&p, "old.box");
	cr_assert(m && !m->bad && m->events.n == 0);
	cr_assert_str_eq(m->why, "Secure Boot is off");
	cr_assert_null(model_platforms_find(&p, "ovm"));

	cleanup_json struct json_object *made = model_platforms_json(&p);
	model_platforms_read(made, &again);
	cr_assert(again.n == 2 && !again.v[0].bad && !again.v[1].bad);
	cr_assert_str_eq(value_of(&again.v[0].events, 7), PCR7_A);
}

/* What a register with MOK_LIST alone shows. */
#define ONE "d1b8e5034415dbced88499aa71159b8ec16b0366f3ebc289ca33bee0f3ee88bf"

static const struct {
	const char *element, *says; /* says NULL: it is not there at all */
} hostile[] = {
	{"null", NULL},
	{"7", NULL},
	{"[]", NULL},
	{"{}", NULL},
	{"{\"name\":7}", NULL},
	{"{\"name\":\"\"}", NULL},
	{"{\"name\":\"../a\"}", NULL},
	{"{\"name\":\"A\"}", NULL},
	{"{\"name\":\"a\"}", "variables is missing"},
	{"{\"name\":\"a\",\"variables\":7,\"why\":\"x\"}", "variables is missing"},
	{"{\"name\":\"a\",\"variables\":\"\",\"why\":\"x\"}", "variables is missing"},
	{"{\"name\":\"a\",\"variables\":\"00\",\"why\":\"x\"}", "variables is missing"},
	{"{\"name\":\"a\",\"variables\":\"" VARIABLES "00\",\"why\":\"x\"}",
		"variables is missing"},
	{"{\"name\":\"a\",\"variables\":\"" VARIABLES "\"}", "neither values"},
	{"{\"name\":\"a\",\"variables\":\"" VARIABLES "\",\"why\":7}", "neither values"},
	{"{\"name\":\"a\",\"variables\":\"" VARIABLES "\",\"why\":\"x\",\"pcrs\":[]}",
		"values and a reason"},
	{"{\"name\":\"a\",\"variables\":\"" VARIABLES "\",\"pcrs\":[]}", "list of PCRs is missing"},
	{"{\"name\":\"a\",\"variables\":\"" VARIABLES "\",\"pcrs\":7}", "list of PCRs is missing"},
	{"{\"name\":\"a\",\"variables\":\"" VARIABLES "\",\"pcrs\":[{\"id\":11,\"value\":\"" ONE
	 "\",\"events\":[{\"name\":\"EV_IPL\",\"pcr\":11,\"hash\":\"" MOK_LIST
	 "\",\"id\":\"Pcr11Linux\"}]}]}",
		"a value of PCR 11"},
	{"{\"name\":\"a\",\"variables\":\"" VARIABLES "\",\"pcrs\":[{\"id\":4,\"value\":\"" ONE
	 "\",\"events\":[{\"name\":\"EV_IPL\",\"pcr\":4,\"hash\":\"" MOK_LIST
	 "\",\"id\":\"Pcr4Shim\"}]}]}",
		"a boot loader in PCR 4 without PCR 14"},
	{"{\"name\":\"a\",\"variables\":\"" VARIABLES "\",\"pcrs\":[{\"id\":7,\"value\":\"" PCR7_A
	 "\",\"events\":[{\"name\":\"EV_SEPARATOR\",\"pcr\":7,\"hash\":\"" SEPARATOR
	 "\",\"id\":\"Pcr7Separator\"}]}]}",
		"does not match its events"},
};

Test(model_platforms, a_wrong_element_says_why_and_spoils_no_other)
{
	for (size_t i = 0; i < ARRAY_LEN(hostile); i++) {
		cleanup_json struct json_object *list =
			json_push(json_push(json_arr(), json_tokener_parse(hostile[i].element)),
				element("good"));
		cleanup_model_platforms struct model_platforms p;
		const struct model_platform *m;

		model_platforms_read(list, &p);
		m = model_platforms_find(&p, "good");
		cr_assert(m && !m->bad && !m->why, "%s", hostile[i].element);
		m = model_platforms_find(&p, "a");
		cr_assert_eq(p.n, hostile[i].says ? 2u : 1u, "%s", hostile[i].element);
		if (!hostile[i].says)
			continue;
		cr_assert(m->bad && m->events.n == 0, "%s", hostile[i].element);
		cr_assert(strstr(m->why, hostile[i].says), "%s: %s", hostile[i].element, m->why);
		cleanup_json struct json_object *made = model_platforms_json(&p);
		cr_assert_eq(json_object_array_length(made), 1);
	}
}

Test(model_platforms, a_name_that_is_there_twice_does_not_count)
{
	cleanup_json struct json_object *list = json_push(
		json_push(json_push(json_arr(), element("a")), element("a")), element("a"));
	cleanup_model_platforms struct model_platforms p;

	model_platforms_read(list, &p);
	cr_assert(p.n == 1 && p.v[0].bad && p.v[0].events.n == 0);
	cr_assert(strstr(p.v[0].why, "twice"));
}

Test(model_platforms, there_is_an_end_to_them_and_to_reasons)
{
	cleanup_strbuf struct strbuf text = STRBUF_INIT;
	cleanup_model_platforms struct model_platforms p, none;

	for (int i = 0; i < 40; i++)
		strbuf_addf(&text,
			"%s{\"name\":\"p%d\",\"variables\":\"" VARIABLES "\",\"why\":\"%0500d\"}",
			i ? "," : "[", i, i);
	strbuf_addc(&text, ']');
	read_list(strbuf_str(&text), &p);
	cr_assert_eq(p.n, MODEL_PLATFORMS_MAX);
	cr_assert_eq(strlen(p.v[0].why), 300);
	cr_assert_null(model_platforms_find(&p, "p8"));
	read_list("{\"name\":\"a\"}", &none);
	cr_assert_eq(none.n, 0);
	model_platforms_read(NULL, &none);
	cr_assert_eq(none.n, 0);
}

/* In the whole text: an entry stays good whatever its platforms are. */
Test(model_platforms, an_entry_has_them_and_stays_good)
{
	static const char *const lists[] = {"[]", "7", "null", "[7]", "[{\"name\":\"a\"}]"};

	for (size_t i = 0; i <= ARRAY_LEN(lists); i++) {
		cleanup_model_pcrs struct model_pcrs *m = entry_with(
			"platforms", i < ARRAY_LEN(lists) ? json_tokener_parse(lists[i])
							  : json_push(json_arr(), element("ovmf")));

		cr_assert(m->n == 1 && !m->v[0].why, "%zu: %s", i, m->why ? m->why : m->v[0].why);
		cr_assert_eq(m->v[0].platforms.n, i < 4 ? 0u : 1u);
	}
}
