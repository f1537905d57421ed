# SPDX-License-Identifier: MIT
"""tests/tools/tec-test-kbs in Trustee's place, by what was seen on a live Trustee: the answers that the embedded broker
gives in another way (tests/broker has those). Tests that need no control over the broker run against a real one too
(TEC_TEST_KBS_URL)."""

import base64
import concurrent.futures
import http.client
import json
import os
import socket
import subprocess
import threading
import time

import pytest

import kbsproxy
from kbs import TestKbs, b64url, kbs_binary, make_key, sign_token, values_message
from proc import Proc, free_port

V0 = "/kbs/v0/"
UUID = "11111111-2222-3333-4444-555555555555"
KEY = b'{"key_type":"oct","key":"MTIzNDU2Nzg5MDEyMzQ1Njc4OTAxMjM0"}'
REAL = "TEC_TEST_KBS_URL" in os.environ


@pytest.fixture
def kbs(start_kbs):
    return start_kbs(trustee_quirks=True)


def refused(got, error_type, status=401):
    """One refusal: the status, and how its body looks."""
    assert got.type == error_type, got
    assert got.status == status, got
    assert "Content-Type" not in got.headers, got.headers
    assert set(got.json()) == {"type", "detail"} and got.json()["detail"], got
    return True


def policy(text, **more):
    return json.dumps({"policy": b64url(text.encode()), **more})


# The table

def test_resources_are_posted_overwritten_and_deleted(kbs):
    path = f"{V0}resource/default/{UUID}/root"
    for body in (KEY, b"\x00\xff any bytes", b""):
        got = kbs.ask("POST", path, body, headers={"Content-Type": "application/octet-stream"})
        assert (got.status, got.body) == (200, b""), got
        assert got.headers["Content-Type"].startswith("text/xml")
        if not kbs.external:
            assert kbs.dump()["resources"] == {f"default/{UUID}/root": base64.b64encode(body).decode()}
    assert kbs.ask("DELETE", path).status == 200
    refused(kbs.ask("DELETE", path), "PluginInternalError")
    # What the operator does then: a resource can be confirmed absent only by deleting it.
    assert kbs.ask("POST", path, b"{}").status == 200
    assert kbs.ask("DELETE", path).status == 200


def test_reference_values_are_any_json(kbs):
    values = {"tpm_pcr4": ["00", "01"], "nested": {"b": [1, {"a": None}], "a": True}, "number": 1.5,
              "string": "ä/", "empty": {}, "none": None, "with/slash": 1}
    got = kbs.ask("POST", V0 + "reference-value", values_message(values))
    assert (got.status, got.body) == (200, b""), got
    for name, value in values.items():
        assert kbs.value(name) == value, name
    raw = kbs.ask("GET", V0 + "reference-value/nested")
    assert raw.body.replace(b" ", b"") == b'{"a":true,"b":[1,{"a":null}]}'  # keys sorted
    assert raw.headers["Content-Type"] == "application/json"
    refused(kbs.ask("GET", V0 + "reference-value/tec-unknown"), "RvpsError")
    refused(kbs.ask("GET", V0 + "reference-value/"), "RvpsError")


def test_a_tombstone_overwrites_and_a_new_value_overwrites_it(kbs):
    name = "ak." + "x" * 240  # design A: 243 bytes
    for value in ({"ak": "A" * 392, "machine": UUID}, None, {}, [], "", {"ak": "B", "machine": UUID}):
        kbs.set_values({name: value})
        assert kbs.value(name) == value
        assert kbs.has_value(name) == (value is not None)


@pytest.mark.skipif(REAL, reason="its entries cannot be read")
def test_entries_are_stored_with_an_expiration_a_year_on(kbs):
    kbs.set_values({"a": 1})
    entry = kbs.dump()["reference_values"]["a"]
    assert set(entry) == {"version", "name", "expiration", "value"}
    assert (entry["version"], entry["name"], entry["value"]) == ("0.1.0", "a", 1)
    assert entry["expiration"][:4] == str(time.gmtime().tm_year + 1) and entry["expiration"][-1] == "Z"


@pytest.mark.parametrize("body", [
    "", "{}", "[]", "7", "not JSON", values_message("[]"), values_message("7"), values_message("{"),
    values_message({"a": 1}, version="0.2.0"), values_message({"a": 1}, type="swid"),
    values_message({}, payload="e30"), values_message({}, payload="e3 0="), values_message({}, payload=7),
    values_message({"a b": 1}), values_message({"a+b": 1}), values_message({"": 1}),
    values_message({"x" * 256: 1}), values_message({"/" * 64: 1}), values_message({"ä": 1})])
def test_bad_reference_value_messages(kbs, body):
    refused(kbs.ask("POST", V0 + "reference-value", body), "RvpsError")


def test_a_message_of_reference_values_is_not_atomic(kbs):
    if kbs.external:
        pytest.skip("the real one takes them in an order of its own")
    refused(kbs.ask("POST", V0 + "reference-value", values_message({"t1": 1, "t 2": 2, "t3": 3})), "RvpsError")
    assert kbs.has_value("t1") and not kbs.has_value("t3")


def test_policies(kbs):
    got = kbs.ask("GET", V0 + "resource-policy")
    assert got.json() == ["resource-policy"]
    if not kbs.external:
        held = kbs.dump()
        assert set(held["resource_policies"]) == {"resource-policy.rego"}
        assert "default_cpu.rego" in held["attestation_policies"], "starts with the stock ones"
    text = "package policy\nimport rego.v1\ndefault allow := false\n"
    assert kbs.ask("POST", V0 + "resource-policy", policy(text)).status == 200
    assert kbs.ask("POST", V0 + "attestation-policy",
                   policy(text, type="rego", policy_id="default_cpu")).status == 200
    assert kbs.ask("GET", V0 + "resource-policy").json() == ["resource-policy"]
    if not kbs.external:
        held = kbs.dump()
        assert held["resource_policies"]["resource-policy.rego"] == text
        assert held["attestation_policies"]["default_cpu.rego"] == text
    for body in ("", "{}", '{"policy":"YQ=="}', '{"policy":7}', "not JSON"):
        refused(kbs.ask("POST", V0 + "resource-policy", body), "ParsePolicyError")
        refused(kbs.ask("POST", V0 + "attestation-policy", body), "AttestationError")


@pytest.mark.parametrize("path", ["a", "a/b", "a/b/c/d", "a//c", "/a/b/c", "a/b/", ".a/b/c", "a/../c",
                                  "a/b/%2e%2e", "a/b/c%20d"])
def test_illegal_resource_paths(kbs, path):
    refused(kbs.ask("POST", V0 + "resource/" + path, b"x"), "PluginInternalError")
    refused(kbs.ask("DELETE", V0 + "resource/" + path), "PluginInternalError")


def test_keys_too_long_for_a_file_name(kbs):
    assert kbs.ask("POST", f"{V0}resource/a/b/{'c' * 245}", b"x").status == 200  # each slash takes four
    refused(kbs.ask("POST", f"{V0}resource/a/b/{'c' * 246}", b"x"), "PluginInternalError")


def test_what_is_not_there(kbs):
    refused(kbs.ask("GET", V0 + "nothing"), "PluginNotFound", 404)
    for method, path in (("GET", "attestation-policy"), ("DELETE", "reference-value/a")):
        refused(kbs.ask(method, V0 + path), "PluginNotFound", 404)
    refused(kbs.ask("GET", f"{V0}resource/default/{UUID}/root", token=None), "TokenNotFound")
    assert kbs.ask("HEAD", V0 + "resource-policy").status == 405
    assert kbs.ask("PATCH", V0 + "resource-policy").status == 405
    if not kbs.external:
        assert kbs.ask("GET", "/healthz", token=None).status == 200


# Who may

CALLS = [("POST", f"resource/default/{UUID}/root", "x", "AdminAuthInitialization"),
         ("DELETE", f"resource/default/{UUID}/root", None, "AdminAuthInitialization"),
         ("POST", "reference-value", values_message({"a": 1}), "AdminAuthAccess"),
         ("GET", "reference-value/a", None, "AdminAuthAccess"),
         ("POST", "attestation-policy", policy("x", policy_id="default_cpu"), "AdminAuthAccess"),
         ("POST", "resource-policy", policy("x"), "AdminAuthAccess"),
         ("GET", "resource-policy", None, "AdminAuthAccess")]


@pytest.mark.parametrize("method, path, body, error_type", CALLS, ids=[f"{c[0]} {c[1]}" for c in CALLS])
def test_tokens(start_kbs, tmp_path, method, path, body, error_type):
    kbs = start_kbs(trustee_quirks=True, issuer="tec-operator", audience="kbs")
    claims = {"iss": "tec-operator", "aud": "kbs"}
    now = int(time.time())
    good = kbs.token(**claims)
    other, _ = make_key(str(tmp_path), "other")
    head, middle, _ = good.split(".")
    refusals = {
        "none": None, "not a token": "a.b.c", "cut": good[:-2],
        "another key": sign_token(other, {"role": "admin", "exp": now + 60, **claims}),
        "no exp": kbs.token(exp=None, **claims), "expired": kbs.token(exp=now - 63, **claims),
        "no role": kbs.token(role=None, **claims), "role of another type": kbs.token(role=["admin"], **claims),
        "issuer": kbs.token(iss="x", aud="kbs"), "no audience": kbs.token(aud=None, iss="tec-operator"),
        "unsigned": f"{b64url(b'{}')}.{middle}.",
        "alg none": b64url(b'{"typ":"JWT","alg":"none"}') + f".{middle}.",
        "alg HS256": sign_token(kbs.private, {"role": "admin", "exp": now + 60, **claims},
                                {"typ": "JWT", "alg": "HS256"}),
        "claims of another": f"{head}.{b64url(json.dumps({'role': 'admin', 'exp': now}).encode())}."
                             + good.split(".")[2]}
    for why, token in refusals.items():
        assert refused(kbs.ask(method, V0 + path, body, token), error_type), why
    refused(kbs.ask(method, V0 + path, body, kbs.token(role="user", **claims)), error_type)
    accepted = kbs.ask(method, V0 + path, body, kbs.token(exp=now - 50, **claims))  # the leeway
    assert "Admin" not in accepted.type, accepted


# Limits, faults, life

@pytest.mark.skipif(REAL, reason="its limit is its configuration's")
def test_the_body_limit_is_exact(start_kbs):
    kbs = start_kbs(trustee_quirks=True, payload_mib=2)
    limit = 2 * 1024 * 1024
    body = values_message({"a": 1}).replace("{", "{" + " " * 4, 1)
    fits = body + " " * (limit - len(body))
    assert kbs.ask("POST", V0 + "reference-value", fits).status == 200
    got = kbs.ask("POST", V0 + "reference-value", fits + " ")
    assert (got.status, got.body) == (413, b"payload reached size limit"), got
    assert got.headers["Content-Type"] == "text/plain"


def test_concurrent_writes_are_all_kept(kbs):
    def put(i):
        kbs.set_values({f"tec-{i}": i})
        return kbs.ask("POST", f"{V0}resource/default/{i}/root", str(i)).status

    kbs.token()
    with concurrent.futures.ThreadPoolExecutor(8) as pool:
        assert set(pool.map(put, range(60))) == {200}
    assert [kbs.value(f"tec-{i}") for i in range(60)] == list(range(60))
    for i in range(60):
        assert kbs.ask("DELETE", f"{V0}resource/default/{i}/root").status == 200


@pytest.mark.skipif(REAL, reason="the real one is not ours to stop")
def test_it_loses_what_it_held_and_counts_what_it_was_asked(start_kbs):
    kbs = start_kbs()
    for end in (kbs.restart, kbs.lose, lambda: (kbs.kill(), kbs.start())):
        kbs.set_values({"a": 1})
        assert kbs.ask("POST", f"{V0}resource/default/{UUID}/root", KEY).status == 200
        assert kbs.has_value("a")
        end()
        held = kbs.dump()
        assert held["resources"] == held["reference_values"] == {}
        assert "# stock" in held["resource_policies"]["resource-policy.rego"]
        assert not kbs.has_value("a")
    kbs.restart()
    kbs.set_values({"a": 1})
    kbs.ask("GET", V0 + "reference-value/b")
    kbs.ask("GET", V0 + "reference-value/a")
    assert kbs.counts() == {"refvalue-put": {"200": 1}, "refvalue-get": {"200": 1, "404": 1}}
    assert kbs.requests() == 3 and kbs.requests("refvalue-get", 404) == 1
    log = kbs.dump()["log"]
    assert [(e["n"], e["verb"], e["status"], e["type"]) for e in log] == [
        (1, "refvalue-put", 200, ""), (2, "refvalue-get", 404, "RvpsError"), (3, "refvalue-get", 200, "")]
    assert log[1]["target"] == V0 + "reference-value/b" and log[0]["ms"] <= log[2]["ms"]


@pytest.mark.skipif(REAL, reason="about our program")
def test_volumes_are_read_again_for_each_dump(start_kbs, tmp_path):
    top = tmp_path / "volumes"
    # As the kubelet writes them: a link to a folder that is replaced as a whole.
    where = top / "repository" / "default" / UUID
    (where / "..2026").mkdir(parents=True)
    (where / "..2026" / "root").write_bytes(KEY)
    (where / "..data").symlink_to("..2026")
    (where / "root").symlink_to("..data/root")
    (top / "tpm" / "trusted_ak_keys").mkdir(parents=True)
    (top / "reference-values.json").write_text("[]")
    kbs = start_kbs(from_dir=top)
    held = kbs.dump()
    assert held["resources"] == {f"default/{UUID}/root": base64.b64encode(KEY).decode()}
    assert held["trusted_ak_keys"] == held["reference_values"] == {}
    (top / "tpm" / "trusted_ak_keys" / "ak-1.pub").write_text("PEM\n")
    (top / "reference-values.json").write_text(json.dumps(
        [{"version": "0.1.0", "name": "tpm_pcr4", "expiration": "2027-01-01T00:00:00Z", "value": ["00"]}]))
    (top / "resource-policy.rego").write_text("package policy\n")
    (where / "root").unlink()
    held = kbs.dump()
    assert held["resources"] == {} and held["trusted_ak_keys"] == {"ak-1.pub": "PEM\n"}
    assert held["resource_policies"] == {"resource-policy.rego": "package policy\n"}
    assert kbs.value("tpm_pcr4") == ["00"]
    (top / "reference-values.json").write_text("{}")
    assert kbs._debug("GET", "/dump")[0] == 500


@pytest.mark.skipif(REAL, reason="about our program")
@pytest.mark.parametrize("args, named", [
    ([], "--admin-key"), (["--no-such"], "--no-such"), (["--admin-key", "/nonexistent"], "/nonexistent"),
    (["--payload-mib", "0"], "--payload-mib"), (["--payload-mib", "64"], "--payload-mib"),
    (["--listen-debug", "0.0.0.0:0"], "0.0.0.0:0"), (["--tls-cert", "x"], "--tls-key"),
    (["--listen", "here"], "here")])
def test_bad_options_end_with_2(tmp_path, args, named):
    if "--admin-key" not in args and args:
        args = [*args, "--admin-key", make_key(str(tmp_path))[1]]
    done = subprocess.run([kbs_binary(), *args], capture_output=True, text=True, check=False, timeout=20)
    assert done.returncode == 2 and named in done.stderr, done


# The proxies

@pytest.fixture(params=[False, True], ids=["http", "https"])
def proxied(request, start_kbs, tmp_path):
    """(broker, proxy, a TestKbs-like that goes through the proxy)"""
    if REAL:
        pytest.skip("the faults are tried on our broker")
    kbs = start_kbs(tls=request.param)
    proxy = kbsproxy.KbsProxy(kbs.url, str(tmp_path), kbs.ca)
    through = TestKbs(str(tmp_path), private=kbs.private, public=kbs.public, tls=request.param)
    through.url = proxy.url
    if proxy.ca:
        through.tls.load_verify_locations(proxy.ca)
    yield kbs, proxy, through
    proxy.close()


def no_answer(through, *request):
    """The request ends without a whole answer."""
    try:
        got = through.ask(*request)
    except (OSError, http.client.HTTPException):
        return True
    pytest.fail(f"answered {got}")


def test_proxy_faults(proxied):
    kbs, proxy, through = proxied
    put = ("POST", V0 + "reference-value", values_message({"a": 1}))
    get = ("GET", V0 + "reference-value/a")

    proxy.on(kbsproxy.CUT, "refvalue-put")
    no_answer(through, *put)
    assert not kbs.has_value("a"), "cut before it was forwarded"
    proxy.on(kbsproxy.CUT_AFTER, "refvalue-put")
    no_answer(through, *put)
    assert kbs.has_value("a"), "cut after it was forwarded"
    kbs.set_values({"a": "x" * 2000})
    proxy.on(kbsproxy.CUT_HALF, "refvalue-get")
    no_answer(through, *get)
    for fate, status, error_type in (
            (kbsproxy.refusal("RvpsError"), 401, "RvpsError"), (kbsproxy.too_large(), 413, ""),
            (kbsproxy.html(500), 500, ""), (kbsproxy.redirect("https://elsewhere.example/"), 302, ""),
            (kbsproxy.nothing(), 200, ""), (kbsproxy.refusal("PolicyDeny", 200), 200, "PolicyDeny")):
        proxy.on(fate, path="reference-value/a$")
        got = through.ask(*get)
        assert (got.status, got.type) == (status, error_type), got
    assert through.ask(*get).status == 200, "each rule once"

    proxy.on(kbsproxy.CUT, "refvalue-get", nth=3, times=2)
    outcome = []
    for _ in range(5):
        try:
            outcome.append(through.ask(*get).status)
        except (OSError, http.client.HTTPException):
            outcome.append(0)
    assert outcome == [200, 200, 0, 0, 200]
    assert [s.verb for s in proxy.seen()[:2]] == ["refvalue-put"] * 2
    assert len(proxy.seen("refvalue-get")) == 13

    started = time.monotonic()
    proxy.on(kbsproxy.Delay(0.3))
    assert through.ask(*get).status == 200 and time.monotonic() - started >= 0.3
    proxy.refuse()
    with pytest.raises(ConnectionRefusedError):
        through.ask(*get)
    proxy.listen()
    assert through.ask(*get).status == 200
    if proxy.ca:
        proxy.wrong_certificate()
        with pytest.raises(OSError, match="CERTIFICATE_VERIFY_FAILED"):
            through.ask(*get)
        proxy.wrong_certificate(False)
        assert through.ask(*get).status == 200


def test_proxy_keeps_connections_and_tells_of_cuts(start_kbs, tmp_path):
    if REAL:
        pytest.skip("the faults are tried on our broker")
    kbs = start_kbs()
    cut = threading.Event()
    proxy = kbsproxy.KbsProxy(kbs.url, str(tmp_path), on_cut=cut.set)
    head = "GET /healthz HTTP/1.1\r\nHost: a\r\n\r\n".encode()
    with socket.create_connection(("127.0.0.1", proxy.port)) as s:
        s.settimeout(20)
        for _ in range(3):
            s.sendall(head)
            assert s.recv(65536).startswith(b"HTTP/1.1 200 ")
        proxy.on(kbsproxy.CUT)
        s.sendall(head)
        assert s.recv(65536) == b"" and cut.is_set()
    assert [s.fate is None for s in proxy.seen()] == [True, True, True, False]
    proxy.close()


@pytest.mark.skipif(REAL, reason="about our program")
def test_delay_proxy_delays_round_trips_and_not_throughput(start_kbs, tmp_path):
    kbs = start_kbs()
    port = free_port()
    proxy = Proc("tec-test-delay", [kbs_binary("tec-test-delay"), "--listen", f"127.0.0.1:{port}", "--connect",
                                    f"127.0.0.1:{kbs.port}", "--delay-ms", "40"], str(tmp_path / "delay.log"))
    proxy.start()
    direct, kbs.url = kbs.url, f"http://127.0.0.1:{port}"
    while "listening" not in (tmp_path / "delay.log").read_text():
        proxy.check()
    kbs.token()

    def timed(fn):
        started = time.monotonic()
        fn()
        return time.monotonic() - started

    assert timed(lambda: kbs.set_values({"a": 1})) >= 0.04
    assert kbs.value("a") == 1
    # 100 at once take hardly longer than one.
    def many():
        with concurrent.futures.ThreadPoolExecutor(50) as pool:
            assert set(pool.map(lambda i: kbs.has_value("a"), range(100))) == {True}

    assert timed(many) < 100 * 0.04
    # Pipelined requests overtake nothing and wait for nothing but the delay.
    with socket.create_connection(("127.0.0.1", port)) as s:
        s.settimeout(20)
        s.sendall(b"GET /healthz HTTP/1.1\r\nHost: a\r\n\r\n" * 50)
        seen, started = b"", time.monotonic()
        while seen.count(b"HTTP/1.1 200") < 50:
            seen += s.recv(65536)
        assert time.monotonic() - started < 50 * 0.04
    big = "x" * 4_000_000
    kbs.set_values({"big": big})
    assert kbs.value("big") == big
    kbs.url = direct
    assert proxy.stop() == 0
    with pytest.raises(ConnectionRefusedError):
        socket.create_connection(("127.0.0.1", port))
