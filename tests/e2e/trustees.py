# SPDX-License-Identifier: MIT
"""Trustees for the tests of where they are: a broker behind a proxy of its own, what it holds of a
node, and the Secrets by which the operator reaches it."""

import base64
import json
import os
import subprocess
import time

import pytest

import spine
from controlplane import TOP
from faultproxy import make_identity
from kbsproxy import KbsProxy
from test_spine import joined, luks_key

AUTH = "trustee-auth"
MEMORY = "tec-trustees"
SENTINEL_WORD = "operator"  # the sentinel's name has it; its text differs from Trustee to Trustee


def text_of(path):
    with open(path, encoding="utf-8") as f:
        return f.read()


def der_of(pem):
    """base64 of the SubjectPublicKeyInfo, which is what a PEM is made of."""
    return "".join(line for line in pem.splitlines() if "-----" not in line)


def identity_name(pem):
    """The name of the reference value that lets this key attest."""
    return "ak." + der_of(pem)[44:284].replace("+", "-").replace("/", "_")


def colliding(pem, bits=2):
    """Another key whose identity has the same name: it differs in the modulus's last bits only.
    BITS: which; an even number below 256."""
    der = bytearray(base64.b64decode(der_of(pem)))
    der[-7] ^= bits  # behind the modulus there are the five bytes of the exponent; it stays odd
    b64 = base64.b64encode(der).decode()
    lines = [b64[i:i + 64] for i in range(0, len(b64), 64)]
    return "\n".join(["-----BEGIN PUBLIC KEY-----", *lines, "-----END PUBLIC KEY-----", ""])


class Node:
    """A node that has joined; key: its disk's, as it was then."""

    def __init__(self, uuid, pem, ak, key):
        self.uuid, self.pem, self.ak, self.key = uuid, pem, ak, key
        self.machine = f"machine-{uuid}"


class Place:
    """One Trustee: the broker kbs, and the proxy before it that the operator knows."""

    def __init__(self, kbs, directory):
        self.kbs = kbs
        self.dir = directory
        self.proxy = KbsProxy(kbs.url, directory, kbs.ca)
        self.address = f"127.0.0.1:{self.proxy.port}"
        self.url = self.proxy.url

    def key(self, node):
        """The disk's key as it is there; None when there is none."""
        found = self.kbs.dump()["resources"].get(f"default/{node.uuid}/root")
        return found if found is None else base64.b64decode(found)

    def identity(self, node):
        """The entry with the node's key, in the list that keys of one name share; None when there is none."""
        entries = self.values().get(identity_name(node.pem), [])
        return next((e for e in entries if e["ak"] == der_of(node.pem)), None)

    def values(self):
        """{name: value}, tombstones and the sentinel left out."""
        found = self.kbs.dump()["reference_values"]
        return {name: v["value"] for name, v in found.items()
                if v["value"] is not None and SENTINEL_WORD not in name}

    def holds(self, node):
        return self.key(node) == node.key and \
            self.identity(node) == {"ak": der_of(node.pem), "machine": node.uuid}

    def clean(self, node):
        return self.key(node) is None and self.identity(node) is None

    def policies(self):
        """(attestation policy, resource policy)."""
        dump = self.kbs.dump()
        (resource,) = dump["resource_policies"].values()
        return dump["attestation_policies"]["default_cpu.rego"], resource

    def new_certificate(self, name):
        """The broker shows another one from here on; its file."""
        certificate, _, self.proxy.tls = make_identity(self.dir, name)
        self.proxy.drop()
        return certificate


def signer(directory):
    """A key for tokens, as PEM; its file."""
    file = directory / "signer.pem"
    if not file.exists():
        subprocess.run(["openssl", "genpkey", "-algorithm", "EC", "-pkeyopt", "ec_paramgen_curve:P-256", "-out", file],
                       check=True, capture_output=True)
    return file


def whole_broker(directory):
    """Options of a broker: all of it, as in tec-operator --standalone, over HTTPS; it takes the operator's own policies
    alone."""
    return {"tls": True, "signer": signer(directory), "policies": os.path.join(TOP, "etc")}


@pytest.fixture
def start_place(start_kbs, tmp_path):
    """start_place(beside=None, **options of the broker) -> Place. BESIDE: another one, with whose
    admin key this one is administered too."""
    made = []

    def start(beside=None, **options):
        if beside:
            options.update(private=beside.kbs.private, public=beside.kbs.public)
        # The whole broker, which takes the operator's own policies alone.
        options.setdefault("signer", signer(tmp_path))
        options.setdefault("policies", os.path.join(TOP, "etc"))
        directory = tmp_path / f"place-{len(made)}"
        directory.mkdir()
        made.append(Place(start_kbs(**options), str(directory)))
        return made[-1]

    yield start
    for place in made:
        place.proxy.close()


# Secrets

def make_secret(cp, ns, name, data, owner=None):
    """Made, or given other content."""
    meta = {"name": name, "namespace": ns}
    if owner:
        meta["ownerReferences"] = [owner_reference(owner)]
    cp.apply([{"apiVersion": "v1", "kind": "Secret", "metadata": meta, "type": "Opaque",
               "stringData": data}])


def owner_reference(obj):
    return {"apiVersion": obj["apiVersion"], "kind": obj["kind"], "name": obj["metadata"]["name"],
            "uid": obj["metadata"]["uid"], "controller": True, "blockOwnerDeletion": True}


def make_auth(cp, ns, kbs, name=AUTH, owner=None):
    """The admin's key. OWNER: the cluster object, when the operator is to take it for its own."""
    make_secret(cp, ns, name, {"private.key": text_of(kbs.private), "public.pub": text_of(kbs.public)},
                owner)


def make_ca(cp, ns, name, file):
    make_secret(cp, ns, name, {"ca.crt": text_of(file)})


# The operator's side

def before_the_operator():
    """What was made until now is older than the marker that the first operator in a namespace makes, so that
    it is taken over: timestamps are whole seconds."""
    time.sleep(1.1)


def managed(cp, ns, place, **spec):
    """A cluster whose own Trustee is PLACE; an operator that is started afterwards with
    "--kbs-url", place.url finds its admin key there."""
    cluster = spine.make_cluster(cp, ns, **spec)
    make_auth(cp, ns, place.kbs, owner=cluster)
    before_the_operator()
    return cluster


def holder(place):
    """The uid of the cluster that administers it; "" for none."""
    (sentinel,) = [v["value"] for name, v in place.kbs.dump()["reference_values"].items() if SENTINEL_WORD in name]
    return sentinel["cluster"]


def joins(cp, ns, op, pem=None):
    """A node, as soon as the operator approved its key; delivery is not waited for."""
    pem = pem or spine.rsa_key()
    uuid, _, ak = joined(cp, ns, op, pem)
    return Node(uuid, pem, ak["metadata"]["name"], luks_key(cp, ns, uuid))


def ready(cp, ns, node, timeout=20):
    return spine.wait_condition(cp, ns, "mach", node.machine, "Delivered", "Delivered", timeout)


def delivered(cp, ns, op, *places):
    """A node that joined, whose key and identity every one of PLACES holds."""
    node = joins(cp, ns, op)
    ready(cp, ns, node)
    for place in places:
        assert place.holds(node), (place.kbs.dump(), spine.read(cp, ns, "mach", node.machine))
    return node


def synced(cp, ns, reason="Synced", says="", timeout=20, name="tec"):
    """Waits until TrusteeSynced has this reason and its message has SAYS."""
    def there():
        found = spine.condition(spine.read(cp, ns, "tec", name), "TrusteeSynced")
        return found if found.get("reason") == reason and says in found["message"] else None

    try:
        return cp.wait_for(there, timeout, f"TrusteeSynced={reason} {says!r}")
    except TimeoutError as e:
        raise AssertionError(f"{e}: {json.dumps(spine.read(cp, ns, 'tec', name)['status'])}") from e


def waits(cp, ns, node, says, timeout=20):
    """Waits until the deleted Machine says for whom its finalizer waits, and looks that it does."""
    def told():
        machine = spine.read(cp, ns, "mach", node.machine)
        assert machine, "the Machine is gone before every Trustee has confirmed"
        found = spine.condition(machine, "Delivered")
        return machine if found.get("reason") == "Revoking" and says in found["message"] else None

    machine = cp.wait_for(told, timeout, f"word of {says}")
    assert spine.MACHINE_FINALIZER in machine["metadata"]["finalizers"]
    return machine


def ends(cp, ns, node, timeout=30):
    """The Machine and the Secret of its key are gone."""
    cp.wait_for(lambda: not spine.read(cp, ns, "mach", node.machine), timeout,
                f"the end of {node.machine}")


def memory(cp, ns):
    """What the operator remembers of servers that are not the cluster's own; [] for none."""
    found = spine.read(cp, ns, "configmaps", MEMORY)
    return json.loads(found["data"]["trustees.json"]) if found else []
