/* SPDX-License-Identifier: MIT */
/* The two policies (trustee-protocol.md section 4). They cannot be read back. */
#ifndef TEC_KBS_POLICY_H
#define TEC_KBS_POLICY_H

#include "tec/kbs/resource.h"

/* Rego source. The attestation policy goes under the id default_cpu. */
struct op *kbs_policy_put_attestation(struct kbs_transport *t, struct op_scope *scope,
	const char *rego, kbs_done_fn done, void *arg);
struct op *kbs_policy_put_resource(struct kbs_transport *t, struct op_scope *scope,
	const char *rego, kbs_done_fn done, void *arg);

#endif
