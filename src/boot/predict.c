/* SPDX-License-Identifier: MIT */
/*
 * The event model. boot_read() collects the facts; each variant is one answer to the questions that
 * they leave open (Secure Boot, which kernel, how often the loader measures it, shim's SBAT level).
 * Variants are made in order of likelihood. The first variant of an image is what the Rust tool
 * would print if it treated the loader correctly.
 */
#include "config.h"

#include "tec/boot/predict.h"

#include <stdlib.h>
#include <string.h>

#include "boot_internal.h"
#include "tec/base/log.h"
#include "tec/base/mem.h"
#include "tec/pcr/bootpath.h"

#define PROFILES_MAX 16

static void add_action(struct boot_build *b, enum pcr_event_id id, const char *text)
{
	uint8_t digest[SHA256_LEN];

	bytes_sha256(text, strlen(text), digest);
	boot_variant_add(b, id, PCR_EV_EFI_ACTION, 4, digest, "%s", text);
}

static void add_started(struct boot_build *b, enum pcr_event_id id, const struct boot_file *f)
{
	boot_variant_add(
		b, id, PCR_EV_EFI_BOOT_SERVICES_APPLICATION, 4, f->digest, "%s", log_esc(f->path));
}

/* Add the kernel as often as the loader measures it. The kernel embedded in a UKI belongs to the
 * UKI's group of events, because both are updated together. */
static void add_kernel(struct boot_build *b)
{
	for (int i = 0; i < b->kernel_times; i++) {
		if (b->kernel)
			add_started(b, PCR4_VMLINUZ, b->kernel);
		else /* embedded in a UKI */
			boot_variant_add(b, PCR4_GRUB, PCR_EV_EFI_BOOT_SERVICES_APPLICATION, 4,
				b->set->inner, "the kernel embedded in %s",
				log_esc(b->set->second.path));
	}
}

/*
 * Add PCR 4 in boot order: the boot entry, entries that failed, shim, fwupd, second stage, kernel.
 */
static void add_pcr4(struct boot_build *b)
{
	const uint8_t zero[4] = {0};
	const struct boot_set *set = b->set;
	uint8_t digest[SHA256_LEN];

	add_action(b, PCR4_EFI_CALL, PCR_BOOT_CALLING);
	bytes_sha256(zero, sizeof(zero), digest);
	boot_variant_add(
		b, PCR4_SEPARATOR, PCR_EV_SEPARATOR, 4, digest, "end of the firmware phase");
	for (unsigned i = 0; i < b->failed; i++) {
		add_action(b, PCR4_BOOT_ENTRY_FAILED, PCR_BOOT_RETURNING);
		add_action(b, PCR4_BOOT_ENTRY_FAILED, PCR_BOOT_CALLING);
	}
	add_started(b, PCR4_SHIM, &set->shim);
	if (b->update)
		add_started(b, PCR4_FIRMWARE_UPDATE, b->update);
	add_started(b, PCR4_GRUB, &set->second);
	add_kernel(b);
}

/* Hash the UKI's sections again for each variant: few images have UKIs, and profiles differ. */
static int add_pcr11(struct boot_build *b, struct err *err)
{
	cleanup_pcr_events struct pcr_events events = PCR_EVENTS_INIT;

	if (boot_uki_events(b->second, b->profile, &events, err) < 0)
		return -1;
	for (size_t i = 0; i < events.n; i++)
		boot_variant_add(b, events.v[i].id, events.v[i].type, 11, events.v[i].digest,
			"%s of %s", boot_uki_event_name(events.v[i].id),
			log_esc(b->set->second.path));
	return 0;
}

/* Add the MOK variables in the order in which shim measures them. A variable that is not measured
 * gives no event. */
static void add_pcr14(struct boot_build *b)
{
	const struct boot_set *set = b->set;
	const struct {
		enum pcr_event_id id;
		const char *name;
		const struct strbuf *data;
		bool measured;
	} lists[] = {{PCR14_MOK_LIST, "MokListRT", &set->mok, true},
		{PCR14_MOK_LIST_X, "MokListXRT", &set->mok_x, true},
		{PCR14_MOK_SB_STATE, "MokSBStateRT", &set->mok_sb, set->has_mok_sb},
		{PCR14_MOK_LIST_TRUSTED, "MokListTrustedRT", &set->mok_t, set->has_mok_t}};
	const char *origin =
		boot_mok_given(set->conf) ? "from the given MOK variables" : "as created by shim";
	uint8_t digest[SHA256_LEN];

	for (size_t i = 0; i < ARRAY_LEN(lists); i++) {
		if (!lists[i].measured)
			continue;
		bytes_sha256(strbuf_str(lists[i].data), lists[i].data->len, digest);
		boot_variant_add(
			b, lists[i].id, PCR_EV_IPL, 14, digest, "%s %s", lists[i].name, origin);
	}
}

/* Describe the assumptions of a variant for a person. */
static char *when(const struct boot_build *b, bool several_kernels)
{
	static const char *const times[] = {"does not measure the kernel",
		"measures the kernel once", "measures the kernel twice"};
	const struct boot_set *set = b->set;
	cleanup_strbuf struct strbuf out = STRBUF_INIT;

	if (!(set->conf->registers & (BOOT_PCR4 | BOOT_PCR7)))
		return xstrdup("always");
	strbuf_addf(&out, "Secure Boot %s", b->secure_boot ? "on" : "off");
	if (set->conf->registers & BOOT_PCR4) {
		strbuf_addf(&out, "; %s", set->loader->name);
		if (set->validation_off && b->secure_boot)
			strbuf_adds(&out, ", with shim's validation off (MokSBState)");
		else if (!set->loader->uki || b->kernel_times)
			strbuf_addf(&out, " %s", times[b->kernel_times]);
		if (b->failed)
			strbuf_addf(&out, "; after %u failed boot entr%s", b->failed,
				b->failed == 1 ? "y" : "ies");
		if (b->update)
			strbuf_addf(
				&out, "; after a firmware update (%s)", log_esc(b->update->path));
	}
	if (b->profile)
		strbuf_addf(&out, "; profile %u", b->profile);
	if (several_kernels)
		strbuf_addf(&out, "; %s", log_esc(b->kernel->path));
	if (b->sbat_latest)
		strbuf_adds(&out, "; SBAT policy set to latest (mokutil --set-sbat-policy)");
	return strbuf_steal(&out);
}

/* Append one variant. The path it requires follows from what precedes shim. */
static int add_variant(struct boot_build *b, struct boot_variants *out, struct err *err)
{
	const struct boot_set *set = b->set;
	struct boot_variant *v;

	ARRAY_GROW(out->v, out->n);
	v = &out->v[out->n++];
	*v = (struct boot_variant){.when = when(b, set->n_kernels > 1),
		.secure_boot = b->secure_boot,
		.path = b->update   ? PCR_BOOT_FIRMWARE_UPDATES
			: b->failed ? PCR_BOOT_FAILED_ENTRIES
				    : PCR_BOOT_STRICT,
		.events = PCR_EVENTS_INIT};
	b->variant = v;
	if (set->conf->registers & BOOT_PCR4)
		add_pcr4(b);
	if (set->measures_7 && boot_pcr7(b, err) < 0)
		return -1;
	if ((set->conf->registers & BOOT_PCR11) && set->loader->uki && add_pcr11(b, err) < 0)
		return -1;
	if (set->conf->registers & BOOT_PCR14)
		add_pcr14(b);
	return 0;
}

/* Add a variant for each way in which one kernel can be started in this Secure Boot state. */
static int add_state(
	const struct boot_build *on, bool secure_boot, struct boot_variants *out, struct err *err)
{
	static const signed char once[] = {0, -1};
	const struct boot_set *set = on->set;
	const signed char *times = once;
	bool sbat = set->measures_7 && secure_boot && boot_sbat_differs(set);

	if (set->conf->registers & BOOT_PCR4 && !(set->validation_off && secure_boot))
		times = secure_boot ? set->loader->on : set->loader->off;
	for (int latest = 0; latest <= sbat; latest++) {
		for (const signed char *t = times; *t >= 0; t++) {
			struct boot_build b = *on;

			b.secure_boot = secure_boot;
			b.sbat_latest = latest;
			b.kernel_times = *t;
			if (add_variant(&b, out, err) < 0)
				return -1;
		}
	}
	return 0;
}

/* Count the UKI profiles to predict; they affect only PCR 11. */
static unsigned profiles(const struct boot_set *set)
{
	unsigned n = 1;

	if (set->loader && set->loader->uki && (set->conf->registers & BOOT_PCR11))
		n = boot_uki_profiles(&set->second.pe);
	return n < PROFILES_MAX ? n : PROFILES_MAX;
}

/* Add the variants of all Secure Boot states and kernels that the facts allow, Secure Boot on
 * first. */
static int add_states(const struct boot_build *on, struct boot_variants *out, struct err *err)
{
	const struct boot_set *set = on->set;
	bool open = set->conf->registers & (BOOT_PCR4 | BOOT_PCR7);
	size_t n = set->n_kernels ? set->n_kernels : profiles(set);

	for (int off = 0; off <= 1; off++) {
		if (set->secure_boot == (off ? BOOT_SB_ON : BOOT_SB_OFF))
			continue;
		for (size_t i = 0; i < n; i++) {
			struct boot_build b = *on;

			b.kernel = set->n_kernels ? &set->kernel[i] : NULL;
			b.profile = set->n_kernels ? 0 : (unsigned)i;
			if (add_state(&b, !off, out, err) < 0)
				return -1;
		}
		if (!open)
			break; /* PCR 14 is the same in both */
	}
	return 0;
}

/* Add the direct boot, then boots after failed entries, then those with a firmware update. These
 * are not combined: fwupd sets BootNext, which is tried before any entry that could fail. */
static int add_paths(struct boot_set *set, struct boot_variants *out, struct err *err)
{
	unsigned failed = set->conf->path >= PCR_BOOT_FAILED_ENTRIES ? PCR_BOOT_FAILED_MAX : 0;

	if (!(set->conf->registers & BOOT_PCR4))
		failed = 0;
	for (unsigned i = 0; i <= failed; i++)
		if (add_states(
			    &(struct boot_build){.set = set, .second = &set->second, .failed = i},
			    out, err) < 0)
			return -1;
	for (size_t i = 0; i < set->n_updates; i++)
		if (add_states(
			    &(struct boot_build){
				    .set = set, .second = &set->second, .update = &set->update[i]},
			    out, err) < 0)
			return -1;
	return 0;
}

/* List the files that were not used, so that a person sees why another one was chosen. */
static void explain_files(const struct boot_set *set, struct strbuf *out)
{
	if (set->loader)
		strbuf_addf(out, "second stage: %s, %s\n", log_esc(set->second.path),
			set->loader->name);
	strbuf_adds(out, strbuf_str(&set->paths.notes));
	for (size_t i = set->n_kernels; i < set->paths.n_kernels; i++)
		strbuf_addf(out, "also found, not used: %s\n", log_esc(set->paths.kernel[i]));
}

int boot_predict(const struct boot_conf *conf, struct boot_variants *out, struct err *err)
{
	struct boot_set set = {0};
	int rc = boot_read(conf, &set, err);

	if (rc == 0)
		rc = add_paths(&set, out, err);
	if (rc == 0) {
		explain_files(&set, &out->explain);
		boot_variants_explain(out, &out->explain);
	}
	boot_set_fini(&set);
	if (rc < 0)
		boot_variants_fini(out);
	return rc;
}

int boot_digest(int fd, const char *path, uint8_t out[SHA256_LEN], struct err *err)
{
	struct boot_file f = {0};
	int rc;

	if (boot_file_open_fd(fd, path, &f, err) < 0)
		return -1;
	rc = boot_file_hash(&f, err);
	memcpy(out, f.digest, SHA256_LEN);
	boot_file_fini(&f);
	return rc;
}
