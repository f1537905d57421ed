# SPDX-License-Identifier: MIT
"""verify on logs of firmware of each form, made by a writer of our own (tcglog.py) of the digests that the tool
names for its files, and replayed by tpm2_eventlog, too."""

import json
import os
import struct
import subprocess
import uuid

import pytest

import pcrstool
import tcglog
from pcrstool import run
from tcglog import action, application, built_in, separator, variable
from test_pcrs import efivars, root, uki  # noqa: F401  (fixtures)


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
    assert done.returncode == 1 and "tec-compute-pcrs extract-platform" in done.stdout, done
    assert "option ROM" not in done.stdout, done
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


# ---- without shim

OWNER = uuid.UUID("77fa9abd-0359-4d32-bd60-28f4e78f784b").bytes_le
X509 = uuid.UUID("a5c059a1-94e4-4aa7-87b5-ab155c2bf072").bytes_le


def make_key(directory, name):
    """(sign, EFI_SIGNATURE_DATA, EFI_SIGNATURE_LIST) of a key of one's own."""
    key, cert = str(directory / f"{name}.key"), str(directory / f"{name}.pem")
    subprocess.run(["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-keyout", key, "-out", cert,
                    "-subj", f"/CN={name}"], check=True, capture_output=True, timeout=60)
    der = subprocess.run(["openssl", "x509", "-in", cert, "-outform", "DER"], check=True, capture_output=True).stdout
    data = OWNER + der

    def sign(path):
        subprocess.run(["sbsign", "--key", key, "--cert", cert, "--output", path, path], check=True,
                       capture_output=True, timeout=60)
    return sign, data, X509 + struct.pack("<III", 28 + len(data), 0, len(data)) + data


@pytest.fixture(scope="module")
def sealed(tmp_path_factory, uki):
    """A root with Debian's systemd-boot and a UKI, both signed by one's own keys; and the files of db's platform."""
    made = tmp_path_factory.mktemp("sealed")
    first, second = make_key(made, "first"), make_key(made, "second")
    boot = pcrstool.put(str(made / "root"), "usr/lib/systemd/boot/efi/systemd-bootx64.efi", pcrstool.debian(*pcrstool.SDBOOT))
    image = pcrstool.put(str(made / "root"), "boot/EFI/Linux/os.efi", uki[0])  # signed by nobody known
    first[0](boot)
    second[0](image)
    files = {"SecureBoot": b"\1", "PK": first[2], "KEK": first[2], "db": first[2] + second[2]}
    (made / "vars").mkdir()
    for name, data in files.items():
        guid = tcglog.SECURITY if name == "db" else tcglog.GLOBAL
        (made / "vars" / f"{name}-{guid}").write_bytes(b"\x27\0\0\0" + data)
    return made, boot, image, first[1], second[1]


@pytest.mark.parametrize("chain", ["systemd-boot", "direct"])
@pytest.mark.parametrize("secure_boot", [True, False])
def test_boots_without_shim(sealed, uki, tmp_path, chain, secure_boot):
    made, boot, image, first, second = sealed
    root = made / "root"
    before = variables(str(made / "vars")) if secure_boot else [
        variable(name, b"\0" if name == "SecureBoot" else b"", tcglog.SECURITY if name.startswith("db") else tcglog.GLOBAL)
        for name in ("SecureBoot", "PK", "KEK", "db", "dbx")]
    events = [*before, separator(7), action(tcglog.CALLING), separator(4)]
    if chain == "systemd-boot":
        events.append(application(pcrstool.pe_digest(boot), "\\EFI\\systemd\\systemd-bootx64.efi"))
    events.append(application(pcrstool.pe_digest(image), "\\EFI\\Linux\\os.efi"))
    if secure_boot:
        events += [variable("db", data, tcglog.SECURITY, tcglog.AUTHORITY)
                   for data in ((first, second) if chain == "systemd-boot" else (second,))]
    else:  # stub 252 has the firmware load the kernel inside (tests/data/boot/uki252)
        kernel = tmp_path / "kernel"
        kernel.write_bytes(uki[1][".linux"])
        events.append(application(pcrstool.pe_digest(kernel), "\\kernel"))
    events += [tcglog.event(11, tcglog.IPL, e["name"].encode(), bytes.fromhex(e["hash"]))
               for e in json.loads(run("pcr11", image).stdout)["events"]]
    done = verify(tmp_path, events, "-r", root)
    assert done.returncode == 0 and f"PCR 14  {'0' * 64}  as predicted" in done.stdout, done
    started = "systemd-boot" if chain == "systemd-boot" else "the firmware"
    assert f"without shim, started by {started}" in done.stdout, done
    # What shim would have measured is a difference.
    done = verify(tmp_path, events + [tcglog.event(14, tcglog.IPL, b"MokList\0")], "-r", root)
    assert done.returncode == 1 and "PCR 14, event 1" in done.stdout, done


def test_without_shim_the_firmware_has_to_know_the_signers(sealed, tmp_path):
    made, _, _, _, second = sealed
    own = X509 + struct.pack("<III", 28 + len(second), 0, len(second)) + second
    for name in os.listdir(made / "vars"):
        data = (made / "vars" / name).read_bytes()
        (tmp_path / name).write_bytes(data[:4] + own if name.startswith("db-") else data)
    done = run("all", "-r", made / "root", "--efivars", tmp_path)
    assert done.returncode == 1 and "systemd-bootx64.efi" in done.stderr and "not in db" in done.stderr, done
    answer = json.loads(run("all", "-r", made / "root", "--efivars", made / "vars").stdout)
    assert [e["id"] for e in answer["pcrs"][2]["events"]] == ["Pcr14NoShim"] and answer["pcrs"][2]["value"] == "0" * 64
