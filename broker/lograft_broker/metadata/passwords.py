"""Password hashes: made with scrypt, verified also as RabbitMQ stores them.

    $scrypt$ln=14,r=8,p=1$SALT$HASH             cost 2**ln, block size, parallelism; both Base64
                                                without padding
    $rabbit_password_hashing_sha256$SALTED      Base64 of four bytes of salt and the hash of salt
    $rabbit_password_hashing_sha512$SALTED      and password, as in RabbitMQ's definitions

An empty text is no password: nobody logs in with it, and an empty password never fits. Pure: the
salt is handed in. Hashing takes tens of milliseconds, on purpose; call it in a thread.
"""

import binascii
import hashlib
import hmac
import re
from base64 import b64decode, b64encode
from dataclasses import dataclass

from lograft_wire.errors import RefusedError

SALT_BYTES = 16
HASH_BYTES = 32
LN_MAX, R_MAX, P_MAX = 20, 32, 16  # of hashes that others made: they cost memory and time here
MEMORY_BYTES_MAX = 256 << 20
RABBITMQ_SALT_BYTES = 4
RABBITMQ_ALGORITHMS = {
    "rabbit_password_hashing_sha256": "sha256",
    "rabbit_password_hashing_sha512": "sha512",
}
SCRYPT_ALGORITHM = "lograft_password_hashing_scrypt"  # the name in exported definitions
_SCRYPT = re.compile(
    r"\$scrypt\$ln=([0-9]{1,2}),r=([0-9]{1,2}),p=([0-9]{1,2})\$([A-Za-z0-9+/]+)\$([A-Za-z0-9+/]+)",
    re.ASCII,
)
_RABBITMQ = re.compile(r"\$(rabbit_password_hashing_sha[0-9]+)\$([A-Za-z0-9+/=]+)", re.ASCII)


@dataclass(frozen=True, slots=True, kw_only=True)
class Cost:
    ln: int = 14
    r: int = 8
    p: int = 1

    @property
    def memory_bytes(self) -> int:
        return 128 * self.r * ((1 << self.ln) + self.p + 2)


def make(password: str, *, salt: bytes, cost: Cost | None = None) -> str:
    cost = cost or Cost()
    assert len(salt) >= SALT_BYTES, len(salt)
    digest = _scrypt(password, salt, cost, HASH_BYTES)
    return f"$scrypt$ln={cost.ln},r={cost.r},p={cost.p}${_unpadded(salt)}${_unpadded(digest)}"


def verify(stored: str, password: str) -> bool:
    """In a time that tells nothing about how much of it was right."""
    if not password:
        return False
    match = _SCRYPT.fullmatch(stored)
    if match is not None:
        return _verify_scrypt(match, password)
    match = _RABBITMQ.fullmatch(stored)
    return match is not None and _verify_rabbitmq(match[1], match[2], password)


def from_definitions(password_hash: str, algorithm: str) -> str:
    """The text to store for a user of imported definitions. RefusedError if it cannot be used."""
    if not password_hash:
        return ""
    if algorithm == SCRYPT_ALGORITHM and _SCRYPT.fullmatch(password_hash):
        return password_hash
    if algorithm in RABBITMQ_ALGORITHMS and _salted(algorithm, password_hash) is not None:
        return f"${algorithm}${password_hash}"
    raise RefusedError(f"a password hash of {algorithm!r} cannot be used")


def to_definitions(stored: str) -> tuple[str, str]:
    """password_hash and hashing_algorithm of exported definitions."""
    match = _RABBITMQ.fullmatch(stored)
    if match is not None:
        return match[2], match[1]
    return stored, SCRYPT_ALGORITHM


def _verify_scrypt(match: re.Match[str], password: str) -> bool:
    cost = Cost(ln=int(match[1]), r=int(match[2]), p=int(match[3]))
    bearable = 1 <= cost.ln <= LN_MAX and 1 <= cost.r <= R_MAX and 1 <= cost.p <= P_MAX
    salt, expected = _decoded(match[4]), _decoded(match[5])
    if not bearable or cost.memory_bytes > MEMORY_BYTES_MAX or not salt or not expected:
        return False
    return hmac.compare_digest(_scrypt(password, salt, cost, len(expected)), expected)


def _verify_rabbitmq(algorithm: str, password_hash: str, password: str) -> bool:
    salted = _salted(algorithm, password_hash)
    if salted is None:
        return False
    salt, expected = salted[:RABBITMQ_SALT_BYTES], salted[RABBITMQ_SALT_BYTES:]
    found = hashlib.new(RABBITMQ_ALGORITHMS[algorithm], salt + _bytes(password)).digest()
    return hmac.compare_digest(found, expected)


def _salted(algorithm: str, password_hash: str) -> bytes | None:
    """Salt and hash, if that is what it is."""
    name = RABBITMQ_ALGORITHMS.get(algorithm)
    salted = _decoded(password_hash)
    if name is None or salted is None:
        return None
    expected_bytes = RABBITMQ_SALT_BYTES + hashlib.new(name).digest_size
    return salted if len(salted) == expected_bytes else None


def _scrypt(password: str, salt: bytes, cost: Cost, size: int) -> bytes:
    return hashlib.scrypt(
        _bytes(password),
        salt=salt,
        n=1 << cost.ln,
        r=cost.r,
        p=cost.p,
        maxmem=2 * cost.memory_bytes,
        dklen=size,
    )


def _bytes(password: str) -> bytes:
    """Clients may send any octets; the wire hands them on as surrogate escapes."""
    return password.encode("utf-8", "surrogateescape")


def _unpadded(data: bytes) -> str:
    return b64encode(data).decode().rstrip("=")


def _decoded(text: str) -> bytes | None:
    bare = text.rstrip("=")
    try:
        return b64decode(bare + "=" * (-len(bare) % 4), validate=True)
    except (binascii.Error, ValueError):
        return None
