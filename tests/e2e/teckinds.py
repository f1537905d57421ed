# SPDX-License-Identifier: MIT
"""Our kinds as the tests of crd/ and k8s/ make them through ControlPlane.api()."""

GROUP = "trusted-execution-clusters.io"
KINDS = {"tec": ("TrustedExecutionCluster", "trustedexecutionclusters"),
         "mach": ("Machine", "machines"),
         "ak": ("AttestationKey", "attestationkeys"),
         "ai": ("ApprovedImage", "approvedimages")}
ID = "3f1c2b9a-6d0e-4c53-9a7b-2f8e5d104c6f"
OTHER_ID = "00000000-0000-4000-8000-000000000001"
IMAGE = "quay.io/x/fedora-coreos@sha256:" + "0" * 64


def url(kind, namespace, name=None, query=""):
    path = f"/apis/{GROUP}/v1alpha1/namespaces/{namespace}/{KINDS[kind][1]}"
    return path + (f"/{name}" if name else "") + query


def obj(kind, spec, name=None, **meta):
    body = {"apiVersion": f"{GROUP}/v1alpha1", "kind": KINDS[kind][0],
            "metadata": {"name": name, **meta} if name else {"generateName": "t-", **meta}}
    if spec is not None:
        body["spec"] = spec
    return body


def made(cp, kind, namespace, spec, name=None, **meta):
    status, body = cp.api("POST", url(kind, namespace), obj(kind, spec, name, **meta))
    assert status == 201, body
    return body


def condition(kind="Ready", status="True", reason="Because", **kw):
    return {"type": kind, "status": status, "reason": reason, "message": "A sentence.",
            "lastTransitionTime": "2026-01-02T03:04:05Z", "observedGeneration": 1, **kw}
