package e2e

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"os"
	"strings"
	"sync"

	"github.com/nats-io/nats.go"
	"github.com/rogpeppe/go-internal/testscript"

	"belfry/test/process"
)

type sessionKey struct{}

// session is what one script has going.
type session struct {
	program string
	server  *process.Server
	bus     string // address
	last    response
	exit    int // of the last command

	conn *nats.Conn
	mu   sync.Mutex
	msgs []*nats.Msg
}

type response struct {
	status int
	header http.Header
	body   []byte
}

func newSession(env *testscript.Env, program string) *session {
	s := &session{program: program}
	env.Defer(func() {
		if s.conn != nil {
			s.conn.Close()
		}
		if s.server == nil {
			return
		}
		s.server.Kill()
		if race := s.server.Race(); race != "" {
			env.T().Fatal("belfry has a data race:\n" + race)
		}
	})
	return s
}

func of(ts *testscript.TestScript) *session { return ts.Value(sessionKey{}).(*session) }

// serve starts belfry. $BUS in the configuration is a free address for the bus.
func (s *session) serve(ts *testscript.TestScript, file string) error {
	if s.bus == "" {
		port, err := process.FreePort()
		if err != nil {
			return err
		}
		s.bus = fmt.Sprintf("127.0.0.1:%d", port)
		ts.Setenv("BUS", s.bus)
	}
	var err error
	s.server, err = process.Start(s.program, []string{"BUS=" + s.bus}, "--config", file, "--listen", "127.0.0.1:0")
	if err == nil {
		ts.Setenv("URL", s.server.URL)
	}
	return err
}

// request makes METHOD PATH [-H HEADER]... [BODY|@FILE].
func (s *session) request(ts *testscript.TestScript, args []string) error {
	if len(args) < 2 {
		return fmt.Errorf("http METHOD PATH [-H HEADER]... [BODY|@FILE]")
	}
	method, path, rest := args[0], args[1], args[2:]
	header := http.Header{}
	for len(rest) > 1 && rest[0] == "-H" {
		name, value, _ := strings.Cut(rest[1], ":")
		header.Add(name, strings.TrimSpace(value))
		rest = rest[2:]
	}
	var body io.Reader
	if len(rest) > 0 {
		data := []byte(rest[0])
		if strings.HasPrefix(rest[0], "@") {
			var err error
			if data, err = os.ReadFile(ts.MkAbs(rest[0][1:])); err != nil {
				return err
			}
		}
		body = bytes.NewReader(data)
		if header.Get("Content-Type") == "" {
			header.Set("Content-Type", "application/json")
		}
	}
	req, err := http.NewRequest(method, s.server.URL+path, body)
	if err != nil {
		return err
	}
	req.Header = header
	res, err := http.DefaultTransport.RoundTrip(req)
	if err != nil {
		return err
	}
	defer func() { _ = res.Body.Close() }()
	s.last = response{status: res.StatusCode, header: res.Header}
	s.last.body, err = io.ReadAll(res.Body)
	return err
}

// subscribe listens on the bus. The subscription is at the server when it
// returns.
func (s *session) subscribe(subject string) (err error) {
	if s.conn == nil {
		if s.conn, err = nats.Connect("nats://"+s.bus, nats.MaxReconnects(-1)); err != nil {
			return err
		}
	}
	if _, err := s.conn.Subscribe(subject, func(m *nats.Msg) {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.msgs = append(s.msgs, m)
	}); err != nil {
		return err
	}
	return s.conn.Flush()
}

// find returns the first message on a subject whose values are right.
func (s *session) find(subject string, pairs []string) []byte {
	s.mu.Lock()
	defer s.mu.Unlock()
next:
	for _, m := range s.msgs {
		if m.Subject != subject && !strings.HasPrefix(m.Subject, strings.TrimSuffix(subject, ">")) {
			continue
		}
		for i := 0; i+1 < len(pairs); i += 2 {
			if compare(m.Data, pairs[i], pairs[i+1]) != nil {
				continue next
			}
		}
		return m.Data
	}
	return nil
}

func (s *session) heardCount() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.msgs)
}
