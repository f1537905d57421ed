# SPDX-License-Identifier: MIT
"""A kubelet for Trustee's Pods: writes a Pod's volumes into a folder, then says that it is ready.

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


class Missing(Exception):
    """A volume's source that is not there and not optional: the Pod does not start."""


class Kubelet:
    def __init__(self, cp, ns, directory):
        self.cp, self.ns = cp, ns
        self.served = os.path.join(directory, "served")
        self.pods = os.path.join(directory, "pods")
        os.makedirs(self.pods)
        os.makedirs(os.path.join(self.pods, "none"))
        os.symlink(os.path.join(self.pods, "none"), self.served)
        self.started = []
        self.held = False  # no Pod is started meanwhile
        self._stop, self._error = threading.Event(), None
        self._thread = threading.Thread(target=self._run, daemon=True)

    def start(self):
        self._thread.start()
        return self

    def stop(self):
        self._stop.set()
        self._thread.join(10)
        if self._error:
            raise self._error

    def forget(self):
        """Nothing is served until a Pod is started again."""
        os.symlink(os.path.join(self.pods, "none"), self.served + ".none")
        os.rename(self.served + ".none", self.served)

    def _run(self):
        try:
            while not self._stop.is_set():
                self._look()
                time.sleep(0.1)
        except Exception as e:  # told by stop(), in the test's own thread
            self._error = e

    def _look(self):
        pods = self.cp.get(f"/api/v1/namespaces/{self.ns}/pods?labelSelector=app%3Dkbs")["items"]
        for pod in pods:
            name = pod["metadata"]["name"]
            if "deletionTimestamp" in pod["metadata"] or name in self.started or self.held:
                continue
            try:
                files = self._files(pod)
            except Missing:
                continue
            self._write(name, files)
            self.started.append(name)
            status, answer = self.cp.api(
                "PATCH", f"/api/v1/namespaces/{self.ns}/pods/{name}/status",
                {"status": {"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]}},
                "application/merge-patch+json")
            assert status in (200, 404), answer

    def _source(self, kind, name, optional):
        status, answer = self.cp.api("GET", f"/api/v1/namespaces/{self.ns}/{kind}/{name}")
        if status == 404 and optional:
            return {}
        if status == 404:
            raise Missing(name)
        assert status == 200, answer
        data = answer.get("data", {})
        if kind == "secrets":
            return {k: base64.b64decode(v) for k, v in data.items()}
        return {k: v.encode() for k, v in data.items()}

    def _items(self, data, source):
        if "items" not in source:
            return data
        return {i["path"]: data[i["key"]] for i in source["items"] if i["key"] in data}

    def _volume(self, volume):
        """{file name: bytes} of a volume, or None for one without files."""
        if "secret" in volume:
            s = volume["secret"]
            return self._items(self._source("secrets", s["secretName"], s.get("optional")), s)
        if "configMap" in volume:
            s = volume["configMap"]
            return self._items(self._source("configmaps", s["name"], s.get("optional")), s)
        if "projected" not in volume:
            return None
        files = {}
        for source in volume["projected"].get("sources") or []:
            s = source["secret"]
            files.update(self._items(self._source("secrets", s["name"], s.get("optional")), s))
        return files

    def _files(self, pod):
        volumes = {v["name"]: v for v in pod["spec"]["volumes"]}
        files = {}
        for mount in pod["spec"]["containers"][0]["volumeMounts"]:
            content = self._volume(volumes[mount["name"]])
            place = place_of(mount["mountPath"])
            for name, data in (content or {}).items():
                if place:
                    files[os.path.join(place, name)] = data
        return files

    def _write(self, pod, files):
        top = os.path.join(self.pods, pod)
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
