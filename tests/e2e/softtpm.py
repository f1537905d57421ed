# SPDX-License-Identifier: MIT
"""A TPM 2.0 in software (swtpm) and the attestation keys made in it with tpm2-tools."""

import os
import shutil
import subprocess
import tempfile
import time

from proc import Proc

_PACKAGES = {
    "swtpm": "swtpm",
    "tpm2_createek": "tpm2-tools",
    "tpm2_createak": "tpm2-tools",
}


def missing():
    """What must be installed first, as one sentence, or None."""
    lacking = sorted({pkg for tool, pkg in _PACKAGES.items() if not shutil.which(tool)})
    return f"apt-get install {' '.join(lacking)}" if lacking else None


class SoftwareTPM:
    """swtpm on a Unix socket in a temporary directory. Use as a context manager, or stop()."""

    def __init__(self):
        self.dir = tempfile.mkdtemp(prefix="tec-tpm-")
        self.socket = os.path.join(self.dir, "sock")
        # tpm2-tss looks for the control channel at this path plus ".ctrl".
        self.tcti = f"swtpm:path={self.socket}"
        self.env = dict(os.environ, TPM2TOOLS_TCTI=self.tcti)
        self._ek = None
        state = os.path.join(self.dir, "state")
        os.mkdir(state)
        self._proc = Proc(
            "swtpm",
            ["swtpm", "socket", "--tpm2", "--tpmstate", f"dir={state}",
             "--server", f"type=unixio,path={self.socket}",
             "--ctrl", f"type=unixio,path={self.socket}.ctrl",
             "--flags", "startup-clear"],
            os.path.join(self.dir, "swtpm.log"),
        )
        try:
            self._start()
        except BaseException:
            self.stop()
            raise

    def _start(self):
        self._proc.start()
        end = time.monotonic() + 30
        while not os.path.exists(self.socket + ".ctrl"):
            self._proc.check()
            if time.monotonic() > end:
                raise TimeoutError("swtpm did not open its socket in 30 s")
            time.sleep(0.02)

    def restart(self):
        """A machine boots again: the registers begin anew, what is persistent stays."""
        # As the kernel does: a TPM counts what ends without it as a wrong authorization.
        self._tool("tpm2_shutdown", "-c")
        self._proc.stop()
        self._ek = None
        for name in (self.socket, self.socket + ".ctrl"):
            if os.path.exists(name):
                os.unlink(name)
        self._start()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.stop()

    def stop(self):
        self._proc.stop()
        shutil.rmtree(self.dir, ignore_errors=True)

    def path(self, name):
        return os.path.join(self.dir, name)

    def run(self, tool, *args):
        """One tpm2-tools command; its standard output. There is no resource manager between, so
        what it left loaded is flushed: the TPM has three slots."""
        out = self._tool(tool, *args)
        self._tool("tpm2_flushcontext", "--transient-object")
        return out

    def _tool(self, tool, *args):
        done = subprocess.run([tool, *map(str, args)], cwd=self.dir, env=self.env,
                              capture_output=True, text=True, timeout=60, check=False)
        if done.returncode:
            raise RuntimeError(f"{tool} {' '.join(map(str, args))}: {done.stderr.strip()}")
        return done.stdout

    def ek(self):
        """Context file of the RSA-2048 endorsement key; made once."""
        if not self._ek:
            self.run("tpm2_createek", "-c", "ek.ctx", "-G", "rsa", "-u", "ek.pub")
            self._ek = self.path("ek.ctx")
        return self._ek

    def make_ak(self, name="ak"):
        """A new RSA-2048 attestation key (rsassa, sha256). Returns its public part as PEM
        SubjectPublicKeyInfo; NAME.ctx and NAME.name stay in self.dir for quotes."""
        self.run("tpm2_createak", "-C", self.ek(), "-c", f"{name}.ctx",
                 "-G", "rsa2048", "-s", "rsassa", "-g", "sha256",
                 "-u", f"{name}.pem", "-f", "pem", "-n", f"{name}.name")
        with open(self.path(f"{name}.pem"), encoding="ascii") as f:
            return f.read()
