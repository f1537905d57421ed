/* SPDX-License-Identifier: MIT */
/*
 * The operator's own policies (etc/tpm.rego, etc/tpm-shared.rego and their resource policies),
 * evaluated without Rego: the same claims and grants for the same evidence and reference values.
 * Pure: a callback looks up reference values by name.
 */
#ifndef TEC_RATS_POLICY_H
#define TEC_RATS_POLICY_H

#include <json-c/json.h>
#include <stdbool.h>

#include "tec/rats/evidence.h"

enum rats_policy {
	RATS_POLICY_PER_MACHINE, /* a key belongs to one Machine, a boot is approved as a whole */
	RATS_POLICY_SHARED,      /* the arrays of the Rust operator */
};

/* A reference value, which the caller puts; NULL: null or absent. */
typedef struct json_object *(*rats_policy_value_fn)(void *arg, const char *name);

/* Claims by draft-ietf-rats-ar4si section 2.3: 2 and 3 affirm, 33 warns, 97 contraindicates. */
struct rats_verdict {
	int identity; /* instance-identity */
	int executables;
	struct json_object *validated; /* owned {"machine","images"}; NULL: not both claims hold */
	char *machine;                 /* whose key it is, owned; NULL: unknown */
};
void rats_verdict_fini(struct rats_verdict *v);
#define cleanup_rats_verdict __attribute__((cleanup(rats_verdict_fini)))

/* Initialises out. Sample evidence affirms nothing. */
void rats_policy_attest(enum rats_policy p, bool require_pcr7, const struct rats_evidence *e,
	rats_policy_value_fn value, void *arg, struct rats_verdict *out);
bool rats_policy_knows_key(const struct rats_verdict *v); /* the claim instance-identity affirms */
/* "affirming", "warning", "contraindicated": the worst of the claims. */
const char *rats_policy_status(const struct rats_verdict *v);

/* What a token says of the node, borrowed. */
struct rats_holder {
	const char *status;
	const char *machine; /* NULL: none was validated */
	bool sealed;         /* it has finished its boot: its PCR 15 is not zero */
};
/* Whether it may read path (repository/type/tag). once_per_boot: a disk key (.../root) is released
 * only before the node has sealed its boot (spec.attestation.release). */
bool rats_policy_grants(
	enum rats_policy p, bool once_per_boot, const struct rats_holder *h, const char *path);

#endif
