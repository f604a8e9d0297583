"""docs/reliability.md is what the measured matrix says, and nothing else."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from holdfast.cli import main
from holdfast.lab.document import write_page
from holdfast.lab.nemeses import NEMESES

DOCS = Path(__file__).resolve().parents[2] / "docs"
MATRIX = DOCS / "reliability" / "matrix.json"
PAGE = DOCS / "reliability.md"
REMEDY = "holdfast lab page docs/reliability/matrix.json > docs/reliability.md"


@pytest.fixture
def matrix() -> dict[str, Any]:
    found = json.loads(MATRIX.read_text(encoding="utf-8"))
    assert isinstance(found, dict)
    return found


def test_page_is_written_from_the_matrix(matrix: dict[str, Any]) -> None:
    """Who changes the one writes the other anew."""
    assert PAGE.read_text(encoding="utf-8") == write_page(matrix), f"remedy: {REMEDY}"


def test_matrix_is_whole_and_nothing_in_it_is_broken(matrix: dict[str, Any]) -> None:
    """Every fault that the lab knows was measured, and no promise was broken."""
    assert set(matrix["faults"]) == set(NEMESES)
    assert {"redis", "redlock", "sqlite"} <= set(matrix["engines"])
    assert len(matrix["cells"]) == len(matrix["faults"]) * len(matrix["engines"])
    assert not [cell for cell in matrix["cells"] if cell["outcome"] == "broken"]
    for cell in matrix["cells"]:
        if cell["outcome"] != "not possible":
            assert cell["lost_updates"]["guarded"] == 0


def test_page_shows_what_breaks(matrix: dict[str, Any]) -> None:
    """Cells that break are on the page, in bold; so would be a bug."""
    assert "**broken as documented**" in PAGE.read_text(encoding="utf-8")
    cell = next(cell for cell in matrix["cells"] if cell["outcome"] == "held")
    cell["outcome"] = "broken"
    assert f"which is a bug: {cell['engine']} under {cell['fault']}" in write_page(matrix)


def test_other_files_are_refused(tmp_path: Path) -> None:
    """One sentence for a file that is no matrix."""
    (tmp_path / "x.json").write_text("{}")
    done = CliRunner().invoke(main, ["lab", "page", str(tmp_path / "x.json")])
    assert done.exit_code == 64
    assert "is not what `holdfast lab matrix --json` prints" in done.output
