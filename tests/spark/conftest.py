"""One Spark session and one broker for all tests of this folder; topics have names of their own."""

import itertools
import os
import sys

import pytest

from interpulse.sync import Client
from interpulse.testing import InProcessBroker

_numbers = itertools.count()


@pytest.fixture(scope="session")
def broker(tmp_path_factory):
    # Topics without subscriptions wait for a Spark session to start, which may take a minute on a busy machine.
    settings = {"brokerDeduplicationEnabled": "true", "brokerDeleteInactiveTopicsEnabled": "false"}
    with InProcessBroker(tmp_path_factory.mktemp("broker"), settings) as broker:
        yield broker


@pytest.fixture
def client(broker):
    with Client(broker.service_url) as client:
        yield client


@pytest.fixture
def topic(broker):
    """A fresh topic of four partitions."""
    from interpulse.model.names import TopicName

    name = f"persistent://public/default/t{next(_numbers)}"
    broker.call(lambda app: app.lifecycle.create_partitioned(TopicName.parse(name), 4))
    return name


@pytest.fixture(scope="session")
def spark(tmp_path_factory):
    from interpulse.spark.session import start_session

    os.environ["PYSPARK_PYTHON"] = sys.executable
    session = start_session(
        "tests",
        master="local[2,4]",
        driver_memory="700m",
        directory=tmp_path_factory.mktemp("spark"),
        conf={"spark.sql.shuffle.partitions": "2", "spark.default.parallelism": "2"},
    )
    yield session
    session.stop()


@pytest.fixture
def hdfs(spark):
    """Spark on a cluster whose own file system is HDFS, which does not answer here."""
    conf = spark.sparkContext._jsc.hadoopConfiguration()
    before = conf.get("fs.defaultFS")
    conf.set("fs.defaultFS", "hdfs://127.0.0.1:1")
    yield
    conf.set("fs.defaultFS", before)


@pytest.fixture
def options(broker, topic):
    return {"service.url": broker.service_url, "topic": topic}
