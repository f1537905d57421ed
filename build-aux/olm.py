#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""Generates the OLM bundle and its catalog from k8s/, k8s/trustee/ and their samples, so that nothing is written twice.

olm.py DIR VERSION IMAGE     reads the objects of both overlays from standard input: kubectl kustomize k8s; echo ---;
                             kubectl kustomize k8s/trustee; and the samples. IMAGE is the future location of the bundle's image.

Writes manifests/, metadata/annotations.yaml, bundle.Dockerfile and catalog/tec-operator.json to DIR. The files are JSON, which
is YAML. One operator in one namespace (OwnNamespace) manages the kinds of both operators.
"""

import copy
import json
import os
import re
import sys

PACKAGE = "tec-operator"
CHANNEL = "alpha"
FIRST = "0.1.0"  # every version since then is replaced at once
SAMPLE_KINDS = ("TrustedExecutionCluster", "Machine", "ApprovedImage", "KbsConfig", "TrusteeConfig")
MANIFESTS = ("Service", "PodDisruptionBudget", "NetworkPolicy")
DESCRIPTION = """Confidential nodes and the Trustee that serves them.

- TrustedExecutionCluster: registers nodes, manages their disk keys, approves the images that they may boot.
- KbsConfig and TrusteeConfig: only Trustee, as with the Trustee operator, whose objects stay as they are. A namespace has one
  Trustee, of either kind. Never run both operators in one namespace.
"""


def find(objects, kind, name=None):
    return [o for o in objects if o["kind"] == kind and name in (None, o["metadata"]["name"])]


def one(objects, kind, name):
    found = find(objects, kind, name)
    assert len(found) == 1, f"{len(found)} {kind} {name}"
    return found[0]


def without_namespace(o):
    o = copy.deepcopy(o)
    o["metadata"].pop("namespace", None)
    return o


def rules(objects, kind, account):
    """Of all roles that are bound to this account, each once."""
    out = []
    for binding in find(objects, f"{kind}Binding"):
        if account in [s["name"] for s in binding["subjects"]]:
            for rule in one(objects, kind, binding["roleRef"]["name"])["rules"]:
                if rule not in out:
                    out.append(rule)
    return out


def deployment(objects):
    """That of k8s/ with both sets of controllers, and the images of k8s/trustee beside its own."""
    both = [o for o in find(objects, "Deployment", PACKAGE)]
    assert len(both) == 2
    main = next(o for o in both if "--controllers=trustee" not in containers(o)[0]["args"])
    other = next(o for o in both if o is not main)
    main = copy.deepcopy(main)
    container = containers(main)[0]
    container["args"].append("--controllers=cluster,trustee")
    names = [e["name"] for e in container["env"]]
    container["env"] += [e for e in containers(other)[0]["env"] if e["name"] not in names]
    return main


def containers(o):
    return o["spec"]["template"]["spec"]["containers"]


def images(o):
    """{name: image} of the containers and of the variables that name images."""
    found = {}
    for c in containers(o):
        found[c["name"]] = c["image"]
        for e in c["env"]:
            if e["name"].startswith("RELATED_IMAGE_") or "_IMAGE_NAME" in e["name"]:
                name = re.sub("_IMAGE_NAME|RELATED_IMAGE_", "", e["name"]).lower().replace("_", "-")
                if e["value"] not in found.values():
                    found[name] = e["value"]
    return found


def owned(crd):
    spec = crd["spec"]
    version = next(v for v in spec["versions"] if v["storage"])
    text = version["schema"]["openAPIV3Schema"]["description"]
    return {"name": crd["metadata"]["name"], "version": version["name"], "kind": spec["names"]["kind"],
            "displayName": spec["names"]["kind"], "description": text.partition(". ")[0].rstrip(".") + "."}


def csv(objects, samples, version):
    main = deployment(objects)
    accounts = sorted(o["metadata"]["name"] for o in find(objects, "ServiceAccount"))
    accounts = sorted(set(a for a in accounts if rules(objects, "Role", a)))
    cluster = [{"serviceAccountName": a, "rules": rules(objects, "ClusterRole", a)}
               for a in accounts if rules(objects, "ClusterRole", a)]
    examples = [without_namespace(o) for o in samples if o["kind"] in SAMPLE_KINDS]
    return {
        "apiVersion": "operators.coreos.com/v1alpha1", "kind": "ClusterServiceVersion",
        "metadata": {"name": f"{PACKAGE}.v{version}", "namespace": "placeholder", "annotations": {
            "alm-examples": json.dumps(examples, indent=2),
            "capabilities": "Seamless Upgrades",
            "categories": "Security",
            "containerImage": containers(main)[0]["image"],
            "description": "Nodes of confidential clusters, and Trustee in Kubernetes.",
            "features.operators.openshift.io/disconnected": "true",
            "olm.skipRange": f">={FIRST} <{version}",
            "operatorframework.io/suggested-namespace": main["metadata"]["namespace"],
        }},
        "spec": {
            "displayName": "Trusted Execution Clusters", "description": DESCRIPTION, "version": version, "maturity": "alpha",
            "provider": {"name": "Trusted Execution Clusters"},
            "keywords": ["confidential computing", "attestation", "trustee", "tpm"],
            "links": [{"name": "Source", "url": "https://github.com/trusted-execution-clusters"}],
            "minKubeVersion": "1.29.0",
            "installModes": [{"type": t, "supported": t == "OwnNamespace"}
                             for t in ("OwnNamespace", "SingleNamespace", "MultiNamespace", "AllNamespaces")],
            "install": {"strategy": "deployment", "spec": {
                "permissions": [{"serviceAccountName": a, "rules": rules(objects, "Role", a)} for a in accounts],
                "clusterPermissions": cluster,
                "deployments": [{"name": main["metadata"]["name"], "label": main["metadata"]["labels"],
                                 "spec": main["spec"]}]}},
            "customresourcedefinitions": {"owned": [owned(c) for c in crds(objects)]},
            "relatedImages": [{"name": n, "image": i} for n, i in sorted(images(main).items())],
        }}


def crds(objects):
    return find(objects, "CustomResourceDefinition")


def annotations():
    prefix = "operators.operatorframework.io.bundle."
    return {"annotations": {
        prefix + "mediatype.v1": "registry+v1", prefix + "manifests.v1": "manifests/", prefix + "metadata.v1": "metadata/",
        prefix + "package.v1": PACKAGE, prefix + "channels.v1": CHANNEL, prefix + "channel.default.v1": CHANNEL}}


def dockerfile():
    labels = "".join(f"LABEL {k}={v}\n" for k, v in annotations()["annotations"].items())
    return f"# SPDX-License-Identifier: MIT\nFROM scratch\n{labels}COPY manifests /manifests/\nCOPY metadata /metadata/\n"


def bundle(objects, samples, version):
    """{path: object}, without the catalog."""
    made = csv(objects, samples, version)
    strategy = made["spec"]["install"]["spec"]
    out = {f"manifests/{PACKAGE}.clusterserviceversion.yaml": made, "metadata/annotations.yaml": annotations()}
    for o in crds(objects):
        out[f"manifests/{o['metadata']['name']}.crd.yaml"] = o
    accounts = {p["serviceAccountName"] for p in strategy["permissions"]}
    for o in objects:
        name = o["metadata"]["name"]
        if o["kind"] in MANIFESTS or (o["kind"] == "ServiceAccount" and name not in accounts):
            out[f"manifests/{name}.{o['kind'].lower()}.yaml"] = without_namespace(o)
    return out


def catalog(files, image):
    """File-based: the channel's one entry replaces every earlier version of the package."""
    made = files[f"manifests/{PACKAGE}.clusterserviceversion.yaml"]
    name, spec = made["metadata"]["name"], made["spec"]
    properties = [{"type": "olm.package", "value": {"packageName": PACKAGE, "version": spec["version"]}}]
    properties += [{"type": "olm.gvk", "value": {"group": c["name"].partition(".")[2], "kind": c["kind"],
                                                 "version": c["version"]}}
                   for c in spec["customresourcedefinitions"]["owned"]]
    return [{"schema": "olm.package", "name": PACKAGE, "defaultChannel": CHANNEL, "description": spec["description"]},
            {"schema": "olm.channel", "package": PACKAGE, "name": CHANNEL, "entries": [
                {"name": name, "skipRange": made["metadata"]["annotations"]["olm.skipRange"]}]},
            {"schema": "olm.bundle", "package": PACKAGE, "name": name, "image": image, "properties": properties,
             "relatedImages": [*spec["relatedImages"], {"name": "bundle", "image": image}]}]


def write(directory, files, documents):
    for path, o in files.items():
        path = os.path.join(directory, path)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "w", encoding="utf-8") as f:
            f.write(json.dumps(o, indent=2) + "\n")
    with open(os.path.join(directory, "bundle.Dockerfile"), "w", encoding="utf-8") as f:
        f.write(dockerfile())
    os.makedirs(os.path.join(directory, "catalog"), exist_ok=True)
    with open(os.path.join(directory, "catalog", f"{PACKAGE}.json"), "w", encoding="utf-8") as f:
        f.write("\n".join(json.dumps(d, indent=2) for d in documents) + "\n")


def main():
    import yaml  # pylint: disable=import-outside-toplevel  # python3-yaml; the tests read YAML by kubectl

    directory, version, image = sys.argv[1:]
    objects = [o for o in yaml.safe_load_all(sys.stdin) if o]
    samples = [o for o in objects if o["kind"] in SAMPLE_KINDS]
    files = bundle([o for o in objects if o["kind"] not in SAMPLE_KINDS], samples, version)
    write(directory, files, catalog(files, image))


if __name__ == "__main__":
    main()
