"""This module knows how many partitions a data directory's queries are dealt out to, and what the files of each are
called.

Solutions are the same with any number. Snapshots are of one number (docs/decisions/0024-buckets.md).
"""

from contextlib import suppress
from pathlib import Path

from epsparql.durable_files import replace_file

SNAPSHOT_WEIGHT = 1_000_000
"""This much may lie between two snapshots: rows, an entry counting as a hundred.

Reading it again takes about a second or two.
"""
MOST_PARTITIONS = 64
SETS = "sets.json"
"""This is the end of the name of the file with the sets of queries with which the present number of partitions began."""
NEEDED = ".needed"
"""This suffix has the file beside a partition's snapshot that says from which position on queries that move need the
log.
"""


def name_of(partition: int, partitions: int) -> str:
    """Return a partition's name, as it stands in names of files."""
    return "0" if partitions == 1 else f"{partition}of{partitions}"


def recorded(data_dir: Path | str) -> int | None:
    """Return the number that was settled, or None."""
    with suppress(FileNotFoundError, ValueError):
        return int(_path(data_dir).read_text(encoding="ascii"))
    return None


def record(data_dir: Path | str, number: int) -> None:
    """Record the number, durably."""
    replace_file(_path(data_dir), b"%d\n" % number)


def sweep_others(data_dir: Path, partitions: int) -> None:
    """Drop snapshots and reports of another number of partitions."""
    names = {name_of(partition, partitions) for partition in range(partitions)}
    for path in [*(data_dir / "snapshots").glob("*-*"), *(data_dir / "reports").glob("*.json")]:
        name = path.name.split("-")[0].removesuffix(".json")
        if name in names or not name[:1].isdigit():
            continue
        for file in [*path.iterdir(), path] if path.is_dir() else [path]:
            file.rmdir() if file.is_dir() else file.unlink(missing_ok=True)


def _path(data_dir: Path | str) -> Path:
    return Path(data_dir) / "buckets"
