package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"text/tabwriter"
	"time"

	"belfry/config"
	"belfry/internal/count"
	"belfry/pkg/app/command"
	"belfry/pkg/app/examine"
	"belfry/pkg/app/plan"
	"belfry/pkg/errs"
	"belfry/pkg/operations/doctor"
)

type doctorCmd struct {
	configuration
	command.BusUser
	Timeout time.Duration `help:"How long all checks may take (${default})." default:"15s" placeholder:"DURATION"`
	All     bool          `help:"Also show what was checked and is right."`
	JSON    bool          `name:"json" help:"One JSON object, with all findings."`
}

// Run asks everything at once and prints what is wrong, with what to do about each. Its exit code is 1 when there is a
// problem, and 2 when the configuration is invalid, so that nothing else could be asked.
func (c *doctorCmd) Run(ctx context.Context, s streams) error {
	if c.Timeout <= 0 {
		return errs.New(errs.Invalid, "--timeout: expected a duration such as 15s")
	}
	o := examine.DoctorOptions{Within: c.Timeout}
	loaded, err := c.load("")
	if err != nil {
		return c.invalid(s, err)
	}
	if err := plan.Check(loaded); err != nil {
		return c.invalid(s, err)
	}
	if c.BusUser != (command.BusUser{}) {
		options, err := c.Options(func() (*config.Config, error) { return c.load("") })
		if err != nil {
			return err
		}
		if c.URL != "" {
			if options.TLS, err = plan.BusTrust(loaded); err != nil {
				return err
			}
		}
		o.Bus = &options
	}
	r := examine.Doctor(ctx, loaded, o)
	if err := ctx.Err(); err != nil {
		return err
	}
	if err := c.write(s.out, r); err != nil {
		return err
	}
	if n := r.Count(doctor.Problem); n > 0 {
		fmt.Fprintf(s.err, "belfry: %s found\n", count.Of(n, "problem"))
		return command.ErrFound
	}
	return nil
}

// invalid reports a configuration with which nothing can be asked.
func (c *doctorCmd) invalid(s streams, err error) error {
	if writing := c.write(s.out, examine.DoctorConfig(err)); writing != nil {
		return writing
	}
	if problems := (config.Problems)(nil); errors.As(err, &problems) {
		return errs.New(errs.Invalid, "the configuration has %s; nothing else was asked",
			count.Of(len(problems), "problem"))
	}
	return errs.New(errs.Invalid, "the configuration can't be read; nothing else was asked")
}

func (c *doctorCmd) write(w io.Writer, r *doctor.Report) error {
	if c.JSON {
		return writeFoundJSON(w, r)
	}
	return writeFound(w, r, c.All)
}

// writeFoundJSON writes the findings in the order of the checks, with the numbers of each level.
func writeFoundJSON(w io.Writer, r *doctor.Report) error {
	counts := map[doctor.Level]int{}
	for _, level := range doctor.Levels() {
		counts[level] = r.Count(level)
	}
	e := json.NewEncoder(w)
	e.SetEscapeHTML(false)
	e.SetIndent("", "  ")
	return e.Encode(struct {
		Healthy bool                 `json:"healthy"`
		Counts  map[doctor.Level]int `json:"counts"`
		*doctor.Report
	}{r.Healthy(), counts, r})
}

// writeFound writes what is wrong, the most urgent first, and a line with the numbers.
func writeFound(w io.Writer, r *doctor.Report, all bool) error {
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	for _, f := range r.Urgent() {
		if f.Level == doctor.OK && !all {
			continue
		}
		what := f.Area
		if f.Subject != "" {
			what += " " + f.Subject
		}
		fmt.Fprintf(t, "%s\t%s\t%s\n", strings.ToUpper(string(f.Level)), f.Name, oneLine(what+": "+f.Says))
		if f.Do != "" {
			fmt.Fprintf(t, "\t\t→ %s\n", oneLine(f.Do))
		}
	}
	if err := t.Flush(); err != nil {
		return err
	}
	sum := make([]string, 0, len(doctor.Levels()))
	for _, level := range doctor.Levels() {
		n, noun := r.Count(level), string(level)
		if level == doctor.Problem || level == doctor.Warning {
			noun = count.Noun(n, noun)
		}
		sum = append(sum, fmt.Sprint(n, " ", noun))
	}
	_, err := fmt.Fprintln(w, strings.Join(sum, ", "))
	return err
}

// oneLine replaces what would break a line or move the cursor: servers write what they like.
func oneLine(text string) string {
	return strings.Map(func(r rune) rune {
		if r < ' ' || r == 0x7f {
			return ' '
		}
		return r
	}, text)
}
