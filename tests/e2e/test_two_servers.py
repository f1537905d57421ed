# SPDX-License-Identifier: MIT
"""One long kubectl session against kube-apiserver and against tec-operator --standalone: after every
step a person must see the same, but for uids, times, resourceVersions and the sentence of a refusal: of that the
reason and the fields are compared. kubectl itself reads no sentence of a server, it prints them.

STEPS is the session. A step that differs on purpose stands in DIFFERENT, with the reason; there it is
asserted that it does differ, so that the list does not outlive its reasons."""

import contextlib
import json
import os
import re
import subprocess
from concurrent.futures import ThreadPoolExecutor

import pytest

from conftest import lacking
from tecproc import operator_binary
from test_standalone import Standalone, kubectl_argv

NS, OUR_PLACE = "two-servers", "default"
GROUP = "trusted-execution-clusters.io"
V1 = f"{GROUP}/v1alpha1"
ID = "3f1c2b9a-6d0e-4c53-9a7b-2f8e5d104c6f"
DIGEST = "sha256:" + "6" * 64


def obj(kind, name, api=V1, **members):
    return {"apiVersion": api, "kind": kind, "metadata": {"name": name, **members.pop("metadata", {})}, **members}


def machine(name="m1", **spec):
    return obj("Machine", name, spec={"id": ID, **spec})


def cluster(**spec):
    return obj("TrustedExecutionCluster", "bad", spec=spec)


APPLY = "apply -f -"
CREATE = "create -f -"
SECRET = obj("Secret", "typed", "v1", type="kubernetes.io/tls", data={"tls.crt": "YQ=="})

# (name, command, what is given on standard input). NS is the namespace of the context: "default" of ours, as no
# controller changes objects there.
STEPS = [
    # --- the machine's life, as a person types it
    ("no-machines", "get machines", None),
    ("apply", APPLY, machine()),
    ("apply-again", APPLY, machine()),
    ("get", "get machines", None),
    ("get-one", "get machine m1", None),
    ("get-short", "get mach m1 -o wide", None),
    ("get-name", "get machines -o name", None),
    ("get-yaml", "get machine m1 -o yaml", None),
    ("get-json", "get machine m1 -o json", None),
    ("list-yaml", "get machines -o yaml", None),
    ("get-jsonpath", "get machine m1 -o jsonpath={.spec.id}/{.metadata.generation}", None),
    ("get-columns", "get machines -o custom-columns=N:.metadata.name,I:.spec.id", None),
    ("get-labels", "get machines --show-labels", None),
    ("get-kind", "get machines --show-kind", None),
    ("get-two-kinds", "get machines,approvedimages", None),
    ("get-absent", "get machine absent", None),
    ("get-ignore-absent", "get machine absent --ignore-not-found", None),
    ("get-unknown-kind", "get nothings", None),
    ("get-no-headers", "get machines --no-headers", None),
    ("get-field", "get machines --field-selector metadata.name=m1", None),
    ("get-field-none", "get machines --field-selector metadata.name=m2", None),
    ("get-field-bad", "get machines --field-selector spec.id=x", None),
    ("get-label-bad", "get machines -l a==b==c", None),
    ("get-all-namespaces", "get machines -A --field-selector metadata.namespace=" + NS, None),
    ("describe", "describe machine m1", None),
    # --- what is wrong with it
    ("unknown-field", APPLY, machine("m2", wrong=1)),
    ("unknown-field-two", CREATE, {**machine("m2", wrong=1), "wronger": {"a": 2}}),
    ("unknown-field-warn", "create -f - --validate=warn", machine("m2", wrong=1)),
    ("unknown-field-gone", "get machine m2 -o jsonpath={.spec}", None),
    ("unknown-field-off", "create -f - --validate=false", machine("m3", wrong=1)),
    ("unknown-field-update", "replace -f -", machine("m2", wrong=1)),
    ("duplicate-field", CREATE, '{"apiVersion":"%s","kind":"Machine","metadata":{"name":"m4"},"spec":{"id":"%s","id":"%s"}}'
     % (V1, ID, ID)),
    ("no-spec", CREATE, obj("Machine", "m4")),
    ("no-id", CREATE, obj("Machine", "m4", spec={})),
    ("type", CREATE, obj("Machine", "m4", spec={"id": 5})),
    ("type-spec", CREATE, obj("Machine", "m4", spec=[])),
    ("pattern", CREATE, obj("Machine", "m4", spec={"id": "NOT"})),
    ("enum", CREATE, obj("TrustedExecutionCluster", "t", spec={"registration": {"mode": "Never"}})),
    ("cel", CREATE, obj("ApprovedImage", "i", spec={"image": "quay.io/a/b:latest"})),
    ("cel-immutable", "patch machine m1 --type=merge -p", {"spec": {"id": ID.replace("3", "4")}}),
    ("name", CREATE, machine("Not_A_Name")),
    ("name-none", CREATE, {"apiVersion": V1, "kind": "Machine", "metadata": {}, "spec": {"id": ID}}),
    ("wrong-version", CREATE, obj("Machine", "m4", f"{GROUP}/v9", spec={"id": ID})),
    ("wrong-kind", CREATE, obj("Machina", "m4", spec={"id": ID})),
    ("labels-type", CREATE, obj("Machine", "m4", metadata={"labels": {"a": 5}}, spec={"id": ID})),
    ("labels-value", CREATE, obj("Machine", "m4", metadata={"labels": {"a": "!"}}, spec={"id": ID})),
    ("annotation-name", CREATE, obj("Machine", "m4", metadata={"annotations": {"a b": "c"}}, spec={"id": ID})),
    ("finalizer-name", CREATE, obj("Machine", "m4", metadata={"finalizers": ["a b"]}, spec={"id": ID})),
    ("exists", CREATE, machine()),
    # --- changes
    ("label", "label machine m1 a=b", None),
    ("label-again", "label machine m1 a=c", None),
    ("label-over", "label machine m1 a=c --overwrite", None),
    ("label-get", "get machines -l a=c", None),
    ("label-in", "get machines -l", "a in (b,c),!z"),
    ("label-column", "get machines -L a", None),
    ("label-off", "label machine m1 a-", None),
    ("annotate", "annotate machine m1 note=one", None),
    ("annotate-again", "annotate machine m1 note=two", None),
    ("patch-none", "patch machine m1 --type=merge -p", {}),
    ("patch-unknown", "patch machine m1 --type=merge -p", {"spec": {"wrong": 1}}),
    ("patch-strategic", "patch machine m1 -p", {"metadata": {"labels": {"s": "t"}}}),
    ("patch-json", "patch machine m1 --type=json -p", [{"op": "add", "path": "/metadata/labels", "value": {"j": "k"}}]),
    ("patch-json-test", "patch machine m1 --type=json -p", [{"op": "test", "path": "/metadata/labels/j", "value": "x"}]),
    ("patch-json-path", "patch machine m1 --type=json -p", [{"op": "remove", "path": "/spec/nothing"}]),
    ("patch-absent", "patch machine absent --type=merge -p", {}),
    ("status", "patch machine m1 --subresource=status --type=merge -p",
     {"spec": {"id": "ignored"}, "status": {"conditions": [
         {"type": "Ready", "status": "True", "reason": "AllReady", "message": "It is.",
          "lastTransitionTime": "2026-01-02T03:04:05Z"}]}}),
    ("status-get", "get machines", None),
    ("status-generation", "get machine m1 -o jsonpath={.metadata.generation}", None),
    ("status-sub", "get machine m1 --subresource=status", None),
    ("status-wrong", "patch machine m1 --subresource=status --type=merge -p",
     {"status": {"conditions": [{"type": "Ready"}]}}),
    ("status-twice", "patch machine m1 --subresource=status --type=merge -p", {"status": {"conditions": [
        {"type": "Ready", "status": "True", "reason": "A", "message": "", "lastTransitionTime": "2026-01-02T03:04:05Z"},
        {"type": "Ready", "status": "True", "reason": "A", "message": "", "lastTransitionTime": "2026-01-02T03:04:05Z"}]}}),
    ("wait", "wait --for=condition=Ready machine/m1 --timeout=30s", None),
    ("wait-jsonpath", "wait --for=jsonpath={.spec.id}=" + ID + " machine/m1 --timeout=30s", None),
    ("describe-status", "describe machine m1", None),
    ("replace-old", "replace -f -", obj("Machine", "m1", metadata={"resourceVersion": "1"}, spec={"id": ID})),
    ("replace-uid", "replace -f -", obj("Machine", "m1", metadata={"uid": "x"}, spec={"id": ID})),
    ("replace", "replace -f -", machine()),
    ("replace-absent", "replace -f -", machine("absent")),
    ("dry-create", "create --dry-run=server -f -", machine("m4")),
    ("dry-apply", "apply --dry-run=server -f -", machine()),
    ("dry-wrong", "create --dry-run=server -f -", machine("m4", wrong=1)),
    ("dry-is-not-there", "get machine m4", None),
    ("generate-name", "create -f - -o jsonpath={.metadata.generateName}",
     {"apiVersion": V1, "kind": "Machine", "metadata": {"generateName": "made-"}, "spec": {"id": ID}}),
    # --- explain, completion, discovery
    ("explain", "explain machine", None),
    ("explain-spec", "explain machine.spec", None),
    ("explain-id", "explain machine.spec.id", None),
    ("explain-tree", "explain tec --recursive", None),
    ("explain-enum", "explain tec.spec.registration.mode", None),
    ("explain-list", "explain machine.status.conditions", None),
    ("explain-version", f"explain machines --api-version={V1}", None),
    ("explain-wrong", "explain machine.spec.nothing", None),
    ("explain-unknown", "explain nothing", None),
    ("explain-metadata", "explain machine.metadata.ownerReferences", None),
    ("api-resources", f"api-resources --api-group={GROUP}", None),
    ("api-resources-wide", f"api-resources --api-group={GROUP} -o wide", None),
    ("raw-group", f"get --raw /apis/{GROUP}", None),
    ("raw-version", f"get --raw /apis/{V1}", None),
    ("raw-absent", "get --raw /apis/nothing.example.org", None),
    ("raw-healthz", "get --raw /healthz", None),
    # --- what a schema refuses
    ("schema-enum", CREATE, cluster(trustee={"deploy": "Nowhere"})),
    ("schema-pattern", CREATE, machine("bad", id="nothing")),
    ("schema-rule", "patch machine m1 --type=merge -p", {"spec": {"id": ID.replace("3f", "4f")}}),
    ("schema-required", CREATE, obj("Machine", "bad", spec={})),
    ("schema-list-twice", CREATE, cluster(trusteeServers=[{"address": "a:1"}, {"address": "a:1"}])),
    ("schema-many", CREATE, cluster(trustee={"deploy": 5}, trusteeServers="x", publicTrusteeAddr=[])),
    # --- Secrets and ConfigMaps
    ("secret", "create secret generic s --from-literal=k=v --from-literal=other=w", None),
    ("secret-get", "get secret s", None),
    ("secret-yaml", "get secret s -o yaml", None),
    ("secret-describe", "describe secret s", None),
    ("secret-string", APPLY, obj("Secret", "s2", "v1", stringData={"a": "b"})),
    ("secret-string-get", "get secret s2 -o jsonpath={.data}{.stringData}", None),
    ("secret-type", "patch secret s --type=merge -p", {"type": "other"}),
    ("secret-tls", CREATE, SECRET),
    ("secret-base64", CREATE, obj("Secret", "bad", "v1", data={"a": "!"})),
    ("secret-key", CREATE, obj("Secret", "bad", "v1", data={"a b": "YQ=="})),
    ("secret-immutable", "patch secret s --type=merge -p", {"immutable": True}),
    ("secret-immutable-data", "patch secret s --type=merge -p", {"data": {"k": "YQ=="}}),
    ("secret-mutable", "patch secret s --type=merge -p", {"immutable": False}),
    ("configmap", "create configmap c --from-literal=a=b", None),
    ("configmap-get", "get configmap c", None),
    ("configmap-describe", "describe configmap c", None),
    ("configmap-twice", CREATE, obj("ConfigMap", "c2", "v1", data={"a": "b"}, binaryData={"a": "YQ=="})),
    ("configmap-type", CREATE, obj("ConfigMap", "c2", "v1", data={"a": 5})),
    ("configmap-apply", APPLY, obj("ConfigMap", "c3", "v1", data={"a": "b", "c": "d"})),
    ("configmap-applied", "get configmap c3 -o jsonpath={.data}", None),
    ("configmap-replace", "replace -f -", obj("ConfigMap", "c3", "v1", data={"b": "c"})),
    ("configmap-unknown", "create -f -", {**obj("ConfigMap", "c4", "v1", data={"b": "c"}), "daat": {}}),
    ("metadata-unknown", "create -f -", obj("ConfigMap", "c4", "v1", metadata={"lables": {}})),
    ("metadata-unknown-custom", "create -f -", obj("Machine", "m9", metadata={"lables": {}}, spec={"id": ID})),
    ("event-misspelled", "create -f -", {**obj("Event", "e2", "v1"), "raeson": "x"}),
    ("configmap-json-patch", "patch configmap c --type=json -p", [{"op": "replace", "path": "/data/a", "value": "q"}]),
    ("configmap-label-two", "label configmap c c3 x=y", None),
    ("lists", "get configmap,secret -l x=y -o name", None),
    # --- rights
    ("account", "create serviceaccount a", None),
    ("account-get", "get serviceaccount a", None),
    ("rolebinding", f"create rolebinding rb --clusterrole=view --serviceaccount={NS}:a", None),
    ("rolebinding-get", "get rolebinding rb -o wide", None),
    ("rolebinding-ref", "patch rolebinding rb --type=merge -p",
     {"roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "cluster-admin"}}),
    ("rolebinding-name", f"create rolebinding system:a:b --clusterrole=view --serviceaccount={NS}:a", None),
    ("rolebinding-name-get", "get rolebinding system:a:b -o name", None),
    ("rolebinding-name-bad", f"create rolebinding a%b --clusterrole=view --serviceaccount={NS}:a", None),
    ("label-name-bad", CREATE, obj("ConfigMap", "l1", "v1", metadata={"labels": {"/a": "b"}})),
    ("label-slashes", CREATE, obj("ConfigMap", "l1", "v1", metadata={"labels": {"a/b/c": "b"}})),
    ("label-prefix", CREATE, obj("ConfigMap", "l1", "v1", metadata={"labels": {"A_/b": "b"}})),
    ("label-long", CREATE, obj("ConfigMap", "l1", "v1", metadata={"labels": {"a": "b" * 64}})),
    ("name-long", CREATE, obj("ConfigMap", "a" * 254, "v1")),
    ("owner-empty", CREATE, obj("ConfigMap", "l1", "v1", metadata={"ownerReferences": [
        {"apiVersion": "", "kind": "", "name": "", "uid": ""}]})),
    ("can-i", f"auth can-i delete machines.{GROUP}", None),
    # --- deletions
    ("delete", "delete machine m2", None),
    ("delete-again", "delete machine m2", None),
    ("delete-ignore", "delete machine m2 --ignore-not-found", None),
    ("finalizer", "patch machine m3 --type=merge -p", {"metadata": {"finalizers": ["example.org/held"]}}),
    ("finalizer-delete", "delete machine m3 --wait=false", None),
    ("finalizer-more", "patch machine m3 --type=merge -p",
     {"metadata": {"finalizers": ["example.org/held", "example.org/more"]}}),
    ("finalizer-held", "get machine m3 -o jsonpath={.metadata.finalizers}{.metadata.deletionGracePeriodSeconds}", None),
    ("finalizer-off", "patch machine m3 --type=merge -p", {"metadata": {"finalizers": None}}),
    ("finalizer-gone", "get machine m3", None),
    ("delete-none", "delete machine", None),
    ("delete-label", "delete configmap -l none=none", None),
    ("delete-all", "delete secrets --all", None),
    ("delete-file", "delete -f -", machine()),
    ("delete-file-again", "delete -f -", machine()),
]

OWN_WORDS = "what describes the standard fields is in our own words"

# Name of a step -> why a person sees something else here.
DIFFERENT = {
    "explain": OWN_WORDS, "explain-version": OWN_WORDS, "explain-metadata": OWN_WORDS,
    "replace-uid": "kube-apiserver names keys of etcd, and says Conflict for what a patch gets Invalid for",
    "wrong-kind": "kubectl lists definitions to look for a kind that it does not know, and there are none to list",
}

MASKS = [
    (re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}"), "UID"),
    (re.compile(r"20[2-9]\d-\d\d-\d\dT\d\d:\d\d:\d\dZ"), "TIME"),
    (re.compile(r"(?i)(resourceVersion\"?:\s*)\"?\d+\"?"), r"\1RV"),
    (re.compile(r"\b\d+(m\d+)?s\b"), "AGE"),
    (re.compile(r"\d+ms\b"), "MS"),
    (re.compile(r"\b(127\.0\.0\.1|localhost):\d+"), "SERVER"),
    (re.compile(r"(Resource Version: +)\d+"), r"\1RV"),
    (re.compile(r"storageVersionHash\":\"[^\"]*\""), "HASH"),
    (re.compile(r"made-[a-z0-9]{5}"), "made-NAME"),
    (re.compile(r" +\n"), "\n"),
    (re.compile(r" {2,}"), "  "),
    (re.compile(r"(Warning: metadata\.finalizers: ).*"), r"\1"),
    (re.compile(r"(Error from server \(\w+\)): .*"), r"\1"),
    (re.compile(r": (Invalid value|Required value|Forbidden|Too long|Too many|Unsupported value|Duplicate value|Not found)\b.*"),
     r": \1"),
]


def masked(text):
    text = text.replace(ID, "ID")
    for pattern, mask in MASKS:
        text = pattern.sub(mask, text)
    return text


def in_order(text):
    """What has no order in one order: members of JSON, resources of a group, causes of a refusal, data of a Secret."""
    try:
        o = json.loads(text)
        if isinstance(o, dict) and o.get("kind") == "APIResourceList":
            o["resources"].sort(key=lambda r: r["name"])
        return json.dumps(o, indent=1, sort_keys=True)
    except ValueError:
        pass
    lines = text.split("\n")
    unordered = [i for i, line in enumerate(lines) if re.match(r"\* |\S+: +\d+ bytes$", line)]
    for i, line in zip(unordered, sorted(lines[i] for i in unordered)):
        lines[i] = line
    return "\n".join(lines)


class Server:
    """ns: what the steps call its namespace. place: what it is called there."""

    def __init__(self, kubeconfig, cache, ns=NS, place=None):
        self.kubeconfig, self.ns, self.place = kubeconfig, ns, place or ns
        self.env = dict(os.environ, KUBECONFIG=kubeconfig, KUBECACHEDIR=cache)

    def kubectl(self, command, given=None, program=None):
        argv = [*(program or kubectl_argv()), f"--namespace={self.place}", *command.replace(self.ns, self.place).split(" ")]
        if given is not None:
            given = (given if isinstance(given, str) else json.dumps(given)).replace(self.ns, self.place)
        if command.endswith(" -p") or command.endswith(" -l"):
            argv.append(given)
            given = None
        done = subprocess.run(argv, input=given, env=self.env, capture_output=True, text=True, timeout=120, check=False)
        return done.returncode, self.masked(done.stdout), self.masked(done.stderr)

    def said(self, command):
        """What kubectl prints, unmasked."""
        return subprocess.run([*kubectl_argv(), f"--namespace={self.place}", *command.split(" ")], env=self.env,
                              capture_output=True, text=True, timeout=120, check=True).stdout

    def masked(self, text):
        return masked(in_order(text).replace(self.ns, OUR_PLACE))


def shown(seen):
    return f"exit {seen[0]}\n{seen[1]}{seen[2]}"


@contextlib.contextmanager
def two_servers(cp, base, ns):
    """(kube-apiserver, ours)"""
    if not os.access(operator_binary(), os.X_OK):
        lacking(f"no {operator_binary()}; next step: make, or set TEC_OPERATOR")
    alone = Standalone(str(base / "state"))
    alone.start()
    cp.kubectl("create", "namespace", ns)
    try:
        yield (Server(cp.admin_kubeconfig, str(base / "cache-theirs"), ns),
               Server(f"{alone.dir}/kubeconfig", str(base / "cache-ours"), ns, OUR_PLACE))
    finally:
        stopped = alone.stop()
        cp.kubectl("delete", "namespace", ns, "--ignore-not-found", "--wait=false")
    assert stopped == 0, alone.log()


def on_both(ask, both):
    """What ASK(server) gives for each of the two, asked at the same time."""
    with ThreadPoolExecutor(len(both)) as several:
        return list(several.map(ask, both))


def run_session(theirs, ours, steps, different):
    """The steps on both; what a person sees differs where the reason is given, and only there."""
    def session(server):
        return [server.kubectl(command, given) for _, command, given in steps]

    wrong = []
    for (name, command, _), there, here in zip(steps, *on_both(session, (theirs, ours))):
        if name in different and there == here:
            wrong.append(f"--- {name}: the same, but listed as different: {different[name]}\n{shown(here)}")
        elif name not in different and there != here:
            wrong.append(f"--- {name}: kubectl {command}\nkube-apiserver:\n{shown(there)}\nhere:\n{shown(here)}")
    assert not wrong, f"{len(wrong)} of {len(steps)} steps:\n" + "\n".join(wrong)
    assert set(different) <= {step[0] for step in steps}


@pytest.fixture(scope="module")
def both(cp, tmp_path_factory):
    with two_servers(cp, tmp_path_factory.mktemp("two"), NS) as servers:
        yield servers


def test_one_session_on_two_servers(both):
    run_session(*both, STEPS, DIFFERENT)
