/* SPDX-License-Identifier: MIT */
/*
 * The pair itself was judged when the Secret was read, with its private key, which nothing keeps.
 * Here the rest of the same judgement follows: what depends on spec and on the time.
 */
#include "config.h"

#include "tec/model/tlsuse.h"

#include <string.h>

#include "tec/base/mem.h"
#include "tec/base/str.h"
#include "tec/pki/pair.h"

bool model_tls_use(const struct model_cluster *c, unsigned i, struct model_tls_use *out)
{
	bool managed = c->deploy == MODEL_DEPLOY_MANAGED;

	*out = (struct model_tls_use){.field = "trusteeServers.caSecret", .needs_ca = true};
	switch (i) {
	case MODEL_TLS_TRUSTEE:
		/* An External Trustee has its certificate elsewhere. */
		*out = (struct model_tls_use){"trusteeSecret", c->trustee_secret,
			managed ? c->public_trustee_addr : NULL, managed,
			managed && c->guard == MODEL_GUARD_DISABLED, true};
		return true;
	case MODEL_TLS_REGISTER:
		/* The user's own Ignition configuration says what nodes trust there. */
		*out = (struct model_tls_use){"registerServerSecret", c->register_secret,
			c->public_register_addr, true, false, false};
		return true;
	case MODEL_TLS_REGISTER_KEY:
		*out = (struct model_tls_use){"attestationKeyRegisterSecret", c->ak_secret,
			c->public_ak_addr, true, false, c->public_ak_addr != NULL};
		return true;
	default:
		if (i - MODEL_TLS_SERVERS >= c->n_servers)
			return false;
		out->secret = c->server_ca[i - MODEL_TLS_SERVERS];
		return true;
	}
}

/* As a TLS client compares it: without the final dot. NULL: none. The caller frees. */
static char *name_of(const char *address)
{
	char *host = str_host(address);
	size_t len = host ? strlen(host) : 0;

	if (len && host[len - 1] == '.')
		host[len - 1] = '\0';
	return host;
}

bool model_tls_usable(const struct model_tls_use *use, const struct model_secret *s, int64_t now_s,
	struct err *why)
{
	cleanup_free char *host = name_of(use->address);
	const char *chain = s->tls_crt ? s->tls_crt : "";
	struct pki_pair p = {
		.ca = use->needs_ca && !s->ca ? "" : s->ca, .name = host, .now_s = now_s};

	if (use->serves) {
		p.cert = chain;
		p.cert_len = strlen(chain);
	}
	if (use->serves && s->tls_fault != PKI_PAIR_OK &&
		(s->tls_fault != PKI_PAIR_ORDER || use->reads_itself))
		return err_set(why, ERR_INVALID, "%s", s->tls_why) == 0;
	return pki_pair_judge(&p, NULL, why) == PKI_PAIR_OK;
}
