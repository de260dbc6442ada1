"""The source of pysyncobj that `library` leans on is the source it was checked against.

A change in any of these methods, or a new version, needs a new reading of docs/decisions/0003 and
a new run of the mutations before the hashes here may change.
"""

import hashlib
import importlib.metadata
import inspect

import pytest
from pysyncobj import SyncObj
from pysyncobj.syncobj import _COMMAND_TYPE, _RAFT_STATE

from lograft_replication import library

HASHES = {
    "SyncObj.__init__": "09df12cd7fd7d727",
    "SyncObj.__onMessageReceived": "ddfe34b6c0282179",
    "SyncObj.__sendAppendEntries": "9cb9073128c392fa",
    "SyncObj.__applyLogEntries": "073db677773b5a2d",
    "SyncObj.__onBecomeLeader": "5a3fd97bc17dc1cf",
    "SyncObj.__setCurrentTerm": "0ad5bf456ac06bd3",
    "SyncObj.__setState": "2c1f239f7bd79b39",
    "SyncObj.__getCurrentLogIndex": "e5af22ca246686bd",
    "SyncObj.__getCurrentLogTerm": "1cb8867e6a13d397",
    "SyncObj.__getPrevLogIndexTerm": "6766914806ae2311",
    "SyncObj.__onLeaderChanged": "53b7685e1d897887",
    "SyncObj.__sendNextNodeIdx": "68aaeefc267b8896",
    "SyncObj.__deleteEntriesFrom": "3b23c411bb903d36",
}


def test_version_is_the_one_that_was_read() -> None:
    assert importlib.metadata.version("pysyncobj") == "0.3.17"


@pytest.mark.parametrize("name", sorted(HASHES))
def test_method_is_as_it_was_read(name: str) -> None:
    assert _hash(name) == HASHES[name]


def test_states_and_commands_have_the_numbers_we_use() -> None:
    states = (_RAFT_STATE.FOLLOWER, _RAFT_STATE.CANDIDATE, _RAFT_STATE.LEADER)
    assert states == (library.FOLLOWER, library.CANDIDATE, library.LEADER)
    assert bytes([_COMMAND_TYPE.NO_OP]) == library.NO_OP


def _hash(name: str) -> str:
    owner, _, method = name.partition(".")
    assert owner == "SyncObj"
    found = getattr(SyncObj, method if method == "__init__" else f"_SyncObj{method}")
    return hashlib.sha256(inspect.getsource(found).encode()).hexdigest()[:16]
