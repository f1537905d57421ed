#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""A Kubernetes cluster with two real nodes on this machine, without a container engine and without downloading an image.

The control plane of tests/e2e, a scheduler, and two nodes, each in namespaces of its own; all of it in a network that
has no way out, but for one port on the machine's loopback that leads to the API server. Every process dies with us,
however we die, and namespaces and mounts die with their processes. Cgroups stay after a kill -9, until the next start
finds that their maker is gone.

As a program: "cluster.py up" installs the operator there as README.md says, prints how to reach it, and runs until
SIGTERM or Ctrl-C; "cluster.py down" ends it.
"""

import glob
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(os.path.dirname(HERE), "e2e"))

import nodes  # noqa: E402
from certs import Authority  # noqa: E402
from controlplane import ControlPlane, Unavailable, wait_for  # noqa: E402
from proc import Proc, free_port, tail  # noqa: E402

API = "10.99.0.254"
API_PORT = 6443
SERVICES = "10.99.2.0/24"
FOLDER = "nodes-"
TOOLS = {"runc": "runc", "buildah": "buildah", "mmdebstrap": "mmdebstrap", "iptables": "iptables", "nft": "nftables",
         "conntrack": "conntrack", "nsenter": "util-linux", "ip": "iproute2", "openssl": "openssl"}


def lacking():
    """Why there can be no such cluster on this machine, as one sentence, or None."""
    if os.geteuid() != 0:
        return "nodes need root"
    missing = sorted({package for tool, package in TOOLS.items() if not shutil.which(tool)})
    if not os.path.exists("/usr/lib/cni/bridge"):
        missing.append("containernetworking-plugins")
    if missing:
        return f"missing; next step: apt-get install {' '.join(missing)}"
    done = subprocess.run(["unshare", "--net", "--mount", "--pid", "--fork", "--uts", "--ipc", "--mount-proc", "true"],
                          capture_output=True, text=True, check=False)
    if done.returncode:
        return f"no namespaces here: {done.stderr.strip()}"
    probe = f"{nodes.CGROUP_PREFIX}-{os.getpid()}-probe"
    try:
        nodes.make_cgroups(probe)
    except OSError as e:
        return f"no cgroups can be made here: {e}"
    finally:
        nodes.remove_cgroups(probe)
    if not os.path.exists("/proc/sys/net/bridge/bridge-nf-call-iptables"):
        return "no /proc/sys/net/bridge; next step: modprobe br_netfilter"
    return None


def sweep():
    """Removes what runs left that were killed: their cgroups and folders carry the pid of who made them."""
    nodes.sweep_cgroups()
    for folder in glob.glob(os.path.join(os.environ.get("TEC_BUILDDIR") or tempfile.gettempdir(), FOLDER + "[0-9]*-*")):
        pid = os.path.basename(folder)[len(FOLDER):].split("-")[0]
        if not os.path.exists(f"/proc/{pid}"):
            shutil.rmtree(folder, ignore_errors=True)


def binaries():
    done = subprocess.run([os.path.join(HERE, "build.sh")], stdout=subprocess.PIPE, text=True, check=False)
    if done.returncode:
        raise Unavailable("tests/nodes/build.sh failed; its last line says what to do")
    return done.stdout.strip()


class Cluster(ControlPlane):
    """DIRECTORY is removed at the end, unless TEC_KEEP is set. start() brings up control plane and nodes; both are Ready then. node(1), node(2)."""

    def __init__(self, directory=None):
        self.bin = binaries()
        directory = directory or tempfile.mkdtemp(prefix=f"{FOLDER}{os.getpid()}-", dir=os.environ.get("TEC_BUILDDIR"))
        self.authority = Authority(os.path.join(directory, "pki"))
        self.net = Proc("network", ["unshare", "--net", "sleep", "infinity"], os.path.join(directory, "network.log"))
        self.net.start()  # its pid is in the others' command lines
        super().__init__(directory)
        self._own_dir = True
        self.ca_file = self.authority.ca
        self.forward = Proc("forward", [
            sys.executable, "-B", os.path.join(HERE, "forward.py"), self.port, f"/proc/{self.net.pid}/ns/net", API,
            API_PORT], self.path("forward.log"))
        self.nodes = [nodes.Node(i, self.path(f"n{i}"), self.authority) for i in (1, 2)]

    def node(self, index):
        return self.nodes[index - 1]

    def _processes(self):
        crt, key = self.authority.issue("apiserver", "/CN=kube-apiserver", [
            f"IP:{API}", "IP:10.99.2.1", "IP:127.0.0.1", "DNS:localhost", "DNS:kubernetes.default.svc"])
        kubelet_crt, kubelet_key = self.authority.issue("kubelet-client", "/O=system:masters/CN=kubelet-client")
        for name in ("controller-manager", "scheduler"):
            nodes.kubeconfig(self.path(f"{name}.kubeconfig"), self.authority.ca,
                             *self.authority.issue(name, f"/CN=system:kube-{name}"))
        etcd_url, peer = "http://127.0.0.1:2379", "http://127.0.0.1:2380"
        account_key = self.path("service-account.key")
        etcd = ["--data-dir", self.path("etcd"), "--listen-client-urls", etcd_url, "--advertise-client-urls", etcd_url,
                "--listen-peer-urls", peer, "--unsafe-no-fsync=true", "--log-level=warn"]
        apiserver = [
            f"--etcd-servers={etcd_url}", f"--secure-port={API_PORT}", f"--bind-address={API}", f"--advertise-address={API}",
            f"--tls-cert-file={crt}", f"--tls-private-key-file={key}", f"--client-ca-file={self.authority.ca}",
            f"--kubelet-client-certificate={kubelet_crt}", f"--kubelet-client-key={kubelet_key}",
            f"--kubelet-certificate-authority={self.authority.ca}", "--kubelet-preferred-address-types=InternalIP",
            f"--service-cluster-ip-range={SERVICES}", f"--service-account-key-file={account_key}",
            f"--service-account-signing-key-file={account_key}",
            "--service-account-issuer=https://kubernetes.default.svc.cluster.local",
            f"--token-auth-file={self.path('tokens.csv')}", "--authorization-mode=Node,RBAC",
            "--enable-admission-plugins=NodeRestriction,OwnerReferencesPermissionEnforcement",
            "--feature-gates=ImageVolume=true", *self._audit_args()]
        manager = [
            f"--kubeconfig={self.path('controller-manager.kubeconfig')}", "--leader-elect=false", "--secure-port=0",
            f"--service-account-private-key-file={account_key}", f"--root-ca-file={self.authority.ca}",
            "--use-service-account-credentials", "--controllers=*,-nodeipam", "--feature-gates=ImageVolume=true"]
        inside = self.inside
        self.scheduler = Proc("scheduler", inside(
            os.path.join(self.bin, "tec-test-node"), "scheduler", "--leader-elect=false", "--secure-port=0",
            f"--kubeconfig={self.path('scheduler.kubeconfig')}"), self.path("scheduler.log"))
        args = {"etcd": etcd, "apiserver": apiserver, "controller-manager": manager}
        return (Proc(n, inside(*self.binaries[n], *a), self.path(f"{n}.log")) for n, a in args.items())

    def inside(self, *argv):
        """The command line that runs ARGV in the network of the control plane, where the world outside is."""
        return ["nsenter", f"--net=/proc/{self.net.pid}/ns/net", "--", *map(str, argv)]

    # Life

    def start(self):
        begin = time.monotonic()
        try:
            self._make_network()
            self.forward.start()
            for node in self.nodes:
                node.start()
            super().start()
            self.scheduler.start()
            for node in self.nodes:
                self.connect(node)
            for node in self.nodes:
                self.wait_node(node)
        except BaseException:
            self.stop()
            raise
        self.started_in = time.monotonic() - begin
        return self

    def _ip(self, *args):
        subprocess.run(self.inside("ip", *args), check=True, capture_output=True, timeout=30)

    def _make_network(self):
        self._ip("link", "set", "lo", "up")
        self._ip("link", "add", "name", "tec0", "type", "bridge")
        self._ip("address", "add", f"{API}/24", "dev", "tec0")
        self._ip("link", "set", "tec0", "up")
        for i in (1, 2):
            self._ip("route", "add", f"10.99.{16 + i}.0/24", "via", f"10.99.0.{i}")
        self.route_services(self.nodes[0])

    def route_services(self, node):
        """Who is outside reaches cluster IPs over this node."""
        self._ip("route", "replace", SERVICES, "via", node.address)

    def connect(self, node):
        """Its cable."""
        self._ip("link", "add", "name", node.name, "type", "veth", "peer", "name", "eth0", "netns", str(node.proc.pid))
        self._ip("link", "set", node.name, "master", "tec0", "up")

    def wait_node(self, node, timeout=300):
        def ready():
            self.check()
            node.proc.check()
            found = self.get(f"/api/v1/nodes/{node.name}")
            return found and any(c["type"] == "Ready" and c["status"] == "True" for c in found["status"].get("conditions", []))

        try:
            wait_for(ready, timeout, f"Ready node {node.name}", interval=0.3)
        except TimeoutError as e:
            raise RuntimeError(f"{e}; ends of its logs:\n{self.node_logs(node)}") from e

    def node_logs(self, node, lines=25):
        return "\n".join(f"---- {n}\n{tail(node.path(n), lines)}"
                         for n in ("node.log", "containerd.log", "kubelet.log", "proxy.log"))

    def check(self):
        super().check()
        self.scheduler.check()

    def stop(self):
        for node in self.nodes:
            node.stop()
        for p in (self.scheduler, self.forward):
            p.signal(signal.SIGKILL)
            if p.popen is not None:
                p.stop()
        super().stop()
        self.net.stop()


# As a program

def _state():
    return os.path.join(os.environ.get("TEC_BUILDDIR") or tempfile.gettempdir(), "nodes.pid")


def _running():
    """The pid of "cluster.py up" in this build folder, or None."""
    try:
        with open(_state(), encoding="ascii") as f:
            pid = int(f.read())
        with open(f"/proc/{pid}/cmdline", "rb") as f:
            return pid if b"cluster.py\0up" in f.read() else None
    except (OSError, ValueError):
        return None


def up():
    from install import NS, Installation  # it needs this module

    def end(*_):
        raise KeyboardInterrupt

    signal.signal(signal.SIGTERM, end)
    if _running():
        raise Unavailable(f"one is running already, process {_running()}; next step: ./bootstrap cluster --down")
    reason = lacking()
    if reason:
        raise Unavailable(reason)
    sweep()
    with open(_state(), "w", encoding="ascii") as f:
        f.write(f"{os.getpid()}\n")
    begin = time.monotonic()

    def say(text):
        print(f"    {time.monotonic() - begin:5.0f} s  {text}", flush=True)

    cluster = Cluster()
    try:
        made = Installation(cluster)
        say("images (the first time some minutes)")
        made.prepare()
        say("control plane and nodes")
        cluster.start()
        made.load_others()
        say("the operator, by the commands of README.md")
        made.install()
        made.wait_condition("TrusteeSynced", "Synced", 300)
        kubectl = " ".join([*cluster.binaries["kubectl"], "--kubeconfig", cluster.admin_kubeconfig])
        say("ready")
        print(f"""
{cluster.kubectl("get", "nodes,pods", "-A", "-o", "wide")}
    kubectl:            {kubectl} -n {NS} get tec,mach,ak,ai
    its network:        nsenter --net=/proc/{cluster.net.pid}/ns/net
    node n1, node n2:   {" ".join(cluster.node(1).inside("bash"))}
                        {" ".join(cluster.node(2).inside("bash"))}
    CA of the listeners: {made.ca}
    logs:               {cluster.dir}
It ends with Ctrl-C here, or with ./bootstrap cluster --down.""", flush=True)
        while True:
            time.sleep(1)
            cluster.check()
    finally:
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        cluster.stop()
        os.unlink(_state())


def down():
    pid = _running()
    if not pid:
        print("no cluster is running")
        sweep()
        return
    os.kill(pid, signal.SIGTERM)
    wait_for(lambda: not _running(), 120, "end of the cluster", interval=0.2)
    print("the cluster is gone")


def main(args):
    if args not in (["up"], ["down"]):
        print(__doc__, file=sys.stderr)
        return 2
    try:
        up() if args == ["up"] else down()
        return 0
    except KeyboardInterrupt:
        return 0
    except (OSError, RuntimeError, AssertionError, subprocess.SubprocessError) as e:
        print(f"cluster.py: error: {e}", file=sys.stderr)
        return 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
