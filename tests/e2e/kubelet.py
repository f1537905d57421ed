# SPDX-License-Identifier: MIT
"""A kubelet for Trustee's Pods. Pods: what all that run one have in common. Kubelet: writes a Pod's volumes into a
folder, then says that it is ready.

The real Deployment and ReplicaSet controllers make and delete the Pods; nothing runs in them. What
the Pod that is ready now has mounted is below `served`, laid out as tec-test-kbs --from-dir reads it.
Files are those of the Pod's start and stay: other files need another Pod.
"""

import base64
import os
import shutil
import threading
import time

REPOSITORY = "/opt/trustee/storage/kbs-repository/default/"
PLACES = {"/etc/tpm/trusted_ak_keys": "tpm/trusted_ak_keys", "/opt/trustee/reference-values": ".",
          "/opt/trustee/resource-policy": ".", "/opt/trustee/storage/policies/opa": "attestation-policy"}


def place_of(mount_path):
    if mount_path.startswith(REPOSITORY):
        return "repository/default/" + mount_path[len(REPOSITORY):]
    return PLACES.get(mount_path)


class Refused(Exception):
    """kubelet does not start the Pod: what a volume is made of is not there and not optional, or a path leads out."""


class Pods:
    """Trustee's Pods in a namespace, and what a kubelet does for each of them: a volume's files, its status."""

    def __init__(self, cp, ns):
        self.cp, self.ns = cp, ns

    def pods(self):
        """Those that nobody deletes."""
        found = self.cp.get(f"/api/v1/namespaces/{self.ns}/pods?labelSelector=app%3Dkbs")["items"]
        return [p for p in found if "deletionTimestamp" not in p["metadata"]]

    def tell_ready(self, name, is_ready=True):
        status, answer = self.cp.api(
            "PATCH", f"/api/v1/namespaces/{self.ns}/pods/{name}/status",
            {"status": {"phase": "Running", "conditions": [
                {"type": "Ready", "status": "True" if is_ready else "False"}]}}, "merge")
        assert status in (200, 404), answer

    def _data(self, kind, name, optional):
        """{key: bytes}; None where there is no object."""
        status, answer = self.cp.api("GET", f"/api/v1/namespaces/{self.ns}/{kind}/{name}")
        if status == 404 and not optional:
            raise Refused(f"{kind}/{name} not found")
        if status == 404:
            return None
        assert status == 200, answer
        data = answer.get("data") or {}
        if kind == "secrets":
            return {k: base64.b64decode(v) for k, v in data.items()}
        binary = {k: base64.b64decode(v) for k, v in (answer.get("binaryData") or {}).items()}
        return {**{k: v.encode() for k, v in data.items()}, **binary}

    def _files(self, kind, name, source):
        data = self._data(kind, name, source.get("optional", False))
        if data is None or "items" not in source:
            return data or {}
        files = {}
        for item in source["items"]:
            if item["key"] not in data and not source.get("optional"):
                raise Refused(f"{kind}/{name} has no key {item['key']}")
            if item["path"].startswith("/") or ".." in item["path"].split("/"):
                raise Refused(f"path {item['path']}")
            if item["key"] in data:
                files[item["path"]] = data[item["key"]]
        return files

    def volume(self, volume):
        """{path: bytes}; {} for what is empty at first."""
        if "configMap" in volume:
            return self._files("configmaps", volume["configMap"]["name"], volume["configMap"])
        if "secret" in volume:
            return self._files("secrets", volume["secret"]["secretName"], volume["secret"])
        files = {}
        for source in volume.get("projected", {}).get("sources") or ():
            for member, kind in (("secret", "secrets"), ("configMap", "configmaps")):
                if member in source:
                    files.update(self._files(kind, source[member]["name"], source[member]))
        return files


class Kubelet(Pods):
    def __init__(self, cp, ns, directory):
        super().__init__(cp, ns)
        self.served = os.path.join(directory, "served")
        self.folders = os.path.join(directory, "pods")
        os.makedirs(self.folders)
        os.makedirs(os.path.join(self.folders, "none"))
        os.symlink(os.path.join(self.folders, "none"), self.served)
        self.started = []
        self.held = False  # no Pod is started meanwhile
        self._stop, self._error = threading.Event(), None
        self._thread = threading.Thread(target=self._run, daemon=True)

    def start(self):
        self._thread.start()
        return self

    def stop(self):
        self._stop.set()
        self._thread.join(60)
        if self._error:
            raise self._error

    def forget(self):
        """Nothing is served until a Pod is started again."""
        os.symlink(os.path.join(self.folders, "none"), self.served + ".none")
        os.rename(self.served + ".none", self.served)

    def _run(self):
        try:
            while not self._stop.is_set():
                self._look()
                time.sleep(0.1)
        except Exception as e:  # told by stop(), in the test's own thread
            self._error = e

    def _look(self):
        for pod in self.pods():
            name = pod["metadata"]["name"]
            if name in self.started or self.held:
                continue
            try:
                files = self._mounted(pod)
            except Refused:
                continue
            self._write(name, files)
            self.started.append(name)
            self.tell_ready(name)

    def _mounted(self, pod):
        volumes = {v["name"]: v for v in pod["spec"]["volumes"]}
        files = {}
        for mount in pod["spec"]["containers"][0]["volumeMounts"]:
            place = place_of(mount["mountPath"])
            for name, data in self.volume(volumes[mount["name"]]).items():
                if place:
                    files[os.path.join(place, name)] = data
        return files

    def _write(self, pod, files):
        top = os.path.join(self.folders, pod)
        for name, data in files.items():
            path = os.path.join(top, name)
            os.makedirs(os.path.dirname(path), exist_ok=True)
            with open(path, "wb") as f:
                f.write(data)
        os.makedirs(top, exist_ok=True)
        os.symlink(top, self.served + ".new")
        before = os.path.realpath(self.served)
        os.rename(self.served + ".new", self.served)
        shutil.rmtree(before, ignore_errors=True)
