#!/bin/bash
# SPDX-License-Identifier: MIT
#
# A node, run as the first process of its own network, mount, PID, UTS and IPC namespaces: when it ends, everything in
# it ends, mounts included. What outlives it are its cgroups, which cluster.py removes.
#
# Usage: node.sh DIR INDEX CGROUP    DIR: var, etc, certificates and configuration files that nodes.py made

set -eu
dir=$1 index=$2 cgroup=$3
bin=$(CDPATH='' cd -- "$(dirname -- "$0")/bin" && pwd)
other=$((3 - index))

mount --make-rshared /
hostname "n$index"
for folder in /var/lib/kubelet /var/lib/containerd /var/lib/cni /var/log /etc/cni; do
	mkdir -p "$dir/root$folder" "$folder"
	mount --bind "$dir/root$folder" "$folder"
done
mount -t tmpfs -o mode=755,size=256m tmpfs /run
mkdir -p /run/lock /etc/cni/net.d
cp "$dir/cni.conflist" /etc/cni/net.d/10-tec.conflist

# The kubelet sets these for the whole machine. Here it reads and writes files of its own.
sysctl() {	# NAME VALUE
	[ -e "/proc/sys/$1" ] || return 0
	file=$dir/sysctl/$1
	mkdir -p "${file%/*}"
	printf '%s\n' "$2" >"$file"
	mount --bind "$file" "/proc/sys/$1"
}
sysctl vm/overcommit_memory 1
sysctl vm/panic_on_oom 0
sysctl kernel/panic 10
sysctl kernel/panic_on_oops 1
sysctl kernel/keys/root_maxkeys 1000000
sysctl kernel/keys/root_maxbytes 25000000

# eth0 comes from outside once this runs.
ip link set lo up
for _ in $(seq 300); do
	ip link show eth0 >/dev/null 2>&1 && break
	sleep 0.1
done
ip address add "10.99.0.$index/24" dev eth0
ip link set eth0 up
ip route add default via 10.99.0.254
ip route add "10.99.$((16 + other)).0/24" via "10.99.0.$other"
echo 1 >/proc/sys/net/ipv4/ip_forward
echo 1 >/proc/sys/net/bridge/bridge-nf-call-iptables

run() {	# NAME COMMAND...: started again when it ends, as an init system does
	name=$1
	shift
	while :; do
		"$@" >>"$dir/$name.log" 2>&1 </dev/null || :
		echo "---- $name ended, started again" >>"$dir/$name.log"
		sleep 1
	done &
}

export PATH="$bin:$PATH"
run containerd containerd --config "$dir/containerd.toml"
for _ in $(seq 600); do
	ctr --address /run/containerd/containerd.sock version >/dev/null 2>&1 && break
	sleep 0.1
done
run proxy tec-test-node proxy --kubeconfig="$dir/proxy.kubeconfig" --hostname-override="n$index" \
	--proxy-mode=nftables --cluster-cidr=10.99.16.0/20 --conntrack-max-per-core=0 \
	--conntrack-tcp-timeout-established=0 --conntrack-tcp-timeout-close-wait=0
run kubelet tec-test-node kubelet --config="$dir/kubelet.yaml" --kubeconfig="$dir/kubelet.kubeconfig" \
	--hostname-override="n$index" --node-ip="10.99.0.$index" --v=2
echo "node n$index in $cgroup" >"$dir/started"
wait
