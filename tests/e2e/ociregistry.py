# SPDX-License-Identifier: MIT
"""Debian's docker-registry as a child process, and pushing images to it over its API."""

import hashlib
import http.client
import json
import os
import shutil
import ssl
import subprocess

from controlplane import wait_for
from proc import Proc, free_port

USER, PASSWORD = "tec", "s3cret-pw"
# bcrypt of PASSWORD: htpasswd is not needed at test time.
HTPASSWD = "tec:$2y$05$TvsmqvBAkclra08O5CVXr./6QaabkYYcr5l2PAsHRrCzI0IIbm0uO\n"
BASIC = "Basic dGVjOnMzY3JldC1wdw=="
OCI = "application/vnd.oci.image."
DOCKER = "application/vnd.docker."


def missing():
    """What to do to get what is not there, or None."""
    for program, package in (("docker-registry", "docker-registry"), ("openssl", "openssl")):
        if not shutil.which(program):
            return f"apt-get install {package}"
    return None


def make_certificate(directory):
    """A CA and a certificate of 127.0.0.1 by it. Returns the three files' names."""
    ca, ca_key, cert, key = (os.path.join(directory, n)
                             for n in ("ca.crt", "ca.key", "tls.crt", "tls.key"))
    ext = os.path.join(directory, "ext")
    with open(ext, "w", encoding="utf-8") as f:
        f.write("subjectAltName=IP:127.0.0.1\n")

    def openssl(*args):
        subprocess.run(["openssl", *args], check=True, capture_output=True)

    ec = ("-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes")
    openssl("req", "-x509", *ec, "-keyout", ca_key, "-out", ca, "-subj", "/CN=registry ca",
            "-days", "2")
    openssl("req", *ec, "-keyout", key, "-out", cert + ".req", "-subj", "/CN=registry")
    openssl("x509", "-req", "-in", cert + ".req", "-CA", ca, "-CAkey", ca_key, "-CAcreateserial",
            "-days", "2", "-extfile", ext, "-out", cert)
    return ca, cert, key


class Registry:
    """One registry with its storage in DIRECTORY. tls: (ca, certificate, key), or plain http."""

    def __init__(self, directory, tls=None, password=False):
        os.makedirs(directory)
        self.port = free_port()
        self.host = f"127.0.0.1:{self.port}"
        self.tls = tls
        self.password = password
        config = {
            "version": "0.1",
            "storage": {"filesystem": {"rootdirectory": os.path.join(directory, "storage")}},
            "http": {"addr": self.host},
        }
        if tls:
            config["http"]["tls"] = {"certificate": tls[1], "key": tls[2]}
        if password:
            file = os.path.join(directory, "htpasswd")
            with open(file, "w", encoding="utf-8") as f:
                f.write(HTPASSWD)
            config["auth"] = {"htpasswd": {"realm": "test", "path": file}}
        file = os.path.join(directory, "config.yml")
        with open(file, "w", encoding="utf-8") as f:
            json.dump(config, f)  # which is YAML
        self.proc = Proc("docker-registry", ["docker-registry", "serve", file],
                         os.path.join(directory, "log"))
        self.proc.start()
        wait_for(self.answers, 20, "the registry to answer")

    def answers(self):
        self.proc.check()
        try:
            return self.request("GET", "/v2/")[0] == 200
        except OSError:
            return False

    def close(self):
        self.proc.kill()

    def request(self, method, path, body=None, content_type=None):
        """(status, headers)"""
        headers = {"Content-Type": content_type} if content_type else {}
        if self.password:
            headers["Authorization"] = BASIC
        if self.tls:
            context = ssl.create_default_context(cafile=self.tls[0])
            conn = http.client.HTTPSConnection(self.host, timeout=20, context=context)
        else:
            conn = http.client.HTTPConnection(self.host, timeout=20)
        try:
            conn.request(method, path, body, headers)
            answer = conn.getresponse()
            answer.read()
            return answer.status, answer.headers
        finally:
            conn.close()

    def push_blob(self, repository, data):
        digest = "sha256:" + hashlib.sha256(data).hexdigest()
        status, headers = self.request("POST", f"/v2/{repository}/blobs/uploads/")
        assert status == 202, status
        place = "/" + headers["Location"].split("/", 3)[3]
        status, _ = self.request("PUT", f"{place}&digest={digest}", data,
                                 "application/octet-stream")
        assert status == 201, status
        return {"digest": digest, "size": len(data)}

    def push_manifest(self, repository, media_type, manifest):
        data = json.dumps({"schemaVersion": 2, "mediaType": media_type, **manifest}).encode()
        digest = "sha256:" + hashlib.sha256(data).hexdigest()
        status, _ = self.request("PUT", f"/v2/{repository}/manifests/{digest}", data, media_type)
        assert status == 201, status
        return {"mediaType": media_type, "digest": digest, "size": len(data)}

    def push_image(self, repository, labels, arch="amd64", docker=False):
        """The manifest's descriptor."""
        config = json.dumps({"os": "linux", "architecture": arch, "config": {"Labels": labels},
                             "rootfs": {"type": "layers", "diff_ids": []}}).encode()
        kind = DOCKER + "container.image.v1+json" if docker else OCI + "config.v1+json"
        return self.push_manifest(
            repository,
            DOCKER + "distribution.manifest.v2+json" if docker else OCI + "manifest.v1+json",
            {"config": {"mediaType": kind, **self.push_blob(repository, config)}, "layers": []})

    def push_index(self, repository, images, docker=False):
        """images: {arch: descriptor}"""
        return self.push_manifest(
            repository,
            DOCKER + "distribution.manifest.list.v2+json" if docker else OCI + "index.v1+json",
            {"manifests": [{**d, "platform": {"os": "linux", "architecture": arch}}
                           for arch, d in images.items()]})

    def reference(self, repository, descriptor):
        return f"{self.host}/{repository}@{descriptor['digest']}"
