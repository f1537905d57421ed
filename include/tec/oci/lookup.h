/* SPDX-License-Identifier: MIT */
/*
 * oci_label_get() in a separate process, so that the process that holds keys never parses a byte
 * that a registry sent. A program is started for each request. It gets the request on standard
 * input, with the credentials of the hosts that may be asked, an empty environment and no other
 * descriptor, and prints one answer (oci/wire.h), which is bounded and checked. OCI_LOOKUP_MAX of
 * them run at once. A request that waits longer than OCI_LOOKUP_WAIT_MS fails with ERR_TRANSIENT,
 * so that callers that can continue without the label do so. A child is killed at its deadline and
 * when its op is cancelled.
 *
 * Owns nothing of its callers; every op must have ended before oci_lookup_free().
 */
#ifndef TEC_OCI_LOOKUP_H
#define TEC_OCI_LOOKUP_H

#include "tec/oci/registry.h"

#define OCI_LOOKUP_MAX         4u
#define OCI_LOOKUP_WAIT_MS     15000u
#define OCI_LOOKUP_DEADLINE_MS 130000u /* a request may take 120 s, see oci/registry.h */

struct oci_lookup;

/* file: the program; argv: NULL-terminated, argv[0] is its name in errors. Both are borrowed and
 * must outlive the lookup. */
struct oci_lookup *oci_lookup_new(struct loop *l, const char *file, const char *const *argv);
void oci_lookup_free(struct oci_lookup *k);

/*
 * Like oci_label_get(): everything is copied, and the errors are the same. conf->tls is ignored:
 * the child trusts the system's CAs. In addition, TRANSIENT: the child did not answer; the log has
 * the reason.
 */
struct op *oci_lookup_get(struct oci_lookup *k, struct op_scope *scope, const struct oci_conf *conf,
	const char *reference, const char *label, const struct secret *const *docker_configs,
	size_t n_configs, oci_label_fn done, void *arg);

#endif
