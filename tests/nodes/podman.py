#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""What of podman README.md uses, said to buildah. The nodes, $TEC_NODES_PIDS, are the registry that push reaches."""

import os
import subprocess
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [HERE, os.path.join(os.path.dirname(HERE), "e2e")]

import images  # noqa: E402


def push(name):
    archive = images.export(name, os.environ["TEC_NODES_ARCHIVES"])
    ctr = [os.path.join(HERE, "bin", "ctr"), "--address", "/run/containerd/containerd.sock", "--namespace", "k8s.io",
           "images", "import", "--local", archive]
    started = [subprocess.Popen(["nsenter", "--target", pid, "--net", "--mount", "--", *ctr])
               for pid in os.environ["TEC_NODES_PIDS"].split()]
    return max(p.wait() for p in started)


def main(args):
    if args[:1] == ["build"]:
        with images.Locked():
            return subprocess.call([*images.buildah_argv(), *images.BUD, *args[1:]])
    if args[:1] == ["push"] and len(args) == 2:
        return push(args[1])
    print(f"podman {' '.join(args)}: README.md is not known to say this", file=sys.stderr)
    return 2


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
