"""TLS versions and ciphers of a service, and the remaining lifetime of a certificate.

Only versions 1.2 and 1.3. Ciphers of 1.2 are those with forward secrecy and authenticated encryption; all ciphers of
1.3 have both.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import product
from typing import Final

TLS_VERSIONS: Final = ("TLSv1.3", "TLSv1.2")
"""Supported versions under the names of Pulsar's ``tlsProtocols``."""

DAYS_OF_NOTICE: Final = 30

_KINDS: Final = {
    "AES_256_GCM_SHA384": "AES256-GCM-SHA384",
    "AES_128_GCM_SHA256": "AES128-GCM-SHA256",
    "CHACHA20_POLY1305_SHA256": "CHACHA20-POLY1305",
}
_NAMES_1_3: Final = frozenset(f"TLS_{kind}" for kind in _KINDS)
_NAMES_1_2: Final = {
    f"TLS_ECDHE_{signed}_WITH_{kind}": f"ECDHE-{signed}-{short}"
    for (kind, short), signed in product(_KINDS.items(), ("ECDSA", "RSA"))
}
"""Standard names of ciphers, which Java uses, with their names in OpenSSL."""


@dataclass(frozen=True, slots=True)
class TlsOffer:
    """Versions, of `TLS_VERSIONS`, and ciphers of 1.2 by their names in OpenSSL."""

    versions: tuple[str, ...] = TLS_VERSIONS
    ciphers: tuple[str, ...] = tuple(_NAMES_1_2.values())


def plan_offer(versions: Sequence[str] = TLS_VERSIONS, ciphers: Sequence[str] = ()) -> TlsOffer:
    """Return the offer of a service with these versions and ciphers; no ciphers = all.

    A version without a listed cipher is not offered. Raise ValueError for unsupported ciphers, if no version remains,
    and for some but not all ciphers of version 1.3, which cannot be disabled one by one.
    """
    if not ciphers:
        return TlsOffer(tuple(versions))
    unknown = [name for name in ciphers if not (name in _NAMES_1_3 or _short(name))]
    if unknown:
        raise ValueError(
            f"{', '.join(unknown)} is not offered; offered are {', '.join((*sorted(_NAMES_1_3), *_NAMES_1_2))}"
        )
    modern = _NAMES_1_3.intersection(ciphers)
    if modern and modern != _NAMES_1_3:
        raise ValueError(
            f"the ciphers of TLS 1.3 are offered all or none: add {', '.join(sorted(_NAMES_1_3 - modern))}, or take "
            f"out {', '.join(sorted(modern))}"
        )
    older = tuple(short for name in ciphers if (short := _short(name)))
    with_ciphers = {"TLSv1.3": bool(modern), "TLSv1.2": bool(older)}
    left = tuple(version for version in versions if with_ciphers[version])
    if not left:
        raise ValueError(f"none of these ciphers belongs to {', '.join(versions)}")
    return TlsOffer(left, older)


def expiry_notice(seconds_left: float) -> str | None:
    """Return a notice about the remaining lifetime of a certificate; empty above `DAYS_OF_NOTICE` days."""
    days = int(abs(seconds_left) // 86_400)
    if seconds_left <= 0:
        return f"has expired {days} days ago"
    return f"expires in {days} days" if days < DAYS_OF_NOTICE else None


def _short(name: str) -> str:
    """Return the name in OpenSSL; "" unless it is a supported cipher of 1.2."""
    return name if name in _NAMES_1_2.values() else _NAMES_1_2.get(name, "")
