# SPDX-License-Identifier: MIT
"""What a request may carry whatever its kind (names, owners, finalizers, options), and the data of Secrets and
ConfigMaps, on kube-apiserver and on tec-operator --standalone. One table, two servers; what differs on purpose is
listed with the reason."""

import base64
import re

import pytest

from test_two_servers_bodies import DRY, MERGE, raw_servers, seen, wrong_rows

NS = "two-servers-rules"
CORE = f"/api/v1/namespaces/{NS}"
MAPS, SECRETS = f"{CORE}/configmaps", f"{CORE}/secrets"
MACHINES = f"/apis/trusted-execution-clusters.io/v1alpha1/namespaces/{NS}/machines"
TYPE = "kubernetes.io/"


@pytest.fixture(scope="module")
def both(cp, tmp_path_factory):
    with raw_servers(cp, tmp_path_factory.mktemp("rules"), NS) as servers:
        yield servers


def config_map(metadata=None, **members):
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "x"} if metadata is None else metadata, **members}


def secret(type_=None, annotations=None, **data):
    return {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "x", "annotations": annotations or {}},
            **({"type": type_} if type_ else {}), "data": {k: base64.b64encode(v.encode()).decode() for k, v in data.items()}}


def bare(kind):
    return {"apiVersion": "v1", "kind": kind, "metadata": {"name": "x"}}


KEYS = {"dots": "..", "dots-more": "..x", "dot": ".", "empty": "", "long": "k" * 254, "long-bad": "k b" * 85, "dot-in": ".x",
        "slash": "a/b", "three": "...", "quote": 'a"b', "bracket": "a]b"}
TEXTS = {"cut": "{", "list": "[]", "null": "null", "after": "{} x", "good": '{"auths":{}}', "nothing": "", "comma": '{"a":1,}'}

DATA = [
    *((f"secret-key-{name}", "POST", SECRETS + DRY, secret(None, **{key: "v"})) for name, key in KEYS.items()),
    *((f"map-key-{name}", "POST", MAPS + DRY, config_map(data={key: "v"})) for name, key in KEYS.items()),
    *((f"map-binary-key-{name}", "POST", MAPS + DRY, config_map(binaryData={key: "dg=="})) for name, key in KEYS.items()),
    ("map-both", "POST", MAPS + DRY, config_map(data={"a": "b", "..": "v"}, binaryData={"..": "dg=="})),
    ("map-both-one", "POST", MAPS + DRY, config_map(data={"a": "b", "c": "v"}, binaryData={"c": "dg=="})),
    ("map-and-name", "POST", MAPS + DRY, config_map({"name": "A b"}, data={"..": "v"})),
    ("map-large", "POST", MAPS + DRY, config_map(data={"a": "x" * (1 << 20), "b": "x"})),
    ("map-large-key", "POST", MAPS + DRY, config_map(data={"..": "x" * (1 << 20), "b": "x"})),
    ("secret-large", "POST", SECRETS + DRY, secret(None, a="x" * (1 << 20), b="x")),
    ("secret-large-key", "POST", SECRETS + DRY, secret(TYPE + "tls", **{"..": "x" * (1 << 20), "b": "x"})),
    ("secret-string-key", "POST", SECRETS + DRY, {**bare("Secret"), "stringData": {"..": "v"}}),
    ("secret-name-key", "POST", SECRETS + DRY, {**secret(TYPE + "tls", **{"..": "v"}), "metadata": {"name": "A b"}}),
    ("basic-none", "POST", SECRETS + DRY, secret(TYPE + "basic-auth")),
    ("basic-user", "POST", SECRETS + DRY, secret(TYPE + "basic-auth", username="")),
    ("basic-password", "POST", SECRETS + DRY, secret(TYPE + "basic-auth", password="p")),
    ("ssh-none", "POST", SECRETS + DRY, secret(TYPE + "ssh-auth")),
    ("ssh-empty", "POST", SECRETS + DRY, secret(TYPE + "ssh-auth", **{"ssh-privatekey": ""})),
    ("ssh-key", "POST", SECRETS + DRY, secret(TYPE + "ssh-auth", **{"ssh-privatekey": "k"})),
    ("tls-none", "POST", SECRETS + DRY, secret(TYPE + "tls")),
    ("tls-key", "POST", SECRETS + DRY, secret(TYPE + "tls", **{"tls.key": ""})),
    ("token-none", "POST", SECRETS + DRY, secret(TYPE + "service-account-token")),
    ("token-empty", "POST", SECRETS + DRY, secret(TYPE + "service-account-token", {TYPE + "service-account.name": ""})),
    ("docker-none", "POST", SECRETS + DRY, secret(TYPE + "dockercfg")),
    ("docker-json-none", "POST", SECRETS + DRY, secret(TYPE + "dockerconfigjson", other="x")),
    *((f"docker-json-{name}", "POST", SECRETS + DRY, secret(TYPE + "dockerconfigjson", **{".dockerconfigjson": text}))
      for name, text in TEXTS.items()),
    *((f"docker-{name}", "POST", SECRETS + DRY, secret(TYPE + "dockercfg", **{".dockercfg": text}))
      for name, text in TEXTS.items() if name in ("cut", "good", "list")),
    ("secret-type-free", "POST", SECRETS + DRY, secret("example.org/x")),
    ("secret-type-none", "POST", SECRETS + DRY, secret(None)),
    ("secret-type-empty", "POST", SECRETS + DRY, {**secret(None), "type": ""}),
    ("secret-made", "POST", SECRETS, {**secret(TYPE + "basic-auth", username="u"), "metadata": {"name": "p"}}),
    ("secret-made-key", "PATCH", SECRETS + "/p" + DRY, {"data": {"..": "dg=="}}, MERGE),
    ("secret-made-none", "PATCH", SECRETS + "/p" + DRY, {"data": {"username": None}}, MERGE),
    ("secret-made-type", "PATCH", SECRETS + "/p" + DRY, {"type": TYPE + "tls"}, MERGE),
    ("secret-made-typeless", "PATCH", SECRETS + "/p" + DRY, {"type": None}, MERGE),
    ("secret-immutable", "PATCH", SECRETS + "/p", {"immutable": True}, MERGE),
    ("secret-immutable-more", "PATCH", SECRETS + "/p" + DRY, {"immutable": None, "type": "x", "data": {"..": "dg==", "password": "dg=="}}, MERGE),
    ("map-made", "POST", MAPS, config_map({"name": "p"}, data={"a": "b"}, immutable=True)),
    ("map-immutable-more", "PATCH", MAPS + "/p" + DRY, {"immutable": None, "data": {"..": "b", "a": None}, "binaryData": {"a": "dg=="}}, MERGE),
]

OWNER = {"apiVersion": "v1", "kind": "ConfigMap", "name": "o", "uid": "1"}
MACHINE = {"apiVersion": "trusted-execution-clusters.io/v1alpha1", "kind": "Machine", "metadata": {"name": "x"},
           "spec": {"id": "3f1c2b9a-6d0e-4c53-9a7b-2f8e5d104c6f"}}
GROUPS = {"ConfigMap": ("v1", {}), "Secret": ("v1", {}), "ServiceAccount": ("v1", {}),
          "Event": ("v1", {"involvedObject": {"namespace": NS}}),
          "RoleBinding": ("rbac.authorization.k8s.io/v1", {"roleRef": {
              "apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "view"}}),
          "Machine": ("trusted-execution-clusters.io/v1alpha1", {"spec": MACHINE["spec"]})}


def of_kind(kind, **metadata):
    """(path, object) of a request that makes one."""
    version, rest = GROUPS[kind]
    return (f"/api{'s' if '/' in version else ''}/{version}/namespaces/{NS}/{kind.lower()}s",
            {"apiVersion": version, "kind": kind, "metadata": metadata, **rest})


def made(row, kind, **metadata):
    path, o = of_kind(kind, **metadata)
    return (row, "POST", path + DRY, o)


def owners(*of):
    return config_map({"name": "x", "ownerReferences": list(of)})


NAMES = {"capital": "A", "dots": "a.b", "dot": ".", "percent": "a%", "under": "a_b", "digit": "1a", "dash": "a-", "colon": "a:b",
         "label": "a" * 64, "long": "a" * 254, "long-bad": "A" * 254}
PREFIXES = {"dash": "a-", "dashes": "a--", "alone": "-", "dot-alone": ".", "percent": "a%", "long": "a" * 60 + "-",
            "longer": "a" * 300, "colon": "a:"}
FINALIZERS = {"bare": ["a"], "standard": ["kubernetes"], "both": ["orphan", "foregroundDeletion"], "slashes": ["a/b/c"], "empty": [""],
              "spaces": ["a b"], "good": ["a.b/c"], "prefix": ["/a"], "three": ["foregroundDeletion", "x", "orphan"],
              "long": ["a" * 64], "long-prefix": ["a" * 254 + "/a"]}
METADATA = [
    *(made(f"name-{kind}-{what}", kind, name=name) for kind in GROUPS for what, name in NAMES.items()),
    *(made(f"prefix-{kind}-{what}", kind, generateName=name) for kind in ("Machine", "ConfigMap", "RoleBinding")
      for what, name in PREFIXES.items() if what not in ("dash", "dashes", "long") and (kind, what) not in (
          *(("RoleBinding", what) for what in ("colon", "dot-alone", "alone", "longer")),)),
    *(made(f"prefix-too-{kind}", kind, generateName="A b", name="ok") for kind in ("Machine", "ConfigMap", "RoleBinding")),
    *(made(f"finalizers-{kind}-{what}", kind, name="x", finalizers=names)
      for kind in ("Machine", "ConfigMap", "Event", "RoleBinding") for what, names in FINALIZERS.items()),
    ("owner-event", "POST", MAPS + DRY, owners({**OWNER, "kind": "Event"})),
    ("owner-event-new", "POST", MAPS + DRY, owners({**OWNER, "kind": "Event", "apiVersion": "events.k8s.io/v1"})),
    ("owner-event-controller", "POST", MAPS + DRY, owners({**OWNER, "kind": "Event", "controller": True, "blockOwnerDeletion": False})),
    ("owner-version", "POST", MAPS + DRY, owners({**OWNER, "apiVersion": "a/b/c"})),
    ("owner-version-end", "POST", MAPS + DRY, owners({**OWNER, "apiVersion": "a/"})),
    ("owner-version-slash", "POST", MAPS + DRY, owners({**OWNER, "apiVersion": "/"})),
    ("owner-version-begin", "POST", MAPS + DRY, owners({**OWNER, "apiVersion": "/v1"})),
    ("owner-two", "POST", MAPS + DRY, owners({**OWNER, "controller": True}, {**OWNER, "uid": "2", "name": "p", "controller": True})),
    ("owner-three", "POST", MAPS + DRY, owners(*({**OWNER, "uid": n, "name": n, "controller": True} for n in "pqr"))),
    ("owner-two-false", "POST", MAPS + DRY, owners({**OWNER, "controller": True}, {**OWNER, "uid": "2", "controller": False})),
    ("owner-two-bad", "POST", MAPS + DRY, owners({**OWNER, "kind": "", "controller": True}, {**OWNER, "name": "", "controller": True})),
    ("owner-two-machine", "POST", MACHINES + DRY, {**MACHINE, "metadata": {"name": "x", "ownerReferences": [
        {**OWNER, "controller": True}, {**OWNER, "uid": "2", "name": "p", "controller": True}]}}),
    ("owner-type", "POST", MAPS + DRY, owners({**OWNER, "controller": "x"})),
    ("version-empty", "POST", MAPS + DRY, config_map({"name": "x", "resourceVersion": ""})),
    ("version-some", "POST", MAPS + DRY, config_map({"name": "x", "resourceVersion": "5"})),
    ("version-zero", "POST", MAPS + DRY, config_map({"name": "x", "resourceVersion": "0"})),
    ("version-word", "POST", MAPS + DRY, config_map({"name": "x", "resourceVersion": "x"})),
    ("version-made", "POST", MAPS, config_map({"name": "v1", "resourceVersion": "5"})),
    ("version-made-zero", "POST", MAPS, config_map({"name": "v2", "resourceVersion": "0"})),
    ("version-made-word", "POST", MAPS, config_map({"name": "v3", "resourceVersion": "x"})),
    ("version-made-bad", "POST", MAPS, config_map({"name": "A b", "resourceVersion": "5"})),
    ("version-made-there", "POST", MAPS, config_map({"name": "v2", "resourceVersion": "5"})),
    ("version-null", "POST", MAPS + DRY, config_map({"name": "x", "resourceVersion": None})),
    ("version-machine", "POST", MACHINES + DRY, {**MACHINE, "metadata": {"name": "x", "resourceVersion": "5"}}),
    ("version-machine-empty", "POST", MACHINES + DRY, {**MACHINE, "metadata": {"name": "x", "resourceVersion": ""}}),
    ("version-and-more", "POST", MAPS + DRY, config_map({"name": "A b", "resourceVersion": "5"})),
    ("namespace-other", "POST", MAPS + DRY, config_map({"name": "x", "namespace": "other"})),
    ("namespace-bad", "POST", MAPS + DRY, config_map({"name": "x", "namespace": "A b"})),
    ("annotations-large", "POST", MAPS + DRY, config_map({"name": "x", "annotations": {"a": "x" * (256 << 10)}})),
    ("annotations-full", "POST", MAPS + DRY, config_map({"name": "x", "annotations": {"a": "x" * ((256 << 10) - 1)}})),
    ("annotations-prefix", "POST", MAPS + DRY, config_map({"name": "x", "annotations": {"A.b/C": "x"}})),
    ("annotations-long", "POST", MAPS + DRY, config_map({"name": "x", "annotations": {"a" * 64: "x"}})),
    ("annotations-long-prefix", "POST", MAPS + DRY, config_map({"name": "x", "annotations": {"a" * 254 + "/a": "x"}})),
    ("labels-long-bad", "POST", MAPS + DRY, config_map({"name": "x", "labels": {"a": "!" * 64}})),
    ("labels-long-prefix", "POST", MAPS + DRY, config_map({"name": "x", "labels": {"A" * 254 + "/a": "x"}})),
    ("managed-operation", "POST", MAPS + DRY, config_map({"name": "x", "managedFields": [{"operation": "x", "manager": "m"}]})),
    ("all-at-once", "POST", MAPS + DRY, config_map({"generateName": "A b", "name": "A b", "labels": {"a b": "c"}, "annotations": {
        "a b": "c"}, "ownerReferences": [{}], "finalizers": ["a"]}, data={"..": "x"})),
    ("all-machine", "POST", MACHINES + DRY, {**MACHINE, "metadata": {"generateName": "A b", "name": "A b", "labels": {"a b": "c"}, "annotations": {
        "a b": "c"}, "ownerReferences": [{}], "finalizers": ["a b"]}, "spec": {"id": "x"}}),
    ("there", "POST", MAPS, config_map({"name": "q", "finalizers": ["a.b/c"]})),
    ("there-finalizer", "PATCH", MAPS + "/q" + DRY, {"metadata": {"finalizers": ["a"]}}, MERGE),
    ("there-finalizers", "PATCH", MAPS + "/q" + DRY, {"metadata": {"finalizers": ["foregroundDeletion", "orphan"]}}, MERGE),
    ("there-owner", "PATCH", MAPS + "/q" + DRY, {"metadata": {"ownerReferences": [{**OWNER, "uid": ""}]}}, MERGE),
    ("there-owner-uid", "PATCH", MAPS + "/q" + DRY, {"metadata": {"ownerReferences": [{**OWNER, "kind": "Event"}]}}, MERGE),
    ("there-labels", "PATCH", MAPS + "/q" + DRY, {"metadata": {"labels": {"a b": "c"}, "annotations": {"d e": "f"}}}, MERGE),
    ("there-prefix", "PATCH", MAPS + "/q" + DRY, {"metadata": {"generateName": "A b"}}, MERGE),
    ("there-deleted", "DELETE", MAPS + "/q", None),
    ("there-more", "PATCH", MAPS + "/q" + DRY, {"metadata": {"finalizers": ["a.b/c", "a.b/e", "a.b/d"]}}, MERGE),
    ("there-gone", "PATCH", MAPS + "/q", {"metadata": {"finalizers": None}}, MERGE),
]


FREE = {"name": "x", "finalizers": ["a", "a.b", "a.b/c", "orphan"]}
METADATA += [made(f"warned-finalizers-{kind}", kind, **FREE) for kind in ("Machine", "Event")]


def option(name, method, query, body=None):
    path = MAPS + ("" if method == "POST" else "/r")
    kind = [MERGE] if method == "PATCH" else []
    return (f"{name}-{method}-{query}", method, f"{path}?{query}", body or (None if method == "DELETE" else config_map({"name": "r"})), *kind)


OPTIONS = [
    ("option-target", "POST", MAPS, config_map({"name": "r"})),
    *(option("option", method, query) for method in ("POST", "PUT", "PATCH", "DELETE") for query in (
        "dryRun=x", "dryRun=", "dryRun=all", "dryRun=All&dryRun=x", "dryRun=x&dryRun=y", "dryRun=All&dryRun=All")),
    *(option("option", method, query) for method in ("POST", "PUT", "PATCH") for query in (
        "fieldValidation=x&dryRun=All", "fieldValidation=&dryRun=All", "fieldValidation=strict&dryRun=x&fieldManager=" + "m" * 129,
        "fieldManager=" + "m" * 129, "fieldManager=a%01b")),
    *(option("option", method, "force=true&dryRun=All") for method in ("PATCH", "PUT")),
    *(option("option", "DELETE", query) for query in (
        "propagationPolicy=x", "propagationPolicy=&dryRun=All", "propagationPolicy=Orphan&dryRun=x", "orphanDependents=true&dryRun=All",
        "propagationPolicy=Orphan&orphanDependents=true&dryRun=All", "gracePeriodSeconds=x&dryRun=All", "orphanDependents=x&dryRun=All")),
    *(option(f"option-body{i}", "DELETE", "dryRun=All", {"kind": "DeleteOptions", "apiVersion": "v1", **body}) for i, body in enumerate((
        {"propagationPolicy": "x"}, {"propagationPolicy": ""}, {"propagationPolicy": "Orphan", "orphanDependents": False},
        {"propagationPolicy": "x", "orphanDependents": False, "dryRun": ["x"]}, {"dryRun": ["x"]}, {"dryRun": ["All", "y"]}, {"dryRun": []},
        {"propagationPolicy": 5}))),
    *(("option-all-" + query, "DELETE", f"{MAPS}?labelSelector=none%3Dx&{query}", None) for query in ("dryRun=x", "propagationPolicy=x")),
    *(("option-absent-" + query, method, f"{MAPS}/absent?{query}", body, *kind) for query in ("dryRun=x", "propagationPolicy=x")
      for method, body, *kind in (("DELETE", None), ("PATCH", {}, MERGE), ("PUT", config_map({"name": "absent"})))),
]


ROWS = DATA + METADATA + OPTIONS


def brief(answer):
    """Of what is made only that it is, and with which warning: other tables look at what is filled in."""
    status, body, warning = answer
    shown = seen((status, "" if status < 300 else body, warning))
    return re.sub(r"((?<=[-.%:])|(?<=a{58}))[bcdfghjklmnpqrstvwxz2456789]{5}(?=\\*\")", "RANDOM", shown)


# Name of a row -> why a client sees something else here.
DIFFERENT = {
    **{f"name-{kind}-{what}": "a name has at most 253 characters, whatever the kind"
       for kind in ("Event", "RoleBinding") for what in ("long", "long-bad")},
    "docker-json-null": "it holds no credentials, so it must be an object",
    "option-body7-DELETE-dryRun=All": "kube-apiserver answers that with 500",
}


def test_both_answer_the_same(both):
    wrong = wrong_rows(both, DATA + OPTIONS, DIFFERENT) + wrong_rows(both, METADATA, DIFFERENT, brief)
    assert not wrong, f"{len(wrong)} of {len(ROWS)}:\n" + "\n".join(wrong)
