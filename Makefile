# The commands of the project. Each needs Go and nothing else, but for test and
# bench: DynamoDB's servers are from npm, which needs Node. What is used besides
# is pinned in go.mod, tools/go.mod and test/servers.

GO      ?= go
LINT    := $(GO) tool -modfile=tools/go.mod golangci-lint
CONFIG  ?= config/belfry.yaml

.DEFAULT_GOAL := help

.PHONY: help
help: ## Say what there is
	@grep -hE '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | awk -F ':.*## ' '{printf "  make %-10s %s\n", $$1, $$2}'

.PHONY: run
run: ## Serve config/belfry.yaml (CONFIG=FILE for another)
	$(GO) run ./cmd/belfry serve --config $(CONFIG)

.PHONY: build
build: ## Build bin/belfry
	$(GO) build -trimpath -o bin/belfry ./cmd/belfry

.PHONY: test
test: ## Run every test with the race detector
	$(GO) test -race -timeout 20m ./...

.PHONY: test-unit
test-unit: ## Run the tests that need Go alone, no other server
	$(GO) test -race -timeout 20m $$($(GO) list -f '{{.ImportPath}} {{.Imports}} {{.TestImports}} {{.XTestImports}}' ./... | grep -v belfry/test/backing | cut -d ' ' -f 1)

.PHONY: check
check: lint vet test ## Format, lint, vet, and every test

.PHONY: lint
lint: ## Check the format and the linters' rules
	$(LINT) fmt --diff
	$(LINT) run

.PHONY: vet
vet: ## Run go vet
	$(GO) vet ./...

.PHONY: format
format: ## Format the code
	$(LINT) fmt

.PHONY: bench
bench: ## Measure belfry beside its limits (a few minutes; use an idle machine)
	$(GO) run ./test/load

.PHONY: fuzz
fuzz: ## Run each fuzz target for FUZZTIME (20s)
	$(GO) run ./test/fuzz -time $(or $(FUZZTIME),20s)

.PHONY: demo
demo: ## Load countries and subdivisions, and watch copies follow
	$(GO) run ./test/demo
