"""Command ``interpulse check``: one line for each thing that needs an operator's attention."""

from __future__ import annotations

import asyncio
import base64
import binascii
import json
import socket
import ssl
import sys
import time
from collections.abc import Awaitable, Sequence
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import urlsplit

import click

from interpulse.cli.admin.admin import connection_options
from interpulse.cli.support.connection.settings import ConnectionSettings
from interpulse.cli.support.params import NAMESPACE, TIME, domains_of
from interpulse.cli.support.running import failure, open_admin
from interpulse.cli.watching import findings
from interpulse.cli.watching.cluster_survey import namespaces_of
from interpulse.cli.watching.findings import METRICS, Finding, Level, Limits, Metrics, unreported, worst
from interpulse.model.errors import AuthenticationError, AuthorizationError, NotConnected, OperationTimeout, PulsarError
from interpulse.model.names import NamespaceName
from interpulse.terminal.formats import FORMATS, text_width
from interpulse.terminal.option_groups import flag, option

if TYPE_CHECKING:
    from interpulse.client.admin.admin_client import AdminClient

_RECORDS: Final = "topic records"
_SHOWN_MAX: Final = 3
_TIMEOUT_S: Final = 10.0


@click.command(context_settings={"help_option_names": ["-h", "--help"]})
@click.argument("namespaces", type=NAMESPACE, nargs=-1)
@option("--backlog-age", "Warn of messages that wait for longer.", TIME, "1h")
@option("--runs-out", "Warn of certificates and tokens that end sooner.", TIME, "2w")
@flag("--without-doctor", "Do not examine the records of topics; with very many it takes long.")
@option("-o --output", "Print the findings in this form.", click.Choice(list(FORMATS)))
@option("--url brokerServiceUrl", "Service URL; only its certificate is looked at.")
@option("--admin-url webServiceUrl", "Web service URL, http://localhost:8080 unless configured.")
@connection_options
def check(
    namespaces: tuple[NamespaceName, ...],
    backlog_age: int,
    runs_out: int,
    without_doctor: bool,
    output: str | None,
    **flags: Any,
) -> None:
    """Check a cluster for problems and print one line for each.

    Examines the topics of NAMESPACES, or of all namespaces. Also works with Apache Pulsar; what a broker does not
    report is shown as unknown and causes no warning.

    Exit codes: 0 no problems, 1 warnings, 2 something is broken or could not be checked.
    """
    settings = ConnectionSettings.resolve(flags)
    limits = Limits(backlog_age_s=backlog_age, runs_out_s=runs_out)
    results = asyncio.run(_look(settings, namespaces, limits, without_doctor))
    if output is not None:
        click.echo(FORMATS[output]([finding.to_json() for finding in results]))
    else:
        width = max(text_width(finding.name) for finding in results)
        for finding in results:
            click.echo(f"{finding.word:8}  {finding.name:{width}}  {finding.sentence}")
    sys.exit(int(worst(results)))


async def _look(
    settings: ConnectionSettings, namespaces: Sequence[NamespaceName], limits: Limits, without_doctor: bool
) -> list[Finding]:
    async with open_admin(settings, settings.admin_url) as admin:
        results = [await _health(admin)]
        if results[0].level is Level.CRITICAL and results[0].sentence.startswith("Cannot"):
            return results  # all else would fail in the same way
        results += await _asked("version", _version(admin))
        results += await _asked("metrics", _metrics(admin, limits))
        if not without_doctor:
            results += await _asked(_RECORDS, _doctor(admin, namespaces))
        results += await _expiry(settings, limits)
    return results


async def _asked(name: str, question: Awaitable[list[Finding]]) -> list[Finding]:
    try:
        return await question
    except PulsarError as error:
        return [_not_looked(name, error)]


async def _health(admin: AdminClient) -> Finding:
    try:
        await admin.brokers.health()
    except (NotConnected, OperationTimeout) as error:
        return Finding("broker", Level.CRITICAL, f"Cannot look: {failure(error).message}")
    except (AuthenticationError, AuthorizationError) as error:
        return _not_looked("broker", error)
    except PulsarError as error:
        return Finding("broker", Level.CRITICAL, f"{admin.web_url} is not healthy: {failure(error).message}")
    return Finding("broker", Level.OK, f"{admin.web_url} publishes and answers")


async def _version(admin: AdminClient) -> list[Finding]:
    brokers = await admin.brokers.list()
    count = f", {len(brokers)} brokers" if len(brokers) != 1 else ""
    return [Finding("version", Level.OK, f"{await admin.brokers.version()}{count}")]


async def _metrics(admin: AdminClient, limits: Limits) -> list[Finding]:
    metrics = Metrics.parse(await admin.brokers.metrics(), METRICS)
    return [
        findings.disk(metrics, limits),
        findings.loop_lag(metrics, limits),
        findings.backlog_age(metrics, limits),
        findings.replication(metrics),
    ]


async def _doctor(admin: AdminClient, namespaces: Sequence[NamespaceName]) -> list[Finding]:
    from interpulse.replication.topic_doctor import TopicDoctor

    doctor, topics, disagreeing = TopicDoctor(admin, domains=domains_of(None)), 0, list[str]()
    for namespace in namespaces or [NamespaceName.parse(name) for name in await namespaces_of(admin)]:
        report = await doctor.examine(namespace)
        topics += report.topics_count
        disagreeing += [str(finding.topic) for finding in report.findings]
    if disagreeing:
        more = f" and {len(disagreeing) - _SHOWN_MAX} more" if len(disagreeing) > _SHOWN_MAX else ""
        text = f"{', '.join(disagreeing[:_SHOWN_MAX])}{more} disagree with their records"
        return [Finding(_RECORDS, Level.WARNING, f"{text}: interpulse-admin topics doctor explains and repairs it")]
    return [Finding(_RECORDS, Level.OK, f"those of {topics} topics agree")]


async def _expiry(settings: ConnectionSettings, limits: Limits) -> list[Finding]:
    results, now = [], time.time()
    for name, url in (("web certificate", settings.admin_url), ("service certificate", settings.given_service_url)):
        if url is None or not url.startswith(("https:", "pulsar+ssl:")):
            continue
        if settings.tls_insecure_allowed:
            results.append(unreported(name, "its certificate to those who trust any"))
            continue
        try:
            end = await asyncio.to_thread(certificate_of_server, url, settings.tls_trust_certs_path)
        except (OSError, ValueError) as error:
            results.append(
                Finding(name, Level.CRITICAL, f"{url.split(',')[0]} shows none that can be trusted: {error}")
            )
        else:
            results.append(findings.running_out(name, end, now, limits))
    credentials = settings.credentials()
    token = (credentials.http_header() or "") if credentials is not None else ""
    if token.startswith("Bearer "):
        results.append(findings.running_out("own token", token_end(token.removeprefix("Bearer ")), now, limits))
    return results


def _not_looked(name: str, error: PulsarError) -> Finding:
    return Finding(name, Level.CRITICAL, f"Could not look: {failure(error).message}")


def token_end(token: str) -> float | None:
    """Return the expiry of a token in seconds since 1970, or None if it has none or is not a token.

    The signature is not verified.
    """
    try:
        payload = token.split(".")[1]
        claims: Any = json.loads(base64.urlsafe_b64decode(payload + "=" * (-len(payload) % 4)))
        end = claims.get("exp")
    except (IndexError, ValueError, binascii.Error, AttributeError):
        return None
    return float(end) if isinstance(end, int | float) else None


def certificate_of_server(url: str, trust_certs_path: str | None) -> float | None:
    """Return the expiry of a server's certificate in seconds since 1970, or None if the address does not use TLS.

    Raises OSError if the server does not answer or its certificate is not trusted.
    """
    parts = urlsplit(url.split(",")[0])
    ports = {"https": 443, "pulsar+ssl": 6651}
    if parts.scheme not in ports or not parts.hostname:
        return None
    context = ssl.create_default_context(cafile=trust_certs_path)
    address = (parts.hostname, parts.port or ports[parts.scheme])
    plain = socket.create_connection(address, _TIMEOUT_S)
    with plain, context.wrap_socket(plain, server_hostname=parts.hostname) as encrypted:
        shown = encrypted.getpeercert() or {}
    end = shown.get("notAfter")
    return float(ssl.cert_time_to_seconds(end)) if isinstance(end, str) else None
