"""Paths of BookKeeper in ZooKeeper, below the root of the ledgers."""

from __future__ import annotations

from typing import Final

LEDGERS: Final = "/ledgers"
AVAILABLE: Final = f"{LEDGERS}/available"
READ_ONLY: Final = f"{AVAILABLE}/readonly"
LAYOUT: Final = f"{LEDGERS}/LAYOUT"
ID_PREFIX: Final = f"{LEDGERS}/idgen/ID-"

LEDGER_ID_MAX: Final = 2**31 - 2
"""Greater ids come from another counter and have longer paths. Such ledgers are read, but not created."""

_SHORT: Final = (2, 4, 4)
_LONG: Final = (3, 4, 4, 4, 4)


def path_of(ledger_id: int) -> str:
    """Return the path of a ledger's metadata."""
    widths = _SHORT if ledger_id <= LEDGER_ID_MAX else _LONG
    digits = f"{ledger_id:0{sum(widths)}d}"
    parts = []
    for width in widths:
        parts.append(digits[:width])
        digits = digits[width:]
    return "/".join((LEDGERS, *parts[:-1], f"L{parts[-1]}"))


def id_of(path: str) -> int | None:
    """Return the ledger with metadata at this path, None for other paths."""
    front, _, last = path.removeprefix(f"{LEDGERS}/").rpartition("/L")
    digits = front.replace("/", "") + last
    if not (digits.isascii() and digits.isdecimal()):
        return None
    return int(digits) if path_of(int(digits)) == path else None
