# SPDX-License-Identifier: MIT
"""The command line of tec-operator: what it refuses, with which exit code and words, and the runs
that end by themselves."""

import os
import socket
import subprocess

import pytest

from controlplane import TOP
from proc import free_port
from tecproc import operator_binary


def run(*args, env=None):
    """A run that ends by itself."""
    merged = {k: v for k, v in os.environ.items() if k != "KUBECONFIG"}
    return subprocess.run([operator_binary(), *args], capture_output=True, text=True, check=False,
                          timeout=20, env={**merged, **(env or {})})


def local(cp, *more):
    """Options with which a start would succeed, but for MORE."""
    given = {"--kubeconfig": cp.admin_kubeconfig, "--namespace": "default",
             "--listen-register": "127.0.0.1:0", "--listen-register-ak": "127.0.0.1:0",
             "--listen-health": "127.0.0.1:0"}
    given.update(zip(more[::2], more[1::2]))
    return [word for pair in given.items() for word in pair]


@pytest.mark.parametrize("option", ["--listen-register", "--listen-register-ak", "--listen-health"])
def test_a_port_in_use_is_one_line_that_says_what_to_do(cp, option):
    with socket.create_server(("127.0.0.1", 0)) as taken:
        address = "127.0.0.1:%d" % taken.getsockname()[1]
        done = run(*local(cp, option, address))
    said = [line for line in done.stderr.splitlines() if not line.startswith("20")]  # the log
    assert done.returncode == 1 and len(said) == 1, done
    assert option in said[0] and address in said[0] and "in use" in said[0].lower(), said


def test_unusable_kubeconfigs_are_one_line(cp, tmp_path):
    broken = tmp_path / "broken"
    broken.write_text("clusters: [")
    for path in (str(tmp_path / "none"), str(broken)):
        done = run(*local(cp, "--kubeconfig", path))
        assert done.returncode == 1 and len(done.stderr.splitlines()) == 1, done
        assert path in done.stderr, done


@pytest.mark.parametrize("args, named", [
    (["--no-such"], "--no-such"), (["--no-such=1"], "--no-such"), (["word"], "word"),
    (["--"], "--"), (["--namespace"], "--namespace"), (["--role", "king"], "--role"),
    (["--role", "all", "--role", "all"], "--role"), (["--help=1"], "--help"),
    (["--rate-limit", "5"], "--rate-limit"), (["--rate-limit", "0,0"], "--rate-limit"),
    (["--max-connections", "-1"], "--max-connections"),
    (["--max-connections", "1x"], "--max-connections"),
    (["--listen-register", "here"], "--listen-register"),
    (["--listen-register-ak", "127.0.0.1:99999"], "--listen-register-ak"),
    (["--listen-health", "localhost:1"], "--listen-health"),
    (["--log-level", "loud"], "--log-level"), (["--log-format=xml"], "--log-format"),
    (["--leader-elect=maybe"], "--leader-elect"), (["--seed", "a"], "--seed"),
    (["--registry-mirror", "quay.io"], "--registry-mirror"),
    (["--registry-mirror", "a.io=b,"], "--registry-mirror"),
    (["--registry-mirror", "a.io=b/C"], "--registry-mirror"),
    (["--insecure-registry", "http://a.io"], "--insecure-registry"),
    (["--insecure-registry", "a,,b"], "--insecure-registry"),
    (["--config", "/nonexistent"], "/nonexistent")])
def test_bad_options_end_with_2_and_name_the_option(args, named):
    done = run(*args)
    assert done.returncode == 2, done
    assert named in done.stderr.splitlines()[0] and done.stdout == ""


def test_config_files_that_are_wrong_name_the_line(tmp_path):
    for text, line in (("log-level = loud\n", None), ("# x\nno-such = 1\n", 2), ("log-level\n", 1),
                       ("help = true\n", 1), ("namespace = a\nnamespace = b\n", 2)):
        file = tmp_path / "conf"
        file.write_text(text)
        done = run("--config", str(file))
        assert done.returncode == 2, (text, done)
        assert (f"{file} line {line}:" if line else "log-level") in done.stderr, (text, done)


def test_check_config_starts_nothing(cp, tmp_path):
    done = run(*local(cp), "--check-config")
    assert (done.returncode, done.stderr.count("starts")) == (0, 0) and "usable" in done.stdout
    assert run(*local(cp, "--kubeconfig", str(tmp_path / "none")), "--check-config").returncode == 1
    assert run("--check-config", "--role", "x").returncode == 2


def test_check_config_makes_no_standalone_directory(tmp_path):
    state = tmp_path / "state"
    ports = [f"--listen-{name}=127.0.0.1:{free_port()}" for name in ("api", "kbs", "register", "register-ak", "health")]

    def check(*options):
        done = run(*ports, *options, f"--standalone={state}", "--check-config")
        return done.returncode, done.stdout + done.stderr

    code, said = check("--public-address=192.0.2.1")
    assert code == 0 and "usable" in said and "listening" not in said, said
    assert os.listdir(tmp_path) == []
    code, said = check(f"--sealing-key={tmp_path}/absent")
    assert code == 1 and f"{tmp_path}/absent" in said, said
    state.mkdir(0o755)
    code, said = check()
    assert code == 1 and "chmod 0700" in said, said
    state.chmod(0o700)
    assert check()[0] == 0 and os.listdir(state) == []
    (state / "store.db").write_bytes(b"")
    code, said = check()
    assert code == 1 and "sealing.key" in said and os.listdir(state) == ["store.db"], said


def test_registry_options_are_read_and_checked(cp, tmp_path):
    auth = tmp_path / "auth"
    options = local(cp, "--registry-mirror", "docker.io=[::1]:5000/x, quay.io=b:1",
                    "--insecure-registry", "b:1, [::1]:5000", "--registry-auth", str(auth))
    done = run(*options, "--check-config")  # an optional Secret that nobody made
    assert done.returncode == 0 and "no registry credentials" in done.stderr and str(auth) in done.stderr, done
    auth.write_text("")
    done = run(*options, "--check-config")
    assert done.returncode == 1 and str(auth) in done.stderr, done
    auth.write_text('{"auths":{}}')
    done = run(*options, "--check-config")
    assert done.returncode == 0, done


def test_help_version_and_the_sample_file(tmp_path):
    assert "--listen-register" in run("--help").stdout
    assert run("--version").stdout.startswith("tec-operator ")
    sample = tmp_path / "sample"
    sample.write_text(run("--print-config").stdout)
    assert "listen-register" in sample.read_text()
    assert run("--config", str(sample), "--help").returncode == 0


def test_seed_copies_the_policies(tmp_path):
    src, dst = tmp_path / "src", tmp_path / "dst"
    src.mkdir()
    dst.mkdir()
    assert run("--seed", str(src), str(dst)).returncode == 1
    for name in ("resource-policy.rego", "default_cpu.rego"):
        (src / name).write_text(f"package {name}\n")
    for _ in range(2):
        done = run("--seed", str(src), str(dst))
        assert done.returncode == 0, done
    found = sorted(str(p.relative_to(dst)) for p in dst.rglob("*") if p.is_file())
    assert found == ["attestation_service_policy/default_cpu.rego", "kbs/resource-policy.rego"]
    assert (dst / found[1]).read_text() == "package resource-policy.rego\n"


def test_seed_copies_resources(tmp_path):
    src, dst = tmp_path / "src", tmp_path / "dst"
    src.mkdir()
    (src / "default\\x2Fa\\x2Fkey").write_bytes(b"\0value")
    assert run("--seed-resources", str(src), str(dst)).returncode == 1
    dst.mkdir()
    for _ in range(2):
        done = run("--seed-resources", str(src), str(dst))
        assert done.returncode == 0, done
    assert [(p.name, p.read_bytes()) for p in dst.iterdir()] == [("default\\x2Fa\\x2Fkey", b"\0value")]


@pytest.mark.parametrize("attestation, resource", [
    ("tpm.rego", "resource.rego"), ("tpm-shared.rego", "resource-shared.rego"),
    ("tpm-v017.rego", "resource-shared.rego")])
def test_a_fresh_storage_gets_exactly_the_two_policies(tmp_path, attestation, resource):
    """Each pair fits what --seed takes, and whatever else the ConfigMap holds stays out."""
    src, dst = tmp_path / "src", tmp_path / "dst"
    src.mkdir()
    dst.mkdir()
    wanted = {}
    for name, key, place in ((attestation, "default_cpu.rego", "attestation_service_policy"),
                             (resource, "resource-policy.rego", "kbs")):
        with open(os.path.join(TOP, "etc", name), encoding="utf-8") as f:
            wanted[f"{place}/{key}"] = f.read()
        (src / key).write_text(wanted[f"{place}/{key}"])
    (src / "default_gpu.rego").write_text("")
    done = run("--seed", str(src), str(dst))
    assert done.returncode == 0, done
    assert {str(p.relative_to(dst)): p.read_text() for p in dst.rglob("*") if p.is_file()} == wanted
