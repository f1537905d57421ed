#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""The main job, shown on one machine without a Kubernetes cluster (tec-operator --standalone): an image is approved, two nodes
encrypt their disks with keys that only their TPMs get, boot again and open them; then five that get nothing, each with the
reason in words; then a second operator takes over, and a disk opens at either when the other one is off. The TPMs are
swtpm's, and what firmware and boot loader would have measured is extended into them by hand.

Started by ./bootstrap demo. --keep leaves everything running until Ctrl-C. Key material is never printed.
"""

import argparse
import base64
import json
import os
import shutil
import signal
import ssl
import subprocess
import sys
import tempfile
import time
import urllib.parse
import urllib.request

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [HERE, os.path.join(os.path.dirname(HERE), "e2e")]

import debfiles  # noqa: E402
import node as nodes  # noqa: E402
import softtpm  # noqa: E402
import tecnode  # noqa: E402
from controlplane import Unavailable, wait_for  # noqa: E402
from proc import free_port, tail  # noqa: E402
from standaloneplane import StandalonePlane, kubectl_version  # noqa: E402
from tecproc import operator_binary  # noqa: E402
from teckinds import url  # noqa: E402

NS = "trusted-execution-clusters"
BUILD = os.path.dirname(operator_binary())
TERMINAL = sys.stdout.isatty() and "NO_COLOR" not in os.environ
BOLD, DIM, GREEN, PLAIN = ("\x1b[1m", "\x1b[2m", "\x1b[32m", "\x1b[0m") if TERMINAL else ("", "", "", "")


class Problem(Exception):
    """What went wrong, and the one next step."""

    def __init__(self, what, next_step="report this with the lines above"):
        super().__init__(what)
        self.next_step = next_step


class Narrator:
    def __init__(self):
        self.number = 0
        self.started = self.began = time.monotonic()

    def step(self, title):
        self.number += 1
        self.began = time.monotonic()
        print(f"\n{BOLD}{self.number}. {title}{PLAIN}", flush=True)

    def took(self, what):
        now = time.monotonic()
        print(f"   {GREEN}{what}{PLAIN} {DIM}({now - self.began:.1f} s){PLAIN}", flush=True)
        self.began = now

    @staticmethod
    def say(text):
        print("\n".join(f"   {line}" for line in text.splitlines()), flush=True)

    @staticmethod
    def show(text, command=None):
        """What a program printed; a bar tells it from what the demo says."""
        if command:
            print(f"   $ {command}")
        print("\n".join(f"   | {line}".rstrip() for line in text.rstrip().splitlines()), flush=True)


def plane(directory, name):
    """A tec-operator --standalone that is not started yet."""
    home = os.path.join(directory, name)
    os.mkdir(home)
    address = f"127.0.0.1:{free_port()}"
    made = StandalonePlane(home, NS, [f"--public-address={address}", f"--listen-kbs={address}"])
    made.kbs = address
    return made


class Demo:
    """cp: the anchor, where all of it happens until the cluster's operator takes over."""

    def __init__(self, cp, cluster, directory):
        self.cp, self.cluster, self.dir = cp, cluster, directory
        self.running = []
        self.out = Narrator()
        self.a = self.b = None
        self.url = None  # of /ignition
        self.events = {}

    # Small things

    def kubectl(self, *args):
        """Runs and shows one kubectl command."""
        words = " ".join(f"'{a}'" if "{" in a else a for a in args)
        self.out.show(self.cp.kubectl(*args, "-n", NS), f"kubectl {words} -n {NS}")

    @staticmethod
    def run_tecctl(*args):
        done = subprocess.run([os.path.join(BUILD, "tecctl"), *args], capture_output=True, text=True, timeout=120,
                              check=False)
        if done.returncode:
            raise Problem(f"tecctl {' '.join(args)}: {done.stdout}{done.stderr}")
        return done.stdout

    def tecctl(self, *args):
        self.out.show(self.run_tecctl("--kubeconfig", self.cp.admin_kubeconfig, *args), f"tecctl {' '.join(args)}")

    def hand_over(self, command):
        """What `tecctl follow` or `tecctl promote` prints, from the anchor to the cluster."""
        ends = [f"--from={self.cp.admin_kubeconfig}", f"--to={self.cluster.admin_kubeconfig}"]
        self.out.show(self.run_tecctl(command, *ends), f"tecctl {command} {' '.join(ends)}")

    def wait(self, predicate, what, log, seconds=60):
        def check():
            for one in self.running:
                one.check()
            return predicate()

        try:
            return wait_for(check, seconds, what, interval=0.1)
        except TimeoutError as e:
            raise Problem(f"{e}\nend of {log}:\n{tail(log, 15)}") from e

    def log_line(self, one, *parts, since=0):
        """The operator's own words about what has just happened; SINCE: a size of its log."""
        log = one.apiserver.log

        def there():
            with open(log, "rb") as f:
                f.seek(since)
                return [line for line in f.read().decode().splitlines() if all(p in line for p in parts)]
        return self.wait(there, f"line of the operator with {parts}", log)[-1]

    def power_on(self, one):
        try:
            one.start()
        except (RuntimeError, TimeoutError) as e:
            raise Problem(str(e)) from e
        self.running.append(one)

    def power_off(self, one):
        self.running.remove(one)
        one.check()
        if one.apiserver.stop() != 0:
            raise Problem(f"tec-operator did not end as it should\nend of {one.apiserver.log}:\n"
                          f"{tail(one.apiserver.log, 15)}")

    def ignition(self):
        """What a new node is given, which `tecctl ignition` prints, leads to the configuration of its own."""
        first = json.loads(self.run_tecctl("--kubeconfig", self.cp.admin_kubeconfig, "ignition"))["ignition"]
        self.url = first["config"]["merge"][0]["source"]
        ca = first["security"]["tls"]["certificateAuthorities"][0]["source"].removeprefix("data:,")
        context = ssl.create_default_context(cadata=urllib.parse.unquote(ca))
        with urllib.request.urlopen(self.url, timeout=30, context=context) as answer:
            return json.load(answer)

    # The story

    def start(self):
        cp, out = self.cp, self.out
        out.step("tec-operator starts on this machine: a Kubernetes API, its store, the controllers and a key broker in one process")
        self.power_on(cp)
        with open(cp.apiserver.log, encoding="utf-8") as f:
            said = [line for line in f if line.startswith("tec-operator: ")]
        out.show("".join(said), f"tec-operator --standalone={cp.path('state')} --public-address=...")
        version = kubectl_version(cp.binaries["kubectl"])
        out.took(f"kubectl {'.'.join(map(str, version or ('?',)))} can talk to it")
        self.power_on(self.cluster)
        out.say("A second one starts, for the cluster that the nodes will form. They are told from the start to ask both:")
        ca = os.path.join(self.dir, "cluster-ca.crt")
        secret = self.cluster.get(f"/api/v1/namespaces/{NS}/secrets/standalone-tls")
        with open(ca, "wb") as f:
            f.write(base64.b64decode(secret["data"]["ca.crt"]))
        self.kubectl("create", "secret", "generic", "cluster-ca", f"--from-file=ca.crt={ca}")
        self.kubectl("patch", "tec", "tec", "--type=merge", "-p", json.dumps(
            {"spec": {"trusteeServers": [{"address": self.cluster.kbs, "caSecret": "cluster-ca"}]}}))
        out.took("The first one, the anchor, serves the nodes until then")

    def approve(self):
        out = self.out
        out.step("An administrator approves an image: Debian's signed shim, GRUB and kernel")
        root = nodes.make_image(os.path.join(self.dir, "image"), nodes.SHIM, nodes.GRUB, nodes.KERNEL)
        other = nodes.make_image(os.path.join(self.dir, "other"), nodes.SHIM, nodes.GRUB, nodes.OTHER_KERNEL)
        self.events = {"image": nodes.measured(BUILD, root), "other": nodes.measured(BUILD, other)}
        self.tecctl("image", "approve", "--rootfs", root, "--name=debian")
        out.took("What a machine that boots it measures is computed from its files, and in force")
        self.kubectl("get", "approvedimages")

    def first_boot(self, name):
        out, node = self.out, nodes.Node(name, self.dir)
        setattr(self, name, node)
        out.step(f"Node {name} boots that image for the first time")
        node.boot(self.events["image"], again=False)
        out.say(f"{len(self.events['image'])} measurements are in its TPM. It asks for its configuration:")
        ignition = self.ignition()
        node.take(ignition)
        if len(node.pin["servers"]) != 2:
            raise Problem(f"node {name} was told of {len(node.pin['servers'])} servers, not of 2")
        if name == "a":
            luks = ignition["storage"]["luks"][0]
            luks["clevis"]["custom"]["config"] = f"... \"path\": \"{node.pin['path']}\" ..."
            out.show(json.dumps(luks, indent=1), f"curl --cacert CA {self.url}  # address and CA: tecctl ignition")
            out.say("Its disk is to be encrypted, with a key that the clevis pin `trustee` gets.")
        node.format()
        out.took(f"Attestation key made and registered, Machine {node.machine} approved, disk key delivered, LUKS2 volume made")

    def next_boot(self, node):
        self.out.step(f"Node {node.name} boots again: its disk opens by itself")
        node.boot(self.events["image"])
        node.open()
        node.seal()
        self.out.took("clevis attested, got the key and opened the volume; the initial RAM disk sealed the boot")

    def look(self):
        self.out.step("What the administrator sees")
        self.kubectl("get", "machines,attestationkeys")
        self.tecctl("status")

    # Who gets nothing

    def refused(self, node, path=None, words="the server refused"):
        status, said = node.ask(path)
        if status != 1 or words not in said:
            raise Problem(f"tec-node on node {node.name} ended with {status}, not refused: {said}")
        self.out.show(said, "tec-node get-resource ...")

    def reason(self, *parts):
        line = self.log_line(self.cp, 'msg="node refused"', *parts)
        self.out.say("The operator says why:")
        self.out.show(line.split(' text="')[1].rstrip('"\n').replace(". ", ".\n"))

    def sealed(self):
        self.out.step("Refused: node a, which has booted and runs, asks for its own disk key again")
        self.refused(self.a)
        self.reason("reason=resource", self.a.machine)
        self.out.took("Its key is released once per boot, before the root file system is entered")

    def another_kernel(self):
        out = self.out
        out.step("Refused: node a boots another program in the kernel's place, signed by Debian as well")
        self.a.boot(self.events["other"])
        self.refused(self.a)
        self.reason("reason=boot", self.a.machine)
        self.tecctl("why", self.a.machine)
        self.a.boot(self.events["image"])
        self.a.open()
        out.took("Back on the approved image its disk opens")

    def anothers_key(self):
        self.out.step("Refused: node a asks for node b's key")
        self.refused(self.a, self.b.pin["path"])
        self.reason("reason=resource", self.a.machine)
        self.out.took("A key goes to its own Machine only")

    def replayed(self):
        out = self.out
        out.step("Refused: a thief sends a quote of node a's TPM that was recorded")
        status, _, quote = self.a.attest_by_hand()
        if status != 200:
            raise Problem(f"the fresh quote was refused with {status}")
        out.say("The fresh one was taken. The same again, in a session of the thief's:")
        status, answer, _ = self.a.attest_by_hand(quote)
        if status == 200:
            raise Problem("a replayed quote was taken")
        out.show(f"HTTP {status}\n{answer.get('detail', answer)}")
        out.took("A quote is for one challenge of the server")

    def deleted(self):
        out = self.out
        out.step("Refused: node b, whose Machine was deleted")
        self.kubectl("delete", "machine", self.b.machine)
        self.b.boot(self.events["image"])
        self.refused(self.b)
        self.reason("reason=policy")
        out.took("Key and identity went with the Machine; its disk stays closed")
        self.kubectl("get", "machines,attestationkeys")

    # Another operator takes over

    def taken_over(self):
        self.out.step("The cluster runs: its operator follows the anchor, and is promoted")
        self.hand_over("follow")
        self.out.took("It has the anchor's Machines, keys and images, and its key broker serves them")
        self.hand_over("promote")
        self.out.took("It decides from here on, and the anchor follows it")

    def opens_at(self, one, other, title, said):
        """The disk of node a, with one of the two alone."""
        self.out.step(title)
        self.power_off(other)
        if one not in self.running:
            self.power_on(one)
        since = os.path.getsize(one.apiserver.log)
        self.a.boot(self.events["image"])
        self.a.open()
        self.out.show(self.log_line(one, 'msg="node attested"', self.a.machine, since=since),
                      f"grep 'node attested' {one.apiserver.log} | tail -1")
        self.out.took(said)

    def run(self):
        self.start()
        self.approve()
        self.first_boot("a")
        self.first_boot("b")
        self.next_boot(self.a)
        self.next_boot(self.b)
        self.look()
        self.sealed()
        self.another_kernel()
        self.anothers_key()
        self.replayed()
        self.deleted()
        self.taken_over()
        self.opens_at(self.cluster, self.cp, "The anchor is off, and node a boots: its disk opens at its own cluster",
                      "The anchor did not answer, so it asked the second of its servers")
        self.opens_at(self.cp, self.cluster, "The whole cluster was off, and node a boots first: its disk opens at the anchor",
                      "A cluster that was off can start again: the anchor has its keys")

    def stop(self):
        for node in (self.a, self.b):
            if node:
                node.stop()

    def stay(self):
        self.power_on(self.cluster)
        print(f"""
{BOLD}Everything keeps running.{PLAIN} In another terminal:

   export KUBECONFIG={self.cluster.admin_kubeconfig}  # of the anchor: {self.cp.admin_kubeconfig}
   alias kubectl='{' '.join(self.cp.binaries['kubectl'])}'
   kubectl get tec,mach,ak,ai -n {NS}
   {os.path.join(BUILD, 'tecctl')} status
   {os.path.join(BUILD, 'tecctl')} ignition
   curl http://127.0.0.1:{self.cluster.health_port}/metrics
   less {self.cluster.apiserver.log}

Ctrl-C stops it and removes all of it.""", flush=True)
        while True:
            time.sleep(1)
            for one in self.running:
                one.check()


def main():
    parser = argparse.ArgumentParser(description="Shows tec-operator's main job on one machine.")
    parser.add_argument("--keep", action="store_true", help="leave everything running until Ctrl-C")
    args = parser.parse_args()

    def end(*_):
        raise KeyboardInterrupt

    signal.signal(signal.SIGTERM, end)
    # cryptsetup is in a folder that only root has in PATH.
    os.environ["PATH"] = f"{os.environ.get('PATH', '')}:/usr/sbin:/sbin"
    demo = directory = None
    planes, done = [], False
    try:
        for name in ("tec-operator", "tec-node", "tecctl", "tec-compute-pcrs"):
            if not os.access(os.path.join(BUILD, name), os.X_OK):
                raise Problem(f"there is no {os.path.join(BUILD, name)}", "./bootstrap demo")
        missing = softtpm.missing() or tecnode.missing_tools()
        if missing:
            raise Problem("programs are missing", missing)
        directory = tempfile.mkdtemp(prefix="tec-demo-")
        planes += [plane(directory, name) for name in ("anchor", "cluster")]
        print(f"{BOLD}tec-operator: disks that open on the machines they belong to, when these booted what was approved.{PLAIN}")
        demo = Demo(*planes, directory)
        demo.run()
        if args.keep:
            demo.stay()
        for one in list(demo.running):
            demo.power_off(one)
        done = True
    except KeyboardInterrupt:
        print("\nStopped.")
        return 0 if args.keep else 130
    except Problem as e:
        print(f"\ndemo: error: {e}\ndemo: next step: {e.next_step}", file=sys.stderr)
    except (Unavailable, debfiles.Unavailable) as e:
        print(f"\ndemo: error: {e}\ndemo: next step: ./bootstrap demo", file=sys.stderr)
    except (OSError, RuntimeError, AssertionError, ValueError, KeyError, subprocess.SubprocessError) as e:
        more = "".join(f"\nend of {one.apiserver.log}:\n{tail(one.apiserver.log, 15)}" for one in planes)
        print(f"\ndemo: error: {type(e).__name__}: {e}{more}\ndemo: next step: report this with the lines above",
              file=sys.stderr)
    finally:
        if demo:
            demo.stop()
        for one in planes:
            one.stop()
        if directory and not os.environ.get("TEC_KEEP"):
            shutil.rmtree(directory, ignore_errors=True)
    if not done:
        return 1
    print(f"""
{BOLD}Done{PLAIN} after {time.monotonic() - demo.out.started:.0f} s. Shown: an image approved, two nodes that made their attestation keys and encrypted their disks, both
disks open after a reboot; refused, each in words: a running node, another kernel, another node's key, a replayed quote, a deleted Machine; and
a second operator that took over, with either of the two off.
Everything has been stopped and removed; ./bootstrap demo --keep leaves it running. What was built is in ./build: "git clean
-xfd" removes it.""")
    return 0


if __name__ == "__main__":
    sys.exit(main())
