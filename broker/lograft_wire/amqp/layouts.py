"""How a method's dataclass becomes its bytes: the codec is made from the field annotations.

The arguments stand one behind the other in the order of the fields; neighbouring bits share an
octet, lowest first. `@method(50, 10, "queue.declare")` makes the class a frozen, slotted,
keyword-only dataclass and enters its layout in `LAYOUTS`, once, at import. `methods` looks there.
"""

import dataclasses
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Annotated, Any, ClassVar, Generic, TypeVar, dataclass_transform, get_args

from lograft_wire.amqp import fields, primitives, tables
from lograft_wire.amqp.primitives import Kind, Reader

_BIT = "bit"
_BITS_PER_OCTET = 8

Bit = Annotated[bool, _BIT]
Octet = Annotated[int, primitives.OCTET]
Short = Annotated[int, primitives.SHORT]
Long = Annotated[int, primitives.LONG]
LongLong = Annotated[int, primitives.LONGLONG]
ShortString = Annotated[str, primitives.SHORT_STRING]
RawString = Annotated[str, primitives.RAW_STRING]
LongString = Annotated[bytes, primitives.LONG_STRING]
Table = Annotated[fields.Table, primitives.TABLE]


class Method:
    """What all methods have in common. The names are in capitals because some have arguments
    called class_id and method_id."""

    __slots__ = ()
    CLASS_ID: ClassVar[int]
    METHOD_ID: ClassVar[int]
    NAME: ClassVar[str]  # as the specification writes it: "queue.declare-ok"
    HAS_CONTENT: ClassVar[bool]  # a content header and body follow


M = TypeVar("M", bound=Method)


class Layout(Generic[M]):
    """The arguments of one method in their order."""

    def __init__(self, make: type[M]) -> None:
        self.make = make
        self._steps = _steps(make)
        self._ids = b"".join(
            number.to_bytes(primitives.SHORT_BYTES) for number in (make.CLASS_ID, make.METHOD_ID)
        )

    def decode(self, arguments: bytes, limits: tables.Limits) -> M:
        reader = Reader(arguments, what=self.make.NAME, limits=limits)
        values: dict[str, object] = {}
        for step in self._steps:
            step.read(reader, values)
        reader.finish()
        return self.make(**values)

    def encode(self, method: M) -> bytes:
        out = bytearray(self._ids)
        for step in self._steps:
            step.write(out, method)
        return bytes(out)


LAYOUTS: dict[tuple[int, int], Layout[Any]] = {}


@dataclass_transform(frozen_default=True, kw_only_default=True, field_specifiers=(field,))
def method(
    class_id: int, method_id: int, name: str, *, has_content: bool = False
) -> Callable[[type[M]], type[M]]:
    def decorate(plain: type[M]) -> type[M]:
        made = dataclass(frozen=True, slots=True, kw_only=True)(plain)
        made.CLASS_ID, made.METHOD_ID, made.NAME = class_id, method_id, name
        made.HAS_CONTENT = has_content
        assert (class_id, method_id) not in LAYOUTS, (name, class_id, method_id)
        LAYOUTS[class_id, method_id] = Layout(made)
        return made

    return decorate


@dataclass(frozen=True, slots=True)
class _Argument:
    name: str
    kind: Kind[Any]

    def read(self, reader: Reader, values: dict[str, object]) -> None:
        reader.argument = self.name
        values[self.name] = self.kind.read(reader)

    def write(self, out: bytearray, method: Method) -> None:
        try:
            self.kind.write(out, getattr(method, self.name))
        except ValueError as error:
            raise ValueError(f"{method.NAME}: {self.name}: {error}") from error


@dataclass(frozen=True, slots=True)
class _Bits:
    names: list[str]

    def read(self, reader: Reader, values: dict[str, object]) -> None:
        """Bits beyond the last one are ignored, as RabbitMQ does."""
        reader.argument = self.names[0]
        octet = reader.octet()
        for place, name in enumerate(self.names):
            values[name] = bool(octet >> place & 1)

    def write(self, out: bytearray, method: Method) -> None:
        out.append(sum(1 << i for i, name in enumerate(self.names) if getattr(method, name)))


def _steps(make: type[Method]) -> Sequence[_Argument | _Bits]:
    steps: list[_Argument | _Bits] = []
    assert dataclasses.is_dataclass(make)
    for argument in dataclasses.fields(make):
        (kind,) = get_args(argument.type)[1:]
        if kind is not _BIT:
            steps.append(_Argument(argument.name, kind))
            continue
        last = steps[-1] if steps else None
        if isinstance(last, _Bits) and len(last.names) < _BITS_PER_OCTET:
            last.names.append(argument.name)
        else:
            steps.append(_Bits([argument.name]))
    return steps
