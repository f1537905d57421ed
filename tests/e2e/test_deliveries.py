# SPDX-License-Identifier: MIT
"""One table for both deliveries: what Trustee has to hold after what happened, whichever way it gets there.

What only one of them has is in test_trustee.py (the admin API) and test_volumes.py (files and restarts).
"""

import os

import pytest

import spine
from kubelet import Kubelet
from teckinds import made
from test_spine import settled
from trustee import Held, base64_of, fast_key, resource_path

SLOW = 60  # two restarts of Trustee may be ten seconds apart

pytestmark = pytest.mark.skipif("TEC_TEST_KBS_URL" in os.environ, reason="Trustee is looked into and killed")


class AdminApi:
    """The broker holds what requests brought; a new Pod of it starts with nothing."""

    def __init__(self, world):
        self.world = world.start()
        self.op = world.op

    def held(self):
        """({path: bytes}, {keys as base64}), by what a node would be served."""
        held = Held(self.world.kbs.dump())
        assert not held.resources or held.has_our_policies(), "keys under policies that are not ours"
        return held.resources, {e["ak"] for v in held.identities.values() for e in v}

    def lose_everything(self):
        self.world.kbs.kill()
        self.world.kbs.start()
        self.world.poke()

    def restart(self):
        """The process is another one, its Pod and what that stores are the same."""
        self.world.proxy.refuse()
        self.world.poke()
        self.world.condition("tec", "tec", "TrusteeSynced", "NotAvailable")
        self.world.proxy.listen()
        self.world.poke()

    def stop(self):
        pass  # make_world does


class Volumes:
    """A Pod of Trustee serves the files that it was started with."""

    def __init__(self, world, start_operator, directory):
        self.cp, self.ns, self.world = world.cp, world.ns, world
        self.kubelet = Kubelet(self.cp, self.ns, directory).start()
        self.started = 0
        spine.make_cluster(self.cp, self.ns, trustee={"delivery": "Volumes", "keyIsolation": "Shared"})
        self.op = start_operator(self.ns)
        spine.wait_condition(self.cp, self.ns, "tec", "tec", "TrusteeSynced", "Synced", SLOW)

    def held(self):
        top, resources, keys = self.kubelet.served, {}, set()
        for folder, _, names in os.walk(os.path.join(top, "repository")):
            for name in names:
                path = os.path.join(folder, name)
                with open(path, "rb") as f:
                    resources[os.path.relpath(path, os.path.join(top, "repository"))] = f.read()
        trusted = os.path.join(top, "tpm", "trusted_ak_keys")
        for name in os.listdir(trusted) if os.path.isdir(trusted) else []:
            with open(os.path.join(trusted, name), encoding="ascii") as f:
                keys.add(base64_of(f.read()))
        return resources, keys

    def _pods(self):
        return f"/api/v1/namespaces/{self.ns}/pods"

    def _names(self):
        return [p["metadata"]["name"] for p in self.cp.get(f"{self._pods()}?labelSelector=app%3Dkbs")["items"]]

    def lose_everything(self):
        before = self._names()
        self.kubelet.forget()
        for name in before:
            status, answer = self.cp.api("DELETE", f"{self._pods()}/{name}?gracePeriodSeconds=0")
            assert status == 200, answer
        self.cp.wait_for(lambda: self._names() and not set(self._names()) & set(before), SLOW, "another Pod")

    def restart(self):
        """The container is another one, its Pod and what that has mounted are the same."""
        self.started += 1
        for ready in ("False", "True"):
            for name in self._names():
                status, answer = self.cp.api("PATCH", f"{self._pods()}/{name}/status", {"status": {
                    "conditions": [{"type": "Ready", "status": ready}], "containerStatuses": [
                        {"name": "kbs", "image": "kbs.invalid/kbs", "imageID": "", "ready": ready == "True",
                         "restartCount": self.started}]}}, "application/merge-patch+json")
                assert status == 200, answer

    def stop(self):
        self.kubelet.stop()


@pytest.fixture(params=["AdminAPI", "Volumes"])
def place(request, make_world, start_operator, tmp_path):
    world = make_world()
    made_place = AdminApi(world) if request.param == "AdminAPI" else Volumes(world, start_operator, str(tmp_path))
    world.op = made_place.op
    yield made_place
    made_place.stop()


def path_of(node):
    return resource_path(node[0])


def joined(place, n=1):
    """[(uuid, pem)] of nodes whose Machines are told that everything is delivered."""
    nodes = [place.world.join() for _ in range(n)]
    for uuid, _ in nodes:
        place.world.ready(uuid, SLOW)
    return nodes


def check(place, *nodes):
    """Exactly these nodes are served, each with the key of its Secret; and everybody is told so."""
    for uuid, pem in nodes:
        place.world.ready(uuid, SLOW)
        place.world.condition("ak", place.world.key_of(pem)["metadata"]["name"], "Delivered", "Delivered", SLOW)
    place.world.synced(SLOW)
    want = ({path_of(n): place.world.secret_root(n[0]) for n in nodes}, {base64_of(pem) for _, pem in nodes})
    assert place.held() == want


def gone(place, kind, name):
    place.world.until(lambda: not place.world.read(kind, name), f"{kind} {name} gone", SLOW)


def test_register(place):
    first = joined(place)[0]
    check(place, first)
    second, third = joined(place, 2)
    check(place, first, second, third)


def test_deliver_what_an_admin_made(place):
    uuid, pem = spine.new_uuid(), fast_key()
    made(place.world.cp, "mach", place.world.ns, {"id": uuid}, f"machine-{uuid}")
    made(place.world.cp, "ak", place.world.ns, {"publicKey": pem, "uuid": uuid}, "an-admins")
    check(place, (uuid, pem))


def test_revoke(place):
    stays, first, second = joined(place, 3)
    key = place.world.secret_root(first[0])
    name = place.world.key_of(first[1])["metadata"]["name"]
    spine.delete(place.world.cp, place.world.ns, "ak", name)
    gone(place, "secrets", name)
    resources, keys = place.held()
    assert base64_of(first[1]) not in keys, "released before Trustee released it"
    assert resources[path_of(first)] == key == place.world.secret_root(first[0]), "the key of a disk is kept"

    spine.delete(place.world.cp, place.world.ns, "mach", f"machine-{second[0]}")
    spine.delete(place.world.cp, place.world.ns, "mach", f"machine-{first[0]}")
    for node in (first, second):
        gone(place, "mach", f"machine-{node[0]}")
        assert path_of(node) not in place.held()[0], "released before Trustee released it"
        gone(place, "secrets", node[0])
    check(place, stays)


def test_trustee_loses_everything(place):
    nodes = joined(place, 3)
    place.lose_everything()
    place.world.until(lambda: len(place.held()[0]) == 3, "the keys again", SLOW)
    check(place, *nodes)
    check(place, *nodes, *joined(place))


def test_trustee_restarts(place):
    nodes = joined(place, 2)
    place.restart()
    check(place, *nodes)
    check(place, *nodes, *joined(place))


def test_operator_killed(place):
    nodes = joined(place, 2)
    place.op.kill9()
    place.op.start()
    check(place, *nodes)
    late = place.world.join()  # and in the middle of it
    place.op.kill9()
    place.op.start()
    check(place, *nodes, late)
    leaving = nodes.pop()
    spine.delete(place.world.cp, place.world.ns, "mach", f"machine-{leaving[0]}")
    place.op.kill9()
    place.op.start()
    gone(place, "mach", f"machine-{leaving[0]}")
    check(place, *nodes, late)
    settled(place.world.cp, place.world.ns)
