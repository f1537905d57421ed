# SPDX-License-Identifier: MIT
# Attestation policy of GPUs (default_gpu) that a TrusteeConfig begins with: what NVIDIA's service confirmed. Edit the
# ConfigMap: an edited policy is kept.
package policy

import rego.v1

known(value, name) if value in query_reference_value(name)

default executables := 33

default hardware := 97

trust_claims := {
	"executables": executables,
	"hardware": hardware,
	"configuration": configuration,
	"file-system": 0,
	"instance-identity": 0,
	"runtime-opaque": 0,
	"storage-opaque": 0,
	"sourced-data": 0,
}

good_chain(name) if {
	chain := input.nvidia[name]
	chain["x-nvidia-cert-ocsp-status"] == "good"
	chain["x-nvidia-cert-status"] == "valid"
}

# A manifest of measurements: fetched, well-formed, signed, and of this version.
good_manifest(of) if {
	every what in ["fetched", "measurements-available", "schema-validated", "signature-verified", "version-match"] {
		input.nvidia[sprintf("x-nvidia-gpu-%s-rim-%s", [of, what])] == true
	}
}

hardware := 2 if {
	good_chain("x-nvidia-gpu-attestation-report-cert-chain")
	input.nvidia["x-nvidia-gpu-attestation-report-cert-chain-fwid-match"] == true
	input.nvidia["x-nvidia-gpu-attestation-report-parsed"] == true
	input.nvidia["x-nvidia-gpu-attestation-report-signature-verified"] == true
	input.nvidia["x-nvidia-gpu-arch-check"] == true
}

hardware := 2 if known(input.sampledevice.svn, "device_svn")

executables := 3 if {
	good_chain("x-nvidia-gpu-vbios-rim-cert-chain")
	good_manifest("driver")
	good_manifest("vbios")
	input.nvidia.measres == "success"
}

closed if {
	input.nvidia.secboot == true
	input.nvidia.dbgstat == "disabled"
}

default configuration := 36

configuration := c if {
	closed
	c := closed_configuration
}

default closed_configuration := 3

closed_configuration := 2 if {
	known(input.nvidia["x-nvidia-gpu-vbios-version"], "allowed_vbios_versions")
	known(input.nvidia["x-nvidia-gpu-driver-version"], "allowed_driver_versions")
}
