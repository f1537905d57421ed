/* SPDX-License-Identifier: MIT */
#include "config.h"

#include "report_testing.h"
#include "tec/base/bytes.h"
#include "tec/model/pcrs.h"
#include "tec/report/lists.h"
#include "tec/report/why.h"

#define HEX "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"
#define EVENT(uid, time, note)                                                                     \
	EVENT_OF(uid, time, note, "\"reportingController\":\"tec-operator\",")
#define EVENT_OF(uid, time, note, from)                                                            \
	"{" META("e" time, "e") "," from "\"type\":\"Warning\",\"reason\":\"AttestationRefused\"," \
				"\"eventTime\":\"2026-01-02T03:" time                              \
				".000000Z\",\"regarding\":{\"uid\":\"" uid "\"},\"note\":\"" note  \
				"\"}"
#define MACHINE                                                                                         \
	"\"machine\":[{\"metadata\":{\"name\":\"m\",\"uid\":\"u1\",\"resourceVersion\":\"1\","          \
	"\"annotations\":{\"trusted-execution-clusters.io/bound-key\":\"u1 k1 " HEX                     \
	"\",\"trusted-execution-clusters.io/bound-at\":\"u1 2026-01-02T03:00:00Z\"}},"                  \
	"\"spec\":{\"id\":\"3f1c2b9a-6d0e-4c53-9a7b-2f8e5d104c6f\"},\"status\":{\"conditions\":[" COND( \
		"KeyReady", "True", "KeyMade", "Made.") "," COND("AttestationKeyBound", "True",         \
		"Bound", "Bound.") "," COND("Delivered", "True", "Delivered", "There.") "]}}]"
#define KEY                                                                                        \
	",\"key\":[{" META("ak-1",                                                                 \
		"k1") ",\"spec\":{\"uuid\":\"3f1c2b9a-6d0e-4c53-9a7b-2f8e5d104c6f\"},"             \
		      "\"status\":{\"conditions\":[" COND("Approved", "True", "MachineCreated",    \
			      "") "," COND("Delivered", "True", "Delivered", "There.") "]}}]"

static void why(const char *world, struct strbuf *out)
{
	cleanup_show_world struct report_world w;
	cleanup_json struct json_object *o = NULL;

	world_of(&w, world);
	o = report_why(&w, w.list[REPORT_MACHINE].v[0]);
	report_why_text(o, false, out);
}

Test(report_why, the_latest_refusal_is_compared_with_what_is_approved)
{
	/* One event extends PCR 4: its value is SHA-256(32 zero bytes, digest). */
	uint8_t digest[SHA256_LEN] = {7}, pcr[SHA256_LEN] = {0};
	char value[SHA256_HEX_LEN + 1];
	struct pcr_events e = PCR_EVENTS_INIT;
	cleanup_json struct json_object *map = json_obj();
	cleanup_free char *text = NULL;
	cleanup_strbuf struct strbuf world = STRBUF_INIT, out = STRBUF_INIT;
	cleanup_free char *expected = NULL;

	pcr_events_push(&e, PCR4_SHIM, PCR_EV_EFI_BOOT_SERVICES_APPLICATION, 4, digest);
	pcr_events_push(&e, PCR14_MOK_LIST, PCR_EV_IPL, 14, digest);
	json_add(map, "fcos", model_pcrs_entry_json("q/x@sha256:" HEX, 1, &e));
	pcr_events_fini(&e);
	pcr_extend(pcr, digest);
	bytes_to_hex(pcr, SHA256_LEN, value);
	text = json_text(map);
	strbuf_adds(&world, "{" MACHINE KEY ",\"map\":[{" META(
				    "image-pcrs", "p") ",\"data\":{\"image-pcrs.json\":");
	json_quote(&world, text, strlen(text));
	strbuf_addf(&world,
		"}}],\"event\":[" EVENT("u1", "02:05", "Older.") "," EVENT("k1", "03:05",
			"It is not approved: PCR 4 is " HEX ", expected %s; PCR 99 is " HEX
			" and PCR 14 is %s.") "," EVENT("other", "04:00", "Not its.") "]}",
		value, value);
	why(strbuf_str(&world), &out);
	cr_expect(strstr(strbuf_str(&out),
		"Machine m, id 3f1c2b9a-6d0e-4c53-9a7b-2f8e5d104c6f: something needed"));
	cr_expect(strstr(strbuf_str(&out), "  ok    key ak-1: Delivered: There.\n"), "%s",
		strbuf_str(&out));
	expected = xasprintf("  60s ago  AttestationRefused: It is not approved: PCR 4 is " HEX
			     ", expected %s; PCR 99 is " HEX " and PCR 14 is %s.\n"
			     "    PCR 4 shown     " HEX ", which no approved image has\n"
			     "    PCR 4 expected  %s for image fcos\n"
			     "    PCR 14 shown     %s, which belongs to image fcos\n"
			     "    PCR 14 expected  %s for image fcos\n"
			     "  2m ago  AttestationRefused: Older.\n",
		value, value, value, value, value);
	cr_expect(strstr(strbuf_str(&out), expected), "%s\n%s", strbuf_str(&out), expected);
	cr_expect_null(strstr(strbuf_str(&out), "Not its."));
}

Test(report_why, what_is_missing_is_named_with_what_to_do)
{
	cleanup_strbuf struct strbuf out = STRBUF_INIT;

	why("{\"machine\":[{" META("m", "u1") ",\"spec\":{\"id\":\"i\"}}],\"key\":[{" META(
		    "k", "k1") ",\"spec\":{\"uuid\":\"i\"},"
			       "\"status\":{\"conditions\":[" COND(
				       "Approved", "False", "ManualApproval", "Wait.") "]}}]}",
		&out);
	cr_expect_str_eq(strbuf_str(&out),
		"Machine m, id i: something needed for its disk key is missing\n"
		"  wait  disk key: the operator has not observed it yet\n"
		"        -> tecctl doctor\n"
		"  wait  attestation key: the operator has not observed it yet\n"
		"        -> tecctl doctor\n"
		"  no    another key, k: ManualApproval: Wait.\n"
		"        -> If the key belongs to the node: tecctl approve k. Otherwise: tecctl deny k\n"
		"  wait  delivery to Trustee: the operator has not observed it yet\n"
		"        -> tecctl doctor\n"
		"  no    cluster: no readable TrustedExecutionCluster\n"
		"        -> tecctl doctor\n"
		"  no    approved images: 0 of 0 in force\n"
		"        -> Without an approved image, every boot is refused: tecctl image approve\n"
		"\nNo refusal Event found; Events are kept for about an hour.\n");
}

Test(report_why, a_cluster_that_cannot_be_listed_says_why)
{
	cleanup_show_world struct report_world w;
	cleanup_strbuf struct strbuf out = STRBUF_INIT;
	cleanup_json struct json_object *o = NULL;

	world_of(&w, "{" MACHINE "}");
	report_world_problem(&w, REPORT_CLUSTER, "may not list them");
	o = report_why(&w, w.list[REPORT_MACHINE].v[0]);
	report_why_text(o, false, &out);
	cr_expect(strstr(strbuf_str(&out), "  no    cluster: may not list them\n"
					   "        -> tecctl doctor\n"),
		"%s", strbuf_str(&out));
}

Test(report_why, a_note_of_any_shape_is_only_shown)
{
	static const char *const notes[] = {"PCR ", "PCR 4", "PCR 4 is ", "PCR 4 is 12",
		"PCR x is " HEX, "PCR 99999999999999999999 is " HEX, "PCR PCR 4 is " HEX "0",
		"PCR 24 is " HEX, ""};

	for (size_t i = 0; i < ARRAY_LEN(notes); i++) {
		cleanup_strbuf struct strbuf world = STRBUF_INIT, out = STRBUF_INIT;

		strbuf_addf(&world, "{" MACHINE ",\"event\":[" EVENT("u1", "03:05", "%s") "]}",
			notes[i]);
		why(strbuf_str(&world), &out);
		cr_expect_null(strstr(strbuf_str(&out), "shown     "), "%s", notes[i]);
	}
}

/* Whoever may create Events makes them about any Machine. */
Test(report_why, what_others_say_is_claimed_and_drives_nothing_out)
{
	cleanup_strbuf struct strbuf world = STRBUF_INIT, out = STRBUF_INIT;
	const char *ours, *claimed;

	strbuf_adds(&world, "{" MACHINE ",\"event\":[" EVENT("u1", "01:05", "PCR 4 is " HEX));
	for (unsigned i = 0; i < 9; i++) {
		const char *from =
			i == 8   ? "\"reportingController\":\"x\\u202e\","
			: i == 7 ? "\"deprecatedSource\":{\"component\":\"tec-operator\"},"
				 : "";

		/* The time is in the name too. */
		strbuf_addf(&world, "," EVENT_OF("u1", "04:0%u", "PCR 4 is " HEX " too.", "%s"), i,
			from, i);
	}
	strbuf_adds(&world, "]}");
	why(strbuf_str(&world), &out);
	ours = strstr(
		strbuf_str(&out), " ago  AttestationRefused: PCR 4 is " HEX "\n    PCR 4 shown");
	claimed = strstr(strbuf_str(&out), "claimed by x\\u202e: AttestationRefused: ");
	cr_assert(ours && claimed && ours < claimed, "%s", strbuf_str(&out));
	cr_assert(strstr(claimed, "claimed by tec-operator: AttestationRefused: "), "%s", claimed);
	cr_assert(strstr(claimed, "claimed by nobody: AttestationRefused: "), "%s", claimed);
	cr_assert_null(strstr(claimed, "shown"), "only the operator's is compared");
}

/* The name of a condition is as foreign as its message. */
Test(report_why, no_text_of_an_object_is_an_order_to_the_terminal)
{
	struct report_world w;
	cleanup_strbuf struct strbuf out = STRBUF_INIT;

	world_of(&w, "{\"machine\":[{" META("a", "u") ",\"status\":{\"conditions\":[" COND(
			     "Key\\u001b[2J", "False", "No\\u007f", "text\\u0085") "]}}]}");
	report_machine(&w, w.list[REPORT_MACHINE].v[0], false, &out);
	for (size_t i = 0; i < out.len; i++)
		cr_assert((unsigned char)out.data[i] >= ' ' ? out.data[i] != 0x7f
							    : out.data[i] == '\n',
			"byte %zu of %s", i, strbuf_str(&out));
	cr_assert(strstr(strbuf_str(&out), "  Key\\u001b[2J         No\\u007f: text\\u0085\n"),
		"%s", strbuf_str(&out));
	report_world_fini(&w);
}

Test(report_why, who_decides_is_said_where_this_cluster_does_not)
{
	static const char *const rows[][3] = {
		{"{\"authority\":\"Self\"}", NULL, NULL},
		{"{\"authority\":\"Following\"}", "follows https://anchor ns, which decides",
			"tecctl why m at that cluster"},
		{"{\"authority\":\"Frozen\"}", "is Frozen", "--abort"},
		{"{\"authority\":\"Retired\"}", "no longer delivers keys", "rebind-servers"},
	};

	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		cleanup_strbuf struct strbuf out = STRBUF_INIT;
		cleanup_free char *world = xasprintf(
			"{" MACHINE KEY ",\"cluster\":[{" META("tec",
				"c") ",\"spec\":%s,\"status\":{\"authority\":{\"peer\":\"https://anchor ns\"}}}]}",
			rows[i][0]);

		why(world, &out);
		cr_expect_eq(strstr(strbuf_str(&out), "authority: ") != NULL, rows[i][1] != NULL);
		if (rows[i][1])
			cr_expect(strstr(strbuf_str(&out), rows[i][1]) &&
					  strstr(strbuf_str(&out), rows[i][2]),
				"%s", strbuf_str(&out));
	}
}
