# SPDX-License-Identifier: MIT
"""Every `kubectl create` of a kind that tec-operator --standalone has, against kube-apiserver and against it. A current
kubectl sends most of these as protobuf, without another try as JSON."""

import pytest

from test_two_servers import on_both, shown, two_servers

NS = "two-servers-create"

# (what is made, by which command; None: it is deleted again, [fields to look at])
CREATES = [
    ("rolebinding", "create rolebinding rb --clusterrole=view --user=u --group=g --serviceaccount=x:y", "rolebinding/rb",
     "{.roleRef}{.subjects}"),
    ("serviceaccount", "create serviceaccount a", "serviceaccount/a", "{.metadata.name}"),
    ("secret-generic", "create secret generic s --from-literal=a=b --type=example.org/t", "secret/s", "{.data}{.type}"),
    ("secret-registry", "create secret docker-registry sr --docker-username=u --docker-password=p --docker-server=a.example",
     "secret/sr", "{.data}{.type}"),
    ("configmap", "create configmap c --from-literal=a=b", "configmap/c", "{.data}"),
    ("raw", f"create --raw /api/v1/namespaces/{NS}/configmaps -f -", "configmap/raw", "{.data}"),
    ("raw-replace", f"replace --raw /api/v1/namespaces/{NS}/configmaps/raw -f -", "configmap/raw", "{.data}"),
    ("again", "create configmap c --from-literal=a=b", None),
    ("bad", "create secret generic bad --from-literal=a/b=c", None),
    ("dry", "create configmap dry --from-literal=a=b --dry-run=server -o name", None),
    ("labelled", "label configmap/c secret/s rolebinding/rb x=y", None),
    ("deleted", "delete configmap/c secret/s rolebinding/rb --wait=false", None),
]

# What they are given that read standard input; its length is not known when it is sent, so it goes out in chunks.
RAW = '{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"raw"},"data":{"a":"b"}}'


@pytest.fixture(scope="module")
def both(cp, tmp_path_factory):
    with two_servers(cp, tmp_path_factory.mktemp("create"), NS) as servers:
        yield servers


def test_everything_that_kubectl_creates(both):
    def session(server):
        said = []
        for _, command, *look in CREATES:
            said.append([server.kubectl(command, RAW if command.endswith(" -f -") else None)])
            if look[0]:
                said[-1].append(server.kubectl(f"get {look[0]} -o jsonpath={look[1]}"))
        return said

    wrong = [f"--- {name}: kubectl {command}\nkube-apiserver:\n" + "".join(map(shown, there)) + "\nhere:\n"
             + "".join(map(shown, here))
             for (name, command, *_), there, here in zip(CREATES, *on_both(session, both)) if there != here]
    assert not wrong, f"{len(wrong)} of {len(CREATES)}:\n" + "\n".join(wrong)
