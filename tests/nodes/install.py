# SPDX-License-Identifier: MIT
"""The operator on a cluster with nodes, installed by README.md's own commands from a clone of this tree."""

import json
import os
import subprocess
import sys
import threading

import images
import readme
from controlplane import wait_for
from proc import die_with
from spine import clevis_config, condition, read
from teckinds import url

HERE = os.path.dirname(os.path.abspath(__file__))
NS = "trusted-execution-clusters"
TEC = "trusted-execution-cluster"
REGISTRY = "registry.example.org"
HOSTS = {"kbs-service": "trustee.example.org", "register-server": "register.example.org",
         "attestation-key-register": "register-ak.example.org"}


def in_parallel(jobs):
    """Runs them all; the first error is raised when the last one is done."""
    errors = []

    def guarded(job):
        try:
            job()
        except Exception as e:  # pylint: disable=broad-except
            errors.append(e)

    threads = [threading.Thread(target=guarded, args=(job,)) for job in jobs]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    if errors:
        raise errors[0]


class Installation:
    def __init__(self, cluster):
        self.cluster = cluster
        self.dir = cluster.path("install")
        self.clone = os.path.join(self.dir, "clone")
        self.archives = os.path.join(self.dir, "archives")
        self.log = cluster.path("install.log")
        self.ca = None  # of the listeners, made by README.md's own lines
        self.first_port = 10000  # of clients
        os.makedirs(self.archives)
        self._make_tools()

    def _make_tools(self):
        """podman, kubectl and kustomize as a user would have them."""
        tools = os.path.join(self.dir, "tools")
        os.makedirs(tools)
        kubectl = " ".join(self.cluster.binaries["kubectl"])
        node = os.path.join(self.cluster.bin, "tec-test-node")
        for name, command in (("podman", f"{sys.executable} -B {HERE}/podman.py"), ("kubectl", kubectl),
                              ("kustomize", f"{node} kustomize")):
            path = os.path.join(tools, name)
            with open(path, "w", encoding="ascii") as f:
                f.write(f'#!/bin/sh\nexec {command} "$@"\n')
            os.chmod(path, 0o755)
        self.env = dict(
            os.environ, PATH=f"{tools}:{os.environ['PATH']}", KUBECONFIG=self.cluster.admin_kubeconfig,
            KUBECACHEDIR=self.cluster.path("kubectl-cache"), TEC_NODES_ARCHIVES=self.archives,
            # kubectl-edit and friends must not look at a user's own files.
            HOME=self.dir)

    def nodes_env(self):
        pids = " ".join(str(n.init_pid()) for n in self.cluster.nodes if n.proc.alive())
        return dict(self.env, TEC_NODES_PIDS=pids)

    # Images

    def prepare(self):
        """What does not need the nodes: the clone, base images, the image layers."""
        images.clone(self.clone)
        with images.Locked():
            images.base(self.log)
            images.pause(os.path.join(self.cluster.bin, "pause"))
            for target, name in ((["--target", "compute-pcrs"], "tec-compute-pcrs"), ([], "tec-operator")):
                images.buildah_log(self.log, *images.BUD, *target, "-t", f"{REGISTRY}/{name}:0.3.0", self.clone)
            images.trustee(f"{REGISTRY}/tec-operator:0.3.0", self.log)

    def load_image(self, name):
        """Onto every node, as if pulled."""
        archive = images.export(name, self.archives)
        in_parallel([lambda n=n: n.load(archive) for n in self.cluster.nodes if n.proc.alive()])
        return archive

    def load_others(self):
        """What README.md has nothing to do with."""
        self.load_image(images.PAUSE)
        self.load_image(images.TRUSTEE)

    # README.md

    def run(self, commands, timeout=900):
        """A block of README.md in the clone; its output."""
        done = subprocess.run(["sh", "-eu", "-c", commands.replace("REGISTRY", REGISTRY)], cwd=self.clone,
                              env=self.nodes_env(), stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                              stderr=subprocess.STDOUT, text=True, timeout=timeout, check=False)
        with open(self.log, "a", encoding="utf-8") as f:
            f.write(f"---- {commands}\n{done.stdout}\n")
        assert done.returncode == 0, f"{commands}\nended with {done.returncode}:\n{done.stdout[-4000:]}"
        return done.stdout

    def install(self):
        # As fresh as the first time: what kustomize edited is in no layer.
        images.clone(self.clone)
        for _, commands in readme.blocks("Install on a cluster"):
            self.run(commands)
        self.ca = os.path.join(self.dir, "tec-tls", "ca.crt")

    # What came of it

    def wait_condition(self, type_, reason, timeout, kind="tec", name=TEC):
        def there():
            found = condition(read(self.cluster, NS, kind, name), type_)
            return found if found.get("reason") == reason else None

        try:
            return wait_for(there, timeout, f"{kind} {name} {type_}={reason}", interval=0.3)
        except TimeoutError as e:
            raise AssertionError(f"{e}\n{self.describe()}") from e

    def describe(self):
        """For who reads a failure."""
        told = [self.cluster.kubectl("get", "all,tec,mach,ak,ai", "-n", NS, "-o", "wide", check=False),
                self.cluster.kubectl("get", "tec", "-n", NS, "-o", "yaml", check=False),
                self.cluster.kubectl("get", "events", "-n", NS, "--sort-by=.lastTimestamp", check=False)[-6000:]]
        for label in ("app=tec-operator", "app=kbs"):
            told.append(self.cluster.kubectl("logs", "-n", NS, "-l", label, "--tail=40", "--all-containers", check=False))
        return "\n".join(told)

    def service(self, name):
        """(cluster IP, port)."""
        spec = read(self.cluster, NS, "services", name)["spec"]
        return spec["clusterIP"], spec["ports"][0]["port"]

    def pods(self, label):
        return self.cluster.get(f"/api/v1/namespaces/{NS}/pods?labelSelector={label}")["items"]


    # Who comes from outside

    def client(self, **job):
        """A Popen of client.py; answer() of it is its answer."""
        started = subprocess.Popen(self.cluster.inside(sys.executable, "-B", os.path.join(HERE, "client.py")),
                                   stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                                   preexec_fn=die_with(os.getpid()))
        started.stdin.write(json.dumps({"ca": self.ca, **job}))
        started.stdin.close()
        started.stdin = None
        return started

    def ask(self, service, path, **job):
        address, port = self.service(service)
        return answer(self.client(do="ask", url=f"https://{address}:{port}{path}", name=HOSTS[service], **job))

    def register(self, pem):
        """A node's first boot: its uuid."""
        got = self.ask("register-server", "/ignition")
        assert got.get("status") == 200, got
        uuid = clevis_config(json.loads(got["body"]))["path"].split("/")[1]
        got = self.ask("attestation-key-register", "/register-ak", method="PUT",
                       body=json.dumps({"public_key": pem, "uuid": uuid}), headers={"Content-Type": "application/json"})
        assert got.get("status") == 201, got
        return uuid

    def machine(self, uuid):
        found = [m for m in self.cluster.get(url("mach", NS))["items"] if m["spec"]["id"] == uuid]
        return found[0] if found else None

    def load(self, rate=40, total=2000):
        """A client that asks both listeners, each answer known, below the limit of one source."""
        targets = []
        for service, path, expect in (("register-server", "/ignition", 200),
                                      ("attestation-key-register", "/register-ak", 405)):
            address, port = self.service(service)
            targets.append({"url": f"https://{address}:{port}{path}", "name": HOSTS[service], "expect": expect})
        return self.send(targets, rate, total)

    def send(self, targets, rate, total, timeout=10):
        self.first_port += total
        return self.client(do="load", targets=targets, rate=rate, total=total, timeout=timeout,
                           first_port=self.first_port - total)


def answer(client, timeout=600):
    """What the client said at its end."""
    try:
        out, errors = client.communicate(timeout=timeout)
    finally:
        client.kill()
    assert client.returncode == 0, errors
    return json.loads(out)
