# SPDX-License-Identifier: MIT
"""Our validation beside kube-apiserver's: the same objects, the same fields refused for the same reasons.
The words are our own.

What is refused there and not here (or the other way round) is a defect, but for what
is_different() names."""

import copy
import itertools
import json
import os
import subprocess

import pytest

import test_crd

from teckinds import GROUP, obj, url

TOOL = os.path.join(os.environ.get("TEC_BUILDDIR", test_crd.TOP), "tests", "tools",
                    "tec-test-schema")
MAX = 100


def ours(cases):
    text = json.dumps(cases)
    run = subprocess.run([TOOL], input=text, capture_output=True, text=True, timeout=60, check=True)
    return json.loads(run.stdout)


def causes_of(causes):
    """As a sorted list: kube-apiserver walks maps in random order."""
    return sorted((c.get("reason"), c.get("field", "")) for c in causes)


def string(**kw):
    return {"type": "string", "maxLength": MAX, **kw}


def rule(text, **kw):
    return {"x-kubernetes-validations": [{"rule": text, **kw}]}


NAMED = {"type": "object", "required": ["n"],
         "properties": {"n": string(), "v": {"type": "integer", "maximum": 5}}}

# Every one of these is validated with every one of VALUES.
SCHEMAS = [
    string(), string(minLength=2), string(pattern="^a+$"), string(pattern="b"),
    string(enum=["a", "ab"]), string(format="date-time"), {"type": "string", "maxLength": 1},
    {"type": "integer"}, {"type": "integer", "minimum": 1, "maximum": 5},
    {"type": "integer", "format": "int32"}, {"type": "boolean"},
    {"type": "object", "properties": {"a": string(), "n": {"type": "integer"}}},
    {"type": "object", "required": ["a", "b"], "properties": {"a": string(), "b": string()}},
    {"type": "array", "maxItems": MAX, "items": string()},
    {"type": "array", "maxItems": 2, "items": {"type": "integer"}},
    {"type": "array", "minItems": 2, "maxItems": MAX, "items": {"type": "integer"}},
    {"type": "array", "maxItems": MAX, "x-kubernetes-list-type": "set", "items": string()},
    {"type": "array", "maxItems": MAX, "x-kubernetes-list-type": "map",
     "x-kubernetes-list-map-keys": ["n"], "items": NAMED},
    string(**rule("self.matches('^a')", message="must begin with a")),
    string(**rule("self <= 'ab' || self == 'abc'", message="at most ab")),
    {"type": "integer", **rule("self <= 5 && self != 5", message="not that one")},
    {"type": "object", "properties": {"a": string(), "n": {"type": "integer"}},
     **rule("has(self.a) && self.a == 'x' || self.n == 1", message="x or 1")},
    {"type": "object", "properties": {"a": string(), "n": {"type": "integer"}},
     **rule("!has(self.n) || 1 <= self.n", fieldPath=".n", message="n is too small")},
    {"type": "array", "maxItems": MAX, "items": {"type": "integer", "maximum": 10},
     **rule("size(self) == 2", message="must be two")},
]

VALUES = [
    None, "", "a", "ab", "abc", "b", "é", "a\n", "\x01<&>\"\\", "x" * (MAX + 1),
    "2024-01-02T03:04:05Z", "2024-02-30T00:00:00Z", "2024-02-29T00:00:00Z",
    0, 1, 2, 5, 6, -1, 2**31, 2**63 - 1, 1.0, 1.5, 0.25, 1e30, True, False,
    {}, {"a": "x"}, {"a": 5, "n": "x"}, {"b": "x"}, {"a": "x", "b": "y"}, {"n": 1}, {"n": 0},
    {"a": None}, {"zz": 1}, [], ["a"], ["a", "b"], ["a", "b", "a", "a"], [1, 2], [2, 1, 11], ["a", 1, None],
    [{"n": "a"}, {"n": "b", "v": 6}, {"n": "a"}], [{"v": 1}], [[]], {"n": {"deep": []}},
]


def is_different(schema, value):
    """What is refused here and not there, or for more reasons there: a whole number with a decimal point; a list
    as a date; what is in a list that is too long; texts in a list of objects, of which the first has two causes."""
    if schema["type"] == "integer" and isinstance(value, float):
        return True
    if not isinstance(value, list):
        return False
    return "format" in schema or len(value) > schema.get("maxItems", MAX) or (
        schema.get("x-kubernetes-list-type") == "map" and not all(isinstance(v, dict) for v in value))


def hostile_crd():
    properties = {f"s{i}": s for i, s in enumerate(SCHEMAS)}
    spec = {"type": "object", "properties": properties}
    schema = {"type": "object", "properties": {"spec": spec}}
    return {"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
            "metadata": {"name": "hostiles.differ.example.com"},
            "spec": {"group": "differ.example.com", "scope": "Namespaced",
                     "names": {"plural": "hostiles", "singular": "hostile", "kind": "Hostile", "listKind": "HostileList"},
                     "versions": [{"name": "v1", "served": True, "storage": True,
                                   "schema": {"openAPIV3Schema": schema}}]}}


def hostile(spec, name="x"):
    return {"apiVersion": "differ.example.com/v1", "kind": "Hostile", "metadata": {"name": name},
            "spec": spec}


@pytest.fixture(scope="module", name="kube")
def _kube(cp):
    if cp.api("GET", f"/apis/{GROUP}/v1alpha1")[0] != 200:
        cp.apply_crds(os.path.join(test_crd.TOP, "crd"))
    return cp


@pytest.fixture(scope="module", name="ns")
def _ns(kube):
    crds = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
    kube.api("POST", crds, hostile_crd())
    kube.wait_for(lambda: kube.api("GET", "/apis/differ.example.com/v1/hostiles")[0] == 200, 20,
                  "the CRD")
    name = kube.create_namespace("schema")
    yield name
    kube.api("DELETE", f"/api/v1/namespaces/{name}")
    kube.api("DELETE", f"{crds}/hostiles.differ.example.com")


def compare(answer, mine, what, differences):
    """answer: of kube-apiserver; mine: of the tool."""
    status, body = answer
    ours_ = causes_of(mine["causes"])
    if status < 300:
        if ours_:
            differences.append((what, "accepted there", mine["causes"]))
        elif body["spec"] != mine["object"]["spec"]:
            differences.append((what, body["spec"], mine["object"]["spec"]))
    elif status == 422 and causes_of(body["details"]["causes"]) != ours_:
        differences.append((what, body["details"]["causes"], mine["causes"]))
    elif status == 400:
        want = [f'unknown field "{u}"' for u in mine["unknown"]]
        if not want or not all(w in body["message"] for w in want):
            differences.append((what, body["message"], mine["unknown"]))


def test_hostile_values_have_the_same_causes(kube, ns):
    path = f"/apis/differ.example.com/v1/namespaces/{ns}/hostiles?dryRun=All"
    crd = hostile_crd()
    pairs = list(itertools.product(range(len(SCHEMAS)), range(len(VALUES))))
    objects = [hostile({f"s{i}": VALUES[j]}) for i, j in pairs]
    answers = ours([{"crd": crd, "object": o} for o in copy.deepcopy(objects)])
    differences = []
    for (i, j), o, mine in zip(pairs, objects, answers):
        if is_different(SCHEMAS[i], VALUES[j]):
            continue
        compare(kube.api("POST", path + "&fieldValidation=Warn", o), mine,
                (SCHEMAS[i], VALUES[j]), differences)
    assert not differences, "\n".join(map(str, differences[:40]))


def test_unknown_fields_are_named_alike(kube, ns):
    path = f"/apis/differ.example.com/v1/namespaces/{ns}/hostiles?dryRun=All&fieldValidation=Strict"
    specs = [{"zz": 1}, {"s11": {"q": 1, "a": "x"}}, {"s17": [{"n": "a", "q": 1}]}]
    objects = [hostile(s) for s in specs] + [{**hostile({}), "top": 1}]
    answers = ours([{"crd": hostile_crd(), "object": o} for o in copy.deepcopy(objects)])
    for o, mine in zip(objects, answers):
        status, body = kube.api("POST", path, o)
        assert status == 400, body
        assert "strict decoding error: " + ", ".join(
            f'unknown field "{u}"' for u in mine["unknown"]) in body["message"]


def test_our_kinds_have_the_same_causes(kube, ns):
    """The tables of test_crd, create and update."""
    crds = {}
    for item in kube.get("/apis/apiextensions.k8s.io/v1/customresourcedefinitions")["items"]:
        crds[item["spec"]["names"]["kind"]] = item
    differences = []
    for kind, spec, _ in test_crd.CREATE:
        o = obj(kind, spec)
        mine = ours([{"crd": crds[o["kind"]], "object": copy.deepcopy(o)}])[0]
        compare(kube.api("POST", url(kind, ns, query="?dryRun=All&fieldValidation=Strict"), o), mine,
                (kind, spec), differences)
    for kind, old, new, _ in test_crd.UPDATE:
        stored = test_crd.made(kube, kind, ns, old)
        now = {**copy.deepcopy(stored), "spec": new}
        mine = ours([{"crd": crds[now["kind"]], "object": copy.deepcopy(now), "old": stored}])[0]
        compare(kube.api("PUT", url(kind, ns, now["metadata"]["name"],
                                    "?dryRun=All&fieldValidation=Strict"), now), mine,
                (kind, old, new), differences)
    assert not differences, "\n".join(map(str, differences[:40]))
