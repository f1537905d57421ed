# SPDX-License-Identifier: MIT
"""What restarts Trustee on a real API server: a rotated trusteeSecret and another operator's
Deployment, once each; a restart of the operator and a Secret that is gone, never."""

import spine
from teckinds import GROUP
from test_spine import account, installed, settled
from trustees import before_the_operator

DEPLOYMENT = "trustee-deployment"


def deployment(cp, ns):
    return spine.read(cp, ns, "deployments", DEPLOYMENT)


def tls_hash(obj):
    return obj["spec"]["template"]["metadata"]["annotations"].get(f"{GROUP}/tls-hash")


def restarts(cp, ns, mark):
    """Writes of ours to the Deployment and its config since MARK."""
    names = (DEPLOYMENT, "trustee-data")
    return [w for w in cp.writes_by(account(ns), mark)
            if (w.get("objectRef") or {}).get("name") in names]


def test_with_the_guard_a_rotated_certificate_writes_nothing(cp, ns, start_operator, tmp_path):
    """It reads the mounted files again; Trustee has no certificate."""
    spine.make_tls_secret(cp, ns, "trustee-tls", spine.make_certificate(tmp_path, "first"))
    spine.make_cluster(cp, ns, trusteeSecret="trustee-tls")
    start_operator(ns)
    installed(cp, ns)
    settled(cp, ns)
    assert tls_hash(deployment(cp, ns)) is None
    mark = cp.audit.mark()
    spine.make_tls_secret(cp, ns, "trustee-tls", spine.make_certificate(tmp_path, "second"))
    settled(cp, ns, 3)
    assert restarts(cp, ns, mark) == []
    assert deployment(cp, ns)["metadata"]["generation"] == 1


def test_without_the_guard_a_rotated_certificate_is_one_new_generation(cp, ns, start_operator, tmp_path):
    first = spine.make_certificate(tmp_path, "first")
    spine.make_tls_secret(cp, ns, "trustee-tls", first)
    spine.make_cluster(cp, ns, trusteeSecret="trustee-tls", trustee={"guard": "Disabled"})
    op = start_operator(ns)
    installed(cp, ns)
    settled(cp, ns)
    was = deployment(cp, ns)
    assert was["metadata"]["generation"] == 1
    assert len(tls_hash(was)) == 16

    mark = cp.audit.mark()
    spine.make_tls_secret(cp, ns, "trustee-tls", spine.make_certificate(tmp_path, "second"))
    cp.wait_for(lambda: tls_hash(deployment(cp, ns)) != tls_hash(was), 20, "another hash")
    settled(cp, ns)
    now = deployment(cp, ns)
    assert now["metadata"]["generation"] == 2
    assert len(restarts(cp, ns, mark)) == 1

    # Neither the operator's restart nor a Secret that is gone is one of Trustee's.
    mark = cp.audit.mark()
    spine.delete(cp, ns, "secrets", "trustee-tls")
    settled(cp, ns)
    op.restart()
    settled(cp, ns)
    assert deployment(cp, ns)["metadata"]["generation"] == 2
    assert restarts(cp, ns, mark) == []
    # The old one again: back to the first template.
    spine.make_tls_secret(cp, ns, "trustee-tls", first)
    cp.wait_for(lambda: tls_hash(deployment(cp, ns)) == tls_hash(was), 20, "the first hash")
    settled(cp, ns)
    assert deployment(cp, ns)["metadata"]["generation"] == 3


def rust_deployment(ns, cluster):
    """As the Rust operator makes it, with one node's key mounted."""
    labels = {"app": "kbs"}
    mounts = [{"name": "auth", "mountPath": "/key"},
              {"name": "node", "mountPath": "/opt/trustee/kbs-repository/default/node"}]
    volumes = [{"name": "auth", "secret": {"secretName": "trustee-auth"}},
               {"name": "node", "secret": {"secretName": "node"}}]
    owner = {"apiVersion": cluster["apiVersion"], "kind": cluster["kind"],
             "name": cluster["metadata"]["name"], "uid": cluster["metadata"]["uid"],
             "controller": True, "blockOwnerDeletion": True}
    return {"apiVersion": "apps/v1", "kind": "Deployment",
            "metadata": {"name": DEPLOYMENT, "namespace": ns, "ownerReferences": [owner]},
            "spec": {"replicas": 1, "selector": {"matchLabels": labels}, "template": {
                "metadata": {"labels": labels},
                "spec": {"containers": [{"name": "kbs", "image": "example.org/kbs:1",
                                         "volumeMounts": mounts}], "volumes": volumes}}}}


def test_another_operators_deployment_is_made_anew(cp, ns, start_operator):
    cluster = spine.make_cluster(cp, ns)
    status, theirs = cp.api("POST", spine.path_of(ns, "deployments"), rust_deployment(ns, cluster))
    assert status == 201, theirs
    auth = {"apiVersion": "v1", "kind": "Secret",
            "metadata": {"name": "trustee-auth",
                         "ownerReferences": theirs["metadata"]["ownerReferences"]},
            "data": {"private.key": "QQ==", "public.pub": "Qg=="}}
    status, auth = cp.api("POST", spine.path_of(ns, "secrets"), auth)
    assert status == 201, auth
    before_the_operator()
    start_operator(ns)
    installed(cp, ns)
    settled(cp, ns)
    ours = deployment(cp, ns)
    assert ours["metadata"]["uid"] != theirs["metadata"]["uid"]
    assert ours["metadata"]["generation"] == 1
    volumes = [v["name"] for v in ours["spec"]["template"]["spec"]["volumes"]]
    assert "trustee-token" in volumes and "node" not in volumes
    kept = spine.read(cp, ns, "secrets", "trustee-auth")
    assert kept["metadata"]["uid"] == auth["metadata"]["uid"] and kept["data"] == auth["data"]
