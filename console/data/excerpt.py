"""Cuts the examples' data out of the published files: `python excerpt.py WEATHER.csv DART_DIRECTORY`. README.md here names their sources."""

import csv
import sys
from collections.abc import Iterable, Sequence
from pathlib import Path

HERE = Path(__file__).parent
WEATHER = ("temp", "humid", "wind_speed", "visib")
PERIODS = {"winter": ("2013-01-28", "2013-02-14"), "summer": ("2013-07-08", "2013-07-22")}
"""From the first day, up to and without the second."""
BUOYS = ("21401", "21413", "21418", "21419", "46404", "51407")
DAY = "2011-03-11"
NO_HEIGHT = 9999.0


def weather(path: Path, since: str, before: str) -> list[tuple[str, ...]]:
    """Values as they are written; what is missing stays empty."""
    with path.open(newline="", encoding="utf-8") as file:
        rows = [row for row in csv.DictReader(file) if since <= row["time_hour"] < before]
    return sorted((row["time_hour"], row["origin"], *("" if row[name] == "NA" else row[name] for name in WEATHER)) for row in rows)


def heights(path: Path) -> Iterable[tuple[str, ...]]:
    """A buoy's heights on the quarter hour, each once: of several at an instant the one with the lowest T code."""
    known: dict[str, tuple[int, str]] = {}
    for line in path.read_text(encoding="utf-8", errors="replace").splitlines():
        if line.startswith("#") or not line.strip():
            continue
        year, month, day, hour, minute, second, code, height = line.split()[:8]
        if f"{year}-{month}-{day}" == DAY and int(minute) % 15 == 0 and second == "00" and float(height) < NO_HEIGHT:
            at = f"{DAY}T{hour}:{minute}:00Z"
            known[at] = min(known.get(at, (int(code), height)), (int(code), height))
    return ((at, path.name[:5], height) for at, (_, height) in known.items())


def write(name: str, columns: Sequence[str], rows: Iterable[Sequence[str]]) -> None:
    with (HERE / f"{name}.csv").open("w", newline="", encoding="utf-8") as file:
        out = csv.writer(file, lineterminator="\n")
        out.writerow(columns)
        out.writerows(rows)


def main(weather_file: Path, dart: Path) -> None:
    for name, (since, before) in PERIODS.items():
        write(name, ("at", "station", *WEATHER), weather(weather_file, since, before))
    ocean = [row for buoy in BUOYS for path in dart.glob(f"{buoy}*.txt") for row in heights(path)]
    write("ocean", ("at", "buoy", "height"), sorted(ocean))


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]))
