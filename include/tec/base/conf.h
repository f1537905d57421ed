/* SPDX-License-Identifier: MIT */
/*
 * Options: one table describes a program's commands, its options, its configuration file (the same
 * names, `name = value`, '#' comments) and --help, so that they cannot drift apart. The command line
 * overrides the file, and the file overrides the default.
 *
 * Four options have the same meaning in every program, and conf_start() implements them: help,
 * version, print-config (all CONF_ACTION) and config (CONF_FILE).
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
	CONF_OPTIONAL, /* --name, --name=VALUE; the value defaults to "" */
	CONF_LIST,     /* command line only; takes a value and may be repeated */
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
	const char *group;   /* --help prints this heading before the option; NULL: none */
	char letter;         /* 'v': -v is an alias; 0: none */
	bool reloadable;     /* SIGHUP may change it */
};

/* True if the option is permitted in a configuration file. */
static inline bool conf_in_file(const struct conf_option *o)
{
	return o->type == CONF_STRING || o->type == CONF_CHOICE || o->type == CONF_BOOL ||
	       o->type == CONF_OPTIONAL;
}

/* The first words that are not options: one, or two separated by a blank ("image list"). */
struct conf_command {
	const char *name; /* "pcr11"; NULL: the behaviour without a command */
	/* "UKI", "LOG DIR", "FILE...": required words; "[UKI]": an optional one; NULL: no word is
	 * accepted. */
	const char *operand;
	const char *help;
	const char
		*options; /* accepted names, separated by blanks; CONF_ACTION is always accepted */
};

struct conf_program {
	const char *name;  /* "tec-operator" */
	const char *usage; /* synopsis after the program's name, one form per line */
	const char *about; /* one sentence; NULL: none */
	const char *notes; /* text after the options; NULL: none */
	const struct conf_option *options;
	size_t n_options;
	const struct conf_command *commands; /* NULL: none, and no word is accepted */
	size_t n_commands;
	const char *common; /* options of every command, separated by blanks; NULL: none */
	/* Completion of operands: pairs of a command and the arguments with which this program lists
	 * candidates ("machine list -o name"), or, in parentheses, the words themselves. */
	const char *const (*values)[2];
	size_t n_values;
};

struct conf; /* the parsed values */

struct conf *conf_new(const struct conf_program *program); /* borrowed, as is argv */
void conf_free(struct conf *c);

enum conf_result { CONF_RUN, CONF_EXIT, CONF_BAD };
/* Parse the command line, then the file that --config names. EXIT: the request was answered (--help,
 * --version), exit with status 0. BAD: the error has been printed, exit with status 2. */
enum conf_result conf_start(struct conf *c, int argc, char *const argv[]);
/* Print the error and a hint to --help on standard error; returns CONF_BAD. */
enum conf_result conf_refuse(const struct conf *c, const struct err *err);

/*
 * Option forms are --name VALUE, --name=VALUE, -v, -vh, -rVALUE, -r=VALUE and -r VALUE. ERR_INVALID
 * names the offender: an unknown word, an option that is repeated or lacks its value, or one that the
 * command does not accept.
 */
int conf_parse_argv(struct conf *c, int argc, char *const argv[], struct err *err) MUST_CHECK;
/* ERR_INVALID names file and line, ERR_NOT_FOUND the file. Values from the command line are kept.
 * Reading again replaces the values of the old file; after an error nothing has changed. */
int conf_parse_file(struct conf *c, const char *path, struct err *err) MUST_CHECK;

/* Index in the program's commands; valid after conf_parse_argv() if the program has commands. */
size_t conf_command(const struct conf *c);
const char *conf_operand(const struct conf *c);               /* the first, or NULL */
const char *conf_operand_nth(const struct conf *c, size_t i); /* NULL after the last */

/* NULL: unset. Borrowed until the next parse. */
const char *conf_str(const struct conf *c, const char *name);
/* The i-th value of a CONF_LIST or argument of a CONF_PAIR; NULL after the last. */
const char *conf_nth(const struct conf *c, const char *name, size_t i);
bool conf_bool(const struct conf *c, const char *name);       /* other types: true if given */
unsigned conf_choice(const struct conf *c, const char *name); /* index in `choices` */
int conf_number(const struct conf *c, const char *name, uint64_t min, uint64_t max, uint64_t *out,
	struct err *err) MUST_CHECK;
bool conf_is_set(const struct conf *c, const char *name); /* by command line or file */

void conf_print_help(const struct conf_program *program, FILE *out);
/* The output of `NAME COMMAND --help`. */
void conf_print_command_help(
	const struct conf_program *program, const struct conf_command *command, FILE *out);
/* True if the command accepts the option, by its own list or the program's. */
bool conf_takes(
	const struct conf_program *program, const struct conf_command *command, const char *option);
/* Print a completion script from the same table: commands, options, choices, operands. */
enum conf_shell { CONF_BASH, CONF_ZSH, CONF_FISH };
void conf_print_completion(const struct conf_program *program, enum conf_shell shell, FILE *out);
/* Print the commented sample configuration file, as installed from etc/. */
void conf_print_sample(const struct conf_program *program, FILE *out);

#endif
