# SPDX-License-Identifier: MIT
"""What an attacker tries against what the cluster object says: keys without a TPM where disk keys are
shared, a planted TLS Secret, strangers who use up the limit of Machines. One function or more per number,
test_attack_NN_what. Each was seen to fail on version 0.2.0."""

import base64
import hashlib
import os
import shutil
import struct
import subprocess

import pytest

import spine
from guarded import b64, handshake
from marks import Events
from test_attest import Jwk, error
from test_images import PCR14, pcr4, registry
from test_standalone import Standalone
from test_standalone_attest import NS, approve_image, get, tls
from trustee import base64_of

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
