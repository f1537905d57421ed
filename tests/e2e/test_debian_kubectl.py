# SPDX-License-Identifier: MIT
"""Debian 12's kubectl, 1.20, in one session against kube-apiserver and against tec-operator --standalone. It is downloaded
and not installed: its package cannot be beside another one's /usr/bin/kubectl."""

import json
import os
import subprocess

import pytest

import debfiles
from conftest import lacking
from test_two_servers import V1, Server, both, in_order, machine, masked, on_both, shown  # noqa: F401, a fixture

NS = "debian-kubectl"
MACHINE = json.dumps(machine())
READY = json.dumps({"metadata": {"labels": {"a": "c"}}})

# What reads standard input gets the Machine.
STEPS = (f"create namespace {NS}", "create configmap c --from-literal=a=b", "create secret generic s --from-literal=a=b",
         "get cm c -o yaml", "get secret s -o yaml", "describe secret s", "explain machine", "explain machine.spec",
         "diff -f -", "apply -f -", "apply -f -", "diff -f -", "apply --server-side --dry-run=server -f -",
         "get machines", "get mach -o wide", "get machine m1 -o json", "get machines --show-labels",
         "get machines -o custom-columns=N:.metadata.name,I:.spec.id", "describe machine m1", "label machine m1 a=b",
         "label machine m1 a=b2", "annotate machine m1 n=o", f"patch machine m1 --type=merge -p {READY.replace(' ', '')}",
         "get machines -l a=c -o name", "wait --for=condition=Ready machine/m1 --timeout=1s", "get machine absent",
         "create deployment d --image=a", "scale deployment/d --replicas=2", "get deployment d -o jsonpath={.spec.replicas}",
         "create job j --image=a", "create service clusterip sc --tcp=80", "create role r --verb=get --resource=pods",
         "create serviceaccount a", "auth can-i delete machines", f"api-resources --api-group={V1.split('/', maxsplit=1)[0]}",
         "delete machine m1", "delete machine m1", "delete deployment/d job/j service/sc")

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


def ask(kubectl, server, step):
    argv = [kubectl, f"--namespace={NS}", f"--cache-dir={server.env['KUBECACHEDIR']}-old", *step.split(" ")]
    done = subprocess.run(argv, input=MACHINE, env=server.env, capture_output=True, text=True, timeout=120, check=False)
    return done.returncode, masked(in_order(done.stdout)), masked(in_order(done.stderr))


def test_one_session_of_an_old_kubectl(both, kubectl):  # noqa: F811
    theirs, ours = both
    assert isinstance(ours, Server)
    wrong = []
    sessions = on_both(lambda server: [ask(kubectl, server, step) for step in STEPS], both)
    for step, there, here in zip(STEPS, *sessions):
        if step.startswith("diff"):  # it names temporary files
            there, here = there[:1], here[:1]
        if (there == here) == (step in DIFFERENT):
            wrong.append(f"--- kubectl {step}\nkube-apiserver:\n{shown((*there, '', ''))}\nhere:\n{shown((*here, '', ''))}")
    theirs.kubectl(f"delete namespace {NS} --wait=false", None)
    assert not wrong, f"{len(wrong)} of {len(STEPS)}:\n" + "\n".join(wrong)
