"""The packages of the ``[broker]`` extra. They are loaded late, so their presence is checked early."""

from __future__ import annotations

from importlib.util import find_spec
from typing import Final

from interpulse.model.extras import pip_install

MODULES: Final = {
    "fastavro": "fastavro",
    "jwt": "pyjwt",
    "prometheus_client": "prometheus-client",
    "re2": "google-re2",
    "structlog": "structlog",
}
"""Modules and the names of their packages for pip."""


def need() -> str | None:
    """Return the sentence that names missing packages and the command to install them; None if all are installed."""
    missing = [package for module, package in MODULES.items() if find_spec(module) is None]
    return f"a broker needs {' and '.join(missing)} as well: {pip_install('broker')}" if missing else None
