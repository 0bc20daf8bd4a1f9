"""Training by several processes; ranks.py has what each of them does."""

from __future__ import annotations

import json
import socket

import numpy as np
import pytest

import ranks
import topicloom as tl
from forks import Fork, needs_fork, run_command
from ranks import MODELS, corpus
from topicloom.distributed import current, join
from topicloom.errors import SettingError


def environments(n_ranks: int) -> list[dict[str, str]]:
    """Return what torchrun puts into the environment of each process."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    known = {
        "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(port), "WORLD_SIZE": str(n_ranks), "OMP_NUM_THREADS": "1",
    }  # fmt: skip
    return [known | {"RANK": str(rank)} for rank in range(n_ranks)]


@pytest.fixture(scope="module")
def fits(tmp_path_factory):
    """The histories and topics of fits by one process and by two."""
    folder = tmp_path_factory.mktemp("fits")
    tasks = ["same_as_one_process", "refusals", "own_noise", "fits", "held_out"]
    for code, output in ranks.started(tasks, folder, environments(2)):
        assert code == 0, output
    ranks.fits(folder)
    return [json.loads((folder / f"fits-{n}.json").read_text()) for n in (1, 2)]


@pytest.mark.parametrize("name", MODELS)
def test_two_processes_learn_what_one_learns(fits, name):
    one, two = (found[name]["history"] for found in fits)
    assert [row["epoch"] for row in one] == [row["epoch"] for row in two]
    exact = name not in ("BATM", "ETM")  # whose draws are not shared, or in whose many steps rounding grows
    for row, other in zip(one, two, strict=True):
        assert row.get("loss", 0) == pytest.approx(other.get("loss", 0), rel=1e-3 if exact else 0.05)
    assert one[-1]["document_npmi"] == pytest.approx(two[-1]["document_npmi"], abs=1e-3 if exact else 0.1)
    topics = (np.array(found[name]["topics"]) for found in fits)
    if exact:
        np.testing.assert_allclose(*topics, atol=5e-3)


def test_a_fit_goes_on_after_a_process_has_died(fits, tmp_path):
    (tmp_path / "dies").touch()
    (code, output), _ = ranks.started(["checkpoints"], tmp_path, environments(2))
    assert code == 3
    assert "process 0 of 2 can no longer reach the others" in output
    (tmp_path / "dies").unlink()
    assert [code for code, _ in ranks.started(["checkpoints"], tmp_path, environments(2))] == [0, 0]
    resumed = np.load(tmp_path / "topics.npz")
    assert resumed["resumed"] == 10
    np.testing.assert_array_equal(resumed["topics"], np.array(fits[1]["Loom"]["topics"], np.float32))
    with pytest.raises(tl.InputError, match="was written by process 1 of 2"):
        tl.Loom(5, random_state=0, **MODELS["Loom"]).fit(corpus(), checkpoint=tmp_path / "checkpoints")


def test_a_process_that_fails_alone_says_why(tmp_path):
    for code, output in ranks.started(["out_of_memory"], tmp_path, environments(2)):
        assert code == 0, output


@needs_fork
def test_the_command_line_trains_in_two_processes(tmp_path):
    lines = [f"{' '.join(pair)} {number % 7}x" for number in range(300) for pair in (("cat", "dog"), ("tax", "law"))]
    (tmp_path / "texts.txt").write_text("\n".join(lines))
    arguments = ["train", tmp_path / "texts.txt", "--model", "gsm", "--topics", 2, "--epochs", 4]
    arguments += ["--out", tmp_path / "run", "--no-explorer"]
    processes = [Fork(lambda: run_command(*arguments), **each) for each in environments(2)]
    (code, _, output), other = (each.output() for each in processes)
    assert (code, other[0]) == (0, 0), output + other[2]
    assert "the run is in" in output
    assert other[1:] == ("", "")
    assert len(tl.load(tmp_path / "run").components_) == 2
    assert json.loads((tmp_path / "run" / "metrics.json").read_text())["processes"] == 2
    assert len((tmp_path / "run" / "doc_topics.csv").read_text().splitlines()) == len(lines) + 1
    assert not (tmp_path / "run" / "checkpoints").exists()


def test_one_process_joins_nobody(monkeypatch):
    monkeypatch.delenv("WORLD_SIZE", raising=False)
    with join() as ranks:
        assert (ranks.size, ranks.is_first, current()) == (1, True, ranks)
    with pytest.raises(SettingError, match="'all' or 'part'"), join(documents="half"):
        pass
