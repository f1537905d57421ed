/* SPDX-License-Identifier: MIT */
#include "config.h"

#include <openssl/evp.h>
#include <sqlite3.h>
#include <sys/stat.h>

#include "store/store_objects.h"
#include "tec/store/gc.h"

TestSuite(store_db, .init = store_dir_up, .fini = store_objects_down);

static void expect_spec(const struct store_key *k, int64_t n)
{
	cleanup_json struct json_object *o = store_objects_get(s, k);

	cr_expect_eq(json_get_int(o, "spec", -1), n, "%s", k->name);
}

static void expect_refused(enum err_kind kind, const char *text)
{
	struct err err = ERR_INIT;
	struct store_db *db = store_open(NULL, &err);

	cr_expect_null(db, "opened: %s", text);
	store_db_close(db);
	cr_expect_eq(err.kind, kind, "%s", err.text);
	cr_expect(strstr(err.text, text), "%s instead of %s", err.text, text);
}

Test(store_db, what_is_committed_is_there_again)
{
	struct stat st;
	cleanup_free char *path = in_dir("store.db");
	uint64_t rv;

	open_store();
	put(A_THING("a"), "{\"spec\":1}");
	put(A_SECRET("s"), "{\"spec\":2}");
	commit();
	put(A_THING("a"), "{\"spec\":3}");
	commit();
	put(A_THING("lost"), "{\"spec\":4}");
	rv = store_objects_rv(s) - 1;
	cr_assert_eq(stat(path, &st), 0);
	cr_expect_eq(st.st_mode & 0777, 0600);
	close_store();
	open_store();
	cr_expect_eq(store_objects_rv(s), rv, "what was not committed has no version");
	expect_spec(A_THING("a"), 3);
	expect_spec(A_SECRET("s"), 2);
	expect_spec(A_THING("lost"), -1);
	put(A_THING("b"), "{}");
	cr_expect_eq(store_objects_rv(s), rv + 1);
}

Test(store_db, versions_grow_over_a_restart_whatever_was_compacted)
{
	struct err err = ERR_INIT;
	uint64_t rv;

	open_store();
	put(A_THING("a"), "{}");
	json_object_put(store_gc_delete(s, A_THING("a"), STORE_POLICY_DEFAULT));
	rv = store_objects_rv(s);
	commit();
	cr_assert_eq(store_db_begin(store_objects_db(s), &err), 0);
	cr_assert_eq(store_db_compact(store_objects_db(s), rv, &err), 0);
	cr_assert_eq(store_db_commit(store_objects_db(s), &err), 0);
	close_store();
	open_store();
	cr_expect_eq(store_objects_rv(s), rv, "no row has it");
	cr_expect_eq(store_db_oldest(store_objects_db(s)), rv);
}

#define OWNED_BY(refs, spec) "{\"metadata\":{\"ownerReferences\":[" refs "]},\"spec\":" #spec "}"
#define REF(uid)             "{\"uid\":\"" uid "\"}"

static void note_name(void *arg, const struct store_key *key)
{
	strbuf_addf(arg, "%s;", key->name);
}

static void expect_dependents(const char *uid, const char *want)
{
	cleanup_strbuf struct strbuf seen = STRBUF_INIT;
	struct err err = ERR_INIT;

	cr_assert_geq(
		store_db_dependents(store_objects_db(s), uid, NULL, 9, note_name, &seen, &err), 0,
		"%s", err.text);
	cr_expect_str_eq(strbuf_str(&seen), want, "of %s", uid);
}

Test(store_db, owners_are_those_of_the_last_version)
{
	open_store();
	put(A_THING("a"), OWNED_BY(REF("1"), 1));
	put(A_THING("b"), OWNED_BY(REF("1") "," REF("2"), 1));
	put(A_THING("a"), OWNED_BY(REF("1"), 2));
	expect_dependents("1", "a;b;");
	put(A_THING("a"), OWNED_BY(REF("2"), 2)); /* as many, of which none stays */
	expect_dependents("1", "b;");
	expect_dependents("2", "a;b;");
	put(A_THING("b"), OWNED_BY(REF("2"), 1));
	put(A_THING("a"), OWNED_BY(REF("2") "," REF("2"), 3));
	expect_dependents("1", "");
	expect_dependents("2", "a;b;");
	put(A_THING("a"), OWNED_BY(REF("2") "," REF("3"), 3));
	put(A_THING("b"), "{\"spec\":1}");
	expect_dependents("2", "a;");
	expect_dependents("3", "a;");
}

static int64_t log_bytes(void)
{
	cleanup_free char *path = in_dir("store.db-wal");
	struct stat st;

	cr_assert_eq(stat(path, &st), 0);
	return st.st_size;
}

Test(store_db, a_change_writes_no_page_of_what_stays)
{
	const int64_t page = 4096 + 24; /* of the log, with its head */
	int64_t before;

	open_store();
	put(A_THING("a"), OWNED_BY(REF("1"), 1));
	commit();
	before = log_bytes();
	put(A_THING("a"), OWNED_BY(REF("1"), 2));
	commit();
	cr_expect_eq((log_bytes() - before) / page, 4,
		"version, version_of, object, the digest: not %lld",
		(long long)((log_bytes() - before) / page));
}

static bool note_version(void *arg, const struct store_version *v)
{
	strbuf_addf(arg, "%s %llu;", v->key.name, (unsigned long long)v->rv);
	return true;
}

static void expect_at(uint64_t at, const char *want)
{
	const struct store_scan scan = {.resource = "things.example.io", .at = at};
	cleanup_strbuf struct strbuf seen = STRBUF_INIT;
	struct err err = ERR_INIT;

	cr_assert_geq(store_db_scan(store_objects_db(s), &scan, note_version, &seen, &err), 0);
	cr_expect_str_eq(strbuf_str(&seen), want);
}

Test(store_db, the_past_is_kept_until_it_is_compacted)
{
	struct err err = ERR_INIT;

	open_store();
	put(A_THING("a"), "{\"spec\":1}"); /* 1001 */
	put(A_THING("b"), "{\"spec\":1}");
	put(A_THING("a"), "{\"spec\":2}");
	json_object_put(store_gc_delete(s, A_THING("b"), STORE_POLICY_DEFAULT));
	put(A_THING("a"), "{\"spec\":3}"); /* 1005 */
	expect_at(1000, "");
	expect_at(1001, "a 1001;");
	expect_at(1002, "a 1001;b 1002;");
	expect_at(1003, "a 1003;b 1002;");
	expect_at(1004, "a 1003;");
	expect_at(0, "a 1005;");
	cr_assert_eq(store_db_compact(store_objects_db(s), 1003, &err), 0, "%s", err.text);
	expect_at(1003, "a 1003;b 1002;");
	expect_at(1004, "a 1003;");
	expect_at(1001, "");
	cr_assert_eq(store_db_compact(store_objects_db(s), 1005, &err), 0, "%s", err.text);
	expect_at(1005, "a 1005;");
	expect_at(1003, "");
}

static bool wants_s2(void *arg, const struct store_version *v)
{
	cr_expect_null(v->body, "not opened to be asked for");
	cr_expect(v->sealed);
	strbuf_addf(arg, "%s?", v->key.name);
	return str_eq(v->key.name, "s2");
}

Test(store_db, only_what_a_scan_wants_is_opened)
{
	const struct store_scan scan = {.resource = "secrets", .ns = "ns", .wants = wants_s2};
	cleanup_strbuf struct strbuf seen = STRBUF_INIT;
	struct err err = ERR_INIT;

	open_store();
	put(A_SECRET("s1"), "{\"spec\":1}");
	put(A_SECRET("s2"), "{\"spec\":2}");
	put(A_SECRET("s3"), "{\"spec\":3}");
	put((&(const struct store_key){"secrets", "other", "s4"}), "{\"spec\":4}");
	cr_assert_geq(store_db_scan(store_objects_db(s), &scan, note_version, &seen, &err), 0);
	cr_expect_str_eq(strbuf_str(&seen), "s1?s2?s2 1002;s3?");
}

Test(store_db, a_second_process_is_refused)
{
	open_store();
	expect_refused(ERR_CONFLICT, "is in use by another process");
	close_store();
	open_store();
}

Test(store_db, another_sealing_key_is_refused)
{
	struct secret *mine;
	char id[SEAL_ID_LEN + 1];

	open_store();
	put(A_THING("a"), "{\"spec\":1}");
	commit();
	close_store();
	mine = key;
	key = secret_new_random(SEAL_KEY_LEN);
	seal_key_id(mine, id);
	expect_refused(ERR_DENIED, id);
	secret_free(key);
	key = mine;
	open_store();
	expect_spec(A_THING("a"), 1);
}

Test(store_db, the_sealing_key_may_change)
{
	struct secret *old = key;
	struct err err = ERR_INIT;

	open_store();
	put(A_SECRET("s"), "{\"spec\":1}");
	commit();
	key = secret_new_random(SEAL_KEY_LEN);
	cr_expect_eq(store_db_rekey(store_objects_db(s), key, &err), 0, "%s", err.text);
	put(A_SECRET("t"), "{\"spec\":2}");
	commit();
	close_store();
	open_store();
	expect_spec(A_SECRET("s"), 1);
	expect_spec(A_SECRET("t"), 2);
	close_store();
	secret_free(key);
	key = old;
	expect_refused(ERR_DENIED, "sealed with key");
}

/* The body of a Secret as it is stored, from a backup. */
static void *sealed_body(size_t *len)
{
	cleanup_free char *path = in_dir("look");
	struct store_db_backup *b;
	struct err err = ERR_INIT;
	sqlite3 *db = NULL;
	sqlite3_stmt *st = NULL;
	void *body;

	b = store_db_backup_start(store_objects_db(s), path, &err);
	cr_assert_not_null(b, "%s", err.text);
	while (store_db_backup_step(b, &err) > 0)
		;
	cr_assert_not(err_is_set(&err), "%s", err.text);
	store_db_backup_free(b);
	cr_assert_eq(sqlite3_open(path, &db), SQLITE_OK);
	sqlite3_prepare_v2(db, "SELECT body FROM version WHERE resource='secrets'", -1, &st, NULL);
	cr_assert_eq(sqlite3_step(st), SQLITE_ROW);
	*len = (size_t)sqlite3_column_bytes(st, 0);
	body = xmemdup(sqlite3_column_blob(st, 0), *len);
	sqlite3_finalize(st);
	sqlite3_close(db);
	(void)unlink(path);
	return body;
}

enum { ROWS = 40 };

static void fill(void)
{
	for (unsigned i = 0; i < ROWS; i++) {
		cleanup_free char *name = xasprintf("n%u", i);
		cleanup_free char *text = xasprintf("{\"spec\":%u}", i);

		put(i % 2 ? A_SECRET(name) : A_THING(name), text);
	}
	commit();
}

static void expect_filled(void)
{
	for (unsigned i = 0; i < ROWS; i++) {
		cleanup_free char *name = xasprintf("n%u", i);

		expect_spec(i % 2 ? A_SECRET(name) : A_THING(name), i);
	}
}

/* Whoever had the sealing key and a backup of that time has nothing of what was written since. */
Test(store_db, a_change_of_the_key_changes_every_key)
{
	cleanup_free char *backup = in_dir("backup"), *again = NULL;
	cleanup_free char *steal = xasprintf(
		"ATTACH '%s' AS b; INSERT OR REPLACE INTO setting SELECT * FROM b.setting "
		"WHERE name IN ('key','sealed-by')",
		backup);
	struct secret *old = key;
	struct store_db_backup *b;
	struct err err = ERR_INIT;
	size_t len = 0;
	int rc;

	open_store();
	fill();
	b = store_db_backup_start(store_objects_db(s), backup, &err);
	cr_assert_not_null(b, "%s", err.text);
	while ((rc = store_db_backup_step(b, &err)) > 0)
		;
	store_db_backup_free(b);
	cr_assert_eq(rc, 0, "%s", err.text);
	again = sealed_body(&len);
	key = secret_new_random(SEAL_KEY_LEN);
	cr_assert_eq(store_db_rekey(store_objects_db(s), key, &err), 0, "%s", err.text);
	put(A_SECRET("later"), "{\"spec\":77}");
	commit();
	expect_filled();
	for (unsigned n = 0; (rc = store_db_reseal(store_objects_db(s), 7, 1u << 20, &err)) > 0;
		n++) {
		cr_assert_lt(n, ROWS);
		expect_filled(); /* some rows under one key, some under the other */
	}
	cr_assert_eq(rc, 0, "%s", err.text);
	cr_expect_not(store_db_is_resealing(store_objects_db(s)));
	expect_filled();
	expect_spec(A_SECRET("later"), 77);
	cr_assert_eq(store_db_settle(store_objects_db(s), &err), 0, "%s", err.text);
	close_store();
	open_store();
	expect_filled();
	expect_spec(A_SECRET("later"), 77);
	close_store();
	secret_free(key);
	key = old;
	expect_refused(ERR_DENIED, "sealed with key");
	(void)sql(steal); /* the old key, wrapped as it was in the backup */
	cr_assert_eq(unlink(backup), 0);
	cr_expect_not(is_in_files(again + 24, 32), "nothing is left of what the old key sealed");
	expect_refused(ERR_INVALID, "is not what was written");
}

Test(store_db, a_change_of_the_key_goes_on_after_a_restart)
{
	struct err err = ERR_INIT;

	open_store();
	fill();
	secret_free(key);
	key = secret_new_random(SEAL_KEY_LEN);
	cr_assert_eq(store_db_rekey(store_objects_db(s), key, &err), 0, "%s", err.text);
	cr_assert_eq(store_db_reseal(store_objects_db(s), 5, 1u << 20, &err), 1, "%s", err.text);
	close_store();
	open_store();
	cr_expect(store_db_is_resealing(store_objects_db(s)));
	expect_filled();
	secret_free(key); /* and another one, before that was done */
	key = secret_new_random(SEAL_KEY_LEN);
	cr_assert_eq(store_db_rekey(store_objects_db(s), key, &err), 0, "%s", err.text);
	expect_filled();
	cr_assert_eq(store_db_reseal_all(store_objects_db(s), &err), 0, "%s", err.text);
	close_store();
	open_store();
	cr_expect_not(store_db_is_resealing(store_objects_db(s)));
	expect_filled();
}

Test(store_db, newer_and_foreign_databases_are_refused)
{
	open_store();
	close_store();
	(void)sql("PRAGMA user_version=99");
	expect_refused(ERR_INVALID, "version 99");
	(void)sql("PRAGMA user_version=1; PRAGMA application_id=5");
	expect_refused(ERR_INVALID, "made by another program");
}

Test(store_db, rows_that_were_swapped_or_edited_are_not_served)
{
	static const char *const edits[] = {
		"UPDATE version SET body=(SELECT body FROM version WHERE name='t') WHERE name='s'",
		"UPDATE version SET name='t2' WHERE name='t'; UPDATE object SET name='t2' WHERE name='t'",
		"UPDATE version SET body=replace(body, '1', '2') WHERE name='a'",
		"UPDATE version SET meta='{\"labels\":{\"admin\":\"1\"}}' WHERE name='a'",
		"UPDATE version SET uid='x' WHERE name='a'; UPDATE object SET uid='x' WHERE name='a'",
		"UPDATE version SET sealed=0 WHERE name='s'",
		"UPDATE version SET type=2 WHERE name='a'",
		"DELETE FROM object WHERE name='a'",
		"DELETE FROM version WHERE name='a'",
		"UPDATE object SET uid='x' WHERE name='a'",
		"UPDATE setting SET value=zeroblob(72) WHERE name='key'",
		"DELETE FROM setting WHERE name='key'",
	};
	cleanup_free char *path = in_dir("store.db"), *kept = in_dir("kept");

	open_store();
	put(A_THING("a"), "{\"spec\":1}");
	put(A_SECRET("s"), "{\"spec\":1}");
	put(A_SECRET("t"), "{\"spec\":2}");
	commit();
	close_store();
	for (size_t i = 0; i < ARRAY_LEN(edits); i++) {
		cleanup_free char *copy = xasprintf("cp %s %s", path, kept);
		cleanup_free char *back = xasprintf("cp %s %s", kept, path);

		cr_assert_eq(system(copy), 0);
		(void)sql(edits[i]);
		expect_refused(ERR_INVALID, "restore a backup");
		cr_assert_eq(system(back), 0);
	}
	open_store();
	expect_spec(A_THING("a"), 1);
}

/* ---- what stands in the files */

Test(store_db, a_secret_is_sealed_and_leaves_nothing)
{
	cleanup_free char *body = NULL;
	struct err err = ERR_INIT;
	size_t len = 0;

	open_store();
	put(A_THING("a"), "{\"spec\":\"plain text\"}");
	cr_assert_eq(ask(s, "PATCH", SECRETS "/s" MANAGER, APPLY,
			     "{" SECRET ",\"metadata\":{\"name\":\"s\"},"
			     "\"stringData\":{\"k\":\"correct horse battery\"}}",
			     NULL),
		201);
	commit();
	cr_expect(is_in_files("plain text", 10), "the test finds what is there");
	cr_expect_not(is_in_files("correct horse", 13));
	cr_expect_not(is_in_files("Y29ycmVjdCBob3JzZSBiYXR0ZXJ5", 28));
	body = sealed_body(&len);
	cr_expect(is_in_files(body + 24, 32), "as ciphertext");
	json_object_put(store_gc_delete(s, A_SECRET("s"), STORE_POLICY_DEFAULT));
	commit();
	cr_expect(store_db_unsettled(store_objects_db(s)));
	cr_assert_eq(store_db_settle(store_objects_db(s), &err), 0, "%s", err.text);
	cr_expect_not(is_in_files(body + 24, 32), "nor its ciphertext");
	cr_expect_not(store_db_unsettled(store_objects_db(s)));
}

/* In no form that a person or a program would find: the bytes, their base64, their hexadecimal. */
static void expect_in_no_file(const void *bytes, size_t len, const char *what)
{
	cleanup_free char *b64 = xmalloc(len * 2 + 8), *hex = xmalloc(2 * len + 1);
	/* Without its end, which depends on what follows. */
	size_t b64_len = (size_t)EVP_EncodeBlock((unsigned char *)b64, bytes, (int)(len - len % 3));

	bytes_to_hex(bytes, len, hex);
	cr_expect_not(is_in_files(bytes, len), "%s", what);
	cr_expect_not(is_in_files(b64, b64_len), "%s in base64", what);
	cr_expect_not(is_in_files(hex, 2 * len), "%s in hexadecimal", what);
}

static void expect_no_key(const char *when)
{
	expect_in_no_file(secret_peek(key), SEAL_KEY_LEN, when);
}

static void write_secret(const char *method, const char *name, const char *value)
{
	cleanup_free char *path = xasprintf(SECRETS "/%s" MANAGER, name);
	cleanup_free char *body = xasprintf(
		"{" SECRET
		",\"metadata\":{\"name\":\"%s\",\"annotations\":{\"last-applied\":\"%s\"}},"
		"\"stringData\":{\"k\":\"%s\"}}",
		name, value, value);

	cr_assert_eq(
		ask(s, method, path, str_eq(method, "PATCH") ? APPLY : NULL, body, NULL) / 100, 2);
	commit();
}

static void make_backup(const char *name)
{
	cleanup_free char *path = in_dir(name);
	struct err err = ERR_INIT;
	struct store_db_backup *b = store_db_backup_start(store_objects_db(s), path, &err);

	cr_assert_not_null(b, "%s", err.text);
	while (store_db_backup_step(b, &err) > 0)
		;
	cr_assert_not(err_is_set(&err), "%s", err.text);
	store_db_backup_free(b);
}

Test(store_db, no_file_holds_the_sealing_key_or_what_a_secret_says)
{
	static const char *const values[] = {"first value of one", "second value of one",
		"the value of one that is deleted", "what was written under another key"};
	cleanup_free char *large = xmalloc(100001);
	struct err err = ERR_INIT;
	int rc;

	memset(large, 'x', 100000); /* over many pages of the file */
	for (size_t i = 0; i + 32 < 100000; i += 1000)
		memcpy(large + i, "a large value on all of its page", 32);
	large[100000] = '\0';
	open_store();
	write_secret("PATCH", "a", values[0]);
	write_secret("PATCH", "a", values[1]);
	write_secret("PATCH", "gone", values[2]);
	write_secret("PATCH", "large", large);
	put(A_THING("seen"), "{\"spec\":\"what everybody may see\"}");
	commit();
	make_backup("backup-1");
	expect_no_key("a backup under the first key");
	json_object_put(store_gc_delete(s, A_SECRET("gone"), STORE_POLICY_DEFAULT));
	commit();
	make_backup("backup-2");
	for (int keys = 0; keys < 2; keys++) {
		cr_expect(
			is_in_files("what everybody may see", 22), "the test finds what is there");
		for (size_t i = 0; i < ARRAY_LEN(values); i++)
			expect_in_no_file(values[i], strlen(values[i]), values[i]);
		expect_in_no_file(large, 32, "the large one");
		expect_no_key(keys ? "the second key" : "the first key");
		if (keys == 0) {
			cleanup_secret struct secret *first = key;

			key = secret_new_random(SEAL_KEY_LEN);
			cr_assert_eq(
				store_db_rekey(store_objects_db(s), key, &err), 0, "%s", err.text);
			write_secret("PATCH", "a", values[3]);
			while ((rc = store_db_reseal(store_objects_db(s), 7, 1u << 20, &err)) > 0)
				expect_in_no_file(
					secret_peek(first), SEAL_KEY_LEN, "the first key");
			cr_assert_eq(rc, 0, "%s", err.text);
			make_backup("backup-3");
		}
	}
}

Test(store_db, a_backup_is_one_file_and_restores_under_its_key_only)
{
	cleanup_free char *path = in_dir("backup"), *part = in_dir("backup.part"),
			  *store = in_dir("store.db");
	cleanup_secret struct secret *other = secret_new_random(SEAL_KEY_LEN);
	struct store_db_backup *b;
	struct err err = ERR_INIT;
	uint64_t rv;
	char name[16];
	int rc;

	open_store();
	for (int i = 0; i < 2000; i++) {
		snprintf(name, sizeof(name), "n%d", i);
		put(A_THING(name), "{\"spec\":1}");
	}
	put(A_SECRET("s"), "{\"spec\":2}");
	commit();
	b = store_db_backup_start(store_objects_db(s), path, &err);
	cr_assert_not_null(b, "%s", err.text);
	cr_expect_eq(store_db_backup_step(b, &err), 1, "not all at once");
	cr_expect_neq(access(path, F_OK), 0, "not under its name before it is whole");
	put(A_THING("n0"), "{\"spec\":5}");
	cr_expect_eq(store_db_backup_step(b, &err), 1);
	commit();
	while ((rc = store_db_backup_step(b, &err)) > 0)
		;
	cr_expect_eq(rc, 0, "%s", err.text);
	store_db_backup_free(b);
	rv = store_objects_rv(s);
	cr_expect_neq(access(part, F_OK), 0);
	cr_expect_null(store_db_backup_start(store_objects_db(s), path, &err));
	err_clear(&err);
	close_store();
	cr_expect_eq(store_db_backup_restore(path, dir, key, false, &err), -1);
	cr_expect(strstr(err.text, "already holds a database"), "%s", err.text);
	err_clear(&err);
	cr_assert_eq(unlink(store), 0);
	cr_expect_eq(store_db_backup_restore(path, dir, other, false, &err), -1);
	cr_expect_eq(err.kind, ERR_DENIED, "%s", err.text);
	err_clear(&err);
	cr_expect_eq(store_db_backup_restore(path, dir, key, false, &err), 0, "%s", err.text);
	open_store();
	expect_spec(A_THING("n0"), 5);
	expect_spec(A_THING("n1999"), 1);
	expect_spec(A_SECRET("s"), 2);
	cr_expect_gt(store_objects_rv(s), rv, "clients may have seen more than the backup has");
	cr_expect_eq(store_db_oldest(store_objects_db(s)), store_objects_rv(s));
}

Test(store_db, a_backup_that_was_cut_or_is_none_is_refused)
{
	cleanup_free char *path = in_dir("backup");
	static const char *const makes[] = {
		"head -c 20000 /dev/urandom >%s", ": >%s", "echo hello >%s", "rm -f %s"};
	struct err err = ERR_INIT;

	for (size_t i = 0; i < ARRAY_LEN(makes); i++) {
		cleanup_strbuf struct strbuf command = STRBUF_INIT;
		const char *at = strstr(makes[i], "%s");

		strbuf_add(&command, makes[i], (size_t)(at - makes[i]));
		strbuf_adds(&command, path);
		cr_assert_eq(system(command.data), 0);
		err_clear(&err);
		cr_expect_eq(
			store_db_backup_restore(path, dir, key, false, &err), -1, "%s", makes[i]);
	}
	open_store();
	cr_expect_eq(store_objects_count(s, NULL, NULL), 0);
}
