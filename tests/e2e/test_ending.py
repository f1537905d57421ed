# SPDX-License-Identifier: MIT
"""What nodes notice of a tec-operator that ends or starts: nothing. There is no Service here, so the
clients are what a Service would send for as long as it does not know yet."""

import http.client
import json
import signal
import threading
import time

import pytest

import spine
from conftest import OPERATOR_ACCOUNT
from controlplane import wait_for
from faultproxy import FaultProxy
from test_listeners import ask, connect

IGNITION = b"GET /ignition HTTP/1.1\r\nHost: x\r\n\r\n"
LEASE = "/apis/coordination.k8s.io/v1/namespaces/{}/leases/tec-operator"


class Clients:
    """Threads that ask again and again; failed and answered count requests between start and stop."""

    def __init__(self, *asks):
        self.answered, self.failed, self.end = 0, [], threading.Event()
        self.lock = threading.Lock()
        self.threads = [threading.Thread(target=self._run, args=(f,)) for f in asks]
        for t in self.threads:
            t.start()

    def _run(self, once):
        while not self.end.is_set():
            try:
                once()
                with self.lock:
                    self.answered += 1
            except (OSError, AssertionError, http.client.HTTPException) as e:
                with self.lock:
                    self.failed.append((time.monotonic(), repr(e)))
                time.sleep(0.01)

    def stop(self):
        self.end.set()
        for t in self.threads:
            t.join(30)


def fresh(port):
    """One request on a connection of its own, which makes a Machine."""
    def once():
        status, _, body = spine.request(port, "GET", "/ignition")
        assert status == 200, body
        time.sleep(0.02)
    return once


def kept(port):
    """Requests on one connection as long as the server lets it live."""
    conn = http.client.HTTPConnection("127.0.0.1", port, timeout=10)

    def once():
        conn.request("GET", "/none")
        answer = conn.getresponse()
        answer.read()
        assert answer.status == 404
        time.sleep(0.02)
    return once


def register(op):
    def once():
        status, answer = spine.register(op, spine.rsa_key())
        assert status == 201, answer
    return once


def ends_in(op, delay_s, began, most_s=6):
    assert op.proc.wait(delay_s + 15) == 0
    took = time.monotonic() - began
    assert delay_s <= took < delay_s + most_s, took


def test_no_request_fails_before_the_delay_is_over(cp, ns, start_operator):
    delay = 4
    spine.make_cluster(cp, ns)
    op = start_operator(ns, "--shutdown-delay", str(delay), "--rate-limit", "off")
    spine.wait_condition(cp, ns, "tec", "tec", "Installed", "InstallationCompleted")
    clients = Clients(fresh(op.register_port), fresh(op.register_port), kept(op.register_port),
                      kept(op.register_ak_port), register(op))
    try:
        wait_for(lambda: clients.answered > 50 and spine.items(cp, ns, "ak"), 60, "answers of each kind")
        there = len(spine.items(cp, ns, "mach"))
        before, began = clients.answered, time.monotonic()
        op.proc.signal(signal.SIGTERM)
        wait_for(lambda: op.health("/readyz") == (503, "not ready: shutting down\n"), 1, "not ready")
        assert op.health("/healthz")[0] == 200
        # The Lease is not kept for the delay: another replica does the work at once.
        wait_for(lambda: cp.get(LEASE.format(ns))["spec"]["holderIdentity"] == "", 2, "released Lease")
        assert time.monotonic() - began < 2.5
        time.sleep(max(0, began + delay - 0.5 - time.monotonic()))
        assert op.health("/readyz")[0] == 503
        served = clients.answered - before
        ends_in(op, delay, began)
    finally:
        clients.stop()
    early = [e for at, e in clients.failed if at < began + delay]
    assert not early and served > 100, (served, early[:5])
    assert clients.failed, "after it nobody answers"
    # Nothing that was answered is lost: each Ignition has its Machine, in the delay too.
    made = len(spine.items(cp, ns, "mach"))
    assert made > there > 0, made


def test_another_replica_leads_during_the_delay(cp, ns, start_operator):
    spine.make_cluster(cp, ns)
    first = start_operator(ns, "--shutdown-delay", "20")
    spine.wait_condition(cp, ns, "tec", "tec", "Installed", "InstallationCompleted")
    second = start_operator(ns)
    began = time.monotonic()
    first.proc.signal(signal.SIGTERM)
    wait_for(lambda: "became leader" in second.log_text(), 8, "a leader")
    uuid = spine.first_boot(first)
    spine.wait_condition(cp, ns, "mach", f"machine-{uuid}", "KeyReady", "KeyMade")
    assert time.monotonic() - began < 20 and first.alive()
    first.proc.signal(signal.SIGTERM)  # a second one ends it at once
    assert first.proc.wait(3) == 0


@pytest.mark.parametrize("env, args, delay", [
    ({}, (), 0), ({"KUBERNETES_SERVICE_HOST": "10.0.0.1"}, (), 5),
    ({"KUBERNETES_SERVICE_HOST": "10.0.0.1"}, ("--shutdown-delay", "0"), 0)])
def test_the_delay_is_for_pods(cp, ns, start_operator, env, args, delay):
    spine.make_cluster(cp, ns)
    op = start_operator(ns, *args, env=env)
    began = time.monotonic()
    op.proc.signal(signal.SIGTERM)
    ends_in(op, delay, began, 4)


def test_who_serves_nobody_waits_for_nobody(cp, ns, start_operator):
    op = start_operator(ns, "--role", "controller", "--shutdown-delay", "60")
    began = time.monotonic()
    op.proc.signal(signal.SIGTERM)
    ends_in(op, 0, began)


def test_a_restart_says_nothing_in_plain_text_on_a_tls_port(cp, ns, start_operator, tmp_path):
    """The API server is slow to hand out the Secret; nodes come all the time."""
    go_on = threading.Event()

    def rule(request):
        if "/secrets" in request.target and "metadata.name" in request.target:
            go_on.wait(30)

    spine.make_tls_secret(cp, ns, "tls", spine.make_certificate(str(tmp_path)))
    spine.make_cluster(cp, ns, registerServerSecret="tls", attestationKeyRegisterSecret="tls")
    proxy = FaultProxy(cp.service_account_kubeconfig(ns, OPERATOR_ACCOUNT), str(tmp_path), rule)
    op = start_operator(ns, wait_ready=False, kubeconfig=proxy.kubeconfig)
    said = []

    def at_once(port):
        def once():
            with connect(port, timeout=5) as sock:
                sock.sendall(IGNITION)
                said.append(sock.recv(65536))
        return once

    clients = Clients(at_once(op.register_port), at_once(op.register_ak_port))
    try:
        wait_for(lambda: "reason=no_certificate" in op.log_text(), 20, "a refused connection")
        wait_for(lambda: op.health("/readyz") == (503, "not ready: TLS Secrets are being read\n"), 20,
                 "an operator that waits for the Secret alone")
        go_on.set()
        op.wait_ready()
        wait_for(lambda: ask(op.register_port, IGNITION, tls=True)[0] == 200, 20, "TLS")
    finally:
        go_on.set()
        clients.stop()
        proxy.close()
    # An alert of TLS is all that may be said to who speaks plain text.
    assert not [x for x in said if b"HTTP" in x or b"{" in x], json.dumps([str(x) for x in said[:3]])
