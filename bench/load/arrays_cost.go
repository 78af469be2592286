package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

// arrayMoment is what belfry has done until a moment.
type arrayMoment struct {
	at        time.Time
	cpu       time.Duration
	published int   // events
	written   int64 // bytes that it had the kernel write to the disk
	log       int64 // bytes of the files of the bus
}

// arrayCost is what updates of children cost.
type arrayCost struct {
	updates int
	took    time.Duration // until all entries were in their arrays
	cpu     time.Duration
	writes  int   // of arrays
	written int64 // bytes to the disk
	log     int64 // of these in the log of events, about
}

// nowOf returns what belfry has done, once it has done all that it was asked for.
func nowOf(s *server) (m arrayMoment, err error) {
	if err := mapped(s); err != nil {
		return m, err
	}
	m.at, m.cpu = time.Now(), s.cpu()
	if err := pollUntil(s, metricsPath, func(body []byte) bool {
		m.published = int(metric(body, "belfry_events_published_total"))
		return true
	}); err != nil {
		return m, err
	}
	text, err := os.ReadFile(filepath.Join("/proc", strconv.Itoa(s.cmd.Process.Pid), "io"))
	if err != nil {
		return m, err
	}
	var ok bool
	if m.written, ok = parseWritten(string(text)); !ok {
		return m, errors.New("the kernel does not say how much a process writes")
	}
	m.log, err = bytesOf(filepath.Join(s.data, "bus"))
	return m, err
}

// metric is the value of a metric without labels on a page of them; 0 when there is none.
func metric(page []byte, name string) float64 {
	for line := range strings.Lines(string(page)) {
		if value, ok := strings.CutPrefix(line, name+" "); ok {
			n, _ := strconv.ParseFloat(strings.TrimSpace(value), 64)
			return n
		}
	}
	return 0
}

// parseWritten returns the bytes that a process had written to the disk, of /proc/PID/io.
func parseWritten(text string) (bytes int64, ok bool) {
	written, cancelled, found := int64(0), int64(0), 0
	for line := range strings.Lines(text) {
		for name, value := range map[string]*int64{"write_bytes: ": &written, "cancelled_write_bytes: ": &cancelled} {
			if number, ok := strings.CutPrefix(line, name); ok {
				n, err := strconv.ParseInt(strings.TrimSpace(number), 10, 64)
				if err == nil {
					*value, found = n, found+1
				}
			}
		}
	}
	return written - cancelled, found == 2
}

// costOf is what happened between two moments in which some children were updated. Each update has an event, and so has
// each write of an array.
func costOf(updates int, began, ended arrayMoment) arrayCost {
	return arrayCost{
		updates: updates,
		took:    ended.at.Sub(began.at),
		cpu:     ended.cpu - began.cpu,
		writes:  ended.published - began.published - updates,
		written: ended.written - began.written,
		log:     ended.log - began.log,
	}
}

func (c arrayCost) rate() float64 { return float64(c.updates) / c.took.Seconds() }

// batch is how many updates one write of an array applies.
func (c arrayCost) batch() float64 { return float64(c.updates) / float64(max(1, c.writes)) }

// records are the bytes of arrays that are written for an update.
func (c arrayCost) records(arrayBytes int) float64 {
	return float64(c.writes) * float64(arrayBytes) / float64(c.updates)
}

// disk are the bytes to the disk for an update.
func (c arrayCost) disk() float64 { return float64(c.written) / float64(c.updates) }

// measureUpdates measures updates from the first request until all entries are in their arrays.
func measureUpdates(s *server, n int, send func(n int) error) (arrayCost, error) {
	began, err := nowOf(s)
	if err != nil {
		return arrayCost{}, err
	}
	began.at = time.Now()
	if err := send(n); err != nil {
		return arrayCost{}, err
	}
	ended, err := nowOf(s)
	return costOf(n, began, ended), err
}

// enoughUpdates measures so many updates that they take long enough: the more there are, the more of them one write
// applies, so the rate of few says little.
func enoughUpdates(first int, measure func(n int) (arrayCost, error)) (arrayCost, error) {
	for n := first; ; {
		cost, err := measure(n)
		if err != nil || cost.took >= arrayTurn/2 {
			return cost, err
		}
		n = max(2*n, int(cost.rate()*arrayTurn.Seconds()))
	}
}

// size is a number of bytes, for people.
func size(bytes float64) string {
	switch {
	case bytes >= 1<<20:
		return fmt.Sprintf("%.1f MiB", bytes/(1<<20))
	case bytes >= 10<<10:
		return fmt.Sprintf("%.0f KiB", bytes/(1<<10))
	case bytes >= 1<<10:
		return fmt.Sprintf("%.1f KiB", bytes/(1<<10))
	default:
		return fmt.Sprintf("%.0f bytes", bytes)
	}
}
