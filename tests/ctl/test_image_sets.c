/* SPDX-License-Identifier: MIT */
/* Images whose entries have variants: what counts, and what is combined with what. */
#include "config.h"

#include <criterion/criterion.h>
#include <stdio.h>

#include "ctl/images.h"

TestSuite(ctl_image_sets, .init = images_up, .fini = images_down);

/* The name of the boot set of a loader that measures this kernel so often. */
static const char *boot_of(bool loader_b, const char *kernel, int times)
{
	static char ring[8][RENDER_BOOT_NAME_MAX + 1];
	static unsigned next;
	char *name = ring[next++ % ARRAY_LEN(ring)];
	struct pcr_events e = PCR_EVENTS_INIT;
	uint8_t pcr4[SHA256_LEN], pcr14[SHA256_LEN];

	add_pcr4(&e, loader_b ? SHIM_B : SHIM_A, loader_b ? GRUB_B : GRUB_A, NULL);
	for (int i = 0; i < times; i++)
		add(&e, PCR4_VMLINUZ, kernel);
	add_pcr14(&e);
	pcr_events_value(&e, 4, pcr4);
	pcr_events_value(&e, 14, pcr14);
	render_boot_name(pcr4, NULL, pcr14, name);
	pcr_events_fini(&e);
	return name;
}

static struct json_object *with_variant(
	struct json_object *entry, bool b, const char *when, bool secure_boot, int times)
{
	struct json_object *list = json_get_arr(entry, "variants"), *o = json_obj();
	struct pcr_events e = PCR_EVENTS_INIT;

	add_pcr4(&e, b ? SHIM_B : SHIM_A, b ? GRUB_B : GRUB_A, NULL);
	for (int i = 0; i < times; i++)
		add(&e, PCR4_VMLINUZ, b ? KERNEL_B : KERNEL_A);
	add_pcr14(&e);
	json_add_str(o, "when", when);
	json_add_bool(o, "secure_boot", secure_boot);
	json_add(o, "pcrs", pcr_events_json(&e));
	pcr_events_fini(&e);
	if (!list) {
		json_add(entry, "variants", json_arr());
		list = json_get_arr(entry, "variants");
	}
	json_push(list, o);
	return entry;
}

/* Approved, and computed by a Job: once is most likely, twice is possible, off is off. */
static void commit_variants(const char *name, const char *reference, bool b)
{
	struct json_object *entry = entry_of(reference, b);

	approve(name, reference);
	world_run(&w, 5000);
	cr_assert(has_job(name));
	with_variant(entry, b, "twice", true, 2);
	job_says(name, with_variant(entry, b, "Secure Boot off", false, 0));
	job_ends(name, "Complete", "CompletionsReached");
	world_run(&w, 5000);
	cr_assert(committed(name), "%s: %s", reason(name), message(name));
}

static void secure_boot(const char *name, const char *value)
{
	cleanup_free char *patch = xasprintf("{\"spec\":{\"secureBoot\":\"%s\"}}", value);

	fake_api_merge(w.api, &kobj_image, NS, name, patch);
	world_run(&w, 5000);
}

/* Names in trustee-rv-data: two for each state, or one where an entry failed first. */
static size_t n_boots(void)
{
	cleanup_json struct json_object *names = json_tokener_parse(rv_data("boot-sets.json"));

	return json_object_array_length(names);
}

Test(ctl_image_sets, all_that_secure_boot_allows_counts)
{
	world_boot(&w, NULL);
	world_run(&w, 5000);
	commit_variants("coreos", REF_A, false);
	cr_assert_str_eq(declared(BOOT_A), "{\"images\":[\"coreos\"]}");
	cr_assert_str_eq(declared(boot_of(false, KERNEL_A, 2)), "{\"images\":[\"coreos\"]}");
	cr_assert_null(declared(boot_of(false, KERNEL_A, 0)));
	cr_assert_eq(n_boots(), 4);
	cr_assert(strstr(message("coreos"), "(twice)"));
	cr_assert_null(strstr(message("coreos"), "Secure Boot off"));
}

Test(ctl_image_sets, secure_boot_off_counts_while_spec_says_any)
{
	world_boot(&w, NULL);
	world_run(&w, 5000);
	commit_variants("coreos", REF_A, false);
	secure_boot("coreos", "Any");
	cr_assert_str_eq(declared(boot_of(false, KERNEL_A, 0)), "{\"images\":[\"coreos\"]}");
	cr_assert_eq(n_boots(), 6);
	cr_assert(strstr(message("coreos"), "(Secure Boot off)"));
	secure_boot("coreos", "Required");
	cr_assert(kbs_sync_is_revoked(
		w.life->caches.sync, KBS_REFVALUE, boot_of(false, KERNEL_A, 0)));
	cr_assert_str_eq(declared(BOOT_A), "{\"images\":[\"coreos\"]}");
}

/* Two loaders times two kernels times what each loader may do; and off, each by itself. */
Test(ctl_image_sets, states_do_not_mix)
{
	world_boot(&w, NULL);
	world_run(&w, 5000);
	commit_variants("coreos", REF_A, false);
	commit_variants("coreos-2", REF_B, true);
	cr_assert_eq(n_boots(), 16);
	for (int i = 0; i < 8; i++)
		cr_assert(declared(boot_of(i & 1, i & 2 ? KERNEL_B : KERNEL_A, i & 4 ? 2 : 1)));
	secure_boot("coreos", "Any");
	cr_assert_eq(n_boots(), 18, "%zu", n_boots());
	cr_assert_str_eq(declared(boot_of(false, KERNEL_A, 0)), "{\"images\":[\"coreos\"]}");
	secure_boot("coreos-2", "Any");
	cr_assert_eq(n_boots(), 20, "%zu", n_boots());
}

/* ---- without shim */

/* PCR 14 is zero then, which the image says itself; on a platform with MOK lists, too. */
Test(ctl_image_sets, an_image_without_shim_is_approved_with_pcr14_zero)
{
	static const char zero[] =
		"0000000000000000000000000000000000000000000000000000000000000000";
	struct pcr_events e = PCR_EVENTS_INIT;
	char name[RENDER_BOOT_NAME_MAX + 1];
	uint8_t pcr4[SHA256_LEN], pcr14[SHA256_LEN];

	world_boot(&w, NULL);
	world_run(&w, 5000);
	approve("sealed", REF_A);
	world_run(&w, 5000);
	add(&e, PCR4_EFI_CALL, EFI_CALL);
	add(&e, PCR4_SEPARATOR, SEPARATOR);
	add(&e, PCR4_UKI, KERNEL_A);
	add(&e, PCR14_NO_SHIM, zero);
	job_says("sealed", model_pcrs_entry_json(REF_A, 1800000000000000, &e));
	job_ends("sealed", "Complete", "CompletionsReached");
	world_run(&w, 5000);
	cr_assert(committed("sealed"), "%s: %s", reason("sealed"), message("sealed"));
	cr_assert(strstr(message("sealed"), zero), "%s", message("sealed"));
	cr_assert(pcr_events_value(&e, 4, pcr4) && pcr_events_value(&e, 14, pcr14));
	render_boot_name(pcr4, NULL, pcr14, name);
	cr_assert(str_ends(name, zero));
	cr_assert_str_eq(declared(name), "{\"images\":[\"sealed\"]}");
	cr_assert_eq(n_boots(), 2);
	cr_assert(strstr(declared("tpm_pcr14"), zero));
	pcr_events_fini(&e);
}

/* ---- what may come before the boot loader */

/* As boot_of(), of loader A and kernel A once, after `failed` entries or fwupd's program. */
static const char *boot_after(unsigned failed, const char *update)
{
	static char ring[4][RENDER_BOOT_NAME_MAX + 1];
	static unsigned next;
	char *name = ring[next++ % ARRAY_LEN(ring)];
	struct pcr_events e = PCR_EVENTS_INIT, later = PCR_EVENTS_INIT;
	uint8_t pcr4[SHA256_LEN], pcr14[SHA256_LEN];

	add(&e, PCR4_EFI_CALL, EFI_CALL);
	add(&e, PCR4_SEPARATOR, SEPARATOR);
	add(&e, PCR4_SHIM, SHIM_A);
	if (update)
		add(&e, PCR4_FIRMWARE_UPDATE, update);
	add(&e, PCR4_GRUB, GRUB_A);
	add(&e, PCR4_VMLINUZ, KERNEL_A);
	add_pcr14(&e);
	cr_assert(pcr_boot_failed(&e, failed, &later));
	pcr_events_value(&later, 4, pcr4);
	pcr_events_value(&later, 14, pcr14);
	render_boot_name(pcr4, NULL, pcr14, name);
	pcr_events_fini(&e);
	pcr_events_fini(&later);
	return name;
}

static void boot_path(const char *name, const char *value)
{
	cleanup_free char *patch = xasprintf("{\"spec\":{\"bootPath\":\"%s\"}}", value);

	fake_api_merge(w.api, &kobj_image, NS, name, patch);
	world_run(&w, 5000);
}

Test(ctl_image_sets, what_comes_first_counts_while_spec_says_so)
{
	struct json_object *entry = entry_of(REF_A, false), *list, *o = json_obj();
	struct pcr_events e = PCR_EVENTS_INIT;

	world_boot(&w, NULL);
	world_run(&w, 5000);
	approve("coreos", REF_A);
	world_run(&w, 5000);
	add(&e, PCR4_EFI_CALL, EFI_CALL);
	add(&e, PCR4_SEPARATOR, SEPARATOR);
	add(&e, PCR4_SHIM, SHIM_A);
	add(&e, PCR4_FIRMWARE_UPDATE, KERNEL_B);
	add(&e, PCR4_GRUB, GRUB_A);
	add(&e, PCR4_VMLINUZ, KERNEL_A);
	add_pcr14(&e);
	json_add_str(o, "when", "after a firmware update");
	json_add_bool(o, "secure_boot", true);
	json_add(o, "pcrs", pcr_events_json(&e));
	list = json_push(json_arr(), o);
	job_says("coreos", json_add(entry, "variants", list));
	job_ends("coreos", "Complete", "CompletionsReached");
	world_run(&w, 5000);
	cr_assert_eq(n_boots(), 2, "%zu", n_boots());
	cr_assert_null(strstr(message("coreos"), "firmware update"));
	boot_path("coreos", "AllowFailedEntries");
	cr_assert_eq(n_boots(), 4, "%zu", n_boots());
	cr_assert(declared(boot_after(1, NULL)) && declared(boot_after(2, NULL)));
	cr_assert(strstr(message("coreos"), "Up to 2 boot entries"), "%s", message("coreos"));
	boot_path("coreos", "AllowFirmwareUpdates");
	cr_assert_eq(n_boots(), 6, "%zu", n_boots());
	cr_assert(declared(boot_after(0, KERNEL_B)));
	cr_assert(strstr(message("coreos"), "(after a firmware update)"));
	boot_path("coreos", "Strict");
	cr_assert(kbs_sync_is_revoked(w.life->caches.sync, KBS_REFVALUE, boot_after(2, NULL)));
	cr_assert_str_eq(declared(BOOT_A), "{\"images\":[\"coreos\"]}");
	pcr_events_fini(&e);
}

/* ---- the bound */

static char *made_up(unsigned image, unsigned variant)
{
	char text[32], *hex = xcalloc(1, SHA256_HEX_LEN + 1);
	uint8_t digest[SHA256_LEN];

	snprintf(text, sizeof(text), "%u %u", image, variant);
	bytes_sha256(text, strlen(text), digest);
	bytes_to_hex(digest, SHA256_LEN, hex);
	return hex;
}

/* An image that shows so many values, of which each has a loader and a kernel of its own. */
static void approve_with(unsigned image, unsigned n_sets)
{
	cleanup_free char *name = xasprintf("image-%02u", image);
	cleanup_free char *digest = made_up(image, 0);
	cleanup_free char *reference = xasprintf("q.io/x@sha256:%s", digest);
	struct json_object *entry = entry_of(reference, false), *list = json_arr();

	for (unsigned i = 0; i < n_sets; i++) {
		cleanup_free char *loader = made_up(image, 2 * i + 1),
				  *kernel = made_up(image, 2 * i + 2);
		cleanup_pcr_events struct pcr_events e = PCR_EVENTS_INIT;

		add_pcr4(&e, loader, loader, kernel);
		add_pcr14(&e);
		if (i == 0) {
			json_add(entry, "pcrs", pcr_events_json(&e));
			continue;
		}
		struct json_object *o = json_add_str(json_obj(), "when", "sometimes");

		json_add_bool(o, "secure_boot", true);
		json_push(list, json_add(o, "pcrs", pcr_events_json(&e)));
	}
	if (n_sets > 1)
		json_add(entry, "variants", list);
	else
		json_object_put(list);
	/* As an entry that is there already and is taken over: messages are shorter. */
	cleanup_free char *text = xasprintf(
		"{\"metadata\":{\"name\":\"%s\",\"creationTimestamp\":\"2019-01-01T00:00:00Z\"},"
		"\"spec\":{\"image\":\"%s\"}}",
		name, reference);
	json_add_str(entry, "first_seen", "2026-01-01T00:00:00Z");
	stranger_writes(name, entry);
	fake_api_put(w.api, &kobj_image, NS, text);
}

static void bound_up(void)
{
	images_up();
	fake_api_put(w.api, &kobj_configmap, NS,
		"{\"metadata\":{\"name\":\"tec-operator-since\","
		"\"creationTimestamp\":\"2020-01-01T00:00:00Z\"}}");
	world_boot(&w, NULL);
	world_run(&w, 5000);
}

TestSuite(ctl_image_bound, .init = bound_up, .fini = images_down);

Test(ctl_image_bound, thirty_images_that_share_nothing_are_in_force)
{
	for (unsigned i = 0; i < 30; i++)
		approve_with(i, 1);
	world_run(&w, 20000);
	cr_assert_eq(n_boots(), 1800);
	cr_assert_eq(strlen(declared("tpm_pcr4")), 1800 * (SHA256_HEX_LEN + 3) + 1);
	cr_assert(committed("image-29"), "%s", message("image-29"));
}

/* The one with which there would be too many is refused as a whole; who was there stays. */
Test(ctl_image_bound, the_newest_that_passes_the_bound_is_refused)
{
	for (unsigned i = 0; i < 5; i++)
		approve_with(i, 6);
	world_run(&w, 20000);
	cr_assert(committed("image-00") && committed("image-04"));
	cleanup_free char *before = xstrdup(rv_data("boot-sets.json"));
	cleanup_free char *file = xstrdup(rv_data("reference-values.json"));
	approve_with(5, 16);
	world_run(&w, 20000);
	cr_assert_str_eq(reason("image-05"), "TooManyStates");
	cr_assert(strstr(message("image-05"), "960") && strstr(message("image-05"), "Delete"), "%s",
		message("image-05"));
	for (unsigned i = 0; i < 5; i++) {
		cleanup_free char *name = xasprintf("image-%02u", i);

		cr_assert(committed(name), "%s: %s", name, message(name));
	}
	cr_assert_str_eq(rv_data("boot-sets.json"), before);
	cr_assert_str_eq(rv_data("reference-values.json"), file);
}

/* Approved first, computed last: what came into force in between stays. */
Test(ctl_image_bound, an_older_image_that_is_computed_later_is_the_newest)
{
	approve("coreos", REF_A);
	world_run(&w, 5000);
	for (unsigned i = 0; i < 30; i++)
		approve_with(i, 1);
	approve_with(30, 8);
	world_run(&w, 20000);
	cr_assert_str_eq(reason("image-30"), "TooManyStates");
	cr_assert(committed("image-29"));
	job_says("coreos", entry_of(REF_A, false));
	world_run(&w, 20000);
	cr_assert(committed("image-29"), "%s", message("image-29"));
}

Test(ctl_image_bound, who_was_refused_comes_in_when_there_is_room)
{
	for (unsigned i = 0; i < 6; i++)
		approve_with(i, i == 5 ? 16 : 6);
	world_run(&w, 20000);
	cr_assert_str_eq(reason("image-05"), "TooManyStates");
	for (unsigned i = 1; i < 5; i++) {
		cleanup_free char *name = xasprintf("image-%02u", i);

		fake_api_delete(w.api, &kobj_image, NS, name);
	}
	world_run(&w, 20000);
	cr_assert(committed("image-05"), "%s", message("image-05"));
}

/* 0.1.0 took 306 MB and 10 seconds for these. */
Test(ctl_image_bound, sixteen_images_of_sixteen_values_cost_little)
{
	unsigned in_force = 0;

	for (unsigned i = 0; i < 16; i++)
		approve_with(i, 16);
	world_run(&w, 60000);
	for (unsigned i = 0; i < 16; i++) {
		cleanup_free char *name = xasprintf("image-%02u", i);

		in_force += committed(name);
		if (!committed(name))
			cr_assert_str_eq(
				reason(name), "TooManyStates", "%s: %s", name, message(name));
	}
	cr_assert_geq(in_force, 1);
	cr_assert_leq(n_boots(), 2 * 960);
}
