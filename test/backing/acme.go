package backing

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/miekg/dns"

	"belfry/test/kit"
	"belfry/test/kit/programs"
	"belfry/test/kit/tlskit"
)

// Authority is Pebble, the test server of ACME by Let's Encrypt. It finds every name on this machine.
type Authority struct {
	Directory string // URL
	CAFile    string // PEM file of the authority that Directory is trusted by

	management string
	client     *http.Client
}

// ACME starts an authority that issues certificates for seconds, and validates names on two ports. It ends with the
// test.
func ACME(t testing.TB, validity, httpPort, tlsPort int) *Authority {
	t.Helper()
	folder := t.TempDir()
	a := &Authority{CAFile: filepath.Join(folder, "ca.pem")}
	key := filepath.Join(folder, "key.pem")
	tlskit.WriteValid(t, a.CAFile, key, "127.0.0.1")
	listen, management := fmt.Sprint("127.0.0.1:", kit.FreePort(t)), fmt.Sprint("127.0.0.1:", kit.FreePort(t))
	a.Directory, a.management = "https://"+listen+"/dir", "https://"+management
	a.client = &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{RootCAs: tlskit.Pool(t, a.CAFile),
		MinVersion: tls.VersionTLS12}}}
	type object = map[string]any
	settings, err := json.Marshal(object{"pebble": object{
		"listenAddress": listen, "managementListenAddress": management, "certificate": a.CAFile, "privateKey": key,
		"httpPort": httpPort, "tlsPort": tlsPort, "keyAlgorithm": "ecdsa",
		"profiles":   object{"default": object{"description": "of tests", "validityPeriod": validity}},
		"retryAfter": object{"authz": 1, "order": 1},
	}})
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(folder, "pebble.json")
	if err := os.WriteFile(file, settings, 0o600); err != nil {
		t.Fatal(err)
	}
	program := filepath.Join(must(t)(programs.Tools("pebble")), "pebble")
	cmd := exec.Command(program, "-config", file, "-dnsserver", names(t))
	cmd.Env = []string{"PEBBLE_VA_NOSLEEP=1", "PEBBLE_WFE_NONCEREJECT=10", "PEBBLE_AUTHZREUSE=0"}
	start(t, cmd, func(ctx context.Context) error {
		_, err := a.get(ctx, a.Directory)
		return err
	})
	return a
}

// Roots trusts the certificates that the authority issues.
func (a *Authority) Roots(t testing.TB) *x509.CertPool {
	t.Helper()
	data, err := a.get(t.Context(), a.management+"/roots/0")
	if err != nil {
		t.Fatal(err)
	}
	return tlskit.PoolOf(t, data)
}

func (a *Authority) get(ctx context.Context, url string) ([]byte, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return nil, err
	}
	res, err := a.client.Do(req)
	if err != nil {
		return nil, err
	}
	defer func() { _ = res.Body.Close() }()
	return io.ReadAll(res.Body)
}

// names serves DNS over TCP, as the authority asks, by which every name is this machine, and returns its address.
func names(t testing.TB) string {
	t.Helper()
	listener, err := net.Listen("tcp", fmt.Sprint("127.0.0.1:", kit.FreePort(t)))
	if err != nil {
		t.Fatal(err)
	}
	server := &dns.Server{Listener: listener, Handler: dns.HandlerFunc(func(w dns.ResponseWriter, q *dns.Msg) {
		reply := new(dns.Msg).SetReply(q)
		for _, question := range q.Question {
			if question.Qtype == dns.TypeA {
				reply.Answer = append(reply.Answer, &dns.A{
					Hdr: dns.RR_Header{Name: question.Name, Rrtype: dns.TypeA, Class: dns.ClassINET, Ttl: 1},
					A:   net.IPv4(127, 0, 0, 1),
				})
			}
		}
		_ = w.WriteMsg(reply)
	})}
	done := make(chan struct{})
	go func() {
		defer close(done)
		_ = server.ActivateAndServe()
	}()
	t.Cleanup(func() {
		_ = server.Shutdown()
		<-done
	})
	return listener.Addr().String()
}
