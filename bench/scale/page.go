package main

import (
	"fmt"
	"os"
	"strings"
	"time"
)

// reproduced is a table of measured and simulated rates.
func reproduced(predictions []prediction) string {
	var b strings.Builder
	b.WriteString("| backend | operation | fronts | workers | processors | measured | simulated | | by its own costs " +
		"| |\n|---|---|---|---|---|---|---|---|---|---|\n")
	for _, p := range predictions {
		if p.Simulated == 0 {
			continue
		}
		fmt.Fprintf(&b, "| %s | `%s` | %d | %d | %d | %s | %s/s | %+.0f %% | %s/s | %+.0f %% |\n",
			p.Backend, p.Operation, p.Fronts, p.Workers, p.Processors, p.measured(), number(p.Simulated),
			100*(p.Simulated/p.Rate-1), number(p.ByOwn), 100*(p.ByOwn/p.Rate-1))
	}
	return b.String()
}

// measured is the rate, and those of several runs.
func (p *point) measured() string {
	if p.Least == p.Most {
		return number(p.Rate) + "/s"
	}
	return fmt.Sprintf("%s/s (%s to %s)", number(p.Rate), number(p.Least), number(p.Most))
}

// stored is a table of what one server of the bus stores.
func stored(ps points) string {
	var b strings.Builder
	b.WriteString("| streams | events published together | events a second | processor time of the server for an " +
		"event |\n|---|---|---|---|\n")
	for i := range ps {
		if p := &ps[i]; p.Operation == appendOnly {
			fmt.Fprintf(&b, "| %d | %d | %s | %.0f µs |\n", p.Streams, p.Batch,
				strings.ReplaceAll(p.measured(), "/s", ""), p.CPU[bus])
		}
	}
	return b.String()
}

// text is a plan for people.
func (p *plan) text() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s creates a second, %.0f %% of them with an entry in an array, by the costs on %s:\n\n",
		number(p.creates), 100*p.mapped, p.backend)
	fmt.Fprintf(&b, "| process | measured | one takes | needed | by division | simulated: fewest without a queue | "+
		"planned: %.0f %% busy at the highest cost |\n|---|---|---|---|---|---|---|\n", 100*p.busy)
	for _, n := range p.needs {
		cost := number(n.micros)
		if n.most > n.micros {
			cost += " to " + number(n.most)
		}
		fmt.Fprintf(&b, "| %s | %s µs for each %s | %s/s | %s/s | %.1f | %s | %s |\n",
			n.kind, cost, n.a, number(1e6/n.micros), number(n.rate), n.divided, p.limited(n.kind, n.simulated),
			p.limited(n.kind, n.planned))
	}
	fmt.Fprintf(&b, "\n- Servers of the bus: %.0f processors, if they are busy all the time, for all streams "+
		"together and what fronts and workers exchange with them.\n", p.bus)
	fmt.Fprintf(&b, "- Database: %s reads and %s writes a second, of which %s are in flight at %s each.\n",
		number(p.reads), number(p.writes), number(p.inFlight), short(p.latency))
	fmt.Fprintf(&b, "- With the planned processes, simulated: a reply after %s (p99 %s), its event in the log %s "+
		"later (p99 %s), its entry in the array %s later (p99 %s).\n",
		short(p.reply.p50), short(p.reply.p99), short(p.log.p50), short(p.log.p99), short(p.applied.p50),
		short(p.applied.p99))
	return b.String()
}

// limited is a number of processes. There are not more streams than partitions.
func (p *plan) limited(kind string, n int) string {
	switch {
	case n == 0:
		return fmt.Sprintf("more than the %d partitions", p.partitions)
	case kind == stream && n > p.partitions:
		return fmt.Sprintf("%d, more than the %d partitions", n, p.partitions)
	default:
		return number(float64(n))
	}
}

func short(d time.Duration) string {
	return fmt.Sprintf("%.1f ms", float64(d)/float64(time.Millisecond))
}

// number writes a number with commas.
func number(n float64) string {
	text := fmt.Sprintf("%.0f", n)
	for i := len(text) - 3; i > 0; i -= 3 {
		text = text[:i] + "," + text[i:]
	}
	return text
}

// writeSection replaces what is between the marks of a section of a page.
func writeSection(page, section, text string) error {
	old, err := os.ReadFile(page)
	if err != nil {
		return err
	}
	changed, err := withSection(string(old), section, text)
	if err != nil {
		return fmt.Errorf("%s: %w", page, err)
	}
	return os.WriteFile(page, []byte(changed), 0o644)
}

func withSection(page, section, text string) (string, error) {
	begin, end := "<!-- "+section+": make plots writes this -->\n", "<!-- end of "+section+" -->\n"
	before, rest, found := strings.Cut(page, begin)
	_, after, closed := strings.Cut(rest, end)
	if !found || !closed {
		return "", fmt.Errorf("there is no section %s", section)
	}
	return before + begin + "\n" + text + "\n" + end + after, nil
}
