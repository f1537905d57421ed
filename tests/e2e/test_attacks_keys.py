# SPDX-License-Identifier: MIT
"""What an attacker tries with attestation keys, each on a real API server under the rights of k8s/: one
function or more per number, test_attack_NN_what. Each was seen to fail on version 0.2.0."""

import subprocess

import pytest

import spine
import trustees
from marks import APPROVED, BOUND_AT, approve, mark
from teckinds import made
from test_spine import owner_uids, settled
from trustee import SENTINEL, base64_of, fast_key, identity_name
from trustees import delivered, ends, joins, ready, waits

start_place = trustees.start_place


# 25: a key that is made to have another key's name in Trustee

def test_attack_25_whoever_takes_a_name_first_keeps_nobody_out(cp, ns, start_operator, start_place):
    place = start_place()
    trustees.managed(cp, ns, place)
    op = start_operator(ns, "--kbs-url", place.url)
    pem = fast_key()
    stranger = joins(cp, ns, op, trustees.colliding(pem))  # seconds of work
    ready(cp, ns, stranger)
    node = joins(cp, ns, op, pem)
    assert trustees.identity_name(stranger.pem) == trustees.identity_name(node.pem)
    ready(cp, ns, node)
    assert place.holds(node) and place.holds(stranger)
    # After a restart nothing is sent: what is declared is what is there, in whatever order it is looked at.
    trustees.synced(cp, ns)
    settled(cp, ns, 5)
    op.restart()
    trustees.synced(cp, ns)
    settled(cp, ns)
    assert place.holds(node) and place.holds(stranger)


def test_attack_25_a_revoked_key_of_a_shared_name_is_let_go_when_it_is_gone(cp, ns, start_operator, start_place):
    place = start_place()
    trustees.managed(cp, ns, place)
    op = start_operator(ns, "--kbs-url", place.url)
    node = delivered(cp, ns, op, place)
    stranger = joins(cp, ns, op, trustees.colliding(node.pem))
    ready(cp, ns, stranger)
    place.proxy.refuse()
    spine.delete(cp, ns, "mach", stranger.machine)
    waits(cp, ns, stranger, "confirm")
    op.restart()
    settled(cp, ns)
    assert spine.read(cp, ns, "mach", stranger.machine), "released, and the list with its key is still there"
    assert place.holds(stranger) and place.holds(node)
    place.proxy.listen()
    ends(cp, ns, stranger)
    assert place.clean(stranger) and place.holds(node)
    assert not [s for s in place.proxy.seen() if s.values().get(identity_name(node.pem), "") is None], \
        "the node's own key was revoked for a moment"


def writes_lists(seen):
    return any(name.startswith("ak.") and isinstance(value, list) for name, value in seen.values().items())


def test_attack_25_after_an_upgrade_policies_come_before_lists(make_world):
    world = make_world().start()
    uuid, pem = world.join()
    world.rest()
    world.op.terminate()
    # As version 0.2.0 left it, whose policy requires an object.
    sentinel = {k: v for k, v in world.kbs.value(SENTINEL).items() if k != "policy"}
    world.kbs.set_values({SENTINEL: {**sentinel, "sum": "00"},
                          identity_name(pem): {"ak": base64_of(pem), "machine": uuid}})
    since = world.mark()
    world.op.start()
    world.until(lambda: isinstance(world.kbs.value(identity_name(pem)), list), "a list")
    sent = world.sent(since)
    first = next(i for i, s in enumerate(sent) if writes_lists(s))
    assert {"attestation-policy-put", "resource-policy-put"} <= {s.verb for s in sent[:first]}, sent
    world.rest()
    world.check()


# 27: a key that can never attest

def generated(*args):
    """The public key of a new key that openssl makes, as PEM."""
    private = subprocess.run(["openssl", "genpkey", *args], check=True, capture_output=True).stdout
    return subprocess.run(["openssl", "pkey", "-pubout"], input=private, check=True, capture_output=True).stdout.decode()


NEVER = {
    "ec": lambda: generated("-algorithm", "EC", "-pkeyopt", "ec_paramgen_curve:P-256"),
    "exponent-3": lambda: generated("-algorithm", "RSA", "-pkeyopt", "rsa_keygen_bits:2048", "-pkeyopt",
                                    "rsa_keygen_pubexp:3"),
    "short": lambda: generated("-algorithm", "RSA", "-pkeyopt", "rsa_keygen_bits:1024"),
    "junk": lambda: "my public key",
}


@pytest.mark.parametrize("kind", NEVER)
def test_attack_27_a_key_that_can_never_attest_is_not_approved(cp, ns, start_operator, kind):
    spine.make_cluster(cp, ns)
    start_operator(ns)
    uuid = spine.new_uuid()
    made(cp, "mach", ns, {"id": uuid}, "m")
    made(cp, "ak", ns, {"publicKey": NEVER[kind](), "uuid": uuid}, "never")
    key = spine.wait_condition(cp, ns, "ak", "never", "Approved", "InvalidKey")
    said = spine.condition(key, "Approved")
    assert said["status"] == "False" and "RSA key of 2048 to 4096 bits and exponent 65537" in said["message"]
    spine.wait_condition(cp, ns, "ak", "never", "Delivered", "NotApproved")
    # Nor does an administrator's word, which is not used up.
    approve(cp, ns, "never")
    settled(cp, ns)
    key = spine.read(cp, ns, "ak", "never")
    assert spine.condition(key, "Approved")["reason"] == "InvalidKey" and not owner_uids(key)
    assert key["metadata"]["annotations"][APPROVED] == "true"
    assert not spine.read(cp, ns, "secrets", "never") and not mark(spine.read(cp, ns, "mach", "m"), BOUND_AT)
    # The Machine waits for a key, and takes one.
    made(cp, "ak", ns, {"publicKey": fast_key(), "uuid": uuid}, "good")
    spine.wait_condition(cp, ns, "ak", "good", "Approved", "MachineCreated")
