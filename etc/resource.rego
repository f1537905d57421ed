# SPDX-License-Identifier: MIT
# Resource policy of Trustee: default/<uuid>/root is read by the one Machine whose identity the attestation policy
# (tpm.rego) has put into the token. Only the primary evidence (cpu0) counts: additional evidence can be affirming
# beside primary evidence that proves nothing.
package policy

import rego.v1

default allow := false

# spec.attestation.release: true is the variant for OncePerBoot, made of this file when the operator is built.
once_per_boot := false

# PCR 15 is zero until the node seals its boot (tec-node seal), before it enters its root file system.
unsealed := "0000000000000000000000000000000000000000000000000000000000000000"

released if not once_per_boot

released if input.submods.cpu0["ear.veraison.annotated-evidence"].tpm.pcr15 == unsealed

allow if {
	released
	data.plugin == "resource"
	path := data["resource-path"]
	count(path) == 3
	path[0] == "default"
	path[2] == "root"
	cpu := input.submods.cpu0
	cpu["ear.status"] == "affirming"
	machine := cpu["ear.trustee.identifiers"].validated.machine
	is_string(machine)
	machine == path[1]
}
