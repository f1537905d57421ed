# SPDX-License-Identifier: MIT
"""tec-node and a TPM that goes away, or a signal that comes, before each single command."""

import os
import sys

import pytest

import tecnode
import softtpm

HERE = os.path.dirname(os.path.abspath(__file__))
STEPS = 60

pytestmark = pytest.mark.skipif(softtpm.missing() is not None, reason=str(softtpm.missing()))


@pytest.fixture(name="tpm")
def _tpm():
    with softtpm.SoftwareTPM() as t:
        yield t


def through(tpm, at, what):
    return f"--tcti=cmd:{sys.executable} -B {HERE}/tpmpipe.py {tpm.socket} {at} {what}"


def evict(tpm):
    if "0x81010002" in tpm.run("tpm2_getcap", "handles-persistent").lower():
        tpm.run("tpm2_evictcontrol", "-C", "o", "-c", "0x81010002")


def test_the_way_through_the_pipe_works(tpm, tmp_path):
    node = tecnode.TecNode(str(tmp_path), tpm.tcti)
    status, out, said = node.run("ak", "make", through(tpm, STEPS, "die"))
    assert status == 0, said
    assert node.run("ak", "show")[1] == out


@pytest.mark.parametrize("what", ["make", "quote"])
def test_a_tpm_that_dies_is_an_error_at_every_command(tpm, tmp_path, what):
    node = tecnode.TecNode(str(tmp_path), tpm.tcti)
    command = ("ak", "make") if what == "make" else ("quote",)
    if what == "quote":
        assert node.run("ak", "make")[0] == 0
    for at in range(STEPS):
        status, out, said = node.run(*command, through(tpm, at, "die"), timeout=30)
        if status == 0:
            break
        assert status == 3 and out == b"", (at, status, said)
        assert "the TPM did not respond" in said or "there is no TPM" in said, (at, said)
        # What was in the slots of a TPM without power is gone; this one still has it.
        tpm.run("tpm2_flushcontext", "--transient-object")
        tpm.run("tpm2_flushcontext", "--loaded-session")
    assert 3 < at < STEPS - 1, "it never came to an end"
    assert node.run("ak", "show")[0] == 0


def test_sigterm_at_every_command_leaves_nothing_in_the_tpm(tpm, tmp_path):
    node = tecnode.TecNode(str(tmp_path), tpm.tcti)
    ended = 0
    for at in range(STEPS):
        evict(tpm)
        status, out, said = node.run("ak", "make", through(tpm, at, "term"), timeout=30)
        assert tecnode.leftovers(tpm) == [], (at, status, said)
        if status == 0 and out:
            break
        assert status == -15, (at, status, said)
        ended += 1
        # Whole or not there.
        assert node.run("ak", "show")[0] in (0, 3)
    assert ended > 3 and at < STEPS - 1


def test_lockout_is_named(tpm, tmp_path):
    node = tecnode.TecNode(str(tmp_path), tpm.tcti)
    assert node.run("ak", "make")[0] == 0
    tpm.run("tpm2_dictionarylockout", "--setup-parameters", "--max-tries=1", "--recovery-time=1000",
            "--lockout-recovery-time=1000")
    with open(tpm.path("secret"), "w", encoding="ascii") as f:
        f.write("sealed")
    tpm.run("tpm2_createprimary", "-C", "o", "-c", "p.ctx")
    tpm.run("tpm2_create", "-C", "p.ctx", "-p", "right", "-i", "secret", "-u", "s.pub",
            "-r", "s.priv")
    tpm.run("tpm2_load", "-C", "p.ctx", "-u", "s.pub", "-r", "s.priv", "-c", "s.ctx")
    for _ in range(2):
        with pytest.raises(RuntimeError):
            tpm.run("tpm2_unseal", "-c", "s.ctx", "-p", "wrong")
        tpm.run("tpm2_flushcontext", "--transient-object")
    status, _, said = node.run("quote")
    assert status == 3 and "in lockout" in said and "tpm2_dictionarylockout --clear-lockout" in said, said
    tpm.run("tpm2_dictionarylockout", "--clear-lockout")
    assert node.run("quote")[0] == 0
