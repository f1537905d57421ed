# SPDX-License-Identifier: MIT
"""Two operators, each with its own API and key broker: the second follows the first, and a node that
registered at the first gets its disk key from the second's broker."""

import shutil

import pytest

import softtpm
import spine
from controlplane import wait_for
from guarded import ask
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


@pytest.fixture(scope="module")
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
