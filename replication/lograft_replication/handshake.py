"""How two nodes find out who the other is before anything else is said: a machine without I/O.

Each side shows a hello (who I am, a fresh nonce); then each proves that it knows the cluster's
secret by an HMAC over its role and both hellos. A recorded proof does not fit a fresh nonce, and a
reflected one does not fit the other role. The dialler proves itself first, so that a listener never
answers a stranger with anything made from the secret. Why somebody was refused is told to a peer
only when it has proved itself; a stranger hears a general reason.

Leaves deadlines, TLS and sockets to `link`, and the judgement of a proven peer to whoever gives
`judge`. Called by `link_protocol`, one Handshake per connection.
"""

import hashlib
import hmac
import struct
from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum

from lograft_wire.errors import PeerError

VERSION = 1
MAGIC = b"LGPEER\r\n"
ID_BYTES = 16  # incarnation and boot id
NONCE_BYTES = 32
PROOF_BYTES = 32
NAME_BYTES_MAX = 255
REASON_BYTES_MAX = 256

# Each side begins with: magic 8 bytes | version u8
PREAMBLE = struct.Struct("<8sB")
assert PREAMBLE.size == 9
# then come records: type u8 | length u16 | body
RECORD = struct.Struct("<BH")
assert RECORD.size == 3
HELLO = 1  # name_bytes u8, name, incarnation 16, boot 16, cluster_bytes u8, cluster, nonce 32
PROOF = 2  # 32 bytes
REFUSED = 3  # the reason in UTF-8
RECORD_BYTES_MAX = 2 * (1 + NAME_BYTES_MAX) + 2 * ID_BYTES + NONCE_BYTES

STRANGER_REASON = "refused; the log of the refusing node says why"


class Role(Enum):
    """The label that makes the two proofs of one handshake different."""

    DIALLER = b"lograft peer 1 dialler\0"
    LISTENER = b"lograft peer 1 listener\0"


class State(Enum):
    PREAMBLE = "preamble"
    HELLO = "hello"
    PROOF = "proof"
    DONE = "done"
    FAILED = "failed"


@dataclass(frozen=True, slots=True, kw_only=True)
class Identity:
    """Who speaks: the name stays, the incarnation dies with the data, the boot with the process."""

    name: str
    incarnation: bytes
    boot: bytes
    cluster: str

    def __post_init__(self) -> None:
        assert len(self.incarnation) == ID_BYTES, self.incarnation
        assert len(self.boot) == ID_BYTES, self.boot

    @property
    def node_id(self) -> str:
        return f"{self.name}@{self.incarnation.hex()}"


class Handshake:
    """One side of one handshake. Feed it bytes until `state` is DONE or FAILED.

    `judge` gets the peer's identity and returns why it is not welcome, or "".
    """

    def __init__(
        self,
        role: Role,
        me: Identity,
        *,
        secret: bytes,
        nonce: bytes,
        judge: Callable[[Identity], str],
    ) -> None:
        self.state = State.PREAMBLE
        self.peer: Identity | None = None  # what the other says of itself; proven when DONE
        self.failure = ""  # for our log; set when FAILED
        self.rest = b""  # what came behind the handshake; set when DONE
        self._role = role
        self._secret = secret
        self._judge = judge
        self._received = bytearray()
        self._my_hello = PREAMBLE.pack(MAGIC, VERSION) + _record(HELLO, _pack_hello(me, nonce))
        self._peer_hello = b""

    def __repr__(self) -> str:
        return f"Handshake({self._role.name}, {self.state.name}, peer={self.peer!r})"

    def start(self) -> bytes:
        """What to send before anything has arrived."""
        return self._my_hello if self._role is Role.DIALLER else b""

    @property
    def done(self) -> bool:
        return self.state is State.DONE

    @property
    def failed(self) -> bool:
        return self.state is State.FAILED

    def receive(self, data: bytes) -> bytes:
        """Take what arrived and return what to send, which may be nothing."""
        assert not self.done, self
        assert not self.failed, self
        self._received += data
        reply = b""
        try:
            while (step := self._step()) is not None:
                reply += step
        except PeerError as error:
            told = self._refusal_to_stranger()
            self._fail(str(error))
            return reply + told
        if self.done:
            self.rest = bytes(self._received)
        return reply

    def _step(self) -> bytes | None:
        """Take one whole piece of what arrived; None when there is none, or nothing more to do."""
        if self.done or self.failed:
            return None
        if self.state is State.PREAMBLE:
            return self._take_preamble()
        if len(self._received) < RECORD.size:
            return None
        kind, length = RECORD.unpack_from(self._received)
        if length > RECORD_BYTES_MAX:
            raise PeerError(f"handshake: record length {length} over {RECORD_BYTES_MAX}")
        end = RECORD.size + length
        if len(self._received) < end:
            return None
        whole = bytes(self._received[:end])
        del self._received[:end]
        if kind == REFUSED:
            reason = str(whole[RECORD.size :][:REASON_BYTES_MAX], "utf-8", "replace")
            why = f"; we would have said: {why}" if (why := self._judged()) else ""
            self._fail(f"refused by the other side: {reason!r}{why}")
            return b""
        if kind != (HELLO if self.state is State.HELLO else PROOF):
            raise PeerError(f"handshake: record type {kind} while waiting for {self.state.value}")
        return self._take_hello(whole) if kind == HELLO else self._take_proof(whole[RECORD.size :])

    def _take_preamble(self) -> bytes | None:
        if not MAGIC.startswith(self._received[: len(MAGIC)]):
            raise PeerError("handshake: magic is not that of a Lograft peer")
        if len(self._received) < PREAMBLE.size:
            return None
        _, version = PREAMBLE.unpack_from(self._received)
        self.state = State.HELLO
        if version != VERSION:
            raise PeerError(f"handshake: version {version} is not {VERSION}")
        del self._received[: PREAMBLE.size]
        return b""

    def _take_hello(self, record: bytes) -> bytes:
        self.peer = _unpack_hello(record[RECORD.size :])
        self._peer_hello = PREAMBLE.pack(MAGIC, VERSION) + record
        self.state = State.PROOF
        if self._role is Role.LISTENER:
            return self._my_hello
        # A dialler has not heard a proof yet, so it says no only in general.
        if why := self._judged():
            raise PeerError(f"handshake: {why}")
        return _record(PROOF, self._proof(Role.DIALLER))

    def _take_proof(self, proof: bytes) -> bytes:
        other = Role.LISTENER if self._role is Role.DIALLER else Role.DIALLER
        if not hmac.compare_digest(proof, self._proof(other)):
            raise PeerError("handshake: the proof does not fit: the secrets differ")
        if self._role is Role.DIALLER:
            self.state = State.DONE
            return b""
        if why := self._judged():
            self._fail(why)
            return _refusal(why)
        self.state = State.DONE
        return _record(PROOF, self._proof(Role.LISTENER))

    def _refusal_to_stranger(self) -> bytes:
        if self.state is State.PREAMBLE:
            return b""  # whoever does not even speak our protocol gets no answer at all
        shown = self._role is Role.DIALLER or self.state is State.PROOF
        preamble = b"" if shown else PREAMBLE.pack(MAGIC, VERSION)
        return preamble + _refusal(STRANGER_REASON)

    def _judged(self) -> str:
        return "" if self.peer is None else self._judge(self.peer)

    def _proof(self, role: Role) -> bytes:
        """Over the label of the proving role, the dialler's hello and the listener's hello."""
        hellos = (self._my_hello, self._peer_hello)
        first, second = hellos if self._role is Role.DIALLER else reversed(hellos)
        return hmac.digest(self._secret, role.value + first + second, hashlib.sha256)

    def _fail(self, why: str) -> None:
        self.state = State.FAILED
        self.failure = why


def _record(kind: int, body: bytes) -> bytes:
    assert len(body) <= RECORD_BYTES_MAX, len(body)
    return RECORD.pack(kind, len(body)) + body


def _refusal(reason: str) -> bytes:
    return _record(REFUSED, reason.encode()[:REASON_BYTES_MAX])


def _pack_hello(me: Identity, nonce: bytes) -> bytes:
    name, cluster = me.name.encode(), me.cluster.encode()
    assert 0 < len(name) <= NAME_BYTES_MAX, me.name
    assert len(cluster) <= NAME_BYTES_MAX, me.cluster
    assert len(nonce) == NONCE_BYTES, len(nonce)
    parts = (bytes([len(name)]), name, me.incarnation, me.boot)
    return b"".join((*parts, bytes([len(cluster)]), cluster, nonce))


def _unpack_hello(body: bytes) -> Identity:
    """Exactly the fields of a hello; the nonce counts only as part of the transcript."""
    name, rest = _unpack_text("name", body)
    incarnation, boot, rest = rest[:ID_BYTES], rest[ID_BYTES : 2 * ID_BYTES], rest[2 * ID_BYTES :]
    cluster, nonce = _unpack_text("cluster", rest)
    if len(nonce) != NONCE_BYTES:
        raise PeerError(f"handshake: nonce of {len(nonce)} bytes, not {NONCE_BYTES}")
    if not name or "@" in name:
        raise PeerError(f"handshake: name {name!r} cannot be a node's")
    return Identity(name=name, incarnation=incarnation, boot=boot, cluster=cluster)


def _unpack_text(field: str, data: bytes) -> tuple[str, bytes]:
    size = data[0] if data else 0
    if len(data) < 1 + size:
        raise PeerError(f"handshake: {field} of {size} bytes in {len(data)}")
    try:
        return str(data[1 : 1 + size], "utf-8"), data[1 + size :]
    except UnicodeDecodeError as error:
        raise PeerError(f"handshake: {field} is not UTF-8 at byte {error.start}") from error
