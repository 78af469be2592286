module belfry/listeners/examples

go 1.26.0

// What belfry imports is of the versions in its own go.mod, which test/floors compares.
replace belfry => ../..

require (
	belfry v0.0.0
	code.dny.dev/ssrf v0.3.0
	github.com/gofrs/flock v0.13.1
	github.com/standard-webhooks/standard-webhooks/libraries v0.0.1
	golang.org/x/image v0.47.0
)

require (
	github.com/go-json-experiment/json v0.0.0-20260820222146-c27c302e5fc3 // indirect
	github.com/google/go-cmp v0.7.0 // indirect
	github.com/google/uuid v1.6.0 // indirect
	github.com/klauspost/compress v1.20.3 // indirect
	github.com/nats-io/nats.go v1.55.0 // indirect
	github.com/nats-io/nkeys v0.4.16 // indirect
	github.com/nats-io/nuid v1.0.1 // indirect
	golang.org/x/crypto v0.58.0 // indirect
	golang.org/x/sync v0.24.0 // indirect
	golang.org/x/sys v0.49.0 // indirect
	golang.org/x/time v0.16.0 // indirect
)
