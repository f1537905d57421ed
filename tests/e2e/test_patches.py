# SPDX-License-Identifier: MIT
"""The same patches to kube-apiserver and to tec-operator --standalone: the same answers, objects and
managedFields. Times, uids and versions are masked; what differs on purpose stands in DIFFERENT."""

import base64
import http.client
import json
import os
import re
import ssl

import pytest

from conftest import lacking
from tecproc import operator_binary
from test_standalone import Standalone

JSON, MERGE, STRATEGIC, APPLY = ("application/json-patch+json", "application/merge-patch+json",
                                 "application/strategic-merge-patch+json",
                                 "application/apply-patch+yaml")
OUR_PLACE = "default"


def standalone_client(directory):
    """One request over HTTPS with the certificate of the generated kubeconfig."""
    with open(f"{directory}/kubeconfig", encoding="utf-8") as f:
        text = f.read()
    files = {}
    for name in ("client-certificate", "client-key", "certificate-authority"):
        found = re.search(rf"{name}(-data)?: \"?([^\s\"]+)", text)
        files[name] = found.group(2)
        if found.group(1):
            files[name] = f"{directory}.{name}"
            with open(files[name], "wb", opener=lambda p, fl: os.open(p, fl, 0o600)) as f:
                f.write(base64.b64decode(found.group(2)))
    host, port = re.search(r"server: \"?https://([^:]+):(\d+)", text).groups()
    tls = ssl.create_default_context(cafile=files["certificate-authority"])
    tls.load_cert_chain(files["client-certificate"], files["client-key"])

    def ask(method, path, body=None, content_type=None, headers=None):
        conn = http.client.HTTPSConnection(host, int(port), context=tls, timeout=30)
        send = {"User-Agent": "tec-tests", "Accept": "application/json", **(headers or {})}
        if body is not None:
            body = body if isinstance(body, (bytes, str)) else json.dumps(body)
            send["Content-Type"] = content_type or "application/json"
        conn.request(method, path, body, send)
        answer = conn.getresponse()
        data = answer.read()
        conn.close()
        return answer.status, json.loads(data) if data else None
    return ask


@pytest.fixture(scope="module")
def ours(tmp_path_factory):
    if not os.access(operator_binary(), os.X_OK):
        lacking(f"no {operator_binary()}; next step: make, or set TEC_OPERATOR")
    s = Standalone(str(tmp_path_factory.mktemp("patches") / "state"))
    s.start()
    yield standalone_client(s.dir)
    if s.process.poll() is None:
        assert s.stop() == 0, s.log()


@pytest.fixture
def both(cp, ns, ours):
    """(namespace, how to ask) of each: ours is one namespace for all cases, and empty."""
    yield (ns, cp.api), (OUR_PLACE, ours)
    for path in (p.format(ns=OUR_PLACE) for p in PATHS.values()):
        for o in ours("GET", path)[1]["items"]:
            at = f"{path}/{o['metadata']['name']}"
            ours("PATCH", at, {"metadata": {"finalizers": None}}, MERGE)
            ours("DELETE", at)


# ---- what is compared

def masked_fields(entries):
    """managedFields in an order that does not depend on the second they were made in."""
    out = []
    for e in entries or []:
        if e["manager"] == "controller-manager":
            continue
        e = dict(e)
        if "time" in e:
            e["time"] = "T"
        out.append(e)
    return sorted(out, key=lambda e: json.dumps(e, sort_keys=True))


def masked(body, uids, namespace):
    text = json.dumps(body).replace(namespace, OUR_PLACE)
    for uid in uids:
        text = text.replace(uid, "UID")
    body = json.loads(text)
    meta = body.get("metadata", {})
    for name in ("uid", "resourceVersion", "creationTimestamp", "generation"):
        meta.pop(name, None)
    if "managedFields" in meta:
        meta["managedFields"] = masked_fields(meta["managedFields"])
    if body.get("kind") == "Status":
        causes = body.get("details", {}).get("causes")
        if causes:
            causes.sort(key=lambda c: json.dumps(c, sort_keys=True))
        if not body.get("details"):
            body.pop("details", None)
    return body


# ---- objects

def config(name="a", **meta):
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name, **meta}}


def with_data(data, **kw):
    return {**config(**kw), "data": data}


def account(*secrets, name="a", **members):
    return {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": name},
            **({"secrets": [{"name": s} for s in secrets]} if secrets else {}), **members}


PATHS = {"ConfigMap": "/api/v1/namespaces/{ns}/configmaps", "Secret": "/api/v1/namespaces/{ns}/secrets",
         "ServiceAccount": "/api/v1/namespaces/{ns}/serviceaccounts",
         "Machine": "/apis/trusted-execution-clusters.io/v1alpha1/namespaces/{ns}/machines"}


# ---- steps

def make(o, query=""):
    return ("POST", o["kind"], None, query, None, o)


def patch(kind, type_, body, query="", name="a"):
    return ("PATCH", kind, name, query, type_, body)


def put(o, query=""):
    return ("PUT", o["kind"], o["metadata"]["name"], query, None, o)


def apply(o, manager="one", force=False, more="", name=None):
    kind = o["kind"] if isinstance(o, dict) else "ConfigMap"
    return ("PATCH", kind, name or (o["metadata"]["name"] if isinstance(o, dict) else "a"),
            f"?fieldManager={manager}{'&force=true' if force else ''}{more}", APPLY, o)


def cm_json(*ops, query=""):
    return patch("ConfigMap", JSON, list(ops), query)


def op(name, path, **kw):
    return {"op": name, "path": path, **kw}


AB = with_data({"a": "1", "b": "2"})
NOTE = "kubectl.kubernetes.io/last-applied-configuration"


def last_applied(o):
    text = json.dumps(o)
    return {**o, "metadata": {**o["metadata"], "annotations": {NOTE: text}}}


CASES = {
    # JSON patches
    "json add": [make(AB), cm_json(op("add", "/data/c", value="3"))],
    "json remove": [make(AB), cm_json(op("remove", "/data/a"))],
    "json remove all data": [make(AB), cm_json(op("remove", "/data"))],
    "json remove missing": [make(AB), cm_json(op("remove", "/data/x"))],
    "json replace missing": [make(AB), cm_json(op("replace", "/data/x", value="y"))],
    "json test holds": [make(AB), cm_json(op("test", "/data/a", value="1"), op("add", "/data/c", value="3"))],
    "json test fails": [make(AB), cm_json(op("test", "/data/a", value="9"), op("add", "/data/c", value="3"))],
    "json test path missing": [make(AB), cm_json(op("test", "/x/y", value="9"))],
    "json move": [make(AB), cm_json(op("move", "/data/z", **{"from": "/data/a"}))],
    "json copy": [make(AB), cm_json(op("copy", "/data/z", **{"from": "/data/a"}))],
    "json copy missing": [make(AB), cm_json(op("copy", "/data/z", **{"from": "/x/y"}))],
    "json escaped": [make(config(annotations={"x.io/a": "1"})),
                     cm_json(op("replace", "/metadata/annotations/x.io~1a", value="2"))],
    "json to nothing": [make(AB), cm_json(op("add", "/x/y", value=1))],
    "json unknown op": [make(AB), cm_json(op("spam", "/data/a"))],
    "json without op": [make(AB), cm_json({"path": "/data/a"})],
    "json without path": [make(AB), cm_json({"op": "remove"})],
    "json empty": [make(AB), cm_json()],
    "json is an object": [make(AB), patch("ConfigMap", JSON, {})],
    "json op is a number": [make(AB), cm_json({"op": 1, "path": "/x"})],
    "json too many": [make(AB), cm_json(*[op("test", "/data/a", value="1")] * 10001)],
    "json other name": [make(AB), cm_json(op("replace", "/metadata/name", value="b"))],
    "json other version": [make(AB), cm_json(op("replace", "/metadata/resourceVersion", value="1"))],
    "json absent": [cm_json(op("add", "/data/c", value="3"))],
    "json dry": [make(AB), cm_json(op("add", "/data/c", value="3"), query="?dryRun=All"),
                 ("GET", "ConfigMap", "a", "", None, None)],
    "json twice by one manager": [make(AB, "?fieldManager=m"),
                                  cm_json(op("add", "/data/c", value="3"), query="?fieldManager=m"),
                                  cm_json(op("remove", "/data/a"), query="?fieldManager=m")],
    "json list": [make(config(finalizers=["x.io/a", "x.io/b"])),
                  cm_json(op("remove", "/metadata/finalizers/0"), op("add", "/metadata/finalizers/-", value="x.io/c")),
                  cm_json(op("remove", "/metadata/finalizers"))],
    # merge patches
    "merge": [make(AB), patch("ConfigMap", MERGE, {"data": {"a": "9", "c": "3"}})],
    "merge null": [make(AB), patch("ConfigMap", MERGE, {"data": {"a": None}})],
    "merge nothing": [make(AB), patch("ConfigMap", MERGE, {})],
    "merge labels by another": [make(AB), patch("ConfigMap", MERGE, {"metadata": {"labels": {"l": "1"}}},
                                                "?fieldManager=other")],
    "merge is a list": [make(AB), patch("ConfigMap", MERGE, [])],
    "merge is a text": [make(AB), patch("ConfigMap", MERGE, '"x"')],
    "merge with charset": [make(AB), patch("ConfigMap", "application/merge-patch+json; charset=utf-8", {"data": {"z": "1"}})],
    "merge list": [make(config(finalizers=["x.io/a"])),
                   patch("ConfigMap", MERGE, {"metadata": {"finalizers": ["x.io/b"]}}),
                   patch("ConfigMap", MERGE, {"metadata": {"finalizers": None}})],
    "merge takes a field": [make(AB, "?fieldManager=one"),
                            patch("ConfigMap", MERGE, {"data": {"a": "9"}}, "?fieldManager=two"),
                            patch("ConfigMap", MERGE, {"data": {"a": "9"}}, "?fieldManager=three")],
    "merge other version": [make(AB), patch("ConfigMap", MERGE, {"metadata": {"resourceVersion": "1"}})],
    "merge absent": [patch("ConfigMap", MERGE, {})],
    "unknown type": [make(AB), patch("ConfigMap", "application/spam", {})],
    "long manager": [make(AB), patch("ConfigMap", MERGE, {}, "?fieldManager=" + "x" * 129)],
    # updates
    "put": [make(AB), put(with_data({"a": "9"}))],
    "put by another": [make(AB, "?fieldManager=one"), put(with_data({"a": "1", "b": "3"}), "?fieldManager=two")],
    "put the same": [make(AB), put(AB, "?fieldManager=two")],
    "put resets managers": [make(AB), put({**AB, "metadata": {"name": "a", "managedFields": [{}]}})],
    "put with no managers": [make(AB), put({**AB, "metadata": {"name": "a", "managedFields": []}})],
    "put with managers": [make(AB), put({**AB, "metadata": {"name": "a", "managedFields": [
        {"manager": "x", "operation": "Apply", "apiVersion": "v1", "time": "2026-01-02T03:04:05Z",
         "fieldsType": "FieldsV1", "fieldsV1": {"f:data": {"f:a": {}}}}]}})],
    "put with bad managers": [make(AB), put({**AB, "metadata": {"name": "a", "managedFields": [
        {"manager": "x", "operation": "Spam", "apiVersion": "v1", "fieldsType": "FieldsV1",
         "fieldsV1": {"f:data": {}}}]}})],
    "reset and go on": [make(AB), patch("ConfigMap", MERGE, {"metadata": {"managedFields": [{}]}}),
                        patch("ConfigMap", MERGE, {"data": {"a": "9"}}),
                        apply(with_data({"a": "9"})), apply(with_data({"a": "8"}), "two")],
    "eleven updaters": [make(AB, "?fieldManager=m0"),
                        *[patch("ConfigMap", MERGE, {"data": {f"k{i}": "1"}}, f"?fieldManager=m{i}")
                          for i in range(1, 10)]],
    # server-side apply
    "apply creates": [apply(AB)],
    "apply again": [apply(AB), apply(AB)],
    "apply changes": [apply(AB), apply(with_data({"a": "9", "b": "2"}))],
    "apply less": [apply(AB), apply(with_data({"a": "1"}))],
    "apply nothing more": [apply(AB), apply(config())],
    "apply over a create": [make(AB), apply(with_data({"c": "3"}))],
    "apply conflict": [make(AB), apply(with_data({"a": "9"}))],
    "apply conflicts": [make(AB), apply(with_data({"a": "9", "b": "8"}))],
    "apply conflict with an applier": [apply(AB), apply(with_data({"a": "9"}), "two")],
    "apply conflicts with two": [apply(with_data({"a": "1"})), apply(with_data({"b": "2"}), "two"),
                                 apply(with_data({"a": "9", "b": "8"}), "three")],
    "apply force": [make(AB), apply(with_data({"a": "9"}), force=True)],
    "apply the same value": [make(AB), apply(with_data({"a": "1"}))],
    "apply co-owned": [apply(AB), apply(with_data({"a": "1"}), "two"), apply(config())],
    "apply co-owned changes": [apply(AB), apply(with_data({"a": "1"}), "two"), apply(with_data({"a": "9"}))],
    "apply after an update": [apply(AB), patch("ConfigMap", MERGE, {"data": {"a": "9"}}), apply(AB),
                              apply(AB, force=True)],
    "apply after a removal": [apply(AB), patch("ConfigMap", MERGE, {"data": {"a": None}}), apply(AB)],
    "apply takes labels": [apply({**AB, "metadata": {"name": "a", "labels": {"x": "1", "y": "2"}}}),
                           apply({**AB, "metadata": {"name": "a", "labels": {"y": "2"}}})],
    "apply finalizers": [apply({**config(finalizers=["x.io/a", "x.io/b"])}),
                         apply(config(finalizers=["x.io/c"]), "two"), apply(config(finalizers=["x.io/b"])),
                         patch("ConfigMap", MERGE, {"metadata": {"finalizers": None}})],
    "apply duplicate finalizers": [apply(config(finalizers=["x.io/a", "x.io/a"]))],
    "apply owners": [apply(config(ownerReferences=[
        {"apiVersion": "v1", "kind": "Secret", "name": "s", "uid": "11111111-1111-4111-8111-111111111111"}]))],
    "apply owner without uid": [apply(config(ownerReferences=[{"apiVersion": "v1", "kind": "Secret", "name": "s"}]))],
    "apply no manager": [patch("ConfigMap", APPLY, AB)],
    "apply yaml": [apply("apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: a\ndata:\n  x: |\n    two\n    lines\n")],
    "apply other kind": [apply({**AB, "kind": "ConfigMap", "apiVersion": "v2"})],
    "apply no kind": [apply('{"apiVersion":"v1","metadata":{"name":"a"}}')],
    "apply other name": [apply(AB, name="b")],
    "apply with managers": [apply({**AB, "metadata": {"name": "a", "managedFields": [{"manager": "x"}]}})],
    "apply uid of nothing": [apply({**AB, "metadata": {"name": "a", "uid": "11111111-1111-4111-8111-111111111111"}})],
    "apply old version": [make(AB), apply({**AB, "metadata": {"name": "a", "resourceVersion": "1"}})],
    "apply dry": [apply(AB, more="&dryRun=All"), ("GET", "ConfigMap", "a", "", None, None)],
    "apply null": [make(AB), apply({**config(), "data": None})],
    "apply empty data": [apply({**config(), "data": {}})],
    "apply as kubectl over its own": [make(last_applied(AB), "?fieldManager=kubectl-client-side-apply"),
                                      apply(with_data({"a": "9", "b": "2"}), "kubectl")],
    "apply as kubectl over another": [make(last_applied(AB), "?fieldManager=kubectl-client-side-apply"),
                                      patch("ConfigMap", MERGE, {"data": {"a": "5"}}, "?fieldManager=x"),
                                      apply(with_data({"a": "9", "b": "7"}), "kubectl")],
    # lists with keys
    "apply secrets": [apply(account("a", "b")), apply(account("b", "c")), apply(account("b"), "two")],
    "apply secrets in order": [apply(account("a", "b", "c")), apply(account("c", "d", "a"))],
    "apply secret twice": [apply(account("a", "a"))],
    "apply secret without name": [apply({**account(), "secrets": [{"fieldPath": "f"}]})],
    "apply imagePullSecrets": [apply(account(imagePullSecrets=[{"name": "a"}])),
                               apply(account(imagePullSecrets=[{"name": "b"}]), "two")],
    "secret": [make({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "a"}, "type": "Opaque",
                     "data": {"k": "dg=="}}),
               apply({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "a"}, "data": {"k": "eA=="}}),
               patch("Secret", MERGE, {"data": {"l": "eA=="}})],
}


def strategic(body, kind="ServiceAccount"):
    return patch(kind, STRATEGIC, body)


def two():
    return make(account("a", "b"))


def machine(name="a", **spec):
    return {"apiVersion": "trusted-execution-clusters.io/v1alpha1", "kind": "Machine",
            "metadata": {"name": name}, "spec": {"id": "3f1c2b9a-6d0e-4c53-9a7b-2f8e5d104c6f", **spec}}


def condition(kind, status="True"):
    return {"type": kind, "status": status, "reason": "Because", "message": "A sentence.",
            "lastTransitionTime": "2026-01-02T03:04:05Z", "observedGeneration": 1}


def status_of(o, *conditions):
    return {"apiVersion": o["apiVersion"], "kind": o["kind"], "metadata": o["metadata"],
            "status": {"conditions": list(conditions)}}


def apply_status(o, manager="one", force=False):
    return ("PATCH", "Machine", "a/status", f"?fieldManager={manager}{'&force=true' if force else ''}", APPLY, o)


CASES.update({
    # strategic merge patches
    "strategic add": [two(), strategic({"secrets": [{"name": "c"}]})],
    "strategic add first": [two(), strategic({"secrets": [{"name": "c"}, {"name": "a"}]})],
    "strategic delete": [two(), strategic({"secrets": [{"name": "a", "$patch": "delete"}]})],
    "strategic delete without key": [two(), strategic({"secrets": [{"$patch": "delete"}]})],
    "strategic unknown directive": [two(), strategic({"metadata": {"$patch": "spam"}})],
    "strategic order": [two(), strategic({"$setElementOrder/secrets": [{"name": "b"}, {"name": "a"}]})],
    "strategic order and add": [two(), strategic({
        "$setElementOrder/secrets": [{"name": "b"}, {"name": "c"}, {"name": "a"}], "secrets": [{"name": "c"}]})],
    "strategic order and delete": [two(), strategic({
        "$setElementOrder/secrets": [{"name": "b"}], "secrets": [{"name": "a", "$patch": "delete"}]})],
    "strategic without key": [two(), strategic({"secrets": [{"fieldPath": "j"}]})],
    "strategic imagePullSecrets": [make(account(imagePullSecrets=[{"name": "a"}])),
                                   strategic({"imagePullSecrets": [{"name": "b"}]})],
    "strategic finalizers": [make(config(finalizers=["x.io/a", "x.io/b"])),
                             strategic({"metadata": {"finalizers": ["x.io/c", "x.io/a"]}}, "ConfigMap"),
                             strategic({"metadata": {"$deleteFromPrimitiveList/finalizers": ["x.io/a"]}}, "ConfigMap"),
                             strategic({"metadata": {"$setElementOrder/finalizers": ["x.io/c", "x.io/b"]}}, "ConfigMap"),
                             patch("ConfigMap", MERGE, {"metadata": {"finalizers": None}})],
    "strategic delete is no list": [make(config(finalizers=["x.io/a"])),
                                    strategic({"metadata": {"$deleteFromPrimitiveList": ["x"]}}, "ConfigMap"),
                                    patch("ConfigMap", MERGE, {"metadata": {"finalizers": None}})],
    "strategic order is no directive": [make(config(finalizers=["x.io/a"])),
                                        strategic({"metadata": {"$setElementOrder": ["x"]}}, "ConfigMap"),
                                        patch("ConfigMap", MERGE, {"metadata": {"finalizers": None}})],
    "strategic data": [make(AB), strategic({"data": {"a": None, "c": "3"}}, "ConfigMap")],
    "strategic same": [make(AB), strategic({"data": {"a": "1"}}, "ConfigMap")],
    "strategic is a list": [make(AB), strategic([], "ConfigMap")],
    # our kinds
    "strategic of a custom resource": [make(machine()), patch("Machine", STRATEGIC, {})],
    "json of a custom resource": [make(machine()),
                                  patch("Machine", JSON, [op("add", "/metadata/labels", value={"x": "1"})])],
    "create a custom resource": [make(machine())],
    "apply a custom resource": [apply(machine()), apply(machine(), "two"),
                                apply({**machine(), "metadata": {"name": "a", "labels": {"x": "1"}}})],
    "apply conditions": [make(machine()), apply_status(status_of(machine(), condition("A"), condition("B"))),
                         apply_status(status_of(machine(), condition("B", "False"))),
                         apply_status(status_of(machine(), condition("B")), "two"),
                         apply_status(status_of(machine(), condition("B")), "two", True)],
    "apply status of nothing": [apply_status(status_of(machine(), condition("A")))],
    "apply condition twice": [make(machine()), apply_status(status_of(machine(), condition("A"), condition("A")))],
    "apply unknown field": [apply(machine(spam=1))],
})

# Case: why our answer is another one.
DIFFERENT = {
    "apply owner without uid": "the values of built-in kinds are not validated: refused as no element",
    "strategic delete without key": "the message does not repeat the patch",
    "strategic unknown directive": "the message does not repeat the patch",
    "strategic without key": "the message does not repeat the patch",
}


def told(answer):
    """Without the sentences of a refusal, which are each server's own; programs match the rest."""
    if answer.get("status") != "Failure":
        return answer
    causes = [{k: v for k, v in c.items() if k != "message"} for c in answer.get("details", {}).get("causes", [])]
    details = {**answer.get("details", {}), **({"causes": causes} if causes else {})}
    return {**{k: v for k, v in answer.items() if k != "message"}, **({"details": details} if details else {})}


def run(ask, namespace, steps):
    answers, uids = [], set()
    for method, kind, name, query, content_type, body in steps:
        path = PATHS[kind].format(ns=namespace) + (f"/{name}" if name else "") + query
        status, answer = ask(method, path, body, content_type)
        uid = answer.get("metadata", {}).get("uid")
        if uid:
            uids.add(uid)
        answers.append((status, told(masked(answer, uids, namespace))))
    return answers


@pytest.mark.parametrize("case", CASES)
def test_same_answers(both, case):
    (ns, theirs), (place, here) = both
    want = run(theirs, ns, CASES[case])
    have = run(here, place, CASES[case])
    if case in DIFFERENT:
        assert have != want, "it is not different any more"
        assert [h[0] // 100 == 2 for h in have] == [w[0] // 100 == 2 for w in want], have
        return
    for step, (w, h) in enumerate(zip(want, have)):
        assert h[0] == w[0] and h[1] == w[1], (
            f"step {step}: kube-apiserver\n{json.dumps(w, sort_keys=True)}\nhere\n{json.dumps(h, sort_keys=True)}")


def test_an_apply_that_changes_nothing_is_no_write(both):
    for ns, ask in both:
        path = PATHS["ConfigMap"].format(ns=ns) + "/a?fieldManager=one"
        first = ask("PATCH", path, AB, APPLY)[1]
        again = ask("PATCH", path, AB, APPLY)[1]
        assert again == first
