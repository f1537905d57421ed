# SPDX-License-Identifier: MIT
"""ApprovedImages on a real API server: approve -> Job (played here) -> Committed -> reference values
-> a second image -> four combinations -> revoke -> gone, on the API server and in the broker. The
registry has no such image, so the operator takes the Job's way at once."""

import copy
import functools
import hashlib
import http.server
import json
import threading

import pytest

import jobpod
import spine
import trustees
from kubeapi import describe
from teckinds import GROUP, made

start_place = trustees.start_place
FINALIZER = f"finalizer.approved-image.{GROUP}"
PCRS = "compute-pcrs"
ZERO = bytes(32)


class _NoImages(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        self.send_error(404)

    def log_message(self, *_):
        pass


@functools.cache
def registry():
    """host:port of one that answers 404 until the tests end."""
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), _NoImages)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    return f"127.0.0.1:{server.server_port}"


def digest(text):
    return hashlib.sha256(text.encode()).hexdigest()


def replay(events):
    value = ZERO
    for event in events:
        value = hashlib.sha256(value + bytes.fromhex(event["hash"])).digest()
    return value.hex()


def register(number, events):
    """A Pcr, from (id, name, digest)."""
    events = [{"name": name, "pcr": number, "hash": h, "id": id_} for id_, name, h in events]
    return {"id": number, "value": replay(events), "events": events}


def pcr4(loader, kernel):
    app = "EV_EFI_BOOT_SERVICES_APPLICATION"
    return register(4, [
        ("Pcr4EfiCall", "EV_EFI_ACTION", digest("Calling EFI Application from Boot Option")),
        ("Pcr4Separator", "EV_SEPARATOR", hashlib.sha256(bytes(4)).hexdigest()),
        ("Pcr4Shim", app, digest("shim " + loader)), ("Pcr4Grub", app, digest("grub " + loader)),
        ("Pcr4Vmlinuz", app, digest("kernel " + kernel))])


def forms(pcr):
    """Both values of this PCR 4: some firmware does not measure that it calls a boot entry."""
    value = bytes(32)
    assert pcr["events"][0]["id"] == "Pcr4EfiCall"
    for event in pcr["events"][1:]:
        value = hashlib.sha256(value + bytes.fromhex(event["hash"])).digest()
    return [pcr["value"], value.hex()]


def fours(*pairs):
    """tpm_pcr4 of these pairs of loader and kernel."""
    return sorted(value for pair in pairs for value in forms(pcr4(*pair)))


PCR14 = register(14, [("Pcr14MokList", "EV_IPL", digest("mok")),
                      ("Pcr14MokListX", "EV_IPL", digest("mokx")),
                      ("Pcr14MokListTrusted", "EV_IPL", hashlib.sha256(b"\x01").hexdigest())])


def reference(name):
    return f"{registry()}/os/{name}@sha256:{digest(name)}"


def entry(name):
    return {"first_seen": "2026-01-02T03:04:05.123456789Z", "pcrs": [pcr4(name, name), PCR14],
            "reference": reference(name)}


def stranger_writes(cp, ns, name, value):
    """Somebody who can write ConfigMaps sets an entry."""
    path = spine.path_of(ns, "configmaps", "image-pcrs")

    def written():
        found = spine.read(cp, ns, "configmaps", "image-pcrs")
        entries = json.loads(found["data"]["image-pcrs.json"])
        entries[name] = value
        found["data"]["image-pcrs.json"] = json.dumps(entries)
        status, answer = cp.api("PUT", path, found)
        assert status in (200, 409), answer
        return status == 200
    cp.wait_for(written, 10, "the stranger's write")


def jobs_of(cp, ns, name):
    jobs = cp.get(f"/apis/batch/v1/namespaces/{ns}/jobs")["items"]
    return [j for j in jobs
            if j["metadata"]["annotations"].get(f"{GROUP}/approved-image") == name]


def job_of(cp, ns, name):
    return cp.wait_for(lambda: (jobs_of(cp, ns, name) or [None])[0], 20, f"Job of {name}")


def job_says(cp, ns, name, value):
    jobpod.says(cp, ns, job_of(cp, ns, name), value)


def values(cp, ns):
    """trustee-rv-data as {name: value} and its list of boot sets."""
    data = spine.read(cp, ns, "configmaps", "trustee-rv-data")["data"]
    found = json.loads(data["reference-values.json"])
    assert all(set(v) == {"version", "name", "expiration", "value"} for v in found)
    assert [v["name"] for v in found] == sorted(v["name"] for v in found)
    return ({v["name"]: v["value"] for v in found}, json.loads(data.get("boot-sets.json", "[]")))


def boots(*pairs):
    """The names of their boot sets."""
    return [f"boot.{value}.{PCR14['value']}" for value in fours(*pairs)]


def approve(cp, ns, name):
    made(cp, "ai", ns, {"image": reference(name)}, name)
    return job_of(cp, ns, name)


def commit(cp, ns, name):
    approve(cp, ns, name)
    job_says(cp, ns, name, entry(name))
    return spine.wait_condition(cp, ns, "ai", name, "Committed", "ImageCommitted")


@pytest.fixture(name="running")
def _running(cp, ns, start_operator):
    spine.make_cluster(cp, ns)
    op = start_operator(ns, "--insecure-registry", registry())
    spine.wait_condition(cp, ns, "tec", "tec", "Installed", "InstallationCompleted")
    return op


@pytest.fixture(name="place")
def _place(cp, ns, start_operator, start_place):
    """The broker of an operator that is running."""
    place = start_place()
    trustees.managed(cp, ns, place)
    start_operator(ns, "--kbs-url", place.url, "--insecure-registry", registry())
    trustees.synced(cp, ns)
    return place


def boots_of(place, stored=False):
    """{name: value} of the boot sets in the broker; STORED: tombstones too."""
    found = place.kbs.dump()["reference_values"]
    return {name: v["value"] for name, v in found.items()
            if name.startswith("boot.") and (stored or v["value"] is not None)}


def test_from_approval_to_four_combinations_and_back(cp, ns, place):
    assert place.values() == {"tpm_pcr14": [], "tpm_pcr4": [], "tpm_pcr7": [], "tpm_svn": ["1"],
                              "trusted_aks": []}
    job = approve(cp, ns, "a")
    image = spine.wait_condition(cp, ns, "ai", "a", "Committed", "Computing")
    assert image["metadata"]["finalizers"] == [FINALIZER]
    cluster = spine.read(cp, ns, "tec", "tec")
    assert [o["uid"] for o in image["metadata"]["ownerReferences"]] == [
        cluster["metadata"]["uid"]]
    assert [o["uid"] for o in job["metadata"]["ownerReferences"]] == [image["metadata"]["uid"]]
    pod = job["spec"]["template"]["spec"]
    assert pod["serviceAccountName"] == PCRS
    assert pod["volumes"][0]["image"]["reference"] == reference("a")
    assert pod["automountServiceAccountToken"] is False
    nonce = jobpod.nonce_of(job)
    assert pod["containers"][0]["args"] == ["--image", reference("a"), "--nonce", nonce]
    assert jobpod.announced(cp, ns, "a", "pcrs-job") == jobpod.sha256(nonce)

    job_says(cp, ns, "a", entry("a"))
    spine.wait_condition(cp, ns, "ai", "a", "Committed", "ImageCommitted")
    arrays, names = values(cp, ns)
    assert arrays == {"tpm_pcr14": [PCR14["value"]], "tpm_pcr4": fours("aa"), "tpm_svn": ["1"]}
    assert names == boots("aa")
    cp.wait_for(lambda: boots_of(place) == dict.fromkeys(boots("aa"), {"images": ["a"]}), 20,
                "the boot sets in the broker")
    assert {name: place.values()[name] for name in arrays} == arrays

    commit(cp, ns, "b")
    pairs = [(loader, kernel) for loader in "ab" for kernel in "ab"]
    arrays, names = values(cp, ns)
    assert arrays["tpm_pcr4"] == fours(*pairs)
    assert arrays["tpm_pcr14"] == [PCR14["value"]]
    assert names == boots(*pairs)
    four = {name: {"images": sorted(set(pair))} for pair in pairs for name in boots(pair)}
    cp.wait_for(lambda: boots_of(place) == four, 20, "four states in the broker")
    assert {name: place.values()[name] for name in arrays} == arrays

    place.proxy.refuse()
    spine.delete(cp, ns, "ai", "a")
    image = spine.wait_condition(cp, ns, "ai", "a", "Committed", "Revoking")
    assert image["metadata"]["finalizers"] == [FINALIZER]
    cp.wait_for(lambda: values(cp, ns)[0]["tpm_pcr4"] == fours("bb"), 20,
                "reference values without the image")
    # Not forgotten before a Trustee has confirmed that they are gone.
    assert values(cp, ns)[1] == boots(*pairs)
    assert boots_of(place) == four
    place.proxy.listen()
    cp.wait_for(lambda: not spine.read(cp, ns, "ai", "a"), 30, "the end of the image")
    assert boots_of(place) == dict.fromkeys(boots("bb"), {"images": ["b"]})
    assert set(boots_of(place, stored=True)) == set(four), "a name without a tombstone"
    assert place.values()["tpm_pcr4"] == fours("bb")
    cp.wait_for(lambda: values(cp, ns)[1] == boots("bb"), 20, "the record without what is gone")

    spine.delete(cp, ns, "ai", "b")
    cp.wait_for(lambda: not spine.read(cp, ns, "ai", "b"), 30, "the end of the other image")
    assert boots_of(place) == {}
    assert (place.values()["tpm_pcr4"], place.values()["tpm_pcr14"]) == ([], [])


def test_without_a_trustee_images_go_with_their_cluster(cp, ns, running):
    commit(cp, ns, "a")
    spine.delete(cp, ns, "ai", "a")
    image = spine.wait_condition(cp, ns, "ai", "a", "Committed", "Revoking")
    assert image["metadata"]["finalizers"] == [FINALIZER]
    spine.delete(cp, ns, "tec", "tec")
    cp.wait_for(lambda: not spine.items(cp, ns, "ai"), 60, "the end of the image")


def test_what_is_settled_stays_and_a_restart_writes_nothing(cp, ns, running):
    commit(cp, ns, "a")
    account = f"system:serviceaccount:{ns}:tec-operator"
    quiet = {"since": cp.audit.mark(), "left": 45}

    def settled():
        if cp.writes_by(account, quiet["since"], ignore=("leases",)):
            quiet.update(since=cp.audit.mark(), left=45)
        quiet["left"] -= 1
        return quiet["left"] == 0
    cp.wait_for(settled, 30, "a settled operator", interval=0.1)
    mark = cp.audit.mark()
    running.restart()
    cp.wait_for(lambda: "reference values computed" in running.log_text(), 20, "a second start")
    quiet.update(since=cp.audit.mark(), left=45)
    cp.wait_for(settled, 30, "a settled operator", interval=0.1)
    writes = cp.writes_by(account, mark, ignore=("leases",))
    assert writes == [], describe(writes)


def test_an_entry_that_is_not_this_images_own_is_not_committed(cp, ns, running):
    approve(cp, ns, "a")
    stranger_writes(cp, ns, "a", entry("b"))  # another reference
    wrong = copy.deepcopy(entry("a"))
    wrong["pcrs"][0]["value"] = wrong["pcrs"][1]["value"]
    stranger_writes(cp, ns, "a", wrong)
    stranger_writes(cp, ns, "b", entry("b"))  # an image nobody approved
    commit(cp, ns, "c")
    arrays, names = values(cp, ns)
    assert arrays["tpm_pcr4"] == fours("cc")
    assert names == boots("cc")
    assert spine.condition(spine.read(cp, ns, "ai", "a"), "Committed")["status"] == "False"
    job_says(cp, ns, "a", entry("a"))
    spine.wait_condition(cp, ns, "ai", "a", "Committed", "ImageCommitted")


def test_the_jobs_pod_is_restricted(cp, ns, running):
    template = approve(cp, ns, "a")["spec"]["template"]
    pod = {"metadata": {"generateName": "p-", "labels": {"app": PCRS}}, "spec": template["spec"]}
    assert template["metadata"]["labels"]["app"] == PCRS
    status, answer = cp.api("PATCH", f"/api/v1/namespaces/{ns}", {"metadata": {"labels": {
        "pod-security.kubernetes.io/enforce": "restricted"}}}, "merge")
    assert status == 200, answer
    status, answer = cp.api("POST", f"/api/v1/namespaces/{ns}/pods?dryRun=All", pod)
    assert status == 201, answer
    assert answer["spec"]["volumes"][0]["image"]["reference"] == reference("a")
    assert answer["spec"]["containers"][0]["volumeMounts"][0]["readOnly"] is True
    del pod["spec"]["containers"][0]["securityContext"]
    assert cp.api("POST", f"/api/v1/namespaces/{ns}/pods?dryRun=All", pod)[0] == 403


def test_the_jobs_account_reaches_nothing(cp, ns, running):
    """Its token is not even in the Pod; the account is there for its imagePullSecrets."""
    headers = {"Authorization": f"Bearer {cp.service_account_token(ns, PCRS)}"}
    image_pcrs = spine.path_of(ns, "configmaps", "image-pcrs")
    for method, path, body, patch in (
            ("GET", image_pcrs, None, None),
            ("PATCH", image_pcrs, {"data": {}}, "merge"),
            ("GET", spine.path_of(ns, "configmaps"), None, None),
            ("GET", spine.path_of(ns, "configmaps", "trustee-rv-data"), None, None),
            ("PATCH", spine.path_of(ns, "configmaps", "trustee-rv-data"), {"data": {}}, "merge"),
            ("GET", spine.path_of(ns, "secrets"), None, None),
            ("GET", spine.path_of(ns, "secrets", "trustee-auth"), None, None),
            ("GET", spine.path_of(ns, "ai"), None, None),
            ("POST", spine.path_of(ns, "ai"), {}, None),
            ("GET", f"/apis/batch/v1/namespaces/{ns}/jobs", None, None),
            ("POST", f"/api/v1/namespaces/{ns}/serviceaccounts/tec-operator/token", {}, None)):
        assert cp.api(method, path, body, patch, headers=headers)[0] == 403, (method, path)
