/** The words of EP-SPARQL, for highlighting and completion; each operator over time with what it says. */

export const TEMPORAL: Record<string, string> = {
  SEQ: "the left one ends before the right one starts",
  AND: "both, in any order",
  EQUALS: "both on the same interval",
  OPTIONALSEQ: "the right one, with a left one before it if there is one",
  EQUALSOPTIONAL: "the left one, with a right one on the same interval if there is one",
  MEETS: "the right one starts where the left one ends",
  DURING: "the left one within the right one",
  STARTS: "both start together, the left one ends first",
  FINISHES: "both end together, the left one starts later",
  OVERLAPS: "the left one starts first and ends within the right one",
  PAR: "both share more than one instant",
  WITHIN: 'no longer than: WITHIN "PT1H"^^xsd:duration',
  WITHOUT: "none of these in between",
  FOR: 'WITHOUT { } FOR "PT10M"^^xsd:duration: none of these within that time afterwards',
  WINDOW: "[RANGE d STEP d] over time, or [ROWS n]",
  RANGE: "how much time a window holds",
  STEP: "how often a window reports",
  ROWS: "how many rows a window holds",
  SESSION: "a window that ends after a pause: [SESSION d]",
  RUN: "a window that the data delimits: [RUN WHILE (...) GAP d WITHIN d]",
  WHILE: "a run goes on while this holds",
  GAP: "a run ends after a pause of this length",
  UNTIL: "a run ends when this occurs; ONCE PER lets another one through",
  EACH: "a run reports with each element",
  CLOSED: "a run reports once, when it is over",
  ONCE: 'one solution of each key: ONCE PER ?key WITHIN "PT1H", or UNTIL { ... }',
  PER: "ONCE PER ?key, or (?several ?keys)",
  FIRST: "the value of the first element",
  LAST: "the value of the last element",
  PREV: "in WHILE: the value of the element before",
  STREAM: "FROM STREAM <name> reads, INTO STREAM <name> writes",
  INTO: "INTO STREAM <name> or INTO BACKGROUND <graph>: what a CONSTRUCT writes",
  BACKGROUND: "INTO BACKGROUND <graph>: derives triples that always hold, in this graph",
  PARAMETERS: "(?room ?limit): variables to which each instance of the query gives a value",
  REGISTER: "RSP-QL: begins a query with RSTREAM, ISTREAM or DSTREAM",
  RSTREAM: "RSP-QL: all solutions of the window, at each report",
  ISTREAM: "RSP-QL: the solutions that are new in the window",
  DSTREAM: "RSP-QL: the solutions that left the window",
  ON: "RSP-QL: FROM NAMED WINDOW <w> ON <stream>",
};

export const SPARQL = (
  "BASE PREFIX SELECT CONSTRUCT ASK DESCRIBE DISTINCT REDUCED WHERE FROM NAMED GRAPH OPTIONAL UNION MINUS FILTER EXISTS NOT IN BIND AS VALUES UNDEF " +
  "GROUP BY HAVING ORDER ASC DESC LIMIT OFFSET SEPARATOR"
).split(" ");

export const TIMES: Record<string, string> = {
  getDURATION: "how long the solution lasts: end minus start",
  getSTARTTIME: "when the solution starts",
  getENDTIME: "when the solution ends",
};

export const FUNCTIONS = (
  "COUNT SUM MIN MAX AVG SAMPLE GROUP_CONCAT STR LANG LANGMATCHES DATATYPE BOUND IRI URI BNODE RAND ABS CEIL FLOOR ROUND CONCAT STRLEN UCASE LCASE " +
  "ENCODE_FOR_URI CONTAINS STRSTARTS STRENDS STRBEFORE STRAFTER YEAR MONTH DAY HOURS MINUTES SECONDS TIMEZONE TZ NOW UUID STRUUID MD5 SHA1 SHA256 SHA384 " +
  "SHA512 COALESCE IF STRLANG STRDT sameTerm isIRI isURI isBLANK isLITERAL isNUMERIC REGEX SUBSTR REPLACE " +
  "TRIPLE SUBJECT PREDICATE OBJECT isTRIPLE LANGDIR hasLANG hasLANGDIR STRLANGDIR"
).split(" ");

export const PREFIXES: Record<string, string> = {
  xsd: "http://www.w3.org/2001/XMLSchema#",
  rdf: "http://www.w3.org/1999/02/22-rdf-syntax-ns#",
  rdfs: "http://www.w3.org/2000/01/rdf-schema#",
  owl: "http://www.w3.org/2002/07/owl#",
  sosa: "http://www.w3.org/ns/sosa/",
  prov: "http://www.w3.org/ns/prov#",
};

/** The operators of the ETALIS Language for Events, in small letters. */
export const EVENT_OPERATORS =
  "seq forall_seq and or par equals meets during starts finishes not cnot fnot ntimes star_times within where check timestamp event_multiply aggregate iff do";

/** What a program says about itself. */
export const EVENT_DIRECTIVES =
  "print_trigger external_trigger print_event from_stream into_stream prefix set_etalis_flag dynamic static db prolog property exceptionAlarm exceptionAlarmAbsoluteDatime datime is rule";
