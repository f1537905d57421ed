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

from test_two_servers import OUR_PLACE, masked, two_servers

NS = "two-servers-bodies"
CORE = f"/api/v1/namespaces/{NS}"
MAPS, EVENTS = f"{CORE}/configmaps", f"{CORE}/events"
ACCOUNTS = f"{CORE}/serviceaccounts"
NEW_EVENTS = f"/apis/events.k8s.io/v1/namespaces/{NS}/events"
MACHINES = f"/apis/trusted-execution-clusters.io/v1alpha1/namespaces/{NS}/machines"
STRICT, WARN, DRY = "?dryRun=All&fieldValidation=Strict", "?dryRun=All&fieldValidation=Warn", "?dryRun=All"
JSON, YAML, JSON_PATCH = "application/json", "application/yaml", "application/json-patch+json"
MERGE = "application/merge-patch+json"


class Raw:
    """Requests as they are, with the rights of a kubeconfig, but for the names of namespaces: as of Server."""

    def __init__(self, server, pem):
        self.ns, self.place = server.ns, server.place
        with open(server.kubeconfig, encoding="utf-8") as f:
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
            if body is not None:
                body = (body if isinstance(body, str) else json.dumps(body)).replace(self.ns, self.place)
            conn.request(method, path.replace(self.ns, self.place), body,
                         {**self.headers, **({"Content-Type": content_type} if body else {})})
            answer = conn.getresponse()
            return answer.status, answer.read().decode().replace(self.ns, OUR_PLACE), answer.getheader("Warning")
        finally:
            conn.close()


@contextlib.contextmanager
def raw_servers(cp, base, ns):
    """Both, without kubectl between."""
    with two_servers(cp, base, ns) as servers:
        yield [Raw(server, base / f"{i}.pem") for i, server in enumerate(servers)]


@pytest.fixture(scope="module")
def both(cp, tmp_path_factory):
    with raw_servers(cp, tmp_path_factory.mktemp("bodies"), NS) as servers:
        yield servers


def account(name="x", **members):
    return {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": name}, **members}


def config_map(text):
    return f"apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: x\n{text}\n"


def of_int(text):
    return f"apiVersion: v1\nkind: Event\nmetadata: {{name: x}}\ninvolvedObject: {{namespace: {NS}}}\ncount: {text}\n"


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
           "account": f"{ACCOUNTS}/p"}

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
             ("event", ACCOUNTS, "Event", "events.k8s.io/v1"),
             ("machine-foo", MACHINES, "Foo", CUSTOM_VERSION), ("machine-key", MACHINES, "AttestationKey", CUSTOM_VERSION),
             ("machine-version", MACHINES, "Machine", "trusted-execution-clusters.io/v9"), ("machine-secret", MACHINES, "Secret", "v1")]

# (name, method, path, body[, content type])
ROWS = [
    *((f"stranger-{name}", "POST", path + DRY, {**MACHINE, "kind": kind, "apiVersion": version})
      for name, path, kind, version in STRANGERS),
    ("unknown-member", "POST", ACCOUNTS + STRICT, account(foo=1)),
    ("unknown-two", "POST", ACCOUNTS + STRICT, account(zoo=1, foo=1)),
    ("unknown-deep", "POST", ACCOUNTS + STRICT, account(bar=1, secrets=[{"nmae": "a"}])),
    ("unknown-warn", "POST", ACCOUNTS + WARN, account(bar=1)),
    ("unknown-ignored", "POST", ACCOUNTS + DRY, account(bar=1)),
    ("unknown-case", "POST", ACCOUNTS + STRICT, account(Secrets=[])),
    ("type-text", "POST", EVENTS + DRY, {**EVENT, "count": "x"}),
    ("type-fraction", "POST", EVENTS + DRY, {**EVENT, "count": 1.5}),
    ("type-large", "POST", EVENTS + DRY, {**EVENT, "count": 1 << 40}),
    ("type-bool", "POST", ACCOUNTS + DRY, account(automountServiceAccountToken="yes")),
    ("type-list", "POST", ACCOUNTS + DRY, account(secrets={})),
    ("type-element", "POST", ACCOUNTS + DRY, account(secrets=[5])),
    ("type-number", "POST", ACCOUNTS + DRY, account(imagePullSecrets=[{"name": 5}])),
    ("type-time", "POST", EVENTS + DRY, {**EVENT, "firstTimestamp": 5}),
    ("type-object", "POST", EVENTS + DRY, {**EVENT, "source": []}),
    ("type-labels", "POST", ACCOUNTS + DRY, {**account(), "metadata": {"name": "x", "labels": {"a": 5}}}),
    ("type-metadata", "POST", ACCOUNTS + DRY, {**account(), "metadata": 5}),
    ("null-element", "POST", ACCOUNTS + DRY, account(secrets=[None])),
    ("null-members", "POST", ACCOUNTS + DRY, account(secrets=None, imagePullSecrets=None, automountServiceAccountToken=None)),
    ("null-data", "POST", MAPS + DRY, {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "x"}, "data": {"a": None}}),
    ("time", "POST", MAPS + DRY, {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "x", "creationTimestamp": "x"}}),
    ("yaml-fraction", "POST", MAPS + DRY, config_map("data:\n  a: 0.5"), YAML),
    ("yaml-yes", "POST", MAPS + DRY, config_map("data:\n  a: yes"), YAML),
    ("yaml-on", "POST", MAPS + DRY, config_map("immutable: on"), YAML),
    ("yaml-name", "POST", MAPS + DRY, "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: y\n", YAML),
    ("yaml-texts", "POST", MAPS + DRY, config_map('data:\n  a: "0.5"\n  b: "yes"\n  c: |\n    x\n  d: 2026-01-02\n  e: 1.2.3'), YAML),
    ("yaml-octal", "POST", EVENTS + DRY, of_int("010"), YAML),
    ("yaml-hexadecimal", "POST", EVENTS + DRY, of_int("0x3"), YAML),
    ("yaml-separated", "POST", EVENTS + DRY, of_int("1_0"), YAML),
    ("yaml-fraction-int", "POST", EVENTS + DRY, of_int("1.5"), YAML),
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
    ("rename-account", "POST", ACCOUNTS, account("p")),
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

# Name of a row -> why a client sees something else here.
DIFFERENT = {
    "yaml-two": "a second document is refused; kube-apiserver drops it",
    "yaml-large": "YAML is read up to 1 MiB",
    **{name: "kube-apiserver shows the whole object in the message" for name in (
        "patch-unknown", "patch-type", "patch-type-merge", "patch-type-strategic", "patch-type-custom", "patch-strict")},
    **{f"rename-{what}-{name}": "kube-apiserver shows the whole object in the message"
       for what in RENAMED for name, *_ in RENAMES if what in SHOWN_WHOLE.get(name, ())},
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
        "status", "source", "deprecatedSource"))}


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
                # What programs look at, and causes once each: kube-apiserver looks at the metadata of a change up to
                # three times.
                details = o.get("details") or {}
                o = {"code": o.get("code"), "reason": o.get("reason"), **{k: details.get(k) for k in ("name", "kind", "group")},
                     "causes": sorted({f"{c.get('reason')} {c.get('field')}" for c in details.get("causes", [])})}
            objects.append(empty_members(o))
        body = json.dumps(objects, indent=1, sort_keys=True)
    except ValueError:
        pass
    # Of a warning what it is about: an unknown field, a field that is there twice, another member.
    warned = re.findall(r'299 - "((?:unknown|duplicate) field [^,]*|[^:,]*)', warning or "")
    return masked(f"{status} {warned or ''}\n{body}")


def wrong_rows(both, rows, different, look=seen):
    """What both say of each row; those where it differs and no reason is given."""
    wrong = []
    for name, method, path, body, *content_type in rows:
        there, here = (look(server.ask(method, path, body, *content_type)) for server in both)
        if name in different:
            if there == here:
                wrong.append(f"--- {name}: the same, but listed as different")
                continue
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
