# SPDX-License-Identifier: MIT
"""A proxy that sees every request and can interfere with one: between the operator and the API server
here, between it and a key broker in kbsproxy.py.

It terminates TLS on both sides, forwards each request on a connection of its own pair, and asks a rule
what to do with it. Answers are relayed as they come, so watches work.
"""

import base64
import os
import re
import select
import socket
import ssl
import struct
import subprocess
import threading
import time
import urllib.parse

from h2front import Front

READS = ("GET", "HEAD", "OPTIONS")


class Request:
    def __init__(self, method, target, n_write):
        self.method, self.target = method, target
        self.write = n_write  # 1, 2, 3... among writes; 0 for a read

    @property
    def lease(self):
        return "/leases" in self.target


class Reply:
    """What a rule returns to answer in the server's place."""

    def __init__(self, status, body, content_type=None, headers=()):
        if isinstance(body, str):
            body = body.encode()
        lines = [f"HTTP/1.1 {status} Injected", f"Content-Length: {len(body)}", *headers]
        if content_type:
            lines.append(f"Content-Type: {content_type}")
        self.data = ("\r\n".join(lines) + "\r\n\r\n").encode() + body


class Answer(Reply):
    """A refusal of the API server's."""

    def __init__(self, status, reason, headers=()):
        body = ('{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"%s","code":%d,'
                '"message":"injected"}' % (reason, status))
        super().__init__(status, body, "application/json", headers)


class Delay:
    """Forward, but only after so many seconds."""

    def __init__(self, seconds):
        self.seconds = seconds


CUT = object()      # close the connection without forwarding
CUT_AFTER = object()  # forward, wait for the answer's first bytes, close without relaying them
CUT_HALF = object()   # forward, relay half of the answer's body, close
CUT_LINE = object()  # of a watch: relay its answer up to the middle of the first event, close
RESET = object()    # close the connection with a reset, without forwarding


class Relay:
    """Takes connections on a loopback port and forwards each request on a connection of its own
    pair, as judge(method, target) says: None (forward), Delay, CUT, RESET, CUT_AFTER, CUT_HALF, CUT_LINE or a Reply.
    It runs on the connection's thread; on_cut() runs when a CUT takes effect, before the connection
    is closed."""

    def __init__(self, on_cut=lambda: None):
        self.on_cut = on_cut
        self.lock = threading.Lock()
        self.port = 0
        self.clients, self.muted = set(), set()
        self.closing = threading.Event()
        self.listener = None
        self.listen()

    # For subclasses

    def judge(self, method, target):
        raise NotImplementedError

    def wrap_client(self, raw):
        return raw

    def connect(self):
        """A connection to the server."""
        raise NotImplementedError

    def change(self, request):
        """As it is forwarded."""
        return request

    # The listening socket

    def listen(self):
        """On the same port every time."""
        self.listener = socket.create_server(("127.0.0.1", self.port))
        self.port = self.listener.getsockname()[1]
        threading.Thread(target=self._accept, args=(self.listener,), daemon=True).start()

    def refuse(self):
        """No connection is taken until listen(); those that are there end."""
        self.listener.shutdown(socket.SHUT_RDWR)  # wakes accept(), which close() would not
        self.listener.close()
        self.drop()

    def drop(self):
        """Ends the connections that are there."""
        with self.lock:
            for client in self.clients:
                try:
                    client.shutdown(socket.SHUT_RDWR)
                except OSError:
                    pass

    def mute(self):
        """The connections that are there stay open, and nothing more is said on them."""
        with self.lock:
            self.muted |= self.clients

    def settle(self, timeout=5):
        """The client is dead: ends what it left on its way, and returns when all of it is over."""
        end = time.monotonic() + timeout
        while self.clients and time.monotonic() < end:
            self.drop()
            time.sleep(0.01)

    def close(self):
        self.closing.set()
        try:
            self.refuse()
        except OSError:
            pass  # closed already

    def _accept(self, listener):
        while True:
            try:
                conn, _ = listener.accept()
            except OSError:
                return
            threading.Thread(target=self._serve, args=(conn,), daemon=True).start()

    def _serve(self, raw):
        with self.lock:
            self.clients.add(raw)
        client = None
        try:
            client = self.wrap_client(raw)
            with self.lock:
                self.clients.discard(raw)  # detached by TLS
                self.clients.add(client)
            with client:
                self._converse(client)
        except (OSError, ValueError):
            pass
        finally:
            with self.lock:
                self.clients -= {raw, client}
            raw.close()

    def _converse(self, client):
        if isinstance(client, ssl.SSLSocket) and client.selected_alpn_protocol() == "h2":
            Front(client, lambda pair: threading.Thread(target=self._serve_pair, args=(pair,), daemon=True).start(),
                  lambda: client in self.muted).run()
            return
        with self.connect() as server:
            self._forward(client, server)

    def _serve_pair(self, pair):
        with self.lock:
            self.clients.add(pair)
        try:
            with pair, self.connect() as server:
                self._forward(pair, server)
        except (OSError, ValueError):
            pass
        finally:
            with self.lock:
                self.clients.discard(pair)

    def _forward(self, client, server):
        """One thread for both directions: an SSL object must not be read and written at once."""
        held, fate = b"", None
        while True:
            ready = ([s for s in (client, server) if self._pending(s)]
                     or select.select([client, server], [], [])[0])
            answer = self._read(server) if server in ready else b""
            asked = self._read(client) if client in ready else b""
            if answer is None or asked is None:
                return
            if client in self.muted:
                continue
            if answer:
                if fate is CUT_LINE and b'{"type"' in answer:
                    client.sendall(answer[:answer.index(b'{"type"') + 200])
                    self.on_cut()
                    return
                if fate is CUT_HALF:
                    client.sendall(self._half(answer))
                if fate in (CUT_AFTER, CUT_HALF):
                    self.on_cut()
                    return
                client.sendall(answer)
            if asked:
                held += asked
                while request := self._take_request(held):
                    held = held[len(request):]
                    fate = self._judge(request)
                    if fate in (CUT, RESET):
                        if fate is RESET:
                            client.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
                        self.on_cut()
                        return
                    if isinstance(fate, Reply):
                        client.sendall(fate.data)
                        continue
                    if isinstance(fate, Delay):
                        self.closing.wait(fate.seconds)
                    server.sendall(self.change(request))

    @staticmethod
    def _pending(sock):
        return isinstance(sock, ssl.SSLSocket) and sock.pending()

    @staticmethod
    def _half(answer):
        """Its head and half of its body; half of the head where there is no body."""
        head, end, body = answer.partition(b"\r\n\r\n")
        return head + end + body[:len(body) // 2] if body else head[:len(head) // 2]

    @staticmethod
    def _read(sock):
        """What is there: b"" when it was nothing but TLS's own records, None at the end."""
        sock.setblocking(False)
        try:
            return sock.recv(65536) or None
        except (ssl.SSLWantReadError, BlockingIOError):
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
        return self.judge(method, target)


def make_identity(directory, name="proxy", address="IP:127.0.0.1"):
    """(certificate, key, server context): self-signed, so the certificate is its own CA. For the operator
    alone; what a stock attester is to accept has a CA and a leaf (spine.make_certificate)."""
    key, crt = os.path.join(directory, f"{name}.key"), os.path.join(directory, f"{name}.crt")
    if not os.path.exists(crt):
        subprocess.run(
            ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes",
             "-keyout", key, "-out", crt, "-days", "2", "-subj", f"/CN={name}",
             "-addext", f"subjectAltName={address}"], check=True, capture_output=True)
    tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    tls.load_cert_chain(crt, key)
    return crt, key, tls


class FaultProxy(Relay):
    """Stands before the API server of a kubeconfig. rule(Request) -> what Relay.judge may say. It speaks HTTP/2
    with the operator, where a request that is cut takes the connection with it, or HTTP/1.1 only."""

    def __init__(self, cp_kubeconfig, directory, rule=lambda r: None, on_cut=lambda: None, http2=True):
        self.rule = rule
        self.writes = 0
        self.log = []
        with open(cp_kubeconfig, encoding="utf-8") as f:
            config = f.read()
        self.upstream = urllib.parse.urlsplit(re.search(r"server: (\S+)", config)[1])
        ca = base64.b64decode(re.search(r"certificate-authority-data: (\S+)", config)[1])
        self.upstream_tls = ssl.create_default_context(cadata=ca.decode())
        certificate, _, self.tls = make_identity(directory)
        self.protocol = "h2" if http2 else "http/1.1"
        self.tls.set_alpn_protocols([self.protocol])
        super().__init__(on_cut)
        config = re.sub(r"server: \S+", f"server: https://127.0.0.1:{self.port}", config)
        config = re.sub(r"certificate-authority-data: \S+", f"certificate-authority: {certificate}", config)
        self.kubeconfig = os.path.join(directory, "proxied.kubeconfig")
        with open(self.kubeconfig, "w", encoding="utf-8") as f:
            f.write(config)

    def wrap_client(self, raw):
        return self.tls.wrap_socket(raw, server_side=True)

    def connect(self):
        plain = socket.create_connection((self.upstream.hostname, self.upstream.port))
        return self.upstream_tls.wrap_socket(plain, server_hostname=self.upstream.hostname)

    def judge(self, method, target):
        with self.lock:
            write = method not in READS and "/leases" not in target and "/events" not in target
            self.writes += write
            request = Request(method, target, self.writes if write else 0)
            self.log.append(request)
            return self.rule(request)
