# SPDX-License-Identifier: MIT
"""What an attacker tries against the API of tec-operator --standalone, one function or more per number,
test_attack_NN_what, as in test_attacks.py. Each was seen to fail on version 0.2.0."""

import base64
import os
import re
import subprocess

import pytest

from conftest import lacking
from kubeapi import KubeAPI
from teckinds import GROUP
from tecproc import operator_binary
from test_standalone import Standalone

NS = "trusted-execution-clusters"
MERGE, STRATEGIC = "application/merge-patch+json", "application/strategic-merge-patch+json"
JSON_PATCH, APPLY = "application/json-patch+json", "application/apply-patch+yaml"


@pytest.fixture(scope="module", name="alone")
def _alone(tmp_path_factory):
    """A server of its own, which must still run at the end of each test."""
    if not os.access(operator_binary(), os.X_OK):
        lacking(f"no {operator_binary()}; next step: make, or set TEC_OPERATOR")
    s = Standalone(str(tmp_path_factory.mktemp("attacks") / "state"), "--listen-kbs=off")
    yield s.start()
    if s.process.poll() is None:
        assert s.stop() == 0, s.log()


@pytest.fixture(name="api")
def _api(alone):
    """The administrator's, on one kept connection. The test fails when the server does not live to its end."""
    if alone.process.poll() is not None:
        alone.start()
    assert alone.api("GET", "/version")[0] == 200
    yield KubeAPI("127.0.0.1", alone.api_port, f"{alone.dir}/ca.crt", certificate=[f"{alone.dir}.client.pem"])
    assert alone.process.poll() is None, f"the server ended:\n{alone.log()[-2000:]}"


# ---- 15: metadata of a wrong type

MACHINES = f"/apis/{GROUP}/v1alpha1/namespaces/{NS}/machines"
CONFIGMAPS = f"/api/v1/namespaces/{NS}/configmaps"
KINDS = {
    MACHINES: {"apiVersion": f"{GROUP}/v1alpha1", "kind": "Machine",
               "spec": {"id": "a0a0a0a0-0000-4000-8000-000000000001"}},
    CONFIGMAPS: {"apiVersion": "v1", "kind": "ConfigMap", "data": {"a": "b"}},
}
VALUES = (None, 1, True, "x", [], {}, [None], [[]], [1], [{}], {"a": None}, {"a": 1})
OWNER = {"apiVersion": "v1", "kind": "ConfigMap", "name": "o", "uid": "u"}
ENTRY = {"manager": "m", "operation": "Update", "apiVersion": "v1", "time": "2026-01-01T00:00:00Z",
         "fieldsType": "FieldsV1", "fieldsV1": {"f:data": {}}}
MEMBERS = ("generateName", "namespace", "selfLink", "uid", "resourceVersion", "generation", "creationTimestamp",
           "deletionTimestamp", "deletionGracePeriodSeconds", "labels", "annotations", "ownerReferences", "finalizers",
           "managedFields", "unknown")


def typed_metadata():
    """Every value at every place but the name."""
    for value in VALUES:
        for name in MEMBERS:
            yield {name: value}
        for name in (*OWNER, "controller", "blockOwnerDeletion"):
            yield {"ownerReferences": [{**OWNER, name: value}]}
        for name in (*ENTRY, "subresource"):
            yield {"managedFields": [{**ENTRY, name: value}]}
        for step in ("f:data", "k:{}", "v:1", "i:0", "."):
            yield {"managedFields": [{**ENTRY, "fieldsV1": {step: value}}]}


def make(api, path, name, **metadata):
    return api("POST", path, {**KINDS[path], "metadata": {"name": name, **metadata}})


@pytest.mark.parametrize("path", KINDS, ids=("custom", "built-in"))
def test_attack_15_one_entry_of_managed_fields_that_is_not_an_object(api, path):
    """json-c ends the process that asks how many members null or a number has."""
    assert make(api, path, "null-entry", managedFields=[None])[0] == 201
    assert make(api, path, "number-entry", managedFields=[1])[0] == 400
    assert make(api, path, "patched")[0] == 201
    for entry in (1, "x", []):
        op = {"op": "add", "path": "/metadata/managedFields", "value": [entry]}
        assert api("PATCH", f"{path}/patched", [op], JSON_PATCH)[0] == 422
    assert api("PATCH", f"{path}/patched", {"metadata": {"managedFields": [None]}}, MERGE)[0] == 200
    for name in ("null-entry", "patched"):
        assert api("DELETE", f"{path}/{name}")[0] == 200


@pytest.mark.parametrize("path", KINDS, ids=("custom", "built-in"))
def test_attack_15_every_type_at_every_place_of_metadata(api, path):
    """What is wrong is refused as kube-apiserver refuses it, by each kind of write."""
    base = KINDS[path]
    assert make(api, path, "typed")[0] == 201
    one = f"{path}/typed"
    for meta in typed_metadata():
        whole = {**base, "metadata": {"name": "typed", **meta}}
        asked = (
            ("POST", f"{path}?dryRun=All", {**base, "metadata": {"name": "new", **meta}}, None, (201, 400, 422, 500)),
            ("PUT", f"{one}?dryRun=All", whole, None, (200, 400, 409, 422)),
            ("PATCH", f"{one}?dryRun=All", {"metadata": meta}, MERGE, (200, 400, 409, 422)),
            ("PATCH", f"{one}?dryRun=All&fieldManager=m&force=true", whole, APPLY, (200, 400, 409, 422, 500)),
        )
        for method, where, body, content_type, codes in asked:
            status, answer = api(method, where, body, content_type)
            assert status in codes, (method, where, body, answer)
    for value in VALUES:
        for where, content_type in ((one, MERGE), (f"{one}/status", MERGE), (one, STRATEGIC)):
            status, answer = api("PATCH", f"{where}?dryRun=All", {"metadata": value}, content_type)
            assert status in (200, 400, 404, 415, 422), (where, value, answer)
        op = {"op": "replace", "path": "/metadata", "value": value}
        assert api("PATCH", f"{one}?dryRun=All", [op], JSON_PATCH)[0] in (400, 422)
    assert api("DELETE", one)[0] == 200


def test_attack_15_key_of_a_megabyte(api):
    """The key of a list's element is written for people: its text was parsed again, which has a limit."""
    owner = {**OWNER, "uid": "<" * 176_000}
    body = {**KINDS[CONFIGMAPS], "metadata": {"name": "keys", "ownerReferences": [owner]}}
    assert api("PATCH", f"{CONFIGMAPS}/keys?fieldManager=m", body, APPLY)[0] == 201


def test_attack_15_apply_of_an_unknown_field_is_refused(api):
    """It was a write each time: the field was dropped after the two were compared."""
    body = {**KINDS[CONFIGMAPS], "metadata": {"name": "unknown"}, "nothing": 1}
    status, answer = api("PATCH", f"{CONFIGMAPS}/unknown?fieldManager=m", body, APPLY)
    assert status == 500 and ".nothing: field not declared in schema" in answer["message"], answer


# ---- 28: who may do what


BINDINGS = f"/apis/rbac.authorization.k8s.io/v1/namespaces/{NS}/rolebindings"


def binding(account, role):
    rbac = "rbac.authorization.k8s.io"
    return {"apiVersion": f"{rbac}/v1", "kind": "RoleBinding", "metadata": {"name": f"{account}-{role}"},
            "roleRef": {"apiGroup": rbac, "kind": "ClusterRole", "name": role},
            "subjects": [{"kind": "ServiceAccount", "name": account, "namespace": NS}]}


def account_with(alone, api, role):
    """The API as a ServiceAccount that has this role."""
    accounts = f"/api/v1/namespaces/{NS}/serviceaccounts"
    for path, body in ((accounts, {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": role}}),
                       (BINDINGS, binding(role, role))):
        status, answer = api("POST", path, body)
        assert status == 201, answer
    status, answer = api("POST", f"{accounts}/{role}/token",
                         {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": {}})
    assert status == 201, answer
    return KubeAPI("127.0.0.1", alone.api_port, f"{alone.dir}/ca.crt", token=answer["status"]["token"])


def test_attack_28_no_role_gives_itself_more(alone, api):
    """Only the administrator writes RoleBindings, and only to the three roles that there are."""
    for role, reads, writes in (("view", False, False), ("tec-follow", True, False), ("cluster-admin", True, True)):
        user, more = account_with(alone, api, role), binding(role, "cluster-admin")
        own = f"{BINDINGS}/{role}-{role}"
        assert user("GET", f"/api/v1/namespaces/{NS}/secrets")[0] == (200 if reads else 403)
        body = {**KINDS[CONFIGMAPS], "metadata": {"name": role}}
        assert user("PATCH", f"{CONFIGMAPS}/{role}?fieldManager=m", body, APPLY)[0] == (201 if writes else 403)
        assert user("GET", own)[0] == 200
        for method, path, given, content_type in (
                ("POST", BINDINGS, more, "application/json"), ("PATCH", own, {"subjects": []}, MERGE),
                ("PATCH", f"{BINDINGS}/{role}-more?fieldManager=m", more, APPLY), ("DELETE", own, None, "application/json"),
                ("DELETE", BINDINGS, None, "application/json")):
            assert user(method, path, given, content_type)[0] == 403, (role, method, path)
        assert user("GET", "/api/v1/namespaces/default/configmaps")[0] == 403
        assert user("GET", "/metrics")[0] == 403
    for kind, name in (("ClusterRole", "admin"), ("Role", "view")):
        body = binding("view", name)
        body["roleRef"]["kind"] = kind
        status, answer = api("POST", BINDINGS, body)
        assert status == 422 and answer["details"]["causes"][0]["reason"] == "FieldValueNotSupported", answer
    assert "\"cluster-admin\", \"tec-follow\", \"view\"" in api("POST", BINDINGS, binding("view", "edit"))[1]["message"]
    assert api("GET", BINDINGS.replace("rolebindings", "roles"))[0] == 404


def openssl(directory, *args):
    subprocess.run(["openssl", *args], check=True, capture_output=True, cwd=directory)


EC = ("-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes")


def authority_of_0_2_0(directory, *args):
    """A directory in use, with the CA of the API as plain files, as version 0.2.0 left them."""
    server = Standalone(directory, "--listen-kbs=off", *args).start()
    assert server.stop() == 0, server.log()
    openssl(directory, "req", "-x509", *EC, "-days", "7000", "-keyout", "ca.key", "-out", "ca.crt",
            "-subj", "/CN=tec-operator CA", "-addext", "keyUsage=critical,keyCertSign,cRLSign")


def certificate(authority, to, use):
    """Paths of a certificate of the authority for a member of system:masters, and its key."""
    (to / "ext").write_text(f"extendedKeyUsage={use}\n" if use else "basicConstraints=CA:FALSE\n")
    openssl(to, "req", *EC, "-keyout", "c.key", "-out", "c.csr", "-subj", "/O=system:masters/CN=somebody")
    openssl(to, "x509", "-req", "-in", "c.csr", "-CA", f"{authority}/ca.crt", "-CAkey", f"{authority}/ca.key",
            "-CAcreateserial", "-days", "2", "-out", "c.crt", "-extfile", "ext")
    return [str(to / "c.crt"), str(to / "c.key")]


def administrator(server, kubeconfig, to):
    """The API by the client certificate of a kubeconfig."""
    with open(kubeconfig, encoding="utf-8") as f:
        text = f.read()
    pem = to / "administrator.pem"
    pem.write_bytes(b"".join(base64.b64decode(re.search(rf"client-{what}-data: *(\S+)", text)[1])
                             for what in ("certificate", "key")))
    return KubeAPI("127.0.0.1", server.api_port, f"{server.dir}/ca.crt", certificate=[str(pem)])


@pytest.mark.parametrize("use, status", (("clientAuth", 200), ("serverAuth", 401), ("codeSigning", 401), (None, 401)))
def test_attack_28_certificate_that_is_not_for_clients(tmp_path, use, status):
    """Any certificate that the API's CA signed, of a server or for no stated use."""
    directory = str(tmp_path / "state")
    authority_of_0_2_0(directory)
    pair = certificate(directory, tmp_path, use)
    server = Standalone(directory, "--listen-kbs=off").start()
    try:
        api = KubeAPI("127.0.0.1", server.api_port, f"{directory}/ca.crt", certificate=pair)
        assert api("GET", f"/api/v1/namespaces/{NS}/secrets")[0] == status
    finally:
        assert server.stop() == 0, server.log()


def keys_in_the_clear(directory):
    found = []
    for name in os.listdir(directory):
        with open(f"{directory}/{name}", "rb") as f:
            data = f.read()
        if b"PRIVATE KEY" in data or b"client-key" in data:
            found.append(name)
    return found


def test_attack_28_copied_directory_without_the_sealing_key(tmp_path):
    """Whoever copied it made an administrator's certificate with ca.key, or took the kubeconfig's, and read every
    Secret of the running server."""
    directory, key, kubeconfig = str(tmp_path / "state"), tmp_path / "sealing", tmp_path / "kubeconfig"
    key.write_bytes(os.urandom(32))
    key.chmod(0o600)
    authority_of_0_2_0(directory, f"--sealing-key={key}")
    with open(f"{directory}/ca.crt", encoding="utf-8") as f:
        ca = f.read()
    server = Standalone(directory, "--listen-kbs=off", f"--sealing-key={key}")
    for args in ((), (f"--write-kubeconfig={kubeconfig}",)):
        server.args = (*server.args, *args)
        server.start()
        try:
            assert not keys_in_the_clear(directory)
            if args:
                api = administrator(server, kubeconfig, tmp_path)
                assert api("GET", f"/api/v1/namespaces/{NS}/secrets")[0] == 200
                assert os.stat(kubeconfig).st_mode & 0o777 == 0o600
        finally:
            assert server.stop() == 0, server.log()
    with open(f"{directory}/ca.crt", encoding="utf-8") as f:
        assert f.read() == ca, "the CA that clients trust is another one"
