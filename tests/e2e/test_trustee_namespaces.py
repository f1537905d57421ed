# SPDX-License-Identifier: MIT
"""KbsConfigs in several namespaces and beside TrustedExecutionClusters: whose rights are enough for what, which Lease there
is, and what an object is told in whose namespace nobody works."""

import copy
import os
import shutil

import pytest

from controlplane import TOP, wait_for
from kbsconfigs import (GROUP, OVERLAY, PATIENCE, deployment, head, make, operator, place, plane, rights,  # noqa: F401
                        until, url)
from spine import make_cluster, path_of, wait_condition

LEASE = "178dc119.confidentialcontainers.org"


def moved(manifests, names, suffix):
    """The manifests with other namespaces, and what is of the whole cluster under other names."""
    out = [copy.deepcopy(o) for o in manifests]
    for o in out:
        meta = o["metadata"]
        if "namespace" in meta:
            meta["namespace"] = names[meta["namespace"]]
        if o["kind"].startswith("ClusterRole"):
            meta["name"] += suffix
        if o["kind"] == "ClusterRoleBinding":
            o["roleRef"]["name"] += suffix
        for subject in o.get("subjects", ()):
            subject["namespace"] = names[subject["namespace"]]
    return out


def lease_holder(plane, ns, name):
    status, o = plane.api("GET", f"/apis/coordination.k8s.io/v1/namespaces/{ns}/leases/{name}")
    return o["spec"].get("holderIdentity") if status == 200 else None


@pytest.fixture(name="elsewhere")
def _elsewhere(plane, place):
    """The rights of the whole cluster, for the account of place."""
    found = [o for o in plane.read_manifests(OVERLAY) if o["kind"].startswith("ClusterRole")]
    assert len(found) == 2
    made = moved(found, {"trustee-operator-system": place}, f"-{place}")
    plane.apply(made)
    yield
    for o in made:
        plural = o["kind"].lower() + "s"
        plane.api("DELETE", f"/apis/rbac.authorization.k8s.io/v1/{plural}/{o['metadata']['name']}")


def test_a_namespace_that_is_not_watched(plane, place, elsewhere, operator):
    other = plane.create_namespace("elsewhere")
    make(plane, other, "k", kbsConfigMapName="conf")
    status, answer = plane.api("POST", url(other, plural="trusteeconfigs"), {
        "apiVersion": f"{GROUP}/v1alpha1", "kind": "TrusteeConfig", "metadata": {"name": "t"},
        "spec": {"profileType": "Permissive"}})
    assert status == 201, answer
    make(plane, other, "theirs", kbsConfigMapName="conf")
    status, answer = plane.api("PATCH", url(other, "theirs") + "/status", {"status": {"isReady": True}},
                               "application/merge-patch+json")
    assert status == 200, answer
    operator(place)
    o = until(plane, other, "k", "Installed", "NotWatched", f"No operator watches namespace {other}.")
    assert o["status"]["isReady"] is False and "finalizers" not in o["metadata"]
    until(plane, other, "t", "Configured", "NotWatched", plural="trusteeconfigs")
    assert plane.get(url(other, "theirs"))["status"] == {"isReady": True}, "another operator's"
    # In its own namespace it works.
    head(plane, place)
    until(plane, place, "kbsconfig-sample", "Installed", "Installed")


@pytest.fixture(name="beside")
def _beside(plane, tmp_path):
    """k8s/ with k8s/trustee/beside as its component says, built by kubectl."""
    for folder in ("k8s", "crd"):
        shutil.copytree(os.path.join(TOP, folder), tmp_path / folder)
    overlay = tmp_path / "overlay"
    overlay.mkdir()
    (overlay / "kustomization.yaml").write_text("resources: [../k8s]\ncomponents: [../k8s/trustee/beside]\n")
    return plane.read_manifests(str(overlay))


def test_both_by_one_operator(plane, ns, beside, start_operator):
    """The rights of the component and no more, its arguments, a namespace for each Trustee, two Leases."""
    trustees = plane.create_namespace("trustees")
    names = {"trusted-execution-clusters": ns, "trustee-operator-system": trustees}
    wanted = ("ServiceAccount", "Role", "RoleBinding", "ClusterRole", "ClusterRoleBinding")
    plane.apply(moved([o for o in beside if o["kind"] in wanted], names, f"-{ns}"))
    args = next(o for o in beside if o["kind"] == "Deployment")["spec"]["template"]["spec"]["containers"][0]["args"]
    args = [a.replace("trustee-operator-system", trustees) for a in args if "registry-auth" not in a]
    assert "--controllers=cluster,trustee" in args and f"--trustee-namespaces={trustees}" in args
    start_operator(ns, *args)
    make_cluster(plane, ns)
    head(plane, trustees)
    until(plane, trustees, "kbsconfig-sample", "Installed", "Installed")
    assert deployment(plane, trustees)["metadata"]["ownerReferences"][0]["kind"] == "KbsConfig"
    wait_condition(plane, ns, "tec", "tec", "Installed", "InstallationCompleted", PATIENCE)
    theirs = plane.get(path_of(ns, "deployments", "trustee-deployment"))
    assert theirs["metadata"]["ownerReferences"][0]["kind"] == "TrustedExecutionCluster"
    assert lease_holder(plane, ns, "tec-operator")
    assert lease_holder(plane, trustees, LEASE), "where the Trustee operator would have its own"
    assert lease_holder(plane, ns, LEASE) is None
    assert plane.api("DELETE", url(trustees, "kbsconfig-sample"))[0] == 200
    wait_for(lambda: plane.api("GET", url(trustees, "kbsconfig-sample"))[0] == 404, PATIENCE, "no KbsConfig")
    for kind in ("clusterroles", "clusterrolebindings"):
        plane.api("DELETE", f"/apis/rbac.authorization.k8s.io/v1/{kind}/tec-operator-trustee-elsewhere-{ns}")
