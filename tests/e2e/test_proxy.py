# SPDX-License-Identifier: MIT
"""Proxies: those of the environment are for registries, proxy-url of a kubeconfig is for its API server, and
a Trustee is always connected to directly."""

import re

import pytest

import ociimage
import pcrstool
import spine
import trustees
from connectproxy import ConnectProxy
from ociimage import Scripted
from tecctl import Tecctl
from teckinds import made
from test_images import job_of
from test_registry import LABEL, VALUE, ask, start_registry, tls  # pylint: disable=unused-import
from test_standalone import Standalone

NAME = "registry.test:5000"
start_place = trustees.start_place


@pytest.fixture(name="proxy")
def _proxy():
    with ConnectProxy() as proxy:
        yield proxy


@pytest.fixture(name="scripted")
def _scripted(proxy):
    """Known to the proxy only."""
    made_one = Scripted()
    proxy.hosts[NAME] = made_one.host
    yield made_one
    made_one.close()


@pytest.fixture(name="environment")
def _environment(monkeypatch):
    """Sets variables for what `ask` starts; None: unset."""
    def put(**variables):
        for name in ("http_proxy", "HTTP_PROXY", "https_proxy", "HTTPS_PROXY", "no_proxy", "NO_PROXY"):
            monkeypatch.delenv(name, raising=False)
        for name, value in variables.items():
            monkeypatch.setenv(name, value)
    put()
    return put


# Which variable is for what

@pytest.mark.parametrize("variable", ["https_proxy", "HTTPS_PROXY"])
def test_a_registry_is_reached_through_the_proxy(start_registry, ask, proxy, environment, variable):
    registry = start_registry()
    reference = registry.reference("a/b", registry.push_image("a/b", {LABEL: VALUE}))
    environment(**{variable: proxy.url})
    done = ask(reference)
    assert (done.returncode, done.stdout) == (0, VALUE + "\n"), done
    assert set(proxy.asked) == {registry.host}
    assert not any("Accept:" in head for head in proxy.heads), "the proxy sees the request's headers"
    proxy.asked.clear()
    for direct in ({"NO_PROXY": "127.0.0.0/8"}, {"no_proxy": "x.test, 127.0.0.1"}):
        environment(**{variable: proxy.url}, **direct)
        assert ask(reference).returncode == 0
    environment(http_proxy=proxy.url)
    assert ask(reference).returncode == 0 and not proxy.asked


def test_http_proxy_is_read_in_lower_case_only(start_registry, ask, proxy, environment):
    registry = start_registry(plain=True)
    reference = registry.reference("a/b", registry.push_image("a/b", {LABEL: VALUE}))
    environment(HTTP_PROXY=proxy.url, https_proxy=proxy.url)
    assert ask(reference, "--insecure", registry.host).returncode == 0 and not proxy.asked
    environment(http_proxy=proxy.url)
    done = ask(reference, "--insecure", registry.host)
    assert (done.returncode, done.stdout) == (0, VALUE + "\n"), done
    assert set(proxy.asked) == {registry.host}


def test_what_is_wrong_with_a_proxy_is_said(start_registry, ask, environment):
    registry = start_registry()
    reference = registry.reference("a/b", registry.push_image("a/b", {LABEL: VALUE}))
    environment(https_proxy="socks5://user:secret@127.0.0.1:1080")
    done = ask(reference)
    assert done.returncode == 1 and done.stderr.startswith("invalid: "), done
    assert "socks5 are not supported" in done.stderr and "secret" not in done.stderr, done
    environment(https_proxy="http://user:secret@127.0.0.1:1")
    done = ask(reference)
    assert done.returncode == 1 and "through proxy 127.0.0.1:1: Connection refused" in done.stderr, done
    assert "secret" not in done.stderr


# Where a registry may send us

def test_a_redirect_does_not_lead_through_the_proxy_to_its_neighbours(ask, proxy, scripted, environment):
    """What the proxy resolves is the proxy's matter; an address in the URL is refused as without a proxy. A
    host without a proxy is as far from this registry as from a public one."""
    victim = Scripted()
    try:
        environment(http_proxy=proxy.url, no_proxy="localhost")
        port = victim.host.partition(":")[2]
        for target in (victim.host, f"0x7f.1:{port}", f"localhost:{port}", "10.0.0.1:80", "169.254.169.254:80"):
            scripted.answers["/v2/a/b/manifests/sha256:" + 64 * "0"] = (302, {"Location": f"http://{target}/x"}, b"")
            proxy.asked.clear()
            done = ask(f"{NAME}/a/b@sha256:{64 * '0'}", "--insecure", NAME, "--insecure", target,
                       "--insecure", victim.host)  # curl writes 0x7f.1 so
            assert done.returncode == 1 and "redirects to a " in done.stderr, done
            assert "its own address is public" in done.stderr and proxy.asked == [NAME], done
        assert not victim.seen
    finally:
        victim.close()


# The programs

def test_the_operator_uses_it_for_registries_alone(cp, ns, proxy, scripted, start_operator, start_place):
    place = start_place()
    trustees.managed(cp, ns, place)
    reference = scripted.serve(ociimage.gz(ociimage.tar(("etc/x", b"y")))).replace(scripted.host, NAME)
    start_operator(ns, "--kbs-url", place.url, "--insecure-registry", NAME, env=proxy.env())
    trustees.synced(cp, ns)
    made(cp, "ai", ns, {"image": reference}, "a")
    job_of(cp, ns, "a")  # the image has no label
    assert set(proxy.asked) == {NAME} and scripted.asked("/blobs/")


def test_values_are_computed_of_an_image_behind_it(tmp_path, proxy, scripted):
    """By --standalone, whose children begin with an empty environment, by tecctl and by the tool."""
    reference = scripted.serve(ociimage.gz(ociimage.tar(("etc/x", b"y")))).replace(scripted.host, NAME)
    alone = Standalone(str(tmp_path / "state"), "--public-address=127.0.0.1", f"--insecure-registry={NAME}",
                       env=proxy.env())
    alone.start()
    try:
        spine.machine_at_request(alone, "trusted-execution-clusters")
        made(alone, "ai", "trusted-execution-clusters", {"image": reference}, "a")
        spine.wait_condition(alone, "trusted-execution-clusters", "ai", "a", "Committed", "ComputationFailed", 30)
        assert len({path for path, _ in scripted.asked("/blobs/")}) == 2, "the configuration and the layer"
        scripted.seen.clear()
        ctl = Tecctl(f"{alone.dir}/kubeconfig")
        out, err = ctl.run("image", "approve", "--image", NAME + "/a/b:stable", "--insecure-registry", NAME, "--name=b",
                           "--wait=1", code=1, env=proxy.env())
        assert scripted.asked("/manifests/stable"), (out, err)
    finally:
        assert alone.stop() == 0, alone.log()
    scripted.seen.clear()
    (tmp_path / "image").mkdir()
    done = pcrstool.run("fetch", reference, "--insecure-registry", NAME, "--into", tmp_path / "image", env=proxy.env())
    assert done.returncode == 0 and scripted.asked("/blobs/"), done
    assert set(proxy.asked) == {NAME}


def test_the_api_server_is_behind_proxy_url(cp, ns, proxy, start_operator):
    """HTTP/2 through it, with watches; the environment names another one, which is not asked."""
    kubeconfig = cp.service_account_kubeconfig(ns, "tec-operator")
    with open(kubeconfig, encoding="utf-8") as f:
        text = f.read()
    host = re.search(r"server: https://(\S+)", text)[1]
    proxy.hosts["api.test:6443"] = host
    name = "tls-server-name: " + host.rpartition(":")[0]
    with open(kubeconfig, "w", encoding="utf-8") as f:
        f.write(re.sub(r"( *)server: \S+", rf"\1server: https://api.test:6443\n\1proxy-url: {proxy.url}\n\1{name}",
                       text))
    with ConnectProxy() as other:
        op = start_operator(ns, env=other.env(), kubeconfig=kubeconfig)
        spine.make_cluster(cp, ns)
        spine.wait_condition(cp, ns, "tec", "tec", "Installed", "InstallationCompleted")
        assert "proto=h2" in op.log_text()
        assert Tecctl(kubeconfig, ns).run("status", code=None)[0]
        assert set(proxy.asked) == {"api.test:6443"} and not other.asked
