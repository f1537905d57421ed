/* SPDX-License-Identifier: MIT */
/*
 * The requests are chosen so that the servers refuse them before any effect:
 *
 *   registration      405 to HEAD /ignition: a GET would create a Machine
 *   key registration  405 to GET /register-ak: keys come by PUT or POST
 *   Trustee           401 to GET /kbs/v0/resource/default/bootstrap/check: there is no session
 *
 * Any other status comes from another server, or from a proxy in between.
 */
#include "config.h"

#include "tec/report/endpoints.h"

#include <stdlib.h>
#include <string.h>

#include "tec/base/log.h"
#include "tec/base/mem.h"

#define IGNITION "/ignition"
#define TOO_MANY 429

/* Split HOST[:PORT]; "[::1]" keeps its brackets and *port points into address. false: it is
 * neither. */
static bool split(const char *address, char **host, const char **port)
{
	const char *end = address[0] == '[' ? strchr(address, ']') : strchr(address, ':');
	size_t len = !end ? strlen(address) : (size_t)(end - address) + (address[0] == '[');
	uint64_t number;

	*port = address[len] ? address + len + 1 : NULL;
	if (len == 0 || (address[0] == '[' && !end) || (address[len] && address[len] != ':') ||
		strpbrk(address, "/ \t?#@%\"\\") ||
		(*port && (str_to_u64(*port, 65535, &number) < 0 || !number)))
		return false;
	*host = xstrndup(address, len);
	return true;
}

/* A port in publicAttestationKeyRegisterAddr is that of the other listener, so only the host is
 * taken from it. */
char *report_register_url(const struct model_cluster *c, const char *given, struct err *err)
{
	const char *port, *what, *from, *scheme = c->register_secret ? "https" : "http";
	cleanup_free char *host = NULL;
	bool own = given || c->public_register_addr;

	what = given ? "option --address:"
	       : own ? "publicRegisterAddr"
		     : "publicAttestationKeyRegisterAddr";
	from = given ? given : own ? c->public_register_addr : c->public_ak_addr;
	if (!from) {
		err_set(err, ERR_NOT_FOUND,
			"the TrustedExecutionCluster has neither publicRegisterAddr nor publicAttestationKeyRegisterAddr; next step: set publicRegisterAddr, or give --address HOST[:PORT] of the operator's registration listener");
		return NULL;
	}
	if (!split(from, &host, &port)) {
		err_set(err, ERR_INVALID, "%s %s is not HOST[:PORT]", what, log_esc(from));
		return NULL;
	}
	if (own && port)
		return xasprintf("%s://%s:%s" IGNITION, scheme, host, port);
	return xasprintf("%s://%s:%d" IGNITION, scheme, host, c->register_port);
}

/* The host of address without brackets; NULL: no address, or a malformed one. The caller frees. */
static char *host_of(const char *address)
{
	cleanup_free char *host = NULL;
	const char *port;
	size_t len;

	if (!address || !split(address, &host, &port))
		return NULL;
	len = strlen(host);
	return host[0] == '[' ? xstrndup(host + 1, len - 2) : steal_ptr(&host);
}

/* Set host, and the URL unless it is set already; both stay NULL for a malformed address. */
static void fill(struct report_endpoint *e, const char *address, const char *path)
{
	e->host = host_of(address);
	if (e->host && !e->url)
		e->url = xasprintf("%s://%s%s", e->secret ? "https" : "http", address, path);
}

/* The expected statuses are the refusals: 405 for a wrong method, 401 for a resource without a
 * session. */
void report_endpoints(const struct model_cluster *c, struct report_endpoint out[REPORT_N_ENDPOINTS])
{
	struct err none = ERR_INIT;

	out[REPORT_REGISTRATION] = (struct report_endpoint){.name = "registration",
		.method = "HEAD",
		.expected = 405,
		.secret = c->register_secret};
	out[REPORT_KEY_REGISTRATION] = (struct report_endpoint){.name = "key registration",
		.method = "GET",
		.expected = 405,
		.secret = c->ak_secret};
	out[REPORT_KBS] = (struct report_endpoint){
		.name = "Trustee", .method = "GET", .expected = 401, .secret = c->trustee_secret};
	out[REPORT_REGISTRATION].url = report_register_url(c, NULL, &none);
	if (out[REPORT_REGISTRATION].url)
		fill(&out[REPORT_REGISTRATION],
			c->public_register_addr ? c->public_register_addr : c->public_ak_addr,
			IGNITION);
	fill(&out[REPORT_KEY_REGISTRATION], c->public_ak_addr, "/register-ak");
	fill(&out[REPORT_KBS], c->public_trustee_addr, "/kbs/v0/resource/default/bootstrap/check");
}

void report_endpoints_fini(struct report_endpoint e[REPORT_N_ENDPOINTS])
{
	for (int i = 0; i < REPORT_N_ENDPOINTS; i++) {
		free(e[i].url);
		free(e[i].host);
		strbuf_fini(&e[i].ca_pem);
	}
}

bool report_endpoint_answers(const struct report_endpoint *e, int status)
{
	return status == e->expected || status == TOO_MANY;
}

/* An IPv6 address has colons and counts as reachable from outside, as does "localhost", which
 * is another machine on each node. A trailing dot is the root of DNS. */
bool report_inside_only(const char *address)
{
	cleanup_free char *host = host_of(address);
	size_t len = host ? strlen(host) : 0;

	if (len && host[len - 1] == '.')
		host[--len] = '\0';
	if (!len || str_eq(host, "localhost") || strchr(host, ':'))
		return false;
	return !strchr(host, '.') || str_ends(host, ".svc") || str_ends(host, ".cluster.local");
}

/* ---- the script */

/* Standard output has one line per server in the format of report_finding_line(). curl reads no
 * configuration file (-q), no proxy and no system CA (--capath), as nodes do not either; its
 * exit codes 6, 7, 28, 35 and 60 are those of curl(1). */
static const char head[] =
	"#!/bin/sh\n"
	"# Generated by tecctl bootstrap check --from-node. Run it in the nodes' network; it needs curl. It\n"
	"# queries the three servers that a new node needs and trusts only their CA. Exit status:\n"
	"# 0 all answer, 1 at least one does not, 2 the script cannot run.\n"
	"set -u\n"
	"command -v curl >/dev/null || { echo 'curl not found: install it' >&2; exit 2; }\n"
	"dir=$(mktemp -d) || exit 2\n"
	"trap 'rm -rf \"$dir\"' EXIT\n"
	"trap 'exit 2' HUP INT TERM\n"
	"failed=0\n"
	"# look NAME STATUS URL [CURL_OPTION...]; the CA is read from standard input, empty for plain HTTP.\n"
	"look() {\n"
	"\tname=$1 expected=$2 url=$3\n"
	"\tshift 3\n"
	"\tcat >\"$dir/ca\"\n"
	"\t[ ! -s \"$dir/ca\" ] || set -- \"$@\" --cacert \"$dir/ca\" --capath /dev/null\n"
	"\tcode=$(curl -q -g -sS --noproxy '*' --max-time 15 -o /dev/null -w '%{http_code}' \"$@\" \"$url\" 2>\"$dir/err\")\n"
	"\trc=$?\n"
	"\tcase $rc:$code in\n"
	"\t0:$expected | 0:429) echo \"ok    $name  $url\"; return ;;\n"
	"\t0:*) why=\"HTTP $code, expected $expected: another server, or a proxy, answers at this address\" ;;\n"
	"\t6:*) why='the name does not resolve here: check DNS' ;;\n"
	"\t7:*) why='no connection: check the address and firewalls' ;;\n"
	"\t28:*) why='no answer within 15 s: check routes and firewalls' ;;\n"
	"\t35:* | 60:*) why='TLS failed: check that no proxy terminates TLS, that the certificate names this host, and the local clock' ;;\n"
	"\t*) why=\"curl exited with status $rc\" ;;\n"
	"\tesac\n"
	"\techo \"no    $name  $url  $(head -n 1 \"$dir/err\") -> $why\"\n"
	"\tfailed=1\n"
	"}\n";

/* Each CA is a here-document with a quoted delimiter, in which the shell expands nothing. A URL,
 * which comes from the API server and is untrusted, may have only characters that are safe between
 * apostrophes. */
int report_endpoints_script(
	const struct report_endpoint e[REPORT_N_ENDPOINTS], struct strbuf *out, struct err *err)
{
	static const char plain[] =
		"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789.:/[]_-";

	strbuf_adds(out, head);
	for (int i = 0; i < REPORT_N_ENDPOINTS; i++) {
		if (!e[i].url)
			continue;
		if (e[i].url[strspn(e[i].url, plain)])
			return err_set(err, ERR_INVALID, "%s: %.200s is not a valid address",
				e[i].name, log_esc(e[i].url));
		strbuf_addf(out, "look '%s' %d '%s'%s <<'END'\n", e[i].name, e[i].expected,
			e[i].url, str_eq(e[i].method, "HEAD") ? " -I" : "");
		strbuf_add(out, strbuf_str(&e[i].ca_pem), e[i].ca_pem.len);
		strbuf_adds(out, "END\n");
	}
	strbuf_adds(out, "exit $failed\n");
	return 0;
}
