/* SPDX-License-Identifier: MIT */
/* Conflicts of an apply: the fields it would change that other managers own, and the Status that
 * lists them. */
#include "config.h"

#include <stdlib.h>

#include "tec/base/json.h"
#include "tec/base/mem.h"
#include "tec/schema/cause.h"

#include "managed_internal.h"

/* The entries are borrowed and stay; only the sets of fields are freed. */
void managed_conflicts_fini(struct managed_conflicts *c)
{
	for (size_t i = 0; i < c->n; i++)
		apistore_fieldset_fini(&c->at[i].fields);
	free(c->at);
	*c = (struct managed_conflicts){NULL, 0};
}

/* Sort by manager, as kube-apiserver lists conflicts. */
static int by_manager(const void *a, const void *b)
{
	const struct managed_entry *x = ((const struct managed_conflict *)a)->with,
				   *y = ((const struct managed_conflict *)b)->with;
	int c = strcmp(x->manager, y->manager);

	return c ? c : managed_entries_by_order(x, y);
}

/* A manager may own fields in several entries, one per version; each gives a conflict of its
 * own. */
struct managed_conflicts managed_conflicts_find(const struct managed_entries *l,
	const struct managed_entry *self, const struct apistore_fieldset *taken,
	const struct apistore_fieldset *allowed)
{
	struct managed_conflicts c = {NULL, 0};

	for (size_t i = 0; i < l->n; i++) {
		struct apistore_fieldset both;

		if (&l->at[i] == self)
			continue;
		both = apistore_fieldset_both(&l->at[i].fields, taken);
		if (allowed)
			apistore_fieldset_become(&both, apistore_fieldset_without(&both, allowed));
		if (apistore_fieldset_is_empty(&both))
			continue;
		ARRAY_GROW(c.at, c.n);
		c.at[c.n++] = (struct managed_conflict){&l->at[i], both};
	}
	if (c.n > 1)
		qsort(c.at, c.n, sizeof(*c.at), by_manager);
	return c;
}

/* The message and the causes while conflicts are listed. */
struct telling {
	const char *with; /* the manager whose fields come next; borrowed */
	struct strbuf text;
	struct json_object *causes; /* taken by the answer */
	size_t n;
};

/* Add one conflicting field to the causes and to the text. */
static void tell_path(void *arg, const char *path)
{
	struct telling *t = arg;
	cleanup_free char *message = xasprintf("conflict with %s", t->with);
	struct json_object *cause = json_add_str(json_obj(), "reason", "FieldManagerConflict");

	json_push(t->causes, json_add_str(json_add_str(cause, "message", message), "field", path));
	strbuf_addf(&t->text, "\n- %s", path);
	t->n++;
}

/* Describe a manager as kube-apiserver does; the caller frees the text. */
static char *who(const struct managed_entry *e)
{
	struct strbuf b = STRBUF_INIT;

	json_quote(&b, e->manager, strlen(e->manager));
	if (e->sub[0]) {
		strbuf_adds(&b, " with subresource ");
		json_quote(&b, e->sub, strlen(e->sub));
	}
	if (!e->apply)
		strbuf_addf(&b, " using %s", e->version);
	return strbuf_steal(&b);
}

/* A single conflict is described in one line, several in a list, as kube-apiserver does. */
struct apistore_answer managed_conflicts_refuse(const struct managed_conflicts *c)
{
	struct telling t = {NULL, STRBUF_INIT, json_arr(), 0};
	cleanup_free char *message = NULL;
	struct apistore_answer a;

	for (size_t i = 0; i < c->n; i++) {
		cleanup_free char *with = who(c->at[i].with);

		t.with = with;
		strbuf_addf(&t.text, "%sconflicts with %s:", i ? "\n" : "", with);
		apistore_fieldset_each(&c->at[i].fields, tell_path, &t);
	}
	if (t.n == 1) {
		struct json_object *one = json_at(t.causes, 0);

		message = xasprintf("Apply failed with 1 conflict: %s: %s",
			json_get_str(one, "message"), json_get_str(one, "field"));
	} else {
		message =
			xasprintf("Apply failed with %zu conflicts: %s", t.n, strbuf_str(&t.text));
	}
	strbuf_fini(&t.text);
	a = apistore_status_conflicts(message, t.causes);
	return a;
}
