/* SPDX-License-Identifier: MIT */
/*
 * One question to an OCI registry: the Labels of an image's configuration (OCI distribution and
 * image specifications 1.1; docker's schema 2 too). Index -> manifest of the wanted platform ->
 * configuration; every body's SHA-256 is compared with the digest it was asked by, from the
 * reference on, and its size with what the descriptor says (manifest 4 MiB at most, configuration
 * 8 MiB). A request may take 30 s, the question 120 s.
 *
 * Mirrors come first, in their order, then the registry itself: whatever fails at one host (no
 * answer, no such image, refused, a lie) is asked of the next one, and what was verified is not
 * asked again. Plain http is spoken only to the hosts listed as insecure; all others need TLS.
 *
 * A credential goes to the host it is configured for, and to the token server that host names in
 * its challenge: over https, or in plain http when the host is insecure and the token server is the
 * same host or listed as insecure too. Redirects are followed here (3 at most) where oci/redirect.h
 * allows it; a redirect to another scheme, host or port gets no credential, nor does what follows
 * it. An error's text says nothing about a body.
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
	char prefix[OCI_NAME_MAX + 1]; /* of every repository there; "": none */
};
/* "registry=host[:port][/prefix]" */
int oci_mirror_parse(const char *text, struct oci_mirror *out, struct err *err) MUST_CHECK;

/* Where and how; borrowed for the call. */
struct oci_conf {
	const char *const *mirrors; /* texts of oci_mirror_parse() */
	size_t n_mirrors;
	const char *const *insecure; /* host[:port], of registries, mirrors and token servers */
	size_t n_insecure;
	struct httpc_tls *tls;                   /* trust; NULL: the system's CAs */
	const char *platform_os, *platform_arch; /* "linux", "amd64" */
};

/* value NULL: there is no such label, or err is set. Borrowed for the call. */
typedef void (*oci_label_fn)(void *arg, const struct err *err, const char *value, size_t len);
/*
 * reference: a text of oci_ref_parse(); one it refuses is reported by done, like every other error.
 * docker_configs: JSON of .dockerconfigjson or .dockercfg Secrets, see oci/auth.h. Everything is
 * copied; of the credentials only those of the hosts that may be asked.
 *
 * err: NOT_FOUND (no such image), DENIED (credentials, certificates, plain http where it is not
 * allowed), INVALID (the reference, the credentials' JSON; the registry lied about a digest, or
 * what it sent is not an image of the platform), TRANSIENT (retry_after_ms when the server gave one).
 */
struct op *oci_label_get(struct loop *l, struct httpc *http, struct op_scope *scope,
	const struct oci_conf *conf, const char *reference, const char *label,
	const struct secret *const *docker_configs, size_t n_configs, oci_label_fn done, void *arg);

#endif
