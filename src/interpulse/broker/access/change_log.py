"""The audit log: the principal, address, subject and outcome of each change.

Its logger is named ``interpulse.audit``, so that it can have a file of its own (``auditLogFile``). It omits bodies,
which may hold credentials of other clusters.
"""

from __future__ import annotations

import logging
from typing import Final

from interpulse.model.permissions import Principal

AUDIT_LOGGER: Final = "interpulse.audit"
_NOBODY: Final = "-"
_CHARS_MAX: Final = 500

_logger = logging.getLogger(AUDIT_LOGGER)


def note_change(principal: Principal | None, address: str, change: str, subject: str, code: int, reason: str) -> None:
    """Log one change with its outcome.

    ``code`` is the HTTP status or the error code of the binary protocol, 0 where that has none. ``principal`` is None
    if the client has none or was refused.
    """
    _logger.info(
        "change requested role=%s original=%s address=%s change=%s subject=%s code=%d reason=%s",
        _NOBODY if principal is None else _shown(principal.role),
        _NOBODY if principal is None or principal.original is None else _shown(principal.original),
        address,
        change,
        _shown(subject),
        code,
        _shown(reason or _NOBODY),
    )


def _shown(text: str) -> str:
    return text[:_CHARS_MAX] if text.isprintable() else repr(text)[:_CHARS_MAX]
