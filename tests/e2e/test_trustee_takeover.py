# SPDX-License-Identifier: MIT
"""Deployments and Services that releases of the Trustee operator made are taken over on a real API server: in place, with
ready Pods all the time, wholly (nothing stays of the former manager), and so that every later change of the KbsConfig comes
through; and that operator takes them back. The oracle is a twin: the same KbsConfig in a namespace where nothing was before."""

import pytest

from conftest import retarget
from controlplane import wait_for
from kbsconfigs import configmap, operator, place, plane, rights, secret, url  # noqa: F401
from kubeapi import describe
from kubelet import Kubelet
from marks import Events
from reference import (DEPLOYMENT, KBSCONFIG, MANAGER, RELEASES, RESTARTED, SERVICE, History, Reference, answered, differences,
                       fewest_ready, images, moved, others, rolled_out, shape, theirs)
from spine import condition

WAIT = 8
AGO = "2026-01-02T03:04:05Z"
REVISION = "deployment.kubernetes.io/revision"
REFUSED = ("Refused", "WriteRefused")


class Taken:
    """PLACE as the release left it, with ready Pods, and TWIN with an operator of its own."""

    def __init__(self, plane, place, twin, release, kubelet):
        self.plane, self.place, self.twin, self.release = plane, place, twin, release
        self.apps = f"/apis/apps/v1/namespaces/{place}/deployments"
        self.reference = Reference(plane, place, release)
        self.reference.install()
        self.kubelet = kubelet.start()
        self.marks(release == "v0.8.0")
        self.before = rolled_out(plane, f"{self.apps}/{DEPLOYMENT}")
        self.service_before = self.service()
        Reference(plane, twin, release).inputs()
        self.since = plane.audit.mark()
        self.deployments = History(plane, self.apps)
        self.pods = History(plane, f"/api/v1/namespaces/{place}/pods")

    def marks(self, restarted):
        """What others wrote in the objects: a label, and in one case a restart of the Pods and a part of the status, the
        latter under the name that the former operator writes with."""
        services = f"/api/v1/namespaces/{self.place}/services/{SERVICE}"
        for path in (f"{self.apps}/{DEPLOYMENT}", services):
            self.patch(path, "kubectl-label", {"metadata": {"labels": {"team": "a"}}})
        if restarted:
            self.patch(f"{self.apps}/{DEPLOYMENT}", "kubectl-rollout",
                       {"spec": {"template": {"metadata": {"annotations": {RESTARTED: AGO}}}}})
            self.patch(f"{self.apps}/{DEPLOYMENT}/status", MANAGER, {"status": {"conditions": [
                {"type": "Example", "status": "True", "reason": "R", "message": ""}]}})

    def patch(self, path, manager, patch):
        answered(self.plane.api("PATCH", f"{path}?fieldManager={manager}", patch, "application/strategic-merge-patch+json"))

    # Reads

    def deployment(self, ns=None):
        return self.plane.get(f"/apis/apps/v1/namespaces/{ns or self.place}/deployments/{DEPLOYMENT}")

    def service(self, ns=None):
        return self.plane.get(f"/api/v1/namespaces/{ns or self.place}/services/{SERVICE}")

    def kbsconfig(self, ns=None):
        return self.plane.get(url(ns or self.place, KBSCONFIG))

    # Waits

    def wait(self, look, what):
        """For look() to be true. Failing, it tells how far it is."""
        try:
            return wait_for(look, WAIT, what)
        except TimeoutError as e:
            differ = "\n".join(differences(shape(self.deployment()), shape(self.deployment(self.twin))))
            raise AssertionError(f"no {what}; {self.kbsconfig().get('status')}\nrefused: {self.refused()}\n"
                                 f"Deployment, - as in the twin, + as it is:\n{differ}") from e

    def installed(self, ns=None):
        """Installed=True for the spec that is there now."""
        o = self.kbsconfig(ns)
        c = condition(o, "Installed")
        return c.get("status") == "True" and c["observedGeneration"] == o["metadata"]["generation"] and o

    def like_the_twin(self, what):
        """Waits until both are Installed and the Deployment has become what the operator makes where nothing was."""
        for ns in (self.twin, self.place):
            self.wait(lambda ns=ns: self.installed(ns), f"Installed=True after {what} in {ns}")
        self.wait(lambda: shape(self.deployment()) == shape(self.deployment(self.twin))
                  and self.service()["spec"]["type"] == self.service(self.twin)["spec"]["type"],
                  f"Deployment as in the twin after {what}")

    def ready(self):
        """Waits for Ready, whose Pods are all of the newest template."""
        rolled_out(self.plane, f"{self.apps}/{DEPLOYMENT}")
        return self.wait(lambda: condition(o := self.kbsconfig(), "Ready").get("status") == "True"
                         and o["status"]["isReady"] is True and self.installed(), "Ready")

    # What must hold at the end, whatever was done

    def refused(self):
        """Writes that the server refused, a conflict apart."""
        found = self.plane.audit.writes_by(f"system:serviceaccount:{self.place}:tec-operator", self.since)
        return describe([e for e in found if e["responseStatus"]["code"] >= 400 and e["responseStatus"]["code"] != 409])

    def check(self):
        self.check_history()
        d, s = self.deployment(), self.service()
        assert not theirs(d) and not theirs(s), "the former manager still owns fields"
        for now, before in ((d, self.before), (s, self.service_before)):
            assert others(now) == others(before) and now["metadata"]["labels"]["team"] == "a"
        assert images(d) == images(self.before), "another version of Trustee than the one that ran"
        if self.release == "v0.8.0":
            assert d["spec"]["template"]["metadata"]["annotations"][RESTARTED] == AGO
        assert s["metadata"]["uid"] == self.service_before["metadata"]["uid"]
        assert s["spec"]["clusterIP"] == self.service_before["spec"]["clusterIP"]
        owner, = d["metadata"]["ownerReferences"]
        assert (owner["uid"], owner["controller"]) == (self.reference.kbsconfig["metadata"]["uid"], True)
        assert self.refused() == "(none)"

    def check_history(self):
        """It was there all the time, and so were its Pods: our rolling update starts a Pod before it ends one."""
        versions = self.deployments.end()
        assert {(what, o["metadata"]["uid"]) for what, o in versions} == {("MODIFIED", self.before["metadata"]["uid"])}
        first = moved(versions)  # the annotation with the images counts as a generation
        assert first["metadata"]["generation"] == self.before["metadata"]["generation"] + 1
        assert first["spec"] == self.before["spec"]
        events = self.pods.end()
        assert len(self.pods.first) == self.before["spec"]["replicas"]
        assert fewest_ready(self.pods.first, events) == self.before["spec"]["replicas"], [
            (what, o["metadata"]["name"]) for what, o in events]


@pytest.fixture(name="release", params=RELEASES)
def _release(request):
    return request.param


@pytest.fixture(name="twin")
def _twin(plane, rights):  # noqa: F811
    name = plane.create_namespace("twin")
    plane.apply(retarget(rights, name))
    yield name
    plane.api("DELETE", f"/api/v1/namespaces/{name}")


@pytest.fixture(name="left")
def _left(plane, place, twin, release, operator, tmp_path):  # noqa: F811
    kubelet = Kubelet(plane, place, str(tmp_path))
    left = Taken(plane, place, twin, release, kubelet)
    operator(twin)
    with left.deployments, left.pods:
        yield left
    kubelet.stop()


@pytest.fixture(name="taken")
def _taken(left, operator):  # noqa: F811
    """The operator is at work in PLACE, and has taken over."""
    left.operator = operator(left.place)
    left.like_the_twin("the takeover")
    left.ready()
    return left


def test_taken_over(taken):
    """In place, in one rollout, with nothing left of the former manager, volumes, mounts and containers included."""
    taken.check()
    d = taken.deployment()
    assert d["metadata"]["generation"] == taken.before["metadata"]["generation"] + 2
    assert int(d["metadata"]["annotations"][REVISION]) == int(taken.before["metadata"]["annotations"][REVISION]) + 1
    assert " 422" not in taken.operator.log_text()
    assert taken.kbsconfig()["metadata"]["finalizers"] == taken.reference.kbsconfig["metadata"]["finalizers"]


# Every change of section 6 and 3 of the contract: each is one write, done in a namespace.

def edit(plane, ns, **spec):
    answered(plane.api("PATCH", url(ns, KBSCONFIG), {"spec": spec}, "merge"))


def spec_of(plane, ns):
    return plane.get(url(ns, KBSCONFIG))["spec"]


def no_resources(plane, ns, legacy):
    edit(plane, ns, kbsSecretResources=[])


def a_resource_that_comes_later(plane, ns, legacy):
    edit(plane, ns, kbsSecretResources=["another"])
    secret(plane, ns, "another", {"key": "value"})


def another_resource_policy(plane, ns, legacy):
    configmap(plane, ns, "stricter", **{"policy.rego" if legacy else "resource-policy.rego": "package policy\n"})
    edit(plane, ns, kbsResourcePolicyConfigMapName="stricter")


def another_text_of_the_policy(plane, ns, legacy):
    configmap(plane, ns, "stricter", **{"policy.rego" if legacy else "resource-policy.rego":
                                        "package policy\ndefault allow = false\n"})


def no_attestation_policy(plane, ns, legacy):
    edit(plane, ns, kbsAttestationPolicyConfigMapName=None)


def an_attestation_policy(plane, ns, legacy):
    configmap(plane, ns, "appraisal", **{"default_cpu.rego": "package policy\n"})
    edit(plane, ns, kbsAttestationPolicyConfigMapName="appraisal")


def one_replica_more(plane, ns, legacy):
    edit(plane, ns, KbsDeploymentSpec={"replicas": spec_of(plane, ns).get("KbsDeploymentSpec", {}).get("replicas", 1) + 1})


def another_environment(plane, ns, legacy):
    edit(plane, ns, KbsEnvVars={"RUST_LOG": None, "NO_COLOR": "1"})


def https_in_the_file(plane, ns, legacy):
    toml = plane.get(f"/api/v1/namespaces/{ns}/configmaps/kbs-config")["data"]["kbs-config.toml"]
    configmap(plane, ns, "kbs-config", **{"kbs-config.toml": toml.replace(
        "insecure_http = true", 'insecure_http = false\nprivate_key = "/etc/https-key/https.key"\n'
        'certificate = "/etc/https-cert/https.crt"')})


def https_names(plane, ns, legacy):
    secret(plane, ns, "kbs-https-key", {"https.key": "key"})
    secret(plane, ns, "kbs-https-certificate", {"https.crt": "certificate"})
    edit(plane, ns, kbsHttpsKeySecretName="kbs-https-key", kbsHttpsCertSecretName="kbs-https-certificate")


EDITS = (no_resources, a_resource_that_comes_later, another_resource_policy, another_text_of_the_policy, an_attestation_policy,
         no_attestation_policy, one_replica_more, another_environment, https_in_the_file, https_names)


def test_every_edit_afterwards(taken):
    for change in EDITS:
        former = shape(taken.deployment(taken.twin))
        for ns in (taken.twin, taken.place):
            change(taken.plane, ns, taken.release != "head")
        taken.wait(lambda former=former: shape(taken.deployment(taken.twin)) != former, f"effect of {change.__name__}")
        taken.like_the_twin(change.__name__)
        taken.ready()  # an edit in the middle of a rollout is the Deployment controller's affair
    for ns in (taken.twin, taken.place):
        edit(taken.plane, ns, kbsServiceType="NodePort")
    taken.wait(lambda: taken.service()["spec"]["type"] == "NodePort", "another type of the Service")
    taken.like_the_twin("another type of the Service")
    taken.ready()
    taken.check()


# Refused

# (what is wrong, the server's words, the correction): the first one is invalid (422), the other is no list by key (500).
BAD = [({"KbsEnvVars": {"bad name=": "x"}}, "bad name=", {"KbsEnvVars": {"bad name=": None}}),
       ({"kbsLocalCertCacheSpec": {"secrets": [{"secretName": "vcek-secret"}, {"secretName": "kbs-auth-public-key"}]}},
        "volumeMounts", {"kbsLocalCertCacheSpec": None})]


@pytest.mark.parametrize("release", ["v0.3.0", "head"], indirect=True)
def test_a_refused_write_is_told(taken):
    plane, ns = taken.plane, taken.place
    secret(plane, ns, "vcek-secret", {"vcek.crt": "certificate"})
    name = taken.kubelet.pods()[0]["metadata"]["name"]
    for bad, words, good in BAD:
        before, events = taken.deployment(), Events(plane, ns)
        edit(plane, ns, **bad)

        def told(words=words):
            o = taken.kbsconfig()
            c = condition(o, "Installed")
            return c["status"] == "False" and c["reason"] in REFUSED and words in c["message"] and o
        o = taken.wait(told, f"Installed=False with {words!r}")
        assert condition(o, "Installed")["observedGeneration"] == o["metadata"]["generation"]
        events.wait(KBSCONFIG, words, reason=condition(o, "Installed")["reason"])
        # The Pods run with what was there before; isReady says how they are.
        assert taken.deployment()["spec"] == before["spec"]
        assert o["status"]["isReady"] is True
        taken.kubelet.tell_ready(name, False)
        taken.wait(lambda: taken.kbsconfig()["status"]["isReady"] is False and told(), "isReady of a Pod that is not ready")
        taken.kubelet.tell_ready(name)
        taken.wait(lambda: taken.kbsconfig()["status"]["isReady"] is True and told(), "isReady of ready Pods")
        edit(plane, ns, **good)
        taken.wait(taken.installed, "Installed=True once the spec is right")
    edit(plane, taken.twin, kbsLocalCertCacheSpec=None)
    taken.like_the_twin("the correction")


# Back

def test_and_back(taken):
    """What the reference writes in its next pass is accepted, and what it owns is as it renders it; it can delete all of it
    and make what is missing."""
    taken.operator.terminate()
    reference = taken.reference
    reference.passes()
    d, s = taken.deployment(), taken.service()
    rendered = taken.before["spec"]  # with the server's defaults
    if taken.release == "head":
        assert (d["spec"]["template"], d["spec"]["replicas"]) == (rendered["template"], rendered["replicas"])
    else:
        assert d["spec"]["template"]["spec"] == rendered["template"]["spec"]
    assert s["spec"] == taken.service_before["spec"]
    assert s["metadata"]["ownerReferences"] == taken.service_before["metadata"]["ownerReferences"]
    taken.check_history()
    for kind in ("Deployment", "Service"):
        reference.make_again(kind)
    rolled_out(taken.plane, f"{taken.apps}/{DEPLOYMENT}")


# The same template

@pytest.mark.parametrize("differs", ["nothing", "strategy"])
@pytest.mark.parametrize("owned", [True, False], ids=["owned", "orphan"])
def test_an_equal_template_is_no_rollout(plane, place, twin, operator, owned, differs):  # noqa: F811
    """What the former manager made equals what ours renders, or differs outside of the template. Annotations of the
    Deployment count for its generation; fields that change their manager do not."""
    reference = Reference(plane, place, "head")
    reference.inputs()
    Reference(plane, twin, "head").inputs()
    operator(twin)
    path = f"/apis/apps/v1/namespaces/%s/deployments/{DEPLOYMENT}"
    wait_for(lambda: plane.get(path % twin), WAIT, "a Deployment in the twin")
    made = reference.render("Deployment")
    made["spec"] = plane.get(path % twin)["spec"]
    if not owned:
        del made["metadata"]["ownerReferences"]
    if differs == "strategy":
        made["spec"]["strategy"]["rollingUpdate"] = {"maxUnavailable": 1}
    before = reference.create(made, MANAGER)
    sets = f"/apis/apps/v1/namespaces/{place}/replicasets"
    wait_for(lambda: plane.get(sets)["items"], WAIT, "a ReplicaSet")
    with History(plane, path.rpartition("/")[0] % place) as history:
        operator(place)
        wait_for(lambda: condition(plane.get(url(place, KBSCONFIG)), "Installed").get("status") == "True", WAIT, "Installed")
        wait_for(lambda: not theirs(plane.get(path % place)), WAIT, "the end of the former manager's fields")
        events = history.end()
    assert {(what, o["metadata"]["uid"]) for what, o in events} == {("MODIFIED", before["metadata"]["uid"])}
    after = plane.get(path % place)
    assert shape(after) == shape(plane.get(path % twin))
    assert after["spec"]["template"] == before["spec"]["template"]
    assert moved(events)["metadata"]["generation"] == 2 and after["metadata"]["generation"] == 3
    assert len(plane.get(sets)["items"]) == 1


def test_what_belongs_to_another_owner_is_left_alone(plane, place, operator):  # noqa: F811
    reference = Reference(plane, place, "head")
    reference.inputs()
    config = plane.get(f"/api/v1/namespaces/{place}/configmaps/kbs-config")
    made = reference.render("Deployment")
    made["metadata"]["ownerReferences"][0].update(apiVersion="v1", kind="ConfigMap", name="kbs-config",
                                                  uid=config["metadata"]["uid"])
    before = reference.create(made, MANAGER)
    operator(place)
    wait_for(lambda: condition(plane.get(url(place, KBSCONFIG)), "Installed").get("reason") == "Conflict", WAIT, "Conflict")
    after = reference.live(made)
    assert theirs(after) == theirs(before) and after["metadata"]["ownerReferences"] == before["metadata"]["ownerReferences"]
    assert after["spec"] == before["spec"]
