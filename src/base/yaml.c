/* SPDX-License-Identifier: MIT */
/*
 * Build json-c values from libyaml's events, by recursion of at most 32 levels. Every alias is refused:
 * a kubeconfig needs none, and aliases can expand a small file to gigabytes. Errors give line and
 * column but never quote the text, which may be a token. Text that starts with '{' is tried as JSON
 * first, because libyaml does not support surrogate pairs.
 *
 * A document arrives as these events, with one nested start/end pair per mapping and sequence:
 *   STREAM-START DOCUMENT-START (SCALAR | SEQUENCE-START ... | MAPPING-START ...) DOCUMENT-END
 *   STREAM-END
 * In a mapping, scalars of keys alternate with values.
 */
#include "config.h"

#include "tec/base/yaml.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <yaml.h>

#define YAML_MAX_BYTES 1048576
#define YAML_MAX_DEPTH 32
#define YAML_MAX_NODES 50000 /* json-c takes up to 264 bytes per byte of text */

static const struct json_limits json_file = {
	.bytes = YAML_MAX_BYTES, .depth = YAML_MAX_DEPTH, .tokens = YAML_MAX_NODES};

struct reader {
	yaml_parser_t parser;
	yaml_event_t ev; /* the current one; all zero: none */
	bool go;         /* resolve scalars as Go does */

	unsigned depth, nodes;
	struct err *err;
};

/* Set the error with the position of the current event, or of the parser's problem if there is no
 * event. */
static int refuse(struct reader *r, const char *what)
{
	const yaml_mark_t *m =
		r->ev.type != YAML_NO_EVENT ? &r->ev.start_mark : &r->parser.problem_mark;

	return err_set(r->err, ERR_INVALID, "YAML: %s at line %zu column %zu", what, m->line + 1,
		m->column + 1);
}

/* Replace the current event by the next one. libyaml's own problem texts do not quote the input. */
static int next_event(struct reader *r)
{
	yaml_event_delete(&r->ev);
	if (!yaml_parser_parse(&r->parser, &r->ev))
		return refuse(r, r->parser.problem ? r->parser.problem : "unreadable text");
	return 0;
}

static bool tag_is(const yaml_char_t *tag, const char *name)
{
	return tag && str_eq((const char *)tag, name);
}

/* Parse an integer as Go's yaml package does: a sign, '_' between digits, and the prefixes 0, 0b,
 * 0o and 0x. strtoull() does not support 0b, so the prefix is handled here. */
static bool is_go_int(const char *s, int64_t *out)
{
	char text[80], *end;
	size_t n = 0, base = 10;
	unsigned long long v;
	bool negative = *s == '-';

	s += *s == '-' || *s == '+';
	if (*s < '0' || *s > '9' || strlen(s) >= sizeof(text))
		return false;
	for (const char *p = s; *p; p++)
		if (*p != '_')
			text[n++] = *p;
	text[n] = '\0';
	s = text;
	if (s[0] == '0' && s[1]) {
		base = strchr("xX", s[1]) ? 16 : strchr("bB", s[1]) ? 2 : 8;
		if (base == 8 && !strchr("oO01234567", s[1]))
			return false;
		s += s[1] >= '0' && s[1] <= '7' ? 1 : 2;
	}
	errno = 0;
	v = strtoull(s, &end, (int)base);
	if (*end || end == s || *s == '-' || *s == '+' || errno || v > INT64_MAX)
		return false;
	*out = negative ? -(int64_t)v : (int64_t)v;
	return true;
}

/* [-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)? */
static bool is_go_float(const char *s)
{
	size_t whole, part = 0, power;

	s += *s == '-' || *s == '+';
	s += whole = strspn(s, "0123456789");
	if (*s == '.')
		s += 1 + (part = strspn(s + 1, "0123456789"));
	if (whole + part == 0)
		return false;
	if (*s == 'e' || *s == 'E') {
		s++;
		s += *s == '-' || *s == '+';
		s += power = strspn(s, "0123456789");
		if (power == 0)
			return false;
	}
	return !*s;
}

/* Resolve a plain scalar; NULL if it is a string. go: with Go's additional rules. */
static struct json_object *plain_value(const char *s, bool go)
{
	static const char *const trues[] = {
		"true", "True", "TRUE", "y", "Y", "yes", "Yes", "YES", "on", "On", "ON"};
	static const char *const falses[] = {
		"false", "False", "FALSE", "n", "N", "no", "No", "NO", "off", "Off", "OFF"};
	bool negative = *s == '-';
	const char *digits = s + negative;
	uint64_t u;
	int64_t v;

	for (size_t i = 0; i < (go ? ARRAY_LEN(trues) : 3);
		i++) /* the first three are of the core schema */
		if (strcmp(s, trues[i]) == 0 || strcmp(s, falses[i]) == 0)
			return json_object_new_boolean(strcmp(s, trues[i]) == 0);
	/* A decimal integer in its only unambiguous spelling: no '+', no leading zeros (YAML 1.1 and
	 * 1.2 read them differently). */
	if (!(digits[0] == '0' && (digits[1] || negative)) &&
		str_to_u64(digits, INT64_MAX, &u) == 0)
		return json_object_new_int64(negative ? -(int64_t)u : (int64_t)u);
	if (go && is_go_int(s, &v))
		return json_object_new_int64(v);
	if (go && is_go_float(s) && isfinite(strtod(s, NULL)))
		return json_object_new_double(strtod(s, NULL));
	return NULL;
}

/* Convert the current scalar event; NULL is the null value. A quoted or tagged scalar is always a
 * string. */
static struct json_object *scalar_value(const yaml_event_t *ev, bool go)
{
	static const char *const nulls[] = {"", "~", "null", "Null", "NULL"};
	const char *s = (const char *)ev->data.scalar.value;
	bool plain = ev->data.scalar.style == YAML_PLAIN_SCALAR_STYLE && !ev->data.scalar.tag;
	struct json_object *o = NULL;

	for (size_t i = 0; plain && i < ARRAY_LEN(nulls); i++)
		if (strcmp(s, nulls[i]) == 0)
			return NULL;
	if (plain)
		o = plain_value(s, go);
	return o ? o : json_str_len(s, ev->data.scalar.length);
}

/* Refuse what would be read differently elsewhere: NUL bytes, and tags such as !!int or
 * !!binary. */
static int check_scalar(struct reader *r)
{
	const yaml_char_t *tag = r->ev.data.scalar.tag;

	if (memchr(r->ev.data.scalar.value, '\0', r->ev.data.scalar.length))
		return refuse(r, "NUL character in a string");
	if (tag && !tag_is(tag, "!") && !tag_is(tag, YAML_STR_TAG))
		return refuse(r, "unknown tag");
	return 0;
}

static int read_value(struct reader *r, struct json_object **out);

static int read_sequence(struct reader *r, struct json_object *arr)
{
	for (;;) {
		struct json_object *v = NULL;

		if (next_event(r) < 0)
			return -1;
		if (r->ev.type == YAML_SEQUENCE_END_EVENT)
			return 0;
		if (read_value(r, &v) < 0)
			return -1;
		json_push(arr, v);
	}
}

/* Read the members up to the end event. Keys are taken as strings whatever they look like, as
 * Kubernetes does. */
static int read_mapping(struct reader *r, struct json_object *obj)
{
	for (;;) {
		cleanup_free char *name = NULL;
		struct json_object *v = NULL;

		if (next_event(r) < 0)
			return -1;
		if (r->ev.type == YAML_MAPPING_END_EVENT)
			return 0;
		if (r->ev.type != YAML_SCALAR_EVENT)
			return refuse(r, "a key is not a scalar");
		if (check_scalar(r) < 0)
			return -1;
		name = xstrdup((const char *)r->ev.data.scalar.value);
		if (json_object_object_get_ex(obj, name, NULL))
			return refuse(r, "duplicate key");
		if (next_event(r) < 0 || read_value(r, &v) < 0)
			return -1;
		json_add(obj, name, v);
	}
}

/* Read a mapping or sequence. The depth is not restored after an error, as reading ends then. */
static int read_container(struct reader *r, bool mapping, struct json_object **out)
{
	cleanup_json struct json_object *o = mapping ? json_obj() : json_arr();
	const yaml_char_t *tag =
		mapping ? r->ev.data.mapping_start.tag : r->ev.data.sequence_start.tag;

	if (tag && !tag_is(tag, "!") && !tag_is(tag, mapping ? YAML_MAP_TAG : YAML_SEQ_TAG))
		return refuse(r, "unknown tag");
	if (++r->depth >= YAML_MAX_DEPTH)
		return refuse(r, "nesting too deep");
	if ((mapping ? read_mapping(r, o) : read_sequence(r, o)) < 0)
		return -1;
	r->depth--;
	*out = steal_ptr(&o);
	return 0;
}

/* Read the value that begins with the current event. */
static int read_value(struct reader *r, struct json_object **out)
{
	if (++r->nodes > YAML_MAX_NODES)
		return refuse(r, "too many values");
	switch ((int)r->ev.type) {
	case YAML_SCALAR_EVENT:
		if (check_scalar(r) < 0)
			return -1;
		*out = scalar_value(&r->ev, r->go);
		return 0;
	case YAML_SEQUENCE_START_EVENT:
		return read_container(r, false, out);
	case YAML_MAPPING_START_EVENT:
		return read_container(r, true, out);
	case YAML_ALIAS_EVENT:
		return refuse(r, "aliases are not supported");
	}
	return refuse(r, "expected a value");
}

/* Read the next event and require its type. */
static int expect(struct reader *r, yaml_event_type_t type, const char *otherwise)
{
	if (next_event(r) < 0)
		return -1;
	return r->ev.type == type ? 0 : refuse(r, otherwise);
}

/* A stream of exactly one document. One that is null, or only comments, is refused; after it there may
 * be more of these, as a "---" at the end begins one. */
static int read_stream(struct reader *r, struct json_object **out)
{
	if (expect(r, YAML_STREAM_START_EVENT, "expected a stream") < 0 ||
		expect(r, YAML_DOCUMENT_START_EVENT, "expected a document") < 0)
		return -1;
	if (next_event(r) < 0 || read_value(r, out) < 0)
		return -1;
	if (!*out)
		return refuse(r, "empty document");
	for (;;) {
		cleanup_json struct json_object *more = NULL;

		if (expect(r, YAML_DOCUMENT_END_EVENT, "expected the end of the document") < 0 ||
			next_event(r) < 0)
			return -1;
		if (r->ev.type == YAML_STREAM_END_EVENT)
			return 0;
		if (next_event(r) < 0 || read_value(r, &more) < 0)
			return -1;
		if (more)
			return refuse(r, "more than one document");
	}
}

/* The encoding is fixed, because libyaml would otherwise detect UTF-16 by a byte order mark, and
 * later checks assume UTF-8. */
static struct json_object *parse(const char *text, size_t len, bool go, struct err *err)
{
	cleanup_json struct json_object *o = NULL;
	struct reader r = {.err = err, .go = go};
	struct err ignored = ERR_INIT; /* the YAML reader reports the error */
	size_t i = 0;
	int rc;

	if (len > YAML_MAX_BYTES)
		return err_null(err, ERR_INVALID, "YAML: %zu bytes exceed the limit of %d", len,
			YAML_MAX_BYTES);
	while (i < len && strchr(" \t\r\n", text[i]) && text[i])
		i++;
	if (i < len && text[i] == '{')
		o = json_parse(text, len, &json_file, &ignored);
	if (o)
		return steal_ptr(&o);
	if (!yaml_parser_initialize(&r.parser))
		DIE("out of memory (YAML parser)");
	yaml_parser_set_encoding(&r.parser, YAML_UTF8_ENCODING);
	yaml_parser_set_input_string(&r.parser, (const unsigned char *)text, len);
	rc = read_stream(&r, &o);
	yaml_event_delete(&r.ev);
	yaml_parser_delete(&r.parser);
	return rc < 0 ? NULL : steal_ptr(&o);
}

struct json_object *yaml_parse(const char *text, size_t len, struct err *err)
{
	return parse(text, len, false, err);
}

struct json_object *yaml_parse_go(const char *text, size_t len, struct err *err)
{
	return parse(text, len, true, err);
}
