# SPDX-License-Identifier: MIT
# Resource policy of profile Permissive: every client that could attest gets every resource. For tests.
package policy

import rego.v1

default allow := false

allow if data.plugin == "resource"
