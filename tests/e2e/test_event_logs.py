# SPDX-License-Identifier: MIT
"""verify on logs of firmware of each form, made by a writer of our own (tcglog.py) of the digests that the tool
names for its files, and replayed by tpm2_eventlog, too."""

import json
import os

import pytest

import pcrstool
import tcglog
from pcrstool import make_root, run
from tcglog import action, application, built_in, separator, variable

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


DMA = b"DMA Protection Disabled"
AGENT = "5d" * 32


def firmware(form, efivars):
    """What firmware of each form measures before it starts the boot loader."""
    seven, four = [*variables(efivars), separator(7)], [action(tcglog.CALLING), separator(4)]
    return {
        "booting to": seven + [four[0], action(b"Booting to Boot0003 Option"), four[1]],
        "omitted": seven + [tcglog.event(4, tcglog.OMITTED, b"BOOT ATTEMPTS OMITTED"), four[1]],
        "agent": seven + [built_in(AGENT)] + four,
        "agent after": seven + four + [built_in(AGENT)],
        "dma first": [action(DMA, 7)] + seven + four,
        "dma with a NUL": seven[:5] + [action(DMA + b"\0", 7)] + seven[5:] + four,
        "dma last": seven + [action(DMA, 7)] + four,
        "dbt": seven[:5] + [variable("dbt", b"t" * 44, tcglog.SECURITY)] + seven[5:] + four,
        "both": seven[:5] + [action(DMA, 7)] + seven[5:] + [action(b"Booting to Boot0000 Option"), four[1]],
    }[form]


@pytest.mark.parametrize("form", ["booting to", "omitted", "agent", "agent after", "dma first", "dma with a NUL", "dma last",
                                  "dbt", "both"])
def test_what_a_platform_measures_is_extracted_and_predicted(root, efivars, tmp_path, form):
    events = firmware(form, efivars) + after(root, efivars)
    done = verify(tmp_path, events, "-r", root, "--efivars", efivars)
    assert done.returncode == 1, done
    into = tmp_path / "platform"
    into.mkdir()
    done = run("extract-platform", tmp_path / "log", into)
    assert done.returncode == 0 and sorted(done.stdout.split()) == sorted(os.listdir(into)), done
    assert "not carried" not in done.stderr
    assert (into / "FirmwareEvents").exists() == (form != "dbt"), done
    options = ["-r", root, "--efivars", into]
    if form.startswith("agent"):
        assert "write true to a file AllowFirmwareApplications" in done.stderr, done
        done = run("verify", tmp_path / "log", *options)
        assert done.returncode == 1 and "AllowFirmwareApplications=true" in done.stdout, done
        (into / "AllowFirmwareApplications").write_text("true\n")
    done = run("verify", tmp_path / "log", *options)
    assert done.returncode == 0 and "not compared" not in done.stdout.replace("not compared: PCR 11", ""), done
    registers = tcglog.registers(events)
    assert all(registers[n] in done.stdout for n in (4, 7, 14)), done
    # No other firmware is this platform.
    usual = [*variables(efivars), separator(7), action(tcglog.CALLING), separator(4)] + after(root, efivars)
    assert verify(tmp_path, usual, *options).returncode == 1


def test_a_log_of_empty_variables_is_compared_all_the_same(root, tmp_path):
    """Firmware in setup mode: Secure Boot is off, whether SecureBoot is empty or a zero."""
    pcrs = json.loads(run("all", "-r", root, "--secureboot-disabled").stdout)["pcrs"]
    for state in (b"", b"\0"):
        events = [variable("SecureBoot", state)] + [
            variable(name, b"", tcglog.SECURITY if name.startswith("db") else tcglog.GLOBAL)
            for name in ("PK", "KEK", "db", "dbx")] + [separator(7), separator(4)]
        events += [application(e["hash"], "\\x.efi") for e in pcrs[0]["events"][2:]]
        events += [variable("SbatLevel", b"sbat,1,2021030218\n", tcglog.SHIM_LOCK, tcglog.AUTHORITY)]
        events += [tcglog.event(14, tcglog.IPL, b"m", bytes.fromhex(e["hash"])) for e in pcrs[1]["events"]]
        done = verify(tmp_path, events, "-r", root)
        assert done.returncode == 0 and "matches: Secure Boot off" in done.stdout, done
        assert tcglog.registers(events)[7] in done.stdout
