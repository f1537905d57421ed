#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""A real Kubernetes control plane on loopback: etcd, kube-apiserver, kube-controller-manager.

Binaries: $KUBEBUILDER_ASSETS as envtest lays them out, else $TEC_TEST_KUBE, else
tests/kubernetes/build.sh. There is no kubelet and no scheduler: Pods stay Pending and tests that
need more patch the status subresource. Everything a run writes is in one directory, a temporary one
that is removed at the end unless TEC_KEEP is set.

As a program: "controlplane.py up [--dir D] [--crds DIR]" prints the path of an administrator's
kubeconfig as its first line and runs until SIGTERM or Ctrl-C.
"""

import argparse
import base64
import http.client
import json
import os
import secrets
import shutil
import signal
import subprocess
import sys
import tempfile
import time

from kubeapi import AuditLog, KubeAPI, Places
from proc import Proc, free_port, tail

HERE = os.path.dirname(os.path.abspath(__file__))
TOP = os.path.dirname(os.path.dirname(HERE))

ADMIN = "tec-test-admin"  # not "system:admin": an audit line must name the tests
MANAGER = "tec-test-controller-manager"
# Programs in Go spend a third of their time on collecting garbage otherwise; memory there is enough.
os.environ.setdefault("GOGC", "400")
PATIENCE = 4  # a machine with other work takes longer to come to a state; a state that never comes is still told
_PATCHES = {
    "apply": "application/apply-patch+yaml",
    "merge": "application/merge-patch+json",
    "json": "application/json-patch+json",
}

_AUDIT_POLICY = """\
apiVersion: audit.k8s.io/v1
kind: Policy
omitStages: [RequestReceived]
rules:
- level: Metadata
"""

_KUBECONFIG = """\
apiVersion: v1
kind: Config
current-context: test
clusters:
- name: test
  cluster:
    server: {server}
    {ca}
contexts:
- name: test
  context:
    cluster: test
    user: user
    namespace: {namespace}
users:
- name: user
  user:
    {token}
"""


class Unavailable(RuntimeError):
    """The control plane cannot be had on this machine; the text says what to do about it."""


def find_binaries():
    """Command line prefixes by role."""
    assets = os.environ.get("KUBEBUILDER_ASSETS")
    if assets:
        found = {r: [os.path.join(assets, b)] for r, b in (
            ("etcd", "etcd"), ("apiserver", "kube-apiserver"),
            ("controller-manager", "kube-controller-manager"), ("kubectl", "kubectl"))}
        if not os.path.exists(found["kubectl"][0]):
            found["kubectl"] = [shutil.which("kubectl") or "kubectl"]
        for argv in found.values():
            if not shutil.which(argv[0]):
                raise Unavailable(f"KUBEBUILDER_ASSETS is set, but there is no {argv[0]}")
        return found
    binary = os.environ.get("TEC_TEST_KUBE")
    if not binary:
        build = os.path.join(TOP, "tests", "kubernetes", "build.sh")
        done = subprocess.run([build], stdout=subprocess.PIPE, text=True, check=False)
        if done.returncode:
            raise Unavailable(f"{build} failed; its last line says what to do")
        binary = done.stdout.strip()
    return {r: [binary, r] for r in ("etcd", "apiserver", "controller-manager", "kubectl")}


def wait_for(predicate, timeout, what, interval=0.05):
    """Polls until the predicate returns something true, and returns that. A test that waits for a
    state says which; nothing here sleeps for a fixed time and hopes. An API that does not answer
    (it may be restarting) counts as "not yet". TIMEOUT is what an idle machine of two cores may take
    at most; a busy one may take PATIENCE times that. A look that costs much is taken less often: what is
    looked at needs the machine too."""
    timeout *= PATIENCE
    end = time.monotonic() + timeout
    last = None
    while True:
        begin = time.monotonic()
        try:
            value = predicate()
            if value:
                return value
            last = value
        except (OSError, http.client.HTTPException) as e:
            last = e
        now = time.monotonic()
        if now > end:
            raise TimeoutError(f"after {timeout} s still no {what} (last seen: {last!r})")
        time.sleep(max(interval, min(3 * (now - begin), 1)))


def wait_holds(check, timeout):
    """Repeats a function of assertions until all of them hold; the last that failed is what is told."""
    end = time.monotonic() + timeout * PATIENCE
    while True:
        try:
            return check()
        except AssertionError:
            if time.monotonic() > end:
                raise
        time.sleep(0.2)


def json_documents(text):
    """The objects of kubectl's -o json output: documents one after the other, Lists opened."""
    decoder, at, found = json.JSONDecoder(), 0, []
    text = text.strip()
    while at < len(text):
        doc, end = decoder.raw_decode(text, at)
        found += doc["items"] if doc.get("kind") == "List" else [doc]
        at = end
        while at < len(text) and text[at].isspace():
            at += 1
    return found


class ControlPlane:
    """start() or a with statement brings it up; crds is a folder of CRDs to install before the
    controller manager starts, whose garbage collector then knows them from the beginning. address: of the
    API server, where 127.0.0.1 is somebody else's."""

    def __init__(self, directory=None, crds=None, audit=True, apiserver_args=(), address="127.0.0.1"):
        self.binaries = find_binaries()
        self._own_dir = directory is None
        self.dir = directory or tempfile.mkdtemp(prefix="tec-kube-")
        os.makedirs(self.dir, mode=0o700, exist_ok=True)
        self.crds = crds
        self.address, self.port = address, free_port()
        self.server = f"https://{address}:{self.port}"
        self.ca_file = self.path("certs", "apiserver.crt")
        self.admin_kubeconfig = self.path("admin.kubeconfig")
        self.audit = AuditLog(self.path("audit.log")) if audit else None
        self.started_in = None
        self._apiserver_args = list(apiserver_args)
        self._api = None
        self._tokens = self._make_tokens()
        self._make_service_account_key()
        self.etcd, self.apiserver, self.manager = self._processes()

    def path(self, *parts):
        return os.path.join(self.dir, *parts)

    def _write(self, name, text, mode=0o600):
        fd = os.open(self.path(name), os.O_WRONLY | os.O_CREAT | os.O_TRUNC, mode)
        with os.fdopen(fd, "w", encoding="utf-8") as f:
            f.write(text)
        return self.path(name)

    def _make_tokens(self):
        """Kept when the directory was used before, so that old kubeconfigs go on working."""
        file = self.path("tokens.csv")
        if not os.path.exists(file):
            self._write("tokens.csv", "".join(
                f'{secrets.token_hex(16)},{user},{user},"system:masters"\n'
                for user in (ADMIN, MANAGER)))
        with open(file, encoding="utf-8") as f:
            return {line.split(",")[1]: line.split(",")[0] for line in f}

    def _make_service_account_key(self):
        file = self.path("service-account.key")
        if os.path.exists(file):
            return
        if not shutil.which("openssl"):
            raise Unavailable("no openssl in PATH; next step: apt-get install openssl")
        subprocess.run(["openssl", "genpkey", "-algorithm", "RSA", "-out", file],
                       check=True, capture_output=True)

    def _processes(self):
        client, peer = (f"http://127.0.0.1:{free_port()}" for _ in range(2))
        # No fsync: what must survive here is a killed API server, not a power cut. The quota:
        # runs of the 40,000-object bench pass etcd's 2 GiB within one session.
        etcd = ["--data-dir", self.path("etcd"), "--listen-client-urls", client,
                "--advertise-client-urls", client, "--listen-peer-urls", peer,
                "--unsafe-no-fsync=true", "--log-level=warn",
                f"--quota-backend-bytes={4 << 30}"]
        key = self.path("service-account.key")
        apiserver = [
            f"--etcd-servers={client}", f"--cert-dir={self.path('certs')}",
            f"--secure-port={self.port}", f"--bind-address={self.address}",
            f"--advertise-address={self.address}", "--service-cluster-ip-range=10.0.0.0/24",
            f"--service-account-key-file={key}", f"--service-account-signing-key-file={key}",
            "--service-account-issuer=https://kubernetes.default.svc.cluster.local",
            f"--token-auth-file={self.path('tokens.csv')}", "--authorization-mode=RBAC",
            # Without the plugin our Pods need not wait for a ServiceAccount's token.
            "--disable-admission-plugins=ServiceAccount",
            "--enable-admission-plugins=OwnerReferencesPermissionEnforcement",
            # Without the gate a 1.34 server silently drops the Job's image volume.
            "--feature-gates=ImageVolume=true",
            *self._audit_args(), *self._apiserver_args]
        manager = [
            f"--kubeconfig={self.path('manager.kubeconfig')}", "--leader-elect=false",
            "--secure-port=0", f"--service-account-private-key-file={key}",
            f"--root-ca-file={self.ca_file}", "--controllers=*,-nodeipam,-nodelifecycle",
            "--feature-gates=ImageVolume=true",
            # Garbage of a bench is collected in seconds, not in minutes.
            "--kube-api-qps=500", "--kube-api-burst=1000"]
        args = {"etcd": etcd, "apiserver": apiserver, "controller-manager": manager}
        return (Proc(n, self.binaries[n] + a, self.path(f"{n}.log")) for n, a in args.items())

    def _audit_args(self):
        if not self.audit:
            return []
        policy = self._write("audit-policy.yaml", _AUDIT_POLICY)
        # Blocking: an answer a test has seen is on record. The size: never rotate.
        return [f"--audit-policy-file={policy}", f"--audit-log-path={self.audit.path}",
                "--audit-log-mode=blocking", "--audit-log-maxsize=16384"]

    # Life

    def start(self):
        begin = time.monotonic()
        try:
            self.etcd.start()
            self.start_apiserver()
            if self.crds:
                self.apply_crds(self.crds)
            self.manager.start()
        except BaseException:
            self.stop()
            raise
        self.started_in = time.monotonic() - begin
        return self

    def __enter__(self):
        return self.start()

    def __exit__(self, *_):
        self.stop()

    def stop(self):
        for p in (self.manager, self.apiserver):
            p.signal(signal.SIGKILL)  # nobody reads what a graceful end would still write
        for p in (self.manager, self.apiserver, self.etcd):
            p.stop()
        if self._own_dir and not os.environ.get("TEC_KEEP"):
            shutil.rmtree(self.dir, ignore_errors=True)

    def kill_apiserver(self):
        """kill -9; etcd, and with it all data, stays."""
        self.apiserver.kill()

    def start_apiserver(self):
        self.apiserver.start()

        def ready():
            for p in (self.etcd, self.apiserver):
                p.check()
            if not os.path.exists(self.ca_file):
                return False
            if not self._api:
                self._api = KubeAPI(self.address, self.port, self.ca_file, self._tokens[ADMIN])
                self._write_kubeconfigs()
            return self._api("GET", "/readyz", timeout=5)[0] == 200

        try:
            # 2.3 s on an idle machine; generous for a shared CI runner.
            wait_for(ready, 90, "ready kube-apiserver")
        except TimeoutError as e:
            raise RuntimeError(f"{e}; end of {self.apiserver.log}:\n"
                               f"{tail(self.apiserver.log)}") from e

    def check(self):
        """Raises when a component ended by itself."""
        for p in (self.etcd, self.apiserver, self.manager):
            p.check()

    def revive(self):
        """Starts what ended, with the data it had; returns how each of it ended."""
        ended = [p for p in (self.etcd, self.apiserver, self.manager) if not p.alive()]
        told = [p.describe_end() for p in ended]
        if self.etcd in ended:
            self.apiserver.kill()  # it may wait for ever for what it has lost
            self.etcd.start()
        if not self.apiserver.alive():
            self.start_apiserver()
        if not self.manager.alive():
            self.manager.start()
        return told

    # Access

    def _write_kubeconfigs(self):
        for user, name in ((ADMIN, "admin.kubeconfig"), (MANAGER, "manager.kubeconfig")):
            self._write(name, _KUBECONFIG.format(
                server=self.server, ca=f"certificate-authority: {self.ca_file}",
                namespace="default", token=f"token: {self._tokens[user]}"))

    def api(self, method, path, body=None, content_type=None, **kw):
        """(status, JSON) as a member of system:masters. content_type: a media type, or "apply",
        "merge" or "json" for the three kinds of PATCH."""
        return self._api(method, path, body, _PATCHES.get(content_type, content_type), **kw)

    def get(self, path):
        """The object, or None when there is none."""
        status, body = self.api("GET", path)
        if status == 404:
            return None
        if status != 200:
            raise AssertionError(f"GET {path}: {status} {body}")
        return body

    def kubectl(self, *args, input=None, check=True):
        """Standard output as text; input is given on standard input (an object as JSON)."""
        if input is not None and not isinstance(input, str):
            input = json.dumps(input)
        env = dict(os.environ, KUBECONFIG=self.admin_kubeconfig,
                   KUBECACHEDIR=self.path("kubectl-cache"))
        done = subprocess.run([*self.binaries["kubectl"], *map(str, args)], input=input, env=env,
                              capture_output=True, text=True, timeout=120, check=False)
        if check and done.returncode:
            raise RuntimeError(f"kubectl {' '.join(map(str, args))}: {done.stderr.strip()}")
        return done.stdout

    def _file_args(self, path):
        kustomized = os.path.exists(os.path.join(path, "kustomization.yaml"))
        return ("-k" if kustomized else "-f", path)

    def apply_dir(self, path):
        """A folder of manifests (or one file); a kustomization when it has one."""
        return self.kubectl("apply", "--server-side", "--force-conflicts", *self._file_args(path))

    def apply(self, objects):
        """Objects as Python dicts, or a YAML text."""
        if not isinstance(objects, list):
            self.kubectl("apply", "--server-side", "--force-conflicts", "-f", "-", input=objects)
            return
        # What kubectl sends, without its process: it takes half a second, and most tests begin with this.
        places = Places(self.api)
        for o in objects:
            status, answer = self.api(
                "PATCH", f"{places.path(o)}?fieldManager=kubectl&force=true&fieldValidation=Strict", o, "apply")
            if status not in (200, 201):
                raise RuntimeError(f"apply {o['kind']} {o['metadata']['name']}: {status} {answer}")

    def read_manifests(self, path):
        """The objects of a folder as dicts, for tests that change them before use. kubectl is
        the YAML parser: Python's standard library has none."""
        return json_documents(self.kubectl(
            "create", "--dry-run=client", "--validate=false", "-o", "json",
            *self._file_args(path)))

    def apply_crds(self, path):
        """Installs them and waits until their objects can be made."""
        self.apply_dir(path)
        crds = [o for o in self.read_manifests(path) if o["kind"] == "CustomResourceDefinition"]
        for crd in crds:
            spec = crd["spec"]
            version = next(v["name"] for v in spec["versions"] if v["served"])
            url = f"/apis/{spec['group']}/{version}/{spec['names']['plural']}"
            wait_for(lambda url=url: self.api("GET", url)[0] == 200, 30, f"answer of {url}")
        self._wait_owner_mapping(crds)

    def _wait_owner_mapping(self, crds):
        """OwnerReferencesPermissionEnforcement looks new kinds up in a discovery cache that is
        refreshed every 30 s, and until then refuses owner references to them. Administrators are
        exempt, so a user with few rights asks."""
        group = "tec-test-owner-probe"
        rules = [{"apiGroups": [""], "resources": ["configmaps"], "verbs": ["create"]}]
        rules += [{"apiGroups": [c["spec"]["group"]], "verbs": ["update"],
                   "resources": [f"{c['spec']['names']['plural']}/finalizers"]} for c in crds]
        rbac = {"apiVersion": "rbac.authorization.k8s.io/v1", "metadata": {"name": group}}
        self.apply([
            dict(rbac, kind="ClusterRole", rules=rules),
            dict(rbac, kind="ClusterRoleBinding",
                 roleRef={"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole",
                          "name": group},
                 subjects=[{"apiGroup": "rbac.authorization.k8s.io", "kind": "Group",
                            "name": group}])])
        owners = [{"apiVersion": f"{c['spec']['group']}/{c['spec']['versions'][0]['name']}",
                   "kind": c["spec"]["names"]["kind"], "name": "probe", "uid": "probe",
                   "controller": False, "blockOwnerDeletion": True} for c in crds]
        probe = {"metadata": {"name": group, "ownerReferences": owners}}

        def accepted():
            status, _ = self.api(
                "POST", "/api/v1/namespaces/default/configmaps?dryRun=All", probe,
                headers={"Impersonate-User": group, "Impersonate-Group": group})
            return status == 201

        wait_for(accepted, 45, "owner references to the new kinds", interval=0.2)

    def create_namespace(self, prefix="t"):
        status, made = self.api("POST", "/api/v1/namespaces",
                                {"metadata": {"generateName": f"{prefix}-"}})
        assert status == 201, made
        return made["metadata"]["name"]

    def service_account_token(self, namespace, name, seconds=3600):
        """A TokenRequest token, as a Pod gets it. The server's minimum is 600 s."""
        status, answer = self.api(
            "POST", f"/api/v1/namespaces/{namespace}/serviceaccounts/{name}/token",
            {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest",
             "spec": {"expirationSeconds": seconds}})
        if status != 201:
            raise RuntimeError(f"no token for {namespace}/{name}: {status} {answer}")
        return answer["status"]["token"]

    def service_account_kubeconfig(self, namespace, name, seconds=3600, token_file=None):
        """Path of a kubeconfig with only that account's rights. With token_file the token lies
        there instead of inline, for tests that rotate it."""
        token = self.service_account_token(namespace, name, seconds)
        field = f"token: {token}"
        if token_file:
            with open(token_file, "w", encoding="utf-8") as f:
                f.write(token)
            field = f"tokenFile: {token_file}"
        with open(self.ca_file, "rb") as f:
            ca = base64.b64encode(f.read()).decode()
        return self._write(f"{namespace}.{name}.kubeconfig", _KUBECONFIG.format(
            server=self.server, ca=f"certificate-authority-data: {ca}",
            namespace=namespace, token=field))

    # Observation

    def wait_for(self, predicate, timeout, what, interval=0.05):
        return wait_for(predicate, timeout, what, interval)

    def writes_by(self, who, since=0, ignore=()):
        """Audit events of WHO (prefix of user name or user agent) that are not reads."""
        return self.audit.writes_by(who, since, ignore)

    def requests_by(self, who, since=0):
        return self.audit.events(who, since)


def _up(args):
    def end(*_):
        raise KeyboardInterrupt

    signal.signal(signal.SIGTERM, end)
    try:
        cp = ControlPlane(args.dir, crds=args.crds, audit=args.audit)
        with cp:
            print(cp.admin_kubeconfig, flush=True)
            print(f"ready in {cp.started_in:.1f} s, logs in {cp.dir}; ends with Ctrl-C or SIGTERM",
                  file=sys.stderr)
            while True:
                time.sleep(1)
                cp.check()
    except KeyboardInterrupt:
        return 0
    except (OSError, RuntimeError, subprocess.SubprocessError) as e:
        print(f"controlplane.py: error: {e}", file=sys.stderr)
        return 1


def main():
    parser = argparse.ArgumentParser(description="A Kubernetes control plane on loopback.")
    up = parser.add_subparsers(required=True, metavar="up").add_parser(
        "up", help="start one and run until SIGTERM")
    up.add_argument("--dir", help="keep its data there (default: a temporary directory)")
    up.add_argument("--crds", help="install the CRDs of this folder")
    up.add_argument("--audit", action="store_true", help="write audit.log there")
    return _up(parser.parse_args())


if __name__ == "__main__":
    sys.exit(main())
