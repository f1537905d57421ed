# SPDX-License-Identifier: MIT
"""Version 0.1.0, or the Rust operator, is taken away and this one put in its place, with many Machines: every disk
key stays, nobody gets one who had none, and what came later than this operator is nobody's word for it.

The objects are made as those left them, before the first start, so that they are older than ConfigMap
tec-operator-since; creationTimestamp has whole seconds."""

import base64
import collections
import datetime
import json
import secrets
import subprocess
import time
from concurrent.futures import ThreadPoolExecutor

import pytest

import spine
import trustees
from kubeapi import describe
from marks import ANNOUNCED, APPROVED_AT, BOUND_AT, BOUND_KEY, DELIVERED_AT, announced, approve, mark, sha256
from teckinds import GROUP, made
from test_spine import account, owner_uids, settled
from trustee import fast_key, resource_path
from trustees import Node, owner_reference, synced

start_place = trustees.start_place
SINCE = "tec-operator-since"
ADOPT_BEFORE = f"{GROUP}/adopt-before"
CREATED_BY = f"{GROUP}/created-by"
LONG_AGO = "2026-01-02T03:04:05Z"
MANY = 1000
AT_ONCE = 8
WRITES_EACH = 8
OURS, RUST = "0.1.0", "rust"


def b64(text):
    return base64.b64encode(text.encode()).decode()


def conditions(*reasons):
    """TYPE=REASON, all True."""
    return {"conditions": [{"type": type_, "status": "True", "reason": reason, "message": "A sentence.",
                            "lastTransitionTime": LONG_AGO, "observedGeneration": 1}
                           for type_, reason in (r.split("=") for r in reasons)]}


class Earlier:
    """A namespace as the operator BEFORE leaves it, whose Trustee has the admin key of PLACE."""

    def __init__(self, cp, ns, place, before):
        self.cp, self.ns, self.place, self.before = cp, ns, place, before
        self.cluster = spine.make_cluster(cp, ns)
        self.labels = {"app.kubernetes.io/managed-by": "tec-operator"} if before == OURS else {}
        self.secret("trustee-auth", self.cluster, {"private.key": trustees.text_of(place.kbs.private),
                                                   "public.pub": trustees.text_of(place.kbs.public)})

    def secret(self, name, owner, data, **meta):
        status, answer = self.cp.api("POST", spine.path_of(self.ns, "secrets"), {
            "metadata": {"name": name, "labels": self.labels, "ownerReferences": [owner_reference(owner)], **meta},
            "type": "Opaque", "data": {member: b64(text) for member, text in data.items()},
            **({"immutable": True} if "root" in data and self.before == OURS else {})})
        assert status == 201, answer

    def status(self, kind, name, *reasons):
        status, answer = self.cp.api("PATCH", spine.path_of(self.ns, kind, name) + "/status",
                                     {"status": conditions(*reasons)}, "merge")
        assert status == 200, answer

    def token_signer(self):
        """Secret trustee-token of 0.1.0; its data."""
        key = subprocess.run(["openssl", "genpkey", "-algorithm", "EC", "-pkeyopt", "ec_paramgen_curve:P-256"],
                             check=True, capture_output=True, text=True).stdout
        crt = subprocess.run(["openssl", "req", "-x509", "-key", "/dev/stdin", "-days", "3650",
                              "-subj", "/CN=trustee-token"], input=key, check=True, capture_output=True, text=True)
        self.secret("trustee-token", self.cluster, {"key.pem": key, "cert.pem": crt.stdout})
        return spine.read(self.cp, self.ns, "secrets", "trustee-token")["data"]

    def machine(self, key, bound=True):
        """(Machine, by a listener; its uuid). KEY: the text of its disk key."""
        uuid, marks = spine.new_uuid(), {}
        if self.before == OURS:
            marks = {CREATED_BY: "listener", ANNOUNCED: sha256(key.encode())}
            if bound:
                marks[BOUND_AT] = LONG_AGO
        return made(self.cp, "mach", self.ns, {"id": uuid}, f"machine-{uuid}", annotations=marks,
                    finalizers=[spine.MACHINE_FINALIZER], ownerReferences=[owner_reference(self.cluster)]), uuid

    def node(self, bound=True, secret=True):
        """A Machine with its key; BOUND: and with its node's approved key; SECRET: and with its Secret."""
        key = json.dumps({"key_type": "oct", "key": base64.b64encode(secrets.token_bytes(24)).decode()},
                         separators=(",", ":"))
        machine, uuid = self.machine(key, bound)
        if secret:
            self.secret(uuid, machine, {"root": key})
        if self.before == OURS:
            self.status("mach", f"machine-{uuid}", "KeyReady=KeyMade", *(
                ("AttestationKeyBound=Bound", "Delivered=Delivered", "Ready=AllReady") if bound else ()))
        node = Node(uuid, fast_key(), None, key.encode())
        if bound:
            self.key(node, machine)
        return node

    def key(self, node, machine):
        spki = sha256(base64.b64decode(trustees.der_of(node.pem)))
        marks = {}
        if self.before == OURS:
            node.ak = f"ak-{spki[:32]}"
            marks = {CREATED_BY: "listener", APPROVED_AT: "2026-01-02T03:04:05.000000Z",
                     f"{GROUP}/approved-by": "operator", f"{GROUP}/approved-spki-sha256": spki}
        else:
            node.ak = f"ak-{spine.new_uuid()}"
        ak = made(self.cp, "ak", self.ns, {"publicKey": node.pem, "uuid": node.uuid}, node.ak, annotations=marks,
                  ownerReferences=[owner_reference(machine)])
        self.status("ak", node.ak, "Approved=MachineCreated", *(
            ("Delivered=Delivered",) if self.before == OURS else ()))
        self.secret(node.ak, ak, {"public_key": node.pem}, finalizers=[spine.SECRET_FINALIZER])

    def many(self, n):
        with ThreadPoolExecutor(AT_ONCE) as several:
            return list(several.map(lambda _: self.node(), range(n)))

    def older(self):
        """What was made so far is older than what comes now, in whole seconds."""
        assert not spine.read(self.cp, self.ns, "configmaps", SINCE)
        time.sleep(1.1)


def secrets_of(cp, ns):
    return {s["metadata"]["name"]: (s["data"], s["metadata"]["resourceVersion"], owner_uids(s))
            for s in spine.items(cp, ns, "secrets")}


def reason_of(machine, type_):
    return spine.condition(machine, type_).get("reason")


@pytest.fixture(name="earlier", params=[OURS, RUST])
def _earlier(cp, ns, start_place, request):
    return Earlier(cp, ns, start_place(), request.param)


def starts(earlier, start_operator, *args):
    return start_operator(earlier.ns, "--kbs-url", earlier.place.url, *args)


def unmoved(before, after):
    """Every Secret that was there is as it was."""
    assert {name: after.get(name) for name in before} == before, "a Secret was written"


def test_every_key_of_many_machines_stays(cp, ns, earlier, start_operator):
    nodes = earlier.many(MANY)
    earlier.older()
    before, since, begin = secrets_of(cp, ns), cp.audit.mark(), time.monotonic()
    op = starts(earlier, start_operator)

    def all_ready():
        left = [m for m in spine.items(cp, ns, "mach") if reason_of(m, "Delivered") != "Delivered"
                or not mark(m, BOUND_KEY)]
        return not left

    cp.wait_for(all_ready, 300, "every Machine delivered", 1)
    synced(cp, ns, timeout=60)
    settled(cp, ns, 3, 120)
    took = time.monotonic() - begin
    writes = cp.writes_by(account(ns), since, ignore=("leases", "events"))
    by_kind = collections.Counter((w["verb"], w["objectRef"]["resource"], w["objectRef"].get("subresource", ""))
                                  for w in writes)
    print(f"{took:.0f} s, {len(writes)} writes for {MANY} Machines: {by_kind}")

    unmoved(before, secrets_of(cp, ns))
    machines = {m["spec"]["id"]: m for m in spine.items(cp, ns, "mach")}
    keys = {a["metadata"]["name"]: a for a in spine.items(cp, ns, "ak")}
    dump = earlier.place.kbs.dump()["resources"]
    assert len(dump) == MANY
    for node in nodes:
        machine, ak = machines[node.uuid], keys[node.ak]
        assert reason_of(machine, "KeyReady") == "KeyMade" and reason_of(machine, "Ready") == "AllReady"
        assert announced(machine) == [sha256(node.key)] and mark(machine, BOUND_AT)
        spki = sha256(base64.b64decode(trustees.der_of(node.pem)))
        assert mark(machine, BOUND_KEY) == f"{ak['metadata']['uid']} {spki}"
        assert reason_of(ak, "Approved") == "MachineCreated"
        assert base64.b64decode(dump[resource_path(node.uuid)]) == node.key
    assert len([n for n in earlier.place.values() if n.startswith("ak.")]) == MANY
    # The Machine: a patch that takes over, one that binds; the key: its marks; some changes of each status.
    assert len(writes) <= WRITES_EACH * MANY + 100, by_kind
    assert [w for w in writes if w["objectRef"]["resource"] == "secrets" and
            w["objectRef"].get("name") in before] == []

    since = cp.audit.mark()
    op.restart()
    synced(cp, ns, timeout=60)
    settled(cp, ns, 3, 60)
    writes = cp.writes_by(account(ns), since, ignore=("leases",))
    assert writes == [], describe(writes[:20])


def test_what_signs_and_administers_stays(cp, ns, start_place, start_operator):
    earlier = Earlier(cp, ns, start_place(), OURS)
    signer, node = earlier.token_signer(), earlier.node()
    auth = spine.read(cp, ns, "secrets", "trustee-auth")["data"]
    earlier.older()
    starts(earlier, start_operator)
    trustees.ready(cp, ns, node)
    synced(cp, ns)
    settled(cp, ns)
    assert spine.read(cp, ns, "secrets", "trustee-token")["data"] == signer
    assert spine.read(cp, ns, "secrets", "trustee-auth")["data"] == auth
    assert [s for s in spine.items(cp, ns, "secrets") if s["metadata"]["name"].startswith("trustee-token-")] == []


def test_an_older_machine_without_its_secret_is_lost(cp, ns, earlier, start_operator):
    lost, kept = earlier.node(secret=False), earlier.node()
    earlier.older()
    op = starts(earlier, start_operator)
    spine.wait_condition(cp, ns, "mach", lost.machine, "KeyReady", "KeyLost")
    trustees.ready(cp, ns, kept)
    settled(cp, ns)
    op.restart()
    settled(cp, ns)
    assert not spine.read(cp, ns, "secrets", lost.uuid), "a key was made for a disk that has one"
    assert reason_of(spine.read(cp, ns, "mach", lost.machine), "KeyReady") == "KeyLost"
    assert earlier.place.key(lost) is None and earlier.place.holds(kept)


def test_an_older_machine_without_a_key_takes_one_from_an_administrator(cp, ns, earlier, start_operator):
    """It may have had one: who has the disk knows its uuid."""
    node = earlier.node(bound=False)
    earlier.older()
    op = starts(earlier, start_operator)
    spine.wait_condition(cp, ns, "mach", node.machine, "KeyReady", "KeyMade")
    assert spine.register(op, node.pem, node.uuid)[0] == 201
    settled(cp, ns)
    (ak,) = spine.items(cp, ns, "ak")
    node.ak = ak["metadata"]["name"]
    assert spine.condition(ak, "Approved")["status"] == "False"
    assert earlier.place.clean(node)
    approve(cp, ns, node.ak)
    spine.wait_condition(cp, ns, "ak", node.ak, "Approved", "ApprovedManually")
    trustees.ready(cp, ns, node)
    assert earlier.place.holds(node)


def test_keys_of_machines_that_are_not_bound_are_revoked_once(cp, ns, start_place, start_operator):
    """0.1.0 delivered them at the first request of a node."""
    earlier = Earlier(cp, ns, start_place(), OURS)
    place, waiting, node = earlier.place, earlier.node(bound=False), earlier.node()
    answer = place.kbs.ask("POST", f"/kbs/v0/resource/{resource_path(waiting.uuid)}", waiting.key)
    assert answer.status == 200, answer
    earlier.older()
    op = starts(earlier, start_operator)
    cp.wait_for(lambda: place.key(waiting) is None, 20, "the key revoked")
    trustees.ready(cp, ns, node)
    synced(cp, ns)
    settled(cp, ns, 5)  # the clean sentinel is written a while after the last change
    machine = spine.wait_condition(cp, ns, "mach", waiting.machine, "KeyReady", "KeyMade")
    assert announced(machine) == [sha256(waiting.key)]
    assert mark(machine, DELIVERED_AT) and not mark(machine, BOUND_KEY)
    assert place.holds(node) and spine.read(cp, ns, "secrets", waiting.uuid)

    sent = len(place.proxy.seen())
    op.restart()
    cp.wait_for(lambda: len(place.proxy.seen()) > sent, 20, "the question what Trustee holds")
    settled(cp, ns, 3)
    assert {s.verb for s in place.proxy.seen()[sent:]} == {"refvalue-get"}
    # It counts as delivered: a disk may be encrypted with it.
    op.terminate()
    spine.delete(cp, ns, "secrets", waiting.uuid)
    op.start()
    spine.wait_condition(cp, ns, "mach", waiting.machine, "KeyReady", "KeyLost")
    settled(cp, ns)
    assert not spine.read(cp, ns, "secrets", waiting.uuid)


def adopt(cp, ns):
    """What an administrator says: all that is there now."""
    time.sleep(1.1)
    now = datetime.datetime.now(datetime.timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ")
    spine.merge(cp, ns, "tec", "tec", {"metadata": {"annotations": {ADOPT_BEFORE: now}}})


@pytest.fixture(name="back")
def _back(cp, ns, start_place, start_operator):
    """(Earlier, Operator that is down, Node): the Rust operator came back for a while, and made the node."""
    earlier = Earlier(cp, ns, start_place(), RUST)
    first = earlier.node()
    earlier.older()
    op = starts(earlier, start_operator)
    trustees.ready(cp, ns, first)
    op.terminate()
    time.sleep(1.1)
    return earlier, op, earlier.node()


def test_what_came_later_is_adopted_when_an_administrator_says_so(cp, ns, back):
    earlier, op, later = back
    before = secrets_of(cp, ns)
    adopt(cp, ns)
    op.start()
    trustees.ready(cp, ns, later)
    assert earlier.place.holds(later)
    assert announced(spine.read(cp, ns, "mach", later.machine)) == [sha256(later.key)]
    assert reason_of(spine.read(cp, ns, "ak", later.ak), "Approved") == "MachineCreated"
    settled(cp, ns)
    unmoved(before, secrets_of(cp, ns))

    # What comes after that time is not meant.
    op.terminate()
    time.sleep(1.1)
    last = earlier.node()
    op.start()
    spine.wait_condition(cp, ns, "mach", last.machine, "KeyReady", "Conflict")
    settled(cp, ns)
    assert earlier.place.key(last) is None


def test_what_came_later_is_a_conflict_until_then(cp, ns, back):
    earlier, op, later = back
    disk = {later.uuid: secrets_of(cp, ns)[later.uuid]}
    op.start()
    machine = spine.wait_condition(cp, ns, "mach", later.machine, "KeyReady", "Conflict")
    told = spine.condition(machine, "KeyReady")["message"]
    assert f"kubectl delete secret {later.uuid}" in told and ADOPT_BEFORE in told
    settled(cp, ns)
    assert earlier.place.clean(later)
    adopt(cp, ns)
    spine.wait_condition(cp, ns, "mach", later.machine, "KeyReady", "KeyMade")
    approve(cp, ns, later.ak)  # that it was approved once is nobody's word any more
    trustees.ready(cp, ns, later)
    assert earlier.place.holds(later)
    settled(cp, ns)
    unmoved(disk, secrets_of(cp, ns))
