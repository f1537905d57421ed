/* SPDX-License-Identifier: MIT */
/*
 * The three documents between a digest and the labels of an image (image specification 1.1 and
 * docker's schema 2): index, manifest, configuration. Bytes in, values out; the fetcher has
 * verified the bytes. ERR_INVALID: the document is malformed, or does not contain this platform.
 */
#ifndef TEC_OCI_MANIFEST_H
#define TEC_OCI_MANIFEST_H

#include <json-c/json.h>
#include <stdbool.h>
#include <stddef.h>

#include "tec/base/err.h"
#include "tec/oci/ref.h"

#define OCI_MANIFEST_MAX (4u * 1024 * 1024)
#define OCI_CONFIG_MAX   (8u * 1024 * 1024)

/* Accept header of a request for a manifest. */
#define OCI_ACCEPT_MANIFEST                                                                        \
	"application/vnd.oci.image.index.v1+json, application/vnd.oci.image.manifest.v1+json, "    \
	"application/vnd.docker.distribution.manifest.list.v2+json, "                              \
	"application/vnd.docker.distribution.manifest.v2+json"

/* Write "sha256:..." of a body. */
void oci_digest_of(const void *body, size_t len, char out[OCI_DIGEST_LEN + 1]);
/* Compare the SHA-256 of a body with the requested digest. ERR_INVALID: they differ. */
int oci_digest_check(const char *digest, const void *body, size_t len, struct err *err) MUST_CHECK;

struct oci_descriptor {
	char digest[OCI_DIGEST_LEN + 1];
	size_t size; /* at least 1, at most the limit for the kind of document */
};

struct oci_manifest {
	bool index; /* next is a manifest; otherwise the configuration */
	struct oci_descriptor next;
};
/*
 * Parse an index or a manifest, told apart by mediaType or, if that is missing, by content; a
 * document that could be both is refused. From an index, the manifest for os/arch is taken. If
 * several variants match, the one without a variant (or the default: v8 of arm64, v1 of amd64) is
 * taken; if there is not exactly one, the index is refused as ambiguous.
 */
int oci_manifest_parse(const char *text, size_t len, const char *os, const char *arch,
	struct oci_manifest *out, struct err *err) MUST_CHECK;

/* List the layers of a manifest that oci_manifest_parse() accepted, lowest first: at most
 * OCI_LAYERS_MAX, of at most OCI_LAYER_MAX bytes each. The caller frees *out. */
#define OCI_LAYERS_MAX 512u
#define OCI_LAYER_MAX  ((size_t)16 << 30)
int oci_manifest_layers(const char *text, size_t len, struct oci_descriptor **out, size_t *n,
	struct err *err) MUST_CHECK;

/*
 * Read a label from an image's configuration. *value NULL: the label does not exist; otherwise the
 * caller frees it. ERR_INVALID: the text is not a configuration, or the label is not a string.
 */
int oci_config_label(const char *text, size_t len, const char *label, char **value,
	size_t *value_len, struct err *err) MUST_CHECK;

#endif
