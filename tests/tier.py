#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""Whether a tier of tests has to run: a folder of tests that take minutes, which runs when its inputs changed since it
last passed.

  tier.py due TIER       exit 0 and a reason: it has to run; exit 1 and "inputs unchanged since DATE": it does not
  tier.py digest TIER    of its inputs as they are in this folder
  tier.py passed TIER DIGEST   it passed with this digest: written to tests/TIER/passed, to be committed with the change
  tier.py --selftest     a folder of files, changed in every way

tests/TIER/inputs lists files and folders, one per line; FILE#HEADING is one section of a Markdown file, up to the next
heading of level 2. The tier's folder is an input itself. tests/TIER/passed is the record, in the tree because a fresh clone
has nothing else. What cannot be compared (no record, no git, an input that is gone) has to run. TEC_ALL=1: it has to run.
"""

import datetime
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


def input_lines(top, tier):
    """(paths, sections)."""
    try:
        with open(os.path.join(top, "tests", tier, "inputs"), encoding="utf-8") as f:
            lines = [re.sub(r"(^|\s)#.*", "", line).strip() for line in f]
    except OSError as e:
        raise Unknown(f"tests/{tier}/inputs cannot be read: {e.strerror}") from e
    return [n for n in lines if n and "#" not in n] + [f"tests/{tier}"], [n for n in lines if "#" in n]


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
    names = sorted({n for n in listed.split(b"\0") if n} - {f"tests/{tier}/passed".encode()})
    for path in map(os.fsencode, paths):
        if not any(n == path or n.startswith(path + b"/") for n in names):
            raise Unknown(f"git does not know the input {os.fsdecode(path)}")
    total = hashlib.sha256()
    for name in sorted(sections):
        total.update(b"section %s %s\n" % (hashlib.sha256(section(top, name)).hexdigest().encode(), name.encode()))
    for name in names:
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
    """(digest, date) of the last pass."""
    try:
        with open(os.path.join(top, "tests", tier, "passed"), encoding="utf-8") as f:
            found = re.search(r"^([0-9a-f]{64}) (\d{4}-\d\d-\d\d)$", f.read(), re.M)
    except OSError:
        found = None
    if not found:
        raise Unknown("it is not recorded that it passed")
    return found.groups()


def due(top, tier):
    """(whether it has to run, why)."""
    if os.environ.get("TEC_ALL") == "1":
        return True, "TEC_ALL=1"
    try:
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
        if record(top, tier)[0] == value:
            return False
    except Unknown:
        pass
    text = ("# SPDX-License-Identifier: MIT\n# The inputs this tier last passed with, and when. ./bootstrap check writes it;"
            f" commit it with the change.\n{value} {datetime.date.today().isoformat()}\n")
    path = os.path.join(top, "tests", tier, "passed")
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

        inputs = "src  # all of it\nNEWS\nREADME#One part\n"
        readme = "# x\n\n## Before\nb\n\n## One part\ntext\n\n## After\na\n"
        write("tests/x/inputs", inputs)
        write("README", readme)
        write("NEWS", "n")
        write("src/a.c", "a")
        write("other", "o")
        assert due(top, "x")[0], "no record"
        write("tests/x/passed", "0" * 64 + " 2026-01-02\n")
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
                (lambda: write("tests/x/inputs", "src\n"), lambda: write("tests/x/inputs", inputs)),
                (lambda: write("README", readme.replace("text", "word")), lambda: write("README", readme)),
                (lambda: write("README", "# x\n"), lambda: write("README", readme)),
                (lambda: write("tests/x/test.py", ""), lambda: os.unlink(f"{top}/tests/x/test.py")),
                (lambda: write("tests/x/passed", "no record"), lambda: passed(top, "x", digest(top, "x"))),
                (lambda: os.environ.update(TEC_ALL="1"), lambda: os.environ.pop("TEC_ALL"))):
            change()
            assert due(top, "x")[0], "a change was not seen"
            undo()
            assert due(top, "x") == settled, "what was undone is still a change"
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
            print(f"tests/{args[1]}/passed is written; commit it with the change")
        return 0
    except Unknown as e:
        print(e)
        return 3


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
