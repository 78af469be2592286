package main

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"belfry/test/kit/natsserver"
)

// A command whose user lacks a permission says which at once, prints no empty table, and fails.
func TestCommandsSayWhatTheirUserMayNot(t *testing.T) {
	t.Setenv("BELFRY_NATS_NAME", "test")
	t.Setenv("BELFRY_NATS_STORE", filepath.Join(t.TempDir(), "nats"))
	for _, user := range []string{"FRONT", "WORKER", "ALL", "LISTENER", "CLIENT", "OBSERVER", "ADMIN", "SYSTEM"} {
		t.Setenv("BELFRY_"+user+"_PASSWORD", "pw-of-"+strings.ToLower(user))
	}
	url := natsserver.ServeFile(t, "../../nats.conf").ClientURL()
	as := func(user string, args ...string) (code int, out, errOut string) {
		t.Helper()
		t.Setenv("BELFRY_BUS_PASSWORD", "pw-of-"+user)
		var o, e bytes.Buffer
		code = run(t.Context(), append(args, "--user", user, "--url", url), streams{strings.NewReader(""), &o, &e})
		return code, o.String(), e.String()
	}
	file := filepath.Join(t.TempDir(), "belfry.yaml")
	if err := os.WriteFile(file, []byte("stores: {Books: {}}\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if code, out, errOut := as("admin", "bus", "setup", "-c", file); code != exitDone {
		t.Fatalf("%s%s", out, errOut)
	}
	for _, c := range []struct {
		args []string
		says string
	}{
		{[]string{"dlq", "list"}, "$JS.API.CONSUMER.CREATE.DEAD."},
		{[]string{"dlq", "list", "--json"}, "$JS.API.CONSUMER.CREATE.DEAD."},
		{[]string{"dlq", "show", "1"}, "$JS.API."},
		{[]string{"dlq", "retry", "1"}, "$JS.API."},
		{[]string{"dlq", "retry", "--all"}, "$JS.API.CONSUMER.CREATE.DEAD."},
		{[]string{"dlq", "drop", "1"}, "$JS.API."},
		{[]string{"dlq", "drop", "--all"}, "$JS.API.CONSUMER.CREATE.DEAD."},
		{[]string{"listener", "reset", "mapping", "--from", "all"}, "$JS.API.CONSUMER."},
		{[]string{"events", "get"}, "$JS.API.CONSUMER.CREATE.EVENTS."},
		{[]string{"events", "get", "--from", "36h"}, "$JS.API.CONSUMER.CREATE.EVENTS."},
		{[]string{"events", "tail"}, "$JS.API.CONSUMER.CREATE.EVENTS."},
		{[]string{"events", "erase", "--store", "Books", "--uuid", "a", "--yes"}, "$JS.API.CONSUMER.CREATE.EVENTS."},
	} {
		code, out, errOut := as("front", c.args...)
		if code != exitFailed || strings.Contains(out, "LISTENER") ||
			!strings.Contains(errOut, "lacks the permission for "+c.says) || !strings.Contains(errOut, "--user admin") {
			t.Errorf("%v: exit %d: %s%s", c.args, code, out, errOut)
		}
	}
	// So it is with users who may read nothing.
	for _, user := range []string{"client", "observer", "listener"} {
		for _, args := range [][]string{{"events", "get"}, {"events", "get", "1"}, {"events", "tail"}, {"dlq", "list"},
			{"dlq", "retry", "1"}} {
			code, out, errOut := as(user, args...)
			if code != exitFailed || strings.Contains(out, "ID") ||
				!strings.Contains(errOut, "lacks the permission for $JS.API.") {
				t.Errorf("%s: %v: exit %d: %s%s", user, args, code, out, errOut)
			}
		}
	}
	// Nor do replies arrive when the user is in the URL.
	t.Setenv("BELFRY_BUS_PASSWORD", "")
	var out, errOut bytes.Buffer
	code := run(t.Context(),
		[]string{"dlq", "list", "--url", strings.Replace(url, "nats://", "nats://front:pw-of-front@", 1)},
		streams{strings.NewReader(""), &out, &errOut})
	if code != exitFailed || out.Len() != 0 || !strings.Contains(errOut.String(), "lacks the permission for _INBOX.") ||
		!strings.Contains(errOut.String(), "--user") {
		t.Errorf("exit %d: %s%s", code, out.String(), errOut.String())
	}
	if code, out, errOut := as("front", "listener", "confirm", "mapping"); code != exitFailed || out != "" ||
		!strings.Contains(errOut, "lacks the permission for listeners.confirm: with nats.conf") {
		t.Errorf("exit %d: %s", code, errOut)
	}
	// What it may see is shown.
	if code, out, errOut := as("front", "listener", "list"); code != exitDone ||
		!strings.Contains(out, "LAST ACTIVE") ||
		!strings.Contains(errOut, "lacks the permission for listeners.missed") {
		t.Errorf("exit %d: %s%s", code, out, errOut)
	}
	if code, out, errOut := as("observer", "listener", "list"); code != exitFailed || out != "" ||
		!strings.Contains(errOut, "permission") {
		t.Errorf("exit %d: %s%s", code, out, errOut)
	}
	// Without a belfry nobody knows what was missed, which is no reason to wait either.
	if code, out, errOut := as("admin", "listener", "list"); code != exitDone || !strings.Contains(out, "mapping") ||
		!strings.Contains(errOut, "no belfry with the role") {
		t.Errorf("exit %d: %s%s", code, out, errOut)
	}
	if code, out, errOut := as("admin", "dlq", "list"); code != exitDone || !strings.HasPrefix(out, "ID ") {
		t.Errorf("exit %d: %s%s", code, out, errOut)
	}
}
