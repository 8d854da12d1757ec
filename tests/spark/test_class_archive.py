"""Java takes the classes of Spark from the archive."""

import os
import subprocess
from pathlib import Path

import pytest

from interpulse.spark.class_archive import archive_path, java_options, make_archive

pytestmark = [pytest.mark.spark, pytest.mark.slow]


def test_java_when_there_is_an_archive_then_takes_the_classes_of_spark_from_it():
    import pyspark

    path = archive_path()
    assert path is not None
    if not path.exists():
        make_archive()
    home = Path(pyspark.__file__).parent
    options = {"SPARK_HOME": str(home), "SPARK_SUBMIT_OPTS": f"{java_options()} -Xlog:class+load:stdout"}
    command = [str(home / "bin" / "spark-submit"), "--version"]
    done = subprocess.run(command, capture_output=True, text=True, check=True, timeout=120, env=os.environ | options)
    loaded = [line for line in done.stdout.splitlines() if "org.apache.spark.deploy.SparkSubmit " in line]
    assert [line.endswith("source: shared objects file (top)") for line in loaded] == [True]
