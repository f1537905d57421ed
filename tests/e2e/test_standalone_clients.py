# SPDX-License-Identifier: MIT
"""tec-operator --standalone and what clients do to its API: many watches, watches from the future, bodies that are sent
by half, watches that are not read, certificates of another CA."""

import contextlib
import json
import resource
import shutil
import socket
import ssl
import subprocess

import pytest

import spine
from conftest import lacking
from controlplane import Unavailable, wait_for
from standaloneplane import StandalonePlane
from tecproc import operator_binary

WATCHES = 1000
WATCH_KIB = 4  # beside its connection, of which most is OpenSSL's
CONFIGMAPS = "/api/v1/namespaces/default/configmaps"


@pytest.fixture(scope="module")
def alone():
    try:
        plane = StandalonePlane()
    except Unavailable as e:
        lacking(str(e))
    with plane:
        yield plane
        plane.check()


def connect(alone, certificate=None, ca=None):
    """A connection with the administrator's certificate, or with another one."""
    context = ssl.create_default_context(cafile=ca or alone.ca_file)
    context.load_cert_chain(*(certificate or (alone.path("admin.crt"), alone.path("admin.key"))))
    raw = socket.create_connection(("127.0.0.1", alone.port), timeout=60)
    return context.wrap_socket(raw, server_hostname="127.0.0.1")


def head(method, path, *lines):
    return "\r\n".join([f"{method} {path} HTTP/1.1", "Host: a", *lines, "", ""]).encode()


def answer(c):
    """The status, and what of the body came with it."""
    data = b""
    while b"\r\n\r\n" not in data:
        piece = c.recv(65536)
        assert piece, data
        data += piece
    first, _, rest = data.partition(b"\r\n\r\n")
    return int(first.split()[1]), rest


def comes(c, what):
    data = b""
    while what not in data:
        piece = c.recv(65536)
        if not piece:
            return False
        data = data[-len(what):] + piece
    return True


def anonymous_kib(alone):
    with open(f"/proc/{alone.apiserver.pid}/status", encoding="ascii") as f:
        return next(int(line.split()[1]) for line in f if line.startswith("RssAnon"))


def sanitized():
    with open(operator_binary(), "rb") as f:
        return b"__asan_init" in f.read()


def open_watches(alone):
    status, _, body = spine.request(alone.health_port, "GET", "/metrics")
    assert status == 200
    return next((int(float(line.split()[1])) for line in body.decode().splitlines()
                 if line.startswith("tec_api_watches ")), 0)


def make(alone, name):
    status, made = alone.api("POST", CONFIGMAPS, {"metadata": {"name": name}})
    assert status == 201, made
    return int(made["metadata"]["resourceVersion"])


def test_a_thousand_watches(alone):
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft < WATCHES + 200:
        resource.setrlimit(resource.RLIMIT_NOFILE, (min(WATCHES + 200, hard), hard))
    with contextlib.ExitStack() as stack:
        for _ in range(20):  # what a first watch takes once
            c = connect(alone)
            c.sendall(head("GET", f"{CONFIGMAPS}?watch=1"))
            assert answer(c)[0] == 200
            c.close()
        wait_for(lambda: open_watches(alone) == 0, 30, "end of the first watches")
        clients, tls, watching = [], 0, 0
        for _ in range(WATCHES // 100):  # a connection that asks nothing is ended after a while
            before = anonymous_kib(alone)
            new = [stack.enter_context(connect(alone)) for _ in range(100)]
            idle = anonymous_kib(alone)
            for c in new:
                c.sendall(head("GET", f"{CONFIGMAPS}?watch=1&allowWatchBookmarks=true", "Accept: application/json"))
            assert all(answer(c)[0] == 200 for c in new)
            clients += new
            tls += idle - before
            watching += anonymous_kib(alone) - idle
        assert open_watches(alone) == WATCHES
        print(f"{WATCHES} idle watches: {watching / WATCHES:.2f} KiB each (limit {WATCH_KIB}), beside "
              f"{tls / WATCHES:.2f} KiB of their TLS connections")
        assert sanitized() or watching <= WATCH_KIB * WATCHES
        make(alone, "seen")
        assert all(comes(c, b'"name":"seen"') for c in clients)
        assert spine.request(alone.health_port, "GET", "/readyz")[0] == 200
    wait_for(lambda: open_watches(alone) == 0, 60, "end of all watches")


def test_a_watch_from_the_future_gets_what_comes_after_it(alone):
    now = make(alone, "before")
    with connect(alone) as c:
        c.sendall(head("GET", f"{CONFIGMAPS}?watch=1&resourceVersion={now + 2}&timeoutSeconds=600"))
        status, rest = answer(c)
        assert status == 200 and b"before" not in rest
        for name in ("one", "two", "three"):
            make(alone, f"future-{name}")
        data = rest
        while b"future-three" not in data:
            data += c.recv(65536)
        assert b"future-one" not in data and b"future-two" not in data
    # With the initial events it would have to wait for that version: refused, as by kube-apiserver.
    status, said = alone.api("GET", f"{CONFIGMAPS}?watch=1&resourceVersion={now + 1000}"
                                    "&sendInitialEvents=true&resourceVersionMatch=NotOlderThan")
    assert status == 504 and "Too large resource version" in said["message"], said
    status, said = alone.api("GET", f"{CONFIGMAPS}?resourceVersion={now + 1000}&resourceVersionMatch=NotOlderThan")
    assert status == 504 and "Too large resource version" in said["message"], said


def test_half_sent_bodies_make_nothing(alone):
    body = json.dumps({"metadata": {"name": "half"}}).encode()
    half = head("POST", CONFIGMAPS, "Content-Type: application/json", f"Content-Length: {len(body)}") + body[:-1]
    kept = []
    for end in ("close", "shutdown", "keep") * 20:
        c = connect(alone)
        c.sendall(half)
        if end == "close":
            c.close()
        elif end == "shutdown":
            c.shutdown(socket.SHUT_WR)
            kept.append(c)
        else:
            kept.append(c)
    make(alone, "whole")
    assert alone.api("GET", f"{CONFIGMAPS}/half")[0] == 404
    kept[-1].sendall(body[-1:])
    assert answer(kept[-1])[0] == 201
    assert alone.api("GET", f"{CONFIGMAPS}/half")[0] == 200
    for c in kept:
        c.close()


def test_a_watch_that_is_not_read_costs_others_nothing(alone):
    """Its place is in the history: what it did not read yet is not kept for it."""
    with connect(alone) as c:
        c.sendall(head("GET", f"{CONFIGMAPS}?watch=1"))
        assert answer(c)[0] == 200
        before = anonymous_kib(alone)
        fill = "x" * 200000
        for i in range(100):  # 20 MB: more than sockets take
            status, said = alone.api("PUT" if i else "POST", f"{CONFIGMAPS}/large" if i else CONFIGMAPS,
                                     {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "large"},
                                      "data": {"fill": fill, "n": str(i)}})
            assert status in (200, 201), said
        assert sanitized() or anonymous_kib(alone) - before < 16 * 1024
        assert comes(c, b'"n":"99"'), "and it gets all of it when it reads on"


def other_certificates(tmp_path, alone):
    """Client certificates that look like the administrator's, and are not: by another CA of the same name, by itself."""

    def openssl(*args):
        subprocess.run(["openssl", *args], check=True, capture_output=True, cwd=tmp_path)

    new = ("req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-days", "2")
    openssl(*new, "-keyout", "ca.key", "-out", "ca.crt", "-subj", "/CN=tec-operator CA")
    openssl("req", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-keyout", "a.key", "-out", "a.csr",
            "-subj", "/O=system:masters/CN=tec-admin")
    (tmp_path / "ext").write_text("extendedKeyUsage=clientAuth\n")
    openssl("x509", "-req", "-in", "a.csr", "-CA", "ca.crt", "-CAkey", "ca.key", "-CAcreateserial", "-out", "a.crt",
            "-days", "2", "-extfile", "ext")
    openssl(*new, "-keyout", "self.key", "-out", "self.crt", "-subj", "/O=system:masters/CN=tec-admin")
    shutil.copy(alone.path("state", "server.crt"), tmp_path / "server.crt")
    return {"another CA": ("a.crt", "a.key"), "itself": ("self.crt", "self.key")}


def test_certificates_of_another_ca_are_nobody(alone, tmp_path):
    for who, files in other_certificates(tmp_path, alone).items():
        for path in (CONFIGMAPS, f"{CONFIGMAPS}?watch=1", "/tec/v1/backup", "/api"):
            # Refused in the handshake, or answered 401: TLS 1.3 tells a client after its first request.
            try:
                with connect(alone, [str(tmp_path / f) for f in files]) as c:
                    c.sendall(head("GET", path))
                    status, rest = answer(c)
                    assert status == 401 and b'"Unauthorized"' in rest, (who, path, status, rest)
            except (ssl.SSLError, ConnectionError):
                pass
    # And a client that trusts another CA does not speak with this server.
    with pytest.raises(ssl.SSLCertVerificationError):
        connect(alone, ca=str(tmp_path / "ca.crt"))
    assert alone.api("GET", CONFIGMAPS)[0] == 200
