"""This module reads Spark's settings as the operator chooses them.

Nothing heavy is imported: the command line reads them first.
"""

import re
import shlex
from collections.abc import Mapping

SPARK_CONF = "EPSPARQL_SPARK_CONF"
"""This variable brings Spark's settings to the process that has the session: flags are seen by all users, and some
settings are secrets.
"""
_OWN = {
    "spark.master": "it is given by --master",
    "spark.submit.deployMode": "the driver runs beside the server",
    "spark.sql.session.timeZone": "instants are UTC",
}
"""These settings cannot be chosen; the value says why."""
_SECRET = re.compile("(?i)secret|password|token|access[.]?key|credential")
"""This is Spark's own spark.redaction.regex."""


def chosen_settings(text: str) -> dict[str, str]:
    """Read Spark's settings out of KEY=VALUE words, quoted as in a shell where they hold blanks. Raises: ValueError."""
    found = {}
    for word in shlex.split(text):
        key, equals, value = word.partition("=")
        if not equals or not key.startswith("spark.") or any(map(str.isspace, key)):
            raise ValueError(f"{key!r} must be KEY=VALUE with a key of Spark's, such as spark.executor.memory=2g")
        if key in _OWN:
            raise ValueError(f"{key} cannot be chosen: {_OWN[key]}")
        found[key] = value
    return found


def shown_settings(settings: Mapping[str, str]) -> dict[str, str]:
    """Return the settings that may stand in the command line of a JVM."""
    return {key: value for key, value in settings.items() if not _SECRET.search(key)}
