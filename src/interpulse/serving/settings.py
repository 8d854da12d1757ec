"""Settings of programs: fields of one frozen dataclass per program, read from a file, the environment and options.

A setting has Pulsar's key if there is one: the camelCase form of the field's name, unless declared otherwise.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import KW_ONLY, dataclass, field, fields, replace
from functools import cached_property
from math import inf
from typing import Any, Final, Generic, ParamSpec, TypedDict, TypeVar

from interpulse.model.numbers import INT_MAX

P = ParamSpec("P")
Number = TypeVar("Number", int, float)

_HIDDEN: Final = "*****"

Config = TypeVar("Config")

_ENVIRONMENT_PREFIX: Final = "PULSAR_PREFIX_"


class ConfigError(Exception):
    """Invalid settings. ``problems`` has one sentence per problem."""

    def __init__(self, *problems: str) -> None:
        super().__init__(*problems)
        self.problems = problems

    def __str__(self) -> str:
        return "\n".join(self.problems)


@dataclass(frozen=True, eq=False, repr=False)
class Setting:
    """Declaration of a setting. The type of its default is the type of its values."""

    default: Any
    text: str
    """Description: one line, with the unit."""
    _: KW_ONLY
    dynamic: bool = False
    """True if it may change while the program runs."""
    least: int = 0
    """Minimum value of a number."""
    most: int | None = None
    """Maximum value of a number. None: the largest integer of 32 bits."""
    choices: tuple[str, ...] = ()
    several: bool = False
    """True if a value is any number of the choices, separated by commas."""
    secret: bool = False
    """True if its value is never shown."""
    cluster: bool = False
    """True if it has an effect only in a broker of a cluster."""
    can_be_off: bool = False
    """True if an empty value is None, not the default."""
    key: str = ""
    name: str = ""
    """Field of the dataclass. `settings_of` sets it, and the key if that follows from the name."""

    def read(self, text: str) -> Any:
        """Parse a value. Raise ValueError with the allowed values."""
        if not text and self.can_be_off:
            return None
        if isinstance(self.default, bool):
            return _boolean(text)
        if isinstance(self.default, float):
            return self._bounded(float(_matched(r"[0-9]{1,10}(\.[0-9]{1,10})?", text, "a number")))
        if isinstance(self.default, int | None):
            return self._bounded(int(_matched("[+-]?[0-9]{1,20}", text, "an integer")), self.most or INT_MAX)
        if self.several:
            return _several(text, self.choices)
        if self.choices and text not in self.choices:
            raise ValueError(f"must be one of {', '.join(self.choices)}")
        return text

    def _bounded(self, number: Number, most: float = inf) -> Number:
        if number < self.least:
            raise ValueError(f"must be at least {self.least}")
        if number > most:
            raise ValueError(f"must be at most {most}")
        return number


def _as_field(declare: Callable[P, Setting]) -> Callable[P, Any]:
    def declared(*args: P.args, **kwargs: P.kwargs) -> Any:
        made = declare(*args, **kwargs)
        return field(default=made.default, metadata={"setting": made})

    return declared


setting = _as_field(Setting)
"""Declare a field of a dataclass with its setting; see `Setting`."""


def settings_of(config: type[Any]) -> dict[str, Setting]:
    """Return the settings of a program by key: its own first, then those shared with other programs."""
    own = {name: place for place, name in enumerate(config.__annotations__)}
    settings = (
        replace(item.metadata["setting"], name=item.name, key=item.metadata["setting"].key or _key(item.name))
        for item in sorted(fields(config), key=lambda item: own.get(item.name, len(own)))
    )
    return {item.key: item for item in settings}


def _key(name: str) -> str:
    first, *rest = name.replace("open_id", "openID").split("_")
    return first + "".join("MB" if part == "mb" else part.capitalize() for part in rest)


def parsed(
    settings: Mapping[str, Setting], texts: Iterable[tuple[str, str]], origin: str, problems: list[str]
) -> Iterator[tuple[str, Any]]:
    """Yield field and value of each key and text. All keys must be known. Invalid values are added to ``problems``."""
    for key, text in texts:
        try:
            yield settings[key].name, settings[key].read(text)
        except ValueError as error:
            problems.append(f"{origin}{key}={text}: {error}")


def shown(config: Any, settings: Mapping[str, Setting]) -> dict[str, str]:
    """Return all settings by key, with values as in a file. Secrets that are set are hidden."""
    texts = {key: as_text(getattr(config, item.name)) for key, item in settings.items()}
    return {key: _HIDDEN if text and settings[key].secret else text for key, text in texts.items()}


def _several(text: str, choices: tuple[str, ...]) -> str:
    """Return the listed choices in their declared order. Brackets are allowed, as Pulsar prints them."""
    listed = {word.strip() for word in text.strip("[]").split(",")}
    if not listed <= set(choices):
        raise ValueError(f"must be some of {', '.join(choices)}, with commas between them")
    return ",".join(choice for choice in choices if choice in listed)


def _boolean(text: str) -> bool:
    if text.lower() not in ("true", "false"):
        raise ValueError("must be true or false")
    return text.lower() == "true"


def _matched(pattern: str, text: str, words: str) -> str:
    if not re.fullmatch(pattern, text, re.ASCII):
        raise ValueError(f"must be {words}")
    return text


def as_text(value: Any) -> str:
    """Return a value in its form in a settings file."""
    if value is None:
        return ""
    return str(value).lower() if isinstance(value, bool) else str(value)


def nearest(key: str, keys: Iterable[str]) -> str | None:
    """Return the key most similar to an unknown one, if there is one."""
    from difflib import get_close_matches  # only errors need it

    return next(iter(get_close_matches(key, list(keys), n=1)), None)


def words(text: str) -> list[str]:
    """Return the names in a comma-separated setting."""
    return [word.strip() for word in text.split(",") if word.strip()]


@dataclass(frozen=True, slots=True)
class LoadedConfig(Generic[Config]):
    """Valid settings, and a warning per source about Pulsar's keys that have no effect in the program."""

    config: Config
    warnings: tuple[str, ...] = ()


class Sources(TypedDict, total=False):
    """The sources of settings; see `Program.load`."""

    file_text: str
    file_name: str
    environment: Mapping[str, str] | None
    settings: Iterable[str]
    options: Mapping[str, str] | None


@dataclass(frozen=True)
class Program(Generic[Config]):
    """Program, and the keys that its file may have."""

    name: str
    """Name in sentences: "broker"."""
    config: type[Config]
    """Frozen dataclass of its settings."""
    pulsar_keys: frozenset[str]
    """Keys of Pulsar's own files without a setting. They have no effect and cause a warning."""
    protecting_keys: frozenset[str] = frozenset()
    """Keys that request protection that the program does not offer: refused unless empty or false."""
    address_keys: frozenset[str] = frozenset()
    """Keys without effect whose address values may request encryption by their scheme: refused if they do."""
    refusal: str = ""
    """Sentence that follows the names of such keys."""
    problems: Callable[[Config], Iterable[str]] = lambda config: ()
    """Function that returns the contradictions between settings that are valid one by one."""
    acts_on: Callable[[Setting], bool] = lambda setting: True
    """Function that returns False for a setting without effect in this program."""
    refused: Callable[[str, str], str] = lambda key, value: ""
    """Function that returns the reason to refuse a value of a key, or an empty string."""

    @cached_property
    def settings(self) -> dict[str, Setting]:
        """Settings with an effect, by key."""
        return {key: setting for key, setting in settings_of(self.config).items() if self.acts_on(setting)}

    @cached_property
    def known_keys(self) -> frozenset[str]:
        """All keys that a file may have, also without effect."""
        return self.pulsar_keys | settings_of(self.config).keys()

    def load(
        self,
        *,
        file_text: str = "",
        file_name: str = "",
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
        file_name = file_name or f"{self.name}.conf"
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
        config = self.config(**values)
        if problems := list(self.problems(config)):
            raise ConfigError(*problems)
        return LoadedConfig(config, tuple(warnings))

    def _asks_for_protection(self, key: str, value: str) -> bool:
        if key in self.protecting_keys:
            return value.lower() not in ("", "false")
        return key in self.address_keys and any(scheme in value.lower() for scheme in ("pulsar+ssl://", "https://"))

    def _environment_settings(self, environment: Mapping[str, str]) -> list[tuple[str, str]]:
        """Return the settings in environment variables. Prefixed names take precedence."""
        named = [(key, value) for key, value in environment.items() if key in self.known_keys]
        prefixed = [(key, value) for key, value in environment.items() if key.startswith(_ENVIRONMENT_PREFIX)]
        return named + [(key.removeprefix(_ENVIRONMENT_PREFIX), value) for key, value in prefixed]

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
            elif key not in self.known_keys:
                near = nearest(key, self.known_keys)
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
