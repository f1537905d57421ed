#!/bin/bash
# SPDX-License-Identifier: MIT
# dracut module: the clevis pin trustee, with the network that it needs (rd.neednet=1 ip=dhcp on the kernel's command line).
check() {
	require_binaries tec-node clevis-encrypt-trustee clevis-decrypt-trustee || return 1
	return 0
}

# seal = true: the pin is not installed without the module that seals, so that a disk stays closed rather than opens without
# it. Anything but "false" counts as true.
depends() {
	echo clevis network
	if grep -s '^[[:space:]]*seal[[:space:]]*=' /etc/tec-node.conf | grep -q -v '=[[:space:]]*false[[:space:]]*$'; then
		echo tec-node-seal
	fi
	return 0
}

install() {
	inst_multiple tec-node clevis-encrypt-trustee clevis-decrypt-trustee
	# tpm2-tss loads its TCTI library by name.
	inst_libdir_file "libtss2-tcti-device.so*" "libgcc_s.so*"
	[[ -r /etc/ssl/certs/ca-certificates.crt ]] && inst_simple /etc/ssl/certs/ca-certificates.crt
	[[ -r /etc/pki/tls/certs/ca-bundle.crt ]] && inst_simple /etc/pki/tls/certs/ca-bundle.crt
	[[ -r /etc/tec-node.conf ]] && inst_simple /etc/tec-node.conf
	mkdir -p "${initdir}/etc/cmdline.d"
	echo "rd.neednet=1" >"${initdir}/etc/cmdline.d/60tec-node.conf"
	return 0
}

installkernel() {
	hostonly='' instmods =drivers/char/tpm
}
