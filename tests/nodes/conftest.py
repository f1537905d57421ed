# SPDX-License-Identifier: MIT
"""The tier of tests with real nodes: one cluster for all of them, the operator installed as README.md says.

What a machine lacks skips with the reason; with TEC_NO_SKIP=1, which CI sets, it fails instead."""

import os
import signal
import sys

import pytest

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [HERE, *(os.path.join(os.path.dirname(HERE), other) for other in ("e2e", "demo"))]

import cluster as nodes_cluster  # noqa: E402
import install as nodes_install  # noqa: E402
from kbs import kbs_binary  # noqa: E402

# What is done to the cluster in this order: what ends with an uninstalled operator comes last.
ORDER = ("test_install", "test_size", "test_trustee", "test_images", "test_availability", "test_uninstall",
         "test_handover", "test_leftovers")
# The machine's own, which a kubelet would change.
SYSCTLS = ("vm/overcommit_memory", "vm/panic_on_oom", "kernel/panic", "kernel/panic_on_oops", "net/ipv4/ip_forward",
           "kernel/keys/root_maxkeys", "kernel/keys/root_maxbytes", "net/netfilter/nf_conntrack_max")


def pytest_configure():
    def end(*_):
        raise KeyboardInterrupt

    # Whoever's patience ends gets a cluster that is taken down.
    signal.signal(signal.SIGTERM, end)


def pytest_collection_modifyitems(items):
    items.sort(key=lambda item: ORDER.index(item.module.__name__.rsplit(".", maxsplit=1)[-1]))


def sysctls():
    found = {}
    for name in SYSCTLS:
        try:
            with open(f"/proc/sys/{name}", encoding="ascii") as f:
                found[name] = f.read()
        except FileNotFoundError:
            pass
    return found


def lacking(reason):
    if os.environ.get("TEC_NO_SKIP"):
        pytest.fail(reason, pytrace=False)
    pytest.skip(reason)


@pytest.fixture(scope="session")
def world():
    """An Installation on a running Cluster; README.md's 'Install' was not run yet."""
    reason = nodes_cluster.lacking()
    if reason:
        lacking(reason)
    if not os.access(kbs_binary(), os.X_OK):
        lacking(f"no {kbs_binary()}; next step: make")
    before = sysctls()
    nodes_cluster.sweep()
    cluster = nodes_cluster.Cluster()
    try:
        made = nodes_install.Installation(cluster)
        made.prepare()
        cluster.start()
        made.load_others()
        yield made
        cluster.check()
    finally:
        cluster.stop()
    assert sysctls() == before, "the nodes changed the machine"


@pytest.fixture(scope="session")
def installed(world):
    world.install()
    world.wait_condition("Installed", "InstallationCompleted", 180)
    world.wait_condition("TrusteeSynced", "Synced", 300)
    return world


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_makereport(item, call):
    outcome = yield
    report = outcome.get_result()
    world = item.funcargs.get("installed") or item.funcargs.get("world")
    if report.failed and call.when == "call" and world:
        try:
            report.sections.append(("the cluster", world.describe()))
        except Exception as e:  # pylint: disable=broad-except
            report.sections.append(("the cluster", f"cannot be described: {e}"))
