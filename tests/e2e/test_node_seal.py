# SPDX-License-Identifier: MIT
"""tec-node seal: PCR 15 is extended before the root file system is entered, whatever the TPM does; and what the hooks for
initramfs-tools and dracut put into an initial RAM disk."""

import concurrent.futures
import hashlib
import os
import shutil
import signal
import subprocess
import sys

import pytest

import tecnode
import softtpm
from controlplane import TOP, wait_for
from proc import free_port

HERE = os.path.dirname(os.path.abspath(__file__))
UUID = "11111111-2222-3333-4444-555555555555"
BANKS = ("sha1", "sha256", "sha384")
ZERO = bytes(32)

with_tpm = pytest.mark.skipif(softtpm.missing() is not None, reason=str(softtpm.missing()))


@pytest.fixture(name="tpm")
def _tpm():
    with softtpm.SoftwareTPM() as t:
        yield t


@pytest.fixture(name="node")
def _node(tpm, tmp_path):
    return machine(tpm, tmp_path)


def machine(tpm, directory):
    """With a file of its own for tec-node: the seal ends what runs the same file, and other tests run pins."""
    node = tecnode.TecNode(str(directory), tpm.tcti)
    node.binary = os.path.join(node.dir, "tec-node")
    # By another process: one that this one starts meanwhile would have the file open for writing, so that it could not run.
    subprocess.run(["cp", tecnode.BINARY, node.binary], check=True)
    for name in tecnode.PINS:
        os.unlink(os.path.join(node.dir, name))
        os.symlink("tec-node", os.path.join(node.dir, name))
    return node


def seal(node, *args, timeout=30):
    status, out, said = node.command([node.binary, "seal", *args], timeout=timeout)
    return status, out.decode(), said


def pcr15(tpm, bank="sha256"):
    tpm.run("tpm2_pcrread", f"{bank}:15", "-o", "value")
    with open(tpm.path("value"), "rb") as f:
        return f.read()


def extended(bank, *texts):
    value = bytes(hashlib.new(bank).digest_size)
    for text in texts:
        value = hashlib.new(bank, value + hashlib.new(bank, text).digest()).digest()
    return value


# ---- the command

@with_tpm
def test_every_bank_is_extended_once_per_boot(tpm, node):
    assert seal(node) == (0, "sealed: PCR 15 is extended\n", "")
    for bank in BANKS:
        assert pcr15(tpm, bank) == extended(bank, b"tec-node:sealed:-")
    assert seal(node, f"--uuid={UUID}") == (0, "sealed before: PCR 15 is not zero\n", "")
    assert pcr15(tpm) == extended("sha256", b"tec-node:sealed:-")
    tpm.restart()
    assert pcr15(tpm) == ZERO
    assert seal(node, f"--uuid={UUID}")[0] == 0
    assert pcr15(tpm) == extended("sha256", b"tec-node:sealed:" + UUID.encode())
    assert tecnode.leftovers(tpm) == []


@with_tpm
def test_only_the_sha256_bank_decides(tpm, node):
    tpm.run("tpm2_pcrextend", f"15:sha1={'5a' * 20},sha384={'5a' * 48}")
    assert seal(node)[0] == 0
    assert pcr15(tpm) == extended("sha256", b"tec-node:sealed:-")
    tpm.restart()
    tpm.run("tpm2_pcrextend", f"15:sha256={'5a' * 32}")
    other = pcr15(tpm)
    assert seal(node) == (0, "sealed before: PCR 15 is not zero\n", "")
    assert pcr15(tpm) == other and pcr15(tpm, "sha1") == bytes(20)


@with_tpm
def test_a_tpm_that_dies_at_any_command_is_sealed_or_an_error(tmp_path):
    def die(at):
        with softtpm.SoftwareTPM() as tpm:
            os.mkdir(tmp_path / str(at))
            through = f"cmd:{sys.executable} -B {HERE}/tpmpipe.py {tpm.socket} {at} die"
            status, _, said = seal(machine(tpm, tmp_path / str(at)), f"--tcti={through}", "--timeout=1")
            assert (status, "this boot is not sealed" in said) == ((0, False) if pcr15(tpm) != ZERO else (3, True)), (at, said)
            return status

    with concurrent.futures.ThreadPoolExecutor(4) as pool:
        found = list(pool.map(die, range(12)))
    assert found[0] == 3 and found[-1] == 0 and sorted(found, reverse=True) == found


@with_tpm
def test_the_modules_of_a_tpm_that_is_not_there_are_loaded(tpm, node):
    away = tpm.socket + ".away"
    os.rename(tpm.socket, away)
    modprobe = os.path.join(node.dir, "modprobe")
    with open(modprobe, "w", encoding="ascii") as f:
        f.write(f'#!/bin/sh\necho "$@" >>{node.dir}/loaded\nsleep 0.3\nmv {away} {tpm.socket}\n')
    os.chmod(modprobe, 0o755)
    assert seal(node)[0] == 0
    with open(os.path.join(node.dir, "loaded"), encoding="ascii") as f:
        loaded = f.read().splitlines()
    assert len(loaded) == 1 and {"tpm_tis", "tpm_crb"} <= set(loaded[0].split())
    assert pcr15(tpm) != ZERO


@with_tpm
def test_pins_that_wait_are_ended_and_nothing_else(tpm, node):
    waiting = [subprocess.Popen(argv, executable=node.binary, stdin=subprocess.PIPE, env=node.env, cwd=node.dir) for argv in (
        [f"{node.dir}/clevis-decrypt-trustee"], [node.binary, f"--tcti={tpm.tcti}", "decrypt"], [node.binary, "decrypt"])]
    waiting[2].send_signal(signal.SIGSTOP)
    port = free_port()
    serve = subprocess.Popen([node.binary, "serve", "--url=http://127.0.0.1:1", f"--listen=127.0.0.1:{port}"], env=node.env,
                             stderr=subprocess.PIPE)
    other = subprocess.Popen([tecnode.BINARY, "decrypt"], stdin=subprocess.PIPE, env=node.env)
    try:
        wait_for(lambda: all(os.readlink(f"/proc/{p.pid}/exe") == node.binary for p in waiting + [serve]), 10, "the processes")
        assert seal(node)[0] == 0
        assert [p.wait(1) for p in waiting] == [-signal.SIGTERM, -signal.SIGTERM, -signal.SIGKILL]
        assert serve.poll() is None and other.poll() is None
    finally:
        for p in waiting + [serve, other]:
            p.kill()
            p.wait()
            (p.stdin or p.stderr).close()


def in_namespace(*argv):
    """reboot(2) ends the first process of a PID namespace with SIGHUP, and nothing else. It never runs outside of one."""
    here = os.readlink("/proc/self/ns/pid")
    return ["unshare", "--user", "--map-root-user", "--pid", "--fork", "--kill-child", "sh", "-c",
            'test "$(readlink /proc/self/ns/pid)" != "$0" && exec "$@"', here, *argv]


def test_what_cannot_be_sealed_reboots_if_it_is_told_to(tmp_path):
    if subprocess.run(in_namespace("true"), check=False, capture_output=True).returncode != 0:
        pytest.skip("needs user namespaces")
    gone = f"--tcti=swtpm:path={tmp_path}/nothing"
    for args, ends in (([], 3), (["--or-reboot"], -signal.SIGHUP)):
        done = subprocess.run(in_namespace(tecnode.BINARY, "seal", gone, "--timeout=1", *args), check=False, timeout=30,
                              capture_output=True, text=True, env={**os.environ, "TEC_NODE_CONFIG": ""})
        assert done.returncode == ends and "this boot is not sealed" in done.stderr, done
        assert ("rebooting" in done.stderr) == bool(args)


# ---- initramfs-tools

SCRIPT = os.path.join(TOP, "etc/initramfs-tools/tec-node-seal")
STAGES = ("local-premount", "local-bottom", "init-bottom", "panic")


def hook(directory, configuration):
    """The folder that becomes the initial RAM disk; initramfs-tools' own functions are stand-ins."""
    conf, image, functions = directory / "tec-node.conf", directory / "image", directory / "functions"
    if configuration is not None:
        conf.write_text(configuration)
    for folder in ("usr/bin", "scripts/local-premount", str(directory).lstrip("/")):
        (image / folder).mkdir(parents=True)
    for name in ("resume", "other"):
        (image / "scripts/local-premount" / name).touch(mode=0o755)
    for stage in STAGES:  # mkinitramfs copies what is installed, before it runs the hooks
        (image / "scripts" / stage).mkdir(exist_ok=True)
        shutil.copy(SCRIPT, image / "scripts" / stage)
    (directory / "libtss2-tcti-device.so.0").touch()
    (directory / "tec-node").touch(mode=0o755)
    functions.write_text('copy_exec() { :; }\nmanual_add_modules() { :; }\n'
                         'copy_file() { mkdir -p "$DESTDIR${2%/*}"; cp "$2" "$DESTDIR$2"; }\n')
    with open(os.path.join(TOP, "etc/initramfs-tools/tec-node"), encoding="utf-8") as f:
        text = f.read()
    for was, now in (("/usr/share/initramfs-tools/hook-functions", functions), ("/etc/tec-node.conf", conf),
                     ("/usr/lib/*-linux-gnu", directory)):
        assert was in text
        text = text.replace(was, str(now))
    subprocess.run(["sh", "-c", text, "hook"], check=True, timeout=20,
                   env={**os.environ, "DESTDIR": str(image), "PATH": f"{directory}:{os.environ['PATH']}"})
    return image


def test_the_initramfs_hook_keeps_the_last_line_of_the_configuration(tmp_path):
    """A file whose last line has no end."""
    image = hook(tmp_path, "retries = 3\ncert-file = /etc/ca.pem")
    lines = (image / str(tmp_path / "tec-node.conf").lstrip("/")).read_text().split("\n")
    assert "cert-file = /etc/ca.pem" in lines and "console = /dev/console" in lines, lines


@pytest.mark.parametrize("configuration, on", [
    (None, False), ("", False), ("# seal = true\n", False), ("seal = false\n", False), ("  seal=false  \n", False),
    ("timeout = 3\n\tseal =true", True), ("seal = true\n", True), ("seal = yes\n", True), ("seal =\n", True)])
def test_the_initramfs_hook_seals_if_it_is_told_to(tmp_path, configuration, on):
    scripts = hook(tmp_path, configuration) / "scripts"
    assert [os.access(scripts / stage / "tec-node-seal", os.X_OK) for stage in STAGES] == [on] * 4
    assert (scripts / "local-premount/resume").exists() != on and (scripts / "local-premount/other").exists()


def test_the_initramfs_script_does_not_go_on_without_the_seal(tmp_path):
    """As initramfs-tools runs it: with a TPM that does not work at first, a reboot that fails, and signals."""
    tools = tmp_path / "tools"
    tools.mkdir()
    for name, text in (("tec-node", 'kill -TERM $PPID\nkill -INT $PPID\necho "$@" >>ran\n[ $(grep -c . ran) -ge 3 ]\n'),
                       ("reboot", 'echo "$@" >>rebooted\n'), ("sleep", "")):
        (tools / name).write_text("#!/bin/sh\n" + text)
        (tools / name).chmod(0o755)
    env = {**os.environ, "PATH": f"{tools}:{os.environ['PATH']}"}
    assert subprocess.run([SCRIPT, "prereqs"], check=True, capture_output=True, env=env, cwd=tmp_path).stdout == b"clevis\n"
    assert not (tmp_path / "ran").exists()
    subprocess.run([SCRIPT], check=True, timeout=20, env=env, cwd=tmp_path)
    assert (tmp_path / "ran").read_text() == "seal --or-reboot\n" * 3
    assert (tmp_path / "rebooted").read_text() == "-f\n" * 2


# ---- dracut

def dracut(directory, module, configuration, call):
    """Sources the module as dracut does, whose own functions are stand-ins."""
    conf = directory / "tec-node.conf"
    if configuration is not None:
        conf.write_text(configuration)
    with open(os.path.join(TOP, "etc", module, "module-setup.sh"), encoding="utf-8") as f:
        text = f.read().replace("/etc/tec-node.conf", str(conf))
    return subprocess.run(["bash", "-ec", f"""
        initdir={directory}/image moddir={TOP}/etc/{module} systemdsystemunitdir=/usr/lib/systemd/system
        systemdutildir=/usr/lib/systemd
        inst_multiple() {{ :; }}; inst_libdir_file() {{ :; }}
        inst_simple() {{ mkdir -p "$initdir${{2%/*}}"; cp "$1" "$initdir$2"; }}
        {text}
        {call}"""], check=True, timeout=20, capture_output=True, text=True).stdout


@pytest.mark.parametrize("configuration, on", [(None, False), ("seal = false\n", False), ("seal = true\n", True), ("seal=1", True)])
def test_the_dracut_module_of_the_pin_needs_the_seal_if_it_is_told_to(tmp_path, configuration, on):
    assert ("tec-node-seal" in dracut(tmp_path, "dracut", configuration, "depends").split()) == on


def test_the_dracut_module_seals_before_shells_and_the_root(tmp_path):
    image = tmp_path / "image"
    for name in ("usr/lib/systemd/system-generators/systemd-hibernate-resume-generator", "lib/dracut/resume.sh",
                 "usr/lib/systemd/system/systemd-hibernate-resume@.service", "usr/lib/systemd/system/initrd.target"):
        (image / name).parent.mkdir(parents=True, exist_ok=True)
        (image / name).touch()
    dracut(tmp_path, "dracut-seal", None, "install")
    left = sorted(str(p.relative_to(image)) for p in image.rglob("*") if not p.is_dir())
    assert not [name for name in left if "resume" in name], left
    for unit in ("initrd-switch-root", "emergency", "rescue", "dracut-emergency", "debug-shell"):
        text = (image / f"etc/systemd/system/{unit}.service.d/zz-tec-node-seal.conf").read_text()
        assert "\nExecStartPre=tec-node seal --or-reboot\n" in text
    wanted = os.readlink(image / "etc/systemd/system/initrd.target.requires/tec-node-seal.service")
    assert (image / wanted.lstrip("/")).exists()
