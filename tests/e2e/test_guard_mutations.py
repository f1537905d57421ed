# SPDX-License-Identifier: MIT
"""Thousands of mutated attestations through the guard, against readers of Python's own: whatever reaches
Trustee says the same to them as it said to the guard, and is what the guard shall let through. No TPM is
needed, as the guard leaves the signature to Trustee."""

import base64
import copy
import hashlib
import http.client
import http.server
import json
import os
import random
import struct
import subprocess
import threading

import pytest

from guarded import KEY, Guard, attest_body, b64, read_quote

CASES = int(os.environ.get("TEC_TEST_MUTATIONS", "3000"))
SEED = int(os.environ.get("TEC_TEST_SEED", "20260101"))
ALL = [(11, list(range(24)))]
# What readers of JSON do not agree about.
ODD = (b"\\u0000", b"\\ud800", b"\\udc00\\ud800", b"\xc0\xaf", b"\xed\xa0\x80", b"\xef\xbb\xbf", b"\xf4\x90\x80\x80", b"//x\n",
       b"/*x*/", b",", b"NaN", b"1", b"\x00", b"\x0b", b'"', b"{", b"}")


def attest(rng, values, extra, selections, digest=None, tail=b"", kind=0x8018, magic=0xff544347):
    """TPMS_ATTEST; selections: [(bank, bytes of the map)]."""
    def sized(data):
        return struct.pack(">H", len(data)) + data

    if digest is None:
        digest = hashlib.sha256(b"".join(values)).digest()
    body = struct.pack(">IH", magic, kind) + sized(b"\x00\x0b" + rng.randbytes(32)) + sized(extra)
    body += rng.randbytes(24) + rng.choice((b"\0", b"\1")) + struct.pack(">I", len(selections))
    for bank, bits in selections:
        body += struct.pack(">HB", bank, len(bits)) + bits
    return body + sized(digest) + tail


class Maker:
    """Attestations, genuine but for the signature, and one mutation of one after another."""

    def __init__(self, seed, spki):
        self.rng = random.Random(seed)
        self.spki = spki

    def evidence(self, **how):
        rng = self.rng
        values = [rng.randbytes(32) for _ in range(24)]
        how.setdefault("extra", rng.randbytes(32))
        how.setdefault("selections", [(11, b"\xff\xff\xff")])
        return {"tpm_quote": {"signature": b64(b"\x00\x14\x00\x0b\x01\x00" + rng.randbytes(256)),
                              "message": b64(attest(rng, values, **how)),
                              "pcrs": [v.hex() for v in values]},
                "ak_public": b64(self.spki)}

    def text(self, most=40):
        rng = self.rng
        ranges = ((1, 128), (128, 0xd800), (0xe000, 0x110000))
        return "".join(chr(rng.randrange(*rng.choice(ranges))) for _ in range(rng.randrange(most)))

    def body(self, **how):
        more = {}
        if self.rng.random() < 0.4:
            inner = 'version = "0.1.0"\nalgorithm = "sha256"\n[data]\n"a" = "' + "é😀"[self.rng.randrange(2)] + '"\n'
            more["init-data"] = self.rng.choice((None, {"format": "toml", "body": inner}))
        return attest_body(self.text() + "n", self.evidence(**how), key=dict(KEY), **more)

    # ---- of the quote

    def quote(self):
        rng = self.rng
        bits = [rng.choice((b"\xff\xff\xff", rng.randbytes(3), rng.randbytes(rng.randrange(9)))) for _ in range(16)]
        banks = (4, 11, 12, 13, 0x12, 0x27, rng.randrange(65536))
        how = rng.choice((
            {"selections": [(rng.choice(banks), bits[i]) for i in range(rng.randrange(17))]},
            {"selections": [(11, b"\xff\xff\xff")], "tail": rng.randbytes(rng.randrange(1, 9))},
            {"extra": rng.randbytes(rng.randrange(70))},
            {"kind": rng.choice((0x8014, 0x8017, 0x8018, 0x801c, rng.randrange(65536)))},
            {"magic": rng.choice((0xff544347, 0, 0x474354ff))},
            {"digest": rng.randbytes(rng.randrange(70))},
            {"selections": [(11, b"\xff\xff\xff\x00")]}, {"selections": [(11, b"\xff\xff\xff"), (11, b"\0\0\0")]},
        ))
        return self.write(self.body(**how))

    def bytes_of_quote(self):
        rng, body = self.rng, self.body()
        quote = body["tee-evidence"]["primary_evidence"]["tpm_quote"]
        member = rng.choice(("message", "signature"))
        data = bytearray(base64.b64decode(quote[member]))
        for _ in range(rng.randrange(1, 3)):
            at = rng.randrange(len(data) + 1)
            change = rng.randrange(3)
            if change == 0 and at < len(data):
                data[at] ^= 1 << rng.randrange(8)
            elif change == 1:
                data[at:at] = rng.randbytes(rng.randrange(1, 5))
            else:
                del data[at:at + rng.randrange(1, 5)]
        quote[member] = b64(bytes(data))
        return self.write(body)

    def values(self):
        rng, body = self.rng, self.body()
        quote = body["tee-evidence"]["primary_evidence"]["tpm_quote"]
        pcrs = quote["pcrs"]
        i, k = rng.randrange(24), rng.randrange(24)
        change = rng.randrange(8)
        if change == 0:
            pcrs[i], pcrs[k] = pcrs[k], pcrs[i]
        elif change == 1:
            pcrs[i] = pcrs[i].upper()
        elif change == 2:
            pcrs.append(pcrs[i])
        elif change == 3:
            del pcrs[i]
        elif change == 4:
            pcrs[i] = rng.choice((pcrs[i][:-1], pcrs[i] + "0", "0x" + pcrs[i][2:], " " + pcrs[i][1:], "", "g" * 64))
        elif change == 5:
            pcrs[i] = rng.choice((7, None, [pcrs[i]], {"a": pcrs[i]}, True, 1.5))
        elif change == 6:  # 25 values whose bytes are the same
            pcrs[i:i + 1] = [pcrs[i][:32], pcrs[i][32:]]
        else:
            quote["pcrs"] = rng.choice((pcrs[::-1], "".join(pcrs), {str(n): v for n, v in enumerate(pcrs)}))
        return self.write(body)

    def encoding(self):
        rng, body = self.rng, self.body()
        primary = body["tee-evidence"]["primary_evidence"]
        where, member = rng.choice(((primary["tpm_quote"], "message"), (primary["tpm_quote"], "signature"),
                                    (primary, "ak_public")))
        text = where[member]
        at = rng.randrange(len(text))
        where[member] = rng.choice((
            text.replace("+", "-").replace("/", "_"), text.rstrip("="), text + "=", text + "\n", text + "AAAA",
            text[:at] + rng.choice("\n =\x00é") + text[at:], text[:-1] + chr(ord(text[-1]) ^ 1),
            text[:at] + rng.choice("ABCDwxyz0189+/") + text[at + 1:]))
        return self.write(body)

    # ---- of the object

    def shape(self):
        rng, body = self.rng, self.body()
        paths = []

        def walk(o, at):
            for name, value in o.items() if isinstance(o, dict) else ():
                paths.append(at + (name,))
                walk(value, at + (name,))

        walk(body, ())
        for _ in range(rng.randrange(1, 3)):
            path = rng.choice(paths)
            o = body
            for name in path[:-1]:
                o = o.get(name) if isinstance(o, dict) else None
            if not isinstance(o, dict) or path[-1] not in o:
                continue
            name, value = path[-1], o[path[-1]]
            change = rng.randrange(6)
            if change == 0:
                del o[name]
            elif change == 1:
                o[rng.choice((name + "x", name.upper(), name.replace("-", "_"), "kid", ""))] = copy.deepcopy(value)
            elif change == 2:
                o[name] = rng.choice((7, None, True, [value], {"a": value}, "", -0.0, 1e300, self.text()))
            elif change == 3:
                o[name] = rng.choice((o[name], str(o[name]) + rng.choice("\n\t a\u0000\u007f\u2028")))
            elif change == 4:
                items = list(o.items())
                rng.shuffle(items)
                o.clear()
                o.update(items)
            else:
                o[self.text(6)] = rng.choice((1, "x", {}, []))
        return self.write(body)

    # ---- of the text

    def write(self, body):
        """One of the ways to spell it."""
        rng = self.rng
        way = rng.randrange(5)
        if way < 2:
            return json.dumps(body, ensure_ascii=bool(way)).encode("utf-8", "surrogatepass")
        text = json.dumps(body, indent=rng.choice((None, 1, "\t")), ensure_ascii=False,
                          separators=rng.choice(((",", ":"), (" , ", " : "))))
        if way == 3:
            text = text.replace("/", "\\/")
        if way == 4:  # escapes where none is needed
            text = "".join(f"\\u{ord(c):04x}" if c.isalnum() and ord(c) < 128 and rng.random() < 0.1 and inside else c
                           for c, inside in zip(text, strings(text)))
        return text.encode("utf-8", "surrogatepass")

    def double(self):
        """A member twice, or the same name spelled in two ways."""
        rng = self.rng
        text = json.dumps(self.body())
        name = rng.choice(("runtime-data", "tee-evidence", "primary_evidence", "tpm_quote", "message", "pcrs", "kty",
                           "signature", "ak_public", "nonce", "tee-pubkey", "x", "additional_evidence"))
        at = text.index(f'"{name}": ')
        spelled = name if rng.random() < 0.5 else f"\\u{ord(name[0]):04x}" + name[1:]
        other = json.dumps(rng.choice(("x", None, self.body()["tee-evidence"]["primary_evidence"], [])))
        add = f'"{spelled}": {other}, '
        return (text[:at] + add + text[at:]).encode()

    def raw(self):
        rng = self.rng
        data = bytearray(self.write(self.body()))
        for _ in range(rng.randrange(1, 4)):
            at = rng.randrange(len(data) + 1)
            change = rng.randrange(5)
            if change == 0 and at < len(data):
                data[at] = rng.randrange(256)
            elif change == 1:
                data[at:at] = rng.choice(ODD)
            elif change == 2:
                del data[at:at + rng.randrange(1, 6)]
            elif change == 3 and at < len(data):
                data[at] ^= 1 << rng.randrange(8)
            else:
                end = min(len(data), at + rng.randrange(1, 30))
                data[at:at] = data[at:end]
        return bytes(data)

    def genuine(self):
        return self.write(self.body())

    def next(self):
        return self.rng.choice((self.genuine, self.quote, self.bytes_of_quote, self.values, self.encoding, self.shape,
                                self.double, self.raw))()


def strings(text):
    """For each character: is it inside a string, and no part of an escape?"""
    inside = escape = False
    for c in text:
        yield inside and not escape and c not in '"\\'
        if escape:
            escape = False
        elif inside and c == "\\":
            escape = True
        elif c == '"':
            inside = not inside


# ---- the other reader

class Refused(Exception):
    pass


def once(pairs):
    out = dict(pairs)
    if len(out) != len(pairs):
        raise Refused("a member is there twice")
    return out


def no_constant(text):
    raise Refused(text)


def read(data):
    """RFC 8259, strictly, by Python's own reader."""
    try:
        o = json.loads(data.decode("utf-8"), object_pairs_hook=once, parse_constant=no_constant)
        json.dumps(o, ensure_ascii=False).encode("utf-8")  # no lone surrogates
    except (ValueError, RecursionError) as e:
        raise Refused(str(e)) from e
    return o


# Every member that Trustee reads; others are ignored and not passed on.
KNOWN = {"init-data": {"format": None, "body": None},
         "runtime-data": {"nonce": None, "tee-pubkey": None},
         "tee-evidence": {"primary_evidence": {"tpm_quote": {"signature": None, "message": None, "pcrs": None},
                                               "ak_public": None},
                          "additional_evidence": None}}


def known(value, members):
    """The value without unknown members, at any depth."""
    if not members or not isinstance(value, dict):
        return value
    return {name: known(value[name], members[name]) for name in members if name in value}


def check(sent, forwarded):
    """What reached Trustee: is it what the guard lets through, and what was sent?"""
    a, b = known(read(sent), KNOWN), read(forwarded)
    runtime, evidence = b["runtime-data"], b["tee-evidence"]
    assert set(b) - {"init-data"} == {"runtime-data", "tee-evidence"}
    assert set(runtime) == {"nonce", "tee-pubkey"} and set(evidence) == {"primary_evidence", "additional_evidence"}
    primary = evidence["primary_evidence"]
    assert set(primary) == {"tpm_quote", "ak_public"} and set(primary["tpm_quote"]) == {"signature", "message", "pcrs"}
    # Members of the key that Trustee knows; it drops others before it hashes.
    key = a["runtime-data"]["tee-pubkey"]
    assert set(runtime["tee-pubkey"]) <= set(key)
    assert {k: key[k] for k in runtime["tee-pubkey"]} == runtime["tee-pubkey"]
    assert set(runtime["tee-pubkey"]) >= set(key) & {"kty", "crv", "alg", "x", "y", "n", "e"}
    assert runtime["nonce"] == a["runtime-data"]["nonce"]
    quote = a["tee-evidence"]["primary_evidence"]["tpm_quote"]
    quote["pcrs"] = [value.lower() for value in quote["pcrs"]]
    assert evidence == a["tee-evidence"] and evidence["additional_evidence"] == ""
    assert b.get("init-data") == a.get("init-data")
    # The quote itself, by a reader written from the TPM specification.
    quote = primary["tpm_quote"]
    for text in (quote["message"], quote["signature"], primary["ak_public"]):
        assert b64(base64.b64decode(text, validate=True)) == text
    extra, selections, digest = read_quote(base64.b64decode(quote["message"]))
    assert selections == ALL and len(extra) == 32
    assert len(quote["pcrs"]) == 24 and all(len(v) == 64 and isinstance(v, str) for v in quote["pcrs"])
    assert hashlib.sha256(bytes.fromhex("".join(quote["pcrs"]))).digest() == digest
    assert forwarded.isascii() or forwarded.decode()  # UTF-8


# ---- through the guard

class Recorder:
    """A Trustee that keeps what it gets, by the cookie."""

    def __init__(self):
        self.got = {}
        outer = self

        class Handler(http.server.BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"
            disable_nagle_algorithm = True

            def do_POST(self):
                body = self.rfile.read(int(self.headers["Content-Length"]))
                outer.got.setdefault(self.headers["Cookie"], []).append((self.path, body))
                self.end(b'{"token":"t"}')

            def do_GET(self):
                self.end(b"")

            def end(self, body):
                self.wfile.write(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n%s" % (len(body), body))

            def log_message(self, *_):
                pass

        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.server.daemon_threads = True
        threading.Thread(target=self.server.serve_forever, daemon=True).start()
        self.url = f"http://127.0.0.1:{self.server.server_address[1]}"

    def stop(self):
        self.server.shutdown()
        self.server.server_close()


@pytest.fixture(scope="module")
def spki(tmp_path_factory):
    where = tmp_path_factory.mktemp("ak")
    subprocess.run(["openssl", "genrsa", "-out", where / "key.pem", "2048"], check=True, capture_output=True)
    return subprocess.run(["openssl", "rsa", "-in", where / "key.pem", "-pubout", "-outform", "DER"], check=True,
                          capture_output=True).stdout


def test_the_other_reader_notices_what_must_not_pass(spki):
    maker = Maker(SEED, spki)
    body = attest_body("nonce", maker.evidence(), key=dict(KEY))
    good = json.dumps(body).encode()
    check(good, json.dumps(body, indent=2).encode())
    newer = good.replace(b'"ak_public"', b'"more": {"pcrs": []}, "ak_public"')
    check(newer, good)
    forged = [maker.evidence(**how) for how in (
        {"selections": [(11, b"\x0f\0\0"), (11, b"\xf0\xff\xff")]}, {"selections": [(4, b"\xff\xff\xff")]},
        {"selections": []}, {"extra": b"x" * 48}, {"digest": b"x" * 32}, {"kind": 0x8014}, {"tail": b"\0"})]
    bad = [(b, b) for b in (json.dumps(attest_body("nonce", e, key=dict(KEY))).encode() for e in forged)]
    bad += [(newer, newer), (good, good.replace(b'"nonce": "nonce"', b'"nonce": "nonse"')),
            (good.replace(b'"nonce"', b'"nonce":"a","nonce"'), good), (good, good + b"{}"),
            (good, good.replace(b"ECDH-ES+A256KW", b"none")), (good, good[:-1] + b',"init-data":{}}'),
            (good, good.replace(b'"additional_evidence": ""', b'"additional_evidence": "{}"'))]
    for sent, forwarded in bad:
        with pytest.raises((AssertionError, Refused, KeyError, ValueError, struct.error)):
            check(sent, forwarded)


def test_whatever_is_forwarded_is_what_was_checked_to_another_reader_too(spki, tmp_path):
    maker, recorder = Maker(SEED, spki), Recorder()
    guard = Guard(recorder.url, str(tmp_path), "--rate-limit", "off", "--log-level", "error").start()
    forwarded = refused = 0
    conn = None
    try:
        for case in range(CASES):
            body, cookie = maker.next(), f"kbs-session-id={case:032x}"
            if len(body) > 60000:
                continue
            if conn is None:
                conn = http.client.HTTPConnection("127.0.0.1", guard.port, timeout=60)
            conn.request("POST", "/kbs/v0/attest", body, {"Cookie": cookie})
            answer = conn.getresponse()
            text = answer.read()
            if answer.will_close:
                conn.close()
                conn = None
            got = recorder.got.pop(cookie, [])
            if answer.status != 200:
                assert answer.status == 401 and not got, (case, answer.status, body)
                assert set(json.loads(text)) == {"type", "detail"}
                refused += 1
                continue
            assert len(got) == 1 and got[0][0] == "/kbs/v0/attest", (case, got)
            forwarded += 1
            try:
                check(body, got[0][1])
            except (AssertionError, Refused, KeyError, TypeError, ValueError, struct.error) as e:
                raise AssertionError(f"case {case} of seed {SEED}: {e!r}\nsent {body!r}\nforwarded {got[0][1]!r}") from e
        assert recorder.got == {}
    finally:
        if conn:
            conn.close()
        guard.stop()
        recorder.stop()
    print(f"{CASES} mutations: {forwarded} forwarded, {refused} refused")
    assert forwarded > CASES / 10 and refused > CASES / 3, (forwarded, refused)
