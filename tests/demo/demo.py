#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""The main job, shown on one machine without a Kubernetes cluster (tec-operator --standalone): a node asks for its
configuration, registers the attestation key of its TPM, is approved, its disk key and identity reach a key broker, and both
are taken back when it is removed. Nothing is mocked but the node itself. The broker is the one of the tests, with the admin
API of Trustee.

Started by ./bootstrap demo. --keep leaves everything running until Ctrl-C. Key material is never printed.
"""

import argparse
import base64
import hashlib
import http.client
import json
import os
import shutil
import signal
import ssl
import subprocess
import sys
import tempfile
import time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(os.path.dirname(HERE), "e2e"))

import softtpm  # noqa: E402
from kbs import TestKbs, kbs_binary  # noqa: E402
from controlplane import Unavailable, wait_for  # noqa: E402
from proc import tail  # noqa: E402
from standaloneplane import StandalonePlane, kubectl_version  # noqa: E402
from tecproc import operator_binary  # noqa: E402
from teckinds import url  # noqa: E402

NS = "trusted-execution-clusters"
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
    def __init__(self, cp, tpm, broker):
        self.cp = cp
        self.tpm = tpm
        self.broker = broker
        self.out = Narrator()
        self.machine = None
        self.ak = None

    # Small things

    def kubectl(self, *args):
        """Runs and shows one kubectl command."""
        self.out.show(self.cp.kubectl(*args, "-n", NS), f"kubectl {' '.join(args)} -n {NS}")

    def wait(self, predicate, what, seconds=60):
        def check():
            self.cp.check()
            return predicate()

        try:
            return wait_for(check, seconds, what, interval=0.1)
        except TimeoutError as e:
            log = self.cp.apiserver.log
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

    def start(self):
        cp, out = self.cp, self.out
        out.step("tec-operator starts on this machine: a Kubernetes API, its store and the controllers, in one process")
        try:
            cp.start()
        except (RuntimeError, TimeoutError) as e:
            raise Problem(str(e), "report this with the lines above") from e
        with open(cp.apiserver.log, encoding="utf-8") as f:
            said = [line for line in f if line.startswith("tec-operator: ")]
        out.show("".join(said), f"tec-operator --standalone={cp.path('state')} ...")
        version = kubectl_version(cp.binaries["kubectl"])
        out.say(f"It answers in {cp.started_in:.1f} s. kubectl {'.'.join(map(str, version or ('?',)))} finds the kinds of the operator there:")
        out.show(cp.kubectl("api-resources", "--api-group=trusted-execution-clusters.io"),
                 "kubectl api-resources --api-group=trusted-execution-clusters.io")

    def describe_cluster(self):
        out = self.out
        out.step("An administrator describes the cluster")
        manifest = CLUSTER.format(register_ak=f"127.0.0.1:{self.cp.register_ak_port}")
        out.show(manifest, "kubectl apply -f -")
        out.show(self.cp.kubectl("apply", "-f", "-", input=manifest))
        self.kubectl("apply", "-f", "k8s/samples/approvedimage.yaml")
        self.wait(lambda: condition(self.get("tec", "demo"), "Installed")["status"] == "True",
                  "installed TrustedExecutionCluster")
        out.say("The operator has made what the key broker Trustee needs. Nothing runs Deployments here, they are only stored:")
        self.kubectl("get", "deployments,services,configmaps,secrets", "-o", "name")

    def start_broker(self):
        out = self.out
        out.step("Trustee's place is taken by the key broker of the tests, on this machine")
        secret = self.cp.get(f"/api/v1/namespaces/{NS}/secrets/trustee-auth")
        with open(self.broker.public, "wb") as f:
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
        out.say(f"GET http://127.0.0.1:{self.cp.register_port}/ignition")
        status, media, body = self.request(self.cp.register_port, "GET", "/ignition")
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
        status, _, body = self.request(self.cp.register_ak_port, "PUT", "/register-ak",
                                       json.dumps({"public_key": pem, "uuid": uuid}))
        out.say(f"PUT http://127.0.0.1:{self.cp.register_ak_port}/register-ak with public_key and uuid")
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
        self.start()
        self.describe_cluster()
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
   curl http://127.0.0.1:{self.cp.register_port}/ignition
   curl http://127.0.0.1:{self.cp.health_port}/metrics
   less {self.cp.apiserver.log}

Ctrl-C stops it and removes all of it.""", flush=True)
        while True:
            time.sleep(1)
            self.cp.check()
            self.broker.proc.check()


def main():
    parser = argparse.ArgumentParser(description="Shows tec-operator's main job on one machine.")
    parser.add_argument("--keep", action="store_true", help="leave everything running until Ctrl-C")
    args = parser.parse_args()

    def end(*_):
        raise KeyboardInterrupt

    signal.signal(signal.SIGTERM, end)
    cp = tpm = broker = directory = None
    done = False
    try:
        if not os.access(operator_binary(), os.X_OK):
            raise Problem(f"there is no {operator_binary()}", "./bootstrap demo")
        if not os.access(kbs_binary(), os.X_OK):
            raise Problem(f"there is no {kbs_binary()}", "./bootstrap demo")
        if softtpm.missing():
            raise Problem("there is no TPM in software", softtpm.missing())
        directory = tempfile.mkdtemp(prefix="tec-demo-")
        broker = TestKbs(directory, public=os.path.join(directory, "trustee-auth.pub"))
        cp = StandalonePlane(directory, NS, ["--kbs-url", broker.url])
        print(f"{BOLD}tec-operator: a node registers, is approved, can get its key, and is removed again.{PLAIN}")
        tpm = softtpm.SoftwareTPM()
        demo = Demo(cp, tpm, broker)
        demo.run()
        if args.keep:
            demo.stay()
        cp.apiserver.check()
        if cp.apiserver.stop() != 0:
            raise Problem(f"tec-operator did not end as it should\nend of {cp.apiserver.log}:\n{tail(cp.apiserver.log, 15)}",
                          "report this with the lines above")
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
        log = cp.apiserver.log if cp else None
        more = f"\nend of {log}:\n{tail(log, 15)}" if log else ""
        print(f"\ndemo: error: {type(e).__name__}: {e}{more}\ndemo: next step: report this with the lines above",
              file=sys.stderr)
    finally:
        if broker:
            broker.proc.stop()
        if tpm:
            tpm.stop()
        if cp:
            cp.stop()
        if directory and not os.environ.get("TEC_KEEP"):
            shutil.rmtree(directory, ignore_errors=True)
    if not done:
        return 1
    print(f"""
{BOLD}Done.{PLAIN} Shown: configuration fetched, Machine made, attestation key made in a TPM and registered, approved, Secrets
owned by what they serve, key and identity delivered to a key broker, and all of it taken back with the Machine.
Everything has been stopped and removed; ./bootstrap demo --keep leaves it running. What was built is in ./build: "git clean
-xfd" removes it.""")
    return 0


if __name__ == "__main__":
    sys.exit(main())
