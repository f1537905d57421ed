# SPDX-License-Identifier: MIT
"""Where Trustee is and who may write to it: somebody else's, a second one, one whose key or certificate
is wrong or late, one that may only be spoken to under TLS, and two operators before one Trustee."""

import json
import os
import re
import signal

import pytest

import kbsproxy
import spine
import trustees
from controlplane import TOP
from tecctl import Tecctl
from teckinds import made
from test_spine import installed, luks_key, settled
from trustees import delivered, ends, joins, make_auth, make_ca, memory, ready, synced, waits

EXTENDED = "trusted-execution-clusters.io/extended-spec"
LOST = "trusted-execution-clusters.io/lost-servers"
start_place = trustees.start_place


def policy(name):
    return trustees.text_of(os.path.join(TOP, "etc", name))


def external(cp, ns, place, **spec):
    """A cluster whose Trustee is PLACE, and is not its own."""
    spine.make_cluster(cp, ns, publicTrusteeAddr=place.address, trustee={"deploy": "External"}, **spec)


# External

def test_external_is_administered_and_nothing_of_it_rendered(cp, ns, start_operator, start_place):
    place = start_place(tls=True)
    external(cp, ns, place, trusteeSecret="far-ca")
    uid = spine.read(cp, ns, "tec", "tec")["metadata"]["uid"]
    op = start_operator(ns)
    synced(cp, ns, "NotAvailable", "Secret trustee-auth does not exist yet")
    make_auth(cp, ns, place.kbs)
    synced(cp, ns, "NotAvailable", "Secret far-ca does not exist yet")
    assert place.proxy.seen() == []
    make_ca(cp, ns, "far-ca", place.proxy.ca)
    installed(cp, ns)
    node = delivered(cp, ns, op, place)
    synced(cp, ns)
    assert place.policies() == (policy("tpm.rego"), policy("resource.rego"))
    assert memory(cp, ns) == [{"address": place.address, "adminSecret": "trustee-auth",
                               "caSecret": "far-ca", "cluster": uid, "primary": True}]
    for kind, name in (("configmaps", "trustee-data"), ("configmaps", "trustee-policies"),
                       ("secrets", "trustee-token"), ("services", "kbs-service"),
                       ("deployments", "trustee-deployment")):
        assert not spine.read(cp, ns, kind, name), f"{kind} {name}"
    spine.delete(cp, ns, "mach", node.machine)
    ends(cp, ns, node)
    assert place.clean(node)


def test_external_is_not_forgotten_without_its_cluster(cp, ns, start_operator, start_place):
    place = start_place(tls=True)
    make_auth(cp, ns, place.kbs)
    make_ca(cp, ns, "far-ca", place.proxy.ca)
    external(cp, ns, place, trusteeSecret="far-ca")
    op = start_operator(ns)
    node = delivered(cp, ns, op, place)
    place.proxy.refuse()
    spine.delete(cp, ns, "tec", "tec")
    spine.delete(cp, ns, "mach", node.machine)
    op.restart()
    waits(cp, ns, node, place.address)
    settled(cp, ns)
    waits(cp, ns, node, place.address)
    assert place.holds(node)
    assert [s["address"] for s in memory(cp, ns)] == [place.address]
    place.proxy.listen()
    ends(cp, ns, node)
    assert place.clean(node)
    cp.wait_for(lambda: not memory(cp, ns), 30, "the end of what is remembered")


# More than one

@pytest.fixture(name="two")
def _two(cp, ns, start_operator, start_place):
    """(operator, the cluster's own Trustee, a further one with an admin's key of its own)."""
    own, far = start_place(), start_place(tls=True)
    make_auth(cp, ns, far.kbs, "far-admin")
    make_ca(cp, ns, "far-ca", far.proxy.ca)
    trustees.managed(cp, ns, own, trusteeServers=[
        {"address": far.address, "adminSecret": "far-admin", "caSecret": "far-ca"}])
    return start_operator(ns, "--kbs-url", own.url), own, far


def test_every_trustee_holds_everything_and_has_to_let_go(cp, ns, two):
    op, own, far = two
    node = delivered(cp, ns, op, own, far)
    kept = delivered(cp, ns, op, own, far)
    synced(cp, ns)
    assert own.values() == far.values() and own.policies() == far.policies()
    assert [s["address"] for s in memory(cp, ns)] == [far.address]

    far.proxy.refuse()
    spine.delete(cp, ns, "mach", node.machine)
    waits(cp, ns, node, far.address)
    cp.wait_for(lambda: own.clean(node), 10, "revocation at the one that answers")
    message = spine.condition(waits(cp, ns, node, far.address), "Delivered")["message"]
    assert "trustee.example.org" not in message, message
    synced(cp, ns, "NotAvailable", far.address)
    assert far.holds(node) and own.holds(kept)

    far.proxy.listen()
    ends(cp, ns, node)
    assert own.clean(node) and far.clean(node)
    assert own.holds(kept) and far.holds(kept)
    synced(cp, ns)


def test_server_taken_out_of_spec_holds_nothing_back(cp, ns, two):
    op, own, far = two
    node = delivered(cp, ns, op, own, far)
    far.proxy.refuse()
    spine.delete(cp, ns, "mach", node.machine)
    waits(cp, ns, node, far.address)
    # A field that is gone may have been pruned by another CRD: nothing follows from that alone.
    spine.merge(cp, ns, "tec", "tec", {"spec": {"trusteeServers": None}})
    spine.wait_condition(cp, ns, "tec", "tec", "Installed", "Conflict")
    settled(cp, ns)
    waits(cp, ns, node, far.address)
    assert far.address in str(memory(cp, ns))
    spine.merge(cp, ns, "tec", "tec", {"metadata": {"annotations": {EXTENDED: None}}})
    ends(cp, ns, node)
    assert own.clean(node) and far.holds(node)
    cp.wait_for(lambda: not memory(cp, ns), 10, "the end of what is remembered")
    synced(cp, ns)
    told = [e["note"] for e in cp.get(f"/apis/events.k8s.io/v1/namespaces/{ns}/events")["items"]
            if e["reason"] == "TrusteeLeft"]
    assert len(told) == 1 and far.address in told[0], told


def lost_servers(cp, ns):
    """{address: entry} of the annotation."""
    found = spine.read(cp, ns, "tec", "tec")["metadata"]["annotations"].get(LOST)
    return {e["address"]: e for e in json.loads(found)} if found else {}


def test_lost_server_is_waited_for_until_an_administrator_declares_it(cp, ns, two):
    op, own, far = two
    ctl = Tecctl(cp.admin_kubeconfig, ns)
    lost, says = ("server", "lost", far.address), f"tecctl server lost {far.address}"
    node = delivered(cp, ns, op, own, far)
    kept = delivered(cp, ns, op, own, far)
    synced(cp, ns)
    assert "spec still names" in ctl.run(*lost, "--yes", code=1)[1]
    assert "nothing waits" in ctl.run("server", "lost", "192.0.2.9:1", "--yes", code=1)[1]
    spine.merge(cp, ns, "tec", "tec", {"spec": {"trusteeServers": None}})
    spine.wait_condition(cp, ns, "tec", "tec", "Installed", "Conflict")
    assert "it answers" in ctl.run(*lost, "--yes", code=1)[1]

    far.proxy.refuse()
    spine.delete(cp, ns, "mach", node.machine)
    machine = waits(cp, ns, node, says)
    assert says in spine.condition(machine, "Ready")["message"], machine
    synced(cp, ns, "NotAvailable", says)
    cp.wait_for(lambda: memory(cp, ns)[0].get("away"), 10, "word for tecctl")
    out = ctl.out("status")
    assert re.search(rf"{re.escape(far.address)} +not in spec, does not answer", out), out
    assert says in out and "Boot the node" not in out, out
    assert says in ctl.out("doctor", code=1)
    assert says in ctl.out("why", node.machine, code=None)

    assert "cannot ask" in ctl.run(*lost, code=1)[1]
    assert ctl.terminal(*lost).until("Type yes to continue").type("no\n").end() == 1
    settled(cp, ns)
    waits(cp, ns, node, says)
    assert lost_servers(cp, ns) == {}
    assert "declared lost" in ctl.out(*lost, "--yes")
    ends(cp, ns, node)
    assert own.clean(node) and far.holds(node)
    entry = lost_servers(cp, ns)[far.address]
    user = re.search(r"^ok +user +(.*)$", ctl.out("doctor", code=None), re.M).group(1)
    assert entry["by"] == user and entry["at"].endswith("Z"), entry
    spine.wait_condition(cp, ns, "tec", "tec", "Installed", "InstallationCompleted")
    synced(cp, ns)
    assert "already" in ctl.out(*lost, "--yes")
    assert re.search(rf"{re.escape(far.address)} +lost since {entry['at']}", ctl.out("status"))

    # It comes back with what was deleted meanwhile, which goes before anything is delivered.
    op.restart()
    later = delivered(cp, ns, op, own)
    far.proxy.listen()
    sent = len(far.proxy.seen())
    settled(cp, ns, 2)
    assert far.holds(node) and len(far.proxy.seen()) == sent, "a lost server was spoken to"
    spine.merge(cp, ns, "tec", "tec", {"spec": {"trusteeServers": [
        {"address": far.address, "adminSecret": "far-admin", "caSecret": "far-ca"}]}})
    cp.wait_for(lambda: not lost_servers(cp, ns), 30, "the end of the annotation")
    assert far.clean(node) and far.holds(kept) and far.holds(later)
    synced(cp, ns)
    seen = far.proxy.seen()[sent:]

    def first(what, is_it):
        found = [i for i, x in enumerate(seen) if is_it(x)]
        assert found, f"no {what}: {seen}"
        return found[0]

    delivery = min(first("key", lambda x: x.verb == "resource-put"),
                   first("identity", lambda x: x.values().get(trustees.identity_name(later.pem))))
    assert first("deletion", lambda x: x.verb == "resource-delete" and node.uuid in x.target) < delivery
    gone = trustees.identity_name(node.pem)
    assert first("withdrawal", lambda x: gone in x.values() and x.values()[gone] is None) < delivery


def test_cluster_that_is_gone_is_waited_for_by_the_further_server_only(cp, ns, two):
    """Its own Trustee went with it, and what that held."""
    op, own, far = two
    node = delivered(cp, ns, op, own, far)
    own.proxy.refuse()
    far.proxy.refuse()
    spine.delete(cp, ns, "tec", "tec")
    spine.delete(cp, ns, "mach", node.machine)
    cp.wait_for(lambda: not spine.read(cp, ns, "deployments", "trustee-deployment"), 60,
                "the garbage collector's end of Trustee")
    settled(cp, ns)
    message = spine.condition(waits(cp, ns, node, far.address), "Delivered")["message"]
    assert "trustee.example.org" not in message, message
    assert far.holds(node)
    far.proxy.listen()
    ends(cp, ns, node, 40)
    assert far.clean(node)
    cp.wait_for(lambda: not memory(cp, ns), 30, "the end of what is remembered")


def test_server_that_is_added_is_filled(cp, ns, start_operator, start_place):
    own = start_place()
    trustees.managed(cp, ns, own)
    op = start_operator(ns, "--kbs-url", own.url)
    node = delivered(cp, ns, op, own)
    far = start_place(beside=own)
    spine.merge(cp, ns, "tec", "tec", {"spec": {"trusteeServers": [
        {"address": far.address, "adminSecret": "trustee-auth"}]}})
    cp.wait_for(lambda: far.holds(node), 20, "the second Trustee's filling")
    ready(cp, ns, node)
    assert own.values() == far.values() and own.policies() == far.policies()


# Who may write

@pytest.mark.parametrize("field", ["trustee-auth", "adminSecret"])
def test_admin_secret_is_late_and_wrong_and_then_right(cp, ns, start_operator, start_place, field):
    place, other = start_place(), start_place()
    if field == "trustee-auth":
        external(cp, ns, place)
        op = start_operator(ns)
    else:
        trustees.managed(cp, ns, other, trusteeServers=[{"address": place.address, "adminSecret": field.lower()}])
        op = start_operator(ns, "--kbs-url", other.url)
    synced(cp, ns, "NotAvailable", f"Secret {field.lower()} does not exist yet")
    make_auth(cp, ns, other.kbs, field.lower())  # another one's key
    found = synced(cp, ns, "Refused", place.address)
    assert "AdminAuth" in found["message"], found
    node = joins(cp, ns, op)
    settled(cp, ns)
    # A token is made again once; then it waits long, whatever else changes.
    assert len(place.proxy.seen()) <= 2, place.proxy.seen()
    assert place.kbs.dump()["resources"] == {}
    if field == "adminSecret":
        assert other.holds(node)
    make_auth(cp, ns, place.kbs, field.lower())
    ready(cp, ns, node)
    synced(cp, ns)
    assert place.holds(node)


def test_admin_secret_without_a_key_is_told(cp, ns, start_operator, start_place):
    place = start_place()
    trustees.make_secret(cp, ns, "trustee-auth", {"private.key": "none"})
    external(cp, ns, place)
    start_operator(ns)
    synced(cp, ns, "NotAvailable", place.address)
    assert place.proxy.seen() == []
    make_auth(cp, ns, place.kbs)
    synced(cp, ns)


# TLS

@pytest.mark.parametrize("field", ["trusteeSecret", "caSecret"])
def test_certificates_are_changed_without_a_restart(cp, ns, start_operator, start_place, field):
    place = start_place(tls=True)
    make_ca(cp, ns, "far-ca", place.proxy.ca)
    if field == "trusteeSecret":
        make_auth(cp, ns, place.kbs)
        external(cp, ns, place, trusteeSecret="far-ca")
        op = start_operator(ns)
    else:
        own = start_place(beside=place)
        trustees.managed(cp, ns, own, trusteeServers=[
            {"address": place.address, "adminSecret": "trustee-auth", "caSecret": "far-ca"}])
        op = start_operator(ns, "--kbs-url", own.url)
    first = delivered(cp, ns, op, place)
    settled(cp, ns)

    place.proxy.wrong_certificate()
    sent = len(place.proxy.seen())
    second = joins(cp, ns, op)
    found = synced(cp, ns, "NotAvailable", place.address)
    assert "certificate" in found["message"], found
    assert len(place.proxy.seen()) == sent, "something was sent to somebody with another certificate"
    place.proxy.wrong_certificate(False)
    ready(cp, ns, second)

    renewed = place.new_certificate("renewed")
    sent = len(place.proxy.seen())
    third = joins(cp, ns, op)
    synced(cp, ns, "NotAvailable", place.address)
    assert len(place.proxy.seen()) == sent, "something was sent to somebody with another certificate"
    make_ca(cp, ns, "far-ca", renewed)
    ready(cp, ns, third)
    synced(cp, ns)
    assert all(place.holds(node) for node in (first, second, third))


def test_plain_text_is_refused_where_spec_says_so(cp, ns, start_operator, start_place):
    place = start_place()
    make_auth(cp, ns, place.kbs)
    spine.make_cluster(cp, ns, publicTrusteeAddr=place.address,
                       trustee={"deploy": "External", "plaintext": "Refuse"})
    start_operator(ns)
    uuid = spine.new_uuid()
    made(cp, "mach", ns, {"id": uuid}, "m")
    made(cp, "ak", ns, {"publicKey": spine.rsa_key(), "uuid": uuid}, "k")
    spine.wait_condition(cp, ns, "ak", "k", "Approved", "MachineCreated")
    synced(cp, ns, "NotAvailable", "nothing is sent")
    settled(cp, ns)
    assert place.proxy.seen() == []
    spine.merge(cp, ns, "tec", "tec", {"spec": {"trustee": {"plaintext": "Allow"}}})
    spine.wait_condition(cp, ns, "mach", "m", "Ready", "AllReady")


# One array for all

def test_shared_and_back(cp, ns, start_operator, start_place):
    place = start_place()
    trustees.managed(cp, ns, place)
    op = start_operator(ns, "--kbs-url", place.url)
    first = delivered(cp, ns, op, place)
    gone = delivered(cp, ns, op, place)
    synced(cp, ns)
    assert place.values().get("trusted_aks", []) == []

    def isolation(value):
        spine.merge(cp, ns, "tec", "tec", {"spec": {"trustee": {"keyIsolation": value}}})

    def shared(*nodes):
        want = sorted(trustees.der_of(n.pem) for n in nodes)
        cp.wait_for(lambda: place.values().get("trusted_aks") == want, 20, f"{len(want)} keys in one array")

    isolation("Shared")
    shared(first, gone)
    cp.wait_for(lambda: place.policies() == (policy("tpm-shared.rego"), policy("resource-shared.rego")), 20,
                "the Rust operator's policies")
    later = joins(cp, ns, op)
    ready(cp, ns, later)
    shared(first, gone, later)
    spine.delete(cp, ns, "mach", gone.machine)
    ends(cp, ns, gone)
    shared(first, later)
    assert place.clean(gone)
    for node in (first, later):
        assert place.key(node) == node.key

    isolation("PerMachine")
    cp.wait_for(lambda: place.policies() == (policy("tpm.rego"), policy("resource.rego")), 20,
                "policies for each its own")
    shared()
    synced(cp, ns)
    assert place.holds(first) and place.holds(later) and place.clean(gone)


# Names

def test_keys_with_one_name_do_not_evict_each_other(cp, ns, start_operator, start_place):
    place = start_place()
    trustees.managed(cp, ns, place)
    op = start_operator(ns, "--kbs-url", place.url)
    first = delivered(cp, ns, op, place)
    second = joins(cp, ns, op, trustees.colliding(first.pem))
    assert trustees.identity_name(second.pem) == trustees.identity_name(first.pem)
    ready(cp, ns, second)
    settled(cp, ns)
    assert place.holds(first) and place.holds(second)
    # Nor does the end of one.
    spine.delete(cp, ns, "mach", second.machine)
    ends(cp, ns, second)
    assert place.holds(first) and place.clean(second)

    # Not the second's key again: its AttestationKey ends some time after its Machine.
    third = joins(cp, ns, op, trustees.colliding(first.pem, 4))
    ready(cp, ns, third)
    spine.delete(cp, ns, "mach", first.machine)
    ends(cp, ns, first)
    assert place.holds(third) and place.clean(first)
    spine.delete(cp, ns, "mach", third.machine)
    ends(cp, ns, third)
    assert place.clean(third) and trustees.identity_name(third.pem) not in place.values()


def test_somebody_elses_secret_in_a_keys_place(cp, ns, start_operator, start_place):
    place = start_place()
    trustees.managed(cp, ns, place)
    op = start_operator(ns, "--kbs-url", place.url)
    uuid, pem = spine.first_boot(op), spine.rsa_key()
    trustees.make_secret(cp, ns, "mine", {"public_key": "mine"})
    made(cp, "ak", ns, {"publicKey": pem, "uuid": uuid}, "mine")
    key = spine.wait_condition(cp, ns, "ak", "mine", "Delivered", "Conflict")
    assert "Secret mine" in spine.condition(key, "Delivered")["message"]
    settled(cp, ns)
    assert trustees.identity_name(pem) not in place.values()
    spine.delete(cp, ns, "secrets", "mine")
    spine.wait_condition(cp, ns, "ak", "mine", "Delivered", "Delivered")


# Two operators

def lease(cp, ns):
    return cp.get(f"/apis/coordination.k8s.io/v1/namespaces/{ns}/leases/tec-operator")["spec"]


def test_old_leader_that_wakes_up_sends_nothing(cp, ns, start_operator, start_place):
    """It was stopped with a delivery to try again, and is continued after another one has revoked it."""
    old = start_place()
    new = trustees.Place(old.kbs, old.dir)
    uuid, pem = spine.new_uuid(), spine.rsa_key()
    node = trustees.Node(uuid, pem, "k", None)
    trustees.managed(cp, ns, old)
    first = start_operator(ns, "--kbs-url", old.url)
    try:
        synced(cp, ns)
        second = start_operator(ns, "--kbs-url", new.url)
        old.proxy.on(kbsproxy.refusal("Internal", 500), "resource-put", times=None)
        # Right after a renewal, so that its next try is due before it looks at its lease again.
        renewed = lease(cp, ns)["renewTime"]
        cp.wait_for(lambda: lease(cp, ns)["renewTime"] != renewed, 10, "a renewal", interval=0.01)
        made(cp, "mach", ns, {"id": uuid}, node.machine)
        made(cp, "ak", ns, {"publicKey": pem, "uuid": uuid}, "k")
        cp.wait_for(lambda: old.proxy.seen("resource-put"), 20, "a delivery", interval=0.01)
        first.proc.signal(signal.SIGSTOP)
        old.proxy.clear()
        ready(cp, ns, node, 40)
        node.key = luks_key(cp, ns, uuid)
        assert new.holds(node)
        spine.delete(cp, ns, "mach", node.machine)
        ends(cp, ns, node)
        assert new.clean(node)

        sent = len(old.proxy.seen())
        first.proc.signal(signal.SIGCONT)
        cp.wait_for(lambda: "no longer leader" in first.log_text(), 20, "word of the lost lease")
        settled(cp, ns, 2)
        assert old.proxy.seen()[sent:] == []
        assert new.clean(node)
        # Leader once more, it knows what happened meanwhile.
        second.terminate()
        cp.wait_for(lambda: len(old.proxy.seen()) > sent, 30, "its first request as the leader")
        synced(cp, ns)
        assert new.clean(node)
    finally:
        first.proc.signal(signal.SIGCONT)
        new.proxy.close()
