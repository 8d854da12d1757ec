"""Valid names of clusters, tenants and namespaces."""

from __future__ import annotations

from typing import Final

from interpulse.model.errors import PreconditionFailed
from interpulse.model.names import is_entity_name

_NAME_LENGTH_MAX: Final = 1_000  # names of topics contain it, and go into the line of an HTTP request


def check_entity_name(kind: str, name: str) -> None:
    """Refuse a cluster or tenant name with characters other than letters, digits and ``_-=:.``.

    Raise PreconditionFailed.
    """
    if not is_entity_name(name):
        raise PreconditionFailed(f"{kind} name is not valid: {name[:100]!r} must be letters, digits and _-=:. only")
    if len(name) > _NAME_LENGTH_MAX:
        raise PreconditionFailed(f"{kind} name of {len(name)} characters: it may have {_NAME_LENGTH_MAX}")
