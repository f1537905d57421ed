# SPDX-License-Identifier: MIT
"""What an attacker tries, each on a real API server under the rights of k8s/: one function or more per
number, test_attack_NN_what. Each was seen to fail on version 0.1.0."""

import base64
import contextlib
import hashlib
import http.server
import os
import threading

import pytest

import spine
from teckinds import made


# ---- 1


# ---- 2


# ---- 3


# ---- 4


# ---- 5


# ---- 6


# ---- 7

class WebServer:
    """Plain HTTP on 127.0.0.1. ANSWER(path) is (status, headers, body), or None: no answer until
    the server is closed."""

    def __init__(self, answer):
        self.paths, self.closed = [], threading.Event()
        outer = self

        class Handler(http.server.BaseHTTPRequestHandler):
            def do_GET(self):
                outer.paths.append(self.path)
                told = answer(self.path)
                if told is None:
                    outer.closed.wait(120)
                    return
                self.send_response(told[0])
                for name, value in told[1].items():
                    self.send_header(name, value)
                self.send_header("Content-Length", str(len(told[2])))
                self.end_headers()
                self.wfile.write(told[2])

            def log_message(self, *_):
                pass

        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.host = f"127.0.0.1:{self.server.server_port}"
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    def close(self):
        self.closed.set()
        self.server.shutdown()
        self.server.server_close()


@pytest.fixture(name="web_server")
def _web_server():
    started = []

    def start(answer):
        started.append(WebServer(answer))
        return started[-1]

    yield start
    for server in started:
        server.close()


def image_in(registry, name="os"):
    return {"image": f"{registry.host}/a/{name}@sha256:{hashlib.sha256(name.encode()).hexdigest()}"}


def test_attack_07_an_insecure_registry_sends_us_to_another_server(cp, ns, start_operator,
                                                                   web_server):
    """A redirect to a plain server that only the operator reaches."""
    page = b"ami-0123456789abcdef0 of somebody else"
    victim = web_server(lambda _: (200, {}, page))
    target = f"http://{victim.host}/latest/meta-data/"
    registry = web_server(lambda _: (307, {"Location": target}, b""))
    spine.make_cluster(cp, ns)
    start_operator(ns, "--insecure-registry", registry.host)
    made(cp, "ai", ns, image_in(registry), "os")
    committed = {}

    def told():
        committed.update(spine.condition(spine.read(cp, ns, "ai", "os"), "Committed"))
        return registry.host in committed.get("message", "")
    cp.wait_for(told, 20, "a condition that names the registry")
    assert victim.paths == []
    assert "plain http to a host that is not listed as insecure" in committed["message"]
    assert hashlib.sha256(page).hexdigest()[:12] not in committed["message"]


def test_attack_07_a_condition_tells_nothing_of_a_body(cp, ns, start_operator, web_server):
    """A registry that answers with somebody else's page cannot have its digest told."""
    page = b"a page of 31 bytes, for example"
    registry = web_server(lambda _: (200, {}, page))
    spine.make_cluster(cp, ns)
    start_operator(ns, "--insecure-registry", registry.host)
    made(cp, "ai", ns, image_in(registry), "os")
    image = spine.wait_condition(cp, ns, "ai", "os", "Committed", "ComputationFailed")
    message = spine.condition(image, "Committed")["message"]
    assert registry.host in message
    assert hashlib.sha256(page).hexdigest()[:12] not in message
    assert str(len(page)) not in message


def processes_below(pid):
    found = []
    for task in os.listdir(f"/proc/{pid}/task"):
        with contextlib.suppress(FileNotFoundError), \
                open(f"/proc/{pid}/task/{task}/children", encoding="ascii") as f:
            found += [int(child) for child in f.read().split()]
    return found


def holds(pid, needle):
    """Whether the process has these bytes anywhere in its memory."""
    with open(f"/proc/{pid}/maps", encoding="ascii") as maps, \
            open(f"/proc/{pid}/mem", "rb", buffering=0) as mem:
        for line in maps:
            where, rights = line.split()[:2]
            start, end = (int(x, 16) for x in where.split("-"))
            if not rights.startswith("rw") or end - start > 1 << 30:  # a sanitizer's shadow
                continue
            with contextlib.suppress(OSError, ValueError, OverflowError):
                mem.seek(start)
                if needle in mem.read(end - start):
                    return True
    return False


def test_attack_07_who_reads_registries_holds_no_keys(cp, ns, start_operator, web_server):
    """What a registry sends is read by a process that has no disk key, nothing of the operator's
    environment and descriptors, and that cannot get rights or open files."""
    if os.geteuid() != 0:
        pytest.skip("reads the memory of another process; next step: run as root")
    registry = web_server(lambda _: None)  # one that never answers: the process stays
    spine.make_cluster(cp, ns)
    op = start_operator(ns, "--insecure-registry", registry.host, env={"TEC_TEST_MARK": "secret"})
    uuid = spine.first_boot(op)
    data = cp.wait_for(lambda: (spine.read(cp, ns, "secrets", uuid) or {}).get("data"), 20,
                       "a disk key")
    keys = [base64.b64decode(v) for v in data.values()]
    cp.wait_for(lambda: any(holds(op.pid, key) for key in keys), 20, "the key in the operator")
    for i in range(6):
        made(cp, "ai", ns, image_in(registry, f"os-{i}"), f"os-{i}")
    cp.wait_for(lambda: len(registry.paths) == 4, 20, "four requests")
    children = processes_below(op.pid)
    assert len(children) == 4, children
    assert os.path.basename(os.readlink(f"/proc/{children[0]}/exe")) == "tec-operator"
    for pid in children:
        assert not any(holds(pid, key) for key in keys)
        with open(f"/proc/{pid}/environ", "rb") as f:
            assert f.read() == b""
        with open(f"/proc/{pid}/cmdline", "rb") as f:
            assert f.read() == b"tec-operator\0--lookup-label\0"
        with open(f"/proc/{pid}/status", encoding="ascii") as f:
            assert "NoNewPrivs:\t1\n" in f.read()
        with open(f"/proc/{pid}/limits", encoding="ascii") as f:
            limits = {line[:26].strip(): line[26:].split()[1] for line in f}
        assert limits["Max core file size"] == limits["Max file size"] == "0"
        assert int(limits["Max open files"]) <= 64 and int(limits["Max cpu time"]) <= 30
    op.kill9()
    cp.wait_for(lambda: not any(os.path.exists(f"/proc/{pid}") for pid in children), 20,
                "the end of what nobody asks for any more")


# ---- 8


# ---- 9


# ---- 10


# ---- 11


# ---- 12


# ---- 13


# ---- 14
