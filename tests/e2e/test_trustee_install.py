# SPDX-License-Identifier: MIT
"""README.md's "Trustee alone", typed word for word on an API server as the Trustee operator leaves it, once per way of
installing that one; and its CRDs, which declare nothing of a status but isReady, under this operator."""

import json
import os
import sys

import pytest

import test_readme
from conftest import control_plane, retarget
from controlplane import TOP, ControlPlane, json_documents, wait_for
from kbsconfigs import CRDS, GROUP, OVERLAY, PATIENCE, head, until, url
from spine import condition
from tecproc import Operator
from trusteepod import TrusteePod

sys.path.append(os.path.join(TOP, "tests", "nodes"))
import readme  # noqa: E402  pylint: disable=wrong-import-position

DATA = os.path.join(TOP, "tests", "data", "trustee-operator")
KINDS = os.path.join(DATA, "kinds", "trustee.yaml")
HOME = "trustee-operator-system"
LEVELS = {f"pod-security.kubernetes.io/{m}": "privileged" for m in ("enforce", "audit", "warn")}
OLM = "operators.coreos.com"


def test_the_manual_has_the_same_commands():
    with open(os.path.join(TOP, "man", "tec-trustee.7"), encoding="utf-8") as f:
        manual = f.read().replace("\\e", "\\")
    for word in ("controller-manager", "clusterserviceversions"):
        assert f".Bd -literal\n{block(word)}.Ed\n" in manual, word


@pytest.fixture(scope="module", name="bare")
def _bare():
    """With OLM's two kinds, without what works on them. All kinds are there at its start, as a server's caches of them are
    half a minute old."""
    with control_plane(lambda: ControlPlane(crds=os.path.join(DATA, "kinds"))) as made:
        yield made


def crd_path(plural):
    return f"/apis/apiextensions.k8s.io/v1/customresourcedefinitions/{plural}.{GROUP}"


def all_gone(plane):
    return all(plane.api("GET", crd_path(p))[0] == 404 for p in ("kbsconfigs", "trusteeconfigs"))


@pytest.fixture(name="plane")
def _plane(bare):
    """One without KbsConfigs and TrusteeConfigs."""
    for plural in ("kbsconfigs", "trusteeconfigs"):
        for o in (bare.api("GET", f"/apis/{GROUP}/v1alpha1/{plural}")[1] or {}).get("items", ()):
            path = url(o["metadata"]["namespace"], o["metadata"]["name"], plural)
            bare.api("PATCH", path, {"metadata": {"finalizers": None}}, "merge")
        bare.api("DELETE", crd_path(plural))
    wait_for(lambda: all_gone(bare), PATIENCE, "no CRDs")
    return bare


@pytest.fixture(name="operate")
def _operate(plane, tmp_path):
    started = []

    def start(ns):
        kubeconfig = plane.service_account_kubeconfig(ns, "tec-operator")
        started.append(Operator(kubeconfig, ns, str(tmp_path), ["--controllers=trustee", "--role=controller"]))
        return started[-1].start()
    yield start
    for operator in started:
        operator.close()


def serves(plane):
    wait_for(lambda: plane.api("GET", f"/apis/{GROUP}/v1alpha1/trusteeconfigs")[0] == 200, PATIENCE, "the kinds")


def block(word):
    found = [commands for _, commands in readme.blocks("Trustee alone") if word in commands]
    assert len(found) == 1, (word, found)
    return found[0]


def typed(plane, word, home):
    return test_readme.run(plane, test_readme.NS, block(word), home)


def declares(plane, plural):
    versions = plane.get(crd_path(plural))["spec"]["versions"]
    return set(versions[0]["schema"]["openAPIV3Schema"]["properties"]["status"]["properties"])


def takes_over(plane, operate, ns, tmp_path):
    """The operator that was typed, with the rights that were: it writes the whole status."""
    assert "conditions" in declares(plane, "kbsconfigs") and "conditions" in declares(plane, "trusteeconfigs")
    assert plane.get(f"/apis/apps/v1/namespaces/{ns}/deployments/tec-operator")
    operate(ns)
    until(plane, ns, "kbsconfig-sample", "Installed", "Installed")
    TrusteePod(plane, ns, str(tmp_path / "pod")).run()
    assert until(plane, ns, "kbsconfig-sample", "Ready", "Ready")["status"]["isReady"] is True


def test_from_its_manifests(plane, operate, tmp_path):
    plane.kubectl("apply", "-f", KINDS, "-f", os.path.join(DATA, "install.yaml"))
    serves(plane)
    # At its start it sets the level of its namespace.
    space = f"/api/v1/namespaces/{HOME}"
    o = plane.get(space)
    o["metadata"]["labels"].update(LEVELS)
    assert plane.api("PUT", space + "?fieldManager=manager", o)[0] == 200
    head(plane, HOME)
    typed(plane, "deployment/trustee-operator-controller-manager", tmp_path)
    labels = plane.get(space)["metadata"]["labels"]
    assert {k: labels.get(k) for k in LEVELS} == LEVELS and labels["control-plane"] == "controller-manager"
    assert plane.get(f"/apis/apps/v1/namespaces/{HOME}/deployments/trustee-operator-controller-manager") is None
    bindings = "/apis/rbac.authorization.k8s.io/v1/clusterrolebindings"
    assert plane.get(f"{bindings}/trustee-operator-manager-rolebinding") is None
    takes_over(plane, operate, HOME, tmp_path)
    # Nothing of ours owns the namespace, so kubectl delete -k does not remove it with Trustee in it.
    assert "Namespace" not in {o["kind"] for o in plane.read_manifests(OVERLAY)}


def create(plane, path, o, manager):
    status, answer = plane.api("POST", f"{path}?fieldManager={manager}", o)
    assert status == 201, answer
    return answer


def test_from_olm(plane, operate, tmp_path):
    """The CRDs are its catalog operator's, the Deployment is its CSV's."""
    olm = "operators"  # the namespace
    create(plane, "/api/v1/namespaces", {"metadata": {"name": olm}}, "kubectl-create")
    for crd in json_documents(plane.kubectl("create", "--dry-run=client", "-o", "json", "-f", KINDS)):
        create(plane, "/apis/apiextensions.k8s.io/v1/customresourcedefinitions", crd, "catalog")
    serves(plane)
    label = {f"{OLM}/trustee-operator.{olm}": ""}
    made = [create(plane, f"/apis/{OLM}/v1alpha1/namespaces/{olm}/{plural}", {
        "apiVersion": f"{OLM}/v1alpha1", "kind": kind, "metadata": {"name": name, "labels": label}}, "catalog")
            for kind, plural, name in (("Subscription", "subscriptions", "my-trustee-operator"),
                                       ("ClusterServiceVersion", "clusterserviceversions", "trustee-operator.v0.21.0"))]
    theirs = next(o for o in json_documents(plane.kubectl(
        "create", "--dry-run=client", "-o", "json", "-f", os.path.join(DATA, "install.yaml"))) if o["kind"] == "Deployment")
    theirs["metadata"].update(namespace=olm, ownerReferences=[{
        "apiVersion": f"{OLM}/v1alpha1", "kind": "ClusterServiceVersion", "controller": False, "blockOwnerDeletion": False,
        "name": made[1]["metadata"]["name"], "uid": made[1]["metadata"]["uid"]}])
    path = f"/apis/apps/v1/namespaces/{olm}/deployments"
    create(plane, path, theirs, "olm")
    head(plane, olm)
    typed(plane, "clusterserviceversions", tmp_path)
    for plural in ("subscriptions", "clusterserviceversions"):
        assert plane.get(f"/apis/{OLM}/v1alpha1/namespaces/{olm}/{plural}")["items"] == []
    wait_for(lambda: plane.get(f"{path}/trustee-operator-controller-manager") is None, PATIENCE, "no Deployment of the CSV")
    takes_over(plane, operate, olm, tmp_path)


def test_where_nothing_was(plane, operate, tmp_path):
    """Last, as the namespace of the first test may be there."""
    typed(plane, "namespace.yaml", tmp_path)
    serves(plane)
    assert plane.get(f"/api/v1/namespaces/{HOME}")["metadata"]["labels"]["pod-security.kubernetes.io/enforce"] == "baseline"
    head(plane, HOME)
    takes_over(plane, operate, HOME, tmp_path)


def events(plane, ns, reason):
    return [e for e in plane.get(f"/apis/events.k8s.io/v1/namespaces/{ns}/events")["items"] if e["reason"] == reason]


def status_of(plane, ns):
    return plane.get(url(ns, "kbsconfig-sample")).get("status")


def test_its_kinds_under_this_operator(plane, operate, tmp_path):
    """isReady is written all the same, an Event says what to do, and conditions come without a restart."""
    plane.kubectl("apply", "-f", KINDS)
    serves(plane)
    ns = plane.create_namespace("outdated")
    plane.apply(retarget(plane.read_manifests(OVERLAY), ns))
    head(plane, ns)
    status, answer = plane.api("POST", url(ns, plural="trusteeconfigs"), {
        "apiVersion": f"{GROUP}/v1alpha1", "kind": "TrusteeConfig", "metadata": {"name": "t"}, "spec": {"profileType": "Permissive"}})
    assert status == 201, answer
    op = operate(ns)
    wait_for(lambda: status_of(plane, ns) == {"isReady": False}, PATIENCE, "isReady")
    pod = TrusteePod(plane, ns, str(tmp_path)).run()
    wait_for(lambda: status_of(plane, ns) == {"isReady": True}, PATIENCE, "isReady")
    pod.tell_ready(pod.pods()[0]["metadata"]["name"], False)
    wait_for(lambda: status_of(plane, ns) == {"isReady": False}, PATIENCE, "not isReady")

    def told():
        return {e["regarding"]["kind"]: e for e in events(plane, ns, "CRDOutdated")}
    wait_for(lambda: len(told()) == 2, PATIENCE, "the Events")
    assert told()["KbsConfig"]["type"] == "Warning"
    assert "kubectl apply --server-side --force-conflicts -k crd/trustee/" in told()["KbsConfig"]["note"]
    assert "isReady" in plane.get(url(ns, "t", "trusteeconfigs"))["status"]
    assert op.metrics()['tec_crd_outdated{kind="KbsConfig"}'] == 1
    mark = plane.audit.mark()
    wait_for(lambda: len(events(plane, ns, "Ready")) == 1 and len(events(plane, ns, "Installed")) == 1, PATIENCE, "Events")
    plane.kubectl("apply", "--server-side", "--force-conflicts", "-k", CRDS)
    o = until(plane, ns, "kbsconfig-sample", "Ready", "Starting")
    wait_for(lambda: condition(plane.get(url(ns, "t", "trusteeconfigs")), "Configured"), PATIENCE, "conditions")
    assert condition(o, "Installed")["status"] == "True" and condition(o, "CRDOutdated") == {}
    # Each Event once: what could not be written is not told with each attempt.
    assert [len(events(plane, ns, r)) for r in ("Ready", "Installed")] == [1, 1]
    assert not [e for e in events(plane, ns, "Installed") if e.get("series")]
    writes = plane.audit.writes_by(f"system:serviceaccount:{ns}:tec-operator", mark, ignore=("leases", "events"))
    assert len(writes) < 30, json.dumps(writes, indent=1)
    wait_for(lambda: op.metrics()['tec_crd_outdated{kind="KbsConfig"}'] == 0, PATIENCE, "the metric")
