/** Values of literals in JavaScript, where it has them exactly. */

export const XSD = "http://www.w3.org/2001/XMLSchema#";
export const RDF = "http://www.w3.org/1999/02/22-rdf-syntax-ns#";

export type Value = string | number | bigint | boolean | Date;

const INTEGERS = new Set(
  ["integer", "int", "long", "short", "byte", "nonNegativeInteger", "positiveInteger", "nonPositiveInteger", "negativeInteger"].concat(["unsignedInt", "unsignedLong", "unsignedShort", "unsignedByte"]),
);
const INTEGER = /^[+-]?\d+$/;
const DECIMAL = /^([+-]?)0*(\d*)(?:\.(\d*?)0*)?$/;
const DOUBLE = /^[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?$/;
const DATE_TIME = /^-?\d{4,}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.(\d+?)0*)?(?:Z|[+-]\d\d:\d\d)$/;
const DURATION = /^(-?)P(?:(\d+)D)?(?:T(?:(\d+)H)?(?:(\d+)M)?(?:(\d+)(?:\.(\d{1,3})0*)?S)?)?$/;
const UNITS_MS = [86_400_000, 3_600_000, 60_000, 1000];

/** Returns the value of a literal; its text where JavaScript has no such value, or not exactly, and where the text is malformed. */
export function readValue(text: string, datatype: string): Value {
  if (!datatype.startsWith(XSD)) return text;
  const kind = datatype.slice(XSD.length);
  if (INTEGERS.has(kind)) return INTEGER.test(text) ? readInteger(text) : text;
  switch (kind) {
    case "boolean":
      return text === "true" || text === "1" ? true : text === "false" || text === "0" ? false : text;
    case "double":
    case "float":
      return readDouble(text);
    case "decimal":
      return readDecimal(text);
    case "dateTime":
    case "dateTimeStamp":
      return readDateTime(text);
    case "duration":
    case "dayTimeDuration":
      return readDuration(text);
  }
  return text;
}

function readInteger(text: string): number | bigint {
  const found = Number(text);
  return Number.isSafeInteger(found) ? found : BigInt(text.replace("+", ""));
}

function readDouble(text: string): number | string {
  if (text === "INF" || text === "+INF") return Infinity;
  if (text === "-INF") return -Infinity;
  if (text === "NaN") return NaN;
  return DOUBLE.test(text) ? Number(text) : text;
}

/** A decimal is a number if JavaScript writes that number with the same digits. */
function readDecimal(text: string): number | string {
  const found = DECIMAL.exec(text);
  if (!found || !/\d/.test(text)) return text;
  const [, sign, whole, part] = found;
  const plain = (whole || "0") + (part ? `.${part}` : "");
  const number = Number(plain);
  return String(number) === plain ? Number(sign + plain) : text;
}

/** A Date has milliseconds and knows no time without a zone. */
function readDateTime(text: string): Date | string {
  const found = DATE_TIME.exec(text);
  if (!found || (found[1]?.length ?? 0) > 3) return text;
  const date = new Date(text);
  return Number.isNaN(date.getTime()) ? text : date;
}

/** A duration without years and months is a number of milliseconds, as the difference of two Dates is. */
function readDuration(text: string): number | string {
  const found = DURATION.exec(text);
  if (!found || /[PT]$/.test(text)) return text;
  const whole = found.slice(2, 6).reduce((sum, each, at) => sum + Number(each ?? 0) * UNITS_MS[at]!, 0);
  const sum = whole + Number((found[6] ?? "").padEnd(3, "0"));
  if (!Number.isSafeInteger(sum)) return text;
  return found[1] && sum ? -sum : sum;
}
