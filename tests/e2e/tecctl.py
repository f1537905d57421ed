# SPDX-License-Identifier: MIT
"""The built tecctl as a person runs it: with a pipe or with a terminal, on any plane that has .api()."""

import json
import os
import pty
import select
import signal
import subprocess
import time

from controlplane import PATIENCE, TOP
from tecproc import SANITIZER


def tecctl_binary():
    return os.environ.get("TECCTL", os.path.join(os.environ.get("TEC_BUILDDIR", TOP), "tecctl"))


class Tecctl:
    def __init__(self, kubeconfig, namespace=None):
        self.kubeconfig, self.namespace = kubeconfig, namespace

    def argv(self, *args):
        where = ["--kubeconfig", self.kubeconfig] if self.kubeconfig else []
        ns = ["-n", self.namespace] if self.namespace else []
        return [tecctl_binary(), *where, *ns, *map(str, args)]

    @staticmethod
    def env(**more):
        env = {k: v for k, v in os.environ.items() if k not in ("KUBECONFIG", "NO_COLOR")}
        return dict(env, TERM="xterm", **more)

    def run(self, *args, code=0, stdin=subprocess.DEVNULL, env=None, timeout=90):
        """(stdout, stderr) of a run that ends with code; None: any."""
        done = subprocess.run(self.argv(*args), stdin=stdin, capture_output=True, text=True, timeout=timeout,
                              env=self.env(**(env or {})), check=False)
        assert not SANITIZER.search(done.stderr), done.stderr
        assert code is None or done.returncode == code, \
            f"tecctl {' '.join(map(str, args))}: {done.returncode}\n{done.stdout}\n{done.stderr}"
        return done.stdout, done.stderr

    def out(self, *args, **kw):
        return self.run(*args, **kw)[0]

    def json(self, *args):
        return json.loads(self.out(*args, "-o", "json"))

    def terminal(self, *args, env=None):
        return Terminal(self.argv(*args), self.env(**(env or {})))


class Terminal:
    """A program at a terminal of its own."""

    def __init__(self, argv, env):
        self.seen = ""
        self.pid, self.fd = pty.fork()
        if self.pid == 0:
            try:
                os.execve(argv[0], argv, env)
            finally:
                os._exit(126)

    def _read(self, seconds):
        if not select.select([self.fd], [], [], seconds)[0]:
            return True
        try:
            data = os.read(self.fd, 65536)
        except OSError:  # the other end is closed
            return False
        self.seen += data.decode(errors="replace")
        return bool(data)

    def until(self, text, timeout=60):
        end = time.monotonic() + timeout * PATIENCE
        while text not in self.seen:
            assert time.monotonic() < end and self._read(0.2), f"no {text!r} in:\n{self.seen}"
        return self

    def type(self, text):
        os.write(self.fd, text.encode())
        return self

    def interrupt(self):
        return self.type("\x03")

    def end(self, timeout=60):
        """The exit status; what it wrote is in .seen."""
        end = time.monotonic() + timeout * PATIENCE
        while time.monotonic() < end and self._read(0.2):
            pass
        while time.monotonic() < end:
            pid, status = os.waitpid(self.pid, os.WNOHANG)
            if pid:
                os.close(self.fd)
                return os.waitstatus_to_exitcode(status)
            time.sleep(0.05)
        os.kill(self.pid, signal.SIGKILL)
        raise AssertionError(f"did not end:\n{self.seen}")
