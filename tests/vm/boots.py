# SPDX-License-Identifier: MIT
"""The boots whose records are in tests/data/boot: each is made of Debian's packages, booted, and
written down as event log, registers, variables and digests of files.

    python3 tests/vm/boots.py DEBS NAME... [--into tests/data/boot]

DEBS holds unpacked packages: DEBS/bookworm/usr/lib/shim/… and so on (dpkg-deb -x).
"""

import argparse
import glob
import os
import shutil
import struct
import subprocess
import sys
import tempfile

import image
import machine
import varstore as vs

BOOTX64, SECOND = "EFI/BOOT/BOOTX64.EFI", "EFI/BOOT/grubx64.efi"
ENTRY = "\\EFI\\BOOT\\BOOTX64.EFI"
KEPT = ("MokListRT", "MokListXRT", "MokListTrustedRT", "MokSBStateRT", "MokDBStateRT", "MokPolicyRT")


class Made:
    """What a boot is made of, before it is started."""

    def __init__(self, debs, work):
        self.debs, self.work = debs, work
        self.store = vs.VarStore(self.read("/usr/share/OVMF/OVMF_VARS_4M.ms.fd"))
        self.kernel = self.one("bookworm/boot/vmlinuz-*")
        self.initrd = self.write("initrd", image.initramfs(
            shutil.which("busybox"), [self.one("bookworm/lib/modules/*/kernel/fs/efivarfs/efivarfs.ko")]))
        self.files = {BOOTX64: self.one("trixie/usr/lib/shim/shimx64.efi.signed"),
                      SECOND: self.one("trixie/usr/lib/grub/x86_64-efi-signed/grubx64.efi.signed"),
                      "EFI/debian/grub.cfg": self.write("grub.cfg", image.GRUB_CFG.encode()),
                      "initrd": self.initrd}
        self.entries, self.next = [], None  # of BootOrder, before what is on the disk; BootNext

    def one(self, pattern):
        found = sorted(glob.glob(os.path.join(self.debs, pattern)))
        if len(found) != 1:
            sys.exit(f"{pattern} names {len(found)} files below {self.debs}, not 1")
        return found[0]

    @staticmethod
    def read(path):
        with open(path, "rb") as f:
            return f.read()

    def write(self, name, data):
        path = os.path.join(self.work, name)
        with open(path, "wb") as f:
            f.write(data)
        return path

    def out(self, name):
        return os.path.join(self.work, name)

    def mok(self, name, value):
        self.store.set(vs.SHIM_LOCK, name, value, vs.BOOT_ONLY)

    def unsigned_kernel(self):
        self.kernel = shutil.copy(self.kernel, self.out("unsigned"))
        run("sbattach", "--remove", self.kernel)

    def key(self):
        """A machine owner's key; its certificate in DER."""
        run("openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-keyout", self.out("mok.key"),
            "-out", self.out("mok.pem"), "-days", "3650", "-subj", "/CN=Owner of this machine/")
        run("openssl", "x509", "-in", self.out("mok.pem"), "-outform", "DER", "-out", self.out("mok.der"))
        return self.read(self.out("mok.der"))

    def signed(self, path):
        """A copy that the machine owner's key signed."""
        run("sbsign", "--key", self.out("mok.key"), "--cert", self.out("mok.pem"), "--output",
            self.out("signed.efi"), path)
        return self.out("signed.efi")

    def uki(self, stub, *more, uname=("--uname=6.1.0-56-cloud-amd64",)):
        self.store = vs.VarStore(self.read("/usr/share/OVMF/OVMF_VARS_4M.fd"))
        self.files = {BOOTX64: self.out("uki.efi")}
        run("/usr/bin/python3", self.one("trixie/usr/lib/systemd/ukify"), "build", f"--linux={self.kernel}",
            f"--initrd={self.initrd}", "--cmdline=console=ttyS0 quiet", *uname,
            "--os-release=ID=debian\nVERSION_ID=12\n", f"--stub={stub}", f"--output={self.out('uki.efi')}",
            *more)


def run(*argv):
    done = subprocess.run([str(a) for a in argv], capture_output=True, text=True, timeout=120, check=False)
    if done.returncode:
        sys.exit(f"{argv[:3]}: {done.stderr}")
    return done.stdout


def digest(path):
    return run("pesign", "-h", "-i", path).split("hash: ")[1].split()[0]


# ---- the boots

def grub212(m):
    """Debian 13's GRUB 2.12, Secure Boot on."""


def failed_one(m, count=1):
    """Boot entries of a disk that is not there come first."""
    for i in range(count):
        gone = (1, 2048, 4096, vs.uuid.UUID(int=0x1000 + i))
        m.entries.append(lambda disk, gone=gone: vs.boot_entry(ENTRY, "gone", gone))


def failed_two(m):
    failed_one(m, 2)


def fwupd(m):
    """fwupd's BootNext: shim is told to start fwupdx64.efi."""
    m.files["EFI/BOOT/fwupdx64.efi"] = m.one("trixie/usr/libexec/fwupd/efi/fwupdx64.efi.signed")
    m.next = lambda disk: vs.boot_entry(ENTRY, "Linux-Firmware-Updater", disk,
                                        "\\fwupdx64.efi".encode("utf-16-le") + b"\0\0")


def mok_untrusted(m):
    """mokutil --untrust-mok."""
    m.mok("MokListTrusted", b"\1")


def validation_off(m):
    """mokutil --disable-validation."""
    m.mok("MokSBState", b"\1")


def mok_hash(m):
    """A kernel that is not signed, its hash enrolled by MokManager."""
    m.unsigned_kernel()
    m.mok("MokList", vs.signature_list(vs.CERT_SHA256, vs.SHIM_LOCK, bytes.fromhex(digest(m.kernel))))


def db_hash(m):
    """The same, its hash in the firmware's db."""
    m.unsigned_kernel()
    db = m.store.get(vs.SECURITY, "db")
    m.store.set(vs.SECURITY, "db", db + vs.signature_list(
        vs.CERT_SHA256, vs.SHIM_LOCK, bytes.fromhex(digest(m.kernel))))


def mok_signed(m):
    """A kernel that a machine owner's key signed."""
    m.unsigned_kernel()
    m.mok("MokList", vs.signature_list(vs.CERT_X509, vs.SHIM_LOCK, m.key()))
    m.kernel = m.signed(m.kernel)


def grub206_off(m):
    """Debian 12's GRUB 2.06 with Secure Boot off enters the kernel without its EFI stub."""
    m.store = vs.VarStore(m.read("/usr/share/OVMF/OVMF_VARS_4M.fd"))
    m.files[SECOND] = m.one("bookworm/usr/lib/grub/x86_64-efi-signed/grubx64.efi.signed")


def grub212_off(m):
    """Debian 13's GRUB 2.12, Secure Boot off."""
    m.store = vs.VarStore(m.read("/usr/share/OVMF/OVMF_VARS_4M.fd"))


def _uki_all(m, stub, *names):
    """A UKI with every section that a builder may add."""
    known = {".ucode": image._cpio([("kernel/x86/microcode/none", 0o100644, b"none")]),
             ".splash": b"BM not a picture", ".dtb": b"not a device tree", ".pcrsig": b"{}",
             ".pcrpkey": b"not a key", ".hwids": bytes(64)}
    m.uki(stub, *[f"--section={n}:@{m.write(n[1:], known[n])}" for n in names])


def uki252(m):
    """Its headers have no room for more sections."""
    m.uki(m.one("bookworm/usr/lib/systemd/boot/efi/linuxx64.efi.stub"), uname=())


def uki254(m):
    _uki_all(m, m.one("backports/usr/lib/systemd/boot/efi/linuxx64.efi.stub"), ".ucode", ".splash",
             ".dtb", ".pcrsig", ".pcrpkey")


def uki257(m):
    _uki_all(m, m.one("trixie/usr/lib/systemd/boot/efi/linuxx64.efi.stub"), ".ucode", ".splash",
             ".dtb", ".pcrsig", ".pcrpkey", ".hwids")


def uki262(m):
    _uki_all(m, m.one("sid/usr/lib/systemd/boot/efi/linuxx64.efi.stub"), ".ucode", ".splash",
             ".dtb", ".pcrsig", ".pcrpkey", ".hwids")


def _uki_signed(m, stub):
    """A UKI that shim starts as its second stage, Secure Boot on."""
    before, store = m.files, m.store
    m.uki(stub)
    m.files, m.store = {BOOTX64: before[BOOTX64]}, store
    m.mok("MokList", vs.signature_list(vs.CERT_X509, vs.SHIM_LOCK, m.key()))
    m.files[SECOND] = m.signed(m.out("uki.efi"))


def uki254_sb(m):
    _uki_signed(m, m.one("backports/usr/lib/systemd/boot/efi/linuxx64.efi.stub"))


def uki257_sb(m):
    _uki_signed(m, m.one("trixie/usr/lib/systemd/boot/efi/linuxx64.efi.stub"))


def uki262_sb(m):
    _uki_signed(m, m.one("sid/usr/lib/systemd/boot/efi/linuxx64.efi.stub"))


def uki_profiles(m):
    """A UKI with a profile beside its default one."""
    ukify, profile = m.one("trixie/usr/lib/systemd/ukify"), m.out("profile.efi")
    stub = m.one("trixie/usr/lib/systemd/boot/efi/linuxx64.efi.stub")
    run("/usr/bin/python3", ukify, "build", "--profile=ID=debug\nTITLE=Debug", f"--stub={stub}",
        "--cmdline=console=ttyS0 quiet debug=1", f"--output={profile}")
    run("objcopy", "-R", ".sbat", profile)  # a profile begins with .profile
    m.uki(stub, "--profile=ID=main\nTITLE=Main", f"--join-profile={profile}")


def uki_profile1(m):
    """The same, the other profile chosen."""
    uki_profiles(m)
    m.entries.append(lambda disk: vs.boot_entry(
        ENTRY, "debug", disk, "@1".encode("utf-16-le") + b"\0\0"))


BOOTS = {f.__name__.replace("_", "-"): f for f in (
    grub212, failed_one, failed_two, fwupd, mok_untrusted, validation_off, mok_hash, db_hash, mok_signed,
    grub206_off, grub212_off, uki252, uki254, uki257, uki262, uki254_sb, uki257_sb,
    uki262_sb, uki_profiles, uki_profile1)}


def add_entries(m, disk):
    order = b""
    for i, entry in enumerate(m.entries):
        m.store.set(vs.GLOBAL, f"Boot{0x10 + i:04X}", entry(disk), vs.WITH_RUNTIME)
        order += struct.pack("<H", 0x10 + i)
    if order:
        m.store.set(vs.GLOBAL, "Boot0020", vs.boot_entry(ENTRY, "disk", disk), vs.WITH_RUNTIME)
        m.store.set(vs.GLOBAL, "BootOrder", order + struct.pack("<H", 0x20), vs.WITH_RUNTIME)
    if m.next:
        m.store.set(vs.GLOBAL, "Boot0030", m.next(disk), vs.WITH_RUNTIME)
        m.store.set(vs.GLOBAL, "BootNext", struct.pack("<H", 0x30), vs.WITH_RUNTIME)


def record(name, debs, into, work, keep):
    m = Made(debs, work)
    BOOTS[name](m)
    if "initrd" in m.files:
        m.files["vmlinuz"] = m.kernel
    disk = image.make_disk(m.out("disk"), m.files, work)
    add_entries(m, disk)
    told = image.parse_console(machine.boot(m.out("disk"), m.write("vars", m.store.data), work))
    home = os.path.join(into, name)
    shutil.rmtree(home, ignore_errors=True)
    for path, data in told.items():
        base = os.path.basename(path)
        if path.startswith("efivars/") or (path.startswith("mok-variables/") and base not in KEPT):
            continue  # the log has the former
        os.makedirs(os.path.dirname(os.path.join(home, path)), exist_ok=True)
        with open(os.path.join(home, path), "wb") as f:
            f.write(data.lower() if path == "registers" else data)
    with open(os.path.join(home, "files"), "w", encoding="ascii") as f:
        for path, source in sorted(m.files.items()):
            if path.lower().endswith(".efi") or path == "vmlinuz":
                f.write(f"{digest(source)} {path}\n")
    if keep:
        shutil.copytree(work, os.path.join(keep, name), dirs_exist_ok=True,
                        ignore=shutil.ignore_patterns("disk", "tpm*"))


def main():
    p = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    p.add_argument("debs")
    p.add_argument("names", nargs="*", default=list(BOOTS), metavar="NAME")
    p.add_argument("--into", default=os.path.join(os.path.dirname(__file__), "..", "data", "boot"))
    p.add_argument("--keep", help="a directory for what was booted")
    args = p.parse_args()
    missing = machine.lacking()
    if missing:
        sys.exit(f"next step: apt-get install {' '.join(missing)}")
    for name in args.names or BOOTS:
        with tempfile.TemporaryDirectory() as work:
            record(name, args.debs, args.into, work, args.keep)
        print(name, flush=True)


if __name__ == "__main__":
    main()
