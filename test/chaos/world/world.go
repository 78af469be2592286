// Package world runs belfry deployments that can be harmed: real processes, servers and disks, and the
// faults that can be injected into each.
package world

import (
	"context"
	"math/rand/v2"
)

// Kind is a kind of deployment.
type Kind string

// The kinds. The stores of Mongo, Dynamo and Cluster are in a server, which several processes use.
const (
	Files       Kind = "files"         // one process with the embedded bus
	FilesAndBus Kind = "files-and-bus" // one process and a NATS server
	Mongo       Kind = "mongodb"       // two fronts, two workers and a NATS server
	Dynamo      Kind = "dynamodb"      // the same
	Cluster     Kind = "cluster"       // four fronts, four workers and three NATS servers, on DynamoDB's stand-in
)

// Kinds returns all kinds.
func Kinds() []Kind { return []Kind{Files, FilesAndBus, Mongo, Dynamo, Cluster} }

// Storage stands for the type and place of a binary storage in the configuration that a world is
// started with: `binaries: {binary: {$STORAGE, map: {Children: [picture]}}}`.
const Storage = "$STORAGE"

// Deployment is what clients and checks need to reach a belfry deployment.
type Deployment struct {
	Fronts []string // base URLs of the HTTP fronts
	Bus    string   // URLs of the bus, reachable while no fault is there; several servers are separated by commas
	Config string   // configuration file for belfry's commands, such as verify
}

// Nemesis is one kind of fault.
type Nemesis struct {
	Name string
	// Inject returns when the fault is there. heal ends it, and returns when the processes are started
	// again, not when they are ready. What is random is read from r.
	Inject func(ctx context.Context, r *rand.Rand) (heal func(ctx context.Context) error, err error)
	// Kills and PowerCuts is how many process kills and power cuts one injection counts as, at least.
	Kills, PowerCuts int
}
