package e2e

import (
	"context"
	"encoding/json"
	"fmt"
	"net/url"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/rogpeppe/go-internal/testscript"
	"github.com/tidwall/gjson"

	"belfry/test/kit"
	"belfry/test/process"
)

// patience is how long a script waits for an expected state, on a processor that does nothing else.
const patience = time.Minute

type command = func(ts *testscript.TestScript, neg bool, args []string)

// commands are the commands of scripts besides testscript's own (of which stop
// and kill are not for belfry, and take precedence over those here):
//
//	serve [FILE]                  start belfry with a configuration (belfry.yaml) on free ports; $URL, $METRICS, $ADDRESS, $BUS, $PID
//	shutdown                      ask it to stop; it must end well
//	crash                         kill it, as a power cut would
//	said REGEXP                   it has written this to standard output or to its log
//	belfry ARGS...                run a command; [!] when it must fail; see stdout, stderr, exit, json
//	eventually-says REGEXP ARGS...
//	                              run a belfry command until it succeeds and its output matches
//	exit CODE                     the exit code of the last belfry command
//	http METHOD PATH [-H H]... [BODY|@FILE]
//	                              a request to the server; PATH may be a URL
//	status CODE                   of the last response
//	header NAME REGEXP            of the last response; ! header NAME: it is absent
//	body REGEXP                   of the last response; ! body REGEXP
//	json PATH VALUE               a value of the last response's body (gjson path; '@this' is all);
//	                              ! json PATH: there is none
//	match PATH REGEXP             a string of the last response's body; ! match PATH REGEXP
//	keep NAME header H | json P | cookie C | query Q
//	                              keep a value of the last response as $NAME; query: a parameter of its Location
//	save FILE                     the last response's body
//	unzip FILE                    print the names of the entries of a zip file in a line, and their contents; see stdout
//	eventually PATH JSONPATH VALUE
//	                              GET PATH until the value is as expected; VALUE 'absent': until there is none
//	eventually-status PATH CODE   GET PATH until the status is CODE
//	eventually-body PATH REGEXP   GET PATH until the body matches
//	filled                        wait until the arrays of a first start are filled, so that only workers write them
//	idle                          wait until all events are published and handled
//	fill FILE BYTES FIELDS        make a JSON object of so many bytes that has these fields
//	lines FILE COUNT LINE         make a file of so many lines; %d in LINE is the line's number from 1
//	sub SUBJECT                   record the messages on a subject of the bus from now on
//	replay SUBJECT                forget the recorded messages; read what the durable log holds, from its beginning
//	event SUBJECT PATH VALUE ...  wait for a message with these values; it becomes the last response
//	                              (VALUE absent: there is none; present: there is one)
//	events COUNT SUBJECT PATH VALUE ...
//	                              this many messages received so far have these values
//	stream NAME [QUERY]           record the events of /events?QUERY from its ready on, as messages on stream.NAME.<event>, as the
//	                              present browser receives them
//	bus SUBJECT BODY              a request over the bus; its reply becomes the last response, with the status of its error or 200;
//	                              ! bus SUBJECT BODY: the bus does not let it through
//	listener NAME handles|fails|ends
//	                              run a listener of the whole log in this process; from now on it handles events,
//	                              or fails permanently, or it ends
//	handled COUNT NAME            wait until it has handled this many events
//	as [BROWSER]                  send the cookies of this browser from now on; without one, no cookies
//	eventually-login LOGIN PASSWORD CODE
//	                              log in until the status is CODE
//	eventually-limited SECONDS METHOD PATH [BODY]
//	                              repeat a request until it is refused for at least this many seconds
//	mailserver start | stop | restart | accept | refuse STAGE CODE TEXT
//	                              a mail server, whose port is ${SMTP_PORT} in the configuration; STAGE is MAIL, RCPT or DATA
//	mail ADDRESS                  wait for the next mail to an address; it becomes the last response, as
//	                              from, to, subject, text, html, id; $LINK is the path of its link, $TOKEN that link's token
//	mails COUNT ADDRESS           this many mails have arrived at an address
//	totp NAME SECRET [STEPS]      keep the code that an authenticator app shows, now or some steps of 30 seconds later, as $NAME
//	sealed                        no password, token or hash is in the log (of level debug), in an event or a reply
func commands() map[string]command {
	return map[string]command{
		"serve": takes(0, 1, serve),
		"shutdown": takes(0, 0,
			func(ts *testscript.TestScript, _ bool, _ []string) { ts.Check(of(ts).end((*process.Server).Stop)) }),
		"crash":             takes(0, 0, crash),
		"said":              takes(1, 1, said),
		"belfry":            takes(1, many, runBelfry),
		"eventually-says":   takes(2, many, eventuallySays),
		"exit":              takes(1, 1, checkExit),
		"http":              takes(2, many, request),
		"status":            takes(1, 1, checkStatus),
		"header":            takes(1, 2, checkHeader),
		"body":              takes(1, 1, checkBody),
		"json":              takes(1, 2, checkJSON),
		"match":             takes(2, 2, checkMatch),
		"keep":              takes(3, 3, keep),
		"save":              takes(1, 1, save),
		"unzip":             takes(1, 1, unzip),
		"eventually":        takes(3, 3, eventually),
		"eventually-status": takes(2, 2, eventuallyStatus),
		"eventually-body":   takes(2, 2, eventuallyBody),
		"filled": takes(0, 0,
			func(ts *testscript.TestScript, _ bool, _ []string) { ts.Check(of(ts).server.Filled()) }),
		"idle": takes(0, 0,
			func(ts *testscript.TestScript, _ bool, _ []string) { ts.Check(of(ts).server.Idle()) }),
		"fill":  takes(3, 3, fill),
		"lines": takes(3, 3, lines),
		"sub": takes(1, 1,
			func(ts *testscript.TestScript, _ bool, args []string) { ts.Check(of(ts).recorder.subscribe(args[0])) }),
		"replay":             takes(1, 1, replay),
		"event":              takes(3, many, awaitEvent),
		"events":             takes(2, many, countEvents),
		"stream":             takes(1, 2, openStream),
		"bus":                takes(2, 2, busRequest),
		"listener":           takes(2, 2, runListener),
		"handled":            takes(2, 2, awaitHandled),
		"as":                 takes(0, 1, as),
		"eventually-login":   takes(3, 3, eventuallyLogin),
		"eventually-limited": takes(3, many, eventuallyLimited),
		"mailserver":         takes(1, 4, mailServer),
		"mail":               takes(1, 1, awaitMail),
		"mails":              takes(2, 2, countMails),
		"totp":               takes(2, 3, totpCode),
		"sealed":             takes(0, 0, sealed),
	}
}

const many = 1000

// takes checks the number of arguments, so that a mistake in a script is reported as
// one. A word that begins with # must be quoted: it is a comment.
func takes(least, most int, do command) command {
	return func(ts *testscript.TestScript, neg bool, args []string) {
		if len(args) < least || len(args) > most {
			ts.Fatalf("%d arguments, want %d to %d", len(args), least, most)
		}
		do(ts, neg, args)
	}
}

func serve(ts *testscript.TestScript, _ bool, args []string) {
	file := "belfry.yaml"
	if len(args) > 0 {
		file = args[0]
	}
	ts.Check(of(ts).serve(ts, ts.MkAbs(file)))
}

func crash(ts *testscript.TestScript, _ bool, _ []string) {
	ts.Check(of(ts).end(func(s *process.Server) error { s.Kill(); return nil }))
}

func runBelfry(ts *testscript.TestScript, neg bool, args []string) {
	s := of(ts)
	out, errOut, exit, err := process.RunIn(ts.MkAbs("."), s.commands, args...)
	ts.Check(err)
	s.exit, s.last = exit, response{body: []byte(out)}
	_, _ = ts.Stdout().Write([]byte(out))
	_, _ = ts.Stderr().Write([]byte(errOut))
	s.golden.ran(args, out, errOut, exit)
	ts.Check(s.golden.settle())
	if (exit != 0) != neg {
		ts.Fatalf("belfry %s: exit %d", strings.Join(args, " "), exit)
	}
}

func eventuallySays(ts *testscript.TestScript, _ bool, args []string) {
	g := of(ts).golden
	ts.Check(kit.Await(patience, g.last(func() error {
		out, errOut, exit, err := process.RunIn(ts.MkAbs("."), of(ts).commands, args[1:]...)
		g.ran(args[1:], out, errOut, exit)
		if err != nil {
			return err
		}
		if exit != 0 {
			return fmt.Errorf("exit %d: %s", exit, errOut)
		}
		return matches([]byte(out), args[0])
	})))
}

func request(ts *testscript.TestScript, _ bool, args []string) {
	s := of(ts)
	ts.Check(s.request(ts, args))
	ts.Logf("%d %s", s.last.status, s.last.body[:min(len(s.last.body), 2000)])
}

func keep(ts *testscript.TestScript, _ bool, args []string) {
	s := of(ts)
	var value string
	switch args[1] {
	case "header":
		value = s.last.header.Get(args[2])
	case "json":
		value = gjson.GetBytes(s.last.body, args[2]).String()
	case "cookie":
		value = s.last.cookie(args[2])
	case "query":
		to, err := url.Parse(s.last.header.Get("Location"))
		ts.Check(err)
		value = to.Query().Get(args[2])
	}
	if value == "" {
		ts.Fatalf("nothing to keep as %s", args[0])
	}
	ts.Setenv(args[0], value)
}

func save(ts *testscript.TestScript, _ bool, args []string) {
	ts.Check(os.WriteFile(ts.MkAbs(args[0]), of(ts).last.body, 0o600))
}

// await sends GET requests until the last response is as expected.
func await(ts *testscript.TestScript, path string, right func(response) error) {
	s := of(ts)
	ts.Check(kit.Await(patience, s.golden.last(func() error {
		if err := s.request(ts, []string{"GET", path}); err != nil {
			return err
		}
		if err := right(s.last); err != nil {
			return fmt.Errorf("GET %s: %w: %d %s", path, err, s.last.status, s.last.body)
		}
		return nil
	})))
}

func eventually(ts *testscript.TestScript, _ bool, args []string) {
	await(ts, args[0], func(r response) error { return compare(r.body, args[1], args[2]) })
}

func eventuallyStatus(ts *testscript.TestScript, _ bool, args []string) {
	await(ts, args[0], func(r response) error {
		if got := strconv.Itoa(r.status); got != args[1] {
			return fmt.Errorf("status %s, want %s", got, args[1])
		}
		return nil
	})
}

func eventuallyBody(ts *testscript.TestScript, _ bool, args []string) {
	await(ts, args[0], func(r response) error { return matches(r.body, args[1]) })
}

func fill(ts *testscript.TestScript, _ bool, args []string) {
	size, err := strconv.Atoi(args[1])
	ts.Check(err)
	if !json.Valid([]byte(args[2])) {
		ts.Fatalf("%s is no JSON object", args[2])
	}
	head, tail := strings.TrimSuffix(args[2], "}"), `"}`
	if head == "{" {
		head += `"fill":"`
	} else {
		head += `,"fill":"`
	}
	text := head + strings.Repeat("x", size-len(head)-len(tail)) + tail
	ts.Check(os.WriteFile(ts.MkAbs(args[0]), []byte(text), 0o600))
}

func lines(ts *testscript.TestScript, _ bool, args []string) {
	count, err := strconv.Atoi(args[1])
	ts.Check(err)
	var b strings.Builder
	for i := 1; i <= count; i++ {
		b.WriteString(strings.ReplaceAll(args[2], "%d", strconv.Itoa(i)) + "\n")
	}
	ts.Check(os.WriteFile(ts.MkAbs(args[0]), []byte(b.String()), 0o600))
}

func replay(ts *testscript.TestScript, _ bool, args []string) {
	ctx, cancel := context.WithTimeout(context.Background(), kit.Limit)
	defer cancel()
	ts.Check(of(ts).recorder.replay(ctx, args[0]))
}

func awaitEvent(ts *testscript.TestScript, _ bool, args []string) {
	s := of(ts)
	err := kit.Await(patience, func() error {
		found := s.recorder.find(args[0], args[1:])
		if len(found) == 0 {
			return fmt.Errorf("nothing on %s with %s", args[0], strings.Join(args[1:], " "))
		}
		s.last = response{body: found[0].data}
		return nil
	})
	if err != nil {
		ts.Fatalf("%v; received\n%s", err, s.recorder.dump())
	}
}

func countEvents(ts *testscript.TestScript, _ bool, args []string) {
	s := of(ts)
	if got := strconv.Itoa(len(s.recorder.find(args[1], args[2:]))); got != args[0] {
		ts.Fatalf("%s messages on %s with %s, want %s; received\n%s", got, args[1], strings.Join(args[2:], " "),
			args[0], s.recorder.dump())
	}
}
