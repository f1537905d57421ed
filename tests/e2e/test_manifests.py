# SPDX-License-Identifier: MIT
"""k8s/ on a real API server: the Roles are enough for what the operator writes and no more, the
Pod template is restricted, the samples are accepted."""

import json
import os
import re
import shutil
import subprocess

import pytest

from teckinds import GROUP, ID, IMAGE, KINDS, OTHER_ID, condition, made, obj, url
from tecproc import operator_binary

TOP = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
OUR_NS = "tec-manifests"  # k8s/ is moved there, so that deleting it disturbs nobody
OPERATOR, LISTENER, PCRS = "tec-operator", "tec-listener", "compute-pcrs"
EVERYTHING = ("get", "list", "watch", "create", "update", "patch", "delete", "deletecollection")


@pytest.fixture(scope="module", name="installed")
def _installed(cp):
    """k8s/ in a namespace of its own, with no operator running."""
    objects = [o for o in cp.read_manifests(os.path.join(TOP, "k8s"))
               if o["kind"] != "CustomResourceDefinition"]
    theirs = next(o["metadata"]["name"] for o in objects if o["kind"] == "Namespace")
    objects = json.loads(json.dumps(objects).replace(f'"namespace": "{theirs}"',
                                                     f'"namespace": "{OUR_NS}"'))
    for o in objects:
        if o["kind"] == "Namespace":
            o["metadata"]["name"] = OUR_NS
        if o["kind"] == "Deployment":
            o["spec"]["replicas"] = 0
    cp.apply(objects)
    yield cp
    cp.api("DELETE", f"/api/v1/namespaces/{OUR_NS}")


def as_account(cp, account):
    user = f"system:serviceaccount:{OUR_NS}:{account}"
    headers = {"Impersonate-User": user}

    def call(method, path, body=None, patch=None):
        return cp.api(method, path, body, patch, headers=headers)
    return call


def allowed(cp, account, verb, group, resource, name=None, namespace=OUR_NS):
    resource, _, sub = resource.partition("/")
    status, body = cp.api("POST", "/apis/authorization.k8s.io/v1/subjectaccessreviews", {
        "apiVersion": "authorization.k8s.io/v1", "kind": "SubjectAccessReview",
        "spec": {"user": f"system:serviceaccount:{OUR_NS}:{account}",
                 "groups": ["system:serviceaccounts", "system:authenticated",
                            f"system:serviceaccounts:{OUR_NS}"],
                 "resourceAttributes": {
                     "verb": verb, "group": group, "resource": resource, "subresource": sub,
                     "namespace": namespace, **({"name": name} if name else {})}}})
    assert status == 201, body
    return body["status"]["allowed"]


READ = "get list watch"
# account, group, resource, name: exactly these verbs of EVERYTHING
RIGHTS = [
    (OPERATOR, GROUP, "trustedexecutionclusters", None, READ + " patch"),
    (OPERATOR, GROUP, "machines", None, READ + " create patch delete"),
    (OPERATOR, GROUP, "attestationkeys", None, READ + " create patch delete"),
    (OPERATOR, GROUP, "approvedimages", None, READ + " create patch delete"),
    *[(OPERATOR, GROUP, f"{plural}/status", None, "patch") for _, plural in KINDS.values()],
    *[(OPERATOR, GROUP, f"{KINDS[k][1]}/finalizers", None, "update")
      for k in ("tec", "mach", "ak", "ai")],
    (OPERATOR, "", "configmaps", None, READ + " create patch delete"),
    (OPERATOR, "", "services", None, READ + " create patch delete"),
    (OPERATOR, "", "secrets", None, READ + " create patch delete"),
    (OPERATOR, "", "pods", None, READ),
    (OPERATOR, "", "pods/exec", None, ""),
    (OPERATOR, "", "pods/log", None, ""),
    (OPERATOR, "", "serviceaccounts", None, ""),
    (OPERATOR, "", "serviceaccounts/token", None, ""),
    (OPERATOR, "apps", "deployments", None, READ + " create patch delete"),
    (OPERATOR, "batch", "jobs", None, READ + " create delete"),
    (OPERATOR, "coordination.k8s.io", "leases", None, "create"),
    (OPERATOR, "coordination.k8s.io", "leases", "tec-operator", "get create update patch"),
    (OPERATOR, "events.k8s.io", "events", None, "create patch"),
    (OPERATOR, "rbac.authorization.k8s.io", "roles", None, ""),
    (OPERATOR, "rbac.authorization.k8s.io", "rolebindings", None, ""),
    (LISTENER, GROUP, "trustedexecutionclusters", None, READ),
    (LISTENER, GROUP, "machines", None, READ + " create"),
    (LISTENER, GROUP, "attestationkeys", None, READ + " create"),
    (LISTENER, GROUP, "machines/status", None, ""),
    (LISTENER, GROUP, "trustedexecutionclusters/finalizers", None, "update"),
    (LISTENER, GROUP, "machines/finalizers", None, ""),
    (LISTENER, "", "secrets", None, ""),
    (LISTENER, "", "secrets", ID, ""),
    (LISTENER, "", "secrets", "register-server-tls", READ),
    (LISTENER, "", "configmaps", None, ""),
    (LISTENER, "", "configmaps", "tpm-vendor-roots", READ),
    (LISTENER, "", "configmaps", "tec-deleted-ids", READ),
    (LISTENER, "", "configmaps", "tec-revoked-0", ""),
    (LISTENER, "coordination.k8s.io", "leases", "tec-operator", ""),
    (LISTENER, "events.k8s.io", "events", None, "create patch"),
    (PCRS, "", "configmaps", None, ""),
    (PCRS, "", "configmaps", "image-pcrs", ""),
    (PCRS, "", "configmaps", "trustee-rv-data", ""),
    (PCRS, "", "secrets", None, ""),
    (PCRS, GROUP, "approvedimages", None, ""),
]


@pytest.mark.parametrize("account,group,resource,name,verbs", RIGHTS,
                         ids=[f"{a}-{r}-{n}" for a, _, r, n, _ in RIGHTS])
def test_rights(installed, account, group, resource, name, verbs):
    has = [v for v in EVERYTHING if allowed(installed, account, v, group, resource, name)]
    assert sorted(has) == sorted(verbs.split())


def test_no_rights_outside_the_namespace(installed):
    for account in (OPERATOR, LISTENER, PCRS):
        for verb in EVERYTHING:
            for namespace in ("", "default", "kube-system"):
                for group, resource in ((GROUP, "machines"), ("", "secrets"), ("", "configmaps"),
                                        ("", "nodes"), ("", "namespaces"),
                                        ("apiextensions.k8s.io", "customresourcedefinitions"),
                                        ("rbac.authorization.k8s.io", "clusterroles")):
                    assert not allowed(installed, account, verb, group, resource,
                                       namespace=namespace), (account, verb, namespace, resource)


def test_a_listener_watches_one_secret_by_name(installed):
    listener = as_account(installed, LISTENER)
    secrets = f"/api/v1/namespaces/{OUR_NS}/secrets"
    assert listener("GET", secrets)[0] == 403
    for name, code in (("register-server-tls", 200), (ID, 403)):
        query = f"?fieldSelector=metadata.name%3D{name}"
        assert listener("GET", secrets + query)[0] == code
        query += "&watch=true&timeoutSeconds=1"
        assert listener("GET", secrets + query)[0] == code


def owner(o, **kw):
    return {"apiVersion": o["apiVersion"], "kind": o["kind"], "name": o["metadata"]["name"],
            "uid": o["metadata"]["uid"], "controller": True, "blockOwnerDeletion": True, **kw}


def test_the_role_is_enough_for_the_writing_rules(installed):
    """Each kind of write that the operator does, once, under OwnerReferencesPermissionEnforcement."""
    cp, call = installed, as_account(installed, OPERATOR)
    core = f"/api/v1/namespaces/{OUR_NS}"
    tec = made(cp, "tec", OUR_NS, {}, "rights")
    apply = "?fieldManager=tec-operator&force=true"

    def ok(answer, *codes):
        assert answer[0] in (codes or (200, 201)), answer[1]
        return answer[1]

    def applied(api, path, kind, name, owners, **body):
        return ok(call("PATCH", f"{path}/{name}{apply}", {
            "apiVersion": api, "kind": kind,
            "metadata": {"name": name, "ownerReferences": owners}, **body}, "apply"))

    # Rendered objects, and their repair after somebody took the owner away.
    pod = {"metadata": {"labels": {"app": "kbs"}},
           "spec": {"containers": [{"name": "kbs", "image": "i"}]}}
    for args in (("v1", core + "/configmaps", "ConfigMap", "trustee-data", {"data": {"a": "b"}}),
                 ("v1", core + "/services", "Service", "kbs-service",
                  {"spec": {"ports": [{"port": 8080}], "selector": {"app": "kbs"}}}),
                 ("apps/v1", f"/apis/apps/v1/namespaces/{OUR_NS}/deployments", "Deployment",
                  "trustee-deployment", {"spec": {
                      "replicas": 0, "selector": {"matchLabels": {"app": "kbs"}},
                      "template": pod}})):
        api, path, kind, name, body = args
        applied(api, path, kind, name, [owner(tec)], **body)
        ok(cp.api("PATCH", f"{path}/{name}", {"metadata": {"ownerReferences": None}}, "merge"))
        applied(api, path, kind, name, [owner(tec)], **body)
        ok(call("DELETE", f"{path}/{name}"), 200, 202)

    # A listener's Machine, and an image adopted late.
    mach = ok(call("POST", url("mach", OUR_NS), obj(
        "mach", {"id": ID}, f"machine-{ID}", ownerReferences=[owner(tec)])))
    ai = made(cp, "ai", OUR_NS, {"image": IMAGE})
    ok(call("PATCH", url("ai", OUR_NS, ai["metadata"]["name"]), {"metadata": {
        "resourceVersion": ai["metadata"]["resourceVersion"], "uid": ai["metadata"]["uid"],
        "finalizers": [f"finalizer.approved-image.{GROUP}"],
        "ownerReferences": [owner(tec)]}}, "merge"))
    ok(call("PATCH", url("ai", OUR_NS, ai["metadata"]["name"]),
            {"metadata": {"finalizers": None}}, "merge"))

    # A key that gets its Machine as its one owner.
    ak = ok(call("POST", url("ak", OUR_NS), obj(
        "ak", {"publicKey": "k", "uuid": ID}, "ak-1", ownerReferences=[owner(tec)])))
    ok(call("PATCH", url("ak", OUR_NS, "ak-1"), {"metadata": {
        "resourceVersion": ak["metadata"]["resourceVersion"],
        "ownerReferences": [owner(mach)]}}, "merge"))

    # Secrets: only made; finalizer off by merge patch; an orphan deleted.
    secret_of = {ID: owner(mach), "ak-1": owner(ak)}
    for name, its_owner in secret_of.items():
        ok(call("POST", core + "/secrets", {"metadata": {
            "name": name, "ownerReferences": [its_owner],
            "finalizers": [f"{GROUP}/attestationkey-secret-finalizer"]}}))
        ok(call("PATCH", f"{core}/secrets/{name}", {"metadata": {"finalizers": None}}, "merge"))
        ok(call("DELETE", f"{core}/secrets/{name}"), 200)

    # The Job, and what is announced on its image first.
    ok(call("PATCH", url("ai", OUR_NS, ai["metadata"]["name"]), {"metadata": {
        "uid": ai["metadata"]["uid"], "annotations": {f"{GROUP}/pcrs-job": "x"}}}, "merge"))
    ok(call("POST", f"/apis/batch/v1/namespaces/{OUR_NS}/jobs", {
        "metadata": {"name": "compute-pcrs-1", "ownerReferences": [owner(tec)]},
        "spec": {"suspend": True, "template": {"spec": {
            "restartPolicy": "Never", "serviceAccountName": PCRS,
            "containers": [{"name": "c", "image": "i"}]}}}}))
    ok(call("DELETE", f"/apis/batch/v1/namespaces/{OUR_NS}/jobs/compute-pcrs-1"
            "?propagationPolicy=Background"))

    # Conditions.
    for kind, o in (("tec", tec), ("mach", mach), ("ak", ak), ("ai", ai)):
        name = o["metadata"]["name"]
        ok(call("PATCH", url(kind, OUR_NS, name, "/status" + apply), {
            "apiVersion": o["apiVersion"], "kind": o["kind"], "metadata": {"name": name},
            "status": {"conditions": [condition()]}}, "apply"))

    # The Lease, made, renewed either way, and no other one.
    leases = f"/apis/coordination.k8s.io/v1/namespaces/{OUR_NS}/leases"
    lease = ok(call("POST", leases, {"metadata": {"name": "tec-operator"},
                                     "spec": {"holderIdentity": "a"}}))
    lease["spec"]["holderIdentity"] = "b"
    ok(call("PUT", f"{leases}/tec-operator", lease))
    ok(call("PATCH", f"{leases}/tec-operator", {"spec": {"holderIdentity": "c"}}, "merge"))
    assert call("GET", f"{leases}/other")[0] == 403

    # An Event, then its count.
    events = f"/apis/events.k8s.io/v1/namespaces/{OUR_NS}/events"
    ok(call("POST", events, {
        "metadata": {"name": "e1"}, "eventTime": "2026-01-02T03:04:05.000000Z",
        "reportingController": "tec-operator", "reportingInstance": "tec-operator-0",
        "type": "Normal", "reason": "R", "action": "A", "note": "A sentence.", "regarding": {
            "apiVersion": mach["apiVersion"], "kind": "Machine", "namespace": OUR_NS,
            "name": mach["metadata"]["name"], "uid": mach["metadata"]["uid"]}}))
    ok(call("PATCH", f"{events}/e1", {"series": {
        "count": 2, "lastObservedTime": "2026-01-02T03:05:05.000000Z"}}, "merge"))

    for kind, o in (("ak", ak), ("mach", mach)):
        ok(call("DELETE", url(kind, OUR_NS, o["metadata"]["name"]),
                {"preconditions": {"uid": o["metadata"]["uid"]}}), 200)
    cp.api("DELETE", url("tec", OUR_NS, "rights"))


def test_a_listener_can_do_its_one_thing(installed):
    cp = installed
    tec = made(cp, "tec", OUR_NS, {}, "rights-2")
    listener = as_account(cp, LISTENER)
    status, mach = listener("POST", url("mach", OUR_NS), obj(
        "mach", {"id": OTHER_ID}, "by-listener", ownerReferences=[owner(tec)]))
    assert status == 201, mach
    assert listener("DELETE", url("mach", OUR_NS, "by-listener"))[0] == 403
    assert listener("PATCH", url("mach", OUR_NS, "by-listener"), {}, "merge")[0] == 403
    cp.api("DELETE", url("mach", OUR_NS, "by-listener"))
    cp.api("DELETE", url("tec", OUR_NS, "rights-2"))


def test_the_pod_template_is_restricted(installed):
    """The namespace enforces the restricted profile: a Pod of the template is taken, one that
    lacks any part of it is not."""
    pods = f"/api/v1/namespaces/{OUR_NS}/pods?dryRun=All"
    deployment = installed.get(f"/apis/apps/v1/namespaces/{OUR_NS}/deployments/tec-operator")
    template = deployment["spec"]["template"]
    pod = {"metadata": {"generateName": "p-", **template["metadata"]}, "spec": template["spec"]}
    status, body = installed.api("POST", pods, pod)
    assert status == 201, body
    for numeric in ("runAsUser", "runAsGroup", "fsGroup"):
        assert pod["spec"]["securityContext"][numeric] == 65532
    container = pod["spec"]["containers"][0]
    assert container["securityContext"]["readOnlyRootFilesystem"] is True
    assert set(container["resources"]) == {"requests", "limits"}
    own = {e["name"]: e.get("value") for e in container["env"]}
    assert own["RELATED_IMAGE_OPERATOR"] == container["image"]
    # The compute-pcrs Job mounts the image it reads.
    pod["spec"]["volumes"] += [{"name": "image", "image": {"reference": IMAGE}}]
    container["volumeMounts"] += [{"name": "image", "mountPath": "/image", "readOnly": True}]
    status, body = installed.api("POST", pods, pod)
    assert status == 201 and any(v.get("image") for v in body["spec"]["volumes"]), body
    del container["securityContext"]["capabilities"]
    status, body = installed.api("POST", pods, pod)
    assert status == 403 and "restricted" in body["message"], body


def test_registry_credentials_may_be_missing(installed):
    """The file of --registry-auth is where the Secret is mounted, and no Pod waits for the Secret."""
    deployment = installed.get(f"/apis/apps/v1/namespaces/{OUR_NS}/deployments/tec-operator")
    spec = deployment["spec"]["template"]["spec"]
    container = spec["containers"][0]
    auth = next(a.split("=")[1] for a in container["args"] if a.startswith("--registry-auth="))
    mount = next(m for m in container["volumeMounts"] if auth.startswith(m["mountPath"] + "/"))
    volume = next(v for v in spec["volumes"] if v["name"] == mount["name"])
    assert mount["readOnly"] and volume["secret"]["optional"]
    assert auth == f"{mount['mountPath']}/{volume['secret']['items'][0]['path']}"
    assert volume["secret"]["items"][0]["key"] == ".dockerconfigjson"  # kubernetes.io/dockerconfigjson


def test_a_drain_or_a_dead_node_leaves_a_replica(installed):
    """As the API server stored it: what it does not know it would have dropped."""
    path = f"/apis/{{}}/namespaces/{OUR_NS}/{{}}/tec-operator"
    deployment = installed.get(path.format("apps/v1", "deployments"))
    template = deployment["spec"]["template"]
    labels, spec = template["metadata"]["labels"], template["spec"]
    assert spec["topologySpreadConstraints"] == [{
        "maxSkew": 1, "topologyKey": "kubernetes.io/hostname", "whenUnsatisfiable": "ScheduleAnyway",
        "nodeTaintsPolicy": "Honor", "matchLabelKeys": ["pod-template-hash"],
        "labelSelector": {"matchLabels": {"app": "tec-operator"}}}]
    assert labels["app"] == "tec-operator"
    assert {(t["key"], t["effect"], t["tolerationSeconds"]) for t in spec["tolerations"]} == {
        (f"node.kubernetes.io/{k}", "NoExecute", 30) for k in ("not-ready", "unreachable")}
    budget = installed.get(path.format("policy/v1", "poddisruptionbudgets"))["spec"]
    assert budget == {"maxUnavailable": 1, "unhealthyPodEvictionPolicy": "AlwaysAllow",
                      "selector": {"matchLabels": {"app": "tec-operator"}}}


def test_the_pod_is_given_the_time_to_end(installed):
    """The default of --shutdown-delay in a Pod, 10 s for requests, 2 s for the Lease."""
    deployment = installed.get(f"/apis/apps/v1/namespaces/{OUR_NS}/deployments/tec-operator")
    spec = deployment["spec"]["template"]["spec"]
    said = subprocess.run([operator_binary(), "--help"], check=True, capture_output=True, text=True,
                          timeout=20).stdout
    delay = int(re.search(r"Default: (\d+) in a Pod", " ".join(said.split())).group(1))
    assert not [a for a in spec["containers"][0]["args"] if "shutdown-delay" in a]
    assert spec["terminationGracePeriodSeconds"] >= delay + 10 + 2 + 5
    # A replica is looked at often enough to be out of every Service within the delay.
    assert spec["containers"][0]["readinessProbe"]["periodSeconds"] <= delay


def test_every_image_can_be_another(tmp_path):
    """`images:` reaches what the operator renders with, which kustomize does not know by itself."""
    for folder in ("k8s", "crd"):
        shutil.copytree(os.path.join(TOP, folder), tmp_path / folder)
    operator, pcrs, trustee = (f"{registry}/trusted-execution-clusters/{name}" for registry, name in (
        ("ghcr.io", "tec-operator"), ("ghcr.io", "tec-compute-pcrs"),
        ("quay.io", "key-broker-service")))
    digest = "sha256:" + "0" * 64
    with open(tmp_path / "k8s" / "kustomization.yaml", "a", encoding="utf-8") as f:
        f.write("images: " + json.dumps([
            {"name": operator, "newName": "r.example:5000/op"},
            {"name": pcrs, "newName": "r.example/pcrs", "newTag": "9"},
            {"name": trustee, "digest": digest}]) + "\n")
    text = subprocess.run(["kubectl", "kustomize", str(tmp_path / "k8s")], check=True,
                          capture_output=True, text=True, timeout=60).stdout
    images = dict(re.findall(r"- name: (RELATED_IMAGE_\w+)\n *value: (\S+)", text))
    tag = re.search(r"image: r.example:5000/op:(\S+)", text).group(1)
    assert images == {
        "RELATED_IMAGE_TRUSTEE": f"{trustee}@{digest}",
        "RELATED_IMAGE_COMPUTE_PCRS": "r.example/pcrs:9",
        **{f"RELATED_IMAGE_{n}": f"r.example:5000/op:{tag}"
           for n in ("OPERATOR", "REGISTRATION_SERVER", "ATTESTATION_KEY_REGISTER")}}


def test_samples_are_accepted(installed):
    samples = installed.read_manifests(os.path.join(TOP, "k8s", "samples"))
    assert sorted(o["kind"] for o in samples) == [
        "ApprovedImage", "Machine", "TrustedExecutionCluster"]
    for o in samples:
        o["metadata"]["namespace"] = OUR_NS
        kind = next(k for k, v in KINDS.items() if v[0] == o["kind"])
        status, body = installed.api(
            "POST", url(kind, OUR_NS, query="?dryRun=All&fieldValidation=Strict"), o)
        assert status == 201, body
