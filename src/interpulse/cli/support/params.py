"""Types of command line values: names, sizes, times, message ids, lists and pairs."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

import click

from interpulse.cli.support.completion import complete_namespaces, complete_topics
from interpulse.model.errors import InvalidTopicName
from interpulse.model.ids import EARLIEST, LATEST, MessageId, Position
from interpulse.model.names import NON_PERSISTENT, PERSISTENT, Domain, NamespaceName, TopicName
from interpulse.terminal.option_groups import flag

if TYPE_CHECKING:
    from click.shell_completion import CompletionItem

preview_option = flag("--preview previewed", "Print the changes, and change nothing.")

_DOMAINS: Final[dict[str, Domain]] = {
    "persistent": PERSISTENT,
    "non-persistent": NON_PERSISTENT,
    "non_persistent": NON_PERSISTENT,
}
_SIZE_UNITS = {"": 1, "k": 2**10, "m": 2**20, "g": 2**30, "t": 2**40}
_TIME_UNITS = {"": 1, "s": 1, "m": 60, "h": 3600, "d": 86_400, "w": 7 * 86_400, "y": 365 * 86_400}


class _Topic(click.ParamType[TopicName]):
    name = "topic"

    def shell_complete(self, ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:
        return complete_topics(ctx, incomplete)

    def convert(self, value: str | TopicName, param: click.Parameter | None, ctx: click.Context | None) -> TopicName:
        try:
            return TopicName.parse(str(value))
        except InvalidTopicName as error:
            self.fail(str(error), param, ctx)


class _Namespace(click.ParamType[NamespaceName]):
    name = "tenant/namespace"

    def shell_complete(self, ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:
        return complete_namespaces(ctx, incomplete)

    def convert(
        self, value: str | NamespaceName, param: click.Parameter | None, ctx: click.Context | None
    ) -> NamespaceName:
        try:
            return NamespaceName.parse(str(value))
        except InvalidTopicName as error:
            self.fail(str(error), param, ctx)


class _Quantity(click.ParamType[int]):
    """An integer with an optional unit letter; -1 means "no limit"."""

    def __init__(self, name: str, units: dict[str, int], examples: str) -> None:
        self.name = name
        self._units = units
        self._examples = examples

    def convert(self, value: str | int, param: click.Parameter | None, ctx: click.Context | None) -> int:
        if isinstance(value, int):
            return value
        match = re.fullmatch(r"(-?[0-9]+)([a-z]?)", value.strip().lower(), re.ASCII)
        if match is None or match.group(2) not in self._units:
            self.fail(f"{value!r} is not a {self.name}; valid forms are {self._examples}", param, ctx)
        number = int(match.group(1))
        return -1 if number == -1 else number * self._units[match.group(2)]


class _MessageId(click.ParamType[MessageId]):
    name = "message id"

    def convert(self, value: str | MessageId, param: click.Parameter | None, ctx: click.Context | None) -> MessageId:
        if isinstance(value, MessageId):
            return value
        if value in ("latest", "earliest"):
            position = LATEST if value == "latest" else EARLIEST
            return MessageId(position.ledger, position.entry)
        try:
            position = Position.parse(value)
        except ValueError:
            self.fail(f"{value!r} is neither latest nor earliest nor ledgerId:entryId", param, ctx)
        return MessageId(position.ledger, position.entry)


class _Bundle(click.ParamType[str]):
    name = "bundle"

    def convert(self, value: str, param: click.Parameter | None, ctx: click.Context | None) -> str:
        if not re.fullmatch(r"0[xX][0-9a-fA-F]{1,8}_0[xX][0-9a-fA-F]{1,8}", value, re.ASCII):
            self.fail(f"{value!r} is not a bundle; a bundle looks like 0x00000000_0x40000000", param, ctx)
        return value


class _Strings(click.ParamType[list[str]]):
    name = "a,b,..."

    def convert(self, value: str | list[str], param: click.Parameter | None, ctx: click.Context | None) -> list[str]:
        if isinstance(value, list):
            return value
        return [part.strip() for part in value.split(",") if part.strip()]


class _Numbers(click.ParamType[list[int]]):
    name = "1,2,..."

    def convert(self, value: str | list[int], param: click.Parameter | None, ctx: click.Context | None) -> list[int]:
        if isinstance(value, list):
            return value
        parts = [part.strip() for part in value.split(",")]
        if not all(part.isascii() and part.isdigit() for part in parts):
            self.fail(f"{value!r} is not a list of integers, such as 1073741824,2147483648", param, ctx)
        return [int(part) for part in parts]


class _Pairs(click.ParamType[dict[str, str]]):
    name = "a=b,c=d,..."

    def convert(
        self, value: str | dict[str, str], param: click.Parameter | None, ctx: click.Context | None
    ) -> dict[str, str]:
        if isinstance(value, dict):
            return value
        pairs = {}
        for part in value.split(","):
            key, separator, text = part.partition("=")
            if not separator or not key:
                self.fail(f"{part!r} is not of the form key=value", param, ctx)
            pairs[key] = text
        return pairs


def joined_pairs(parts: tuple[dict[str, str], ...]) -> dict[str, str]:
    """Join the pairs of an option given several times. The last one of a key wins."""
    return {key: value for part in parts for key, value in part.items()}


def domains_of(name: str | None) -> tuple[Domain, ...]:
    """Return the domain that `DOMAIN` names, or both for None."""
    return (PERSISTENT, NON_PERSISTENT) if name is None else (_DOMAINS[name],)


COUNT: Final = click.IntRange(min=0)
POSITIVE: Final = click.IntRange(min=1)
AMOUNT: Final = click.FloatRange(min=0)
DOMAIN: Final = click.Choice(list(_DOMAINS))
TOPIC: Final = _Topic()
NAMESPACE: Final = _Namespace()
BUNDLE: Final = _Bundle()
MESSAGE_ID: Final = _MessageId()
STRINGS: Final = _Strings()
NUMBERS: Final = _Numbers()
PAIRS: Final = _Pairs()
SIZE: Final = _Quantity("size", _SIZE_UNITS, "4096, 100K, 10M, 16G, 2T, and -1 for no limit")
"""Size in bytes."""
TIME: Final = _Quantity("time", _TIME_UNITS, "30, 30s, 100m, 3h, 2d, 5w, 1y, and -1 for no limit")
"""Time in seconds."""
MILLIS: Final = _Quantity("time", {unit: 1000 * seconds for unit, seconds in _TIME_UNITS.items()}, "30, 30s, 100m, 3h")
"""Time in milliseconds, given in seconds or longer units."""
