/* SPDX-License-Identifier: MIT */
/* The rules common to all stores, and the store in memory: one hash table per namespace. Keys
 * that LocalFs could not use as a file name are refused before any implementation sees them. */
#include "config.h"

#include "tec/broker/store.h"

#include <stdint.h>
#include <string.h>

#include "tec/base/mem.h"
#include "tec/base/secret.h"
#include "tec/base/str.h"
#include "tec/base/table.h"

#define SLASH_COST 4 /* LocalFs encodes it as "\x2F" */

/* The names of Trustee's namespaces. */
static const char *const ns_names[BROKER_STORE_N] = {
	[BROKER_STORE_KBS] = "kbs",
	[BROKER_STORE_REPOSITORY] = "repository",
	[BROKER_STORE_REFERENCE_VALUE] = "reference_value",
	[BROKER_STORE_ATTESTATION_POLICY] = "attestation_service_policy",
};

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

/* A store without settle (in memory) is as durable as it gets. */
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

/* ---- in memory */

struct entry {
	struct table_link link;
	struct secret *secret; /* owned: a resource; NULL: it is empty */
	char *data;            /* owned: any other value */
	size_t len;
	char key[];
};

struct memory {
	struct broker_store base;
	struct table tables[BROKER_STORE_N];
};

/* Resources are wiped by secret_free(); other values are not secret. */
static void entry_forget(struct entry *e)
{
	secret_free(e->secret);
	free(e->data);
	e->secret = NULL;
	e->data = NULL;
	e->len = 0;
}

static struct entry *find(const struct table *t, const char *key)
{
	struct entry *e;

	TABLE_WITH_HASH (e, link, t, table_hash_str(key))
		if (strcmp(e->key, key) == 0)
			return e;
	return NULL;
}

/* A resource is copied into a struct secret: locked in memory and wiped when freed. */
static int memory_set(struct broker_store *s, enum broker_store_ns ns, const char *key,
	const void *data, size_t len, struct err *err)
{
	struct table *t = &((struct memory *)s)->tables[ns];
	struct entry *e = find(t, key);

	if (!e) {
		e = xcalloc(1, sizeof(*e) + strlen(key) + 1);
		strcpy(e->key, key);
		table_add(t, &e->link, table_hash_str(key));
	}
	/* Wipe the old value before the new one is stored. */
	entry_forget(e);
	/* An empty resource has no struct secret: data stays NULL and len 0. */
	if (ns != BROKER_STORE_REPOSITORY)
		e->data = xmemdup(data, len);
	else if (len > 0)
		e->secret = secret_new_copy(data, len);
	e->len = len;
	return 0;
}

static int no_such_key(enum broker_store_ns ns, struct err *err)
{
	return err_set(err, ERR_NOT_FOUND, "the key does not exist in %s", ns_names[ns]);
}

/* An empty value is "", never NULL, so that callers can copy it. */
static int memory_get(struct broker_store *s, enum broker_store_ns ns, const char *key,
	struct broker_store_value *out, struct err *err)
{
	const struct entry *e = find(&((struct memory *)s)->tables[ns], key);

	if (!e)
		return no_such_key(ns, err);
	out->data = e->secret ? (const void *)secret_peek(e->secret) : e->data ? e->data : "";
	out->len = e->len;
	return 0;
}

/* NOT_FOUND is reported: the caller decides whether that is an error. */
static int memory_remove(
	struct broker_store *s, enum broker_store_ns ns, const char *key, struct err *err)
{
	struct table *t = &((struct memory *)s)->tables[ns];
	struct entry *e = find(t, key);

	if (!e)
		return no_such_key(ns, err);
	table_remove(t, &e->link);
	entry_forget(e);
	free(e);
	return 0;
}

static int memory_list(struct broker_store *s, enum broker_store_ns ns, const char *prefix,
	broker_store_key_fn fn, void *arg, struct err *err)
{
	const struct entry *e;

	TABLE_EACH (e, link, &((struct memory *)s)->tables[ns])
		if (str_starts(e->key, prefix))
			fn(arg, e->key);
	return 0;
}

/* Wipes resources at shutdown, too. */
static void memory_free(struct broker_store *s)
{
	struct memory *m = (struct memory *)s;
	struct entry *e;

	for (size_t ns = 0; ns < BROKER_STORE_N; ns++) {
		TABLE_EACH (e, link, &m->tables[ns]) {
			table_remove(&m->tables[ns], &e->link);
			entry_forget(e);
			free(e);
		}
		table_fini(&m->tables[ns]);
	}
	free(m);
}

struct broker_store *broker_store_memory_new(void)
{
	static const struct broker_store_ops ops = {.set = memory_set,
		.get = memory_get,
		.remove = memory_remove,
		.list = memory_list,
		.free = memory_free};
	struct memory *m = xcalloc(1, sizeof(*m));

	m->base.ops = &ops;
	return &m->base;
}
