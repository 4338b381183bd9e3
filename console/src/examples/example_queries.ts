/** The gallery: queries over real data that ship with the console (data/README.md names their sources). */

import ocean from "../../data/ocean.csv?url";
import summer from "../../data/summer.csv?url";
import winter from "../../data/winter.csv?url";

export interface Example {
  id: string;
  title: string;
  tells: string;
  source: string;
  stream: string;
  /** A CSV whose first columns are the time and the subject; each further one is a predicate. */
  data: string;
  subject: string;
  vocabulary: string;
  /** In order of registration, rules before what reads them; the last one is shown. */
  queries: [name: string, text: string][];
}

const WEATHER = "http://example.org/weather#";
const OCEAN = "http://example.org/ocean#";
const prefixes = (vocabulary: string) => `PREFIX : <${vocabulary}>\nPREFIX xsd: <http://www.w3.org/2001/XMLSchema#>\n`;
const inWinter = { stream: "winter", data: winter, subject: "http://example.org/station/", vocabulary: WEATHER };

const NO_SIGHT = `{ { ?st :wind_speed ?s } EQUALS { ?st :visib ?v } FILTER(?s >= 15 && ?v <= 0.25) }`;

export const EXAMPLES: readonly Example[] = [
  {
    id: "wind",
    title: "Rising wind",
    tells: "A wind reading, and within three hours a later one of the same airport that is at least 10 % stronger.",
    source: "New York's airports, 28 January – 13 February 2013",
    ...inWinter,
    queries: [
      [
        "wind",
        `${prefixes(WEATHER)}
SELECT ?st ?a ?b FROM STREAM <winter>
WHERE {
  { ?st :wind_speed ?a } SEQ { ?st :wind_speed ?b } WITHIN "PT3H"^^xsd:duration
  FILTER(?a > 0 && ?b >= ?a * 1.1)
}
`,
      ],
    ],
  },
  {
    id: "blizzard",
    title: "Blizzard",
    tells: "Rules that feed each other count consecutive hours of strong wind and low visibility; four hours are a blizzard.",
    source: "New York's airports, 28 January – 13 February 2013",
    ...inWinter,
    queries: [
      [
        "settling-1",
        `${prefixes(WEATHER)}
# an hour of strong wind and hardly any sight
CONSTRUCT { ?st :settling 1 } INTO STREAM <winter> FROM STREAM <winter>
WHERE ${NO_SIGHT}
`,
      ],
      [
        "settling-n",
        `${prefixes(WEATHER)}
# and one hour more: this rule feeds itself
CONSTRUCT { ?st :settling ?c } INTO STREAM <winter> FROM STREAM <winter>
WHERE {
  { ?st :settling ?n } SEQ
    ${NO_SIGHT}
  WITHIN "PT6H"^^xsd:duration
  BIND(?n + 1 AS ?c)
}
`,
      ],
      [
        "blizzard",
        `${prefixes(WEATHER)}
SELECT ?st ?hours FROM STREAM <winter>
WHERE {
  ?st :settling ?hours
  FILTER(?hours >= 4 && getDURATION() >= "PT3H"^^xsd:duration)
}
`,
      ],
    ],
  },
  {
    id: "tsunami",
    title: "Tsunami",
    tells: "Four heights, an hour apart, predict the next height. A difference of more than 3 cm is a wave, not the tide.",
    source: "NOAA's ocean-bottom sensors, 11 March 2011",
    stream: "ocean",
    data: ocean,
    subject: "http://example.org/buoy/",
    vocabulary: OCEAN,
    queries: [
      [
        "tsunami",
        `${prefixes(OCEAN)}
SELECT ?buoy ?off FROM STREAM <ocean>
WHERE {
  {
    { { { ?buoy :height ?h3 } SEQ { ?buoy :height ?h2 } WITHIN "PT1H"^^xsd:duration FILTER(getDURATION() = "PT1H"^^xsd:duration) }
        SEQ { ?buoy :height ?h1 } WITHIN "PT2H"^^xsd:duration FILTER(getDURATION() = "PT2H"^^xsd:duration) }
      SEQ { ?buoy :height ?h0 } WITHIN "PT3H"^^xsd:duration FILTER(getDURATION() = "PT3H"^^xsd:duration)
  }
  SEQ { ?buoy :height ?h } WITHIN "PT3H15M"^^xsd:duration
  FILTER(getDURATION() = "PT3H15M"^^xsd:duration)
  BIND(ABS(?h - (1.5234375 * ?h0 - 0.9140625 * ?h1 + 0.5078125 * ?h2 - 0.1171875 * ?h3)) AS ?off)
  FILTER(?off > 0.030)
}
`,
      ],
    ],
  },
  {
    id: "heat",
    title: "Heat index",
    tells: "The heat index from temperature and humidity of one instant, by the weather service's formula, with its class.",
    source: "New York's airports, 8 – 21 July 2013",
    stream: "summer",
    data: summer,
    subject: "http://example.org/station/",
    vocabulary: WEATHER,
    queries: [
      [
        "heat",
        `${prefixes(WEATHER)}
SELECT ?st ?class ?hi FROM STREAM <summer>
WHERE {
  { ?st :temp ?t } EQUALS { ?st :humid ?rh }
  FILTER(?t >= 80 && ?rh >= 40)
  BIND(-42.379 + 2.04901523 * ?t + 10.14333127 * ?rh - 0.22475541 * ?t * ?rh
       - 0.00683783 * ?t * ?t - 0.05481717 * ?rh * ?rh + 0.00122874 * ?t * ?t * ?rh
       + 0.00085282 * ?t * ?rh * ?rh - 0.00000199 * ?t * ?t * ?rh * ?rh AS ?hi)
  FILTER(?hi >= 80)
  BIND(IF(?hi < 90, "Caution", IF(?hi < 105, "ExtremeCaution", "Danger")) AS ?class)
}
`,
      ],
    ],
  },
];
