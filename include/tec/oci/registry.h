/* SPDX-License-Identifier: MIT */
/*
 * Reads one label of an image from an OCI registry (OCI distribution and image specifications 1.1,
 * and docker's schema 2). Index -> manifest of the wanted platform -> configuration. The SHA-256 of
 * every body is compared with the digest that it was requested by, starting with the reference, and
 * its size with the descriptor's (at most 4 MiB for a manifest, 8 MiB for a configuration). A
 * request may take 30 s, the whole lookup 120 s.
 *
 * Mirrors are tried first, in order, then the registry. After any failure at one host (no answer,
 * no such image, refused, a wrong digest) the next one is tried; verified documents are not fetched
 * again. Plain http is used only with hosts listed as insecure; all others require TLS.
 *
 * A credential is sent to the host it is configured for, and to the token server that this host
 * names in its challenge: over https, or in plain http if the host is insecure and the token server
 * is the same host or listed as insecure too. Redirects are followed (at most 3) if oci/redirect.h
 * allows it. After a redirect to another scheme, host or port no more credentials are sent. Errors
 * never quote a body.
 */
#ifndef TEC_OCI_REGISTRY_H
#define TEC_OCI_REGISTRY_H

#include <stdbool.h>
#include <stddef.h>

#include "tec/base/secret.h"
#include "tec/loop/loop.h"
#include "tec/loop/op.h"
#include "tec/net/httpc.h"
#include "tec/oci/ref.h"

struct oci_mirror {
	char registry[OCI_NAME_MAX + 1], host[OCI_NAME_MAX + 1];
	char prefix[OCI_NAME_MAX + 1]; /* before every repository name; "": none */
};
/* Parse "registry=host[:port][/prefix]". */
int oci_mirror_parse(const char *text, struct oci_mirror *out, struct err *err) MUST_CHECK;

/* Hosts and platform; borrowed for the call. */
struct oci_conf {
	const char *const *mirrors; /* for oci_mirror_parse() */
	size_t n_mirrors;
	const char *const *insecure; /* host[:port], of registries, mirrors and token servers */
	size_t n_insecure;
	struct httpc_tls *tls;                   /* trust; NULL: the system's CAs */
	const char *platform_os, *platform_arch; /* "linux", "amd64" */
};

/* value NULL: the label does not exist, or err is set. Borrowed for the call. */
typedef void (*oci_label_fn)(void *arg, const struct err *err, const char *value, size_t len);
/*
 * reference: for oci_ref_parse(); if it is invalid, done reports it like every other error.
 * docker_configs: JSON of .dockerconfigjson or .dockercfg Secrets, see oci/auth.h. Everything is
 * copied, but only the credentials of the hosts that may be asked.
 *
 * err: NOT_FOUND (no such image), DENIED (credentials, certificates, plain http not allowed),
 * INVALID (the reference, the credentials' JSON, a wrong digest, or not an image of the platform),
 * TRANSIENT (retry_after_ms if the server sent one).
 */
struct op *oci_label_get(struct loop *l, struct httpc *http, struct op_scope *scope,
	const struct oci_conf *conf, const char *reference, const char *label,
	const struct secret *const *docker_configs, size_t n_configs, oci_label_fn done, void *arg);

#endif
