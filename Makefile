# Everything here is a short name for a command that works without make.
.PHONY: build test bench bench-search fidelity mutants conformance mcp-conformance e2e-node bench-node probe-responses oracle lint vet engine rename-module

export CGO_ENABLED ?= 0

build:
	go build -trimpath -ldflags=-s -o bin/capstan ./cmd/capstan

# The race detector needs cgo; the product is built without it.
test:
	CGO_ENABLED=1 go test -race -timeout 18m ./...

vet:
	go vet ./...
	GOOS=darwin go vet ./...
	GOOS=windows go vet ./...

lint:
	go tool -modfile=tools/go.mod golangci-lint run ./...

bench:
	go run ./bench/table

# Recall of tool_search beside other rankers, on the sets of ../shared.
bench-search:
	go run ./bench/search $(ARGS)

# How exactly signatures say what the schemas of real tools demand.
fidelity:
	go run ./bench/fidelity $(ARGS)

mutants:
	go run ./script/mutants

# Writes docs/conformance.md from the ids that tests cite.
conformance:
	go run ./script/conformance

# Holds the MCP client against the official suite (needs npm and the network).
mcp-conformance:
	go run ./script/mcpconformance $(ARGS)

# Calls of a server over stdio beside the TypeScript client (needs node, npm and the network).
bench-node:
	go run ./bench/node $(ARGS)

# Asks a real model to find and use tools: make probe-responses ARGS="-model NAME",
# with OPENAI_BASE_URL and OPENAI_API_KEY in the environment.
probe-responses:
	go run ./script/probe $(ARGS)

# Runs thirteen MCP servers from npm in programs (needs node, npm and the network).
e2e-node:
	CAPSTAN_E2E_NODE=1 go test -timeout 30m -run TestNode -v ./cmd/capstan

# Holds the wire formats against the providers' own SDKs, in a module of its own.
oracle:
	cd internal/llm/oracle && go vet . && go test -timeout 5m .

# Remakes the engine's artefacts byte for byte (needs npm and the network).
engine:
	./script/engine

# make rename-module NEW=example.org/capstan
rename-module:
	go run ./script/rename-module $(NEW)
