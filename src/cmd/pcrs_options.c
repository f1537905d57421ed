/* SPDX-License-Identifier: MIT */
/*
 * The commands and what each takes are a table; a first pass takes the command and its file out of
 * the arguments and spells short options out, the rest is base/conf's. An option that means nothing
 * to a command is refused: who gives it expects an effect.
 */
#include "config.h"

#include "pcrs_options.h"

#include <stdio.h>
#include <string.h>

#include "tec/base/log.h"
#include "tec/base/mem.h"
#include "tec/base/str.h"
#include "tec/kobj/key.h"
#include "tec/model/image.h"
#include "tec/model/pcrmsg.h"

#define REFERENCE_MAX 1024
#define PLATFORM      "platform" /* the one option that may stand there more than once */

static const struct conf_option table[] = {
	{"rootfs", CONF_STRING, "DIR", NULL,
		"Root of the image's files; also -r DIR. Default: /, with --image /image.", false},
	{"efivars", CONF_STRING, "DIR", NULL,
		"Firmware variables of the nodes' platform as efivarfs shows them (PK-..., KEK-..., db-..., dbx-..., SecureBoot-...). Without: no PCR 7.",
		false},
	{"mok-variables", CONF_STRING, "DIR", NULL,
		"MokListRT, MokListXRT and MokListTrustedRT as in /sys/firmware/efi/mok-variables. Without: derived from shim, as on a node without enrolled keys.",
		false},
	{"uki", CONF_BOOL, "BOOL", "false",
		"The second stage is a unified kernel image. It is also found out.", false},
	{"secureboot-disabled", CONF_BOOL, "BOOL", NULL,
		"The nodes run without Secure Boot; =false: with it, whatever the firmware variables say. Default: what they say, on without them.",
		false},
	{"all-kernels", CONF_BOOL, "BOOL", "false",
		"Offer every kernel of the image, newest first, not only the newest.", false},
	{"variants", CONF_BOOL, "BOOL", "false",
		"Also print every value set the image can legitimately show, each with when it does.",
		false},
	{"explain", CONF_BOOL, "BOOL", "false",
		"Say on standard error which file made which event; also -v.", false},
	{"image", CONF_STRING, "REF", NULL,
		"As the operator's Job, without a command: compute PCR 4 and 14 of the image with this reference, which ends in its digest, and write them as the container's termination message.",
		false},
	{"nonce", CONF_STRING, "HEX", NULL, "With --image: 32 hexadecimal digits for the message.",
		false},
	{"result", CONF_STRING, "FILE", "/dev/termination-log",
		"With --image: where the message goes.", false},
	{PLATFORM, CONF_STRING, "NAME=DIR", NULL,
		"With --image: also compute PCR 7 on the platform NAME, whose firmware variables are in DIR as for --efivars; up to eight times.",
		false},
	{"verbose", CONF_ACTION, NULL, NULL, "The same as --explain.", false},
	{"version", CONF_ACTION, NULL, NULL, "Print the version and exit; also -V.", false},
	{"help", CONF_ACTION, NULL, NULL, "Print this help and exit; also -h.", false},
};

static const struct {
	const char *name, *file, *options, *help;
} commands[PCRS_N_COMMANDS] = {
	[PCRS_ALL] = {"all", NULL,
		"rootfs efivars mok-variables uki secureboot-disabled all-kernels variants explain",
		"PCRs 4, 7 and 14 of an image"},
	[PCRS_PCR4] = {"pcr4", NULL,
		"rootfs efivars uki secureboot-disabled all-kernels variants explain",
		"what was started: shim, second stage, kernel"},
	[PCRS_PCR7] = {"pcr7", NULL,
		"rootfs efivars mok-variables uki secureboot-disabled all-kernels variants explain",
		"Secure Boot state, and who vouched for what was started (needs --efivars)"},
	[PCRS_PCR11] = {"pcr11", "UKI", "explain", "sections of a unified kernel image"},
	[PCRS_PCR14] = {"pcr14", NULL, "rootfs mok-variables explain", "machine owner keys"},
	[PCRS_VERIFY] = {"verify", "EVENTLOG",
		"rootfs efivars mok-variables uki secureboot-disabled all-kernels explain",
		"hold a node's event log against the prediction: the first event that differs, or that it matches"},
	[PCRS_JOB] = {NULL, NULL, "rootfs explain image nonce result", NULL},
};

/* ---- first pass */

struct words {
	char **v; /* owned array of borrowed words, for base/conf */
	int n;
	const char *command, *file;
	bool verbose;
};

static bool takes_value(const char *arg)
{
	for (size_t i = 0; i < ARRAY_LEN(table); i++)
		if (table[i].type == CONF_STRING && str_eq(arg + 2, table[i].name))
			return true;
	return false;
}

/* Clusters of v, h and V; r takes the rest or the next word. */
static int take_short(struct words *w, int argc, char *const argv[], int *i, struct err *err)
{
	static char rootfs[] = "--rootfs", help[] = "--help", version[] = "--version";

	for (const char *p = argv[*i] + 1; *p; p++) {
		if (*p == 'r') {
			w->v[w->n++] = rootfs;
			if (p[1])
				w->v[w->n++] = argv[*i] + (p + 1 - argv[*i]) + (p[1] == '=');
			else if (*i + 1 < argc)
				w->v[w->n++] = argv[++*i];
			return 0;
		}
		if (*p == 'v')
			w->verbose = true;
		else if (*p == 'h')
			w->v[w->n++] = help;
		else if (*p == 'V')
			w->v[w->n++] = version;
		else
			return err_set(err, ERR_INVALID, "unknown option %s", log_esc(argv[*i]));
	}
	return 0;
}

static int take_platform(struct pcrs_options *o, const char *text, struct err *err)
{
	const char *dir = strchr(text, '=');
	size_t len = dir ? (size_t)(dir - text) : 0;

	if (!dir || !dir[1] || !kobj_name_valid(text, len))
		return err_set(err, ERR_INVALID,
			"--" PLATFORM " needs NAME=DIR, the name being one of an object: %s",
			log_esc(text));
	for (size_t i = 0; i < o->n_platforms; i++)
		if (strlen(o->platform[i].name) == len &&
			memcmp(o->platform[i].name, text, len) == 0)
			return err_set(err, ERR_INVALID, "--" PLATFORM " %s is there twice",
				o->platform[i].name);
	if (o->n_platforms == MODEL_PLATFORMS_MAX)
		return err_set(err, ERR_INVALID, "--" PLATFORM " is there more than %d times",
			MODEL_PLATFORMS_MAX);
	o->platform[o->n_platforms++] =
		(struct pcrs_platform){xasprintf("%.*s", (int)len, text), dir + 1};
	return 0;
}

static int split_words(
	struct pcrs_options *o, struct words *w, int argc, char *const argv[], struct err *err)
{
	/* A short option becomes two words at most per letter. */
	size_t room = 2;

	for (int i = 0; i < argc; i++)
		room += 2 + strlen(argv[i]);
	w->v = xcalloc(room, sizeof(*w->v));
	if (argc)
		w->v[w->n++] = argv[0];
	for (int i = 1; i < argc; i++) {
		if (argv[i][0] == '-' && argv[i][1] && argv[i][1] != '-') {
			if (take_short(w, argc, argv, &i, err) < 0)
				return -1;
		} else if (str_eq(argv[i], "--verbose")) {
			w->verbose = true;
		} else if (str_eq(argv[i], "--" PLATFORM) && i + 1 < argc) {
			if (take_platform(o, argv[++i], err) < 0)
				return -1;
		} else if (str_starts(argv[i], "--" PLATFORM "=")) {
			if (take_platform(o, argv[i] + strlen("--" PLATFORM "="), err) < 0)
				return -1;
		} else if (str_starts(argv[i], "--")) {
			w->v[w->n++] = argv[i];
			if (takes_value(argv[i]) && i + 1 < argc)
				w->v[w->n++] = argv[++i];
		} else if (!w->command) {
			w->command = argv[i];
		} else if (!w->file) {
			w->file = argv[i];
		} else {
			return err_set(
				err, ERR_INVALID, "unexpected argument %s", log_esc(argv[i]));
		}
	}
	return 0;
}

/* ---- checks */

static int find_command(struct pcrs_options *o, const struct words *w, struct err *err)
{
	int i;

	o->command = PCRS_JOB;
	if (!w->command) {
		if (conf_is_set(o->conf, "image") || conf_is_set(o->conf, "nonce"))
			return 0;
		return err_set(err, ERR_INVALID,
			"no command: all, pcr4, pcr7, pcr11, pcr14 or verify, or --image and --nonce");
	}
	for (i = 0; i < PCRS_JOB && !str_eq(w->command, commands[i].name); i++)
		;
	if (i == PCRS_JOB)
		return err_set(err, ERR_INVALID, "unknown command %s", log_esc(w->command));
	o->command = (enum pcrs_command)i;
	o->file = w->file;
	if (!o->file && commands[i].file)
		return err_set(err, ERR_INVALID, "%s needs a file: %s %s", commands[i].name,
			commands[i].name, commands[i].file);
	if (o->file && !commands[i].file)
		return err_set(err, ERR_INVALID, "unexpected argument %s", log_esc(o->file));
	return 0;
}

static bool allows(enum pcrs_command c, const char *option)
{
	const char *p = commands[c].options;
	size_t len = strlen(option);

	while ((p = strstr(p, option))) {
		if ((p == commands[c].options || p[-1] == ' ') && (!p[len] || p[len] == ' '))
			return true;
		p += len;
	}
	return false;
}

static int check_options(const struct pcrs_options *o, struct err *err)
{
	const char *name = commands[o->command].name;

	for (size_t i = 0; i < ARRAY_LEN(table); i++) {
		const char *option = table[i].name;

		if (table[i].type == CONF_ACTION || !conf_is_set(o->conf, option))
			continue;
		if (!allows(o->command, option))
			return err_set(err, ERR_INVALID, "option --%s has no effect with %s",
				option, name ? name : "--image");
		if (table[i].type == CONF_STRING && !*conf_str(o->conf, option))
			return err_set(err, ERR_INVALID, "option --%s is empty", option);
	}
	if (o->n_platforms && o->command != PCRS_JOB)
		return err_set(
			err, ERR_INVALID, "option --" PLATFORM " has no effect with %s", name);
	if (o->command == PCRS_PCR7 && !o->efivars)
		return err_set(
			err, ERR_INVALID, "pcr7 needs --efivars DIR: it holds the firmware's keys");
	if (o->command != PCRS_JOB)
		return 0;
	if (!o->image || strlen(o->image) > REFERENCE_MAX || !o->digest)
		return err_set(err, ERR_INVALID,
			"--image needs a reference that ends in @sha256: and 64 hexadecimal digits, at most %d bytes",
			REFERENCE_MAX);
	if (!model_pcrmsg_nonce_valid(o->nonce))
		return err_set(err, ERR_INVALID, "--nonce needs %d hexadecimal digits, lower case",
			MODEL_PCRMSG_NONCE_LEN);
	return 0;
}

static void read_values(struct pcrs_options *o)
{
	o->rootfs = conf_str(o->conf, "rootfs");
	if (!o->rootfs)
		o->rootfs = o->command == PCRS_JOB ? "/image" : "/";
	o->efivars = conf_str(o->conf, "efivars");
	o->mok_variables = conf_str(o->conf, "mok-variables");
	o->uki = conf_bool(o->conf, "uki");
	o->all_kernels = conf_bool(o->conf, "all-kernels");
	o->variants = conf_bool(o->conf, "variants");
	o->secure_boot = BOOT_SB_FROM_EFIVARS;
	if (conf_is_set(o->conf, "secureboot-disabled"))
		o->secure_boot =
			conf_bool(o->conf, "secureboot-disabled") ? BOOT_SB_OFF : BOOT_SB_ON;
	o->image = conf_str(o->conf, "image");
	o->digest = o->image ? model_image_digest(o->image) : NULL;
	o->nonce = conf_str(o->conf, "nonce");
	o->result = conf_str(o->conf, "result");
}

static void print_help(void)
{
	printf("Usage: tec-compute-pcrs COMMAND [OPTION]...\n"
	       "       tec-compute-pcrs --image=REF --nonce=HEX [OPTION]...\n"
	       "Computes from an operating system image's files which PCR values its nodes will show.\n\n"
	       "Commands:\n");
	for (int i = 0; i < PCRS_JOB; i++)
		printf("  %s%s%s\n        %s\n", commands[i].name, commands[i].file ? " " : "",
			commands[i].file ? commands[i].file : "", commands[i].help);
	printf("\nOptions:\n");
	conf_print_help(table, ARRAY_LEN(table), stdout);
	printf("\nExit status: 0 done (verify: it matches), 1 it failed (verify: it differs), 2 usage,\n3 the values do not fit into the Job's message.\n");
}

static enum pcrs_result bad(const struct err *err)
{
	fprintf(stderr, "tec-compute-pcrs: %s\nTry 'tec-compute-pcrs --help'.\n", err->text);
	return PCRS_BAD;
}

static enum pcrs_result read_all(struct pcrs_options *o, const struct words *w, struct err *err)
{
	if (conf_parse_argv(o->conf, w->n, w->v, err) < 0)
		return bad(err);
	if (conf_bool(o->conf, "help")) {
		print_help();
		return PCRS_EXIT;
	}
	if (conf_bool(o->conf, "version")) {
		printf("tec-compute-pcrs %s\n", PACKAGE_VERSION);
		return PCRS_EXIT;
	}
	if (find_command(o, w, err) < 0)
		return bad(err);
	read_values(o);
	o->explain = conf_bool(o->conf, "explain") || w->verbose;
	return check_options(o, err) < 0 ? bad(err) : PCRS_RUN;
}

enum pcrs_result pcrs_options_read(struct pcrs_options *o, int argc, char *const argv[])
{
	struct words w = {0};
	struct err err = ERR_INIT;
	enum pcrs_result result;

	*o = (struct pcrs_options){.conf = conf_new(table, ARRAY_LEN(table))};
	if (split_words(o, &w, argc, argv, &err) < 0)
		result = bad(&err);
	else
		result = read_all(o, &w, &err);
	free(w.v);
	return result;
}

void pcrs_options_fini(struct pcrs_options *o)
{
	conf_free(o->conf);
	for (size_t i = 0; i < o->n_platforms; i++)
		free(o->platform[i].name);
}
