# SPDX-License-Identifier: MIT
"""Disks that boot, made without root and without loop devices: a GPT by sgdisk, an EFI system
partition by mkfs.vfat and mcopy, an initramfs that says on the serial port what its boot measured.
"""

import gzip
import os
import re
import subprocess
import uuid

START = 2048  # first sector of the partition
PARTITION = uuid.UUID("0b5c3a74-5a0e-4b7e-9d7d-1f0c1a2b3c4d")
VARIABLES = ("SecureBoot-8be4df61-93ca-11d2-aa0d-00e098032b8c", "PK-8be4df61-93ca-11d2-aa0d-00e098032b8c",
             "KEK-8be4df61-93ca-11d2-aa0d-00e098032b8c", "db-d719b2cb-3d3a-4596-a3bc-dad00e67656f",
             "dbx-d719b2cb-3d3a-4596-a3bc-dad00e67656f")

# A file is "@@ NAME", its bytes in base64, "@."; what is not there is not said.
INIT = """#!/bin/sh
mount -t proc proc /proc; mount -t sysfs sys /sys; mount -t devtmpfs dev /dev
mount -t securityfs security /sys/kernel/security
for m in /modules/*.ko; do insmod $m; done
mount -t efivarfs efivarfs /sys/firmware/efi/efivars
exec >/dev/ttyS0 2>&1
show() { [ -e "$2" ] || return; echo "@@ $1"; base64 "$2"; echo "@."; }
show eventlog /sys/kernel/security/tpm0/binary_bios_measurements
for i in $(seq 0 23); do echo "$i $(cat /sys/class/tpm/tpm0/pcr-sha256/$i)"; done >/registers
show registers /registers
for v in %(variables)s; do show efivars/$v /sys/firmware/efi/efivars/$v; done
for v in /sys/firmware/efi/mok-variables/*; do show mok-variables/${v##*/} $v; done
echo @@@ done
poweroff -f
""" % {"variables": " ".join(VARIABLES)}

GRUB_CFG = """set timeout=0
terminal_output serial console
search --file --set=root /vmlinuz
linux /vmlinuz console=ttyS0 quiet
initrd /initrd
boot
"""


def _cpio(files):
    """newc: [(name, mode, bytes)]"""
    out = bytearray()
    for inode, (name, mode, data) in enumerate([*files, ("TRAILER!!!", 0, b"")], 1):
        fields = [inode, mode, 0, 0, 1, 0, len(data), 0, 0, 0, 0, len(name) + 1, 0]
        out += b"070701" + b"".join(b"%08x" % f for f in fields) + name.encode() + b"\0"
        out += bytes(-len(out) % 4) + data
        out += bytes(-len(out) % 4)
    return bytes(out)


def initramfs(busybox, modules=()):
    """busybox: a static one. modules: paths of .ko files."""
    files = [(d, 0o40755, b"") for d in ("bin", "proc", "sys", "dev", "modules")]
    with open(busybox, "rb") as f:
        files.append(("bin/busybox", 0o100755, f.read()))
    applets = ("sh", "mount", "insmod", "base64", "cat", "seq", "echo", "poweroff", "[")
    files += [(f"bin/{a}", 0o120777, b"busybox") for a in applets]
    for path in modules:
        with open(path, "rb") as f:
            files.append((f"modules/{os.path.basename(path)}", 0o100644, f.read()))
    files.append(("init", 0o100755, INIT.encode()))
    return gzip.compress(_cpio(files), 6, mtime=0)


def _run(*argv):
    subprocess.run([str(a) for a in argv], check=True, capture_output=True, timeout=120)


def make_disk(path, files, work, megabytes=96):
    """A disk with one EFI system partition that holds {"EFI/BOOT/BOOTX64.EFI": source path, …}.
    Returns what a boot entry says of the partition."""
    sectors = megabytes * 2048
    fat = os.path.join(work, "esp")
    with open(fat, "wb") as f:
        f.truncate(sectors * 512)
    _run("mkfs.vfat", "-F", "32", fat)
    made = set()
    for name, source in files.items():
        parts = name.split("/")[:-1]
        for depth in range(1, len(parts) + 1):
            folder = "/".join(parts[:depth])
            if folder.lower() not in made:
                made.add(folder.lower())
                _run("mmd", "-i", fat, f"::{folder}")
        _run("mcopy", "-i", fat, source, f"::{name}")
    with open(path, "wb") as f:
        f.truncate((START + sectors + 2048) * 512)
    _run("sgdisk", "-o", "-n", f"1:{START}:+{megabytes}M", "-t", "1:ef00", "-u", f"1:{PARTITION}", path)
    with open(fat, "rb") as source, open(path, "r+b") as disk:
        disk.seek(START * 512)
        disk.write(source.read())
    os.unlink(fat)
    return (1, START, sectors, PARTITION)


def parse_console(text):
    """{name: bytes} of what the guest said; a boot that did not come to its end is a ValueError."""
    import base64
    text = text.replace("\r", "")
    if "@@@ done" not in text:
        raise ValueError("the guest did not come to its end")
    return {m[1]: base64.b64decode(m[2]) for m in re.finditer(r"@@ (\S+)\n([A-Za-z0-9+/=\n]*)@\.", text)}
