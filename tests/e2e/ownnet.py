# SPDX-License-Identifier: MIT
"""A loopback of its own for each of several pytest processes that run side by side: a server that a
test starts again on its port must find it free."""

import ctypes
import fcntl
import os
import socket
import struct

_CLONE_NEWNET = 0x40000000
_SIOCSIFFLAGS = 0x8914
_IFF_UP = 1


def enter():
    """False where this process may not have one (not root); it then shares what is there."""
    if ctypes.CDLL(None, use_errno=True).unshare(_CLONE_NEWNET) != 0:
        return False
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as s:
        fcntl.ioctl(s, _SIOCSIFFLAGS, struct.pack("16sh14x", b"lo", _IFF_UP))
    return True


def is_one_of_several():
    return "PYTEST_XDIST_WORKER" in os.environ
