"""`epsparql verify` over directories from which random pieces were taken: none passes that is not whole, and there is
no traceback.
"""

import random
import re
import shutil
import time
from contextlib import closing, suppress
from pathlib import Path

import pytest

from pipeline.errors import Corrupt
from pipeline.log.segments import FrameReader
from server.cli import main
from tests.pipeline.log.test_retention import fill
from tests.soak import budget_s, first_seed, is_short
from tests.soak.test_damaged_directories import DAMAGES, Healthy, files

pytestmark = pytest.mark.slow
SHORT = 80
"""How many directories CI tries."""
SEGMENT = re.compile(r"\d{20}\.frames")


def parts(data: Path) -> dict[str, bytes]:
    """Return the files by which a directory says what its log and its solutions are.

    Segments after that of `head` are not published.
    """
    found: dict[str, bytes] = {}
    for folder in ("log", "solutions"):
        segments = [path for path in files(data / folder) if SEGMENT.fullmatch(path.name)] if (data / folder).exists() else []
        paths = [path for path in segments if int(path.stem) <= last_segment(data / folder)] + [data / folder / name for name in ("head", "begin")]
        found |= {f"{folder}/{path.name}": path.read_bytes() for path in paths if path.is_file()}
    return found


def last_segment(log: Path) -> int:
    with closing(FrameReader(log)) as reader, suppress(Corrupt):
        return reader.head().segment
    return 10**20


def catalogue(data: Path) -> bytes:
    path = data / "catalogue.json"
    return path.read_bytes() if path.exists() else b""


@pytest.fixture(scope="module")
def healthy(tmp_path_factory: pytest.TempPathFactory) -> Healthy:
    root = tmp_path_factory.mktemp("healthy")
    fill(root / "whole", range(40), begin=True)
    shutil.copytree(root / "whole", root / "older")
    fill(root / "whole", range(40, 80))
    fill(root / "other", range(7, 90), begin=True)
    return Healthy(root / "whole", root / "older", root / "other", [], ())


def test_what_is_not_whole_does_not_pass(
    healthy: Healthy, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("verification.log_files.PATIENCE_S", 0.0)
    seed = first_seed()
    pick = random.Random(seed)
    backups = [parts(data) for data in (healthy.whole, healthy.older, healthy.other)]
    catalogues = [catalogue(data) for data in (healthy.whole, healthy.older, healthy.other)]
    deadline, count, outcomes = time.monotonic() + budget_s(), 0, [0] * 4
    while time.monotonic() < deadline and not (is_short() and count == SHORT):
        data = tmp_path / f"d{count}"
        shutil.copytree(healthy.whole, data)
        told = f"seed {seed}, {count}: " + ", ".join(pick.choice(DAMAGES)(data, pick, healthy) for _ in range(pick.choice([1, 1, 2])))
        code = main(["verify", "--data", str(data), "--sample", "3"])
        output = capsys.readouterr()
        outcomes[code] += 1
        whole = parts(data) in backups
        assert code == 0 or output.err, told
        assert whole or code, f"{told}: passed\n{output.out}"
        is_own = whole and catalogue(data) in (b"", catalogues[backups.index(parts(data))])
        assert not is_own or code == 0, f"{told}: {output.err}"
        shutil.rmtree(data)
        count += 1
    print(f"seed {seed}, {count} directories, by exit code {outcomes}")
    assert all(outcomes[code] for code in (0, 1, 3))
