# SPDX-License-Identifier: MIT
"""tec-node with a TPM in software: as a command, and as the pin that Debian's clevis finds in PATH."""

import os
import select
import shutil
import socket
import ssl
import subprocess
import threading
import time

from controlplane import TOP

BINARY = os.path.join(os.environ.get("TEC_BUILDDIR", TOP), "tec-node")
PINS = ("clevis-encrypt-trustee", "clevis-decrypt-trustee")


class TecNode:
    """One machine: its TPM, its tec-node, and a PATH in which clevis finds its pin."""

    def __init__(self, directory, tcti):
        self.dir = directory
        self.tcti = tcti
        self.inside = []  # what command lines begin with: how a program gets into the machine's network
        for name in PINS:
            os.symlink(BINARY, os.path.join(directory, name))
        self.ak_file = os.path.join(directory, "ak.pub")
        config = os.path.join(directory, "node.conf")
        with open(config, "w", encoding="ascii") as f:
            f.write(f"tcti = {tcti}\nak-file = {self.ak_file}\n")
        self.env = dict(os.environ, PATH=f"{directory}:{os.environ['PATH']}", TEC_NODE_CONFIG=config)

    def run(self, *args, stdin=b"", timeout=120):
        """(exit status, standard output, standard error)."""
        return self.command([BINARY, *args], stdin, timeout)

    def command(self, argv, stdin=b"", timeout=120):
        done = subprocess.run([*self.inside, *argv], input=stdin, capture_output=True, env=self.env, cwd=self.dir,
                              timeout=timeout, check=False)
        return done.returncode, done.stdout, done.stderr.decode()

    def good(self, *argv, stdin=b"", timeout=120):
        """Standard output of a command that succeeds."""
        status, out, said = self.command(list(argv), stdin, timeout)
        assert status == 0, f"{argv[:4]}: {status}: {said}"
        return out

    def start(self, *args, stdin=None):
        return subprocess.Popen([*self.inside, BINARY, *args], stdin=subprocess.PIPE if stdin else subprocess.DEVNULL,
                                stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=self.env, cwd=self.dir)


def missing_tools():
    """What must be installed first, as one sentence, or None."""
    packages = {"clevis": "clevis", "clevis-luks-bind": "clevis-luks", "cryptsetup": "cryptsetup-bin",
                "jose": "jose"}
    lacking = sorted({pkg for tool, pkg in packages.items() if not shutil.which(tool)})
    return f"apt-get install {' '.join(lacking)}" if lacking else None


def leftovers(tpm):
    """Transient objects and sessions in the TPM."""
    return [line for what in ("handles-transient", "handles-loaded-session", "handles-saved-session")
            for line in tpm.run("tpm2_getcap", what).splitlines() if line.strip()]


class Bad:
    """A server that is of no use: 'silent' takes connections and says nothing, 'garbage' answers TLS
    with something else, a number is the status of all answers; with a certificate over TLS."""

    def __init__(self, kind, certificate=None):
        self.kind = kind
        self.tls = None
        if certificate:
            self.tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            self.tls.load_cert_chain(*certificate)
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.port = self.listener.getsockname()[1]
        self.open = []
        threading.Thread(target=self._serve, daemon=True).start()

    def _serve(self):
        while True:
            try:
                conn, _ = self.listener.accept()
            except OSError:
                return
            self.open.append(conn)
            if self.kind != "silent":
                threading.Thread(target=self._answer, args=(conn,), daemon=True).start()

    def _answer(self, conn):
        try:
            if self.tls:
                conn = self.tls.wrap_socket(conn, server_side=True)
            conn.recv(65536)
            if self.kind == "garbage":
                conn.sendall(b"SSH-2.0-OpenSSH_9.2\r\n" * 20)
            else:
                conn.sendall(f"HTTP/1.1 {self.kind} X\r\nContent-Length: 2\r\n\r\n{{}}".encode())
            conn.recv(1)
        except OSError:
            pass

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.listener.close()
        for conn in self.open:
            conn.close()


class Limited(Bad):
    """A server that answers 429 with Retry-After so many times, then this status and body; .at has the times."""

    def __init__(self, times, retry_after, status=500, body="{}"):
        self.times, self.retry_after, self.then, self.at = times, retry_after, (status, body), []
        super().__init__("limited")

    def _answer(self, conn):
        try:
            conn.recv(65536)
            self.at.append(time.monotonic())
            head, body = (f"429 X\r\nRetry-After: {self.retry_after}", "{}") if len(self.at) <= self.times else \
                (f"{self.then[0]} X\r\nContent-Type: application/json", self.then[1])
            conn.sendall(f"HTTP/1.1 {head}\r\nConnection: close\r\nContent-Length: {len(body)}\r\n\r\n{body}".encode())
            conn.recv(1)
        except OSError:
            pass


class Tunnel(Bad):
    """Leads to a server until its kind is 'silent'."""

    def __init__(self, port):
        self.server = ("127.0.0.1", port)
        super().__init__("tunnel")

    def _answer(self, conn):
        with socket.create_connection(self.server) as server:
            peer = {conn: server, server: conn}
            while True:
                for ready in select.select(list(peer), [], [])[0]:
                    try:
                        data = ready.recv(65536)
                        peer[ready].sendall(data)
                    except OSError:
                        data = b""
                    if not data:
                        conn.close()
                        return


def pins(node):
    """The processes of this machine's pin that decrypt, as {process id: its parent's}."""
    found = {}
    for pid in filter(str.isdigit, os.listdir("/proc")):
        try:
            with open(f"/proc/{pid}/cmdline", "rb") as f:
                if f.read().split(b"\0")[0] != f"{node.dir}/clevis-decrypt-trustee".encode():
                    continue
            with open(f"/proc/{pid}/stat", encoding="ascii") as f:
                found[int(pid)] = int(f.read().rpartition(")")[2].split()[1])
        except OSError:
            pass  # ended meanwhile
    return found
