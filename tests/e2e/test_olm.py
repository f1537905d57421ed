# SPDX-License-Identifier: MIT
"""The OLM bundle that build-aux/olm.py makes of k8s/: what `operator-sdk bundle validate` asks for, the API server's opinion of
it, an operator that has the rights of its CSV and no more, and a catalog that upgrades."""

import copy
import glob
import json
import os
import re
import sys

import pytest

from controlplane import TOP
from kbsconfigs import PATIENCE, head, plane, until  # noqa: F401
from spine import make_cluster, wait_condition

sys.path.insert(0, os.path.join(TOP, "build-aux"))
import olm  # noqa: E402

VERSION, IMAGE = "0.3.0", "registry.example.org/tec-operator-bundle:0.3.0"
CSV = "manifests/tec-operator.clusterserviceversion.yaml"
SEMVER = re.compile(r"(0|[1-9]\d*)\.(0|[1-9]\d*)\.(0|[1-9]\d*)$")
# Kinds that OLM takes from a bundle beside CSV and CRDs.
KINDS = {"Service", "ServiceAccount", "ConfigMap", "Secret", "Role", "RoleBinding", "ClusterRole", "ClusterRoleBinding",
         "PodDisruptionBudget", "PriorityClass", "NetworkPolicy"}
MODES = ["OwnNamespace", "SingleNamespace", "MultiNamespace", "AllNamespaces"]
PREFIX = "operators.operatorframework.io.bundle."


@pytest.fixture(scope="module", name="objects")
def _objects(plane):
    return [o for folder in ("k8s", "k8s/trustee") for o in plane.read_manifests(os.path.join(TOP, folder))]


@pytest.fixture(scope="module", name="samples")
def _samples(plane):
    found = glob.glob(os.path.join(TOP, "k8s", "samples", "*.yaml")) + \
        glob.glob(os.path.join(TOP, "k8s", "trustee", "samples", "*.yaml"))
    return [o for f in sorted(found) for o in plane.read_manifests(f)]


@pytest.fixture(scope="module", name="files")
def _files(objects, samples):
    return olm.bundle(objects, samples, VERSION)


def strategy(files):
    return files[CSV]["spec"]["install"]["spec"]


def csv_complaints(files):
    csv = files[CSV]
    spec, meta = csv["spec"], csv["metadata"]
    if not SEMVER.match(spec["version"]) or meta["name"] != f"tec-operator.v{spec['version']}":
        yield "the name is not PACKAGE.vVERSION"
    for member, type_ in (("displayName", str), ("description", str), ("maturity", str), ("provider", dict),
                          ("keywords", list), ("links", list), ("minKubeVersion", str)):
        if not spec.get(member) or not isinstance(spec[member], type_):
            yield f"spec.{member}"
    if [m["type"] for m in spec["installModes"]] != MODES or not any(m["supported"] for m in spec["installModes"]):
        yield "installModes"
    permitted = {p["serviceAccountName"] for p in strategy(files)["permissions"]}
    for d in strategy(files)["deployments"]:
        template = d["spec"]["template"]
        if template["spec"]["serviceAccountName"] not in permitted:
            yield f"Deployment {d['name']} has an account without permissions"
        if not d["spec"]["selector"]["matchLabels"].items() <= template["metadata"]["labels"].items():
            yield f"Deployment {d['name']} does not select its Pods"
    for p in strategy(files)["permissions"] + strategy(files)["clusterPermissions"]:
        for rule in p["rules"]:
            if not rule["verbs"] or not rule["resources"] or "*" in rule["verbs"] + rule["resources"]:
                yield f"a rule of {p['serviceAccountName']}: {rule}"


def image_complaints(files):
    listed = {i["image"] for i in files[CSV]["spec"]["relatedImages"]}
    names = [i["name"] for i in files[CSV]["spec"]["relatedImages"]]
    if len(set(names)) != len(names):
        yield "a name of relatedImages is there twice"
    for d in strategy(files)["deployments"]:
        for c in d["spec"]["template"]["spec"]["containers"]:
            for image in [c["image"]] + [e["value"] for e in c["env"] if "IMAGE" in e["name"]]:
                if image not in listed:
                    yield f"{image} is not among relatedImages"


def kind_complaints(files):
    crds = {o["metadata"]["name"]: o for o in files.values() if o.get("kind") == "CustomResourceDefinition"}
    owned = {c["name"]: c for c in files[CSV]["spec"]["customresourcedefinitions"]["owned"]}
    for name in crds.keys() ^ owned.keys():
        yield f"CRD {name} is only in one of bundle and CSV"
    for name in crds.keys() & owned.keys():
        versions = [v["name"] for v in crds[name]["spec"]["versions"] if v["served"]]
        if owned[name]["version"] not in versions or owned[name]["kind"] != crds[name]["spec"]["names"]["kind"]:
            yield f"CRD {name} has another kind or version"
    kinds = {(crds[n]["spec"]["group"], c["kind"]) for n, c in owned.items() if n in crds}
    for example in json.loads(files[CSV]["metadata"]["annotations"]["alm-examples"]):
        if (example["apiVersion"].partition("/")[0], example["kind"]) not in kinds:
            yield f"an example of {example['kind']}, which is not owned"


def complaints(files):
    """What is wrong with a bundle."""
    found = [*csv_complaints(files), *image_complaints(files), *kind_complaints(files)]
    manifests = {p: o for p, o in files.items() if p.startswith("manifests/")}
    if [p for p, o in manifests.items() if o["kind"] == "ClusterServiceVersion"] != [CSV]:
        found.append("not exactly one CSV")
    for path, o in manifests.items():
        if o["kind"] not in KINDS | {"ClusterServiceVersion", "CustomResourceDefinition"}:
            found.append(f"{path}: OLM does not take a {o['kind']}")
        if path != CSV and "namespace" in o["metadata"]:
            found.append(f"{path}: OLM decides about the namespace")
        if len(json.dumps(o)) > 1 << 20:
            found.append(f"{path}: larger than 1 MiB")
    notes = files["metadata/annotations.yaml"]["annotations"]
    for name, value in (("mediatype.v1", "registry+v1"), ("manifests.v1", "manifests/"), ("metadata.v1", "metadata/"),
                        ("package.v1", "tec-operator")):
        if notes.get(PREFIX + name) != value:
            found.append(f"annotation {name}")
    if notes[PREFIX + "channel.default.v1"] not in notes[PREFIX + "channels.v1"].split(","):
        found.append("the default channel is none of the channels")
    return found


def test_the_bundle_is_valid(files):
    assert complaints(files) == []
    kinds = {c["kind"] for c in files[CSV]["spec"]["customresourcedefinitions"]["owned"]}
    assert kinds == {"TrustedExecutionCluster", "Machine", "AttestationKey", "ApprovedImage", "KbsConfig", "TrusteeConfig"}


def cut(path, *keys):
    def change(files):
        o = files[path]
        for k in keys[:-1]:
            o = o[k]
        del o[keys[-1]]
    return change


MISTAKES = [
    (lambda f: f.pop("manifests/machines.trusted-execution-clusters.io.crd.yaml"), "CRD machines"),
    (cut(CSV, "spec", "relatedImages", 0), "is not among relatedImages"),
    (cut(CSV, "spec", "description"), "spec.description"),
    (cut(CSV, "spec", "installModes", 0), "installModes"),
    (lambda f: strategy(f)["permissions"].clear(), "without permissions"),
    (lambda f: f.update({"manifests/x.yaml": {"kind": "Namespace", "metadata": {}}}), "does not take a Namespace"),
    (lambda f: f[CSV]["spec"].update(version="1"), "PACKAGE.vVERSION"),
    (lambda f: f["metadata/annotations.yaml"]["annotations"].update({PREFIX + "channel.default.v1": "x"}), "default channel"),
]


@pytest.mark.parametrize("mistake,says", MISTAKES, ids=[str(i) for i in range(len(MISTAKES))])
def test_a_mistake_is_named(files, mistake, says):
    broken = copy.deepcopy(files)
    mistake(broken)
    assert any(says in c for c in complaints(broken)), complaints(broken)


def test_the_api_server_takes_it(plane, files):
    ns = plane.create_namespace("olm")
    paths = {"Service": f"/api/v1/namespaces/{ns}/services", "ServiceAccount": f"/api/v1/namespaces/{ns}/serviceaccounts",
             "PodDisruptionBudget": f"/apis/policy/v1/namespaces/{ns}/poddisruptionbudgets",
             "NetworkPolicy": f"/apis/networking.k8s.io/v1/namespaces/{ns}/networkpolicies"}
    for o in files.values():
        if o.get("kind") in paths:
            status, answer = plane.api("POST", paths[o["kind"]] + "?dryRun=All&fieldValidation=Strict", o)
            assert status == 201, answer
    for d in strategy(files)["deployments"]:
        status, answer = plane.api("POST", f"/apis/apps/v1/namespaces/{ns}/deployments?dryRun=All&fieldValidation=Strict", {
            "metadata": {"name": d["name"], "labels": d["label"]}, "spec": d["spec"]})
        assert status == 201, answer


def test_its_rights_are_enough(plane, files, start_operator):
    """As OLM makes them of the CSV; with the arguments of its Deployment."""
    ns = plane.create_namespace("olm")
    account = {"kind": "ServiceAccount", "name": "tec-operator", "namespace": ns}
    made = [{"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "tec-operator", "namespace": ns}}]
    for p in strategy(files)["permissions"]:
        if p["serviceAccountName"] == "tec-operator":
            meta = {"name": "of-olm", "namespace": ns}
            api = "rbac.authorization.k8s.io"
            made += [{"apiVersion": f"{api}/v1", "kind": "Role", "metadata": meta, "rules": p["rules"]},
                     {"apiVersion": f"{api}/v1", "kind": "RoleBinding", "metadata": meta, "subjects": [account],
                      "roleRef": {"apiGroup": api, "kind": "Role", "name": "of-olm"}}]
    assert len(made) == 3
    plane.apply(made)
    args = strategy(files)["deployments"][0]["spec"]["template"]["spec"]["containers"][0]["args"]
    start_operator(ns, *[a for a in args if "registry-auth" not in a])
    head(plane, ns)
    until(plane, ns, "kbsconfig-sample", "Installed", "Installed")
    # One namespace has one Trustee: the other kind says so and changes nothing.
    make_cluster(plane, ns)
    wait_condition(plane, ns, "tec", "tec", "Installed", "Conflict", PATIENCE)
    until(plane, ns, "kbsconfig-sample", "Installed", "Installed")
    assert plane.api("DELETE", f"/apis/confidentialcontainers.org/v1alpha1/namespaces/{ns}/kbsconfigs/kbsconfig-sample")[0] == 200


def in_range(version, text):
    def number(v):
        return tuple(int(n) for n in v.split("."))
    low, high = re.match(r">=(\S+) <(\S+)$", text).groups()
    return number(low) <= number(version) < number(high)


def test_the_catalog_upgrades(objects, samples, files):
    package, channel, bundle = olm.catalog(files, IMAGE)
    assert (package["schema"], channel["schema"], bundle["schema"]) == ("olm.package", "olm.channel", "olm.bundle")
    assert package["defaultChannel"] == channel["name"] and channel["package"] == bundle["package"] == package["name"]
    (entry,) = channel["entries"]
    assert entry["name"] == bundle["name"] == files[CSV]["metadata"]["name"] and bundle["image"] == IMAGE
    assert in_range("0.1.0", entry["skipRange"]) and not in_range(VERSION, entry["skipRange"])
    assert {p["value"]["kind"] for p in bundle["properties"] if p["type"] == "olm.gvk"} >= {"KbsConfig", "Machine"}
    # The next version's entry replaces this one.
    following = olm.catalog(olm.bundle(objects, samples, "0.3.1"), IMAGE)[1]["entries"][0]
    assert in_range(VERSION, following["skipRange"]) and in_range("0.3.0", following["skipRange"])
