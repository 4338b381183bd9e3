"""These tests check where exports go: what a path or URI names, what is told of it, and that each file there is whole."""

from pathlib import Path

import pytest

from pipeline.errors import StoreFailed
from pipeline.object_store.backends import DirectoryStore, ObjectStore, open_store
from pipeline.object_store.remote_store import connect_client
from pipeline.object_store.store_uri import StoreUri, redact_uri
from tests.support.s3_emulator import ACCESS, CREDENTIALS, SECRET, served

SHOWN = [
    pytest.param("s3://bucket/a/b", "s3://bucket/a/b", id="nothing secret"),
    pytest.param("s3://KEYID:se%2Fcret@bucket/a?region=eu", "s3://***@bucket/a?region=eu", id="credentials"),
    pytest.param("s3://KEYID:se/c?r@et@bucket/a", "s3://***@bucket/a", id="not encoded"),
    pytest.param("s3:/KEYID:secret@bucket", "s3://***@bucket", id="a slash"),
    pytest.param("s3://bucket?region=eu&secret_key=secret&x", "s3://bucket?region=eu&***", id="parameters"),
    pytest.param("abfss://:secret@account.dfs.core.windows.net/a", "abfss://***@account.dfs.core.windows.net/a", id="password"),
    pytest.param("out/put@home", "out/put@home", id="path"),
]


@pytest.mark.parametrize(("given", "shown"), SHOWN)
def test_what_is_shown(given: str, shown: str) -> None:
    assert redact_uri(given) == shown


@pytest.mark.parametrize("secret", ["wJalr%2FXUtn", "wJalr/XUtn", "wJalr/XU@tn", "wJalr?XUtn", "wJalr%2FXUtn&x"])
@pytest.mark.parametrize("form", ["s3://KEYID:{}@bucket/a", "s3://bucket/a?region=eu&secret_key={}"])
def test_messages_hold_no_secret(form: str, secret: str) -> None:
    given = form.format(secret)
    message = StoreUri(given).redact(f"no {given}, nor {secret}, nor {secret.replace('%2F', '/')}")
    assert "wJalr" not in message
    assert "***" in message


UNUSABLE = [
    pytest.param("s3x://KEYID:secret@bucket/a", "s3x: is not the scheme of a store", id="scheme"),
    pytest.param("s3://KEYID:secret@bucket/a?regoin=eu", "regoin|parameter", id="parameter"),
    pytest.param("s3://KEYID:secret@bucket/\udc80", "surrogates|str", id="no text"),
    pytest.param("hdfs://host:9000/a", "hdfs: is not the scheme of a store; give s3:, gs:, abfs: or a directory", id="hdfs"),
    pytest.param("s3:///", "bucket", id="no bucket"),
]


@pytest.mark.parametrize(("given", "told"), UNUSABLE)
def test_what_cannot_be_used(given: str, told: str) -> None:
    with pytest.raises(StoreFailed, match=told) as raised:
        open_store(given)
    assert "secret" not in str(raised.value)


def test_a_local_uri_is_a_directory(tmp_path: Path) -> None:
    place = open_store(f"file://{tmp_path}/a%20b")
    assert isinstance(place, DirectoryStore)
    place.put("c/d", b"whole")
    place.close()
    assert (tmp_path / "a b" / "c" / "d").read_bytes() == b"whole"


@pytest.mark.parametrize("kind", ["directory", "s3"])
def test_an_object_is_created_once(kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in CREDENTIALS.items():
        monkeypatch.setenv(name, value)
    if kind == "directory":
        check_store(open_store(str(tmp_path / "store"), locked=False), open_store(str(tmp_path / "store"), locked=False))
        return
    with served(tmp_path) as emulator:
        bucket = emulator.bucket()
        check_store(open_store(bucket.uri("some/where")), open_store(bucket.uri("some/where", user=f"{ACCESS}:{SECRET}@")))
        assert bucket.names() == ["some/where/folder/query=a%2Fb !/other"]


def check_store(store: ObjectStore, other: ObjectStore) -> None:
    """Check what all stores have in common, with two clients of one."""
    assert store.names("folder") == []
    assert store.read("folder/one") is None
    assert store.create("folder/one", b"first")
    assert not other.create("folder/one", b"second")
    assert not store.create("folder/one", b"first")
    assert other.read("folder/one") == b"first"
    store.put("folder/one", b"third")
    other.put("folder/query=a%2Fb !/other", b"x" * (6 << 20))
    assert store.read("folder/query=a%2Fb !/other") == b"x" * (6 << 20)
    assert other.names("folder") == ["one", "query=a%2Fb !/"]
    assert other.names("folder/query=a%2Fb !") == ["other"]
    assert store.read("folder/one") == b"third"
    other.remove("folder/one")
    other.remove("folder/one")
    assert store.names("folder") == ["query=a%2Fb !/"]


CLIENTS = [
    pytest.param(
        "s3://ID:se%2Fcret@b/a/c%20d?region=eu-west-3", {"bucket": "b", "access_key_id": "ID", "secret_access_key": "se/cret"}, "a/c d", id="s3"
    ),
    pytest.param("s3://b?scheme=http&endpoint_override=h:1&allow_delayed_open=true", {"bucket": "b", "endpoint": "http://h:1"}, None, id="endpoint"),
    pytest.param("gs://anonymous@b/a?retry_limit_seconds=30", {"bucket": "b", "skip_signature": "true"}, "a", id="gs"),
    pytest.param("abfs://c@acc.dfs.core.windows.net/a/b", {"container_name": "c", "account_name": "acc"}, "a/b", id="abfs"),
    pytest.param(
        "abfss://:a2V5@acc.blob.core.windows.net/c/a", {"container_name": "c", "account_name": "acc", "account_key": "a2V5"}, "a", id="abfs key"
    ),
]


@pytest.mark.parametrize(("given", "settings", "prefix"), CLIENTS)
def test_a_uri_of_arrow_names_the_same_place(given: str, settings: dict[str, object], prefix: str | None) -> None:
    client = connect_client(StoreUri(given))
    assert {str(name).removeprefix("google_"): value for name, value in client.config.items()}.items() >= settings.items(), client.config
    assert client.prefix == prefix
