# SPDX-License-Identifier: MIT
"""verify on logs of firmware of each form, made by a writer of our own (tcglog.py) of the digests that the tool
names for its files, and replayed by tpm2_eventlog, too."""

import json

import pytest

import pcrstool
import tcglog
from pcrstool import make_root, run
from tcglog import action, application, separator, variable

BOOT = "debian12-shim-grub"


@pytest.fixture(scope="module")
def root(tmp_path_factory):
    return make_root(tmp_path_factory.mktemp("root"))


@pytest.fixture(scope="module")
def efivars(tmp_path_factory):
    return pcrstool.write_efivars(BOOT, str(tmp_path_factory.mktemp("efivars")))


def predicted(root, efivars):
    done = run("all", "-r", root, "--efivars", efivars)
    assert done.returncode == 0, done
    return {p["id"]: p["events"] for p in json.loads(done.stdout)["pcrs"]}


def variables(efivars):
    """What firmware measures before it starts anything."""
    data = tcglog.efivars(efivars)
    return [variable(name, data.get(name, b""), tcglog.SECURITY if name.startswith("db") else tcglog.GLOBAL)
            for name in ("SecureBoot", "PK", "KEK", "db", "dbx")]


def after(root, efivars):
    """What is measured from the first program on: by the firmware, shim and GRUB."""
    pcrs, events = predicted(root, efivars), []
    for e in pcrs[7][6:]:
        events.append(variable("SbatLevel" if "Sbat" in e["id"] else "db", b"", tcglog.SECURITY,
                               tcglog.AUTHORITY, bytes.fromhex(e["hash"])))
    events += [application(e["hash"], "\\EFI\\debian\\" + e["id"]) for e in pcrs[4][2:]]
    return events + [tcglog.event(14, tcglog.IPL, b"MokList\0", bytes.fromhex(e["hash"])) for e in pcrs[14]]


def verify(tmp_path, events, *options):
    path = tmp_path / "log"
    path.write_bytes(tcglog.log(events))
    other = tcglog.by_tpm2_eventlog(path)
    assert not other or other == tcglog.registers(events)
    return run("verify", path, *options)


@pytest.mark.parametrize("called", [True, False])
def test_firmware_may_leave_out_that_it_calls_a_boot_entry(root, efivars, tmp_path, called):
    before = [*variables(efivars), separator(7)] + ([action(tcglog.CALLING)] if called else []) + [separator(4)]
    events = before + after(root, efivars)
    done = verify(tmp_path, events, "-r", root, "--efivars", efivars)
    assert done.returncode == 0 and done.stdout.startswith("matches: "), done
    assert ("does not measure the call" in done.stdout) == (not called), done
    assert tcglog.registers(events)[4] in done.stdout
    # Another program is found all the same, and an entry that failed is not accepted in either form.
    other = before + [application("ab" * 32, "\\EFI\\other.efi")] + after(root, efivars)[1:]
    done = verify(tmp_path, other, "-r", root, "--efivars", efivars)
    assert done.returncode == 1 and f"PCR 4, event {3 if called else 2}\n" in done.stdout, done
    failed = before + [action(tcglog.RETURNING), action(tcglog.CALLING)] + after(root, efivars)
    done = verify(tmp_path, failed, "-r", root, "--efivars", efivars)
    assert done.returncode == 1 and "failed, and the firmware continued" in done.stdout, done
    done = verify(tmp_path, failed, "-r", root, "--efivars", efivars, "--boot-path=AllowFailedEntries")
    assert done.returncode == (0 if called else 1), done
