# SPDX-License-Identifier: MIT
"""k8s/uninstall on a real API server with its own garbage collection and namespace controller: what it
keeps, what it takes back first, and the way out after the wrong order. The operator runs outside, with
the account of k8s/, which loses its rights on the way."""

import json
import os
import subprocess
import time

import pytest

import spine
from controlplane import PATIENCE, TOP, wait_for
from teckinds import GROUP, made
from trustee import Held

UNINSTALL = os.path.join(TOP, "k8s", "uninstall")
NODES = 50

pytestmark = pytest.mark.skipif("TEC_TEST_KBS_URL" in os.environ, reason="Trustee is looked into and stopped")


def install(cp, ns):
    """k8s/ in this namespace; no kubelet runs what the Deployment says."""
    objects = [o for o in cp.read_manifests(os.path.join(TOP, "k8s"))
               if o["kind"] not in ("CustomResourceDefinition", "Namespace")]
    theirs = objects[0]["metadata"]["namespace"]
    cp.apply(json.loads(json.dumps(objects).replace(f'"namespace": "{theirs}"', f'"namespace": "{ns}"')))


@pytest.fixture
def uninstall(cp, ns):
    """uninstall(*args) -> CompletedProcess; seconds is how long it took."""

    def run(*args, seconds=60 * PATIENCE, kubectl=None):
        env = dict(os.environ, KUBECONFIG=cp.admin_kubeconfig, KUBECACHEDIR=cp.path("kubectl-cache"),
                   KUBECTL=kubectl or " ".join(cp.binaries["kubectl"]))
        began = time.monotonic()
        done = subprocess.run([UNINSTALL, "--namespace", ns, "--timeout", str(45 * PATIENCE), *args], env=env, text=True,
                              capture_output=True, timeout=seconds, check=False, stdin=subprocess.DEVNULL)
        done.seconds = time.monotonic() - began
        return done

    return run


@pytest.fixture
def neighbour(cp):
    """Another namespace with a Machine: its kinds must not go."""
    name = cp.create_namespace()
    made(cp, "mach", name, {"id": spine.new_uuid()}, "neighbours")
    yield name
    assert spine.read(cp, name, "mach", "neighbours"), "somebody else's Machine is gone"
    cp.api("DELETE", f"/api/v1/namespaces/{name}")


def namespace_is_gone(cp, ns):
    return cp.api("GET", f"/api/v1/namespaces/{ns}")[0] == 404


def names(cp, ns, kind):
    return [o["metadata"]["name"] for o in spine.items(cp, ns, kind)]


def held_secrets(cp, ns):
    return [s for s in spine.items(cp, ns, "secrets") if s["metadata"].get("finalizers")]


def filled(world):
    """NODES Machines whose keys Trustee has."""
    world.start()
    install(world.cp, world.ns)
    nodes = world.make_many(NODES)
    for uuid in nodes:
        world.ready(uuid, 60)
    assert len(Held(world.kbs.dump()).resources) == NODES
    return nodes


def test_the_right_order_takes_every_key_back(cp, ns, make_world, uninstall, neighbour):
    world = make_world()
    filled(world)
    done = uninstall("--delete-keys", "--yes")
    assert done.returncode == 0, done
    held = Held(world.kbs.dump())
    assert not held.identities and not [k for k in held.resources.values() if k != b"{}"]
    assert namespace_is_gone(cp, ns) and done.seconds < 45 * PATIENCE, done
    assert "the kinds stay, because another namespace has machines" in done.stdout
    assert cp.api("GET", f"/apis/apiextensions.k8s.io/v1/customresourcedefinitions/machines.{GROUP}")[0] == 200
    again = uninstall("--delete-keys", "--yes")
    assert again.returncode == 0, again


@pytest.mark.parametrize("authority", ["Frozen", "Following"])
def test_who_does_not_decide_lets_go_too(cp, ns, make_world, uninstall, neighbour, authority):
    """A frozen operator deletes nothing and one that follows copies again: it retires."""
    world = make_world()
    world.start()
    install(cp, ns)
    uuid = world.joined()[0]
    spine.merge(cp, ns, "tec", "tec", {"spec": {"authority": authority, "follow": {"kubeconfigSecret": "none"}}})
    wait_for(lambda: spine.condition(spine.read(cp, ns, "tec", "tec"), "Authority").get("status") == "False", 30, authority)
    done = uninstall("--delete-keys", "--yes")
    assert done.returncode == 0, done
    held = Held(world.kbs.dump())
    assert not held.identities and not [k for k in held.resources.values() if k != b"{}"], uuid
    assert namespace_is_gone(cp, ns)


def test_the_wrong_order_has_a_way_out(cp, ns, make_world, uninstall, neighbour):
    """What `kubectl delete -k k8s/` leaves: no operator, no rights, objects that nobody lets go."""
    world = make_world()
    filled(world)
    world.op.kill9()
    cp.api("DELETE", f"/api/v1/namespaces/{ns}")
    wait_for(lambda: not spine.read(cp, ns, "deployments", "tec-operator"), 30, "no Deployment")
    wait_for(lambda: not spine.items(cp, ns, "ak"), 30, "no AttestationKeys")
    assert len(spine.items(cp, ns, "mach")) == NODES and len(held_secrets(cp, ns)) == NODES
    said = uninstall("--delete-keys", "--yes")
    assert said.returncode == 1 and said.seconds < 10 * PATIENCE, said
    assert "the operator is not installed" in said.stderr and "--delete-keys --force" in said.stderr
    assert len(spine.items(cp, ns, "mach")) == NODES, "not without being asked"
    done = uninstall("--delete-keys", "--yes", "--force")
    assert done.returncode == 0 and done.seconds < 45 * PATIENCE, done
    assert namespace_is_gone(cp, ns)


def test_a_trustee_that_is_away_is_waited_for_and_then_named(cp, ns, make_world, uninstall, neighbour):
    world = make_world()
    world.start()
    install(cp, ns)
    uuid = world.joined()[0]
    world.proxy.refuse()
    done = uninstall("--delete-keys", "--yes", "--timeout", "5")
    assert done.returncode == 1 and f"machine-{uuid}" in done.stderr and "--force" in done.stderr, done
    assert spine.read(cp, ns, "mach", f"machine-{uuid}")["metadata"]["finalizers"]
    assert spine.read(cp, ns, "tec", "tec")["spec"]["registration"]["mode"] == "Manual"
    world.proxy.listen()
    world.gone(uuid, 60)
    done = uninstall("--delete-keys", "--yes")
    assert done.returncode == 0 and namespace_is_gone(cp, ns), done


def test_without_options_every_key_stays_and_the_operator_comes_back(cp, ns, start_operator, uninstall):
    install(cp, ns)
    spine.make_cluster(cp, ns)
    op = start_operator(ns)
    uuid = spine.first_boot(op)
    spine.wait_condition(cp, ns, "mach", f"machine-{uuid}", "KeyReady", "KeyMade")
    before = spine.read(cp, ns, "secrets", uuid)
    wait_for(lambda: spine.read(cp, ns, "deployments", "trustee-deployment"), 20, "Trustee's Deployment")
    op.terminate()
    done = uninstall()
    assert done.returncode == 0, done
    for kind, name in (("deployments", "tec-operator"), ("deployments", "trustee-deployment"),
                       ("services", "kbs-service"), ("services", "register-server"),
                       ("services", "attestation-key-register"), ("serviceaccounts", "tec-operator")):
        assert not spine.read(cp, ns, kind, name), name
    assert not cp.get(f"/apis/networking.k8s.io/v1/namespaces/{ns}/networkpolicies")["items"]
    for kind, name in (("mach", f"machine-{uuid}"), ("tec", "tec"), ("secrets", "trustee-auth"),
                       ("configmaps", "tec-operator-since"), ("configmaps", "image-pcrs")):
        assert spine.read(cp, ns, kind, name), name
    install(cp, ns)
    start_operator(ns)
    wait_for(lambda: spine.read(cp, ns, "services", "kbs-service"), 20, "the Services again")
    after = spine.read(cp, ns, "secrets", uuid)
    assert (after["data"], after["metadata"]["uid"]) == (before["data"], before["metadata"]["uid"])
    spine.wait_condition(cp, ns, "mach", f"machine-{uuid}", "KeyReady", "KeyMade")


def test_a_kept_namespace_keeps_what_is_others(cp, ns, start_operator, uninstall, neighbour):
    install(cp, ns)
    follows = json.loads(json.dumps(cp.read_manifests(os.path.join(TOP, "k8s", "follow-role.yaml"))).replace(
        '"namespace": "trusted-execution-clusters"', f'"namespace": "{ns}"'))
    cp.apply([{"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "theirs", "namespace": ns}},
              {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "tec-follow", "namespace": ns}}, *follows])
    op = start_operator(ns)
    spine.make_cluster(cp, ns)
    spine.wait_condition(cp, ns, "tec", "tec", "Installed", "InstallationCompleted")
    assert op.alive()
    done = uninstall("--delete-keys", "--yes", "--keep-namespace")
    assert done.returncode == 0, done
    op.kill9()
    wait_for(lambda: [n for n in names(cp, ns, "configmaps") if n != "kube-root-ca.crt"] == ["theirs"], 20, "theirs alone")
    assert not spine.items(cp, ns, "tec") and not spine.items(cp, ns, "services")
    assert not [name for kind in ("serviceaccounts", "secrets") for name in names(cp, ns, kind) if "follow" in name]
    assert not cp.get(f"/apis/rbac.authorization.k8s.io/v1/namespaces/{ns}/roles")["items"]


def test_the_kinds_go_with_their_last_object(cp, ns, uninstall, tmp_path):
    """Not really, as other tests use them: the last steps are only written down."""
    asked = tmp_path / "asked"
    fake = tmp_path / "kubectl"
    fake.write_text(f'#!/bin/sh\ncase "$*" in\n*" -A -o name") exit 0 ;;\n*"delete crd"*|*clusterrole*)'
                    f' echo "$*" >>{asked}; exit 0 ;;\nesac\nexec {" ".join(cp.binaries["kubectl"])} "$@"\n')
    fake.chmod(0o755)
    done = uninstall("--delete-keys", "--yes", kubectl=str(fake))
    assert done.returncode == 0, done
    said = asked.read_text()
    for plural in ("machines", "attestationkeys", "approvedimages", "trustedexecutionclusters"):
        assert f"{plural}.{GROUP}" in said.splitlines()[-1], said
    assert namespace_is_gone(cp, ns)


def test_a_kind_may_go_between_two_questions(cp, ns, uninstall, tmp_path):
    """As after kubectl delete -k k8s/, which deletes the kinds beside us: what is not known any more has no objects."""
    gone = tmp_path / "gone"
    fake = tmp_path / "kubectl"
    fake.write_text(f'#!/bin/sh\ncase "$*" in\n*"get crd machines.{GROUP}"*) [ ! -e {gone} ] || exit 0 ;;\n'
                    f'*"get machines.{GROUP}"*) touch {gone}; echo "no resource type machines" >&2; exit 1 ;;\n'
                    f'*" -A -o name"|*"delete crd"*|*clusterrole*) exit 0 ;;\nesac\n'
                    f'exec {" ".join(cp.binaries["kubectl"])} "$@"\n')
    fake.chmod(0o755)
    done = uninstall("--delete-keys", "--force", "--yes", kubectl=str(fake))
    assert gone.exists() and done.returncode == 0, done
    assert "no resource type" not in done.stderr, done
    assert namespace_is_gone(cp, ns)


@pytest.mark.parametrize("what", ["get crd", "get secrets", "get machines", "get deployment"])
def test_no_answer_never_counts_as_nothing_there(cp, ns, uninstall, tmp_path, what):
    """The operator must not go because a list of what it has to take back could not be read."""
    install(cp, ns)
    made(cp, "mach", ns, {"id": spine.new_uuid()}, "a")
    fake = tmp_path / "kubectl"
    fake.write_text(f'#!/bin/sh\ncase "$*" in *"{what}"*) echo refused >&2; exit 1 ;; esac\n'
                    f'exec {" ".join(cp.binaries["kubectl"])} "$@"\n')
    fake.chmod(0o755)
    done = uninstall("--delete-keys", "--yes", "--timeout", "3", kubectl=str(fake))
    assert done.returncode == 1 and "does not answer" in done.stderr, done
    assert spine.read(cp, ns, "deployments", "tec-operator") and spine.read(cp, ns, "mach", "a")


@pytest.mark.parametrize("args, word", [
    (("--delete-keys",), "no terminal to ask for confirmation"), (("--force",), "require --delete-keys"),
    (("--yes",), "require --delete-keys"), (("--purge",), "unknown argument --purge"),
    (("--timeout", "soon"), "not a number"), (("--namespace",), "needs a namespace")])
def test_what_is_not_asked_for_properly_does_nothing(cp, ns, uninstall, args, word):
    made(cp, "mach", ns, {"id": spine.new_uuid()}, "a")
    done = uninstall(*args)
    assert done.returncode == 2 and word in done.stderr, done
    assert spine.read(cp, ns, "mach", "a")
