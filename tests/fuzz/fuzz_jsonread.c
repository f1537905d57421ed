/* SPDX-License-Identifier: MIT */
/*
 * What json_parse() accepts, json-c's own parser reads the same, with nothing left of it
 * afterwards; and what json-c writes of it is accepted again. yaml_parse() sees the same bytes.
 */
#include "config.h"

#include <stdint.h>

#include "tec/base/json.h"
#include "tec/base/yaml.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void must_parse(const char *text, size_t len, const struct json_limits *limits)
{
	struct err err = ERR_INIT;
	struct json_object *o = json_parse(text, len, limits, &err);

	if (!o)
		DIE("what was written cannot be read: %s", err.text);
	json_object_put(o);
}

/* What json-c and we write of an accepted value is acceptable itself. */
static void check_text(struct json_object *o, const struct json_limits *limits)
{
	/* Escapes may become longer, never more or deeper values. */
	struct json_limits roomy = *limits;
	cleanup_free char *text = json_text(o);
	cleanup_strbuf struct strbuf canonical = STRBUF_INIT;

	roomy.bytes = limits->bytes * 6 + 2;
	must_parse(text, strlen(text), &roomy);
	json_canonical(&canonical, o);
	must_parse(strbuf_str(&canonical), canonical.len, &roomy);
}

/*
 * json-c 0.16 takes what a surrogate pair decodes to for a surrogate itself, and writes U+FFFD, when its low 16 bits look like
 * one: U+1D800 to U+1DFFF, and the same places of higher planes. tests/base has such a text.
 */
static bool json_c_misreads(const char *text, size_t len)
{
	for (size_t i = 0; i + 5 < len; i++)
		if (text[i] == '\\' && text[i + 1] == 'u' && (text[i + 2] | 0x20) == 'd' &&
			memchr("89abAB", text[i + 3], 6) && memchr("37bBfF", text[i + 4], 6) &&
			(text[i + 5] == '6' || text[i + 5] == '7'))
			return true;
	return false;
}

/* json-c's parser makes the same of the text. */
static void check_same(const char *text, size_t len, unsigned depth, struct json_object *o)
{
	/* The bytes and a NUL: json-c ends a number alone only there. */
	struct json_tokener *tok = json_tokener_new_ex((int)depth);
	cleanup_json struct json_object *theirs = NULL;
	cleanup_free char *a = json_text(o), *b = NULL;

	json_tokener_set_flags(tok, JSON_TOKENER_STRICT | JSON_TOKENER_VALIDATE_UTF8);
	theirs = json_tokener_parse_ex(tok, text, (int)len + 1);
	if (json_tokener_get_error(tok) != json_tokener_success)
		DIE("json-c refuses: %s", json_tokener_error_desc(json_tokener_get_error(tok)));
	json_tokener_free(tok);
	b = json_text(theirs);
	if (!json_object_equal(o, theirs) || strcmp(a, b) != 0)
		DIE("json-c reads it as something else");
}

static void check_limits(const char *text, size_t len, const struct json_limits *limits)
{
	struct err err = ERR_INIT;
	struct json_object *o = json_parse(text, len, limits, &err), *copy;

	if (!o != err_is_set(&err) || (!o && err.kind != ERR_INVALID))
		DIE("json_parse gave neither a value nor an error");
	if (!o)
		return;
	if (!json_c_misreads(text, len))
		check_same(text, len, limits->depth, o);
	check_text(o, limits);
	copy = json_copy(o);
	if (!json_object_equal(o, copy))
		DIE("a copy differs");
	if (json_object_put(copy) != 1 || json_object_put(o) != 1)
		DIE("an object is still referenced");
}

static void count(void *arg, const char *path)
{
	if (!path)
		DIE("a duplicate without a place");
	++*(size_t *)arg;
}

/* What has no name twice is read the same; what has is read without them. */
static void check_last(const char *text, size_t len)
{
	struct err err = ERR_INIT, strict = ERR_INIT;
	size_t n = 0;
	struct json_object *o = json_parse_last(text, len, &json_limits_object, count, &n, &err);
	struct json_object *same = json_parse(text, len, &json_limits_object, &strict);

	if (o && (n > 0) != !same)
		DIE("names that are there twice, or not");
	if (!o && same)
		DIE("what is accepted is refused");
	if (o && same && !json_object_equal(o, same))
		DIE("two readings differ");
	if (o)
		check_text(o, &json_limits_object);
	if ((o && json_object_put(o) != 1) || (same && json_object_put(same) != 1))
		DIE("an object is still referenced");
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	cleanup_free char *text = xmemdup(data, size);
	struct err err = ERR_INIT;
	struct json_object *o;

	check_limits(text, size, &json_limits_public);
	check_limits(text, size, &json_limits_object);
	check_limits(text, size, &json_limits_api);
	check_last(text, size);
	o = yaml_parse(text, size, &err);
	if (!o != err_is_set(&err))
		DIE("yaml_parse gave neither value nor error");
	if (o && json_object_put(o) != 1)
		DIE("a YAML object is still referenced");
	return 0;
}
