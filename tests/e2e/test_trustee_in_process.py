# SPDX-License-Identifier: MIT
"""The tables of test_trustee once more, with one process: the operator administers the key broker that it has in
itself (tec-operator --standalone). No request can be lost between them, so what is not asked here is what happens to lost
ones; instead the process is killed. What the broker holds is read from a copy of the operator's directory."""

import json
import os
import shutil
import signal
import subprocess

import pytest

import spine
from conftest import lacking
from controlplane import Unavailable
from kbs import kbs_binary
from standaloneplane import OWN_NAMESPACE, StandalonePlane
from teckinds import made
from tecproc import parse_metrics
from test_spine import owner_uids
# pylint: disable=unused-import
from test_trustee import (  # noqa: F401
    delivered, test_two_machines_never_share, test_what_an_admin_made)
from trustee import APPROVED, Held, World, base64_of, fast_key, identity_name, resource_path

SLOW = 20


class Rows:
    """The broker's side, as TestKbs shows it."""

    external = False

    def __init__(self, plane, directory):
        self.plane, self.copy = plane, os.path.join(str(directory), "copy")

    def dump(self):
        """The process stands still while its directory is copied: a checkpoint between two files would leave rows out."""
        shutil.rmtree(self.copy, ignore_errors=True)
        with self.plane.apiserver.stopped():
            shutil.copytree(self.plane.path("state"), self.copy)
        done = subprocess.run([kbs_binary("tec-test-rows"), self.copy], capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr
        return json.loads(done.stdout)

    def values(self):
        return Held(self.dump()).values

    def value(self, name):
        return self.values()[name]

    def has_value(self, name):
        return self.values().get(name) is not None


class Here(World):
    """A World whose operator, API server and broker are one process."""

    # pylint: disable=super-init-not-called
    def __init__(self, plane, directory):
        self.cp, self.ns, self.directory = plane, OWN_NAMESPACE, str(directory)
        self.kbs, self.op, self.watcher = Rows(plane, directory), plane, None
        self.revive = lambda: None

    def metrics(self):
        return parse_metrics(spine.request(self.cp.health_port, "GET", "/metrics")[2].decode())

    def puts(self, *verbs):
        """How many requests the operator has made of itself since it started."""
        return sum(n for name, n in self.metrics().items() if name.startswith("tec_trustee_requests_total")
                   and any(f'verb="{verb}"' in name for verb in verbs))

    def restart(self, signo=signal.SIGKILL):
        self.cp.apiserver.signal(signo)
        self.cp.apiserver.wait(20)
        self.cp.start_apiserver()
        self.synced()


@pytest.fixture
def world(tmp_path):
    if not os.access(kbs_binary("tec-test-rows"), os.X_OK):
        lacking(f"no {kbs_binary('tec-test-rows')}; next step: make")
    try:
        plane = StandalonePlane(str(tmp_path), args=["--listen-kbs=127.0.0.1:0", "--public-address=127.0.0.1", "--plain"])
    except Unavailable as e:
        lacking(str(e))
    with plane:
        w = Here(plane, tmp_path)
        spine.machine_at_request(plane, w.ns)
        w.synced()
        yield w
        plane.check()


@pytest.mark.parametrize("kind", ["rsa", "tpm"])
def test_register(world, request, kind):
    pem = spine.rsa_key() if kind == "rsa" else request.getfixturevalue("tpm").make_ak()
    uuid, _ = world.join(pem)
    delivered(world, uuid, pem)
    assert world.puts("resource-put") == 1
    with open(world.cp.apiserver.log, encoding="utf-8") as f:
        assert world.secret_root(uuid).decode() not in f.read()


def test_revoke_a_key(world):
    uuid, pem, _ = world.joined()
    other, other_pem, _ = world.joined()
    name = world.key_of(pem)["metadata"]["name"]
    spine.delete(world.cp, world.ns, "ak", name)
    world.until(lambda: not world.read("secrets", name), "the Secret released")
    assert not world.kbs.has_value(identity_name(pem)), "released before the broker confirmed"
    world.condition("mach", f"machine-{uuid}", "AttestationKeyBound", "NoApprovedKey")
    world.check(gone=[pem])
    delivered(world, other, other_pem)
    assert world.secret_root(uuid), "the disk key stays with its Machine"


def test_delete_a_machine(world):
    uuid, pem, _ = world.joined()
    other, other_pem, _ = world.joined()
    spine.delete(world.cp, world.ns, "mach", f"machine-{uuid}")
    world.gone(uuid)
    assert not world.kbs.has_value(identity_name(pem)), "the Machine went before its identity"
    assert resource_path(uuid) not in world.kbs.dump()["resources"], "the Machine went before its key"
    world.until(lambda: not world.key_of(pem) and not world.read("secrets", uuid), "the garbage gone")
    world.check(gone=[pem])
    delivered(world, other, other_pem)


def test_replaced_key(world):
    uuid, old, machine = world.joined()
    new = fast_key()
    made(world.cp, "ak", world.ns, {"publicKey": new, "uuid": uuid}, "second")
    world.condition("ak", "second", "Approved", "MachineHasKey")
    assert not world.kbs.has_value(identity_name(new))
    puts = world.puts("resource-put", "resource-delete")
    spine.merge(world.cp, world.ns, "ak", "second", {"metadata": {"annotations": {APPROVED: "true"}}})
    world.condition("ak", "second", "Delivered", "Delivered")
    assert owner_uids(world.read("ak", "second")) == [machine["metadata"]["uid"]]
    world.condition("ak", world.key_of(old)["metadata"]["name"], "Delivered", "NotApproved")
    assert world.puts("resource-put", "resource-delete") == puts, "the disk key is the same"
    world.ready(uuid)
    world.check(gone=[old])


@pytest.mark.parametrize("signo", [signal.SIGKILL, signal.SIGTERM], ids=["killed", "ended"])
def test_started_again_it_has_everything_and_sends_nothing(world, signo):
    uuid, pem, _ = world.joined()
    world.until(lambda: world.kbs.value("0.operator.generation")["sum"], "a clean sentinel")
    before = world.kbs.dump()
    world.restart(signo)
    delivered(world, uuid, pem)
    assert world.puts("resource-put", "refvalue-put", "resource-policy-put", "attestation-policy-put") == 0
    assert world.kbs.dump() == before


def test_killed_again_and_again_while_machines_come_and_go(world):
    """Whatever was answered is kept, and what is wanted is there in the end, byte for byte."""
    nodes = world.make_many(12)
    keys = {}
    for turn, uuid in enumerate(list(nodes)[:6]):
        spine.delete(world.cp, world.ns, "mach", f"machine-{uuid}")
        world.restart()
        held = Held(world.kbs.dump())
        for path, key in held.resources.items():
            assert keys.setdefault(path, key) == key, f"another key in turn {turn}"
        if held.resources:
            assert held.has_our_policies()
    kept = list(nodes)[6:]
    for uuid in kept:
        world.ready(uuid, SLOW)
    for uuid in list(nodes)[:6]:
        world.gone(uuid, SLOW)
    world.check(gone=[nodes[u] for u in list(nodes)[:6]])
    assert set(Held(world.kbs.dump()).resources) == {resource_path(u) for u in kept}


def test_shared_and_back(world):
    uuid, pem, _ = world.joined()
    other, other_pem, _ = world.joined()

    def isolation(value):
        spine.merge(world.cp, world.ns, "tec", "tec", {"spec": {"trustee": {"keyIsolation": value}}})

    isolation("Shared")
    world.until(lambda: world.kbs.value("trusted_aks") == sorted(map(base64_of, (pem, other_pem))), "one array")
    spine.delete(world.cp, world.ns, "mach", f"machine-{other}")
    world.gone(other)
    assert world.kbs.value("trusted_aks") == [base64_of(pem)]
    isolation("PerMachine")
    world.until(lambda: Held(world.kbs.dump()).has_our_policies() and world.kbs.value("trusted_aks") == [],
                "policies for each its own")
    delivered(world, uuid, pem)
