# SPDX-License-Identifier: MIT
"""One machine that boots more than once: its disks, its firmware's variables and its TPM stay; its serial port is a person's
terminal. TCG, as OVMF's Secure Boot needs SMM, which a sandbox's /dev/kvm does not give."""

import os
import select
import shutil
import socket
import subprocess
import time

import machine
from controlplane import wait_for

# What a boot takes alone is 60 to 80 s; two or three of them may run side by side with a build.
BOOT_S = 600


class Guest:
    def __init__(self, work, disks, variables):
        self.work, self.disks = work, disks
        self.direct = []  # arguments for a kernel that no boot loader starts
        self.tpm = True
        self.variables = shutil.copy(variables, os.path.join(work, "variables"))
        self.console = os.path.join(work, "console")
        self.seen = ""
        self.qemu = self.chip = self.terminal = None
        state = self._path("tpm")
        os.makedirs(state)
        subprocess.run(["swtpm_setup", "--tpm2", "--tpmstate", state, "--pcr-banks", "sha256"], check=True,
                       capture_output=True, timeout=120)

    def _path(self, name):
        return os.path.join(self.work, name)

    def start(self):
        """Power on. What was said before is forgotten."""
        self.seen = ""
        for name in ("tpm.sock", "console.sock"):
            if os.path.exists(self._path(name)):
                os.unlink(self._path(name))
        self.chip = subprocess.Popen(["swtpm", "socket", "--tpm2", "--tpmstate", f"dir={self._path('tpm')}", "--ctrl",
                                      f"type=unixio,path={self._path('tpm.sock')}", "--terminate"])
        wait_for(lambda: os.path.exists(self._path("tpm.sock")), 60, "a TPM")
        log = open(self._path("qemu.log"), "ab")
        self.qemu = subprocess.Popen(self._argv(), stdin=subprocess.DEVNULL, stdout=log, stderr=log)
        log.close()
        self.terminal = wait_for(self._connected, 60, f"a serial port of {self._path('console.sock')}")
        return self

    def _connected(self):
        assert self.qemu.poll() is None, self._log()
        terminal = socket.socket(socket.AF_UNIX)
        try:
            terminal.connect(self._path("console.sock"))
            return terminal
        except OSError:  # not there yet, or there and nobody listens yet
            terminal.close()
            return None

    def _log(self):
        with open(self._path("qemu.log"), encoding="utf-8", errors="replace") as f:
            return f.read()[-2000:]

    def _argv(self):
        drives = []
        for i, disk in enumerate(self.disks):
            drives += ["-drive", f"if=none,id=disk{i},format=raw,file={disk}", "-device", f"virtio-blk-pci,drive=disk{i}"]
        return ["qemu-system-x86_64", "-machine", "q35,smm=on,accel=tcg", "-cpu", "max", "-m", "1024", "-display", "none",
                "-nodefaults", "-global", "driver=cfi.pflash01,property=secure,value=on",
                "-drive", f"if=pflash,format=raw,unit=0,file={machine.CODE},readonly=on",
                "-drive", f"if=pflash,format=raw,unit=1,file={self.variables}", *drives,
                "-netdev", "user,id=net", "-device", "virtio-net-pci,netdev=net,romfile=",
                "-object", "rng-random,id=rng,filename=/dev/urandom", "-device", "virtio-rng-pci,rng=rng",
                *(self._tpm_argv() if self.tpm else []), *self.direct,
                "-chardev", f"socket,id=tty,path={self._path('console.sock')},server=on,wait=off,logfile={self.console},logappend=on",
                "-serial", "chardev:tty"]

    def _tpm_argv(self):
        return ["-chardev", f"socket,id=tpm,path={self._path('tpm.sock')}", "-tpmdev", "emulator,id=tpm,chardev=tpm",
                "-device", "tpm-tis,tpmdev=tpm"]

    def until(self, *texts, seconds=BOOT_S):
        """Waits until one of these was said since the last call of start() or forget(); which one."""
        end = time.monotonic() + seconds
        while True:
            for text in texts:
                if text in self.seen:
                    return text
            assert "@@ FAILED" not in self.seen and "Kernel panic" not in self.seen, self._report(f"instead of {texts}")
            assert time.monotonic() < end, self._report(f"{texts} was not said within {seconds} s")
            if not select.select([self.terminal], [], [], 1)[0]:
                continue
            data = self.terminal.recv(65536)
            assert data, self._report(f"it ended before it said {texts}")
            self.seen += data.decode("latin-1").replace("\r", "")

    def _report(self, what):
        return f"{what}; its console ends:\n{self.seen[-4000:]}\nqemu: {self._log()}"

    def forget(self):
        self.seen = ""

    def type(self, line):
        self.terminal.sendall(line.encode() + b"\n")

    def ended(self, seconds=BOOT_S):
        """Waits until it has powered itself off."""
        try:
            while self.terminal.recv(65536):
                pass
            return self.qemu.wait(seconds)
        finally:
            self.stop()

    def stop(self):
        for process in (self.qemu, self.chip):
            if process and process.poll() is None:
                process.kill()
                process.wait()
        if self.terminal:
            self.terminal.close()
        self.qemu = self.chip = self.terminal = None
