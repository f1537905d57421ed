# SPDX-License-Identifier: MIT
"""Debian 12's kubectl, 1.20, in one session against kube-apiserver and against tec-operator --standalone. It is downloaded
and not installed: its package cannot be beside another one's /usr/bin/kubectl."""

import json
import os

import pytest

import debfiles
from conftest import lacking
from test_two_servers import V1, machine, on_both, shown, two_servers

NS = "debian-kubectl"
MACHINE = json.dumps(machine())
READY = json.dumps({"metadata": {"labels": {"a": "c"}}})

# What reads standard input gets the Machine.
STEPS = ("create configmap c --from-literal=a=b", "create secret generic s --from-literal=a=b",
         "get cm c -o yaml", "get secret s -o yaml", "describe secret s", "explain machine", "explain machine.spec",
         "diff -f -", "apply -f -", "apply -f -", "diff -f -", "apply --server-side --dry-run=server -f -",
         "get machines", "get mach -o wide", "get machine m1 -o json", "get machines --show-labels",
         "get machines -o custom-columns=N:.metadata.name,I:.spec.id", "describe machine m1", "label machine m1 a=b",
         "label machine m1 a=b2", "annotate machine m1 n=o", f"patch machine m1 --type=merge -p {READY.replace(' ', '')}",
         "get machines -l a=c -o name", "wait --for=condition=Ready machine/m1 --timeout=1s", "get machine absent",
         "create serviceaccount a", "auth can-i delete machines", f"api-resources --api-group={V1.split('/', maxsplit=1)[0]}",
         "delete machine m1", "delete machine m1", "delete cm/c secret/s sa/a")

# Step -> why a person sees something else here.
DIFFERENT = {"explain machine": "what describes the standard fields is in our own words"}


@pytest.fixture(scope="module")
def kubectl():
    try:
        found = debfiles.find("kubernetes-client", "amd64", "usr/bin/kubectl")
    except debfiles.Unavailable as e:
        lacking(str(e))
    os.chmod(found, 0o755)
    return found


@pytest.fixture(scope="module")
def both(cp, tmp_path_factory):
    with two_servers(cp, tmp_path_factory.mktemp("debian"), NS) as servers:
        yield servers


def test_one_session_of_an_old_kubectl(both, kubectl):
    wrong = []

    def session(server):
        program = [kubectl, f"--cache-dir={server.env['KUBECACHEDIR']}-old"]
        return [server.kubectl(step, MACHINE, program) for step in STEPS]

    sessions = on_both(session, both)
    for step, there, here in zip(STEPS, *sessions):
        if step.startswith("diff"):  # it names temporary files
            there, here = there[:1], here[:1]
        if (there == here) == (step in DIFFERENT):
            wrong.append(f"--- kubectl {step}\nkube-apiserver:\n{shown((*there, '', ''))}\nhere:\n{shown((*here, '', ''))}")
    assert not wrong, f"{len(wrong)} of {len(STEPS)}:\n" + "\n".join(wrong)
