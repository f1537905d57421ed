# SPDX-License-Identifier: MIT
"""k8s/approval-policy/ on a real API server: only who has the verb approve sets the annotation that approves
an AttestationKey, in the operator's namespace, and nothing else is in anybody's way."""

import os
import shutil
import subprocess

import pytest

import spine
from controlplane import TOP, json_documents
from teckinds import GROUP, obj, url
from test_spine import joined

FOLDER = os.path.join(TOP, "k8s", "approval-policy")
APPROVED = f"{GROUP}/approved"
CLUSTER_SCOPED = ("ValidatingAdmissionPolicy", "ValidatingAdmissionPolicyBinding")
ADMISSION = "/apis/admissionregistration.k8s.io/v1"
RBAC = "rbac.authorization.k8s.io"


def retargeted(cp, directory, ns):
    """The objects of k8s/approval-policy/ for another namespace, the way its comment says; the cluster-scoped
    names get the namespace too, as the control plane is everybody's."""
    folder = os.path.join(directory, "approval-policy")
    shutil.copytree(FOLDER, folder)
    with open(os.path.join(folder, "kustomization.yaml"), "a", encoding="utf-8") as f:
        f.write(f"namespace: {ns}\n")
    text = subprocess.run(["kubectl", "kustomize", folder], check=True, capture_output=True, text=True,
                          timeout=60).stdout
    objects = json_documents(cp.kubectl("create", "--dry-run=client", "--validate=false", "-o", "json", "-f", "-",
                                        input=text))
    for o in objects:
        if o["kind"] in CLUSTER_SCOPED:
            o["metadata"]["name"] += f".{ns}"
            if "policyName" in o["spec"]:
                o["spec"]["policyName"] += f".{ns}"
    return objects


def role(cp, ns, name, *verbs):
    """A user of this name, who may do so to AttestationKeys."""
    meta = {"name": name, "namespace": ns}
    rbac = {"apiVersion": f"{RBAC}/v1", "metadata": meta}
    cp.apply([dict(rbac, kind="Role", rules=[{"apiGroups": [GROUP], "resources": ["attestationkeys"],
                                              "verbs": list(verbs)}]),
              binding(ns, name, name)])


def binding(ns, role_name, user):
    return {"apiVersion": f"{RBAC}/v1", "kind": "RoleBinding",
            "metadata": {"name": f"{role_name}-{user}", "namespace": ns},
            "roleRef": {"apiGroup": RBAC, "kind": "Role", "name": role_name},
            "subjects": [{"apiGroup": RBAC, "kind": "User", "name": user}]}


class Asked:
    """What one user is answered about AttestationKeys."""

    def __init__(self, cp, ns, user):
        self.cp, self.ns, self.headers = cp, ns, {"Impersonate-User": user}

    def post(self, name, **meta):
        return self.cp.api("POST", url("ak", self.ns), obj("ak", {"publicKey": "k"}, name, **meta),
                           headers=self.headers)

    def merge(self, name, metadata):
        return self.cp.api("PATCH", url("ak", self.ns, name), {"metadata": metadata}, "merge",
                           headers=self.headers)

    def annotate(self, name, value="true"):
        return self.merge(name, {"annotations": {APPROVED: value}})

    def apply(self, name, **meta):
        return self.cp.api("PATCH", url("ak", self.ns, name, "?fieldManager=tests&force=true"),
                           obj("ak", {"publicKey": "k"}, name, **meta), "apply", headers=self.headers)


@pytest.fixture(name="installed")
def _installed(cp, ns, tmp_path):
    """The policy is in force in ns."""
    objects = retargeted(cp, str(tmp_path), ns)
    cp.apply(objects)
    cp.wait_for(lambda: Asked(cp, ns, f"system:serviceaccount:{ns}:tec-listener").post(
        "probe", annotations={APPROVED: "true"})[0] == 403 or spine.delete(cp, ns, "ak", "probe"),
        30, "the policy in force", 0.3)
    role(cp, ns, "writer", "get", "create", "patch", "update")
    role(cp, ns, "one", "get", "patch")
    cp.apply([binding(ns, "attestationkey-approver", "approver")])
    yield cp
    for o in objects:
        if o["kind"] in CLUSTER_SCOPED:
            plural = "validatingadmissionpolicies" if o["kind"] == CLUSTER_SCOPED[0] else \
                "validatingadmissionpolicybindings"
            cp.api("DELETE", f"{ADMISSION}/{plural}/{o['metadata']['name']}")


def forbidden(answer, user):
    status, body = answer
    assert status == 403, body
    assert body["reason"] == "Forbidden"
    assert "verb approve on attestationkeys" in body["message"] and user in body["message"], body


def test_only_who_may_approve_sets_the_annotation(installed, ns):
    writer, approver = Asked(installed, ns, "writer"), Asked(installed, ns, "approver")
    assert writer.post("a")[0] == 201, "without the annotation nobody is asked for it"
    forbidden(writer.annotate("a"), "writer")
    forbidden(writer.annotate("a", "false"), "writer")
    forbidden(writer.apply("a", annotations={APPROVED: "true"}), "writer")
    forbidden(writer.post("b", annotations={APPROVED: "true"}), "writer")
    forbidden(writer.apply("b", annotations={APPROVED: "true"}), "writer")
    status, body = approver.annotate("a")
    assert status == 200 and body["metadata"]["annotations"] == {APPROVED: "true"}, body
    assert approver.post("c")[0] == 403, "the sample Role makes no keys"
    # A member of system:masters has every verb.
    spine.made(installed, "ak", ns, {"publicKey": "k"}, "d", annotations={APPROVED: "true"})


def test_an_annotation_that_stays_is_in_nobodys_way(installed, ns):
    writer, approver = Asked(installed, ns, "writer"), Asked(installed, ns, "approver")
    assert writer.post("a", annotations={"note": "1"})[0] == 201
    assert approver.annotate("a")[0] == 200
    assert writer.merge("a", {"annotations": {"note": "2"}})[0] == 200
    assert writer.merge("a", {"finalizers": ["example.org/x"]})[0] == 200
    assert writer.annotate("a")[0] == 200, "the same value again"
    forbidden(writer.annotate("a", "yes"), "writer")
    assert writer.annotate("a", None)[0] == 200, "taken off"
    forbidden(writer.annotate("a"), "writer")
    assert writer.merge("a", {"finalizers": None})[0] == 200


def test_the_verb_may_be_for_one_key(installed, ns):
    installed.apply([{"apiVersion": f"{RBAC}/v1", "kind": "Role", "metadata": {"name": "of-a", "namespace": ns},
                      "rules": [{"apiGroups": [GROUP], "resources": ["attestationkeys"],
                                 "resourceNames": ["a"], "verbs": ["approve"]}]},
                     binding(ns, "of-a", "one")])
    writer, one = Asked(installed, ns, "writer"), Asked(installed, ns, "one")
    assert writer.post("a")[0] == 201 and writer.post("b")[0] == 201
    installed.wait_for(lambda: one.annotate("a")[0] == 200, 10, "the right to approve a")
    forbidden(one.annotate("b"), "one")


def test_other_namespaces_are_not_concerned(installed):
    other = installed.create_namespace()
    role(installed, other, "writer", "get", "create", "patch")
    writer = Asked(installed, other, "writer")
    installed.wait_for(lambda: writer.post("a", annotations={APPROVED: "true"})[0] == 201, 10, "a key elsewhere")
    installed.api("DELETE", f"/api/v1/namespaces/{other}")


def test_the_operator_works_under_it(installed, ns, start_operator):
    """A listener registers, the operator approves; of a second key it takes the annotation off that an approver
    has set, without the verb."""
    cp = installed
    spine.make_cluster(cp, ns)
    op = start_operator(ns)
    uuid, _, ak = joined(cp, ns, op, spine.rsa_key())
    assert spine.register(op, spine.rsa_key(), uuid)[0] == 201
    second = next(a for a in spine.items(cp, ns, "ak") if a["metadata"]["name"] != ak["metadata"]["name"])
    name = second["metadata"]["name"]
    spine.wait_condition(cp, ns, "ak", name, "Approved", "MachineHasKey")
    assert Asked(cp, ns, "approver").annotate(name)[0] == 200
    approved = spine.wait_condition(cp, ns, "ak", name, "Approved", "ApprovedManually")
    assert APPROVED not in approved["metadata"]["annotations"]
    machine = spine.read(cp, ns, "mach", f"machine-{uuid}")
    assert [o["uid"] for o in approved["metadata"]["ownerReferences"]] == [machine["metadata"]["uid"]]


def test_as_committed_it_is_for_the_namespace_of_the_manifests(cp):
    objects = cp.read_manifests(FOLDER)
    (namespace,) = (o["metadata"]["name"] for o in cp.read_manifests(os.path.join(TOP, "k8s"))
                    if o["kind"] == "Namespace")
    by_kind = {o["kind"]: o for o in objects}
    assert sorted(by_kind) == ["Role", *CLUSTER_SCOPED]
    bound = by_kind["ValidatingAdmissionPolicyBinding"]["spec"]
    assert bound["matchResources"]["namespaceSelector"] == {
        "matchLabels": {"kubernetes.io/metadata.name": namespace}}
    assert bound["policyName"] == by_kind["ValidatingAdmissionPolicy"]["metadata"]["name"]
    assert bound["validationActions"] == ["Deny"]
    assert by_kind["Role"]["metadata"]["namespace"] == namespace
    assert "approve" in by_kind["Role"]["rules"][0]["verbs"]
