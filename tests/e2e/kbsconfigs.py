# SPDX-License-Identifier: MIT
"""KbsConfigs and TrusteeConfigs, and what they name, through a control plane's API."""

import base64
import os

import pytest

from conftest import retarget
from controlplane import TOP, wait_for
from spine import condition

CRDS = os.path.join(TOP, "crd", "trustee")
OVERLAY = os.path.join(TOP, "k8s", "trustee")

GROUP = "confidentialcontainers.org"
PATIENCE = 60


@pytest.fixture(scope="module")
def plane(cp):
    cp.apply_crds(CRDS)
    return cp


@pytest.fixture(scope="module")
def rights(plane):
    found = [o for o in plane.read_manifests(OVERLAY) if o["kind"] in ("ServiceAccount", "Role", "RoleBinding")]
    assert len(found) == 3
    return found


@pytest.fixture
def place(plane, rights, request):
    """A namespace with the rights of k8s/trustee; named by the parameter, else any."""
    name = getattr(request, "param", None)
    if name:
        status, answer = plane.api("POST", "/api/v1/namespaces", {"metadata": {"name": name}})
        assert status == 201, answer
    else:
        name = plane.create_namespace("trustee")
    plane.apply(retarget(rights, name))
    yield name
    plane.api("DELETE", f"/api/v1/namespaces/{name}")


@pytest.fixture
def operator(start_operator):
    def start(ns, *args, **kw):
        return start_operator(ns, "--controllers=trustee", "--role=controller", *args, **kw)
    return start


def url(ns, name=None, plural="kbsconfigs"):
    return f"/apis/{GROUP}/v1alpha1/namespaces/{ns}/{plural}" + (f"/{name}" if name else "")


def make(plane, ns, name, kind=None, **spec):
    made = plane.api("POST", url(ns), {"apiVersion": f"{GROUP}/v1alpha1", "kind": "KbsConfig",
                                       "metadata": {"name": name, **(kind or {})}, "spec": spec})
    assert made[0] == 201, made
    return made[1]


def configmap(plane, ns, name, **data):
    data = {k.replace("__", "-").replace("_DOT_", "."): v for k, v in data.items()}
    put(plane, ns, "configmaps", name, {"data": data})


def secret(plane, ns, name, data):
    put(plane, ns, "secrets", name,
        {"data": {k: base64.b64encode(v.encode()).decode() for k, v in data.items()}})


def put(plane, ns, kind, name, members):
    path = f"/api/v1/namespaces/{ns}/{kind}"
    body = {"metadata": {"name": name}, **members}
    if plane.api("GET", f"{path}/{name}")[0] == 200:
        status, answer = plane.api("PUT", f"{path}/{name}", body)
    else:
        status, answer = plane.api("POST", path, body)
    assert status in (200, 201), answer


def remove(plane, ns, kind, name):
    assert plane.api("DELETE", f"/api/v1/namespaces/{ns}/{kind}/{name}")[0] == 200


def deployment(plane, ns):
    return plane.get(f"/apis/apps/v1/namespaces/{ns}/deployments/trustee-deployment")


def until(plane, ns, name, type_, reason, says="", plural="kbsconfigs"):
    def there():
        status, o = plane.api("GET", url(ns, name, plural))
        c = condition(o, type_) if status == 200 else None
        return o if c and c["reason"] == reason and says in c["message"] else None

    def now():
        return plane.api("GET", url(ns, name, plural))[1].get("status")
    try:
        wait_for(lambda: there() is not None, PATIENCE, f"{type_}={reason} {says}")
    except TimeoutError as e:
        raise AssertionError(f"{e}: {now()}") from e
    return there() or plane.get(url(ns, name, plural))


CURRENT = """[http_server]
sockets = ["0.0.0.0:8080"]
insecure_http = true
[admin]
authorization_mode = "DenyAll"
auth_public_key = "/etc/auth-secret/publicKey"
[storage_backend]
storage_type = "LocalFs"
[storage_backend.backends.local_fs]
dir_path = "/opt/confidential-containers/storage"
[[plugins]]
name = "resource"
storage_backend_type = "kvstorage"
"""


def head(plane, ns, name="kbsconfig-sample", **more):
    """As HEAD's sample, by section 6 of its e2e tests."""
    configmap(plane, ns, "kbs-config", **{"kbs-config.toml": CURRENT})
    configmap(plane, ns, "resource-policy", **{"resource-policy.rego": "package policy\ndefault allow = true\n"})
    configmap(plane, ns, "rvps-reference-values", **{"reference_value": "{}\n"})
    configmap(plane, ns, "attestation-policy", **{"default_cpu.rego": "package policy\n"})
    secret(plane, ns, "kbs-auth-public-key", {"publicKey": "public", "privateKey": "private"})
    secret(plane, ns, "attestation-status", {"status": "success"})
    secret(plane, ns, "vcek-secret", {"vcek.crt": "certificate"})
    return make(plane, ns, name, kbsConfigMapName="kbs-config", kbsAuthSecretName="kbs-auth-public-key",
                kbsDeploymentType="AllInOneDeployment", kbsResourcePolicyConfigMapName="resource-policy",
                kbsRvpsRefValuesConfigMapName="rvps-reference-values",
                kbsAttestationPolicyConfigMapName="attestation-policy", kbsSecretResources=["attestation-status"],
                kbsLocalCertCacheSpec={"secrets": [{"secretName": "vcek-secret", "mountPath": "/etc/kbs/snp/ek"}]},
                KbsEnvVars={"RUST_LOG": "debug"}, **more)
