# SPDX-License-Identifier: MIT
"""What the Containerfile makes, and what a build leaves that is killed."""

import os
import signal
import subprocess
import sys

import images
from controlplane import wait_for

HERE = os.path.dirname(os.path.abspath(__file__))
SLEEPER = f"FROM {images.DEBIAN}\nRUN sleep 12345\n"


def mounts():
    with open("/proc/mounts", encoding="utf-8") as f:
        return [line for line in f if images.CACHE in line]


def sleepers():
    found = []
    for pid in filter(str.isdigit, os.listdir("/proc")):
        try:
            with open(f"/proc/{pid}/cmdline", "rb") as f:
                if f.read() == b"sleep\x0012345\0":
                    found.append(int(pid))
        except OSError:
            pass
    return found


def test_a_killed_build_leaves_nothing(base, tmp_path):
    """No process and no mount, also when it is killed in the middle of a command of the Containerfile."""
    before = mounts()
    assert not sleepers()
    (tmp_path / "Containerfile").write_text(SLEEPER)
    build = subprocess.Popen([*images.buildah_argv(), *images.BUD, "--no-cache", str(tmp_path)], stdin=subprocess.DEVNULL,
                             stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        wait_for(sleepers, 300, "the command of the Containerfile", interval=0.1)
        with open(f"/proc/{sleepers()[0]}/mounts", encoding="utf-8") as f:
            assert "overlay / " in f.read(), "there is nothing that could be left"
    finally:
        build.send_signal(signal.SIGKILL)
        build.wait()
    wait_for(lambda: not sleepers(), 60, "end of what the build ran", interval=0.1)
    assert mounts() == before
    # What it left in the store is in nobody's way, and goes.
    images.remove_containers()
    assert not images.buildah("containers", "--quiet").split()
    (tmp_path / "Containerfile").write_text(f"FROM {images.DEBIAN}\nRUN true\n")
    images.buildah(*images.BUD, "--no-cache", "-t", "localhost/after-a-kill:1", str(tmp_path))
    images.buildah("rmi", "localhost/after-a-kill:1")
    assert mounts() == before


def test_the_images_are_what_they_should_be(base, tmp_path):
    """check.sh says what that is."""
    tree = images.clone(str(tmp_path / "tree"))
    done = subprocess.run(["sh", os.path.join(HERE, "check.sh"), tree], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT, text=True, check=False,
                          env=dict(os.environ, BUILDAH=" ".join(images.storage_argv())))
    print(done.stdout, file=sys.stderr)
    assert done.returncode == 0, done.stdout[-4000:]
    assert "both images are the same when built twice" in done.stdout
