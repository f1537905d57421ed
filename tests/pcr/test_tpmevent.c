/* SPDX-License-Identifier: MIT */
#include "config.h"

#include <criterion/criterion.h>
#include <stdio.h>

#include "pcr/pcr_events.h"
#include "tec/base/json.h"

/* What the Rust tool writes. */
#define EXAMPLE                                                                                    \
	"{\"pcrs\":[{\"id\":14,\"value\":\"" PCR14 "\",\"events\":["                               \
	"{\"name\":\"EV_IPL\",\"pcr\":14,\"hash\":\"" MOK_LIST "\",\"id\":\"Pcr14MokList\"},"      \
	"{\"name\":\"EV_IPL\",\"pcr\":14,\"hash\":\"" MOK_LIST_X "\",\"id\":\"Pcr14MokListX\"},"   \
	"{\"name\":\"EV_IPL\",\"pcr\":14,\"hash\":\"" MOK_TRUSTED                                  \
	"\",\"id\":\"Pcr14MokListTrusted\"}]}]}"

static int parse(const char *text, struct pcr_events *out, struct err *err)
{
	return pcr_label_parse(text, strlen(text), out, err);
}

Test(pcr_tpmevent, published_values_replay)
{
	cleanup_pcr_events struct pcr_events a = PCR_EVENTS_INIT, b = PCR_EVENTS_INIT,
					     c = PCR_EVENTS_INIT;

	add_pcr4(&a, SHIM_A, GRUB_A, KERNEL_A);
	add_pcr7(&a, SBAT_42);
	add_pcr14(&a);
	cr_assert_str_eq(value_of(&a, 4), PCR4_A);
	cr_assert_str_eq(value_of(&a, 7), PCR7_A);
	cr_assert_str_eq(value_of(&a, 14), PCR14);
	cr_assert_str_eq(value_of(&a, 11), "");
	add_pcr4(&b, SHIM_B, GRUB_B, KERNEL_B);
	cr_assert_str_eq(value_of(&b, 4), PCR4_B);
	add_pcr4(&c, SHIM_C, GRUB_C, KERNEL_C);
	add_pcr7(&c, SBAT_44);
	cr_assert_str_eq(value_of(&c, 4), PCR4_C);
	cr_assert_str_eq(value_of(&c, 7), PCR7_C);
}

Test(pcr_tpmevent, the_known_digests_are_those_of_their_data)
{
	static const char call[] = "Calling EFI Application from Boot Option";
	uint8_t digest[SHA256_LEN];

	bytes_sha256(call, sizeof(call) - 1, digest);
	cr_assert_str_eq(hex_of(digest), EFI_CALL);
	bytes_sha256("\0\0\0", 4, digest);
	cr_assert_str_eq(hex_of(digest), SEPARATOR);
	bytes_sha256("\1", 1, digest);
	cr_assert_str_eq(hex_of(digest), MOK_TRUSTED);
}

Test(pcr_tpmevent, the_example_of_the_format_is_read)
{
	cleanup_pcr_events struct pcr_events e = PCR_EVENTS_INIT;
	struct err err = ERR_INIT;

	cr_assert_eq(parse(EXAMPLE, &e, &err), 0, "%s", err.text);
	cr_assert_eq(e.n, 3);
	cr_assert_eq(e.v[2].id, PCR14_MOK_LIST_TRUSTED);
	cr_assert_eq(e.v[2].type, PCR_EV_IPL);
	cr_assert_str_eq(value_of(&e, 14), PCR14);
}

Test(pcr_tpmevent, text_and_events_are_the_same_both_ways)
{
	cleanup_pcr_events struct pcr_events e = PCR_EVENTS_INIT, again = PCR_EVENTS_INIT;
	cleanup_json struct json_object *o = NULL;
	cleanup_free char *text = NULL;
	struct err err = ERR_INIT;

	add_pcr14(&e);
	o = json_add(json_obj(), "pcrs", pcr_events_json(&e));
	text = json_text(o);
	cr_assert_str_eq(text, EXAMPLE);
	add_pcr4(&e, SHIM_A, GRUB_A, KERNEL_A);
	add(&e, PCR4_VMLINUZ, KERNEL_A); /* measured twice */
	cleanup_json struct json_object *pcrs = pcr_events_json(&e);
	cr_assert_eq(pcr_events_from_json(pcrs, &again, &err), 0, "%s", err.text);
	cr_assert_eq(again.n, e.n);
	for (size_t i = 0; i < e.n; i++)
		cr_assert(pcr_event_same(&e.v[i], &again.v[i]));
	cr_assert_eq(json_get_int(json_object_array_get_idx(pcrs, 0), "id", 0), 14);
}

Test(pcr_tpmevent, unknown_members_are_ignored)
{
	cleanup_pcr_events struct pcr_events e = PCR_EVENTS_INIT;
	struct err err = ERR_INIT;

	cleanup_json struct json_object *o = json_tokener_parse(EXAMPLE);
	struct json_object *pcr = json_object_array_get_idx(json_get_arr(o, "pcrs"), 0);
	json_add_str(pcr, "comment", "x");
	json_add_str(json_object_array_get_idx(json_get_arr(pcr, "events"), 0), "data", "x");
	cr_assert_eq(pcr_events_from_json(json_get_arr(o, "pcrs"), &e, &err), 0, "%s", err.text);
}

#define EVENT(name, pcr, hash, id)                                                                 \
	"{\"name\":" name ",\"pcr\":" pcr ",\"hash\":" hash ",\"id\":" id "}"
#define ONE(id, value, events)                                                                     \
	"{\"pcrs\":[{\"id\":" id ",\"value\":" value ",\"events\":" events "}]}"
#define Q(s)  "\"" s "\""
#define ZERO  "0000000000000000000000000000000000000000000000000000000000000000"
#define SEP4  EVENT(Q("EV_SEPARATOR"), "4", Q(SEPARATOR), Q("Pcr4Separator"))
#define SEP4V Q("9157caf64087ddaaf7a0f68c65dc4ecb04a0d26c6e8e8efc0e4d4de7a3b9d5ff")

static const struct {
	const char *text, *says;
} hostile[] = {
	{"", NULL},
	{"null", NULL},
	{"[]", "list of PCRs is missing"},
	{"{}", "list of PCRs is missing"},
	{"{\"pcrs\":{}}", "list of PCRs is missing"},
	{"{\"pcrs\":[]}", "list of PCRs is missing"},
	{"{\"pcrs\":[null]}", "id is missing"},
	{"{\"pcrs\":[1]}", "id is missing"},
	{"{\"pcrs\":[{\"parts\":[]}]}", "id is missing"}, /* the older schema */
	{ONE("\"4\"", SEP4V, "[" SEP4 "]"), "id is missing"},
	{ONE("-1", SEP4V, "[" SEP4 "]"), "id is missing"},
	{ONE("24", SEP4V, "[" SEP4 "]"), "id is missing"},
	{ONE("4294967300", SEP4V, "[" SEP4 "]"), "id is missing"},
	{ONE("4", SEP4V, "null"), "has no events"},
	{ONE("4", SEP4V, "[]"), "has no events"},
	{ONE("4", SEP4V, "[[]]"), "unknown id"},
	{ONE("4", SEP4V, "[" EVENT(Q("EV_SEPARATOR"), "4", Q(SEPARATOR), "4") "]"), "unknown id"},
	{ONE("4", SEP4V, "[" EVENT(Q("EV_SEPARATOR"), "4", Q(SEPARATOR), Q("pcr4separator")) "]"),
		"unknown id"},
	{ONE("4", SEP4V,
		 "[" EVENT(Q("EV_SEPARATOR"), "4", Q(SEPARATOR), Q("PcrRootNodeEvent")) "]"),
		"unknown id"},
	{ONE("4", SEP4V,
		 "[" EVENT(Q("EV_SEPARATOR"), "4", Q(SEPARATOR), Q("PcrLastNodeEvent")) "]"),
		"unknown id"},
	{ONE("4", SEP4V, "[" EVENT(Q("EV_TAG"), "4", Q(SEPARATOR), Q("Pcr4Separator")) "]"),
		"unknown name"},
	{ONE("4", SEP4V, "[" EVENT(Q("EV_NO_ACTION"), "4", Q(SEPARATOR), Q("Pcr4Separator")) "]"),
		"a wrong name or hash"},
	{ONE("14", Q(ZERO), "[" EVENT(Q("EV_IPL"), "14", Q(ZERO), Q("Pcr14NoShim")) "]"),
		"a wrong name or hash"},
	{ONE("14", Q(ZERO), "[" EVENT(Q("EV_NO_ACTION"), "14", Q(SEPARATOR), Q("Pcr14NoShim")) "]"),
		"a wrong name or hash"},
	{ONE("14", Q(ZERO), "[]"), "PCR 14 has no events"},
	{ONE("14", Q(SEPARATOR), "[" EVENT(Q("EV_NO_ACTION"), "14", Q(ZERO), Q("Pcr14NoShim")) "]"),
		"does not match its events"},
	{ONE("4", SEP4V, "[" EVENT("7", "4", Q(SEPARATOR), Q("Pcr4Separator")) "]"),
		"unknown name"},
	{ONE("4", SEP4V, "[" EVENT(Q("EV_SEPARATOR"), "7", Q(SEPARATOR), Q("Pcr4Separator")) "]"),
		"does not belong to PCR 4"},
	{ONE("4", SEP4V,
		 "[" EVENT(Q("EV_SEPARATOR"), Q("4"), Q(SEPARATOR), Q("Pcr4Separator")) "]"),
		"does not belong to PCR 4"},
	{ONE("7", SEP4V, "[" EVENT(Q("EV_SEPARATOR"), "7", Q(SEPARATOR), Q("Pcr4Separator")) "]"),
		"does not belong to PCR 7"},
	{ONE("4", SEP4V, "[" EVENT(Q("EV_SEPARATOR"), "4", Q("00"), Q("Pcr4Separator")) "]"),
		"hash of event Pcr4Separator"},
	{ONE("4", SEP4V, "[" EVENT(Q("EV_SEPARATOR"), "4", Q(""), Q("Pcr4Separator")) "]"),
		"hash of event Pcr4Separator"},
	{ONE("4", SEP4V,
		 "[" EVENT(Q("EV_SEPARATOR"), "4",
			 Q("DF3F619804A92FDB4057192DC43DD748EA778ADC52BC498CE80524C014B81119"),
			 Q("Pcr4Separator")) "]"),
		"hash of event Pcr4Separator"},
	{ONE("4", SEP4V, "[" EVENT(Q("EV_SEPARATOR"), "4", "null", Q("Pcr4Separator")) "]"),
		"hash of event Pcr4Separator"},
	{ONE("4", Q("00"), "[" SEP4 "]"), "value of PCR 4 is not a lower-case SHA-256"},
	{ONE("4", "4", "[" SEP4 "]"), "value of PCR 4 is not a lower-case SHA-256"},
	{ONE("4", SEP4V, "[" SEP4 "]"), "does not match its events"},
	{ONE("4", Q(SEPARATOR), "[" SEP4 "]"), "does not match its events"},
};

Test(pcr_tpmevent, that_there_is_no_shim_is_said_and_extends_nothing)
{
	cleanup_pcr_events struct pcr_events e = PCR_EVENTS_INIT;
	cleanup_json struct json_object *again = NULL;
	struct err err = ERR_INIT;

	cr_assert_eq(
		parse(ONE("14", Q(ZERO),
			      "[" EVENT(Q("EV_NO_ACTION"), "14", Q(ZERO), Q("Pcr14NoShim")) "]"),
			&e, &err),
		0, "%s", err.text);
	cr_assert_str_eq(value_of(&e, 14), ZERO);
	cr_assert_str_eq(value_of(&e, 4), "");
	again = pcr_events_json(&e);
	cr_assert_str_eq(json_get_str(json_object_array_get_idx(again, 0), "value"), ZERO);
}

Test(pcr_tpmevent, what_cannot_be_trusted_is_refused)
{
	for (size_t i = 0; i < ARRAY_LEN(hostile); i++) {
		cleanup_pcr_events struct pcr_events e = PCR_EVENTS_INIT;
		struct err err = ERR_INIT;

		cr_assert_eq(parse(hostile[i].text, &e, &err), -1, "%s", hostile[i].text);
		cr_assert_eq(err.kind, ERR_INVALID, "%s", hostile[i].text);
		cr_assert(!hostile[i].says || strstr(err.text, hostile[i].says), "%s: %s",
			hostile[i].text, err.text);
		cr_assert_eq(e.n, 0);
	}
}

Test(pcr_tpmevent, a_register_twice_is_refused)
{
	cleanup_pcr_events struct pcr_events e = PCR_EVENTS_INIT, out = PCR_EVENTS_INIT;
	struct err err = ERR_INIT;

	add_pcr14(&e);
	cleanup_json struct json_object *a = pcr_events_json(&e);
	json_push(a, pcr_events_one_json(&e, 14));
	cr_assert_eq(pcr_events_from_json(a, &out, &err), -1);
	cr_assert(strstr(err.text, "PCR 14 is listed twice"), "%s", err.text);
}

Test(pcr_tpmevent, one_wrong_digit_of_an_event_is_seen)
{
	cleanup_free char *text = xstrdup(EXAMPLE);
	cleanup_pcr_events struct pcr_events e = PCR_EVENTS_INIT;
	struct err err = ERR_INIT;
	char *at = strstr(text, MOK_LIST_X);

	at[63] = at[63] == '0' ? '1' : '0';
	cr_assert_eq(parse(text, &e, &err), -1);
	cr_assert(strstr(err.text, "does not match its events"), "%s", err.text);
}

Test(pcr_tpmevent, there_is_an_end_to_events)
{
	cleanup_pcr_events struct pcr_events e = PCR_EVENTS_INIT, out = PCR_EVENTS_INIT;
	uint8_t digest[SHA256_LEN] = {0};
	struct err err = ERR_INIT;

	for (int i = 0; i < PCR_EVENTS_MAX; i++)
		cr_assert(pcr_events_push(&e, PCR4_GRUB, PCR_EV_IPL, 4, digest));
	cr_assert(!pcr_events_push(&e, PCR4_GRUB, PCR_EV_IPL, 4, digest));
	cleanup_json struct json_object *full = pcr_events_json(&e);
	cr_assert_eq(pcr_events_from_json(full, &out, &err), 0, "%s", err.text);
	struct json_object *events = json_get_arr(json_object_array_get_idx(full, 0), "events");
	json_push(events, json_copy(json_object_array_get_idx(events, 0)));
	cr_assert_eq(pcr_events_from_json(full, &out, &err), -1);
	cr_assert(strstr(err.text, "more than 256 events"), "%s", err.text);
}

Test(pcr_tpmevent, names_go_both_ways)
{
	for (int i = 0; i < PCR_N_EVENT_IDS; i++)
		cr_assert_eq(pcr_event_id_parse(pcr_event_id_name((enum pcr_event_id)i)),
			(enum pcr_event_id)i);
	cr_assert_eq(pcr_event_id_parse("Pcr4"), PCR_N_EVENT_IDS);
	cr_assert_eq(pcr_event_groups(PCR4_SEPARATOR), 0);
	cr_assert_eq(pcr_event_groups(PCR7_SHIM_CERT), 12);
	cr_assert_eq(pcr_event_groups(PCR7_GRUB_MOK_LIST_CERT), 28);
}
