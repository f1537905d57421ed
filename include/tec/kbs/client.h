/* SPDX-License-Identifier: MIT */
/*
 * kbs_transport over HTTPS (net/httpc). The bearer token is an EdDSA JWT (RFC 8037; iss
 * "tec-operator", aud "kbs", role "admin") that lives 60 s and is replaced after half of that, so
 * one serves many requests.
 */
#ifndef TEC_KBS_CLIENT_H
#define TEC_KBS_CLIENT_H

#include "tec/kbs/transport.h"
#include "tec/loop/loop.h"
#include "tec/net/httpc.h"
#include "tec/pki/key.h"

#define KBS_TOKEN_LIFE_S 60

struct kbs_client_conf {
	const char *url;            /* "https://name:port", no path; copied */
	const char *connect_to;     /* "addr:port", NULL: as in the URL; copied */
	struct httpc_tls *tls;      /* NULL: plain http; a reference is taken */
	const struct secret *admin; /* Ed25519 private key, PKCS#8 PEM; borrowed for the call */
};
struct kbs_transport *kbs_client_new(struct loop *l, struct httpc *http,
	const struct kbs_client_conf *conf, struct err *err) MUST_CHECK;

#endif
