"""The picture of CONTRIBUTING.md: the layers of the package, with their files.

The order of the layers is that of tests/test_layers.py, which checks the imports. Run it in a checkout:

    python examples/screenshots/architecture.py docs/figures/architecture.svg
"""

import ast
import sys
from html import escape
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PACKAGE = ROOT / "src" / "topicloom"
PURPOSES = {
    "cli": "the commands: a thin shell over the library",
    "service": "a run over HTTP",
    "experiments": "comparing models, tuning, choosing K",
    "reports": "run directories, pictures, pages",
    "evaluation": "all measures of a fitted model",
    "models": "their bases, and one file for each model",
    "topics": "topics with documents: tables, edits, trends",
    "training": "batches, loop, state, checkpoints",
    "datasets": "corpora to start with",
    "embeddings": "vectors of words and documents",
    "corpus": "counts and fields of documents",
    "preparing": "text options",
    "text": "from files to tokens",
    "metrics": "one function for each measure",
    "nn": "parts of networks; imports torch, and nothing of the layers above",
    "processes": "parallel jobs",
    "files": "writing whole files",
    "display": "notebooks, terminals",
    "imports": "import by name",
    "ranking": "top words",
    "distributed": "several processes train one model",
    "settings": "types and limits of settings",
    "errors": "the errors of users",
    "messages": "parts of sentences",
}
WIDTH, MARGIN, GAP, LINE = 1040, 24, 12, 15
CHARACTER = 6.7  # the width of a character of the monospaced font


def layers() -> list[list[str]]:
    """Return the parts of the package by layer, from the top down."""
    tree = ast.parse((ROOT / "tests" / "test_layers.py").read_text(encoding="utf-8"))
    (value,) = [
        node.value for node in tree.body if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "LAYERS"
    ]
    rows = [sorted(part for part in row if not part.startswith("_")) for row in ast.literal_eval(value)]
    return [row for row in reversed(rows) if row]


def files(part: str) -> list[str]:
    """Return the names of a part's modules and packages; a part that is one file has none."""
    inside = PACKAGE / part
    names = [path.name for path in inside.glob("*.py") if not path.name.startswith("_")]
    names += [f"{path.name}/" for path in inside.iterdir() if any(path.glob("*.py"))] if inside.is_dir() else []
    return sorted(name.removesuffix(".py") for name in names)


def wrapped(words: list[str], width: float, between: str = " ") -> list[str]:
    """Return lines of words that are at most `width` wide."""
    lines: list[str] = []
    for word in words:
        if lines and (len(lines[-1]) + len(between) + len(word)) * CHARACTER <= width:
            lines[-1] += f"{between}{word}"
        else:
            lines.append(word)
    return lines


def draw() -> str:
    """Return the picture as SVG."""
    parts, y = [], float(MARGIN)
    for row in layers():
        listed = {part: files(part) for part in row}
        weights = {part: 1.4 + len(" ".join(names)) / 80 for part, names in listed.items()}
        room = WIDTH - 2 * MARGIN - GAP * (len(row) - 1)
        widths = {part: room * weight / sum(weights.values()) for part, weight in weights.items()}
        texts = {
            part: (
                wrapped(PURPOSES[part].split(), widths[part] - 20),
                wrapped(listed[part], widths[part] - 20, " · "),
            )
            for part in row
        }
        height = 30 + LINE * max(len(purpose) + len(names) for purpose, names in texts.values()) + 4
        if parts:
            parts.append(f'<path class="arrow" d="M{WIDTH / 2} {y - 18:.0f}v10" marker-end="url(#head)"/>')
        x = float(MARGIN)
        for part in row:
            parts.append(
                f'<rect x="{x:.1f}" y="{y:.0f}" width="{widths[part]:.1f}" height="{height:.0f}" rx="6"/>'
                f'<text class="name" x="{x + 10:.1f}" y="{y + 19:.0f}">{escape(part)}</text>'
            )
            lines = [("purpose", line) for line in texts[part][0]] + [("files", line) for line in texts[part][1]]
            for number, (kind, line) in enumerate(lines):
                place = y + 19 + LINE * (number + 1)
                parts.append(f'<text class="{kind}" x="{x + 10:.1f}" y="{place:.0f}">{escape(line)}</text>')
            x += widths[part] + GAP
        y += height + 22
    body = "\n".join(parts)
    return f"""<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {y:.0f}" width="{WIDTH}" height="{y:.0f}">
<title>The layers of topicloom, from the commands at the top to the errors at the bottom</title>
<style>
.page {{ fill: #ffffff; stroke: #d0d7de; }}
rect {{ fill: #f3f6fa; stroke: #8c9bab; }}
text {{ font: 11px ui-monospace, "DejaVu Sans Mono", Menlo, Consolas, monospace; fill: #57606a; }}
.name {{ font-weight: bold; font-size: 13px; fill: #0b3d66; }}
.purpose {{ fill: #1f2328; }}
.arrow {{ stroke: #57606a; stroke-width: 1.5; fill: none; }}
</style>
<defs><marker id="head" viewBox="0 0 8 8" refX="4" refY="4" markerWidth="6" markerHeight="6" orient="auto">
<path d="M0 0L8 4L0 8z" fill="#57606a"/></marker></defs>
<rect class="page" x="1" y="1" width="{WIDTH - 2}" height="{y - 2:.0f}" rx="10"/>
{body}
</svg>
"""


if __name__ == "__main__":
    Path(sys.argv[1]).write_text(draw(), encoding="utf-8")
