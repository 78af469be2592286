package e2e

import (
	"context"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"sync"

	"github.com/nats-io/nats.go/jetstream"
	"github.com/rogpeppe/go-internal/testscript"

	"belfry/pkg/bus"
	"belfry/test/kit"
	"belfry/test/process"
)

// secrets are the secrets of a script: passwords, tokens and their hashes. They are
// collected from requests and responses.
type secrets struct {
	mu      sync.Mutex
	known   map[string]string // by secret: its kind
	replies strings.Builder   // of belfry
}

// add stores a secret and its hash.
func (s *secrets) add(what, value string) {
	if len(value) < 8 {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.known == nil {
		s.known = map[string]string{"$argon2": "the hash of a password"}
	}
	sum := sha256.Sum256([]byte(value))
	s.known[value] = what
	s.known[base64.RawURLEncoding.EncodeToString(sum[:])] = "the hash of " + what
}

// sent collects the secrets of a request.
func (s *secrets) sent(body []byte) {
	var fields map[string]any
	if json.Unmarshal(body, &fields) != nil {
		form, err := url.ParseQuery(string(body))
		if err != nil {
			return
		}
		fields = map[string]any{}
		for name := range form {
			fields[name] = form.Get(name)
		}
	}
	for _, name := range []string{"password", "newPassword", "token", "code", "binding"} {
		text, _ := fields[name].(string)
		s.add("a "+name, text)
	}
}

// sessionID is how many characters of a session's token are its id, which is no secret.
const sessionID = 22

// received collects the secrets of a response, and the response itself.
func (s *secrets) received(r response) {
	for _, c := range (&http.Response{Header: r.header}).Cookies() {
		if strings.HasSuffix(c.Name, "belfry-mail") {
			s.add("the binding of a login by mail", c.Value)
		}
		if isSession(c.Name) && len(c.Value) > sessionID {
			s.add("the token of a session", c.Value)
			s.add("the secret of a session", c.Value[sessionID:])
		}
	}
	body := string(r.body)
	var issued struct {
		Token  string
		Access string `json:"access_token"`

		Secret, Flow  string // of an authenticator app, and of a login whose second factor is missing
		RecoveryCodes []string
		Binding       string // of a login by mail
	}
	_ = json.Unmarshal(r.body, &issued) // other replies have no token
	for _, token := range []string{issued.Token, issued.Access} {
		if len(token) > sessionID {
			// A token that was asked for is in this reply, to its owner.
			s.add("a token", token)
			s.add("the secret of a token", token[sessionID:])
			body = strings.ReplaceAll(body, token, "")
		}
	}
	if issued.Binding != "" {
		s.add("a binding", issued.Binding)
		body = strings.ReplaceAll(body, issued.Binding, "")
	}
	for _, secret := range append(issued.RecoveryCodes, issued.Secret, issued.Flow) {
		if secret == "" {
			continue
		}
		s.add("a second factor", secret)
		body = strings.ReplaceAll(body, secret, "")
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for name, values := range r.header {
		// These return a secret to its owner.
		if name != "Set-Cookie" && name != "Location" {
			fmt.Fprintln(&s.replies, name, values)
		}
	}
	s.replies.WriteString(body)
}

// in returns the kinds of the secrets in a text.
func (s *secrets) in(text string) (found []string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for value, what := range s.known {
		if strings.Contains(text, value) {
			found = append(found, what+" ("+value+")")
		}
	}
	slices.Sort(found)
	return found
}

// sealed checks that no secret is in a log, an event or a reply.
func sealed(ts *testscript.TestScript, _ bool, _ []string) {
	s := of(ts)
	ctx, cancel := context.WithTimeout(context.Background(), kit.Limit)
	defer cancel()
	ts.Check(s.server.Idle())
	logs := s.logs + s.server.Log()
	if !strings.Contains(logs, "level=DEBUG") || len(s.server.Log()) == process.LogKept {
		ts.Fatalf("not everything was logged at level debug, or kept:\n%s", logs)
	}
	// The mailer of development logs the links of its mails, and nothing else does.
	logs = regexp.MustCompile(`(msg="a mail was written" file=\S+ link=)\S+`).ReplaceAllString(logs, "$1...")
	durable, err := s.recorder.streams(ctx, bus.StreamEvents, bus.StreamDead)
	ts.Check(err)
	if !strings.Contains(durable, `"Tokens"`) && !strings.Contains(durable, `"Sessions"`) {
		ts.Fatalf("the events are not of a script that logs in:\n%s", durable)
	}
	if len(s.secrets.known) < 3 {
		ts.Fatalf("the script has no secrets")
	}
	for where, text := range map[string]string{
		"the log": logs, "the durable events": durable, "a live event": s.recorder.all(),
		"a reply": s.secrets.replies.String(),
	} {
		if found := s.secrets.in(text); len(found) > 0 {
			ts.Fatalf("%s holds %s:\n%s", where, strings.Join(found, ", "), text)
		}
	}
}

// streams returns all messages of streams.
func (r *recorder) streams(ctx context.Context, names ...string) (string, error) {
	js, err := jetstream.New(r.conn, jetstream.WithDefaultTimeout(kit.Limit))
	if err != nil {
		return "", err
	}
	var b strings.Builder
	for _, name := range names {
		stream, err := js.Stream(ctx, name)
		if err != nil {
			return "", err
		}
		state := stream.CachedInfo().State
		for i := state.FirstSeq; i <= state.LastSeq && state.Msgs > 0; i++ {
			m, err := stream.GetMsg(ctx, i)
			if err != nil {
				continue // removed from the middle
			}
			fmt.Fprintln(&b, m.Subject, m.Header, string(m.Data))
		}
	}
	return b.String(), nil
}

// all returns every recorded message.
func (r *recorder) all() string {
	r.catchUp()
	var b strings.Builder
	for _, m := range r.messages {
		b.WriteString(m.subject + " " + string(m.data) + "\n")
	}
	return b.String()
}
