# SPDX-License-Identifier: MIT
"""What an attacker tries, each on a real API server under the rights of k8s/: one function or more per
number, test_attack_NN_what. Each was seen to fail on version 0.1.0."""

import re

import pytest

import spine
from faultproxy import Answer, FaultProxy
from test_listeners import sanitized
from trustee import Held, identity_name, resource_path


# ---- 1


# ---- 2


# ---- 3


# ---- 4


# ---- 5


# ---- 6


# ---- 7


# ---- 8

# A byte that JSON writes as six; what the API server escapes for the sake of HTML.
CONTROL, HTML = "\x01", "<b>&</b>"


def make_map(world, name, data):
    status, answer = world.cp.api("POST", spine.path_of(world.ns, "configmaps"),
                                  {"metadata": {"name": name}, "data": data})
    assert status == 201, answer


def revoked(world, uuid, pem):
    """Deleted, and gone from the broker too."""
    spine.delete(world.cp, world.ns, "mach", f"machine-{uuid}")
    world.gone(uuid)
    if world.watcher:
        world.watcher.revoked |= {identity_name(pem), uuid}
    assert not world.kbs.has_value(identity_name(pem))
    if not world.kbs.external:
        assert resource_path(uuid) not in world.kbs.dump()["resources"]


def unreadable(world):
    """{resource: objects} by the operator's metrics, without zeros."""
    _, text = world.op.health("/metrics")
    found = re.findall(r'tec_watch_unreadable\{resource="(\w+)"\} (\d+)', text)
    return {resource: int(n) for resource, n in found if int(n)}


def grow(world, name):
    """A Secret to 2.3 MB of JSON by metadata that is not ours: as many annotations as an object may have, and
    finalizers of others."""
    others = [f"example.org/{i:04}-{'x' * 50}" for i in range(5000)]
    secret = world.read("secrets", name)
    spine.merge(world.cp, world.ns, "secrets", name, {"metadata": {
        "resourceVersion": secret["metadata"]["resourceVersion"],
        "annotations": {"example.org/notes": CONTROL * 261000},
        "finalizers": secret["metadata"].get("finalizers", []) + others}})


@pytest.mark.parametrize("value", [CONTROL * 420000, HTML * 125000], ids=["control", "html"])
def test_attack_08_one_configmap_stops_nothing(make_world, value):
    world = make_world().start()
    uuid, pem, _ = world.joined()
    later, later_pem, _ = world.joined()
    make_map(world, "notes", {"notes.txt": value})
    make_map(world, "firmware", {"db-d719b2cb-3d3a-4596-a3bc-dad00e67656f": value})
    revoked(world, uuid, pem)  # seen by a watch
    world.op.restart()
    world.until(lambda: unreadable(world), "the metric")
    assert unreadable(world) == {"configmaps": 1}, "what nobody reads of it does not count"
    revoked(world, later, later_pem)  # seen by a list
    world.joined()


def test_attack_08_a_map_of_ours_that_cannot_be_read(make_world):
    """What was declared stays, the cluster says which one it is, and reducing it ends all of it."""
    world = make_world().start()
    uuid, pem, _ = world.joined()
    world.rest()
    before = world.kbs.dump()["reference_values"]
    spine.merge(world.cp, world.ns, "configmaps", "image-pcrs", {"data": {"image-pcrs.json": CONTROL * 420000}})
    cluster = world.condition("tec", "tec", "Installed", "Conflict")
    message = spine.condition(cluster, "Installed")["message"]
    assert "image-pcrs is larger than 2 MiB and cannot be read" in message, message
    events = world.until(lambda: [e for e in world.cp.get(f"/apis/events.k8s.io/v1/namespaces/{world.ns}/events")["items"]
                                  if e.get("reason") == "Unreadable"], "the Event")
    assert "ConfigMap image-pcrs" in events[0]["note"]
    assert world.kbs.dump()["reference_values"] == before
    spine.merge(world.cp, world.ns, "configmaps", "image-pcrs", {"data": {"image-pcrs.json": "{}"}})
    world.condition("tec", "tec", "Installed", "InstallationCompleted")
    revoked(world, uuid, pem)


def test_attack_08_secrets_grown_by_metadata(make_world):
    world = make_world().start()
    uuid, pem, _ = world.joined()
    name = world.key_of(pem)["metadata"]["name"]
    root = world.secret_root(uuid)
    for secret in (uuid, name):
        grow(world, secret)
    world.rest()
    world.op.kill9()
    if not world.kbs.external:
        world.kbs.kill()
        world.kbs.start()  # it lost everything
    world.op.start()
    world.poke()
    world.ready(uuid)
    world.until(lambda: world.kbs.has_value(identity_name(pem)), "the identity again")
    assert unreadable(world) == {}
    if not world.kbs.external:
        world.until(lambda: Held(world.kbs.dump()).resources == {resource_path(uuid): root}, "the key again")
    revoked(world, uuid, pem)


@pytest.mark.parametrize("lists", ["configmaps", "services|deployments|jobs|pods"])
def test_attack_08_revocation_waits_for_no_other_list(cp, ns, tmp_path, make_world, lists):
    silent = []

    def rule(request):
        fits = silent and request.method == "GET" and re.search(rf"/({lists})[?]", request.target)
        return Answer(500, "InternalError") if fits else None

    proxy = FaultProxy(cp.service_account_kubeconfig(ns, "tec-operator"), str(tmp_path), rule)
    try:
        world = make_world().start(kubeconfig=proxy.kubeconfig)
        uuid, pem, _ = world.joined()
        world.rest()
        silent.append(True)
        world.op.restart()  # and ready: the listeners read none of them
        spine.delete(cp, ns, "mach", f"machine-{uuid}")
        world.gone(uuid, timeout=40)
        assert not world.kbs.has_value(identity_name(pem))
        if world.watcher:
            world.watcher.revoked |= {identity_name(pem), uuid}
        silent.clear()
        world.until(lambda: "count=5" in world.op.log_text().split("pid=")[-1], "the other controllers", 60)
        world.joined()
        world.op.terminate()
    finally:
        proxy.close()


def test_attack_08_reading_large_objects_holds_little(make_world):
    world = make_world().start()

    def peak(maps):
        world.op.restart()
        world.until(lambda: unreadable(world).get("configmaps", 0) == maps, "the list")
        with open(f"/proc/{world.op.pid}/status", encoding="ascii") as f:
            return int(re.search(r"VmHWM:\s+(\d+) kB", f.read())[1])

    before = peak(0)
    for i in range(16):
        make_map(world, f"firmware-{i}", {"db-x": "<" * 900000})  # 5.4 MB each as the API server writes JSON
    after = peak(16)
    # A sanitizer keeps freed memory on purpose.
    assert sanitized() or after - before < 8192, (before, after)


# ---- 9


# ---- 10


# ---- 11


# ---- 12


# ---- 13


# ---- 14
