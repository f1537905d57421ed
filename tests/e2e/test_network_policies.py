# SPDX-License-Identifier: MIT
"""k8s/networkpolicy.yaml over a table of connections, with the labels and ports of the Pods that k8s/ and
the operator really make."""

import copy

import pytest

import spine
from conftest import plane_manifests
from netpolicy import Host, Pod, allowed
from test_images import _running, approve  # noqa: F401  (fixture "running")

NODE, REGISTRY, API = Host("192.0.2.10"), Host("198.51.100.7"), Host("203.0.113.1")
DNS, METADATA, METADATA6 = Host("10.0.0.10"), Host("169.254.169.254"), Host("fe80::a9fe:a9fe")
REGISTRY6 = Host("2001:db8::7")
FETCH = "trusted-execution-clusters.io/fetch"
METRICS = "trusted-execution-clusters.io/metrics"


def policies_of(cp, ns):
    found = [copy.deepcopy(o) for o in plane_manifests(cp) if o["kind"] == "NetworkPolicy"]
    assert len(found) == 5
    for policy in found:
        policy["metadata"]["namespace"] = ns
    return found


def pods_of(cp, ns):
    (deployment,) = [o for o in plane_manifests(cp) if o["kind"] == "Deployment"]
    job = approve(cp, ns, "a")["spec"]["template"]
    trustee = cp.get(f"/apis/apps/v1/namespaces/{ns}/deployments/trustee-deployment")
    return {
        "operator": Pod.of("10.1.0.1", deployment["spec"]["template"], ns),
        "trustee": Pod.of("10.1.0.2", trustee["spec"]["template"], ns),
        "job": Pod.of("10.1.0.3", job, ns),
        "fetching": Pod("10.1.0.4", {**job["metadata"]["labels"], FETCH: "true"}, ns),
        "neighbour": Pod("10.1.0.5", {"app": "x"}, ns),
        "stranger": Pod("10.1.1.1", {"app": "tec-operator"}, "other"),
        "prometheus": Pod("10.1.1.2", {"app": "p"}, "monitoring", {METRICS: "allowed"}),
    }


@pytest.fixture(name="world")
def _world(cp, ns, running):
    return policies_of(cp, ns), pods_of(cp, ns)


ALL = ("operator", "trustee", "job", "fetching", "neighbour", "stranger", "prometheus", NODE)
# Who connects, to whom, which ports ("u53": UDP), and who of the others may not.
TABLE = [
    # Nodes register and attest from anywhere.
    (ALL[:2] + ALL[3:], "operator", (8000, 8001), ("job",)),
    (ALL[:2] + ALL[3:], "trustee", (8080,), ("job",)),
    # Trustee's admin API behind the guard, and the port that Trustee itself listens on.
    (("operator",), "trustee", (8082,), ("trustee", "job", "fetching", "neighbour", "stranger", "prometheus", NODE)),
    ((), "trustee", (8081,), ALL),
    (("operator", "trustee", "fetching", "neighbour", "prometheus"), "trustee", (8083,),
     ("job", "stranger", NODE)),
    # Metrics and health: this namespace, and the one that is labelled.
    (("operator", "trustee", "fetching", "neighbour", "prometheus"), "operator", (8081,),
     ("job", "stranger", NODE)),
    ((), "operator", (22, 8080, 6443, "u8000"), ALL),
    ((), "trustee", (8000, 8443, "u8080", "u8082"), ALL),
    # Nobody has anything to say to a Job, or to what else there may be.
    ((), "job", (80, 8080, "u53"), ALL),
    ((), "fetching", (80, 8080, "u53"), ALL),
    ((), "neighbour", (80,), ALL),
    # The operator: the API server, registries, further Trustees. Trustee: its verifiers' services.
    (("operator", "trustee"), API, (443, 6443), ("job",)),
    (("operator", "trustee", "fetching"), REGISTRY, (443, 5000), ("job",)),
    (("operator", "fetching"), REGISTRY6, (443,), ("job",)),
    (("operator", "trustee", "fetching"), DNS, (53, "u53"), ("job",)),
    # A Job that fetches: to where a registry can be, and no further.
    ((), METADATA, (80, 443), ("job", "fetching")),
    ((), METADATA6, (80,), ("job", "fetching")),
    ((), REGISTRY, ("u123", "u443"), ("job", "fetching")),
    # A resolver on the node itself has a link-local address.
    (("fetching",), METADATA, ("u53",), ("job",)),
]


def test_each_connection_is_allowed_or_not(world):
    policies, pods = world

    def pod(name):
        return pods.get(name, name) if isinstance(name, str) else name

    wrong = []
    for may, to, ports, may_not in TABLE:
        for port in ports:
            number, protocol = (int(port[1:]), "UDP") if isinstance(port, str) else (port, "TCP")
            for who, want in [(w, True) for w in may] + [(w, False) for w in may_not]:
                if allowed(policies, pod(who), pod(to), number, protocol) != want:
                    wrong.append((getattr(who, "ip", who), getattr(to, "ip", to), port, want))
    assert not wrong


def test_what_a_policy_took_away_is_noticed(world):
    """The table is no table of the obvious: each policy is needed by a line of it."""
    policies, pods = world
    job, fetching, operator = pods["job"], pods["fetching"], pods["operator"]
    without = {p["metadata"]["name"]: [o for o in policies if o is not p] for p in policies}
    assert allowed(without["default-deny-ingress"], NODE, pods["neighbour"], 80)
    assert not allowed(without["tec-operator"], NODE, operator, 8000)
    assert not allowed(without["kbs"], NODE, pods["trustee"], 8080)
    assert allowed(without["compute-pcrs"], job, API, 6443)
    assert not allowed(without["compute-pcrs-fetch"], fetching, REGISTRY, 443)


def test_the_api_server_takes_them(cp, ns):
    for policy in policies_of(cp, ns):
        status, answer = cp.api(
            "POST", f"/apis/networking.k8s.io/v1/namespaces/{ns}/networkpolicies", policy)
        assert status == 201, answer
        # Nothing of it was dropped, and nothing was added but defaults.
        for part in ("podSelector", "policyTypes", "ingress", "egress"):
            assert answer["spec"].get(part) == policy["spec"].get(part), part
    assert len(spine.items(cp, ns, "pods")) == 0
