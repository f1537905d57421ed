# SPDX-License-Identifier: MIT
"""An ApprovedImage: its Job reads a real image through an image volume, on a node, and its values are committed."""

import json
import os

import images
import pcrstool
from install import NS
from spine import read
from teckinds import made

OS_IMAGE = "registry.example.org/os"


def os_image(world):
    """Debian's boot files as an image on every node; its reference by digest."""
    root = pcrstool.make_root(os.path.join(world.dir, "os"))
    with open(os.path.join(pcrstool.put(root, "etc/os-release", "/etc/os-release")), encoding="utf-8") as f:
        assert "Debian" in f.read()
    with images.Locked():
        images.from_scratch(f"{OS_IMAGE}:1", [(root, "/")])
        archive = world.load_image(f"{OS_IMAGE}:1")
    reference = f"{OS_IMAGE}@{images.archive_digest(archive)}"
    for node in world.cluster.nodes:
        node.ctr("images", "tag", f"{OS_IMAGE}:1", reference)
    return root, reference


def test_the_job_reads_the_image_and_its_values_are_committed(installed):
    root, reference = os_image(installed)
    expected = json.loads(pcrstool.run("all", "-r", root).stdout)["pcrs"]
    made(installed.cluster, "ai", NS, {"image": reference}, "debian")
    # Before the Job it looks for a label five times, in a registry that cannot be reached from here.
    installed.wait_condition("Committed", "ImageCommitted", 400, kind="ai", name="debian")
    entries = json.loads(read(installed.cluster, NS, "configmaps", "image-pcrs")["data"]["image-pcrs.json"])
    assert entries["debian"]["reference"] == reference and entries["debian"]["pcrs"] == expected
    values = json.loads(read(installed.cluster, NS, "configmaps", "trustee-rv-data")["data"]["reference-values.json"])
    assert expected[0]["value"] in json.dumps(values)
