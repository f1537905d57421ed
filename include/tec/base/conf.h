/* SPDX-License-Identifier: MIT */
/*
 * Options: one table describes the command line, the configuration file (same names, `name =
 * value`, '#' comments) and
 * --help, so they cannot drift. The command line wins over the file, the file over the default.
 */
#ifndef TEC_BASE_CONF_H
#define TEC_BASE_CONF_H

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

#include "tec/base/err.h"

enum conf_type {
	CONF_STRING,
	CONF_BOOL,     /* --name, --name=true|false */
	CONF_OPTIONAL, /* --name or --name=VALUE; without value: "" */
	CONF_ACTION,   /* command line only, no value: --help, --version */
	CONF_PAIR,     /* command line only, takes two arguments: --seed SRC DST */
	CONF_FILE,     /* command line only, takes a value: --config FILE */
};

struct conf_option {
	const char *name; /* "listen-register" */
	enum conf_type type;
	const char *arg;  /* "ADDR:PORT", shown in --help */
	const char *dflt; /* text, or NULL: unset */
	const char *help; /* one sentence, wrapped by conf_print_help */
	bool reloadable;  /* SIGHUP may change it */
};

struct conf; /* the values; conf_new/conf_free */

struct conf *conf_new(const struct conf_option *table, size_t n);
void conf_free(struct conf *c);
/* Everything after `--` or without `--` is an error. ERR_INVALID names the option. */
int conf_parse_argv(struct conf *c, int argc, char *const argv[], struct err *err) MUST_CHECK;
/* ERR_INVALID names file and line, ERR_NOT_FOUND the file. Values given on the command line stay.
 * Re-reading forgets the old file. */
int conf_parse_file(struct conf *c, const char *path, struct err *err) MUST_CHECK;

const char *conf_str(
	const struct conf *c, const char *name); /* NULL: unset; borrowed until the next parse */
const char *conf_second(
	const struct conf *c, const char *name); /* second argument of a CONF_PAIR */
bool conf_bool(const struct conf *c, const char *name);
bool conf_is_set(const struct conf *c, const char *name); /* by command line or file */

void conf_print_help(const struct conf_option *table, size_t n, FILE *out);
/* The commented sample configuration file, as installed from etc/. */
void conf_print_sample(const struct conf_option *table, size_t n, FILE *out);

#endif
