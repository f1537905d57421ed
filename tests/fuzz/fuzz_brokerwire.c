/* SPDX-License-Identifier: MIT */
/*
 * The first byte picks a reader of the admin API, the rest is its body. What is taken keeps the
 * promises others rely on: a resource's path cannot leave its folder, a policy's id is a word, an
 * entry is JSON from which the value comes back as it was written.
 */
#include "config.h"

#include <stdint.h>

#include "tec/base/bytes.h"
#include "tec/base/mem.h"
#include "tec/base/utf8.h"
#include "tec/broker/store.h"
#include "tec/broker/wire.h"

#include "../fake/broker.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check_path(const char *path)
{
	struct err err = ERR_INIT;
	unsigned slashes = 0;

	if (broker_wire_resource_check(path, &err) < 0) {
		if (err.kind != ERR_INVALID)
			DIE("refused as %s", err_kind_name(err.kind));
		return;
	}
	for (const char *c = path; *c; c++)
		slashes += *c == '/';
	if (slashes != 2 || path[0] == '/' || path[0] == '.' || strstr(path, "//") ||
		strstr(path, "/.") || str_ends(path, "/") || strpbrk(path, "%?#\\ "))
		DIE("a path that leaves its folder");
	if (broker_store_key_check(path, &err) < 0 && strlen(path) <= BROKER_STORE_KEY_MAX - 6)
		DIE("a resource path that is not a key: %s", err.text);
}

static void check_policy(const char *body, size_t len, bool with_id)
{
	struct broker_wire_policy p = {NULL, NULL, 0};
	struct err err = ERR_INIT;

	if (broker_wire_policy_parse(body, len, with_id, &p, &err) < 0) {
		if (err.kind != ERR_INVALID || p.id || p.text)
			DIE("refused, but something is there");
		return;
	}
	if (p.len == 0 || !utf8_valid(p.text, p.len) || strlen(p.text) != p.len)
		DIE("a policy that is not text");
	if (with_id != (p.id != NULL) || (with_id && strspn(p.id, "/.") > 0))
		DIE("a policy id that is none");
	broker_wire_policy_fini(&p);
}

static int keep(void *arg, const char *name, const char *entry, size_t len, struct err *err)
{
	cleanup_strbuf struct strbuf value = STRBUF_INIT;
	struct err why = ERR_INIT;

	if (broker_wire_entry_value(entry, len, &value, &why) < 0)
		DIE("an entry does not read back: %s", why.text);
	if (value.len + 1 > len || memcmp(entry + len - 1 - value.len, value.data, value.len) != 0)
		DIE("a value does not read back");
	return broker_store_set(arg, BROKER_STORE_REFERENCE_VALUE, name, entry, len, err);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	cleanup_broker_store struct broker_store *store = NULL;
	cleanup_strbuf struct strbuf message = STRBUF_INIT;
	cleanup_free char *body = NULL;
	struct err err = ERR_INIT;
	size_t len;

	if (size == 0)
		return 0;
	len = size - 1;
	body = xmemdup(data + 1, len);
	store = broker_store_memory_new();
	switch (data[0]) {
	case 'r':
		check_path(body);
		break;
	case 'p':
		check_policy(body, len, false);
		break;
	case 'a':
		check_policy(body, len, true);
		break;
	case 'v': /* the payload alone: base64 would stop every mutation */
		strbuf_adds(&message, "{\"type\":\"sample\",\"payload\":\"");
		bytes_to_b64(&message, body, len);
		strbuf_adds(&message, "\"}");
		if (broker_wire_values(
			    message.data, message.len, (int64_t)size, keep, store, &err) < 0 &&
			err.kind != ERR_INVALID)
			DIE("refused as %s", err_kind_name(err.kind));
		break;
	default:
		if (broker_wire_values(body, len, 0, keep, store, &err) < 0 &&
			err.kind != ERR_INVALID)
			DIE("refused as %s", err_kind_name(err.kind));
	}
	return 0;
}
