"""Reads a web address strictly: which host it really names, and whether that host is on the open internet."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Literal

from msgspec import Struct

if TYPE_CHECKING:
    from ipaddress import IPv4Address, IPv6Address

Reach = Literal["public", "own", "metadata"]


class Address(Struct, frozen=True):
    """A web address taken apart: lower-case host without brackets, port, and the reasons not to take it at its face.

    `reach` is `own` for this machine and private networks, `metadata` for link-local ones and cloud metadata services.
    `target` is the path with its query, as it was written.
    """

    scheme: str
    host: str
    port: int | None
    reach: Reach
    doubts: tuple[str, ...] = ()
    target: str = "/"

    @property
    def origin(self) -> tuple[str, str, int]:
        return self.scheme, self.host, self.port or (443 if self.scheme == "https" else 80)


def read_address(url: str) -> Address | str:
    """The address, or a sentence why it cannot be one."""
    import unicodedata

    if any(char <= " " or unicodedata.category(char)[0] in "CZ" for char in url):
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
    split = re.fullmatch(r"(\[[0-9A-Fa-f:.]+\]|[^:\[\]]*)(?::([0-9]{0,5}))?", hostport)
    if split is None or not split[1]:
        return "The address has no host that can be read."
    # Programs fold wide digits, ligatures and foreign full stops before they look a name up.
    host = unicodedata.normalize("NFKC", split[1].replace("\u3002", ".").replace("\uff61", ".")).strip("[]").lower()
    host = host.removesuffix(".")
    port = int(split[2]) if split[2] else None
    if "%" in host or not host:
        return "The host of the address is written in code."
    if port is not None and not 0 < port < 65536:
        return f"There is no port {port}."
    if re.search(r"[\x00-,/;-@\[-^`{-\x7f]", host) or "" in host.split("."):
        return "The host of the address holds signs that no host has."
    reach = reach_of(host)
    if reach is None:
        return "The host of the address looks like a number of the network, but is none."
    if not split[1].isascii() or "xn--" in host:
        doubts.append("the host is written with foreign letters")
    elif _odd_ipv4(host) is not None and not re.fullmatch(r"\d+(?:\.\d+){3}", host):
        doubts.append("the host is written as a number")
    if port not in {None, 80, 443}:
        doubts.append(f"it names port {port}")
    if re.search(r"(?i)(?::|%3a)(?:/|%2f){2}|[?&=](?:/|%2f){2}", rest):
        doubts.append("it carries a second address")
    target = rest.partition("#")[0]
    return Address(scheme, host, port, reach, tuple(doubts), target if target.startswith("/") else f"/{target}")


def reach_of(host: str) -> Reach | None:
    """How far a host or an IP address is; None for what looks like an IP address and is none."""
    import ipaddress

    if host in _METADATA_HOSTS:
        return "metadata"
    if host == "localhost" or host.endswith(_OWN_DOMAINS):
        return "own"
    ip: IPv4Address | IPv6Address
    try:
        ip = ipaddress.ip_address(host)
    except ValueError:
        number = _odd_ipv4(host)
        if number is not None:
            ip = ipaddress.IPv4Address(number)
        elif ":" in host or re.fullmatch(r"0x[0-9a-f]*|[0-9]+", host.rpartition(".")[2]):
            return None
        else:
            return "public" if "." in host else "own"
    return _reach_of_ip(ip)


_METADATA_HOSTS = frozenset({"metadata", "metadata.google.internal", "instance-data", "metadata.azure.com"})
_METADATA_IPS = frozenset({"100.100.100.200", "fd00:ec2::254", "fd20:ce::254", "168.63.129.16", "192.0.0.192"})
_OWN_DOMAINS = (
    *(".localhost", ".local", ".internal", ".intranet", ".lan", ".home", ".corp", ".home.arpa", ".nip.io", ".sslip.io"),
    *(".xip.io", ".localtest.me", ".lvh.me", ".vcap.me", ".lacolhost.com"),
)


def _reach_of_ip(ip: IPv4Address | IPv6Address) -> Reach:
    import ipaddress

    if isinstance(ip, ipaddress.IPv6Address):
        inner = _inner_ipv4(ip)
        # Only this part of the sixth version is the open internet, whatever else says so.
        if inner is None and (ip.is_link_local or str(ip) in _METADATA_IPS):
            return "metadata"
        if inner is None and ip not in ipaddress.IPv6Network("2000::/3"):
            return "own"
        ip = inner or ip
    if ip.is_link_local or str(ip) in _METADATA_IPS:
        return "metadata"
    return "public" if ip.is_global and not ip.is_multicast else "own"


def _inner_ipv4(ip: IPv6Address) -> IPv4Address | None:
    """The older address that one of the newer kind carries: mapped, compatible, 6to4, Teredo, or for translation."""
    import ipaddress

    teredo = ip.teredo
    translated = ip in ipaddress.IPv6Network("64:ff9b::/96") or ip in ipaddress.IPv6Network("64:ff9b:1::/48")
    compatible = int(ip) >> 32 == 0 and int(ip) > 1
    if translated or compatible:
        return ipaddress.IPv4Address(int(ip) & 0xFFFFFFFF)
    return ip.ipv4_mapped or ip.sixtofour or (teredo[1] if teredo else None)


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
    *leading, last = numbers
    if any(number > 255 for number in leading) or last >= 256 ** (5 - len(numbers)):
        return None
    return last + sum(number << (8 * (3 - index)) for index, number in enumerate(leading))
