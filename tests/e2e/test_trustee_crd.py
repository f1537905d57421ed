# SPDX-License-Identifier: MIT
"""crd/trustee on kube-apiserver: what is accepted and what is refused with which words; and the samples of
k8s/trustee. tec-operator --standalone does not serve these kinds."""

import json
import os

import pytest

from controlplane import TOP
from test_crd import check, label

GROUP = "confidentialcontainers.org"
CRDS = os.path.join(TOP, "crd", "trustee")
SAMPLES = os.path.join(TOP, "k8s", "trustee", "samples")
UNKNOWN, UNSUPPORTED = "unknown field", "Unsupported value"
NAMES = ["kbsConfigMapName", "kbsAuthSecretName", "kbsAsConfigMapName", "kbsRvpsConfigMapName",
         "kbsRvpsRefValuesConfigMapName", "kbsAttestationPolicyConfigMapName", "kbsGpuAttestationPolicyConfigMapName",
         "kbsResourcePolicyConfigMapName", "kbsHttpsKeySecretName", "kbsHttpsCertSecretName",
         "kbsAttestationKeySecretName", "kbsAttestationCertSecretName"]

# (spec, None = accepted or a part of the refusal)
CREATE = [
    (None, None), ({}, None),
    *[({n: "a"}, None) for n in NAMES], *[({n: ""}, None) for n in NAMES], *[({n: 7}, "must be of type string") for n in NAMES],
    *[({"kbsServiceType": t}, None) for t in ("", "ClusterIP", "NodePort", "LoadBalancer")],
    *[({"kbsServiceType": t}, UNSUPPORTED) for t in ("ExternalName", "clusterip", "Headless")],
    *[({"kbsDeploymentType": t}, None) for t in ("AllInOneDeployment", "MicroservicesDeployment")],
    *[({"kbsDeploymentType": t}, UNSUPPORTED) for t in ("", "AllInOne", "allInOneDeployment")],
    ({"kbsSecretResources": ["a", "b"]}, None), ({"kbsSecretResources": []}, None),
    ({"kbsSecretResources": [""]}, "at least 1 chars long"), ({"kbsSecretResources": "a"}, "must be of type array"),
    ({"kbsSecretResources": ["a"] * 257}, "Too many"),
    ({"ibmSEConfigSpec": {"certStorePvc": "p"}}, None), ({"ibmSEConfigSpec": {"pvc": "p"}}, UNKNOWN),
    ({"KbsEnvVars": {"RUST_LOG": "debug", "EMPTY": ""}}, None), ({"KbsEnvVars": {"A": 1}}, "must be of type string"),
    ({"kbsEnvVars": {}}, UNKNOWN),
    ({"kbsLocalCertCacheSpec": {"secrets": [{"secretName": "v", "mountPath": "/m"}, {"secretName": "w"}]}}, None),
    ({"kbsLocalCertCacheSpec": {"secrets": [{"mountPath": "/m"}]}}, "secretName: Required value"),
    ({"KbsDeploymentSpec": {"replicas": 0}}, None), ({"KbsDeploymentSpec": {"replicas": 2}}, None),
    ({"KbsDeploymentSpec": {"replicas": -1}}, "greater than or equal to 0"),
    ({"KbsDeploymentSpec": {"replicas": 2147483648}}, "less than or equal to 2147483647"),
    # What older releases had.
    ({"kbsLocalCertCacheSpec": {"secretName": "v", "mountPath": "/m"}}, None),
    ({"KksDeploymentSpec": {"replicas": 1}}, None), ({"tdxConfigSpec": {"kbsTdxConfigMapName": "t"}}, None),
    # Unapplyable samples of the Trustee operator.
    ({"kbsItaConfigMapName": "a"}, UNKNOWN), ({"kbsRvpsReferenceValuesMapName": "a"}, UNKNOWN),
]


PERMISSIVE, P = {"profileType": "Permissive"}, r"should match '^1\.[0-3]$'"
TRUSTEE = [
    (PERMISSIVE, None), ({"profileType": "Restricted"}, None), ({}, None),
    *[({"profileType": t}, UNSUPPORTED) for t in ("", "permissive", "Restrictive", "Typo")],
    *[({**PERMISSIVE, "kbsServiceType": t}, None) for t in ("", "NodePort")],
    ({**PERMISSIVE, "kbsServiceType": "Headless"}, UNSUPPORTED),
    ({**PERMISSIVE, "httpsSpec": {"tlsSecretName": "a"}}, None),
    ({**PERMISSIVE, "attestationTokenVerificationSpec": {"tlsSecretName": "a"}}, None),
    ({**PERMISSIVE, "httpsSpec": {"certificate": "a"}}, UNKNOWN),  # of a sample of the Trustee operator
    ({**PERMISSIVE, "ibmSE": {"pvName": "v"}}, None), ({**PERMISSIVE, "ibmSE": {}}, "pvName: Required value"),
    *[({**PERMISSIVE, "tlsConfig": {"profile": p}}, None) for p in ("old", "intermediate", "modern", "custom")],
    *[({**PERMISSIVE, "tlsConfig": {"profile": p}}, UNSUPPORTED) for p in ("", "newest")],
    *[({**PERMISSIVE, "tlsConfig": {"profile": "custom", **v}}, None) for v in (
        {"minVersion": "1.2", "maxVersion": "1.3"}, {"minVersion": "1.0", "maxVersion": "1.3"},
        {"minVersion": "1.2", "maxVersion": "1.2"}, {"minVersion": "1.3"}, {"maxVersion": "1.0"})],
    ({**PERMISSIVE, "tlsConfig": {"profile": "custom", "minVersion": "1.3", "maxVersion": "1.2"}},
     "minVersion must not be greater than maxVersion"),
    *[({**PERMISSIVE, "tlsConfig": {"profile": "custom", "minVersion": v}}, P) for v in ("1.4", "2.0", "1.x", "")],
    ({**PERMISSIVE, "tlsConfig": {"profile": "custom", "ciphers": ["TLS_AES_128_GCM_SHA256", "AES128-SHA"]}}, None),
    *[({**PERMISSIVE, "tlsConfig": {"profile": "custom", m: [v]}}, "should match") for m in ("ciphers", "groups")
      for v in ("A:B", "a\"b", "")],
]


def trustee(spec, name="t"):
    return {"apiVersion": f"{GROUP}/v1alpha1", "kind": "TrusteeConfig", "metadata": {"name": name}, "spec": spec}


def trustees(ns, rest=""):
    return f"/apis/{GROUP}/v1alpha1/namespaces/{ns}/trusteeconfigs{rest}"


def obj(spec, name="k"):
    return {"apiVersion": f"{GROUP}/v1alpha1", "kind": "KbsConfig", "metadata": {"name": name},
            **({} if spec is None else {"spec": spec})}


@pytest.fixture(scope="module", name="kube")
def _kube(cp):
    cp.apply_crds(CRDS)
    return cp


@pytest.fixture(scope="module", name="ns")
def _ns(kube):
    name = kube.create_namespace("kbs")
    yield name
    kube.api("DELETE", f"/api/v1/namespaces/{name}")


def url(ns, rest=""):
    return f"/apis/{GROUP}/v1alpha1/namespaces/{ns}/kbsconfigs{rest}"


@pytest.mark.parametrize("spec,refusal", CREATE, ids=[label(s) for s, _ in CREATE])
def test_create(kube, ns, spec, refusal):
    answer = kube.api("POST", url(ns, "?dryRun=All&fieldValidation=Strict"), obj(spec))
    check(answer, refusal, 201)
    if refusal is None:  # no default is stored
        assert answer[1].get("spec") == spec


@pytest.mark.parametrize("spec,refusal", TRUSTEE, ids=[label(s) for s, _ in TRUSTEE])
def test_create_a_trusteeconfig(kube, ns, spec, refusal):
    answer = kube.api("POST", trustees(ns, "?dryRun=All&fieldValidation=Strict"), trustee(spec))
    check(answer, refusal, 201)


def test_a_profile_of_tls_is_intermediate_where_none_is_given(kube, ns):
    status, answer = kube.api("POST", trustees(ns, "?dryRun=All"), trustee({**PERMISSIVE, "tlsConfig": {}}))
    assert status == 201 and answer["spec"]["tlsConfig"] == {"profile": "intermediate"}


def test_status_needs_is_ready(kube, ns):
    assert kube.api("POST", url(ns), obj({}, "status"))[0] == 201
    path = url(ns, "/status/status?fieldManager=t&force=true")
    body = obj(None, "status")
    good = {"type": "Ready", "status": "True", "reason": "Ready", "message": "m",
            "lastTransitionTime": "2026-01-01T00:00:00Z", "observedGeneration": 1}
    assert kube.api("PATCH", path, {**body, "status": {"isReady": False, "conditions": [good]}}, "apply")[0] == 200
    status, answer = kube.api("PATCH", url(ns, "/status/status"), {"status": {"isReady": "yes"}}, "merge")
    assert status == 422, answer
    status, answer = kube.api("PUT", url(ns, "/status/status"), {
        **kube.get(url(ns, "/status")), "status": {"conditions": []}})
    assert status == 422 and "isReady" in answer["message"]


def test_samples_are_accepted(kube, ns):
    samples = kube.read_manifests(SAMPLES)
    assert sorted(o["kind"] for o in samples) == ["ConfigMap"] * 4 + ["KbsConfig", "TrusteeConfig"]
    for o in samples:
        o["metadata"]["namespace"] = ns
        path = {"KbsConfig": url(ns), "TrusteeConfig": trustees(ns)}.get(o["kind"], f"/api/v1/namespaces/{ns}/configmaps")
        status, answer = kube.api("POST", path + "?dryRun=All&fieldValidation=Strict", o)
        assert status == 201, json.dumps(answer)
