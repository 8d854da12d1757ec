"""The supervisor of the replication job, with a small program in the job's place."""

import asyncio
import gc
import sys
import textwrap
import warnings
from pathlib import Path

import pytest

from interpulse.broker import metadata_paths as keys
from interpulse.broker.config.broker_config import BrokerConfig
from interpulse.broker.ownership.own_access import OwnAccess
from interpulse.broker.replication.replication_supervisor import (
    JobCommand,
    JobState,
    ReplicationSupervisor,
    records_without_job,
)
from interpulse.client.credentials import Credentials
from interpulse.model.names import TopicName
from interpulse.model.policies.policy_documents import NamespacePolicies, TopicPolicies, TopicPolicyRecord
from interpulse.storage.api import Delete, Put
from tests.support.memory_storage import MemoryMetadataStore
from tests.support.waiting import SECONDS_MAX, eventually

POLICIES = f"{keys.POLICIES}/demo/flights"
JOB = """
import json, os, sys, tomllib
with open(sys.argv[2], "rb") as file:
    config = tomllib.load(file)
line = {"event": "progress", "cluster": "west", "source": config["source"]["cluster"]}
print(json.dumps(line), flush=True)
print("not json", flush=True)
%s
"""
TOPIC = "persistent://demo/flights/a"
WAIT_FOR_PARENT = "while os.read(0, 4096): pass"


NO_ACCESS = OwnAccess()
PROGRAM = ("interpulse.cli", "replicate")


def job_command(data_dir, own=NO_ACCESS, **options):
    config = BrokerConfig(cluster_name="east", data_dir=str(data_dir))
    return JobCommand(config, own, "pulsar://h:1", "http://h:2", **options)


@pytest.fixture
async def store():
    store = MemoryMetadataStore()
    await store.commit([Put(f"{keys.CLUSTERS}/{name}", b"{}") for name in ("east", "west")])
    yield store
    await store.close()


@pytest.fixture
async def supervise(store, tmp_path):
    supervisors = []

    async def start(job, **options):
        program = tmp_path / "job.py"
        program.write_text(textwrap.dedent(JOB) % job)
        command = job_command(tmp_path, program=(sys.executable, str(program)))
        supervisor = ReplicationSupervisor(store, command, missing=options.pop("missing", lambda: None), **options)
        supervisors.append(supervisor)
        await supervisor.start()
        return supervisor

    yield start
    for supervisor in supervisors:
        await supervisor.stop()


async def ask_for_replication(store, *clusters):
    await store.commit([Put(POLICIES, NamespacePolicies(replication_clusters=clusters).dump())])


async def test_job_is_told_how_to_show_its_log(store, tmp_path):
    """It ends with what it was given: that is told as its last words."""
    program = tmp_path / "job.py"
    program.write_text("import json, sys\nprint(json.dumps({'event': 'error', 'error': ' '.join(sys.argv[3:])}))")
    arguments = ("--log-level", "DEBUG", "--log-format", "json")
    command = job_command(tmp_path, program=(sys.executable, str(program)), arguments=arguments)
    assert command.program != job_command(tmp_path).program == (sys.executable, "-m", *PROGRAM)
    supervisor = ReplicationSupervisor(store, command, missing=lambda: None)
    await ask_for_replication(store, "east", "west")
    await supervisor.start()
    await eventually(lambda: supervisor.view.last_error == "--supervised --log-level DEBUG --log-format json")
    await supervisor.stop()


def is_alive(pid):
    try:
        return "Z" not in Path(f"/proc/{pid}/stat").read_text().split(")")[1][:3]
    except (FileNotFoundError, ProcessLookupError):
        return False


@pytest.fixture
def decides(tmp_path):
    """Until the supervisor started afterwards has found no policy that asks: it forgets what an earlier job left."""
    left = tmp_path / "replication" / "earlier" / "checkpoint"
    left.mkdir(parents=True)

    async def decides():
        await eventually(lambda: not left.exists())

    return decides


async def test_job_when_no_policy_asks_then_does_not_run(store, supervise, decides):
    await ask_for_replication(store, "east")
    supervisor = await supervise(WAIT_FOR_PARENT)
    await decides()
    assert (supervisor.view.state, supervisor.view.pid) == (JobState.IDLE, None)


async def test_job_when_a_policy_asks_then_runs_and_its_progress_is_seen(store, supervise):
    supervisor = await supervise(WAIT_FOR_PARENT)
    await ask_for_replication(store, "east", "west")
    await eventually(lambda: "west" in supervisor.view.progress)
    assert supervisor.view.state == JobState.RUNNING
    assert supervisor.view.remotes == ("west",)
    assert supervisor.view.progress["west"]["source"] == "east"


async def test_job_when_only_a_topic_asks_then_runs(store, supervise):
    supervisor = await supervise(WAIT_FOR_PARENT)
    own = TopicPolicies(replication_clusters=("east", "west"))
    await store.commit(
        [Put(keys.topic_policies(TopicName.parse("persistent://t/ns/x")), TopicPolicyRecord(own).dump())]
    )
    await eventually(lambda: supervisor.view.remotes == ("west",))


async def test_job_when_the_cluster_is_not_registered_then_waits_for_it(store, supervise, decides):
    await ask_for_replication(store, "east", "north")
    supervisor = await supervise(WAIT_FOR_PARENT)
    await decides()
    assert supervisor.view.pid is None
    await store.commit([Put(f"{keys.CLUSTERS}/north", b"{}")])
    await eventually(lambda: supervisor.view.pid is not None)


async def test_job_when_policies_stop_asking_then_ends(store, supervise):
    await ask_for_replication(store, "east", "west")
    supervisor = await supervise(WAIT_FOR_PARENT)
    await eventually(lambda: supervisor.view.pid is not None)
    pid = supervisor.view.pid
    await store.commit([Delete(POLICIES)])
    await eventually(lambda: supervisor.view.state == JobState.IDLE)
    assert not is_alive(pid)


async def test_checkpoints_when_no_policy_asks_any_more_then_are_forgotten(store, supervise, tmp_path):
    checkpoint = tmp_path / "replication" / "west" / "checkpoint"
    checkpoint.mkdir(parents=True)
    await ask_for_replication(store, "east", "west")
    supervisor = await supervise(WAIT_FOR_PARENT)
    await eventually(lambda: supervisor.view.pid is not None)
    assert checkpoint.exists()
    await store.commit([Delete(POLICIES)])
    await eventually(lambda: supervisor.view.state == JobState.IDLE)
    assert not checkpoint.exists()


async def test_job_when_it_dies_then_is_started_again_and_the_reason_kept(store, supervise):
    await ask_for_replication(store, "east", "west")
    supervisor = await supervise('print(json.dumps({"event": "error", "error": "boom"}), flush=True); sys.exit(3)')
    await eventually(lambda: supervisor.view.restarts >= 1)
    assert supervisor.view.state == JobState.RESTARTING
    assert supervisor.view.last_error == "boom"
    records = records_without_job(supervisor.view, [TOPIC])
    assert records[0]["state"] == "DISCONNECTED"
    assert "boom" in records[0]["remedy"]
    assert records[0]["nextRetryAt"] > records[0]["since"]


async def test_job_when_it_cannot_be_started_then_says_why_and_tries_again(store, supervise, tmp_path):
    in_the_way = tmp_path / "replication"
    in_the_way.write_text("")
    await ask_for_replication(store, "east", "west")
    supervisor = await supervise(WAIT_FOR_PARENT)
    await eventually(lambda: supervisor.view.state == JobState.RESTARTING)
    assert "File exists" in supervisor.view.last_error
    (record,) = records_without_job(supervisor.view, [TOPIC])
    assert (record["cluster"], "File exists" in record["remedy"]) == ("west", True)
    in_the_way.unlink()
    await eventually(lambda: supervisor.view.progress)


async def test_job_when_it_prints_json_that_is_no_event_then_goes_on(store, supervise):
    await ask_for_replication(store, "east", "west")
    job = """
print("[1]", flush=True)
print(json.dumps({"event": "error", "error": "later"}), flush=True)
while os.read(0, 4096): pass
"""
    supervisor = await supervise(job)
    await eventually(lambda: supervisor.view.last_error == "later")
    assert supervisor.view.restarts == 0


@pytest.mark.parametrize("hurried", [False, True])
async def test_stop_leaves_nothing_of_a_job_that_ignores_it(store, supervise, tmp_path, hurried):
    await ask_for_replication(store, "east", "west")
    job = """
    import signal, subprocess
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    child = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"])
    print(json.dumps({"event": "child", "cluster": "west"}), flush=True)
    open(os.path.join(os.path.dirname(sys.argv[2]), "child"), "w").write(str(child.pid))
    signal.pause()
    """
    supervisor = await supervise(textwrap.dedent(job))
    note = tmp_path / "replication" / "child"
    await eventually(lambda: note.exists() and note.read_text())
    pid, child = supervisor.view.pid, int(note.read_text())
    if hurried:
        stopping = asyncio.create_task(supervisor.stop())
        await asyncio.wait([stopping], timeout=0.1)
        stopping.cancel()
        await asyncio.wait([stopping])
    else:
        async with asyncio.timeout(SECONDS_MAX):
            await supervisor.stop()
    await eventually(lambda: not is_alive(pid) and not is_alive(child))


async def test_job_when_something_is_missing_then_says_what_and_keeps_serving(store, supervise):
    await ask_for_replication(store, "east", "west")
    supervisor = await supervise(WAIT_FOR_PARENT, missing=lambda: "replication needs Java")
    await eventually(lambda: supervisor.view.state == JobState.UNAVAILABLE)
    assert supervisor.view.last_error == "replication needs Java"
    records = records_without_job(supervisor.view, [TOPIC])
    assert records[0]["remedy"] == "replication needs Java"
    assert records[0]["nextRetryAt"] > records[0]["since"]
    await store.commit([Put(f"{keys.CLUSTERS}/north", b"{}")])
    await ask_for_replication(store, "east", "north", "west")
    await eventually(lambda: len(records_without_job(supervisor.view, [TOPIC])) == 2)


async def test_job_when_external_then_is_never_started(store, supervise):
    await ask_for_replication(store, "east", "west")
    supervisor = await supervise(WAIT_FOR_PARENT, mode="external")
    await eventually(lambda: supervisor.view.state == JobState.EXTERNAL)
    assert records_without_job(supervisor.view, [TOPIC]) == []


def test_configuration_is_one_that_the_job_reads(tmp_path):
    from interpulse.spark.job.pipeline_config import load_pipeline_config

    command = job_command(tmp_path / 'with "quotes"')
    command.directory.mkdir(parents=True)
    command.config_path.write_text(command.config_text())
    config = load_pipeline_config(str(command.config_path))
    assert config.select.from_policies
    assert config.as_replicator
    assert config.state == command.directory
    assert config.source.credentials is None


@pytest.mark.parametrize(
    "credentials",
    [
        Credentials.token("file:///secret"),
        Credentials.token("token:secret"),
        Credentials.basic("jo", 'secret "word"'),
        Credentials("basic", "file:///secret"),
        Credentials.oauth2("https://issuer", "file:///secret", audience="urn:east"),
    ],
)
def test_configuration_has_the_credentials_that_the_job_needs(tmp_path, credentials):
    from interpulse.spark.job.pipeline_config import load_pipeline_config

    command = job_command(tmp_path, OwnAccess(credentials))
    (tmp_path / "job.toml").write_text(command.config_text())
    config = load_pipeline_config(str(tmp_path / "job.toml"))
    assert config.source.credentials == credentials
    assert "secret" not in repr(command) + repr(config)


@pytest.mark.parametrize(
    ("binary", "web", "named"),
    [
        ("pulsar", "http", []),
        ("pulsar", "https", ["trust_certs_file"]),
        ("pulsar+ssl", "http", ["trust_certs_file"]),
        ("pulsar+ssl", "https", ["trust_certs_file", "certificate_file", "key_file"]),
    ],
)
def test_configuration_names_certificates_where_the_broker_is_called_inside_tls(tmp_path, binary, web, named):
    from interpulse.spark.job.pipeline_config import load_pipeline_config

    files = {"trust_certs_file": "/ca.pem", "certificate_file": "/own.pem", "key_file": "/own.key"}
    own = OwnAccess(None, False, *files.values())
    command = JobCommand(BrokerConfig(data_dir=str(tmp_path)), own, f"{binary}://a:1", f"{web}://a:2")
    (tmp_path / "job.toml").write_text(command.config_text())
    source = load_pipeline_config(str(tmp_path / "job.toml")).source
    assert {name: getattr(source, name) for name in files} == dict.fromkeys(files) | {
        each: files[each] for each in named
    }


async def test_stop_when_cancelled_then_is_not_taken_for_done(store, supervise):
    supervisor = await supervise("pass")
    stopping = asyncio.create_task(supervisor.stop())
    await asyncio.sleep(0)
    stopping.cancel()
    await asyncio.wait([stopping])
    assert stopping.cancelled()


def test_stop_when_the_loop_ends_with_it_then_no_pipe_is_left_open(tmp_path):
    """Not even one that a process of the job holds which has a session of its own."""
    program = tmp_path / "job.py"
    line = {"event": "progress", "cluster": "west"}
    end = tmp_path / "end"
    holder = (
        f"import json, os, time; print(json.dumps({line}), flush=True)\n"
        f"while not os.path.exists({str(end)!r}): time.sleep(0.02)"
    )
    program.write_text(
        f"import subprocess, sys\nsubprocess.Popen([sys.executable, '-c', {holder!r}], start_new_session=True)\n"
        f"sys.stdin.read()"
    )
    command = job_command(tmp_path, program=(sys.executable, str(program)))

    async def run_and_stop():
        store = MemoryMetadataStore()
        await store.commit([Put(f"{keys.CLUSTERS}/{name}", b"{}") for name in ("east", "west")])
        await ask_for_replication(store, "east", "west")
        supervisor = ReplicationSupervisor(store, command, missing=lambda: None)
        await supervisor.start()
        await eventually(lambda: "west" in supervisor.view.progress)
        await supervisor.stop()
        await store.close()

    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        asyncio.run(run_and_stop())
        gc.collect()
    end.touch()
    assert [str(each.message) for each in told if issubclass(each.category, ResourceWarning)] == []
