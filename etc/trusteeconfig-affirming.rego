# SPDX-License-Identifier: MIT
# Resource policy of profile Restricted: everything that the client attested is affirming, and there is something.
package policy

import rego.v1

default allow := false

allow if {
	count(input.submods) > 0
	every submod in input.submods {
		submod["ear.status"] == "affirming"
	}
}
