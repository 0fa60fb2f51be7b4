"""Values that nothing may change: what they have of a dataclass, method by method."""

from __future__ import annotations

from dataclasses import dataclass, field, fields, replace
from functools import cached_property

import pytest

from patchq.core.model.frozen import frozen


@frozen
class Place:
    path: str
    line: int = 1
    seen: bool = field(default=False, compare=False)
    near: str = field(default="", repr=False)


@frozen
class Nothing: ...


@frozen(slots=False, kw_only=True)
class Text:
    text: str
    name: str = ""

    @cached_property
    def lines(self) -> list[str]:
        return self.text.split("\n")


@frozen(slots=False, kw_only=True)
class Numbered(Text):
    number: int


@frozen
class Folded:
    name: str

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Folded) and other.name.lower() == self.name.lower()

    def __hash__(self) -> int:
        return hash(self.name.lower())

    def __repr__(self) -> str:
        return self.name


@dataclass(frozen=True, slots=True)
class Reference:
    path: str
    line: int = 1
    seen: bool = field(default=False, compare=False)
    near: str = field(default="", repr=False)


@pytest.mark.parametrize(
    ("one", "other", "same"),
    [
        (Place("a"), Place("a", 1), True),
        (Place("a"), Place("b"), False),
        (Place("a", 1), Place("a", 2), False),
        (Place("a", near="b"), Place("a", near="c"), False),
        (Place("a", seen=True), Place("a"), True),
        (Place("a"), Reference("a"), False),
        (Nothing(), Nothing(), True),
        (Text(text="a"), Text(text="a"), True),
        (Numbered(text="a", number=1), Numbered(text="a", number=2), False),
        (Text(text="a"), Numbered(text="a", number=1), False),
        (Folded("A"), Folded("a"), True),
    ],
)
def test_equal_are_those_of_one_class_and_the_same_fields(
    one: object, other: object, same: bool
) -> None:
    assert (one == other) is (other == one) is same
    assert len({one, other}) == (1 if same else 2)


def test_it_says_what_a_dataclass_says() -> None:
    assert repr(Place("a", 2, True, "b")) == repr(Reference("a", 2, True, "b")).replace(
        "Reference", "Place"
    )
    assert repr(Nothing()) == "Nothing()"
    assert repr(Folded("A")) == "A"
    assert [one.name for one in fields(Place)] == [one.name for one in fields(Reference)]
    assert Place.__match_args__ == Reference.__match_args__


def test_a_copy_has_other_fields_and_works_out_anew() -> None:
    first = Numbered(text="a\nb", number=1)
    assert first.lines == ["a", "b"]
    assert replace(first, text="c").lines == ["c"]
    assert replace(first, text="c") == Numbered(text="c", number=1)


def test_there_is_no_room_for_what_is_no_field() -> None:
    with pytest.raises(AttributeError):
        Place("a").other = 1  # type: ignore[attr-defined]


def test_what_cannot_be_hashed_is_not() -> None:
    with pytest.raises(TypeError, match="unhashable"):
        hash(Place(["a"]))  # type: ignore[arg-type]
