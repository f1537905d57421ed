# SPDX-License-Identifier: MIT
"""tecctl follow, promote and retire. Most tests play the two operators in two namespaces of a control plane, so that
tecctl can be killed at each of its requests; whoever decides is looked at all the time."""

import base64
import json
import os
import re
import signal
import subprocess
import threading
import time

import pytest

import spine
from conftest import lacking
from controlplane import TOP
from faultproxy import CUT, CUT_AFTER, FaultProxy
from spine import merge, read
from tecctl import Tecctl, tecctl_binary
from teckinds import GROUP, ID, OTHER_ID, made
from tecproc import operator_binary
from test_standalone import NS, Standalone, kubectl_argv
from trustee import fast_key

ASKS = re.compile("subjectaccessreviews|dryRun=All")  # these change nothing
TICKET = f"{GROUP}/promotion"
ENDS = ("source", "target")


def authority(o):
    return o["spec"].get("authority", "Self")


class Played(threading.Thread):
    """Two clusters whose operators do at once what spec says."""

    def __init__(self, cp, kubeconfig):
        super().__init__(daemon=True)
        self.cp, self.kubeconfig = cp, kubeconfig
        self.ns = dict(zip(ENDS, (cp.create_namespace(end) for end in ENDS)))
        self.uid = {end: spine.make_cluster(cp, ns)["metadata"]["uid"] for end, ns in self.ns.items()}
        self.digest = {end: "0" * 64 for end in ENDS}
        self.message, self.reason = {}, {}
        self.idle = set()  # whose operators are away
        self.over = threading.Event()
        self.faults = []
        self.start()

    def of(self, end):
        return read(self.cp, self.ns[end], "tec", "tec")

    def authorities(self):
        return tuple(authority(self.of(end)) for end in ENDS)

    def run(self):
        while not self.over.is_set():
            try:
                both = {end: self.of(end) for end in ENDS}
                if both["source"]["spec"].get("follow") or both["target"]["spec"].get("follow"):
                    # The one read first may have changed since: only what holds again is a fault.
                    if all(authority(o) == "Self" for o in both.values()) and self.authorities() == ("Self", "Self"):
                        self.faults.append("both clusters decide")
                for end, o in both.items():
                    if end not in self.idle:
                        self.play(end, o)
            except (OSError, AssertionError) as e:
                self.faults.append(repr(e))
            time.sleep(0.03)

    def play(self, end, o):
        is_ = authority(o)
        other = ENDS[1 - ENDS.index(end)]
        reason = self.reason.get(end, is_) if is_ in ("Following", "Frozen") else is_
        conditions = [
            {"type": t, "status": s, "reason": r, "message": self.message.get(end, ""),
             "observedGeneration": o["metadata"]["generation"], "lastTransitionTime": "2026-01-02T03:04:05Z"}
            for t, s, r in (("TrusteeSynced", "True", "Synced"),
                            ("Authority", "True" if is_ == "Self" else "False", reason))]
        status = {"conditions": conditions, "authority": None}
        if is_ in ("Following", "Frozen"):
            status["authority"] = {"digest": self.digest[end], "machines": 2, "attestationKeys": 1, "images": 1}
        if is_ == "Following":
            status["authority"] |= {"peer": f"https://peer {self.ns[other]}", "peerUID": self.uid[other], "behind": 0}
        was = o.get("status", {})
        if was.get("conditions") != conditions or was.get("authority") != status["authority"]:
            code, answer = self.cp.api("PATCH", spine.path_of(self.ns[end], "tec", "tec") + "/status",
                                       {"status": status}, "merge")
            assert code in (200, 409), answer

    def place(self, end, kubeconfig=None):
        return f"{kubeconfig or self.kubeconfig}:{self.ns[end]}"

    def args(self, kubeconfig=None):
        return ["--from", self.place("source", kubeconfig), "--to", self.place("target", kubeconfig)]

    def end(self):
        self.over.set()
        self.join(20)
        assert self.faults == []


@pytest.fixture(name="config", scope="module")
def _config(cp, tmp_path_factory):
    """The administrator's kubeconfig with its CA in it."""
    if not os.access(tecctl_binary(), os.X_OK):
        lacking(f"no {tecctl_binary()}; next step: make")
    with open(cp.admin_kubeconfig, encoding="utf-8") as f:
        text = f.read()
    with open(cp.ca_file, "rb") as f:
        ca = base64.b64encode(f.read()).decode()
    file = tmp_path_factory.mktemp("handover") / "kubeconfig"
    file.write_text(re.sub(r"certificate-authority: \S+", f"certificate-authority-data: {ca}", text), encoding="utf-8")
    return str(file)


@pytest.fixture(name="make_played")
def _make_played(cp, config):
    all_ = []

    def make():
        all_.append(Played(cp, config))
        return all_[-1]

    yield make
    for played in all_:
        played.end()


@pytest.fixture(name="played")
def _played(make_played):
    return make_played()


ctl = Tecctl(None)


def lines(out):
    """(is, check) of each line."""
    return [tuple(line.split()[:2]) for line in out.splitlines()]


ALL_DONE = [("ok", step) for step in ("follow", "preflight", "freeze", "copy", "promote", "swap")]


def test_follow_promote_back_and_retire(cp, played):
    out, err = ctl.run("follow", *played.args())
    assert lines(out) == [("ok", "follow")], out
    assert "must run on this machine too" in err
    target = played.of("target")
    assert played.authorities() == ("Self", "Following")
    assert target["spec"]["follow"] == {"kubeconfigSecret": "tec-follow", "namespace": played.ns["source"]}

    # What the target got reads the source, secrets too, and nothing else.
    secret = read(cp, played.ns["target"], "secrets", "tec-follow")
    kubeconfig = json.loads(base64.b64decode(secret["data"]["kubeconfig"]))
    assert kubeconfig["clusters"][0]["cluster"]["server"] == cp.server
    assert kubeconfig["contexts"][0]["context"]["namespace"] == played.ns["source"]
    token = read(cp, played.ns["source"], "secrets", "tec-follow-token")
    assert base64.b64decode(token["data"]["token"]).decode() == kubeconfig["users"][0]["user"]["token"], \
        "a token that does not expire"
    user = f"system:serviceaccount:{played.ns['source']}:tec-follow"
    for verb, what, ns, allowed in (("list", "secrets", "source", "yes"), ("watch", "configmaps", "source", "yes"),
                                    ("watch", f"machines.{GROUP}", "source", "yes"),
                                    ("create", "secrets", "source", "no"), ("get", "pods", "source", "no"),
                                    ("patch", f"trustedexecutionclusters.{GROUP}", "source", "no"),
                                    ("list", "secrets", "target", "no")):
        said = cp.kubectl("auth", "can-i", verb, what, f"--as={user}", "-n", played.ns[ns], check=False)
        assert said.strip() == allowed, (verb, what, ns)

    before = played.of("source"), played.of("target")
    out = ctl.out("promote", *played.args(), "--dry-run")
    assert lines(out) == [("ok", "follow")] + [("note", s) for _, s in ALL_DONE[1:]], out
    assert [o["spec"] for o in before] == [played.of(e)["spec"] for e in ENDS]
    assert TICKET not in played.of("target")["metadata"].get("annotations", {})

    found = ctl.json("promote", *played.args())
    assert [(f["is"], f["check"]) for f in found] == ALL_DONE
    assert played.authorities() == ("Following", "Self")
    assert played.of("source")["spec"]["follow"] == {"kubeconfigSecret": "tec-follow",
                                                     "namespace": played.ns["target"]}
    assert TICKET not in played.of("source")["metadata"].get("annotations", {})
    assert lines(ctl.out("promote", *played.args())) == ALL_DONE, "again is nothing"

    back = ["--from", played.place("target"), "--to", played.place("source")]
    assert lines(ctl.out("promote", *back)) == ALL_DONE
    assert played.authorities() == ("Self", "Following")

    at = ["--at", played.place("target")]
    _, err = ctl.run("retire", *at, code=1)
    assert "without a terminal" in err
    _, err = ctl.run("retire", *at, "--yes", code=1)
    assert "tecctl retire --yes tec" in err
    _, err = ctl.run("retire", *at, "--yes", "other", code=1)
    assert "is tec, not" in err
    asked = ctl.terminal("retire", *at).until("Type tec to continue: ").type("yes\n")
    assert asked.end() == 1 and "nothing was changed" in asked.seen
    out = ctl.out("retire", "--at", played.place("source"), "--yes", "tec", code=1)
    assert "hand over first with tecctl promote" in out
    # Both have the same address here, and no other server is named.
    out = ctl.out("retire", *at, "--peer", played.place("source"), "--yes", "tec")
    assert lines(out) == [("note", "nodes"), ("note", "peer"), ("ok", "retire")], out
    assert played.authorities() == ("Self", "Retired")
    assert "Retired, which is permanent" in ctl.out("follow", *played.args(), code=1)


def test_a_target_that_does_not_follow_is_made_to(cp, played):
    made(cp, "mach", played.ns["source"], {"id": ID}, "booting")
    out = ctl.out("promote", *played.args())
    assert lines(out) == [("note", "registering")] + ALL_DONE and "(booting)" in out, out
    assert played.authorities() == ("Following", "Self")


def test_a_target_with_machines_of_its_own_is_left_alone(cp, played):
    made(cp, "mach", played.ns["source"], {"id": ID}, "same")
    made(cp, "mach", played.ns["target"], {"id": OTHER_ID}, "own")
    _, err = ctl.run("follow", *played.args(), code=1)
    assert "1 Machines of the target do not exist at the source (own)" in err, err
    _, err = ctl.run("promote", *played.args(), code=1)
    assert "would lose their disk keys" in err
    assert played.authorities() == ("Self", "Self")
    assert not read(cp, played.ns["target"], "secrets", "tec-follow")


def test_a_read_only_account_cannot_promote(cp, played, tmp_path):
    ctl.out("follow", *played.args())
    given = tmp_path / "given"
    given.write_bytes(base64.b64decode(read(cp, played.ns["target"], "secrets", "tec-follow")["data"]["kubeconfig"]))
    out = ctl.out("promote", "--from", played.place("source", given), "--to", played.place("target"), code=1)
    assert ("no", "rights") in lines(out) and "ask an administrator for a Role" in out, out
    assert "may not patch trustedexecutionclusters in namespace" in out and "of the target" not in out, out
    assert played.authorities() == ("Self", "Following")


def test_no_token_is_given_for_a_server_that_is_not_verified(cp, config, played, tmp_path):
    with open(config, encoding="utf-8") as f:
        text = re.sub(r"certificate-authority-data: \S+", "insecure-skip-tls-verify: true", f.read())
    file = tmp_path / "insecure"
    file.write_text(text, encoding="utf-8")
    _, err = ctl.run("follow", *played.args(file), code=1)
    assert "insecure-skip-tls-verify" in err
    assert not read(cp, played.ns["source"], "serviceaccounts", "tec-follow")
    assert played.authorities() == ("Self", "Self")


def test_what_hinders_is_said_and_aborting_goes_back(cp, played):
    ctl.out("follow", *played.args())
    # A deletion that is not over.
    made(cp, "mach", played.ns["source"], {"id": ID}, "going", finalizers=[f"{GROUP}/test"])
    spine.delete(cp, played.ns["source"], "mach", "going")
    out, err = ctl.run("promote", *played.args(), "--timeout=6", code=1)
    assert "1 Machines are being deleted at the source" in out and "tecctl: waiting: " in err
    assert played.authorities() == ("Self", "Following")
    merge(cp, played.ns["source"], "mach", "going", {"metadata": {"finalizers": None}})

    # Digests that differ: the source stays Frozen, and says what differs.
    played.digest["target"] = "1" * 64
    out = ctl.out("promote", *played.args(), "--timeout=6", code=1)
    assert ("no", "copy") in lines(out) and "Machines 2, 2" in out and "--abort" in out, out
    assert played.authorities() == ("Frozen", "Following")
    ticket = played.of("source")["metadata"]["annotations"][TICKET]
    # Another pair's abort does not reach it.
    assert "same cluster" in ctl.out("promote", "--from", played.place("source"), "--to", played.place("source"),
                                     "--abort", code=1)
    assert lines(ctl.out("promote", *played.args(), "--abort")) == [("ok", "abort")]
    assert played.authorities() == ("Self", "Following")
    assert played.of("target")["metadata"]["annotations"][TICKET] == f"aborted-{ticket}"
    assert lines(ctl.out("promote", *played.args(), "--abort")) == [("ok", "abort")], "again is nothing"

    # A conflict stops at once.
    played.reason["target"], played.message["target"] = "Conflict", "Secret luks-1 differs."
    out = ctl.out("promote", *played.args(), code=1)
    assert "Conflict: Secret luks-1 differs." in out
    assert played.authorities() == ("Self", "Following")
    played.reason.clear()
    played.message.clear()

    # The target's operator is away after it was made to decide: nothing goes back from there.
    played.digest["target"] = played.digest["source"]
    cp.wait_for(lambda: played.of("target")["status"]["authority"]["digest"] == played.digest["source"] and
                spine.condition(played.of("target"), "Authority")["reason"] == "Following", 20, "a target in step")
    watched = subprocess.Popen(ctl.argv("promote", *played.args(), "--timeout=8"), stdout=subprocess.PIPE,
                               stderr=subprocess.PIPE, text=True, env=ctl.env())
    while played.authorities()[1] != "Self":
        if played.authorities()[0] == "Frozen":
            played.idle.add("target")
        assert watched.poll() is None
    out, _ = watched.communicate(timeout=60)
    if watched.returncode:  # it was away in time
        assert "has not observed the current generation" in out, out
        assert "without --abort" in ctl.out("promote", *played.args(), "--abort", code=1)
    played.idle.clear()
    assert lines(ctl.out("promote", *played.args())) == ALL_DONE


def test_ctrl_c_is_safe(played):
    ctl.out("follow", *played.args())
    played.reason["source"] = "Freezing"
    asked = ctl.terminal("promote", *played.args()).until("the source is not Frozen yet").interrupt()
    assert asked.end() == 130 and "Run the command again to continue, or with --abort" in asked.seen
    played.reason.clear()
    assert lines(ctl.out("promote", *played.args())) == ALL_DONE


def test_killed_at_each_write_it_goes_on(cp, config, make_played, tmp_path):
    """Before a write and after it. The promotion starts with a target that decides."""
    running, at = [], {"n": 0, "how": None, "seen": 0}

    def rule(request):
        if not request.write or ASKS.search(request.target):
            return None
        at["seen"] += 1
        return at["how"] if at["seen"] == at["n"] else None

    proxy = FaultProxy(config, str(tmp_path), rule, lambda: running[-1].kill())

    def promote(played, n, how):
        at.update(n=n, how=how, seen=0)
        running.append(subprocess.Popen(ctl.argv("promote", *played.args(proxy.kubeconfig)), stdout=subprocess.PIPE,
                                        stderr=subprocess.PIPE, text=True, env=ctl.env()))
        out, err = running[-1].communicate(timeout=60)
        proxy.settle()
        return running[-1].returncode, out, err

    try:
        code, out, err = promote(make_played(), 0, None)
        assert code == 0 and lines(out) == ALL_DONE, (out, err)
        writes = [r.target for r in proxy.log if r.write and not ASKS.search(r.target)]
        assert len(writes) == at["seen"] >= 14, writes
        decides = ["trustedexecutionclusters" in target for target in writes]
        for n, target in enumerate(writes, 1):
            # What makes an account is the same for both directions.
            if not decides[n - 1] and any(decides[:n]):
                continue
            for how in (CUT, CUT_AFTER) if decides[n - 1] else ((CUT, CUT_AFTER)[n % 2],):
                played = make_played()
                assert promote(played, n, how)[0] == -signal.SIGKILL, (n, target)
                if how is CUT_AFTER and played.authorities() == ("Frozen", "Following"):
                    assert lines(ctl.out("promote", *played.args(), "--abort")) == [("ok", "abort")]
                    assert played.authorities() == ("Self", "Following")
                assert lines(ctl.out("promote", *played.args())) == ALL_DONE, (n, target)
                assert played.authorities() == ("Following", "Self")
                played.end()
    finally:
        proxy.close()


def test_the_account_by_hand(cp, ns):
    """k8s/follow-role.yaml passes a real API server, and has no right that nobody needs."""
    with open(os.path.join(TOP, "k8s", "follow-role.yaml"), encoding="utf-8") as f:
        text = f.read().replace("namespace: trusted-execution-clusters", f"namespace: {ns}")
    cp.kubectl("apply", "--validate=strict", "-f", "-", input=text)
    token = cp.wait_for(lambda: read(cp, ns, "secrets", "tec-follow-token").get("data", {}).get("token"), 20,
                        "the token")
    assert base64.b64decode(token).count(b".") == 2
    wrong = text.replace("automountServiceAccountToken", "automount")
    with pytest.raises(RuntimeError, match="automount"):
        cp.kubectl("apply", "--validate=strict", "-f", "-", input=wrong)


# ---- with operators


@pytest.fixture(name="pair")
def _pair(tmp_path):
    """Two tec-operator --standalone."""
    if not os.access(operator_binary(), os.X_OK):
        lacking(f"no {operator_binary()}; next step: make")
    both = [Standalone(str(tmp_path / end), "--public-address=192.0.2.1", "--plain").start() for end in ENDS]
    yield both
    for one in both:
        if one.process.poll() is None:
            assert one.stop() == 0, one.log()


def test_a_standalone_source_gives_an_account_that_only_reads(pair, tmp_path):
    source, target = pair
    ctl.run("follow", "--from", f"{source.dir}/kubeconfig:{NS}", "--to", f"{target.dir}/kubeconfig:{NS}",
            "--timeout=10", code=None)
    spec = target.get(spine.path_of(NS, "tec", "tec"))["spec"]
    assert spec["authority"] == "Following" and spec["follow"] == {"kubeconfigSecret": "tec-follow", "namespace": NS}
    file = tmp_path / "given"
    file.write_bytes(base64.b64decode(target.get(spine.path_of(NS, "secrets", "tec-follow"))["data"]["kubeconfig"]))
    assert Tecctl(str(file)).out("status").startswith("Cluster tec in namespace " + NS)

    def kubectl(*args):
        return subprocess.run([*kubectl_argv(), f"--kubeconfig={file}", *args], capture_output=True, text=True,
                              timeout=60, check=False, env=dict(os.environ, KUBECACHEDIR=str(tmp_path / "cache")))

    assert "Opaque" in kubectl("get", "secrets").stdout
    for args in (("delete", "secret", "trustee-auth"), ("create", "configmap", "x"), ("annotate", "tec", "tec", "a=b")):
        done = kubectl(*args)
        assert done.returncode and "forbidden" in done.stderr, done
    # A token for years, which ends with the account.
    token = json.loads(file.read_text(encoding="utf-8"))["users"][0]["user"]["token"]
    claims = json.loads(base64.urlsafe_b64decode(token.split(".")[1] + "=="))
    assert claims["exp"] - claims["iat"] == 315360000
    source.kubectl("delete", "serviceaccount", "tec-follow", "-n", NS)
    assert "Unauthorized" in kubectl("get", "secrets").stderr


def test_the_last_one_retires(pair):
    one = pair[0]
    spine.machine_at_request(one, NS)
    uuid = spine.first_boot(one)
    assert spine.register(one, fast_key(), uuid)[0] == 201
    spine.wait_condition(one, NS, "mach", f"machine-{uuid}", "Ready", "AllReady", 30)
    at = ["--at", f"{one.dir}/kubeconfig:{NS}", "--yes", "tec"]
    assert "--last gives up every key" in ctl.out("retire", *at, code=1)
    out = ctl.out("retire", *at, "--last")
    assert lines(out)[-1] == ("ok", "retire"), out
    assert read(one, NS, "mach", f"machine-{uuid}")["metadata"].get("finalizers", []) == []
    assert spine.request(one.register_port, "GET", "/ignition")[0] == 410
    assert lines(ctl.out("retire", *at))[-1] == ("ok", "retire"), "again is nothing"


def disk_keys(one):
    return {s["metadata"]["name"]: s["data"]["root"] for s in spine.items(one, NS, "secrets")
            if "root" in s.get("data", {})}


def machines(one):
    return {m["spec"]["id"] for m in spine.items(one, NS, "mach")}


def joins(one):
    """A node is installed. -> its uuid"""
    uuid = spine.first_boot(one)
    assert spine.register(one, fast_key(), uuid)[0] == 201
    spine.wait_condition(one, NS, "mach", f"machine-{uuid}", "Ready", "AllReady", 30)
    return uuid


def test_two_operators_swap_roles(pair):
    source, target = pair
    for one in pair:
        spine.machine_at_request(one, NS)
    at = {one: f"{one.dir}/kubeconfig:{NS}" for one in pair}
    first, second = joins(source), joins(source)
    keys = disk_keys(source)
    assert len(keys) == 2
    assert lines(ctl.out("follow", "--timeout=30", "--from", at[source], "--to", at[target])) == [("ok", "follow")]
    assert disk_keys(target) == keys and machines(target) == {first, second}
    assert spine.request(target.register_port, "GET", "/ignition")[0] == 503

    assert lines(ctl.out("promote", "--timeout=30", "--from", at[source], "--to", at[target])) == ALL_DONE
    assert disk_keys(target) == disk_keys(source) == keys
    assert spine.request(source.register_port, "GET", "/ignition")[0] == 503
    for uuid in (first, second):
        spine.wait_condition(target, NS, "mach", f"machine-{uuid}", "Ready", "AllReady", 30)
    third = joins(target)
    target.wait_for(lambda: machines(source) == {first, second, third}, 30, "the new node at the source")
    assert Tecctl(f"{target.dir}/kubeconfig", NS).out("machine", "delete", first, "--yes")
    target.wait_for(lambda: machines(source) == {second, third}, 30, "the deletion at the source")
    target.wait_for(lambda: disk_keys(source) == disk_keys(target), 30, "its key")

    assert lines(ctl.out("promote", "--timeout=30", "--from", at[target], "--to", at[source])) == ALL_DONE
    assert machines(source) == {second, third}
    assert {n: k for n, k in disk_keys(source).items() if n in keys}.items() <= keys.items(), "a key changed"
    assert len(disk_keys(source)) == 2
    assert ("ok", "retire") in lines(ctl.out("retire", "--timeout=30", "--at", at[target], "--yes", "tec"))
    assert machines(source) == {second, third}, "what is retired is not followed"


# ---- one of them is lost


def place(one):
    return f"{one.dir}/kubeconfig:{NS}"


def hand_over(source, target):
    assert lines(ctl.out("promote", "--timeout=30", "--from", place(source), "--to", place(target))) == ALL_DONE


def taken(target):
    """The other one is down: the target decides without it."""
    at = ["promote", "--from-lost", "--timeout=30", "--to", place(target)]
    _, err = ctl.run(*at, "--yes", code=1)
    assert "tecctl promote --from-lost --yes tec" in err
    asked = ctl.terminal(*at).until("Type tec to continue: ")
    assert "was last read at 2" in asked.seen, asked.seen
    assert asked.type("other\n").end() == 1
    assert lines(ctl.out(*at, "--yes", "tec")) == [("ok", "promote")]
    assert spine.condition(read(target, NS, "tec", "tec"), "Authority")["reason"] == "Self"
    assert lines(ctl.out(*at, "--yes", "tec")) == [("ok", "promote")], "again is nothing"


def epoch(one):
    return read(one, NS, "tec", "tec")["spec"].get("epoch", 0)


def test_a_lost_source_that_knows_the_target_stops_when_it_returns(pair):
    source, target = pair
    for one in pair:
        spine.machine_at_request(one, NS)
    first = joins(source)
    hand_over(source, target)
    hand_over(target, source)
    assert (epoch(source), epoch(target)) == (2, 1)
    assert "is not lost" in ctl.out("promote", "--from-lost", "--to", place(target), "--yes", "tec", code=1)
    source.process.kill()
    source.process.wait()
    spine.wait_condition(target, NS, "tec", "tec", "Authority", "SourceUnreachable", 30)
    taken(target)
    assert epoch(target) == 3
    second = joins(target)
    source.start()
    target.wait_for(lambda: authority(read(source, NS, "tec", "tec")) == "Frozen", 30, "the source to stop")
    spine.wait_condition(source, NS, "tec", "tec", "Authority", "PeerDecides", 10)
    assert spine.request(source.register_port, "GET", "/ignition")[0] == 503
    assert authority(read(target, NS, "tec", "tec")) == "Self"
    out = ctl.out("promote", "--from-lost", "--to", place(source), "--yes", "tec", code=1)
    assert "the other cluster is not lost" in out, out
    ctl.out("follow", "--timeout=30", "--from", place(target), "--to", place(source))
    assert machines(source) == machines(target) == {first, second}
    assert disk_keys(source) == disk_keys(target)


def test_a_lost_source_that_does_not_know_the_target_is_told_of(pair):
    source, target = pair
    for one in pair:
        spine.machine_at_request(one, NS)
    first = joins(source)
    ctl.out("follow", "--timeout=30", "--from", place(source), "--to", place(target))
    source.process.kill()
    source.process.wait()
    spine.wait_condition(target, NS, "tec", "tec", "Authority", "SourceUnreachable", 30)
    taken(target)
    keys = disk_keys(target)

    # Started without it, the target serves its nodes and takes no new ones, until an administrator confirms.
    assert target.stop() == 0
    target.start()
    spine.wait_condition(target, NS, "tec", "tec", "Authority", "PeerUnknown", 20)
    status, _, body = spine.request(target.register_port, "GET", "/ignition")
    assert status == 503 and b"unknown whether another operator decides" in body
    spine.wait_condition(target, NS, "tec", "tec", "TrusteeSynced", "Synced", 30)
    taken(target)
    assert epoch(target) == 2 and disk_keys(target) == keys
    second = joins(target)

    source.start()
    target.wait_for(lambda: "decides too" in spine.condition(read(target, NS, "tec", "tec"), "Authority")["message"],
                    30, "the target to say so")
    assert [e for e in spine.items(target, NS, "events") if e["reason"] == "PeerDecidesToo"]
    assert authority(read(source, NS, "tec", "tec")) == "Self", "it does not know"
    for command in ("follow", "promote"):
        out = ctl.out(command, "--from", place(source), "--to", place(target), code=1)
        assert "later epoch (2)" in out, out
    ctl.out("follow", "--timeout=30", "--from", place(target), "--to", place(source))
    assert machines(source) == machines(target) == {first, second}
    target.wait_for(lambda: "decides too" not in spine.condition(read(target, NS, "tec", "tec"), "Authority")["message"],
                    30, "the target to see it")
