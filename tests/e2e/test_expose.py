# SPDX-License-Identifier: MIT
"""The samples that make the three servers reachable, for kinds that no cluster here has: a real API server takes
them as their definitions say, TLS passes through, and they lead to the operator's own Services."""

import copy
import os

import pytest

from controlplane import TOP
from test_readme import sample

SERVERS = {"trustee.example.org": ("kbs-service", 8080), "register.example.org": ("register-server", 8000),
           "register-ak.example.org": ("attestation-key-register", 8001)}
PORTS = {"kbs-port": 8080, "register": 8000, "register-ak": 8001}  # names in the operator's Services
GROUPS = {"Gateway": "gateway.networking.k8s.io", "TLSRoute": "gateway.networking.k8s.io", "Route": "route.openshift.io"}


@pytest.fixture(scope="module", autouse=True)
def _kinds(cp):
    path = os.path.join(TOP, "tests", "data", "expose")
    cp.apply_crds(path)
    yield
    for crd in cp.read_manifests(path):
        cp.api("DELETE", f"/apis/apiextensions.k8s.io/v1/customresourcedefinitions/{crd['metadata']['name']}")


def create(cp, ns, o):
    path = f"/apis/{o['apiVersion']}/namespaces/{ns}/{o['kind'].lower()}s"
    assert o["apiVersion"] == f"{GROUPS[o['kind']]}/v1"
    return cp.api("POST", f"{path}?dryRun=All&fieldValidation=Strict", o)


def taken(cp, ns, o):
    status, answer = create(cp, ns, o)
    assert status == 201, answer
    wrong = copy.deepcopy(o)
    wrong["spec"]["misspelt"] = 1
    assert create(cp, ns, wrong)[0] == 400, "the definition would take anything"


def test_the_gateway_passes_tls_to_our_services(cp, ns):
    gateway, *routes = sample(cp, ns, "expose", "gateway-tlsroute.yaml")
    for o in (gateway, *routes):
        taken(cp, ns, o)
    listener, = gateway["spec"]["listeners"]
    assert listener["protocol"] == "TLS" and listener["tls"] == {"mode": "Passthrough"}
    led = {}
    for route in routes:
        assert route["spec"]["parentRefs"] == [{"name": gateway["metadata"]["name"], "sectionName": listener["name"]}]
        host, = route["spec"]["hostnames"]
        backend, = route["spec"]["rules"][0]["backendRefs"]
        assert host.endswith(listener["hostname"].removeprefix("*"))
        led[host] = (backend["name"], backend["port"])
    assert led == SERVERS


def test_the_router_passes_tls_to_our_services(cp, ns):
    led = {}
    for route in sample(cp, ns, "expose", "openshift-route.yaml"):
        taken(cp, ns, route)
        assert route["spec"]["tls"]["termination"] == "passthrough" and "key" not in route["spec"]["tls"]
        assert route["spec"]["to"]["kind"] == "Service"
        led[route["spec"]["host"]] = (route["spec"]["to"]["name"], PORTS[route["spec"]["port"]["targetPort"]])
    assert led == SERVERS
