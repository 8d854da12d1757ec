"""``topics doctor``: topics whose records disagree, the effect on clients, and the calls that repair them.

Exit codes: 0 no findings are left, 1 findings are left, 2 could not look.
"""

from __future__ import annotations

import shlex
import sys
from collections.abc import Collection, Iterable, Iterator, Mapping
from itertools import islice
from typing import TYPE_CHECKING, Any, Final

import click

from interpulse.cli.support.params import DOMAIN, TOPIC, domains_of
from interpulse.cli.support.running import FAILED, NOT_ALLOWED, UNUSABLE, CommandFailed, admin_command, failure
from interpulse.model.changes import DeletePartitionedMetadata, TopicAdminChange
from interpulse.model.errors import AuthorizationError, InvalidTopicName, PulsarError
from interpulse.model.names import NamespaceName, TopicName
from interpulse.rules.topic_diagnosis import Deletion, Disagreement, Finding
from interpulse.terminal.output import print_value
from interpulse.terminal.progress import Progress

if TYPE_CHECKING:
    from interpulse.client.admin.admin_client import AdminClient
    from interpulse.replication.topic_doctor import Attempt, Contents, Examination, TopicDoctor, Treatment

_KINDS: Final = [kind.value for kind in Disagreement]
_SHOWN_MAX: Final = 5
"""The number of deletions, and of topics that a deletion would lose, that are shown."""
_CONTENTS_ASKED_MAX: Final = 100
"""Contents are read topic by topic, so only the first of many findings have them."""


class _Target(click.ParamType["NamespaceName | TopicName"]):
    name = "namespace|topic"

    def convert(
        self, value: str | NamespaceName | TopicName, param: click.Parameter | None, ctx: click.Context | None
    ) -> NamespaceName | TopicName:
        if not isinstance(value, str):
            return value
        try:
            return NamespaceName.parse(value) if _is_namespace(value) else TopicName.parse(value)
        except InvalidTopicName as error:
            self.fail(str(error), param, ctx)


def _is_namespace(text: str) -> bool:
    """Return True for two parts: topics are written with one part or with three."""
    return "://" not in text and text.count("/") == 1


@click.command("doctor")
@click.argument("target", metavar="[NAMESPACE|TOPIC]", type=_Target(), required=False)
@click.option("-td", "--topic-domain", "--domain", type=DOMAIN, help="Only topics of this domain.")
@click.option("--ignore", type=click.Choice(_KINDS), multiple=True, help="Do not report this kind; can be repeated.")
@click.option("--repair", is_flag=True, help="Apply the repairs that lose nothing.")
@click.option(
    "--delete", "deleted", type=TOPIC, multiple=True, help="With --repair: also delete this plain topic or partition."
)
@click.option(
    "--delete-partitioned", type=TOPIC, multiple=True, help="With --repair: also delete this partitioned topic."
)
@admin_command
async def doctor(
    admin: AdminClient,
    target: NamespaceName | TopicName | None,
    topic_domain: str | None,
    ignore: tuple[str, ...],
    repair: bool,
    deleted: tuple[TopicName, ...],
    delete_partitioned: tuple[TopicName, ...],
) -> None:
    """Find topics whose records disagree, and repair them.

    Examines one topic, one namespace, or every namespace that the caller may list: for lost partition metadata,
    partitions beyond the count, names of both a plain and a partitioned topic, missing partitions, and interrupted
    deletions and expansions. Each finding has an explanation and the commands that repair it. They work with
    pulsar-admin too, and this command works with Apache Pulsar.

    --repair applies the repairs that lose nothing. Repairs that lose messages need the topics by name, in --delete and
    --delete-partitioned; both can be repeated.

    Exit codes: 0 no findings are left, 1 findings are left, 2 could not look.
    """
    if (deleted or delete_partitioned) and not repair:
        raise click.UsageError("--delete and --delete-partitioned are part of a --repair")
    from interpulse.replication.topic_doctor import TopicDoctor

    domains = domains_of(topic_domain)
    if isinstance(target, TopicName):
        if target.domain not in domains:
            raise click.UsageError(f"{target} is not of the domain {topic_domain}")
        domains = (target.domain,)
    topic_doctor = TopicDoctor(admin, domains=domains, ignored=[Disagreement(text) for text in ignore])
    visit = _Visit(admin, topic_doctor, target)
    try:
        await visit.examine()
        if repair:
            await visit.repair(deleted, delete_partitioned)
        await visit.report()
    except PulsarError as error:
        raise CommandFailed(failure(error).message, UNUSABLE) from error
    visit.exit()


class _Visit:
    """One run of the command: its examinations and repairs so far."""

    def __init__(self, admin: AdminClient, doctor: TopicDoctor, target: NamespaceName | TopicName | None) -> None:
        self._admin = admin
        self._doctor = doctor
        self._target = target
        self._seen: list[Examination] = []
        self._treated: dict[NamespaceName, Treatment] = {}
        self._not_seen = False

    async def examine(self) -> None:
        """Examine the namespaces. Raises CommandFailed if none can be examined; others that fail are left out."""
        only = {self._target.base} if isinstance(self._target, TopicName) else None
        for namespace in await self._namespaces():
            with Progress(f"{namespace}: metadata of {{done}} of {{total}} partitioned topics read") as progress:
                try:
                    self._seen.append(await self._doctor.examine(namespace, only=only, progress=progress))
                except PulsarError as error:
                    self._could_not_look(error, f"{namespace}: ")
        if isinstance(self._target, TopicName) and not any(each.topics_count for each in self._seen):
            raise CommandFailed(f"There is no topic {self._target}", UNUSABLE)
        for each in self._seen:
            for text in each.unreadable:
                click.echo(f"Left out: {text!r} is listed but is not the name of a topic", err=True)
            for topic, unknown in each.unanswered.items():
                click.echo(f"Could not look: {topic}: {failure(unknown).message}", err=True)
                self._not_seen = True

    async def repair(self, deleted: Collection[TopicName], delete_partitioned: Collection[TopicName]) -> None:
        """Apply repairs and chosen deletions. Raises CommandFailed first for a deletion that repairs no finding."""
        chosen = {each.namespace: _chosen(each, deleted, delete_partitioned) for each in self._seen}
        found = {call.topic for calls in chosen.values() for call in calls}
        for name in (*deleted, *delete_partitioned):
            if name not in found:
                raise CommandFailed(f"Deleting {name} repairs no finding; nothing was changed", UNUSABLE)
        for each in self._seen:
            if each.findings:
                with Progress(f"{each.namespace}: {{done}} of {{total}} findings treated") as progress:
                    treatment = await self._doctor.treat(each, chosen[each.namespace], progress=progress)
                self._treated[each.namespace] = treatment

    async def report(self) -> None:
        """Print every finding; after a repair, the calls and the remaining findings."""
        left = [finding for each in self._seen for finding in self._left(each)]
        contents = await self._doctor.contents(dict(islice(_lost(left), _CONTENTS_ASKED_MAX)))
        attempts = [attempt for treatment in self._treated.values() for attempt in treatment.attempts]
        document = {
            "topicsExamined": self._topics_count(),
            "calls": [_attempt_json(attempt) for attempt in attempts],
            "findings": [_finding_json(finding, contents) for finding in left],
        }
        lines = [line for attempt in attempts for line in _attempt_lines(attempt)]
        lines += [line for finding in left for line in _finding_lines(finding, contents)]
        print_value(document, "\n".join([*lines, self._summary(left)]))

    def exit(self) -> None:
        """End with the exit code of the findings."""
        if self._not_seen:
            sys.exit(UNUSABLE)
        if any(self._left(each) for each in self._seen):
            sys.exit(FAILED)

    async def _namespaces(self) -> list[NamespaceName]:
        if isinstance(self._target, NamespaceName):
            return [self._target]
        if self._target is not None:
            return [self._target.namespace_name]
        try:
            tenants = await self._admin.tenants.list()
        except PulsarError as error:
            failed = failure(error)
            remedy = ": name a namespace to look at" if failed.exit_code == NOT_ALLOWED else ""
            raise CommandFailed(f"{failed.message}{remedy}", UNUSABLE) from error
        namespaces: list[NamespaceName] = []
        for tenant in tenants:
            try:
                namespaces += map(NamespaceName.parse, await self._admin.namespaces.list(tenant))
            except AuthorizationError as error:
                click.echo(f"Left out: tenant {tenant}: {failure(error).message}", err=True)
            except PulsarError as error:
                self._could_not_look(error, f"tenant {tenant}: ")
        return [namespace for namespace in namespaces if not namespace.is_heartbeat]

    def _could_not_look(self, error: PulsarError, where: str) -> None:
        if self._target is not None:
            raise CommandFailed(failure(error).message, UNUSABLE) from error
        click.echo(f"Could not look: {where}{failure(error).message}", err=True)
        self._not_seen = True

    def _left(self, each: Examination) -> tuple[Finding, ...]:
        treatment = self._treated.get(each.namespace)
        return treatment.left if treatment else each.findings

    def _topics_count(self) -> int:
        return sum(each.topics_count for each in self._seen)

    def _summary(self, left: Collection[Finding]) -> str:
        count, spaces = self._topics_count(), len(self._seen)
        looked = f"{_counted(count, 'topic')} in {_counted(spaces, 'namespace')} examined"
        if not left:
            return f"{looked}, nothing {'is left' if self._treated else 'found'}"
        repairable = sum(1 for finding in left if finding.repairs)
        word = "left" if self._treated else "found"
        hint = f", {repairable} of them repaired by --repair" if repairable and not self._treated else ""
        return f"{looked}, {_counted(len(left), 'disagreement')} {word}{hint}"


def _chosen(
    seen: Examination, deleted: Collection[TopicName], delete_partitioned: Collection[TopicName]
) -> list[TopicAdminChange]:
    """Return the deletions among the findings that the user chose."""
    return [
        deletion.call
        for finding in seen.findings
        for deletion in finding.deletions
        if deletion.call.topic in (delete_partitioned if _of_partitioned(deletion) else deleted)
    ]


def _of_partitioned(deletion: Deletion) -> bool:
    return isinstance(deletion.call, DeletePartitionedMetadata)


# --- words ------------------------------------------------------------------------------------------------------------


def _command_line(call: TopicAdminChange) -> str:
    """Return the command to type; it works with ``pulsar-admin`` in front too."""
    from interpulse.replication.change_forms import command_of

    return " ".join([*_program(), command_of(call)])


def _program() -> Iterator[str]:
    """Yield the program with an address that was typed, so that the line reaches the same cluster."""
    yield "interpulse-admin"
    context: click.Context | None = click.get_current_context()
    while context is not None:
        if context.params.get("webServiceUrl"):
            yield f"--admin-url {shlex.quote(str(context.params['webServiceUrl']))}"
        context = context.parent


def _choice(deletion: Deletion) -> str:
    option = "--delete-partitioned" if _of_partitioned(deletion) else "--delete"
    return f"{option} {shlex.quote(str(deletion.call.topic))}"


def _attempt_lines(attempt: Attempt) -> Iterator[str]:
    yield f"{'done' if attempt.error is None else 'failed'}: {_command_line(attempt.call)}"
    if attempt.error is not None:
        yield f"        {failure(attempt.error).message}"


def _finding_lines(finding: Finding, contents: Mapping[TopicName, Contents]) -> Iterator[str]:
    yield f"{finding.kind.value}: {finding.sentence}"
    for repair in finding.repairs:
        yield f"    repair: {_command_line(repair)}"
    for deletion in finding.deletions[:_SHOWN_MAX]:
        yield f"    {'or delete' if finding.repairs else 'delete'}: {_command_line(deletion.call)}"
        yield f"        by --repair {_choice(deletion)}; then {deletion.outcome}"
        yield from (f"        loses {line}" for line in _loss_lines(deletion, contents))
    if len(finding.deletions) > _SHOWN_MAX:
        yield f"    and {len(finding.deletions) - _SHOWN_MAX} more that can be deleted; -o json lists them"


def _lost(findings: Iterable[Finding]) -> Iterator[tuple[TopicName, bool]]:
    """Yield the topics whose loss is shown, with True if brokers refuse to open them."""
    for finding in findings:
        for deletion in finding.deletions[:_SHOWN_MAX]:
            yield from ((name, deletion.refused) for name in deletion.lost[:_SHOWN_MAX])


def _loss_lines(deletion: Deletion, contents: Mapping[TopicName, Contents]) -> Iterator[str]:
    for name in deletion.lost[:_SHOWN_MAX]:
        yield f"{name}: {_contents_words(contents.get(name)) if name.is_persistent else 'nothing is stored'}"
    if len(deletion.lost) > _SHOWN_MAX:
        yield f"{len(deletion.lost) - _SHOWN_MAX} more partitions"


def _contents_words(contents: Contents | None) -> str:
    if contents is None:
        return "its contents were not read, as there are many topics; examine this topic alone"
    if contents.entries is None:
        return "the cluster does not show its contents"
    entries = "entry" if contents.entries == 1 else "entries"
    if contents.exact:
        backlogs = [f"{name} has not consumed {count}" for name, count in contents.backlogs.items() if count]
        return "; ".join([f"{contents.entries} {entries}, {contents.bytes} bytes", *backlogs])
    known = (
        f"at least {contents.entries} {entries}, {contents.bytes} bytes; the topic cannot be loaded to count the rest"
    )
    return f"{known}; subscriptions {', '.join(contents.backlogs)}" if contents.backlogs else known


def _counted(count: int, noun: str) -> str:
    return f"{count} {noun}" if count == 1 else f"{count} {noun}s"


# --- JSON -------------------------------------------------------------------------------------------------------------


def _attempt_json(attempt: Attempt) -> dict[str, Any]:
    return {
        "command": _command_line(attempt.call),
        "done": attempt.error is None,
        "error": None if attempt.error is None else failure(attempt.error).message,
    }


def _finding_json(finding: Finding, contents: Mapping[TopicName, Contents]) -> dict[str, Any]:
    from interpulse.replication.topic_doctor import Contents

    return {
        "kind": finding.kind.value,
        "topic": str(finding.topic),
        "sentence": finding.sentence,
        "repairs": [_command_line(repair) for repair in finding.repairs],
        "deletions": [
            {
                "command": _command_line(deletion.call),
                "option": _choice(deletion),
                "outcome": deletion.outcome,
                "lost": [_contents_json(contents.get(name, Contents(name))) for name in deletion.lost],
            }
            for deletion in finding.deletions
        ],
    }


def _contents_json(contents: Contents) -> dict[str, Any]:
    return {
        "topic": str(contents.topic),
        "entries": contents.entries,
        "bytes": contents.bytes,
        "exact": contents.exact,
        "backlogs": dict(contents.backlogs),
    }
