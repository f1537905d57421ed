/* SPDX-License-Identifier: MIT */
/*
 * The log is read once into an array of its events (EV_NO_ACTION extends nothing and is left out),
 * then each variant is followed through it register by register. The variant that agrees longest is
 * the one meant; its first difference, in the order of the log, is what a person hears of, with the
 * usual reason.
 */
#include "config.h"

#include "tec/boot/compare.h"

#include <stdlib.h>
#include <string.h>

#include "tec/base/log.h"
#include "tec/base/mem.h"
#include "tec/boot/efivar.h"
#include "tec/boot/eventlog.h"

#define LOG_EVENTS_MAX 4096

struct event {
	uint32_t pcr, type;
	uint8_t digest[SHA256_LEN];
	struct strbuf text; /* what the firmware wrote beside it, printable part */
};
struct replay {
	struct event *v; /* owned */
	size_t n;
};

static void replay_fini(struct replay *r)
{
	for (size_t i = 0; i < r->n; i++)
		strbuf_fini(&r->v[i].text);
	free(r->v);
}
#define cleanup_replay __attribute__((cleanup(replay_fini)))

void boot_comparison_fini(struct boot_comparison *c)
{
	strbuf_fini(&c->report);
}

/* The name of a variable, a device path's file, a message: printable ASCII, also of UTF-16. */
static void keep_text(struct strbuf *out, const uint8_t *data, uint32_t len)
{
	for (uint32_t i = 0; i < len && out->len < 60; i++)
		if (data[i] >= 0x20 && data[i] < 0x7f)
			strbuf_addc(out, (char)data[i]);
}

static int read_log(const void *log, size_t len, struct replay *r, struct err *err)
{
	struct eventlog l;
	struct eventlog_event e;
	int rc;

	if (eventlog_open(log, len, &l, err) < 0)
		return -1;
	while ((rc = eventlog_next(&l, &e, err)) > 0) {
		struct event *to;

		if (e.type == EVENTLOG_NO_ACTION)
			continue;
		if (r->n == LOG_EVENTS_MAX)
			return err_set(err, ERR_INVALID, "the event log has more than %d events",
				LOG_EVENTS_MAX);
		ARRAY_GROW(r->v, r->n);
		to = &r->v[r->n++];
		*to = (struct event){.pcr = e.pcr, .type = e.type, .text = STRBUF_INIT};
		memcpy(to->digest, e.sha256, sizeof(to->digest));
		keep_text(&to->text, e.data, e.len);
	}
	return rc;
}

/* ---- where log and variant part */

struct difference {
	size_t agreed; /* events of compared registers before any difference */
	bool differs;
	unsigned pcr;
	size_t number;                    /* of the event within its register, from 1 */
	const struct pcr_event *expected; /* NULL: nothing more was */
	const struct event *found;        /* NULL: the log has no more */
	size_t at;                        /* index in the log; its length when it has no more */
};

static const struct pcr_event *next_expected(const struct pcr_events *e, unsigned pcr, size_t *i)
{
	while (*i < e->n && e->v[*i].pcr != pcr)
		++*i;
	return *i < e->n ? &e->v[(*i)++] : NULL;
}

static const struct event *next_found(const struct replay *r, unsigned pcr, size_t *i)
{
	while (*i < r->n && r->v[*i].pcr != pcr)
		++*i;
	return *i < r->n ? &r->v[(*i)++] : NULL;
}

/* One register; an earlier difference in the log wins over that already in d. */
static void follow(
	const struct pcr_events *e, const struct replay *r, unsigned pcr, struct difference *d)
{
	size_t ei = 0, ri = 0, number = 0;

	for (;;) {
		const struct pcr_event *expected = next_expected(e, pcr, &ei);
		const struct event *found = next_found(r, pcr, &ri);
		size_t at = found ? (size_t)(found - r->v) : r->n;

		number++;
		if (!expected && !found)
			return;
		if (expected && found && memcmp(expected->digest, found->digest, SHA256_LEN) == 0) {
			d->agreed++;
			continue;
		}
		if (!d->differs || at < d->at)
			*d = (struct difference){d->agreed, true, pcr, number, expected, found, at};
		return;
	}
}

static bool has_pcr(const struct pcr_events *e, unsigned pcr)
{
	size_t i = 0;

	return next_expected(e, pcr, &i) != NULL;
}

static struct difference compare(const struct pcr_events *e, const struct replay *r)
{
	struct difference d = {0};

	for (unsigned pcr = 0; pcr < PCR_MAX; pcr++)
		if (has_pcr(e, pcr))
			follow(e, r, pcr, &d);
	return d;
}

/* ---- what to say */

static const char *const reasons[PCR_N_EVENT_IDS] = {
	[PCR4_EFI_CALL] =
		"the firmware started something else first (a boot menu, a network boot, an earlier boot entry that failed)",
	[PCR4_SEPARATOR] = "an option ROM or a firmware application ran before the boot loader",
	[PCR4_SHIM] =
		"the node booted another shim: its boot loader update is pending or was never applied (bootupctl status), or this is another image",
	[PCR4_GRUB] =
		"the node booted another second stage: its boot loader update is pending or was never applied (bootupctl status), or this is another image",
	[PCR4_VMLINUZ] =
		"the node booted another kernel: an older deployment, an update that waits for its reboot, or another image",
	[PCR7_SECURE_BOOT] = "Secure Boot is in another state than predicted",
	[PCR7_PK] =
		"the node's platform key is not that of --efivars: other firmware, or keys were enrolled",
	[PCR7_KEK] =
		"the node's KEK is not that of --efivars: other firmware, or keys were enrolled",
	[PCR7_DB] =
		"the node's db is not that of --efivars: other firmware, or certificates were added",
	[PCR7_DBX] =
		"the node's dbx is not that of --efivars: usually a revocation update (fwupd, the host's OVMF package)",
	[PCR7_SEPARATOR] = "the firmware measured more variables than PK, KEK, db and dbx",
	[PCR7_SHIM_CERT] =
		"the firmware accepted shim by another certificate, or Secure Boot is off",
	[PCR7_SBAT_LEVEL] =
		"the node keeps another SBAT level: it once ran a newer shim, or its SBAT policy is set to latest",
	[PCR7_GRUB_DB_CERT] = "an image was accepted by another certificate than predicted",
	[PCR7_GRUB_VENDOR_DB_CERT] = "an image was accepted by another certificate than predicted",
	[PCR7_GRUB_MOK_LIST_CERT] =
		"an image was accepted by another certificate than predicted (db comes first, then shim's own, then MOKs)",
	[PCR14_MOK_LIST] =
		"a machine owner key is enrolled on the node (mokutil --list-enrolled), or shim differs; next step: give its --mok-variables",
	[PCR14_MOK_LIST_X] =
		"the node's MOK deny list, or shim, differs; next step: give its --mok-variables",
	[PCR14_MOK_LIST_TRUSTED] =
		"the node's MokListTrusted differs (mokutil --trust-mok); next step: give its --mok-variables",
};

/* The events of the log that were not predicted, by register. */
static const char *extra_reason(unsigned pcr)
{
	if (pcr == 4)
		return "one image more was started: the loader measured the kernel again, or a UKI, addon or driver was loaded";
	if (pcr == 7)
		return "one authority more: an image signed by another key (kernel, UKI addon) was loaded";
	return "shim measured one variable more (MokSBState and MokDBState are, when they are set)";
}

static const char *reason(const struct pcr_events *e, const struct difference *d)
{
	bool was_expected = false;

	if (!d->expected)
		return extra_reason(d->pcr);
	if (!d->found)
		return "the log ends here: it was cut, or the boot stopped before this";
	for (size_t i = 0; i < e->n; i++)
		was_expected |= e->v[i].pcr == d->pcr &&
				memcmp(e->v[i].digest, d->found->digest, SHA256_LEN) == 0;
	if (was_expected)
		return "the same events in another order or number: the loader behaves unlike its relatives (see --variants)";
	return reasons[d->expected->id] ? reasons[d->expected->id] : "unknown";
}

static void say_side(struct strbuf *out, const char *side, const uint8_t *digest, const char *what,
	const char *text)
{
	char hex[SHA256_HEX_LEN + 1] = "nothing more";

	if (digest)
		bytes_to_hex(digest, SHA256_LEN, hex);
	strbuf_addf(out, "  %-10s %s  %s%s%s\n", side, hex, what, *text ? "  " : "",
		*text ? log_esc(text) : "");
}

static void say_registers(struct strbuf *out, const struct pcr_events *e, const struct replay *r)
{
	for (unsigned pcr = 0; pcr < PCR_MAX; pcr++) {
		uint8_t predicted[SHA256_LEN], shown[SHA256_LEN] = {0};
		char hex[2][SHA256_HEX_LEN + 1];

		if (!pcr_events_value(e, pcr, predicted))
			continue;
		for (size_t i = 0; i < r->n; i++)
			if (r->v[i].pcr == pcr)
				pcr_extend(shown, r->v[i].digest);
		bytes_to_hex(predicted, SHA256_LEN, hex[0]);
		bytes_to_hex(shown, SHA256_LEN, hex[1]);
		if (memcmp(predicted, shown, SHA256_LEN) == 0)
			strbuf_addf(out, "PCR %2u  %s  as predicted\n", pcr, hex[1]);
		else
			strbuf_addf(out, "PCR %2u  %s  in the log\n        %s  predicted\n", pcr,
				hex[1], hex[0]);
	}
}

static void say_difference(
	struct strbuf *out, const struct pcr_events *e, const struct difference *d)
{
	strbuf_addf(out, "first difference: PCR %u, event %zu\n", d->pcr, d->number);
	say_side(out, "predicted", d->expected ? d->expected->digest : NULL,
		d->expected ? pcr_event_id_name(d->expected->id) : "", "");
	say_side(out, "in the log", d->found ? d->found->digest : NULL,
		d->found ? eventlog_type_name(d->found->type) : "",
		d->found ? strbuf_str(&d->found->text) : "");
	strbuf_addf(out, "likely reason: %s\n", reason(e, d));
}

int boot_compare_log(const struct boot_variants *variants, const void *log, size_t len,
	struct boot_comparison *out, struct err *err)
{
	cleanup_replay struct replay r = {NULL, 0};
	struct difference best = {0};
	const struct boot_variant *v;

	if (read_log(log, len, &r, err) < 0)
		return -1;
	for (size_t i = 0; i < variants->n; i++) {
		struct difference d = compare(&variants->v[i].events, &r);

		if (i && d.differs && (!best.differs || d.agreed <= best.agreed))
			continue;
		if (i && !best.differs)
			continue; /* the likelier one matches already */
		best = d;
		out->variant = i;
	}
	v = &variants->v[out->variant];
	out->matches = !best.differs;
	strbuf_addf(&out->report, "%s: %s\n", out->matches ? "matches" : "does not match; closest",
		v->when);
	say_registers(&out->report, &v->events, &r);
	if (!out->matches)
		say_difference(&out->report, &v->events, &best);
	return 0;
}
