/* SPDX-License-Identifier: MIT */
/*
 * Validates objects as the API server of one process does, for tests/e2e: reads an array of
 * {"crd", "object", "old"} from standard input and writes an array of {"refused": why
 * the CRD is} or {"unknown", "causes", "warnings", "object"}; "object" may be left out.
 */
#include "config.h"

#include <stdio.h>

#include "tec/base/json.h"
#include "tec/schema/crd.h"

static const struct json_limits limits = {.bytes = 67108864, .depth = 128, .tokens = 10000000};

static struct json_object *texts_json(const struct schema_texts *t)
{
	struct json_object *a = json_arr();

	for (size_t i = 0; i < t->n; i++)
		json_push_str(a, t->text[i]);
	return a;
}

/* The CRD of the last case, as most cases share theirs. */
struct last {
	struct json_object *o;
	struct schema_crd *crd;
};

static struct json_object *read_crd(struct last *last, struct json_object *o)
{
	struct err err = ERR_INIT;

	if (last->o && json_object_equal(last->o, o))
		return NULL;
	schema_crd_free(last->crd);
	json_object_put(last->o);
	last->o = json_copy(o);
	last->crd = schema_crd_new(o, &err);
	return last->crd ? NULL : json_add_str(json_obj(), "refused", err.text);
}

static struct json_object *run(struct last *last, struct json_object *c)
{
	struct json_object *refused = read_crd(last, json_get_obj(c, "crd")),
			   *o = json_get_obj(c, "object"), *out = json_obj();
	cleanup_schema_causes struct schema_causes causes = {NULL, 0, 0};
	cleanup_schema_texts struct schema_texts unknown = {NULL, 0, 0}, warnings = {NULL, 0, 0};
	const struct schema_node *s;

	if (refused || !o || !last->crd) {
		json_object_put(out);
		return refused ? refused : json_obj();
	}
	s = last->crd->schema;
	schema_prune(s, o, &unknown);
	schema_validate(s, o, json_get_obj(c, "old"), false, &causes, &warnings);
	json_add(out, "unknown", texts_json(&unknown));
	json_add(out, "warnings", texts_json(&warnings));
	json_add(out, "causes", schema_causes_json(&causes));
	return json_add(out, "object", json_object_get(o));
}

int main(void)
{
	cleanup_strbuf struct strbuf text = STRBUF_INIT;
	cleanup_json struct json_object *cases = NULL, *out = json_arr();
	cleanup_free char *answer = NULL;
	struct last last = {NULL, NULL};
	struct err err = ERR_INIT;
	char chunk[65536];

	for (size_t n; (n = fread(chunk, 1, sizeof(chunk), stdin)) > 0;)
		strbuf_add(&text, chunk, n);
	cases = json_parse(strbuf_str(&text), text.len, &limits, &err);
	if (!cases) {
		fprintf(stderr, "%s\n", err.text);
		return 1;
	}
	for (size_t i = 0; i < json_object_array_length(cases); i++)
		json_push(out, run(&last, json_object_array_get_idx(cases, i)));
	answer = json_text(out);
	puts(answer);
	schema_crd_free(last.crd);
	json_object_put(last.o);
	return 0;
}
