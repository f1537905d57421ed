# SPDX-License-Identifier: MIT
"""tecctl image: in a cluster Jobs compute the values, where none run the operator's child does, and of a
directory tecctl, which hands them in."""

import base64
import json
import os
import re
import shutil
import signal
import subprocess
import threading

import pytest

import jobpod
import pcrstool
import spine
from conftest import lacking
from ociimage import Scripted, gz, push, tar_of
from pcrstool import make_root
from tecctl import Tecctl
from tecproc import operator_binary
from teckinds import GROUP, IMAGE, made
from test_standalone import Standalone

NS = "trusted-execution-clusters"


@pytest.fixture(scope="module")
def root(tmp_path_factory):
    return make_root(tmp_path_factory.mktemp("root"))


@pytest.fixture
def options():
    return []


@pytest.fixture
def alone(tmp_path, options):
    if not os.access(operator_binary(), os.X_OK):
        lacking(f"no {operator_binary()}; next step: make, or set TEC_OPERATOR")
    s = Standalone(str(tmp_path / "state"), "--public-address=192.0.2.1", *options).start()
    s.ctl = Tecctl(f"{s.dir}/kubeconfig")
    yield s
    if s.process.poll() is None:
        assert s.stop() == 0, s.log()


def entries(plane, ns=NS):
    return json.loads(spine.read(plane, ns, "configmaps", "image-pcrs")["data"]["image-pcrs.json"])


def boot_sets(plane):
    return json.loads(spine.read(plane, NS, "configmaps", "trustee-rv-data")["data"].get("boot-sets.json", "[]"))


def told(alone, name, reason):
    """What the condition says, once it is this."""
    image = spine.wait_condition(alone, NS, "ai", name, "Committed", reason, 60)
    return spine.condition(image, "Committed")["message"]


def test_a_directory_is_computed_and_in_force(alone, root):
    out, err = alone.ctl.run("image", "approve", "--rootfs", root)
    name = re.fullmatch(r"approvedimage (rootfs-[0-9a-f]{8}) is in force\n", out)[1]
    assert f"tecctl: created ApprovedImage {name}\n" in err
    found = entries(alone)
    expected = json.loads(pcrstool.run("all", "-r", root, "--variants").stdout)
    assert found[name]["pcrs"] == expected["pcrs"]
    assert [v["pcrs"] for v in found[name]["variants"]] == [v["pcrs"] for v in expected["variants"][1:]
                                                             if v["pcrs"][0]["events"][0]["id"] == "Pcr4EfiCall"]
    alone.wait_for(lambda: boot_sets(alone), 30, "boot sets")
    # Again: nothing is made twice.
    out, err = alone.ctl.run("image", "approve", "--rootfs", root)
    assert out == f"approvedimage {name} is in force\n" and "created" not in err
    assert re.search(rf"^  {name} +Ready +[1-9]\d* ", alone.ctl.out("status"), re.M)
    shown = alone.ctl.out("image", "explain", name)
    assert expected["pcrs"][0]["value"] in shown and "Pcr4Shim" in shown
    assert "all " in alone.ctl.out("image", "verify", name, "--rootfs", root)


def test_what_does_not_compute_is_not_approved(alone, root, tmp_path):
    broken = tmp_path / "broken"
    shutil.copytree(root, broken)
    for at, _, names in os.walk(broken):
        for file in (n for n in names if n == "grubx64.efi"):
            os.remove(os.path.join(at, file))
    (tmp_path / "empty").mkdir()
    for directory in (broken, tmp_path / "empty"):
        out, err = alone.ctl.run("image", "approve", "--rootfs", directory, code=1)
        assert out == "" and "tec-compute-pcrs: " in err and "failed with status 1" in err
    assert "cannot open --rootfs" in alone.ctl.run("image", "approve", "--rootfs", tmp_path / "no", code=1)[1]
    assert spine.items(alone, NS, "ai") == []
    assert "no image given" in alone.ctl.run("image", "approve", code=1)[1]
    assert "cannot be combined" in alone.ctl.run("image", "approve", "x", "--image", "y", code=1)[1]
    assert "has no digest" in alone.ctl.run("image", "approve", "quay.io/x/y:latest", code=1)[1]
    assert "is not a valid object name" in alone.ctl.run("image", "approve", IMAGE, "--name=A_b", code=1)[1]
    alone.ctl.run("image", "approve", IMAGE, "--name=a", "--wait=1", code=1)
    assert "is for another image" in alone.ctl.run(
        "image", "approve", IMAGE.replace("0" * 64, "1" * 64), "--name=a", code=1)[1]
    assert "no values found" in alone.ctl.run("image", "verify", "a", code=1)[1]


@pytest.fixture
def near(options, registry):
    options.append(f"--insecure-registry={registry.host}")
    return registry


def scratch(alone):
    path = f"{alone.dir}/scratch"
    return os.listdir(path) if os.path.isdir(path) else []


def test_an_image_is_fetched_from_its_registry(near, alone, root, tmp_path):
    reference = push(near, "os", gz(tar_of(root)))
    host = reference.partition("/")[0]
    made(alone, "ai", NS, {"image": reference}, "applied")
    spine.wait_condition(alone, NS, "ai", "applied", "Committed", "ImageCommitted", 60)
    expected = json.loads(pcrstool.run("all", "-r", root).stdout)["pcrs"]
    assert entries(alone)["applied"]["pcrs"] == expected
    assert scratch(alone) == []
    # Without --into its reference alone.
    assert pcrstool.run("fetch", reference, f"--insecure-registry={host}").stdout == reference + "\n"
    out, _ = alone.ctl.run("image", "approve", f"--image={reference.partition('@')[0]}:1",
                           f"--insecure-registry={host}", "--name=os", code=1)
    assert out == ""  # no such tag
    out, _ = alone.ctl.run("image", "approve", reference)
    assert out == "approvedimage applied is in force\n"
    out, _ = alone.ctl.run("image", "approve", f"--image={reference}", f"--insecure-registry={host}", "--name=applied")
    assert out == "approvedimage applied is in force\n"
    assert "match the image" in alone.ctl.out("image", "verify", "applied", f"--insecure-registry={host}")
    other = tmp_path / "other"
    shutil.copytree(root, other)
    for at, _, names in os.walk(other):
        for file in (n for n in names if n == "vmlinuz"):
            shutil.copyfile(pcrstool.debian(*pcrstool.FALLBACK), os.path.join(at, file))
    out, _ = alone.ctl.run("image", "verify", "applied", "--rootfs", other, code=1)
    assert "do not match the image" in out
    _, err = alone.ctl.run("image", "approve", f"--image={host}/no/such:1", f"--insecure-registry={host}", code=1)
    assert f"{host}/no/such:1" in err
    assert [o["metadata"]["name"] for o in spine.items(alone, NS, "ai")] == ["applied"]


def test_platforms_of_the_cluster_are_computed(alone, root, tmp_path):
    files = pcrstool.files_of(pcrstool.write_efivars("debian12-shim-grub", tmp_path / "vars"))
    status, answer = alone.api("POST", spine.path_of(NS, "configmaps"), {
        "metadata": {"name": "board"},
        "binaryData": {k: base64.b64encode(v).decode() for k, v in files.items()}})
    assert status == 201, answer
    spine.merge(alone, NS, "tec", "tec", {"spec": {"attestation": {"platformConfigMaps": ["board"]}}})
    alone.ctl.run("image", "approve", "--rootfs", root, "--name=a")
    found = alone.wait_for(lambda: entries(alone)["a"].get("platforms"), 30, "the platform")
    assert found[0]["name"] == "board" and found[0]["variables"] == pcrstool.platform_digest(files)
    assert "On the platform board:" in alone.ctl.out("image", "explain", "a")


def test_handed_in_values(alone, root, tmp_path):
    """Only an administrator's, only of this image; such an image is never fetched."""
    made(alone, "ai", NS, {"image": IMAGE}, "a", annotations={f"{GROUP}/values": "HandedIn"})
    message = told(alone, "a", "ValuesAwaited")
    assert "tecctl image approve --rootfs" in message
    assert "tecctl image approve --rootfs" in alone.ctl.out("status", code=None)
    path, result = spine.path_of(NS, "ai", "a") + "/values", tmp_path / "result"

    def computed(image):
        done = pcrstool.run("--image", image, "--nonce", "0" * 32, "-r", root, "--result", result)
        assert done.returncode == 0, done
        return {"message": result.read_text()}
    good = computed(IMAGE)
    for body, status, words in (
            (computed(IMAGE.replace("0" * 64, "1" * 64)), 422, "it is about another image"),
            ({"message": "tec-pcrs/3"}, 422, "it is not a message"),
            ({"message": good["message"][:-9]}, 422, "values"),
            ({"message": good["message"] + "A" * 5000}, 422, "it is not a message"),
            ({"values": good["message"]}, 422, "the body must be"), ([], 422, "")):
        assert_refused(alone.api("PUT", path, body), status, words)
    assert_refused(alone.api("PUT", path.replace("/a/", "/b/"), good), 404, '"b" not found')
    assert_refused(alone.api("PUT", path.replace(f"/{NS}/", "/default/"), good), 404, '"a" not found')
    for method in ("GET", "POST", "DELETE", "PATCH"):
        assert_refused(alone.api(method, path, good if method != "GET" else None), 405, "only PUT")
    assert spine.read(alone, NS, "ai", "a")["status"]["conditions"][0]["reason"] == "ValuesAwaited"
    status, answer = alone.api("PUT", path, good)
    assert status == 200 and answer["status"] == "Success", answer
    spine.wait_condition(alone, NS, "ai", "a", "Committed", "ImageCommitted", 30)
    assert alone.api("PUT", path, good)[0] == 200  # again: nothing changes
    assert alone.stop() == 0
    alone.start()
    spine.wait_condition(alone, NS, "ai", "a", "Committed", "ImageCommitted", 30)
    assert not os.path.exists(f"{alone.dir}/scratch")


def assert_refused(answer, status, words):
    assert answer[0] == status and words in answer[1]["message"], answer


def test_a_computation_is_ended_and_begun_again(near, alone, root):
    """With the process, with the image, and after a failure; one at a time."""
    reference = push(near, "os", gz(tar_of(root)))
    hang, over = Scripted(), threading.Event()
    options = f"--insecure-registry={near.host},{hang.host}"
    alone.stop()
    alone.args = [options if "--insecure" in a else a for a in alone.args]
    alone.start()
    hang.answers["/v2/a/b/manifests/" + reference.partition("@")[2]] = lambda handler: over.wait(120) and None
    stuck = f"{hang.host}/a/b@{reference.partition('@')[2]}"

    def children():
        found = subprocess.run(["pgrep", "-f", "tec-compute-pcrs fetch"], capture_output=True, text=True, check=False)
        return [p for p in found.stdout.split() if stuck in open(f"/proc/{p}/cmdline", encoding="utf-8").read()]
    try:
        made(alone, "ai", NS, {"image": stuck}, "stuck")
        alone.wait_for(children, 60, "a child that fetches")
        made(alone, "ai", NS, {"image": reference}, "next")
        alone.wait_for(lambda: "one image at a time" in told(alone, "next", "Computing"), 30, "the second waits")
        first = children()
        os.kill(alone.process.pid, signal.SIGKILL)
        alone.process.wait()
        alone.wait_for(lambda: not any(os.path.exists(f"/proc/{p}") for p in first), 10, "the child to end")
        assert scratch(alone)
        alone.start()
        alone.wait_for(children, 60, "it is begun again")
        spine.delete(alone, NS, "ai", "stuck")
        spine.wait_condition(alone, NS, "ai", "next", "Committed", "ImageCommitted", 60)
        assert not children()
        alone.wait_for(lambda: scratch(alone) == [], 20, "nothing is left on disk")
    finally:
        over.set()
        hang.close()


def test_what_a_child_cannot_compute_is_told(near, alone, root, tmp_path):
    shutil.copytree(root, tmp_path / "broken")
    for at, _, names in os.walk(tmp_path / "broken"):
        for file in (n for n in names if n == "grubx64.efi"):
            os.remove(os.path.join(at, file))
    made(alone, "ai", NS, {"image": push(near, "broken", gz(tar_of(tmp_path / "broken")))}, "broken")
    why = told(alone, "broken", "ComputationFailed")
    assert why.startswith("The values cannot be computed: ") and "grubx64.efi" in why
    made(alone, "ai", NS, {"image": f"{near.host}/no/such@sha256:{'2' * 64}"}, "none")
    why = told(alone, "none", "ComputationFailed")
    assert near.host in why


def test_ctrl_c_while_it_computes(alone, tmp_path):
    left, over, slow = tmp_path / "tmp", threading.Event(), Scripted()
    left.mkdir()
    slow.answers["/v2/a/b/manifests/1"] = lambda handler: over.wait(120) and None
    try:
        seen = alone.ctl.terminal("image", "approve", f"--image={slow.host}/a/b:1", f"--insecure-registry={slow.host}",
                                  env={"TMPDIR": str(left)})
        alone.wait_for(lambda: slow.seen, 30, "a request")
        children = subprocess.run(["pgrep", "-P", str(seen.pid)], capture_output=True, text=True, check=False).stdout
        assert os.listdir(left) and children.split()
        assert seen.interrupt().end() == 130
        assert os.listdir(left) == [] and not os.path.exists(f"/proc/{children.split()[0]}")
        assert spine.items(alone, NS, "ai") == []
    finally:
        over.set()
        slow.close()


def test_a_clusters_jobs_compute(make_world, root, tmp_path):
    world = make_world().start()
    ctl = Tecctl(world.cp.admin_kubeconfig, world.ns)
    _, err = ctl.run("image", "approve", "--rootfs", root, "--name=here", code=1)
    assert "computes values in Jobs; next step: tecctl image approve REF" in err
    assert spine.items(world.cp, world.ns, "ai") == []
    seen = ctl.terminal("image", "approve", IMAGE, "--wait=600")
    seen.until("created ApprovedImage fedora-coreos-00000000")
    job = world.cp.wait_for(lambda: world.cp.get(f"/apis/batch/v1/namespaces/{world.ns}/jobs")["items"], 60, "the Job")[0]
    result = tmp_path / "result"
    args = job["spec"]["template"]["spec"]["containers"][0]["args"]
    done = pcrstool.run(*args, "-r", root, "--result", result)
    assert done.returncode == 0, done
    jobpod.end(world.cp, world.ns, jobpod.pod_of(world.cp, world.ns, job), result.read_text())
    assert seen.end() == 0 and "approvedimage fedora-coreos-00000000 is in force" in seen.seen
    assert "all " in ctl.out("image", "verify", "fedora-coreos-00000000", "--rootfs", root)
