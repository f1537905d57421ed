# SPDX-License-Identifier: MIT
"""What a node that registers notices of an operator that is updated, moved, killed or lost: nothing, or little."""

import time

import pytest
from controlplane import wait_for
from install import HOSTS, NS, answer
from spine import condition, read, rsa_key

DEPLOYMENT = "deployment/tec-operator"
TOTAL = 2000


def kubectl(world, *args):
    return world.cluster.kubectl(*args, "--timeout=100s")


def settle(world):
    """Two replicas, one on each node, ready."""
    kubectl(world, "rollout", "status", DEPLOYMENT, "-n", NS)

    def spread():
        pods = [p for p in world.pods("app%3Dtec-operator") if "deletionTimestamp" not in p["metadata"]]
        return sorted(p["spec"].get("nodeName", "") for p in pods) == ["n1", "n2"] and all(
            c["ready"] for p in pods for c in p["status"].get("containerStatuses", [{"ready": False}]))

    try:
        wait_for(spread, 100, "a ready replica on each node", interval=0.3)
    except TimeoutError as e:
        raise AssertionError(f"{e}\n{world.describe()}") from e


def roll(world):
    world.cluster.kubectl("rollout", "restart", DEPLOYMENT, "-n", NS)
    kubectl(world, "rollout", "status", DEPLOYMENT, "-n", NS)


def delete(world):
    for pod in world.pods("app%3Dtec-operator"):
        kubectl(world, "delete", "pod", pod["metadata"]["name"], "-n", NS)
        kubectl(world, "rollout", "status", DEPLOYMENT, "-n", NS)


def drain(world):
    kubectl(world, "drain", "n2", "--ignore-daemonsets", "--delete-emptydir-data")
    kubectl(world, "rollout", "status", DEPLOYMENT, "-n", NS)


@pytest.mark.parametrize("what", [roll, delete, drain])
def test_no_request_fails(installed, what):
    """From outside, over a node whose kube-proxy learns of an end when everybody does."""
    client = installed.load(rate=40, total=TOTAL)
    try:
        time.sleep(2)  # it is well under way
        begin = time.monotonic()
        what(installed)
        took = time.monotonic() - begin
        got = answer(client)
    finally:
        client.kill()
        installed.cluster.kubectl("uncordon", "n2")
    print(f"{what.__name__}: {took:.0f} s of {got}")
    assert took + 2 < got["seconds"], "it took longer than the requests"
    assert got["sent"] == TOTAL and not got["failed"], got
    if what is drain:  # it left both on one node
        roll(installed)
    settle(installed)


def test_a_restart_in_place_speaks_no_plain_http(installed):
    """The listener's address stays while its container is started again: what is not TLS yet must not answer."""
    settle(installed)
    node = installed.cluster.node(2)
    pod = next(p for p in installed.pods("app%3Dtec-operator") if p["spec"]["nodeName"] == "n2")
    client = installed.client(do="plain", url=f"http://{pod['status']['podIP']}:8000/ignition", seconds=25)
    try:
        node.run("sh", "-c", "kill -9 $(ps -C tec-operator -o pid=)")

        def restarted():
            found = read(installed.cluster, NS, "pods", pod["metadata"]["name"])
            status = found["status"]["containerStatuses"][0]
            return status["restartCount"] > pod["status"]["containerStatuses"][0]["restartCount"] and status["ready"]

        wait_for(restarted, 100, "restarted container", interval=0.3)
        got = answer(client)
    finally:
        client.kill()
    print(got)
    assert got["connected"] > 0
    assert not [a for a in got["answers"] if a.startswith("HTTP/")], got
    settle(installed)


def test_a_lost_node_is_made_up_for(installed):
    """The node with Trustee and a replica is cut off: listeners are served again within 60 s, Trustee moves."""
    settle(installed)
    home = next(p for p in installed.pods("app%3Dkbs"))["spec"]["nodeName"]
    lost, left = installed.cluster.nodes if home == "n1" else reversed(installed.cluster.nodes)
    installed.cluster.route_services(left)
    address, port = installed.service("register-server")
    client = installed.send([{"url": f"https://{address}:{port}/ignition", "name": HOSTS["register-server"],
                              "expect": 200}], rate=10, total=1200, timeout=3)
    try:
        time.sleep(3)
        lost.kill()
        begin = time.monotonic()

        def trustee_moved():
            pods = [p for p in installed.pods("app%3Dkbs") if p["spec"].get("nodeName") == left.name]
            return pods and all(c["ready"] for p in pods for c in p["status"].get("containerStatuses", [{"ready": False}]))

        node = f"/api/v1/nodes/{lost.name}"
        wait_for(lambda: any(c["type"] == "Ready" and c["status"] != "True"
                             for c in installed.cluster.get(node)["status"]["conditions"]), 140, "node that is not Ready")
        noticed_s = time.monotonic() - begin
        wait_for(trustee_moved, 140, "Trustee on the other node", interval=0.5)
        trustee_s = time.monotonic() - begin
        installed.wait_condition("TrusteeSynced", "Synced", 100)
        uuid = installed.register(rsa_key())
        wait_for(lambda: condition(installed.machine(uuid), "Ready").get("status") == "True", 100, "Ready Machine")
        got = answer(client)
    finally:
        client.kill()
        if not lost.proc.alive():
            lost.start()
            installed.cluster.connect(lost)
    last = max([at for at, _ in got["failed"]], default=0) - 3
    print(f"{len(got['failed'])} of {got['sent']} failed, the last one {last:.0f} s after the loss, which Kubernetes noticed "
          f"after {noticed_s:.0f} s; Trustee ran again after {trustee_s:.0f} s")
    # Kubernetes takes 40 to 50 s (more where it is short of CPU), the toleration of its Pod 30 s.
    assert last <= max(60, noticed_s + 20), got["failed"][-5:]
    assert trustee_s <= max(120, noticed_s + 90)
    installed.cluster.wait_node(lost)
    roll(installed)
    settle(installed)
