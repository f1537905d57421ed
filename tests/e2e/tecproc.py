# SPDX-License-Identifier: MIT
"""The built tec-operator as a child process, with what a test wants to know about it."""

import http.client
import os
import re
import signal

from controlplane import TOP, wait_for
from proc import Proc, free_port, tail

# What gcc's and clang's sanitizers print. A leak shows at exit only, with a non-zero code.
SANITIZER = re.compile(r"ERROR: (Address|Leak|Thread)Sanitizer|runtime error:")
_SAMPLE = re.compile(r"^([A-Za-z_:][\w:]*(?:\{.*\})?)\s+(\S+)")


def operator_binary():
    build = os.environ.get("TEC_BUILDDIR", TOP)
    return os.environ.get("TEC_OPERATOR", os.path.join(build, "tec-operator"))


def parse_metrics(text):
    """Prometheus text as {'name{label="v"}': float}, labels as the exporter wrote them."""
    samples = (_SAMPLE.match(line) for line in text.splitlines() if not line.startswith("#"))
    return {m[1]: float(m[2]) for m in samples if m}


class Operator:
    """One tec-operator on free loopback ports, kept over restarts. Ended by terminate(), kill9()
    or close(); close() is what a fixture calls, and is where a sanitizer's report fails the test
    even when nothing else noticed."""

    def __init__(self, kubeconfig, namespace, directory, args=(), env=None):
        self.register_port, self.register_ak_port, self.health_port = (
            free_port() for _ in range(3))
        self.namespace = namespace
        self.log = os.path.join(directory, f"tec-operator-{self.health_port}.log")
        argv = [
            operator_binary(), "--kubeconfig", kubeconfig, "--namespace", namespace,
            "--listen-register", f"127.0.0.1:{self.register_port}",
            "--listen-register-ak", f"127.0.0.1:{self.register_ak_port}",
            "--listen-health", f"127.0.0.1:{self.health_port}", *args]
        merged = dict(os.environ)
        # The caller's kubeconfig would hide a forgotten --kubeconfig, and could be a real cluster.
        merged.pop("KUBECONFIG", None)
        merged.setdefault("ASAN_OPTIONS", "detect_leaks=1:strict_string_checks=1")
        merged.setdefault("UBSAN_OPTIONS", "print_stacktrace=1:halt_on_error=1")
        merged.update(env or {})
        self.proc = Proc("tec-operator", argv, self.log, merged)

    def start(self, wait_ready=True, timeout=30):
        self.proc.start()
        if wait_ready:
            self.wait_ready(timeout)
        return self

    def wait_ready(self, timeout=30):
        def ready():
            self.proc.check()
            return self.health("/readyz")[0] == 200

        try:
            wait_for(ready, timeout, "ready tec-operator")
        except TimeoutError as e:
            raise TimeoutError(f"{e}; end of its log:\n{tail(self.log)}") from e

    @property
    def pid(self):
        return self.proc.pid

    def alive(self):
        return self.proc.alive()

    # Ends

    def terminate(self, timeout=15):
        """SIGTERM; exit 0 within 10 s is promised. Fails the test otherwise."""
        self.proc.check()
        self.proc.signal(signal.SIGTERM)
        code = self.proc.wait(timeout)
        self.check_log()
        assert code == 0, f"exit {code} on SIGTERM; end of its log:\n{tail(self.log)}"

    def kill9(self):
        self.proc.kill()
        self.check_log()

    def restart(self, wait_ready=True):
        """Same ports, same log file."""
        if self.alive():
            self.terminate()
        return self.start(wait_ready)

    def close(self):
        try:
            if self.alive():
                self.terminate()
            elif self.proc.popen and self.proc.popen.returncode not in (0, -signal.SIGKILL):
                raise AssertionError(self.proc.describe_end())
            self.check_log()
        finally:
            self.proc.stop(1)

    def check_log(self):
        found = SANITIZER.search(self.log_text())
        if found:
            text = self.log_text()[found.start():]
            raise AssertionError(f"sanitizer report in {self.log}:\n{text[:6000]}")

    # What it says and takes

    def log_text(self):
        try:
            with open(self.log, encoding="utf-8", errors="replace") as f:
                return f.read()
        except FileNotFoundError:
            return ""

    def health(self, path):
        """(status, body) of the health port, whose connections are not kept on purpose: a test
        that looks must not change the number of open ones."""
        conn = http.client.HTTPConnection("127.0.0.1", self.health_port, timeout=5)
        try:
            conn.request("GET", path)
            answer = conn.getresponse()
            return answer.status, answer.read().decode()
        except http.client.HTTPException as e:
            raise OSError(f"health port: {e!r}") from e
        finally:
            conn.close()

    def metrics(self):
        status, body = self.health("/metrics")
        assert status == 200, body
        return parse_metrics(body)

    def cpu_seconds(self):
        """User and system time so far."""
        with open(f"/proc/{self.pid}/stat", encoding="ascii") as f:
            # The name in parentheses may hold anything; utime and stime are fields 14 and 15.
            fields = f.read().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    def memory_kib(self):
        """{'VmRSS': …, 'RssAnon': …, 'RssFile': …, 'VmHWM': …}; VmHWM is the peak."""
        with open(f"/proc/{self.pid}/status", encoding="ascii") as f:
            pairs = (line.split(":", 1) for line in f)
            return {k: int(v.split()[0]) for k, v in pairs
                    if k in ("VmRSS", "RssAnon", "RssFile", "VmHWM")}
