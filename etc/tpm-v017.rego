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
