"""The places in a run where CPython may deliver a signal: counts them, and raises at one.

Rule 1: a signal comes at the start of a function or generator step, after a call into C, after a
        turn of a loop. It does not come between two plain statements, nor on the way from a body
        into `finally` or `__exit__`: what an interrupt can never see is no bug.
Rule 2: where Python can only be made to raise one instruction later (3.11), a place is left out if
        that instruction has another handler: a signal would be caught differently.
Rule 3: `__del__`, and what it calls, is left out: Python swallows what is raised there.
"""

from __future__ import annotations

import dis
import sys
import threading
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from pathlib import Path
from types import CodeType, FrameType
from typing import Any

PACKAGE = Path(__file__).resolve().parent.parent

START = -1  # the offset "before" the first instruction
CHECKED = (
    *("CALL", "CALL_FUNCTION_EX", "JUMP_BACKWARD"),
    *(f"POP_JUMP_BACKWARD_IF_{what}" for what in ("FALSE", "TRUE", "NONE", "NOT_NONE")),
)


class Places(ABC):
    """Counts the places that a call passes, and raises at one of them."""

    def __init__(self, files: Sequence[Path]) -> None:
        self._files = tuple(str(path.resolve()) for path in files)
        self._concerned: dict[CodeType, bool] = {}
        self._left, self._error = 0, KeyboardInterrupt
        self.where = ""  # set when the place is reached

    def start(self, point: int, error: type[BaseException]) -> None:
        """Raise at this place, counted from now on, in this thread."""
        self._left, self._error, self.where = point, error, ""  # type: ignore[assignment]
        self._begin()

    @abstractmethod
    def _begin(self) -> None: ...

    @abstractmethod
    def stop(self) -> None:
        """Look no more."""

    def _concerns(self, code: CodeType) -> bool:
        if code not in self._concerned:
            file = code.co_filename
            ours = file.startswith(self._files)
            self._concerned[code] = ours and not file.startswith(str(PACKAGE / "testing"))
        return self._concerned[code]

    def _pass(self, frame: FrameType) -> None:
        """Count one place; raise if it is the one."""
        if self.where:
            return
        self._left -= 1
        if self._left == 0:
            self.where = describe(frame)
            raise self._error("raised on purpose")


def find_places(files: Sequence[Path], everywhere: bool) -> Places:
    """Return what suits this Python; with `everywhere` each line is a place."""
    if sys.version_info >= (3, 12) and not everywhere:
        return MonitoredPlaces(files)
    return TracedPlaces(files, everywhere)


class Code:
    """What there is to know about the instructions of one function."""

    def __init__(self, code: CodeType) -> None:
        steps = list(dis.get_instructions(code))
        self.checked = {step.offset for step in steps if step.opname in CHECKED}
        # `try:` and the way into __exit__: nothing can come there, and nothing could be done.
        self.spared = {step.offset for step in steps if step.opname == "NOP"}
        for number, step in enumerate(steps):
            if step.opname == "WITH_EXCEPT_START" or _calls_exit(steps[number : number + 5]):
                self.spared.add(step.offset)
                while number and steps[number - 1].opname in ("NOP", "SWAP", "PUSH_EXC_INFO"):
                    number -= 1
                    self.spared.add(steps[number].offset)
        if sys.version_info >= (3, 12):
            # What a trace function raises on a jump back inside a comprehension leaves the `with`
            # around it without __exit__; a signal does not (tried).
            starts = {start for start, _ in dis.findlinestarts(code)}
            self.spared |= {step.offset for step in steps} - starts
        table = dis.Bytecode(code).exception_entries  # type: ignore[attr-defined]
        self._handlers = [(entry.start, entry.end, entry.target) for entry in table]

    def handler(self, offset: int) -> int | None:
        """Return where an exception at this offset is handled."""
        return next((to for start, end, to in self._handlers if start <= offset < end), None)


def _calls_exit(steps: Sequence[dis.Instruction]) -> bool:
    """Recognise __exit__(None, None, None)."""
    nothing = [one for one in steps[:3] if one.opname == "LOAD_CONST" and one.argval is None]
    return len(nothing) == 3 and any(one.opname == "CALL" for one in steps[3:])


class TracedPlaces(Places):
    """By sys.settrace(): lines, or (on 3.11) the instructions behind each place."""

    def __init__(self, files: Sequence[Path], everywhere: bool) -> None:
        super().__init__(files)
        self._everywhere = everywhere
        self._codes: dict[CodeType, Code] = {}
        self._finalizers = 0
        self._last = (0, 0)  # the frame and the offset of the last instruction that was seen

    def _begin(self) -> None:
        self._finalizers = 0
        self._before = sys.gettrace()
        sys.settrace(self._enter)

    def stop(self) -> None:
        """See Places."""
        sys.settrace(self._before)

    def _enter(self, frame: FrameType, event: str, _: object) -> Callable[..., Any] | None:
        code = frame.f_code
        if self._finalizers or self.where or not self._concerns(code):
            return None
        if code.co_name == "__del__":
            self._finalizers += 1
            return self._finalize
        if code not in self._codes:
            self._codes[code] = Code(code)
        frame.f_trace_opcodes = not self._everywhere
        frame.f_trace_lines = self._everywhere
        self._last = id(frame), START
        return self._look

    def _finalize(self, frame: FrameType, event: str, _: object) -> Callable[..., Any]:
        self._finalizers -= event == "return"
        return self._finalize

    def _look(self, frame: FrameType, event: str, _: object) -> Callable[..., Any]:
        if event in ("opcode", "line"):
            if self._is_place(frame):
                self._pass(frame)
            self._last = id(frame), frame.f_lasti
        return self._look

    def _is_place(self, frame: FrameType) -> bool:
        code = self._codes[frame.f_code]
        if frame.f_lasti in code.spared:
            return False
        if self._everywhere:
            return True
        # A call of another function of ours is not followed by a check of its own: then the last
        # instruction that was seen is one of that function's.
        where, before = self._last
        if where != id(frame) or before == START:
            return where == id(frame)
        return before in code.checked and code.handler(before) == code.handler(frame.f_lasti)


class MonitoredPlaces(Places):
    """By sys.monitoring, from 3.12 on: raises exactly where a signal would."""

    _home = 0  # the thread that is interrupted

    def _begin(self) -> None:
        if sys.version_info >= (3, 12):
            monitor, events = sys.monitoring, sys.monitoring.events
            self._home = threading.get_ident()
            self._tool = next(one for one in range(6) if monitor.get_tool(one) is None)
            monitor.use_tool_id(self._tool, "holdfast.testing")
            for event in (events.PY_START, events.PY_RESUME, events.C_RETURN):
                monitor.register_callback(self._tool, event, self._look)
            monitor.register_callback(self._tool, events.CALL, self._skip)
            # C_RETURN comes with CALL.
            monitor.set_events(self._tool, events.PY_START | events.PY_RESUME | events.CALL)

    def stop(self) -> None:
        """See Places."""
        if sys.version_info >= (3, 12):
            sys.monitoring.set_events(self._tool, 0)
            sys.monitoring.free_tool_id(self._tool)
            sys.monitoring.restart_events()

    def _skip(self, code: CodeType, *_: object) -> object:
        """Hear no more of what is none of our business: it would cost time."""
        if sys.version_info >= (3, 12) and not self._concerns(code):
            return sys.monitoring.DISABLE
        return None

    def _look(self, code: CodeType, *_: object) -> None:
        if self._concerns(code) and threading.get_ident() == self._home and not self.where:
            frame: FrameType | None = sys._getframe(1)
            while frame is not None and frame.f_code.co_name != "__del__":
                frame = frame.f_back
            if frame is None:
                self._pass(sys._getframe(1))


def describe(frame: FrameType) -> str:
    """Name a place for people."""
    code = frame.f_code
    file = code.co_filename.removeprefix(f"{PACKAGE}/")
    return f"{file}:{frame.f_lineno} in {code.co_qualname}"
