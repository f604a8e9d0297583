"""Names, by their properties: every name has one safe key, and no two names share one (S5)."""

from __future__ import annotations

import re
import unicodedata

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from holdfast.errors import InvalidName
from holdfast.names import MAX_BYTES, decode, encode, encode_path, encode_prefix, record_key

# Some characters that combine, so that NFC has something to do.
TEXT = st.text(
    st.one_of(
        st.characters(exclude_categories=("Cc", "Cs")),
        st.sampled_from("aeAE/%\u0301\u030a\u0327Å\u212b"),
    ),
    min_size=1,
    max_size=40,
)


def nfc(text: str) -> str:
    return unicodedata.normalize("NFC", text)


def fits(text: str) -> bool:
    return 0 < len(nfc(text).encode()) <= MAX_BYTES


NAMES = TEXT.filter(fits)


@given(NAMES)
def test_a_key_is_safe_and_can_be_read_back(name: str) -> None:
    """Only [A-Za-z0-9_%-] is left, and decoding gives the normalised name."""
    key = encode(name)
    assert re.fullmatch(r"(?:[A-Za-z0-9_-]|%[0-9A-F]{2})+", key)
    assert decode(key) == nfc(name)


@given(NAMES, NAMES)
def test_two_names_share_a_key_only_if_they_are_the_same_text(one: str, other: str) -> None:
    """After normalisation, and only then."""
    assert (encode(one) == encode(other)) == (nfc(one) == nfc(other))


@given(NAMES)
def test_spelling_does_not_matter(name: str) -> None:
    """Composed and decomposed spellings of a name are one lock."""
    assume(fits(unicodedata.normalize("NFD", name)))
    assert encode(unicodedata.normalize("NFD", name)) == encode(name)


@given(NAMES, st.one_of(NAMES, st.just("")))
def test_a_prefix_of_a_name_is_a_prefix_of_its_key(name: str, prefix: str) -> None:
    """And nothing else is: `locks(prefix)` finds exactly those that start with it."""
    starts = nfc(name).startswith(nfc(prefix))
    assert encode(name).startswith(encode_prefix(prefix)) == starts


@given(NAMES, NAMES)
def test_what_follows_a_prefix_does_not_change_it(prefix: str, rest: str) -> None:
    """The same, made to happen: unless the two parts melt into one character."""
    name = prefix + rest
    assume(fits(name) and nfc(name).startswith(nfc(prefix)))
    assert encode(name).startswith(encode(prefix))


@given(NAMES, NAMES, NAMES, NAMES)
def test_a_record_key_says_which_namespace_and_which_name(
    space: str, name: str, other_space: str, other_name: str
) -> None:
    """No name of one namespace can be taken for a name of another."""
    same = (nfc(space), nfc(name)) == (nfc(other_space), nfc(other_name))
    keys = record_key(space, encode(name)), record_key(other_space, encode(other_name))
    assert (keys[0] == keys[1]) == same
    assert keys[0].split("/") == [encode(space), "1", encode(name)]


@given(st.lists(TEXT.map(lambda text: text.replace("/", "-")), min_size=1, max_size=5))
def test_a_path_has_one_key_per_segment(segments: list[str]) -> None:
    """A tree path is split at each slash, and only there."""
    path = "/".join(segments)
    assume(fits(path))
    assert encode_path(path) == tuple(encode(segment) for segment in segments)


BAD = {
    "empty": "",
    "a control character": "a\x00b",
    "a line end": "a\n",
    "a C1 control": "a\x85",
    "a lone surrogate": "\ud800",
    "256 bytes": "x" * 256,
    "256 bytes in UTF-8": "é" * 128,
    "not a string": b"x",
    "nothing": None,
}


@pytest.mark.parametrize("name", BAD.values(), ids=BAD)
def test_a_bad_name_is_refused_in_one_sentence(name: str) -> None:
    """Whatever is wrong with it, the message is short, ends, and has no raw control character."""
    with pytest.raises(InvalidName) as caught:
        encode(name)
    message = str(caught.value)
    assert message.endswith(".")
    assert len(message) < 300
    assert message.isprintable()


@pytest.mark.parametrize("path", ["", "/", "a/", "/a", "a//b", None, 7])
def test_a_bad_path_is_refused(path: str) -> None:
    """No segment of a path is empty."""
    with pytest.raises(InvalidName):
        encode_path(path)


def test_the_longest_name() -> None:
    """255 bytes are allowed, counted after normalisation."""
    assert len(encode("x" * 255)) == 255
    assert decode(encode("e\u0301" * 127 + "x")) == "é" * 127 + "x"
