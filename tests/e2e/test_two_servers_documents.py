# SPDX-License-Identifier: MIT
"""What clients keep of the documents about the kinds, from kube-apiserver and from tec-operator --standalone: ETags,
If-None-Match, the hashes of the index of OpenAPI version 3, and what a new CustomResourceDefinition changes."""

import http.client
import json

import pytest

from controlplane import wait_for
from test_two_servers import on_both, two_servers
from test_two_servers_bodies import Raw
from test_two_servers_definitions import CRDS, GROUP, definition

NS = "two-servers-documents"
V2, INDEX, CORE, OURS = "/openapi/v2", "/openapi/v3", "/openapi/v3/api/v1", f"/openapi/v3/apis/{GROUP}/v1"
AGGREGATED = {"Accept": "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"}
PROTOBUF = {"Accept": "application/com.github.proto-openapi.spec.v2.v1.0+protobuf"}


def get(raw, path, method="GET", **headers):
    """(status, headers, body)"""
    conn = http.client.HTTPSConnection(raw.at.hostname, raw.at.port, timeout=60, context=raw.context)
    try:
        conn.request(method, path, headers={**raw.headers, **{k.replace("_", "-"): v for k, v in headers.items()}})
        answer = conn.getresponse()
        return answer.status, answer.headers, answer.read()
    finally:
        conn.close()


def kept(raw, path, **headers):
    """What a client sees that has the document already."""
    status, head, body = get(raw, path, **headers)
    etag = head["ETag"]
    assert etag and body, f"{path}: {status} {head}"
    said = [path, status, etag[0] + etag[-1]]
    openapi = path.startswith("/openapi") # of discovery kube-apiserver knows the plain form alone, and no HEAD
    forms = (f"W/{etag}", f'"other", {etag}', "*", etag.strip('"'))
    for asked in (etag, '"other"', *(forms if openapi else ())):
        status, head, body = get(raw, path, If_None_Match=asked, **headers)
        said.append((asked.replace(etag, "ETAG").replace(etag.strip('"'), "BARE"), status, len(body) > 0, head["ETag"] == etag))
    if openapi:
        status, head, body = get(raw, path, "HEAD", **headers)
        said.append(("HEAD", status, len(body), head["ETag"] == etag))
    return said


def hashed(raw):
    """The index, and a document by its hash."""
    index = json.loads(get(raw, INDEX)[2])["paths"]
    url = index[f"apis/{GROUP}/v1"]["serverRelativeURL"]
    path, value = url.split("?hash=")
    status, head, body = get(raw, url)
    said = [path, status, head["ETag"] == f'"{value}"', head["Cache-Control"], bool(head["Expires"]), body == get(raw, path)[2]]
    status, head, body = get(raw, f"{path}?hash=0")
    said.append((status, head["Location"] == url, head["ETag"] == f'"{value}"'))
    status, head, body = get(raw, url, If_None_Match=f'"{value}"')
    return said + [status, len(body), get(raw, f"{path}?hash=")[0], get(raw, f"{path}?other=1")[0]]


def session(raw):
    assert raw.ask("POST", CRDS, definition("things", "Thing"))[0] == 201
    wait_for(lambda: get(raw, OURS)[0] == 200, 60, "the document")
    # kube-apiserver makes version 2 and the index a moment later.
    wait_for(lambda: GROUP.encode() in get(raw, V2)[2], 60, "the definition")
    wait_for(lambda: f"apis/{GROUP}/v1" in get(raw, INDEX)[2].decode(), 60, "the index")
    said = [kept(raw, V2), kept(raw, V2, **PROTOBUF), kept(raw, CORE), kept(raw, OURS),
            kept(raw, "/apis", **AGGREGATED), kept(raw, "/api", **AGGREGATED), hashed(raw)]
    said.append([get(raw, "/openapi/v3/apis/no.example.org/v1?hash=0")[0], get(raw, "/apis")[1]["ETag"]])
    before, index = [get(raw, path)[1]["ETag"] for path in (V2, OURS, CORE)], get(raw, INDEX)[2]
    spec = definition("things", "Thing", {"more": "x"})["spec"]
    assert raw.ask("PATCH", f"{CRDS}/things.{GROUP}", {"spec": spec}, "application/merge-patch+json")[0] == 200
    for path in (V2, OURS):
        wait_for(lambda: b'"more"' in get(raw, path)[2], 60, f"the change in {path}")
    wait_for(lambda: get(raw, INDEX)[2] != index, 60, "the index of the change") # which has no ETag there
    after = [get(raw, path)[1]["ETag"] for path in (V2, OURS, CORE)]
    return said + [[a != b for a, b in zip(before, after)]]


@pytest.fixture(scope="module")
def both(cp, tmp_path_factory):
    base = tmp_path_factory.mktemp("documents")
    with two_servers(cp, base, NS) as servers:
        raws = [Raw(server, base / f"{i}.pem") for i, server in enumerate(servers)]
        try:
            yield raws
        finally:
            raws[0].ask("DELETE", f"{CRDS}/things.{GROUP}")


def test_clients_keep_the_same(both):
    theirs, ours = on_both(session, both)
    for there, here in zip(theirs, ours):
        assert here == there
