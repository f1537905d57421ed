# SPDX-License-Identifier: MIT
"""Delivery to Trustee by its admin API, on a real control plane: what is done to Machines and keys, and what
the broker holds then. The whole table runs against a real Trustee with TEC_TEST_KBS_URL (kbs.py)."""

import base64
import os
import time

import pytest

import spine
from kbsproxy import CUT
from kubeapi import describe
from marks import Account
from teckinds import made
from test_spine import owner_uids, settled
from trustee import APPROVED, PUTS, Held, fast_key, identity_name, resource_path
from trustees import whole_broker

REAL = "TEC_TEST_KBS_URL" in os.environ
SECRET_FINALIZER = spine.SECRET_FINALIZER
SENTINEL_S = 3  # after the last change it is written clean


@pytest.fixture(params=["real"] if REAL else ["honest", "quirks", "whole"])
def world(request, make_world, tmp_path):
    """whole: the broker as a standalone operator has it, which takes the operator's own policies alone, over HTTPS."""
    if request.param == "whole":
        return make_world(**whole_broker(tmp_path)).start()
    return make_world(quirks=request.param == "quirks").start()


def finalizers(obj):
    return (obj or {}).get("metadata", {}).get("finalizers", [])


def delivered(world, uuid, pem):
    """Conditions of all three kinds, and the content."""
    machine = world.ready(uuid)
    assert spine.condition(machine, "Delivered")["status"] == "True"
    assert spine.MACHINE_FINALIZER in finalizers(machine)
    name = world.key_of(pem)["metadata"]["name"]
    key = world.condition("ak", name, "Delivered", "Delivered")
    assert spine.condition(key, "Delivered")["status"] == "True"
    assert SECRET_FINALIZER in finalizers(world.read("secrets", name))
    assert spine.condition(world.synced(), "TrusteeSynced")["status"] == "True"
    world.check()


@pytest.mark.parametrize("kind", ["rsa", "tpm"])
def test_register(world, request, kind):
    pem = spine.rsa_key() if kind == "rsa" else request.getfixturevalue("tpm").make_ak()
    mark = world.mark()
    uuid, _ = world.join(pem)
    delivered(world, uuid, pem)
    # One request for the key. The identity's waits for the dirty sentinel's at most.
    puts = world.sent(mark, "resource-put")
    assert [s.body for s in puts] == [world.secret_root(uuid)], puts
    assert [identity_name(pem) in s.values() for s in world.sent(mark, "refvalue-put")].count(True) == 1
    assert world.secret_root(uuid).decode() not in world.op.log_text()


def test_what_an_admin_made(world):
    uuid, pem = spine.new_uuid(), fast_key()
    made(world.cp, "mach", world.ns, {"id": uuid}, f"machine-{uuid}")
    made(world.cp, "ak", world.ns, {"publicKey": pem, "uuid": uuid}, "an-admins")
    delivered(world, uuid, pem)
    assert spine.condition(world.read("ak", "an-admins"), "Approved")["reason"] == "MachineCreated"


def test_revoke_a_key(world):
    uuid, pem, _ = world.joined()
    other, other_pem, _ = world.joined()
    name = world.key_of(pem)["metadata"]["name"]
    world.proxy.on(CUT, "refvalue-put", times=None)
    mark = world.mark()
    spine.delete(world.cp, world.ns, "ak", name)
    world.until(lambda: world.sent(mark, "refvalue-put"), "the revocation")
    secret = world.until(lambda: world.read("secrets", name), "the Secret")
    assert SECRET_FINALIZER in finalizers(secret), "released before Trustee confirmed"
    assert world.kbs.has_value(identity_name(pem))
    world.condition("mach", f"machine-{uuid}", "AttestationKeyBound", "NoApprovedKey")
    world.condition("tec", "tec", "TrusteeSynced", "NotAvailable")
    world.proxy.clear()
    world.poke()
    world.until(lambda: not world.read("secrets", name), "the Secret released")
    world.synced()
    world.check(gone=[pem])
    delivered(world, other, other_pem)
    assert world.secret_root(uuid), "the disk key stays with its Machine"


@pytest.mark.parametrize("held_up", ["resource-delete", "refvalue-put"])
def test_delete_a_machine(world, held_up):
    """Key and identity are revoked side by side; either may be the later one. Not so when nothing has changed for
    three seconds: the key waits then until a value, which is held up, says that something will."""
    uuid, pem, _ = world.joined()
    other, other_pem, _ = world.joined()
    name, key = f"machine-{uuid}", world.secret_root(uuid)
    world.proxy.on(CUT, held_up, times=None)
    mark = world.mark()
    spine.delete(world.cp, world.ns, "mach", name)
    # The second time it was tried, the answer about the other one is long there.
    world.until(lambda: world.sent(mark, held_up) and len(world.sent(mark, "refvalue-get")) > 1, "the revocation")
    machine = world.condition("mach", name, "Delivered", "Revoking")
    assert spine.MACHINE_FINALIZER in finalizers(machine)
    assert world.cluster["spec"]["publicTrusteeAddr"] in spine.condition(machine, "Delivered")["message"]
    assert world.secret_root(uuid) == key
    world.proxy.clear()
    world.poke()
    world.until(lambda: not world.read("mach", name), "the Machine gone")
    if world.watcher:
        world.watcher.revoked |= {identity_name(pem), uuid}
    assert not world.kbs.has_value(identity_name(pem)), "the Machine went before its identity"
    if not world.kbs.external:
        assert resource_path(uuid) not in world.kbs.dump()["resources"], "the Machine went before its key"
    world.until(lambda: not world.key_of(pem) and not world.read("secrets", uuid), "the garbage gone")
    world.synced()
    world.check(gone=[pem])
    delivered(world, other, other_pem)


def test_trustee_lost_everything(world):
    world.kbs.needs_control()
    nodes = [world.joined()[:2] for _ in range(3)]
    world.rest()
    mark = world.mark()
    world.kbs.kill()
    world.kbs.start()
    world.poke()
    world.until(lambda: len(world.kbs.dump()["resources"]) == 3, "the keys again")
    world.rest()
    world.check()
    verbs = [s.verb for s in world.sent(mark)]
    # The dirty sentinel, the policies, the values once it is known that the store is still the same, the keys.
    assert verbs[:6] == ["refvalue-get", "refvalue-put", "resource-policy-put", "attestation-policy-put",
                         "refvalue-get", "refvalue-put"], verbs
    assert verbs.count("resource-put") == 3 and verbs.index("resource-put") == 6, verbs
    # The cluster says Populating and Synced. What a Machine was told stays true enough not to be written.
    changed = [e for e in world.writes(mark) if e["objectRef"]["resource"] != "trustedexecutionclusters"]
    assert len(changed) <= 2 * 2 * len(nodes) and len(world.writes(mark)) - len(changed) <= 4, \
        describe(world.writes(mark))
    read = [e for e in world.cp.requests_by(world.account, mark[1]) if e["verb"] in ("get", "list")
            and e["objectRef"]["resource"] not in ("leases",)]
    assert read == [], describe(read)
    for uuid, pem in nodes:
        delivered(world, uuid, pem)


def test_trustee_was_away_and_kept_its_store(world):
    world.joined()
    world.rest()
    mark = world.mark()
    world.proxy.refuse()
    world.poke()
    world.condition("tec", "tec", "TrusteeSynced", "NotAvailable")
    world.proxy.listen()
    world.poke()
    world.synced()
    assert world.sent(mark, *PUTS) == []
    assert 1 <= len(world.sent(mark, "refvalue-get")) <= 3, "a probe, and those while time went by"
    world.check()


def test_operator_killed(world):
    uuid, pem, _ = world.joined()
    world.rest()
    mark = world.mark()
    world.op.kill9()
    world.op.start()
    world.until(lambda: world.sent(mark, "refvalue-get"), "a probe")
    delivered(world, uuid, pem)
    time.sleep(SENTINEL_S + 1)  # nor later: a sentinel that looked wrong would be written now
    assert [s.verb for s in world.sent(mark)] == ["refvalue-get"]
    # It counts as unknown until the probe: the cluster may say so, and take it back.
    wrote = world.writes(mark)
    assert len(wrote) <= 2 and all(e["objectRef"]["resource"] == "trustedexecutionclusters" for e in wrote), \
        describe(wrote)


def test_replaced_key(world):
    uuid, old, machine = world.joined()
    new = fast_key()
    made(world.cp, "ak", world.ns, {"publicKey": new, "uuid": uuid}, "second")
    world.condition("ak", "second", "Approved", "MachineHasKey")
    assert not world.kbs.has_value(identity_name(new))
    mark = world.mark()
    spine.merge(world.cp, world.ns, "ak", "second", {"metadata": {"annotations": {APPROVED: "true"}}})
    world.condition("ak", "second", "Delivered", "Delivered")
    assert owner_uids(world.read("ak", "second")) == [machine["metadata"]["uid"]]
    world.condition("ak", world.key_of(old)["metadata"]["name"], "Delivered", "NotApproved")
    said = [(n, v is not None) for s in world.sent(mark, "refvalue-put") for n, v in s.values().items()
            if n.startswith("ak.")]
    assert said == [(identity_name(old), False), (identity_name(new), True)], said
    first, second = (next(s.n for s in world.sent(mark, "refvalue-put") if identity_name(p) in s.values())
                     for p in (old, new))
    assert first < second, "both in one message: the old one is not confirmed gone before the new one is there"
    assert not world.sent(mark, "resource-put", "resource-delete"), "the disk key is the same"
    world.ready(uuid)
    world.check(gone=[old])


def test_two_machines_never_share(world):
    """What the broker would hand out to whom: each identity opens its own Machine's key only."""
    nodes = dict(world.joined()[:2] for _ in range(2))
    for uuid, pem in nodes.items():
        assert world.kbs.value(identity_name(pem))[0]["machine"] == uuid
    assert len({base64.b64encode(world.secret_root(uuid)) for uuid in nodes}) == 2
    world.check()


def test_a_secret_in_place_of_a_delivered_key(make_world):
    """The disk's Secret is deleted while the operator is down, and somebody else's is there when it comes back:
    neither is that one delivered, nor is a key made when it is gone again."""
    world = make_world().start()
    planter = Account(world.cp, world.ns, "planter", "create")
    uuid, _, machine = world.joined()
    world.op.terminate()
    spine.delete(world.cp, world.ns, "secrets", uuid)
    root = '{"key_type":"oct","key":"%s"}' % ("A" * 32)
    planted = planter.plant(machine, root)
    world.op.start()
    machine = world.until(lambda: (m := world.read("mach", f"machine-{uuid}")) and
                          spine.condition(m, "KeyReady")["status"] == "False" and m, "word of it")
    assert spine.condition(machine, "KeyReady")["reason"] in ("Conflict", "KeyMalformed")
    settled(world.cp, world.ns)
    assert root.encode() not in Held(world.kbs.dump()).resources.values()
    assert world.read("secrets", uuid)["metadata"]["resourceVersion"] == planted["metadata"]["resourceVersion"]
    spine.delete(world.cp, world.ns, "secrets", uuid)
    world.condition("mach", f"machine-{uuid}", "KeyReady", "KeyLost")
    settled(world.cp, world.ns)
    assert not world.secret_root(uuid), "a key was made for a disk that has one"
