# SPDX-License-Identifier: MIT
"""Delivery by volumes on a real API server: an old Trustee serves what its Pod was started with."""

import base64
import time

import pytest

import spine
from kubelet import Kubelet
from test_spine import account, installed, luks_key, machine_of, settled

VOLUMES = {"delivery": "Volumes", "keyIsolation": "Shared"}
ADMIN = {"delivery": "AdminAPI", "keyIsolation": "Shared"}
SLOW = 60  # two restarts may be ten seconds apart


@pytest.fixture
def kubelet(cp, ns, tmp_path):
    k = Kubelet(cp, ns, str(tmp_path)).start()
    yield k
    k.stop()


@pytest.fixture
def held(kubelet, start_kbs):
    """held() -> what Trustee would serve now, as tec-test-kbs reads its files."""
    kbs = start_kbs(from_dir=kubelet.served)
    return kbs.dump


def deployment(cp, ns):
    return spine.read(cp, ns, "deployments", "trustee-deployment")


def generation(cp, ns):
    return deployment(cp, ns)["metadata"]["generation"]


def ready(cp, ns, uuid):
    return spine.wait_condition(cp, ns, "mach", f"machine-{uuid}", "Ready", "AllReady", SLOW)


def synced(cp, ns):
    return spine.wait_condition(cp, ns, "tec", "tec", "TrusteeSynced", "Synced", SLOW)


def gone(cp, ns, uuid):
    cp.wait_for(lambda: machine_of(cp, ns, uuid) is None, SLOW, f"Machine of {uuid} to be gone")


def joined(op):
    """(uuid, pem) of a node that has registered; nothing is waited for."""
    uuid, pem = spine.first_boot(op), spine.rsa_key()
    assert spine.register(op, pem, uuid)[0] == 201
    return uuid, pem


def path(uuid):
    return f"default/{uuid}/root"


def test_a_node_is_served_and_taken_back(cp, ns, start_operator, kubelet, held):
    spine.make_cluster(cp, ns, trustee=VOLUMES)
    op = start_operator(ns)
    installed(cp, ns)
    synced(cp, ns)
    policies = spine.read(cp, ns, "configmaps", "trustee-policies")["data"]
    now = held()
    assert now["attestation_policies"]["default_cpu.rego"] == policies["default_cpu.rego"]
    assert now["resource_policies"]["resource-policy.rego"] == policies["resource-policy.rego"]

    uuid, pem = joined(op)
    ready(cp, ns, uuid)
    now = held()
    assert now["resources"] == {path(uuid): base64.b64encode(luks_key(cp, ns, uuid)).decode()}
    assert list(now["trusted_ak_keys"].values()) == [pem]

    # A second one, and the operator dies in the middle of it.
    other, _ = joined(op)
    op.kill9()
    op.start()
    ready(cp, ns, other)
    assert set(held()["resources"]) == {path(uuid), path(other)}
    synced(cp, ns)
    settled(cp, ns)
    before, mark = generation(cp, ns), cp.audit.mark()
    op.restart()
    settled(cp, ns)
    assert cp.writes_by(account(ns), mark, ignore=("leases",)) == []
    assert generation(cp, ns) == before

    # Taken back: at once out of the template, released when the new Pod is the only one.
    kubelet.held = True
    spine.delete(cp, ns, "mach", f"machine-{uuid}")
    cp.wait_for(lambda: generation(cp, ns) > before, 9, "a template without it")
    settled(cp, ns)
    assert machine_of(cp, ns, uuid) and luks_key(cp, ns, uuid)
    kubelet.held = False
    gone(cp, ns, uuid)
    assert set(held()["resources"]) == {path(other)}
    assert pem not in held()["trusted_ak_keys"].values()
    ready(cp, ns, other)


def test_many_nodes_are_few_restarts(cp, ns, start_operator, kubelet, held):
    spine.make_cluster(cp, ns, trustee=VOLUMES)
    op = start_operator(ns, "--rate-limit", "off")
    installed(cp, ns)
    synced(cp, ns)
    before, begin = generation(cp, ns), time.monotonic()
    uuids = [joined(op)[0] for _ in range(20)]
    for uuid in uuids:
        ready(cp, ns, uuid)
    assert set(held()["resources"]) == {path(u) for u in uuids}
    assert len(held()["trusted_ak_keys"]) == 20
    # What comes within ten seconds is one; a slow machine needs longer for its twenty nodes.
    assert generation(cp, ns) - before <= max(5, (time.monotonic() - begin) / 10 + 1)
    settled(cp, ns)


def test_switch_there_and_back(cp, ns, start_operator, kubelet, held):
    spine.make_cluster(cp, ns, trustee=ADMIN)
    op = start_operator(ns)
    installed(cp, ns)
    uuid, pem = joined(op)
    spine.wait_condition(cp, ns, "mach", f"machine-{uuid}", "AttestationKeyBound", "Bound")
    key = cp.wait_for(lambda: spine.read(cp, ns, "secrets", uuid), 10, "the key")

    spine.merge(cp, ns, "tec", "tec", {"spec": {"trustee": VOLUMES}})
    ready(cp, ns, uuid)
    assert set(held()["resources"]) == {path(uuid)}
    assert list(held()["trusted_ak_keys"].values()) == [pem]
    synced(cp, ns)
    pod = deployment(cp, ns)["spec"]["template"]["spec"]
    assert "initContainers" not in pod
    assert uuid in [v["name"] for v in pod["volumes"]]

    spine.merge(cp, ns, "tec", "tec", {"spec": {"trustee": ADMIN}})
    cp.wait_for(lambda: deployment(cp, ns)["spec"]["template"]["spec"].get("initContainers"), 20,
                "the Pod of the admin API")
    pod = deployment(cp, ns)["spec"]["template"]["spec"]
    assert not {uuid, "trusted-ak-keys"} & {v["name"] for v in pod["volumes"]}
    # There is no Trustee behind it: what files had confirmed counts no more.
    spine.wait_condition(cp, ns, "mach", f"machine-{uuid}", "Delivered", "NotAvailable")
    spine.delete(cp, ns, "mach", f"machine-{uuid}")
    spine.wait_condition(cp, ns, "mach", f"machine-{uuid}", "Delivered", "Revoking")
    assert spine.read(cp, ns, "secrets", uuid)["metadata"]["uid"] == key["metadata"]["uid"]

    # And once more: now nothing but files has to go.
    spine.merge(cp, ns, "tec", "tec", {"spec": {"trustee": VOLUMES}})
    gone(cp, ns, uuid)
    assert held()["resources"] == {}
