# SPDX-License-Identifier: MIT
"""The main job on a real API server: from a node's first request to an approved attestation key, and back."""

import base64
import hashlib
import json
import time

import pytest

import spine
from controlplane import PATIENCE
from kubeapi import describe

INSTALLED = {
    "configmaps": ["trustee-data", "trustee-policies", "trustee-rv-data", "image-pcrs"],
    "secrets": ["trustee-auth", "trustee-token"],
    "services": ["kbs-service", "kbs-admin", "register-server", "attestation-key-register"],
    "deployments": ["trustee-deployment"],
}


def account(ns):
    return f"system:serviceaccount:{ns}:tec-operator"


def installed(cp, ns, name="tec"):
    return spine.wait_condition(cp, ns, "tec", name, "Installed", "InstallationCompleted")


def settled(cp, ns, quiet=4, timeout=30):  # counts are written about 3 s after what they count
    """Waits until the operator has written nothing for QUIET seconds."""
    end = time.monotonic() + timeout * PATIENCE
    mark, since = cp.audit.mark(), time.monotonic()
    while time.monotonic() - since < quiet:
        assert time.monotonic() < end, describe(cp.writes_by(account(ns), mark, ignore=("leases",)))
        if cp.writes_by(account(ns), mark, ignore=("leases",)):
            mark, since = cp.audit.mark(), time.monotonic()
        time.sleep(0.1)


def machine_of(cp, ns, uuid):
    found = [m for m in spine.items(cp, ns, "mach") if m["spec"]["id"] == uuid]
    assert len(found) <= 1, found
    return found[0] if found else None


def luks_key(cp, ns, uuid):
    secret = spine.read(cp, ns, "secrets", uuid)
    return base64.b64decode(secret["data"]["root"]) if secret else None


def joined(cp, ns, op, pem):
    """A node's whole first boot. Returns (uuid, Machine, AttestationKey) once the key is approved."""
    uuid = spine.first_boot(op)
    status, answer = spine.register(op, pem, uuid)
    assert (status, answer) == (201, {"status": "success"})
    name = f"machine-{uuid}"
    spine.wait_condition(cp, ns, "mach", name, "AttestationKeyBound", "Bound")
    machine = spine.wait_condition(cp, ns, "mach", name, "KeyReady", "KeyMade")
    ak = [k for k in spine.items(cp, ns, "ak") if k["spec"].get("uuid") == uuid][0]
    return uuid, machine, spine.wait_condition(cp, ns, "ak", ak["metadata"]["name"], "Approved",
                                               "MachineCreated")


def owner_uids(obj):
    return [o["uid"] for o in obj["metadata"].get("ownerReferences", [])]


def test_install_makes_every_object_once(cp, ns, start_operator):
    cluster = spine.make_cluster(cp, ns)
    op = start_operator(ns)
    installed(cp, ns)
    for plural, names in INSTALLED.items():
        for name in names:
            obj = spine.read(cp, ns, plural, name)
            assert obj, f"{plural}/{name} is missing"
            want = [] if name == "image-pcrs" else [cluster["metadata"]["uid"]]
            assert owner_uids(obj) == want, f"{plural}/{name}"
    settled(cp, ns)
    mark = cp.audit.mark()
    op.restart()
    settled(cp, ns)
    assert cp.writes_by(account(ns), mark, ignore=("leases",)) == [], \
        describe(cp.writes_by(account(ns), mark))


def test_main_job_with_a_real_tpm_key(cp, ns, start_operator, tpm):
    spine.make_cluster(cp, ns)
    op = start_operator(ns)
    installed(cp, ns)
    uuid, machine, ak = joined(cp, ns, op, tpm.make_ak())

    assert spine.MACHINE_FINALIZER in machine["metadata"]["finalizers"]
    assert owner_uids(ak) == [machine["metadata"]["uid"]]
    key = luks_key(cp, ns, uuid)
    parsed = json.loads(key)
    assert set(parsed) == {"key_type", "key"} and parsed["key_type"] == "oct"
    assert len(parsed["key"]) == 32 and len(base64.b64decode(parsed["key"])) == 24
    secret = spine.read(cp, ns, "secrets", uuid)
    assert secret["immutable"] is True and secret["type"] == "Opaque"
    assert owner_uids(secret) == [machine["metadata"]["uid"]]
    machine = spine.read(cp, ns, "mach", f"machine-{uuid}")
    assert machine["metadata"]["annotations"][spine.KEY_SHA256] == \
        f"{machine['metadata']['uid']} {hashlib.sha256(key).hexdigest()}"
    ak_secret = cp.wait_for(lambda: spine.read(cp, ns, "secrets", ak["metadata"]["name"]), 10,
                            "Secret of the attestation key")
    assert owner_uids(ak_secret) == [ak["metadata"]["uid"]]
    assert ak_secret["metadata"]["finalizers"] == [spine.SECRET_FINALIZER]
    assert base64.b64decode(ak_secret["data"]["public_key"]).decode() == ak["spec"]["publicKey"]
    assert key.decode() not in op.log_text() and parsed["key"] not in op.log_text()


def test_delete_waits_for_trustee_and_says_so(cp, ns, start_operator):
    spine.make_cluster(cp, ns)
    op = start_operator(ns)
    installed(cp, ns)
    uuid, machine, ak = joined(cp, ns, op, spine.rsa_key())
    key = luks_key(cp, ns, uuid)
    spine.delete(cp, ns, "mach", f"machine-{uuid}")
    obj = spine.wait_condition(cp, ns, "mach", f"machine-{uuid}", "Delivered", "Revoking")
    assert spine.MACHINE_FINALIZER in obj["metadata"]["finalizers"]
    assert "trustee.example.org" in spine.condition(obj, "Delivered")["message"]
    op.restart()
    settled(cp, ns)
    assert luks_key(cp, ns, uuid) == key, "a key was lost or changed while its Machine still stands"
    assert spine.read(cp, ns, "mach", f"machine-{uuid}")


def test_repairs_what_is_deleted_or_edited(cp, ns, start_operator):
    spine.make_cluster(cp, ns)
    start_operator(ns)
    installed(cp, ns)
    settled(cp, ns)
    auth = spine.read(cp, ns, "secrets", "trustee-auth")
    spine.delete(cp, ns, "services", "kbs-service")
    spine.delete(cp, ns, "configmaps", "trustee-data")
    spine.merge(cp, ns, "deployments", "trustee-deployment", {"spec": {"replicas": 0}})
    spine.merge(cp, ns, "configmaps", "trustee-rv-data", {"data": {"reference-values.json": "[1]"}})
    cp.wait_for(lambda: spine.read(cp, ns, "services", "kbs-service"), 20, "the Service again")
    cp.wait_for(lambda: spine.read(cp, ns, "configmaps", "trustee-data"), 20, "the ConfigMap again")
    cp.wait_for(lambda: spine.read(cp, ns, "deployments", "trustee-deployment")["spec"]["replicas"] == 1,
                20, "the Deployment repaired")
    settled(cp, ns)
    # The image controller's own: with no image approved, no register value is a good one.
    values = json.loads(spine.read(cp, ns, "configmaps", "trustee-rv-data")["data"]["reference-values.json"])
    assert {v["name"]: v["value"] for v in values} == {"tpm_pcr4": [], "tpm_pcr14": [], "tpm_svn": ["1"]}
    assert spine.read(cp, ns, "secrets", "trustee-auth")["data"] == auth["data"]


def test_second_cluster_waits_and_takes_over(cp, ns, start_operator):
    spine.make_cluster(cp, ns, "first")
    time.sleep(1.1)  # creationTimestamp has whole seconds
    spine.make_cluster(cp, ns, "second", publicTrusteeAddr="other.example.org")
    start_operator(ns)
    installed(cp, ns, "first")
    spine.wait_condition(cp, ns, "tec", "second", "Installed", "NonUnique")
    spine.delete(cp, ns, "tec", "first")
    installed(cp, ns, "second")


def test_no_address_makes_no_machine(cp, ns, start_operator):
    spine.made(cp, "tec", ns, {}, "tec")
    op = start_operator(ns)
    spine.wait_condition(cp, ns, "tec", "tec", "KnownTrusteeAddress", "NoAddressFound")
    status, headers, body = spine.request(op.register_port, "GET", "/ignition")
    assert status == 503 and "Retry-After" in headers and json.loads(body)["code"] == 503
    assert spine.items(cp, ns, "mach") == []


def test_two_machines_with_one_id(cp, ns, start_operator):
    spine.make_cluster(cp, ns)
    start_operator(ns)
    uuid = spine.new_uuid()
    spine.made(cp, "mach", ns, {"id": uuid}, "older")
    time.sleep(1.1)
    spine.made(cp, "mach", ns, {"id": uuid}, "younger")
    spine.wait_condition(cp, ns, "mach", "older", "KeyReady", "KeyMade")
    spine.wait_condition(cp, ns, "mach", "younger", "KeyReady", "DuplicateID")
    assert owner_uids(spine.read(cp, ns, "secrets", uuid)) == \
        [spine.read(cp, ns, "mach", "older")["metadata"]["uid"]]


def test_lost_key_is_restored_or_reported_never_remade(cp, ns, start_operator):
    spine.make_cluster(cp, ns)
    op = start_operator(ns)
    uuid, _, _ = joined(cp, ns, op, spine.rsa_key())
    settled(cp, ns)
    key = luks_key(cp, ns, uuid)
    spine.delete(cp, ns, "secrets", uuid)
    cp.wait_for(lambda: luks_key(cp, ns, uuid) == key, 20, "the same key restored from memory")
    settled(cp, ns)
    op.terminate()
    spine.delete(cp, ns, "secrets", uuid)
    op.start()
    spine.wait_condition(cp, ns, "mach", f"machine-{uuid}", "KeyReady", "KeyLost")
    settled(cp, ns)
    assert luks_key(cp, ns, uuid) is None


def test_key_first_then_machine(cp, ns, start_operator):
    spine.make_cluster(cp, ns)
    start_operator(ns)
    uuid = spine.new_uuid()
    spine.made(cp, "ak", ns, {"publicKey": spine.rsa_key(), "uuid": uuid}, "by-hand")
    spine.wait_condition(cp, ns, "ak", "by-hand", "Approved", "Registration")
    spine.made(cp, "mach", ns, {"id": uuid}, "later")
    spine.wait_condition(cp, ns, "ak", "by-hand", "Approved", "MachineCreated")


def test_second_key_is_held_until_an_admin_approves(cp, ns, start_operator):
    spine.make_cluster(cp, ns)
    op = start_operator(ns)
    uuid, machine, first = joined(cp, ns, op, spine.rsa_key())
    assert spine.register(op, spine.rsa_key(), uuid)[0] == 201
    second = [k["metadata"]["name"] for k in spine.items(cp, ns, "ak")
              if k["metadata"]["name"] != first["metadata"]["name"]][0]
    spine.wait_condition(cp, ns, "ak", second, "Approved", "MachineHasKey")
    assert owner_uids(spine.read(cp, ns, "ak", second)) == []
    spine.merge(cp, ns, "ak", second, {"metadata": {"annotations": {f"{spine.GROUP}/approved": "true"}}})
    obj = spine.wait_condition(cp, ns, "ak", second, "Approved", "ApprovedManually")
    assert owner_uids(obj) == [machine["metadata"]["uid"]]
    assert f"{spine.GROUP}/approved" not in obj["metadata"]["annotations"]
    obj = spine.wait_condition(cp, ns, "ak", first["metadata"]["name"], "Approved", "MachineHasKey")
    assert owner_uids(obj) == []


def test_arbitrary_public_key_through_the_api(cp, ns, start_operator):
    spine.make_cluster(cp, ns)
    start_operator(ns)
    uuid = spine.new_uuid()
    spine.made(cp, "mach", ns, {"id": uuid}, "m")
    spine.made(cp, "ak", ns, {"publicKey": "not a key", "uuid": uuid}, "odd")
    spine.wait_condition(cp, ns, "ak", "odd", "Approved", "InvalidKey")
    spine.wait_condition(cp, ns, "ak", "odd", "Delivered", "NotApproved")
    spine.made(cp, "ak", ns, {"publicKey": spine.rsa_key(), "uuid": uuid}, "good")
    spine.wait_condition(cp, ns, "ak", "good", "Approved", "MachineCreated")


def test_duplicate_registrations(cp, ns, start_operator):
    spine.make_cluster(cp, ns)
    op = start_operator(ns)
    pem = spine.rsa_key()
    uuid, _, _ = joined(cp, ns, op, pem)
    status, answer = spine.register(op, pem.replace("\n", "\r\n"), uuid)
    assert (status, answer["message"]) == (409, "Public key already registered")
    status, answer = spine.register(op, pem, spine.first_boot(op))
    assert status == 409 and "rebind" in answer["message"]
    assert len(spine.items(cp, ns, "ak")) == 1


def test_listeners_in_processes_of_their_own(cp, ns, start_operator):
    spine.make_cluster(cp, ns)
    controller = start_operator(ns, "--role", "controller")
    register = start_operator(ns, "--role", "register")
    keys = start_operator(ns, "--role", "register-ak")
    installed(cp, ns)
    uuid = spine.first_boot(register)
    assert spine.register(keys, spine.rsa_key(), uuid)[0] == 201
    spine.wait_condition(cp, ns, "mach", f"machine-{uuid}", "KeyReady", "KeyMade")
    with pytest.raises(OSError):
        spine.request(controller.register_port, "GET", "/ignition", timeout=2)
    assert keys.metrics() and register.metrics()
