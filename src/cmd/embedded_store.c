/* SPDX-License-Identifier: MIT */
/* Maps the broker's namespaces to tables, and owns the value that was read last; the rest is in
 * apistore/rows. */
#include "config.h"

#include "embedded_store.h"

#include "tec/apistore/rows.h"
#include "tec/base/mem.h"
#include "tec/base/secret.h"

struct rows {
	struct broker_store base; /* first */
	struct apistore_objects *objects;
	void *last; /* owned, wiped: what rows_get() returned last */
	size_t last_len;
};

static const char *const tables[BROKER_STORE_N] = {
	[BROKER_STORE_KBS] = "broker/kbs",
	[BROKER_STORE_REPOSITORY] = "broker/repository",
	[BROKER_STORE_REFERENCE_VALUE] = "broker/reference_value",
	[BROKER_STORE_ATTESTATION_POLICY] = "broker/attestation_service_policy",
};

/* A value may be a disk key: wipe it before its memory is reused. */
static void forget_last(struct rows *r)
{
	if (r->last)
		secret_wipe(r->last, r->last_len);
	free(steal_ptr(&r->last));
}

static int rows_set(struct broker_store *s, enum broker_store_ns ns, const char *key,
	const void *data, size_t len, struct err *err)
{
	return apistore_rows_set(((struct rows *)s)->objects, tables[ns], key, data, len, err);
}

/* The value is borrowed until the next read, as broker/store.h allows. */
static int rows_get(struct broker_store *s, enum broker_store_ns ns, const char *key,
	struct broker_store_value *out, struct err *err)
{
	struct rows *r = (struct rows *)s;

	forget_last(r);
	if (apistore_rows_get(r->objects, tables[ns], key, &r->last, &r->last_len, err) < 0)
		return -1;
	*out = (struct broker_store_value){r->last, r->last_len};
	return 0;
}

static int rows_remove(
	struct broker_store *s, enum broker_store_ns ns, const char *key, struct err *err)
{
	return apistore_rows_remove(((struct rows *)s)->objects, tables[ns], key, err);
}

static int rows_list(struct broker_store *s, enum broker_store_ns ns, const char *prefix,
	broker_store_key_fn fn, void *arg, struct err *err)
{
	return apistore_rows_list(((struct rows *)s)->objects, tables[ns], prefix, fn, arg, err);
}

/* ---- durable writes */

struct settle {
	struct op op; /* first */
	struct apistore_wait wait;
	broker_store_settled_fn fn;
	void *arg;
};

static void settle_abort(struct op *op)
{
	struct settle *w = (struct settle *)op;

	apistore_wait_cancel(&w->wait);
	free(w);
}

/* The op ends before its callback, which may free its owner. */
static void on_stored(void *arg, const struct err *err)
{
	struct settle *w = arg;

	op_finish(&w->op);
	w->fn(w->arg, err);
	free(w);
}

/* Report when everything written so far is on disk: rows are committed once per turn of the
 * loop. */
static struct op *rows_settle(
	struct broker_store *s, struct op_scope *scope, broker_store_settled_fn fn, void *arg)
{
	struct settle *w = xcalloc(1, sizeof(*w));

	w->fn = fn;
	w->arg = arg;
	op_begin(&w->op, scope, settle_abort);
	apistore_objects_when_stored(((struct rows *)s)->objects, &w->wait, on_stored, w);
	return &w->op;
}

static void rows_free(struct broker_store *s)
{
	forget_last((struct rows *)s);
	free(s);
}

struct broker_store *embedded_store_new(struct apistore_objects *objects)
{
	static const struct broker_store_ops ops = {
		rows_set, rows_get, rows_remove, rows_list, rows_settle, rows_free};
	struct rows *r = xcalloc(1, sizeof(*r));

	r->base.ops = &ops;
	r->objects = objects;
	return &r->base;
}
