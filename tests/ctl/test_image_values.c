/* SPDX-License-Identifier: MIT */
#include "config.h"

#include <criterion/criterion.h>

#include "ctl/images.h"

Test(ctl_values_decide, every_view_settles_and_revoking_waits_for_no_write)
{
	for (unsigned bits = 0; bits < 32; bits++) {
		struct ctl_values_view v = {.dirty = bits & 1,
			.announced = bits >> 4 & 1,
			.rv_found = bits >> 1 & 1,
			.declared = bits >> 2 & 1,
			.file_ok = bits >> 3 & 1};
		int i = 0;

		for (enum ctl_values_do d; (d = ctl_values_decide(&v)) != CTL_VALUES_NOTHING; i++) {
			cr_assert_lt(i, 6);
			cr_assert(
				d != CTL_VALUES_WRITE || (v.rv_found && v.declared && v.announced));
			if (d == CTL_VALUES_ANNOUNCE) {
				v.announced = true;
			} else if (d == CTL_VALUES_COMPUTE) {
				v.dirty = v.declared = v.file_ok = false;
			} else if (d == CTL_VALUES_DECLARE) {
				v.declared = true;
			} else {
				v.file_ok = true;
				v.declared = false; /* what was written may be declared */
			}
		}
		cr_assert(!v.dirty && v.declared && (v.file_ok || !v.rv_found));
	}
}

TestSuite(ctl_image_values, .init = images_up, .fini = images_down);

Test(ctl_image_values, a_second_image_gives_four_combinations)
{
	world_boot(&w, NULL);
	world_run(&w, 5000);
	commit("coreos", REF_A, false);
	commit("coreos-2", REF_B, true);
	cr_assert(in_file(PCR4_A) && in_file(PCR4_B) && in_file(PCR4_AB) && in_file(PCR4_BA));
	cr_assert_str_eq(declared(BOOT_A), "{\"images\":[\"coreos\"]}");
	cr_assert_str_eq(declared(BOOT_B), "{\"images\":[\"coreos-2\"]}");
	cr_assert_str_eq(declared(BOOT_AB), "{\"images\":[\"coreos\",\"coreos-2\"]}");
	cr_assert_str_eq(declared(BOOT_BA), "{\"images\":[\"coreos\",\"coreos-2\"]}");
}

Test(ctl_image_values, what_is_revoked_goes_everywhere_before_the_finalizer)
{
	world_boot(&w, NULL);
	world_run(&w, 5000);
	commit("coreos", REF_A, false);
	commit("coreos-2", REF_B, true);
	trustee_takes_all();
	fake_api_delete(w.api, &kobj_image, NS, "coreos");
	world_run(&w, 30000);
	cr_assert(world_get(&w, &kobj_image, "coreos"), "Trustee has confirmed nothing yet");
	cr_assert_str_eq(reason("coreos"), "Revoking");
	cr_assert(!in_file(PCR4_A) && !in_file(PCR4_AB) && in_file(PCR4_B));
	cr_assert(strstr(rv_data("boot-sets.json"), BOOT_AB), "not forgotten before it is gone");
	cr_assert(kbs_sync_is_revoked(w.life->caches.sync, KBS_REFVALUE, BOOT_A));
	cr_assert(kbs_sync_is_revoked(w.life->caches.sync, KBS_REFVALUE, BOOT_AB));
	cr_assert_str_eq(declared("tpm_pcr4"), "[\"" UNCALLED_B "\",\"" PCR4_B "\"]");
	trustee_takes(BOOT_A);
	trustee_takes(BOOT_AB);
	trustee_takes(BOOT_BA);
	trustee_takes(QUIET_A);
	trustee_takes(QUIET_AB);
	trustee_takes(QUIET_BA);
	world_run(&w, 10000);
	cr_assert(world_get(&w, &kobj_image, "coreos"), "the arrays are not confirmed yet");
	cr_assert_str_eq(rv_data("boot-sets.json"), BOOTS_B);
	trustee_takes_all();
	world_run(&w, 10000);
	cr_assert_null(world_get(&w, &kobj_image, "coreos"));
	cr_assert_str_eq(rv_data("boot-sets.json"), BOOTS_B);
	cr_assert_null(strstr(
		json_get_str(json_get_obj(world_get(&w, &kobj_configmap, "image-pcrs"), "data"),
			"image-pcrs.json"),
		"\"coreos\""));
	cr_assert(committed("coreos-2"));
}

Test(ctl_image_values, who_stays_keeps_its_own_value)
{
	world_boot(&w, NULL);
	world_run(&w, 5000);
	commit("coreos", REF_A, false);
	commit("coreos-2", REF_B, true);
	fake_api_delete(w.api, &kobj_image, NS, "coreos-2");
	world_run(&w, 5000);
	/* The last of the four names, the three before it are being revoked. */
	cr_assert_str_eq(declared(BOOT_A), "{\"images\":[\"coreos\"]}");
	cr_assert(kbs_sync_is_revoked(w.life->caches.sync, KBS_REFVALUE, BOOT_B));
	cr_assert(kbs_sync_is_revoked(w.life->caches.sync, KBS_REFVALUE, BOOT_BA));
}

Test(ctl_image_values, arrays_alone_do_not_let_an_image_go)
{
	world_boot(&w, NULL);
	world_run(&w, 5000);
	commit("coreos", REF_A, false);
	trustee_takes_all();
	fake_api_delete(w.api, &kobj_image, NS, "coreos");
	world_run(&w, 5000);
	for (int i = 0; i < MODEL_RV_N_ARRAYS; i++)
		trustee_takes(model_rv_array_names[i]);
	world_run(&w, 10000);
	cr_assert(world_get(&w, &kobj_image, "coreos"));
	trustee_takes(BOOT_A);
	world_run(&w, 10000);
	cr_assert(world_get(&w, &kobj_image, "coreos"), "the other form is not confirmed yet");
	trustee_takes(QUIET_A);
	world_run(&w, 10000);
	cr_assert_null(world_get(&w, &kobj_image, "coreos"));
}

static void run_shortly(unsigned *ms)
{
	cr_assert_lt(*ms, 60000);
	world_run(&w, 10);
	*ms += 10;
}

/* What is to be written changes while it is being announced. */
Test(ctl_image_values, what_is_gone_while_it_is_announced_is_released_at_once)
{
	cleanup_free char *before = NULL;
	unsigned ms = 0;

	world_boot(&w, NULL);
	w.life->caches.kbs_in_process = true; /* else it is recorded first, which takes longer */
	world_run(&w, 5000);
	commit("coreos", REF_A, false);
	trustee_takes_all();
	fake_transport_latency(w.life->f, 1000);
	before = xstrdup(world_marked(&w, &kobj_cluster, "tec", MODEL_CLUSTER_VALUES_MARK));
	fake_api_delete(w.api, &kobj_image, NS, "coreos");
	while (str_eq(world_marked(&w, &kobj_cluster, "tec", MODEL_CLUSTER_VALUES_MARK), before))
		run_shortly(&ms);
	for (int i = 0; i < MODEL_RV_N_ARRAYS; i++)
		trustee_takes(model_rv_array_names[i]);
	trustee_takes(BOOT_A);
	for (ms = 0; strstr(rv_data("boot-sets.json"), BOOT_A);)
		run_shortly(&ms);
	cr_assert_lt(ms, 2100, "%u", ms); /* the answers of two announcements */
}

/* The status of the cluster is written at the same time, so its version is another one. */
Test(ctl_image_values, a_conflict_does_not_make_a_release_late)
{
	cleanup_free char *before = NULL;
	struct fake_expect *e;
	unsigned ms = 0;

	world_boot(&w, NULL);
	world_run(&w, 5000);
	commit("coreos", REF_A, false);
	trustee_takes_all();
	before = xstrdup(world_marked(&w, &kobj_cluster, "tec", MODEL_CLUSTER_VALUES_MARK));
	e = fake_transport_expect(w.life->f, "PATCH",
		"/apis/trusted-execution-clusters.io/v1alpha1/namespaces/" NS
		"/trustedexecutionclusters/tec");
	fake_expect_answer(e, 409, "{\"kind\":\"Status\",\"reason\":\"Conflict\",\"code\":409}");
	fake_api_delete(w.api, &kobj_image, NS, "coreos");
	while (str_eq(world_marked(&w, &kobj_cluster, "tec", MODEL_CLUSTER_VALUES_MARK), before))
		run_shortly(&ms);
	cr_assert(fake_expect_started(e));
	cr_assert_lt(ms, 300, "%u", ms);
}

/* The values are declared again between the confirmation and its record. */
Test(ctl_image_values, a_change_while_the_revocation_is_recorded_loses_nothing)
{
	world_boot(&w, NULL);
	world_run(&w, 5000);
	commit("coreos", REF_A, false);
	trustee_takes_all();
	fake_api_delete(w.api, &kobj_image, NS, "coreos");
	world_run(&w, 5000);
	for (int i = 0; i < MODEL_RV_N_ARRAYS; i++)
		trustee_takes(model_rv_array_names[i]);
	trustee_takes(BOOT_A);
	trustee_takes(QUIET_A);
	world_run(&w, 100);
	cr_assert(world_get(&w, &kobj_image, "coreos"));
	fake_api_merge(w.api, &kobj_configmap, NS, "trustee-rv-data",
		"{\"metadata\":{\"labels\":{\"a\":\"b\"}}}");
	world_run(&w, 10000);
	cr_assert_null(world_get(&w, &kobj_image, "coreos"));
	cr_assert(strstr(
		json_get_str(json_get_obj(world_get(&w, &kobj_configmap, "tec-revoked-0"), "data"),
			"deleted"),
		BOOT_A));
}

Test(ctl_image_values, a_name_that_appears_in_the_record_is_revoked)
{
	world_boot(&w, NULL);
	world_run(&w, 5000);
	commit("coreos", REF_A, false);
	fake_api_merge(w.api, &kobj_configmap, NS, "trustee-rv-data",
		"{\"data\":{\"boot-sets.json\":\"[\\\"boot.x.y\\\",\\\"ak.z\\\",7]\"}}");
	world_run(&w, 10000);
	cr_assert(kbs_sync_is_revoked(w.life->caches.sync, KBS_REFVALUE, "boot.x.y"));
	cr_assert(!kbs_sync_is_revoked(w.life->caches.sync, KBS_REFVALUE, "ak.z"));
	trustee_takes("boot.x.y");
	world_run(&w, 10000);
	cr_assert_str_eq(rv_data("boot-sets.json"), BOOTS_A);
}

/* trustee-rv-data cannot be written: nothing new is approved, but what has to go goes. */
Test(ctl_image_values, revoking_needs_no_write)
{
	struct fake_expect *e;

	world_boot(&w, NULL);
	world_run(&w, 5000);
	commit("coreos", REF_A, false);
	trustee_takes_all();
	e = fake_transport_expect(
		w.life->f, "PATCH", "/api/v1/namespaces/" NS "/configmaps/trustee-rv-data*");
	fake_expect_times(e, 0);
	fake_expect_answer(
		e, 403, "{\"kind\":\"Status\",\"reason\":\"Forbidden\",\"message\":\"no rights\"}");
	approve("coreos-2", REF_B);
	world_run(&w, 5000);
	job_says("coreos-2", entry_of(REF_B, true));
	world_run(&w, 10000);
	cr_assert_null(declared(BOOT_B));
	cr_assert_str_eq(reason("coreos-2"), "ComputationFailed");
	cr_assert(strstr(message("coreos-2"), "trustee-rv-data cannot be written"));
	fake_api_delete(w.api, &kobj_image, NS, "coreos");
	world_run(&w, 10000);
	cr_assert(kbs_sync_is_revoked(w.life->caches.sync, KBS_REFVALUE, BOOT_A));
	trustee_takes_all();
	cr_assert(world_get(&w, &kobj_image, "coreos"));
	cr_assert(strstr(message("coreos"), "cannot be written"), "%s", message("coreos"));
	world_kill(&w);
	world_boot(&w, NULL);
	world_run(&w, 10000);
	trustee_takes_all();
	world_run(&w, 10000);
	cr_assert_null(world_get(&w, &kobj_image, "coreos"));
	cr_assert(committed("coreos-2"));
}

/* It could go without being revoked. */
Test(ctl_image_values, an_image_without_our_finalizer_does_not_count)
{
	struct fake_expect *e;

	world_boot(&w, NULL);
	world_run(&w, 5000);
	commit("coreos", REF_A, false);
	world_kill(&w);
	fake_api_merge(w.api, &kobj_image, NS, "coreos", "{\"metadata\":{\"finalizers\":null}}");
	world_boot(&w, "cma");
	e = fake_transport_expect(w.life->f, "PATCH",
		"/apis/trusted-execution-clusters.io/v1alpha1/namespaces/" NS
		"/approvedimages/coreos*");
	fake_expect_times(e, 0);
	fake_expect_answer(
		e, 403, "{\"kind\":\"Status\",\"reason\":\"Forbidden\",\"message\":\"no rights\"}");
	ctl_kind_on(w.life->image);
	world_run(&w, 20000);
	cr_assert_str_eq(declared("tpm_pcr4"), "[]");
	cr_assert_null(declared(BOOT_A));
	world_kill(&w);
	world_boot(&w, NULL);
	world_run(&w, 10000);
	cr_assert_str_eq(declared(BOOT_A), "{\"images\":[\"coreos\"]}");
}

Test(ctl_image_values, after_the_last_one_arrays_are_empty_not_left)
{
	world_boot(&w, NULL);
	world_run(&w, 5000);
	commit("coreos", REF_A, false);
	trustee_takes_all();
	fake_api_delete(w.api, &kobj_image, NS, "coreos");
	world_run(&w, 5000);
	cr_assert_str_eq(declared("tpm_pcr4"), "[]");
	cr_assert_str_eq(declared("tpm_pcr14"), "[]");
	trustee_takes_all();
	world_run(&w, 5000);
	cr_assert_null(world_get(&w, &kobj_image, "coreos"));
	cr_assert(!in_file(PCR4_A) && in_file("tpm_pcr4"));
	cr_assert_str_eq(rv_data("boot-sets.json"), "[]");
}

/* Its finalizer was taken off by force while no operator ran. */
Test(ctl_image_values, what_went_without_us_is_revoked_by_its_record)
{
	world_boot(&w, NULL);
	world_run(&w, 5000);
	commit("coreos", REF_A, false);
	world_kill(&w);
	fake_api_merge(w.api, &kobj_image, NS, "coreos", "{\"metadata\":{\"finalizers\":null}}");
	fake_api_delete(w.api, &kobj_image, NS, "coreos");
	world_boot(&w, NULL);
	world_run(&w, 5000);
	cr_assert(kbs_sync_is_revoked(w.life->caches.sync, KBS_REFVALUE, BOOT_A));
	cr_assert_str_eq(declared("tpm_pcr4"), "[]");
	trustee_takes_all();
	cr_assert_str_eq(rv_data("boot-sets.json"), "[]");
}

Test(ctl_image_values, the_record_is_repaired_when_somebody_changes_it)
{
	world_boot(&w, NULL);
	world_run(&w, 5000);
	commit("coreos", REF_A, false);
	fake_api_merge(w.api, &kobj_configmap, NS, "trustee-rv-data",
		"{\"data\":{\"reference-values.json\":\"[]\",\"boot-sets.json\":\"x\"}}");
	world_run(&w, 10000);
	cr_assert(in_file(PCR4_A));
	cr_assert_str_eq(rv_data("boot-sets.json"), BOOTS_A);
	fake_api_delete(w.api, &kobj_configmap, NS, "trustee-rv-data");
	world_run(&w, 10000);
	cr_assert(in_file(PCR4_A));
	cr_assert_str_eq(rv_data("boot-sets.json"), BOOTS_A);
}

Test(ctl_image_values, values_are_written_anew_before_they_expire)
{
	world_boot(&w, NULL);
	world_run(&w, 5000);
	commit("coreos", REF_A, false);
	cleanup_free char *before = xstrdup(rv_data("reference-values.json"));
	clock_fake_set_wall(clock_wall_s() + 186 * 24 * 60 * 60);
	world_run(&w, 2 * 60 * 60 * 1000);
	cr_assert_str_neq(rv_data("reference-values.json"), before);
	cr_assert(in_file(PCR4_A));
}

/* ---- killed at every write */

static unsigned nth, deaths;

static void arm(void)
{
	fake_transport_die_after(w.life->f, nth);
}

static bool revive(void)
{
	if (!fake_transport_is_dead(w.life->f))
		return false;
	world_kill(&w);
	deaths++;
	world_boot(&w, NULL);
	return true;
}

static void live(uint64_t ms)
{
	for (uint64_t t = 0; t < ms; t += 1000) {
		world_run(&w, 1000);
		revive();
		/* No boot set is declared that is not written down. */
		if (declared(BOOT_A))
			cr_assert(strstr(rv_data("boot-sets.json"), BOOT_A));
		if (declared(BOOT_AB))
			cr_assert(strstr(rv_data("boot-sets.json"), BOOT_AB));
	}
}

static void confirm_while_living(void)
{
	for (int i = 0; i < 12; i++) {
		trustee_takes_all();
		live(5000);
	}
}

Test(ctl_image_values, killed_at_every_write_it_ends_the_same, .timeout = 120)
{
	/* What is announced has to be made in the same life: two announcements and one Job. */
	for (nth = 3; nth < 8; nth++) {
		deaths = 0;
		w.arm = arm;
		world_boot(&w, NULL);
		approve("coreos", REF_A);
		approve("coreos-2", REF_B);
		live(120000);
		cr_assert(has_job("coreos") && has_job("coreos-2"));
		job_says("coreos", entry_of(REF_A, false));
		job_says("coreos-2", entry_of(REF_B, true));
		live(60000);
		cr_assert(committed("coreos") && committed("coreos-2"), "nth %u: %s", nth,
			message("coreos"));
		cr_assert(in_file(PCR4_BA));
		confirm_while_living();
		fake_api_delete(w.api, &kobj_image, NS, "coreos");
		fake_api_delete(w.api, &kobj_image, NS, "coreos-2");
		live(30000);
		cr_assert(world_get(&w, &kobj_image, "coreos"));
		confirm_while_living();
		cr_assert_null(world_get(&w, &kobj_image, "coreos"));
		cr_assert_null(world_get(&w, &kobj_image, "coreos-2"));
		cr_assert_str_eq(rv_data("boot-sets.json"), "[]");
		cr_assert_geq(deaths, 3);
		w.arm = NULL;
		world_kill(&w);
		fake_api_collect(w.api);
	}
}

/* The cluster controller puts the ConfigMaps that it made into the cache before the watch does. */
Test(ctl_image_values, a_configmap_just_made_is_read_like_any_other)
{
	world_boot(&w, "");
	fake_api_hold_watches(w.api, true);
	ctl_cluster_on(w.life->cluster);
	ctl_kind_on(w.life->image);
	world_run(&w, 5000);
	cr_assert(k8s_cache_find(w.life->caches.cache[CACHES_CONFIGMAPS], "trustee-rv-data"));
	cr_assert_str_eq(declared("tpm_pcr4"), "[]");
	fake_api_hold_watches(w.api, false);
	world_run(&w, 5000);
	commit("coreos", REF_A, false);
	cr_assert(in_file(PCR4_A));
}
