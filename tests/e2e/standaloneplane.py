# SPDX-License-Identifier: MIT
"""tec-operator --standalone in the place of a Kubernetes control plane: the same face for tests and the
demo as controlplane.py, without etcd, Go or an audit log. Its own controllers have a namespace of their
own; tests of the API alone use the namespace default."""

import base64
import json
import os
import re
import shutil
import subprocess
import tempfile
import time

from controlplane import TOP, ControlPlane, Unavailable, wait_for
from kubeapi import KubeAPI
from proc import Proc, free_port, tail
from tecproc import operator_binary

OWN_NAMESPACE = "standalone"
CURRENT = (1, 27)


def kubectl_version(argv):
    """(major, minor) of a kubectl; None when it cannot say."""
    try:
        done = subprocess.run([*argv, "version", "--client", "-o", "json"], capture_output=True, text=True, timeout=30,
                              check=False)
        version = json.loads(done.stdout)["clientVersion"]
        return int(version["major"]), int(re.match(r"\d+", version["minor"])[0])
    except (OSError, ValueError, KeyError, TypeError, subprocess.SubprocessError):
        return None


def find_kubectl():
    """$KUBECTL; one in PATH that is current; the one that the tests have built; an older one in PATH."""
    if os.environ.get("KUBECTL"):
        return [os.environ["KUBECTL"]]
    in_path = shutil.which("kubectl")
    if in_path and (kubectl_version([in_path]) or (0, 0)) >= CURRENT:
        return [in_path]
    built = os.environ.get("TEC_TEST_KUBE", os.path.join(TOP, "tests", "kubernetes", "bin", "tec-test-kube"))
    if os.access(built, os.X_OK):
        return [built, "kubectl"]
    if in_path:
        return [in_path]
    raise Unavailable("no kubectl; next step: apt-get install kubernetes-client, or set KUBECTL")


class StandalonePlane(ControlPlane):
    # pylint: disable=super-init-not-called
    def __init__(self, directory=None, namespace=OWN_NAMESPACE, args=()):
        if not os.access(operator_binary(), os.X_OK):
            raise Unavailable(f"no {operator_binary()}; next step: make, or set TEC_OPERATOR")
        self.binaries = {"kubectl": find_kubectl()}
        self._own_dir = directory is None
        self.dir = directory or tempfile.mkdtemp(prefix="tec-standalone-")
        self.port, self.health_port, self.register_port, self.register_ak_port = (free_port() for _ in range(4))
        self.server = f"https://127.0.0.1:{self.port}"
        self.ca_file = self.path("state", "ca.crt")
        self.admin_kubeconfig = self.path("state", "kubeconfig")
        self.started_in = None
        self._api = None
        argv = [operator_binary(), f"--standalone={self.path('state')}", f"--namespace={namespace}",
                f"--listen-api=127.0.0.1:{self.port}", f"--listen-health=127.0.0.1:{self.health_port}",
                f"--listen-register=127.0.0.1:{self.register_port}",
                f"--listen-register-ak=127.0.0.1:{self.register_ak_port}",
                *(["--listen-kbs=off"] if not any(a.startswith("--listen-kbs") for a in args) else []), *args]
        env = {k: v for k, v in os.environ.items() if k != "KUBECONFIG"}
        self.apiserver = Proc("tec-operator --standalone", argv, self.path("standalone.log"), env)

    def start(self):
        begin = time.monotonic()
        try:
            self.start_apiserver()
        except BaseException:
            self.stop()
            raise
        self.started_in = time.monotonic() - begin
        return self

    def stop(self):
        self.apiserver.stop()
        if self._own_dir and not os.environ.get("TEC_KEEP"):
            shutil.rmtree(self.dir, ignore_errors=True)

    def revive(self):
        """As a ControlPlane's."""
        if self.apiserver.alive():
            return []
        told = self.apiserver.describe_end()
        self.start_apiserver()
        return [told]

    def start_apiserver(self):
        self.apiserver.start()

        def ready():
            self.apiserver.check()
            if not self._api and os.path.exists(self.admin_kubeconfig):
                self._api = KubeAPI("127.0.0.1", self.port, self.ca_file, certificate=self._administrator())
            return self._api and self._api("GET", "/readyz", timeout=5)[0] == 200

        try:
            wait_for(ready, 30, "ready tec-operator --standalone")
        except TimeoutError as e:
            raise RuntimeError(f"{e}; end of {self.apiserver.log}:\n{tail(self.apiserver.log)}") from e

    def check(self):
        self.apiserver.check()

    def _administrator(self):
        """The client certificate of the kubeconfig and its key, as files."""
        with open(self.admin_kubeconfig, encoding="utf-8") as f:
            text = f.read()
        found = []
        for member, name in (("client-certificate-data", "admin.crt"), ("client-key-data", "admin.key")):
            pem = base64.b64decode(re.search(rf"{member}: (\S+)", text)[1]).decode()
            found.append(self._write(name, pem))
        return found

    def _write_kubeconfigs(self):
        pass  # the program wrote the administrator's

    def kubectl(self, *args, input=None, check=True):
        if args[0] in ("apply", "create") and self.api("GET", "/openapi/v2")[0] == 404:
            args = (*args, "--validate=false")
        return super().kubectl(*args, input=input, check=check)

    def apply_crds(self, path):
        self.apply_dir(path)
