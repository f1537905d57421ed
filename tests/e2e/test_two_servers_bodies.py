# SPDX-License-Identifier: MIT
"""Bodies that no kubectl sends, on kube-apiserver and on tec-operator --standalone: types of members, members that
no kind has, YAML, content types, Events in both groups. One table, two servers; what differs on purpose is listed
with the reason."""

import base64
import contextlib
import http.client
import json
import re
import ssl
import urllib.parse

import pytest

from test_two_servers import masked, two_servers
from test_two_servers_kinds import deployment, template

NS = "two-servers-bodies"
CORE = f"/api/v1/namespaces/{NS}"
MAPS, EVENTS = f"{CORE}/configmaps", f"{CORE}/events"
DEPLOYMENTS = f"/apis/apps/v1/namespaces/{NS}/deployments"
DEFINITIONS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
NEW_EVENTS = f"/apis/events.k8s.io/v1/namespaces/{NS}/events"
MACHINES = f"/apis/trusted-execution-clusters.io/v1alpha1/namespaces/{NS}/machines"
STRICT, WARN, DRY = "?dryRun=All&fieldValidation=Strict", "?dryRun=All&fieldValidation=Warn", "?dryRun=All"
JSON, YAML, JSON_PATCH = "application/json", "application/yaml", "application/json-patch+json"
MERGE = "application/merge-patch+json"


class Raw:
    """Requests as they are, with the rights of a kubeconfig."""

    def __init__(self, kubeconfig, pem):
        with open(kubeconfig, encoding="utf-8") as f:
            config = f.read()
        self.at = urllib.parse.urlparse(re.search(r'server: *"?([^"\s]+)', config)[1])
        self.context = ssl.create_default_context()
        self.context.check_hostname, self.context.verify_mode = False, ssl.CERT_NONE
        token = re.search(r'token: *"?([^"\s]+)', config)
        self.headers = {"Authorization": f"Bearer {token[1]}"} if token else {}
        if not token:
            data = [re.search(rf"client-{what}-data: *(\S+)", config)[1] for what in ("certificate", "key")]
            pem.write_bytes(b"\n".join(base64.b64decode(d) for d in data))
            self.context.load_cert_chain(pem)

    def ask(self, method, path, body=None, content_type=JSON):
        conn = http.client.HTTPSConnection(self.at.hostname, self.at.port, timeout=60, context=self.context)
        try:
            if body is not None and not isinstance(body, str):
                body = json.dumps(body)
            conn.request(method, path, body, {**self.headers, **({"Content-Type": content_type} if body else {})})
            answer = conn.getresponse()
            return answer.status, answer.read().decode(), answer.getheader("Warning")
        finally:
            conn.close()


@contextlib.contextmanager
def raw_servers(cp, base, ns):
    """Both, without kubectl between, and with a namespace for the test."""
    with two_servers(cp, base, ns) as servers:
        for server in servers:
            code, _, said = server.kubectl(f"create namespace {ns}")
            assert code == 0, said
        yield [Raw(server.kubeconfig, base / f"{i}.pem") for i, server in enumerate(servers)]


@pytest.fixture(scope="module")
def both(cp, tmp_path_factory):
    with raw_servers(cp, tmp_path_factory.mktemp("bodies"), NS) as servers:
        yield servers


def container(**more):
    return deployment("x", template=template(containers=[{"name": "c", "image": "a", **more}]))


def limits(**quantities):
    return container(resources={"limits": quantities})


def config_map(text):
    return f"apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: x\n{text}\n"


def of_int(text):
    return f"""apiVersion: apps/v1
kind: Deployment
metadata: {{name: x}}
spec:
  replicas: {text}
  selector: {{matchLabels: {{app: x}}}}
  template: {{metadata: {{labels: {{app: x}}}}, spec: {{containers: [{{name: c, image: a}}]}}}}
"""


BOMB = config_map("a: &a [x, x, x, x, x, x, x, x, x, x]\n" + "".join(
    f"{chr(98 + i)}: &{chr(98 + i)} [{', '.join(['*' + chr(97 + i)] * 10)}]\n" for i in range(8)))

EVENT = {"apiVersion": "v1", "kind": "Event", "metadata": {"name": "old"}, "reason": "R", "message": "m", "type": "Normal",
         "involvedObject": {"kind": "Pod", "namespace": NS, "name": "p"}, "source": {"component": "c", "host": "h"},
         "firstTimestamp": "2026-01-01T00:00:00Z", "lastTimestamp": "2026-01-01T00:00:01Z", "count": 2}
NEW_EVENT = {"apiVersion": "events.k8s.io/v1", "kind": "Event", "metadata": {"name": "new"}, "action": "A", "reason": "R",
             "eventTime": "2026-01-01T00:00:00.000000Z", "reportingController": "rc", "reportingInstance": "ri",
             "regarding": {"kind": "Pod", "namespace": NS, "name": "p"}, "note": "n", "type": "Normal"}

MACHINE = {"apiVersion": "trusted-execution-clusters.io/v1alpha1", "kind": "Machine", "metadata": {"name": "p"},
           "spec": {"id": "3f1c2b9a-6d0e-4c53-9a7b-2f8e5d104c6f"}}

# Changes of an object into one of another kind or version: (name, body, content type).
RENAMES = [(f"{op}-{member}{i}", [{"op": op, "path": f"/{member}", **({} if op == "remove" else {"value": value})}], JSON_PATCH)
           for op, member, values in (("remove", "kind", [0]), ("remove", "apiVersion", [0]),
                                      ("replace", "kind", ["Secret", "", 5, None]),
                                      ("replace", "apiVersion", ["v9", "apps/v9", "a/b/c", "", 5, None]))
           for i, value in enumerate(values)]
RENAMES += [(f"merge-{member}{i}", {member: value}, MERGE)
            for member, values in (("kind", ["Secret", None, 5]), ("apiVersion", ["v9", None, 5]))
            for i, value in enumerate(values)]
RENAMED = {"map": f"{MAPS}/p", "machine": f"{MACHINES}/p", "machine-status": f"{MACHINES}/p/status",
           "service": f"{CORE}/services/p", "service-status": f"{CORE}/services/p/status",
           "deployment-scale": f"{DEPLOYMENTS}/p/scale"}

TYPED = [what for what in RENAMED if not what.startswith("machine")]
CUSTOM = [what for what in RENAMED if what.startswith("machine")]
SHOWN_WHOLE = {**{name: TYPED for name in ("replace-kind0", "replace-apiVersion0", "replace-apiVersion1", "merge-kind0",
                                           "merge-apiVersion0")},
               **{name: CUSTOM for name in ("remove-kind0", "replace-kind1", "replace-kind3", "merge-kind1",
                                            "replace-apiVersion5")},
               **{name: RENAMED for name in ("replace-kind2", "replace-apiVersion2", "replace-apiVersion4", "merge-kind2",
                                             "merge-apiVersion2")}}

# New objects of another kind or version than their path: (name, path, kind, apiVersion).
CUSTOM_VERSION = MACHINE["apiVersion"]
STRANGERS = [("foo", MAPS, "Foo", "v1"), ("secret", MAPS, "Secret", "v1"), ("group", MAPS, "ConfigMap", "apps/v1"),
             ("version", MAPS, "ConfigMap", "v2"), ("custom", MAPS, "Machine", CUSTOM_VERSION),
             ("replicaset", DEPLOYMENTS, "ReplicaSet", "apps/v1"), ("definition", DEFINITIONS, "Foo", "apiextensions.k8s.io/v1"),
             ("machine-foo", MACHINES, "Foo", CUSTOM_VERSION), ("machine-key", MACHINES, "AttestationKey", CUSTOM_VERSION),
             ("machine-version", MACHINES, "Machine", "trusted-execution-clusters.io/v9"), ("machine-secret", MACHINES, "Secret", "v1")]

# (name, method, path, body[, content type])
ROWS = [
    *((f"stranger-{name}", "POST", path + DRY, {**MACHINE, "kind": kind, "apiVersion": version})
      for name, path, kind, version in STRANGERS),
    ("unknown-spec", "POST", DEPLOYMENTS + STRICT, deployment("x", foo=1)),
    ("unknown-two", "POST", DEPLOYMENTS + STRICT, deployment("x", zoo=1, foo=1)),
    ("unknown-deep", "POST", DEPLOYMENTS + STRICT, container(bar=1, resources={"limit": {}})),
    ("unknown-warn", "POST", DEPLOYMENTS + WARN, container(bar=1)),
    ("unknown-ignored", "POST", DEPLOYMENTS + DRY, container(bar=1)),
    ("unknown-case", "POST", DEPLOYMENTS + STRICT, deployment("x", Replicas=1)),
    ("type-text", "POST", DEPLOYMENTS + DRY, deployment("x", replicas="x")),
    ("type-fraction", "POST", DEPLOYMENTS + DRY, deployment("x", replicas=1.5)),
    ("type-large", "POST", DEPLOYMENTS + DRY, deployment("x", replicas=1 << 40)),
    ("type-bool", "POST", DEPLOYMENTS + DRY, deployment("x", paused="yes")),
    ("type-list", "POST", DEPLOYMENTS + DRY, deployment("x", template=template(containers={}))),
    ("type-element", "POST", DEPLOYMENTS + DRY, deployment("x", template=template(containers=[5]))),
    ("type-number", "POST", DEPLOYMENTS + DRY, container(image=5)),
    ("type-word", "POST", DEPLOYMENTS + DRY, deployment("x", template=template(restartPolicy=5))),
    ("type-command", "POST", DEPLOYMENTS + DRY, container(command=["a", 5])),
    ("type-port", "POST", DEPLOYMENTS + DRY, deployment("x", strategy={"rollingUpdate": {"maxSurge": True}})),
    ("type-user", "POST", DEPLOYMENTS + DRY, container(securityContext={"runAsUser": "root"})),
    ("type-labels", "POST", DEPLOYMENTS + DRY, deployment("x", template={"metadata": {"labels": {"a": 5}}})),
    ("type-metadata", "POST", DEPLOYMENTS + DRY, {**deployment("x"), "metadata": 5}),
    ("type-spec", "POST", DEPLOYMENTS + DRY, {**deployment("x"), "spec": 5}),
    ("null-element", "POST", DEPLOYMENTS + DRY, deployment("x", template=template(containers=[None]))),
    ("null-members", "POST", DEPLOYMENTS + DRY, container(env=None, image="b", ports=None, command=None)),
    ("null-data", "POST", MAPS + DRY, {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "x"}, "data": {"a": None}}),
    ("quantities", "POST", DEPLOYMENTS + DRY, limits(cpu="1000m", memory="1.5Gi", **{"ephemeral-storage": "1024Ki"})),
    ("quantity-numbers", "POST", DEPLOYMENTS + DRY, limits(cpu=1, memory=2, **{"ephemeral-storage": "1e3"})),
    ("quantity-more", "POST", DEPLOYMENTS + DRY, limits(cpu="0.5", memory="1000", **{"ephemeral-storage": "1000k"})),
    ("quantity-fine", "POST", DEPLOYMENTS + DRY, limits(cpu="0.0000000001", memory="0.5Ki")),
    ("quantity-rest", "POST", DEPLOYMENTS + DRY,
     limits(cpu="0.3Ki", memory="60.546875Ki", **{"ephemeral-storage": "1.5Ki"})),
    ("quantity-rests", "POST", DEPLOYMENTS + DRY, limits(cpu="1.0001Ki", memory="1025e-1k")),
    ("quantity-large-rest", "POST", DEPLOYMENTS + DRY, limits(cpu="0.1234567891Gi", memory="2.5Gi")),
    ("quantity-word", "POST", DEPLOYMENTS + DRY, limits(cpu="x")),
    ("quantity-suffix", "POST", DEPLOYMENTS + DRY, limits(cpu="1mm")),
    ("time", "POST", MAPS + DRY, {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "x", "creationTimestamp": "x"}}),
    ("yaml-fraction", "POST", MAPS + DRY, config_map("data:\n  a: 0.5"), YAML),
    ("yaml-yes", "POST", MAPS + DRY, config_map("data:\n  a: yes"), YAML),
    ("yaml-on", "POST", MAPS + DRY, config_map("immutable: on"), YAML),
    ("yaml-name", "POST", MAPS + DRY, "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: y\n", YAML),
    ("yaml-texts", "POST", MAPS + DRY, config_map('data:\n  a: "0.5"\n  b: "yes"\n  c: |\n    x\n  d: 2026-01-02\n  e: 1.2.3'), YAML),
    ("yaml-octal", "POST", DEPLOYMENTS + DRY, of_int("010"), YAML),
    ("yaml-hexadecimal", "POST", DEPLOYMENTS + DRY, of_int("0x3"), YAML),
    ("yaml-separated", "POST", DEPLOYMENTS + DRY, of_int("1_0"), YAML),
    ("yaml-fraction-int", "POST", DEPLOYMENTS + DRY, of_int("1.5"), YAML),
    ("yaml-custom", "POST", MACHINES + DRY, "apiVersion: trusted-execution-clusters.io/v1alpha1\nkind: Machine\n"
     "metadata:\n  name: x\nspec:\n  id: 0.5\n", YAML),
    ("yaml-bomb", "POST", MAPS + DRY, BOMB, YAML),
    ("yaml-cut", "POST", MAPS + DRY, "a: [", YAML),
    ("yaml-two", "POST", MAPS + DRY, config_map("") + "---\n" + config_map(""), YAML),
    ("yaml-alias", "POST", MAPS + DRY, config_map("data: &a {b: c}\nbinaryData: *a"), YAML),
    ("yaml-large", "POST", MAPS + DRY, config_map("data:\n  a: " + "x" * (1 << 20)), YAML),
    ("content-text", "POST", MAPS, json.dumps(EVENT), "text/plain"),
    ("content-form", "POST", MAPS, "a=b", "application/x-www-form-urlencoded"),
    ("content-custom", "POST", MACHINES, "{}", "text/plain"),
    ("content-put", "PUT", MAPS + "/x", "{}", "text/plain"),
    ("content-delete", "DELETE", MAPS + "/x", "{}", "text/plain"),
    ("content-question", "POST", "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews", "{}", "text/plain"),
    ("patch-target", "POST", MAPS, {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "p"}, "data": {"a": "b"}}),
    ("patch-unknown", "PATCH", MAPS + "/p" + STRICT, [{"op": "add", "path": "/data/c", "value": "d", "foo": 1, "bar": 2},
                                                     {"op": "test", "path": "/data/a", "value": "b", "zoo": 1}], JSON_PATCH),
    ("patch-unknown-warn", "PATCH", MAPS + "/p" + WARN, [{"op": "add", "path": "/data/c", "value": "d", "foo": 1}], JSON_PATCH),
    ("patch-unknown-ignored", "PATCH", MAPS + "/p" + DRY, [{"op": "add", "path": "/data/c", "value": "d", "foo": 1}], JSON_PATCH),
    ("patch-type", "PATCH", MAPS + "/p", [{"op": "replace", "path": "/data/a", "value": 5}], JSON_PATCH),
    ("patch-type-merge", "PATCH", MAPS + "/p", {"data": {"a": 5}}, MERGE),
    ("patch-type-strategic", "PATCH", MAPS + "/p", {"data": {"a": 5}}, "application/strategic-merge-patch+json"),
    ("patch-strict", "PATCH", MAPS + "/p" + STRICT, {"foo": 1}, MERGE),
    ("patch-custom", "POST", MACHINES, MACHINE),
    ("number-infinite", "POST", MACHINES + DRY, json.dumps({**MACHINE, "spec": {"x": 77777}}).replace("77777", "1e999")),
    ("number-large", "POST", MACHINES + DRY, json.dumps({**MACHINE, "metadata": {"name": "q"}, "spec": {
        **MACHINE["spec"], "x": 1 << 70}})),
    ("patch-type-custom", "PATCH", MACHINES + "/p", {"metadata": {"labels": {"a": 5}}}, MERGE),
    ("rename-deployment", "POST", DEPLOYMENTS, deployment("p", replicas=0)),
    ("rename-service", "POST", f"{CORE}/services", {"apiVersion": "v1", "kind": "Service", "metadata": {"name": "p"}, "spec": {
        "type": "ExternalName", "externalName": "a.example"}}),
    *[(f"rename-{what}-{name}", "PATCH", path, *change) for what, path in RENAMED.items() for name, *change in RENAMES],
    # --- Events: two groups, one set
    ("event", "POST", EVENTS, EVENT),
    ("event-as-new", "GET", NEW_EVENTS + "/old", None),
    ("event-new", "POST", NEW_EVENTS, NEW_EVENT),
    ("event-new-as-old", "GET", EVENTS + "/new", None),
    ("event-again", "POST", EVENTS, {**EVENT, "metadata": {"name": "new"}}),
    ("event-namespace", "POST", EVENTS, {**EVENT, "metadata": {"name": "z"}, "involvedObject": {"namespace": "other"}}),
    ("event-incomplete", "POST", NEW_EVENTS, {**NEW_EVENT, "metadata": {"name": "z"}, "eventTime": None, "type": "x"}),
    ("event-select", "GET", EVENTS + "?fieldSelector=involvedObject.name=p,source=c", None),
    ("event-select-old", "GET", EVENTS + "?fieldSelector=regarding.name=p", None),
    ("event-new-select", "GET", NEW_EVENTS + "?fieldSelector=regarding.name=p,reportingController=rc", None),
    ("event-new-watch", "GET", NEW_EVENTS + "?watch=true&timeoutSeconds=1&fieldSelector=metadata.name=old", None),
    ("event-count", "PATCH", EVENTS + "/old", {"count": 3}, MERGE),
    ("event-new-count", "GET", NEW_EVENTS + "/old", None),
    ("event-new-note", "PATCH", NEW_EVENTS + "/new", {"note": "other"}, MERGE),
    ("event-new-fixed", "PATCH", NEW_EVENTS + "/new", {
        "type": "Warning", "reportingController": "q", "action": "other",
        "eventTime": "2026-01-02T00:00:00.000000Z", "deprecatedCount": 4, "deprecatedSource": {"component": "x"}}, MERGE),
    ("event-new-series", "PATCH", NEW_EVENTS + "/new",
     {"series": {"count": 3, "lastObservedTime": "2026-01-02T00:00:00.000000Z"}}, MERGE),
    ("event-new-series-bad", "PATCH", NEW_EVENTS + "/new", {"series": {"count": 1, "lastObservedTime": None}}, MERGE),
    ("event-new-labels", "PATCH", NEW_EVENTS + "/new", {"metadata": {"labels": {"a": "b"}}}, MERGE),
    ("event-new-as-old-changed", "PATCH", EVENTS + "/new", {"message": "other"}, MERGE),
    ("event-long", "POST", NEW_EVENTS, {
        **NEW_EVENT, "metadata": {"name": "z"}, "note": "x" * 1025, "reason": "r" * 129, "action": "a" * 129,
        "reportingInstance": "i" * 129, "reportingController": "a b", "type": "x", "series": {"count": 1}}),
    ("event-deprecated", "POST", NEW_EVENTS, {
        **NEW_EVENT, "metadata": {"name": "z"}, "deprecatedCount": 1, "deprecatedFirstTimestamp": "2026-01-02T00:00:00Z",
        "deprecatedSource": {"component": "x"}}),
    ("event-delete", "DELETE", NEW_EVENTS + "/old", None),
    ("event-gone", "GET", EVENTS + "/old", None),
    ("event-new-gone", "GET", NEW_EVENTS + "/old", None),
]

READER = "the words of another YAML reader"

# Name of a row -> why a client sees something else here.
DIFFERENT = {
    "yaml-bomb": READER, "yaml-cut": READER,
    "yaml-two": "a second document is refused; kube-apiserver drops it",
    "yaml-alias": "aliases are refused",
    "yaml-large": "YAML is read up to 1 MiB",
    "content-form": "refused before it is known that the request is for the API",
    **{name: "kube-apiserver shows the whole object in the message" for name in (
        "patch-unknown", "patch-type", "patch-type-merge", "patch-type-strategic", "patch-type-custom", "patch-strict")},
    **{f"rename-{what}-{name}": "kube-apiserver shows the whole object in the message"
       for what in RENAMED for name, *_ in RENAMES if what in SHOWN_WHOLE.get(name, ())},
    **{f"stranger-{name}": "kube-apiserver names a line of its own source" for name, path, *_ in STRANGERS if path != MACHINES},
    **{f"stranger-{name}": "kube-apiserver warns of all members that no object of a strange kind has"
       for name, path, *_ in STRANGERS if path == MACHINES and name != "machine-secret"},
    **{f"rename-{what}-{name}": "kube-apiserver answers that with 500"
       for what in CUSTOM for name in ("remove-apiVersion0", "replace-apiVersion3", "merge-apiVersion1")},
    **{f"rename-{what}-{name}": "kube-apiserver warns of all members that no object has without a version"
       for what in TYPED for name in ("remove-apiVersion0", "replace-apiVersion3", "replace-apiVersion5", "merge-apiVersion1")},
}

UNSEEN = ("uid", "resourceVersion", "creationTimestamp", "managedFields", "generation", "annotations")


def empty_members(o):
    """Go shows some members that are nothing, which are absent here."""
    if isinstance(o, list):
        return [empty_members(v) for v in o]
    if not isinstance(o, dict):
        return o
    shown = {k: empty_members(v) for k, v in o.items() if k not in ("reportingComponent", "reportingInstance") or v}
    return {k: v for k, v in shown.items() if v is not None and (v != {} or k not in (
        "status", "source", "deprecatedSource", "loadBalancer"))}


def seen(answer):
    status, body, warning = answer
    objects = []
    try:
        for line in body.splitlines():
            o = json.loads(line)
            for m in [o.get("metadata", {})] + [x["metadata"] for x in o.get("items", [])] + [o.get("object", {}).get("metadata", {})]:
                for name in UNSEEN:
                    m.pop(name, None)
            if o.get("kind") == "Status":
                # Once each: kube-apiserver looks at the metadata of a change up to three times.
                o["details"] = sorted({json.dumps(c, sort_keys=True) for c in (o.get("details") or {}).get("causes", [])})
            objects.append(empty_members(o))
        body = json.dumps(objects, indent=1, sort_keys=True)
    except ValueError:
        pass
    return masked(f"{status} {warning or ''}\n{body}")


def wrong_rows(both, rows, different, look=seen):
    """What both say of each row; those where it differs and no reason is given."""
    wrong = []
    for name, method, path, body, *content_type in rows:
        there, here = (look(server.ask(method, path, body, *content_type)) for server in both)
        if name in different:
            assert there != here, f"{name}: the same, but listed as different"
            # What is refused here may be taken there; never the other way round.
            assert here[0] == "4", f"{name}: {here}"
            # And who looks at the code sees the same for a patch and for another kind.
            assert not name.startswith(("patch", "stranger")) or here[:3] == there[:3], f"{name}: {there}\n{here}"
        elif there != here:
            wrong.append(f"--- {name}\nkube-apiserver:\n{there[:2000]}\nhere:\n{here[:2000]}")
    return wrong


def test_both_answer_the_same(both):
    wrong = wrong_rows(both, ROWS, DIFFERENT)
    assert not wrong, f"{len(wrong)} of {len(ROWS)}:\n" + "\n".join(wrong)
