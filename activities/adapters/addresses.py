"""Which internet addresses a stranger's URL may lead to: only those that everybody on the internet can reach.

Pure. Ranges are listed here rather than asked of `ipaddress`, whose idea of "global" differs between Python releases.
"""

from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_address

Address = IPv4Address | IPv6Address

_FORBIDDEN_V4 = [
    (IPv4Network(network), kind)
    for network, kind in (
        ("0.0.0.0/8", "an unspecified address"),
        ("10.0.0.0/8", "a private address"),
        ("100.64.0.0/10", "a shared (carrier or cloud) address"),
        ("127.0.0.0/8", "a loopback address"),
        ("168.63.129.16/32", "a cloud metadata address"),
        ("169.254.0.0/16", "a link-local or cloud metadata address"),
        ("172.16.0.0/12", "a private address"),
        ("192.0.0.0/24", "a reserved address"),
        ("192.0.2.0/24", "a documentation address"),
        ("192.88.99.0/24", "a reserved address"),
        ("192.168.0.0/16", "a private address"),
        ("198.18.0.0/15", "a benchmarking address"),
        ("198.51.100.0/24", "a documentation address"),
        ("203.0.113.0/24", "a documentation address"),
        ("224.0.0.0/4", "a multicast address"),
        ("240.0.0.0/4", "a reserved address"),
    )
]

# Outside 2000::/3 nothing is assigned to the public internet; these are the parts inside it that are not public either.
_PUBLIC_V6 = IPv6Network("2000::/3")
_FORBIDDEN_V6 = [
    (IPv6Network(network), kind)
    for network, kind in (
        ("2001::/23", "a reserved address"),  # Teredo (2001::/32) and other protocol assignments
        ("2001:db8::/32", "a documentation address"),
        ("2002::/16", "a 6to4 address"),
        ("3fff::/20", "a documentation address"),
    )
]
_NAT64 = IPv6Network("64:ff9b::/96")
_KNOWN_V6 = [
    (IPv6Network("::/128"), "an unspecified address"),
    (IPv6Network("::1/128"), "a loopback address"),
    (IPv6Network("fe80::/10"), "a link-local address"),
    (IPv6Network("fc00::/7"), "a private address"),
    (IPv6Network("ff00::/8"), "a multicast address"),
]
_ISATAP_MARKS = (0x00005EFE, 0x02005EFE)


def forbidden(text: str) -> str | None:
    """Why the numeric address `text` may not be contacted ("a loopback address"), or None where it may."""
    try:
        address = ip_address(text)
    except ValueError:
        return "not an internet address"
    if isinstance(address, IPv4Address):
        return _first(address, _FORBIDDEN_V4)
    return _forbidden_v6(address)


def _forbidden_v6(address: IPv6Address) -> str | None:
    if address.scope_id:
        return "a link-local address"
    embedded = _embedded_v4(address)
    if embedded is not None:
        kind = _first(embedded, _FORBIDDEN_V4)
        return f"{kind} inside an IPv6 address" if kind else None
    if address not in _PUBLIC_V6:
        return _first(address, _KNOWN_V6) or "a reserved address"
    return _first(address, _FORBIDDEN_V6) or _isatap(address)


def _embedded_v4(address: IPv6Address) -> IPv4Address | None:
    """The IPv4 address that a mapped or NAT64 address stands for: with these a network may reach public hosts."""
    if address.ipv4_mapped is not None:
        return address.ipv4_mapped
    return IPv4Address(int(address) & 0xFFFFFFFF) if address in _NAT64 else None


def _isatap(address: IPv6Address) -> str | None:
    mark = (int(address) >> 32) & 0xFFFFFFFF
    return "a tunnel address" if mark in _ISATAP_MARKS else None


def _first(address: Address, ranges: list) -> str | None:
    return next((kind for network, kind in ranges if address in network), None)
