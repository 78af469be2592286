package e2e

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"belfry/test/kit"
	"belfry/test/process"
)

// served starts a belfry with a configuration for a test.
func served(t *testing.T, configuration string) *process.Server {
	t.Helper()
	file := filepath.Join(t.TempDir(), "belfry.yaml")
	if err := os.WriteFile(file, []byte(configuration), 0o600); err != nil {
		t.Fatal(err)
	}
	return process.Serve(t, file, "--listen", "127.0.0.1:0")
}

// wire is a connection on which a test sends arbitrary bytes.
type wire struct {
	net.Conn
	in *bufio.Reader
}

func dial(t *testing.T, s *process.Server) *wire {
	t.Helper()
	conn, err := net.Dial("tcp", strings.TrimPrefix(s.URL, "http://"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	if err := conn.SetDeadline(time.Now().Add(kit.Limit)); err != nil {
		t.Fatal(err)
	}
	return &wire{Conn: conn, in: bufio.NewReader(conn)}
}

// exchange sends bytes and reads the response, at the same time: the server
// may refuse before it has read everything.
func (w *wire) exchange(sent string) (response, error) {
	go func() { _, _ = io.WriteString(w, sent) }()
	return w.response()
}

func (w *wire) response() (response, error) {
	res, err := http.ReadResponse(w.in, nil)
	if err != nil {
		return response{}, err
	}
	defer func() { _ = res.Body.Close() }()
	body, err := io.ReadAll(res.Body)
	return response{status: res.StatusCode, header: res.Header, body: body}, err
}

// head is a request up to the end of its headers.
func head(method, path string, headers ...string) string {
	lines := append([]string{method + " " + path + " HTTP/1.1", "Host: localhost"}, headers...)
	return strings.Join(lines, "\r\n") + "\r\n\r\n"
}

func post(body string) string {
	return head("POST", "/books", "Content-Type: application/json", fmt.Sprintf("Content-Length: %d", len(body))) + body
}

// isProblem returns an error unless a response is a complete problem document.
func isProblem(r response, status int) error {
	var p struct {
		Type, Title, Detail, Instance string
		Status                        int
	}
	switch {
	case r.status != status:
		return fmt.Errorf("status %d, want %d: %s", r.status, status, r.body)
	case r.header.Get("Content-Type") != "application/problem+json":
		return fmt.Errorf("Content-Type %q", r.header.Get("Content-Type"))
	case json.Unmarshal(r.body, &p) != nil:
		return fmt.Errorf("no JSON: %s", r.body)
	case p.Type == "" || p.Title == "" || p.Detail == "" || p.Instance == "" || p.Status != status:
		return fmt.Errorf("an incomplete problem: %s", r.body)
	}
	return nil
}

// unharmed checks that a belfry runs and accepts a write.
func unharmed(t *testing.T, s *process.Server) {
	t.Helper()
	for _, request := range []struct {
		sent string
		want int
	}{
		{head("GET", "/healthz"), http.StatusOK},
		{post(`{"title":"a normal one"}`), http.StatusCreated},
	} {
		r, err := dial(t, s).exchange(request.sent)
		if err != nil || r.status != request.want {
			t.Fatalf("belfry does not work: %v, status %d, want %d: %s\n%s", err, r.status, request.want, r.body,
				s.Log())
		}
	}
}
