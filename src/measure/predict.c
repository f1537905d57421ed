/* SPDX-License-Identifier: MIT */
/*
 * The event model. measure_read() collects the facts; each variant is one answer to the questions that
 * they leave open (Secure Boot, which kernel, how often the loader measures it, shim's SBAT level).
 * Variants are made in order of likelihood. The first variant of an image is what the Rust tool
 * would print if it treated the loader correctly.
 */
#include "config.h"

#include "tec/measure/predict.h"

#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "measure_internal.h"
#include "tec/base/log.h"
#include "tec/base/mem.h"
#include "tec/pcr/bootpath.h"

#define PROFILES_MAX 16

/* A variant under construction. */
struct build {
	const struct measure_set *set;
	struct measure_file *second; /* the set's; writable because reading needs its buffer */
	const struct measure_file
		*kernel; /* NULL: the second stage is a UKI, or kernels are not needed */
	const struct measure_file *update;  /* NULL: no firmware update came first */
	const struct measure_file *starter; /* without shim: systemd-boot; NULL: the firmware */
	bool secure_boot, sbat_latest;
	int kernel_times;
	unsigned failed;  /* boot entries that failed before this one */
	bool uncalled;    /* the firmware does not measure that it calls the boot entry */
	unsigned profile; /* of a UKI */
	struct measure_variant *variant;
};

void measure_variants_fini(struct measure_variants *v)
{
	for (size_t i = 0; i < v->n; i++) {
		for (size_t k = 0; k < v->v[i].events.n; k++)
			free(v->v[i].label[k]);
		free(v->v[i].label);
		free(v->v[i].when);
		pcr_events_fini(&v->v[i].events);
	}
	free(v->v);
	strbuf_fini(&v->explain);
	*v = (struct measure_variants)MEASURE_VARIANTS_INIT;
}

/* The label array grows with the events, so that each event has one label. */
__attribute__((format(printf, 6, 7))) static void add_event(struct build *b, enum pcr_event_id id,
	enum pcr_event_type type, unsigned pcr, const uint8_t digest[SHA256_LEN], const char *fmt,
	...)
{
	cleanup_strbuf struct strbuf label = STRBUF_INIT;
	struct measure_variant *v = b->variant;
	va_list ap;

	ARRAY_GROW(v->label, v->events.n);
	if (!pcr_events_push(&v->events, id, type, pcr, digest))
		DIE("more than %d events of one image", PCR_EVENTS_MAX);
	va_start(ap, fmt);
	strbuf_vaddf(&label, fmt, ap);
	va_end(ap);
	v->label[v->events.n - 1] = strbuf_steal(&label);
}

/* ---- PCR 4 and 14 */

static void add_action(struct build *b, enum pcr_event_id id, const char *text)
{
	uint8_t digest[SHA256_LEN];

	bytes_sha256(text, strlen(text), digest);
	add_event(b, id, PCR_EV_EFI_ACTION, 4, digest, "%s", text);
}

static void add_started(struct build *b, enum pcr_event_id id, const struct measure_file *f)
{
	add_event(
		b, id, PCR_EV_EFI_BOOT_SERVICES_APPLICATION, 4, f->digest, "%s", log_esc(f->path));
}

/*
 * Add PCR 4 in boot order: the firmware, entries that failed, shim, fwupd, second stage, kernel.
 * Without shim: systemd-boot, if it starts the UKI, the UKI, its kernel.
 */
static void add_pcr4(struct build *b)
{
	const struct measure_set *set = b->set;
	enum pcr_event_id second = set->no_shim ? PCR4_UKI : PCR4_GRUB;

	for (size_t i = 0; i < set->firmware.n; i++) {
		const struct measure_firmware_event *e = &set->firmware.v[i];

		if (e->pcr == 4 && !(b->uncalled && e->id == PCR4_EFI_CALL))
			add_event(b, e->id, e->type, 4, e->digest, "%s", e->label);
	}
	for (unsigned i = 0; i < b->failed; i++) {
		add_action(b, PCR4_BOOT_ENTRY_FAILED, PCR_BOOT_RETURNING);
		add_action(b, PCR4_BOOT_ENTRY_FAILED, PCR_BOOT_CALLING);
	}
	if (!set->no_shim)
		add_started(b, PCR4_SHIM, &set->shim);
	if (b->update)
		add_started(b, PCR4_FIRMWARE_UPDATE, b->update);
	if (b->starter)
		add_started(b, PCR4_GRUB, b->starter);
	add_started(b, second, &set->second);
	/* The kernel, as often as the loader measures it. The one embedded in a UKI belongs to the
	 * UKI's group of events, because both are updated together. */
	for (int i = 0; i < b->kernel_times; i++) {
		if (b->kernel)
			add_started(b, PCR4_VMLINUZ, b->kernel);
		else
			add_event(b, second, PCR_EV_EFI_BOOT_SERVICES_APPLICATION, 4, set->inner,
				"the kernel embedded in %s", log_esc(set->second.path));
	}
}

/* Add the MOK variables in the order in which shim measures them. A variable that is not measured
 * gives no event. */
static void add_pcr14(struct build *b)
{
	const struct measure_set *set = b->set;
	const struct {
		enum pcr_event_id id;
		const char *name;
		const struct strbuf *data;
		bool measured;
	} lists[] = {{PCR14_MOK_LIST, "MokListRT", &set->mok, true},
		{PCR14_MOK_LIST_X, "MokListXRT", &set->mok_x, true},
		{PCR14_MOK_SB_STATE, "MokSBStateRT", &set->mok_sb, set->has_mok_sb},
		{PCR14_MOK_LIST_TRUSTED, "MokListTrustedRT", &set->mok_t, set->has_mok_t}};
	const char *origin = measure_mok_given(set->conf) ? "from the given MOK variables"
							  : "as created by shim";
	uint8_t digest[SHA256_LEN] = {0};

	if (set->no_shim) {
		add_event(b, PCR14_NO_SHIM, PCR_EV_NO_ACTION, 14, digest,
			"there is no shim, so PCR 14 stays zero");
		return;
	}
	for (size_t i = 0; i < ARRAY_LEN(lists); i++) {
		if (!lists[i].measured)
			continue;
		bytes_sha256(strbuf_str(lists[i].data), lists[i].data->len, digest);
		add_event(b, lists[i].id, PCR_EV_IPL, 14, digest, "%s %s", lists[i].name, origin);
	}
}

/* ---- PCR 7 */

/*
 * The Secure Boot variables, then the certificates that authorized what was loaded (TCG PFP section
 * 3.3.4.8). Firmware searches db for shim's signer. shim searches db, its vendor_db and MokListRT
 * (its vendor certificate first) for each image, takes the first match, and logs each authority only
 * once. With its validation off (MokSBState) shim checks nothing.
 */

/*
 * Add EV_EFI_VARIABLE_AUTHORITY: it measures the matching entry with its owner, not the whole list.
 * shim logs an authority only once; the event that the firmware logged for shim itself does not
 * count. The firmware, too, logs each of its own only once.
 */
static void add_authority(
	struct build *b, const struct measure_file *f, enum pcr_event_id id, bool by_shim)
{
	const struct measure_authority *a = &f->authority;
	const struct efi_sig *e = &a->entry;
	cleanup_strbuf struct strbuf what = STRBUF_INIT;
	uint8_t digest[SHA256_LEN];

	efi_variable_digest(a->guid, a->name, e->with_owner, e->with_owner_len, digest);
	for (size_t i = 0; i < b->variant->events.n; i++) {
		const struct pcr_event *seen = &b->variant->events.v[i];

		if (seen->pcr == 7 && seen->id >= (by_shim ? PCR7_GRUB_DB_CERT : PCR7_SHIM_CERT) &&
			seen->id <= PCR7_GRUB_MOK_LIST_CERT &&
			memcmp(seen->digest, digest, sizeof(digest)) == 0)
			return;
	}
	if (memcmp(&e->type, &efi_cert_x509, sizeof(e->type)) == 0)
		measure_describe_cert(e->data, e->len, &what);
	else
		measure_describe_hash(e->data, e->len, &what);
	add_event(b, id, PCR_EV_EFI_VARIABLE_AUTHORITY, 7, digest, "%s in %s, for %s",
		strbuf_str(&what), a->name, log_esc(f->path));
}

/* Add SbatLevel, which shim measures with Secure Boot on and off. */
static int add_sbat(struct build *b, struct err *err)
{
	const char *text = SHIM_SBAT_ORIGINAL, *eol;
	size_t len = sizeof(SHIM_SBAT_ORIGINAL) - 1;
	uint8_t digest[SHA256_LEN];

	/* With Secure Boot off shim resets the level to the original one. */
	if (b->secure_boot && measure_sbat_level(b->set, b->sbat_latest, &text, &len, err) < 0)
		return -1;
	efi_variable_digest(&efi_shim_lock, "SbatLevel", text, len, digest);
	eol = memchr(text, '\n', len);
	add_event(b, PCR7_SBAT_LEVEL, PCR_EV_EFI_VARIABLE_AUTHORITY, 7, digest, "SBAT level %s",
		log_escn(text, eol ? (size_t)(eol - text) : len));
	return 0;
}

/* The contents of a variable of the firmware, as measured. */
static void add_variable(struct build *b, const struct measure_firmware_event *e)
{
	const struct measure_set *set = b->set;
	const char *file = pcr_platform_files[e->variable];
	const struct strbuf *const data[PCR_PLATFORM_N_FILES] = {
		[PCR_PLATFORM_PK] = &set->pk,
		[PCR_PLATFORM_KEK] = &set->kek,
		[PCR_PLATFORM_DB] = &set->db,
		[PCR_PLATFORM_DBX] = &set->dbx,
		[PCR_PLATFORM_DBT] = &set->dbt,
		[PCR_PLATFORM_DBR] = &set->dbr,
	};
	const struct strbuf *from = data[e->variable];
	cleanup_free char *name = xstrndup(file, strcspn(file, "-"));
	const uint8_t state = b->secure_boot;
	uint8_t digest[SHA256_LEN];

	if (!from) {
		efi_variable_digest(
			&efi_global_variable, name, &state, state || !set->empty_state, digest);
		add_event(b, e->id, e->type, 7, digest, "Secure Boot %s", state ? "on" : "off");
		return;
	}
	efi_variable_digest(
		e->variable < PCR_PLATFORM_DB ? &efi_global_variable : &efi_image_security_database,
		name, from->data, from->len, digest);
	add_event(b, e->id, e->type, 7, digest, "firmware variable %s, %zu bytes", name, from->len);
}

/*
 * Add the firmware's variables and the separator that ends the firmware phase.
 */
static void add_variables(struct build *b)
{
	for (size_t i = 0; i < b->set->firmware.n; i++) {
		const struct measure_firmware_event *e = &b->set->firmware.v[i];

		if (e->pcr != 7)
			continue;
		if (e->variable >= 0)
			add_variable(b, e);
		else
			add_event(b, e->id, e->type, 7, e->digest, "%s", e->label);
	}
}

/*
 * With Secure Boot off neither firmware nor shim checks signatures, so no authorities are logged.
 */
static int add_pcr7(struct build *b, struct err *err)
{
	const struct measure_set *set = b->set;
	uint8_t digest[SHA256_LEN];

	add_variables(b);
	if (set->no_shim) {
		if (b->secure_boot && b->starter)
			add_authority(b, b->starter, PCR7_SHIM_CERT, false);
		if (b->secure_boot)
			add_authority(b, &set->second,
				b->starter ? PCR7_GRUB_DB_CERT : PCR7_SHIM_CERT, false);
		return 0;
	}
	if (b->secure_boot)
		add_authority(b, &set->shim, PCR7_SHIM_CERT, false);
	if (set->has_mok_sb) {
		efi_variable_digest(
			&efi_shim_lock, "MokSBState", set->mok_sb.data, set->mok_sb.len, digest);
		add_event(b, PCR7_MOK_SB_STATE, PCR_EV_EFI_VARIABLE_AUTHORITY, 7, digest,
			"MokSBState: shim's validation is %s", set->validation_off ? "off" : "on");
	}
	if (add_sbat(b, err) < 0)
		return -1;
	if (!b->secure_boot || set->validation_off)
		return 0;
	add_authority(b, &set->second, set->second.authority.id, true);
	if (b->update)
		add_authority(b, b->update, b->update->authority.id, true);
	if (b->kernel)
		add_authority(b, b->kernel, b->kernel->authority.id, true);
	return 0;
}

/* ---- variants */

/* Describe the assumptions of a variant for a person. */
static char *when(const struct build *b, bool several_kernels)
{
	static const char *const times[] = {"does not measure the kernel",
		"measures the kernel once", "measures the kernel twice"};
	const struct measure_set *set = b->set;
	cleanup_strbuf struct strbuf out = STRBUF_INIT;

	if (!(set->conf->registers & (MEASURE_PCR4 | MEASURE_PCR7)))
		return xstrdup("always");
	strbuf_addf(&out, "Secure Boot %s", b->secure_boot ? "on" : "off");
	if (set->conf->registers & MEASURE_PCR4) {
		strbuf_addf(&out, "; %s", set->loader->name);
		if (set->validation_off && b->secure_boot)
			strbuf_adds(&out, ", with shim's validation off (MokSBState)");
		else if (!set->loader->uki || b->kernel_times)
			strbuf_addf(&out, " %s", times[b->kernel_times]);
		if (set->no_shim)
			strbuf_addf(&out, "; without shim, started by %s",
				b->starter ? "systemd-boot" : "the firmware");
		if (b->failed)
			strbuf_addf(&out, "; after %u failed boot entr%s", b->failed,
				b->failed == 1 ? "y" : "ies");
		if (b->uncalled)
			strbuf_adds(
				&out, "; the firmware does not measure the call of its boot entry");
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
static int add_variant(struct build *b, struct measure_variants *out, struct err *err)
{
	const struct measure_set *set = b->set;
	cleanup_pcr_events struct pcr_events uki = PCR_EVENTS_INIT;
	struct measure_variant *v;

	ARRAY_GROW(out->v, out->n);
	v = &out->v[out->n++];
	*v = (struct measure_variant){.when = when(b, set->n_kernels > 1),
		.secure_boot = b->secure_boot,
		.path = b->update   ? PCR_BOOT_FIRMWARE_UPDATES
			: b->failed ? PCR_BOOT_FAILED_ENTRIES
				    : PCR_BOOT_STRICT,
		.derived = b->failed || b->uncalled,
		.events = PCR_EVENTS_INIT};
	b->variant = v;
	if (set->conf->registers & MEASURE_PCR4)
		add_pcr4(b);
	if (set->measures_7 && add_pcr7(b, err) < 0)
		return -1;
	/* Hash the UKI's sections again for each variant: few images have UKIs, and profiles
	 * differ. */
	if ((set->conf->registers & MEASURE_PCR11) && set->loader->uki &&
		measure_uki_events(b->second, b->profile, &uki, err) < 0)
		return -1;
	for (size_t i = 0; i < uki.n; i++)
		add_event(b, uki.v[i].id, uki.v[i].type, 11, uki.v[i].digest, "%s of %s",
			measure_uki_event_name(uki.v[i].id), log_esc(set->second.path));
	if (set->conf->registers & MEASURE_PCR14)
		add_pcr14(b);
	return 0;
}

/* Add a variant for each way in which one kernel can be started in this Secure Boot state. */
static int add_state(
	const struct build *on, bool secure_boot, struct measure_variants *out, struct err *err)
{
	static const signed char once[] = {0, -1};
	const struct measure_set *set = on->set;
	const signed char *times = once;
	bool sbat = set->measures_7 && secure_boot && measure_sbat_differs(set);

	if (set->conf->registers & MEASURE_PCR4 && !(set->validation_off && secure_boot))
		times = secure_boot ? set->loader->on : set->loader->off;
	for (int latest = 0; latest <= sbat; latest++) {
		for (const signed char *t = times; *t >= 0; t++) {
			struct build b = *on;

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
static unsigned profiles(const struct measure_set *set)
{
	unsigned n = 1;

	if (set->loader && set->loader->uki && (set->conf->registers & MEASURE_PCR11))
		n = measure_uki_profiles(&set->second.pe);
	return n < PROFILES_MAX ? n : PROFILES_MAX;
}

/* Add the variants of all Secure Boot states and kernels that the facts allow, Secure Boot on
 * first. */
static int add_states(const struct build *on, struct measure_variants *out, struct err *err)
{
	const struct measure_set *set = on->set;
	bool open = set->conf->registers & (MEASURE_PCR4 | MEASURE_PCR7);
	size_t n = set->n_kernels ? set->n_kernels : profiles(set);

	for (int off = 0; off <= 1; off++) {
		if (set->secure_boot == (off ? MEASURE_SB_ON : MEASURE_SB_OFF))
			continue;
		for (size_t i = 0; i < n; i++) {
			struct build b = *on;

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

/* Add all variants of one chain: the direct boot, then boots after failed entries, then those with a
 * firmware update. These are not combined: fwupd sets BootNext, which is tried before any entry that
 * could fail. */
static int add_chain(
	const struct build *chain, unsigned failed, struct measure_variants *out, struct err *err)
{
	const struct measure_set *set = chain->set;
	struct build b = *chain;

	for (; b.failed <= failed; b.failed++)
		if (add_states(&b, out, err) < 0)
			return -1;
	b.failed = 0;
	for (size_t i = 0; i < set->n_updates; i++) {
		b.update = &set->update[i];
		if (add_states(&b, out, err) < 0)
			return -1;
	}
	return 0;
}

/* Add the chains that the image may be started by, then the same on firmware that does not measure the
 * call. Without shim, the firmware starts systemd-boot if it is installed, or the UKI. */
static int add_paths(struct measure_set *set, struct measure_variants *out, struct err *err)
{
	/* What a platform's own events would be in these boots is unknown. */
	bool four = set->conf->registers & MEASURE_PCR4 && set->firmware.usual4;
	unsigned failed =
		four && set->conf->path >= PCR_BOOT_FAILED_ENTRIES ? PCR_BOOT_FAILED_MAX : 0;
	struct build b = {.set = set, .second = &set->second};

	for (int uncalled = 0; uncalled <= four; uncalled++) {
		b.uncalled = uncalled;
		b.starter = set->sd_boot.path ? &set->sd_boot : NULL;
		if (add_chain(&b, uncalled ? 0 : failed, out, err) < 0)
			return -1;
		if (!b.starter || !(set->conf->registers & (MEASURE_PCR4 | MEASURE_PCR7)))
			continue;
		b.starter = NULL;
		if (add_chain(&b, uncalled ? 0 : failed, out, err) < 0)
			return -1;
	}
	return 0;
}

/* ---- for people */

static void say_event(const struct measure_variant *v, size_t i, char mark, struct strbuf *out)
{
	const struct pcr_event *e = &v->events.v[i];
	char hex[SHA256_HEX_LEN + 1];

	bytes_to_hex(e->digest, SHA256_LEN, hex);
	strbuf_addf(out, "%c PCR %2u  %s  %-20s  %s\n", mark, e->pcr, hex, pcr_event_id_name(e->id),
		v->label[i]);
}

/*
 * List removed events with '-', then added ones with '+'. Repeated events are matched one to one.
 */
static void say_differences(
	const struct measure_variant *first, const struct measure_variant *v, struct strbuf *out)
{
	cleanup_free bool *used = xcalloc(first->events.n + 1, sizeof(*used));
	cleanup_strbuf struct strbuf more = STRBUF_INIT;

	for (size_t i = 0; i < v->events.n; i++) {
		size_t k = 0;

		while (k < first->events.n &&
			(used[k] || !pcr_event_same(&first->events.v[k], &v->events.v[i])))
			k++;
		if (k == first->events.n)
			say_event(v, i, '+', &more);
		else
			used[k] = true;
	}
	for (size_t i = 0; i < first->events.n; i++)
		if (!used[i])
			say_event(first, i, '-', out);
	strbuf_adds(out, strbuf_str(&more));
}

/* Show all events of the most likely variant, and for the others only the differences from it, so
 * that a person sees the lines that matter. */
static void explain(const struct measure_variants *v, struct strbuf *out)
{
	for (size_t i = 0; i < v->n; i++) {
		strbuf_addf(
			out, "%zu. %s%s\n", i + 1, v->v[i].when, i ? "; differs from 1. by" : "");
		if (i)
			say_differences(&v->v[0], &v->v[i], out);
		for (size_t k = 0; i == 0 && k < v->v[0].events.n; k++)
			say_event(&v->v[0], k, ' ', out);
	}
}

int measure_predict(const struct measure_conf *conf, struct measure_variants *out, struct err *err)
{
	struct measure_set set = {0};
	int rc = measure_read(conf, &set, err);

	if (rc == 0)
		rc = add_paths(&set, out, err);
	if (rc == 0) {
		if (set.loader)
			strbuf_addf(&out->explain, "second stage: %s, %s\n",
				log_esc(set.second.path), set.loader->name);
		/* A person sees why another file was chosen. */
		strbuf_adds(&out->explain, strbuf_str(&set.paths.notes));
		for (size_t i = set.n_kernels; i < set.paths.kernels.n; i++)
			strbuf_addf(&out->explain, "also found, not used: %s\n",
				log_esc(set.paths.kernels.v[i]));
		explain(out, &out->explain);
	}
	measure_set_fini(&set);
	if (rc < 0)
		measure_variants_fini(out);
	return rc;
}

int measure_digest(int fd, const char *path, uint8_t out[SHA256_LEN], struct err *err)
{
	struct measure_file f = {0};
	int rc;

	if (measure_file_open_fd(fd, path, &f, err) < 0)
		return -1;
	rc = measure_file_hash(&f, err);
	memcpy(out, f.digest, SHA256_LEN);
	measure_file_fini(&f);
	return rc;
}
