# SPDX-License-Identifier: MIT
"""Off the cluster again: out of the state that the wrong order leaves behind. Nothing waits for ever. The right order ends what
test_handover installs."""

import readme
from controlplane import wait_for
from install import NS
from spine import condition, rsa_key
from teckinds import GROUP

# Three blocks: stop, delete everything, and after the wrong order. --yes: nobody is there to be asked.
STOP, DELETE, FORCE = (commands.strip() for _, commands in readme.blocks("Uninstall"))


def nothing_left(world):
    assert world.cluster.get(f"/api/v1/namespaces/{NS}") is None
    crds = world.cluster.get("/apis/apiextensions.k8s.io/v1/customresourcedefinitions")["items"]
    assert not [c["metadata"]["name"] for c in crds if c["spec"]["group"] == GROUP]


def register(world):
    uuid = world.register(rsa_key())
    wait_for(lambda: condition(world.machine(uuid), "Ready").get("status") == "True", 120, "Ready Machine", interval=0.3)
    return uuid


def test_stopped_and_gone_on_with(installed):
    uuid = register(installed)
    installed.run(STOP, timeout=400)
    assert not installed.pods("app%3Dtec-operator")
    wait_for(lambda: not installed.pods("app%3Dkbs"), 60, "Trustee's Pod gone: its guard serves on for a moment")
    assert installed.machine(uuid)
    installed.run("kubectl apply -k k8s/")
    installed.wait_condition("TrusteeSynced", "Synced", 300)
    wait_for(lambda: condition(installed.machine(uuid), "Ready").get("status") == "True", 120, "Ready Machine")


def test_the_wrong_order_is_got_out_of(installed):
    """The operator went first: its kinds' finalizers hold the namespace."""
    installed.run("kubectl delete -k k8s/ --wait=false")
    installed.run(f"{FORCE} --yes", timeout=500)
    nothing_left(installed)
