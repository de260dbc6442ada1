"""The families of errors: whose fault it is, and what to do next.

Every error a Lograft package raises across a module border is one of these. Foreign exceptions
(OSError, struct.error ...) are translated where they arise, with `from`.
"""


class LograftError(Exception):
    """The root of the families below; never raised itself."""


class PeerError(LograftError):
    """The other side sent something wrong. It is told, and its channel, connection or link ends.

    `reply_code` is the AMQP reply code where the peer is an AMQP client, else 0.
    """

    def __init__(
        self, message: str, *, reply_code: int = 0, closes_connection: bool = True
    ) -> None:
        super().__init__(message)
        self.reply_code = reply_code
        self.closes_connection = closes_connection


class RefusedError(LograftError):
    """A valid request that is not allowed now. It certainly had no effect."""


class UnavailableError(LograftError):
    """Cannot be answered at the moment; try again after `delay_s`. It may have had an effect."""

    def __init__(self, message: str, *, delay_s: float) -> None:
        super().__init__(message)
        self.delay_s = delay_s


class StorageError(LograftError):
    """Bytes on disk are wrong, or the disk refused. Names the file; nothing is retried."""

    def __init__(self, message: str, *, path: str = "", position: int = -1) -> None:
        super().__init__(message)
        self.path = path
        self.position = position


class DamagedError(StorageError):
    """Bytes that were once durable do not pass their check: quarantine, never serve."""


class ConfigError(LograftError):
    """The operator of this node wrote a setting that cannot work; says which and what would."""
