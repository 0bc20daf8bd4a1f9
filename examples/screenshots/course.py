"""Run the notebooks of docs/course, and store in them what they print and draw.

    python examples/screenshots/course.py                             # all notebooks
    python examples/screenshots/course.py docs/course/02-gradients.ipynb

Cells run in this process, in one namespace for each notebook. Only their code is needed, so edit a notebook with any
program, and run this afterwards. Files are written in one form, with small pictures, so that changes are easy to read.
"""

from __future__ import annotations

import ast
import base64
import contextlib
import io
import json
import sys
import warnings
from pathlib import Path
from typing import Any

import matplotlib

matplotlib.use("Agg")

import matplotlib.pyplot as plt
import torch
from matplotlib.figure import Figure
from PIL import Image

COURSE = Path(__file__).resolve().parents[2] / "docs" / "course"
METADATA = {
    "kernelspec": {"display_name": "Python 3", "language": "python", "name": "python3"},
    "language_info": {"name": "python"},
}
_DPI, _COLOURS = 100, 128
Cell = dict[str, Any]


def code_of(notebook: dict[str, Any]) -> list[str]:
    """Return the source of the code cells."""
    return ["".join(cell["source"]) for cell in notebook["cells"] if cell["cell_type"] == "code"]


def run_cell(source: str, namespace: dict[str, Any], *, draw: bool = True) -> list[Cell]:
    """Run a cell, and return its outputs: what it prints, its last value, and its pictures.

    Args:
        source: the code.
        namespace: the variables, which change.
        draw: whether pictures are drawn. Otherwise there are none in the outputs.
    """
    tree = ast.parse(source)
    last = tree.body.pop() if tree.body and isinstance(tree.body[-1], ast.Expr) else None
    printed, value = io.StringIO(), None
    with contextlib.redirect_stdout(printed), warnings.catch_warnings():
        warnings.filterwarnings("ignore", "FigureCanvasAgg is non-interactive")  # plt.show(), which notebooks need
        exec(compile(tree, "<cell>", "exec", dont_inherit=True), namespace)
        if last is not None:
            value = eval(compile(ast.Expression(last.value), "<cell>", "eval", dont_inherit=True), namespace)
    figures = [plt.figure(number) for number in plt.get_fignums()]
    if isinstance(value, Figure) and value not in figures:
        figures, value = [*figures, value], None
    outputs: list[Cell] = []
    if printed.getvalue():
        outputs.append({"output_type": "stream", "name": "stdout", "text": _lines(printed.getvalue())})
    if value is not None:
        shown = {"text/plain": _lines(repr(value))}
        outputs.append({"output_type": "execute_result", "data": shown, "metadata": {}})
    for figure in figures if draw else ():
        shown = {"image/png": picture(figure), "text/plain": ["<Figure>"]}
        outputs.append({"output_type": "display_data", "data": shown, "metadata": {}})
    plt.close("all")
    return outputs


def picture(figure: Figure) -> str:
    """Return a figure as a PNG with few colours, in base64."""
    drawn, small = io.BytesIO(), io.BytesIO()
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "Glyph .* missing")
        figure.savefig(drawn, format="png", dpi=_DPI, bbox_inches="tight", facecolor="white")
    colours = Image.open(drawn).convert("RGB").quantize(_COLOURS, dither=Image.Dither.NONE)
    colours.save(small, format="png", optimize=True)
    return base64.b64encode(small.getvalue()).decode()


def run(path: Path) -> None:
    """Run a notebook, and write it with its outputs."""
    notebook = json.loads(path.read_text(encoding="utf-8"))
    namespace: dict[str, Any] = {"__name__": "__main__"}
    cells, count = [], 0
    with plt.rc_context():
        for number, old in enumerate(notebook["cells"], 1):
            source = "".join(old["source"]).strip("\n")
            cell: Cell = {"cell_type": old["cell_type"], "id": f"cell-{number:02}", "metadata": {}}
            if old["cell_type"] == "code":
                count += 1
                outputs = run_cell(source, namespace)
                for output in outputs:
                    if output["output_type"] == "execute_result":
                        output["execution_count"] = count
                cell |= {"execution_count": count, "outputs": outputs}
            cells.append(cell | {"source": _lines(source)})
    whole = {"cells": cells, "metadata": METADATA, "nbformat": 4, "nbformat_minor": 5}
    text = json.dumps(whole, ensure_ascii=False, indent=1, sort_keys=True)
    path.write_text(text + "\n", encoding="utf-8", newline="\n")


def _lines(text: str) -> list[str]:
    return text.splitlines(keepends=True)


def main() -> None:
    torch.set_num_threads(1)
    for path in map(Path, sys.argv[1:] or sorted(map(str, COURSE.glob("*.ipynb")))):
        print(path.name, flush=True)
        run(path)


if __name__ == "__main__":
    main()
