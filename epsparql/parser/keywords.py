"""This module lists the words of the language."""

from epsparql.parser import ast

KEYWORDS = (
    "BASE", "PREFIX", "VERSION", "SELECT", "DISTINCT", "REDUCED", "AS", "CONSTRUCT", "FROM", "STREAM", "INTO", "BACKGROUND", "WHERE",
    "FILTER", "BIND", "OPTIONAL", "MINUS",
    "UNION", "AND", "SEQ", "EQUALS", "OPTIONALSEQ", "EQUALSOPTIONAL", "MEETS", "DURING", "STARTS", "FINISHES", "OVERLAPS", "PAR", "WITHIN",
    "WITHOUT", "FOR", "EXISTS", "NOT", "IN", "ASK", "DESCRIBE", "NAMED", "GRAPH", "SERVICE", "SILENT", "VALUES", "UNDEF", "WINDOW", "RANGE", "STEP",
    "ROWS", "SESSION", "RUN", "WHILE", "GAP", "UNTIL", "EACH", "CLOSED", "ONCE", "PER", "REGISTER", "RSTREAM", "ISTREAM", "DSTREAM", "ON",
    "GROUP", "BY", "HAVING", "ORDER", "ASC", "DESC", "LIMIT", "OFFSET", "SEPARATOR", "PARAMETERS",
)  # fmt: skip
BUILT_INS = (
    "STR", "LANG", "LANGMATCHES", "DATATYPE", "BOUND", "IRI", "URI", "BNODE", "RAND", "ABS", "CEIL", "FLOOR", "ROUND", "CONCAT", "STRLEN", "UCASE",
    "LCASE", "ENCODE_FOR_URI", "CONTAINS", "STRSTARTS", "STRENDS", "STRBEFORE", "STRAFTER", "YEAR", "MONTH", "DAY", "HOURS", "MINUTES", "SECONDS",
    "TIMEZONE", "TZ", "NOW", "UUID", "STRUUID", "MD5", "SHA1", "SHA256", "SHA384", "SHA512", "COALESCE", "IF", "STRLANG", "STRDT", "SAMETERM",
    "ISIRI", "ISURI", "ISBLANK", "ISLITERAL", "ISNUMERIC", "TRIPLE", "SUBJECT", "PREDICATE", "OBJECT",
    "ISTRIPLE", "HASLANG", "HASLANGDIR", "LANGDIR", "STRLANGDIR", "REGEX", "SUBSTR", "REPLACE", "GETDURATION", "GETSTARTTIME", "GETENDTIME",
)  # fmt: skip
MODIFIERS = ("GROUP", "HAVING", "WINDOW", "ONCE", "ORDER", "LIMIT", "OFFSET")
AGGREGATES = ("COUNT", "SUM", "MIN", "MAX", "AVG", "SAMPLE", "GROUP_CONCAT", "FIRST", "LAST")
PREVIOUS = "PREV"
OPERATOR_NAMES = (*(operator.value for operator in ast.ChainOperator), "EQUALOPTIONAL")
"""These stand between two groups; the last one is another spelling of EQUALSOPTIONAL."""
SEQOPTIONAL = (
    "SEQOPTIONAL is refused: a later right operand would make an emitted solution invalid; use OPTIONALSEQ, or WITHOUT ... FOR with a duration"
)
