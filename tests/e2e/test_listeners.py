# SPDX-License-Identifier: MIT
"""The listeners of a real tec-operator over real sockets: TLS, hostile and slow peers, limits, and
what signals do to them. Load goes to 127.0.0.0/8 only."""

import concurrent.futures
import json
import os
import shutil
import signal
import socket
import ssl
import struct
import subprocess
import threading
import time

import pytest

import spine
from conftest import OPERATOR_ACCOUNT, lacking
from controlplane import PATIENCE, TOP, wait_for
from faultproxy import FaultProxy
from marks import Events
from tecctl import Tecctl
from tecproc import operator_binary

NONE = b"GET /none HTTP/1.1\r\nHost: x\r\n\r\n"  # 404: a whole request that makes nothing
CLOSE = b"GET /none HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n"
REQUEST_S = 15  # within which a request has to be complete


# ---- a client that does what no library lets one do

def connect(port, tls=None, source="127.0.0.1", timeout=30, rcvbuf=0, alpn=None):
    """A connected socket; tls: True or an SSLContext."""
    sock = socket.socket()
    sock.settimeout(timeout)
    if rcvbuf:
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, rcvbuf)
    sock.bind((source, 0))
    sock.connect(("127.0.0.1", port))
    sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    if tls:
        sock = (context(alpn=alpn) if tls is True else tls).wrap_socket(
            sock, server_hostname="localhost")
    return sock


def context(lowest=ssl.TLSVersion.TLSv1_2, highest=ssl.TLSVersion.TLSv1_3, alpn=None):
    """Checks no certificate: which one is served is what tests look at."""
    made = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    made.check_hostname, made.verify_mode = False, ssl.CERT_NONE
    made.set_ciphers("DEFAULT:@SECLEVEL=0")
    made.minimum_version, made.maximum_version = lowest, highest
    if alpn:
        made.set_alpn_protocols(alpn)
    return made


class Reader:
    """Takes responses off a socket, one by one."""

    def __init__(self, sock):
        self.sock, self.data = sock, b""

    def _until(self, enough):
        while not enough():
            more = self.sock.recv(65536)
            if not more:
                raise EOFError(f"closed after {self.data[:200]!r}")
            self.data += more

    def response(self):
        """(status, {lower-case header: value}, body)"""
        self._until(lambda: b"\r\n\r\n" in self.data)
        head, _, self.data = self.data.partition(b"\r\n\r\n")
        first, *lines = head.decode().split("\r\n")
        headers = {k.lower(): v.strip() for k, v in (line.split(":", 1) for line in lines)}
        length = int(headers.get("content-length", 0))
        self._until(lambda: len(self.data) >= length)
        body, self.data = self.data[:length], self.data[length:]
        return int(first.split()[1]), headers, body

    def at_end(self):
        """True when the other side closes without another byte."""
        try:
            return self.data == b"" and self.sock.recv(1) == b""
        except OSError:
            return True


def ask(port, data, **kw):
    with connect(port, **kw) as sock:
        sock.sendall(data)
        return Reader(sock).response()


# ---- operators

@pytest.fixture
def serve(cp, ns, start_operator, tmp_path):
    """serve(*args, tls=False, **spec) -> Operator with a cluster; it runs the register listener
    alone unless TLS or --role asks for more, and has no rate limit unless --rate-limit does."""

    def start(*args, tls=False, **spec):
        for given in (("--role", "all" if tls else "register"), ("--rate-limit", "off")):
            args += () if given[0] in args else given
        if tls:
            for name in ("registerServerSecret", "attestationKeyRegisterSecret"):
                spec.setdefault(name, "tls")
            cert = spine.make_certificate(str(tmp_path))
            spine.make_tls_secret(cp, ns, "tls", cert)
        spine.make_cluster(cp, ns, **spec)
        op = start_operator(ns, *args)
        # A source of its own, whose tokens no test counts.
        wait_for(lambda: ask(op.register_port, CLOSE, tls=tls, source="127.0.0.99")[0] == 404, 20,
                 "open listener")
        return op

    return start


def machines(cp, ns):
    return spine.items(cp, ns, "mach")


def connections(op, listener="register"):
    return op.metrics().get(f'tec_http_connections{{listener="{listener}"}}', 0)


def refused(op, reason):
    label = f'{{listener="register",reason="{reason}"}}'
    return op.metrics()[f"tec_http_refused_connections_total{label}"]


def sanitized():
    with open(operator_binary(), "rb") as f:
        return b"__asan_init" in f.read()


def memory_grew(op, before_kib, limit_mib):
    """A sanitizer keeps freed memory on purpose, so there nothing can be said."""
    return not sanitized() and op.memory_kib()["VmRSS"] - before_kib > limit_mib * 1024


def wait_idle(op, timeout=10):
    wait_for(lambda: connections(op) == 0, timeout, "end of all connections")


# ---- TLS

def served_certificate(port):
    with connect(port, tls=True) as sock:
        return ssl.DER_cert_to_PEM_cert(sock.getpeercert(binary_form=True))


def keep_asking(port, stop, counts, problems):
    """Kept connections; one request in 50 makes a Machine. Every answer must be the right one."""
    made = 0
    try:
        while not stop.is_set():
            with connect(port, tls=True) as sock:
                reader, headers = Reader(sock), {}
                while not stop.is_set() and headers.get("connection") != "close":
                    made += 1
                    sock.sendall(NONE.replace(b"/none", b"/ignition") if made % 50 == 0 else NONE)
                    status, headers, _ = reader.response()
                    assert status == (200 if made % 50 == 0 else 404), status
    except Exception as e:  # a thread's exception would be lost
        problems.append(repr(e))
    counts.append(made)


def test_certificates_change_under_load_without_a_failed_request(cp, ns, serve, tmp_path):
    op = serve(tls=True)
    stop, counts, problems = threading.Event(), [], []
    threads = [threading.Thread(target=keep_asking, args=(op.register_port, stop, counts, problems))
               for _ in range(4)]
    try:
        for t in threads:
            t.start()
        for i in range(6):
            bad = op.log_text().count("certificate is unusable")
            spine.make_tls_secret(cp, ns, "tls", {k: "garbage" for k in
                                                  ("tls.crt", "tls.key", "ca.crt")})
            wait_for(lambda: op.log_text().count("certificate is unusable") > bad, 10, "refusal")
            good = spine.make_certificate(str(tmp_path), f"good{i}")
            spine.make_tls_secret(cp, ns, "tls", good)
            wait_for(lambda: served_certificate(op.register_port) == good["tls.crt"], 10,
                     "new certificate")
    finally:
        stop.set()
        for t in threads:
            t.join()
    assert problems == []
    assert sum(counts) > 500 and len(machines(cp, ns)) == sum(c // 50 for c in counts)


def faulty(directory):
    """(what the operator says, the Secret) for each way to store a pair that no node can use."""
    good = spine.make_certificate(directory, "first")
    other = spine.make_certificate(directory, "second")
    locked = subprocess.run(["openssl", "pkey", "-aes128", "-passout", "pass:x"], input=good["tls.key"],
                            check=True, capture_output=True, text=True).stdout
    return good, (
        ("tls.key does not match tls.crt", {**good, "tls.key": other["tls.key"]}),
        ("tls.key is encrypted", {**good, "tls.key": locked}),
        ("ca.crt has no usable certificate", {**good, "ca.crt": ""}),
        ("cannot verify tls.crt with ca.crt", {**good, "ca.crt": other["ca.crt"]}),
        ("does not cover register.example.org",
         spine.make_certificate(directory, "third", names=("DNS:localhost",))),
        ("tls.crt expired at", spine.make_certificate(directory, "fourth", days=-1)))


def test_a_tls_secret_that_cannot_be_used_is_named_everywhere(cp, ns, start_operator, tmp_path):
    """Conditions, an Event and tecctl doctor say the same; a chain in the wrong order is served."""
    good, faults = faulty(str(tmp_path))
    events, ctl = Events(cp, ns), Tecctl(cp.admin_kubeconfig, ns)
    spine.make_tls_secret(cp, ns, "tls", good)
    spine.make_cluster(cp, ns, attestationKeyRegisterSecret="tls")
    op = start_operator(ns, "--role", "all")

    def found():
        return next(line for line in json.loads(ctl.out("doctor", "-o", "json", code=None))
                    if line["check"] == "TLS of /register-ak")

    def usable():
        spine.wait_condition(cp, ns, "tec", "tec", "Installed", "InstallationCompleted")
        spine.wait_condition(cp, ns, "tec", "tec", "RegistrationOpen", "Open")
        assert found()["is"] != "no", found()

    usable()
    for says, secret in faults:
        spine.make_tls_secret(cp, ns, "tls", secret)
        for type_ in ("Installed", "RegistrationOpen"):
            obj = spine.wait_condition(cp, ns, "tec", "tec", type_, "Refused")
            message = spine.condition(obj, type_)["message"]
            assert "Secret tls (attestationKeyRegisterSecret) cannot be used: " in message and says in message
        assert events.wait("tec", says, reason="Refused")["type"] == "Warning"
        assert found()["is"] == "no" and says in json.dumps(found()), found()
        if says.startswith("tls.key"):  # a server cannot even start with it
            wait_for(lambda s=says: s in op.log_text(), 10, "line of the listener's log")
        spine.make_tls_secret(cp, ns, "tls", good)
        usable()
    last = spine.make_certificate(str(tmp_path), "last")
    spine.make_tls_secret(cp, ns, "tls", {**last, "tls.crt": last["ca.crt"] + last["tls.crt"]})
    wait_for(lambda: served_certificate(op.register_ak_port) == last["tls.crt"], 10, "the chain in order")
    assert spine.request(op.register_ak_port, "GET", "/none", cafile=last["file"])[0] == 404
    usable()


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_tls_versions_and_alpn(serve):
    port = serve(tls=True).register_port
    v = ssl.TLSVersion
    for version in (v.TLSv1, v.TLSv1_1):
        with pytest.raises(OSError):
            connect(port, tls=context(version, version))
    for version in (v.TLSv1_2, v.TLSv1_3):
        with connect(port, tls=context(version, version)) as sock:
            assert sock.version() == version.name.replace("_", ".")
    with pytest.raises(OSError):
        connect(port, tls=True, alpn=["h2"]).recv(1)
    for offered, chosen in ((["h2", "http/1.1"], "http/1.1"), (["http/1.1"], "http/1.1"),
                            (None, None)):
        with connect(port, tls=True, alpn=offered) as sock:
            assert sock.selected_alpn_protocol() == chosen


def test_tls_garbage_and_broken_handshakes(serve):
    op = serve(tls=True)
    hello = ssl.MemoryBIO()
    half = context().wrap_bio(ssl.MemoryBIO(), hello, server_hostname="localhost")
    with pytest.raises(ssl.SSLWantReadError):
        half.do_handshake()
    hello = hello.read()
    junk = [NONE, b"SSH-2.0-x", b"\0" * 512, b"\x16\x03\x01\xff\xff" + b"A" * 70000,
            os.urandom(4096)]
    for data in junk + [hello[:n] for n in (1, 5, 6, 50, len(hello) - 1, len(hello))]:
        for reset in (False, True):
            with connect(op.register_port) as sock:
                try:
                    sock.sendall(data)
                except OSError:
                    pass
                if reset:
                    sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
                else:
                    try:
                        sock.shutdown(socket.SHUT_WR)
                        while sock.recv(65536):
                            pass
                    except OSError:  # closed with our bytes unread
                        pass
        assert ask(op.register_port, NONE, tls=True)[0] == 404
    wait_idle(op)
    assert refused(op, "handshake") >= len(junk)


# ---- framing

def test_requests_split_at_every_byte_over_tls(serve):
    op = serve(tls=True)
    body = b'{"public_key":"x"}'
    put = (b"PUT /register-ak HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\n"
           b"Content-Length: %d\r\n\r\n" % len(body)) + body
    for port, data, want in ((op.register_port, NONE, 404), (op.register_ak_port, put, 400)):
        sock = None
        for at in range(1, len(data) + 1):
            if not sock:
                sock = connect(port, tls=True)
                reader = Reader(sock)
            sock.sendall(data[:at])
            if at < len(data):
                sock.sendall(data[at:])
            status, headers, answer = reader.response()
            assert status == want, (at, status, answer)
            if headers.get("connection") == "close":
                sock.close()
                sock = None
        with connect(port, tls=True) as sock:
            for i in range(len(data)):
                sock.sendall(data[i:i + 1])
            assert Reader(sock).response()[0] == want


@pytest.mark.parametrize("tls", [False, True], ids=["plain", "tls"])
def test_pipelined_requests_are_answered_in_order(serve, tls):
    op = serve(tls=tls)
    with connect(op.register_port, tls=tls) as sock:
        sock.sendall((NONE + NONE.replace(b"GET", b"HEAD") + NONE.replace(b"/none", b"/ignition")
                      .replace(b"GET", b"PATCH")) * 10 + CLOSE)
        reader = Reader(sock)
        for _ in range(10):
            assert reader.response()[0] == 404
            reader._until(lambda: b"\r\n\r\n" in reader.data)
            head, _, reader.data = reader.data.partition(b"\r\n\r\n")  # HEAD: no body follows
            assert head.startswith(b"HTTP/1.1 404 ")
            assert reader.response()[0] == 405
        assert reader.response()[0] == 404
        assert reader.at_end()


def head(*lines, first=b"GET /ignition HTTP/1.1"):
    return b"\r\n".join([first, *(lines or (b"Host: x",)), b"", b""])


def put(*lines, body=b""):
    return head(b"Host: x", *lines, first=b"PUT /register-ak HTTP/1.1") + body


REFUSALS = {
    "no Host": (head(b"A: b"), 400),
    "two Hosts": (head(b"Host: a", b"Host: b"), 400),
    "NUL in the target": (head(first=b"GET /igni\0tion HTTP/1.1"), 400),
    "NUL in a header": (head(b"Host: x", b"A: \0"), 400),
    "control byte in a header": (head(b"Host: x", b"A: \x01b"), 400),
    "bare LF": (b"GET /ignition HTTP/1.1\nHost: x\r\n\r\n", 400),
    "bare CR": (head(b"Host: x", b"A: b\rc"), 400),
    "folded header": (head(b"Host: x", b"A: b", b" c"), 400),
    "blank before the colon": (head(b"Host: x", b"A : b"), 400),
    "header without colon": (head(b"Host: x", b"A"), 400),
    "HTTP/0.9": (b"GET /ignition\r\n\r\n", 400),
    "HTTP/2.0": (head(first=b"GET /ignition HTTP/2.0"), 505),
    "h2 preface": (b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", (400, 501)),
    "absolute target of another host": (head(first=b"GET http://y/ignition HTTP/1.1"), 400),
    "gzip": (put(b"Content-Encoding: gzip", b"Content-Length: 2", body=b"{}"), 415),
    "CONNECT": (head(first=b"CONNECT x:443 HTTP/1.1"), (400, 501)),
    "unknown method": (head(first=b"BREW /ignition HTTP/1.1"), 501),
    "not HTTP": (b"\x00\x01\x02\x03", 400),
    "chunked": (head(b"Host: x", b"Transfer-Encoding: chunked"), 411),
    "chunked and a length": (put(b"Content-Length: 2", b"Transfer-Encoding: chunked"), 411),
    "gzip, chunked": (put(b"Transfer-Encoding: gzip, chunked"), 411),
    "two lengths": (put(b"Content-Length: 2", b"Content-Length: 3", body=b"{}"), 400),
    "one length twice": (put(b"Content-Length: 2", b"Content-Length: 2", body=b"{}"), 400),
    "list of lengths": (put(b"Content-Length: 2, 2", body=b"{}"), 400),
    "signed length": (put(b"Content-Length: +2", body=b"{}"), 400),
    "hex length": (put(b"Content-Length: 0x2", body=b"{}"), 400),
    "length of 30 digits": (put(b"Content-Length: " + b"9" * 30), 413),
    "body too large": (put(b"Content-Length: 16385"), 413),
    "form": (put(b"Content-Type: application/x-www-form-urlencoded", b"Content-Length: 0"), 415),
    "expectation": (head(b"Host: x", b"Expect: miracles"), 417),
    "65 headers": (head(b"Host: x", *[b"A: b"] * 64), 431),
    "long header": (head(b"Host: x", b"A: " + b"b" * 9000), 431),
    "head of 17 KiB": (head(b"Host: x", *[b"A: " + b"b" * 1000] * 17), 431),
    "head without end": (b"GET / HTTP/1.1\r\n" + b"A: b\r\n" * 3000, 431),
    "long target": (head(first=b"GET /" + b"a" * 3000 + b" HTTP/1.1"), 414),
    "target without end": (b"GET /" + b"a" * 20000, 414),
}


@pytest.mark.parametrize("port", ["register", "register_ak"])
def test_malformed_requests_get_a_whole_refusal_and_make_nothing(cp, ns, serve, port):
    op = serve("--role", "all") if port == "register_ak" else serve()
    for name, (data, want) in REFUSALS.items():
        with connect(getattr(op, f"{port}_port")) as sock:
            sock.sendall(data)
            reader = Reader(sock)
            status, headers, body = reader.response()
            assert status in (want if isinstance(want, tuple) else (want,)), (name, status, body)
            answer = json.loads(body)
            assert headers["content-type"] == "application/json", name
            assert headers["connection"] == "close", name
            if port == "register":
                assert set(answer) == {"code", "message"} and answer["code"] == status, name
            else:
                assert set(answer) == {"status", "message"} and answer["status"] == "error", name
            assert reader.at_end(), name
    assert machines(cp, ns) == []
    wait_idle(op)


def test_head_and_conditional_requests_never_create(cp, ns, serve):
    op = serve()
    for path in ("/ignition", "/ignition-clevis-pin-trustee"):
        status, headers, body = spine.request(op.register_port, "HEAD", path)
        assert (status, headers["Allow"], body) == (405, "GET", b"")
        for name, value in (("If-None-Match", "*"), ("If-Match", '"a"'),
                            ("If-Modified-Since", "Sat, 01 Jan 2000 00:00:00 GMT"),
                            ("If-Unmodified-Since", "Sat, 01 Jan 2000 00:00:00 GMT")):
            assert spine.request(op.register_port, "GET", path, headers={name: value})[0] == 412
    assert machines(cp, ns) == []


# ---- slow and many

def test_slow_and_non_reading_peers_are_ended(serve):
    """15 s, once, for all of them at a time."""
    op = serve(tls=True)
    port, started = op.register_port, time.monotonic()
    before = op.memory_kib()["VmRSS"]
    drip, body = connect(port, tls=True), connect(op.register_ak_port, tls=True)
    idle, handshake = connect(port, tls=True), connect(port)
    deaf = connect(op.health_port, rcvbuf=4096)
    body.sendall(put(b"Content-Length: 10", body=b"{"))
    handshake.sendall(b"\x16\x03\x01\x02\x00\x01")
    deaf.sendall(b"GET /metrics HTTP/1.1\r\nHost: x\r\n\r\n" * 100)
    ended = None
    drip.settimeout(0.5)
    for letter in b"GET /ignition HTTP/1.1\r\nHost: x\r\nA: " + b"b" * 100:
        try:
            drip.sendall(bytes([letter]))
            ended = drip.recv(65536)
            break
        except socket.timeout:
            assert time.monotonic() - started < REQUEST_S + 5
    took = time.monotonic() - started
    assert REQUEST_S - 1 < took < REQUEST_S + 4, took
    assert ended.startswith(b"HTTP/1.1 408 ") and b'"code":408' in ended
    status, headers, answer = Reader(body).response()
    assert status == 408 and headers["connection"] == "close"
    assert json.loads(answer)["status"] == "error"
    assert Reader(idle).at_end() and Reader(handshake).at_end()
    wait_for(lambda: connections(op, "health") <= 1, 10, "end of the non-reading connection")
    assert time.monotonic() - started < REQUEST_S + 12
    assert not memory_grew(op, before, 8)
    for sock in (drip, body, idle, handshake, deaf):
        sock.close()


def test_input_of_an_endless_pipeliner_is_bounded(serve):
    op = serve()
    before = op.memory_kib()["VmRSS"]
    end = time.monotonic() + 12
    with connect(op.register_port, rcvbuf=4096, timeout=5) as sock:
        with pytest.raises(OSError):  # closed after its 100 requests, at the latest when it blocks
            while time.monotonic() < end:
                sock.send(NONE * 2000)
    assert not memory_grew(op, before, 4)
    wait_idle(op)


def test_100000_connections_in_turn_leave_nothing(serve):
    op = serve()

    def turns(n):
        # An ended connection is reset, or the ports of this machine would all be in TIME_WAIT.
        linger = struct.pack("ii", 1, 0)
        for _ in range(n):
            sock = socket.socket()
            sock.connect(("127.0.0.1", op.register_port))
            sock.sendall(CLOSE)
            assert sock.recv(4096).startswith(b"HTTP/1.1 404 ")
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, linger)
            sock.close()

    turns(2000)  # what the allocator keeps anyway
    wait_idle(op)
    fds, rss = op.metrics()["process_open_fds"], op.memory_kib()["VmRSS"]
    started = time.monotonic()
    turns(100000)
    assert time.monotonic() - started < 300 * PATIENCE
    wait_idle(op)
    assert op.metrics()["process_open_fds"] <= fds + 1
    assert not memory_grew(op, rss, 1)
    assert op.metrics()['tec_http_requests_total{route="unmatched",code="404"}'] >= 102000


def told_by_rate(url, source, status, *args):
    """The number of requests, each on a connection of its own, that a listener with --rate-limit 6,1 answers with
    this status and Retry-After. None of them may be reset."""
    argv = ["curl", "-q", "-sk", "--noproxy", "*", "--max-time", "20", "--interface", source, "-o", os.devnull,
            "-w", "%{http_code} %header{retry-after}", *args, url]
    with concurrent.futures.ThreadPoolExecutor(16) as pool:
        done = list(pool.map(lambda _: subprocess.run(argv, capture_output=True, text=True, check=False), range(16)))
    assert [d.returncode for d in done] == [0] * 16, [(d.returncode, d.stdout) for d in done]
    told = [d.stdout for d in done if d.stdout.startswith(str(status))]
    assert set(told) <= {f"{status} 1"}, told
    return len(told)


@pytest.mark.parametrize("tls", [False, True], ids=["plain", "tls"])
def test_rate_limit_is_per_source(cp, ns, serve, tls):
    """Ignition retries 5xx and fails the installation at 429, so the register listener answers 503."""
    op = serve("--role", "all", "--rate-limit", "6,1", tls=tls)
    with connect(op.register_port, source="127.0.0.9", tls=tls) as sock:
        reader = Reader(sock)
        for _ in range(6):
            sock.sendall(NONE)
            assert reader.response()[0] == 404
        sock.sendall(NONE.replace(b"/none", b"/ignition"))
        status, headers, body = reader.response()
        assert status == 503 and json.loads(body)["code"] == 503
        assert 1 <= int(headers["retry-after"]) <= 2
        assert headers["connection"] == "close" and reader.at_end()
    assert machines(cp, ns) == []
    at = "https://127.0.0.1" if tls else "http://127.0.0.1"
    told = told_by_rate(f"{at}:{op.register_port}/none", "127.0.0.9", 503)
    assert told > 0 and refused(op, "rate_answered") == told
    assert told_by_rate(f"{at}:{op.register_ak_port}/register-ak", "127.0.0.9", 429,
                        "-X", "PUT", "--data-binary", "x" * 12000, "-H", "Content-Type: application/json") > 0
    assert ask(op.register_port, NONE, source="127.0.0.10", tls=tls)[0] == 404
    wait_for(lambda: ask(op.register_port, NONE, source="127.0.0.9", tls=tls)[0] == 404, 10, "a new token")


def test_connections_are_capped(serve):
    op = serve("--max-connections", "5")
    wait_idle(op)
    held = [connect(op.register_port, source="127.0.0.9") for _ in range(5)]
    wait_for(lambda: connections(op) == 5, 10, "five connections")
    assert ask(op.register_port, CLOSE)[0] == 404, "the source that holds all gives way"
    assert Reader(held.pop(0)).at_end()
    held[1].sendall(NONE)
    assert Reader(held[1]).response()[0] == 404, "the others stay"
    wait_for(lambda: connections(op) == 4, 10, "a free place")
    assert op.metrics()['tec_http_evicted_connections_total{listener="register"}'] == 1
    for sock in held:
        sock.close()


# ---- Ignition

def validators():
    """{'3.3': argv, '3.6': argv}: who reads up to which version."""
    debian = shutil.which("ignition-validate")
    if not debian:
        lacking("no ignition-validate; next step: apt-get install ignition")
    build = subprocess.run([os.path.join(TOP, "tests", "ignition", "build.sh")], check=False,
                           stdout=subprocess.PIPE, text=True)
    if build.returncode:
        lacking("tests/ignition/build.sh failed; its last line says what to do")
    return {"3.3": [debian, "-"], "3.6": [build.stdout.strip()]}


def complaints(argv, body):
    """What a validator says; unknown fields are only warnings, so its exit code is not enough."""
    done = subprocess.run(argv, input=body, capture_output=True, check=False)
    return (done.stdout + done.stderr).decode() or ("" if done.returncode == 0 else "failed")


TYPE = "application/vnd.coreos.ignition+json"
VERSIONS = [(None, "3.6.0"), ("*/*", "3.6.0"), ("application/json, */*;q=0.1", "3.6.0"),
            *((f"{TYPE};version=3.{n}.0, */*;q=0.1", f"3.{n}.0") for n in range(2, 7)),
            (f"{TYPE}; version=3.9.0", "3.6.0"), (f"{TYPE};version=3.1.0", None),
            (f"{TYPE};version=2.3.0", None), (f"{TYPE};version=4.0.0", None), ("text/html", None)]


@pytest.mark.parametrize("tls", [False, True], ids=["plain", "tls"])
def test_every_ignition_version_is_valid(cp, ns, serve, tls):
    check = validators()
    op = serve(tls=tls, **({"trusteeSecret": "tls"} if tls else {}))
    made = 0
    for accept, version in VERSIONS:
        line = [f"Accept: {accept}".encode()] if accept else []
        status, headers, body = ask(op.register_port, head(b"Host: x", *line), tls=tls)
        if not version:
            assert status == 406, accept
            continue
        made += 1
        assert status == 200 and headers["cache-control"] == "no-store"
        assert headers["content-type"] == f"{TYPE}; version={version}"
        assert json.loads(body)["ignition"]["version"] == version
        for reader in ["3.6"] + (["3.3"] if version <= "3.3.0" else []):
            said = complaints(check[reader], body)
            if version < "3.6.0":  # only a patched Ignition knows the pin there; all else must fit
                assert said.splitlines()[0].endswith("unsupported clevis pin"), said
                said = complaints(check[reader], body.replace(b'"pin":"trustee"', b'"pin":"tang"'))
            assert said == "", (reader, version)
        config = spine.clevis_config(json.loads(body))
        assert config["servers"][0]["url"].startswith("https://" if tls else "http://")
        assert config["servers"][0]["cert"].startswith("-----BEGIN CERT" if tls else "")
    assert len(machines(cp, ns)) == made


# ---- life

def test_sigterm_finishes_what_is_in_flight(cp, ns, start_operator, tmp_path):
    held, go_on = threading.Event(), threading.Event()

    def rule(request):
        if request.method == "POST" and "/machines" in request.target:
            held.set()
            go_on.wait(20)

    spine.make_cluster(cp, ns)
    proxy = FaultProxy(cp.service_account_kubeconfig(ns, OPERATOR_ACCOUNT), str(tmp_path), rule)
    op = start_operator(ns, "--role", "register", kubeconfig=proxy.kubeconfig)
    try:
        with connect(op.register_port) as waiting, connect(op.register_port) as half, \
                connect(op.register_port) as idle:
            waiting.sendall(NONE.replace(b"/none", b"/ignition"))
            half.sendall(NONE[:20])
            assert held.wait(10)
            wait_for(lambda: connections(op) == 3, 20, "three connections")
            op.proc.signal(signal.SIGTERM)
            assert Reader(idle).at_end()
            with pytest.raises(OSError):
                connect(op.register_port, timeout=2)
            assert op.health("/readyz") == (503, "not ready: shutting down\n")
            half.sendall(NONE[20:])
            status, headers, _ = Reader(half).response()
            assert (status, headers["connection"]) == (404, "close")
            go_on.set()
            status, headers, _ = Reader(waiting).response()
            assert (status, headers["connection"]) == (200, "close")
        assert op.proc.wait(15) == 0
    finally:
        go_on.set()
        proxy.close()


def test_sigint_ends_with_0(serve):
    op = serve()
    op.proc.signal(signal.SIGINT)
    assert op.proc.wait(15) == 0


def test_sighup_rereads_the_log_level(serve, tmp_path):
    conf = tmp_path / "tec.conf"
    conf.write_text("log-level = error\n")
    op = serve("--config", str(conf))
    assert "machine registered" not in op.log_text()
    spine.first_boot(op)
    assert " info " not in op.log_text()
    for text, said in (("log-level = info\n", "configuration reloaded"),
                       ("log-level = loud\n", "cannot reload the configuration")):
        conf.write_text(text)
        op.proc.signal(signal.SIGHUP)
        wait_for(lambda said=said: said in op.log_text(), 20, said)
        count = op.log_text().count("machine registered")
        spine.first_boot(op)
        assert op.log_text().count("machine registered") == count + 1


def test_json_logs_parse(serve):
    op = serve("--log-format", "json", "--log-level", "debug")
    spine.first_boot(op)
    ask(op.register_port, b"\x16\x03\x01")
    op.terminate()
    lines = [json.loads(line) for line in op.log_text().splitlines()]
    assert any(x["msg"] == "machine registered" and x["kind"] == "Machine" for x in lines)
    assert all({"ts", "level", "msg"} <= set(x) for x in lines), lines
