# SPDX-License-Identifier: MIT
"""OVMF's variable store (OVMF_VARS_4M*.fd), edited while no machine runs: shim's MokList and its
kin can be written by boot services alone, and boot entries are easier made before a boot than in one.

Layout: EDK2 MdeModulePkg/Include/Guid/VariableFormat.h (authenticated variables).
"""

import struct
import uuid

GLOBAL = uuid.UUID("8be4df61-93ca-11d2-aa0d-00e098032b8c")
SECURITY = uuid.UUID("d719b2cb-3d3a-4596-a3bc-dad00e67656f")
SHIM_LOCK = uuid.UUID("605dab50-e046-4300-abb6-3dd810dd8b23")
CERT_X509 = uuid.UUID("a5c059a1-94e4-4aa7-87b5-ab155c2bf072")
CERT_SHA256 = uuid.UUID("c1c41626-504c-4092-aca9-41f936934328")
BOOT_ONLY, WITH_RUNTIME = 3, 7  # non-volatile, boot services (, runtime)

_STORE = uuid.UUID("aaf32c78-947b-439a-a180-2e144ec37792")
_HEADER = "<HBBIQ16sIII16s"
_ADDED, _DELETED = 0x3f, 0x3c


def signature_list(kind, owner, data):
    """An EFI_SIGNATURE_LIST with one entry."""
    size = 16 + len(data)
    return kind.bytes_le + struct.pack("<III", 28 + size, 0, size) + owner.bytes_le + data


def boot_entry(path, description="entry", disk=None, options=b""):
    """An EFI_LOAD_OPTION for a file on the GPT partition `disk`: (number, start, sectors, uuid)."""
    number, start, sectors, guid = disk
    hard = struct.pack("<BBHIQQ16sBB", 4, 1, 42, number, start, sectors, guid.bytes_le, 2, 2)
    name = path.encode("utf-16-le") + b"\0\0"
    file = struct.pack("<BBH", 4, 4, 4 + len(name)) + name
    nodes = hard + file + b"\x7f\xff\x04\0"
    return (struct.pack("<IH", 1, len(nodes)) + description.encode("utf-16-le") + b"\0\0" + nodes
            + options)


class VarStore:
    def __init__(self, data):
        self.data = bytearray(data)
        (self.at,) = struct.unpack_from("<H", self.data, 48)  # the volume's header length
        if self.data[self.at:self.at + 16] != _STORE.bytes_le:
            raise ValueError("not a store of authenticated variables")
        (size,) = struct.unpack_from("<I", self.data, self.at + 16)
        self.end = self.at + size

    def _walk(self):
        """(offset, state, attributes, guid, name, offset of the data, its length)"""
        pos = self.at + 28
        while pos + 60 <= self.end:
            head = struct.unpack_from(_HEADER, self.data, pos)
            if head[0] != 0x55aa:
                break
            name_len, data_len, guid = head[7], head[8], uuid.UUID(bytes_le=head[9])
            name = bytes(self.data[pos + 60:pos + 60 + name_len]).decode("utf-16-le").rstrip("\0")
            yield pos, head[1], head[3], guid, name, pos + 60 + name_len, data_len
            pos = (pos + 60 + name_len + data_len + 3) & ~3
        self.free = pos

    def get(self, guid, name):
        for _, state, _, g, n, at, length in self._walk():
            if state == _ADDED and (g, n) == (guid, name):
                return bytes(self.data[at:at + length])
        return None

    def set(self, guid, name, value, attributes=None):
        """Replaces; attributes None: those it had."""
        head = None
        for pos, state, attrs, g, n, _, _ in list(self._walk()):
            if state == _ADDED and (g, n) == (guid, name):
                head = bytes(self.data[pos + 4:pos + 36])
                attributes = attrs if attributes is None else attributes
                self.data[pos + 2] &= _DELETED
        list(self._walk())
        text = name.encode("utf-16-le") + b"\0\0"
        # Count, time and key index of an authenticated one stay as they were.
        rest = head[4:32] if head else bytes(28)
        record = (struct.pack("<HBBI", 0x55aa, _ADDED, 0, attributes) + rest
                  + struct.pack("<II", len(text), len(value)) + guid.bytes_le + text + value)
        record += b"\xff" * (-len(record) % 4)
        if self.free + len(record) > self.end:
            raise ValueError("the store is full")
        self.data[self.free:self.free + len(record)] = record
