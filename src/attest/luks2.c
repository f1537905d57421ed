/* SPDX-License-Identifier: MIT */
/*
 * The passphrase stays the same because a new one would not improve protection: an old header and
 * the key in Trustee, which does not change either, still open the disk. It also means that an
 * interruption never leaves a key slot without a token.
 */
#include "config.h"

#include "tec/attest/luks2.h"

#include <assert.h>
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tec/base/file.h"
#include "tec/base/json.h"
#include "tec/base/mem.h"
#include "tec/jose/jwe.h"

static const struct json_limits limits = {
	.bytes = ATTEST_LUKS2_DUMP_MAX, .depth = 32, .tokens = 200000};

/* The parts of a compact JWE, in order. */
static const char *const parts[] = {"protected", "encrypted_key", "iv", "ciphertext", "tag"};

void attest_bindings_fini(struct attest_bindings *b)
{
	for (size_t i = 0; i < b->n; i++) {
		free(b->b[i].jwe);
		attest_config_fini(&b->b[i].config);
	}
	b->n = 0;
}

/* ---- reading */

/* Parse a number in canonical form only, so that "1" and "01" cannot name the same token. */
static int read_number(const char *text, unsigned *out)
{
	uint64_t v;

	if (!text || str_to_u64(text, ATTEST_LUKS2_MAX - 1, &v) < 0 || (text[0] == '0' && text[1]))
		return -1;
	*out = (unsigned)v;
	return 0;
}

/* Convert a flattened JWE to compact form. The caller frees it. NULL: a part is missing. */
static char *compact(struct json_object *jwe)
{
	cleanup_strbuf struct strbuf out = STRBUF_INIT;

	for (size_t i = 0; i < ARRAY_LEN(parts); i++) {
		const char *part = json_get_str(jwe, parts[i]);

		if (!part && !str_eq(parts[i], "encrypted_key")) /* empty with "dir" */
			return NULL;
		if (i > 0)
			strbuf_addc(&out, '.');
		strbuf_adds(&out, part ? part : "");
	}
	return strbuf_steal(&out);
}

/* Return 1 if the token belongs to the pin trustee, 0 if it does not, -1 if it is malformed. */
static int read_token(struct json_object *token, struct attest_binding *out, struct err *err)
{
	struct json_object *slots = json_get_arr(token, "keyslots");
	cleanup_free char *jwe = NULL;
	cleanup_json struct json_object *header = NULL;
	struct err other = ERR_INIT;

	if (!str_eq(json_get_str(token, "type"), "clevis") || json_len(slots) == 0)
		return 0;
	jwe = compact(json_get_obj(token, "jwe"));
	header = jwe ? jwe_dir_header(jwe, strlen(jwe), &other) : NULL;
	if (!str_eq(json_get_str(header, "clevis/pin"), "trustee"))
		return 0;
	if (json_len(slots) > 1 ||
		read_number(json_object_get_string(json_at(slots, 0)), &out->keyslot) < 0)
		return err_set(err, ERR_INVALID, "must belong to exactly one key slot");
	if (attest_config_read_header(header, &out->config, err) < 0) {
		attest_config_fini(&out->config);
		return -1;
	}
	out->jwe = steal_ptr(&jwe);
	return 1;
}

static int by_token(const void *a, const void *b)
{
	const struct attest_binding *x = a, *y = b;

	return (int)x->token - (int)y->token;
}

/* Tokens are sorted by number, so that decisions do not depend on the order of JSON members. */
int attest_bindings_read(const char *json, size_t len, struct attest_bindings *out, struct err *err)
{
	cleanup_json struct json_object *o = json_parse(json, len, &limits, err);

	memset(out, 0, sizeof(*out));
	if (!o)
		return err_wrap(err, "the LUKS2 metadata of the disk");
	json_each (json_get_obj(o, "tokens"), name, token) {
		struct attest_binding b = {.token = 0};
		int rc;

		if (read_number(name, &b.token) < 0)
			return err_set(
				err, ERR_INVALID, "the disk has a token with an invalid number");
		rc = read_token(token, &b, err);
		if (rc < 0)
			return err_wrap(err, "token %u", b.token);
		if (rc == 0)
			continue;
		assert(out->n < ATTEST_LUKS2_MAX); /* the reader refuses duplicate names */
		out->b[out->n++] = b;
	}
	qsort(out->b, out->n, sizeof(out->b[0]), by_token);
	return 0;
}

/* ---- deciding */

/* Compare lists in order: the order is the order in which a booting machine asks. */
static bool same_servers(const struct attest_config *a, const struct attest_config *b)
{
	bool same = a->n_servers == b->n_servers;

	for (size_t i = 0; same && i < a->n_servers; i++)
		same = str_eq(a->server[i].url, b->server[i].url) &&
		       str_eq(a->server[i].cert, b->server[i].cert);
	return same;
}

/* Decide on the first token with other servers: add its replacement, prove it, then remove the old
 * one. */
struct attest_rebind_step attest_rebind_decide(
	const struct attest_bindings *b, const struct attest_config *servers, const char *proved)
{
	struct attest_rebind_step s = {ATTEST_REBIND_NOTHING, NULL, NULL};

	for (size_t i = 0; i < b->n && !s.old; i++)
		if (!same_servers(&b->b[i].config, servers))
			s.old = &b->b[i];
	if (!s.old)
		return s;
	/* The new token is equal except for its servers. */
	for (size_t i = 0; i < b->n; i++) {
		const struct attest_config *c = &b->b[i].config, *old = &s.old->config;

		if (same_servers(c, servers) && b->b[i].keyslot == s.old->keyslot &&
			str_eq(c->path, old->path) && str_eq(c->init_data, old->init_data) &&
			c->limited == old->limited && c->retries == old->retries)
			s.new = &b->b[i];
	}
	s.act = !s.new                       ? ATTEST_REBIND_ADD
		: str_eq(s.new->jwe, proved) ? ATTEST_REBIND_REMOVE
					     : ATTEST_REBIND_PROVE;
	return s;
}

struct attest_config attest_rebind_config(
	const struct attest_binding *old, const struct attest_config *servers)
{
	struct attest_config c = *servers;

	c.path = old->config.path;
	c.init_data = old->config.init_data;
	c.limited = old->config.limited;
	c.retries = old->config.retries;
	return c;
}

/* ---- writing */

/* Split the compact JWE into the members that clevis expects. */
char *attest_binding_write(const char *jwe, unsigned keyslot)
{
	cleanup_json struct json_object *o = json_obj();
	struct json_object *flat = json_obj();
	char number[16];

	for (size_t i = 0; i < ARRAY_LEN(parts); i++) {
		size_t n = strcspn(jwe, ".");

		json_add(flat, parts[i], json_str_len(jwe, n));
		jwe += n + (jwe[n] != '\0');
	}
	snprintf(number, sizeof(number), "%u", keyslot);
	json_add_str(o, "type", "clevis");
	json_add(o, "keyslots", json_push_str(json_arr(), number));
	json_add(o, "jwe", flat);
	return json_text(o);
}

/* ---- disks */

/* Append the disks under a device-mapper device. Return the new number of entries. */
static size_t add_slaves(const char *mapping, size_t n, char *out[ATTEST_LUKS2_DISKS_MAX])
{
	cleanup_free char *path = xasprintf("%s/slaves", mapping);
	DIR *dir = opendir(path);

	for (const struct dirent *e; dir && (e = readdir(dir)) != NULL;) {
		if (e->d_name[0] == '.' || n == ATTEST_LUKS2_DISKS_MAX)
			continue;
		out[n] = xasprintf("/dev/%s", e->d_name);
		/* The kernel writes '!' for '/' in names, as in "cciss!c0d0". */
		for (char *p = out[n++]; (p = strchr(p, '!'));)
			*p = '/';
	}
	if (dir)
		closedir(dir);
	return n;
}

/* Device-mapper names LUKS2 mappings CRYPT-LUKS2-UUID-NAME in dm/uuid. */
size_t attest_luks2_opened(const char *blocks, char *out[ATTEST_LUKS2_DISKS_MAX])
{
	DIR *dir = opendir(blocks);
	size_t n = 0, len;

	for (const struct dirent *e; dir && (e = readdir(dir)) != NULL;) {
		cleanup_free char *path = xasprintf("%s/%s", blocks, e->d_name),
				  *file = xasprintf("%s/dm/uuid", path), *uuid = NULL;
		struct err none = ERR_INIT;

		if (str_starts(e->d_name, "dm-"))
			uuid = file_read(file, 4096, &len, NULL, &none);
		if (uuid && str_starts(uuid, "CRYPT-LUKS2-"))
			n = add_slaves(path, n, out);
	}
	if (dir)
		closedir(dir);
	return n;
}
