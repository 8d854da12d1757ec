"""The packages of the ``[broker]`` extra, which are loaded late and so are looked for early."""

from __future__ import annotations

from importlib.util import find_spec
from typing import Final

from interpulse.model.extras import pip_install

__all__ = ["need"]

MODULES: Final = {
    "fastavro": "fastavro",
    "jwt": "pyjwt",
    "prometheus_client": "prometheus-client",
    "re2": "google-re2",
    "structlog": "structlog",
}
"""Modules and what pip calls their packages."""


def need() -> str | None:
    """The sentence that says which of them are missing and what to install; None if all are there."""
    missing = [package for module, package in MODULES.items() if find_spec(module) is None]
    return f"a broker needs {' and '.join(missing)} as well: {pip_install('broker')}" if missing else None
