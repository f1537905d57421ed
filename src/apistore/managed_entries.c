/* SPDX-License-Identifier: MIT */
/* Reads the entries of managedFields from an object and writes them back in kube-apiserver's
 * order. */
#include "config.h"

#include <stdlib.h>

#include "tec/base/json.h"
#include "tec/base/mem.h"

#include "managed_internal.h"

static void entry_fini(struct managed_entry *e)
{
	free(e->manager);
	free(e->version);
	free(e->sub);
	free(e->time);
	apistore_fieldset_fini(&e->fields);
}

void managed_entries_fini(struct managed_entries *l)
{
	for (size_t i = 0; i < l->n; i++)
		entry_fini(&l->at[i]);
	free(l->at);
	*l = (struct managed_entries){NULL, 0};
}

/* Append an empty entry. The array may move, so pointers to other entries become invalid. */
struct managed_entry *managed_entries_add(struct managed_entries *l, const char *manager,
	const char *version, const char *sub, bool apply)
{
	ARRAY_GROW(l->at, l->n);
	l->at[l->n] = (struct managed_entry){.manager = xstrdup(manager),
		.version = xstrdup(version),
		.sub = xstrdup(sub),
		.apply = apply};
	return &l->at[l->n++];
}

/* Close the gaps in place, which moves later entries: pointers to them become invalid. */
void managed_entries_drop_empty(struct managed_entries *l)
{
	size_t n = 0;

	for (size_t i = 0; i < l->n; i++) {
		if (apistore_fieldset_is_empty(&l->at[i].fields))
			entry_fini(&l->at[i]);
		else
			l->at[n++] = l->at[i];
	}
	l->n = n;
}

struct managed_entry *managed_entries_find(
	const struct managed_entries *l, const struct apistore_manager *m, bool apply)
{
	for (size_t i = 0; i < l->n; i++) {
		struct managed_entry *e = &l->at[i];

		if (e->apply == apply && str_eq(e->manager, m->name) && str_eq(e->sub, m->sub) &&
			(apply || str_eq(e->version, m->version)))
			return e;
	}
	return NULL;
}

void managed_entry_set_time(struct managed_entry *e, const char *time)
{
	free(e->time);
	e->time = time ? xstrdup(time) : NULL;
}

/* ---- reading and writing */

/* Read one entry; a second one of the same manager replaces the first. The errors are
 * kube-apiserver's. */
static int read_entry(struct json_object *o, struct managed_entries *out, struct err *err)
{
	const char *op = json_get_str(o, "operation"), *version = json_get_str(o, "apiVersion"),
		   *manager = json_get_str(o, "manager"), *sub = json_get_str(o, "subresource"),
		   *time = json_get_str(o, "time");
	cleanup_json struct json_object *none = json_obj();
	struct json_object *fields = json_get(o, "fieldsV1");
	struct apistore_fieldset set;
	struct apistore_manager m = {manager ? manager : "", version, sub ? sub : "", NULL};
	struct managed_entry *e;

	if (out->n == MANAGED_ENTRIES_MAX)
		return err_set(
			err, ERR_INVALID, "more than %d field managers", MANAGED_ENTRIES_MAX);
	if (!str_eq(op, "Apply") && !str_eq(op, "Update"))
		return err_set(err, ERR_INVALID, "operation must be `Apply` or `Update`");
	if (!version || !*version)
		return err_set(err, ERR_INVALID, "apiVersion must not be empty");
	if (!str_eq(json_get_str(o, "fieldsType"), "FieldsV1"))
		return err_set(err, ERR_INVALID, "missing or invalid fieldsType");
	if (apistore_fieldset_read(fields ? fields : none, &set, err) < 0)
		return -1;
	e = managed_entries_find(out, &m, str_eq(op, "Apply"));
	if (!e)
		e = managed_entries_add(out, m.name, version, m.sub, str_eq(op, "Apply"));
	apistore_fieldset_become(&e->fields, set);
	managed_entry_set_time(e, time);
	return 0;
}

/* Read all entries, or none: an object with one malformed entry has no known owners. */
int managed_entries_read(struct json_object *o, struct managed_entries *out, struct err *err)
{
	struct json_object *a = json_get_arr(o, "metadata/managedFields");

	*out = (struct managed_entries){NULL, 0};
	for (size_t i = 0; i < json_len(a); i++)
		if (read_entry(json_at(a, i), out, err) < 0) {
			managed_entries_fini(out);
			return -1;
		}
	return 0;
}

/* Compare by operation, time, manager, version and subresource, so that the order is total and an
 * object without a change gets the same text again. */
int managed_entries_by_order(const void *a, const void *b)
{
	const struct managed_entry *x = a, *y = b;
	int c = (int)y->apply - (int)x->apply;

	if (!c)
		c = strcmp(x->time ? x->time : "", y->time ? y->time : "");
	if (!c)
		c = strcmp(x->manager, y->manager);
	if (!c)
		c = strcmp(x->version, y->version);
	return c ? c : strcmp(x->sub, y->sub);
}

/* Write one entry with its members in kube-apiserver's order; empty ones are omitted. */
static struct json_object *entry_json(const struct managed_entry *e)
{
	struct json_object *o =
		json_add_str(json_obj(), "manager", e->manager[0] ? e->manager : NULL);

	json_add_str(o, "operation", e->apply ? "Apply" : "Update");
	json_add_str(json_add_str(o, "apiVersion", e->version), "time", e->time);
	json_add_str(o, "fieldsType", "FieldsV1");
	json_add(o, "fieldsV1", apistore_fieldset_json(&e->fields));
	return json_add_str(o, "subresource", e->sub[0] ? e->sub : NULL);
}

/* No entries means no member managedFields at all, as after a reset by the client. */
void managed_entries_write(struct managed_entries *l, struct json_object *o)
{
	struct json_object *m = apistore_objects_meta(o), *a;

	json_drop(m, "managedFields");
	managed_entries_drop_empty(l);
	if (l->n == 0)
		return;
	qsort(l->at, l->n, sizeof(*l->at), managed_entries_by_order);
	a = json_arr();
	for (size_t i = 0; i < l->n; i++)
		json_push(a, entry_json(&l->at[i]));
	json_add(m, "managedFields", a);
}
