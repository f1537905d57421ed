# SPDX-License-Identifier: MIT
"""The kubelet's part in a compute-pcrs Job: the real Job controller makes the Pod, nothing runs in it,
and what its container would have said is put into its status here. And that message, packed by a
writer of our own."""

import base64
import hashlib

import spine
from teckinds import GROUP

IDS = ["PcrRootNodeEvent", "Pcr4Platform", "Pcr4EfiCall", "Pcr4Separator", "Pcr4BootEntryFailed", "Pcr4Shim", "Pcr4FirmwareUpdate", "Pcr4Grub", "Pcr4Vmlinuz", "Pcr4Uki",
       "Pcr7SecureBoot", "Pcr7Pk", "Pcr7Kek", "Pcr7Db", "Pcr7Dbx", "Pcr7Dbt", "Pcr7Dbr", "Pcr7Separator", "Pcr7ShimCert", "Pcr7MokSbState",
       "Pcr7SbatLevel", "Pcr7GrubDbCert", "Pcr7GrubVendorDbCert", "Pcr7GrubMokListCert",
       "Pcr11Linux", "Pcr11LinuxContent", "Pcr11Osrel", "Pcr11OsrelContent", "Pcr11Cmdline",
       "Pcr11CmdlineContent", "Pcr11Initrd", "Pcr11InitrdContent", "Pcr11Uname", "Pcr11UnameContent",
       "Pcr11Sbat", "Pcr11SbatContent", "Pcr14MokList", "Pcr14MokListX", "Pcr14MokSbState", "Pcr14MokListTrusted", "Pcr14NoShim"]
TYPES = ["EV_EFI_ACTION", "EV_SEPARATOR", "EV_EFI_BOOT_SERVICES_APPLICATION",
         "EV_EFI_VARIABLE_DRIVER_CONFIG", "EV_EFI_VARIABLE_AUTHORITY", "EV_IPL", "EV_OMIT_BOOT_DEVICE_EVENTS", "EV_NO_ACTION"]


def _text(value):
    return bytes([len(value.encode())]) + value.encode()


def pack(entry):
    """An entry of image-pcrs as the packed values of a message."""
    hashes = []

    def events(pcrs):
        out = b""
        for event in [e for pcr in pcrs for e in pcr["events"]]:
            if event["hash"] not in hashes:
                hashes.append(event["hash"])
            out += bytes([IDS.index(event["id"]), TYPES.index(event["name"]), hashes.index(event["hash"])])
        return bytes([len(out) // 3]) + out
    out = events(entry["pcrs"]) + bytes([len(entry.get("variants", []))])
    for v in entry.get("variants", []):
        out += bytes([v["secure_boot"]]) + _text(v["when"]) + events(v["pcrs"])
    out += bytes([len(entry.get("platforms", []))])
    for p in entry.get("platforms", []):
        out += _text(p["name"]) + bytes.fromhex(p["variables"])
        out += b"\1" + _text(p["why"]) if "why" in p else b"\0" + events(p["pcrs"])
    return bytes([len(hashes)]) + b"".join(map(bytes.fromhex, hashes)) + out


def message(nonce, digest, entry):
    return f"tec-pcrs/3 {nonce} {digest} {base64.b64encode(pack(entry)).decode()}"


def nonce_of(job):
    args = job["spec"]["template"]["spec"]["containers"][0]["args"]
    return args[args.index("--nonce") + 1]


def digest_of(reference):
    return reference.rpartition("@sha256:")[2]


def pods_of(cp, ns, job):
    return [p for p in spine.items(cp, ns, "pods")
            if any(o["uid"] == job["metadata"]["uid"] and o.get("controller")
                   for o in p["metadata"].get("ownerReferences", []))]


def pod_of(cp, ns, job):
    return cp.wait_for(lambda: (pods_of(cp, ns, job) or [None])[0], 20, "the Job's Pod")


def ended(text, exit_code=0, container="compute-pcrs", restarts=0):
    """A Pod's status."""
    return {"phase": "Failed" if exit_code else "Succeeded", "containerStatuses": [{
        "name": container, "image": "x", "imageID": "x", "ready": False, "restartCount": restarts,
        "state": {"terminated": {"exitCode": exit_code, "reason": "Error" if exit_code else "Completed",
                                 "message": text}}}]}


def end(cp, ns, pod, text, **how):
    path = spine.path_of(ns, "pods", pod["metadata"]["name"]) + "/status"
    status, answer = cp.api("PATCH", path, {"status": ended(text, **how)}, "merge")
    assert status == 200, answer


def says(cp, ns, job, entry, **how):
    """The Job ends with these values, of an entry."""
    image = job["spec"]["template"]["spec"]["volumes"][0]["image"]["reference"]
    end(cp, ns, pod_of(cp, ns, job), message(nonce_of(job), digest_of(image), entry), **how)


def announced(cp, ns, name, mark):
    """What a mark of the operator says on an ApprovedImage."""
    image = spine.read(cp, ns, "ai", name)
    uid, _, payload = image["metadata"].get("annotations", {}).get(f"{GROUP}/{mark}", "").partition(" ")
    return payload if uid == image["metadata"]["uid"] else None


def sha256(text):
    return hashlib.sha256(text.encode()).hexdigest()
