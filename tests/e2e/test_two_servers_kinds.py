# SPDX-License-Identifier: MIT
"""Built-in kinds on kube-apiserver and on tec-operator --standalone: what is filled in, and what is refused with
which words. One table, two servers; what differs on purpose is listed with the reason."""

import json

import pytest

from test_two_servers import obj, on_both, run_session, two_servers

NS = "two-servers-kinds"
RBAC = "rbac.authorization.k8s.io/v1"
CREATE = "create -f -"


def pod_spec(**more):
    return {"containers": [{"name": "c", "image": "quay.io/a/b:1"}], **more}


def template(labels=None, **spec):
    return {"metadata": {"labels": labels or {"app": "x"}}, "spec": pod_spec(**spec)}


def deployment(name, **spec):
    return obj("Deployment", name, "apps/v1", spec={"selector": {"matchLabels": {"app": "x"}}, "template": template(), **spec})


def job(name, pod=None, **spec):
    return obj("Job", name, "batch/v1", spec={"template": {"spec": pod_spec(**{"restartPolicy": "Never", **(pod or {})})}, **spec})


def service(name, *ports, **spec):
    return obj("Service", name, "v1", spec={"ports": list(ports), "selector": {"app": "x"}, **spec})


def pod(name, *containers, **spec):
    return obj("Pod", name, "v1", spec={"containers": list(containers), **spec})


def claim(name, **spec):
    return obj("PersistentVolumeClaim", name, "v1", spec={
        "accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}, **spec})


def netpol(name, **spec):
    return obj("NetworkPolicy", name, "networking.k8s.io/v1", spec={"podSelector": {}, **spec})


def binding(called, subjects=(), **ref):
    return obj("RoleBinding", called, RBAC, roleRef={"kind": "Role", "name": "r", **ref}, subjects=list(subjects))


def resources(**r):
    return deployment("x", template=template(containers=[{"name": "c", "image": "a", "resources": r}]))


def mounts(*m):
    return deployment("x", template=template(
        volumes=[{"name": "v", "emptyDir": {}}], containers=[{"name": "c", "image": "a", "volumeMounts": list(m)}]))


def volumes(*v):
    return deployment("x", template=template(volumes=list(v)))


def expressions(*e):
    return deployment("x", selector={"matchExpressions": list(e)})


def budget(**spec):
    return obj("PodDisruptionBudget", "x", "policy/v1", spec=spec)


def ingress(**spec):
    return obj("Ingress", "x", "networking.k8s.io/v1", spec=spec)


BACKEND = {"service": {"name": "s", "port": {"number": 80}}}
C = {"name": "c", "image": "quay.io/a/b:1"}
HTTP = {"httpGet": {"port": 80}}

# Each is made and shown: what the server filled in.
GOOD = [
    deployment("d1"),
    deployment("d2", replicas=3, strategy={"type": "Recreate"}, revisionHistoryLimit=2),
    deployment("d3", strategy={"rollingUpdate": {"maxSurge": 1}}, template=template(
        volumes=[{"name": "s", "secret": {"secretName": "s"}}, {"name": "m", "configMap": {"name": "m"}},
                 {"name": "e", "emptyDir": {}}, {"name": "h", "hostPath": {"path": "/x"}},
                 {"name": "p", "projected": {"sources": [{"serviceAccountToken": {"path": "t"}}]}},
                 {"name": "d", "downwardAPI": {"items": [{"path": "n", "fieldRef": {"fieldPath": "metadata.name"}}]}}],
        initContainers=[{"name": "i", "image": "a"}], serviceAccountName="sa",
        containers=[{"name": "c", "image": "a:latest", "ports": [{"containerPort": 80}], "livenessProbe": HTTP,
                     "readinessProbe": {"tcpSocket": {"port": 80}, "periodSeconds": 5},
                     "env": [{"name": "N", "valueFrom": {"fieldRef": {"fieldPath": "metadata.name"}}}]},
                    {"name": "digest", "image": "a@sha256:" + "0" * 64},
                    {"name": "both", "image": "h:5000/a:latest@sha256:" + "0" * 64},
                    {"name": "port", "image": "h:5000/a"}])),
    obj("ReplicaSet", "rs", "apps/v1", spec={"selector": {"matchLabels": {"app": "x"}}, "template": template()}),
    netpol("n1"),
    netpol("n2", egress=[{"ports": [{"port": 53}]}]),
    netpol("n3", ingress=[{"ports": [{"port": 80}, {"port": 53, "protocol": "UDP"}]}]),
    claim("pvc"),
    binding("b1", [{"kind": "User", "name": "u"}, {"kind": "Group", "name": "g"},
                   {"kind": "ServiceAccount", "name": "s", "namespace": NS}]),
    service("s1", {"port": 80}),
    service("s2", {"port": 80, "name": "a"}, {"port": 81, "name": "b", "targetPort": "http", "protocol": "UDP"}),
    service("s3", {"port": 80}, sessionAffinity="ClientIP"),
    obj("Service", "s4", "v1", spec={"type": "ExternalName", "externalName": "example.org"}),
    obj("Service", "s5", "v1", spec={"clusterIP": "None", "selector": {"a": "b"}}),
    job("j1"),
    job("j2", parallelism=2),
    job("j3", backoffLimit=0, completions=4, completionMode="Indexed"),
]

BAD = [
    ("no-selector", deployment("x", selector=None)),
    ("empty-selector", deployment("x", selector={})),
    ("other-labels", deployment("x", selector={"matchLabels": {"app": "y"}})),
    ("negative-replicas", deployment("x", replicas=-1)),
    ("strategy", deployment("x", strategy={"type": "Sometimes"})),
    ("recreate-rolling", deployment("x", strategy={"type": "Recreate", "rollingUpdate": {"maxSurge": 1}})),
    ("template-restart", deployment("x", template=template(restartPolicy="Never"))),
    ("no-containers", deployment("x", template=template(containers=[]))),
    ("container-name", deployment("x", template=template(containers=[{"image": "a"}]))),
    ("container-name-bad", deployment("x", template=template(containers=[{"name": "A_b", "image": "a"}]))),
    ("container-image", deployment("x", template=template(containers=[{"name": "a"}]))),
    ("containers-twice", deployment("x", template=template(containers=[C, C]))),
    ("pull-policy", deployment("x", template=template(containers=[{**C, "imagePullPolicy": "Often"}]))),
    ("container-port", deployment("x", template=template(containers=[{**C, "ports": [{"containerPort": 70000}]}]))),
    ("container-port-0", deployment("x", template=template(containers=[{**C, "ports": [{"name": "http"}]}]))),
    ("env-name", deployment("x", template=template(containers=[{**C, "env": [{"value": "v"}]}]))),
    ("volume-name", deployment("x", template=template(volumes=[{"name": "A", "emptyDir": {}}]))),
    ("volumes-twice", deployment("x", template=template(volumes=[{"name": "a", "emptyDir": {}}] * 2))),
    ("dns-policy", deployment("x", template=template(dnsPolicy="Never"))),
    ("set-other-labels", obj("ReplicaSet", "x", "apps/v1", spec={
        "selector": {"matchLabels": {"app": "y"}}, "template": template()})),
    ("service-no-ports", service("x")),
    ("service-port-0", service("x", {"port": 0})),
    ("service-port-large", service("x", {"port": 65536})),
    ("service-target", service("x", {"port": 80, "targetPort": 70000})),
    ("service-protocol", service("x", {"port": 80, "protocol": "ICMP"})),
    ("service-two-unnamed", service("x", {"port": 80}, {"port": 81})),
    ("service-two-same", service("x", {"port": 80, "name": "a"}, {"port": 81, "name": "a"})),
    ("service-port-name", service("x", {"port": 80, "name": "A"})),
    ("service-type", service("x", {"port": 80}, type="Local")),
    ("service-affinity", service("x", {"port": 80}, sessionAffinity="Some")),
    ("service-external", obj("Service", "x", "v1", spec={"type": "ExternalName"})),
    ("job-restart", job("x", {"restartPolicy": "Always"})),
    ("job-negative", job("x", backoffLimit=-1, parallelism=-2)),
    ("job-mode", job("x", completionMode="Some")),
    ("claim-modes", claim("x", accessModes=[])),
    ("claim-storage", claim("x", resources={})),
    ("rule-no-verbs", obj("Role", "x", RBAC, rules=[{"apiGroups": [""], "resources": ["pods"]}])),
    ("rule-no-groups", obj("Role", "x", RBAC, rules=[{"verbs": ["get"], "resources": ["pods"]}])),
    ("rule-no-resources", obj("Role", "x", RBAC, rules=[{"verbs": ["get"], "apiGroups": [""]}])),
    ("rule-path", obj("Role", "x", RBAC, rules=[{"verbs": ["get"], "nonResourceURLs": ["/x"]}])),
    ("binding-kind", binding("x", kind="Rolle")),
    ("binding-name", binding("x", name="")),
    ("binding-group", binding("x", apiGroup="apps")),
    ("subject-name", binding("x", [{"kind": "User", "name": ""}])),
    ("subject-namespace", binding("x", [{"kind": "ServiceAccount", "name": "a"}])),
    ("subject-kind", binding("x", [{"kind": "Everybody", "name": "a"}])),
    ("lease-duration", obj("Lease", "x", "coordination.k8s.io/v1", spec={"leaseDurationSeconds": 0})),
    ("pod-restart", pod("x", C, restartPolicy="Perhaps")),
    ("pod-no-containers", pod("x")),
    ("resource-negative", resources(limits={"cpu": "-1"})),
    ("resource-above-limit", resources(limits={"cpu": "1"}, requests={"cpu": "2"})),
    ("resource-name", resources(limits={"cp u": "1"})),
    ("resource-unknown", resources(limits={"foo": "1"})),
    ("mount-of-nothing", mounts({"name": "y", "mountPath": "/a"})),
    ("mount-twice", mounts({"name": "v", "mountPath": "/a"}, {"name": "v", "mountPath": "/a"})),
    ("mount-above", mounts({"name": "v", "mountPath": "/a", "subPath": "../x"})),
    ("mount-absolute", mounts({"name": "v", "mountPath": "/a", "subPath": "/x"})),
    ("volume-two-sources", volumes({"name": "v", "emptyDir": {}, "hostPath": {"path": "/x"}})),
    ("volume-path", volumes({"name": "v", "hostPath": {}})),
    ("volume-path-above", volumes({"name": "v", "hostPath": {"path": "/a/../b"}})),
    ("volume-secret", volumes({"name": "v", "secret": {}})),
    ("volume-map", volumes({"name": "v", "configMap": {}})),
    ("volume-mode", volumes({"name": "v", "secret": {"secretName": "s", "defaultMode": 99999}})),
    ("volume-items", volumes({"name": "v", "secret": {"secretName": "s", "items": [{"key": "a", "path": "../b"}, {"path": "x"}]}})),
    ("selector-operator", expressions({"key": "a", "operator": "Is", "values": ["b"]})),
    ("selector-in", expressions({"key": "a", "operator": "In"})),
    ("selector-exists", expressions({"key": "a", "operator": "Exists", "values": ["b"]})),
    ("selector-key", expressions({"key": "a b", "operator": "Exists"})),
    ("selector-value", expressions({"key": "app", "operator": "In", "values": ["x", "c d"]})),
    ("selector-no-match", expressions({"key": "app", "operator": "NotIn", "values": ["x"]})),
    ("selector-label", deployment("x", selector={"matchLabels": {"a b": "c d"}})),
    ("budget-negative", budget(minAvailable=-1)),
    ("budget-percent", budget(minAvailable="120%")),
    ("budget-text", budget(maxUnavailable="x")),
    ("budget-both", budget(minAvailable=1, maxUnavailable=1)),
    ("budget-selector", budget(selector={"matchExpressions": [{"key": "a", "operator": "Is"}], "matchLabels": {"a b": "c d"}})),
    ("budget-eviction", budget(unhealthyPodEvictionPolicy="x")),
    ("ingress-empty", ingress()),
    ("ingress-path-type", ingress(rules=[{"http": {"paths": [{"path": "/", "backend": BACKEND}]}}])),
    ("ingress-path-word", ingress(rules=[{"http": {"paths": [{"path": "/", "pathType": "X", "backend": BACKEND}]}}])),
    ("ingress-path", ingress(rules=[{"http": {"paths": [{"path": p, "pathType": "Exact", "backend": BACKEND}
                                                       for p in ("a", "/a//b", "/a/../b")]}}])),
    ("ingress-no-paths", ingress(rules=[{"http": {"paths": []}}])),
    ("ingress-host", ingress(rules=[{"host": h} for h in ("1.2.3.4", "A_b", "*.a.b", "*a")])),
    ("ingress-backend", ingress(defaultBackend={})),
    ("ingress-backend-two", ingress(defaultBackend={**BACKEND, "resource": {"kind": "K", "name": "n", "apiGroup": "g"}})),
    ("ingress-no-port", ingress(defaultBackend={"service": {"name": "s"}})),
    ("ingress-two-ports", ingress(defaultBackend={"service": {"name": "s", "port": {"number": 80, "name": "http"}}})),
    ("ingress-service", ingress(defaultBackend={"service": {"name": "S_", "port": {"number": 80000}}})),
    ("ingress-no-service", ingress(defaultBackend={"service": {"port": {"number": 80}}})),
    ("ingress-class", ingress(defaultBackend=BACKEND, ingressClassName="A b")),
    ("netpol-selector", netpol("x", podSelector={"matchLabels": {"a b": "c"}})),
    ("netpol-ports", netpol("x", ingress=[{"ports": [{"port": 0}, {"port": 70000}, {"protocol": "x"}, {"port": 80, "endPort": 70}]}])),
    ("netpol-peers", netpol("x", ingress=[{"from": [{}, {"ipBlock": {"cidr": "x"}},
                                                    {"ipBlock": {"cidr": "10.0.0.0/8"}, "podSelector": {}}]}])),
    ("netpol-types", netpol("x", policyTypes=["x"])),
]



def of_container(**more):
    return deployment("x", template=template(containers=[{**C, **more}]))


def of_env(*env):
    return of_container(env=list(env))


def probes(live, **ready):
    return of_container(livenessProbe=live, **({"readinessProbe": ready} if ready else {}))


def of_pod(**spec):
    return deployment("x", template=template(**spec))


def rolling(**values):
    return deployment("x", strategy={"rollingUpdate": values})


FIELD = {"fieldRef": {"fieldPath": "metadata.name"}}
BAD += [
    ("env-names", of_env({"name": "a=b"}, {"name": "", "value": "x"})),
    ("env-both", of_env({"name": "A", "value": "x", "valueFrom": FIELD})),
    ("env-no-source", of_env({"name": "A", "valueFrom": {}})),
    ("env-two-sources", of_env({"name": "A", "valueFrom": {**FIELD, "secretKeyRef": {"name": "s", "key": "k"}}})),
    ("env-field", of_env({"name": "A", "valueFrom": {"fieldRef": {"fieldPath": "metadata.nothing"}}},
                         {"name": "B", "valueFrom": {"fieldRef": {}}})),
    ("env-key", of_env({"name": "A", "valueFrom": {"secretKeyRef": {"name": "s"}}},
                       {"name": "B", "valueFrom": {"configMapKeyRef": {"key": "a b"}}})),
    ("port-names", of_container(ports=[{"containerPort": 80 + i, "name": n} for i, n in enumerate(("Http", "a" * 16, "9", "a--b", "-a"))])),
    ("port-name-twice", of_container(ports=[{"containerPort": 80, "name": "x"}, {"containerPort": 81, "name": "x"}])),
    ("port-protocol", of_container(ports=[{"containerPort": 80, "protocol": "ICMP"}])),
    ("port-host", of_container(ports=[{"containerPort": 80, "hostPort": 70000}])),
    ("probe-none", probes({})),
    ("probe-two", probes({**HTTP, "tcpSocket": {"port": 80}})),
    ("probe-negative", probes({**HTTP, "periodSeconds": -1, "timeoutSeconds": -1, "failureThreshold": -1})),
    ("probe-success", probes({**HTTP, "successThreshold": 2})),
    ("probe-ports", probes({"httpGet": {"port": 0}}, tcpSocket={"port": 70000})),
    ("probe-port-name", probes({"httpGet": {"port": "A b"}})),
    ("probe-scheme", probes({"httpGet": {"port": 80, "scheme": "ftp"}})),
    ("probe-command", probes({"exec": {}})),
    ("probe-grpc", probes({"grpc": {"port": 0}})),
    ("probe-grace", probes({**HTTP, "terminationGracePeriodSeconds": 0}, **HTTP, terminationGracePeriodSeconds=5)),
    ("lifecycle", of_container(lifecycle={"preStop": {}})),
    ("termination-message", of_container(terminationMessagePolicy="x")),
    ("init-name", of_pod(initContainers=[C])),
    ("init-probe", of_pod(initContainers=[{**C, "name": "i", "livenessProbe": HTTP}])),
    ("toleration-words", of_pod(tolerations=[{"key": "a", "operator": "Is"}, {"key": "a", "operator": "Exists", "effect": "Never"}])),
    ("toleration-value", of_pod(tolerations=[{"key": "a", "operator": "Exists", "value": "x"}, {"key": "a", "value": "x y"}])),
    ("toleration-key", of_pod(tolerations=[{"key": "a b", "operator": "Exists"}, {"operator": "Equal", "value": "x"}])),
    ("toleration-seconds", of_pod(tolerations=[{"key": "a", "operator": "Exists", "effect": "NoSchedule", "tolerationSeconds": 5}])),
    ("security-ids", of_container(securityContext={"runAsUser": -1, "runAsGroup": -5})),
    ("security-pod", of_pod(securityContext={"runAsUser": -1, "fsGroup": -1, "supplementalGroups": [-1]})),
    ("security-words", of_pod(securityContext={"fsGroupChangePolicy": "x"},
                              containers=[{**C, "securityContext": {"procMount": "X", "seccompProfile": {"type": "X"}}}])),
    ("security-seccomp", of_pod(securityContext={"seccompProfile": {}}, containers=[
        {**C, "securityContext": {"seccompProfile": {"type": "Localhost"}}}])),
    ("rolling-zero", rolling(maxSurge=0, maxUnavailable=0)),
    ("rolling-negative", rolling(maxSurge=-1)),
    ("rolling-percent", rolling(maxSurge="x%", maxUnavailable="150%")),
    ("progress-deadline", deployment("x", progressDeadlineSeconds=5, minReadySeconds=5)),
    ("pod-names", of_pod(serviceAccountName="A b", nodeName="A b", hostname="A b", subdomain="C d", priorityClassName="A b")),
    ("node-selector", of_pod(nodeSelector={"a b": "c d"})),
    ("dns-none", of_pod(dnsPolicy="None")),
]


def volume(**source):
    return volumes({"name": "v", **source})


def projected(*sources, **more):
    return volume(projected={"sources": list(sources), **more})


def items(*of):
    return {"secret": {"name": "a", "items": list(of)}}


REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
PREFERRED = "preferredDuringSchedulingIgnoredDuringExecution"
NAMED = {"fieldRef": {"fieldPath": "metadata.name"}}
# Area -> objects that are refused; one kubectl for each area.
MORE = {
    "volumes": [
        of_env({"name": "A", "valueFrom": {"resourceFieldRef": {"resource": "limits.foo"}}},
                                {"name": "B", "valueFrom": {"resourceFieldRef": {}}}),
        of_env({"name": "A", "valueFrom": {"resourceFieldRef": {"resource": "limits.cpu", "divisor": "3"}}},
                               {"name": "B", "valueFrom": {"resourceFieldRef": {"resource": "limits.memory", "divisor": "1m"}}}),
        of_env(*({"name": "A", "valueFrom": {"fieldRef": {"fieldPath": path}}} for path in (
            "metadata.annotations['a b']", "metadata.labels", "status.phase", "metadata.name['a']"))),
        projected({"secret": {"name": "a"}, "configMap": {"name": "b"}}, {"secret": {}}, {"configMap": {}}),
        projected(items(
            {"key": "k", "path": "/abs"}, {"key": "", "path": "a"}, {"key": "k", "path": "../x"}, {"key": "k", "path": "p", "mode": 99999},
            {"key": "k", "path": "..x"}), defaultMode=99999),
        projected(items({"key": "k", "path": "p"}), {"configMap": {"name": "a", "items": [
            {"key": "k", "path": "p"}]}}),
        projected({"serviceAccountToken": {}}, {"serviceAccountToken": {"path": "../t", "expirationSeconds": 1}},
                                   {"serviceAccountToken": {"path": "t", "expirationSeconds": 1 << 33}}),
        projected({"downwardAPI": {"items": [{"path": "x"}, {"path": "", **NAMED}]}}),
        volume(downwardAPI={"defaultMode": 99999, "items": [
            {"path": "x"}, {"path": "/a", **NAMED}, {"path": "y", "fieldRef": {"fieldPath": "spec.nodeName"}},
            {"path": "z", "mode": 9999, **NAMED, "resourceFieldRef": {"resource": "limits.cpu"}}]}),
        volume(downwardAPI={"items": [
            {"path": "x", "resourceFieldRef": {"resource": "limits.cpu"}},
            {"path": "y", "resourceFieldRef": {"containerName": "c", "resource": "x"}}]}),
        volume(hostPath={"path": "/x", "type": "Foo"}),
        volume(emptyDir={"sizeLimit": "-1"}),
        volume(persistentVolumeClaim={}),
        volume(nfs={}),
        volume(csi={}),
        volume(image={"reference": "a", "pullPolicy": "x"}),
        volume(ephemeral={}),
        volume(persistentVolumeClaim={"claimName": "a"}, emptyDir={}),
    ],
    "containers": [
        of_container(envFrom=[{}, {"configMapRef": {"name": "a"}, "secretRef": {"name": "b"}}]),
        of_container(envFrom=[{"configMapRef": {}}, {"prefix": "a=b", "secretRef": {"name": "A b"}}]),
        of_pod(containers=[{**C, "ports": [{"containerPort": 80, "hostPort": 80}]},
                           {**C, "name": "d", "ports": [{"containerPort": 81, "hostPort": 80}]}]),
        of_pod(hostNetwork=True, containers=[{**C, "ports": [{"containerPort": 80, "hostPort": 81}]}]),
        of_pod(initContainers=[{**C, "name": "i", "lifecycle": {"preStop": {"exec": {"command": ["x"]}}}}]),
        resources(limits={"hugepages-2Mi": "2Mi"}),
        resources(requests={"example.com/x": "1"}),
        resources(limits={"example.com/x": "500m"}),
        of_container(volumeDevices=[{"name": "v", "devicePath": "/dev/x"}]),
        mounts({"name": "v", "mountPath": "/a", "subPath": "a", "subPathExpr": "$(B)"}),
        mounts({"name": "v", "mountPath": "/a", "mountPropagation": "x", "recursiveReadOnly": "Enabled"}),
        mounts({"name": "v", "mountPath": "/a", "mountPropagation": "Bidirectional", "recursiveReadOnly": "x", "readOnly": True}),
        of_container(securityContext={"appArmorProfile": {"type": "x"}}),
        of_container(securityContext={"appArmorProfile": {"type": "Localhost"}}),
        probes({"httpGet": {"port": 80, "httpHeaders": [{"name": "a b", "value": "x"}]}}),
        probes({"httpGet": {}}, tcpSocket={}),
    ],
    "pods": [
        of_pod(hostAliases=[{"ip": "x", "hostnames": ["a b", "ok.example"]}, {"hostnames": ["a"]}]),
        of_pod(dnsPolicy="None", dnsConfig={}),
        of_pod(dnsConfig={"nameservers": ["x", "1.2.3.4", "1.1.1.1", "8.8.8.8"], "searches": ["a b", "ok.example.", "_x.y", "."],
                          "options": [{"value": "1"}]}),
        of_pod(topologySpreadConstraints=[{}]),
        of_pod(topologySpreadConstraints=[{"maxSkew": 1, "topologyKey": "z", "whenUnsatisfiable": "DoNotSchedule"}] * 2),
        of_pod(topologySpreadConstraints=[
            {"maxSkew": 1, "topologyKey": "z", "whenUnsatisfiable": "ScheduleAnyway", "minDomains": 1, "nodeAffinityPolicy": "x",
             "nodeTaintsPolicy": "y"},
            {"maxSkew": 1, "topologyKey": "z", "whenUnsatisfiable": "DoNotSchedule", "minDomains": 0,
             "labelSelector": {"matchLabels": {"a b": "c"}}}]),
        of_pod(affinity={"nodeAffinity": {REQUIRED: {}}}),
        of_pod(affinity={"nodeAffinity": {REQUIRED: {"nodeSelectorTerms": [{"matchExpressions": [
            {"key": "a", "operator": "x"}, {"key": "a b", "operator": "Exists"}, {"key": "a", "operator": "In"},
            {"key": "a", "operator": "Exists", "values": ["b"]}, {"key": "a", "operator": "Gt", "values": ["b", "c"]}]}]}}}),
        of_pod(affinity={"nodeAffinity": {REQUIRED: {"nodeSelectorTerms": [{"matchFields": [
            {"key": "spec.x", "operator": "In", "values": ["a"]}, {"key": "metadata.name", "operator": "Exists"},
            {"key": "metadata.name", "operator": "In", "values": ["a", "b"]}]}]}}}),
        of_pod(affinity={"nodeAffinity": {PREFERRED: [
            {"weight": 0, "preference": {"matchExpressions": [{"key": "a", "operator": "In"}]}}, {"weight": 101, "preference": {}}]}}),
        of_pod(affinity={"podAffinity": {REQUIRED: [{}, {"topologyKey": "z", "matchLabelKeys": ["a"]}]}}),
        of_pod(affinity={"podAffinity": {REQUIRED: [{
            "topologyKey": "a b", "namespaces": ["A b"], "labelSelector": {"matchLabels": {"a b": "c"}},
            "namespaceSelector": {"matchLabels": {"a b": "c"}}}]}}),
        of_pod(affinity={"podAntiAffinity": {PREFERRED: [{"weight": 0, "podAffinityTerm": {"topologyKey": ""}}]}}),
        of_pod(activeDeadlineSeconds=0),
        of_pod(preemptionPolicy="x", runtimeClassName="A b", os={"name": "x"}),
        of_pod(os={}, readinessGates=[{"conditionType": "a b"}]),
        of_pod(shareProcessNamespace=True, hostPID=True, securityContext={"supplementalGroupsPolicy": "x"}),
        deployment("x", template={"metadata": {"labels": {"app": "x", "a b": "c"}, "annotations": {"a b": "x"}}, "spec": pod_spec()}),
        obj("Deployment", "x", "apps/v1", spec={"selector": {"matchLabels": {"a": "b"}}}),
    ],
    "jobs-services": [
        job("x", completionMode="Indexed", completions=1, parallelism=200000),
        job("x", manualSelector=True),
        job("x", manualSelector=True, selector={"matchLabels": {"a": "b"}}),
        job("x", {"restartPolicy": "OnFailure"}, podFailurePolicy={"rules": [
            {"action": "FailJob", "onExitCodes": {"operator": "In", "values": [1]}}]}),
        job("x", podReplacementPolicy="x", backoffLimitPerIndex=1),
        job("x", maxFailedIndexes=1),
        obj("Job", "x", "batch/v1", spec={}),
        service("x", {"port": 80, "nodePort": 30080}),
        service("x", {"port": 80}, clusterIP="abc"),
        service("x", {"port": 80}, externalIPs=["abc", "127.0.0.1", "0.0.0.0"]),
        obj("Service", "x", "v1", spec={"type": "ExternalName", "externalName": "A b"}),
        obj("Service", "x", "v1", spec={"type": "ExternalName", "externalName": "a.b", "clusterIP": "10.0.0.7"}),
        service("x", {"port": 80}, type="NodePort", clusterIP="None"),
        service("x", {"port": 80, "targetPort": "A b", "appProtocol": "a b"}),
        service("x", {"port": 80, "targetPort": "a" * 16}, selector={"a b": "c"}),
        service("x", {"port": 80}, sessionAffinity="ClientIP", sessionAffinityConfig={"clientIP": {"timeoutSeconds": 0}}),
        service("x", {"port": 80}, internalTrafficPolicy="x"),
        service("x", {"port": 80}, type="NodePort", externalTrafficPolicy="x"),
        service("x", {"port": 80}, externalTrafficPolicy="Local"),
        service("x", {"port": 80}, healthCheckNodePort=30001),
        service("x", {"port": 80}, loadBalancerClass="a"),
        service("x", {"port": 80}, type="LoadBalancer", loadBalancerClass="A b"),
        service("x", {"port": 80}, loadBalancerSourceRanges=["1.2.3.0/24"]),
        service("x", {"port": 80}, type="LoadBalancer", loadBalancerSourceRanges=["x"]),
        service("x", {"port": 80}, ipFamilies=["x"]),
        service("x", {"port": 80}, ipFamilyPolicy="x"),
        service("x", {"port": 80}, trafficDistribution="x"),
        service("x", {"port": 80}, allocateLoadBalancerNodePorts=True),
    ],
    "network-storage-rights": [
        netpol("x", ingress=[{"from": [{"ipBlock": {"cidr": "10.0.0.0/8", "except": ["x", "11.0.0.0/8", "10.0.0.0/8", "10.1.0.0/16"]}}]}]),
        netpol("x", ingress=[{"from": [{"ipBlock": {"cidr": "2001:db8::/32", "except": ["2001:db9::/48", "2001:db8:1::/48", "10.0.0.0/8"]}}]}]),
        netpol("x", ingress=[{"ports": [{"port": "A b"}, {"port": "http"}, {"port": ""}]}]),
        netpol("x", ingress=[{"ports": [{"endPort": 80}, {"port": "http", "endPort": 80}, {"port": 80, "endPort": 70000}]}]),
        netpol("x", policyTypes=["Ingress", "Egress", "Ingress"]),
        ingress(defaultBackend=BACKEND, tls=[{"hosts": ["A b", "*.x", "*x", "1.2.3.4"], "secretName": "A b"}]),
        ingress(defaultBackend={"resource": {"kind": "", "name": "a"}}),
        ingress(defaultBackend={"resource": {"kind": "K/x", "name": "../a", "apiGroup": "A b"}}),
        ingress(defaultBackend={"service": {"name": "s", "port": {"name": "A b"}}}),
        ingress(rules=[{"http": {"paths": [
            {"path": "/a/..", "pathType": "Prefix", "backend": BACKEND}, {"path": "/a/.", "pathType": "Prefix", "backend": BACKEND},
            {"path": "x", "pathType": "ImplementationSpecific", "backend": BACKEND}]}}]),
        obj("Ingress", "x", "networking.k8s.io/v1", metadata={"annotations": {"kubernetes.io/ingress.class": "a"}},
            spec={"ingressClassName": "b", "defaultBackend": BACKEND}),
        claim("x", accessModes=["Some"]),
        claim("x", accessModes=["ReadWriteOncePod", "ReadWriteOnce"]),
        claim("x", resources={"requests": {"storage": "-1Gi"}}, volumeMode="x", storageClassName="A b"),
        claim("x", resources={"requests": {"storage": "0"}}, volumeAttributesClassName="A b"),
        claim("x", selector={"matchLabels": {"a b": "c"}, "matchExpressions": [{"key": "a", "operator": "In"}]}),
        binding("x", name="a/b"),
        obj("RoleBinding", "x", RBAC),
        binding("x", [{"kind": "ServiceAccount", "name": "A b", "namespace": "b", "apiGroup": "x"},
                      {"kind": "User", "name": "a", "apiGroup": "x"}, {"kind": "Group", "name": "", "apiGroup": "y"}, {}]),
    ],
}


def several(objects):
    """All in one request for kubectl, each with a name of its own."""
    return {"apiVersion": "v1", "kind": "List", "items": [
        {**o, "metadata": {**o["metadata"], "name": f"x{i}" if o["metadata"]["name"] == "x" else o["metadata"]["name"]}}
        for i, o in enumerate(objects)]}


# Name of a step -> why it differs.
DIFFERENT = {
    "strategy": "the field that is wrong is named (spec.strategy.type), and its value alone",
    "budget-both": "the value is shown as it was sent, not with Go's names",
}


@pytest.fixture(scope="module")
def both(cp, tmp_path_factory):
    with two_servers(cp, tmp_path_factory.mktemp("kinds"), NS) as servers:
        for server in servers:
            code, _, said = server.kubectl(f"create namespace {NS}")
            assert code == 0, said
        yield servers


# What only a network or a controller behind the API chooses.
ELSEWHERE = {"Service": ("clusterIP", "clusterIPs", "ipFamilies", "ipFamilyPolicy"), "Job": ("selector",)}


def shown(server, o):
    """Specification and status of what was made, as the server shows it."""
    code, _, said = server.kubectl(CREATE, o)
    assert code == 0, said
    seen = json.loads(server.said(f"get {o['kind']} {o['metadata']['name']} -o json"))
    for name in ELSEWHERE.get(o["kind"], ()):
        seen["spec"].pop(name, None)
    if o["kind"] == "Job":
        seen["spec"]["template"].pop("metadata", None)
    return {k: v for k, v in seen.items() if k not in ("metadata", "status")}


def test_both_fill_in_the_same(both):
    wrong = []
    def session(server):
        return [json.dumps(shown(server, o), indent=1, sort_keys=True) for o in GOOD]

    for o, there, here in zip(GOOD, *on_both(session, both)):
        if there != here:
            a, b = there.splitlines(), here.splitlines()
            wrong.append(f"--- {o['kind']} {o['metadata']['name']}: only there: {[x.strip() for x in a if x not in b]}; "
                         f"only here: {[x.strip() for x in b if x not in a]}")
    assert not wrong, "\n".join(wrong)


def test_both_refuse_the_same(both):
    run_session(*both, [(name, CREATE, o) for name, o in BAD] + [
        (area, CREATE + " --validate=false", several(objects)) for area, objects in MORE.items()], DIFFERENT)
