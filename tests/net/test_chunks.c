/* SPDX-License-Identifier: MIT */
#include "config.h"

#include <criterion/criterion.h>

#include <string.h>

#include "tec/base/mem.h"
#include "tec/net/chunks.h"

#define MAX 40

/* In pieces of this many bytes, as the guard gives them; -1: it is not at its end. */
static int take(const char *text, size_t step, char *out, size_t *rest)
{
	size_t n = 0, len = strlen(text), at = 0, end = 0;
	cleanup_free char *data = xmemdup(text, len + 1);
	struct chunks c = {.state = CHUNKS_SIZE};
	int status = 0;

	while (status == 0 && end < len && c.state != CHUNKS_DONE) {
		size_t used, got;

		end = end + step < len ? end + step : len;
		status = chunks_take(&c, data + at, end - at, MAX - n, &used, &got);
		cr_assert(used <= end - at && got <= used);
		memcpy(out + n, data + at, got);
		n += got;
		at += used;
		cr_assert(status != 0 || c.state == CHUNKS_DONE || at == end);
	}
	out[n] = '\0';
	*rest = len - at;
	return status ? status : c.state == CHUNKS_DONE ? 0 : -1;
}

Test(net_chunks, bodies_and_what_is_none)
{
	static const struct {
		const char *text;
		int status;
		const char *want;
		size_t rest;
	} rows[] = {
		{"0\r\n\r\n", 0, "", 0},
		{"2\r\nhi\r\n0\r\n\r\n", 0, "hi", 0},
		{"2\r\nhi\r\n1\r\n!\r\n0\r\n\r\nGET / HTTP/1.1\r\n", 0, "hi!", 16},
		{"000a\r\n0123456789\r\n0000\r\n\r\n", 0, "0123456789", 0},
		{"A\r\n0\r\n\r\n45678\r\n0\r\n\r\n", 0, "0\r\n\r\n45678", 0},
		{"28\r\n0123456789012345678901234567890123456789\r\n0\r\n\r\n", 0,
			"0123456789012345678901234567890123456789", 0},
		{"", -1, "", 0},
		{"2", -1, "", 0},
		{"2\r\nhi\r\n", -1, "hi", 0},
		{"2\r\nhi\r\n0\r\n\r", -1, "hi", 0},
		/* more than it may be: at once, in sum, and as a number that does not fit */
		{"29\r\n", 413, "", 0},
		{"28\r\n0123456789012345678901234567890123456789\r\n1\r\n!", 413,
			"0123456789012345678901234567890123456789", 0},
		{"ffffffff\r\n", 413, "", 0},
		{"fffffffffffffffff\r\n", 413, "", 0},
		{"000000001\r\n", 413, "", 0},
		/* what another parser could read otherwise */
		{"\r\n", 400, "", 0},
		{"\n", 400, "", 0},
		{" 2\r\nhi\r\n", 400, "", 0},
		{"2 \r\nhi\r\n", 400, "", 0},
		{"2\nhi\r\n", 400, "", 0},
		{"2\r\r\nhi\r\n", 400, "", 0},
		{"+2\r\nhi\r\n", 400, "", 0},
		{"-1\r\n", 400, "", 0},
		{"0x2\r\nhi\r\n", 400, "", 0},
		{"2;a=b\r\nhi\r\n", 400, "", 0},
		{"2\thi\r\n", 400, "", 0},
		{"g\r\n", 400, "", 0},
		{"2\r\nhi!\r\n", 400, "hi", 0},
		{"2\r\nhi\n0\r\n\r\n", 400, "hi", 0},
		{"2\r\nhi\r0\r\n\r\n", 400, "hi", 0},
		{"2\r\nhi0\r\n\r\n", 400, "hi", 0},
		{"0\r\n\n", 400, "", 0},
		{"0\r\nContent-Length: 5\r\n\r\n", 400, "", 0},
		{"0\r\n0\r\n\r\n", 400, "", 0},
		{"0\n\n", 400, "", 0},
	};

	for (size_t i = 0; i < ARRAY_LEN(rows); i++)
		for (size_t step = 1; step <= 64; step += step < 8 ? 1 : 56) {
			char out[MAX + 1];
			size_t rest;
			int status = take(rows[i].text, step, out, &rest);

			cr_expect_eq(status, rows[i].status, "%zu by %zu: %d", i, step, status);
			cr_expect_str_eq(out, rows[i].want, "%zu by %zu: %s", i, step, out);
			if (status == 0)
				cr_expect_eq(rest, rows[i].rest, "%zu by %zu", i, step);
		}
}
