/* SPDX-License-Identifier: MIT */
/*
 * A cell that lists several things, as labels and selectors do: parts are collected, then sorted by
 * key and joined with commas. Parts of one key stay in their order.
 */
#include "config.h"

#include "table_internal.h"

#include <stdlib.h>
#include <string.h>

#include "tec/base/json.h"
#include "tec/base/mem.h"

static int by_key(const void *a, const void *b)
{
	const struct table_part *x = a, *y = b;
	int c = strcmp(x->key, y->key);

	return c ? c : x->index < y->index ? -1 : 1;
}

void table_parts_add(struct table_parts *p, const char *key, char *take_text)
{
	ARRAY_GROW(p->part, p->n);
	p->part[p->n] = (struct table_part){xstrdup(key), take_text, p->n};
	p->n++;
}

char *table_parts_join(struct table_parts *p, const char *none)
{
	struct strbuf b = STRBUF_INIT;

	if (p->n)
		qsort(p->part, p->n, sizeof(*p->part), by_key);
	for (size_t i = 0; i < p->n; i++) {
		strbuf_addf(&b, "%s%s", i ? "," : "", p->part[i].text);
		free(p->part[i].text);
		free(p->part[i].key);
	}
	free(p->part);
	if (!b.len)
		strbuf_adds(&b, none);
	return strbuf_steal(&b);
}

void table_parts_add_labels(struct table_parts *p, struct json_object *labels)
{
	if (!labels)
		return;
	json_object_object_foreach (labels, name, v)
		table_parts_add(
			p, name, xasprintf("%s=%s", name, v ? json_object_get_string(v) : ""));
}

static void add_expression(struct table_parts *p, struct json_object *e)
{
	const char *key = json_get_str(e, "key"), *op = json_get_str(e, "operator");
	struct table_parts values = {NULL, 0};
	struct json_object *a = json_get_arr(e, "values");
	cleanup_free char *list = NULL;

	for (size_t i = 0; i < table_length(a); i++) {
		const char *s = json_object_get_string(json_object_array_get_idx(a, i));

		table_parts_add(&values, s ? s : "", xstrdup(s ? s : ""));
	}
	list = table_parts_join(&values, "");
	if (!key || !op)
		return;
	if (str_eq(op, "In"))
		table_parts_add(p, key, xasprintf("%s in (%s)", key, list));
	else if (str_eq(op, "NotIn"))
		table_parts_add(p, key, xasprintf("%s notin (%s)", key, list));
	else
		table_parts_add(
			p, key, xasprintf("%s%s", str_eq(op, "DoesNotExist") ? "!" : "", key));
}

void table_parts_selector(struct table_row *r, const char *path)
{
	struct json_object *s = json_get_obj(r->o, path), *a = json_get_arr(s, "matchExpressions");
	struct table_parts p = {NULL, 0};

	table_parts_add_labels(&p, json_get_obj(s, "matchLabels"));
	for (size_t i = 0; i < table_length(a); i++)
		add_expression(&p, json_object_array_get_idx(a, i));
	table_take(r, table_parts_join(&p, "<none>"));
}
