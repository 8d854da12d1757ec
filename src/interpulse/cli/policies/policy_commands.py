"""The commands ``set-...``, ``get-...`` and ``remove-...`` of policies, made from the catalogue of policies."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import click

from interpulse.cli.policies.policy_forms import BACKLOG_QUOTA, QUOTA_TYPE, form_of
from interpulse.cli.support.call_commands import Decorator, command
from interpulse.model.policies.catalogue import Command, Group, PolicyAtLevel
from interpulse.model.policies.policy_records import BacklogQuota, QuotaType
from interpulse.terminal.output import print_json, print_text, print_value


@dataclass(frozen=True, slots=True)
class Calls:
    """The area of the admin client for a level, its methods for single policies, and the options of all commands.

    The methods take the target, the name of the policy and the values of ``options``, ``get`` those of ``get_options``.
    """

    area: str
    get: str
    set: str
    remove: str
    target: Decorator
    options: tuple[Decorator, ...] = ()
    get_options: tuple[Decorator, ...] = ()


def policy_commands(entries: Iterable[PolicyAtLevel], group: Group, calls: Calls) -> Iterator[click.Command]:
    """Return the commands of all policies that ``group`` has."""
    for entry in entries:
        for form in entry.level.commands:
            if group in form.groups:
                yield _set_command(entry, form, calls)
                yield _get_command(entry, form, calls)
                if entry.level.removable or entry.level.cleared_by != "DELETE":
                    yield _remove_command(entry, form, calls)


def quota_commands(get_name: str, calls: Calls) -> Iterator[click.Command]:
    """Return the commands of backlog quotas. A topic has one quota of each type."""

    async def set_quota(admin: Any, target: Any, quota: tuple[BacklogQuota, QuotaType], **options: Any) -> None:
        await getattr(admin, calls.area).set_backlog_quota(target, *quota, **options)

    async def print_quotas(admin: Any, target: Any, **options: Any) -> None:
        _print_quotas(await getattr(admin, calls.area).backlog_quotas(target, **options))

    async def remove_quota(admin: Any, target: Any, kind: QuotaType, **options: Any) -> None:
        await getattr(admin, calls.area).remove_backlog_quota(target, kind, **options)

    yield command(
        "set-backlog-quota",
        "Set the limit of the backlog, and the action of the broker beyond it.",
        BACKLOG_QUOTA.joined("quota", set_quota),
        calls.target,
        BACKLOG_QUOTA.add,
        *calls.options,
    )
    yield command(
        get_name,
        "Print the backlog quotas by type.",
        print_quotas,
        calls.target,
        *calls.get_options,
        *calls.options,
    )
    yield command(
        "remove-backlog-quota",
        "Remove the backlog quota of a type; the level above decides again.",
        remove_quota,
        calls.target,
        QUOTA_TYPE,
        *calls.options,
    )


def print_policy(value: Any) -> None:
    """Print the JSON of a policy as pulsar-admin does: a string without quotes."""
    if isinstance(value, str):
        print_text(value)
    else:
        print_json(value)


def _set_command(entry: PolicyAtLevel, spelling: Command, calls: Calls) -> click.Command:
    async def run(admin: Any, target: Any, value: Any, **options: Any) -> None:
        await getattr(getattr(admin, calls.area), calls.set)(target, entry.policy.attribute, value, **options)

    form = form_of(entry.policy, spelling)
    joined = form.joined("value", run)
    return command(f"set-{spelling.noun}", f"Set {entry.help}.", joined, calls.target, form.add, *calls.options)


def _get_command(entry: PolicyAtLevel, spelling: Command, calls: Calls) -> click.Command:
    async def run(admin: Any, target: Any, **options: Any) -> None:
        value = await getattr(getattr(admin, calls.area), calls.get)(target, entry.policy.attribute, **options)
        print_policy(None if value is None else entry.policy.kind.write(value))

    about = f"Print {entry.help}; null if it is not set."
    return command(f"get-{spelling.noun}", about, run, calls.target, *calls.get_options, *calls.options)


def _remove_command(entry: PolicyAtLevel, spelling: Command, calls: Calls) -> click.Command:
    async def run(admin: Any, target: Any, **options: Any) -> None:
        await getattr(getattr(admin, calls.area), calls.remove)(target, entry.policy.attribute, **options)

    about = f"Remove the policy; the level above decides {entry.help}."
    return command(f"remove-{spelling.noun}", about, run, calls.target, *calls.options)


def _print_quotas(quotas: Mapping[str, BacklogQuota]) -> None:
    """Print one line per type, as pulsar-admin does."""
    lines = {
        kind: f"BacklogQuotaImpl(limit={quota.limit_bytes}, limitSize={quota.limit_bytes}, "
        f"limitTime={quota.limit_seconds}, policy={quota.policy})"
        for kind, quota in quotas.items()
    }
    documents = {kind: quota.to_json() for kind, quota in quotas.items()}
    print_value(documents, "\n".join(f"{kind}    {line}" for kind, line in lines.items()))
