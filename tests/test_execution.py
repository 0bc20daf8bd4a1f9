"""Threads that share the jobs of a step."""

from __future__ import annotations

import threading
import time
from collections import Counter
from collections.abc import Iterator

import pytest
import torch

import topicloom as tl
from batches import sparse_batch
from topicloom.nn.execution import _n_helpers, helper_threads, prefetched, run_on_threads
from topicloom.nn.sparse import product_log_likelihood

CORPUS = tl.datasets.synthetic_lda(300, 5, 100, random_state=0).corpus


@pytest.mark.parametrize("n_helpers", [0, 1, 3])
def test_each_job_is_done_once(n_helpers: int) -> None:
    done: Counter[int] = Counter()
    names = set()

    def job(number: int) -> None:
        time.sleep(1e-3)
        done[number] += 1
        names.add(threading.current_thread().name)
        assert not torch.is_grad_enabled()

    with helper_threads(n_helpers):
        run_on_threads([lambda number=number: job(number) for number in range(20)])  # type: ignore[misc]
    assert done == Counter(range(20))
    assert len(names) <= 1 + n_helpers
    assert len(names) > 1 or not n_helpers
    run_on_threads([])


def test_jobs_write_to_tensors_of_inference_mode() -> None:
    with helper_threads(3), torch.inference_mode():
        found = torch.zeros(20)

        def job(number: int) -> None:
            time.sleep(1e-3)
            part = found[number : number + 1]
            torch.add(part, 1, out=part)

        run_on_threads([lambda number=number: job(number) for number in range(20)])  # type: ignore[misc]
    assert (found == 1).all()


def test_an_error_of_a_helper_is_raised() -> None:
    main = threading.current_thread()

    def job() -> None:
        time.sleep(1e-2)
        if threading.current_thread() is not main:
            raise ValueError("in a helper")

    with helper_threads(1), pytest.raises(ValueError, match="in a helper"):
        run_on_threads([job] * 4)


@pytest.mark.parametrize("n_helpers", [0, 1])
def test_items_are_the_same_ahead_of_time(n_helpers: int) -> None:
    def items() -> Iterator[int]:
        yield from range(5)
        raise ValueError("the last item")

    seen: list[int] = []
    with helper_threads(n_helpers):
        numbers = prefetched(items())
        for _ in range(5):
            seen.append(next(numbers))
            time.sleep(1e-3)
        with pytest.raises(ValueError, match="the last item"):
            next(numbers)
    assert seen == list(range(5))


def test_results_do_not_depend_on_helpers() -> None:
    generator = torch.Generator().manual_seed(0)
    found = []
    for n_helpers in (0, 1, 3):
        generator.manual_seed(0)
        theta = torch.rand(300, 7, generator=generator).softmax(1).requires_grad_()
        weight = torch.randn(100, 7, generator=generator).requires_grad_()
        batch = sparse_batch(CORPUS.counts, torch.arange(300).numpy(), torch.device("cpu")).counts
        with helper_threads(n_helpers):
            out = product_log_likelihood(theta, weight, torch.zeros(100), batch)
            out.sum().backward()
        found.append((out.detach(), theta.grad, weight.grad))
    for other in found[1:]:
        assert all(torch.equal(a, b) for a, b in zip(found[0], other, strict=True))


@pytest.mark.parametrize("settings", [{}, {"patience": 1}])
@pytest.mark.parametrize("is_small", [True, False])
def test_a_model_learns_the_same_with_helpers(
    settings: dict[str, int], is_small: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("topicloom.training.loop._FEWEST_WEIGHTS_FOR_THREADS", 1 << 30 if is_small else 0)
    n_threads, found = torch.get_num_threads(), []
    try:
        for n in (1, 2):
            torch.set_num_threads(n)
            found.append(tl.ProdLDA(5, epochs=2, random_state=0, **settings).fit(CORPUS).components_)
    finally:
        torch.set_num_threads(n_threads)
    assert (found[0] == found[1]).all()


@pytest.mark.parametrize("model", [tl.GSM(5, epochs=1), tl.ProdLDA(5, epochs=1), tl.Loom(5, epochs=3)])
def test_large_networks_with_shared_work_have_helpers_and_others_threads(
    model: tl.NeuralTopicModel, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("topicloom.training.loop._FEWEST_WEIGHTS_FOR_THREADS", 0)
    seen = []

    class Threads(tl.Callback):
        def on_batch(self) -> None:
            seen.append((torch.get_num_threads(), _n_helpers.get()))

    n_threads = torch.get_num_threads()
    try:
        torch.set_num_threads(2)
        model.set_params(random_state=0).fit(CORPUS, callbacks=[Threads()])
    finally:
        torch.set_num_threads(n_threads)
    expected = {"GSM": {(2, 0)}, "ProdLDA": {(1, 1)}, "Loom": {(2, 0), (1, 1)}}  # Loom: pretraining and counting
    assert set(seen) == expected[type(model).__name__]
