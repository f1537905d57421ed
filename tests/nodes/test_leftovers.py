# SPDX-License-Identifier: MIT
"""Whoever makes a cluster may be killed: nothing of it goes on, and the next run removes what cannot remove itself."""

import glob
import os
import signal
import subprocess
import sys

import cluster
import nodes
from controlplane import wait_for

HERE = os.path.dirname(os.path.abspath(__file__))
CHILD = """
import sys, time
sys.path[:0] = sys.argv[1:]
import cluster
made = cluster.Cluster()
made.start()
print(made.dir, flush=True)
time.sleep(600)
"""


def processes_of(directory):
    found = []
    for pid in (p for p in os.listdir("/proc") if p.isdigit()):
        try:
            with open(f"/proc/{pid}/cmdline", "rb") as f:
                if directory.encode() in f.read():
                    found.append(int(pid))
        except OSError:
            pass
    return found


def cgroups_of(pid):
    name = f"{nodes.CGROUP_PREFIX}-{pid}-*"
    return glob.glob(f"{nodes.CGROUPS}/{name}") + glob.glob(f"{nodes.CGROUPS}/*/{name}")


def test_nothing_goes_on_after_a_kill(world):  # which says whether nodes can be had here
    child = subprocess.Popen([sys.executable, "-B", "-c", CHILD, HERE, os.path.join(os.path.dirname(HERE), "e2e")],
                             stdout=subprocess.PIPE, text=True)
    try:
        directory = child.stdout.readline().strip()
        assert os.path.isdir(directory)
        assert len(processes_of(directory)) > 5
        assert cgroups_of(child.pid)
    finally:
        child.send_signal(signal.SIGKILL)
        child.wait()
    wait_for(lambda: not processes_of(directory), 60, "end of what it started", interval=0.2)
    with open("/proc/mounts", encoding="utf-8") as f:
        assert directory not in f.read()

    def swept():
        cluster.sweep()
        return not os.path.exists(directory) and not cgroups_of(child.pid)

    wait_for(swept, 60, "removed leftovers", interval=0.5)
