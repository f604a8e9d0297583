"""The guide that picks an engine: every rule, every path through the questions, every figure."""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest

import holdfast
from holdfast.advice import QUESTIONS, Advice, Needs, advise, measured, missing, promises
from holdfast.advice.needs import BRINGS
from holdfast.advice.rules import RULES, SIMPLER, decide
from holdfast.advice.starts import START, TITLES, URLS
from holdfast.advice.ttl import TOO_LONG, TOO_SHORT
from holdfast.advice.watching import ROWS
from holdfast.model import Fault
from holdfast.observe.alert_rules import ALERTS
from holdfast.observe.catalogue import METRICS
from tools import choosing
from tools import measured as figures_tool

FIRST = "Pauses can break this without a guard"


def lock(**said: Any) -> Needs:
    """Return the needs of somebody whose lock reaches machines and who has said this besides."""
    have = frozenset(said.pop("have", "nothing").split())
    return Needs(simpler="no", reach="machines", have=have, **{"guard": "yes", **said})


# What requirements.md says, line by line; then what follows where two lines meet.
RULED = {
    "an idempotency key will do": (Needs(simpler="key"), "key"),
    "a version column will do": (Needs(simpler="version"), "version"),
    "no lock at all": (Needs(simpler="split"), "split"),
    "double run harmless": (lock(need="efficiency", single="yes"), "redis"),
    "and no single point of failure, short, idempotent": (
        lock(need="efficiency", single="no", short="yes", idempotent="yes"),
        "redlock",
    ),
    "correctness": (lock(need="correctness"), "etcd"),
    "correctness, Kubernetes runs": (lock(need="correctness", have="kubernetes"), "etcd"),
    "correctness, Kafka runs": (lock(need="correctness", have="kafka"), "zookeeper"),
    "correctness, Hadoop runs": (lock(need="correctness", have="hadoop"), "zookeeper"),
    "correctness, both run": (lock(need="correctness", have="kafka kubernetes"), "etcd"),
    "election": (lock(need="election"), "etcd"),
    "election, Kafka runs": (lock(need="election", have="kafka redis"), "zookeeper"),
    "long holds": (lock(need="efficiency", single="no", short="no"), "etcd"),
    "not idempotent": (
        lock(need="efficiency", single="no", short="yes", idempotent="no", have="zookeeper"),
        "zookeeper",
    ),
    "no new system, low contention": (
        lock(need="correctness", have="postgresql", new="no", contention="low"),
        "postgresql",
    ),
    "no new system, low contention, harmless": (
        lock(need="efficiency", single="yes", have="postgresql", new="no", contention="low"),
        "postgresql",
    ),
    "a new system may be run": (
        lock(need="efficiency", single="yes", have="postgresql", new="yes"),
        "redis",
    ),
    "AWS only": (lock(need="correctness", have="aws"), "dynamodb"),
    "AWS only, harmless": (lock(need="efficiency", single="yes", have="aws"), "dynamodb"),
    "one host": (Needs(simpler="no", reach="host", guard="yes"), "sqlite"),
    "one process": (Needs(simpler="no", reach="process", guard="yes"), "memory"),
    "nothing but Redis, with a guard": (
        lock(need="correctness", have="redis", new="no"),
        "redis",
    ),
    "nothing but Redis, without": (
        lock(need="correctness", have="redis", new="no", guard="no"),
        "etcd",
    ),
}


@pytest.mark.parametrize(("needs", "answer"), RULED.values(), ids=RULED)
def test_rule(needs: Needs, answer: str) -> None:
    """Each rule of the requirements leads to its engine."""
    assert missing(needs) is None, "the case leaves something open"
    assert advise(needs).answer == answer


HAVE = ("redis", "kubernetes", "kafka", "postgresql", "aws")
SUBSETS = [
    frozenset(chosen) or frozenset({"nothing"})
    for count in range(len(HAVE) + 1)
    for chosen in itertools.combinations(HAVE, count)
]


def walk(needs: Needs, position: int = 0) -> Iterator[Needs]:
    """Yield the end of every path through the questions."""
    for number in range(position, len(QUESTIONS)):
        question = QUESTIONS[number]
        if not question.when(needs):
            continue
        answers: list[Any] = list(question.answers) or [0.1, 8.0, 3600.0]
        if question.many:
            answers = list(SUBSETS)
        if question.optional is not None:
            answers.append(None)
        for answer in answers:
            yield from walk(replace(needs, **{question.name: answer}), number + 1)
        return
    yield needs


ENDS = list(walk(Needs()))


def test_every_path_has_one_answer_with_reasons() -> None:
    """Whatever is answered, there is one recommendation, and all that must come with it."""
    assert len(ENDS) > 3000
    for needs in ENDS:
        found = advise(needs)
        assert found.recommendation.startswith(("Use ", "No lock"))
        assert found.reasons
        assert all(reason.endswith(".") for reason in found.reasons)
        if found.answer in SIMPLER:
            assert found.engine is None
            continue
        assert found.engine == found.answer
        assert found.promise is not None
        assert found.url == URLS[found.engine]
        assert found.ttl is not None
        assert found.promise.min_ttl <= found.ttl.seconds
        assert found.ttl.seconds <= (found.ttl.max_ttl or found.promise.max_ttl)
        assert {TOO_SHORT, TOO_LONG} <= set(found.ttl.reasons)
        assert found.watch
        assert found.cost


def test_pauses_come_first_whenever_no_guard_is_there() -> None:
    """The first line says that pauses can break the answer, unless they cannot."""
    for needs in ENDS:
        found = advise(needs)
        broken = found.engine is not None and needs.guard != "yes"
        assert found.first_line.startswith(FIRST) is broken, needs
        assert (found.warning is not None) is broken
        if found.engine is not None and not broken:
            assert "guard" in found.recommendation


def test_no_answer_contradicts_what_was_said() -> None:
    """No strict need without guard gets Redis; a new system is only brought where it must be."""
    for needs in ENDS:
        engine = advise(needs).engine
        if needs.strict and not needs.guarded:
            assert engine not in ("redis", "redlock"), needs
        if needs.new == "no" and engine not in needs.engines:
            extends = engine == "redlock" and "redis" in needs.engines
            assert extends or "new system after all" in advise(needs).reasons[0], needs


def test_answers_to_questions_that_were_not_asked_change_nothing() -> None:
    """A script may say more than it is asked."""
    for needs in ENDS[::7]:
        for end in (0, -1):
            more: dict[str, Any] = {
                question.name: list(question.answers)[end]
                for question in QUESTIONS
                if getattr(needs, question.name) is None
                and question.answers
                and not question.many
                and not question.when(needs)
            }
            assert advise(replace(needs, **more)) == advise(needs)


def test_every_rule_decides_something() -> None:
    """No rule is hidden behind another."""
    assert {id(decide(needs)) for needs in ENDS} == {id(rule) for rule in RULES}


def test_open_questions_are_named() -> None:
    """Without an answer that matters there is no advice, but a sentence with the flag."""
    with pytest.raises(ValueError, match=r"--reach is not answered yet: Who must be kept apart\?"):
        advise(Needs(simpler="no"))


def sized(**said: Any) -> Advice:
    """Return the advice for somebody who has said this about time."""
    return advise(lock(need="efficiency", single="yes", **said))


@pytest.mark.parametrize(
    ("said", "seconds"),
    [
        ({}, 30),
        ({"work": "interactive"}, 30),
        ({"work": "batch"}, 60),
        ({"pause": 0.2}, 10),
        ({"pause": 8}, 25),
        ({"pause": 15, "work": "batch"}, 45),
        ({"pause": 15, "have": "zookeeper", "new": "no"}, 60),
        ({"pause": 200}, 600),
    ],
)
def test_ttl(said: dict[str, Any], seconds: float) -> None:
    """Three times the longest pause, four with ZooKeeper; 30 s for interactive work if unknown."""
    found = sized(**said)
    assert found.ttl is not None
    assert found.ttl.seconds == seconds
    assert f"ttl={seconds:g}" in found.start


def test_ttl_beyond_the_usual_bounds_says_what_to_raise() -> None:
    """Above max_ttl the start has the option; above a session's bound the server's is named."""
    assert "max_ttl=600" in sized(pause=200).start
    session = sized(pause=15, have="zookeeper", new="no").ttl
    assert session is not None
    assert any("maxSessionTimeout" in reason for reason in session.reasons)


def test_promises_are_what_the_engines_declare() -> None:
    """The packaged row and the engine's own `guarantees` are the same, for every engine."""
    assert promises.promises() == choosing.declared()
    for engine, impossible in promises.IMPOSSIBLE.items():
        assert not impossible & promises.promises()[engine].exclusive


def test_page_and_data_are_up_to_date() -> None:
    """docs/choosing.md and promises.json are what tools/choosing.py makes."""
    for path, text in choosing.wanted().items():
        assert path.read_text(encoding="utf-8") == text, f"{path.name}: run tools/choosing.py"


@pytest.mark.parametrize("engine", URLS)
def test_url_to_start_with_is_of_that_engine(engine: str) -> None:
    """What advise prints can be run as it stands, up to the host names."""
    with holdfast.connect(URLS[engine], ttl=30) as client:
        assert client.guarantees.engine == engine


def test_every_answer_has_a_title_and_a_start() -> None:
    """No rule leads to an answer that nobody has described."""
    answers = {rule.answer for rule in RULES}
    assert answers == TITLES.keys() == START.keys() | URLS.keys()
    assert set(BRINGS.values()) - {""} <= answers
    assert not START.keys() & URLS.keys()


def test_what_to_watch_exists() -> None:
    """Every metric is of the catalogue, every alert of the rules, and clocks are watched where
    they matter."""
    assert {row.metric for row in ROWS} <= set(METRICS)
    assert {row.alert for row in ROWS} - {""} <= {alert.name for alert in ALERTS}
    for needs in ENDS[::5]:
        found = advise(needs)
        if found.promise is not None:
            alerts = {one.alert for one in found.watch}
            clocks = Fault.SERVER_CLOCK_STEP not in found.promise.exclusive
            assert ("LockServerClock" in alerts) is clocks
            assert ("FencingTokenRejected" in alerts) is needs.guarded


def test_cost_is_measured_or_says_how(monkeypatch: pytest.MonkeyPatch) -> None:
    """With figures they are told with machine and date, without them the command is."""
    figures = {"redis": measured.Figures(81.6, 11234, "2 cores", "2026-11-16")}
    monkeypatch.setattr(measured, "measured", lambda: figures)
    found = sized()
    assert found.cost is not None
    assert re.match(r"82 µs .* 11,234 pairs a second \(2 cores, 2026-11-16\)", found.cost)
    assert found.document()["measured"]["pair_us"] == 81.6
    other = advise(lock(need="election"))
    assert other.cost is not None
    assert other.cost.endswith("holdfast bench --engine etcd")
    assert other.document()["measured"] is None


def row(role: str, scenario: str, **figures: float | None) -> dict[str, Any]:
    """Return a row of a run, with what the tool looks at."""
    named = {name.replace("_per_", "/").replace("_", " "): one for name, one in figures.items()}
    return {"engine": "redis", "role": role, "scenario": scenario, "figures": named}


def test_figures_are_taken_from_a_run() -> None:
    """The tool takes ours, the pair alone and the highest rate, and leaves out what has none."""
    run: dict[str, Any] = {
        "version": 1,
        "made": "2026-11-16T05:50:00+00:00",
        "machine": {"cores": 2, "cpu": "some"},
        "rows": [
            row("floor", "pair", pair_p50=50.0, pairs_per_s=20000.0),
            row("ours", "pair", pair_p50=81.64, pairs_per_s=11000.0),
            row("ours", "own keys", pair_p50=200.0, pairs_per_s=15000.0),
            row("ours", "own keys", pairs_per_s=None),
            row("ours", "hot key", pairs_per_s=90000.0),
            {**row("ours", "pair"), "engine": "etcd"},
        ],
    }
    expected = measured.Figures(81.6, 15000.0, "2 cores, some", "2026-11-16")
    assert figures_tool.figures(run) == {"redis": expected}
    with pytest.raises(ValueError, match="its version is None"):
        figures_tool.figures({})
    with pytest.raises(ValueError, match="no figures of holdfast"):
        figures_tool.figures({**run, "rows": []})


def test_page_shows_figures_once_there_are_some(monkeypatch: pytest.MonkeyPatch) -> None:
    """Measured figures stand beside the claimed ones, and where they come from below."""
    figures = {"redis": measured.Figures(81.6, 11234.0, "2 cores", "2026-11-16")}
    monkeypatch.setattr(choosing, "measured", lambda: figures)
    lines = list(choosing.figures())
    assert "| redis | 0.5–2 ms | 82 µs | 50,000–100,000 | 11,234 |" in lines
    assert lines[-1] == "Measured on: 2 cores, 2026-11-16."
