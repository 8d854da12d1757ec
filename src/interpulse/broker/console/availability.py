"""Whether this broker has a console, and the sentence for those who look for it where there is none."""

from __future__ import annotations

from importlib.util import find_spec
from typing import Final, NamedTuple

from interpulse.broker.config.broker_config import BrokerConfig
from interpulse.model.extras import pip_install
from interpulse.serving.listening import is_loopback

__all__ = ["MISSING_EXTRA", "Availability", "availability", "extra_installed"]

MISSING_EXTRA: Final = f"the console needs its extra: {pip_install('console')}"
_TURNED_OFF: Final = "the console is off (consoleEnabled=false)"
_PUBLIC: Final = (
    "the console is off: this broker listens for other machines and lets in callers without credentials; set "
    "authenticationEnabled=true and no anonymousUserRole, or consoleEnabled=true to show it to everybody"
)


class Availability(NamedTuple):
    """``reason`` says why there is none."""

    on: bool
    reason: str = ""


def availability(config: BrokerConfig, *, installed: bool) -> Availability:
    """What the settings say, and whether the extra is there."""
    asks_everybody = config.authentication_enabled and not config.anonymous_user_role
    if config.console_enabled == "false":
        return Availability(False, _TURNED_OFF)
    if config.console_enabled == "auto" and not (is_loopback(config.bind_address) or asks_everybody):
        return Availability(False, _PUBLIC)
    return Availability(True) if installed else Availability(False, MISSING_EXTRA)


def extra_installed() -> bool:
    """Whether jinja2 is there, without loading it."""
    return find_spec("jinja2") is not None
