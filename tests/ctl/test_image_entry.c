/* SPDX-License-Identifier: MIT */
/* Whose values count: what a Job's Pod says, what strangers say and write, and what is done about
 * an entry that somebody changed. */
#include "config.h"

#include <criterion/criterion.h>

#include "ctl/images.h"
#include "tec/model/mark.h"

TestSuite(ctl_image_entry, .init = images_up, .fini = images_down);

/* When this operator was first started here. */
static void since(const char *when)
{
	cleanup_free char *text =
		xasprintf("{\"metadata\":{\"name\":\"" CTL_ADOPTION_CUTOFF_CONFIGMAP
			  "\",\"creationTimestamp\":\"%s\"}}",
			when);

	fake_api_put(w.api, &kobj_configmap, NS, text);
}

static void approved(void)
{
	world_boot(&w, NULL);
	world_run(&w, 5000);
	approve("coreos", REF_A);
	world_run(&w, 5000);
	cr_assert(has_job("coreos"));
}

static const char *mark(const char *annotation)
{
	const char *s = model_mark(world_get(&w, &kobj_image, "coreos"), annotation);

	return s ? s : "";
}

static const char *entries(void)
{
	return json_get_str(json_get_obj(world_get(&w, &kobj_configmap, "image-pcrs"), "data"),
		"image-pcrs.json");
}

static size_t events_with(const char *reason)
{
	cleanup_free char *want = xasprintf("\"reason\":\"%s\"", reason);
	size_t n = 0;

	for (size_t i = 0; i < fake_transport_requests(w.life->f); i++) {
		const struct fake_request *r = fake_transport_request(w.life->f, i);

		n += str_eq(r->resource, "events") && r->body && strstr(r->body, want);
	}
	return n;
}

Test(ctl_image_entry, the_job_and_the_entry_are_announced_before_they_are_made)
{
	const char *nonce;
	char hex[SHA256_HEX_LEN + 1];
	uint8_t digest[SHA256_LEN];

	approved();
	nonce = kobj_annotation(
		world_get(&w, &kobj_job, job_name("coreos")), MODEL_JOB_NONCE_ANNOTATION);
	bytes_sha256(nonce, strlen(nonce), digest);
	bytes_to_hex(digest, SHA256_LEN, hex);
	cr_assert_str_eq(mark(MODEL_IMAGE_JOB_MARK), hex);
	job_says("coreos", entry_of(REF_A, false));
	world_run(&w, 5000);
	cr_assert(committed("coreos"));
	cleanup_model_pcrs struct model_pcrs *m = model_pcrs_parse(entries(), strlen(entries()));
	cr_assert_str_eq(mark(MODEL_IMAGE_PCRS_MARK), m->v[0].sha256);
}

/* Each of these says values of B, and none is of our Job. */
Test(ctl_image_entry, what_others_say_is_not_taken)
{
	static const struct said strangers[] = {
		{.pod = "a", .controller = "another-uid"},
		{.pod = "b", .container = "sidecar"},
		{.pod = "c", .restarts = 1},
		{.pod = "d", .exit_code = 1},
		{.pod = "e", .nonce = "00112233445566778899aabbccddeeff"},
		{.pod = "f", .reference = REF_B},
	};

	approved();
	for (size_t i = 0; i < ARRAY_LEN(strangers); i++) {
		job_says_how("coreos", entry_of(REF_A, true), &strangers[i]);
		world_run(&w, 5000);
		cr_assert_str_eq(entries(), "{}", "%zu", i);
		cr_assert_str_eq(mark(MODEL_IMAGE_PCRS_MARK), "");
	}
	job_says_how("coreos", entry_of(REF_A, false), &(struct said){.pod = "z"});
	world_run(&w, 5000);
	cr_assert(committed("coreos"), "%s", message("coreos"));
	cr_assert(in_file(PCR4_A) && !in_file(PCR4_B));
}

Test(ctl_image_entry, a_result_that_is_wrong_is_told)
{
	approved();
	job_says_how("coreos", entry_of(REF_A, true), &(struct said){.reference = REF_B});
	job_ends("coreos", "Complete", "CompletionsReached");
	world_run(&w, 5000);
	cr_assert_str_eq(reason("coreos"), "ComputationFailed");
	cr_assert(strstr(message("coreos"), "it is about another image"), "%s", message("coreos"));
	world_run(&w, 70000);
	cr_assert(has_job("coreos"));
	cr_assert_str_eq(reason("coreos"), "Computing");
}

/* A Job that somebody made under the name of ours, owner and all. */
Test(ctl_image_entry, a_job_that_was_not_announced_is_deleted)
{
	static const char nonce[] = "00112233445566778899aabbccddeeff";
	cleanup_json struct json_object *planted = NULL;

	world_boot(&w, NULL);
	world_run(&w, 5000);
	world_kill(&w);
	approve("coreos", REF_A);
	cleanup_kobj const struct kobj *o = NULL;
	struct err err = ERR_INIT;
	o = model_image_extract(world_get(&w, &kobj_image, "coreos"), &err);
	planted = render_pcrjob(model_image(o), NULL, NULL, NS, "evil:1", nonce, 1);
	cleanup_free char *text = json_text(planted);
	fake_api_put(w.api, &kobj_job, NS, text);
	job_says_how("coreos", entry_of(REF_A, true), &(struct said){.nonce = nonce});
	world_boot(&w, NULL);
	world_run(&w, 10000);
	cr_assert_str_eq(entries(), "{}");
	cr_assert(has_job("coreos"));
	cr_assert_str_neq(kobj_annotation(world_get(&w, &kobj_job, job_name("coreos")),
				  MODEL_JOB_NONCE_ANNOTATION),
		nonce);
}

Test(ctl_image_entry, a_mark_that_came_with_the_image_does_not_count)
{
	uint8_t digest[SHA256_LEN];
	char hex[SHA256_HEX_LEN + 1];
	cleanup_json struct json_object *entry = entry_of(REF_A, true);
	cleanup_free char *entry_text = json_text(entry);

	since("2020-01-01T00:00:00Z");
	world_boot(&w, NULL);
	world_run(&w, 5000);
	bytes_sha256(entry_text, strlen(entry_text), digest);
	bytes_to_hex(digest, SHA256_LEN, hex);
	cleanup_free char *text = xasprintf(
		"{\"metadata\":{\"name\":\"coreos\",\"annotations\":{\"" MODEL_IMAGE_PCRS_MARK
		"\":\"guessed %s\"}},\"spec\":{\"image\":\"" REF_A "\"}}",
		hex);
	stranger_writes("coreos", json_object_get(entry));
	fake_api_put(w.api, &kobj_image, NS, text);
	world_run(&w, 10000);
	cr_assert(!committed("coreos"));
	cr_assert(!in_file(PCR4_B));
}

Test(ctl_image_entry, a_changed_entry_does_not_count_and_is_put_back)
{
	approved();
	job_says("coreos", entry_of(REF_A, false));
	job_ends("coreos", "Complete", "CompletionsReached");
	world_run(&w, 5000);
	cleanup_free char *before = xstrdup(entries());
	trustee_takes_all();
	stranger_writes("coreos", entry_of(REF_A, true));
	world_run(&w, 10000);
	cr_assert_str_eq(entries(), before);
	cr_assert(!in_file(PCR4_B) && in_file(PCR4_A));
	cr_assert_str_eq(declared(BOOT_A), "{\"images\":[\"coreos\"]}");
	cr_assert(committed("coreos"));
	cr_assert_eq(events_with("ValuesChanged"), 1);
	stranger_writes("coreos", NULL);
	world_run(&w, 10000);
	cr_assert_str_eq(entries(), before);
	stranger_writes("coreos", json_tokener_parse("{\"reference\":\"x\"}"));
	world_run(&w, 10000);
	cr_assert_str_eq(entries(), before);
	cr_assert(in_file(PCR4_A));
}

/* What counted is forgotten, and the Job's Pod is gone: nothing is taken back before it is computed
 * again. */
Test(ctl_image_entry, after_a_restart_a_changed_entry_is_computed_again)
{
	since("2020-01-01T00:00:00Z");
	approved();
	job_says("coreos", entry_of(REF_A, false));
	job_ends("coreos", "Complete", "CompletionsReached");
	world_run(&w, 5000);
	trustee_takes_all();
	cleanup_free char *before = xstrdup(rv_data("reference-values.json"));
	world_kill(&w);
	fake_api_delete(w.api, &kobj_job, NS, job_name("coreos"));
	fake_api_collect(w.api);
	stranger_writes("coreos", entry_of(REF_A, true));
	world_boot(&w, NULL);
	world_run(&w, 10000);
	cr_assert_str_eq(reason("coreos"), "ValuesChanged", "%s", message("coreos"));
	cr_assert_str_eq(rv_data("reference-values.json"), before);
	cr_assert_eq(events_with("ValuesChanged"), 1, "of the image alone");
	cr_assert(!kbs_sync_is_revoked(w.life->caches.sync, KBS_REFVALUE, BOOT_A));
	cr_assert_null(declared(BOOT_B));
	cr_assert(has_job("coreos"));
	job_says("coreos", entry_of(REF_A, false));
	world_run(&w, 5000);
	cr_assert(committed("coreos"), "%s", message("coreos"));
	cr_assert_str_eq(declared(BOOT_A), "{\"images\":[\"coreos\"]}");
	cr_assert(!in_file(PCR4_B));
}

Test(ctl_image_entry, reference_values_that_somebody_changed_are_told_and_written_again)
{
	world_boot(&w, NULL);
	world_run(&w, 5000);
	commit("coreos", REF_A, false);
	cleanup_free char *before = xstrdup(rv_data("reference-values.json"));
	cr_assert(model_mark(world_get(&w, &kobj_cluster, "tec"), MODEL_CLUSTER_VALUES_MARK));
	cr_assert_eq(events_with("ValuesChanged"), 0);
	fake_api_merge(w.api, &kobj_configmap, NS, "trustee-rv-data",
		"{\"data\":{\"reference-values.json\":\"[{}]\"}}");
	world_run(&w, 5000);
	cr_assert_str_eq(rv_data("reference-values.json"), before);
	cr_assert_eq(events_with("ValuesChanged"), 1);
}

/* Taking back what is revoked waits for no computation. */
Test(ctl_image_entry, revoking_does_not_wait_for_a_changed_entry)
{
	since("2020-01-01T00:00:00Z");
	world_boot(&w, NULL);
	world_run(&w, 5000);
	commit("coreos", REF_A, false);
	commit("coreos-2", REF_B, true);
	trustee_takes_all();
	world_kill(&w);
	stranger_writes("coreos", json_tokener_parse("{}"));
	fake_api_delete(w.api, &kobj_image, NS, "coreos-2");
	world_boot(&w, NULL);
	world_run(&w, 5000);
	cr_assert(kbs_sync_is_revoked(w.life->caches.sync, KBS_REFVALUE, BOOT_B));
	cr_assert(kbs_sync_is_revoked(w.life->caches.sync, KBS_REFVALUE, BOOT_AB));
}

/* ---- taking over */

Test(ctl_image_entry, an_older_images_entry_is_taken_over_once)
{
	world_boot(&w, NULL);
	world_run(&w, 5000);
	world_kill(&w);
	fake_api_put(w.api, &kobj_image, NS,
		"{\"metadata\":{\"name\":\"coreos\",\"creationTimestamp\":\"2019-01-01T00:00:00Z\"},"
		"\"spec\":{\"image\":\"" REF_A "\"}}");
	stranger_writes("coreos", entry_of(REF_A, false));
	world_boot(&w, NULL);
	world_run(&w, 5000);
	cr_assert(committed("coreos"), "%s", message("coreos"));
	cr_assert_eq(strlen(mark(MODEL_IMAGE_PCRS_MARK)), SHA256_HEX_LEN);
	cr_assert(!has_job("coreos"));
	stranger_writes("coreos", entry_of(REF_A, true));
	world_run(&w, 5000);
	cr_assert(!in_file(PCR4_B), "only once");
}

Test(ctl_image_entry, a_younger_images_entry_is_not_taken_over)
{
	since("2020-01-01T00:00:00Z");
	world_boot(&w, NULL);
	world_run(&w, 5000);
	stranger_writes("coreos", entry_of(REF_A, true));
	approve("coreos", REF_A);
	world_run(&w, 5000);
	cr_assert(!in_file(PCR4_B));
	cr_assert(has_job("coreos"));
	job_says("coreos", entry_of(REF_A, false));
	world_run(&w, 5000);
	cr_assert(committed("coreos"), "%s", message("coreos"));
	cr_assert(in_file(PCR4_A) && !in_file(PCR4_B));
}

/* It had no entry when this operator came, so that one which comes later is nobody's to take over.
 */
Test(ctl_image_entry, an_older_image_without_an_entry_is_computed)
{
	since("2020-01-01T00:00:00Z");
	world_boot(&w, NULL);
	fake_api_put(w.api, &kobj_image, NS,
		"{\"metadata\":{\"name\":\"coreos\",\"creationTimestamp\":\"2019-01-01T00:00:00Z\"},"
		"\"spec\":{\"image\":\"" REF_A "\"}}");
	world_run(&w, 5000);
	cr_assert(has_job("coreos"));
	stranger_writes("coreos", entry_of(REF_A, true));
	world_run(&w, 5000);
	cr_assert(!in_file(PCR4_B));
	cr_assert_str_eq(reason("coreos"), "ValuesChanged");
}

/* ---- Jobs without a result */

Test(ctl_image_entry, a_pod_that_went_before_it_was_read_is_made_again)
{
	approved();
	cleanup_free char *uid =
		xstrdup(world_str(&w, &kobj_job, job_name("coreos"), "metadata/uid"));

	job_ends("coreos", "Complete", "CompletionsReached");
	world_run(&w, 5000);
	cr_assert(strstr(message("coreos"), "none of its Pods has a result"), "%s",
		message("coreos"));
	world_run(&w, 20000);
	cr_assert(has_job("coreos"));
	cr_assert_str_neq(world_str(&w, &kobj_job, job_name("coreos"), "metadata/uid"), uid);
}

Test(ctl_image_entry, more_events_than_fit_are_told)
{
	approved();
	pod_says("coreos", &(struct said){.exit_code = 3, .message = "the values take 5000 bytes"});
	job_ends("coreos", "Failed", "BackoffLimitExceeded");
	world_run(&w, 5000);
	cr_assert_str_eq(reason("coreos"), "TooManyEvents");
	cr_assert(strstr(message("coreos"), "the values take 5000 bytes"), "%s", message("coreos"));
	cr_assert_eq(events_with("TooManyEvents"), 1);
}
