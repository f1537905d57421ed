# SPDX-License-Identifier: MIT
"""Who may write Roles and RoleBindings gives nobody more than he has: the same session as a ServiceAccount
against kube-apiserver and against tec-operator --standalone, answer by answer."""

import json

import pytest

from test_two_servers import Server, obj, run_session, two_servers

NS = "two-servers-rights"
RBAC = "rbac.authorization.k8s.io/v1"


def role(name, *rules, **more):
    return obj("Role", name, RBAC, rules=[
        {k: v for k, v in zip(("apiGroups", "resources", "verbs", "resourceNames"), rule)} for rule in rules], **more)


def binding(name, ref="held", kind="Role", account="other"):
    return obj("RoleBinding", name, RBAC, roleRef={"apiGroup": "rbac.authorization.k8s.io", "kind": kind, "name": ref},
               subjects=[{"kind": "ServiceAccount", "name": account, "namespace": NS}])


EVERYTHING = (["*"], ["*"], ["*"])
CREATE = "create -f -"
APPLY = "apply --server-side -f -"

# What the account has.
ADMIN = [
    ("account", "create serviceaccount granter", None),
    ("other", "create serviceaccount other", None),
    ("has", CREATE, role("has", ([""], ["configmaps"], ["get", "list", "update"]),
                         ([""], ["configmaps"], ["watch"]),
                         ([""], ["secrets"], ["get"], ["one", "two"]),
                         (["example.org"], ["*/status"], ["patch"]),
                         (["apps"], ["*"], ["get"]))),
    ("writes", CREATE, role("writes", (["rbac.authorization.k8s.io"], ["roles", "rolebindings"], [
        "get", "list", "create", "update", "patch", "delete"]))),
    ("is-bound", CREATE, binding("has", "has", account="granter")),
    ("may-write", CREATE, binding("writes", "writes", account="granter")),
    ("strong", CREATE, role("strong", EVERYTHING)),
    ("old", CREATE, role("old", ([""], ["secrets"], ["list"]))),
    ("held", CREATE, role("held", ([""], ["configmaps"], ["get"]))),
]

STEPS = [
    ("same", CREATE, role("same", ([""], ["configmaps"], ["get", "list"]))),
    ("two-rules-together", CREATE, role("together", ([""], ["configmaps"], ["get", "watch"]))),
    ("none", CREATE, role("none")),
    ("everything", CREATE, role("all", EVERYTHING)),
    ("verb", CREATE, role("verb", ([""], ["configmaps"], ["get", "delete", "create"]))),
    ("resource", CREATE, role("resource", ([""], ["configmaps", "secrets", "pods"], ["get"]))),
    ("group", CREATE, role("group", (["", "batch"], ["configmaps"], ["get"]))),
    ("name", CREATE, role("name", ([""], ["secrets"], ["get"], ["one"]))),
    ("other-name", CREATE, role("name2", ([""], ["secrets"], ["get"], ["one", "three"]))),
    ("every-name", CREATE, role("name3", ([""], ["secrets"], ["get"]))),
    ("narrower", CREATE, role("narrower", ([""], ["configmaps"], ["get"], ["x"]))),
    ("sub", CREATE, role("sub", (["example.org"], ["things/status"], ["patch"]))),
    ("not-sub", CREATE, role("sub2", (["example.org"], ["things", "things/scale"], ["patch"]))),
    ("star-resource", CREATE, role("star", (["apps"], ["deployments", "deployments/scale"], ["get"]))),
    ("star-verb", CREATE, role("star2", ([""], ["configmaps"], ["*"]))),
    ("own-reviews", CREATE, role("reviews", (["authorization.k8s.io"], ["selfsubjectaccessreviews"], ["create"]))),
    ("quotes", CREATE, role("quotes", (["a\"b"], ["c\\d"], ["get"]))),
    ("twice", CREATE, role("twice", ([""], ["pods"], ["get"]), ([""], ["pods"], ["get", "list"]))),
    ("apply-new", APPLY, role("applied", EVERYTHING)),
    ("apply-held", APPLY, role("applied2", ([""], ["configmaps"], ["get"]))),
    ("apply-more", APPLY, role("applied2", ([""], ["configmaps"], ["get", "delete"]))),
    ("patch-more", "patch role same --type=json -p", [{"op": "add", "path": "/rules/0/verbs/0", "value": "delete"}]),
    ("replace-more", "replace -f -", role("same", EVERYTHING)),
    ("label-of-stronger", "label role old a=b", None),
    ("finalizer-of-stronger", "patch role old --type=merge -p", {"metadata": {"finalizers": ["example.org/x"]}}),
    ("finalizer-off", "patch role old --type=merge -p", {"metadata": {"finalizers": None}}),
    ("dry", "create --dry-run=server -f -", role("dry", EVERYTHING)),
    ("still", "get role same -o jsonpath={.rules}", None),
    ("bind-held", CREATE, binding("b1")),
    ("bind-strong", CREATE, binding("b2", "strong")),
    ("bind-own", CREATE, binding("b3", "strong", account="granter")),
    ("bind-absent", CREATE, binding("b4", "absent")),
    ("bind-cluster-absent", CREATE, binding("b5", "absent", "ClusterRole")),
    ("bind-apply", APPLY, binding("b6", "strong")),
    ("bind-label", "label rolebinding b1 a=b", None),
    ("bind-subject", "patch rolebinding b1 --type=merge -p", {"subjects": []}),
    ("bindings", "get rolebindings -o name", None),
    ("roles", "get roles -o name", None),
    ("delete-strong", "delete role strong", None),
]

# The verbs that allow it: after the administrator gave them.
ALLOWED = [
    ("may-bind", CREATE, role("may-bind", (["rbac.authorization.k8s.io"], ["roles"], ["bind"], ["old"]))),
    ("may-bind-is-bound", CREATE, binding("may-bind", "may-bind", account="granter")),
]
BOUND = [
    ("bind-named", CREATE, binding("b7", "old")),
    ("bind-not-named", CREATE, binding("b8", "writes2")),
    ("role-not-by-bind", CREATE, role("by-bind", EVERYTHING)),
]
ESCALATE = [
    ("may-escalate", CREATE, role("may-escalate", (["rbac.authorization.k8s.io"], ["roles"], ["escalate"]))),
    ("may-escalate-is-bound", CREATE, binding("may-escalate", "may-escalate", account="granter")),
]
ESCALATED = [
    ("role-by-escalate", CREATE, role("by-escalate", EVERYTHING)),
    ("update-by-escalate", "label role old a=c --overwrite", None),
    ("not-bound-by-escalate", CREATE, binding("b9", "by-escalate")),
]


@pytest.fixture(scope="module")
def both(cp, tmp_path_factory):
    with two_servers(cp, tmp_path_factory.mktemp("rights"), NS) as servers:
        yield servers


def as_account(server, base):
    """The same server with the token of the ServiceAccount granter, and no certificate."""
    config = json.loads(server.said("config view --raw --minify -o json"))
    config["users"][0]["user"] = {"token": server.said("create token granter").strip()}
    path = base / "kubeconfig"
    path.write_text(json.dumps(config))
    return Server(str(path), str(base / "cache"), NS, server.place)


def test_nobody_gives_more_than_he_has(both, tmp_path_factory):
    run_session(*both, ADMIN, {})
    accounts = [as_account(server, tmp_path_factory.mktemp("account")) for server in both]
    run_session(*accounts, STEPS, {})
    run_session(*both, ALLOWED, {})
    run_session(*accounts, BOUND, {})
    run_session(*both, ESCALATE, {})
    run_session(*accounts, ESCALATED, {})
