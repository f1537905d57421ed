# SPDX-License-Identifier: MIT
"""The Trustee operator as far as an API server sees it, without its binary: what a release leaves in a cluster
(tests/data/trustee-operator), written as it writes, and the write of its next pass. History: what became of objects since."""

import copy
import json
import os
import re
import threading

from controlplane import TOP, json_documents, wait_for
from kubeapi import Places

DATA = os.path.join(TOP, "tests", "data", "trustee-operator")
RELEASES = ("v0.3.0", "v0.8.0", "v0.18.0", "head")
MANAGER = "manager"  # the name of its program: client-go's field manager
KBSCONFIG, DEPLOYMENT, SERVICE = "kbsconfig-sample", "trustee-deployment", "kbs-service"
RESTARTED = "kubectl.kubernetes.io/restartedAt"


def answered(answer):
    status, body = answer
    assert status in (200, 201), (status, body)
    return body


class Reference:
    """One release in a namespace."""

    _read = {}

    def __init__(self, plane, ns, release):
        self.plane, self.ns, self.release = plane, ns, release
        self._path = Places(plane.api).path
        if release not in self._read:
            self._read[release] = plane.read_manifests(os.path.join(DATA, f"{release}.yaml"))
        self.objects = copy.deepcopy(self._read[release])
        for o in self.objects:
            o["metadata"]["namespace"] = ns

    def _of(self, *kinds):
        return [o for o in self.objects if o["kind"] in kinds]

    def create(self, o, manager):
        path = self._path(o).rpartition("/")[0]
        return answered(self.plane.api("POST", f"{path}?fieldManager={manager}&fieldValidation=Strict", o))

    def live(self, o):
        return self.plane.get(self._path(o))

    def update(self, o, subresource=""):
        return answered(self.plane.api("PUT", f"{self._path(o)}{subresource}?fieldManager={MANAGER}", o))

    def inputs(self):
        """The KbsConfig and what it names, as its user makes them."""
        made = {o["metadata"]["name"]: self.create(o, "kubectl-create") for o in self._of("ConfigMap", "Secret")}
        self._versions = {name: o["metadata"]["resourceVersion"] for name, o in made.items()}
        self.kbsconfig = self.create(*self._of("KbsConfig"), "kubectl-create")

    def render(self, kind):
        """Its Deployment or Service."""
        text = json.dumps(*self._of(kind)).replace("@uid", self.kbsconfig["metadata"]["uid"])
        return json.loads(re.sub(r"([\w.-]+):@rv", lambda m: f"{m[1]}:{self._versions[m[1]]}", text))

    def install(self):
        self.inputs()
        for kind in ("Deployment", "Service"):
            self.create(self.render(kind), MANAGER)
        self.passes()
        status = self._of("KbsConfig")[0].get("status")
        if status:
            self.update({**self.live(self.kbsconfig), "status": status}, "/status")

    def passes(self):
        """What it writes in each pass: the spec of its template in the Deployment that is there, at HEAD the whole template and
        the replicas; the Service from scratch. Without a resourceVersion: no write may depend on it."""
        rendered = self.render("Deployment")
        d = self.live(rendered)
        del d["metadata"]["resourceVersion"]
        if self.release == "head":
            d["spec"]["template"], d["spec"]["replicas"] = rendered["spec"]["template"], rendered["spec"]["replicas"]
        else:
            d["spec"]["template"]["spec"] = rendered["spec"]["template"]["spec"]
        self.update(d)
        self.update(self.render("Service"))

    def make_again(self, kind):
        """Its object is deleted, and made by its next pass."""
        o = self.render(kind)
        answered(self.plane.api("DELETE", self._path(o)))
        wait_for(lambda: self.live(o) is None, 10, f"end of the {kind}")
        self.create(o, MANAGER)


def theirs(o):
    """The fields that the reference's manager still owns; not those of a status."""
    return [m for m in o["metadata"]["managedFields"]
            if m["manager"] == MANAGER and m["operation"] == "Update" and not m.get("subresource")]


def moved(events):
    """The first version of an object in which the reference's manager owns nothing any more."""
    return next(o for _, o in events if not theirs(o))


def others(o):
    """What belongs to neither operator and to no controller: {(manager, operation, subresource): fields}."""
    return {(m["manager"], m["operation"], m.get("subresource")): m["fieldsV1"] for m in o["metadata"]["managedFields"]
            if m not in theirs(o) and m["manager"] not in ("tec-operator", "controller-manager")}


def shape(deployment):
    """What the Pods become: lists that have keys are in their order; without images, and without what kubectl rollout wrote."""
    spec = copy.deepcopy(deployment["spec"])
    spec["template"]["metadata"].get("annotations", {}).pop(RESTARTED, None)
    pod = spec["template"]["spec"]
    pod["volumes"].sort(key=lambda v: v["name"])
    for c in pod["containers"] + pod.get("initContainers", []):
        c.pop("image")
        c["volumeMounts"].sort(key=lambda m: m["mountPath"])
        c.get("env", []).sort(key=lambda e: e["name"])
    return spec


def differences(a, b, at=""):
    """Where two shapes differ, as lines."""
    if isinstance(a, dict) and isinstance(b, dict):
        return [line for k in sorted(a.keys() | b.keys()) for line in differences(a.get(k), b.get(k), f"{at}.{k}")]
    if isinstance(a, list) and isinstance(b, list):
        return [f"{at}: {sign} {o}" for sign, those, others in (("-", b, a), ("+", a, b)) for o in those if o not in others]
    return [] if a == b else [f"{at}: - {b} + {a}"]


def images(deployment):
    return {c["name"]: c["image"] for c in deployment["spec"]["template"]["spec"]["containers"]}


class History:
    """Every version of the objects at a path, from now on: a watch misses none, as a look now and then would. A context, which
    ends it."""

    def __init__(self, plane, path):
        listed = plane.get(path)
        self.first, self.events = listed["items"], []
        self._plane, self._path, self._rv = plane, path, listed["metadata"]["resourceVersion"]
        self._stop, self._error = threading.Event(), None
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def _run(self):
        try:
            while not self._stop.is_set():
                self._look()
            self._look()
        except Exception as e:  # told by end(), in the test's own thread
            self._error = e

    def _look(self):
        status, answer = self._plane.api("GET", f"{self._path}?watch=true&timeoutSeconds=1&resourceVersion={self._rv}")
        assert status == 200, answer
        # One event is JSON, several are text.
        for e in json_documents(answer) if isinstance(answer, str) else [answer] if answer else []:
            assert e["type"] in ("ADDED", "MODIFIED", "DELETED"), e
            self.events.append((e["type"], e["object"]))
            self._rv = e["object"]["metadata"]["resourceVersion"]

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.end()

    def end(self):
        """[(type, object)] until now."""
        self._stop.set()
        self._thread.join(60)
        if self._error:
            raise self._error
        return self.events


def is_ready(pod):
    return "deletionTimestamp" not in pod["metadata"] and any(
        c["type"] == "Ready" and c["status"] == "True" for c in pod.get("status", {}).get("conditions", ()))


def fewest_ready(first, events):
    """The smallest number of ready Pods that there was."""
    ready = {p["metadata"]["name"] for p in first if is_ready(p)}
    least = len(ready)
    for what, pod in events:
        name = pod["metadata"]["name"]
        (ready.add if what != "DELETED" and is_ready(pod) else ready.discard)(name)
        least = min(least, len(ready))
    return least


def rolled_out(plane, path):
    """Waits until all Pods are of the newest template and ready."""
    def done():
        d = plane.get(path)
        s, n = d.get("status", {}), d["spec"]["replicas"]
        return s.get("observedGeneration") == d["metadata"]["generation"] and all(
            s.get(k) == n for k in ("replicas", "updatedReplicas", "readyReplicas")) and d
    return wait_for(done, 10, "a finished rollout")
