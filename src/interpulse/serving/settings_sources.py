"""The settings of a program read from a file, the environment and the command line."""

from __future__ import annotations

import difflib
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import Field, dataclass
from functools import cached_property
from typing import Any, Final, Generic, TypeVar

from interpulse.serving.settings import ConfigError, keyed_fields, parsed

__all__ = ["LoadedConfig", "Program"]

Config = TypeVar("Config")

_ENVIRONMENT_PREFIX: Final = "PULSAR_PREFIX_"


@dataclass(frozen=True, slots=True)
class LoadedConfig(Generic[Config]):
    """Usable settings; for each source a sentence with those that Pulsar knows but the program does not act on."""

    config: Config
    warnings: tuple[str, ...] = ()


@dataclass(frozen=True)
class Program(Generic[Config]):
    """A program of ours and the keys that may stand in its file."""

    name: str
    """As sentences call it: "broker"."""
    config: type[Config]
    """The frozen dataclass of its settings."""
    pulsar_keys: frozenset[str]
    """What Pulsar's own files hold. Those without a field have no effect, and are accepted with a warning."""
    protecting_keys: frozenset[str] = frozenset()
    """Keys that ask for protection that the program does not offer: refused unless empty or false."""
    address_keys: frozenset[str] = frozenset()
    """Keys without effect whose values may ask for encryption by the scheme of an address; refused then as well."""
    refusal: str = ""
    """What to say of them: the sentence behind their names."""
    acts_on: Callable[[Field[Any]], bool] = lambda item: True
    """Whether the program has a use for a field of its settings; without one its key has no effect here."""
    refused: Callable[[str, str], str] = lambda key, value: ""
    """What speaks against one setting, empty if nothing does."""

    @cached_property
    def fields(self) -> dict[str, Field[Any]]:
        """Every supported key and the field it sets."""
        return {key: item for key, item in keyed_fields(self.config).items() if self.acts_on(item)}

    def load(
        self,
        *,
        file_text: str = "",
        file_name: str,
        environment: Mapping[str, str] | None = None,
        settings: Iterable[str] = (),
        options: Mapping[str, str] | None = None,
    ) -> LoadedConfig[Config]:
        """Join all sources; raises ConfigError with every problem found in any of them.

        ``environment``: variables named like a key, or ``PULSAR_PREFIX_<key>``; all others are none of our business.
        ``settings``: ``key=value`` texts as given to ``--set``. ``options``: values that command line options stand
        for, by key; they are the strongest.
        """
        problems: list[str] = []
        warnings: list[str] = []
        sources = (
            (f"{file_name}: ", _file_settings(file_text, file_name, problems)),
            ("environment: ", self._environment_settings(environment or {})),
            ("", _explicit_settings(settings, problems)),
            ("", list((options or {}).items())),
        )
        values: dict[str, Any] = {}
        protection: dict[str, str] = {}
        for origin, given in sources:
            supported = list(self._supported(given, origin, problems, warnings))
            values.update(parsed(self.fields, supported, origin, problems))
            told = [(f"{origin}{key}={value}", self.refused(key, value)) for key, value in given]
            problems += [f"{setting}: {reason}" for setting, reason in told if reason]
            for key, value in given:
                protection[key] = f"{origin}{key}={value}" if self._asks_for_protection(key, value) else ""
        if any(protection.values()):
            problems.append(f"{', '.join(filter(None, protection.values()))}: {self.refusal}")
        if problems:
            raise ConfigError(*problems)
        return LoadedConfig(self.config(**values), tuple(warnings))

    def _asks_for_protection(self, key: str, value: str) -> bool:
        if key in self.protecting_keys:
            return value.lower() not in ("", "false")
        return key in self.address_keys and any(scheme in value.lower() for scheme in ("pulsar+ssl://", "https://"))

    def _environment_settings(self, environment: Mapping[str, str]) -> list[tuple[str, str]]:
        named = [
            (name, value) for name, value in environment.items() if name in self.fields or name in self.pulsar_keys
        ]
        prefixed = [
            (name.removeprefix(_ENVIRONMENT_PREFIX), value)
            for name, value in environment.items()
            if name.startswith(_ENVIRONMENT_PREFIX)
        ]
        return named + prefixed

    def _supported(
        self, given: Iterable[tuple[str, str]], origin: str, problems: list[str], warnings: list[str]
    ) -> Iterator[tuple[str, str]]:
        """The settings of one source that we act on. A value left empty means the default, as in Pulsar's own files,
        or none where a setting can be off."""
        idle: list[str] = []
        for key, value in given:
            if key in self.fields:
                if value or self.fields[key].metadata["can_be_off"]:
                    yield key, value
            elif key in self.pulsar_keys:
                if value and key not in idle:
                    idle.append(key)
            else:
                problems.append(f"{origin}{key} is not a known setting{self._nearest(key)}")
        if idle:
            told = "is a setting of Pulsar that is" if len(idle) == 1 else "are settings of Pulsar that are"
            warnings.append(f"{origin}{', '.join(idle)} {told} not supported here; there is no effect")

    def _nearest(self, key: str) -> str:
        near = difflib.get_close_matches(key, [*self.fields, *self.pulsar_keys], n=1)
        return f"; the nearest is {near[0]}" if near else ""


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


def _explicit_settings(settings: Iterable[str], problems: list[str]) -> list[tuple[str, str]]:
    read = []
    for text in settings:
        key, separator, value = text.partition("=")
        if separator:
            read.append((key.strip(), value.strip()))
        else:
            problems.append(f"expected key=value, found {text!r}")
    return read
