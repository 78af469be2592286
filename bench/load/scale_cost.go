package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

// moment is what had been used up to it.
type moment struct {
	at      time.Time
	cpu     map[string]time.Duration // processor time, by process
	machine time.Duration            // processor time of all programs, on the processors of the deployment
	bus     busTotals
	events  uint64 // ever in the log
}

// busTotals are those of the bus with its clients, this program aside.
type busTotals struct {
	In       int64 `json:"in_client_msgs"`
	Out      int64 `json:"out_client_msgs"`
	InBytes  int64 `json:"in_client_bytes"`
	OutBytes int64 `json:"out_client_bytes"`
}

// now returns what the processes of a deployment have used.
func (d *deployment) now(ctx context.Context) (moment, error) {
	m := moment{at: time.Now(), cpu: d.cpu()}
	var err, logErr error
	if m.machine, err = machineTime(d.processors); err != nil {
		return m, err
	}
	m.events, logErr = d.events(ctx)
	m.bus, err = d.busTotals(ctx)
	return m, errors.Join(err, logErr)
}

// cpu is the processor time that each process has used, with that of the processes it has started, and that this one
// has, the generator, which has started all.
func (d *deployment) cpu() map[string]time.Duration {
	all := processTimes()
	used := map[string]time.Duration{"generator": all[os.Getpid()].own}
	for name, roots := range d.processes() {
		for _, pid := range roots {
			used[name] += treeTime(all, pid)
		}
	}
	return used
}

// processes returns the ids of the processes of a deployment by their names.
func (d *deployment) processes() map[string][]int {
	all := map[string][]int{"bus": d.bus.Processes(), "database": d.scale.database.Processes()}
	for i, s := range d.fronts {
		all[fmt.Sprint("front ", i+1)] = []int{s.cmd.Process.Pid}
	}
	for i, s := range d.workers {
		all[fmt.Sprint("worker ", i+1)] = []int{s.cmd.Process.Pid}
	}
	return all
}

// processTime is the processor time of a process.
type processTime struct {
	parent int
	own    time.Duration
	ended  time.Duration // of its children that have ended
}

// clockTick is the unit of times in /proc.
const clockTick = 10 * time.Millisecond

// processTimes returns those of all processes by their id.
func processTimes() map[int]processTime {
	files, _ := filepath.Glob("/proc/[0-9]*/stat")
	all := make(map[int]processTime, len(files))
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			continue // it has ended
		}
		if t, ok := parseProcess(string(text)); ok {
			pid, _ := strconv.Atoi(filepath.Base(filepath.Dir(file)))
			all[pid] = t
		}
	}
	return all
}

// parseProcess reads /proc/PID/stat. The name of the program is in parentheses, and may have any character.
func parseProcess(text string) (t processTime, ok bool) {
	end := strings.LastIndexByte(text, ')')
	fields := strings.Fields(text[end+1:])
	if end < 0 || len(fields) < 15 {
		return t, false
	}
	t.parent, _ = strconv.Atoi(fields[1])
	var times [4]time.Duration // user and system; both of children that have ended
	for i := range times {
		ticks, err := strconv.ParseInt(fields[11+i], 10, 64)
		if err != nil {
			return t, false
		}
		times[i] = time.Duration(ticks) * clockTick
	}
	t.own, t.ended = times[0]+times[1], times[2]+times[3]
	return t, true
}

// treeTime is the processor time of a process and of all that descend from it.
func treeTime(all map[int]processTime, root int) time.Duration {
	used := all[root].own + all[root].ended
	for pid, t := range all {
		if t.parent == root {
			used += treeTime(all, pid)
		}
	}
	return used
}

// machineTime is the processor time that some processors were busy.
func machineTime(processors []int) (time.Duration, error) {
	text, err := os.ReadFile("/proc/stat")
	if err != nil {
		return 0, err
	}
	busy := time.Duration(0)
	for _, p := range processors {
		t, ok := parseProcessor(string(text), p)
		if !ok {
			return 0, fmt.Errorf("/proc/stat does not have processor %d", p)
		}
		busy += t
	}
	return busy, nil
}

// parseProcessor reads how long a processor was busy from /proc/stat, time that another virtual machine has taken
// included.
func parseProcessor(text string, processor int) (busy time.Duration, ok bool) {
	for line := range strings.Lines(text) {
		fields := strings.Fields(line)
		if len(fields) < 9 || fields[0] != fmt.Sprint("cpu", processor) {
			continue
		}
		for i, field := range fields[1:9] {
			const idle, disk = 3, 4
			if ticks, err := strconv.ParseInt(field, 10, 64); err == nil && i != idle && i != disk {
				busy += time.Duration(ticks) * clockTick
			}
		}
		return busy, true
	}
	return 0, false
}

// busTotals asks the server. What it has exchanged with this program, which waits for events in its log, is left out.
func (d *deployment) busTotals(ctx context.Context) (busTotals, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, d.monitor+"/varz", nil)
	if err != nil {
		return busTotals{}, err
	}
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		return busTotals{}, err
	}
	defer func() { _ = res.Body.Close() }()
	var t busTotals
	err = json.NewDecoder(res.Body).Decode(&t)
	mine := d.log.Stats()
	t.In, t.InBytes = t.In-int64(mine.OutMsgs), t.InBytes-int64(mine.OutBytes)
	t.Out, t.OutBytes = t.Out-int64(mine.InMsgs), t.OutBytes-int64(mine.InBytes)
	return t, err
}

// Everything is done when, for calm, all processes together use less than a part of a processor: after it has cleared
// events a store pauses for a second at most.
const (
	calm     = 1300 * time.Millisecond
	calmPart = 0.1
)

// settle waits until everything is done, for a minute at most, and returns the moment since which it is.
func (d *deployment) settle(ctx context.Context) (moment, error) {
	at, err := d.now(ctx)
	for deadline := time.Now().Add(time.Minute); err == nil && time.Now().Before(deadline); {
		time.Sleep(calm)
		var next moment
		if next, err = d.now(ctx); err != nil {
			break
		}
		used := time.Duration(0)
		for process, t := range next.cpu {
			if process != "generator" {
				used += t - at.cpu[process]
			}
		}
		if used.Seconds() < calmPart*next.at.Sub(at.at).Seconds() {
			return at, nil
		}
		at = next
	}
	if err == nil {
		err = errors.New("the processes are still busy a minute after the last request")
	}
	return moment{}, err
}
