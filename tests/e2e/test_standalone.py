# SPDX-License-Identifier: MIT
"""tec-operator --standalone, with kubectl as its face: what a person does on one machine, and that a
killed process loses nothing that was answered."""

import base64
import http.client
import json
import os
import re
import shutil
import signal
import ssl
import stat
import subprocess
import time

import pytest

import ownnet
import softtpm
import spine
import standaloneplane
import tecnode
from conftest import lacking
from controlplane import TOP, Unavailable, wait_for
from proc import free_port
from tecproc import operator_binary, parse_metrics

NS = "trusted-execution-clusters"
PATCHES = {"merge": "application/merge-patch+json", "apply": "application/apply-patch+yaml"}


def kubectl_argv():
    """A current kubectl that the tests have built, else the one in PATH."""
    kube = os.environ.get("TEC_TEST_KUBE")
    if kube and os.access(kube, os.X_OK):
        return [kube, "kubectl"]
    try:
        return standaloneplane.find_kubectl()
    except Unavailable as e:
        return lacking(str(e))


class Standalone:
    def __init__(self, directory, *args, env=None):
        self.dir = directory
        self.args = args
        self.api_port, self.health, self.register_port, self.register_ak_port, self.kbs = (
            free_port() for _ in range(5))
        self.env = env or {}
        self.process = None
        self.said = ""

    def start(self):
        argv = [operator_binary(), f"--standalone={self.dir}", f"--listen-api=127.0.0.1:{self.api_port}",
                f"--listen-health=127.0.0.1:{self.health}", f"--listen-register=127.0.0.1:{self.register_port}",
                f"--listen-register-ak=127.0.0.1:{self.register_ak_port}",
                *([] if any(a.startswith("--listen-kbs=") for a in self.args)
                  else [f"--listen-kbs=127.0.0.1:{self.kbs}"]), *self.args]
        with open(f"{self.dir}.log", "ab") as log:
            self.process = subprocess.Popen(argv, stdout=log, stderr=log, env=dict(os.environ, **self.env))
        for _ in range(200):
            try:
                if spine.request(self.health, "GET", "/readyz")[0] == 200:
                    break
            except OSError:
                assert self.process.poll() is None, self.log()
            time.sleep(0.05)
        else:
            raise AssertionError(f"not ready: {self.log()}")
        return self

    @property
    def cafile(self):
        """What new nodes trust, as a file; None: they are served without TLS."""
        found = self.get(spine.path_of(NS, "tec"))["items"]
        secret = found[0]["spec"].get("registerServerSecret") if found else None
        if not secret:
            return None
        file = f"{self.dir}.nodes.crt"
        with open(file, "wb") as f:
            f.write(base64.b64decode(self.get(spine.path_of(NS, "secrets", secret))["data"]["ca.crt"]))
        return file

    def log(self):
        with open(f"{self.dir}.log", encoding="utf-8") as f:
            return f.read()

    def stop(self, signo=signal.SIGTERM):
        self.process.send_signal(signo)
        return self.process.wait(20)

    def api(self, method, path, body=None, content_type="application/json"):
        """(status, JSON) as the administrator; content_type as of ControlPlane.api()."""
        with open(f"{self.dir}/kubeconfig", encoding="utf-8") as f:
            config = f.read()
        pem = f"{self.dir}.client.pem"
        if not os.path.exists(pem):
            data = [base64.b64decode(re.search(rf"client-{what}-data: *(\S+)", config)[1])
                    for what in ("certificate", "key")]
            with open(os.open(pem, os.O_WRONLY | os.O_CREAT, 0o600), "wb") as f:
                f.write(b"".join(data))
        context = ssl.create_default_context(cafile=f"{self.dir}/ca.crt")
        context.load_cert_chain(pem)
        conn = http.client.HTTPSConnection("127.0.0.1", self.api_port, timeout=20, context=context)
        try:
            conn.request(method, path, None if body is None else json.dumps(body),
                         {"Content-Type": PATCHES.get(content_type, content_type)})
            answer = conn.getresponse()
            data = answer.read()
            is_json = "json" in answer.getheader("Content-Type", "")
            return answer.status, json.loads(data) if is_json else data.decode()
        finally:
            conn.close()

    def get(self, path):
        status, answer = self.api("GET", path)
        assert status in (200, 404), answer
        return answer if status == 200 else None

    def wait_for(self, predicate, timeout, what):
        return wait_for(predicate, timeout, what)

    def metrics(self):
        return parse_metrics(spine.request(self.health, "GET", "/metrics")[2].decode())

    def kubectl(self, *args, input=None, check=True):
        env = dict(os.environ, KUBECONFIG=f"{self.dir}/kubeconfig", KUBECACHEDIR=f"{self.dir}.cache")
        done = subprocess.run([*kubectl_argv(), *args], input=input, env=env, capture_output=True, text=True,
                              timeout=60, check=False)
        assert not check or done.returncode == 0, f"kubectl {' '.join(args)}: {done.stderr}"
        return done.stdout if check else (done.returncode, done.stdout, done.stderr)


@pytest.fixture
def alone(tmp_path):
    if not os.access(operator_binary(), os.X_OK):
        lacking(f"no {operator_binary()}; next step: make, or set TEC_OPERATOR")
    s = Standalone(str(tmp_path / "state"), "--public-address=192.0.2.1")
    yield s.start()
    if s.process.poll() is None:
        assert s.stop() == 0, s.log()


def test_first_start_says_what_it_made(alone):
    said = [line for line in alone.log().splitlines() if line.startswith("tec-operator: ")]
    assert len(said) == 4, said
    assert said[3] == f"tec-operator: next step: KUBECONFIG={alone.dir}/kubeconfig kubectl get machines"
    for name in os.listdir(alone.dir):
        assert stat.S_IMODE(os.stat(f"{alone.dir}/{name}").st_mode) == 0o600, name
    assert alone.kubectl("get", "tec", "-o", "name") == \
        "trustedexecutioncluster.trusted-execution-clusters.io/tec\n"
    done = subprocess.run([operator_binary(), f"--standalone={alone.dir}"], capture_output=True, text=True,
                          timeout=20, check=False)
    assert done.returncode == 1 and "another tec-operator uses" in done.stderr, done.stderr


def test_kubectl_session(alone):
    k = alone.kubectl
    assert "Server Version: v1.34" in k("version")
    assert k("create", "configmap", "a", "--from-literal=x=y") == "configmap/a created\n"
    assert k("get", "configmap", "a", "-o", "jsonpath={.data.x}") == "y"
    assert k("label", "configmap", "a", "l=1") == "configmap/a labeled\n"
    assert k("annotate", "configmap", "a", "n=2") == "configmap/a annotated\n"
    assert k("get", "configmap", "-l", "l=1", "-o", "name") == "configmap/a\n"
    assert k("patch", "configmap", "a", "--type=merge", "-p", '{"data":{"x":"z"}}') == "configmap/a patched\n"
    assert k("delete", "configmap", "a").startswith('configmap "a" deleted')
    status, _, err = k("get", "configmap", "a", check=False)
    assert status == 1 and 'configmaps "a" not found' in err
    k("create", "secret", "generic", "s", "--from-literal=k=v")
    assert k("get", "secret", "s", "-o", "jsonpath={.data.k}") == "dg=="
    assert k("get", "namespaces", "-o", "name") == "namespace/default\nnamespace/trusted-execution-clusters\n"
    for command in (("create", "namespace", "other"), ("delete", "namespace", "default")):
        status, _, err = k(*command, check=False)
        assert status == 1 and "not served by tec-operator --standalone" in err, err
    k("create", "configmap", "a", "-n", "default")
    status, _, err = k("create", "configmap", "a", "-n", "other", check=False)
    assert status == 1 and 'namespaces "other" not found' in err
    assert k("auth", "can-i", "delete", "secrets") == "yes\n"
    assert "machines" in k("api-resources")


def test_service_account_of_a_follower(alone):
    k = alone.kubectl
    k("create", "serviceaccount", "f")
    k("create", "rolebinding", "f", "--clusterrole=tec-follow",
      "--serviceaccount=trusted-execution-clusters:f")
    token = k("create", "token", "f").strip()

    def can(*what):
        args = ["--kubeconfig=/dev/null", f"--server=https://127.0.0.1:{alone.api_port}", f"--token={token}",
                f"--certificate-authority={alone.dir}/ca.crt", "-n", "trusted-execution-clusters"]
        return k("auth", "can-i", *what, *args, check=False)[1].strip()

    assert can("watch", "secrets") == "yes"
    assert can("list", "machines.trusted-execution-clusters.io") == "yes"
    assert can("create", "secrets") == "no"
    assert can("delete", "machines.trusted-execution-clusters.io") == "no"


def test_a_node_registers_and_a_kill_loses_nothing(alone):
    spine.machine_at_request(alone, NS)
    uuid = spine.first_boot(alone)
    secret = None
    for _ in range(100):
        status, secret, _ = alone.kubectl("get", "secret", uuid, "-o", "json", check=False)
        if status == 0:
            break
        time.sleep(0.1)
    before = json.loads(secret)
    alone.stop(signal.SIGKILL)
    alone.start()
    after = json.loads(alone.kubectl("get", "secret", uuid, "-o", "json"))
    assert after["data"] == before["data"] and after["metadata"]["uid"] == before["metadata"]["uid"]
    assert f"machine-{uuid}" in alone.kubectl("get", "machines")
    assert spine.register(alone, spine.rsa_key(), uuid) == (201, {"status": "success"})
    assert alone.stop() == 0, alone.log()
    assert alone.start().kubectl("get", "attestationkeys", "-o", "name").count("\n") == 1


def run_operator(*args, env=None):
    done = subprocess.run([operator_binary(), *args], capture_output=True, text=True, timeout=60, check=False,
                          env=dict(os.environ, **(env or {})))
    return done.returncode, done.stdout + done.stderr


def backup_of(alone, path):
    with open(path, "wb") as f:
        done = subprocess.run([*kubectl_argv(), "get", "--raw", "/tec/v1/backup"], stdout=f, check=False, timeout=60,
                              env=dict(os.environ, KUBECONFIG=f"{alone.dir}/kubeconfig"), stderr=subprocess.PIPE)
    assert done.returncode == 0, done.stderr
    return path


def test_backup_and_restore(alone, tmp_path):
    k, other = alone.kubectl, str(tmp_path / "other")
    k("create", "secret", "generic", "s", "--from-literal=k=a-secret-that-is-sealed")
    version = k("get", "secret", "s", "-o", "jsonpath={.metadata.resourceVersion}")
    file = backup_of(alone, str(tmp_path / "file"))
    k("delete", "secret", "s")
    with open(file, "rb") as f:
        held = f.read()
    assert held.startswith(b"SQLite format 3") and b"a-secret-that-is-sealed" not in held
    assert not [name for name in os.listdir(alone.dir) if name.startswith("backup")]
    with open(f"{alone.dir}/sealing.key", "rb") as f:
        key = f.read()
    assert key not in held, "a backup does not hold the sealing key"

    # Into a directory of its own, which gets the key first; another's key is refused.
    status, said = run_operator(f"--standalone={other}", f"--restore={file}")
    assert status == 1 and "sealing key" in said, said
    for content, wanted in ((b"x" * 31, "32 bytes"), (os.urandom(32), "sealed with key"), (key, "restored")):
        with open(os.open(f"{other}/sealing.key", os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "wb") as f:
            f.write(content)
        status, said = run_operator(f"--standalone={other}", f"--restore={file}")
        assert wanted in said and status == (0 if wanted == "restored" else 1), said
    status, said = run_operator(f"--standalone={other}", f"--restore={file}")
    assert status == 1 and "already holds a database" in said, said

    # A process uses the directory; a file that is no backup; one that was cut.
    status, said = run_operator(f"--standalone={alone.dir}", f"--restore={file}")
    assert status == 1 and "another tec-operator uses" in said, said
    cut = tmp_path / "cut"
    cut.write_bytes(held[:len(held) // 2])
    third = str(tmp_path / "third")
    os.mkdir(third, 0o700)
    shutil.copy(f"{alone.dir}/sealing.key", third)
    for bad in (str(cut), "/etc/passwd", "/nonexistent", third):
        status, said = run_operator(f"--standalone={third}", f"--restore={bad}")
        assert status == 1 and said.startswith("tec-operator: "), said
        assert not os.path.exists(f"{third}/store.db")

    restored = Standalone(other)
    try:
        restored.start()
        assert restored.kubectl("get", "secret", "s", "-o", "jsonpath={.data.k}") == \
            base64.b64encode(b"a-secret-that-is-sealed").decode()
        listed = json.loads(restored.kubectl("get", "--raw", "/api/v1/configmaps"))
        assert int(listed["metadata"]["resourceVersion"]) > int(version)
        assert "tec" in restored.kubectl("get", "tec", "-o", "name")
    finally:
        assert restored.stop() == 0, restored.log()


def change_sealing_key(alone):
    return alone.kubectl("delete", "--raw", "/tec/v1/sealing-key", check=False)


def test_another_sealing_key_while_it_runs(alone, tmp_path):
    k = alone.kubectl
    k("create", "secret", "generic", "s", "--from-literal=k=v")
    with open(f"{alone.dir}/sealing.key", "rb") as f:
        first = f.read()
    status, said, err = change_sealing_key(alone)
    assert status == 0 and '"Success"' in said, err
    with open(f"{alone.dir}/sealing.key", "rb") as f:
        assert f.read() != first
    alone.stop(signal.SIGKILL)
    assert alone.start().kubectl("get", "secret", "s", "-o", "jsonpath={.data.k}") == "dg=="

    # From there to a file elsewhere, to a credential of systemd, and back to nothing: refused.
    named = tmp_path / "named"
    named.write_bytes(os.urandom(32))
    named.chmod(0o600)
    assert alone.stop() == 0
    alone.args += (f"--write-kubeconfig={alone.dir}/kubeconfig", f"--sealing-key={named}")
    assert alone.start().kubectl("get", "secret", "s", "-o", "jsonpath={.data.k}") == "dg=="
    status, said, err = change_sealing_key(alone)
    assert status == 1 and "still holds the key in use" in said + err, (said, err)
    shutil.copy(named, f"{named}.old")
    named.write_bytes(os.urandom(32))
    status, said, err = change_sealing_key(alone)
    assert status == 0, err
    assert alone.stop() == 0
    credentials = tmp_path / "credentials"
    credentials.mkdir()
    (credentials / "tec-operator.sealing-key").write_bytes(os.urandom(32))
    shutil.copy(named, credentials / "tec-operator.sealing-key.old")
    alone.args = alone.args[:-1]
    alone.env = {"CREDENTIALS_DIRECTORY": str(credentials)}
    assert alone.start().kubectl("get", "secret", "s", "-o", "jsonpath={.data.k}") == "dg=="
    assert alone.stop() == 0
    os.unlink(credentials / "tec-operator.sealing-key.old")
    assert alone.start().kubectl("get", "secret", "s", "-o", "jsonpath={.data.k}") == "dg=="
    assert alone.stop() == 0
    status, said = run_operator(f"--standalone={alone.dir}")
    assert status == 1 and "is sealed under another sealing key" in said, said
    alone.start()


def test_a_kill_during_backups_and_rotations_loses_nothing(alone, tmp_path):
    k = alone.kubectl
    k("create", "secret", "generic", "s", "--from-literal=k=v")
    for i in range(6):
        asked = [subprocess.Popen([*kubectl_argv(), *args], env=dict(os.environ, KUBECONFIG=f"{alone.dir}/kubeconfig"),
                                  stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
                 for args in (("delete", "--raw", "/tec/v1/sealing-key"),
                              ("get", "--raw", "/tec/v1/backup"))]
        time.sleep(0.04 * i)  # another moment each time; none of them is wrong
        alone.stop(signal.SIGKILL)
        for p in asked:
            p.wait(60)
        assert alone.start().kubectl("get", "secret", "s", "-o", "jsonpath={.data.k}") == "dg=="
    backup_of(alone, str(tmp_path / "file"))
    assert sorted(n for n in os.listdir(alone.dir) if n.startswith(("backup", "sealing"))) == ["sealing.key"]


def test_which_kubectl_the_demo_takes(tmp_path, monkeypatch):
    """$KUBECTL, one in PATH from 1.27, one that the tests built, an older one in PATH."""

    def fake(name, minor):
        path = tmp_path / name / "kubectl"
        path.parent.mkdir()
        version = json.dumps({"clientVersion": {"major": "1", "minor": minor}})
        path.write_text(f"#!/bin/sh\necho '{version}'\n")
        path.chmod(0o755)
        return str(path)

    named, new, old, built = fake("named", "5"), fake("new", "27+"), fake("old", "20+"), fake("built", "34")
    broken = tmp_path / "broken" / "kubectl"
    broken.parent.mkdir()
    broken.write_text("#!/bin/sh\nexit 1\n")
    broken.chmod(0o755)
    none = str(tmp_path / "none")
    for kubectl, path, test_kube, wanted in (
            (named, new, built, [named]), (None, new, built, [new]), (None, old, built, [built, "kubectl"]),
            (None, old, none, [old]), (None, str(broken), built, [built, "kubectl"]),
            (None, none, built, [built, "kubectl"]), (None, none, none, None)):
        if kubectl:
            monkeypatch.setenv("KUBECTL", kubectl)
        else:
            monkeypatch.delenv("KUBECTL", raising=False)
        monkeypatch.setenv("PATH", f"{os.path.dirname(path)}:/nonexistent")
        monkeypatch.setenv("TEC_TEST_KUBE", test_kube)
        if wanted:
            assert standaloneplane.find_kubectl() == wanted
        else:
            with pytest.raises(Unavailable, match="kubernetes-client"):
                standaloneplane.find_kubectl()


def test_the_demo():
    lacks = softtpm.missing() or tecnode.missing_tools()
    if lacks:
        lacking(f"no demo; next step: {lacks}")
    with ownnet.left():  # in a fresh clone it downloads what it boots
        done = subprocess.run(["/usr/bin/python3", "-B", os.path.join(TOP, "tests", "demo", "demo.py")], timeout=900,
                              env=dict(os.environ, KUBECTL=""), capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    for title in ("8. Refused: node a, which has booted", "12. Refused: node b, whose Machine was deleted",
                  "14. The anchor is off", "15. The whole cluster was off"):
        assert f"\n{title}" in done.stdout, done.stdout
    assert "\nDone after" in done.stdout, done.stdout


def test_the_unit_is_valid_and_confined(tmp_path):
    if not shutil.which("systemd-analyze"):
        lacking("no systemd-analyze; next step: apt-get install systemd")
    # As it is installed, but for a program that is not.
    unit = tmp_path / "tec-operator.service"
    with open(os.path.join(TOP, "etc", "tec-operator.service"), encoding="utf-8") as f:
        unit.write_text(f.read().replace("/usr/sbin/tec-operator", operator_binary()), encoding="utf-8")
    env = dict(os.environ, SYSTEMD_LOG_LEVEL="warning", SYSTEMD_LOG_TARGET="console")
    done = subprocess.run(["systemd-analyze", "verify", "--man=no", str(unit)], capture_output=True, text=True,
                          timeout=60, check=False, env=env)
    ours = [line for line in (done.stdout + done.stderr).splitlines() if "tec-operator" in line]
    assert done.returncode == 0 and not ours, done.stdout + done.stderr
    done = subprocess.run(["systemd-analyze", "security", "--offline=true", "--threshold=30", "--no-pager", str(unit)],
                          capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    level = float(done.stdout.strip().splitlines()[-1].split(":")[1].split()[0])
    assert 0 < level < 3.0, done.stdout
    # What a child that reads an image needs to give up its rights; in no group of systemd 252.
    allowed = re.findall(r"^SystemCallFilter=([a-z].*)", unit.read_text(encoding="utf-8"), re.M)
    assert {"landlock_create_ruleset", "landlock_add_rule", "landlock_restrict_self"} <= set(" ".join(allowed).split())


def test_a_watch_sees_changes(alone):
    env = dict(os.environ, KUBECONFIG=f"{alone.dir}/kubeconfig")
    with subprocess.Popen([*kubectl_argv(), "get", "configmaps", "-w", "-o", "name"], env=env, text=True,
                          stdout=subprocess.PIPE) as watch:
        try:
            alone.kubectl("create", "configmap", "seen", "--from-literal=x=y")
            assert any(line == "configmap/seen\n" for line in watch.stdout)
        finally:
            watch.kill()
