/* SPDX-License-Identifier: MIT */
/*
 * An Accept header, to a newline, then an object. Ranges come to an end and are bounded; a form that
 * is not served is none; what shows an object that is JSON is JSON.
 */
#include "config.h"

#include <stdint.h>

#include "tec/apireq/representation.h"
#include "tec/apihttp/negotiation.h"
#include "tec/base/json.h"
#include "tec/base/mem.h"
#include "tec/schema/builtin.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static const struct json_limits limits = {1u << 16, 64, 4000, true};
static const struct json_limits shown_limits = {16u << 20, 256, 1u << 22, true};

static void check_ranges(const char *accept)
{
	size_t n = 0, max = 1;
	struct apihttp_media m;
	const char *p = accept;

	for (const char *c = accept; *c; c++)
		max += *c == ',';
	while (apihttp_negotiation_next(&p, &m))
		if (++n > max || !m.type[0] || strlen(m.type) >= sizeof(m.type))
			DIE("a range that is none");
	if (p != accept + strlen(accept))
		DIE("the header was not read to its end");
}

static void check_shown(const struct apireq_representation *f, const struct schema_kind *k,
	const char *text, size_t len, bool one)
{
	cleanup_json struct json_object *o = NULL;
	struct body out = BODY_INIT;
	struct err err = ERR_INIT;

	if (!apireq_representation_add(f, k,
		    one ? APIREQ_REPRESENTATION_FIRST : APIREQ_REPRESENTATION_ITEM, "", text, len,
		    &out))
		body_add(&out, text, len, 0);
	o = json_parse(out.data, out.len, &shown_limits, &err);
	if (!o)
		DIE("what is shown is not JSON: %s", err.text);
	body_fini(&out);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	cleanup_free char *text = xmemdup(data, size);
	char *object = strchr(text, '\n');
	cleanup_json struct json_object *o = NULL;
	struct apireq_representation f;
	struct err err = ERR_INIT;

	if (object)
		*object++ = '\0';
	check_ranges(text);
	if (!apihttp_negotiation_choose(text, &f) && f.shape != APIREQ_SHAPE_OBJECT)
		DIE("a form that is not served");
	o = object ? json_parse(object, strlen(object), &limits, &err) : NULL;
	if (!json_object_is_type(o, json_type_object))
		return 0;
	for (size_t i = 0; i < schema_builtin_count(); i++) {
		const struct schema_kind *k = schema_builtin_at(i);

		if (!(k->verbs & SCHEMA_VERB_GET)) /* a question, which has no table */
			continue;
		for (enum apireq_shape s = APIREQ_SHAPE_OBJECT; s <= APIREQ_SHAPE_METADATA; s++) {
			f.shape = s;
			check_shown(&f, k, object, strlen(object), true);
			if (s != APIREQ_SHAPE_OBJECT)
				check_shown(&f, k, object, strlen(object), false);
		}
	}
	return 0;
}
