/* SPDX-License-Identifier: MIT */
/* The rules common to all stores. Keys that LocalFs could not use as a file name are refused before
 * any implementation sees them. */
#include "config.h"

#include "tec/broker/store.h"

#include <string.h>

#include "tec/base/secret.h"

#define SLASH_COST 4 /* LocalFs encodes it as "\x2F" */

/* The loop ends once the cost exceeds the limit, so a key of any length is checked in bounded
 * time. */
int broker_store_key_check(const char *key, struct err *err)
{
	size_t cost = 0;

	if (*key == '\0')
		return err_set(err, ERR_INVALID, "the key is empty");
	for (const char *c = key; *c && cost <= BROKER_STORE_KEY_MAX; c++) {
		/* Not isalnum(): the locale must not matter. */
		bool alnum = (*c >= 'a' && *c <= 'z') || (*c >= 'A' && *c <= 'Z') ||
			     (*c >= '0' && *c <= '9');

		if (!alnum && !strchr("._/-", *c))
			return err_set(err, ERR_INVALID,
				"a key may contain only letters, digits, '.', '_', '/' and '-'");
		cost += *c == '/' ? SLASH_COST : 1;
	}
	if (cost > BROKER_STORE_KEY_MAX)
		return err_set(err, ERR_INVALID, "the key is longer than %d bytes as a file name",
			BROKER_STORE_KEY_MAX);
	return 0;
}

/* Resources are limited to what a struct secret can hold. */
int broker_store_set(struct broker_store *s, enum broker_store_ns ns, const char *key,
	const void *data, size_t len, struct err *err)
{
	if (broker_store_key_check(key, err) < 0)
		return -1;
	if (ns == BROKER_STORE_REPOSITORY && len > SECRET_MAX_LEN)
		return err_set_http(err, ERR_INVALID, 413, "the resource is larger than %d bytes",
			SECRET_MAX_LEN);
	return s->ops->set(s, ns, key, data, len, err);
}

int broker_store_get(struct broker_store *s, enum broker_store_ns ns, const char *key,
	struct broker_store_value *out, struct err *err)
{
	return s->ops->get(s, ns, key, out, err);
}

int broker_store_remove(
	struct broker_store *s, enum broker_store_ns ns, const char *key, struct err *err)
{
	return s->ops->remove(s, ns, key, err);
}

/* Implementations may return keys in any order. */
int broker_store_list(struct broker_store *s, enum broker_store_ns ns, const char *prefix,
	broker_store_key_fn fn, void *arg, struct err *err)
{
	return s->ops->list(s, ns, prefix, fn, arg, err);
}

/* A store without settle is as durable as it gets. */
struct op *broker_store_settle(
	struct broker_store *s, struct op_scope *scope, broker_store_settled_fn fn, void *arg)
{
	return s->ops->settle ? s->ops->settle(s, scope, fn, arg) : NULL;
}

void broker_store_free(struct broker_store *s)
{
	if (s)
		s->ops->free(s);
}
