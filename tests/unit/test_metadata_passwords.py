"""Password hashes: ours and RabbitMQ's."""

import hashlib
from base64 import b64encode

import pytest

from lograft_broker.metadata import passwords
from lograft_broker.metadata.passwords import Cost
from lograft_wire.errors import RefusedError

CHEAP = Cost(ln=4)
SALT = bytes(range(16))


def test_only_the_right_password_fits() -> None:
    stored = passwords.make("secret", salt=SALT, cost=CHEAP)
    assert passwords.verify(stored, "secret")
    for wrong in ("Secret", "secret ", "", "secre"):
        assert not passwords.verify(stored, wrong)


def test_an_empty_password_never_fits_not_even_its_own_hash() -> None:
    assert not passwords.verify(passwords.make("", salt=SALT, cost=CHEAP), "")


def test_the_text_is_as_documented() -> None:
    stored = passwords.make("secret", salt=SALT, cost=CHEAP)
    digest = hashlib.scrypt(b"secret", salt=SALT, n=16, r=8, p=1, dklen=32)
    salt_text = b64encode(SALT).decode().rstrip("=")
    digest_text = b64encode(digest).decode().rstrip("=")
    assert stored == f"$scrypt$ln=4,r=8,p=1${salt_text}${digest_text}"


def test_the_default_cost_is_16_megabytes() -> None:
    assert 16 << 20 <= Cost().memory_bytes < 17 << 20
    stored = passwords.make("pässword", salt=SALT)
    assert stored.startswith("$scrypt$ln=14,r=8,p=1$")
    assert passwords.verify(stored, "pässword")


@pytest.mark.parametrize("name", ["sha256", "sha512"])
def test_hashes_of_rabbitmq_are_verified(name: str) -> None:
    salt = b"\x01\x02\x03\x04"
    digest = hashlib.new(name, salt + b"secret").digest()
    text = b64encode(salt + digest).decode()
    stored = passwords.from_definitions(text, f"rabbit_password_hashing_{name}")
    assert passwords.verify(stored, "secret")
    assert not passwords.verify(stored, "Secret")
    assert passwords.to_definitions(stored) == (text, f"rabbit_password_hashing_{name}")


def test_a_hash_from_rabbitmqs_own_documentation() -> None:
    """Salt 908DC60A, password test12, SHA-256."""
    text = "kI3GCqW5JLMJa4iX1lo7X4D6XbYqlLgxIs30+P6tENUV2POR"
    stored = passwords.from_definitions(text, "rabbit_password_hashing_sha256")
    assert passwords.verify(stored, "test12")
    assert not passwords.verify(stored, "test13")


def test_hashes_of_ours_are_exported_and_imported() -> None:
    stored = passwords.make("secret", salt=SALT, cost=CHEAP)
    assert passwords.from_definitions(*passwords.to_definitions(stored)) == stored
    assert passwords.from_definitions(*passwords.to_definitions("")) == ""


@pytest.mark.parametrize(
    ("text", "algorithm"),
    [
        ("aaaa", "rabbit_password_hashing_sha256"),
        ("not base64!", "rabbit_password_hashing_sha256"),
        (b64encode(b"x" * 20).decode(), "rabbit_password_hashing_md5"),
        ("$scrypt$ln=4$a$b", passwords.SCRYPT_ALGORITHM),
        ("plain", ""),
    ],
)
def test_hashes_nobody_can_verify_are_refused(text: str, algorithm: str) -> None:
    with pytest.raises(RefusedError, match="cannot be used"):
        passwords.from_definitions(text, algorithm)


@pytest.mark.parametrize(
    "stored",
    [
        "",
        "secret",
        "$scrypt$",
        "$scrypt$ln=0,r=8,p=1$AAAA$AAAA",
        "$scrypt$ln=21,r=8,p=1$AAAA$AAAA",
        "$scrypt$ln=20,r=32,p=1$AAAA$AAAA",
        "$scrypt$ln=4,r=0,p=1$AAAA$AAAA",
        "$scrypt$ln=4,r=8,p=99$AAAA$AAAA",
        "$scrypt$ln=4,r=8,p=1$A$AAAA",
        "$rabbit_password_hashing_sha256$AAAA",
        "$rabbit_password_hashing_sha1$AAAA",
        "$rabbit_password_hashing_sha256$====",
    ],
)
def test_nobody_logs_in_with_a_text_that_is_no_hash(stored: str) -> None:
    assert not passwords.verify(stored, "secret")
    assert not passwords.verify(stored, "")
