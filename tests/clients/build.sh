#!/bin/sh
# SPDX-License-Identifier: MIT
#
# Builds bin/tec-test-clients, which meets an API server as programs do: through client-go. Does nothing when it is newer than what it is made of. Prints the binary's path
# on standard output, everything for people on standard error.

set -eu
me=tests/clients/build.sh
. "$(dirname -- "$0")/../kubernetes/go.sh"
cd -- "$(dirname -- "$0")"
bin=$PWD/bin/tec-test-clients

# Of more files than one, unlike the others.
up_to_date() {
	[ -x "$1" ] && [ -z "$(find go.mod go.sum ./*.go -newer "$1")" ]
}

if ! up_to_date "$bin"; then
	find_go
	say "building a program of client-go with $GO" \
		"(a minute of two cores after the control plane, three without it)"
	build_go "$bin" "-s -w"
fi
printf '%s\n' "$bin"
