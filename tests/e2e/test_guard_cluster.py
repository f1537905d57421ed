# SPDX-License-Identifier: MIT
"""The guard from the cluster's spec to a node's disk key: the operator on a control plane renders Trustee's Pod, the
Pod runs here (guardedpod.py) before a Trustee that believes what the stock one believes, the operator fills it by Service
kbs-admin, and a node with a software TPM asks for its key."""

import json
import shutil
import ssl

import pytest

import ownnet
import softtpm
import spine
from conftest import CRD_DIR, control_plane, lacking
from controlplane import ControlPlane, wait_for, wait_holds
from guarded import Evidence, ask, attest_body, binding
from test_attest import Jwk
from test_images import PCR14, commit, pcr4, registry
from test_spine import installed, luks_key, settled
from guardedpod import ADMIN, NODES, GuardedPod, services_are_local

TRUSTEE = 8081  # in the Pod alone; here it shows what Trustee would do without the guard
EXTENDED = "trusted-execution-clusters.io/extended-spec"
AUTH = {"version": "0.4.0", "tee": "tpm", "extra-params": {}}
SLOW = 20
FORGED = {"selection": "sha256:0,1,2,3,16+sha256:5,6,7,8,9,10,11,12,13,23+sha256:15,16,17,18,19,20,21,22,23",
          "order": [0, 1, 2, 3, 16, 5, 6, 7, 8, 9, 10, 11, 12, 13, 23] + list(range(15, 24))}

pytestmark = [
    pytest.mark.skipif(softtpm.missing() is not None, reason=str(softtpm.missing())),
    pytest.mark.skipif(not shutil.which("jose"), reason="apt-get install jose"),
    pytest.mark.skipif(not shutil.which("ip"), reason="apt-get install iproute2"),
]


@pytest.fixture(scope="module")
def network():
    """The Pod's ports, and addresses of Services that lead here."""
    with ownnet.inside() as entered:
        if not entered:
            lacking("a network of its own needs root")
        services_are_local()
        registry.cache_clear()
        yield
        registry.cache_clear()


@pytest.fixture(scope="module")
def cp(network):
    """In place of the control plane that the other files share, which is in another network."""
    with control_plane(lambda: ControlPlane(crds=CRD_DIR)) as plane:
        yield plane


@pytest.fixture
def pod(cp, ns, tmp_path):
    p = GuardedPod(cp, ns, str(tmp_path)).start()
    yield p
    p.stop()


def boot(tpm, registers=(4, 14)):
    """What firmware and loader measure when image a boots, into these registers."""
    for to, register in zip(registers, (pcr4("a", "a"), PCR14)):
        tpm.run("tpm2_pcrextend", *(f"{to}:sha256={event['hash']}" for event in register["events"]))


class Node:
    """One that has registered; it asks at one of the Pod's ports."""

    def __init__(self, cp, ns, op, tpm, directory, tls=None):
        self.cp, self.ns, self.tls = cp, ns, tls
        self.evidence = Evidence(tpm)
        self.key = Jwk(str(directory), {"kty": "EC", "crv": "P-256"}, "ECDH-ES+A256KW")
        self.uuid = spine.first_boot(op)
        with open(tpm.path("ak.pem"), encoding="ascii") as f:
            assert spine.register(op, f.read(), self.uuid)[0] == 201
        self.kept = self.ready()

    def ready(self):
        spine.wait_condition(self.cp, self.ns, "mach", f"machine-{self.uuid}", "Ready", "AllReady", SLOW)
        return luks_key(self.cp, self.ns, self.uuid)

    def ask(self, port, method, path, body=None, headers=None):
        return ask(port, method, path, body, headers, self.tls if port in (NODES, ADMIN) else None)

    def attest(self, port=NODES, **quote):
        """(status, cookie, body) of an attestation."""
        status, headers, body = self.ask(port, "POST", "/kbs/v0/auth", AUTH)
        assert status == 200, body
        cookie, nonce = headers["Set-Cookie"].partition(";")[0], json.loads(body)["nonce"]
        primary = self.evidence.quote(binding(nonce, key=self.key.public)[:32], **quote)
        body = attest_body(nonce, primary, key=self.key.public)
        status, _, body = self.ask(port, "POST", "/kbs/v0/attest", body, {"Cookie": cookie})
        return status, cookie, body

    def disk_key(self, port=NODES, uuid=None, **quote):
        """What a node gets; None when it is refused by a policy. Another status of the attestation: that."""
        status, cookie, body = self.attest(port, **quote)
        if status != 200:
            return status, body
        status, _, body = self.ask(port, "GET", f"/kbs/v0/resource/default/{uuid or self.uuid}/root", None,
                                   {"Cookie": cookie})
        if status == 200:
            return self.key.open(body)
        assert b"PolicyDeny" in body, body
        return None

    def is_served(self):
        """In time: Trustee's Pod may just be another one."""
        def check():
            try:
                got = self.disk_key()
            except OSError as e:
                raise AssertionError(str(e)) from e
            assert got == self.kept
        wait_holds(check, SLOW)


def containers(cp, ns):
    return [c["name"] for c in spine.read(cp, ns, "deployments", "trustee-deployment")["spec"]["template"]["spec"]["containers"]]


def warning(cp, ns):
    """What the condition says of a guard that is off."""
    return "spec.trustee.guard is Disabled" in spine.condition(spine.read(cp, ns, "tec", "tec"), "Installed")["message"]


class World:
    """A cluster whose image a is approved, and a node that booted it."""

    def __init__(self, cp, ns, start_operator, pod, tpm, directory, tls=False, **trustee):
        self.cp, self.ns, self.pod, self.tpm = cp, ns, pod, tpm
        context, spec = None, {}
        if tls:
            certificate = spine.make_certificate(directory, "trustee-tls")
            spine.make_tls_secret(cp, ns, "trustee-tls", certificate)
            context = ssl.create_default_context(cafile=certificate["file"])
            spec["trusteeSecret"] = "trustee-tls"
        spine.make_cluster(cp, ns, publicTrusteeAddr="localhost:8080", trustee=trustee, **spec)
        self.op = start_operator(ns, "--insecure-registry", registry())
        installed(cp, ns)
        self.synced()
        commit(cp, ns, "a")
        boot(tpm)
        self.node = Node(cp, ns, self.op, tpm, directory, context)

    def synced(self):
        return spine.wait_condition(self.cp, self.ns, "tec", "tec", "TrusteeSynced", "Synced", SLOW)

    def switch(self, guard):
        spine.merge(self.cp, self.ns, "tec", "tec", {"spec": {"trustee": {"guard": guard}}})
        self.follows(guard)

    def follows(self, guard):
        want = ["kbs", "guard"] if guard == "Enabled" else ["kbs"]
        wait_for(lambda: containers(self.cp, self.ns) == want, 30, f"a template with {want}")
        wait_for(lambda: bool(self.pod.guard) == (guard == "Enabled") and self.pod.running, 30, "its Pod")
        wait_for(lambda: warning(self.cp, self.ns) == (guard == "Disabled"), 30, "the condition")
        self.synced()

    def boots_something_else(self):
        """Its registers that any program may extend then hold what was approved."""
        self.tpm.run("tpm2_pcrextend", f"14:sha256={'5a' * 32}")
        self.tpm.run("tpm2_pcrreset", "16", "23")
        boot(self.tpm, (16, 23))


@pytest.fixture
def world(cp, ns, start_operator, pod, tpm, tmp_path):
    return lambda **spec: World(cp, ns, start_operator, pod, tpm, tmp_path, **spec)


ADMIN_CALLS = [("POST", "resource/default/a/root"), ("DELETE", "resource/default/a/root"), ("POST", "reference-value"),
               ("GET", "reference-value/tpm_pcr4"), ("POST", "resource-policy"), ("GET", "resource-policy"),
               ("POST", "attestation-policy")]
VOLUMES = {"delivery": "Volumes", "keyIsolation": "Shared"}


@pytest.mark.parametrize("tls", [False, True], ids=["plain", "tls"])
@pytest.mark.parametrize("trustee", [{}, VOLUMES], ids=["AdminAPI", "Volumes"])
def test_a_node_is_served_and_refused(world, trustee, tls):
    w = world(tls=tls, **trustee)
    assert containers(w.cp, w.ns) == ["kbs", "guard"] and not warning(w.cp, w.ns)
    w.node.is_served()
    for name, port in (("kbs-service", NODES), ("kbs-admin", ADMIN)):
        service = spine.read(w.cp, w.ns, "services", name)
        if service or not trustee:
            assert service["spec"]["selector"] == {"app": "kbs"}
            assert [p["targetPort"] for p in service["spec"]["ports"]] == [port]
    seen = w.pod.trustee.requests
    wrote = [r for r in seen if r[1].startswith("/kbs/v0/reference-value")]
    assert bool(wrote) == (not trustee), "who is delivered to by volumes is not administered"
    assert all("Forwarded" in r[2] for r in seen), "something did not come through the guard"
    log = w.pod.log_text()
    assert 'msg="attestation forwarded"' in log and f'path="/kbs/v0/resource/default/{w.node.uuid}/root" status=200' in log
    # The admin API is not where nodes are.
    before = len(seen)
    for method, path in ADMIN_CALLS:
        status, _, _ = w.node.ask(NODES, method, f"/kbs/v0/{path}", b"{}" if method == "POST" else None,
                                  {"Authorization": "Bearer a.b.c"})
        assert status == 404, (method, path, status)
    assert w.node.ask(NODES, "GET", "/metrics")[0] == 404
    assert len(seen) == before

    w.boots_something_else()
    assert w.node.disk_key() is None
    status, body = w.node.disk_key(**FORGED)
    assert status == 401 and b"not a quote over exactly PCR 0 to 23" in body, body
    assert w.node.disk_key(TRUSTEE, **FORGED) == w.node.kept, "Trustee alone would not have believed it"
    metrics = w.pod.metrics()
    assert metrics['tec_guard_refused_total{kind="attest",reason="quote"}'] == 1
    assert metrics['tec_guard_requests_total{kind="attest",code="200"}'] >= 2


@pytest.mark.parametrize("trustee", [{}, VOLUMES], ids=["AdminAPI", "Volumes"])
def test_switching_it_off_and_on_loses_nothing(world, trustee):
    w = world(**trustee)
    w.node.is_served()
    values = {name: v for name, v in w.pod.trustee.values.items() if name != "0.operator.generation"}
    resources = dict(w.pod.trustee.resources)
    secrets = {name: spine.read(w.cp, w.ns, "secrets", name)["data"] for name in ("trustee-auth", "trustee-token")}
    generation = spine.read(w.cp, w.ns, "deployments", "trustee-deployment")["metadata"]["generation"]

    def holds():
        now = w.pod.trustee
        assert now and now.resources == resources
        assert {name: v for name, v in now.values.items() if name != "0.operator.generation"} == values

    for turn, guard in enumerate(("Disabled", "Enabled"), 1):
        w.switch(guard)
        wait_holds(holds, SLOW)
        w.node.is_served()
        settled(w.cp, w.ns)
        deployment = spine.read(w.cp, w.ns, "deployments", "trustee-deployment")
        assert deployment["metadata"]["generation"] == generation + turn, "more than one rolling change"
        assert bool(spine.read(w.cp, w.ns, "services", "kbs-admin")) == (guard == "Enabled" and not trustee)
        if guard == "Disabled":  # as before there was a guard: one port for everybody
            assert w.pod.trustee.port == NODES and w.node.ask(NODES, "GET", "/metrics")[0] == 200
    assert {name: spine.read(w.cp, w.ns, "secrets", name)["data"] for name in secrets} == secrets
    assert w.node.ready() == w.node.kept


@pytest.mark.parametrize("trustee", [{}, VOLUMES], ids=["AdminAPI", "Volumes"])
def test_a_deployment_without_it_is_taken_over(world, trustee):
    """As an earlier release left it: neither the spec nor what is noted of it knows the field."""
    w = world(guard="Disabled", **trustee)
    w.follows("Disabled")
    w.node.is_served()
    uid = spine.read(w.cp, w.ns, "deployments", "trustee-deployment")["metadata"]["uid"]
    w.op.terminate()
    spine.merge(w.cp, w.ns, "tec", "tec", {"spec": {"trustee": {"guard": None}},
                                           "metadata": {"annotations": {EXTENDED: None}}})
    w.op.start()
    w.follows("Enabled")
    w.node.is_served()
    assert w.node.ready() == w.node.kept
    assert spine.read(w.cp, w.ns, "deployments", "trustee-deployment")["metadata"]["uid"] == uid
    w.boots_something_else()
    assert w.node.disk_key(**FORGED)[0] == 401


def drops(node, port, body, cookie):
    """Does the connection end without an answer?"""
    try:
        return node.ask(port, "POST", "/kbs/v0/attest", body, {"Cookie": cookie}), False
    except (OSError, ValueError) as e:
        return e, True
    except Exception as e:  # http.client's own
        assert "RemoteDisconnected" in type(e).__name__, e
        return e, True


def begin(node, port):
    """The status; None where the connection was refused before all was written."""
    try:
        return node.ask(port, "POST", "/kbs/v0/auth", AUTH)[0]
    except OSError:
        return None


def test_every_row_is_seen_without_the_guard_and_gone_with_it(world):
    """Section 1 of the contract, but for the selections, which are above; what its last row tells of is done by clients."""
    w = world()
    node, trustee = w.node, w.pod.trustee
    node.is_served()

    # One port for everybody.
    assert node.ask(TRUSTEE, "GET", "/metrics")[0] == 200
    assert node.ask(NODES, "GET", "/metrics")[0] == 404
    body, token = b"x" * (1 << 20), {"Authorization": "Bearer a.b.c"}
    assert node.ask(TRUSTEE, "POST", "/kbs/v0/resource/default/a/root", body, token)[0] == 401
    assert trustee.requests[-1][3] == body, "it read the whole of it"
    before = len(trustee.requests)
    assert node.ask(NODES, "POST", "/kbs/v0/resource/default/a/root", b"x", token)[0] == 404
    assert len(trustee.requests) == before

    # The double slash.
    for port, want in ((TRUSTEE, 401), (NODES, 200)):
        _, cookie, _ = node.attest(port)
        status, _, body = node.ask(port, "GET", f"/kbs/v0/resource//default/{node.uuid}/root", None, {"Cookie": cookie})
        assert status == want, (port, body)
    assert node.key.open(body) == node.kept

    # What panics a worker.
    init = {"init-data": {"format": "toml", "body": 'version = "0.1.0"\nalgorithm = "sha384"\n[data]\n'}}
    for change in ({"selection": "sha256:0,1,2,3,4", "order": [0, 1, 2, 3, 4]}, init):
        for port, want in ((TRUSTEE, True), (NODES, False)):
            _, headers, body = node.ask(port, "POST", "/kbs/v0/auth", AUTH)
            nonce = json.loads(body)["nonce"]
            quote = {} if "init-data" in change else change
            more = change if "init-data" in change else {}
            primary = node.evidence.quote(binding(nonce, key=node.key.public)[:32], **quote)
            answer, dropped = drops(node, port, attest_body(nonce, primary, key=node.key.public, **more),
                                    headers["Set-Cookie"].partition(";")[0])
            assert dropped == want, (port, answer)
            if not want:
                assert answer[0] == 401 and set(json.loads(answer[2])) == {"type", "detail"}, answer
    assert node.disk_key() == node.kept

    # Requests without a name make sessions that are kept.
    many = 1300
    for port in (TRUSTEE, NODES):
        before = len(trustee.sessions)
        statuses = [begin(node, port) for _ in range(many)]
        made = len(trustee.sessions) - before
        if port == TRUSTEE:
            assert made == many
        else:
            assert made < many and 429 in statuses and statuses.count(200) == made
