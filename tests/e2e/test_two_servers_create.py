# SPDX-License-Identifier: MIT
"""Every `kubectl create` of a kind that tec-operator --standalone has, and what makes or changes objects beside it, against
kube-apiserver and against it. A current kubectl sends most of these as protobuf, without another try as JSON."""

# pylint: disable=unused-import
from test_two_servers import both, on_both, shown  # noqa: F401, a fixture

NS = "creates"  # the last --namespace counts

# (what is made, by which command; None: it is deleted again, [fields to look at])
CREATES = [
    ("namespace", f"create namespace {NS}", None),
    ("deployment", "create deployment d --image=quay.io/a/b:1 --replicas=2 --port=80 -- sh -c true", "deployment/d",
     "{.spec.replicas}{.spec.selector}{.spec.template.spec.containers[0].image}{.spec.template.spec.containers[0].command}"
     "{.spec.template.spec.containers[0].ports[0].containerPort}{.metadata.labels}"),
    ("scale", "scale deployment/d --replicas=3", "deployment/d", "{.spec.replicas}"),
    ("scale-current", "scale deployment/d --current-replicas=7 --replicas=5", "deployment/d", "{.spec.replicas}"),
    ("scale-replicaset", "scale rs/none --replicas=1", None),
    ("set-image", "set image deployment/d b=quay.io/a/b:2", "deployment/d", "{.spec.template.spec.containers[0].image}"),
    ("set-env", "set env deployment/d A=1 B=2", "deployment/d", "{.spec.template.spec.containers[0].env}"),
    ("set-resources", "set resources deployment/d --limits=cpu=200m,memory=512Mi", "deployment/d",
     "{.spec.template.spec.containers[0].resources.limits}"),
    ("set-account", "set serviceaccount deployment/d a", "deployment/d", "{.spec.template.spec.serviceAccountName}"),
    ("expose", "expose deployment d --port=80 --target-port=8080 --name=exposed", "service/exposed",
     "{.spec.ports[0].port}{.spec.ports[0].targetPort}{.spec.selector}"),
    ("pause", "rollout pause deployment/d", "deployment/d", "{.spec.paused}"),
    ("resume", "rollout resume deployment/d", "deployment/d", "{.spec.paused}"),
    ("job", "create job j --image=quay.io/a/b:1 -- sh -c true", "job/j",
     "{.spec.template.spec.containers[0].image}{.spec.template.spec.containers[0].command}{.spec.template.spec.restartPolicy}"),
    ("run", "run p --image=quay.io/a/b:1 --labels=a=b --env=A=1 --restart=Never --command -- sh -c true", "pod/p",
     "{.spec.containers[0].image}{.spec.containers[0].command}{.spec.containers[0].env}{.spec.restartPolicy}{.metadata.labels}"),
    ("service-clusterip", "create service clusterip sc --tcp=80:8080 --tcp=443:https", "service/sc",
     "{.spec.type}{.spec.ports[*].name}{.spec.ports[*].targetPort}{.spec.selector}{.metadata.labels}"),
    ("service-headless", "create service clusterip sh --clusterip=None", "service/sh", "{.spec.clusterIP}{.spec.type}"),
    ("service-nodeport", "create service nodeport sn --tcp=80", "service/sn", "{.spec.type}{.spec.ports[0].port}"),
    ("service-loadbalancer", "create service loadbalancer sl --tcp=80:80", "service/sl", "{.spec.type}{.spec.ports[0].port}"),
    ("service-externalname", "create service externalname se --external-name=a.example.org", "service/se",
     "{.spec.type}{.spec.externalName}"),
    ("ingress", "create ingress i --class=nginx --rule=a.example.org/b*=svc:80,tls=s --annotation=k=v", "ingress/i",
     "{.spec}{.metadata.annotations}"),
    ("pdb", "create poddisruptionbudget b --selector=a=b --min-available=50%", "pdb/b", "{.spec}"),
    ("pdb-max", "create pdb b2 --selector=a=b --max-unavailable=1", "pdb/b2", "{.spec}"),
    ("role", "create role r --verb=get,list --resource=pods,deployments.apps --resource-name=x", "role/r", "{.rules}"),
    ("rolebinding", "create rolebinding rb --role=r --user=u --group=g --serviceaccount=x:y", "rolebinding/rb",
     "{.roleRef}{.subjects}"),
    ("serviceaccount", "create serviceaccount a", "serviceaccount/a", "{.metadata.name}"),
    ("secret-generic", "create secret generic s --from-literal=a=b --type=example.org/t", "secret/s", "{.data}{.type}"),
    ("secret-registry", "create secret docker-registry sr --docker-username=u --docker-password=p --docker-server=a.example",
     "secret/sr", "{.data}{.type}"),
    ("configmap", "create configmap c --from-literal=a=b", "configmap/c", "{.data}"),
    ("raw", f"create --raw /api/v1/namespaces/{NS}/configmaps -f -", "configmap/raw", "{.data}"),
    ("raw-replace", f"replace --raw /api/v1/namespaces/{NS}/configmaps/raw -f -", "configmap/raw", "{.data}"),
    ("again", "create deployment d --image=quay.io/a/b:1", None),
    ("service-bad", "create service externalname bad --external-name=!", None),
    ("dry", "create deployment dry --image=a --dry-run=server -o name", None),
    ("autoscale", "autoscale deployment d --min=1 --max=2", None),
    ("labelled", "label deployment/d service/sc job/j ingress/i pdb/b role/r x=y", None),
    ("deleted", "delete deployment/d service/sc job/j ingress/i pdb/b role/r pod/p --wait=false", None),
]

# What they are given that read standard input; its length is not known when it is sent, so it goes out in chunks.
RAW = '{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"raw"},"data":{"a":"b"}}'

DIFFERENT = {
    "autoscale": "HorizontalPodAutoscalers are not among the kinds that are stored",
}


def test_everything_that_kubectl_creates(both):  # noqa: F811
    def session(server):
        said = []
        for _, command, *look in CREATES:
            said.append([server.kubectl(f"--namespace={NS} {command}", RAW if command.endswith(" -f -") else None)])
            if look[0]:
                said[-1].append(server.kubectl(f"--namespace={NS} get {look[0]} -o jsonpath={look[1]}", None))
        return said

    theirs, _ = both
    wrong = []
    for (name, command, *_), there, here in zip(CREATES, *on_both(session, both)):
        if (there == here) == (name in DIFFERENT):
            wrong.append(f"--- {name}: kubectl {command}\nkube-apiserver:\n" + "".join(map(shown, there)) + "\nhere:\n"
                         + "".join(map(shown, here)))
    theirs.kubectl(f"delete namespace {NS} --wait=false", None)
    assert not wrong, f"{len(wrong)} of {len(CREATES)}:\n" + "\n".join(wrong)
