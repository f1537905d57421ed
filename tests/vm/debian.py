# SPDX-License-Identifier: MIT
"""Debian 12 in a folder, made by mmdebstrap: two signed kernels of the archive, and the tools with which Debian makes an
initramfs that opens a disk through clevis. Kept in tests/vm/.cache; our own parts are put in at each run."""

import fcntl
import os
import re
import shutil
import subprocess
import time

import debfiles
import image
import tecnode
from controlplane import TOP

HERE = os.path.dirname(os.path.abspath(__file__))
CACHE = os.environ.get("TEC_VM_CACHE", os.path.join(HERE, ".cache"))
ROOT = os.path.join(CACHE, "root")
KEPT_DAYS = 14
SOURCES = [f"deb http://deb.debian.org/{line} main" for line in (
    "debian bookworm", "debian bookworm-updates", "debian-security bookworm-security")]
PACKAGES = ("initramfs-tools busybox cryptsetup-initramfs clevis-initramfs clevis-luks zstd e2fsprogs kmod udev "
            "libtss2-tcti-device0 dracut-core systemd procps").split()
HOOKS = {"etc/initramfs-tools/tec-node": ["hooks/tec-node"],
         "etc/initramfs-tools/tec-node-seal": [f"scripts/{stage}/tec-node-seal" for stage in (
             "local-premount", "local-bottom", "init-bottom", "panic")],
         "etc/initramfs-tools/local-top/tec-node": ["scripts/local-top/tec-node"],
         "etc/initramfs-tools/local-bottom/tec-node": ["scripts/local-bottom/tec-node"],
         "tests/vm/initramfs/hook": ["hooks/tec-vm"],
         "tests/vm/initramfs/first-boot": ["scripts/init-premount/tec-vm"]}
DRACUT = ("module-setup.sh", "seal.conf", "tec-node-seal.service")
CONF = "MODULES=list\nCOMPRESS=zstd\nCOMPRESSLEVEL=9\nBUSYBOX=y\n"


class Failed(Exception):
    """What did not work, with what the program said."""


def run(*argv, seconds=900):
    done = subprocess.run([str(a) for a in argv], capture_output=True, text=True, timeout=seconds, check=False)
    if done.returncode:
        raise Failed(f"{' '.join(map(str, argv[:6]))}: {(done.stderr + done.stdout)[-3000:]}")
    return done.stdout


def newest_kernels():
    """The two newest ABIs of the cloud kernel that the archive has."""
    found = run("apt-cache", "search", "--names-only", r"^linux-image-6\.1\.0-[0-9]+-cloud-amd64$")
    abis = sorted({int(n) for n in re.findall(r"^linux-image-6\.1\.0-(\d+)-cloud-amd64 ", found, re.M)})
    if len(abis) < 2:
        raise Failed("apt knows no two kernels linux-image-6.1.0-N-cloud-amd64; next step: apt-get update")
    return [f"6.1.0-{n}-cloud-amd64" for n in abis[-2:]]


def libraries():
    """Debian's packages of what tec-node is linked to."""
    paths = re.findall(r"=> (\S+)", run("ldd", tecnode.BINARY))
    files = [os.path.realpath(p) for p in paths]
    owners = run("dpkg-query", "--search", *[os.path.basename(f) for f in files])
    names = {line.split(":")[0] for line in owners.splitlines() if line.split(": ")[-1].replace("/lib", "/usr/lib", 1) in files
             or line.split(": ")[-1] in files}
    return sorted(names)


def _make():
    started = time.monotonic()
    shutil.rmtree(ROOT, ignore_errors=True)
    packages = PACKAGES + [f"linux-image-{k}" for k in newest_kernels()] + libraries()
    excluded = [f"--dpkgopt=path-exclude=/usr/share/{d}/*" for d in ("man", "doc", "locale")]
    run("mmdebstrap", "--quiet", "--mode=root", "--variant=minbase", '--aptopt=APT::Install-Recommends "false"', *excluded,
        f"--include={','.join(packages)}", "bookworm", ROOT, *SOURCES)
    with open(os.path.join(CACHE, "made"), "w", encoding="ascii") as f:
        f.write(f"{' '.join(PACKAGES)}\n{time.monotonic() - started:.0f} s\n")


def _fresh():
    """Young, and made of the same packages."""
    made = os.path.join(CACHE, "made")
    if not os.path.exists(made) or time.time() - os.path.getmtime(made) > KEPT_DAYS * 86400:
        return False
    with open(made, encoding="ascii") as f:
        return f.readline().split() == PACKAGES


class Debian:
    """The folder with our parts in it; nobody else uses it until close()."""

    def __init__(self):
        os.makedirs(CACHE, exist_ok=True)
        self.lock = open(os.path.join(CACHE, "lock"), "w", encoding="ascii")
        fcntl.flock(self.lock, fcntl.LOCK_EX)
        if not _fresh():
            _make()
        self.kernels = sorted(os.listdir(os.path.join(ROOT, "lib/modules")))[-2:]
        self._put_in()

    def close(self):
        self.lock.close()

    @staticmethod
    def path(name):
        return os.path.join(ROOT, name)

    def kernel(self, version):
        return self.path(f"boot/vmlinuz-{version}")

    @staticmethod
    def shim():
        return debfiles.find("shim-signed", "amd64", "usr/lib/shim/shimx64.efi.signed")

    @staticmethod
    def grub():
        return debfiles.find("grub-efi-amd64-signed", "amd64", "usr/lib/grub/x86_64-efi-signed/grubx64.efi.signed")

    def _put_in(self):
        """As make install does with --prefix=/usr."""
        shutil.copy2(tecnode.BINARY, self.path("usr/bin/tec-node"))
        for name in tecnode.PINS:
            if not os.path.lexists(self.path(f"usr/bin/{name}")):
                os.symlink("tec-node", self.path(f"usr/bin/{name}"))
        for source, targets in HOOKS.items():
            for target in targets:
                to = self.path(f"usr/share/initramfs-tools/{target}")
                os.makedirs(os.path.dirname(to), exist_ok=True)
                shutil.copy2(os.path.join(TOP, source), to)
        modules = self.path("usr/lib/dracut/modules.d/99tec-node-seal")
        os.makedirs(modules, exist_ok=True)
        for name in DRACUT:
            shutil.copy2(os.path.join(TOP, "etc/dracut-seal", name), modules)
        os.chmod(os.path.join(modules, "module-setup.sh"), 0o755)
        os.makedirs(self.path("usr/lib/tec-vm"), exist_ok=True)
        shutil.copy2(shutil.which("busybox"), self.path("usr/lib/tec-vm/busybox"))
        shutil.copy2(os.path.join(HERE, "initramfs", "init"), self.path("usr/lib/tec-vm/init"))
        with open(self.path("etc/tec-node.conf"), "w", encoding="ascii") as f:
            f.write("seal = true\n")
        with open(self.path("etc/initramfs-tools/conf.d/tec-vm"), "w", encoding="ascii") as f:
            f.write(CONF)
        with open(self.path("etc/crypttab"), "w", encoding="ascii") as f:
            f.write("root /dev/disk/by-partlabel/root none luks,initramfs\n")

    def initramfs(self, version, into):
        """Made by Debian's mkinitramfs, with every hook that is installed there."""
        return self._made(into, "mkinitramfs", "-o", "/tmp/initrd", version)

    def dracut(self, version, into):
        """Made by dracut: systemd, and the module that seals; it opens no disk."""
        return self._made(into, "dracut", "--force", "--no-hostonly", "--no-hostonly-cmdline", "--modules",
                          "dracut-systemd base rootfs-block kernel-modules udev-rules resume tec-node-seal", "--add-drivers",
                          "virtio_blk virtio_pci ext4", "/tmp/initrd", version)

    def _made(self, into, *argv):
        run("unshare", "--mount", "--fork", "--kill-child", "sh", "-ec",
            'mount -t proc proc "$0/proc"; exec chroot "$0" "$@"', ROOT, *argv)
        shutil.move(self.path("tmp/initrd"), into)
        return into

    def image(self, version, into):
        """The files of an image as bootupd lays them out: what tec-compute-pcrs reads."""
        for source, target in ((self.shim(), "usr/lib/bootupd/updates/EFI/debian/shimx64.efi"),
                               (self.grub(), "usr/lib/bootupd/updates/EFI/debian/grubx64.efi"),
                               (self.kernel(version), f"usr/lib/modules/{version}/vmlinuz")):
            to = os.path.join(into, target)
            os.makedirs(os.path.dirname(to), exist_ok=True)
            shutil.copyfile(source, to)
        return into


def make_disks(debian, initrd, version, ignition, work):
    """(system disk that boots `version`, an empty one with a partition named root)."""
    system, root = os.path.join(work, "system"), os.path.join(work, "root")
    config = write_grub(ignition, work)
    image.make_disk(system, {"EFI/BOOT/BOOTX64.EFI": debian.shim(), "EFI/BOOT/grubx64.efi": debian.grub(),
                             "EFI/debian/grub.cfg": config, "vmlinuz": debian.kernel(version), "initrd": initrd}, work, 160)
    with open(root, "wb") as f:
        f.truncate(96 << 20)
    run("sgdisk", "-o", "-n", "1:2048:0", "-t", "1:8309", "-c", "1:root", root)
    return system, root


def make_plain_disk(work):
    """A file system that is not encrypted, with the system of initramfs/init."""
    root, disk = os.path.join(work, "plain"), os.path.join(work, "plain.disk")
    for name in "bin", "dev", "etc", "proc", "run", "sbin", "sys", "usr":
        os.makedirs(os.path.join(root, name))
    shutil.copy2(shutil.which("busybox"), os.path.join(root, "bin/busybox"))
    shutil.copy2(os.path.join(HERE, "initramfs", "init"), os.path.join(root, "sbin/init"))
    for name, text in (("made", "plain"), ("etc/os-release", "ID=plain\n")):  # without the latter, systemd does not go there
        with open(os.path.join(root, name), "w", encoding="ascii") as f:
            f.write(text)
    run("mke2fs", "-q", "-t", "ext4", "-d", root, disk, "32M")
    return disk


def write_grub(ignition, work):
    path = os.path.join(work, "grub.cfg")
    with open(path, "w", encoding="ascii") as f:
        f.write("set timeout=0\nterminal_output console\nsearch --file --set=root /vmlinuz\n"
                f"linux /vmlinuz console=ttyS0 quiet root=/dev/mapper/root tec.ignition={ignition}\ninitrd /initrd\nboot\n")
    return path


def put_on_disk(system, files):
    """Replaces files of the EFI system partition: what an update does."""
    for name, source in files.items():
        run("mcopy", "-o", "-i", f"{system}@@{image.START * 512}", source, f"::{name}")
