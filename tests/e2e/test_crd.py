# SPDX-License-Identifier: MIT
"""crd/ on a real API server: what is accepted, what is refused and with which words, and what
kubectl shows."""

import os
import re

import pytest

from teckinds import GROUP, ID, IMAGE, KINDS, OTHER_ID, condition, made, obj, url

TOP = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
IMMUTABLE = "Value is immutable"
AT_CREATION = "Value must be set at creation"
ONCE_SET = "Value is required once set"
NO_MATCH = "should match"
UNSUPPORTED = "Unsupported value"
VOLUMES = {"delivery": "Volumes"}


def addr(**kw):
    return {"publicTrusteeAddr": "trustee.example.org", **kw}


def trustee(**kw):
    return {"trustee": kw}


def reg(**kw):
    return {"registration": kw}


def tls(*hashes):
    return {"tls": {"caSHA256": list(hashes)}}


def att(**kw):
    return {"attestation": kw}


def server(*addresses, **kw):
    return {"trusteeServers": [{"address": a, **kw} for a in addresses]}


ADDRESSES = ("publicTrusteeAddr", "publicRegisterAddr", "publicAttestationKeyRegisterAddr")

# (kind, spec, None = accepted or a part of the refusal)
CREATE = [
    ("tec", {}, None),
    *[(kind, None, "spec: Required value") for kind in KINDS],
    ("tec", {"noSuchField": 1}, "unknown field"),
    # Addresses: host[:port], no scheme.
    *[("tec", {field: good}, None)
      for field in ADDRESSES
      for good in ("trustee", "trustee.example.org:8080", "10.0.0.1:1", "10.0.0.1:65535",
                   "[2001:db8::1]", "[::ffff:10.0.0.1]:8080", "host.example.org.", "a_b-c.d")],
    *[("tec", {field: bad}, NO_MATCH)
      for field in ADDRESSES
      for bad in ("", "https://trustee", "http://trustee:8080", "trustee:", "trustee:0",
                  "trustee:65536", "trustee:99999", "trustee:080", "trustee:http", "trustee/path",
                  "2001:db8::1", "[2001:db8::1", "user@trustee", "trustee host", "-trustee",
                  "trustee\n", "trustée")],
    *[row for field in ADDRESSES
      for row in (("tec", {field: "a" * 260}, None), ("tec", {field: "a" * 261}, "Too long"))],
    # Ports.
    *[("tec", {field: p}, None) for p in (1, 65535)
      for field in ("trusteeKbsPort", "registerServerPort", "attestationKeyRegisterPort")],
    *[("tec", {field: p}, "Invalid value") for p in (0, -1, 65536, "8080")
      for field in ("trusteeKbsPort", "registerServerPort", "attestationKeyRegisterPort")],
    # Names of Secrets.
    *[("tec", {field: "my.tls-1"}, None)
      for field in ("trusteeSecret", "registerServerSecret", "attestationKeyRegisterSecret")],
    *[("tec", {field: bad}, "Invalid value") for bad in ("", "Upper", "a/b", "-a", "a" * 254)
      for field in ("trusteeSecret", "registerServerSecret", "attestationKeyRegisterSecret")],
    *[("tec", spec(bad), "Invalid value" if len(bad) < 254 else "Too long")
      for bad in ("", "Upper", "a/b", "a" * 254)
      for spec in (lambda name: server("a", caSecret=name),
                   lambda name: server("a", adminSecret=name),
                   lambda name: reg(tokenSecret=name),
                   lambda name: reg(endorsementCAConfigMap=name))],
    # Further servers.
    ("tec", server("a:1", "b", caSecret="ca", adminSecret="admin"), None),
    ("tec", server("https://a"), NO_MATCH),
    ("tec", server("a" * 261), "Too long"),
    ("tec", server("a", "b", "a"), "Duplicate value"),
    ("tec", server(*[f"h{i}" for i in range(8)]), None),
    ("tec", server(*[f"h{i}" for i in range(9)]), "Too many"),
    ("tec", {"trusteeServers": [{"caSecret": "ca"}]}, "address: Required value"),
    # trustee.
    ("tec", trustee(), None),
    ("tec", trustee(deploy="External", delivery="AdminAPI", keyIsolation="PerMachine",
                    plaintext="Refuse", guard="Disabled"), None),
    ("tec", trustee(deploy="Managed", keyIsolation="Shared", plaintext="Allow", guard="Enabled"), None),
    ("tec", trustee(**VOLUMES, keyIsolation="Shared"), None),
    ("tec", trustee(**VOLUMES, keyIsolation="Shared", deploy="Managed"), None),
    ("tec", trustee(**VOLUMES), "Volumes requires Shared"),
    ("tec", trustee(**VOLUMES, keyIsolation="PerMachine"), "Volumes requires Shared"),
    ("tec", trustee(**VOLUMES, keyIsolation="Shared", deploy="External"),
     "Volumes requires Managed"),
    *[("tec", trustee(**{f: "Other"}), UNSUPPORTED)
      for f in ("deploy", "delivery", "keyIsolation", "plaintext", "guard")],
    # registration.
    ("tec", reg(), None),
    ("tec", reg(mode="Open", approval="Manual", endorsement="Optional"), None),
    ("tec", reg(mode="Manual", approval="Automatic", endorsement="None"), None),
    ("tec", {**reg(machine="AtKey"), "publicAttestationKeyRegisterAddr": "a:1"}, None),
    ("tec", reg(machine="AtRequest"), None),
    ("tec", reg(machine="AtKey"), "AtKey requires publicAttestationKeyRegisterAddr"),
    ("tec", reg(mode="Token", tokenSecret="t"), None),
    ("tec", reg(mode="Token"), "Token requires tokenSecret"),
    ("tec", reg(endorsement="Required", endorsementCAConfigMap="roots"), None),
    ("tec", reg(endorsement="Required"), "Required requires endorsementCAConfigMap"),
    *[("tec", reg(**{f: "Other"}), UNSUPPORTED) for f in ("mode", "approval", "endorsement", "machine")],
    *[("tec", reg(pendingTTL=t), None) for t in ("24h", "30m", "0", "0s", "1h30m", "90s")],
    *[("tec", reg(pendingTTL=t), "Invalid value")
      for t in ("", "24", "h", "1d", "-1h", "1m1h", "1.5h", " 1h", "01h", "1000000h", 0)],
    *[("tec", reg(**{f: 1}), None)
      for f in ("pendingLimit", "machineLimit", "waitingKeysPerMachine")],
    *[("tec", reg(**{f: bad}), "Invalid value") for bad in (0, -1, 1000001, 2**31)
      for f in ("pendingLimit", "machineLimit", "waitingKeysPerMachine")],
    # attestation.
    ("tec", att(), None),
    ("tec", att(pcr7="Ignore"), None),
    ("tec", att(platformConfigMaps=[]), None),
    ("tec", att(platformConfigMaps=["b", "a.box-1"]), None),
    ("tec", att(platformConfigMaps=["a"], pcr7="Require"), None),
    ("tec", att(pcr7="Require"), "Require needs platformConfigMaps"),
    ("tec", att(pcr7="Require", platformConfigMaps=[]), "Require needs platformConfigMaps"),
    ("tec", att(pcr7="Other"), UNSUPPORTED),
    ("tec", att(platformConfigMaps="a"), "Invalid value"),
    ("tec", att(platformConfigMaps=["a", "b", "a"]), "Duplicate value"),
    ("tec", att(platformConfigMaps=[f"p{i}" for i in range(8)]), None),
    ("tec", att(platformConfigMaps=[f"p{i}" for i in range(9)]), "Too many"),
    *[("tec", att(platformConfigMaps=[bad]), "Invalid value" if len(bad) < 254 else "Too long")
      for bad in ("", "Upper", "a/b", "a" * 254)],
    # tls.
    ("tec", tls("0123456789abcdef" * 4), None),
    ("tec", tls(*[f"{i:064x}" for i in range(8)]), None),
    ("tec", tls(*[f"{i:064x}" for i in range(9)]), "Too many"),
    ("tec", tls("a" * 64, "a" * 64), "Duplicate value"),
    ("tec", tls("a" * 65), "Too long"),
    *[("tec", tls(bad), "Invalid value") for bad in ("", "a" * 63, "A" * 64, "g" * 64, "a" * 63 + " ", 7)],
    ("tec", tls(), "Invalid value"),
    ("tec", {"tls": {"caSHA256": "a" * 64}}, "Invalid value"),
    ("tec", {"tls": {}}, None),
    # Machine.
    ("mach", {"id": ID}, None),
    ("mach", {}, "id: Required value"),
    *[("mach", {"id": bad}, "Invalid value")
      for bad in ("", ID.upper(), ID[:-1], ID + "0", ID.replace("-", ""), "{" + ID + "}",
                  ID + "\n", "g" + ID[1:], 7)],
    # AttestationKey: any string is a key here, as in the Rust operator's tests.
    ("ak", {"publicKey": "k"}, None),
    ("ak", {"publicKey": "k", "uuid": ID}, None),
    ("ak", {"publicKey": "k" * 16384}, None),
    ("ak", {"publicKey": "k" * 16385}, "Too long"),
    ("ak", {"uuid": ID}, "publicKey: Required value"),
    ("ak", {"publicKey": "k", "uuid": "u" * 254}, "Too long"),
    # ApprovedImage.
    ("ai", {"image": IMAGE}, None),
    ("ai", {"image": "quay.io/x/fedora-coreos:42@sha256:abc"}, None),
    ("ai", {}, "image: Required value"),
    ("ai", {"image": IMAGE, "secureBoot": "Any"}, None),
    ("ai", {"image": IMAGE, "secureBoot": "Off"}, "Unsupported value"),
    ("ai", {"image": IMAGE, "bootPath": "AllowFirmwareUpdates"}, None),
    ("ai", {"image": IMAGE, "bootPath": "Anything"}, "Unsupported value"),
    *[("ai", {"image": bad}, "Image must be provided with a digest")
      for bad in ("", "quay.io/x/y", "quay.io/x/y:42", "quay.io/x/y@sha512:00", "x@sha256")],
    ("ai", {"image": "a" * 1000 + IMAGE}, "Too long"),
]

# (kind, stored spec, spec to replace it, None = accepted or a part of the refusal)
UPDATE = [
    # Addresses and ports never change. But for publicTrusteeAddr they are set at creation or never,
    # and none may be taken away: else it could be set again in a second step.
    *[row for field, old, new in (
        ("publicAttestationKeyRegisterAddr", "a:1", "a:2"), ("trusteeKbsPort", 1, 2),
        ("registerServerPort", 1, 2), ("attestationKeyRegisterPort", 1, 2))
      for row in (("tec", {field: old}, {field: new}, IMMUTABLE),
                  ("tec", {field: old}, {}, AT_CREATION),
                  ("tec", {}, {field: new}, AT_CREATION),
                  ("tec", {field: old}, {field: old, "trusteeSecret": "s"}, None))],
    *[("tec", {"publicRegisterAddr": "a:1"}, new, None) for new in ({"publicRegisterAddr": "a:2"}, {})],
    ("tec", {}, addr(), None),
    ("tec", addr(), {}, ONCE_SET),
    ("tec", addr(), {"publicTrusteeAddr": "other"}, IMMUTABLE),
    ("tec", addr(), addr(trusteeSecret="s"), None),
    # Names of Secrets and everything new may change, come and go.
    *[row for field in ("trusteeSecret", "registerServerSecret", "attestationKeyRegisterSecret")
      for row in (("tec", {field: "a"}, {field: "b"}, None), ("tec", {field: "a"}, {}, None),
                  ("tec", {}, {field: "a"}, None))],
    ("tec", server("a", "b"), server("b", "a", "c"), None),
    ("tec", server("a"), {}, None),
    ("tec", trustee(deploy="Managed"), trustee(deploy="External"), None),
    ("tec", trustee(**VOLUMES, keyIsolation="Shared"), trustee(**VOLUMES),
     "Volumes requires Shared"),
    ("tec", trustee(keyIsolation="Shared"), trustee(**VOLUMES, keyIsolation="Shared"), None),
    ("tec", reg(mode="Open"), reg(mode="Manual", pendingTTL="0"), None),
    ("tec", reg(mode="Token", tokenSecret="t"), reg(mode="Token"), "Token requires tokenSecret"),
    ("tec", {}, att(platformConfigMaps=["a"]), None),
    ("tec", att(platformConfigMaps=["a"]), att(platformConfigMaps=["b", "a"], pcr7="Require"), None),
    ("tec", att(platformConfigMaps=["a"], pcr7="Require"), {}, None),
    ("tec", att(platformConfigMaps=["a"], pcr7="Require"), att(pcr7="Require"),
     "Require needs platformConfigMaps"),
    ("mach", {"id": ID}, {"id": OTHER_ID}, IMMUTABLE),
    ("mach", {"id": ID}, {}, "id: Required value"),
    ("ak", {"publicKey": "k"}, {"publicKey": "l"}, IMMUTABLE),
    ("ak", {"publicKey": "k"}, {"publicKey": "k", "uuid": ID}, None),
    ("ak", {"publicKey": "k", "uuid": ID}, {"publicKey": "k", "uuid": OTHER_ID}, IMMUTABLE),
    ("ak", {"publicKey": "k", "uuid": ID}, {"publicKey": "k"}, ONCE_SET),
    ("ai", {"image": IMAGE}, {"image": IMAGE + "1"}, IMMUTABLE),
    ("ai", {"image": IMAGE}, {"image": IMAGE, "secureBoot": "Any"}, None),
]


def label(value):
    return re.sub(r"[^A-Za-z0-9_.:/@=-]+", "", str(value))[:70]


def check(answer, refusal, good):
    status, body = answer
    if refusal is None:
        assert status == good, body
    else:
        assert status in (400, 422), body
        assert refusal in body["message"]


@pytest.fixture(scope="module", name="kube")
def _kube(cp):
    """The control plane with our CRDs."""
    if cp.api("GET", f"/apis/{GROUP}/v1alpha1")[0] != 200:
        cp.apply_crds(os.path.join(TOP, "crd"))
    return cp


@pytest.fixture(scope="module", name="ns")
def _ns(kube):
    name = kube.create_namespace("crd")
    yield name
    kube.api("DELETE", f"/api/v1/namespaces/{name}")


@pytest.mark.parametrize("kind,spec,refusal", CREATE,
                         ids=[f"{k}-{label(s)}" for k, s, _ in CREATE])
def test_create(kube, ns, kind, spec, refusal):
    query = "?dryRun=All&fieldValidation=Strict"
    answer = kube.api("POST", url(kind, ns, query=query), obj(kind, spec))
    check(answer, refusal, 201)
    if refusal is None:  # no default is stored: the object reads back as it was written
        assert answer[1]["spec"] == spec


@pytest.mark.parametrize("kind,old,new,refusal", UPDATE,
                         ids=[f"{k}-{label(o)}-{label(n)}" for k, o, n, _ in UPDATE])
def test_update(kube, ns, kind, old, new, refusal):
    stored = made(kube, kind, ns, old)
    stored["spec"] = new
    answer = kube.api("PUT", url(kind, ns, stored["metadata"]["name"],
                                 "?dryRun=All&fieldValidation=Strict"), stored)
    check(answer, refusal, 200)
    if refusal is None:
        assert answer[1]["spec"] == new


def test_a_merge_patch_takes_no_immutable_value_away(kube, ns):
    """What an administrator would try: null, then another value."""
    ak = made(kube, "ak", ns, {"publicKey": "k", "uuid": ID})
    tec = made(kube, "tec", ns, addr(trusteeKbsPort=1))
    for kind, stored, field, words in (("ak", ak, "uuid", ONCE_SET),
                                       ("tec", tec, "trusteeKbsPort", AT_CREATION),
                                       ("tec", tec, "publicTrusteeAddr", ONCE_SET)):
        check(kube.api("PATCH", url(kind, ns, stored["metadata"]["name"]),
                       {"spec": {field: None}}, "merge"), words, 200)
    check(kube.api("PATCH", url("tec", ns, tec["metadata"]["name"]), {"spec": None}, "merge"),
          "spec: Required value", 200)


def test_an_applied_list_of_servers_keeps_its_order(kube, ns):
    for order in (["a", "b", "c"], ["c", "a", "b"], ["b", "d", "a"]):
        status, body = kube.api(
            "PATCH", url("tec", ns, "ordered", "?fieldManager=t&force=true"),
            obj("tec", server(*order), "ordered"), "apply")
        assert status in (200, 201), body
        assert [s["address"] for s in body["spec"]["trusteeServers"]] == order


def test_status_is_a_subresource_and_takes_conditions(kube, ns):
    mach = made(kube, "mach", ns, {"id": ID})
    name = mach["metadata"]["name"]
    generation = mach["metadata"]["generation"]
    there = url("mach", ns, name, "/status?fieldManager=t&force=true")
    body = {k: mach[k] for k in ("apiVersion", "kind")} | {"metadata": {"name": name}}

    def apply(*conditions):
        return kube.api("PATCH", there, body | {"status": {"conditions": list(conditions)}},
                        "apply")

    status, answer = apply(condition(), condition("KeyReady", "False", "KeyLost"))
    assert status == 200, answer
    assert answer["metadata"]["generation"] == generation
    # Through the main resource the status does not change.
    status, answer = kube.api("PATCH", url("mach", ns, name), {"status": {"conditions": []}},
                              "merge")
    assert status == 200 and len(answer["status"]["conditions"]) == 2
    for bad, words in ((condition(status="Yes"), UNSUPPORTED), (condition(reason=""), "reason"),
                       (condition(reason="two words"), NO_MATCH),
                       (condition(message="m" * 32769), "Too long"),
                       (condition(observedGeneration=-1), "observedGeneration"),
                       (condition(lastTransitionTime="yesterday"), "lastTransitionTime")):
        status, answer = apply(bad)
        assert status in (400, 422) and words in answer["message"], answer
    status, answer = kube.api("PATCH", url("mach", ns, name, "/status"), {"status": {
        "conditions": [condition(), condition()]}}, "merge")
    assert status == 422 and "Duplicate value" in answer["message"], answer


@pytest.fixture(scope="module", name="schemas")
def _schemas(kube):
    found = {}
    for kind, plural in KINDS.values():
        crd = kube.get(f"/apis/apiextensions.k8s.io/v1/customresourcedefinitions/{plural}.{GROUP}")
        found[kind] = crd
    return found


def walk(schema, path):
    yield path, schema
    for name, child in schema.get("properties", {}).items():
        yield from walk(child, f"{path}.{name}")
    if "items" in schema:
        yield from walk(schema["items"], path + "[]")


def test_every_field_is_described_and_bounded(schemas):
    """Read back from the server, so that a keyword it does not know would be missed here."""
    wrong = []
    for kind, crd in schemas.items():
        (version,) = crd["spec"]["versions"]
        for path, s in walk(version["schema"]["openAPIV3Schema"], kind):
            if path == f"{kind}.metadata":  # the server lets nobody describe it
                continue
            if not s.get("description", "").strip().endswith(".") and "Types and" not in s.get(
                    "description", ""):
                wrong.append(f"{path}: no sentence describes it")
            if s["type"] == "string" and "maxLength" not in s:
                wrong.append(f"{path}: no maxLength")
            if s["type"] == "array" and "maxItems" not in s:
                wrong.append(f"{path}: no maxItems")
            if "default" in s:
                wrong.append(f"{path}: stores a default")
    assert not wrong, "\n".join(wrong)


def test_crds_are_established_without_complaint(schemas):
    """A CEL rule whose cost the server will not pay, or a schema that is not structural, shows."""
    for kind, crd in schemas.items():
        states = {c["type"]: c["status"] for c in crd["status"]["conditions"]}
        assert states["Established"] == states["NamesAccepted"] == "True", kind
        assert states.get("NonStructuralSchema", "False") == "False", kind


def test_a_category_is_no_short_name(schemas):
    """kubectl tries categories first: with both called "tec", "kubectl describe tec NAME" fails and
    "kubectl delete tec --all" takes every Machine, and with it the keys of their disks."""
    names = [crd["spec"]["names"] for crd in schemas.values()]
    assert {tuple(n["categories"]) for n in names} == {("tec-all",)}
    taken = {w for n in names for w in (n["plural"], n["singular"], *n["shortNames"])}
    assert len(taken) == 3 * len(names) and "tec-all" not in taken


def test_kubectl_shows_the_columns(kube, tmp_path):
    ns = kube.create_namespace("columns")
    rows = {"tec": (addr(), [condition("Installed", "False", "Installing"),
                             condition("TrusteeSynced", "Unknown", "Populating")]),
            "mach": ({"id": ID}, [condition("Ready", "False", "NoApprovedKey"),
                                  condition("AttestationKeyBound", "False", "NoApprovedKey")]),
            "ak": ({"publicKey": "k", "uuid": ID},
                   [condition("Approved", "True", "MachineCreated"),
                    condition("Delivered", "False", "NotApproved")]),
            "ai": ({"image": IMAGE}, [condition("Committed", "False", "Computing")])}
    for kind, (spec, conditions) in rows.items():
        made(kube, kind, ns, spec, f"my-{kind}")
        status, body = kube.api("PATCH", url(kind, ns, f"my-{kind}", "/status"),
                                {"status": {"conditions": conditions}}, "merge")
        assert status == 200, body
    expect = {
        "tec": (["NAME", "INSTALLED", "TRUSTEE", "TRUSTEESYNCED", "AGE"],
                ["my-tec", "False", "trustee.example.org", "Unknown"]),
        "mach": (["NAME", "READY", "AK", "REASON", "AGE"],
                 ["my-mach", "False", "False", "NoApprovedKey"]),
        "ak": (["NAME", "APPROVED", "REASON", "MACHINE", "DELIVERED", "AGE"],
               ["my-ak", "True", "MachineCreated", ID, "False"]),
        "ai": (["NAME", "IMAGE", "COMMITTED", "REASON", "AGE"],
               ["my-ai", IMAGE, "False", "Computing"])}

    def get(*args):
        return kube.kubectl("get", *args, "-n", ns, "--cache-dir", tmp_path)

    for kind, (head, row) in expect.items():  # by their short names
        for lines in (get(kind).splitlines(), get(kind, f"my-{kind}").splitlines()):
            assert lines[0].split() == head
            assert lines[1].split()[:-1] == row
            assert len(lines) == 2
    assert ID in get("mach", "-o", "wide")
    everything = sorted(f"{KINDS[k][0].lower()}.{GROUP}/my-{k}" for k in KINDS)
    assert sorted(get("tec,mach,ak,ai", "-o", "name").split()) == everything
    assert sorted(get("tec-all", "-o", "name").split()) == everything
    kube.api("DELETE", f"/api/v1/namespaces/{ns}")


def test_objects_from_before_our_schema_can_be_finished(kube, ns, schemas):
    """A Machine whose id the Rust operator's schema took: it gets its condition and its finalizer
    goes, though it would be refused today."""
    crd_url = f"/apis/apiextensions.k8s.io/v1/customresourcedefinitions/machines.{GROUP}"
    at = "/spec/versions/0/schema/openAPIV3Schema/properties/spec/properties/id/pattern"
    pattern = schemas["Machine"]["spec"]["versions"][0]["schema"]["openAPIV3Schema"][
        "properties"]["spec"]["properties"]["id"]["pattern"]
    status, body = kube.api("PATCH", crd_url, [{"op": "remove", "path": at}], "json")
    assert status == 200, body
    try:
        def old_one():
            status, body = kube.api("POST", url("mach", ns), obj(
                "mach", {"id": "Not-A-UUID"}, "from-before", finalizers=[f"finalizer.{GROUP}/x"]))
            return status == 201 and body
        kube.wait_for(old_one, 20, "schema without the pattern")
    finally:
        status, body = kube.api("PATCH", crd_url, [{"op": "add", "path": at, "value": pattern}],
                                "json")
    assert status == 200, body
    kube.wait_for(lambda: kube.api("POST", url("mach", ns, query="?dryRun=All"),
                                   obj("mach", {"id": "Not-A-UUID"}))[0] == 422,
                  20, "schema with the pattern")
    here = url("mach", ns, "from-before")
    status, body = kube.api("PATCH", here + "/status?fieldManager=t&force=true", {
        "apiVersion": f"{GROUP}/v1alpha1", "kind": "Machine", "metadata": {"name": "from-before"},
        "status": {"conditions": [condition("KeyReady", "False", "InvalidID")]}}, "apply")
    assert status == 200, body
    status, body = kube.api("PATCH", here, {"metadata": {"annotations": {"a": "b"}}}, "merge")
    assert status == 200, body
    assert kube.api("DELETE", here)[0] == 200
    assert kube.api("PATCH", here, {"metadata": {"finalizers": None}}, "merge")[0] == 200
    assert kube.get(here) is None
