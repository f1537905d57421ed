# SPDX-License-Identifier: MIT
"""tec-node serve: what the workloads of a machine get on 127.0.0.1:8006, and what strangers do not."""

import base64
import concurrent.futures
import hashlib
import http.client
import json
import os
import signal
import socket
import stat
import subprocess
import time

import pytest

import ownnet
import tecnode
import softtpm
from controlplane import TOP, wait_for
from conftest import lacking
from guarded import read_quote
from kbs import TestKbs
from proc import free_port
from test_attest import name_of, set_policies

pytestmark = [
    pytest.mark.skipif(softtpm.missing() is not None, reason=str(softtpm.missing())),
    pytest.mark.skipif(tecnode.missing_tools() is not None, reason=str(tecnode.missing_tools())),
]

UUID = "11111111-2222-4333-8444-555555555555"
DISK_KEY = b'{"key_type":"oct","key":"MTIzNDU2Nzg5MDEyMzQ1Njc4OTAxMjM0"}'
SECRET = b"what a workload needs"
RSS_MAX = 7 * 1024  # KiB, pages of shared libraries included; aimed at is 6, and up to 64 connections are kept


class Machine:
    """A node that attests to a broker which gives it a workload's resource beside its disk key."""

    path = "default/key/1"
    disk_path = f"default/{UUID}/root"

    def __init__(self, directory):
        self.dir = str(directory)
        self.tpm = softtpm.SoftwareTPM()
        self.node = tecnode.TecNode(self.dir, self.tpm.tcti)
        signer = os.path.join(self.dir, "signer.pem")
        subprocess.run(["openssl", "genpkey", "-algorithm", "EC", "-pkeyopt", "ec_paramgen_curve:P-256", "-out", signer],
                       check=True, capture_output=True)
        self.kbs = TestKbs(self.dir, signer=signer, policies=os.path.join(TOP, "etc")).start()
        self.to_kbs = [f"--url={self.kbs.url}"]
        set_policies(self.kbs, resource="resource-shared.rego")
        for path, body in ((self.path, SECRET), (self.disk_path, DISK_KEY)):
            assert self.kbs.ask("POST", f"/kbs/v0/resource/{path}", body).status == 200
        self._approve(self.node.good(tecnode.BINARY, "ak", "make").decode())

    def _approve(self, pem):
        ak = "".join(line for line in pem.splitlines() if "-----" not in line)
        lines = [line.split(":") for line in self.tpm.run("tpm2_pcrread", "sha256").splitlines() if "0x" in line]
        pcrs = {int(i): v.strip()[2:].lower() for i, v in lines}
        self.kbs.set_values({name_of(ak): {"ak": ak, "machine": UUID},
                             f"boot.{pcrs[4]}.{pcrs[14]}": {"images": ["a"]}})

    def attestations(self):
        return self.kbs.requests("attest", 200)

    def stop(self):
        self.kbs.stop()
        self.tpm.stop()


@pytest.fixture(scope="module")
def machine(tmp_path_factory):
    m = Machine(tmp_path_factory.mktemp("node"))
    yield m
    m.stop()


class Service:
    def __init__(self, machine, *options, address="127.0.0.1", url=None):
        self.port = free_port()
        self.machine = machine
        self.log = open(f"{machine.dir}/serve.log", "ab+")
        self.process = subprocess.Popen(
            [tecnode.BINARY, "serve", f"--listen={address}:{self.port}",
             *([f"--url={url}"] if url else machine.to_kbs), *options],
            env=machine.node.env, stdout=self.log, stderr=self.log)
        wait_for(lambda: self.process.poll() is not None or self.get("/info")[0] == 200, 20, "the service")
        assert self.process.poll() is None, self.said()

    def said(self):
        self.log.seek(0)
        return self.log.read().decode()

    def get(self, path, method="GET", host=None, address="127.0.0.1", timeout=60, headers=()):
        conn = http.client.HTTPConnection(address, self.port, timeout=timeout)
        try:
            conn.request(method, path, headers={**dict(headers), **({"Host": host} if host else {})})
            answer = conn.getresponse()
            return answer.status, answer.read(), answer.getheader("Content-Type")
        except ConnectionRefusedError:
            return None, b"", None
        finally:
            conn.close()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        if self.process.poll() is None:
            self.process.terminate()
        assert self.process.wait(30) == 0, self.said()
        self.log.close()


@pytest.fixture(name="service")
def _service(machine):
    with Service(machine) as s:
        yield s


def test_a_workload_gets_its_resource(machine, service):
    status, body, kind = service.get(f"/cdh/resource/{machine.path}")
    assert (status, kind) == (200, "application/octet-stream")
    assert body == SECRET
    curl = subprocess.run(["curl", "-sf", f"http://localhost:{service.port}/cdh/resource/{machine.path}"],
                          capture_output=True, check=True)
    assert curl.stdout == body
    assert SECRET.decode() not in service.said()
    assert tecnode.leftovers(machine.tpm) == []


def rss(service):
    """KiB"""
    with open(f"/proc/{service.process.pid}/status", encoding="ascii") as f:
        return next(int(line.split()[1]) for line in f if line.startswith("VmRSS"))


def test_a_thousand_requests_are_one_attestation(machine, service):
    before = machine.attestations()

    def some(_):
        conn = http.client.HTTPConnection("127.0.0.1", service.port, timeout=60)
        seen = set()
        for _ in range(50):
            conn.request("GET", f"/cdh/resource/{machine.path}")
            answer = conn.getresponse()
            seen.add((answer.status, answer.read()))
        conn.close()
        return seen
    with concurrent.futures.ThreadPoolExecutor(20) as pool:
        answers = set().union(*pool.map(some, range(20)))
    assert answers == {(200, SECRET)}
    assert machine.attestations() == before + 1
    with open(tecnode.BINARY, "rb") as f:
        sanitized = b"__asan_init" in f.read()
    if not sanitized:
        wait_for(lambda: rss(service) <= RSS_MAX, 60, "a service that is small again")


@pytest.fixture(name="open_service")
def _open_service(machine):
    with Service(machine, "--aa") as s:
        yield s


def test_token_and_key(open_service):
    service = open_service
    status, body, _ = service.get("/aa/token?token_type=kbs")
    assert status == 200
    answer = json.loads(body)
    claims = json.loads(base64.urlsafe_b64decode(answer["token"].split(".")[1] + "=="))
    assert claims["submods"]["cpu0"]["ear.status"] == "affirming"
    assert answer["tee_keypair"].startswith("-----BEGIN PRIVATE KEY-----\n")
    assert json.loads(service.get("/aa/token?token_type=kbs")[1])["token"] == answer["token"]
    assert service.get("/aa/token?token_type=other")[0] == 400
    assert service.get("/aa/token")[0] == 400


def bound(data):
    """As tec-node(1) has it."""
    return hashlib.sha384(b"tec-node/runtime-data:" + data).digest()[:32]


def test_evidence_is_bound_to_what_was_asked(open_service):
    service = open_service
    data = hashlib.sha256(b"x").digest()
    encoded = base64.urlsafe_b64encode(data).decode().rstrip("=")
    for query, asked in ((f"{encoded}&encoding=base64", data), ("abc", b"abc"), ("a%62c", b"abc")):
        status, body, _ = service.get(f"/aa/evidence?runtime_data={query}")
        assert status == 200, body
        message = base64.b64decode(json.loads(body)["tpm_quote"]["message"])
        assert read_quote(message)[0] == bound(asked)
    for bad in ("", "?runtime_data=" + "x" * 33, "?runtime_data=%zz", "?runtime_data=!&encoding=base64",
                "?runtime_data=a&encoding=hex"):
        assert service.get("/aa/evidence" + bad)[0] == 400, bad


def test_info(service, open_service):
    info = json.loads(service.get("/info")[1])
    assert info["tee"] == "tpm" and info["features"] == ["resource"]
    assert json.loads(open_service.get("/info")[1])["features"] == ["resource", "attestation"]


def test_no_web_page_can_ask(machine, service):
    for host in ("evil.example", f"evil.example:{service.port}", "127.0.0.1.evil.example", "10.0.0.1"):
        status, body, _ = service.get(f"/cdh/resource/{machine.path}", host=host)
        assert status == 403 and b"Host" in body


def test_other_paths_and_methods(service):
    assert service.get("/")[:2] == (404, b"URL NOT FOUND")
    for path in ("a/b", "a/b/c/d", "../../etc/passwd", "a/b%2fc/d", "a//c"):
        assert service.get(f"/cdh/resource/{path}")[0] == 404, path
    for method in ("POST", "PUT", "DELETE", "OPTIONS"):
        assert service.get("/info", method=method)[0] in (405, 411), method


def test_hostile_http(machine, service):
    for junk in (b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03", b"GET /info HTTP/1.1\r\n\r\n",
                 b"GET /info HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n", b"A" * 70000,
                 b"GET /info HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
                 b"GET " + b"/" * 9000 + b" HTTP/1.1\r\nHost: localhost\r\n\r\n"):
        with socket.create_connection(("127.0.0.1", service.port), timeout=20) as s:
            try:
                s.sendall(junk)
                s.shutdown(socket.SHUT_WR)
                answer = s.recv(65536)
            except ConnectionError:
                answer = b""
            assert not answer.startswith(b"HTTP/1.1 200"), junk[:40]
    assert service.get("/info")[0] == 200
    assert service.process.poll() is None


def test_five_hundred_clients(machine, service):
    open_ = [socket.create_connection(("127.0.0.1", service.port), timeout=60) for _ in range(500)]
    request = f"GET /cdh/resource/{machine.path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n"
    for s in open_:
        s.sendall(request.encode())
    for s in open_:
        answer = b""
        while chunk := s.recv(65536):
            answer += chunk
        s.close()
        assert answer.startswith(b"HTTP/1.1 200"), answer[:200]
        assert answer.endswith(SECRET)


def test_peers_of_other_addresses_are_refused(machine):
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as s:
        try:
            s.connect((ownnet.OTHER, 9))
        except OSError:
            lacking("no address but the loopback's; next step: run as root, with -n 2")
        own = s.getsockname()[0]
    with Service(machine, address="0.0.0.0") as service:
        assert service.get("/info", address=own, host="localhost")[0] == 403
        assert service.get("/info")[0] == 200


def test_what_is_missing_is_not_called_refused(machine, service):
    status, body, _ = service.get("/cdh/resource/default/key/none")
    assert status == 500 and body == b"the server does not have this resource (ResourceNotFound)"
    assert service.get(f"/cdh/resource/{machine.path}")[0] == 200
    status, out, said = machine.node.run("get-resource", *machine.to_kbs, "--path=default/key/none")
    assert (status, out) == (5, b"") and "the server does not have this resource (ResourceNotFound)" in said, said
    assert "giving up on default/key/none" in said and "refused" not in said


def test_a_refusal_says_why_and_ends_when_it_is_over(machine, service):
    set_policies(machine.kbs)
    status, body, _ = service.get("/cdh/resource/default/key/none")
    assert status == 500 and b"the server refused the request (PolicyDeny)" in body
    set_policies(machine.kbs, resource="resource-shared.rego")
    assert service.get(f"/cdh/resource/{machine.path}")[0] == 200


def test_no_server_is_said(machine):
    with Service(machine, url=f"http://127.0.0.1:{free_port()}") as service:
        status, body, _ = service.get(f"/cdh/resource/{machine.path}")
        assert status == 500 and b"refused" in body
        assert service.get("/info")[0] == 200


def test_the_loop_does_not_wait_for_the_tpm(machine):
    """A TPM that hangs holds the requests that need it, and no other."""
    with Service(machine) as service:
        os.kill(machine.tpm._proc.popen.pid, signal.SIGSTOP)  # pylint: disable=protected-access
        try:
            with concurrent.futures.ThreadPoolExecutor(1) as pool:
                slow = pool.submit(service.get, f"/cdh/resource/{machine.path}")
                for _ in range(20):
                    began = time.monotonic()
                    assert service.get("/info")[0] == 200
                    assert time.monotonic() - began < 5
                assert not slow.done()
                os.kill(machine.tpm._proc.popen.pid, signal.SIGCONT)  # pylint: disable=protected-access
                assert slow.result(60)[0] == 200
        finally:
            os.kill(machine.tpm._proc.popen.pid, signal.SIGCONT)  # pylint: disable=protected-access


def over(path, target="/info"):
    """(status, body) over a local socket."""
    with socket.socket(socket.AF_UNIX) as s:
        s.settimeout(60)
        s.connect(path)
        s.sendall(f"GET {target} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n".encode())
        answer = b""
        while chunk := s.recv(65536):
            answer += chunk
    head, _, body = answer.partition(b"\r\n\r\n")
    return int(head.split()[1]), body


def test_a_local_socket(machine, tmp_path):
    path = str(tmp_path / "socket")
    with Service(machine, f"--socket={path}", "--socket-mode=0640") as service:
        assert stat.S_IMODE(os.stat(path).st_mode) == 0o640
        curl = subprocess.run(["curl", "-sf", "--unix-socket", path, f"http://localhost/cdh/resource/{machine.path}"],
                              capture_output=True, check=True)
        assert curl.stdout == SECRET
        assert service.get("/info")[0] == 200
    assert not os.path.exists(path)


def test_a_socket_alone_replaces_a_dead_one(machine, tmp_path):
    path = str(tmp_path / "socket")
    for end in (signal.SIGKILL, signal.SIGTERM):
        process = subprocess.Popen([tecnode.BINARY, "serve", "--listen=", f"--socket={path}", *machine.to_kbs],
                                   env=machine.node.env, stderr=subprocess.DEVNULL)
        try:
            wait_for(lambda: answers(path), 20, "the socket")
        finally:
            process.send_signal(end)
            process.wait(30)


def answers(path):
    try:
        return over(path)[0] == 200
    except (FileNotFoundError, ConnectionError):
        return False


@pytest.mark.parametrize("options,said", [
    ([], "--socket"), (["--socket=relative"], "absolute path"), (["--socket-mode=8"], "--socket-mode"),
    (["--socket-mode=01777"], "--socket-mode"),
    (["--socket-group=no-such-group"], 'no group "no-such-group" exists'),
    (["--socket-users=root,no-such-user"], 'no user "no-such-user" exists'),
    (["--socket-users="], '--socket-users: no user "" exists')])
def test_what_is_refused_at_the_start(machine, options, said):
    status, _, text = machine.node.run("serve", "--listen=", *machine.to_kbs, *options)
    assert status == 2 and said in text, text


def test_the_sockets_of_systemd(machine, tmp_path):
    path = str(tmp_path / "socket")
    with socket.create_server(("127.0.0.1", 0)) as tcp, socket.create_server(path, family=socket.AF_UNIX) as local:
        port = tcp.getsockname()[1]
        script = (f"export LISTEN_PID=$$ LISTEN_FDS=2; exec 8<&{tcp.fileno()} 9<&{local.fileno()}; "
                  f"exec {tecnode.BINARY} serve --url=http://127.0.0.1:1 3<&8 4<&9 8<&- 9<&-")
        process = subprocess.Popen(["bash", "-c", script], pass_fds=[tcp.fileno(), local.fileno()],
                                   env=machine.node.env, stderr=subprocess.DEVNULL)
        try:
            conn = http.client.HTTPConnection("127.0.0.1", port, timeout=20)
            conn.request("GET", "/info")
            assert conn.getresponse().status == 200
            conn.close()
            assert over(path)[0] == 200
        finally:
            process.terminate()
            assert process.wait(30) == 0
