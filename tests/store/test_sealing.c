/* SPDX-License-Identifier: MIT */
/* Which key opens the store, and that a process killed anywhere in a rotation finds it again. */
#include "config.h"

#include <sys/stat.h>

#include "store/store_dir.h"
#include "tec/store/sealing.h"

TestSuite(store_sealing, .init = store_dir_up, .fini = store_dir_down);

static void put_key(const char *name, const struct secret *k, mode_t mode)
{
	cleanup_free char *path = in_dir(name);
	struct err err = ERR_INIT;

	cr_assert_eq(
		file_replace(path, secret_peek(k), secret_len(k), mode, &err), 0, "%s", err.text);
}

static bool is_there(const char *name)
{
	cleanup_free char *path = in_dir(name);

	return access(path, F_OK) == 0;
}

static struct store_sealing *open_sealing(const char *file, const char *credentials)
{
	struct err err = ERR_INIT;
	struct store_sealing *s = store_sealing_open(
		dir, &(struct store_sealing_conf){file, credentials}, STORE_SEALING_MAKE, &err);

	cr_assert_not_null(s, "%s", err.text);
	return s;
}

static struct store_db *open_db(struct store_sealing *s)
{
	struct err err = ERR_INIT;
	struct store_db *db = store_sealing_open_db(s, &err);

	cr_assert_not_null(db, "%s", err.text);
	return db;
}

static bool opens(const char *file, const char *credentials)
{
	struct err err = ERR_INIT;
	struct store_sealing *s = store_sealing_open(
		dir, &(struct store_sealing_conf){file, credentials}, STORE_SEALING_MAKE, &err);
	struct store_db *db = s ? store_sealing_open_db(s, &err) : NULL;

	store_db_close(db);
	store_sealing_free(s);
	return db != NULL;
}

/* A store sealed by `key`, which is in DIR/sealing.key. */
static void make_store(void)
{
	put_key("sealing.key", key, 0600);
	cr_assert(opens(NULL, NULL));
}

static void expect_no_key(const char *file, bool make, enum err_kind kind, const char *text)
{
	struct err err = ERR_INIT;

	cr_expect_null(store_sealing_open(dir, &(struct store_sealing_conf){file, NULL},
		make ? STORE_SEALING_MAKE : STORE_SEALING_READ, &err));
	cr_expect_eq(err.kind, kind, "%s", err.text);
	cr_expect(strstr(err.text, text), "%s", err.text);
}

Test(store_sealing, one_is_made_for_this_user_alone)
{
	struct store_sealing *s = open_sealing(NULL, NULL);
	cleanup_free char *path = in_dir("sealing.key");
	struct stat st;

	cr_assert_eq(stat(path, &st), 0);
	cr_expect_eq(st.st_mode & 07777, 0600);
	cr_expect_eq(st.st_size, SEAL_KEY_LEN);
	store_sealing_free(s);
}

Test(store_sealing, one_that_cannot_be_written_is_not_used)
{
	struct err err = ERR_INIT;
	cleanup_free char *gone = in_dir("gone");

	cr_expect_null(store_sealing_open(
		gone, &(struct store_sealing_conf){NULL, NULL}, STORE_SEALING_MAKE, &err));
	cr_expect(strstr(err.text, "gone/sealing.key"), "%s", err.text);
}

Test(store_sealing, none_is_made_beside_a_store_or_for_a_restore)
{
	cleanup_free char *path = in_dir("sealing.key");

	expect_no_key(NULL, false, ERR_NOT_FOUND, "sealing.key");
	cr_expect_not(is_there("sealing.key"));
	make_store();
	cr_assert_eq(unlink(path), 0);
	expect_no_key(NULL, true, ERR_INVALID, "is missing");
	cr_expect_not(is_there("sealing.key"));
}

Test(store_sealing, files_that_are_no_key_are_refused)
{
	cleanup_secret struct secret *shorter = secret_new(SEAL_KEY_LEN - 1);
	cleanup_secret struct secret *longer = secret_new(SEAL_KEY_LEN + 1);
	cleanup_free char *named = in_dir("named");

	expect_no_key(named, true, ERR_NOT_FOUND, "named");
	cr_expect_not(is_there("named"));
	put_key("named", shorter, 0600);
	expect_no_key(named, true, ERR_INVALID, "32 bytes");
	put_key("named", longer, 0600);
	expect_no_key(named, true, ERR_INVALID, "32 bytes");
	put_key("named", key, 0640);
	expect_no_key(named, true, ERR_INVALID, "chmod 0600");
	put_key("sealing.key", shorter, 0600);
	expect_no_key(NULL, true, ERR_INVALID, "32 bytes");
}

Test(store_sealing, a_store_moves_to_a_named_file_and_to_a_credential)
{
	cleanup_secret struct secret *second = secret_new_random(SEAL_KEY_LEN);
	cleanup_secret struct secret *third = secret_new_random(SEAL_KEY_LEN);
	cleanup_free char *named = in_dir("named"), *own = in_dir("sealing.key");

	make_store();
	put_key("named", second, 0600);
	cr_expect(opens(named, NULL), "the store's key is still there");
	cr_expect(is_there("sealing.key"), "older backups need it");
	cr_assert_eq(unlink(own), 0);
	cr_expect(opens(named, NULL), "sealed by the named one");
	put_key(STORE_SEALING_CREDENTIAL, third, 0440); /* as systemd shows it, with an ACL */
	cr_expect_not(opens(NULL, dir), "the key of the store is nowhere");
	put_key(STORE_SEALING_CREDENTIAL ".old", second, 0440);
	cr_expect(opens(NULL, dir));
	put_key(STORE_SEALING_CREDENTIAL ".old", key, 0440);
	cr_expect(opens(NULL, dir), "sealed by the credential");
	cr_expect(opens(named, dir) == false, "the named file goes first");
}

Test(store_sealing, a_directory_of_credentials_without_ours_changes_nothing)
{
	make_store();
	cr_expect(opens(NULL, dir));
	cr_expect(opens(NULL, "/nonexistent"));
}

Test(store_sealing, a_rotation_makes_a_new_key_and_the_old_one_opens_no_more)
{
	struct store_sealing *s;
	struct store_db *db;
	struct err err = ERR_INIT;

	make_store();
	s = open_sealing(NULL, NULL);
	db = open_db(s);
	cr_expect_eq(store_sealing_rotate(s, db, &err), 0, "%s", err.text);
	cr_expect_not(secret_equal(store_sealing_key(s), key));
	cr_expect_eq(store_sealing_rotate(s, db, &err), 0, "%s", err.text);
	cr_expect_not(is_there("sealing.key.new"));
	store_db_close(db);
	store_sealing_free(s);
	cr_expect(opens(NULL, NULL));
	put_key("sealing.key", key, 0600);
	cr_expect_not(opens(NULL, NULL));
}

Test(store_sealing, a_rotation_of_a_named_key_takes_what_is_in_its_file)
{
	cleanup_secret struct secret *second = secret_new_random(SEAL_KEY_LEN);
	cleanup_free char *named = in_dir("named");
	struct store_sealing *s;
	struct store_db *db;
	struct err err = ERR_INIT;

	put_key("named", key, 0600);
	s = open_sealing(named, NULL);
	db = open_db(s);
	cr_expect_eq(store_sealing_rotate(s, db, &err), -1);
	cr_expect_eq(err.kind, ERR_CONFLICT, "%s", err.text);
	err_clear(&err);
	put_key("named", second, 0644);
	cr_expect_eq(store_sealing_rotate(s, db, &err), -1);
	cr_expect_eq(err.kind, ERR_INVALID, "%s", err.text);
	err_clear(&err);
	put_key("named", second, 0600);
	cr_expect_eq(store_sealing_rotate(s, db, &err), 0, "%s", err.text);
	cr_expect(secret_equal(store_sealing_key(s), second));
	store_db_close(db);
	store_sealing_free(s);
	cr_expect(opens(named, NULL));
	cr_expect_not(is_there("sealing.key"));
}

/* Written and not in the database yet; in the database and not renamed yet. */
Test(store_sealing, a_process_killed_in_a_rotation_finds_the_key)
{
	cleanup_secret struct secret *second = secret_new_random(SEAL_KEY_LEN);
	struct store_sealing *s;
	struct store_db *db;
	struct err err = ERR_INIT;

	make_store();
	put_key("sealing.key.new", second, 0600);
	cr_expect(opens(NULL, NULL), "killed before the database");
	cr_expect_not(is_there("sealing.key.new"), "it was not needed");

	put_key("sealing.key.new.new", second, 0600);
	cr_expect(opens(NULL, NULL), "killed while the new one was written");
	cr_expect_not(is_there("sealing.key.new.new"), "no key is left about");

	put_key("sealing.key.new", second, 0600);
	s = open_sealing(NULL, NULL);
	db = store_open(NULL, &err);
	cr_assert_not_null(db, "%s", err.text);
	cr_assert_eq(store_db_rekey(db, second, &err), 0);
	store_db_close(db);
	db = open_db(s);
	cr_expect(secret_equal(store_sealing_key(s), second), "killed before the rename");
	cr_expect_not(is_there("sealing.key.new"));
	store_db_close(db);
	store_sealing_free(s);
	cr_expect(opens(NULL, NULL));
}

/* What the database was perhaps sealed by before it failed is not replaced by a third key. */
Test(store_sealing, a_rotation_after_one_that_failed_uses_its_key)
{
	cleanup_secret struct secret *second = secret_new_random(SEAL_KEY_LEN);
	struct store_sealing *s;
	struct store_db *db;
	struct err err = ERR_INIT;

	make_store();
	s = open_sealing(NULL, NULL);
	db = open_db(s);
	put_key("sealing.key.new", second, 0600);
	cr_expect_eq(store_sealing_rotate(s, db, &err), 0, "%s", err.text);
	cr_expect(secret_equal(store_sealing_key(s), second));
	store_db_close(db);
	store_sealing_free(s);
}

/* ---- files of keys */

static void put_text(const char *name, const char *text)
{
	cleanup_free char *path = in_dir(name);
	struct err err = ERR_INIT;

	cr_assert_eq(file_replace(path, text, strlen(text), 0600, &err), 0, "%s", err.text);
}

static void put_sealed(const char *name, const struct secret *under, const char *text)
{
	cleanup_secret struct secret *plain = secret_new_copy(text, strlen(text));
	cleanup_free char *path = in_dir(name), *sealed = NULL;
	struct err err = ERR_INIT;
	size_t len;

	sealed = store_sealing_seal_file(under, name, plain, &len);
	cr_assert_eq(file_replace(path, sealed, len, 0600, &err), 0, "%s", err.text);
}

static void expect_sealed(const char *name, const struct secret *under, const char *text)
{
	cleanup_free char *path = in_dir(name);
	cleanup_secret struct secret *plain = NULL;
	struct err err = ERR_INIT;
	size_t len;
	char *have = file_read(path, 65536, &len, NULL, &err);

	cr_assert_not_null(have, "%s", err.text);
	plain = store_sealing_open_file(under, name, have, len);
	cr_expect(plain && secret_len(plain) == strlen(text) &&
			  memcmp(secret_peek(plain), text, strlen(text)) == 0,
		"%s", name);
	file_wipe(have, len);
}

static void expect_read(const struct store_sealing *s, const char *name, const char *text)
{
	struct err err = ERR_INIT;
	cleanup_secret struct secret *plain = store_sealing_read(s, name, &err);

	cr_assert_not_null(plain, "%s", err.text);
	cr_expect_eq(secret_len(plain), strlen(text));
}

Test(store_sealing, plain_files_are_read_and_sealed_once_the_store_is_open)
{
	struct store_sealing *s;

	make_store();
	put_text("ca.key", "of 0.2.0");
	put_text("token.key", "as well");
	s = open_sealing(NULL, NULL);
	expect_read(s, "ca.key", "of 0.2.0");
	store_db_close(open_db(s));
	expect_sealed("ca.key", key, "of 0.2.0");
	expect_sealed("token.key", key, "as well");
	expect_read(s, "ca.key", "of 0.2.0");
	cr_expect_not(is_there("server.key"), "none is made");
	cr_expect_not(is_there("ca.key.new"));
	store_sealing_free(s);
}

Test(store_sealing, files_follow_a_rotation)
{
	struct store_sealing *s;
	struct store_db *db;
	struct err err = ERR_INIT;

	make_store();
	put_sealed("ca.key", key, "a");
	s = open_sealing(NULL, NULL);
	db = open_db(s);
	cr_expect_eq(store_sealing_rotate(s, db, &err), 0, "%s", err.text);
	expect_sealed("ca.key", store_sealing_key(s), "a");
	store_db_close(db);
	store_sealing_free(s);
	cr_expect(opens(NULL, NULL));
}

/* After the database, before the rename: some files are sealed under the new key, some are not yet. */
Test(store_sealing, files_of_a_rotation_that_was_killed_are_sealed_under_its_key)
{
	cleanup_secret struct secret *second = secret_new_random(SEAL_KEY_LEN);
	struct store_sealing *s;
	struct store_db *db;
	struct err err = ERR_INIT;

	make_store();
	put_sealed("ca.key", second, "done");
	put_sealed("token.key", key, "not yet");
	put_key("sealing.key.new", second, 0600);
	db = store_open(NULL, &err);
	cr_assert_not_null(db, "%s", err.text);
	cr_assert_eq(store_db_rekey(db, second, &err), 0);
	store_db_close(db);
	s = open_sealing(NULL, NULL);
	expect_read(s, "ca.key", "done");
	expect_read(s, "token.key", "not yet");
	store_db_close(open_db(s));
	cr_expect_not(is_there("sealing.key.new"));
	expect_sealed("ca.key", second, "done");
	expect_sealed("token.key", second, "not yet");
	store_sealing_free(s);
}

Test(store_sealing, a_file_moves_to_a_named_key)
{
	cleanup_secret struct secret *second = secret_new_random(SEAL_KEY_LEN);
	cleanup_free char *named = in_dir("named");

	make_store();
	put_sealed("ca.key", key, "a");
	put_key("named", second, 0600);
	cr_expect(opens(named, NULL));
	expect_sealed("ca.key", second, "a");
}

Test(store_sealing, a_file_of_another_key_is_refused_and_kept)
{
	cleanup_secret struct secret *other = secret_new_random(SEAL_KEY_LEN);
	struct store_sealing *s;
	struct err err = ERR_INIT;

	make_store();
	put_sealed("ca.key", other, "a");
	s = open_sealing(NULL, NULL);
	cr_expect_null(store_sealing_read(s, "ca.key", &err));
	cr_expect_eq(err.kind, ERR_INVALID);
	cr_expect(strstr(err.text, "is sealed under another sealing key"), "%s", err.text);
	store_sealing_free(s);
	cr_expect_not(opens(NULL, NULL));
	expect_sealed("ca.key", other, "a");
}
