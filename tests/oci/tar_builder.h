/* SPDX-License-Identifier: MIT */
/* Makes tar archives, right and wrong ones. */
#ifndef TESTS_OCI_TAR_BUILDER_H
#define TESTS_OCI_TAR_BUILDER_H

#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "tec/base/str.h"

struct tar_head {
	const char *name, *link, *prefix;
	char type;
	size_t size; /* as the header says */
};

static inline void tar_head(struct strbuf *b, const struct tar_head *h)
{
	uint8_t block[512] = {0};
	unsigned sum = 0;

	memcpy(block, h->name, strlen(h->name));
	snprintf((char *)block + 100, 8, "%07o", 0644);
	snprintf((char *)block + 124, 12, "%011zo", h->size);
	memset(block + 148, ' ', 8);
	block[156] = (uint8_t)h->type;
	if (h->link)
		memcpy(block + 157, h->link, strlen(h->link));
	memcpy(block + 257,
		"ustar\0"
		"00",
		8);
	if (h->prefix)
		memcpy(block + 345, h->prefix, strlen(h->prefix));
	for (size_t i = 0; i < sizeof(block); i++)
		sum += block[i];
	snprintf((char *)block + 148, 8, "%06o", sum);
	strbuf_add(b, block, sizeof(block));
}

static inline void tar_data(struct strbuf *b, const void *data, size_t len)
{
	static const uint8_t zeros[512];

	strbuf_add(b, data, len);
	strbuf_add(b, zeros, (512 - len % 512) % 512);
}

static inline void tar_entry(
	struct strbuf *b, char type, const char *name, const char *link, const char *text)
{
	size_t len = text ? strlen(text) : 0;

	tar_head(b, &(struct tar_head){.name = name, .link = link, .type = type, .size = len});
	if (text)
		tar_data(b, text, len);
}

static inline void tar_end(struct strbuf *b)
{
	static const uint8_t zeros[1024];

	strbuf_add(b, zeros, sizeof(zeros));
}

#endif
