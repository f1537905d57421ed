#!/bin/sh
# SPDX-License-Identifier: MIT
#
# Builds bin/tec-test-kube (etcd, kube-apiserver, kube-controller-manager and kubectl in one) for
# the end-to-end tests and the demo. Does nothing when it is newer than what it is made of.
# Prints the binary's path on standard output, everything for people on standard error.

set -eu
me=tests/kubernetes/build.sh
. "$(dirname -- "$0")/go.sh"
cd -- "$go_home"
bin=$go_home/bin/tec-test-kube

# kubectl and the version skew checks parse these; unset, they say v0.0.0-master and are refused.
kube=1.34.2
ldflags="-s -w"
for p in k8s.io/component-base/version k8s.io/client-go/pkg/version; do
	ldflags="$ldflags -X $p.gitVersion=v$kube -X $p.gitMajor=1 -X $p.gitMinor=34"
	ldflags="$ldflags -X $p.gitTreeState=clean"
done

if ! up_to_date "$bin"; then
	find_go
	say "building a real Kubernetes $kube control plane for the tests with $GO:" \
		"about 6 minutes of two cores and 4 GB of disk the first time, seconds later"
	start=$(date +%s)
	build_go "$bin" "$ldflags"
	say "built in $(($(date +%s) - start)) s"
fi
printf '%s\n' "$bin"
