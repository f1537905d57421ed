/* SPDX-License-Identifier: MIT */
/*
 * The events of one way to boot, each with a label for people. Shown are all events of the most
 * likely variant, and for the others only the differences from it, so that a person sees the lines
 * that matter.
 */
#include "config.h"

#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "boot_internal.h"
#include "tec/base/mem.h"

static void fini_variant(struct boot_variant *v)
{
	for (size_t k = 0; k < v->events.n; k++)
		free(v->label[k]);
	free(v->label);
	free(v->when);
	pcr_events_fini(&v->events);
}

void boot_variants_fini(struct boot_variants *v)
{
	for (size_t i = 0; i < v->n; i++)
		fini_variant(&v->v[i]);
	free(v->v);
	strbuf_fini(&v->explain);
	*v = (struct boot_variants)BOOT_VARIANTS_INIT;
}

/* The label array grows with the events, so that each event has one label. */
void boot_variant_add(struct boot_build *b, enum pcr_event_id id, enum pcr_event_type type,
	unsigned pcr, const uint8_t digest[SHA256_LEN], const char *fmt, ...)
{
	cleanup_strbuf struct strbuf label = STRBUF_INIT;
	struct boot_variant *v = b->variant;
	va_list ap;

	ARRAY_GROW(v->label, v->events.n);
	if (!pcr_events_push(&v->events, id, type, pcr, digest))
		DIE("more than %d events of one image", PCR_EVENTS_MAX);
	va_start(ap, fmt);
	strbuf_vaddf(&label, fmt, ap);
	va_end(ap);
	v->label[v->events.n - 1] = strbuf_steal(&label);
}

/* ---- for people */

static void say_event(const struct boot_variant *v, size_t i, char mark, struct strbuf *out)
{
	const struct pcr_event *e = &v->events.v[i];
	char hex[SHA256_HEX_LEN + 1];

	bytes_to_hex(e->digest, SHA256_LEN, hex);
	strbuf_addf(out, "%c PCR %2u  %s  %-20s  %s\n", mark, e->pcr, hex, pcr_event_id_name(e->id),
		v->label[i]);
}

/* Mark in `used` an unused event of v that equals e. Return false if there is none. */
static bool take_same(const struct boot_variant *v, const struct pcr_event *e, bool *used)
{
	for (size_t i = 0; i < v->events.n; i++) {
		if (used[i] || !pcr_event_same(&v->events.v[i], e))
			continue;
		used[i] = true;
		return true;
	}
	return false;
}

/*
 * List removed events with '-', then added ones with '+'. Repeated events are matched one to one.
 */
static void say_differences(
	const struct boot_variant *first, const struct boot_variant *v, struct strbuf *out)
{
	cleanup_free bool *used = xcalloc(first->events.n + 1, sizeof(*used));
	cleanup_strbuf struct strbuf more = STRBUF_INIT;

	for (size_t i = 0; i < v->events.n; i++)
		if (!take_same(first, &v->events.v[i], used))
			say_event(v, i, '+', &more);
	for (size_t i = 0; i < first->events.n; i++)
		if (!used[i])
			say_event(first, i, '-', out);
	strbuf_adds(out, strbuf_str(&more));
}

void boot_variants_explain(const struct boot_variants *v, struct strbuf *out)
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
