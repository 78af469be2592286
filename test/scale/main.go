// Command scale simulates deployments of belfry from what one operation was measured to cost on one of them: how fast they
// are, and what bounds them. It first predicts all that was measured on other deployments, from the costs measured with one
// front and one worker alone, so that its error is known.
package main

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"math"
	"os"
)

func main() {
	measured := flag.String("measured", "", "file that test/load -only scale -json has written")
	flag.Parse()
	if *measured == "" || flag.NArg() > 0 {
		flag.Usage()
		os.Exit(2)
	}
	if err := run(os.Stdout, *measured); err != nil {
		fmt.Fprintln(os.Stderr, "scale:", err)
		os.Exit(1)
	}
}

func run(out io.Writer, file string) error {
	points, err := readPoints(file)
	if err != nil {
		return err
	}
	predictions := predict(points)
	if len(predictions) == 0 {
		return errors.New(file + " has no point of one front and one worker on two processors, with others beside it")
	}
	fmt.Fprintln(out, "| backend | operation | fronts | workers | processors | measured | simulated | |\n|---|---|---|---|---|---|---|---|")
	for _, p := range predictions {
		fmt.Fprintf(out, "| %s | %s | %d | %d | %d | %.0f/s | %.0f/s | %+.0f %% |\n",
			p.point.Backend, p.point.Operation, p.point.Fronts, p.point.Workers, p.point.Processors, p.point.Rate, p.rate, 100*(p.rate/p.point.Rate-1))
	}
	return nil
}

// prediction is a point with its simulation.
type prediction struct {
	point *point
	outcome
}

// predict simulates all points by the costs at those with one front and one worker on two processors.
func predict(points []point) (all []prediction) {
	for i := range points {
		p := &points[i]
		from := reference(points, p)
		if from == nil {
			continue
		}
		o, known := operationOf(from)
		if !known {
			continue
		}
		others := math.Min(0.9, p.Others/float64(p.Processors))
		all = append(all, prediction{p, simulate(deploymentOf(p), o.slowed(others), p.Operations)})
	}
	return all
}

// reference is the point with whose costs another one is simulated.
func reference(points []point, of *point) *point {
	for i := range points {
		if p := &points[i]; p.Backend == of.Backend && p.Operation == of.Operation && p.Fronts == 1 && p.Workers == 1 && p.Processors == 2 {
			return p
		}
	}
	return nil
}
