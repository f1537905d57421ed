# SPDX-License-Identifier: MIT
"""One node in namespaces of its own: containerd, kubelet and kube-proxy; node.sh is its first process."""

import glob
import json
import os
import signal
import subprocess
import time

from controlplane import wait_for
from proc import Proc

HERE = os.path.dirname(os.path.abspath(__file__))
CGROUPS = "/sys/fs/cgroup"
CGROUP_PREFIX = "tec-nodes"

_KUBECONFIG = """\
apiVersion: v1
kind: Config
current-context: node
clusters:
- name: node
  cluster: {{server: "https://10.99.0.254:6443", certificate-authority: "{ca}"}}
contexts:
- name: node
  context: {{cluster: node, user: node}}
users:
- name: node
  user: {{client-certificate: "{crt}", client-key: "{key}"}}
"""

_CONTAINERD = """\
version = 3
root = "/var/lib/containerd"
state = "/run/containerd"
# Not in use here; the CRI plugin alone is.
disabled_plugins = ["io.containerd.snapshotter.v1.btrfs", "io.containerd.snapshotter.v1.zfs",
  "io.containerd.snapshotter.v1.devmapper", "io.containerd.snapshotter.v1.erofs", "io.containerd.nri.v1.nri",
  "io.containerd.tracing.processor.v1.otlp"]

[grpc]
  address = "/run/containerd/containerd.sock"

[plugins.'io.containerd.cri.v1.images']
  snapshotter = "overlayfs"
  [plugins.'io.containerd.cri.v1.images'.pinned_images]
    sandbox = "registry.k8s.io/pause:3.10.1"

[plugins.'io.containerd.cri.v1.runtime']
  # Without CAP_SYS_RESOURCE a container's oom_score_adj cannot be lower than ours.
  restrict_oom_score_adj = true
  [plugins.'io.containerd.cri.v1.runtime'.cni]
    bin_dirs = ["/usr/lib/cni"]
    conf_dir = "/etc/cni/net.d"
  [plugins.'io.containerd.cri.v1.runtime'.containerd]
    default_runtime_name = "runc"
    [plugins.'io.containerd.cri.v1.runtime'.containerd.runtimes.runc]
      runtime_type = "io.containerd.runc.v2"
      [plugins.'io.containerd.cri.v1.runtime'.containerd.runtimes.runc.options]
        BinaryName = "/usr/sbin/runc"
        SystemdCgroup = false
"""

# JSON is YAML.
_KUBELET = {
    "apiVersion": "kubelet.config.k8s.io/v1beta1", "kind": "KubeletConfiguration",
    "authentication": {"anonymous": {"enabled": False}, "webhook": {"enabled": True}},
    "authorization": {"mode": "Webhook"},
    "cgroupDriver": "cgroupfs", "failCgroupV1": False, "failSwapOn": False,
    "containerRuntimeEndpoint": "unix:///run/containerd/containerd.sock",
    "featureGates": {"ImageVolume": True},
    # The disk is the machine's, and how full it is its own affair.
    "evictionHard": {"memory.available": "1%", "nodefs.available": "1%", "imagefs.available": "1%"},
    "imageGCHighThresholdPercent": 100,
    "syncFrequency": "10s", "maxPods": 60,
    # Nothing waits for a shutdown of the machine.
    "shutdownGracePeriod": "0s",
}


def write(path, text, mode=0o600):
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, mode), "w", encoding="utf-8") as f:
        f.write(text if isinstance(text, str) else json.dumps(text, indent=1))
    return path


def kubeconfig(path, ca, crt, key):
    return write(path, _KUBECONFIG.format(ca=ca, crt=crt, key=key))


# cgroups

def _hierarchies():
    """Where a node's folder is made: one per v1 controller, or the one of v2."""
    if os.path.exists(f"{CGROUPS}/cgroup.controllers"):
        return [CGROUPS]
    return [d for d in glob.glob(f"{CGROUPS}/*") if os.path.isdir(d) and not os.path.islink(d)
            and os.path.exists(f"{d}/cgroup.procs")]


def make_cgroups(name):
    for top in _hierarchies():
        os.makedirs(f"{top}/{name}", exist_ok=True)
        # v1: a cpuset without CPUs takes no process.
        for file in ("cpuset.mems", "cpuset.cpus"):
            if os.path.exists(f"{top}/{name}/{file}") and os.path.exists(f"{top}/{file}"):
                with open(f"{top}/{file}", encoding="ascii") as f:
                    value = f.read()
                with open(f"{top}/{name}/{file}", "w", encoding="ascii") as f:
                    f.write(value)


def remove_cgroups(name):
    """True when none is left. One that still has processes stays for the next try."""
    left = False
    for top in _hierarchies():
        for folder, _, _ in os.walk(f"{top}/{name}", topdown=False):
            try:
                os.rmdir(folder)
            except OSError:
                left = True
    return not left


def sweep_cgroups():
    """Removes what runs left that were killed: their names carry the pid of who made them."""
    names = {os.path.basename(d) for top in _hierarchies() for d in glob.glob(f"{top}/{CGROUP_PREFIX}-*")}
    for name in names:
        pid = name.split("-")[2]
        if not os.path.exists(f"/proc/{pid}") and not remove_cgroups(name):
            print(f"cannot remove the cgroups {CGROUPS}/*/{name}: they still have processes", flush=True)


class Node:
    """INDEX: 1 or 2. start(), then network() by who has the other end of its cable."""

    def __init__(self, index, directory, authority):
        self.index, self.name, self.dir = index, f"n{index}", directory
        self.address = f"10.99.0.{index}"
        self.cgroup = f"{CGROUP_PREFIX}-{os.getpid()}-{self.name}"
        os.makedirs(directory, exist_ok=True)
        self._write_files(authority)
        self.proc = Proc(self.name, [
            "unshare", "--net", "--mount", "--pid", "--fork", "--uts", "--ipc", "--mount-proc", "--kill-child",
            "bash", os.path.join(HERE, "node.sh"), directory, str(index), self.cgroup], self.path("node.log"))

    def path(self, *parts):
        return os.path.join(self.dir, *parts)

    def _write_files(self, authority):
        crt, key = authority.issue(self.name, f"/O=system:nodes/CN=system:node:{self.name}",
                                   [f"IP:{self.address}", f"DNS:{self.name}"])
        kubeconfig(self.path("kubelet.kubeconfig"), authority.ca, crt, key)
        crt_p, key_p = authority.issue(f"{self.name}-proxy", "/CN=system:kube-proxy")
        kubeconfig(self.path("proxy.kubeconfig"), authority.ca, crt_p, key_p)
        write(self.path("containerd.toml"), _CONTAINERD)
        write(self.path("resolv.conf"), "", 0o644)
        config = dict(_KUBELET, address=self.address, cgroupRoot=f"/{self.cgroup}", resolvConf=self.path("resolv.conf"),
                      tlsCertFile=crt, tlsPrivateKeyFile=key)
        config["authentication"] = dict(config["authentication"], x509={"clientCAFile": authority.ca})
        write(self.path("kubelet.yaml"), config)
        write(self.path("cni.conflist"), {
            "cniVersion": "1.0.0", "name": "tec", "plugins": [
                {"type": "bridge", "bridge": "cni0", "isGateway": True, "hairpinMode": True, "ipMasq": False,
                 "ipam": {"type": "host-local", "ranges": [[{"subnet": f"10.99.{16 + self.index}.0/24"}]],
                          "routes": [{"dst": "0.0.0.0/0"}]}},
                {"type": "portmap", "capabilities": {"portMappings": True}}]})

    def start(self):
        make_cgroups(self.cgroup)
        self.proc.start()

    def inside(self, *argv):
        """The command line that runs ARGV among the node's processes."""
        return ["nsenter", "--target", str(self.init_pid()), "--net", "--mount", "--pid", "--uts", "--ipc", "--", *argv]

    def init_pid(self):
        """node.sh, by its pid out here; unshare is its parent."""
        def child():
            with open(f"/proc/{self.proc.pid}/task/{self.proc.pid}/children", encoding="ascii") as f:
                pids = f.read().split()
            return pids and int(pids[0])

        return wait_for(child, 30, f"first process of {self.name}")

    def run(self, *argv, timeout=300, check=True):
        env = dict(os.environ, PATH=f"{HERE}/bin:{os.environ['PATH']}")
        done = subprocess.run(self.inside(*argv), capture_output=True, text=True, timeout=timeout, check=False, env=env)
        if check and done.returncode:
            raise RuntimeError(f"{self.name}: {' '.join(argv)}: {done.stderr.strip() or done.stdout.strip()}")
        return done.stdout

    def ctr(self, *args, **kw):
        return self.run("ctr", "--address", "/run/containerd/containerd.sock", "--namespace", "k8s.io", *args, **kw)

    def load(self, archive):
        self.ctr("images", "import", "--local", archive)

    def kill(self):
        """As when its power is cut: nothing in it says good-bye."""
        self.proc.signal(signal.SIGKILL)
        self.proc.wait(30)

    def stop(self):
        if self.proc.popen is not None and self.proc.alive():
            self.kill()
        end = time.monotonic() + 20
        while not remove_cgroups(self.cgroup):
            if time.monotonic() > end:
                print(f"cannot remove the cgroups {CGROUPS}/*/{self.cgroup}", flush=True)
                return
            time.sleep(0.2)
