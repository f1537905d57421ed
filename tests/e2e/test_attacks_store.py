# SPDX-License-Identifier: MIT
"""What somebody tries who can write the files of --standalone or a backup, without the sealing key: one
function or more per number, test_attack_NN_what. Each was seen to fail on version 0.2.0."""

import contextlib
import os
import shutil
import sqlite3

import pytest

import spine
from conftest import lacking
from controlplane import TOP, wait_for
from tecproc import operator_binary
from test_standalone import Standalone, backup_of, run_operator

NS = "trusted-execution-clusters"
MACHINES = "machines.trusted-execution-clusters.io"
KEYS = "attestationkeys.trusted-execution-clusters.io"
REFUSED = "rows were deleted, added or replaced by older ones"


@pytest.fixture(name="place")
def _place(tmp_path):
    """place(name): a Standalone in a directory of its own that is stopped at the end."""
    if not os.access(operator_binary(), os.X_OK):
        lacking(f"no {operator_binary()}; next step: make, or set TEC_OPERATOR")
    made = []

    def place(name):
        made.append(Standalone(str(tmp_path / name), "--public-address=127.0.0.1"))
        return made[-1]

    yield place
    for one in made:
        if one.process and one.process.poll() is None:
            assert one.stop() == 0, one.log()


def approval_of(alone, uuid, pem):
    """The condition Approved of the key that was registered with these, once there is one."""
    def judged():
        return [c for o in spine.items(alone, NS, "ak") if (o["spec"]["uuid"], o["spec"]["publicKey"]) == (uuid, pem)
                for c in [spine.condition(o, "Approved")] if c and c.get("reason") != "Registration"]
    return wait_for(judged, 30, "a decision on the key")[0]


def join(alone, uuid=None):
    """(uuid, Approved) of a node that registers a key of its own; UUID: that it knows one already."""
    uuid, pem = uuid or spine.first_boot(alone), spine.rsa_key()
    assert spine.register(alone, pem, uuid)[0] == 201
    return uuid, approval_of(alone, uuid, pem)


def bound(alone, file):
    """uuid of a Machine with an approved key; a backup of before it had one is in FILE."""
    spine.machine_at_request(alone, NS)
    uuid = spine.first_boot(alone)
    wait_for(lambda: alone.kubectl("get", "secret", uuid, check=False)[0] == 0, 30, "the disk key")
    backup_of(alone, file)
    assert join(alone, uuid)[1]["status"] == "True"
    return uuid


def put_back(store, before):
    """Every Machine's row as it was in the backup BEFORE, and no AttestationKey."""
    with contextlib.closing(sqlite3.connect(store)) as db:
        db.execute("ATTACH ? AS past", (before,))
        db.execute("DELETE FROM version WHERE resource IN (?, ?)", (MACHINES, KEYS))
        db.execute("DELETE FROM object WHERE resource IN (?, ?)", (MACHINES, KEYS))
        db.execute("DELETE FROM owner WHERE resource=?", (KEYS,))
        db.execute("INSERT INTO version SELECT v.* FROM past.version v JOIN past.object o ON v.rv=o.rv "
                   "WHERE v.resource=?", (MACHINES,))
        db.execute("INSERT INTO object SELECT * FROM past.object WHERE resource=?", (MACHINES,))
        db.commit()


def restore(first, second, file, *args):
    """(status, output) of --restore under the sealing key of FIRST."""
    os.makedirs(second.dir, 0o700, exist_ok=True)
    shutil.copy(f"{first.dir}/sealing.key", second.dir)
    return run_operator(f"--standalone={second.dir}", f"--restore={file}", *args)


def write_0_2_0(file):
    """The store of version 0.2.0 in tests/data; the uuid of its Machine."""
    with open(f"{TOP}/tests/data/store/standalone-0.2.0.sql", encoding="ascii") as f:
        text = f.read()
    with contextlib.closing(sqlite3.connect(file)) as db:
        db.executescript(text)
        return db.execute("SELECT substr(name, 9) FROM object WHERE resource=?", (MACHINES,)).fetchone()[0]


def events(alone):
    path = f"/apis/events.k8s.io/v1/namespaces/{NS}/events"
    return [e for e in alone.get(path)["items"] if e["reason"] == "Restored"]


def test_attack_18_a_store_with_an_older_machine_is_not_served(place, tmp_path):
    alone, before = place("state").start(), str(tmp_path / "before")
    uuid = bound(alone, before)
    assert alone.stop() == 0, alone.log()
    put_back(f"{alone.dir}/store.db", before)
    try:
        alone.start()
    except AssertionError:
        assert alone.process.wait(20) == 1 and REFUSED in alone.log(), alone.log()
        assert "--accept-unverified" in alone.log()
    else:
        pytest.fail(f"an edited store is served; the key of a stranger: {join(alone, uuid)[1]}")


def test_attack_18_an_edited_backup_gives_no_disk_key_away(place, tmp_path):
    first, second = place("first").start(), place("second")
    before, file = str(tmp_path / "before"), str(tmp_path / "file")
    uuid = bound(first, before)
    backup_of(first, file)
    assert first.stop() == 0, first.log()
    put_back(file, before)
    status, said = restore(first, second, file)
    assert status == 1 and REFUSED in said and not os.path.exists(f"{second.dir}/store.db"), said
    status, said = restore(first, second, file, "--accept-unverified")
    assert status == 0, said
    second.start()
    assert join(second, uuid)[1]["reason"] == "MachineHasKey"
    assert join(second)[1]["status"] == "True", "one that is new is like any"


def test_attack_18_an_old_backup_gives_no_disk_key_away(place, tmp_path):
    first, second, third = place("first").start(), place("second"), place("third")
    before, file = str(tmp_path / "before"), str(tmp_path / "file")
    uuid = bound(first, before)
    key = spine.items(first, NS, "ak")[0]["metadata"]["name"]
    backup_of(first, file)
    assert first.stop() == 0, first.log()

    # As it was before the Machine had a key.
    assert restore(first, second, before)[0] == 0
    second.start()
    decision = join(second, uuid)[1]
    assert decision["reason"] == "MachineHasKey" and "was restored from a backup" in decision["message"]
    assert join(second)[1]["status"] == "True", "one that is new is like any"
    assert second.stop() == 0, second.log()
    second.start()
    assert join(second, uuid)[1]["reason"] == "MachineHasKey", "that does not end"
    found = events(second)
    assert len(found) == 1 and "Approved keys: none." in found[0]["note"], found

    # Of after it had one, which may have been revoked since.
    assert restore(first, third, file)[0] == 0
    third.start()
    found = events(third)
    assert len(found) == 1 and found[0]["note"].endswith(f"Approved keys: {key}."), found
    assert found[0]["type"] == "Warning" and found[0]["regarding"]["name"] == "tec"
    assert join(third, uuid)[1]["reason"] == "MachineHasKey", "it is bound to another"


def test_attack_18_a_store_of_0_2_0_with_an_older_machine_gives_no_disk_key_away(place):
    """Nothing in it says which rows are current."""
    edited, whole = place("edited"), place("whole")
    for one in (edited, whole):
        os.mkdir(one.dir, 0o700)
        with open(os.open(f"{one.dir}/sealing.key", os.O_WRONLY | os.O_CREAT, 0o600), "wb") as f:
            f.write(b"k" * 32)
        uuid = write_0_2_0(f"{one.dir}/store.db")
    with contextlib.closing(sqlite3.connect(f"{edited.dir}/store.db")) as db:
        db.execute("UPDATE object SET rv=1025 WHERE resource=?", (MACHINES,))
        db.execute("DELETE FROM version WHERE resource=? AND rv>1025", (MACHINES,))
        for table in ("version", "object", "owner"):
            db.execute(f"DELETE FROM {table} WHERE resource=?", (KEYS,))
        db.commit()
    edited.start()
    assert join(edited, uuid)[1]["reason"] == "MachineHasKey"
    assert join(edited)[1]["status"] == "True", "one that is new is like any"
    assert "is treated as restored from a backup" in edited.log()

    whole.start()
    name, = (o["metadata"]["name"] for o in spine.items(whole, NS, "ak"))
    spine.wait_condition(whole, NS, "ak", name, "Delivered", "Delivered")
    found = events(whole)
    assert len(found) == 1 and found[0]["note"].endswith(f"Approved keys: {name}."), found
    assert whole.stop() == 0, whole.log()
    assert whole.start() and len(events(whole)) == 1
    assert whole.log().count("is treated as restored from a backup") == 1
