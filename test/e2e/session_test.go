package e2e

import (
	"bytes"
	"fmt"
	"io"
	"maps"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"

	"belfry/test/kit"
	"belfry/test/process"
)

type sessionKey struct{}

// session is the state of one script.
type session struct {
	program  string // of serve
	commands string // of other commands
	client   *http.Transport
	server   *process.Server // nil while none runs
	last     response
	exit     int // of the last command
	recorder recorder

	golden    *golden // nil for a script without a golden log
	test      testing.TB
	folder    string   // of the script
	env       []string // of belfry
	logs      string   // of earlier processes
	browsers  browsers
	listeners map[string]*testListener
	mails     mails
	secrets   secrets
}

type response struct {
	status int
	header http.Header
	body   []byte
}

func newSession(env *testscript.Env, program, commands string) (*session, error) {
	s := &session{
		program: program, commands: commands, client: &http.Transport{ResponseHeaderTimeout: kit.Limit},
		test: testOf(env), folder: env.WorkDir, listeners: map[string]*testListener{},
		mails: mails{read: map[string]int{}},
	}
	env.Defer(func() {
		s.recorder.close()
		for _, h := range s.listeners {
			h.stop()
		}
		s.client.CloseIdleConnections()
		if s.server == nil {
			return
		}
		s.server.Kill()
		if race := s.server.Race(); race != "" {
			env.T().Fatal("belfry has a data race:\n" + race)
		}
	})
	var err error
	if s.golden, err = newGolden(s, filepath.Base(s.test.Name())); s.golden != nil {
		env.Defer(func() {
			if err := s.golden.finish(); err != nil {
				env.T().Fatal(err)
			}
		})
	}
	return s, err
}

func of(ts *testscript.TestScript) *session { return ts.Value(sessionKey{}).(*session) }

// serve starts belfry and subscribes to the recorded subjects again.
func (s *session) serve(ts *testscript.TestScript, file string) error {
	if s.server != nil {
		return fmt.Errorf("belfry runs already")
	}
	var err error
	s.server, err = process.Start(s.program, s.env, "--config", file, "--listen", "127.0.0.1:0")
	if err != nil {
		return err
	}
	ts.Setenv("URL", s.server.URL)
	ts.Setenv("METRICS", s.server.Metrics)
	ts.Setenv("ADDRESS", strings.TrimPrefix(s.server.URL, "http://"))
	ts.Setenv("BUS", s.server.Bus)
	ts.Setenv("PID", fmt.Sprint(s.server.PID()))
	if err := s.golden.started(file, s.server); err != nil {
		return err
	}
	return s.recorder.attach(s.server.Bus)
}

// end ends belfry with a function.
func (s *session) end(how func(*process.Server) error) error {
	server := s.server
	if server == nil {
		return fmt.Errorf("belfry does not run")
	}
	if err := s.golden.settle(); err != nil {
		return err
	}
	s.server = nil
	s.client.CloseIdleConnections()
	err := how(server)
	s.golden.ended()
	s.logs += server.Log()
	if race := server.Race(); race != "" {
		return fmt.Errorf("belfry has a data race:\n%s", race)
	}
	if err != nil {
		return fmt.Errorf("%w\n%s", err, server.Log())
	}
	return nil
}

// request sends METHOD PATH [-H HEADER]... [BODY|@FILE].
func (s *session) request(ts *testscript.TestScript, args []string) error {
	if len(args) < 2 || s.server == nil {
		return fmt.Errorf("http METHOD PATH [-H HEADER]... [BODY|@FILE], while belfry serves")
	}
	method, path, rest := args[0], args[1], args[2:]
	header := http.Header{}
	for len(rest) > 1 && rest[0] == "-H" {
		name, value, _ := strings.Cut(rest[1], ":")
		header.Add(name, strings.TrimSpace(value))
		rest = rest[2:]
	}
	if len(rest) > 1 {
		return fmt.Errorf("what is %q?", rest[1:])
	}
	var data []byte
	given := maps.Clone(header)
	if len(rest) == 1 {
		data = []byte(rest[0])
		if strings.HasPrefix(rest[0], "@") {
			var err error
			if data, err = os.ReadFile(ts.MkAbs(rest[0][1:])); err != nil {
				return err
			}
		}
		if header.Get("Content-Type") == "" {
			header.Set("Content-Type", "application/json")
		}
	}
	s.secrets.sent(data)
	if strings.HasPrefix(path, "/") {
		path = s.server.URL + path
	}
	req, err := http.NewRequest(method, path, bytes.NewReader(data))
	if err != nil {
		return err
	}
	req.Header, req.Host = header, header.Get("Host")
	s.browsers.send(req)
	res, err := s.client.RoundTrip(req)
	if err != nil {
		return err
	}
	defer func() { _ = res.Body.Close() }()
	s.last = response{status: res.StatusCode, header: res.Header}
	s.last.body, err = io.ReadAll(res.Body)
	s.browsers.receive(res.Cookies())
	s.secrets.received(s.last)
	if err != nil {
		return err
	}
	s.golden.exchange(method, args[1], given, strings.Join(rest, ""))
	return s.golden.settle()
}
