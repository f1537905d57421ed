# SPDX-License-Identifier: MIT
"""The embedded broker's side towards nodes: a node with a software TPM, a client written from the protocol's
text, and Debian's jose to open what it gets; directly and through the guard."""

import base64
import json
import os
import shutil
import subprocess

import pytest

import softtpm
from controlplane import TOP
from guarded import Evidence, Guard, ask, attest_body, binding, handshake
from kbs import b64url

UUID, OTHER = "11111111-2222-4333-8444-555555555555", "99999999-2222-4333-8444-555555555555"
SECRET = b'{"key_type":"oct","key":"MTIzNDU2Nzg5MDEyMzQ1Njc4OTAxMjM0"}'
AUTH = {"version": "0.4.0", "tee": "tpm", "extra-params": {"supported-hash-algorithms": ["sha384"]}}

pytestmark = [
    pytest.mark.skipif(softtpm.missing() is not None, reason=str(softtpm.missing())),
    pytest.mark.skipif(not shutil.which("jose"), reason="apt-get install jose"),
]


@pytest.fixture(scope="module")
def tpm():
    with softtpm.SoftwareTPM() as t:
        yield t


@pytest.fixture(scope="module")
def evidence(tpm):
    return Evidence(tpm)


@pytest.fixture(scope="module")
def other(tpm):
    return Evidence(tpm, "other")


class Jwk:
    """A key of the node's TEE, by jose."""

    def __init__(self, directory, template, alg):
        self.file = os.path.join(directory, f"{alg}.jwk")
        subprocess.run(["jose", "jwk", "gen", "-i", json.dumps(template), "-o", self.file], check=True)
        with open(self.file, encoding="ascii") as f:
            whole = json.load(f)
        self.public = {"kty": whole["kty"], "alg": alg,
                       **{name: whole[name] for name in ("crv", "x", "y", "n", "e") if name in whole}}

    def open(self, jwe):
        done = subprocess.run(["jose", "jwe", "dec", "-i", "-", "-k", self.file], input=jwe, capture_output=True,
                              check=False)
        assert done.returncode == 0, done.stderr
        return done.stdout


@pytest.fixture
def p256(tmp_path):
    return Jwk(str(tmp_path), {"kty": "EC", "crv": "P-256"}, "ECDH-ES+A256KW")


def file(name):
    with open(os.path.join(TOP, "etc", name), encoding="utf-8") as f:
        return f.read()


def set_policies(kbs, attestation="tpm.rego", resource="resource.rego"):
    for path, more, name in (("attestation-policy", {"type": "rego", "policy_id": "default_cpu"}, attestation),
                             ("resource-policy", {}, resource)):
        text = name if "\n" in name else file(name)
        got = kbs.ask("POST", f"/kbs/v0/{path}", json.dumps({"policy": b64url(text.encode()), **more}))
        assert got.status == 200, got


def name_of(ak):
    return "ak." + ak[44:284].replace("+", "-").replace("/", "_")


def approve(kbs, evidence, machine=UUID):
    pcrs = evidence.pcrs()
    kbs.set_values({name_of(evidence.ak_public): {"ak": evidence.ak_public, "machine": machine},
                    f"boot.{pcrs[4]}.{pcrs[14]}": {"images": ["coreos"]}})


@pytest.fixture
def broker(start_kbs, tmp_path):
    """A broker with the operator's policies, two Machines' keys, and nothing approved."""
    signer = tmp_path / "signer.pem"
    subprocess.run(["openssl", "genpkey", "-algorithm", "EC", "-pkeyopt", "ec_paramgen_curve:P-256", "-out", signer],
                   check=True, capture_output=True)
    kbs = start_kbs(signer=signer, policies=os.path.join(TOP, "etc"))
    kbs.needs_control()
    set_policies(kbs)
    for uuid, body in ((UUID, SECRET), (OTHER, b"another's")):
        assert kbs.ask("POST", f"/kbs/v0/resource/default/{uuid}/root", body).status == 200
    return kbs


def error(body):
    return json.loads(body)["type"].rpartition("/")[2], json.loads(body)["detail"]


def get(port, cookie, path=f"default/{UUID}/root"):
    return ask(port, "GET", f"/kbs/v0/resource/{path}", None, {"Cookie": cookie} if cookie else {})


@pytest.mark.parametrize("crv", ["P-256", "P-521"])
def test_a_node_gets_its_key_and_no_other(broker, evidence, tmp_path, crv):
    key = Jwk(str(tmp_path), {"kty": "EC", "crv": crv}, "ECDH-ES+A256KW")
    approve(broker, evidence)
    status, cookie, body = handshake(broker.port, evidence, key=key.public)
    assert status == 200, body
    status, _, body = get(broker.port, cookie)
    assert status == 200, body
    assert key.open(body) == SECRET
    status, _, body = get(broker.port, cookie, f"default/{OTHER}/root")
    assert (status, error(body)[0]) == (401, "PolicyDeny")


def test_rsa_keys_are_wrapped_to_as_rfc_7518_says(broker, evidence, tmp_path):
    """By openssl: Debian's jose uses SHA-1 in the mask of RSA-OAEP-256."""
    pem = tmp_path / "rsa.pem"
    subprocess.run(["openssl", "genrsa", "-out", pem, "2048"], check=True, capture_output=True)
    modulus = subprocess.run(["openssl", "rsa", "-in", pem, "-noout", "-modulus"], check=True, capture_output=True,
                             text=True).stdout.strip().partition("=")[2]
    key = {"kty": "RSA", "alg": "RSA-OAEP-256", "n": b64url(bytes.fromhex(modulus)), "e": "AQAB"}
    approve(broker, evidence)
    _, cookie, _ = handshake(broker.port, evidence, key=key)
    status, _, body = get(broker.port, cookie)
    assert status == 200, body
    wrapped = json.loads(body)["encrypted_key"]
    done = subprocess.run(
        ["openssl", "pkeyutl", "-decrypt", "-inkey", pem, "-pkeyopt", "rsa_padding_mode:oaep",
         "-pkeyopt", "rsa_oaep_md:sha256", "-pkeyopt", "rsa_mgf1_md:sha256"],
        input=base64.urlsafe_b64decode(wrapped + "=="), capture_output=True, check=False)
    assert done.returncode == 0 and len(done.stdout) == 32, done.stderr


def test_the_token_says_what_trustees_says(broker, evidence, p256):
    approve(broker, evidence)
    _, _, body = handshake(broker.port, evidence, key=p256.public)
    token = json.loads(body)["token"]
    header, claims = (json.loads(base64.urlsafe_b64decode(part + "==")) for part in token.split(".")[:2])
    assert header["alg"] == "ES256" and header["jwk"]["crv"] == "P-256"
    cpu = claims["submods"]["cpu0"]
    assert cpu["ear.status"] == "affirming"
    assert cpu["ear.trustee.identifiers"] == {"validated": {"machine": UUID, "images": ["coreos"]}}
    assert cpu["ear.veraison.annotated-evidence"]["tpm"]["ak_public"] == evidence.ak_public
    assert cpu["ear.veraison.annotated-evidence"]["runtime_data_claims"]["tee-pubkey"] == p256.public
    # As a bearer it is as good, elsewhere and changed it is not.
    path = f"/kbs/v0/resource/default/{UUID}/root"
    assert ask(broker.port, "GET", path, None, {"Authorization": f"Bearer {token}"})[0] == 200
    changed = token[:-9] + ("B" if token[-9] == "A" else "A") + token[-8:]
    assert ask(broker.port, "GET", path, None, {"Authorization": f"Bearer {changed}"})[0] == 401


def test_what_is_not_approved_is_refused_and_the_log_says_why(broker, evidence, other, p256):
    status, cookie, _ = handshake(broker.port, evidence, key=p256.public)
    assert status == 200 and error(get(broker.port, cookie)[2])[0] == "PolicyDeny"
    assert 'why="Its attestation key is not registered for a Machine. ' in broker.log_text()
    approve(broker, evidence)
    status, cookie, _ = handshake(broker.port, other, key=p256.public)
    assert status == 200 and error(get(broker.port, cookie)[2])[0] == "PolicyDeny"
    pcrs = evidence.pcrs()
    broker.set_values({f"boot.{pcrs[4]}.{pcrs[14]}": None, f"boot.{'ab' * 32}.{pcrs[14]}": {"images": ["near"]},
                       f"boot.{'ab' * 32}.{'cd' * 32}": {"images": ["far"]}})
    _, cookie, _ = handshake(broker.port, evidence, key=p256.public)
    assert error(get(broker.port, cookie)[2])[0] == "PolicyDeny"
    assert f'why="The boot is not approved: PCR 4 is {pcrs[4]}, expected {"ab" * 32}. ' \
        "The nearest approved image is near. " in broker.log_text()


def test_a_revoked_node_gets_nothing(broker, evidence, p256):
    approve(broker, evidence)
    _, cookie, _ = handshake(broker.port, evidence, key=p256.public)
    assert get(broker.port, cookie)[0] == 200
    assert broker.ask("DELETE", f"/kbs/v0/resource/default/{UUID}/root").status == 200
    status, _, body = get(broker.port, cookie)
    assert (status, error(body)[0]) == (404, "ResourceNotFound")
    broker.set_values({name_of(evidence.ak_public): None})
    _, cookie, _ = handshake(broker.port, evidence, key=p256.public)
    assert error(get(broker.port, cookie)[2])[0] == "PolicyDeny"


def test_quotes_over_chosen_registers_are_refused(broker, tpm, evidence, p256):
    approve(broker, evidence)
    status, _, body = handshake(
        broker.port, evidence, key=p256.public,
        selection="sha256:0,1,2,3,16+sha256:5,6,7,8,9,10,11,12,13,23+sha256:15,16,17,18,19,20,21,22,23",
        order=[0, 1, 2, 3, 16, 5, 6, 7, 8, 9, 10, 11, 12, 13, 23] + list(range(15, 24)))
    assert status == 401 and "not a quote over exactly PCR 0 to 23" in error(body)[1]
    assert "flaw=quote" in broker.log_text()


def test_replays_and_strange_sessions_are_refused(broker, evidence, p256):
    approve(broker, evidence)

    def begin():
        status, headers, body = ask(broker.port, "POST", "/kbs/v0/auth", AUTH)
        assert status == 200
        return headers["Set-Cookie"].partition(";")[0], json.loads(body)["nonce"]

    def send(cookie, body):
        status, _, answer = ask(broker.port, "POST", "/kbs/v0/attest", body, {"Cookie": cookie} if cookie else {})
        return status, answer

    first, nonce = begin()
    body = attest_body(nonce, evidence.quote(binding(nonce, key=p256.public)[:32]), key=p256.public)
    second, _ = begin()
    assert send(second, body)[0] == 401  # another session's
    assert send(second, body)[0] == 401  # and that one has ended
    assert send(None, body)[0] == 401
    assert send("kbs-session-id=" + "0" * 32, body)[0] == 401
    status, answer = send(first, body)
    assert status == 200
    assert send(first, body) == (200, answer)  # attested stays attested, with the same token
    third, _ = begin()
    assert send(third, body)[0] == 401  # a replayed quote


def test_policies_that_are_not_the_operators_are_refused(broker):
    for path, more in (("attestation-policy", {"policy_id": "default_cpu"}), ("resource-policy", {})):
        text = b"package policy\nimport rego.v1\ndefault allow := true\n"
        got = broker.ask("POST", f"/kbs/v0/{path}", json.dumps({"policy": b64url(text), **more}))
        assert got.status == 400 and "does not interpret Rego" in got.body.decode(), got


def test_a_broker_without_policies_refuses(broker, evidence, p256):
    approve(broker, evidence)
    broker.lose()
    approve(broker, evidence)
    status, _, body = handshake(broker.port, evidence, key=p256.public)
    assert status == 401 and "policy cannot be evaluated" in error(body)[1]


def test_shared_policies_are_evaluated_too(broker, evidence, other, p256):
    set_policies(broker, "tpm-shared.rego", "resource-shared.rego")
    pcrs = evidence.pcrs()
    broker.set_values({"trusted_aks": [evidence.ak_public], "tpm_pcr4": [pcrs[4]], "tpm_pcr14": [pcrs[14]]})
    _, cookie, _ = handshake(broker.port, evidence, key=p256.public)
    assert get(broker.port, cookie)[0] == 200
    _, cookie, _ = handshake(broker.port, other, key=p256.public)
    assert error(get(broker.port, cookie)[2])[0] == "PolicyDeny"


def test_a_lost_store_grants_nothing(broker, evidence, p256):
    approve(broker, evidence)
    _, cookie, _ = handshake(broker.port, evidence, key=p256.public)
    broker.lose()
    assert get(broker.port, cookie)[0] in (401, 404)


def test_through_the_guard_it_is_the_same(broker, evidence, p256, tmp_path):
    approve(broker, evidence)
    guard = Guard(broker.url, str(tmp_path)).start()
    try:
        status, cookie, body = handshake(guard.port, evidence, key=p256.public)
        assert status == 200, body
        status, _, body = get(guard.port, cookie, f"/default/{UUID}/root")
        assert status == 200 and p256.open(body) == SECRET
        assert error(get(guard.port, cookie, f"default/{OTHER}/root")[2])[0] == "PolicyDeny"
        assert guard.metrics()["tec_guard_sessions"] == 0
    finally:
        guard.stop()
