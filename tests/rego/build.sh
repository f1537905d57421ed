#!/bin/sh
# SPDX-License-Identifier: MIT
#
# Builds bin/tec-test-rego, which evaluates the policies of etc/ as Trustee does. Does nothing when
# it is newer than what it is made of. Prints the binary's path on standard output, everything for
# people on standard error.

set -eu
me=tests/rego/build.sh
. "$(dirname -- "$0")/../kubernetes/go.sh"
cd -- "$(dirname -- "$0")"
bin=$PWD/bin/tec-test-rego

if ! up_to_date "$bin"; then
	find_go
	say "building the Rego engine with $GO (half a minute of two cores the first time)"
	build_go "$bin" "-s -w"
fi
printf '%s\n' "$bin"
