# SPDX-License-Identifier: MIT
"""What an attacker tries, each on a real API server under the rights of k8s/: one function or more per
number, test_attack_NN_what. Each was seen to fail on version 0.1.0."""

import errno
import json
import multiprocessing
import resource
import select
import socket
import threading
import time

import pytest

import spine
from conftest import OPERATOR_ACCOUNT
from controlplane import wait_for
from faultproxy import FaultProxy
from test_listeners import Reader, ask, connect


# ---- 1


# ---- 2


# ---- 3


# ---- 4


# ---- 5


# ---- 6

IGNITION = b"GET /ignition HTTP/1.1\r\nHost: x\r\n\r\n"


def spoken_in_plain_text(sock):
    """What a listener says on a connection that was opened in plain text, to its end."""
    said = b""
    try:
        sock.sendall(IGNITION)
        sock.settimeout(5)
        while more := sock.recv(65536):
            said += more
    except socket.timeout:
        pass
    except OSError:  # closed
        pass
    return said


def test_attack_06_a_connection_from_before_the_caches_is_not_served_in_plain_text(
        cp, ns, start_operator, tmp_path):
    """The API server is slow when the operator starts; somebody has connected to it already."""
    go_on = threading.Event()

    def rule(request):
        if "trustedexecutionclusters" in request.target:
            go_on.wait(30)

    spine.make_tls_secret(cp, ns, "tls", spine.make_certificate(str(tmp_path)))
    spine.make_cluster(cp, ns, registerServerSecret="tls", trusteeSecret="tls",
                       attestationKeyRegisterSecret="tls", trustee={"plaintext": "Refuse"})
    proxy = FaultProxy(cp.service_account_kubeconfig(ns, OPERATOR_ACCOUNT), str(tmp_path), rule)
    op = start_operator(ns, wait_ready=False, kubeconfig=proxy.kubeconfig)
    early = []
    try:
        wait_for(lambda: op.log_text().count('msg="listening"') >= 3, 20, "listening sockets")
        for _ in range(3):
            early.append(connect(op.register_port))
        early[1].sendall(IGNITION[:20])
        go_on.set()
        op.wait_ready()
        wait_for(lambda: ask(op.register_port, IGNITION, tls=True)[0] == 200, 20, "TLS")
        early[1].close()
        for sock in (early[0], early[2]):
            said = spoken_in_plain_text(sock)
            assert b"ignition" not in said and b" 200 " not in said, said
    finally:
        go_on.set()
        proxy.close()
        for sock in early:
            sock.close()
    assert len(spine.items(cp, ns, "mach")) == 1, "the one over TLS"


def test_attack_06_a_plain_connection_ends_when_tls_is_configured(cp, ns, start_operator, tmp_path):
    spine.make_tls_secret(cp, ns, "tls", spine.make_certificate(str(tmp_path)))
    spine.make_cluster(cp, ns)
    op = start_operator(ns)
    with connect(op.register_port) as sock:
        sock.sendall(IGNITION.replace(b"/ignition", b"/none"))
        assert Reader(sock).response()[0] == 404
        spine.merge(cp, ns, "tec", "tec", {"spec": {
            "registerServerSecret": "tls", "trusteeSecret": "tls",
            "attestationKeyRegisterSecret": "tls", "trustee": {"plaintext": "Refuse"}}})

        def over_tls():
            try:
                return ask(op.register_port, IGNITION, tls=True)[0] == 200
            except OSError:
                return False

        wait_for(over_tls, 20, "TLS")
        assert spoken_in_plain_text(sock) == b""
    assert len(spine.items(cp, ns, "mach")) == 1


# ---- 7


# ---- 8


# ---- 9


# ---- 10

def hold_connections(port, sources, stop, started):
    """As many as SOURCES get, each for as long as a token of the rate limit can be stretched: a whole
    request shortly before the first deadline, which accepting paid for, and one byte of another shortly
    before the next. What is closed is opened again."""
    hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    poll, held = select.poll(), {}  # fd: [socket, when to say something, said]

    def drop(fd):
        poll.unregister(fd)
        held.pop(fd)[0].close()

    while not stop.is_set():
        now = time.monotonic()
        for source in sources:
            for _ in range(20 if len(held) < 6000 else 0):
                sock = socket.socket()
                sock.setblocking(False)
                sock.bind((source, 0))
                if sock.connect_ex(("127.0.0.1", port)) not in (0, errno.EINPROGRESS):
                    sock.close()
                    continue
                held[sock.fileno()] = [sock, now + 14, 0]
                poll.register(sock, select.POLLIN)
        for fd, _ in poll.poll(50):
            try:
                if held[fd][0].recv(65536) == b"":
                    drop(fd)
            except OSError:
                drop(fd)
        for fd in [fd for fd, (_, at, said) in held.items() if at < now and said < 2]:
            sock, at, said = held[fd]
            held[fd] = [sock, at + 14, said + 1]
            try:
                sock.send(b"G" if said else b"GET /none HTTP/1.1\r\nHost: x\r\n\r\n")
            except OSError:
                drop(fd)
        started.set()


@pytest.mark.parametrize("greedy", [1, 8])
def test_attack_10_greedy_addresses_keep_nobody_off_a_listener(cp, ns, start_operator, greedy):
    """At the limits that nobody changed. One address alone needs half a minute to take every place."""
    spine.make_cluster(cp, ns)
    op = start_operator(ns)
    stop, started = multiprocessing.Event(), multiprocessing.Event()
    attacker = multiprocessing.Process(target=hold_connections, daemon=True, args=(
        op.register_port, [f"127.0.0.{2 + i}" for i in range(greedy)], stop, started))
    attacker.start()
    good, asked, slowest = 0, 200, 0.0
    try:
        assert started.wait(10)
        time.sleep(30 if greedy == 1 else 5)
        held = op.metrics()['tec_http_connections{listener="register"}']
        assert held >= 1450, f"the attack holds {held} connections only"
        for i in range(asked):
            begin = time.monotonic()
            try:
                path = b"/ignition" if i % 20 == 0 else b"/none"
                status = ask(op.register_port, IGNITION.replace(b"/ignition", path), timeout=5)[0]
                good += status == (200 if i % 20 == 0 else 404)
            except (OSError, EOFError):
                pass
            slowest = max(slowest, time.monotonic() - begin)
            time.sleep(0.03)  # a source of its own may not pass its rate
    finally:
        stop.set()
        attacker.join(10)
        attacker.kill()
    print(f"{greedy} greedy: {good} of {asked}, slowest {slowest * 1000:.0f} ms, {held} held")
    assert good >= asked * 0.99, f"{good} of {asked} requests were served"
    assert slowest < 2, slowest


# ---- 11


# ---- 12

def sit_on(port, sources, stop, started):
    """Connections that say nothing, opened again when they are closed."""
    hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    held = []
    while not stop.is_set():
        for source in sources:
            sock = socket.socket()
            sock.setblocking(False)
            sock.bind((source, 0))
            sock.connect_ex(("127.0.0.1", port))
            held.append(sock)
        while len(held) > 1000:
            held.pop(0).close()
            started.set()


@pytest.mark.parametrize("paths", [("/healthz",), ("/healthz", "/metrics")], ids=["silent", "scrapers"])
def test_attack_12_the_kubelet_always_gets_through(cp, ns, start_operator, paths):
    """Also when the attacker stands on the kubelet's node and has its address, and when he asks for
    metrics that he does not read."""
    spine.make_cluster(cp, ns)
    op = start_operator(ns)
    stop, started = multiprocessing.Event(), multiprocessing.Event()
    attacker = multiprocessing.Process(target=sit_on, daemon=True, args=(
        op.health_port, ["127.0.0.1", "127.0.0.2"], stop, started))
    deaf, good, asked = [], 0, 200
    attacker.start()
    try:
        assert started.wait(20)
        for _ in range(64 if "/metrics" in paths else 0):
            deaf.append(connect(op.health_port, rcvbuf=2048))
            try:
                deaf[-1].sendall(b"GET /metrics HTTP/1.1\r\nHost: x\r\n\r\n" * 50)
            except OSError:
                pass
        for _ in range(asked):
            try:
                good += op.health("/healthz") == (200, "ok\n")
            except OSError:
                pass
    finally:
        stop.set()
        attacker.join(10)
        attacker.kill()
        for sock in deaf:
            sock.close()
    assert good == asked, f"{good} of {asked} probes were answered"


# ---- 13


# ---- 14

def test_attack_14_a_coded_body_is_not_read_as_plain(cp, ns, start_operator):
    """What inspects a body on its way decodes it first: two readers, two meanings."""
    spine.make_cluster(cp, ns)
    op = start_operator(ns)
    body = json.dumps({"public_key": spine.rsa_key()})
    for coding, want in (("gzip", 415), ("identity, br", 415), ("identity", 201)):
        status, _, answer = spine.request(
            op.register_ak_port, "PUT", "/register-ak", body,
            {"Content-Type": "application/json", "Content-Encoding": coding})
        assert status == want, (coding, answer)
    assert len(spine.items(cp, ns, "ak")) == 1


def test_attack_14_absolute_targets_are_served_for_our_own_host_alone(cp, ns, start_operator):
    spine.make_cluster(cp, ns)
    port = start_operator(ns).register_port
    for target, host, want in (("http://a:80/ignition", "a:80", 200), ("http://a/ignition", "b", 400),
                               ("http://a@b/ignition", "b", 400)):
        status, _, body = ask(port, f"GET {target} HTTP/1.1\r\nHost: {host}\r\n\r\n".encode())
        assert status == want, (target, host, body)
    assert len(spine.items(cp, ns, "mach")) == 1
