#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""make bench: what it costs to follow another operator, and how long a promotion hinders new nodes.

bench_handover.py [--machines N] [--only NAME[,NAME]]   NAME: copy, freeze
The limits are for 10,000 Machines, which take half an hour.
copy: N Machines, one in ten without a key, of a standalone source to an operator beside kube-apiserver and a broker.
freeze: two standalone operators, with 100 Machines and with N; nodes attest at both, and a new one asks both.
Each line ends with the limit it is held against; exit 1 when one is missed.
"""

import argparse
import base64
import os
import ssl
import subprocess
import sys
import tempfile
import threading
import time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [HERE, os.path.join(HERE, "..", "e2e")]

import bench  # noqa: E402
import conftest  # noqa: E402
import kbs as brokers  # noqa: E402
import spine  # noqa: E402
from bench import FAST, Nodes, missed, report, wait_quiet  # noqa: E402
from controlplane import ControlPlane, wait_for  # noqa: E402
from tecctl import Tecctl  # noqa: E402
from test_images import PCR14, pcr4, registry  # noqa: E402
from test_standalone import NS, Standalone  # noqa: E402
from test_standalone_attest import approve_image  # noqa: E402

TOOL = os.path.join(os.environ.get("TEC_BUILDDIR", "."), "tests", "bench", "bench_guard")
WRITES = ("create", "update", "patch", "apply", "delete")
WITHOUT_KEY = 10  # one in so many
RATE = 200
REST_S = 30
# Of a promotion with 100 Machines, and with more.
FREEZE_100_S, FREEZE_S = 3, 10
# The copies' statuses are written meanwhile. RATE is asked for; two processors serve it and make the quotes.
SLOWER = 2


class Alone(Standalone):
    """With the face that bench.py's helpers know."""

    def __init__(self, directory):
        super().__init__(directory, "--public-address=127.0.0.1", f"--insecure-registry={registry()}", *FAST)

    def start(self):
        super().start()
        self.pid = self.process.pid
        spine.merge(self, NS, "tec", "tec", {"spec": {
            "registration": {"pendingLimit": 100000, "machineLimit": 100000}}})
        self.tls = ssl.create_default_context(cafile=self.cafile)
        return self

    def cpu_seconds(self):
        return time.clock_gettime_ns(~self.pid << 3 | 2) / 1e9  # as clock_getcpuclockid() makes it


def rss_mib(pid, what="VmHWM"):
    with open(f"/proc/{pid}/status", encoding="ascii") as f:
        return next(int(line.split()[1]) for line in f if line.startswith(what)) / 1024


def writes(op):
    """How many requests it made that write, by verb and code."""
    found = {}
    for name, n in op.metrics().items():
        if name.startswith("tec_api_requests_total") and any(f'"{verb}"' in name for verb in WRITES):
            found[name] = found.get(name, 0) + n
    return found


def written(before, after):
    return sum(after.values()) - sum(before.values())


def filled(source, keyed, without=0):
    Nodes(source, keyed, tls=source.tls).run()
    wait_quiet(source, keys=keyed)
    if without:
        spine.machine_at_request(source, NS)
        Nodes(source, without, with_keys=False, tls=source.tls).run()
        wait_quiet(source, keys=keyed)


def place(plane, ns=NS, config=None):
    return f"{config or plane.dir + '/kubeconfig'}:{ns}"


def tecctl(*args):
    return Tecctl(None).out(*args, "--timeout=3600", timeout=3600)


# ---- copy


def bench_copy(directory, n):
    """The operator alone: its API server and its broker are other processes."""
    with ControlPlane(crds=conftest.CRD_DIR, audit=False) as cp:
        world, source = bench.World(cp, directory), Alone(f"{directory}/source").start()
        keyed = n - n // WITHOUT_KEY
        filled(source, keyed, n - keyed)
        ns = world.namespace()
        files = [os.path.join(directory, name) for name in ("auth.key", "auth.pub")]
        broker = brokers.TestKbs(directory, *files)
        op = world.operator(ns, "--leader-elect=false", "--kbs-url", broker.url)
        spine.wait_condition(cp, ns, "tec", "tec", "Installed", "InstallationCompleted")
        auth = spine.read(cp, ns, "secrets", "trustee-auth")["data"]
        for path, member in zip(files, ("private.key", "public.pub")):
            with open(path, "wb") as f:
                f.write(base64.b64decode(auth[member]))
        broker.start()
        wait_quiet(op)
        before, cpu, began = writes(op), op.cpu_seconds(), time.monotonic()
        cp.kubectl("-n", ns, "create", "secret", "generic", "source", f"--from-file=kubeconfig={source.dir}/kubeconfig")
        spine.merge(cp, ns, "tec", "tec",
                    {"spec": {"authority": "Following", "follow": {"kubeconfigSecret": "source", "namespace": NS}}})

        def in_step():
            return spine.condition(spine.read(cp, ns, "tec", "tec"), "Authority").get("reason") == "Following"

        wait_for(in_step, 3600, "the copy")
        took, cpu = time.monotonic() - began, op.cpu_seconds() - cpu
        sent = written(before, writes(op))
        allowed = 6.2 * keyed + 3.2 * (n - keyed)
        print(f"{f'  {n} Machines, {keyed} with a key, copied in':58} {took:10.1f} s")
        print(f"{'  writes in all, each Machine':58} {sent / n:10.3f}")
        report("writes / 6.2 with a key and 3.2 without", sent / allowed, "x", 1)
        report("CPU of the operator for each Machine", cpu * 1000 / n, "ms", 1)
        report("peak RSS of the operator", rss_mib(op.pid), "MiB", 60)
        at_rest(op, "a follower")
        op.terminate()
        broker.stop()
        source.stop()


def at_rest(op, who):
    wait_quiet(op, 62)  # the counts of registrations in a status are written once a minute
    before = writes(op)
    time.sleep(REST_S)
    report(f"{who} at rest for {REST_S} s: writes", written(before, writes(op)), "", 0)


# ---- freeze


class NewNode(threading.Thread):
    """Asks both for its configuration, again and again: the longest time that neither gave one."""

    def __init__(self, both):
        super().__init__(daemon=True)
        self.both, self.over = both, threading.Event()
        self.longest, self.last = 0, time.monotonic()
        self.other = {}
        self.start()

    def run(self):
        while not self.over.is_set():
            for one in self.both:
                try:
                    status = spine.request(one.register_port, "GET", "/ignition", cafile=f"{one.dir}.nodes.crt",
                                           timeout=5)[0]
                except OSError as e:
                    status = repr(e)
                if status == 200:
                    self.longest = max(self.longest, time.monotonic() - self.last)
                    self.last = time.monotonic()
                elif status != 503:
                    self.other[status] = self.other.get(status, 0) + 1
            time.sleep(0.02)

    def end(self):
        self.over.set()
        self.join(10)
        return max(self.longest, time.monotonic() - self.last)


class Load:
    """Attestations of a node that both know, RATE a second of both together."""

    def __init__(self, both, source):
        registers = [r["value"] for r in (pcr4("a", "a"), PCR14)]
        self.tool = subprocess.Popen([TOOL, "load", str(RATE), *registers, *(str(one.kbs) for one in both)],
                                     stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        der = self.tool.stdout.readline().strip()
        pem = "\n".join(["-----BEGIN PUBLIC KEY-----", *(der[i:i + 64] for i in range(0, len(der), 64)),
                         "-----END PUBLIC KEY-----", ""])
        self.uuid = spine.first_boot(source)
        status, said = spine.register(source, pem, self.uuid)
        assert status == 201, said
        spine.wait_condition(source, NS, "mach", f"machine-{self.uuid}", "Ready", "AllReady", 60)
        self.began = None

    def start(self):
        self.say(f"default/{self.uuid}/root")
        time.sleep(2)  # connections, caches
        return self.sample()

    def say(self, line):
        self.tool.stdin.write(f"{line}\n")
        self.tool.stdin.flush()

    def sample(self):
        """(a second, failed, the longest in ms) since the last."""
        self.say("")
        served, failed, longest = map(int, self.tool.stdout.readline().split())
        now, before = time.monotonic(), self.began
        self.began = now
        return served / (now - before) if before else 0, failed, longest

    def end(self):
        if self.tool.poll() is None:
            self.tool.stdin.close()
            self.tool.wait(20)


def bench_freeze(directory, n):
    for machines in sorted({100, n}):
        promote_once(f"{directory}/{machines}", machines)


def promote_once(directory, n):
    os.mkdir(directory)
    source, target = Alone(f"{directory}/source").start(), Alone(f"{directory}/target").start()
    load = None
    try:
        approve_image(source, "a")
        filled(source, n)
        load = Load((source, target), source)
        began, cpu = time.monotonic(), target.cpu_seconds()
        tecctl("follow", "--from", place(source), "--to", place(target))
        print(f"{f'  {n} Machines copied by a standalone operator in':58} {time.monotonic() - began:10.1f} s")
        print(f"{'    CPU of the process, its API and broker included':58} "
              f"{(target.cpu_seconds() - cpu) * 1000 / n:10.3f} ms each")
        wait_quiet(target)
        at = f"at {n} Machines"
        load.start()
        time.sleep(10)
        before = load.sample()
        node = NewNode((source, target))
        time.sleep(0.5)
        began = time.monotonic()
        tecctl("promote", "--from", place(source), "--to", place(target))
        took = time.monotonic() - began
        longest, during = node.end(), load.sample()
        load.end()
        print(f"{f'  a promotion {at}':58} {took:10.1f} s")
        report(f"answers to it but 200 and 503 {at}", sum(node.other.values()), "", 0)
        report(f"a new node waits {at}", longest, "s", FREEZE_100_S if n <= 100 else FREEZE_S)
        for when, (rate, failed, ms) in (("before", before), ("during", during)):
            print(f"{f'  attestations {at}, {when} the promotion':58} {rate:10.1f} a second, the longest {ms} ms")
            report(f"  without a key {at}, {when}", failed, "", 0)
        report(f"  attestations a second {at}: before / during", before[0] / during[0], "x", SLOWER)
        for who, one in (("who decides", target), ("who follows", source)):
            report(f"peak RSS of {who} {at}, standalone", rss_mib(one.pid), "MiB", 60)
        wait_quiet(target, 5)  # what it still writes is copied
        at_rest(source, f"who follows {at}")
    finally:
        if load:
            load.end()
        for one in (source, target):
            one.stop()


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--machines", type=int, default=2000)
    p.add_argument("--only", default="copy,freeze")
    args = p.parse_args()
    for name in args.only.split(","):
        with tempfile.TemporaryDirectory() as directory:
            globals()[f"bench_{name}"](directory, args.machines)
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
