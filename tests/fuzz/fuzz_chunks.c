/* SPDX-License-Identifier: MIT */
/*
 * A chunked body in one piece and in pieces is the same body, never longer than what it came in nor
 * than it may be, and what follows it is not touched.
 */
#include "config.h"

#include <assert.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "tec/net/chunks.h"

#define MAX 64

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

struct result {
	int status;
	enum chunks_state state;
	size_t used, got;
	char body[MAX];
};

static struct result take(const uint8_t *data, size_t size, size_t step)
{
	struct result r = {0};
	struct chunks c = {.state = CHUNKS_SIZE};
	char *copy = malloc(size + 1);

	assert(copy);
	if (size > 0)
		memcpy(copy, data, size);
	for (size_t end = 0; r.status == 0 && end < size && c.state != CHUNKS_DONE;) {
		size_t used = 0, got = 0;

		end = end + step < size ? end + step : size;
		r.status = chunks_take(&c, copy + r.used, end - r.used, MAX - r.got, &used, &got);
		assert(used <= end - r.used && got <= used && r.got + got <= MAX);
		assert(r.status != 0 || c.state == CHUNKS_DONE || r.used + used == end);
		memcpy(r.body + r.got, copy + r.used, got);
		r.used += used;
		r.got += got;
	}
	assert(r.status == 0 || r.status == 400 || r.status == 413);
	assert(memcmp(copy + r.used, data + r.used, size - r.used) == 0);
	r.state = c.state;
	free(copy);
	return r;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct result whole = take(data, size, size + 1), by_one = take(data, size, 1),
		      by_some = take(data, size, 7);

	assert(whole.status == by_one.status && whole.status == by_some.status);
	assert(whole.state == by_one.state && whole.state == by_some.state);
	assert(whole.used == by_one.used && whole.used == by_some.used);
	assert(whole.got == by_one.got && whole.got == by_some.got);
	assert(memcmp(whole.body, by_one.body, whole.got) == 0);
	assert(memcmp(whole.body, by_some.body, whole.got) == 0);
	return 0;
}
