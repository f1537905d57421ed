# SPDX-License-Identifier: MIT
"""kill -9 of tecctl and of either operator, each of which is also its API server and its key broker, before and after
every step of a promotion. Whatever was killed: no disk key is lost, changed or made twice, at most one cluster decides,
and the same command, run again, completes."""

import base64
import hashlib
import os
import re
import shutil
import signal
import socket
import ssl
import subprocess
import sys
import threading
import time

import pytest

import softtpm
import spine
from controlplane import TOP, wait_for
from faultproxy import CUT, CUT_AFTER, FaultProxy
from tecctl import Tecctl
from test_attest import Jwk
from test_follow import opens_at
from test_handover import ALL_DONE, authority, disk_keys, lines
from test_images import registry
from test_standalone import NS, Standalone
from test_standalone_attest import Node, approve_image, boot, tls

sys.path.append(os.path.join(TOP, "tests", "bench"))
from bench import Nodes  # noqa: E402

pytestmark = [
    pytest.mark.skipif(softtpm.missing() is not None, reason=str(softtpm.missing())),
    pytest.mark.skipif(not shutil.which("jose"), reason="apt-get install jose"),
]

STEPS = ["follow", "preflight", "freeze", "promote", "swap"]  # the copy is between freeze and promote
MANY = 1000
# All of them may wait for a key at once.
LIMITS = {"spec": {"registration": {"pendingLimit": 100 * MANY, "machineLimit": 100 * MANY}}}
ctl = Tecctl(None)


class Gate(FaultProxy):
    """Stands before an operator's API. Who shows the administrator's certificate is the administrator behind it."""

    def __init__(self, plane, rule):
        plane.get(spine.path_of(NS, "tec"))  # writes the certificate as a file
        super().__init__(f"{plane.dir}/kubeconfig", f"{plane.dir}.gate", http2=False)
        self.plane, self.patch_rule = plane, rule
        certificate = f"{plane.dir}.client.pem"
        self.tls.verify_mode = ssl.CERT_OPTIONAL
        self.tls.verify_flags |= ssl.VERIFY_X509_PARTIAL_CHAIN
        self.tls.load_verify_locations(certificate)
        with open(f"{plane.dir}/ca.crt", encoding="ascii") as f:
            self.administrator = ssl.create_default_context(cadata=f.read())
        self.administrator.load_cert_chain(certificate)

    def _converse(self, client):
        raw = socket.create_connection((self.upstream.hostname, self.upstream.port))
        context = self.administrator if client.getpeercert() else self.upstream_tls
        with context.wrap_socket(raw, server_hostname=self.upstream.hostname) as server:
            self._forward(client, server)

    def _judge(self, head):
        top = head.split(b"\r\n", 1)[0]
        if top.startswith(b"PATCH ") and b"/trustedexecutionclusters/" in top and b"dryRun" not in top:
            return self.patch_rule(self.plane, head.partition(b"\r\n\r\n")[2].decode())
        return None


class Pair:
    """Two operators, tecctl between them, and somebody who looks all the time who decides."""

    def __init__(self, directory):
        self.dir, self.n = directory, 0
        self.tecctl, self.victim, self.how, self.todo, self.killed = None, None, None, set(), 0
        self.faults, self.looked, self.over = [], 0, threading.Event()
        self.gates, self.started = {}, []
        self.source, self.target = self.new(), None
        self.watcher = threading.Thread(target=self.watch, daemon=True)
        self.watcher.start()

    def new(self):
        self.n += 1
        one = Standalone(f"{self.dir}/{self.n}", "--public-address=127.0.0.1", f"--insecure-registry={registry()}",
                         "--rate-limit=off").start()
        self.started.append(one)
        os.mkdir(f"{one.dir}.gate")
        self.gates[one] = Gate(one, self.rule)
        self.gates[one].on_cut = self.kill
        tls(one)  # which its listeners say only while it decides
        spine.merge(one, NS, "tec", "tec", LIMITS)
        return one

    def fresh_target(self):
        """One that does not follow yet."""
        gone, self.target = self.target, None
        if gone:
            assert gone.stop() == 0, gone.log()
        self.target = self.new()

    # -- who decides

    @staticmethod
    def cluster(one):
        return one.get(spine.path_of(NS, "tec", "tec"))

    @staticmethod
    def decides(cluster):
        # Before the first change of a cluster there is no condition: it decides.
        return authority(cluster) == "Self" and spine.condition(cluster, "Authority").get("status", "True") == "True"

    def look(self):
        both = [one for one in (self.source, self.target) if one]
        clusters = [self.cluster(one) for one in both]
        # One that has never followed decides beside the other one, until it does.
        if len(clusters) == 2 and all(map(self.decides, clusters)) and \
                clusters[1]["spec"].get("follow"):
            # Not at the same time: the first may have changed since it was read.
            if self.decides(self.cluster(both[0])):
                self.faults.append("both clusters decide")
        self.looked += 1

    def watch(self):
        while not self.over.is_set():
            try:
                self.look()
            except (OSError, AssertionError, ValueError):
                pass  # it was killed
            time.sleep(0.02)

    # -- a promotion

    def step_of(self, plane, body):
        """The step that a change of a TrustedExecutionCluster ends."""
        found = re.search(r'"authority": *"(\w+)"', body)
        return {"Following": "follow" if plane is self.target else "swap", "Frozen": "freeze",
                "Self": "promote"}[found[1]] if found else "preflight"

    def rule(self, plane, body):
        if self.step_of(plane, body) in self.todo:
            self.todo.remove(self.step_of(plane, body))
            return self.how
        return None

    def kill(self):
        victim = {"tecctl": self.tecctl, "source": self.source.process, "target": self.target.process}[self.victim]
        victim.kill()
        victim.wait()
        self.killed += 1

    def args(self, kubeconfig):
        return ["promote", "--timeout=60", "--from", f"{kubeconfig(self.source)}:{NS}",
                "--to", f"{kubeconfig(self.target)}:{NS}"]

    def promote_killed(self, victim, how, steps):
        """How tecctl ended. An operator is started again as soon as it is dead."""
        self.victim, self.how, self.todo, self.killed = victim, how, set(steps), 0
        with open(f"{self.dir}/tecctl.log", "w+", encoding="utf-8") as log, \
                subprocess.Popen(ctl.argv(*self.args(lambda one: self.gates[one].kubeconfig)), stdout=log, stderr=log,
                                 env=ctl.env()) as self.tecctl:
            wait_for(lambda: self.revive() or self.tecctl.poll() is not None, 120, "the end of tecctl")
            log.seek(0)
            said = log.read()
        assert self.killed == len(steps) and not self.todo, (victim, self.todo, said)
        return self.tecctl.returncode, said

    def revive(self):
        for one, other in ((self.source, self.target), (self.target, self.source)):
            if one.process.poll() is not None:
                assert one.process.returncode == -signal.SIGKILL, one.log()
                one.start()
                self.connect_again(other)

    def connect_again(self, one):
        """A follower goes on with its watches, and knows only with their next event, which may be a minute later, that
        its source is back. With another kubeconfig it lists; this is the same one."""
        if spine.read(one, NS, "secrets", "tec-follow"):
            spine.merge(one, NS, "secrets", "tec-follow",
                        {"metadata": {"annotations": {"again": str(time.monotonic())}}})

    def promote(self):
        """Again, by hand: it completes."""
        out = ctl.out(*self.args(lambda one: f"{one.dir}/kubeconfig"), timeout=120)
        assert lines(out) == ALL_DONE, out

    def swap(self):
        self.source, self.target = self.target, self.source

    def close(self):
        self.over.set()
        self.watcher.join(60)
        for gate in self.gates.values():
            gate.close()
        for one in self.started:
            if one.process.poll() is None:
                assert one.stop() == 0, one.log()


def noted(one):
    """{a Machine's uuid: the hash of the disk key that was made for it}"""
    hashes = {}
    for m in spine.items(one, NS, "mach"):
        uid, _, hashes[m["spec"]["id"]] = m["metadata"].get("annotations", {}).get(spine.KEY_SHA256, "").partition(" ")
        assert uid in ("", m["metadata"]["uid"]), "the mark of another Machine"
    return hashes


def same_keys(pair, keys, hashes, copied=True):
    """Nothing lost, changed or made twice, at either; not COPIED: the target may lack some."""
    for one in (pair.source, pair.target):
        has, marks = disk_keys(one), noted(one)
        if one is pair.target and not copied:
            assert has.items() <= keys.items(), one.dir
            assert {m for m in marks.items() if m[1]} <= set(hashes.items()), one.dir
        else:
            assert (has, marks) == (keys, hashes), one.dir
        for word in ("KeyLost", "Conflict", "DuplicateID"):
            assert word not in str(spine.items(one, NS, "mach")), word
    assert pair.faults == []


@pytest.fixture(scope="module")
def tpm():
    with softtpm.SoftwareTPM() as t:
        boot(t, "a")
        yield t


@pytest.fixture(name="make_pair")
def _make_pair(tmp_path):
    made = []

    def make():
        made.append(Pair(str(tmp_path)))
        approve_image(made[-1].source, "a")
        return made[-1]

    yield make
    for pair in made:
        pair.close()


class Kept:
    """Three nodes of a pair, and their keys as they were made."""

    def __init__(self, pair, tpm, key):
        self.pair, self.key = pair, key
        self.nodes = [Node(pair.source, tpm, f"ak{i}") for i in range(3)]
        self.keys, self.hashes = disk_keys(pair.source), noted(pair.source)
        assert len(self.keys) == 3
        assert self.hashes == {uuid: hashlib.sha256(base64.b64decode(data)).hexdigest()
                               for uuid, data in self.keys.items()}

    def holds(self):
        """At both clusters, and at both brokers."""
        same_keys(self.pair, self.keys, self.hashes)
        for node in self.nodes:
            for one in (self.pair.source, self.pair.target):
                opens_at(node, one, self.key, base64.b64decode(self.keys[node.uuid]))


@pytest.fixture(name="key")
def _key(tmp_path):
    return Jwk(str(tmp_path), {"kty": "EC", "crv": "P-256"}, "ECDH-ES+A256KW")


def handed_over(kept):
    """The command again: it completes."""
    pair = kept.pair
    pair.promote()
    kept.holds()
    assert [pair.decides(pair.cluster(one)) for one in (pair.source, pair.target)] == [False, True]
    pair.swap()


def test_the_target_killed_while_the_source_is_frozen(make_pair, tpm, key):
    pair = make_pair()
    kept = Kept(pair, tpm, key)
    pair.fresh_target()
    code, said = pair.promote_killed("target", CUT_AFTER, ["freeze"])
    assert code == 0, said
    handed_over(kept)


@pytest.mark.parametrize("victim", ["source", "target"])
@pytest.mark.parametrize("how", [CUT, CUT_AFTER], ids=["before", "after"])
def test_an_operator_killed_at_each_step(make_pair, tpm, key, victim, how):
    """One promotion, which tecctl ends when the operator is back each time."""
    pair = make_pair()
    kept = Kept(pair, tpm, key)
    pair.fresh_target()
    code, said = pair.promote_killed(victim, how, STEPS)
    assert code == 0, said
    same_keys(pair, kept.keys, kept.hashes)
    handed_over(kept)
    assert pair.looked > 20


def test_tecctl_killed_at_each_step(make_pair, tpm, key):
    """Each run goes on where the one before was killed."""
    pair = make_pair()
    kept = Kept(pair, tpm, key)
    for how in (CUT, CUT_AFTER):
        pair.fresh_target()
        for step in STEPS:
            code, said = pair.promote_killed("tecctl", how, [step])
            assert code == -signal.SIGKILL, said
            same_keys(pair, kept.keys, kept.hashes, copied=step != "follow")
        handed_over(kept)
    assert pair.looked > 20


def test_killed_while_1000_machines_are_copied(make_pair, tpm, key):
    """tecctl and the target while it copies them, and the target once more while the source is Frozen."""
    pair = make_pair()
    kept = Kept(pair, tpm, key)
    Nodes(pair.source, MANY, tls=ssl.create_default_context(cafile=pair.source.cafile)).run()
    pair.source.wait_for(lambda: len(disk_keys(pair.source)) == MANY + 3 and all(noted(pair.source).values()), 60,
                         "their keys")
    kept.keys, kept.hashes = disk_keys(pair.source), noted(pair.source)
    pair.fresh_target()
    with subprocess.Popen(ctl.argv(*pair.args(lambda one: f"{one.dir}/kubeconfig")), stdout=subprocess.DEVNULL,
                          stderr=subprocess.DEVNULL, env=ctl.env()) as first:
        wait_for(lambda: pair.target.log().count('msg="key copied"') >= MANY // 20, 60, "some copies", interval=0.01)
        first.kill()
        pair.target.process.kill()
        pair.target.process.wait()
    assert pair.target.log().count('msg="key copied"') < MANY, "the copy was over"
    pair.revive()
    code, said = pair.promote_killed("target", CUT_AFTER, ["freeze"])
    assert code == 0, said
    handed_over(kept)
