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

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check_accepted(const struct pcr_events *e)
{
	cleanup_json struct json_object *o = pcr_events_json(e);
	cleanup_pcr_events struct pcr_events again = PCR_EVENTS_INIT;
	cleanup_pcr_sets struct pcr_sets sets = PCR_SETS_INIT;
	struct pcr_image images[2] = {{.name = "a", .events = *e}, {.name = "b", .events = *e}};
	struct err err = ERR_INIT;

	assert(e->n > 0 && e->n <= PCR_EVENTS_MAX);
	if (pcr_events_from_json(o, &again, &err) < 0)
		assert(!"what was written is refused");
	assert(again.n == e->n);
	images[1].events.n = e->n / 2;
	pcr_combine(images, 2, &sets, NULL);
	assert(sets.n >= 1);
	for (unsigned pcr = 0; pcr < PCR_MAX; pcr++) {
		uint8_t value[SHA256_LEN];
		bool has = pcr_events_value(e, pcr, value);

		assert(has == sets.v[0].has[pcr]);
		assert(memcmp(value, sets.v[0].value[pcr], SHA256_LEN) == 0);
	}
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
