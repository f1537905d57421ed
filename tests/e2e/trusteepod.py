# SPDX-License-Identifier: MIT
"""A kubelet for the Pods of a KbsConfig's Deployment, which the real controllers make.

It lays the volumes out below a folder as kubelet would (keys by items, subPath, projected sources,
directories that follow their objects while the Pod lives), refuses what kubelet refuses, and starts the
project's key broker from what the container would see: its command names the TOML file, that names the
certificate, the administrator's key and the directory of resources. The image's own part is played by
tec-test-kbs: it is told over its admin API, with the test's private key, what the files say."""

import os
import shutil
import ssl
import subprocess
import tomllib

from controlplane import wait_for
from kubelet import Pods, Refused
from tecproc import operator_binary


def mount_parts(path):
    return path.rstrip("/").split("/")


class TrusteePod(Pods):
    def __init__(self, cp, ns, directory):
        super().__init__(cp, ns)
        self.root, self.pod = os.path.join(directory, "rootfs"), None
        self.seeded = {}  # folders of volumes in which init containers wrote

    def run(self, timeout=60):
        """Takes the newest Pod: its files, then Running and Ready."""
        def newest():
            rs = self.cp.get(f"/apis/apps/v1/namespaces/{self.ns}/deployments/trustee-deployment")
            hashes = {p["metadata"]["annotations"].get("trusted-execution-clusters.io/content-hash")
                      for p in self.pods()}
            want = rs["spec"]["template"]["metadata"]["annotations"]["trusted-execution-clusters.io/content-hash"]
            return want in hashes and next(
                p for p in self.pods()
                if p["metadata"]["annotations"]["trusted-execution-clusters.io/content-hash"] == want)

        self.pod = wait_for(newest, timeout, "a Pod of trustee-deployment")
        self.seeded = {}
        for init in self.pod["spec"].get("initContainers", ()):
            self._run_init(init)
        self.lay_out()
        self.tell_ready(self.pod["metadata"]["name"])
        return self

    def _run_init(self, init):
        """The operator's image: the program that was built, with the folders that stand in for mounted ones."""
        assert "command" not in init, init
        volumes = {v["name"]: v for v in self.pod["spec"]["volumes"]}
        args = list(init["args"])
        for mount in init["volumeMounts"]:
            at = os.path.join(f"{self.root}-{init['name']}", mount["name"])
            shutil.rmtree(at, ignore_errors=True)
            os.makedirs(at)
            for name, content in self.volume(volumes[mount["name"]]).items():
                self._write(os.path.join(at, name), content)
            args = [at if a == mount["mountPath"] else a for a in args]
            if not mount.get("readOnly"):
                self.seeded[mount["name"]] = at
        subprocess.run([operator_binary(), *args], check=True, capture_output=True, timeout=30)

    def lay_out(self, container="kbs"):
        """What the container sees, written anew."""
        spec = self.pod["spec"]
        volumes = {v["name"]: v for v in spec["volumes"]}
        self.container = next(c for c in spec["containers"] if c["name"] == container)
        mounts = sorted(self.container["volumeMounts"], key=lambda m: len(mount_parts(m["mountPath"])))
        shutil.rmtree(self.root, ignore_errors=True)
        for mount in mounts:
            at = self.path(mount["mountPath"].rstrip("/"))
            files = self.volume(volumes[mount["name"]])
            if "subPath" in mount:
                if mount["subPath"] not in files:
                    raise Refused(f"subPath {mount['subPath']}")
                self._write(at, files[mount["subPath"]])
                continue
            shutil.rmtree(at, ignore_errors=True)  # a mount hides what is below it
            if mount["name"] in self.seeded:
                shutil.copytree(self.seeded[mount["name"]], at)
                continue
            os.makedirs(at)
            for name, content in files.items():
                self._write(os.path.join(at, name), content)

    def _write(self, path, content):
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "wb") as f:
            f.write(content)

    def path(self, path):
        """A path in the container, outside of it."""
        return self.root + path

    def read(self, path):
        with open(self.path(path), "rb") as f:
            return f.read()

    def files(self, path):
        return {os.path.relpath(os.path.join(d, f), self.path(path))
                for d, _, names in os.walk(self.path(path)) for f in names}

    # What the program does with it

    def toml(self):
        command = self.container["command"]
        assert command[:2] == ["/usr/local/bin/kbs", "--config-file"], command
        return tomllib.loads(self.read(command[2]).decode())

    def resources(self):
        """{path: bytes} as LocalFs reads them, of either layout."""
        toml = self.toml()
        legacy = next((p["dir_path"] for p in toml.get("plugins", ()) if p.get("type") == "LocalFs"), None)
        if legacy:
            return {p: self.read(f"{legacy}/{p}") for p in self.files(legacy)}
        root = toml["storage_backend"]["backends"]["local_fs"]["dir_path"] + "/repository"
        return {p.replace("\\x2F", "/"): self.read(f"{root}/{p}") for p in self.files(root)}

    def start_broker(self, start_kbs, private, **options):
        http = self.toml()["http_server"]
        public = self.toml()["admin"].get("auth_public_key")
        if not http.get("insecure_http"):
            options |= {"tls_cert": self.path(http["certificate"]), "tls_key": self.path(http["private_key"])}
        kbs = start_kbs(private=private, public=self.path(public), **options)
        if not http.get("insecure_http"):
            kbs.url = kbs.url.replace("http:", "https:")
            kbs.tls = ssl.create_default_context(cafile=self.path(http["certificate"]))
            kbs.tls.check_hostname = False  # it is for kbs-service; the client is strict
        for path, content in self.resources().items():
            got = kbs.ask("POST", f"/kbs/v0/resource/{path}", content)
            assert got.status == 200, got
        return kbs
