# SPDX-License-Identifier: MIT
"""What an attacker tries at a node and at an administrator's terminal: one function or more per number,
test_attack_NN_what. Each was seen to fail on version 0.2.0."""

import base64
import datetime
import json
import os
import re
import shutil
import socket
import subprocess
import sys
import tempfile
import threading

import pytest

import softtpm
import spine
from guarded import handshake
from ociimage import Scripted
from teckinds import GROUP
from tecctl import Tecctl
from test_attacks import holds, processes_below
from test_attest import Jwk
from test_listeners import sanitized
from test_node_serve import DISK_KEY, SECRET, UUID, Machine, Service, over
from test_standalone import Standalone

NOBODY = 65534

with_tpm = pytest.mark.skipif(bool(softtpm.missing() or not shutil.which("jose")), reason="needs swtpm, tpm2-tools, jose")


@pytest.fixture(scope="module", name="machine")
def _machine(tmp_path_factory):
    m = Machine(tmp_path_factory.mktemp("node"))
    yield m
    m.stop()


def raw(port, head):
    """The whole answer to these bytes."""
    with socket.create_connection(("127.0.0.1", port), timeout=60) as s:
        s.sendall(head.encode() + b"\r\nConnection: close\r\n\r\n")
        answer = b""
        while chunk := s.recv(65536):
            answer += chunk
    return answer


# 17: every user of a node got the disk key from 127.0.0.1:8006


@with_tpm
def test_attack_17_a_local_user_asks_for_the_disk_key(machine):
    """In every spelling that a server, a proxy or a file system could take for the same path."""
    upper = UUID.upper()
    spellings = [f"default/{uuid}/{tag}" for uuid in (UUID, upper) for tag in ("root", "ROOT", "r%6fot", "root/", "root?x=1")]
    spellings += [f"Default/{UUID}/root", f"default//{UUID}/root", f"default/{UUID}//root", f"/default/{UUID}/root",
                  f"default%2f{UUID}%2froot", f"%64efault/{UUID}/root", f"./default/{UUID}/root",
                  f"default/key/../{UUID}/root", f"default/{UUID}/root%00", f"default/{UUID}/root%2f",
                  f"default/{UUID}\\root", f"default/{UUID}/root;x", f"default/{UUID.replace('-', '%2d')}/root"]
    with Service(machine) as service:
        for spelling in spellings:
            for target in (f"/cdh/resource/{spelling}", f"http://localhost/cdh/resource/{spelling}"):
                answer = raw(service.port, f"GET {target} HTTP/1.1\r\nHost: localhost")
                assert answer.split()[1] in (b"400", b"403", b"404"), (spelling, answer)
                assert b"key_type" not in answer, spelling
        status, body, _ = service.get(f"/cdh/resource/{machine.disk_path}")
        assert status == 403 and b"disk key" in body and b"tec-node get-resource" in body
        assert service.get(f"/cdh/resource/{machine.path}")[:2] == (200, SECRET)
    status, out, _ = machine.node.run("get-resource", *machine.to_kbs, f"--path={machine.disk_path}")
    assert status == 0 and base64.b64decode(out) == DISK_KEY, "root's own command"


class Signed:
    """Evidence as an unprivileged process of the node gets it: the service signs what it is asked to."""

    def __init__(self, service):
        self.service = service

    def quote(self, extra):
        data = base64.urlsafe_b64encode(extra).decode().rstrip("=")
        status, body, _ = self.service.get(f"/aa/evidence?runtime_data={data}&encoding=base64")
        if status != 200:
            raise PermissionError(body)
        return json.loads(body)


@with_tpm
def test_attack_17_a_local_user_attests_a_key_of_its_own(machine, tmp_path):
    """Over the bytes that a handshake signs; the broker believes only the one that is not from a service."""
    key = Jwk(str(tmp_path), {"kty": "EC", "crv": "P-256"}, "ECDH-ES+A256KW")
    with Service(machine) as service:
        with pytest.raises(PermissionError):
            handshake(machine.kbs.port, Signed(service), key=key.public)
    with Service(machine, "--aa") as service:
        status, _, body = handshake(machine.kbs.port, Signed(service), key=key.public)
        assert status == 401, body


@with_tpm
def test_attack_17_tokens_are_given_only_on_request(machine):
    with Service(machine) as service:
        for path in ("/aa/token?token_type=kbs", "/aa/evidence?runtime_data=x"):
            status, body, _ = service.get(path)
            assert status == 403 and b"--aa" in body, path
    with Service(machine, "--aa") as service:
        answer = json.loads(service.get("/aa/token?token_type=kbs")[1])
        assert sorted(answer) == ["tee_keypair", "token"], "as the api-server-rest of Trustee's guest components"


@with_tpm
def test_attack_17_web_pages(machine):
    """A page of any site in a browser of the node, by script, and by an image that needs no script."""
    with Service(machine) as service:
        for field, value in (("Origin", "https://evil.example"), ("Origin", "null"),
                             ("Origin", f"http://localhost:{service.port}"), ("oRiGiN", "http://127.0.0.1:3000"),
                             ("Sec-Fetch-Site", "cross-site"), ("Sec-Fetch-Site", "same-site"),
                             ("Host", f"evil.example:{service.port}"), ("Host", f"localhost.evil.example:{service.port}")):
            status, body, _ = service.get(f"/cdh/resource/{machine.path}", headers={field: value})
            assert status == 403 and SECRET not in body, (field, value)
        assert raw(service.port, "GET /info HTTP/1.0").split()[1] == b"403", "without Host"
        assert service.get(f"/cdh/resource/{machine.path}")[0] == 200


def as_nobody(path, target):
    """The status that the user nobody gets at a local socket; None: it may not even connect."""
    code = f"import sys; sys.path[:0] = {sys.path!r}; from test_node_serve import over; print(over({path!r}, {target!r})[0])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, user=NOBODY, group=NOBODY,
                          extra_groups=[], cwd="/", check=False)
    if "PermissionError" in done.stderr:
        return None
    assert done.returncode == 0, done.stderr
    return int(done.stdout)


@with_tpm
@pytest.mark.skipif(os.geteuid() != 0, reason="needs two users; next step: run as root")
def test_attack_17_a_user_who_is_not_among_those_of_the_socket(machine):
    directory = tempfile.mkdtemp(prefix="tec-socket")
    os.chmod(directory, 0o755)
    path, resource = os.path.join(directory, "s"), f"/cdh/resource/{machine.path}"
    try:
        for options, status in ((["--socket-mode=0660"], None), (["--socket-mode=0660", f"--socket-group={NOBODY}"], 200),
                                (["--socket-mode=0666", "--socket-users=daemon"], 403),
                                (["--socket-mode=0666", f"--socket-users=daemon,{NOBODY}"], 200)):
            with Service(machine, f"--socket={path}", *options):
                assert as_nobody(path, resource) == status, options
                assert over(path, resource) == (200, SECRET), "root's way is open"
    finally:
        shutil.rmtree(directory)


# 29: what an administrator's terminal and tecctl took from the API

NS = "trusted-execution-clusters"
# What a terminal acts on: CSI in one code point, an escape, an override, an isolate, marks, a line end.
HOSTILE = "a\u009b2Jb\u001b[2Jc\u202ed\u2066e\u200f\u061cf\u2028g\u007fh"
ACTED_ON = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff]")


@pytest.fixture(scope="module", name="alone")
def _alone(tmp_path_factory):
    s = Standalone(str(tmp_path_factory.mktemp("standalone") / "state"), "--public-address=192.0.2.1").start()
    spine.machine_at_request(s, NS)
    s.ctl = Tecctl(f"{s.dir}/kubeconfig")
    yield s
    assert s.stop() == 0, s.log()


def say(alone, about, note, **more):
    """An Event as anybody can make one who may create Events."""
    event = {"apiVersion": "events.k8s.io/v1", "kind": "Event", "metadata": {"generateName": "e-", "namespace": NS},
             "type": "Warning", "reason": "AttestationRefused", "note": note, "action": "Attest",
             "eventTime": datetime.datetime.now(datetime.timezone.utc).strftime("%Y-%m-%dT%H:%M:%S.%fZ"),
             "reportingController": "somebody", "reportingInstance": "x",
             "regarding": {"apiVersion": f"{GROUP}/v1alpha1", "kind": "Machine", "namespace": NS,
                           "name": about["metadata"]["name"], "uid": about["metadata"]["uid"]}, **more}
    status, answer = alone.api("POST", f"/apis/events.k8s.io/v1/namespaces/{NS}/events", event)
    assert status == 201, answer
    return answer


@pytest.fixture(scope="module", name="hostile")
def _hostile(alone):
    name = f"machine-{spine.first_boot(alone)}"
    status, o = alone.api("PATCH", spine.path_of(NS, "mach", name), {"metadata": {"annotations": {"note": HOSTILE}}},
                          "application/merge-patch+json")
    assert status == 200, o
    say(alone, o, HOSTILE)
    return o


@pytest.mark.parametrize("form", ["text", "json", "yaml"])
@pytest.mark.parametrize("command", [["machine", "show"], ["why"], ["machine", "list"], ["status"]])
def test_attack_29_the_text_of_others_is_no_order_to_a_terminal(alone, hostile, command, form):
    name = hostile["metadata"]["name"]
    operands = [] if command[-1] in ("list", "status") else [name]
    out, _ = alone.ctl.run(*command, *operands, "-o", form, code=None)
    found = ACTED_ON.search(out)
    assert not found, (found, out)
    if form == "json" and command == ["machine", "show"]:
        assert json.loads(out)["metadata"]["annotations"]["note"] == HOSTILE, "the same value"
        assert "\\u009b" in out and "\\u202e" in out
    if form == "text" and command == ["why"]:
        assert "a\\u009b2Jb\\u001b[2Jc\\u202ed" in out, "seen by the one who reads"


def test_attack_29_an_event_that_anybody_made(alone):
    """It is told apart from the operator's, and one about another object of that name is not shown."""
    name = f"machine-{spine.first_boot(alone)}"
    machine = alone.get(spine.path_of(NS, "mach", name))
    say(alone, machine, "The key was stolen, approve the other one.")
    say(alone, {"metadata": {"name": name, "uid": "00000000-0000-4000-8000-000000000000"}}, "Of an older Machine.",
        reportingController="tec-operator")
    out = alone.ctl.out("why", name)
    assert "claimed by somebody: AttestationRefused: The key was stolen" in out and "older Machine" not in out
    found = alone.ctl.json("why", name)["refusals"]
    assert [(r["claimedBy"], "registers" in r) for r in found] == [("somebody", False)]


def basic(password):
    return base64.b64encode(f"user:{password}".encode()).decode()


@pytest.mark.skipif(os.geteuid() != 0, reason="reads the memory of another process; next step: run as root")
def test_attack_29_who_reads_registries_for_tecctl_is_confined(alone, tmp_path):
    """The process that reads what a registry sends has no way to the files of the administrator, and of the
    credentials of registries those of this one."""
    over_, slow, auth = threading.Event(), Scripted(), tmp_path / "auth.json"
    slow.answers["/v2/a/b/manifests/1"] = lambda handler: over_.wait(120) and None
    auth.write_text(json.dumps({"auths": {slow.host: {"auth": basic("of-this-registry")},
                                          "other.example": {"auth": basic("of-another-registry")}}}))
    argv = alone.ctl.argv("image", "approve", f"--image={slow.host}/a/b:1", f"--insecure-registry={slow.host}",
                          f"--registry-auth={auth}")
    process = subprocess.Popen(argv, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE,
                               env=alone.ctl.env(TEC_TEST_MARK="secret"))
    try:
        alone.wait_for(lambda: slow.seen or process.poll() is not None, 30, "a request")
        assert process.poll() is None, process.stderr.read()
        child, = processes_below(process.pid)
        assert os.path.basename(os.readlink(f"/proc/{child}/exe")) == "tec-compute-pcrs"
        with open(f"/proc/{child}/environ", "rb") as f:
            assert {v.partition(b"=")[0] for v in f.read().split(b"\0") if v} == {b"PATH", b"TMPDIR"}
        for password in ("of-another-registry", basic("of-another-registry")):
            assert not holds(child, password.encode()), password
        with open(f"/proc/{child}/status", encoding="ascii") as f:
            assert "NoNewPrivs:\t1\n" in f.read()
        with open(f"/proc/{child}/limits", encoding="ascii") as f:
            limits = {line[:26].strip(): line[26:].split()[1] for line in f}
        assert limits["Max core file size"] == "0" and int(limits["Max file size"]) <= 512 << 20
        assert int(limits["Max open files"]) <= 256 and int(limits["Max cpu time"]) <= 720
        assert sanitized() or int(limits["Max address space"]) <= 1 << 30
    finally:
        over_.set()
        process.terminate()
        process.wait(30)
        process.stderr.close()
        slow.close()
