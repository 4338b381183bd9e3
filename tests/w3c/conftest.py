"""The table of the W3C suites, at the end of a run that had any of their tests."""

from collections import Counter

import pytest


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    ran: Counter[tuple[str, str]] = Counter()
    passed: Counter[tuple[str, str]] = Counter()
    for reports in terminalreporter.stats.values():
        for report in reports:
            for name, value in report.user_properties if isinstance(report, pytest.TestReport) and report.when == "call" else ():
                if name == "w3c":
                    suite, group, good = str(value).split()
                    ran[suite, group] += 1
                    passed[suite, group] += good == "passed"
    if not ran:
        return
    terminalreporter.section("W3C SPARQL test suites: passed of all")
    for suite, group in sorted(ran):
        terminalreporter.write_line(f"{suite:<10}{group:<26}{passed[suite, group]:>4}{ran[suite, group]:>5}")
    terminalreporter.write_line(f"{'all':<36}{passed.total():>4}{ran.total():>5}")
