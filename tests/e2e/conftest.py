# SPDX-License-Identifier: MIT
"""Fixtures: cp (one control plane per session), ns (a fresh namespace with the operator's own
rights), start_operator (a factory), tpm (a software TPM), start_kbs and make_world (a broker, and one
with the operator that administers it), registry (an OCI registry).

What a machine lacks skips with the reason and the next step; with TEC_NO_SKIP=1, which CI sets, it
fails instead: a suite that skips is not a suite that passed.
"""

import contextlib
import copy
import os
import sys

import pytest

import ociregistry
import ownnet
import softtpm
from controlplane import TOP, ControlPlane, Unavailable
from kbs import TestKbs, kbs_binary
from tecproc import Operator, operator_binary
from trustee import World

sys.path.append(os.path.join(TOP, "tests"))
import tier  # noqa: E402

CRD_DIR = os.path.join(TOP, "crd")
K8S_DIR = os.path.join(TOP, "k8s")
RIGHTS = ("ServiceAccount", "Role", "RoleBinding")
OPERATOR_ACCOUNT = "tec-operator"


# By how long they take, the longest first: no process shall be left alone with one of these. A test, or a module whose
# tests stay together.
LONG = ("test_readme_bootstrap", "test_image_fetch", "test_guard_cluster", "test_trustee_alone", "test_two_servers",
        "test_away_with_many_changes", "test_killed_at_each_write_it_goes_on", "test_clients",
        "test_silence_is_noticed", "test_standalone_attest", "test_node",
        "test_tecctl", "test_two_servers_create", "test_many_nodes_are_few_restarts",
        "test_upgrade", "test_deliveries", "test_volumes", "test_trustee_faults", "test_attacks", "test_trustee_network",
        "test_trustee_places", "test_trustee_takeover", "test_trustee", "test_faults")


def pytest_addoption(parser):
    parser.addoption("--tier", choices=["none", *tier.names()],
                     help="with all of tests/e2e: run only the tests of this tier (tests/tiers); none: those in no tier")


def pytest_configure(config):
    if ownnet.is_one_of_several():
        ownnet.enter()


def module_of(item):
    return item.module.__name__.split(".")[-1]


def shares_a_fixture(item):
    """Whether another process would make something again that all tests of the module use."""
    return any(defs[-1].scope == "module" for defs in item._fixtureinfo.name2fixturedefs.values())


def select_tier(config, items, chosen):
    table = tier.tests()
    called = {item: f"{module_of(item)}::{item.name}" for item in items}
    stale = [p for of, smoke in table.values() for p in of + smoke
             if not any(tier.matches(name, [p]) for name in called.values())]
    if stale:
        raise pytest.UsageError(f"tests/tiers: patterns that match no test: {', '.join(stale)}")
    of = {item: tier.of_test(name, table) or "none" for item, name in called.items()}
    config.hook.pytest_deselected(items=[i for i in items if of[i] != chosen])
    items[:] = [i for i in items if of[i] == chosen]


def pytest_collection_modifyitems(config, items):
    if config.getoption("tier"):
        select_tier(config, items, config.getoption("tier"))
    rank = {name: i for i, name in enumerate(LONG)}
    items.sort(key=lambda item: rank.get(item.originalname, rank.get(module_of(item), len(LONG))))
    for item in items:
        if shares_a_fixture(item):
            item.add_marker(pytest.mark.xdist_group(module_of(item)))


def lacking(reason):
    if os.environ.get("TEC_NO_SKIP"):
        pytest.fail(reason, pytrace=False)
    pytest.skip(reason)


@contextlib.contextmanager
def control_plane(make):
    """What make() gives, with the Namespace and the rights of k8s/ where there is one."""
    try:
        plane = make()
    except Unavailable as e:
        lacking(str(e))
    with plane:
        install = [o for o in plane_manifests(plane) if o["kind"] in ("Namespace", *RIGHTS)]
        if install:
            plane.apply(install)
        yield plane
        plane.check()


@pytest.fixture(scope="session")
def cp():
    with control_plane(lambda: ControlPlane(crds=CRD_DIR if os.path.isdir(CRD_DIR) else None)) as plane:
        yield plane


@pytest.fixture(autouse=True)
def control_plane_runs(request):
    """A control plane that ended in a test is that test's failure: the next ones have it again."""
    if "cp" in request.fixturenames:
        ended = request.getfixturevalue("cp").revive()
        assert not ended, "since the last test: " + "\n".join(ended)


def need_registry():
    need = ociregistry.missing()
    if need:
        lacking(f"no registry; next step: {need}")


@pytest.fixture
def registry(tmp_path):
    need_registry()
    made = ociregistry.Registry(str(tmp_path / "registry"))
    yield made
    made.close()


def plane_manifests(plane):
    """k8s/ as dicts, read once per control plane."""
    if not hasattr(plane, "manifests"):
        plane.manifests = plane.read_manifests(K8S_DIR) if os.path.isdir(K8S_DIR) else []
    return plane.manifests


def retarget(manifests, namespace):
    """The ServiceAccounts, Roles and RoleBindings of k8s/, moved to another namespace."""
    moved = [copy.deepcopy(o) for o in manifests if o["kind"] in RIGHTS]
    for o in moved:
        o["metadata"]["namespace"] = namespace
        for subject in o.get("subjects", ()):
            subject["namespace"] = namespace
    return moved


@pytest.fixture
def ns(cp):
    name = cp.create_namespace()
    rights = retarget(plane_manifests(cp), name)
    if rights:
        cp.apply(rights)
    yield name
    # Not waited for: finalizers that only an operator with a Trustee may drop keep it for ever.
    cp.api("DELETE", f"/api/v1/namespaces/{name}")


@pytest.fixture
def start_operator(cp, tmp_path):
    """start_operator(namespace, *args, env=None, wait_ready=True) -> Operator. It has the rights
    of k8s/ and nothing more: a verb missing there must fail here, not at a user's."""
    binary = operator_binary()
    if not os.access(binary, os.X_OK):
        lacking(f"no {binary}; next step: make, or set TEC_OPERATOR")
    started = []

    def start(namespace, *args, env=None, wait_ready=True, kubeconfig=None):
        kubeconfig = kubeconfig or cp.service_account_kubeconfig(namespace, OPERATOR_ACCOUNT)
        operator = Operator(kubeconfig, namespace, str(tmp_path), args, env)
        started.append(operator)
        return operator.start(wait_ready)

    yield start
    problems = []
    for operator in started:
        try:
            operator.close()
        except Exception as e:  # every one must be stopped before the first complaint
            problems.append(str(e))
    assert not problems, "\n\n".join(problems)


@pytest.fixture
def tpm():
    missing = softtpm.missing()
    if missing:
        lacking(f"no software TPM; next step: {missing}")
    with softtpm.SoftwareTPM() as device:
        yield device


@pytest.fixture
def start_kbs(tmp_path):
    """start_kbs(**options) -> a running TestKbs; see kbs.py."""
    if not os.access(kbs_binary(), os.X_OK):
        lacking(f"no {kbs_binary()}; next step: make")
    started = []

    def start(**options):
        kbs = TestKbs(str(tmp_path), **options)
        started.append(kbs)
        return kbs.start()

    yield start
    problems = []
    for kbs in started:
        try:
            kbs.stop()
        except Exception as e:  # every one must be stopped before the first complaint
            problems.append(str(e))
    assert not problems, "\n\n".join(problems)


@pytest.fixture
def make_world(cp, ns, tmp_path, start_operator):
    """make_world(tls=False, quirks=False) -> a World that is not started yet; see trustee.py."""
    if not os.access(kbs_binary(), os.X_OK):
        lacking(f"no {kbs_binary()}; next step: make")
    made = []

    def make(**options):
        made.append(World(cp, ns, tmp_path, start_operator, **options))
        return made[-1]

    yield make
    for world in made:
        world.close()
