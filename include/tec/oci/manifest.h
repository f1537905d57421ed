/* SPDX-License-Identifier: MIT */
/*
 * The three documents between a digest and an image's labels (image specification 1.1 and docker's
 * schema 2): index, manifest, configuration. Bytes in, values out; that the bytes are the ones
 * asked for is checked by who fetched them. ERR_INVALID: no such document, or none of this
 * platform.
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

/* What a request for a manifest says it accepts. */
#define OCI_ACCEPT_MANIFEST                                                                        \
	"application/vnd.oci.image.index.v1+json, application/vnd.oci.image.manifest.v1+json, "    \
	"application/vnd.docker.distribution.manifest.list.v2+json, "                              \
	"application/vnd.docker.distribution.manifest.v2+json"

/* sha256 of the body against the digest it was asked by. ERR_INVALID: it is another. */
int oci_digest_check(const char *digest, const void *body, size_t len, struct err *err) MUST_CHECK;

struct oci_descriptor {
	char digest[OCI_DIGEST_LEN + 1];
	size_t size; /* 1 .. the bound of what it describes */
};

struct oci_manifest {
	bool index; /* next is a manifest; else the configuration */
	struct oci_descriptor next;
};
/*
 * An index or a manifest, by its mediaType and, where that is left out, by what it holds; both at
 * once is refused. Of an index: the one manifest of os/arch. When several variants match, the one
 * without variant (or the architecture's first: v8 of arm64, v1 of amd64) is meant; when that is
 * not one either, the index is refused as ambiguous.
 */
int oci_manifest_parse(const char *text, size_t len, const char *os, const char *arch,
	struct oci_manifest *out, struct err *err) MUST_CHECK;

/* Of a manifest that oci_manifest_parse() took, its layers, the lowest first: at most OCI_LAYERS_MAX, of
 * OCI_LAYER_MAX bytes each. The caller frees *out. */
#define OCI_LAYERS_MAX 512u
#define OCI_LAYER_MAX  ((size_t)16 << 30)
int oci_manifest_layers(const char *text, size_t len, struct oci_descriptor **out, size_t *n,
	struct err *err) MUST_CHECK;

/*
 * A label of an image's configuration. *value NULL: there is no such label; else the caller frees
 * it. ERR_INVALID: the text is not a configuration, or the label is not a string.
 */
int oci_config_label(const char *text, size_t len, const char *label, char **value,
	size_t *value_len, struct err *err) MUST_CHECK;

#endif
