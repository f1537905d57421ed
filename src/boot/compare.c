/* SPDX-License-Identifier: MIT */
/*
 * The log is read once into an array of events (EV_NO_ACTION extends nothing and is left out). Each
 * variant is then compared with it PCR by PCR. The closest variant is taken as the intended one. Of
 * the accepted variants, the report shows the first difference in each PCR with its likely reason.
 * PCRs that are not compared are reported first.
 */
#include "config.h"

#include "tec/boot/compare.h"

#include <stdlib.h>
#include <string.h>

#include "replay.h"
#include "tec/base/log.h"
#include "tec/base/mem.h"
#include "tec/boot/eventlog.h"

#define LOG_EVENTS_MAX 4096

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
	while (i < e->n && e->v[i].pcr != pcr)
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
static size_t follow(
	const struct pcr_events *e, const struct replay *r, unsigned pcr, struct boot_difference *d)
{
	size_t ei = next_expected(e, pcr, 0), ri = next_found(r, pcr, 0), agreed = 0;

	while (ei < e->n && ri < r->n &&
		memcmp(e->v[ei].digest, r->v[ri].digest, SHA256_LEN) == 0) {
		agreed++;
		ei = next_expected(e, pcr, ei + 1);
		ri = next_found(r, pcr, ri + 1);
	}
	*d = (struct boot_difference){.differs = ei < e->n || ri < r->n,
		.pcr = pcr,
		.number = agreed + 1,
		.expected = ei,
		.found = ri < r->n ? &r->v[ri] : NULL};
	return agreed;
}

static bool has_pcr(const struct pcr_events *e, unsigned pcr)
{
	return next_expected(e, pcr, 0) < e->n;
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
		struct boot_difference d;

		if (!has_pcr(e, pcr))
			continue;
		n.agreed += follow(e, r, pcr, &d);
		n.differing += d.differs;
	}
	return n;
}

/* Prefer a variant without differences, then the one with more equal events. */
static bool nearer(const struct nearness *a, const struct nearness *b)
{
	if (!a->differing != !b->differing)
		return !a->differing;
	return a->agreed > b->agreed;
}

/* Return the index of the closest accepted variant; the most likely one if several are equally
 * close. PCR_BOOT_STRICT variants are always accepted. */
static size_t nearest(
	const struct boot_variants *v, const struct replay *r, enum pcr_boot_path accepted)
{
	struct nearness best = {0, 0};
	size_t at = v->n;

	for (size_t i = 0; i < v->n; i++) {
		struct nearness n = compare(&v->v[i].events, r);

		if (v->v[i].path > accepted || (at < v->n && !nearer(&n, &best)))
			continue;
		best = n;
		at = i;
	}
	return at < v->n ? at : 0;
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

static void say_not_compared(struct strbuf *out, const struct pcr_events *e, const struct replay *r)
{
	char hex[SHA256_HEX_LEN + 1];

	if (!has_pcr(e, 7))
		strbuf_adds(out,
			"not compared: PCR 7, because the firmware variables are unknown; next step: use --efivars\n");
	if (!has_pcr(e, 11) && register_of(r, 11, hex))
		strbuf_adds(out,
			"not compared: PCR 11, because the image's second stage is not a unified kernel image\n");
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
static void say_difference(struct strbuf *out, const struct boot_variant *v,
	const struct boot_difference *d, const char *why)
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
static void say_differences(struct strbuf *out, const struct boot_variant *v,
	const struct boot_variant *closest, const struct replay *r)
{
	cleanup_strbuf struct strbuf said = STRBUF_INIT;
	unsigned said_of = 0;

	for (unsigned pcr = 0; pcr < PCR_MAX; pcr++) {
		cleanup_strbuf struct strbuf why = STRBUF_INIT;
		struct boot_difference d;

		if (!has_pcr(&v->events, pcr))
			continue;
		(void)follow(&v->events, r, pcr, &d);
		if (!d.differs)
			continue;
		boot_reason(v, closest, r, &d, &why);
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
static void say_empty(const struct boot_variants *variants, struct strbuf *out)
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
static void report(const struct boot_variants *variants, const struct replay *r,
	enum pcr_boot_path accepted, struct boot_comparison *out)
{
	const struct boot_variant *v, *closest = &variants->v[nearest(variants, r, PCR_BOOT_LAST)];
	struct nearness n;

	out->variant = nearest(variants, r, accepted);
	v = &variants->v[out->variant];
	n = compare(&v->events, r);
	out->matches = !n.differing;
	say_not_compared(&out->report, &v->events, r);
	strbuf_addf(&out->report, "%s: %s\n", out->matches ? "matches" : "does not match; closest",
		v->when);
	say_registers(&out->report, &v->events, r);
	if (!out->matches)
		say_differences(&out->report, v, closest, r);
}

int boot_compare_log(const struct boot_variants *variants, enum pcr_boot_path accepted,
	const void *log, size_t len, struct boot_comparison *out, struct err *err)
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

/* Select the events that show what was started and what authorized it. */
static bool tells(const struct replay_event *e)
{
	return (e->pcr == 4 && (e->type == EVENTLOG_APPLICATION || e->type == EVENTLOG_ACTION)) ||
	       (e->pcr == 7 && (e->type == EVENTLOG_VARIABLE || e->type == EVENTLOG_AUTHORITY));
}

int boot_compare_refused(
	const char *why, const void *log, size_t len, struct boot_comparison *out, struct err *err)
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
		if (!tells(&r.v[i]))
			continue;
		bytes_to_hex(r.v[i].digest, SHA256_LEN, hex);
		strbuf_addf(&out->report, "  PCR %u  %s  %s\n", r.v[i].pcr, hex,
			strbuf_str(&r.v[i].text));
	}
	return 0;
}
