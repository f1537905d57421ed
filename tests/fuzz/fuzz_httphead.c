/* SPDX-License-Identifier: MIT */
/*
 * What httphead_check() accepts holds no byte that two parsers could read differently, ends where
 * it says, and is accepted again when cut there: the guard relies on each of these.
 */
#include "config.h"

#include <assert.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "tec/net/httpd.h"
#include "tec/net/httphead.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static int is_status(int status)
{
	static const int known[] = {0, 400, 411, 413, 414, 415, 417, 431, 501, 505};

	for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++)
		if (status == known[i])
			return 1;
	return 0;
}

static void check_accepted(const char *head, size_t size, const struct httphead_limits *limits,
	const struct httphead *h)
{
	struct httphead again;

	assert(h->head_len >= 4 && h->head_len <= size);
	assert(memcmp(head + h->head_len - 4, "\r\n\r\n", 4) == 0);
	assert(memmem(head, h->head_len, "\r\n\r\n", 4) == head + h->head_len - 4);
	for (size_t i = 0; i < h->head_len; i++) {
		unsigned char c = (unsigned char)head[i];

		assert((c >= 0x20 && c != 0x7f) || c == '\t' || c == '\r' || c == '\n');
		assert(c != '\r' || head[i + 1] == '\n');
		assert(c != '\n' || (i > 0 && head[i - 1] == '\r'));
	}
	assert(h->target_off + h->target_len < h->fields_off && h->fields_off < h->head_len);
	assert(head[h->target_off] == '/' && h->target_len <= limits->target);
	assert(h->body_len <= limits->body && (h->has_length || h->body_len == 0));
	assert(!h->chunked || (limits->chunked && !h->has_length && !h->http10));
	assert(httphead_check(head, h->head_len, limits, &again) == 0);
	assert(again.head_len == h->head_len && again.body_len == h->body_len);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char *copy = malloc(size + 1); /* exact size, so that reading one byte too many is seen */
	struct httphead_limits limits = httpd_conf_default.limits;
	struct httphead h;

	assert(copy);
	if (size > 0)
		memcpy(copy, data, size);
	copy = realloc(copy, size ? size : 1);
	assert(copy);
	for (int chunked = 0; chunked < 2; chunked++) {
		int status;

		limits.chunked = chunked;
		status = httphead_check(copy, size, &limits, &h);
		assert(is_status(status));
		if (status == 0)
			check_accepted(copy, size, &limits, &h);
	}
	free(copy);
	return 0;
}
