"""The audit log: who asked for which change, from where, and what came of it.

Its logger has a name of its own, ``interpulse.audit``, so that it can go elsewhere than the rest (``auditLogFile``). It
has no bodies, which may hold credentials of other clusters.
"""

from __future__ import annotations

import logging
from typing import Final

from interpulse.model.permissions import Principal

__all__ = ["AUDIT_LOGGER", "note_change"]

AUDIT_LOGGER: Final = "interpulse.audit"
_NOBODY: Final = "-"
_CHARS_MAX: Final = 500

_logger = logging.getLogger(AUDIT_LOGGER)


def note_change(principal: Principal | None, address: str, change: str, subject: str, code: int, reason: str) -> None:
    """``code`` is the HTTP status or the error code of the binary protocol, 0 where that has none.

    ``principal`` None: the client has none, or was not let in.
    """
    _logger.info(
        "change asked role=%s original=%s address=%s change=%s subject=%s code=%d reason=%s",
        _NOBODY if principal is None else _shown(principal.role),
        _NOBODY if principal is None or principal.original is None else _shown(principal.original),
        address,
        change,
        _shown(subject),
        code,
        _shown(reason or _NOBODY),
    )


def _shown(text: str) -> str:
    """On one line, whatever a client calls itself."""
    return text[:_CHARS_MAX] if text.isprintable() else repr(text)[:_CHARS_MAX]
