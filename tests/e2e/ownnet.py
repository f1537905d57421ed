# SPDX-License-Identifier: MIT
"""A loopback of its own for each of several pytest processes that run side by side: a server that a
test starts again on its port must find it free."""

import contextlib
import ctypes
import fcntl
import os
import socket
import struct

_CLONE_NEWNET = 0x40000000
_SIOCSIFFLAGS = 0x8914
_SIOCSIFADDR = 0x8916
_IFF_UP = 1
# An address there that is not the loopback's: what only 127.0.0.1 may do is tried from it.
OTHER = "203.0.113.1"


_libc = ctypes.CDLL(None, use_errno=True)
_outside = None


def _here():
    return os.open("/proc/thread-self/ns/net", os.O_RDONLY | os.O_CLOEXEC)


def enter():
    """False where this process may not have one (not root); it then shares what is there."""
    global _outside
    outside = _here()
    if _libc.unshare(_CLONE_NEWNET) != 0:
        os.close(outside)
        return False
    _outside = outside
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as s:
        fcntl.ioctl(s, _SIOCSIFFLAGS, struct.pack("16sh14x", b"lo", _IFF_UP))
    add(1, OTHER)
    return True


def add(number, address):
    """One more address of this loopback."""
    name = f"lo:{number}".encode()
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as s:
        fcntl.ioctl(s, _SIOCSIFADDR, struct.pack("16sH2x4s16x", name, socket.AF_INET, socket.inet_aton(address)))


@contextlib.contextmanager
def left():
    """What this thread starts meanwhile has the machine's network: to download something."""
    if _outside is None:
        yield
        return
    inside = _here()
    try:
        if _libc.setns(_outside, _CLONE_NEWNET) != 0:
            raise OSError(ctypes.get_errno(), "setns")
        try:
            yield
        finally:
            _libc.setns(inside, _CLONE_NEWNET)
    finally:
        os.close(inside)


@contextlib.contextmanager
def inside():
    """What this thread starts meanwhile has a network of its own; False where it may not have one."""
    global _outside
    before, outside = _outside, _here()
    entered = enter()
    try:
        yield entered
    finally:
        if entered:
            _libc.setns(outside, _CLONE_NEWNET)
        _outside = before
        os.close(outside)


def is_one_of_several():
    return "PYTEST_XDIST_WORKER" in os.environ
