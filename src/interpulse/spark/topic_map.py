"""Names of topics on the target: the rules of ``[map]`` in the file of the replication job. Pure.

All state of the job (positions, lanes, holds, status) uses the name on the source. Only requests to the target use the
other one.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Final, NamedTuple

from interpulse.model.errors import InvalidTopicName
from interpulse.model.names import TopicName

_GROUP: Final = re.compile(r"\$(?:(\d+)|\{(\w+)\}|(\$))")
_PREFIX: Final = "persistent://"


class TopicRule(NamedTuple):
    """A rule: topics whose complete name without partition fully matches ``pattern`` are written to ``target``."""

    pattern: str
    target: str


@dataclass(frozen=True)
class TopicMap:
    """Rules for names; the first match counts. A topic that no rule matches keeps its name.

    With ``merge`` several topics may be written to one, each in its own order.
    """

    rules: tuple[TopicRule, ...] = ()
    merge: bool = False

    def __bool__(self) -> bool:
        return bool(self.rules)

    def target(self, topic: TopicName) -> TopicName:
        """Return the target name of a topic or a partition. Raises InvalidTopicName for an invalid result."""
        if not self.rules:
            return topic
        base = _renamed(self.rules, topic.base)
        return base.partition(topic.partition_index) if topic.is_partition else base

    def problems(self, topics: Iterable[TopicName]) -> dict[TopicName, str]:
        """Return the problems of base topics that cannot be written under their target name."""
        problems: dict[TopicName, str] = {}
        sources: dict[TopicName, list[TopicName]] = {}
        if not self.rules:
            return problems
        for topic in topics:
            try:
                sources.setdefault(self.target(topic), []).append(topic)
            except InvalidTopicName as problem:
                problems[topic] = f"the rules of [map] give {topic} no name that a topic can have: {problem}"
        for target, shared in sources.items():
            if len(shared) > 1 and not self.merge:
                names = " and ".join(str(topic) for topic in sorted(shared, key=str)[:3])
                problems |= dict.fromkeys(shared, f"the rules of [map] give {names} the same name {target}")
        return problems

    def to_json(self) -> str:
        """Return the rules as JSON for :func:`parse_topic_map`."""
        rules = [{"from": rule.pattern, "to": rule.target} for rule in self.rules]
        return json.dumps({"rules": rules, "merge": self.merge})


@lru_cache(maxsize=50_000)
def _renamed(rules: tuple[TopicRule, ...], base: TopicName) -> TopicName:
    for pattern, target in rules:
        match = re.fullmatch(pattern, str(base))
        if match is not None:
            renamed = TopicName.parse(_expanded(target, match))
            if renamed.is_partition or not renamed.is_persistent:
                raise InvalidTopicName(f"{renamed} is a partition" if renamed.is_partition else f"{renamed} has no log")
            return renamed
    return base


def _expanded(target: str, match: re.Match[str]) -> str:
    def value(group: re.Match[str]) -> str:
        number, name, dollar = group.groups()
        return "$" if dollar else match[int(number) if number else name] or ""

    return _GROUP.sub(value, target)


def parse_topic_map(value: str | Mapping[str, Any]) -> TopicMap:
    """Read ``{"rules": [{"from": ..., "to": ...}], "merge": false}``. Raises ValueError that describes the problem.

    ``from`` is a regular expression; ``$1`` and ``${name}`` in ``to`` are its groups. Both may omit ``persistent://``.
    """
    body = json.loads(value) if isinstance(value, str) else value
    rules = body.get("rules", []) if isinstance(body, Mapping) else None
    if not isinstance(rules, list):
        raise ValueError('rules must be a list such as [{ from = "shop/orders/(.*)", to = "store/orders/$1" }]')
    merge = body.get("merge", False)
    if not isinstance(merge, bool):
        raise ValueError(f"merge: {merge!r} is neither true nor false")
    return TopicMap(tuple(_rule(item) for item in rules), merge)


def _rule(item: object) -> TopicRule:
    if not isinstance(item, Mapping) or item.keys() != {"from", "to"} or not all(map(_is_text, item.values())):
        raise ValueError(f'{item!r} is no rule: give from and to, such as {{ from = "shop/(.*)", to = "store/$1" }}')
    rule = TopicRule(_complete(item["from"]), _complete(item["to"]))
    try:
        pattern = re.compile(rule.pattern)
    except re.error as problem:
        raise ValueError(f"from = {item['from']!r} is not a regular expression: {problem}") from None
    for number, name, _ in _GROUP.findall(rule.target):
        if (number and int(number) > pattern.groups) or (name and name not in pattern.groupindex):
            raise ValueError(f"to = {item['to']!r} names a group that from = {item['from']!r} does not have")
    return rule


def _is_text(value: object) -> bool:
    return isinstance(value, str) and bool(value)


def _complete(name: str) -> str:
    return name if "://" in name else _PREFIX + name
