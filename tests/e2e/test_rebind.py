# SPDX-License-Identifier: MIT
"""tec-node rebind-servers: a disk of an installed node is opened at another operator, which has the same
keys, after the first one is gone. Nothing that fails or is killed on the way closes the disk."""

import base64
import json
import os
import shutil
import subprocess
import time

import pytest

import softtpm
import spine
import tecnode
from controlplane import wait_for
from proc import free_port
from tecctl import Tecctl
from test_images import registry
from test_node import SECRET, Machine
from test_standalone import Standalone, backup_of, run_operator
from test_standalone_attest import approve_image

NS = "trusted-execution-clusters"

pytestmark = [
    pytest.mark.xdist_group("test_rebind"),  # one at a time on a machine
    pytest.mark.skipif(softtpm.missing() is not None, reason=str(softtpm.missing())),
    pytest.mark.skipif(tecnode.missing_tools() is not None, reason=str(tecnode.missing_tools())),
]


def write(path, servers):
    path.write_text(json.dumps({"servers": servers}))
    return path


class World:
    """An anchor, a node with a disk bound to it, and a target that was restored from the anchor."""

    def __init__(self, path):
        self.path = path
        self.anchor = Standalone(str(path / "anchor"), "--public-address=127.0.0.1",
                                 f"--insecure-registry={registry()}").start()
        self.target = self.machine = None

    def set_up(self):
        spine.machine_at_request(self.anchor, NS)
        approve_image(self.anchor, "a")
        folder = self.path / "node"
        folder.mkdir()
        self.machine = Machine(self.anchor, folder)
        self.node = self.machine.node
        self.base = str(self.path / "base")
        with open(self.base, "wb") as f:
            f.truncate(24 << 20)
        subprocess.run(["cryptsetup", "luksFormat", "--type", "luks2", "--batch-mode", "--pbkdf", "pbkdf2",
                        "--pbkdf-force-iterations", "1000", self.base, "-"], input=SECRET, check=True)
        keyfile = folder / "keyfile"
        keyfile.write_bytes(SECRET)
        self.node.good("clevis", "luks", "bind", "-y", "-k", str(keyfile), "-d", self.base, "trustee",
                       self.machine.here())
        self.start_target()
        # The list as an administrator gets it has both; most tests want to know that it is the second one.
        spine.merge(self.anchor, NS, "tec", "tec", {"spec": {"trusteeServers": [
            {"address": f"127.0.0.1:{self.target.kbs}", "caSecret": "standalone-tls"}]}})
        self.both = self.path / "both.json"
        self.both.write_text(Tecctl(f"{self.anchor.dir}/kubeconfig").out("bootstrap", "servers"))
        self.file = write(self.path / "servers.json", json.loads(self.both.read_text())["servers"][1:])

    def start_target(self):
        self.target = Standalone(str(self.path / "target"), "--public-address=127.0.0.1",
                                 f"--insecure-registry={registry()}")
        file = backup_of(self.anchor, str(self.path / "backup"))
        os.mkdir(self.target.dir, 0o700)
        shutil.copy(f"{self.anchor.dir}/sealing.key", self.target.dir)
        status, said = run_operator(f"--standalone={self.target.dir}", f"--restore={file}")
        assert status == 0, said
        self.target.start()
        self.target.kubectl("wait", "tec/tec", "--for=condition=TrusteeSynced", "--timeout=50s")

    def stop(self):
        if self.machine:
            self.machine.stop()
        for one in (self.anchor, self.target):
            if one and one.process and one.process.poll() is None:
                assert one.stop() == 0, one.log()

    def servers(self):
        return json.loads(self.file.read_text())["servers"]


@pytest.fixture(scope="module")
def world(tmp_path_factory):
    w = World(tmp_path_factory.mktemp("rebind"))
    try:
        w.set_up()
        yield w
    finally:
        w.stop()


class Disk:
    """A copy of the node's disk."""

    def __init__(self, world, path):
        self.world, self.node = world, world.node
        self.path = str(path)
        shutil.copyfile(world.base, self.path)

    def rebind(self, file=None, *args, env=None, binary=tecnode.BINARY):
        """(exit status, standard output, standard error)"""
        done = subprocess.run([binary, "rebind-servers", str(file or self.world.file), f"--device={self.path}",
                               *args], capture_output=True, text=True, check=False, timeout=120,
                              env={**self.node.env, **(env or {})}, cwd=self.node.dir)
        return done.returncode, done.stdout, done.stderr

    def tokens(self):
        """{number: (key slots, the pin's part of the protected header)}"""
        text = subprocess.run(["cryptsetup", "luksDump", "--dump-json-metadata", self.path], check=True,
                              capture_output=True).stdout
        found = {}
        for number, token in json.loads(text)["tokens"].items():
            part = token["jwe"]["protected"]
            found[number] = (token["keyslots"],
                             json.loads(base64.urlsafe_b64decode(part + "=" * (-len(part) % 4)))["clevis"])
        return found

    def bytes(self):
        with open(self.path, "rb") as f:
            return f.read()

    def opens(self):
        """As clevis does it at boot: the passphrase of the token, and the key slot that it opens."""
        passphrase = self.node.good("clevis", "luks", "pass", "-d", self.path, "-s", "1")
        return self.node.command(["cryptsetup", "open", "--test-passphrase", "--key-slot", "1", self.path],
                                 passphrase)[0] == 0

    def is_bound(self, servers):
        (slots, pin), = self.tokens().values()
        assert slots == ["1"] and pin["servers"] == servers, pin
        assert pin["path"] == self.world.machine.path and pin["initdata"] is None


@pytest.fixture(name="disk")
def _disk(world, tmp_path):
    return Disk(world, tmp_path / "disk")


def test_a_disk_gets_the_new_servers(world, disk):
    before = disk.bytes()
    status, out, said = disk.rebind(None, "--dry-run")
    assert status == 0 and out == "" and "nothing was changed" in said, said
    assert disk.bytes() == before
    status, out, said = disk.rebind()
    assert status == 0, said
    assert out == f'"{disk.path}": bound to the servers in the list\n'
    assert f"https://127.0.0.1:{world.target.kbs} provided the key" in said
    disk.is_bound(world.servers())
    assert disk.opens()
    passphrase = disk.node.good("clevis", "luks", "pass", "-d", disk.path, "-s", "1").decode()
    key = json.loads(world.machine.disk_key())["key"]
    assert passphrase not in out + said and key not in out + said
    after = disk.bytes()
    status, _, said = disk.rebind()
    assert (status, said) == (0, "") and disk.bytes() == after, "what is bound is left alone"
    status, _, said = disk.rebind(None, "--dry-run")
    assert status == 0 and "nothing to change" in said, said
    assert tecnode.leftovers(world.machine.tpm) == []
    # Another list later: in its order, with a server that is not there yet.
    later = [{"url": f"https://127.0.0.1:{free_port()}", "cert": ""}, world.machine.server()]
    status, _, said = disk.rebind(write(world.path / "later", later))
    assert status == 0 and "refused" in said, said
    disk.is_bound(later)
    assert disk.opens()


def test_no_passphrase_on_a_command_line_or_in_a_file(world, disk, tmp_path):
    """What cryptsetup is called with, and what is left of a run in a directory for temporary files."""
    bin_, seen, tmp = tmp_path / "bin", tmp_path / "seen", tmp_path / "tmp"
    bin_.mkdir()
    tmp.mkdir()
    script(bin_ / "cryptsetup", f'printf "%s " "$@" >>{seen}; env >>{seen}; exec {shutil.which("cryptsetup")} "$@"\n')
    status, _, said = disk.rebind(env={"PATH": f"{bin_}:{os.environ['PATH']}", "TMPDIR": str(tmp)})
    assert status == 0, said
    passphrase = disk.node.good("clevis", "luks", "pass", "-d", disk.path, "-s", "1").decode()
    text = seen.read_text()
    assert "--test-passphrase" in text and passphrase not in text and os.listdir(tmp) == []


def script(path, text):
    path.write_text("#!/bin/sh\n" + text)
    path.chmod(0o755)


@pytest.mark.parametrize("text, words", [
    ("", "JSON"), ("[]", "must be a JSON object"), ('{"servers":[]}', "1 to 16"),
    ('{"servers":[{"url":"https://a","cert":""}],"path":"default/x/root"}', "unexpected member"),
    ('{"servers":[{"url":"https://a","cert":"","path":"default/x/root"}]}', "only url and cert"),
    ('{"servers":[{"url":"https://a","cert":"x"}]}', "servers[0].cert"), ("\0", "JSON"), (" " * 300000, "large"),
    (None, "No such file"),
], ids=["empty", "list", "no-server", "path", "path-of-a-server", "cert", "nul", "large", "none"])
def test_a_wrong_file_changes_nothing(disk, tmp_path, text, words):
    before = disk.bytes()
    file = tmp_path / "file"
    if text is not None:
        file.write_text(text)
    status, out, said = disk.rebind(file)
    assert (status, out) == (2, "") and words.lower() in said.lower(), said
    assert disk.bytes() == before


def test_servers_without_the_key_change_nothing(world, disk, tmp_path):
    """Dead, an operator that knows the machine not, and one whose certificate is another's."""
    before = disk.bytes()
    stranger = Standalone(str(tmp_path / "stranger"), "--public-address=127.0.0.1").start()
    try:
        cert = base64.b64decode(stranger.get(spine.path_of(NS, "secrets", "standalone-tls"))["data"]["ca.crt"])
        for server, code, words in (
                ({"url": f"https://127.0.0.1:{free_port()}", "cert": ""}, 4, "refused"),
                ({"url": f"https://127.0.0.1:{stranger.kbs}", "cert": cert.decode()}, 1, "refused the request"),
                ({"url": f"https://127.0.0.1:{world.target.kbs}", "cert": cert.decode()}, 4, "certificate")):
            status, out, said = disk.rebind(write(tmp_path / "file", [server]))
            assert (status, out) == (code, ""), said
            assert words in said and "no listed server provided the key for token 0; no token was removed" in said
            assert disk.bytes() == before
    finally:
        assert stranger.stop() == 0, stranger.log()


def test_another_key_under_the_same_path_changes_nothing(world, disk, tmp_path):
    """An operator that made a key of its own for the machine: it serves one, and it does not open the disk."""
    disk_id, before = world.machine.uuid, disk.bytes()
    other = Standalone(str(tmp_path / "other"), "--public-address=127.0.0.1", f"--insecure-registry={registry()}").start()
    try:
        spine.machine_at_request(other, NS)
        approve_image(other, "a")
        status, answer = other.api("POST", spine.path_of(NS, "mach"), {
            "apiVersion": "trusted-execution-clusters.io/v1alpha1", "kind": "Machine",
            "metadata": {"name": f"machine-{disk_id}"}, "spec": {"id": disk_id}})
        assert status == 201, answer
        with open(world.node.ak_file, encoding="ascii") as f:
            assert spine.register(other, f.read(), disk_id)[0] == 201
        other.kubectl("wait", f"machine/machine-{disk_id}", "--for=condition=Ready", "--timeout=50s")
        file = tmp_path / "file"
        file.write_text(Tecctl(f"{other.dir}/kubeconfig").out("bootstrap", "servers"))
        status, _, said = disk.rebind(file)
        assert status == 5 and "the server's key does not decrypt the token of the disk" in said, said
        assert disk.bytes() == before
        # After a server that has the right one it does no harm.
        assert disk.rebind(write(file, json.loads(file.read_text())["servers"] + world.servers()))[0] == 0
        assert disk.opens()
    finally:
        assert other.stop() == 0, other.log()


def test_disks_that_cannot_be_changed(world, disk, tmp_path):
    with open(tmp_path / "empty", "wb") as f:
        f.truncate(1 << 20)
    empty = Disk(world, tmp_path / "copy")
    for path, words in ((tmp_path / "empty", "cannot be read as LUKS2"), (tmp_path / "none", "cannot be read as LUKS2"),
                        ("--help", "cannot be read as LUKS2")):
        empty.path = str(path)
        status, out, said = empty.rebind()
        assert (status, out) == (6, "") and words in said, said
    subprocess.run(["cryptsetup", "token", "remove", "--token-id", "0", disk.path], check=True)
    status, out, said = disk.rebind()
    assert (status, out) == (6, "") and "no token of the clevis pin trustee" in said, said
    status, _, said = disk.rebind(env={"PATH": str(tmp_path)})
    assert status == 6 and "cryptsetup cannot be started" in said, said


def test_a_list_that_the_header_has_no_room_for(world, disk, tmp_path):
    before = disk.tokens()
    status, out, said = disk.rebind(write(tmp_path / "file", world.servers() * 16))
    assert (status, out) == (6, "") and "because the header is full; no token was removed" in said, said
    assert disk.tokens() == before and disk.opens()


def test_a_token_that_opens_nothing_is_not_replaced(world, disk):
    """The key slot has another passphrase than the token: a disk that is opened by hand since."""
    subprocess.run(["cryptsetup", "luksKillSlot", "--batch-mode", disk.path, "1"], check=True)
    dump = disk.tokens()
    assert [slots for slots, _ in dump.values()] == [[]]
    assert disk.rebind()[0] == 6
    token = subprocess.run(["cryptsetup", "token", "export", "--token-id", "0", disk.path], check=True,
                           capture_output=True).stdout
    token = json.dumps({**json.loads(token), "keyslots": ["0"]}).encode()
    subprocess.run(["cryptsetup", "token", "remove", "--token-id", "0", disk.path], check=True)
    subprocess.run(["cryptsetup", "token", "import", disk.path], input=token, check=True)
    before = disk.bytes()
    status, _, said = disk.rebind()
    assert status == 6 and "does not open its key slot; no token was removed" in said, said
    assert disk.bytes() == before


@pytest.mark.parametrize("when", ["before", "after"])
def test_killed_at_each_child(world, tmp_path, when):
    """kill -9 of tec-node as each cryptsetup starts, and as each has ended: the disk opens, and the next
    run completes it."""
    bin_, count = tmp_path / "bin", tmp_path / "count"
    bin_.mkdir()
    real, kill = shutil.which("cryptsetup"), "kill -9 $PPID; sleep 5"
    script(bin_ / "cryptsetup",
           f'n=$(($(cat {count}) + 1)); echo $n >{count}\n'
           f'[ $n != "$KILL" ] || [ {when} != before ] || {{ {kill}; }}\n'
           f'{real} "$@"; status=$?\n'
           f'[ $n != "$KILL" ] || {{ {kill}; }}\n'
           f'exit $status\n')
    seen = set()
    for number in range(1, 20):
        disk = Disk(world, tmp_path / "disk")
        count.write_text("0")
        env = {"PATH": f"{bin_}:{world.node.env['PATH']}", "KILL": str(number)}
        status, _, said = disk.rebind(env=env)
        if status == 0:
            break
        assert status == -9, said
        seen.add(tuple(sorted(disk.tokens())))
        assert disk.opens(), number
        status, _, said = disk.rebind()
        assert status == 0, said
        disk.is_bound(world.servers())
        assert disk.opens(), number
    assert number == 9, "a look, then test, import, look, test, look, remove, look"
    assert seen == {("0",), ("0", "1"), ("1",)}


def test_two_runs_at_once(world, disk):
    """The second one is told; the disk has one token in the end."""
    both = [subprocess.Popen([tecnode.BINARY, "rebind-servers", str(world.file), f"--device={disk.path}"],
                             env=world.node.env, cwd=world.node.dir, stdout=subprocess.PIPE,
                             stderr=subprocess.PIPE, text=True) for _ in range(2)]
    said = [p.communicate(timeout=120)[1] for p in both]
    codes = sorted(p.returncode for p in both)
    if os.access("/run", os.W_OK):
        assert codes in ([0, 6], [0, 0]), said
        assert codes == [0, 0] or any("another tec-node rebind-servers is running" in s for s in said), said
    assert disk.rebind()[0] == 0
    disk.is_bound(world.servers())


def test_without_a_device_open_disks_are_looked_for(world):
    done = subprocess.run([tecnode.BINARY, "rebind-servers", str(world.file)], env=world.node.env, check=False,
                          capture_output=True, text=True, timeout=60)
    assert done.returncode in (2, 6) and "give the disk with --device" in done.stderr, done


def test_the_disk_opens_after_the_first_operator_is_gone(world, disk):
    """Last: also one that is rebound only then, and with the list that names both."""
    late = Disk(world, disk.path + ".late")
    assert disk.rebind()[0] == 0
    assert world.anchor.stop() == 0, world.anchor.log()
    assert disk.opens()
    began = time.monotonic()
    status, _, said = late.rebind()
    assert status == 0 and time.monotonic() - began < 30, said
    assert late.opens()
    status, _, said = late.rebind(world.both)
    assert status == 0 and "refused" in said, said
    late.is_bound(json.loads(world.both.read_text())["servers"])
    assert late.opens()
    world.target.kubectl("delete", f"machine/{world.machine.name}", "--timeout=50s")
    wait_for(lambda: disk.rebind(write(world.path / "again", [dict(world.servers()[0], url=world.machine.url)]))[0] == 4,
             30, "nobody has the key")
    disk.is_bound(world.servers())
