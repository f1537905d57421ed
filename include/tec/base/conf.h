/* SPDX-License-Identifier: MIT */
/*
 * Options: one table describes a program's commands, its options, its configuration file (same
 * names, `name = value`, '#' comments) and --help, so they cannot drift. The command line wins over
 * the file, the file over the default.
 *
 * Options with these names are the same in every program, and conf_start() does what they say:
 * help, version, print-config (all CONF_ACTION) and config (CONF_FILE).
 */
#ifndef TEC_BASE_CONF_H
#define TEC_BASE_CONF_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "tec/base/err.h"

enum conf_type {
	CONF_STRING,
	CONF_CHOICE,   /* one of the words in `choices` */
	CONF_BOOL,     /* --name, --name=true|false */
	CONF_OPTIONAL, /* --name, --name=VALUE; without one it is "" */
	CONF_LIST,     /* command line only; takes a value and may be given several times */
	CONF_ACTION,   /* command line only, no value: --help, --version */
	CONF_PAIR,     /* command line only, takes two arguments: --seed SRC DST */
	CONF_FILE,     /* command line only, takes a value: --config FILE */
};

struct conf_option {
	const char *name; /* "listen-register" */
	enum conf_type type;
	const char *arg;     /* "ADDR:PORT", shown in --help */
	const char *dflt;    /* text, or NULL: unset */
	const char *help;    /* one sentence, wrapped by conf_print_help */
	const char *choices; /* "text, json" */
	const char *group;   /* heading in --help of this option and those after it */
	char letter;         /* 'v': -v is the same; 0: none */
	bool reloadable;     /* SIGHUP may change it */
};

/* Whether it may stand in a configuration file. */
static inline bool conf_in_file(const struct conf_option *o)
{
	return o->type == CONF_STRING || o->type == CONF_CHOICE || o->type == CONF_BOOL ||
	       o->type == CONF_OPTIONAL;
}

/* The first words that are not options: one, or two with a blank between ("image list"). */
struct conf_command {
	const char *name; /* "pcr11"; NULL: what the program does without a command */
	/* "UKI", "LOG DIR", "FILE...": the words that must come after it; "[UKI]": one that may;
	 * NULL: none may. */
	const char *operand;
	const char *help;
	const char
		*options; /* the names it takes, separated by blanks; CONF_ACTION is always taken */
};

struct conf_program {
	const char *name;  /* "tec-operator" */
	const char *usage; /* what comes after the name, one form per line */
	const char *about; /* one sentence; NULL: none */
	const char *notes; /* text after the options; NULL: none */
	const struct conf_option *options;
	size_t n_options;
	const struct conf_command *commands; /* NULL: none, and no word is accepted */
	size_t n_commands;
	const char *common; /* options that every command takes, separated by blanks; NULL: none */
	/* For completion, what operands can be: pairs of a command and the arguments with which this
	 * program prints them ("machine list -o name"), or, in parentheses, the words themselves. */
	const char *const (*values)[2];
	size_t n_values;
};

struct conf; /* the values; conf_new/conf_free */

struct conf *conf_new(const struct conf_program *program); /* borrowed, as is argv */
void conf_free(struct conf *c);

enum conf_result { CONF_RUN, CONF_EXIT, CONF_BAD };
/* The command line, then the file that --config names. EXIT: a question was answered, the exit
 * status is 0. BAD: the error is printed, the exit status is 2. */
enum conf_result conf_start(struct conf *c, int argc, char *const argv[]);
/* Prints the error and a hint to --help on standard error; CONF_BAD. */
enum conf_result conf_refuse(const struct conf *c, const struct err *err);

/*
 * Options are --name VALUE, --name=VALUE, -v, -vh, -rVALUE, -r=VALUE and -r VALUE. Refused with
 * ERR_INVALID naming it: what the table does not have, an option given twice or without its value,
 * and one that its command does not take.
 */
int conf_parse_argv(struct conf *c, int argc, char *const argv[], struct err *err) MUST_CHECK;
/* ERR_INVALID names file and line, ERR_NOT_FOUND the file. Values given on the command line stay.
 * Reading again forgets the old file; an error changes nothing. */
int conf_parse_file(struct conf *c, const char *path, struct err *err) MUST_CHECK;

/* Index in the program's commands; only of a program that has some, after conf_parse_argv(). */
size_t conf_command(const struct conf *c);
const char *conf_operand(const struct conf *c);               /* the first; NULL: there is none */
const char *conf_operand_nth(const struct conf *c, size_t i); /* NULL after the last */

/* NULL: unset. Borrowed until the next parse. */
const char *conf_str(const struct conf *c, const char *name);
/* Of a CONF_LIST all that were given, of a CONF_PAIR both arguments: the i-th, NULL after the last.
 */
const char *conf_nth(const struct conf *c, const char *name, size_t i);
bool conf_bool(const struct conf *c, const char *name);       /* other types: whether it is given */
unsigned conf_choice(const struct conf *c, const char *name); /* index in `choices` */
int conf_number(const struct conf *c, const char *name, uint64_t min, uint64_t max, uint64_t *out,
	struct err *err) MUST_CHECK;
bool conf_is_set(const struct conf *c, const char *name); /* by command line or file */

void conf_print_help(const struct conf_program *program, FILE *out);
/* Of one command: what `NAME COMMAND --help` prints. */
void conf_print_command_help(
	const struct conf_program *program, const struct conf_command *command, FILE *out);
/* Whether the command takes the option, by its own list or the program's. */
bool conf_takes(
	const struct conf_program *program, const struct conf_command *command, const char *option);
/* A script for this shell, from the same table: commands, options, choices, operands. */
enum conf_shell { CONF_BASH, CONF_ZSH, CONF_FISH };
void conf_print_completion(const struct conf_program *program, enum conf_shell shell, FILE *out);
/* The commented sample configuration file, as installed from etc/. */
void conf_print_sample(const struct conf_program *program, FILE *out);

#endif
