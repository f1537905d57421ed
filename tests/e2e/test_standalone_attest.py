# SPDX-License-Identifier: MIT
"""One process from the first boot of a node to its disk key: tec-operator --standalone with its own key
broker, a node with a software TPM, and a client written from the protocol's text. An image's values are
handed in."""

import base64
import json
import os
import re
import shutil
import signal
import ssl
import subprocess
import time
import urllib.parse
import urllib.request

import pytest

import jobpod
import softtpm
import spine
from controlplane import wait_for
from guarded import Evidence, ask, handshake
from tecctl import tecctl_binary
from teckinds import made
from test_attest import Jwk, error
from test_images import PCR14, entry, pcr4, reference, registry
from test_standalone import Standalone, backup_of, run_operator

NS = "trusted-execution-clusters"

pytestmark = [
    pytest.mark.skipif(softtpm.missing() is not None, reason=str(softtpm.missing())),
    pytest.mark.skipif(not shutil.which("jose"), reason="apt-get install jose"),
]


def node_ca(alone):
    """A file with what a node's configuration has: the operator's authority for nodes and no other."""
    file = f"{alone.dir}.servers.crt"
    with open(file, "w", encoding="ascii") as f:
        f.write(clevis_server(alone)["cert"])
    return file


def tls(alone):
    if not hasattr(alone, "tls"):
        alone.tls = ssl.create_default_context(cafile=node_ca(alone))
    return alone.tls


def to_kbs(alone, method, path, body=None, headers=None):
    return ask(alone.kbs, method, f"/kbs/v0/{path}", body, headers or {}, tls(alone))


def get(alone, cookie, path="default/none/root"):
    return to_kbs(alone, "GET", f"resource/{path}", None, {"Cookie": cookie})


def hand_in(alone, name, values):
    """The answer to values that somebody computed."""
    digest = jobpod.digest_of(spine.read(alone, NS, "ai", name)["spec"]["image"])
    return alone.api("PUT", spine.path_of(NS, "ai", name) + "/values",
                     {"message": jobpod.message("0" * 32, digest, values)})


def approve_image(alone, name):
    made(alone, "ai", NS, {"image": reference(name)}, name)
    status, answer = hand_in(alone, name, entry(name))
    assert status == 200, answer
    spine.wait_condition(alone, NS, "ai", name, "Committed", "ImageCommitted", 60)


def boot(tpm, name):
    """What firmware and loader measure when this image boots."""
    for register in (pcr4(name, name), PCR14):
        for event in register["events"]:
            tpm.run("tpm2_pcrextend", f"{register['id']}:sha256={event['hash']}")


class Node:
    """A node that has registered and whose Machine is ready."""

    def __init__(self, alone, tpm, name):
        self.alone = alone
        self.evidence = Evidence(tpm, name)
        self.uuid = spine.first_boot(alone)
        self.machine = f"machine-{self.uuid}"
        with open(tpm.path(f"{name}.pem"), encoding="ascii") as f:
            assert spine.register(alone, f.read(), self.uuid)[0] == 201
        alone.kubectl("wait", f"machine/{self.machine}", "--for=condition=Ready", "--timeout=50s")

    def attest(self, key):
        """(cookie, claims, header) of an attestation."""
        status, cookie, body = handshake(self.alone.kbs, self.evidence, key=key.public, context=tls(self.alone))
        assert status == 200, body
        header, claims = (json.loads(base64.urlsafe_b64decode(part + "=="))
                          for part in json.loads(body)["token"].split(".")[:2])
        return cookie, claims["submods"]["cpu0"], header

    def disk_key(self):
        """What the administrator sees."""
        secret = json.loads(self.alone.kubectl("get", "secret", self.uuid, "-o", "json"))
        return base64.b64decode(secret["data"]["root"])

    def path(self):
        return f"default/{self.uuid}/root"


@pytest.fixture(scope="module")
def tpm():
    with softtpm.SoftwareTPM() as t:
        boot(t, "a")
        yield t


@pytest.fixture(scope="module")
def alone(tmp_path_factory):
    s = Standalone(str(tmp_path_factory.mktemp("standalone") / "state"), "--public-address=127.0.0.1",
                   f"--insecure-registry={registry()}", "--tee=tpm+sample")
    s.start()
    approve_image(s, "a")
    yield s
    if s.process.poll() is None:
        assert s.stop() == 0, s.log()


@pytest.fixture(scope="module")
def node(alone, tpm):
    return Node(alone, tpm, "ak")


@pytest.fixture(name="key")
def _key(tmp_path):
    return Jwk(str(tmp_path), {"kty": "EC", "crv": "P-256"}, "ECDH-ES+A256KW")


def said(alone, *parts):
    """A line of the log with each of these."""
    return wait_for(lambda: [line for line in alone.log().splitlines() if all(p in line for p in parts)], 20,
                    f"a log line with {parts}")[-1]


def event(alone, name, *parts):
    """The note of an Event of this object that has each of these."""
    def there():
        items = alone.get(f"/apis/events.k8s.io/v1/namespaces/{NS}/events")["items"]
        return [e for e in items if e["regarding"].get("name") == name and e["reason"] == "AttestationRefused"
                and all(p in e["note"] for p in parts)]
    return wait_for(there, 20, f"an Event of {name} with {parts}")[-1]


def test_a_node_gets_its_key_from_the_one_process(alone, node, key):
    cookie, cpu, _ = node.attest(key)
    assert cpu["ear.status"] == "affirming", said(alone, "node refused")
    assert cpu["ear.trustee.identifiers"] == {"validated": {"machine": node.uuid, "images": ["a"]}}
    status, _, body = get(alone, cookie, node.path())
    assert status == 200 and key.open(body) == node.disk_key()
    said(alone, 'msg="node attested"', f"name={node.machine}")


def test_another_nodes_path_is_refused_and_both_hear_of_it(alone, node, key):
    other = spine.first_boot(alone)
    assert spine.register(alone, spine.rsa_key(), other)[0] == 201
    wait_for(lambda: alone.get(spine.path_of(NS, "secrets", other)), 30, "the other's key")
    cookie, _, _ = node.attest(key)
    status, _, body = get(alone, cookie, f"default/{other}/root")
    assert (status, error(body)) == (401, ("PolicyDeny", "Access denied by policy"))
    text = f"It requested default/{other}/root; only {node.path()} is allowed."
    said(alone, 'msg="node refused"', f"name={node.machine}", "reason=resource", text)
    event(alone, node.machine, text)


def test_a_key_that_nobody_registered_is_refused(alone, tpm, key):
    stranger = Evidence(tpm, "stranger")
    status, cookie, _ = handshake(alone.kbs, stranger, key=key.public, context=tls(alone))
    assert status == 200
    assert error(get(alone, cookie)[2])[0] == "PolicyDeny"
    said(alone, 'msg="node refused"', "reason=policy", "Its attestation key is not registered for a Machine.")


def test_the_admin_api_is_not_on_the_nodes_listener(alone):
    for method, path in (("POST", "resource/default/a/root"), ("DELETE", "resource/default/a/root"),
                         ("POST", "reference-value"), ("GET", "reference-value/tpm_pcr4"),
                         ("POST", "resource-policy"), ("GET", "resource-policy"), ("POST", "attestation-policy")):
        status, _, body = to_kbs(alone, method, path, {} if method == "POST" else None,
                                 {"Authorization": "Bearer a.b.c"})
        assert (status, error(body)[0]) == (404, "InvalidRequestPath"), (method, path)
    assert ask(alone.kbs, "GET", "/metrics", context=tls(alone))[0] == 404
    assert ask(alone.kbs, "GET", "/healthz", context=tls(alone))[0] == 200


def test_its_rows_are_not_objects_of_the_api(alone):
    """They hold the signer of tokens and every node's key."""
    for resource in ("broker/repository", "broker%2Frepository", "broker", "broker%2Fsigner"):
        status, answer = alone.api("GET", f"/api/v1/{resource}")
        assert status in (400, 404), answer


def test_metrics_count_what_the_broker_did(alone, node, key):
    before = alone.metrics()
    cookie, _, _ = node.attest(key)
    assert get(alone, cookie, node.path())[0] == 200
    after = alone.metrics()
    for name in ('tec_broker_attestations_total{result="affirming"}', 'tec_broker_resources_total{result="ok"}'):
        assert after[name] == before.get(name, 0) + 1
    assert after["tec_broker_sessions"] >= 1


def test_sample_evidence_is_warned_about_and_proves_nothing(alone):
    said(alone, " warn ", "sample evidence is accepted")
    status, _, _ = to_kbs(alone, "POST", "auth", {"version": "0.4.0", "tee": "sample", "extra-params": {}})
    assert status == 200


def rest(alone):
    """Until the operator sends its broker nothing more: then what is stored is noted as complete."""
    seen = [None, 0.0]

    def quiet():
        count = sum(n for name, n in alone.metrics().items() if name.startswith("tec_trustee_requests_total{"))
        if count != seen[0]:
            seen[:] = count, time.monotonic()
        return time.monotonic() > seen[1] + 5
    wait_for(quiet, 30, "a broker at rest")


def test_a_kill_keeps_signer_and_resources(alone, node, key):
    _, _, before = node.attest(key)
    kept = node.disk_key()
    rest(alone)
    alone.stop(signal.SIGKILL)
    alone.start()
    alone.kubectl("wait", "tec/tec", "--for=condition=TrusteeSynced", "--timeout=50s")
    cookie, cpu, header = node.attest(key)
    assert cpu["ear.status"] == "affirming"
    assert header["jwk"] == before["jwk"]
    status, _, body = get(alone, cookie, node.path())
    assert status == 200 and key.open(body) == kept
    sent = [name for name in alone.metrics() if name.startswith('tec_trustee_requests_total{verb="resource-put"')]
    assert not sent, "what was stored is not sent again"


def test_a_deleted_machine_gets_nothing(alone, tpm, key):
    gone = Node(alone, tpm, "gone")
    cookie, _, _ = gone.attest(key)
    assert get(alone, cookie, gone.path())[0] == 200
    alone.kubectl("delete", f"machine/{gone.machine}", "--timeout=50s")
    assert error(get(alone, cookie, gone.path())[2])[0] == "ResourceNotFound"
    _, cpu, _ = gone.attest(key)
    assert cpu["ear.status"] == "contraindicated"


def clevis_server(alone):
    return spine.asked(alone)["servers"][0]


def test_nodes_are_spoken_to_under_tls_by_its_own_authority(alone):
    server = clevis_server(alone)
    secret = alone.get(spine.path_of(NS, "secrets", "standalone-tls"))
    assert server["url"] == f"https://127.0.0.1:{alone.kbs}"
    assert server["cert"] == base64.b64decode(secret["data"]["ca.crt"]).decode()
    assert ask(alone.kbs, "GET", "/healthz", context=tls(alone))[0] == 200
    with open(f"{alone.dir}/ca.crt", encoding="ascii") as f:
        assert f.read() != server["cert"], "who can make a certificate for nodes is no administrator"
    with pytest.raises(OSError):
        spine.request(alone.kbs, "GET", "/healthz")
    strange = ssl.create_default_context()
    with pytest.raises(ssl.SSLCertVerificationError):
        ask(alone.kbs, "GET", "/healthz", context=strange)
    found = alone.kubectl("get", "tec", "tec", "-o", "yaml")
    assert "in plain text" not in found and "trusteeSecret: standalone-tls" in found
    assert base64.b64decode(secret["data"]["tls.key"]).decode().splitlines()[1] not in alone.log()


def health(alone, **how):
    try:
        return spine.request(alone.kbs, "GET", "/healthz", **how)[0]
    except (OSError, ssl.SSLError, ValueError):
        return None


def test_another_certificate_is_used_and_none_is_plain_text(alone, tmp_path):
    nodes = node_ca(alone)
    certificate = spine.make_certificate(str(tmp_path))
    at = str(tmp_path / "localhost")
    alone.kubectl("create", "secret", "generic", "kbs-tls", f"--from-file=tls.crt={at}.crt",
                  f"--from-file=tls.key={at}.key", f"--from-file=ca.crt={at}-ca.crt")
    spine.merge(alone, NS, "tec", "tec", {"spec": {"trusteeSecret": "kbs-tls"}})
    wait_for(lambda: health(alone, cafile=certificate["file"]) == 200, 30, "the other certificate")
    assert health(alone) != 200
    server = clevis_server(alone)
    assert server["url"].startswith("https://") and server["cert"] == certificate["ca.crt"]
    spine.merge(alone, NS, "tec", "tec", {"spec": {"trusteeSecret": None, "trustee": {"plaintext": "Allow"}}})
    wait_for(lambda: health(alone) == 200, 30, "plain HTTP, as it was asked for")
    wait_for(lambda: "nodes talk to Trustee in plain text" in spine.condition(
        alone.get(spine.path_of(NS, "tec", "tec")), "Installed")["message"], 30, "the warning")
    spine.merge(alone, NS, "tec", "tec", {"spec": {"trustee": {"plaintext": "Refuse"}}})
    wait_for(lambda: health(alone) in (None, 503), 30, "nothing in plain text")
    spine.merge(alone, NS, "tec", "tec", {"spec": {"trusteeSecret": "standalone-tls"}})
    wait_for(lambda: health(alone, cafile=nodes) == 200, 30, "TLS again")


def test_a_deleted_certificate_is_made_again_with_the_same_key(alone):
    def public():
        found = alone.get(spine.path_of(NS, "secrets", "standalone-tls"))
        return found and found["data"]["tls.key"], found and found["data"]["tls.crt"]

    nodes = node_ca(alone)
    key, _ = public()
    alone.kubectl("delete", "secret", "standalone-tls")
    wait_for(lambda: health(alone, cafile=nodes) in (None, 503), 30, "no certificate")
    alone.stop()
    alone.start()
    assert public()[0] == key
    wait_for(lambda: health(alone, cafile=nodes) == 200, 30, "TLS again")


def names(s):
    """Of the certificate for nodes."""
    crt = base64.b64decode(s.get(spine.path_of(NS, "secrets", "standalone-tls"))["data"]["tls.crt"])
    return subprocess.run(["openssl", "x509", "-noout", "-ext", "subjectAltName"], check=True, input=crt,
                          capture_output=True).stdout.decode()


def test_plain_text_when_it_is_asked_for_and_names_that_change(tmp_path):
    s = Standalone(str(tmp_path / "state"), "--public-address=192.0.2.7:8443", "--plain=true")
    s.start()
    try:
        wait_for(lambda: health(s) == 200, 30, "plain HTTP")
        assert clevis_server(s) == {"url": "http://192.0.2.7:8443", "cert": ""}
        assert s.get(spine.path_of(NS, "secrets", "standalone-tls")) is None
        assert 'msg="nodes get no certificates' in s.log()
        spec = s.get(spine.path_of(NS, "tec", "tec"))["spec"]
        assert spec == {"publicTrusteeAddr": "192.0.2.7:8443", "publicRegisterAddr": f"192.0.2.7:{s.register_port}",
                        "publicAttestationKeyRegisterAddr": f"192.0.2.7:{s.register_ak_port}",
                        "registration": {"machine": "AtKey"}, "trustee": {"deploy": "External"},
                        "attestation": {"release": "OncePerBoot"}}
        assert s.stop() == 0
        had, others = None, 0
        for address in ("192.0.2.7", "nodes.example", "[2001:db8::7]:8443"):
            s.args = (f"--public-address={address}",)
            s.start()
            named = names(s)
            assert named != had
            had = named
            want = {"192.0.2.7": "IP Address:192.0.2.7", "nodes.example": "DNS:nodes.example",
                    "[2001:db8::7]:8443": "IP Address:2001:DB8:0:0:0:0:0:7"}[address]
            assert want in named and "DNS:localhost" in named, named
            assert re.search(r"IP Address:192\.0\.2\.7\b", named), "installed disks keep the address of their cluster"
            assert s.log().count("nodes do not use this --public-address") == others, address
            others += 1
            assert s.get(spine.path_of(NS, "tec", "tec"))["spec"] == spec, "a cluster that exists stays as it is"
            if others == 3:
                spine.merge(s, NS, "tec", "tec", {"spec": {"publicRegisterAddr": "new.example:8000"}})
                wait_for(lambda: "DNS:new.example" in names(s), 10, "the name of the changed address")
            assert s.stop() == 0, s.log()
    finally:
        if s.process.poll() is None:
            s.stop()


def test_what_a_first_start_prints_works(tmp_path):
    """The address and the CA that `tecctl ignition` prints, and no plain text on any of the three listeners."""
    s = Standalone(str(tmp_path / "state"), "--public-address=127.0.0.1").start()
    try:
        spec = s.get(spine.path_of(NS, "tec", "tec"))["spec"]
        assert spec["trustee"]["plaintext"] == "Refuse" and spec["registration"] == {"machine": "AtKey"}
        done = subprocess.run([tecctl_binary(), f"--kubeconfig={s.dir}/kubeconfig", "ignition"], capture_output=True,
                              text=True, timeout=30, check=True)
        printed = json.loads(done.stdout)["ignition"]
        ca = urllib.parse.unquote(printed["security"]["tls"]["certificateAuthorities"][0]["source"].removeprefix("data:,"))
        context = ssl.create_default_context(cadata=ca)
        with urllib.request.urlopen(printed["config"]["merge"][0]["source"], context=context, timeout=20) as answer:
            pin = spine.clevis_config(json.load(answer))
        registration = pin["attestation_key"]["registration"]
        assert [pin["servers"][0]["url"], registration["url"]] == [
            f"https://127.0.0.1:{s.kbs}", f"https://127.0.0.1:{s.register_ak_port}/register-ak"]
        assert pin["servers"][0]["cert"] == registration["cert"] == ca
        assert spine.items(s, NS, "mach") == [], "who only asks makes no Machine"
        assert spine.register(s, spine.rsa_key(), registration["uuid"])[0] == 201
        assert [m["spec"]["id"] for m in spine.items(s, NS, "mach")] == [registration["uuid"]]
        for port in (s.register_port, s.register_ak_port, s.kbs):
            with pytest.raises(OSError):
                spine.request(port, "GET", "/")
    finally:
        assert s.stop() == 0, s.log()


def test_nodes_go_on_trusting_what_was_restored_elsewhere(tmp_path):
    """Its API has another authority there; what nodes have, they have for ever."""
    first = Standalone(str(tmp_path / "first"), "--public-address=127.0.0.1").start()
    second = Standalone(str(tmp_path / "second"), "--public-address=127.0.0.1")
    try:
        file = backup_of(first, str(tmp_path / "file"))
        nodes, pinned = clevis_server(first)["cert"], node_ca(first)
        assert first.stop() == 0, first.log()
        os.mkdir(second.dir, 0o700)
        shutil.copy(f"{first.dir}/sealing.key", second.dir)
        status, said = run_operator(f"--standalone={second.dir}", f"--restore={file}")
        assert status == 0, said
        second.start()
        wait_for(lambda: health(second, cafile=pinned) == 200, 30, "TLS as before")
        second.kubectl("delete", "secret", "standalone-tls")
        assert second.stop() == 0, second.log()
        second.start()  # made again: by the same authority
        wait_for(lambda: health(second, cafile=pinned) == 200, 30, "TLS as before")
        assert clevis_server(second)["cert"] == nodes
    finally:
        for one in (first, second):
            if one.process and one.process.poll() is None:
                assert one.stop() == 0, one.log()


def test_a_frozen_operator_serves_the_nodes_it_has(alone, node, tpm, key):
    """spec.authority Frozen: disk keys go on, registration does not, and what is deleted waits."""
    def authority(value):
        spine.merge(alone, NS, "tec", "tec", {"spec": {"authority": value}})
        spine.wait_condition(alone, NS, "tec", "tec", "Authority", value, 30)

    def served(n):
        cookie = n.attest(key)[0]
        status, _, body = get(alone, cookie, n.path())
        return status == 200 and key.open(body) == n.disk_key()
    other, trusts = Node(alone, tpm, "frozen"), node_ca(alone)
    tls(alone)  # asks the listener, which refuses then
    authority("Frozen")
    try:
        status, _, body = spine.request(alone.register_port, "GET", "/ignition", cafile=trusts)
        assert status == 503 and "spec.authority is Frozen" in str(body)
        alone.kubectl("delete", "machine", other.machine, "--wait=false")
        time.sleep(2)
        assert served(node)
        assert other.disk_key()  # though the built-in broker gives a deleted Machine nothing
    finally:
        authority("Self")
    alone.kubectl("wait", "--for=delete", f"machine/{other.machine}", "--timeout=50s")
    assert spine.first_boot(alone)


def test_a_retired_operator_gives_no_key_any_more(tmp_path, tpm, key):
    """spec.authority Retired: the broker has nothing, the objects stay, finalizers are off, also after a restart."""
    s = Standalone(str(tmp_path / "state"), "--public-address=127.0.0.1", f"--insecure-registry={registry()}",
                   "--tee=tpm+sample").start()
    try:
        approve_image(s, "a")
        one = Node(s, tpm, "retired")
        cookie = one.attest(key)[0]
        assert get(s, cookie, one.path())[0] == 200
        trusts, disk_key = node_ca(s), one.disk_key()

        def is_retired():
            spine.wait_condition(s, NS, "tec", "tec", "Authority", "Retired", 30)
            status, _, body = spine.request(s.register_port, "GET", "/ignition", cafile=trusts)
            assert status == 410 and "spec.authority is Retired" in str(body)
            machine = json.loads(s.kubectl("get", "machine", one.machine, "-o", "json"))
            assert not machine["metadata"].get("finalizers")
            assert one.disk_key() == disk_key
            assert get(s, one.attest(key)[0], one.path())[0] != 200
        spine.merge(s, NS, "tec", "tec", {"spec": {"authority": "Retired"}})
        is_retired()
        s.process.kill()
        s.process.wait()
        s.start()
        is_retired()
        s.kubectl("delete", "machine", one.machine, "--timeout=20s")  # nothing holds it
    finally:
        if s.process.poll() is None:
            assert s.stop() == 0, s.log()


def test_another_boot_is_refused_in_words_a_person_can_act_on(alone, node, tpm, key):
    """Last: this TPM does not come back to what is approved."""
    expected = PCR14["value"]
    tpm.run("tpm2_pcrextend", f"14:sha256={'5a' * 32}")
    cookie, cpu, _ = node.attest(key)
    assert cpu["ear.status"] == "warning"
    assert error(get(alone, cookie, node.path())[2])[0] == "PolicyDeny"
    text = f"PCR 14 is {node.evidence.pcrs()[14]}, expected {expected}. The nearest approved image is a."
    said(alone, 'msg="node refused"', f"name={node.machine}", "reason=boot", text)
    found = event(alone, node.machine, text)
    assert found["note"].startswith("The node at 127.0.0.1 receives no key. The boot"), found
    assert found["note"].endswith("for the one it booted."), found
    node.attest(key)

    def repeated():
        return event(alone, node.machine, text).get("series", {}).get("count", 1) > 1
    wait_for(repeated, 60, "one Event that counts")


def test_off_leaves_trustee_to_another(tmp_path):
    s = Standalone(str(tmp_path / "state"), "--public-address=127.0.0.1:1", "--listen-kbs=off")
    s.start()

    def says(text):
        found = spine.condition(s.get(spine.path_of(NS, "tec", "tec")), "TrusteeSynced")
        return found and text in found["message"]

    try:
        wait_for(lambda: says("spec.trusteeSecret is not set: nothing is sent"), 30, "that plain text is refused")
        assert spine.request(s.register_port, "GET", "/ignition", cafile=s.cafile)[0] == 503
        spine.merge(s, NS, "tec", "tec", {"spec": {"trustee": {"plaintext": "Allow"}}})
        wait_for(lambda: says("trustee-auth does not exist"), 30, "the Secret of an administrator")
        assert "server=kbs" not in s.log()
    finally:
        assert s.stop() == 0, s.log()
