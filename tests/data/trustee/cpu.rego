# SPDX-License-Identifier: Apache-2.0
# Copyright Confidential Containers Contributors; changed, see README.
package policy

import rego.v1

default executables := 33
default hardware := 97
default configuration := 36
default file_system := 0
default instance_identity := 0
default runtime_opaque := 0
default storage_opaque := 0
default sourced_data := 0

trust_claims := {
  "executables": executables,
  "hardware": hardware,
  "configuration": configuration,
  "file-system": file_system,
  "instance-identity": instance_identity,
  "runtime-opaque": runtime_opaque,
  "storage-opaque": storage_opaque,
  "sourced-data": sourced_data,
}

##### Sample
executables := 3 if {
  input.sample

  input.sample.launch_digest in query_reference_value("launch_digest")
}

hardware := 2 if {
  input.sample

  input.sample.svn in query_reference_value("svn")
  input.sample.platform_version.major == query_reference_value("major_version")
  input.sample.platform_version.minor >= query_reference_value("minimum_minor_version")
}

configuration := 2 if {
  input.sample

  input.sample.debug == false
}

##### SNP
executables := 3 if {
  input.snp

  input.snp.measurement in query_reference_value("snp_launch_measurement")
}

hardware := 2 if {
  input.snp

  input.snp.reported_tcb_bootloader in query_reference_value("snp_bootloader")
  input.snp.reported_tcb_microcode in query_reference_value("snp_microcode")
  input.snp.reported_tcb_snp in query_reference_value("snp_snp_svn")
  input.snp.reported_tcb_tee in query_reference_value("snp_tee_svn")
}

configuration := 2 if {
  input.snp

  input.snp.policy_debug_allowed == false
  input.snp.policy_migrate_ma == false
  input.snp.platform_smt_enabled == query_reference_value("snp_smt_enabled")
  input.snp.platform_tsme_enabled == query_reference_value("snp_tsme_enabled")
  input.snp.policy_abi_major == query_reference_value("snp_guest_abi_major")
  input.snp.policy_abi_minor == query_reference_value("snp_guest_abi_minor")
  input.snp.policy_single_socket == query_reference_value("snp_single_socket")
  input.snp.policy_smt_allowed == query_reference_value("snp_smt_allowed")
}

else := 3 if {
  input.snp

  input.snp.policy_debug_allowed == false
  input.snp.policy_migrate_ma == false
}

##### TDX
executables := 3 if {
  input.tdx

  input.tdx.quote.body.rtmr_1 in query_reference_value("rtmr_1")
  input.tdx.quote.body.rtmr_2 in query_reference_value("rtmr_2")
  tdx_uefi_event_tdvfkernel_ok
  tdx_uefi_event_tdvfkernelparams_ok
}

# Support for Grub boot used by GKE
else := 4 if {
  input.tdx

  input.tdx.quote.body.rtmr_1 in query_reference_value("rtmr_1")
  input.tdx.quote.body.rtmr_2 in query_reference_value("rtmr_2")
}

hardware := 2 if {
  input.tdx

  input.tdx.quote.header.tee_type == "81000000"
  input.tdx.quote.header.vendor_id == "939a7233f79c4ca9940a0db3957f0607"

  input.tdx.quote.body.mr_td in query_reference_value("mr_td")

  input.tdx.tcb_status == "UpToDate"

  input.tdx.collateral_expiration_status == "0"
}

configuration := 2 if {
  input.tdx

  input.tdx.td_attributes.debug == false
  input.tdx.quote.body.xfam in query_reference_value("xfam")
}

tdx_uefi_event_tdvfkernel_ok if {
  event := input.tdx.uefi_event_logs[_]
  event.type_name == "EV_EFI_BOOT_SERVICES_APPLICATION"
  "File(kernel)" in event.details.device_paths

  digest := event.digests[_]
  digest.digest == query_reference_value("tdvfkernel")
}

tdx_uefi_event_tdvfkernelparams_ok if {
  event := input.tdx.uefi_event_logs[_]
  event.type_name == "EV_EVENT_TAG"
  event.details.string == "LOADED_IMAGE::LoadOptions"

  digest := event.digests[_]
  digest.digest == query_reference_value("tdvfkernelparams")
}

##### Azure vTPM SNP
executables := 3 if {
  input["az-snp-vtpm"]

  # input["az-snp-vtpm"].measurement in query_reference_value("measurement")
  input["az-snp-vtpm"].tpm.pcr03 in query_reference_value("snp_pcr03")
  input["az-snp-vtpm"].tpm.pcr08 in query_reference_value("snp_pcr08")
  input["az-snp-vtpm"].tpm.pcr09 in query_reference_value("snp_pcr09")
  input["az-snp-vtpm"].tpm.pcr11 in query_reference_value("snp_pcr11")
  input["az-snp-vtpm"].tpm.pcr12 in query_reference_value("snp_pcr12")
}

hardware := 2 if {
  input["az-snp-vtpm"]

  # input["az-snp-vtpm"].reported_tcb_bootloader in query_reference_value("tcb_bootloader")
  # input["az-snp-vtpm"].reported_tcb_microcode in query_reference_value("tcb_microcode")
  # input["az-snp-vtpm"].reported_tcb_snp in query_reference_value("tcb_snp")
  # input["az-snp-vtpm"].reported_tcb_tee in query_reference_value("tcb_tee")
}

configuration := 2 if {
  input["az-snp-vtpm"]

  # input["az-snp-vtpm"].platform_smt_enabled in query_reference_value("smt_enabled")
  # input["az-snp-vtpm"].platform_tsme_enabled in query_reference_value("tsme_enabled")
  # input["az-snp-vtpm"].policy_abi_major in query_reference_value("abi_major")
  # input["az-snp-vtpm"].policy_abi_minor in query_reference_value("abi_minor")
  # input["az-snp-vtpm"].policy_single_socket in query_reference_value("single_socket")
  # input["az-snp-vtpm"].policy_smt_allowed in query_reference_value("smt_allowed")
}

##### Azure vTPM TDX
executables := 3 if {
  input["az-tdx-vtpm"]

  input["az-tdx-vtpm"].tpm.pcr03 in query_reference_value("tdx_pcr03")
  input["az-tdx-vtpm"].tpm.pcr08 in query_reference_value("tdx_pcr08")
  input["az-tdx-vtpm"].tpm.pcr09 in query_reference_value("tdx_pcr09")
  input["az-tdx-vtpm"].tpm.pcr11 in query_reference_value("tdx_pcr11")
  input["az-tdx-vtpm"].tpm.pcr12 in query_reference_value("tdx_pcr12")
}

hardware := 2 if {
  input["az-tdx-vtpm"]

  input["az-tdx-vtpm"].quote.header.tee_type == "81000000"
  input["az-tdx-vtpm"].quote.header.vendor_id == "939a7233f79c4ca9940a0db3957f0607"

  # input["az-tdx-vtpm"].quote.body.mr_td in query_reference_value("mr_td")

  input["az-tdx-vtpm"].tcb_status == "UpToDate"
}

configuration := 2 if {
  input["az-tdx-vtpm"]

  # input["az-tdx-vtpm"].quote.body.xfam in query_reference_value("xfam")
}

##### TPM
hardware := 2 if {
  input.tpm
}

executables := 3 if {
  input.tpm

  input.tpm.pcr11 in query_reference_value("tpm_pcr11")
}

configuration := 0 if {
  input.tpm
}

##### IBM Secure Execution for Linux (SEL)
executables := 3 if {
  input.se
}

hardware := 2 if {
  input.se
}

configuration := 2 if {
  input.se
}

extensions := [
  {"name": "ear.trustee.identifiers",
    "key": -18,
    "value": {
      "validated": validated_identifiers
    }
  }
]

validated_identifiers := object.union_n([
    container_images_id,
    container_uids_id,
])

container_images := [img |
    container := input["init_data_claims"]["agent_policy_claims"]["containers"][_]
    img := container["OCI"]["Annotations"]["io.kubernetes.cri.image-name"]
]

container_images_id := {"container_images": container_images} if {
    count(container_images) > 0
} else := {}

container_uids := [img |
    container := input["init_data_claims"]["agent_policy_claims"]["containers"][_]
    img := container["OCI"]["Process"]["User"]["UID"]
]

container_uids_id := {"container_uids": container_uids} if {
    count(container_uids) > 0
} else := {}
