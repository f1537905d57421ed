# SPDX-License-Identifier: MIT
"""What src/measure makes of Debian's boot files is what other tools make of them: pesign (digests),
sbverify of sbsigntool (signatures and their certificates), objdump of binutils (sections).

The files are downloaded when the test runs, see debfiles.py.
"""

import os
import re
import shutil
import subprocess

import pytest

import debfiles
from conftest import lacking

BUILD = os.environ.get("TEC_BUILDDIR", debfiles.TOP)
TOOL = os.path.join(BUILD, "tests", "tools", "tec-test-pe")
LIB = "usr/lib"

# package, architecture, file, signatures
FILES = [
    ("shim-signed", "amd64", f"{LIB}/shim/shimx64.efi.signed", 2),
    ("shim-unsigned", "amd64", f"{LIB}/shim/shimx64.efi", 0),
    ("shim-unsigned", "amd64", f"{LIB}/shim/mmx64.efi", 0),
    ("shim-unsigned", "amd64", f"{LIB}/shim/fbx64.efi", 0),
    ("grub-efi-amd64-signed", "amd64", f"{LIB}/grub/x86_64-efi-signed/grubx64.efi.signed", 1),
    ("grub-efi-amd64-signed", "amd64", f"{LIB}/grub/x86_64-efi-signed/gcdx64.efi.signed", 1),
    ("systemd-boot-efi", "amd64", f"{LIB}/systemd/boot/efi/systemd-bootx64.efi", 0),
    ("systemd-boot-efi", "amd64", f"{LIB}/systemd/boot/efi/linuxx64.efi.stub", 0),
    ("linux-image-cloud-amd64", "amd64", "boot/vmlinuz-*", 1),
    ("shim-signed", "arm64", f"{LIB}/shim/shimaa64.efi.signed", None),
    ("shim-unsigned", "arm64", f"{LIB}/shim/shimaa64.efi", 0),
    ("grub-efi-arm64-signed", "arm64", f"{LIB}/grub/arm64-efi-signed/grubaa64.efi.signed", 1),
    ("systemd-boot-efi", "arm64", f"{LIB}/systemd/boot/efi/systemd-bootaa64.efi", 0),
    ("systemd-boot-efi", "arm64", f"{LIB}/systemd/boot/efi/linuxaa64.efi.stub", 0),
    ("linux-image-cloud-arm64", "arm64", "boot/vmlinuz-*", 1),
]


def find(package, arch, pattern):
    for tool, deb in (("pesign", "pesign"), ("sbverify", "sbsigntool"), ("objdump", "binutils")):
        if not shutil.which(tool):
            lacking(f"no {tool}: apt-get install {deb}")
    try:
        return debfiles.find(package, arch, pattern)
    except debfiles.Unavailable as e:
        return lacking(str(e))


def output_of(*argv):
    # Both streams: sbverify and pesign warn on stderr about gaps and trailing bytes.
    done = subprocess.run(argv, capture_output=True, text=True, timeout=60, check=False)
    return done.stdout


def ours(path):
    """{'digest': [...], ...}: the values of each kind of line, in order."""
    done = subprocess.run([TOOL, path], capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0, done.stderr
    facts = {}
    for line in done.stdout.splitlines():
        kind, _, value = line.partition(" ")
        facts.setdefault(kind, []).append(value)
    return facts


def pesign(path, *options):
    found = re.search(r"^hash: ([0-9a-f]{64})$", output_of("pesign", *options, "-h", "-i", path), re.M)
    assert found, path
    return found[1]


@pytest.mark.parametrize("package,arch,pattern,signatures", FILES)
def test_digests_are_those_of_pesign(package, arch, pattern, signatures):
    path = find(package, arch, pattern)
    facts = ours(path)
    assert facts["machine"] == [{"amd64": "x64", "arm64": "aarch64"}[arch]]
    assert facts["digest"] == [pesign(path, "-P")]
    assert facts["measured"] == [pesign(path)]
    if signatures is not None:
        assert facts["signatures"] == [str(signatures)]
    assert all(signed == facts["digest"][0] for signed in facts.get("signed", []))


@pytest.mark.parametrize("package,arch,pattern,signatures", FILES)
def test_certificates_are_those_of_sbverify(package, arch, pattern, signatures):
    path = find(package, arch, pattern)
    facts = ours(path)
    listed = output_of("sbverify", "--list", path)
    assert len(re.findall(r"^signature \d+$", listed, re.M)) == int(facts["signatures"][0])
    assert re.findall(r"^ - subject: (.*)$", listed, re.M) == facts.get("subject", [])
    assert re.findall(r"^   issuer:  (.*)$", listed, re.M) == facts.get("issuer", [])
    assert signatures in (None, 0) or facts["subject"]


@pytest.mark.parametrize("package,arch,pattern", [f[:3] for f in FILES if f[1] == "amd64"])
def test_sections_are_those_of_objdump(package, arch, pattern):
    """Debian's objdump knows x64 alone."""
    path = find(package, arch, pattern)
    listed = re.findall(
        r"^ +\d+ (\S+) +([0-9a-f]{8})  [0-9a-f]{16}  [0-9a-f]{16}  ([0-9a-f]{8})",
        output_of("objdump", "-h", path), re.M)
    assert listed
    ours_listed = []
    for line in ours(path)["section"]:
        name, _, raw_size, raw_off, content = line.split()
        if raw_size != "0":
            ours_listed.append((name, int(content), int(raw_off)))
    assert [(n, int(size, 16), int(off, 16)) for n, size, off in listed] == ours_listed


@pytest.mark.parametrize("arch,name", [("amd64", "x64"), ("arm64", "aa64")])
def test_signing_a_shim_does_not_change_it(arch, name):
    """shim-unsigned is what Microsoft signed; its length is not a multiple of 8."""
    signed = ours(find("shim-signed", arch, f"{LIB}/shim/shim{name}.efi.signed"))
    unsigned = ours(find("shim-unsigned", arch, f"{LIB}/shim/shim{name}.efi"))
    assert signed["digest"] == unsigned["digest"]
    assert signed["measured"] == unsigned["digest"]


@pytest.mark.parametrize("arch,name", [("amd64", "x64"), ("arm64", "aa64")])
def test_sections_of_shim_are_found(arch, name):
    """The names are in the string table. The SBAT level is what real boots of shim 16.1 measured."""
    facts = ours(find("shim-signed", arch, f"{LIB}/shim/shim{name}.efi.signed"))
    names = [line.split()[0] for line in facts["section"]]
    assert {".vendor_cert", ".sbatlevel", ".data.ident"} <= set(names)
    assert facts["vendor"][0].startswith("cert ")
    assert facts["sbatlevel"][0] == "previous sbat,1,2025021800|shim,4|grub,5|"


def test_a_changed_byte_is_no_longer_what_was_signed(tmp_path):
    path = find("grub-efi-amd64-signed", "amd64",
                f"{LIB}/grub/x86_64-efi-signed/grubx64.efi.signed")
    with open(path, "rb") as f:
        data = bytearray(f.read())
    data[len(data) // 2] ^= 1
    changed = tmp_path / "grubx64.efi"
    changed.write_bytes(data)
    done = subprocess.run([TOOL, changed], capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 1
    assert "signature 1 does not match the contents" in done.stderr
