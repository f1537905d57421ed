/* SPDX-License-Identifier: MIT */
/*
 * Two sets of values belong to the table: the command line's and the file's. A file is read into a new
 * set, which replaces the old one only if the whole file is valid. Abbreviated and repeated options
 * are refused. A request for a name that is not in the table is a bug and aborts.
 *
 * Life of a struct conf: conf_new(), then conf_start(), which parses the command line and the file.
 * On SIGHUP a server calls conf_parse_file() again; options that are not `reloadable` then only
 * produce a warning if they differ. Values are borrowed until that call.
 *
 * Words on the command line are assigned in order: the command ("image list" takes two words), then
 * its operands. Options may appear anywhere between them. "--" is not supported.
 */
#include "config.h"

#include "tec/base/conf.h"

#include <inttypes.h>
#include <string.h>

#include "tec/base/file.h"
#include "tec/base/log.h"
#include "tec/base/mem.h"
#include "tec/base/str.h"
#include "tec/base/utf8.h"

#define CONF_FILE_MAX 1048576
#define HELP_WIDTH    80

struct value {
	char **text; /* owned; a CONF_PAIR has two, a CONF_LIST any number */
	size_t n;    /* 0: the option was not given */
};

struct conf {
	const struct conf_program *program; /* borrowed, static */
	struct value *argv, *file;          /* owned arrays, one element per option */
	bool file_read;                     /* a file was read: later differences are changes */
	const struct conf_command *command; /* borrowed from program; NULL: none yet */
	const char *group;    /* the first word of a command that has two; borrowed from argv */
	const char **operand; /* owned; the words are borrowed from argv */
	size_t n_operands;
};

/* Copy the text: that of a file is freed after parsing. */
static void value_add(struct value *v, const char *text)
{
	ARRAY_GROW(v->text, v->n);
	v->text[v->n++] = xstrdup(text);
}

static void values_free(struct value *v, size_t n)
{
	for (size_t i = 0; v && i < n; i++) {
		while (v[i].n)
			free(v[i].text[--v[i].n]);
		free(v[i].text);
	}
	free(v);
}

struct conf *conf_new(const struct conf_program *program)
{
	struct conf *c = xcalloc(1, sizeof(*c));

	c->program = program;
	c->argv = xcalloc(program->n_options, sizeof(*c->argv));
	c->file = xcalloc(program->n_options, sizeof(*c->file));
	return c;
}

void conf_free(struct conf *c)
{
	if (!c)
		return;
	values_free(c->argv, c->program->n_options);
	values_free(c->file, c->program->n_options);
	free(c->operand);
	free(c);
}

/* Return the index of the option, n_options if there is none. A linear search suffices: it runs at
 * start and on SIGHUP only. */
static size_t lookup(const struct conf *c, const char *name, size_t len)
{
	size_t i;

	for (i = 0; i < c->program->n_options; i++) {
		const char *have = c->program->options[i].name;

		if (strlen(have) == len && memcmp(have, name, len) == 0)
			break;
	}
	return i;
}

/* Return the index of the word in a list separated by blanks or commas; -1: it is not there. */
static int word_index(const char *list, const char *word)
{
	size_t len = strlen(word);

	for (int i = 0; list && *list; i++) {
		size_t n = strcspn(list, ", ");

		if (n == len && memcmp(list, word, n) == 0)
			return i;
		list += n + strspn(list + n, ", ");
	}
	return -1;
}

/* Check the value of a boolean or a choice; other types accept any text. dashes is the prefix of an
 * option's name in this source ("--" or ""). */
static int check_value(
	const struct conf_option *o, const char *dashes, const char *text, struct err *err)
{
	const char *choices = o->type == CONF_BOOL     ? "true, false"
			      : o->type == CONF_CHOICE ? o->choices
						       : NULL;

	if (!choices || word_index(choices, text) >= 0)
		return 0;
	return err_set(err, ERR_INVALID, "option %s%s: %s is not one of %s", dashes, o->name,
		log_esc(text), choices);
}

bool conf_takes(
	const struct conf_program *program, const struct conf_command *command, const char *option)
{
	return word_index(command->options, option) >= 0 ||
	       word_index(program->common, option) >= 0;
}

/* ---- command line */

struct args {
	int argc, i;
	char *const *argv;
	struct err *err;
};

/* Store option number i. text is the value that was joined to its name, or NULL. */
static int take_option(struct conf *c, struct args *a, size_t i, const char *text)
{
	const struct conf_option *o = &c->program->options[i];
	struct value *v = &c->argv[i];

	if (v->n && o->type != CONF_LIST && o->type != CONF_ACTION)
		return err_set(a->err, ERR_INVALID, "option --%s is given twice", o->name);
	if (text && (o->type == CONF_ACTION || o->type == CONF_PAIR))
		return err_set(a->err, ERR_INVALID, "option --%s does not take a value after '='",
			o->name);
	if (!text && (o->type == CONF_ACTION || o->type == CONF_BOOL))
		text = "true";
	if (!text && o->type == CONF_OPTIONAL)
		text = "";
	/* A value that was not joined to the name is the next word, even if it starts with '-', as
	 * getopt_long does. */
	for (int n = o->type == CONF_PAIR ? 2 : 1; n > 0; n--, text = NULL) {
		if (!text && a->i + 1 < a->argc)
			text = a->argv[++a->i];
		if (!text)
			return err_set(a->err, ERR_INVALID, "option --%s needs %s", o->name,
				o->type == CONF_PAIR ? "two values" : "a value");
		value_add(v, text);
	}
	return check_value(o, "--", v->text[0], a->err);
}

/* Handle "-v", "-vh", and "-rVALUE": the rest of the word after a letter that takes a value is that
 * value. */
static int take_letters(struct conf *c, struct args *a, const char *word)
{
	const struct conf_option *table = c->program->options;
	size_t n = c->program->n_options, i;

	for (const char *p = word + 1; *p; p++) {
		for (i = 0; i < n && table[i].letter != *p; i++)
			;
		if (i == n)
			return err_set(a->err, ERR_INVALID, "unknown option %s", log_esc(word));
		if (table[i].type != CONF_ACTION && table[i].type != CONF_BOOL)
			return take_option(c, a, i, p[1] ? p + 1 + (p[1] == '=') : NULL);
		if (take_option(c, a, i, NULL) < 0)
			return -1;
	}
	return 0;
}

/* Return the second word of a command's name if the first one is `group`, otherwise NULL. */
static const char *second_word(const struct conf_command *c, const char *group)
{
	size_t len = strlen(group);

	return c->name && str_starts(c->name, group) && c->name[len] == ' ' ? c->name + len + 1
									    : NULL;
}

/* True if the command accepts another operand: "LOG DIR" wants two words, "FILE..." one or more,
 * "[UKI]" takes one. */
static bool wants_more(const struct conf *c)
{
	const char *p = c->command && c->command->operand ? c->command->operand : "";
	size_t words = *p != '\0';

	for (const char *blank = p; (blank = strchr(blank, ' ')); blank++)
		words++;
	return c->n_operands < words || str_ends(p, "...");
}

/* A word that is not an option is an operand of the command, else the command or the second word of
 * its name. */
static int take_word(struct conf *c, const char *word, struct err *err)
{
	const struct conf_program *p = c->program;
	bool begins = false; /* a command of two words */

	if (wants_more(c)) {
		ARRAY_GROW(c->operand, c->n_operands);
		c->operand[c->n_operands++] = word;
		return 0;
	}
	if (!p->n_commands || c->command)
		return err_set(err, ERR_INVALID, "unexpected argument %s", log_esc(word));
	for (size_t i = 0; i < p->n_commands; i++) {
		const struct conf_command *at = &p->commands[i];

		if (str_eq(c->group ? second_word(at, c->group) : at->name, word))
			c->command = at;
		else if (second_word(at, word))
			begins = true;
	}
	if (c->command)
		return 0;
	if (c->group)
		return err_set(err, ERR_INVALID, "unknown command %s %s", c->group, log_esc(word));
	if (!begins)
		return err_set(err, ERR_INVALID, "unknown command %s", log_esc(word));
	c->group = word;
	return 0;
}

/* Report a group without its second word, naming the possible ones ("approve, list" after
 * "image"). */
static int refuse_group(const struct conf *c, struct err *err)
{
	cleanup_strbuf struct strbuf list = STRBUF_INIT;

	for (size_t i = 0; i < c->program->n_commands; i++) {
		const char *word = second_word(&c->program->commands[i], c->group);

		if (word)
			strbuf_addf(&list, "%s%s", list.len ? ", " : "", word);
	}
	return err_set(err, ERR_INVALID, "command %s needs one of %s", c->group, strbuf_str(&list));
}

/* Check that there is a command with its operands, and that every given option has an effect. A
 * silently ignored option would hide a mistake. */
static int check_command(struct conf *c, struct err *err)
{
	const struct conf_program *p = c->program;

	if (c->group && !c->command)
		return refuse_group(c, err);
	for (size_t i = 0; i < p->n_commands && !c->command; i++)
		if (!p->commands[i].name)
			c->command = &p->commands[i];
	if (!c->command)
		return p->n_commands ? err_set(err, ERR_INVALID, "no command") : 0;
	if (c->command->operand && c->command->operand[0] != '[' && wants_more(c) &&
		(!c->n_operands || !str_ends(c->command->operand, "...")))
		return err_set(err, ERR_INVALID, "command %s needs %s", c->command->name,
			c->command->operand);
	for (size_t i = 0; i < p->n_options; i++) {
		const struct conf_option *o = &p->options[i];

		if (!c->argv[i].n || o->type == CONF_ACTION || conf_takes(p, c->command, o->name))
			continue;
		return err_set(err, ERR_INVALID, "option --%s has no effect %s %s", o->name,
			c->command->name ? "with" : "without",
			c->command->name ? c->command->name : "a command");
	}
	return 0;
}

/* True if an option that not every program has is given on the command line. */
static bool given(const struct conf *c, const char *name)
{
	size_t i = lookup(c, name, strlen(name));

	return i < c->program->n_options && c->argv[i].n;
}

int conf_parse_argv(struct conf *c, int argc, char *const argv[], struct err *err)
{
	struct args a = {.argc = argc, .i = 1, .argv = argv, .err = err};

	for (; a.i < argc; a.i++) {
		const char *word = argv[a.i];
		size_t len = strcspn(word, "="), i;
		int rc;

		if (str_eq(word, "--"))
			return err_set(err, ERR_INVALID, "unexpected argument --");
		if (str_starts(word, "--")) {
			/* "--name" or "--name=value". Abbreviations are refused, because a new option
			 * could make them ambiguous. */
			i = lookup(c, word + 2, len - 2);
			if (i == c->program->n_options)
				return err_set(
					err, ERR_INVALID, "unknown option %s", log_escn(word, len));
			rc = take_option(c, &a, i, word[len] ? word + len + 1 : NULL);
		} else if (word[0] == '-' && word[1]) {
			rc = take_letters(c, &a, word);
		} else {
			rc = take_word(c, word, err);
		}
		if (rc < 0)
			return -1;
	}
	/* --help and --version need no command. */
	return given(c, "help") || given(c, "version") ? 0 : check_command(c, err);
}

/* ---- file */

/* Remove blanks from both ends, in place. A CR counts as a blank, so that files with CRLF line ends
 * work. */
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

/* Parse "name = value"; empty lines and lines that start with '#' are skipped. A '#' later in a
 * line is part of the value. */
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
		return err_set(err, ERR_INVALID, "missing '='");
	*eq = '\0';
	name = trim(line);
	text = trim(eq + 1);
	i = lookup(c, name, strlen(name));
	if (i == c->program->n_options)
		return err_set(err, ERR_INVALID, "unknown option %s", log_esc(name));
	o = &c->program->options[i];
	if (!conf_in_file(o))
		return err_set(err, ERR_INVALID, "option %s is for the command line only", o->name);
	if (values[i].n)
		return err_set(err, ERR_INVALID, "option %s is given twice", o->name);
	value_add(&values[i], text);
	return check_value(o, "", text, err);
}

/* Read into a new set of values and install it at the end: after an error the old configuration
 * stays in force. */
int conf_parse_file(struct conf *c, const char *path, struct err *err)
{
	size_t len;
	cleanup_free char *text = file_read(path, CONF_FILE_MAX, &len, NULL, err);
	struct value *values;
	unsigned number = 0;
	char *rest, *line;

	/* A NUL byte would end a line early, so it is refused. */
	if (text && (!utf8_valid(text, len) || memchr(text, '\0', len)))
		err_set(err, ERR_INVALID, "%s: not UTF-8 text", log_esc(path));
	if (err_is_set(err))
		return err_wrap(err, "configuration file");
	values = xcalloc(c->program->n_options, sizeof(*values));
	rest = text;
	while ((line = strsep(&rest, "\n"))) {
		number++;
		if (take_line(c, values, line, err) < 0) {
			values_free(values, c->program->n_options);
			return err_wrap(err, "%s line %u", path, number);
		}
	}
	/* On SIGHUP, warn about changed options that only take effect at start. An option that the
	 * command line overrides has no effect either way. */
	for (size_t i = 0; c->file_read && i < c->program->n_options; i++) {
		const struct conf_option *o = &c->program->options[i];

		if (!o->reloadable && !c->argv[i].n &&
			!str_eq(c->file[i].n ? c->file[i].text[0] : NULL,
				values[i].n ? values[i].text[0] : NULL))
			log_warn(NULL, "a changed option needs a restart", "option=%s",
				log_esc(o->name));
	}
	values_free(c->file, c->program->n_options);
	c->file = values;
	c->file_read = true;
	return 0;
}

/* ---- values */

/* A name that the table does not have is a typing error in this program. */
static size_t must_lookup(const struct conf *c, const char *name)
{
	size_t i = lookup(c, name, strlen(name));

	if (i == c->program->n_options)
		DIE("unknown option %s", name);
	return i;
}

size_t conf_command(const struct conf *c)
{
	return (size_t)(c->command - c->program->commands);
}

const char *conf_operand(const struct conf *c)
{
	return conf_operand_nth(c, 0);
}

const char *conf_operand_nth(const struct conf *c, size_t i)
{
	return i < c->n_operands ? c->operand[i] : NULL;
}

/* In order of precedence: command line, file, default. */
const char *conf_str(const struct conf *c, const char *name)
{
	size_t i = must_lookup(c, name);

	if (c->argv[i].n)
		return c->argv[i].text[0];
	return c->file[i].n ? c->file[i].text[0] : c->program->options[i].dflt;
}

const char *conf_nth(const struct conf *c, const char *name, size_t i)
{
	const struct value *v = &c->argv[must_lookup(c, name)];

	return i < v->n ? v->text[i] : NULL;
}

bool conf_bool(const struct conf *c, const char *name)
{
	const char *text = conf_str(c, name);

	if (c->program->options[must_lookup(c, name)].type != CONF_BOOL)
		return text != NULL;
	return str_eq(text, "true");
}

unsigned conf_choice(const struct conf *c, const char *name)
{
	int i = word_index(c->program->options[must_lookup(c, name)].choices, conf_str(c, name));

	if (i < 0) /* given values have been checked */
		DIE("the default of --%s is not one of its choices", name);
	return (unsigned)i;
}

/* Limits are part of the message, so that the user need not look them up. */
int conf_number(const struct conf *c, const char *name, uint64_t min, uint64_t max, uint64_t *out,
	struct err *err)
{
	const char *text = conf_str(c, name);

	if (text && str_to_u64(text, max, out) == 0 && *out >= min)
		return 0;
	return err_set(err, ERR_INVALID,
		"option --%s: %s is not a number from %" PRIu64 " to %" PRIu64, name, log_esc(text),
		min, max);
}

bool conf_is_set(const struct conf *c, const char *name)
{
	size_t i = must_lookup(c, name);

	return c->argv[i].n || c->file[i].n;
}

/* ---- text for people: --help and the sample configuration file */

/* Print text in lines of at most HELP_WIDTH bytes, each after `prefix`. Help texts are ASCII, so
 * bytes are columns. */
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

/* Print the option's forms, its help text and default. headings is false in the help of one
 * command, where groups would be short. */
static void print_option(const struct conf_option *o, FILE *out, bool headings)
{
	const char *arg = o->arg ? o->arg : "VALUE";

	if (headings && o->group)
		fprintf(out, "\n%s:\n", o->group);
	fprintf(out, "  --%s", o->name);
	if (o->type == CONF_BOOL)
		fputs("[=true|false]", out);
	else if (o->type == CONF_OPTIONAL)
		fprintf(out, "[=%s]", arg);
	else if (o->type == CONF_PAIR)
		fprintf(out, " %s", arg);
	else if (o->type != CONF_ACTION)
		fprintf(out, "=%s", arg);
	if (o->letter)
		fprintf(out, ", -%c", o->letter);
	if (o->letter && o->type != CONF_ACTION && o->type != CONF_BOOL)
		fprintf(out, " %s", arg);
	fputc('\n', out);
	print_wrapped(out, "        ", o->help);
	if (o->dflt)
		fprintf(out, "        Default: %s\n", *o->dflt ? o->dflt : "\"\"");
}

/* Each line of `usage` is one form; all but the first are indented below "Usage:". */
void conf_print_help(const struct conf_program *p, FILE *out)
{
	cleanup_free char *usage = xstrdup(p->usage);
	const char *before = "Usage:";
	char *rest = usage, *line;

	for (; (line = strsep(&rest, "\n")); before = "      ")
		fprintf(out, "%s %s %s\n", before, p->name, line);
	if (p->about)
		print_wrapped(out, "", p->about);
	if (p->n_commands)
		fputs("\nCommands:\n", out);
	for (size_t i = 0; i < p->n_commands; i++) {
		const struct conf_command *c = &p->commands[i];

		if (!c->name)
			continue;
		fprintf(out, "  %s%s%s\n", c->name, c->operand ? " " : "",
			c->operand ? c->operand : "");
		print_wrapped(out, "        ", c->help);
	}
	for (size_t i = 0; i < p->n_options; i++)
		print_option(&p->options[i], out, true);
	if (p->notes) {
		fputc('\n', out);
		print_wrapped(out, "", p->notes);
	}
}

/* Print the command's own options first, then those that every command accepts. */
void conf_print_command_help(const struct conf_program *p, const struct conf_command *c, FILE *out)
{
	fprintf(out, "Usage: %s %s%s%s [OPTION]...\n", p->name, c->name, c->operand ? " " : "",
		c->operand ? c->operand : "");
	print_wrapped(out, "", c->help);
	for (unsigned common = 0; common < 2; common++) {
		bool first = true;

		for (size_t i = 0; i < p->n_options; i++) {
			const struct conf_option *o = &p->options[i];
			/* An empty program has no common options, so this asks for the command's
			 * list alone. */
			bool own = c->options && conf_takes(&(struct conf_program){0}, c, o->name);

			if (common ? own || (!conf_takes(p, c, o->name) && o->type != CONF_ACTION)
				   : !own)
				continue;
			if (first)
				fprintf(out, "\n%s:\n", common ? "Common options" : "Options");
			first = false;
			print_option(o, out, false);
		}
	}
}

/* Every setting is commented out with its default, so that an unchanged sample configures
 * nothing. */
void conf_print_sample(const struct conf_program *p, FILE *out)
{
	for (size_t i = 0; i < p->n_options; i++) {
		const struct conf_option *o = &p->options[i];

		if (!conf_in_file(o))
			continue;
		print_wrapped(out, "# ", o->help);
		fprintf(out, "#%s =%s%s\n\n", o->name, o->dflt ? " " : "", o->dflt ? o->dflt : "");
	}
}

/* ---- a program's start */

enum conf_result conf_refuse(const struct conf *c, const struct err *err)
{
	fprintf(stderr, "%s: %s\nTry '%s --help'.\n", c->program->name, err->text,
		c->program->name);
	return CONF_BAD;
}

/* Errors in the file are reported like those of the command line: nothing runs with half a
 * configuration. */
enum conf_result conf_start(struct conf *c, int argc, char *const argv[])
{
	struct err err = ERR_INIT;

	if (conf_parse_argv(c, argc, argv, &err) < 0)
		return conf_refuse(c, &err);
	if (given(c, "help") && c->command && c->command->name)
		conf_print_command_help(c->program, c->command, stdout);
	else if (given(c, "help"))
		conf_print_help(c->program, stdout);
	else if (given(c, "version"))
		printf("%s %s\n", c->program->name, PACKAGE_VERSION);
	else if (given(c, "print-config"))
		conf_print_sample(c->program, stdout);
	else if (given(c, "config") && conf_parse_file(c, conf_str(c, "config"), &err) < 0)
		return conf_refuse(c, &err);
	else
		return CONF_RUN;
	return CONF_EXIT;
}
