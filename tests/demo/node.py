# SPDX-License-Identifier: MIT
"""A node of the demo: a TPM in software whose registers hold what firmware and boot loader of an image would have measured, the
built tec-node, Debian's clevis, and a disk that is a file."""

import hashlib
import http.client
import json
import os
import shutil
import ssl
import subprocess

import debfiles
import softtpm
import tecnode

SHIM = ("shim-signed", "usr/lib/shim/shimx64.efi.signed", "usr/lib/bootupd/updates/EFI/debian/shimx64.efi")
GRUB = ("grub-efi-amd64-signed", "usr/lib/grub/x86_64-efi-signed/grubx64.efi.signed",
        "usr/lib/bootupd/updates/EFI/debian/grubx64.efi")
KERNEL = ("linux-image-cloud-amd64", "boot/vmlinuz-*", "usr/lib/modules/6.1/vmlinuz")
OTHER_KERNEL = ("shim-helpers-amd64-signed", "usr/lib/shim/fbx64.efi.signed", KERNEL[2])
DISK_MB = 24


def make_image(root, *files):
    """Debian's signed boot files where an image of bootable containers has them. Returns root."""
    for package, pattern, target in files:
        to = os.path.join(root, target)
        os.makedirs(os.path.dirname(to), exist_ok=True)
        with open(debfiles.find(package, "amd64", pattern), "rb") as source, open(to, "wb") as f:
            f.write(source.read())
    return root


def measured(build, root):
    """What a machine that boots this image extends into its TPM: [(register, digest)]"""
    done = subprocess.run([os.path.join(build, "tec-compute-pcrs"), "all", "-r", root], capture_output=True, text=True,
                          timeout=60, check=True)
    return [(pcr["id"], event["hash"]) for pcr in json.loads(done.stdout)["pcrs"] for event in pcr["events"]]


class Node:
    def __init__(self, name, directory):
        self.name = name
        self.dir = os.path.join(directory, name)
        os.mkdir(self.dir)
        self.tpm = softtpm.SoftwareTPM()
        self.node = tecnode.TecNode(self.dir, self.tpm.tcti)
        self.disk = os.path.join(self.dir, "disk")
        self.pin = self.uuid = self.url = self.cert = None

    def stop(self):
        self.tpm.stop()

    @property
    def machine(self):
        return f"machine-{self.uuid}"

    def boot(self, events, again=True):
        """Power on: registers begin at zero, what is persistent in the TPM stays."""
        if again:
            self.tpm.restart()
        for register, digest in events:
            self.tpm.run("tpm2_pcrextend", f"{register}:sha256={digest}")

    def take(self, ignition):
        """The Ignition answer: what it says about the key of the disk."""
        self.pin = json.loads(ignition["storage"]["luks"][0]["clevis"]["custom"]["config"])
        self.uuid = self.pin["path"].split("/")[1]
        self.url, pem = self.pin["servers"][0]["url"], self.pin["servers"][0]["cert"]
        self.cert = os.path.join(self.dir, "servers.crt")
        with open(self.cert, "w", encoding="ascii") as f:
            f.write(pem)

    # The disk. Nothing here needs root: a volume in a file is opened without mapping it.

    def format(self):
        """LUKS2 with a key that only this node's TPM gets: what Ignition does with the answer."""
        with open(self.disk, "wb") as f:
            f.truncate(DISK_MB << 20)
        first = os.urandom(32).hex()
        self._good(["cryptsetup", "luksFormat", "--type", "luks2", "--batch-mode", "--pbkdf", "pbkdf2",
                    "--pbkdf-force-iterations", "1000", self.disk, "-"], first)
        key = os.path.join(self.dir, "first")
        with open(os.open(key, os.O_WRONLY | os.O_CREAT, 0o600), "w", encoding="ascii") as f:
            f.write(first)
        self._good(["clevis", "luks", "bind", "-y", "-k", key, "-d", self.disk, "trustee", json.dumps(self.pin)])
        os.unlink(key)
        # From here on only clevis opens it.
        self._good(["cryptsetup", "luksKillSlot", "--batch-mode", self.disk, "0"])

    def open(self):
        """Attests, gets the key, and opens the volume with it; the key goes from one program to the other."""
        passphrase = self._good(["clevis", "luks", "pass", "-d", self.disk, "-s", "1"])
        self._good(["cryptsetup", "open", "--test-passphrase", "--key-slot", "1", "--key-file", "-", self.disk], passphrase)

    def seal(self):
        """What the initial RAM disk does before it enters the root file system. The program is a copy, because it ends the
        pins that run the same file, and others on this machine may be other nodes'."""
        self._good([shutil.copy(tecnode.BINARY, self.dir), "seal"])

    def _good(self, argv, stdin=""):
        status, out, said = self.node.command(argv, stdin if isinstance(stdin, bytes) else stdin.encode())
        if status:
            raise RuntimeError(f"{' '.join(argv[:3])} on {self.name} ended with {status}: {said}")
        return out

    def ask(self, path=None):
        """One attestation and one resource: (exit status, what tec-node said)."""
        status, _, said = self.node.run("get-resource", f"--url={self.url}", f"--cert-file={self.cert}",
                                        f"--path={path or self.pin['path']}")
        return status, said.strip()

    # A thief who has recorded what went over the wire.

    def _post(self, path, body, cookie=None):
        host = self.url.removeprefix("https://")
        conn = http.client.HTTPSConnection(host, timeout=30, context=ssl.create_default_context(cafile=self.cert))
        try:
            headers = {"Content-Type": "application/json", **({"Cookie": cookie} if cookie else {})}
            conn.request("POST", f"/kbs/v0/{path}", json.dumps(body), headers)
            answer = conn.getresponse()
            return answer.status, answer.getheader("Set-Cookie", "").split(";")[0], json.loads(answer.read())
        finally:
            conn.close()

    def attest_by_hand(self, recorded=None):
        """(status, answer, quote): an attestation with a fresh quote, or with one that was recorded."""
        _, cookie, challenge = self._post("auth", {"version": "0.4.0", "tee": "tpm", "extra-params": {}})
        key = {"kty": "EC", "crv": "P-256", "alg": "ECDH-ES+A256KW",
               "x": "MKBCTNIcKUSDii11ySs3526iDZ8AiTo7Tu6KPAqv7D4", "y": "4Etl6SRW2YiLUrN5vfvVHuhp7x8PxltmWWlbbM4IFyM"}
        runtime = {"nonce": challenge["nonce"], "tee-pubkey": key}
        bound = hashlib.sha384(json.dumps({**runtime, "additional-evidence": ""}, sort_keys=True,
                                          separators=(",", ":")).encode()).digest()
        quote = recorded or json.loads(self._good([tecnode.BINARY, "quote", f"--extra={bound[:32].hex()}"]))
        status, _, answer = self._post("attest", {"runtime-data": runtime, "tee-evidence": {
            "primary_evidence": quote, "additional_evidence": ""}}, cookie)
        return status, answer, quote
