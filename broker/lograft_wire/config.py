"""The settings of `lograft serve`: one table of options, read from three places.

Every option is `--name` on the command line, `LOGRAFT_NAME` in the environment and `name` in the
YAML file; the command line wins over the environment, the environment over the file. The usage text
and the table in docs/OPERATING.md come from the same rows, so they cannot disagree. Whatever is
wrong is a ConfigError that names the option, the value, where it stood and what would be right.

Pure apart from the function that reads a file, which the caller hands in. Called by the broker's
command line; the value parsers live in `units`.
"""

import difflib
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

import yaml

from lograft_wire import units
from lograft_wire.errors import ConfigError
from lograft_wire.units import Peer

ENVIRONMENT_PREFIX = "LOGRAFT_"
SHARDS_PER_NODE = 4
SHARDS_MIN = 12
PEER_SECRET_CHARACTERS_MIN = 16


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """What one node was told. Field names are option names, with the unit where there is one."""

    data: str
    config: str
    node: str
    peers: tuple[Peer, ...]  # empty for a cluster of one, else with this node itself
    cluster_id: str
    host: str
    amqp_port: int
    http_port: int
    feed_port: int
    peer_port: int
    offset_checkpoint_interval_s: float  # 0: checkpoints by size only
    journal_file_bytes: int
    shards: int
    peer_secret: str = field(repr=False)  # empty: none; whatever file it came from is already read
    tls_cert: str
    tls_key: str
    tls_ca: str
    stop_grace_s: float
    log_level: str
    log_format: str

    @property
    def other_peers(self) -> tuple[Peer, ...]:
        return tuple(peer for peer in self.peers if peer.name != self.node)


@dataclass(frozen=True, slots=True, kw_only=True)
class Option:
    name: str
    value: str  # what stands behind the name in the usage text
    default: str
    help: str
    parse: Callable[[str], object]  # raises ValueError, whose text says what would be right
    alias: str = ""


@dataclass(frozen=True, slots=True)
class Given:
    """A value as it was written, and where."""

    text: str
    place: str


def _option(
    name: str,
    value: str,
    default: str,
    parse: Callable[[str], object],
    help: str,
    *,
    alias: str = "",
) -> Option:
    return Option(name=name, value=value, default=default, parse=parse, help=help, alias=alias)


_CHECKPOINT = units.duration_between("10ms", "1h", zero_allowed=True)
_GRACE = units.duration_between("0", "1h")
_JOURNAL_FILE = units.size_between("1MiB", "1GiB")
_SHARDS = units.number_between(1, 4096, words={"auto": 0})

OPTIONS = (
    _option("data", "DIR", "./data", units.text, "folder of this node", alias="storage-path"),
    _option("config", "FILE", "", units.text_or_empty, "YAML file with any of these settings"),
    _option("node", "NAME", "node-1", units.name, "name of this node, unique in its cluster"),
    _option("peers", "NAME=HOST:PORT,...", "", units.peers, "the cluster's nodes at first start"),
    _option("cluster-id", "ID", "lograft", units.name, "nodes of another id are turned away"),
    _option("host", "ADDR", "127.0.0.1", units.text, "address on which all ports listen"),
    _option("amqp-port", "PORT", "5672", units.port, "AMQP 0-9-1; 0 picks a free port"),
    _option("http-port", "PORT", "15672", units.port, "health and administration over HTTP"),
    _option("feed-port", "PORT", "7470", units.port, "the feed protocol"),
    _option("peer-port", "PORT", "7471", units.port, "Raft traffic between nodes"),
    _option(
        "offset-checkpoint-interval",
        "DURATION",
        "5s",
        _CHECKPOINT,
        "how often settled state and offsets are checkpointed; 0: by size only",
    ),
    _option("journal-file-bytes", "SIZE", "64MiB", _JOURNAL_FILE, "size of one journal file"),
    _option(
        "shards",
        "COUNT",
        "auto",
        _SHARDS,
        "data groups, fixed at first start; auto: 4 per node, at least 12",
    ),
    _option(
        "peer-secret",
        "TEXT",
        "",
        units.text_or_empty,
        "shared by all nodes; others can see it in the process list, so prefer the file",
    ),
    _option("peer-secret-file", "FILE", "", units.text_or_empty, "file that holds the secret"),
    _option("tls-cert", "FILE", "", units.text_or_empty, "this node's certificate for peers (PEM)"),
    _option("tls-key", "FILE", "", units.text_or_empty, "the key of that certificate (PEM)"),
    _option("tls-ca", "FILE", "", units.text_or_empty, "who signs the peers' certificates (PEM)"),
    _option("stop-grace", "DURATION", "20s", _GRACE, "longest time a stop may take to drain"),
    _option(
        "log-level",
        "LEVEL",
        "info",
        units.one_of("debug", "info", "warning", "error"),
        "debug, info, warning or error",
    ),
    _option("log-format", "FORMAT", "text", units.one_of("text", "json"), "text or json"),
)

_BY_NAME = {option.name: option for option in OPTIONS} | {
    option.alias: option for option in OPTIONS if option.alias
}
_BY_VARIABLE = {
    ENVIRONMENT_PREFIX + name.upper().replace("-", "_"): option for name, option in _BY_NAME.items()
}

# Kubernetes describes every Service of a namespace in its pods' environment. One called
# "lograft..." lands under our prefix: by such a name, or with an address for a value
# (LOGRAFT_AMQP_PORT=tcp://...).
_SERVICE_LINK_NAME = re.compile(
    r"_SERVICE_HOST$|_SERVICE_PORT(_\w+)?$|_PORT_\d+_(TCP|UDP|SCTP)(_\w+)?$"
)
_SERVICE_LINK_VALUE = re.compile(r"^(tcp|udp|sctp)://")


def load(
    argv: Sequence[str], environment: Mapping[str, str], *, read_file: Callable[[str], str]
) -> Settings:
    """Settings from all three places. `read_file` may raise OSError or UnicodeDecodeError."""
    given = from_environment(environment) | from_command_line(argv)
    config = given.get("config", Given("", "the default"))
    if config.text:
        given = from_file(_read(read_file, config), path=config.text) | given
    values = {option.name: _value(option, given.get(option.name)) for option in OPTIONS}
    values["peer-secret"] = _peer_secret(given, read_file)
    settings = _settings(values)
    _check_together(settings)
    return settings


def from_command_line(argv: Sequence[str]) -> dict[str, Given]:
    """`--name value` or `--name=value`; of several the last one counts."""
    given = {}
    words = iter(argv)
    for word in words:
        flag, equals, text = word.partition("=")
        option = _BY_NAME.get(flag.removeprefix("--")) if flag.startswith("--") else None
        if option is None:
            raise ConfigError(f"unknown option {flag!r}{_nearest(flag, _flags())}")
        if not equals:
            following = next(words, None)
            if following is None:
                raise ConfigError(f"{flag} needs a value: {flag} {option.value}")
            text = following
        given[option.name] = Given(text, flag)
    return given


def from_environment(environment: Mapping[str, str]) -> dict[str, Given]:
    given: dict[str, Given] = {}
    for variable, text in sorted(environment.items()):
        if not variable.startswith(ENVIRONMENT_PREFIX) or _is_service_link(variable, text):
            continue
        option = _BY_VARIABLE.get(variable)
        if option is None:
            raise ConfigError(
                f"unknown environment variable {variable}{_nearest(variable, _BY_VARIABLE)}"
            )
        _add(given, option, Given(text, variable))
    return given


def from_file(text: str, *, path: str) -> dict[str, Given]:
    try:
        content = yaml.safe_load(text)
    except yaml.YAMLError as error:
        raise ConfigError(f"{path} is not YAML: {error}") from error
    if content is None:
        return {}
    if not isinstance(content, dict):
        raise ConfigError(f"{path} must hold `name: value` lines, not a {type(content).__name__}")
    given: dict[str, Given] = {}
    for key, value in content.items():
        place = f"{key} in {path}"
        option = _BY_NAME.get(str(key))
        if option is None:
            raise ConfigError(f"unknown setting {place}{_nearest(str(key), _BY_NAME)}")
        if option.name == "config":
            raise ConfigError(f"{place}: a config file cannot name another one")
        _add(given, option, Given(_yaml_text(value, place), place))
    return given


def usage() -> str:
    lines = ["usage: lograft serve [OPTION VALUE]...", ""]
    for option in OPTIONS:
        alias = f" (also --{option.alias})" if option.alias else ""
        default = f" [{option.default}]" if option.default else ""
        lines.append(f"  --{option.name} {option.value}")
        lines.append(f"        {option.help}{alias}{default}")
    lines += ["", "Each is also LOGRAFT_<NAME> in the environment and a key of the --config file;"]
    lines += ["the command line wins over the environment, the environment over the file."]
    return "\n".join(lines)


def markdown_table() -> str:
    """The same rows for docs/OPERATING.md, which a test holds against this."""
    lines = ["| option | default | what it sets |", "|---|---|---|"]
    for option in OPTIONS:
        alias = f" (also `--{option.alias}`)" if option.alias else ""
        default = f"`{option.default}`" if option.default else "none"
        lines.append(f"| `--{option.name} {option.value}`{alias} | {default} | {option.help} |")
    return "\n".join(lines)


def _add(given: dict[str, Given], option: Option, new: Given) -> None:
    """A name and its alias in one place would leave the choice to chance."""
    old = given.get(option.name)
    if old is not None:
        raise ConfigError(f"{old.place} and {new.place} set the same thing: keep one of them")
    given[option.name] = new


def _is_service_link(variable: str, text: str) -> bool:
    return bool(_SERVICE_LINK_NAME.search(variable) or _SERVICE_LINK_VALUE.match(text))


def _yaml_text(value: object, place: str) -> str:
    """YAML has already guessed types; back to the text that the option's own parser reads."""
    match value:
        case bool() | float():
            raise ConfigError(
                f"{place}: {value} is a YAML {type(value).__name__}: put it in quotes"
            )
        case str() | int():
            return str(value)
        case None:
            return ""
        case dict():  # peers, one per line
            return ",".join(f"{name}={address}" for name, address in value.items())
        case _:
            raise ConfigError(f"{place}: expected one value, not a {type(value).__name__}")


def _value(option: Option, given: Given | None) -> object:
    if given is None:
        given = Given(option.default, "the default")
    try:
        return option.parse(given.text)
    except ValueError as error:
        shown = "the value" if option.name == "peer-secret" else repr(given.text)
        raise ConfigError(f"{given.place}: {shown} cannot be used: {error}") from error


def _peer_secret(given: Mapping[str, Given], read_file: Callable[[str], str]) -> str:
    direct, from_a_file = given.get("peer-secret"), given.get("peer-secret-file")
    if direct and from_a_file and direct.text and from_a_file.text:
        raise ConfigError(f"{direct.place} and {from_a_file.place} both give the secret: keep one")
    chosen, secret = direct, direct.text if direct else ""
    if from_a_file and from_a_file.text:
        chosen, secret = from_a_file, _read(read_file, from_a_file).strip()
    if chosen and chosen.text and len(secret) < PEER_SECRET_CHARACTERS_MIN:
        raise ConfigError(
            f"{chosen.place}: the secret has {len(secret)} characters; "
            f"use at least {PEER_SECRET_CHARACTERS_MIN} random ones"
        )
    return secret


def _read(read_file: Callable[[str], str], given: Given) -> str:
    try:
        return read_file(given.text)
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(f"{given.place}: cannot read {given.text}: {error}") from error


def _settings(values: Mapping[str, object]) -> Settings:
    """The one place where parsed values, typed by their parsers, become typed fields."""
    fields: dict[str, object] = {name.replace("-", "_"): value for name, value in values.items()}
    del fields["peer_secret_file"]
    for duration in ("offset_checkpoint_interval", "stop_grace"):
        fields[f"{duration}_s"] = fields.pop(duration)
    settings = Settings(**fields)  # type: ignore[arg-type]
    if settings.shards:
        return settings
    fields["shards"] = max(SHARDS_MIN, SHARDS_PER_NODE * len(settings.peers))
    return Settings(**fields)  # type: ignore[arg-type]


def _check_together(settings: Settings) -> None:
    tls = {"tls-cert": settings.tls_cert, "tls-key": settings.tls_key, "tls-ca": settings.tls_ca}
    absent = [f"--{name}" for name, path in tls.items() if not path]
    if 0 < len(absent) < len(tls):
        raise ConfigError(f"TLS between peers needs all of {_list(tls)}; {_list(absent)} not given")
    names = [peer.name for peer in settings.peers]
    if names and settings.node not in names:
        # A forgotten --node would otherwise quietly make a cluster with one member too many.
        raise ConfigError(
            f"--node {settings.node} is not among --peers ({', '.join(names)}): "
            "every node is given the same list, itself included"
        )
    if settings.other_peers and not settings.peer_secret:
        raise ConfigError(
            "--peers needs --peer-secret-file: nodes prove to each other who they are"
        )
    ports: dict[int, str] = {}
    for name in ("amqp_port", "http_port", "feed_port", "peer_port"):
        port = getattr(settings, name)
        flag = "--" + name.replace("_", "-")
        if port and port in ports:
            raise ConfigError(f"{ports[port]} and {flag} are both {port}: each needs its own port")
        ports[port] = flag


def _flags() -> list[str]:
    return [f"--{name}" for name in _BY_NAME]


def _nearest(word: str, known: Mapping[str, object] | Sequence[str]) -> str:
    close = difflib.get_close_matches(word, list(known), n=1, cutoff=0.0)
    return f"; did you mean {close[0]}?" if close else ""


def _list(words: Mapping[str, object] | Sequence[str]) -> str:
    return ", ".join("--" + word.removeprefix("--") for word in words)
