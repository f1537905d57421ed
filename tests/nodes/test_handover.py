# SPDX-License-Identifier: MIT
"""The operator on the cluster takes over from an anchor outside of it; what it took over goes with README.md's 'Uninstall' in
the right order. One story, on a cluster without an operator."""

import json
import os
import subprocess
import urllib.parse

import node as disks
import pytest
import softtpm
import tecnode
from cluster import API, API_PORT
from conftest import lacking
from controlplane import wait_for
from install import HOSTS, NS, TEC, answer
from proc import Proc
from spine import clevis_config, items, read
from tecctl import tecctl_binary
from tecproc import operator_binary
from test_uninstall import DELETE, nothing_left

LISTENERS = {"api": 7443, "register": 8000, "register-ak": 8001, "kbs": 8080, "health": 8090}
IN_CLUSTER = f"{HOSTS['kbs-service']}:8080"


class Node(disks.Node):
    """In the network outside of the cluster; the names in its certificates lead to its Services."""

    def __init__(self, name, directory, world):
        super().__init__(name, directory)
        hosts = os.path.join(self.dir, "hosts")
        with open(hosts, "w", encoding="ascii") as f:
            f.write("".join(f"{world.service(service)[0]} {host}\n" for service, host in HOSTS.items()))
        self.node.inside = world.cluster.inside("unshare", "--mount", "sh", "-c",
                                                'mount --bind "$0" /etc/hosts; exec "$@"', hosts)

    def install(self, events, ignition):
        self.boot(events, again=False)
        self.take(ignition)
        self.format()

    def reboot(self, events):
        self.boot(events)
        self.open()


class Handover:
    """An anchor beside the control plane, where Pods reach it, and a cluster with an operator and no node."""

    def __init__(self, world):
        self.world, self.cluster, self.dir = world, world.cluster, world.cluster.path("handover")
        os.makedirs(self.dir)
        self.nodes, self.events = [], None
        self.anchor = Proc("anchor", self.cluster.inside(
            operator_binary(), f"--standalone={self.path('state')}", f"--public-address={API}",
            *(f"--listen-{name}={API}:{port}" for name, port in LISTENERS.items())), self.path("anchor.log"))
        self.at_anchor, self.at_cluster = self.path("state", "kubeconfig"), self.path("cluster.kubeconfig")
        with open(self.cluster.admin_kubeconfig, encoding="utf-8") as f:
            text = f.read().replace(self.cluster.server, f"https://{API}:{API_PORT}")
        with open(os.open(self.at_cluster, os.O_WRONLY | os.O_CREAT, 0o600), "w", encoding="utf-8") as f:
            f.write(text)

    def path(self, *parts):
        return os.path.join(self.dir, *parts)

    def run(self, *argv):
        """Beside the anchor, as its administrator."""
        done = subprocess.run(self.cluster.inside(*argv), capture_output=True, text=True, timeout=300, check=False,
                              env=dict(self.world.env, KUBECONFIG=self.at_anchor))
        if done.returncode:
            with open(self.anchor.log, encoding="utf-8") as f:
                raise AssertionError(f"{argv}: {done.stdout}{done.stderr}\nthe anchor: {f.read()[-4000:]}")
        return done.stdout

    def tecctl(self, *args):
        return self.run(tecctl_binary(), *args)

    def between(self, command):
        return self.tecctl(command, "--from", f"{self.at_anchor}:{NS}", "--to", f"{self.at_cluster}:{NS}", "--timeout=120")

    def kubectl(self, *args):
        return self.run(*self.cluster.binaries["kubectl"], "-n", NS, *args)

    def ask(self, url, **job):
        return answer(self.world.client(do="ask", url=url, **job))

    def start(self):
        """Nodes of the anchor get the cluster as their second server, with the CA of README.md's lines."""
        self.anchor.start()
        wait_for(lambda: self.ask(f"http://{API}:{LISTENERS['health']}/readyz").get("status") == 200, 60, "an anchor")
        self.kubectl("create", "secret", "generic", "cluster-ca", f"--from-file=ca.crt={self.world.ca}")
        self.kubectl("patch", "tec", "tec", "--type=merge", "-p", json.dumps({"spec": {
            "registration": read(self.cluster, NS, "tec", TEC)["spec"]["registration"],
            "trusteeServers": [{"address": IN_CLUSTER, "caSecret": "cluster-ca"}]}}))
        root = disks.make_image(self.path("image"), disks.SHIM, disks.GRUB, disks.KERNEL)
        self.events = disks.measured(os.path.dirname(operator_binary()), root)
        self.tecctl("image", "approve", "--rootfs", root, "--name=debian")

    def ignition(self):
        """Of a new node, from the anchor, once it names both servers."""
        merge = json.loads(self.tecctl("ignition"))["ignition"]
        with open(self.path("anchor-ca.crt"), "w", encoding="ascii") as f:
            data = merge["security"]["tls"]["certificateAuthorities"][0]["source"]
            f.write(urllib.parse.unquote(data.removeprefix("data:,")))

        def both():
            got = self.ask(merge["config"]["merge"][0]["source"], ca=f.name)
            found = got.get("status") == 200 and json.loads(got["body"])
            return found and len(clevis_config(found)["servers"]) == 2 and found

        return wait_for(both, 60, "a configuration with both servers", interval=0.3)

    def node(self, name):
        self.nodes.append(Node(name, self.dir, self.world))
        return self.nodes[-1]

    def stop(self):
        for node in self.nodes:
            node.stop()
        self.anchor.stop()


@pytest.fixture(scope="module")
def handover(world):
    missing = softtpm.missing() or tecnode.missing_tools()
    if missing:
        lacking(missing)
    world.install()
    world.wait_condition("TrusteeSynced", "Synced", 300)
    made = Handover(world)
    try:
        made.start()
        yield made
    finally:
        made.stop()


def disk_keys(cluster):
    return {s["metadata"]["name"]: s["data"]["root"] for s in items(cluster, NS, "secrets") if "root" in s.get("data", {})}


def test_a_cluster_that_follows_opens_disks_of_the_anchor(handover):
    world, cluster = handover.world, handover.cluster
    a = handover.node("a")
    a.install(handover.events, handover.ignition())
    handover.between("follow")
    world.wait_condition("Authority", "Following", 60)
    assert list(disk_keys(cluster)) == [a.uuid]
    refused = world.ask("register-server", "/ignition")
    assert refused.get("status") == 503, refused

    def opens():
        status, key, _ = a.node.run("get-resource", f"--url=https://{IN_CLUSTER}", f"--cert-file={world.ca}",
                                    f"--path={a.pin['path']}")
        return status == 0 and key.decode().strip() == disk_keys(cluster)[a.uuid]

    wait_for(opens, 60, "the disk key from the cluster, whose Trustee has all values", interval=0.3)


def test_it_is_promoted_and_needs_the_anchor_no_more(handover):
    world, cluster = handover.world, handover.cluster
    before = disk_keys(cluster)
    handover.between("promote")
    assert handover.anchor.stop() == 0
    a = handover.nodes[0]
    a.reboot(handover.events)
    assert disk_keys(cluster) == before
    b = handover.node("b")
    answered = world.ask("register-server", "/ignition")
    assert answered.get("status") == 200, answered
    b.install(handover.events, json.loads(answered["body"]))
    b.reboot(handover.events)
    assert disk_keys(cluster).keys() == {a.uuid, b.uuid}
    # Values that the anchor computed are not computed again.
    assert not world.pods("app%3Dcompute-pcrs")


def test_the_right_order_ends(handover):
    handover.world.run(f"{DELETE} --yes", timeout=500)
    nothing_left(handover.world)
