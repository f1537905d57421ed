/* SPDX-License-Identifier: MIT */
/*
 * One table defines the command line, the configuration file, --help and the sample in etc/. Every
 * value is validated here, so the rest of the program never sees a malformed one.
 */
#include "config.h"

#include "options.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tec/base/mem.h"
#include "tec/base/str.h"
#include "tec/guard/proxy.h"
#include "tec/kobj/key.h"
#include "tec/net/addr.h"
#include "tec/pki/cert.h"

#define POD_DELAY_S 5 /* default of --shutdown-delay in a Pod */
/* Each namespace has five watches, all on one HTTP/2 connection. */
#define TRUSTEE_NAMESPACES_MAX 256

/*
 * The order is that of --help and of the sample file. tests/check-config.sh compares names and
 * defaults with man/tec-operator.8, and the sample with etc/tec-operator.conf.
 */
static const struct conf_option table[] = {
	{"config", CONF_FILE, "FILE", .group = "General",
		.help = "Read options from FILE. The command line takes precedence."},
	{"role", CONF_CHOICE, "ROLE", "all",
		.choices = "all, controller, register, register-ak, guard",
		.help = "What this process runs: all, controller, register, register-ak, or guard, a proxy in front of Trustee."},
	{"log-level", CONF_CHOICE, "LEVEL", "info", .choices = "debug, info, warn, error",
		.help = "debug, info, warn or error.", .reloadable = true},
	{"log-format", CONF_CHOICE, "FORMAT", "text", .choices = "text, json",
		.help = "text (key=value) or json.", .reloadable = true},
	{"kubeconfig", CONF_STRING, "FILE", .group = "Kubernetes and Trustee",
		.help = "Client configuration for Kubernetes. Default: $KUBECONFIG, else the Pod's service account."},
	{"namespace", CONF_STRING, "NS",
		.help = "The namespace to manage. Default: $POD_NAMESPACE, else that of the context, else that of the service account."},
	{"api-protocol", CONF_CHOICE, "PROTOCOL", "auto", .choices = "auto, http1",
		.help = "auto: HTTP/2 if the API server supports it; http1: always HTTP/1.1."},
	{"leader-elect", CONF_BOOL, "BOOL", "true",
		.help = "Reconcile only while holding the Lease tec-operator and, for trustee, the Lease of the Trustee operator. Listeners serve without a Lease."},
	{"controllers", CONF_STRING, "LIST", "cluster",
		.help = "Comma-separated list of the controllers to run: cluster (TrustedExecutionClusters and what nodes need) and trustee (KbsConfigs and TrusteeConfigs)."},
	{"trustee-namespaces", CONF_STRING, "LIST",
		.help = "Comma-separated list of the namespaces of KbsConfigs and TrusteeConfigs, 256 at most. Their Lease is in the first one. Default: that of --namespace."},
	{"kbs-url", CONF_STRING, "URL",
		.help = "Connect to the cluster's Trustee at this URL instead of its Service. Rendered objects do not change."},
	{"listen-register", CONF_STRING, "ADDR:PORT", "[::]:8000", .group = "Listeners",
		.help = "Where nodes fetch their Ignition configuration."},
	{"listen-register-ak", CONF_STRING, "ADDR:PORT", "[::]:8001",
		.help = "Where nodes register attestation keys."},
	{"listen-health", CONF_STRING, "ADDR:PORT", "[::]:8081",
		.help = "Where /healthz, /readyz and /metrics are served."},
	{"rate-limit", CONF_STRING, "BURST,PER_S|off", "200,50",
		.help = "Requests allowed per source address: the size of a burst, and the sustained rate per second."},
	{"max-connections", CONF_STRING, "N", "1500",
		.help = "Maximum number of connections per listener. When it is reached, the address with the most connections loses its longest idle one."},
	{"shutdown-delay", CONF_STRING, "SECONDS",
		.help = "How long to keep serving after SIGTERM, while /readyz returns 503. Default: 5 in a Pod, else 0."},
	{"standalone", CONF_OPTIONAL, "DIR", .group = "Without a Kubernetes cluster",
		.help = "Keep all objects in DIR and serve the Kubernetes API from there; no cluster is needed. Default of DIR: /var/lib/tec-operator for root, else tec-operator in $XDG_STATE_HOME (~/.local/state)."},
	{"listen-api", CONF_STRING, "ADDR:PORT", "127.0.0.1:6443",
		.help = "Where --standalone serves the Kubernetes API."},
	{"public-address", CONF_STRING, "HOST[:PORT]",
		.help = "With --standalone: create a TrustedExecutionCluster, unless one exists, whose nodes reach this machine at HOST and its Trustee at PORT (default: that of --listen-kbs)."},
	{"plain", CONF_BOOL, "BOOL", "false",
		.help = "With --public-address, for a lab: create the cluster without TLS. Nodes register and get their disk keys over plain HTTP."},
	{"node-ca", CONF_STRING, "FILE",
		.help = "With --public-address, on the first start: the CA that nodes trust, from tecctl bootstrap ca. It is kept in DIR. Default: a new CA."},
	{"sealing-key", CONF_STRING, "FILE",
		.help = "With --standalone: 32 bytes that seal the Secrets in DIR. Default: the systemd credential tec-operator.sealing-key, else sealing.key in DIR, created if missing."},
	{"write-kubeconfig", CONF_STRING, "FILE",
		.help = "Where --standalone writes the administrator's kubeconfig, whose key can read every Secret. Default: kubeconfig in DIR if sealing.key in DIR is used, else nowhere."},
	{"restore", CONF_FILE, "FILE",
		.help = "With --standalone: restore the backup FILE into DIR, which must hold no objects, and exit."},
	{"accept-unverified", CONF_BOOL, "BOOL", "false",
		.help = "With --restore: accept a backup in which objects were deleted, added or replaced by older ones. Check its content before nodes can reach the operator."},
	{"registry-mirror", CONF_STRING, "LIST", .group = "Image registries",
		.help = "REGISTRY=HOST[:PORT][/PREFIX],...: hosts to try before a registry for its images, in this order."},
	{"insecure-registry", CONF_STRING, "LIST",
		.help = "HOST[:PORT],...: registries, mirrors and token servers to reach over plain HTTP."},
	{"registry-auth", CONF_STRING, "FILE",
		.help = "Registry credentials, in the format of a Secret's .dockerconfigjson. The file is read again for each image."},
	{"registry-ca", CONF_STRING, "FILE",
		.help = "With --standalone: CA certificates (PEM) for registries. Default: those of the system."},
	{"arch", CONF_STRING, "ARCH", REGISTRIES_ARCH,
		.help = "Architecture to select from a multi-architecture image: amd64, arm64..."},
	{"listen-kbs", CONF_STRING, "ADDR:PORT|off", "[::]:8080",
		.group = "Attestation, with --standalone or --role=guard",
		.help = "Where nodes attest and fetch resources. off, with --standalone only: Trustee runs elsewhere."},
	{"tee", CONF_CHOICE, "KINDS", "tpm", .choices = "tpm, tpm+sample",
		.help = "Evidence to accept: tpm, or tpm+sample for tests. Sample evidence proves nothing."},
	{"session-time", CONF_STRING, "SECONDS", "300",
		.help = "How long a started handshake is kept. It corresponds to Trustee's timeout, which is in minutes."},
	{"max-sessions", CONF_STRING, "N", "10000",
		.help = "Maximum number of unfinished handshakes. Above it, the source address with the most loses one."},
	{"max-sessions-per-source", CONF_STRING, "N", "1024",
		.help = "Maximum number of unfinished handshakes of one source address, which many nodes may share."},
	{"upstream", CONF_STRING, "URL", "http://127.0.0.1:8081", .group = "With --role=guard",
		.help = "The Trustee that the guard protects. Plain HTTP is allowed to loopback addresses only."},
	{"upstream-ca", CONF_STRING, "FILE",
		.help = "CA certificates (PEM) for an https upstream. Default: those of the system."},
	{"listen-admin", CONF_STRING, "ADDR:PORT",
		.help = "Where the operator reaches Trustee's admin API. Default: the guard does not expose that API."},
	{"tls-cert", CONF_STRING, "FILE",
		.help = "Certificate chain (PEM) of both listeners, reloaded when it changes. Without it, they use plain HTTP."},
	{"tls-key", CONF_STRING, "FILE", .help = "Private key (PEM) of --tls-cert."},
	{"allow-additional", CONF_BOOL, "BOOL", "false",
		.help = "Forward evidence of additional devices without checking it."},
	{"max-attestation", CONF_STRING, "BYTES", "65536",
		.help = "Maximum size of an attestation request."},
	{"check-config", CONF_ACTION, .group = "Other actions",
		.help = "Check the options and the files they name, report errors, and exit."},
	{"print-config", CONF_ACTION, .help = "Print a commented sample configuration file."},
	{"seed", CONF_PAIR, "SRC DST",
		.help = "Copy Trustee's policies from SRC to its storage DST and exit (init container)."},
	{"seed-resources", CONF_PAIR, "SRC DST",
		.help = "Copy the files of SRC to Trustee's repository DST and exit (init container)."},
	/* The operator runs itself with these two, as confined child processes. */
	{"lookup-label", CONF_ACTION,
		.help = "Internal: look up an image's label in a registry. The request is read from standard input."},
	{"compute-image", CONF_ACTION,
		.help = "Internal: compute an image's values. The request is read from standard input."},
	{"version", CONF_ACTION, .letter = 'V', .help = "Print the version and exit."},
	{"help", CONF_ACTION, .letter = 'h', .help = "Print this help and exit."},
};

static const struct conf_program program = {
	.name = "tec-operator",
	.usage = "[OPTION]...",
	.about =
		"Operator for Trusted Execution Clusters. Registers nodes and manages their disk keys and attestation keys.",
	.options = table,
	.n_options = ARRAY_LEN(table),
};

/* Read --rate-limit: BURST,PER_S, neither of them 0, or off. */
static int read_rate(struct options *o, struct err *err)
{
	const char *text = conf_str(o->conf, "rate-limit");
	cleanup_free char *copy = xstrdup(text);
	char *comma = strchr(copy, ',');
	uint64_t burst, per_s;

	o->rate_on = !str_eq(text, "off");
	if (!o->rate_on)
		return 0;
	if (comma)
		*comma = '\0';
	if (!comma || str_to_u64(copy, 1000000, &burst) < 0 ||
		str_to_u64(comma + 1, 1000000, &per_s) < 0 || !burst || !per_s)
		return err_set(err, ERR_INVALID,
			"option --rate-limit: %s is not BURST,PER_S or off", log_esc(text));
	o->rate_burst = (uint32_t)burst;
	o->rate_per_s = (uint32_t)per_s;
	return 0;
}

/* Validate the address only: the listener parses it again when it binds. */
static int read_listen(struct options *o, const char *name, const char **out, struct err *err)
{
	struct addr unused;

	*out = conf_str(o->conf, name);
	if (addr_parse(*out, &unused, err) < 0)
		return err_wrap(err, "option --%s", name);
	return 0;
}

/* Choose the default of --standalone's DIR: a system directory for root, else one of the user. */
static char *state_dir(struct err *err)
{
	const char *state = getenv("XDG_STATE_HOME"), *home = getenv("HOME");

	if (geteuid() == 0)
		return xstrdup("/var/lib/" PACKAGE_NAME);
	if (state && *state)
		return xasprintf("%s/" PACKAGE_NAME, state);
	if (home && *home)
		return xasprintf("%s/.local/state/" PACKAGE_NAME, home);
	err_set(err, ERR_INVALID,
		"option --standalone: no home directory; next step: give --standalone=DIR");
	return NULL;
}

/* Nodes must reach it, and a certificate must be able to contain it. Of an address that stands for
 * all of this machine nothing is left without zeros. */
static int check_public(const char *address, struct err *err)
{
	cleanup_free char *host = str_host(address);

	if (host && pki_issue_name_valid(host) && host[strspn(host, "0.:")])
		return 0;
	return err_set(err, ERR_INVALID,
		"option --public-address: %s is not HOST[:PORT] at which nodes reach this machine; for example anchor.example.com, 192.0.2.10:8080, [2001:db8::1]",
		log_esc(address));
}

/*
 * Read --standalone and what depends on it, and refuse options that contradict it. It runs last,
 * because it overrides --leader-elect: one process owns the directory, so nothing is elected.
 */
static int read_standalone(struct options *o, struct err *err)
{
	const char *dir = conf_str(o->conf, "standalone");

	static const char *const needs[] = {"public-address", "plain", "node-ca", "listen-api",
		"sealing-key", "write-kubeconfig", "restore"};

	o->public_address = conf_str(o->conf, "public-address");
	o->plain = conf_bool(o->conf, "plain");
	o->node_ca = conf_str(o->conf, "node-ca");
	o->sealing_key = conf_str(o->conf, "sealing-key");
	o->write_kubeconfig = conf_str(o->conf, "write-kubeconfig");
	o->restore = conf_str(o->conf, "restore");
	o->accept_unverified = conf_bool(o->conf, "accept-unverified");
	if (o->accept_unverified && !o->restore)
		return err_set(err, ERR_INVALID, "option --accept-unverified needs --restore");
	for (size_t i = 0; !dir && i < ARRAY_LEN(needs); i++)
		if (conf_is_set(o->conf, needs[i]))
			return err_set(
				err, ERR_INVALID, "option --%s needs --standalone", needs[i]);
	if (!dir)
		return 0;
	if (o->public_address && check_public(o->public_address, err) < 0)
		return -1;
	if (o->node_ca && (!o->public_address || o->plain))
		return err_set(err, ERR_INVALID,
			"option --node-ca needs --public-address, without --plain");
	if (o->kubeconfig)
		return err_set(err, ERR_INVALID,
			"options --standalone and --kubeconfig are mutually exclusive");
	if (o->role != ROLE_ALL)
		return err_set(
			err, ERR_INVALID, "option --role: --standalone supports role all only");
	if (o->namespace_ && !kobj_label_valid(o->namespace_, strlen(o->namespace_)))
		return err_set(err, ERR_INVALID,
			"option --namespace: %s is not a valid namespace name",
			log_esc(o->namespace_));
	o->standalone = *dir ? xstrdup(dir) : state_dir(err);
	/* The lock of the directory admits one process, so there is nobody to elect. */
	o->leader_elect = false;
	return o->standalone ? 0 : -1;
}

/* Read in every role, because --standalone shares some of these options. */
static int read_guard(struct options *o, struct err *err)
{
	struct options_guard *g = &o->guard;
	uint64_t bytes, n, per_source, s;

	g->upstream = conf_str(o->conf, "upstream");
	g->upstream_ca = conf_str(o->conf, "upstream-ca");
	g->tls_cert = conf_str(o->conf, "tls-cert");
	g->tls_key = conf_str(o->conf, "tls-key");
	g->sample = conf_choice(o->conf, "tee") == 1;
	g->additional = conf_bool(o->conf, "allow-additional");
	if (guard_upstream_check(g->upstream, err) < 0)
		return err_wrap(err, "option --upstream");
	if (!g->tls_cert != !g->tls_key)
		return err_set(
			err, ERR_INVALID, "options --tls-cert and --tls-key require each other");
	if (conf_number(o->conf, "max-attestation", 4096, 8 << 20, &bytes, err) < 0 ||
		conf_number(o->conf, "max-sessions", 1, 1000000, &n, err) < 0 ||
		conf_number(o->conf, "max-sessions-per-source", 1, 1000000, &per_source, err) < 0 ||
		conf_number(o->conf, "session-time", 60, 86400, &s, err) < 0)
		return -1;
	/* off is for --standalone only: without this listener a guard has no purpose. */
	if (!(conf_str(o->conf, "standalone") && str_eq(conf_str(o->conf, "listen-kbs"), "off")) &&
		read_listen(o, "listen-kbs", &g->listen_kbs, err) < 0)
		return -1;
	if (conf_is_set(o->conf, "listen-admin") &&
		read_listen(o, "listen-admin", &g->listen_admin, err) < 0)
		return -1;
	g->attest_max = (size_t)bytes;
	g->sessions = (unsigned)n;
	g->sessions_per_source = (unsigned)per_source;
	g->session_ms = (uint32_t)(s * 1000);
	return 0;
}

/* An item of --controllers. */
static int check_controller(const char *item, struct err *err)
{
	return str_eq(item, "cluster") || str_eq(item, "trustee")
		       ? 0
		       : err_set(err, ERR_INVALID, "%s is neither cluster nor trustee",
				 log_esc(item));
}

/* An item of --trustee-namespaces. Namespaces are DNS labels (RFC 1123). */
static int check_namespace(const char *item, struct err *err)
{
	return kobj_label_valid(item, strlen(item))
		       ? 0
		       : err_set(err, ERR_INVALID, "%s is not a valid namespace name",
				 log_esc(item));
}

/* Refuse duplicate namespaces, because each entry starts watches of its own. */
static int read_controllers(struct options *o, struct err *err)
{
	struct registries_list list = {.text = NULL};
	int rc = registries_read(o->conf, "controllers", check_controller, &list, err);

	for (size_t i = 0; i < list.n; i++) {
		o->controls_cluster |= str_eq(list.items[i], "cluster");
		o->controls_trustees |= str_eq(list.items[i], "trustee");
	}
	registries_fini(&list);
	if (rc < 0 || registries_read(o->conf, "trustee-namespaces", check_namespace,
			      &o->trustee_namespaces, err) < 0)
		return -1;
	if (!o->controls_cluster && !o->controls_trustees)
		return err_set(err, ERR_INVALID,
			"option --controllers is empty; next step: give cluster, trustee or both");
	if (o->trustee_namespaces.n > TRUSTEE_NAMESPACES_MAX)
		return err_set(err, ERR_INVALID,
			"option --trustee-namespaces lists more than %d; next step: run a second operator",
			TRUSTEE_NAMESPACES_MAX);
	for (size_t i = 0; i < o->trustee_namespaces.n; i++)
		for (size_t k = 0; k < i; k++)
			if (str_eq(o->trustee_namespaces.items[i], o->trustee_namespaces.items[k]))
				return err_set(err, ERR_INVALID,
					"option --trustee-namespaces: %s is duplicated",
					o->trustee_namespaces.items[i]);
	if (conf_str(o->conf, "standalone") && o->controls_trustees)
		return err_set(err, ERR_INVALID,
			"option --controllers: trustee is not available with --standalone, which cannot run Deployments");
	return 0;
}

/* Read every option whatever the role, so that an error in an unused one is reported as well. */
static int read_values(struct options *o, struct err *err)
{
	const char *in_pod = getenv("KUBERNETES_SERVICE_HOST");
	/* In a Pod, the time that Services need to remove it from their endpoints. */
	uint64_t n, delay_s = in_pod && *in_pod ? POD_DELAY_S : 0;

	o->log_level = (enum log_level)conf_choice(o->conf, "log-level");
	o->log_format = (enum log_format)conf_choice(o->conf, "log-format");
	o->role = (enum options_role)conf_choice(o->conf, "role");
	o->api_http1 = str_eq(conf_str(o->conf, "api-protocol"), "http1");
	o->kubeconfig = conf_str(o->conf, "kubeconfig");
	o->namespace_ = conf_str(o->conf, "namespace");
	o->kbs_url = conf_str(o->conf, "kbs-url");
	o->leader_elect = conf_bool(o->conf, "leader-elect");
	o->registry_auth = conf_str(o->conf, "registry-auth");
	o->lookup_label = conf_bool(o->conf, "lookup-label");
	o->compute_image = conf_bool(o->conf, "compute-image");
	o->seed_src = conf_nth(o->conf, "seed", 0);
	o->seed_dst = conf_nth(o->conf, "seed", 1);
	o->resources_src = conf_nth(o->conf, "seed-resources", 0);
	o->resources_dst = conf_nth(o->conf, "seed-resources", 1);
	if (conf_number(o->conf, "max-connections", 1, 1000000, &n, err) < 0)
		return -1;
	o->max_connections = (unsigned)n;
	if (read_listen(o, "listen-register", &o->listen_register, err) < 0 ||
		read_listen(o, "listen-register-ak", &o->listen_register_ak, err) < 0 ||
		read_listen(o, "listen-health", &o->listen_health, err) < 0 ||
		read_rate(o, err) < 0 ||
		(conf_is_set(o->conf, "shutdown-delay") &&
			conf_number(o->conf, "shutdown-delay", 0, 600, &delay_s, err) < 0) ||
		read_guard(o, err) < 0 ||
		registries_mirrors(o->conf, &o->registry_mirrors, err) < 0 ||
		read_controllers(o, err) < 0 ||
		registries_insecure(o->conf, &o->insecure_registries, err) < 0 ||
		read_listen(o, "listen-api", &o->listen_api, err) < 0)
		return -1;
	o->shutdown_delay_ms = delay_s * 1000;
	return read_standalone(o, err);
}

/* conf_refuse() prints the error and the hint at --help. */
enum conf_result options_read(struct options *o, int argc, char *const argv[])
{
	struct err err = ERR_INIT;
	enum conf_result result;

	memset(o, 0, sizeof(*o));
	o->conf = conf_new(&program);
	result = conf_start(o->conf, argc, argv);
	if (result == CONF_RUN && read_values(o, &err) < 0)
		return conf_refuse(o->conf, &err);
	return result;
}

int options_listen(struct httpd *h, const char *option, const char *address, struct err *err)
{
	return httpd_listen(h, address, err) < 0 ? err_wrap(err, "%s", option) : 0;
}

const char *env_or(const char *name, const char *dflt)
{
	const char *v = getenv(name);

	return v && *v ? v : dflt;
}

void options_fini(struct options *o)
{
	registries_fini(&o->registry_mirrors);
	registries_fini(&o->insecure_registries);
	registries_fini(&o->trustee_namespaces);
	free(o->standalone);
	conf_free(o->conf);
	o->conf = NULL;
}

/* Only the file is read again: the command line cannot change. */
int options_reload(struct options *o, struct err *err)
{
	const char *path = conf_str(o->conf, "config");

	if (!path)
		return 0;
	/* Other values are read at startup only; changing them requires a restart. */
	if (conf_parse_file(o->conf, path, err) < 0)
		return -1;
	o->log_level = (enum log_level)conf_choice(o->conf, "log-level");
	o->log_format = (enum log_format)conf_choice(o->conf, "log-format");
	return 0;
}

bool options_hangup(struct options *o)
{
	struct err err = ERR_INIT;
	bool good = options_reload(o, &err) == 0;

	if (!good)
		log_err(LOG_ERROR, NULL, "cannot reload the configuration, keeping the current one",
			&err);
	log_setup(o->log_level, o->log_format);
	return good;
}
