/* SPDX-License-Identifier: MIT */
/*
 * One question to an OCI registry: the Labels of an image's configuration (OCI distribution and
 * image specifications 1.1; docker's schema 2 too). Index -> manifest of the wanted platform ->
 * config blob; every body's SHA-256 is compared with the digest it was asked by, from the
 * reference on, and bounded (manifest 4 MiB, config 8 MiB). Token authentication as registries ask
 * for it (WWW-Authenticate: Bearer realm=...; Basic). Blob redirects (up to 3, https to https,
 * without credentials) are followed here, since httpc follows none. Never sends a credential to
 * another host than the one it was given for, except the token realm over https.
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

/* Where and how; borrowed for the call. */
struct oci_conf {
	const char *const *mirrors; /* "registry=host[:port][/prefix]", tried in order before the
				       registry itself */
	size_t n_mirrors;
	const char *const *insecure; /* "host:port" that may be spoken to in plain http */
	size_t n_insecure;
	struct httpc_tls *tls;                   /* trust; NULL: the system's CAs */
	const char *platform_os, *platform_arch; /* "linux", "amd64" */
};

/* Credentials as bytes: the JSON of .dockerconfigjson (or .dockercfg) Secrets, in order. */
struct oci_label {
	const char *value; /* borrowed for the call; NULL: the image has no such label */
	size_t len;
};
typedef void (*oci_label_fn)(void *arg, const struct err *err, const struct oci_label *label);
/* err: NOT_FOUND (no such image), DENIED (credentials), INVALID (the registry lied about a digest,
 * or what it sent is no image), TRANSIENT. Everything is copied. */
struct op *oci_label_get(struct loop *l, struct httpc *http, struct op_scope *scope,
	const struct oci_conf *conf, const struct oci_ref *ref, const char *label,
	const struct secret *const *docker_configs, size_t n_configs, oci_label_fn done, void *arg);

#endif
