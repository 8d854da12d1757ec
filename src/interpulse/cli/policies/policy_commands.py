"""Commands of the forms ``set-...``, ``get-...`` and ``remove-...``, made from one row per policy."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import click

from interpulse.cli.policies.policy_forms import BACKLOG_QUOTA, QUOTA_TYPE, Form
from interpulse.cli.support.running import admin_command
from interpulse.model.policies.messaging_policies import BacklogQuota
from interpulse.terminal.option_groups import option_group
from interpulse.terminal.output import print_json, print_text, print_value

if TYPE_CHECKING:
    from interpulse.client.admin.policy_call import QuotaType

__all__ = ["Calls", "PolicyRow", "command", "policy_commands", "print_policy", "quota_commands"]

Callback = Callable[..., Any]


@dataclass(frozen=True, slots=True)
class PolicyRow:
    """One policy: the end of its commands, its name in the admin client, its options, and its description."""

    noun: str
    name: str
    form: Form
    about: str
    removable: bool = True
    shown: Callable[[Any], Any] = lambda value: value
    """The printed form of a value that is set."""


@dataclass(frozen=True, slots=True)
class Calls:
    """The calls of a level to the admin client, and the options of all its commands.

    ``get`` and ``remove`` are called with the client, the target and the name of the policy, ``set`` with the value
    behind them; all with the values of the ``options``. Only ``get`` has those of ``get_options`` in addition.
    ``quotas`` gives the part of the admin client that sets, reads and removes backlog quotas.
    """

    get: Callable[..., Awaitable[Any]]
    set: Callable[..., Awaitable[None]]
    remove: Callable[..., Awaitable[None]]
    quotas: Callable[[Any], Any]
    target: Callable[[Callback], Callback]
    options: tuple[Callable[[Callback], Callback], ...] = ()
    get_options: tuple[Callable[[Callback], Callback], ...] = ()


def policy_commands(rows: Iterable[PolicyRow], calls: Calls) -> Iterator[click.Command]:
    """The commands of every row."""
    for row in rows:
        yield _set_command(row, calls)
        yield _get_command(row, calls)
        if row.removable:
            yield _remove_command(row, calls)


def quota_commands(get_name: str, calls: Calls) -> Iterator[click.Command]:
    """The commands of the backlog quotas, of which there is one for each type."""

    async def set_quota(admin: Any, target: Any, quota: tuple[BacklogQuota, QuotaType], **given: Any) -> None:
        await calls.quotas(admin).set_backlog_quota(target, *quota, **given)

    async def print_quotas(admin: Any, target: Any, **given: Any) -> None:
        _print_quotas(await calls.quotas(admin).backlog_quotas(target, **given))

    async def remove_quota(admin: Any, target: Any, kind: QuotaType, **given: Any) -> None:
        await calls.quotas(admin).remove_backlog_quota(target, kind, **given)

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


def command(name: str, about: str, run: Callback, *decorators: Callable[[Callback], Callback]) -> click.Command:
    """A command that runs a coroutine function; the options stand in the order of the decorators."""
    return click.command(name, help=about)(option_group(*decorators)(admin_command(run)))


def print_policy(value: Any) -> None:
    """As pulsar-admin prints it: strings as they are, everything else as JSON."""
    if isinstance(value, str):
        print_text(value)
    elif isinstance(value, frozenset):
        print_json(sorted(value))
    else:
        print_json(value.to_json() if hasattr(value, "to_json") else value)


def _set_command(row: PolicyRow, calls: Calls) -> click.Command:
    async def run(admin: Any, target: Any, value: Any, **given: Any) -> None:
        await calls.set(admin, target, row.name, value, **given)

    return command(
        f"set-{row.noun}",
        f"Set {row.about}.",
        row.form.joined("value", run),
        calls.target,
        row.form.add,
        *calls.options,
    )


def _get_command(row: PolicyRow, calls: Calls) -> click.Command:
    async def run(admin: Any, target: Any, **given: Any) -> None:
        value = await calls.get(admin, target, row.name, **given)
        print_policy(None if value is None else row.shown(value))

    about = f"Print {row.about}; null if it is not set."
    return command(f"get-{row.noun}", about, run, calls.target, *calls.get_options, *calls.options)


def _remove_command(row: PolicyRow, calls: Calls) -> click.Command:
    async def run(admin: Any, target: Any, **given: Any) -> None:
        await calls.remove(admin, target, row.name, **given)

    about = f"Remove the policy; the level above decides {row.about}."
    return command(f"remove-{row.noun}", about, run, calls.target, *calls.options)


def _print_quotas(quotas: Mapping[str, BacklogQuota]) -> None:
    """One line per type, as pulsar-admin prints them."""
    lines = {
        kind: f"BacklogQuotaImpl(limit={quota.limit_bytes}, limitSize={quota.limit_bytes}, "
        f"limitTime={quota.limit_seconds}, policy={quota.policy})"
        for kind, quota in quotas.items()
    }
    documents = {kind: quota.to_json() for kind, quota in quotas.items()}
    print_value(documents, "\n".join(f"{kind}    {line}" for kind, line in lines.items()))
