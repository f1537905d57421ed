# SPDX-License-Identifier: MIT
# Resource policy of Trustee for keyIsolation Shared, as the Rust operator's: every trusted node reads every resource,
# the keys of other Machines included. Only the primary evidence (cpu0) counts: additional evidence can be affirming
# beside primary evidence that proves nothing.
package policy

import rego.v1

default allow := false

# Trustee v0.17 and older may not name the plugin; there etc/kbs-config-v017.toml enables no other one.
other_plugin if data.plugin != "resource"

# spec.attestation.release: true is the variant for OncePerBoot, made of this file when the operator is built.
once_per_boot := false

# PCR 15 is zero until the node seals its boot (tec-node seal), before it enters its root file system.
unsealed := "0000000000000000000000000000000000000000000000000000000000000000"

released if not once_per_boot

released if input.submods.cpu0["ear.veraison.annotated-evidence"].tpm.pcr15 == unsealed

# Only disk keys, default/<uuid>/root, are released once per boot. Older versions of Trustee give the path as text.
released if {
	is_array(data["resource-path"])
	not "root" in data["resource-path"]
}

released if {
	is_string(data["resource-path"])
	not regex.match(`root|%`, data["resource-path"])
}

allow if {
	not other_plugin
	released
	input.submods.cpu0["ear.status"] == "affirming"
}
