# SPDX-License-Identifier: MIT
"""What kubectl does with tec-operator --standalone beyond one answer at a time: watches, samples of
k8s/, definitions that outlive a restart. test_two_servers.py compares the answers."""

import json
import os
import re
import signal
import subprocess
import time

from conftest import K8S_DIR
from test_standalone import alone, kubectl_argv  # noqa: F401, a fixture
from test_two_servers import gadget, gadgets

NS = "trusted-execution-clusters"


class Watching:
    """kubectl get -w, whose lines are waited for."""

    def __init__(self, server, *args):
        env = dict(os.environ, KUBECONFIG=f"{server.dir}/kubeconfig", KUBECACHEDIR=f"{server.dir}.cache")
        self.process = subprocess.Popen([*kubectl_argv(), "get", *args, "-w"], env=env, text=True,
                                        stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        self.seen = []

    def until(self, pattern):
        """The first line that matches, from here on."""
        for line in self.process.stdout:
            self.seen.append(line)
            if re.search(pattern, line):
                return line
        raise AssertionError(f"the watch ended without {pattern}: {self.seen}")

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.kill()
        self.process.wait()
        self.process.stdout.close()


def test_samples_apply_as_they_are(alone):  # noqa: F811
    """The cluster of --public-address is there already: the one of the samples waits, as in a cluster."""
    for name in ("machine.yaml", "approvedimage.yaml", "trustedexecutioncluster.yaml"):
        said = alone.kubectl("apply", "--validate=true", "-f", os.path.join(K8S_DIR, "samples", name))
        assert said.endswith(" created\n"), said
    assert "unchanged" in alone.kubectl("apply", "-f", os.path.join(K8S_DIR, "samples", "machine.yaml"))
    head = alone.kubectl("get", "machines").splitlines()[0].split()
    assert head == ["NAME", "READY", "AK", "REASON", "AGE"]
    assert "worker-1" in alone.kubectl("get", "machines")


def test_a_watch_shows_the_columns_once(alone):  # noqa: F811
    alone.kubectl("create", "-f", "-", input=json.dumps(gadgets()))
    alone.kubectl("create", "-f", "-", input=json.dumps(gadget(size=5)))
    with Watching(alone, "gadgets") as watch:
        assert watch.until("g1").split()[:2] == ["g1", "5"]
        alone.kubectl("patch", "gadget", "g1", "--type=merge", "-p", '{"spec":{"size":7}}')
        assert watch.until("g1").split()[:2] == ["g1", "7"]
        alone.kubectl("patch", "gadget", "g1", "--subresource=status", "--type=merge", "-p",
                      '{"status":{"phase":"Fine"}}')
        assert watch.until("Fine").split()[:3] == ["g1", "7", "Fine"]
        alone.kubectl("create", "-f", "-", input=json.dumps(gadget("g2", size=1)))
        watch.until("g2")
        assert sum("NAME" in line for line in watch.seen) == 1, watch.seen


def test_a_definition_serves_its_kind_until_it_goes(alone):  # noqa: F811
    alone.kubectl("create", "-f", "-", input=json.dumps(gadgets()))
    alone.kubectl("wait", "--for=condition=Established", "crd/gadgets.example.org", "--timeout=60s")
    alone.kubectl("create", "-f", "-", input=json.dumps(gadget(size=5)))
    alone.stop(signal.SIGKILL)
    alone.start()
    assert alone.kubectl("get", "gadgets", "-o", "jsonpath={.items[*].spec.limit}") == "10"
    code, _, said = alone.kubectl("create", "-f", "-", input=json.dumps(gadget("g2", size=11)), check=False)
    assert code == 1 and "size is above limit" in said, said
    alone.kubectl("patch", "gadget", "g1", "--type=merge", "-p", '{"metadata":{"finalizers":["example.org/held"]}}')
    alone.kubectl("delete", "crd", "gadgets.example.org", "--wait=false")
    held = "jsonpath={.metadata.deletionTimestamp}"
    for _ in range(600):
        if alone.kubectl("get", "gadget", "g1", "-o", held):
            break
        time.sleep(0.1)
    else:
        raise AssertionError("the objects of a definition that is being deleted stay")
    alone.kubectl("get", "crd", "gadgets.example.org")
    alone.kubectl("patch", "gadget", "g1", "--type=merge", "-p", '{"metadata":{"finalizers":null}}')
    alone.kubectl("wait", "--for=delete", "crd/gadgets.example.org", "--timeout=60s")
    code, _, said = alone.kubectl("get", "--raw", "/apis/example.org", check=False)  # kubectl keeps discovery
    assert code == 1 and "could not find the requested resource" in said, said


def test_completion_knows_the_kinds_and_the_objects(alone):  # noqa: F811
    said = alone.kubectl("__complete", "get", "mach")
    assert "machines" in said, said
    alone.kubectl("create", "configmap", "to-complete", "--from-literal=a=b")
    assert "to-complete" in alone.kubectl("__complete", "get", "configmap", "to-")
