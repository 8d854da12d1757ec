"""Brokers for tests: in this process, as pytest fixtures, and made to fail. Importing this starts nothing.

Needs the ``[broker]`` extra, which is missed when a name is first used. The fixtures are in ``pytest_plugin``.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from interpulse.serving.settings import ConfigError
    from interpulse.testing.broker import InProcessBroker
    from interpulse.testing.broker_factory import BrokerFactory
    from interpulse.testing.cluster_pair import ClusterPair
    from interpulse.testing.fault import Fault
    from interpulse.testing.faults import Faults
    from interpulse.testing.settings import IgnoredSettingWarning, Setting

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
    "BrokerFactory": "interpulse.testing.broker_factory",
    "ClusterPair": "interpulse.testing.cluster_pair",
    "ConfigError": "interpulse.serving.settings",
    "Fault": "interpulse.testing.fault",
    "Faults": "interpulse.testing.faults",
    "IgnoredSettingWarning": "interpulse.testing.settings",
    "InProcessBroker": "interpulse.testing.broker",
    "Setting": "interpulse.testing.settings",
}


_PACKAGES: Final = {"jwt": "pyjwt", "prometheus_client": "prometheus-client", "re2": "google-re2"}
"""Modules whose packages have another name."""


def __getattr__(name: str) -> Any:
    if name not in _MODULES:
        raise AttributeError(f"module {__name__} has no attribute {name}")
    try:
        return getattr(import_module(_MODULES[name]), name)
    except ModuleNotFoundError as error:
        module = (error.name or "interpulse").partition(".")[0]
        if module == "interpulse":
            raise
        package = _PACKAGES.get(module, module)
        raise ImportError(f"a broker needs {package} as well: pip install 'interpulse[broker]'") from error
