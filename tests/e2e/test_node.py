# SPDX-License-Identifier: MIT
"""tec-node against the one-process operator, with a TPM in software: from the first boot's Ignition to a
disk that Debian's clevis opens, and what is refused."""

import base64
import contextlib
import json
import os
import shutil
import signal
import subprocess
import time

import pytest

import tecnode
import softtpm
import spine
from controlplane import PATIENCE, TOP, wait_for
from proc import free_port
from test_images import PCR14, registry
from test_standalone import Standalone
from test_standalone_attest import approve_image, boot

SECRET = b"correct horse battery staple"

pytestmark = [
    pytest.mark.skipif(softtpm.missing() is not None, reason=str(softtpm.missing())),
    pytest.mark.skipif(tecnode.missing_tools() is not None, reason=str(tecnode.missing_tools())),
]


@pytest.fixture(scope="module")
def alone(tmp_path_factory):
    s = Standalone(str(tmp_path_factory.mktemp("standalone") / "state"), "--public-address=127.0.0.1",
                   f"--insecure-registry={registry()}")
    s.start()
    spine.machine_at_request(s, "trusted-execution-clusters")
    approve_image(s, "a")
    yield s
    if s.process.poll() is None:
        assert s.stop() == 0, s.log()


class Machine:
    """A node that fetched its Ignition: TPM, tec-node, and the pin's configuration from the answer."""

    def __init__(self, alone, directory, image="a"):
        self.alone = alone
        self.tpm = softtpm.SoftwareTPM()
        self.dir = str(directory)
        boot(self.tpm, image)
        self.node = tecnode.TecNode(self.dir, self.tpm.tcti)
        self.config = spine.asked(alone)
        self.path = self.config["path"]
        self.uuid = self.path.split("/")[1]
        self.name = f"machine-{self.uuid}"
        self.url = f"https://127.0.0.1:{alone.kbs}"
        pinned = os.path.join(self.dir, "servers.crt")
        with open(pinned, "w", encoding="ascii") as f:
            f.write(self.config["servers"][0]["cert"])
        self.to_kbs = [f"--url={self.url}", f"--cert-file={pinned}"]

    def stop(self):
        self.tpm.stop()

    def server(self):
        """Trustee's part, which the configuration of the Ignition answer pins."""
        return dict(self.config["servers"][0], url=self.url)

    def here(self, **changes):
        """The configuration, which may have been changed."""
        return json.dumps({**self.config, **changes})

    def encrypt(self, plain=SECRET, **changes):
        return self.node.good("clevis", "encrypt", "trustee", self.here(**changes), stdin=plain)

    def get(self, path=None, *args):
        return self.node.run("get-resource", *self.to_kbs, f"--path={path or self.path}", *args)

    def disk_key(self):
        secret = json.loads(self.alone.kubectl("get", "secret", self.uuid, "-o", "json"))
        return base64.b64decode(secret["data"]["root"])


@pytest.fixture(scope="module")
def machine(alone, tmp_path_factory):
    m = Machine(alone, tmp_path_factory.mktemp("node"))
    yield m
    m.stop()


@pytest.fixture(scope="module")
def jwe(machine):
    """What the first boot does: no key, no registration yet."""
    return machine.encrypt()


def header(jwe):
    first = jwe.split(b".")[0].decode()
    return json.loads(base64.urlsafe_b64decode(first + "=" * (-len(first) % 4)))


def test_the_first_boot_registers_and_encrypts(alone, machine, jwe):
    assert SECRET not in jwe and len(jwe.split(b".")) == 5
    protected = header(jwe)
    assert (protected["alg"], protected["enc"], jwe.split(b".")[1]) == ("dir", "A256GCM", b"")
    clevis = protected["clevis"]
    assert (clevis["pin"], clevis["path"], clevis["initdata"]) == ("trustee", machine.path, None)
    with open(machine.node.ak_file, encoding="ascii") as f:
        registered = f.read()
    keys = json.loads(alone.kubectl("get", "attestationkeys", "-o", "json"))["items"]
    assert registered in [k["spec"]["publicKey"] for k in keys]
    assert tecnode.leftovers(machine.tpm) == []


def test_the_next_boot_decrypts(machine, jwe):
    assert machine.node.good("clevis", "decrypt", stdin=jwe) == SECRET
    assert machine.node.good("clevis", "decrypt", stdin=jwe + b"\n") == SECRET
    assert tecnode.leftovers(machine.tpm) == []


def test_jose_opens_what_was_encrypted(machine, jwe, tmp_path):
    """A second opinion on the JWE, with the key that the administrator sees."""
    key = json.loads(machine.disk_key())["key"].encode()
    jwk = tmp_path / "key.jwk"
    jwk.write_text(json.dumps({"kty": "oct", "k": base64.urlsafe_b64encode(key).decode().rstrip("=")}))
    done = subprocess.run(["jose", "jwe", "dec", "-i-", "-k", str(jwk)], input=jwe, capture_output=True,
                          check=False)
    assert (done.returncode, done.stdout) == (0, SECRET), done.stderr


def test_it_opens_what_jose_encrypted(machine, jwe, tmp_path):
    """Another writer's JWE: other order of members, members that are not known here."""
    key = json.loads(machine.disk_key())["key"].encode()
    jwk = tmp_path / "key.jwk"
    jwk.write_text(json.dumps({"kty": "oct", "k": base64.urlsafe_b64encode(key).decode().rstrip("=")}))
    clevis = header(jwe)["clevis"]
    clevis.pop("trustee")
    protected = {"zzz": [1], "clevis": {"unknown": {}, **dict(reversed(clevis.items()))},
                 "enc": "A256GCM", "alg": "dir"}
    made = subprocess.run(["jose", "jwe", "enc", "-I-", "-c", "-k", str(jwk), "-i",
                           json.dumps({"protected": protected})], input=b"other", capture_output=True,
                          check=True).stdout
    assert machine.node.good("clevis", "decrypt", stdin=made) == b"other"


def test_get_resource_prints_base64(machine, jwe):
    status, out, said = machine.get()
    assert (status, said) == (0, "")
    assert out.endswith(b"\n") and base64.b64decode(out) == machine.disk_key()
    assert machine.get("/" + machine.path)[1] == out


def test_attest_prints_the_token(machine, jwe):
    status, out, said = machine.node.run("attest", *machine.to_kbs)
    assert status == 0, said
    claims = json.loads(base64.urlsafe_b64decode(out.split(b".")[1] + b"=="))
    assert claims["submods"]["cpu0"]["ear.status"] == "affirming"


def test_another_machines_path_is_refused(machine, alone, jwe):
    other = spine.first_boot(alone)
    wait_for(lambda: alone.get(spine.path_of("trusted-execution-clusters", "secrets", other)), 60,
             "the other's key")
    status, out, said = machine.get(f"default/{other}/root")
    assert (status, out) == (1, b"")
    assert "the server refused the request (PolicyDeny)" in said


# ---- disks

@pytest.fixture(name="disk")
def _disk(tmp_path):
    path = str(tmp_path / "disk")
    with open(path, "wb") as f:
        f.truncate(24 << 20)
    subprocess.run(["cryptsetup", "luksFormat", "--type", "luks2", "--batch-mode", "--pbkdf", "pbkdf2",
                    "--pbkdf-force-iterations", "1000", path, "-"], input=SECRET, check=True)
    return path


def test_clevis_binds_a_disk_and_opens_it(machine, disk, jwe):
    node = machine.node

    def bind(passphrase):
        with open(node.env["KEYFILE"], "wb") as f:
            f.write(passphrase)
        node.good("clevis", "luks", "bind", "-y", "-k", node.env["KEYFILE"], "-d", disk, "trustee",
                  machine.here())

    def opens(slot, passphrase):
        return node.command(["cryptsetup", "open", "--test-passphrase", "--key-slot", str(slot), disk],
                            passphrase)[0] == 0
    node.env["KEYFILE"] = f"{machine.dir}/keyfile"
    bind(SECRET)
    assert b"trustee" in node.good("clevis", "luks", "list", "-d", disk)
    passphrase = node.good("clevis", "luks", "pass", "-d", disk, "-s", "1")
    assert opens(1, passphrase) and not opens(0, passphrase)
    node.good("clevis", "luks", "report", "-d", disk, "-s", "1")
    # clevis's regen knows the pins tang, tpm2 and sss only. The same with its other commands:
    assert node.command(["clevis", "luks", "regen", "-q", "-d", disk, "-s", "1"])[0] != 0
    bind(passphrase)
    node.good("clevis", "luks", "unbind", "-f", "-d", disk, "-s", "1")
    again = node.good("clevis", "luks", "pass", "-d", disk, "-s", "2")
    assert again != passphrase and opens(2, again)
    assert not any(opens(slot, passphrase) for slot in (0, 1, 2)), "the old passphrase still opens it"


# ---- nobody waits for the pin any more

@contextlib.contextmanager
def _killed_at_last(machine):
    try:
        yield
    finally:
        for pid in tecnode.pins(machine.node):
            os.kill(pid, signal.SIGKILL)


def test_the_pin_ends_when_sss_has_enough(machine, jwe):
    """clevis kills the shell between sss and the pin, not the pin; nothing but its output tells."""
    with tecnode.Tunnel(machine.alone.kbs) as tunnel:
        shares = [machine.config | {"servers": [dict(machine.server(), url=url)]}
                  for url in (machine.url, f"https://127.0.0.1:{tunnel.port}")]
        sealed = machine.node.good("clevis", "encrypt", "sss", json.dumps({"t": 1, "pins": {"trustee": shares}}),
                                   stdin=SECRET)
        tunnel.kind = "silent"
        opened = subprocess.run(["clevis", "decrypt"], input=sealed, stdout=subprocess.PIPE,
                                stderr=subprocess.DEVNULL, env=machine.node.env, timeout=20, check=True)
        assert opened.stdout == SECRET
        with _killed_at_last(machine):
            wait_for(lambda: not tecnode.pins(machine.node), 2, "the end of the pin that nobody reads")


def test_the_pin_ends_with_its_parent(machine, jwe):
    """Its output is still read, as by a shell that was about to use it."""
    with tecnode.Tunnel(machine.alone.kbs) as tunnel:
        sealed = machine.encrypt(servers=[dict(machine.server(), url=f"https://127.0.0.1:{tunnel.port}")])
        tunnel.kind = "silent"
        with subprocess.Popen(["clevis", "decrypt"], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                              stderr=subprocess.DEVNULL, env=machine.node.env) as clevis, _killed_at_last(machine):
            clevis.stdin.write(sealed)
            clevis.stdin.close()
            wait_for(lambda: len(tunnel.open) > 1 and tecnode.pins(machine.node), 20, "the pin to ask")
            (pin, parent), = tecnode.pins(machine.node).items()
            assert parent == clevis.pid
            os.kill(parent, signal.SIGKILL)
            wait_for(lambda: pin not in tecnode.pins(machine.node), 2, "the end of the pin without a parent")


# ---- servers that are of no use

def test_the_next_server_is_tried(machine, jwe):
    """Dead, black-holed, TLS that is garbage, and 500: each costs at most five seconds."""
    with tecnode.Bad("silent") as silent, tecnode.Bad("garbage") as garbage, tecnode.Bad("500") as broken:
        urls = [f"http://127.0.0.1:{free_port()}", f"http://127.0.0.1:{silent.port}",
                f"https://127.0.0.1:{garbage.port}", f"http://127.0.0.1:{broken.port}",
                machine.url]
        began = time.monotonic()
        out = machine.node.good("clevis", "encrypt", "trustee",
                                machine.here(servers=[dict(machine.server(), url=u) if u.startswith("https") else {"url": u, "cert": ""}
                                                      for u in urls]), stdin=b"x")
        assert header(out)["clevis"]["servers"][4]["url"] == urls[4]
        assert time.monotonic() - began < 5 * 4 + 10
        status, _, said = machine.node.run("get-resource", "--url=" + ",".join(urls), machine.to_kbs[1], f"--path={machine.path}")
    assert status == 0
    for url, words in zip(urls, ("refused", "no answer within", "wrong version", "answered 500")):
        assert any(url in line and words in line for line in said.splitlines()), (url, said)


def test_a_server_that_limits_requests_is_left_alone(machine):
    """For as long as it says, and a random part longer; another server is asked meanwhile."""
    with tecnode.Limited(1, 2) as limited:
        status, _, said = machine.node.run("attest", f"--url=http://127.0.0.1:{limited.port}", "--retries=1")
        assert status == 5 and "answered 429 to auth; retrying in " in said, said
        assert len(limited.at) == 2 and 2 <= limited.at[1] - limited.at[0] < 3 + 3 * PATIENCE, limited.at
    with tecnode.Limited(9, 30) as limited, tecnode.Limited(0, 0) as broken:
        urls = f"http://127.0.0.1:{limited.port},http://127.0.0.1:{broken.port}"
        assert machine.node.run("attest", f"--url={urls}", "--retries=1")[0] == 5
        assert (len(limited.at), len(broken.at)) == (1, 2)


def test_a_registration_that_is_limited_is_repeated(machine):
    with tecnode.Limited(1, 1, 201) as limited:
        status, _, said = machine.node.run("register", f"--url=http://127.0.0.1:{limited.port}", f"--uuid={machine.uuid}")
        assert status == 0 and "answered 429; retrying in " in said, said
        assert len(limited.at) == 2 and limited.at[1] - limited.at[0] >= 1
    with tecnode.Limited(1, 0) as limited:  # it does not say when
        assert machine.node.run("register", f"--url=http://127.0.0.1:{limited.port}", f"--uuid={machine.uuid}")[0] == 5


def test_only_the_servers_certificate_is_trusted(machine, tmp_path, jwe):
    """And one that ran out is told with the clock that says so."""
    made = {name: spine.make_certificate(_directory(tmp_path, name), days=days)
            for name, days in (("its", 2), ("other", 2))}
    at = f"{tmp_path}/its/localhost"
    with tecnode.Bad("500", (f"{at}.crt", f"{at}.key")) as server:
        def encrypt(cert):
            return machine.node.run("encrypt", machine.here(
                servers=[{"url": f"https://localhost:{server.port}", "cert": cert}], num_retries=0), stdin=b"x")
        status, _, said = encrypt(made["its"]["ca.crt"])
        assert status == 5 and "answered 500" in said, said
        for cert in (made["other"]["ca.crt"], ""):
            status, _, said = encrypt(cert)
            assert status == 4 and "certificate" in said, said
    subprocess.run(["openssl", "x509", "-req", "-in", f"{at}.csr", "-CA", f"{at}-ca.crt", "-CAkey",
                    f"{at}-ca.key", "-CAcreateserial", "-out", f"{at}.old", "-days", "-1", "-extfile",
                    f"{at}.ext"], check=True, capture_output=True)
    with tecnode.Bad("500", (f"{at}.old", f"{at}.key")) as server:
        status, _, said = encrypt(made["its"]["ca.crt"])
        assert status == 4 and "expired" in said and "which reads 20" in said, said


def _directory(path, name):
    (path / name).mkdir()
    return str(path / name)


def test_each_exit_status(machine, jwe):
    node = machine.node
    dead = f"--url=http://127.0.0.1:{free_port()}"
    assert node.run("get-resource", dead, f"--path={machine.path}")[0] == 4
    with tecnode.Bad("500") as broken:
        assert node.run("attest", f"--url=http://127.0.0.1:{broken.port}")[0] == 5
    assert node.run("get-resource", dead, "--path=a/b")[0] == 2
    assert node.run("encrypt", "{}")[0] == 2
    assert node.run("decrypt", stdin=b"a.b.c")[0] == 2
    assert node.run("ak", "show", "--tcti=device:/nonexistent")[0] == 3


def test_num_retries_and_the_time_are_limits(machine, jwe):
    dead = [{"url": f"http://127.0.0.1:{free_port()}", "cert": ""}]
    began = time.monotonic()
    status, _, said = machine.node.command(
        ["clevis", "encrypt", "trustee", machine.here(servers=dead, num_retries=0)], b"x")
    assert status == 4 and time.monotonic() - began < 5, said
    status, _, said = machine.node.run("encrypt", "--timeout=12", machine.here(servers=dead), stdin=b"x")
    assert status == 4
    assert 12 <= time.monotonic() - began
    assert "still waiting for default/" in said and said.count("refused") <= 4, said


def test_a_key_that_is_not_approved_yet_is_waited_for(alone, tmp_path):
    """The Machine that the registration needs comes later than the node."""
    m = Machine(alone, tmp_path)
    try:
        alone.kubectl("delete", f"machine/{m.name}", "--timeout=50s")
        process = m.node.start("encrypt", m.here(), stdin=True)
        process.stdin.write(SECRET)
        process.stdin.close()
        wait_for(lambda: m.uuid in alone.log() or process.poll() is not None, 60, "its registration")
        time.sleep(1)
        assert process.poll() is None, process.stderr.read()
        process.terminate()
        assert process.wait(30) == 128 + 15
        process.stdout.close()
        process.stderr.close()
        assert tecnode.leftovers(m.tpm) == []
    finally:
        m.stop()


# ---- TPMs that are of no use

def test_another_key_at_the_handle_is_left_alone(tmp_path):
    with softtpm.SoftwareTPM() as tpm:
        node = tecnode.TecNode(str(tmp_path), tpm.tcti)
        tpm.run("tpm2_createprimary", "-C", "o", "-G", "ecc", "-c", "other.ctx")
        tpm.run("tpm2_evictcontrol", "-C", "o", "-c", "other.ctx", "0x81010002")
        status, _, said = node.run("ak", "make")
        assert status == 3 and "is not an attestation key" in said and "tpm2_evictcontrol -c 0x81010002" in said
        assert node.run("ak", "make", "--ak-handle=0x81010003")[0] == 0
        assert tecnode.leftovers(tpm) == []


def test_a_key_is_made_once(tmp_path):
    with softtpm.SoftwareTPM() as tpm:
        node = tecnode.TecNode(str(tmp_path), tpm.tcti)
        both = [node.start("ak", "make") for _ in range(3)]
        keys = {p.communicate(timeout=60)[0] for p in both}
        assert [p.returncode for p in both] == [0, 0, 0]
        assert keys == {node.run("ak", "show")[1]} and len(keys) == 1
        assert tecnode.leftovers(tpm) == []


def test_quotes_at_once(tmp_path):
    with softtpm.SoftwareTPM() as tpm:
        node = tecnode.TecNode(str(tmp_path), tpm.tcti)
        assert node.run("ak", "make")[0] == 0
        all_ = [node.start("quote", f"--extra={i:064x}") for i in range(6)]
        answers = [p.communicate(timeout=60) for p in all_]
        assert [p.returncode for p in all_] == [0] * 6, answers
        assert len({json.loads(out)["tpm_quote"]["message"] for out, _ in answers}) == 6
        assert tecnode.leftovers(tpm) == []


def test_a_password_of_the_owner_is_named(tmp_path):
    with softtpm.SoftwareTPM() as tpm:
        node = tecnode.TecNode(str(tmp_path), tpm.tcti)
        tpm.run("tpm2_changeauth", "-c", "owner", "secret")
        status, _, said = node.run("ak", "make")
        assert status == 3 and "has a password" in said, said
        assert tecnode.leftovers(tpm) == []


# ---- init-data

def test_init_data_is_bound_once(alone, tmp_path):
    toml = ('version = "0.1.0"\nalgorithm = "sha256"\n\n[data]\n'
            'uuid = "11111111-2222-3333-4444-555555555555"\n')
    m = Machine(alone, tmp_path)
    try:
        jwe = m.encrypt(initdata=json.dumps({"uuid": "11111111-2222-3333-4444-555555555555"}))
        assert header(jwe)["clevis"]["initdata"] == toml
        pcr8 = m.tpm.run("tpm2_pcrread", "sha256:8").lower()
        assert "0195957c6f521cb6fbc8b056d53bef5d3f130052990031de667718a92738fcca" in pcr8
        assert m.node.good("clevis", "decrypt", stdin=jwe) == SECRET
        assert m.tpm.run("tpm2_pcrread", "sha256:8").lower() == pcr8, "it was extended again"
        assert m.get(None, f"--initdata={toml}")[0] == 0
        status, _, said = m.get(None, f"--initdata={toml}x = 'y'\n")
        assert status == 3 and "PCR 8 already holds another value" in said, said
    finally:
        m.stop()


# ---- the doctor

def test_the_doctor_says_what_to_do(alone, tmp_path):
    m = Machine(alone, tmp_path)
    url, cert = m.to_kbs
    try:
        status, out, _ = m.node.run("doctor", url, cert)
        lines = out.decode().splitlines()
        assert status == 3 and [line.split()[:2] for line in lines[:5]] == [
            ["TPM", "ok"], ["boot", "ok"], ["seal", "ok"], ["key", "FAIL"], ["clock", "ok"]], lines
        assert "tec-node ak make" in lines[3]
        m.node.run("ak", "make")
        status, out, _ = m.node.run("doctor", url, cert)
        assert status == 1 and b"attestation key of this machine is not registered" in out, out
        m.encrypt()
        status, out, _ = m.node.run("doctor", url, cert, f"--path={m.path}")
        assert status == 0 and out.count(b" ok ") == 6, out
        status, out, _ = m.node.run("doctor", f"{url},http://127.0.0.1:{free_port()}", cert)
        assert status == 4 and b"Connection refused; check the address" in out, out
        status, out, _ = m.node.run("doctor", "--seal")
        assert status == 3 and b"seal    FAIL  on, but PCR 15 is zero" in out, out
        m.tpm.run("tpm2_pcrextend", f"15:sha256={'5a' * 32}")
        status, out, _ = m.node.run("doctor", "--seal")
        assert b"seal    ok    on; PCR 15 is " in out, out
        m.tpm.run("tpm2_pcrextend", f"14:sha256={'5a' * 32}")
        status, out, _ = m.node.run("doctor", url, cert)
        assert status == 1 and b"the boot measurements of this machine are not approved" in out, out
        assert tecnode.leftovers(m.tpm) == []
    finally:
        m.stop()


# ---- refusals that stay: last, as this TPM does not come back

def test_a_deleted_machine_gets_nothing(alone, tmp_path):
    m = Machine(alone, tmp_path)
    try:
        jwe = m.encrypt()
        alone.kubectl("delete", f"machine/{m.name}", "--timeout=50s")
        status, out, said = m.node.run("decrypt", "--timeout=5", stdin=jwe)
        assert (status, out) == (1, b"") and "the server refused" in said
    finally:
        m.stop()


def test_another_boot_is_refused(machine, jwe):
    machine.tpm.run("tpm2_pcrextend", f"14:sha256={'5a' * 32}")
    status, out, said = machine.get()
    assert (status, out) == (1, b"") and "PolicyDeny" in said
    assert PCR14["value"] in machine.alone.log()
    status, _, said = machine.node.run("decrypt", "--timeout=4", stdin=jwe)
    assert status == 1 and said.count("PolicyDeny") <= 2, said


def test_no_key_was_printed(machine, jwe):
    """Neither by the pin in Rust's way nor by ours."""
    key = json.loads(machine.disk_key())["key"]
    assert key not in machine.alone.log()
    for _, _, said in (machine.get(), machine.node.run("decrypt", "--timeout=3", stdin=jwe)):
        assert key not in said
    assert shutil.which("clevis")
