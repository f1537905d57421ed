#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""Meets an API server through the Python client of Kubernetes, as it is: prints lines of what it sees, as tec-test-clients
does. Usage: KUBECONFIG=FILE clients.py NAMESPACE"""

import json
import re
import sys
import threading
import time

from kubernetes import client, config, dynamic, watch
from kubernetes.client.exceptions import ApiException

GROUP, VERSION, PLURAL = "trusted-execution-clusters.io", "v1alpha1", "machines"
PATIENCE = 90
NS = sys.argv[1]


def say(claim, text):
    print(f"{claim}: {text}", flush=True)


def refused(claim, call, *args, **kw):
    """What the server says, without what only one server can know."""
    try:
        call(*args, **kw)
    except ApiException as e:
        said = json.loads(e.body)
        message = re.sub(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}", "UID", said["message"])
        causes = sorted((c.get("reason"), c.get("field")) for c in (said.get("details") or {}).get("causes", []))
        say(claim, f"{e.status} {said['reason']} {message} {causes}")
        return
    say(claim, "FAILED: it is not refused")


def until(what, predicate):
    end = time.monotonic() + PATIENCE
    while not predicate():
        if time.monotonic() > end:
            raise TimeoutError(f"still no {what}")
        time.sleep(0.05)


def gone(call, *args):
    try:
        call(*args)
    except ApiException as e:
        return e.status == 404
    return False


def machine(name, n):
    return {"apiVersion": f"{GROUP}/{VERSION}", "kind": "Machine", "metadata": {"name": name},
            "spec": {"id": f"3f1c2b9a-6d0e-4c53-9a7b-2f8e5d20{n:04d}"}}


def config_map(name, labels=None):
    return client.V1ConfigMap(metadata=client.V1ObjectMeta(name=name, labels=labels), data={"n": name})


def objects(core):
    claim = "objects"
    core.create_namespace(client.V1Namespace(metadata=client.V1ObjectMeta(name=NS)))
    secret = core.create_namespaced_secret(NS, client.V1Secret(
        metadata=client.V1ObjectMeta(name="s"), string_data={"a": "b"}, data={"c": "ZA=="}))
    say(claim, f"secret {secret.type} {sorted(secret.data.items())} {secret.string_data}")
    made = core.create_namespaced_config_map(NS, config_map("one", {"l": "1"}))
    say(claim, f"made {made.metadata.name} {made.data} by {[f.manager for f in made.metadata.managed_fields]}")
    made.data["more"] = "ü"
    changed = core.replace_namespaced_config_map("one", NS, made)
    say(claim, f"replaced {sorted(changed.data.items())}")
    refused(claim, core.replace_namespaced_config_map, "one", NS, made)
    refused(claim, core.create_namespaced_config_map, NS, config_map("one"))
    refused(claim, core.read_namespaced_config_map, "absent", NS)
    refused(claim, core.create_namespaced_config_map, NS, config_map("Not_A_Name"))
    core.create_namespaced_config_map(NS, config_map("dry"), dry_run="All")
    refused(claim, core.read_namespaced_config_map, "dry", NS)


def lists(core):
    claim = "lists"
    for i in range(7):
        core.create_namespaced_config_map(NS, config_map(f"page-{i}", {"paged": "yes"}))
    token, seen = None, []
    while token != "":
        page = core.list_namespaced_config_map(NS, limit=3, _continue=token, label_selector="paged")
        seen += [o.metadata.name for o in page.items]
        token = page.metadata._continue or ""
    say(claim, f"in pages of three: {seen}")
    one = core.list_namespaced_config_map(NS, field_selector="metadata.name=page-3")
    say(claim, f"by a field: {[o.metadata.name for o in one.items]}, a {one.kind} of {one.api_version}")
    everywhere = core.list_config_map_for_all_namespaces(label_selector="paged in (yes)")
    say(claim, f"in all namespaces: {len(everywhere.items)}")
    refused(claim, core.list_namespaced_config_map, NS, label_selector="a==b==c")
    core.delete_collection_namespaced_config_map(NS, label_selector="paged")
    say(claim, f"after all of them were deleted: {len(core.list_namespaced_config_map(NS, label_selector='paged').items)}")


def watches(core):
    claim = "watches"
    start = core.list_namespaced_config_map(NS).metadata.resource_version

    def change():
        o = core.create_namespaced_config_map(NS, config_map("watched", {"w": "1"}))
        o.data["x"] = "y"
        core.replace_namespaced_config_map("watched", NS, o)
        core.delete_namespaced_config_map("watched", NS)

    other = threading.Thread(target=change)
    other.start()
    w = watch.Watch()
    for event in w.stream(core.list_namespaced_config_map, NS, label_selector="w", resource_version=start,
                          timeout_seconds=PATIENCE):
        say(claim, f"{event['type']} {event['object'].metadata.name} {sorted(event['object'].data)}")
        if event["type"] == "DELETED":
            w.stop()
    other.join()
    first = list(watch.Watch().stream(core.list_namespaced_config_map, NS, label_selector="l", timeout_seconds=1))
    say(claim, f"without a version: {[(e['type'], e['object'].metadata.name) for e in first]}")


def patches(core, apps, custom):
    claim = "patches"
    container = client.V1Container(name="c", image="i:1", resources=client.V1ResourceRequirements(limits={"cpu": "100m"}))
    apps.create_namespaced_deployment(NS, client.V1Deployment(
        metadata=client.V1ObjectMeta(name="d"),
        spec=client.V1DeploymentSpec(replicas=0, selector=client.V1LabelSelector(match_labels={"a": "b"}),
                                     template=client.V1PodTemplateSpec(metadata=client.V1ObjectMeta(labels={"a": "b"}),
                                                                       spec=client.V1PodSpec(containers=[container])))))
    d = apps.patch_namespaced_deployment("d", NS, {"spec": {"template": {"spec": {"containers": [
        {"name": "side", "image": "j"}]}}}})
    say(claim, f"strategic: {sorted((c.name, c.image) for c in d.spec.template.spec.containers)}")
    m = core.patch_namespaced_config_map("one", NS, [{"op": "add", "path": "/data/p", "value": "q"}])
    say(claim, f"json: {sorted(m.data)}")
    m = core.patch_namespaced_config_map("one", NS, {"data": {"p": None}})
    say(claim, f"merged: {sorted(m.data)}")
    custom.create_namespaced_custom_object(GROUP, VERSION, NS, PLURAL, machine("m", 1))
    o = custom.patch_namespaced_custom_object(GROUP, VERSION, NS, PLURAL, "m", {"metadata": {"labels": {"x": "y"}}})
    say(claim, f"of a custom object: {o['metadata']['labels']}")
    refused(claim, custom.patch_namespaced_custom_object, GROUP, VERSION, NS, PLURAL, "m", {"spec": {"id": "NOT"}})
    refused(claim, custom.create_namespaced_custom_object, GROUP, VERSION, NS, PLURAL, {**machine("bad", 2), "spec": {}})
    s = apps.patch_namespaced_deployment_scale("d", NS, {"spec": {"replicas": 2}})
    say(claim, f"scale: {s.spec.replicas}, selector {s.status.selector}")
    s = apps.read_namespaced_deployment_scale("d", NS)
    say(claim, f"read again: {s.spec.replicas} {s.kind}")


def conditions(custom):
    """What waits for a condition sees it."""
    claim = "conditions"
    seen = []

    def wait():
        stream = watch.Watch().stream(custom.list_namespaced_custom_object, GROUP, VERSION, NS, PLURAL,
                                      timeout_seconds=PATIENCE)
        for event in stream:
            for c in event["object"].get("status", {}).get("conditions", []):
                if c["type"] == "Ready" and c["status"] == "True":
                    seen.append(f"{event['object']['metadata']['name']} {c['reason']}")
                    return

    waiting = threading.Thread(target=wait)
    waiting.start()
    status = {"status": {"conditions": [{"type": "Ready", "status": "True", "reason": "AllReady", "message": "It is.",
                                         "lastTransitionTime": "2026-01-02T03:04:05Z"}]}}
    o = custom.patch_namespaced_custom_object_status(GROUP, VERSION, NS, PLURAL, "m", status)
    say(claim, f"generation {o['metadata']['generation']}")
    waiting.join()
    say(claim, seen)


def applied(api):
    """Server-side apply through the dynamic client, which discovers everything by itself."""
    claim = "dynamic"
    d = dynamic.DynamicClient(api)
    maps = d.resources.get(api_version="v1", kind="ConfigMap")
    body = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "applied"}, "data": {"a": "1"}}
    apply = {"namespace": NS, "name": "applied", "content_type": "application/apply-patch+yaml"}
    o = d.patch(maps, body=json.dumps(body), field_manager="one", **apply)
    o = o.to_dict()
    say(claim, f"{o['data']} by {[(f['manager'], f['operation']) for f in o['metadata']['managedFields']]}")
    body["data"]["a"] = "2"
    refused(claim, d.patch, maps, body=json.dumps(body), field_manager="two", **apply)
    machines = d.resources.get(api_version=f"{GROUP}/{VERSION}", kind="Machine")
    say(claim, f"{machines.name} {machines.kind} {sorted(machines.verbs)} {machines.short_names}")
    say(claim, f"{[m.metadata.name for m in machines.get(namespace=NS).items]}")
    refused(claim, machines.get, namespace=NS, name="absent")


def rights(core, rbac):
    claim = "rights"
    core.create_namespaced_service_account(NS, client.V1ServiceAccount(metadata=client.V1ObjectMeta(name="reader")))
    rbac.create_namespaced_role(NS, client.V1Role(metadata=client.V1ObjectMeta(name="read"), rules=[
        client.V1PolicyRule(api_groups=[""], resources=["configmaps"], verbs=["get", "list"])]))
    rbac.create_namespaced_role_binding(NS, {
        "metadata": {"name": "read"}, "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": "read"},
        "subjects": [{"kind": "ServiceAccount", "name": "reader", "namespace": NS}]})
    token = core.create_namespaced_service_account_token("reader", NS, {"spec": {"expirationSeconds": 3600}})
    other = client.Configuration.get_default_copy()
    other.cert_file = other.key_file = None
    other.api_key = {"authorization": f"Bearer {token.status.token}"}
    reader = client.CoreV1Api(client.ApiClient(other))

    def may_read():
        try:
            return bool(reader.list_namespaced_config_map(NS).items)
        except ApiException:
            return False  # a role that was made a moment ago is seen a moment later

    until("right to read", may_read)
    say(claim, "reads")
    refused(claim, reader.list_namespaced_secret, NS)
    refused(claim, reader.create_namespaced_config_map, NS, config_map("no"))


def ends(core, custom):
    claim = "ends"
    custom.patch_namespaced_custom_object(GROUP, VERSION, NS, PLURAL, "m", {"metadata": {"finalizers": ["example.org/held"]}})
    said = custom.delete_namespaced_custom_object(GROUP, VERSION, NS, PLURAL, "m")
    say(claim, f"held: {'deletionTimestamp' in said['metadata']}")
    custom.patch_namespaced_custom_object(GROUP, VERSION, NS, PLURAL, "m", {"metadata": {"finalizers": None}})
    until("end of the Machine", lambda: gone(custom.get_namespaced_custom_object, GROUP, VERSION, NS, PLURAL, "m"))
    owner = core.create_namespaced_config_map(NS, config_map("owner"))
    core.create_namespaced_config_map(NS, client.V1ConfigMap(metadata=client.V1ObjectMeta(
        name="owned", owner_references=[client.V1OwnerReference("v1", kind="ConfigMap", name="owner", uid=owner.metadata.uid)])))
    said = core.delete_namespaced_config_map("owner", NS, body=client.V1DeleteOptions(propagation_policy="Foreground"))
    until("end of what it owns", lambda: gone(core.read_namespaced_config_map, "owned", NS))
    until("end of the owner", lambda: gone(core.read_namespaced_config_map, "owner", NS))
    say(claim, "what is owned goes with its owner")
    core.delete_namespace(NS)
    until("end of the namespace", lambda: gone(core.read_namespace, NS))
    say(claim, "and so does all")


def main():
    config.load_kube_config()
    api = client.ApiClient()
    core, apps, custom = client.CoreV1Api(api), client.AppsV1Api(api), client.CustomObjectsApi(api)
    version = client.VersionApi(api).get_code()
    say("version", f"{version.major}.{version.minor}")
    for claim, hold in (("objects", lambda: objects(core)), ("lists", lambda: lists(core)),
                        ("watches", lambda: watches(core)), ("patches", lambda: patches(core, apps, custom)),
                        ("conditions", lambda: conditions(custom)), ("dynamic", lambda: applied(api)),
                        ("rights", lambda: rights(core, client.RbacAuthorizationV1Api(api))),
                        ("ends", lambda: ends(core, custom))):
        try:
            hold()
        except (ApiException, TimeoutError, TypeError, ValueError, AttributeError, KeyError) as e:
            say(claim, f"FAILED: {e}")


if __name__ == "__main__":
    main()
