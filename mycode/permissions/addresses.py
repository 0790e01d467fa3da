"""Reads a web address strictly: which host it really names, and whether that host is on the open internet."""

from __future__ import annotations

import re
from typing import Literal

from msgspec import Struct

Reach = Literal["public", "own", "metadata"]


class Address(Struct, frozen=True):
    """A web address taken apart: lower-case host without brackets, port, and the reasons not to take it at its face.

    `reach` is `own` for this machine and private networks, `metadata` for link-local ones and cloud metadata services.
    """

    scheme: str
    host: str
    port: int | None
    reach: Reach
    doubts: tuple[str, ...] = ()


def read_address(url: str) -> Address | str:
    """The address, or a sentence why it cannot be one."""
    if any(char <= " " or char == "\x7f" or "\x80" <= char <= "\x9f" for char in url):
        return "The address holds blanks or control characters."
    found = re.match(r"(?i)(https?)://([^/?#\\]*)(.*)", url, re.DOTALL)
    if found is None:
        return "Only http and https addresses can be fetched."
    scheme, authority, rest = found[1].lower(), found[2], found[3]
    doubts: list[str] = []
    if rest.startswith("\\") or "\\" in rest.partition("?")[0]:
        return "The address holds a backslash, which programs read in two ways."
    login, at, hostport = authority.rpartition("@")
    if at:
        doubts.append(f"the part before @ ({login}) is a login, not the host")
    split = re.fullmatch(r"(\[[0-9A-Fa-f:.]+\]|[^:\[\]]*)(?::(\d{0,5}))?", hostport)
    if split is None or not split[1]:
        return "The address has no host that can be read."
    host = split[1].strip("[]").lower().rstrip(".")
    port = int(split[2]) if split[2] else None
    if "%" in host or not host:
        return "The host of the address is written in code."
    if not host.isascii() or "xn--" in host:
        doubts.append("the host is written with foreign letters")
    elif not re.fullmatch(r"[a-z0-9._:-]+", host):
        return "The host of the address holds signs that no host has."
    if port not in {None, 80, 443}:
        doubts.append(f"it names port {port}")
    if re.search(r"(?i)(?::|%3a)(?:/|%2f){2}|[?&=](?:/|%2f){2}", rest):
        doubts.append("it carries a second address")
    return Address(scheme, host, port, _reach(host), tuple(doubts))


_METADATA_HOSTS = frozenset({"metadata", "metadata.google.internal", "instance-data", "metadata.azure.com"})


def _reach(host: str) -> Reach:
    import ipaddress

    if host in _METADATA_HOSTS:
        return "metadata"
    if host == "localhost" or host.endswith(
        (".localhost", ".local", ".internal", ".lan", ".home.arpa", ".nip.io", ".sslip.io")
    ):
        return "own"
    try:
        ip = ipaddress.ip_address(host)
    except ValueError:
        number = _odd_ipv4(host)
        if number is None:
            return "public" if "." in host else "own"
        ip = ipaddress.IPv4Address(number)
    if isinstance(ip, ipaddress.IPv6Address):
        ip = ip.ipv4_mapped or ip.sixtofour or ip
    if ip.is_link_local or str(ip) in {"100.100.100.200", "fd00:ec2::254", "168.63.129.16", "192.0.0.192"}:
        return "metadata"
    return "public" if ip.is_global and not ip.is_multicast else "own"


def _odd_ipv4(host: str) -> int | None:
    """The number behind `2130706433`, `0x7f.1` or `0177.0.0.1`, as the system's resolver would take it."""
    pieces = host.split(".")
    if len(pieces) > 4 or not all(re.fullmatch(r"0x[0-9a-f]*|[0-9]+", piece) for piece in pieces):
        return None
    numbers = []
    for piece in pieces:
        try:
            octal = len(piece) > 1 and piece.startswith("0") and not piece.startswith("0x")
            numbers.append(int(piece, 16 if piece.startswith("0x") else 8 if octal else 10) if piece != "0x" else 0)
        except ValueError:
            return None
    value = numbers[-1]
    for index, number in enumerate(numbers[:-1]):
        value += number << (8 * (3 - index))
    return value & 0xFFFFFFFF
