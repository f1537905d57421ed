# SPDX-License-Identifier: MIT
"""Two operators, and deletions that the follower did not see: tecctl follow --confirm-deletes and --accept-source."""

import os
import subprocess

import pytest

import spine
from conftest import lacking
from tecctl import Tecctl
from tecproc import operator_binary
from test_handover import ctl, disk_keys, joins, lines, machines
from test_standalone import NS, Standalone, backup_of


@pytest.fixture(name="pair")
def _pair(tmp_path):
    """The second follows the first, which has two nodes."""
    if not os.access(operator_binary(), os.X_OK):
        lacking(f"no {operator_binary()}; next step: make")
    source, target = (Standalone(str(tmp_path / end), "--public-address=192.0.2.1", "--plain").start()
                      for end in ("source", "target"))
    for one in (source, target):
        spine.machine_at_request(one, NS)
    nodes = [joins(source) for _ in range(2)]
    assert lines(ctl.out("follow", "--timeout=30", *places(source, target))) == [("ok", "follow")]
    yield source, target, nodes
    for one in (source, target):
        if one.process.poll() is None:
            assert one.stop() == 0, one.log()


def at(one):
    return f"{one.dir}/kubeconfig:{NS}"


def places(source, target):
    return ["--from", at(source), "--to", at(target)]


def authority(one):
    found = spine.condition(spine.read(one, NS, "tec", "tec"), "Authority")
    return found["reason"], found["message"]


def in_step(target):
    target.wait_for(lambda: authority(target)[0] == "Following", 30, "the target in step")


def served(one):
    """Names of the Machines whose key the broker has."""
    return {m["metadata"]["name"] for m in spine.items(one, NS, "mach")
            if "trusted-execution-clusters.io/withheld" not in m["metadata"].get("annotations", {})}


def test_a_deletion_that_nobody_saw_is_confirmed(pair):
    source, target, (first, second) = pair
    confirm = ["follow", "--confirm-deletes", "--to", at(target)]
    assert "nothing to delete" in ctl.out(*confirm)
    assert "does not follow another cluster" in ctl.out("follow", "--confirm-deletes", "--to", at(source), code=1)
    assert "--from are mutually exclusive" in ctl.run(*confirm, "--from", at(source), code=1)[1]
    assert target.stop() == 0
    assert Tecctl(f"{source.dir}/kubeconfig", NS).out("machine", "delete", first, "--yes")
    source.wait_for(lambda: machines(source) == {second}, 20, "the deletion at the source")
    target.start()
    target.wait_for(lambda: "--confirm-deletes" in authority(target)[1] and
                    authority(target)[1].startswith("2 objects "), 30, "what is withheld")
    assert authority(target)[0] == "FollowingBehind" and f"machine-{first}" in authority(target)[1]
    assert machines(target) == {first, second} and first in disk_keys(target)

    # A person types the number; another word changes nothing.
    asked = ctl.terminal(*confirm).until("Type 2 to continue: ").type("yes\n")
    assert asked.end() == 1 and "nothing was changed" in asked.seen
    assert f"machine-{first}" in asked.seen
    assert "without a terminal" in ctl.run(*confirm, code=1)[1]
    assert machines(target) == {first, second}
    asked = ctl.terminal(*confirm).until("Type 2 to continue: ").type("2\n")
    assert asked.end() == 0 and "deleted: 1 Machine (" in asked.seen, asked.seen
    assert machines(target) == {second} and first not in disk_keys(target)
    in_step(target)
    assert "nothing to delete" in ctl.out(*confirm)
    assert disk_keys(target) == disk_keys(source)


def test_a_restored_source_is_accepted(pair, tmp_path):
    source, target, first = pair
    accept = ["follow", "--accept-source", *places(source, target)]
    file = backup_of(source, str(tmp_path / "backup"))
    later = [joins(source) for _ in range(3)]
    in_step(target)
    target.wait_for(lambda: machines(target) == set(first + later), 20, "the copies")
    kept = disk_keys(source)
    assert source.stop() == 0
    for name in os.listdir(source.dir):
        if name.startswith("store.db"):
            os.unlink(f"{source.dir}/{name}")
    done = subprocess.run([operator_binary(), f"--standalone={source.dir}", f"--restore={file}"], timeout=60,
                          capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    source.start()
    target.wait_for(lambda: authority(target)[0] == "SourceWentBack", 60, "SourceWentBack")
    assert "--accept-source" in authority(target)[1]
    assert machines(target) == set(first + later) and disk_keys(target) == kept, "nothing is taken away"
    assert served(target) == {f"machine-{uuid}" for uuid in first + later}
    said = ctl.out("promote", "--timeout=10", *places(source, target), code=1)
    assert "SourceWentBack" in said and "--accept-source" in said

    asked = ctl.terminal(*accept).until("Type 6 to continue: ")
    assert "3 Machines (" in asked.seen and "3 AttestationKeys (" in asked.seen and "2 Machines" in asked.seen
    assert asked.type("6\n").end() == 0, asked.seen
    assert machines(target) == set(first)
    in_step(target)
    assert disk_keys(target) == disk_keys(source)
    assert lines(ctl.out("promote", "--timeout=30", *places(source, target)))[-1] == ("ok", "swap")
    assert {n: k for n, k in disk_keys(target).items()}.items() <= kept.items(), "a key changed"
