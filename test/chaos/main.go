// Command chaos writes to a running belfry from many clients at once, and checks that nothing that was
// acknowledged is lost, that every write has its event, that reads are linearizable and that copies equal
// their objects. Faults are whatever happens to the deployment meanwhile. The configuration needs the
// stores that -stores prints. docs/reliability.md describes it.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"os/signal"
	"strconv"
	"strings"
	"time"

	"belfry/test/chaos/history"
	"belfry/test/chaos/run"
	"belfry/test/chaos/world"
	"belfry/test/kit"
)

// errBroken is the result of a run that found violations.
var errBroken = errors.New("promises were broken")

type flags struct {
	fronts, bus, config, belfry string
	duration, each              time.Duration
	seed                        uint64
	clients                     int
	ordered, accounts           bool
	json, stores                bool
}

func main() {
	var f flags
	set := flag.NewFlagSet("chaos", flag.ExitOnError)
	set.StringVar(&f.fronts, "front", "http://127.0.0.1:8080", "URLs of the HTTP fronts, separated by commas")
	set.StringVar(&f.bus, "bus", "nats://127.0.0.1:4222", "URL of the bus")
	set.StringVar(&f.config, "config", "", "configuration file of the deployment, for belfry verify and belfry dlq")
	set.StringVar(&f.belfry, "belfry", "belfry", "the program for these commands; \"\" leaves them out")
	set.DurationVar(&f.duration, "duration", time.Minute, "how long to run")
	set.DurationVar(&f.each, "check", 15*time.Second, "how long clients write between two checks")
	set.Uint64Var(&f.seed, "seed", 0, "what the clients do; 0: a random one")
	set.IntVar(&f.clients, "clients", 8, "concurrent clients")
	set.BoolVar(&f.ordered, "ordered", false,
		"one process writes: the events of an object must come in the order of their revisions")
	set.BoolVar(&f.accounts, "accounts", true, "register users and log in")
	set.BoolVar(&f.json, "json", false, "report as JSON")
	set.BoolVar(&f.stores, "stores", false, "print the stores that the configuration needs, and end")
	_ = set.Parse(os.Args[1:]) // it ends the program itself
	ctx, release := signal.NotifyContext(context.Background(), os.Interrupt)
	err := chaos(ctx, f)
	release()
	if err != nil {
		fmt.Fprintln(os.Stderr, "chaos:", err)
		os.Exit(1)
	}
}

func chaos(ctx context.Context, f flags) error {
	if f.stores {
		fmt.Print(strings.ReplaceAll(history.Stores, world.Storage, "type: FileStorage"))
		return nil
	}
	if f.belfry != "" && f.config == "" {
		return errors.New("-config is missing: belfry verify needs it (-belfry \"\" leaves it out)")
	}
	for f.seed == 0 {
		f.seed = rand.Uint64()
	}
	r, err := run.New(ctx, run.Options{
		Deployment: world.Deployment{Fronts: strings.Split(f.fronts, ","), Bus: f.bus, Config: f.config},
		Belfry:     f.belfry, Clients: f.clients, Ordered: f.ordered, Accounts: f.accounts, Seed: f.seed,
		Tag:  "chaos" + strconv.FormatInt(time.Now().UnixMilli(), 36),
		Logf: func(format string, args ...any) { fmt.Fprintf(os.Stderr, format+"\n", args...) },
	})
	if err != nil {
		return err
	}
	err = rounds(ctx, f, r)
	// The consumer of the run is deleted even when the run was interrupted.
	closing, cancel := context.WithTimeout(context.WithoutCancel(ctx), kit.Limit)
	defer cancel()
	err = errors.Join(err, r.Close(closing))
	report := r.Report()
	if f.json {
		text, failed := report.JSON()
		fmt.Println(string(text))
		err = errors.Join(err, failed)
	} else {
		fmt.Print(report.Text())
	}
	if err == nil && report.Broken() > 0 {
		err = errBroken
	}
	return err
}

// rounds writes and checks until the time is over.
func rounds(ctx context.Context, f flags, r *run.Run) error {
	random := rand.New(rand.NewPCG(f.seed, 0))
	deadline := time.Now().Add(f.duration)
	for {
		check := time.Now().Add(f.each)
		for first := true; first || time.Now().Before(check) && time.Now().Before(deadline); first = false {
			if err := r.Round(ctx, random); err != nil {
				return err
			}
		}
		if err := r.Check(ctx); err != nil || time.Now().After(deadline) {
			return err
		}
	}
}
