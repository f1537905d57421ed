# SPDX-License-Identifier: MIT
"""What an attacker tries, each on a real API server under the rights of k8s/: one function or more per
number, test_attack_NN_what. Each was seen to fail on version 0.1.0."""

import threading
import time

import pytest

import spine
from faultproxy import CUT, CUT_AFTER, Answer, FaultProxy
from marks import (ANNOUNCED, APPROVED, APPROVED_AT, APPROVED_BY, APPROVED_SPKI, BOUND_AT, BOUND_KEY, DELIVERED_AT,
                   HASHES_MAX, Account, Events, announced, approve, is_delivered, mark, sha256)
from teckinds import made
from test_spine import owner_uids, settled
from trustee import fast_key, identity_name, resource_path
from trustees import owner_reference

NOW = "2026-01-02T03:04:05Z"


def planted_key(text="planted"):
    """A disk key of the right form that somebody else knows."""
    return '{"key_type":"oct","key":"%s"}' % text.ljust(32, "A")


def approved(world, name):
    return spine.condition(world.read("ak", name), "Approved").get("status")


def never_in_broker(world, root):
    """Neither now nor at any time since the start."""
    assert root.encode() not in world.watcher.keys.values(), "Trustee held somebody else's disk key"


@pytest.fixture(name="proxied_world")
def _proxied_world(make_world, cp, ns, tmp_path):
    """(World that is not started, FaultProxy between its operator and the API server)."""
    proxy = FaultProxy(cp.service_account_kubeconfig(ns, "tec-operator"), str(tmp_path))
    yield make_world(), proxy
    proxy.close()


class Killed:
    """Life after life: the operator ends at the N-th write to the API server of its N-th life, before the
    server saw it or before the operator saw the answer. look() is called while it is dead."""

    def __init__(self, world, proxy, fate, look):
        self.world, self.proxy, self.fate, self.look = world, proxy, fate, look
        self.lives, self.ended = 1, threading.Event()
        self.target = proxy.writes + 1
        proxy.rule, proxy.on_cut, world.revive = self._rule, self._kill, self.revive

    def _rule(self, request):
        return self.fate if request.write and request.write == self.target else None

    def _kill(self):
        self.world.op.proc.popen.kill()
        self.ended.set()

    def revive(self):
        if not self.ended.is_set():
            return
        self.world.op.proc.wait(5)
        self.ended.clear()
        self.look()
        self.lives += 1
        self.target = self.proxy.writes + self.lives
        self.world.op.start(wait_ready=False)

    def end(self):
        """Nobody is killed any more."""
        self.proxy.rule = lambda request: None
        self.revive()
        self.world.op.wait_ready()
        self.world.rest()
        settled(self.world.cp, self.world.ns)


# ---- 1

def waiting_key(world, uuid):
    """(PEM, name) of a stranger's key that waits beside the one that holds the Machine."""
    pem = fast_key()
    assert spine.register(world.op, pem, uuid)[0] == 201
    name = world.key_of(pem)["metadata"]["name"]
    world.condition("ak", name, "Approved", "MachineHasKey")
    return pem, name


def only_waits(world, pem):
    """The key of a stranger got nothing, and is told how it would."""
    name = world.key_of(pem)["metadata"]["name"]
    settled(world.cp, world.ns)
    ak = world.read("ak", name)
    told = spine.condition(ak, "Approved")
    assert told["status"] == "False", told
    assert f"{APPROVED}=true" in told["message"], told
    assert not owner_uids(ak) and not world.read("secrets", name)
    assert not world.kbs.has_value(identity_name(pem)), "a stranger's identity is in Trustee"


@pytest.mark.parametrize("when", ["running", "down"])
def test_attack_01_a_waiting_key_when_the_first_is_deleted(make_world, when):
    """Whoever has the disk knows the uuid, and may have a key waiting."""
    world = make_world().start()
    uuid, pem, _ = world.joined()
    disk, first = world.secret_root(uuid), world.key_of(pem)["metadata"]["name"]
    stranger, name = waiting_key(world, uuid)
    events = Events(world.cp, world.ns)
    if when == "down":
        world.op.terminate()
    spine.delete(world.cp, world.ns, "ak", first)
    if when == "down":
        world.op.start()
    world.until(lambda: not world.kbs.has_value(identity_name(pem)), "the identity gone")
    only_waits(world, stranger)
    # What is gone is named by its hash, which a listener's name begins with.
    events.wait(first.removeprefix("ak-"), name)
    world.op.restart()
    only_waits(world, stranger)

    approve(world.cp, world.ns, name)
    world.condition("ak", name, "Approved", "ApprovedManually")
    world.condition("ak", name, "Delivered", "Delivered")
    world.ready(uuid)
    assert world.secret_root(uuid) == disk
    world.check(gone=[pem])


def test_attack_01_a_key_that_comes_after_the_delete(make_world):
    world = make_world().start()
    uuid, pem, _ = world.joined()
    spine.delete(world.cp, world.ns, "ak", world.key_of(pem)["metadata"]["name"])
    world.until(lambda: not world.kbs.has_value(identity_name(pem)), "the identity gone")
    stranger = fast_key()
    assert spine.register(world.op, stranger, uuid)[0] == 201
    only_waits(world, stranger)
    made(world.cp, "ak", world.ns, {"publicKey": fast_key(), "uuid": uuid}, "through-the-api")
    settled(world.cp, world.ns)
    assert approved(world, "through-the-api") == "False"


# ---- 2

def not_probes(world, since):
    """What Trustee was asked since a mark(), without the question whether it still holds everything."""
    return [s for s in world.sent(since) if s.verb != "refvalue-get"]


def test_attack_02_an_anonymous_get_costs_trustee_nothing(make_world):
    """Stock Trustee tells everybody which paths were written, so a written path is an id without a key."""
    world = make_world().start()
    world.rest()
    since = world.mark()
    uuids = [spine.first_boot(world.op) for _ in range(3)]
    for uuid in uuids:
        world.condition("mach", f"machine-{uuid}", "KeyReady", "KeyMade")
    settled(world.cp, world.ns)
    time.sleep(1)
    assert not_probes(world, since) == []
    assert world.kbs.dump()["resources"] == {}

    pem = fast_key()
    assert spine.register(world.op, pem, uuids[1])[0] == 201
    world.ready(uuids[1])
    assert list(world.kbs.dump()["resources"]) == [resource_path(uuids[1])]
    world.check()


@pytest.mark.parametrize("isolation", ["PerMachine", "Shared"])
def test_attack_02_nothing_is_delivered_without_its_mark(proxied_world, isolation):
    """The Machine says that its key was delivered before Trustee sees it: of what is not marked a new key
    may be made."""
    world, proxy = proxied_world
    world.start(kubeconfig=proxy.kubeconfig, trustee={"keyIsolation": isolation})
    world.rest()
    uuid = spine.new_uuid()
    refused = []

    def rule(request):
        if request.method == "PATCH" and request.target.split("?")[0].endswith(f"/machines/m-{uuid}"):
            machine = spine.read(world.cp, world.ns, "mach", f"m-{uuid}")
            if world.secret_root(uuid) and not is_delivered(machine):
                refused.append(request.target)
                return Answer(500, "InternalError")
        return None

    proxy.rule = rule
    made(world.cp, "mach", world.ns, {"id": uuid}, f"m-{uuid}")
    world.until(lambda: world.secret_root(uuid), "the key")
    if isolation == "PerMachine":
        made(world.cp, "ak", world.ns, {"publicKey": fast_key(), "uuid": uuid}, "its-key")
    world.until(lambda: len(refused) >= 2, "the mark, again and again", 30)
    assert resource_path(uuid) not in world.kbs.dump()["resources"]
    proxy.rule = lambda request: None
    world.until(lambda: resource_path(uuid) in world.kbs.dump()["resources"], "the key in Trustee", 60)
    machine = world.read("mach", f"m-{uuid}")
    assert is_delivered(machine)
    assert bool(mark(machine, DELIVERED_AT)) == (isolation == "Shared")


def test_attack_02_shared_keeps_its_order(make_world):
    """The key is in Trustee before the node registers: what the Rust operator does, and Shared promises."""
    world = make_world().start(trustee={"keyIsolation": "Shared"})
    uuid = spine.first_boot(world.op)
    world.until(lambda: resource_path(uuid) in world.kbs.dump()["resources"], "the key in Trustee")
    machine = world.read("mach", f"machine-{uuid}")
    assert mark(machine, DELIVERED_AT) and not mark(machine, BOUND_KEY)
    # A key that was delivered is not made anew, bound or not.
    world.op.terminate()
    spine.delete(world.cp, world.ns, "secrets", uuid)
    world.op.start()
    world.condition("mach", f"machine-{uuid}", "KeyReady", "KeyLost")
    settled(world.cp, world.ns)
    assert not world.secret_root(uuid)


# ---- 3

def conflict(world, name, uuid):
    """The Machine says so, with what to do."""
    machine = world.condition("mach", name, "KeyReady", "Conflict")
    told = spine.condition(machine, "KeyReady")
    assert told["status"] == "False"
    assert f"kubectl delete secret {uuid}" in told["message"], told
    assert spine.condition(machine, "Ready")["status"] == "False"


@pytest.mark.parametrize("when", ["down", "between"])
def test_attack_03_planted_key_of_a_new_machine(proxied_world, when):
    """By an account that may create Secrets and nothing else: while the operator is down, and in the moment
    before its own create."""
    world, proxy = proxied_world
    world.start(kubeconfig=proxy.kubeconfig)
    planter = Account(world.cp, world.ns, "planter", "create")
    uuid, root, planted = spine.new_uuid(), planted_key(), []

    def rule(request):
        if request.method == "POST" and request.target.split("?")[0].endswith("/secrets") and not planted:
            planted.append(planter.plant(spine.read(world.cp, world.ns, "mach", "m"), root))

    if when == "down":
        world.op.terminate()
        planted.append(planter.plant(made(world.cp, "mach", world.ns, {"id": uuid}, "m"), root))
        world.op.start()
    else:
        proxy.rule = rule
        made(world.cp, "mach", world.ns, {"id": uuid}, "m")
    conflict(world, "m", uuid)
    made(world.cp, "ak", world.ns, {"publicKey": fast_key(), "uuid": uuid}, "its-key")
    settled(world.cp, world.ns)
    world.op.restart()
    settled(world.cp, world.ns)
    conflict(world, "m", uuid)
    secret = world.read("secrets", uuid)
    assert secret["metadata"]["resourceVersion"] == planted[0]["metadata"]["resourceVersion"], "it was touched"
    assert resource_path(uuid) not in world.kbs.dump()["resources"]

    spine.delete(world.cp, world.ns, "secrets", uuid)
    world.condition("mach", "m", "KeyReady", "KeyMade")
    world.ready_named("m")
    key = world.secret_root(uuid)
    assert key != root.encode() and sha256(key) in announced(world.read("mach", "m"))
    never_in_broker(world, root)
    world.check()


@pytest.mark.parametrize("when", ["before", "after"])
def test_attack_03_killed_at_every_write(proxied_world, when):
    """From the first request of a node to its delivery: what is made was announced, what is in Trustee is
    marked, no key changes and none is lost."""
    world, proxy = proxied_world
    world.start(kubeconfig=proxy.kubeconfig)
    world.rest()
    held = {}

    def look():
        in_trustee = world.kbs.dump()["resources"]
        for machine in spine.items(world.cp, world.ns, "mach"):
            uuid = machine["spec"]["id"]
            key = world.secret_root(uuid)
            assert len(announced(machine)) <= HASHES_MAX
            if key:
                assert sha256(key) in announced(machine), "a key that nobody announced"
                assert held.setdefault(uuid, key) == key, "the key changed"
            if resource_path(uuid) in in_trustee:
                assert is_delivered(machine) and key, "delivered without the mark"

    killed = Killed(world, proxy, CUT if when == "before" else CUT_AFTER, look)
    for _ in range(2):
        uuid, _ = world.join()
        world.ready(uuid, timeout=60)
    killed.end()
    look()
    assert killed.lives >= 4, f"{killed.lives} lives only"
    world.check()


def test_attack_03_a_key_never_delivered_is_made_again(make_world):
    """No mark and no Secret: nobody can have encrypted a disk with it."""
    world = make_world().start()
    uuid = spine.first_boot(world.op)
    name = f"machine-{uuid}"
    world.condition("mach", name, "KeyReady", "KeyMade")
    first = world.secret_root(uuid)
    world.op.terminate()
    spine.delete(world.cp, world.ns, "secrets", uuid)
    world.op.start()
    key = world.until(lambda: world.secret_root(uuid), "another key")
    assert key != first
    world.condition("mach", name, "KeyReady", "KeyMade")
    machine = world.read("mach", name)
    assert announced(machine) == [sha256(first), sha256(key)]
    assert spine.register(world.op, fast_key(), uuid)[0] == 201
    world.ready(uuid)
    world.check()


def forged(uid, root):
    """What a creator may write, with the uid of another object or none: as 0.1.0 wrote it."""
    begin = f"{uid} " if uid else ""
    return {ANNOUNCED: begin + sha256(root.encode()), BOUND_AT: begin + NOW, DELIVERED_AT: begin + NOW,
            BOUND_KEY: f"{begin}{spine.new_uuid()} {sha256(b'spki')}"}


@pytest.mark.parametrize("uid", ["none", "another"])
def test_attack_03_marks_forged_at_create(make_world, uid):
    """They neither make a key that was never made count as lost, nor keep its first key waiting."""
    world = make_world().start()
    _, _, other = world.joined()
    uuid, root = spine.new_uuid(), planted_key("forged")
    made(world.cp, "mach", world.ns, {"id": uuid}, "m",
         annotations=forged(other["metadata"]["uid"] if uid == "another" else None, root))
    world.condition("mach", "m", "KeyReady", "KeyMade")
    assert spine.register(world.op, fast_key(), uuid)[0] == 201
    world.ready_named("m")
    machine = world.read("mach", "m")
    assert announced(machine) == [sha256(world.secret_root(uuid))]
    assert all(mark(machine, a) for a in (BOUND_AT, BOUND_KEY))
    world.check()


def test_attack_03_a_forged_hash_adopts_nothing(make_world):
    """The creator of a Machine announces what he plants."""
    world = make_world().start()
    planter = Account(world.cp, world.ns, "planter", "create")
    uuid, root = spine.new_uuid(), planted_key("forged")
    world.op.terminate()
    machine = made(world.cp, "mach", world.ns, {"id": uuid}, "m", annotations=forged(None, root))
    planter.plant(machine, root)
    world.op.start()
    conflict(world, "m", uuid)
    made(world.cp, "ak", world.ns, {"publicKey": fast_key(), "uuid": uuid}, "its-key")
    settled(world.cp, world.ns)
    never_in_broker(world, root)
    assert resource_path(uuid) not in world.kbs.dump()["resources"]


def test_attack_03_an_id_is_the_oldests(make_world):
    """Neither forged marks nor the owner of a planted Secret take it from him."""
    world = make_world().start()
    planter = Account(world.cp, world.ns, "planter", "create")
    uuid, root = spine.new_uuid(), planted_key("forged")
    world.op.terminate()
    made(world.cp, "mach", world.ns, {"id": uuid}, "older")
    time.sleep(1.1)  # creationTimestamp has whole seconds
    younger = made(world.cp, "mach", world.ns, {"id": uuid}, "younger", annotations=forged(None, root))
    planter.plant(younger, root)
    world.op.start()
    world.condition("mach", "younger", "KeyReady", "DuplicateID")
    conflict(world, "older", uuid)
    spine.delete(world.cp, world.ns, "secrets", uuid)
    world.condition("mach", "older", "KeyReady", "KeyMade")
    assert owner_uids(world.read("secrets", uuid)) == [world.read("mach", "older")["metadata"]["uid"]]
    never_in_broker(world, root)


def test_attack_03_two_operators_bind_one_key(make_world, start_operator):
    """Each sees another key first, neither knows of the other: bound-key decides."""
    world = make_world().start()
    start_operator(world.ns, "--leader-elect=false", "--kbs-url", world.proxy.url)
    for n in range(4):
        uuid = spine.new_uuid()
        made(world.cp, "mach", world.ns, {"id": uuid}, f"m{n}")
        world.condition("mach", f"m{n}", "KeyReady", "KeyMade")
        pems = [fast_key() for _ in range(2)]
        both = [threading.Thread(target=made, args=(
            world.cp, "ak", world.ns, {"publicKey": pem, "uuid": uuid}, f"k{n}-{i}")) for i, pem in enumerate(pems)]
        for thread in both:
            thread.start()
        for thread in both:
            thread.join()
        world.ready_named(f"m{n}")
        settled(world.cp, world.ns)
        assert sorted(approved(world, f"k{n}-{i}") for i in range(2)) == ["False", "True"]
        assert sum(world.kbs.has_value(identity_name(pem)) for pem in pems) == 1
        (winner,) = (i for i in range(2) if approved(world, f"k{n}-{i}") == "True")
        bound = mark(world.read("mach", f"m{n}"), BOUND_KEY)
        assert bound.split()[0] == world.read("ak", f"k{n}-{winner}")["metadata"]["uid"]


# ---- 4

def says_ignored(text, name):
    """What is so, then what to do."""
    so = text.find("approved=true was set when the key was created and does not count. Set it again:")
    return so >= 0 and f"kubectl annotate attestationkey {name} " in text[so:] and f"{APPROVED}=true" in text[so:]


def ignored(world, name, events):
    """The annotation is off, condition and Event say why and what to do."""
    def told():
        ak = world.read("ak", name)
        return ak if says_ignored(spine.condition(ak, "Approved").get("message", ""), name) else None

    ak = world.until(told, "the word that the annotation does not count")
    assert spine.condition(ak, "Approved")["status"] == "False"
    assert APPROVED not in ak["metadata"].get("annotations", {})
    assert says_ignored(events.wait(name, reason="ApprovalIgnored")["note"], name)


@pytest.mark.parametrize("when", ["running", "down"])
def test_attack_04_approved_when_created(make_world, when):
    """By tec-listener's own account, which may create AttestationKeys."""
    world = make_world().start()
    listener = Account(world.cp, world.ns, "tec-listener")
    uuid, pem, machine = world.joined()
    disk, stranger, events = world.secret_root(uuid), fast_key(), Events(world.cp, world.ns)
    if when == "down":
        world.op.terminate()
    listener.post_key("stranger", stranger, uuid, annotations={APPROVED: "true"})
    if when == "down":
        world.op.start()
    ignored(world, "stranger", events)
    settled(world.cp, world.ns)
    assert approved(world, "stranger") == "False" and not owner_uids(world.read("ak", "stranger"))
    assert identity_name(stranger) not in world.watcher.seen_identities(), "it was in Trustee"
    world.ready(uuid)
    assert owner_uids(world.key_of(pem)) == [machine["metadata"]["uid"]]
    world.check()

    approve(world.cp, world.ns, "stranger")
    world.condition("ak", "stranger", "Approved", "ApprovedManually")
    world.until(lambda: world.kbs.has_value(identity_name(stranger)), "the identity")
    world.until(lambda: not world.kbs.has_value(identity_name(pem)), "the end of the one before")
    assert world.secret_root(uuid) == disk
    world.check(gone=[pem])


def test_attack_04_where_only_people_approve(make_world):
    world = make_world().start(registration={"approval": "Manual"})
    listener, events = Account(world.cp, world.ns, "tec-listener"), Events(world.cp, world.ns)
    uuid, pem = spine.first_boot(world.op), fast_key()
    listener.post_key("first", pem, uuid, annotations={APPROVED: "true"})
    ignored(world, "first", events)
    settled(world.cp, world.ns)
    assert approved(world, "first") == "False" and not world.kbs.has_value(identity_name(pem))
    approve(world.cp, world.ns, "first")
    world.condition("ak", "first", "Approved", "ApprovedManually")
    world.ready(uuid)


@pytest.mark.parametrize("when", ["before", "after"])
def test_attack_04_killed_at_every_write(proxied_world, when):
    """Between taking the annotation off and saying so, too."""
    world, proxy = proxied_world
    world.start(kubeconfig=proxy.kubeconfig)
    listener, events = Account(world.cp, world.ns, "tec-listener"), Events(world.cp, world.ns)
    uuid, pem, _ = world.joined()
    world.rest()
    names = [f"stranger-{n}" for n in range(3)]

    def look():
        assert [n for n in names if world.read("ak", n) and approved(world, n) == "True"] == []

    killed = Killed(world, proxy, CUT if when == "before" else CUT_AFTER, look)
    for name in names:
        listener.post_key(name, fast_key(), uuid, annotations={APPROVED: "true"})
        world.until(lambda name=name: APPROVED not in world.read("ak", name)["metadata"].get("annotations", {})
                    and approved(world, name) == "False", "the annotation off", 60)
    killed.end()
    look()
    assert killed.lives >= 2
    assert events.named(reason="ApprovalIgnored")
    assert world.kbs.has_value(identity_name(pem))
    world.ready(uuid)


@pytest.mark.parametrize("when", ["running", "down"])
def test_attack_04_owner_and_marks_prove_nothing(make_world, when):
    """A key that comes with the Machine as its owner and with all marks of an approval."""
    world = make_world().start()
    listener = Account(world.cp, world.ns, "tec-listener")
    uuid, pem, machine = world.joined()
    owner = {**owner_reference(machine), "blockOwnerDeletion": False}
    if when == "down":
        world.op.terminate()
    strangers = {}
    for name, begin in (("bare", ""), ("of-the-machine", machine["metadata"]["uid"] + " ")):
        strangers[name] = fast_key()
        listener.post_key(name, strangers[name], uuid, ownerReferences=[owner], annotations={
            APPROVED_AT: f"{begin}2026-01-02T03:04:05.000000Z", APPROVED_BY: f"{begin}admin",
            APPROVED_SPKI: begin + sha256(b"spki")})
    if when == "down":
        world.op.start()
    for name, stranger in strangers.items():
        world.until(lambda name=name: approved(world, name) == "False", f"word about {name}")
        settled(world.cp, world.ns)
        assert approved(world, name) == "False"
        assert identity_name(stranger) not in world.watcher.seen_identities(), "it was in Trustee"
    world.ready(uuid)
    assert world.kbs.has_value(identity_name(pem))


# ---- 5


# ---- 6


# ---- 7


# ---- 8


# ---- 9


# ---- 10


# ---- 11


# ---- 12


# ---- 13


# ---- 14
