"""Topics that ``topics delete`` deletes: one by name, those of a file, or those that match an expression."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING

import click

from interpulse.cli.support.running import UNUSABLE, CommandFailed
from interpulse.model.errors import InvalidTopicName
from interpulse.model.names import Domain, NamespaceName, TopicName

if TYPE_CHECKING:
    from interpulse.client.admin.admin_client import AdminClient

_FORM = re.compile(r"(persistent|non-persistent)://([^/]+/[^/]+)/.+")


def topic_named(text: str) -> TopicName:
    """Return the topic. Raise UsageError for an invalid name."""
    try:
        return TopicName.parse(text)
    except InvalidTopicName as error:
        raise click.UsageError(str(error)) from error


def topics_of_file(path: str) -> list[TopicName]:
    """Read one name per line, skipping empty ones. The path may begin with ``path://``. Raise CommandFailed."""
    file = Path(path.removeprefix("path://"))
    try:
        lines = file.read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise CommandFailed(f"{file} cannot be read: {error}", UNUSABLE) from error
    return [topic_named(line.strip()) for line in lines if line.strip()]


async def matching_topics(admin: AdminClient, text: str) -> list[TopicName]:
    """Return the topics whose complete names match ``DOMAIN://TENANT/NAMESPACE/...``, partitions one by one.

    Raises UsageError for an expression of another form.
    """
    form = _FORM.fullmatch(text)
    if form is None:
        raise click.UsageError(f"{text!r} has not the form persistent://tenant/namespace/expression")
    try:
        expression = re.compile(text)
        namespace = NamespaceName.parse(form[2])
    except (re.error, InvalidTopicName) as error:
        raise click.UsageError(f"{text!r} is not a regular expression for topics: {error}") from error
    domain: Domain = "persistent" if form[1] == "persistent" else "non-persistent"
    names = await admin.topics.list(namespace, domains=(domain,))
    return [TopicName.parse(name) for name in names if expression.fullmatch(name)]
