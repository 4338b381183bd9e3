"""Defines what can go wrong with a connector. Messages name the place and the remedy, and never a credential."""


class ConnectorError(Exception):
    """Reports a fault of a connector; the message is for its operator."""


class WrongOption(ConnectorError):
    """Reports options that cannot be used. Another try would only meet it again."""


class MissingLibrary(ConnectorError):
    """Reports that a system's client library is not installed."""

    def __init__(self, library: str, extra: str) -> None:
        super().__init__(f"the connector needs {library}: pip install 'epsparql[{extra}]'")


class SystemFault(ConnectorError):
    """Reports that a system, or the server, does not do what is asked of it now. It is tried again."""


class RefusedMessage(ConnectorError):
    """Reports a message whose content the server refuses."""
