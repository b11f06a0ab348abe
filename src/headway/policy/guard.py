"""A guard against guessing keys: how often an address may be wrong.

A key is 256 random bits, so no number of guesses finds one; what guessing does cost is work and records. So whoever is
wrong too often is told to wait and is no longer recorded one by one, while a right key is served from any address,
even one that others abuse.
"""

from collections import OrderedDict
from ipaddress import IPv6Address, ip_address
from typing import Final, Literal

from msgspec import Struct

TRIES: Final = 20
"""Wrong keys that one address may send in `SECONDS`."""
SECONDS: Final = 60.0
_ADDRESSES: Final = 10_000
"""Remembered; those that were wrong longest ago are forgotten first."""


class Verdict(Struct, frozen=True):
    """What to make of one more wrong key."""

    answer: Literal["unknown", "wait"]
    wait: float
    """Seconds until the address is believed again; 0 unless it has to wait."""
    record: int
    """0: leave it out of the audit; else: record it, as standing for so many."""


class _Address:
    __slots__ = ("since", "tries", "untold")

    def __init__(self, since: float) -> None:
        self.since = since
        self.tries = 0
        self.untold = 0


class Guard:
    """Counts wrong keys by address, in bounded memory; an IPv6 network of 64 bits is one address."""

    def __init__(self) -> None:
        self._addresses: OrderedDict[str, _Address] = OrderedDict()

    def __len__(self) -> int:
        return len(self._addresses)

    def wrong(self, address: str, now: float) -> Verdict:
        """A key that is none of ours came from ``address`` at ``now`` (seconds, never running backwards)."""
        name = network(address)
        known = self._addresses.get(name)
        untold = 0
        if known is None or now - known.since >= SECONDS:
            untold = 0 if known is None else known.untold
            known = self._addresses[name] = _Address(now)
        self._addresses.move_to_end(name)
        if len(self._addresses) > _ADDRESSES:
            self._addresses.popitem(last=False)
        known.tries += 1
        if known.tries <= TRIES:
            return Verdict("unknown", 0.0, 1 + untold)
        known.untold += 1
        return Verdict("wait", known.since + SECONDS - now, 0)


def network(address: str) -> str:
    """The address as one that a person has only one of: an IPv6 address stands for its network of 64 bits."""
    try:
        found = ip_address(address.partition("%")[0])
    except ValueError:
        return address
    if isinstance(found, IPv6Address):
        mapped = found.ipv4_mapped
        return str(IPv6Address(int(found) >> 64 << 64)) if mapped is None else str(mapped)
    return address
