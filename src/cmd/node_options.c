/* SPDX-License-Identifier: MIT */
/*
 * Commands and options of tec-node. clevis runs this program under the names of its pin and with
 * arguments that it dictates; they are translated to the commands encrypt and decrypt. clevis passes no
 * options, so whatever the pin needs beyond its configuration comes from a file.
 */
#include "config.h"

#include "node_options.h"

#include <grp.h>
#include <pwd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tec/attest/esys.h"
#include "tec/attest/flow.h"
#include "tec/base/bytes.h"
#include "tec/base/file.h"
#include "tec/base/log.h"
#include "tec/base/mem.h"
#include "tec/base/uuid.h"
#include "tec/rats/initdata.h"

#define CONFIG_FILE "/etc/tec-node.conf"
#define CERT_MAX    (256u << 10)
#define SERVERS_MAX (256u << 10)
/* Options that several commands take. */
#define TPM_OPTIONS " tcti ak-handle config"
#define NET_OPTIONS TPM_OPTIONS " url cert-file timeout retries"

static const struct conf_option table[] = {
	{"tcti", CONF_STRING, "TCTI", ATTEST_TCTI, .group = "TPM",
		.help = "How to reach the TPM, in the notation of tpm2-tss: device:/dev/tpmrm0, swtpm:path=SOCKET..."},
	{"ak-handle", CONF_STRING, "HANDLE", "0x81010002",
		.help = "Persistent handle of the attestation key."},
	{"ak-file", CONF_STRING, "FILE", "/var/tpm/ak.pub",
		.help = "File for the public part of the attestation key, in PEM; empty: no file."},
	{"extra", CONF_STRING, "HEX",
		.help = "64 hexadecimal digits to include in the signed quote. Default: zeros."},
	{"url", CONF_STRING, "URL[,URL...]", .group = "Servers",
		.help = "URLs of Trustee servers, tried in this order; with register: the URL of the registration listener."},
	{"cert-file", CONF_STRING, "FILE",
		.help = "CA certificates (PEM) for the servers. Default: those of the system."},
	{"path", CONF_STRING, "REPOSITORY/TYPE/TAG", .help = "The resource to get."},
	{"uuid", CONF_STRING, "UUID",
		.help = "The Machine that the key belongs to; with seal: the name in the event."},
	{"initdata", CONF_STRING, "TOML",
		.help = "Init-data to send. PCR 8 is extended with its digest, unless that has been done."},
	{"retries", CONF_STRING, "N", "0",
		.help = "How often to try all servers again when none of them succeeded."},
	{"timeout", CONF_STRING, "SECONDS", "0",
		.help = "Time limit for the whole command including retries; 0: only the limits of single requests."},
	{"console", CONF_STRING, "FILE",
		.help = "With encrypt, decrypt and seal: also write messages for people to this file, because clevis hides standard error during boot."},
	{"tee", CONF_CHOICE, "TEE", "tpm", .choices = "tpm, sample",
		.help = "Kind of evidence. Sample evidence proves nothing; it is for tests of a server."},
	{"listen", CONF_STRING, "ADDR:PORT", ATTEST_CDH_LISTEN,
		.help = "With serve: address to listen on; empty: none. Only loopback peers are answered. Sockets passed by systemd replace this address and --socket."},
	{"socket", CONF_STRING, "FILE", .help = "With serve: also listen on this local socket."},
	{"socket-mode", CONF_STRING, "MODE", "0660", .help = "Mode of --socket, in octal digits."},
	{"socket-group", CONF_STRING, "GROUP",
		.help = "Group of --socket. Default: that of the process."},
	{"socket-users", CONF_STRING, "USER[,USER...]",
		.help = "Users who may use local sockets in addition to root, by name or number. Default: everyone whom the socket's mode admits."},
	{"aa", CONF_BOOL, "BOOL", "false",
		.help = "With serve: give tokens and evidence to every client. A token comes with its private key, and both together can fetch the disk key."},
	{"device", CONF_FILE, "DEV", .group = "Disks",
		.help = "With rebind-servers: the LUKS2 disk, or a file that contains one. Default: all open disks."},
	{"dry-run", CONF_BOOL, "BOOL", "false",
		.help = "With rebind-servers: check that a server of the list opens the disk, without changing anything."},
	{"seal", CONF_BOOL, "BOOL", "false", .group = "Sealing",
		.help = "Seal every boot: read by the hooks for initramfs-tools and dracut when they make an initial RAM disk; with doctor: check it."},
	{"or-reboot", CONF_BOOL, "BOOL", "false",
		.help = "With seal: if PCR 15 cannot be extended, reboot this machine."},
	{"config", CONF_FILE, "FILE", .group = "Other options",
		.help = "Read options from this file. Default: " CONFIG_FILE " if it exists."},
	{"print-config", CONF_ACTION, .help = "Print a commented configuration file and exit."},
	{"version", CONF_ACTION, .letter = 'V', .help = "Print the version and exit."},
	{"help", CONF_ACTION, .letter = 'h', .help = "Print this help and exit."},
};

static const struct conf_command commands[] = {
	[NODE_AK] = {"ak", "make|show",
		"create the attestation key unless it exists, and print it; or only print it",
		TPM_OPTIONS " ak-file"},
	[NODE_QUOTE] = {"quote", NULL, "print evidence as JSON", TPM_OPTIONS " extra"},
	[NODE_REGISTER] = {"register", NULL,
		"create the attestation key unless it exists, and register it",
		TPM_OPTIONS " ak-file url cert-file uuid"},
	[NODE_ATTEST] = {"attest", NULL, "attest to a server and print the token",
		NET_OPTIONS " initdata tee"},
	[NODE_GET_RESOURCE] = {"get-resource", NULL, "attest and print a resource in base64",
		NET_OPTIONS " path initdata tee"},
	[NODE_ENCRYPT] = {"encrypt", "CONFIG", "clevis pin: encrypt standard input",
		TPM_OPTIONS " ak-file timeout console"},
	[NODE_DECRYPT] = {"decrypt", NULL, "clevis pin: decrypt standard input",
		TPM_OPTIONS " timeout console"},
	[NODE_SERVE] = {"serve", NULL,
		"serve resources, tokens and evidence to workloads of this machine over HTTP",
		TPM_OPTIONS
		" url cert-file initdata tee listen socket socket-mode socket-group socket-users aa"},
	[NODE_DOCTOR] = {"doctor", NULL,
		"check everything that an attestation needs, and say what to do",
		TPM_OPTIONS " url cert-file path tee seal"},
	[NODE_REBIND] = {"rebind-servers", "FILE",
		"bind the disks of this machine to the servers in FILE, the output of tecctl bootstrap servers",
		TPM_OPTIONS " timeout retries device dry-run"},
	[NODE_SEAL] = {"seal", NULL,
		"extend PCR 15, after which a cluster with release OncePerBoot gives no disk key until the next boot",
		TPM_OPTIONS " uuid timeout console or-reboot"},
};

static const struct conf_program program = {
	.name = "tec-node",
	.usage = "COMMAND [OPTION]...",
	.about =
		"Attests a node: manages its key in the TPM, produces evidence, and fetches resources from servers.",
	.notes =
		"Exit status: 0 success, 1 refused by policy, 2 usage, 3 TPM, 4 network, 5 server, 6 disk.",
	.options = table,
	.n_options = ARRAY_LEN(table),
	.commands = commands,
	.n_commands = ARRAY_LEN(commands),
};

/* ---- values */

/* --extra is the qualifying data of a quote: 32 bytes, as a SHA-256. The handle must be an owner's
 * persistent one: those from 0x81800000 on are the platform's (TPM 2.0 Part 2,
 * PLATFORM_PERSISTENT). */
static int read_tpm(struct node_options *o, struct err *err)
{
	const char *file = conf_str(o->conf, "ak-file"), *extra = conf_str(o->conf, "extra"),
		   *handle = conf_str(o->conf, "ak-handle");
	char *end;
	unsigned long v = strtoul(handle, &end, 16);

	o->tcti = conf_str(o->conf, "tcti");
	o->ak_file = file && *file ? file : NULL;
	o->sample = conf_choice(o->conf, "tee") == 1;
	if (extra && (strlen(extra) != 2 * sizeof(o->extra) ||
			     bytes_from_hex(extra, strlen(extra), o->extra) < 0))
		return err_set(
			err, ERR_INVALID, "option --extra is not 64 lower-case hexadecimal digits");
	if (!*handle || *end || v < 0x81000000ul || v > 0x817ffffful)
		return err_set(err, ERR_INVALID,
			"option --ak-handle is not an owner's persistent handle (0x81000000 to 0x817fffff): %s",
			log_esc(handle));
	o->ak_handle = (uint32_t)v;
	return 0;
}

/* Split --url at commas; servers are tried in that order. An http:// URL takes no certificate, so a
 * list may mix both schemes. */
static int read_servers(struct node_options *o, struct err *err)
{
	const char *rest = conf_str(o->conf, "url"), *file = conf_str(o->conf, "cert-file");
	size_t len;
	cleanup_free char *cert = file ? file_read(file, CERT_MAX, &len, NULL, err) : NULL;

	if (err_is_set(err))
		return -1;
	if (!rest)
		return err_set(err, ERR_INVALID,
			"option --url is missing; next step: give the server's URL");
	for (;;) {
		size_t n = strcspn(rest, ",");
		bool full = o->config.n_servers == ATTEST_SERVERS_MAX;
		cleanup_free char *url = xstrndup(rest, n);
		struct attest_server *s;

		if (full || !attest_url_valid(url))
			return err_set(err, ERR_INVALID,
				full ? "option --url names too many servers: %s"
				     : "option --url is not http://HOST[:PORT] or https://HOST[:PORT]: %s",
				log_esc(url));
		s = &o->config.server[o->config.n_servers++];
		s->cert = cert && str_starts(url, "https://") ? xstrdup(cert) : NULL;
		s->url = steal_ptr(&url);
		if (!rest[n])
			return 0;
		rest += n + 1;
	}
}

/* Commands stop after --retries; only the pin, whose CONFIG may omit num_retries, has no limit. */
static int read_limits(struct node_options *o, struct err *err)
{
	uint64_t seconds, retries;

	if (conf_number(o->conf, "timeout", 0, 1000000, &seconds, err) < 0 ||
		conf_number(o->conf, "retries", 0, 1000000, &retries, err) < 0)
		return -1;
	o->timeout_ms = (uint32_t)seconds * 1000;
	o->config.limited = true;
	o->config.retries = (uint32_t)retries;
	return 0;
}

/* ---- commands */

static int read_uuid(struct node_options *o, struct err *err)
{
	const char *uuid = conf_str(o->conf, "uuid");

	if (uuid && !uuid_valid(uuid, strlen(uuid)))
		return err_set(err, ERR_INVALID, "option --uuid is not a lower-case UUID: %s",
			log_esc(uuid));
	o->config.uuid = xstrdup(uuid);
	return 0;
}

/* --url names the registration listener here, so move the first server to `registration`. */
static int read_register(struct node_options *o, struct err *err)
{
	if (read_uuid(o, err) < 0 || read_servers(o, err) < 0)
		return -1;
	o->config.registration = o->config.server[0];
	o->config.server[0] = (struct attest_server){NULL, NULL};
	return 0;
}

/* Read servers, limits and init-data, and the path for commands that get a resource. */
static int read_attest(struct node_options *o, struct err *err)
{
	const char *path = conf_str(o->conf, "path"), *toml = conf_str(o->conf, "initdata");

	o->seal = conf_bool(o->conf, "seal");
	/* doctor checks the servers only if some are given. */
	if (o->command == NODE_DOCTOR && !conf_str(o->conf, "url"))
		return 0;
	if (read_servers(o, err) < 0 || read_limits(o, err) < 0)
		return -1;
	if (toml && rats_initdata_check(toml, strlen(toml), err) < 0)
		return err_wrap(err, "option --initdata");
	o->config.init_data = xstrdup(toml);
	if (o->command == NODE_ATTEST || o->command == NODE_SERVE ||
		(o->command == NODE_DOCTOR && !path))
		return 0;
	while (path && *path == '/') /* as trustee-attester's users write it */
		path++;
	if (!path || !attest_path_valid(path))
		return err_set(err, ERR_INVALID,
			"option --path is not REPOSITORY/TYPE/TAG (letters, digits and .-_)");
	o->config.path = xstrdup(path);
	return 0;
}

/* Split --socket-users at commas. Each name is resolved once, at startup; a number needs no entry
 * in the user database. Without the option, the socket's mode decides. */
static int read_users(const char *list, struct attest_cdh_conf *c, struct err *err)
{
	while (list) {
		size_t n = strcspn(list, ",");
		cleanup_free char *name = xstrndup(list, n);
		const struct passwd *p = getpwnam(name);
		uint64_t number = 0;

		if (!p && str_to_u64(name, UINT32_MAX - 1, &number) < 0)
			return err_set(err, ERR_INVALID, "option --socket-users: no user %s exists",
				log_esc(name));
		if (c->n_users == ARRAY_LEN(c->users))
			return err_set(err, ERR_INVALID,
				"option --socket-users names more than %zu users",
				ARRAY_LEN(c->users));
		c->users[c->n_users++] = p ? p->pw_uid : (uint32_t)number;
		list = list[n] ? list + n + 1 : NULL;
	}
	return 0;
}

/* The mode is octal and at most 0777: a socket has no set-id or sticky bits. The group is resolved
 * once, at startup; -1 leaves that of the process. */
static int read_serve(struct node_options *o, struct err *err)
{
	const char *mode = conf_str(o->conf, "socket-mode"),
		   *name = conf_str(o->conf, "socket-group");
	const struct group *g = name ? getgrnam(name) : NULL;
	uint64_t number = (gid_t)-1;

	o->listen = conf_str(o->conf, "listen");
	o->socket = conf_str(o->conf, "socket");
	o->cdh.aa = conf_bool(o->conf, "aa");
	o->socket_mode = (mode_t)strtoul(mode, NULL, 8);
	if (!*mode || strlen(mode) > 4 || mode[strspn(mode, "01234567")] || o->socket_mode > 0777)
		return err_set(err, ERR_INVALID,
			"option --socket-mode is not an octal mode up to 0777: %s", log_esc(mode));
	if (name && !g && str_to_u64(name, UINT32_MAX - 1, &number) < 0)
		return err_set(err, ERR_INVALID, "option --socket-group: no group %s exists",
			log_esc(name));
	o->socket_group = g ? g->gr_gid : (gid_t)number;
	if (read_users(conf_str(o->conf, "socket-users"), &o->cdh, err) < 0)
		return -1;
	return read_attest(o, err);
}

/* Read only what the command uses: all commands share the options of the configuration file. */
static int read_command(struct node_options *o, struct err *err)
{
	const char *operand = conf_operand(o->conf);
	cleanup_free char *servers = NULL;
	uint64_t seconds;
	size_t len;

	switch (o->command) {
	case NODE_AK:
		o->make = str_eq(operand, "make");
		return o->make || str_eq(operand, "show")
			       ? 0
			       : err_set(err, ERR_INVALID, "the command is ak make or ak show");
	case NODE_QUOTE:
		return 0;
	case NODE_REGISTER:
		return read_register(o, err);
	case NODE_ATTEST:
	case NODE_GET_RESOURCE:
	case NODE_DOCTOR:
		return read_attest(o, err);
	case NODE_SERVE:
		return read_serve(o, err);
	case NODE_ENCRYPT:
		if (attest_config_read(operand, strlen(operand), &o->config, err) < 0)
			return err_wrap(err, "CONFIG");
		break;
	case NODE_REBIND:
		/* FILE is read here, so that a malformed list is a usage error before any disk is
		 * opened. */
		o->device = conf_str(o->conf, "device");
		o->dry_run = conf_bool(o->conf, "dry-run");
		servers = file_read(operand, SERVERS_MAX, &len, NULL, err);
		if (!servers)
			return -1;
		if (attest_config_read_servers(servers, len, &o->config, err) < 0)
			return err_wrap(err, "%.80s", log_esc(operand));
		return read_limits(o, err);
	case NODE_SEAL:
		o->or_reboot = conf_bool(o->conf, "or-reboot");
		if (read_uuid(o, err) < 0)
			return -1;
		break;
	case NODE_DECRYPT:
		break;
	}
	if (conf_number(o->conf, "timeout", 0, 1000000, &seconds, err) < 0)
		return -1;
	o->timeout_ms = (uint32_t)seconds * 1000;
	o->console = conf_str(o->conf, "console");
	return 0;
}

/* ---- the names that clevis runs */

#define PIN_ENCRYPT "clevis-encrypt-trustee"
#define PIN_DECRYPT "clevis-decrypt-trustee"

/* Translate clevis's arguments to those of a command. out[2] is NULL for decrypt. EXIT: answered. */
static enum conf_result pin_argv(const char *name, int argc, char *const argv[], char *out[3])
{
	bool encrypt = str_eq(name, PIN_ENCRYPT);
	const char *config = NULL;

	for (int i = 1; i < argc; i++) {
		if (str_eq(argv[i], "--summary")) {
			puts(encrypt ? "Encrypts with a key that Trustee releases after attestation"
				     : "Decrypts with a key that Trustee releases after attestation");
			return CONF_EXIT;
		}
		/* clevis passes "assume yes" on; this program never asks. */
		if (str_eq(argv[i], "-y"))
			continue;
		if (config || !encrypt) {
			fprintf(stderr, "%s: unexpected argument %s\n", name, log_esc(argv[i]));
			return CONF_BAD;
		}
		config = argv[i];
	}
	if (encrypt && !config) {
		fprintf(stderr,
			"Usage: clevis encrypt trustee CONFIG < PLAINTEXT > JWE\n\n"
			"CONFIG is JSON: {\"servers\":[{\"url\":URL,\"cert\":PEM},...],\"path\":\"default/ID/root\"}\n"
			"optionally with num_retries, initdata and attestation_key: clevis-encrypt-trustee(1).\n");
		return CONF_BAD;
	}
	out[0] = (char *)(uintptr_t)name;
	out[1] = (char *)(uintptr_t)(encrypt ? "encrypt" : "decrypt");
	out[2] = (char *)(uintptr_t)config;
	return CONF_RUN;
}

/* The command line wins over the configuration file, which is parsed after it: the default file,
 * unless the command line names one. clevis may run this as root in an initrd, so the variable is
 * ignored in a privileged (AT_SECURE) process. */
enum conf_result node_options_read(struct node_options *o, int argc, char *const argv[])
{
	const char *slash = strrchr(argv[0], '/'), *name = slash ? slash + 1 : argv[0];
	const char *file = secure_getenv("TEC_NODE_CONFIG");
	char *pin[3] = {NULL};
	struct err err = ERR_INIT;
	enum conf_result r = CONF_RUN;

	memset(o, 0, sizeof(*o));
	o->conf = conf_new(&program);
	if (str_eq(name, PIN_ENCRYPT) || str_eq(name, PIN_DECRYPT)) {
		r = pin_argv(name, argc, argv, pin);
		/* conf keeps pointers to the words, not to the array. */
		argc = pin[2] ? 3 : 2;
		argv = pin;
	}
	if (r == CONF_RUN)
		r = conf_start(o->conf, argc, argv);
	if (r != CONF_RUN)
		return r;
	if (!file && access(CONFIG_FILE, F_OK) == 0)
		file = CONFIG_FILE;
	if (!conf_str(o->conf, "config") && file && *file &&
		conf_parse_file(o->conf, file, &err) < 0)
		return conf_refuse(o->conf, &err);
	o->command = (enum node_command)conf_command(o->conf);
	if (read_tpm(o, &err) < 0 || read_command(o, &err) < 0)
		return conf_refuse(o->conf, &err);
	return CONF_RUN;
}

void node_options_fini(struct node_options *o)
{
	attest_config_fini(&o->config);
	conf_free(o->conf);
}
