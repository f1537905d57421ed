# SPDX-License-Identifier: MIT
"""The guard as a process, evidence from a software TPM, and a Trustee that is as lax as the stock one:
it believes every quote whose signature, digest and binding fit, whatever registers it is over."""

import base64
import hashlib
import http.client
import http.server
import json
import os
import struct
import subprocess
import threading

from controlplane import wait_for
from proc import Proc, free_port
from tecproc import SANITIZER, operator_binary, parse_metrics

KEY = {"kty": "EC", "crv": "P-256", "alg": "ECDH-ES+A256KW",
       "x": "MKBCTNIcKUSDii11ySs3526iDZ8AiTo7Tu6KPAqv7D4", "y": "4Etl6SRW2YiLUrN5vfvVHuhp7x8PxltmWWlbbM4IFyM"}
RESOURCE = b'{"protected":"a","ciphertext":"b"}'


def b64(data):
    return base64.b64encode(data).decode()


def binding(nonce, additional="", key=None):
    """RFC 8785 of the three, by Python's own writer."""
    text = json.dumps({"additional-evidence": additional, "nonce": nonce, "tee-pubkey": key or KEY},
                      sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    return hashlib.sha384(text.encode()).digest()


def read_quote(attest):
    """TPMS_ATTEST of a quote: (extraData, [(bank, registers)], digest). Written from the TPM
    specification alone, as the second opinion on what the guard let through."""
    def sized(at):
        n, = struct.unpack_from(">H", attest, at)
        assert at + 2 + n <= len(attest), "cut off"
        return attest[at + 2:at + 2 + n], at + 2 + n

    magic, kind = struct.unpack_from(">IH", attest)
    assert (magic, kind) == (0xff544347, 0x8018), (magic, kind)
    _, at = sized(6)
    extra, at = sized(at)
    at += 25
    count, = struct.unpack_from(">I", attest, at)
    at += 4
    selections = []
    for _ in range(count):
        bank, size = struct.unpack_from(">HB", attest, at)
        bits = int.from_bytes(attest[at + 3:at + 3 + size], "little")
        selections.append((bank, [i for i in range(size * 8) if bits >> i & 1]))
        at += 3 + size
    digest, at = sized(at)
    assert at == len(attest), "trailing bytes"
    return extra, selections, digest


class Evidence:
    """Of one attestation key; the TPM stays the caller's."""

    def __init__(self, tpm, name="ak"):
        self.tpm, self.name = tpm, name
        pem = tpm.make_ak(name)
        self.ak_public = "".join(line for line in pem.splitlines() if "-----" not in line)

    def quote(self, extra, selection="sha256:0,1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,16,17,18,19,20,21,22,23",
              order=None):
        """primary_evidence over this selection, with the values in the order they are quoted."""
        self.tpm.run("tpm2_quote", "-c", f"{self.name}.ctx", "-l", selection, "-q", extra.hex(),
                     "-m", "quote.msg", "-s", "quote.sig", "-f", "tss", "-g", "sha256")
        values = self.pcrs()
        with open(self.tpm.path("quote.msg"), "rb") as f:
            message = f.read()
        with open(self.tpm.path("quote.sig"), "rb") as f:
            signature = f.read()
        return {"tpm_quote": {"signature": b64(signature), "message": b64(message),
                              "pcrs": [values[i] for i in order or range(24)]},
                "ak_public": self.ak_public}

    def pcrs(self):
        text = self.tpm.run("tpm2_pcrread", "sha256")
        lines = [line.split(":") for line in text.splitlines() if "0x" in line]
        return {int(i): v.strip()[2:].lower() for i, v in lines}


def attest_body(nonce, primary, additional="", key=None, **more):
    return {"runtime-data": {"nonce": nonce, "tee-pubkey": dict(key or KEY)},
            "tee-evidence": {"primary_evidence": primary, "additional_evidence": additional}, **more}


def cookie_of(headers):
    return headers.get("Cookie", "").partition("=")[2]


class LaxTrustee:
    """What nodes and the operator meet behind the guard, and what reached it."""

    def __init__(self, tpm_dir, address=("127.0.0.1", 0), context=None):
        self.dir = tpm_dir
        self.nonces = {}
        self.believed = []  # the values of PCR 4 and 14 of every attestation that it took
        self.requests = []
        outer = self

        class Handler(http.server.BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_any(self):
                body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
                answer = outer.answer(self.command, self.path, self.headers, body)
                if answer is None:  # as one whose worker has died
                    self.close_connection = True
                    return
                status, body, headers = answer
                self.send_response(status)
                for name, value in headers.items():
                    self.send_header(name, value)
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            do_GET = do_POST = do_DELETE = do_any

            def log_message(self, *_):
                pass

        class Server(http.server.ThreadingHTTPServer):
            daemon_threads = True
            request_queue_size = 128

        self.server = Server(address, Handler)
        if context:
            self.server.socket = context.wrap_socket(self.server.socket, server_side=True)
        self.port = self.server.server_address[1]
        self.url = f"{'https' if context else 'http'}://127.0.0.1:{self.port}"
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    def answer(self, method, path, headers, body):
        """(status, body, headers) of a request; None: the connection just ends."""
        if path == "/healthz":  # by the guard itself, all the time
            return 200, b"", {}
        self.requests.append((method, path, dict(headers), body))
        if path == "/kbs/v0/auth":
            return self.begin()
        if path == "/kbs/v0/attest":
            ok = self.believe(json.loads(body), self.nonces.get(cookie_of(headers)))
            return (200, b'{"token":"t"}', {}) if ok else (401, b'{"type":"x","detail":"y"}', {})
        return 200, RESOURCE, {}

    def begin(self):
        cookie = f"{len(self.nonces):032x}"
        self.nonces[cookie] = b64(os.urandom(32))
        return (200, json.dumps({"nonce": self.nonces[cookie], "extra-params": ""}).encode(),
                {"Set-Cookie": f"kbs-session-id={cookie}; Expires=Wed, 21 Oct 2099 07:28:00 GMT"})

    def stop(self):
        self.server.shutdown()
        self.server.server_close()

    def believe(self, body, nonce):
        quote = body["tee-evidence"]["primary_evidence"]["tpm_quote"]
        message, signature = (base64.b64decode(quote[name]) for name in ("message", "signature"))
        extra, _, digest = read_quote(message)
        values = b"".join(bytes.fromhex(v) for v in quote["pcrs"])
        der = os.path.join(self.dir, "trustee.der")
        with open(der, "wb") as f:
            f.write(base64.b64decode(body["tee-evidence"]["primary_evidence"]["ak_public"]))
        for name, data in (("trustee.msg", message), ("trustee.sig", signature[6:])):
            with open(os.path.join(self.dir, name), "wb") as f:
                f.write(data)
        signed = subprocess.run(
            ["openssl", "dgst", "-sha256", "-verify", der, "-keyform", "DER", "-signature",
             os.path.join(self.dir, "trustee.sig"), os.path.join(self.dir, "trustee.msg")],
            capture_output=True, check=False).returncode == 0
        if not signed or digest != hashlib.sha256(values).digest() or \
                nonce != body["runtime-data"]["nonce"] or \
                extra != binding(nonce, key=body["runtime-data"]["tee-pubkey"])[:32]:
            return False
        self.believed.append((quote["pcrs"][4], quote["pcrs"][14]))
        return True


class Guard:
    """tec-operator --role=guard on free loopback ports."""

    def __init__(self, upstream, directory, *args):
        self.port, self.admin_port, self.health_port = (free_port() for _ in range(3))
        self.log = os.path.join(directory, f"guard-{self.port}.log")
        env = dict(os.environ)
        for name in ("KUBECONFIG", "KUBERNETES_SERVICE_HOST"):
            env.pop(name, None)
        env.setdefault("ASAN_OPTIONS", "detect_leaks=1:strict_string_checks=1")
        self.proc = Proc("guard", [
            operator_binary(), "--role=guard", "--upstream", upstream,
            "--listen-kbs", f"127.0.0.1:{self.port}", "--listen-admin", f"127.0.0.1:{self.admin_port}",
            "--listen-health", f"127.0.0.1:{self.health_port}", *args], self.log, env)

    def start(self, path="/readyz"):
        self.proc.start()

        def ready():
            self.proc.check()
            return self.health(path)[0] == 200

        wait_for(ready, 30, "the guard")
        return self

    def health(self, path):
        try:
            return ask(self.health_port, "GET", path)[::2]
        except OSError:
            return 0, b""

    def metrics(self):
        return parse_metrics(self.health("/metrics")[1].decode())

    def log_text(self):
        with open(self.log, encoding="utf-8", errors="replace") as f:
            return f.read()

    def stop(self):
        try:
            if self.proc.alive():
                self.proc.signal(15)
                code = self.proc.wait(15)
                assert code == 0, self.log_text()[-3000:]
            assert not SANITIZER.search(self.log_text()), self.log_text()[-6000:]
        finally:
            self.proc.stop(1)


def ask(port, method, path, body=None, headers=None, context=None):
    """(status, headers, body)"""
    kind = http.client.HTTPSConnection if context else http.client.HTTPConnection
    conn = kind("127.0.0.1", port, timeout=20, **({"context": context} if context else {}))
    try:
        data = json.dumps(body).encode() if isinstance(body, (dict, list)) else body
        conn.request(method, path, data, headers or {})
        answer = conn.getresponse()
        return answer.status, dict(answer.headers), answer.read()
    finally:
        conn.close()


def handshake(port, evidence, key=None, context=None, **quote):
    """auth and attest as a node does; the status of attest, the cookie, and the answer."""
    status, headers, body = ask(port, "POST", "/kbs/v0/auth",
                                {"version": "0.4.0", "tee": "tpm", "extra-params": {}}, context=context)
    assert status == 200, body
    cookie = headers["Set-Cookie"].partition(";")[0]
    nonce = json.loads(body)["nonce"]
    primary = evidence.quote(binding(nonce, key=key)[:32], **quote)
    status, _, body = ask(port, "POST", "/kbs/v0/attest", attest_body(nonce, primary, key=key),
                          {"Cookie": cookie}, context)
    return status, cookie, body
