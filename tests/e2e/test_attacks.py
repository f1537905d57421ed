# SPDX-License-Identifier: MIT
"""What an attacker tries, each on a real API server under the rights of k8s/: one function or more per
number, test_attack_NN_what. Each was seen to fail on version 0.1.0."""

import json
import time

import spine
from trustees import owner_reference


# ---- 1


# ---- 2


# ---- 3


def secret_maker(cp, ns):
    """Headers of an account that may create Secrets and do nothing else; it was told the cluster's uid."""
    meta, rbac = {"name": "maker", "namespace": ns}, "rbac.authorization.k8s.io"
    cp.apply([{"apiVersion": "v1", "kind": "ServiceAccount", "metadata": meta},
              {"apiVersion": f"{rbac}/v1", "kind": "Role", "metadata": meta,
               "rules": [{"apiGroups": [""], "resources": ["secrets"], "verbs": ["create"]}]},
              {"apiVersion": f"{rbac}/v1", "kind": "RoleBinding", "metadata": meta,
               "roleRef": {"apiGroup": rbac, "kind": "Role", "name": "maker"},
               "subjects": [{"kind": "ServiceAccount", **meta}]}])
    headers = {"Impersonate-User": f"system:serviceaccount:{ns}:maker"}
    path = spine.path_of(ns, "secrets") + "?dryRun=All"
    cp.wait_for(lambda: cp.api("POST", path, {"metadata": {"name": "probe"}}, headers=headers)[0] == 201, 10,
                "the account's rights")
    return headers


def plant_for_cluster(cp, ns, cluster, name, data, headers):
    """Right in type, members and owner. blockOwnerDeletion needs a right of its own, and nobody looks at it."""
    owner = {**owner_reference(cluster), "blockOwnerDeletion": False}
    status, answer = cp.api("POST", spine.path_of(ns, "secrets"), {
        "metadata": {"name": name, "ownerReferences": [owner]}, "type": "Opaque", "stringData": data},
        headers=headers)
    assert status == 201, answer


def template_of(cp, ns):
    return json.dumps(spine.read(cp, ns, "deployments", "trustee-deployment")["spec"]["template"])


def conflict_names(cp, ns, name):
    """The condition and the Event say what to delete."""
    line = f"kubectl delete secret {name} -n {ns}"
    spine.wait_condition(cp, ns, "tec", "tec", "Installed", "Conflict")
    assert line in spine.condition(spine.read(cp, ns, "tec", "tec"), "Installed")["message"]
    events = f"/apis/events.k8s.io/v1/namespaces/{ns}/events"
    cp.wait_for(lambda: [e for e in cp.get(events)["items"] if line in e.get("note", "")], 10, "the Event")


def test_attack_03_planted_token_signer(cp, ns, start_operator, tmp_path):
    """A signer that is newer than the operator's own, in a cluster that is less than an hour old, signs at
    once in 0.1.0; in an older one after the ripening time."""
    cluster = spine.make_cluster(cp, ns)
    start_operator(ns, "--leader-elect=false")
    spine.wait_condition(cp, ns, "tec", "tec", "Installed", "InstallationCompleted")
    before, maker = template_of(cp, ns), secret_maker(cp, ns)
    pair = spine.make_certificate(str(tmp_path), "planted", days=7300)
    plant_for_cluster(cp, ns, cluster, "trustee-token-2",
                      {"key.pem": pair["tls.key"], "cert.pem": pair["tls.crt"]}, maker)
    time.sleep(3)  # it reads the Secret, and would write the Deployment in the same moment
    assert template_of(cp, ns) == before, "Trustee signs with somebody else's key"
    conflict_names(cp, ns, "trustee-token-2")
    assert spine.read(cp, ns, "secrets", "trustee-token-2"), "what is not ours is not deleted"
    spine.delete(cp, ns, "secrets", "trustee-token-2")
    spine.wait_condition(cp, ns, "tec", "tec", "Installed", "InstallationCompleted")
    assert template_of(cp, ns) == before


def test_attack_03_planted_trustee_auth(cp, ns, start_operator):
    """Somebody is faster than the operator: in 0.1.0 his key administers Trustee."""
    operator = start_operator(ns, "--leader-elect=false")  # it was here before
    maker = secret_maker(cp, ns)
    operator.terminate()
    time.sleep(1.1)  # timestamps have a resolution of one second
    cluster = spine.make_cluster(cp, ns)
    plant_for_cluster(cp, ns, cluster, "trustee-auth",
                      {"private.key": "known", "public.pub": "to somebody"}, maker)
    operator.start()
    conflict_names(cp, ns, "trustee-auth")
    assert spine.read(cp, ns, "services", "kbs-service"), "the rest is installed"
    assert not spine.read(cp, ns, "deployments", "trustee-deployment"), "Trustee would mount it"
    spine.delete(cp, ns, "secrets", "trustee-auth")
    spine.wait_condition(cp, ns, "tec", "tec", "Installed", "InstallationCompleted")
    made = spine.read(cp, ns, "secrets", "trustee-auth")["data"]
    assert made["public.pub"] and made["public.pub"] != "dG8gc29tZWJvZHk="
    assert spine.read(cp, ns, "deployments", "trustee-deployment")


def test_attack_03_planted_registration_key(cp, ns, start_operator):
    """Whoever knows the registration key hands out machine ids. (0.1.0 has no such key.)"""
    cluster = spine.make_cluster(cp, ns)
    start_operator(ns, "--leader-elect=false")
    spine.wait_condition(cp, ns, "tec", "tec", "Installed", "InstallationCompleted")
    plant_for_cluster(cp, ns, cluster, "tec-registration-key", {"key": "k" * 32}, secret_maker(cp, ns))
    spine.merge(cp, ns, "tec", "tec", {"spec": {"registration": {"machine": "AtKey"}}})
    conflict_names(cp, ns, "tec-registration-key")
    spine.wait_condition(cp, ns, "tec", "tec", "RegistrationOpen", "NoRegistrationKey")
    annotations = spine.read(cp, ns, "tec", "tec")["metadata"]["annotations"]
    assert not [name for name in annotations if name.endswith("sha256-tec-registration-key")], annotations
    spine.delete(cp, ns, "secrets", "tec-registration-key")
    spine.wait_condition(cp, ns, "tec", "tec", "RegistrationOpen", "Open")
    made = spine.read(cp, ns, "secrets", "tec-registration-key")
    assert made["immutable"] and made["data"]["key"] != "a2tr" * 10 + "a2s="
    assert spine.read(cp, ns, "tec", "tec")["metadata"]["annotations"][
        "trusted-execution-clusters.io/sha256-tec-registration-key"].startswith(cluster["metadata"]["uid"])


def test_attack_03_marker_is_not_moved(cp, ns, start_operator):
    """Who deletes the marker under a running operator, to have planted objects count as older ones."""
    operator = start_operator(ns, "--leader-elect=false")
    marker = cp.wait_for(lambda: spine.read(cp, ns, "configmaps", "tec-operator-since"), 10, "the marker")
    assert "ownerReferences" not in marker["metadata"]
    operator.restart()
    again = spine.read(cp, ns, "configmaps", "tec-operator-since")
    assert again["metadata"]["uid"] == marker["metadata"]["uid"]
    time.sleep(1.1)
    cluster = spine.make_cluster(cp, ns)
    spine.wait_condition(cp, ns, "tec", "tec", "Installed", "InstallationCompleted")
    spine.delete(cp, ns, "configmaps", "tec-operator-since")
    spine.delete(cp, ns, "secrets", "trustee-auth")
    plant_for_cluster(cp, ns, cluster, "trustee-token-2", {"key.pem": "k", "cert.pem": "c"}, secret_maker(cp, ns))
    conflict_names(cp, ns, "trustee-token-2")
    assert not spine.read(cp, ns, "configmaps", "tec-operator-since")
    assert "tec-operator-since was deleted" in operator.log_text()


# ---- 4


# ---- 5


# ---- 6


# ---- 7


# ---- 8


# ---- 9


# ---- 10


# ---- 11


# ---- 12


# ---- 13


# ---- 14
