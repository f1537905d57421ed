# SPDX-License-Identifier: MIT
"""What the end-to-end tests do again and again: make a cluster object, be a node, look at objects."""

import http.client
import json
import ssl
import subprocess
import time
import uuid as uuids

from controlplane import PATIENCE
from teckinds import GROUP, KINDS, made, url

MACHINE_FINALIZER = f"finalizer.machine.{GROUP}"
SECRET_FINALIZER = f"{GROUP}/attestationkey-secret-finalizer"
KEY_SHA256 = f"{GROUP}/luks-key-sha256"


def path_of(ns, kind, name=None):
    """KIND: a short name of teckinds, or a core or apps plural."""
    if kind in KINDS:
        return url(kind, ns, name)
    group = "/apis/apps/v1" if kind == "deployments" else "/api/v1"
    path = f"{group}/namespaces/{ns}/{kind}"
    return f"{path}/{name}" if name else path


def make_cluster(cp, ns, name="tec", **spec):
    spec.setdefault("publicTrusteeAddr", "trustee.example.org:8443")
    spec.setdefault("publicAttestationKeyRegisterAddr", "register.example.org:8001")
    return made(cp, "tec", ns, spec, name)


def read(cp, ns, kind, name):
    """The object, or None when there is none."""
    status, answer = cp.api("GET", path_of(ns, kind, name))
    assert status in (200, 404), answer
    return answer if status == 200 else None


def items(cp, ns, kind):
    return cp.get(path_of(ns, kind))["items"]


def delete(cp, ns, kind, name):
    status, answer = cp.api("DELETE", path_of(ns, kind, name))
    assert status in (200, 202), answer


def since_now(cp, ns):
    """The operator's first start here is at the latest now: what is older has been taken over, what
    comes is younger."""
    time.sleep(1.1)  # a creationTimestamp has seconds
    cp.api("POST", path_of(ns, "configmaps"), {"metadata": {"name": "tec-operator-since"}})
    assert read(cp, ns, "configmaps", "tec-operator-since")
    time.sleep(1.1)


def merge(cp, ns, kind, name, patch):
    status, answer = cp.api("PATCH", path_of(ns, kind, name), patch, "application/merge-patch+json")
    assert status == 200, answer
    return answer


def condition(obj, kind):
    """{'status', 'reason', 'message', …} of one condition; {} when it is not there."""
    found = [c for c in (obj or {}).get("status", {}).get("conditions", []) if c["type"] == kind]
    return found[0] if found else {}


def wait_condition(cp, ns, kind, name, type_, reason, timeout=20):
    def there():
        obj = read(cp, ns, kind, name)
        return obj if condition(obj, type_).get("reason") == reason else None

    try:
        return cp.wait_for(there, timeout, f"{kind} {name} {type_}={reason}")
    except TimeoutError as e:
        raise AssertionError(f"{e}: {json.dumps(read(cp, ns, kind, name), indent=1)}") from e


def request(port, method, path, body=None, headers=None, cafile=None, timeout=20):
    """(status, headers, body bytes) of one request on a connection of its own."""
    if cafile:
        context = ssl.create_default_context(cafile=cafile)
        conn = http.client.HTTPSConnection("localhost", port, timeout=timeout, context=context)
    else:
        conn = http.client.HTTPConnection("127.0.0.1", port, timeout=timeout)
    try:
        conn.request(method, path, body, headers or {})
        answer = conn.getresponse()
        return answer.status, dict(answer.getheaders()), answer.read()
    finally:
        conn.close()


def machine_at_request(cp, ns):
    """A Machine for each node that asks for its configuration, which is the default of a cluster, not of --standalone."""
    merge(cp, ns, "tec", "tec", {"spec": {"registration": {"machine": "AtRequest"}}})


def trusted(op, kw):
    """kw with the CA of an operator whose listeners have TLS."""
    return {"cafile": getattr(op, "cafile", None), **kw}


def asked(op, **kw):
    """The pin's configuration in the Ignition that a new node is given."""
    status, _, body = request(op.register_port, "GET", "/ignition", **trusted(op, kw))
    assert status == 200, body
    return clevis_config(json.loads(body))


def first_boot(op, **kw):
    """What a node does first: its uuid, from the Ignition it was given."""
    return asked(op, **kw)["path"].split("/")[1]


def clevis_config(ignition):
    return json.loads(ignition["storage"]["luks"][0]["clevis"]["custom"]["config"])


def register(op, pem, uuid=None, method="PUT", **kw):
    """(status, answer) of a key registration."""
    body = {"public_key": pem}
    if uuid:
        body["uuid"] = uuid
    status, _, answer = request(op.register_ak_port, method, "/register-ak", json.dumps(body),
                                {"Content-Type": "application/json"}, **trusted(op, kw))
    return status, json.loads(answer)


def node_joins(op, pem, revive, deadline=60):
    """A node as it behaves: asks again until it is answered, whatever happens to the operator meanwhile."""
    end = time.monotonic() + deadline * PATIENCE
    uuid = None
    while time.monotonic() < end:
        revive()
        try:
            if not uuid:
                uuid = first_boot(op, timeout=5)
            status, _ = register(op, pem, uuid, timeout=5)
            if status in (201, 409):
                return uuid
        except (OSError, AssertionError):
            pass
        time.sleep(0.1)
    raise AssertionError("the node never got through")


def new_uuid():
    return str(uuids.uuid4())


def rsa_key(bits=2048):
    """PEM SubjectPublicKeyInfo of a fresh RSA key: an attestation key without a TPM."""
    private = subprocess.run(
        ["openssl", "genpkey", "-algorithm", "RSA", "-pkeyopt", f"rsa_keygen_bits:{bits}"],
        check=True, capture_output=True).stdout
    return subprocess.run(["openssl", "pkey", "-pubout"], input=private, check=True,
                          capture_output=True).stdout.decode()


NAMES = ("DNS:localhost", "IP:127.0.0.1", "DNS:trustee.example.org", "DNS:register.example.org")


def make_certificate(directory, name="localhost", days=2, names=NAMES):
    """{'tls.crt', 'tls.key', 'ca.crt'} as PEM text, 'file' of the CA; for localhost and the addresses of
    make_cluster(). A CA and a leaf (days < 0: that has expired): stock attesters refuse a server that
    shows its own CA (CaUsedAsEndEntity)."""
    at = f"{directory}/{name}"
    with open(f"{at}.ext", "w", encoding="ascii") as f:
        f.write("basicConstraints=critical,CA:FALSE\nkeyUsage=critical,digitalSignature\n"
                f"extendedKeyUsage=serverAuth\nsubjectAltName={','.join(names)}\n")
    new = ["openssl", "req", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes"]
    for argv in (
            [*new, "-x509", "-keyout", f"{at}-ca.key", "-out", f"{at}-ca.crt", "-days", str(max(days, 2)), "-subj",
             f"/CN={name} CA", "-addext", "basicConstraints=critical,CA:TRUE", "-addext",
             "keyUsage=critical,keyCertSign,cRLSign"],
            [*new, "-keyout", f"{at}.key", "-out", f"{at}.csr", "-subj", f"/CN={name}"],
            ["openssl", "x509", "-req", "-in", f"{at}.csr", "-CA", f"{at}-ca.crt", "-CAkey", f"{at}-ca.key",
             "-CAcreateserial", "-out", f"{at}.crt", "-days", str(days), "-extfile", f"{at}.ext"]):
        subprocess.run(argv, check=True, capture_output=True)
    text = {}
    for member, file in (("tls.crt", f"{at}.crt"), ("tls.key", f"{at}.key"), ("ca.crt", f"{at}-ca.crt")):
        with open(file, encoding="ascii") as f:
            text[member] = f.read()
    return {**text, "file": f"{at}-ca.crt"}


def make_tls_secret(cp, ns, name, certificate):
    data = {k: certificate[k] for k in ("tls.crt", "tls.key", "ca.crt")}
    cp.apply([{"apiVersion": "v1", "kind": "Secret", "metadata": {"name": name, "namespace": ns},
               "type": "kubernetes.io/tls", "stringData": data}])
