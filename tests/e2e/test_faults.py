# SPDX-License-Identifier: MIT
"""What the real API server and the real world do to the operator: no key may be lost, changed or made twice."""

import base64
import threading
import time

import pytest

import spine
from controlplane import PATIENCE, wait_for, wait_holds
from faultproxy import CUT, CUT_AFTER, CUT_HALF, CUT_LINE, Answer, Delay, FaultProxy
from test_spine import installed, joined, luks_key, owner_uids, settled


@pytest.fixture(params=["h2", "http/1.1"])
def proxied(request, cp, ns, tmp_path, start_operator):
    """proxied(rule) -> (FaultProxy, Operator not started yet)."""
    made = []

    def make(rule=lambda r: None, on_cut=lambda: None):
        proxy = FaultProxy(cp.service_account_kubeconfig(ns, "tec-operator"), str(tmp_path), rule, on_cut,
                           http2=request.param == "h2")
        made.append(proxy)
        return proxy

    yield make
    for proxy in made:
        proxy.close()


def check_world(cp, ns, uuid, seen):
    """The invariants that hold whatever was killed."""
    machines = {m["metadata"]["uid"]: m for m in spine.items(cp, ns, "mach")}
    aks = {a["metadata"]["uid"]: a for a in spine.items(cp, ns, "ak")}
    for secret in spine.items(cp, ns, "secrets"):
        name = secret["metadata"]["name"]
        if "root" in secret.get("data", {}):
            owners = owner_uids(secret)
            assert len(owners) == 1 and owners[0] in machines, f"orphaned key {name}"
            assert machines[owners[0]]["spec"]["id"] == name
            assert seen.setdefault(name, secret["data"]["root"]) == secret["data"]["root"], "a key changed"
        elif "public_key" in secret.get("data", {}):
            assert owner_uids(secret)[0] in aks, f"orphaned {name}"
    bound = [a for a in aks.values() if a["spec"].get("uuid") == uuid]
    assert len(bound) == 1 and len(owner_uids(bound[0])) == 1
    assert luks_key(cp, ns, uuid)


def test_first_node_of_all_comes_before_the_first_start_is_recorded(cp, ns, start_operator, proxied):
    """Its Machine would count as older than the operator, and no key would be approved for it."""
    spine.make_cluster(cp, ns)

    def rule(request):
        slow = request.method == "POST" and "/configmaps" in request.target
        return Delay(2.5) if slow else None  # timestamps are whole seconds

    op = start_operator(ns, "--leader-elect=false", kubeconfig=proxied(rule).kubeconfig, wait_ready=False)
    pem = spine.rsa_key()
    uuid = spine.node_joins(op, pem, lambda: None)
    joined_ = spine.read(cp, ns, "mach", f"machine-{uuid}")
    marker = spine.read(cp, ns, "configmaps", "tec-operator-since")
    assert marker["metadata"]["creationTimestamp"] <= joined_["metadata"]["creationTimestamp"]
    cp.wait_for(lambda: any(spine.condition(k, "Approved").get("status") == "True" for k in spine.items(cp, ns, "ak")),
                20, "the key approved")


@pytest.mark.parametrize("when", ["before", "after"])
def test_kill_9_at_every_write(cp, ns, start_operator, proxied, when):
    """Life after life through the whole flow: install, first boot, key, approval. The lives differ in length, so
    that neither a write on its way nor the node's own request is cut every time, and slowly become longer: a key is
    announced and made by two writes of one life, and over HTTP/2 all announcements of a life are sent at once."""
    target, killed = {"n": -1, "lives": 0}, threading.Event()  # -1: the start, which notes its time, is not a target
    ops = []

    def rule(request):
        if target["n"] > 0 and request.write >= target["n"]:  # the one that is meant, and those beside it
            return CUT if when == "before" else CUT_AFTER
        return None

    def kill():
        killed.set()
        ops[0].proc.popen.kill()

    proxy = proxied(rule, kill)
    op = start_operator(ns, "--leader-elect=false", kubeconfig=proxy.kubeconfig)
    ops.append(op)
    # A Machine made before that time is noted may be somebody else's: its key waits for an administrator.
    wait_for(lambda: spine.read(cp, ns, "configmaps", "tec-operator-since"), 30, "the time of the first start")
    target["n"] = proxy.writes + 1
    spine.make_cluster(cp, ns)

    def revive():
        if killed.is_set():
            killed.clear()
            op.proc.popen.kill()  # a request of the life before may have been the one that was cut
            op.proc.wait(5)
            proxy.settle()
            killed.clear()
            target["n"] = proxy.writes + (when == "before") + 1 + target["lives"] % 3 + target["lives"] // 6
            target["lives"] += 1
            op.start(wait_ready=False)

    seen = {}
    pem = spine.rsa_key()
    uuid = spine.node_joins(op, pem, revive)
    end = time.monotonic() + 120 * PATIENCE
    while time.monotonic() < end:
        if killed.is_set():
            revive()
        secret = spine.read(cp, ns, "secrets", uuid)
        if secret:
            assert seen.setdefault(uuid, secret["data"]["root"]) == secret["data"]["root"]
        machine = spine.read(cp, ns, "mach", f"machine-{uuid}")
        cluster = spine.read(cp, ns, "tec", "tec")
        if spine.condition(machine, "AttestationKeyBound").get("status") == "True" and \
                spine.condition(machine, "KeyReady").get("status") == "True" and \
                spine.condition(cluster, "Installed").get("status") == "True" and not killed.is_set():
            break
        time.sleep(0.05)
    else:
        raise AssertionError("never settled")
    target["n"] = -1
    assert target["lives"] >= 5
    if not op.alive():
        op.proc.wait(5)
        op.start()
    settled(cp, ns)
    wait_holds(lambda: check_world(cp, ns, uuid, seen), 20)


@pytest.mark.parametrize("fault", ["409", "429", "500", "cut", "cut_after", "cut_half"])
def test_every_third_write_fails(cp, ns, start_operator, proxied, fault):
    answers = {"409": Answer(409, "Conflict"),
               "429": Answer(429, "TooManyRequests", ["Retry-After: 1"]),
               "500": Answer(500, "InternalError"), "cut": CUT, "cut_after": CUT_AFTER, "cut_half": CUT_HALF}

    def rule(request):
        return answers[fault] if request.write and request.write % 3 == 0 else None

    proxy = proxied(rule)
    op = start_operator(ns, "--leader-elect=false", kubeconfig=proxy.kubeconfig)
    spine.make_cluster(cp, ns)
    spine.wait_condition(cp, ns, "tec", "tec", "Installed", "InstallationCompleted", timeout=90)
    uuid = spine.node_joins(op, spine.rsa_key(), lambda: None)
    spine.wait_condition(cp, ns, "mach", f"machine-{uuid}", "AttestationKeyBound", "Bound", timeout=60)
    spine.wait_condition(cp, ns, "mach", f"machine-{uuid}", "KeyReady", "KeyMade", timeout=60)
    # What the proxy cuts is in no audit log: quiet there may be an operator that waits for its next attempt.
    settled(cp, ns, quiet=4, timeout=60)
    wait_holds(lambda: check_world(cp, ns, uuid, {}), 60)
    spoken = [name for name, value in op.metrics().items() if name.startswith("tec_api_connection_info") and value]
    assert spoken == [f'tec_api_connection_info{{protocol="{proxy.protocol}"}}']


def test_watch_gone_410_lists_anew(cp, ns, start_operator, proxied):
    left = {"n": 6}

    def rule(request):
        if "watch=" in request.target and left["n"] and "/leases" not in request.target:
            left["n"] -= 1
            return Answer(410, "Expired")
        return None

    proxy = proxied(rule)
    op = start_operator(ns, "--leader-elect=false", kubeconfig=proxy.kubeconfig)
    spine.make_cluster(cp, ns)
    installed(cp, ns)
    assert left["n"] == 0
    joined(cp, ns, op, spine.rsa_key())


def test_half_an_event_is_read_again(cp, ns, start_operator, proxied):
    """Watches end in the middle of a line, again and again: nothing of it counts, and nothing is missed."""
    left, cut = {"n": 12}, []

    def rule(request):
        kind = next((k for k in ("/machines?", "/attestationkeys?", "/secrets?") if k in request.target), None)
        if kind and "watch=" in request.target and left["n"]:
            left["n"] -= 1
            return CUT_LINE
        return None

    proxy = proxied(rule, lambda: cut.append(1))
    op = start_operator(ns, "--leader-elect=false", kubeconfig=proxy.kubeconfig)
    spine.make_cluster(cp, ns)
    installed(cp, ns)
    for _ in range(3):
        uuid = spine.node_joins(op, spine.rsa_key(), lambda: None)
        spine.wait_condition(cp, ns, "mach", f"machine-{uuid}", "AttestationKeyBound", "Bound", timeout=60)
        check_world(cp, ns, uuid, {})
    assert len(cut) >= 3
    settled(cp, ns)


def test_silence_is_noticed(cp, ns, start_operator, proxied):
    """The connections stay open and nothing comes any more: the next node waits for no longer than a PING takes
    (45 s), a request's deadline and a watch's silence over HTTP/1.1."""
    proxy = proxied()
    op = start_operator(ns, "--leader-elect=false", kubeconfig=proxy.kubeconfig)
    spine.make_cluster(cp, ns)
    installed(cp, ns)
    joined(cp, ns, op, spine.rsa_key())
    proxy.mute()
    uuid = spine.node_joins(op, spine.rsa_key(), lambda: None, deadline=120)
    spine.wait_condition(cp, ns, "mach", f"machine-{uuid}", "AttestationKeyBound", "Bound", timeout=150)
    check_world(cp, ns, uuid, {})


@pytest.mark.parametrize("protocol", ["auto", "http1"])
def test_api_server_restart(cp, ns, start_operator, protocol):
    spine.make_cluster(cp, ns)
    op = start_operator(ns, "--api-protocol", protocol)
    uuid, _, _ = joined(cp, ns, op, spine.rsa_key())
    key = luks_key(cp, ns, uuid)
    cp.kill_apiserver()
    status, headers, _ = spine.request(op.register_port, "GET", "/ignition")
    assert status == 503 and "Retry-After" in headers
    assert op.health("/healthz")[0] == 200
    cp.start_apiserver()
    pem = spine.rsa_key()
    second = spine.node_joins(op, pem, lambda: None, deadline=90)
    spine.wait_condition(cp, ns, "mach", f"machine-{second}", "AttestationKeyBound", "Bound", timeout=60)
    assert luks_key(cp, ns, uuid) == key


@pytest.mark.parametrize("protocol", ["auto", "http1"])
def test_token_file_is_read_again(cp, ns, start_operator, tmp_path, protocol):
    token = tmp_path / "token"
    config = cp.service_account_kubeconfig(ns, "tec-operator", token_file=str(token))
    good = token.read_text()
    spine.make_cluster(cp, ns)
    op = start_operator(ns, "--api-protocol", protocol, kubeconfig=config)
    joined(cp, ns, op, spine.rsa_key())
    token.write_text("expired")
    cp.wait_for(lambda: spine.request(op.register_port, "GET", "/ignition")[0] == 503, 20, "the expired token in use")
    token.write_text(good)
    spine.node_joins(op, spine.rsa_key(), lambda: None)


def test_leader_hands_over(cp, ns, start_operator):
    spine.make_cluster(cp, ns)
    first = start_operator(ns)
    installed(cp, ns)
    second = start_operator(ns)
    uuid, _, _ = joined(cp, ns, second, spine.rsa_key())
    first.terminate()
    third, _, _ = joined(cp, ns, second, spine.rsa_key())
    assert uuid != third


def test_leader_killed_is_replaced(cp, ns, start_operator):
    spine.make_cluster(cp, ns)
    first = start_operator(ns)
    installed(cp, ns)
    second = start_operator(ns)
    first.kill9()
    uuid = spine.node_joins(second, spine.rsa_key(), lambda: None)
    spine.wait_condition(cp, ns, "mach", f"machine-{uuid}", "KeyReady", "KeyMade", timeout=40)


def test_foreign_secret_in_a_keys_place_is_untouched(cp, ns, start_operator):
    spine.make_cluster(cp, ns)
    start_operator(ns)
    installed(cp, ns)
    uuid = spine.new_uuid()
    cp.apply([{"apiVersion": "v1", "kind": "Secret", "metadata": {"name": uuid, "namespace": ns},
               "stringData": {"root": "mine"}}])
    spine.made(cp, "mach", ns, {"id": uuid}, "m")
    spine.wait_condition(cp, ns, "mach", "m", "KeyReady", "Conflict")
    settled(cp, ns)
    assert base64.b64decode(spine.read(cp, ns, "secrets", uuid)["data"]["root"]) == b"mine"
