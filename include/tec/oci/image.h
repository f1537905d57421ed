/* SPDX-License-Identifier: MIT */
/*
 * An image's files from its registry, as far as they are needed: reference -> index -> manifest of the
 * platform -> layers, which are unpacked while they come (oci/unpack.h). Hosts, credentials, redirects
 * and TLS as in oci/registry.h. Every document is compared with its digest, a layer when all of it has
 * come; nothing of it is in the directory before. When a host fails, the image is begun again with the
 * next one.
 *
 * A reference may lack its digest; then done is told which it is.
 */
#ifndef TEC_OCI_IMAGE_H
#define TEC_OCI_IMAGE_H

#include "tec/oci/registry.h"
#include "tec/oci/unpack.h"

struct oci_image_spec { /* copied; `needs` and strings in there are borrowed */
	const char *reference;
	struct oci_unpack_conf unpack;
	bool resolve;         /* only what the reference stands for; unpack says nothing then */
	uint32_t deadline_ms; /* for all of it */
	/* A line for people about what comes now; NULL: none is wanted. */
	void (*progress)(void *arg, const char *line);
};

/* digest: "sha256:..." of the reference, when it succeeded. Borrowed for the call. */
typedef void (*oci_image_fn)(void *arg, const struct err *err, const char *digest);
/* err: as from oci_label_get(). */
struct op *oci_image_fetch(struct loop *l, struct httpc *http, struct op_scope *scope,
	const struct oci_conf *conf, const struct oci_image_spec *spec,
	const struct secret *const *docker_configs, size_t n_configs, oci_image_fn done, void *arg);

#endif
