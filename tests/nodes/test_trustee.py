# SPDX-License-Identifier: MIT
"""What Trustee in its Pod refuses to who comes from outside: the broker of the tests, or the real one of TEC_TEST_KBS_BIN."""

import base64
import json

import pytest
from controlplane import wait_for
from install import NS
from spine import condition, read, rsa_key

V0 = "/kbs/v0"
RESOURCE = V0 + "/resource/default/{uuid}/root"


def b64url(value):
    return base64.urlsafe_b64encode(json.dumps(value).encode()).rstrip(b"=").decode()


UNSIGNED = f"{b64url({'alg': 'none', 'typ': 'JWT'})}.{b64url({'exp': 4102444800, 'iat': 0})}."
TOKENS = {"nobody": {}, "no-token": {"Authorization": "Bearer x"}, "unsigned": {"Authorization": f"Bearer {UNSIGNED}"}}
ASKED = {"key": ("GET", RESOURCE, None), "new-key": ("POST", RESOURCE, "mine"),
         "resource-policy": ("POST", V0 + "/resource-policy", json.dumps({"policy": b64url("allow")})),
         "attestation-policy": ("POST", V0 + "/attestation-policy", json.dumps(
             {"type": "rego", "policy_id": "default_cpu", "policy": b64url("allow")})),
         "attest": ("POST", V0 + "/attest", json.dumps({"tee-pubkey": {}, "tee-evidence": {}}))}


@pytest.fixture(scope="module")
def machine(installed):
    """(uuid, disk key) of one whose key Trustee has."""
    uuid = installed.register(rsa_key())
    wait_for(lambda: condition(installed.machine(uuid), "Delivered").get("status") == "True", 120, "delivered key", interval=0.3)
    return uuid, base64.b64decode(read(installed.cluster, NS, "secrets", uuid)["data"]["root"]).decode()


@pytest.mark.parametrize("who", TOKENS)
@pytest.mark.parametrize("what", ASKED)
def test_it_refuses(installed, machine, what, who):
    uuid, key = machine
    method, path, body = ASKED[what]
    got = installed.ask("kbs-service", path.format(uuid=uuid), method=method, body=body,
                        headers={"Content-Type": "application/json", **TOKENS[who]})
    assert 400 <= got.get("status", 0) < 500, got
    assert json.loads(key)["key"] not in got["body"], "it gave the key"
