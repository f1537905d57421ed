# SPDX-License-Identifier: MIT
"""What NetworkPolicies allow, by the words of the API's documentation (networking.k8s.io/v1): for the tests
that no cluster enforces them in. A connection is allowed when the policies of its source let it out and
those of its destination let it in; who is selected by no policy of a direction is not limited in it."""

import ipaddress


class Pod:
    def __init__(self, ip, labels=None, ns="here", ns_labels=None, ports=None):
        """ports: {name: number} of its containers."""
        self.ip, self.labels, self.ns = ip, labels or {}, ns
        self.ns_labels = {"kubernetes.io/metadata.name": ns, **(ns_labels or {})}
        self.ports = ports or {}

    @classmethod
    def of(cls, ip, template, ns="here"):
        """From a Pod template."""
        ports = {p["name"]: p["containerPort"] for c in template["spec"]["containers"]
                 for p in c.get("ports", []) if "name" in p}
        return cls(ip, template["metadata"]["labels"], ns, ports=ports)


class Host:
    """Anything that is no Pod."""

    def __init__(self, ip):
        self.ip = ip


def _selects(selector, labels):
    for key, value in selector.get("matchLabels", {}).items():
        if labels.get(key) != value:
            return False
    for e in selector.get("matchExpressions", []):
        has, value, values = e["key"] in labels, labels.get(e["key"]), e.get("values", [])
        if not {"In": has and value in values, "NotIn": value not in values, "Exists": has,
                "DoesNotExist": not has}[e["operator"]]:
            return False
    return True


def _in_block(block, ip):
    address = ipaddress.ip_address(ip)

    def inside(cidr):
        net = ipaddress.ip_network(cidr)
        return net.version == address.version and address in net
    return inside(block["cidr"]) and not any(inside(e) for e in block.get("except", []))


def _peer(peer, policy_ns, other):
    if "ipBlock" in peer:
        return _in_block(peer["ipBlock"], other.ip)
    if not isinstance(other, Pod):
        return False
    if "namespaceSelector" in peer:
        if not _selects(peer["namespaceSelector"], other.ns_labels):
            return False
    elif other.ns != policy_ns:
        return False
    return _selects(peer.get("podSelector", {}), other.labels)


def _port(rule, destination, port, protocol):
    if rule.get("protocol", "TCP") != protocol:
        return False
    want = rule.get("port")
    if want is None:
        return True
    if isinstance(want, str):  # a name is that of the destination's containers
        return isinstance(destination, Pod) and destination.ports.get(want) == port
    return want <= port <= rule.get("endPort", want)


def _one_way(policies, direction, own, other, destination, port, protocol):
    if not isinstance(own, Pod):
        return True
    limited = False
    for policy in policies:
        spec, ns = policy["spec"], policy["metadata"]["namespace"]
        types = spec.get("policyTypes") or ["Ingress"] + ["Egress"] * ("egress" in spec)
        if direction not in types or ns != own.ns or not _selects(spec["podSelector"], own.labels):
            continue
        limited = True
        peers = "from" if direction == "Ingress" else "to"
        for rule in spec.get(direction.lower()) or []:
            if (not rule.get(peers) or any(_peer(p, ns, other) for p in rule[peers])) and \
               (not rule.get("ports") or any(_port(p, destination, port, protocol)
                                             for p in rule["ports"])):
                return True
    return not limited


def allowed(policies, source, destination, port, protocol="TCP"):
    return _one_way(policies, "Egress", source, destination, destination, port, protocol) and \
        _one_way(policies, "Ingress", destination, source, destination, port, protocol)
