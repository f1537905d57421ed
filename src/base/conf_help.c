/* SPDX-License-Identifier: MIT */
/* Text for people from the table of options: --help and the sample configuration file. */
#include "config.h"

#include <string.h>

#include "tec/base/conf.h"
#include "tec/base/mem.h"

#define HELP_WIDTH 80

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
