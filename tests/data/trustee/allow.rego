# SPDX-License-Identifier: Apache-2.0
# Copyright Confidential Containers Contributors; see README.
package policy

import rego.v1

default allow = false

plugin = data.plugin

allow if {
  plugin == "resource"
}
