/* SPDX-License-Identifier: MIT */
#include "config.h"

#include "model/extract.h"
#include "tec/model/pcrmsg.h"
#include "tec/model/pod.h"

Test(model_pod, a_pod_says_what_it_was_started_with)
{
	cleanup_kobj const struct kobj
		*a = read_as(model_pod_extract,
			"{" META("p") ",\"labels\":{\"app\":\"kbs\"},\"annotations\":"
				      "{\"trusted-execution-clusters.io/contents-hash\":\"a.b\"}},"
				      "\"status\":{\"phase\":\"Running\"}}"),
		*b = read_as(
			model_pod_extract, "{" META("p") "},\"status\":{\"phase\":\"Failed\"}}"),
		*c = read_as(
			model_pod_extract, "{" META("p") "},\"status\":{\"phase\":\"Succeeded\"}}");

	cr_assert_str_eq(((const struct model_pod *)a)->contents, "a.b");
	cr_assert_not(((const struct model_pod *)a)->ended);
	cr_assert_null(((const struct model_pod *)b)->contents);
	cr_assert(((const struct model_pod *)b)->ended);
	cr_assert(((const struct model_pod *)c)->ended);
}

Test(model_pod, a_pods_last_words_are_cut)
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
	cleanup_kobj const struct kobj *o = read_as(model_pod_extract, text);
	const struct model_pod *p = (const struct model_pod *)o;
	cr_assert(p->failed);
	cr_assert_eq(strlen(p->why), strlen("Error: ") + 400);
	cr_assert_str_eq(model_pod_index(o, 0), "j");
	cr_assert_null(model_pod_index(o, 1));
}

#define ENDED(name, restarts, code, message)                                                       \
	"{\"name\":\"" name "\",\"restartCount\":" restarts                                        \
	",\"state\":{\"terminated\":{\"exitCode\":" code ",\"message\":" message "}}}"
#define POD(statuses)                                                                              \
	"{" META("p") ",\"ownerReferences\":[{\"apiVersion\":\"batch/v1\",\"kind\":\"Job\","       \
		      "\"name\":\"j\",\"uid\":\"job-uid\",\"controller\":true}]},\"status\":"      \
		      "{\"containerStatuses\":[" statuses "]}}"

Test(model_pod, only_what_compute_pcrs_said_at_its_one_end_is_a_message)
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
		cleanup_kobj const struct kobj *o = read_as(model_pod_extract, cases[i].text);
		const struct model_pod *p = (const struct model_pod *)o;

		cr_assert(str_eq(p->message, cases[i].message), "%zu: %s", i, p->message);
		cr_assert_eq(p->exit_code, cases[i].exit_code, "%zu: %d", i, (int)p->exit_code);
		cr_assert_str_eq(p->owner_uid, "job-uid");
	}
}

Test(model_pod, a_message_longer_than_a_kubelet_keeps_is_none)
{
	char words[4100];
	cleanup_free char *text = NULL;

	memset(words, 'x', sizeof(words) - 1);
	words[sizeof(words) - 1] = '\0';
	text = xasprintf(POD(ENDED("compute-pcrs", "0", "0", "\"%s\"")), words);
	cleanup_kobj const struct kobj *o = read_as(model_pod_extract, text);
	cr_assert_null(((const struct model_pod *)o)->message);
}

Test(model_pod, a_pod_without_trouble_has_nothing_to_tell)
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
		cleanup_kobj const struct kobj *o = read_as(model_pod_extract, quiet[i]);
		const struct model_pod *p = (const struct model_pod *)o;

		cr_assert(!p->why && !p->failed && !p->job, "%s", quiet[i]);
	}
}
