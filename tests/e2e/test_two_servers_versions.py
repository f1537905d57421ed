# SPDX-License-Identifier: MIT
"""Who set which field of a custom resource with two versions (conversion None), on kube-apiserver and on tec-operator
--standalone: creates, updates, patches and applies in either version, and a stored version that changes."""

import json

import pytest

from controlplane import wait_for
from test_two_servers import masked, on_both, two_servers
from test_two_servers_bodies import JSON, JSON_PATCH, MERGE, Raw

NS = "two-servers-versions"
GROUP = "versions.example.org"
CRDS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
SSA = "application/apply-patch+yaml"


def path(version, name="", **query):
    asked = "&".join(f"{k}={v}" for k, v in query.items())
    return f"/apis/{GROUP}/{version}/namespaces/{NS}/things{'/' + name if name else ''}{'?' + asked if asked else ''}"


def definition(stored="v1"):
    ports = {"type": "array", "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["name"], "items": {
        "type": "object", "required": ["name"], "properties": {"name": {"type": "string"}, "v": {"type": "string"}}}}
    text = {"type": "string"}
    schema = {"type": "object", "properties": {
        "spec": {"type": "object", "properties": {"a": text, "b": text, "c": text, "ports": ports}},
        "status": {"type": "object", "properties": {"phase": text}}}}
    return {"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
            "metadata": {"name": f"things.{GROUP}"},
            "spec": {"group": GROUP, "scope": "Namespaced", "names": {"plural": "things", "kind": "Thing"}, "versions": [
                {"name": v, "served": True, "storage": v == stored, "schema": {"openAPIV3Schema": schema},
                 "subresources": {"status": {}}} for v in ("v1", "v2")]}}


def thing(version, name="t", status=None, **spec):
    return {"apiVersion": f"{GROUP}/{version}", "kind": "Thing", "metadata": {"name": name},
            **({"spec": spec} if spec else {}), **({"status": status} if status else {})}


def apply(step, version, manager, body_version=None, sub="", force=False, **members):
    query = {"fieldManager": manager, **({"force": "true"} if force else {})}
    return (step, "PATCH", path(version, "t" + sub, **query), thing(body_version or version, **members), SSA)


def patch(step, version, manager, body, kind=MERGE, sub=""):
    return (step, "PATCH", path(version, "t" + sub, fieldManager=manager), body, kind)


BEFORE = [
    apply("made", "v1", "one", a="x", ports=[{"name": "p", "v": "1"}]),
    apply("again-other", "v2", "one", a="x", ports=[{"name": "p", "v": "1"}]),
    apply("again-back", "v1", "one", a="x", ports=[{"name": "p", "v": "1"}]),
    apply("less-other", "v2", "one", a="x"),
    apply("second", "v2", "two", b="y", ports=[{"name": "q", "v": "2"}]),
    apply("conflict", "v2", "two", a="z", b="y"),
    apply("shared", "v2", "two", a="x", b="y", ports=[{"name": "q", "v": "2"}]),
    apply("shared-back", "v1", "two", a="x", b="y"),
    apply("forced", "v2", "three", force=True, a="w"),
    apply("conflict-old", "v1", "one", a="x"),
    apply("wrong-version", "v1", "one", "v2", a="x"),
    patch("update", "v1", "editor", {"spec": {"c": "1"}}),
    patch("update-other", "v2", "editor", {"spec": {"c": "2"}}),
    patch("update-same", "v1", "editor", {"spec": {"c": "2"}}),
    patch("update-both", "v1", "editor", {"metadata": {"labels": {"l": "1"}}}),
    patch("update-both-other", "v2", "editor", {"metadata": {"labels": {"m": "1"}}}),
    patch("test-version", "v2", "editor", [{"op": "test", "path": "/apiVersion", "value": f"{GROUP}/v2"},
                                           {"op": "add", "path": "/spec/b", "value": "t"}], JSON_PATCH),
    apply("after-update", "v2", "one", a="w", c="2"),
    apply("conflict-update", "v1", "two", b="y"),
    apply("status", "v2", "ctl", sub="/status", status={"phase": "A"}),
    apply("status-other", "v1", "ctl", sub="/status", status={"phase": "B"}),
    patch("status-update", "v2", "editor", {"status": {"phase": "C"}}, sub="/status"),
    ("put-unseen", "PUT", path("v2", "t"), thing("v2", a="w")),
    ("put-unseen-status", "PUT", path("v2", "t/status"), thing("v2", status={"phase": "D"})),
    ("put", "PUT", path("v2", "t", fieldManager="putter"), thing("v2", a="w", b="put")),
    ("post-other-version", "POST", path("v1"), thing("v2", "u", a="w")),
    ("put-other-version", "PUT", path("v1", "t", fieldManager="putter"), thing("v2", a="w", b="put")),
    ("get-v1", "GET", path("v1", "t"), None),
    ("get-v2", "GET", path("v2", "t"), None),
]
# v2 is stored from here on.
AFTER = [
    ("stored-get", "GET", path("v1", "t"), None),
    apply("stored-apply", "v1", "one", a="w", c="3"),
    apply("stored-apply-other", "v2", "one", a="w"),
    patch("stored-update", "v1", "editor", {"spec": {"c": "4"}}),
    patch("stored-version", "v1", "editor", {"apiVersion": f"{GROUP}/v2"}),
    ("stored-empty", "PATCH", path("v2", "t", fieldManager="resetter"), {"metadata": {"managedFields": []}}, MERGE),
    ("stored-reset", "PATCH", path("v2", "t", fieldManager="resetter"), {"metadata": {"managedFields": [{}]}}, MERGE),
    apply("first", "v1", "one", force=True, a="w"),
    ("new", "POST", path("v1", fieldManager="maker"), thing("v1", "u", a="x")),
    patch("delete-field", "v2", "editor", {"spec": {"a": None}}),
]
DIFFERENT = {}


def told(answer):
    status, body, _ = answer
    o = json.loads(body)
    meta = o.get("metadata", {})
    for entry in meta.get("managedFields") or []:
        entry.pop("time", None)
    shown = {k: o[k] for k in ("apiVersion", "spec", "status", "message", "reason") if k in o}
    shown.update(generation=meta.get("generation"), causes=(o.get("details") or {}).get("causes") if status >= 400 else None,
                 managers=sorted(json.dumps(e, sort_keys=True) for e in meta.get("managedFields") or []))
    return masked(f"{status}\n{json.dumps(shown, indent=1, sort_keys=True)}")


@pytest.fixture(scope="module")
def both(cp, tmp_path_factory):
    base = tmp_path_factory.mktemp("versions")
    with two_servers(cp, base, NS) as servers:
        raws = [Raw(server, base / f"{i}.pem") for i, server in enumerate(servers)]
        for raw in raws:
            assert raw.ask("POST", CRDS, definition())[0] == 201
            wait_for(lambda: raw.ask("GET", path("v2"))[0] == 200, 60, "the new kind")
        try:
            yield raws
        finally:
            raws[0].ask("DELETE", f"{CRDS}/things.{GROUP}")


def ask(raw, name, method, at, body, kind=JSON):
    if name == "put": # which says what it saw
        seen = json.loads(raw.ask("GET", path("v2", "t"))[1])["metadata"]["resourceVersion"]
        body = {**body, "metadata": {**body["metadata"], "resourceVersion": seen}}
    return told(raw.ask(method, at, body, kind))


def session(raw):
    said = [ask(raw, *row) for row in BEFORE]
    change = {"spec": definition("v2")["spec"]}
    assert raw.ask("PATCH", f"{CRDS}/things.{GROUP}", change, MERGE)[0] == 200
    # The new version is stored once an object is written in it; kube-apiserver needs a moment.
    probe = path("v1", "probe")

    def stored():
        raw.ask("DELETE", probe)
        raw.ask("POST", path("v1"), thing("v1", "probe", a="x"))
        return raw.ask("GET", path("v2", "probe"))[0] == 200
    wait_for(stored, 60, "an object after the change")
    return said + [ask(raw, *row) for row in AFTER]


def test_both_note_the_same_managers(both):
    wrong = []
    rows = BEFORE + AFTER
    for (name, *_), there, here in zip(rows, *on_both(session, both)):
        if (there == here) != (name not in DIFFERENT):
            wrong.append(f"--- {name}\nkube-apiserver:\n{there[:3000]}\nhere:\n{here[:3000]}")
    assert not wrong, f"{len(wrong)} of {len(rows)}:\n" + "\n".join(wrong)
