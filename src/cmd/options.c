/* SPDX-License-Identifier: MIT */
/*
 * One table is the command line, the configuration file, --help and the sample in etc/. Every value
 * is checked here, so the rest of the program never meets a malformed one.
 */
#include "config.h"

#include "options.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "tec/base/mem.h"
#include "tec/base/str.h"
#include "tec/net/addr.h"
#include "tec/oci/registry.h"

static const struct conf_option table[] = {
	{"config", CONF_FILE, "FILE", NULL,
		"Read options from FILE; the command line wins over it.", false},
	{"kubeconfig", CONF_STRING, "FILE", NULL,
		"Kubernetes configuration. Default: $KUBECONFIG, else the Pod's service account.",
		false},
	{"namespace", CONF_STRING, "NS", NULL,
		"The one namespace managed. Default: $POD_NAMESPACE, the context's, the service account's.",
		false},
	{"kbs-url", CONF_STRING, "URL", NULL,
		"Where to connect to the cluster's Trustee instead of its Service; changes nothing that is rendered.",
		false},
	{"registry-mirror", CONF_STRING, "LIST", NULL,
		"REGISTRY=HOST[:PORT][/PREFIX],...: hosts asked for a registry's images first, in this order.",
		false},
	{"insecure-registry", CONF_STRING, "LIST", NULL,
		"HOST[:PORT],...: registries, mirrors and token servers spoken to in plain HTTP.",
		false},
	{"registry-auth", CONF_STRING, "FILE", NULL,
		"Credentials of registries as in a Secret's .dockerconfigjson; reread for each image.",
		false},
	{"listen-register", CONF_STRING, "ADDR:PORT", "[::]:8000",
		"Where nodes fetch their Ignition.", false},
	{"listen-register-ak", CONF_STRING, "ADDR:PORT", "[::]:8001",
		"Where nodes register attestation keys.", false},
	{"listen-health", CONF_STRING, "ADDR:PORT", "[::]:8081",
		"Serves /healthz, /readyz and /metrics.", false},
	{"rate-limit", CONF_STRING, "BURST,PER_S|off", "200,50",
		"Requests allowed per source address: a burst, and how many come back each second.",
		false},
	{"max-connections", CONF_STRING, "N", "1500",
		"Connections per listener; when all are taken, who holds the most gives up the idlest.",
		false},
	{"role", CONF_STRING, "ROLE", "all",
		"What this process does: all, controller, register or register-ak.", false},
	{"leader-elect", CONF_BOOL, "BOOL", "true",
		"Reconcile only while holding the Lease tec-operator; listeners serve regardless.",
		false},
	{"log-level", CONF_STRING, "LEVEL", "info", "debug, info, warn or error.", true},
	{"log-format", CONF_STRING, "FORMAT", "text", "text (key=value) or json.", true},
	{"check-config", CONF_ACTION, NULL, NULL,
		"Check options and files, say what is wrong, start nothing.", false},
	{"print-config", CONF_ACTION, NULL, NULL, "Print a commented sample configuration file.",
		false},
	{"seed", CONF_PAIR, "SRC DST", NULL,
		"Copy Trustee's policies from SRC into its storage DST and exit (init container).",
		false},
	{"lookup-label", CONF_ACTION, NULL, NULL,
		"Internal: ask a registry for a label, the question on standard input.", false},
	{"version", CONF_ACTION, NULL, NULL, "Print the version and exit.", false},
	{"help", CONF_ACTION, NULL, NULL, "Print this help and exit.", false},
};

static const char *const role_names[] = {"all", "controller", "register", "register-ak"};

static int read_rate(struct options *o, const char *text, struct err *err)
{
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
		return err_set(
			err, ERR_INVALID, "--rate-limit: \"%s\" is not BURST,PER_S or off", text);
	o->rate_burst = (uint32_t)burst;
	o->rate_per_s = (uint32_t)per_s;
	return 0;
}

static int read_role(struct options *o, const char *text, struct err *err)
{
	size_t i;

	for (i = 0; i < ARRAY_LEN(role_names); i++) {
		if (!str_eq(text, role_names[i]))
			continue;
		o->role = (enum options_role)i;
		return 0;
	}
	return err_set(err, ERR_INVALID,
		"--role: \"%s\" is none of all, controller, register, register-ak", text);
}

static int read_log(struct options *o, struct err *err)
{
	if (log_level_parse(conf_str(o->conf, "log-level"), &o->log_level) < 0)
		return err_set(err, ERR_INVALID,
			"--log-level: \"%s\" is none of debug, info, warn, error",
			conf_str(o->conf, "log-level"));
	if (log_format_parse(conf_str(o->conf, "log-format"), &o->log_format) < 0)
		return err_set(err, ERR_INVALID, "--log-format: \"%s\" is neither text nor json",
			conf_str(o->conf, "log-format"));
	return 0;
}

static int read_listen(struct options *o, const char *name, const char **out, struct err *err)
{
	struct addr unused;

	*out = conf_str(o->conf, name);
	if (addr_parse(*out, &unused, err) < 0)
		return err_wrap(err, "--%s", name);
	return 0;
}

static int check_mirror(const char *text, struct err *err)
{
	struct oci_mirror unused;

	return oci_mirror_parse(text, &unused, err);
}

static int check_host(const char *text, struct err *err)
{
	if (!oci_host_valid(text, strlen(text)))
		return err_set(err, ERR_INVALID, "\"%s\" is not host[:port]", text);
	return 0;
}

/* Blanks around an item are allowed, an empty item is not. */
static int read_list(struct options *o, const char *name, int (*check)(const char *, struct err *),
	struct options_list *out, struct err *err)
{
	const char *text = conf_str(o->conf, name);
	char *rest, *item;

	if (!text || !*text)
		return 0;
	rest = out->text = xstrdup(text);
	while ((item = strsep(&rest, ","))) {
		item += strspn(item, " ");
		item[strcspn(item, " ")] = '\0';
		if (check(item, err) < 0)
			return err_wrap(err, "--%s", name);
		out->items = xreallocarray(out->items, out->n + 1, sizeof(*out->items));
		out->items[out->n++] = item;
	}
	return 0;
}

static void list_fini(struct options_list *l)
{
	free(l->text);
	free(l->items);
}

static int read_registries(struct options *o, struct err *err)
{
	o->registry_auth = conf_str(o->conf, "registry-auth");
	if (read_list(o, "registry-mirror", check_mirror, &o->registry_mirrors, err) < 0)
		return -1;
	return read_list(o, "insecure-registry", check_host, &o->insecure_registries, err);
}

static int read_values(struct options *o, struct err *err)
{
	uint64_t n;

	o->kubeconfig = conf_str(o->conf, "kubeconfig");
	if (!o->kubeconfig && getenv("KUBECONFIG") && *getenv("KUBECONFIG"))
		o->kubeconfig = getenv("KUBECONFIG");
	o->namespace_ = conf_str(o->conf, "namespace");
	o->kbs_url = conf_str(o->conf, "kbs-url");
	o->leader_elect = conf_bool(o->conf, "leader-elect");
	if (str_to_u64(conf_str(o->conf, "max-connections"), 1000000, &n) < 0 || !n)
		return err_set(err, ERR_INVALID,
			"--max-connections: \"%s\" is not a number from 1 to 1000000",
			conf_str(o->conf, "max-connections"));
	o->max_connections = (unsigned)n;
	if (read_listen(o, "listen-register", &o->listen_register, err) < 0 ||
		read_listen(o, "listen-register-ak", &o->listen_register_ak, err) < 0 ||
		read_listen(o, "listen-health", &o->listen_health, err) < 0)
		return -1;
	if (read_rate(o, conf_str(o->conf, "rate-limit"), err) < 0 ||
		read_role(o, conf_str(o->conf, "role"), err) < 0 || read_registries(o, err) < 0)
		return -1;
	return read_log(o, err);
}

static enum options_result bad(const struct err *err)
{
	fprintf(stderr, "tec-operator: %s\nTry 'tec-operator --help'.\n", err->text);
	return OPTIONS_BAD;
}

enum options_result options_read(struct options *o, int argc, char *const argv[])
{
	struct err err = ERR_INIT;

	memset(o, 0, sizeof(*o));
	o->conf = conf_new(table, ARRAY_LEN(table));
	if (conf_parse_argv(o->conf, argc, argv, &err) < 0)
		return bad(&err);
	if (conf_bool(o->conf, "help")) {
		printf("Usage: tec-operator [OPTION]...\n"
		       "Operator for Trusted Execution Clusters: registers nodes, keeps their disk keys and attestation keys.\n\n");
		conf_print_help(table, ARRAY_LEN(table), stdout);
		return OPTIONS_EXIT;
	}
	if (conf_bool(o->conf, "version")) {
		printf("tec-operator %s\n", PACKAGE_VERSION);
		return OPTIONS_EXIT;
	}
	if (conf_bool(o->conf, "print-config")) {
		conf_print_sample(table, ARRAY_LEN(table), stdout);
		return OPTIONS_EXIT;
	}
	if (conf_str(o->conf, "config") &&
		conf_parse_file(o->conf, conf_str(o->conf, "config"), &err) < 0)
		return bad(&err);
	if (read_values(o, &err) < 0)
		return bad(&err);
	o->lookup_label = conf_bool(o->conf, "lookup-label");
	o->seed_src = conf_str(o->conf, "seed");
	o->seed_dst = conf_second(o->conf, "seed");
	return OPTIONS_RUN;
}

void options_fini(struct options *o)
{
	list_fini(&o->registry_mirrors);
	list_fini(&o->insecure_registries);
	conf_free(o->conf);
	o->conf = NULL;
}

int options_reload(struct options *o, struct err *err)
{
	const char *path = conf_str(o->conf, "config");

	if (!path)
		return 0;
	/* The other values are read at start only; what the file says of them now counts at the
	 * next start. */
	if (conf_parse_file(o->conf, path, err) < 0)
		return -1;
	return read_log(o, err);
}
