# SPDX-License-Identifier: MIT
"""A fault-injecting proxy in front of a key broker.

It serves the scheme of the broker's URL with a certificate of its own (ca), so the operator is pointed at
url and trusts ca. Rules say what happens to which request; the first that matches is taken.
"""

import base64
import json
import random
import re
import socket
import ssl
import time
import urllib.parse

from faultproxy import CUT, CUT_AFTER, CUT_HALF, RESET, Delay, Relay, Reply, make_identity
from kbs import ERRORS

__all__ = ["CUT", "CUT_AFTER", "CUT_HALF", "RESET", "Delay", "KbsProxy", "Reply", "html", "nothing", "redirect",
           "refusal", "too_large", "verb_of"]

_VERBS = [("POST", "resource/", "resource-put"), ("DELETE", "resource/", "resource-delete"),
          ("POST", "reference-value", "refvalue-put"), ("GET", "reference-value/", "refvalue-get"),
          ("POST", "attestation-policy", "attestation-policy-put"),
          ("POST", "resource-policy", "resource-policy-put"),
          ("GET", "resource-policy", "resource-policy-get")]


def verb_of(method, target):
    return next((verb for m, path, verb in _VERBS
                 if m == method and target.startswith("/kbs/v0/" + path)), "other")


# Answers in the broker's place

def refusal(error_type, status=401):
    """As the real one refuses: JSON without a Content-Type."""
    return Reply(status, '{"type":"%s%s","detail":"injected"}' % (ERRORS, error_type))


def too_large():
    return Reply(413, "payload reached size limit", "text/plain")


def html(status=502):
    return Reply(status, "<html><body><h1>Bad Gateway</h1></body></html>", "text/html")


def redirect(location, status=302):
    return Reply(status, "", headers=[f"Location: {location}"])


def nothing(status=200):
    """A success without a body."""
    return Reply(status, "")


class Seen:
    """One request: when it came and what was done with it."""

    def __init__(self, n, method, target, body):
        self.n, self.method, self.target, self.body = n, method, target, body
        self.verb = verb_of(method, target)
        self.at = time.monotonic()
        self.fate = None

    def values(self):
        """{name: value} of a message of reference values; {} of anything else."""
        return (json.loads(base64.b64decode(json.loads(self.body)["payload"])) if self.verb == "refvalue-put"
                else {})

    def __repr__(self):
        return f"{self.n} {self.verb} {self.target} {self.fate}"


class _Rule:
    def __init__(self, fate, verb, path, nth, times):
        self.fate, self.verb, self.path, self.times = fate, verb, path and re.compile(path), times
        self.skip = nth - 1  # so many that match are let through first

    def takes(self, seen):
        if self.times == 0 or (self.verb and self.verb != seen.verb):
            return False
        if self.path and not self.path.search(seen.target):
            return False
        if self.skip > 0:
            self.skip -= 1
            return False
        if self.times is not None:
            self.times -= 1
        return True


class KbsProxy(Relay):
    """on() adds a rule; refuse() and listen() take the port away and give it back; wrong_certificate()
    shows another one; drop() ends the connections that are there. log: every request, in order."""

    def __init__(self, upstream_url, directory, upstream_ca=None, on_cut=lambda: None):
        at = urllib.parse.urlsplit(upstream_url)
        self.upstream = (at.hostname, at.port or {"http": 80, "https": 443}[at.scheme])
        self.rules, self.log = [], []
        self.luck = self.fates = None
        self.one_of = 0
        self.ca = self.tls = self.upstream_tls = None
        if at.scheme == "https":
            self.upstream_tls = ssl.create_default_context(cafile=upstream_ca)
            self.ca, _, self.right_tls = make_identity(directory, "kbsproxy")
            _, _, self.wrong_tls = make_identity(directory, "kbsproxy-wrong")
            self.tls = self.right_tls
        super().__init__(on_cut)
        self.url = f"{at.scheme}://127.0.0.1:{self.port}"

    # Faults

    def on(self, fate, verb=None, path=None, nth=1, times=1):
        """FATE for the NTH request with this verb and a target that matches the expression PATH, and
        for those after it, TIMES in all (None: for ever)."""
        with self.lock:
            self.rules.append(_Rule(fate, verb, path, nth, times))
        return self

    def bad_network(self, one_of, *fates, seed=1):
        """One request of so many gets one of FATES, by a seeded die, until clear(). Each has a connection of
        its own, so that a loss is one: what fails on a kept connection is sent again by HTTP itself."""
        with self.lock:
            self.luck, self.one_of, self.fates = random.Random(seed), one_of, fates

    def clear(self):
        with self.lock:
            self.rules.clear()
            self.one_of = 0

    def wrong_certificate(self, wrong=True):
        """For new connections; those that are there end."""
        self.tls = self.wrong_tls if wrong else self.right_tls
        self.drop()

    # What was seen

    def seen(self, verb=None):
        with self.lock:
            return [s for s in self.log if verb in (None, s.verb)]

    # Relay

    def change(self, request):
        return request.replace(b"\r\n", b"\r\nConnection: close\r\n", 1) if self.one_of else request

    def wrap_client(self, raw):
        raw.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        return self.tls.wrap_socket(raw, server_side=True) if self.tls else raw

    def connect(self):
        plain = socket.create_connection(self.upstream)
        plain.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        if not self.upstream_tls:
            return plain
        return self.upstream_tls.wrap_socket(plain, server_hostname=self.upstream[0])

    def _judge(self, request):
        head, _, body = request.partition(b"\r\n\r\n")
        method, target, _ = head.split(b"\r\n", 1)[0].decode().split(" ")
        with self.lock:
            seen = Seen(len(self.log) + 1, method, target, body)
            self.log.append(seen)
            rule = next((r for r in self.rules if r.takes(seen)), None)
            seen.fate = rule and rule.fate
            if not rule and self.one_of and self.luck.randrange(self.one_of) == 0:
                seen.fate = self.luck.choice(self.fates)
        return seen.fate
