# SPDX-License-Identifier: MIT
# Attestation policy of Trustee (policy id default_cpu) for keyIsolation Shared: the reference values of the Rust
# operator, so that a cluster can go back and forth. A node is trusted when both hold:
# - its attestation key is one of reference value "trusted_aks";
# - PCR 4 is one of "tpm_pcr4" and PCR 14 is one of "tpm_pcr14"; where it is required, PCR 7 is one of "tpm_pcr7".
# Only tee "tpm" counts: a confidential VM's vTPM key is registered nowhere, so those branches would let in any guest
# that boots an approved image.
package policy

import rego.v1

# A missing value is null, and `in` of anything but a list must not match.
listed(value, name) if {
	is_string(value)
	values := query_reference_value(name)
	is_array(values)
	value in values
}

# spec.attestation.pcr7: true is the variant for Require, made of this file when the operator is built.
pcr7_required := false

# Whether PCR 7 is one of "tpm_pcr7", where that is required.
pcr7_fits if not pcr7_required

pcr7_fits if {
	is_string(input.tpm.pcr07)
	regex.match(`^[0-9a-f]{64}$`, input.tpm.pcr07)
	listed(input.tpm.pcr07, "tpm_pcr7")
}

# 2 and 3 affirm; 33 warns; 97 contraindicates (draft-ietf-rats-ar4si section 2.3).
default instance_identity := 97

instance_identity := 2 if listed(input.tpm.ak_public, "trusted_aks")

default executables := 33

executables := 3 if {
	listed(input.tpm.pcr04, "tpm_pcr4")
	listed(input.tpm.pcr14, "tpm_pcr14")
	pcr7_fits
}

trust_claims := {
	"instance-identity": instance_identity,
	"executables": executables,
	"configuration": 0,
	"hardware": 0,
	"file-system": 0,
	"runtime-opaque": 0,
	"storage-opaque": 0,
	"sourced-data": 0,
}
