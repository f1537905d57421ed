#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""make bench: what tec-operator --standalone costs, all of it: its store, its API over HTTPS and its controllers.

bench_standalone.py [--machines N] [--only NAME[,NAME]]   NAME: create, requests, watches, registration
create: a Machine over HTTPS, against bare OpenSSL and SQLite that store and send the same bytes, in turns.
requests: 1,000 requests as kubectl makes them, against kube-apiserver and etcd, in turns.
watches: 1,000 that are idle, and what an event costs.
registration: N nodes join; then memory, lists, and a start over them.
Figures are CPU of the serving processes. Each line ends with the limit it is held against; exit 1 when one is missed.
"""

import argparse
import http.client
import json
import os
import re
import socket
import ssl
import statistics
import subprocess
import sys
import tempfile
import time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [HERE, os.path.join(HERE, "..", "e2e")]

import conftest  # noqa: E402
from bench import FAST, Nodes, missed, report  # noqa: E402
from controlplane import ControlPlane, wait_for  # noqa: E402
from standaloneplane import StandalonePlane  # noqa: E402
from test_standalone import Standalone  # noqa: E402
from test_standalone_clients import CONFIGMAPS, answer, anonymous_kib, connect, head, open_watches  # noqa: E402

GROUP = "/apis/trusted-execution-clusters.io/v1alpha1"
MACHINES = f"{GROUP}/namespaces/default/machines"
TABLE = "application/json;as=Table;v=v1;g=meta.k8s.io,application/json;as=Table;v=v1beta1;g=meta.k8s.io,application/json"
ROUNDS = 7
WATCHES = 1000
# Held, and a little above what is measured, and what was aimed at. Of both:
# CREATE_1: the yardstick neither reads JSON nor checks a schema nor notes who owns which field. Two fifths of a create
# are its commit (SQLite's writes and an fdatasync, as of the yardstick), a quarter is TLS and the loop. Many at once share
# a commit, and then a create is cheaper than the yardstick's.
CREATE_1, CREATE_16, CREATE_AIM = 2.3, 0.8, 1.3
AGAINST_ETCD = 1 / 5
# REGISTRATION: the aim is that of the operator beside an API server: here the 11 durable writes of a node are made by the
# same process, and those that follow from one another cannot share a commit.
REGISTRATION, REGISTRATION_AIM = 4.2, 1.0
# START_S and RSS_MIB: the store alone keeps to the aims (bench_api_inproc: 0.4 s, 11 MiB); the rest is what the controllers
# read and keep of every object, as beside an API server. Of the instructions of a start over 40,000 objects a quarter is
# the check of the database, a sixth reads the rows, nearly a half is their JSON and the caches, a tenth the controllers'
# steps.
START_S, START_AIM, RSS_MIB, RSS_AIM, FLAT = 2.8, 1, 46, 40, 1.2


def cpu_us(process):
    """Of all its threads, to the nanosecond."""
    return time.clock_gettime_ns(~process.pid << 3 | 2) / 1000  # as clock_getcpuclockid() makes it


def machine(name):
    return json.dumps({"apiVersion": "trusted-execution-clusters.io/v1alpha1", "kind": "Machine",
                       "metadata": {"name": name}, "spec": {"id": f"00000000-0000-4000-8000-{int(name[1:]):012x}"}}).encode()


def read_answer(sock):
    """(status, body) of an answer of known length, or in chunks."""
    data = b""
    while b"\r\n\r\n" not in data:
        data += sock.recv(65536)
    top, _, body = data.partition(b"\r\n\r\n")
    length = re.search(rb"(?i)content-length: *(\d+)", top)
    while len(body) < int(length[1]) if length else not body.endswith(b"0\r\n\r\n"):
        body += sock.recv(65536)
    return int(top.split()[1]), body


def at_rest(*processes, seconds=1):
    """Until they used no CPU to speak of for SECONDS."""
    end = time.monotonic() + 600
    while time.monotonic() < end:
        before = sum(map(cpu_us, processes))
        time.sleep(seconds)
        if sum(map(cpu_us, processes)) - before <= 20000 * seconds:
            return
    raise RuntimeError("a server does not come to rest")


# ---- create


class Creator:
    """Creates Machines over kept connections, a request on each at a time."""

    def __init__(self, port, context, connections):
        self.socks = []
        for _ in range(connections):
            raw = socket.create_connection(("127.0.0.1", port), timeout=60)
            self.socks.append(context.wrap_socket(raw, server_hostname="127.0.0.1"))

    def run(self, names):
        path = f"{MACHINES}?fieldManager=kubectl-create&fieldValidation=Strict"
        for i in range(0, len(names), len(self.socks)):
            for sock, name in zip(self.socks, names[i:]):
                body = machine(name)
                sock.sendall(head("POST", path, "Accept: application/json", "Content-Type: application/json",
                                  f"Content-Length: {len(body)}") + body)
            for sock, _ in zip(self.socks, names[i:]):
                status, made = read_answer(sock)
                if status != 201:
                    raise RuntimeError(f"create: {status} {made}")
        return made


def as_administrator(plane, ca_file=None):
    context = ssl.create_default_context(cafile=ca_file or plane.ca_file)
    context.load_cert_chain(plane.path("admin.crt"), plane.path("admin.key"))
    return context


def start_bare(directory, made):
    """With a certificate as the API's, whose key is sealed: DIRECTORY/bare.crt, its own CA."""
    with open(f"{directory}/answer", "wb") as f:
        f.write(made)
    subprocess.run(["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes",
                    "-days", "2", "-keyout", "bare.key", "-out", "bare.crt", "-subj", "/CN=bare",
                    "-addext", "subjectAltName=IP:127.0.0.1"], check=True, capture_output=True, cwd=directory)
    tool = os.path.join(os.environ["TEC_BUILDDIR"], "tests", "bench", "bench_store")
    return subprocess.Popen([tool, f"{directory}/bare.crt", f"{directory}/bare.key", f"{directory}/bare.db",
                             f"{directory}/answer"], stdout=subprocess.PIPE, text=True)


def bench_create(directory, n=1000):
    with StandalonePlane(f"{directory}/plane") as plane:
        context, names = as_administrator(plane), iter(range(10**6))

        def some(count):
            return [f"m{next(names)}" for _ in range(count)]

        made = Creator(plane.port, context, 1).run(some(200))
        bare = start_bare(directory, made)
        try:
            trusting = as_administrator(plane, f"{directory}/bare.crt")
            servers = {"bare": (bare, Creator(int(bare.stdout.readline()), trusting, 1)),
                       1: (plane.apiserver, Creator(plane.port, context, 1)),
                       16: (plane.apiserver, Creator(plane.port, context, 16))}
            us = {who: [] for who in servers}
            for turn in range(ROUNDS + 1):
                for who, (server, creator) in servers.items():
                    before = cpu_us(server)
                    creator.run(some(n))
                    if turn:
                        us[who].append((cpu_us(server) - before) / n)
                at_rest(plane.apiserver)  # what history it compacts is not of a create
        finally:
            bare.kill()
            bare.wait()
    for who, times in us.items():
        print(f"{f'  create of a Machine by HTTPS, {who}':58} {statistics.median(times):10.1f} us")
    for at_once, limit in {1: CREATE_1, 16: CREATE_16}.items():
        ratio = statistics.median(a / b for a, b in zip(us[at_once], us["bare"]))
        report(f"create by HTTPS / bare OpenSSL and SQLite, {at_once} at once", ratio, "x", limit, CREATE_AIM)


# ---- requests


def kubectl_requests(plane, connection, run, n=200):
    """Five for each Machine, of the form that kubectl gives them."""
    apply = f"{MACHINES}/{{}}?fieldManager=kubectl&fieldValidation=Strict&force=false"
    steps = (("POST", f"{MACHINES}?fieldManager=kubectl-create&fieldValidation=Strict", "application/json", machine),
             ("GET", f"{MACHINES}?limit=500", None, None),
             ("PATCH", f"{MACHINES}/{{}}?fieldManager=kubectl-label", "application/merge-patch+json",
              lambda name: b'{"metadata":{"labels":{"a":"b"}}}'),
             ("PATCH", apply, "application/apply-patch+yaml", machine),
             ("DELETE", f"{MACHINES}/{{}}", "application/json",
              lambda name: b'{"propagationPolicy":"Background"}'))
    for i in range(n):
        name = f"m{run * n + i}"
        for method, path, content, body in steps:
            headers = {"Accept": TABLE if method == "GET" else "application/json", "User-Agent": "kubectl/v1.34.1"}
            if content:
                headers["Content-Type"] = content
            if plane.token:
                headers["Authorization"] = f"Bearer {plane.token}"
            connection.request(method, path.format(name), body and body(name), headers)
            got = connection.getresponse()
            said = got.read()
            if got.status // 100 != 2:
                raise RuntimeError(f"{method} {path}: {got.status} {said}")


def bench_requests(directory):
    with StandalonePlane(f"{directory}/plane") as ours, ControlPlane(crds=conftest.CRD_DIR, audit=False) as theirs:
        theirs.manager.stop()
        ours.token, theirs.token = None, theirs._tokens["tec-test-admin"]  # pylint: disable=protected-access
        contexts = as_administrator(ours), ssl.create_default_context(cafile=theirs.ca_file)
        sides = [(ours, [ours.apiserver]), (theirs, [theirs.apiserver, theirs.etcd])]
        connections = [http.client.HTTPSConnection("127.0.0.1", plane.port, timeout=60, context=context)
                       for (plane, _), context in zip(sides, contexts)]
        at_rest(theirs.apiserver, theirs.etcd, seconds=2)
        idle = {}
        for plane, servers in sides:
            before = sum(map(cpu_us, servers))
            time.sleep(3)
            idle[plane] = (sum(map(cpu_us, servers)) - before) / 3
        ms = {plane: [] for plane, _ in sides}
        for turn in range(ROUNDS):
            for (plane, servers), connection in zip(sides, connections):
                before, began = sum(map(cpu_us, servers)), time.monotonic()
                kubectl_requests(plane, connection, turn)
                took = sum(map(cpu_us, servers)) - before - idle[plane] * (time.monotonic() - began)
                if turn:
                    ms[plane].append(took / 1000)
    print(f"{'  1,000 requests: kube-apiserver and etcd, less when idle':58} {statistics.median(ms[theirs]):10.1f} ms")
    print(f"{'  1,000 requests: tec-operator --standalone':58} {statistics.median(ms[ours]):10.1f} ms")
    report("1,000 requests of kubectl's form / kube-apiserver and etcd",
           statistics.median(a / b for a, b in zip(ms[ours], ms[theirs])), "x", AGAINST_ETCD)


# ---- watches


def change(plane, count):
    for i in range(count):
        status, said = plane.api("PATCH", f"{CONFIGMAPS}/a", {"data": {"n": str(i)}}, "merge")
        if status != 200:
            raise RuntimeError(f"PATCH: {status} {said}")


def changed_us(plane, clients, count=50):
    """CPU of COUNT changes until the last one has reached every watch."""
    before = cpu_us(plane.apiserver)
    change(plane, count)
    for c in clients:
        data = b""
        while f'"n":"{count - 1}"'.encode() not in data:
            data = data[-64:] + c.recv(65536)
    return cpu_us(plane.apiserver) - before


def bench_watches(directory):
    with StandalonePlane(f"{directory}/plane") as plane:
        plane.api("POST", CONFIGMAPS, {"metadata": {"name": "a"}})
        changed_us(plane, [])
        clients, tls, watching = [], 0, 0
        for block in range(WATCHES // 100 + 1):
            before = anonymous_kib(plane)
            new = [connect(plane) for _ in range(100)]
            idle = anonymous_kib(plane)
            for c in new:
                c.sendall(head("GET", f"{CONFIGMAPS}?watch=1&allowWatchBookmarks=true"))
            if not all(answer(c)[0] == 200 for c in new):
                raise RuntimeError("a watch is refused")
            if block:  # the first have what the process takes once
                clients += new
                tls += idle - before
                watching += anonymous_kib(plane) - idle
            else:
                for c in new:
                    c.close()
                wait_for(lambda: open_watches(plane) == 0, 30, "end of the first watches")
        report(f"{WATCHES} idle watches, each", watching / WATCHES, "KiB", 4)
        print(f"{'  beside its TLS connection':58} {tls / WATCHES:10.3f} KiB")
        for c in clients[100:]:
            c.close()
        wait_for(lambda: open_watches(plane) == 100, 30, "end of most watches")
        with_watches = changed_us(plane, clients[:100])
        for c in clients[:100]:
            c.close()
        wait_for(lambda: open_watches(plane) == 0, 30, "end of the watches")
        report("event of a watch by HTTPS", (with_watches - changed_us(plane, [])) / (100 * 50), "us", 50)


# ---- registration


def rss_mib(pid, what="VmRSS"):
    with open(f"/proc/{pid}/status", encoding="ascii") as f:
        return next(int(line.split()[1]) for line in f if line.startswith(what)) / 1024


def page_ms(alone, path):
    """CPU of a page, and what leads to the next."""
    before = cpu_us(alone.process)
    status, page = alone.api("GET", path)
    if status != 200:
        raise RuntimeError(f"{path}: {page}")
    return (cpu_us(alone.process) - before) / 1000, page["metadata"].get("continue"), len(page["items"])


def bench_lists(alone, ns, n):
    path, token, times, seen = f"{GROUP}/namespaces/{ns}/machines?limit=500", None, [], 0
    page_ms(alone, path)
    while token or not times:
        took, token, got = page_ms(alone, path + (f"&continue={token}" if token else ""))
        times += [took] if got == 500 else []
        seen += got
    report(f"pages of 500 among {seen} Machines: those missing", n - seen, "", 0)
    half = len(times) // 2
    print(f"{'  a page of 500 Machines by HTTPS':58} {statistics.median(times):10.3f} ms")
    report("  the last pages / the first", statistics.median(times[-half:]) / statistics.median(times[:half]), "x", FLAT)


def until_listed(alone, ns):
    """Seconds of CPU until it is ready and answers."""
    alone.start()
    if alone.api("GET", f"{GROUP}/namespaces/{ns}/machines?limit=1")[0] != 200:
        raise RuntimeError("the API does not answer")
    return cpu_us(alone.process) / 1e6


def bench_registration(directory, n):
    ns = "trusted-execution-clusters"
    alone = Standalone(f"{directory}/state", "--public-address=127.0.0.1", *FAST).start()
    try:
        limits = {"spec": {"registration": {"pendingLimit": 100000, "machineLimit": 100000}}}
        status, said = alone.api("PATCH", f"{GROUP}/namespaces/{ns}/trustedexecutionclusters/tec", limits, "merge")
        if status != 200:
            raise RuntimeError(said)
        alone.pid, have = alone.process.pid, 0
        tls = ssl.create_default_context(cafile=alone.cafile)
        for size in sorted({s for s in (100, 1000, n) if s <= n}):
            count = min(200, size)
            if size - have > count:
                Nodes(alone, size - have - count, tls=tls).run()
                have = size - count
            at_rest(alone.process, seconds=2)
            before = cpu_us(alone.process)
            Nodes(alone, size - have, tls=tls).run()
            at_rest(alone.process, seconds=2)
            report(f"registration with all that follows, at {size} Machines",
                   (cpu_us(alone.process) - before) / (size - have) / 1000, "ms", REGISTRATION, REGISTRATION_AIM)
            have = size
        report(f"RSS with {n} Machines, their keys and Secrets", rss_mib(alone.process.pid), "MiB", RSS_MIB, RSS_AIM)
        bench_lists(alone, ns, n)
        report("  RSS after it", rss_mib(alone.process.pid), "MiB", RSS_MIB, RSS_AIM)
        alone.stop()
        report("start over them: CPU until it is ready and answers", until_listed(alone, ns), "s", START_S, START_AIM)
        at_rest(alone.process, seconds=2)
        print(f"{'  CPU until it is at rest':58} {cpu_us(alone.process) / 1e6:10.3f} s")
        report("  RSS then", rss_mib(alone.process.pid), "MiB", RSS_MIB, RSS_AIM)
        print(f"{'  of it anonymous':58} {rss_mib(alone.process.pid, 'RssAnon'):10.3f} MiB")
    finally:
        alone.stop()


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--machines", type=int, default=10000)
    p.add_argument("--only", default="create,requests,watches,registration")
    args = p.parse_args()
    for name in args.only.split(","):
        with tempfile.TemporaryDirectory() as directory:
            if name == "registration":
                bench_registration(directory, args.machines)
            else:
                os.mkdir(f"{directory}/plane")
                globals()[f"bench_{name}"](directory)
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
