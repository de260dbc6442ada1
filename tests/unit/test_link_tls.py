"""Mutual TLS under the handshake: with a certificate of the cluster's own authority, or none."""

import asyncio
import datetime
import ipaddress
import ssl
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest
import uvloop
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from lograft_replication import codec
from lograft_replication.link_protocol import Limits
from lograft_replication.messages import Append
from lograft_wire.errors import ConfigError
from support.link_nodes import LIMITS, NOWHERE, LogWatch, Node, RawPeer, identity, introduce


@dataclass(frozen=True)
class Authority:
    folder: Path
    key: ec.EllipticCurvePrivateKey
    certificate: x509.Certificate

    @property
    def file(self) -> Path:
        return self.folder / "authority.pem"

    @classmethod
    def make(cls, folder: Path) -> "Authority":
        folder.mkdir()
        key = ec.generate_private_key(ec.SECP256R1())
        name = _name("test authority")
        builder = _builder(name, name, key, issuer_key=key)
        builder = builder.add_extension(x509.BasicConstraints(ca=True, path_length=None), True)
        builder = builder.add_extension(_SIGNS, critical=True)
        made = cls(folder, key, builder.sign(key, hashes.SHA256()))
        made.file.write_bytes(made.certificate.public_bytes(serialization.Encoding.PEM))
        return made

    def issue(self, name: str) -> Path:
        """Key and certificate of one node in one file."""
        key = ec.generate_private_key(ec.SECP256R1())
        issuer = self.certificate.subject
        builder = _builder(_name(name), issuer, key, issuer_key=self.key).add_extension(
            x509.SubjectAlternativeName([x509.IPAddress(ipaddress.ip_address("127.0.0.1"))]),
            critical=False,
        )
        certificate = builder.sign(self.key, hashes.SHA256())
        plain = serialization.NoEncryption()
        pem, pkcs8 = serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8
        file = self.folder / f"{name}.pem"
        file.write_bytes(key.private_bytes(pem, pkcs8, plain) + certificate.public_bytes(pem))
        return file

    def contexts(self, name: str) -> tuple[ssl.SSLContext, ssl.SSLContext]:
        """Server and client side of one node, each demanding the other's certificate."""
        file = self.issue(name)
        server = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH, cafile=self.file)
        server.verify_mode = ssl.CERT_REQUIRED
        client = ssl.create_default_context(ssl.Purpose.SERVER_AUTH, cafile=self.file)
        for context in (server, client):
            context.load_cert_chain(file)
        return server, client


def _name(text: str) -> x509.Name:
    return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, text)])


_SIGNS = x509.KeyUsage(
    digital_signature=False,
    content_commitment=False,
    key_encipherment=False,
    data_encipherment=False,
    key_agreement=False,
    key_cert_sign=True,
    crl_sign=False,
    encipher_only=False,
    decipher_only=False,
)


def _builder(
    subject: x509.Name,
    issuer: x509.Name,
    key: ec.EllipticCurvePrivateKey,
    *,
    issuer_key: ec.EllipticCurvePrivateKey,
) -> x509.CertificateBuilder:
    """With the key identifiers that Python 3.13 and later insist on."""
    now = datetime.datetime.now(datetime.UTC)
    authority = x509.AuthorityKeyIdentifier.from_issuer_public_key(issuer_key.public_key())
    return (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - datetime.timedelta(hours=1))
        .not_valid_after(now + datetime.timedelta(hours=1))
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(key.public_key()), critical=False)
        .add_extension(authority, critical=False)
    )


@pytest.fixture
def authority(tmp_path: Path) -> Authority:
    return Authority.make(tmp_path / "ours")


def tls_node(
    name: str, other: str, contexts: tuple[ssl.SSLContext, ssl.SSLContext], limits: Limits = LIMITS
) -> Node:
    server, client = contexts
    return Node(
        identity(name),
        addresses={other: NOWHERE},
        limits=limits,
        server_tls=server,
        client_tls=client,
    )


@pytest.mark.parametrize("loop_factory", [asyncio.new_event_loop, uvloop.new_event_loop])
def test_nodes_of_one_authority_talk(
    authority: Authority, loop_factory: Callable[[], asyncio.AbstractEventLoop]
) -> None:
    with asyncio.Runner(loop_factory=loop_factory) as runner:
        runner.run(_talk(authority))


async def _talk(authority: Authority) -> None:
    a = tls_node("a", "b", authority.contexts("a"))
    b = tls_node("b", "a", authority.contexts("b"))
    async with a, b:
        introduce(a, b)
        await a.host.until_events("up")
        await b.host.until_events("up")
        sent = []
        for size in (10, 100_000, 3_000_000):
            step = 1 << 20
            cut = [bytes(min(step, size - at)) for at in range(0, size, step)]
            entries = tuple((data, 2 + i, 1) for i, data in enumerate(cut))
            parts = codec.encode(1, Append(1, 1, 1, 1, entries))
            assert a.network.send(b.id, parts)
            assert b.network.send(a.id, parts)
            sent.append(b"".join(parts))
        await b.host.until(lambda: b.host.frames == [(a.id, frame) for frame in sent])
        await a.host.until(lambda: a.host.frames == [(b.id, frame) for frame in sent])


async def test_a_restarted_node_is_seen_through_tls(authority: Authority) -> None:
    b = tls_node("b", "a", authority.contexts("b"))
    async with b:
        async with tls_node("a", "b", authority.contexts("a")) as a:
            introduce(a, b)
            await b.host.until_events("up")
        await b.host.until_events("up", "down", "gone")


async def test_a_certificate_of_another_authority_is_refused(
    authority: Authority, tmp_path: Path
) -> None:
    foreign = Authority.make(tmp_path / "theirs")
    a = tls_node("a", "b", foreign.contexts("a"))
    b = tls_node("b", "a", authority.contexts("b"))
    with LogWatch() as log:
        async with a, b:
            introduce(a, b)
            await log.until("CERTIFICATE_VERIFY_FAILED")
    assert (a.host.events, b.host.events) == ([], [])


async def test_a_client_without_certificate_never_reaches_the_handshake(
    authority: Authority,
) -> None:
    async with tls_node("b", "a", authority.contexts("b")) as b:
        bare = ssl.create_default_context(cafile=authority.file)
        reader, writer = await asyncio.open_connection(*b.network.address, ssl=bare)
        try:
            with pytest.raises((ssl.SSLError, ConnectionError, asyncio.IncompleteReadError)):
                # TLS 1.3 tells a client of the refusal with its first read.
                await asyncio.wait_for(reader.readexactly(1), 20)
        finally:
            writer.transport.abort()
        assert b.host.events == []


async def test_a_plain_or_silent_connection_to_a_tls_port_is_cut_off(authority: Authority) -> None:
    limits = Limits(handshake_s_max=0.2, retry_s_max=0.05)
    b = tls_node("b", "a", authority.contexts("b"), limits)
    async with b:
        async with await RawPeer.connect(b) as plain, await RawPeer.connect(b) as silent:
            await plain.send(b"LGPEER\r\n\x01" * 10)
            await plain.until_closed()
            await silent.until_closed()
        async with tls_node("a", "b", authority.contexts("a")) as a:
            introduce(a, b)
            await b.host.until_events("up")


def test_tls_that_is_not_mutual_is_a_wrong_setting(authority: Authority) -> None:
    server, client = authority.contexts("a")
    lax = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    with pytest.raises(ConfigError, match="both"):
        Node(identity("a"), addresses={}, server_tls=server)
    with pytest.raises(ConfigError, match="mutual"):
        Node(identity("a"), addresses={}, server_tls=lax, client_tls=client)
