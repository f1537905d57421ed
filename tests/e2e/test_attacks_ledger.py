# SPDX-License-Identifier: MIT
"""What an attacker tries with what was deleted: a Trustee that is set back, an id that was handed out. Each on a
real API server under the rights of k8s/, one function or more per number, test_attack_NN_what. Each was seen to
fail on version 0.2.0."""

import time
import uuid as uuids

import pytest

import spine
from marks import Events, approve
from teckinds import made
from test_attacks import REGISTRATION_KEY, bring_key, fetched
from test_spine import settled
from trustee import Held, base64_of, fast_key, identity_name, resource_path

SENTINEL = "0.operator.generation"
REVOKED, IDS, FILE = "tec-revoked-0", "tec-deleted-ids", "deleted"
IDS_MAX = 4096
DAY_S = 86400
CREATED_BY = "trusted-execution-clusters.io/created-by"


# ---- 24


def set_back(world, before):
    """Trustee holds again what it held then, and its sentinel says so."""
    held = Held(before)
    for path, key in held.resources.items():
        got = world.kbs.ask("POST", f"/kbs/v0/resource/{path}", key)
        assert got.status == 200, got
    names = [*held.identities, SENTINEL, "trusted_aks"]
    world.kbs.set_values({name: held.values[name] for name in names if name in held.values})


def is_gone(world, uuid, pem):
    held = Held(world.kbs.dump())
    return (resource_path(uuid) not in held.resources and identity_name(pem) not in held.identities
            and base64_of(pem) not in held.values.get("trusted_aks", []))


def deleted(world, uuid, pem):
    spine.delete(world.cp, world.ns, "mach", f"machine-{uuid}")
    world.gone(uuid)
    world.until(lambda: is_gone(world, uuid, pem), "Trustee without the Machine's key")
    world.watcher.keys.pop(resource_path(uuid), None)  # another Machine with this id has another key
    world.until(lambda: not [s for s in spine.items(world.cp, world.ns, "secrets") if s["metadata"].get("finalizers")
                             and "deletionTimestamp" in s["metadata"]], "no Secret that waits")


@pytest.mark.parametrize("isolation", ["PerMachine", "Shared"])
def test_attack_24_a_trustee_that_was_set_back_keeps_no_revoked_key(make_world, isolation):
    """Who restores a backup of Trustee has the key of a deleted Machine again, for ever, as Trustee can list neither."""
    world = make_world(quirks=True).start(trustee={"keyIsolation": isolation})
    uuid, pem, _ = world.joined()
    other, _, _ = world.joined()
    world.rest()
    before = world.kbs.dump()
    deleted(world, uuid, pem)
    world.rest()
    world.op.restart()
    set_back(world, before)
    world.poke()
    world.until(lambda: is_gone(world, uuid, pem), "the revoked key gone again")
    world.rest()
    assert resource_path(other) in world.kbs.dump()["resources"] and world.ready(other)
    if isolation == "PerMachine":
        world.check(gone=[pem])
    settled(world.cp, world.ns)
    since = world.mark()
    world.op.restart()
    world.rest()
    assert not world.sent(since, "resource-delete") and not world.writes(since), "a restart repeats nothing"


def test_attack_24_what_is_wanted_again_stays(make_world):
    world = make_world().start()
    uuid, pem, _ = world.joined()
    deleted(world, uuid, pem)
    assert resource_path(uuid) in world.read("configmaps", REVOKED)["data"][FILE]
    made(world.cp, "mach", world.ns, {"id": uuid}, "again")
    spine.wait_condition(world.cp, world.ns, "mach", "again", "KeyReady", "KeyMade")  # the listener knows it
    assert spine.register(world.op, pem, uuid)[0] == 201
    world.ready_named("again")
    world.rest()
    world.kbs.set_values({SENTINEL: {"cluster": "another", "sum": "00"}})
    world.poke()
    world.rest()
    world.check()
    assert resource_path(uuid) in world.kbs.dump()["resources"] and world.kbs.has_value(identity_name(pem))


# ---- 26


def at_key(make_world, **registration):
    return make_world().start(registration={"machine": "AtKey", **registration})


def registered(world):
    """(uuid, pem) of a node whose key is delivered."""
    uuid, pem = fetched(world.op), fast_key()
    assert bring_key(world.op, pem, uuid)[0] == 201
    world.ready(uuid)
    return uuid, pem


def test_attack_26_the_id_of_a_deleted_machine_is_taken_no_more(make_world):
    """Its MAC is valid for a day: the node of a Machine that was deleted comes back with another key."""
    world = at_key(make_world)
    uuid, pem = registered(world)
    other = fetched(world.op)
    deleted(world, uuid, pem)
    for _ in range(2):
        status, answer = bring_key(world.op, fast_key(), uuid)
        assert status == 403 and "deleted" not in answer["message"], answer
        assert not world.read("mach", f"machine-{uuid}")
        world.op.restart()
    assert uuid in world.read("configmaps", IDS)["data"][FILE]
    assert "the Machine with this id was deleted" in world.op.log_text()
    assert bring_key(world.op, fast_key(), other)[0] == 201
    world.ready(other)


def test_attack_26_a_machine_that_goes_before_it_is_seen_is_known_too(make_world):
    """It has the finalizer from the start, so that no deletion escapes a controller that is away."""
    world = at_key(make_world)
    uuid = fetched(world.op)
    assert bring_key(world.op, fast_key(), uuid)[0] == 201
    spine.delete(world.cp, world.ns, "mach", f"machine-{uuid}")
    world.gone(uuid)
    assert bring_key(world.op, fast_key(), uuid)[0] == 403
    assert not world.read("mach", f"machine-{uuid}")


def test_attack_26_what_a_listener_that_lags_takes_is_not_approved(make_world):
    world = at_key(make_world)
    uuid, pem = registered(world)
    deleted(world, uuid, pem)
    made(world.cp, "mach", world.ns, {"id": uuid}, f"machine-{uuid}")
    spine.merge(world.cp, world.ns, "mach", f"machine-{uuid}",
                {"metadata": {"annotations": {CREATED_BY: "listener"}}})
    stranger = fast_key()
    assert bring_key(world.op, stranger, uuid)[0] == 201
    name = world.key_of(stranger)["metadata"]["name"]
    world.condition("ak", name, "Approved", "ManualApproval")
    settled(world.cp, world.ns)
    assert not world.kbs.has_value(identity_name(stranger))
    approve(world.cp, world.ns, name)
    world.condition("ak", name, "Approved", "ApprovedManually")


def handed_out_today(n):
    """Ids of the form that listeners hand out, of this epoch."""
    epoch = int(time.time()) // DAY_S % 1024
    for i in range(n):
        raw = bytearray(i.to_bytes(6, "big") + bytes(10))
        raw[6], raw[7], raw[8] = 0x80 | epoch >> 6, epoch << 2 & 0xff, 0x80
        yield str(uuids.UUID(bytes=bytes(raw)))


def test_attack_26_when_no_more_can_be_known_everything_handed_out_ends(make_world):
    world = at_key(make_world)
    before = [fetched(world.op) for _ in range(100)]
    first = world.read("secrets", REGISTRATION_KEY)["metadata"]["uid"]
    events = Events(world.cp, world.ns)
    text = "".join(f"{int(time.time())} id {i}\n" for i in handed_out_today(IDS_MAX))
    world.cp.apply([{"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": IDS, "namespace": world.ns},
                     "data": {FILE: text}}])

    def replaced():
        secret = world.read("secrets", REGISTRATION_KEY)
        return secret and secret["metadata"]["uid"] != first

    world.until(replaced, "another registration key")
    events.wait("tec", reason="RegistrationKeysReplaced")
    assert not world.read("secrets", f"{REGISTRATION_KEY}-previous")
    # A listener that does not know the new key yet makes a Machine: then its id is one that exists.
    world.until(lambda: bring_key(world.op, fast_key(), before.pop())[0] == 403, "the ids ended")
    settled(world.cp, world.ns)
    second = world.read("secrets", REGISTRATION_KEY)["metadata"]["uid"]
    assert bring_key(world.op, fast_key(), fetched(world.op))[0] == 201
    assert world.read("secrets", REGISTRATION_KEY)["metadata"]["uid"] == second, "once is enough"
