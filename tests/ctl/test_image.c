/* SPDX-License-Identifier: MIT */
#include "config.h"

#include <criterion/criterion.h>

#include "ctl/images.h"

/* ---- decide: every view there is */

static void check(const struct ctl_image_view *v, enum ctl_image_do d)
{
	bool alive = v->found && !v->deleting;
	bool works =
		alive && v->has_finalizer && v->served && v->digest_ok &&
		v->entry != CTL_IMAGE_ENTRY_UNKNOWN && v->entry != CTL_IMAGE_ENTRY_UNMARKED &&
		(v->entry != CTL_IMAGE_ENTRY_GOOD || v->made || (v->platforms && v->incomplete));
	bool asks = works && !v->platforms && !v->made; /* the label */

	switch (d) {
	case CTL_IMAGE_DROP_FINALIZER:
		MUST(v->deleting && v->has_finalizer && v->gone && v->confirmed &&
			v->entry == CTL_IMAGE_ENTRY_ABSENT && v->run != CTL_IMAGE_RUN_RUNNING &&
			!v->old_run);
		break;
	case CTL_IMAGE_REMOVE_ENTRY:
		MUST(v->deleting && v->has_finalizer && v->gone && v->pcrs_read);
		break;
	case CTL_IMAGE_ASK_LABEL:
		MUST(asks && v->label == CTL_IMAGE_LABEL_ASK);
		break;
	case CTL_IMAGE_WRITE_ENTRY:
		MUST(works && v->made && v->announced && v->pcrs_read);
		break;
	case CTL_IMAGE_ANNOUNCE_ENTRY:
		MUST(works && v->made && !v->announced);
		break;
	case CTL_IMAGE_TAKE_OVER:
		MUST(alive && v->entry == CTL_IMAGE_ENTRY_UNMARKED);
		break;
	case CTL_IMAGE_ANNOUNCE_RUN:
	case CTL_IMAGE_START_RUN:
		MUST(works && !v->made && v->run == CTL_IMAGE_RUN_ABSENT && !v->old_run);
		MUST(!v->handed_in);
		MUST(v->platforms ? !v->unmounted
				  : v->label == CTL_IMAGE_LABEL_NONE ||
					    v->label == CTL_IMAGE_LABEL_WAIT);
		MUST((v->run_announced) == (d == CTL_IMAGE_START_RUN));
		break;
	case CTL_IMAGE_REMOVE_RUN:
		if (v->run == CTL_IMAGE_RUN_UNANNOUNCED) {
			MUST(works && !v->made);
			break;
		}
		MUST(v->run == CTL_IMAGE_RUN_ENDED
				? works && v->due
				: v->run == CTL_IMAGE_RUN_RUNNING && v->deleting);
		break;
	case CTL_IMAGE_REMOVE_OLD_RUN:
		MUST(v->old_run && v->has_finalizer && (v->deleting || v->served));
		break;
	case CTL_IMAGE_ADOPT:
	case CTL_IMAGE_ADD_FINALIZER:
		MUST(alive);
		break;
	case CTL_IMAGE_READ_PCRS:
		MUST(v->deleting ? v->gone : works && v->made && v->announced);
		break;
	case CTL_IMAGE_CONFIRM:
		MUST(v->deleting && v->gone);
		break;
	case CTL_IMAGE_APPLY_STATUS:
		MUST(v->found);
		break;
	case CTL_IMAGE_NOTHING:
		break;
	case CTL_IMAGE_DECLARE_VALUES:
	case CTL_IMAGE_ANNOUNCE_VALUES:
	case CTL_IMAGE_WRITE_VALUES:
	case CTL_IMAGE_N_DO:
		MUST(false);
	}
}

/* What the act does to what is seen. */
static void effect(struct ctl_image_view *v, enum ctl_image_do d)
{
	v->status_ok = d == CTL_IMAGE_APPLY_STATUS;
	switch (d) {
	case CTL_IMAGE_CONFIRM:
		v->confirmed = true;
		break;
	case CTL_IMAGE_ADOPT:
		v->adopt = false;
		break;
	case CTL_IMAGE_ADD_FINALIZER:
		v->has_finalizer = v->confirmed = true;
		break;
	case CTL_IMAGE_ASK_LABEL:
		v->label = CTL_IMAGE_LABEL_NONE;
		break;
	case CTL_IMAGE_READ_PCRS:
		v->pcrs_read = true;
		break;
	case CTL_IMAGE_WRITE_ENTRY:
		v->made = false;
		v->entry = CTL_IMAGE_ENTRY_GOOD;
		break;
	case CTL_IMAGE_TAKE_OVER:
		v->entry = CTL_IMAGE_ENTRY_GOOD;
		break;
	case CTL_IMAGE_ANNOUNCE_ENTRY:
		v->announced = true;
		break;
	case CTL_IMAGE_ANNOUNCE_RUN:
		v->run_announced = true;
		break;
	case CTL_IMAGE_REMOVE_ENTRY:
		v->entry = CTL_IMAGE_ENTRY_ABSENT;
		v->pcrs_read = false;
		break;
	case CTL_IMAGE_START_RUN:
		v->run = CTL_IMAGE_RUN_RUNNING;
		v->run_announced = false;
		break;
	case CTL_IMAGE_REMOVE_RUN:
		v->run = CTL_IMAGE_RUN_ABSENT;
		break;
	case CTL_IMAGE_REMOVE_OLD_RUN:
		v->old_run = false;
		break;
	case CTL_IMAGE_DROP_FINALIZER:
		v->found = v->has_finalizer = false;
		break;
	default:
		break;
	}
}

static unsigned settle(struct ctl_image_view *v)
{
	unsigned jobs = 0;

	for (int i = 0; i < 24; i++) {
		enum ctl_image_do d = ctl_image_decide(v);

		check(v, d);
		if (d == CTL_IMAGE_NOTHING)
			return jobs;
		jobs += d == CTL_IMAGE_START_RUN;
		effect(v, d);
	}
	cr_assert_fail("does not settle");
	return jobs;
}

static struct ctl_image_view view_of(uint32_t bits, int entry, int label, int job)
{
	return (struct ctl_image_view){
		.found = true,
		.deleting = bits & 1,
		.has_finalizer = bits >> 1 & 1,
		.confirmed = bits >> 2 & 1,
		.adopt = bits >> 3 & 1,
		.run_announced = bits >> 4 & 1,
		.digest_ok = bits >> 5 & 1, /* the two have one effect */
		.served = bits >> 5 & 1,
		.pcrs_read = bits >> 6 & 1,
		.due = bits >> 7 & 1,
		.problem = bits >> 8 & 1,
		.settled = bits >> 9 & 1,
		.gone = bits >> 10 & 1,
		.status_ok = bits >> 11 & 1,
		.old_run = bits >> 12 & 1,
		.platforms = bits >> 13 & 1,
		.incomplete = bits >> 14 & 1,
		.unmounted = bits >> 15 & 1,
		.withheld = bits >> 16 & 1,
		.made = bits >> 17 & 1,
		.announced = bits >> 4 & 1, /* never looked at together with the Job's */
		.entry = (enum ctl_image_entry)entry,
		/* Its label is not asked for. */
		.handed_in = label == CTL_IMAGE_LABEL_N,
		.label = (enum ctl_image_label)(label % CTL_IMAGE_LABEL_N),
		.run = (enum ctl_image_run)job,
	};
}

Test(ctl_image_decide, every_view_settles)
{
	for (uint32_t bits = 0; bits < 1u << 18; bits++)
		for (int entry = 0; entry < CTL_IMAGE_ENTRY_N; entry++)
			for (int label = 0; label <= CTL_IMAGE_LABEL_N; label++)
				for (int job = 0; job < CTL_IMAGE_RUN_N; job++) {
					struct ctl_image_view v = view_of(bits, entry, label, job);

					MUST((settle(&v)) <= (1));
				}
}

Test(ctl_image_decide, a_deletion_ends_when_and_only_when_all_is_gone)
{
	for (uint32_t bits = 1; bits < 1u << 18; bits += 2)
		for (int entry = 0; entry < CTL_IMAGE_ENTRY_N; entry++)
			for (int job = 0; job < CTL_IMAGE_RUN_N; job++) {
				struct ctl_image_view v = view_of(bits, entry, 0, job);
				bool held = v.has_finalizer && !v.gone;

				(void)settle(&v);
				MUST((v.has_finalizer) == (held));
			}
}

Test(ctl_image_decide, nothing_is_found_nothing_is_done)
{
	struct ctl_image_view v = {.found = false, .gone = true};

	cr_assert_eq(ctl_image_decide(&v), CTL_IMAGE_NOTHING);
}

/* ---- on an API */

TestSuite(ctl_image, .init = images_up, .fini = images_down);

Test(ctl_image, a_job_is_made_and_its_entry_committed)
{
	struct json_object *job;

	world_boot(&w, NULL);
	world_run(&w, 5000);
	cr_assert_str_eq(rv_data("reference-values.json"), "[]"); /* as installed */
	approve("coreos", REF_A);
	world_run(&w, 5000);
	cr_assert_eq(label.asked, 1);
	cr_assert_str_eq(reason("coreos"), "Computing");
	job = world_get(&w, &kobj_job, job_name("coreos"));
	cr_assert(job);
	cr_assert_str_eq(kobj_annotation(job, MODEL_JOB_IMAGE_ANNOTATION), "coreos");
	cr_assert(kobj_has_finalizer(world_get(&w, &kobj_image, "coreos"), MODEL_IMAGE_FINALIZER));
	cr_assert_str_eq(json_get_str(json_object_array_get_idx(
					      json_get_arr(world_get(&w, &kobj_image, "coreos"),
						      "metadata/ownerReferences"),
					      0),
				 "kind"),
		"TrustedExecutionCluster");
	job_says("coreos", entry_of(REF_A, false));
	job_ends("coreos", "Complete", "CompletionsReached");
	world_run(&w, 5000);
	cr_assert(committed("coreos"));
	cr_assert_str_eq(reason("coreos"), "ImageCommitted");
	cr_assert(strstr(message("coreos"), PCR4_A) && strstr(message("coreos"), PCR14));
	cr_assert(in_file(PCR4_A) && in_file(PCR14) && in_file("tpm_svn"));
	cr_assert_str_eq(rv_data("boot-sets.json"), BOOTS_A);
	cr_assert_str_eq(declared(BOOT_A), "{\"images\":[\"coreos\"]}");
	cr_assert_str_eq(declared("tpm_pcr4"), "[\"" UNCALLED_A "\",\"" PCR4_A "\"]");
	cr_assert_str_eq(declared("tpm_pcr7"), "[]");
	cr_assert_str_eq(declared("tpm_svn"), "[\"1\"]");
}

Test(ctl_image, a_settled_image_makes_no_request)
{
	world_boot(&w, NULL);
	world_run(&w, 5000);
	commit("coreos", REF_A, false);
	trustee_takes_all();
	world_run(&w, 20000);
	fake_transport_forget(w.life->f);
	label.asked = 0;
	world_run(&w, 3 * 60 * 60 * 1000); /* resync included */
	cr_assert_eq(fake_transport_writes(w.life->f), 0);
	cr_assert_eq(fake_transport_count(w.life->f, "get", NULL), 0);
	cr_assert_eq(label.asked, 0);
}

Test(ctl_image, a_restart_writes_nothing_that_is_so)
{
	uint64_t rv;

	world_boot(&w, NULL);
	world_run(&w, 5000);
	commit("coreos", REF_A, false);
	world_run(&w, 20000);
	world_kill(&w);
	rv = fake_api_rv(w.api);
	label.asked = 0;
	world_boot(&w, "i");
	world_run(&w, 60000);
	cr_assert_eq(fake_api_rv(w.api), rv);
	cr_assert_eq(label.asked, 0);
	cr_assert_str_eq(declared(BOOT_A), "{\"images\":[\"coreos\"]}");
}

static char *label_text(bool b)
{
	cleanup_json struct json_object *entry = entry_of(REF_A, b);
	cleanup_json struct json_object *o =
		json_add(json_obj(), "pcrs", json_object_get(json_get_arr(entry, "pcrs")));

	return json_text(o);
}

Test(ctl_image, a_label_needs_no_job)
{
	cleanup_free char *text = label_text(false);

	label.value = text;
	world_boot(&w, NULL);
	approve("coreos", REF_A);
	world_run(&w, 10000);
	cr_assert(committed("coreos"), "%s", message("coreos"));
	cr_assert_eq(fake_api_count(w.api, &kobj_job, NS), 0);
	cr_assert(in_file(PCR4_A));
	cr_assert(strstr(
		json_get_str(json_get_obj(world_get(&w, &kobj_configmap, "image-pcrs"), "data"),
			"image-pcrs.json"),
		REF_A));
}

Test(ctl_image, a_label_that_does_not_replay_is_not_used)
{
	cleanup_free char *text = label_text(false);

	memcpy(strstr(text, SHIM_A), SHIM_B, SHA256_HEX_LEN);
	label.value = text;
	world_boot(&w, NULL);
	approve("coreos", REF_A);
	world_run(&w, 10000);
	cr_assert(has_job("coreos"));
	cr_assert(strstr(message("coreos"), "does not match its events"), "%s", message("coreos"));
	cr_assert(!in_file(PCR4_A));
}

/* A cluster without a way to its registry is normal. */
Test(ctl_image, a_job_starts_after_the_first_failure_of_the_label)
{
	label.kind = ERR_TRANSIENT;
	world_boot(&w, NULL);
	world_run(&w, 5000);
	approve("coreos", REF_A);
	world_run(&w, 2000);
	cr_assert_eq(label.asked, 1);
	cr_assert(has_job("coreos"));
	cr_assert(strstr(message("coreos"), "no luck"), "%s", message("coreos"));
	world_run(&w, 10 * 60 * 1000);
	cr_assert_eq(label.asked, 5);
	job_says("coreos", entry_of(REF_A, false));
	world_run(&w, 5000);
	cr_assert(committed("coreos"));
}

Test(ctl_image, a_label_that_comes_before_the_jobs_result_is_used)
{
	cleanup_free char *text = label_text(false);

	label.kind = ERR_TRANSIENT;
	world_boot(&w, NULL);
	world_run(&w, 5000);
	approve("coreos", REF_A);
	world_run(&w, 2000);
	cr_assert(has_job("coreos"));
	label.kind = ERR_NONE;
	label.value = text;
	world_run(&w, 20000);
	cr_assert(committed("coreos"), "%s", message("coreos"));
}

Test(ctl_image, a_registry_that_lies_is_told_and_no_job_is_made)
{
	cleanup_free char *text = label_text(false);

	label.kind = ERR_INVALID;
	world_boot(&w, NULL);
	approve("coreos", REF_A);
	world_run(&w, 10000);
	cr_assert_str_eq(reason("coreos"), "ComputationFailed");
	cr_assert(strstr(message("coreos"), "no luck"));
	world_run(&w, 60000);
	cr_assert_eq(label.asked, 1);
	cr_assert(!has_job("coreos"));
	label.kind = ERR_NONE;
	label.value = text;
	world_run(&w, 10 * 60 * 1000);
	cr_assert(committed("coreos"));
}

Test(ctl_image, a_registry_that_denies_leaves_it_to_the_node)
{
	label.kind = ERR_DENIED;
	world_boot(&w, NULL);
	approve("coreos", REF_A);
	world_run(&w, 10000);
	cr_assert(has_job("coreos"));
	cr_assert(strstr(message("coreos"), "no luck"));
}

Test(ctl_image, a_failed_job_is_told_and_retried_later_and_later)
{
	const char *first;

	world_boot(&w, NULL);
	world_run(&w, 5000);
	approve("coreos", REF_A);
	world_run(&w, 5000);
	cleanup_free char *uid =
		xstrdup(world_str(&w, &kobj_job, job_name("coreos"), "metadata/uid"));
	cleanup_free char *pod = xasprintf(
		"{\"metadata\":{\"name\":\"p\",\"labels\":{\"app\":\"compute-pcrs\",\"job-name\":\"%s\"}},"
		"\"status\":{\"phase\":\"Failed\",\"containerStatuses\":[{\"state\":{\"terminated\":"
		"{\"exitCode\":1,\"reason\":\"Error\",\"message\":\"no shim in this image\"}}}]}}",
		job_name("coreos"));
	fake_api_put(w.api, &kobj_pod, NS, pod);
	job_ends("coreos", "Failed", "BackoffLimitExceeded");
	world_run(&w, 10000);
	cr_assert_str_eq(reason("coreos"), "ComputationFailed");
	cr_assert(strstr(message("coreos"), "BackoffLimitExceeded: m"));
	cr_assert(strstr(message("coreos"), "no shim in this image"), "%s", message("coreos"));
	world_run(&w, 40000);
	cr_assert_str_eq(world_str(&w, &kobj_job, job_name("coreos"), "metadata/uid"), uid);
	world_run(&w, 20000);
	first = world_str(&w, &kobj_job, job_name("coreos"), "metadata/uid");
	cr_assert(first && strcmp(first, uid) != 0, "a new Job is made after a minute");
	cr_assert_str_eq(kobj_annotation(world_get(&w, &kobj_job, job_name("coreos")),
				 MODEL_JOB_ATTEMPT_ANNOTATION),
		"2");
	free(steal_ptr(&uid));
	uid = xstrdup(first);
	job_ends("coreos", "Failed", "DeadlineExceeded");
	world_run(&w, 100000);
	cr_assert_str_eq(world_str(&w, &kobj_job, job_name("coreos"), "metadata/uid"), uid);
	world_run(&w, 30000);
	cr_assert_str_neq(world_str(&w, &kobj_job, job_name("coreos"), "metadata/uid"), uid);
}

Test(ctl_image, a_pod_that_does_not_start_is_told)
{
	world_boot(&w, NULL);
	world_run(&w, 5000);
	approve("coreos", REF_A);
	world_run(&w, 5000);
	cleanup_free char *pod = xasprintf(
		"{\"metadata\":{\"name\":\"p\",\"labels\":{\"app\":\"compute-pcrs\","
		"\"batch.kubernetes.io/job-name\":\"%s\"}},\"status\":{\"phase\":\"Pending\","
		"\"containerStatuses\":[{\"state\":{\"waiting\":{\"reason\":\"ImagePullBackOff\","
		"\"message\":\"Back-off pulling image\"}}}]}}",
		job_name("coreos"));
	fake_api_put(w.api, &kobj_pod, NS, pod);
	world_run(&w, 5000);
	cr_assert_str_eq(reason("coreos"), "PodPending");
	cr_assert(strstr(message("coreos"), "ImagePullBackOff: Back-off pulling image"));
	fake_api_merge(w.api, &kobj_pod, NS, "p",
		"{\"status\":{\"phase\":\"Pending\",\"containerStatuses\":[{\"state\":{\"waiting\":"
		"{\"reason\":\"ContainerCreating\"}}}]}}");
	world_run(&w, 5000);
	cr_assert_str_eq(reason("coreos"), "Computing");
	fake_api_merge(w.api, &kobj_pod, NS, "p",
		"{\"status\":{\"containerStatuses\":null,\"conditions\":[{\"type\":\"PodScheduled\","
		"\"status\":\"False\",\"reason\":\"Unschedulable\",\"message\":\"0/3 nodes\"}]}}");
	world_run(&w, 5000);
	cr_assert_str_eq(reason("coreos"), "PodPending");
	cr_assert(strstr(message("coreos"), "Unschedulable: 0/3 nodes"));
}

#define PLACED "{\"type\":\"PodScheduled\",\"status\":\"True\"}"
#define READY  "{\"type\":\"PodReadyToStartContainers\",\"status\":\"True\"}"

/* The rest of its status. */
static void pod_is(const char *rest)
{
	cleanup_free char *pod = xasprintf(
		"{\"metadata\":{\"name\":\"p\",\"labels\":{\"app\":\"compute-pcrs\","
		"\"batch.kubernetes.io/job-name\":\"%s\"}},\"status\":{\"phase\":\"Pending\"%s}}",
		job_name("coreos"), rest);

	fake_api_put(w.api, &kobj_pod, NS, pod);
}

Test(ctl_image, a_pod_that_waits_without_a_reason_is_told_after_a_while)
{
	world_boot(&w, NULL);
	world_run(&w, 5000);
	approve("coreos", REF_A);
	world_run(&w, 20000);
	cr_assert_str_eq(reason("coreos"), "Computing");
	world_run(&w, 20000);
	cr_assert_str_eq(reason("coreos"), "PodPending");
	cr_assert(strstr(message("coreos"), "has no Pod after 30 s"), "%s", message("coreos"));
	pod_is(",\"conditions\":[" PLACED "," READY "]");
	world_run(&w, 20000);
	cr_assert_str_eq(reason("coreos"), "Computing");
	world_run(&w, 20000);
	cr_assert_str_eq(reason("coreos"), "PodPending");
	cr_assert(strstr(message("coreos"), "being pulled"), "%s", message("coreos"));
	/* However long that takes: the image is large, and not refused. */
	world_run(&w, 300000);
	cr_assert_str_eq(reason("coreos"), "PodPending");
	cr_assert(has_job("coreos"));
	fake_api_merge(w.api, &kobj_pod, NS, "p",
		"{\"status\":{\"phase\":\"Running\",\"containerStatuses\":[{\"name\":"
		"\"compute-pcrs\",\"state\":{\"running\":{}}}]}}");
	world_run(&w, 5000);
	cr_assert_str_eq(reason("coreos"), "Computing");
}

static const struct render_pcrjob_fetch fetch = {.why = "w"};

/* There is a Job that fetches, and none that mounts; what says why. */
static void expect_fetching(const char *why)
{
	cleanup_free char *mounting = xstrdup(job_name("coreos"));

	cr_assert_null(world_get(&w, &kobj_job, mounting));
	job_fetch = &fetch;
	cr_assert(has_job("coreos"), "%s", message("coreos"));
	cr_assert(strstr(kobj_annotation(world_get(&w, &kobj_job, job_name("coreos")),
				 MODEL_JOB_FETCH_ANNOTATION),
		why));
	cr_assert_str_eq(reason("coreos"), "Computing");
	cr_assert(strstr(message("coreos"), why), "%s", message("coreos"));
	cr_assert(strstr(message("coreos"), "Image volumes need Kubernetes 1.31"));
}

Test(ctl_image, what_a_node_cannot_mount_is_fetched)
{
	static const struct {
		const char *pod, *why;
		unsigned after_ms;
	} t[] = {
		{",\"containerStatuses\":[{\"state\":{\"waiting\":{\"reason\":"
		 "\"CreateContainerError\",\"message\":\"failed to mkdir\"}}}]",
			"did not create a container with the image volume (CreateContainerError: failed to mkdir)",
			5000},
		{",\"conditions\":[" PLACED "],\"containerStatuses\":[{\"state\":"
		 "{\"waiting\":{\"reason\":\"ContainerCreating\"}}}]",
			"did not mount the volumes of the Pod within 120 s", 130000},
	};

	for (size_t i = 0; i < ARRAY_LEN(t); i++) {
		world_boot(&w, NULL);
		world_run(&w, 5000);
		approve("coreos", REF_A);
		world_run(&w, 5000);
		job_fetch = NULL;
		cr_assert(has_job("coreos"));
		pod_is(t[i].pod);
		world_run(&w, t[i].after_ms);
		expect_fetching(t[i].why);
		/* And what that one says counts. */
		job_says("coreos", entry_of(REF_A, false));
		job_ends("coreos", "Complete", "CompletionsReached");
		world_run(&w, 5000);
		cr_assert(committed("coreos"));
		if (i + 1 < ARRAY_LEN(t)) {
			images_down();
			images_up();
		}
	}
	job_fetch = NULL;
}

Test(ctl_image, what_was_seen_of_one_image_is_so_for_others_and_after_a_restart)
{
	world_boot(&w, NULL);
	world_run(&w, 5000);
	approve("coreos", REF_A);
	world_run(&w, 5000);
	pod_is(",\"containerStatuses\":[{\"state\":{\"waiting\":{\"reason\":"
	       "\"CreateContainerError\",\"message\":\"no\"}}}]");
	world_run(&w, 5000);
	expect_fetching("CreateContainerError: no");
	world_kill(&w);
	world_boot(&w, NULL);
	world_run(&w, 5000);
	approve("other", REF_B);
	world_run(&w, 5000);
	cr_assert(has_job("other"));
	cr_assert_str_eq(reason("coreos"), "Computing");
	job_fetch = NULL;
	cr_assert(!has_job("other") && !has_job("coreos"));
}

Test(ctl_image, an_api_server_that_leaves_the_volume_out_is_noticed)
{
	world_boot(&w, NULL);
	world_run(&w, 5000);
	approve("coreos", REF_A);
	world_run(&w, 5000);
	fake_api_merge(w.api, &kobj_job, NS, job_name("coreos"),
		"{\"spec\":{\"template\":{\"spec\":{\"volumes\":null}}}}");
	world_run(&w, 5000);
	expect_fetching("the API server drops image volumes");
	job_fetch = NULL;
}

Test(ctl_image, half_a_digest_is_no_approval)
{
	world_boot(&w, NULL);
	approve("coreos", "quay.io/x/coreos@sha256:00");
	world_run(&w, 10000);
	cr_assert_str_eq(reason("coreos"), "NoDigestGiven");
	cr_assert_eq(label.asked, 0);
	cr_assert(!has_job("coreos"));
}

Test(ctl_image, a_job_of_somebody_else_is_not_touched)
{
	world_boot(&w, NULL);
	world_run(&w, 5000);
	fake_api_put(w.api, &kobj_image, NS,
		"{\"metadata\":{\"name\":\"coreos\",\"uid\":\"u\"},\"spec\":{\"image\":\"" REF_A
		"\"}}");
	cleanup_free char *job =
		xasprintf("{\"metadata\":{\"name\":\"%s\"},\"spec\":{}}", job_name("coreos"));
	fake_api_put(w.api, &kobj_job, NS, job);
	world_run(&w, 10000);
	cr_assert_str_eq(reason("coreos"), "ComputationFailed");
	cr_assert(strstr(message("coreos"), "does not belong to this image"));
	fake_api_delete(w.api, &kobj_job, NS, job_name("coreos"));
	world_run(&w, 60000);
	cr_assert(has_job("coreos"));
}

Test(ctl_image, without_a_cluster_nothing_is_computed)
{
	fake_api_delete(w.api, &kobj_cluster, NS, "tec");
	world_boot(&w, NULL);
	approve("coreos", REF_A);
	world_run(&w, 10000);
	cr_assert_str_eq(reason("coreos"), "Computing");
	cr_assert(strstr(message("coreos"), "Waiting for a TrustedExecutionCluster"));
	cr_assert_eq(label.asked, 0);
	cr_assert_null(declared("tpm_pcr4"));
	world_cluster(&w, "tec", "{\"publicTrusteeAddr\":\"kbs-service\"}");
	world_run(&w, 10000);
	cr_assert(has_job("coreos"));
	cr_assert_str_eq(declared("tpm_pcr4"), "[]");
}
