#!/bin/sh
# SPDX-License-Identifier: MIT
#
# Builds what a node runs: bin/tec-test-node (kubelet, kube-proxy, kube-scheduler, kustomize), bin/containerd,
# bin/containerd-shim-runc-v2, bin/ctr, and bin/pause. Does nothing when they are newer than what they are made of.
# Prints their folder's path on standard output, everything for people on standard error.
#
# A binary of its own beside tests/kubernetes: the demo and the usual tests have no nodes, and do not pay for these.

set -eu
me=tests/nodes/build.sh
. "$(dirname -- "$0")/../kubernetes/go.sh"
home=$(CDPATH='' cd -- "$(dirname -- "$0")" && pwd)
bin=$home/bin

# kubelet and API server compare versions; unset, they say v0.0.0-master and are refused.
kube=1.34.2
kube_ldflags="-s -w"
for p in k8s.io/component-base/version k8s.io/client-go/pkg/version; do
	kube_ldflags="$kube_ldflags -X $p.gitVersion=v$kube -X $p.gitMajor=1 -X $p.gitMinor=34"
	kube_ldflags="$kube_ldflags -X $p.gitTreeState=clean"
done

cd "$home/kube"
if ! up_to_date "$bin/tec-test-node"; then
	find_go
	say "building kubelet, kube-proxy and kube-scheduler $kube with $GO (2 minutes of two cores after tests/kubernetes)"
	build_go "$bin/tec-test-node" "$kube_ldflags"
fi

# Debian 12's containerd is 1.6; image volumes need 2.1.
cd "$home/containerd"
for program in containerd containerd-shim-runc-v2 ctr; do
	if ! up_to_date "$bin/$program"; then
		find_go
		say "building $program with $GO (2 minutes of two cores for the first of three)"
		build_go "$bin/$program" "-s -w" "github.com/containerd/containerd/v2/cmd/$program"
	fi
done

cd "$home"
if [ ! -x bin/pause ] || [ pause.c -nt bin/pause ]; then
	cc -Os -static -s -o bin/pause.new pause.c
	mv -f bin/pause.new bin/pause
fi
printf '%s\n' "$bin"
