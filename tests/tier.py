#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""Tiers: tests that take minutes and run when their inputs changed since they last passed. tests/tiers has a file for each.

  tier.py due TIER       exit 0 and a reason: it has to run; exit 1 and "inputs unchanged since DATE": it does not
  tier.py digest TIER    of its inputs as they are in this folder
  tier.py passed TIER DIGEST   it passed with this digest: written to tests/tiers/TIER.passed, to be committed with the change
  tier.py --selftest     a folder of files, changed in every way

Lines of tests/tiers/TIER, each a key and its value:

  title TEXT, minutes N (the most a busy machine may take), packages NAME (of ./bootstrap)
  folder PATH            the tier is all tests of this folder, or
  test PATTERN           these of tests/e2e: MODULE or MODULE::TEST, as fnmatch has it
  smoke PATTERN          except these, which run with every change
  input PATH             a file, a folder, or names by a pattern; FILE#HEADING is one section of a Markdown file, up to the next
                         heading of level 2

The tier's file, its folder and the files of its tests are inputs themselves. TIER.passed is the record, in the tree because a
fresh clone has nothing else. What cannot be compared (no git, an input that is gone) has to run; without any record a tier
runs only when it is asked for. TEC_ALL=1: it has to run.
"""

import datetime
import fnmatch
import hashlib
import os
import re
import subprocess
import sys
import tempfile

TOP = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))


class Unknown(Exception):
    """Why the inputs cannot be compared."""


def git(top, *args):
    try:
        done = subprocess.run(["git", "-C", top, *args], capture_output=True, check=False)
    except OSError as e:
        raise Unknown(f"git does not run: {e}") from e
    if done.returncode:
        raise Unknown(f"git {args[0]}: {done.stderr.decode(errors='replace').strip()}")
    return done.stdout


def names(top=TOP):
    return sorted(n for n in os.listdir(os.path.join(top, "tests", "tiers")) if not n.endswith((".passed", ".new")))


def values(top, tier, key):
    """Of the lines that begin with KEY."""
    try:
        with open(os.path.join(top, "tests", "tiers", tier), encoding="utf-8") as f:
            lines = [re.sub(r"(^|\s)#.*", "", line).strip().partition(" ") for line in f]
    except OSError as e:
        raise Unknown(f"tests/tiers/{tier} cannot be read: {e.strerror}") from e
    return [value.strip() for found, _, value in lines if found == key]


def tests(top=TOP):
    """{tier: (its tests, those of them that run with every change)}, patterns of MODULE or MODULE::TEST."""
    return {tier: (values(top, tier, "test"), values(top, tier, "smoke")) for tier in names(top)}


def matches(name, patterns):
    """Those that NAME, MODULE::TEST[PARAMETERS], matches."""
    name = name.split("[", maxsplit=1)[0]
    return [p for p in patterns if fnmatch.fnmatchcase(name, p) or fnmatch.fnmatchcase(name, p + "::*")]


def of_test(name, table):
    """The tier of a test of tests/e2e in what tests() gave; None: it runs with every change."""
    found = [tier for tier, (of, smoke) in table.items() if matches(name, of) and not matches(name, smoke)]
    if len(found) > 1:
        raise Unknown(f"{name} belongs to several tiers: {', '.join(found)}")
    return found[0] if found else None


def input_lines(top, tier):
    """(paths, sections)."""
    named = values(top, tier, "input")
    modules = {pattern.split("::", maxsplit=1)[0] for pattern in values(top, tier, "test")}
    own = [f"tests/tiers/{tier}", *values(top, tier, "folder"), *(f"tests/e2e/{m}.py" for m in sorted(modules))]
    return [n for n in named if "#" not in n] + own, [n for n in named if "#" in n]


def section(top, name):
    """The bytes of FILE#HEADING."""
    path, _, heading = name.partition("#")
    try:
        with open(os.path.join(top, path), "rb") as f:
            found = re.search(rb"^## %s\n.*?(?=^## |\Z)" % re.escape(heading.encode()), f.read(), re.M | re.S)
    except OSError as e:
        raise Unknown(f"{path} cannot be read: {e.strerror}") from e
    if not found:
        raise Unknown(f"{path} has no section '{heading}'")
    return found[0]


def digest(top, tier):
    """Names, contents and executable bits of the inputs as they lie here, committed or not."""
    paths, sections = input_lines(top, tier)
    listed = git(top, "ls-files", "-z", "--cached", "--others", "--exclude-standard", "--", *paths)
    files = sorted({n for n in listed.split(b"\0") if n})
    for path in map(os.fsencode, paths):
        if not any(n.startswith(path + b"/") or fnmatch.fnmatchcase(n, path) for n in files):
            raise Unknown(f"git does not know the input {os.fsdecode(path)}")
    total = hashlib.sha256()
    for name in sorted(sections):
        total.update(b"section %s %s\n" % (hashlib.sha256(section(top, name)).hexdigest().encode(), name.encode()))
    for name in files:
        path = os.path.join(os.fsencode(top), name)
        if os.path.islink(path):
            kind, data = b"link", os.readlink(path)
        elif os.path.isfile(path):
            kind = b"program" if os.access(path, os.X_OK) else b"file"
            with open(path, "rb") as f:
                data = f.read()
        else:
            continue  # deleted, not yet for git
        total.update(b"%s %s %s\n" % (kind, hashlib.sha256(data).hexdigest().encode(), name))
    return total.hexdigest()


def record(top, tier):
    """(digest, date) of the last pass; None: there was none."""
    try:
        with open(os.path.join(top, "tests", "tiers", tier + ".passed"), encoding="utf-8") as f:
            found = re.search(r"^([0-9a-f]{64}) (\d{4}-\d\d-\d\d)$", f.read(), re.M)
    except FileNotFoundError:
        return None
    except OSError as e:
        raise Unknown(f"tests/tiers/{tier}.passed cannot be read: {e.strerror}") from e
    if not found:
        raise Unknown(f"tests/tiers/{tier}.passed contains no valid record")
    return found.groups()


def due(top, tier):
    """(whether it has to run, why)."""
    if os.environ.get("TEC_ALL") == "1":
        return True, "TEC_ALL=1"
    try:
        if not record(top, tier):
            return False, f"no pass is recorded yet; request it with --{tier} or TEC_ALL=1"
        known, date = record(top, tier)
        if known == digest(top, tier):
            return False, f"inputs unchanged since {date}"
        return True, f"inputs changed since {date}"
    except Unknown as e:
        return True, str(e)


def passed(top, tier, value):
    """Nothing is written when an input changed meanwhile: it is not known what passed."""
    if digest(top, tier) != value:
        raise Unknown("an input changed while it ran")
    try:
        if (record(top, tier) or ("",))[0] == value:
            return False
    except Unknown:
        pass
    text = ("# SPDX-License-Identifier: MIT\n# The inputs this tier last passed with, and when. ./bootstrap check writes it;"
            f" commit it with the change.\n{value} {datetime.date.today().isoformat()}\n")
    path = os.path.join(top, "tests", "tiers", tier + ".passed")
    with open(path + ".new", "w", encoding="utf-8") as f:
        f.write(text)
    os.replace(path + ".new", path)
    return True


def selftest():
    os.environ.pop("TEC_ALL", None)
    for name in [n for n in os.environ if n.startswith("GIT_")]:
        del os.environ[name]
    with tempfile.TemporaryDirectory(prefix="tec-tier-") as top:
        def write(name, text):
            os.makedirs(os.path.dirname(os.path.join(top, name)), exist_ok=True)
            with open(os.path.join(top, name), "w", encoding="utf-8") as f:
                f.write(text)

        inputs = ("title x\nfolder tests/x\ntest test_a*\ntest test_c::test_1\nsmoke test_ab::test_2\n"
                  "input src  # all of it\ninput N*S\ninput README#One part\n")
        readme = "# x\n\n## Before\nb\n\n## One part\ntext\n\n## After\na\n"
        write("tests/tiers/x", inputs)
        write("README", readme)
        write("NEWS", "n")
        write("src/a.c", "a")
        write("tests/x/test.py", "t")
        write("tests/e2e/test_ab.py", "t")
        write("tests/e2e/test_c.py", "t")
        write("other", "o")
        assert not due(top, "x")[0], "no record"
        write("tests/tiers/x.passed", "0" * 64 + " 2026-01-02\n")
        assert due(top, "x")[0], "no git repository"
        git(top, "init", "-q")
        write(".gitignore", "*.o\n")
        assert due(top, "x") == (True, "inputs changed since 2026-01-02")
        assert passed(top, "x", digest(top, "x")) and not passed(top, "x", digest(top, "x"))
        today = datetime.date.today().isoformat()
        settled = (False, f"inputs unchanged since {today}")
        assert due(top, "x") == settled
        for change, undo in (
                (lambda: write("src/a.c", "b"), lambda: write("src/a.c", "a")),
                (lambda: write("src/new.c", ""), lambda: os.unlink(f"{top}/src/new.c")),
                (lambda: os.rename(f"{top}/src/a.c", f"{top}/src/b.c"), lambda: os.rename(f"{top}/src/b.c", f"{top}/src/a.c")),
                (lambda: os.unlink(f"{top}/NEWS"), lambda: write("NEWS", "n")),
                (lambda: os.chmod(f"{top}/src/a.c", 0o755), lambda: os.chmod(f"{top}/src/a.c", 0o644)),
                (lambda: write("tests/tiers/x", "input src\n"), lambda: write("tests/tiers/x", inputs)),
                (lambda: write("README", readme.replace("text", "word")), lambda: write("README", readme)),
                (lambda: write("README", "# x\n"), lambda: write("README", readme)),
                (lambda: write("tests/x/more.py", ""), lambda: os.unlink(f"{top}/tests/x/more.py")),
                (lambda: write("tests/e2e/test_ab.py", ""), lambda: write("tests/e2e/test_ab.py", "t")),
                (lambda: write("tests/e2e/test_c.py", ""), lambda: write("tests/e2e/test_c.py", "t")),
                (lambda: os.unlink(f"{top}/tests/e2e/test_c.py"), lambda: write("tests/e2e/test_c.py", "t")),
                (lambda: write("tests/tiers/x.passed", "no record"), lambda: passed(top, "x", digest(top, "x"))),
                (lambda: os.environ.update(TEC_ALL="1"), lambda: os.environ.pop("TEC_ALL"))):
            change()
            assert due(top, "x")[0], "a change was not seen"
            undo()
            assert due(top, "x") == settled, "what was undone is still a change"
        for name, tier in (("test_ab::test_1", "x"), ("test_ab::test_2", None), ("test_ab::test_2[1]", None), ("test_b::test_1", None),
                           ("test_c::test_1", "x"), ("test_c::test_1[a]", "x"), ("test_c::test_12", None)):
            assert of_test(name, tests(top)) == tier, name
        write("tests/tiers/y", "test test_c\n")
        try:
            of_test("test_c::test_1", tests(top))
            raise AssertionError("a test of two tiers")
        except Unknown:
            pass
        write("other", "changed")
        write("README", readme.replace("b\n", "c\n").replace("a\n", "d\n"))
        write("src/a.o", "built")
        git(top, "add", "src")
        assert due(top, "x") == settled, "no input changed"
        try:
            passed(top, "x", "1" * 64)
            raise AssertionError("recorded what did not run")
        except Unknown:
            pass
    print("tier.py: all changes were seen")


def main(args):
    if args == ["--selftest"]:
        selftest()
        return 0
    if len(args) < 2 or args[0] not in ("due", "digest", "passed"):
        print(__doc__, file=sys.stderr)
        return 2
    try:
        if args[0] == "due":
            must, why = due(TOP, args[1])
            print(why)
            return 0 if must else 1
        if args[0] == "digest":
            print(digest(TOP, args[1]))
        elif passed(TOP, *args[1:]):
            print(f"tests/tiers/{args[1]}.passed is written; commit it with the change")
        return 0
    except Unknown as e:
        print(e)
        return 3


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
