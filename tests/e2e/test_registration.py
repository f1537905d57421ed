# SPDX-License-Identifier: MIT
"""What a registration costs the API server, and how an administrator clears what waits."""

import pytest

import spine
from controlplane import wait_for
from kubeapi import describe
from teckinds import made
from test_attacks import bring_key, fetch, fetched
from trustee import fast_key

NODES = 10


def test_what_waits_is_cleared_by_one_line(make_world):
    """The line of tec-operator(8): what is bound, and what an administrator made, stays."""
    world = make_world().start("--rate-limit", "off")
    cp, ns, op = world.cp, world.ns, world.op
    node = world.joined()[0]
    for _ in range(30):
        assert fetch(op)[0] == 200
    for _ in range(3):
        assert bring_key(op, fast_key())[0] == 201
    ours = made(cp, "mach", ns, {"id": spine.new_uuid()}, "by-hand")["metadata"]["name"]

    def set_ttl(ttl):
        cp.kubectl("patch", "trustedexecutioncluster", "tec", "-n", ns, "--type", "merge", "-p",
                   '{"spec":{"registration":{"pendingTTL":"%s"}}}' % ttl)

    def left():
        return {m["metadata"]["name"] for m in spine.items(cp, ns, "mach")}

    set_ttl("1s")
    wait_for(lambda: left() == {ours, f"machine-{node}"}, 30, "the others gone")
    wait_for(lambda: len(spine.items(cp, ns, "ak")) == 1, 30, "the other keys gone")
    set_ttl("24h")
    wait_for(lambda: fetch(op)[0] == 200, 10, "a Machine as before")
    world.check()


@pytest.mark.parametrize("machine", ["AtRequest", "AtKey"])
def test_a_registration_costs_few_requests(make_world, machine):
    """Asking alone costs one request AtRequest, and none AtKey; the whole is the same but for that."""
    world = make_world().start("--rate-limit", "off", registration={"machine": machine})
    cp, ns, op = world.cp, world.ns, world.op
    fetched(op)
    world.joined()
    world.rest()

    def asked(since):
        return [e for e in cp.audit.events(world.account, since)
                if e["verb"] not in ("watch", "list")
                and e["objectRef"].get("resource") not in ("leases", "events")]

    since = cp.audit.mark()
    uuids = [fetch(op)[1] for _ in range(NODES)]
    world.rest()
    only_asked = asked(since)
    since = cp.audit.mark()
    for uuid in uuids:
        assert bring_key(op, fast_key(), uuid)[0] == 201
    for uuid in uuids:
        world.ready(uuid)
    world.rest()
    with_key = asked(since)
    print(f"{machine}: {len(only_asked) / NODES} requests when asked, "
          f"{len(with_key) / NODES} with the key")
    if machine == "AtKey":
        assert not only_asked, describe(only_asked)
    assert len(only_asked) + len(with_key) <= 13 * NODES, describe(with_key)
