// Command scale simulates deployments of belfry from what one operation was measured to cost on one of them: how fast
// they are, and what bounds them. It first predicts all that was measured on other deployments, from the costs measured
// with one front and one worker alone, so that its error is known; then it plans a deployment for a load that nobody
// has measured.
package main

import (
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"slices"
	"time"
)

// planned is the load that docs/scaling.md plans for.
var planned = target{creates: 100_000, mapped: 0.5, busy: 0.7, latency: 5 * time.Millisecond,
	wait: 20 * time.Millisecond, partitions: 32}

func main() {
	t := planned
	measured := flag.String("measured", "",
		"file that bench/load -only scale -json has written, or a folder with those of several runs")
	asJSON := flag.Bool("json", false, "print the points with their simulated rates as JSON, and no plan")
	page := flag.String("page", "", "page whose sections are written, instead of printing them")
	flag.Float64Var(&t.creates, "creates", t.creates, "creates a second")
	flag.Float64Var(&t.mapped, "mapped", t.mapped, "share of the creates that have an entry in the array of a target")
	flag.Float64Var(&t.busy, "busy", t.busy, "share of the time that the processes of a plan are busy")
	flag.DurationVar(&t.latency, "latency", t.latency, "of a request to the database: assumed")
	flag.DurationVar(&t.wait, "wait", t.wait, "that too few processes may add at the 99th percentile")
	flag.IntVar(&t.partitions, "partitions", t.partitions, "of the subjects of the log: streams can't be more")
	flag.Parse()
	if *measured == "" || flag.NArg() > 0 {
		flag.Usage()
		os.Exit(2)
	}
	if err := run(os.Stdout, *measured, *asJSON, *page, t); err != nil {
		fmt.Fprintln(os.Stderr, "scale:", err)
		os.Exit(1)
	}
}

// The sections of a page.
const (
	reproduction = "reproduction"
	appends      = "appends"
	planning     = "plan"
)

func run(out io.Writer, from string, asJSON bool, page string, t target) error {
	backends, err := readPoints(from)
	if err != nil {
		return err
	}
	var predictions []prediction
	for _, ps := range backends {
		predictions = append(predictions, predict(ps.merged())...)
	}
	if !slices.ContainsFunc(predictions, func(p prediction) bool { return p.Simulated > 0 }) {
		return errors.New(from + " has no point of one front and one worker on two processors")
	}
	if asJSON {
		return json.NewEncoder(out).Encode(predictions)
	}
	p, err := planFor(backends[0].merged(), t)
	if err != nil {
		return fmt.Errorf("%s: %w", from, err)
	}
	for _, section := range []struct{ name, text string }{{reproduction, reproduced(predictions)},
		{appends, stored(backends[0].merged())}, {planning, p.text()}} {
		if page != "" {
			err = writeSection(page, section.name, section.text)
		} else {
			_, err = fmt.Fprintln(out, section.text)
		}
		if err != nil {
			return err
		}
	}
	return nil
}
