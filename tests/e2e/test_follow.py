# SPDX-License-Identifier: MIT
"""Two operators, each with its own API and key broker: the second follows the first, and a node that
registered at the first gets its disk key from the second's broker."""

import shutil

import pytest

import softtpm
import spine
from controlplane import wait_for
from guarded import ask
from tecctl import Tecctl
from test_attest import Jwk, error
from test_images import registry
from test_standalone import Standalone
from test_standalone_attest import NS, Node, approve_image, boot, get, tls

pytestmark = [
    pytest.mark.skipif(softtpm.missing() is not None, reason=str(softtpm.missing())),
    pytest.mark.skipif(not shutil.which("jose"), reason="apt-get install jose"),
]


@pytest.fixture(scope="module")
def tpm():
    with softtpm.SoftwareTPM() as t:
        boot(t, "a")
        yield t


@pytest.fixture
def both(tmp_path_factory):
    started = []
    for name in ("source", "target"):
        s = Standalone(str(tmp_path_factory.mktemp(name) / "state"), "--public-address=127.0.0.1",
                       f"--insecure-registry={registry()}")
        s.start()
        started.append(s)
        tls(s)  # the listeners say what it is, while it decides
    approve_image(started[0], "a")
    yield started
    for s in started:
        if s.process.poll() is None:
            assert s.stop() == 0, s.log()


@pytest.fixture(name="key")
def _key(tmp_path):
    return Jwk(str(tmp_path), {"kty": "EC", "crv": "P-256"}, "ECDH-ES+A256KW")


def authority(target, value, **more):
    spine.merge(target, NS, "tec", "tec", {"spec": {"authority": value, **more}})


def follow(source, target):
    target.kubectl("create", "secret", "generic", "source", f"--from-file=kubeconfig={source.dir}/kubeconfig")
    authority(target, "Following", follow={"kubeconfigSecret": "source"})


def machine(plane, node):
    return spine.read(plane, NS, "machines", node.machine)


def opens_at(node, plane, key, want):
    """The node, which knows both servers, asks this one."""
    home, node.alone = node.alone, plane
    try:
        def there():
            cookie, _, _ = node.attest(key)
            status, _, body = get(plane, cookie, node.path())
            return status == 200 and key.open(body) == want
        wait_for(there, 30, f"the key of {node.machine} from {plane.dir}")
    finally:
        node.alone = home


def test_a_node_of_the_first_gets_its_key_from_the_second(both, tpm, key):
    source, target = both
    node = Node(source, tpm, "ak")
    want = node.disk_key()
    follow(source, target)
    opens_at(node, target, key, want)  # which needs the image's values, too
    later = Node(source, tpm, "later")
    opens_at(later, target, key, later.disk_key())
    # What the first deletes is gone from both.
    source.kubectl("delete", f"machine/{later.machine}", "--timeout=50s")
    wait_for(lambda: machine(target, later) is None, 30, "the deletion of the copy")
    cookie, _, _ = node.attest(key)
    assert error(get(source, cookie, later.path())[2])[0] in ("ResourceNotFound", "PolicyDeny")
    assert spine.read(target, NS, "secrets", later.uuid) is None
    # The second restarts without the first, goes on serving, and decides when it is told to.
    assert source.stop() == 0
    assert target.stop() == 0
    target.start()
    opens_at(node, target, key, want)
    authority(target, "Self")
    target.kubectl("wait", f"machine/{node.machine}", "--for=condition=Ready", "--timeout=50s")
    opens_at(node, target, key, want)
    assert ask(target.kbs, "GET", "/healthz", context=tls(target))[0] == 200
    for word in ("KeyLost", "Conflict"):
        assert word not in str(machine(target, node))
    # Started again without the first, it serves the node, and nothing else, until that is said to be lost.
    assert target.stop() == 0
    target.start()
    spine.wait_condition(target, NS, "tec", "tec", "Authority", "PeerUnknown", 20)
    opens_at(node, target, key, want)
    assert ask(target.register_port, "GET", "/ignition", context=tls(target))[0] == 503
    Tecctl(None).out("promote", "--from-lost", "--to", f"{target.dir}/kubeconfig:{NS}", "--yes", "tec")
    opens_at(node, target, key, want)


def spec_of(plane, member):
    return spine.read(plane, NS, "tec", "tec")["spec"].get(member)


def digest(plane):
    return spine.read(plane, NS, "tec", "tec")["status"].get("authority", {}).get("digest")


def test_what_the_first_asks_of_nodes_is_asked_by_the_second(both, tpm, key):
    """Platforms and the registration token, changed while it is followed; what is copied has no trace in a log."""
    source, target = both
    node = Node(source, tpm, "platform")
    want = node.disk_key()
    follow(source, target)
    opens_at(node, target, key, want)
    variable = "SecureBoot-8be4df61-93ca-11d2-aa0d-00e098032b8c"
    source.kubectl("create", "configmap", "rack", f"--from-literal={variable}=first")
    source.kubectl("create", "secret", "generic", "tokens", "--from-literal=key=" + "a" * 32)
    spine.merge(source, NS, "tec", "tec", {"spec": {"attestation": {"platformConfigMaps": ["rack"]}, "registration": {
        "tokenSecret": "tokens", "pendingTTL": "48h"}}})
    for member in ("attestation", "registration"):
        wait_for(lambda m=member: spec_of(target, m) == spec_of(source, m), 30, f"spec.{member} copied")
    assert spine.read(target, NS, "configmaps", "rack")["data"] == {variable: "first"}
    # Another platform and another token, and what is taken out of spec.
    token = "0123456789-the-registration-token"
    spine.merge(source, NS, "configmaps", "rack", {"data": {variable: "second"}})
    spine.merge(source, NS, "secrets", "tokens", {"stringData": {"key": token}})
    spine.merge(source, NS, "tec", "tec", {"spec": {"registration": {"pendingTTL": None}}, "metadata": {"annotations": {
        "trusted-execution-clusters.io/extended-spec": None}}})
    wait_for(lambda: spine.read(target, NS, "configmaps", "rack")["data"] == {variable: "second"}, 30, "the ConfigMap")
    secret = spine.read(source, NS, "secrets", "tokens")["data"]
    wait_for(lambda: spine.read(target, NS, "secrets", "tokens")["data"] == secret, 30, "the Secret")
    wait_for(lambda: "pendingTTL" not in spec_of(target, "registration"), 30, "spec.registration without it")
    opens_at(node, target, key, want)
    later = Node(source, tpm, "later-platform")
    opens_at(later, target, key, later.disk_key())
    # The digest is equal by the copying.
    authority(source, "Frozen")
    wait_for(lambda: digest(source) and digest(source) == digest(target), 30, "the same digest")
    for plane in both:
        assert token not in plane.log() and secret["key"] not in plane.log()
