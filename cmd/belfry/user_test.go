package main

import (
	"bytes"
	"encoding/json"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"belfry/config"
	"belfry/pkg/account/admin"
	"belfry/pkg/app"
)

// say runs a command line with standard input, and returns what it writes to standard output and error.
func say(t *testing.T, code int, in string, args ...string) (out, errOut string) {
	t.Helper()
	var o, e bytes.Buffer
	if got := run(t.Context(), args, streams{strings.NewReader(in), &o, &e}); got != code {
		t.Fatalf("belfry %s: exit %d instead of %d: %s%s", strings.Join(args, " "), got, code, o.String(), e.String())
	}
	return o.String(), e.String()
}

// serve serves a configuration until the test ends.
func serve(t *testing.T, file string) *app.App {
	t.Helper()
	c, err := config.Load(file, os.LookupEnv)
	if err != nil {
		t.Fatal(err)
	}
	a, err := app.Start(t.Context(), c, logger(c.Log.Format, c.Log.Level, os.Stderr))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = a.Stop(t.Context()) })
	return a
}

func TestUsersOnTheCommandLine(t *testing.T) {
	folder := t.TempDir()
	file := filepath.Join(folder, "belfry.yaml")
	if err := os.WriteFile(file,
		[]byte("listen: 127.0.0.1:0\nbus: {listen: \"\"}\nlog: {level: error}\nauthentication: {providers: {email: "+
			"{}}}\nmailers: {default: {type: file}}\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	user := func(args ...string) []string { return append(append([]string{"user"}, args...), "-c", file) }
	const secret = "a fine password"
	belfry(t, 2, "the data folder has no data yet", user("list")...)
	out, _ := say(t, 0, secret+"\n", user("create", "root@example.com", "--admin", "--json")...)
	var root admin.Account
	if err := json.Unmarshal([]byte(out), &root); err != nil || !root.Admin || !root.HasPassword ||
		strings.Contains(out, "argon2id") {
		t.Fatalf("%s, %v", out, err)
	}
	if out, _ := say(t, 0, "",
		user("create", "ada@example.com", "--no-password", "--validated", "--fields",
			`{"name":"Ada"}`)...); !strings.HasSuffix(out, " (ada@example.com_email): created\n") {
		t.Error(out)
	}
	served := false
	for range 2 {
		if out, _ := say(t, 0, "", user("list")...); strings.Count(out, "\n") != 3 || !strings.HasPrefix(out, "UUID") ||
			!strings.Contains(out, root.UUID+"  yes    -") {
			t.Error(out)
		}
		if out, _ := say(t, 0, "", user("list", "--json")...); strings.Count(out, "\n") != 2 ||
			!strings.Contains(out, `"admin":true`) {
			t.Error(out)
		}
		if out, _ := say(t, 0, "", user("show", "ada@example.com")...); !strings.Contains(out, `"name": "Ada"`) ||
			strings.Contains(out, `"hasPassword": true`) != served {
			t.Error(out)
		}
		for _, c := range []struct {
			code int
			in   string
			says string
			args []string
		}{
			{0, "", ": the field admin is set\n", []string{"admin", "ada@example.com"}},
			{0, "", ": the field admin is removed\n", []string{"admin", "ada@example.com", "--revoke"}},
			{0, "", ": disabled; all sessions have ended\n", []string{"disable", "ada@example.com"}},
			{0, "", ": enabled\n", []string{"enable", "ada@example.com"}},
			{0, secret + "\r\n", ": the password is set", []string{"password", "ada@example.com"}},
			{0, secret, ": the password is set", []string{"password", "ada@example.com"}}, // without an end of line
			{2, "", "no password: expected it as the first line of standard input",
				[]string{"password", "ada@example.com"}},
			{2, "\n" + secret, "no password", []string{"password", "ada@example.com"}},
			{2, "short\n", "must have 8 to 1024 bytes", []string{"password", "ada@example.com"}},
			{2, strings.Repeat("x", 2000), "must have 8 to 1024 bytes", []string{"password", "ada@example.com"}},
			{2, "Password123\n", "/password: is one of the most common passwords: choose another",
				[]string{"password", "ada@example.com"}},
			{2, "Password123\n", "/password: is one of the most common passwords: choose another",
				[]string{"create", "eve@example.com"}},
			{2, secret, "unexpected argument", []string{"password", "ada@example.com", secret}},
			{2, secret, "unknown flag --password", []string{"create", "x@example.com", "--password=" + secret}},
			{2, secret, "is not an e-mail address", []string{"create", "nobody"}},
			{2, secret, "--fields: expected a JSON object", []string{"create", "x@example.com", "--fields", "[]"}},
			{1, secret, "there is already an account with this login", []string{"create", "ada@example.com"}},
			{1, "", "there is no user", []string{"disable", "nobody@example.com"}},
			{0, "", "ID  TYPE  LAST USED", []string{"sessions", "ada@example.com"}},
			{0, "", ": all sessions and API keys have ended\n", []string{"end-sessions", "ada@example.com"}},
			{1, "", "the user has no session with this id", []string{"end-sessions", "ada@example.com", "none"}},
			{0, "", ": a mail to set a new password will be sent\n",
				[]string{"recover", map[bool]string{false: "ada@example.com", true: "root@example.com"}[served]}},
			{1, "", "is not an address that the user logs in with",
				[]string{"recover", "ada@example.com", "--to", "root@example.com"}},
			{1, "", "the user has no ident with this uuid",
				[]string{"unlink", "ada@example.com", "root@example.com_email"}},
			{1, "", "this is the last login of the user",
				[]string{"unlink", "ada@example.com", "ada@example.com_email"}},
			{2, "yes\n", "confirm with --yes", []string{"delete", "ada@example.com"}},
		} {
			out, errOut := say(t, c.code, c.in, user(c.args...)...)
			if !strings.Contains(out+errOut, c.says) {
				t.Errorf("%v, served %t: %s%s, want %q", c.args, served, out, errOut, c.says)
			}
			if c.code == 0 && strings.Contains(out+errOut, secret) {
				t.Errorf("%v repeats the password: %s%s", c.args, out, errOut)
			}
		}
		if served {
			break
		}
		serve(t, file)
		served = true
	}
	say(t, 0, "", user("delete", "ada@example.com", "--yes")...)
	belfry(t, 1, "there is no user", user("show", "ada@example.com")...)
}

func TestAPIKeysOnTheCommandLine(t *testing.T) {
	file := filepath.Join(t.TempDir(), "belfry.yaml")
	if err := os.WriteFile(file, []byte("listen: 127.0.0.1:0\nbus: {listen: \"\"}\nlog: {level: error}\n"),
		0o600); err != nil {
		t.Fatal(err)
	}
	user := func(args ...string) []string { return append(append([]string{"user"}, args...), "-c", file) }
	out, _ := say(t, 0, "", user("create", "--machine", "--fields", `{"name":"ci"}`, "--json")...)
	var machine admin.Account
	if err := json.Unmarshal([]byte(out), &machine); err != nil || machine.HasPassword || len(machine.Idents) > 0 {
		t.Fatal(out, err)
	}
	for _, c := range [][]string{
		{"--machine: a machine has neither", "create", "x@example.com", "--machine"},
		{"is not an e-mail address", "create"},
		{"--expires: expected a time", "key", "create", machine.UUID, "x", "--expires", "tomorrow"},
		{"--expires: expected a time", "key", "create", machine.UUID, "x", "--expires", ""},
		{"--rule: is empty", "key", "create", machine.UUID, "x", "--rule", ""},
		{"must be in the future", "key", "create", machine.UUID, "x", "--expires=-1h"},
		{"/rule: at 1:1: undeclared reference to 'object'", "key", "create", machine.UUID, "x", "--rule", "object.x"},
	} {
		if _, errOut := say(t, 2, "", user(c[1:]...)...); !strings.Contains(errOut, c[0]) {
			t.Errorf("%v: %s", c[1:], errOut)
		}
	}
	early, errOut := say(t, 0, "",
		user("key", "create", machine.UUID, "deploy", "--expires", "720h", "--rule", "method == 'GET'")...)
	if len(early) != 66 || !strings.Contains(errOut, early[:22]) || strings.Contains(errOut, strings.TrimSpace(early)) {
		t.Errorf("%q, %q", early, errOut)
	}
	a := serve(t, file)
	status := func(token string) int {
		t.Helper()
		req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://"+a.HTTPAddress()+"/auth/me", nil)
		if err != nil {
			t.Fatal(err)
		}
		req.Header.Set("Authorization", "Bearer "+strings.TrimSpace(token))
		res, err := http.DefaultClient.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		_ = res.Body.Close()
		return res.StatusCode
	}
	served, _ := say(t, 0, "", user("key", "create", machine.UUID, "backup")...)
	for _, token := range []string{early, served} {
		if got := status(token); got != 200 {
			t.Errorf("a key: %d", got)
		}
	}
	if out, _ := say(t, 0, "", user("show", machine.UUID)...); strings.Count(out, `"name": "deploy"`)+
		strings.Count(out, `"name": "backup"`) != 2 || strings.Contains(out, early[22:65]) {
		t.Error(out)
	}
	say(t, 0, "", user("key", "revoke", machine.UUID, early[:22])...)
	say(t, 1, "", user("key", "revoke", machine.UUID, early[:22])...)
	if got := status(early); got != 401 {
		t.Errorf("a revoked key: %d", got)
	}
	say(t, 0, "", user("disable", machine.UUID)...)
	if got := status(served); got != 401 {
		t.Errorf("a key of a disabled machine: %d", got)
	}
}

// An admin by another rule than the field does not become one by the field.
func TestTheCommandReportsThatTheRuleOfAdminsIsAnother(t *testing.T) {
	file := filepath.Join(t.TempDir(), "belfry.yaml")
	if err := os.WriteFile(file, []byte("admins: user.role == 'root'\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	_, errOut := say(t, 1, "a fine password\n", "user", "create", "ada@example.com", "--admin", "-c", file)
	if !strings.Contains(errOut, "the rule `admins` of the configuration uses other fields") {
		t.Error(errOut)
	}
	say(t, 0, "a fine password\n", "user", "create", "root@example.com", "--fields", `{"role":"root"}`, "-c", file)
	_, errOut = say(t, 1, "", "user", "admin", "root@example.com", "--revoke", "-c", file)
	if !strings.Contains(errOut, "still an admin") {
		t.Error(errOut)
	}
}

// Output that programs collect is kept, and read by more people than may become the admin.
func TestALinkThatGivesRightsIsPrintedForPeopleAlone(t *testing.T) {
	var collected bytes.Buffer
	if isForPeople(config.Log{Format: "json"}, &collected) {
		t.Error("beside a log in JSON")
	}
	pipe, err := os.Create(filepath.Join(t.TempDir(), "output"))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = pipe.Close() }()
	if isForPeople(config.Log{Format: "json"}, pipe) {
		t.Error("into a file, beside a log in JSON")
	}
	if !isForPeople(config.Log{Format: "text"}, &collected) {
		t.Error("not beside a log for people")
	}
}
