# SPDX-License-Identifier: MIT
"""The guard before a Trustee that is as lax as the stock one, with quotes of a real (software) TPM."""

import base64
import json
import os
import socket
import ssl
import subprocess
import threading
import time

import pytest

import softtpm
from guarded import RESOURCE, Evidence, Guard, LaxTrustee, ask, attest_body, binding, handshake, read_quote
from tecproc import operator_binary

pytestmark = pytest.mark.skipif(softtpm.missing() is not None, reason=str(softtpm.missing()))

ALL = ",".join(map(str, range(24)))
# A chosen register in the place of PCR 4, another in the place of PCR 14: 24 values of three selections.
CHOSEN = [0, 1, 2, 3, 16, 5, 6, 7, 8, 9, 10, 11, 12, 13, 23, 15, 16, 17, 18, 19, 20, 21, 22, 23]


@pytest.fixture(scope="module")
def tpm():
    with softtpm.SoftwareTPM() as t:
        yield t


@pytest.fixture(scope="module")
def evidence(tpm):
    return Evidence(tpm)


@pytest.fixture
def trustee(tmp_path):
    t = LaxTrustee(str(tmp_path))
    yield t
    t.stop()


@pytest.fixture
def start(trustee, tmp_path):
    guards = []

    def run(*args, upstream=None):
        guards.append(Guard(upstream or trustee.url, str(tmp_path), *args))
        return guards[-1].start("/healthz" if upstream else "/readyz")

    yield run
    for g in guards:
        g.stop()


def forge(tpm, evidence):
    """Registers that a program may extend and quote hold what an approved boot would have shown."""
    tpm.run("tpm2_pcrreset", "16", "23")
    tpm.run("tpm2_pcrextend", "16:sha256=" + "a4" * 32, "23:sha256=" + "b4" * 32)
    values = evidence.pcrs()
    return values[16], values[23]


def test_a_genuine_node_gets_its_resource(trustee, start, evidence):
    guard = start()
    status, cookie, _ = handshake(guard.port, evidence)
    assert status == 200
    status, _, body = ask(guard.port, "GET", "/kbs/v0/resource//default/u/root", None, {"Cookie": cookie})
    assert (status, body) == (200, RESOURCE)
    assert trustee.requests[-1][1] == "/kbs/v0/resource/default/u/root"
    assert trustee.requests[-1][2]["Cookie"] == cookie
    # What was forwarded is, to another reader, what the TPM was asked for.
    sent = json.loads(trustee.requests[-2][3])
    quote = sent["tee-evidence"]["primary_evidence"]["tpm_quote"]
    assert read_quote(base64.b64decode(quote["message"]))[1] == [(11, list(range(24)))]
    assert quote["pcrs"] == [evidence.pcrs()[i] for i in range(24)]


def test_a_newer_attester_is_served(trustee, start, evidence):
    """It says more than Trustee reads, does not know a body's length, and its HTTP library spells targets in its way."""
    guard = start()

    def chunked(path, body, headers=None):
        data = json.dumps(body).encode()
        return ask(guard.port, "POST", path, iter((data[:7], data[7:])), headers)  # http.client encodes them

    status, headers, body = chunked("/kbs/v0/auth?client=2", {
        "version": "0.4.0", "tee": "tpm", "extra-params": {"level": 2}, "client-info": {"name": "next", "version": 1.5}})
    assert status == 200, body
    name, _, value = headers["Set-Cookie"].partition(";")[0].partition("=")
    nonce = json.loads(body)["nonce"]
    primary = evidence.quote(binding(nonce)[:32])
    primary["event_log"] = primary["tpm_quote"]["clock"] = {"more": [1, None]}
    primary["tpm_quote"]["pcrs"] = [v.upper() for v in primary["tpm_quote"]["pcrs"]]
    body = attest_body(nonce, primary)
    body["more"] = body["runtime-data"]["more"] = body["tee-evidence"]["more"] = "x"
    status, _, answer = chunked("/kbs/v0/attest/", body, {"Cookie": f"{name}={value}"})
    assert status == 200, answer
    method, path, headers, seen = trustee.requests[-1]
    assert (method, path) == ("POST", "/kbs/v0/attest") and headers["Content-Length"] == str(len(seen))
    assert "Transfer-Encoding" not in headers and b'"more"' not in seen and b"event_log" not in seen
    quote = json.loads(seen)["tee-evidence"]["primary_evidence"]["tpm_quote"]
    assert quote["pcrs"] == [v.lower() for v in primary["tpm_quote"]["pcrs"]]
    assert [r[1] for r in trustee.requests] == ["/kbs/v0/auth", "/kbs/v0/attest"]
    status, _, _ = ask(guard.port, "GET", "/kbs/v0/resource/default/u%2Du/roo%74/?x=1", None,
                       {"Cookie": f"{name}={value}"})
    assert status == 200 and trustee.requests[-1][1] == "/kbs/v0/resource/default/u-u/root"


def test_the_forgery_works_without_the_guard_and_not_with_it(trustee, start, tpm, evidence):
    wanted = forge(tpm, evidence)
    forged = {"selection": "sha256:0,1,2,3,16+sha256:5,6,7,8,9,10,11,12,13,23+sha256:15,16,17,18,19,20,21,22,23"}
    status, _, _ = handshake(trustee.port, evidence, **forged,
                             order=[0, 1, 2, 3, 16, 5, 6, 7, 8, 9, 10, 11, 12, 13, 23] + list(range(15, 24)))
    assert status == 200
    assert trustee.believed[-1] == wanted  # a node that booted anything
    guard = start()
    believed = len(trustee.believed)
    status, _, body = handshake(guard.port, evidence, **forged,
                                order=[0, 1, 2, 3, 16, 5, 6, 7, 8, 9, 10, 11, 12, 13, 23] + list(range(15, 24)))
    assert status == 401 and b"not a quote over exactly PCR 0 to 23" in body, body
    assert len(trustee.believed) == believed
    log = guard.log_text()
    assert 'msg="attestation refused"' in log and "reason=quote" in log and "key= " not in log, log


@pytest.mark.parametrize("selection,order", [
    ("sha256:0,1,2,3,4", list(range(5))),
    ("sha256:" + ALL.replace(",23", ""), list(range(23))),
    ("sha256:0,1,2,3+sha256:4,5,6,7,8,9,10,11,12,13,14,15,16,17,18,19,20,21,22,23", list(range(24))),
    ("sha256:" + ALL + "+sha256:16", list(range(24)) + [16]),
    ("sha1:" + ALL, list(range(24))),
    ("sha256:" + ALL + "+sha1:0", list(range(24))),
])
def test_every_other_selection_is_refused(trustee, start, evidence, selection, order):
    guard = start()
    assert handshake(guard.port, evidence, selection=selection, order=order)[0] == 401
    assert [r[1] for r in trustee.requests] == ["/kbs/v0/auth"]


def test_values_in_another_order_are_refused(trustee, start, tpm, evidence):
    forge(tpm, evidence)
    guard = start()
    assert handshake(guard.port, evidence, order=CHOSEN)[0] == 401
    assert [r[1] for r in trustee.requests] == ["/kbs/v0/auth"]


def test_other_attestations_of_the_same_key_are_refused(trustee, start, tpm, evidence):
    """The key also signs TPM2_Certify: a structure of another type."""
    guard = start()
    tpm.run("tpm2_createprimary", "-C", "o", "-c", "primary.ctx")
    tpm.run("tpm2_certify", "-c", "primary.ctx", "-C", "ak.ctx", "-g", "sha256", "-o", "certify.msg",
            "-s", "certify.sig", "-f", "tss")
    primary = evidence.quote(bytes(32))
    for name, file in (("message", "certify.msg"), ("signature", "certify.sig")):
        with open(tpm.path(file), "rb") as f:
            primary["tpm_quote"][name] = base64.b64encode(f.read()).decode()
    status, _, body = ask(guard.port, "POST", "/kbs/v0/attest", attest_body("n", primary))
    assert status == 401 and b"not a quote" in body, body
    assert trustee.requests == []


def test_the_admin_api_and_metrics_are_not_where_nodes_are(trustee, start):
    guard = start()
    for method, path in (("POST", "/kbs/v0/resource/a/b/c"), ("DELETE", "/kbs/v0/resource/a/b/c"),
                         ("POST", "/kbs/v0/reference-value"), ("POST", "/kbs/v0/attestation-policy"),
                         ("POST", "/kbs/v0/resource-policy"), ("GET", "/metrics"), ("GET", "/")):
        assert ask(guard.port, method, path, b"x" if method == "POST" else None)[0] == 404, path
    assert trustee.requests == []
    body = os.urandom(8 << 20)
    status, _, _ = ask(guard.admin_port, "POST", "/kbs/v0/resource/a/b/c", body, {"Authorization": "Bearer t"})
    assert status == 200
    assert trustee.requests[-1][3] == body and trustee.requests[-1][2]["Authorization"] == "Bearer t"
    assert ask(guard.admin_port, "POST", "/kbs/v0/resource/a/b/c", body + b"x")[0] == 413
    assert ask(guard.admin_port, "POST", "/kbs/v0/auth", b"{}")[0] == 404


def test_handshakes_of_a_source_are_bounded(trustee, start):
    guard = start("--max-sessions-per-source", "5", "--rate-limit", "off")
    auth = {"version": "0.4.0", "tee": "tpm", "extra-params": {}}
    got = [ask(guard.port, "POST", "/kbs/v0/auth", auth) for _ in range(20)]
    assert [g[0] for g in got] == [200] * 5 + [429] * 15
    assert 50 <= int(got[-1][1]["Retry-After"]) <= 60  # five in 300 s
    assert len(trustee.requests) == 5
    metrics = guard.metrics()
    assert metrics["tec_guard_sessions"] == 5
    assert metrics['tec_guard_refused_total{kind="auth",reason="sessions"}'] == 15


def make_certificate(directory, name):
    """A self-signed certificate for 127.0.0.1 as tls.crt and tls.key."""
    subprocess.run(["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes",
                    "-subj", f"/CN={name}", "-addext", "subjectAltName=IP:127.0.0.1", "-days", "2",
                    "-keyout", directory / "tls.key.new", "-out", directory / "tls.crt.new"],
                   check=True, capture_output=True)
    os.rename(directory / "tls.key.new", directory / "tls.key")
    os.rename(directory / "tls.crt.new", directory / "tls.crt")
    return ssl.create_default_context(cafile=str(directory / "tls.crt"))


def test_certificates_are_read_again(trustee, start, evidence, tmp_path):
    context = make_certificate(tmp_path, "one")
    guard = start("--tls-cert", str(tmp_path / "tls.crt"), "--tls-key", str(tmp_path / "tls.key"))
    assert ask(guard.port, "GET", "/healthz", context=context)[0] == 200
    assert ask(guard.admin_port, "GET", "/healthz", context=context)[0] == 200
    with pytest.raises(OSError):
        ask(guard.port, "GET", "/healthz")
    context = make_certificate(tmp_path, "two")
    guard.proc.signal(1)
    for _ in range(100):
        try:
            assert ask(guard.port, "GET", "/healthz", context=context)[0] == 200
            break
        except ssl.SSLError:
            time.sleep(0.05)
    else:
        raise AssertionError(guard.log_text())


def test_a_trustee_that_is_away_is_a_502_and_health_says_so(start):
    guard = start(upstream="http://127.0.0.1:9")
    assert ask(guard.port, "GET", "/healthz")[0] == 503
    assert guard.health("/readyz") == (503, b"not ready: Trustee does not answer\n")
    status, headers, body = ask(guard.port, "POST", "/kbs/v0/auth",
                                {"version": "0.4.0", "tee": "tpm", "extra-params": {}})
    assert status == 502 and headers["Content-Type"] == "application/json"
    assert set(json.loads(body)) == {"type", "detail"}
    assert guard.metrics()["tec_guard_sessions"] == 1  # it may have arrived


def test_a_mutated_attestation_never_reaches_trustee(trustee, start, evidence):
    """One change at a time of a genuine one: each member missing, doubled, of another type, with a byte more."""
    guard = start("--rate-limit", "off")
    nonce = "AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8="
    genuine = attest_body(nonce, evidence.quote(binding(nonce)[:32]), **{"init-data": None})
    text = json.dumps(genuine)

    def paths(o, at=()):
        for name, value in o.items() if isinstance(o, dict) else ():
            yield at + (name,)
            yield from paths(value, at + (name,))

    def change(path, fn):
        o = json.loads(text)
        inner = o
        for name in path[:-1]:
            inner = inner[name]
        fn(inner, path[-1])
        return json.dumps(o)

    bodies = []
    for path in paths(genuine):
        if path[-1] == "init-data" or "tee-pubkey" in path[:-1]:
            continue  # may be absent; members of the key are Trustee's to judge by their binding
        bodies += [change(path, lambda o, k: o.pop(k)), change(path, lambda o, k: o.update({k: 7})),
                   change(path, lambda o, k: o.update({k: None})), change(path, lambda o, k: o.update({k: [o[k]]}))]
        at = text.rindex(json.dumps(path[-1]) + ":")
        bodies.append(text[:at] + json.dumps(path[-1]) + ':"twice",' + text[at:])
    for member in ("signature", "message"):
        for add in ("\n", " ", "=", "AAAA"):
            bodies.append(change(("tee-evidence", "primary_evidence", "tpm_quote", member),
                                 lambda o, k, a=add: o.update({k: o[k] + a})))
    bodies += [text + "{}", text[:-1], "[" + text + "]", text.replace('"', "'"), text.replace(nonce, "\\ud800"),
               text.replace(nonce, "\\u0000"), text + " " * 70000]
    for body in bodies:
        status, _, answer = ask(guard.port, "POST", "/kbs/v0/attest", body.encode())
        assert status in (401, 413), (status, body[:300], answer)
    assert trustee.requests == []
    assert len(bodies) > 65
    assert ask(guard.port, "POST", "/kbs/v0/attest", text.encode())[0] == 401  # no session: Trustee's own answer
    assert len(trustee.requests) == 1


def test_what_is_forwarded_is_the_same_to_another_reader(trustee, start, evidence):
    """Texts keep their code points, and unusual spellings of the same JSON become one."""
    guard = start("--allow-additional")
    nonce = 'n"\\\n\u0001/\u007fé😀'
    init = 'version = "0.1.0"\nalgorithm = "sha256"\n[data]\n"é" = \'😀\'\n'
    body = attest_body(nonce, evidence.quote(bytes(32)), additional="{\"a\":1}",
                       **{"init-data": {"format": "toml", "body": init}})
    for text in (json.dumps(body), json.dumps(body, ensure_ascii=False), json.dumps(body, indent=3),
                 json.dumps(body).replace("/", "\\/")):
        ask(guard.port, "POST", "/kbs/v0/attest", text.encode())
        assert json.loads(trustee.requests[-1][3]) == body
    assert len({r[3] for r in trustee.requests}) == 1


@pytest.mark.parametrize("args,says", [
    (["--upstream", "http://10.0.0.1:8080"], "--upstream"),
    (["--upstream", "http://trustee.example"], "--upstream"),
    (["--tls-cert", "x"], "--tls-cert and --tls-key"),
    (["--session-time", "5"], "--session-time"),
    (["--tee", "snp"], "--tee"),
    (["--listen-admin", "nowhere"], "--listen-admin"),
])
def test_wrong_options_are_named(args, says):
    done = subprocess.run([operator_binary(), "--role=guard", *args], capture_output=True, text=True, timeout=20,
                          check=False)
    assert done.returncode == 2 and says in done.stderr, done.stderr


def test_check_config_needs_no_kubernetes(tmp_path):
    env = {k: v for k, v in os.environ.items() if not k.startswith("KUBE")}
    done = subprocess.run([operator_binary(), "--role=guard", "--listen-kbs", "127.0.0.1:0", "--listen-health",
                           "127.0.0.1:0", "--check-config"], capture_output=True, text=True, timeout=20, env=env,
                          check=False)
    assert done.returncode == 0 and "usable" in done.stdout, done.stderr
    done = subprocess.run([operator_binary(), "--role=guard", "--tls-cert", str(tmp_path / "no"), "--tls-key",
                           str(tmp_path / "no"), "--check-config"], capture_output=True, text=True, timeout=20,
                          env=env, check=False)
    assert done.returncode == 1 and "No such file" in done.stderr, done.stderr


class Raw:
    """An upstream that answers every request, but the guard's own looks, with these bytes and then closes."""

    def __init__(self, answer):
        self.answer, self.asked = answer, 0
        self.socket = socket.create_server(("127.0.0.1", 0))
        self.url = f"http://127.0.0.1:{self.socket.getsockname()[1]}"
        threading.Thread(target=self._run, daemon=True).start()

    def _run(self):
        while True:
            try:
                conn, _ = self.socket.accept()
            except OSError:
                return
            threading.Thread(target=self._serve, args=(conn,), daemon=True).start()

    def _serve(self, conn):
        with conn:
            data = b""
            while b"\r\n\r\n" not in data and (more := conn.recv(65536)):
                data += more
            try:
                if data.startswith(b"GET /healthz"):
                    conn.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\nConnection: close\r\n\r\n")
                elif data:
                    self.asked += 1
                    conn.sendall(self.answer)
            except OSError:
                pass  # it was told enough


@pytest.mark.parametrize("answer", [
    b"", b"\x16\x03\x01\x02\x00\x01", b"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\ncut off",
    b"HTTP/0.9 hello\r\n\r\n", b"HTTP/1.1 999 X\r\nContent-Length: 0\r\n\r\n", b"HTTP/1.1 abc\r\n\r\n",
    b"HTTP/1.1 200 OK\r\n" + b"X: y\r\n" * 60000 + b"\r\n",
    b"HTTP/1.1 200 OK\r\nContent-Length: 9000000\r\n\r\n" + b"x" * 9000000,
    b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n",
], ids=["drops", "TLS", "cut", "0.9", "999", "no status", "endless head", "too much", "bad chunk"])
def test_an_upstream_that_does_not_speak_http_is_a_502_in_trustees_shape(start, answer):
    raw = Raw(answer)
    guard = start(upstream=raw.url)
    status, headers, body = ask(guard.port, "POST", "/kbs/v0/auth", {"version": "0.4.0", "tee": "tpm", "extra-params": {}})
    assert status == 502 and headers["Content-Type"] == "application/json", (status, body)
    assert set(json.loads(body)) == {"type", "detail"}
    assert raw.asked == 1, "a request that may have had an effect was repeated"
    assert ask(guard.port, "GET", "/healthz")[0] in (200, 503)
    raw.socket.close()


def test_headers_of_who_asks_do_not_reach_trustee(trustee, start):
    guard = start()
    status, _, body = ask(
        guard.port, "POST", "/kbs/v0/auth", {"version": "0.4.0", "tee": "tpm", "extra-params": {}},
        {"X-Forwarded-For": "192.0.2.1", "X-Forwarded-Host": "evil", "X-Real-IP": "192.0.2.1", "Forwarded": "for=192.0.2.1",
         "TE": "trailers", "Proxy-Authorization": "Basic eA==", "Keep-Alive": "timeout=9", "X-Any": "1",
         "Cookie": "kbs-session-id=a", "Authorization": "Bearer t"})
    assert status == 200, body
    _, _, headers, _ = trustee.requests[-1]
    names = {name.lower() for name in headers}
    assert names <= {"host", "accept", "user-agent", "content-type", "content-length", "cookie", "authorization",
                     "forwarded", "x-forwarded-for"}, names
    assert headers["X-Forwarded-For"] == "127.0.0.1" and "192.0.2.1" not in str(headers)
    assert headers["Cookie"] == "kbs-session-id=a" and headers["Authorization"] == "Bearer t"
