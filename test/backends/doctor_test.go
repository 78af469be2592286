package backends

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"belfry/pkg/operations/doctor"
	"belfry/test/backing"
	"belfry/test/kit"
	"belfry/test/process"
)

// examined returns the report of `belfry doctor` with a configuration.
func examined(t *testing.T, file string, exit int) (r doctor.Report) {
	t.Helper()
	out, errOut, got, err := process.Run(process.Commands(t), "doctor", "-c", file, "--json", "--timeout", "60s")
	if err != nil || json.Unmarshal([]byte(out), &r) != nil || got != exit {
		t.Fatalf("belfry doctor: exit %d instead of %d, %v: %s%s", got, exit, err, out, errOut)
	}
	return r
}

// foundIn returns what a report says by a name, "" if it has no such finding.
func foundIn(r doctor.Report, name, subject string) string {
	i := slices.IndexFunc(r.Findings, func(f doctor.Finding) bool {
		return f.Name == name && (subject == "" || f.Subject == subject)
	})
	if i < 0 {
		return ""
	}
	return r.Findings[i].Says
}

// The doctor asks MongoDB, DynamoDB, S3 and an external bus, beside two fronts that share them; and names the one that
// is gone.
func TestTheDoctorAsksAllServers(t *testing.T) {
	database, events := backing.StartMongo(t), backing.NATS(t)
	tables := dynamo(servers.dynoxide())
	name, files := place(), contents()
	var configs []string
	for range 2 {
		folder := t.TempDir()
		file := filepath.Join(folder, "belfry.yaml")
		text := fmt.Sprintf(`data: %s
listen: 127.0.0.1:0
bus: {url: %q}
backends: {default: {type: mongodb, url: '%s', database: %s}, second: %s}
stores: {Authors: {policy: owner}, Books: {policy: owner, backend: second, map: {Authors: {key: author, target: books, fields: title}}}}
binaries: {files: {%s, map: {Books: cover}}}
`, folder, events.URL, database.URL, name, tables, files)
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		configs = append(configs, file)
		process.Serve(t, file)
	}
	kit.WaitUntil(t, func() error {
		r := examined(t, configs[0], 0)
		for _, of := range [][2]string{{"backend.ok", "default"}, {"backend.ok", "second"}, {"binaries.ok", "files"},
			{"bus.inSync", "stream EVENTS"}, {"process.ready", ""}, {"listener.ok", ""}, {"clock.ok", ""}} {
			if foundIn(r, of[0], of[1]) == "" {
				return fmt.Errorf("%v is missing in %+v", of, r.Findings)
			}
		}
		if says := foundIn(r, "version.ok", ""); !strings.HasPrefix(says, "2 processes") {
			return fmt.Errorf("the versions are %q", says)
		}
		return nil
	})
	database.Kill()
	kit.WaitUntil(t, func() error {
		r := examined(t, configs[1], 1)
		if foundIn(r, "backend.unavailable", "default") == "" || foundIn(r, "backend.ok", "second") == "" ||
			foundIn(r, "process.part", "Backend default") == "" {
			return fmt.Errorf("found %+v", r.Findings)
		}
		return nil
	})
}
