# SPDX-License-Identifier: MIT
"""tec-compute-pcrs on roots made of Debian's boot files: its answers against pesign, a TPM in
software, and what two real boots measured (tests/data/boot/README)."""

import glob
import hashlib
import json
import os
import shutil
import subprocess

import pytest

import pcrstool
from conftest import lacking
from controlplane import TOP
from pcrstool import GRUB, OLD_EFI, SDBOOT, make_root, run

GRUB_BOOT, SDBOOT_BOOT = "debian12-shim-grub", "debian12-shim-sdboot-off"
NEW_SHIM, NEW_GRUB = "usr/lib/efi/shim/16.1-2/EFI/debian", "usr/lib/efi/grub2/2.06-13/EFI/debian"


@pytest.fixture(scope="module")
def root(tmp_path_factory):
    return make_root(tmp_path_factory.mktemp("root"))


@pytest.fixture(scope="module")
def efivars(tmp_path_factory):
    return pcrstool.write_efivars(GRUB_BOOT, str(tmp_path_factory.mktemp("efivars")))


def answer(*args):
    done = run(*args)
    assert done.returncode == 0, done
    parsed = json.loads(done.stdout)
    # Byte for byte the layout that the Rust tool prints.
    assert done.stdout == json.dumps(parsed, indent=2) + "\n"
    return parsed


def replayed(events):
    value = bytes(32)
    for e in events:
        value = hashlib.sha256(value + bytes.fromhex(e["hash"])).digest()
    return value.hex()


def hashes(pcr, *ids):
    return [e["hash"] for e in pcr["events"] if e["id"] in ids]


# ---- answers

def test_the_layout_of_answers_is_the_published_one():
    """What answer() compares with is how the Rust tool prints, byte for byte."""
    published = sorted(glob.glob(os.path.join(TOP, "tests", "data", "pcr", "*.json")))
    assert published
    for path in published:
        with open(path, encoding="ascii") as f:
            text = f.read()
        assert text == json.dumps(json.loads(text), indent=2) + "\n", path


def test_all_is_the_registers_alone(root, efivars):
    pcrs = answer("all", "-r", root, "--efivars", efivars)["pcrs"]
    assert [p["id"] for p in pcrs] == [4, 7, 14]
    for p in pcrs:
        assert list(p) == ["id", "value", "events"] and p["value"] == replayed(p["events"])
        assert all(list(e) == ["name", "pcr", "hash", "id"] and e["pcr"] == p["id"]
                   for e in p["events"])
    assert answer("pcr4", "--rootfs", root) == pcrs[0]
    assert answer("pcr7", "-r", root, "--efivars=" + efivars) == pcrs[1]
    assert answer("pcr14", f"-r{root}") == pcrs[2]
    assert [p["id"] for p in answer("all", f"--rootfs={root}")["pcrs"]] == [4, 14]


def test_digests_are_those_of_pesign(root):
    pcr4 = answer("pcr4", "-r", root)
    files = {"Pcr4Shim": f"{OLD_EFI}/shimx64.efi", "Pcr4Grub": f"{OLD_EFI}/grubx64.efi",
             "Pcr4Vmlinuz": pcrstool.kernel_path()}
    for id_, path in files.items():
        assert set(hashes(pcr4, id_)) == {pcrstool.pe_digest(os.path.join(root, path))}, path
    # GRUB 2.06 of Debian with Secure Boot on.
    assert len(hashes(pcr4, "Pcr4Vmlinuz")) == 2
    off = answer("pcr4", "-r", root, "--secureboot-disabled")
    assert [e["id"] for e in off["events"]] == ["Pcr4EfiCall", "Pcr4Separator", "Pcr4Shim", "Pcr4Grub"]


def test_the_layout_since_coreos_44_gives_the_same(root, tmp_path):
    make_root(tmp_path, shim_dir=NEW_SHIM, second_dir=NEW_GRUB)
    assert answer("all", "-r", tmp_path) == answer("all", "-r", root)
    # With both layouts the new one counts.
    pcrstool.put(str(tmp_path), f"{OLD_EFI}/grubx64.efi", pcrstool.debian(*SDBOOT))
    assert answer("all", "-r", tmp_path) == answer("all", "-r", root)


def test_an_aarch64_image_and_the_kernel_decides_between_two(root, tmp_path):
    here, lib = str(tmp_path), "usr/lib"
    files = {f"{OLD_EFI}/shimaa64.efi": ("shim-signed", f"{lib}/shim/shimaa64.efi.signed"),
             f"{OLD_EFI}/grubaa64.efi": ("grub-efi-arm64-signed",
                                         f"{lib}/grub/arm64-efi-signed/grubaa64.efi.signed"),
             f"{lib}/modules/9.9/vmlinuz": ("linux-image-cloud-arm64", "boot/vmlinuz-*")}
    for path, source in files.items():
        pcrstool.put(here, path, pcrstool.debian(*source, arch="arm64"))
    pcr4 = answer("pcr4", "-r", here)
    expected = [pcrstool.pe_digest(os.path.join(here, path)) for path in files]
    assert hashes(pcr4, "Pcr4Shim", "Pcr4Grub", "Pcr4Vmlinuz") == [*expected, expected[-1]]
    for name in ("shimx64.efi", "grubx64.efi"):
        pcrstool.put(here, f"{OLD_EFI}/{name}", os.path.join(root, OLD_EFI, name))
    assert answer("pcr4", "-r", here) == pcr4
    shutil.rmtree(os.path.join(here, lib, "modules"))
    pcrstool.put(here, pcrstool.kernel_path(), pcrstool.debian(*pcrstool.KERNEL))
    assert answer("pcr4", "-r", here) == answer("pcr4", "-r", root)


def test_every_variant_says_when(root, efivars):
    plain, full = answer("all", "-r", root), answer("all", "-r", root, "--variants")
    assert list(full) == ["pcrs", "variants"] and full["pcrs"] == plain["pcrs"]
    assert [list(v) for v in full["variants"]] == [["when", "pcrs"]] * 4
    assert full["variants"][0]["pcrs"] == plain["pcrs"]
    assert [v["when"].split(";")[0] for v in full["variants"]] == ["Secure Boot on", "Secure Boot off"] * 2
    assert all("does not measure the call" in v["when"] for v in full["variants"][2:])
    for with_call, without in zip(full["variants"], full["variants"][2:]):
        first, second = with_call["pcrs"][0], without["pcrs"][0]
        assert second["events"] == first["events"][1:] and second["value"] == replayed(second["events"])
        assert without["pcrs"][1:] == with_call["pcrs"][1:]
    off = answer("all", "-r", root, "--secureboot-disabled")["pcrs"]
    assert full["variants"][1]["pcrs"] == off
    # The firmware's variables know the state.
    known = answer("all", "-r", root, "--variants", "--efivars", efivars)["variants"]
    assert all(v["when"].startswith("Secure Boot on") for v in known)
    asked = answer("pcr4", "-r", root, "--efivars", efivars, "--secureboot-disabled")
    assert asked == off[0]


def test_all_kernels_are_offered_newest_first(root, tmp_path):
    make_root(tmp_path)
    old = "usr/lib/modules/6.1.0-9-cloud-amd64/vmlinuz"
    pcrstool.put(str(tmp_path), old, pcrstool.debian(*pcrstool.GRUB))  # any signed image
    assert answer("pcr4", "-r", tmp_path) == answer("pcr4", "-r", root)
    done = run("pcr4", "-r", tmp_path, "--explain")
    assert f'also found, not used: "{old}"' in done.stderr, done
    offered = answer("pcr4", "-r", tmp_path, "--all-kernels", "--variants",
                     "--secureboot-disabled=false")["variants"]
    assert [v["when"].split('"')[1] for v in offered] == [pcrstool.kernel_path(), old] * 2


def test_explain_names_the_file_of_each_event(root, efivars):
    plain = run("all", "-r", root, "--efivars", efivars)
    for option in ("--explain", "-v", "-vv", "--verbose"):
        done = run("all", "-r", root, option, "--efivars", efivars)
        assert done.returncode == 0 and done.stdout == plain.stdout
        for path in (f"{OLD_EFI}/shimx64.efi", f"{OLD_EFI}/grubx64.efi", pcrstool.kernel_path(),
                     "firmware variable dbx", "certificate \"Microsoft", "MokListRT as created by shim"):
            assert path in done.stderr, (path, done.stderr)
    assert plain.stderr == ""
    for event in json.loads(plain.stdout)["pcrs"][0]["events"]:
        assert event["hash"] in done.stderr


# ---- MOK variables

def test_mok_variables_given_are_what_counts(root, tmp_path):
    contents = {"MokListRT": b"content of MokListRT", "MokListXRT": b"content of MokListXRT", "MokListTrustedRT": b"x"}
    for name, content in contents.items():
        (tmp_path / name).write_bytes(content)
    expected = [hashlib.sha256(content).hexdigest() for content in contents.values()]
    # Nothing else is read then.
    alone = answer("pcr14", "--mok-variables", tmp_path, "-r", "/nonexistent")
    assert [e["hash"] for e in alone["events"]] == expected
    assert answer("all", "-r", root, "--mok-variables", tmp_path)["pcrs"][1] == alone
    (tmp_path / "MokListXRT").unlink()
    done = run("pcr14", "--mok-variables", tmp_path)
    assert done.returncode == 1 and "MokListXRT" in done.stderr and "next step" in done.stderr


# ---- UKIs

@pytest.fixture(scope="module")
def uki(tmp_path_factory):
    """(path, {section: contents}) of a UKI as ukify lays it out, signed by nobody known."""
    for tool, package in (("objcopy", "binutils"), ("sbsign", "sbsigntool")):
        if not shutil.which(tool):
            lacking(f"no {tool}: apt-get install {package}")
    here = tmp_path_factory.mktemp("uki")
    with open(pcrstool.debian(*pcrstool.KERNEL), "rb") as f:
        kernel = f.read()
    sections = {".osrel": b"ID=debian\n", ".cmdline": b"quiet root=LABEL=x",
                ".uname": b"6.1.0", ".initrd": os.urandom(70001), ".linux": kernel}
    argv, at = ["objcopy"], 0x20000000
    for name, content in sections.items():
        (here / name).write_bytes(content)
        argv += ["--add-section", f"{name}={here / name}", "--change-section-vma", f"{name}={at:#x}"]
        at += (len(content) + 0xffff) & ~0xffff
    unsigned, signed = str(here / "unsigned.efi"), str(here / "uki.efi")
    subprocess.run([*argv, pcrstool.debian(*pcrstool.STUB), unsigned], check=True, timeout=60)
    subprocess.run(["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-keyout", here / "k",
                    "-out", here / "c", "-subj", "/CN=nobody"], check=True, capture_output=True)
    subprocess.run(["sbsign", "--key", here / "k", "--cert", here / "c", "--output", signed, unsigned],
                   check=True, capture_output=True, timeout=60)
    return signed, sections


def test_register_11_of_a_uki(uki):
    path, sections = uki
    pcr = answer("pcr11", path)
    # The order is the stub's own, not the file's; 252 measures neither .uname nor .sbat (tests/data/boot/uki252).
    names = [".linux", ".osrel", ".cmdline", ".initrd"]
    assert [e["name"] for e in pcr["events"]] == [n + s for n in names for s in ("", "_CONTENT")]
    assert pcr["id"] == 11 and pcr["value"] == replayed(pcr["events"])
    found = {e["name"]: e["hash"] for e in pcr["events"]}
    for name in names:
        content = sections[name]
        assert found[name] == hashlib.sha256(name.encode() + b"\0").hexdigest()
        assert found[name + "_CONTENT"] == hashlib.sha256(content).hexdigest()
    assert ".cmdline" in run("pcr11", path, "--explain").stderr


def test_a_uki_as_second_stage_holds_its_kernel(uki, tmp_path):
    make_root(tmp_path, second=uki[0], kernel=False)
    pcr4 = answer("pcr4", "-r", tmp_path)
    assert [e["id"] for e in pcr4["events"]] == ["Pcr4EfiCall", "Pcr4Separator", "Pcr4Shim", "Pcr4Grub"]
    assert hashes(pcr4, "Pcr4Grub") == [pcrstool.pe_digest(uki[0])]
    assert answer("pcr4", "-r", tmp_path, "--uki") == pcr4
    assert "UKI" in run("pcr4", "-r", tmp_path, "--explain").stderr


# ---- real boots

def is_that_build(boot, root):
    """Whether Debian still has the files of that boot: then everything must match."""
    measured = {e.digest.hex() for e in pcrstool.read_log(pcrstool.boot_log(boot)) if e.pcr == 4}
    return all(pcrstool.pe_digest(p) in measured for p in pcrstool.files_below(root))


@pytest.fixture(scope="module", params=[(GRUB_BOOT, GRUB), (SDBOOT_BOOT, SDBOOT)],
                ids=[GRUB_BOOT, SDBOOT_BOOT])
def booted(request, tmp_path_factory):
    boot, second = request.param
    made = make_root(tmp_path_factory.mktemp("booted"), second=second)
    return boot, made, pcrstool.write_efivars(boot, str(tmp_path_factory.mktemp("vars")))


def test_real_boots_measured_what_is_predicted(booted, tmp_path):
    boot, root, efivars = booted
    log = tmp_path / "log"
    log.write_bytes(pcrstool.boot_log(boot))
    done = run("verify", log, "-r", root, "--efivars", efivars)
    if not is_that_build(boot, root):  # Debian has newer ones: that is a difference to be found
        assert done.returncode == 1 and "PCR 4, event" in done.stdout, done
        return
    assert done.returncode == 0 and done.stdout.startswith("matches: "), done
    registers = pcrstool.boot_registers(boot)
    found = {p["id"]: p["value"] for p in answer("all", "-r", root, "--efivars", efivars)["pcrs"]}
    assert found == {n: registers[n] for n in (4, 7, 14)}
    # Without the firmware's variables: those of the log.
    state = ["--secureboot-disabled"] if boot == SDBOOT_BOOT else []  # its loader is not signed
    done = run("verify", log, "-r", root, *state)
    assert done.returncode == 0 and "PCR  7" in done.stdout and "not compared" not in done.stdout, done


def test_one_changed_event_is_the_one_named(booted, tmp_path):
    boot, root, efivars = booted
    if not is_that_build(boot, root):
        return  # tests/pcr/test_compare.c does this without the files
    data, log, number = pcrstool.boot_log(boot), tmp_path / "log", {}
    for e in pcrstool.read_log(data):
        number[e.pcr] = number.get(e.pcr, 0) + 1
        changed = bytearray(data)
        changed[e.at] ^= 0x80
        log.write_bytes(changed)
        done = run("verify", log, "-r", root, "--efivars", efivars)
        if e.pcr not in (4, 7, 14):
            assert done.returncode == 0, (e.pcr, done)
            continue
        assert done.returncode == 1, (e.pcr, number, done)
        assert f"first difference: PCR {e.pcr}, event {number[e.pcr]}\n" in done.stdout, done
        assert e.digest.hex() in done.stdout and bytes(changed[e.at:e.at + 32]).hex() in done.stdout
        assert "likely reason: " in done.stdout and "unknown" not in done.stdout


FWUPD = ("fwupd-amd64-signed", "usr/libexec/fwupd/efi/fwupdx64.efi.signed")
# Options, and how many variants may come before the one that was measured.
DEBIAN13 = {"grub212": ([], 0), "grub212-off": (["--secureboot-disabled"], 0), "mok-untrusted": ([], 0),
            "failed-one": (["--boot-path=AllowFailedEntries"], 2), "failed-two": (["--boot-path=AllowFailedEntries"], 4),
            "fwupd": (["--boot-path=AllowFirmwareUpdates"], 6), "validation-off": (["--allow-validation-disabled"], 0)}


@pytest.fixture(scope="module")
def root13(tmp_path_factory):
    """Debian 13's shim, GRUB and fwupd with the kernel of those boots' release. What each digest was then."""
    made = str(tmp_path_factory.mktemp("root13"))
    then = {}
    with open(os.path.join(pcrstool.BOOTS, "fwupd", "files"), encoding="ascii") as f:
        recorded = {name: digest for digest, name in map(str.split, f)}
    for name, to, source, suite in (
            ("EFI/BOOT/BOOTX64.EFI", f"{OLD_EFI}/shimx64.efi", pcrstool.SHIM, "trixie"),
            ("EFI/BOOT/grubx64.efi", f"{OLD_EFI}/grubx64.efi", GRUB, "trixie"),
            ("EFI/BOOT/fwupdx64.efi", FWUPD[1], FWUPD, "trixie"),
            ("vmlinuz", pcrstool.kernel_path(), pcrstool.KERNEL, None)):
        path = pcrstool.put(made, to, pcrstool.debian(*source, suite=suite))
        then[pcrstool.pe_digest(path)] = recorded[name]
    return made, then


def registers_shown(made, then, efivars, mok, *options):
    """Of each variant {4: hex, 7: hex, 14: hex}, had its files and variables been those of then; and their conditions."""
    found = answer("all", "-r", made, "--variants", "--efivars", efivars, "--mok-variables", mok, *options)["variants"]
    shown = []
    for v in found:
        for pcr in v["pcrs"]:
            for e in pcr["events"]:
                e["hash"] = then.get(e["hash"], e["hash"])
        shown.append({pcr["id"]: replayed(pcr["events"]) for pcr in v["pcrs"]})
    return shown, [v["when"] for v in found]


def measured(boot):
    registers = pcrstool.boot_registers(boot)
    return {n: registers[n] for n in (4, 7, 14)}


@pytest.mark.parametrize("boot", DEBIAN13)
def test_debian_13_measured_what_is_predicted(root13, boot, tmp_path):
    """Also when Debian has newer files: each stands for the one that was booted."""
    options, most = DEBIAN13[boot]
    shown, conditions = registers_shown(*root13, pcrstool.write_efivars(boot, tmp_path / "vars"),
                                        os.path.join(pcrstool.BOOTS, boot, "mok-variables"), *options)
    assert measured(boot) in shown[:most + 1], (boot, conditions)


@pytest.mark.parametrize("boot", ["mok-hash", "db-hash"])
def test_a_kernel_whose_hash_is_enrolled_measured_what_is_predicted(root13, boot, tmp_path):
    """It is not signed. Also when Debian has a newer kernel: its hash stands in the place of that one's."""
    made, then = shutil.copytree(root13[0], tmp_path / "root"), dict(root13[1])
    kernel = os.path.join(made, pcrstool.kernel_path())
    was = bytes.fromhex(then[pcrstool.pe_digest(kernel)])
    subprocess.run(["sbattach", "--remove", kernel], check=True, capture_output=True, timeout=60)
    now = bytes.fromhex(pcrstool.pe_digest(kernel))
    then[now.hex()] = was.hex()
    efivars = pcrstool.write_efivars(boot, tmp_path / "vars")
    mok = shutil.copytree(os.path.join(pcrstool.BOOTS, boot, "mok-variables"), tmp_path / "mok")
    enrolled = 0
    for path in pcrstool.files_below(efivars) + pcrstool.files_below(str(mok)):
        with open(path, "rb") as f:
            data = f.read()
        enrolled += data.count(was)
        with open(path, "wb") as f:
            f.write(data.replace(was, now))
        then[hashlib.sha256(data.replace(was, now)).hexdigest()] = hashlib.sha256(data).hexdigest()
    for e in pcrstool.read_log(pcrstool.boot_log(boot)):
        then[hashlib.sha256(e.data.replace(was, now)).hexdigest()] = hashlib.sha256(e.data).hexdigest()
    shown, conditions = registers_shown(made, then, efivars, str(mok))
    assert enrolled == 1 and shown[0] == measured(boot), (boot, conditions)
    # Without it nobody vouches for the kernel.
    done = run("all", "-r", made, "--efivars", pcrstool.write_efivars("grub212", tmp_path / "plain"))
    assert done.returncode == 1 and 'vmlinuz" is not signed and its hash is not in db or the MOK list' in done.stderr, done


def test_an_image_that_would_not_start_is_told_with_what_did(tmp_path):
    """Not the node is wrong: its log has Secure Boot on, and the image's second stage is not signed."""
    made, log = make_root(tmp_path / "root", second=SDBOOT), tmp_path / "log"
    log.write_bytes(pcrstool.boot_log(GRUB_BOOT))
    done = run("verify", log, "-r", made)
    assert done.returncode == 1 and done.stderr == "", done
    first, rest = done.stdout.split("\n", 1)
    assert first.startswith("nothing to compare the log with: ") and "is not signed" in first and "next step" in first
    registers = pcrstool.boot_registers(GRUB_BOOT)
    for pcr in (4, 7, 14):
        assert f"PCR {pcr:2}  {registers[pcr]}\n" in rest
    assert "Secure Boot on" in rest and "grubx64.efi" in rest


def test_what_sbat_revokes_would_not_start(root, tmp_path):
    """Debian's GRUB with its component's generation put back, as one from before the hole: shim 16.1 wants grub,5."""
    made = shutil.copytree(root, tmp_path / "root")
    path = os.path.join(made, OLD_EFI, "grubx64.efi")
    with open(path, "rb") as f:
        data = f.read()
    assert data.count(b"\ngrub,5,") == 1
    with open(path, "wb") as f:
        f.write(data.replace(b"\ngrub,5,", b"\ngrub,4,"))
    subprocess.run(["sbattach", "--remove", path], check=True, capture_output=True, timeout=60)
    subprocess.run(["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-subj", "/CN=x", "-days", "9",
                    "-keyout", tmp_path / "k", "-out", tmp_path / "c"], check=True, capture_output=True, timeout=60)
    subprocess.run(["sbsign", "--key", tmp_path / "k", "--cert", tmp_path / "c", "--output", path, path], check=True,
                   capture_output=True, timeout=60)
    done = run("pcr4", "-r", made)
    assert done.returncode == 1 and 'too old (SBAT: "grub" has generation 4, the minimum is 5' in done.stderr, done
    assert run("pcr4", "-r", made, "--secureboot-disabled").returncode == 0


def test_logs_that_are_none(root, tmp_path):
    log = tmp_path / "log"
    data = pcrstool.boot_log(GRUB_BOOT)
    log.write_bytes(b"")
    done = run("verify", log, "-r", root)
    assert done.returncode == 1 and done.stdout.startswith("the log is empty: the boot loader bypassed"), done
    for content, why in ((data[:-7], "event log"), (os.urandom(300), "event log"),
                         (b"PCR 4\n" * 50, "event log"), (bytes(17 << 20), "larger than")):
        log.write_bytes(content)
        done = run("verify", log, "-r", root)
        assert done.returncode == 1 and done.stdout == "", done
        assert why in done.stderr and "\n" not in done.stderr.strip(), done


def test_the_variables_of_a_log_are_files_for_a_platform(tmp_path):
    log, into = tmp_path / "log", tmp_path / "vars"
    log.write_bytes(pcrstool.boot_log(GRUB_BOOT))
    into.mkdir()
    done = run("extract-vars", log, into)
    assert done.returncode == 0 and sorted(done.stdout.split()) == sorted(os.listdir(into)) and len(os.listdir(into)) == 5
    found = pcrstool.files_of(str(into))
    own = pcrstool.files_of(pcrstool.write_efivars(GRUB_BOOT, str(tmp_path / "own")))
    assert {k: v[4:] for k, v in found.items()} == {k: v[4:] for k, v in own.items()}
    assert "PCR 4: as usual" in done.stderr and "PCR 7: as usual" in done.stderr, done
    assert run("extract-platform", log, into).returncode == 1  # what is there stays


def test_digests_of_programs(root):
    paths = [os.path.join(root, p) for p in (f"{OLD_EFI}/shimx64.efi", pcrstool.kernel_path())]
    done = run("digest", *paths)
    assert done.returncode == 0, done
    assert [line.split()[0] for line in done.stdout.splitlines()] == [pcrstool.pe_digest(p) for p in paths]


# ---- a TPM

@pytest.mark.parametrize("second, off", [(GRUB, False), (SDBOOT, True)])
def test_a_tpm_that_is_extended_by_the_events_shows_the_registers(tpm, tmp_path, efivars, second, off):
    """A boot as the prediction has it: the same hashes, in the order in which firmware and loaders
    run, end in the predicted registers of a real TPM's logic."""
    root = make_root(tmp_path, second=second)
    pcrs = answer("all", "-r", root, "--efivars", efivars, *["--secureboot-disabled"][:off])["pcrs"]
    assert [p["id"] for p in pcrs] == [4, 7, 14]
    queues = [list(p["events"]) for p in pcrs]
    while any(queues):  # registers in turn: they do not depend on each other
        for queue in queues:
            if queue:
                e = queue.pop(0)
                tpm.run("tpm2_pcrextend", f"{e['pcr']}:sha256={e['hash']}")
    tpm.run("tpm2_pcrread", "sha256:4,7,14", "-o", "values")
    with open(tpm.path("values"), "rb") as f:
        assert f.read().hex() == "".join(p["value"] for p in pcrs)
