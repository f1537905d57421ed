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
DEPLOYMENTS = f"/apis/apps/v1/namespaces/{NS}/deployments"
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
TEXTS = {"cut": "{", "text": "x", "list": "[]", "null": "null", "number": "5", "after": "{} x", "good": '{"auths":{}}', "nothing": "",
         "name": "{a:1}", "word": '{"a":tru}', "comma": '{"a":1,}', "string": '"a', "control": '{"a":"\n"}', "escape": '{"a":"\\x"}',
         "float": '{"a":1.}', "minus": '{"a":-}', "zero": '{"a":01}', "large": '{"a":1e999}', "colon": '{"a" 1}', "two": '{"a":1 "b":2}',
         "array": '{"a":[1 2]}', "exponent": '{"a":1e}', "unicode": '{"a":"\\u12x4"}', "nul": "\x01", "quote": "'a'", "true": "true"}

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
POD = {"containers": [{"name": "c", "image": "a"}]}
GROUPS = {"ConfigMap": ("v1", {}), "Secret": ("v1", {}), "ServiceAccount": ("v1", {}), "Pod": ("v1", {"spec": POD}),
          "Service": ("v1", {"spec": {"ports": [{"port": 80}]}}), "Event": ("v1", {"involvedObject": {"namespace": NS}}),
          "PersistentVolumeClaim": ("v1", {"spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}}),
          "Deployment": ("apps/v1", {"spec": {"selector": {"matchLabels": {"a": "b"}}, "template": {
              "metadata": {"labels": {"a": "b"}}, "spec": POD}}}),
          "ReplicaSet": ("apps/v1", {"spec": {"selector": {"matchLabels": {"a": "b"}}, "template": {
              "metadata": {"labels": {"a": "b"}}, "spec": POD}}}),
          "Job": ("batch/v1", {"spec": {"template": {"spec": {**POD, "restartPolicy": "Never"}}}}),
          "Lease": ("coordination.k8s.io/v1", {}),
          "Ingress": ("networking.k8s.io/v1", {"spec": {"defaultBackend": {"service": {"name": "s", "port": {"number": 80}}}}}),
          "NetworkPolicy": ("networking.k8s.io/v1", {"spec": {"podSelector": {}}}),
          "PodDisruptionBudget": ("policy/v1", {"spec": {}}),
          "Role": ("rbac.authorization.k8s.io/v1", {"rules": []}),
          "RoleBinding": ("rbac.authorization.k8s.io/v1", {"roleRef": {
              "apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": "r"}}),
          "Machine": ("trusted-execution-clusters.io/v1alpha1", {"spec": MACHINE["spec"]})}


def of_kind(kind, **metadata):
    """(path, object) of a request that makes one."""
    version, rest = GROUPS[kind]
    plural = kind.lower() + ("es" if kind == "Ingress" else "s")
    plural = plural.replace("policys", "policies")
    return (f"/api{'s' if '/' in version else ''}/{version}/namespaces/{NS}/{plural}",
            {"apiVersion": version, "kind": kind, "metadata": metadata, **rest})


def made(row, kind, **metadata):
    path, o = of_kind(kind, **metadata)
    return (row, "POST", path + DRY, o)


def owners(*of):
    return config_map({"name": "x", "ownerReferences": list(of)})


NAMES = {"capital": "A", "dots": "a.b", "dot": ".", "percent": "a%", "under": "a_b", "digit": "1a", "dash": "a-", "colon": "a:b",
         "label": "a" * 64, "long": "a" * 254, "long-bad": "A" * 254}
PREFIXES = {"capital": "A-", "dash": "a-", "dashes": "a--", "alone": "-", "dot": "a.", "dot-alone": ".", "percent": "a%", "long": "a" * 60 + "-",
            "longer": "a" * 300, "colon": "a:"}
FINALIZERS = {"bare": ["a"], "standard": ["kubernetes"], "both": ["orphan", "foregroundDeletion"], "slashes": ["a/b/c"], "empty": [""],
              "spaces": ["a b"], "good": ["a.b/c"], "prefix": ["/a"], "three": ["foregroundDeletion", "x", "orphan"],
              "long": ["a" * 64], "long-prefix": ["a" * 254 + "/a"]}
METADATA = [
    *(made(f"name-{kind}-{what}", kind, name=name) for kind in GROUPS for what, name in NAMES.items()),
    *(made(f"prefix-{kind}-{what}", kind, generateName=name) for kind in ("Machine", "ConfigMap", "Service", "Role", "PodDisruptionBudget")
      for what, name in PREFIXES.items() if what not in ("dash", "dashes", "long") and (kind, what) not in (
          ("Role", "capital"), ("Role", "colon"), ("Role", "dot"), ("Role", "dot-alone"), ("Role", "alone"), ("Role", "longer"),
          ("PodDisruptionBudget", "capital"), ("PodDisruptionBudget", "colon"), ("PodDisruptionBudget", "dot"),
          ("PodDisruptionBudget", "dot-alone"), ("PodDisruptionBudget", "alone"), ("PodDisruptionBudget", "longer"))),
    *(made(f"prefix-too-{kind}", kind, generateName="A b", name="ok") for kind in ("Machine", "ConfigMap", "Role")),
    *(made(f"finalizers-{kind}-{what}", kind, name="x", finalizers=names)
      for kind in ("Machine", "ConfigMap", "Lease", "Role", "PodDisruptionBudget", "Pod") for what, names in FINALIZERS.items()),
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
    ("namespace-name-dots", "POST", "/api/v1/namespaces" + DRY, {**bare("Namespace"), "metadata": {"name": "a.b"}}),
    ("namespace-name-long", "POST", "/api/v1/namespaces" + DRY, {**bare("Namespace"), "metadata": {"name": "a" * 64}}),
    ("namespace-name-bad", "POST", "/api/v1/namespaces" + DRY, {**bare("Namespace"), "metadata": {"name": "A" * 64}}),
    ("namespace-in", "POST", "/api/v1/namespaces" + DRY, {**bare("Namespace"), "metadata": {"name": "a", "namespace": "b"}}),
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


def warned(row, kind, spec=None, method="POST", **metadata):
    path, o = of_kind(kind, **{"name": "x", **metadata})
    if spec is not None:
        o["spec"] = {**o.get("spec", {}), **spec}
    return (f"warned-{kind}-{row}", method, path + DRY, o)


def pods(row, *containers, **spec):
    """A Pod and what makes Pods."""
    spec = {"containers": [{"name": f"c{i}", "image": "a", **c} for i, c in enumerate(containers or [{}])], **spec}
    job = {"template": {"spec": {**spec, "restartPolicy": "Never"}}}
    return [warned(row, "Pod", spec), warned(row, "Job", job), warned(row, "Deployment", {"template": {
        "metadata": {"labels": {"a": "b"}}, "spec": spec}})]


def limits(**quantities):
    return {"resources": {"limits": quantities, "requests": quantities}}


REQUIRED, PREFERRED = ("requiredDuringSchedulingIgnoredDuringExecution", "preferredDuringSchedulingIgnoredDuringExecution")
TERM = {"topologyKey": "z"}
WARNED = [
    *pods("fraction", limits(memory="100m", **{"ephemeral-storage": "1.5"}), limits(cpu="0.5", memory="0.5Ki")),
    *pods("fractions", limits(memory="1500m"), limits(memory="0.3Ki"), initContainers=[{"name": "i", "image": "a", **limits(memory="1m")}]),
    *pods("env", {"env": [{"name": "A", "value": "1"}, {"name": "A", "value": "2"}, {"name": "A", "value": "$(A)"},
                          {"name": "A", "value": "x$(A)"}, {"name": "B", "value": "1"}, {
                              "name": "B", "valueFrom": {"fieldRef": {"fieldPath": "metadata.name"}}}]}),
    *pods("ports", {"ports": [{"containerPort": 80}, {"containerPort": 80}, {"containerPort": 81, "name": "x"},
                              {"containerPort": 80, "hostPort": 5}, {"containerPort": 80, "protocol": "UDP"}]},
          {"ports": [{"containerPort": 82, "name": "x"}, {"containerPort": 80, "hostPort": 5, "hostIP": "1.2.3.4"}]}),
    *pods("aliases", hostAliases=[{"ip": "1.2.3.4", "hostnames": ["a"]}, {"ip": "1.2.3.4", "hostnames": ["b"]}]),
    *pods("pull", imagePullSecrets=[{"name": "a"}, {"name": "a"}]),
    *pods("spread", topologySpreadConstraints=[{"maxSkew": 1, "topologyKey": "z", "whenUnsatisfiable": "DoNotSchedule"}]),
    *pods("affinity", affinity={"podAffinity": {REQUIRED: [TERM], PREFERRED: [{"weight": 1, "podAffinityTerm": TERM}]},
                                "podAntiAffinity": {REQUIRED: [{**TERM, "labelSelector": {}}]}}),
    warned("annotations", "Pod", annotations={"scheduler.alpha.kubernetes.io/critical-pod": "", "security.alpha.kubernetes.io/sysctls": "a"}),
    warned("class", "Ingress", annotations={"kubernetes.io/ingress.class": "a"}),
    *(warned("name", kind, name="a." + "b" * 63) for kind in ("Pod", "Deployment", "ReplicaSet")),
    warned("headless", "Service", {"clusterIP": "None", "sessionAffinity": "ClientIP", "externalIPs": ["1.2.3.4"], "externalName": "a.b"}),
    *(warned(f"ranges-{i}", "Service", {"type": "LoadBalancer", "loadBalancerSourceRanges": ranges}) for i, ranges in enumerate((
        ["1.2.3.4"], [""], ["1.2.3/8"], ["1.2.3.4/33"], ["10.0.0.0/8", "10.0.0.0/8"], ["::1%eth0/64"], ["0x1.2.3.4/8"], ["256.1.1.1/8"]))),
    warned("external", "Service", {"type": "ExternalName", "externalName": "a.b", "externalIPs": ["1.2.3.4"]}),
    warned("fraction", "PersistentVolumeClaim", {"resources": {"requests": {"storage": "1500m"}, "limits": {"storage": "2500m"}}}),
    *(warned("finalizers", kind, finalizers=["a", "a.b", "a.b/c", "orphan"]) for kind in ("Machine", "Lease")),
    ("warned-strict", "POST", of_kind("Pod")[0] + "?dryRun=All&fieldValidation=Ignore", {**of_kind("Pod", name="a.b")[1], "x": 1}),
    ("warned-both", "POST", of_kind("Pod")[0] + "?dryRun=All&fieldValidation=Warn", {**of_kind("Pod", name="a.b")[1], "x": 1}),
    ("warned-made", "POST", DEPLOYMENTS, of_kind("Deployment", name="w")[1]),
    ("warned-same", "PATCH", DEPLOYMENTS + "/w" + DRY, {"metadata": {"labels": {"a": "b"}}}, MERGE),
    ("warned-changed", "PATCH", DEPLOYMENTS + "/w" + DRY, {"spec": {"template": {"spec": {
        "containers": [{"name": "c", "image": "a", **limits(memory="1m")}]}}}}, MERGE),
    ("warned-scaled", "PATCH", DEPLOYMENTS + "/w/scale" + DRY, {"spec": {"replicas": 2}}, MERGE),
]


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
        "fieldManager=" + "m" * 129, "fieldManager=a%01b", "fieldManager=%C3%A9%C2%AD&dryRun=All")),
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



def of_pod(row, *containers, **spec):
    return pods(row, *containers, **spec)[0]


def job(row, pod=None, labels=None, **spec):
    template = {"spec": {"containers": [{"name": "c", "image": "a"}], "restartPolicy": "Never", **(pod or {})}}
    return warned(row, "Job", {"template": {**template, **({"metadata": {"labels": labels}} if labels else {})}, **spec})


def failure(row, *rules, **more):
    return job(row, podFailurePolicy={"rules": list(rules)}, **more)


def success(row, *rules, **more):
    return job(row, **{"completionMode": "Indexed", "completions": 5, "successPolicy": {"rules": list(rules)}, **more})


EXIT = {"operator": "In", "values": [1]}
SPECS = [
    of_pod("sysctls", securityContext={"sysctls": [{"name": "kernel.shm_rmid_forced", "value": "1"}, {"name": "", "value": "1"},
                                                   {"name": "a b", "value": "1"}, {"name": "net/ipv4/x", "value": ""},
                                                   {"name": "kernel.shm_rmid_forced", "value": "0"}]}),
    of_pod("sysctls-host", hostNetwork=True, hostIPC=True, securityContext={"sysctls": [
        {"name": "net.ipv4.x", "value": "1"}, {"name": "kernel.shm_x", "value": "1"}, {"name": "kernel.y", "value": "1"}]}),
    of_pod("gates", schedulingGates=[{"name": "a.b/c"}, {"name": "A b"}, {"name": ""}, {"name": "a.b/c"}]),
    of_pod("gates-node", schedulingGates=[{"name": "a"}], nodeName="n"),
    of_pod("users", hostUsers=False, hostNetwork=True, hostPID=True, hostIPC=True),
    of_pod("users-good", hostUsers=False),
    of_pod("sleep", {"lifecycle": {"preStop": {"sleep": {"seconds": -1}}}}),
    of_pod("sleep-zero", {"lifecycle": {"preStop": {"sleep": {"seconds": 0}}}}),
    of_pod("sleep-long", {"lifecycle": {"preStop": {"sleep": {"seconds": 31}}, "postStart": {"sleep": {"seconds": 5}}}}),
    of_pod("sleep-grace", {"lifecycle": {"preStop": {"sleep": {"seconds": 50}}}}, terminationGracePeriodSeconds=60),
    of_pod("sleep-two", {"lifecycle": {"preStop": {"sleep": {"seconds": 1}, "exec": {"command": ["a"]}}}}),
    of_pod("resize", {"resizePolicy": [{"resourceName": "cpu", "restartPolicy": "NotRequired"}, {
        "resourceName": "foo", "restartPolicy": "Never"}, {"resourceName": "cpu", "restartPolicy": "RestartContainer"}]}),
    of_pod("resize-none", {"resizePolicy": [{"resourceName": "cpu"}]}),
    of_pod("resize-never", {"resizePolicy": [{"resourceName": "cpu", "restartPolicy": "RestartContainer"}]}, restartPolicy="Never"),
    failure("failure-empty"),
    failure("failure-none", {"action": "FailJob"}),
    failure("failure-both", {"action": "FailJob", "onExitCodes": EXIT, "onPodConditions": [{"type": "DisruptionTarget"}]}),
    failure("failure-action", {"action": "x", "onExitCodes": EXIT}, {"onExitCodes": EXIT}),
    failure("failure-index", {"action": "FailIndex", "onExitCodes": EXIT}),
    failure("failure-codes", {"action": "FailJob", "onExitCodes": {"operator": "x", "values": [2, 1, 1, 0]}},
            {"action": "FailJob", "onExitCodes": {"operator": "In", "values": [], "containerName": "z"}},
            {"action": "FailJob", "onExitCodes": {"operator": "In", "values": [0]}},
            {"action": "FailJob", "onExitCodes": {"values": [1]}}),
    failure("failure-conditions", {"action": "Ignore", "onPodConditions": [
        {"type": "a b", "status": "x"}, {"status": "True"}, {"type": "DisruptionTarget"}]}),
    failure("failure-good", {"action": "Ignore", "onPodConditions": [{"type": "DisruptionTarget"}]}),
    job("managed", managedBy="a"), job("managed-long", managedBy="a.b/" + "c" * 64), job("managed-good", managedBy="a.b/c"),
    job("managed-reserved", managedBy="kubernetes.io/job-controller"), job("managed-long-all", managedBy="a." * 40 + "b/c"),
    success("success-none"), success("success-mode", {"succeededCount": 1}, completionMode="NonIndexed"),
    success("success-empty", {}), success("success-count", {"succeededCount": 0}, {"succeededCount": 6}),
    success("success-good", {"succeededIndexes": "0-2,4", "succeededCount": 2}),
    success("success-indexes", {"succeededIndexes": "0-2,4", "succeededCount": 5}, {"succeededIndexes": "0-2-3"}, {"succeededIndexes": "x"},
            {"succeededIndexes": "0,5"}, {"succeededIndexes": "1-5"}, {"succeededIndexes": "2,1"}, {"succeededIndexes": "2-2"},
            {"succeededIndexes": "0,"}),
    success("success-commas", {"succeededIndexes": ""}, {"succeededIndexes": ",0"}, {"succeededIndexes": "0,,1"}, {"succeededIndexes": "-1"},
            {"succeededIndexes": "+1-03"}, {"succeededIndexes": "1 "}, {"succeededIndexes": "99999999999"}, {"succeededIndexes": "\"\u00e4\""}),
    success("success-long", {"succeededIndexes": "0," * 32769}, {"succeededIndexes": "", "succeededCount": 1}),
    job("selector", selector={"matchLabels": {"a": "b"}}, labels={"a": "b"}),
    job("selector-bad", selector={"matchLabels": {"a b": "b"}}),
    *(warned(f"source-{row}", "PersistentVolumeClaim", {"dataSource": source}) for row, source in (
        ("none", {}), ("name", {"kind": "PersistentVolumeClaim", "name": ""}), ("kind", {"kind": "Pod", "name": "a"}),
        ("good", {"kind": "PersistentVolumeClaim", "name": "a"}), ("group", {"apiGroup": "A b", "kind": "K", "name": "a"}))),
    *(warned(f"source-ref-{row}", "PersistentVolumeClaim", {"dataSourceRef": source}) for row, source in (
        ("none", {}), ("name", {"kind": "PersistentVolumeClaim", "name": ""}), ("kind", {"kind": "Pod", "name": "a"}),
        ("namespace", {"apiGroup": "a.b", "kind": "K", "name": "a", "namespace": "A b"}))),
    warned("source-two", "PersistentVolumeClaim", {"dataSource": {"kind": "PersistentVolumeClaim", "name": "a"},
                                                   "dataSourceRef": {"kind": "PersistentVolumeClaim", "name": "b"}}),
    warned("target-zero", "Service", {"ports": [{"port": 80, "targetPort": 0}]}),
    warned("target-empty", "Service", {"ports": [{"port": 80, "targetPort": ""}]}),
]
METADATA += WARNED + SPECS
ROWS = DATA + METADATA + OPTIONS



def brief(answer):
    """Of what is made only that it is, and with which warning: other tables look at what is filled in."""
    status, body, warning = answer
    shown = seen((status, "" if status < 300 else body, warning))
    return re.sub(r"((?<=[-.%:])|(?<=a{58}))[bcdfghjklmnpqrstvwxz2456789]{5}(?=\\*\")", "RANDOM", shown)


# Name of a row -> why a client sees something else here.
DIFFERENT = {
    **{f"name-{kind}-{what}": "a name has at most 253 characters, whatever the kind"
       for kind in ("Event", "PodDisruptionBudget", "Role", "RoleBinding") for what in ("long", "long-bad")},
    "warned-Job-selector": "a label that kube-apiserver adds is not shown",
    "option-body7-DELETE-dryRun=All": "kube-apiserver answers that with 500",
}


def test_both_answer_the_same(both):
    wrong = wrong_rows(both, DATA + OPTIONS, DIFFERENT) + wrong_rows(both, METADATA, DIFFERENT, brief)
    assert not wrong, f"{len(wrong)} of {len(ROWS)}:\n" + "\n".join(wrong)
