# SPDX-License-Identifier: MIT
# Resource policy of Trustee: default/<uuid>/root is read by the one Machine whose identity the attestation policy
# (tpm.rego) has put into the token. Only the primary evidence (cpu0) counts: additional evidence can be affirming
# beside primary evidence that proves nothing.
package policy

import rego.v1

default allow := false

allow if {
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
