#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""Part of make bench: what KbsConfigs cost, on the real API server: 10 of them, then 1,000 in 208 namespaces with 20,000
Secrets that nobody names.

bench_trustee.py [--scale PER_CENT]    of the large case; for a machine that has other things to do
Each line ends with the limit it is held against; exit 1 when one is missed.
"""

import argparse
import base64
import concurrent.futures
import os
import sys
import tempfile
import time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [HERE, os.path.join(HERE, "..", "e2e")]

import bench  # noqa: E402
import conftest  # noqa: E402
import kbsconfigs  # noqa: E402
from bench import cpu_us, report, wait_quiet  # noqa: E402
from controlplane import ControlPlane, wait_for  # noqa: E402
from spine import condition  # noqa: E402
from tecproc import Operator  # noqa: E402

THREADS = 8
CHANGES = 20


class World:
    """One operator in a namespace of its own, which watches further ones."""

    def __init__(self, cp, directory):
        self.cp, self.directory, self.places, self.op = cp, directory, [], None
        self.rights = [o for o in cp.read_manifests(kbsconfigs.OVERLAY) if o["kind"] in ("Role", "RoleBinding")]
        self.account = next(o for o in cp.read_manifests(kbsconfigs.OVERLAY) if o["kind"] == "ServiceAccount")
        self.home = cp.create_namespace("home")
        cp.apply(conftest.retarget([self.account], self.home))
        self.user = f"system:serviceaccount:{self.home}:tec-operator"

    def in_parallel(self, fn, items):
        with concurrent.futures.ThreadPoolExecutor(THREADS) as pool:
            return list(pool.map(fn, items))

    def rights_in(self, ns):
        rights = conftest.retarget(self.rights, ns)
        for o in rights:
            for subject in o.get("subjects", ()):
                subject["namespace"] = self.home
            plural = o["kind"].lower() + "s"
            status, answer = self.cp.api("POST", f"/apis/rbac.authorization.k8s.io/v1/namespaces/{ns}/{plural}", o)
            assert status == 201, answer

    def place(self, n_kbsconfigs, n_secrets):
        """A namespace with as many KbsConfigs, of which one counts, and Secrets that none names."""
        ns = self.cp.create_namespace("place")
        self.rights_in(ns)
        kbsconfigs.head(self.cp, ns)
        for i in range(1, n_kbsconfigs):
            kbsconfigs.make(self.cp, ns, f"k{i}", kbsConfigMapName="kbs-config")
        value = base64.b64encode(b"x" * 1024).decode()
        for i in range(n_secrets):
            status, answer = self.cp.api("POST", f"/api/v1/namespaces/{ns}/secrets", {
                "metadata": {"name": f"foreign-{i}"}, "data": {"a": value, "b": value}})
            assert status == 201, answer
        return ns

    def grow(self, n, kbsconfigs_each, secrets_each):
        self.places += self.in_parallel(lambda _: self.place(kbsconfigs_each, secrets_each), range(n - len(self.places)))

    def start(self):
        config = self.cp.service_account_kubeconfig(self.home, "tec-operator", seconds=7200)
        args = ["--controllers=trustee", "--role=controller", "--log-level=warn",
                "--trustee-namespaces=" + ",".join(self.places)]
        self.op = Operator(config, self.home, self.directory, args).start(timeout=120)

    def all_told(self):
        """Whether every KbsConfig has a condition."""
        answer = self.cp.get(f"/apis/{kbsconfigs.GROUP}/v1alpha1/kbsconfigs")
        return all(condition(o, "Ready") for o in answer["items"])

    def settle(self):
        wait_for(self.all_told, 600, "a condition of every KbsConfig", 2)
        wait_quiet(self.op, 3)

    def change(self, i):
        """A policy of the first namespace; until the Deployment has it."""
        ns = self.places[0]
        before = self.cp.get(f"/apis/apps/v1/namespaces/{ns}/deployments/trustee-deployment")["metadata"]["generation"]
        kbsconfigs.configmap(self.cp, ns, "resource-policy", **{"resource-policy.rego": f"package policy\n# {i}\n"})
        wait_for(lambda: kbsconfigs.deployment(self.cp, ns)["metadata"]["generation"] > before, 60, "a rollout")


def at_rest(world, seconds=20):
    """us per second that are used when nothing changes: Leases, and being asked whether it is quiet."""
    before, began = cpu_us(world.op), time.monotonic()
    while time.monotonic() < began + seconds:
        wait_quiet(world.op, 2)
    cost = (cpu_us(world.op) - before) / (time.monotonic() - began)
    print(f"{'  CPU at rest':58} {cost / 1000:10.3f} ms/s")
    return cost


def measure(world, what, rss_mib):
    world.settle()
    world.change(-1)
    wait_quiet(world.op, 2)
    before, since, began = cpu_us(world.op), world.cp.audit.mark(), time.monotonic()
    for i in range(CHANGES):
        world.change(i)
    wait_quiet(world.op, 2)
    spent, took = cpu_us(world.op) - before, time.monotonic() - began
    cost = (spent - at_rest(world) * took) / CHANGES / 1000
    events = [e for e in world.cp.audit.events(world.user, since)
              if e["objectRef"]["resource"] not in ("leases", "events") and e["verb"] not in ("watch", "list")]
    report(f"{what}: requests of a changed ConfigMap", len(events) / CHANGES, "", 3)
    report(f"{what}: CPU of a changed ConfigMap", cost, "ms", 2)
    report(f"{what}: RSS", world.op.memory_kib()["VmRSS"] / 1024, "MiB", rss_mib)
    return cost


def cold_start(world, what):
    world.op.terminate()
    since = world.cp.audit.mark()
    world.start()
    time.sleep(10)
    wait_quiet(world.op, 3)
    writes = world.cp.audit.writes_by(world.user, since, ignore=("leases",))
    report(f"{what}: writes of a start", len(writes), "", 0)
    report(f"{what}: RSS after a start", world.op.memory_kib()["VmRSS"] / 1024, "MiB", 60)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--scale", type=int, default=100)
    scale = parser.parse_args().scale / 100
    with tempfile.TemporaryDirectory() as directory, ControlPlane(crds=conftest.CRD_DIR) as cp:
        cp.apply_crds(kbsconfigs.CRDS)
        world = World(cp, directory)
        world.grow(10, 1, 0)
        world.start()
        small = measure(world, "10 KbsConfigs", 22)
        world.op.terminate()
        places = max(20, int(208 * scale))
        world.grow(places, 5, 102)
        world.start()
        what = f"{places * 5 - 40} KbsConfigs, {(places - 10) * 102} Secrets"
        large = measure(world, what, 60)
        print(f"{'  flat: large / small':58} {large / small:10.3f}")
        cold_start(world, what)
        world.op.terminate()
    return 1 if bench.missed else 0


if __name__ == "__main__":
    sys.exit(main())
