# SPDX-License-Identifier: MIT
"""What an attacker tries, each on a real API server under the rights of k8s/: one function or more per
number, test_attack_NN_what. Each was seen to fail on version 0.1.0."""

import base64
import hashlib
import http.client
import json
import os
import threading
import time
from concurrent.futures import ThreadPoolExecutor

import spine
from controlplane import wait_for
from teckinds import GROUP, made
from trustee import fast_key
from trustees import owner_reference

REGISTRATION_KEY = "tec-registration-key"
ALONE = ("--leader-elect=false", "--rate-limit", "off")


def ask(port, method, path, body=None, source="127.0.0.1"):
    """(status, parsed body) of one request from an address of this host."""
    conn = http.client.HTTPConnection("127.0.0.1", port, timeout=20, source_address=(source, 0))
    try:
        conn.request(method, path, json.dumps(body) if body else None)
        answer = conn.getresponse()
        return answer.status, json.loads(answer.read())
    finally:
        conn.close()


def fetch(op, source="127.0.0.1"):
    """(status, machine id or None) of GET /ignition."""
    status, body = ask(op.register_port, "GET", "/ignition", source=source)
    if status != 200:
        return status, None
    return status, spine.clevis_config(body)["path"].split("/")[1]


def bring_key(op, pem, uuid=None, source="127.0.0.1"):
    """(status, body) of PUT /register-ak."""
    body = {"public_key": pem, **({"uuid": uuid} if uuid else {})}
    return ask(op.register_ak_port, "PUT", "/register-ak", body, source)


def make_registration_key(cp, ns, name=REGISTRATION_KEY, key=None, announced=True):
    """As the leader makes it: announced, then made. KEY: its bytes."""
    text = base64.b64encode(key or os.urandom(32)).decode()
    if announced:
        digest = hashlib.sha256()
        for part in ("key", text):
            digest.update(len(part).to_bytes(8, "little") + part.encode())
        uid = spine.read(cp, ns, "tec", "tec")["metadata"]["uid"]
        spine.merge(cp, ns, "tec", "tec", {"metadata": {"annotations": {
            f"{GROUP}/sha256-{name}": f"{uid} {digest.hexdigest()}"}}})
    cp.apply([{"apiVersion": "v1", "kind": "Secret", "type": "Opaque", "immutable": True,
               "metadata": {"name": name, "namespace": ns}, "data": {"key": text}}])


def serve_at_key(cp, ns, start_operator, **registration):
    spine.make_cluster(cp, ns, registration={"machine": "AtKey", **registration})
    return start_operator(ns, *ALONE)


def fetched(op, source="127.0.0.1"):
    """Machine id of a node that asks until it is served."""
    return wait_for(lambda: fetch(op, source)[1], 20, "a machine id")


# ---- 1


# ---- 2


# ---- 3


def secret_maker(cp, ns):
    """Headers of an account that may create Secrets and do nothing else; it was told the cluster's uid."""
    meta, rbac = {"name": "maker", "namespace": ns}, "rbac.authorization.k8s.io"
    cp.apply([{"apiVersion": "v1", "kind": "ServiceAccount", "metadata": meta},
              {"apiVersion": f"{rbac}/v1", "kind": "Role", "metadata": meta,
               "rules": [{"apiGroups": [""], "resources": ["secrets"], "verbs": ["create"]}]},
              {"apiVersion": f"{rbac}/v1", "kind": "RoleBinding", "metadata": meta,
               "roleRef": {"apiGroup": rbac, "kind": "Role", "name": "maker"},
               "subjects": [{"kind": "ServiceAccount", **meta}]}])
    headers = {"Impersonate-User": f"system:serviceaccount:{ns}:maker"}
    path = spine.path_of(ns, "secrets") + "?dryRun=All"
    cp.wait_for(lambda: cp.api("POST", path, {"metadata": {"name": "probe"}}, headers=headers)[0] == 201, 10,
                "the account's rights")
    return headers


def plant_for_cluster(cp, ns, cluster, name, data, headers):
    """Right in type, members and owner. blockOwnerDeletion needs a right of its own, and nobody looks at it."""
    owner = {**owner_reference(cluster), "blockOwnerDeletion": False}
    status, answer = cp.api("POST", spine.path_of(ns, "secrets"), {
        "metadata": {"name": name, "ownerReferences": [owner]}, "type": "Opaque", "stringData": data},
        headers=headers)
    assert status == 201, answer


def template_of(cp, ns):
    return json.dumps(spine.read(cp, ns, "deployments", "trustee-deployment")["spec"]["template"])


def conflict_names(cp, ns, name):
    """The condition and the Event say what to delete."""
    line = f"kubectl delete secret {name} -n {ns}"
    spine.wait_condition(cp, ns, "tec", "tec", "Installed", "Conflict")
    assert line in spine.condition(spine.read(cp, ns, "tec", "tec"), "Installed")["message"]
    events = f"/apis/events.k8s.io/v1/namespaces/{ns}/events"
    cp.wait_for(lambda: [e for e in cp.get(events)["items"] if line in e.get("note", "")], 10, "the Event")


def test_attack_03_planted_token_signer(cp, ns, start_operator, tmp_path):
    """A signer that is newer than the operator's own, in a cluster that is less than an hour old, signs at
    once in 0.1.0; in an older one after the ripening time."""
    cluster = spine.make_cluster(cp, ns)
    start_operator(ns, "--leader-elect=false")
    spine.wait_condition(cp, ns, "tec", "tec", "Installed", "InstallationCompleted")
    before, maker = template_of(cp, ns), secret_maker(cp, ns)
    pair = spine.make_certificate(str(tmp_path), "planted", days=7300)
    plant_for_cluster(cp, ns, cluster, "trustee-token-2",
                      {"key.pem": pair["tls.key"], "cert.pem": pair["tls.crt"]}, maker)
    time.sleep(3)  # it reads the Secret, and would write the Deployment in the same moment
    assert template_of(cp, ns) == before, "Trustee signs with somebody else's key"
    conflict_names(cp, ns, "trustee-token-2")
    assert spine.read(cp, ns, "secrets", "trustee-token-2"), "what is not ours is not deleted"
    spine.delete(cp, ns, "secrets", "trustee-token-2")
    spine.wait_condition(cp, ns, "tec", "tec", "Installed", "InstallationCompleted")
    assert template_of(cp, ns) == before


def test_attack_03_planted_trustee_auth(cp, ns, start_operator):
    """Somebody is faster than the operator: in 0.1.0 his key administers Trustee."""
    operator = start_operator(ns, "--leader-elect=false")  # it was here before
    maker = secret_maker(cp, ns)
    operator.terminate()
    time.sleep(1.1)  # timestamps have a resolution of one second
    cluster = spine.make_cluster(cp, ns)
    plant_for_cluster(cp, ns, cluster, "trustee-auth",
                      {"private.key": "known", "public.pub": "to somebody"}, maker)
    operator.start()
    conflict_names(cp, ns, "trustee-auth")
    assert spine.read(cp, ns, "services", "kbs-service"), "the rest is installed"
    assert not spine.read(cp, ns, "deployments", "trustee-deployment"), "Trustee would mount it"
    spine.delete(cp, ns, "secrets", "trustee-auth")
    spine.wait_condition(cp, ns, "tec", "tec", "Installed", "InstallationCompleted")
    made = spine.read(cp, ns, "secrets", "trustee-auth")["data"]
    assert made["public.pub"] and made["public.pub"] != "dG8gc29tZWJvZHk="
    assert spine.read(cp, ns, "deployments", "trustee-deployment")


# ---- 4


# ---- 5


# ---- 6


# ---- 7


# ---- 8


# ---- 9


# ---- 10


# ---- 11

def test_attack_11_asking_costs_no_object(cp, ns, start_operator):
    op = serve_at_key(cp, ns, start_operator)
    uuid = fetched(op)
    account, since = f"system:serviceaccount:{ns}:tec-operator", cp.audit.mark()
    ids = {fetch(op)[1] for _ in range(200)}
    assert len(ids) == 200 and None not in ids
    asked = [e for e in cp.audit.events(account, since)
             if e["objectRef"].get("resource") in ("machines", "attestationkeys")
             and e["verb"] != "watch"]
    assert not asked
    assert not spine.items(cp, ns, "mach")
    pem = fast_key()
    assert bring_key(op, pem, uuid)[0] == 201
    name = next(a["metadata"]["name"] for a in spine.items(cp, ns, "ak"))
    spine.wait_condition(cp, ns, "ak", name, "Approved", "MachineCreated")
    # A node that fetches again has another id; its key is known, and no Machine is made for it.
    again = fetched(op)
    status, answer = bring_key(op, pem, again)
    assert status == 409 and "rebind" in answer["message"]
    assert [m["spec"]["id"] for m in spine.items(cp, ns, "mach")] == [uuid]


def test_attack_11_only_ids_that_were_handed_out_make_a_machine(cp, ns, start_operator):
    op = serve_at_key(cp, ns, start_operator)
    uuid = fetched(op)
    changed = uuid[:-1] + ("0" if uuid[-1] != "0" else "1")
    for bad in (None, spine.new_uuid(), changed, "00000000-0000-8000-8000-000000000000"):
        assert bring_key(op, fast_key(), bad)[0] == 403, bad
    assert not spine.items(cp, ns, "mach") and not spine.items(cp, ns, "ak")
    spine.merge(cp, ns, "tec", "tec", {"spec": {"registration": {"mode": "Manual"}}})
    wait_for(lambda: fetch(op)[0] == 403, 10, "mode Manual")
    assert bring_key(op, fast_key(), uuid)[0] == 403, "a change of mode ends what was handed out"
    by_hand = spine.new_uuid()
    made(cp, "mach", ns, {"id": by_hand}, "by-hand")
    wait_for(lambda: bring_key(op, fast_key(), by_hand)[0] == 201, 10, "a Machine that exists")


def test_attack_11_a_crowd_of_machines_keeps_no_node_with_a_machine_out(cp, ns, start_operator):
    spine.make_cluster(cp, ns, registration={"pendingLimit": 20})
    op = start_operator(ns, *ALONE)
    node = fetched(op, "127.0.0.9")
    for source in ("127.0.0.2", "127.0.0.3", "127.0.0.4"):
        while fetch(op, source)[0] == 200:
            pass
    assert fetch(op, "127.0.0.5")[0] == 503
    assert bring_key(op, fast_key(), node, "127.0.0.9")[0] == 201
    # It is told: a line, an Event, a metric.
    assert "limit=pendingLimit" in op.log_text()
    assert op.metrics()['tec_registration_refused_total{limit="pendingLimit"}'] >= 1
    path = f"/apis/events.k8s.io/v1/namespaces/{ns}/events"
    wait_for(lambda: any(e["reason"] == "RegistrationRefused" and e["regarding"]["name"] == "tec"
                         for e in cp.get(path)["items"]), 10, "the Event")


def test_attack_11_a_source_has_a_share_bound_or_not(cp, ns, start_operator):
    spine.make_cluster(cp, ns, registration={"pendingLimit": 64})
    op = start_operator(ns, *ALONE)
    got = 0
    for _ in range(20):
        uuid = fetch(op, "127.0.0.2")[1]
        if uuid:
            got += 1
            assert bring_key(op, fast_key(), uuid, "127.0.0.2")[0] == 201
    assert got == 16, "a quarter of pendingLimit"
    wait_for(lambda: all(spine.condition(a, "Approved").get("status") == "True"
                         for a in spine.items(cp, ns, "ak")), 20, "all of them bound")
    assert fetch(op, "127.0.0.2")[0] == 503
    assert fetch(op, "127.0.0.3")[0] == 200


def test_attack_11_a_rotation_between_two_listeners_loses_no_node(cp, ns, start_operator):
    spine.make_cluster(cp, ns, registration={"machine": "AtKey"})
    kubeconfig = cp.service_account_kubeconfig(ns, "tec-listener")
    first = start_operator(ns, "--role", "register", "--rate-limit", "off", kubeconfig=kubeconfig)
    second = start_operator(ns, "--role", "register-ak", "--rate-limit", "off", kubeconfig=kubeconfig)
    assert fetch(first)[0] == 503, "no key yet"
    assert bring_key(second, fast_key(), "00000000-0000-8000-8000-000000000000")[0] == 503
    make_registration_key(cp, ns, announced=False)
    time.sleep(1)
    assert fetch(first)[0] == 503, "nobody announced this one"
    spine.delete(cp, ns, "secrets", REGISTRATION_KEY)
    key = os.urandom(32)
    make_registration_key(cp, ns, key=key)
    fetched(first)
    ending, done, bad = threading.Event(), [], []

    def node():
        while not ending.is_set():
            status, uuid = fetch(first)
            if status == 503:
                continue
            pem = fast_key()
            answer = bring_key(second, pem, uuid)
            while answer[0] == 503:
                time.sleep(0.05)
                answer = bring_key(second, pem, uuid)
            (done if answer[0] == 201 else bad).append(answer)
            time.sleep(0.02)

    nodes = [threading.Thread(target=node) for _ in range(4)]
    for n in nodes:
        n.start()
    for _ in range(3):
        time.sleep(0.5)
        if spine.read(cp, ns, "secrets", f"{REGISTRATION_KEY}-previous"):
            spine.delete(cp, ns, "secrets", f"{REGISTRATION_KEY}-previous")
        make_registration_key(cp, ns, f"{REGISTRATION_KEY}-previous", key)
        spine.delete(cp, ns, "secrets", REGISTRATION_KEY)
        time.sleep(0.2)
        key = os.urandom(32)
        make_registration_key(cp, ns, key=key)
    time.sleep(11)  # both sign with the new one by now
    ending.set()
    for n in nodes:
        n.join()
    assert not bad and len(done) > 20, (bad, len(done))
    assert len(spine.items(cp, ns, "mach")) == len(done)


def test_attack_11_a_switch_and_back_loses_no_node_on_its_way(cp, ns, start_operator):
    spine.make_cluster(cp, ns)
    op = start_operator(ns, *ALONE)
    before = fetched(op)
    spine.merge(cp, ns, "tec", "tec", {"spec": {"registration": {"machine": "AtKey"}}})
    during = wait_for(lambda: next((u for u in [fetch(op)[1]] if u and u[14] == "8"), None), 20, "AtKey")
    assert bring_key(op, fast_key(), before)[0] == 201
    spine.merge(cp, ns, "tec", "tec", {"spec": {"registration": {"machine": "AtRequest"}}})
    wait_for(lambda: (fetch(op)[1] or "")[14:15] == "4", 20, "AtRequest")
    assert bring_key(op, fast_key(), during)[0] == 201

    def approved():
        done = {a["spec"]["uuid"] for a in spine.items(cp, ns, "ak")
                if spine.condition(a, "Approved").get("status") == "True"}
        return done == {before, during}

    wait_for(approved, 20, "both keys approved")


# ---- 12


# ---- 13

def test_attack_13_a_key_without_uuid_keeps_nobody_out(cp, ns, start_operator):
    spine.make_cluster(cp, ns)
    op = start_operator(ns, *ALONE)
    pem, uuid = fast_key(), fetched(op)
    assert bring_key(op, pem, source="127.0.0.66")[0] == 201, "the stranger, first"
    assert bring_key(op, pem, uuid)[0] == 201, "the node"
    spine.wait_condition(cp, ns, "mach", f"machine-{uuid}", "AttestationKeyBound", "Bound")
    assert bring_key(op, pem, source="127.0.0.66")[0] == 409
    stray = [a for a in spine.items(cp, ns, "ak") if "uuid" not in a["spec"]]
    assert len(stray) == 1 and spine.condition(stray[0], "Approved")["status"] == "False"



# ---- 14

def test_attack_14_a_crowd_at_once_does_not_pass_the_keys_of_one_machine(cp, ns, start_operator):
    spine.make_cluster(cp, ns, registration={"approval": "Manual"})
    op = start_operator(ns, *ALONE)
    uuid = fetched(op)
    keys = [fast_key() for _ in range(100)]
    with ThreadPoolExecutor(100) as crowd:
        answers = [a[0] for a in crowd.map(lambda k: bring_key(op, k, uuid), keys)]
    assert answers.count(201) == 4 and set(answers) == {201, 503}, answers
    assert len(spine.items(cp, ns, "ak")) == 4


def test_attack_14_a_key_that_was_there_first_is_not_approved(cp, ns, start_operator):
    """Timestamps say the same second; the listener knows what it saw."""
    spine.make_cluster(cp, ns)
    op = start_operator(ns, *ALONE)
    for i in range(5):
        uuid = spine.new_uuid()
        while time.time() % 1 > 0.3:
            time.sleep(0.01)
        assert bring_key(op, fast_key(), uuid)[0] == 201
        made(cp, "mach", ns, {"id": uuid}, f"late-{i}")
    wait_for(lambda: all(spine.condition(a, "Approved").get("reason") == "ManualApproval"
                         for a in spine.items(cp, ns, "ak")), 20, "keys that wait for a person")
    seen = f"{GROUP}/machine-seen"
    assert {a["metadata"]["annotations"][seen] for a in spine.items(cp, ns, "ak")} == {"none"}
