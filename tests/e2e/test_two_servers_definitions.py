# SPDX-License-Identifier: MIT
"""CustomResourceDefinitions that ask for a name that is in use, that change under their objects, and that go, on
kube-apiserver and on tec-operator --standalone: the same conditions, objects and refusals. What kube-apiserver's
controllers do later is waited for."""

import json

import pytest

from controlplane import wait_for
from test_two_servers import on_both
from test_two_servers_bodies import MERGE, raw_servers, seen

NS = "two-servers-definitions"
GROUP = "definitions.example.org"
CRDS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
THINGS = f"/apis/{GROUP}/v1/namespaces/{NS}/things"


def definition(plural, kind, defaults=None, **names):
    properties = {"a": {"type": "string"}, **{k: {"type": "string", "default": v} for k, v in (defaults or {}).items()}}
    schema = {"type": "object", "properties": {"spec": {"type": "object", "properties": properties}}}
    return {"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
            "metadata": {"name": f"{plural}.{GROUP}"},
            "spec": {"group": GROUP, "scope": "Namespaced", "names": {"plural": plural, "kind": kind, **names},
                     "versions": [{"name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": schema}}]}}


def thing(name, **meta):
    return {"apiVersion": f"{GROUP}/v1", "kind": "Thing", "metadata": {"name": name, **meta}, "spec": {"a": "x"}}


class Definitions:
    """What one server says, step by step."""

    def __init__(self, raw):
        self.raw, self.said = raw, []

    def ask(self, *request):
        return self.raw.ask(*request)

    def tell(self, *request):
        self.said.append(f"{request[:2]}: {seen(self.ask(*request))}")

    def status(self, plural):
        status = json.loads(self.ask("GET", f"{CRDS}/{plural}.{GROUP}")[1]).get("status", {})
        for condition in status.get("conditions") or []:
            condition.pop("lastTransitionTime", None)
        return status

    def reaches(self, plural, reason):
        def reached():
            return any(c["reason"] == reason for c in self.status(plural).get("conditions") or [])
        wait_for(reached, 60, f"{reason} of {plural}")
        self.said.append(f"{plural}: {json.dumps(self.status(plural), sort_keys=True)}")

    def serves(self, path):
        wait_for(lambda: self.ask("GET", path)[0] == 200, 60, f"an answer to {path}")


def session(raw):
    s = Definitions(raw)
    assert s.ask("POST", CRDS, definition("things", "Thing", shortNames=["th"]))[0] == 201
    s.reaches("things", "InitialNamesAccepted")
    s.serves(THINGS)
    # Another one wants the kind and the short name.
    assert s.ask("POST", CRDS, definition("rivals", "Thing", listKind="Rivals", shortNames=["th"]))[0] == 201
    s.reaches("rivals", "NotAccepted")
    s.tell("GET", THINGS.replace("things", "rivals"))
    # New defaults are there when an old object is read.
    s.tell("POST", THINGS, thing("one", finalizers=["example.org/held"]))
    change = {"spec": definition("things", "Thing", {"b": "filled"}, shortNames=["th"])["spec"]}
    assert s.ask("PATCH", f"{CRDS}/things.{GROUP}", change, MERGE)[0] == 200
    wait_for(lambda: '"b"' in s.ask("GET", f"{THINGS}/one")[1], 60, "the default")
    s.tell("GET", f"{THINGS}/one")
    s.tell("PATCH", f"{THINGS}/one", {"metadata": {"labels": {"c": "d"}}}, MERGE)
    # It goes, and its object is held.
    assert s.ask("DELETE", f"{CRDS}/things.{GROUP}")[0] == 200
    s.reaches("things", "InstanceDeletionInProgress")
    wait_for(lambda: s.ask("POST", f"{THINGS}?dryRun=All", thing("two"))[0] == 403, 60, "a refusal")
    s.tell("POST", THINGS, thing("two"))
    wait_for(lambda: "deletionTimestamp" in s.ask("GET", f"{THINGS}/one")[1], 60, "the end of the object")
    s.tell("PATCH", f"{THINGS}/one", {"metadata": {"finalizers": None}}, MERGE)
    s.reaches("rivals", "InitialNamesAccepted")
    s.serves(THINGS.replace("things", "rivals"))
    assert s.ask("DELETE", f"{CRDS}/rivals.{GROUP}")[0] == 200
    return s.said


@pytest.fixture(scope="module")
def both(cp, tmp_path_factory):
    with raw_servers(cp, tmp_path_factory.mktemp("definitions"), NS) as servers:
        yield servers


def test_definitions_are_named_changed_and_ended_alike(both):
    theirs, ours = on_both(session, both)
    assert ours == theirs
