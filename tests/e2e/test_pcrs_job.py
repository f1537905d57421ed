# SPDX-License-Identifier: MIT
"""compute-pcrs as the operator's Job runs it: the Job's own arguments, its ServiceAccount's token, an
image's files, and the real API server. What it writes the operator commits."""

import json
import os
import shutil
import subprocess
import threading
import urllib.parse

import pytest

import pcrstool
import spine
from conftest import lacking
from faultproxy import CUT, CUT_AFTER, Answer, FaultProxy
from kubeapi import describe
from test_images import PCRS, approve, entry, job_writes, reference, values
from test_images import _running  # noqa: F401  (fixture "running")
from teckinds import made

MAP = "image-pcrs.json"


@pytest.fixture(scope="module")
def root(tmp_path_factory):
    return pcrstool.make_root(tmp_path_factory.mktemp("image"))


@pytest.fixture(scope="module")
def expected(root):
    return json.loads(pcrstool.run("all", "-r", root).stdout)["pcrs"]


def entries(cp, ns):
    return json.loads(spine.read(cp, ns, "configmaps", "image-pcrs")["data"][MAP])


def command(root, kubeconfig, args):
    return [pcrstool.binary(), *args, "-r", root, "--kubeconfig", kubeconfig]


def args_of(name):
    return ["--image", reference(name), "--resource-name", name]


def run(root, kubeconfig, args):
    return pcrstool.run(*command(root, kubeconfig, args)[1:])


@pytest.fixture(name="config")
def _config(cp, ns, tmp_path):
    """As in the Pod: the token lies in a file."""
    return cp.service_account_kubeconfig(ns, PCRS, token_file=str(tmp_path / "token"))


@pytest.fixture
def proxied(config, tmp_path):
    opened = []

    def make(rule):
        opened.append(FaultProxy(config, str(tmp_path), rule))
        return opened[-1]

    yield make
    for proxy in opened:
        proxy.close()


def writes(cp, ns, since):
    return cp.writes_by(f"system:serviceaccount:{ns}:{PCRS}", since)


def test_what_the_job_writes_is_committed(cp, ns, running, root, config, expected):
    job = approve(cp, ns, "a")
    container = job["spec"]["template"]["spec"]["containers"][0]
    assert container["command"] == [PCRS]
    done = run(root, config, container["args"])
    assert done.returncode == 0 and "wrote the values of a" in done.stdout, done
    spine.wait_condition(cp, ns, "ai", "a", "Committed", "ImageCommitted")
    found = entries(cp, ns)["a"]
    assert found["reference"] == reference("a") and found["pcrs"] == expected
    arrays, boots = values(cp, ns)
    assert arrays["tpm_pcr4"] == [expected[0]["value"]]
    assert arrays["tpm_pcr14"] == [expected[1]["value"]]
    assert boots == [f"boot.{expected[0]['value']}.{expected[1]['value']}"]

    # The Job's second Pod finds it there.
    mark = cp.audit.mark()
    done = run(root, config, container["args"])
    assert done.returncode == 0 and "are there already" in done.stdout, done
    assert writes(cp, ns, mark) == [], describe(writes(cp, ns, mark))
    assert entries(cp, ns)["a"] == found


def test_what_else_the_image_may_show(cp, ns, running, tmp_path, config):
    """A loader of unknown make gives several values; those for Secure Boot off wait for spec.secureBoot."""
    root = pcrstool.make_root(tmp_path / "image", second=pcrstool.FALLBACK)
    tool = json.loads(pcrstool.run("all", "--variants", "-r", root).stdout)["variants"]
    assert len(tool) == 4, tool
    approve(cp, ns, "a")
    assert run(root, config, args_of("a")).returncode == 0
    spine.wait_condition(cp, ns, "ai", "a", "Committed", "ImageCommitted")
    found = entries(cp, ns)["a"]
    assert found["pcrs"] == tool[0]["pcrs"]
    assert [{k: v[k] for k in ("when", "pcrs")} for v in found["variants"]] == tool[1:]
    assert [v["secure_boot"] for v in found["variants"]] == [True, False, False]
    # A loader that measures the kernel once does so in both states.
    names = [f"boot.{v['pcrs'][0]['value']}.{v['pcrs'][1]['value']}" for v in tool]
    assert sorted(values(cp, ns)[1]) == sorted(names[:2])
    for setting, n in (("Any", 3), ("Required", 2)):
        spine.merge(cp, ns, "ai", "a", {"spec": {"secureBoot": setting}})
        cp.wait_for(lambda n=n: len(values(cp, ns)[1]) >= n and len(values(cp, ns)[0]["tpm_pcr4"]) == n, 10,
                    f"{n} values")
    # The Job's second Pod finds it there.
    mark = cp.audit.mark()
    done = run(root, config, args_of("a"))
    assert done.returncode == 0 and "are there already" in done.stdout, done
    assert writes(cp, ns, mark) == [], describe(writes(cp, ns, mark))


def test_in_a_pod_nothing_but_the_jobs_arguments_is_needed(cp, ns, running, root, tmp_path):
    """Token, certificate and namespace lie where Kubernetes mounts them, the server's address is in
    the environment: the process gets a /run of its own for that."""
    if subprocess.run(["unshare", "-rm", "mount", "-t", "tmpfs", "none", "/run"], check=False,
                      capture_output=True).returncode:
        lacking("no mount namespace may be made here")
    account = tmp_path / "account"
    account.mkdir()
    (account / "token").write_text(cp.service_account_token(ns, PCRS))
    (account / "namespace").write_text(ns)
    shutil.copy(cp.ca_file, account / "ca.crt")
    server = urllib.parse.urlsplit(cp.server)
    env = {"PATH": os.environ["PATH"], "KUBERNETES_SERVICE_HOST": server.hostname,
           "KUBERNETES_SERVICE_PORT": str(server.port)}
    script = ('mount -t tmpfs none /run && mkdir -p /run/secrets/kubernetes.io && '
              'cp -r "$0" /run/secrets/kubernetes.io/serviceaccount && exec "$@"')
    done = subprocess.run(["unshare", "-rm", "sh", "-c", script, account, pcrstool.binary(),
                           *args_of("a"), "-r", root], env=env, capture_output=True, text=True,
                          check=False, timeout=60)
    assert done.returncode == 0 and "wrote the values of a" in done.stdout, done
    assert list(entries(cp, ns)) == ["a"]


def test_other_entries_stay_and_an_old_one_is_replaced(cp, ns, running, root, config, expected):
    job_writes(cp, ns, "b", {"reference": "x", "unknown": [1.5, "\u00e4", None]})
    job_writes(cp, ns, "a", entry("a"))
    done = run(root, config, args_of("a"))
    assert done.returncode == 0, done
    found = entries(cp, ns)
    assert found["b"] == {"reference": "x", "unknown": [1.5, "\u00e4", None]}
    assert found["a"]["pcrs"] == expected
    # The same image: it was first seen when it was.
    assert found["a"]["first_seen"] == entry("a")["first_seen"]
    job_writes(cp, ns, "a", dict(found["a"], reference="another"))
    assert run(root, config, args_of("a")).returncode == 0
    assert entries(cp, ns)["a"]["first_seen"] > entry("a")["first_seen"]


def test_platforms_are_told_one_by_one(cp, ns, running, root, config, expected, tmp_path):
    """PCR 7 where it can be had, else why; and what is wrong with one costs the others nothing."""
    good = pcrstool.files_of(pcrstool.write_efivars("debian12-shim-grub", tmp_path / "vars"))
    off = pcrstool.files_of(pcrstool.write_efivars("debian12-shim-sdboot-off", tmp_path / "off"))
    unsigned = {k: v for k, v in good.items() if not k.startswith("db-")}
    broken = dict(good, **{pcrstool.PLATFORM[4]: b"abc"})
    platforms = {"good": good, "off.example": off, "unsigned": unsigned, "broken": broken, "empty": {}}
    args = args_of("a") + ["--platform", f"none={tmp_path}/none"]
    for name, files in platforms.items():
        args += ["--platform", f"{name}={pcrstool.mount_configmap(files, tmp_path / name)}"]
    done = run(root, config, args)
    assert done.returncode == 0 and "platform none: cannot open" in done.stderr, done
    found = entries(cp, ns)["a"]
    assert set(found) - {"variants"} == {"first_seen", "pcrs", "platforms", "reference"}
    assert found["pcrs"] == expected
    assert [(p["name"], p["variables"]) for p in found["platforms"]] == [
        (name, pcrstool.platform_digest(files)) for name, files in platforms.items()]
    told = {p.pop("name"): p for p in found["platforms"]}
    alone = pcrstool.run("pcr7", "-r", root, "--efivars", tmp_path / "vars")
    assert told["good"]["pcrs"] == [json.loads(alone.stdout)]
    assert told["good"]["pcrs"][0]["value"] == pcrstool.boot_registers("debian12-shim-grub")[7]
    for name, words in (("off.example", "Secure Boot is off"), ("unsigned", "signer is not in db"),
                        ("broken", "shorter than its 4 bytes"), ("empty", "Secure Boot is off")):
        assert set(told[name]) == {"variables", "why"} and words in told[name]["why"], told[name]

    mark = cp.audit.mark()
    done = run(root, config, args)
    assert done.returncode == 0 and "are there already" in done.stdout, done
    assert writes(cp, ns, mark) == []
    # Without platforms the entry is what it was before there were any.
    assert run(root, config, args_of("a")).returncode == 0
    assert "platforms" not in entries(cp, ns)["a"]


def test_many_jobs_at_once_lose_nothing(cp, ns, running, root, config, expected):
    names = [f"image-{i}" for i in range(12)]
    for name in names:
        made(cp, "ai", ns, {"image": reference(name)}, name)
    env = {k: v for k, v in os.environ.items() if k not in ("KUBECONFIG", "POD_NAMESPACE")}
    children = [subprocess.Popen(command(root, config, args_of(n)), env=env, stdout=subprocess.PIPE,
                                 stderr=subprocess.PIPE, text=True) for n in names]
    for child in children:
        out, err = child.communicate(timeout=120)
        assert child.returncode == 0, (out, err)
    found = entries(cp, ns)
    assert sorted(found) == sorted(names) and all(e["pcrs"] == expected for e in found.values())
    for name in names:
        spine.wait_condition(cp, ns, "ai", name, "Committed", "ImageCommitted")


def test_a_conflict_is_tried_again_from_a_fresh_read(cp, ns, running, root, proxied):
    """Somebody writes between the Job's read and its write."""
    met = threading.Event()

    def rule(request):
        if request.write == 1:
            job_writes(cp, ns, "b", entry("b"))
            met.set()
    proxy = proxied(rule)
    done = run(root, proxy.kubeconfig, args_of("a"))
    assert done.returncode == 0 and met.is_set(), done
    assert [r.method for r in proxy.log] == ["GET", "PATCH", "GET", "PATCH"]
    assert sorted(entries(cp, ns)) == ["a", "b"] and "not written yet" in done.stderr
    assert entries(cp, ns)["b"] == entry("b")


@pytest.mark.parametrize("fault", [CUT, CUT_AFTER, Answer(500, "InternalError"), Answer(409, "Conflict"),
                                   Answer(429, "TooManyRequests", ["Retry-After: 1"])],
                         ids=["cut", "cut-after", "500", "409", "429"])
@pytest.mark.parametrize("nth", [1, 2])
def test_an_api_server_that_falters_is_asked_again(cp, ns, running, root, proxied, expected, fault, nth):
    seen = []

    def rule(request):
        seen.append(request)
        return fault if len(seen) == nth else None
    done = run(root, proxied(rule).kubeconfig, args_of("a"))
    assert done.returncode == 0, done
    assert entries(cp, ns)["a"]["pcrs"] == expected


def test_refusals_end_it_and_say_what_to_do(cp, ns, running, root, config, proxied):
    other = cp.create_namespace()
    done = pcrstool.run(*command(root, config, args_of("a"))[1:], "--namespace", other)
    assert done.returncode == 1 and "next step" in done.stderr and other in done.stderr, done
    # Rights, but no ConfigMap: no operator has been here.
    done = pcrstool.run(*command(root, cp.admin_kubeconfig, args_of("a"))[1:], "--namespace", other)
    assert done.returncode == 1 and "the operator makes it" in done.stderr, done
    done = run(root, proxied(lambda r: Answer(403, "Forbidden") if r.write else None).kubeconfig,
               args_of("a"))
    assert done.returncode == 1 and "ServiceAccount compute-pcrs" in done.stderr, done
    status, answer = cp.api("PATCH", spine.path_of(ns, "configmaps", "image-pcrs"),
                            {"data": {MAP: "[1]"}}, "merge")
    assert status == 200, answer
    mark = cp.audit.mark()
    done = run(root, config, args_of("a"))
    assert done.returncode == 1 and "no JSON object" in done.stderr, done
    assert writes(cp, ns, mark) == []


def test_an_image_that_would_not_boot_reaches_no_api_server(cp, ns, running, tmp_path, config):
    root = pcrstool.make_root(tmp_path / "image")
    kernel = os.path.join(root, pcrstool.kernel_path())
    with open(kernel, "r+b") as f:
        f.seek(os.path.getsize(kernel) // 2)
        byte = f.read(1)
        f.seek(-1, os.SEEK_CUR)
        f.write(bytes([byte[0] ^ 1]))
    mark = cp.audit.mark()
    done = run(root, config, args_of("a"))
    assert done.returncode == 1 and pcrstool.kernel_path() in done.stderr, done
    assert "other bytes" in done.stderr and len(done.stderr.splitlines()) == 1
    assert cp.requests_by(f"system:serviceaccount:{ns}:{PCRS}", mark) == []
