"""A few kills of commands that are then continued; `make soak-kill` makes more of them."""

from __future__ import annotations

import os
from dataclasses import replace

import pytest

from soak import kills

LESS = ("--jobs", "2")  # these commands need no workers here, which take time to start
SMALLER = {
    "tune": ["--trials", "3"],
    "compare": ["--seeds", "1", "--topics", "2", "--models", "gsm:epochs=1,lda:epochs=1"],
    "prepare": [],
}


@pytest.mark.skipif(not hasattr(os, "fork") or not os.path.isdir("/proc"), reason="forks, and reads /proc")
@pytest.mark.parametrize("name", SMALLER)  # test_runs.py kills the writing of a run
def test_a_kill_loses_no_finished_work_and_changes_no_result(name, tmp_path, monkeypatch):
    pytest.importorskip("optuna")
    command = kills.COMMANDS[name]
    arguments = [each for each in command.arguments if each not in LESS]
    arguments += SMALLER[name]
    monkeypatch.setitem(kills.COMMANDS, name, replace(command, arguments=arguments))
    kills.write_texts(tmp_path, n_many=3000)
    counts = kills.Soak(name, tmp_path, start=kills.forked).run(1)
    assert counts == kills.Counts(kills=1)
