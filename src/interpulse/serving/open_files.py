"""How many files a program may open. A connection is one, and so is each ledger that is read or written."""

from __future__ import annotations

import logging
import resource

__all__ = ["raise_open_files"]

_logger = logging.getLogger(__name__)


def raise_open_files() -> int:
    """Raise the soft limit of open files to the hard one, as Java does; the number that is in force then.

    Child processes start with the limit of this one.
    """
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft == hard:
        return soft
    try:
        resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    except (OSError, ValueError) as error:  # a system may allow less than the hard limit says
        _logger.warning("limit of open files cannot be raised soft=%d hard=%d reason=%s", soft, hard, error)
        return soft
    return hard
