#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""The main job, shown on a real Kubernetes API server: a node asks for its configuration, registers the attestation key of
its TPM, is approved, its disk key and identity reach a key broker, and both are taken back when it is removed. Nothing is
mocked but the node itself and the Pods: there is no kubelet, so the operator and the broker run as processes of this machine,
the operator with its own ServiceAccount's token. The broker is the one of the tests, with the admin API of Trustee.

Started by ./bootstrap demo. --keep leaves everything running until Ctrl-C. Key material is never printed.
"""

import argparse
import base64
import hashlib
import http.client
import json
import os
import signal
import ssl
import subprocess
import sys
import time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(os.path.dirname(HERE), "e2e"))

import softtpm  # noqa: E402
from kbs import TestKbs, kbs_binary  # noqa: E402
from controlplane import TOP, ControlPlane, Unavailable, find_binaries, wait_for  # noqa: E402
from proc import tail  # noqa: E402
from tecproc import Operator, operator_binary  # noqa: E402
from teckinds import url  # noqa: E402

NS = "trusted-execution-clusters"
RIGHTS = ("Namespace", "ServiceAccount", "Role", "RoleBinding")
CLUSTER = """\
apiVersion: trusted-execution-clusters.io/v1alpha1
kind: TrustedExecutionCluster
metadata:
  name: demo
  namespace: trusted-execution-clusters
spec:
  publicTrusteeAddr: trustee.example.org:8080
  publicAttestationKeyRegisterAddr: {register_ak}
"""
BOLD, PLAIN = ("\x1b[1m", "\x1b[0m") if sys.stdout.isatty() else ("", "")


class Problem(Exception):
    """What went wrong, and the one next step."""

    def __init__(self, what, next_step):
        super().__init__(what)
        self.next_step = next_step


class Narrator:
    def __init__(self):
        self.number = 0

    def step(self, title):
        self.number += 1
        print(f"\n{BOLD}{self.number}. {title}{PLAIN}", flush=True)

    @staticmethod
    def say(text):
        print("\n".join(f"   {line}" for line in text.splitlines()), flush=True)

    @staticmethod
    def show(text, command=None):
        """What a program printed; a bar tells it from what the demo says."""
        if command:
            print(f"   $ {command}")
        print("\n".join(f"   | {line}".rstrip() for line in text.rstrip().splitlines()), flush=True)


def condition(obj, kind):
    for c in (obj or {}).get("status", {}).get("conditions", []):
        if c["type"] == kind:
            return c
    return {"status": "Unknown", "reason": "", "message": ""}


class Demo:
    def __init__(self, cp, tpm):
        self.cp = cp
        self.tpm = tpm
        self.out = Narrator()
        self.operator = self.broker = None
        self.machine = None
        self.ak = None

    # Small things

    def kubectl(self, *args):
        """Runs and shows one kubectl command."""
        self.out.show(self.cp.kubectl(*args, "-n", NS), f"kubectl {' '.join(args)} -n {NS}")

    def wait(self, predicate, what, seconds=60):
        def check():
            if self.operator:
                self.operator.proc.check()
            return predicate()

        try:
            return wait_for(check, seconds, what, interval=0.1)
        except TimeoutError as e:
            log = self.operator.log if self.operator else self.cp.apiserver.log
            raise Problem(f"{e}\nend of {log}:\n{tail(log, 15)}",
                          "report this with the lines above") from e

    def get(self, kind, name):
        return self.cp.get(url(kind, NS, name))

    def request(self, port, method, path, body=None):
        conn = http.client.HTTPConnection("127.0.0.1", port, timeout=30)
        try:
            headers = {"Content-Type": "application/json"} if body else {}
            conn.request(method, path, body, headers)
            answer = conn.getresponse()
            return answer.status, answer.getheader("Content-Type", ""), answer.read().decode()
        finally:
            conn.close()

    # The story

    def install(self):
        cp, out = self.cp, self.out
        out.step("A Kubernetes control plane starts on this machine (etcd, kube-apiserver, controller-manager)")
        cp.start_without_manager()
        out.say(f"Kubernetes {cp.get('/version')['gitVersion']} answers at {cp.server}.")

        out.step("The operator is installed: its kinds (crd/) and its rights (k8s/)")
        cp.install_crds()
        cp.apply([o for o in cp.read_manifests(os.path.join(TOP, "k8s")) if o["kind"] in RIGHTS])
        out.show(cp.kubectl("api-resources", "--api-group=trusted-execution-clusters.io"),
                 "kubectl api-resources --api-group=trusted-execution-clusters.io")
        out.say("On a real cluster this is: kubectl apply -k k8s/")

    def start_operator(self):
        out = self.out
        kubeconfig = self.cp.service_account_kubeconfig(NS, "tec-operator")
        self.admin_key = os.path.join(self.cp.dir, "trustee-auth.pub")
        self.broker = TestKbs(self.cp.dir, public=self.admin_key)
        self.operator = Operator(kubeconfig, NS, self.cp.dir, ["--kbs-url", self.broker.url])

        out.step("An administrator describes the cluster")
        manifest = CLUSTER.format(register_ak=f"127.0.0.1:{self.operator.register_ak_port}")
        self.cp.apply(manifest)
        out.show(manifest, "kubectl apply -f -")
        self.kubectl("apply", "-f", "k8s/samples/approvedimage.yaml")

        out.step("tec-operator starts, with the token of its own ServiceAccount and no right beyond k8s/")
        try:
            self.operator.start()
        except (RuntimeError, TimeoutError) as e:
            raise Problem(str(e), "report this with the lines above") from e
        self.wait(lambda: condition(self.get("tec", "demo"), "Installed")["status"] == "True",
                  "installed TrustedExecutionCluster")
        out.say("It is ready, and has made what the key broker Trustee needs:")
        self.kubectl("get", "deployments,services,configmaps,secrets", "-o", "name")

    def start_broker(self):
        out = self.out
        out.step("Trustee's place is taken by a key broker of this machine, as no Pod can run here")
        secret = self.cp.get(f"/api/v1/namespaces/{NS}/secrets/trustee-auth")
        with open(self.admin_key, "wb") as f:
            f.write(base64.b64decode(secret["data"]["public.pub"]))
        self.broker.start()
        out.say(f"It listens at {self.broker.url} and takes orders from who has the private half of Secret trustee-auth.")
        self.wait(lambda: self.synced("Synced"), "operator that has filled the broker")
        self.show_synced()

    def synced(self, reason):
        return condition(self.get("tec", "demo"), "TrusteeSynced")["reason"] == reason

    def show_synced(self):
        c = condition(self.get("tec", "demo"), "TrusteeSynced")
        self.out.show(f"TrusteeSynced={c['status']} ({c['reason']})\n{c['message']}")

    def show_broker(self):
        held = self.broker.dump()
        values = sorted(n for n, e in held["reference_values"].items() if e["value"] is not None)
        self.out.show("\n".join(["resources:", *(f"  {path}" for path in sorted(held["resources"])),
                                "reference values:", *(f"  {name}" for name in values)]))
        return held

    def fetch_ignition(self):
        out = self.out
        out.step("A new node boots and asks for its configuration")
        out.say(f"GET http://127.0.0.1:{self.operator.register_port}/ignition")
        status, media, body = self.request(self.operator.register_port, "GET", "/ignition")
        if status != 200:
            raise Problem(f"GET /ignition answered {status}: {body}", "report this answer")
        answer = json.loads(body)
        luks = answer["storage"]["luks"][0]
        pin = json.loads(luks["clevis"]["custom"]["config"])
        luks["clevis"]["custom"]["config"] = "(a JSON text, shown below)"
        out.show(f"HTTP {status}, {media}\n{json.dumps(answer['ignition'])}\n"
                 f"{json.dumps(luks, indent=1)}")
        out.say("The disk is encrypted, and its key is asked for with this configuration:")
        out.show(json.dumps(pin, indent=1))
        uuid = pin["path"].split("/")[1]
        self.machine = f"machine-{uuid}"

        out.step("The operator has made a Machine for it, and a disk key in a Secret of its own")
        self.wait(lambda: condition(self.get("mach", self.machine), "KeyReady")["status"] == "True",
                  "disk key of the Machine")
        self.kubectl("get", "machines", "-o", "wide")
        return uuid

    def register_key(self, uuid):
        out = self.out
        out.step("The node makes an attestation key in its TPM (here: swtpm, a TPM in software)")
        pem = self.tpm.make_ak()
        der = ssl.PEM_cert_to_DER_cert(
            pem.replace("PUBLIC KEY", "CERTIFICATE"))  # only the base64 in between
        self.ak = "ak-" + hashlib.sha256(der).hexdigest()[:32]
        lines = pem.strip().splitlines()
        out.show("\n".join([lines[0], lines[1], "...", lines[-1]]), "tpm2_createak -G rsa2048 -s rsassa -g sha256 ...")

        out.step("The node registers the public half")
        status, _, body = self.request(self.operator.register_ak_port, "PUT", "/register-ak",
                                       json.dumps({"public_key": pem, "uuid": uuid}))
        out.say(f"PUT http://127.0.0.1:{self.operator.register_ak_port}/register-ak with public_key and uuid")
        out.show(f"HTTP {status}\n{body}")
        if status != 201:
            raise Problem(f"PUT /register-ak answered {status}: {body}", "report this answer")

    def approve(self):
        out = self.out
        out.step("The operator approves it: the Machine was there first and has no other key")
        self.wait(lambda: condition(self.get("ak", self.ak), "Approved")["status"] == "True",
                  "approved AttestationKey")
        self.wait(lambda: condition(self.get("mach", self.machine), "AttestationKeyBound")["status"] == "True",
                  "Machine with an attestation key")
        secret = f"/api/v1/namespaces/{NS}/secrets/{self.ak}"
        self.wait(lambda: self.cp.get(secret), "Secret of the AttestationKey")
        self.wait(lambda: condition(self.get("mach", self.machine), "Ready")["status"] == "True",
                  "Machine whose key the broker has confirmed")
        self.kubectl("get", "tec,mach,ak,ai")

        out.step("The broker has what it needs to hand the disk key to this node, and to no other")
        held = self.show_broker()
        path = f"default/{self.machine.removeprefix('machine-')}/root"
        secret = self.cp.get(f"/api/v1/namespaces/{NS}/secrets/{path.split('/')[1]}")
        if held["resources"].get(path) != secret["data"]["root"]:
            raise Problem("the broker does not hold the Machine's key", "report this")
        out.say(f"{path} is the key in the Machine's Secret, byte for byte. ak.* is the identity of the TPM, and names its Machine.")

        out.step("Each Secret belongs to the object it serves, and goes with it")
        rows = [("SECRET", "HOLDS", "OWNER")]
        for s in self.cp.get(f"/api/v1/namespaces/{NS}/secrets")["items"]:
            owner = (s["metadata"].get("ownerReferences") or [{"kind": "-", "name": ""}])[0]
            rows.append((s["metadata"]["name"], ", ".join(sorted(s.get("data", {}))),
                         f"{owner['kind']} {owner['name']}"))
        widths = [max(len(r[i]) for r in rows) for i in range(2)]
        out.show("\n".join(f"{a:<{widths[0]}}  {b:<{widths[1]}}  {c}" for a, b, c in rows))
        owner = self.get("ak", self.ak)["metadata"]["ownerReferences"][0]
        out.say(f"The AttestationKey itself belongs to {owner['kind']} {owner['name']}.")

    def describe(self):
        out = self.out
        out.step("What an administrator reads about the Machine")

        text = self.cp.kubectl("describe", "machine", self.machine, "-n", NS).partition("\nEvents:")[0]
        lines = text[text.index("\nStatus:"):].strip().splitlines()
        out.show("\n".join(line for line in lines
                           if "Observed Generation" not in line and "Last Transition Time" not in line),
                 f"kubectl describe machine {self.machine} -n {NS}")

    def delete(self):
        out = self.out
        out.step("The administrator deletes the Machine")
        self.kubectl("delete", "machine", self.machine, "--wait=false")
        path = f"default/{self.machine.removeprefix('machine-')}/root"
        self.wait(lambda: self.cp.api("GET", url("mach", NS, self.machine))[0] == 404, "Machine that is gone")
        held = self.broker.dump()
        if path in held["resources"]:
            raise Problem("the Machine went although its key is still in the broker", "report this")
        out.say("Its finalizer went after the broker had confirmed that key and identity are gone:")
        self.show_broker()
        self.kubectl("get", "mach,ak")

    def run(self):
        self.install()
        self.start_operator()
        self.start_broker()
        uuid = self.fetch_ignition()
        self.register_key(uuid)
        self.approve()
        self.describe()
        self.delete()

    def stay(self):
        print(f"""
{BOLD}Everything keeps running.{PLAIN} In another terminal:

   export KUBECONFIG={self.cp.admin_kubeconfig}
   alias kubectl='{' '.join(self.cp.binaries['kubectl'])}'
   kubectl get tec,mach,ak,ai -n {NS}
   curl http://127.0.0.1:{self.operator.register_port}/ignition
   curl http://127.0.0.1:{self.operator.health_port}/metrics
   less {self.operator.log}

Ctrl-C stops it and removes all of it.""", flush=True)
        while True:
            time.sleep(1)
            self.cp.check()
            self.operator.proc.check()
            self.broker.proc.check()


class DemoPlane(ControlPlane):
    """start() in two halves, so that each can be shown."""

    def start_without_manager(self):
        self.etcd.start()
        self.start_apiserver()

    def install_crds(self):
        self.apply_crds(os.path.join(TOP, "crd"))
        self.manager.start()


def main():
    parser = argparse.ArgumentParser(description="Shows tec-operator's main job on a real API server.")
    parser.add_argument("--keep", action="store_true", help="leave everything running until Ctrl-C")
    args = parser.parse_args()

    def end(*_):
        raise KeyboardInterrupt

    signal.signal(signal.SIGTERM, end)
    demo = cp = tpm = None
    done = False
    try:
        if not os.access(operator_binary(), os.X_OK):
            raise Problem(f"there is no {operator_binary()}", "./bootstrap demo")
        if not os.access(kbs_binary(), os.X_OK):
            raise Problem(f"there is no {kbs_binary()}", "./bootstrap demo")
        if softtpm.missing():
            raise Problem("there is no TPM in software", softtpm.missing())
        find_binaries()
        print(f"{BOLD}tec-operator: a node registers, is approved, can get its key, and is removed again.{PLAIN}")
        cp = DemoPlane(audit=False)
        tpm = softtpm.SoftwareTPM()
        demo = Demo(cp, tpm)
        demo.run()
        if args.keep:
            demo.stay()
        demo.operator.terminate()
        done = True
    except KeyboardInterrupt:
        print("\nStopped.")
        return 0 if args.keep else 130
    except Problem as e:
        print(f"\ndemo: error: {e}\ndemo: next step: {e.next_step}", file=sys.stderr)
    except Unavailable as e:
        print(f"\ndemo: error: {e}\ndemo: next step: ./bootstrap demo", file=sys.stderr)
    except (OSError, RuntimeError, AssertionError, ValueError, KeyError, subprocess.SubprocessError,
            http.client.HTTPException) as e:
        log = demo.operator.log if demo and demo.operator else None
        more = f"\nend of {log}:\n{tail(log, 15)}" if log else ""
        print(f"\ndemo: error: {type(e).__name__}: {e}{more}\ndemo: next step: report this with the lines above",
              file=sys.stderr)
    finally:
        if demo and demo.operator:
            demo.operator.proc.stop()
        if demo and demo.broker:
            demo.broker.proc.stop()
        if tpm:
            tpm.stop()
        if cp:
            cp.stop()
    if not done:
        return 1
    print(f"""
{BOLD}Done.{PLAIN} Shown: configuration fetched, Machine made, attestation key made in a TPM and registered, approved, Secrets
owned by what they serve, key and identity delivered to a key broker, and all of it taken back with the Machine.
Everything has been stopped and removed; ./bootstrap demo --keep leaves it running. What was built is in ./build and
tests/kubernetes: "git clean -xfd" removes it.""")
    return 0


if __name__ == "__main__":
    sys.exit(main())
