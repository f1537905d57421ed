# SPDX-License-Identifier: MIT
# Attestation policy of CPUs (default_cpu) that a TrusteeConfig begins with. It says what was measured (AR4SI claims);
# what follows from it the resource policy decides. Reference values are lists, and none means that nothing is known.
# It decides as the Trustee operator's own policy does. Beyond that it compares the key of a TPM, as Trustee's own
# policy does; for VMs of Azure, it refuses debug mode, and compares what the reference values contain, see agrees.
# Edit the ConfigMap: an edited policy is kept.
package policy

import rego.v1

known(value, name) if value in query_reference_value(name)

same(value, name) if value == query_reference_value(name)

# What Azure determines has no published values: it is compared if there are reference values for it.
agrees(claims, claim, name) if known(claims[claim], name)

agrees(_, _, name) if query_reference_value(name) == null

default executables := 33 # not recognized

default hardware := 97 # not recognized

default configuration := 36 # not known

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

# What a guest was started with: 3, all of it was approved; 4, of TDX only the measurements were, not each event.

executables := 3 if known(input.sample.launch_digest, "launch_digest")

executables := 3 if known(input.snp.measurement, "snp_launch_measurement")

executables := e if {
	known(input.tdx.quote.body.rtmr_1, "rtmr_1")
	known(input.tdx.quote.body.rtmr_2, "rtmr_2")
	e := tdx_executables
}

default tdx_executables := 4

tdx_executables := 3 if {
	some kernel in input.tdx.uefi_event_logs
	kernel.type_name == "EV_EFI_BOOT_SERVICES_APPLICATION"
	"File(kernel)" in kernel.details.device_paths
	has_digest(kernel, "tdvfkernel")

	some parameters in input.tdx.uefi_event_logs
	parameters.type_name == "EV_EVENT_TAG"
	parameters.details.string == "LOADED_IMAGE::LoadOptions"
	has_digest(parameters, "tdvfkernelparams")
}

has_digest(event, name) if {
	some digest in event.digests
	same(digest.digest, name)
}

# PCR 3: option ROMs; 8: init data, or what GRUB was told; 9: initrd; 11: unified kernel image; 12: command line and
# credentials.
azure_boot(pcrs, prefix) if {
	every pcr in ["pcr03", "pcr08", "pcr09", "pcr11", "pcr12"] {
		known(pcrs[pcr], concat("_", [prefix, pcr]))
	}
}

# Without "measurement", the firmware that reports these PCRs may be anybody's.
executables := 3 if {
	azure_boot(input["az-snp-vtpm"].tpm, "snp")
	agrees(input["az-snp-vtpm"], "measurement", "measurement")
}

executables := 3 if azure_boot(input["az-tdx-vtpm"].tpm, "tdx")

# The verifier accepts a quote by any key: without this list, everybody who knows the value of PCR 11 can show it.
executables := 3 if {
	known(input.tpm.pcr11, "tpm_pcr11")
	known(input.tpm.ak_public, "trusted_aks")
}

executables := 3 if input.se # the verifier has compared everything

# Processor and firmware: 2, genuine and at an approved level.

hardware := 2 if {
	known(input.sample.svn, "svn")
	same(input.sample.platform_version.major, "major_version")
	input.sample.platform_version.minor >= query_reference_value("minimum_minor_version")
}

hardware := 2 if {
	known(input.snp.reported_tcb_bootloader, "snp_bootloader")
	known(input.snp.reported_tcb_microcode, "snp_microcode")
	known(input.snp.reported_tcb_snp, "snp_snp_svn")
	known(input.snp.reported_tcb_tee, "snp_tee_svn")
}

hardware := 2 if {
	azure := input["az-snp-vtpm"]
	every part in ["bootloader", "microcode", "snp", "tee"] {
		agrees(azure, concat("_", ["reported_tcb", part]), concat("_", ["tcb", part]))
	}
}

# Intel's quoting enclave, as the header of a quote names it.
is_tdx(claims) if {
	claims.quote.header.tee_type == "81000000"
	claims.quote.header.vendor_id == "939a7233f79c4ca9940a0db3957f0607"
	claims.tcb_status == "UpToDate"
}

hardware := 2 if {
	is_tdx(input.tdx)
	known(input.tdx.quote.body.mr_td, "mr_td")
	input.tdx.collateral_expiration_status == "0"
}

hardware := 2 if {
	is_tdx(input["az-tdx-vtpm"])
	agrees(input["az-tdx-vtpm"].quote.body, "mr_td", "mr_td")
}

hardware := 2 if input.tpm

hardware := 2 if input.se

# How the guest may be observed: 2, an approved configuration; 3, none that is known to be weak.

configuration := 2 if input.sample.debug == false

configuration := c if {
	snp_is_closed
	c := snp_configuration
}

default snp_configuration := 3

snp_configuration := 2 if {
	same(input.snp.platform_smt_enabled, "snp_smt_enabled")
	same(input.snp.platform_tsme_enabled, "snp_tsme_enabled")
	same(input.snp.policy_abi_major, "snp_guest_abi_major")
	same(input.snp.policy_abi_minor, "snp_guest_abi_minor")
	same(input.snp.policy_single_socket, "snp_single_socket")
	same(input.snp.policy_smt_allowed, "snp_smt_allowed")
}

snp_is_closed if {
	input.snp.policy_debug_allowed == false
	input.snp.policy_migrate_ma == false
}

configuration := 2 if {
	input.tdx.td_attributes.debug == false
	known(input.tdx.quote.body.xfam, "xfam")
}

configuration := 2 if {
	azure := input["az-snp-vtpm"]
	not azure.policy_debug_allowed
	every claim, name in {
		"platform_smt_enabled": "smt_enabled",
		"platform_tsme_enabled": "tsme_enabled",
		"policy_abi_major": "abi_major",
		"policy_abi_minor": "abi_minor",
		"policy_single_socket": "single_socket",
		"policy_smt_allowed": "smt_allowed",
	} {
		agrees(azure, claim, name)
	}
}

configuration := 2 if {
	azure := input["az-tdx-vtpm"]
	not azure.td_attributes.debug
	agrees(azure.quote.body, "xfam", "xfam")
}

configuration := 0 if input.tpm # nothing is claimed

configuration := 2 if input.se

# Which containers the guest was told to run, for the resource policy.

containers := object.get(input, ["init_data_claims", "agent_policy_claims", "containers"], [])

images := [c.OCI.Annotations["io.kubernetes.cri.image-name"] | some c in containers]

uids := [c.OCI.Process.User.UID | some c in containers]

# A list that is empty is left out: "every" of an empty list is true.
validated := {name: list |
	some name, list in {"container_images": images, "container_uids": uids}
	count(list) > 0
}

extensions := [{"name": "ear.trustee.identifiers", "key": -18, "value": {"validated": validated}}]
