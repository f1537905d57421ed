/* SPDX-License-Identifier: MIT */
#include "config.h"

#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tec/attest/luks2.h"
#include "tec/base/json.h"
#include "tec/base/mem.h"
#include "tec/jose/jwe.h"

#define PATH "default/11111111-2222-3333-4444-555555555555/root"
#define TANG "{\"alg\":\"dir\",\"enc\":\"A256GCM\",\"clevis\":{\"pin\":\"tang\",\"tang\":{}}}"

static struct attest_config config(const char *servers)
{
	struct attest_config c;
	struct err err = ERR_INIT;

	cr_assert_eq(
		attest_config_read_servers(servers, strlen(servers), &c, &err), 0, "%s", err.text);
	return c;
}

static struct attest_config list(const char *url)
{
	char text[128];

	snprintf(text, sizeof(text), "{\"servers\":[{\"url\":\"%s\",\"cert\":\"\"}]}", url);
	return config(text);
}

static char *sealed(const char *header)
{
	cleanup_secret struct secret *key = secret_new(32);
	cleanup_strbuf struct strbuf jwe = STRBUF_INIT;
	struct err err = ERR_INIT;

	cr_assert_eq(jwe_dir_seal(key, header, "passphrase", 10, &jwe, &err), 0, "%s", err.text);
	return strbuf_steal(&jwe);
}

/* A disk: which tokens it has, as JSON texts. */
struct disk {
	char *token[ATTEST_LUKS2_MAX]; /* owned; NULL: free */
};

static void disk_fini(struct disk *d)
{
	for (size_t i = 0; i < ATTEST_LUKS2_MAX; i++)
		free(d->token[i]);
}
#define cleanup_disk __attribute__((cleanup(disk_fini)))

static void put_header(struct disk *d, unsigned keyslot, const char *header)
{
	cleanup_free char *jwe = sealed(header);
	size_t i = 0;

	while (d->token[i])
		cr_assert_lt(++i, ATTEST_LUKS2_MAX, "the header is full");
	d->token[i] = attest_binding_write(jwe, keyslot);
}

static void put(struct disk *d, unsigned keyslot, const char *url, const char *path)
{
	cleanup_attest_config struct attest_config c = list(url);
	cleanup_free char *header = NULL;

	c.path = xstrdup(path);
	header = attest_config_write_header(&c);
	put_header(d, keyslot, header);
}

static void look(const struct disk *d, struct attest_bindings *out)
{
	cleanup_strbuf struct strbuf json = STRBUF_INIT;
	struct err err = ERR_INIT;

	strbuf_adds(&json, "{\"keyslots\":{},\"tokens\":{");
	for (size_t i = 0, n = 0; i < ATTEST_LUKS2_MAX; i++)
		if (d->token[i])
			strbuf_addf(&json, "%s\"%zu\":%s", n++ ? "," : "", i, d->token[i]);
	strbuf_adds(&json, "}}");
	cr_assert_eq(attest_bindings_read(json.data, json.len, out, &err), 0, "%s", err.text);
}

/* What the disk opens with, as bits of key slots. */
static unsigned slots(const struct attest_bindings *b)
{
	unsigned bits = 0;

	for (size_t i = 0; i < b->n; i++)
		bits |= 1u << b->b[i].keyslot;
	return bits;
}

static void add(
	struct disk *d, const struct attest_binding *old, const struct attest_config *servers)
{
	const struct attest_config c = attest_rebind_config(old, servers);
	cleanup_free char *header = attest_config_write_header(&c);

	put_header(d, old->keyslot, header);
}

/* Runs until nothing is to be done; forgets what was proved after each `killed` steps (0: never). Every
 * slot keeps a token all the time. */
static void settle(struct disk *d, const struct attest_config *servers, unsigned killed)
{
	cleanup_free char *proved = NULL;

	for (unsigned step = 1; step < 200; step++) {
		struct attest_bindings seen;
		struct attest_rebind_step s;
		unsigned before;

		look(d, &seen);
		before = slots(&seen);
		s = attest_rebind_decide(&seen, servers, proved);
		if (s.act == ATTEST_REBIND_ADD) {
			add(d, s.old, servers);
		} else if (s.act == ATTEST_REBIND_PROVE) {
			free(proved);
			proved = xstrdup(s.new->jwe);
		} else if (s.act == ATTEST_REBIND_REMOVE) {
			cr_assert_eq(s.new->keyslot, s.old->keyslot);
			cr_assert_str_eq(s.new->jwe, proved);
			free(steal_ptr(&d->token[s.old->token]));
		}
		attest_bindings_fini(&seen);
		if (s.act == ATTEST_REBIND_NOTHING)
			return;
		look(d, &seen);
		cr_assert_eq(slots(&seen), before);
		attest_bindings_fini(&seen);
		if (killed && step % killed == 0 && s.act != ATTEST_REBIND_PROVE)
			free(steal_ptr(&proved));
	}
	cr_assert_fail("it does not settle");
}

/* What each disk begins with: key slot and URL of its tokens. */
static const struct {
	unsigned n;
	struct {
		unsigned slot;
		const char *url, *path;
	} t[4];
	unsigned left; /* tokens in the end */
} disks[] = {
	{1, {{1, "http://old", PATH}}, 1},
	{1, {{1, "http://new", PATH}}, 1},
	{2, {{1, "http://old", PATH}, {1, "http://new", PATH}}, 1},
	{2, {{1, "http://new", PATH}, {1, "http://old", PATH}}, 1},
	{3, {{1, "http://old", PATH}, {1, "http://between", PATH}, {2, "http://old", PATH}}, 2},
	{2, {{1, "http://old", PATH}, {2, "http://new", PATH}}, 2},
	{2, {{1, "http://old", "default/a/root"}, {1, "http://new", PATH}}, 2},
	{4,
		{{0, "http://a", PATH}, {1, "http://b", PATH}, {2, "http://c", PATH},
			{3, "http://d", PATH}},
		4},
};

Test(attest_luks2, every_disk_settles_with_the_new_servers)
{
	cleanup_attest_config struct attest_config servers = list("http://new");

	for (size_t i = 0; i < ARRAY_LEN(disks); i++) {
		for (unsigned killed = 0; killed < 4; killed++) {
			cleanup_disk struct disk d = {{NULL}};
			struct attest_bindings end;

			for (unsigned k = 0; k < disks[i].n; k++)
				put(&d, disks[i].t[k].slot, disks[i].t[k].url, disks[i].t[k].path);
			settle(&d, &servers, killed);
			look(&d, &end);
			cr_assert_eq(end.n, disks[i].left, "%zu: %zu", i, end.n);
			for (size_t k = 0; k < end.n; k++)
				cr_assert_str_eq(end.b[k].config.server[0].url, "http://new");
			attest_bindings_fini(&end);
		}
	}
}

Test(attest_luks2, what_is_not_ours_is_left_out)
{
	cleanup_disk struct disk d = {{NULL}};
	struct attest_bindings seen;

	put_header(&d, 1, TANG);
	d.token[1] = xstrdup("{\"type\":\"systemd-tpm2\",\"keyslots\":[\"1\",\"2\"]}");
	d.token[2] = xstrdup("{\"type\":\"clevis\",\"keyslots\":[\"1\"]}");
	d.token[3] = xstrdup(
		"{\"type\":\"clevis\",\"keyslots\":[\"1\"],\"jwe\":{\"protected\":\"e30\",\"iv\":1}}");
	d.token[4] = xstrdup("[]");
	put(&d, 7, "http://old", PATH);
	d.token[6] = xstrdup(d.token[5]);
	memcpy(strstr(d.token[6], "[\"7\"]"), "[]   ", 5); /* its key slot was removed */
	look(&d, &seen);
	cr_assert_eq(seen.n, 1);
	cr_assert_eq(seen.b[0].token, 5);
	cr_assert_eq(seen.b[0].keyslot, 7);
	cr_assert_str_eq(seen.b[0].config.path, PATH);
	attest_bindings_fini(&seen);
}

Test(attest_luks2, metadata_that_are_refused)
{
	cleanup_disk struct disk d = {{NULL}};
	cleanup_strbuf struct strbuf two = STRBUF_INIT, slot = STRBUF_INIT, number = STRBUF_INIT;
	char *at;

	put(&d, 7, "http://old", PATH);
	strbuf_addf(&number, "{\"tokens\":{\"32\":%s}}", d.token[0]);
	strbuf_addf(&slot, "{\"tokens\":{\"3\":%s}}", d.token[0]);
	strbuf_addf(&two, "{\"tokens\":{\"3\":{\"keyslots\":[\"1\",\"2\"],%s}}",
		strstr(d.token[0], "\"jwe\""));
	at = strstr(slot.data, "\"7\"");
	at[1] = 'x';
	at = strstr(two.data, "\"jwe\"");
	cr_assert(at);
	{
		cleanup_strbuf struct strbuf typed = STRBUF_INIT;
		const struct {
			const char *json, *words;
		} t[] = {
			{"", "metadata"},
			{"[", "metadata"},
			{"{\"tokens\":{}} x", "metadata"},
			{strbuf_str(&number), "with an invalid number"},
			{"{\"tokens\":{\"01\":{}}}", "with an invalid number"},
			{"{\"tokens\":{\"1\":{},\"1\":{}}}", "metadata"},
			{strbuf_str(&slot), "token 3: must belong to exactly one key slot"},
			{NULL, "token 3: must belong to exactly one key slot"},
		};

		strbuf_addf(&typed, "{\"tokens\":{\"3\":{\"type\":\"clevis\",%s",
			strstr(two.data, "\"keyslots\""));
		for (size_t i = 0; i < ARRAY_LEN(t); i++) {
			const char *json = t[i].json ? t[i].json : strbuf_str(&typed);
			struct attest_bindings seen;
			struct err err = ERR_INIT;

			cr_assert_eq(attest_bindings_read(json, strlen(json), &seen, &err), -1,
				"%s", json);
			cr_assert(strstr(err.text, t[i].words), "%s: %s", json, err.text);
			attest_bindings_fini(&seen);
		}
	}
}

/* Path, init-data and retries are the old token's, whatever the list says. */
Test(attest_luks2, only_the_servers_change)
{
	cleanup_attest_config struct attest_config servers = list("http://new");
	struct attest_binding old = {.config = {.path = (char[]){PATH},
					     .init_data = (char[]){"x"},
					     .limited = true,
					     .retries = 7}};
	struct attest_config c;

	servers.path = xstrdup("default/other/root");
	c = attest_rebind_config(&old, &servers);
	cr_assert_str_eq(c.path, PATH);
	cr_assert_str_eq(c.init_data, "x");
	cr_assert(c.limited && c.retries == 7);
	cr_assert_str_eq(c.server[0].url, "http://new");
}

static void make(const char *top, const char *name, const char *text)
{
	char path[256];
	FILE *f;

	snprintf(path, sizeof(path), "%s/%s", top, name);
	if (!text) {
		cr_assert_eq(mkdir(path, 0700), 0);
		return;
	}
	f = fopen(path, "w");
	cr_assert(f);
	fputs(text, f);
	fclose(f);
}

Test(attest_luks2, the_disks_under_open_mappings)
{
	char top[] = "/tmp/tec-luks2-XXXXXX", remove[64];
	char *out[ATTEST_LUKS2_DISKS_MAX];

	cr_assert(mkdtemp(top));
	cr_assert_eq(attest_luks2_opened("/nonexistent", out), 0);
	for (const char *const *d = (const char *const[]){"vda", "dm-0", "dm-0/dm", "dm-0/slaves",
		     "dm-1", "dm-1/dm", "dm-1/slaves", "dm-2", "dm-2/dm", NULL};
		*d; d++)
		make(top, *d, NULL);
	make(top, "dm-0/dm/uuid", "CRYPT-LUKS2-1234-root\n");
	make(top, "dm-0/slaves/cciss!c0d0p4", "");
	make(top, "dm-1/dm/uuid", "LVM-1234\n");
	make(top, "dm-1/slaves/vda1", "");
	make(top, "dm-2/dm/uuid", "CRYPT-LUKS2-9\n");
	cr_assert_eq(attest_luks2_opened(top, out), 1);
	cr_assert_str_eq(out[0], "/dev/cciss/c0d0p4");
	free(out[0]);
	snprintf(remove, sizeof(remove), "rm -r %s", top);
	cr_assert_eq(system(remove), 0);
}
