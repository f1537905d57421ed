# SPDX-License-Identifier: MIT
"""A whole delivery: a namespace's operator, a broker it administers, and a fault proxy between them.

The broker is tests/tools/tec-test-kbs, or the one of TEC_TEST_KBS_URL. Ours learns the admin key that the
operator made (trustee-auth); a real one has a key, and trustee-auth is made from it before the operator
starts. Of a real one only reference values are read back; keys there are judged by conditions alone.
"""

import base64
import json
import os
import subprocess
import threading
import time
from concurrent.futures import ThreadPoolExecutor

import spine
from controlplane import TOP, wait_for, wait_holds
from kbs import TestKbs
from kbsproxy import KbsProxy
from marks import BOUND_KEY, is_delivered, mark
from teckinds import GROUP, made

SENTINEL = "0.operator.generation"
APPROVED = f"{GROUP}/approved"
PUTS = ("resource-put", "resource-delete", "refvalue-put", "attestation-policy-put", "resource-policy-put")


def base64_of(pem):
    """Of a PEM text, on one line: what a TPM's evidence has as ak_public."""
    return "".join(pem.strip().splitlines()[1:-1])


def identity_name(pem):
    """The name of the reference value that lets this key attest."""
    return identity_name_of(base64_of(pem))


def identity_name_of(spki):
    return "ak." + spki[44:284].replace("+", "-").replace("/", "_")


def fast_key():
    """A PEM of the right form, without the time that two primes take: nobody has its private half."""
    modulus = bytearray(os.urandom(256))
    modulus[0] |= 0x80
    modulus[-1] |= 1
    der = bytes.fromhex("30820122300d06092a864886f70d01010105000382010f003082010a0282010100") + modulus \
        + bytes.fromhex("0203010001")
    text = base64.encodebytes(der).decode().replace("\n", "")
    lines = [text[i:i + 64] for i in range(0, len(text), 64)]
    return "\n".join(["-----BEGIN PUBLIC KEY-----", *lines, "-----END PUBLIC KEY-----", ""])


def resource_path(uuid):
    return f"default/{uuid}/root"


def etc(name):
    with open(os.path.join(TOP, "etc", name), encoding="utf-8") as f:
        return f.read()


def wait(predicate, what, timeout=20):
    return wait_for(predicate, timeout, what)


class World:
    """start() makes the cluster object, the operator and the broker. revive() is called by what waits:
    a test that kills something brings it back there."""

    def __init__(self, cp, ns, directory, start_operator, tls=False, quirks=False, **broker):
        self.cp, self.ns, self.directory, self._start_operator = cp, ns, str(directory), start_operator
        self.account = f"system:serviceaccount:{ns}:tec-operator"
        key = os.path.join(self.directory, "trustee-auth")
        # The files are written when the operator has made the key.
        self.kbs = TestKbs(self.directory, private=f"{key}.key", public=f"{key}.pub", tls=tls,
                           trustee_quirks=quirks, **broker)
        self.proxy = KbsProxy(self.kbs.url, self.directory, self.kbs.ca)
        self.op = self.cluster = self.watcher = None
        self.pod_restarts = -1
        self.revive = lambda: None

    # Life

    def start(self, *args, kubeconfig=None, **spec):
        if self.proxy.ca:
            spec.update(publicTrusteeAddr="127.0.0.1:8443", trusteeSecret="trustee-tls")
            certificate = spine.make_certificate(self.directory, "trustee-tls")
            with open(self.proxy.ca, encoding="ascii") as f:
                certificate["ca.crt"] = f.read()
            spine.make_tls_secret(self.cp, self.ns, "trustee-tls", certificate)
        self.cluster = spine.make_cluster(self.cp, self.ns, **spec)
        if self.kbs.external:
            self._give_admin_key()
            time.sleep(1.1)  # it is taken over because it is older, and timestamps are whole seconds
        self.op = self._start_operator(self.ns, "--leader-elect=false", "--kbs-url", self.proxy.url, *args,
                                       kubeconfig=kubeconfig)
        if not self.kbs.external:
            self._take_admin_key()
            self.kbs.start()
        self.poke()
        self.synced()
        if not self.kbs.external:
            # Shared has the Rust operator's policies.
            self.watcher = Watcher(self, spec.get("trustee", {}).get("keyIsolation") != "Shared")
        return self

    def close(self):
        """What is running is ended; what the watcher saw fails the test."""
        try:
            if self.watcher:
                self.watcher.close()
        finally:
            self.proxy.close()
            self.kbs.stop()

    def _take_admin_key(self):
        secret = wait(lambda: spine.read(self.cp, self.ns, "secrets", "trustee-auth"), "trustee-auth")
        for member, name in (("private.key", self.kbs.private), ("public.pub", self.kbs.public)):
            with open(name, "wb") as f:
                f.write(base64.b64decode(secret["data"][member]))

    def _give_admin_key(self):
        with open(self.kbs.private, encoding="ascii") as f:
            private = f.read()
        public = subprocess.run(["openssl", "pkey", "-pubout"], input=private, check=True, text=True,
                                capture_output=True).stdout
        owner = {"apiVersion": self.cluster["apiVersion"], "kind": self.cluster["kind"], "controller": True,
                 "name": self.cluster["metadata"]["name"], "uid": self.cluster["metadata"]["uid"],
                 "blockOwnerDeletion": True}
        self.cp.apply([{"apiVersion": "v1", "kind": "Secret", "type": "Opaque",
                        "metadata": {"name": "trustee-auth", "namespace": self.ns, "ownerReferences": [owner]},
                        "stringData": {"private.key": private, "public.pub": public}}])

    def poke(self):
        """Trustee's Pod has another process: the operator asks it at once what it holds."""
        pods = f"/api/v1/namespaces/{self.ns}/pods"
        if self.pod_restarts < 0:
            status, answer = self.cp.api("POST", pods, {
                "metadata": {"name": "kbs-0", "labels": {"app": "kbs"}},
                "spec": {"containers": [{"name": "kbs", "image": "kbs.invalid/kbs"}]}})
            assert status == 201, answer
        self.pod_restarts += 1
        container = {"name": "kbs", "image": "kbs.invalid/kbs", "imageID": "", "ready": True,
                     "restartCount": self.pod_restarts}
        status, answer = self.cp.api("PATCH", f"{pods}/kbs-0/status", {"status": {
            "phase": "Running", "conditions": [{"type": "Ready", "status": "True"}],
            "containerStatuses": [container]}}, "merge")
        assert status == 200, answer

    # People and nodes

    def read(self, kind, name):
        return spine.read(self.cp, self.ns, kind, name)

    def until(self, predicate, what, timeout=20):
        def there():
            self.revive()
            return predicate()

        return wait(there, what, timeout)

    def condition(self, kind, name, type_, reason, timeout=20):
        def there():
            obj = self.read(kind, name)
            return obj if spine.condition(obj, type_).get("reason") == reason else None

        try:
            return self.until(there, f"{kind} {name} {type_}={reason}", timeout)
        except TimeoutError as e:
            log = [repr(s) for s in self.proxy.seen()[-20:]]
            raise AssertionError(f"{e}: {json.dumps(self.read(kind, name), indent=1)}\n"
                                 + "\n".join(log)) from e

    def synced(self, timeout=20):
        return self.condition("tec", "tec", "TrusteeSynced", "Synced", timeout)

    def join(self, pem=None):
        """A node's first boot and an approved key; what follows is not waited for. -> (uuid, pem)"""
        pem = pem or fast_key()
        return spine.node_joins(self.op, pem, self.revive), pem

    def ready(self, uuid, timeout=20):
        """Its Machine, once it is told that everything is delivered."""
        return self.condition("mach", f"machine-{uuid}", "Ready", "AllReady", timeout)

    def ready_named(self, name, timeout=20):
        """A Machine whose name is not a listener's."""
        return self.condition("mach", name, "Ready", "AllReady", timeout)

    def gone(self, uuid, timeout=20):
        self.until(lambda: not self.read("mach", f"machine-{uuid}"), "the Machine gone", timeout)

    def joined(self, pem=None):
        """-> (uuid, pem, Machine)"""
        uuid, pem = self.join(pem)
        return uuid, pem, self.ready(uuid)

    def key_of(self, pem):
        """The AttestationKey with this public key."""
        found = [a for a in spine.items(self.cp, self.ns, "ak")
                 if base64_of(a["spec"]["publicKey"]) == base64_of(pem)]
        assert len(found) <= 1, found
        return found[0] if found else None

    def make_many(self, n):
        """Machines with a key each, as an administrator makes them. -> {uuid: pem}"""
        nodes = {spine.new_uuid(): fast_key() for _ in range(n)}

        def make(node):
            uuid, pem = node
            made(self.cp, "mach", self.ns, {"id": uuid}, f"machine-{uuid}")
            made(self.cp, "ak", self.ns, {"publicKey": pem, "uuid": uuid}, f"ak-{uuid}")

        with ThreadPoolExecutor(8) as several:
            for _ in several.map(make, nodes.items()):
                pass
        return nodes

    # What is asked for

    def secret_root(self, uuid):
        secret = self.read("secrets", uuid)
        return base64.b64decode(secret["data"]["root"]) if secret else None

    def wanted(self):
        """({path: bytes}, {name: value}) by what the Machines are marked with."""
        live = sorted((m for m in spine.items(self.cp, self.ns, "mach") if "deletionTimestamp" not in m["metadata"]),
                      key=lambda m: (m["metadata"]["creationTimestamp"], mark(m, BOUND_KEY) or ""))
        keys = {a["metadata"]["uid"]: a["spec"]["publicKey"] for a in spine.items(self.cp, self.ns, "ak")}
        resources, identities = {}, {}
        for machine in live:
            uuid = machine["spec"]["id"]
            if is_delivered(machine):
                resources[resource_path(uuid)] = self.secret_root(uuid)
            pem = keys.get((mark(machine, BOUND_KEY) or "").split(" ")[0])
            if pem:
                identities.setdefault(identity_name(pem), []).append({"ak": base64_of(pem), "machine": uuid})
        return resources, identities

    def check(self, gone=()):
        """The broker holds what is wanted, byte for byte, and nothing else. GONE: keys (PEM) revoked.
        What is too much is told at once; what a broker lost that has just come back may still be on its way."""
        for pem in gone:
            assert not self.kbs.has_value(identity_name(pem)), "a revoked identity is left"
        if not self.kbs.external:
            resources, identities = self.wanted()
            held = Held(self.kbs.dump())
            assert not held.resources.keys() - resources.keys() and not held.identities.keys() - identities.keys()
        wait_holds(self._has_what_is_wanted, 20)

    def _has_what_is_wanted(self):
        resources, identities = self.wanted()
        for name, value in identities.items():
            assert self.kbs.has_value(name) and self.kbs.value(name) == value
        if self.kbs.external:
            return
        held = Held(self.kbs.dump())
        assert held.resources == resources
        assert held.identities == identities
        assert held.has_our_policies(), "the policies are not ours"

    # What it costs

    def mark(self):
        return len(self.proxy.seen()), self.cp.audit.mark()

    def sent(self, since, *verbs):
        """Requests to the broker since a mark(), of these verbs only (none named: all)."""
        return [s for s in self.proxy.seen()[since[0]:] if not verbs or s.verb in verbs]

    def writes(self, since):
        """Of the operator to the API server, without leases and events."""
        return self.cp.writes_by(self.account, since[1], ignore=("leases", "events"))

    def rest(self, timeout=15):
        """Waits for the clean sentinel: a restart finds it, and sends nothing. And for the last counts of the cluster's
        status, which come about 3 s after what they count."""
        quiet = [self.cp.audit.mark(), time.monotonic()]

        def clean():
            try:
                return bool(self.kbs.value(SENTINEL)["sum"])
            except (KeyError, OSError):
                return False

        def still():
            if self.cp.writes_by(self.account, quiet[0], ignore=("leases", "events")):
                quiet[:] = self.cp.audit.mark(), time.monotonic()
            return time.monotonic() > quiet[1] + 3.5

        self.synced(timeout)
        self.until(clean, "clean sentinel", timeout)
        self.until(still, "no more writes", timeout + 30)


class Held:
    """A dump of the broker, as bytes and live identities."""

    def __init__(self, dump):
        self.resources = {path: base64.b64decode(text) for path, text in dump["resources"].items()}
        self.values = {name: e["value"] for name, e in dump["reference_values"].items()}
        self.identities = {n: v for n, v in self.values.items() if n.startswith("ak.") and v is not None}
        self.policies = [*dump["resource_policies"].values(), *dump["attestation_policies"].values()]

    def has_our_policies(self):
        once = etc("resource.rego").replace("\nonce_per_boot := false\n", "\nonce_per_boot := true\n")
        return etc("tpm.rego") in self.policies and (etc("resource.rego") in self.policies or once in self.policies)


class Watcher(threading.Thread):
    """Looks into the broker again and again: no key is there without our policies, no key changes, no
    identity is of another Machine than the first time, none is back that is named in revoked."""

    def __init__(self, world, our_policies=True):
        super().__init__(daemon=True)
        self.kbs, self.our_policies = world.kbs, our_policies
        self.keys, self.machine_of, self.revoked = {}, {}, set()
        self.problem = None
        self.ending = threading.Event()
        self.start()

    def run(self):
        while not self.ending.wait(0.05) and not self.problem:
            revoked = set(self.revoked)
            try:
                held = Held(self.kbs.dump())
            except (OSError, AssertionError, ValueError):
                continue  # it is being killed
            self.problem = self._look(held, revoked)

    def seen_identities(self):
        """The names of all that were there at any time."""
        return {identity_name_of(ak) for ak in self.machine_of}

    def _look(self, held, revoked):
        keys = {p: k for p, k in held.resources.items() if k != b"{}"}
        if keys and self.our_policies and not held.has_our_policies():
            return f"keys under policies that are not ours: {sorted(keys)}"
        for path, key in keys.items():
            if self.keys.setdefault(path, key) != key:
                return f"the key at {path} changed"
        for name, value in held.identities.items():
            for entry in value if isinstance(value, list) else [value]:  # an object: of version 0.2.0
                if self.machine_of.setdefault(entry["ak"], entry["machine"]) != entry["machine"]:
                    return f"{name} now opens {entry['machine']}"
            if name in revoked:
                return f"{name} is back after its revocation was confirmed"
        paths = {resource_path(uuid) for uuid in revoked}
        return f"deleted, and there again: {paths & set(keys)}" if paths & set(keys) else None

    def close(self):
        self.ending.set()
        self.join(10)
        assert not self.problem, self.problem
