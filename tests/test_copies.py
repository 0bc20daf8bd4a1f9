"""Copies of a fitted model, in this process and in others, answer as the model does."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

import topicloom as tl

SOURCE = str(Path(tl.__file__).parents[1])

# Two threads work on the model before the fork, so a child that waited for them would hang.
SCRIPT = """
import io, multiprocessing, os, signal, sys
import joblib
import numpy as np
import torch
import topicloom as tl

corpus = tl.datasets.synthetic_lda(300, 5, 3000, random_state=1).corpus

def answer(model, queue):
    signal.alarm(150)
    queue.put((model.transform(corpus), model.perplexity(corpus), torch.get_num_threads()))

def same(found, model):
    return np.array_equal(found[0], model.transform(corpus)) and found[1] == model.perplexity(corpus)

if __name__ == "__main__":
    torch.set_num_threads(2)
    torch.ones(2000, 2000).sum()
    models = [tl.GSM(5, epochs=1, random_state=0), tl.Loom(5, epochs=2, random_state=0), tl.LDA(5, epochs=1)]
    for model in models:
        model.fit(corpus)
    for method in ("fork", "spawn"):
        context = multiprocessing.get_context(method)
        queue = context.Queue()
        for model in models if method == "fork" else models[:1]:
            child = context.Process(target=answer, args=(model, queue))
            child.start()
            found = queue.get(timeout=150)
            child.join()
            assert same(found, model), (method, model)
            assert method == "spawn" or found[2] == 1
    assert torch.get_num_threads() == 2
    child = os.fork()
    if child == 0:
        signal.alarm(150)
        again = tl.GSM(5, epochs=1, random_state=0).fit(corpus)
        os._exit(not np.array_equal(again.components_, models[0].components_))
    assert os.waitpid(child, 0)[1] == 0, "training in a forked process"
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs a system that forks")
def test_models_answer_in_forked_and_in_new_processes(tmp_path):
    script = tmp_path / "script.py"
    script.write_text(SCRIPT)
    environment = os.environ | {"PYTHONPATH": SOURCE, "OMP_NUM_THREADS": "2"}
    done = subprocess.run([sys.executable, str(script)], env=environment, capture_output=True, text=True, timeout=400)
    assert done.returncode == 0, done.stderr
