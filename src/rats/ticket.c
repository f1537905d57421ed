/* SPDX-License-Identifier: MIT */
/*
 * Bits of the UUID, most significant first: 48 random, 4 version, 10 epoch, 2 MAC, 2 variant, 62
 * MAC. Each authenticated field has a fixed length or a length prefix, so two different scopes
 * never give the same text. A MAC of 64 bits is enough: each guess costs a request to a
 * rate-limited listener, and a hit is worth no more than GET /ignition.
 */
#include "config.h"

#include "tec/rats/ticket.h"

#include <string.h>

#include "tec/base/str.h"

#define EPOCHS  1024
#define MAC_LEN 8

static const char domain[] = "tec registration ticket 1";

/* The double modulo keeps the result positive for times before 1970. */
uint16_t rats_ticket_epoch(int64_t wall_s, int64_t ttl_ms)
{
	int64_t n;

	if (ttl_ms <= 0)
		ttl_ms = RATS_TICKET_TTL_MS;
	/* Divide in seconds if that is exact: milliseconds of the far future overflow. */
	n = ttl_ms % 1000 == 0 ? wall_s / (ttl_ms / 1000) : wall_s * 1000 / ttl_ms;
	return (uint16_t)((n % EPOCHS + EPOCHS) % EPOCHS);
}

/* The length prefix keeps two fields from being shifted into each other. */
static void add_text(struct strbuf *b, const char *text)
{
	size_t len = strlen(text);

	strbuf_addf(b, "%zu:", len);
	strbuf_add(b, text, len);
}

/* HMAC-SHA-256 truncated to its first 64 bits (RFC 2104 section 5). */
static void mac(const struct secret *key, const struct rats_ticket_scope *scope,
	const uint8_t random[RATS_TICKET_RANDOM_LEN], uint16_t epoch, uint8_t out[MAC_LEN])
{
	const uint8_t epoch_be[2] = {(uint8_t)(epoch >> 8), (uint8_t)epoch};
	cleanup_strbuf struct strbuf b = STRBUF_INIT;
	uint8_t digest[SHA256_LEN];

	/* Domain separation: the key is used for nothing else, and a later layout gets another
	 * text. */
	strbuf_add(&b, domain, sizeof(domain));
	strbuf_add(&b, random, RATS_TICKET_RANDOM_LEN);
	strbuf_add(&b, epoch_be, sizeof(epoch_be));
	add_text(&b, scope->cluster_uid);
	add_text(&b, scope->mode);
	strbuf_addc(&b, scope->token_sha256 ? '1' : '0');
	if (scope->token_sha256)
		strbuf_add(&b, scope->token_sha256, SHA256_LEN);
	secret_hmac_sha256(key, b.data, b.len, digest);
	memcpy(out, digest, MAC_LEN);
}

/* Version 8 is reserved for vendor-specific layouts (RFC 9562 section 5.8). */
void rats_ticket_make(const struct secret *key, const struct rats_ticket_scope *scope,
	const uint8_t random[RATS_TICKET_RANDOM_LEN], uint16_t epoch, char out[UUID_TEXT_LEN + 1])
{
	uint8_t raw[UUID_LEN], m[MAC_LEN];

	/* Only 10 bits fit; is_near() compares modulo the same number. */
	epoch %= EPOCHS;
	mac(key, scope, random, epoch, m);
	memcpy(raw, random, RATS_TICKET_RANDOM_LEN);
	raw[6] = (uint8_t)(0x80 | epoch >> 6); /* version 8 */
	raw[7] = (uint8_t)(epoch << 2 | m[0] >> 6);
	memcpy(raw + 8, m, MAC_LEN);
	raw[8] = (uint8_t)(0x80 | (m[0] & 0x3f)); /* RFC 9562 variant */
	uuid_from_bytes(raw, out);
}

/* Whether two epochs differ by at most one, modulo EPOCHS. */
static bool is_near(uint16_t a, uint16_t b)
{
	unsigned ahead = (a - b + EPOCHS) % EPOCHS;

	return ahead <= 1 || ahead == EPOCHS - 1;
}

/* Split a ticket into its fields. False: not a ticket, or its epoch has expired. */
static bool take_apart(const char *uuid, uint16_t epoch, uint8_t raw[UUID_LEN], uint16_t *made)
{
	if (!uuid || !uuid_valid(uuid, strlen(uuid)))
		return false;
	uuid_to_bytes(uuid, raw);
	if (raw[6] >> 4 != 8 || raw[8] >> 6 != 2)
		return false;
	*made = (uint16_t)((raw[6] & 0x0f) << 6 | raw[7] >> 2);
	return is_near(*made, epoch % EPOCHS);
}

/* Cheap test before a lookup: needs no key and therefore proves nothing. */
bool rats_ticket_counts(const char *uuid, uint16_t epoch)
{
	uint8_t raw[UUID_LEN];
	uint16_t made;

	return take_apart(uuid, epoch, raw, &made);
}

/* The MAC is computed with the epoch in the ticket, not with the current one. */
bool rats_ticket_valid(const struct secret *key, const struct rats_ticket_scope *scope,
	const char *uuid, uint16_t epoch)
{
	uint8_t raw[UUID_LEN], m[MAC_LEN], have[MAC_LEN];
	uint16_t made;

	if (!take_apart(uuid, epoch, raw, &made))
		return false;
	memcpy(have, raw + 8, MAC_LEN);
	/* Put the first MAC byte together again: two bits before the variant, six after it. */
	have[0] = (uint8_t)((raw[7] & 3) << 6 | (raw[8] & 0x3f));
	mac(key, scope, raw, made, m);
	return secret_same_bytes(have, m, MAC_LEN);
}
