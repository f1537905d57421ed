#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""forward.py PORT NETNS-FILE ADDRESS APORT: a loopback port out here leads to an address in another network namespace.
A socket stays in the network it was made in, so one listens first, and enters the other one to connect."""

import ctypes
import os
import socket
import sys
import threading

_CLONE_NEWNET = 0x40000000


def pump(source, sink):
    try:
        while data := source.recv(65536):
            sink.sendall(data)
        sink.shutdown(socket.SHUT_WR)
    except OSError:
        for s in (source, sink):
            s.close()


def serve(accepted, target):
    try:
        connected = socket.create_connection(target, timeout=10)
    except OSError:
        accepted.close()
        return
    connected.settimeout(None)
    for ends in ((accepted, connected), (connected, accepted)):
        threading.Thread(target=pump, args=ends, daemon=True).start()


def main():
    port, namespace, address, target_port = sys.argv[1:]
    listener = socket.create_server(("127.0.0.1", int(port)), backlog=128)
    fd = os.open(namespace, os.O_RDONLY)
    if ctypes.CDLL(None, use_errno=True).setns(fd, _CLONE_NEWNET) != 0:
        sys.exit(f"forward.py: setns: {os.strerror(ctypes.get_errno())}")
    while True:
        accepted, _ = listener.accept()
        threading.Thread(target=serve, args=(accepted, (address, int(target_port))), daemon=True).start()


if __name__ == "__main__":
    main()
