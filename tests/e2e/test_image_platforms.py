# SPDX-License-Identifier: MIT
"""PCR 7 of platforms on a real API server: ConfigMaps made by kubectl of real firmware variables ->
the Job's mounts -> the real tool, played as the kubelet would start it -> boot sets of three registers
in the broker, and the policy that asks for them."""

import base64
import hashlib
import json
import os
import struct
import uuid

import pytest

import jobpod
import pcrstool
import spine
from kubeapi import describe
from teckinds import made
from test_images import PCRS, approve, boots_of, entry, forms, job_says, jobs_of, reference, values
from test_images import _place, start_place  # noqa: F401  (fixtures "place" and "start_place")
from test_pcrs_job import entries, root  # noqa: F401  (fixture "root")
from test_policies import SEVEN_SWITCH, requiring_7

ON, OFF = "debian12-shim-grub", "debian12-shim-sdboot-off"


@pytest.fixture(name="variables")
def _variables(tmp_path):
    """variables(boot) -> {file name: bytes}, as that machine's efivarfs has them."""
    return lambda boot: pcrstool.files_of(pcrstool.write_efivars(boot, tmp_path / boot))


# An EFI_SIGNATURE_LIST of one SHA-256 (UEFI 32.4.1): type, sizes of list, header and entry; owner and hash.
HASHES = (uuid.UUID("c1c41626-504c-4092-aca9-41f936934328").bytes_le + struct.pack("<III", 28 + 48, 0, 48)
          + bytes(48))


def make_platform(cp, ns, name, files, directory):
    """As the README says; replaced when it is there."""
    source = directory / f"{name}-{pcrstool.platform_digest(files)[:8]}"
    source.mkdir()
    for file, data in files.items():
        (source / file).write_bytes(data)
    if spine.read(cp, ns, "configmaps", name):
        cp.kubectl("delete", "configmap", name, "-n", ns)
    cp.kubectl("create", "configmap", name, "-n", ns, f"--from-file={source}")


def attestation(cp, ns, pcr7, *names):
    spine.merge(cp, ns, "tec", "tec", {"spec": {"attestation": {
        "pcr7": pcr7, "platformConfigMaps": list(names)}}})


def job_with(cp, ns, name, platforms):
    """The image's Job with exactly these platforms in its arguments."""
    def there():
        for job in jobs_of(cp, ns, name):
            args = job["spec"]["template"]["spec"]["containers"][0]["args"]
            if [a.split("=")[0] for a in args[4:] if a != "--platform"] == platforms:
                return job
        return None
    return cp.wait_for(there, 20, f"a Job of {name} with {platforms}")


def play(cp, ns, job, root, directory):
    """What the kubelet and the Job do: mounts, and the real tool with the Job's own arguments."""
    pod = job["spec"]["template"]["spec"]
    container = pod["containers"][0]
    maps = {v["name"]: v["configMap"]["name"] for v in pod["volumes"] if "configMap" in v}
    args, base = list(container["args"]), directory / job["metadata"]["uid"]
    for mount in container["volumeMounts"]:
        assert mount["readOnly"] is True
        if mount["name"] not in maps:
            continue
        found = spine.read(cp, ns, "configmaps", maps[mount["name"]])
        files = {k: v.encode() for k, v in found.get("data", {}).items()}
        files |= {k: base64.b64decode(v) for k, v in found.get("binaryData", {}).items()}
        at = base / mount["mountPath"].strip("/")
        pcrstool.mount_configmap(files, at)
        args = [a.replace("=" + mount["mountPath"], f"={at}") for a in args]
    base.mkdir(exist_ok=True)
    done = pcrstool.run(*args, "-r", root, "--result", base / "result")
    assert done.returncode == 0, done
    jobpod.end(cp, ns, jobpod.pod_of(cp, ns, job), (base / "result").read_text())


def message(cp, ns, name):
    return spine.condition(spine.read(cp, ns, "ai", name), "Committed").get("message", "")


def new_job(cp, ns, name, known):
    """A Job of the image that is not one of these names."""
    return cp.wait_for(lambda: next((j for j in jobs_of(cp, ns, name) if j["metadata"]["name"] not in known), None),
                       20, "a new Job")


def wait_message(cp, ns, name, words):
    cp.wait_for(lambda: words in message(cp, ns, name), 20, f"{words!r} in {name}'s condition")


def arrays(cp, ns):
    return values(cp, ns)[0]


def requiring(place):
    return f"\n{SEVEN_SWITCH} := true\n" in place.policies()[0]


def test_from_variables_to_boot_sets_of_three_and_back(cp, ns, place, root, variables,
                                                       tmp_path):
    approve(cp, ns, "a")
    predicted = pcrstool.run("all", "-r", root, "--efivars",
                             pcrstool.write_efivars(ON, tmp_path / "on"))
    pcrs = json.loads(predicted.stdout)["pcrs"]
    seven, fourteen = (p["value"] for p in pcrs[1:])
    assert seven == pcrstool.boot_registers(ON)[7], "the test knows a real machine's"
    two = dict.fromkeys((f"boot.{four}.{fourteen}" for four in forms(pcrs[0])), {"images": ["a"]})
    three = dict.fromkeys((f"boot.{four}.{seven}.{fourteen}" for four in forms(pcrs[0])), {"images": ["a"]})

    make_platform(cp, ns, "ovmf", variables(ON), tmp_path)
    # kubectl finds some of these binary files to be text.
    assert "data" in spine.read(cp, ns, "configmaps", "ovmf")
    attestation(cp, ns, "Ignore", "ovmf")
    job = job_with(cp, ns, "a", ["ovmf"])
    pod = job["spec"]["template"]["spec"]
    assert pod["volumes"][1] == {"name": "platform-0", "configMap": {
        "name": "ovmf", "defaultMode": pod["volumes"][1]["configMap"]["defaultMode"]}}
    assert pod["containers"][0]["volumeMounts"][1] == {
        "name": "platform-0", "mountPath": "/platforms/ovmf", "readOnly": True,
        **{k: v for k, v in pod["containers"][0]["volumeMounts"][1].items()
           if k == "recursiveReadOnly"}}
    # The Job without platforms was running, and is not any more.
    cp.wait_for(lambda: [j["metadata"]["uid"] for j in jobs_of(cp, ns, "a")
                         if "deletionTimestamp" not in j["metadata"]] == [job["metadata"]["uid"]],
                20, "one Job")
    play(cp, ns, job, root, tmp_path)
    spine.wait_condition(cp, ns, "ai", "a", "Committed", "ImageCommitted")
    cp.wait_for(lambda: boots_of(place) == two, 20, "the set of two")
    assert arrays(cp, ns)["tpm_pcr7"] == [seven], "to be looked at before it is required"
    cp.wait_for(lambda: place.values().get("tpm_pcr7") == [seven], 20, "tpm_pcr7 in the broker")
    assert not requiring(place)

    attestation(cp, ns, "Require", "ovmf")
    cp.wait_for(lambda: boots_of(place) == three, 20, "the set of three")
    cp.wait_for(lambda: requiring(place), 20, "the policy that asks for it")
    policy = place.policies()[0]
    assert policy == requiring_7("tpm.rego")
    cp.wait_for(lambda: spine.read(cp, ns, "configmaps", "trustee-policies")["data"]["default_cpu.rego"] == policy,
                20, "the policy in the seed")
    assert all(boots_of(place, stored=True)[name] is None for name in two), "revoked"
    wait_message(cp, ns, "a", "known for platform ovmf")

    attestation(cp, ns, "Ignore")
    cp.wait_for(lambda: boots_of(place) == two, 20, "the set of two again")
    cp.wait_for(lambda: not requiring(place), 20, "the policy that does not ask")


def test_new_variables_are_computed_anew_and_a_second_platform_bridges_them(
        cp, ns, place, root, variables, tmp_path):
    """The way that the README tells: first a second ConfigMap, then the update."""
    old = variables(ON)
    dbx = pcrstool.PLATFORM[4]
    new = dict(old, **{dbx: old.get(dbx, b"\x27\0\0\0") + HASHES})
    make_platform(cp, ns, "ovmf", old, tmp_path)
    attestation(cp, ns, "Require", "ovmf")
    made(cp, "ai", ns, {"image": reference("a")}, "a")
    first = job_with(cp, ns, "a", ["ovmf"])
    assert message(cp, ns, "a") == "" or "known" not in message(cp, ns, "a")
    play(cp, ns, first, root, tmp_path)
    spine.wait_condition(cp, ns, "ai", "a", "Committed", "ImageCommitted")
    cp.wait_for(lambda: len(boots_of(place)) == 2, 20, "both forms of a boot set")
    before = set(boots_of(place))

    make_platform(cp, ns, "ovmf-new", new, tmp_path)
    attestation(cp, ns, "Require", "ovmf", "ovmf-new")
    wait_message(cp, ns, "a", "The values of platform ovmf-new are not computed yet")
    assert spine.condition(spine.read(cp, ns, "ai", "a"), "Committed")["status"] == "True"
    assert set(boots_of(place)) == before, "nobody is locked out meanwhile"
    play(cp, ns, job_with(cp, ns, "a", ["ovmf", "ovmf-new"]), root, tmp_path)
    cp.wait_for(lambda: len(boots_of(place)) == 4 and before < set(boots_of(place)), 20, "both sets")

    # One that is changed in place counts as it was until it is computed.
    attestation(cp, ns, "Require", "ovmf")
    cp.wait_for(lambda: set(boots_of(place)) == before, 20, "the first set alone")
    names = {j["metadata"]["name"] for j in jobs_of(cp, ns, "a")}
    spine.merge(cp, ns, "configmaps", "ovmf", {
        "data": {dbx: None}, "binaryData": {dbx: base64.b64encode(new[dbx]).decode()}})
    wait_message(cp, ns, "a", "Until then, the previous value is used.")
    assert set(boots_of(place)) == before
    job = new_job(cp, ns, "a", names)
    play(cp, ns, job, root, tmp_path)
    cp.wait_for(lambda: len(boots_of(place)) == 2 and not before & set(boots_of(place)), 20,
                "the set of the new variables")
    assert {p["variables"] for p in entries(cp, ns)["a"]["platforms"]} == {
        pcrstool.platform_digest(new)}


def test_what_is_missing_is_told_with_what_to_do(cp, ns, place, root, variables, tmp_path):
    approve(cp, ns, "a")
    job_says(cp, ns, "a", entry("a"))
    spine.wait_condition(cp, ns, "ai", "a", "Committed", "ImageCommitted")
    attestation(cp, ns, "Ignore", "ovmf", "off")
    wait_message(cp, ns, "a", "ConfigMap ovmf does not exist: create it")
    assert spine.condition(spine.read(cp, ns, "ai", "a"), "Committed")["status"] == "True"
    made(cp, "ai", ns, {"image": reference("b")}, "b")
    spine.wait_condition(cp, ns, "ai", "b", "Committed", "ComputationFailed")
    assert jobs_of(cp, ns, "b") == []
    cp.kubectl("create", "configmap", "off", "-n", ns, "--from-literal=db=x")
    wait_message(cp, ns, "a", "ConfigMap off has no variables")

    make_platform(cp, ns, "ovmf", variables(ON), tmp_path)
    make_platform(cp, ns, "off", variables(OFF), tmp_path)
    play(cp, ns, job_with(cp, ns, "b", ["off", "ovmf"]), root, tmp_path)
    image = spine.wait_condition(cp, ns, "ai", "b", "Committed", "ImageCommitted")
    assert "no values for platform off: Secure Boot is off" in spine.condition(
        image, "Committed")["message"]
    attestation(cp, ns, "Require", "off")
    spine.wait_condition(cp, ns, "ai", "b", "Committed", "ComputationFailed")
    wait_message(cp, ns, "b", "no values for platform off: Secure Boot is off")
    cp.wait_for(lambda: boots_of(place) == {}, 20, "no boot set")


def mok_variables(boot):
    """As the kernel shows them on that machine."""
    return pcrstool.files_of(os.path.join(pcrstool.BOOTS, boot, "mok-variables"))


def test_mok_variables_of_nodes_are_platforms(cp, ns, place, root, variables, tmp_path):
    """An enrolled key, and a shim that validates nothing, which has to be asked for."""
    tool = json.loads(pcrstool.run("all", "-r", root, "--variants").stdout)
    four, fourteen = forms(tool["pcrs"][0]), tool["pcrs"][1]["value"]
    # With validation off shim measures no kernel, as a loader of which none is measured.
    off = next(forms(p) for v in tool["variants"] for p in v["pcrs"]
               if p["id"] == 4 and "Pcr4Vmlinuz" not in [e["id"] for e in p["events"]])
    real = {boot: pcrstool.boot_registers(boot)[14] for boot in ("mok-signed", "validation-off", "mok-untrusted")}
    assert len({fourteen, *real.values()}) == 4
    make_platform(cp, ns, "mok", variables(ON) | mok_variables("mok-signed"), tmp_path)
    make_platform(cp, ns, "off", mok_variables("validation-off"), tmp_path)
    make_platform(cp, ns, "untrusted", mok_variables("mok-untrusted"), tmp_path)
    attestation(cp, ns, "Ignore", "mok", "off", "untrusted")
    made(cp, "ai", ns, {"image": reference("a")}, "a")
    play(cp, ns, job_with(cp, ns, "a", ["mok", "off", "untrusted"]), root, tmp_path)
    spine.wait_condition(cp, ns, "ai", "a", "Committed", "ImageCommitted")
    wait_message(cp, ns, "a", "no values for platform off: shim's validation is off (MokSBStateRT): enable it, or "
                 "add AllowValidationDisabled=true to the ConfigMap")
    wait_message(cp, ns, "a", f"On platform mok, PCR 14 is {real['mok-signed']}.")
    sets = {f"boot.{form}.{pcr}" for form in four for pcr in (fourteen, real["mok-signed"], real["mok-untrusted"])}
    cp.wait_for(lambda: set(boots_of(place)) == sets, 20, "the sets of both")

    names = {j["metadata"]["name"] for j in jobs_of(cp, ns, "a")}
    spine.merge(cp, ns, "configmaps", "off", {"data": {"AllowValidationDisabled": "true"}})
    job = new_job(cp, ns, "a", names)
    play(cp, ns, job, root, tmp_path)
    cp.wait_for(lambda: set(boots_of(place)) == sets | {f"boot.{form}.{real['validation-off']}" for form in off},
                20,
                "the set of a node that validates nothing")
    attestation(cp, ns, "Require", "mok", "off", "untrusted")
    cp.wait_for(lambda: len(boots_of(place)) == 2, 20, "the one set with PCR 7")
    parts = [name.split(".") for name in boots_of(place)]
    assert sorted(p[1] for p in parts) == sorted(four) and {p[3] for p in parts} == {real["mok-signed"]}


def test_what_firmware_measures_before_the_boot_loader_is_a_platform(cp, ns, place, root, variables, tmp_path):
    """From the files of extract-platform to the boot set of its nodes; a program has to be allowed."""
    events = ('4 EV_EFI_ACTION "Booting to Boot0001 Option"\n'
              f"4 EV_EFI_BOOT_SERVICES_APPLICATION {'5d' * 32} an agent\n4 EV_SEPARATOR\n")
    pcrs = json.loads(pcrstool.run("all", "-r", root).stdout)["pcrs"]
    value = bytes(32)
    for digest in (hashlib.sha256(b"Booting to Boot0001 Option").digest(), bytes.fromhex("5d" * 32),
                   *(bytes.fromhex(e["hash"]) for e in pcrs[0]["events"][1:])):
        value = hashlib.sha256(value + digest).digest()
    make_platform(cp, ns, "odd", variables(ON) | {"FirmwareEvents": events.encode()}, tmp_path)
    attestation(cp, ns, "Ignore", "odd")
    made(cp, "ai", ns, {"image": reference("a")}, "a")
    play(cp, ns, job_with(cp, ns, "a", ["odd"]), root, tmp_path)
    wait_message(cp, ns, "a", "add AllowFirmwareApplications=true to the ConfigMap")
    usual = {f"boot.{four}.{pcrs[1]['value']}" for four in forms(pcrs[0])}
    cp.wait_for(lambda: set(boots_of(place)) == usual, 20, "the usual sets")
    names = {j["metadata"]["name"] for j in jobs_of(cp, ns, "a")}
    spine.merge(cp, ns, "configmaps", "odd", {"data": {"AllowFirmwareApplications": "true"}})
    job = new_job(cp, ns, "a", names)
    play(cp, ns, job, root, tmp_path)
    cp.wait_for(lambda: set(boots_of(place)) == usual | {f"boot.{value.hex()}.{pcrs[1]['value']}"}, 20,
                "the set of the platform")
    wait_message(cp, ns, "a", f"On platform odd, PCR 4 is {value.hex()}")
    spine.merge(cp, ns, "configmaps", "odd", {"data": {"AllowFirmwareApplications": None}})
    cp.wait_for(lambda: set(boots_of(place)) == usual, 20, "the usual sets alone")


def test_settled_platforms_cost_nothing_and_a_pod_keeps_the_restricted_profile(
        cp, ns, place, root, variables, tmp_path):
    make_platform(cp, ns, "ovmf", variables(ON), tmp_path)
    attestation(cp, ns, "Require", "ovmf")
    made(cp, "ai", ns, {"image": reference("a")}, "a")
    job = job_with(cp, ns, "a", ["ovmf"])
    play(cp, ns, job, root, tmp_path)
    spine.wait_condition(cp, ns, "ai", "a", "Committed", "ImageCommitted")
    cp.wait_for(lambda: len(boots_of(place)) == 2, 20, "both forms of a boot set")
    status, answer = cp.api("PATCH", f"/api/v1/namespaces/{ns}", {"metadata": {"labels": {
        "pod-security.kubernetes.io/enforce": "restricted"}}}, "merge")
    assert status == 200, answer
    pod = {"metadata": {"generateName": "p-", "labels": {"app": PCRS}},
           "spec": job["spec"]["template"]["spec"]}
    status, answer = cp.api("POST", f"/api/v1/namespaces/{ns}/pods?dryRun=All", pod)
    assert status == 201, answer

    account = f"system:serviceaccount:{ns}:tec-operator"
    quiet = {"since": cp.audit.mark(), "left": 45}

    def settled():
        if cp.writes_by(account, quiet["since"], ignore=("leases",)):
            quiet.update(since=cp.audit.mark(), left=45)
        quiet["left"] -= 1
        return quiet["left"] == 0
    cp.wait_for(settled, 30, "a settled operator", interval=0.1)
    mark = cp.audit.mark()
    cp.kubectl("label", "configmap", "ovmf", "-n", ns, "a=b")
    quiet.update(since=cp.audit.mark(), left=45)
    cp.wait_for(settled, 30, "a settled operator", interval=0.1)
    writes = cp.writes_by(account, mark, ignore=("leases",))
    assert writes == [], describe(writes)
