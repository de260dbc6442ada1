"""The members of one group as its log tells them: the checkpoint's, then those of CONFIG entries.

A configuration counts from the moment it stands in the log, committed or not, and is forgotten with
the entry that brought it. `RaftGroup` tells of entries that come and go.
"""

from lograft_replication import membership
from lograft_replication.group_journal import GroupJournal
from lograft_replication.membership import Config

CONFIG = 0x11  # first byte of an entry that changes the members
LOAD_BYTES_MAX = 8 << 20


class Members:
    def __init__(self, base: Config, log: GroupJournal) -> None:
        self._log = log
        self._base = base
        self._later: list[tuple[int, Config]] = []  # (index, config), all above the log's base
        index = log.base_index + 1
        while index <= log.last_index:
            for command, at, _ in log.entries(index, bytes_max=LOAD_BYTES_MAX):
                self.appended(command, at)
                index = at + 1

    @property
    def config(self) -> Config:
        return self._later[-1][1] if self._later else self._base

    @property
    def index(self) -> int:
        """Where the present configuration stands in the log."""
        return self._later[-1][0] if self._later else self._log.base_index

    def at(self, index: int) -> Config:
        """The members as of `index`, for its checkpoint."""
        config = self._base
        for at, later in self._later:
            if at <= index:
                config = later
        return config

    def appended(self, command: bytes, index: int) -> bool:
        """Note an entry; True when it changes the members."""
        if command[0] != CONFIG:
            return False
        self._later.append((index, membership.decode(bytes(command[1:]))))
        return True

    def truncated(self, from_index: int) -> bool:
        before = len(self._later)
        self._later = [(at, config) for at, config in self._later if at < from_index]
        return len(self._later) != before

    def trimmed(self, to_index: int) -> None:
        self._base = self.at(to_index)
        self._later = [(at, config) for at, config in self._later if at > to_index]

    def installed(self, config: Config) -> None:
        self._base = config
        self._later = []


def encode_entry(config: Config) -> bytes:
    return bytes([CONFIG]) + membership.encode(config)
