/* SPDX-License-Identifier: MIT */
/*
 * The event model: boot_read() has the facts, each variant here is one answer to what they leave
 * open (Secure Boot, which kernel, how often the loader has it measured, shim's SBAT level), made
 * in the order of likelihood. The first variant of an image is what the Rust tool would print, were
 * it right about the loader.
 */
#include "config.h"

#include "tec/boot/predict.h"

#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "boot_internal.h"
#include "tec/base/log.h"
#include "tec/base/mem.h"

void boot_variants_fini(struct boot_variants *v)
{
	for (size_t i = 0; i < v->n; i++) {
		free(v->v[i].when);
		pcr_events_fini(&v->v[i].events);
	}
	free(v->v);
	strbuf_fini(&v->explain);
	*v = (struct boot_variants)BOOT_VARIANTS_INIT;
}

void boot_add(struct boot_build *b, enum pcr_event_id id, enum pcr_event_type type, unsigned pcr,
	const uint8_t digest[SHA256_LEN], const char *fmt, ...)
{
	char hex[SHA256_HEX_LEN + 1];
	va_list ap;

	if (!pcr_events_push(b->events, id, type, pcr, digest))
		DIE("more than %d events of one image", PCR_EVENTS_MAX);
	bytes_to_hex(digest, SHA256_LEN, hex);
	strbuf_addf(b->explain, "  PCR %2u  %s  %-20s  ", pcr, hex, pcr_event_id_name(id));
	va_start(ap, fmt);
	strbuf_vaddf(b->explain, fmt, ap);
	va_end(ap);
	strbuf_addc(b->explain, '\n');
}

static void add_pcr4(struct boot_build *b)
{
	static const char call[] = "Calling EFI Application from Boot Option";
	const uint8_t zero[4] = {0};
	const struct boot_set *set = b->set;
	uint8_t digest[SHA256_LEN];

	bytes_sha256(call, sizeof(call) - 1, digest);
	boot_add(b, PCR4_EFI_CALL, PCR_EV_EFI_ACTION, 4, digest, "%s", call);
	bytes_sha256(zero, sizeof(zero), digest);
	boot_add(b, PCR4_SEPARATOR, PCR_EV_SEPARATOR, 4, digest, "end of the firmware's part");
	boot_add(b, PCR4_SHIM, PCR_EV_EFI_BOOT_SERVICES_APPLICATION, 4, set->shim.digest, "%s",
		log_esc(set->shim.path));
	boot_add(b, PCR4_GRUB, PCR_EV_EFI_BOOT_SERVICES_APPLICATION, 4, set->second.digest, "%s",
		log_esc(set->second.path));
	for (int i = 0; i < b->kernel_times; i++)
		boot_add(b, PCR4_VMLINUZ, PCR_EV_EFI_BOOT_SERVICES_APPLICATION, 4,
			b->kernel->digest, "%s", log_esc(b->kernel->path));
}

static void add_pcr14(struct boot_build *b)
{
	const struct boot_set *set = b->set;
	const struct {
		enum pcr_event_id id;
		const char *name;
		const struct strbuf *data;
	} lists[] = {{PCR14_MOK_LIST, "MokListRT", &set->mok},
		{PCR14_MOK_LIST_X, "MokListXRT", &set->mok_x},
		{PCR14_MOK_LIST_TRUSTED, "MokListTrustedRT", &set->mok_t}};
	const char *origin =
		set->conf->mokvars_fd >= 0 ? "of the MOK variables given" : "as shim makes it";
	uint8_t digest[SHA256_LEN];

	for (size_t i = 0; i < ARRAY_LEN(lists); i++) {
		bytes_sha256(strbuf_str(lists[i].data), lists[i].data->len, digest);
		boot_add(b, lists[i].id, PCR_EV_IPL, 14, digest, "%s %s", lists[i].name, origin);
	}
}

/* What was open and how it is answered, for a person. */
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
		if (!set->loader->uki)
			strbuf_addf(&out, " %s", times[b->kernel_times]);
	}
	if (several_kernels)
		strbuf_addf(&out, "; %s", log_esc(b->kernel->path));
	if (b->sbat_latest)
		strbuf_adds(&out, "; SBAT policy set to latest (mokutil --set-sbat-policy)");
	return strbuf_steal(&out);
}

static int add_variant(struct boot_build *b, struct boot_variants *out, struct err *err)
{
	const struct boot_set *set = b->set;
	struct boot_variant *v;

	ARRAY_GROW(out->v, out->n);
	v = &out->v[out->n++];
	*v = (struct boot_variant){.when = when(b, set->n_kernels > 1),
		.secure_boot = b->secure_boot,
		.events = PCR_EVENTS_INIT};
	b->events = &v->events;
	b->explain = &out->explain;
	strbuf_addf(&out->explain, "%zu. %s\n", out->n, v->when);
	if (set->conf->registers & BOOT_PCR4)
		add_pcr4(b);
	if (set->measures_7 && boot_pcr7(b, err) < 0)
		return -1;
	if (set->conf->registers & BOOT_PCR14)
		add_pcr14(b);
	return 0;
}

/* Every way one kernel may be started in this state. */
static int add_state(const struct boot_set *set, const struct boot_file *kernel, bool secure_boot,
	struct boot_variants *out, struct err *err)
{
	static const signed char once[] = {0, -1};
	const signed char *times = once;
	bool sbat = set->measures_7 && secure_boot && boot_sbat_differs(set);

	if (set->conf->registers & BOOT_PCR4)
		times = secure_boot ? set->loader->on : set->loader->off;
	for (int latest = 0; latest <= sbat; latest++) {
		for (const signed char *t = times; *t >= 0; t++) {
			struct boot_build b = {.set = set,
				.kernel = kernel,
				.secure_boot = secure_boot,
				.sbat_latest = latest,
				.kernel_times = *t};

			if (add_variant(&b, out, err) < 0)
				return -1;
		}
	}
	return 0;
}

static int add_states(const struct boot_set *set, struct boot_variants *out, struct err *err)
{
	bool open = set->conf->registers & (BOOT_PCR4 | BOOT_PCR7);
	size_t n = set->n_kernels ? set->n_kernels : 1;

	for (int off = 0; off <= 1; off++) {
		if (set->secure_boot == (off ? BOOT_SB_ON : BOOT_SB_OFF))
			continue;
		for (size_t i = 0; i < n; i++)
			if (add_state(set, set->n_kernels ? &set->kernel[i] : NULL, !off, out,
				    err) < 0)
				return -1;
		if (!open)
			break; /* PCR 14 is the same in both */
	}
	return 0;
}

static void explain_files(const struct boot_set *set, struct strbuf *out)
{
	if (set->loader)
		strbuf_addf(out, "second stage: %s, %s\n", log_esc(set->second.path),
			set->loader->name);
	strbuf_adds(out, strbuf_str(&set->paths.notes));
	for (size_t i = set->n_kernels; i < set->paths.n_kernels; i++)
		strbuf_addf(out, "also there, not taken: %s\n", log_esc(set->paths.kernel[i]));
}

int boot_predict(const struct boot_conf *conf, struct boot_variants *out, struct err *err)
{
	struct boot_set set = {0};
	int rc = boot_read(conf, &set, err);

	if (rc == 0) {
		explain_files(&set, &out->explain);
		rc = add_states(&set, out, err);
	}
	boot_set_fini(&set);
	if (rc < 0)
		boot_variants_fini(out);
	return rc;
}
