# SPDX-License-Identifier: MIT
"""What an attacker tries against what the cluster object says: keys without a TPM where disk keys are
shared, a planted TLS Secret, strangers who use up the limit of Machines. One function or more per number,
test_attack_NN_what. Each was seen to fail on version 0.2.0."""

import base64
import functools
import hashlib
import http.client
import json
import os
import shutil
import struct
import subprocess
import time

import pytest

import spine
from guarded import b64, handshake
from marks import Account, Events
from test_attacks import bring_key, fetch
from test_attest import Jwk, error
from test_images import PCR14, pcr4, registry
from test_spine import settled
from test_standalone import Standalone
from test_standalone_attest import NS, approve_image, get, tls
from trustee import base64_of, fast_key

IMAGE = "a"
ALONE = ("--leader-elect=false", "--rate-limit", "off")


class SoftKey:
    """An attestation key outside of any TPM: it signs quotes of the image's public values, in files of
    DIRECTORY. Has what guarded.Evidence has for a handshake."""

    def __init__(self, directory):
        self.private = os.path.join(str(directory), f"{os.urandom(4).hex()}.key")
        subprocess.run(["openssl", "genpkey", "-algorithm", "RSA", "-pkeyopt", "rsa_keygen_bits:2048", "-out",
                        self.private], check=True, capture_output=True)
        self.pem = subprocess.run(["openssl", "pkey", "-in", self.private, "-pubout"], check=True,
                                  capture_output=True).stdout.decode()

    def quote(self, extra):
        values = ["0" * 64] * 24
        values[4], values[14] = pcr4(IMAGE, IMAGE)["value"], PCR14["value"]
        name = b"\x00\x0b" + bytes(32)
        digest = hashlib.sha256(b"".join(bytes.fromhex(v) for v in values)).digest()
        message = (struct.pack(">IHH", 0xff544347, 0x8018, len(name)) + name
                   + struct.pack(">H", len(extra)) + extra + bytes(16) + b"\x01" + bytes(8)
                   + struct.pack(">IHB", 1, 0x000b, 3) + b"\xff\xff\xff" + struct.pack(">H", 32) + digest)
        signature = subprocess.run(["openssl", "dgst", "-sha256", "-sign", self.private], input=message,
                                   check=True, capture_output=True).stdout
        signed = struct.pack(">HHH", 0x0014, 0x000b, len(signature)) + signature
        return {"tpm_quote": {"signature": b64(signed), "message": b64(message), "pcrs": values},
                "ak_public": base64_of(self.pem)}


@pytest.fixture(name="alone")
def _alone(tmp_path):
    """One process with its own broker, and an approved image."""
    s = Standalone(str(tmp_path / "state"), "--public-address=127.0.0.1", f"--insecure-registry={registry()}")
    s.start()
    yield s
    if s.process.poll() is None:
        assert s.stop() == 0, s.log()


def disk_key_of(alone, uuid):
    """What the administrator sees."""
    secret = alone.wait_for(lambda: alone.get(spine.path_of(NS, "secrets", uuid)), 30, "the disk key")
    return base64.b64decode(secret["data"]["root"])


def joined(alone, pem):
    """UUID of a node whose Machine is ready."""
    uuid = spine.first_boot(alone)
    assert spine.register(alone, pem, uuid)[0] == 201
    spine.wait_condition(alone, NS, "mach", f"machine-{uuid}", "Ready", "AllReady", 60)
    return uuid


# ---- 16


def steal(alone, evidence, key, uuid):
    """(status, body) of the disk key of this Machine, for an attestation that was taken."""
    status, cookie, body = handshake(alone.kbs, evidence, key=key.public, context=tls(alone))
    assert status == 200, body
    status, _, body = get(alone, cookie, f"default/{uuid}/root")
    return status, body


@pytest.mark.skipif(not shutil.which("jose"), reason="apt-get install jose")
def test_attack_16_shared_gives_a_key_without_a_tpm_and_says_so(alone, tmp_path):
    """The way it is documented: what the cluster says about it is new."""
    approve_image(alone, IMAGE)
    stranger, key = SoftKey(tmp_path), Jwk(str(tmp_path), {"kty": "EC", "crv": "P-256"}, "ECDH-ES+A256KW")
    victim = joined(alone, spine.rsa_key())
    joined(alone, stranger.pem)
    spine.wait_condition(alone, NS, "tec", "tec", "KeysIsolated", "PerMachine")
    status, body = steal(alone, stranger, key, victim)
    assert (status, error(body)[0]) == (401, "PolicyDeny")

    events = Events(alone, NS)
    spine.merge(alone, NS, "tec", "tec", {"spec": {"trustee": {"keyIsolation": "Shared"}}})
    cluster = spine.wait_condition(alone, NS, "tec", "tec", "KeysIsolated", "SharedWithStrangers")
    told = spine.condition(cluster, "KeysIsolated")
    assert told["status"] == "False"
    for part in ("every client that can reach registration and Trustee", "knows a Machine's UUID",
                 "can get that Machine's disk key", "PerMachine", "approval to Manual", "mode to Manual"):
        assert part in told["message"], told
    event = events.wait(told["message"], reason="SharedWithStrangers")
    assert event["type"] == "Warning" and event["regarding"]["name"] == "tec"
    alone.wait_for(lambda: steal(alone, stranger, key, victim)[0] == 200, 30, "the policy of Shared")
    status, body = steal(alone, stranger, key, victim)
    assert status == 200 and key.open(body) == disk_key_of(alone, victim)

    assert alone.stop() == 0
    alone.start()
    spine.merge(alone, NS, "tec", "tec", {"spec": {"registration": {"approval": "Manual"}}})
    spine.wait_condition(alone, NS, "tec", "tec", "KeysIsolated", "SharedAmongNodes")
    assert len(events.named("tec", reason="SharedWithStrangers")) == 1, "once per change"
    spine.merge(alone, NS, "tec", "tec", {"spec": {"trustee": {"keyIsolation": "PerMachine"}}})
    spine.wait_condition(alone, NS, "tec", "tec", "KeysIsolated", "PerMachine")
    alone.wait_for(lambda: steal(alone, stranger, key, victim)[0] == 401, 30, "the policy of PerMachine")


def test_attack_16_delivery_by_volumes_is_named(cp, ns, start_operator):
    """It requires Shared, so who has Trustee v0.17 hears what that means."""
    events = Events(cp, ns)
    spine.make_cluster(cp, ns, trustee={"delivery": "Volumes", "keyIsolation": "Shared"})
    start_operator(ns, *ALONE)
    cluster = spine.wait_condition(cp, ns, "tec", "tec", "KeysIsolated", "SharedWithStrangers")
    assert "delivery Volumes requires Shared" in spine.condition(cluster, "KeysIsolated")["message"]
    assert events.wait("tec", reason="SharedWithStrangers")["type"] == "Warning"


# ---- 23


def ca_sha256(certificate):
    """Of the one certificate in ca.crt, as openssl and an administrator have it."""
    return hashlib.sha256(base64.b64decode(base64_of(certificate["ca.crt"]))).hexdigest()


def tls_secret(name, certificate):
    data = {k: base64.b64encode(certificate[k].encode()).decode() for k in ("tls.crt", "tls.key", "ca.crt")}
    return {"metadata": {"name": name}, "type": "kubernetes.io/tls", "data": data}


def ignition(op):
    """(status, the CA that a node is told to trust for Trustee)."""
    status, _, body = spine.request(op.register_port, "GET", "/ignition")
    return status, spine.clevis_config(json.loads(body))["servers"][0]["cert"] if status == 200 else None


def planted(cp, ns, name, certificate):
    """A TLS Secret by an account that may create Secrets and nothing else."""
    planter = Account(cp, ns, "planter", "create")
    status, answer = planter.post_secret(tls_secret(name, certificate))
    assert status == 201, answer


def test_attack_23_a_planted_ca_is_not_listed(cp, ns, start_operator, tmp_path):
    """A stranger waits for the name of a Secret that does not exist yet: no node hears of his CA, also
    not beside the right one."""
    ours, his = (spine.make_certificate(str(tmp_path), name) for name in ("ours", "his"))
    spine.make_cluster(cp, ns, trusteeSecret="later", tls={"caSHA256": [ca_sha256(ours)]})
    op = start_operator(ns, *ALONE)
    assert ignition(op)[0] == 503
    events = Events(cp, ns)
    planted(cp, ns, "later", {**his, "ca.crt": ours["ca.crt"] + his["ca.crt"]})
    cluster = spine.wait_condition(cp, ns, "tec", "tec", "Installed", "Refused")
    told = spine.condition(cluster, "Installed")
    assert told["status"] == "False"
    assert "Secret later (trusteeSecret) is refused" in told["message"] and ca_sha256(his) in told["message"]
    assert ca_sha256(ours) not in told["message"], "that one is listed"
    events.wait("tec", ca_sha256(his), reason="Refused")
    assert ignition(op) == (503, None)
    cluster = spine.wait_condition(cp, ns, "tec", "tec", "TrusteeSynced", "NotAvailable")
    assert "spec.tls.caSHA256 does not list" in spine.condition(cluster, "TrusteeSynced")["message"]
    op.restart()
    assert ignition(op) == (503, None)
    assert not spine.items(cp, ns, "mach")

    spine.delete(cp, ns, "secrets", "later")
    spine.make_tls_secret(cp, ns, "later", ours)
    cp.wait_for(lambda: ignition(op) == (200, ours["ca.crt"]), 20, "an answer with the right CA")
    cp.wait_for(lambda: spine.condition(spine.read(cp, ns, "tec", "tec"), "Installed")["reason"] != "Refused", 20,
                "the refusal over")


@pytest.mark.parametrize("field", ["registerServerSecret", "attestationKeyRegisterSecret"])
def test_attack_23_a_listener_does_not_serve_with_it(cp, ns, start_operator, tmp_path, field):
    """Not in plain text either."""
    ours, his = (spine.make_certificate(str(tmp_path), name) for name in ("ours", "his"))
    spine.make_cluster(cp, ns, **{field: "later"}, tls={"caSHA256": [ca_sha256(ours)]})
    op = start_operator(ns, *ALONE)
    planted(cp, ns, "later", his)
    spine.wait_condition(cp, ns, "tec", "tec", "Installed", "Refused")
    port = op.register_port if field.startswith("register") else op.register_ak_port
    for how in ({}, {"cafile": his["file"]}):
        with pytest.raises((OSError, http.client.HTTPException)):
            spine.request(port, "GET", "/", **how)
    spine.delete(cp, ns, "secrets", "later")
    spine.make_tls_secret(cp, ns, "later", ours)
    cp.wait_for(lambda: answers(port, ours["file"]), 20, "the listener with the right certificate")


def answers(port, cafile):
    try:
        return spine.request(port, "GET", "/", cafile=cafile)[0] == 404
    except (OSError, http.client.HTTPException):
        return False


def test_attack_23_without_a_list_it_is_reported_once(cp, ns, start_operator, tmp_path):
    """It is served as before; a person can see whose CA it is."""
    his = spine.make_certificate(str(tmp_path), "his")
    events = Events(cp, ns)
    spine.make_cluster(cp, ns, trusteeSecret="later")
    op = start_operator(ns, *ALONE)
    time.sleep(1.1)  # creationTimestamp is in whole seconds
    planted(cp, ns, "later", his)
    event = events.wait("tec", "Secret later", ca_sha256(his), reason="TLSSecretIsYounger")
    assert event["type"] == "Warning" and "spec.tls.caSHA256" in event["note"]
    assert ignition(op) == (200, his["ca.crt"])
    op.restart()
    spine.merge(cp, ns, "secrets", "later", {"metadata": {"labels": {"a": "b"}}})
    settled(cp, ns)
    found = events.named("tec", reason="TLSSecretIsYounger")
    assert len(found) == 1 and "series" not in found[0], found


# ---- 22


def test_attack_22_one_source_does_not_use_up_the_limit_of_machines(make_world):
    """With AtKey a random number is a key, and its Machine is bound at once and for good: nothing that waits
    is counted."""
    world = make_world().start("--rate-limit", "off", registration={"machine": "AtKey", "machineLimit": 64})
    bring = functools.partial(bring_one, world.op)
    his = [bring("127.0.0.2") for _ in range(16)]
    assert {status for status, _ in his} == {201}, his
    for _, uuid in his:
        world.ready(uuid)
    refused = [bring("127.0.0.2") for _ in range(4)]
    assert {status for status, _ in refused} == {503}, "more than a quarter of machineLimit"
    status, uuid = bring("127.0.0.3")
    assert status == 201, "an honest node has no place left"
    world.ready(uuid)
    text = f"{len(his) + 1} for a registered key alone"
    # Counts are written once a minute, and with a changed spec.
    spine.merge(world.cp, world.ns, "tec", "tec", {"spec": {"registration": {"pendingLimit": 9999}}})
    world.until(lambda: text in spine.condition(world.read("tec", "tec"), "RegistrationOpen")["message"],
                "the count of what a key alone made")


def bring_one(op, source):
    """(status, uuid) of somebody who asks for an id and brings a key for it."""
    status, uuid = fetch(op, source)
    return (status, uuid) if status != 200 else (bring_key(op, fast_key(), uuid, source)[0], uuid)
