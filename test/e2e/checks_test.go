package e2e

import (
	"encoding/json"
	"fmt"
	"reflect"
	"regexp"
	"slices"

	"github.com/rogpeppe/go-internal/testscript"
	"github.com/tidwall/gjson"

	"belfry/test/kit"
)

func checkExit(ts *testscript.TestScript, _ bool, args []string) {
	if got := fmt.Sprint(of(ts).exit); got != args[0] {
		ts.Fatalf("exit code %s, want %s", got, args[0])
	}
}

func checkStatus(ts *testscript.TestScript, _ bool, args []string) {
	if got := fmt.Sprint(of(ts).last.status); got != args[0] {
		ts.Fatalf("status %s, want %s: %s", got, args[0], of(ts).last.body)
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
	if len(args) != 2 {
		ts.Fatalf("header NAME REGEXP, or ! header NAME")
	}
	right := regexp.MustCompile(args[1])
	if !slices.ContainsFunc(values, right.MatchString) {
		ts.Fatalf("header %s is %q, want a match of %s", args[0], values, args[1])
	}
}

func checkBody(ts *testscript.TestScript, neg bool, args []string) {
	if err := matches(of(ts).last.body, args[0]); (err != nil) != neg {
		ts.Fatalf("the body %s; a match of %s: want %v", of(ts).last.body, args[0], !neg)
	}
}

func checkJSON(ts *testscript.TestScript, neg bool, args []string) {
	if neg != (len(args) == 1) {
		ts.Fatalf("json PATH VALUE, or ! json PATH")
	}
	want := "absent"
	if !neg {
		want = args[1]
	}
	if err := compare(of(ts).last.body, args[0], want); err != nil {
		ts.Fatalf("%v in %s", err, of(ts).last.body)
	}
}

func checkMatch(ts *testscript.TestScript, neg bool, args []string) {
	body := of(ts).last.body
	value := gjson.GetBytes(body, args[0])
	if value.Type != gjson.String {
		ts.Fatalf("%s is no string in %s", args[0], body)
	}
	if err := matches([]byte(value.Str), args[1]); (err != nil) != neg {
		ts.Fatalf("%s is %q; a match of %s: want %v", args[0], value.Str, args[1], !neg)
	}
}

func said(ts *testscript.TestScript, neg bool, args []string) {
	s := of(ts).server
	if neg {
		if matches([]byte(s.Banner+s.Log()), args[0]) == nil {
			ts.Fatalf("belfry said %s", args[0])
		}
		return
	}
	ts.Check(kit.Await(patience, func() error { return matches([]byte(s.Banner+s.Log()), args[0]) }))
}

func matches(text []byte, pattern string) error {
	right, err := regexp.Compile(pattern)
	if err == nil && !right.Match(text) {
		err = fmt.Errorf("no match of %s in %s", pattern, text)
	}
	return err
}

// compare compares a value in a JSON text with one written as JSON; absent and
// present match any value.
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
	if want == "present" {
		return nil
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
