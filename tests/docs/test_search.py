"""The documentation site as it is built: its pages are short, and its worker answers questions over its index, in
Node.js.

The first three hits must have an answer. A browser shows that the site's page uses this worker (tests/browser).
"""

import json
import re
import shutil
import subprocess
from pathlib import Path

import pytest

from server.cli.documentation.site import build_site

pytestmark = pytest.mark.slow

ROOT = Path(__file__).parents[2]
ASK = """
const [folder] = process.argv.slice(1);
const fs = require("node:fs"), { join } = require("node:path"), { runInNewContext } = require("node:vm");
const index = JSON.parse(fs.readFileSync(join(folder, "search.json"), "utf8"));
const workers = join(folder, "assets/javascripts/workers");
const answers = [];
const self = { postMessage: (message) => answers.push(message) };
runInNewContext(fs.readFileSync(join(workers, fs.readdirSync(workers)[0]), "utf8"), { self });
self.onmessage({ data: { type: 0, data: index } });
for (const input of JSON.parse(fs.readFileSync(0, "utf8"))) self.onmessage({ data: { type: 2, data: { input } } });
console.log(JSON.stringify(answers.slice(1).map((answer) => answer.data.items.map((hit) => index.items[hit.id].location))));
"""
"""Answers each question of a JSON array on stdin with the addresses of its hits."""

HOME_ASSISTANT, ESPER_PATTERNS = (
    "https://community.home-assistant.io/t/",
    "http://esper.codehaus.org/tutorials/solution_patterns/solution_patterns.html",
)
GITHUB = "https://github.com/"
ASKED = [
    ("alert if a threshold is breached 3 times within the past 15 minutes", f"{HOME_ASSISTANT}749253", "questions/#get-an-alert-the-third-time recipes/thresholds/#debounce"),
    ("native way to debounce or deduplicate notifications", f"{HOME_ASSISTANT}1009509", "recipes/thresholds/#debounce recipes/thresholds/#cool-down questions/#get-an-alert-once"),
    ("freezer temperature alert but not when it is falling again", f"{HOME_ASSISTANT}904146", "cookbook/home-assistant/ recipes/thresholds/#rate-of-change questions/#compare-a-value why/"),
    ("condition must be true for more than 5 minutes before action", f"{HOME_ASSISTANT}989216", "questions/#get-an-alert-when-something-has-lasted recipes/absence/#dwell"),
    ("trigger only when the value crosses the threshold", f"{HOME_ASSISTANT}142053", "recipes/thresholds/#hysteresis"),
    ("trigger when washing machine has finished", f"{HOME_ASSISTANT}251990", "questions/#get-an-alert-when-something-has-lasted"),
    ("notify when power was high for several hours and then stops", f"{HOME_ASSISTANT}696598", "questions/#get-an-alert-when-something-has-lasted"),
    ("prevent automation from running more than once per hour", f"{HOME_ASSISTANT}1009509", "questions/#get-an-alert-once recipes/thresholds/#cool-down"),
    ("zigbee2mqtt device offline last seen alert", f"{GITHUB}Koenkk/zigbee2mqtt/issues/15952", "cookbook/home-assistant/ recipes/absence/#heartbeat questions/#get-an-alert-when-a-sensor-stops"),
    ("send alert if the door is left open", "https://community.openhab.org/t/135309", "questions/#get-an-alert-when-something-has-lasted"),
    ("send an alert if an event does not arrive for 5 sec", f"{GITHUB}siddhi-io/siddhi/issues/1253", "questions/#get-an-alert-when-a-sensor-stops recipes/absence/#heartbeat"),
    ("how long are events kept if we don't set within", f"{GITHUB}siddhi-io/siddhi/issues/1782", "questions/#limit-the-memory concepts/partial-matches/ language/state/"),
    ("event a followed by event b within 60 seconds", f"{GITHUB}siddhi-io/siddhi/issues/1479", "language/time/ recipes/patterns/#funnel from-esper/#followed-by recipes/patterns/#a-card"),
    ("count pattern within a time gap", f"{GITHUB}siddhi-io/siddhi/issues/748", "questions/#get-an-alert-the-third-time language/groups/#runs-and-sessions match-recognize/"),
    ("pattern within a partition, per device", f"{GITHUB}siddhi-io/siddhi/issues/802", "recipes/patterns/#correlation recipes/thresholds/ language/patterns/ concepts/partial-matches/ from-esper/"),
    ("how to trigger when no event occurs during 10 seconds", "https://stackoverflow.com/questions/50509094", "questions/#get-an-alert-when-a-sensor-stops recipes/absence/#heartbeat"),
    ("how do I measure the rate of arrival of events", ESPER_PATTERNS, "recipes/statistics/#rate-of-errors questions/#get-an-alert-the-third-time operations/streams/#look-into"),
    ("how do I correlate events arriving out of order", ESPER_PATTERNS, "questions/#accept-events-that-arrive-late recipes/patterns/#correlation"),
    ("how do I compare against previous events", ESPER_PATTERNS, "questions/#compare-a-value"),
    ("use results of one statement in another statement", ESPER_PATTERNS, "questions/#use-the-results recipes/patterns/#a-rule-that-other-queries-read"),
    ("how do I reduce the rate of event output", ESPER_PATTERNS, "recipes/thresholds/#cool-down questions/#get-an-alert-once"),
    ("memory grows when there are too many group by groups", f"{GITHUB}espertechinc/esper/issues/137", "questions/#limit-the-memory"),
    ("order created but not paid in 10 minutes", "https://issues.apache.org/jira/browse/FLINK-26941", "recipes/absence/#missing-pair"),
    ("notFollowedBy failure between start and termination", "https://www.mail-archive.com/user@flink.apache.org/msg08239.html", "recipes/absence/#an-error-after language/time/"),
    ("CEP pattern gives no output", f"{GITHUB}apache/flink/pull/11009", "diagnosis/ questions/#find-out-why"),
    ("after match skip strategy", f"{GITHUB}apache/flink/pull/4331", "questions/#choose-which language/time/#consumption-policies match-recognize/"),
    ("timeout of partial matches", f"{GITHUB}apache/flink/pull/2041", "questions/#limit-the-memory concepts/partial-matches/ questions/#get-an-alert-when-a-sensor-stops"),
    ("change rules dynamically without restarting the job", f"{GITHUB}apache/flink/pull/23025", "questions/#change-a-query-that-runs"),
    ("how are late events handled", "https://stackoverflow.com/questions/37844871", "questions/#accept-events-that-arrive-late concepts/time/"),
    ("failed logins followed by a successful login", "https://www.besthub.dev/articles/how-to-detect-and-block-3-failed-logins-within-10-seconds-using-mysql-and-redis-0573e1213d09", "recipes/patterns/#correlation"),
    ("filter duplicate events from a kafka topic", "https://developer.confluent.io/confluent-tutorials/deduplication-windowed/ksql", "questions/#ignore-duplicates recipes/statistics/#each-value-once"),
    ("average temperature over sliding window", "https://developer.confluent.io/confluent-tutorials/sliding-windows/kstreams", "questions/#compute-an-average recipes/statistics/#moving-average"),
    ("session window does not close", f"{GITHUB}risingwavelabs/risingwave/issues/20834", "questions/#group-events-by-session recipes/statistics/#sessions language/groups/#runs-and-sessions"),
    ("5 minute aggregation window to identify anomalies", f"{GITHUB}MaterializeInc/materialize/issues/213", "recipes/statistics/#outliers recipes/statistics/#different"),
    ("join stream with static data", f"{GITHUB}streamreasoning/rsp4j/issues/20", "questions/#join-a-stream"),
    ("tuple window, last n events", f"{GITHUB}streamreasoning/rsp4j/issues/23", "language/groups/#groups-windows-and-order recipes/statistics/#outliers"),
    ("federated query to an endpoint with authorization", f"{GITHUB}streamreasoning/CSPARQL-engine/issues/8", "questions/#ask-another-sparql-endpoint"),
    ("csv with semicolon separator and comma as decimal point", f"{GITHUB}nyetwurk/ecuxplot/issues/14", "questions/#read-local-times mappings/"),
    ("daylight saving error parsing timestamp csv", f"{GITHUB}PlotJuggler/PlotJuggler/issues/1110", "questions/#read-local-times mappings/"),
    ("aggregate by id until the sum passes 20000", f"{GITHUB}carloszimm/node-red-contrib-cep/issues/1", "questions/#get-an-alert-the-third-time"),
]  # fmt: skip
"""What people asked in public about other engines, where they did, and the beginnings of addresses that answer it.

The questions were chosen before anybody looked at their hits.
"""
EARLIER = {
    "events arrive up to 5 minutes late, what do I set?": "concepts/time/ questions/#accept-events-that-arrive-late",
    "alert when a sensor stops sending": "questions/#get-an-alert-when-a-sensor-stops-sending",
    "send solutions to a webhook": "operations/webhooks/ questions/#be-told-of-solutions",
    "run a query over a CSV file without a server": "cookbook/csv/ questions/#run-a-query-over-a-file",
    "give a colleague read-only access": "questions/#give-a-colleague-access-to-read-only",
    "why does my query find nothing": "diagnosis/ questions/#find-out-why",
    "the disk fills up, delete old data": "questions/#delete-old-data",
    "read events from Kafka": "cookbook/kafka/",
    "change a running query without missing solutions": "questions/#change-a-query-that-runs",
    "average over the last hour": "questions/#compute-an-average-over-the-last-hour",
    "late events are dropped": "questions/#accept-events-that-arrive-late",
    "detect the absence of an event": "questions/#get-an-alert-when-a-sensor-stops-sending",
    "update a running query": "questions/#change-a-query-that-runs",
    "state grows until out of memory": "questions/#limit-the-memory",
    "join a stream with static background knowledge": "questions/#join-a-stream-with-reference-data",
    "use a column as the timestamp": "questions/#use-a-column-of-csv-as-the-timestamp",
    "no output because the watermark does not advance": "questions/#find-out-why-a-query-finds-nothing",
    "exactly once, duplicates after a restart": "questions/#receive-each-solution-once",
    "session window with an inactivity gap": "questions/#group-events-by-session",
    "restore a backup on another server": "questions/#move-a-server-or-restore-a-backup",
    "basic authentication with roles": "questions/#give-a-colleague-access-to-read-only",
    "stream the results of a query to a browser": "questions/#show-results-in-a-browser cookbook/web-page/",
    "moving average": "recipes/statistics/#moving-average",
    "hysteresis": "recipes/thresholds/#hysteresis",
    "websocket javascript": "cookbook/web-page/ questions/#show-results-in-a-browser",
    "why is my query empty": "diagnosis/ questions/#find-out-why",
    "hysteresys": "recipes/thresholds/#hysteresis",
    "heartb": "recipes/absence/#heartbeat questions/#get-an-alert-when-a-sensor-stops-sending",
}
"""Questions of newcomers and of earlier tests, a slip, and a word that is being typed."""
FIRST = 3


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("docs") / "site"
    build_site(ROOT, folder)
    return folder


def test_each_page_is_read_in_twelve_minutes(site: Path) -> None:
    times = {
        page.relative_to(site).as_posix(): re.findall(r"</h1><p><small>[\d,]+ words, (\d+) minutes?<", page.read_text("utf-8"))
        for page in site.rglob("*.html")
    }
    assert [page for page, found in times.items() if len(found) != 1] == []
    read = {page: found for page, found in times.items() if not page.startswith("reference/http/")}  # where routes are looked up, one by one
    assert {page: found for page, found in read.items() if int(found[0]) > 12} == {}


def ask(site: Path, questions: list[str]) -> list[list[str]]:
    """Return the addresses of each question's hits, the best first."""
    node = shutil.which("node")
    assert node is not None
    done = subprocess.run([node, "-e", ASK, str(site)], input=json.dumps(questions), capture_output=True, text=True, check=True)
    found: list[list[str]] = json.loads(done.stdout)
    return found


def missed(site: Path, answers: dict[str, str]) -> dict[str, list[str]]:
    """Return the questions without an answer among the first hits, with these hits."""
    found = dict(zip(answers, ask(site, [*answers]), strict=True))
    for question, hits in found.items():
        print(f"{question}\n  " + "\n  ".join(hits[:FIRST]))
    return {
        question: hits[:FIRST]
        for question, hits in found.items()
        if not any(hit.startswith(tuple(answers[question].split())) for hit in hits[:FIRST])
    }


def test_forty_questions_of_others_are_answered_by_the_first_three_hits(site: Path) -> None:
    assert len({question for question, _, _ in ASKED}) == 40
    assert missed(site, {question: answers for question, _, answers in ASKED}) == {}


def test_earlier_questions_are_answered_by_the_first_three_hits(site: Path) -> None:
    assert missed(site, EARLIER) == {}


def test_answers_are_addresses_of_the_site(site: Path) -> None:
    known = [item["location"] for item in json.loads((site / "search.json").read_text(encoding="utf-8"))["items"]]
    answers = {answer for _, _, text in ASKED for answer in text.split()} | {answer for text in EARLIER.values() for answer in text.split()}
    assert [answer for answer in sorted(answers) if not any(location.startswith(answer) for location in known)] == []


def test_nothing_is_found_for_no_words(site: Path) -> None:
    assert ask(site, ["", "the of a", "qzxwvk"]) == [[], [], []]
