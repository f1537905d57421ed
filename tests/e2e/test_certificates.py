# SPDX-License-Identifier: MIT
"""The certificates that README.md, the man pages, the samples and the walkthrough make: each command word for word, run by
the real openssl, then a handshake with a client as strict as those of Trustee, which are built with rustls."""

import glob
import hashlib
import os
import re
import ssl
import subprocess
import sys

import pytest

from controlplane import TOP

sys.path.append(os.path.join(TOP, "tests", "nodes"))
import readme  # noqa: E402  pylint: disable=wrong-import-position

MAKES = re.compile(r"\bopenssl (?:req|x509)\b")
SAMPLE = "k8s/trustee/samples/trusteeconfig.yaml"
WALKTHROUGH = "tests/data/trustee-walkthrough.sh"
# (document, Secret and file of the certificate, of the key, of what clients trust, name that they ask for)
SERVERS = [
    *[("README.md", f"{s}/tls.crt", f"{s}/tls.key", f"{s}/ca.crt", name) for s, name in (
        ("trustee-tls", "trustee.example.org"), ("register-server-tls", "register.example.org"),
        ("attestation-key-register-tls", "register-ak.example.org"))],
    (SAMPLE, "kbs-tls-secret/tls.crt", "kbs-tls-secret/tls.key", "kbs-tls-secret/tls.crt", "kbs-service"),
    (WALKTHROUGH, "kbs-https-certificate/https.crt", "kbs-https-key/https.key", "kbs-https-certificate/https.crt",
     "kbs-service"),
]
DIGESTS = ["k8s/samples/trustedexecutioncluster.yaml", "man/tec-operator.8"]
KUBECTL = """#!/bin/sh -eu
# Keep the files of Secrets.
[ "$1 $2" = "create secret" ] || exit 0
at=$SECRETS/$4
mkdir -p "$at"
shift 4
while [ $# -gt 0 ]; do
	case $1 in
	--key) cp "$2" "$at/tls.key" ;;
	--cert) cp "$2" "$at/tls.crt" ;;
	--from-file=*=*) file=${1#--from-file=}; cp "${file#*=}" "$at/${file%%=*}" ;;
	--from-file=*) cp "${1#--from-file=}" "$at" ;;
	esac
	shift
done
"""


def commands(document):
    """What a reader types: the blocks of a README, the lines of a man page that have a prompt, the indented comments of a
    sample, each with the lines that continue it; a script as it is."""
    with open(os.path.join(TOP, document), encoding="utf-8") as f:
        text = f.read()
    if document.endswith(".md"):
        headings = re.findall(r"^## (.*)", text, re.M)
        return "".join(c for h in headings for _, c in readme.blocks(h, text) if MAKES.search(c))
    if document.endswith(".sh"):
        return text
    prompt = r"^\.Dl \$ " if document.startswith("man/") else r"^ *# +(?=openssl|kubectl)"
    found = re.findall(prompt + r"((?:.*\\\n)*.*)\n", text, re.M)
    return "".join(re.sub(r"\\\n *# *", "\\\n", c) + "\n" for c in found if re.match("openssl|kubectl", c))


def run(script, home):
    """With the shell of a person whose kubectl keeps the Secrets' files below HOME/secrets; what it printed."""
    kubectl = home / "bin" / "kubectl"
    kubectl.parent.mkdir(exist_ok=True)
    kubectl.write_text(KUBECTL)
    kubectl.chmod(0o755)
    env = dict(os.environ, HOME=str(home), SECRETS=str(home / "secrets"), PATH=f"{kubectl.parent}:{os.environ['PATH']}")
    done = subprocess.run(["sh", "-eu", "-c", script], cwd=home, env=env, capture_output=True, text=True, timeout=60,
                          check=False)
    assert done.returncode == 0, done
    return done.stdout


def openssl(*args, text=None):
    done = subprocess.run(["openssl", *map(str, args)], input=text, capture_output=True, text=True, check=False)
    assert done.returncode == 0, (args, done)
    return done.stdout


def end_entity(crt):
    """As webpki sees to it before anything else, also for a certificate that the client trusts as it is."""
    assert "CA:TRUE" not in openssl("x509", "-in", crt, "-noout", "-text"), "CaUsedAsEndEntity"


def handshake(crt, key, anchor, name):
    """Both sides of TLS. Raises SSLError, or AssertionError, if the client refuses the server."""
    server = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    server.load_cert_chain(crt, key)
    client = ssl.create_default_context(cafile=anchor)
    client.verify_flags |= ssl.VERIFY_X509_STRICT
    client.hostname_checks_common_name = False
    to_client, to_server = ssl.MemoryBIO(), ssl.MemoryBIO()
    ends = [client.wrap_bio(to_client, to_server, server_hostname=name),
            server.wrap_bio(to_server, to_client, server_side=True)]
    for _ in range(10):
        for end in list(ends):
            try:
                end.do_handshake()
                ends.remove(end)
            except ssl.SSLWantReadError:
                pass
    assert not ends
    end_entity(crt)


def test_every_command_is_tested():
    files = [f for top in ("README.md", "man/*", "k8s/**", "etc/**", "tests/data/*")
             for f in glob.glob(top, root_dir=TOP, recursive=True) if os.path.isfile(os.path.join(TOP, f))]
    found = set()
    for file in files:
        with open(os.path.join(TOP, file), encoding="utf-8", errors="replace") as f:
            said = MAKES.findall(f.read())
        if said:
            found.add(file)
            assert MAKES.findall(commands(file)) == said, file
    assert found == {s[0] for s in SERVERS} | set(DIGESTS)


@pytest.mark.parametrize("document", sorted({s[0] for s in SERVERS}))
def test_a_strict_client_accepts_the_server(document, tmp_path):
    run(commands(document), tmp_path)
    for crt, key, anchor, name in (s[1:] for s in SERVERS if s[0] == document):
        crt, key, anchor = (str(tmp_path / "secrets" / f) for f in (crt, key, anchor))
        handshake(crt, key, anchor, name)
        with pytest.raises(ssl.SSLCertVerificationError, match="Hostname mismatch"):
            handshake(crt, key, anchor, "other.example.org")


def test_the_client_refuses_a_ca(tmp_path):
    """What openssl makes when it is not told: a server that shows a CA."""
    run("openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -keyout k -out c -subj /CN=kbs-service "
        "-addext subjectAltName=DNS:kbs-service", tmp_path)
    with pytest.raises(AssertionError, match="CaUsedAsEndEntity"):
        handshake(tmp_path / "c", tmp_path / "k", tmp_path / "c", "kbs-service")


def test_the_sample_signs_tokens(tmp_path):
    """ES256, and the certificate is what verifiers of the tokens trust."""
    run(commands(SAMPLE), tmp_path)
    secret = tmp_path / "secrets" / "kbs-attestation-token-secret"
    crt, key, signature, public = secret / "tls.crt", secret / "tls.key", tmp_path / "signature", tmp_path / "public"
    end_entity(crt)
    openssl("verify", "-x509_strict", "-CAfile", crt, crt)
    public.write_text(openssl("x509", "-in", crt, "-noout", "-pubkey"))
    assert "prime256v1" in openssl("pkey", "-pubin", "-in", public, "-noout", "-text")
    openssl("dgst", "-sha256", "-sign", key, "-out", signature, text="a token")
    openssl("dgst", "-sha256", "-verify", public, "-signature", signature, text="a token")


@pytest.mark.parametrize("document", DIGESTS)
def test_the_digest_of_a_ca(document, tmp_path):
    run(commands("README.md"), tmp_path)
    ca = tmp_path / "tec-tls" / "ca.crt"
    said = run(commands(document), ca.parent)
    assert said.split()[0] == hashlib.sha256(ssl.PEM_cert_to_DER_cert(ca.read_text())).hexdigest()
