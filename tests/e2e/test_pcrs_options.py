# SPDX-License-Identifier: MIT
"""The command line of tec-compute-pcrs: what it refuses, with which exit code and words. No root of
a bootable image is needed."""

import os
import subprocess

import pytest

import pcrstool
from pcrstool import run

JOB = ["--image", "a.io/b@sha256:" + "0" * 64, "--nonce", "0" * 32]


@pytest.mark.parametrize("args, named", [
    ([], "no command"), (["every"], '"every"'), ([""], '""'), (["all", "pcr4"], '"pcr4"'),
    (["all", ""], '""'), (["--"], "--"), (["-"], '"-"'), (["-x"], "-x"), (["all", "-vx"], "-vx"),
    (["all", "--no-such"], "--no-such"), (["all", "--no-such=1"], "--no-such"),
    (["all", "-r"], "--rootfs"), (["all", "--rootfs"], "--rootfs"), (["all", "--efivars"], "--efivars"),
    (["all", "--efivars="], "--efivars"), (["all", "-r", ""], "--rootfs"), (["all", "-r="], "--rootfs"),
    (["all", "-r", "/", "--rootfs=/"], "--rootfs"), (["all", "--uki", "--uki"], "--uki"),
    (["all", "--uki=maybe"], "--uki"), (["all", "--secureboot-disabled=1"], "--secureboot-disabled"),
    (["--help=1"], "--help"), (["--version=1"], "--version"),
    (["pcr7"], "--efivars"), (["pcr11"], "UKI"), (["pcr11", "a", "b"], '"b"'), (["verify"], "EVENTLOG"),
    # Options that would do nothing.
    (["pcr11", "x", "--mok-variables", "/"], "--mok-variables"), (["pcr11", "x", "--uki"], "--uki"),
    (["pcr14", "--efivars", "/"], "--efivars"), (["pcr14", "--uki"], "--uki"),
    (["verify", "x", "--variants"], "--variants"), (["all", *JOB], "--nonce"),
    (["all", "--nonce", "x"], "--nonce"), ([*JOB, "--uki"], "--uki"),
    # Fetching.
    (["digest"], "FILE..."), (["extract-vars", "x"], "LOG DIR"), (["extract-vars", "x", "y", "z"], '"z"'),
    (["extract-platform", "x"], "LOG DIR"),
    (["all", "--boot-path=Some"], "--boot-path"), (["all", "--efivars-from-log"], "--efivars-from-log"),
    (["fetch"], "REF"), (["all", "--into", "x"], "--into needs --image"),
    (["all", "--image", "a.io/b:1", "-r", "/"], "--rootfs"), ([*JOB, "--into=x", "-r", "/"], "--rootfs"),
    (["all", "--timeout=5"], "--timeout needs --image"), ([*JOB, "--arch=s390x"], "--arch needs --into"),
    (["fetch", "a.io/b:1", "--into=x", "--timeout=0"], "--timeout"),
    (["fetch", "a.io/b:1", "--into=x", "--image=y"], "--image"),
    (["fetch", "a.io/b:1", "--into=x", "--registry-mirror=x"], "--registry-mirror"),
    (["fetch", "a.io/b:1", "--into=x", "--insecure-registry=a/b"], "--insecure-registry"),
    # The Job's form.
    (JOB[:2], "--nonce"), (JOB[2:], "--image"), (["--image=", *JOB[2:]], "--image"),
    (["--image", "a b", *JOB[2:]], "--image"), (["--image", "a" * 1025 + JOB[1], *JOB[2:]], "--image"),
    (["--image", "a.io/b:1", *JOB[2:]], "--image"), ([*JOB[:2], "--nonce", "0" * 31], "--nonce"),
    ([*JOB[:2], "--nonce", "A" * 32], "--nonce"), (["all", "--result", "x"], "--result"),
    ([*JOB, "x"], '"x"'),
    ([*JOB, "--platform"], "--platform"), ([*JOB, "--platform", "a"], "--platform"),
    ([*JOB, "--platform=a"], "--platform"), ([*JOB, "--platform", "=/"], "--platform"),
    ([*JOB, "--platform", "a="], "--platform"), ([*JOB, "--platform", "A=/"], "--platform"),
    ([*JOB, "--platform", "../a=/"], "--platform"), (["all", "--platform", "a=/"], "--platform"),
    ([*JOB, "--platform=a=/", "--platform", "a=/b"], "duplicated"),
    ([*JOB, *(f"--platform=p{i}=/" for i in range(9))], "more than 8")])
def test_bad_usage_ends_with_2_and_names_it(args, named):
    done = run(*args)
    assert done.returncode == 2 and done.stdout == "", done
    first, second = done.stderr.splitlines()
    assert first.startswith("tec-compute-pcrs: ") and named in first, done
    assert "--help" in second


@pytest.mark.parametrize("args, words", [
    (["all", "-r", "{}/none"], ["--rootfs", "none"]),
    (["all", "-r", "{}/file"], ["--rootfs", "Not a directory"]),
    (["all", "-r", "{}"], ["shimx64.efi", "next step"]),
    (["pcr4", "-r{}"], ["shimx64.efi", "next step"]),
    (["pcr14", "--rootfs={}"], ["shimx64.efi", "next step"]),
    (["pcr7", "-r", "{}", "--efivars", "{}/none"], ["--efivars", "none"]),
    (["all", "-r", "{}", "--mok-variables", "{}/none"], ["--mok-variables", "none"]),
    (["pcr14", "--mok-variables", "{}"], ["MokListRT", "next step"]),
    (["pcr11", "{}/none"], ["none", "No such file"]), (["pcr11", "{}"], ["not a regular file"]),
    (["pcr11", "{}/fifo"], ["fifo", "not a regular file"]),
    (["pcr11", "/dev/zero"], ["/dev/zero", "not a regular file"]),
    (["pcr11", "{}/empty"], ["empty"]), (["pcr11", "{}/file"], ["file"]),
    (["verify", "{}/file", "-r", "{}"], ["file", "event log"]),
    (["digest", "{}/file"], ["file"]), (["digest", "{}/none"], ["none", "No such file"]),
    (["extract-vars", "{}/file", "{}"], ["file", "event log"]),
    (["fetch", "a b", "--into", "{}"], ["image reference"]),
    (["fetch", "a.io/b", "--into", "{}/none"], ["--into", "none"]),
    (["fetch", "a.io/b", "--into", "{}", "--registry-ca", "{}/empty"], ["--registry-ca"]),
    (["fetch", "a.io/b", "--into", "{}", "--registry-auth", "{}/empty"], ["--registry-auth"]),
    ([*JOB, "-r", "{}"], ["shimx64.efi", "next step"])])
def test_what_cannot_be_done_is_one_line_and_1(args, words, tmp_path):
    (tmp_path / "file").write_text("#!/bin/sh\n")
    (tmp_path / "empty").write_bytes(b"")
    os.mkfifo(tmp_path / "fifo")
    done = run(*[a.replace("{}", str(tmp_path)) for a in args], timeout=10)
    assert done.returncode == 1 and done.stdout == "", done
    assert done.stderr.startswith("tec-compute-pcrs: ") and len(done.stderr.splitlines()) == 1, done
    assert all(w in done.stderr for w in words), done


def test_names_cannot_write_to_the_terminal(tmp_path):
    for args in (["pcr11", "{}"], ["verify", "{}", "-r", tmp_path], ["all", "-r", "{}"], ["{}"]):
        done = run(*[str(a).replace("{}", f"{tmp_path}/\033[31m\n") for a in args])
        assert done.returncode in (1, 2) and "\033" not in done.stderr + done.stdout, done
        assert len(done.stderr.splitlines()) == done.returncode, done


def test_help_and_version():
    for args in (["--help"], ["-h"], ["-vh"]):
        done = run(*args)
        assert done.returncode == 0 and done.stderr == "", done
        for word in ("pcr4", "pcr7", "pcr11 UKI", "pcr14", "verify EVENTLOG", "fetch REF", "--explain", "--variants"):
            assert word in done.stdout
    of_all = run("all", "--help").stdout
    assert of_all.startswith("Usage: tec-compute-pcrs all [OPTION]...\n") and "--efivars" in of_all
    for args in (["--version"], ["-V"], ["pcr4", "-V"]):
        done = run(*args)
        assert done.returncode == 0 and done.stdout.startswith("tec-compute-pcrs "), done


def test_an_answer_that_cannot_be_written_is_no_success(tmp_path):
    for name in ("MokListRT", "MokListXRT", "MokListTrustedRT"):
        (tmp_path / name).write_bytes(b"x")
    with open("/dev/full", "w", encoding="ascii") as full:
        done = subprocess.run([pcrstool.binary(), "pcr14", "--mok-variables", tmp_path], stdout=full,
                              stderr=subprocess.PIPE, text=True, check=False, timeout=20)
    assert done.returncode == 1 and "cannot write" in done.stderr, done
