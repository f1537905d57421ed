# SPDX-License-Identifier: MIT
"""What an attacker tries, each on a real API server under the rights of k8s/: one function or more per
number, test_attack_NN_what. Each was seen to fail on version 0.1.0."""

import base64
import contextlib
import hashlib
import http.server
import json
import os
import threading
import time

import pytest

import spine
from teckinds import made
from trustees import owner_reference


# ---- 1


# ---- 2


# ---- 3


def secret_maker(cp, ns):
    """Headers of an account that may create Secrets and do nothing else; it was told the cluster's uid."""
    meta, rbac = {"name": "maker", "namespace": ns}, "rbac.authorization.k8s.io"
    cp.apply([{"apiVersion": "v1", "kind": "ServiceAccount", "metadata": meta},
              {"apiVersion": f"{rbac}/v1", "kind": "Role", "metadata": meta,
               "rules": [{"apiGroups": [""], "resources": ["secrets"], "verbs": ["create"]}]},
              {"apiVersion": f"{rbac}/v1", "kind": "RoleBinding", "metadata": meta,
               "roleRef": {"apiGroup": rbac, "kind": "Role", "name": "maker"},
               "subjects": [{"kind": "ServiceAccount", **meta}]}])
    headers = {"Impersonate-User": f"system:serviceaccount:{ns}:maker"}
    path = spine.path_of(ns, "secrets") + "?dryRun=All"
    cp.wait_for(lambda: cp.api("POST", path, {"metadata": {"name": "probe"}}, headers=headers)[0] == 201, 10,
                "the account's rights")
    return headers


def plant_for_cluster(cp, ns, cluster, name, data, headers):
    """Right in type, members and owner. blockOwnerDeletion needs a right of its own, and nobody looks at it."""
    owner = {**owner_reference(cluster), "blockOwnerDeletion": False}
    status, answer = cp.api("POST", spine.path_of(ns, "secrets"), {
        "metadata": {"name": name, "ownerReferences": [owner]}, "type": "Opaque", "stringData": data},
        headers=headers)
    assert status == 201, answer


def template_of(cp, ns):
    return json.dumps(spine.read(cp, ns, "deployments", "trustee-deployment")["spec"]["template"])


def conflict_names(cp, ns, name):
    """The condition and the Event say what to delete."""
    line = f"kubectl delete secret {name} -n {ns}"
    spine.wait_condition(cp, ns, "tec", "tec", "Installed", "Conflict")
    assert line in spine.condition(spine.read(cp, ns, "tec", "tec"), "Installed")["message"]
    events = f"/apis/events.k8s.io/v1/namespaces/{ns}/events"
    cp.wait_for(lambda: [e for e in cp.get(events)["items"] if line in e.get("note", "")], 10, "the Event")


def test_attack_03_planted_token_signer(cp, ns, start_operator, tmp_path):
    """A signer that is newer than the operator's own, in a cluster that is less than an hour old, signs at
    once in 0.1.0; in an older one after the ripening time."""
    cluster = spine.make_cluster(cp, ns)
    start_operator(ns, "--leader-elect=false")
    spine.wait_condition(cp, ns, "tec", "tec", "Installed", "InstallationCompleted")
    before, maker = template_of(cp, ns), secret_maker(cp, ns)
    pair = spine.make_certificate(str(tmp_path), "planted", days=7300)
    plant_for_cluster(cp, ns, cluster, "trustee-token-2",
                      {"key.pem": pair["tls.key"], "cert.pem": pair["tls.crt"]}, maker)
    time.sleep(3)  # it reads the Secret, and would write the Deployment in the same moment
    assert template_of(cp, ns) == before, "Trustee signs with somebody else's key"
    conflict_names(cp, ns, "trustee-token-2")
    assert spine.read(cp, ns, "secrets", "trustee-token-2"), "what is not ours is not deleted"
    spine.delete(cp, ns, "secrets", "trustee-token-2")
    spine.wait_condition(cp, ns, "tec", "tec", "Installed", "InstallationCompleted")
    assert template_of(cp, ns) == before


def test_attack_03_planted_trustee_auth(cp, ns, start_operator):
    """Somebody is faster than the operator: in 0.1.0 his key administers Trustee."""
    operator = start_operator(ns, "--leader-elect=false")  # it was here before
    maker = secret_maker(cp, ns)
    operator.terminate()
    time.sleep(1.1)  # timestamps have a resolution of one second
    cluster = spine.make_cluster(cp, ns)
    plant_for_cluster(cp, ns, cluster, "trustee-auth",
                      {"private.key": "known", "public.pub": "to somebody"}, maker)
    operator.start()
    conflict_names(cp, ns, "trustee-auth")
    assert spine.read(cp, ns, "services", "kbs-service"), "the rest is installed"
    assert not spine.read(cp, ns, "deployments", "trustee-deployment"), "Trustee would mount it"
    spine.delete(cp, ns, "secrets", "trustee-auth")
    spine.wait_condition(cp, ns, "tec", "tec", "Installed", "InstallationCompleted")
    made = spine.read(cp, ns, "secrets", "trustee-auth")["data"]
    assert made["public.pub"] and made["public.pub"] != "dG8gc29tZWJvZHk="
    assert spine.read(cp, ns, "deployments", "trustee-deployment")


def test_attack_03_planted_registration_key(cp, ns, start_operator):
    """Whoever knows the registration key hands out machine ids. (0.1.0 has no such key.)"""
    cluster = spine.make_cluster(cp, ns)
    start_operator(ns, "--leader-elect=false")
    spine.wait_condition(cp, ns, "tec", "tec", "Installed", "InstallationCompleted")
    plant_for_cluster(cp, ns, cluster, "tec-registration-key", {"key": "k" * 32}, secret_maker(cp, ns))
    spine.merge(cp, ns, "tec", "tec", {"spec": {"registration": {"machine": "AtKey"}}})
    conflict_names(cp, ns, "tec-registration-key")
    spine.wait_condition(cp, ns, "tec", "tec", "RegistrationOpen", "NoRegistrationKey")
    annotations = spine.read(cp, ns, "tec", "tec")["metadata"]["annotations"]
    assert not [name for name in annotations if name.endswith("sha256-tec-registration-key")], annotations
    spine.delete(cp, ns, "secrets", "tec-registration-key")
    spine.wait_condition(cp, ns, "tec", "tec", "RegistrationOpen", "Open")
    made = spine.read(cp, ns, "secrets", "tec-registration-key")
    assert made["immutable"] and made["data"]["key"] != "a2tr" * 10 + "a2s="
    assert spine.read(cp, ns, "tec", "tec")["metadata"]["annotations"][
        "trusted-execution-clusters.io/sha256-tec-registration-key"].startswith(cluster["metadata"]["uid"])


def test_attack_03_marker_is_not_moved(cp, ns, start_operator):
    """Who deletes the marker under a running operator, to have planted objects count as older ones."""
    operator = start_operator(ns, "--leader-elect=false")
    marker = cp.wait_for(lambda: spine.read(cp, ns, "configmaps", "tec-operator-since"), 10, "the marker")
    assert "ownerReferences" not in marker["metadata"]
    operator.restart()
    again = spine.read(cp, ns, "configmaps", "tec-operator-since")
    assert again["metadata"]["uid"] == marker["metadata"]["uid"]
    time.sleep(1.1)
    cluster = spine.make_cluster(cp, ns)
    spine.wait_condition(cp, ns, "tec", "tec", "Installed", "InstallationCompleted")
    spine.delete(cp, ns, "configmaps", "tec-operator-since")
    spine.delete(cp, ns, "secrets", "trustee-auth")
    plant_for_cluster(cp, ns, cluster, "trustee-token-2", {"key.pem": "k", "cert.pem": "c"}, secret_maker(cp, ns))
    conflict_names(cp, ns, "trustee-token-2")
    assert not spine.read(cp, ns, "configmaps", "tec-operator-since")
    assert "tec-operator-since was deleted" in operator.log_text()


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
