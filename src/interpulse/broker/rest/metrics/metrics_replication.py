"""Metrics of replication as a whole.

Every broker of a cluster shows all topics of it, so take the maximum over its brokers, not the sum. The names are ours:
Pulsar has metrics of single topics only, which are in `metrics_topics`.
"""

from __future__ import annotations

from typing import Final

from interpulse.broker.replication.replication_status import STATES, ReplicationSurvey, Survey
from interpulse.broker.replication.replication_supervisor import JobState
from interpulse.serving.exposition import Exposition, labelled

_TOPICS: Final = "Topics and partitions by the state of their replication."


def write_replication(page: Exposition, replication: ReplicationSurvey, survey: Survey, cluster: str) -> None:
    """Add the totals of a survey, and the state of the replication job."""
    local = labelled(cluster=cluster)
    for remote in sorted(survey.remotes):
        for state in STATES:
            labels = f"{local},{labelled(remote=remote, state=state)}"
            page.add("interpulse_replication_topics", "gauge", _TOPICS, labels, survey.states[remote, state])
    for name, text, figures in (
        ("entries", "Entries not yet copied to a remote cluster.", survey.lag_entries),
        ("messages", "Estimated messages in these entries.", survey.lag_messages),
        ("seconds", "Age of the oldest message not yet copied.", survey.lag_seconds),
    ):
        for (remote, namespace), value in figures.items():
            labels = f"{local},{labelled(remote=remote, namespace=namespace)}"
            page.add(f"interpulse_replication_lag_{name}", "gauge", text, labels, value)
    text = "Topics checked on a remote cluster, by outcome."
    for (remote, result), count in replication.provisioned.items():
        labels = f"{local},{labelled(remote=remote, result=result)}"
        page.add("interpulse_replication_provisioning_total", "counter", text, labels, count)
    _write_job(page, replication, local)


def _write_job(page: Exposition, replication: ReplicationSurvey, local: str) -> None:
    job = replication.job
    text = "1 for the state of this broker's replication job, 0 for other states."
    for state in _JOB_STATES:
        labels = f"{local},{labelled(state=state)}"
        page.add("interpulse_replication_job", "gauge", text, labels, int(state == job.state))
    text = "Restarts of the replication job."
    page.add("interpulse_replication_job_restarts_total", "counter", text, local, job.restarts)
    text = "Time of the newest micro-batch, by Spark's phases."
    for remote, progress in job.progress.items():
        for phase, ms in progress.get("phasesMs", {}).items():
            labels = f"{local},{labelled(remote=remote, phase=phase)}"
            page.add("interpulse_replication_batch_seconds", "gauge", text, labels, ms / 1000)


_JOB_STATES: Final = (
    JobState.IDLE,
    JobState.EXTERNAL,
    JobState.UNAVAILABLE,
    JobState.RUNNING,
    JobState.RESTARTING,
)
