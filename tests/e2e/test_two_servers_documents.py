# SPDX-License-Identifier: MIT
"""What clients keep of the documents about the kinds, from kube-apiserver and from tec-operator --standalone: ETags,
If-None-Match, and the hashes of the index of OpenAPI version 3."""

import http.client
import json

import pytest

from test_two_servers import V1, on_both, two_servers
from test_two_servers_bodies import Raw

NS = "two-servers-documents"
V2, INDEX, CORE, OURS = "/openapi/v2", "/openapi/v3", "/openapi/v3/api/v1", f"/openapi/v3/apis/{V1}"
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
    url = index[f"apis/{V1}"]["serverRelativeURL"]
    path, value = url.split("?hash=")
    status, head, body = get(raw, url)
    said = [path, status, head["ETag"] == f'"{value}"', head["Cache-Control"], bool(head["Expires"]), body == get(raw, path)[2]]
    status, head, body = get(raw, f"{path}?hash=0")
    said.append((status, head["Location"] == url, head["ETag"] == f'"{value}"'))
    status, head, body = get(raw, url, If_None_Match=f'"{value}"')
    return said + [status, len(body), get(raw, f"{path}?hash=")[0], get(raw, f"{path}?other=1")[0]]


def session(raw):
    said = [kept(raw, V2), kept(raw, V2, **PROTOBUF), kept(raw, CORE), kept(raw, OURS),
            kept(raw, "/apis", **AGGREGATED), kept(raw, "/api", **AGGREGATED), hashed(raw)]
    said.append([get(raw, "/openapi/v3/apis/no.example.org/v1?hash=0")[0], get(raw, "/apis")[1]["ETag"]])
    return said


@pytest.fixture(scope="module")
def both(cp, tmp_path_factory):
    base = tmp_path_factory.mktemp("documents")
    with two_servers(cp, base, NS) as servers:
        yield [Raw(server, base / f"{i}.pem") for i, server in enumerate(servers)]


def test_clients_keep_the_same(both):
    theirs, ours = on_both(session, both)
    for there, here in zip(theirs, ours):
        assert here == there
