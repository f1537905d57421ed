# SPDX-License-Identifier: MIT
"""Carries TPM commands from standard input to swtpm's socket and the answers back, for tpm2-tss's "cmd:"
TCTI; before command number N it dies, or ends the process that asks: tpmpipe.py SOCKET N die|term"""

import os
import signal
import socket
import sys


def read(fd, n):
    data = b""
    while len(data) < n:
        chunk = os.read(fd, n - len(data))
        if not chunk:
            sys.exit(0)
        data += chunk
    return data


def message(fd):
    head = read(fd, 10)
    return head + read(fd, int.from_bytes(head[2:6], "big") - 10)


def main():
    path, at, what = sys.argv[1], int(sys.argv[2]), sys.argv[3]
    tpm = socket.socket(socket.AF_UNIX)
    tpm.connect(path)
    number = 0
    while True:
        command = message(0)
        if number == at and what == "die":
            os._exit(1)
        if number == at:
            os.kill(asking(), signal.SIGTERM)
        tpm.sendall(command)
        os.write(1, message(tpm.fileno()))
        number += 1


def asking():
    """The nearest ancestor that is tec-node: a shell may be in between."""
    pid = os.getppid()
    while pid > 1:
        with open(f"/proc/{pid}/stat", encoding="ascii") as f:
            stat = f.read()
        if "(tec-node)" in stat:
            return pid
        pid = int(stat.rsplit(")", 1)[1].split()[1])
    sys.exit(1)


main()
