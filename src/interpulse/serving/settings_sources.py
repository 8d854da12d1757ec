"""Settings of a program, read from a file, the environment and the command line."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Final, Generic, TypeVar

from interpulse.serving.settings import ConfigError, Setting, nearest, parsed, settings_of

Config = TypeVar("Config")

_ENVIRONMENT_PREFIX: Final = "PULSAR_PREFIX_"


@dataclass(frozen=True, slots=True)
class LoadedConfig(Generic[Config]):
    """Valid settings, and a warning per source about Pulsar's keys that have no effect in the program."""

    config: Config
    warnings: tuple[str, ...] = ()


@dataclass(frozen=True)
class Program(Generic[Config]):
    """Program, and the keys that its file may have."""

    name: str
    """Name in sentences: "broker"."""
    config: type[Config]
    """Frozen dataclass of its settings."""
    pulsar_keys: frozenset[str]
    """Keys of Pulsar's own files. Those without a setting have no effect and cause a warning."""
    protecting_keys: frozenset[str] = frozenset()
    """Keys that request protection that the program does not offer: refused unless empty or false."""
    address_keys: frozenset[str] = frozenset()
    """Keys without effect whose address values may request encryption by their scheme: refused if they do."""
    refusal: str = ""
    """Sentence that follows the names of such keys."""
    acts_on: Callable[[Setting], bool] = lambda setting: True
    """Function that returns False for a setting without effect in this program."""
    refused: Callable[[str, str], str] = lambda key, value: ""
    """Function that returns the reason to refuse a value of a key, or an empty string."""

    @cached_property
    def settings(self) -> dict[str, Setting]:
        """Settings with an effect, by key."""
        return {key: setting for key, setting in settings_of(self.config).items() if self.acts_on(setting)}

    def load(
        self,
        *,
        file_text: str = "",
        file_name: str,
        environment: Mapping[str, str] | None = None,
        settings: Iterable[str] = (),
        options: Mapping[str, str] | None = None,
    ) -> LoadedConfig[Config]:
        """Merge all sources, the weakest first. Raise ConfigError with the problems of all of them.

        ``environment``: variables named like a key, or ``PULSAR_PREFIX_<key>``; others are ignored. ``settings``:
        ``key=value`` texts of ``--set``. ``options``: values of command line options, by key.
        """
        problems: list[str] = []
        warnings: list[str] = []
        lines = enumerate(map(str.strip, file_text.splitlines()), start=1)
        in_file = ((f"{file_name}, line {n}: ", line) for n, line in lines if line and not line.startswith(("#", "!")))
        sources = (
            (f"{file_name}: ", _assignments(in_file, problems)),
            ("environment: ", self._environment_settings(environment or {})),
            ("", _assignments((("", text) for text in settings), problems)),
            ("", list((options or {}).items())),
        )
        values: dict[str, Any] = {}
        protection: dict[str, str] = {}
        for origin, texts in sources:
            supported = list(self._supported(texts, origin, problems, warnings))
            values.update(parsed(self.settings, supported, origin, problems))
            for key, value in texts:
                setting = f"{origin}{key}={value}"
                if reason := self.refused(key, value):
                    problems.append(f"{setting}: {reason}")
                protection[key] = setting if self._asks_for_protection(key, value) else ""
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
        """Return the settings in environment variables. Prefixed names take precedence."""
        named = [(key, value) for key, value in environment.items() if key in self.settings or key in self.pulsar_keys]
        prefix = _ENVIRONMENT_PREFIX
        return named + [
            (key.removeprefix(prefix), value) for key, value in environment.items() if key.startswith(prefix)
        ]

    def _supported(
        self, texts: Iterable[tuple[str, str]], origin: str, problems: list[str], warnings: list[str]
    ) -> Iterator[tuple[str, str]]:
        """Yield the settings of one source that have an effect. Report the others.

        An empty value is the default, as in Pulsar's own files, or None where a setting can be off.
        """
        idle: dict[str, None] = {}
        for key, value in texts:
            if key in self.settings:
                if value or self.settings[key].can_be_off:
                    yield key, value
            elif key not in self.pulsar_keys:
                near = nearest(key, [*self.settings, *self.pulsar_keys])
                hint = f"; the nearest is {near}" if near else ""
                problems.append(f"{origin}{key} is not a known setting{hint}")
            elif value:
                idle[key] = None
        if idle:
            are = "is a setting of Pulsar that is" if len(idle) == 1 else "are settings of Pulsar that are"
            warnings.append(f"{origin}{', '.join(idle)} {are} not supported here; there is no effect")


def _assignments(texts: Iterable[tuple[str, str]], problems: list[str]) -> list[tuple[str, str]]:
    """Return key and value of each ``key=value`` text. Each text comes with its origin, for a problem."""
    settings = []
    for origin, text in texts:
        key, separator, value = text.partition("=")
        if separator:
            settings.append((key.strip(), value.strip()))
        else:
            problems.append(f"{origin}expected key=value, found {text!r}")
    return settings
