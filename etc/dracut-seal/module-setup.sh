#!/bin/bash
# SPDX-License-Identifier: MIT
# dracut module: seals a boot before its root file system is entered, and before every shell that the initial RAM disk opens.
# The module of the pin asks for it if /etc/tec-node.conf has seal = true.
check() {
	require_binaries tec-node modprobe || return 1
	return 255
}

depends() {
	echo systemd-initrd
	return 0
}

install() {
	local unit
	inst_multiple tec-node modprobe
	inst_libdir_file "libtss2-tcti-device.so*" "libgcc_s.so*"
	inst_simple "$moddir/tec-node-seal.service" "$systemdsystemunitdir/tec-node-seal.service"
	mkdir -p "$initdir/etc/systemd/system/initrd.target.requires"
	ln -sf "$systemdsystemunitdir/tec-node-seal.service" "$initdir/etc/systemd/system/initrd.target.requires/"
	# The last of the drop-ins, as an empty ExecStartPre= would remove those before it.
	for unit in initrd-switch-root emergency rescue dracut-emergency debug-shell; do
		inst_simple "$moddir/seal.conf" "/etc/systemd/system/$unit.service.d/zz-tec-node-seal.conf"
	done
	# An image that was resumed would run without the seal. This module comes after the one that installs these.
	rm -f "$initdir$systemdutildir"/system-generators/systemd-hibernate-resume-generator \
		"$initdir$systemdutildir"/systemd-hibernate-resume "$initdir$systemdsystemunitdir"/systemd-hibernate-resume*.service \
		"$initdir"/usr/sbin/resume "$initdir"/lib/dracut/resume.sh "$initdir"/lib/dracut/parse-resume.sh \
		"$initdir"/lib/dracut/hooks/cmdline/*parse-resume.sh
	return 0
}

installkernel() {
	hostonly='' instmods =drivers/char/tpm
}
