#!/bin/sh
# SPDX-License-Identifier: MIT
#
# Builds bin/tec-test-ignition, which validates an Ignition config of spec 3.6.0 on its standard
# input. Does nothing when it is newer than what it is made of. Prints the binary's path on
# standard output, everything for people on standard error.

set -eu
me=tests/ignition/build.sh
. "$(dirname -- "$0")/../kubernetes/go.sh"
cd -- "$(dirname -- "$0")"
bin=$PWD/bin/tec-test-ignition

if ! up_to_date "$bin"; then
	find_go
	say "building the Ignition 3.6 validator with $GO (a few seconds)"
	build_go "$bin" "-s -w"
fi
printf '%s\n' "$bin"
