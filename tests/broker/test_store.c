/* SPDX-License-Identifier: MIT */
#include "config.h"

#include <stdio.h>

#include <criterion/criterion.h>

#include "fake/broker.h"
#include "tec/base/secret.h"
#include "tec/base/str.h"
#include "tec/broker/store.h"

static void expect_value(
	struct broker_store *s, enum broker_store_ns ns, const char *key, const char *want)
{
	struct broker_store_value v = {NULL, 0};
	struct err err = ERR_INIT;
	int rc = broker_store_get(s, ns, key, &v, &err);

	if (!want) {
		cr_expect_eq(rc, -1, "%s", key);
		cr_expect_eq(err.kind, ERR_NOT_FOUND, "%s: %s", key, err.text);
		return;
	}
	cr_assert_eq(rc, 0, "%s: %s", key, err.text);
	cr_assert_eq(v.len, strlen(want), "%s", key);
	cr_expect_eq(memcmp(v.data, want, v.len), 0, "%s", key);
}

static void set(struct broker_store *s, enum broker_store_ns ns, const char *key, const char *value)
{
	struct err err = ERR_INIT;

	cr_assert_eq(broker_store_set(s, ns, key, value, strlen(value), &err), 0, "%s", err.text);
}

Test(broker_store, sets_replaces_and_removes_by_namespace)
{
	cleanup_broker_store struct broker_store *s = broker_store_memory_new();
	struct err err = ERR_INIT;

	for (int ns = 0; ns < BROKER_STORE_N; ns++)
		expect_value(s, ns, "a", NULL);
	set(s, BROKER_STORE_REPOSITORY, "a/b/c", "one");
	set(s, BROKER_STORE_REFERENCE_VALUE, "a/b/c", "two");
	expect_value(s, BROKER_STORE_REPOSITORY, "a/b/c", "one");
	expect_value(s, BROKER_STORE_REFERENCE_VALUE, "a/b/c", "two");
	expect_value(s, BROKER_STORE_KBS, "a/b/c", NULL);
	expect_value(s, BROKER_STORE_REPOSITORY, "a/b", NULL);
	set(s, BROKER_STORE_REPOSITORY, "a/b/c", "");
	set(s, BROKER_STORE_REFERENCE_VALUE, "a/b/c", "a longer value");
	expect_value(s, BROKER_STORE_REPOSITORY, "a/b/c", "");
	expect_value(s, BROKER_STORE_REFERENCE_VALUE, "a/b/c", "a longer value");
	cr_expect_eq(broker_store_remove(s, BROKER_STORE_REPOSITORY, "a/b/c", &err), 0);
	expect_value(s, BROKER_STORE_REPOSITORY, "a/b/c", NULL);
	expect_value(s, BROKER_STORE_REFERENCE_VALUE, "a/b/c", "a longer value");
	cr_expect_eq(broker_store_remove(s, BROKER_STORE_REPOSITORY, "a/b/c", &err), -1);
	cr_expect_eq(err.kind, ERR_NOT_FOUND);
}

Test(broker_store, keeps_resources_as_secrets_and_gives_them_back)
{
	struct broker_store *s = broker_store_memory_new();
	struct err err = ERR_INIT;
	static char big[SECRET_MAX_LEN + 1];

	set(s, BROKER_STORE_REPOSITORY, "a/b/c", "one");
	set(s, BROKER_STORE_REPOSITORY, "a/b/d", "");
	set(s, BROKER_STORE_KBS, "e", "five");
	cr_expect_eq(secret_count(), 1);
	set(s, BROKER_STORE_REPOSITORY, "a/b/c", "two");
	cr_expect_eq(secret_count(), 1);
	cr_expect_eq(broker_store_remove(s, BROKER_STORE_REPOSITORY, "a/b/c", &err), 0);
	cr_expect_eq(secret_count(), 0);
	cr_expect_eq(
		broker_store_set(s, BROKER_STORE_REPOSITORY, "a/b/c", big, SECRET_MAX_LEN, &err),
		0);
	cr_expect_eq(
		broker_store_set(s, BROKER_STORE_REPOSITORY, "a/b/c", big, sizeof(big), &err), -1);
	cr_expect_eq(err.http, 413);
	err_clear(&err);
	cr_expect_eq(broker_store_set(s, BROKER_STORE_KBS, "c", big, sizeof(big), &err), 0);
	broker_store_free(s);
	cr_expect_eq(secret_count(), 0);
}

Test(broker_store, keys_are_those_LocalFs_could_name_a_file_after)
{
	static const struct {
		const char *head;
		size_t fill; /* then so many times 'a' */
		bool ok;
	} rows[] = {
		{"a", 0, true}, {"", 0, false}, {"A.b_c-9", 0, true},
		{"..", 0, true},          /* not a path: a name */
		{"/etc/passwd", 0, true}, /* as \x2Fetc\x2Fpasswd */
		{"a b", 0, false}, {"a%2Fb", 0, false}, {"a\\b", 0, false}, {"a\nb", 0, false},
		{"\xc3\xa4", 0, false}, {"a:b", 0, false},
		{"a+b", 0, false},                                    /* raw base64 is not a name */
		{"a=b", 0, false}, {"ak.", 240, true},                /* the longest of design A */
		{"", 255, true}, {"", 256, false}, {"a/", 250, true}, /* a slash takes four */
		{"a/", 251, false}, {"", 392, false},                 /* a whole ak_public */
	};
	cleanup_broker_store struct broker_store *s = broker_store_memory_new();

	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		cleanup_strbuf struct strbuf key = STRBUF_INIT;
		struct err err = ERR_INIT;
		int rc;

		strbuf_adds(&key, rows[i].head);
		for (size_t n = 0; n < rows[i].fill; n++)
			strbuf_addc(&key, 'a');
		rc = broker_store_set(s, BROKER_STORE_KBS, strbuf_str(&key), "v", 1, &err);
		cr_expect_eq(rc == 0, rows[i].ok, "row %zu: %s", i, err.text);
		cr_expect_eq(err.kind, rows[i].ok ? ERR_NONE : ERR_INVALID, "row %zu", i);
		if (key.len > 0)
			expect_value(s, BROKER_STORE_KBS, key.data, rows[i].ok ? "v" : NULL);
	}
}

static void count_key(void *arg, const char *key)
{
	unsigned *seen = arg;

	seen[strtoul(key, NULL, 10)]++;
}

Test(broker_store, lists_every_key_once_also_after_growing)
{
	enum { N = 3000 };
	static unsigned seen[N];
	cleanup_broker_store struct broker_store *s = broker_store_memory_new();
	struct err err = ERR_INIT;
	char key[16];

	cr_expect_eq(broker_store_list(s, BROKER_STORE_KBS, "", count_key, seen, &err), 0);
	for (unsigned i = 0; i < N; i++) {
		snprintf(key, sizeof(key), "%u", i);
		set(s, BROKER_STORE_KBS, key, key);
	}
	for (unsigned i = 0; i < N; i += 3) {
		snprintf(key, sizeof(key), "%u", i);
		cr_assert_eq(broker_store_remove(s, BROKER_STORE_KBS, key, &err), 0);
	}
	cr_expect_eq(broker_store_list(s, BROKER_STORE_KBS, "", count_key, seen, &err), 0);
	for (unsigned i = 0; i < N; i++) {
		snprintf(key, sizeof(key), "%u", i);
		cr_expect_eq(seen[i], i % 3 != 0, "%u: %u times", i, seen[i]);
		expect_value(s, BROKER_STORE_KBS, key, i % 3 ? key : NULL);
	}
}
