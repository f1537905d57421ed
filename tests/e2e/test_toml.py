# SPDX-License-Identifier: MIT
"""base/toml beside Python's tomllib: the same documents, and the same texts refused."""

import datetime
import glob
import json
import os
import random
import subprocess
import tomllib

import pytest

from conftest import lacking
from controlplane import TOP

TOOL = os.path.join(os.environ.get("TEC_BUILDDIR", TOP), "tests", "tools", "tec-test-toml")
CORPUS = os.path.join(TOP, "tests", "fuzz", "corpus", "toml", "*")
# Refused by us alone, each for a reason of its own: no name and no path has a NUL, integers are 64 bits.
STRICTER = ("NUL character", "beyond 64 bits")
PIECES = ["a", "b", "'a'", "\"b\"", ".", "=", " = ", "1", "0", "-", "_", "2.5", "e3", "true", "inf", "[", "]", "[[",
          "]]", "{", "}", ",", "\n", "\n", "\r\n", " ", "#c", "\"", "'", "\"\"\"", "'''", "\\", "\\u0041", "x",
          "1979-05-27", "T07:32:00", "Z", "[a]\n", "[a.b]\n", "[[a]]\n", "a = 1\n", "b.c = 2\n", "a = {b = 1}\n",
          "a = [1, 2]\n", "b = [{}]\n"]


def ours(texts):
    if not os.access(TOOL, os.X_OK):
        lacking(f"no {TOOL}; next step: make")
    done = subprocess.run([TOOL], input=json.dumps(texts), capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return [json.loads(line) for line in done.stdout.splitlines()]


def plain(value):
    """As ours would show it; dates and times are any text."""
    if isinstance(value, dict):
        return {k: plain(v) for k, v in value.items()}
    if isinstance(value, list):
        return [plain(v) for v in value]
    if isinstance(value, (datetime.date, datetime.time)):
        return datetime
    if isinstance(value, float) and (value != value or value in (float("inf"), float("-inf"))):
        return float
    return value


def same(theirs, mine):
    if theirs is datetime or theirs is float:
        return isinstance(mine, str)
    if isinstance(theirs, dict):
        return isinstance(mine, dict) and theirs.keys() == mine.keys() and all(
            same(v, mine[k]) for k, v in theirs.items())
    if isinstance(theirs, list):
        return isinstance(mine, list) and len(theirs) == len(mine) and all(map(same, theirs, mine))
    return type(theirs) is type(mine) and theirs == mine


def judge(text, answer):
    """What is wrong; None: nothing."""
    try:
        theirs = tomllib.loads(text)
    except (tomllib.TOMLDecodeError, RecursionError) as e:
        return f"accepted, tomllib says {e}" if "value" in answer else None
    if "error" in answer:
        return None if any(s in answer["error"] for s in STRICTER) else f"refused: {answer['error']}"
    return None if same(plain(theirs), answer["value"]) else f"{answer['value']} for {theirs}"


def compare(texts):
    answers = ours(texts)
    assert len(answers) == len(texts)
    wrong = [(t, w) for t, w in ((t, judge(t, a)) for t, a in zip(texts, answers)) if w]
    assert not wrong, wrong[:5]
    return sum("value" in a for a in answers)


def corpus():
    texts = [open(f, encoding="utf-8", newline="").read() for f in sorted(glob.glob(CORPUS))]
    assert texts
    return texts


def test_files_are_read_as_by_tomllib():
    assert compare(corpus()) >= 3  # beside those that are refused


@pytest.mark.parametrize("seed", range(4))
def test_random_texts_are_read_or_refused_as_by_tomllib(seed):
    r = random.Random(seed)
    texts = ["".join(r.choice(PIECES) for _ in range(r.randint(1, 12))) for _ in range(20000)]
    good = compare(texts)
    assert 500 < good < len(texts) - 500, good


@pytest.mark.parametrize("seed", range(2))
def test_changed_files_are_read_or_refused_as_by_tomllib(seed):
    r = random.Random(seed)
    texts = []
    for text in corpus():
        for _ in range(1000):
            at, n = r.randrange(len(text)), r.choice((0, 1, 1, 2, 5))
            texts.append(text[:at] + r.choice(("", *PIECES)) + text[at + n:])
    assert compare(texts) > 100
