/* SPDX-License-Identifier: MIT */
/*
 * A Job's termination message: as it comes, and its packed values behind a head that is right. What
 * is taken has PCR 4 and 14, platforms what they may have, and is written again as the same bytes.
 */
#include "config.h"

#include <assert.h>
#include <stdint.h>
#include <string.h>

#include "tec/base/bytes.h"
#include "tec/model/pcrmsg.h"
#include "tec/model/pcrs.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define NONCE  "00112233445566778899aabbccddeeff"
#define DIGEST "4bf5122f344554c53bde2ebb8cd2b7e3d1600ad631c385a5d7cce23c7785459a"

static void check(const struct model_pcrmsg *m)
{
	struct err err = ERR_INIT;

	assert(model_variant_check(&m->events, &err) == 0);
	assert(m->variants.n <= MODEL_VARIANTS_MAX && m->platforms.n <= MODEL_PLATFORMS_MAX);
	for (size_t i = 0; i < m->variants.n; i++)
		assert(m->variants.v[i].when &&
			model_variant_check(&m->variants.v[i].events, &err) == 0);
	for (size_t i = 0; i < m->platforms.n; i++) {
		const struct model_platform *p = &m->platforms.v[i];

		assert(model_platforms_find(&m->platforms, p->name) == p && !p->bad);
		assert(!p->why == (p->events.n > 0));
		assert(p->why || model_platform_check(&p->events, &err) == 0);
	}
}

static void read_one(const char *text, size_t len)
{
	cleanup_pcrmsg struct model_pcrmsg m = MODEL_PCRMSG_INIT;
	cleanup_strbuf struct strbuf again = STRBUF_INIT;
	struct err err = ERR_INIT;

	if (model_pcrmsg_read(text, len, NONCE, DIGEST, &m, &err) < 0) {
		assert(err_is_set(&err) && m.events.n == 0);
		return;
	}
	check(&m);
	assert(model_pcrmsg_write(NONCE, DIGEST, &m, &again, &err) == 0);
	assert(again.len == len && memcmp(again.data, text, len) == 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	cleanup_strbuf struct strbuf text = STRBUF_INIT;

	read_one((const char *)data, size);
	strbuf_adds(&text, "tec-pcrs/3 " NONCE " " DIGEST " ");
	bytes_to_b64(&text, data, size);
	read_one(strbuf_str(&text), text.len);
	return 0;
}
