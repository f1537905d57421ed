#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""Counts what test runners reported, and distrusts them: a run without tests, a program without a summary, and a skipped
test are told apart from success.

  count.py automake BUILDDIR [GLOB]   the .log and .trs files below BUILDDIR/tests that `make check` left
  count.py asserted BUILDDIR [GLOB]   the programs there that may have a second try, a line each: assertions of theirs failed,
                                      if they are few, and nothing worse happened
  count.py failed JUNIT.XML           the tests of it that may have a second try, a line each: all that failed, if they are few
  count.py pytest JUNIT.XML [AGAIN]   what pytest --junitxml wrote; AGAIN: the second try. Who passes there is named
  count.py slow-programs BUILDDIR [GLOB]
  count.py slow-tests JUNIT.XML       those that took longest, and at least 5 s: seconds and name of each
  count.py --selftest                 known logs, known sums

Prints one line "PASSED FAILED SKIPPED", and what is wrong on standard error.
"""

import glob
import os
import re
import sys
import tempfile
import typing
import xml.etree.ElementTree

_ANSI = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]")
# Criterion: a crashed test is in Failing as well; skipped tests are in none of them.
_SYNTHESIS = re.compile(
    r"\[====\] Synthesis: Tested: (\d+) \| Passing: (\d+) \| Failing: (\d+) \| Crashing: (\d+)")
_SANITIZER = re.compile(r"(Address|Leak|UndefinedBehavior)Sanitizer|runtime error:")
SECOND_TRIES = 3
_RESULT = re.compile(r"^:test-result: (\w+)", re.M)


def complain(text):
    print(f"count: {text}", file=sys.stderr)


def read(path):
    with open(path, encoding="utf-8", errors="replace") as f:
        return f.read()


def count_program(name, result, log):
    """One Criterion program: its log must hold exactly one summary."""
    found = _SYNTHESIS.findall(_ANSI.sub("", log))
    if len(found) != 1:
        complain(f"{name}: {len(found)} summaries in its log instead of 1 (it ended with {result})")
        return 0, 1, 0
    tested, passing, failing, _ = map(int, found[0])
    if tested == 0:
        complain(f"{name}: ran no test")
        return 0, 1, 0
    if tested != passing + failing:
        complain(f"{name}: {tested} tested, but {passing} passing and {failing} failing")
        return passing, max(failing, tested - passing), 0
    if failing == 0 and result != "PASS":
        complain(f"{name}: every test passed, but the program ended with {result} "
                 "(a sanitizer's report or a leak: see its log)")
        return passing, 1, 0
    return passing, failing, 0


def results_of(builddir, pattern):
    """[(name, verdict, log)] of automake's tests."""
    found = []
    for trs in sorted(glob.glob(os.path.join(builddir, "tests", "**", f"{pattern}.trs"), recursive=True)):
        base = trs[:-len(".trs")]
        verdict = _RESULT.search(read(trs))
        log = read(base + ".log") if os.path.exists(base + ".log") else ""
        found.append((os.path.relpath(base, builddir), verdict[1] if verdict else "no verdict", log))
    return found


def count_automake(builddir, pattern="*"):
    total = [0, 0, 0]
    results = results_of(builddir, pattern)
    if not results:
        complain(f"no results below {builddir}/tests")
        return 0, 1, 0
    for name, verdict, log in results:
        if os.path.basename(name).startswith("test_"):
            one = count_program(name, verdict, log)
        else:
            one = {"PASS": (1, 0, 0), "SKIP": (0, 0, 1)}.get(verdict, (0, 1, 0))
            if one[1] or one[2]:
                complain(f"{name}: {verdict}")
        total = [a + b for a, b in zip(total, one)]
    return tuple(total)


def asserted_automake(builddir, pattern="*"):
    """What crashed, leaked or ended without a summary has no second try."""
    few, names = 0, []
    for name, _, log in results_of(builddir, pattern):
        text = _ANSI.sub("", log)
        found = _SYNTHESIS.findall(text)
        if len(found) != 1 or _SANITIZER.search(text):
            continue
        _, _, failing, crashing = map(int, found[0])
        few += failing
        if failing and not crashing:
            names.append(name)
    return names if few <= SECOND_TRIES else []


class Case(typing.NamedTuple):
    name: str  # pytest's node id
    kinds: set  # of what went wrong
    seconds: float


def cases_of(path):
    """None: there is no report."""
    try:
        root = xml.etree.ElementTree.parse(path).getroot()
    except (OSError, xml.etree.ElementTree.ParseError) as e:
        complain(f"pytest left no report: {e}")
        return None
    return [Case(f"{c.get('classname', '').replace('.', '/')}.py::{c.get('name', '')}", {child.tag for child in c},
                 float(c.get("time", 0))) for c in root.iter("testcase")]


def has_failed(kinds):
    return bool(kinds & {"failure", "error"})


def failed_pytest(path):
    failed = [name for name, kinds, _ in cases_of(path) or () if has_failed(kinds)]
    return failed if len(failed) <= SECOND_TRIES else []


def count_pytest(path, again=None):
    cases = cases_of(path)
    if cases is None:
        return 0, 1, 0
    second = {name for name, kinds, _ in (again and cases_of(again)) or () if not kinds}
    passed = failed = skipped = 0
    for name, kinds, _ in cases:
        if has_failed(kinds) and name in second:
            complain(f"{name}: passed at the second try only; find out why, it is a defect of the program or of the test")
            passed += 1
        elif has_failed(kinds):
            failed += 1
        elif "skipped" in kinds:
            skipped += 1
        else:
            passed += 1
    if passed + failed == 0:
        complain(f"{path}: no test ran")
        failed = 1
    return passed, failed, skipped


def longest(found, most):
    return sorted((f for f in found if f[0] >= 5), reverse=True)[:most]


def slow_programs(builddir, pattern="*"):
    """By what build-aux/test-wrapper.sh notes at the end of a log."""
    found = [(re.findall(r"^took (\d+) ms$", log, re.M), name) for name, _, log in results_of(builddir, pattern)]
    return longest([(int(took[-1]) / 1000, name) for took, name in found if took], 3)


def slow_tests(path):
    return longest([(case.seconds, case.name) for case in cases_of(path) or ()], 10)


def second_tries(report, again):
    """What goes wrong in counting them."""
    def write(path, *cases):
        with open(path, "w", encoding="ascii") as f:
            f.write("<testsuites>" + "".join(
                f'<testcase classname="tests.e2e.test_x" name="{n}">{"" if ok else "<failure/>"}</testcase>'
                for n, ok in cases) + "</testsuites>")

    bad = []
    write(report, ("a", True), ("b[1]", False), ("c", False))
    write(again, ("b[1]", True), ("c", False), ("never", True))
    if failed_pytest(report) != ["tests/e2e/test_x.py::b[1]", "tests/e2e/test_x.py::c"]:
        bad.append("names for a second try")
    if count_pytest(report, again) != (2, 1, 0):
        bad.append("a second try")
    if count_pytest(report, again + ".none") != (1, 2, 0):
        bad.append("no second try")
    write(report, *((str(i), False) for i in range(SECOND_TRIES + 1)))
    if failed_pytest(report):
        bad.append("too many for a second try")
    return bad


def selftest():
    line = "\x1b[0;34m[====]\x1b[0m Synthesis: Tested: \x1b[0;34m{}\x1b[0m | " \
           "Passing: \x1b[0;32m{}\x1b[0m | Failing: \x1b[0;31m{}\x1b[0m | Crashing: {} \n"
    programs = [
        ("good", "PASS", line.format(9, 9, 0, 0), (9, 0, 0)),
        ("plain", "PASS", _ANSI.sub("", line.format(2, 2, 0, 0)), (2, 0, 0)),
        ("failing", "FAIL", line.format(14, 11, 3, 1), (11, 3, 0)),
        ("empty", "PASS", line.format(0, 0, 0, 0), (0, 1, 0)),
        ("aborted", "FAIL", "terminated\n", (0, 1, 0)),
        ("leaking", "FAIL", line.format(5, 5, 0, 0), (5, 1, 0)),
        ("short", "PASS", line.format(5, 3, 1, 0), (3, 2, 0)),
        ("twice", "PASS", line.format(5, 5, 0, 0) * 2, (0, 1, 0)),
    ]
    bad = [n for n, result, log, want in programs if count_program(n, result, log) != want]
    with tempfile.TemporaryDirectory() as d:
        if count_automake(d) != (0, 1, 0):
            bad.append("no results")
        os.mkdir(os.path.join(d, "tests"))
        for name, verdict in (("check-a", "PASS"), ("check-b", "FAIL"), ("check-c", "SKIP"),
                              ("check-d", "ERROR"), ("test_e", "PASS")):
            with open(os.path.join(d, "tests", f"{name}.trs"), "w", encoding="ascii") as f:
                f.write(f":test-result: {verdict}\n:global-test-result: {verdict}\n")
            with open(os.path.join(d, "tests", f"{name}.log"), "w", encoding="ascii") as f:
                f.write(line.format(4, 4, 0, 0) if name == "test_e" else "x\n")
        if count_automake(d) != (5, 2, 1):
            bad.append("automake")
        if count_automake(d, "check-*") != (1, 2, 1):
            bad.append("automake with a pattern")
        for name, log, want in (
                ("test_f", line.format(4, 3, 1, 0), ["tests/test_f"]),
                ("test_g", line.format(4, 3, 1, 1), ["tests/test_f"]),
                ("test_h", line.format(4, 3, 1, 0) + "x.c:1: runtime error: overflow\n", ["tests/test_f"]),
                ("test_i", line.format(4, 4, 0, 0) + "LeakSanitizer\n", ["tests/test_f"]),
                ("test_j", line.format(9, 8, 1, 0), ["tests/test_f", "tests/test_j"]),
                ("test_k", line.format(9, 8, 1, 0), [])):
            for suffix, text in ((".trs", ":test-result: FAIL\n"), (".log", log)):
                with open(os.path.join(d, "tests", name + suffix), "w", encoding="ascii") as f:
                    f.write(text)
            if asserted_automake(d, "test_*") != want:
                bad.append(f"second try after {name}")
        report = os.path.join(d, "junit.xml")
        if count_pytest(report) != (0, 1, 0):
            bad.append("no report")
        for text, want in (
                ('<testsuites><testsuite><testcase/><testcase><failure/></testcase><testcase>'
                 '<error/></testcase><testcase><skipped/></testcase></testsuite></testsuites>',
                 (1, 2, 1)),
                ("<testsuites><testsuite/></testsuites>", (0, 1, 0)),
                ("<testsuites>", (0, 1, 0))):
            with open(report, "w", encoding="ascii") as f:
                f.write(text)
            if count_pytest(report) != want:
                bad.append(text)
        bad += second_tries(report, os.path.join(d, "again.xml"))
        with open(report, "w", encoding="ascii") as f:
            f.write("<testsuites>" + "".join(f'<testcase classname="tests.e2e.test_x" name="n{i}" time="{i}.5"/>' for i in range(20))
                    + "</testsuites>")
        if slow_tests(report)[0] != (19.5, "tests/e2e/test_x.py::n19") or len(slow_tests(report)) != 10 or slow_tests(d):
            bad.append("slowest of pytest")
        with open(os.path.join(d, "tests", "test_e.log"), "a", encoding="ascii") as f:
            f.write("took 6500 ms\n")
        if slow_programs(d) != [(6.5, "tests/test_e")]:
            bad.append("slowest of automake")
    print(f"count.py --selftest: {len(programs) + 19 - len(bad)} cases as expected"
          + (f", wrong: {', '.join(bad)}" if bad else ""))
    return 1 if bad else 0


def main(args):
    if args == ["--selftest"]:
        return selftest()
    if len(args) in (2, 3) and args[0] == "automake":
        print(*count_automake(*args[1:]))
    elif len(args) in (2, 3) and args[0] == "pytest":
        print(*count_pytest(*args[1:]))
    elif len(args) in (2, 3) and args[0] in ("slow-programs", "slow-tests"):
        for seconds, name in (slow_programs if args[0] == "slow-programs" else slow_tests)(*args[1:]):
            print(f"{seconds:8.1f}   {name}")
    elif len(args) in (2, 3) and args[0] == "asserted":
        for name in asserted_automake(*args[1:]):
            print(name)
    elif len(args) == 2 and args[0] == "failed":
        for name in failed_pytest(args[1]):
            print(name)
    else:
        print(__doc__, file=sys.stderr)
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
