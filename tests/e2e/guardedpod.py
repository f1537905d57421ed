# SPDX-License-Identifier: MIT
"""A kubelet that runs what the operator rendered for Trustee's Pod: the init container and the guard are the
program that was built, with the containers' own arguments and mounted files; in Trustee's place is a broker that is
as lax as the stock one (section 1 of the guard's contract). It needs a network of its own (ownnet.py), in
which the addresses of Services are local: the ports are those of the Pod."""

import base64
import json
import os
import re
import shutil
import signal
import ssl
import subprocess
import threading
import time

from controlplane import TOP, wait_for
from guarded import LaxTrustee, cookie_of
from kbs import ERRORS
from kubelet import Kubelet, Refused
from proc import Proc
from tecproc import SANITIZER, operator_binary, parse_metrics

NODES, ADMIN, HEALTH = 8080, 8082, 8083  # the Pod's
SERVICES = "10.0.0.0/24"                 # where kube-apiserver takes a Service's address from


def services_are_local():
    subprocess.run(["ip", "route", "add", "local", SERVICES, "dev", "lo"], check=True, capture_output=True)


def etc(name):
    with open(os.path.join(TOP, "etc", name), encoding="utf-8") as f:
        return f.read()


def b64url(text):
    return base64.urlsafe_b64decode(text + "=" * (-len(text) % 4))


class Stock(LaxTrustee):
    """Trustee as it was seen to be: one port for everybody; the quote's selection is not read; a session is kept for
    every request; what it did not expect ends a worker. Its policies are known by their text."""

    def __init__(self, directory, config, files):
        self.files = files  # {mount path: folder}
        self.sessions, self.tokens, self.lock = {}, {}, threading.Lock()
        self.resources, self.values = {}, {}
        socket = re.search(r'sockets = \["([^"]*)"\]', config)[1]
        host, port = socket.rsplit(":", 1)
        context = None
        if "certificate = " in config:
            context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
            context.load_cert_chain(self._path(re.search(r'certificate = "([^"]*)"', config)[1]),
                                    self._path(re.search(r'private_key = "([^"]*)"', config)[1]))
        self.old = "trusted_ak_keys_dir" in config
        if self.old:
            self._read_volumes()
        else:
            storage = files["/opt/trustee/storage"]
            self.policies = {"resource": self._text(storage, "kbs/resource-policy.rego"),
                             "attestation": self._text(storage, "attestation_service_policy/default_cpu.rego")}
        super().__init__(directory, (host, int(port)), context)

    # What it starts with

    def _path(self, name):
        mount = next(m for m in sorted(self.files, key=len, reverse=True) if name.startswith(m + "/"))
        return self.files[mount] + name[len(mount):]

    @staticmethod
    def _text(*path):
        with open(os.path.join(*path), encoding="utf-8") as f:
            return f.read()

    def _read_volumes(self):
        self.policies = {
            "resource": self._text(self.files["/opt/trustee/resource-policy"], "resource-policy.rego"),
            "attestation": self._text(self.files["/opt/trustee/storage/policies/opa"], "default_cpu.rego")}
        values = json.loads(self._text(self.files["/opt/trustee/reference-values"], "reference-values.json"))
        self.values = {v["name"]: v["value"] for v in values}
        keys = self.files["/etc/tpm/trusted_ak_keys"]
        self.values["trusted_aks"] = ["".join(self._text(keys, name).split("-----")[2].split())
                                      for name in os.listdir(keys)]
        top = "/opt/trustee/storage/kbs-repository/"
        for mount, folder in self.files.items():
            for name in os.listdir(folder) if mount.startswith(top) else ():
                with open(os.path.join(folder, name), "rb") as f:
                    self.resources[f"{mount[len(top):]}/{name}"] = f.read()

    # Requests

    def answer(self, method, path, headers, body):
        if path == "/healthz":
            return 200, b"", {}
        with self.lock:
            self.requests.append((method, path, dict(headers), body))
            if path == "/metrics":
                return 200, b"kbs_auth_requests_total %d\n" % len(self.sessions), {}
            if (method, path) == ("POST", "/kbs/v0/auth"):
                answer = self.begin()
                self.sessions[answer[2]["Set-Cookie"].partition("=")[2].partition(";")[0]] = None
                return answer
            if (method, path) == ("POST", "/kbs/v0/attest"):
                return self.attest(cookie_of(headers), json.loads(body))
            if method == "GET" and path.startswith("/kbs/v0/resource/"):
                return self.give(cookie_of(headers), path[len("/kbs/v0/resource/"):])
            return self.administer(method, path, headers, body)

    @staticmethod
    def refuse(name, detail="", status=401):
        return status, json.dumps({"type": ERRORS + name, "detail": detail}).encode(), {}

    # Nodes

    def attest(self, cookie, body):
        init = body.get("init-data") or {"body": ""}
        quote = body["tee-evidence"]["primary_evidence"]["tpm_quote"]
        if len(quote["pcrs"]) < 9 or "sha384" in init["body"]:
            return None  # index out of bounds; a digest of another length
        if not self.believe(body, self.nonces.get(cookie)):
            return self.refuse("AttestationError", "RCAR handshake Attest failed")
        ak = body["tee-evidence"]["primary_evidence"]["ak_public"]
        if self.old and ak not in self.values["trusted_aks"]:
            return self.refuse("AttestationError", "RCAR handshake Attest failed")
        self.sessions[cookie] = (body["runtime-data"]["tee-pubkey"], self.appraise(ak, quote["pcrs"]))
        return 200, b'{"token":"t"}', {}

    def appraise(self, ak, pcrs):
        """(is it affirming, the Machine) by the operator's policies."""
        text = self.policies["attestation"]
        if text == etc("tpm.rego"):
            entries = self.values.get("ak." + ak[44:284].replace("+", "-").replace("/", "_")) or []
            boot = self.values.get(f"boot.{pcrs[4]}.{pcrs[14]}") or {}
            machine = next((e["machine"] for e in entries if e["ak"] == ak), None)
            return bool(machine and boot.get("images")), machine
        assert text in (etc("tpm-shared.rego"), etc("tpm-v017.rego")), text
        return ak in self.values.get("trusted_aks", []) and pcrs[4] in self.values.get("tpm_pcr4", []) and \
            pcrs[14] in self.values.get("tpm_pcr14", []), None

    def give(self, cookie, path):
        if path.startswith("/"):
            return self.refuse("PluginInternalError", "illegal path")
        key, (affirming, machine) = self.sessions.get(cookie) or (None, (False, None))
        if not key:
            return self.refuse("TokenNotFound", "Attestation Token not found")
        own = self.policies["resource"] == etc("resource-shared.rego") or path == f"default/{machine}/root"
        if not affirming or not own:
            return self.refuse("PolicyDeny", "Access denied by policy")
        if path not in self.resources:
            return self.refuse("PluginInternalError", "Plugin internal error")
        jwe = {"protected": {"alg": key["alg"], "enc": "A256GCM"}}
        done = subprocess.run(["jose", "jwe", "enc", "-i", json.dumps(jwe), "-I", "-", "-k", self._jwk(key)],
                              input=self.resources[path], check=True, capture_output=True)
        return 200, done.stdout, {"Content-Type": "application/json"}

    def _jwk(self, key):
        name = os.path.join(self.dir, "node.jwk")
        with open(name, "w", encoding="ascii") as f:
            json.dump({k: v for k, v in key.items() if k != "alg"}, f)
        return name

    # The operator

    def _allowed(self, token):
        """Is it signed by the mounted key, and in time?"""
        if token not in self.tokens:
            signed, _, signature = token.rpartition(".")
            if not re.fullmatch("[A-Za-z0-9_-]{86}", signature):
                return False
            names = [os.path.join(self.dir, name) for name in ("admin.text", "admin.sig")]
            for name, data in zip(names, (signed.encode(), b64url(signature))):
                with open(name, "wb") as f:
                    f.write(data)
            done = subprocess.run(["openssl", "pkeyutl", "-verify", "-rawin", "-pubin", "-inkey",
                                   self._path("/opt/trustee/keys/public.pub"), "-in", names[0], "-sigfile", names[1]],
                                  capture_output=True, check=False)
            claims = json.loads(b64url(signed.partition(".")[2])) if done.returncode == 0 else {}
            self.tokens[token] = claims.get("exp", 0) if claims.get("role") == "admin" else 0
        return self.tokens[token] > time.time()

    def administer(self, method, path, headers, body):
        token = headers.get("Authorization", "").partition(" ")[2]
        what = path[len("/kbs/v0/"):]
        if self.old or token.count(".") != 2 or not self._allowed(token):
            return self.refuse("AdminAuthAccess", "admin access denied")
        if what.startswith("resource/"):
            name = what[len("resource/"):]
            if method == "POST":
                self.resources[name] = body
            elif self.resources.pop(name, None) is None:
                return self.refuse("PluginInternalError", "Plugin internal error")
        elif what == "reference-value":
            self.values.update(json.loads(base64.b64decode(json.loads(body)["payload"])))
        elif what.startswith("reference-value/"):
            name = what[len("reference-value/"):]
            if name not in self.values:
                return self.refuse("RvpsError", "unknown")
            return 200, json.dumps(self.values[name]).encode(), {"Content-Type": "application/json"}
        elif what in ("attestation-policy", "resource-policy"):
            self.policies[what.partition("-")[0]] = b64url(json.loads(body)["policy"]).decode()
        else:
            return self.refuse("PluginNotFound", "Plugin not found", 404)
        return 200, b"", {}


class GuardedPod(Kubelet):
    """start() runs what comes; trustee and guard are those of the Pod that is there now."""

    def __init__(self, cp, ns, directory):
        super().__init__(cp, ns, directory)
        self.directory = directory
        self.trustee = self.guard = self.running = None
        self.args = []

    def _run(self):
        super()._run()
        try:
            self._end()  # by the thread that started it: a child ends with that one
        except Exception as e:  # told by stop(), in the test's own thread
            self._error = self._error or e

    def log_text(self):
        with open(self.guard.log, encoding="utf-8", errors="replace") as f:
            return f.read()

    def metrics(self):
        from guarded import ask  # pylint: disable=import-outside-toplevel

        return parse_metrics(ask(HEALTH, "GET", "/metrics")[2].decode())

    def _look(self):
        """One Pod at a time, as maxSurge 0 has it."""
        pods = {p["metadata"]["name"]: p for p in self.pods()}
        if self.running and self.running not in pods:
            self._end()
        for name, pod in pods.items():
            if self.running or name in self.started:
                continue
            try:
                self._start(name, pod)
            except Refused:
                continue
            self.started.append(name)
            self.tell_ready(name)

    def _laid_out(self, top, pod, container):
        """{mount path: folder} of a container."""
        volumes = {v["name"]: v for v in pod["spec"]["volumes"]}
        found = {}
        for mount in container.get("volumeMounts", ()):
            folder = os.path.join(top, mount["name"])
            found[mount["mountPath"]] = folder
            if os.path.isdir(folder):
                continue
            content = self.volume(volumes[mount["name"]])
            os.makedirs(folder)
            for name, data in content.items():
                with open(os.path.join(folder, name), "wb") as f:
                    f.write(data)
        return found

    @staticmethod
    def _inside(args, files):
        """The arguments, with the folders that stand in for mounted ones."""
        for mount in sorted(files, key=len, reverse=True):
            args = [re.sub(rf"(^|=){re.escape(mount)}(?=/|$)", lambda m, to=files[mount]: m[1] + to, a) for a in args]
        return args

    def _start(self, name, pod):
        top = os.path.join(self.folders, name)
        shutil.rmtree(top, ignore_errors=True)
        containers = {c["name"]: (c, self._laid_out(top, pod, c))
                      for c in (*pod["spec"].get("initContainers", ()), *pod["spec"]["containers"])}
        for init in pod["spec"].get("initContainers", ()):
            assert "command" not in init
            subprocess.run([operator_binary(), *self._inside(init["args"], containers[init["name"]][1])], check=True,
                           capture_output=True)
        _, files = containers["kbs"]
        with open(os.path.join(files["/etc/kbs"], "kbs-config.toml"), encoding="utf-8") as f:
            self.trustee = Stock(top, f.read(), files)
        self.running = name
        if "guard" in containers:
            guard, files = containers["guard"]
            assert "command" not in guard
            self.args = guard["args"]
            env = {k: v for k, v in os.environ.items() if not k.startswith("KUBE")}
            self.guard = Proc("guard", [operator_binary(), *self._inside(self.args, files)],
                              os.path.join(self.directory, f"{name}.log"), env)
            self.guard.start()
            probe = guard["readinessProbe"]["httpGet"]
            wait_for(lambda: self._asks(probe), 30, "the guard's readiness probe")

    def _asks(self, probe):
        from guarded import ask  # pylint: disable=import-outside-toplevel

        self.guard.check()
        return ask(probe["port"], "GET", probe["path"])[0] == 200

    def _end(self):
        guard, trustee = self.guard, self.trustee
        self.trustee = self.guard = self.running = None
        try:
            if guard:
                self._end_guard(guard)
        finally:
            if trustee:
                trustee.stop()

    @staticmethod
    def _end_guard(guard):
        def log_text():
            with open(guard.log, encoding="utf-8", errors="replace") as f:
                return f.read()

        try:
            guard.signal(signal.SIGTERM)
            wait_for(lambda: "shutting down" in log_text() or not guard.alive(), 20, "word of the end")
            # A second one, which may come in its last moment: nobody is left that it has to serve for a while.
            code = guard.stop(30)
            assert code in (0, -signal.SIGTERM) and not SANITIZER.search(log_text()), f"{code}: {log_text()[-3000:]}"
        finally:
            guard.stop(1)
