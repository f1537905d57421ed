# SPDX-License-Identifier: MIT
"""What else is asked of an object, on kube-apiserver and on tec-operator --standalone: the scale of custom resources
and the logs of Pods that run nowhere. One table, two servers; what differs on purpose is listed with the reason."""

import pytest

from controlplane import wait_for
from test_two_servers import on_both, shown, two_servers
from test_two_servers_bodies import JSON_PATCH, MERGE, Raw, seen

NS = "two-servers-subresources"
GROUP = "subresources.example.org"
CRDS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
THINGS = f"/apis/{GROUP}/v1/namespaces/{NS}/things"
OTHERS = THINGS.replace("/v1/", "/v1beta1/")
PODS = f"/api/v1/namespaces/{NS}/pods"
STRATEGIC = "application/strategic-merge-patch+json"
SCALE = {"specReplicasPath": ".spec.size.replicas", "statusReplicasPath": ".status.replicas",
         "labelSelectorPath": ".status.selector"}
DRY = "?dryRun=All"


def definition(plural="things", kind="Thing", scale=None, n=2):
    count = {"type": "integer", "maximum": 100}
    schema = {"type": "object", "properties": {
        "spec": {"type": "object", "properties": {
            "a": {"type": "string"}, "size": {"type": "object", "properties": {"replicas": count}}}},
        "status": {"type": "object", "properties": {"replicas": count, "selector": {"type": "string"}}}}}
    versions = [{"name": name, "served": True, "storage": name == "v1", "schema": {"openAPIV3Schema": schema}}
                for name in ("v1", "v1beta1")]
    versions[0]["subresources"] = {"status": {}, "scale": SCALE if scale is None else scale}
    return {"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
            "metadata": {"name": f"{plural}.{GROUP}"},
            "spec": {"group": GROUP, "scope": "Namespaced", "names": {"plural": plural, "kind": kind}, "versions": versions[:n]}}


def thing(name, **members):
    return {"apiVersion": f"{GROUP}/v1", "kind": "Thing", "metadata": {"name": name}, **members}


def scale(replicas, name="t", **meta):
    return {"apiVersion": "autoscaling/v1", "kind": "Scale", "metadata": {"name": name, "namespace": NS, **meta},
            "spec": {"replicas": replicas}}


def pod(name, *containers, **spec):
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name}, "spec": {
        "containers": [{"name": c, "image": "a"} for c in containers], **spec}}


def bad(**scale):
    return "POST", CRDS + DRY, definition("gizmos", "Gizmo", scale)


# (name, method, path, body[, content type])
ROWS = [
    # --- definitions
    ("crd-none", *bad()),
    ("crd-no-status", *bad(specReplicasPath=".spec.replicas")),
    ("crd-empty", *bad(specReplicasPath="", statusReplicasPath=".status.replicas")),
    ("crd-elsewhere", *bad(specReplicasPath=".status.replicas", statusReplicasPath=".spec.replicas")),
    ("crd-bare", *bad(specReplicasPath=".spec", statusReplicasPath=".status")),
    ("crd-dot", *bad(specReplicasPath="spec.replicas", statusReplicasPath=".status.")),
    ("crd-index", *bad(specReplicasPath=".spec.a[0]", statusReplicasPath=".status.a['b']")),
    ("crd-selector", *bad(specReplicasPath=".spec.r", statusReplicasPath=".status.r", labelSelectorPath=".metadata.s")),
    ("crd-selector-bad", *bad(specReplicasPath=".spec.r", statusReplicasPath=".status.r", labelSelectorPath=".status.s[0]")),
    ("crd-selector-spec", *bad(specReplicasPath=".spec.r", statusReplicasPath=".status.r", labelSelectorPath=".spec.s")),
    ("crd-type", *bad(specReplicasPath=5, statusReplicasPath=".status.r")),
    ("crd-not-object", "POST", CRDS + DRY, definition("gizmos", "Gizmo", "x")),
    ("crd-one-version", "POST", CRDS + DRY, definition("gizmos", "Gizmo", {"specReplicasPath": ".a"}, 1)),
    # --- scale
    ("discovery", "GET", f"/apis/{GROUP}/v1", None),
    ("discovery-other", "GET", f"/apis/{GROUP}/v1beta1", None),
    ("make", "POST", THINGS, thing("t", spec={"a": "x", "size": {"replicas": 2}})),
    ("get", "GET", f"{THINGS}/t/scale", None),
    ("status", "PATCH", f"{THINGS}/t/status", {"status": {"replicas": 1, "selector": "a=b"}}, MERGE),
    ("get-status", "GET", f"{THINGS}/t/scale", None),
    ("get-absent", "GET", f"{THINGS}/absent/scale", None),
    ("get-version", "GET", f"{OTHERS}/t/scale", None),
    ("put", "PUT", f"{THINGS}/t/scale", scale(3)),
    ("put-shown", "GET", f"{THINGS}/t", None),
    ("put-same", "PUT", f"{THINGS}/t/scale", scale(3)),
    ("put-dry", "PUT", f"{THINGS}/t/scale{DRY}", scale(9)),
    ("put-below", "PUT", f"{THINGS}/t/scale", scale(-1)),
    ("put-schema", "PUT", f"{THINGS}/t/scale", scale(101)),
    ("put-large", "PUT", f"{THINGS}/t/scale", scale(1 << 40)),
    ("put-text", "PUT", f"{THINGS}/t/scale", scale("3")),
    ("put-none", "PUT", f"{THINGS}/t/scale", {**scale(1), "spec": {}}),
    ("put-name", "PUT", f"{THINGS}/t/scale", scale(1, "other")),
    ("put-no-name", "PUT", f"{THINGS}/t/scale", {**scale(4), "metadata": {}}),
    ("put-namespace", "PUT", f"{THINGS}/t/scale", scale(1, namespace="other")),
    ("put-rv", "PUT", f"{THINGS}/t/scale", scale(1, resourceVersion="1")),
    ("put-uid", "PUT", f"{THINGS}/t/scale", scale(1, uid="other")),
    ("put-kind", "PUT", f"{THINGS}/t/scale", thing("t")),
    ("put-api", "PUT", f"{THINGS}/t/scale", {**scale(1), "apiVersion": "autoscaling/v2"}),
    ("put-untyped", "PUT", f"{THINGS}/t/scale", {"metadata": {"name": "t"}, "spec": {"replicas": 4}}),
    ("put-absent", "PUT", f"{THINGS}/absent/scale", scale(1, "absent")),
    ("merge", "PATCH", f"{THINGS}/t/scale", {"spec": {"replicas": 5}}, MERGE),
    ("merge-null", "PATCH", f"{THINGS}/t/scale", {"spec": {"replicas": None}}, MERGE),
    ("merge-other", "PATCH", f"{THINGS}/t/scale", {"spec": {"a": "y"}, "status": {"replicas": 7}}, MERGE),
    ("merge-below", "PATCH", f"{THINGS}/t/scale", {"spec": {"replicas": -1}}, MERGE),
    ("merge-kind", "PATCH", f"{THINGS}/t/scale", {"kind": "Thing"}, MERGE),
    ("merge-absent", "PATCH", f"{THINGS}/absent/scale", {"spec": {"replicas": 5}}, MERGE),
    ("json", "PATCH", f"{THINGS}/t/scale", [{"op": "replace", "path": "/spec/replicas", "value": 6}], JSON_PATCH),
    ("strategic", "PATCH", f"{THINGS}/t/scale", {"spec": {"replicas": 7}}, STRATEGIC),
    ("patched", "GET", f"{THINGS}/t", None),
    ("post", "POST", f"{THINGS}/t/scale", scale(1)),
    ("delete", "DELETE", f"{THINGS}/t/scale", None),
    ("bare", "POST", THINGS, thing("bare")),
    ("bare-get", "GET", f"{THINGS}/bare/scale", None),
    ("bare-merge", "PATCH", f"{THINGS}/bare/scale", {"spec": {"replicas": 2}}, MERGE),
    ("bare-put", "PUT", f"{THINGS}/bare/scale", scale(2, "bare")),
    ("bare-shown", "GET", f"{THINGS}/bare", None),
    ("empty", "POST", THINGS, thing("empty", spec={})),
    ("empty-get", "GET", f"{THINGS}/empty/scale", None),
    ("make-below", "POST", THINGS + DRY, thing("low", spec={"size": {"replicas": -1}})),
    ("make-large", "POST", THINGS + DRY, thing("high", spec={"size": {"replicas": 1 << 40}})),
    ("status-below", "PATCH", f"{THINGS}/t/status", {"status": {"replicas": -1}}, MERGE),
    ("strict", "PATCH", f"{THINGS}/t/scale?fieldValidation=Strict", {"spec": {"a": "y"}}, MERGE),
    ("main-no-name", "PUT", f"{THINGS}/t", {**thing("t"), "metadata": {}}),
    ("status-post", "POST", f"{THINGS}/t/status", thing("t")),
    # --- logs
    ("pod", "POST", PODS, pod("one", "c")),
    ("pods", "POST", PODS, pod("two", "c", "d", initContainers=[{"name": "i", "image": "a"}])),
    ("pod-placed", "POST", PODS, pod("placed", "c", nodeName="nowhere")),
    ("log-placed", "GET", f"{PODS}/placed/log", None),
    ("log-time", "GET", f"{PODS}/one/log?sinceTime=x", None),
    ("log-out", "GET", f"{PODS}/one/log?tailLines=99999999999999999999", None),
    ("log-several", "GET", f"{PODS}/one/log?tailLines=-1&limitBytes=0&sinceSeconds=-1", None),
    ("log-stream", "GET", f"{PODS}/one/log?stream=Stdout", None),
    ("log-stream-bad", "GET", f"{PODS}/one/log?stream=x", None),
    ("log", "GET", f"{PODS}/one/log", None),
    ("log-container", "GET", f"{PODS}/one/log?container=c", None),
    ("log-unknown", "GET", f"{PODS}/one/log?container=x", None),
    ("log-which", "GET", f"{PODS}/two/log", None),
    ("log-second", "GET", f"{PODS}/two/log?container=d", None),
    ("log-init", "GET", f"{PODS}/two/log?container=i", None),
    ("log-absent", "GET", f"{PODS}/absent/log", None),
    ("log-tail", "GET", f"{PODS}/one/log?tailLines=-1", None),
    ("log-limit", "GET", f"{PODS}/one/log?limitBytes=0", None),
    ("log-since", "GET", f"{PODS}/one/log?sinceSeconds=0", None),
    ("log-since-both", "GET", f"{PODS}/one/log?sinceSeconds=5&sinceTime=2026-01-01T00:00:00Z", None),
    ("log-word", "GET", f"{PODS}/one/log?tailLines=x", None),
    ("log-post", "POST", f"{PODS}/one/log", {}),
    ("log-put", "PUT", f"{PODS}/one/log", {}),
    ("log-delete", "DELETE", f"{PODS}/one/log", None),
]

# Name of a row -> why a client sees something else here.
AT_ONCE = "the finalizer and the conditions are there at once"
REGISTERED = "kube-apiserver says that it knows no Scale"
DIFFERENT = {
    "crd-index": AT_ONCE, "crd-selector-bad": AT_ONCE, "crd-selector-spec": AT_ONCE,
    "put-large": REGISTERED, "put-text": REGISTERED, "put-kind": REGISTERED, "put-api": REGISTERED,
    **{name: "kube-apiserver's admission adds tolerations and a priority" for name in ("pod", "pods", "pod-placed")},
    "log-placed": "kube-apiserver misses the node",
    "log-time": "the words of another reader of times",
    "put-uid": "kube-apiserver tells the key in etcd",
    "strict": "kube-apiserver shows the whole object in the message",
    "merge-kind": "kube-apiserver shows the whole object in the message",
}

STEPS = [
    ("scale", "scale things/t --replicas=8", None),
    ("scale-current", "scale things/t --current-replicas=7 --replicas=5", None),
    ("scale-more", "scale things/t --replicas=1000", None),
    ("get", "get things t --subresource=scale", None),
    ("logs", "logs one", None),
    ("logs-all", "logs two --all-containers", None),
    ("logs-which", "logs two", None),
    ("logs-unknown", "logs one -c x", None),
    ("logs-follow", "logs -f one", None),
]


@pytest.fixture(scope="module")
def both(cp, tmp_path_factory):
    base = tmp_path_factory.mktemp("subresources")
    with two_servers(cp, base, NS) as servers:
        for server in servers:
            code, _, said = server.kubectl(f"create namespace {NS}")
            assert code == 0, said
            server.raw = Raw(server.kubeconfig, base / f"{id(server)}.pem")
            status, said, _ = server.raw.ask("POST", CRDS, definition())
            assert status == 201, said
        for server in servers:
            wait_for(lambda: server.raw.ask("GET", THINGS)[0] == 200, 60, "the new kind")
        try:
            yield servers
        finally:
            servers[0].raw.ask("DELETE", f"{CRDS}/things.{GROUP}")


def test_both_answer_the_same(both):
    def session(server):
        return [seen(server.raw.ask(*row[1:])) for row in ROWS]

    wrong = []
    for (name, *_), there, here in zip(ROWS, *on_both(session, both)):
        if (there == here) != (name not in DIFFERENT):
            wrong.append(f"--- {name}\nkube-apiserver:\n{there[:2000]}\nhere:\n{here[:2000]}")
    assert not wrong, f"{len(wrong)} of {len(ROWS)}:\n" + "\n".join(wrong)
    assert set(DIFFERENT) <= {row[0] for row in ROWS}


def test_a_person_sees_the_same(both):
    def session(server):
        return [server.kubectl(command, given) for _, command, given in STEPS]

    wrong = [f"--- {name}\nkube-apiserver:\n{shown(there)}\nhere:\n{shown(here)}"
             for (name, *_), there, here in zip(STEPS, *on_both(session, both)) if there != here]
    assert not wrong, f"{len(wrong)} of {len(STEPS)}:\n" + "\n".join(wrong)
