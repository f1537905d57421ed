# SPDX-License-Identifier: MIT
"""What strangers who hold keys try with a standalone operator, whose broker knows who attested: one function
or more per number, test_attack_NN_what. Each was seen to fail on version 0.2.0."""

import os
import shutil
import time

import pytest

import softtpm
import spine
from controlplane import wait_for
from test_attacks import bring_key, fast_key, fetch, fetched
from test_attest import Jwk
from test_images import registry
from test_standalone import Standalone, backup_of, run_operator
from test_standalone_attest import NS, Node, approve_image, boot, get

MARK = "trusted-execution-clusters.io/last-attested"

pytestmark = [
    pytest.mark.skipif(softtpm.missing() is not None, reason=str(softtpm.missing())),
    pytest.mark.skipif(not shutil.which("jose"), reason="apt-get install jose"),
]


@pytest.fixture(scope="module")
def tpm():
    with softtpm.SoftwareTPM() as t:
        boot(t, "a")
        yield t


@pytest.fixture(name="anchor")
def _anchor(tmp_path):
    s = Standalone(str(tmp_path / "state"), "--public-address=127.0.0.1", "--rate-limit=off",
                   f"--insecure-registry={registry()}").start()
    approve_image(s, "a")
    yield s
    if s.process.poll() is None:
        assert s.stop() == 0, s.log()


@pytest.fixture(name="key")
def _key(tmp_path):
    return Jwk(str(tmp_path), {"kty": "EC", "crv": "P-256"}, "ECDH-ES+A256KW")


def register(anchor, **what):
    spine.merge(anchor, NS, "tec", "tec", {"spec": {"registration": {"machine": "AtKey", **what}}})
    spine.wait_condition(anchor, NS, "tec", "tec", "RegistrationOpen", "Open", 30)
    # The listeners see it when the id that they hand out makes no Machine.
    wait_for(lambda: not machine(anchor, fetched(anchor)), 30, "registration AtKey")


def machine(anchor, uuid):
    return anchor.get(spine.path_of(NS, "mach", f"machine-{uuid}"))


def stranger(anchor, source="127.0.0.2"):
    """(status, uuid) of a number that looks like a key."""
    uuid = fetched(anchor, source)
    return bring_key(anchor, fast_key(), uuid, source)[0], uuid


def bound(anchor, n, source="127.0.0.2"):
    """The uuids of so many strangers, whose Machines have their disk keys."""
    made = [stranger(anchor, source) for _ in range(n)]
    assert {status for status, _ in made} == {201}, made
    for _, uuid in made:
        anchor.kubectl("wait", f"machine/machine-{uuid}", "--for=condition=Ready", "--timeout=50s")
    return [uuid for _, uuid in made]


def has_key(anchor, node, key):
    """Whether the node attests and opens its disk."""
    cookie, cpu, _ = node.attest(key)
    status, _, body = get(anchor, cookie, node.path())
    return cpu["ear.status"] == "affirming" and status == 200 and key.open(body) == node.disk_key()


def mark_of(anchor, node):
    return machine(anchor, node.uuid)["metadata"]["annotations"].get(MARK)


def test_attack_22_what_never_attested_goes_and_what_did_stays(anchor, tpm, key):
    register(anchor, pendingTTL="20s")
    node = Node(anchor, tpm, "honest")
    assert has_key(anchor, node, key)
    marked = mark_of(anchor, node)
    assert marked.split()[0] == machine(anchor, node.uuid)["metadata"]["uid"]
    assert has_key(anchor, node, key) and mark_of(anchor, node) == marked, "once a day is enough"
    strangers = bound(anchor, 4)
    anchor.stop()
    anchor.start()  # since when Machines are marked is remembered
    strangers += bound(anchor, 4, "127.0.0.3")
    wait_for(lambda: not any(machine(anchor, uuid) for uuid in strangers), 60, "the strangers' Machines gone")
    assert not any(anchor.get(spine.path_of(NS, "secrets", uuid)) for uuid in strangers)
    assert has_key(anchor, node, key), "the node that had its key"


def test_attack_22_strangers_have_half_of_the_machines(anchor, tpm, key):
    register(anchor, machineLimit=16)
    node = Node(anchor, tpm, "half")
    assert has_key(anchor, node, key)
    bound(anchor, 8)
    assert fetch(anchor, "127.0.0.3")[0] == 503
    spine.wait_condition(anchor, NS, "tec", "tec", "RegistrationOpen", "MachineLimitReached", 90)
    assert has_key(anchor, node, key)


def test_attack_22_nothing_goes_that_another_server_may_have_served(anchor, tpm, key):
    """A Machine without a mark whose node may have had its key elsewhere."""
    register(anchor, pendingTTL="15s")
    one = bound(anchor, 1)
    elsewhere = {"address": "127.0.0.1:9", "caSecret": "standalone-tls"}
    spine.merge(anchor, NS, "tec", "tec", {"spec": {"trusteeServers": [elsewhere]}})
    two = bound(anchor, 1)
    spine.merge(anchor, NS, "tec", "tec", {"spec": {"trusteeServers": []}})
    time.sleep(2)  # younger than that, to a second
    three = bound(anchor, 1)
    wait_for(lambda: not machine(anchor, three[0]), 60, "the Machine made since")
    anchor.stop()
    anchor.start()
    time.sleep(3)
    assert machine(anchor, one[0]) and machine(anchor, two[0])
    node = Node(anchor, tpm, "late")
    assert has_key(anchor, node, key)


def test_attack_22_nothing_goes_whose_mark_a_backup_does_not_have(anchor, tpm, key, tmp_path):
    register(anchor, pendingTTL="15s")
    node = Node(anchor, tpm, "saved")
    before = backup_of(anchor, str(tmp_path / "backup"))
    assert has_key(anchor, node, key)
    disk_key = node.disk_key()
    anchor.stop()
    os.rename(f"{anchor.dir}/store.db", f"{anchor.dir}/lost.db")
    status, said = run_operator(f"--standalone={anchor.dir}", f"--restore={before}")
    assert status == 0, said
    anchor.start()
    time.sleep(2)  # younger than the start, to a second
    stranger_since = bound(anchor, 1)[0]
    wait_for(lambda: not machine(anchor, stranger_since), 60, "the Machine made since")
    assert "last-attested" not in str(machine(anchor, node.uuid)["metadata"]["annotations"])
    assert has_key(anchor, node, key) and node.disk_key() == disk_key
