#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""client.py: who talks to the cluster from outside. It runs in the network there, which the tests themselves are not in:
one JSON job on standard input, one JSON answer on standard output. No file of the tests but this one is needed.

  {"do": "ask", "url", "ca", "name", "method", "body", "headers"}          -> {"status", "headers", "body"} or {"error"}
  {"do": "load", "targets": [{"url", "name", "expect"}], "ca", "rate", "total", "first_port"}
      each request on a connection of its own, spread evenly  -> {"sent", "failed": [[second, what]], "seconds", "slowest"}
  {"do": "plain", "url", "seconds"}                           -> {"tries", "connected", "answers": [first bytes]}
"""

import concurrent.futures
import http.client
import json
import socket
import ssl
import sys
import time
import urllib.parse

# More than the slowest answer a node would wait for.
TIMEOUT = 10


class Connection(http.client.HTTPSConnection):
    """To an address, by the name that its certificate has."""

    def __init__(self, address, port, name, context, timeout, source_port=0):
        super().__init__(address, port, timeout=timeout, context=context)
        self._name, self._tls, self._source = name, context, source_port

    def connect(self):
        raw = socket.create_connection((self.host, self.port), self.timeout, ("", self._source))
        try:
            self.sock = self._tls.wrap_socket(raw, server_hostname=self._name)
        except BaseException:
            raw.close()
            raise


def ask(url, context, name=None, method="GET", body=None, headers=None, timeout=TIMEOUT, source_port=0):
    at = urllib.parse.urlsplit(url)
    if at.scheme == "https":
        conn = Connection(at.hostname, at.port, name or at.hostname, context, timeout, source_port)
    else:
        conn = http.client.HTTPConnection(at.hostname, at.port, timeout=timeout)
    try:
        conn.request(method, at.path, body, headers or {})
        answer = conn.getresponse()
        return answer.status, dict(answer.getheaders()), answer.read().decode(errors="replace")
    finally:
        conn.close()


def context_of(job):
    return ssl.create_default_context(cafile=job["ca"]) if job.get("ca") else None


def do_ask(job):
    try:
        status, headers, body = ask(job["url"], context_of(job), job.get("name"), job.get("method", "GET"),
                                    job.get("body"), job.get("headers"))
        return {"status": status, "headers": headers, "body": body}
    except (OSError, http.client.HTTPException) as e:
        return {"error": f"{type(e).__name__}: {e}"}


def do_load(job):
    context, failed, slowest, begin = context_of(job), [], [0.0], time.monotonic()
    timeout = job.get("timeout", TIMEOUT)

    def one(number):
        target = job["targets"][number % len(job["targets"])]
        start = time.monotonic()
        try:
            # A port of its own, as if each were a node of its own: what a connection to a Pod that is gone leaves in
            # a node's connection tracking leads the next one from the same port to the same place, for two minutes.
            status, _, body = ask(target["url"], context, target["name"], timeout=timeout,
                                  source_port=job["first_port"] + number)
            if status != target["expect"]:
                failed.append([round(start - begin, 2), f"{status} {body[:100]}"])
        except (OSError, http.client.HTTPException) as e:
            failed.append([round(start - begin, 2), f"{target['url']} {type(e).__name__}: {e}"])
        slowest[0] = max(slowest[0], time.monotonic() - start)

    with concurrent.futures.ThreadPoolExecutor(64) as pool:
        for number in range(job["total"]):
            pause = begin + number / job["rate"] - time.monotonic()
            if pause > 0:
                time.sleep(pause)
            pool.submit(one, number)
    return {"sent": job["total"], "failed": sorted(failed), "seconds": round(time.monotonic() - begin, 1),
            "slowest": round(slowest[0], 2)}


def do_plain(job):
    """Speaks HTTP without TLS again and again, and tells what was said to it."""
    at, tries, connected, answers = urllib.parse.urlsplit(job["url"]), 0, 0, []
    end = time.monotonic() + job["seconds"]
    while time.monotonic() < end:
        tries += 1
        try:
            with socket.create_connection((at.hostname, at.port), 0.5) as s:
                connected += 1
                s.sendall(f"GET {at.path} HTTP/1.1\r\nHost: x\r\n\r\n".encode())
                said = s.recv(200)
                if said:
                    answers.append(said[:40].decode("latin-1"))
        except OSError:
            time.sleep(0.005)
    return {"tries": tries, "connected": connected, "answers": sorted(set(answers))}


def main():
    job = json.load(sys.stdin)
    print(json.dumps({"ask": do_ask, "load": do_load, "plain": do_plain}[job["do"]](job)))


if __name__ == "__main__":
    main()
