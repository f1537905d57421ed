# SPDX-License-Identifier: MIT
# Attestation policy of Trustee v0.17 and older (policy id default_cpu), for delivery Volumes. That verifier itself
# refuses an attestation key that is no file of trusted_ak_keys_dir, and does not report the key. A later one checks no
# key and reports it: below it nobody is trusted, instead of everybody. The rest is tpm-shared.rego's.
package policy

import rego.v1

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

verifier_reports_key if {
	some name, _ in input.tpm
	name == "ak_public"
}

default instance_identity := 97

instance_identity := 2 if {
	is_string(input.tpm.pcr04)
	not verifier_reports_key
}

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
