# SPDX-License-Identifier: MIT
"""Two clusters, each with an operator and a namespace of its own, and one Trustee that neither of them deploys: one
administers it, the other one says why it does not, until somebody decides."""

import pytest

import spine
import trustees
from conftest import plane_manifests, retarget
from tecctl import Tecctl
from test_handover import ALL_DONE, _config as config, lines  # noqa: F401
from test_images import boots_of, commit, registry
from test_spine import settled
from trustees import delivered, ends, holder, joins, make_auth, ready, synced

start_place = trustees.start_place
PROBE = 15  # seconds between two looks of an operator at its Trustee


@pytest.fixture(name="others")
def _others(cp):
    """The namespace of the second cluster."""
    name = cp.create_namespace("others")
    cp.apply(retarget(plane_manifests(cp), name))
    yield name
    cp.api("DELETE", f"/api/v1/namespaces/{name}")


class Cluster:
    """One cluster with its operator; PLACE: the Trustee behind a proxy of its own."""

    def __init__(self, cp, ns, place, start_operator):
        self.cp, self.ns, self.place = cp, ns, place
        make_auth(cp, ns, place.kbs)
        made = spine.make_cluster(cp, ns, publicTrusteeAddr=place.address, trustee={"deploy": "External"})
        self.uid = made["metadata"]["uid"]
        self.op = start_operator(ns, "--insecure-registry", registry())

    def conflict(self, uid, timeout=20):
        return synced(self.cp, self.ns, "Conflict", uid, timeout)

    def take_over(self, uid):
        spine.merge(self.cp, self.ns, "tec", "tec", {"spec": {"trustee": {"takeOver": uid}}})

    def wrote(self):
        return [r for r in self.place.proxy.seen() if r.method != "GET"]


@pytest.fixture(name="two")
def _two(cp, ns, others, start_operator, start_place):
    """(first, second): the first one was there before."""
    place = start_place()
    beside = trustees.Place(place.kbs, place.dir)
    first = Cluster(cp, ns, place, start_operator)
    synced(cp, ns)
    yield first, Cluster(cp, others, beside, start_operator)
    beside.proxy.close()


def test_a_revoked_image_gets_no_keys_from_the_other_cluster(cp, two):
    first, second = two
    commit(cp, first.ns, "a")
    cp.wait_for(lambda: boots_of(first.place), 20, "the image in the broker")
    told = second.conflict(first.uid)
    assert told["status"] == "False" and second.place.address in told["message"]
    assert "takeOver" in told["message"]
    (event,) = [e for e in spine.items(cp, second.ns, "events") if e["reason"] == "Conflict"]
    assert first.uid in event.get("note", event.get("message"))

    # The same image in both, revoked by the one that administers Trustee.
    commit(cp, second.ns, "a")
    node = joins(cp, second.ns, second.op)
    spine.delete(cp, first.ns, "ai", "a")
    cp.wait_for(lambda: not spine.read(cp, first.ns, "ai", "a"), 30, "the end of the image")
    asked = len(second.place.proxy.seen())
    cp.wait_for(lambda: len(second.place.proxy.seen()) > asked, 2 * PROBE, "one more question")
    settled(cp, second.ns, 1)
    assert second.wrote() == []
    assert boots_of(first.place) == {} and first.place.clean(node)
    assert holder(first.place) == first.uid
    synced(cp, first.ns)
    assert spine.condition(spine.read(cp, second.ns, "mach", node.machine), "Delivered")["reason"] == "NotAvailable"


def test_the_other_cluster_is_replaced_when_spec_names_it(cp, two):
    first, second = two
    node = delivered(cp, first.ns, first.op, first.place)
    second.conflict(first.uid)
    second.take_over(second.uid)
    other = joins(cp, second.ns, second.op)
    second.conflict(first.uid)
    assert second.wrote() == []
    second.take_over(first.uid)
    ready(cp, second.ns, other)
    synced(cp, second.ns)
    assert second.place.holds(other)
    first.conflict(second.uid, 2 * PROBE)
    wrote = len(first.wrote())
    # A Machine of the first one waits for its end: its key is still there.
    spine.delete(cp, first.ns, "mach", node.machine)
    trustees.waits(cp, first.ns, node, first.place.address)
    assert len(first.wrote()) == wrote and first.place.key(node) == node.key
    assert holder(first.place) == second.uid
    # And back. The two do not take turns, although each names the other one now.
    first.take_over(second.uid)
    ends(cp, first.ns, node)
    synced(cp, first.ns)
    assert first.place.clean(node)
    second.conflict(first.uid, 2 * PROBE)
    assert holder(first.place) == first.uid
    synced(cp, first.ns)


def test_a_deleted_cluster_leaves_its_trustee_to_the_one_that_waits(cp, two):
    first, second = two
    node = delivered(cp, first.ns, first.op, first.place)
    second.conflict(first.uid)
    spine.delete(cp, first.ns, "tec", "tec")
    first.op.restart()
    second.conflict(first.uid)
    assert first.place.holds(node)
    for key in spine.items(cp, first.ns, "ak"):
        spine.delete(cp, first.ns, "ak", key["metadata"]["name"])
    spine.delete(cp, first.ns, "mach", node.machine)
    ends(cp, first.ns, node)
    synced(cp, second.ns, timeout=2 * PROBE)
    assert holder(first.place) == second.uid
    assert first.place.clean(node)
    cp.wait_for(lambda: not trustees.memory(cp, first.ns), 30, "the end of what is remembered")
    other = joins(cp, second.ns, second.op)
    ready(cp, second.ns, other)
    assert second.place.holds(other)


def test_the_trustee_of_both_moves_with_each_promotion(cp, ns, others, config, start_operator, start_place):  # noqa: F811
    ctl, place = Tecctl(None), start_place()
    first = Cluster(cp, ns, place, start_operator)
    nodes = [delivered(cp, ns, first.op, place)]
    second = Cluster(cp, others, place, start_operator)
    second.conflict(first.uid)
    at = {c: f"{config}:{c.ns}" for c in (first, second)}

    def follows(one, other):
        synced(cp, one.ns, "Following", "The cluster that this one follows administers Trustee at")
        assert spine.read(cp, one.ns, "tec", "tec")["spec"]["trustee"]["takeOver"] == other.uid
        assert not trustees.memory(cp, one.ns)

    out = ctl.out("follow", "--timeout=30", "--from", at[first], "--to", at[second])
    assert lines(out) == [("ok", "follow")], out
    follows(second, first)
    for one, other in ((first, second), (second, first)):
        assert lines(ctl.out("promote", "--timeout=50", "--from", at[one], "--to", at[other])) == ALL_DONE
        synced(cp, other.ns)
        assert holder(place) == other.uid
        follows(one, other)
        nodes.append(delivered(cp, other.ns, other.op, place))
        assert all(place.holds(node) for node in nodes)
        assert not [e for e in spine.items(cp, one.ns, "events") if e["reason"] == "TrusteeLeft"]
    # What is deleted goes from Trustee and from both clusters.
    spine.delete(cp, first.ns, "mach", nodes[0].machine)
    for c in (first, second):
        ends(cp, c.ns, nodes[0])
    assert place.clean(nodes[0]) and place.holds(nodes[1]) and place.holds(nodes[2])

    # The source is lost: its follower cannot read it any more.
    spine.merge(cp, second.ns, "tec", "tec", {"spec": {"follow": {"kubeconfigSecret": "none"}}})
    spine.wait_condition(cp, second.ns, "tec", "tec", "Authority", "SourceUnreachable", 30)
    assert holder(place) == first.uid
    out = ctl.out("promote", "--from-lost", "--timeout=30", "--to", at[second], "--yes", "tec")
    assert lines(out) == [("ok", "promote")], out
    synced(cp, second.ns)
    nodes.append(delivered(cp, second.ns, second.op, place))
    # It goes on, and knows that the other one decides now.
    first.conflict(second.uid, 2 * PROBE)
    assert holder(place) == second.uid
    synced(cp, second.ns)


def test_of_two_that_start_at_once_one_administers_trustee(cp, ns, others, start_operator, start_place):
    place = start_place()
    beside = trustees.Place(place.kbs, place.dir)
    try:
        both = [Cluster(cp, *x, lambda *args: start_operator(*args, wait_ready=False))
                for x in ((ns, place), (others, beside))]
        by_uid = {c.uid: c for c in both}

        def decided():
            found = {c.uid: spine.condition(spine.read(cp, c.ns, "tec", "tec"), "TrusteeSynced").get("reason")
                     for c in both}
            return found if sorted(map(str, found.values())) == ["Conflict", "Synced"] else None
        found = cp.wait_for(decided, 4 * PROBE, "one that stops")
        (winner,) = [by_uid[uid] for uid, reason in found.items() if reason == "Synced"]
        (loser,) = [c for c in both if c is not winner]
        assert holder(place) == winner.uid
        node = delivered(cp, winner.ns, winner.op, winner.place)
        loser.conflict(winner.uid)
        assert place.holds(node)
    finally:
        beside.proxy.close()
