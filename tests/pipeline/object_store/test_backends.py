"""These tests check where exports go: what a path or URI names, what is told of it, and that each file there is whole."""

import threading
from pathlib import Path

import pytest
from pyarrow import fs

from pipeline.errors import StoreFailed
from pipeline.object_store.backends import Directory, Store, Uri, named, place_at
from pipeline.object_store.deadlines import within

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
    assert named(given) == shown


@pytest.mark.parametrize("secret", ["wJalr%2FXUtn", "wJalr/XUtn", "wJalr/XU@tn", "wJalr?XUtn", "wJalr%2FXUtn&x"])
@pytest.mark.parametrize("form", ["s3://KEYID:{}@bucket/a", "s3://bucket/a?region=eu&secret_key={}"])
def test_messages_hold_no_secret(form: str, secret: str) -> None:
    given = form.format(secret)
    message = Uri(given).cleaned(f"no {given}, nor {secret}, nor {secret.replace('%2F', '/')}")
    assert "wJalr" not in message
    assert "***" in message


UNUSABLE = [
    pytest.param("s3x://KEYID:secret@bucket/a", "Unrecognized filesystem", id="scheme"),
    pytest.param("s3://KEYID:secret@bucket/a?regoin=eu", "regoin|parameter", id="parameter"),
    pytest.param("s3://KEYID:se cret@bucket/a", "URI", id="no URI"),
    pytest.param("s3://KEYID:secret@bucket/\udc80", "surrogates", id="no text"),
    pytest.param("s3:///", "bucket", id="no bucket"),
]


@pytest.mark.parametrize(("given", "told"), UNUSABLE)
def test_what_cannot_be_used(given: str, told: str) -> None:
    with pytest.raises(StoreFailed, match=told) as raised:
        place_at(given)
    assert "secret" not in str(raised.value)


def test_a_local_uri_is_a_directory(tmp_path: Path) -> None:
    place = place_at(f"file://{tmp_path}/a%20b")
    assert isinstance(place, Directory)
    place.put("c/d", b"whole")
    place.close()
    assert (tmp_path / "a b" / "c" / "d").read_bytes() == b"whole"


def test_files_are_moved_to_where_they_are_seen(tmp_path: Path) -> None:
    place = Store(fs.LocalFileSystem(), str(tmp_path), Uri("hdfs://name/a"))
    for data in (b"first", b"second"):
        place.put("c/d", data)
        assert place.read("c/d") == data
    assert place.read("c/e") is None
    assert [path.name for path in tmp_path.rglob("*") if path.is_file()] == ["d"]


def test_what_was_about_to_be_moved_is_found(tmp_path: Path) -> None:
    """HDFS deletes the file that another one is moved to, and may end there."""
    place = Store(fs.LocalFileSystem(), str(tmp_path), Uri("hdfs://name/a"))
    place.put("note", b"before")
    (tmp_path / "note").rename(tmp_path / ".note.tmp")
    assert place.read("note") == b"before"
    place.put("note", b"after")
    assert place.read("note") == b"after"


def test_what_does_not_answer_is_left() -> None:
    asked = threading.Event()
    with pytest.raises(StoreFailed, match=r"does not answer within 0\.01 s"):
        within(0.01, asked.wait)
    asked.set()
    assert within(60, lambda: "given") == "given"
    with pytest.raises(KeyError):
        within(60, {}.popitem)
