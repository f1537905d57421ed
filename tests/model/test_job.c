/* SPDX-License-Identifier: MIT */
#include "config.h"

#include "model/extract.h"
#include "tec/model/job.h"

#define COND(type, status, rest)                                                                   \
	"{" META("j") "},\"status\":{\"conditions\":[{\"type\":\"" type "\",\"status\":\"" status  \
		      "\"" rest "}]}}"

Test(model_job, jobs_run_until_they_say_otherwise)
{
	static const struct {
		const char *text;
		enum model_job_state state;
		const char *why;
	} cases[] = {
		{"{" META("j") "}}", MODEL_JOB_RUNNING, NULL},
		{"{" META("j") "},\"status\":{\"conditions\":[7,null]}}", MODEL_JOB_RUNNING, NULL},
		{COND("Complete", "False", ""), MODEL_JOB_RUNNING, NULL},
		{COND("FailureTarget", "True", ""), MODEL_JOB_RUNNING, NULL},
		{COND("Complete", "True", ""), MODEL_JOB_COMPLETE, NULL},
		{COND("Failed", "True", ""), MODEL_JOB_FAILED, NULL},
		{COND("Failed", "True", ",\"reason\":\"R\",\"message\":\"m\""), MODEL_JOB_FAILED,
			"R: m"},
		{COND("Failed", "True", ",\"reason\":\"R\",\"message\":\"\""), MODEL_JOB_FAILED,
			"R"},
	};

	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		cleanup_kobj const struct kobj *o = read_as(model_job_extract, cases[i].text);
		const struct model_job *j = (const struct model_job *)o;

		cr_assert_eq(j->state, cases[i].state, "%s", cases[i].text);
		cr_assert(str_eq(j->why, cases[i].why), "%s: %s", cases[i].text, j->why);
		cr_assert_eq(j->attempt, 0);
		cr_assert_null(j->image);
	}
}
