/* SPDX-License-Identifier: MIT */
/*
 * Two bytes of epoch, then a text that a stranger sends as the id of his Machine. Without the key
 * nothing is valid but what rats_ticket_make() gives for the same bits.
 */
#include "config.h"

#include <assert.h>
#include <stdint.h>
#include <string.h>

#include "tec/base/str.h"
#include "tec/rats/ticket.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const struct rats_ticket_scope scope = {"uid", "Open", NULL};
	cleanup_secret struct secret *key = NULL;
	char again[UUID_TEXT_LEN + 1];
	uint8_t raw[UUID_LEN];
	uint16_t epoch;

	if (size < 2 || size > 4096)
		return 0;
	epoch = (uint16_t)(data[0] << 8 | data[1]);
	cleanup_free char *text = xmemdup(data + 2, size - 2);
	key = secret_new(RATS_TICKET_KEY_LEN);
	if (rats_ticket_valid(key, &scope, text, epoch)) {
		uuid_to_bytes(text, raw);
		rats_ticket_make(
			key, &scope, raw, (uint16_t)((raw[6] & 0x0f) << 6 | raw[7] >> 2), again);
		assert(strcmp(again, text) == 0);
	}
	return 0;
}
