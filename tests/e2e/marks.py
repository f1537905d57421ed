# SPDX-License-Identifier: MIT
"""What the operator notes on an object ("UID PAYLOAD", UID of the object itself), Events, and people who are
not the operator: an account of the namespace with the verbs it is given, a listener."""

import hashlib

import spine
from teckinds import GROUP, obj, url

ANNOUNCED = f"{GROUP}/luks-key-sha256"
BOUND_AT, BOUND_KEY, DELIVERED_AT = (f"{GROUP}/{name}" for name in ("bound-at", "bound-key", "delivered-at"))
APPROVED = f"{GROUP}/approved"
APPROVED_AT, APPROVED_BY, APPROVED_SPKI = (
    f"{GROUP}/{name}" for name in ("approved-at", "approved-by", "approved-spki-sha256"))
HASHES_MAX = 4


def mark(o, annotation):
    """The payload; None: there is none, or it does not carry the uid of O."""
    uid, _, payload = o["metadata"].get("annotations", {}).get(annotation, "").partition(" ")
    return payload if uid == o["metadata"]["uid"] and payload else None


def announced(o):
    """The hashes of what may be made for O, oldest first."""
    return (mark(o, ANNOUNCED) or "").split()


def is_delivered(machine):
    """Whether its key may lie in Trustee: it is bound, or was delivered without that and not taken back."""
    earlier = mark(machine, DELIVERED_AT)
    return bool(mark(machine, BOUND_KEY) or (earlier and not earlier.endswith(" revoked")))


def sha256(data):
    return hashlib.sha256(data).hexdigest()


def approve(cp, ns, name):
    """What an administrator does."""
    return spine.merge(cp, ns, "ak", name, {"metadata": {"annotations": {APPROVED: "true"}}})


class Events:
    """Those of a namespace that are new, or repeated, since this was made."""

    def __init__(self, cp, ns):
        self.cp, self.ns = cp, ns
        self.before = {e["metadata"]["resourceVersion"] for e in self._all()}

    def _all(self):
        return self.cp.get(f"/apis/events.k8s.io/v1/namespaces/{self.ns}/events")["items"]

    def named(self, *names, reason=None):
        """Those whose object or text has each of NAMES."""
        return [e for e in self._all() if e["metadata"]["resourceVersion"] not in self.before
                and reason in (None, e["reason"])
                and all(n in f"{e['regarding'].get('name')} {e.get('note')}" for n in names)]

    def wait(self, *names, reason=None, timeout=10):
        return self.cp.wait_for(lambda: self.named(*names, reason=reason), timeout,
                                f"an Event {reason or ''} that names {' and '.join(names)}")[-1]


class Account:
    """A ServiceAccount; VERBS of Secrets: what its own Role gives (none: it is there already)."""

    def __init__(self, cp, ns, name, *verbs):
        self.cp, self.ns = cp, ns
        self.headers = {"Impersonate-User": f"system:serviceaccount:{ns}:{name}"}
        if not verbs:
            return
        meta, rbac = {"name": name, "namespace": ns}, "rbac.authorization.k8s.io"
        cp.apply([{"apiVersion": "v1", "kind": "ServiceAccount", "metadata": meta},
                  {"apiVersion": f"{rbac}/v1", "kind": "Role", "metadata": meta,
                   "rules": [{"apiGroups": [""], "resources": ["secrets"], "verbs": list(verbs)}]},
                  {"apiVersion": f"{rbac}/v1", "kind": "RoleBinding", "metadata": meta,
                   "roleRef": {"apiGroup": rbac, "kind": "Role", "name": name},
                   "subjects": [{"kind": "ServiceAccount", **meta}]}])
        cp.wait_for(lambda: self.post_secret({"metadata": {"name": "probe"}}, "?dryRun=All")[0] == 201, 10,
                    f"the rights of {name}")

    def post_secret(self, secret, query=""):
        return self.cp.api("POST", spine.path_of(self.ns, "secrets") + query, secret, headers=self.headers)

    def plant(self, machine, root):
        """A Secret in place of the one that the operator makes for this Machine, alike in everything but the
        key. blockOwnerDeletion: needs a right of its own, and nobody looks at it."""
        owner = {"apiVersion": machine["apiVersion"], "kind": machine["kind"],
                 "name": machine["metadata"]["name"], "uid": machine["metadata"]["uid"],
                 "controller": True, "blockOwnerDeletion": False}
        status, answer = self.post_secret({
            "metadata": {"name": machine["spec"]["id"], "ownerReferences": [owner],
                         "labels": {"app.kubernetes.io/managed-by": "tec-operator"}},
            "type": "Opaque", "immutable": True, "stringData": {"root": root}})
        assert status == 201, answer
        return answer

    def post_key(self, name, pem, uuid, **meta):
        status, answer = self.cp.api("POST", url("ak", self.ns),
                                     obj("ak", {"publicKey": pem, "uuid": uuid}, name, **meta),
                                     headers=self.headers)
        assert status == 201, answer
        return answer
