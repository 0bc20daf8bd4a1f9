"""Every example runs, offline, at toy size."""

import importlib.util
from pathlib import Path

import pytest

# Those that draw screenshots need a browser.
EXAMPLES = [
    path for path in sorted((Path(__file__).parent.parent / "examples").glob("*.py")) if "screenshots" not in path.stem
]


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.stem)
def test_example_runs(path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    spec = importlib.util.spec_from_file_location(path.stem, path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    assert len(module.main(epochs=2)) > 1
    assert capsys.readouterr().out
