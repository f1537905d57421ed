/* SPDX-License-Identifier: MIT */
/*
 * The log is read once into an array of events (EV_NO_ACTION extends nothing and is left out). Each
 * variant is then compared with it PCR by PCR. The closest variant is taken as the intended one. Of
 * the accepted variants, the report shows the first difference in each PCR with its likely reason.
 * PCRs that are not compared are reported first.
 */
#include "config.h"

#include "tec/measure/compare.h"

#include <stdlib.h>
#include <string.h>

#include "tec/base/log.h"
#include "tec/base/mem.h"
#include "tec/measure/eventlog.h"
#include "tec/pcr/bootpath.h"

#define LOG_EVENTS_MAX 4096

struct replay_event {
	uint32_t pcr, type;
	uint8_t digest[SHA256_LEN];
	struct strbuf text; /* description of its data; not covered by the digest */
};
/* All events that extended a PCR, in log order. */
struct replay {
	struct replay_event *v; /* owned */
	size_t n;
};

/* The first difference in one PCR. */
struct measure_difference {
	bool differs;
	unsigned pcr;
	size_t number;                    /* of the event within its PCR, from 1 */
	size_t expected;                  /* index in the variant; its length: no further event */
	const struct replay_event *found; /* NULL: the log has no further event */
};

static void replay_fini(struct replay *r)
{
	for (size_t i = 0; i < r->n; i++)
		strbuf_fini(&r->v[i].text);
	free(r->v);
}
#define cleanup_replay __attribute__((cleanup(replay_fini)))

void measure_comparison_fini(struct measure_comparison *c)
{
	strbuf_fini(&c->report);
}

/* Read all events that extend a PCR. The descriptions are kept, because the log is not. */
static int read_log(const void *log, size_t len, struct replay *r, struct err *err)
{
	struct eventlog l;
	struct eventlog_event e;
	int rc;

	if (eventlog_open(log, len, &l, err) < 0)
		return -1;
	while ((rc = eventlog_next(&l, &e, err)) > 0) {
		struct replay_event *to;

		if (e.type == EVENTLOG_NO_ACTION)
			continue;
		if (r->n == LOG_EVENTS_MAX)
			return err_set(err, ERR_INVALID, "the event log has more than %d events",
				LOG_EVENTS_MAX);
		ARRAY_GROW(r->v, r->n);
		to = &r->v[r->n++];
		*to = (struct replay_event){.pcr = e.pcr, .type = e.type, .text = STRBUF_INIT};
		memcpy(to->digest, e.sha256, sizeof(to->digest));
		eventlog_describe(&e, &to->text);
	}
	return rc;
}

/* ---- comparing log and variant */

static size_t next_expected(const struct pcr_events *e, unsigned pcr, size_t i)
{
	/* Pcr14NoShim says that there are no events. */
	while (i < e->n && (e->v[i].pcr != pcr || e->v[i].type == PCR_EV_NO_ACTION))
		i++;
	return i;
}

static size_t next_found(const struct replay *r, unsigned pcr, size_t i)
{
	while (i < r->n && r->v[i].pcr != pcr)
		i++;
	return i;
}

/* Compare one PCR. Return the number of equal events before the first difference. */
static size_t follow(const struct pcr_events *e, const struct replay *r, unsigned pcr,
	struct measure_difference *d)
{
	size_t ei = next_expected(e, pcr, 0), ri = next_found(r, pcr, 0), agreed = 0;

	while (ei < e->n && ri < r->n &&
		memcmp(e->v[ei].digest, r->v[ri].digest, SHA256_LEN) == 0) {
		agreed++;
		ei = next_expected(e, pcr, ei + 1);
		ri = next_found(r, pcr, ri + 1);
	}
	*d = (struct measure_difference){.differs = ei < e->n || ri < r->n,
		.pcr = pcr,
		.number = agreed + 1,
		.expected = ei,
		.found = ri < r->n ? &r->v[ri] : NULL};
	return agreed;
}

static bool has_pcr(const struct pcr_events *e, unsigned pcr)
{
	uint8_t ignored[SHA256_LEN];

	return pcr_events_value(e, pcr, ignored);
}

/* How close a variant is: PCRs that differ, then events that agree. */
struct nearness {
	unsigned differing;
	size_t agreed;
};

/* Measure how close a variant is, over the PCRs that it predicts. Other PCRs of the log do not
 * count. */
static struct nearness compare(const struct pcr_events *e, const struct replay *r)
{
	struct nearness n = {0, 0};

	for (unsigned pcr = 0; pcr < PCR_MAX; pcr++) {
		struct measure_difference d;

		if (!has_pcr(e, pcr))
			continue;
		n.agreed += follow(e, r, pcr, &d);
		n.differing += d.differs;
	}
	return n;
}

/* Return the index of the closest accepted variant; the most likely one if several are equally
 * close. PCR_BOOT_STRICT variants are always accepted. */
static size_t nearest(
	const struct measure_variants *v, const struct replay *r, enum pcr_boot_path accepted)
{
	struct nearness best = {0, 0};
	size_t at = v->n;

	for (size_t i = 0; i < v->n; i++) {
		struct nearness n = compare(&v->v[i].events, r);

		/* Prefer a variant without differences, then the one with more equal events. */
		bool nearer =
			!n.differing != !best.differing ? !n.differing : n.agreed > best.agreed;

		if (v->v[i].path > accepted || (at < v->n && !nearer))
			continue;
		best = n;
		at = i;
	}
	return at < v->n ? at : 0;
}

/* ---- why they differ */

/*
 * For the person who has to decide what to do. Rules that use both log and prediction come first (the
 * event is expected later, a boot entry failed); the reasons that follow from the position of the
 * event alone come last.
 */

#define RETURNING "Returning from EFI Application"
#define OTHER_CERTIFICATE                                                                          \
	"another certificate than predicted authorized a program (shim searches db, then its own certificates, then the machine owner keys); next step: if it is a machine owner key, use the node's --mok-variables"
#define OTHER_LOADER                                                                               \
	": its boot loader update is pending or was never applied (bootupctl status), or this is another image; next step: update the boot loader, or approve the image that the node booted"
#define OTHER_KEYS                                                                                 \
	"; next step: use the node's --efivars, and name them as a platform of their own (platformConfigMaps)"
#define OTHER_STATE                                                                                \
	"shim's validation is in another state than predicted (MokSBState); next step: use the node's --mok-variables"
#define OF_PLATFORM                                                                                \
	"; it belongs to the platform, not to the image. Next step: tec-compute-pcrs extract-platform, then use its directory with --efivars, and name it in platformConfigMaps"

static const char *const reasons[PCR_N_EVENT_IDS] = {
	[PCR4_PLATFORM] =
		"the node's firmware measures other events than FirmwareEvents lists" OF_PLATFORM,
	[PCR4_EFI_CALL] =
		"the firmware started something else first (a boot menu, a network boot); next step: check BootOrder on the node (efibootmgr)",
	[PCR4_SEPARATOR] =
		"a program ran before the end of the firmware phase; next step: check SysPrepOrder on the node (efibootmgr)",
	[PCR4_BOOT_ENTRY_FAILED] =
		"the firmware tried other boot entries than predicted; next step: check BootOrder on the node (efibootmgr)",
	[PCR4_FIRMWARE_UPDATE] =
		"another program ran where fwupd's was predicted; next step: reboot the node",
	[PCR4_SHIM] = "the node booted another shim" OTHER_LOADER,
	[PCR4_GRUB] = "the node booted another second stage" OTHER_LOADER,
	[PCR4_UKI] =
		"the node booted another unified kernel image: an older deployment, an update that waits for its reboot, or another image; next step: reboot the node into the image, or approve the one that it booted",
	[PCR4_VMLINUZ] =
		"the node booted another kernel: an older deployment, an update that waits for its reboot, or another image; next step: reboot the node into the image, or approve the one that it booted",
	[PCR7_SECURE_BOOT] = "Secure Boot is in another state than predicted" OTHER_KEYS,
	[PCR7_PK] =
		"the node's platform key differs from that in --efivars: other firmware, or keys were enrolled" OTHER_KEYS,
	[PCR7_KEK] =
		"the node's KEK differs from that in --efivars: other firmware, or keys were enrolled" OTHER_KEYS,
	[PCR7_DB] =
		"the node's db differs from that in --efivars: other firmware, or certificates or hashes were added" OTHER_KEYS,
	[PCR7_DBX] =
		"the node's dbx differs from that in --efivars: usually a revocation update (fwupd, the host's OVMF package)" OTHER_KEYS,
	[PCR7_DBT] = "the node's dbt differs from that in --efivars" OTHER_KEYS,
	[PCR7_DBR] = "the node's dbr differs from that in --efivars" OTHER_KEYS,
	[PCR7_SEPARATOR] = "the firmware measured more variables than predicted" OF_PLATFORM,
	[PCR7_SHIM_CERT] =
		"another certificate than predicted authorized the first program, or Secure Boot is off" OTHER_KEYS,
	[PCR7_MOK_SB_STATE] = OTHER_STATE,
	[PCR7_GRUB_DB_CERT] = OTHER_CERTIFICATE,
	[PCR7_GRUB_VENDOR_DB_CERT] = OTHER_CERTIFICATE,
	[PCR7_GRUB_MOK_LIST_CERT] = OTHER_CERTIFICATE,
	[PCR14_MOK_LIST] =
		"a machine owner key or a hash is enrolled on the node (mokutil --list-enrolled), or it booted another shim; next step: use the node's --mok-variables",
	[PCR14_MOK_LIST_X] =
		"the node has another MOK deny list, or it booted another shim; next step: use the node's --mok-variables",
	[PCR14_MOK_SB_STATE] = OTHER_STATE,
	[PCR14_MOK_LIST_TRUSTED] =
		"the node does not have the usual MokListTrusted (mokutil --untrust-mok); next step: use the node's --mok-variables",
};

static const char validation_off[] =
	"shim's validation is off on the node (MokSBState), so it starts any kernel and measures none; next step: run mokutil --enable-validation on the node or, if this is intended, use its --mok-variables with --allow-validation-disabled";

/* Search the descriptions of a PCR's events (see add_variable() in eventlog.c). */
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

/* Explain what firmware measures of its own, in PCR 4 before the boot loader, or in PCR 7. Return false
 * if the event is not of that kind. */
static bool platform_reason(const struct replay_event *e, struct strbuf *out)
{
	const char *text = strbuf_str(&e->text);

	if (returns(e) || str_starts(text, "\"" PCR_BOOT_CALLING))
		return false;
	if (e->type == EVENTLOG_ACTION || e->type == EVENTLOG_OMITTED)
		strbuf_addf(out, "this firmware also measures %s" OF_PLATFORM, text);
	else if (e->type == EVENTLOG_APPLICATION && strstr(text, EVENTLOG_BUILT_IN))
		strbuf_addf(out,
			"the firmware started %s before the boot loader" OF_PLATFORM
			" with AllowFirmwareApplications, if you trust that program",
			text);
	else
		return false;
	return true;
}

/* Explain a difference in PCR 4. Return false if no rule fits. */
static bool program_reason(const struct measure_variant *v, const struct measure_variant *closest,
	const struct replay *r, const struct measure_difference *d, struct strbuf *out)
{
	const char *label = d->expected < v->events.n ? v->label[d->expected] : NULL,
		   *skipped = NULL, *text = d->found ? strbuf_str(&d->found->text) : "";
	const struct replay_event *before = d->found ? previous(r, d->found) : NULL;

	if (!d->found) {
		if (log_says(r, 14, "MokSBState"))
			strbuf_adds(out, validation_off);
		else if (label && v->events.v[d->expected].id == PCR4_VMLINUZ &&
			 log_says(r, 7, "Secure Boot off"))
			strbuf_adds(out,
				"Secure Boot is off on the node; its boot loader then does not measure the kernel. Next step: enable it in the firmware or, if this is intended, use --secureboot-disabled");
		else
			return false;
		return true;
	}
	if (platform_reason(d->found, out))
		return true;
	if (returns(d->found) && started(before)) {
		/* shim does this when it rejects the second stage. */
		strbuf_addf(out,
			"%s was started but returned, and the firmware continued with another boot entry. Next step: watch the node's console while it boots",
			strbuf_str(&before->text));
		return true;
	}
	if (returns(d->found) ||
		(closest->path == PCR_BOOT_FAILED_ENTRIES && v->path < closest->path)) {
		failed_entries(r, out);
		return true;
	}
	if (closest->path == PCR_BOOT_FIRMWARE_UPDATES && v->path < closest->path) {
		strbuf_addf(out,
			"fwupd's program (%s) ran before the second stage, for a firmware update. Next step: reboot the node, or accept it (--boot-path, spec.bootPath: AllowFirmwareUpdates)",
			text);
		return true;
	}
	if (!label) {
		if (before && same(before->digest, d->found->digest))
			strbuf_adds(out,
				"the same program was measured again: this build of the loader measures it a different number of times than similar builds; next step: report its version to the developers of this program");
		else
			strbuf_addf(out,
				"an additional program was started (%s): a UKI, an addon, a driver, or a kernel that was not predicted; next step: compare it with the image's files (tec-compute-pcrs digest)",
				text);
		return true;
	}
	for (const struct replay_event *e = d->found + 1; started(d->found) && e < r->v + r->n; e++)
		if (e->pcr == 4 && same(e->digest, v->events.v[d->expected].digest)) {
			strbuf_addf(out,
				"%s was started before %s; next step: check BootOrder and BootNext on the node (efibootmgr)",
				text, label);
			return true;
		}
	for (size_t i = d->expected + 1; i < v->events.n && !skipped; i++)
		if (v->events.v[i].pcr == 4 && same(v->events.v[i].digest, d->found->digest))
			skipped = v->label[i];
	if (!skipped)
		return false;
	strbuf_addf(out,
		"%s was not measured here; %s was measured instead; next step: compare the node's boot loader with the image's (bootupctl status)",
		label, skipped);
	return true;
}

/* The level of "sbat,1,2023012900": text up to it, then a date and a counter. 0: none. */
static unsigned long long level_of(const char *text)
{
	const char *at = strstr(text, "sbat,1,");

	return at ? strtoull(at + strlen("sbat,1,"), NULL, 10) : 0;
}

/* Explain another SBAT level. It never falls, so a lower one is that of an older shim. */
static void level_reason(
	const struct measure_variant *v, const struct measure_difference *d, struct strbuf *out)
{
	unsigned long long predicted = level_of(v->label[d->expected]),
			   found = level_of(strbuf_str(&d->found->text));

	if (!strstr(strbuf_str(&d->found->text), "SbatLevel"))
		strbuf_adds(out,
			"the node's shim sets no SBAT level: it is older than SBAT (before 15.3); next step: update the node's boot loader (bootupctl status)");
	else if (found && found < predicted)
		strbuf_adds(out,
			"the node's shim sets an older SBAT level: it is older than the image's; next step: update the node's boot loader (bootupctl status)");
	else if (found == predicted)
		strbuf_adds(out,
			"the node has another SBAT level of the same date; next step: compare its shim with the image's (bootupctl status)");
	else
		strbuf_adds(out,
			"the node has a newer SBAT level, which never falls: it once ran a newer shim, or its SBAT policy is set to latest; next step: use a newer image, or reset the level (mokutil --set-sbat-policy delete, with Secure Boot off)");
}

/* Explain a difference in PCR 7 by the description of the event that was found. */
static void variable_reason(const struct measure_variant *v, const struct replay *r,
	const struct measure_difference *d, struct strbuf *out)
{
	const char *text = d->found ? strbuf_str(&d->found->text) : "";

	if (strstr(text, "MokSBState") || (!d->found && log_says(r, 7, "MokSBState")))
		strbuf_adds(out, validation_off);
	else if (d->found && d->found->type == EVENTLOG_ACTION)
		(void)platform_reason(d->found, out);
	else if (d->found && d->expected < v->events.n &&
		 v->events.v[d->expected].id == PCR7_SBAT_LEVEL)
		level_reason(v, d, out);
	else if (d->expected == v->events.n && strstr(text, "MokListRT"))
		strbuf_addf(out,
			"a program was started because its signer or hash is in the node's MOK list (%s); next step: use the node's --mok-variables",
			text);
	else if (d->expected == v->events.n)
		strbuf_addf(out,
			"an additional signer: a program signed by another key (kernel, UKI addon) was started (%s); next step: find the program that is not the image's in PCR 4",
			text);
	else if (v->events.v[d->expected].id == PCR7_SECURE_BOOT &&
		 str_starts(text, "Secure Boot off"))
		strbuf_adds(out,
			"Secure Boot is off on the node; next step: enable it in the firmware or, if this is intended, use --secureboot-disabled");
	else if (v->events.v[d->expected].id == PCR7_SECURE_BOOT && str_eq(text, "Secure Boot on"))
		strbuf_adds(out,
			"the node has Secure Boot on; next step: omit --secureboot-disabled, or use the node's --efivars");
}

static bool has_no_shim(const struct pcr_events *e)
{
	for (size_t i = 0; i < e->n; i++)
		if (e->v[i].id == PCR14_NO_SHIM)
			return true;
	return false;
}

/*
 * closest: the closest variant, including those that are not accepted; it may be v.
 *
 * Use the rules of the PCR first. The order within them matters: the first that fits is reported.
 */
static void likely_reason(const struct measure_variant *v, const struct measure_variant *closest,
	const struct replay *r, const struct measure_difference *d, struct strbuf *out)
{
	size_t before = out->len;

	if (d->pcr == 4)
		(void)program_reason(v, closest, r, d, out);
	else if (d->pcr == 7)
		variable_reason(v, r, d, out);
	else if (d->pcr == 11)
		strbuf_adds(out,
			d->found
				? "the node booted another UKI, or another profile of it; next step: reboot the node into the image's UKI"
				: "the node's systemd-stub measured fewer sections than this version usually does; next step: report its version to the developers of this program");
	else if (log_says(r, 14, "MokSBState"))
		strbuf_adds(out, validation_off);
	else if (has_no_shim(&v->events))
		strbuf_adds(out,
			"a shim was started on the node, but the image has none; next step: check BootOrder on the node (efibootmgr)");
	else if (d->expected == v->events.n)
		strbuf_adds(out,
			"shim measured an additional variable; next step: use the node's --mok-variables");
	else if (!d->found && v->events.v[d->expected].id == PCR14_MOK_LIST_TRUSTED)
		strbuf_adds(out,
			"shim did not measure MokListTrusted: the kernel does not trust enrolled keys on this node (mokutil --untrust-mok); next step: use the node's --mok-variables");
	if (out->len > before)
		return;
	if (!d->found)
		strbuf_adds(out,
			"the log ends here: it is truncated, or the boot stopped before this event; next step: copy the log again, and watch the node's console while it boots");
	else if (d->expected < v->events.n && reasons[v->events.v[d->expected].id])
		strbuf_adds(out, reasons[v->events.v[d->expected].id]);
	else
		strbuf_adds(out, "unknown");
}

/* ---- the report */

/* Print one side of a difference: the digest, what it is, and its description on a second line. */
static void say_side(struct strbuf *out, const char *side, const uint8_t *digest, const char *what,
	const char *text)
{
	char hex[SHA256_HEX_LEN + 1] = "no further event";

	if (digest)
		bytes_to_hex(digest, SHA256_LEN, hex);
	strbuf_addf(out, "  %-10s %s%s%s\n", side, hex, digest ? "  " : "", what);
	if (*text)
		strbuf_addf(out, "             %s\n", text);
}

/* Replay the log to the value of one PCR. Return false if the log has no events for it. */
static bool register_of(const struct replay *r, unsigned pcr, char hex[SHA256_HEX_LEN + 1])
{
	uint8_t value[SHA256_LEN] = {0};
	bool any = false;

	for (size_t i = 0; i < r->n; i++) {
		if (r->v[i].pcr != pcr)
			continue;
		pcr_extend(value, r->v[i].digest);
		any = true;
	}
	bytes_to_hex(value, SHA256_LEN, hex);
	return any;
}

/* Print the final values. An empty log has none, so only the predictions are printed then. */
static void say_registers(struct strbuf *out, const struct pcr_events *e, const struct replay *r)
{
	for (unsigned pcr = 0; pcr < PCR_MAX; pcr++) {
		uint8_t predicted[SHA256_LEN];
		char hex[2][SHA256_HEX_LEN + 1];

		if (!pcr_events_value(e, pcr, predicted))
			continue;
		bytes_to_hex(predicted, SHA256_LEN, hex[0]);
		(void)register_of(r, pcr, hex[1]);
		if (str_eq(hex[0], hex[1]))
			strbuf_addf(out, "PCR %2u  %s  as predicted\n", pcr, hex[1]);
		else if (r->n)
			strbuf_addf(out, "PCR %2u  %s  in the log\n        %s  predicted\n", pcr,
				hex[1], hex[0]);
		else
			strbuf_addf(out, "PCR %2u  %s  predicted\n", pcr, hex[0]);
	}
}

/* why: the likely reason. */
static void say_difference(struct strbuf *out, const struct measure_variant *v,
	const struct measure_difference *d, const char *why)
{
	bool more = d->expected < v->events.n;
	const struct pcr_event *e = more ? &v->events.v[d->expected] : NULL;

	strbuf_addf(out, "first difference: PCR %u, event %zu\n", d->pcr, d->number);
	say_side(out, "predicted", e ? e->digest : NULL, e ? pcr_event_id_name(e->id) : "",
		e ? v->label[d->expected] : "");
	say_side(out, "in the log", d->found ? d->found->digest : NULL,
		d->found ? eventlog_type_name(d->found->type) : "",
		d->found ? strbuf_str(&d->found->text) : "");
	strbuf_addf(out, "  likely reason: %s\n", why);
}

/* Report the first difference in each PCR. Several PCRs often differ for the same reason, which is
 * printed only once. */
static void say_differences(struct strbuf *out, const struct measure_variant *v,
	const struct measure_variant *closest, const struct replay *r)
{
	cleanup_strbuf struct strbuf said = STRBUF_INIT;
	unsigned said_of = 0;

	for (unsigned pcr = 0; pcr < PCR_MAX; pcr++) {
		cleanup_strbuf struct strbuf why = STRBUF_INIT;
		struct measure_difference d;

		if (!has_pcr(&v->events, pcr))
			continue;
		(void)follow(&v->events, r, pcr, &d);
		if (!d.differs)
			continue;
		likely_reason(v, closest, r, &d, &why);
		if (str_eq(strbuf_str(&why), strbuf_str(&said))) {
			strbuf_reset(&why);
			strbuf_addf(&why, "same as for PCR %u", said_of);
		} else {
			strbuf_reset(&said);
			strbuf_adds(&said, strbuf_str(&why));
			said_of = pcr;
		}
		say_difference(out, v, &d, strbuf_str(&why));
	}
}

/* Report an empty log: Linux receives the log only through its EFI stub. */
static void say_empty(const struct measure_variants *variants, struct strbuf *out)
{
	const struct replay none = {NULL, 0};

	strbuf_adds(out,
		"the log is empty: the boot loader bypassed the kernel's EFI stub, which passes the log on (GRUB 2.06 does so with Secure Boot off). Next step: compare the node's PCRs (/sys/class/tpm/tpm0/pcr-sha256/) with these values\n");
	for (size_t i = 0; i < variants->n; i++) {
		if (variants->v[i].path != PCR_BOOT_STRICT)
			continue;
		strbuf_addf(out, "%s:\n", variants->v[i].when);
		say_registers(out, &variants->v[i].events, &none);
	}
}

/* Report the closest accepted variant. The closest of all variants explains why it differs. */
static void report(const struct measure_variants *variants, const struct replay *r,
	enum pcr_boot_path accepted, struct measure_comparison *out)
{
	const struct measure_variant *v,
		*closest = &variants->v[nearest(variants, r, PCR_BOOT_LAST)];
	char hex[SHA256_HEX_LEN + 1];
	struct nearness n;

	out->variant = nearest(variants, r, accepted);
	v = &variants->v[out->variant];
	n = compare(&v->events, r);
	out->matches = !n.differing;
	if (!has_pcr(&v->events, 7))
		strbuf_adds(&out->report,
			"not compared: PCR 7, because the firmware variables are unknown; next step: use --efivars\n");
	if (!has_pcr(&v->events, 11) && register_of(r, 11, hex))
		strbuf_adds(&out->report,
			"not compared: PCR 11, because the image's second stage is not a unified kernel image\n");
	strbuf_addf(&out->report, "%s: %s\n", out->matches ? "matches" : "does not match; closest",
		v->when);
	say_registers(&out->report, &v->events, r);
	if (!out->matches)
		say_differences(&out->report, v, closest, r);
}

int measure_compare_log(const struct measure_variants *variants, enum pcr_boot_path accepted,
	const void *log, size_t len, struct measure_comparison *out, struct err *err)
{
	cleanup_replay struct replay r = {NULL, 0};

	if (len && read_log(log, len, &r, err) < 0)
		return -1;
	if (r.n)
		report(variants, &r, accepted, out);
	else
		say_empty(variants, &out->report);
	return 0;
}

int measure_compare_refused(const char *why, const void *log, size_t len,
	struct measure_comparison *out, struct err *err)
{
	static const unsigned registers[] = {4, 7, 11, 14};
	cleanup_replay struct replay r = {NULL, 0};
	char hex[SHA256_HEX_LEN + 1];

	if (len && read_log(log, len, &r, err) < 0)
		return -1;
	strbuf_addf(&out->report, "nothing to compare the log with: %s\n", why);
	strbuf_adds(&out->report,
		r.n ? "events in the node's log (the node may have booted something else):\n"
		    : "the log is empty\n");
	for (size_t i = 0; i < ARRAY_LEN(registers); i++)
		if (register_of(&r, registers[i], hex))
			strbuf_addf(&out->report, "PCR %2u  %s\n", registers[i], hex);
	for (size_t i = 0; i < r.n; i++) {
		const struct replay_event *e = &r.v[i];

		/* Only what shows what was started and what authorized it. */
		if (!(e->pcr == 4 &&
			    (e->type == EVENTLOG_APPLICATION || e->type == EVENTLOG_ACTION)) &&
			!(e->pcr == 7 &&
				(e->type == EVENTLOG_VARIABLE || e->type == EVENTLOG_AUTHORITY)))
			continue;
		bytes_to_hex(e->digest, SHA256_LEN, hex);
		strbuf_addf(&out->report, "  PCR %u  %s  %s\n", e->pcr, hex, strbuf_str(&e->text));
	}
	return 0;
}
