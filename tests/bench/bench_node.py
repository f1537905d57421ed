#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""make bench: what tec-node costs. get-resource against what it cannot do without, in turns: a quote by the same program on
the same TPM (swtpm), and two TLS handshakes with the same server by Python's OpenSSL. And the memory of the local endpoint.

Each line ends with the limit it is held against; exit 1 when one is missed.
"""

import http.client
import os
import socket
import ssl
import statistics
import sys
import tempfile
import time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [HERE, os.path.join(HERE, "..", "e2e")]

import softtpm  # noqa: E402
from bench import missed, report  # noqa: E402
from test_images import registry  # noqa: E402
from test_node import Machine  # noqa: E402
from test_node_serve import ATTESTED, Service, rss  # noqa: E402
from test_standalone import Standalone  # noqa: E402
from test_standalone_attest import approve_image  # noqa: E402

ROUNDS = 31
REQUESTS = 1000
# Held, and a little above what is measured. Aimed at is 6: each fetch has a TLS context of its own, so each makes a connection
# of its own, and 64 of them are kept.
RSS_AFTER = 6.5


def timed(call):
    """Milliseconds."""
    began = time.monotonic()
    call()
    return (time.monotonic() - began) * 1000


def handshakes(machine, port, n=2):
    for _ in range(n):
        context = ssl.create_default_context(cafile=machine.to_kbs[1].partition("=")[2])
        with socket.create_connection(("127.0.0.1", port)) as s, \
                context.wrap_socket(s, server_hostname="127.0.0.1"):
            pass


def good(answer):
    assert answer[0] == 0, answer[2]


def bench_resource(alone, machine):
    whole, quote, tls = [], [], []
    for _ in range(ROUNDS):
        whole.append(timed(lambda: good(machine.get())))
        quote.append(timed(lambda: good(machine.node.run("quote"))))
        tls.append(timed(lambda: handshakes(machine, alone.kbs)))
    whole, quote, tls = map(statistics.median, (whole, quote, tls))
    print(f"get-resource {whole:.1f} ms, quote {quote:.1f} ms, two handshakes {tls:.1f} ms, medians of {ROUNDS}")
    report("get-resource / its quote and two handshakes", whole / (quote + tls), "x", 1.3)


def bench_serve(alone, machine):
    before = alone.metrics().get(ATTESTED, 0)
    with Service(machine) as service:
        report("tec-node serve: RSS at the start", rss(service) / 1024, "MiB", 6)
        conn = http.client.HTTPConnection("127.0.0.1", service.port, timeout=60)
        began = time.monotonic()
        for _ in range(REQUESTS):
            conn.request("GET", f"/cdh/resource/{machine.path}")
            answer = conn.getresponse()
            assert answer.status == 200 and answer.read()
        print(f"{REQUESTS} requests for a resource in {time.monotonic() - began:.2f} s")
        conn.close()
        report("tec-node serve: attestations for them", alone.metrics()[ATTESTED] - before, "", 1)
        time.sleep(10)  # it lets go of what it does not need 2 s after the last one
        report("tec-node serve: RSS after them", rss(service) / 1024, "MiB", RSS_AFTER)


def main():
    if softtpm.missing():
        sys.exit(f"next step: {softtpm.missing()}")
    with tempfile.TemporaryDirectory() as work:
        alone = Standalone(os.path.join(work, "state"), "--public-address=127.0.0.1",
                           f"--insecure-registry={registry()}", "--rate-limit=off").start()
        machine = None
        try:
            approve_image(alone, "a")
            os.mkdir(os.path.join(work, "node"))
            machine = Machine(alone, os.path.join(work, "node"))
            machine.encrypt()
            bench_resource(alone, machine)
            bench_serve(alone, machine)
        finally:
            if machine:
                machine.stop()
            alone.stop()
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
