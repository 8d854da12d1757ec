"""Writes ``docs/reference/configuration.md`` from the settings of the broker."""

from __future__ import annotations

from dataclasses import Field
from pathlib import Path
from typing import Any

from interpulse.broker.config.broker_config import BrokerConfig, settings_by_key
from interpulse.broker.config.pulsar_keys import AUTHENTICATION_KEYS, BROKER_KEYS
from interpulse.model.numbers import LONG_MAX

PAGE = Path(__file__).parents[1] / "docs" / "reference" / "configuration.md"

_HEAD = """# Broker settings

Written by `tools/generate_config_reference.py`; do not edit.

Settings come from a `broker.conf` file (`interpulse standalone --config FILE`), from environment variables named like
the key (or `PULSAR_PREFIX_<key>`), and from `--set key=value`, each stronger than the one before. *Dynamic* settings
can be changed while the broker runs (`interpulse admin brokers update-dynamic-config`). A key of Apache Pulsar that is
not listed here is accepted with a warning and has no effect, so its own files can be used.
One that asks for TLS is refused, as is any other key. Settings *of a cluster* are those of `interpulse broker`; a
standalone broker accepts them with a warning.

| key | default | allowed | dynamic | meaning |
| --- | --- | --- | --- | --- |
"""


def page() -> str:
    """The whole page."""
    return _HEAD + "".join(_row(key, item) for key, item in settings_by_key().items())


def _row(key: str, item: Field[Any]) -> str:
    default = BrokerConfig().as_text()[key]
    shown = f"`{default}`" if default else "empty"
    dynamic = "yes" if item.metadata["dynamic"] else ""
    ours = "" if key in BROKER_KEYS | AUTHENTICATION_KEYS else " *(not a key of Apache Pulsar)*"
    cluster = " *(of a cluster)*" if item.metadata["cluster"] else ""
    return f"| `{key}` | {shown} | {_allowed(item)} | {dynamic} | {item.metadata['text']}{ours}{cluster} |\n"


def _allowed(item: Field[Any]) -> str:
    if isinstance(item.default, bool):
        return "true, false"
    choices, least, most = (item.metadata[name] for name in ("choices", "least", "most"))
    if choices:
        return ", ".join(choices) + (" (several)" if item.metadata["several"] else "")
    if least is None:
        return "text"
    return f"{least} to {most}" if most not in (None, LONG_MAX) else f"{least} or more"


if __name__ == "__main__":
    PAGE.write_text(page())
