/* SPDX-License-Identifier: MIT */
/*
 * oci_label_get() in a process of its own, so that the one which holds keys never reads a byte that
 * a registry sent: a program is started for each question, gets it on standard input with the
 * credentials of the hosts that may be asked, an empty environment and no other descriptor, and
 * prints one answer (oci/wire.h), which is bounded and checked. OCI_LOOKUP_MAX of them run at once;
 * a question that waits for longer than OCI_LOOKUP_WAIT_MS is answered ERR_TRANSIENT, so that
 * whoever can go on without the label does. A child is killed at its deadline and when its op is
 * cancelled.
 *
 * Owns nothing of its callers; every op must have ended before oci_lookup_free().
 */
#ifndef TEC_OCI_LOOKUP_H
#define TEC_OCI_LOOKUP_H

#include "tec/oci/registry.h"

#define OCI_LOOKUP_MAX         4u
#define OCI_LOOKUP_WAIT_MS     15000u
#define OCI_LOOKUP_DEADLINE_MS 130000u /* a question has 120 s, see oci/registry.h */

struct oci_lookup;

/* file: the program; argv: NULL-terminated, argv[0] is what its errors call it. Both are borrowed
 * and outlive the lookup. */
struct oci_lookup *oci_lookup_new(struct loop *l, const char *file, const char *const *argv);
void oci_lookup_free(struct oci_lookup *k);

/*
 * As oci_label_get(): everything is copied, and errors are those, each reported once and at once.
 * conf->tls is not used: the child trusts the system's CAs. Beside these errors: TRANSIENT when the
 * child did not answer, for whatever reason; the log says it.
 */
struct op *oci_lookup_get(struct oci_lookup *k, struct op_scope *scope, const struct oci_conf *conf,
	const char *reference, const char *label, const struct secret *const *docker_configs,
	size_t n_configs, oci_label_fn done, void *arg);

#endif
