# SPDX-License-Identifier: MIT
# Resource policy of IBM Secure Execution. Replace the three values in angle brackets by those of your image: until then
# nobody gets a resource.
package policy

import rego.v1

default allow := false

allow if {
	data.plugin == "resource"
	se := input.submods.cpu0["ear.veraison.annotated-evidence"].se
	se.attestation_phkh == "<se.attestation_phkh>"
	se.image_phkh == "<se.image_phkh>"
	se.tag == "<se.tag>"
	se.version == 256
}
