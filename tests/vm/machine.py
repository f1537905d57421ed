# SPDX-License-Identifier: MIT
"""One machine: qemu with OVMF and a TPM of swtpm's, run until its guest powers it off. TCG, as a
sandbox's /dev/kvm is not to be relied on; firmware takes about 12 s, a kernel 23 s."""

import os
import shutil
import subprocess
import time

OVMF = "/usr/share/OVMF"
CODE = os.path.join(OVMF, "OVMF_CODE_4M.secboot.fd")
NEEDED = {"qemu-system-x86_64": "qemu-system-x86", "swtpm": "swtpm", "swtpm_setup": "swtpm-tools",
          "mcopy": "mtools", "sgdisk": "gdisk", "mkfs.vfat": "dosfstools", "busybox": "busybox-static"}


def lacking():
    """The packages that have to be installed before a machine can run."""
    missing = {deb for tool, deb in NEEDED.items() if not shutil.which(tool)}
    if not os.path.exists(CODE):
        missing.add("ovmf")
    return sorted(missing)


class Failed(Exception):
    """A boot that did not come to its end; the text has the end of its console."""


def boot(disk, variables, work, seconds=300, accel="tcg", extra=()):
    """Runs until the guest powers off. variables: a file, which the firmware writes to. Returns what the guest said
    on its serial port."""
    tpm = os.path.join(work, "tpm")
    os.makedirs(tpm, exist_ok=True)
    subprocess.run(["swtpm_setup", "--tpm2", "--tpmstate", tpm, "--pcr-banks", "sha256", "--overwrite"],
                   check=True, capture_output=True, timeout=60)
    socket, console = os.path.join(work, "tpm.sock"), os.path.join(work, "console")
    argv = ["qemu-system-x86_64", "-machine", f"q35,smm=on,accel={accel}", "-cpu", "max", "-m", "1024",
            "-display", "none", "-nodefaults", "-no-reboot",
            "-global", "driver=cfi.pflash01,property=secure,value=on",
            "-drive", f"if=pflash,format=raw,unit=0,file={CODE},readonly=on",
            "-drive", f"if=pflash,format=raw,unit=1,file={variables}",
            "-drive", f"if=none,id=disk,format=raw,file={disk}", "-device", "virtio-blk-pci,drive=disk",
            "-chardev", f"socket,id=tpm,path={socket}", "-tpmdev", "emulator,id=tpm,chardev=tpm",
            "-device", "tpm-tis,tpmdev=tpm", "-serial", f"file:{console}", *extra]
    said = ""
    with subprocess.Popen(["swtpm", "socket", "--tpm2", "--tpmstate", f"dir={tpm}", "--ctrl",
                           f"type=unixio,path={socket}", "--terminate"]) as chip:
        try:
            for _ in range(100):
                if os.path.exists(socket):
                    break
                time.sleep(0.1)
            said = subprocess.run(argv, timeout=seconds, check=False, capture_output=True, text=True).stderr
        except subprocess.TimeoutExpired:
            pass  # the console says how far it came
        finally:
            chip.terminate()
    with open(console, encoding="latin-1") as f:
        text = f.read()
    if "@@@ done" not in text:
        raise Failed(f"the guest did not power off within {seconds} s; {said}its console ends:\n{text[-2000:]}")
    return text
