"""Where bytes stop being UTF-8."""


def undecodable(error: UnicodeDecodeError) -> tuple[int, int]:
    """Line and column, from 1, of the first byte that could not be decoded; columns count characters."""
    before = error.object[: error.start].decode("utf-8")
    return before.count("\n") + 1, len(before) - before.rfind("\n")
