"""The packages of the ``[broker]`` extra, which are loaded late and so are looked for early."""

from __future__ import annotations

from importlib.util import find_spec
from typing import Final

__all__ = ["MODULES", "need_for"]

MODULES: Final = {
    "fastavro": "fastavro",
    "jwt": "pyjwt",
    "prometheus_client": "prometheus-client",
    "re2": "google-re2",
    "structlog": "structlog",
}
"""Modules and what pip calls their packages."""


def need_for(*modules: str) -> str | None:
    """The sentence that says which of these modules are missing and what to install; None if all are there."""
    missing = [MODULES.get(module, module) for module in modules if find_spec(module) is None]
    return f"a broker needs {' and '.join(missing)} as well: pip install 'interpulse[broker]'" if missing else None
