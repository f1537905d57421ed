/* SPDX-License-Identifier: MIT */
#include "config.h"

#include <criterion/criterion.h>
#include <string.h>

#include "tec/base/json.h"
#include "tec/base/mem.h"
#include "tec/ctl/imagekinds.h"
#include "tec/pcr/platform.h"
#include "tec/render/pcrjob.h"

#define META(name) "\"metadata\":{\"name\":\"" name "\",\"uid\":\"u\",\"resourceVersion\":\"1\""

static const struct kobj *read_as(
	struct kobj *(*extract)(struct json_object *o, struct err *err), const char *text)
{
	cleanup_json struct json_object *o = json_tokener_parse(text);
	struct err err = ERR_INIT;
	const struct kobj *k;

	cr_assert(o, "%s", text);
	k = extract(o, &err);
	cr_assert(k, "%s", err.text);
	return k;
}

Test(ctl_imagekinds, a_configmap_with_anything_in_it_is_taken_in)
{
	static const struct {
		const char *text;
		bool pcrs, file, names;
	} cases[] = {
		{"{" META("image-pcrs") "}}", false, false, false},
		{"{" META("image-pcrs") "},\"data\":null}", false, false, false},
		{"{" META("image-pcrs") "},\"data\":{\"image-pcrs.json\":7}}", false, false, false},
		{"{" META("image-pcrs") "},\"data\":{\"image-pcrs.json\":\"[\"}}", true, false,
			false},
		{"{" META("image-pcrs") "},\"data\":{\"image-pcrs.json\":\"{}\"}}", true, false,
			false},
		{"{" META("trustee-rv-data") "},\"data\":{\"image-pcrs.json\":\"{}\"}}", false,
			false, false},
		{"{" META("trustee-rv-data") "},\"data\":{\"reference-values.json\":\"\"}}", false,
			true, false},
		{"{" META("trustee-rv-data") "},\"data\":{\"reference-values.json\":\"[{}]\","
					     "\"boot-sets.json\":\"x\"}}",
			false, true, true},
		{"{" META("other") "},\"data\":{\"image-pcrs.json\":\"{}\","
				   "\"reference-values.json\":\"[]\"}}",
			false, false, false},
	};

	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		cleanup_kobj const struct kobj *o = read_as(ctl_configmap_extract, cases[i].text);
		const struct ctl_configmap *m = (const struct ctl_configmap *)o;

		cr_assert_eq(m->pcrs != NULL, cases[i].pcrs, "%s", cases[i].text);
		cr_assert_eq(m->file_sha256 != NULL, cases[i].file, "%s", cases[i].text);
		cr_assert_eq(m->names != NULL, cases[i].names, "%s", cases[i].text);
		cr_assert_eq(m->expires_s, 0);
	}
}

#define SB  "SecureBoot-8be4df61-93ca-11d2-aa0d-00e098032b8c"
#define DBX "dbx-d719b2cb-3d3a-4596-a3bc-dad00e67656f"

/* kubectl puts a file into data or binaryData as it pleases: both are mounted as the same bytes. */
Test(ctl_imagekinds, a_platform_is_known_by_the_bytes_that_are_mounted)
{
	static const struct pcr_platform_file none[PCR_PLATFORM_N_VARS] = {{NULL, 0}};
	struct pcr_platform_file both[PCR_PLATFORM_N_VARS] = {{NULL, 0}},
				 empty[PCR_PLATFORM_N_VARS] = {{NULL, 0}};
	const struct {
		const char *members;
		const struct pcr_platform_file *files; /* NULL: it is no platform */
	} cases[] = {
		{"\"data\":null", NULL},
		{"\"data\":{\"PK\":\"x\"}", NULL},
		{"\"data\":{\"" DBX "\":7}", NULL},
		{"\"data\":7,\"binaryData\":[]", NULL},
		{"\"data\":{\"" SB "\":\"\\u0006\\u0000\\u0000\\u0000\\u0001\",\"" DBX
		 "\":\"\\u0027\\u0000x\"}",
			both},
		{"\"data\":{\"other\":\"x\"},\"binaryData\":{\"" SB "\":\"BgAAAAE=\",\"" DBX
		 "\":\"JwB4\"}",
			both},
		{"\"data\":{\"" SB
		 "\":\"\\u0006\\u0000\\u0000\\u0000\\u0001\"},\"binaryData\":{\"" DBX
		 "\":\"JwB4\"}",
			both},
		{"\"data\":{\"" DBX "\":\"\"}", empty},
		{"\"binaryData\":{\"" DBX "\":\"\"}", empty},
		{"\"binaryData\":{\"" DBX "\":\"no base64\"}", none},
	};

	both[PCR_PLATFORM_SECURE_BOOT] = (struct pcr_platform_file){"\6\0\0\0\1", 5};
	both[PCR_PLATFORM_DBX] = (struct pcr_platform_file){"\47\0x", 3};
	empty[PCR_PLATFORM_DBX] = (struct pcr_platform_file){"", 0};
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		cleanup_free char *text = xasprintf("{" META("ovmf") "},%s}", cases[i].members);
		struct err err = ERR_INIT;
		cleanup_json struct json_object *o =
			json_parse(text, strlen(text), &json_limits_api, &err);
		cleanup_kobj const struct kobj *k = ctl_configmap_extract(o, &err);
		const struct ctl_configmap *m = (const struct ctl_configmap *)k;
		uint8_t digest[SHA256_LEN] = {0};

		cr_assert(m, "%s: %s", text, err.text);
		if (cases[i].files)
			pcr_platform_digest(cases[i].files, digest);
		cr_assert_eq(m->is_platform, cases[i].files != NULL, "%s", text);
		cr_assert_arr_eq(m->variables, digest, SHA256_LEN, "%s", text);
	}
}

Test(ctl_imagekinds, the_files_expiration_and_owner_are_kept)
{
	cleanup_kobj const struct kobj *o = read_as(ctl_configmap_extract,
		"{" META(
			"trustee-rv-data") ",\"ownerReferences\":[{\"uid\":\"c\",\"controller\":true}]},"
					   "\"data\":{\"reference-values.json\":"
					   "\"[{\\\"expiration\\\":\\\"2027-01-15T08:00:00Z\\\"}]\"}}");
	const struct ctl_configmap *m = (const struct ctl_configmap *)o;

	cr_assert_eq(m->expires_s, 1800000000);
	cr_assert_str_eq(m->plain.owner_uid, "c");
}

#define RV(file)    "{" META("trustee-rv-data") "},\"data\":{\"reference-values.json\":\"" file "\"}}"
#define PCR4(value) "{\\\"name\\\":\\\"tpm_pcr4\\\",\\\"value\\\":" value "}"

Test(ctl_imagekinds, the_files_arrays_are_told_by_their_text)
{
	static const struct {
		const char *text, *pcr4; /* NULL: there is none; "": it matches nothing */
	} cases[] = {
		{RV("[]"), NULL},
		{RV("{}"), NULL},
		{RV("[7,null,[],{}]"), NULL},
		{RV("[" PCR4("7") "]"), NULL},
		{RV("[" PCR4("{}") "]"), NULL},
		{RV("[" PCR4("[]") "]"), "[]"},
		{RV("[{}," PCR4("[ \\\"aa\\\", \\\"bb\\\" ]") "]"), "[\"aa\",\"bb\"]"},
		{RV("[" PCR4("[]") "," PCR4("[]") "]"), ""},
	};

	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		cleanup_kobj const struct kobj *o = read_as(ctl_configmap_extract, cases[i].text);
		const struct ctl_configmap *m = (const struct ctl_configmap *)o;
		uint8_t want[SHA256_LEN] = {0};

		cr_assert_eq(m->arrays, cases[i].pcr4 ? 1u << RENDER_PCR4 : 0, "%s", cases[i].text);
		if (cases[i].pcr4 && cases[i].pcr4[0])
			bytes_sha256(cases[i].pcr4, strlen(cases[i].pcr4), want);
		cr_assert_arr_eq(
			m->array_sha256[RENDER_PCR4], want, SHA256_LEN, "%s", cases[i].text);
	}
}

Test(ctl_imagekinds, a_pod_says_what_it_was_started_with)
{
	cleanup_kobj const struct kobj
		*a = read_as(ctl_pod_extract,
			"{" META("p") ",\"labels\":{\"app\":\"kbs\"},\"annotations\":"
				      "{\"trusted-execution-clusters.io/contents-hash\":\"a.b\"}},"
				      "\"status\":{\"phase\":\"Running\"}}"),
		*b = read_as(ctl_pod_extract, "{" META("p") "},\"status\":{\"phase\":\"Failed\"}}"),
		*c = read_as(
			ctl_pod_extract, "{" META("p") "},\"status\":{\"phase\":\"Succeeded\"}}");

	cr_assert_str_eq(((const struct ctl_pod *)a)->contents, "a.b");
	cr_assert_not(((const struct ctl_pod *)a)->ended);
	cr_assert_null(((const struct ctl_pod *)b)->contents);
	cr_assert(((const struct ctl_pod *)b)->ended);
	cr_assert(((const struct ctl_pod *)c)->ended);
}

#define COND(type, status, rest)                                                                   \
	"{" META("j") "},\"status\":{\"conditions\":[{\"type\":\"" type "\",\"status\":\"" status  \
		      "\"" rest "}]}}"

Test(ctl_imagekinds, jobs_run_until_they_say_otherwise)
{
	static const struct {
		const char *text;
		enum ctl_job_state state;
		const char *why;
	} cases[] = {
		{"{" META("j") "}}", CTL_JOB_RUNNING, NULL},
		{"{" META("j") "},\"status\":{\"conditions\":[7,null]}}", CTL_JOB_RUNNING, NULL},
		{COND("Complete", "False", ""), CTL_JOB_RUNNING, NULL},
		{COND("FailureTarget", "True", ""), CTL_JOB_RUNNING, NULL},
		{COND("Complete", "True", ""), CTL_JOB_COMPLETE, NULL},
		{COND("Failed", "True", ""), CTL_JOB_FAILED, NULL},
		{COND("Failed", "True", ",\"reason\":\"R\",\"message\":\"m\""), CTL_JOB_FAILED,
			"R: m"},
		{COND("Failed", "True", ",\"reason\":\"R\",\"message\":\"\""), CTL_JOB_FAILED, "R"},
	};

	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		cleanup_kobj const struct kobj *o = read_as(ctl_job_extract, cases[i].text);
		const struct ctl_job *j = (const struct ctl_job *)o;

		cr_assert_eq(j->state, cases[i].state, "%s", cases[i].text);
		cr_assert(str_eq(j->why, cases[i].why), "%s: %s", cases[i].text, j->why);
		cr_assert_eq(j->attempt, 0);
		cr_assert_null(j->image);
	}
}

Test(ctl_imagekinds, a_pods_last_words_are_cut)
{
	char words[3000];
	cleanup_free char *text = NULL;

	memset(words, 'x', sizeof(words) - 1);
	words[sizeof(words) - 1] = '\0';
	text = xasprintf("{" META("p") ",\"labels\":{\"batch.kubernetes.io/job-name\":\"j\"}},"
				       "\"status\":{\"containerStatuses\":[{},{\"state\":"
				       "{\"terminated\":{\"exitCode\":1,\"reason\":\"Error\","
				       "\"message\":\"%s\"}}}]}}",
		words);
	cleanup_kobj const struct kobj *o = read_as(ctl_pod_extract, text);
	const struct ctl_pod *p = (const struct ctl_pod *)o;
	cr_assert(p->failed);
	cr_assert_eq(strlen(p->why), strlen("Error: ") + 400);
	cr_assert_str_eq(ctl_pod_index(o, 0), "j");
	cr_assert_null(ctl_pod_index(o, 1));
}

#define ENDED(name, restarts, code, message)                                                       \
	"{\"name\":\"" name "\",\"restartCount\":" restarts                                        \
	",\"state\":{\"terminated\":{\"exitCode\":" code ",\"message\":" message "}}}"
#define POD(statuses)                                                                              \
	"{" META("p") ",\"ownerReferences\":[{\"apiVersion\":\"batch/v1\",\"kind\":\"Job\","       \
		      "\"name\":\"j\",\"uid\":\"job-uid\",\"controller\":true}]},\"status\":"      \
		      "{\"containerStatuses\":[" statuses "]}}"

Test(ctl_imagekinds, only_what_compute_pcrs_said_at_its_one_end_is_a_message)
{
	static const struct {
		const char *text, *message;
		int64_t exit_code;
	} cases[] = {
		{POD(ENDED("compute-pcrs", "0", "0", "\"m\"")), "m", 0},
		{POD(ENDED("other", "0", "0", "\"n\"") "," ENDED(
			 "compute-pcrs", "0", "0", "\"m\"")),
			"m", 0},
		{POD(ENDED("other", "0", "0", "\"m\"")), NULL, 0},
		{POD(ENDED("compute-pcrs", "1", "0", "\"m\"")), NULL, 0},
		{POD(ENDED("compute-pcrs", "\"0\"", "0", "\"m\"")), NULL, 0},
		{POD(ENDED("compute-pcrs", "0", "3", "\"m\"")), NULL, 3},
		{POD(ENDED("compute-pcrs", "0", "null", "\"m\"")), NULL, -1},
		{POD(ENDED("compute-pcrs", "0", "0", "7")), NULL, 0},
		{POD("{\"name\":\"compute-pcrs\",\"state\":{\"terminated\":{\"exitCode\":0,"
		     "\"message\":\"m\"}}}"),
			NULL, 0},
		{POD("{\"name\":\"compute-pcrs\",\"restartCount\":0,\"state\":{\"running\":{}},"
		     "\"lastState\":{\"terminated\":{\"exitCode\":0,\"message\":\"m\"}}}"),
			NULL, 0},
	};

	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		cleanup_kobj const struct kobj *o = read_as(ctl_pod_extract, cases[i].text);
		const struct ctl_pod *p = (const struct ctl_pod *)o;

		cr_assert(str_eq(p->message, cases[i].message), "%zu: %s", i, p->message);
		cr_assert_eq(p->exit_code, cases[i].exit_code, "%zu: %d", i, (int)p->exit_code);
		cr_assert_str_eq(p->owner_uid, "job-uid");
	}
}

Test(ctl_imagekinds, a_message_longer_than_a_kubelet_keeps_is_none)
{
	char words[4100];
	cleanup_free char *text = NULL;

	memset(words, 'x', sizeof(words) - 1);
	words[sizeof(words) - 1] = '\0';
	text = xasprintf(POD(ENDED("compute-pcrs", "0", "0", "\"%s\"")), words);
	cleanup_kobj const struct kobj *o = read_as(ctl_pod_extract, text);
	cr_assert_null(((const struct ctl_pod *)o)->message);
}

Test(ctl_imagekinds, a_pod_without_trouble_has_nothing_to_tell)
{
	static const char *const quiet[] = {
		"{" META("p") "}}",
		"{" META(
			"p") ",\"labels\":{\"job-name\":7}},\"status\":{\"phase\":\"Pending\","
			     "\"containerStatuses\":[{\"state\":{\"waiting\":{\"reason\":"
			     "\"ContainerCreating\"}}}],\"conditions\":[{\"type\":\"PodScheduled\","
			     "\"status\":\"True\"}]}}",
		"{" META("p") "},\"status\":{\"containerStatuses\":[{\"state\":{\"terminated\":"
			      "{\"exitCode\":0,\"reason\":\"Completed\"}}}]}}",
	};

	for (size_t i = 0; i < ARRAY_LEN(quiet); i++) {
		cleanup_kobj const struct kobj *o = read_as(ctl_pod_extract, quiet[i]);
		const struct ctl_pod *p = (const struct ctl_pod *)o;

		cr_assert(!p->why && !p->failed && !p->job, "%s", quiet[i]);
	}
}

/* What is not kept does not arrive here at all. */
Test(ctl_imagekinds, what_is_read_of_configmaps_is_kept_of_them)
{
	static const char *const others[] = {MODEL_PCRS_FILE, CTL_RV_FILE, CTL_RV_NAMES};
	const char *const *list = kobj_configmap.keep->data;

	for (int i = 0; i < PCR_PLATFORM_N_VARS; i++)
		cr_expect(kobj_keeps(list, pcr_platform_files[i], strlen(pcr_platform_files[i])));
	for (size_t i = 0; i < ARRAY_LEN(others); i++)
		cr_expect(kobj_keeps(list, others[i], strlen(others[i])), "%s", others[i]);
	cr_expect_not(kobj_keeps(list, "notes.txt", 9));
}
