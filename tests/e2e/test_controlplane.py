# SPDX-License-Identifier: MIT
"""The harness tested by itself: what the other end-to-end tests rely on is really there."""

import json
import os
import subprocess
import sys
import threading
import uuid

import pytest

from conftest import CRD_DIR, K8S_DIR, OPERATOR_ACCOUNT, lacking, plane_manifests
from controlplane import HERE, TOP, ControlPlane, json_documents, wait_for
from kubeapi import describe
from proc import die_with
from tecproc import Operator, parse_metrics

GROUP = "/apis/trusted-execution-clusters.io/v1alpha1"
needs_crds = pytest.mark.skipif(not os.path.isdir(CRD_DIR), reason="no crd/ yet")
needs_rights = pytest.mark.skipif(not os.path.isdir(K8S_DIR), reason="no k8s/ yet")


def machine(name, **metadata):
    return {"apiVersion": "trusted-execution-clusters.io/v1alpha1", "kind": "Machine",
            "metadata": {"name": name, **metadata}, "spec": {"id": str(uuid.uuid4())}}


def config_map(name, owner=None, **metadata):
    if owner:
        metadata["ownerReferences"] = [{
            "apiVersion": owner["apiVersion"], "kind": owner["kind"], "controller": True,
            "blockOwnerDeletion": True, "name": owner["metadata"]["name"],
            "uid": owner["metadata"]["uid"]}]
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name, **metadata}}


def test_server_answers_as_1_34(cp):
    status, version = cp.api("GET", "/version")
    assert status == 200
    if "KUBEBUILDER_ASSETS" not in os.environ:
        assert version["gitVersion"] == "v1.34.2"


def test_kubectl_agrees_with_the_server(cp, ns):
    cp.kubectl("create", "configmap", "a", "-n", ns, "--from-literal=k=v")
    assert cp.get(f"/api/v1/namespaces/{ns}/configmaps/a")["data"] == {"k": "v"}
    assert "configmap/a" in cp.kubectl("get", "cm", "-n", ns, "-o", "name")


def test_api_is_usable_from_many_threads(cp, ns):
    answers = []

    def create(i):
        answers.append(cp.api("POST", f"/api/v1/namespaces/{ns}/configmaps",
                              config_map(f"c{i}"))[0])
        cp._api.close()

    threads = [threading.Thread(target=create, args=(i,)) for i in range(16)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert answers == [201] * 16


def test_deployment_makes_pending_pods(cp, ns):
    cp.kubectl("create", "deployment", "d", "-n", ns, "--image=example.invalid/none")
    pods = cp.wait_for(lambda: cp.get(f"/api/v1/namespaces/{ns}/pods")["items"], 60, "Pod")
    assert pods[0]["status"]["phase"] == "Pending"


def test_pods_keep_image_volumes(cp, ns):
    pod = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p"}, "spec": {
        "containers": [{"name": "c", "image": "example.invalid/none"}],
        "volumes": [{"name": "i", "image": {"reference": "example.invalid/os@sha256:00"}}]}}
    status, made = cp.api("POST", f"/api/v1/namespaces/{ns}/pods", pod)
    assert status == 201, made
    assert made["spec"]["volumes"][0]["image"]["reference"].startswith("example.invalid/os")


@needs_crds
def test_crds_accept_a_machine_and_refuse_another_id(cp, ns):
    url = f"{GROUP}/namespaces/{ns}/machines"
    status, made = cp.api("POST", url, machine("m"))
    assert status == 201, made
    status, answer = cp.api("PATCH", f"{url}/m", {"spec": {"id": str(uuid.uuid4())}}, "merge")
    assert status == 422 and "immutable" in answer["message"], answer


@needs_crds
def test_garbage_collector_knows_our_kinds(cp, ns):
    url = f"{GROUP}/namespaces/{ns}/machines"
    _, owner = cp.api("POST", url, machine("m"))
    status, child = cp.api("POST", f"/api/v1/namespaces/{ns}/configmaps",
                           config_map("child", owner))
    assert status == 201, child
    assert cp.api("DELETE", f"{url}/m")[0] == 200
    # The first collection of a session comes late, the later ones at once.
    cp.wait_for(lambda: cp.get(f"/api/v1/namespaces/{ns}/configmaps/child") is None, 120,
                "garbage collection of a Machine's child")


@needs_crds
@needs_rights
def test_operator_account_has_the_rights_of_k8s_and_no_more(cp, ns):
    kubeconfig = cp.service_account_kubeconfig(ns, OPERATOR_ACCOUNT)

    def can(*args):
        answer = cp.kubectl("--kubeconfig", kubeconfig, "auth", "can-i", *args, check=False)
        return answer.strip() == "yes"

    assert can("create", "machines.trusted-execution-clusters.io", "-n", ns)
    assert can("list", "secrets", "-n", ns)
    assert not can("list", "secrets", "-n", "default")
    assert not can("get", "nodes")


@needs_crds
@needs_rights
def test_owner_references_are_enforced(cp, ns):
    """A Machine may own what the operator's account makes, a Deployment (no right on its
    finalizers) may not: the plugin is on and knows our kinds."""
    _, owner = cp.api("POST", f"{GROUP}/namespaces/{ns}/machines", machine("m"))
    user = {"Impersonate-User": f"system:serviceaccount:{ns}:{OPERATOR_ACCOUNT}"}
    url = f"/api/v1/namespaces/{ns}/configmaps"
    status, answer = cp.api("POST", url, config_map("ours", owner), headers=user)
    assert status == 201, answer
    foreign = {"apiVersion": "apps/v1", "kind": "Deployment",
               "metadata": {"name": "d", "uid": str(uuid.uuid4())}}
    status, answer = cp.api("POST", url, config_map("theirs", foreign), headers=user)
    assert status == 403 and "blockOwnerDeletion" in answer["message"], answer


@needs_rights
def test_manifests_are_accepted_by_the_server(cp):
    everything = {"apiVersion": "v1", "kind": "List", "items": plane_manifests(cp)}
    said = cp.kubectl("apply", "--server-side", "--force-conflicts", "--dry-run=server", "-f", "-",
                      input=everything).splitlines()
    assert everything["items"] and len(said) == len(everything["items"]), said
    assert all(line.endswith("serverside-applied (server dry run)") for line in said), said


def test_audit_log_counts_writes_of_one_user(cp, ns):
    who = "system:serviceaccount:tests:writer"
    headers = {"Impersonate-User": who, "Impersonate-Group": "system:masters"}
    before = cp.audit.mark()
    url = f"/api/v1/namespaces/{ns}/configmaps"
    cp.api("GET", url)
    assert not cp.writes_by("tec-tests", before)
    cp.api("POST", url, config_map("w"), headers=headers)
    cp.api("DELETE", f"{url}/w", headers=headers)
    writes = cp.writes_by("tec-tests", before)
    assert [e["verb"] for e in writes] == ["create", "delete"], describe(writes)
    assert cp.audit.count("tec-tests", before) == 3
    # Impersonated requests are the impersonator's in the log; a real token's are its own.
    assert writes[0]["impersonatedUser"]["username"] == who


def test_audit_log_names_a_service_account(cp, ns):
    cp.apply([{"apiVersion": "v1", "kind": "ServiceAccount",
               "metadata": {"name": "reader", "namespace": ns}}])
    kubeconfig = cp.service_account_kubeconfig(ns, "reader")
    before = cp.audit.mark()
    cp.kubectl("--kubeconfig", kubeconfig, "get", "cm", check=False)
    user = f"system:serviceaccount:{ns}:reader"
    assert cp.requests_by(user, before)
    assert not cp.writes_by(user, before)


def test_apiserver_restart_keeps_data(tmp_path):
    """Its own control plane, so that a failure here does not take the other tests along."""
    with ControlPlane(str(tmp_path / "kube"), audit=False) as cp:
        name = cp.create_namespace()
        cp.kill_apiserver()
        with pytest.raises(OSError):
            cp.api("GET", "/readyz", timeout=2)
        cp.start_apiserver()
        assert cp.get(f"/api/v1/namespaces/{name}")
        pids = [p.pid for p in (cp.etcd, cp.apiserver, cp.manager)]
    assert not [p for p in pids if os.path.exists(f"/proc/{p}")]


def test_cli_prints_the_kubeconfig_and_ends_on_sigterm(tmp_path):
    with subprocess.Popen([os.path.join(HERE, "controlplane.py"), "up", "--dir",
                           str(tmp_path / "kube")], stdout=subprocess.PIPE, text=True,
                          preexec_fn=die_with(os.getpid())) as up:
        kubeconfig = up.stdout.readline().strip()
        assert os.path.exists(kubeconfig)
        children = subprocess.run(["ps", "-o", "pid=", "--ppid", str(up.pid)], text=True,
                                  capture_output=True, check=True).stdout.split()
        assert len(children) == 3
        up.terminate()
        assert up.wait(30) == 0
    assert not [p for p in children if os.path.exists(f"/proc/{p}")]


def test_children_die_with_a_killed_parent(tmp_path):
    code = ("import sys; sys.path.insert(0, sys.argv[1])\n"
            "from proc import Proc\n"
            "p = Proc('sleep', ['sleep', '1000'], '/dev/null'); p.start()\n"
            "print(p.pid, flush=True); sys.stdin.read()")
    with subprocess.Popen([sys.executable, "-c", code, HERE], stdin=subprocess.PIPE,
                          stdout=subprocess.PIPE, text=True) as parent:
        child = int(parent.stdout.readline())
        parent.kill()
        parent.wait()

        def gone():
            try:
                with open(f"/proc/{child}/stat", encoding="ascii") as f:
                    return f.read().rpartition(")")[2].split()[0] == "Z"
            except OSError:
                return True

        wait_for(gone, 10, "end of the orphan")


def test_software_tpm_makes_an_rsa_2048_key(tpm):
    first = tpm.make_ak("one")
    assert first.startswith("-----BEGIN PUBLIC KEY-----")
    text = subprocess.run(["openssl", "pkey", "-pubin", "-text", "-noout"], input=first,
                          capture_output=True, text=True, check=True).stdout
    assert "Public-Key: (2048 bit)" in text and "Exponent: 65537" in text
    assert tpm.make_ak("two") != first


def test_ignition_validator_tells_good_from_bad():
    build = os.path.join(TOP, "tests", "ignition", "build.sh")
    made = subprocess.run([build], capture_output=True, text=True, check=False)
    if made.returncode:
        lacking(f"no Ignition validator: {made.stderr.strip().splitlines()[-1]}")

    def verdict(config):
        done = subprocess.run([made.stdout.strip()], input=json.dumps(config), text=True,
                              capture_output=True, check=False)
        return done.returncode, done.stdout

    assert verdict({"ignition": {"version": "3.6.0"}}) == (0, "")
    relative = {"files": [{"path": "relative"}]}
    code, report = verdict({"ignition": {"version": "3.6.0"}, "storage": relative})
    assert code == 1 and "path not absolute" in report
    assert verdict({"ignition": {"version": "9.9.9"}})[0] == 1


def test_json_documents_opens_lists():
    text = '{"kind":"A"}\n{"kind":"List","items":[{"kind":"B"},{"kind":"C"}]}\n'
    assert [o["kind"] for o in json_documents(text)] == ["A", "B", "C"]


def test_metrics_are_parsed():
    text = ('# HELP a b\n# TYPE a counter\na_total{code="200",route="/x y"} 3\n'
            'up 1\ninf_bucket{le="+Inf"} 1e3\n')
    assert parse_metrics(text) == {
        'a_total{code="200",route="/x y"}': 3.0, "up": 1.0, 'inf_bucket{le="+Inf"}': 1000.0}


# Stands in for tec-operator: ready at once, and ends as its first extra argument says.
_STUB = """#!{python}
import http.server, signal, sys
port = int(sys.argv[sys.argv.index("--listen-health") + 1].rpartition(":")[2])
mode = sys.argv[-1]
class Handler(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        self.send_response(200)
        self.end_headers()
        self.wfile.write(b"tec_up 1\\n")
if mode == "--report":
    print("src/x.c:1:2: runtime error: left shift of negative value", flush=True)
signal.signal(signal.SIGTERM, lambda *_: sys.exit(23 if mode == "--leak" else 0))
http.server.HTTPServer(("127.0.0.1", port), Handler).serve_forever()
"""


@pytest.fixture
def stub_operator(tmp_path, monkeypatch):
    stub = tmp_path / "stub"
    stub.write_text(_STUB.format(python=sys.executable))
    stub.chmod(0o755)
    monkeypatch.setenv("TEC_OPERATOR", str(stub))
    made = []

    def start(mode):
        made.append(Operator("/nonexistent", "ns", str(tmp_path), [mode]))
        return made[-1].start()

    yield start
    for operator in made:
        operator.proc.stop(1)


def test_operator_helper_measures_and_restarts(stub_operator):
    operator = stub_operator("--clean")
    first = operator.pid
    assert operator.metrics() == {"tec_up": 1.0}
    assert operator.cpu_seconds() > 0 and operator.memory_kib()["VmRSS"] > 1000
    operator.restart()
    assert operator.pid != first
    operator.kill9()
    operator.start()
    operator.close()
    assert not operator.alive()


@pytest.mark.parametrize("mode, complaint", [("--leak", "exit 23"), ("--report", "sanitizer")])
def test_operator_helper_notices_a_sanitizer(stub_operator, mode, complaint):
    operator = stub_operator(mode)
    with pytest.raises(AssertionError, match=complaint):
        operator.close()
    assert not operator.alive()
