#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""make bench: what tec-compute-pcrs costs on Debian's boot files, against openssl hashing the same
files in the same run; and what combining images costs the operator.

Each line ends with the limit it is held against; exit 1 when one is missed.
"""

import os
import shutil
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "e2e"))

import pcrstool  # noqa: E402
from bench import missed, report  # noqa: E402

BUILD = os.environ.get("TEC_BUILDDIR", pcrstool.TOP)
ROUNDS = 101
LARGE = 256 << 20


def measure(*args):
    """Lines of bench_pcrs as dicts."""
    done = subprocess.run([os.path.join(BUILD, "tests", "bench", "bench_pcrs"), *map(str, args)],
                          stdout=subprocess.PIPE, text=True, check=True)
    return [{k: int(v) for k, v in (word.split("=") for word in line.split())}
            for line in done.stdout.splitlines()]


def bench_root(directory):
    root = pcrstool.make_root(os.path.join(directory, "root"))
    efivars = pcrstool.write_efivars("debian12-shim-grub", os.path.join(directory, "efivars"))
    files = pcrstool.files_below(root) + pcrstool.files_below(efivars)
    ours, theirs = measure("run", ROUNDS, pcrstool.binary(), "all", "-r", root, "--efivars", efivars,
                           "--", shutil.which("openssl"), "dgst", "-sha256", *files)
    size = sum(map(os.path.getsize, files)) / (1 << 20)
    print(f"{len(files)} files, {size:.1f} MiB: {ours['median_us'] / 1000:.1f} ms, "
          f"openssl dgst -sha256 {theirs['median_us'] / 1000:.1f} ms, medians of {ROUNDS}")
    report("PCR 4, 7, 14 of an image: CPU / openssl's",
           ours["median_us"] / theirs["median_us"], "x", 1.15)
    report("PCR 4, 7, 14 of an image: peak RSS", ours["peak_rss_kib"] * 1024 / 1e6, "MB", 8)


def bench_large(directory):
    """A UKI with an initrd that no node would hold: memory does not follow the file's size."""
    if not shutil.which("objcopy"):
        print("large UKI: not measured, no objcopy; next step: apt-get install binutils")
        return
    uki, initrd = os.path.join(directory, "uki.efi"), os.path.join(directory, "initrd")
    with open(initrd, "wb") as f:
        f.truncate(LARGE)
    argv = ["objcopy"]
    for name, path, at in ((".linux", pcrstool.debian(*pcrstool.KERNEL), 0x20000000),
                           (".initrd", initrd, 0x30000000)):
        argv += ["--add-section", f"{name}={path}", "--change-section-vma", f"{name}={at:#x}"]
    subprocess.run([*argv, pcrstool.debian(*pcrstool.STUB), uki], check=True)
    root = pcrstool.make_root(os.path.join(directory, "uki"), second=uki, kernel=False)
    ours, pcr11, theirs = measure(
        "run", 3, pcrstool.binary(), "all", "-r", root, "--secureboot-disabled", "--",
        pcrstool.binary(), "pcr11", uki, "--", shutil.which("openssl"), "dgst", "-sha256", uki)
    report("a UKI of 270 MiB: CPU / openssl's", ours["median_us"] / theirs["median_us"], "x", 1.15)
    report("a UKI of 270 MiB: peak RSS", ours["peak_rss_kib"] * 1024 / 1e6, "MB", 8)
    report("its PCR 11: CPU / openssl's", pcr11["median_us"] / theirs["median_us"], "x", 1.15)
    report("its PCR 11: peak RSS", pcr11["peak_rss_kib"] * 1024 / 1e6, "MB", 8)


def bench_combine():
    for images, loaders in ((20, 20), (40, 20), (40, 40)):
        (found,) = measure("combine", images, loaders)
        report(f"combining {images} images, {found['sets']} sets of values",
               found["median_us"] / 1000, "ms", 5)


def main():
    with tempfile.TemporaryDirectory() as directory:
        bench_root(directory)
        bench_large(directory)
    bench_combine()
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
