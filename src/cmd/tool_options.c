/* SPDX-License-Identifier: MIT */
/* The one table of commands and options: parser, --help, manual and completion follow it. */
#include "config.h"

#include "tool_options.h"

#include "tec/base/mem.h"

#define MACHINES "machine list -o name"
#define KEYS     "key list -o name"
#define IMAGES   "image list -o name"
#define FETCHING " registry-mirror insecure-registry registry-auth registry-ca arch timeout"
#define CHANGES  "yes wait"

static const struct conf_option table[] = {
	{"output", CONF_CHOICE, "FORMAT", "text", .choices = "text, json, yaml, name",
		.letter = 'o', .group = "What is printed",
		.help = "text for people, json or yaml, or name: only the names (of lists)."},
	{"watch", CONF_BOOL, "BOOL", "false", .letter = 'w',
		.help = "Print it again whenever it changes, until Ctrl-C."},
	{"kubeconfig", CONF_FILE, "FILE", .group = "Which API server",
		.help = "Kubernetes configuration. Default: the first file of $KUBECONFIG that exists, else ~/.kube/config, else the Pod's service account."},
	{"context", CONF_STRING, "NAME", .help = "Its context. Default: its current-context."},
	{"namespace", CONF_STRING, "NS", .letter = 'n',
		.help = "Where the TrustedExecutionCluster is. Default: the context's, else default."},
	{"request-timeout", CONF_STRING, "SECONDS", "15",
		.help = "For one answer of the API server."},
	{"yes", CONF_BOOL, "BOOL", "false", .letter = 'y', .group = "Changes",
		.help = "Do not ask. Without a terminal to ask at, what loses a key needs it."},
	{"wait", CONF_STRING, "SECONDS", "60",
		.help = "How long to wait until the operator has done it; 0: do not wait."},
	{"image", CONF_STRING, "REF", .group = "Images",
		.help = "Approve what the registry has for this reference today; it needs no digest."},
	{"rootfs", CONF_STRING, "DIR",
		.help = "The image's files are in this directory: compute here, and hand the values in to tec-operator --standalone. Without REF the image gets a reference of its own."},
	{"name", CONF_STRING, "NAME",
		.help = "Of the ApprovedImage; made from the reference otherwise. Of the Secret; trustee-tls otherwise."},
	{"registry-mirror", CONF_STRING, "LIST",
		.help = "As of tec-compute-pcrs(1), with the five that follow."},
	{"insecure-registry", CONF_STRING, "LIST",
		.help = "HOST[:PORT],...: registries to reach over plain HTTP."},
	{"registry-auth", CONF_FILE, "FILE", .help = "Credentials of registries."},
	{"registry-ca", CONF_FILE, "FILE", .help = "CA certificates of registries."},
	{"arch", CONF_STRING, "ARCH", .help = "Of an image for several architectures."},
	{"timeout", CONF_STRING, "SECONDS", .help = "For all of the image. Default: 720."},
	{"address", CONF_STRING, "HOST[:PORT]", .group = "Ignition",
		.help = "Where nodes reach the operator's listener for registration. Default: publicRegisterAddr of the cluster, else the host of its publicAttestationKeyRegisterAddr and its registerServerPort."},
	{"url", CONF_BOOL, "BOOL", "false", .help = "Print only the URL."},
	{"from-node", CONF_BOOL, "BOOL", "false", .group = "A cluster that does not exist yet",
		.help = "Print a shell script instead: run it with curl in the nodes' network."},
	{"out", CONF_FILE, "FILE",
		.help = "A new file for what has a private key; only you can read it. One that exists is not overwritten."},
	{"ca", CONF_FILE, "FILE", .help = "The CA, as made by tecctl bootstrap ca."},
	{"host", CONF_LIST, "HOST",
		.help = "A host name or IP address at which nodes will reach the cluster; may be given several times."},
	{"version", CONF_ACTION, .letter = 'V', .group = "Other options",
		.help = "Print the version and exit."},
	{"help", CONF_ACTION, .letter = 'h',
		.help = "Print this help and exit; after a command, that of the command."},
};

static const struct conf_command commands[] = {
	[TOOL_STATUS] = {"status", NULL,
		"The whole system at a glance: cluster, Trustee servers, images, Machines, and what waits and why.",
		"output watch"},
	[TOOL_WHY] = {"why", "MACHINE",
		"Why a node does not get its disk key: what is missing, and its last refusal, compared with what is approved. MACHINE is a name or an id.",
		"output"},
	[TOOL_MACHINE_LIST] = {"machine list", NULL, "All Machines.", "output watch"},
	[TOOL_MACHINE_SHOW] = {"machine show", "MACHINE", "All about one Machine.", "output"},
	[TOOL_MACHINE_DELETE] = {"machine delete", "MACHINE",
		"Delete a Machine and its disk key, which no node can fetch any more.", CHANGES},
	[TOOL_APPROVE] = {"approve", "KEY|MACHINE",
		"Approve an AttestationKey that waits, by its name or its Machine's.", CHANGES},
	[TOOL_DENY] = {"deny", "KEY", "Delete an AttestationKey, which cannot attest any more.",
		CHANGES},
	[TOOL_REBIND] = {"rebind", "MACHINE",
		"Take the attestation key off a Machine, so that its node, reinstalled under another id, can register it again.",
		CHANGES},
	[TOOL_KEY_LIST] = {"key list", NULL, "All AttestationKeys.", "output watch"},
	[TOOL_IMAGE_APPROVE] = {"image approve", "[REF]",
		"Approve an image: nodes that boot it get their keys. The operator has its values computed; with --rootfs they are computed here.",
		"wait image rootfs name" FETCHING},
	[TOOL_IMAGE_LIST] = {"image list", NULL, "All ApprovedImages.", "output watch"},
	[TOOL_IMAGE_EXPLAIN] = {"image explain", "NAME",
		"Which values nodes with this image may show, and what they are made of.",
		"output"},
	[TOOL_IMAGE_VERIFY] = {"image verify", "NAME",
		"Compute the values of an approved image again, from its registry or --rootfs, and compare them with those in force.",
		"rootfs" FETCHING},
	[TOOL_IGNITION] = {"ignition", NULL,
		"The Ignition configuration to give to new nodes: it merges the operator's.",
		"output address url"},
	[TOOL_BACKUP] = {"backup", "FILE",
		"Save everything that a tec-operator --standalone holds into a new file, which only its owner can read. It has every key, sealed."},
	[TOOL_DOCTOR] = {"doctor", NULL,
		"Check everything from here to Trustee: one line each, with what to do.", "output"},
	[TOOL_BOOTSTRAP_CHECK] = {"bootstrap check", NULL,
		"Check that this system can attest the first nodes of a new cluster: one line each, with what to do. --from-node prints a script that checks the way from the nodes' network.",
		"output from-node"},
	[TOOL_BOOTSTRAP_CA] = {"bootstrap ca", NULL,
		"Make the CA of a cluster before the cluster exists, so that nodes can trust it from the start: certificate and key into --out, the certificate alone is printed. Valid for 7300 days.",
		"out"},
	[TOOL_BOOTSTRAP_CERT] = {"bootstrap cert", NULL,
		"Print the TLS Secret of that cluster, with a certificate of --ca for each --host, as kubectl apply takes it; to a terminal only with --out. Valid for 365 days.",
		"ca host out name"},
	[TOOL_COMPLETION] = {"completion", "SHELL",
		"Print the completion script for bash, zsh or fish.", NULL},
};

static const char *const values[][2] = {
	{"why", MACHINES},
	{"machine show", MACHINES},
	{"machine delete", MACHINES},
	{"rebind", MACHINES},
	{"approve", KEYS},
	{"deny", KEYS},
	{"image explain", IMAGES},
	{"image verify", IMAGES},
	{"completion", "(bash zsh fish)"},
};

const struct conf_program tool_program = {
	.name = "tecctl",
	.usage = "COMMAND [OPTION]...",
	.about =
		"Shows and changes a trusted execution cluster, over any Kubernetes API that holds it.",
	.notes =
		"Exit status: 0 done, 1 it failed or the answer is no, 2 usage, 3 the API server cannot be reached, 4 it refuses (credentials or rights), 130 interrupted.",
	.options = table,
	.n_options = ARRAY_LEN(table),
	.commands = commands,
	.n_commands = ARRAY_LEN(commands),
	.values = values,
	.n_values = ARRAY_LEN(values),
	.common = "kubeconfig context namespace request-timeout",
};
