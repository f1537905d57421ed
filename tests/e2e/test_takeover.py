# SPDX-License-Identifier: MIT
"""The Rust operator is taken away and this one put in its place: no key may change, none may be lost,
and what was approved stays so. The namespace is made as that one leaves it, by a client of its own."""

import base64
import json
import secrets
import time

import pytest

import spine
import trustees
from kubeapi import describe
from teckinds import GROUP, made
from test_images import FINALIZER as IMAGE_FINALIZER
from test_images import boots, entry, fours, reference, values
from test_spine import account, luks_key, owner_uids, settled
from trustees import ends, owner_reference, ready, synced

start_place = trustees.start_place
LONG_AGO = "2026-01-02T03:04:05Z"
LISTENERS = ("register-server", "attestation-key-register")


def post(cp, ns, kind, obj):
    """KIND: as in spine.path_of."""
    obj.setdefault("apiVersion", "apps/v1" if kind == "deployments" else "v1")
    status, answer = cp.api("POST", spine.path_of(ns, kind), obj)
    assert status == 201, answer
    return answer


def condition_of(type_, reason, generation=1):
    return {"type": type_, "status": "True", "reason": reason, "message": "", "lastTransitionTime": LONG_AGO,
            "observedGeneration": generation}


def with_status(cp, ns, kind, obj, *conditions):
    status, answer = cp.api("PATCH", spine.path_of(ns, kind, obj["metadata"]["name"]) + "/status",
                            {"status": {"conditions": list(conditions)}}, "merge")
    assert status == 200, answer
    return answer


class Left:
    """A namespace as the Rust operator leaves it; .nodes: uuid -> trustees.Node of what joined."""

    def __init__(self, cp, ns, kbs):
        self.cp, self.ns, self.nodes = cp, ns, []
        self.cluster = spine.make_cluster(cp, ns)
        self.owner = [owner_reference(self.cluster)]
        self.owned("secrets", "trustee-auth", data={
            "private.key": self.b64(trustees.text_of(kbs.private)),
            "public.pub": self.b64(trustees.text_of(kbs.public))})
        self.services()
        for name in LISTENERS:
            self.deployment(name, {"app": name}, {"name": name, "image": f"quay.io/x/{name}:v0.2.0",
                                                  "args": ["--port", "8000"]}, [])

    @staticmethod
    def b64(text):
        return base64.b64encode(text.encode()).decode()

    def owned(self, kind, name, **members):
        return post(self.cp, self.ns, kind,
                    {"metadata": {"name": name, "ownerReferences": self.owner}, **members})

    def services(self):
        for name, app, port in (("kbs-service", "kbs", 8080), ("register-server", "register-server", 8000),
                                ("attestation-key-register", "attestation-key-register", 8001)):
            self.owned("services", name, spec={
                "selector": {"app": app},
                "ports": [{"name": "kbs-port" if app == "kbs" else "http", "port": port, "targetPort": port}]})

    def deployment(self, name, labels, container, volumes):
        self.owned("deployments", name, spec={
            "replicas": 1, "selector": {"matchLabels": labels},
            "template": {"metadata": {"labels": labels},
                         "spec": {"containers": [container], "volumes": volumes}}})

    def trustee(self):
        """Its Deployment: keys and policies as files, read-only and next to each other."""
        mounts = [("attestation-policy", "/opt/trustee/policies/opa", {"configMap": {"name": "attestation-policy"}}),
                  ("trustee-data", "/opt/trustee", {"configMap": {"name": "trustee-data"}}),
                  ("resource-dir", "/opt/trustee/kbs-repository/default", {"emptyDir": {"medium": "Memory"}})]
        mounts += [(n.uuid, f"/opt/trustee/kbs-repository/default/{n.uuid}", {"secret": {"secretName": n.uuid}})
                   for n in self.nodes]
        self.deployment("trustee-deployment", {"app": "kbs"}, {
            "name": "kbs", "image": "quay.io/x/key-broker-service:v0.17.0",
            "command": ["/usr/local/bin/kbs", "--config-file", "/opt/trustee/kbs-config.toml"],
            "env": [{"name": "RUST_LOG", "value": "debug"}], "ports": [{"containerPort": 8080}],
            "volumeMounts": [{"name": name, "mountPath": path} for name, path, _ in mounts]},
            [{"name": name, **source} for name, _, source in mounts])
        self.owned("configmaps", "trustee-data", data={
            "kbs-config.toml": "[http_server]\n", "policy.rego": "package policy\n",
            "reference-values.json": "[]"})

    def images(self, *names):
        post(self.cp, self.ns, "configmaps", {
            "metadata": {"name": "image-pcrs"},
            "data": {"image-pcrs.json": json.dumps({name: entry(name) for name in names})}})
        self.owned("configmaps", "trustee-rv-data", data={"reference-values.json": json.dumps(
            [{"version": "0.1.0", "name": "tpm_svn", "expiration": "2027-01-02T03:04:05Z", "value": ["1"]}])})
        for name in names:
            image = made(self.cp, "ai", self.ns, {"image": reference(name)}, name,
                         finalizers=[IMAGE_FINALIZER], ownerReferences=self.owner)
            with_status(self.cp, self.ns, "ai", image, condition_of("Committed", "ImageCommitted"))

    def machine(self, by_listener=True):
        """(Machine, its key)"""
        uuid = spine.new_uuid()
        key = json.dumps({"key_type": "oct", "key": base64.b64encode(secrets.token_bytes(24)).decode()},
                         separators=(",", ":"))
        machine = made(self.cp, "mach", self.ns, {"id": uuid}, f"machine-{uuid}",
                       finalizers=[spine.MACHINE_FINALIZER],
                       **({"ownerReferences": self.owner} if by_listener else {}))
        post(self.cp, self.ns, "secrets", {
            "metadata": {"name": uuid, "ownerReferences": [owner_reference(machine)]},
            "data": {"root": self.b64(key)}})
        return machine, key.encode()

    def node(self, by_listener=True):
        machine, key = self.machine(by_listener)
        uuid, pem, name = machine["spec"]["id"], spine.rsa_key(), f"ak-{spine.new_uuid()}"
        ak = made(self.cp, "ak", self.ns, {"publicKey": pem, "uuid": uuid}, name,
                  ownerReferences=[owner_reference(machine)])
        with_status(self.cp, self.ns, "ak", ak, condition_of("Approved", "MachineCreated"))
        post(self.cp, self.ns, "secrets", {
            "metadata": {"name": name, "ownerReferences": [owner_reference(ak)],
                         "finalizers": [spine.SECRET_FINALIZER]},
            "data": {"public_key": self.b64(pem)}})
        with_status(self.cp, self.ns, "mach", machine,
                    condition_of("AttestationKeyApproved", "AttestationKeyApproved"))
        self.nodes.append(trustees.Node(uuid, pem, name, key))
        return self.nodes[-1]


def secrets_of(cp, ns):
    """What would show that one was written."""
    return {s["metadata"]["name"]: (s["data"], s["metadata"]["resourceVersion"], owner_uids(s))
            for s in spine.items(cp, ns, "secrets")}


@pytest.fixture(name="place")
def _place(start_place):
    return start_place()


@pytest.fixture(name="left")
def _left(cp, ns, place):
    left = Left(cp, ns, place.kbs)
    left.node()
    left.node(by_listener=False)
    left.images("a", "b")
    trustees.before_the_operator()
    return left


def test_keys_images_and_approvals_are_taken_over(cp, ns, start_operator, place, left):
    waiting, waiting_key = left.machine()  # has not registered its key yet
    stray = spine.rsa_key()
    made(cp, "ak", ns, {"publicKey": stray, "uuid": spine.new_uuid()}, "stray")
    before = secrets_of(cp, ns)
    time.sleep(1.1)  # all of it is older than the operator, in whole seconds
    op = start_operator(ns, "--kbs-url", place.url)
    for node in left.nodes:
        ready(cp, ns, node)
        assert place.holds(node)
        ak = spine.read(cp, ns, "ak", node.ak)
        approved = spine.condition(ak, "Approved")
        assert (approved["status"], approved["reason"], approved["lastTransitionTime"]) == (
            "True", "MachineCreated", LONG_AGO)
        assert owner_uids(ak) == [spine.read(cp, ns, "mach", node.machine)["metadata"]["uid"]]
    uuid = waiting["spec"]["id"]
    spine.wait_condition(cp, ns, "mach", f"machine-{uuid}", "KeyReady", "KeyMade")
    assert luks_key(cp, ns, uuid) == waiting_key
    assert f"default/{uuid}/root" not in place.kbs.dump()["resources"], "no key is bound to it yet"
    spine.wait_condition(cp, ns, "ak", "stray", "Approved", "Registration")
    assert trustees.identity_name(stray) not in place.values()

    cp.wait_for(lambda: not any(spine.read(cp, ns, "deployments", name) for name in LISTENERS), 20,
                "the end of the listeners' Deployments")
    pairs = [(loader, kernel) for loader in "ab" for kernel in "ab"]
    cp.wait_for(lambda: values(cp, ns)[1] == boots(*pairs), 20, "the images' values")
    synced(cp, ns)
    there = place.values()
    assert there["tpm_pcr4"] == fours(*pairs)
    assert all(there[name]["images"] for name in boots(*pairs))
    for name in "ab":
        committed = spine.condition(spine.read(cp, ns, "ai", name), "Committed")
        assert (committed["status"], committed["lastTransitionTime"]) == ("True", LONG_AGO)
    assert cp.get(f"/apis/batch/v1/namespaces/{ns}/jobs")["items"] == []

    # A node that boots now is served by the same Services' names, and joins the others.
    trustees.delivered(cp, ns, op, place)
    settled(cp, ns)
    after = secrets_of(cp, ns)
    assert {name: after[name] for name in before} == before, "a Secret was written"


def test_started_again_it_writes_nothing(cp, ns, start_operator, place, left):
    op = start_operator(ns, "--kbs-url", place.url)
    for node in left.nodes:
        ready(cp, ns, node)
    synced(cp, ns)
    settled(cp, ns, 5)  # the clean sentinel is written a while after the last change
    mark, sent = cp.audit.mark(), len(place.proxy.seen())
    op.restart()
    cp.wait_for(lambda: len(place.proxy.seen()) > sent, 20, "the question what Trustee holds")
    settled(cp, ns, 3)
    writes = cp.writes_by(account(ns), mark, ignore=("leases",))
    assert writes == [], describe(writes)
    assert {s.verb for s in place.proxy.seen()[sent:]} == {"refvalue-get"}


def test_what_was_taken_over_can_be_taken_back(cp, ns, start_operator, place, left):
    start_operator(ns, "--kbs-url", place.url)
    first, second = left.nodes
    for node in left.nodes:
        ready(cp, ns, node)
    spine.delete(cp, ns, "mach", first.machine)
    ends(cp, ns, first)
    assert place.clean(first) and place.holds(second)
    cp.wait_for(lambda: not spine.read(cp, ns, "secrets", first.ak), 60, "the end of the key's Secret")
    assert luks_key(cp, ns, second.uuid) == second.key
    spine.delete(cp, ns, "ak", second.ak)
    cp.wait_for(lambda: place.identity(second) is None, 20, "the end of the identity")
    cp.wait_for(lambda: not spine.read(cp, ns, "secrets", second.ak), 20, "the end of the key's Secret")
    assert place.key(second) == second.key
    spine.delete(cp, ns, "ai", "a")
    cp.wait_for(lambda: not spine.read(cp, ns, "ai", "a"), 30, "the end of the image")
    assert place.values()["tpm_pcr4"] == fours("bb")
    assert sorted(name for name in place.values() if name.startswith("boot.")) == boots("bb")


def test_secret_that_holds_no_key_is_told_and_left_alone(cp, ns, start_operator, place, left):
    broken, _ = left.machine()
    uuid = broken["spec"]["id"]
    spine.merge(cp, ns, "secrets", uuid, {"data": {"root": left.b64("no key")}})
    time.sleep(1.1)  # older than the operator, in whole seconds
    start_operator(ns, "--kbs-url", place.url)
    spine.wait_condition(cp, ns, "mach", broken["metadata"]["name"], "KeyReady", "KeyMalformed")
    settled(cp, ns)
    assert luks_key(cp, ns, uuid) == b"no key"
    assert f"default/{uuid}/root" not in place.kbs.dump()["resources"]


def test_trustees_own_deployment(cp, ns, start_operator, place, left):
    left.trustee()
    start_operator(ns, "--kbs-url", place.url)
    for node in left.nodes:
        ready(cp, ns, node)
        assert place.holds(node)
    spine.wait_condition(cp, ns, "tec", "tec", "Installed", "InstallationCompleted")
    synced(cp, ns)
    settled(cp, ns)
    deployment = spine.read(cp, ns, "deployments", "trustee-deployment")
    container, guard = deployment["spec"]["template"]["spec"]["containers"]
    assert (container["name"], guard["name"]) == ("kbs", "guard")
    assert container["command"][-1] == "/etc/kbs/kbs-config.toml"
    assert "--config-file" in container["command"]
    assert "debug" not in [e.get("value") for e in container["env"]], "it would log evidence"
    paths = [m["mountPath"] for m in container["volumeMounts"]]
    assert {"/etc/kbs", "/opt/trustee/keys"} <= set(paths)
    # Of another manager, so applying ours over it would keep them, and the keys as files with them.
    assert not [p for p in paths if p in ("/opt/trustee", "/opt/trustee/policies/opa") or
                p.startswith("/opt/trustee/kbs-repository")], paths
    volumes = {v["name"] for v in deployment["spec"]["template"]["spec"]["volumes"]}
    assert not volumes & {"attestation-policy", "resource-dir", *(n.uuid for n in left.nodes)}, volumes
    assert all(luks_key(cp, ns, node.uuid) == node.key for node in left.nodes)
