/* SPDX-License-Identifier: MIT */
/*
 * Generate completion scripts from the table of commands and options. Every script works alike. It
 * splits the words before the cursor into the words of the command ($command), an option whose value
 * is being completed ($option) and the options common to all commands, such as --context ($common).
 * From these it chooses fixed candidates ($words), or runs the program with the common options to
 * list operands ($list).
 *
 * Outline of the bash script; that of zsh is alike, and fish gets one declaration per candidate:
 *   for each word before the cursor:       set $command, $option, $common    print_posix_word()
 *   case $option in --NAME) ...            candidates of an option's value   print_posix_values()
 *   case "$command" in 'image list') ...   words and options that may follow print_posix_commands()
 *   words=$(PROGRAM "${common[@]}" $list)  operands, from the running system
 */
#include "config.h"

#include <string.h>

#include "tec/base/conf.h"
#include "tec/base/mem.h"
#include "tec/base/str.h"

static bool has_value(const struct conf_option *o)
{
	return o->type != CONF_ACTION && o->type != CONF_BOOL;
}

/* Complete file names for these options. */
static bool is_file(const struct conf_option *o)
{
	return o->type == CONF_FILE ||
	       (o->arg && (str_eq(o->arg, "FILE") || str_eq(o->arg, "DIR")));
}

/* Print the words of "a, b" as "a b". */
static void print_choices(const struct conf_option *o, FILE *out)
{
	for (const char *c = o->choices; *c; c++)
		if (*c != ',')
			fputc(*c, out);
}

/* Print text inside fish's single quotes, which know \' and \\. */
static void print_quoted(const char *text, FILE *out)
{
	for (; *text; text++) {
		if (*text == '\'' || *text == '\\')
			fputc('\\', out);
		fputc(*text, out);
	}
}

/* ---- candidates for the next word */

/* Return how the operands of a command are completed; NULL if nothing is known about them. */
static const char *values_of(const struct conf_program *p, const struct conf_command *c)
{
	for (size_t i = 0; i < p->n_values; i++)
		if (str_eq(p->values[i][0], c->name))
			return p->values[i][1];
	return NULL;
}

/* True for the first command that begins with this word of len bytes, so that each group is printed
 * once. */
static bool is_first(const struct conf_program *p, size_t i, size_t len)
{
	for (size_t k = 0; k < i; k++) {
		const char *name = p->commands[k].name;

		if (name && strncmp(name, p->commands[i].name, len) == 0 &&
			(name[len] == ' ' || name[len] == '\0'))
			return false;
	}
	return true;
}

/* Print the possible next words, each group once: with group "" the first words, with "image" its
 * second words. */
static void print_words(const struct conf_program *p, const char *group, FILE *out)
{
	size_t skip = strlen(group);
	const char *before = "";

	for (size_t i = 0; i < p->n_commands; i++) {
		const char *name = p->commands[i].name;
		size_t len;

		if (!name || (skip && (strncmp(name, group, skip) != 0 || name[skip] != ' ')))
			continue;
		len = strcspn(name + (skip ? skip + 1 : 0), " ");
		if (!skip && !is_first(p, i, len))
			continue;
		fprintf(out, "%s%.*s", before, (int)len, name + (skip ? skip + 1 : 0));
		before = " ";
	}
}

/* Return the group of command i if this is the first command of the group, else NULL; the caller
 * frees. */
static char *new_group(const struct conf_program *p, size_t i)
{
	const char *name = p->commands[i].name, *blank = name ? strchr(name, ' ') : NULL;

	if (!blank || !is_first(p, i, (size_t)(blank - name)))
		return NULL;
	return xstrndup(name, (size_t)(blank - name));
}

/* c is NULL before a command was given: then only --help and the like apply. The '=' tells the
 * script not to add a blank. */
static void print_options_of(const struct conf_program *p, const struct conf_command *c, FILE *out)
{
	const char *before = "";

	for (size_t i = 0; i < p->n_options; i++) {
		const struct conf_option *o = &p->options[i];

		if (o->type != CONF_ACTION && (!c || !conf_takes(p, c, o->name)))
			continue;
		fprintf(out, "%s--%s%s", before, o->name, has_value(o) ? "=" : "");
		before = " ";
	}
}

/* ---- bash and zsh: they differ in numbering words and returning candidates */

/* Print a case pattern of all options that take a value, or of the common ones only. Without any
 * the pattern is "--", which matches no option. */
static void print_value_patterns(const struct conf_program *p, FILE *out, bool common)
{
	const char *before = "";

	for (size_t i = 0; i < p->n_options; i++) {
		const struct conf_option *o = &p->options[i];

		if (!has_value(o) ||
			(common && !conf_takes(p, &(struct conf_command){.name = NULL}, o->name)))
			continue;
		fprintf(out, "%s--%s", before, o->name);
		before = "|";
		if (o->letter)
			fprintf(out, "|-%c", o->letter);
	}
	if (!*before)
		fputs("--", out);
}

/* Print the end of the loop over the words before the cursor, which classifies $word. */
static void print_posix_word(const struct conf_program *p, FILE *out)
{
	fputs("\t\tif [[ -n $option ]]; then\n"
	      "\t\t\tcase $option in ",
		out);
	print_value_patterns(p, out, true);
	fputs(") common+=(\"$option\" \"$word\") ;; esac\n"
	      "\t\t\toption=\n"
	      "\t\t\tcontinue\n"
	      "\t\tfi\n"
	      "\t\tcase $word in\n\t\t",
		out);
	print_value_patterns(p, out, false);
	fputs(") option=$word ;;\n"
	      "\t\t-*) ;;\n"
	      "\t\t*) command=${command:+$command }$word ;;\n"
	      "\t\tesac\n"
	      "\tdone\n",
		out);
}

/* Print how the value of $option is completed: fixed choices, file names, or nothing (":"). */
static void print_posix_values(const struct conf_program *p, FILE *out, const char *files)
{
	fputs("\tcase $option in\n", out);
	for (size_t i = 0; i < p->n_options; i++) {
		const struct conf_option *o = &p->options[i];

		if (!has_value(o))
			continue;
		fprintf(out, "\t--%s", o->name);
		if (o->letter)
			fprintf(out, "|-%c", o->letter);
		fputs(") ", out);
		if (o->choices) {
			fputs("words='", out);
			print_choices(o, out);
			fputs("'", out);
		} else {
			fputs(is_file(o) ? files : ":", out);
		}
		fputs(" ;;\n", out);
	}
	fputs("\tesac\n", out);
}

/* Print one case per command and group that sets $words, $options and $list. */
static void print_posix_commands(const struct conf_program *p, FILE *out)
{
	fputs("\tcase \"$command\" in\n\t'') words='", out);
	print_words(p, "", out);
	fputs("' options='", out);
	print_options_of(p, NULL, out);
	fputs("' ;;\n", out);
	for (size_t i = 0; i < p->n_commands; i++) {
		const struct conf_command *c = &p->commands[i];
		const char *values = values_of(p, c);
		cleanup_free char *group = new_group(p, i);

		if (group) {
			fprintf(out, "\t'%s') words='", group);
			print_words(p, group, out);
			fputs("' ;;\n", out);
		}
		if (!c->name)
			continue;
		fprintf(out, "\t'%s') options='", c->name);
		print_options_of(p, c, out);
		fputs("'", out);
		if (values && values[0] == '(')
			fprintf(out, " words='%.*s'", (int)strlen(values) - 2, values + 1);
		else if (values)
			fprintf(out, " list='%s'", values);
		fputs(" ;;\n", out);
	}
	fputs("\tesac\n", out);
}

/* bash splits words at '=' (COMP_WORDBREAKS), so "--name=value" arrives as three words and '=' is
 * skipped. */
static void print_bash(const struct conf_program *p, FILE *out)
{
	fprintf(out,
		"# bash completion of %s, made by it: %s completion bash\n"
		"_%s() {\n"
		"\tlocal cur=${COMP_WORDS[COMP_CWORD]} command= option= words= options= list= word i\n"
		"\tlocal -a common=()\n"
		"\tCOMPREPLY=()\n"
		"\t[[ $cur == = ]] && cur=\n"
		"\tfor ((i = 1; i < COMP_CWORD; i++)); do\n"
		"\t\tword=${COMP_WORDS[i]}\n"
		"\t\tif [[ $word == = ]]; then continue; fi\n",
		p->name, p->name, p->name);
	print_posix_word(p, out);
	print_posix_values(p, out, "COMPREPLY=($(compgen -f -- \"$cur\"))");
	fputs("\tif [[ ! $option ]]; then\n", out);
	print_posix_commands(p, out);
	fprintf(out,
		"\t\tif [[ $cur == -* ]]; then words=$options\n"
		"\t\telif [[ $list ]]; then words=$(%s \"${common[@]}\" $list 2>/dev/null); fi\n"
		"\tfi\n"
		"\t[[ $words ]] && COMPREPLY=($(compgen -W \"$words\" -- \"$cur\"))\n"
		"\t[[ ${COMPREPLY[0]-} == *= ]] && compopt -o nospace 2>/dev/null\n"
		"\treturn 0\n"
		"}\n"
		"complete -F _%s %s\n",
		p->name, p->name, p->name);
}

/* zsh does not split at '='; compset -P removes "--name=" from what is completed. The last line
 * lets the script be both autoloaded and sourced. */
static void print_zsh(const struct conf_program *p, FILE *out)
{
	fprintf(out,
		"#compdef %s\n"
		"# zsh completion of %s, made by it: %s completion zsh\n"
		"_%s() {\n"
		"\tlocal cur=$PREFIX command= option= list= options= word i\n"
		"\tlocal -a common\n"
		"\tlocal line=(\"${words[@]}\") words=\n"
		"\tif [[ $cur == --*=* ]]; then option=${cur%%%%=*}; compset -P '*='; fi\n"
		"\tfor ((i = 2; i < CURRENT && ! ${#${(M)cur:#--*=*}}; i++)); do\n"
		"\t\tword=${line[i]}\n",
		p->name, p->name, p->name, p->name);
	print_posix_word(p, out);
	print_posix_values(p, out, "_files && return");
	fputs("\tif [[ -z $option ]]; then\n", out);
	print_posix_commands(p, out);
	fprintf(out,
		"\t\tif [[ $cur == -* ]]; then words=$options\n"
		"\t\telif [[ -n $list ]]; then words=$(%s \"${common[@]}\" ${=list} 2>/dev/null); fi\n"
		"\tfi\n"
		"\tlocal -a plain open\n"
		"\tplain=(${${=words}:#*=}) open=(${(M)${=words}:#*=})\n"
		"\t(( $#plain )) && compadd -- $plain\n"
		"\t(( $#open )) && compadd -S '' -- $open\n"
		"}\n"
		"if [[ $funcstack[1] == _%s ]]; then _%s \"$@\"; else compdef _%s %s; fi\n",
		p->name, p->name, p->name, p->name, p->name);
}

/* ---- fish */

/* fish needs one "complete" command per option; the condition restricts it to the commands that
 * accept it. */
static void print_fish_option(const struct conf_program *p, const struct conf_option *o, FILE *out)
{
	fprintf(out, "complete -c %s -l %s", p->name, o->name);
	if (o->letter)
		fprintf(out, " -s %c", o->letter);
	if (o->type != CONF_ACTION) {
		fprintf(out, " -n \"__%s_takes", p->name);
		for (size_t i = 0; i < p->n_commands; i++)
			if (p->commands[i].name && conf_takes(p, &p->commands[i], o->name))
				fprintf(out, " '%s'", p->commands[i].name);
		fputs("\"", out);
	}
	if (has_value(o))
		fputs(is_file(o) ? " -rF" : " -x", out);
	if (o->choices) {
		fputs(" -a '", out);
		print_choices(o, out);
		fputs("'", out);
	}
	fputs(" -d '", out);
	print_quoted(o->help, out);
	fputs("'\n", out);
}

/* Offer the command's word, its group before it, and its operands after it. */
static void print_fish_command(const struct conf_program *p, size_t i, FILE *out)
{
	const struct conf_command *c = &p->commands[i];
	const char *blank = strchr(c->name, ' '), *values = values_of(p, c);
	cleanup_free char *group = new_group(p, i);

	if (group)
		fprintf(out, "complete -c %s -n \"__%s_at ''\" -a %s\n", p->name, p->name, group);
	fprintf(out, "complete -c %s -n \"__%s_at '%.*s'\" -a %s -d '", p->name, p->name,
		blank ? (int)(blank - c->name) : 0, c->name, blank ? blank + 1 : c->name);
	print_quoted(c->help, out);
	fputs("'\n", out);
	if (!values)
		return;
	fprintf(out, "complete -c %s -n \"__%s_at '%s'\" -a '", p->name, p->name, c->name);
	if (values[0] == '(')
		fprintf(out, "%.*s'\n", (int)strlen(values) - 2, values + 1);
	else
		fprintf(out, "(%s (__%s_common) %s 2>/dev/null)'\n", p->name, p->name, values);
}

/* Define the helper functions __NAME_words, _common, _at and _takes, then one "complete" per
 * command and option. */
static void print_fish(const struct conf_program *p, FILE *out)
{
	fprintf(out,
		"# fish completion of %s, made by it: %s completion fish\n"
		"# The command's words before the cursor; with an argument, the common options instead.\n"
		"function __%s_words\n"
		"\tset -l words\n\tset -l common\n\tset -l option\n"
		"\tfor word in (commandline -opc)[2..]\n"
		"\t\tif test -n \"$option\"\n"
		"\t\t\tstring match -qr '^(",
		p->name, p->name, p->name);
	print_value_patterns(p, out, true);
	fputs(")$' -- $option; and set -a common $option $word\n"
	      "\t\t\tset option\n"
	      "\t\telse if string match -qr '^(",
		out);
	print_value_patterns(p, out, false);
	fprintf(out,
		")$' -- $word\n"
		"\t\t\tset option $word\n"
		"\t\telse if not string match -q -- '-*' $word\n"
		"\t\t\tset -a words $word\n"
		"\t\tend\n"
		"\tend\n"
		"\tif set -q argv[1]; printf '%%s\\n' $common; else; string join ' ' -- $words; end\n"
		"end\n"
		"function __%s_common; __%s_words common; end\n"
		"function __%s_at; set -l at (__%s_words); test \"$at\" = \"$argv[1]\"; end\n"
		"function __%s_takes\n"
		"\tset -l at (__%s_words)\n"
		"\tfor command in $argv\n"
		"\t\tstring match -q -- \"$command *\" \"$at \"; and return 0\n"
		"\tend\n"
		"\treturn 1\n"
		"end\n"
		"complete -c %s -f\n",
		p->name, p->name, p->name, p->name, p->name, p->name, p->name);
	for (size_t i = 0; i < p->n_commands; i++)
		if (p->commands[i].name)
			print_fish_command(p, i, out);
	for (size_t i = 0; i < p->n_options; i++)
		print_fish_option(p, &p->options[i], out);
}

void conf_print_completion(const struct conf_program *p, enum conf_shell shell, FILE *out)
{
	static void (*const print[])(const struct conf_program *, FILE *) = {
		[CONF_BASH] = print_bash, [CONF_ZSH] = print_zsh, [CONF_FISH] = print_fish};

	print[shell](p, out);
}
