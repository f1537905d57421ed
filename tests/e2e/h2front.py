# SPDX-License-Identifier: MIT
"""The server's side of one HTTP/2 connection, for proxies that know HTTP/1.1 only.

Each stream becomes one HTTP/1.1 exchange on a socket pair, whose other end is served as a connection of its
own. An exchange that is cut ends the whole connection with all its streams, as a lost connection does. Header
blocks are decoded by libnghttp2, which the operator needs anyway; windows of the client are not looked at, as
no answer of the tests comes near the 4 MiB it opens for each stream.
"""

import ctypes
import select
import socket
import ssl
import struct

PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
DATA, HEADERS, RST_STREAM, SETTINGS, PING, WINDOW_UPDATE, CONTINUATION = 0, 1, 3, 4, 6, 8, 9
END_STREAM = ACK = 1
END_HEADERS, PADDED, PRIORITY = 4, 8, 32
FRAME_MAX = 16384
DROPPED = ("connection", "transfer-encoding", "keep-alive")


class _Pair(ctypes.Structure):
    _fields_ = [("name", ctypes.POINTER(ctypes.c_ubyte)), ("value", ctypes.POINTER(ctypes.c_ubyte)),
                ("name_len", ctypes.c_size_t), ("value_len", ctypes.c_size_t), ("flags", ctypes.c_ubyte)]


class Inflater:
    """HPACK to [(name, value)]."""

    def __init__(self):
        self.lib = ctypes.CDLL("libnghttp2.so.14")
        self.lib.nghttp2_hd_inflate_hd2.restype = ctypes.c_ssize_t
        self.lib.nghttp2_hd_inflate_hd2.argtypes = [
            ctypes.c_void_p, ctypes.POINTER(_Pair), ctypes.POINTER(ctypes.c_int), ctypes.c_char_p,
            ctypes.c_size_t, ctypes.c_int]
        self.state = ctypes.c_void_p()
        assert self.lib.nghttp2_hd_inflate_new(ctypes.byref(self.state)) == 0

    def headers(self, block):
        pair, flags, found = _Pair(), ctypes.c_int(), []
        while True:
            used = self.lib.nghttp2_hd_inflate_hd2(self.state, pair, flags, block, len(block), 1)
            if used < 0:
                raise ValueError(f"HPACK: {used}")
            block = block[used:]
            if flags.value & 2:
                found.append((bytes(pair.name[:pair.name_len]).decode(), bytes(pair.value[:pair.value_len]).decode()))
            if flags.value & 1:
                self.lib.nghttp2_hd_inflate_end_headers(self.state)
                return found

    def close(self):
        self.lib.nghttp2_hd_inflate_del(self.state)


def frame(kind, flags, stream, payload=b""):
    return struct.pack(">I", len(payload))[1:] + bytes([kind, flags]) + struct.pack(">I", stream) + payload


def _length(n):
    """An HPACK integer of a prefix of 7 bits."""
    if n < 127:
        return bytes([n])
    out, n = [127], n - 127
    while n >= 128:
        out.append(n % 128 + 128)
        n //= 128
    return bytes(out + [n])


def deflate(headers):
    return b"".join(b"\0" + _length(len(n)) + n + _length(len(v)) + v for n, v in headers)


class Exchange:
    """One stream: a request, and then the HTTP/1.1 answer to it as it comes."""

    def __init__(self, headers):
        self.headers, self.body, self.pair = headers, b"", None
        # Of the answer; left: bytes to come, of the whole or of the chunk.
        self.held, self.left, self.chunked = b"", None, False

    def request(self):
        known = dict(self.headers)
        lines = [f"{known[':method']} {known[':path']} HTTP/1.1", f"Host: {known[':authority']}"]
        lines += [f"{name}: {value}" for name, value in self.headers if name[0] != ":"]
        return ("\r\n".join(lines) + "\r\n\r\n").encode() + self.body

    def answer(self, stream, data):
        """(frames, is it the end) for bytes of the answer."""
        self.held += data
        out = b""
        if self.left is None:
            head, end, rest = self.held.partition(b"\r\n\r\n")
            if not end:
                return b"", False
            self.held = rest
            out = self._head(stream, head)
        body, ended = self._body()
        for at in range(0, len(body), FRAME_MAX):
            out += frame(DATA, 0, stream, body[at:at + FRAME_MAX])
        return out + (frame(DATA, END_STREAM, stream) if ended else b""), ended

    def _head(self, stream, head):
        first, *lines = head.split(b"\r\n")
        headers = [(n.strip().lower(), v.strip()) for n, _, v in (line.partition(b":") for line in lines)]
        known = dict(headers)
        self.chunked = known.get(b"transfer-encoding") == b"chunked"
        self.left = 0 if self.chunked else int(known.get(b"content-length", 0))
        block = deflate([(b":status", first.split(b" ")[1])]
                        + [(n, v) for n, v in headers if n.decode() not in DROPPED])
        return frame(HEADERS, END_HEADERS, stream, block)

    def _body(self):
        if not self.chunked:
            body, self.held = self.held[:self.left], self.held[self.left:]
            self.left -= len(body)
            return body, self.left == 0
        body = b""
        while True:
            if not self.left:
                size, end, rest = self.held.removeprefix(b"\r\n").partition(b"\r\n")
                if not end:
                    return body, False
                self.left, self.held = int(size, 16), rest
                if not self.left:
                    return body, True
            part = self.held[:self.left]
            if not part:
                return body, False
            body, self.held, self.left = body + part, self.held[len(part):], self.left - len(part)


class Front:
    """Serves CLIENT until either side is gone. serve(sock) takes one HTTP/1.1 connection and returns at once. While
    is_mute() nothing is answered, not even a PING."""

    def __init__(self, client, serve, is_mute=lambda: False):
        self.client, self.serve, self.is_mute = client, serve, is_mute
        self.streams, self.held, self.block, self.inflater = {}, b"", b"", Inflater()

    def run(self):
        try:
            self.client.sendall(frame(SETTINGS, 0, 0, struct.pack(">HI", 3, 100)))  # as the API server: 100 streams
            while self._turn():
                pass
        finally:
            for exchange in self.streams.values():
                if exchange.pair:
                    exchange.pair.close()
            self.inflater.close()

    def _turn(self):
        pairs = {x.pair: n for n, x in self.streams.items() if x.pair}
        ready = [self.client] if self.client.pending() else select.select([self.client, *pairs], [], [])[0]
        for sock in ready:
            if self.is_mute():
                if sock is self.client and not sock.recv(65536):
                    return False
                self.streams = {n: x for n, x in self.streams.items() if sock is self.client or x.pair is not sock}
            elif sock is self.client:
                if not self._from_client():
                    return False
            elif pairs[sock] in self.streams and not self._from_server(pairs[sock]):
                return False
        return True

    def _from_server(self, stream):
        exchange = self.streams[stream]
        data = exchange.pair.recv(65536)
        if not data:
            return False  # cut: the connection with it
        out, ended = exchange.answer(stream, data)
        if ended:
            self._end(stream)
        if out:
            self.client.sendall(out)
        return True

    def _end(self, stream):
        exchange = self.streams.pop(stream, None)
        if exchange and exchange.pair:
            exchange.pair.close()

    def _from_client(self):
        self.client.setblocking(False)
        try:
            data = self.client.recv(65536)
        except (ssl.SSLWantReadError, BlockingIOError):
            return True
        finally:
            self.client.setblocking(True)
        self.held += data
        if self.held.startswith(PREFACE):
            self.held = self.held[len(PREFACE):]
        while len(self.held) >= 9 and not PREFACE.startswith(self.held[:24]):
            length = int.from_bytes(self.held[:3], "big")
            if len(self.held) < 9 + length:
                break
            kind, flags, stream = self.held[3], self.held[4], int.from_bytes(self.held[5:9], "big")
            payload, self.held = self.held[9:9 + length], self.held[9 + length:]
            self._frame(kind, flags, stream, payload)
        return bool(data)

    def _frame(self, kind, flags, stream, payload):
        if kind in (SETTINGS, PING) and not flags & ACK:
            self.client.sendall(frame(kind, ACK, stream, payload if kind == PING else b""))
        elif kind == RST_STREAM:
            self._end(stream)
        elif kind in (HEADERS, CONTINUATION):
            if kind == HEADERS:
                self.ends = flags & END_STREAM
                payload = payload[5:] if flags & PRIORITY else payload
                assert not flags & PADDED
            self.block += payload
            if flags & END_HEADERS:
                self.streams[stream] = Exchange(self.inflater.headers(self.block))
                self.block = b""
                self._asked(stream, self.ends)
        elif kind == DATA:
            if payload:
                more = struct.pack(">I", len(payload))
                self.client.sendall(frame(WINDOW_UPDATE, 0, 0, more) + frame(WINDOW_UPDATE, 0, stream, more))
            if stream in self.streams:
                self.streams[stream].body += payload
                self._asked(stream, flags & END_STREAM)

    def _asked(self, stream, ends):
        if ends:
            exchange = self.streams[stream]
            exchange.pair, theirs = socket.socketpair()
            self.serve(theirs)
            exchange.pair.sendall(exchange.request())
