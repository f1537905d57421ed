# SPDX-License-Identifier: MIT
"""A control plane without image volumes: the Job's Pod fetches the image, with the tool itself, from a
real registry that wants a password."""

import json
import os

import pytest

import jobpod
import ociimage
import pcrstool
import spine
from conftest import CRD_DIR, control_plane, need_registry
from controlplane import ControlPlane
from netpolicy import Host, Pod, allowed
from ociregistry import Registry
from teckinds import GROUP, made
from test_images import jobs_of
from test_network_policies import policies_of
from test_registry import docker_config

BECAUSE = f"{GROUP}/fetches-because"


@pytest.fixture(scope="module")
def cp():
    """In place of the one that all others share."""
    with control_plane(lambda: ControlPlane(crds=CRD_DIR, apiserver_args=["--feature-gates=ImageVolume=false"])) as plane:
        yield plane


@pytest.fixture(name="registry")
def _registry(tmp_path):
    need_registry()
    made_one = Registry(str(tmp_path / "registry"), password=True)
    yield made_one
    made_one.close()


@pytest.fixture(name="running")
def _running(cp, ns, start_operator, registry, tmp_path):
    spine.make_cluster(cp, ns)
    op = start_operator(ns, "--insecure-registry", registry.host, "--registry-mirror",
                        f"{registry.host}=127.0.0.1:1/none,{registry.host}={registry.host}",
                        "--registry-auth", docker_config(tmp_path / "auth", registry.host),
                        env={"https_proxy": "http://proxy.test:3128", "NO_PROXY": "127.0.0.1,.svc"})
    spine.wait_condition(cp, ns, "tec", "tec", "Installed", "InstallationCompleted")
    return op


def fetching_job(cp, ns, name):
    return cp.wait_for(lambda: ([j for j in jobs_of(cp, ns, name)
                                 if BECAUSE in j["metadata"]["annotations"]] or [None])[0],
                       20, f"a Job of {name} that fetches")


def fetch(job, into, auth):
    """What the kubelet does for the first container."""
    first = job["spec"]["template"]["spec"]["initContainers"][0]
    assert first["command"] == ["compute-pcrs", "fetch"]
    args = [{"/image": into, "/registry/.dockerconfigjson": auth, "/registry/ca.crt": "/none"}.get(a, a)
            for a in first["args"]]
    os.makedirs(into)
    return pcrstool.run("fetch", *args)


def test_what_cannot_be_mounted_is_fetched(cp, ns, running, registry, tmp_path):
    root = pcrstool.make_root(tmp_path / "root")
    reference = ociimage.push(registry, "os", ociimage.gz(ociimage.tar_of(root)))
    made(cp, "ai", ns, {"image": reference}, "os")
    job = fetching_job(cp, ns, "os")
    pod = job["spec"]["template"]["spec"]
    assert "drops" in job["metadata"]["annotations"][BECAUSE]
    assert not [v for v in pod["volumes"] if "image" in v]
    # The proxies of the operator are those of the container that fetches.
    env = {e["name"]: e["value"] for e in pod["initContainers"][0]["env"]}
    assert env.items() >= {"https_proxy": "http://proxy.test:3128", "NO_PROXY": "127.0.0.1,.svc"}.items()
    assert "env" not in pod["containers"][0]
    assert [v["emptyDir"]["sizeLimit"] for v in pod["volumes"] if "emptyDir" in v]
    text = spine.condition(spine.wait_condition(cp, ns, "ai", "os", "Committed", "Computing"),
                           "Committed")["message"]
    assert "drops image volumes" in text and "Kubernetes 1.31" in text
    cp.wait_for(lambda: len(jobs_of(cp, ns, "os")) == 1, 20, "only the Job that fetches")
    # The policies let such a Pod reach a registry.
    assert allowed(policies_of(cp, ns), Pod.of("10.1.0.1", job["spec"]["template"], ns),
                   Host("198.51.100.7"), 5000)
    # The container that computes has neither credentials nor a reason to use the network.
    (main,) = pod["containers"]
    assert [m["mountPath"] for m in main["volumeMounts"]] == ["/image"]
    assert main["volumeMounts"][0]["readOnly"] is True
    done = fetch(job, str(tmp_path / "image"), str(tmp_path / "auth"))
    assert done.returncode == 0 and "mirror failed" in done.stderr, done
    done = pcrstool.run(*main["args"], "-r", tmp_path / "image", "--result", tmp_path / "result")
    assert done.returncode == 0, done
    jobpod.end(cp, ns, jobpod.pod_of(cp, ns, job), (tmp_path / "result").read_text())
    spine.wait_condition(cp, ns, "ai", "os", "Committed", "ImageCommitted")
    entries = json.loads(spine.read(cp, ns, "configmaps", "image-pcrs")["data"]["image-pcrs.json"])
    direct = pcrstool.run("pcr4", "-r", root)
    assert entries["os"]["pcrs"][0]["value"] == json.loads(direct.stdout)["value"]


def test_its_pod_keeps_the_restricted_profile_and_says_why_it_failed(cp, ns, running, registry,
                                                                     tmp_path):
    reference = ociimage.push(registry, "os", ociimage.gz(ociimage.tar(("etc/x", b"y"))))
    made(cp, "ai", ns, {"image": reference}, "os")
    job = fetching_job(cp, ns, "os")
    status, answer = cp.api("PATCH", f"/api/v1/namespaces/{ns}", {"metadata": {"labels": {
        "pod-security.kubernetes.io/enforce": "restricted"}}}, "merge")
    assert status == 200, answer
    template = job["spec"]["template"]
    pod = {"metadata": {"generateName": "p-"}, "spec": template["spec"]}
    status, answer = cp.api("POST", f"/api/v1/namespaces/{ns}/pods?dryRun=All", pod)
    assert status == 201, answer
    # As the kubelet shows a first container that failed: the end of its log.
    done = fetch(job, str(tmp_path / "image"), str(tmp_path / "absent"))
    assert done.returncode == 1, done
    running_pod = jobpod.pod_of(cp, ns, job)
    path = spine.path_of(ns, "pods", running_pod["metadata"]["name"]) + "/status"
    failed = jobpod.ended(done.stderr, exit_code=1, container="fetch")
    status, answer = cp.api("PATCH", path, {"status": {
        "phase": "Failed", "initContainerStatuses": failed["containerStatuses"]}}, "merge")
    assert status == 200, answer
    cp.wait_for(lambda: len(jobpod.pods_of(cp, ns, job)) == 2, 60, "the Job's second try")
    for other in jobpod.pods_of(cp, ns, job):
        path = spine.path_of(ns, "pods", other["metadata"]["name"]) + "/status"
        cp.api("PATCH", path, {"status": {
            "phase": "Failed", "initContainerStatuses": failed["containerStatuses"]}}, "merge")
    found = spine.wait_condition(cp, ns, "ai", "os", "Committed", "ComputationFailed", 60)
    text = spine.condition(found, "Committed")["message"]
    assert "requires a password, but none is configured" in text and "Kubernetes 1.31" in text, text
