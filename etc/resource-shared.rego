# SPDX-License-Identifier: MIT
# Resource policy of Trustee for keyIsolation Shared, as the Rust operator's: every trusted node reads every resource,
# the keys of other Machines included. Only the primary evidence (cpu0) counts: additional evidence can be affirming
# beside primary evidence that proves nothing.
package policy

import rego.v1

default allow := false

# Trustee v0.17 and older may not name the plugin; there etc/kbs-config-v017.toml enables no other one.
other_plugin if data.plugin != "resource"

allow if {
	not other_plugin
	input.submods.cpu0["ear.status"] == "affirming"
}
