/* SPDX-License-Identifier: MIT */
/* Images whose entries have variants: what counts, and what is combined with what. */
#include "config.h"

#include <criterion/criterion.h>

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
	job_writes(name, with_variant(entry, b, "Secure Boot off", false, 0));
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
	cr_assert_eq(n_boots(), 2);
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
	cr_assert_eq(n_boots(), 3);
	cr_assert(strstr(message("coreos"), "(Secure Boot off)"));
	secure_boot("coreos", "Required");
	cr_assert(kbs_sync_is_revoked(w.life->sync, KBS_REFVALUE, boot_of(false, KERNEL_A, 0)));
	cr_assert_str_eq(declared(BOOT_A), "{\"images\":[\"coreos\"]}");
}

/* Two loaders times two kernels times what each loader may do; and off, each by itself. */
Test(ctl_image_sets, states_do_not_mix)
{
	world_boot(&w, NULL);
	world_run(&w, 5000);
	commit_variants("coreos", REF_A, false);
	commit_variants("coreos-2", REF_B, true);
	cr_assert_eq(n_boots(), 8);
	for (int i = 0; i < 8; i++)
		cr_assert(declared(boot_of(i & 1, i & 2 ? KERNEL_B : KERNEL_A, i & 4 ? 2 : 1)));
	secure_boot("coreos", "Any");
	cr_assert_eq(n_boots(), 9, "%zu", n_boots());
	cr_assert_str_eq(declared(boot_of(false, KERNEL_A, 0)), "{\"images\":[\"coreos\"]}");
	secure_boot("coreos-2", "Any");
	cr_assert_eq(n_boots(), 10, "%zu", n_boots());
}
