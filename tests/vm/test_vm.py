# SPDX-License-Identifier: MIT
"""A machine with a TPM encrypts its disk, boots again, opens it and seals the boot, also at the operator that took over from the
one that it registered at; what booted something else, or belongs to a Machine that is gone, does not. Without its disk it opens
a shell, sealed. One machine, six boots, in this order; both operators are the one process of --standalone."""

import hashlib
import json
import os
import time

import pytest

import debian
import guest
import machine
import spine
from controlplane import wait_for
from proc import free_port
from tecctl import Tecctl
from test_standalone import NS, Standalone

PROMPT = "Please unlock disk root"
TYPED = "typed by a person"
SEALED = hashlib.sha256(bytes(32) + hashlib.sha256(b"tec-node:sealed:-").digest()).hexdigest().upper()


def say(text):
    print(f"{time.strftime('%H:%M:%S')} {text}", flush=True)


class Boots:
    """What the boots share."""

    def __init__(self, work):
        self.work = work
        self.debian = debian.Debian()
        self.approved, self.other = self.debian.kernels
        ca = self.path("second.pem")
        certificate = Tecctl(None).out("bootstrap", "ca", "--out", ca)
        self.second, second_at = self.standalone("second", f"--node-ca={ca}")
        self.anchor, _ = self.standalone("anchor")
        self.decides(self.anchor.start())
        self.anchor.kubectl("create", "secret", "generic", "second-ca", "-n", NS, f"--from-literal=ca.crt={certificate}")
        # What fetches the configuration in the machine knows no CA.
        spine.merge(self.anchor, NS, "tec", "tec", {"spec": {
            "registerServerSecret": None, "attestationKeyRegisterSecret": None, "trustee": {"plaintext": "Allow"},
            "trusteeServers": [{"address": second_at, "caSecret": "second-ca"}]}})
        wait_for(self.configured, 60, "plain HTTP, and both servers in it")
        self.approve(self.approved)
        initrd = self.debian.initramfs(self.approved, self.path("initrd"))
        say(f"initramfs of {os.path.getsize(initrd) >> 10} KiB")
        self.disks = debian.make_disks(self.debian, initrd, self.approved,
                                       f"http://10.0.2.2:{self.anchor.register_port}/ignition", work)
        self.guest = guest.Guest(work, self.disks, os.path.join(machine.OVMF, "OVMF_VARS_4M.ms.fd"))

    def path(self, name):
        return os.path.join(self.work, name)

    def standalone(self, name, *args):
        """Not started; and where the machine sees its key broker."""
        port = free_port()
        address = f"10.0.2.2:{port}"
        return Standalone(self.path(name), f"--public-address={address}", f"--listen-kbs=127.0.0.1:{port}", *args), address

    def decides(self, operator):
        self.operator, self.ctl = operator, Tecctl(f"{operator.dir}/kubeconfig")

    def configured(self):
        status, _, body = spine.request(self.anchor.register_port, "GET", "/ignition")
        return status == 200 and len(spine.clevis_config(json.loads(body))["servers"]) == 2

    def hand_over(self):
        ends = ["--from", f"{self.anchor.dir}/kubeconfig:{NS}", "--to", f"{self.second.start().dir}/kubeconfig:{NS}"]
        for command in ("follow", "promote"):
            Tecctl(None).run(command, *ends, "--timeout=60", timeout=120)
        self.decides(self.second)

    def approve(self, version):
        root = self.debian.image(version, self.path(f"image-{version}"))
        self.ctl.run("image", "approve", "--rootfs", root, f"--name={name_of(version)}", timeout=300)

    def machines(self):
        return spine.items(self.operator, NS, "mach")

    def close(self):
        if hasattr(self, "guest"):
            self.guest.stop()
        for one in (self.anchor, self.second):
            if one.process and one.process.poll() is None:
                assert one.stop() == 0, one.log()
        self.debian.close()


def name_of(version):
    return "kernel-" + version.split("-")[1]


@pytest.fixture(scope="module")
def boots(tmp_path_factory):
    b = Boots(str(tmp_path_factory.mktemp("vm")))
    yield b
    b.close()


def test_an_empty_disk_is_encrypted_and_opens_at_the_next_boot(boots):
    g = boots.guest.start()
    g.until("@@ first boot")
    say("first boot: userland")
    g.until("@@ unlocked")
    say("clevis luks unlock opened the disk")
    g.until("@@ made")
    g.forget()
    g.until(PROMPT)
    say("second boot: prompt")
    g.until("@@ root made=")
    say("second boot: the file on the disk")
    g.until("kernel=")
    assert f" pcr15={SEALED} " in g.seen, "the root file system runs without the seal"
    boots.uuid = boots.machines()[0]["metadata"]["name"].removeprefix("machine-")
    assert "Unlocked /dev/disk/by-partlabel/root with clevis" in g.seen or "cryptsetup: root: set up successfully" in g.seen
    assert len(boots.machines()) == 1
    g.type("poweroff")
    g.ended()


def test_it_opens_at_the_operator_that_took_over(boots):
    boots.hand_over()
    assert boots.anchor.stop() == 0, boots.anchor.log()
    say("promoted, and the anchor is stopped")
    g = boots.guest.start()
    g.until(f" kernel={boots.approved}")
    say("the second server opened it")
    g.type("poweroff")
    g.ended()
    boots.anchor.start()  # which follows: it serves the machine from now on, too


def test_another_kernel_is_refused_until_its_image_is_approved(boots):
    initrd = boots.debian.initramfs(boots.other, boots.path("initrd-other"))
    debian.put_on_disk(boots.disks[0], {"vmlinuz": boots.debian.kernel(boots.other), "initrd": initrd})
    g = boots.guest.start()
    g.until("the server refused the request (PolicyDeny)")
    say("another kernel: refused, on the console")
    assert PROMPT in g.seen, "the prompt was not there before the refusal"
    assert "@@ root" not in g.seen
    wait_for(lambda: "reason=boot" in boots.operator.log(), 60, "the operator's line about the refusal")
    assert "PCR 4 is " in boots.ctl.out("why", f"machine-{boots.uuid}")
    g.until("still waiting for default/")
    boots.approve(boots.other)
    say("its image is approved")
    g.until(f" kernel={boots.other}")
    g.type("poweroff")
    g.ended()


def test_a_machine_that_was_deleted_gets_nothing_but_its_prompt_works(boots):
    boots.operator.kubectl("delete", f"machine/machine-{boots.uuid}", "--timeout=50s")
    wait_for(lambda: not spine.items(boots.anchor, NS, "mach"), 60, "the deletion at the anchor")
    g = boots.guest.start()
    g.until("the server refused the request (")
    say("deleted: refused, on the console")
    g.until("still waiting for default/")
    assert "@@ root" not in g.seen and PROMPT in g.seen
    g.type(TYPED)
    g.until(" kernel=")
    said = g.seen.split("@@ root made=")[1].split("\n")[0]
    assert "left= " in said, f"the pin goes on after the boot: {said}"
    say("a person's passphrase opened it")
    g.type("poweroff")
    g.ended()


def test_a_shell_without_the_disk_is_sealed(boots):
    g = boots.guest
    g.disks = boots.disks[:1]
    g.start()
    g.until("Dropping to a shell", "Gave up waiting for root")
    g.until("(initramfs)")
    say("no disk: a shell")
    g.type("cat /sys/class/tpm/tpm0/pcr-sha256/15")
    assert g.until(SEALED, "0" * 64, seconds=60) == SEALED
    g.type("poweroff -f")
    g.ended()
