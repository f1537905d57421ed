/* SPDX-License-Identifier: MIT */
/*
 * A path is a list of steps; a walk keeps its place on the stack of the machine, whose depth is the
 * number of steps. A filter compares one path below each element with one constant.
 */
#include "config.h"

#include "tec/schema/jsonpath.h"

#include <ctype.h>
#include <string.h>

#include "tec/base/json.h"
#include "tec/base/mem.h"

#define STEPS_MAX   30
#define FILTERS_MAX 4

enum step_kind { STEP_NAME, STEP_INDEX, STEP_ALL, STEP_FILTER };
enum filter_op { FILTER_EXISTS, FILTER_EQ, FILTER_NE };

struct step {
	enum step_kind kind;
	char *name; /* owned; NAME */
	int64_t index;
	/* FILTER: */
	struct schema_jsonpath *path; /* owned; below the element */
	enum filter_op op;
	struct json_object *value; /* owned */
};

struct schema_jsonpath {
	struct step step[STEPS_MAX];
	size_t n;
};

struct reader {
	const char *p;
	struct err *err;
	unsigned filters; /* open ones */
};

static int refuse(struct reader *r, const char *what)
{
	return err_is_set(r->err) ? -1
				  : err_set(r->err, ERR_INVALID, "%s at \"%.40s\"", what, r->p);
}

static struct step *new_step(struct reader *r, struct schema_jsonpath *p, enum step_kind kind)
{
	if (p->n >= STEPS_MAX) {
		refuse(r, "too many steps");
		return NULL;
	}
	p->step[p->n] = (struct step){.kind = kind};
	return &p->step[p->n++];
}

static void skip_blanks(struct reader *r)
{
	r->p += strspn(r->p, " \t");
}

static bool take(struct reader *r, const char *text)
{
	if (!str_starts(r->p, text))
		return false;
	r->p += strlen(text);
	return true;
}

/* A quoted text at r->p, which the caller frees; NULL: it does not end. */
static char *quoted(struct reader *r)
{
	struct strbuf b = STRBUF_INIT;
	char quote = *r->p++;

	for (; *r->p && *r->p != quote; r->p++) {
		if (*r->p == '\\' && r->p[1])
			r->p++;
		strbuf_addc(&b, *r->p);
	}
	if (!*r->p) {
		strbuf_fini(&b);
		refuse(r, "a quoted text does not end");
		return NULL;
	}
	r->p++;
	return strbuf_steal(&b);
}

/* A name: what stands up to the next step; a backslash takes the next byte as it is. */
static int read_name(struct reader *r, struct schema_jsonpath *p)
{
	struct strbuf b = STRBUF_INIT;
	struct step *s;

	for (; *r->p && !strchr(".[]()=!<>&| \t,:?@{}'\"", *r->p); r->p++) {
		if (*r->p == '\\' && r->p[1])
			r->p++;
		strbuf_addc(&b, *r->p);
	}
	if (!b.len) {
		strbuf_fini(&b);
		return refuse(r, "a name is missing");
	}
	s = new_step(r, p, strcmp(b.data, "*") == 0 ? STEP_ALL : STEP_NAME);
	if (!s) {
		strbuf_fini(&b);
		return -1;
	}
	s->name = strbuf_steal(&b);
	return 0;
}

static int read_steps(struct reader *r, struct schema_jsonpath *p, bool inside);

static struct json_object *constant(struct reader *r)
{
	cleanup_free char *s = NULL;
	char *end;
	double d;

	if (*r->p == '"' || *r->p == '\'') {
		s = quoted(r);
		return s ? json_object_new_string(s) : NULL;
	}
	if (take(r, "true"))
		return json_object_new_boolean(true);
	if (take(r, "false"))
		return json_object_new_boolean(false);
	if (!isdigit((unsigned char)*r->p) && *r->p != '-')
		return NULL;
	d = strtod(r->p, &end);
	if (end == r->p)
		return NULL;
	r->p = end;
	return json_object_new_double(d);
}

/* Behind "[?(". */
static int read_filter(struct reader *r, struct schema_jsonpath *p)
{
	struct step *s = new_step(r, p, STEP_FILTER);

	if (!s)
		return -1;
	skip_blanks(r);
	if (++r->filters > FILTERS_MAX)
		return refuse(r, "too many filters");
	if (!take(r, "@"))
		return refuse(r, "a filter begins with @");
	s->path = xcalloc(1, sizeof(*s->path));
	if (read_steps(r, s->path, true) < 0)
		return -1;
	skip_blanks(r);
	s->op = take(r, "==") ? FILTER_EQ : take(r, "!=") ? FILTER_NE : FILTER_EXISTS;
	skip_blanks(r);
	if (s->op != FILTER_EXISTS && !(s->value = constant(r)))
		return refuse(r, "a constant is missing");
	skip_blanks(r);
	return take(r, ")]") ? 0 : refuse(r, "a filter does not end");
}

/* Behind "[". */
static int read_bracket(struct reader *r, struct schema_jsonpath *p)
{
	struct step *s;
	char *end;

	if (take(r, "?("))
		return read_filter(r, p);
	if (take(r, "*]"))
		return new_step(r, p, STEP_ALL) ? 0 : -1;
	if (*r->p == '\'' || *r->p == '"') {
		char *name = quoted(r);

		s = name ? new_step(r, p, STEP_NAME) : NULL;
		if (!s) {
			free(name);
			return -1;
		}
		s->name = name;
		return take(r, "]") ? 0 : refuse(r, "a bracket does not end");
	}
	s = new_step(r, p, STEP_INDEX);
	if (!s)
		return -1;
	s->index = strtol(r->p, &end, 10);
	if (end == r->p || s->index > INT32_MAX || s->index < INT32_MIN)
		return refuse(r, "an index is missing");
	r->p = end;
	return take(r, "]") ? 0 : refuse(r, "slices and unions are not supported");
}

static int read_steps(struct reader *r, struct schema_jsonpath *p, bool inside)
{
	while (*r->p) {
		if (str_starts(r->p, ".."))
			return refuse(r, "recursive descent is not supported");
		if (take(r, "[")) {
			if (read_bracket(r, p) < 0)
				return -1;
		} else if (take(r, ".")) {
			if (*r->p == '[' || (!*r->p && p->n == 0))
				continue;
			if (read_name(r, p) < 0)
				return -1;
		} else
			return inside ? 0 : refuse(r, "unexpected text");
	}
	return 0;
}

struct schema_jsonpath *schema_jsonpath_new(const char *path, struct err *err)
{
	struct schema_jsonpath *p = xcalloc(1, sizeof(*p));
	struct reader r = {path, err, 0};

	if (*path && read_steps(&r, p, false) == 0)
		return p;
	refuse(&r, "a path is missing");
	schema_jsonpath_free(p);
	return NULL;
}

void schema_jsonpath_free(struct schema_jsonpath *p)
{
	if (!p)
		return;
	for (size_t i = 0; i < p->n; i++) {
		free(p->step[i].name);
		schema_jsonpath_free(p->step[i].path);
		json_object_put(p->step[i].value);
	}
	free(p);
}

/* ---- walking */

struct walk {
	const struct schema_jsonpath *p;
	schema_jsonpath_fn fn;
	void *arg;
};

static bool walk(const struct walk *w, size_t at, struct json_object *v);

struct filter {
	const struct step *s;
	bool found, holds;
};

static bool is_number(struct json_object *v)
{
	return json_object_is_type(v, json_type_int) || json_object_is_type(v, json_type_double);
}

static bool filter_value(struct json_object *v, void *arg)
{
	struct filter *f = arg;
	bool same;

	f->found = true;
	if (is_number(v) && is_number(f->s->value))
		same = json_object_get_double(v) == json_object_get_double(f->s->value);
	else
		same = json_object_get_type(v) == json_object_get_type(f->s->value) &&
		       json_object_equal(v, f->s->value);
	f->holds = f->s->op == FILTER_EXISTS || same == (f->s->op == FILTER_EQ);
	return false;
}

static bool fits(const struct step *s, struct json_object *v)
{
	struct filter f = {s, false, false};

	schema_jsonpath_find(s->path, v, filter_value, &f);
	return f.found && f.holds;
}

static bool walk_elements(const struct walk *w, size_t at, struct json_object *v)
{
	const struct step *s = &w->p->step[at];

	if (json_object_is_type(v, json_type_object) && s->kind == STEP_ALL) {
		json_object_object_foreach (v, name, child) {
			(void)name;
			if (!walk(w, at + 1, child))
				return false;
		}
		return true;
	}
	for (size_t i = 0;
		json_object_is_type(v, json_type_array) && i < json_object_array_length(v); i++) {
		struct json_object *e = json_object_array_get_idx(v, i);

		if ((s->kind == STEP_ALL || fits(s, e)) && !walk(w, at + 1, e))
			return false;
	}
	return true;
}

/* False: fn wants no more. */
static bool walk(const struct walk *w, size_t at, struct json_object *v)
{
	const struct step *s;
	struct json_object *child = NULL;
	int64_t n, i;

	if (at == w->p->n)
		return w->fn(v, w->arg);
	s = &w->p->step[at];
	switch (s->kind) {
	case STEP_NAME:
		return !json_object_is_type(v, json_type_object) ||
		       !json_object_object_get_ex(v, s->name, &child) || walk(w, at + 1, child);
	case STEP_INDEX:
		n = json_object_is_type(v, json_type_array) ? (int64_t)json_object_array_length(v)
							    : 0;
		i = s->index < 0 ? n + s->index : s->index;
		return i < 0 || i >= n || walk(w, at + 1, json_object_array_get_idx(v, (size_t)i));
	case STEP_ALL:
	case STEP_FILTER:
		return walk_elements(w, at, v);
	}
	return true;
}

void schema_jsonpath_find(
	const struct schema_jsonpath *p, struct json_object *o, schema_jsonpath_fn fn, void *arg)
{
	struct walk w = {p, fn, arg};

	walk(&w, 0, o);
}
