"""Types of command line values: names, sizes, times, message ids, lists and pairs."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import TYPE_CHECKING, Final, TypeVar

import click

from interpulse.cli.support.completion import complete_namespaces, complete_topics
from interpulse.model.errors import InvalidTopicName
from interpulse.model.ids import EARLIEST, LATEST, MessageId, Position
from interpulse.model.names import NON_PERSISTENT, PERSISTENT, Domain, NamespaceName, TopicName
from interpulse.terminal.option_groups import flag

if TYPE_CHECKING:
    from click.shell_completion import CompletionItem

T = TypeVar("T")

preview_option = flag("--preview previewed", "Print the changes, and change nothing.")

_DOMAINS: Final[dict[str, Domain]] = {
    "persistent": PERSISTENT,
    "non-persistent": NON_PERSISTENT,
    "non_persistent": NON_PERSISTENT,
}
_SIZE_UNITS = {"": 1, "k": 2**10, "m": 2**20, "g": 2**30, "t": 2**40}
_TIME_UNITS = {"": 1, "s": 1, "m": 60, "h": 3600, "d": 86_400, "w": 7 * 86_400, "y": 365 * 86_400}


class Parsed(click.ParamType[T]):
    """A value that ``parse`` reads. It raises ValueError or InvalidTopicName with the sentence for other texts."""

    def __init__(
        self,
        name: str,
        parse: Callable[[str], T],
        complete: Callable[[click.Context, str], list[CompletionItem]] = lambda ctx, incomplete: [],
    ) -> None:
        self.name = name
        self._parse = parse
        self._complete = complete

    def convert(self, value: str | T, param: click.Parameter | None, ctx: click.Context | None) -> T:
        if not isinstance(value, str):
            return value
        try:
            return self._parse(value)
        except (ValueError, InvalidTopicName) as error:
            self.fail(str(error), param, ctx)

    def shell_complete(self, ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:
        return self._complete(ctx, incomplete)


def _quantity(name: str, units: dict[str, int], examples: str) -> Parsed[int]:
    """Return the type of an integer with an optional unit letter; -1 means "no limit"."""

    def parse(text: str) -> int:
        match = re.fullmatch(r"(-?[0-9]+)([a-z]?)", text.strip().lower(), re.ASCII)
        if match is None or match.group(2) not in units:
            raise ValueError(f"{text!r} is not a {name}; valid forms are {examples}")
        number = int(match.group(1))
        return -1 if number == -1 else number * units[match.group(2)]

    return Parsed(name, parse)


def _message_id(text: str) -> MessageId:
    ends = {"latest": LATEST, "earliest": EARLIEST}
    try:
        position = ends[text] if text in ends else Position.parse(text)
    except ValueError:
        raise ValueError(f"{text!r} is neither latest nor earliest nor ledgerId:entryId") from None
    return MessageId(position.ledger, position.entry)


def _bundle(text: str) -> str:
    if not re.fullmatch(r"0[xX][0-9a-fA-F]{1,8}_0[xX][0-9a-fA-F]{1,8}", text, re.ASCII):
        raise ValueError(f"{text!r} is not a bundle; a bundle looks like 0x00000000_0x40000000")
    return text


def _strings(text: str) -> list[str]:
    return [part.strip() for part in text.split(",") if part.strip()]


def _numbers(text: str) -> list[int]:
    parts = [part.strip() for part in text.split(",")]
    if not all(part.isascii() and part.isdigit() for part in parts):
        raise ValueError(f"{text!r} is not a list of integers, such as 1073741824,2147483648")
    return [int(part) for part in parts]


def _pairs(text: str) -> dict[str, str]:
    pairs = {}
    for part in text.split(","):
        key, separator, value = part.partition("=")
        if not separator or not key:
            raise ValueError(f"{part!r} is not of the form key=value")
        pairs[key] = value
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
TOPIC: Final = Parsed("topic", TopicName.parse, complete_topics)
NAMESPACE: Final = Parsed("tenant/namespace", NamespaceName.parse, complete_namespaces)
BUNDLE: Final = Parsed("bundle", _bundle)
MESSAGE_ID: Final = Parsed("message id", _message_id)
STRINGS: Final = Parsed("a,b,...", _strings)
NUMBERS: Final = Parsed("1,2,...", _numbers)
PAIRS: Final = Parsed("a=b,c=d,...", _pairs)
SIZE: Final = _quantity("size", _SIZE_UNITS, "4096, 100K, 10M, 16G, 2T, and -1 for no limit")
"""Size in bytes."""
TIME: Final = _quantity("time", _TIME_UNITS, "30, 30s, 100m, 3h, 2d, 5w, 1y, and -1 for no limit")
"""Time in seconds."""
MILLIS: Final = _quantity("time", {unit: 1000 * seconds for unit, seconds in _TIME_UNITS.items()}, "30, 30s, 100m, 3h")
"""Time in milliseconds, given in seconds or longer units."""
