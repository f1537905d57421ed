/* SPDX-License-Identifier: MIT */
/* Approved images while spec.attestation names platforms: two of them, of which "ovmf" has the PCR
 * 7 of published values and "old" another one. */
#include "config.h"

#include <criterion/criterion.h>
#include <stdio.h>

#include "ctl/images.h"
#include "tec/pcr/platform.h"

#define BOOT7_A "boot." PCR4_A "." PCR7_A "." PCR14
#define ATTESTATION(names, pcr7)                                                                   \
	"{\"publicTrusteeAddr\":\"kbs-service\",\"attestation\":{\"platformConfigMaps\":[" names   \
	"],\"pcr7\":\"" pcr7 "\"}}"

static struct render_pcrjob_platforms mounted;

/* The ConfigMaps allow a shim that validates nothing, or programs of the firmware. */
static bool any_kernel, own_programs;

/* A ConfigMap with a db of this content, and its digest. */
static void variables(const char *name, const char *db, uint8_t digest[SHA256_LEN])
{
	struct pcr_platform_file files[PCR_PLATFORM_N_FILES] = {{NULL, 0}};
	cleanup_free char *text =
		xasprintf("{\"metadata\":{\"name\":\"%s\"},\"data\":{\"%s\":\"%s\"%s%s}}", name,
			pcr_platform_files[PCR_PLATFORM_DB], db,
			any_kernel ? ",\"AllowValidationDisabled\":\"true\"" : "",
			own_programs ? ",\"AllowFirmwareApplications\":\"true\"" : "");

	files[PCR_PLATFORM_DB] = (struct pcr_platform_file){db, strlen(db)};
	if (any_kernel)
		files[PCR_PLATFORM_ALLOW_VALIDATION_OFF] =
			(struct pcr_platform_file){"true", strlen("true")};
	if (own_programs)
		files[PCR_PLATFORM_ALLOW_APPLICATIONS] =
			(struct pcr_platform_file){"true", strlen("true")};
	pcr_platform_digest(files, digest);
	fake_api_put(w.api, &kobj_configmap, NS, text);
	if (w.life)
		loop_drain(w.loop);
}

/* The Job's platforms from here on: sorted by name, as it has them. */
static void mount(const char *name, const char *db)
{
	struct render_pcrjob_platforms *p = &mounted;
	size_t i = 0;

	while (i < p->n && strcmp(p->v[i].name, name) != 0)
		i++;
	p->n += i == p->n;
	p->v[i].name = name;
	variables(name, db, p->v[i].variables);
	job_platforms = p;
}

static void up(void)
{
	images_up();
	mounted = (struct render_pcrjob_platforms){.n = 0};
	job_platforms = NULL;
}

TestSuite(ctl_image_platforms, .init = up, .fini = images_down);

/* One platform, one image, and its Job is there. */
static void approved_on_ovmf(const char *spec)
{
	mount("ovmf", "keys");
	world_cluster(&w, "tec", spec);
	world_boot(&w, NULL);
	approve("coreos", REF_A);
	world_run(&w, 5000);
}

/* Add the first of these to the Job's answer, which is returned. */
static struct json_object *add_platform(struct json_object *entry, const struct model_platforms *p)
{
	cleanup_json struct json_object *list = model_platforms_json(p);

	if (!json_get_arr(entry, "platforms"))
		json_add(entry, "platforms", json_arr());
	json_push(json_get_arr(entry, "platforms"), json_object_get(json_at(list, 0)));
	return entry;
}

/* One of the Job's platforms; sbat NULL: why instead of a value. */
static struct json_object *with_platform(struct json_object *entry, const char *name,
	const uint8_t digest[SHA256_LEN], const char *sbat)
{
	cleanup_model_platforms struct model_platforms p = {.n = 1};

	p.v[0] = (struct model_platform){.name = xstrdup(name)};
	memcpy(p.v[0].variables, digest, SHA256_LEN);
	if (sbat)
		add_pcr7(&p.v[0].events, sbat);
	else
		p.v[0].why = xstrdup("Secure Boot is off there");
	return add_platform(entry, &p);
}

static struct json_object *entry7(const char *reference, bool b)
{
	struct json_object *o = entry_of(reference, b);

	for (size_t i = 0; i < mounted.n; i++)
		with_platform(o, mounted.v[i].name, mounted.v[i].variables,
			strcmp(mounted.v[i].name, "old") == 0 ? SBAT_44 : SBAT_42);
	return o;
}

static const char *boot7(const char *pcr4, const char *sbat)
{
	static char ring[4][RENDER_BOOT_NAME_MAX + 1];
	static unsigned next;
	char *name = ring[next++ % 4];
	struct pcr_events e = PCR_EVENTS_INIT;

	add_pcr7(&e, sbat);
	snprintf(name, sizeof(ring[0]), "boot.%s.%s." PCR14, pcr4, value_of(&e, 7));
	pcr_events_fini(&e);
	return name;
}

static unsigned jobs(void)
{
	return fake_api_count(w.api, &kobj_job, NS);
}

Test(ctl_image_platforms, ignored_they_are_computed_and_published_and_decide_nothing)
{
	mount("ovmf", "keys");
	world_cluster(&w, "tec", ATTESTATION("\"ovmf\"", "Ignore"));
	label.value = "not asked";
	world_boot(&w, NULL);
	approve("coreos", REF_A);
	world_run(&w, 5000);
	cr_assert_eq(label.asked, 0, "a label knows no platform");
	cr_assert(has_job("coreos"), "%s", message("coreos"));
	job_says("coreos", entry7(REF_A, false));
	job_ends("coreos", "Complete", "CompletionsReached");
	world_run(&w, 5000);
	cr_assert(committed("coreos"), "%s", message("coreos"));
	cr_assert_str_eq(declared(BOOT_A), "{\"images\":[\"coreos\"]}");
	cr_assert_str_eq(rv_data("boot-sets.json"), BOOTS_A);
	cr_assert_str_eq(declared("tpm_pcr7"), "[\"" PCR7_A "\"]");
	cr_assert(in_file("tpm_pcr7") && in_file(PCR7_A));
}

Test(ctl_image_platforms, a_settled_image_makes_no_request)
{
	mount("old", "keys");
	mount("ovmf", "keys");
	world_cluster(&w, "tec", ATTESTATION("\"ovmf\",\"old\"", "Require"));
	world_boot(&w, NULL);
	approve("coreos", REF_A);
	world_run(&w, 5000);
	job_says("coreos", with_platform(with_platform(entry_of(REF_A, false), "ovmf",
						 mounted.v[1].variables, SBAT_42),
				   "old", mounted.v[0].variables, NULL));
	job_ends("coreos", "Complete", "CompletionsReached");
	world_run(&w, 20000);
	cr_assert(committed("coreos"), "%s", message("coreos"));
	cr_assert(strstr(message("coreos"), "known for platform ovmf."), "%s", message("coreos"));
	cr_assert(
		strstr(message("coreos"), "no values for platform old: Secure Boot is off there."));
	fake_transport_forget(w.life->f);
	world_run(&w, 3 * 60 * 60 * 1000); /* resync included */
	cr_assert_eq(fake_transport_writes(w.life->f), 0);
	cr_assert_eq(fake_transport_count(w.life->f, "get", NULL), 0);
}

Test(ctl_image_platforms, an_unrelated_configmap_wakes_nobody)
{
	uint8_t digest[SHA256_LEN];

	approved_on_ovmf(ATTESTATION("\"ovmf\"", "Require"));
	job_says("coreos", entry7(REF_A, false));
	world_run(&w, 5000);
	cr_assert(committed("coreos"), "%s", message("coreos"));
	fake_transport_forget(w.life->f);
	variables("other", "keys", digest);
	fake_api_merge(
		w.api, &kobj_configmap, NS, "ovmf", "{\"metadata\":{\"labels\":{\"a\":\"b\"}}}");
	world_run(&w, 5000);
	cr_assert_eq(fake_transport_writes(w.life->f), 0);
}

/* The Job's answer for a platform with MOK variables; four: shim's validation is off there. */
static struct json_object *with_mok(struct json_object *entry, const char *name,
	const uint8_t digest[SHA256_LEN], bool seven, bool four)
{
	cleanup_model_platforms struct model_platforms p = {.n = 1};
	struct pcr_events *e = &p.v[0].events;

	p.v[0] = (struct model_platform){.name = xstrdup(name)};
	memcpy(p.v[0].variables, digest, SHA256_LEN);
	if (four)
		add(e, PCR4_SHIM, SHIM_A);
	if (seven)
		add_pcr7(e, SBAT_42);
	add(e, PCR14_MOK_LIST, MOK_LIST_X);
	return add_platform(entry, &p);
}

#define PCR14_MOK "a139f64a4097863aeac8af489801a7caa81856ed235a508a347398c73e88cb5e"
#define PCR4_OFF  "15f284408f04c59506d2138b96ce5abaab0909df3e9a47496e53b21022514d70"

Test(ctl_image_platforms, mok_variables_are_boot_sets_of_their_own)
{
	approved_on_ovmf(ATTESTATION("\"ovmf\"", "Ignore"));
	job_says("coreos",
		with_mok(entry_of(REF_A, false), "ovmf", mounted.v[0].variables, true, false));
	world_run(&w, 5000);
	cr_assert(committed("coreos"), "%s", message("coreos"));
	cr_assert(strstr(message("coreos"), "On platform ovmf, PCR 14 is " PCR14_MOK "."), "%s",
		message("coreos"));
	cr_assert_str_eq(declared(BOOT_A), "{\"images\":[\"coreos\"]}");
	cr_assert_str_eq(declared("boot." PCR4_A "." PCR14_MOK), "{\"images\":[\"coreos\"]}");
	cr_assert_str_eq(declared("tpm_pcr7"), "[\"" PCR7_A "\"]");
	cr_assert_eq(strlen(rv_data("boot-sets.json")), 4 * (strlen(BOOT_A) + 3) + 1, "%s",
		rv_data("boot-sets.json"));

	fake_api_merge(w.api, &kobj_cluster, NS, "tec",
		"{\"spec\":{\"attestation\":{\"pcr7\":\"Require\"}}}");
	world_run(&w, 5000);
	cr_assert_str_eq(
		declared("boot." PCR4_A "." PCR7_A "." PCR14_MOK), "{\"images\":[\"coreos\"]}");
	cr_assert_null(declared(BOOT7_A), "no node of this platform has shim's own list");
	cr_assert(kbs_sync_is_revoked(w.life->caches.sync, KBS_REFVALUE, BOOT_A));
}

Test(ctl_image_platforms, validation_that_is_off_has_a_pcr4_of_its_own)
{
	any_kernel = true;
	approved_on_ovmf(ATTESTATION("\"ovmf\"", "Ignore"));
	job_says("coreos",
		with_mok(entry_of(REF_A, false), "ovmf", mounted.v[0].variables, false, true));
	world_run(&w, 5000);
	cr_assert(
		strstr(message("coreos"), "and PCR 4 " PCR4_OFF ": shim's validation is off there"),
		"%s", message("coreos"));
	cr_assert_str_eq(declared("boot." PCR4_OFF "." PCR14_MOK), "{\"images\":[\"coreos\"]}");
	cr_assert_str_eq(declared(BOOT_A), "{\"images\":[\"coreos\"]}");
	cr_assert_null(declared("boot." PCR4_A "." PCR14_MOK));
	cr_assert_null(declared("boot." PCR4_OFF "." PCR14));

	/* Without the firmware's variables there is no PCR 7 to require. */
	fake_api_merge(w.api, &kobj_cluster, NS, "tec",
		"{\"spec\":{\"attestation\":{\"pcr7\":\"Require\"}}}");
	world_run(&w, 5000);
	cr_assert_not(committed("coreos"));
	cr_assert(
		strstr(message("coreos"),
			"PCR 7 of platform ovmf is unknown: its ConfigMap has no firmware variables"),
		"%s", message("coreos"));
	cr_assert(kbs_sync_is_revoked(w.life->caches.sync, KBS_REFVALUE, BOOT_A));
}

Test(ctl_image_platforms, any_kernel_is_taken_back_at_once)
{
	any_kernel = true;
	approved_on_ovmf(ATTESTATION("\"ovmf\"", "Ignore"));
	job_says("coreos",
		with_mok(entry_of(REF_A, false), "ovmf", mounted.v[0].variables, false, true));
	world_run(&w, 5000);
	cr_assert(declared("boot." PCR4_OFF "." PCR14_MOK), "%s", message("coreos"));

	/* No Job has told other values yet, and perhaps none ever will. */
	any_kernel = false;
	mount("ovmf", "keys");
	world_run(&w, 5000);
	cr_assert_null(declared("boot." PCR4_OFF "." PCR14_MOK), "%s", message("coreos"));
	cr_assert(kbs_sync_is_revoked(
		w.life->caches.sync, KBS_REFVALUE, "boot." PCR4_OFF "." PCR14_MOK));
	cr_assert_null(
		strstr(message("coreos"), "the previous value is used"), "%s", message("coreos"));
	cr_assert_str_eq(declared(BOOT_A), "{\"images\":[\"coreos\"]}");
}

/* ---- firmware that measures other events before the boot loader */

/* Of the platform's event, and of programs of the tables after it. */
static const char *pcr4_after(
	const char *own, const char *shim, const char *grub, const char *kernel)
{
	static char ring[4][SHA256_HEX_LEN + 1];
	static unsigned next;
	cleanup_pcr_events struct pcr_events e = PCR_EVENTS_INIT;
	char *hex = ring[next++ % 4];

	add(&e, PCR4_PLATFORM, own);
	add(&e, PCR4_SHIM, shim);
	add(&e, PCR4_GRUB, grub);
	add(&e, PCR4_VMLINUZ, kernel);
	strcpy(hex, value_of(&e, 4));
	return hex;
}

static const char *boot4(const char *pcr4)
{
	static char ring[4][RENDER_BOOT_NAME_MAX + 1];
	static unsigned next;
	char *name = ring[next++ % 4];

	snprintf(name, sizeof(ring[0]), "boot.%s." PCR14, pcr4);
	return name;
}

/* The Job's answer for a platform with one event of its own; program: it is a program. */
static struct json_object *with_own(
	struct json_object *entry, const char *name, const char *hash, bool program, bool seven)
{
	cleanup_model_platforms struct model_platforms p = {.n = 1};
	struct pcr_events *e = &p.v[0].events;

	p.v[0] = (struct model_platform){.name = xstrdup(name)};
	for (size_t i = 0; i < mounted.n; i++)
		if (strcmp(mounted.v[i].name, name) == 0)
			memcpy(p.v[0].variables, mounted.v[i].variables, SHA256_LEN);
	add(e, PCR4_PLATFORM, hash);
	if (!program)
		e->v[0].type = PCR_EV_EFI_ACTION;
	if (seven)
		add_pcr7(e, SBAT_42);
	return add_platform(entry, &p);
}

Test(ctl_image_platforms, the_beginning_of_pcr4_is_the_platforms_in_mixes_too)
{
	const char *ab = pcr4_after(SHIM_C, SHIM_A, GRUB_A, KERNEL_B);

	mount("ovmf", "keys");
	world_cluster(&w, "tec", ATTESTATION("\"ovmf\"", "Ignore"));
	world_boot(&w, NULL);
	approve("coreos", REF_A);
	approve("coreos-2", REF_B);
	world_run(&w, 5000);
	job_says("coreos", with_own(entry_of(REF_A, false), "ovmf", SHIM_C, false, true));
	job_says("coreos-2", with_own(entry_of(REF_B, true), "ovmf", SHIM_C, false, true));
	world_run(&w, 20000);
	cr_assert(committed("coreos") && committed("coreos-2"), "%s", message("coreos"));
	cr_assert_str_eq(
		declared(BOOT_A), "{\"images\":[\"coreos\"]}", "other nodes are there, too");
	cr_assert_str_eq(declared(boot4(pcr4_after(SHIM_C, SHIM_A, GRUB_A, KERNEL_A))),
		"{\"images\":[\"coreos\"]}");
	cr_assert_str_eq(declared(boot4(ab)), "{\"images\":[\"coreos\",\"coreos-2\"]}");
	/* Four states in two forms, and four on the platform, whose form is known. */
	cr_assert_eq(strlen(rv_data("boot-sets.json")), 12 * (strlen(BOOT_A) + 3) + 1);
	cr_assert(strstr(message("coreos"), "its firmware measures other events before"), "%s",
		message("coreos"));
	cr_assert(strstr(message("coreos"), pcr4_after(SHIM_C, SHIM_A, GRUB_A, KERNEL_A)));

	fake_api_merge(w.api, &kobj_cluster, NS, "tec",
		"{\"spec\":{\"attestation\":{\"pcr7\":\"Require\"}}}");
	world_run(&w, 5000);
	cr_assert_str_eq(declared(boot7(pcr4_after(SHIM_C, SHIM_A, GRUB_A, KERNEL_A), SBAT_42)),
		"{\"images\":[\"coreos\"]}");
	cr_assert_null(declared(boot7(PCR4_A, SBAT_42)), "no node of this platform measures that");
}

Test(ctl_image_platforms, programs_of_the_firmware_are_taken_back_at_once)
{
	const char *own = pcr4_after(SHIM_C, SHIM_A, GRUB_A, KERNEL_A);

	own_programs = true;
	approved_on_ovmf(ATTESTATION("\"ovmf\"", "Ignore"));
	job_says("coreos", with_own(entry_of(REF_A, false), "ovmf", SHIM_C, true, false));
	world_run(&w, 5000);
	cr_assert_str_eq(declared(boot4(own)), "{\"images\":[\"coreos\"]}");
	cr_assert(strstr(message("coreos"), "among them a program of its own"), "%s",
		message("coreos"));
	own_programs = false;
	mount("ovmf", "keys");
	world_run(&w, 5000);
	cr_assert_null(declared(boot4(own)), "%s", message("coreos"));
	cr_assert(kbs_sync_is_revoked(w.life->caches.sync, KBS_REFVALUE, boot4(own)));
	cr_assert_str_eq(declared(BOOT_A), "{\"images\":[\"coreos\"]}");
}

Test(ctl_image_platforms, required_only_sets_of_three_count_and_platforms_do_not_mix)
{
	mount("old", "keys");
	mount("ovmf", "keys");
	world_cluster(&w, "tec", ATTESTATION("\"old\",\"ovmf\"", "Require"));
	world_boot(&w, NULL);
	approve("coreos", REF_A);
	approve("coreos-2", REF_B);
	world_run(&w, 5000);
	job_says("coreos", entry7(REF_A, false));
	job_says("coreos-2", entry7(REF_B, true));
	world_run(&w, 20000);
	cr_assert(committed("coreos") && committed("coreos-2"), "%s", message("coreos"));
	cr_assert_null(declared(BOOT_A));
	cr_assert_null(declared(BOOT_AB));
	cr_assert_str_eq(declared(BOOT7_A), "{\"images\":[\"coreos\"]}");
	cr_assert_str_eq(declared(boot7(PCR4_A, SBAT_44)), "{\"images\":[\"coreos\"]}");
	cr_assert_str_eq(declared(boot7(PCR4_B, SBAT_44)), "{\"images\":[\"coreos-2\"]}");
	cr_assert_str_eq(
		declared(boot7(PCR4_AB, SBAT_42)), "{\"images\":[\"coreos\",\"coreos-2\"]}");
	cr_assert_eq(w.life ? strlen(rv_data("boot-sets.json")) : 0,
		16 * (RENDER_BOOT_NAME_MAX + 3) + 1,
		"four sets of two forms on each of two platforms: %s", rv_data("boot-sets.json"));
}

Test(ctl_image_platforms, an_image_that_lacks_a_platform_is_left_out_of_it_alone)
{
	mount("old", "keys");
	mount("ovmf", "keys");
	world_cluster(&w, "tec", ATTESTATION("\"old\",\"ovmf\"", "Require"));
	world_boot(&w, NULL);
	approve("coreos", REF_A);
	approve("coreos-2", REF_B);
	world_run(&w, 5000);
	job_says("coreos",
		with_platform(entry_of(REF_A, false), "ovmf", mounted.v[1].variables, SBAT_42));
	job_says("coreos-2", entry7(REF_B, true));
	world_run(&w, 20000);
	cr_assert(committed("coreos") && committed("coreos-2"));
	cr_assert(strstr(message("coreos"), "The values of platform old are not computed yet"),
		"%s", message("coreos"));
	cr_assert_str_eq(declared(BOOT7_A), "{\"images\":[\"coreos\"]}");
	cr_assert_null(declared(boot7(PCR4_A, SBAT_44)));
	cr_assert_null(declared(boot7(PCR4_AB, SBAT_44)));
	/* The index is that of all images, not of the part that has the platform. */
	cr_assert_str_eq(declared(boot7(PCR4_B, SBAT_44)), "{\"images\":[\"coreos-2\"]}");
	cr_assert_str_eq(
		declared(boot7(PCR4_AB, SBAT_42)), "{\"images\":[\"coreos\",\"coreos-2\"]}");
}

Test(ctl_image_platforms, requiring_revokes_sets_of_two_and_ignoring_brings_them_back)
{
	approved_on_ovmf(ATTESTATION("\"ovmf\"", "Ignore"));
	job_says("coreos", entry7(REF_A, false));
	world_run(&w, 5000);
	trustee_takes_all();
	fake_api_merge(w.api, &kobj_cluster, NS, "tec",
		"{\"spec\":{\"attestation\":{\"pcr7\":\"Require\"}}}");
	world_run(&w, 5000);
	cr_assert(kbs_sync_is_revoked(w.life->caches.sync, KBS_REFVALUE, BOOT_A));
	cr_assert_str_eq(declared(BOOT7_A), "{\"images\":[\"coreos\"]}");
	cr_assert(committed("coreos"));
	trustee_takes(BOOT7_A);
	fake_api_merge(w.api, &kobj_cluster, NS, "tec",
		"{\"spec\":{\"attestation\":{\"pcr7\":\"Ignore\"}}}");
	world_run(&w, 5000);
	cr_assert_str_eq(declared(BOOT_A), "{\"images\":[\"coreos\"]}");
	cr_assert(kbs_sync_is_revoked(w.life->caches.sync, KBS_REFVALUE, BOOT7_A));
}

Test(ctl_image_platforms, a_committed_image_stays_so_while_a_job_adds_platforms)
{
	uint8_t digest[SHA256_LEN];

	world_boot(&w, NULL);
	world_run(&w, 5000);
	commit("coreos", REF_A, false);
	variables("ovmf", "keys", digest);
	world_cluster(&w, "tec", ATTESTATION("\"ovmf\"", "Ignore"));
	mount("ovmf", "keys");
	world_run(&w, 5000);
	cr_assert(has_job("coreos"), "a Job of its own");
	cr_assert_eq(jobs(), 2);
	cr_assert(committed("coreos"));
	cr_assert(strstr(message("coreos"), "The values of platform ovmf are not computed yet."),
		"%s", message("coreos"));
	cr_assert_str_eq(declared(BOOT_A), "{\"images\":[\"coreos\"]}");
}

Test(ctl_image_platforms, required_an_image_without_any_is_not_committed)
{
	world_boot(&w, NULL);
	world_run(&w, 5000);
	commit("coreos", REF_A, false);
	mount("ovmf", "keys");
	world_cluster(&w, "tec", ATTESTATION("\"ovmf\"", "Require"));
	world_run(&w, 5000);
	cr_assert_str_eq(reason("coreos"), "Computing");
	cr_assert_null(declared(BOOT_A));
	job_says("coreos",
		with_platform(entry_of(REF_A, false), "ovmf", mounted.v[0].variables, NULL));
	job_ends("coreos", "Complete", "CompletionsReached");
	world_run(&w, 5000);
	cr_assert_str_eq(reason("coreos"), "ComputationFailed");
	cr_assert(
		strstr(message("coreos"), "no values for platform ovmf: Secure Boot is off there"));
	cr_assert(kbs_sync_is_revoked(w.life->caches.sync, KBS_REFVALUE, BOOT_A));
}

Test(ctl_image_platforms, a_missing_configmap_is_told_and_no_job_is_made)
{
	world_cluster(&w, "tec", ATTESTATION("\"ovmf\"", "Ignore"));
	world_boot(&w, NULL);
	approve("coreos", REF_A);
	world_run(&w, 60000);
	cr_assert_eq(jobs(), 0);
	cr_assert_str_eq(reason("coreos"), "ComputationFailed");
	cr_assert(strstr(message("coreos"), "ConfigMap ovmf does not exist: create it"), "%s",
		message("coreos"));
	fake_api_put(w.api, &kobj_configmap, NS,
		"{\"metadata\":{\"name\":\"ovmf\"},\"data\":{\"db\":\"x\"}}");
	world_run(&w, 5000);
	cr_assert_eq(jobs(), 0);
	cr_assert(strstr(message("coreos"), "ConfigMap ovmf has no variables"), "%s",
		message("coreos"));
	mount("ovmf", "keys");
	world_run(&w, 5000);
	cr_assert(has_job("coreos"));
	cr_assert_str_eq(reason("coreos"), "Computing");
}

Test(ctl_image_platforms, with_values_a_missing_configmap_is_told_and_the_image_stays)
{
	world_boot(&w, NULL);
	world_run(&w, 5000);
	commit("coreos", REF_A, false);
	world_cluster(&w, "tec", ATTESTATION("\"ovmf\"", "Ignore"));
	world_run(&w, 5000);
	cr_assert(committed("coreos"));
	cr_assert(strstr(message("coreos"), "ConfigMap ovmf does not exist"), "%s",
		message("coreos"));
	cr_assert_eq(jobs(), 1, "the one that was");
	world_cluster(&w, "tec", ATTESTATION("\"ovmf\"", "Require"));
	world_run(&w, 5000);
	cr_assert_str_eq(reason("coreos"), "ComputationFailed");
	cr_assert(strstr(message("coreos"), "ConfigMap ovmf does not exist"));
	cr_assert_eq(jobs(), 1);
}

Test(ctl_image_platforms, new_variables_are_a_new_job_and_the_old_value_counts_until_then)
{
	cleanup_free char *first = NULL;

	approved_on_ovmf(ATTESTATION("\"ovmf\"", "Require"));
	first = xstrdup(job_name("coreos"));
	job_says("coreos", entry7(REF_A, false));
	job_ends("coreos", "Complete", "CompletionsReached");
	world_run(&w, 5000);
	cr_assert_str_eq(declared(BOOT7_A), "{\"images\":[\"coreos\"]}");
	trustee_takes(BOOT7_A);
	mount("ovmf", "other keys");
	world_run(&w, 5000);
	cr_assert_str_neq(job_name("coreos"), first);
	cr_assert(has_job("coreos"));
	cr_assert_str_eq(declared(BOOT7_A), "{\"images\":[\"coreos\"]}");
	cr_assert(committed("coreos"));
	cr_assert(strstr(message("coreos"), "Until then, the previous value is used."), "%s",
		message("coreos"));
	fake_api_delete(w.api, &kobj_configmap, NS, "ovmf");
	world_run(&w, 5000);
	cr_assert_str_eq(declared(BOOT7_A), "{\"images\":[\"coreos\"]}");
	cr_assert(strstr(message("coreos"), "ConfigMap ovmf does not exist"));
	mount("ovmf", "other keys");
	world_run(&w, 5000);
	job_says("coreos",
		with_platform(entry_of(REF_A, false), "ovmf", mounted.v[0].variables, SBAT_44));
	world_run(&w, 5000);
	cr_assert(kbs_sync_is_revoked(w.life->caches.sync, KBS_REFVALUE, BOOT7_A));
	cr_assert(committed("coreos"));
	cr_assert(declared(boot7(PCR4_A, SBAT_44)));
	cr_assert_eq(jobs(), 2, "one that ended is left to its time");
}

Test(ctl_image_platforms, a_running_job_of_other_variables_is_deleted)
{
	cleanup_free char *first = NULL;

	approved_on_ovmf(ATTESTATION("\"ovmf\"", "Ignore"));
	first = xstrdup(job_name("coreos"));
	mount("ovmf", "other keys");
	world_run(&w, 5000);
	cr_assert_null(world_get(&w, &kobj_job, first));
	cr_assert(has_job("coreos"));
	/* What it wrote at its end is not taken for that of the new variables. */
	job_says("coreos", with_platform(entry_of(REF_A, false), "ovmf",
				   (const uint8_t[SHA256_LEN]){1}, SBAT_42));
	world_run(&w, 5000);
	cr_assert(committed("coreos"));
	cr_assert(has_job("coreos"));
	cr_assert(strstr(message("coreos"), "not computed yet"));
}

Test(ctl_image_platforms, a_job_that_left_one_out_is_tried_again_later_and_later)
{
	cleanup_free char *uid = NULL;

	approved_on_ovmf(ATTESTATION("\"ovmf\"", "Ignore"));
	for (int i = 0; i < 3; i++) {
		free(uid);
		uid = xstrdup(world_str(&w, &kobj_job, job_name("coreos"), "metadata/uid"));
		job_says("coreos", entry_of(REF_A, false));
		job_ends("coreos", "Complete", "CompletionsReached");
		world_run(&w, (50000 << i));
		cr_assert_str_eq(world_str(&w, &kobj_job, job_name("coreos"), "metadata/uid"), uid,
			"round %d", i);
		world_run(&w, (30000 << i));
		cr_assert_str_neq(
			world_str(&w, &kobj_job, job_name("coreos"), "metadata/uid"), uid);
		cr_assert(committed("coreos"));
	}
}

Test(ctl_image_platforms, a_deleted_image_leaves_no_running_job)
{
	cleanup_free char *first = NULL;

	approved_on_ovmf(ATTESTATION("\"ovmf\"", "Ignore"));
	first = xstrdup(job_name("coreos"));
	fake_api_delete(w.api, &kobj_image, NS, "coreos");
	mount("ovmf", "other keys");
	trustee_takes_all();
	world_run(&w, 30000);
	cr_assert_null(world_get(&w, &kobj_image, "coreos"));
	cr_assert_null(world_get(&w, &kobj_job, first));
	cr_assert_eq(jobs(), 0);
}

Test(ctl_image_platforms, events_beyond_what_fits_are_left_out_and_nothing_falls)
{
	struct pcr_events e = PCR_EVENTS_INIT;
	struct json_object *entry;

	approved_on_ovmf(ATTESTATION("\"ovmf\"", "Require"));
	add_pcr4(&e, SHIM_A, GRUB_A, KERNEL_A);
	add_pcr14(&e);
	while (e.n < 250)
		add(&e, PCR14_MOK_LIST_TRUSTED, MOK_TRUSTED);
	entry = model_pcrs_entry_json(REF_A, 1800000000000000, &e);
	pcr_events_fini(&e);
	job_says("coreos", with_platform(entry, "ovmf", mounted.v[0].variables, SBAT_42));
	world_run(&w, 5000);
	cr_assert_str_eq(rv_data("boot-sets.json"), "");
	cr_assert_str_eq(declared("tpm_pcr4"), "[]");
}

static void hold_watches(void)
{
	fake_api_hold_watches(w.api, true);
}

/* The operator itself writes this one; its answer goes into the cache that platforms are read from.
 * Under ASan with a large redzone a smaller struct in there is seen. */
Test(ctl_image_platforms, a_map_of_the_operator_named_as_platform_has_no_variables)
{
	world_cluster(&w, "tec",
		"{\"publicTrusteeAddr\":\"far.example:8443\",\"trustee\":{\"deploy\":\"External\"},"
		"\"attestation\":{\"platformConfigMaps\":[\"tec-trustees\"]}}");
	w.arm = hold_watches; /* the answer of the write is what the cache has */
	world_boot(&w, NULL);
	world_run(&w, 5000);
	cr_assert(world_get(&w, &kobj_configmap, "tec-trustees"));
	fake_api_hold_watches(w.api, false);
	approve("coreos", REF_A);
	world_run(&w, 5000);
	cr_assert(
		strstr(fake_api_condition(w.api, &kobj_image, NS, "coreos", "Committed", "message"),
			"ConfigMap tec-trustees has no variables"));
}
