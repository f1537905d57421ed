# SPDX-License-Identifier: MIT
"""A proxy between the operator and the API server that sees every request and can interfere with one.

It terminates TLS on both sides, forwards each request on a connection of its own pair, and asks a rule
what to do with it. Answers are relayed as they come, so watches work.
"""

import base64
import os
import re
import select
import socket
import ssl
import subprocess
import threading
import urllib.parse

READS = ("GET", "HEAD", "OPTIONS")


class Request:
    def __init__(self, method, target, n_write):
        self.method, self.target = method, target
        self.write = n_write  # 1, 2, 3... among writes; 0 for a read

    @property
    def lease(self):
        return "/leases" in self.target


class Answer:
    """What a rule returns to answer in the API server's place."""

    def __init__(self, status, reason, headers=()):
        body = ('{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"%s","code":%d,'
                '"message":"injected"}' % (reason, status))
        lines = [f"HTTP/1.1 {status} Injected", "Content-Type: application/json",
                 f"Content-Length: {len(body)}", *headers]
        self.data = ("\r\n".join(lines) + "\r\n\r\n" + body).encode()


CUT = object()      # close the connection without forwarding
CUT_AFTER = object()  # forward, wait for the answer's first bytes, close without relaying them


class FaultProxy:
    """rule(Request) -> None (forward), CUT, CUT_AFTER or Answer. It runs on the connection's thread;
    on_cut() runs when a CUT or CUT_AFTER takes effect, before the connection is closed."""

    def __init__(self, cp_kubeconfig, directory, rule=lambda r: None, on_cut=lambda: None):
        self.rule, self.on_cut = rule, on_cut
        self.lock = threading.Lock()
        self.writes = 0
        self.log = []
        with open(cp_kubeconfig, encoding="utf-8") as f:
            config = f.read()
        self.upstream = urllib.parse.urlsplit(re.search(r"server: (\S+)", config)[1])
        ca = base64.b64decode(re.search(r"certificate-authority-data: (\S+)", config)[1])
        self.upstream_tls = ssl.create_default_context(cadata=ca.decode())
        certificate = self._make_identity(directory)
        self.listener = socket.create_server(("127.0.0.1", 0))
        port = self.listener.getsockname()[1]
        config = re.sub(r"server: \S+", f"server: https://127.0.0.1:{port}", config)
        config = re.sub(r"certificate-authority-data: \S+", f"certificate-authority: {certificate}", config)
        self.kubeconfig = os.path.join(directory, "proxied.kubeconfig")
        with open(self.kubeconfig, "w", encoding="utf-8") as f:
            f.write(config)
        threading.Thread(target=self._accept, daemon=True).start()

    def close(self):
        self.listener.close()

    def _make_identity(self, directory):
        key, crt = os.path.join(directory, "proxy.key"), os.path.join(directory, "proxy.crt")
        if not os.path.exists(crt):
            subprocess.run(
                ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes",
                 "-keyout", key, "-out", crt, "-days", "2", "-subj", "/CN=proxy",
                 "-addext", "subjectAltName=IP:127.0.0.1"], check=True, capture_output=True)
        self.tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        self.tls.load_cert_chain(crt, key)
        return crt

    def _accept(self):
        while True:
            try:
                conn, _ = self.listener.accept()
            except OSError:
                return
            threading.Thread(target=self._serve, args=(conn,), daemon=True).start()

    def _serve(self, raw):
        try:
            with self.tls.wrap_socket(raw, server_side=True) as client, \
                    socket.create_connection((self.upstream.hostname, self.upstream.port)) as plain, \
                    self.upstream_tls.wrap_socket(plain, server_hostname=self.upstream.hostname) as server:
                self._forward(client, server)
        except (OSError, ValueError):
            pass

    def _forward(self, client, server):
        """One thread for both directions: an SSL object must not be read and written at once."""
        held, swallow = b"", False
        while True:
            ready = [s for s in (client, server) if s.pending()] or select.select([client, server], [], [])[0]
            answer = self._read(server) if server in ready else b""
            asked = self._read(client) if client in ready else b""
            if answer is None or asked is None:
                return
            if answer:
                if swallow:
                    self.on_cut()
                    return
                client.sendall(answer)
            if asked:
                held += asked
                while request := self._take_request(held):
                    held = held[len(request):]
                    verdict = self._judge(request)
                    if verdict is CUT:
                        self.on_cut()
                        return
                    if isinstance(verdict, Answer):
                        client.sendall(verdict.data)
                        continue
                    swallow = verdict is CUT_AFTER
                    server.sendall(request)

    @staticmethod
    def _read(sock):
        """What is there: b"" when it was nothing but TLS's own records, None at the end."""
        sock.setblocking(False)
        try:
            return sock.recv(65536) or None
        except ssl.SSLWantReadError:
            return b""
        finally:
            sock.setblocking(True)

    @staticmethod
    def _take_request(data):
        """The first whole request in DATA, or None."""
        head, end, _ = data.partition(b"\r\n\r\n")
        if not end:
            return None
        length = next((int(line.split(b":")[1]) for line in head.split(b"\r\n")
                       if line.lower().startswith(b"content-length:")), 0)
        whole = len(head) + 4 + length
        return data[:whole] if len(data) >= whole else None

    def _judge(self, head):
        method, target, _ = head.split(b"\r\n", 1)[0].decode().split(" ")
        with self.lock:
            write = method not in READS and "/leases" not in target and "/events" not in target
            self.writes += write
            request = Request(method, target, self.writes if write else 0)
            self.log.append(request)
            return self.rule(request)
