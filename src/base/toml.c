/* SPDX-License-Identifier: MIT */
/*
 * One pass over the text; the place of the current [table] is a borrowed pointer into the result.
 * Whether a table may still be added to is noted in the object itself (its user data), because TOML
 * forbids what JSON cannot show: to define a table twice, or to add to an inline one.
 */
#include "config.h"

#include "toml_internal.h"

#include "tec/base/bytes.h"

#define TEXT_MAX  ((size_t)1 << 20)
#define DEPTH_MAX 64

/* How a table or array came to be. */
enum made {
	MADE_IMPLICIT = 0, /* by [a.b], as a: may be defined once */
	MADE_DEFINED = 1,  /* by [a]: may get further tables, not be defined again */
	MADE_DOTTED = 2,   /* by a.b = 1, as a: may get dotted keys of the same table */
	MADE_FIXED = 3,    /* an inline table or array: nothing may be added */
	MADE_LIST = 4,     /* by [[a]] */
};

static enum made made_of(struct json_object *o)
{
	return (enum made)(uintptr_t)json_object_get_userdata(o);
}

static struct json_object *mark(struct json_object *o, enum made made)
{
	json_object_set_userdata(o, (void *)(uintptr_t)made, NULL);
	return o;
}

int toml_fail(struct toml *t, const char *what)
{
	if (err_is_set(t->err))
		return -1;
	return err_set(t->err, ERR_INVALID, "line %u: %s", t->line, what);
}

/* ---- blanks, comments, ends of lines */

static void skip_blanks(struct toml *t)
{
	while (t->p < t->end && (*t->p == ' ' || *t->p == '\t'))
		t->p++;
}

static int skip_comment(struct toml *t)
{
	if (toml_peek(t) != '#')
		return 0;
	for (; t->p < t->end && *t->p != '\n'; t->p++) {
		unsigned char c = (unsigned char)*t->p;

		if (c == '\r' && t->p + 1 < t->end && t->p[1] == '\n')
			break;
		if ((c < 0x20 && c != '\t') || c == 0x7f)
			return toml_fail(t, "a comment has a control character");
	}
	return 0;
}

/* False: there is none. */
static bool take_newline(struct toml *t)
{
	if (toml_looking_at(t, "\r\n"))
		t->p++;
	if (toml_peek(t) != '\n')
		return false;
	t->p++;
	t->line++;
	return true;
}

static int end_line(struct toml *t)
{
	skip_blanks(t);
	if (skip_comment(t) < 0)
		return -1;
	if (t->p == t->end || take_newline(t))
		return 0;
	return toml_fail(t, "something stands behind a value or a table's name");
}

/* Inside of an array. */
static int skip_lines(struct toml *t)
{
	do {
		skip_blanks(t);
		if (skip_comment(t) < 0)
			return -1;
	} while (take_newline(t));
	return 0;
}

/* ---- keys */

static bool is_bare(int c)
{
	return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
	       c == '_' || c == '-';
}

static int key_part(struct toml *t, struct strbuf *out)
{
	int c = toml_peek(t);

	strbuf_reset(out);
	if (c == '"' || c == '\'')
		return toml_looking_at(t, c == '"' ? "\"\"\"" : "'''")
			       ? toml_fail(t, "a key cannot be a text of several lines")
			       : toml_string(t, false, out);
	while (is_bare(toml_peek(t)))
		strbuf_addc(out, *t->p++);
	return out->len ? 0 : toml_fail(t, "a key is missing");
}

/* Goes one part deeper, making the table that is not there. NULL: refused. */
static struct json_object *enter(
	struct toml *t, struct json_object *at, const char *key, bool dotted)
{
	struct json_object *o = NULL;

	if (!json_object_object_get_ex(at, key, &o)) {
		o = mark(json_obj(), dotted ? MADE_DOTTED : MADE_IMPLICIT);
		json_add(at, key, o);
		return o;
	}
	if (!dotted && o && json_object_is_type(o, json_type_array) && made_of(o) == MADE_LIST)
		return json_object_array_get_idx(o, json_object_array_length(o) - 1);
	if (!o || !json_object_is_type(o, json_type_object) || made_of(o) == MADE_FIXED ||
		(dotted && made_of(o) != MADE_DOTTED && made_of(o) != MADE_IMPLICIT)) {
		toml_fail(t, "a key is there twice, or its table cannot be added to");
		return NULL;
	}
	return dotted ? mark(o, MADE_DOTTED) : o;
}

/* a.b.c: goes to b of `at`, and leaves c in out. NULL: refused. */
static struct json_object *dotted_key(
	struct toml *t, struct json_object *at, bool dotted, struct strbuf *out)
{
	unsigned depth = 0;

	for (;;) {
		skip_blanks(t);
		if (key_part(t, out) < 0)
			return NULL;
		skip_blanks(t);
		if (toml_peek(t) != '.')
			return at;
		t->p++;
		if (++depth + t->depth > DEPTH_MAX) {
			toml_fail(t, "tables are nested too deeply");
			return NULL;
		}
		at = enter(t, at, strbuf_str(out), dotted);
		if (!at)
			return NULL;
	}
}

/* ---- values */

static struct json_object *value(struct toml *t);

static int elements(struct toml *t, struct json_object *a)
{
	t->p++;
	for (;;) {
		struct json_object *v;

		if (skip_lines(t) < 0)
			return -1;
		if (toml_peek(t) == ']')
			break;
		v = value(t);
		if (!v)
			return -1;
		json_push(a, v);
		if (skip_lines(t) < 0)
			return -1;
		if (toml_peek(t) == ']')
			break;
		if (toml_peek(t) != ',')
			return toml_fail(t, "an array needs a comma or its end");
		t->p++;
	}
	t->p++;
	return 0;
}

static int key_value(struct toml *t, struct json_object *table)
{
	cleanup_strbuf struct strbuf key = STRBUF_INIT;
	struct json_object *in = dotted_key(t, table, true, &key), *v;

	if (!in)
		return -1;
	if (toml_peek(t) != '=')
		return toml_fail(t, "a key has no equals sign");
	t->p++;
	skip_blanks(t);
	if (json_object_object_get_ex(in, strbuf_str(&key), NULL))
		return toml_fail(t, "a key is there twice");
	v = value(t);
	if (!v)
		return -1;
	json_add(in, strbuf_str(&key), v);
	return 0;
}

static int members(struct toml *t, struct json_object *table)
{
	t->p++;
	skip_blanks(t);
	if (toml_peek(t) == '}') {
		t->p++;
		return 0;
	}
	for (;;) {
		if (key_value(t, table) < 0)
			return -1;
		skip_blanks(t);
		if (toml_peek(t) == '}')
			break;
		if (toml_peek(t) != ',')
			return toml_fail(t, "an inline table needs a comma or its end");
		t->p++;
	}
	t->p++;
	return 0;
}

static struct json_object *value(struct toml *t)
{
	cleanup_json struct json_object *o = NULL;
	cleanup_strbuf struct strbuf text = STRBUF_INIT;
	int c = toml_peek(t), rc;

	if (c == '"' || c == '\'') {
		bool multi = toml_looking_at(t, c == '"' ? "\"\"\"" : "\'\'\'");

		if (toml_string(t, multi, &text) < 0)
			return NULL;
		return json_object_new_string_len(strbuf_str(&text), (int)text.len);
	}
	if (c != '[' && c != '{')
		return toml_scalar(t);
	if (++t->depth > DEPTH_MAX) {
		toml_fail(t, "values are nested too deeply");
		return NULL;
	}
	o = mark(c == '[' ? json_arr() : json_obj(), MADE_DEFINED);
	rc = c == '[' ? elements(t, o) : members(t, o);
	t->depth--;
	mark(o, MADE_FIXED);
	return rc < 0 ? NULL : steal_ptr(&o);
}

/* ---- [table] and [[table]] */

static struct json_object *define(
	struct toml *t, struct json_object *in, const char *key, bool list)
{
	struct json_object *o = NULL, *made;

	if (!json_object_object_get_ex(in, key, &o)) {
		made = mark(json_obj(), MADE_DEFINED);
		json_add(in, key, list ? json_push(mark(json_arr(), MADE_LIST), made) : made);
		return made;
	}
	if (list && o && made_of(o) == MADE_LIST) {
		made = mark(json_obj(), MADE_DEFINED);
		json_push(o, made);
		return made;
	}
	if (!list && o && json_object_is_type(o, json_type_object) && made_of(o) == MADE_IMPLICIT)
		return mark(o, MADE_DEFINED);
	toml_fail(t, "a table is there twice");
	return NULL;
}

/* NULL: refused. */
static struct json_object *header(struct toml *t, struct json_object *root)
{
	cleanup_strbuf struct strbuf key = STRBUF_INIT;
	bool list = toml_looking_at(t, "[[");
	struct json_object *in;

	t->p += list ? 2 : 1;
	in = dotted_key(t, root, false, &key);
	if (!in)
		return NULL;
	if (!toml_looking_at(t, list ? "]]" : "]")) {
		toml_fail(t, "a table's name does not end");
		return NULL;
	}
	t->p += list ? 2 : 1;
	return define(t, in, strbuf_str(&key), list);
}

static int document(struct toml *t, struct json_object *root)
{
	struct json_object *at = root;

	while (t->p < t->end) {
		int c;

		skip_blanks(t);
		c = toml_peek(t);
		if (c == '[') {
			at = header(t, root);
			if (!at)
				return -1;
		} else if (c >= 0 && c != '#' && c != '\n' && c != '\r') {
			if (key_value(t, at) < 0)
				return -1;
		}
		if (end_line(t) < 0)
			return -1;
	}
	return 0;
}

struct json_object *toml_parse(const char *text, size_t len, struct err *err)
{
	struct toml t = {.p = text, .end = text + len, .line = 1, .err = err};
	cleanup_json struct json_object *root = mark(json_obj(), MADE_DEFINED);

	if (len > TEXT_MAX || !bytes_valid_utf8(text, len)) {
		err_set(err, ERR_INVALID, "%s",
			len > TEXT_MAX ? "more than 1 MiB" : "not valid UTF-8");
		return NULL;
	}
	return document(&t, root) < 0 ? NULL : steal_ptr(&root);
}
