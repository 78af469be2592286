package examples

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// audited returns the ids of the events in an audit log, in its order.
func audited(t *testing.T, path string) []string {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		t.Fatal(err)
	}
	var ids []string
	for text := range bytes.Lines(data) {
		var line struct{ Event struct{ ID string } }
		if !bytes.HasSuffix(text, []byte("\n")) {
			break // it is being written
		}
		if err := json.Unmarshal(text, &line); err != nil {
			t.Fatalf("%v:\n%s", err, text)
		}
		ids = append(ids, line.Event.ID)
	}
	return ids
}

func TestAudit(t *testing.T) {
	w := newFixture(t, "stores: {Books: {expose: {}}}")
	audit, path := program(t, "audit"), filepath.Join(t.TempDir(), "audit.jsonl")
	w.save("/books", `{"uuid":"before"}`) // the audit log begins with existing events
	c := w.start(nil, audit, "-file", path)
	for i := range 70 {
		w.save("/books", fmt.Sprintf(`{"uuid":"b-%d"}`, i))
		if i == 30 {
			w.eventually(func() error { return atLeast(10, audited(t, path)) })
			c.kill()
		}
	}

	// A crash in the middle of a write leaves half a line.
	f, err := os.OpenFile(path, os.O_APPEND|os.O_WRONLY, 0)
	w.check(err)
	_, err = f.WriteString(`{"hash":"0123`)
	w.check(errors.Join(err, f.Close()))

	c = w.start(nil, audit, "-file", path)
	w.eventually(func() error { return atLeast(71, audited(t, path)) })
	w.idle("audit")
	again := w.start(nil, audit, "-file", path)
	if code := again.exit(); code != 1 || !strings.Contains(again.stderr.String(), "written by another process") {
		t.Errorf("a second writer exited with %d", code)
	}
	c.stop()

	type event struct{ ID string }
	all := command[event](w, "events", "get")
	ids := audited(t, path)
	slices.Sort(ids)
	if n := len(slices.Compact(slices.Clone(ids))); n != len(ids) || n != len(all) {
		t.Errorf("%d lines of %d events; belfry has %d", len(ids), n, len(all))
	}

	verify := func(args ...string) (string, int) {
		cmd := exec.Command(audit, append([]string{"-verify", "-file", path}, args...)...)
		out, _ := cmd.CombinedOutput()
		return string(out), cmd.ProcessState.ExitCode()
	}
	out, code := verify()
	head := strings.TrimSpace(out[strings.LastIndexByte(strings.TrimSpace(out), ' ')+1:])
	if code != 0 || !strings.HasPrefix(out, "71 lines, head ") {
		t.Fatalf("verify: %d\n%s", code, out)
	}
	data, err := os.ReadFile(path)
	w.check(err)
	last := bytes.LastIndexByte(data[:len(data)-1], '\n') + 1
	w.check(os.WriteFile(path, data[:last], 0o600))
	if out, code := verify("-head", head); code != 1 || !strings.Contains(out, "it was truncated") {
		t.Errorf("with the end cut off: %d\n%s", code, out)
	}
	changed := bytes.Replace(data, []byte(`"uuid":"b-3"`), []byte(`"uuid":"b-4"`), 1)
	w.check(os.WriteFile(path, changed, 0o600))
	if out, code := verify(); code != 1 || !strings.Contains(out, "was changed") {
		t.Errorf("with a changed line: %d\n%s", code, out)
	}
	c = w.start(nil, audit, "-file", path)
	if code := c.exit(); code != 1 {
		t.Errorf("it continued a modified log and exited with %d", code)
	}
}

func atLeast[T any](n int, all []T) error {
	if len(all) < n {
		return fmt.Errorf("%d of %d", len(all), n)
	}
	return nil
}
