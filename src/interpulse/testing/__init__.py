"""A broker for tests: in this process, in a pytest fixture. Importing this starts nothing."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from interpulse.testing.broker import InProcessBroker

__all__ = ["InProcessBroker"]


def __getattr__(name: str) -> Any:
    if name == "InProcessBroker":
        from interpulse.testing.broker import InProcessBroker

        return InProcessBroker
    raise AttributeError(name)
