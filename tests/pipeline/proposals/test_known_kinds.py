"""Files of public kinds get the mapping that their readers mean: where rows are, their time and subject, and triples
of the first row.
"""

import json
from typing import Any

import pytest

from epsparql.events.media_types import CSV, JSON
from pipeline.formats.batches.timestamps import instant
from pipeline.proposals.proposal import Choices, propose_mapping

CHOICES = Choices(instant("2026-11-29T12:00:00Z"))
AT = "2026-03-01T08:00:00Z"
KINDS = [
    pytest.param(
        "# Timestamp,Type of mobile,MMSI,SOG,IMO\n31/01/2026 00:00:00,Class A,219000001,10.4,9123456\n31/01/2026 00:00:10,Base,2190071,,Unknown\n",
        {"time": "# Timestamp", "time_format": "%d/%m/%Y %H:%M:%S", "subject": "MMSI/{MMSI}"}, {'SOG "10.4"^^xsd:decimal', 'IMO "9123456"^^xsd:integer'}, id="AIS",
    ),
    pytest.param(
        "SendingTime,MsgType,Symbol,Price\n20260301-08:00:00.123,D,EURUSD,1.0921\n20260301-08:00:01.456,8,EURUSD,1.0922\n",
        {"time": "SendingTime", "time_format": "%Y%m%d-%H:%M:%S.%f", "subject": "Symbol/{Symbol}"}, {'Price "1.0921"^^xsd:decimal'}, id="FIX",
    ),
    pytest.param(
        "STATIONS_ID;MESS_DATUM;TT_TU\n  5906;2026010100;  1.5\n  5906;2026010101;-2\n",
        {"time": "MESS_DATUM", "time_format": "%Y%m%d%H", "subject": "STATIONS_ID/{STATIONS_ID}"}, {'TT_TU "1.5"^^xsd:decimal'}, id="DWD",
    ),
    pytest.param(
        "Zeitstempel;Slave;Wert;Einheit\n2026-03-01 08:00:00,123;1;21,5;°C\n2026-03-01 08:00:05,123;2;NaN;°C\n",
        {"time": "Zeitstempel", "time_format": "%Y-%m-%d %H:%M:%S,%f", "subject": "Slave/{Slave}"}, {'Wert "21.5"^^xsd:decimal'}, id="Modbus logger",
    ),
    pytest.param(
        f"#group,false,true,true\n#datatype,long,dateTime:RFC3339,double,string\n,result,_time,_value,host\n,,{AT},21.5,h1\n,,{AT},22,h2\n".replace("#group", "#group,x"),
        {"skip": 2, "time": "_time", "subject": "host/{host}"}, {'value "21.5"^^xsd:decimal'}, id="InfluxDB: annotations above the header",
    ),
    pytest.param("at,station,humid,temp\n2026-03-01 08:00,EWR,59.37,39.02\n2026-03-01 09:00,EWR,61.63,39\n", {"subject": "station/{station}"}, {'humid "59.37"^^xsd:decimal'}, id="humid is no identifier"),
    pytest.param(
        [{"payload": {"after": {"id": 7, "temp": 21.5}, "source": {"name": "srv", "txId": 5, "ts_ms": 1772352000000}, "op": "c", "ts_ms": 1772352000123}, "schema": {"name": "x"}}],
        {"time": "payload.ts_ms", "time_format": "epoch_ms", "subject": "id/{payload.after.id}"}, {'temp "21.5"^^xsd:decimal', 'op "c"'}, id="Debezium: the source is not the thing",
    ),
    pytest.param(
        {"id": "urn:n:1", "notifiedAt": AT, "data": [{"id": "urn:room:1", "type": "Room", "t": {"value": 21.5, "observedAt": AT}}, {"id": "urn:room:2", "type": "Room", "t": {"value": 22, "observedAt": AT}}]},
        {"items": "data[*]", "time": "t.observedAt", "subject": "{+id}"}, {'value "21.5"^^xsd:decimal', 'document_id "urn:n:1"'}, id="NGSI-LD notification",
    ),
    pytest.param(
        {"resourceLogs": [{"scopeLogs": [{"scope": {"name": "lib"}, "logRecords": [{"observedTimeUnixNano": "1772352060300000000", "timeUnixNano": "1772352000000000000", "body": {"stringValue": "x"}}]}]}]},
        {"items": "resourceLogs[*].scopeLogs[*].logRecords[*]", "time": "timeUnixNano", "time_format": "epoch_ns"}, {'stringValue "x"'}, id="OTLP logs: the record's time, not the collector's",
    ),
    pytest.param(
        {"resourceMetrics": [{"scopeMetrics": [{"scope": {"name": "lib"}, "metrics": [{"name": "m", "unit": "1", "gauge": {"dataPoints": [{"timeUnixNano": "1772352000000000000", "asDouble": 5}]}}]}]}]},
        {"time": "timeUnixNano", "subject": "name/{$.resourceMetrics[*].scopeMetrics[*].metrics[*].name}"}, {'unit "1"', 'asDouble "5"^^xsd:integer'}, id="OTLP metrics: no subject of units",
    ),
    pytest.param(
        {"data": {"result": [{"metric": {"__name__": "up", "job": "p", "instance": "h:1"}, "values": [[1772352000.5, "1"], [1772352015.5, "0.5"]]}]}},
        {"items": "data.result[*].values[*]", "time": "[0]", "time_format": "epoch_s", "subject": "instance/{$.data.result[*].metric.instance}"}, {'value_1 "1"^^xsd:decimal'}, id="Prometheus range",
    ),
    pytest.param(
        {"data": {"result": [{"metric": {"__name__": "up", "instance": h}, "value": [1772352000.5, "1"]} for h in ("h:1", "h:2")]}},
        {"items": "data.result[*]", "time": "value[0]", "subject": "instance/{metric.instance}"}, {'name "up"', 'value_1 "1"^^xsd:decimal'}, id="Prometheus instant",
    ),
    pytest.param(
        [[1772352000000, "0.0163", "0.8", "0.0157", "0.0157", "148.1", 1772352059999, "24.1", 308, "17.8", "28.4", "0"]],
        {"time": "[0]", "time_format": "epoch_ms"}, {'value_1 "0.0163"^^xsd:decimal', 'value_8 "308"^^xsd:integer'}, id="Binance klines: rows without names",
    ),
    pytest.param(
        {"header": {"timestamp": 1772352060}, "entity": [{"id": v, "vehicle": {"trip": {"routeId": "R1", "startDate": "20260301"}, "position": {"latitude": 48.2}, "timestamp": "1772352000"}} for v in ("v1", "v2")]},
        {"items": "entity[*]", "time": "vehicle.timestamp", "subject": "id/{id}"}, {'routeId "R1"', 'latitude "48.2"^^xsd:decimal', 'header_timestamp "1772352060"^^xsd:integer'}, id="GTFS-RT: a vehicle, not its route",
    ),
    pytest.param(
        {"results": [{"locationId": n, "entity": "Government", "sensorType": "reference", "value": 11.6, "date": {"utc": AT}} for n in (1, 2)], "meta": {"name": "api"}},
        {"items": "results[*]", "time": "date.utc", "subject": "locationId/{locationId}"}, {'sensorType "reference"', 'value "11.6"^^xsd:decimal'}, id="OpenAQ: a type is no identifier",
    ),
    pytest.param(
        {"cod": "200", "list": [{"dt": 1772352000, "main": {"temp": 281.5}}, {"dt": 1772362800, "main": {"temp": 282}}], "city": {"id": 7, "name": "Vienna", "sunrise": 1772340000, "sunset": 1772380000}},
        {"items": "list[*]", "time": "dt", "subject": "id/{$.city.id}"}, {'temp "281.5"^^xsd:decimal', 'name "Vienna"'}, id="OpenWeather: sunrise is not the document's time",
    ),
    pytest.param(
        [{"__REALTIME_TIMESTAMP": f"177235200{n}000000", "__MONOTONIC_TIMESTAMP": "123456", "_BOOT_ID": "b", "_HOSTNAME": "h", "MESSAGE": "m"} for n in (0, 1)],
        {"time": "__REALTIME_TIMESTAMP", "time_format": "epoch_us", "subject": "HOSTNAME/{_HOSTNAME}"}, {'MESSAGE "m"'}, id="journald: a host, not its boot",
    ),
    pytest.param(
        {"time": "2026-03-01T08:00:00.433757935+00:00", "deduplicationId": "3a", "devAddr": "00189440", "deviceInfo": {"tenantId": "5", "applicationId": "7", "devEui": "0101"}, "object": {"temperature": 21.5}},
        {"time": "time", "round": "microsecond", "subject": "devEui/{deviceInfo.devEui}"}, {'temperature "21.5"^^xsd:decimal'}, id="ChirpStack: a device, not its application or address",
    ),
]  # fmt: skip


@pytest.mark.parametrize(("body", "words", "triples"), KINDS)
def test_a_kind(body: Any, words: dict[str, Any], triples: set[str]) -> None:
    content, media_type = (body, CSV) if isinstance(body, str) else (json.dumps(body), JSON)
    found = propose_mapping(content.encode(), media_type, "http://example.org/", CHOICES)
    assert {word: found.document.get(word) for word in words} == words
    assert {triple.partition(" :")[2].partition(" .")[0] for triple in found.preview[0]} >= triples
