# gpufarm.cluster: `make help` lists what can be done.
SHELL := /bin/bash
.SHELLFLAGS := -eu -o pipefail -c
.DEFAULT_GOAL := help
MAKEFLAGS += --no-print-directory

export PATH := $(CURDIR)/.venv/bin:$(PATH)
export ANSIBLE_CONFIG := $(CURDIR)/ansible.cfg
# Not ~/.ansible: who else uses it may clear it, and Molecule tells checkouts apart there by their last folder only.
export ANSIBLE_HOME ?= $(CURDIR)/.work/ansible
# Hundreds of processes import the same packages; some machines' settings would have each compile them anew.
unexport PYTHONDONTWRITEBYTECODE

.PHONY: help
help: ## Show this list
	@awk 'BEGIN {FS = ":.*## "} /^[a-z0-9-]+:.*## / {printf "  make %-17s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

.PHONY: setup
setup: ## Install what the demo needs: system packages, .venv (demo calls this)
	@./scripts/setup

.PHONY: setup-test
setup-test: ## Install what the tests need as well (test calls this)
	@./scripts/setup test

.PHONY: demo
demo: setup ## From nothing to a notebook on a GPU slice, on this machine
	@python -m lab.demo up

.PHONY: demo-paas
demo-paas: setup ## From nothing to a service by which users deploy on GPU machines, on this machine
	@python -m lab.demo_paas up

.PHONY: demo-farm
demo-farm: setup ## From nothing to one hub and one queue for three GPU machines, on this machine
	@python -m lab.demo_farm up

.PHONY: demo-hpc
demo-hpc: setup ## From nothing to a cluster for MPI jobs over two networks, on this machine: MACHINES=4
	@python -m lab.demo_hpc up --machines $(or $(MACHINES),4)

.PHONY: clean
clean: ## Stop all demos and remove every host of them; caches stay
	@if [ -x .venv/bin/python ]; then for demo in demo demo_paas demo_farm demo_hpc; do python -m lab.$$demo down; done; fi

.PHONY: distclean
distclean: clean ## Remove .venv, .work and the bench's images too; no bench may be up
	@if [ -x .venv/bin/lab ]; then lab down --all; fi
	rm -rf .venv .work $${LAB_CACHE_DIR:-/var/cache/gpufarm-lab}

# Side by side, as each by itself leaves processors idle.
HOSTS := --beside integration --beside integration-slurm --beside integration-tosca --beside e2e

.PHONY: test
test: setup-test ## Run every test but the scenarios in emulated machines; logs in .work/log (root)
	scripts/scenarios --beside lint --beside unit --beside sanity --beside mutants-changed $(HOSTS)

.PHONY: test-changed
test-changed: setup-test ## Run what your change affects, uncommitted work included (root); docs/testing.md
	scripts/scenarios --changed $(LIMITS)

.PHONY: affected
affected: setup-test ## List what test-changed would run, and why
	@scripts/affected

WORKFLOWS := uv run --quiet --no-project --with-requirements requirements/workflows.lock

.PHONY: lint
lint: setup-test ## ansible-lint (production), yamllint, ruff, mypy; prose, locks, documentation, changelog, hosted CI; what Galaxy would say
	yamllint --strict .
	codespell --dictionary - --dictionary scripts/prose.dic
	scripts/prose
	ruff check .
	ruff format --check .
	pytest -q -p no:cacheprovider tests/contract/test_locks.py
	mypy lab molecule scripts/proof scripts/mutation scripts/mutants scripts/described.py scripts/tosca_inputs.py scripts/tosca_playbooks.py scripts/tosca_properties.py scripts/written.py scripts/pages tosca/gpufarm plugins packages/environment/gpufarm_environment packages/hub/gpufarm_hub packages/notebook/gpufarm_notices
	ansible-lint --strict --offline
	antsibull-changelog lint
	scripts/role-docs --check
	scripts/tosca-types --check
	scripts/release .work/dist
	scripts/galaxy-check .work/dist
	$(WORKFLOWS) check-jsonschema --builtin-schema vendor.github-workflows .github/workflows/*.yml
	$(WORKFLOWS) check-jsonschema --builtin-schema vendor.gitlab-ci --data-transform gitlab-ci .gitlab-ci.yml
	$(WORKFLOWS) zizmor --quiet --offline .github/workflows

.PHONY: unit
unit: setup-test ## Unit and contract tests: no root, no bench
	pytest -q -n 2 tests/unit tests/contract

.PHONY: fuzz
fuzz: setup-test ## Change templates and inputs at random and see what the deployer says: FUZZ=10000 FUZZ_SEED=...
	FUZZ=$(or $(FUZZ),10000) FUZZ_SEED=$(or $(FUZZ_SEED),$(shell date +%s)) \
		pytest -q -n 2 tests/unit/tosca/test_deployer_mutations.py

.PHONY: unit-ansible
unit-ansible: setup ## Tests without hosts, with another ansible-core: ANSIBLE=2.21; needs Python 3.12 (Debian 13)
	uv run --quiet --no-project --with-requirements requirements/ansible/$(ANSIBLE).lock \
		python -m pytest -q -n 2 tests/unit/plugins tests/unit/roles tests/contract

.PHONY: mutants
mutants: setup-test ## Make each mistake of tests/mutants.yml and see whether tests notice (root); docs/testing.md
	scripts/mutants --at-once 2

.PHONY: mutants-changed
mutants-changed: setup-test ## The same for mistakes in the lines that you changed, for four minutes (root)
	scripts/mutants --changed --minutes 4

.PHONY: sanity
sanity: setup-test ## ansible-test sanity on the collection as it is shipped
	scripts/sanity

.PHONY: integration
integration: setup-test ## Tests of the bench itself and of what runs on it (root)
	pytest -q tests/integration --ignore tests/integration/slurm --ignore tests/integration/tosca

.PHONY: integration-slurm
integration-slurm: setup-test ## A Slurm cluster with notebooks, from its template and back (root)
	pytest -q tests/integration/slurm

.PHONY: integration-tosca
integration-tosca: setup-test ## The deployer on hosts of the bench, and other orchestrators with our library (root)
	pytest -q tests/integration/tosca

.PHONY: hosts
hosts: setup-test ## All jobs on hosts of the bench, side by side: integration, e2e, molecule (root)
	scripts/scenarios $(HOSTS)

.PHONY: molecule
molecule: setup-test ## Every role on bench hosts (root)
	scripts/scenarios

# It needs the other demo, and a browser of its own.
OWN := tests/e2e/test_own_notebooks_in_browser.py

.PHONY: e2e
e2e: setup-test ## The demos of notebooks and of the service, in a real browser; screenshots in .work/artifacts (root)
	LAB_BENCH=e2e python -m lab.demo up --input jupyterlab_collaborative=true \
		--input jupyterlab_collaborative_use_gpu=true --input enable_monitoring=true
	LAB_BENCH=e2e pytest -q tests/e2e --ignore $(OWN)
	LAB_BENCH=e2e python -m lab.demo down
	LAB_BENCH=e2e-paas python -m lab.demo_paas up
	LAB_BENCH=e2e-paas pytest -q $(OWN)
	LAB_BENCH=e2e-paas python -m lab.demo_paas down

.PHONY: bench
bench: setup ## How long the demo takes, cold and warm, and where the time goes; how fast the bench boots
	@python -m lab.timing

.PHONY: bench-mig
bench-mig: setup-test ## How good and how fast plans of partitions are, and what the module costs
	@python -m lab.mig_timing

.PHONY: bench-tosca
bench-tosca: setup ## How fast the deployer reads, matches, plans and runs; no root, no bench
	@python -m lab.tosca_timing

.PHONY: bench-paas
bench-paas: setup-test ## How fast the service lists a hundred deployments, and answers a crowd; no root, no bench
	PYTHONPATH=tests python -m lab.paas_timing

.PHONY: bench-run
bench-run: setup ## Cost of runs on 1, 4 and 32 hosts for the controller, with and without anything to do (root)
	@python -m lab.run_timing

.PHONY: bench-hub
bench-hub: setup-test ## 50 people ask the hub for 14 slices at once: nobody twice, nobody lost; how fast it is; BENCH=NAME (root)
	@python -m lab.hub_load $(if $(BENCH),--bench $(BENCH))

.PHONY: bench-slurm
bench-slurm: setup ## Start of jobs and notebooks beside Slurm and batchspawner alone, and a change of slices, on the hosts of demo-farm (root)
	@python -m lab.slurm_timing

.PHONY: on-a-real-gpu
on-a-real-gpu: ## Print, as JSON, what this machine's GPUs say to what we infer; reads only (docs/unproved.md)
	@./scripts/on-a-real-gpu

.PHONY: bench-tests
bench-tests: setup-test ## CPU seconds of one run that each optimisation of the tests saves (root)
	@python -m lab.warm.timing

.PHONY: docs
docs: setup-test ## Write the generated parts of documentation and TOSCA library
	scripts/role-docs
	scripts/tosca-types

.PHONY: new-role
new-role: setup-test ## Write the files of a new role: NAME=nfs_server TITLE="A server of NFS"
	scripts/new-role "$(NAME)" "$(TITLE)"

.PHONY: new-health-check
new-health-check: setup-test ## Write a new check of GPUs: NAME=fan_speed CALL=nvmlDeviceGetFanSpeed LIMIT=95 MEANING= WRONG= ACTION= SOURCE=
	scripts/new-health-check "$(NAME)" --call "$(CALL)" --limit "$(LIMIT)" --meaning "$(MEANING)" --wrong "$(WRONG)" \
		--action "$(ACTION)" --source "$(SOURCE)"

.PHONY: new-gpu-model
new-gpu-model: setup-test ## Write a new GPU model of the simulator: KEY=h20-96gb NAME="NVIDIA H20" LIKE=h100-96gb
	scripts/new-gpu-model "$(KEY)" "$(NAME)" "$(LIKE)"

.PHONY: screenshots
screenshots: e2e ## Take the pictures of the documentation anew, with the demo (root)
	pytest -q tests/integration/serve
	@for picture in 3-spawn-form 9-queue 4-notebook 13-my-use 14-plot 17-packages 18-deployment 19-form 20-hours 21-console; do \
		cp .work/artifacts/$$picture.png docs/images/$${picture#*-}.png; \
	done

.PHONY: docs-site
docs-site: setup-test ## Build the documentation as a web site in .work/site
	scripts/docs-site

.PHONY: release
release: setup-test ## Build the collection, with its changelog, and gpufarm as a wheel, in dist/; what Galaxy would say
	scripts/release
	scripts/galaxy-check

LOCK := uv pip compile --quiet --upgrade --universal --generate-hashes --no-emit-index-url --no-header \
	--override requirements/locks.override

.PHONY: lock
lock: setup ## Resolve the Python packages of controller, GPU modules and hub anew and lock them with hashes
	$(LOCK) --python-version 3.11 --extra dev --extra serve --output-file requirements/controller.lock pyproject.toml
	for tools in docs workflows; do \
		$(LOCK) --python-version 3.11 --no-annotate --constraint requirements/controller.lock \
			--output-file requirements/$$tools.lock requirements/$$tools.in; \
	done
	# it needs an older attrs than .venv has
	$(LOCK) --python-version 3.11 --no-annotate --output-file requirements/release.lock requirements/release.in
	for release in requirements/ansible/*.in; do \
		$(LOCK) --python-version 3.12 --no-annotate --output-file $${release%.in}.lock $$release; \
	done
	$(LOCK) --python-version 3.9 --no-annotate --output-file roles/_common/files/gpu.lock roles/_common/files/gpu.in
	$(LOCK) --python-version 3.11 --no-annotate --output-file roles/jupyterhub/files/hub.lock roles/jupyterhub/files/hub.in
	$(LOCK) --python-version 3.11 --no-annotate --output-file roles/jupyterhub/files/collaborative.lock \
		roles/jupyterhub/files/collaborative.in
	# the versions that the tests have, for Debian 12 and later
	$(LOCK) --python-version 3.11 --no-annotate --constraint requirements/controller.lock --extra serve \
		--output-file roles/paas_service/files/serve.lock pyproject.toml roles/paas_service/files/serve.in
	for environment in $(filter-out roles/notebook_environments/files/kernel.in,$(wildcard roles/notebook_environments/files/*.in)) \
			molecule/notebook_environments/files/training.in; do \
		$(LOCK) --python-version 3.11 --no-annotate --output-file $${environment%.in}.lock $$environment; \
	done
	for oracle in im puccini mesos_clients gpu_tools batchspawner; do \
		$(LOCK) --no-annotate --python-version 3.11 --output-file requirements/oracles/$$oracle.lock requirements/oracles/$$oracle.in; \
	done
	# of Infrastructure Manager only what reads TOSCA is needed, not what its own package asks for
	echo im==2.0.0 | $(LOCK) --no-annotate --no-deps --python-version 3.11 - >> requirements/oracles/im.lock
	$(LOCK) --no-annotate --python-version 3.11 --override requirements/oracles/opera.override \
		--output-file requirements/oracles/opera.lock requirements/oracles/opera.in
