# SPDX-License-Identifier: MIT
"""Child processes and ports for the end-to-end tests.

Every child dies with us, however we die: an orphaned etcd would hold its port and a core of the
machine until somebody notices. Three nets, because each has a hole: atexit (not on kill -9),
PR_SET_PDEATHSIG (fires when the *thread* that forked ends, so start children from the main
thread), and the explicit stop() of the owner.
"""

import atexit
import contextlib
import ctypes
import os
import signal
import socket
import subprocess

_PR_SET_PDEATHSIG = 1
# Loaded before any fork: dlopen between fork and exec can deadlock on a lock another thread held.
_libc = ctypes.CDLL(None, use_errno=True)
_running = set()


def free_port():
    """A loopback port nobody gets by chance before our child binds it.

    Bind to port 0, then leave that port in TIME_WAIT by one connection to ourselves: for the next
    minute the kernel gives it to nobody who asks for "any port", while a server that sets
    SO_REUSEADDR (Go, libevent and swtpm all do) binds it at once.
    """
    with socket.socket() as server:
        server.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        server.bind(("127.0.0.1", 0))
        server.listen(1)
        with socket.create_connection(server.getsockname()):
            accepted, _ = server.accept()
            accepted.close()  # the server's side closes first, so TIME_WAIT is on its port
        return server.getsockname()[1]


def die_with(parent):
    """A preexec_fn: the child is killed when PARENT, a pid of ours, is gone."""

    def preexec():
        _libc.prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
        if os.getppid() != parent:  # it died between fork and prctl
            os._exit(1)

    return preexec


def tail(path, lines=30):
    try:
        with open(path, "rb") as f:
            f.seek(0, os.SEEK_END)
            f.seek(max(0, f.tell() - 64 * 1024))
            text = f.read().decode(errors="replace")
    except OSError as e:
        return f"({e})"
    return "\n".join(text.splitlines()[-lines:])


class Proc:
    """One child with its output in a file. start() again after the end appends to that file."""

    def __init__(self, name, argv, log, env=None):
        self.name = name
        self.argv = [str(a) for a in argv]
        self.log = log
        self.env = env
        self.popen = None

    @property
    def pid(self):
        return self.popen.pid

    def start(self):
        assert not self.alive(), f"{self.name} already runs"
        with open(self.log, "ab") as out:
            # Its own session: Ctrl-C in the terminal is ours to handle, in our order.
            self.popen = subprocess.Popen(
                self.argv,
                stdin=subprocess.DEVNULL,
                stdout=out,
                stderr=out,
                env=self.env,
                start_new_session=True,
                preexec_fn=die_with(os.getpid()),
            )
        _running.add(self)

    def alive(self):
        return self.popen is not None and self.popen.poll() is None

    def check(self):
        """Raises with the end of its log when it is not running."""
        if not self.alive():
            raise RuntimeError(self.describe_end())

    def describe_end(self):
        code = self.popen.returncode if self.popen else None
        return f"{self.name} ended with {code}; end of {self.log}:\n{tail(self.log)}"

    def signal(self, signum):
        if self.alive():
            self.popen.send_signal(signum)

    @contextlib.contextmanager
    def stopped(self):
        """It does nothing meanwhile, as its files then do not change."""
        self.popen.send_signal(signal.SIGSTOP)
        os.waitpid(self.pid, os.WUNTRACED)
        try:
            yield
        finally:
            self.popen.send_signal(signal.SIGCONT)

    def wait(self, timeout):
        code = self.popen.wait(timeout)
        _running.discard(self)
        return code

    def stop(self, timeout=10):
        """SIGTERM, then SIGKILL. Returns the exit code; negative when a signal ended it."""
        if self.popen is None:
            return None
        self.signal(signal.SIGTERM)
        try:
            return self.wait(timeout)
        except subprocess.TimeoutExpired:
            return self.kill()

    def kill(self):
        self.signal(signal.SIGKILL)
        return self.wait(10)


@atexit.register
def _kill_all():
    for p in list(_running):
        if p.alive():
            p.popen.kill()
            p.popen.wait()
