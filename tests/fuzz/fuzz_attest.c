/* SPDX-License-Identifier: MIT */
/*
 * What a node reads. The first byte chooses: 'C' the pin's configuration, 'H' a protected header, 'I' a
 * JSON object for init-data, 'K' a disk key's resource, 'D' a compact JWE, 'F' a flattened one, 'N' and
 * 'T' a server's answers to auth and attest, 'E' a refusal, 'S' a list of servers, 'L' the metadata of a
 * LUKS2 disk, 'Q' a query and a Host of the local endpoint. What a configuration says survives being
 * written into a header and read again.
 */
#include "config.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "tec/attest/cdh.h"
#include "tec/attest/flow.h"
#include "tec/attest/luks2.h"
#include "tec/attest/pin.h"
#include "tec/base/json.h"
#include "tec/base/mem.h"
#include "tec/rats/initdata.h"

#define MAX 65536

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static const struct json_limits limits = {.bytes = 1u << 20, .depth = 32, .tokens = 100000};

static void same(const struct attest_config *a, const struct attest_config *b)
{
	assert(a->n_servers == b->n_servers && str_eq(a->path, b->path));
	assert(a->limited == b->limited && a->retries == b->retries);
	assert(str_eq(a->init_data, b->init_data));
	for (size_t i = 0; i < a->n_servers; i++)
		assert(str_eq(a->server[i].url, b->server[i].url) &&
			str_eq(a->server[i].cert, b->server[i].cert));
}

static void again(const struct attest_config *c)
{
	cleanup_attest_config struct attest_config back;
	cleanup_free char *header = attest_config_write_header(c);
	cleanup_json struct json_object *o = NULL;
	struct err err = ERR_INIT;

	assert(attest_path_valid(c->path));
	o = json_parse(header, strlen(header), &limits, &err);
	assert(o);
	if (attest_config_read_header(o, &back, &err) < 0)
		assert(!"a header that was written is refused");
	same(c, &back);
}

static void config(const char *text, size_t len, bool is_header)
{
	cleanup_attest_config struct attest_config c = {.n_servers = 0};
	cleanup_json struct json_object *o = NULL;
	struct err err = ERR_INIT, ignored = ERR_INIT;
	int rc;

	if (is_header) {
		o = json_parse(text, len, &limits, &ignored);
		rc = o ? attest_config_read_header(o, &c, &err) : -1;
	} else {
		rc = attest_config_read(text, len, &c, &err);
	}
	if (rc == 0)
		again(&c);
	else
		assert(!err_is_set(&err) || err.kind == ERR_INVALID);
}

static void servers(const char *text, size_t len)
{
	cleanup_attest_config struct attest_config c = {.n_servers = 0};
	struct err err = ERR_INIT;

	if (attest_config_read_servers(text, len, &c, &err) < 0) {
		assert(err.kind == ERR_INVALID);
		return;
	}
	assert(!c.path && !c.init_data && !c.limited && !c.registration.url && !c.uuid);
	c.path = xstrdup("default/a/root");
	again(&c);
}

/* Whatever a disk says, a token that is removed has a proved one in the same key slot beside it. */
static void luks2(const char *text, size_t len)
{
	static const char list[] = "{\"servers\":[{\"url\":\"http://new\"}]}";
	cleanup_attest_config struct attest_config c = {.n_servers = 0};
	struct attest_bindings b;
	struct err err = ERR_INIT;
	struct attest_rebind_step s;

	if (attest_config_read_servers(list, strlen(list), &c, &err) < 0)
		assert(!"the list is refused");
	if (attest_bindings_read(text, len, &b, &err) < 0) {
		assert(err.kind == ERR_INVALID);
	} else {
		s = attest_rebind_decide(&b, &c, b.n ? b.b[b.n - 1].jwe : NULL);
		assert(s.act != ATTEST_REBIND_REMOVE ||
			(s.new != s.old &&s.new->keyslot ==
					s.old->keyslot &&str_eq(s.new->jwe, b.b[b.n - 1].jwe) &&
				str_eq(s.new->config.path, s.old->config.path)));
	}
	attest_bindings_fini(&b);
}

static void init_data(const char *text, size_t len)
{
	struct err err = ERR_INIT;
	cleanup_free char *toml = attest_init_data(text, len, &err);

	assert((toml != NULL) != err_is_set(&err));
	if (toml && rats_initdata_check(toml, strlen(toml), &err) < 0)
		assert(!"init-data that was made is refused");
}

static void jwe(const char *text, size_t len, bool compact)
{
	static struct jwe_own *own;
	cleanup_secret struct secret *key = secret_new(32);
	cleanup_json struct json_object *header = NULL;
	struct body out = BODY_INIT;
	struct err err = ERR_INIT, other = ERR_INIT;
	int rc;

	if (!own)
		own = jwe_own_new();
	rc = compact ? jwe_dir_open(key, text, len, &out, &err)
		     : jwe_open(own, text, len, &out, &err);
	assert((rc < 0) == err_is_set(&err) && (rc == 0 || out.len == 0));
	if (compact)
		header = jwe_dir_header(text, len, &other);
	assert(!compact || rc < 0 || header);
	body_fini(&out);
}

static void answers(char kind, const char *text, size_t len)
{
	struct err err = ERR_INIT;

	if (kind == 'N') {
		cleanup_free char *nonce = attest_flow_read_nonce(text, len, &err);

		assert((nonce != NULL) != err_is_set(&err));
	} else if (kind == 'T') {
		struct attest_token *t = attest_flow_read_token(text, len, &err);

		assert((t != NULL) != err_is_set(&err));
		assert(!t || !strpbrk((const char *)secret_peek(t->text), "\r\n "));
		attest_token_free(t);
	} else {
		enum attest_fault f = attest_flow_judge(401, text, len, "resource", &err);

		assert((f == ATTEST_REFUSED || f == ATTEST_SERVER) && err_is_set(&err));
		for (const char *p = err.text; *p; p++)
			assert((unsigned char)*p >= ' ');
	}
}

static void query(const char *text, size_t len)
{
	cleanup_free char *s = xstrndup(text, len);
	size_t n = 0;
	cleanup_free char *v = attest_cdh_param(s, "runtime_data", &n);

	assert(!v || n <= len);
	if (attest_cdh_host_ok(s))
		assert(strlen(s) <= strlen("127.0.0.1:65535"));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct err err = ERR_INIT;

	if (size < 2 || size > MAX)
		return 0;
	cleanup_free char *text = xmemdup(data + 1, size - 1); /* its end is the end */
	switch (data[0]) {
	case 'C':
	case 'H':
		config(text, size - 1, data[0] == 'H');
		break;
	case 'S':
		servers(text, size - 1);
		break;
	case 'L':
		luks2(text, size - 1);
		break;
	case 'I':
		init_data(text, size - 1);
		break;
	case 'K':
		secret_free(attest_pin_key(text, size - 1, &err));
		break;
	case 'D':
	case 'F':
		jwe(text, size - 1, data[0] == 'D');
		break;
	case 'N':
	case 'T':
	case 'E':
		answers((char)data[0], text, size - 1);
		break;
	default:
		query(text, size - 1);
	}
	return 0;
}
