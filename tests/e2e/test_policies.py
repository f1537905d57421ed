# SPDX-License-Identifier: MIT
"""What the policies of etc/ grant and refuse, evaluated by a real Rego engine that has only the
functions Trustee's has; that a TrusteeConfig's policies decide as the Trustee operator's do; and that
the KBS configurations beside them are TOML. No control plane is needed.

The engine is not Trustee's own, which only Rust links: where TEC_TEST_REGORUS names a program that was
built from tests/rego/regorus, the same is asked of regorus. By hand, regorus 0.5.0 (Trustee v0.17) was
given the tables: every claim, extension and verdict was the same.
"""

import base64
import copy
import itertools
import json
import os
import random
import re
import subprocess
import tomllib

import pytest

from conftest import lacking
from controlplane import TOP

OWN, OTHER = "11111111-2222-4333-8444-555555555555", "99999999-2222-4333-8444-555555555555"
HEAD = "MIIBIjANBgkqhkiG9w0BAQEFAAOCAQ8AMIIBCgKCAQEA"  # of every RSA-2048 key


def rsa(start, end=b"\1"):
    """A public key of RSA-2048, base64 of its DER, whose modulus begins and ends so."""
    modulus = base64.b64decode(start).ljust(256 - len(end), b"\0") + end
    return base64.b64encode(base64.b64decode(HEAD) + modulus + b"\2\3\1\0\1").decode()


AK, STRANGER = rsa("q+/" * 80), rsa("zzz" * 80)
TWIN = rsa("q+/" * 80, b"\3")  # the same name, another key
PCR4, PCR7, PCR14, OTHER4, OTHER7, OTHER14 = ("%064x" % n for n in (4, 7, 14, 104, 107, 114))

GETS = {
    "own": f"resource/default/{OWN}/root",
    "query": f"resource/default/{OWN}/root?version=1&allow=true",
    "escaped": f"resource/%64efault/{OWN}/ro%6ft",
    "other": f"resource/default/{OTHER}/root",
    "extra": f"resource/default/{OWN}/root/x",
    "short": f"resource/default/{OWN}",
    "double": f"resource//default/{OWN}/root",
    "type": f"resource/default/{OWN}/toor",
    "repository": f"resource/other/{OWN}/root",
    "nothing": "resource/",
    "no plugin": f"/default/{OWN}/root",
    "plugin": f"pkcs11/default/{OWN}/root",
}
NONE, MINE, ALL = set(), {"own", "query", "escaped"}, set(GETS) - {"plugin"}
SETS = {"per-machine": ("tpm.rego", "resource.rego"),
        "shared": ("tpm-shared.rego", "resource-shared.rego"),
        "v017": ("tpm-v017.rego", "resource-shared.rego")}
# The lines that build-aux/embed.sh changes; tests/render compares the rest.
SEVEN_SWITCH, ONCE_SWITCH = "pcr7_required", "once_per_boot"


def name_of(ak):
    return "ak." + ak[44:284].replace("+", "-").replace("/", "_")


def boot(*registers):
    return ".".join(["boot", *registers])


VALUES = {
    name_of(AK): {"ak": AK, "machine": OWN},
    boot(PCR4, PCR14): {"images": ["coreos"]}, boot(OTHER4, OTHER14): {"images": ["fedora"]},
    "trusted_aks": [STRANGER[:-1], AK], "tpm_pcr4": [PCR4, OTHER4], "tpm_pcr14": [OTHER14, PCR14],
}
TPM = {"ak_public": AK, "pcr04": PCR4, "pcr14": PCR14, "pcr08": "%064x" % 8}
SAMPLE = {"sample": {"svn": "1", "launch_digest": "abcde"}}
GONE = object()


def changed(base, **changes):
    made = copy.deepcopy(base)
    for k, v in changes.items():
        made.pop(k, None)
        if v is not GONE:
            made[k] = v
    return made


def tpm(**changes):
    return {"tpm": changed(TPM, **changes)}


def case(identity, executables, granted=NONE, values=None, evidence=None):
    """VALUES: changes to the reference values. Claims of the primary evidence, None for a failed
    attestation; EVIDENCE: one or a list."""
    evidence = tpm() if evidence is None else evidence
    return {"values": changed(VALUES, **(values or {})),
            "evidence": evidence if isinstance(evidence, list) else [evidence],
            "want": (identity, executables), "granted": granted}


def entry(value):
    return {name_of(AK): value}


def approved(value):
    return {boot(PCR4, PCR14): value}


PER_MACHINE = {
    "registered, approved": case(2, 3, MINE),
    "unregistered": case(97, 3, evidence=tpm(ak_public=STRANGER)),
    "entry missing": case(97, 3, values=entry(GONE)),
    "entry null": case(97, 3, values=entry(None)),
    "entry {}": case(97, 3, values=entry({})),
    "entry a string": case(97, 3, values=entry(AK)),
    "a list of one": case(2, 3, MINE, values=entry([{"ak": AK, "machine": OWN}])),
    "a list, this key last": case(2, 3, MINE, values=entry(
        [{"ak": TWIN, "machine": OTHER}, {"ak": STRANGER, "machine": OTHER}, {"ak": AK, "machine": OWN}])),
    "a list, the twin asks": case(2, 3, MINE, evidence=tpm(ak_public=TWIN), values=entry(
        [{"ak": AK, "machine": OTHER}, {"ak": TWIN, "machine": OWN}])),
    "a list of 32": case(2, 3, MINE, values=entry(
        [{"ak": rsa("q+/" * 80, bytes([n, 1])), "machine": OTHER} for n in range(1, 32)] +
        [{"ak": AK, "machine": OWN}])),
    "a list of all types": case(2, 3, MINE, values=entry(
        [None, True, 1, 1.5, "", AK, [], [{"ak": AK, "machine": OTHER}], {}, {"ak": AK}, {"machine": OTHER},
         {"ak": [AK], "machine": OTHER}, {"ak": AK, "machine": list(OTHER)}, {"ak": AK, "machine": OTHER[1:]},
         {"ak": AK, "machine": OWN}])),
    "a list, this key twice": case(2, 3, MINE, values=entry(
        [{"ak": AK, "machine": OWN}, {"ak": AK, "machine": OTHER}])),
    "a list without this key": case(97, 3, values=entry([{"ak": TWIN, "machine": OWN}])),
    "a list emptied": case(97, 3, values=entry([])),
    "a list of null": case(97, 3, values=entry([None])),
    "a list in a list": case(97, 3, values=entry([[{"ak": AK, "machine": OWN}]])),
    "an object of entries": case(97, 3, values=entry({"0": {"ak": AK, "machine": OWN}})),
    "entry a number": case(97, 3, values=entry(1)),
    "entry true": case(97, 3, values=entry(True)),
    "entry of another key": case(97, 3, values=entry({"ak": STRANGER, "machine": OWN})),
    "entry without key": case(97, 3, values=entry({"machine": OWN})),
    "entry without machine": case(97, 3, values=entry({"ak": AK})),
    "machine null": case(97, 3, values=entry({"ak": AK, "machine": None})),
    "machine a list of 36": case(97, 3, values=entry({"ak": AK, "machine": list(OWN)})),
    "machine of 35": case(97, 3, values=entry({"ak": AK, "machine": OWN[:-1]})),
    "machine of 37": case(97, 3, values=entry({"ak": AK, "machine": OWN + "0"})),
    "another machine's key": case(2, 3, {"other"}, values=entry({"ak": AK, "machine": OTHER})),
    "colliding name": case(97, 3, evidence=tpm(ak_public=TWIN)),
    "trailing bytes": case(97, 3, evidence=tpm(ak_public=AK + "AAAA")),
    "key null": case(97, 3, evidence=tpm(ak_public=None)),
    "key a number": case(97, 3, evidence=tpm(ak_public=7)),
    "key a list of 392": case(97, 3, evidence=tpm(ak_public=[AK] * 392)),
    "key missing": case(97, 3, evidence=tpm(ak_public=GONE)),
    "key empty": case(97, 3, evidence=tpm(ak_public="")),
    "key short": case(97, 3, evidence=tpm(ak_public=AK[:391]),
                      values={name_of(AK): {"ak": AK[:391], "machine": OWN}}),
    "boot set missing": case(2, 33, values=approved(GONE)),
    "boot set null": case(2, 33, values=approved(None)),
    "boot set {}": case(2, 33, values=approved({})),
    "boot set a string": case(2, 33, values=approved("coreos")),
    "boot set a list": case(2, 33, values=approved(["coreos"])),
    "boot set emptied": case(2, 33, values=approved({"images": []})),
    "boot set's images null": case(2, 33, values=approved({"images": None})),
    "boot set's images a string": case(2, 33, values=approved({"images": "coreos"})),
    "boot set's images an object": case(2, 33, values=approved({"images": {"coreos": 1}})),
    "mix of two images": case(2, 33, evidence=tpm(pcr14=OTHER14)),
    "the other mix": case(2, 33, evidence=tpm(pcr04=OTHER4)),
    "other image": case(2, 3, MINE, evidence=tpm(pcr04=OTHER4, pcr14=OTHER14)),
    "PCR 4 missing": case(2, 33, evidence=tpm(pcr04=GONE)),
    "PCR 14 missing": case(2, 33, evidence=tpm(pcr14=GONE)),
    "PCR 4 a number": case(2, 33, evidence=tpm(pcr04=4)),
    "PCR 14 null": case(2, 33, evidence=tpm(pcr14=None)),
    "PCR 4 with a dot": case(2, 33, evidence=tpm(pcr04=f"a.{PCR4}"),
                             values={boot("a." + PCR4, PCR14): {"images": ["x"]}}),
    "PCR 14 with a dot": case(2, 33, evidence=tpm(pcr14=f"{PCR14}.c"),
                              values={boot(PCR4, PCR14 + ".c"): {"images": ["x"]}}),
    "sample": case(97, 33, evidence=SAMPLE),
    "nothing": case(97, 33, evidence={}),
    "tpm null": case(97, 33, evidence={"tpm": None}),
    "tpm a list": case(97, 33, evidence={"tpm": [TPM]}),
    "Azure SNP vTPM": case(97, 33, evidence={"az-snp-vtpm": tpm()}),
    "Azure TDX vTPM": case(97, 33, evidence={"az-tdx-vtpm": tpm()}),
    "sample, and a TPM beside it": case(97, 33, evidence=[SAMPLE, tpm()]),
    "stranger, and a TPM beside it": case(97, 3, evidence=[tpm(ak_public=STRANGER), tpm()]),
    "TPM, and a sample beside it": case(2, 3, MINE, evidence=[tpm(), SAMPLE]),
}

LISTS = {
    "registered, approved": case(2, 3, ALL),
    "PCR 4 not approved": case(2, 33, evidence=tpm(pcr04="%064x" % 5)),
    "PCR 14 not approved": case(2, 33, evidence=tpm(pcr14="%064x" % 5)),
    "mix of two images": case(2, 3, ALL, evidence=tpm(pcr14=OTHER14)),  # why PerMachine has sets
    "PCR 4 missing": case(2, 33, evidence=tpm(pcr04=GONE)),
    "PCR 14 missing": case(2, 33, evidence=tpm(pcr14=GONE)),
    "PCR 4 null in a list of null": case(2, 33, evidence=tpm(pcr04=None),
                                         values={"tpm_pcr4": [None]}),
    "no tpm_pcr4": case(2, 33, values={"tpm_pcr4": GONE}),
    "tpm_pcr14 null": case(2, 33, values={"tpm_pcr14": None}),
    "tpm_pcr14 emptied": case(2, 33, values={"tpm_pcr14": []}),
    "tpm_pcr4 a string": case(2, 33, values={"tpm_pcr4": PCR4}),
    "tpm_pcr4 an object": case(2, 33, values={"tpm_pcr4": {"a": PCR4}}),
    "sample": case(97, 33, evidence=SAMPLE),
    "nothing": case(97, 33, evidence={}),
    "tpm null": case(97, 33, evidence={"tpm": None}),
    "Azure SNP vTPM": case(97, 33, evidence={"az-snp-vtpm": tpm()}),
    "Azure TDX vTPM": case(97, 33, evidence={"az-tdx-vtpm": tpm()}),
    "sample, and a TPM beside it": case(97, 33, evidence=[SAMPLE, tpm()]),
}
SHARED = {
    **LISTS,
    "unregistered": case(97, 3, evidence=tpm(ak_public=STRANGER)),
    "no trusted_aks": case(97, 3, values={"trusted_aks": GONE}),
    "trusted_aks null": case(97, 3, values={"trusted_aks": None}),
    "trusted_aks emptied": case(97, 3, values={"trusted_aks": []}),
    "trusted_aks a string": case(97, 3, values={"trusted_aks": AK}),
    "trusted_aks an object": case(97, 3, values={"trusted_aks": {"a": AK}}),
    "part of a key": case(97, 3, evidence=tpm(ak_public=AK[:391])),
    "colliding name": case(97, 3, evidence=tpm(ak_public=TWIN)),
    "key missing": case(97, 3, evidence=tpm(ak_public=GONE)),
    "key null in a list of null": case(97, 3, evidence=tpm(ak_public=None),
                                       values={"trusted_aks": [None]}),
}
# The verifier of v0.17 has checked the key and does not report it.
V017 = {k: {**v, "evidence": [
    {"tpm": changed(e["tpm"], ak_public=GONE)} if isinstance(e.get("tpm"), dict) else e
    for e in v["evidence"]]} for k, v in LISTS.items()}
V017["PCR 4 missing"] = {**V017["PCR 4 missing"], "want": (97, 33)}
V017["PCR 4 null in a list of null"] = {**V017["PCR 4 null in a list of null"], "want": (97, 33)}
V017["a verifier that reports the key"] = case(97, 3)
V017["a verifier that reports null"] = case(97, 3, evidence=tpm(ak_public=None))
V017["a verifier that reports false"] = case(97, 3, evidence=tpm(ak_public=False))

TABLES = {"per-machine": PER_MACHINE, "shared": SHARED, "v017": V017}

# With PCR 7 required: a node of one platform, and image "fedora" approved on another one.
SEVEN = {**VALUES, boot(PCR4, PCR7, PCR14): {"images": ["coreos"]},
         boot(OTHER4, OTHER7, OTHER14): {"images": ["fedora"]}, "tpm_pcr7": [OTHER7, PCR7]}


def tpm7(**changes):
    return tpm(**{"pcr07": PCR7, **changes})


def seven(executables, values=None, **changes):
    """Only what PCR 7 decides: the key is registered."""
    return {"values": changed(SEVEN, **(values or {})), "evidence": [tpm7(**changes)],
            "want": (2, executables)}


def approved7(value):
    return {boot(PCR4, PCR7, PCR14): value}


SEVEN_BOTH = {
    "right": seven(3),
    "wrong 7": seven(33, pcr07="%064x" % 8),
    "missing 7": seven(33, pcr07=GONE),
    "7 null": seven(33, pcr07=None),
    "7 a number": seven(33, pcr07=7),
    "7 a list": seven(33, pcr07=[PCR7]),
    "7 empty": seven(33, pcr07=""),
    "7 of upper case": seven(33, pcr07="A" * 64,
                             values={boot(PCR4, "A" * 64, PCR14): {"images": ["x"]},
                                     "tpm_pcr7": ["A" * 64]}),
    "7 of 63": seven(33, pcr07=PCR7[:63], values={
        boot(PCR4, PCR7[:63], PCR14): {"images": ["x"]}, "tpm_pcr7": [PCR7[:63]]}),
    "wrong 4": seven(33, pcr04="%064x" % 5),
    "wrong 14": seven(33, pcr14="%064x" % 5),
    "missing 4": seven(33, pcr04=GONE),
    "missing 14": seven(33, pcr14=GONE),
}
SEVEN_SETS = {
    **SEVEN_BOTH,
    "other image on its platform": seven(3, pcr04=OTHER4, pcr07=OTHER7, pcr14=OTHER14),
    "other platform's 7 with this image": seven(33, pcr07=OTHER7),
    "this platform's 7 with the other image": seven(33, pcr04=OTHER4, pcr14=OTHER14),
    "set of two parts only": seven(33, values=approved7(GONE)),
    "set of two parts, and no 7 shown": seven(33, values=approved7(GONE), pcr07=GONE),
    "set null": seven(33, values=approved7(None)),
    "set a list": seven(33, values=approved7(["coreos"])),
    "set emptied": seven(33, values=approved7({"images": []})),
    "7 with a dot": seven(33, pcr07=PCR7 + ".a",
                          values={boot(PCR4, PCR7 + ".a", PCR14): {"images": ["x"]}}),
    "4 with a dot and no 7": seven(33, pcr04=f"{PCR4}.{PCR7}", pcr07=GONE),
}
SEVEN_LISTS = {
    **SEVEN_BOTH,
    "other platform's 7 with this image": seven(3, pcr07=OTHER7),  # why PerMachine has sets
    "no tpm_pcr7": seven(33, values={"tpm_pcr7": GONE}),
    "tpm_pcr7 null": seven(33, values={"tpm_pcr7": None}),
    "tpm_pcr7 emptied": seven(33, values={"tpm_pcr7": []}),
    "tpm_pcr7 a string": seven(33, values={"tpm_pcr7": PCR7}),
    "tpm_pcr7 an object": seven(33, values={"tpm_pcr7": {"a": PCR7}}),
    "7 null in a list of null": seven(33, pcr07=None, values={"tpm_pcr7": [None]}),
}


def without_key(table):
    """The verifier of v0.17, which says nothing of a node without PCR 4."""
    made = {name: {**c, "evidence": [{"tpm": changed(c["evidence"][0]["tpm"], ak_public=GONE)}]}
            for name, c in table.items()}
    made["missing 4"]["want"] = (97, 33)
    return made


SEVEN_TABLES = {"per-machine": SEVEN_SETS, "shared": SEVEN_LISTS, "v017": without_key(SEVEN_LISTS)}


def token(status="affirming", name="cpu0", identifiers=GONE):
    """Submods of a token that no attestation policy of ours makes."""
    identifiers = {"validated": {"machine": OWN}} if identifiers is GONE else identifiers
    return {name: {"ear.status": status, "ear.trustee.identifiers": identifiers}}


TOKENS = {
    "affirming": (token(), MINE, ALL),
    "warning": (token("warning"), NONE, NONE),
    "contraindicated": (token("contraindicated"), NONE, NONE),
    "none": (token("none"), NONE, NONE),
    "no status": ({"cpu0": {"ear.trustee.identifiers": {"validated": {"machine": OWN}}}},
                  NONE, NONE),
    "additional evidence only": (token(name="cpu1"), NONE, NONE),
    "the additional one is affirming": ({**token("warning"), **token(name="cpu1")}, NONE, NONE),
    "a GPU": (token(name="gpu0"), NONE, NONE),
    "no submods": ({}, NONE, NONE),
    "no identifiers": (token(identifiers=None), NONE, ALL),
    "not validated": (token(identifiers={"machine": OWN}), NONE, ALL),
    "a list of machines": (token(identifiers={"validated": {"machine": [OWN]}}), NONE, ALL),
    "empty machine": (token(identifiers={"validated": {"machine": ""}}), NONE, ALL),
}


@pytest.fixture(scope="module", params=["opa", *(["regorus"] if "TEC_TEST_REGORUS" in os.environ else [])])
def engine(request):
    """TEC_TEST_REGORUS: Trustee's own engine as well, see tests/rego/regorus."""
    if request.param == "regorus":
        return os.environ["TEC_TEST_REGORUS"]
    build = subprocess.run([os.path.join(TOP, "tests", "rego", "build.sh")], check=False,
                           stdout=subprocess.PIPE, text=True)
    if build.returncode:
        lacking("tests/rego/build.sh failed; its last line says what to do")
    return build.stdout.strip()


def read(name):
    with open(os.path.join(os.environ.get("TEC_TEST_POLICIES", os.path.join(TOP, "etc")), name),
              encoding="utf-8") as f:
        return f.read()


def ask(engine, attestation, resource, cases):
    asked = [{k: v for k, v in c.items() if k in ("values", "evidence", "submods")} |
             {"gets": list(GETS.values())} for c in cases]
    done = subprocess.run([engine], check=True, stdout=subprocess.PIPE, text=True, input=json.dumps(
        {"attestation": attestation, "resource": resource, "cases": asked}))
    answers = [json.loads(line) for line in done.stdout.splitlines()]
    assert len(answers) == len(cases)
    return answers


def granted_as_text(engine, attestation, resource, c):
    """What a Trustee that gives the path as text grants."""
    done = subprocess.run([engine], check=True, stdout=subprocess.PIPE, text=True, input=json.dumps(
        {"attestation": attestation, "resource": resource, "cases": [
            {"values": c["values"], "evidence": c["evidence"], "gets": ["text:" + get for get in GETS.values()]}]}))
    return granted(json.loads(done.stdout))


def granted(answer):
    assert all(isinstance(a, bool) for a in answer["allow"]), answer["allow"]
    return {name for name, allow in zip(GETS, answer["allow"]) if allow}


@pytest.mark.parametrize("policies", SETS)
def test_what_is_granted_and_what_is_refused(engine, policies):
    attestation, resource = (read(name) for name in SETS[policies])
    table = TABLES[policies]
    for name, c, a in zip(table, table.values(),
                          ask(engine, attestation, resource, table.values())):
        assert "error" not in a, (name, a)
        claims = a["claims"][0]
        assert (claims["instance-identity"], claims["executables"]) == c["want"], (name, a)
        assert len(claims) == 8 and sorted(claims.values()) == sorted([*c["want"], *[0] * 6]), name
        assert (a["status"][0] == "affirming") == (c["want"] == (2, 3)), (name, a)
        assert granted(a) == c["granted"], (name, a)


def strict(name, switch):
    text, line = read(name), f"\n{switch} := false\n"
    assert text.count(line) == 1, name
    return text.replace(line, f"\n{switch} := true\n")


def requiring_7(name):
    return strict(name, SEVEN_SWITCH)


@pytest.mark.parametrize("policies", SETS)
def test_what_is_granted_where_pcr_7_is_required(engine, policies):
    attestation, resource = requiring_7(SETS[policies][0]), read(SETS[policies][1])
    table = SEVEN_TABLES[policies]
    for name, c, a in zip(table, table.values(),
                          ask(engine, attestation, resource, table.values())):
        assert "error" not in a, (name, a)
        claims = a["claims"][0]
        assert (claims["instance-identity"], claims["executables"]) == c["want"], (name, a)
        mine = MINE if policies == "per-machine" else ALL
        assert granted(a) == (mine if c["want"] == (2, 3) else NONE), (name, a)


@pytest.mark.parametrize("policies", SETS)
def test_pcr_7_decides_nothing_where_it_is_not_required(engine, policies):
    attestation, resource = (read(name) for name in SETS[policies])
    cases = [seven(3, pcr07=value) for value in (PCR7, OTHER7, GONE, None, 7)]
    if policies == "v017":
        cases = list(without_key({str(i): c for i, c in enumerate(cases)} |
                                 {"missing 4": seven(3, pcr04=GONE)}).values())[:-1]
    for a in ask(engine, attestation, resource, cases):
        assert (a["claims"][0]["instance-identity"], a["claims"][0]["executables"]) == (2, 3), a


# PCR 15, and whether the node may still have its disk key.
FIFTEEN = {"0" * 64: True, "0" * 63 + "1": False, "0" * 63: False, "0" * 65: False, "": False, 0: False, None: False,
           GONE: False, False: False, ("0" * 64,): False}
# What is no disk key stays readable where everybody reads everything.
NO_DISK = {"short", "type", "nothing"}


def sealed_cases(policies):
    """Each PCR 15 with what is then granted."""
    everything, later = (MINE, NONE) if policies == "per-machine" else (ALL, NO_DISK)
    key = {"ak_public": GONE} if policies == "v017" else {}
    return [case(2, 3, everything if unsealed else later, evidence=tpm(pcr15=value, **key))
            for value, unsealed in FIFTEEN.items()]


@pytest.mark.parametrize("policies", SETS)
def test_a_disk_key_is_released_once_per_boot(engine, policies):
    attestation, resource = read(SETS[policies][0]), strict(SETS[policies][1], ONCE_SWITCH)
    cases = sealed_cases(policies)
    for c, a in zip(cases, ask(engine, attestation, resource, cases)):
        assert a["status"][0] == "affirming", (c, a)
        assert granted(a) == c["granted"], (c, a)
        if policies == "v017":
            assert granted_as_text(engine, attestation, resource, c) == c["granted"], c
    # Nor to a token whose claims are those of other evidence, or none.
    sealed = NONE if policies == "per-machine" else NO_DISK
    for claims in ({}, {"tpm": None}, {"sample": {"pcr15": "0" * 64}}, {"az-snp-vtpm": {"tpm": {"pcr15": "0" * 64}}}):
        submods = token()
        submods["cpu0"]["ear.veraison.annotated-evidence"] = claims
        [a] = ask(engine, attestation, resource, [{"submods": submods}])
        assert granted(a) == sealed, (claims, a)


@pytest.mark.parametrize("policies", SETS)
def test_pcr_15_decides_nothing_where_a_key_is_released_at_any_time(engine, policies):
    attestation, resource = (read(name) for name in SETS[policies])
    for a in ask(engine, attestation, resource, sealed_cases(policies)):
        assert granted(a) == (MINE if policies == "per-machine" else ALL), a


@pytest.mark.parametrize("policies", ["per-machine", "shared"])
def test_the_native_policies_release_a_disk_key_once_per_boot(policies):
    cases = sealed_cases(policies)
    for c, a in zip(cases, native(policies, False, cases, once=True)):
        got = {name for name, allow in zip(GETS, a["allow"]) if allow}
        assert got - SPELLINGS == c["granted"] - SPELLINGS, (c, a)


def test_the_token_says_which_machine_and_image(engine):
    attestation, resource = (read(name) for name in SETS["per-machine"])
    table = [PER_MACHINE[name] for name in ("registered, approved", "other image",
                                            "unregistered", "boot set emptied")]
    own, image, *refused = ask(engine, attestation, resource, table)
    assert own["extensions"][0] == [{"name": "ear.trustee.identifiers", "key": -18, "value": {
        "validated": {"machine": OWN, "images": ["coreos"]}}}]
    assert image["extensions"][0][0]["value"]["validated"]["images"] == ["fedora"]
    assert [a["extensions"][0] for a in refused] == [[], []]


@pytest.mark.parametrize("policies", SETS)
def test_finished_tokens(engine, policies):
    attestation, resource = (read(name) for name in SETS[policies])
    answers = ask(engine, attestation, resource, [{"submods": t[0]} for t in TOKENS.values()])
    for (name, (_, mine, everything)), a in zip(TOKENS.items(), answers):
        assert granted(a) == (mine if policies == "per-machine" else everything), (name, a)


# ---- the same policies without Rego, as the key broker of a standalone operator evaluates them


def native(policies, pcr7, cases, once=False):
    """Answers of rats/policy, one per case."""
    tool = os.path.join(os.environ.get("TEC_BUILDDIR", os.path.join(TOP, "build")), "tests/tools/tec-test-policy")
    if not os.access(tool, os.X_OK):
        lacking(f"no {tool}; next step: make, or set TEC_BUILDDIR")
    asked = [{"values": c["values"], "evidence": c["evidence"], "gets": list(GETS.values())} for c in cases]
    done = subprocess.run([tool], check=True, stdout=subprocess.PIPE, text=True, input=json.dumps(
        {"policy": policies, "pcr7": pcr7, "once": once, "cases": asked}))
    answers = [json.loads(line) for line in done.stdout.splitlines()]
    assert len(answers) == len(cases)
    return answers


# Rego matches what a path decodes to; the broker takes paths as they are, with the empty first
# segment that one release of the attester sends. Both ways to spell reach one's own key alone.
SPELLINGS = {"query", "escaped", "double", "extra", "short", "nothing", "no plugin"}


def agree(engine, policies, pcr7, cases):
    """How many of the cases were refused before any policy; fails where the two differ."""
    attestation = requiring_7(SETS[policies][0]) if pcr7 else read(SETS[policies][0])
    early = 0
    rego_answers = ask(engine, attestation, read(SETS[policies][1]), cases)
    for c, a, n in zip(cases, rego_answers, native(policies, pcr7, cases)):
        if "error" in n:  # stricter: there is no token at all
            early += 1
            continue
        assert "error" not in a, (c, a)
        claims = a["claims"][0]
        assert [claims["instance-identity"], claims["executables"]] == n["claims"], (c, a, n)
        assert a["status"][0] == n["status"], (c, a, n)
        validated = [e["value"]["validated"] for e in a["extensions"][0]]
        assert validated == ([n["validated"]] if n["validated"] else []), (c, a, n)
        rego = granted(a)
        ours = {name for name, allow in zip(GETS, n["allow"]) if allow}
        assert ours - SPELLINGS == rego - SPELLINGS, (c, a, n)
        assert ours & SPELLINGS <= ({"double"} if "own" in ours else set()), (c, n)
    return early


def random_document(rng, pcr7):
    """Values and evidence that are right, or nearly right, or anything."""
    keys, machines = [AK, TWIN, STRANGER], [OWN, OTHER, OWN[:-1], OWN + "0", "\u00e9" * 36, ""]
    fours, sevens, fourteens = [PCR4, OTHER4], [PCR7, OTHER7], [PCR14, OTHER14]

    def anything():
        return rng.choice([None, True, 0, 1.5, "", "x", AK, PCR4, [], [None], [AK], {}, {"ak": AK}, {"images": 1}])

    def mostly(right):
        return right if rng.random() < 0.8 else anything()

    def identity(key):
        return mostly({"ak": mostly(rng.choice([key, key, AK])),
                       "machine": mostly(rng.choice(machines[:2] * 3 + machines))})

    values = {}
    for key in keys:
        if rng.random() < 0.6:
            values[name_of(key)] = mostly([identity(key) for _ in range(rng.randrange(4))]
                                          if rng.random() < 0.7 else identity(key))
    for registers in itertools.product(fours, sevens, fourteens) if pcr7 else itertools.product(fours, fourteens):
        if rng.random() < 0.8:
            values[boot(*registers)] = mostly({"images": mostly(rng.choice([["coreos"], ["a", "b"], []]))})
    for name, pool in (("trusted_aks", keys), ("tpm_pcr4", fours), ("tpm_pcr7", sevens), ("tpm_pcr14", fourteens)):
        if rng.random() < 0.9:
            values[name] = mostly([mostly(v) for v in pool if rng.random() < 0.7])
    evidence = tpm(ak_public=rng.choice(keys), pcr04=rng.choice(fours), pcr07=rng.choice(sevens),
                   pcr14=rng.choice(fourteens))
    if rng.random() < 0.1:
        evidence = rng.choice([SAMPLE, {}, tpm(ak_public=anything()), tpm(pcr04=anything()), {"tpm": anything()}])
    return {"values": values, "evidence": [evidence]}


NATIVE = [(policies, pcr7) for policies in ("per-machine", "shared") for pcr7 in (False, True)]


@pytest.mark.parametrize("policies, pcr7", NATIVE)
def test_native_policies_agree_with_rego_over_the_table(engine, policies, pcr7):
    cases = list((SEVEN_TABLES if pcr7 else TABLES)[policies].values())
    assert agree(engine, policies, pcr7, cases) < 2 * len(cases) / 3


@pytest.mark.parametrize("policies, pcr7", NATIVE)
def test_native_policies_agree_with_rego_over_random_documents(engine, policies, pcr7):
    seed = int(os.environ.get("TEC_TEST_SEED", random.SystemRandom().randrange(1 << 32)))
    print(f"next step to repeat this: TEC_TEST_SEED={seed}")
    rng = random.Random(seed)
    cases = [random_document(rng, pcr7) for _ in range(250)]  # of each: 1,000 in all
    assert agree(engine, policies, pcr7, cases) < 60
    statuses = [n.get("status") for n in native(policies, pcr7, cases)]
    for status in ("affirming", "warning", "contraindicated"):
        assert statuses.count(status) > 1, (seed, status)


def test_shared_uses_the_names_of_the_rust_operator():
    for name, wanted in (("tpm-shared.rego", {"trusted_aks", "tpm_pcr4", "tpm_pcr7", "tpm_pcr14"}),
                         ("tpm-v017.rego", {"tpm_pcr4", "tpm_pcr7", "tpm_pcr14"})):
        assert set(re.findall(r'listed\(.*, "(\w+)"\)', read(name))) == wanted


def test_the_engine_lacks_what_trustee_lacks(engine):
    """A policy that uses a function which only OPA has must not pass here."""
    resource = read("resource.rego")
    for expression in ('crypto.sha256("a")', 'base64url.encode("a")', 'glob.match("a", [], "a")',
                       'hex.encode("a")', 'semver.is_valid("1.0.0")', 'io.jwt.decode("a")',
                       "http.send({})", "opa.runtime()", 'uuid.rfc4122("a")'):
        policy = f"package policy\nimport rego.v1\ntrust_claims := {expression}\n"
        [a] = ask(engine, policy, resource, [case(0, 0)])
        assert re.search("undefined function|could not find function", a.get("error", "")), (expression, a)


def test_an_undefined_extension_or_unknown_claim_fails_the_attestation(engine):
    resource, policy = read("resource.rego"), read("tpm.rego")
    for text in (policy.replace("default extensions := []\n", ""),
                 policy.replace('"hardware"', '"hard-ware"'),
                 policy.replace('"hardware": 0', '"hardware": "0"')):
        assert text != policy
        [a] = ask(engine, text, resource, [PER_MACHINE["unregistered"]])
        assert "error" in a


@pytest.mark.parametrize("tls", [False, True], ids=["plain", "tls"])
@pytest.mark.parametrize("name", ["kbs-config.toml", "kbs-config-v017.toml"])
def test_the_configurations_are_toml(name, tls):
    """As render/trustee.c resolves the markers, which its own tests look at."""
    lines = [line for line in read(name).splitlines()
             if not (line.startswith("#plain: ") if tls else line.endswith(" #tls"))]
    config = tomllib.loads("\n".join(line.removeprefix("#plain: ") for line in lines))
    http = config["http_server"]
    assert http.get("insecure_http", False) is not tls
    assert ("private_key" in http, "certificate" in http) == (tls, tls)
    token = config["attestation_token"]
    assert not token.get("insecure_key") and not token.get("insecure_header_jwk")
    assert token["trusted_certs_paths"] == ["/opt/trustee/token/cert.pem"]
    assert config["attestation_service"]["attestation_token_broker"]["duration_min"] == 1
    assert [p["name"] for p in config["plugins"]] == ["resource"]


SNP = {"measurement": "m", "reported_tcb_bootloader": 1, "reported_tcb_microcode": 1, "reported_tcb_snp": 1,
       "reported_tcb_tee": 1, "policy_debug_allowed": False, "policy_migrate_ma": False}
SNP_VALUES = {"snp_launch_measurement": ["m"], "snp_bootloader": [1], "snp_microcode": [1], "snp_snp_svn": [1],
              "snp_tee_svn": [1]}


def test_the_policies_that_a_trusteeconfig_begins_with(engine):
    """Restricted gives to what is affirming only; Permissive to all; IBM SE to nobody until it is edited."""
    cases = [({"snp": SNP}, SNP_VALUES, True), ({"snp": SNP}, {}, False), ({"se": {"tag": "t"}}, {}, True),
             ({"snp": {**SNP, "policy_debug_allowed": True}}, SNP_VALUES, False), ({"tpm": {"pcr11": "a"}}, {}, False),
             ({"sample": {"svn": "1", "debug": False}}, {}, False)]
    asked = [{"values": v, "evidence": [e]} for e, v, _ in cases]
    for name, wanted in (("affirming", [w for _, _, w in cases]), ("allow", [True] * 6), ("ibmse", [False] * 6)):
        answers = ask(engine, read("trusteeconfig-cpu.rego"), read(f"trusteeconfig-{name}.rego"), asked)
        assert [a["allow"][0] for a in answers] == wanted, (name, answers)
    gpu = ask(engine, read("trusteeconfig-gpu.rego"), read("trusteeconfig-affirming.rego"), [
        {"values": {}, "evidence": [{"nvidia": {"secboot": True, "dbgstat": "disabled"}}]}])
    assert gpu[0]["claims"][0]["configuration"] == 3 and not any(gpu[0]["allow"])


# Policies of a TrusteeConfig, compared with those of the Trustee operator: see tests/data/trustee/README.
REFERENCE = os.path.join(TOP, "tests", "data", "trustee")
PCRS = ("pcr03", "pcr08", "pcr09", "pcr11", "pcr12")
TCB = ("bootloader", "microcode", "snp", "tee")
SNP_SETTINGS = {"platform_smt_enabled": "smt_enabled", "platform_tsme_enabled": "tsme_enabled",
                "policy_single_socket": "single_socket", "policy_smt_allowed": "smt_allowed"}
TRUSTED = {"trusted_aks": [STRANGER, AK]}
DEBUG = {"az-snp-vtpm": ("policy_debug_allowed",), "az-tdx-vtpm": ("td_attributes", "debug")}
SNP_ABI = {"policy_abi_major": "abi_major", "policy_abi_minor": "abi_minor"}


def reference(name):
    with open(os.path.join(REFERENCE, name), encoding="utf-8") as f:
        return f.read()


CLAIMS = json.loads(reference("claims.json"))


def azure_values(prefix):
    return {f"{prefix}_{pcr}": [CLAIMS[f"az-{prefix}-vtpm"]["tpm"][pcr]] for pcr in PCRS}


def reference_values():
    """Per platform, what the reference needs for its best vector."""
    snp, tdx = CLAIMS["snp"], CLAIMS["tdx"]
    body, events = tdx["quote"]["body"], tdx["uefi_event_logs"]
    return {
        "sample": {"launch_digest": ["abcde"], "svn": ["1"], "major_version": 1, "minimum_minor_version": 4},
        "snp": {"snp_launch_measurement": [snp["measurement"]],
                "snp_bootloader": [snp["reported_tcb_bootloader"]], "snp_microcode": [snp["reported_tcb_microcode"]],
                "snp_snp_svn": [snp["reported_tcb_snp"]], "snp_tee_svn": [snp["reported_tcb_tee"]],
                **{f"snp_{name}": snp[claim] for claim, name in SNP_SETTINGS.items()},
                **{f"snp_guest_{name}": snp[claim] for claim, name in SNP_ABI.items()}},
        "tdx": {**{name: [body[name]] for name in ("rtmr_1", "rtmr_2", "mr_td", "xfam")},
                "tdvfkernel": events[1]["digests"][0]["digest"], "tdvfkernelparams": events[2]["digests"][0]["digest"]},
        "az-snp-vtpm": azure_values("snp"),
        "az-tdx-vtpm": azure_values("tdx"),
        "tpm": {"tpm_pcr11": [CLAIMS["tpm"]["pcr11"]]},
        "se": {},
    }


def wrong(value):
    """VALUE of another content, and of the same type."""
    if isinstance(value, bool):
        return not value
    if isinstance(value, (list, str)):
        return ["0badc0de"] if isinstance(value, list) else "0badc0de"
    return value + 1


def leaves(claims, path=()):
    items = claims.items() if isinstance(claims, dict) else enumerate(claims)
    for k, v in items:
        if isinstance(v, (dict, list)) and v:
            yield from leaves(v, (*path, k))
        else:
            yield (*path, k), v


def without(claims, path, value=GONE):
    """CLAIMS without the one at PATH, or with another VALUE there."""
    made = copy.deepcopy(claims)
    at = made
    for k in path[:-1]:
        at = at[k]
    if value is GONE:
        del at[path[-1]]
    else:
        at[path[-1]] = value
    return made


def variants(platform):
    """(name, values, claims): everything right, and each value and claim wrong or missing, but DEBUG and a TPM's key."""
    claims, values = CLAIMS[platform], reference_values()[platform]
    yield "right", values, claims
    yield "no values", {}, claims
    for name, value in values.items():
        yield f"value {name} wrong", {**values, name: wrong(value)}, claims
        yield f"value {name} missing", changed(values, **{name: GONE}), claims
        yield f"value {name} null", {**values, name: None}, claims
        yield f"value {name} empty", {**values, name: []}, claims
    for path, value in leaves(claims):
        if path == ("ak_public",) or (path[0] == "tpm" and path[1] not in (*PCRS, "pcr04")):
            continue  # of the unused registers one is enough
        if value not in ({}, []) and path != DEBUG.get(platform):
            yield f"claim {path} wrong", values, without(claims, path, wrong(value))
        yield f"claim {path} missing", values, without(claims, path)


def vectors(engine, policy, inputs):
    answers = ask(engine, policy, read("trusteeconfig-affirming.rego"),
                  [{"values": values, "evidence": [evidence]} for values, evidence in inputs])
    return [(a["claims"][0], a["extensions"][0], a["status"][0]) if "claims" in a else a for a in answers]


# The two differ on purpose only for values that the reference does not ask for (more_azure_values and trusted_aks) and for
# the debug mode of Azure's VMs.
@pytest.mark.parametrize("platform", CLAIMS)
def test_a_trusteeconfig_trusts_what_the_reference_trusts(engine, platform):
    names, inputs = [], []
    for name, values, claims in variants(platform):
        names.append(name)
        inputs.append((values | TRUSTED, {platform: claims}))
    wanted = vectors(engine, reference("cpu.rego"), inputs)
    got = vectors(engine, read("trusteeconfig-cpu.rego"), inputs)
    assert dict(zip(names, got)) == dict(zip(names, wanted))
    assert wanted[0][2] == "affirming"
    assert platform == "se" or {w[2] for w in wanted} > {"affirming"}


@pytest.mark.parametrize("platform", ["az-snp-vtpm", "az-tdx-vtpm"])
@pytest.mark.parametrize("pcr", PCRS)
def test_another_command_line_on_azure_is_not_affirming(engine, platform, pcr):
    """UKI, initrd, its command line and init data: one changed register is enough."""
    values = reference_values()[platform]
    other = without(CLAIMS[platform], ("tpm", pcr), "ab" * 32)
    right, changed_boot = vectors(engine, read("trusteeconfig-cpu.rego"),
                                  [(values, {platform: CLAIMS[platform]}), (values, {platform: other})])
    assert right[0]["executables"] == 3 and right[2] == "affirming"
    assert changed_boot[0]["executables"] == 33 and changed_boot[2] == "warning"


@pytest.mark.parametrize("values", [
    {}, {"trusted_aks": None}, {"trusted_aks": []}, {"trusted_aks": [STRANGER]}, {"trusted_aks": AK},
    {"trusted_aks": [TWIN, AK[:-1]]}])
def test_a_stranger_with_the_right_pcrs_of_a_tpm_is_not_affirming(engine, values):
    pcr11 = reference_values()["tpm"]
    no_key = without(CLAIMS["tpm"], ("ak_public",))
    answers = vectors(engine, read("trusteeconfig-cpu.rego"), [
        (pcr11 | values, {"tpm": CLAIMS["tpm"]}), (pcr11 | TRUSTED, {"tpm": no_key}),
        (pcr11 | TRUSTED, {"tpm": CLAIMS["tpm"]})])
    assert [(a[0]["executables"], a[2]) for a in answers] == [(33, "warning")] * 2 + [(3, "affirming")]


@pytest.mark.parametrize("platform", DEBUG)
def test_a_vm_of_azure_whose_memory_the_host_may_read_is_not_affirming(engine, platform):
    debug = without(CLAIMS[platform], DEBUG[platform], True)
    [(claims, _, status)] = vectors(engine, read("trusteeconfig-cpu.rego"),
                                    [(reference_values()[platform], {platform: debug})])
    assert claims["configuration"] == 36 and status == "warning"


def more_azure_values(platform):
    """Values that the reference ignores, by the claim of the vector that they decide."""
    claims = CLAIMS[platform]
    if platform == "az-tdx-vtpm":
        return {"mr_td": ("hardware", [claims["quote"]["body"]["mr_td"]]),
                "xfam": ("configuration", [claims["quote"]["body"]["xfam"]])}
    return {"measurement": ("executables", [claims["measurement"]]),
            **{f"tcb_{part}": ("hardware", [claims[f"reported_tcb_{part}"]]) for part in TCB},
            **{name: ("configuration", [claims[claim]]) for claim, name in {**SNP_SETTINGS, **SNP_ABI}.items()}}


@pytest.mark.parametrize("platform", ["az-snp-vtpm", "az-tdx-vtpm"])
def test_more_values_of_azure_are_compared_where_they_are_given(engine, platform):
    """The difference from the reference: a value that is given counts, also an empty one."""
    values, more = reference_values()[platform], more_azure_values(platform)
    inputs = [({**values, **{name: value for name, (_, value) in more.items()}}, {platform: CLAIMS[platform]})]
    for name in more:
        inputs += [({**values, name: bad}, {platform: CLAIMS[platform]}) for bad in (["0badc0de"], [], {}, "x")]
    right, *answers = vectors(engine, read("trusteeconfig-cpu.rego"), inputs)
    assert right[2] == "affirming"
    unknown = {"executables": 33, "hardware": 97, "configuration": 36}
    for name, (decided, _) in more.items():
        for claims, _, _ in answers[:4]:
            assert claims == {**right[0], decided: unknown[decided]}, name
        del answers[:4]
    assert not answers


def test_identifiers_of_containers_are_those_of_the_reference(engine):
    def container(image=GONE, uid=GONE):
        annotations = {} if image is GONE else {"io.kubernetes.cri.image-name": image}
        return {"OCI": {"Annotations": annotations, "Process": {"User": {} if uid is GONE else {"UID": uid}}}}

    lists = [[], [container()], [container("a")], [container(uid=0)],
             [container("a", 1), container("b"), container("a", 1)]]
    inputs = [({}, {"se": {}, "init_data_claims": claims}) for claims in [
        None, {}, {"agent_policy_claims": None}, {"agent_policy_claims": {}},
        *({"agent_policy_claims": {"containers": c}} for c in lists)]]
    got = vectors(engine, read("trusteeconfig-cpu.rego"), inputs)
    assert got == vectors(engine, reference("cpu.rego"), inputs)
    assert got[-1][1][0]["value"] == {"validated": {"container_images": ["a", "b", "a"], "container_uids": [1, 1]}}


def nvidia():
    chain = {"x-nvidia-cert-ocsp-status": "good", "x-nvidia-cert-status": "valid"}
    steps = ("fetched", "measurements-available", "schema-validated", "signature-verified", "version-match")
    return {"secboot": True, "dbgstat": "disabled", "measres": "success", "x-nvidia-gpu-arch-check": True,
            "x-nvidia-gpu-vbios-version": "96", "x-nvidia-gpu-driver-version": "550",
            **{f"x-nvidia-gpu-{of}-rim-{step}": True for of in ("driver", "vbios") for step in steps},
            **{f"x-nvidia-gpu-attestation-report-{step}": True
               for step in ("parsed", "signature-verified", "cert-chain-fwid-match")},
            "x-nvidia-gpu-vbios-rim-cert-chain": chain, "x-nvidia-gpu-attestation-report-cert-chain": chain}


def test_a_trusteeconfig_trusts_the_gpus_that_the_reference_trusts(engine):
    claims = nvidia()
    values = {"allowed_vbios_versions": ["96"], "allowed_driver_versions": ["550"]}
    inputs = [(values, {"nvidia": claims}), ({}, {"nvidia": claims}), (values, {"nvidia": {}}), (values, {})]
    for name in values:
        inputs += [({**values, name: bad}, {"nvidia": claims}) for bad in (["0"], [], None)]
    for path, value in leaves(claims):
        inputs += [(values, {"nvidia": without(claims, path)}),
                   (values, {"nvidia": without(claims, path, wrong(value))})]
    got = vectors(engine, read("trusteeconfig-gpu.rego"), inputs)
    assert got == vectors(engine, reference("gpu.rego"), inputs)
    assert got[0][2] == "affirming" and len({str(g) for g in got}) > 4


def test_permissive_grants_what_the_reference_grants(engine):
    tokens = [{"values": {}, "submods": submods} for submods, _, _ in TOKENS.values()]
    got = ask(engine, read("trusteeconfig-cpu.rego"), read("trusteeconfig-allow.rego"), tokens)
    wanted = ask(engine, read("trusteeconfig-cpu.rego"), reference("allow.rego"), tokens)
    assert [granted(a) for a in got] == [granted(a) for a in wanted]
    assert "own" in granted(got[0]) and "plugin" not in granted(got[0])
