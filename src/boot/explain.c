/* SPDX-License-Identifier: MIT */
/*
 * Show which file causes which event: all events of the most likely variant, and for the others
 * only the differences from it, so that a person sees the lines that matter.
 */
#include "config.h"

#include <string.h>

#include "boot_internal.h"
#include "tec/base/mem.h"

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

void boot_explain(const struct boot_variants *v, struct strbuf *out)
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
