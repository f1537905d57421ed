# SPDX-License-Identifier: MIT
"""A key broker for the tests: tests/tools/tec-test-kbs as a child process, or a real one by URL.

With TEC_TEST_KBS_URL and TEC_TEST_KBS_KEY (the admin's private key, PEM; TEC_TEST_KBS_CA for a CA of
its own) TestKbs talks to that one. It can then neither be stopped nor emptied, and of what it stores only
reference values can be read back: such a test asks kbs.external first, or skips by needs_control().
"""

import base64
import http.client
import json
import os
import ssl
import subprocess
import time
import urllib.parse

from controlplane import TOP, wait_for
from faultproxy import make_identity
from proc import Proc, free_port, tail
from tecproc import SANITIZER

ERRORS = "https://github.com/confidential-containers/kbs/errors/"
FOREVER = 2**31 - 1


def kbs_binary(name="tec-test-kbs"):
    return os.path.join(os.environ.get("TEC_BUILDDIR", TOP), "tests", "tools", name)


def b64url(data):
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode()


def make_key(directory, name="admin"):
    """(private key file, public key file), Ed25519."""
    private, public = (os.path.join(directory, f"{name}.{end}") for end in ("key", "pub"))
    subprocess.run(["openssl", "genpkey", "-algorithm", "ed25519", "-out", private],
                   check=True, capture_output=True)
    subprocess.run(["openssl", "pkey", "-in", private, "-pubout", "-out", public],
                   check=True, capture_output=True)
    return private, public


def sign_token(private, claims, header=None):
    """A JWT signed by openssl. CLAIMS: a dict, or text as it is."""
    header = header or {"typ": "JWT", "alg": "EdDSA"}
    claims = claims if isinstance(claims, str) else json.dumps(claims)
    signed = b64url(json.dumps(header).encode()) + "." + b64url(claims.encode())
    # openssl wants a file it can measure: Ed25519 signs the whole at once.
    name = f"{private}.{os.getpid()}.{time.monotonic_ns()}"
    try:
        with open(name, "w", encoding="ascii") as f:
            f.write(signed)
        done = subprocess.run(["openssl", "pkeyutl", "-sign", "-rawin", "-inkey", private, "-in", name],
                              check=True, capture_output=True)
    finally:
        os.unlink(name)
    return signed + "." + b64url(done.stdout)


def values_message(values, **changes):
    """The body that sets reference values; CHANGES replace members of the message."""
    payload = values if isinstance(values, str) else json.dumps(values)
    return json.dumps({"version": "0.1.0", "type": "sample",
                       "payload": base64.b64encode(payload.encode()).decode(), **changes})


class Answered:
    """One answer; type is the last segment of the error's URL, "" when it is none."""

    def __init__(self, status, headers, body):
        self.status, self.headers, self.body = status, headers, body
        self.type = ""
        if body.startswith(b'{"type":"' + ERRORS.encode()):
            self.type = json.loads(body)["type"][len(ERRORS):]

    def json(self):
        return json.loads(self.body)

    def __repr__(self):
        return f"{self.status} {self.type} {self.body[:200]!r}"


class TestKbs:
    """One broker on ports of its own, kept over restarts. What it stores is gone with the process.

    private, public: files with the admin's key; made here when there are none. public alone is
    enough for what does not ask the API (dump, counts). options: of the program, as in
    TestKbs(dir, trustee_quirks=True, issuer="x", payload_mib=2, from_dir=path)."""

    __test__ = False  # no test class, whatever its name says

    def __init__(self, directory, private=None, public=None, tls=False, **options):
        self.external = "TEC_TEST_KBS_URL" in os.environ
        self.private, self.public = private, public
        self.ca, self.claims, self._token = None, {}, (0, None)
        if self.external:
            self.url = os.environ["TEC_TEST_KBS_URL"].rstrip("/")
            self.private = os.environ["TEC_TEST_KBS_KEY"]
            self.ca = os.environ.get("TEC_TEST_KBS_CA")
        else:
            self._prepare(directory, tls, options)
        self.tls = ssl.create_default_context(cafile=self.ca) if self.url.startswith("https") else None

    def _prepare(self, directory, tls, options):
        self.port, self.debug_port = free_port(), free_port()
        if not self.public:
            self.private, self.public = make_key(directory, f"admin-{self.port}")
        self.claims = {claim: options[option] for claim, option in (("iss", "issuer"), ("aud", "audience"))
                       if option in options}
        argv = [kbs_binary(), "--listen", f"127.0.0.1:{self.port}", "--admin-key", self.public,
                "--listen-debug", f"127.0.0.1:{self.debug_port}"]
        for name, value in options.items():
            name = "--" + name.replace("_", "-")
            if value is True:
                argv.append(name)
            elif value is not None and value is not False:
                argv += [name, str(value)]
        if tls:
            self.ca, key, _ = make_identity(directory, f"tls-{self.port}")
            argv += ["--tls-cert", self.ca, "--tls-key", key]
        self.url = f"{'https' if tls else 'http'}://127.0.0.1:{self.port}"
        self.log = os.path.join(directory, f"kbs-{self.port}.log")
        env = dict(os.environ)
        env.setdefault("ASAN_OPTIONS", "detect_leaks=1:strict_string_checks=1")
        env.setdefault("UBSAN_OPTIONS", "print_stacktrace=1:halt_on_error=1")
        self.proc = Proc("tec-test-kbs", argv, self.log, env)

    def needs_control(self):
        if self.external:
            import pytest  # the demo does without

            pytest.skip("the broker of TEC_TEST_KBS_URL cannot be stopped, emptied or looked into")

    # Its life

    def start(self):
        if self.external:
            return self
        said = self.log_text().count("listening on")
        self.proc.start()

        def ready():
            self.proc.check()
            return self.log_text().count("listening on") > said

        wait_for(ready, 15, "listening tec-test-kbs")
        return self

    def stop(self):
        """SIGTERM; a leak, a sanitizer's report or another exit code fails the test."""
        if self.external:
            return
        if self.proc.alive():
            code = self.proc.stop()
            assert code == 0, f"exit {code}; end of {self.log}:\n{tail(self.log)}"
        found = SANITIZER.search(self.log_text())
        assert not found, self.log_text()[found.start():][:6000]

    def kill(self):
        self.needs_control()
        self.proc.kill()

    def restart(self):
        """Another process on the same ports; it starts without what was stored."""
        self.needs_control()
        self.stop()
        return self.start()

    def lose(self):
        """What is stored is gone, the process and its connections stay."""
        assert self._debug("POST", "/lose") == (200, b"")

    def log_text(self):
        try:
            with open(self.log, encoding="utf-8", errors="replace") as f:
                return f.read()
        except FileNotFoundError:
            return ""

    # What it holds

    def dump(self):
        """{"resources": {path: base64}, "reference_values": {name: entry}, "resource_policies",
        "attestation_policies", "trusted_ak_keys", "counts", "log"}."""
        status, body = self._debug("GET", "/dump")
        assert status == 200, body
        return json.loads(body)

    def counts(self):
        """{"resource-put": {"200": 3}, ...}: how often what was answered how."""
        return json.loads(self._debug("GET", "/counts")[1])

    def requests(self, verb=None, status=None):
        """How many there were since the start."""
        return sum(n for v, by_status in self.counts().items() if verb in (None, v)
                   for s, n in by_status.items() if status in (None, int(s)))

    def _debug(self, method, path):
        self.needs_control()
        conn = http.client.HTTPConnection("127.0.0.1", self.debug_port, timeout=30)
        try:
            conn.request(method, path, b"" if method == "POST" else None)
            answer = conn.getresponse()
            return answer.status, answer.read()
        finally:
            conn.close()

    # The API

    def token(self, **claims):
        """A good one, or one with other claims (None: without this one)."""
        if claims:
            merged = {"role": "admin", "exp": FOREVER, **self.claims, **claims}
            return sign_token(self.private, {k: v for k, v in merged.items() if v is not None})
        made, token = self._token
        if time.monotonic() - made > 120 or not token:
            token = sign_token(self.private, {"role": "admin", "exp": int(time.time()) + 600,
                                              "iss": "tec-operator", "aud": "kbs", **self.claims})
            self._token = (time.monotonic(), token)
        return token

    def ask(self, method, path, body=None, token=True, headers=()):
        """token: True for a good one, None for none, else the token."""
        at = urllib.parse.urlsplit(self.url)
        conn = (http.client.HTTPSConnection(at.hostname, at.port, context=self.tls, timeout=30) if self.tls
                else http.client.HTTPConnection(at.hostname, at.port, timeout=30))
        send = dict(headers)
        if token:
            send["Authorization"] = f"Bearer {self.token() if token is True else token}"
        try:
            conn.request(method, path, body, send)
            answer = conn.getresponse()
            return Answered(answer.status, answer.headers, answer.read())
        finally:
            conn.close()

    def set_values(self, values):
        got = self.ask("POST", "/kbs/v0/reference-value", values_message(values))
        assert got.status == 200, got

    def value(self, name):
        """A reference value; KeyError when there is none."""
        got = self.ask("GET", f"/kbs/v0/reference-value/{name}")
        if got.status == 200:
            return got.json()
        assert got.type == "RvpsError", got
        raise KeyError(name)

    def has_value(self, name):
        """Whether there is one that is not a tombstone."""
        try:
            return self.value(name) is not None
        except KeyError:
            return False
