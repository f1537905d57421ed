# SPDX-License-Identifier: MIT
"""What of the image is ours: little."""

import json
import tarfile

import images
from install import REGISTRY

OPERATOR_MB = 45  # on top of Debian's base image


def layers(name, directory):
    """Uncompressed sizes by digest."""
    with tarfile.open(images.export(name, directory)) as tar:
        def blob(digest):
            return json.load(tar.extractfile("blobs/sha256/" + digest.partition(":")[2]))

        manifest = blob(json.load(tar.extractfile("index.json"))["manifests"][0]["digest"])
        return {layer["digest"]: layer["size"] for layer in manifest["layers"]}


def test_the_operators_image_is_small(world, tmp_path):
    with images.Locked():
        base = layers(images.DEBIAN + "-slim", str(tmp_path))
        ours = layers(f"{REGISTRY}/tec-operator:0.3.0", str(tmp_path))
    assert base.keys() <= ours.keys()
    added = sum(size for digest, size in ours.items() if digest not in base)
    print(f"{added / 1e6:.1f} MB")
    assert added <= OPERATOR_MB * 1e6
