# SPDX-License-Identifier: MIT
"""An initial RAM disk that dracut made with the module that seals: what it starts, and what it does not without a TPM. It enters a
plain file system: the seal does not depend on how a disk was opened."""

import hashlib
import os

import pytest

import debian
import guest
import machine

SEALED = hashlib.sha256(bytes(32) + hashlib.sha256(b"tec-node:sealed:-").digest()).hexdigest().upper()


@pytest.fixture(scope="module", name="boots")
def _boots(tmp_path_factory):
    work = str(tmp_path_factory.mktemp("dracut"))
    root = debian.Debian()
    try:
        initrd = root.dracut(root.kernels[0], os.path.join(work, "initrd"))
        disk = debian.make_plain_disk(work)
        g = guest.Guest(work, [disk], os.path.join(machine.OVMF, "OVMF_VARS_4M.fd"))

        def start(*words):
            line = " ".join(("console=ttyS0", "root=/dev/vda", "rw", *words))
            g.direct = ["-kernel", root.kernel(root.kernels[0]), "-initrd", initrd, "-append", line]
            return g.start()

        yield g, start
        g.stop()
    finally:
        root.close()


def test_the_root_is_entered_with_the_seal(boots):
    g, start = boots
    start()
    g.until(" kernel=")
    assert f"@@ root made=plain left= pcr15={SEALED} " in g.seen
    # What runs programs of the root file system (dracut-pre-pivot.service) comes after this target.
    assert g.seen.index("sealed: PCR 15 is extended") < g.seen.index("Initrd Default Target")
    g.type("poweroff")
    g.ended()


def test_a_shell_opens_after_the_seal(boots):
    """sulogin discards what is typed early, so nothing is; test_without_a_tpm_nothing_opens has the other half."""
    g, start = boots
    start("rd.break=pre-mount")
    g.until("Press Enter for maintenance")
    assert "sealed: PCR 15 is extended" in g.seen.split("Press Enter for maintenance")[0]
    g.stop()


@pytest.mark.parametrize("words", [(), ("rd.break=pre-mount",)], ids=["root", "shell"])
def test_without_a_tpm_nothing_opens(boots, words):
    g, start = boots
    g.tpm = False
    start(*words)
    g.until("rebooting")
    g.until("BdsDxe", "Linux version", "reboot: Restarting system")
    assert "@@ root" not in g.seen and "maintenance" not in g.seen
    g.stop()
