/* SPDX-License-Identifier: MIT */
#include "config.h"

#include "report_testing.h"
#include "tec/model/ak.h"
#include "tec/model/cluster.h"
#include "tec/model/image.h"
#include "tec/model/lost.h"
#include "tec/model/machine.h"
#include "tec/report/advice.h"
#include "tec/report/lists.h"
#include "tec/report/status.h"

#define POPULATED                                                                                                                                                                                            \
	"{\"cluster\":[{" META("tec",                                                                                                                                                                        \
		"c1") ",\"spec\":{\"publicTrusteeAddr\":\"t:8080\","                                                                                                                                         \
		      "\"trusteeServers\":[{\"address\":\"u:1\",\"adminSecret\":\"s\"},{\"address\":\"v:2\"}]},"                                                                                             \
		      "\"status\":{\"conditions\":[" COND("Installed", "True",                                                                                                                               \
			      "InstallationCompleted",                                                                                                                                                       \
			      "All.") "," COND("TrusteeSynced", "False", "NotAvailable",                                                                                                                     \
			      "Trustee at t is away.") "]}}],"                                                                                                                                               \
						       "\"machine\":[{" META("m1", "u1") ",\"spec\":{\"id\":\"i1\"},\"status\":{\"conditions\":[" COND(                                                      \
							       "KeyReady", "True", "KeyMade",                                                                                                                \
							       "") "," COND("AttestationKeyBound",                                                                                                           \
							       "True", "Bound",                                                                                                                              \
							       "") "," COND("Delivered", "True",                                                                                                             \
							       "Delivered",                                                                                                                                  \
							       "") "]}},"                                                                                                                                    \
								   "{" META("m2", "u2") ",\"spec\":{\"id\":\"i2\"},\"status\":{\"conditions\":[" COND(                                                       \
									   "KeyReady", "True",                                                                                                               \
									   "KeyMade",                                                                                                                        \
									   "") "," COND("AttestationKeyBound",                                                                                               \
									   "False",                                                                                                                          \
									   "NoApprovedKey",                                                                                                                  \
									   "No \\u001b[2Jkey.") "]}},"                                                                                                       \
												"{" META(                                                                                                    \
													"m3",                                                                                                \
													"u3") ",\"spec\":{\"id\":\"i3\"}}],"                                                                 \
													      "\"key\":[{" META("k1", "u4") ",\"spec\":{\"uuid\":\"i2\"},\"status\":{\"conditions\":[" COND( \
														      "Approved",                                                                            \
														      "False",                                                                               \
														      "ManualApproval",                                                                      \
														      "An administrator decides.") "]}}],"                                                   \
																		   "\"image\":[{" META(                                      \
																			   "fcos",                                           \
																			   "u5") ",\"spec\":{\"image\":\"q/x@sha256:0\"},"   \
																				 "\"status\":{\"conditions\":[" COND(        \
																					 "Committed",                        \
																					 "True",                             \
																					 "ImageCommitted",                   \
																					 "") "]}}],"                         \
																					     "\"map\":[{" META(              \
																						     "trustee-rv-data",      \
																						     "u6") ",\"data\":{\"boot-sets.json\":\"[\\\"a\\\"]\"}}]}"

Test(report_status, a_populated_system_at_a_glance)
{
	cleanup_show_world struct report_world w;
	cleanup_strbuf struct strbuf out = STRBUF_INIT;
	cleanup_json struct json_object *s = NULL;

	world_of(&w, POPULATED);
	s = report_status(&w);
	report_status_text(s, false, &out);
	cr_expect_str_eq(strbuf_str(&out),
		"Cluster tec in namespace n, registration Open, approval Automatic\n"
		"  Installed             InstallationCompleted\n"
		"  TrusteeSynced         NotAvailable: Trustee at t is away.\n"
		"\n"
		"Trustee servers\n"
		"  ADDRESS   FIELD               ADMINISTERED\n"
		"  t:8080    publicTrusteeAddr   yes\n"
		"  u:1       trusteeServers[0]   yes\n"
		"  v:2       trusteeServers[1]   no\n"
		"\n"
		"Images  1, 1 boot set approved\n"
		"  NAME   STATE   VARIANTS   AGE   IMAGE\n"
		"  fcos   Ready   -          4m    q/x@sha256:0\n"
		"\n"
		"Machines  3, attestation keys 1\n"
		"       1  Ready\n"
		"       1  NoApprovedKey\n"
		"       1  New\n"
		"\n"
		"Waiting, and why\n"
		"  TrustedExecutionCluster tec: NotAvailable\n"
		"    Trustee at t is away.\n"
		"    -> Check that Trustee runs and that the operator can reach it: tecctl doctor\n"
		"  AttestationKey k1: ManualApproval\n"
		"    An administrator decides.\n"
		"    -> If the key belongs to the node: tecctl approve k1. Otherwise: tecctl deny k1\n"
		"  Machine m2: NoApprovedKey\n"
		"    No \\u001b[2Jkey.\n"
		"    -> Boot the node so that it registers its key; approve the key if it waits for approval. See: tecctl why m2\n"
		"  Machine m3: New\n");
	cr_expect_eq(json_get_int(s, "machines/byState/NoApprovedKey", 0), 1);
}

Test(report_status, an_operator_that_does_not_decide_says_so)
{
	cleanup_show_world struct report_world w;
	cleanup_strbuf struct strbuf out = STRBUF_INIT;
	cleanup_json struct json_object *s = NULL;

	world_of(&w,
		"{\"cluster\":[{" META("tec",
			"c1") ",\"spec\":{\"authority\":\"Following\"},"
			      "\"status\":{\"authority\":{\"peer\":\"https://a:1 n\",\"behind\":3,"
			      "\"seen\":\"2026-01-01T00:00:00Z\"},\"conditions\":[" COND(
				      "Authority", "False", "Conflict", "Machine a.") "]}}]}");
	s = report_status(&w);
	report_status_text(s, false, &out);
	cr_expect(strstr(strbuf_str(&out),
			  "  This operator does not decide: spec.authority is Following, follows "
			  "https://a:1 n, 3 objects behind, seen 2026-01-01T00:00:00Z\n"),
		"%s", strbuf_str(&out));
	cr_expect(strstr(strbuf_str(&out),
			  "Waiting, and why\n  TrustedExecutionCluster tec: Conflict\n"),
		"%s", strbuf_str(&out));
}

/* One more that spec names, one that does not answer, one that does, one that is lost, and one that was
 * and is back. */
Test(report_status, servers_that_spec_no_longer_names_are_listed)
{
	cleanup_show_world struct report_world w;
	cleanup_strbuf struct strbuf out = STRBUF_INIT;
	cleanup_json struct json_object *s = NULL;

	world_of(&w,
		"{\"cluster\":[{\"metadata\":{\"name\":\"tec\",\"uid\":\"c\",\"annotations\":{\"" MODEL_LOST_ANNOTATION
		"\":\"[{\\\"address\\\":\\\"l:1\\\",\\\"at\\\":\\\"2026-01-02T03:04:05Z\\\"},"
		"{\\\"address\\\":\\\"u:1\\\",\\\"at\\\":\\\"2026-01-02T03:04:05Z\\\"}]\"}},"
		"\"spec\":{\"trusteeServers\":[{\"address\":\"u:1\",\"adminSecret\":\"s\"}]}}],"
		"\"map\":[{" META(
			"tec-trustees", "m") ",\"data\":{\"trustees.json\":\"["
					     "{\\\"address\\\":\\\"u:1\\\"},"
					     "{\\\"address\\\":\\\"a:1\\\",\\\"away\\\":true},"
					     "{\\\"address\\\":\\\"b:1\\\"},7]\"}}]}");
	s = report_status(&w);
	report_status_text(s, false, &out);
	cr_expect(strstr(strbuf_str(&out),
			  "  ADDRESS   FIELD                             ADMINISTERED\n"
			  "  u:1       trusteeServers[0]                 yes\n"
			  "  a:1       not in spec, does not answer      yes\n"
			  "  b:1       not in spec                       yes\n"
			  "  l:1       lost since 2026-01-02T03:04:05Z   no\n"),
		"%s", strbuf_str(&out));
}

Test(report_status, a_deleted_machine_shows_what_its_deletion_waits_for)
{
	static const struct {
		const char *conditions, *word, *message;
	} rows[] = {
		{COND("KeyReady", "True", "KeyMade", "") "," COND("AttestationKeyBound", "False",
			 "NoApprovedKey",
			 "No key.") "," COND("Delivered", "False", "Revoking", "Trustee at x."),
			"Revoking", "Trustee at x."},
		{COND("KeyReady", "False", "KeyLost", "Lost.") "," COND(
			 "Delivered", "False", "Revoking", "Trustee at x."),
			"Revoking", "Trustee at x."},
		{COND("KeyReady", "False", "KeyLost", "Lost."), "Deleting", "Lost."},
		{COND("AttestationKeyBound", "False", "NoApprovedKey", "No key.") "," COND(
			 "Delivered", "False", "Waiting", "Waits."),
			"Deleting", "No key."},
	};

	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		cleanup_free char *text = xasprintf(
			"{\"metadata\":{\"name\":\"m\",\"deletionTimestamp\":\"2026-01-02T03:04:05Z\"},"
			"\"status\":{\"conditions\":[%s]}}",
			rows[i].conditions);
		cleanup_json struct json_object *o = json_tokener_parse(text);
		struct report_state s = report_state_of(REPORT_MACHINE, o);

		cr_expect_str_eq(s.word, rows[i].word, "row %zu", i);
		cr_expect(str_eq(s.message, rows[i].message), "row %zu: %s", i, s.message);
	}
}

Test(report_status, what_cannot_be_read_is_not_shown_as_absent)
{
	cleanup_show_world struct report_world w;
	cleanup_strbuf struct strbuf out = STRBUF_INIT;
	cleanup_json struct json_object *s = NULL;

	world_of(&w, "{}");
	for (int k = 0; k < REPORT_N_KINDS; k++)
		report_world_problem(&w, (enum report_kind)k, "forbidden");
	s = report_status(&w);
	report_status_text(s, false, &out);
	cr_expect_str_eq(strbuf_str(&out),
		"Cluster - in namespace n\n  not readable\n"
		"\nImages\n  not readable\n"
		"\nMachines\n  not readable\n"
		"\nUnreadable, and therefore not shown\n"
		"  TrustedExecutionCluster: forbidden\n  Machine: forbidden\n"
		"  AttestationKey: forbidden\n  ApprovedImage: forbidden\n"
		"  ConfigMap: forbidden\n  Event: forbidden\n");
}

Test(report_status, objects_of_any_shape_are_shown)
{
	static const char *const worlds[] = {
		"{\"cluster\":[{\"metadata\":{\"name\":\"a\"},\"spec\":[],\"status\":7}]}",
		"{\"machine\":[{\"metadata\":{\"name\":\"a\"},\"status\":{\"conditions\":{}}}]}",
		"{\"machine\":[{\"metadata\":{\"name\":\"a\"},\"status\":{\"conditions\":[null,1,{}]}}]}",
		"{\"key\":[{\"metadata\":{\"name\":\"a\"},\"spec\":{\"uuid\":5}}]}",
		"{\"image\":[{\"metadata\":{\"name\":\"a\",\"creationTimestamp\":\"x\"},\"spec\":{\"image\":{}}}]}",
		"{\"map\":[{\"metadata\":{\"name\":\"trustee-rv-data\"},\"data\":{\"boot-sets.json\":\"{\"}}]}",
		"{\"map\":[{\"metadata\":{\"name\":\"image-pcrs\"},\"data\":{\"image-pcrs.json\":\"[]\"}}]}",
		"{\"cluster\":[{\"metadata\":{\"name\":\"a\"},\"spec\":{\"trusteeServers\":[{},1,null]}}]}",
		"{\"machine\":[{\"metadata\":{}},{},{\"metadata\":{\"name\":7}}]}",
	};

	for (size_t i = 0; i < ARRAY_LEN(worlds); i++) {
		cleanup_show_world struct report_world w;
		cleanup_strbuf struct strbuf out = STRBUF_INIT;
		cleanup_json struct json_object *s = NULL;

		world_of(&w, worlds[i]);
		s = report_status(&w);
		report_status_text(s, true, &out);
		report_machines(&w, true, &out);
		report_keys(&w, true, &out);
		report_images(&w, true, &out);
		cr_expect(out.len > 0);
	}
}

Test(report_status, every_reason_has_its_advice)
{
	/* Those that are as they should be. */
	static const char *const good =
		"KeyMade Bound Delivered AllReady MachineCreated ApprovedManually ImageCommitted "
		"InstallationCompleted AddressFound Synced Open PerMachine Self ";
	static const struct {
		enum report_kind kind;
		int n;
	} kinds[] = {{REPORT_CLUSTER, CLUSTER_N_REASONS}, {REPORT_MACHINE, MACHINE_N_REASONS},
		{REPORT_KEY, AK_N_REASONS}, {REPORT_IMAGE, IMAGE_N_REASONS}};

	for (size_t k = 0; k < ARRAY_LEN(kinds); k++)
		for (int i = 0; i < kinds[k].n; i++) {
			enum report_kind kind = kinds[k].kind;
			const char *reason =
				kind == REPORT_CLUSTER
					? model_cluster_reason((enum model_cluster_reason)i)
				: kind == REPORT_MACHINE
					? model_machine_reason((enum model_machine_reason)i)
				: kind == REPORT_KEY
					? model_ak_reason((enum model_ak_reason)i)
					: model_image_reason((enum model_image_reason)i);
			cleanup_strbuf struct strbuf out = STRBUF_INIT;
			cleanup_free char *word = xasprintf("%s ", reason);

			cr_expect_neq(report_advice(kind, reason, "x", &out),
				strstr(good, word) != NULL, "%s", reason);
		}
}

Test(report_status, a_machine_is_found_by_name_and_id)
{
	cleanup_show_world struct report_world w;
	struct err err = ERR_INIT;

	world_of(&w, "{\"machine\":[{" META("m1", "1") ",\"spec\":{\"id\":\"a\"}},{" META(
			     "m2", "2") ",\"spec\":{\"id\":\"b\"}},{" META("m3",
			     "3") ",\"spec\":{\"id\":\"b\"}}]}");
	cr_expect_str_eq(report_name(report_machine_find(&w, "m2", &err)), "m2");
	cr_expect_str_eq(report_name(report_machine_find(&w, "a", &err)), "m1");
	cr_expect_null(report_machine_find(&w, "b", &err));
	cr_expect_eq(err.kind, ERR_CONFLICT);
	err_clear(&err);
	cr_expect_null(report_machine_find(&w, "c", &err));
	cr_expect(strstr(err.text, "next step: tecctl machine list"));
}
