# SPDX-License-Identifier: MIT
"""The tier with a machine: qemu without KVM, OVMF with Secure Boot, swtpm, Debian's signed boot files and its initramfs.

What a machine lacks skips with the reason; with TEC_NO_SKIP=1, which CI sets, it fails instead."""

import os
import shutil
import signal
import sys

import pytest

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [HERE, os.path.join(os.path.dirname(HERE), "e2e")]

import machine  # noqa: E402

TOOLS = {"mmdebstrap": "mmdebstrap", "unshare": "util-linux", "zstd": "zstd"}


def pytest_configure():
    def end(*_):
        raise KeyboardInterrupt

    # Whoever's patience ends gets no machine that goes on.
    signal.signal(signal.SIGTERM, end)


def lacking():
    if os.geteuid() != 0:
        return "mmdebstrap and mkinitramfs need root here"
    missing = sorted({package for tool, package in TOOLS.items() if not shutil.which(tool)} | set(machine.lacking()))
    return f"missing; next step: apt-get install {' '.join(missing)}" if missing else None


@pytest.fixture(scope="session", autouse=True)
def _tools():
    reason = lacking()
    if reason:
        (pytest.fail if os.environ.get("TEC_NO_SKIP") else pytest.skip)(reason)
