/* SPDX-License-Identifier: MIT */
/* Tables of commands, options and the options of each command, for base/conf, and the validation of
 * their values. */
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
#define TIMEOUT_S     "720" /* less than the 900 s of the whole Job */
#define FETCHING      " into registry-mirror insecure-registry registry-auth registry-ca arch timeout"

static const struct conf_option table[] = {
	{"rootfs", CONF_STRING, "DIR", .group = "Options", .letter = 'r',
		.help = "Root directory of the image's files. Default: /, with --image /image."},
	{"efivars", CONF_STRING, "DIR",
		.help = "Firmware variables of the nodes' platform, as files named like those of efivarfs (PK-..., KEK-..., db-..., dbx-..., SecureBoot-...). Default: none, so PCR 7 is not computed."},
	{"efivars-from-log", CONF_OPTIONAL, "LOG",
		.help = "Take the firmware variables from a node's event log. verify uses its own log unless --efivars is given."},
	{"mok-variables", CONF_STRING, "DIR",
		.help = "A node's /sys/firmware/efi/mok-variables, from which MokListRT, MokListXRT, MokListTrustedRT and MokSBStateRT are read. Default: values derived from shim, as on a node without enrolled keys."},
	{"allow-validation-disabled", CONF_BOOL, "BOOL", "false",
		.help = "Accept MOK variables of a node whose shim does not validate what it starts (mokutil --disable-validation). PCR 4 of such a node does not show which kernel runs."},
	{"boot-path", CONF_CHOICE, "WHAT", "Strict",
		.choices = "Strict, AllowFailedEntries, AllowFirmwareUpdates",
		.help = "What may run before the image's boot loader: nothing; up to two failed boot entries; or these and fwupd's program, if the image ships it."},
	{"profile", CONF_STRING, "N", "0",
		.help = "The profile of a unified kernel image that is booted; 0 is the first one."},
	{"uki", CONF_BOOL, "BOOL", "false",
		.help = "The second stage is a unified kernel image. An image with the usual sections is recognized without this option."},
	{"secureboot-disabled", CONF_BOOL, "BOOL",
		.help = "Assume Secure Boot off on the nodes, or with =false on, whatever the firmware variables say. Default: as in the firmware variables; without these, on."},
	{"all-kernels", CONF_BOOL, "BOOL", "false",
		.help = "Use every kernel of the image, newest first, instead of only the newest."},
	{"variants", CONF_BOOL, "BOOL", "false",
		.help = "Also print every set of values that the image can legitimately produce, each with its condition."},
	{"explain", CONF_BOOL, "BOOL", "false",
		.help = "Print to standard error which file caused which event."},
	{"image", CONF_STRING, "REF",
		.help = "Fetch the image with this reference from its registry instead of reading --rootfs. Without a command, as the operator's Job: compute PCR 4 and 14 of the image with this reference, which must end in a digest, and write them as the container's termination message."},
	{"nonce", CONF_STRING, "HEX",
		.help = "Without a command: 32 hexadecimal digits for the message."},
	{"result", CONF_STRING, "FILE", "/dev/termination-log",
		.help = "Without a command: file for the message."},
	{"platform", CONF_LIST, "NAME=DIR",
		.help = "Without a command: also compute the values that differ on the platform NAME. DIR has its variables, as for --efivars, --mok-variables or both. May be given eight times."},
	{"into", CONF_STRING, "DIR", .group = "Fetching an image",
		.help = "Store the required files in this directory, which must be empty, and keep them. Default: a temporary directory."},
	{"registry-mirror", CONF_STRING, "LIST",
		.help = "REGISTRY=HOST[:PORT][/PREFIX],...: hosts to try before a registry for its images, in this order."},
	{"insecure-registry", CONF_STRING, "LIST",
		.help = "HOST[:PORT],...: registries, mirrors and token servers to reach over plain HTTP."},
	{"registry-auth", CONF_STRING, "FILE",
		.help = "Registry credentials, in the format of a Secret's .dockerconfigjson. A missing file means no credentials."},
	{"registry-ca", CONF_STRING, "FILE",
		.help = "CA certificates (PEM) to trust instead of those of the system. A missing file is ignored."},
	{"arch", CONF_STRING, "ARCH", REGISTRIES_ARCH,
		.help = "Architecture to select from a multi-architecture image: amd64, arm64..."},
	{"timeout", CONF_STRING, "SECONDS", TIMEOUT_S,
		.help = "Time limit for fetching the whole image."},
	{"verbose", CONF_ACTION, .group = "Other options", .letter = 'v',
		.help = "Same as --explain."},
	{"version", CONF_ACTION, .letter = 'V', .help = "Print the version and exit."},
	{"help", CONF_ACTION, .letter = 'h', .help = "Print this help and exit."},
};

static const struct conf_command commands[] = {
	[PCRS_ALL] = {"all", NULL, "PCRs 4, 7 and 14 of an image",
		"rootfs efivars efivars-from-log mok-variables uki secureboot-disabled all-kernels variants explain allow-validation-disabled boot-path image" FETCHING},
	[PCRS_PCR4] = {"pcr4", NULL, "the programs that were started: shim, second stage, kernel",
		"rootfs efivars efivars-from-log mok-variables uki secureboot-disabled all-kernels variants explain allow-validation-disabled boot-path image" FETCHING},
	[PCRS_PCR7] = {"pcr7", NULL,
		"Secure Boot state, and the certificates that vouched for the started programs (needs --efivars)",
		"rootfs efivars efivars-from-log mok-variables uki secureboot-disabled all-kernels variants explain allow-validation-disabled image" FETCHING},
	[PCRS_PCR11] = {"pcr11", "UKI", "sections of a unified kernel image", "explain profile"},
	[PCRS_PCR14] = {"pcr14", NULL, "machine owner keys",
		"rootfs mok-variables explain allow-validation-disabled image" FETCHING},
	[PCRS_VERIFY] = {"verify", "EVENTLOG",
		"compare a node's event log with the prediction and print the first event that differs in each register, or that the log matches",
		"rootfs efivars efivars-from-log mok-variables uki secureboot-disabled all-kernels explain allow-validation-disabled boot-path image" FETCHING},
	[PCRS_FETCH] = {"fetch", "REF",
		"fetch the files of an image that the other commands read from its registry; without --into print only the image's reference with its digest",
		FETCHING},
	[PCRS_DIGEST] = {"digest", "FILE...",
		"Authenticode SHA-256 of programs, as firmware measures them", ""},
	[PCRS_EXTRACT] = {"extract-platform", "LOG DIR",
		"extract the firmware variables from an event log, and what the firmware measures besides, as files for --efivars or for a platform's ConfigMap",
		""},
	[PCRS_EXTRACT_VARS] = {"extract-vars", "LOG DIR",
		"the same as extract-platform, which it was called before", ""},
	[PCRS_JOB] = {.options = "rootfs explain image nonce result platform" FETCHING},
};

static const struct conf_program program = {
	.name = "tec-compute-pcrs",
	.usage = "COMMAND [OPTION]...\n--image=REF --nonce=HEX [OPTION]...",
	.about =
		"Computes the expected PCR values of nodes from the files of an operating system image.",
	.notes =
		"Exit status: 0 success (verify: match), 1 failure (verify: difference), 2 usage, 3 the values do not fit into the Job's message, 4 the registry did not answer (temporary).",
	.options = table,
	.n_options = ARRAY_LEN(table),
	.commands = commands,
	.n_commands = ARRAY_LEN(commands),
};

/*
 * Append a platform of --platform. NAME is copied to terminate it; DIR points into conf. Duplicates are
 * refused, because the message identifies a platform by its name.
 */
static int read_platform(struct pcrs_options *o, const char *text, struct err *err)
{
	const char *dir = strchr(text, '=');
	size_t len = dir ? (size_t)(dir - text) : 0;

	if (!dir || !dir[1] || !kobj_name_valid(text, len))
		return err_set(err, ERR_INVALID,
			"option --platform: %s is not NAME=DIR, where NAME is a ConfigMap's name",
			log_esc(text));
	for (size_t i = 0; i < o->n_platforms; i++)
		if (strlen(o->platform[i].name) == len &&
			memcmp(o->platform[i].name, text, len) == 0)
			return err_set(err, ERR_INVALID, "option --platform: %s is duplicated",
				o->platform[i].name);
	if (o->n_platforms == MODEL_PLATFORMS_MAX)
		return err_set(err, ERR_INVALID, "option --platform is given more than %d times",
			MODEL_PLATFORMS_MAX);
	o->platform[o->n_platforms++] =
		(struct pcrs_platform){xasprintf("%.*s", (int)len, text), dir + 1};
	return 0;
}

/*
 * Validate the options of a run without a command, as the operator's Job. The operator finds the
 * result by image and nonce, so neither may be missing.
 */
static int check_job(const struct pcrs_options *o, struct err *err)
{
	if (!o->image && !o->nonce)
		return err_set(err, ERR_INVALID,
			"no command: give all, pcr4, pcr7, pcr11, pcr14, verify, fetch, digest or extract-platform; or --image and --nonce");
	if (!o->image || strlen(o->image) > REFERENCE_MAX || !o->digest)
		return err_set(err, ERR_INVALID,
			"option --image requires a reference that ends in @sha256: and 64 hexadecimal digits, at most %d bytes",
			REFERENCE_MAX);
	if (!model_pcrmsg_nonce_valid(o->nonce))
		return err_set(err, ERR_INVALID,
			"option --nonce needs %d lower-case hexadecimal digits",
			MODEL_PCRMSG_NONCE_LEN);
	return 0;
}

/* Read what to fetch. The Job fetches only with --into, since its image is usually mounted. */
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
			"options --rootfs and --%s exclude each other: files are either read or fetched",
			o->into ? "into" : "image");
	if (conf_number(o->conf, "timeout", 1, 86400, &seconds, err) < 0)
		return -1;
	o->timeout_s = (uint32_t)seconds;
	if (registries_mirrors(o->conf, &o->mirrors, err) < 0)
		return -1;
	return registries_insecure(o->conf, &o->insecure, err);
}

/* Read what the prediction assumes about the nodes: firmware variables, Secure Boot, boot path. */
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
	o->secure_boot = MEASURE_SB_FROM_EFIVARS;
	if (conf_is_set(o->conf, "secureboot-disabled"))
		o->secure_boot =
			conf_bool(o->conf, "secureboot-disabled") ? MEASURE_SB_OFF : MEASURE_SB_ON;
	if (conf_number(o->conf, "profile", 0, 1000, &profile, err) < 0)
		return -1;
	o->profile = (unsigned)profile;
	return 0;
}

/* An empty string is never a default here: it usually comes from an unset variable of a script. */
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
			"command pcr7 needs the firmware's keys: give --efivars DIR or --efivars-from-log=LOG");
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
