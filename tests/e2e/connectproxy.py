# SPDX-License-Identifier: MIT
"""An HTTP proxy: CONNECT for https, absolute URLs for http. It notes the hosts that it was asked for."""

import http.server
import select
import socket
import threading
import urllib.parse


class ConnectProxy:
    """hosts: {"name:port": "address:port"}, for names that nobody but the proxy resolves."""

    def __init__(self, hosts=None):
        self.hosts, self.asked, self.heads = hosts or {}, [], []
        owner = self

        class Handler(http.server.BaseHTTPRequestHandler):
            def do_CONNECT(self):
                with owner.connect(self, self.path) as server:
                    self.send_response(200)
                    self.end_headers()
                    self.wfile.flush()
                    _relay(self.connection, server)

            def do_GET(self):
                url = urllib.parse.urlsplit(self.path)
                with owner.connect(self, url.netloc) as server:
                    self.headers["Connection"] = "close"
                    server.sendall(f"GET {self.path.partition(url.netloc)[2]} HTTP/1.1\r\n{self.headers}".encode())
                    _relay(self.connection, server)

            do_POST = do_PUT = do_PATCH = do_DELETE = do_GET

            def log_message(self, *_):
                pass

        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.server.daemon_threads = True
        self.url = f"http://127.0.0.1:{self.server.server_port}"
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    def connect(self, handler, authority):
        self.asked.append(authority)
        self.heads.append(str(handler.headers))
        handler.close_connection = True
        host, _, port = self.hosts.get(authority, authority).rpartition(":")
        return socket.create_connection((host.strip("[]"), int(port)), 20)

    def env(self, **more):
        """What a shell exports; NO_PROXY of the caller's is hidden."""
        return {"https_proxy": self.url, "http_proxy": self.url, "no_proxy": "", "NO_PROXY": "", **more}

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.server.shutdown()
        self.server.server_close()


def _relay(client, server):
    peer = {client: server, server: client}
    while True:
        for ready in select.select(list(peer), [], [])[0]:
            try:
                data = ready.recv(65536)
                peer[ready].sendall(data)
            except OSError:
                data = b""
            if not data:
                return
