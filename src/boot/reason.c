/* SPDX-License-Identifier: MIT */
/*
 * Explain why a log differs from a prediction, for the person who has to decide what to do. Rules
 * that use both log and prediction come first (the event is expected later, a boot entry failed);
 * the reasons that follow from the position of the event alone come last.
 */
#include "config.h"

#include <string.h>

#include "replay.h"
#include "tec/base/log.h"
#include "tec/base/mem.h"
#include "tec/boot/eventlog.h"
#include "tec/pcr/bootpath.h"

#define RETURNING "Returning from EFI Application"
#define OTHER_CERTIFICATE                                                                          \
	"another certificate than predicted authorized a program (shim searches db, then its own certificates, then the machine owner keys); next step: if it is a machine owner key, use the node's --mok-variables"

static const char *const reasons[PCR_N_EVENT_IDS] = {
	[PCR4_EFI_CALL] = "the firmware started something else first (a boot menu, a network boot)",
	[PCR4_SEPARATOR] = "an option ROM or a firmware application ran before the boot loader",
	[PCR4_SHIM] =
		"the node booted another shim: its boot loader update is pending or was never applied (bootupctl status), or this is another image",
	[PCR4_GRUB] =
		"the node booted another second stage: its boot loader update is pending or was never applied (bootupctl status), or this is another image",
	[PCR4_VMLINUZ] =
		"the node booted another kernel: an older deployment, an update that waits for its reboot, or another image",
	[PCR7_SECURE_BOOT] = "Secure Boot is in another state than predicted",
	[PCR7_PK] =
		"the node's platform key differs from that in --efivars: other firmware, or keys were enrolled",
	[PCR7_KEK] =
		"the node's KEK differs from that in --efivars: other firmware, or keys were enrolled",
	[PCR7_DB] =
		"the node's db differs from that in --efivars: other firmware, or certificates or hashes were added",
	[PCR7_DBX] =
		"the node's dbx differs from that in --efivars: usually a revocation update (fwupd, the host's OVMF package)",
	[PCR7_SEPARATOR] = "the firmware measured more variables than PK, KEK, db and dbx",
	[PCR7_SHIM_CERT] =
		"another certificate than predicted authorized shim, or Secure Boot is off",
	[PCR7_SBAT_LEVEL] =
		"the node has another SBAT level: it once ran a newer shim, or its SBAT policy is set to latest",
	[PCR7_GRUB_DB_CERT] = OTHER_CERTIFICATE,
	[PCR7_GRUB_VENDOR_DB_CERT] = OTHER_CERTIFICATE,
	[PCR7_GRUB_MOK_LIST_CERT] = OTHER_CERTIFICATE,
	[PCR14_MOK_LIST] =
		"a machine owner key or a hash is enrolled on the node (mokutil --list-enrolled), or it booted another shim; next step: use the node's --mok-variables",
	[PCR14_MOK_LIST_X] =
		"the node has another MOK deny list, or it booted another shim; next step: use the node's --mok-variables",
	[PCR14_MOK_LIST_TRUSTED] =
		"the node does not have the usual MokListTrusted (mokutil --untrust-mok); next step: use the node's --mok-variables",
};

static const char validation_off[] =
	"shim's validation is off on the node (MokSBState), so it starts any kernel and measures none; next step: run mokutil --enable-validation on the node or, if this is intended, use its --mok-variables with --allow-validation-disabled";

/* Search the descriptions of a PCR's events (see add_variable() in eventdata.c). */
static bool log_says(const struct replay *r, unsigned pcr, const char *text)
{
	for (size_t i = 0; i < r->n; i++)
		if (r->v[i].pcr == pcr && strstr(strbuf_str(&r->v[i].text), text))
			return true;
	return false;
}

static bool same(const uint8_t *a, const uint8_t *b)
{
	return memcmp(a, b, SHA256_LEN) == 0;
}

/* Check whether the log has this digest in the same PCR after `found`. */
static bool comes_later(
	const struct replay *r, const struct boot_difference *d, const uint8_t *digest)
{
	for (const struct replay_event *e = d->found + 1; e < r->v + r->n; e++)
		if (e->pcr == d->pcr && same(e->digest, digest))
			return true;
	return false;
}

/* Return the label of the variant's event with this digest at or after index i, or NULL. */
static const char *label_from(
	const struct boot_variant *v, unsigned pcr, size_t i, const uint8_t *digest)
{
	for (; i < v->events.n; i++)
		if (v->events.v[i].pcr == pcr && same(v->events.v[i].digest, digest))
			return v->label[i];
	return NULL;
}

/* Return the event before e in the same PCR, or NULL. */
static const struct replay_event *previous(const struct replay *r, const struct replay_event *e)
{
	for (const struct replay_event *p = e; p-- > r->v;)
		if (p->pcr == e->pcr)
			return p;
	return NULL;
}

static bool started(const struct replay_event *e)
{
	return e && (e->type == EVENTLOG_APPLICATION || e->type == EVENTLOG_DRIVER);
}

/* ---- by PCR */

/* Check for the action that the firmware logs when a boot entry returns to it. */
static bool returns(const struct replay_event *e)
{
	return e->pcr == 4 && str_starts(strbuf_str(&e->text), "\"" RETURNING);
}

/* Explain entries that failed before anything was started from them. Only a few are acceptable. */
static void failed_entries(const struct replay *r, struct strbuf *out)
{
	unsigned n = 0;

	for (size_t i = 0; i < r->n; i++)
		n += returns(&r->v[i]);
	if (n > 1)
		strbuf_addf(out, "%u boot entries that come first in BootOrder", n);
	else
		strbuf_adds(out, "a boot entry that comes first in BootOrder");
	strbuf_addf(out,
		" failed, and the firmware continued with the next one; the image is correct. Next step: check BootOrder on the node (efibootmgr) and delete %s",
		n > 1 ? "them" : "the entry");
	if (n <= PCR_BOOT_FAILED_MAX)
		strbuf_addf(out, ", or accept %s (--boot-path, spec.bootPath: AllowFailedEntries)",
			n > 1 ? "them" : "it");
	else
		strbuf_addf(out, "; more than %d are never accepted", PCR_BOOT_FAILED_MAX);
}

/* Explain a program that returned to the firmware: shim does this when it rejects the
 * second stage. */
static void came_back(const struct replay_event *program, struct strbuf *out)
{
	strbuf_addf(out,
		"%s was started but returned, and the firmware continued with another boot entry. Next step: watch the node's console while it boots",
		strbuf_str(&program->text));
}

static void firmware_update(const struct replay_event *found, struct strbuf *out)
{
	strbuf_addf(out,
		"fwupd's program (%s) ran before the second stage, for a firmware update. Next step: reboot the node, or accept it (--boot-path, spec.bootPath: AllowFirmwareUpdates)",
		strbuf_str(&found->text));
}

static void extra_program(
	const struct replay *r, const struct replay_event *found, struct strbuf *out)
{
	const struct replay_event *before = previous(r, found);

	if (before && same(before->digest, found->digest))
		strbuf_adds(out,
			"the same program was measured again: this build of the loader measures it a different number of times than similar builds");
	else
		strbuf_addf(out,
			"an additional program was started (%s): a UKI, an addon, a driver, or a kernel that was not predicted",
			strbuf_str(&found->text));
}

/* Explain a difference in PCR 4. Return false if no rule fits. */
static bool program_reason(const struct boot_variant *v, const struct boot_variant *closest,
	const struct replay *r, const struct boot_difference *d, struct strbuf *out)
{
	const char *label = d->expected < v->events.n ? v->label[d->expected] : NULL, *skipped;

	if (!d->found) {
		if (log_says(r, 14, "MokSBState"))
			strbuf_adds(out, validation_off);
		else if (label && v->events.v[d->expected].id == PCR4_VMLINUZ &&
			 log_says(r, 7, "Secure Boot off"))
			strbuf_adds(out,
				"Secure Boot is off on the node; its boot loader then does not measure the kernel");
		else
			return false;
		return true;
	}
	if (returns(d->found) && started(previous(r, d->found))) {
		came_back(previous(r, d->found), out);
		return true;
	}
	if (returns(d->found) ||
		(closest->path == PCR_BOOT_FAILED_ENTRIES && v->path < closest->path)) {
		failed_entries(r, out);
		return true;
	}
	if (closest->path == PCR_BOOT_FIRMWARE_UPDATES && v->path < closest->path) {
		firmware_update(d->found, out);
		return true;
	}
	if (!label) {
		extra_program(r, d->found, out);
		return true;
	}
	skipped = label_from(v, 4, d->expected + 1, d->found->digest);
	if (started(d->found) && comes_later(r, d, v->events.v[d->expected].digest)) {
		strbuf_addf(out, "%s was started before %s", strbuf_str(&d->found->text), label);
		return true;
	}
	if (!skipped)
		return false;
	strbuf_addf(out, "%s was not measured here; %s was measured instead", label, skipped);
	return true;
}

/* Explain a difference in PCR 7 by the description of the event that was found. */
static void variable_reason(const struct boot_variant *v, const struct replay *r,
	const struct boot_difference *d, struct strbuf *out)
{
	const char *text = d->found ? strbuf_str(&d->found->text) : "";

	if (strstr(text, "MokSBState") || (!d->found && log_says(r, 7, "MokSBState")))
		strbuf_adds(out, validation_off);
	else if (d->expected == v->events.n && strstr(text, "MokListRT"))
		strbuf_addf(out,
			"a program was started because its signer or hash is in the node's MOK list (%s); next step: use the node's --mok-variables",
			text);
	else if (d->expected == v->events.n)
		strbuf_addf(out,
			"an additional signer: a program signed by another key (kernel, UKI addon) was started (%s)",
			text);
	else if (v->events.v[d->expected].id == PCR7_SECURE_BOOT && str_eq(text, "Secure Boot off"))
		strbuf_adds(out,
			"Secure Boot is off on the node; next step: enable it in the firmware or, if this is intended, use --secureboot-disabled");
	else if (v->events.v[d->expected].id == PCR7_SECURE_BOOT && str_eq(text, "Secure Boot on"))
		strbuf_adds(out,
			"the node has Secure Boot on; next step: omit --secureboot-disabled, or use the node's --efivars");
}

static void mok_reason(const struct boot_variant *v, const struct replay *r,
	const struct boot_difference *d, struct strbuf *out)
{
	if (log_says(r, 14, "MokSBState"))
		strbuf_adds(out, validation_off);
	else if (d->expected == v->events.n)
		strbuf_adds(out,
			"shim measured an additional variable; next step: use the node's --mok-variables");
	else if (!d->found && v->events.v[d->expected].id == PCR14_MOK_LIST_TRUSTED)
		strbuf_adds(out,
			"shim did not measure MokListTrusted: the kernel does not trust enrolled keys on this node (mokutil --untrust-mok); next step: use the node's --mok-variables");
}

static void section_reason(const struct boot_difference *d, struct strbuf *out)
{
	strbuf_adds(out,
		d->found
			? "the node booted another UKI, or another profile of it"
			: "the node's systemd-stub measured fewer sections than this version usually does");
}

/*
 * Use the rules of the PCR first. The order within them matters: the first that fits is reported.
 */
void boot_reason(const struct boot_variant *v, const struct boot_variant *closest,
	const struct replay *r, const struct boot_difference *d, struct strbuf *out)
{
	size_t before = out->len;

	if (d->pcr == 4)
		(void)program_reason(v, closest, r, d, out);
	else if (d->pcr == 7)
		variable_reason(v, r, d, out);
	else if (d->pcr == 11)
		section_reason(d, out);
	else
		mok_reason(v, r, d, out);
	if (out->len > before)
		return;
	if (!d->found)
		strbuf_adds(out,
			"the log ends here: it is truncated, or the boot stopped before this event");
	else if (d->expected < v->events.n && reasons[v->events.v[d->expected].id])
		strbuf_adds(out, reasons[v->events.v[d->expected].id]);
	else
		strbuf_adds(out, "unknown");
}
