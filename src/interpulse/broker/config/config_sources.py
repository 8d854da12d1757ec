"""The broker's settings read from a file, the environment and the command line."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

from interpulse.broker.config.broker_config import BrokerConfig, parsed, settings_by_key
from interpulse.broker.config.config_values import ConfigError
from interpulse.broker.config.pulsar_keys import PULSAR_KEYS, TLS_KEYS

__all__ = ["LoadedConfig", "load_config"]

_ENVIRONMENT_PREFIX: Final = "PULSAR_PREFIX_"
_FIELDS: Final = settings_by_key()
_ALONE: Final = (
    ": a standalone broker keeps everything in its data directory. Start a broker of a cluster with `interpulse broker`"
)
_ADDRESS_KEYS: Final = ("advertisedListeners", "bindAddresses")


@dataclass(frozen=True, slots=True)
class LoadedConfig:
    """Usable settings; for each source a sentence with those that Pulsar knows but this broker does not act on."""

    config: BrokerConfig
    warnings: tuple[str, ...] = ()


def load_config(
    *,
    file_text: str = "",
    file_name: str = "broker.conf",
    environment: Mapping[str, str] | None = None,
    settings: Iterable[str] = (),
    options: Mapping[str, str] | None = None,
    in_cluster: bool = False,
) -> LoadedConfig:
    """Join all sources; raises ConfigError with every problem found in any of them.

    ``environment``: variables named like a key, or ``PULSAR_PREFIX_<key>``; all others are none of our business.
    ``settings``: ``key=value`` texts as given to ``--set``. ``options``: values that command line options stand for, by
    key; they are the strongest. ``in_cluster``: the stores are those of a cluster; a broker that is alone does not act
    on their settings, and refuses to be sent to one.
    """
    problems: list[str] = []
    warnings: list[str] = []
    sources = (
        (f"{file_name}: ", _file_settings(file_text, file_name, problems)),
        ("environment: ", _environment_settings(environment or {})),
        ("", _explicit_settings(settings, problems)),
        ("", list((options or {}).items())),
    )
    values: dict[str, Any] = {}
    encryption: dict[str, str] = {}
    for origin, given in sources:
        supported = list(_supported(given, origin, problems, warnings, in_cluster=in_cluster))
        values.update(parsed(supported, origin, problems))
        if not in_cluster:
            problems += [f"{origin}{key}={value}{_ALONE}" for key, value in given if _is_zookeeper(key, value)]
        for key, value in given:
            encryption[key] = f"{origin}{key}={value}" if _asks_for_encryption(key, value) else ""
    problems += _refused_encryption([asked for asked in encryption.values() if asked])
    if problems:
        raise ConfigError(*problems)
    return LoadedConfig(BrokerConfig(**values), tuple(warnings))


def _is_zookeeper(key: str, value: str) -> bool:
    return key == "metadataStoreUrl" and value.startswith("zk:")


def _asks_for_encryption(key: str, value: str) -> bool:
    if key in TLS_KEYS:
        return value.lower() not in ("", "false")
    return key in _ADDRESS_KEYS and any(scheme in value.lower() for scheme in ("pulsar+ssl://", "https://"))


def _refused_encryption(asked: list[str]) -> list[str]:
    """A broker that is asked for TLS must not serve in plain text."""
    if not asked:
        return []
    return [
        f"{', '.join(asked)}: this broker does not offer TLS, and would serve in the clear what is to be encrypted "
        "here. Take them out, and put a proxy that ends TLS in front of the broker"
    ]


def _file_settings(text: str, file_name: str, problems: list[str]) -> list[tuple[str, str]]:
    settings = []
    for number, line in enumerate(text.splitlines(), start=1):
        stripped = line.strip()
        if not stripped or stripped.startswith(("#", "!")):
            continue
        key, separator, value = stripped.partition("=")
        if not separator:
            problems.append(f"{file_name}, line {number}: expected key=value, found {stripped!r}")
            continue
        settings.append((key.strip(), value.strip()))
    return settings


def _environment_settings(environment: Mapping[str, str]) -> list[tuple[str, str]]:
    named = [(name, value) for name, value in environment.items() if name in _FIELDS or name in PULSAR_KEYS]
    prefixed = [
        (name.removeprefix(_ENVIRONMENT_PREFIX), value)
        for name, value in environment.items()
        if name.startswith(_ENVIRONMENT_PREFIX)
    ]
    return named + prefixed


def _explicit_settings(settings: Iterable[str], problems: list[str]) -> list[tuple[str, str]]:
    parsed = []
    for text in settings:
        key, separator, value = text.partition("=")
        if separator:
            parsed.append((key.strip(), value.strip()))
        else:
            problems.append(f"expected key=value, found {text!r}")
    return parsed


def _supported(
    given: Iterable[tuple[str, str]], origin: str, problems: list[str], warnings: list[str], *, in_cluster: bool
) -> Iterator[tuple[str, str]]:
    """The settings of one source that we act on. A value left empty means the default, as in Pulsar's own files."""
    idle: list[str] = []
    for key, value in given:
        if key in _FIELDS and (in_cluster or not _FIELDS[key].metadata["cluster"]):
            if value:
                yield key, value
        elif key in PULSAR_KEYS:
            if value and key not in idle:
                idle.append(key)
        else:
            problems.append(f"{origin}{key} is not a known setting{_nearest(key)}")
    if idle:
        told = "is a setting of Pulsar that is" if len(idle) == 1 else "are settings of Pulsar that are"
        warnings.append(f"{origin}{', '.join(idle)} {told} not supported here; there is no effect")


def _nearest(key: str) -> str:
    near = difflib.get_close_matches(key, [*_FIELDS, *PULSAR_KEYS], n=1)
    return f"; the nearest is {near[0]}" if near else ""
