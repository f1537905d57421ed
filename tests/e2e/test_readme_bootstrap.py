# SPDX-License-Identifier: MIT
"""README.md's walkthrough "Bootstrap a cluster", typed word for word into one shell, in a network where its addresses
are this machine's: tec-operator --standalone as the anchor, a real API server with an operator and a key broker as the
cluster, and a node with a software TPM whose disk opens at each of the two."""

import base64
import json
import os
import re
import select
import shlex
import signal
import ssl
import subprocess
import sys
import time
import urllib.parse
import urllib.request

import pytest

import ownnet
import softtpm
import spine
import tecnode
from conftest import CRD_DIR, K8S_DIR, lacking
from controlplane import PATIENCE, TOP, ControlPlane, Unavailable, find_binaries, wait_for
from kbs import kbs_binary
from proc import Proc, free_port, tail
from tecproc import operator_binary
from trustees import signer

sys.path += [os.path.join(TOP, "tests", folder) for folder in ("nodes", "demo")]
import node as nodes  # noqa: E402  pylint: disable=wrong-import-position
import readme  # noqa: E402  pylint: disable=wrong-import-position

NS = "trusted-execution-clusters"
ANCHOR, CLUSTER = "192.0.2.10", "192.0.2.20"
BUILD = os.path.dirname(operator_binary())


class Typist:
    """A shell in which one block after the other is typed; what fails in one ends it."""

    def __init__(self, home, env):
        self.home, self.typed = home, 0
        self.shell = subprocess.Popen(["sh", "-e"], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                      stderr=subprocess.STDOUT, env=env, cwd=home, start_new_session=True)

    def type(self, commands, seconds=60):
        """What they printed."""
        self.typed += 1
        end = f"end of block {self.typed}"
        block = self.home / f"block-{self.typed}"
        block.write_text(commands)
        self.shell.stdin.write(f". {shlex.quote(str(block))} </dev/null\necho {end!r}\n".encode())
        self.shell.stdin.flush()
        seen, until = b"", time.monotonic() + seconds * PATIENCE
        while end.encode() not in seen:
            ready = select.select([self.shell.stdout], [], [], max(0, until - time.monotonic()))[0]
            data = os.read(self.shell.stdout.fileno(), 65536) if ready else b""
            assert data, f"{commands}\n{seen.decode()}"
            seen += data
        return seen.decode().removesuffix(f"{end}\n")

    def close(self):
        os.killpg(self.shell.pid, signal.SIGKILL)  # it may have a command that does not end
        self.shell.communicate()


class Cluster:
    """What the nodes form: a control plane, and what its kubelets would run of k8s/ and of the operator's Deployment."""

    def __init__(self, path):
        self.path = path
        self.cp = ControlPlane(str(path / "kube"), crds=CRD_DIR, address=CLUSTER)
        self.operator = self.broker = None

    def start(self):
        self.cp.start()
        self.cp.apply_dir(K8S_DIR)

    def kubeconfig(self):
        """The administrator's, which needs no other file."""
        with open(self.cp.admin_kubeconfig, encoding="utf-8") as f:
            text = f.read()
        with open(self.cp.ca_file, "rb") as f:
            ca = base64.b64encode(f.read()).decode()
        return re.sub(r"certificate-authority: \S+", f"certificate-authority-data: {ca}", text)

    def _files(self, secret, *members):
        """Members of a Secret, as soon as it is there, as files."""
        data = wait_for(lambda: spine.read(self.cp, NS, "secrets", secret), 30, f"Secret {secret}")["data"]
        for member in members:
            (self.path / member).write_bytes(base64.b64decode(data[member]))
        return [self.path / member for member in members]

    def run_the_operator(self):
        """And Trustee, of which the operator says what is to run: a broker, with a Pod that has started."""
        env = {k: v for k, v in os.environ.items() if k != "KUBECONFIG"}
        self.operator = Proc("tec-operator", [
            operator_binary(), f"--namespace={NS}", f"--kbs-url=https://{CLUSTER}:30880",
            f"--kubeconfig={self.cp.service_account_kubeconfig(NS, 'tec-operator')}",
            f"--listen-register={CLUSTER}:30800", f"--listen-register-ak={CLUSTER}:30801",
            f"--listen-health=127.0.0.1:{free_port()}"], str(self.path / "operator.log"), env)
        self.operator.start()
        auth, = self._files("trustee-auth", "public.pub")
        crt, key = self._files("cluster-tls", "tls.crt", "tls.key")
        self.broker = Proc("tec-test-kbs", [
            kbs_binary(), f"--listen={CLUSTER}:30880", f"--admin-key={auth}", f"--tls-cert={crt}", f"--tls-key={key}",
            f"--signer={signer(self.path)}", f"--policies={os.path.join(TOP, 'etc')}"], str(self.path / "broker.log"))
        self.broker.start()
        deployment = wait_for(lambda: spine.read(self.cp, NS, "deployments", "trustee-deployment"), 30, "Trustee")
        template = deployment["spec"]["template"]
        template["metadata"]["name"] = "trustee-0"
        status, answer = self.cp.api("POST", spine.path_of(NS, "pods"), template)
        assert status == 201, answer
        ready = [{"name": c["name"], "image": c["image"], "imageID": "", "ready": True, "restartCount": 0}
                 for c in template["spec"]["containers"]]
        status, answer = self.cp.api("PATCH", spine.path_of(NS, "pods", "trustee-0") + "/status", {"status": {
            "phase": "Running", "conditions": [{"type": "Ready", "status": "True"}], "containerStatuses": ready}}, "merge")
        assert status == 200, answer
        spine.wait_condition(self.cp, NS, "tec", "tec", "TrusteeSynced", "Synced", 30)

    def stop(self):
        ended = [p.stop() for p in (self.operator, self.broker) if p]
        self.cp.stop()
        assert set(ended) <= {0, None}, tail(self.operator.log)  # None: it was not started


class Anchor:
    """The first block, which runs until it is stopped."""

    def __init__(self, home, command, env):
        self.home = home
        self.process = Proc("the anchor", ["sh", "-c", f"exec {command}"], str(home / "anchor.log"), env)
        self.start()

    def start(self):
        self.process.start()

        def ready():
            self.process.check()
            return spine.request(8081, "GET", "/readyz")[0] == 200

        wait_for(ready, 30, "the anchor")

    def stop(self):
        assert self.process.stop() == 0, tail(self.process.log)


def program(file, text):
    file.write_text(f"#!/bin/sh\n{text}\n")
    file.chmod(0o755)


pytestmark = pytest.mark.xdist_group("test_rebind")  # tec-node rebind-servers runs once on a machine


@pytest.fixture(name="home")
def _home(tmp_path):
    """HOME of who types, in a network of its own, with the programs in PATH."""
    for lacks in (softtpm.missing(), tecnode.missing_tools()):
        if lacks:
            lacking(f"no node; next step: {lacks}")
    home = tmp_path / "home"
    tools = home / "tools"
    tools.mkdir(parents=True)
    for name in ("tec-operator", "tecctl", "tec-compute-pcrs"):
        (tools / name).symlink_to(os.path.join(BUILD, name))
    try:
        kubectl = find_binaries()["kubectl"]
    except Unavailable as e:
        lacking(str(e))
    program(tools / "kubectl", f'exec {" ".join(kubectl)} "$@"')
    with ownnet.inside() as alone:
        if not alone:
            lacking("no network of its own; next step: run as root")
        ownnet.add(2, ANCHOR)
        ownnet.add(3, CLUSTER)
        yield home


@pytest.fixture(name="node")
def _node(home):
    (home / "node").mkdir()
    made = nodes.Node("first", str(home / "node"))
    # rebind-servers looks for the disks that are open; this one is a file.
    program(home / "tools" / "tec-node", f'exec {tecnode.BINARY} "$@" --device={made.disk}')
    yield made
    made.stop()


def configuration(url, ca):
    with urllib.request.urlopen(url, timeout=30, context=ssl.create_default_context(cadata=ca)) as answer:
        return json.load(answer)


def of_a_new_node(file):
    """What a node that was installed with this file is given."""
    first = json.loads(file.read_text())["ignition"]
    ca = first["security"]["tls"]["certificateAuthorities"][0]["source"].removeprefix("data:,")
    return configuration(first["config"]["merge"][0]["source"], urllib.parse.unquote(ca))


def servers_of(ignition):
    return [s["url"] for s in spine.clevis_config(ignition)["servers"]]


def statuses(text):
    return [tuple(line.split()[:2]) for line in text.splitlines() if re.match(r"(ok|no|note) ", line)]


PROMOTED = [("ok", step) for step in ("follow", "preflight", "freeze", "copy", "promote", "swap")]


def test_the_walkthrough(home, node):
    anchor_block, names, cluster_block, hand_over, back, retire = (c for _, c in readme.blocks("Bootstrap a cluster"))
    env = dict(node.node.env, HOME=str(home), PATH=f"{home / 'tools'}:{node.node.env['PATH']}")
    env.pop("KUBECONFIG", None)
    folder = home / "bootstrap"
    folder.mkdir(mode=0o700)
    with ownnet.left():
        image = nodes.make_image(str(folder / "image"), nodes.SHIM, nodes.GRUB, nodes.KERNEL)
    measured = nodes.measured(BUILD, image)
    anchor, cluster, typist = Anchor(home, anchor_block, env), Cluster(home), Typist(home, env)
    try:
        typist.type(names)
        node.boot(measured, again=False)
        ignition = of_a_new_node(folder / "node.ign")
        assert servers_of(ignition) == [f"https://{ANCHOR}:8080", f"https://{CLUSTER}:30880"]
        node.take(ignition)
        node.format()

        cluster.start()
        (folder / "cluster.kubeconfig").write_text(cluster.kubeconfig())
        typist.type(cluster_block)
        cluster.run_the_operator()
        said = typist.type(hand_over)
        assert statuses(said)[-len(PROMOTED):] == PROMOTED, said
        later = configuration(f"https://{CLUSTER}:30800/ignition", (folder / "cluster-ca.crt").read_text())
        assert servers_of(later) == [f"https://{CLUSTER}:30880", f"https://{ANCHOR}:8080"]

        def opens(measured=measured):
            node.boot(measured)
            node.open()

        anchor.stop()
        opens()  # at the cluster
        anchor.start()
        cluster.broker.kill()
        opens()  # at the anchor
        # It keeps nothing on disk: until the operator has noticed and filled it again, it knows no node.
        spine.wait_condition(cluster.cp, NS, "tec", "tec", "TrusteeSynced", "NotAvailable", 60)
        cluster.broker.start()
        spine.wait_condition(cluster.cp, NS, "tec", "tec", "TrusteeSynced", "Synced", 60)
        assert statuses(typist.type(back)) == PROMOTED * 2

        said = typist.type(retire)
        assert statuses(said)[-1] == ("ok", "retire"), said
        opens()  # at the cluster, whose broker alone is in the disk's header
    finally:
        typist.close()
        anchor.stop()
        cluster.stop()
