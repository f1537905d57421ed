#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""Unit tests that assert nothing: a Test() of tests/*/test_*.c that neither asserts nor calls a function of the tests that
does, and expects no signal or exit code. And calls of json-c in the API server that assert when a value has another type
than they want, or answer NULL when there is no memory: a request's body must not end the process.

  asserts.py TREE         names them; exit 1 when there is one, or no test at all
  asserts.py --selftest   a tree with one of each
"""

import glob
import os
import re
import sys
import tempfile

_NO_CODE = re.compile(r'"(?:\\.|[^"\\\n])*"|/\*.*?\*/', re.S)
# Functions begin in the first column; so does the brace that ends one.
_FUNCTION = re.compile(r"^(?!Test\()[A-Za-z_][^;{}()#]*?(\w+)\([^;{}]*\)\s*\{$(.*?)^\}", re.M | re.S)
_MACRO = re.compile(r"^#define\s+(\w+)(.*?[^\\])$", re.M | re.S)
_TEST = re.compile(r"^(?:Test|ParameterizedTest)\(([^{;]*?)\)\s*\{$(.*?)^\}", re.M | re.S)
_JSON = re.compile(r"\bjson_object_(?:array_(?!foreach\b)\w+|object_(?:add|add_ex|length|del|foreach\w*)|new_\w+|deep_copy"
                   r"|to_json_string\w*|set_\w+)\b")
_ASSERTS = re.compile(r"\bcr_(?:assert|expect|fail)|\bassert\(|\bDIE\(|\babort\(")
_EXPECTS = re.compile(r"\.(?:signal|exit_code)\s*=")


def read(path):
    with open(path, encoding="utf-8") as f:
        return _NO_CODE.sub(lambda m: '""' if m[0][0] == '"' else "", f.read())


def asserting(texts):
    """Names of functions and macros that assert, or call one that does."""
    bodies = {}
    for text in texts:
        for name, body in _FUNCTION.findall(text) + _MACRO.findall(text):
            bodies[name] = bodies.get(name, "") + body
    found = {name for name, body in bodies.items() if _ASSERTS.search(body)}
    words = {name: set(re.findall(r"(\w+)\(", body)) for name, body in bodies.items()}
    while True:
        more = {name for name in bodies if name not in found and words[name] & found}
        if not more:
            return found
        found |= more


def check(tree):
    paths = sorted(glob.glob(os.path.join(tree, "tests", "*", "*.[ch]")))
    texts = {path: read(path) for path in paths}
    helpers = asserting(texts.values())
    total, bad = 0, []
    for path, text in texts.items():
        for head, body in _TEST.findall(text):
            total += 1
            if not (_ASSERTS.search(body) or _EXPECTS.search(head) or set(re.findall(r"(\w+)\(", body)) & helpers):
                bad.append(f"{os.path.relpath(path, tree)}: {' '.join(head.split())} asserts nothing")
    rooms = ("schema", "store", "apireq", "apihttp")
    for path in sorted(p for room in rooms for p in glob.glob(os.path.join(tree, "src", room, "*.[ch]"))):
        for call in sorted(set(_JSON.findall(read(path)))):
            bad.append(f"{os.path.relpath(path, tree)}: {call}() may end the process; tec/base/json.h has what cannot")
    return total, bad


def selftest():
    with tempfile.TemporaryDirectory(prefix="tec-asserts-") as tree:
        os.makedirs(os.path.join(tree, "tests", "x"))
        with open(os.path.join(tree, "tests", "x", "test_x.c"), "w", encoding="ascii") as f:
            f.write("#define CHECK(a) \\\n\tcr_assert(a)\n"
                    "static void idle(int a)\n{\n\t(void)a;\n}\n"
                    "static void deep(int a)\n{\n\tif (a) {\n\t\tCHECK(a);\n\t}\n}\n"
                    "static int outer(int a)\n{\n\tdeep(a);\n\treturn a;\n}\n"
                    "Test(x, direct)\n{\n\tcr_expect_str_eq(a, \"/*\");\n}\n"
                    "Test(x, called)\n{\n\t(void)outer(1);\n}\n"
                    "Test(x, ends, .signal = SIGABRT)\n{\n\tidle(1);\n}\n"
                    "Test(x, nothing)\n{\n\tidle(1); /* cr_assert */\n}\n")
        os.makedirs(os.path.join(tree, "src", "schema"))
        with open(os.path.join(tree, "src", "schema", "x.c"), "w", encoding="ascii") as f:
            f.write("/* json_object_new_int() */\nint x = json_object_array_length(a) + json_object_object_get_ex(b);\n")
        want = ["tests/x/test_x.c: x, nothing asserts nothing",
                "src/schema/x.c: json_object_array_length() may end the process; tec/base/json.h has what cannot"]
        assert check(tree) == (4, want), check(tree)
    print("asserts.py: what asserts nothing was found, and what asserts too much")
    return 0


def main(args):
    if args == ["--selftest"]:
        return selftest()
    if len(args) != 1:
        print(__doc__, file=sys.stderr)
        return 2
    total, bad = check(args[0])
    print("".join(f"{line}\n" for line in bad) + f"check-asserts: {total} unit tests, {len(bad)} faults")
    return 1 if bad or not total else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
