package main

import (
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"belfry/test/backing"
	"belfry/test/kit"
	"belfry/test/process"
)

// faults are ways in which connections to a server fail so that no request succeeds.
var faults = []struct {
	name  string
	begin func(p *backing.Proxy)
}{
	{"cut", (*backing.Proxy).Cut},
	{"reset at the reply", func(p *backing.Proxy) { p.Reset(0) }},
	{"silent", (*backing.Proxy).Stall},
}

func TestBelfryReportsThatMongoDBIsUnavailable(t *testing.T) {
	t.Parallel()
	p := backing.StartProxy(t, backing.StartMongo(t).Address)
	reports(t, p,
		fmt.Sprintf("{type: mongodb, url: 'mongodb://%s/?serverSelectionTimeoutMS=3000&timeoutMS=10000'}", p.Address))
}

func TestBelfryReportsThatDynamoDBIsUnavailable(t *testing.T) {
	t.Parallel()
	p := backing.StartProxy(t, strings.TrimPrefix(backing.Dynoxide(t).URL, "http://"))
	reports(t, p, fmt.Sprintf("{type: dynamodb, region: eu-central-1, endpoint: 'http://%s'}", p.Address))
}

// reports starts belfry without its backend, and lets connections to the backend fail in one way after
// another: belfry says so, and recovers from each by itself.
func reports(t *testing.T, p *backing.Proxy, backend string) {
	t.Helper()
	config := filepath.Join(t.TempDir(), "belfry.yaml")
	text := fmt.Sprintf("data: ./data\nbus: {listen: ''}\nbackends: {default: %s}\nstores: {Parents: {expose: {}}}\n",
		backend)
	if err := os.WriteFile(config, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	server := startsOnceBackendRecovers(t, p, config)
	for _, f := range faults {
		f.begin(p)
		process.Eventually(t, time.Minute, func() error { return notReady(server, "backend default is unavailable") })
		p.Heal()
		process.Eventually(t, time.Minute, func() error { return ready(server) })
	}
	if err := server.Stop(); err != nil {
		t.Errorf("stopping: %v\n%s", err, server.Log())
	}
}

// startsOnceBackendRecovers starts belfry while its backend is unavailable: it reports that, and starts
// by itself once the backend recovers.
func startsOnceBackendRecovers(t *testing.T, p *backing.Proxy, config string) *process.Server {
	t.Helper()
	p.Cut()
	address := net.JoinHostPort("127.0.0.1", fmt.Sprint(kit.FreePort(t)))
	wait := process.ServeLater(t, config, "--listen", address)
	early := &process.Server{URL: "http://" + address}
	process.Eventually(t, time.Minute,
		func() error { return notReady(early, "belfry is starting and waits for backend default") })
	res, err := http.Get(early.URL + "/parents/x")
	if err != nil {
		t.Fatal(err)
	}
	_ = res.Body.Close()
	if res.StatusCode != http.StatusServiceUnavailable || res.Header.Get("Retry-After") == "" {
		t.Errorf("while it starts belfry says %d, Retry-After %q", res.StatusCode, res.Header.Get("Retry-After"))
	}
	p.Heal()
	server := wait()
	if log := server.Log(); !strings.Contains(log, "a backend is unavailable; retrying") {
		t.Errorf("the log does not report the wait: %s", log)
	}
	return server
}

func ready(s *process.Server) error {
	status, text, err := readiness(s)
	if err == nil && status != http.StatusOK {
		err = fmt.Errorf("/readyz: %d %s", status, text)
	}
	return err
}

func notReady(s *process.Server, says string) error {
	status, text, err := readiness(s)
	if err == nil && (status != http.StatusServiceUnavailable || !strings.Contains(text, says)) {
		err = fmt.Errorf("/readyz: %d %s, want 503 and %q", status, text, says)
	}
	return err
}

func readiness(s *process.Server) (status int, text string, err error) {
	res, err := http.Get(s.URL + "/readyz")
	if err != nil {
		return 0, "", err
	}
	defer func() { _ = res.Body.Close() }()
	body, err := io.ReadAll(res.Body)
	return res.StatusCode, string(body), err
}
