/* SPDX-License-Identifier: MIT */
/* Commands, options and the options of each command are tables for base/conf; the functions
 * check the values. */
#include "config.h"

#include "pcrs_options.h"

#include <string.h>

#include "tec/base/log.h"
#include "tec/base/mem.h"
#include "tec/base/str.h"
#include "tec/kobj/key.h"
#include "tec/model/image.h"
#include "tec/model/pcrmsg.h"

#define REFERENCE_MAX 1024
#define TIMEOUT_S     "720" /* the Job has 900 s in all */
#define FETCHING      " into registry-mirror insecure-registry registry-auth registry-ca arch timeout"

static const struct conf_option table[] = {
	{"rootfs", CONF_STRING, "DIR", .group = "Options", .letter = 'r',
		.help = "Root of the image's files. Default: /, with --image /image."},
	{"efivars", CONF_STRING, "DIR",
		.help = "Firmware variables of the nodes' platform as efivarfs shows them (PK-..., KEK-..., db-..., dbx-..., SecureBoot-...). Without: no PCR 7."},
	{"efivars-from-log", CONF_OPTIONAL, "LOG",
		.help = "Take the firmware variables from a node's event log, which holds them; verify does so with its own log when --efivars is not given."},
	{"mok-variables", CONF_STRING, "DIR",
		.help = "A node's /sys/firmware/efi/mok-variables, of which MokListRT, MokListXRT, MokListTrustedRT and MokSBStateRT are read. Without: derived from shim, as on a node without enrolled keys."},
	{"allow-validation-disabled", CONF_BOOL, "BOOL", "false",
		.help = "Accept MOK variables of a node whose shim does not validate what it starts (mokutil --disable-validation): its PCR 4 does not show which kernel runs."},
	{"boot-path", CONF_CHOICE, "WHAT", "Strict",
		.choices = "Strict, AllowFailedEntries, AllowFirmwareUpdates",
		.help = "What may come before the image's boot loader: nothing, up to two boot entries that failed, or also fwupd's program if the image ships it."},
	{"profile", CONF_STRING, "N", "0",
		.help = "Which profile of a unified kernel image is booted; 0 is the first one."},
	{"uki", CONF_BOOL, "BOOL", "false",
		.help = "The second stage is a unified kernel image. One that has the usual sections is recognized without this option."},
	{"secureboot-disabled", CONF_BOOL, "BOOL",
		.help = "The nodes run without Secure Boot; =false: with it, whatever the firmware variables say. Default: what they say, on without them."},
	{"all-kernels", CONF_BOOL, "BOOL", "false",
		.help = "Offer every kernel of the image, newest first, not only the newest."},
	{"variants", CONF_BOOL, "BOOL", "false",
		.help = "Also print every set of values that the image can legitimately show, each with its condition."},
	{"explain", CONF_BOOL, "BOOL", "false",
		.help = "Print on standard error which file caused which event."},
	{"image", CONF_STRING, "REF",
		.help = "Fetch the image with this reference from its registry instead of reading --rootfs. Without a command, as the operator's Job: compute PCR 4 and 14 of the image with this reference, which ends in its digest, and write them as the container's termination message."},
	{"nonce", CONF_STRING, "HEX",
		.help = "Without a command: 32 hexadecimal digits for the message."},
	{"result", CONF_STRING, "FILE", "/dev/termination-log",
		.help = "Without a command: where the message goes."},
	{"platform", CONF_LIST, "NAME=DIR",
		.help = "Without a command: also compute what is other on the platform NAME, whose variables are in DIR, as for --efivars, --mok-variables or both; up to eight times."},
	{"into", CONF_STRING, "DIR", .group = "Fetching an image",
		.help = "Put the files that are needed into this directory, which must be empty, and leave them there. Without: they are deleted in the end."},
	{"registry-mirror", CONF_STRING, "LIST",
		.help = "REGISTRY=HOST[:PORT][/PREFIX],...: hosts that are tried first for a registry's images, in this order."},
	{"insecure-registry", CONF_STRING, "LIST",
		.help = "HOST[:PORT],...: registries, mirrors and token servers to reach over plain HTTP."},
	{"registry-auth", CONF_STRING, "FILE",
		.help = "Credentials of registries as in a Secret's .dockerconfigjson; none if the file does not exist."},
	{"registry-ca", CONF_STRING, "FILE",
		.help = "PEM certificates to trust instead of the system's; the system's if the file does not exist."},
	{"arch", CONF_STRING, "ARCH", REGISTRIES_ARCH,
		.help = "Of an image for several architectures: amd64, arm64..."},
	{"timeout", CONF_STRING, "SECONDS", TIMEOUT_S, .help = "For all of the image."},
	{"verbose", CONF_ACTION, .group = "Other options", .letter = 'v',
		.help = "The same as --explain."},
	{"version", CONF_ACTION, .letter = 'V', .help = "Print the version and exit."},
	{"help", CONF_ACTION, .letter = 'h', .help = "Print this help and exit."},
};

static const struct conf_command commands[] = {
	[PCRS_ALL] = {"all", NULL, "PCRs 4, 7 and 14 of an image",
		"rootfs efivars efivars-from-log mok-variables uki secureboot-disabled all-kernels variants explain allow-validation-disabled boot-path image" FETCHING},
	[PCRS_PCR4] = {"pcr4", NULL, "what was started: shim, second stage, kernel",
		"rootfs efivars efivars-from-log mok-variables uki secureboot-disabled all-kernels variants explain allow-validation-disabled boot-path image" FETCHING},
	[PCRS_PCR7] = {"pcr7", NULL,
		"Secure Boot state, and whose certificates vouched for what was started (needs --efivars)",
		"rootfs efivars efivars-from-log mok-variables uki secureboot-disabled all-kernels variants explain allow-validation-disabled image" FETCHING},
	[PCRS_PCR11] = {"pcr11", "UKI", "sections of a unified kernel image", "explain profile"},
	[PCRS_PCR14] = {"pcr14", NULL, "machine owner keys",
		"rootfs mok-variables explain allow-validation-disabled image" FETCHING},
	[PCRS_VERIFY] = {"verify", "EVENTLOG",
		"compare a node's event log with the prediction: the first event that differs in each register, or that it matches",
		"rootfs efivars efivars-from-log mok-variables uki secureboot-disabled all-kernels explain allow-validation-disabled boot-path image" FETCHING},
	[PCRS_FETCH] = {"fetch", "REF",
		"from its registry, the files of an image that the other commands read; without --into only its reference with the digest",
		FETCHING},
	[PCRS_DIGEST] = {"digest", "FILE...",
		"Authenticode SHA-256 of programs, as firmware measures them", ""},
	[PCRS_EXTRACT_VARS] = {"extract-vars", "LOG DIR",
		"the firmware variables that an event log holds, as files for --efivars or a platform's ConfigMap",
		""},
	[PCRS_JOB] = {.options = "rootfs explain image nonce result platform" FETCHING},
};

static const struct conf_program program = {
	.name = "tec-compute-pcrs",
	.usage = "COMMAND [OPTION]...\n--image=REF --nonce=HEX [OPTION]...",
	.about =
		"Computes from an operating system image's files which PCR values its nodes will show.",
	.notes =
		"Exit status: 0 done (verify: it matches), 1 it failed (verify: it differs), 2 usage, 3 the values do not fit into the Job's message, 4 the registry did not answer, and may later.",
	.options = table,
	.n_options = ARRAY_LEN(table),
	.commands = commands,
	.n_commands = ARRAY_LEN(commands),
};

/* A name is that of a ConfigMap, which ends up in a path and in the message. */
static int read_platform(struct pcrs_options *o, const char *text, struct err *err)
{
	const char *dir = strchr(text, '=');
	size_t len = dir ? (size_t)(dir - text) : 0;

	if (!dir || !dir[1] || !kobj_name_valid(text, len))
		return err_set(err, ERR_INVALID,
			"option --platform: %s is not NAME=DIR, where NAME is that of a ConfigMap",
			log_esc(text));
	for (size_t i = 0; i < o->n_platforms; i++)
		if (strlen(o->platform[i].name) == len &&
			memcmp(o->platform[i].name, text, len) == 0)
			return err_set(err, ERR_INVALID, "option --platform: %s is given twice",
				o->platform[i].name);
	if (o->n_platforms == MODEL_PLATFORMS_MAX)
		return err_set(err, ERR_INVALID, "option --platform is given more than %d times",
			MODEL_PLATFORMS_MAX);
	o->platform[o->n_platforms++] =
		(struct pcrs_platform){xasprintf("%.*s", (int)len, text), dir + 1};
	return 0;
}

/* Without a command this is the Job's form, which the operator starts. */
static int check_job(const struct pcrs_options *o, struct err *err)
{
	if (!o->image && !o->nonce)
		return err_set(err, ERR_INVALID,
			"no command: give all, pcr4, pcr7, pcr11, pcr14, verify, fetch, digest or extract-vars; or --image and --nonce");
	if (!o->image || strlen(o->image) > REFERENCE_MAX || !o->digest)
		return err_set(err, ERR_INVALID,
			"option --image requires a reference that ends in @sha256: and 64 hexadecimal digits, at most %d bytes",
			REFERENCE_MAX);
	if (!model_pcrmsg_nonce_valid(o->nonce))
		return err_set(err, ERR_INVALID,
			"option --nonce requires %d lower-case hexadecimal digits",
			MODEL_PCRMSG_NONCE_LEN);
	return 0;
}

/* Read the options for fetching. The Job's form fetches only with --into: its image may be
 * mounted. */
static int read_fetch(struct pcrs_options *o, struct err *err)
{
	static const char *const fetching[] = {"into", "registry-mirror", "insecure-registry",
		"registry-auth", "registry-ca", "arch", "timeout"};
	uint64_t seconds;

	o->into = conf_str(o->conf, "into");
	o->registry_auth = conf_str(o->conf, "registry-auth");
	o->registry_ca = conf_str(o->conf, "registry-ca");
	o->arch = conf_str(o->conf, "arch");
	o->fetch = o->command == PCRS_FETCH ? o->file : o->image;
	if (o->command == PCRS_JOB && !o->into)
		o->fetch = NULL;
	for (size_t i = 0; !o->fetch && i < ARRAY_LEN(fetching); i++)
		if (conf_is_set(o->conf, fetching[i]))
			return err_set(err, ERR_INVALID, "option --%s needs %s", fetching[i],
				o->command == PCRS_JOB ? "--into DIR" : "--image REF");
	if (o->fetch && o->rootfs)
		return err_set(err, ERR_INVALID,
			"options --rootfs and --%s are mutually exclusive: files are either local or fetched",
			o->into ? "into" : "image");
	if (conf_number(o->conf, "timeout", 1, 86400, &seconds, err) < 0)
		return -1;
	o->timeout_s = (uint32_t)seconds;
	if (registries_mirrors(o->conf, &o->mirrors, err) < 0)
		return -1;
	return registries_insecure(o->conf, &o->insecure, err);
}

/* Read the sources of firmware variables and what else is known about the nodes. */
static int read_nodes(struct pcrs_options *o, struct err *err)
{
	uint64_t profile;

	o->efivars = conf_str(o->conf, "efivars");
	o->mok_variables = conf_str(o->conf, "mok-variables");
	o->efivars_log = conf_str(o->conf, "efivars-from-log");
	if (o->efivars && o->efivars_log)
		return err_set(err, ERR_INVALID,
			"options --efivars and --efivars-from-log are mutually exclusive");
	if (o->command == PCRS_VERIFY && !o->efivars && (!o->efivars_log || !*o->efivars_log))
		o->efivars_log = o->file;
	if (o->efivars_log && !*o->efivars_log)
		return err_set(err, ERR_INVALID,
			"option --efivars-from-log requires =LOG except with the command verify");
	o->validation_off = conf_bool(o->conf, "allow-validation-disabled");
	o->boot_path = (enum pcr_boot_path)conf_choice(o->conf, "boot-path");
	o->secure_boot = BOOT_SB_FROM_EFIVARS;
	if (conf_is_set(o->conf, "secureboot-disabled"))
		o->secure_boot =
			conf_bool(o->conf, "secureboot-disabled") ? BOOT_SB_OFF : BOOT_SB_ON;
	if (conf_number(o->conf, "profile", 0, 1000, &profile, err) < 0)
		return -1;
	o->profile = (unsigned)profile;
	return 0;
}

/* An empty text is refused for every option: it is most likely an unset shell variable. */
static int read_values(struct pcrs_options *o, struct err *err)
{
	const char *platform;

	for (size_t i = 0; i < ARRAY_LEN(table); i++)
		if (table[i].type == CONF_STRING && conf_is_set(o->conf, table[i].name) &&
			!*conf_str(o->conf, table[i].name))
			return err_set(err, ERR_INVALID, "option --%s is empty", table[i].name);
	o->command = (enum pcrs_command)conf_command(o->conf);
	o->file = conf_operand(o->conf);
	o->rootfs = conf_str(o->conf, "rootfs");
	o->image = conf_str(o->conf, "image");
	if (read_fetch(o, err) < 0)
		return -1;
	if (!o->rootfs)
		o->rootfs = o->command == PCRS_JOB ? "/image" : "/";
	if (read_nodes(o, err) < 0)
		return -1;
	o->uki = conf_bool(o->conf, "uki");
	o->all_kernels = conf_bool(o->conf, "all-kernels");
	o->variants = conf_bool(o->conf, "variants");
	o->explain = conf_bool(o->conf, "explain") || conf_bool(o->conf, "verbose");
	o->digest = o->image ? model_image_digest(o->image) : NULL;
	o->nonce = conf_str(o->conf, "nonce");
	o->result = conf_str(o->conf, "result");
	for (size_t i = 0; (platform = conf_nth(o->conf, "platform", i)); i++)
		if (read_platform(o, platform, err) < 0)
			return -1;
	if (o->command == PCRS_PCR7 && !o->efivars && !o->efivars_log)
		return err_set(err, ERR_INVALID,
			"command pcr7 requires --efivars DIR or --efivars-from-log=LOG");
	return o->command == PCRS_JOB ? check_job(o, err) : 0;
}

enum conf_result pcrs_options_read(struct pcrs_options *o, int argc, char *const argv[])
{
	struct err err = ERR_INIT;
	enum conf_result result;

	*o = (struct pcrs_options){.conf = conf_new(&program)};
	result = conf_start(o->conf, argc, argv);
	if (result == CONF_RUN && read_values(o, &err) < 0)
		return conf_refuse(o->conf, &err);
	return result;
}

void pcrs_options_fini(struct pcrs_options *o)
{
	conf_free(o->conf);
	registries_fini(&o->mirrors);
	registries_fini(&o->insecure);
	for (size_t i = 0; i < o->n_platforms; i++)
		free(o->platform[i].name);
}
