/* SPDX-License-Identifier: MIT */
/*
 * Two sets of values beside the table: the command line's and the file's. A file is read into a set
 * of its own and replaces the old one only when all of it is good. Refuses abbreviations, an option
 * given twice, and asking for a name the table does not have (that is a bug).
 */
#include "config.h"

#include "tec/base/conf.h"

#include <string.h>

#include "tec/base/bytes.h"
#include "tec/base/file.h"
#include "tec/base/log.h"
#include "tec/base/mem.h"
#include "tec/base/str.h"

#define CONF_FILE_MAX 1048576
#define HELP_WIDTH    80

struct value {
	char *text, *second; /* owned; text NULL: not given */
};

struct conf {
	const struct conf_option *table; /* borrowed, static */
	size_t n;
	struct value *argv, *file; /* owned arrays of n */
	bool file_read;
};

static void values_free(struct value *v, size_t n)
{
	for (size_t i = 0; v && i < n; i++) {
		free(v[i].text);
		free(v[i].second);
	}
	free(v);
}

struct conf *conf_new(const struct conf_option *table, size_t n)
{
	struct conf *c = xcalloc(1, sizeof(*c));

	c->table = table;
	c->n = n;
	c->argv = xcalloc(n, sizeof(*c->argv));
	c->file = xcalloc(n, sizeof(*c->file));
	return c;
}

void conf_free(struct conf *c)
{
	if (!c)
		return;
	values_free(c->argv, c->n);
	values_free(c->file, c->n);
	free(c);
}

/* Index of the option, n when there is none. */
static size_t lookup(const struct conf *c, const char *name, size_t len)
{
	size_t i;

	for (i = 0; i < c->n; i++) {
		if (strlen(c->table[i].name) == len && memcmp(c->table[i].name, name, len) == 0)
			break;
	}
	return i;
}

static bool is_bool_text(const char *s)
{
	return strcmp(s, "true") == 0 || strcmp(s, "false") == 0;
}

/* ---- command line */

struct args {
	int argc, i;
	char *const *argv;
	struct err *err;
};

static const char *next_arg(struct args *a, const char *name)
{
	if (a->i + 1 < a->argc)
		return a->argv[++a->i];
	err_set(a->err, ERR_INVALID, "option --%s needs a value", name);
	return NULL;
}

static bool in_file(const struct conf_option *o)
{
	return o->type != CONF_ACTION && o->type != CONF_PAIR && o->type != CONF_FILE;
}

/* Stores option `o`; eq is the text behind '=', or NULL. */
static int take_option(struct args *a, const struct conf_option *o, struct value *v, const char *eq)
{
	const char *text = eq, *second = NULL;

	if (v->text)
		return err_set(a->err, ERR_INVALID, "option --%s is given twice", o->name);
	if (eq && (o->type == CONF_ACTION || o->type == CONF_PAIR))
		return err_set(a->err, ERR_INVALID, "option --%s takes no '='", o->name);
	switch (o->type) {
	case CONF_STRING:
	case CONF_FILE:
		if (!text && !(text = next_arg(a, o->name)))
			return -1;
		break;
	case CONF_BOOL:
		if (text && !is_bool_text(text))
			return err_set(
				a->err, ERR_INVALID, "option --%s is true or false", o->name);
		text = text ? text : "true";
		break;
	case CONF_OPTIONAL:
		text = text ? text : "";
		break;
	case CONF_ACTION:
		text = "true";
		break;
	case CONF_PAIR:
		if (!(text = next_arg(a, o->name)) || !(second = next_arg(a, o->name)))
			return -1;
		break;
	}
	v->text = xstrdup(text);
	v->second = xstrdup(second);
	return 0;
}

int conf_parse_argv(struct conf *c, int argc, char *const argv[], struct err *err)
{
	struct args a = {.argc = argc, .i = 1, .argv = argv, .err = err};

	for (; a.i < argc; a.i++) {
		const char *arg = argv[a.i], *eq;
		size_t len, i;

		if (!str_starts(arg, "--") || !arg[2])
			return err_set(err, ERR_INVALID, "unexpected argument %s", log_esc(arg));
		arg += 2;
		eq = strchr(arg, '=');
		len = eq ? (size_t)(eq - arg) : strlen(arg);
		i = lookup(c, arg, len);
		if (i == c->n)
			return err_set(
				err, ERR_INVALID, "unknown option %s", log_escn(arg - 2, len + 2));
		if (take_option(&a, &c->table[i], &c->argv[i], eq ? eq + 1 : NULL) < 0)
			return -1;
	}
	return 0;
}

/* ---- file */

/* The whole file as text; the caller frees. */
static char *read_text(const char *path, struct err *err)
{
	size_t len;
	char *text = file_read(path, CONF_FILE_MAX, &len, NULL, err);

	if (text && (!bytes_valid_utf8(text, len) || memchr(text, '\0', len))) {
		err_set(err, ERR_INVALID, "%s: not UTF-8 text", log_esc(path));
		free(text);
		text = NULL;
	}
	if (!text)
		err_wrap(err, "configuration file");
	return text;
}

/* Cuts blanks from both ends, in place. */
static char *trim(char *s)
{
	size_t len;

	s += strspn(s, " \t\r");
	len = strlen(s);
	while (len > 0 && strchr(" \t\r", s[len - 1]))
		len--;
	s[len] = '\0';
	return s;
}

static int take_line(const struct conf *c, struct value *values, char *line, struct err *err)
{
	char *eq, *name, *text;
	const struct conf_option *o;
	size_t i;

	line = trim(line);
	if (!*line || *line == '#')
		return 0;
	eq = strchr(line, '=');
	if (!eq)
		return err_set(err, ERR_INVALID, "no '='");
	*eq = '\0';
	name = trim(line);
	text = trim(eq + 1);
	i = lookup(c, name, strlen(name));
	if (i == c->n)
		return err_set(err, ERR_INVALID, "unknown option %s", log_esc(name));
	o = &c->table[i];
	if (!in_file(o))
		return err_set(err, ERR_INVALID, "option %s is for the command line only", o->name);
	if (o->type == CONF_BOOL && !is_bool_text(text))
		return err_set(err, ERR_INVALID, "option %s is true or false", o->name);
	if (values[i].text)
		return err_set(err, ERR_INVALID, "option %s is given twice", o->name);
	values[i].text = xstrdup(text);
	return 0;
}

static void warn_fixed(const struct conf *c, const struct value *values)
{
	for (size_t i = 0; i < c->n; i++) {
		if (!c->table[i].reloadable && !c->argv[i].text &&
			!str_eq(c->file[i].text, values[i].text))
			log_warn(NULL, "a changed option needs a restart", "option=%s",
				log_esc(c->table[i].name));
	}
}

int conf_parse_file(struct conf *c, const char *path, struct err *err)
{
	cleanup_free char *text = read_text(path, err);
	struct value *values;
	unsigned number = 0;
	char *rest, *line;

	if (!text)
		return -1;
	values = xcalloc(c->n, sizeof(*values));
	rest = text;
	while ((line = strsep(&rest, "\n"))) {
		number++;
		if (take_line(c, values, line, err) < 0) {
			values_free(values, c->n);
			return err_wrap(err, "%s line %u", path, number);
		}
	}
	if (c->file_read)
		warn_fixed(c, values);
	values_free(c->file, c->n);
	c->file = values;
	c->file_read = true;
	return 0;
}

/* ---- values */

static size_t must_lookup(const struct conf *c, const char *name)
{
	size_t i = lookup(c, name, strlen(name));

	if (i == c->n)
		DIE("no option is called %s", name);
	return i;
}

const char *conf_str(const struct conf *c, const char *name)
{
	size_t i = must_lookup(c, name);

	if (c->argv[i].text)
		return c->argv[i].text;
	return c->file[i].text ? c->file[i].text : c->table[i].dflt;
}

const char *conf_second(const struct conf *c, const char *name)
{
	return c->argv[must_lookup(c, name)].second;
}

/* CONF_OPTIONAL and CONF_PAIR: whether it is there. */
bool conf_bool(const struct conf *c, const char *name)
{
	enum conf_type type = c->table[must_lookup(c, name)].type;
	const char *text = conf_str(c, name);

	if (type == CONF_BOOL || type == CONF_ACTION)
		return str_eq(text, "true");
	return text != NULL;
}

bool conf_is_set(const struct conf *c, const char *name)
{
	size_t i = must_lookup(c, name);

	return c->argv[i].text || c->file[i].text;
}

/* ---- help and sample */

/* Prints text in lines of at most HELP_WIDTH, each behind `prefix`. */
static void print_wrapped(FILE *out, const char *prefix, const char *text)
{
	size_t room = HELP_WIDTH - strlen(prefix);

	while (*text) {
		size_t n = strlen(text);

		if (n > room) {
			for (n = room; n > 0 && text[n] != ' '; n--)
				;
			if (n == 0) /* a word longer than a line */
				n = strcspn(text, " ");
		}
		fprintf(out, "%s%.*s\n", prefix, (int)n, text);
		text += n;
		text += strspn(text, " ");
	}
}

void conf_print_help(const struct conf_option *table, size_t n, FILE *out)
{
	for (size_t i = 0; i < n; i++) {
		const struct conf_option *o = &table[i];
		const char *arg = o->arg ? o->arg : "VALUE";

		fprintf(out, "  --%s", o->name);
		if (o->type == CONF_STRING || o->type == CONF_FILE)
			fprintf(out, "=%s", arg);
		else if (o->type == CONF_BOOL)
			fputs("[=true|false]", out);
		else if (o->type == CONF_OPTIONAL)
			fprintf(out, "[=%s]", arg);
		else if (o->type == CONF_PAIR)
			fprintf(out, " %s", arg);
		fputc('\n', out);
		print_wrapped(out, "        ", o->help);
		if (o->dflt)
			fprintf(out, "        Default: %s\n", *o->dflt ? o->dflt : "\"\"");
	}
}

void conf_print_sample(const struct conf_option *table, size_t n, FILE *out)
{
	for (size_t i = 0; i < n; i++) {
		const struct conf_option *o = &table[i];

		if (!in_file(o))
			continue;
		print_wrapped(out, "# ", o->help);
		fprintf(out, "#%s =%s%s\n\n", o->name, o->dflt ? " " : "", o->dflt ? o->dflt : "");
	}
}
