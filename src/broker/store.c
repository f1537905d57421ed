/* SPDX-License-Identifier: MIT */
/*
 * The rules every store has in common, and the one in memory: a hash table per namespace that
 * doubles when it is full, so a call costs the same at 10 entries and at 100,000. Refuses keys that
 * LocalFs could not name a file after, before any maker sees them.
 */
#include "config.h"

#include "tec/broker/store.h"

#include <stdint.h>
#include <string.h>

#include "tec/base/mem.h"
#include "tec/base/secret.h"
#include "tec/base/str.h"

#define BUCKETS_MIN 64
#define SLASH_COST  4 /* LocalFs writes "\x2F" */

static const char *const ns_names[BROKER_STORE_N] = {
	[BROKER_STORE_KBS] = "kbs",
	[BROKER_STORE_REPOSITORY] = "repository",
	[BROKER_STORE_REFERENCE_VALUE] = "reference_value",
	[BROKER_STORE_ATTESTATION_POLICY] = "attestation_service_policy",
};

const char *broker_store_ns_name(enum broker_store_ns ns)
{
	return ns_names[ns];
}

int broker_store_key_check(const char *key, struct err *err)
{
	size_t cost = 0;

	if (*key == '\0')
		return err_set(err, ERR_INVALID, "an empty key");
	for (const char *c = key; *c && cost <= BROKER_STORE_KEY_MAX; c++) {
		bool alnum = (*c >= 'a' && *c <= 'z') || (*c >= 'A' && *c <= 'Z') ||
			     (*c >= '0' && *c <= '9');

		if (!alnum && !strchr("._/-", *c))
			return err_set(err, ERR_INVALID,
				"a key may hold letters, digits, '.', '_', '/' and '-' only");
		cost += *c == '/' ? SLASH_COST : 1;
	}
	if (cost > BROKER_STORE_KEY_MAX)
		return err_set(err, ERR_INVALID, "a key longer than %d bytes as a file name",
			BROKER_STORE_KEY_MAX);
	return 0;
}

int broker_store_set(struct broker_store *s, enum broker_store_ns ns, const char *key,
	const void *data, size_t len, struct err *err)
{
	if (broker_store_key_check(key, err) < 0)
		return -1;
	if (ns == BROKER_STORE_REPOSITORY && len > SECRET_MAX_LEN)
		return err_set_http(
			err, ERR_INVALID, 413, "a resource larger than %d bytes", SECRET_MAX_LEN);
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

int broker_store_list(struct broker_store *s, enum broker_store_ns ns, broker_store_key_fn fn,
	void *arg, struct err *err)
{
	return s->ops->list(s, ns, fn, arg, err);
}

void broker_store_free(struct broker_store *s)
{
	if (s)
		s->ops->free(s);
}

/* ---- in memory */

struct entry {
	struct entry *next;
	uint64_t hash;
	struct secret *secret; /* owned: a resource; NULL: it is empty */
	char *data;            /* owned: any other value */
	size_t len;
	char key[];
};

struct table {
	struct entry **buckets; /* owned; a power of two, NULL while empty */
	size_t n_buckets, n;
};

struct memory {
	struct broker_store base;
	struct table tables[BROKER_STORE_N];
};

static void entry_forget(struct entry *e)
{
	secret_free(e->secret);
	free(e->data);
	e->secret = NULL;
	e->data = NULL;
	e->len = 0;
}

/* Where a pointer to the entry is, or would be put. */
static struct entry **find(const struct table *t, uint64_t hash, const char *key)
{
	struct entry **pp = &t->buckets[hash & (t->n_buckets - 1)];

	while (*pp && ((*pp)->hash != hash || strcmp((*pp)->key, key) != 0))
		pp = &(*pp)->next;
	return pp;
}

static void grow(struct table *t)
{
	size_t n = t->n_buckets ? t->n_buckets * 2 : BUCKETS_MIN;
	struct entry **buckets = xcalloc(n, sizeof(*buckets));

	for (size_t i = 0; i < t->n_buckets; i++) {
		struct entry *e = t->buckets[i];

		while (e) {
			struct entry *next = e->next;

			e->next = buckets[e->hash & (n - 1)];
			buckets[e->hash & (n - 1)] = e;
			e = next;
		}
	}
	free(t->buckets);
	t->buckets = buckets;
	t->n_buckets = n;
}

static int memory_set(struct broker_store *s, enum broker_store_ns ns, const char *key,
	const void *data, size_t len, struct err *err)
{
	struct table *t = &((struct memory *)s)->tables[ns];
	uint64_t hash = str_hash(key, strlen(key));
	struct entry **pp, *e;

	if (t->n == t->n_buckets)
		grow(t);
	pp = find(t, hash, key);
	e = *pp;
	if (!e) {
		e = xcalloc(1, sizeof(*e) + strlen(key) + 1);
		strcpy(e->key, key);
		e->hash = hash;
		*pp = e;
		t->n++;
	}
	entry_forget(e);
	if (ns != BROKER_STORE_REPOSITORY)
		e->data = xmemdup(data, len);
	else if (len > 0)
		e->secret = secret_new_copy(data, len);
	e->len = len;
	return 0;
}

static int no_such_key(enum broker_store_ns ns, struct err *err)
{
	return err_set(err, ERR_NOT_FOUND, "no such key in %s", ns_names[ns]);
}

static int memory_get(struct broker_store *s, enum broker_store_ns ns, const char *key,
	struct broker_store_value *out, struct err *err)
{
	const struct table *t = &((struct memory *)s)->tables[ns];
	const struct entry *e = t->n ? *find(t, str_hash(key, strlen(key)), key) : NULL;

	if (!e)
		return no_such_key(ns, err);
	out->data = e->secret ? (const void *)secret_peek(e->secret) : e->data ? e->data : "";
	out->len = e->len;
	return 0;
}

static int memory_remove(
	struct broker_store *s, enum broker_store_ns ns, const char *key, struct err *err)
{
	struct table *t = &((struct memory *)s)->tables[ns];
	struct entry **pp = t->n ? find(t, str_hash(key, strlen(key)), key) : NULL;
	struct entry *e = pp ? *pp : NULL;

	if (!e)
		return no_such_key(ns, err);
	*pp = e->next;
	t->n--;
	entry_forget(e);
	free(e);
	return 0;
}

static int memory_list(struct broker_store *s, enum broker_store_ns ns, broker_store_key_fn fn,
	void *arg, struct err *err)
{
	const struct table *t = &((struct memory *)s)->tables[ns];

	for (size_t i = 0; i < t->n_buckets; i++)
		for (const struct entry *e = t->buckets[i]; e; e = e->next)
			fn(arg, e->key);
	return 0;
}

static void memory_free(struct broker_store *s)
{
	struct memory *m = (struct memory *)s;

	for (size_t ns = 0; ns < BROKER_STORE_N; ns++) {
		struct table *t = &m->tables[ns];

		for (size_t i = 0; i < t->n_buckets; i++) {
			struct entry *e = t->buckets[i];

			while (e) {
				struct entry *next = e->next;

				entry_forget(e);
				free(e);
				e = next;
			}
		}
		free(t->buckets);
	}
	free(m);
}

struct broker_store *broker_store_memory_new(void)
{
	static const struct broker_store_ops ops = {
		memory_set, memory_get, memory_remove, memory_list, memory_free};
	struct memory *m = xcalloc(1, sizeof(*m));

	m->base.ops = &ops;
	return &m->base;
}
