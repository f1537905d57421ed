# SPDX-License-Identifier: MIT
"""What an attacker tries, each on a real API server under the rights of k8s/: one function or more per
number, test_attack_NN_what. Each was seen to fail on version 0.1.0."""

import json

import spine
from test_listeners import ask


# ---- 1


# ---- 2


# ---- 3


# ---- 4


# ---- 5


# ---- 6


# ---- 7


# ---- 8


# ---- 9


# ---- 10


# ---- 11


# ---- 12


# ---- 13


# ---- 14

def test_attack_14_a_coded_body_is_not_read_as_plain(cp, ns, start_operator):
    """What inspects a body on its way decodes it first: two readers, two meanings."""
    spine.make_cluster(cp, ns)
    op = start_operator(ns)
    body = json.dumps({"public_key": spine.rsa_key()})
    for coding, want in (("gzip", 415), ("identity, br", 415), ("identity", 201)):
        status, _, answer = spine.request(
            op.register_ak_port, "PUT", "/register-ak", body,
            {"Content-Type": "application/json", "Content-Encoding": coding})
        assert status == want, (coding, answer)
    assert len(spine.items(cp, ns, "ak")) == 1


def test_attack_14_absolute_targets_are_served_for_our_own_host_alone(cp, ns, start_operator):
    spine.make_cluster(cp, ns)
    port = start_operator(ns).register_port
    for target, host, want in (("http://a:80/ignition", "a:80", 200), ("http://a/ignition", "b", 400),
                               ("http://a@b/ignition", "b", 400)):
        status, _, body = ask(port, f"GET {target} HTTP/1.1\r\nHost: {host}\r\n\r\n".encode())
        assert status == want, (target, host, body)
    assert len(spine.items(cp, ns, "mach")) == 1
