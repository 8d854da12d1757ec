"""Topic names in the options of a read. No IO."""

from __future__ import annotations

import re
from functools import lru_cache

from interpulse.model.names import TopicName
from interpulse.spark.reading.read_options import ReadOptions


def is_named(options: ReadOptions, topic: TopicName | str) -> bool:
    """Return True if the options name a topic or the partitioned topic of a partition, whether it exists or not."""
    name = topic if isinstance(topic, TopicName) else TopicName.parse(topic)
    listed = options.topics or options.assigned
    chosen = name if str(name) in listed else name.base
    plain = f"{chosen.namespace_name}/{chosen.local_name}"
    if options.topics_exclude is not None and _compiled(options.topics_exclude).search(plain) is not None:
        return False
    if options.topics_pattern is None:
        return str(chosen) in listed
    pattern = _compiled(options.topics_pattern.removeprefix("persistent://"))
    return pattern.fullmatch(plain) is not None and (options.include_system_topics or not chosen.is_system)


@lru_cache(maxsize=16)
def _compiled(pattern: str) -> re.Pattern[str]:
    return re.compile(pattern)
