package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"belfry/pkg/operations/doctor"
	"belfry/test/mailbox"
)

// The exit code says whether there is a problem, and whether the configuration let anything be asked.
func TestDoctorExitsByWhatItFinds(t *testing.T) {
	folder := t.TempDir()
	file := filepath.Join(folder, "belfry.yaml")
	write := func(text string) {
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	const good = "listen: 127.0.0.1:0\nbus: {listen: \"\"}\nstores: {Books: {policy: owner}}\n"
	write(good)
	belfry(t, 0, "backup.none", "doctor", "-c", file)
	belfry(t, 0, "configuration.ok", "doctor", "-c", file, "--all")
	belfry(t, 2, "--timeout", "doctor", "-c", file, "--timeout", "0s")
	write("listen: [")
	belfry(t, 2, "nothing else was asked", "doctor", "-c", file)
	write(strings.Replace(good, "policy: owner", "policy: {get: 'x +'}", 1))
	belfry(t, 2, "stores.Books.policy.get", "doctor", "-c", file)
	belfry(t, 2, "configuration.unreadable", "doctor", "-c", filepath.Join(folder, "none.yaml"))

	s := mailbox.Start(t)
	s.Stop(t)
	write(good + "mailers: {m: {type: smtp, host: " + s.Host + ", tls: none, port: " + fmt.Sprint(s.Port) + "}}\n")
	belfry(t, 1, "mailer.unavailable", "doctor", "-c", file)

	var out, errs bytes.Buffer
	if code := run(t.Context(), []string{"doctor", "-c", file, "--json"},
		streams{strings.NewReader(""), &out, &errs}); code != exitFailed {
		t.Errorf("exit code %d: %s", code, errs.String())
	}
	var report struct {
		Healthy  bool
		Counts   map[doctor.Level]int
		Findings []doctor.Finding
	}
	if err := json.Unmarshal(out.Bytes(), &report); err != nil || report.Healthy ||
		report.Counts[doctor.Problem] != 1 || len(report.Findings) < 5 {
		t.Errorf("the report is %s: %v", out.String(), err)
	}
	for _, f := range report.Findings {
		if f.Level == "" || f.Area == "" || f.Name == "" || f.Says == "" || f.Do == "" && f.Level != doctor.OK {
			t.Errorf("the finding lacks something: %+v", f)
		}
	}
}

// The most urgent is first, each with what to do, and nothing that a server says moves the cursor.
func TestDoctorWritesTheMostUrgentFirst(t *testing.T) {
	r := &doctor.Report{Findings: []doctor.Finding{
		{Level: doctor.OK, Area: "bus", Name: "bus.connected", Says: "it replies"},
		{Level: doctor.Warning, Area: "disk", Name: "disk.low", Subject: "data", Says: "1 GiB", Do: "make space"},
		{Level: doctor.Problem, Area: "mailer", Name: "mailer.unavailable", Subject: "m", Says: "it says \x1b[2J\r\nno",
			Do: "correct it"},
	}}
	var out bytes.Buffer
	if err := writeFound(&out, r, false); err != nil {
		t.Fatal(err)
	}
	const want = `PROBLEM  mailer.unavailable  mailer m: it says  [2J  no
                             → correct it
WARNING  disk.low            disk data: 1 GiB
                             → make space
1 problem, 1 warning, 0 unseen, 1 ok
`
	if out.String() != want {
		t.Errorf("it writes\n%s", out.String())
	}
}
