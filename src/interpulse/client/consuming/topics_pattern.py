"""Regular expression that selects topics of one namespace."""

from __future__ import annotations

import re
from dataclasses import dataclass

from interpulse.model.errors import InvalidTopicName
from interpulse.model.names import NamespaceName, TopicName


@dataclass(frozen=True, slots=True)
class TopicsPattern:
    """Pattern for whole topic names. Partitions match by the name of their topic; the domain is ignored."""

    namespace: NamespaceName
    text: str
    """Pattern in the form for brokers: ``persistent://tenant/namespace/expression``."""

    expression: re.Pattern[str]
    """Expression for ``tenant/namespace/topic``."""

    @classmethod
    def of(cls, pattern: re.Pattern[str]) -> TopicsPattern:
        """Parse an expression in the form of a topic name, short or full. Only its last part may vary.

        Raise InvalidTopicName if it names no namespace.
        """
        text = pattern.pattern.removeprefix("^")
        _, separator, complete = text.partition("://")
        parts = (complete if separator else text).split("/", 2)
        if len(parts) == 1 and not separator:
            parts = ["public", "default", *parts]
        if len(parts) != 3:
            raise InvalidTopicName(
                f"Invalid topic name: {pattern.pattern}: a pattern is either an expression for topics of "
                f"public/default, or tenant/namespace/expression with persistent:// or without it"
            )
        tenant, namespace, local = parts
        checked = TopicName.of("persistent", tenant, namespace, "x").namespace_name
        return cls(
            checked,
            f"persistent://{tenant}/{namespace}/{local}",
            re.compile(f"{re.escape(f'{tenant}/{namespace}')}/(?:{local})", pattern.flags),
        )

    def matches(self, topic: TopicName) -> bool:
        name = f"{topic.tenant}/{topic.namespace}/{topic.base.local_name}"
        return self.expression.fullmatch(name) is not None
