# SPDX-License-Identifier: MIT
"""Trustee by KbsConfig and TrusteeConfig on a real control plane: the walkthrough "Deploy Trustee in Kubernetes" with its
commands unchanged, HEAD's layout, what is missing, what changes, and the way out."""

import base64
import datetime
import http.client
import json
import os
import shutil
import socket
import ssl
import subprocess
import time

import pytest

import softtpm
from controlplane import TOP, wait_for
from guarded import Evidence, attest_body, binding
from kbsconfigs import (GROUP, PATIENCE, configmap, deployment, head, make, operator, place, plane, remove, rights,  # noqa: F401
                        secret, until, url, CURRENT)
from kubelet import Refused
from spine import condition
from test_attest import Jwk, set_policies
from trusteepod import TrusteePod

WALKTHROUGH = os.path.join(TOP, "tests", "data", "trustee-walkthrough.sh")
FINALIZER = f"kbsconfig.{GROUP}/finalizer"


# The client of the walkthrough

class Client:
    """kbs-client's part: attests, and gets a resource, from kbs-service by its certificate."""

    def __init__(self, port, certificate, tpm, directory):
        self.port, self.context = port, ssl.create_default_context(cafile=certificate)
        self.evidence = Evidence(tpm)
        self.key = Jwk(directory, {"kty": "EC", "crv": "P-256"}, "ECDH-ES+A256KW")
        self.cookie = None

    def ask(self, method, path, body=None):
        context = self.context

        class Named(http.client.HTTPSConnection):
            def connect(self):
                self.sock = context.wrap_socket(socket.create_connection((self.host, self.port)),
                                                server_hostname="kbs-service")

        conn = Named("127.0.0.1", self.port, timeout=20)
        try:
            conn.request(method, path, json.dumps(body) if body else None,
                         {"Cookie": self.cookie} if self.cookie else {})
            answer = conn.getresponse()
            if answer.headers["Set-Cookie"]:
                self.cookie = answer.headers["Set-Cookie"].partition(";")[0]
            return answer.status, answer.read()
        finally:
            conn.close()

    def attest(self):
        status, body = self.ask("POST", "/kbs/v0/auth", {"version": "0.4.0", "tee": "tpm", "extra-params": {}})
        assert status == 200, body
        nonce = json.loads(body)["nonce"]
        quote = self.evidence.quote(binding(nonce, key=self.key.public)[:32])
        status, body = self.ask("POST", "/kbs/v0/attest", attest_body(nonce, quote, key=self.key.public))
        assert status == 200, body

    def get_resource(self, path):
        status, body = self.ask("GET", f"/kbs/v0/resource/{path}")
        assert status == 200, body
        return base64.b64encode(self.key.open(body)).decode()


def run_walkthrough(plane, directory):
    kubeconfig = os.path.join(directory, "kubeconfig")
    shutil.copy(plane.admin_kubeconfig, kubeconfig)
    done = subprocess.run(["bash", "-e", WALKTHROUGH], cwd=directory, env={**os.environ, "KUBECONFIG": kubeconfig},
                          capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return done


@pytest.mark.skipif(softtpm.missing() is not None or not shutil.which("jose"), reason="a software TPM and jose")
@pytest.mark.parametrize("place", ["operators"], indirect=True)
def test_the_walkthrough(plane, place, operator, start_kbs, tpm, tmp_path):
    """Its commands word for word; it ends with the resource. The project's broker has no engine for policies
    and refuses the text's: it is given the operator's shared ones in its place, and a client with a TPM."""
    operator(place)
    done = run_walkthrough(plane, str(tmp_path))
    assert "kbsconfig.confidentialcontainers.org/kbsconfig-sample created" in done.stdout
    until(plane, place, "kbsconfig-sample", "Installed", "Installed")
    pod = TrusteePod(plane, place, str(tmp_path)).run()

    kbsconfig = until(plane, place, "kbsconfig-sample", "Ready", "Ready")
    assert kbsconfig["status"]["isReady"] is True
    template = deployment(plane, place)["spec"]["template"]["spec"]
    assert template["containers"][0]["image"].endswith("key-broker-service:built-in-as-v0.11.0")
    assert template["containers"][0]["readinessProbe"]["tcpSocket"] == {"port": 8080}
    # Each YAML of the text, unchanged, is where its kbs-config.toml says.
    assert pod.read("/opt/confidential-containers/opa/policy.rego") == b"package policy default allow = true"
    assert pod.read("/opt/confidential-containers/rvps/reference-values/reference-values.json") == b"[\n]\n"
    assert pod.resources() == {"default/kbsres1/key1": b"res1val1", "default/kbsres1/key2": b"res1val2"}
    assert pod.files("/etc/auth-secret") == {"publicKey"}
    out = plane.kubectl("get", "service", "kbs-service", "-n", place, "-o",
                        "jsonpath={.spec.type} {.spec.ports[0].port} {.spec.selector.app}")
    assert out == "ClusterIP 8080 kbs"

    signer = tmp_path / "signer.pem"
    subprocess.run(["openssl", "genpkey", "-algorithm", "EC", "-pkeyopt", "ec_paramgen_curve:P-256", "-out", signer],
                   check=True, capture_output=True)
    broker = pod.start_broker(start_kbs, str(tmp_path / "privateKey"), signer=signer,
                              policies=os.path.join(TOP, "etc"))
    client = Client(broker.port, str(tmp_path / "https.crt"), tpm, str(tmp_path))
    set_policies(broker, "tpm-shared.rego", "resource-shared.rego")
    pcrs = client.evidence.pcrs()
    broker.set_values({"trusted_aks": [client.evidence.ak_public], "tpm_pcr4": [pcrs[4]],
                       "tpm_pcr14": [pcrs[14]]})
    client.attest()
    printed = client.get_resource("default/kbsres1/key1")
    assert printed == "cmVzMXZhbDE="
    assert base64.b64decode(printed) == b"res1val1"

    plane.kubectl("delete", "kbsconfig", "kbsconfig-sample", "-n", place, "--timeout=60s")
    assert plane.api("GET", f"/apis/apps/v1/namespaces/{place}/deployments/trustee-deployment")[0] == 404
    assert plane.api("GET", f"/api/v1/namespaces/{place}/services/kbs-service")[0] == 404


# HEAD

def test_heads_sample(plane, place, operator, tmp_path):
    operator(place)
    head(plane, place, KbsDeploymentSpec={"replicas": 2})
    until(plane, place, "kbsconfig-sample", "Installed", "Installed")
    until(plane, place, "kbsconfig-sample", "Ready", "Starting", "0 of 2")
    d = deployment(plane, place)
    assert d["spec"]["replicas"] == 2
    assert d["metadata"]["ownerReferences"][0]["kind"] == "KbsConfig"
    pod = TrusteePod(plane, place, str(tmp_path)).run()
    assert pod.container["env"] == [{"name": "RUST_LOG", "value": "debug"}]
    assert pod.container["readinessProbe"]["httpGet"] == {"path": "/healthz", "port": 8080, "scheme": "HTTP"}
    assert pod.files("/etc/kbs/snp/ek") == {"vcek.crt"}
    assert pod.files("/etc/auth-secret") == {"publicKey"}, "the private key stays out of the Pod"
    storage = "/opt/confidential-containers/storage"
    assert pod.read(f"{storage}/kbs/resource-policy.rego").startswith(b"package policy")
    assert pod.read(f"{storage}/attestation_service_policy/default_cpu.rego") == b"package policy\n"
    assert pod.read(f"{storage}/local_json/reference_value") == b"{}\n"
    assert pod.files(f"{storage}/repository") == {"default\\x2Fattestation-status\\x2Fstatus"}
    assert pod.resources() == {"default/attestation-status/status": b"success"}
    until(plane, place, "kbsconfig-sample", "Ready", "Starting", "1 of 2")
    for one in pod.pods():
        pod.tell_ready(one["metadata"]["name"])
    o = until(plane, place, "kbsconfig-sample", "Ready", "Ready")
    assert o["status"]["isReady"] is True and FINALIZER in o["metadata"]["finalizers"]
    pod.tell_ready(pod.pods()[0]["metadata"]["name"], False)
    assert until(plane, place, "kbsconfig-sample", "Ready", "Starting", "1 of 2")["status"]["isReady"] is False


def content_hash(plane, ns):
    return deployment(plane, ns)["spec"]["template"]["metadata"]["annotations"][
        "trusted-execution-clusters.io/content-hash"]


def at_rest(plane, ns):
    """Nothing was written for 3 s: what is made of the last change may come late on a slow machine."""
    user, marks = f"system:serviceaccount:{ns}:tec-operator", []

    def quiet():
        marks.append(plane.audit.mark())
        return len(marks) > 1 and not plane.audit.writes_by(user, marks[-2], ignore=("leases",))
    wait_for(quiet, PATIENCE, "no more writes", 3)


def test_pods_that_do_not_start_are_not_ready(plane, place, operator, tmp_path):
    """The earlier Pod serves on, with what was configured before; status says that it is not what is configured now."""
    operator(place)
    head(plane, place)
    until(plane, place, "kbsconfig-sample", "Ready", "Starting", "0 of 1 Pods are ready. If this persists, see kubectl logs")
    TrusteePod(plane, place, str(tmp_path)).run()
    assert until(plane, place, "kbsconfig-sample", "Ready", "Ready")["status"]["isReady"] is True
    toml = CURRENT.replace("authorization_mode =", "type =")
    configmap(plane, place, "kbs-config", **{"kbs-config.toml": toml})
    o = until(plane, place, "kbsconfig-sample", "Ready", "RollingOut", "a Trustee before v0.21")
    assert o["status"]["isReady"] is False
    d = deployment(plane, place)
    assert d["status"]["readyReplicas"] == 1 and d["status"]["replicas"] == 2
    assert set(d["spec"]["template"]["spec"]["containers"][0]["readinessProbe"]) >= {"tcpSocket"}
    TrusteePod(plane, place, str(tmp_path / "again")).run()
    assert until(plane, place, "kbsconfig-sample", "Ready", "Ready")["status"]["isReady"] is True


def test_the_guard_by_annotation(plane, place, operator):
    """It has Trustee's port as long as the annotation is there; Trustee itself has to be out of reach."""
    operator(place)
    head(plane, place, kind={"annotations": {"trusted-execution-clusters.io/trustee-guard": "tpm"}})
    until(plane, place, "kbsconfig-sample", "Installed", "InputInvalid", '["127.0.0.1:8081"]')
    configmap(plane, place, "kbs-config", **{"kbs-config.toml": CURRENT.replace("0.0.0.0:8080", "127.0.0.1:8081")})
    until(plane, place, "kbsconfig-sample", "Installed", "Installed")
    kbs, guard = deployment(plane, place)["spec"]["template"]["spec"]["containers"]
    assert (guard["name"], guard["ports"][0]["containerPort"]) == ("guard", 8080)
    assert "--upstream=http://127.0.0.1:8081" in guard["args"] and "--tee=tpm" in guard["args"]
    assert "ports" not in kbs and kbs["livenessProbe"]["httpGet"]["port"] == 8083
    service = f"/api/v1/namespaces/{place}/services/kbs-service"
    assert plane.get(service)["spec"]["ports"][0]["targetPort"] == 8080
    change(plane, url(place, "kbsconfig-sample"),
           {"metadata": {"annotations": {"trusted-execution-clusters.io/trustee-guard": None}}})
    wait_for(lambda: len(deployment(plane, place)["spec"]["template"]["spec"]["containers"]) == 1, PATIENCE, "no guard")
    wait_for(lambda: plane.get(service)["spec"]["ports"][0]["targetPort"] == 8081, PATIENCE, "Trustee's own port")
    (kbs,) = deployment(plane, place)["spec"]["template"]["spec"]["containers"]
    assert kbs["ports"][0]["containerPort"] == 8081 and "startupProbe" not in kbs


def test_what_rolls_pods_and_what_does_not(plane, place, operator, tmp_path):
    op = operator(place)
    head(plane, place)
    until(plane, place, "kbsconfig-sample", "Installed", "Installed")
    pod = TrusteePod(plane, place, str(tmp_path)).run()
    until(plane, place, "kbsconfig-sample", "Ready", "Ready")
    first = deployment(plane, place)
    # The value of a resource: the Pod that runs sees it, nothing is rolled out.
    secret(plane, place, "attestation-status", {"status": "changed"})
    pod.lay_out()
    assert pod.resources() == {"default/attestation-status/status": b"changed"}
    # What is read at the start: another Pod.
    configmap(plane, place, "resource-policy", **{"resource-policy.rego": "package policy\ndefault allow = false\n"})
    wait_for(lambda: content_hash(plane, place) !=
             first["spec"]["template"]["metadata"]["annotations"]["trusted-execution-clusters.io/content-hash"],
             PATIENCE, "another hash")
    pod.run()
    until(plane, place, "kbsconfig-sample", "Ready", "Ready")
    assert b"allow = false" in pod.read("/opt/confidential-containers/storage/kbs/resource-policy.rego")
    # Foreign annotations stay: rollout restart.
    plane.kubectl("rollout", "restart", "deployment/trustee-deployment", "-n", place)
    now = content_hash(plane, place)
    secret(plane, place, "kbs-auth-public-key", {"publicKey": "another"})
    wait_for(lambda: content_hash(plane, place) != now, PATIENCE, "another hash")
    assert "kubectl.kubernetes.io/restartedAt" in deployment(plane, place)["spec"]["template"]["metadata"]["annotations"]
    assert op.alive()


def test_a_deleted_or_changed_object_is_repaired_and_labels_stay(plane, place, operator):
    operator(place)
    head(plane, place)
    until(plane, place, "kbsconfig-sample", "Installed", "Installed")
    path = f"/api/v1/namespaces/{place}/services/kbs-service"
    plane.api("PATCH", path, {"metadata": {"labels": {"theirs": "1"}}, "spec": {
        "sessionAffinity": "ClientIP", "selector": {"app": "other"}}}, "application/merge-patch+json")
    wait_for(lambda: plane.get(path)["spec"]["selector"] == {"app": "kbs"}, PATIENCE, "the selector")
    service = plane.get(path)
    assert service["metadata"]["labels"]["theirs"] == "1" and service["spec"]["sessionAffinity"] == "ClientIP"
    assert plane.api("DELETE", path)[0] == 200
    wait_for(lambda: plane.api("GET", path)[0] == 200, PATIENCE, "the Service again")


# What is missing

def test_what_is_missing_is_named_and_waited_for(plane, place, operator, tmp_path):
    operator(place)
    make(plane, place, "k", kbsConfigMapName="kbs-config", kbsAuthSecretName="auth", kbsSecretResources=["r"])
    until(plane, place, "k", "Installed", "InputMissing", "ConfigMap kbs-config, which spec.kbsConfigMapName names, does not exist")
    configmap(plane, place, "kbs-config", other="x")
    until(plane, place, "k", "Installed", "InputMissing", "has no key kbs-config.toml")
    configmap(plane, place, "kbs-config", **{"kbs-config.toml": "[admin"})
    until(plane, place, "k", "Installed", "InputMissing", "Secret auth")
    secret(plane, place, "auth", {"publicKey": "p"})
    until(plane, place, "k", "Installed", "InputMissing", "Secret r, which spec.kbsSecretResources names")
    secret(plane, place, "r", {"k": "v"})
    until(plane, place, "k", "Installed", "InputInvalid", "line 1: unterminated table name")
    configmap(plane, place, "kbs-config", **{"kbs-config.toml": CURRENT.replace("publicKey", "kbs.pem")})
    until(plane, place, "k", "Installed", "InputMissing", "Secret auth has no key kbs.pem, which kbs-config.toml names")
    assert plane.api("GET", f"/apis/apps/v1/namespaces/{place}/deployments/trustee-deployment")[0] == 404
    secret(plane, place, "auth", {"kbs.pem": "p"})
    until(plane, place, "k", "Installed", "Installed")
    # What is installed stays while an input is away.
    remove(plane, place, "secrets", "r")
    until(plane, place, "k", "Installed", "InputMissing", "Secret r")
    assert deployment(plane, place)["metadata"].get("deletionTimestamp") is None
    pod = TrusteePod(plane, place, str(tmp_path)).run()
    assert pod.resources() == {}
    with pytest.raises(Refused):
        remove(plane, place, "secrets", "auth")
        pod.lay_out()


def test_one_kbsconfig_counts_in_a_namespace(plane, place, operator):
    operator(place)
    head(plane, place, "first")
    until(plane, place, "first", "Installed", "Installed")
    make(plane, place, "second", kbsConfigMapName="kbs-config")
    second = until(plane, place, "second", "Installed", "Conflict", "KbsConfig first already runs the only Trustee")
    assert FINALIZER not in second["metadata"].get("finalizers", [])
    assert second["status"]["isReady"] is False
    assert plane.api("DELETE", url(place, "second"))[0] == 200
    assert deployment(plane, place)["metadata"].get("deletionTimestamp") is None, "the first one's"
    make(plane, place, "third", kbsConfigMapName="kbs-config")
    until(plane, place, "third", "Installed", "Conflict")
    plane.kubectl("delete", "kbsconfig", "first", "-n", place, "--timeout=60s")
    third = until(plane, place, "third", "Installed", "Installed")
    assert deployment(plane, place)["metadata"]["ownerReferences"][0]["uid"] == third["metadata"]["uid"]


def test_another_owners_deployment_is_not_touched(plane, place, operator):
    configmap(plane, place, "theirs")
    theirs = plane.get(f"/api/v1/namespaces/{place}/configmaps/theirs")
    labels = {"app": "other"}
    status, answer = plane.api("POST", f"/apis/apps/v1/namespaces/{place}/deployments", {
        "metadata": {"name": "trustee-deployment", "ownerReferences": [{
            "apiVersion": "v1", "kind": "ConfigMap", "name": "theirs", "uid": theirs["metadata"]["uid"],
            "controller": True}]},
        "spec": {"replicas": 0, "selector": {"matchLabels": labels}, "template": {
            "metadata": {"labels": labels}, "spec": {"containers": [{"name": "c", "image": "i"}]}}}})
    assert status == 201, answer
    operator(place)
    head(plane, place)
    until(plane, place, "kbsconfig-sample", "Installed", "Conflict", "Deployment trustee-deployment belongs to another owner")
    assert deployment(plane, place)["metadata"]["generation"] == answer["metadata"]["generation"]
    plane.kubectl("delete", "kbsconfig", "kbsconfig-sample", "-n", place, "--timeout=60s")
    assert deployment(plane, place)["metadata"]["uid"] == answer["metadata"]["uid"]


# At rest

def test_a_restart_writes_nothing(plane, place, operator, tmp_path):
    op = operator(place)
    head(plane, place)
    until(plane, place, "kbsconfig-sample", "Installed", "Installed")
    TrusteePod(plane, place, str(tmp_path)).run()
    before = until(plane, place, "kbsconfig-sample", "Ready", "Ready")
    since = plane.audit.mark()
    op.kill9()
    op.start()
    user = f"system:serviceaccount:{place}:tec-operator"
    wait_for(lambda: "controller of KbsConfigs starts" in op.log_text().rpartition("tec-operator starts")[2],
             PATIENCE, "the controller")
    configmap(plane, place, "unrelated", a="b")  # its watch event comes after all that the start caused
    wait_for(lambda: plane.audit.count(user, since) > 5, PATIENCE, "requests")
    secret(plane, place, "kbs-auth-public-key", {"publicKey": "public", "privateKey": "private"})
    assert not plane.audit.writes_by(user, since, ignore=("leases", "events"))
    assert plane.get(url(place, "kbsconfig-sample"))["metadata"]["resourceVersion"] == \
        before["metadata"]["resourceVersion"]


def test_without_the_kind_the_operator_waits(plane, ns, start_operator):
    """The rights of k8s/ alone: it is not asked for what it may not read."""
    op = start_operator(ns)
    assert "kbsconfigs" not in op.log_text()


# TrusteeConfig

CHILDREN = {"configmaps": ["kbs-config", "resource-policy", "rvps-reference-values", "attestation-policy-cpu",
                           "attestation-policy-gpu"], "secrets": ["auth-secret"]}
COPIES = {"https-key-secret": "privateKey", "https-cert-secret": "certificate", "attestation-key-secret": "token.key",
          "attestation-cert-secret": "token.crt"}


def trusteeconfig(plane, ns, name, **spec):
    status, answer = plane.api("POST", url(ns, None, "trusteeconfigs"), {
        "apiVersion": f"{GROUP}/v1alpha1", "kind": "TrusteeConfig", "metadata": {"name": name}, "spec": spec})
    assert status == 201, answer
    return answer


def change(plane, path, patch):
    status, answer = plane.api("PATCH", path, patch, "application/merge-patch+json")
    assert status == 200, answer
    return answer


def configured(plane, ns, name, reason="Configured", says=""):
    return until(plane, ns, name, "Configured", reason, says, "trusteeconfigs")


def core(ns, kind, name):
    return f"/api/v1/namespaces/{ns}/{kind}/{name}"


def toml_of(plane, ns, name):
    return plane.get(core(ns, "configmaps", f"{name}-kbs-config"))["data"]["kbs-config.toml"]


def tls_secret(plane, ns, name, directory, kind="ec"):
    """Of type kubernetes.io/tls, as cert-manager makes it; the same name again is a renewal."""
    new = ["-newkey", "rsa:2048"] if kind == "rsa" else ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256"]
    files = [os.path.join(directory, f"{name}.{end}") for end in ("key", "crt")]
    subprocess.run(["openssl", "req", "-x509", *new, "-nodes", "-keyout", files[0], "-out", files[1], "-subj",
                    "/CN=kbs-service", "-addext", "subjectAltName=DNS:kbs-service", "-days", "2"],
                   check=True, capture_output=True)
    values = {}
    for key, file in zip(("tls.key", "tls.crt"), files):
        with open(file, "rb") as f:
            values[key] = base64.b64encode(f.read()).decode()
    if plane.api("GET", core(ns, "secrets", name))[0] == 200:
        change(plane, core(ns, "secrets", name), {"data": values})
    else:
        status, answer = plane.api("POST", f"/api/v1/namespaces/{ns}/secrets", {
            "metadata": {"name": name}, "type": "kubernetes.io/tls", "data": values})
        assert status == 201, answer
    return values


def test_a_permissive_trusteeconfig(plane, place, operator, tmp_path):
    """Everything is made, becomes ready, comes back when it is deleted, and stays when it is edited."""
    op = operator(place)
    made = trusteeconfig(plane, place, "t", profileType="Permissive", kbsServiceType="ClusterIP")
    configured(plane, place, "t")
    for kind, names in CHILDREN.items():
        for name in names:
            assert plane.get(core(place, kind, f"t-{name}"))["metadata"]["ownerReferences"][0]["uid"] == \
                made["metadata"]["uid"]
    auth = plane.get(core(place, "secrets", "t-auth-secret"))
    assert {f"app.kubernetes.io/{k}": v for k, v in {
        "managed-by": "trustee-operator", "part-of": "trustee", "instance": "t", "component": "auth"}.items()} == \
        auth["metadata"]["labels"]
    assert set(auth["data"]) == {"privateKey", "publicKey"}
    until(plane, place, "t-kbs-config", "Installed", "Installed")
    pod = TrusteePod(plane, place, str(tmp_path)).run()
    o = until(plane, place, "t", "Ready", "Ready", plural="trusteeconfigs")
    assert o["status"]["isReady"] is True
    assert o["status"]["statusDescription"] == "TrusteeConfig is ready and KbsConfig is deployed successfully"
    assert o["status"]["kbsConfigRef"] == {"apiVersion": f"{GROUP}/v1alpha1", "kind": "KbsConfig",
                                           "name": "t-kbs-config", "namespace": place}
    assert pod.toml()["http_server"]["insecure_http"] is True
    assert pod.container["env"] == [{"name": "RUST_LOG", "value": "debug"}]
    assert pod.resources() == {"default/attestation-status/status": b"success"}
    assert pod.files("/etc/auth-secret") == set(), "DenyAll needs no key"
    # Children that are deleted come back; the edited policy and the user's fields of the KbsConfig stay.
    policy = "package policy\ndefault allow = false\n"
    change(plane, core(place, "configmaps", "t-resource-policy"), {"data": {"resource-policy.rego": policy}})
    change(plane, url(place, "t-kbs-config"), {"spec": {
        "KbsDeploymentSpec": {"replicas": 2}, "KbsEnvVars": {"RUST_LOG": "info", "MINE": "1"},
        "kbsSecretResources": ["attestation-status", "t-auth-secret"], "kbsHttpsKeySecretName": "wrong"}})
    remove(plane, place, "configmaps", "t-kbs-config")
    remove(plane, place, "secrets", "t-auth-secret")
    wait_for(lambda: plane.api("GET", core(place, "configmaps", "t-kbs-config"))[0] == 200, PATIENCE, "the ConfigMap")
    wait_for(lambda: plane.api("GET", core(place, "secrets", "t-auth-secret"))[0] == 200, PATIENCE, "the Secret")
    again = plane.get(core(place, "secrets", "t-auth-secret"))
    assert again["metadata"]["labels"] == auth["metadata"]["labels"] and again["data"] != auth["data"]
    wait_for(lambda: "kbsHttpsKeySecretName" not in plane.get(url(place, "t-kbs-config"))["spec"], PATIENCE, "our field")
    spec = plane.get(url(place, "t-kbs-config"))["spec"]
    assert spec["KbsDeploymentSpec"] == {"replicas": 2} and spec["KbsEnvVars"] == {"RUST_LOG": "info", "MINE": "1"}
    assert spec["kbsSecretResources"] == ["attestation-status", "t-auth-secret"]
    # At rest: a restart writes nothing.
    configured(plane, place, "t")
    at_rest(plane, place)
    since = plane.audit.mark()
    op.kill9()
    op.start()
    remove(plane, place, "configmaps", "t-rvps-reference-values")  # what it does of this comes after the start
    wait_for(lambda: plane.api("GET", core(place, "configmaps", "t-rvps-reference-values"))[0] == 200, PATIENCE, "values")
    writes = plane.audit.writes_by(f"system:serviceaccount:{place}:tec-operator", since,
                                   ignore=("leases", "events"))
    others = [w for w in writes if w["objectRef"].get("subresource") != "status"
              and w["objectRef"].get("name") != "t-rvps-reference-values"]
    assert [(w["verb"], w["objectRef"]) for w in others] == []
    assert plane.get(core(place, "configmaps", "t-resource-policy"))["data"]["resource-policy.rego"] == policy


def test_a_restricted_trusteeconfig(plane, place, operator, tmp_path):
    """Its Secrets are waited for by name, copied and followed; TLS settings go into an edited file."""
    operator(place)
    trusteeconfig(plane, place, "r", profileType="Restricted")
    configured(plane, place, "r", "InputMissing", "needs spec.httpsSpec.tlsSecretName")
    mine = url(place, "r", "trusteeconfigs")
    change(plane, mine, {"spec": {"httpsSpec": {"tlsSecretName": "https"},
                                  "attestationTokenVerificationSpec": {"tlsSecretName": "token"}}})
    configured(plane, place, "r", "InputMissing", "Secret https, which spec.httpsSpec.tlsSecretName names")
    first = tls_secret(plane, place, "https", tmp_path, "rsa")
    configured(plane, place, "r", "InputMissing", "Secret token")
    assert plane.api("GET", url(place, "r-kbs-config"))[0] == 404, "no Pod that crashes"
    tls_secret(plane, place, "token", tmp_path)
    configured(plane, place, "r")
    for name, key in COPIES.items():
        copy = plane.get(core(place, "secrets", f"r-{name}"))
        assert set(copy["data"]) == {key}
        assert copy["metadata"]["labels"]["app.kubernetes.io/component"] == name.split("-")[0]
    assert 'tls_profile = "intermediate"' in toml_of(plane, place, "r")
    until(plane, place, "r-kbs-config", "Installed", "Installed")
    pod = TrusteePod(plane, place, str(tmp_path / "pod")).run()
    toml = pod.toml()
    assert "env" not in pod.container and pod.container["readinessProbe"]["httpGet"]["scheme"] == "HTTPS"
    assert base64.b64encode(pod.read(toml["http_server"]["private_key"])).decode() == first["tls.key"]
    assert pod.read(toml["attestation_token"]["trusted_certs_paths"][0]) == \
        pod.read(toml["attestation_service"]["attestation_token_broker"]["signer"]["cert_path"])
    # A renewed certificate is copied and rolls Pods.
    before, generation = content_hash(plane, place), deployment(plane, place)["metadata"]["generation"]
    renewed = tls_secret(plane, place, "https", tmp_path, "rsa")
    def copied():
        status, copy = plane.api("GET", core(place, "secrets", "r-https-cert-secret"))
        return status == 200 and copy["data"]["certificate"] == renewed["tls.crt"]
    wait_for(copied, PATIENCE, "the copy of the new certificate")
    wait_for(lambda: content_hash(plane, place) != before, PATIENCE, "a rollout")
    configured(plane, place, "r")
    at_rest(plane, place)
    assert deployment(plane, place)["metadata"]["generation"] == generation + 1, "a Pod with the new key and the old certificate"
    # An edited file gets the TLS settings and is kept otherwise.
    edited = toml_of(plane, place, "r").replace("worker_count = 4", "worker_count = 7 # mine")
    change(plane, core(place, "configmaps", "r-kbs-config"), {"data": {"kbs-config.toml": edited}})
    change(plane, mine, {"spec": {"tlsConfig": {
        "profile": "custom", "minVersion": "1.2", "ciphers": ["TLS_DHE_RSA_WITH_AES_128_CBC_SHA", "AES256-GCM-SHA384"]}}})
    wait_for(lambda: "custom" in toml_of(plane, place, "r"), PATIENCE, "the TLS settings")
    assert toml_of(plane, place, "r") == edited.replace("intermediate", "custom").replace(
        'tls_profile = "custom"\n', 'tls_profile = "custom"\ntls_min_version = "1.2"\n'
        'tls_ciphers = "DHE-RSA-AES128-SHA:AES256-GCM-SHA384"\n')
    change(plane, mine, {"spec": {"tlsConfig": {"ciphers": ["TLS_TYPO"]}}})
    configured(plane, place, "r", "InvalidSpec", "spec.tlsConfig.ciphers contains a name unknown to OpenSSL")
    # What does not fit the edited file is not done: Trustee goes on.
    change(plane, mine, {"spec": {"profileType": "Permissive", "httpsSpec": None, "tlsConfig": None}})
    configured(plane, place, "r", "Edited", "the file sets HTTPS, but spec.httpsSpec is not set")
    assert plane.get(url(place, "r-kbs-config"))["spec"]["kbsHttpsKeySecretName"] == "r-https-key-secret"
    remove(plane, place, "configmaps", "r-kbs-config")
    configured(plane, place, "r")
    assert "insecure_http = true" in toml_of(plane, place, "r")
    assert plane.api("GET", core(place, "secrets", "r-https-key-secret"))[0] == 404
    assert "data.plugin" in plane.get(core(place, "configmaps", "r-resource-policy"))["data"]["resource-policy.rego"]
    wait_for(lambda: deployment(plane, place)["spec"]["template"]["spec"]["containers"][0].get("env"), PATIENCE, "env")
    pod.run()
    assert pod.container["env"] == [{"name": "RUST_LOG", "value": "debug"}]
    until(plane, place, "r-kbs-config", "Ready", "Ready")
    # Deleted: the garbage collector takes the children, the KbsConfig its Deployment.
    plane.kubectl("delete", "trusteeconfig", "r", "-n", place, "--timeout=60s")
    wait_for(lambda: plane.api("GET", url(place, "r-kbs-config"))[0] == 404, PATIENCE, "no KbsConfig")
    assert plane.api("GET", f"/apis/apps/v1/namespaces/{place}/deployments/trustee-deployment")[0] == 404


def test_a_change_of_profile_is_one_rollout(plane, place, operator, tmp_path):
    """Written object by object; and what cannot be followed is told, while Trustee goes on."""
    operator(place)
    tls_secret(plane, place, "https", tmp_path, "rsa")
    trusteeconfig(plane, place, "p", profileType="Permissive")
    mine = url(place, "p", "trusteeconfigs")

    def generation():
        """Of the Deployment, when both objects are followed."""
        for plural, name, type_ in (("trusteeconfigs", "p", "Configured"), ("kbsconfigs", "p-kbs-config", "Installed")):
            def followed(plural=plural, name=name, type_=type_):
                status, o = plane.api("GET", url(place, name, plural))
                c = condition(o, type_) if status == 200 and "status" in o else {}
                return c.get("status") == "True" and c["observedGeneration"] == o["metadata"]["generation"]
            wait_for(followed, PATIENCE, f"{name} {type_}")
        return deployment(plane, place)["metadata"]["generation"]
    first = generation()
    TrusteePod(plane, place, str(tmp_path)).run()
    until(plane, place, "p", "Ready", "Ready", plural="trusteeconfigs")
    change(plane, mine, {"spec": {"profileType": "Restricted", "httpsSpec": {"tlsSecretName": "https"},
                                  "attestationTokenVerificationSpec": {"tlsSecretName": "token"}}})
    o = until(plane, place, "p", "Ready", "NotConfigured", plural="trusteeconfigs")
    assert o["status"]["isReady"] is False and "Secret token, which" in o["status"]["statusDescription"], o
    assert plane.get(url(place, "p-kbs-config"))["status"]["isReady"] is True
    assert deployment(plane, place)["metadata"]["generation"] == first
    tls_secret(plane, place, "token", tmp_path)
    assert generation() == first + 1
    pod = TrusteePod(plane, place, str(tmp_path)).run()
    assert pod.files("/etc/https-key") and pod.files("/etc/attestation-cert") and "env" not in pod.container
    o = until(plane, place, "p", "Ready", "Ready", plural="trusteeconfigs")
    assert o["status"]["statusDescription"] == "TrusteeConfig is ready and KbsConfig is deployed successfully"
    change(plane, mine, {"spec": {"profileType": "Permissive", "httpsSpec": None, "attestationTokenVerificationSpec": None}})
    assert generation() == first + 2


def test_ibm_secure_execution(plane, place, operator):
    operator(place)
    trusteeconfig(plane, place, "se", profileType="Permissive", ibmSE={"pvName": f"{place}-volume"})
    configured(plane, place, "se")
    claim = core(place, "persistentvolumeclaims", "se-ibmse-certstore-pvc")
    spec = plane.get(claim)["spec"]
    assert (spec["volumeName"], spec["accessModes"], spec["storageClassName"]) == (f"{place}-volume", ["ReadOnlyMany"], "")
    assert "se.image_phkh" in plane.get(core(place, "configmaps", "se-resource-policy"))["data"]["resource-policy.rego"]
    assert plane.get(url(place, "se-kbs-config"))["spec"]["ibmSEConfigSpec"] == {"certStorePvc": "se-ibmse-certstore-pvc"}
    mine = url(place, "se", "trusteeconfigs")
    change(plane, mine, {"spec": {"ibmSE": {"pvName": "another"}}})
    configured(plane, place, "se", "Conflict", "uses volume")
    change(plane, mine, {"spec": {"ibmSE": None}})
    configured(plane, place, "se")
    after = plane.get(url(place, "se-kbs-config"))["spec"]
    assert "certStorePvc" not in after.get("ibmSEConfigSpec", {})
    assert "se.image_phkh" not in plane.get(core(place, "configmaps", "se-resource-policy"))["data"]["resource-policy.rego"]
    assert after["kbsGpuAttestationPolicyConfigMapName"] == "se-attestation-policy-gpu"
    def going():
        status, o = plane.api("GET", claim)
        return status == 404 or "deletionTimestamp" in o["metadata"]
    wait_for(going, PATIENCE, "the claim goes")


# The Trustee operator

LEASE = "178dc119.confidentialcontainers.org"


def lease(plane, ns, holder):
    """Its Lease, held by that one, "" for nobody; as client-go writes it."""
    path = f"/apis/coordination.k8s.io/v1/namespaces/{ns}/leases"
    now = datetime.datetime.now(datetime.timezone.utc).strftime("%Y-%m-%dT%H:%M:%S.%fZ")
    spec = {"holderIdentity": holder, "leaseDurationSeconds": 15 if holder else 1, "acquireTime": now, "renewTime": now,
            "leaseTransitions": 0}
    if plane.api("GET", f"{path}/{LEASE}")[0] == 200:
        return change(plane, f"{path}/{LEASE}", {"spec": spec})
    status, answer = plane.api("POST", path, {"metadata": {"name": LEASE}, "spec": spec})
    assert status == 201, answer
    return answer


def test_the_lease_that_the_trustee_operator_left(plane, place, operator):
    """It ends without releasing it: the time since its last renewal counts, by the stamps of a real API server."""
    holder = "trustee-operator-controller-manager-1_u"
    head(plane, place)

    def stamp():
        return lease(plane, place, holder)["metadata"]["managedFields"][0]["time"]
    made = stamp()
    wait_for(lambda: stamp() > made, PATIENCE, "a renewal has another time", 0.2)
    ended = time.monotonic()
    wait_for(lambda: time.monotonic() - ended > 10, 12, "ten seconds without an operator")
    started = time.monotonic()
    op = operator(place)
    path = f"/apis/coordination.k8s.io/v1/namespaces/{place}/leases/{LEASE}"
    wait_for(lambda: plane.get(path)["spec"]["holderIdentity"] != holder, 20, "the Lease is taken", 0.1)
    assert 6 <= time.monotonic() - started < 13
    until(plane, place, "kbsconfig-sample", "Installed", "Installed")
    said, = (line for line in op.log_text().splitlines() if "waiting for the Lease" in line)
    assert holder in said and "expires=" in said
    # By this name, replicas know their own Lease, and wait for it in full.
    assert "tec-operator" in {e["manager"] for e in plane.get(path)["metadata"]["managedFields"]}


def its_deployment(plane, ns, owner):
    """What the Trustee operator makes of head(), as far as it matters: owner, selector, init container."""
    container = {"name": "kbs", "image": "kbs:theirs", "volumeMounts": [{"name": "kbs-config", "mountPath": "/etc/kbs-config"}]}
    template = {"metadata": {"labels": {"app": "kbs"}, "annotations": {
        "kbs.confidentialcontainers.org/configmap-versions": "kbs-config:1"}}, "spec": {
            "initContainers": [{"name": "secret-converter", "image": "operator:theirs", "command": ["/secret-converter"]}],
            "containers": [container], "volumes": [{"name": "kbs-config", "configMap": {"name": "kbs-config"}}]}}
    return {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {
        "name": "trustee-deployment", "namespace": ns, "ownerReferences": [{
            "apiVersion": owner["apiVersion"], "kind": owner["kind"], "name": owner["metadata"]["name"],
            "uid": owner["metadata"]["uid"], "controller": True, "blockOwnerDeletion": True}]},
            "spec": {"replicas": 1, "selector": {"matchLabels": {"app": "kbs"}}, "template": template}}


def test_from_the_trustee_operator_and_back(plane, place, operator):
    """One Lease, so that the two never work at once; objects are found again in either direction."""
    lease(plane, place, "trustee-operator-controller-manager-1_u")
    kbsconfig = head(plane, place)
    path = f"/apis/apps/v1/namespaces/{place}/deployments"
    status, theirs = plane.api("POST", f"{path}?fieldManager=manager", its_deployment(plane, place, kbsconfig))
    assert status == 201, theirs
    since = plane.audit.mark()
    op = operator(place)
    user = f"system:serviceaccount:{place}:tec-operator"
    def looked():  # it asks every 2 s, after two lists and two watches
        lease(plane, place, "trustee-operator-controller-manager-1_u")
        return plane.audit.count(user, since) >= 6
    wait_for(looked, PATIENCE, "the Lease is seen", 0.5)
    assert plane.api("GET", f"{path}/trustee-deployment")[1]["metadata"]["uid"] == theirs["metadata"]["uid"]
    assert "status" not in plane.get(url(place, "kbsconfig-sample")), "written while another one leads"
    lease(plane, place, "")
    until(plane, place, "kbsconfig-sample", "Installed", "Installed")
    ours = deployment(plane, place)
    assert "initContainers" not in ours["spec"]["template"]["spec"]
    assert ours["metadata"]["uid"] == theirs["metadata"]["uid"]
    # And back: it is handed the Lease, replaces the template as it does in every pass, and can delete everything.
    op.terminate()
    held = plane.get(f"/apis/coordination.k8s.io/v1/namespaces/{place}/leases/{LEASE}")
    assert held["spec"].get("holderIdentity", "") == ""
    ours = deployment(plane, place)
    ours["spec"]["template"] = theirs["spec"]["template"]
    status, answer = plane.api("PUT", f"{path}/trustee-deployment", ours)
    assert status == 200, answer
    template = answer["spec"]["template"]["spec"]
    assert [c["name"] for c in template["initContainers"]] == ["secret-converter"]
    assert [v["name"] for v in template["volumes"]] == ["kbs-config"], "nothing of ours is left in it"
    assert plane.get(url(place, "kbsconfig-sample"))["metadata"]["finalizers"] == [FINALIZER]
    assert plane.api("DELETE", url(place, "kbsconfig-sample"))[0] == 200
    assert plane.api("DELETE", f"{path}/trustee-deployment")[0] == 200
    change(plane, url(place, "kbsconfig-sample"), {"metadata": {"finalizers": None}})
    assert plane.api("GET", url(place, "kbsconfig-sample"))[0] == 404
