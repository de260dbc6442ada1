"""Who belongs to a group: voters and learners, as a value, and the single steps between two such.

Pure. A member is a node id (`name@incarnation`). The group puts a Config in its log as bytes and
follows it from the moment it is appended; a step changes at most one voter, so the majorities
before and after it always share a member.
"""

import struct
from dataclasses import dataclass

from lograft_wire.errors import DamagedError, RefusedError

# version u8 | voter count u16 | learner count u16 | then each member, voters first, both sorted:
# length u16 | node id in UTF-8
_HEADER = struct.Struct("<BHH")
assert _HEADER.size == 5
_LENGTH = struct.Struct("<H")
assert _LENGTH.size == 2
VERSION = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    voter_count_max: int = 9
    learner_count_max: int = 1024  # nodes that only follow `meta` are its learners
    member_bytes_max: int = 320


@dataclass(frozen=True, slots=True)
class Config:
    """Members in sorted order. No voters at all: a member that has not yet been told."""

    voters: tuple[str, ...] = ()
    learners: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        object.__setattr__(self, "voters", tuple(sorted(self.voters)))
        object.__setattr__(self, "learners", tuple(sorted(self.learners)))
        members = self.members
        assert len(set(members)) == len(members), members

    @property
    def members(self) -> tuple[str, ...]:
        return self.voters + self.learners

    @property
    def majority_count(self) -> int:
        return len(self.voters) // 2 + 1


def add_learner(config: Config, member: str, limits: Limits | None = None) -> Config:
    limits = limits or Limits()
    if member in config.members:
        raise RefusedError(f"{member} is already a member")
    if not 0 < len(member.encode()) <= limits.member_bytes_max:
        raise RefusedError(f"a node id has 1 to {limits.member_bytes_max} bytes, not {member!r}")
    if len(config.learners) >= limits.learner_count_max:
        raise RefusedError(f"the group has {len(config.learners)} learners, no more are allowed")
    return Config(config.voters, (*config.learners, member))


def promote(config: Config, member: str, limits: Limits | None = None) -> Config:
    limits = limits or Limits()
    if member in config.voters:
        raise RefusedError(f"{member} is already a voter")
    if member not in config.learners:
        raise RefusedError(f"{member} is no learner; add it as one and let it catch up first")
    if len(config.voters) >= limits.voter_count_max:
        raise RefusedError(f"the group has {len(config.voters)} voters, no more are allowed")
    return Config((*config.voters, member), _without(config.learners, member))


def remove(config: Config, member: str) -> Config:
    if member in config.learners:
        return Config(config.voters, _without(config.learners, member))
    if member not in config.voters:
        raise RefusedError(f"{member} is no member")
    if len(config.voters) == 1:
        raise RefusedError(f"{member} is the last voter; the group would end with it")
    return Config(_without(config.voters, member), config.learners)


def check_step(old: Config, new: Config) -> None:
    """Refuse what is not one step: more than one voter of difference, or no voter left."""
    changed = set(old.voters) ^ set(new.voters)
    if len(changed) > 1:
        raise RefusedError(f"one voter may change at a time, not {', '.join(sorted(changed))}")
    if not new.voters:
        raise RefusedError("a group cannot lose its last voter")


def encode(config: Config) -> bytes:
    parts = [_HEADER.pack(VERSION, len(config.voters), len(config.learners))]
    for member in config.members:
        name = member.encode()
        parts += (_LENGTH.pack(len(name)), name)
    return b"".join(parts)


def decode(data: bytes) -> Config:
    try:
        version, voter_count, learner_count = _HEADER.unpack_from(data)
        if version != VERSION:
            raise DamagedError(f"membership of version {version}; this one reads {VERSION}")
        members: list[str] = []
        position = _HEADER.size
        for _ in range(voter_count + learner_count):
            (length,) = _LENGTH.unpack_from(data, position)
            position += _LENGTH.size
            members.append(data[position : position + length].decode())
            position += length
    except (struct.error, UnicodeDecodeError) as error:
        raise DamagedError(f"membership of {len(data)} bytes cannot be read: {error}") from error
    if position != len(data) or len(set(members)) != len(members):
        raise DamagedError(f"membership of {len(data)} bytes is cut short, too long or repeated")
    return Config(tuple(members[:voter_count]), tuple(members[voter_count:]))


def _without(members: tuple[str, ...], member: str) -> tuple[str, ...]:
    return tuple(other for other in members if other != member)
