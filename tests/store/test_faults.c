/* SPDX-License-Identifier: MIT */
/*
 * What the disk may do: each call of SQLite's VFS fails once, the process is killed before each
 * write, each byte is another one. What was acknowledged is there, what was refused is not, and the
 * next request works when the disk does.
 */
#include "config.h"

#include <sqlite3.h>

#include "store/fault_store.h"
#include "tec/store/gc.h"
#include "tec/store/watch.h"

enum { OBJECTS = 12 };

TestSuite(store_faults, .init = fault_store_up, .fini = fault_store_down, .timeout = 300);

/* One request and its commit: the code that the client would see. */
static int request(const char *method, const char *path, const char *body)
{
	cleanup_apireq_request_info struct apireq_request_info t;
	struct apireq_answer a;
	struct err err = ERR_INIT;
	int code;

	cr_assert_eq(apireq_request_info_parse(path, &t, &err), 0);
	a = apireq_request(s, &t,
		&(const struct apireq_request){.method = method,
			.content_type = str_eq(method, "PATCH") ? MERGE : NULL,
			.body = body,
			.len = body ? strlen(body) : 0});
	code = a.code;
	apireq_answer_fini(&a);
	if (store_objects_commit(s, &err) < 0) {
		a = apireq_status_storage(&err);
		code = a.code;
		cr_expect(strstr(a.body, "\"kind\":\"Status\""));
		apireq_answer_fini(&a);
	}
	return code;
}

static int make(unsigned i)
{
	cleanup_free char *body = xasprintf("{" SECRET ",\"metadata\":{\"name\":\"s%u\"},"
					    "\"stringData\":{\"k\":\"%0200u\"}}",
		i, i);

	return request("POST", SECRETS, body);
}

static bool is_there(unsigned i)
{
	cleanup_free char *name = xasprintf("s%u", i);
	cleanup_json struct json_object *o = store_objects_get(s, A_SECRET(name));

	return o != NULL;
}

static void one_call_fails(enum fault_what what, int code)
{
	unsigned hits = 0;

	for (unsigned n = 1; n <= 40; n++) {
		bool made[OBJECTS];
		int again = 201;
		struct err err = ERR_INIT;

		open_store(FAULT_VFS);
		fault_vfs_set(what, n, false);
		for (unsigned i = 0; i < OBJECTS; i++) {
			uint64_t rv = store_objects_rv(s);
			int got = make(i);

			made[i] = got == 201;
			cr_expect(got == 201 || got == code || got == 500, "%d", got);
			cr_expect_eq(store_objects_rv(s), made[i] ? rv + 1 : rv);
			cr_expect_eq(is_there(i), made[i], "call %u, object %u", n, i);
		}
		hits += fault_vfs_hit();
		fault_vfs_set(FAULT_NONE, 0, false);
		(void)store_objects_trouble(s, &err);
		for (unsigned i = 0; i < OBJECTS && again == 201; i++)
			again = made[i] ? 201 : make(i);
		cr_expect_eq(again, 201, "it works again after call %u failed", n);
		close_store();
		open_store(NULL); /* and all of it is whole */
		for (unsigned i = 0; i < OBJECTS; i++) {
			cr_expect(is_there(i), "call %u, object %u", n, i);
			cleanup_free char *name = xasprintf("s%u", i);

			json_object_put(store_gc_delete(s, A_SECRET(name), STORE_BACKGROUND));
		}
		cr_assert_eq(store_objects_commit(s, &err), 0, "%s", err.text);
		close_store();
	}
	cr_expect_gt(hits, 20, "only %u faults came", hits);
}

Test(store_faults, a_disk_that_is_full_refuses_and_recovers)
{
	one_call_fails(FAULT_FULL, 507);
}

Test(store_faults, writes_and_syncs_that_fail_refuse_and_recover)
{
	one_call_fails(FAULT_WRITE, 500);
}

Test(store_faults, half_a_write_is_none)
{
	one_call_fails(FAULT_HALF, 500);
}

Test(store_faults, reads_go_on_when_nothing_can_be_written)
{
	static const enum fault_what whats[] = {FAULT_FULL, FAULT_WRITE, FAULT_READONLY};

	open_store(FAULT_VFS);
	cr_assert_eq(make(1), 201);
	for (size_t i = 0; i < ARRAY_LEN(whats); i++) {
		int code = whats[i] == FAULT_FULL ? 507 : 500;

		fault_vfs_set(whats[i], 1, true);
		for (unsigned k = 0; k < 5; k++) {
			cr_expect_eq(make(2), code);
			cr_expect_eq(request("PATCH", SECRETS "/s1",
					     "{\"metadata\":{\"labels\":{\"a\":\"b\"}}}"),
				code);
			cr_expect_eq(request("DELETE", SECRETS "/s1", NULL), code);
			cr_expect_eq(request("GET", SECRETS "/s1", NULL), 200);
			cr_expect_eq(request("GET", SECRETS "/s2", NULL), 404);
			cr_expect_eq(request("GET", SECRETS, NULL), 200);
		}
		fault_vfs_set(FAULT_NONE, 0, false);
	}
	cr_expect_eq(make(2), 201);
}

Test(store_faults, reads_that_fail_are_not_absent_objects)
{
	static const enum fault_what whats[] = {FAULT_READ, FAULT_SHORT_READ};
	unsigned hits = 0;

	open_store(NULL);
	for (unsigned i = 0; i < 200; i++)
		cr_assert_eq(make(i), 201);
	close_store();
	for (size_t w = 0; w < ARRAY_LEN(whats); w++) {
		for (unsigned n = 1; n <= 60; n++) {
			struct err err = ERR_INIT;
			struct store_db *db;
			int code;

			fault_vfs_set(whats[w], n, false);
			db = store_open(FAULT_VFS, &err);
			hits += fault_vfs_hit();
			if (!db) { /* refused as a whole */
				cr_expect(err_is_set(&err));
				continue;
			}
			s = store_objects_new(db, &things, NULL);
			code = request("GET", SECRETS "/s150", NULL);
			cr_expect(code == 200 || code == 500, "%d", code);
			code = request("GET", SECRETS, NULL);
			cr_expect(code == 200 || code == 500, "%d", code);
			fault_vfs_set(FAULT_NONE, 0, false);
			cr_expect_eq(request("GET", SECRETS "/s150", NULL), 200);
			close_store();
		}
	}
	cr_expect_gt(hits, 30, "%u", hits);
}

/* ---- kill -9 */

static bool is_made(unsigned i)
{
	return make(i) == 201;
}

Test(store_faults, no_acknowledged_write_is_lost_by_kill_9)
{
	unsigned acknowledged = 0, next = 0;

	for (unsigned n = 1; n <= 200; n++) {
		acknowledged += write_until_killed(is_made, next, 1 + n % 50);
		open_store(NULL); /* integrity_check, and every row */
		for (unsigned i = 0; i < acknowledged; i++)
			cr_expect(is_there(i), "write %u of %u is lost after life %u", i,
				acknowledged, n);
		/* The one that was under way may be there or not. */
		next = (unsigned)store_objects_count(s, "secrets", "ns");
		cr_assert(next == acknowledged || next == acknowledged + 1, "%u %u", next,
			acknowledged);
		acknowledged = next;
		close_store();
	}
	cr_expect_gt(acknowledged, 200);
}

/* ---- another key */

enum { ROWS = 30 };

static void fill(void)
{
	open_store(NULL);
	for (unsigned i = 0; i < ROWS; i++)
		cr_assert_eq(make(i), 201);
	close_store();
}

/* 0: the key is another, and every row is sealed by it. */
static int change_key(const struct secret *to)
{
	struct store_db *db = store_objects_db(s);
	struct err err = ERR_INIT;
	int rc = store_db_rekey(db, to, &err);

	while (rc == 0 && store_db_is_resealing(db))
		if (store_db_reseal(db, 4, 1u << 20, &err) < 0)
			rc = -1;
	return rc == 0 ? store_db_settle(db, &err) : -1;
}

/* One of the two sealing keys opens it, and all of it is there; that key is the current one then. */
static void expect_whole(struct secret **other, unsigned n)
{
	struct err err = ERR_INIT, second = ERR_INIT;
	struct store_db *db = store_open(NULL, &err);

	if (!db) {
		struct secret *was = key;

		cr_assert_eq(err.kind, ERR_DENIED, "call %u: %s", n, err.text);
		key = *other;
		*other = was;
		db = store_open(NULL, &second);
	}
	cr_assert_not_null(db, "call %u: %s, %s", n, err.text, second.text);
	s = store_objects_new(db, &things, NULL);
	for (unsigned i = 0; i < ROWS; i++)
		cr_assert(is_there(i), "call %u: row %u", n, i);
	close_store();
}

Test(store_faults, a_change_of_the_key_survives_kill_9_at_every_write)
{
	struct secret *other = secret_new_random(SEAL_KEY_LEN);
	unsigned n = 0;
	int status = 0;

	fill();
	do {
		pid_t child = fork();

		n++;
		if (child == 0) {
			fault_vfs_set(FAULT_NONE, 0, false);
			open_store(FAULT_VFS);
			fault_vfs_set(FAULT_KILL, n, false);
			_exit(change_key(other) == 0 ? 0 : 1);
		}
		cr_assert_eq(waitpid(child, &status, 0), child);
		expect_whole(&other, n);
	} while (WIFSIGNALED(status) && n < 500);
	cr_expect(WIFEXITED(status) && WEXITSTATUS(status) == 0, "%x", status);
	cr_expect_gt(n, 30, "only %u writes", n);
	secret_free(other);
}

static void key_changes_although(enum fault_what what)
{
	struct secret *other = secret_new_random(SEAL_KEY_LEN);
	unsigned hits = 0;

	fill();
	for (unsigned n = 1; n <= 60; n++) {
		open_store(FAULT_VFS);
		fault_vfs_set(what, n, false);
		(void)!change_key(other);
		hits += fault_vfs_hit();
		fault_vfs_set(FAULT_NONE, 0, false);
		for (unsigned i = 0; i < ROWS; i++)
			cr_assert(is_there(i), "call %u: row %u", n, i);
		close_store();
		expect_whole(&other, n);
	}
	cr_expect_gt(hits, 20, "only %u faults came", hits);
	secret_free(other);
}

Test(store_faults, a_change_of_the_key_survives_a_full_disk)
{
	key_changes_although(FAULT_FULL);
}

Test(store_faults, a_change_of_the_key_survives_half_a_write)
{
	key_changes_although(FAULT_HALF);
}

/* ---- damage */

/* By SQLite's own check, which compares each index with its table row by row. */
static bool is_sound(const char *path)
{
	sqlite3 *sql = NULL;
	sqlite3_stmt *st = NULL;
	bool ok =
		sqlite3_open(path, &sql) == SQLITE_OK &&
		sqlite3_prepare_v2(sql, "PRAGMA integrity_check(1)", -1, &st, NULL) == SQLITE_OK &&
		sqlite3_step(st) == SQLITE_ROW &&
		str_eq((const char *)sqlite3_column_text(st, 0), "ok");

	sqlite3_finalize(st);
	sqlite3_close(sql);
	return ok;
}

Test(store_faults, a_database_with_another_byte_is_refused_or_whole)
{
	cleanup_free char *path = in_dir("store.db"), *was = NULL, *text = NULL;
	unsigned refused = 0, whole = 0;
	size_t len = 0, n = 0;

	open_store(NULL);
	for (unsigned i = 0; i < OBJECTS; i++)
		cr_assert_eq(make(i), 201);
	for (unsigned i = 0; i < OBJECTS; i++) {
		cleanup_free char *name = xasprintf("t%u", i);

		json_object_put(store_objects_put(s, A_THING(name),
			json_of("{\"spec\":\"value\",\"metadata\":{\"ownerReferences\":["
				"{\"uid\":\"an-owner\"},{\"uid\":\"another\"}]}}")));
	}
	cr_assert_eq(request("GET", SECRETS, NULL), 200);
	close_store();
	was = slurp(path, &len);
	cr_assert_not_null(was);
	for (size_t at = 0; at < len; at += at < 100 ? 1 : 41) {
		struct err err = ERR_INIT;
		struct store_db *db;
		FILE *f;

		free(text);
		text = xmemdup(was, len);
		text[at] ^= (char)(1 << at % 8);
		f = fopen(path, "w");
		cr_assert_eq(fwrite(text, 1, len, f), len);
		fclose(f);
		db = store_open(NULL, &err);
		if (!db) {
			refused++;
			cr_expect(
				strstr(err.text, "restore a backup") || strstr(err.text, "version"),
				"byte %zu: %s", at, err.text);
			continue;
		}
		s = store_objects_new(db, &things, NULL);
		for (n = 0; n < OBJECTS; n++) {
			cleanup_free char *name = xasprintf("t%zu", n);
			cleanup_json struct json_object *o = store_objects_get(s, A_THING(name));

			cr_expect(is_there((unsigned)n), "byte %zu", at);
			cr_expect_str_eq(json_get_str(o, "spec"), "value", "byte %zu", at);
		}
		whole++;
		close_store();
		cr_expect(is_sound(path), "byte %zu", at);
	}
	cr_expect_gt(refused, 50, "%u refused, %u whole", refused, whole);
}
