"""Writes ``docs/reference/configuration.md`` and ``proxy-configuration.md`` from the settings of broker and proxy."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from interpulse.broker.config.broker_config import BrokerConfig, settings_by_key
from interpulse.broker.config.pulsar_keys import READ_AT_START, WITHOUT_EFFECT
from interpulse.model.numbers import LONG_MAX
from interpulse.proxy.proxy_config import ProxyConfig, proxy_settings
from interpulse.serving.settings import Setting, shown

REFERENCE = Path(__file__).parents[1] / "docs" / "reference"
_OWN_KEYS = """
auditLogFile autoTopicCreationLookupTimeoutMs consoleEnabled consoleMessagesEnabled consoleReadOnly dataDir
diskReserveInMB maxTopicsPerBatchLookup replicationJob replicationJobDriverMemory replicationJobSparkMaster
replicatorRoles supportsBatchLookup supportsReplicationPreview tlsAuthPrincipalMappingRules
tlsCertIdentitySource tokenRequireKid tokenValidationKeysJwks tokenValidationKeysRefreshSeconds
webServiceAllowedHosts
"""
OWN_KEYS = frozenset(_OWN_KEYS.split())
"""Settings that no release of Apache Pulsar has."""
PAGE = REFERENCE / "configuration.md"
PROXY_PAGE = REFERENCE / "proxy-configuration.md"

_HEAD = """# Broker settings

Written by `tools/generate_config_reference.py`; do not edit.

Settings come from a `broker.conf` file (`interpulse standalone --config FILE`), from environment variables with the
name of the key (or `PULSAR_PREFIX_<key>`), and from `--set key=value`; later sources override earlier ones. You can
change *dynamic* settings while the broker runs (`interpulse admin brokers update-dynamic-config`). A key of Apache
Pulsar that is not listed here is accepted with a warning and has no effect, so you can use Pulsar's own files. The
broker refuses such a key if it asks for a protection that is not available here, and it refuses all unknown keys.
Settings *of a cluster* are those of `interpulse broker`; a standalone broker accepts them with a warning.

| key | default | allowed | dynamic | meaning |
| --- | --- | --- | --- | --- |
"""

_WITHOUT_EFFECT_HEAD = """
## Dynamic settings of Apache Pulsar without effect

A broker of Apache Pulsar can change these at run time too. An Interpulse broker stores them, shows them in
`brokers get-all-dynamic-config`, and logs a warning; brokers of Apache Pulsar in the same cluster apply them.
The broker reads {} only at its start, and
refuses to change them at run time.

| keys | reason |
| --- | --- |
"""

_PROXY_HEAD = """# Proxy settings

Written by `tools/generate_config_reference.py`; do not edit.

Settings of [the proxy](../howto/run-a-proxy.md) come from a `proxy.conf` file (`interpulse proxy --config FILE`), from
environment variables with the name of the key (or `PULSAR_PREFIX_<key>`), and from `--set key=value`; later sources
override earlier ones. A key of Apache Pulsar's proxy that is not listed here is accepted with a warning and has no
effect. The proxy refuses such a key if it asks for a protection that the proxy does not offer, and it refuses all
unknown keys.

| key | default | allowed | meaning |
| --- | --- | --- | --- |
"""


def page() -> str:
    """The whole page of the broker."""
    rows = "".join(_row(key, item, BrokerConfig()) for key, item in settings_by_key().items())
    without_effect = "".join(f"| {_keys(names.split())} | {reason} |\n" for reason, names in WITHOUT_EFFECT.items())
    return _HEAD + rows + _WITHOUT_EFFECT_HEAD.format(_keys(READ_AT_START)) + without_effect


def proxy_page() -> str:
    """The whole page of the proxy."""
    settings = proxy_settings()
    return _PROXY_HEAD + "".join(_row(key, item, ProxyConfig()) for key, item in settings.items())


def _keys(names: Iterable[str]) -> str:
    return ", ".join(f"`{name}`" for name in sorted(names))


def _row(key: str, item: Setting, defaults: BrokerConfig | ProxyConfig) -> str:
    default = shown(defaults, {key: item})[key]
    cells = [f"`{key}`", f"`{default}`" if default else "empty", _allowed(item)]
    if isinstance(defaults, BrokerConfig):
        cells.append("yes" if item.dynamic else "")
    ours = "" if key not in OWN_KEYS else " *(not a key of Apache Pulsar)*"
    cluster = " *(of a cluster)*" if item.cluster else ""
    return f"| {' | '.join([*cells, item.text + ours + cluster])} |\n"


def _allowed(item: Setting) -> str:
    if isinstance(item.default, bool):
        return "true, false"
    if item.choices:
        return ", ".join(item.choices) + (" (several)" if item.several else "")
    if isinstance(item.default, str):
        return "text"
    return f"{item.least} to {item.most}" if item.most not in (None, LONG_MAX) else f"{item.least} or more"


if __name__ == "__main__":
    PAGE.write_text(page())
    PROXY_PAGE.write_text(proxy_page())
