# SPDX-License-Identifier: MIT
"""A writer of TCG2 event logs (PC Client Platform Firmware Profile, section 10) as firmware keeps them, and
what tpm2_eventlog says of them. Data and digest of each event belong together, as far as they do in real logs."""

import hashlib
import os
import shutil
import struct
import subprocess
import uuid

SEPARATOR, EVENT_TAG, IPL, OMITTED = 4, 6, 13, 0x12
VARIABLE, APPLICATION, DRIVER, ACTION, AUTHORITY = 0x80000001, 0x80000003, 0x80000004, 0x80000007, 0x800000e0
CALLING, RETURNING = b"Calling EFI Application from Boot Option", b"Returning from EFI Application from Boot Option"
GLOBAL, SECURITY = "8be4df61-93ca-11d2-aa0d-00e098032b8c", "d719b2cb-3d3a-4596-a3bc-dad00e67656f"
SHIM_LOCK = "605dab50-e046-4300-abb6-3dd810dd8b23"


def sha256(data):
    return hashlib.sha256(data).digest()


def event(pcr, kind, data, digest=None):
    return pcr, kind, digest or sha256(data), data


def action(text, pcr=4):
    return event(pcr, ACTION, text)


def separator(pcr, data=bytes(4)):
    return event(pcr, SEPARATOR, data)


def variable(name, value, guid=GLOBAL, kind=VARIABLE, digest=None):
    data = (uuid.UUID(guid).bytes_le + struct.pack("<QQ", len(name), len(value)) + name.encode("utf-16-le") + value)
    return event(7, kind, data, digest)


def _path(*nodes):
    return b"".join(struct.pack("<BBH", kind, sub, 4 + len(data)) + data for kind, sub, data in (*nodes, (0x7f, 0xff, b"")))


def application(digest, path, pcr=4, kind=APPLICATION):
    """Of a file at an EFI path."""
    nodes = _path((4, 1, bytes(38)), (4, 4, (path + "\0").encode("utf-16-le")))
    return event(pcr, kind, struct.pack("<QQQQ", 0x7c000000, 4096, 0, len(nodes)) + nodes, bytes.fromhex(digest))


def built_in(digest, guid="821aca26-29ea-4993-839f-597fc021708d", pcr=4, kind=APPLICATION):
    """Of a program in a firmware volume."""
    nodes = _path((4, 7, uuid.UUID("c18f51ae-c96f-4bc9-8c33-107992c7735b").bytes_le), (4, 6, uuid.UUID(guid).bytes_le))
    return event(pcr, kind, struct.pack("<QQQQ", 0x7c000000, 4096, 0, len(nodes)) + nodes, bytes.fromhex(digest))


def log(events):
    spec = b"Spec ID Event03\0" + struct.pack("<IBBBBI", 0, 0, 2, 0, 2, 2) + struct.pack("<HHHH", 4, 20, 0xb, 32) + b"\0"
    out = struct.pack("<II", 0, 3) + bytes(20) + struct.pack("<I", len(spec)) + spec
    for pcr, kind, digest, data in events:
        # The SHA-1 bank is a made-up one: nothing here reads it.
        out += struct.pack("<IIIH", pcr, kind, 2, 4) + digest[:20] + struct.pack("<H", 0xb) + digest
        out += struct.pack("<I", len(data)) + data
    return out


def registers(events):
    """{4: hex, ...}"""
    found = {}
    for pcr, _, digest, _ in events:
        found[pcr] = sha256(found.get(pcr, bytes(32)) + digest)
    return {pcr: value.hex() for pcr, value in found.items()}


def by_tpm2_eventlog(path):
    """The registers that tpm2_eventlog replays from the file; {} where it is not installed."""
    if not shutil.which("tpm2_eventlog"):
        return {}
    done = subprocess.run(["tpm2_eventlog", path], capture_output=True, text=True, timeout=60, check=True)
    last, found = done.stdout.rpartition("\n  sha256:\n")[2], {}
    for line in last.splitlines():
        number, _, value = line.partition(":")
        if not value.strip().startswith("0x"):
            break
        found[int(number)] = value.strip()[2:]
    return found


def efivars(directory):
    """{name: contents} of a directory in the format of efivarfs."""
    found = {}
    for name in os.listdir(directory):
        with open(os.path.join(directory, name), "rb") as f:
            found[name.partition("-")[0]] = f.read()[4:]
    return found
