/* SPDX-License-Identifier: MIT */
#include "config.h"

#include <criterion/criterion.h>

#include "tec/rats/ticket.h"

#define HOUR_MS (INT64_C(60) * 60 * 1000)

static const uint8_t dice[RATS_TICKET_RANDOM_LEN] = {0, 1, 2, 0xfd, 0xfe, 0xff};
static const struct rats_ticket_scope open_scope = {"0f0e-uid", "Open", NULL};

static struct secret *key_of(uint8_t fill)
{
	struct secret *s = secret_new(RATS_TICKET_KEY_LEN);

	memset(secret_bytes(s), fill, RATS_TICKET_KEY_LEN);
	return s;
}

/* By Python's hmac over the text that ticket.c describes. */
Test(rats_ticket, is_the_uuid_of_version_8_that_others_compute_too)
{
	cleanup_secret struct secret *key = key_of(7);
	char uuid[UUID_TEXT_LEN + 1];

	rats_ticket_make(key, &open_scope, dice, 0x2a5, uuid);
	cr_assert_str_eq(uuid, "000102fd-feff-8a95-b006-a16afb0ab40d");
}

Test(rats_ticket, is_valid_in_its_epoch_and_the_two_beside_it)
{
	static const struct {
		uint16_t made, now;
		bool ok;
	} t[] = {
		{0, 0, true},
		{0, 1, true},
		{0, 2, false},
		{0, 1023, true},
		{0, 1022, false},
		{1023, 0, true},
		{1023, 1, false},
		{1023, 1022, true},
		{1023, 1021, false},
		{512, 511, true},
		{512, 513, true},
		{512, 510, false},
		{512, 514, false},
		{512, 0, false},
		{1024 + 5, 5, true},
		{5, 1024 + 5, true},
	};
	cleanup_secret struct secret *key = key_of(1);
	char uuid[UUID_TEXT_LEN + 1];

	for (size_t i = 0; i < ARRAY_LEN(t); i++) {
		rats_ticket_make(key, &open_scope, dice, t[i].made, uuid);
		cr_expect_eq(rats_ticket_valid(key, &open_scope, uuid, t[i].now), t[i].ok,
			"%u at %u: %s", t[i].made, t[i].now, uuid);
	}
}

Test(rats_ticket, every_epoch_survives_its_ten_bits)
{
	cleanup_secret struct secret *key = key_of(1);
	char uuid[UUID_TEXT_LEN + 1];

	for (uint16_t e = 0; e < 1024; e++) {
		rats_ticket_make(key, &open_scope, dice, e, uuid);
		cr_assert(uuid_valid(uuid, strlen(uuid)), "%s", uuid);
		cr_assert_eq(uuid[14], '8', "%s", uuid);
		cr_assert(strchr("89ab", uuid[19]), "%s", uuid);
		cr_assert(rats_ticket_valid(key, &open_scope, uuid, e), "%u %s", e, uuid);
		cr_assert_not(rats_ticket_valid(key, &open_scope, uuid, e + 2), "%u", e);
	}
}

Test(rats_ticket, ends_with_a_change_of_its_scope_or_key)
{
	static const uint8_t token[SHA256_LEN] = {1}, other[SHA256_LEN] = {2};
	static const struct rats_ticket_scope scopes[] = {
		{"uid", "Open", NULL},
		{"uie", "Open", NULL},
		{"ui", "dOpen", NULL},
		{"uid4:", "Open", NULL},
		{"uid", "Manual", NULL},
		{"uid", "Token", token},
		{"uid", "Token", other},
		{"uid", "Token", NULL},
		{"uid", "", NULL},
		{"", "Open", NULL},
	};
	cleanup_secret struct secret *key = key_of(1), *second = key_of(2);
	char uuid[UUID_TEXT_LEN + 1];

	for (size_t i = 0; i < ARRAY_LEN(scopes); i++) {
		rats_ticket_make(key, &scopes[i], dice, 3, uuid);
		cr_expect_not(rats_ticket_valid(second, &scopes[i], uuid, 3), "another key");
		for (size_t k = 0; k < ARRAY_LEN(scopes); k++)
			cr_expect_eq(rats_ticket_valid(key, &scopes[k], uuid, 3), i == k,
				"%zu under %zu", i, k);
	}
}

Test(rats_ticket, no_digit_of_it_can_be_changed)
{
	cleanup_secret struct secret *key = key_of(1);
	char uuid[UUID_TEXT_LEN + 1], bad[UUID_TEXT_LEN + 1];

	rats_ticket_make(key, &open_scope, dice, 100, uuid);
	for (size_t i = 0; i < UUID_TEXT_LEN; i++) {
		for (const char *c = "0123456789abcdef-AG"; *c; c++) {
			memcpy(bad, uuid, sizeof(bad));
			bad[i] = *c;
			cr_expect_eq(rats_ticket_valid(key, &open_scope, bad, 100), *c == uuid[i],
				"%s", bad);
		}
	}
}

Test(rats_ticket, takes_nothing_that_is_no_uuid_of_version_8)
{
	static const char *const bad[] = {"", "x", "3f1c2b9a-6d0e-4c53-9a7b-2f8e5d104c6f",
		"00000000-0000-8000-8000-000000000000", "00000000-0000-0000-0000-000000000000",
		"ffffffff-ffff-ffff-ffff-ffffffffffff", "00000000-0000-8000-0000-000000000000",
		"00000000-0000-8000-c000-000000000000", "0000000000000000000000000000000000000",
		"00000000-0000-8000-8000-00000000000", "00000000-0000-8000-8000-0000000000000",
		"\xff\xfe\xff\xfe\xff\xfe\xff\xfe-8000-8000-000000000000"};
	cleanup_secret struct secret *key = key_of(1);

	cr_assert_not(rats_ticket_valid(key, &open_scope, NULL, 0));
	for (size_t i = 0; i < ARRAY_LEN(bad); i++)
		for (uint16_t e = 0; e < 4; e++)
			cr_expect_not(rats_ticket_valid(key, &open_scope, bad[i], e), "%s", bad[i]);
}

Test(rats_ticket, the_epoch_counts_lifetimes)
{
	static const struct {
		int64_t wall_s, ttl_ms;
		uint16_t epoch;
	} t[] = {
		{0, HOUR_MS, 0},
		{3599, HOUR_MS, 0},
		{3600, HOUR_MS, 1},
		{3600 * 1023, HOUR_MS, 1023},
		{3600 * 1024, HOUR_MS, 0},
		{86399, 0, 0},
		{86400, 0, 1},
		{86400, -5, 1},
		{10, 1500, 6},
		{7, 1, 7000 % 1024},
		{-1, HOUR_MS, 0},
		{-3600, HOUR_MS, 1023},
		{INT64_C(9000000000000000), HOUR_MS, INT64_C(9000000000000000) / 3600 % 1024},
	};

	for (size_t i = 0; i < ARRAY_LEN(t); i++)
		cr_expect_eq(rats_ticket_epoch(t[i].wall_s, t[i].ttl_ms), t[i].epoch, "%zu: %u", i,
			rats_ticket_epoch(t[i].wall_s, t[i].ttl_ms));
}
