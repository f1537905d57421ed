/* SPDX-License-Identifier: MIT */
/* Shared by the tests of schema. */
#ifndef SCHEMA_TESTING_H
#define SCHEMA_TESTING_H

#include <criterion/criterion.h>
#include <stdio.h>

#include "tec/base/json.h"
#include "tec/base/yaml.h"
#include "tec/schema/crd.h"

static inline struct json_object *parse(const char *text)
{
	struct err err = ERR_INIT;
	struct json_object *o = yaml_parse(text, strlen(text), &err);

	cr_assert(o, "%s: %s", err.text, text);
	return o;
}

/* A file of the tree. */
static inline struct json_object *load(const char *file)
{
	const char *top = getenv("TOP_SRCDIR");
	cleanup_free char *path = xasprintf("%s/%s", top ? top : ".", file);
	cleanup_strbuf struct strbuf text = STRBUF_INIT;
	char chunk[4096];
	FILE *f = fopen(path, "r");
	size_t n;

	cr_assert(f, "cannot open %s", path);
	while ((n = fread(chunk, 1, sizeof(chunk), f)) > 0)
		strbuf_add(&text, chunk, n);
	fclose(f);
	strbuf_addc(&text, '\n');
	return parse(text.data);
}

static inline struct schema_crd *load_crd(const char *file)
{
	cleanup_json struct json_object *o = load(file);
	struct err err = ERR_INIT;
	struct schema_crd *c = schema_crd_new(o, &err);

	cr_assert(c, "%s: %s", file, err.text);
	return c;
}

static inline struct schema_node *node_of(const char *schema)
{
	cleanup_json struct json_object *o = parse(schema);
	struct err err = ERR_INIT;
	struct schema_node *n = schema_structural_new(o, &err);

	cr_assert(n, "%s: %s", schema, err.text);
	return n;
}

/* Every cause on a line: "FIELD: MESSAGE". */
static inline char *lines(const struct schema_causes *c)
{
	struct strbuf b = STRBUF_INIT;

	for (size_t i = 0; i < c->n; i++)
		strbuf_addf(&b, "%s%s: %s", i ? "\n" : "", c->cause[i].field, c->cause[i].message);
	return strbuf_steal(&b);
}

#endif
