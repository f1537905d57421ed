# SPDX-License-Identifier: MIT
"""What an attacker tries, each on a real API server under the rights of k8s/: one function or more per
number, test_attack_NN_what. Each was seen to fail on version 0.1.0."""

import copy
import json
import threading
import time

import jobpod
import spine
from conftest import retarget
from teckinds import GROUP, made
from test_images import (PCR14, PCRS, approve, commit, entry, jobs_of, pcr4, reference,
                         stranger_writes, values)
from test_images import _running  # noqa: F401  (fixture "running")

# ---- 1


# ---- 2


# ---- 3


# ---- 4


# ---- 5

def evil(name):
    """An entry of that image with what another boots."""
    return dict(entry(name), pcrs=[pcr4("evil", "evil"), PCR14])


def never_approved(cp, ns, seconds=6):
    """What was computed stays what it is."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        assert pcr4("evil", "evil")["value"] not in values(cp, ns)[0].get("tpm_pcr4", [])
        time.sleep(0.2)


def test_attack_05_who_can_write_image_pcrs_approves_nothing(cp, ns, running):
    spine.since_now(cp, ns)
    approve(cp, ns, "a")
    stranger_writes(cp, ns, "a", evil("a"))
    never_approved(cp, ns)
    assert spine.condition(spine.read(cp, ns, "ai", "a"), "Committed")["status"] == "False"


def test_attack_05_committed_values_cannot_be_rewritten(cp, ns, running):
    """Not while the operator runs, which puts them back, and not while it is away."""
    spine.since_now(cp, ns)
    computed(cp, ns, "a", entry("a"))
    spine.wait_condition(cp, ns, "ai", "a", "Committed", "ImageCommitted")
    before = spine.read(cp, ns, "configmaps", "image-pcrs")["data"]
    rv_data = spine.read(cp, ns, "configmaps", "trustee-rv-data")["data"]
    stranger_writes(cp, ns, "a", evil("a"))
    never_approved(cp, ns, 3)
    assert spine.read(cp, ns, "configmaps", "image-pcrs")["data"] == before
    told = [e for e in cp.get(f"/apis/events.k8s.io/v1/namespaces/{ns}/events")["items"]
            if e["reason"] == "ValuesChanged"]
    assert len(told) == 1 and told[0]["regarding"]["name"] == "a", told

    running.terminate()
    for job in jobs_of(cp, ns, "a"):
        cp.kubectl("delete", "job", job["metadata"]["name"], "-n", ns)
    stranger_writes(cp, ns, "a", evil("a"))
    running.restart()
    image = spine.wait_condition(cp, ns, "ai", "a", "Committed", "ValuesChanged")
    assert "computed again" in spine.condition(image, "Committed")["message"]
    never_approved(cp, ns, 3)
    assert spine.read(cp, ns, "configmaps", "trustee-rv-data")["data"] == rv_data
    computed(cp, ns, "a", entry("a"))
    spine.wait_condition(cp, ns, "ai", "a", "Committed", "ImageCommitted")
    assert values(cp, ns)[0]["tpm_pcr4"] == [pcr4("a", "a")["value"]]


def test_attack_05_the_jobs_pod_has_no_token_and_its_account_no_rights(cp, ns, running):
    job = approve(cp, ns, "a")
    assert job["spec"]["template"]["spec"]["automountServiceAccountToken"] is False
    pod = jobpod.pod_of(cp, ns, job)
    assert not [v for v in pod["spec"]["volumes"] if "projected" in v or "secret" in v], pod
    headers = {"Authorization": f"Bearer {cp.service_account_token(ns, PCRS)}"}
    status, _ = cp.api("GET", spine.path_of(ns, "configmaps", "image-pcrs"), headers=headers)
    assert status == 403


def test_attack_05_only_the_jobs_own_pod_is_believed(cp, ns, running):
    """Others' Pods under the Job's labels and name, and a Job that was not announced."""
    job = approve(cp, ns, "a")
    nonce, digest = jobpod.nonce_of(job), jobpod.digest_of(reference("a"))
    own = jobpod.pod_of(cp, ns, job)
    # With all labels the Job controller would adopt it: who may create Pods here is the operator.
    pod = {"metadata": {"name": "stranger", "labels": {
        k: v for k, v in own["metadata"]["labels"].items() if k.endswith("job-name") or k == "app"}},
           "spec": {"containers": [{"name": PCRS, "image": "x"}]}}
    status, pod = cp.api("POST", spine.path_of(ns, "pods"), pod)
    assert status == 201, pod
    jobpod.end(cp, ns, pod, jobpod.message(nonce, digest, evil("a")))
    for text, how in ((jobpod.message("0" * 32, digest, evil("a")), {}),
                      (jobpod.message(nonce, "0" * 64, evil("a")), {}),
                      (jobpod.message(nonce, digest, evil("a")), {"restarts": 1}),
                      (jobpod.message(nonce, digest, evil("a")), {"container": "other"})):
        path = spine.path_of(ns, "pods", own["metadata"]["name"]) + "/status"
        said = jobpod.ended(text, **how)
        said["phase"] = "Running"  # or the Job controller counts it
        status, answer = cp.api("PATCH", path, {"status": said}, "merge")
        assert status == 200, answer
        never_approved(cp, ns, 1)
    assert spine.read(cp, ns, "configmaps", "image-pcrs")["data"]["image-pcrs.json"] == "{}"

    # Somebody may create Jobs, and makes the operator's next one before it does.
    planted = copy.deepcopy(job)
    planted["metadata"] = {k: job["metadata"][k] for k in ("name", "labels", "annotations", "ownerReferences")}
    planted["metadata"]["annotations"][f"{GROUP}/nonce"] = "0" * 32
    planted["spec"] = {"suspend": True, "template": {"spec": job["spec"]["template"]["spec"]}}
    running.terminate()
    cp.kubectl("delete", "job", job["metadata"]["name"], "-n", ns)
    cp.wait_for(lambda: not jobs_of(cp, ns, "a"), 20, "the end of the Job")
    status, answer = cp.api("POST", f"/apis/batch/v1/namespaces/{ns}/jobs", planted)
    assert status == 201, answer
    running.restart()
    cp.wait_for(lambda: [j for j in jobs_of(cp, ns, "a") if j["metadata"]["uid"] != answer["metadata"]["uid"]
                         and "deletionTimestamp" not in j["metadata"]], 30, "a Job of the operator's own")
    computed(cp, ns, "a", entry("a"))
    spine.wait_condition(cp, ns, "ai", "a", "Committed", "ImageCommitted")


def computed(cp, ns, name, value):
    """The image's Job ends with this, as the operator that runs takes it: 0.1.0 let it write."""
    if not spine.read(cp, ns, "ai", name):
        made(cp, "ai", ns, {"image": reference(name)}, name)
    job = cp.wait_for(lambda: next((j for j in jobs_of(cp, ns, name)
                                    if "deletionTimestamp" not in j["metadata"]), None), 60, "a Job")
    if "--nonce" in job["spec"]["template"]["spec"]["containers"][0]["args"]:
        jobpod.says(cp, ns, job, value)
    else:
        stranger_writes(cp, ns, name, value)


# What k8s/role.yaml of 0.1.0 gave the Job's account.
OLD_RIGHTS = [
    {"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "Role", "metadata": {"name": PCRS},
     "rules": [{"apiGroups": [""], "resources": ["configmaps"], "resourceNames": ["image-pcrs"],
                "verbs": ["get", "update", "patch"]}]},
    {"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "RoleBinding", "metadata": {"name": PCRS},
     "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": PCRS},
     "subjects": [{"kind": "ServiceAccount", "name": PCRS}]}]


def test_attack_05_an_upgrade_ends_the_jobs_rights(cp, ns, running):
    """kubectl apply takes nothing away: the line that NEWS and README name does."""
    old = copy.deepcopy(OLD_RIGHTS)
    for o in old:
        o["metadata"]["namespace"] = ns
    old[1]["subjects"][0]["namespace"] = ns
    cp.apply(old)
    headers = {"Authorization": f"Bearer {cp.service_account_token(ns, PCRS)}"}
    path = spine.path_of(ns, "configmaps", "image-pcrs")
    assert cp.api("GET", path, headers=headers)[0] == 200
    cp.apply(retarget(cp.manifests, ns))
    assert cp.api("GET", path, headers=headers)[0] == 200, "kubectl apply removes no Role"

    # Until the line is followed, what that account writes counts for nothing.
    spine.since_now(cp, ns)
    commit(cp, ns, "a")
    text = json.dumps({"a": evil("a")})
    status, answer = cp.api("PATCH", path, {"data": {"image-pcrs.json": text}}, "merge", headers=headers)
    assert status == 200, answer
    never_approved(cp, ns, 3)
    cp.kubectl("delete", "role,rolebinding", PCRS, "-n", ns)
    cp.wait_for(lambda: cp.api("GET", path, headers=headers)[0] == 403, 10, "no rights")


# ---- 6


# ---- 7


# ---- 8


# ---- 9

def many_sets(name, n=16):
    """An entry whose image may show N values, none of which has anything in common with another's."""
    sets = [[pcr4(f"{name} {i}", f"{name} {i}"), PCR14] for i in range(n)]
    return dict(entry(name), pcrs=sets[0], variants=[
        {"when": "sometimes", "secure_boot": True, "pcrs": s} for s in sets[1:]])


def slowest_health(op, stop, found):
    while not stop.is_set():
        began = time.monotonic()
        assert op.health("/healthz")[0] == 200
        found.append(time.monotonic() - began)
        time.sleep(0.02)


def test_attack_09_sixteen_images_of_sixteen_values(cp, ns, running):
    """They cost little, hold nobody up, and put nothing that is in force out of it."""
    computed(cp, ns, "first", entry("first"))
    spine.wait_condition(cp, ns, "ai", "first", "Committed", "ImageCommitted")
    before = running.memory_kib()["RssAnon"]
    stop, took = threading.Event(), []
    thread = threading.Thread(target=slowest_health, args=(running, stop, took))
    thread.start()
    names = [f"image-{i:02}" for i in range(16)]
    try:
        for name in names:
            computed(cp, ns, name, many_sets(name))

        def reasons():
            return {n: spine.condition(spine.read(cp, ns, "ai", n), "Committed").get("reason") for n in names}
        cp.wait_for(lambda: set(reasons().values()) <= {"ImageCommitted", "TooManyStates"}, 60, "an end")
    finally:
        stop.set()
        thread.join()
    peak = running.memory_kib()["VmHWM"] - running.memory_kib()["RssFile"]
    assert max(took) < 1, max(took)
    assert peak - before < 40 * 1024, (before, peak)
    assert reasons()["image-00"] == "ImageCommitted" and reasons()["image-15"] == "TooManyStates"
    image = spine.read(cp, ns, "ai", "first")
    assert spine.condition(image, "Committed")["reason"] == "ImageCommitted"
    refused = spine.condition(spine.read(cp, ns, "ai", "image-15"), "Committed")["message"]
    assert "Delete ApprovedImages" in refused, refused
    arrays, boots = values(cp, ns)
    assert pcr4("first", "first")["value"] in arrays["tpm_pcr4"] and len(boots) <= 960


# ---- 10


# ---- 11


# ---- 12


# ---- 13


# ---- 14
