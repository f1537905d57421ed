# SPDX-License-Identifier: MIT
"""A program of client-go as it is, against kube-apiserver and against tec-operator --standalone: it lists, watches and
writes, prints lines of what it sees, and the lines must be the same. A line that differs on purpose stands in DIFFERENT,
with the reason."""

import os
import re
import subprocess

import pytest

from conftest import lacking
from controlplane import TOP
from tecproc import operator_binary
from test_standalone import Standalone
from test_two_servers import OUR_PLACE, on_both

NS = "clients-of-go"
TIME = 900  # of one program; on an idle machine a minute

# The beginning of a line -> why it is another one here.
DIFFERENT = {
    'selectors: labels "" fields "data.x=1"': "the sentence is our own",
    "errors: kind: NotFound": "a kind that is not served is named",
    'watch-initial: initial false match "" version "abc"':
        "a version that is no number is the client's error, 400, in our own words; kube-apiserver answers 500",
}


def clients_binary():
    """tests/clients, built where it is not there yet."""
    build = os.path.join(TOP, "tests", "clients", "build.sh")
    done = subprocess.run([build], stdout=subprocess.PIPE, text=True, check=False)
    if done.returncode:
        lacking(f"{build} failed; its last line says what to do")
    return done.stdout.strip()


@pytest.fixture(scope="module")
def alone(tmp_path_factory):
    if not os.access(operator_binary(), os.X_OK):
        lacking(f"no {operator_binary()}; next step: make, or set TEC_OPERATOR")
    server = Standalone(str(tmp_path_factory.mktemp("clients") / "state"))
    server.start()
    yield server
    if server.process.poll() is None:
        assert server.stop() == 0, server.log()


def reasons_of(line):
    """Of an invalid object the reasons and fields: the sentences are each server's own."""
    return re.sub(r'^(errors: \w+: Invalid): .* \[(\w+) (\S+) ".*"\]$', r"\1 [\2 \3]", line)


def compare(theirs, ours, different):
    """What is wrong, as text: lines that differ and are not listed, listed ones that do not."""
    theirs, ours = [reasons_of(line) for line in theirs], [reasons_of(line) for line in ours]
    wrong = [f"claims that do not hold on kube-apiserver: {line}" for line in theirs if ": FAILED" in line]

    def listed(line):
        return next((start for start in different if line.startswith(start)), None)

    told = [[line for line in lines if not listed(line)] for lines in (theirs, ours)]
    if told[0] != told[1]:
        wrong += [f"only there: {line}" for line in told[0] if line not in told[1]]
        wrong += [f"only here:  {line}" for line in told[1] if line not in told[0]]
        wrong = wrong or ["the same lines in another order"]
    for start, why in different.items():
        if [line for line in theirs if line.startswith(start)] == [line for line in ours if line.startswith(start)]:
            wrong.append(f"the same, but listed as different ({why}): {start}")
    return "\n".join(wrong)


def lines_of(kubeconfig, ns):
    done = subprocess.run([clients_binary(), f"--namespace={ns}"], env=dict(os.environ, KUBECONFIG=kubeconfig),
                          capture_output=True, text=True, timeout=TIME, check=False)
    assert done.stdout, done.stderr
    return done.stdout.replace(ns, OUR_PLACE).splitlines()


def test_client_go(cp, alone):
    """Informers, typed and dynamic clients, what is cut and goes on."""
    cp.kubectl("create", "namespace", NS)
    theirs, ours = on_both(lambda server: lines_of(*server), (
        (cp.admin_kubeconfig, NS), (f"{alone.dir}/kubeconfig", OUR_PLACE)))
    assert len(theirs) > 80
    assert not compare(theirs, ours, DIFFERENT), compare(theirs, ours, DIFFERENT)


def test_the_table_of_protobuf_is_of_the_types_of_kubernetes(tmp_path):
    made = subprocess.run([clients_binary(), "protobuf-fields"], capture_output=True, text=True, check=True).stdout
    with open(os.path.join(TOP, "src", "schema", "fields.c"), encoding="utf-8") as f:
        assert f.read() == made, "next step: tec-test-clients protobuf-fields >src/schema/fields.c"
    subprocess.run([clients_binary(), "protobuf-samples", str(tmp_path)], check=True)
    samples = os.path.join(TOP, "tests", "data", "protobuf")
    for name in os.listdir(samples):
        if not re.search(r"\.(pb|json)$", name):
            continue
        with open(os.path.join(samples, name), "rb") as have, open(tmp_path / name, "rb") as want:
            assert name.endswith(".pb") or have.read() == want.read(), name
