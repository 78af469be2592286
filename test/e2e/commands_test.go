package e2e

import (
	"encoding/json"
	"fmt"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/rogpeppe/go-internal/testscript"
	"github.com/tidwall/gjson"

	"belfry/test/process"
)

// patience is how long a script waits for what must come.
const patience = 20 * time.Second

type command = func(ts *testscript.TestScript, neg bool, args []string)

// commands are what scripts can say besides testscript's own:
//
//	serve [FILE]                  start belfry with a configuration (belfry.yaml) on free ports
//	stop                          ask it to stop; it must end well
//	kill                          end it as a power cut would
//	belfry ARGS...                run a command; [!] when it must fail; see stdout, stderr, exit
//	exit CODE                     the exit code of the last belfry command
//	http METHOD PATH [-H H]... [BODY|@FILE]
//	                              a request to the server
//	status CODE                   of the last response
//	header NAME REGEXP            of the last response; ! header NAME: it is absent
//	json PATH VALUE               a value of the last response's body (gjson path; '@this' is all);
//	                              ! json PATH: there is none
//	keep NAME header H | json P   keep a value of the last response as $NAME
//	eventually PATH JSONPATH VALUE
//	                              GET PATH until the value is right; VALUE 'absent': until there is none
//	eventually-status PATH CODE   GET PATH until the status is right
//	idle                          until all events are published and handled
//	sub SUBJECT                   listen on the bus from now on
//	event SUBJECT PATH VALUE ...  wait for a message whose values are right; it becomes the last response
//	noevent SUBJECT PATH VALUE    no message heard so far has this value
func commands() map[string]command {
	return map[string]command{
		"serve": func(ts *testscript.TestScript, neg bool, args []string) {
			file := "belfry.yaml"
			if len(args) > 0 {
				file = args[0]
			}
			ts.Check(of(ts).serve(ts, ts.MkAbs(file)))
		},
		"stop": func(ts *testscript.TestScript, _ bool, _ []string) {
			s := of(ts)
			ts.Check(s.server.Stop())
		},
		"kill":   func(ts *testscript.TestScript, _ bool, _ []string) { of(ts).server.Kill() },
		"belfry": runBelfry,
		"exit": func(ts *testscript.TestScript, _ bool, args []string) {
			if got := fmt.Sprint(of(ts).exit); got != args[0] {
				ts.Fatalf("exit code %s, want %s", got, args[0])
			}
		},
		"http": func(ts *testscript.TestScript, _ bool, args []string) {
			s := of(ts)
			ts.Check(s.request(ts, args))
			ts.Logf("%d %s", s.last.status, s.last.body)
		},
		"status": func(ts *testscript.TestScript, _ bool, args []string) {
			if got := fmt.Sprint(of(ts).last.status); got != args[0] {
				ts.Fatalf("status %s, want %s: %s", got, args[0], of(ts).last.body)
			}
		},
		"header":            checkHeader,
		"json":              checkJSON,
		"keep":              keep,
		"eventually":        eventually,
		"eventually-status": eventuallyStatus,
		"idle":              func(ts *testscript.TestScript, _ bool, _ []string) { ts.Check(of(ts).server.Idle()) },
		"sub": func(ts *testscript.TestScript, _ bool, args []string) {
			ts.Check(of(ts).subscribe(args[0]))
		},
		"event":   awaitEvent,
		"noevent": noEvent,
	}
}

func runBelfry(ts *testscript.TestScript, neg bool, args []string) {
	s := of(ts)
	for i, a := range args {
		if strings.HasPrefix(a, "@") {
			args[i] = ts.MkAbs(a[1:])
		}
	}
	out, errOut, exit, err := process.Run(s.program, args...)
	ts.Check(err)
	s.exit = exit
	_, _ = ts.Stdout().Write([]byte(out))
	_, _ = ts.Stderr().Write([]byte(errOut))
	if (exit != 0) != neg {
		ts.Fatalf("belfry %s: exit %d\n%s%s", strings.Join(args, " "), exit, out, errOut)
	}
}

func checkHeader(ts *testscript.TestScript, neg bool, args []string) {
	values := of(ts).last.header.Values(args[0])
	if neg {
		if len(values) > 0 {
			ts.Fatalf("header %s is there: %q", args[0], values)
		}
		return
	}
	right := regexp.MustCompile(args[1])
	if !slices.ContainsFunc(values, right.MatchString) {
		ts.Fatalf("header %s is %q, want a match of %s", args[0], values, args[1])
	}
}

func checkJSON(ts *testscript.TestScript, neg bool, args []string) {
	want := "absent"
	if !neg {
		want = args[1]
	}
	if err := compare(of(ts).last.body, args[0], want); err != nil {
		ts.Fatalf("%v in %s", err, of(ts).last.body)
	}
}

// compare compares a value in a JSON text with one written as JSON, or with
// "absent".
func compare(body []byte, path, want string) error {
	got := gjson.GetBytes(body, path)
	if want == "absent" {
		if got.Exists() {
			return fmt.Errorf("%s is %s, want none", path, got.Raw)
		}
		return nil
	}
	if !got.Exists() {
		return fmt.Errorf("no %s, want %s", path, want)
	}
	var g, w any
	if err := json.Unmarshal([]byte(want), &w); err != nil {
		return fmt.Errorf("the script's value %s is not JSON: %w", want, err)
	}
	if err := json.Unmarshal([]byte(got.Raw), &g); err != nil {
		return err
	}
	if !reflect.DeepEqual(g, w) {
		return fmt.Errorf("%s is %s, want %s", path, got.Raw, want)
	}
	return nil
}

func keep(ts *testscript.TestScript, _ bool, args []string) {
	s := of(ts)
	value := s.last.header.Get(args[2])
	if args[1] == "json" {
		value = gjson.GetBytes(s.last.body, args[2]).String()
	}
	if value == "" {
		ts.Fatalf("nothing to keep as %s", args[0])
	}
	ts.Setenv(args[0], value)
}

func eventually(ts *testscript.TestScript, _ bool, args []string) {
	s := of(ts)
	ts.Check(process.Await(patience, func() error {
		if err := s.request(ts, []string{"GET", args[0]}); err != nil {
			return err
		}
		return compare(s.last.body, args[1], args[2])
	}))
}

func eventuallyStatus(ts *testscript.TestScript, _ bool, args []string) {
	s := of(ts)
	ts.Check(process.Await(patience, func() error {
		if err := s.request(ts, []string{"GET", args[0]}); err != nil {
			return err
		}
		if got := fmt.Sprint(s.last.status); got != args[1] {
			return fmt.Errorf("GET %s: status %s, want %s", args[0], got, args[1])
		}
		return nil
	}))
}

func awaitEvent(ts *testscript.TestScript, _ bool, args []string) {
	s := of(ts)
	ts.Check(process.Await(patience, func() error {
		found := s.find(args[0], args[1:])
		if found == nil {
			return fmt.Errorf("no message on %s with %s among %d heard", args[0], strings.Join(args[1:], " "), s.heardCount())
		}
		s.last = response{body: found}
		return nil
	}))
}

func noEvent(ts *testscript.TestScript, _ bool, args []string) {
	if found := of(ts).find(args[0], args[1:]); found != nil {
		ts.Fatalf("heard on %s: %s", args[0], found)
	}
}
