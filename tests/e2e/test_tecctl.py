# SPDX-License-Identifier: MIT
"""tecctl against both servers: tec-operator --standalone with its own broker, and a Kubernetes control
plane with the operator and a broker as processes."""

import hashlib
import json
import os
import re
import signal
import ssl
import stat
import subprocess

import pytest

import spine
import tecnode
from conftest import lacking
from tecctl import Tecctl, tecctl_binary
from teckinds import GROUP, IMAGE, made
from test_standalone import Standalone
from tecproc import operator_binary
from trustee import fast_key

NS = "trusted-execution-clusters"


class Served:
    """A system that runs: plane has .api(), node what spine.first_boot() needs."""

    def __init__(self, name, plane, ns, node, kubeconfig):
        self.name, self.plane, self.ns, self.node = name, plane, ns, node
        self.kubeconfig = kubeconfig
        self.ctl = Tecctl(kubeconfig, ns)

    def join(self):
        """-> (name of its Machine, id, key)"""
        pem, uuid = fast_key(), spine.first_boot(self.node)
        assert spine.register(self.node, pem, uuid)[0] == 201
        self.until("mach", f"machine-{uuid}", "Ready", "AllReady")
        return f"machine-{uuid}", uuid, pem

    def until(self, kind, name, type_, reason):
        return spine.wait_condition(self.plane, self.ns, kind, name, type_, reason, 30)

    def keys(self):
        return spine.items(self.plane, self.ns, "ak")

    def second_key(self, uuid):
        """Of a stranger, or of a node that was installed again: it waits. -> its name"""
        pem = fast_key()
        assert spine.register(self.node, pem, uuid)[0] == 201

        def waits():
            found = [k for k in self.keys() if spine.condition(k, "Approved").get("reason") == "MachineHasKey"]
            return found[0]["metadata"]["name"] if found else None

        return self.plane.wait_for(waits, 30, "a key that waits")


@pytest.fixture(params=["standalone", "cluster"])
def served(request, tmp_path):
    if not os.access(tecctl_binary(), os.X_OK):
        lacking(f"no {tecctl_binary()}; next step: make")
    if request.param == "standalone":
        if not os.access(operator_binary(), os.X_OK):
            lacking(f"no {operator_binary()}; next step: make")
        alone = Standalone(str(tmp_path / "state"), "--public-address=192.0.2.1", "--plain").start()
        spine.machine_at_request(alone, NS)
        yield Served("standalone", alone, NS, alone, f"{alone.dir}/kubeconfig")
        if alone.process.poll() is None:
            assert alone.stop() == 0, alone.log()
        return
    world = request.getfixturevalue("make_world")().start()
    yield Served("cluster", world.cp, world.ns, world.op, world.cp.admin_kubeconfig)


def test_a_person_sees_everything_and_changes_it(served):
    ctl = served.ctl
    name, uuid, _ = served.join()
    other = served.second_key(uuid)
    made(served.plane, "ai", served.ns, {"image": IMAGE}, "debian")

    text = ctl.out("status")
    assert re.match(r"Cluster tec in namespace \S+, registration Open, approval Automatic\n", text), text
    assert "\033" not in text
    assert re.search(r"^Machines  1, attestation keys 2\n +1  Ready$", text, re.M), text
    assert re.search(rf"^  AttestationKey {other}: MachineHasKey\n    .+\n    -> .*tecctl approve {other}$", text,
                     re.M), text
    assert re.search(r"^  debian +\S+ +- +\S+ +quay.io/x/fedora", text, re.M), text
    document = ctl.json("status")
    assert document["machines"]["ready"] == 1 and document["cluster"]["name"] == "tec"
    assert [w["name"] for w in document["waiting"] if w["kind"] == "AttestationKey"] == [other]
    assert f'"namespace": "{served.ns}"\n' in ctl.out("status", "-o", "yaml")

    assert ctl.out("machine", "list", "-o", "name") == f"{name}\n"
    table = ctl.out("machine", "list").splitlines()
    assert table[0].split() == ["NAME", "STATE", "KEY", "AGE", "ID"] and table[1].split()[1] == "Ready"
    assert uuid in table[1] and len(table) == 2
    shown = ctl.out("machine", "show", uuid)
    assert f"Machine:     {name}\n" in shown and f"Other key:   {other}, MachineHasKey\n" in shown
    assert ctl.json("machine", "show", name)["spec"]["id"] == uuid
    assert {k["metadata"]["name"] for k in ctl.json("key", "list")} == {k["metadata"]["name"] for k in served.keys()}
    assert "debian" in ctl.out("image", "list")
    assert f"Reference:   {IMAGE}\n" in ctl.out("image", "explain", "debian")

    why = ctl.out("why", uuid)
    assert re.match(rf"Machine {name}, id {uuid}: ", why)
    assert re.search(rf"^  no    another key, {other}: MachineHasKey: ", why, re.M), why
    assert re.search(r"^  no    approved images: 0 of 1 in force$", why, re.M), why

    # What replaces a key asks; without a terminal it is refused.
    _, err = ctl.run("approve", other, code=1)
    assert "without a terminal" in err and "--yes" in err
    assert not spine.condition(spine.read(served.plane, served.ns, "ak", other), "Approved")["status"] == "True"
    assert ctl.out("approve", other, "--yes") == f"attestationkey {other} approved\n"
    assert ctl.out("approve", other) == f"attestationkey {other} is already approved\n"
    served.until("mach", name, "Ready", "AllReady")

    _, err = ctl.run("rebind", name, code=1)
    assert "--yes" in err
    assert f"attestationkey {other} removed from its Machine" in ctl.out("rebind", uuid, "-y")
    served.until("mach", name, "AttestationKeyBound", "NoApprovedKey")
    _, err = ctl.run("rebind", uuid, "-y", code=1)
    assert "has no bound key" in err

    _, err = ctl.run("machine", "delete", name, code=1)
    assert "lost permanently" in err
    assert ctl.out("machine", "delete", name, "--yes") == f"machine {name} deleted\n"
    assert not spine.read(served.plane, served.ns, "mach", name)
    assert "No Machines" in ctl.out("machine", "list")


def test_manual_approval_and_denial(served):
    spine.merge(served.plane, served.ns, "tec", "tec", {"spec": {"registration": {"approval": "Manual"}}})
    ctl, uuid = served.ctl, spine.first_boot(served.node)
    name = f"machine-{uuid}"
    assert spine.register(served.node, fast_key(), uuid)[0] == 201
    key = served.plane.wait_for(lambda: [k["metadata"]["name"] for k in served.keys()
                                         if spine.condition(k, "Approved").get("reason") == "ManualApproval"],
                                30, "a key that waits")[0]
    assert f"tecctl approve {key}" in ctl.out("status")
    # By its Machine; nothing is lost, so nothing is asked.
    assert ctl.out("approve", name) == f"attestationkey {key} approved\n"
    served.until("mach", name, "Ready", "AllReady")
    _, err = ctl.run("approve", name, code=1)
    assert f"no key waits for Machine {name}; next step: tecctl why" in err
    _, err = ctl.run("deny", key, code=1)
    assert "cannot open its disk" in err
    assert "denied and deleted" in ctl.out("deny", key, "--yes")
    assert served.keys() == []
    other = spine.first_boot(served.node)
    assert spine.register(served.node, fast_key(), other)[0] == 201
    waiting = served.plane.wait_for(served.keys, 30, "another key")[0]["metadata"]["name"]
    assert "denied and deleted" in ctl.out("deny", waiting)  # it opens nothing: not asked


def test_a_terminal_is_asked_and_watched(served):
    name, _, _ = served.join()
    ctl = served.ctl
    asked = ctl.terminal("machine", "delete", name).until("Type yes to continue: ").type("no\n")
    assert asked.end() == 1 and "nothing was changed" in asked.seen
    asked = ctl.terminal("machine", "delete", name).until("Type yes to continue: ").interrupt()
    assert asked.end() == 130
    assert spine.read(served.plane, served.ns, "mach", name)

    seen = ctl.terminal("status", "--watch").until("\033[32mReady\033[0m")
    plain = ctl.terminal("status", env={"NO_COLOR": "1"})
    assert plain.end() == 0 and "\033" not in plain.seen and "Ready" in plain.seen
    made(served.plane, "mach", served.ns, {"id": spine.new_uuid()}, "late")
    seen.until("Machine late: ").interrupt()
    assert seen.end() == 130

    asked = ctl.terminal("machine", "delete", name).until("Type yes to continue: ").type("yes\n")
    assert asked.end() == 0 and f"machine {name} deleted" in asked.seen


def test_doctor_finds_what_is_wrong(served):
    ctl = served.ctl
    served.until("tec", "tec", "TrusteeSynced", "Synced")
    out = ctl.out("doctor", code=1)
    assert re.search(r"^ok    API server +v1\.\d+", out, re.M), out
    assert re.search(r"^ok    kinds ", out, re.M) and re.search(r"^ok    rights +11 of 11$", out, re.M), out
    assert re.search(r"^no    images +0 of 0 .* -> tecctl image approve; ", out, re.M), out
    assert "plain HTTP" in out
    found = {line["check"]: line for line in json.loads(ctl.out("doctor", "-o", "json", code=1))}
    assert found["TrusteeSynced"]["is"] == "ok" and found["leader"]["is"] == "note"

    _, err = Tecctl(served.kubeconfig, "nowhere").run("why", "x", code=None)
    assert "no Machine in namespace nowhere" in err
    out = Tecctl(served.kubeconfig, "nowhere").out("doctor", code=1)
    assert "no TrustedExecutionCluster in namespace nowhere" in out
    assert "No TrustedExecutionCluster found" in Tecctl(served.kubeconfig, "nowhere").out("status")


def test_certificates_that_end_are_found(served, tmp_path):
    certificate = spine.make_certificate(str(tmp_path), "c", 2, (*spine.NAMES, "IP:192.0.2.1"))
    spine.make_tls_secret(served.plane, served.ns, "tls", certificate) \
        if served.name == "cluster" else served.plane.kubectl(
            "create", "secret", "generic", "tls", "--type=kubernetes.io/tls", f"--namespace={served.ns}",
            *(f"--from-file={k}={served_file(tmp_path, k, v)}" for k, v in
              certificate.items() if k != "file"))
    spine.merge(served.plane, served.ns, "tec", "tec", {"spec": {"registerServerSecret": "tls"}})
    out = served.ctl.out("doctor", code=1)
    assert re.search(r"^note  TLS of /ignition +the certificate in Secret tls is valid for [12] days -> renew it$", out,
                     re.M), out
    assert "BEGIN" not in out
    config = json.loads(served.ctl.out("ignition", "--address=node.example:9"))["ignition"]
    assert config["config"]["merge"] == [{"source": "https://node.example:9/ignition"}]
    assert config["security"]["tls"]["certificateAuthorities"][0]["source"].startswith("data:,-----BEGIN%20CERT")
    spine.merge(served.plane, served.ns, "tec", "tec", {"spec": {"tls": {"caSHA256": ["0" * 64]}}})
    _, err = served.ctl.run("ignition", "--address=node.example:9", code=1)
    assert "a certificate that spec.tls.caSHA256 does not list: SHA-256 " in err
    listed = hashlib.sha256(ssl.PEM_cert_to_DER_cert(certificate["ca.crt"])).hexdigest()
    assert listed in err
    spine.merge(served.plane, served.ns, "tec", "tec", {"spec": {"tls": {"caSHA256": [listed]}}})
    assert json.loads(served.ctl.out("ignition", "--address=node.example:9"))["ignition"] == config


def served_file(directory, name, text):
    path = os.path.join(directory, name)
    with open(path, "w", encoding="ascii") as f:
        f.write(text)
    return path


def test_ignition_for_new_nodes(served):
    def url(*args):
        return served.ctl.out("ignition", "--url", *args).strip()

    def at(address):
        return spine.merge(served.plane, served.ns, "tec", "tec", {"spec": {"publicRegisterAddr": address}})

    host = at(None)["spec"]["publicAttestationKeyRegisterAddr"].split(":")[0]
    assert url() == f"http://{host}:8000/ignition"
    at("nodes.example:8123")
    assert url() == "http://nodes.example:8123/ignition"
    assert json.loads(served.ctl.out("ignition"))["ignition"]["config"]["merge"] == [{"source": url()}]
    at("[2001:db8::2]")
    assert url() == "http://[2001:db8::2]:8000/ignition"
    assert url("--address=[2001:db8::1]") == "http://[2001:db8::1]:8000/ignition"
    for bad in ("", "a/b", "a:0", "a:70000", "[::1", "a b", "::1", "a:b"):
        _, err = served.ctl.run("ignition", f"--address={bad}", code=1)
        assert "is not HOST[:PORT]" in err, bad
    assert spine.items(served.plane, served.ns, "mach") == []  # nothing was asked of the listener


def test_backup(served, tmp_path):
    file = str(tmp_path / "backup")
    if served.name == "cluster":
        _, err = served.ctl.run("backup", file, code=1)
        assert "is not a tec-operator --standalone" in err
        assert not os.path.exists(file) and [n for n in os.listdir(tmp_path) if n.startswith("backup")] == []
        return
    _, uuid, _ = served.join()
    assert re.search(r", \d+ bytes\. To restore it: tec-operator", served.ctl.out("backup", file))
    assert stat.S_IMODE(os.stat(file).st_mode) == 0o600
    before = os.stat(file)
    _, err = served.ctl.run("backup", file, code=1)
    assert "exists and is not overwritten" in err and os.stat(file) == before
    os.symlink("nowhere", str(tmp_path / "link"))
    assert "exists" in served.ctl.run("backup", str(tmp_path / "link"), code=1)[1]
    assert "cannot create a temporary file for" in served.ctl.run("backup", str(tmp_path / "no" / "b"), code=1)[1]
    assert [n for n in os.listdir(tmp_path) if n.startswith("backup.")] == []
    restored = str(tmp_path / "restored")
    os.mkdir(restored, 0o700)
    with open(f"{served.plane.dir}/sealing.key", "rb") as f, \
            open(os.open(f"{restored}/sealing.key", os.O_CREAT | os.O_WRONLY, 0o600), "wb") as to:
        to.write(f.read())
    done = subprocess.run([operator_binary(), f"--standalone={restored}", f"--restore={file}"], capture_output=True,
                          text=True, timeout=60, check=False)
    assert done.returncode == 0, done.stderr
    second = Standalone(restored).start()
    try:
        assert Tecctl(f"{restored}/kubeconfig").out("machine", "list", "-o", "name") == f"machine-{uuid}\n"
    finally:
        second.stop()


def reader_of(served, path):
    """A kubeconfig of an account that may only read: in a cluster of two kinds."""
    rules = [{"apiGroups": [GROUP], "resources": ["trustedexecutionclusters", "machines"],
              "verbs": ["get", "list", "watch"]}]
    k = served.plane.kubectl
    k("create", "serviceaccount", "reader", "-n", served.ns)
    if served.name == "cluster":
        status, answer = served.plane.api(
            "POST", f"/apis/rbac.authorization.k8s.io/v1/namespaces/{served.ns}/roles",
            {"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "Role", "metadata": {"name": "reader"},
             "rules": rules})
        assert status == 201, answer
    k("create", "rolebinding", "reader", "-n", served.ns, f"--serviceaccount={served.ns}:reader",
      "--role=reader" if served.name == "cluster" else "--clusterrole=tec-follow")
    token = k("create", "token", "reader", "-n", served.ns).strip()
    with open(served.kubeconfig, encoding="utf-8") as f:
        server = re.search(r"server: *(\S+)", f.read())[1]
    ca = served.plane.ca_file if served.name == "cluster" else f"{served.plane.dir}/ca.crt"
    with open(path, "w", encoding="utf-8") as f:
        json.dump({"apiVersion": "v1", "kind": "Config", "current-context": "c",
                   "contexts": [{"name": "c", "context": {"cluster": "c", "user": "u", "namespace": served.ns}}],
                   "clusters": [{"name": "c", "cluster": {"server": server, "certificate-authority": ca}}],
                   "users": [{"name": "u", "user": {"token": token}}]}, f)
    return Tecctl(path)


def test_without_rights(served, tmp_path):
    """A read-only account sees what it may, and is told what it may not."""
    name, _, _ = served.join()
    mine = str(tmp_path / "reader.kubeconfig")
    reader = reader_of(served, mine)
    out = reader.out("status")
    assert name in reader.out("machine", "list")
    if served.name == "cluster":
        assert "Machines  1\n" in out and "Unreadable, and therefore not shown" in out, out
        assert "AttestationKey: " in out and "Images\n  not readable\n" in out
        _, err = reader.run("key", "list", code=4)
        assert "tecctl doctor" in err
        assert re.search(r"^no    rights +may not list attestationkeys .*: status, approve -> ",
                         reader.out("doctor", code=1), re.M)
    else:
        assert "Machines  1, attestation keys 1\n" in out
        assert "tecctl doctor" in reader.run("backup", str(tmp_path / "b"), code=4)[1]
        assert not os.path.exists(tmp_path / "b")
    assert re.search(r"^note  rights +may not delete machines .*: machine delete -> ", reader.out("doctor", code=1),
                     re.M)
    _, err = reader.run("machine", "delete", name, "--yes", code=4)
    assert spine.read(served.plane, served.ns, "mach", name), err
    with open(mine, encoding="utf-8") as f:
        config = json.load(f)
    config["users"][0]["user"]["token"] = "x"
    with open(mine, "w", encoding="utf-8") as f:
        json.dump(config, f)
    _, err = reader.run("status", code=4)
    assert f"which come from {mine}" in err
    assert re.search(r"^no    (API server|user) ", reader.out("doctor", code=1), re.M)


def test_completion_works_in_the_shells(served, tmp_path):
    name, _, _ = served.join()
    with open(tmp_path / "tecctl", "w", encoding="utf-8") as f:
        f.write(f'#!/bin/sh\nexec {tecctl_binary()} "$@"\n')
    os.chmod(tmp_path / "tecctl", 0o755)
    env = dict(os.environ, PATH=f"{tmp_path}:{os.environ['PATH']}", KUBECONFIG=served.kubeconfig, HOME=str(tmp_path))
    for line, expected in (("tecctl ", "machine"), ("tecctl machine ", "delete"), ("tecctl image ex", "explain"),
                           (f"tecctl -n {served.ns} why ", name), ("tecctl status --out", "--output="),
                           ("tecctl completion f", "fish"), ("tecctl status -o y", "yaml")):
        words = line.split(" ")
        script = (f"source <(tecctl completion bash); COMP_WORDS=({' '.join(w or chr(34) * 2 for w in words)}); "
                  f"COMP_CWORD={len(words) - 1}; _tecctl; printf '%s\\n' \"${{COMPREPLY[@]}}\"")
        bash = subprocess.run(["bash", "-c", script], env=env, capture_output=True, text=True, check=False, timeout=60)
        assert expected in bash.stdout.split(), (line, bash)
    for shell in ("bash", "zsh", "fish"):
        path = subprocess.run(["which", shell], capture_output=True, text=True, check=False).stdout.strip()
        with open(tmp_path / shell, "w", encoding="utf-8") as f:
            f.write(Tecctl(None).out("completion", shell))
        if path:
            done = subprocess.run([path, "-n", str(tmp_path / shell)], capture_output=True, text=True, check=False)
            assert done.returncode == 0 and not done.stderr, done
    fish = subprocess.run(["which", "fish"], capture_output=True, text=True, check=False).stdout.strip()
    if fish:
        done = subprocess.run([fish, "-c", f"source {tmp_path}/fish; complete -C 'tecctl -n {served.ns} why '; "
                                           "complete -C 'tecctl machine '; complete -C 'tecctl status --wa'"],
                              env=env, capture_output=True, text=True, check=False, timeout=60)
        assert name in done.stdout and "delete\t" in done.stdout and "--watch\t" in done.stdout, done


def test_a_server_that_is_gone(tmp_path):
    alone = Standalone(str(tmp_path / "state"), "--public-address=192.0.2.1").start()
    ctl = Tecctl(f"{alone.dir}/kubeconfig")
    try:
        seen = ctl.terminal("status", "-w").until("Cluster")
        alone.stop(signal.SIGKILL)
        seen.until("; retrying")
        out, err = ctl.run("status", code=3)
        assert out == "" and "tecctl: next step: tecctl doctor; the address https://127.0.0.1:" in err
        assert re.search(r"^no    API server .* -> check that the server runs", ctl.out("doctor", code=1), re.M)
        seen.seen = ""
        alone.start()
        assert seen.until("Cluster").interrupt().end() == 130
    finally:
        if alone.process.poll() is None:
            alone.stop()


def test_a_server_that_limits_requests(tmp_path):
    config = tmp_path / "kubeconfig"
    with tecnode.Limited(2, 1, 200, '{"apiVersion":"v1","kind":"List","metadata":{},"items":[]}') as server:
        config.write_text(json.dumps({
            "apiVersion": "v1", "kind": "Config", "current-context": "x",
            "clusters": [{"name": "x", "cluster": {"server": f"http://127.0.0.1:{server.port}"}}],
            "users": [{"name": "x", "user": {}}],
            "contexts": [{"name": "x", "context": {"cluster": "x", "user": "x", "namespace": "x"}}]}))
        out, err = Tecctl(str(config)).run("machine", "list")
        assert "No Machines" in out and err.count("; retrying in ") == 2, err
        assert all(b - a >= 1 for a, b in zip(server.at[:2], server.at[1:3]))


def test_a_server_with_another_certificate(served):
    with open(served.kubeconfig, encoding="utf-8") as f:
        text = f.read()
    other = served.kubeconfig + ".other"
    with open(other, "w", encoding="utf-8") as f:
        f.write(re.sub(r"server: https://127.0.0.1:", "server: https://127.0.0.2:", text))
    out, err = Tecctl(other, served.ns).run("status", code=None)
    assert out == "" and err.startswith("tecctl: ") and "next step" in err
    assert re.search(r"^no    API server ", Tecctl(other, served.ns).out("doctor", code=1), re.M)


def test_wrong_input(tmp_path):
    ctl = Tecctl(None)
    for args, said in (((), "no command"), (("image",), "command image needs one of"), (("frob",), "unknown command"),
                       (("machine", "frob"), "unknown command machine"), (("why",), "command why needs MACHINE"),
                       (("status", "x"), "unexpected argument"), (("status", "--yes"), "has no effect with status"),
                       (("status", "-o", "xml"), "is not one of"), (("--frob",), "unknown option"),
                       (("status", "--request-timeout=0"), "is not a number"), (("completion", "csh"), "bash, zsh"),
                       (("deny", "x", "--wait=-1"), "is not a number")):
        _, err = ctl.run(*args, code=2)
        assert said in err and "Try 'tecctl --help'." in err, (args, err)
    home = {"HOME": str(tmp_path)}
    _, err = ctl.run("status", code=1, env=home)
    assert "no kubeconfig found; next step: --kubeconfig FILE" in err
    bad = tmp_path / "bad"
    for text in ("", "{", "apiVersion: v1\nkind: Config\n", "a: [", "\x00"):
        bad.write_text(text)
        _, err = ctl.run("status", "--kubeconfig", bad, code=1)
        assert str(bad) in err, (text, err)
    _, err = ctl.run("status", code=1, env={"KUBECONFIG": f"/nowhere/a:{bad}", **home})
    assert str(bad) in err
    assert ctl.out("--version").startswith("tecctl ")
    for command in ("status", "machine delete", "image explain", "doctor"):
        out = ctl.out(*command.split(), "--help")
        assert out.startswith(f"Usage: tecctl {command}") and "--kubeconfig" in out, out
