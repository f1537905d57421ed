/* SPDX-License-Identifier: MIT */
#include "config.h"

#include "store/store_dir.h"
#include "apireq/things.h"
#include "tec/store/rows.h"
#include "tec/apireq/transport.h"

#define TABLE "broker/repository"

static struct store_objects *s;

static void open_store(void)
{
	static const struct store_schema schema = {
		.kinds = thing_kinds, .n_kinds = 1, .lists = {thing_lists, 1}};
	struct err err = ERR_INIT;
	struct store_db *db = store_open(NULL, &err);

	cr_assert_not_null(db, "%s", err.text);
	s = store_objects_new(db, &schema, NULL);
}

static void up(void)
{
	store_dir_up();
	open_store();
}

static void down(void)
{
	store_objects_free(s);
	store_dir_down();
}

TestSuite(store_rows, .init = up, .fini = down);

static void put(const char *name, const char *text)
{
	struct err err = ERR_INIT;

	cr_assert_eq(store_rows_set(s, TABLE, name, text, strlen(text), &err), 0, "%s", err.text);
}

static void commit(void)
{
	struct err err = ERR_INIT;

	cr_assert_eq(store_objects_commit(s, &err), 0, "%s", err.text);
}

/* The text of a row, the caller's; NULL: there is none. */
static char *get(const char *name)
{
	struct err err = ERR_INIT;
	void *data = NULL;
	size_t len;

	if (store_rows_get(s, TABLE, name, &data, &len, &err) < 0) {
		cr_assert_eq(err.kind, ERR_NOT_FOUND, "%s", err.text);
		return NULL;
	}
	cr_assert_eq(len, strlen(data));
	return data;
}

static void expect(const char *name, const char *text)
{
	cleanup_free char *got = get(name);

	cr_expect(str_eq(got, text), "%s is %s", name, got ? got : "not there");
}

static void add_name(void *arg, const char *name)
{
	strbuf_addf(arg, "%s ", name);
}

static void expect_list(const char *prefix, const char *names)
{
	cleanup_strbuf struct strbuf out = STRBUF_INIT;
	struct err err = ERR_INIT;

	cr_assert_eq(store_rows_list(s, TABLE, prefix, add_name, &out, &err), 0);
	cr_expect_str_eq(strbuf_str(&out), names);
}

Test(store_rows, last_value_is_there_after_a_restart)
{
	put("a", "one");
	put("a", "two");
	put("b", "");
	expect("a", "two");
	commit();
	put("b", "lost"); /* of a turn that did not end */
	store_objects_free(s);
	open_store();
	expect("a", "two");
	expect("b", "");
	expect("c", NULL);
}

Test(store_rows, removed_row_is_gone_and_can_be_made_again)
{
	struct err err = ERR_INIT;

	put("a", "one");
	commit();
	cr_expect_eq(store_rows_remove(s, TABLE, "a", &err), 0);
	expect("a", NULL);
	cr_expect_eq(store_rows_remove(s, TABLE, "a", &err), -1);
	cr_expect_eq(err.kind, ERR_NOT_FOUND);
	commit();
	expect_list("", "");
	put("a", "three");
	commit();
	expect("a", "three");
}

Test(store_rows, list_is_of_one_table_and_one_prefix)
{
	struct err err = ERR_INIT;

	put("ak.1", "x");
	put("boot.2", "x");
	put("boot.1", "x");
	put("boots", "x");
	put("tpm", "x");
	cr_assert_eq(store_rows_set(s, "broker/kbs", "boot.3", "x", 1, &err), 0);
	commit();
	expect_list("boot.", "boot.1 boot.2 ");
	expect_list("", "ak.1 boot.1 boot.2 boots tpm ");
	expect_list("z", "");
}

Test(store_rows, bytes_are_sealed_on_disk)
{
	static const char text[] = "a disk key that is easily recognised";
	struct err err = ERR_INIT;

	put("default/x/root", text);
	commit();
	cr_expect_not(is_in_files(text, strlen(text)));
	cr_expect(is_in_files("default/x/root", 14), "the search finds what is not sealed");
	cr_assert_eq(store_rows_remove(s, TABLE, "default/x/root", &err), 0);
	commit();
	expect("default/x/root", NULL);
}

Test(store_rows, private_key_comes_back_as_the_same_key)
{
	cleanup_pki_key struct pki_key *made = pki_key_new_p256(), *got = NULL;
	cleanup_secret struct secret *a = pki_key_private_pem(made), *b = NULL;
	struct err err = ERR_INIT;

	cr_expect_null(store_rows_get_key(s, TABLE, "k", &err));
	cr_expect_eq(err.kind, ERR_NOT_FOUND);
	err_clear(&err);
	cr_assert_eq(store_rows_set_key(s, TABLE, "k", made, &err), 0, "%s", err.text);
	got = store_rows_get_key(s, TABLE, "k", &err);
	cr_assert_not_null(got, "%s", err.text);
	b = pki_key_private_pem(got);
	cr_expect(secret_equal(a, b));
	put("bad", "no key");
	cr_expect_null(store_rows_get_key(s, TABLE, "bad", &err));
	cr_expect_neq(err.kind, ERR_NOT_FOUND);
}
