# SPDX-License-Identifier: MIT
"""compute-pcrs as the operator's Job runs it: the Job's own arguments and an image's files. What it
writes is put into the real Pod's status, as a kubelet does, and the operator commits it."""

import json
import os
import subprocess

import pytest

import jobpod
import pcrstool
import spine
from conftest import lacking
from test_images import PCRS, approve, forms, job_of, jobs_of, reference, values
from test_images import _running  # noqa: F401  (fixture "running")
from teckinds import made

MAP = "image-pcrs.json"
NONCE = "0123456789abcdef" * 2
MAX = 4096  # what a kubelet keeps


@pytest.fixture(scope="module")
def root(tmp_path_factory):
    return pcrstool.make_root(tmp_path_factory.mktemp("image"))


@pytest.fixture(scope="module")
def expected(root):
    return json.loads(pcrstool.run("all", "-r", root).stdout)["pcrs"]


def entries(cp, ns):
    return json.loads(spine.read(cp, ns, "configmaps", "image-pcrs")["data"][MAP])


def run(root, result, args):
    return pcrstool.run(*args, "-r", root, "--result", result)


def computed(root, result, args):
    """The message of a run that ends well."""
    done = run(root, result, args)
    assert done.returncode == 0 and done.stdout == "", done
    text = result.read_text()
    assert len(text) <= MAX
    return text


def args_of(name):
    return ["--image", reference(name), "--nonce", NONCE]


def play(cp, ns, root, result, name):
    job = job_of(cp, ns, name)
    container = job["spec"]["template"]["spec"]["containers"][0]
    assert container["command"] == [PCRS]
    jobpod.end(cp, ns, jobpod.pod_of(cp, ns, job), computed(root, result, container["args"]))


def test_what_the_job_says_is_committed(cp, ns, running, root, expected, tmp_path):
    approve(cp, ns, "a")
    play(cp, ns, root, tmp_path / "result", "a")
    spine.wait_condition(cp, ns, "ai", "a", "Committed", "ImageCommitted")
    found = entries(cp, ns)["a"]
    assert found["reference"] == reference("a") and found["pcrs"] == expected
    assert jobpod.announced(cp, ns, "a", "pcrs-sha256") == jobpod.sha256(
        json.dumps(found, separators=(",", ":")))
    arrays, boots = values(cp, ns)
    assert arrays["tpm_pcr4"] == sorted(forms(expected[0]))
    assert arrays["tpm_pcr14"] == [expected[1]["value"]]
    assert boots == [f"boot.{value}.{expected[1]['value']}" for value in sorted(forms(expected[0]))]


def with_call(variants):
    """Those that the operator does not derive: in the form of PCR 4 with the call of the boot entry."""
    return [v for v in variants if v["pcrs"][0]["events"][0]["id"] == "Pcr4EfiCall"]


def message_of(root):
    """By a writer of our own, from what the tool prints for people."""
    tool = json.loads(pcrstool.run("all", "--variants", "-r", root).stdout)
    others = [dict(v, secure_boot=v["when"].startswith("Secure Boot on")) for v in with_call(tool["variants"])[1:]]
    return jobpod.message(NONCE, jobpod.digest_of(reference("a")), dict(tool, variants=others))


def test_the_message_is_what_the_format_says(root, tmp_path):
    text = computed(root, tmp_path / "result", args_of("a"))
    assert text == message_of(root)
    assert len(text) < 700


def test_what_else_the_image_may_show(cp, ns, running, tmp_path):
    """A loader of unknown make gives several values; those for Secure Boot off wait for spec.secureBoot."""
    root = pcrstool.make_root(tmp_path / "image", second=pcrstool.FALLBACK)
    every = json.loads(pcrstool.run("all", "--variants", "-r", root).stdout)["variants"]
    tool = with_call(every)
    assert (len(tool), len(every)) == (4, 8), every
    approve(cp, ns, "a")
    play(cp, ns, root, tmp_path / "result", "a")
    spine.wait_condition(cp, ns, "ai", "a", "Committed", "ImageCommitted")
    found = entries(cp, ns)["a"]
    assert found["pcrs"] == tool[0]["pcrs"]
    assert [{k: v[k] for k in ("when", "pcrs")} for v in found["variants"]] == tool[1:]
    assert [v["secure_boot"] for v in found["variants"]] == [True, False, False]
    # A loader that measures the kernel once does so in both states.
    names = [f"boot.{v['pcrs'][0]['value']}.{v['pcrs'][1]['value']}" for v in every]
    assert values(cp, ns)[1] == sorted(names[:2] + names[4:6])
    for setting, n in (("Any", 6), ("Required", 4)):
        spine.merge(cp, ns, "ai", "a", {"spec": {"secureBoot": setting}})
        cp.wait_for(lambda n=n: len(values(cp, ns)[1]) >= n and len(values(cp, ns)[0]["tpm_pcr4"]) == n, 10,
                    f"{n} values")


def test_in_a_pod_nothing_but_the_jobs_arguments_is_needed(root):
    """The message goes where the kubelet looks for it; no token, no network, no environment."""
    script = ('mount -t tmpfs none /dev && : >/dev/termination-log && "$@" && '
              'cat /dev/termination-log')
    if subprocess.run(["unshare", "-rmn", "mount", "-t", "tmpfs", "none", "/dev"], check=False,
                      capture_output=True).returncode:
        lacking("no mount namespace may be made here")
    done = subprocess.run(["unshare", "-rmn", "sh", "-c", script, "sh", pcrstool.binary(),
                           *args_of("a"), "-r", root], env={"PATH": os.environ["PATH"]},
                          capture_output=True, text=True, check=False, timeout=60)
    assert done.returncode == 0, done
    assert done.stdout == message_of(root)


def test_platforms_are_told_one_by_one(cp, ns, running, root, expected, tmp_path):
    """PCR 7 where it can be had, else why; and what is wrong with one costs the others nothing."""
    good = pcrstool.files_of(pcrstool.write_efivars("debian12-shim-grub", tmp_path / "vars"))
    off = pcrstool.files_of(pcrstool.write_efivars("debian12-shim-sdboot-off", tmp_path / "off"))
    unsigned = {k: v for k, v in good.items() if not k.startswith("db-")}
    broken = dict(good, **{pcrstool.PLATFORM[4]: b"abc"})
    platforms = {"good": good, "off.example": off, "unsigned": unsigned, "broken": broken, "empty": {}}
    approve(cp, ns, "a")
    job = job_of(cp, ns, "a")
    args = job["spec"]["template"]["spec"]["containers"][0]["args"] + ["--platform", f"none={tmp_path}/none"]
    for name, files in platforms.items():
        args += ["--platform", f"{name}={pcrstool.mount_configmap(files, tmp_path / name)}"]
    done = run(root, tmp_path / "result", args)
    assert done.returncode == 0 and "platform none: cannot open" in done.stderr, done
    jobpod.end(cp, ns, jobpod.pod_of(cp, ns, job), (tmp_path / "result").read_text())
    spine.wait_condition(cp, ns, "ai", "a", "Committed", "ImageCommitted")
    found = entries(cp, ns)["a"]
    assert set(found) - {"variants"} == {"first_seen", "pcrs", "platforms", "reference"}
    assert found["pcrs"] == expected
    assert [(p["name"], p["variables"]) for p in found["platforms"]] == [
        (name, pcrstool.platform_digest(files)) for name, files in platforms.items()]
    told = {p.pop("name"): p for p in found["platforms"]}
    alone = pcrstool.run("pcr7", "-r", root, "--efivars", tmp_path / "vars")
    assert told["good"]["pcrs"] == [json.loads(alone.stdout)]
    assert told["good"]["pcrs"][0]["value"] == pcrstool.boot_registers("debian12-shim-grub")[7]
    for name, words in (("off.example", "Secure Boot is off"), ("unsigned", "signer is not in db"),
                        ("broken", "shorter than its 4 bytes"), ("empty", "the directory is empty")):
        assert set(told[name]) == {"variables", "why"} and words in told[name]["why"], told[name]


def test_many_jobs_at_once_lose_nothing(cp, ns, running, root, expected, tmp_path):
    names = [f"image-{i}" for i in range(12)]
    for name in names:
        made(cp, "ai", ns, {"image": reference(name)}, name)
    for name in names:
        play(cp, ns, root, tmp_path / name, name)
    for name in names:
        spine.wait_condition(cp, ns, "ai", name, "Committed", "ImageCommitted")
    found = entries(cp, ns)
    assert sorted(found) == sorted(names) and all(e["pcrs"] == expected for e in found.values())


def test_what_does_not_fit_is_said_by_job_and_image(cp, ns, running):
    approve(cp, ns, "a")
    job = job_of(cp, ns, "a")
    for _ in range(2):
        pod = cp.wait_for(lambda: next((p for p in jobpod.pods_of(cp, ns, job)
                                        if p["status"]["phase"] == "Pending"), None), 60, "a Pod")
        jobpod.end(cp, ns, pod, "too many events: the values take 5000 bytes", exit_code=3)
    image = spine.wait_condition(cp, ns, "ai", "a", "Committed", "TooManyEvents", 60)
    assert "5000 bytes" in spine.condition(image, "Committed")["message"]


def test_a_pod_that_is_gone_is_made_again(cp, ns, running, root, tmp_path):
    approve(cp, ns, "a")
    job = job_of(cp, ns, "a")
    pod = jobpod.pod_of(cp, ns, job)
    # It ends, and is gone before the operator has read it: so does one whose message says nothing.
    jobpod.end(cp, ns, pod, "")
    cp.wait_for(lambda: any(c["type"] == "Complete" for c in conditions_of(cp, ns, job)), 30, "a Job that ended")
    spine.delete(cp, ns, "pods", pod["metadata"]["name"])
    cp.wait_for(lambda: [j for j in jobs_of(cp, ns, "a") if j["metadata"]["uid"] != job["metadata"]["uid"]],
                60, "another Job")
    play(cp, ns, root, tmp_path / "result", "a")
    spine.wait_condition(cp, ns, "ai", "a", "Committed", "ImageCommitted")


def conditions_of(cp, ns, job):
    path = f"/apis/batch/v1/namespaces/{ns}/jobs/{job['metadata']['name']}"
    return cp.get(path).get("status", {}).get("conditions", [])


def test_a_message_that_cannot_be_written_is_told(root):
    done = pcrstool.run(*args_of("a"), "-r", root, "--result", "/nonexistent/x")
    assert done.returncode == 1 and "/nonexistent/x" in done.stderr, done


def test_an_image_that_would_not_boot_has_no_message(tmp_path):
    root = pcrstool.make_root(tmp_path / "image")
    kernel = os.path.join(root, pcrstool.kernel_path())
    with open(kernel, "r+b") as f:
        f.seek(os.path.getsize(kernel) // 2)
        byte = f.read(1)
        f.seek(-1, os.SEEK_CUR)
        f.write(bytes([byte[0] ^ 1]))
    done = run(root, tmp_path / "result", args_of("a"))
    assert done.returncode == 1 and pcrstool.kernel_path() in done.stderr, done
    assert "does not match the contents" in done.stderr and len(done.stderr.splitlines()) == 1
    assert not (tmp_path / "result").exists()
