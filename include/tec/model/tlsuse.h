/* SPDX-License-Identifier: MIT */
/* The TLS Secrets that a TrustedExecutionCluster names: what each one is used for, and whether its
 * content is good for that. */
#ifndef TEC_MODEL_TLSUSE_H
#define TEC_MODEL_TLSUSE_H

#include "tec/model/cluster.h"
#include "tec/model/secretobj.h"

struct model_tls_use {
	const char *field;   /* "trusteeSecret"; static */
	const char *secret;  /* NULL: the field is not set */
	const char *address; /* HOST[:PORT] that nodes connect to; NULL: unset or unused */
	bool serves;         /* a server uses tls.crt and tls.key */
	bool reads_itself;   /* ... and reads them without this operator, which sorts chains */
	bool needs_ca;       /* nodes are told to trust ca.crt and nothing else */
};

/* The fields that can name a Secret; after these, one for each of trusteeServers. */
enum { MODEL_TLS_TRUSTEE, MODEL_TLS_REGISTER, MODEL_TLS_REGISTER_KEY, MODEL_TLS_SERVERS };
/* The i-th of them. false: there is none. */
bool model_tls_use(const struct model_cluster *c, unsigned i, struct model_tls_use *out);
/* Whether the Secret is good for this use. false: why has a sentence without Secret and field. */
bool model_tls_usable(const struct model_tls_use *use, const struct model_secret *s, int64_t now_s,
	struct err *why) MUST_CHECK;

#endif
