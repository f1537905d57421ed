# SPDX-License-Identifier: MIT
"""What kubectl does with tec-operator --standalone beyond one answer at a time: watches, samples of
k8s/, what is not served. test_two_servers.py compares the answers."""

import json
import os
import re
import subprocess

from conftest import K8S_DIR
from test_standalone import alone, kubectl_argv  # noqa: F401, a fixture
from test_two_servers import ID, machine

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
    alone.kubectl("create", "-f", "-", input=json.dumps(machine()))
    with Watching(alone, "machines") as watch:
        watch.until("^m1 ")
        alone.kubectl("create", "-f", "-", input=json.dumps(machine("m2", id=ID.replace("3f", "4f"))))
        watch.until("^m2 ")
        assert sum("NAME" in line for line in watch.seen) == 1, watch.seen


def test_what_is_not_served_says_so(alone):  # noqa: F811
    for path in ("/apis/apiextensions.k8s.io/v1/customresourcedefinitions", "/apis/example.org/v1/things"):
        code, _, said = alone.kubectl("get", "--raw", path, check=False)
        assert code == 1 and said.rstrip().endswith("not served by tec-operator --standalone"), said


def test_completion_knows_the_kinds_and_the_objects(alone):  # noqa: F811
    said = alone.kubectl("__complete", "get", "mach")
    assert "machines" in said, said
    alone.kubectl("create", "configmap", "to-complete", "--from-literal=a=b")
    assert "to-complete" in alone.kubectl("__complete", "get", "configmap", "to-")
