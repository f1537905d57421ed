# SPDX-License-Identifier: MIT
"""README.md's 'Install on a cluster' on two nodes, and the first node that registers."""

from controlplane import wait_for
from install import NS, answer
from spine import condition, rsa_key


def test_both_nodes_run_a_replica(installed):
    pods = installed.pods("app%3Dtec-operator")
    assert sorted(p["spec"]["nodeName"] for p in pods) == ["n1", "n2"]
    assert all(p["status"]["phase"] == "Running" for p in pods)


def test_the_image_runs_as_nobody(installed):
    """The restricted profile of the namespace is the kubelet's to enforce: what runs has no root and no way to it."""
    for node in installed.cluster.nodes:
        status = node.run("sh", "-c", "cat /proc/$(ps -C tec-operator -o pid= | head -n 1 | tr -d ' ')/status")
        fields = dict(line.split(":\t", 1) for line in status.splitlines() if ":\t" in line)
        assert fields["Uid"].split() == ["65532"] * 4
        assert int(fields["CapEff"], 16) == 0
        assert fields["NoNewPrivs"] == "1" and fields["Seccomp"] == "2"


def test_a_node_that_registers_becomes_a_ready_machine(installed):
    uuid = installed.register(rsa_key())

    def ready():
        return condition(installed.machine(uuid), "Ready").get("status") == "True"

    wait_for(ready, 120, "Ready Machine", interval=0.2)


def test_plain_http_is_not_answered(installed):
    address, port = installed.service("register-server")
    got = answer(installed.client(do="ask", url=f"http://{address}:{port}/ignition"))
    assert "error" in got or got["status"] == 400, got


def test_a_deleted_machine_goes(installed):
    uuid = installed.register(rsa_key())
    name = wait_for(lambda: installed.machine(uuid), 60, "Machine")["metadata"]["name"]
    installed.cluster.kubectl("delete", "machine", name, "-n", NS, "--timeout=60s")
    assert not installed.machine(uuid)


def test_node_ports_lead_to_the_listeners(installed):
    """The sample, from outside: each node has a replica, and sees who asks."""
    installed.run("kubectl apply -f k8s/samples/expose/nodeport.yaml")
    for node in installed.cluster.nodes:
        for port, path, expect in ((30800, "/ignition", 200), (30801, "/register-ak", 405)):
            def served(node=node, port=port, path=path, expect=expect):
                got = answer(installed.client(do="ask", url=f"https://{node.address}:{port}{path}",
                                              name="register.example.org" if port == 30800 else "register-ak.example.org"))
                return got.get("status") == expect

            wait_for(served, 60, f"{path} at port {port} of {node.name}", interval=0.5)
