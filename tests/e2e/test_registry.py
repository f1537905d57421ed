# SPDX-License-Identifier: MIT
"""oci/ against Debian's docker-registry: what it calls an index, a manifest, a challenge."""

import base64
import json
import os
import subprocess

import pytest

import ociregistry
import spine
from conftest import lacking, need_registry
from controlplane import TOP, wait_for
from ociregistry import PASSWORD, USER, Registry
from teckinds import made

LABEL = "org.coreos.pcrs"
VALUE = '{"pcrs":[{"id":4,"value":"ä"}]}'


@pytest.fixture(scope="module")
def tls(tmp_path_factory):
    need_registry()
    return ociregistry.make_certificate(str(tmp_path_factory.mktemp("tls")))


@pytest.fixture
def start_registry(tls, tmp_path):
    started = []

    def start(plain=False, password=False):
        started.append(Registry(str(tmp_path / f"registry-{len(started)}"),
                                None if plain else tls, password))
        return started[-1]

    yield start
    for registry in started:
        registry.close()


@pytest.fixture
def ask(tls):
    binary = os.path.join(os.environ.get("TEC_BUILDDIR", TOP), "tests/tools/tec-test-oci")
    if not os.access(binary, os.X_OK):
        lacking(f"no {binary}; next step: make")

    def run(reference, *options, label=LABEL):
        return subprocess.run([binary, "--ca", tls[0], *options, reference, label],
                              capture_output=True, text=True, check=False, timeout=60)

    return run


def docker_config(path, host, user=USER, password=PASSWORD):
    auth = base64.b64encode(f"{user}:{password}".encode()).decode()
    path.write_text(json.dumps({"auths": {host: {"auth": auth}}}))
    return str(path)


@pytest.mark.parametrize("docker", [False, True], ids=["oci", "docker"])
def test_an_index_leads_to_the_label_of_the_platform(start_registry, ask, docker):
    registry = start_registry()
    images = {arch: registry.push_image("a/b", {LABEL: f"{VALUE} {arch}", "x": "y"}, arch, docker)
              for arch in ("amd64", "arm64")}
    index = registry.reference("a/b", registry.push_index("a/b", images, docker))
    for arch in images:
        done = ask(index, "--arch", arch)
        assert (done.returncode, done.stdout) == (0, f"{VALUE} {arch}\n"), done
    done = ask(index, "--arch", "s390x")
    assert done.returncode == 1 and done.stderr.startswith("invalid: "), done
    assert "not list an image for linux/s390x" in done.stderr
    done = ask(registry.reference("a/b", images["arm64"]))
    assert (done.returncode, done.stdout) == (0, f"{VALUE} arm64\n"), done
    assert ask(index, label="y").returncode == 3


def test_what_is_not_there_is_not_found(start_registry, ask):
    registry = start_registry()
    image = registry.push_image("a/b", None)
    assert ask(registry.reference("a/b", image)).returncode == 3
    for reference in (registry.reference("other", image),
                      registry.reference("a/b", {"digest": "sha256:" + 64 * "0"})):
        done = ask(reference)
        assert done.returncode == 1 and done.stderr.startswith("not-found: "), done


def test_a_password_is_needed_and_the_right_one(start_registry, ask, tmp_path):
    registry = start_registry(password=True)
    reference = registry.reference("a/b", registry.push_image("a/b", {LABEL: VALUE}))
    config = tmp_path / "config.json"
    for options in ((), ("--docker-config", docker_config(config, "elsewhere.test")),
                    ("--docker-config", docker_config(tmp_path / "wrong", registry.host,
                                                      password="no"))):
        done = ask(reference, *options)
        assert done.returncode == 1 and done.stderr.startswith("denied: "), done
    done = ask(reference, "--docker-config", docker_config(config, registry.host + "/a"))
    assert (done.returncode, done.stdout) == (0, VALUE + "\n"), done


def test_plain_http_only_where_it_is_allowed(start_registry, ask):
    registry = start_registry(plain=True)
    reference = registry.reference("a/b", registry.push_image("a/b", {LABEL: VALUE}))
    assert ask(reference).returncode == 1
    assert ask(reference, "--insecure", "127.0.0.1:1").returncode == 1
    done = ask(reference, "--insecure", registry.host)
    assert (done.returncode, done.stdout) == (0, VALUE + "\n"), done


def test_a_certificate_of_another_ca_is_refused(start_registry, ask):
    registry = start_registry()
    reference = registry.reference("a/b", registry.push_image("a/b", {LABEL: VALUE}))
    done = ask(reference, "--ca", "/etc/ssl/certs/ca-certificates.crt")
    assert done.returncode == 1, done


def test_mirrors_are_asked_first_and_may_fail(start_registry, ask):
    origin, mirror = start_registry(), start_registry()
    image = origin.push_image("a/b", {LABEL: VALUE})
    assert mirror.push_image("hub/a/b", {LABEL: VALUE}) == image
    reference = origin.reference("a/b", image)
    with_mirror = ("--mirror", f"{origin.host}={mirror.host}/hub")
    origin.close()
    done = ask(reference, *with_mirror)
    assert (done.returncode, done.stdout) == (0, VALUE + "\n"), done
    mirror.close()
    done = ask(reference, *with_mirror)
    assert done.returncode == 1 and done.stderr.splitlines()[-1].startswith("transient: "), done
    assert f"tried {mirror.host}, {origin.host}" in done.stderr
    origin.proc.start()
    wait_for(origin.answers, 20, "the registry to answer")
    done = ask(reference, *with_mirror)
    assert (done.returncode, done.stdout) == (0, VALUE + "\n"), done


def test_the_operator_reads_a_label_with_its_password(start_registry, cp, ns, start_operator,
                                                      tmp_path):
    """Through the process that asks for it: credentials and mirrors go in, the label and what was
    worth a line of the log come out."""
    registry = start_registry(plain=True, password=True)
    reference = registry.reference("a/b", registry.push_image("a/b", {LABEL: '{"pcrs":[]}'}))
    spine.make_cluster(cp, ns)
    op = start_operator(ns, "--insecure-registry", registry.host,
                        "--registry-mirror", f"{registry.host}=127.0.0.1:1/hub",
                        "--registry-auth", docker_config(tmp_path / "auth", registry.host + "/a"))
    made(cp, "ai", ns, {"image": reference}, "os")
    cp.wait_for(lambda: "the list of PCRs is missing" in op.log_text(), 20, "the label's content")
    assert "registry mirror failed" in op.log_text()
    assert PASSWORD not in op.log_text()
