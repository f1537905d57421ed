# SPDX-License-Identifier: MIT
"""Images with layers, made here: tar archives, their compression, and a registry that says what a test
wants it to."""

import gzip
import hashlib
import http.server
import io
import json
import os
import shutil
import subprocess
import tarfile
import threading

from conftest import lacking
from ociregistry import OCI

LAYER = OCI + "layer.v1.tar"


def digest_of(data):
    return "sha256:" + hashlib.sha256(data).hexdigest()


def tar(*entries, form=tarfile.PAX_FORMAT):
    """entries: (name, bytes), (name, None) for a folder, (name, "->target"), (name, "=target")."""
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w", format=form) as t:
        for name, what in entries:
            info = tarfile.TarInfo(name)
            if what is None:
                info.type, info.mode = tarfile.DIRTYPE, 0o755
            elif isinstance(what, str):
                info.type = tarfile.SYMTYPE if what.startswith("->") else tarfile.LNKTYPE
                info.linkname = what.lstrip("-=>")
            else:
                info.size = len(what)
            t.addfile(info, io.BytesIO(what) if isinstance(what, bytes) else None)
    return out.getvalue()


def tar_of(root, *more):
    """All files of a folder, as a builder writes them, and what else comes after them."""
    entries = []
    for at, folders, files in os.walk(root):
        for name in sorted(folders):
            entries.append((os.path.relpath(os.path.join(at, name), root), None))
        for name in sorted(files):
            with open(os.path.join(at, name), "rb") as f:
                entries.append((os.path.relpath(os.path.join(at, name), root), f.read()))
    return tar(*entries, *more)


def zstd(data, *options):
    if not shutil.which("zstd"):
        lacking("no zstd: apt-get install zstd")
    return subprocess.run(["zstd", "-q", "-c", *options], input=data, capture_output=True,
                          check=True, timeout=120).stdout


def gz(data):
    return gzip.compress(data, 6, mtime=0)


SUFFIX = {b"\x1f\x8b": "+gzip", b"\x28\xb5": "+zstd"}


def manifest(layers):
    """(manifest, configuration) of an image with these layers, as bytes."""
    config = json.dumps({"os": "linux", "architecture": "amd64", "config": {},
                         "rootfs": {"type": "layers", "diff_ids": []}}).encode()
    return json.dumps({
        "schemaVersion": 2, "mediaType": OCI + "manifest.v1+json",
        "config": {"mediaType": OCI + "config.v1+json", "digest": digest_of(config),
                   "size": len(config)},
        "layers": [{"mediaType": LAYER + SUFFIX.get(l[:2], ""), "digest": digest_of(l),
                    "size": len(l)} for l in layers]}).encode(), config


def push(registry, repository, *layers):
    """To ociregistry.Registry; the reference."""
    text, config = manifest(layers)
    for blob in (config, *layers):
        registry.push_blob(repository, blob)
    parsed = json.loads(text)
    made = registry.push_manifest(repository, parsed.pop("mediaType"),
                                  {k: v for k, v in parsed.items() if k != "schemaVersion"})
    return registry.reference(repository, made)


class Scripted:
    """A registry in this process. answers: {path: (status, headers, body)}, or a function of the
    handler; all that was asked stands in `seen` as (path, headers)."""

    def __init__(self):
        self.answers, self.seen = {}, []
        owner = self

        class Handler(http.server.BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_GET(self):
                path = self.path.partition("?")[0]
                owner.seen.append((self.path, dict(self.headers)))
                answer = owner.answers.get(path, (404, {}, b"none"))
                if callable(answer):
                    answer = answer(self)
                if answer is None:
                    self.close_connection = True
                    return
                status, headers, body = answer
                self.send_response(status)
                for name, value in headers.items():
                    self.send_header(name, value)
                if "Content-Length" not in headers:
                    self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, *args):
                pass

        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.server.daemon_threads = True
        self.host = f"127.0.0.1:{self.server.server_address[1]}"
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    def close(self):
        self.server.shutdown()
        self.server.server_close()

    def serve(self, *layers):
        """The reference of an image of repository a/b with these layers."""
        text, config = manifest(layers)
        for blob in (config, *layers):
            self.answers[f"/v2/a/b/blobs/{digest_of(blob)}"] = (200, {}, blob)
        self.answers[f"/v2/a/b/manifests/{digest_of(text)}"] = (200, {}, text)
        self.answers["/v2/a/b/manifests/stable"] = (200, {}, text)
        return f"{self.host}/a/b@{digest_of(text)}"

    def asked(self, text):
        return [(path, headers) for path, headers in self.seen if text in path]
