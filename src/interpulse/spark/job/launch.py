"""Start of the replication job from a command line: reports at once, then does the slow imports."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import sys
import tomllib
from collections.abc import Mapping
from contextlib import ExitStack
from dataclasses import replace
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import click

from interpulse.model.clusters import shown_address
from interpulse.model.extras import pip_install
from interpulse.spark.job.reports.report import JsonLines, Report
from interpulse.spark.session import SparkMissing, check_spark_installed

if TYPE_CHECKING:
    from interpulse.spark.job.cursors import Takeover
    from interpulse.spark.job.pipeline_config import PipelineConfig

EXIT_CANNOT_RUN: Final = 2


def replicate(
    config_path: str, *, dry_run: bool = False, supervised: bool = False, takeover: Takeover | None = None
) -> int:
    """Run the job until it is stopped, and return the exit code. What cannot run is one sentence and code 2.

    Threads may be left that wait for Java: end the process with ``os._exit``.
    """
    with ExitStack() as closing:
        reports: list[Report] = []
        if not dry_run and (starting := _starting(config_path)) is not None:
            reports.append(closing.enter_context(contextlib.closing(_first_report(supervised=supervised))))
            reports[0].take(starting)
        from interpulse.model.errors import PulsarError
        from interpulse.spark.job.pipeline_config import PipelineConfigError, load_pipeline_config

        logging.getLogger("py4j").setLevel(logging.WARNING)
        try:
            config = load_pipeline_config(config_path)
            if dry_run:
                return _dry_run(config, takeover)
            check_spark_installed()
            if takeover is not None:
                config = _take_over(config, takeover, reports)
            for open_report in (_metrics, _spans):
                if (report := open_report(config)) is not None:
                    reports.append(report)
                    closing.callback(report.close)
            return _run(config, reports, supervised=supervised)
        except (PipelineConfigError, SparkMissing) as problem:
            reason = str(problem)
        except PulsarError as problem:
            if not dry_run:
                raise
            reason = f"source cannot be asked: {problem}"
    click.echo(f"interpulse replicate: {reason}", err=True)
    return EXIT_CANNOT_RUN


def _starting(config_path: str) -> Mapping[str, Any] | None:
    """Return the first event, from the file as it is. Return None if it is invalid; reading it properly says why."""
    try:
        body = tomllib.loads(Path(config_path).read_text(encoding="utf-8"))
        source = f"{body['source']['cluster']} at {shown_address(body['source']['service_url'])}"
        name = body["pipeline"]["name"]
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return None
    return {"event": "starting", "pipeline": name, "source": source, "waitsFor": [source, "Spark"]}


def _first_report(*, supervised: bool) -> Report:
    """Return a screen for people, or lines for programs."""
    if supervised or not sys.stdout.isatty() or find_spec("rich") is None:
        return JsonLines()
    from interpulse.spark.job.reports.live_screen import LiveScreen

    return LiveScreen()


def _dry_run(config: PipelineConfig, takeover: Takeover | None) -> int:
    from interpulse.spark.job.answers import print_begins, print_plan

    finding = asyncio.run(print_plan(config))
    if takeover is not None:
        asyncio.run(print_begins(config, takeover))
    return finding


def _take_over(config: PipelineConfig, takeover: Takeover, reports: list[Report]) -> PipelineConfig:
    """Move the cursors, and return the configuration of a job that begins there."""
    from interpulse.model.errors import PulsarError
    from interpulse.spark.job.cursors import find_begins, move_cursors
    from interpulse.spark.job.pipeline_config import PipelineConfigError
    from interpulse.spark.job.start import Start

    try:
        begins = asyncio.run(find_begins(config, takeover))
        asyncio.run(move_cursors(config, begins))
    except PulsarError as problem:
        raise PipelineConfigError(f"where to begin cannot be found out: {problem}") from problem
    for begin in begins:
        after = None if begin.after is None else str(begin.after)
        for report in reports:
            report.take({"event": "takenOver", "cluster": begin.cluster, "topic": begin.topic, "after": after})
    return replace(config, start=Start())


def _run(config: PipelineConfig, reports: list[Report], *, supervised: bool) -> int:
    from interpulse.spark.job.replication_job import ReplicationJob

    job = ReplicationJob(config, supervised=supervised, reports=reports)
    # asyncio.run would wait at the end for threads that talk to Java, however long Spark takes to start or to stop.
    return asyncio.new_event_loop().run_until_complete(job.run())


def _spans(config: PipelineConfig) -> Report | None:
    """Return a report of micro-batches as spans, if OTEL_SDK_DISABLED=false."""
    from interpulse.serving.telemetry import TelemetryUnusable, tracer_provider
    from interpulse.spark.job.pipeline_config import PipelineConfigError

    try:
        provider = tracer_provider(os.environ, service="interpulse-replicate", cluster=config.source.cluster)
    except TelemetryUnusable as problem:
        raise PipelineConfigError(str(problem)) from problem
    if provider is None:
        return None
    from interpulse.spark.job.reports.batch_spans import BatchSpans

    return BatchSpans(provider)


def _metrics(config: PipelineConfig) -> Report | None:
    """Return a report of metrics, if the file names a port."""
    from interpulse.spark.job.pipeline_config import PipelineConfigError

    port, host = config.metrics.port, config.metrics.host
    if not port:
        return None
    if find_spec("prometheus_client") is None:
        raise PipelineConfigError(f"[metrics] port needs prometheus-client: {pip_install('spark')}")
    from interpulse.spark.job.reports.job_metrics import JobMetrics

    try:
        return JobMetrics(port, host)
    except OSError as problem:
        raise PipelineConfigError(f"[metrics] port = {port} cannot be used at {host}: {problem.strerror}") from problem
