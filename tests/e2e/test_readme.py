# SPDX-License-Identifier: MIT
"""What README.md tells people to type beside the images, which tests/nodes builds: certificates, the
samples that make the Services reachable. Word for word; only names are put in, as README.md asks for."""

import base64
import json
import os
import subprocess
import sys

import pytest

import spine
from controlplane import TOP, wait_for
from test_uninstall import install

sys.path.append(os.path.join(TOP, "tests", "nodes"))
import readme  # noqa: E402  pylint: disable=wrong-import-position

NS = "trusted-execution-clusters"
SAMPLES = os.path.join(TOP, "k8s", "samples")
INSTALL = "Install on a cluster"
HOSTS = {"trustee-tls": "trustee.example.org", "register-server-tls": "register.example.org",
         "attestation-key-register-tls": "register-ak.example.org"}


def block(word):
    found = [commands for _, commands in readme.blocks(INSTALL) if word in commands]
    assert len(found) == 1, (word, found)
    return found[0]


def run(cp, ns, commands, home):
    """As a person with kubectl would, in this namespace."""
    tools = home / "tools"
    if not tools.exists():
        tools.mkdir()
        (tools / "kubectl").write_text(f'#!/bin/sh\nexec {" ".join(cp.binaries["kubectl"])} "$@"\n')
        (tools / "kubectl").chmod(0o755)
    env = dict(os.environ, HOME=str(home), KUBECONFIG=cp.admin_kubeconfig, PATH=f"{tools}:{os.environ['PATH']}")
    done = subprocess.run(["sh", "-eu", "-c", commands.replace(f"-n {NS}", f"-n {ns}")], env=env, text=True,
                          cwd=TOP, capture_output=True, timeout=120, check=False)
    assert done.returncode == 0, done
    return done.stdout


def sample(cp, ns, *path):
    objects = cp.read_manifests(os.path.join(SAMPLES, *path))
    for o in objects:
        assert o["metadata"]["namespace"] == NS
        o["metadata"]["namespace"] = ns
    return objects


def openssl(*args):
    return subprocess.run(["openssl", *args], check=True, capture_output=True, text=True).stdout


def test_the_certificates_serve_nodes(cp, ns, start_operator, tmp_path):
    """The names are put in, the Secrets made, the sample applied: both listeners and the Ignition."""
    commands = block("openssl").replace("DNS:register.example.org", "DNS:localhost")
    assert "IP addresses" in readme.section(INSTALL)
    run(cp, ns, commands.replace("DNS:register-ak.example.org", "IP:127.0.0.1"), tmp_path)
    ca = str(tmp_path / "tec-tls" / "ca.crt")
    assert (tmp_path / "tec-tls").stat().st_mode & 0o777 == 0o700
    cluster, = sample(cp, ns, "trustedexecutioncluster.yaml")
    cp.apply([cluster])
    op = start_operator(ns)
    ask = ("GET", "/ignition")
    wait_for(lambda: spine.request(op.register_port, *ask, cafile=ca)[0] == 200, 20, "Ignition")
    body = spine.request(op.register_port, *ask, cafile=ca)[2]
    clevis = spine.clevis_config(json.loads(body))
    with open(ca, encoding="ascii") as f:
        pem = f.read()
    assert clevis["servers"] == [{"url": "https://trustee.example.org:8080", "cert": pem}]
    assert clevis["attestation_key"]["registration"]["cert"] == pem
    answer = subprocess.run(["curl", "-sS", "--cacert", ca, f"https://127.0.0.1:{op.register_ak_port}/none"],
                            check=True, capture_output=True, text=True).stdout
    assert json.loads(answer)["status"] == "error", answer
    for name in HOSTS:
        secret = spine.read(cp, ns, "secrets", name)
        assert secret["type"] == "kubernetes.io/tls" and set(secret["data"]) == {"tls.crt", "tls.key", "ca.crt"}
    crt = tmp_path / "tls.crt"
    crt.write_bytes(base64.b64decode(spine.read(cp, ns, "secrets", "trustee-tls")["data"]["tls.crt"]))
    openssl("verify", "-CAfile", ca, "-purpose", "sslserver", "-verify_hostname", "trustee.example.org", "-x509_strict",
            str(crt))
    # Stock attesters refuse a server that shows a CA.
    assert "CA:TRUE" not in openssl("x509", "-in", str(crt), "-noout", "-text")
    installed = spine.read(cp, ns, "tec", cluster["metadata"]["name"])
    assert "does not exist" not in spine.condition(installed, "Installed").get("message", "")


@pytest.fixture(name="cert_manager")
def _cert_manager(cp):
    """Its two kinds, without what checks them: no cluster here has it."""
    crds = [{"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
             "metadata": {"name": f"{plural}.cert-manager.io"}, "spec": {
                 "group": "cert-manager.io", "scope": "Namespaced",
                 "names": {"kind": kind, "plural": plural, "singular": kind.lower()},
                 "versions": [{"name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": {
                     "type": "object", "x-kubernetes-preserve-unknown-fields": True}}}]}}
            for kind, plural in (("Certificate", "certificates"), ("Issuer", "issuers"))]
    cp.apply(crds)
    for crd in crds:
        url = f"/apis/cert-manager.io/v1/{crd['spec']['names']['plural']}"
        wait_for(lambda url=url: cp.api("GET", url)[0] == 200, 30, url)
    yield
    for crd in crds:
        cp.api("DELETE", f"/apis/apiextensions.k8s.io/v1/customresourcedefinitions/{crd['metadata']['name']}")


def test_cert_manager_makes_the_secrets_that_the_cluster_names(cp, ns, cert_manager):
    objects = sample(cp, ns, "tls", "cert-manager.yaml")
    cp.apply(objects)
    issuers = {o["metadata"]["name"]: o["spec"] for o in objects if o["kind"] == "Issuer"}
    specs = {o["spec"]["secretName"]: o["spec"] for o in objects if o["kind"] == "Certificate"}
    cluster, = sample(cp, ns, "trustedexecutioncluster.yaml")
    named = {cluster["spec"][f] for f in ("trusteeSecret", "registerServerSecret", "attestationKeyRegisterSecret")}
    assert set(specs) == named | {"trusted-execution-cluster-ca"} and named == set(HOSTS)
    for name, host in HOSTS.items():
        assert specs[name]["dnsNames"] == [host] and not specs[name].get("isCA")
        assert "server auth" in specs[name]["usages"]
        assert issuers[specs[name]["issuerRef"]["name"]] == {"ca": {"secretName": "trusted-execution-cluster-ca"}}
    ca = specs["trusted-execution-cluster-ca"]
    assert ca["isCA"] and ca["privateKey"]["rotationPolicy"] == "Never"
    assert issuers[ca["issuerRef"]["name"]] == {"selfSigned": {}}
    for field, name in (("publicTrusteeAddr", "trustee-tls"),
                        ("publicAttestationKeyRegisterAddr", "attestation-key-register-tls")):
        assert cluster["spec"][field].split(":")[0] == HOSTS[name]


def test_exposing_services_leaves_ours_alone(cp, ns, start_operator):
    """The samples select what our Services select, stay as they are, and ours are put back."""
    install(cp, ns)
    spine.make_cluster(cp, ns)
    start_operator(ns)
    spine.wait_condition(cp, ns, "tec", "tec", "Installed", "InstallationCompleted")
    ours = {s: spine.read(cp, ns, "services", s)
            for s in ("register-server", "attestation-key-register", "kbs-service")}
    pod = {p["name"]: p["containerPort"] for p in cp.get(spine.path_of(ns, "deployments", "tec-operator"))
           ["spec"]["template"]["spec"]["containers"][0]["ports"]}
    for kind in ("LoadBalancer", "NodePort"):
        objects = sample(cp, ns, "expose", f"{kind.lower()}.yaml")
        assert {o["metadata"]["name"] for o in objects} == {f"public-{s}" for s in ours}
        for o in objects:
            path = spine.path_of(ns, "services")
            status, body = cp.api("POST", f"{path}?dryRun=All&fieldValidation=Strict", o)
            assert status == 201, body
            spec, like = o["spec"], ours[o["metadata"]["name"].removeprefix("public-")]["spec"]
            assert spec["type"] == kind and spec["externalTrafficPolicy"] == "Local"
            assert spec["selector"] == like["selector"]
            target, theirs = (s["ports"][0]["targetPort"] for s in (spec, like))
            assert pod.get(target, target) == pod.get(theirs, theirs)
            assert spec["ports"][0]["port"] == like["ports"][0]["port"]
        cp.apply(objects)
        made = {o["metadata"]["name"]: spine.read(cp, ns, "services", o["metadata"]["name"]) for o in objects}
        spine.merge(cp, ns, "services", "register-server", {"spec": {"type": kind}})
        wait_for(lambda: spine.read(cp, ns, "services", "register-server")["spec"]["type"] == "ClusterIP", 20,
                 "repaired Service")
        for name, was in made.items():
            assert spine.read(cp, ns, "services", name)["metadata"]["resourceVersion"] == \
                was["metadata"]["resourceVersion"], f"{name} was touched"
            spine.delete(cp, ns, "services", name)


def test_the_ingress_passes_tls_to_our_services(cp, ns):
    ingress, = sample(cp, ns, "expose", "ingress.yaml")
    path = f"/apis/networking.k8s.io/v1/namespaces/{ns}/ingresses"
    status, body = cp.api("POST", f"{path}?dryRun=All&fieldValidation=Strict", ingress)
    assert status == 201, body
    assert "tls" not in ingress["spec"], "TLS would end in the controller"
    assert ingress["metadata"]["annotations"]["nginx.ingress.kubernetes.io/ssl-passthrough"] == "true"
    backends = {r["host"]: r["http"]["paths"][0]["backend"]["service"] for r in ingress["spec"]["rules"]}
    assert {(h, b["name"], b["port"]["number"]) for h, b in backends.items()} == {
        ("trustee.example.org", "kbs-service", 8080), ("register.example.org", "register-server", 8000),
        ("register-ak.example.org", "attestation-key-register", 8001)}


def test_every_file_that_readme_names_is_there():
    text = readme.section(INSTALL) + readme.section("Uninstall")
    named = {w.strip("`,.") for w in text.split() if w.strip("`").startswith("k8s/")}
    assert {"k8s/samples/expose/loadbalancer.yaml", "k8s/uninstall"} <= named
    for name in named:
        assert os.path.exists(os.path.join(TOP, name)), name
