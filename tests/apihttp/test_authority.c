/* SPDX-License-Identifier: MIT */
#include "config.h"

#include <criterion/criterion.h>
#include <dirent.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tec/apihttp/authority.h"
#include "tec/base/file.h"
#include "tec/base/mem.h"
#include "tec/k8s/kubeconfig.h"
#include "tec/pki/cert.h"

#define NOW INT64_C(1790000000)
#define DAY INT64_C(86400)

static char dir[64];
static const char *const names[] = {"localhost", "127.0.0.1", "::1", NULL};

static void up(void)
{
	strcpy(dir, "/tmp/test_authority.XXXXXX");
	cr_assert_not_null(mkdtemp(dir));
}

static void empty(void)
{
	DIR *d = opendir(dir);
	struct dirent *e;

	while (d && (e = readdir(d))) {
		cleanup_free char *path = xasprintf("%s/%s", dir, e->d_name);

		unlink(path);
	}
	closedir(d);
}

static void down(void)
{
	empty();
	rmdir(dir);
}

static bool looks; /* nothing is to be written */

TestSuite(apihttp_authority, .init = up, .fini = down);

static void write_file(const char *name, const char *text)
{
	cleanup_free char *path = xasprintf("%s/%s", dir, name);
	struct err err = ERR_INIT;

	cr_assert_eq(file_replace(path, text, strlen(text), 0600, &err), 0, "%s", err.text);
}

/* As after a start: with a store and certificates. */
static struct apihttp_authority *renewed(
	struct apihttp_authority *take_a, int64_t now_s, struct err *err)
{
	if (take_a && !looks)
		write_file(STORE_DB_FILE, "store");
	if (!take_a || apihttp_authority_renew(take_a, now_s, err) >= 0)
		return take_a;
	apihttp_authority_close(take_a);
	return NULL;
}

static struct apihttp_authority *open_at(int64_t now, const char *const *n, struct err *err)
{
	const struct apihttp_authority_conf conf = {
		.dir = dir, .names = n, .server = "https://127.0.0.1:6443", .ns = "tec"};

	return renewed(apihttp_authority_open(&conf, err), now, err);
}

static struct apihttp_authority *must_open(int64_t now)
{
	struct err err = ERR_INIT;
	struct apihttp_authority *a = open_at(now, names, &err);

	cr_assert_not_null(a, "%s", err.text);
	return a;
}

/* What is in a file; the caller frees. */
static char *text_of(const char *name)
{
	cleanup_free char *path = xasprintf("%s/%s", dir, name);
	struct err err = ERR_INIT;
	size_t len;
	char *text = file_read(path, 65536, &len, NULL, &err);

	cr_assert_not_null(text, "%s", err.text);
	return text;
}

static int count_files(void)
{
	DIR *d = opendir(dir);
	int n = 0;

	while (d && readdir(d))
		n++;
	closedir(d);
	return n - 2;
}

/* "dir" and what a look at it says; NULL: it is usable. */
static const char *look(const char *at, struct err *err)
{
	const struct apihttp_authority_conf conf = {.dir = at,
		.names = names,
		.server = "https://127.0.0.1:6443",
		.ns = "tec",
		.look_only = true};
	struct apihttp_authority *a;

	looks = true;
	a = renewed(apihttp_authority_open(&conf, err), NOW, err);
	looks = false;
	if (!a)
		return err->text;
	cr_expect_not_null(apihttp_authority_identity(a).token_key);
	cr_expect(pki_issue_names(apihttp_authority_identity(a).cert,
		strlen(apihttp_authority_identity(a).cert), names));
	apihttp_authority_close(a);
	return NULL;
}

Test(apihttp_authority, a_look_writes_nothing)
{
	cleanup_free char *under = xasprintf("%s/new", dir), *deep = xasprintf("%s/no/new", dir);
	struct err err = ERR_INIT;
	struct apihttp_authority *a;
	cleanup_free char *before = NULL, *after = NULL;
	int n;

	cr_expect_null(look(dir, &err), "%s", err.text);
	cr_expect_eq(count_files(), 0);
	cr_expect_null(look(under, &err), "%s", err.text);
	cr_expect_lt(access(under, F_OK), 0);
	cr_expect(strstr(look(deep, &err), "cannot create directory"), "%s", err.text);
	a = must_open(NOW);
	n = count_files();
	before = text_of("server.crt");
	/* Beside the process that has the lock, and with certificates that end soon. */
	err_clear(&err);
	cr_expect_null(look(dir, &err), "%s", err.text);
	apihttp_authority_close(a);
	after = text_of("server.crt");
	cr_expect_str_eq(before, after);
	cr_expect_eq(count_files(), n);
}

Test(apihttp_authority, a_first_start_makes_all_for_this_user_alone)
{
	static const char *const files[] = {
		"ca.crt", "ca.key", "server.crt", "server.key", "token.key", "kubeconfig"};
	struct apihttp_authority *a = must_open(NOW);
	struct k8s_kubeconfig *k;
	struct err err = ERR_INIT;
	struct stat st;

	for (size_t i = 0; i < ARRAY_LEN(files); i++) {
		cleanup_free char *path = xasprintf("%s/%s", dir, files[i]);

		cr_assert_eq(stat(path, &st), 0, "%s", path);
		cr_expect_eq(st.st_mode & 0777, 0600, "%s", path);
	}
	cr_expect(apihttp_authority_identity(a).is_new);
	k = k8s_kubeconfig_load(apihttp_authority_identity(a).kubeconfig, NULL, &err);
	cr_assert_not_null(k, "%s", err.text);
	cr_expect_str_eq(k->server, "https://127.0.0.1:6443");
	cr_expect_str_eq(k->namespace_, "tec");
	cr_expect_eq(secret_len(k->ca_data), strlen(apihttp_authority_identity(a).ca));
	cr_expect(k->cert_data && k->key_data);
	k8s_kubeconfig_free(k);
	apihttp_authority_close(a);
}

Test(apihttp_authority, a_second_start_changes_nothing)
{
	cleanup_free char *ca = NULL, *kubeconfig = NULL, *server = NULL, *ca2 = NULL,
			  *kubeconfig2 = NULL, *server2 = NULL;

	apihttp_authority_close(must_open(NOW));
	ca = text_of("ca.crt");
	kubeconfig = text_of("kubeconfig");
	server = text_of("server.crt");
	struct apihttp_authority *a = must_open(NOW + 100 * DAY);

	cr_expect_not(apihttp_authority_identity(a).is_new);
	ca2 = text_of("ca.crt");
	kubeconfig2 = text_of("kubeconfig");
	server2 = text_of("server.crt");
	cr_expect_str_eq(ca, ca2);
	cr_expect_str_eq(kubeconfig, kubeconfig2);
	cr_expect_str_eq(server, server2);
	apihttp_authority_close(a);
}

Test(apihttp_authority, what_ends_soon_is_made_again_with_its_key)
{
	struct apihttp_authority *a = must_open(NOW);
	cleanup_free char *key = text_of("server.key"), *key2 = NULL,
			  *kubeconfig = text_of("kubeconfig"), *kubeconfig2 = NULL,
			  *ca = text_of("ca.crt"), *ca2 = NULL;
	struct err err = ERR_INIT;
	int64_t end;

	cr_expect_eq(apihttp_authority_renew(a, NOW + 200 * DAY, &err), 0, "nothing to do");
	cr_expect_eq(apihttp_authority_renew(a, NOW + 310 * DAY, &err), 1, "%s", err.text);
	cr_assert_eq(pki_cert_not_after(apihttp_authority_identity(a).cert,
			     strlen(apihttp_authority_identity(a).cert), &end, &err),
		0);
	cr_expect_eq(end, NOW + (310 + 365) * DAY);
	key2 = text_of("server.key");
	kubeconfig2 = text_of("kubeconfig");
	cr_expect_str_eq(key, key2);
	cr_expect_str_neq(kubeconfig, kubeconfig2);
	cr_expect_eq(apihttp_authority_renew(a, NOW + 7000 * DAY, &err), 1, "%s", err.text);
	ca2 = text_of("ca.crt");
	cr_expect_str_neq(ca, ca2, "the CA is renewed");
	apihttp_authority_close(a);
}

Test(apihttp_authority, another_name_makes_another_certificate)
{
	static const char *const more[] = {"localhost", "10.0.0.7", NULL};
	struct apihttp_authority *a = must_open(NOW);
	struct err err = ERR_INIT;

	apihttp_authority_close(a);
	a = open_at(NOW, more, &err);
	cr_assert_not_null(a, "%s", err.text);
	cr_expect(pki_issue_names(apihttp_authority_identity(a).cert,
		strlen(apihttp_authority_identity(a).cert), more));
	apihttp_authority_close(a);
}

Test(apihttp_authority, a_second_process_is_refused)
{
	struct apihttp_authority *a = must_open(NOW);
	struct err err = ERR_INIT;

	cr_expect_null(open_at(NOW, names, &err));
	cr_expect_eq(err.kind, ERR_CONFLICT);
	cr_expect_not_null(strstr(err.text, "another tec-operator uses"));
	apihttp_authority_close(a);
	apihttp_authority_close(must_open(NOW));
}

/* A key is never replaced; a certificate can be made again. */
Test(apihttp_authority, damaged_files_are_refused_or_made_again)
{
	static const char *const keys[] = {"ca.key", "server.key", "token.key"};
	static const char *const others[] = {"ca.crt", "server.crt", "kubeconfig"};

	for (size_t i = 0; i < ARRAY_LEN(keys); i++) {
		struct err err = ERR_INIT;

		empty();
		apihttp_authority_close(must_open(NOW));
		write_file(keys[i], "");
		cr_expect_null(open_at(NOW, names, &err), "%s", keys[i]);
		cr_expect_eq(err.kind, ERR_INVALID);
		cr_expect_not_null(strstr(err.text, keys[i]), "%s", err.text);
	}
	for (size_t i = 0; i < ARRAY_LEN(others); i++) {
		cleanup_free char *now = NULL;

		empty();
		apihttp_authority_close(must_open(NOW));
		write_file(others[i], "garbage\n");
		apihttp_authority_close(must_open(NOW));
		now = text_of(others[i]);
		cr_expect_str_neq(now, "garbage\n");
	}
}

Test(apihttp_authority, a_directory_of_others_is_refused)
{
	struct err err = ERR_INIT;

	cr_assert_eq(chmod(dir, 0755), 0);
	cr_expect_null(open_at(NOW, names, &err));
	cr_expect_not_null(strstr(err.text, "chmod 0700"), "%s", err.text);
	chmod(dir, 0700);
}

/* ---- a sealing key that is elsewhere */

static char elsewhere[64];

static struct apihttp_authority *open_elsewhere(const char *kubeconfig)
{
	const struct apihttp_authority_conf conf = {.dir = dir,
		.names = names,
		.server = "https://127.0.0.1:6443",
		.ns = "tec",
		.kubeconfig = kubeconfig,
		.sealing = {.file = elsewhere}};
	struct err err = ERR_INIT;
	struct apihttp_authority *a = renewed(apihttp_authority_open(&conf, &err), NOW, &err);

	cr_assert_not_null(a, "%s", err.text);
	return a;
}

Test(apihttp_authority, a_sealing_key_elsewhere_leaves_no_key_in_the_directory)
{
	static const char *const keys[] = {"ca.key", "server.key", "token.key"};
	cleanup_free char *kubeconfig = NULL, *inside = xasprintf("%s/kubeconfig", dir);
	struct err err = ERR_INIT;

	strcpy(elsewhere, "/tmp/test_authority_key.XXXXXX");
	close(mkstemp(elsewhere));
	cr_assert_eq(
		file_replace(elsewhere, "01234567890123456789012345678901", 32, 0600, &err), 0);
	kubeconfig = xasprintf("%s.kubeconfig", elsewhere);
	write_file("kubeconfig", "of version 0.2.0");
	apihttp_authority_close(open_elsewhere(NULL));
	cr_expect_lt(access(inside, F_OK), 0, "it held an administrator's key");
	for (size_t i = 0; i < ARRAY_LEN(keys); i++) {
		cleanup_free char *path = xasprintf("%s/%s", dir, keys[i]);
		size_t len = 0;
		char *text = file_read(path, 65536, &len, NULL, &err);

		cr_assert_not_null(text, "%s", err.text);
		cr_expect_null(memmem(text, len, "PRIVATE KEY", 11), "%s", keys[i]);
		file_wipe(text, len);
	}
	apihttp_authority_close(open_elsewhere(kubeconfig));
	cr_expect_eq(access(kubeconfig, F_OK), 0);
	cr_expect_lt(access(inside, F_OK), 0);
	unlink(kubeconfig);
	unlink(elsewhere);
}

/* Of a directory that was in use, each way in which a file can be lost; without ca.crt it is the first
 * start that was interrupted. */
Test(apihttp_authority, what_was_lost_is_not_made_again_in_silence)
{
	static const char *const files[] = {"ca.key", "token.key", STORE_DB_FILE};

	for (size_t i = 0; i < 2 * ARRAY_LEN(files); i++) {
		const char *file = files[i / 2], *how = i % 2 ? "is empty" : "is missing";
		cleanup_free char *path = xasprintf("%s/%s", dir, file);
		cleanup_free char *ca = xasprintf("%s/ca.crt", dir);
		struct err err = ERR_INIT, looked = ERR_INIT;

		empty();
		apihttp_authority_close(must_open(NOW));
		cr_assert_eq(unlink(path), 0);
		if (i % 2)
			write_file(file, "");
		cr_expect_null(open_at(NOW, names, &err), "%s", file);
		cr_expect_eq(err.kind, ERR_INVALID);
		cr_expect(strstr(err.text, path) && strstr(err.text, how) &&
				  strstr(err.text, "next step: "),
			"%s", err.text);
		cr_expect_str_eq(look(dir, &looked), err.text);
		cr_assert_eq(unlink(ca), 0);
		unlink(path);
		apihttp_authority_close(must_open(NOW));
	}
}

/* ca.key and ca.crt were removed, as the error says: clients that trust the new CA reach the server. */
Test(apihttp_authority, another_ca_makes_another_server_certificate)
{
	cleanup_free char *key = xasprintf("%s/ca.key", dir), *crt = xasprintf("%s/ca.crt", dir);
	cleanup_free char *before = NULL, *after = NULL;
	struct apihttp_authority *a;

	apihttp_authority_close(must_open(NOW));
	before = text_of("server.crt");
	cr_assert_eq(unlink(key), 0);
	cr_assert_eq(unlink(crt), 0);
	a = must_open(NOW);
	after = text_of("server.crt");
	cr_expect_str_neq(before, after);
	apihttp_authority_close(a);
}
