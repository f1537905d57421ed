# SPDX-License-Identifier: MIT
"""The ways the tests use a control plane besides kubectl: its HTTPS API and its audit log."""

import http.client
import json
import ssl
import threading

_READS = ("get", "list", "watch")


class KubeAPI:
    """HTTPS with a pinned certificate and one kept connection per thread."""

    def __init__(self, host, port, ca_file, token=None, certificate=None):
        """Who asks: a token, or CERTIFICATE: the paths of a client certificate and its key."""
        self.host = host
        self.port = port
        self.token = token
        self._tls = ssl.create_default_context(cafile=ca_file)
        if certificate:
            self._tls.load_cert_chain(*certificate)
        self._local = threading.local()

    def close(self):
        """This thread's connection."""
        conn = getattr(self._local, "conn", None)
        if conn:
            conn.close()
        self._local.conn = None

    def __call__(self, method, path, body=None, content_type=None, headers=None, timeout=30):
        """(status, parsed JSON; None when empty, text when not JSON). Raises OSError or
        http.client.HTTPException when no answer came."""
        send = {"Accept": "application/json", "User-Agent": "tec-tests"}
        if self.token:
            send["Authorization"] = f"Bearer {self.token}"
        if body is not None:
            if not isinstance(body, (bytes, str)):
                body = json.dumps(body)
            send["Content-Type"] = content_type or "application/json"
        send.update(headers or {})
        status, data = self._exchange(method, path, body, send, timeout)
        if not data:
            return status, None
        try:
            return status, json.loads(data)
        except ValueError:
            return status, data.decode(errors="replace")

    def _exchange(self, method, path, body, headers, timeout):
        reused = getattr(self._local, "conn", None)
        conn = reused or http.client.HTTPSConnection(self.host, self.port, context=self._tls)
        self._local.conn = conn
        conn.timeout = timeout
        if conn.sock:
            conn.sock.settimeout(timeout)
        try:
            conn.request(method, path, body, headers)
            answer = conn.getresponse()
            return answer.status, answer.read()
        except (http.client.RemoteDisconnected, BrokenPipeError, ConnectionResetError, ssl.SSLEOFError):
            self.close()
            if not reused:
                raise
        except BaseException:  # half an answer must not be read as the next one's
            self.close()
            raise
        # The kept connection died while idle (an API server restart, or its limit of idle time):
        # the request was not answered, so it is sent once more on a fresh one.
        return self._exchange(method, path, body, headers, timeout)


class Places:
    """Where the objects of a kind are, as the server itself says."""

    def __init__(self, api):
        self._api, self._known = api, {}

    def _read(self, version):
        group = f"/apis/{version}" if "/" in version else f"/api/{version}"
        status, answer = self._api("GET", group)
        for resource in answer["resources"] if status == 200 else ():
            if "/" not in resource["name"]:
                self._known[version, resource["kind"]] = (group, resource["name"], resource["namespaced"])

    def path(self, o):
        what = (o["apiVersion"], o["kind"])
        if what not in self._known:  # it may have come since
            self._read(what[0])
        if what not in self._known:
            raise RuntimeError(f"the server has no {what[1]} in {what[0]}")
        group, plural, namespaced = self._known[what]
        meta = o["metadata"]
        inside = f"/namespaces/{meta.get('namespace', 'default')}" if namespaced else ""
        return f"{group}{inside}/{plural}/{meta['name']}"


class AuditLog:
    """What the API server was asked, by whom. The server writes it before it answers, so what a
    test has seen answered is in it. A mark is an offset in the file: events after it are new."""

    def __init__(self, path):
        self.path = path

    def mark(self):
        try:
            with open(self.path, "rb") as f:
                end = f.seek(0, 2)
                # A line that is being written shows in parts: it comes after the mark.
                start = f.seek(max(0, end - 65536))
                return start + f.read(end - start).rfind(b"\n") + 1
        except FileNotFoundError:
            return 0

    def events(self, who=None, since=0, verbs=None):
        """Audit events of user or user agent prefix WHO (None: everybody), one per request."""
        found = {}
        try:
            with open(self.path, "rb") as f:
                f.seek(since)
                lines = f.read().split(b"\n")
        except FileNotFoundError:
            return []
        for line in lines[:-1]:  # the last one is empty, or still being written
            e = json.loads(line)
            if who and not (e["user"].get("username", "").startswith(who)
                            or e.get("userAgent", "").startswith(who)):
                continue
            if verbs and e["verb"] not in verbs:
                continue
            found[e["auditID"]] = e  # a watch has two: at its start and at its end
        return list(found.values())

    def writes_by(self, who, since=0, ignore=()):
        """Requests of WHO that are not get, list or watch. IGNORE: plural resource names to leave
        out, as in ("leases",)."""
        return [e for e in self.events(who, since)
                if e["verb"] not in _READS
                and e.get("objectRef", {}).get("resource") not in ignore]

    def count(self, who=None, since=0):
        return len(self.events(who, since))


def describe(events):
    """Audit events as lines for an assertion's message."""
    lines = []
    for e in events:
        ref = e.get("objectRef", {})
        code = e.get("responseStatus", {}).get("code")
        lines.append(f"{e['verb']} {ref.get('resource')}/{ref.get('name', '')} -> {code}"
                     f" ({e['user'].get('username')})")
    return "\n".join(lines) or "(none)"
