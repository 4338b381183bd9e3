"""`--background` and `--entailment`: of serve, which keeps them over restarts, and of replay."""

import asyncio
import gc
from contextlib import closing
from pathlib import Path

import httpx
import pytest

from engine.background.fact_store import FactIndex
from engine.background.reasoning.owl_rl import derived_triples
from engine.messages import ADD, DROP, OWL_RL, REPLACE, Entail, Facts, Register
from engine.validation import validate
from engine.validation.validate import background_of
from pipeline.log import LogWriter
from pipeline.log.catalog import BackgroundGraph, Registration
from pipeline.replay.query_files import SourceFault
from pipeline.runners.engine_host import EngineHost
from server.app import create_app
from server.background.manager import BackgroundManager, Change
from server.background.startup import load_background, read_background
from server.cli.commands import main
from server.connectors.registry import ConnectorRegistry
from server.http.auth import Gate
from server.http.problem_details import Fault
from server.process import clock
from server.service import Service, running
from server.settings import Settings, SettingsError
from server.webhook_delivery.delivery import Deliveries

EX = "http://example.org/"
SAME = "http://www.w3.org/2002/07/owl#sameAs"
LINE = f"<{EX}s> <{EX}in> <{EX}hall> ."
EVENT = f'{{"s":"<{EX}s>","p":"<{EX}value>","o":"<{EX}t>","at":"2026-01-01T00:00:01Z"}}\n'
FILES = {
    "a.ttl": f"@prefix : <{EX}> . :s :in :hall .",
    "b.rdf": f'<rdf:RDF xmlns:rdf="http://www.w3.org/1999/02/22-rdf-syntax-ns#" xmlns:e="{EX}">'
    f'<rdf:Description rdf:about="{EX}s"><e:in rdf:resource="{EX}hall"/></rdf:Description></rdf:RDF>',
    "c.nt": LINE,
    "d.trig": f"<{EX}g> {{ {LINE} }}",
    "e.nq": LINE[:-1] + f"<{EX}g> .",
    "f.jsonld": f'{{"@id":"{EX}s","{EX}in":{{"@id":"{EX}hall"}}}}',
}


def bring(settings: Settings, log: LogWriter) -> None:
    load_background(settings, read_background(settings), log)


def started(data: Path, *background: str, entailment: str = "rdfs") -> tuple[int, dict[str, list[str]], str]:
    """The log's end, the graphs and the regime after a start with these."""
    with LogWriter(data, clock) as log:
        bring(Settings(data=data, background=background, entailment=entailment), log)
        knowledge = BackgroundManager(log)
        graphs = {name: list(knowledge.read_lines(graph)) for name, graph in log.catalogue.graphs.items()}
        knowledge.close()
        return log.head(), graphs, log.catalogue.entailment


def test_a_start_beside_a_query_that_this_version_does_not_take(tmp_path: Path) -> None:
    """The log may have such a query, and no solution log beside it says yet that it failed."""
    with LogWriter(tmp_path / "data", clock) as log:
        log.append(lambda offset: Register(offset, "broken", "CONSTRUCT { ?s ?p } INTO STREAM <x:b> WHERE { ?s ?p }"))
    (tmp_path / "a.nt").write_text(LINE)
    assert started(tmp_path / "data", str(tmp_path / "a.nt"))[1] == {"": [LINE]}


def test_a_start_brings_graphs_into_the_log_once(tmp_path: Path) -> None:
    (tmp_path / "a.ttl").write_text(FILES["a.ttl"])
    (tmp_path / "b.ttl").write_text("[] <urn:p> [] .")
    data, files = tmp_path / "data", (str(tmp_path / "a.ttl"), f"{EX}g={tmp_path / 'b.ttl'}")
    first = started(data, *files)
    assert first[0] == 2
    assert (first[1][""], len(first[1][f"{EX}g"]), first[2]) == ([LINE], 1, "rdfs")
    assert started(data, *files) == first, "a restart finds what it wants"
    (tmp_path / "b.ttl").write_text("<urn:a> <urn:p> <urn:b> .")
    head, graphs, regime = started(data, *files, entailment="owl-rl")
    assert (head, graphs, regime) == (4, {"": [LINE], f"{EX}g": ["<urn:a> <urn:p> <urn:b> ."]}, "owl-rl")
    assert started(data)[1] == graphs, "what is not named stays"


@pytest.mark.parametrize("name", FILES)
def test_each_syntax_is_read_by_its_suffix(tmp_path: Path, name: str) -> None:
    (tmp_path / name).write_text(FILES[name])
    head, graphs, _ = started(tmp_path / "data", str(tmp_path / name))
    assert (head, [*graphs.values()]) == (1, [[LINE]])


def test_files_of_one_graph_are_together(tmp_path: Path) -> None:
    for name in ("a.ttl", "c.nt", "f.jsonld"):
        (tmp_path / name).write_text(FILES[name].replace("hall", name[0]))
    _, graphs, _ = started(tmp_path / "data", *(f"urn:g={tmp_path / name}" for name in ("a.ttl", "c.nt", "f.jsonld")))
    assert graphs == {"urn:g": [LINE.replace("hall", letter) for letter in "acf"]}
    _, graphs, _ = started(tmp_path / "other", f"plain={tmp_path / 'a.ttl'}")
    assert graphs == {"urn:epsparql:graph:plain": [LINE.replace("hall", "a")]}


@pytest.mark.parametrize(
    ("argument", "text", "message"),
    [
        ("{}/x.ttl", "<urn:a> <urn:b>\n<urn:c>", r"x.ttl:2:8: "),
        ("{}/x.txt", "", "no format of background is known by the suffix '.txt'"),
        ("no iri={}/x.ttl", "", "'no iri' cannot name a graph"),
        ("{}/none.ttl", "", "No such file"),
    ],
)
def test_a_file_that_cannot_be_read_changes_nothing(tmp_path: Path, argument: str, text: str, message: str) -> None:
    for name in ("x.ttl", "x.txt"):
        (tmp_path / name).write_text(text)
    with LogWriter(tmp_path / "data", clock) as log:
        with pytest.raises(SourceFault, match=message):
            bring(Settings(data=tmp_path / "data", background=(argument.format(tmp_path),), entailment="owl-rl"), log)
        assert log.head() == 0


def test_a_background_under_which_a_rule_would_deny_itself_is_no_start(tmp_path: Path) -> None:
    rule = f"PREFIX : <{EX}> CONSTRUCT {{ ?s :A ?a }} WHERE {{ {{ ?s :C ?a FILTER NOT EXISTS {{ ?s :A ?z }} }} SEQ {{ ?s :B ?b }} }}"
    (tmp_path / "a.ttl").write_text(f"<{EX}s> <{EX}B> <{EX}o> .")
    with LogWriter(tmp_path / "data", clock) as log:
        log.append(lambda offset: Register(offset, "rule", rule))
        with pytest.raises(SettingsError, match="a rule would read its own negation"):
            bring(Settings(data=tmp_path / "data", background=(str(tmp_path / "a.ttl"),)), log)
        assert log.catalogue.graphs == {}


def test_the_server_tells_of_a_fault_and_does_not_start(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "a.ttl").write_text("<urn:a> .")
    arguments = ["serve", "--port", "0", "--runner", "inprocess", "--data", str(tmp_path / "data"), "--background", str(tmp_path / "a.ttl")]
    assert main(arguments) == 2
    assert "a.ttl:1:9: " in capsys.readouterr().err


class TestReplayOverBackground:
    @pytest.mark.parametrize(("regime", "solutions"), [("rdfs", 0), ("owl-rl", 1)])
    def test_a_regime(self, tmp_path: Path, capsys: pytest.CaptureFixture[str], regime: str, solutions: int) -> None:
        text = f"<{EX}value> <http://www.w3.org/2002/07/owl#inverseOf> <{EX}of> ."
        assert self.replayed(tmp_path, "a.ttl", text, "?t :of ?s", "--entailment", regime) == 0
        assert len(capsys.readouterr().out.splitlines()) == solutions

    def test_a_fault(self, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
        assert (
            self.replayed(
                tmp_path, "a.rdf", '<rdf:RDF xmlns:rdf="http://www.w3.org/1999/02/22-rdf-syntax-ns#">\n<rdf:Description></rdf:RDF>', "?s :in :hall"
            )
            == 2
        )
        assert "a.rdf:2:20: " in capsys.readouterr().err

    def replayed(self, folder: Path, name: str, background: str, pattern: str, *more: str) -> int:
        (folder / "q.rq").write_text(f"PREFIX : <{EX}> SELECT * WHERE {{ ?s :value ?v . {pattern} }}")
        (folder / "s.ndjson").write_text(EVENT)
        (folder / name).write_text(background)
        files = {"--query": "q.rq", "--stream": "s.ndjson", "--background": name}
        return main(["replay", *(part for flag, file in files.items() for part in (flag, str(folder / file))), *more])


def test_a_graph_that_is_empty_is_there(tmp_path: Path) -> None:
    (tmp_path / "a.ttl").write_text("")
    with LogWriter(tmp_path / "data", clock) as log:
        bring(Settings(data=tmp_path / "data", background=(f"urn:g={tmp_path / 'a.ttl'}",)), log)
        assert log.catalogue.graphs == {"urn:g": BackgroundGraph("urn:g", (0,), 0)}


def test_counting_the_triples_of_a_graph_keeps_only_its_present_state(tmp_path: Path) -> None:
    with LogWriter(tmp_path / "data", clock) as log, closing(BackgroundManager(log)) as knowledge:
        for number in range(100):
            knowledge.change_graph(Change("urn:g", "".join(f"<urn:a> <urn:b> <urn:{each}> .\n" for each in range(number + 1)), REPLACE), [])
            assert knowledge.count_triples(log.catalogue.graphs["urn:g"]) == number + 1
            assert knowledge.count_triples(log.catalogue.graphs["urn:g"]) == number + 1
        kept = [found for found in gc.get_objects() if type(found) is BackgroundGraph and found.name == "urn:g"]
        assert len(kept) < 10


def test_a_background_of_which_owl_would_entail_too_much(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(derived_triples, "MOST", 1_000)
    equal = "".join(f"<urn:{k}> <http://www.w3.org/2002/07/owl#sameAs> <urn:{k + 1}> .\n" for k in range(100))
    with LogWriter(tmp_path / "data", clock) as log, closing(BackgroundManager(log)) as knowledge:
        knowledge.set_entailment("owl-rl", [])
        knowledge.change_graph(Change("urn:few", equal[:500].rpartition("\n")[0] + "\n", "add"), [])
        with pytest.raises(Fault) as caught:
            knowledge.change_graph(Change("urn:many", equal, "add"), [])
        assert (caught.value.problem.status, caught.value.problem.code) == (422, "entailment-limit")
        assert "more than 1,000 triples" in caught.value.problem.detail
        assert [*log.catalogue.graphs] == ["urn:few"], "it is not in the log"
        knowledge.set_entailment("rdfs", [])
        knowledge.change_graph(Change("urn:many", equal, "add"), [])
        with pytest.raises(Fault):
            knowledge.set_entailment("owl-rl", [])


def test_a_change_is_checked_from_the_background_that_was_checked_before(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(derived_triples, "MOST", 1_000)
    begun: list[str] = []

    def noted(nquads: str, regime: str) -> FactIndex:
        begun.append(nquads)
        return background_of(nquads, regime)

    monkeypatch.setattr(validate, "background_of", noted)
    equal = [f"<urn:{k}> <{SAME}> <urn:{k + 1}> .\n" for k in range(100)]
    with LogWriter(tmp_path / "data", clock) as log, closing(BackgroundManager(log)) as knowledge:
        knowledge.set_entailment("owl-rl", [])
        for change in (Change("urn:g", "".join(equal[:20]), ADD), Change("urn:h", "".join(equal[20:25]), ADD), Change("urn:g", equal[0], REPLACE)):
            knowledge.change_graph(change, [])
        with pytest.raises(Fault, match="more than 1,000 triples"):
            knowledge.change_graph(Change("urn:g", "".join(equal[1:]), ADD), [])
        knowledge.change_graph(Change("urn:g", "".join(equal[1:20]), ADD), [])
        with pytest.raises(Fault, match="more than 1,000 triples"):
            knowledge.change_graph(Change("urn:h", "".join(equal[25:40]), ADD), [])
        knowledge.change_graph(Change("urn:h", "", DROP), [])
        assert len(begun) == 1, "the others went on from it"
        log.append(lambda offset: Facts(offset, "urn:h", "".join(equal[20:25])))  # by another way
        knowledge.change_graph(Change("urn:i", equal[50], ADD), [])
        assert len(begun) == 2
        assert {*begun[1].splitlines()} >= {line[:-3] + " <urn:h> ." for line in equal[20:25]}


def test_a_log_of_which_owl_would_entail_too_much_says_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture) -> None:
    """Another version may have written such a log."""
    monkeypatch.setattr(derived_triples, "MOST", 1_000)
    equal = "".join(f"<urn:{k}> <{SAME}> <urn:{k + 1}> .\n" for k in range(100))
    with LogWriter(tmp_path, clock) as log:
        log.append(lambda offset: Entail(offset, OWL_RL))
        log.append(lambda offset: Facts(offset, "urn:many", equal))
        limited, figures = _told(tmp_path, log)
        assert (
            limited == "OWL 2 RL entails more than 1,000 triples beyond RDFS; the last one is of the predicate <http://www.w3.org/2002/07/owl#sameAs>"
        )
        assert "epsparql_entailment_limited 1.0" in figures
        assert [record.getMessage() for record in caplog.records] == [f"not all that follows from the background is applied: {limited}"]
        log.append(lambda offset: Facts(offset, "urn:many", "", DROP))
        limited, figures = _told(tmp_path, log)
        assert limited is None
        assert "epsparql_entailment_limited 0.0" in figures
        assert len(caplog.records) == 1


def _told(data: Path, log: LogWriter) -> tuple[str | None, str]:
    """Return what GET /ontologies and the metrics say, when the runner has read the log."""
    with closing(EngineHost(data, reader=log.reader())) as host:
        assert [*host.run(0, log.head())]
    return asyncio.run(_asked(data, log))


async def _asked(data: Path, log: LogWriter) -> tuple[str | None, str]:
    settings, gate = Settings(data=data, runner="inprocess"), Gate(None)
    app = create_app(lambda: running(settings, clock, gate, log))
    service = app.state.service = Service(settings, clock, gate, log)
    app.state.deliveries, app.state.connectors = Deliveries(service), ConnectorRegistry(service, "http://localhost", None)
    async with httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url="http://localhost") as client:
        found = (await client.get("/ontologies")).json()["limited"], (await client.get("/metrics")).text
    service.close()
    return found


def test_static_rules_that_were_only_checked_are_forgotten(tmp_path: Path) -> None:
    with LogWriter(tmp_path / "data", clock) as log, closing(BackgroundManager(log)) as knowledge:
        knowledge.change_graph(Change("urn:g", "<urn:a> <urn:p> <urn:b> .\n", ADD), [])
        for number in range(5):
            text = f"CONSTRUCT {{ ?s <urn:made> {number} }} INTO BACKGROUND <urn:g> WHERE {{ ?s <urn:p> <urn:b> }}"
            knowledge.check_rule("rule", text, "", [])
        assert [key[1] for key in knowledge._numbers] == [text]
        rule = Registration(1, "rule", text, default_graph="")
        assert any(f'<urn:made> "{number}"' in line for line in knowledge.read_derived("urn:g", [rule]))
