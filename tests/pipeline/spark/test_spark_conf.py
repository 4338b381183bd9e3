"""Spark's settings, as the operator chooses them."""

import os
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path

import pytest

from pipeline.spark.jvm import configuration
from pipeline.spark.spark_conf import chosen_settings, shown_settings
from pipeline.spark.spark_session import session
from tests.support import spark_cases as cases


def test_words_are_read_as_a_shell_reads_them() -> None:
    found = chosen_settings("spark.executor.memory=2g 'spark.executor.extraJavaOptions=-Da=1 -Db=2' spark.ui.enabled=true")
    assert found == {"spark.executor.memory": "2g", "spark.executor.extraJavaOptions": "-Da=1 -Db=2", "spark.ui.enabled": "true"}


@pytest.mark.parametrize(
    ("text", "told"),
    [
        pytest.param("spark.executor.memory", "must be KEY=VALUE", id="no value"),
        pytest.param("executor.memory=2g", "a key of Spark's", id="another's key"),
        pytest.param("spark.master=yarn", "given by --master", id="the master"),
        pytest.param("spark.sql.session.timeZone=CET", "instants are UTC", id="the zone"),
        pytest.param("'spark.a=b", "No closing quotation", id="half a word"),
    ],
)
def test_what_cannot_be_chosen_is_told(text: str, told: str) -> None:
    with pytest.raises(ValueError, match=told):
        chosen_settings(text)


def test_what_is_chosen_goes_before_ours_or_beside_it(tmp_path: Path) -> None:
    chosen = {"spark.driver.memory": "3g", "spark.driver.extraJavaOptions": "-Da=1", "spark.archives": "x.zip", "spark.authenticate.secret": "s"}
    found = configuration("spark://h:7077", tmp_path, tmp_path, ["-Xshare:auto"], chosen)
    assert found["spark.driver.memory"] == "3g"
    assert found["spark.driver.extraJavaOptions"].split()[1:] == ["-Xshare:auto", "-Da=1"]
    assert found["spark.archives"].endswith("#epsparql_code,x.zip")
    assert found.keys() - shown_settings(found).keys() == {"spark.authenticate.secret"}


@pytest.mark.slow
@pytest.mark.soak  # in CI, test_spark_runner.py looks at the command lines of a JVM with chosen settings
def test_a_session_has_what_was_chosen_and_what_the_environment_s_file_says(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "conf").mkdir()
    (tmp_path / "conf" / "spark-defaults.conf").write_text("spark.test.file file\nspark.test.both file\nspark.sql.session.timeZone CET\n")
    monkeypatch.setenv("SPARK_CONF_DIR", str(tmp_path / "conf"))
    with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as pool:
        found, option, shown = pool.submit(told_by_a_session, tmp_path / "log").result()
    assert found == ["file", "chosen", "hidden", "UTC"]
    assert option == "1"
    assert any("test.option" in args for args in shown)
    assert not any("hidden" in args for args in shown), "a command line is seen by all users"


def told_by_a_session(log: Path) -> tuple[list[str | None], str, list[str]]:
    """Return settings and a property of a session, and the command lines of its processes."""
    chosen = {"spark.test.both": "chosen", "spark.test.secret": "hidden", "spark.driver.extraJavaOptions": "-Dtest.option=1"}
    with session("local[1]", log=log, chosen=chosen) as spark:
        names = ("spark.test.file", "spark.test.both", "spark.test.secret", "spark.sql.session.timeZone")
        option = str(spark._jvm.System.getProperty("test.option"))  # type: ignore[union-attr]
        return [spark.conf.get(name) for name in names], option, list(cases.below(os.getpid()).values())
