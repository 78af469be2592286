package main

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"log/slog"
	"os"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"belfry/pkg/app/plan"
)

// logger writes in one format.
func logger(format string, level slog.Leveler, w io.Writer) *slog.Logger {
	p := &atomic.Pointer[string]{}
	p.Store(&format)
	return switchable(p, level, w)
}

// Durations in JSON are seconds, in whatever place.
func TestDurationsInJSONAreSeconds(t *testing.T) {
	var out bytes.Buffer
	logger("json", slog.LevelInfo,
		&out).With("within", 30*time.Second).WithGroup("request").LogAttrs(context.Background(), slog.LevelInfo, "m",
		slog.Duration("took", 1234567*time.Nanosecond), slog.Any("any", 2*time.Minute),
		slog.Group("inner", "wait", time.Duration(0)), slog.Int("n", 1500))
	var got struct {
		Within  float64
		Request struct {
			Took, Any float64
			Inner     struct{ Wait float64 }
			N         int
		}
	}
	if err := json.Unmarshal(out.Bytes(), &got); err != nil {
		t.Fatal(err)
	}
	if r := got.Request; got.Within != 30 || r.Took != 0.001234567 || r.Any != 120 || r.Inner.Wait != 0 || r.N != 1500 {
		t.Errorf("%s", out.String())
	}
	out.Reset()
	logger("text", slog.LevelInfo, &out).Info("m", "took", 1500*time.Millisecond)
	if !strings.Contains(out.String(), "took=1.5s") {
		t.Errorf("text for people: %s", out.String())
	}
}

// The help and the documents have every role.
func TestRolesAreNamedWhereverTheyAreListed(t *testing.T) {
	help, _ := say(t, 0, "", "serve", "--help")
	if !strings.Contains(help, "--role=ROLE,... ") {
		t.Errorf("the help has another form of --role: %s", help)
	}
	if want := strings.Join(plan.Roles(), ", "); !strings.Contains(strings.Join(strings.Fields(help), " "), want) {
		t.Errorf("the help does not name %s: %s", want, help)
	}
	for file, line := range map[string]string{"../../docs/reference/glossary.md": "| role |",
		"../../docs/guides/deploy-cluster.md": "belfry serve --role mapping"} {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		_, rest, found := strings.Cut(string(text), line)
		line, _, _ := strings.Cut(rest, "\n")
		for _, role := range plan.Roles() {
			named := strings.Contains(line, role)
			// The front is another process there, and the role mapping comes before.
			if strings.Contains(file, "deploy") {
				named = named || role == "front" || role == "mapping"
			}
			if !found || !named {
				t.Errorf("%s does not name %s", file, role)
			}
		}
	}
}

// A reload changes the format of what is logged after it, also by loggers that were made before.
func TestTheFormatOfTheLogChanges(t *testing.T) {
	var out strings.Builder
	format := &atomic.Pointer[string]{}
	text, asJSON := "text", formatJSON
	format.Store(&text)
	log := switchable(format, slog.LevelInfo, &out).With("part", "x").WithGroup("g")
	log.Info("one", "a", time.Second)
	format.Store(&asJSON)
	log.Info("two", "a", time.Second)
	log.Debug("three")
	lines := strings.Split(strings.TrimSpace(out.String()), "\n")
	if len(lines) != 2 || !strings.Contains(lines[0], `msg=one part=x g.a=1s`) ||
		!strings.Contains(lines[1], `"msg":"two","part":"x","g":{"a":1}}`) {
		t.Errorf("%q", lines)
	}
}
