"""Settings by flag, variable and file, and the one table of them."""

import re
from dataclasses import fields
from pathlib import Path

import pytest

from server.cli.commands import main, parser
from server.cli.settings_doc import table
from server.settings import REMOVED, RENAMED, Settings, SettingsError, flag_of, settings_from, variable_of

DOCUMENT = Path(__file__).parents[3] / "docs" / "configuration.md"


def test_the_documented_table_is_that_of_the_settings() -> None:
    assert f"\n\n{table()}\n## Former names\n" in DOCUMENT.read_text(encoding="utf-8"), (
        "replace it with what python -m server.cli.settings_doc prints"
    )
    assert table().count("\n") == len(fields(Settings)) + 2


def test_flags_before_variables_before_the_file_before_defaults(tmp_path: Path) -> None:
    file = tmp_path / "epsparql.toml"
    file.write_text('port = 1\nmax_queries = 2\ndata = "/d"\nstall_s = 3\norigins = ["https://a", "https://b"]\n')
    found = settings_from({"config": file, "port": 7}, {"EPSPARQL_MAX_QUERIES": "8"})
    assert (found.port, found.max_queries, found.data, found.stall_s) == (7, 8, Path("/d"), 3.0)
    assert (found.origins, found.host) == (("https://a", "https://b"), Settings().host)
    assert settings_from({}, {"EPSPARQL_CONFIG": str(file)}).port == 1


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("max_querie = 1", "nearest one is 'max_quer"),
        ("port = true", "port must be"),
        ("origins = [1]", "origins must be"),
        ("port = -1", "port='-1': must not be negative"),
        ("stall_s = nan", "stall_s='nan'"),
        ("[limits]\nport = 1", "no setting 'limits'"),
        ("port = x", "line 1"),
    ],
)
def test_files_that_cannot_be(tmp_path: Path, text: str, reason: str) -> None:
    file = tmp_path / "epsparql.toml"
    file.write_text(text)
    with pytest.raises(SettingsError, match=reason) as refused:
        settings_from({"config": file}, {})
    assert str(file) in str(refused.value)


@pytest.mark.parametrize(
    ("flags", "told"),
    [
        pytest.param(["--port", "eight"], "--port='eight': must be a whole number", id="no number"),
        pytest.param(["--port", "-1"], "--port='-1': must not be negative", id="negative"),
        pytest.param(["--max-body", "10MB"], "--max-body='10MB': '10MB' is no size such as 500k, 20M or 50G", id="no size"),
        pytest.param(["--retain-age", "3weeks"], "--retain-age='3weeks': '3weeks' is no time such as 90s", id="no time"),
        pytest.param(["--runner", "sparc"], "--runner='sparc': must be one of spark, inprocess", id="no runner"),
        pytest.param(["--body-s", "soon"], "--body-s='soon': must be a number of seconds", id="no seconds"),
        pytest.param(["--partitions", "two"], "--partitions='two': must be a whole number", id="no partitions"),
    ],
)
def test_faults_of_flags_are_told_as_those_of_variables_are(flags: list[str], told: str) -> None:
    with pytest.raises(SettingsError, match=re.escape(told)):
        settings_from(vars(parser().parse_args(["serve", *flags])), {})


def test_sizes_have_units() -> None:
    found = settings_from(vars(parser().parse_args(["serve", "--max-body", "10M", "--max-query", "300000"])), {"EPSPARQL_MAX_STATE_BYTES": "1G"})
    assert (found.max_body, found.max_query, found.max_state_bytes) == (10_000_000, 300_000, 1_000_000_000)


def test_spark_s_settings_come_by_flag_variable_and_file(tmp_path: Path) -> None:
    file = tmp_path / "epsparql.toml"
    file.write_text('spark_conf = ["spark.executor.memory=2g", "spark.executor.extraJavaOptions=-Da=1 -Db=2"]\n')
    both = ("spark.executor.memory=2g", "spark.executor.extraJavaOptions=-Da=1 -Db=2")
    assert settings_from({"config": file}, {}).spark_conf == both
    assert settings_from({}, {"EPSPARQL_SPARK_CONF": "spark.executor.memory=2g 'spark.executor.extraJavaOptions=-Da=1 -Db=2'"}).spark_conf == both
    flags = parser().parse_args(["serve", "--spark-conf", both[0], "--spark-conf", both[1]])
    assert settings_from(vars(flags), {"EPSPARQL_SPARK_CONF": "spark.ui.enabled=true"}).spark_conf == both
    with pytest.raises(SettingsError, match=re.escape("spark.master cannot be chosen: it is given by --master")):
        settings_from(vars(parser().parse_args(["serve", "--spark-conf", "spark.master=yarn"])), {})
    assert "2g" not in repr(settings_from({"config": file}, {})), "it may hold secrets"


@pytest.mark.parametrize("name", REMOVED)
def test_a_switch_without_effect_is_taken_with_a_warning(name: str, tmp_path: Path) -> None:
    file, told = tmp_path / "epsparql.toml", list[str]()
    file.write_text(f"{name} = true\n")
    flags = vars(parser().parse_args(["serve", flag_of(name)])) | {"config": file}
    assert settings_from(flags, {variable_of(name): "1"}, told.append) == Settings()
    assert [line.partition(" has no effect")[0] for line in told] == [flag_of(name), variable_of(name), f"{file}: {name}"]
    told.clear()
    settings_from(vars(parser().parse_args(["serve"])), {}, told.append)
    assert told == []


def test_a_file_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(SettingsError, match="missing"):
        settings_from({"config": tmp_path / "missing"}, {})


def test_a_uri_with_credentials_is_not_shown() -> None:
    assert "secret" not in repr(settings_from({"export": "s3://key:secret@bucket"}, {}))


@pytest.mark.parametrize(("name", "former"), RENAMED.items())
def test_former_names_are_taken_with_a_warning(name: str, former: str, tmp_path: Path) -> None:
    file = tmp_path / "epsparql.toml"
    file.write_text(f"{former} = 7\n")
    places = [
        (vars(parser().parse_args(["serve", flag_of(former), "7"])), {}, flag_of(former), flag_of(name)),
        ({}, {variable_of(former): "7"}, variable_of(former), variable_of(name)),
        ({"config": file}, {}, f"{file}: {former}", f"{file}: {name}"),
    ]
    for flags, environment, old, new in places:
        told: list[str] = []
        assert getattr(settings_from(flags, environment, told.append), name) == 7
        assert told == [f"{old} is deprecated and goes with the next release; use {new}"]


@pytest.mark.parametrize(("name", "former"), RENAMED.items())
def test_present_names_go_before_former_ones(name: str, former: str) -> None:
    told: list[str] = []
    found = settings_from(vars(parser().parse_args(["serve", flag_of(name), "8", flag_of(former), "7"])), {variable_of(former): "6"}, told.append)
    assert getattr(found, name) == 8
    assert told == []


def test_a_former_flag_is_not_in_the_help(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        parser().parse_args(["serve", "--help"])
    flags = capsys.readouterr().out.split()
    assert not {flag_of(former) for former in RENAMED.values()} & {*flags}
    assert {flag_of(name) for name in RENAMED} <= {*flags}


def test_a_former_flag_warns_on_stderr(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "file").touch()
    assert main(["serve", "--buckets", "1", "--data", str(tmp_path / "file"), "--port", "0", "--runner", "inprocess"]) == 2
    assert "epsparql: --buckets is deprecated and goes with the next release; use --partitions\n" in capsys.readouterr().err
