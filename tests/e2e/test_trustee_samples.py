# SPDX-License-Identifier: MIT
"""Trustee by KbsConfig up to a resource that a client gets: HEAD's sample-attester-https, the guard before it, objects as
large and with names as long as may be; and what is shared, told, lost and looked at (B9, B16, B20 to B22 of
tec-trustee(7))."""

import base64
import os
import re
import shutil
import subprocess

import pytest

import softtpm
from conftest import retarget
from controlplane import TOP, wait_for
from guarded import ask
from kbsconfigs import (CURRENT, OVERLAY, PATIENCE, configmap, deployment, head, make, operator, place, plane, put,  # noqa: F401
                        remove, rights, secret, until, url)
from proc import Proc, free_port
from tecproc import operator_binary
from test_attest import set_policies
from test_trustee_alone import Client, at_rest, configured, content_hash, core, its_deployment, trusteeconfig
from trusteepod import TrusteePod

MIB = 1 << 20  # the API server takes no more in one object
NAME_MAX = 253
WRITABLE = "trusted-execution-clusters.io/writable-repository"
attests = pytest.mark.skipif(softtpm.missing() is not None or not shutil.which("jose"), reason="a software TPM and jose")


def certificate(directory):
    """(key, certificate), as step 01 of sample-attester-https makes them."""
    files = [os.path.join(directory, f"https.{end}") for end in ("key", "crt")]
    subprocess.run(["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-keyout", files[0], "-out", files[1],
                    "-subj", "/CN=kbs-service", "-addext", "subjectAltName=DNS:kbs-service", "-days", "2"],
                   check=True, capture_output=True)
    return files


def text_of(file):
    with open(file, encoding="ascii") as f:
        return f.read()


def admin_key(directory):
    """(private key file, public key)."""
    file = os.path.join(directory, "admin.pem")
    subprocess.run(["openssl", "genpkey", "-algorithm", "ed25519", "-out", file], check=True, capture_output=True)
    done = subprocess.run(["openssl", "pkey", "-in", file, "-pubout"], check=True, capture_output=True, text=True)
    return file, done.stdout


def start_broker(pod, start_kbs, private, directory, **options):
    signer = os.path.join(directory, "signer.pem")
    subprocess.run(["openssl", "genpkey", "-algorithm", "EC", "-pkeyopt", "ec_paramgen_curve:P-256", "-out", signer],
                   check=True, capture_output=True)
    return pod.start_broker(start_kbs, private, signer=signer, policies=os.path.join(TOP, "etc"), **options)


def attested(broker, port, file, tpm, directory):
    """A client in whose evidence this broker believes, which asks at the port."""
    client = Client(port, file, tpm, directory)
    set_policies(broker, "tpm-shared.rego", "resource-shared.rego")
    pcrs = client.evidence.pcrs()
    broker.set_values({"trusted_aks": [client.evidence.ak_public], "tpm_pcr4": [pcrs[4]], "tpm_pcr14": [pcrs[14]]})
    client.attest()
    return client


def resource(client, path):
    status, body = client.ask("GET", f"/kbs/v0/resource/{path}")
    assert status == 200, body[:300]
    return client.key.open(body)


# To a resource

@attests
def test_heads_sample_with_https(plane, place, operator, start_kbs, tpm, tmp_path):
    """sample-attester-https, its steps in their order."""
    operator(place)
    key, crt = certificate(str(tmp_path))
    private, public = admin_key(str(tmp_path))
    secret(plane, place, "kbs-https-certificate", {"https.crt": text_of(crt)})
    secret(plane, place, "kbs-https-key", {"https.key": text_of(key)})
    head(plane, place, kbsHttpsKeySecretName="kbs-https-key", kbsHttpsCertSecretName="kbs-https-certificate")
    secret(plane, place, "kbs-auth-public-key", {"publicKey": public})
    configmap(plane, place, "kbs-config", **{"kbs-config.toml": CURRENT.replace(
        "insecure_http = true", 'insecure_http = false\nprivate_key = "/etc/https-key/https.key"\n'
        'certificate = "/etc/https-cert/https.crt"')})
    until(plane, place, "kbsconfig-sample", "Installed", "Installed")
    wait_for(lambda: deployment(plane, place)["spec"]["template"]["spec"]["containers"][0]["readinessProbe"]["httpGet"]
             ["scheme"] == "HTTPS", PATIENCE, "a probe over HTTPS")
    until(plane, place, "kbsconfig-sample", "Ready", "Starting", "0 of 1")
    pod = TrusteePod(plane, place, str(tmp_path)).run()
    assert until(plane, place, "kbsconfig-sample", "Ready", "Ready")["status"]["isReady"] is True
    assert pod.files("/etc/https-key") == {"https.key"} and pod.files("/etc/https-cert") == {"https.crt"}
    broker = start_broker(pod, start_kbs, private, str(tmp_path))
    client = attested(broker, broker.port, crt, tpm, str(tmp_path))
    assert resource(client, "default/attestation-status/status") == b"success"


def volumes_of(plane, ns, container):
    """{mount path: the volume's source} of a container."""
    template = deployment(plane, ns)["spec"]["template"]["spec"]
    volumes = {v["name"]: v for v in template["volumes"]}
    (found,) = (c for c in template["containers"] if c["name"] == container)
    return {m["mountPath"]: volumes[m["name"]] for m in found["volumeMounts"]}


def test_paths_with_file_and_secrets_that_are_not_named(plane, place, operator, tmp_path):
    """Each file that kbs-config.toml names is mounted, in kbs too, however its path is written; what it does not name
    rolls nothing."""
    operator(place)
    key, crt = certificate(str(tmp_path))
    secret(plane, place, "https-key", {"https.key": text_of(key)})
    secret(plane, place, "https-cert", {"https.crt": text_of(crt)})
    secret(plane, place, "token-key", {"token.key": text_of(key)})
    secret(plane, place, "token-cert", {"token.crt": text_of(crt)})
    configmap(plane, place, "as-config", **{"as-config.json": "{}"})
    configmap(plane, place, "rvps-config", **{"rvps-config.json": "{}"})
    head(plane, place, kbsHttpsKeySecretName="https-key", kbsHttpsCertSecretName="https-cert",
         kbsAttestationKeySecretName="token-key", kbsAttestationCertSecretName="token-cert")
    until(plane, place, "kbsconfig-sample", "Installed", "Installed")
    toml = CURRENT.replace("insecure_http = true", 'private_key = "file:///etc/https-key/https.key"\n'
                           'certificate = "file:///etc/https-cert/https.crt"').replace(
        'auth_public_key = "/etc/auth-secret/publicKey"\n', "")
    toml += '[attestation_token]\ntrusted_certs_paths = ["file:///etc/attestation-cert/token.crt"]\n'
    configmap(plane, place, "kbs-config", **{"kbs-config.toml": toml})
    wait_for(lambda: "/etc/https-key" in volumes_of(plane, place, "kbs"), PATIENCE, "the files")
    pod = TrusteePod(plane, place, str(tmp_path)).run()
    assert pod.files("/etc/https-key") == {"https.key"} and pod.files("/etc/https-cert") == {"https.crt"}
    assert pod.read("/etc/attestation-cert/token.crt").decode() == text_of(crt)
    # With services of their own: the certificate in both, the private key where tokens are signed.
    status, answer = plane.api("PATCH", url(place, "kbsconfig-sample"), {"spec": {
        "kbsDeploymentType": "MicroservicesDeployment", "kbsAsConfigMapName": "as-config",
        "kbsRvpsConfigMapName": "rvps-config"}}, "application/merge-patch+json")
    assert status == 200, answer
    wait_for(lambda: len(deployment(plane, place)["spec"]["template"]["spec"]["containers"]) == 3, PATIENCE, "services")
    kbs, service = volumes_of(plane, place, "kbs"), volumes_of(plane, place, "as")
    assert kbs["/etc/attestation-cert"]["secret"]["secretName"] == "token-cert" and "/etc/attestation-key" not in kbs
    assert service["/etc/attestation-cert"]["secret"]["secretName"] == "token-cert"
    assert service["/etc/attestation-key"]["secret"]["secretName"] == "token-key"
    # No key of the administrator's Secret is named, and one of the certificate's is not.
    before = deployment(plane, place)["metadata"]["generation"]
    secret(plane, place, "kbs-auth-public-key", {"publicKey": "another"})
    secret(plane, place, "https-cert", {"https.crt": text_of(crt), "another": "x"})
    at_rest(plane, place)
    assert deployment(plane, place)["metadata"]["generation"] == before
    secret(plane, place, "https-cert", {"https.crt": "renewed", "another": "x"})
    wait_for(lambda: deployment(plane, place)["metadata"]["generation"] == before + 1, PATIENCE, "one rollout")


class Guard:
    """The Pod's second container: the program that was built with the arguments that were rendered; its ports, Trustee's
    and the folder of its certificate are those of this machine."""

    def __init__(self, pod, upstream, directory):
        pod.lay_out("guard")
        args = pod.container["args"]
        self.port, self.health = free_port(), free_port()
        to = {"--upstream=http://127.0.0.1:8081": f"--upstream=http://127.0.0.1:{upstream}",
              "--listen-kbs=[::]:8080": f"--listen-kbs=127.0.0.1:{self.port}",
              "--listen-health=[::]:8083": f"--listen-health=127.0.0.1:{self.health}"}
        assert to.keys() <= set(args), args
        args = [re.sub("=/etc/tls/", f"={pod.path('/etc/tls/')}", to.get(a, a)) for a in args]
        env = {k: v for k, v in os.environ.items() if not k.startswith("KUBE")}
        self.proc = Proc("guard", [operator_binary(), *args], os.path.join(directory, "guard.log"), env)
        self.probe = pod.container["readinessProbe"]["httpGet"]["path"]

    def __enter__(self):
        self.proc.start()
        wait_for(self.is_ready, PATIENCE, "the guard's readiness probe")
        return self

    def is_ready(self):
        self.proc.check()
        return ask(self.health, "GET", self.probe)[0] == 200

    def __exit__(self, *_):
        self.proc.stop()


@attests
def test_a_client_gets_its_resource_through_the_guard(plane, place, operator, start_kbs, tpm, tmp_path):
    """The annotation, and nothing else: the guard ends TLS with the Secrets of spec, and Trustee is behind it."""
    operator(place)
    key, crt = certificate(str(tmp_path))
    private, public = admin_key(str(tmp_path))
    secret(plane, place, "kbs-https-certificate", {"https.crt": text_of(crt)})
    secret(plane, place, "kbs-https-key", {"https.key": text_of(key)})
    head(plane, place, kind={"annotations": {"trusted-execution-clusters.io/trustee-guard": "tpm"}},
         kbsHttpsKeySecretName="kbs-https-key", kbsHttpsCertSecretName="kbs-https-certificate")
    secret(plane, place, "kbs-auth-public-key", {"publicKey": public})
    configmap(plane, place, "kbs-config", **{"kbs-config.toml": CURRENT.replace("0.0.0.0:8080", "127.0.0.1:8081")})
    until(plane, place, "kbsconfig-sample", "Installed", "Installed")
    pod = TrusteePod(plane, place, str(tmp_path)).run()
    broker = start_broker(pod, start_kbs, private, str(tmp_path))
    with Guard(pod, broker.port, str(tmp_path)) as guard:
        client = attested(broker, guard.port, crt, tpm, str(tmp_path))
        assert resource(client, "default/attestation-status/status") == b"success"
        # What is Trustee's administrators' alone does not come through, whoever asks.
        before = broker.dump()["resources"]
        status, body = client.ask("POST", "/kbs/v0/resource/default/attestation-status/status", {"mine": 1})
        assert status in (403, 404, 405), body
        assert broker.dump()["resources"] == before
        guard.proc.check()


# As large as may be

def long_name(word, n=NAME_MAX):
    return (word + ".0" * n)[:n - 1] + "z"


def padded(text, comment="#"):
    """Of one MiB."""
    return text + comment + "x" * (MIB - len(text) - len(comment) - 1) + "\n"


def test_inputs_of_one_mib_with_the_longest_names(plane, place, operator, tmp_path):
    """As far as the files in the Pod: the project's broker takes resources up to 64 KiB."""
    op = operator(place)
    public = admin_key(str(tmp_path))[1]
    configmap(plane, place, long_name("config"), **{"kbs-config.toml": padded(CURRENT)})
    configmap(plane, place, long_name("policy"), **{"resource-policy.rego": padded("package policy\n")})
    configmap(plane, place, long_name("values"), **{"reference_value": "{}" + " " * (MIB - 2)})
    configmap(plane, place, long_name("cpu"), **{"default_cpu.rego": padded("package policy\n")})
    configmap(plane, place, long_name("gpu"), **{"default_gpu.rego": padded("package policy\n")})
    secret(plane, place, long_name("auth"), {"publicKey": public, "other": "x" * (MIB - len(public))})
    secret(plane, place, long_name("vcek"), {"vcek.crt": "v" * MIB})
    secret(plane, place, long_name("value"), {"k": "r" * MIB})
    kept = long_name("value", 236)
    secret(plane, place, kept, {"key1": "r" * MIB})
    make(plane, place, "k", kbsConfigMapName=long_name("config"), kbsAuthSecretName=long_name("auth"),
         kbsResourcePolicyConfigMapName=long_name("policy"), kbsRvpsRefValuesConfigMapName=long_name("values"),
         kbsAttestationPolicyConfigMapName=long_name("cpu"), kbsGpuAttestationPolicyConfigMapName=long_name("gpu"),
         kbsSecretResources=[long_name("value")],
         kbsLocalCertCacheSpec={"secrets": [{"secretName": long_name("vcek")}]})
    # Trustee has a file whose name is made of both names: with 253 characters no kubelet could lay it out.
    until(plane, place, "k", "Installed", "InputInvalid", "exceed 240 characters")
    status, answer = plane.api("PATCH", url(place, "k"), {"spec": {"kbsSecretResources": [kept]}},
                               "application/merge-patch+json")
    assert status == 200, answer
    until(plane, place, "k", "Installed", "Installed")
    pod = TrusteePod(plane, place, str(tmp_path)).run()
    until(plane, place, "k", "Ready", "Ready")
    storage = "/opt/confidential-containers/storage"
    for path in ("kbs/resource-policy.rego", "attestation_service_policy/default_cpu.rego",
                 "attestation_service_policy/default_gpu.rego", "local_json/reference_value"):
        assert len(pod.read(f"{storage}/{path}")) == MIB, path
    assert pod.resources() == {f"default/{kept}/key1": b"r" * MIB}
    assert pod.files("/etc/auth-secret") == {"publicKey"}
    # The last byte of one counts.
    before = content_hash(plane, place)
    configmap(plane, place, long_name("policy"), **{"resource-policy.rego": padded("package policy\n")[:-2] + "y\n"})
    wait_for(lambda: content_hash(plane, place) != before, PATIENCE, "another hash")
    assert op.alive()


def test_inputs_of_another_type_and_made_again(plane, place, operator, tmp_path):
    """Keys count, not the type of a Secret; a file in binaryData is the same file; what is made again with the same
    content rolls nothing."""
    operator(place)
    head(plane, place)
    until(plane, place, "kbsconfig-sample", "Installed", "Installed")
    first = deployment(plane, place)["metadata"]["generation"]
    status, answer = plane.api("GET", core(place, "secrets", "kbs-auth-public-key"))
    assert status == 200, answer
    binary = {k: base64.b64encode(v.encode()).decode()
              for k, v in plane.get(core(place, "configmaps", "kbs-config"))["data"].items()}
    remove(plane, place, "secrets", "kbs-auth-public-key")
    until(plane, place, "kbsconfig-sample", "Installed", "InputMissing", "Secret kbs-auth-public-key, which")
    tls = {"type": "kubernetes.io/tls", "data": {"tls.crt": "", "tls.key": ""}}
    put(plane, place, "secrets", "kbs-auth-public-key", tls)
    until(plane, place, "kbsconfig-sample", "Installed", "InputMissing", "Secret kbs-auth-public-key has no key publicKey")
    remove(plane, place, "secrets", "kbs-auth-public-key")
    put(plane, place, "secrets", "kbs-auth-public-key", {**tls, "data": {**tls["data"], **answer["data"]}})
    until(plane, place, "kbsconfig-sample", "Installed", "Installed")
    remove(plane, place, "configmaps", "kbs-config")
    until(plane, place, "kbsconfig-sample", "Installed", "InputMissing", "ConfigMap kbs-config, which")
    put(plane, place, "configmaps", "kbs-config", {"binaryData": binary})
    until(plane, place, "kbsconfig-sample", "Installed", "Installed")
    at_rest(plane, place)
    assert deployment(plane, place)["metadata"]["generation"] == first, "other keys of the Secret are not named"
    pod = TrusteePod(plane, place, str(tmp_path)).run()
    assert pod.toml() and pod.files("/etc/auth-secret") == {"publicKey"}
    until(plane, place, "kbsconfig-sample", "Ready", "Ready")


def test_an_orphan_of_the_trustee_operator_is_adopted(plane, place, operator):
    """Left by kubectl delete --cascade=orphan; and one that nobody owns and that is not that operator's."""
    kbsconfig = head(plane, place)
    path = f"/apis/apps/v1/namespaces/{place}/deployments"
    theirs = its_deployment(plane, place, kbsconfig)
    del theirs["metadata"]["ownerReferences"]
    status, theirs = plane.api("POST", f"{path}?fieldManager=manager", theirs)
    assert status == 201, theirs
    operator(place)
    until(plane, place, "kbsconfig-sample", "Installed", "Installed")
    ours = deployment(plane, place)
    assert ours["metadata"]["uid"] == theirs["metadata"]["uid"]
    assert "initContainers" not in ours["spec"]["template"]["spec"]
    assert ours["metadata"]["ownerReferences"][0]["uid"] == kbsconfig["metadata"]["uid"]
    # An owner that is taken away is set again, in place and without a rollout.
    status, orphan = plane.api("PATCH", f"{path}/trustee-deployment", {"metadata": {"ownerReferences": None}},
                               "application/merge-patch+json")
    assert status == 200, orphan
    wait_for(lambda: deployment(plane, place)["metadata"].get("ownerReferences"), PATIENCE, "the owner again")
    again = deployment(plane, place)
    assert (again["metadata"]["uid"], again["spec"]["template"]) == (ours["metadata"]["uid"], ours["spec"]["template"])


# What is shared, lost, looked at

def test_attestation_status_of_two_trusteeconfigs(plane, place, operator):
    """B16: it is the first one's, nobody's labels change in turns, and it is there as long as one of them is."""
    operator(place)
    path = core(place, "secrets", "attestation-status")
    instance = "app.kubernetes.io/instance"
    trusteeconfig(plane, place, "first", profileType="Permissive")
    configured(plane, place, "first")
    before = plane.get(path)
    trusteeconfig(plane, place, "second", profileType="Permissive")
    configured(plane, place, "second")
    at_rest(plane, place)
    assert plane.get(path) == before and before["metadata"]["labels"][instance] == "first"
    plane.kubectl("delete", "trusteeconfig", "first", "-n", place, "--timeout=60s")

    def made_again():
        status, o = plane.api("GET", path)
        return status == 200 and o["metadata"]["uid"] != before["metadata"]["uid"]
    wait_for(made_again, PATIENCE, "another attestation-status")
    assert plane.get(path)["metadata"]["labels"][instance] == "second"
    until(plane, place, "second-kbs-config", "Installed", "Installed")


def test_events_are_written_with_the_rights_of_the_role(plane, place, operator, tmp_path):
    """B9: under the names of the Trustee operator; kubectl sees them, and nothing is refused. An image whose variable is
    empty is the default one."""
    since = plane.audit.mark()
    operator(place, env={"KBS_IMAGE_NAME": ""})
    head(plane, place)
    until(plane, place, "kbsconfig-sample", "Installed", "Installed")
    pod = TrusteePod(plane, place, str(tmp_path)).run()
    assert pod.container["image"] == "ghcr.io/confidential-containers/staged-images/kbs:" \
        "b2442c222485b6ec5d6dee09d5a30bb561ff3622"
    until(plane, place, "kbsconfig-sample", "Ready", "Ready")
    pod.tell_ready(pod.pods()[0]["metadata"]["name"], False)
    until(plane, place, "kbsconfig-sample", "Ready", "Starting")
    expected = {"DeploymentCreated", "ServiceCreated", "Installed", "Ready", "NotReady"}

    def events():
        return [e for e in plane.get(f"/apis/events.k8s.io/v1/namespaces/{place}/events")["items"]
                if e["regarding"]["name"] == "kbsconfig-sample"]
    wait_for(lambda: expected <= {e["reason"] for e in events()}, PATIENCE, "the Events")
    assert {(e["reportingController"], e["action"] == e["reason"]) for e in events()} == {("kbsconfig-controller", True)}
    seen = plane.kubectl("get", "events", "-n", place, "--field-selector", "involvedObject.name=kbsconfig-sample",
                         "-o", "jsonpath={.items[*].reason}")
    assert expected <= set(seen.split())
    written = [e for e in plane.audit.events(f"system:serviceaccount:{place}:tec-operator", since)
               if e["objectRef"].get("resource") == "events"]
    assert written and not [e for e in written if e["responseStatus"]["code"] >= 400]


def test_pod_security(plane, place, operator):
    """B20: what the manifests enforce fits Trustee, and a restricted namespace would refuse it for one reason: its images
    run as root. The operator's own Pod is restricted."""
    operator(place)
    head(plane, place, kind={"annotations": {WRITABLE: "true"}})
    until(plane, place, "kbsconfig-sample", "Installed", "Installed")
    manifests = plane.read_manifests(OVERLAY)
    labels = plane.read_manifests(os.path.join(OVERLAY, "namespace.yaml"))[0]["metadata"]["labels"]
    ours = next(o for o in manifests if o["kind"] == "Deployment")["spec"]["template"]
    trustees = deployment(plane, place)["spec"]["template"]

    def create(template, level):
        status, answer = plane.api("PATCH", f"/api/v1/namespaces/{place}", {
            "metadata": {"labels": {"pod-security.kubernetes.io/enforce": level}}}, "application/merge-patch+json")
        assert status == 200, answer
        return plane.api("POST", f"/api/v1/namespaces/{place}/pods?dryRun=All", {
            "metadata": {"name": "p", "labels": template["metadata"]["labels"]}, "spec": template["spec"]})
    enforced = labels["pod-security.kubernetes.io/enforce"]
    assert enforced == "baseline" and labels["pod-security.kubernetes.io/audit"] == "restricted"
    status, answer = create(trustees, enforced)
    assert status == 201, answer

    def refused():
        """Admission sees the label a moment later."""
        status, answer = create(trustees, "restricted")
        return answer if status == 403 else None
    answer = wait_for(refused, PATIENCE, "a refusal")
    assert answer["message"].partition('"restricted:latest": ')[2] == \
        'runAsNonRoot != true (pod or container "kbs" must set securityContext.runAsNonRoot=true)', answer
    status, answer = create(ours, "restricted")
    assert status == 201, answer


def test_what_the_api_changed_is_lost_with_the_pod(plane, place, operator, start_kbs, tmp_path):
    """B21: what a KbsConfig names is mounted where nobody can write, and is what the next Pod starts with."""
    operator(place)
    private, public = admin_key(str(tmp_path))
    head(plane, place)
    secret(plane, place, "kbs-auth-public-key", {"publicKey": public})
    until(plane, place, "kbsconfig-sample", "Installed", "Installed")
    pod = TrusteePod(plane, place, str(tmp_path)).run()
    volumes = {v["name"]: v for v in pod.pod["spec"]["volumes"]}
    storage = "/opt/confidential-containers/storage"
    sources = {m["mountPath"]: set(volumes[m["name"]]) - {"name"} for m in pod.container["volumeMounts"]}
    assert sources[f"{storage}/kbs/resource-policy.rego"] == {"configMap"}
    assert sources[f"{storage}/local_json/reference_value"] == {"configMap"}
    assert sources[f"{storage}/repository"] == {"projected"}
    broker = pod.start_broker(start_kbs, private)
    answer = broker.ask("POST", "/kbs/v0/resource/default/attestation-status/status", b"changed")
    assert answer.status == 200, answer
    pod.lay_out()
    assert pod.resources() == {"default/attestation-status/status": b"success"}
    again = pod.start_broker(start_kbs, private)
    assert list(again.dump()["resources"].values()) == ["c3VjY2Vzcw=="]


def test_a_writable_repository(plane, place, operator, tmp_path):
    """By annotation of a TrusteeConfig: an init container copies the Secrets where Trustee can write; a changed Secret
    needs another Pod, in which it is as it says."""
    operator(place)
    storage = "/opt/confidential-containers/storage"
    path = "default/attestation-status/status"
    trusteeconfig(plane, place, "w", profileType="Permissive")
    until(plane, place, "w-kbs-config", "Installed", "Installed")
    assert "initContainers" not in deployment(plane, place)["spec"]["template"]["spec"]

    def annotate(value):
        status, answer = plane.api("PATCH", url(place, "w", "trusteeconfigs"), {"metadata": {"annotations": {WRITABLE: value}}},
                                   "application/merge-patch+json")
        assert status == 200, answer
    annotate("true")
    wait_for(lambda: "initContainers" in deployment(plane, place)["spec"]["template"]["spec"], PATIENCE, "the copy")
    assert plane.get(url(place, "w-kbs-config"))["metadata"]["annotations"][WRITABLE] == "true"
    pod = TrusteePod(plane, place, str(tmp_path)).run()
    volume = volumes_of(plane, place, "kbs")[f"{storage}/repository"]
    assert volume["emptyDir"]["medium"] == "Memory"
    (mount,) = (m for m in pod.container["volumeMounts"] if m["name"] == volume["name"])
    assert not mount.get("readOnly")
    assert pod.resources() == {path: b"success"}
    file = pod.path(f"{storage}/repository/" + path.replace("/", "\\x2F"))
    assert os.stat(file).st_mode & 0o666 == 0o666, "for whatever user Trustee runs as"
    with open(file, "wb") as f:
        f.write(b"a client's")
    assert pod.resources() == {path: b"a client's"}
    # A changed Secret: another Pod, and what clients set is gone.
    before = content_hash(plane, place)
    secret(plane, place, "attestation-status", {"status": "renewed"})
    wait_for(lambda: content_hash(plane, place) != before, PATIENCE, "a rollout")
    assert pod.run().resources() == {path: b"renewed"}
    annotate(None)
    wait_for(lambda: "initContainers" not in deployment(plane, place)["spec"]["template"]["spec"], PATIENCE, "no copy")
    until(plane, place, "w-kbs-config", "Installed", "Installed")
    assert "projected" in volumes_of(plane, place, "kbs")[f"{storage}/repository"]
    assert WRITABLE not in plane.get(url(place, "w-kbs-config"))["metadata"]["annotations"]


def memory_of(pid):
    """Everything that the process can write to."""
    with open(f"/proc/{pid}/maps", encoding="ascii") as maps, open(f"/proc/{pid}/mem", "rb", 0) as mem:
        for line in maps:
            span, mode = line.split()[:2]
            if mode.startswith("rw"):
                start, end = (int(x, 16) for x in span.split("-"))
                mem.seek(start)
                yield mem.read(end - start)


def test_secrets_are_looked_at_where_a_kbsconfig_is_and_not_kept(plane, place, rights, operator):
    """B22: none is listed in a namespace without a KbsConfig; where there is one, no value stays in memory."""
    other = plane.create_namespace("trustee")
    there = retarget([o for o in rights if o["kind"] != "ServiceAccount"], other)
    for o in there:
        for subject in o.get("subjects", ()):
            subject["namespace"] = place
    plane.apply(there)
    word = "Tm9ib2R5IGtlZXBzIHRoaXMgdmFsdWUgaW4gbWVtb3J5"
    path = f"/api/v1/namespaces/{place}/secrets"
    status, answer = plane.api("POST", path, {"metadata": {"name": "foreign"}, "data": {"k": word}})
    assert status == 201, answer
    op = operator(place, f"--trustee-namespaces={place},{other}")
    head(plane, place)
    until(plane, place, "kbsconfig-sample", "Installed", "Installed")
    secret(plane, place, "attestation-status", {"status": "success"})
    at_rest(plane, place)
    user = f"system:serviceaccount:{place}:tec-operator"
    asked = {(e["objectRef"]["namespace"], e["objectRef"]["resource"]) for e in plane.audit.events(user)
             if e["verb"] in ("list", "watch") and "namespace" in e["objectRef"]}
    assert (place, "secrets") in asked and (other, "kbsconfigs") in asked
    assert (other, "secrets") not in asked and (other, "configmaps") not in asked
    memory = b"".join(memory_of(op.pid))
    assert b"kbs-auth-public-key" in memory, "it is not what was looked for"
    assert word.encode() not in memory, "the value of a Secret that nobody names"
