"""`holdfast advise`: from need to engine, by questions on a terminal or by flags."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import click

from ..advice import QUESTIONS, Advice, Needs, Question, missing
from ..advice import advise as find_advice
from ..advice.promises import FACTS, cell, words
from ..model import Fault, Guarantees
from .base import Command
from .view import print_json

WIDTH = 96

EPILOG = """\b
Examples:
  holdfast advise                                   # asks, some eight questions
  holdfast advise --simpler no --reach host --guard yes
  holdfast advise --simpler no --reach machines --need efficiency --single-server yes \\
    --have redis,postgresql --guard no --pause 8
"""


def _words(question: Question) -> Callable[[str], frozenset[str]]:
    """Return what reads several answers, with commas between them."""

    def words_of(text: str) -> frozenset[str]:
        found = frozenset(text.lower().replace(",", " ").split())
        if not found or found - question.answers.keys():
            raise click.BadParameter(f"{text!r} is not {question.choices}.")
        if "nothing" in found and len(found) > 1:
            raise click.BadParameter(f"{text!r} names something beside nothing.")
        return found

    return words_of


def _type(question: Question) -> click.ParamType[Any]:
    if question.many:
        return click.types.FuncParamType(_words(question))
    if not question.answers:
        return click.FloatRange(0, 3600, min_open=True)
    return click.Choice(list(question.answers))


def _flags(function: Callable[..., Any]) -> Callable[..., Any]:
    """Give the command one flag for each question."""
    for question in reversed(QUESTIONS):
        metavar = "WORDS" if question.many else None if question.answers else "S"
        default = f"  [default: {question.optional}]" if question.optional else ""
        offered = f" ({', '.join(question.answers)})" if question.many else ""
        function = click.option(
            question.flag,
            question.name,
            type=_type(question),
            help=question.text + offered + default,
            metavar=metavar,
        )(function)
    return function


@click.command(cls=Command, epilog=EPILOG)
@_flags
@click.option("--json", "as_json", is_flag=True, help="Print a JSON object, with stable keys.")
def advise(as_json: bool, **said: Any) -> None:
    """Pick an engine, or something simpler than a lock.

    Asks on a terminal; flags answer in advance, and where they answer enough nothing is asked.
    Says what to use and why, what it promises and costs, which URL and TTL to start with, and what
    to watch.
    """
    needs = Needs(**said)
    if missing(needs) is not None:
        needs = _asked(needs)
    found = find_advice(needs)
    if as_json:
        print_json(found.document())
    else:
        click.echo("\n".join(_lines(found)))


def _asked(needs: Needs) -> Needs:
    """Ask whatever is not answered yet; without a terminal, name the first flag that is missing."""
    if not sys.stdin.isatty():
        question = missing(needs)
        assert question is not None
        raise click.UsageError(
            f"{question.flag} is missing, and there is no terminal to ask on. It answers: "
            f"{question.text} Give {question.choices}."
        )
    passed: set[str] = set()
    while (question := _next(needs, passed)) is not None:
        passed.add(question.name)
        needs = replace(needs, **{question.name: _ask(question)})
    click.echo(err=True)
    return needs


def _next(needs: Needs, passed: set[str]) -> Question | None:
    """Return the next question, leaving out those that were passed over with Enter."""
    for question in QUESTIONS:
        open_ = getattr(needs, question.name) is None and question.name not in passed
        if open_ and question.when(needs):
            return question
    return None


def _ask(question: Question) -> Any:
    """Ask on the terminal, on standard error: the answer alone goes to standard output."""
    click.echo(f"\n{question.text}", err=True)
    width = max(map(len, question.answers), default=0)
    for word, meaning in question.answers.items():
        if meaning:
            click.echo(f"  {word:<{width}}  {meaning}", err=True)
    short = "/".join(question.answers) if len(question.answers) < 5 else "words, with commas"
    kind = _type(question)

    def read(text: str) -> Any:
        return kind.convert(text.strip(), None, None) if text.strip() else None

    return click.prompt(
        short or "seconds",
        default=None if question.optional is None else "",
        show_default=False,
        prompt_suffix=f" [{question.optional}]: " if question.optional else ": ",
        value_proc=read,
        err=True,
    )


def _lines(found: Advice) -> Iterator[str]:
    """Yield the answer, paragraph by paragraph; what pauses can do comes first."""
    yield from _wrapped(found.first_line)
    if found.warning:
        yield from _wrapped(found.recommendation)
    yield from _part("Why", found.reasons)
    if found.promise is not None and found.cost is not None and found.ttl is not None:
        yield from _part("What it promises", _promise(found.promise))
        yield from _part("What it costs", [found.cost])
        yield from _part("Start with", [found.start, *found.ttl.reasons])
        yield from _part(
            "Watch (holdfast.observe, holdfast alerts)",
            [
                f"{one.metric}{f', alert {one.alert}' if one.alert else ''}: {one.meaning}"
                for one in found.watch
            ],
        )
    else:
        yield from _part("Start with", [found.start])


def _promise(promised: Guarantees) -> Iterator[str]:
    """Yield the row of the promise matrix."""
    under: dict[str, list[str]] = {}
    for fault in Fault:
        under.setdefault(cell(promised, fault), []).append(words(fault))
    yield f"Two never both see held, under: {', '.join(under['yes'])}."
    if "no" in under:
        yield f"Not under: {', '.join(under['no'])}."
    for said, wanted in (("Yes", True), ("No", False)):
        facts = [text for name, text in FACTS.items() if getattr(promised, name) is wanted]
        if facts:
            yield f"{said}: {'; '.join(facts)}."


def _part(title: str, paragraphs: Any) -> Iterator[str]:
    yield ""
    yield title
    for text in paragraphs:
        yield from _wrapped(text, "  ")


def _wrapped(text: str, indent: str = "") -> Iterator[str]:
    """Yield the lines of a paragraph; later ones stand further in, if the first does."""
    yield from click.wrap_text(
        text, WIDTH, initial_indent=indent, subsequent_indent=indent * 2
    ).split("\n")
