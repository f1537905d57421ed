# SPDX-License-Identifier: MIT
"""An ApprovedImage: its Job reads a real image on a node, through an image volume or, where there are none, from a registry,
and its values are committed."""

import json
import os

import images
import ociregistry
import pcrstool
import pytest
from cluster import API
from controlplane import wait_for
from install import NS
from proc import Proc
from spine import read
from teckinds import made

OS_IMAGE = "registry.example.org/os"
REGISTRY = f"{API}:5000"


@pytest.fixture(scope="module")
def root(installed):
    """Debian's boot files: a folder, and the image OS_IMAGE:1."""
    made_here = pcrstool.make_root(os.path.join(installed.dir, "os"))
    with open(os.path.join(pcrstool.put(made_here, "etc/os-release", "/etc/os-release")), encoding="utf-8") as f:
        assert "Debian" in f.read()
    with images.Locked():
        images.from_scratch(f"{OS_IMAGE}:1", [(made_here, "/")])
    return made_here


def on_every_node(world):
    """Its reference by digest."""
    with images.Locked():
        archive = world.load_image(f"{OS_IMAGE}:1")
    reference = f"{OS_IMAGE}@{images.archive_digest(archive)}"
    for node in world.cluster.nodes:
        node.ctr("images", "tag", f"{OS_IMAGE}:1", reference)
    return reference


@pytest.fixture
def in_a_registry(installed, root):
    """The same image in a registry outside of the cluster, whose CA the Secret names; its reference by digest."""
    cluster, folder = installed.cluster, os.path.join(installed.dir, "registry")
    os.makedirs(folder)
    crt, key = cluster.authority.issue("registry", "/CN=registry", [f"IP:{API}"])
    config = os.path.join(folder, "config.yml")
    with open(config, "w", encoding="utf-8") as f:
        json.dump({"version": "0.1", "storage": {"filesystem": {"rootdirectory": os.path.join(folder, "storage")}},
                   "http": {"addr": REGISTRY, "tls": {"certificate": crt, "key": key}}}, f)
    server = Proc("registry", cluster.inside("docker-registry", "serve", config), os.path.join(folder, "log"))
    server.start()
    try:
        digest = os.path.join(folder, "digest")

        def pushed():
            server.check()
            try:
                images.run([*cluster.inside(*images.buildah_argv()), "push", "--quiet", "--tls-verify=false", "--digestfile",
                            digest, f"{OS_IMAGE}:1", f"docker://{REGISTRY}/os:1"])
            except RuntimeError as e:
                raise OSError(f"not yet: {e}") from e
            return True

        with images.Locked():
            wait_for(pushed, 100, "pushed image", interval=1)
        cluster.kubectl("create", "secret", "generic", "tec-operator-registry", "-n", NS,
                        f"--from-file=ca.crt={cluster.authority.ca}")
        with open(digest, encoding="ascii") as f:
            yield f"{REGISTRY}/os@{f.read().strip()}"
    finally:
        server.kill()


@pytest.fixture
def no_image_volumes(installed):
    """What Kubernetes 1.31 to 1.34 do unless they are told otherwise: the API server leaves such volumes out."""
    gate, args = "--feature-gates=ImageVolume=true", installed.cluster.apiserver.argv
    assert gate in args

    def restart(argv):
        installed.cluster.kill_apiserver()
        installed.cluster.apiserver.argv = argv
        installed.cluster.start_apiserver()

    restart([a for a in args if a != gate])
    yield
    restart(args)


def committed(world, name, reference, root):
    """Its values are those of the folder."""
    expected = json.loads(pcrstool.run("all", "-r", root).stdout)["pcrs"]
    world.wait_condition("Committed", "ImageCommitted", 400, kind="ai", name=name)
    entries = json.loads(read(world.cluster, NS, "configmaps", "image-pcrs")["data"]["image-pcrs.json"])
    assert entries[name]["reference"] == reference and entries[name]["pcrs"] == expected
    return expected


def started(world):
    """Containers that kubelets started, as fields of Pods."""
    events = world.cluster.get(f"/api/v1/namespaces/{NS}/events")["items"]
    return {e["involvedObject"].get("fieldPath") for e in events if e["reason"] == "Started"}


def test_the_job_reads_the_image_and_its_values_are_committed(installed, root):
    reference = on_every_node(installed)
    made(installed.cluster, "ai", NS, {"image": reference}, "debian")
    # Before the Job it looks for a label five times, in a registry that cannot be reached from here.
    expected = committed(installed, "debian", reference, root)
    values = json.loads(read(installed.cluster, NS, "configmaps", "trustee-rv-data")["data"]["reference-values.json"])
    assert expected[0]["value"] in json.dumps(values)
    assert "spec.initContainers{fetch}" not in started(installed)


@pytest.mark.skipif(bool(ociregistry.missing()), reason=f"no registry; next step: {ociregistry.missing()}")
def test_without_image_volumes_the_pod_fetches_it(installed, root, in_a_registry, no_image_volumes):
    made(installed.cluster, "ai", NS, {"image": in_a_registry}, "fetched")
    committed(installed, "fetched", in_a_registry, root)
    assert "spec.initContainers{fetch}" in started(installed)
