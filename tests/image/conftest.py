# SPDX-License-Identifier: MIT
"""The tier that builds what the Containerfile says, with the base images of tests/nodes.

What a machine lacks skips with the reason; with TEC_NO_SKIP=1, which CI sets, it fails instead."""

import os
import shutil
import signal
import sys

import pytest

TESTS = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
sys.path[:0] = [os.path.join(TESTS, "nodes"), os.path.join(TESTS, "e2e")]

import images  # noqa: E402

TOOLS = {"buildah": "buildah", "mmdebstrap": "mmdebstrap", "unshare": "util-linux"}


def pytest_configure():
    def end(*_):
        raise KeyboardInterrupt

    # Whoever's patience ends gets no build that goes on.
    signal.signal(signal.SIGTERM, end)


def lacking():
    if os.geteuid() != 0:
        return "building images needs root"
    missing = sorted(package for tool, package in TOOLS.items() if not shutil.which(tool))
    return f"missing; next step: apt-get install {' '.join(missing)}" if missing else None


@pytest.fixture(scope="session")
def base(tmp_path_factory):
    """Debian's base images are there; nobody else builds meanwhile."""
    reason = lacking()
    if reason:
        (pytest.fail if os.environ.get("TEC_NO_SKIP") else pytest.skip)(reason)
    with images.Locked():
        images.base(str(tmp_path_factory.mktemp("base") / "log"))
        yield
