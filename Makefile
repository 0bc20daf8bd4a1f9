.PHONY: bench-gradients bench-compare setup demo test check bench bench-models bench-synthetic bench-seeds bench-peers bench-vocabulary bench-metrics bench-best bench-unseen bench-loom
PYTHON ?= python3
BIN = .venv/bin

setup: .venv/ready  ## a virtual environment with everything, from the pinned set

.venv/ready: pyproject.toml constraints.txt
	$(PYTHON) -m venv .venv
	$(BIN)/python -m pip install --quiet --constraint constraints.txt --editable ".[all]"
	touch $@

demo: setup  ## train on the documentation of your own Python and show the topics
	$(BIN)/topicloom demo

test: setup
	$(BIN)/python -m pytest

check: setup
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

bench: setup  ## quality and speed against the Gibbs sampler, and memory on a million documents
	$(BIN)/python benchmarks/quality.py
	$(BIN)/python benchmarks/memory.py

bench-models: setup  ## every model on every corpus with default settings: benchmarks/models.md
	$(BIN)/python benchmarks/models.py

bench-synthetic: setup  ## does every model find planted topics: benchmarks/synthetic.md
	$(BIN)/python benchmarks/synthetic.py

bench-seeds: setup  ## ten seeds of every model: benchmarks/seeds.md
	$(BIN)/python benchmarks/stability.py

bench-peers: setup .venv-peers/ready  ## beside other packages: benchmarks/peers.md
	$(BIN)/python benchmarks/peers.py

.venv-peers/ready: constraints.txt
	$(PYTHON) -m venv .venv-peers
	.venv-peers/bin/python -m pip install --quiet --constraint constraints.txt torch numpy scipy scikit-learn tqdm
	.venv-peers/bin/python -m pip install --quiet --no-deps topmost==1.0.2
	touch $@

bench-vocabulary: setup  ## ETM and LDA as the vocabulary grows: benchmarks/vocabulary.md and .png
	$(BIN)/python benchmarks/vocabulary.py

bench-gradients: setup  ## gradients of the Dirichlet estimators: a table and a figure in benchmarks/
	$(BIN)/python benchmarks/gradients.py

bench-metrics: setup  ## coherence beside gensim's, values and speed: benchmarks/metrics.md
	$(BIN)/python benchmarks/metrics.py

bench-compare: setup  ## a comparison that is killed and taken up again, beside one that is not
	$(BIN)/python benchmarks/comparing.py

bench-best: setup  ## Loom beside the Gibbs sampler, other models and, if .venv-peers is there, TopMost: benchmarks/best.md
	$(BIN)/python benchmarks/best.py

bench-unseen: setup  ## Loom beside the Gibbs sampler on corpora made of installed packages and of Debian's: benchmarks/unseen.md
	rm -rf benchmarks/results/debian && mkdir -p benchmarks/results/debian
	-cd benchmarks/results/debian && apt-get download fortunes manpages-zh manpages-de freebsd-manpages wordnet-base \
		$$(apt-cache search --names-only '^linux-doc-[0-9.]+$$' | cut -d' ' -f1 | sort -V | tail -1) && \
		for each in *.deb; do dpkg-deb -x $$each . || exit 1; done
	$(BIN)/python benchmarks/unseen.py

bench-loom: setup  ## the effect of each part of Loom, on held-out training documents: benchmarks/loom.md
	$(BIN)/python benchmarks/loom.py
