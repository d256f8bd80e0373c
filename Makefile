# Each target makes the environment that it needs first, mostly .venv: `make demo` and `make test`
# work on a machine with only Python (3.11 or later) and make.
PYTHON ?= python3
BIN := .venv/bin
PIP := $(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt
# Groups of dependencies, which are for a clone alone, need a pip that knows them.
NEWER_PIP := 'pip>=25.1'

# Commands that tests start would be compiled anew each time.
unexport PYTHONDONTWRITEBYTECODE

.PHONY: help demo test test-all coverage test-long test-portable test-recipes browser postgres node lint docs site links results evidence heads bench bench-quick bench-compare bench-cluster release-check release-notes lock clean

help:
	@echo "make demo   nine language detectors with nine label sets, fused: how right the consensus is"
	@echo "            beside what one would try instead, and why; a page of evidence in reports/"
	@echo "make test   the tests that need Python alone (under five minutes on two cores)"
	@echo "make test-all  the rest too: slow ones, and those that need a browser, PostgreSQL, Node or"
	@echo "            a cluster; installs what it can of these"
	@echo "make coverage  how much of kernels and solvers their fast tests reach; at least 95 %"
	@echo "make test-long  more kills of clusters and ranks at random moments, and 200,000 random rows"
	@echo "            against a slow reference; native sweeps under sanitizers and valgrind; a hundred"
	@echo "            random cases of every law (about 40 minutes)"
	@echo "make test-portable  all tests without AVX-512, on one thread, on a busy machine (half an"
	@echo "            hour); make test-portable ARGS=tests/solvers runs some"
	@echo "make test-recipes  heads in MLflow, and what Triton and KServe are told, by their clients"
	@echo "make lint   formatting, lint, types, and the files of changes/"
	@echo "make docs   write generated figures into the pages, and pictures beside them"
	@echo "make site   the pages as a site, with a gallery and a reference: site/index.html"
	@echo "make links  ask whether links that leave the site still lead somewhere; needs a network"
	@echo "make results every experiment of the paper on real data; writes docs/results.md"
	@echo "make evidence  learn and judge an ensemble on ten real tasks, beside its rivals, and a"
	@echo "            consensus without truth; writes docs/evidence.md and"
	@echo "            docs/evidence-without-truth.md, docs/evidence-ordered.md"
	@echo "make heads  freeze what is learned on ten real tasks, and compare it with the library; writes"
	@echo "            docs/guides/deploy.md (about half an hour)"
	@echo "make bench  benchmarks beside POT, OTT-JAX and torch; writes docs/benchmarks.md"
	@echo "            (make bench-quick: smaller sizes, under two minutes, writes no page;"
	@echo "            make bench-compare: a few of them, beside what they last reached)"
	@echo "make bench-cluster  a Dask cluster of 1, 2 and 4 workers, and kernels split over"
	@echo "            ranks; writes docs/guides/scale.md"
	@echo "make release-check  build, check, and try what would be released, with the oldest and the"
	@echo "            newest dependencies in each Python that is promised"
	@echo "make release-notes  fold the files of changes/ into CHANGES.md, under the version's heading"
	@echo "make lock   move the pins of constraints.txt to the newest versions"
	@echo "make clean  remove the environment and everything generated"

demo: .venv/demo.stamp .venv/native.stamp
	$(BIN)/python -m paper demo --out reports

test: .venv/develop.stamp .venv/native.stamp
	$(BIN)/python -m pytest --numprocesses 2 --durations 10 --leave-rest -rs

# Adds what `make test` left out; `make test test-all` runs each test once.
test-all: test browser postgres node
	$(BIN)/python -m pytest --numprocesses 2 --durations 30 \
		-m "slow or browser or postgres or node or cluster"

# Apart from the tests: watching every line slows them all down. The fast ones reach nearly all lines.
coverage: .venv/develop.stamp .venv/native.stamp
	$(BIN)/python -m pytest --quiet --numprocesses 2 --cov --cov-report=term:skip-covered \
		-m fast tests/kernels tests/solvers

test-long: .venv/develop.stamp .venv/native.stamp
	WASSEMBLE_LONG=1 $(BIN)/python -m pytest tests/scale/test_kills.py \
		tests/scale/test_rank_command.py tests/test_shell_blocks.py tests/solvers/test_fuzz.py \
		tests/solvers/test_native_memory.py
	$(BIN)/python -m pytest --numprocesses 2 --hypothesis-profile thorough -m hypothesis

# As an older, smaller and busier machine would run them.
test-portable: .venv/develop.stamp .venv/native.stamp browser postgres
	$(BIN)/python tests/older_processors.py --numprocesses 2 $(ARGS)

# In an environment of their own: MLflow and KServe bring much that nothing else here needs.
test-recipes: .venv-recipes/stamp
	.venv-recipes/bin/python -m pytest tests/export/test_recipes.py

# Packages of the system are installed by root alone.
SUDO := $(shell [ "$$(id -u)" = 0 ] || command -v sudo)
APT := $(SUDO) apt-get
APT_INSTALL := $(SUDO) env DEBIAN_FRONTEND=noninteractive apt-get install -qq --no-install-recommends

# Debian's Chromium, for the tests of pages in a browser; without it they are skipped.
browser:
	@if ! command -v chromium || ! command -v chromedriver; then \
		$(APT) update -qq && $(APT_INSTALL) chromium chromium-driver fonts-dejavu-core; \
	fi > /dev/null || echo "no browser and none to install: tests of pages are skipped"

# Debian's PostgreSQL server, for the tests of studies; they start one of their own with it.
postgres:
	@if ! ls /usr/lib/postgresql/*/bin/postgres; then \
		$(APT) update -qq && $(APT_INSTALL) postgresql; \
	fi > /dev/null 2>&1 || echo "no PostgreSQL and none to install: its tests are skipped"

# onnxruntime-web for Node, for the tests that replay golden vectors in JavaScript.
node: tests/export/node/node_modules/.stamp
tests/export/node/node_modules/.stamp: tests/export/node/package.json
	@{ cd tests/export/node && npm install --silent --no-audit --no-fund --ignore-scripts \
		--no-package-lock && touch node_modules/.stamp; } > /dev/null 2>&1 \
		|| echo "no Node, or nothing to install from: heads are not tried in JavaScript"

lint: .venv/develop.stamp
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/python release/changes.py

evidence: .venv/core.stamp
	$(BIN)/python -m paper evidence --out reports
	cp reports/evidence.json docs/evidence.json
	$(PIP) $(NEWER_PIP)
	$(PIP) -e '.[cli]' --group crowds
	$(BIN)/python -m paper without-truth --out reports
	$(BIN)/python -m paper without-truth --gold --out reports
	$(BIN)/python -m paper without-truth --speed --out reports
	cp reports/without-truth*.json docs/
	$(BIN)/python -m paper flusight --out reports
	cp reports/flusight.json docs/flusight.json
	$(BIN)/python -m paper expected-cost --out reports
	cp reports/expected-cost.json docs/expected-cost.json
	$(BIN)/python docs/generate.py

heads: .venv/core.stamp
	$(PIP) -e '.[cli,onnx]'
	$(BIN)/python -m paper heads --out reports
	cp reports/heads.json docs/heads.json
	$(BIN)/python docs/generate.py

results: .venv/core.stamp .venv/native.stamp
	$(PIP) -e '.[cli,torch,captions]'
	$(BIN)/python -m paper reproduce all --out reports/results
	$(BIN)/python -m paper reproduce captioning --out reports/results
	cp reports/results/*.json reports/results/*.svg docs/results/
	$(BIN)/python docs/generate.py

docs: .venv/core.stamp
	$(BIN)/python docs/generate.py
	$(BIN)/python docs/pictures.py

# A warning, such as a name that leads nowhere, is an error.
site: .venv-docs/stamp
	rm -rf docs/reference/generated  # of names that are gone
	.venv-docs/bin/python -m sphinx --fail-on-warning --keep-going --nitpicky --quiet docs site
	.venv-docs/bin/python docs/try/build.py site/try
	@echo "open site/index.html; site/try.html must be served: python -m http.server -d site"

# What the pages link to elsewhere. Needs a network, and answers as others please: not in CI.
links: .venv-docs/stamp
	.venv-docs/bin/python -m sphinx --builder linkcheck --define plot_gallery=0 --quiet docs reports/links

bench: .venv-bench/stamp
	.venv-bench/bin/python -m benchmarks --record
	.venv-bench/bin/python -m benchmarks --quick --record

# Some cases beside what they last reached: says what has become much worse, and fails at nothing.
bench-compare: .venv/develop.stamp .venv/native.stamp
	-$(BIN)/python -m benchmarks --quick $(ARGS) \
		--case import --case latency --case multilabel --case ordered

bench-quick: .venv-bench/stamp
	.venv-bench/bin/python -m benchmarks --quick

bench-cluster: .venv/develop.stamp
	$(BIN)/python -m benchmarks.cluster
	$(BIN)/torchrun --standalone --nproc-per-node 2 -m benchmarks.split_kernel
	$(BIN)/python docs/generate.py

release-check: .venv-release/stamp
	.venv-release/bin/python release/check.py $(ARGS)

release-notes: .venv/develop.stamp
	$(BIN)/python release/changes.py --fold

# Newer pins, for `make test-all` to judge.
lock: .venv/develop.stamp
	$(BIN)/python release/lock.py

clean:
	rm -rf .venv .venv-* site docs/gallery docs/sg_execution_times.rst \
		docs/reference/generated reports .coverage .hypothesis .mypy_cache .pytest_cache .ruff_cache

# The demo does without tables in files and without plots on paper, which are half of the rest.
.venv/demo.stamp: pyproject.toml constraints.txt
	$(PYTHON) -m venv .venv
	$(PIP) -e '.[learn]' click jinja2 plotly rich
	touch $@

.venv/core.stamp: .venv/demo.stamp
	$(PIP) -e '.[cli]'
	touch $@

# Native sweeps, where there is a compiler.
NATIVE := native/pyproject.toml native/hatch_build.py $(wildcard native/cpp/*.[ch]* native/src/*/*.py)
.venv/native.stamp: .venv/demo.stamp $(NATIVE)
	@if ! command -v $${CXX:-c++} > /dev/null; then \
		echo "no C++ compiler: sweeps run on NumPy alone"; \
	else $(PIP) --force-reinstall --no-deps ./native; fi
	touch $@

.venv-recipes/stamp: pyproject.toml
	$(PYTHON) -m venv .venv-recipes
	.venv-recipes/bin/python -m pip install --quiet --disable-pip-version-check $(NEWER_PIP)
	.venv-recipes/bin/python -m pip install --quiet --disable-pip-version-check \
		-e '.[onnx]' --group recipes
	touch $@

.venv-bench/stamp: pyproject.toml constraints.txt $(NATIVE)
	$(PYTHON) -m venv .venv-bench
	.venv-bench/bin/python -m pip install --quiet --disable-pip-version-check $(NEWER_PIP)
	.venv-bench/bin/python -m pip install --quiet --disable-pip-version-check \
		-c constraints.txt -e '.[onnx,torch,web]' --group bench
	@if ! command -v $${CXX:-c++} > /dev/null; then \
		echo "no C++ compiler: sweeps run on NumPy alone"; \
	else .venv-bench/bin/python -m pip install --quiet --disable-pip-version-check \
		--force-reinstall --no-deps ./native; fi
	touch $@

.venv-release/stamp: pyproject.toml constraints.txt
	$(PYTHON) -m venv .venv-release
	.venv-release/bin/python -m pip install --quiet --disable-pip-version-check $(NEWER_PIP)
	.venv-release/bin/python -m pip install --quiet --disable-pip-version-check \
		-c constraints.txt --group release
	touch $@

.venv-docs/stamp: pyproject.toml constraints.txt
	$(PYTHON) -m venv .venv-docs
	.venv-docs/bin/python -m pip install --quiet --disable-pip-version-check $(NEWER_PIP)
	.venv-docs/bin/python -m pip install --quiet --disable-pip-version-check \
		-c constraints.txt -e '.[cli]' --group docs
	touch $@

.venv/develop.stamp: .venv/core.stamp
	$(PIP) $(NEWER_PIP)
	$(PIP) -e '.[cli,captions,onnx,scale,text,web]' --group test --group lint
	touch $@
