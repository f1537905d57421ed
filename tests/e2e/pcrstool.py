# SPDX-License-Identifier: MIT
"""What the tests of tec-compute-pcrs share: the program, roots of images made of Debian's packages,
and the real boots of tests/data/boot, read by a parser of our own."""

import glob
import hashlib
import os
import shutil
import struct
import subprocess
import uuid

import debfiles
from conftest import lacking
from controlplane import TOP

BOOTS = os.path.join(TOP, "tests", "data", "boot")
GRUB = ("grub-efi-amd64-signed", "usr/lib/grub/x86_64-efi-signed/grubx64.efi.signed")
SDBOOT = ("systemd-boot-efi", "usr/lib/systemd/boot/efi/systemd-bootx64.efi")
STUB = ("systemd-boot-efi", "usr/lib/systemd/boot/efi/linuxx64.efi.stub")
SHIM = ("shim-signed", "usr/lib/shim/shimx64.efi.signed")
FALLBACK = ("shim-helpers-amd64-signed", "usr/lib/shim/fbx64.efi.signed")  # signed, and no loader we know
KERNEL = ("linux-image-cloud-amd64", "boot/vmlinuz-*")
OLD_EFI = "usr/lib/bootupd/updates/EFI/debian"
VARIABLE, NO_ACTION, SHA256 = 0x80000001, 3, 0x000b


def binary():
    build = os.environ.get("TEC_BUILDDIR", TOP)
    path = os.environ.get("TEC_COMPUTE_PCRS", os.path.join(build, "tec-compute-pcrs"))
    if not os.access(path, os.X_OK):
        lacking(f"no {path}; next step: make")
    return path


def run(*args, env=None, timeout=60):
    """A run without a configuration of the caller's."""
    merged = {k: v for k, v in os.environ.items()
              if k not in ("KUBECONFIG", "POD_NAMESPACE", "KUBERNETES_SERVICE_HOST")}
    return subprocess.run([binary(), *map(str, args)], capture_output=True, text=True, check=False,
                          timeout=timeout, env={**merged, **(env or {})})


# Roots of images

def debian(package, pattern, arch="amd64", suite=None):
    """One file of a package; skips where it cannot be had."""
    try:
        return debfiles.find(package, arch, pattern, suite)
    except debfiles.Unavailable as e:
        return lacking(str(e))


def put(root, path, source):
    """A copy: a link would lead out of the root."""
    to = os.path.join(root, path)
    os.makedirs(os.path.dirname(to), exist_ok=True)
    shutil.copyfile(source, to)
    return to


def kernel_path():
    version = os.path.basename(debian(*KERNEL))[len("vmlinuz-"):]
    return f"usr/lib/modules/{version}/vmlinuz"


def make_root(root, second=GRUB, shim_dir=OLD_EFI, second_dir=OLD_EFI, kernel=True):
    """Debian's boot files laid out as bootupd has them. `second`: a package's file, or a path."""
    root = str(root)
    put(root, f"{shim_dir}/shimx64.efi", debian(*SHIM))
    put(root, f"{second_dir}/grubx64.efi", second if isinstance(second, str) else debian(*second))
    if kernel:
        put(root, kernel_path(), debian(*KERNEL))
    return root


def pe_digest(path):
    """What firmware measures of it, by pesign."""
    if not shutil.which("pesign"):
        lacking("no pesign: apt-get install pesign")
    done = subprocess.run(["pesign", "-h", "-i", path], capture_output=True, text=True, timeout=60,
                          check=True)
    return done.stdout.split("hash: ")[1].split()[0]


# Real boots

class Event:
    """at: where its SHA-256 digest stands in the log."""

    def __init__(self, pcr, kind, at, digest, data):
        self.pcr, self.kind, self.at, self.digest, self.data = pcr, kind, at, digest, data


def read_log(data):
    """Events of a TCG2 log that were extended, in order."""
    (length,) = struct.unpack_from("<I", data, 28)
    spec, pos, events = data[32:32 + length], 32 + length, []
    (count,) = struct.unpack_from("<I", spec, 24)
    size = dict(struct.unpack_from("<HH", spec, 28 + 4 * i) for i in range(count))
    while pos < len(data):
        pcr, kind, count = struct.unpack_from("<III", data, pos)
        pos += 12
        at = {}
        for _ in range(count):
            (alg,) = struct.unpack_from("<H", data, pos)
            at[alg] = pos + 2
            pos += 2 + size[alg]
        (length,) = struct.unpack_from("<I", data, pos)
        where = at[SHA256]
        if kind != NO_ACTION:
            events.append(Event(pcr, kind, where, data[where:where + 32],
                                data[pos + 4:pos + 4 + length]))
        pos += 4 + length
    return events


def boot_log(boot):
    with open(os.path.join(BOOTS, boot, "eventlog"), "rb") as f:
        return f.read()


def boot_registers(boot):
    """What Linux showed on that node: {4: hex, ...}."""
    with open(os.path.join(BOOTS, boot, "registers"), encoding="ascii") as f:
        return {int(number): value for number, value in map(str.split, f)}


def write_efivars(boot, directory):
    """The firmware's variables of that boot, as efivarfs has them: its log holds them whole."""
    os.makedirs(directory, exist_ok=True)
    for e in read_log(boot_log(boot)):
        if e.pcr != 7 or e.kind != VARIABLE:
            continue
        (chars,) = struct.unpack_from("<Q", e.data, 16)
        name = e.data[32:32 + 2 * chars].decode("utf-16-le")
        value = e.data[32 + 2 * chars:]
        guid = uuid.UUID(bytes_le=e.data[:16])
        if value:  # an empty variable is one that does not exist
            with open(os.path.join(directory, f"{name}-{guid}"), "wb") as f:
                f.write(b"\x06\0\0\0" + value)
    return str(directory)


PLATFORM = ([f"{v}-8be4df61-93ca-11d2-aa0d-00e098032b8c" for v in ("SecureBoot", "PK", "KEK")]
            + [f"{v}-d719b2cb-3d3a-4596-a3bc-dad00e67656f" for v in ("db", "dbx")])
MOK = ("MokListRT", "MokListXRT", "MokListTrustedRT", "MokSBStateRT", "MokIgnoreDB", "AllowValidationDisabled",
       "dbt-d719b2cb-3d3a-4596-a3bc-dad00e67656f", "dbr-d719b2cb-3d3a-4596-a3bc-dad00e67656f", "FirmwareEvents",
       "AllowFirmwareApplications")


def platform_digest(files):
    """Of {name: bytes}, as an entry of image-pcrs names the variables it was computed from."""
    digest = hashlib.sha256()
    for name in (*PLATFORM, *(n for n in MOK if n in files)):
        data = files.get(name)
        digest.update(name.encode() + b"\0" + bytes([data is not None])
                      + struct.pack("<Q", len(data or b"")) + (data or b""))
    return digest.hexdigest()


def files_of(directory):
    found = {}
    for name in os.listdir(directory):
        with open(os.path.join(directory, name), "rb") as f:
            found[name] = f.read()
    return found


def mount_configmap(files, directory):
    """As the kubelet does it: links to a link to what can be swapped at once."""
    version = os.path.join(directory, "..2026_01_02")
    os.makedirs(version)
    os.symlink("..2026_01_02", os.path.join(directory, "..data"))
    for name, data in files.items():
        with open(os.path.join(version, name), "wb") as f:
            f.write(data)
        os.symlink(f"..data/{name}", os.path.join(directory, name))
    return str(directory)


def files_below(directory):
    return sorted(p for p in glob.glob(f"{directory}/**", recursive=True) if os.path.isfile(p))
