# SPDX-License-Identifier: MIT
"""tecctl bootstrap: the CA and the certificates of a cluster before it exists."""

import base64
import json
import os
import stat
import subprocess

import pytest

import spine
from proc import free_port
from tecctl import Tecctl
from tecproc import operator_binary
from test_standalone import Standalone

NS = "trusted-execution-clusters"


def openssl(*args, text=None):
    done = subprocess.run(["openssl", *map(str, args)], input=text, capture_output=True, text=True, check=False,
                          timeout=20)
    assert done.returncode == 0, done
    return done.stdout


def make_ca(folder, name):
    """-> (file, certificate)"""
    file = folder / name
    return file, Tecctl(None).out("bootstrap", "ca", "--out", file)


def secret_of(text):
    """The members of a Secret in YAML, decoded."""
    lines = text[text.index("\ndata:\n") + 7:].splitlines()
    return {name.strip(): base64.b64decode(value).decode() for name, value in (line.split(": ") for line in lines)}


def node_ca(alone):
    secret = alone.get(spine.path_of(NS, "secrets", "standalone-tls"))
    return base64.b64decode(secret["data"]["ca.crt"]).decode()


def subject(pem):
    return openssl("x509", "-noout", "-subject", text=pem)


def test_a_ca_and_what_it_signs(tmp_path):
    file, cert = make_ca(tmp_path, "ca.pem")
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    kept = file.read_text()
    assert cert in kept and "PRIVATE KEY" in kept and "PRIVATE" not in cert
    assert subject(cert) != subject(make_ca(tmp_path, "other.pem")[1])
    _, err = Tecctl(None).run("bootstrap", "ca", "--out", file, code=1)
    assert "is not overwritten" in err and file.read_text() == kept
    assert sorted(os.listdir(tmp_path)) == ["ca.pem", "other.pem"]

    out, said = Tecctl(None, "there").run("bootstrap", "cert", "--ca", file, "--host=kbs-service.there.svc",
                                          "--host=192.0.2.7", "--name=kbs-tls")
    assert 'name: "kbs-tls"' in out and 'namespace: "there"' in out and "valid until" in said
    secret = secret_of(out)
    assert secret["ca.crt"] == cert and kept.split("-----BEGIN PRIVATE KEY")[1] not in out
    (tmp_path / "ca.crt").write_text(cert)
    (tmp_path / "tls.crt").write_text(secret["tls.crt"])
    for name in (["-verify_hostname", "kbs-service.there.svc"], ["-verify_ip", "192.0.2.7"]):
        openssl("verify", "-CAfile", tmp_path / "ca.crt", "-purpose", "sslserver", *name, tmp_path / "tls.crt")
    assert openssl("pkey", "-pubout", text=secret["tls.key"]) == openssl("x509", "-noout", "-pubkey", text=secret["tls.crt"])
    file2 = tmp_path / "secret.yaml"
    assert Tecctl(None).out("bootstrap", "cert", "--ca", file, "--host=a", "--out", file2) == ""
    assert stat.S_IMODE(file2.stat().st_mode) == 0o600 and "tls.key" in file2.read_text()


def test_a_real_api_server_takes_the_secret(cp, ns, tmp_path):
    file, cert = make_ca(tmp_path, "ca.pem")
    text = Tecctl(None, ns).out("bootstrap", "cert", "--ca", file, "--host=a.example.org")
    status, answer = cp.api("PATCH", f"/api/v1/namespaces/{ns}/secrets/trustee-tls?fieldManager=t&fieldValidation=Strict",
                            text, content_type="apply")
    assert status in (200, 201), answer
    assert base64.b64decode(answer["data"]["ca.crt"]).decode() == cert and answer["type"] == "kubernetes.io/tls"


def test_no_private_key_on_a_terminal(tmp_path):
    file, _ = make_ca(tmp_path, "ca.pem")
    seen = Tecctl(None).terminal("bootstrap", "cert", "--ca", file, "--host=a").until("kubectl apply -f -")
    assert seen.end() == 1 and "tls.key" not in seen.seen
    seen = Tecctl(None).terminal("bootstrap", "ca").until("--out FILE")
    assert seen.end() == 1 and "PRIVATE" not in seen.seen


@pytest.mark.parametrize("host", ["", "a b", "https://a", "a:8080", "[::1]", "*.a", "a,DNS:b", "a..b", "-a", "1.2.3", "a\n",
                                  "x" * 300, "\x1b[2J"])
def test_what_is_no_host_name(tmp_path, host):
    file, _ = make_ca(tmp_path, "ca.pem")
    out, err = Tecctl(None).run("bootstrap", "cert", "--ca", file, "--host=good.example", f"--host={host}", code=1)
    assert out == "" and "option --host: " in err and "\x1b" not in err and err.count("\n") == 1, err


def bad_cas(folder):
    """(name, text, what is said)"""
    good, cert = make_ca(folder, "good.pem")
    other, _ = make_ca(folder, "other.pem")
    key = good.read_text()[len(cert):]
    wrong = other.read_text()[other.read_text().index("-----BEGIN PRIVATE"):]
    return [("empty", "", "no certificate"), ("garbage", "\x01garbage", "no certificate"), ("nul", "a\0b", "not PEM text"),
            ("large", "x" * 70000, "large"), ("without a key", cert, "private key is missing"), ("key alone", key, "no certificate"),
            ("another's key", cert + wrong, "does not belong"), ("two keys", cert + key + wrong, "more than one private key"),
            ("cut off", cert + key[:-30], "truncated")]


def test_what_is_no_ca(tmp_path):
    state = tmp_path / "state"
    for name, text, said in bad_cas(tmp_path):
        file = tmp_path / "bad"
        file.write_bytes(text.encode("latin-1"))
        file.chmod(0o600)
        out, err = Tecctl(None).run("bootstrap", "cert", "--ca", file, "--host=a", code=1)
        assert out == "" and "option --ca: " in err and said in err, (name, err)
        done = subprocess.run([operator_binary(), f"--standalone={state}", "--public-address=a", f"--node-ca={file}",
                               "--check-config"], capture_output=True, text=True, check=False, timeout=30)
        assert done.returncode == 1 and "option --node-ca: " in done.stderr + done.stdout, (name, done)
    file = tmp_path / "good.pem"
    file.chmod(0o644)
    _, err = Tecctl(None).run("bootstrap", "cert", "--ca", file, "--host=a", code=1)
    assert "chmod 0600" in err
    _, err = Tecctl(None).run("bootstrap", "cert", "--ca", tmp_path / "none", "--host=a", code=1)
    assert "none" in err
    _, err = Tecctl(None).run("bootstrap", "cert", "--host=a", code=1)
    assert "--ca FILE" in err


def test_an_expired_ca(tmp_path):
    key, cert, file = tmp_path / "key", tmp_path / "cert", tmp_path / "ca.pem"
    openssl("genpkey", "-algorithm", "EC", "-pkeyopt", "ec_paramgen_curve:P-256", "-out", key)
    openssl("req", "-new", "-key", key, "-subj", "/CN=old", "-out", tmp_path / "csr")
    (tmp_path / "ext").write_text("basicConstraints=critical,CA:TRUE\nkeyUsage=critical,keyCertSign\n")
    for days, said in (("-1", "the CA expired at "), ("0", "")):
        openssl("x509", "-req", "-in", tmp_path / "csr", "-key", key, "-days", days, "-extfile", tmp_path / "ext", "-out", cert)
        file.write_text(cert.read_text() + key.read_text())
        file.chmod(0o600)
        _, err = Tecctl(None).run("bootstrap", "cert", "--ca", file, "--host=a", code=1)
        assert "expire" in err and said in err, err


def test_a_standalone_operator_takes_the_ca_and_keeps_it(tmp_path):
    file, cert = make_ca(tmp_path, "ca.pem")
    other, _ = make_ca(tmp_path, "other.pem")
    s = Standalone(str(tmp_path / "state"), "--public-address=127.0.0.1", f"--node-ca={file}").start()
    plain = Standalone(str(tmp_path / "plain"), "--public-address=127.0.0.1").start()
    try:
        assert node_ca(s) == cert
        assert spine.request(s.register_port, "HEAD", "/ignition", cafile=_write(tmp_path / "ca.crt", cert))[0] == 405
        assert subject(node_ca(plain)) not in (subject(cert), "subject=CN = tec-operator CA for nodes\n")
        assert s.stop() == 0, s.log()
        os.remove(file)
        s.args = ("--public-address=127.0.0.1",)
        s.start()
        assert node_ca(s) == cert
        assert s.stop() == 0, s.log()
        done = subprocess.run([operator_binary(), f"--standalone={s.dir}", "--public-address=127.0.0.1",
                               f"--node-ca={other}", "--listen-api=127.0.0.1:0", "--listen-kbs=127.0.0.1:0",
                               "--listen-register=127.0.0.1:0", "--listen-register-ak=127.0.0.1:0",
                               "--listen-health=127.0.0.1:0"], capture_output=True, text=True, check=False, timeout=30)
        assert done.returncode == 1 and "has another CA, which its nodes trust" in done.stderr, done
    finally:
        for one in (s, plain):
            if one.process.poll() is None:
                assert one.stop() == 0, one.log()


# ---- servers

def test_the_servers_of_a_cluster(tmp_path):
    """As new nodes get them; never an address whose CA is missing, or in plain text where that is refused."""
    s = Standalone(str(tmp_path / "state"), "--public-address=127.0.0.1").start()
    ctl = Tecctl(f"{s.dir}/kubeconfig")
    try:
        spine.machine_at_request(s, NS)
        assert json.loads(ctl.out("bootstrap", "servers")) == {"servers": spine.asked(s)["servers"]}
        _file, cert = make_ca(tmp_path, "ca.pem")
        spine.merge(s, NS, "tec", "tec", {"spec": {"trusteeServers": [
            {"address": "kbs-service.there.svc:8080", "caSecret": "target-ca"}]}})
        out, err = ctl.run("bootstrap", "servers", code=1)
        assert out == "" and "kbs-service.there.svc:8080" in err and "target-ca" in err, err
        status, answer = s.api("POST", spine.path_of(NS, "secrets"), {
            "apiVersion": "v1", "kind": "Secret", "metadata": {"name": "target-ca"}, "stringData": {"ca.crt": cert}})
        assert status == 201, answer
        servers = json.loads(ctl.out("bootstrap", "servers"))["servers"]
        assert servers[0] == {"url": f"https://127.0.0.1:{s.kbs}", "cert": node_ca(s)}
        assert servers[1:] == [{"url": "https://kbs-service.there.svc:8080", "cert": cert}]
        s.wait_for(lambda: spine.asked(s)["servers"] == servers, 30, "the same for new nodes")
        spine.merge(s, NS, "tec", "tec", {"spec": {"trusteeServers": [{"address": "kbs.example:8080"}]}})
        _, err = ctl.run("bootstrap", "servers", code=1)
        assert "kbs.example:8080 has no Secret with a CA, and spec.trustee.plaintext is Refuse" in err, err
    finally:
        assert s.stop() == 0, s.log()


# ---- check

@pytest.fixture(scope="module")
def anchor(tmp_path_factory):
    s = Standalone(str(tmp_path_factory.mktemp("anchor") / "state"), "--public-address=127.0.0.1").start()
    yield s
    assert s.stop() == 0, s.log()


def check(plane_or_config, ns=NS):
    """{text of a line: how it is} and the lines"""
    config = getattr(plane_or_config, "dir", None)
    ctl = Tecctl(f"{config}/kubeconfig" if config else plane_or_config, ns)
    lines = json.loads(ctl.out("bootstrap", "check", "-o", "json", code=None))
    out, _ = ctl.run("bootstrap", "check", code=None)
    assert len(out.splitlines()) == len(lines), out
    return lines


def found(lines, is_):
    return [f"{line['check']}: {line['text']}" for line in lines if line["is"] == is_]


def test_an_anchor_without_a_cluster(anchor):
    def settled():
        return spine.condition(anchor.get(spine.path_of(NS, "tec", "tec")), "TrusteeSynced").get("status") == "True"
    anchor.wait_for(settled, 30, "Trustee is synced")
    lines = check(anchor)
    bad = found(lines, "no")
    assert len(bad) == 1 and bad[0].startswith("image: no image is approved"), bad
    good = found(lines, "ok")
    for port, path in ((anchor.register_port, "ignition"), (anchor.register_ak_port, "register-ak"),
                       (anchor.kbs, "kbs/v0/")):
        assert any(f"https://127.0.0.1:{port}/{path}" in line and line.endswith("answers") for line in good), lines
    assert sum("the certificate is valid for 127.0.0.1" in line for line in good) == 3, lines
    assert spine.items(anchor, NS, "mach") == [], "who checks makes no Machine"
    ctl = Tecctl(f"{anchor.dir}/kubeconfig")
    _, err = ctl.run("bootstrap", "check", "-n", "nowhere", code=1)
    assert "no TrustedExecutionCluster in namespace nowhere" in err


def test_the_script_for_nodes(anchor, tmp_path):
    ctl = Tecctl(f"{anchor.dir}/kubeconfig")
    script = ctl.out("bootstrap", "check", "--from-node")
    assert "PRIVATE" not in script and script.startswith("#!/bin/sh\n")

    def run(text, code):
        done = subprocess.run(["sh"], input=text, capture_output=True, text=True, check=False, timeout=90,
                              env={"PATH": os.environ["PATH"], "TMPDIR": str(tmp_path), "https_proxy": "http://127.0.0.1:1"})
        assert done.returncode == code and os.listdir(tmp_path) == [], done
        return done.stdout.splitlines()

    assert [line.split("  ")[0] for line in run(script, 0)] == ["ok"] * 3
    closed = run(script.replace(f":{anchor.register_port}/", f":{free_port()}/"), 1)
    assert closed[0].startswith("no    registration") and "firewalls" in closed[0], closed
    assert closed[1].startswith("ok    key registration"), closed
    swapped = run(script.replace(f":{anchor.kbs}/", f":{anchor.register_port}/"), 1)
    assert "another server" in swapped[2], swapped
    named = run(script.replace("https://127.0.0.1:", "https://127.0.0.2:"), 1)
    assert all("TLS failed" in line or "no connection" in line for line in named), named
    other = script.replace(node_ca(anchor), make_ca_in(tmp_path))
    assert all("TLS failed" in line for line in run(other, 1))


def make_ca_in(folder):
    file, cert = make_ca(folder, "other.pem")
    os.remove(file)
    return cert


def test_what_falls_short_is_named(tmp_path):
    """A listener that is elsewhere, a certificate for another name, a CA that nobody made, and an image that waits."""
    s = Standalone(str(tmp_path / "state"), "--public-address=127.0.0.1").start()
    try:
        spine.merge(s, NS, "tec", "tec", {"spec": {
            "publicRegisterAddr": f"localhost:{free_port()}",
            "trusteeServers": [{"address": "kbs-service.there.svc:8080", "caSecret": "target-ca"}]}})
        bad = found(check(s), "no")
        assert any("target-ca" in line for line in bad), bad
        assert any(line.startswith("registration: https://localhost:") for line in bad), bad
        _file, cert = make_ca(tmp_path, "ca.pem")
        status, answer = s.api("POST", spine.path_of(NS, "secrets"), {
            "apiVersion": "v1", "kind": "Secret", "metadata": {"name": "target-ca"}, "stringData": {"ca.crt": cert}})
        assert status == 201, answer
        elsewhere = spine.make_certificate(str(tmp_path), "elsewhere", names=("DNS:elsewhere.example",))
        status, answer = s.api("POST", spine.path_of(NS, "secrets"), {
            "apiVersion": "v1", "kind": "Secret", "metadata": {"name": "elsewhere"}, "type": "kubernetes.io/tls",
            "stringData": {k: elsewhere[k] for k in ("tls.crt", "tls.key", "ca.crt")}})
        assert status == 201, answer
        spine.merge(s, NS, "tec", "tec", {"spec": {
            "publicRegisterAddr": f"127.0.0.1:{s.register_port}", "registerServerSecret": "elsewhere"}})
        lines = check(s)
        assert "trusteeServers: kbs-service.there.svc:8080, CA in Secret target-ca" in found(lines, "ok"), lines
        bad = found(lines, "no")
        assert any("does not cover 127.0.0.1" in line for line in bad) and not any("target-ca" in line for line in bad), bad
        spine.merge(s, NS, "tec", "tec", {"spec": {"tls": {"caSHA256": ["0" * 64]}}})
        assert sum("spec.tls.caSHA256 does not list" in line for line in found(check(s), "no")) >= 4
        _, err = Tecctl(f"{s.dir}/kubeconfig").run("bootstrap", "check", "--from-node", code=1)
        assert "spec.tls.caSHA256 does not list" in err
    finally:
        assert s.stop() == 0, s.log()


def test_an_anchor_that_is_a_cluster(make_world):
    """The same command; what nodes use is not there from where the test runs."""
    world = make_world().start()
    lines = check(world.cp.admin_kubeconfig, world.ns)
    good, bad = found(lines, "ok"), found(lines, "no")
    assert "operator: it has observed the current generation of the TrustedExecutionCluster" in good, lines
    assert any(line.startswith("address: ") for line in good) and any(line.startswith("limits: ") for line in good), lines
    assert any(line.startswith("image: no image is approved") for line in bad), lines


def _write(path, text):
    path.write_text(text)
    return str(path)
