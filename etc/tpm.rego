# SPDX-License-Identifier: MIT
# Attestation policy of Trustee (policy id default_cpu). A node is trusted when both hold:
# - its attestation key is registered for a Machine: reference value "ak." + 240 characters of the key. Keys can be
#   made that start with the same characters, so the value is a list, and the entry with the whole key counts. A
#   single entry that is not in a list, as version 0.2.0 wrote it, counts too;
# - what it booted was approved as a whole: reference value "boot.<PCR 4>.<PCR 14>", so that parts of two images
#   do not mix. A missing, null or emptied value means revoked. Where PCR 7 is required, the name is
#   "boot.<PCR 4>.<PCR 7>.<PCR 14>", and a value without PCR 7 approves nothing.
# The token then carries the Machine and the images, for the resource policy and for people.
package policy

import rego.v1

ak := input.tpm.ak_public

ak_name := concat(".", ["ak", replace(replace(substring(ak, 44, 240), "+", "-"), "/", "_")]) if {
	is_string(ak)
	count(ak) >= 392
}

identity := query_reference_value(ak_name)

default entries := []

entries := identity if is_array(identity)

entries := [identity] if is_object(identity)

machines := [entry.machine |
	some entry in entries
	is_object(entry)
	entry.ak == ak
	is_string(entry.machine)
	count(entry.machine) == 36
]

machine := machines[0]

# spec.attestation.pcr7: true is the variant for Require, made of this file when the operator is built.
pcr7_required := false

is_register(value) if {
	is_string(value)
	regex.match(`^[0-9a-f]{64}$`, value)
}

boot_name := concat(".", ["boot", input.tpm.pcr04, input.tpm.pcr14]) if {
	not pcr7_required
	is_register(input.tpm.pcr04)
	is_register(input.tpm.pcr14)
}

boot_name := concat(".", ["boot", input.tpm.pcr04, input.tpm.pcr07, input.tpm.pcr14]) if {
	pcr7_required
	is_register(input.tpm.pcr04)
	is_register(input.tpm.pcr07)
	is_register(input.tpm.pcr14)
}

boot := query_reference_value(boot_name)

images := boot.images if {
	is_object(boot)
	is_array(boot.images)
	count(boot.images) > 0
}

# 2 and 3 affirm; 33 warns; 97 contraindicates (draft-ietf-rats-ar4si section 2.3).
default instance_identity := 97

instance_identity := 2 if machine

default executables := 33

executables := 3 if images

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

# Without the default an undefined value would fail every attestation.
default extensions := []

extensions := [{
	"name": "ear.trustee.identifiers",
	"key": -18,
	"value": {"validated": {"machine": machine, "images": images}},
}] if {
	machine
	images
}
