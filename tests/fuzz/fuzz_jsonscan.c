/* SPDX-License-Identifier: MIT */
/*
 * What json_scan() lets pass, json-c takes too, with nothing left of it afterwards; and what json-c
 * writes of it passes again. json_parse() and yaml_parse() see the same bytes.
 */
#include "config.h"

#include <stdint.h>

#include "tec/base/json.h"
#include "tec/base/yaml.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* What json-c and we write of an accepted value is acceptable itself. */
static void check_text(struct json_object *o, const struct json_limits *limits)
{
	/* Escapes may become longer, never more or deeper values. */
	struct json_limits roomy = *limits;
	cleanup_free char *text = json_text(o);
	cleanup_strbuf struct strbuf canonical = STRBUF_INIT;
	struct err err = ERR_INIT;

	roomy.bytes = limits->bytes * 6 + 2;
	if (json_scan(text, strlen(text), &roomy, &err) < 0)
		DIE("json-c wrote what does not scan: %s", err.text);
	json_canonical(&canonical, o);
	if (json_scan(strbuf_str(&canonical), canonical.len, &roomy, &err) < 0)
		DIE("the canonical text does not scan: %s", err.text);
}

static void check_limits(const char *text, size_t len, const struct json_limits *limits)
{
	struct err err = ERR_INIT;
	struct json_tokener *tok;
	struct json_object *o, *copy;

	if (json_scan(text, len, limits, &err) < 0) {
		if (err.kind != ERR_INVALID)
			DIE("refused as %s", err_kind_name(err.kind));
		return;
	}
	/* The bytes and a NUL: json-c ends a number alone only there. */
	tok = json_tokener_new_ex((int)limits->depth);
	json_tokener_set_flags(tok, JSON_TOKENER_STRICT | JSON_TOKENER_VALIDATE_UTF8);
	o = json_tokener_parse_ex(tok, text, (int)len + 1);
	if (json_tokener_get_error(tok) != json_tokener_success)
		DIE("json-c refuses: %s", json_tokener_error_desc(json_tokener_get_error(tok)));
	json_tokener_free(tok);
	if (o) {
		check_text(o, limits);
		copy = json_copy(o);
		if (!json_object_equal(o, copy))
			DIE("a copy differs");
		if (json_object_put(copy) != 1 || json_object_put(o) != 1)
			DIE("an object is still referenced");
	}
	o = json_parse(text, len, limits, &err);
	if (!o && err.kind != ERR_INVALID)
		DIE("json_parse gave neither value nor error");
	if (o && json_object_put(o) != 1)
		DIE("a parsed object is still referenced");
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	cleanup_free char *text = xmemdup(data, size);
	struct err err = ERR_INIT;
	struct json_object *o;

	check_limits(text, size, &json_limits_public);
	check_limits(text, size, &json_limits_object);
	check_limits(text, size, &json_limits_api);
	o = yaml_parse(text, size, &err);
	if (!o != err_is_set(&err))
		DIE("yaml_parse gave neither value nor error");
	if (o && json_object_put(o) != 1)
		DIE("a YAML object is still referenced");
	return 0;
}
