/* SPDX-License-Identifier: MIT */
/*
 * The label of an image, from a registry. What is accepted replays: written out again it is read
 * back as the same events, and combining it with itself and with a part of itself gives its own
 * values among others. What is refused leaves nothing behind.
 */
#include "config.h"

#include <assert.h>
#include <stdint.h>
#include <string.h>

#include "tec/base/json.h"
#include "tec/pcr/combine.h"

#define SETS_MAX 64

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check_accepted(const struct pcr_events *e)
{
	cleanup_json struct json_object *o = pcr_events_json(e);
	cleanup_pcr_events struct pcr_events again = PCR_EVENTS_INIT;
	cleanup_pcr_sets struct pcr_sets sets = PCR_SETS_INIT;
	struct pcr_mixer *m = pcr_mixer_new();
	struct pcr_events part = *e; /* borrows */
	struct err err = ERR_INIT;
	bool fits;

	assert(e->n > 0 && e->n <= PCR_EVENTS_MAX);
	if (pcr_events_from_json(o, &again, &err) < 0)
		assert(!"what was written is refused");
	assert(again.n == e->n);
	part.n = e->n / 2;
	fits = pcr_mixer_add(m, "a", 0, e, SETS_MAX, &sets);
	assert(fits && sets.n >= 1);
	fits = pcr_mixer_add(m, "b", 1, &part, SETS_MAX, &sets);
	assert(sets.n >= 1 && sets.n <= SETS_MAX && (fits || e->n > 1));
	assert(pcr_mixer_count(m) >= 1);
	for (unsigned pcr = 0; pcr < PCR_MAX; pcr++) {
		uint8_t value[SHA256_LEN];
		bool has = pcr_events_value(e, pcr, value);

		assert(has == sets.v[0].has[pcr]);
		assert(memcmp(value, sets.v[0].value[pcr], SHA256_LEN) == 0);
	}
	pcr_mixer_free(m);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	cleanup_pcr_events struct pcr_events e = PCR_EVENTS_INIT;
	struct err err = ERR_INIT;

	if (pcr_label_parse((const char *)data, size, &e, &err) == 0)
		check_accepted(&e);
	else
		assert(err.kind == ERR_INVALID && e.n == 0 && err.text[0]);
	return 0;
}
