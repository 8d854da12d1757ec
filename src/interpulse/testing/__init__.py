"""Brokers for tests: in this process, as pytest fixtures, and with faults.

Importing this starts nothing. Using a name needs the ``[broker]`` extra. The fixtures are in ``pytest_plugin``.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from interpulse.serving.settings import ConfigError
    from interpulse.testing.broker import BrokerFactory, IgnoredSettingWarning, InProcessBroker, Setting
    from interpulse.testing.cluster_pair import ClusterPair
    from interpulse.testing.fault import Fault
    from interpulse.testing.faults import Faults

__all__ = [
    "BrokerFactory",
    "ClusterPair",
    "ConfigError",
    "Fault",
    "Faults",
    "IgnoredSettingWarning",
    "InProcessBroker",
    "Setting",
]

_MODULES: Final = {
    "BrokerFactory": "interpulse.testing.broker",
    "ClusterPair": "interpulse.testing.cluster_pair",
    "ConfigError": "interpulse.serving.settings",
    "Fault": "interpulse.testing.fault",
    "Faults": "interpulse.testing.faults",
    "IgnoredSettingWarning": "interpulse.testing.broker",
    "InProcessBroker": "interpulse.testing.broker",
    "Setting": "interpulse.testing.broker",
}


def __getattr__(name: str) -> Any:
    if name not in _MODULES:
        raise AttributeError(f"module {__name__} has no attribute {name}")
    from interpulse.broker.packages import need

    if sentence := need():
        raise ImportError(sentence)
    return getattr(import_module(_MODULES[name]), name)
