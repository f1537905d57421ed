/* SPDX-License-Identifier: MIT */
/*
 * The text of ConfigMap image-pcrs, which Jobs write. Every entry is good with events that are
 * enough, or bad with a reason and without events; each is found by its name; taking one out leaves
 * the others as they were. A platform is bad with a reason, or has PCR 7 alone, or a reason; a
 * variant is as good as an entry.
 */
#include "config.h"

#include <assert.h>
#include <stdint.h>
#include <string.h>

#include "tec/model/pcrs.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check_edit(const char *text, size_t len, const struct model_pcrs *m)
{
	struct err err = ERR_INIT;
	cleanup_free char *left = model_pcrs_edit(text, len, m->v[0].name, NULL, &err);
	cleanup_model_pcrs struct model_pcrs *again = NULL;

	assert(left);
	again = model_pcrs_parse(left, strlen(left));
	assert(!again->why && again->n == m->n - 1);
	for (size_t i = 0; i < again->n; i++) {
		assert(strcmp(again->v[i].name, m->v[i + 1].name) == 0);
		assert(again->v[i].events.n == m->v[i + 1].events.n);
	}
}

static void check_platforms(const struct model_platforms *p)
{
	assert(p->n <= MODEL_PLATFORMS_MAX);
	for (size_t i = 0; i < p->n; i++) {
		const struct model_platform *m = &p->v[i];

		assert(model_platforms_find(p, m->name) == m);
		assert(!m->bad || m->why);
		assert(!m->why == (m->events.n > 0));
		for (size_t k = 0; k < m->events.n; k++)
			assert(m->events.v[k].pcr == 7);
	}
}

static void check_variants(const struct model_variants *s)
{
	assert(s->n <= MODEL_VARIANTS_MAX);
	for (size_t i = 0; i < s->n; i++) {
		struct err err = ERR_INIT;

		assert(s->v[i].when && model_variant_check(&s->v[i].events, &err) == 0);
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	cleanup_model_pcrs struct model_pcrs *m = model_pcrs_parse((const char *)data, size);

	assert(!m->why || m->n == 0);
	for (size_t i = 0; i < m->n; i++) {
		const struct model_pcrs_entry *e = &m->v[i];
		struct err err = ERR_INIT;

		assert(model_pcrs_find(m, e->name) == e);
		assert(e->why ? e->events.n == 0 : model_variant_check(&e->events, &err) == 0);
		assert(!e->why || e->platforms.n == 0);
		check_platforms(&e->platforms);
		assert(!e->why || e->variants.n == 0);
		check_variants(&e->variants);
	}
	if (m->n)
		check_edit((const char *)data, size, m);
	return 0;
}
