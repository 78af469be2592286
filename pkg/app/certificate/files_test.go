package certificate

import (
	"crypto/tls"
	"errors"
	"log/slog"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"belfry/pkg/errs"
	"belfry/test/kit"
	"belfry/test/kit/tlskit"
)

func TestFilesAreUsedWhenTheyChange(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	cert, key := filepath.Join(folder, "cert.pem"), filepath.Join(folder, "key.pem")
	tlskit.WriteValid(t, cert, key, "one.example.com")
	p, err := Load(cert, key)
	if err != nil {
		t.Fatal(err)
	}
	logged := &kit.Tail{}
	f := newFiles(p, "", slog.New(slog.NewTextHandler(logged, nil)), time.Millisecond, time.Now)
	defer f.Close()
	server := &http.Server{TLSConfig: f.TLSConfig(), Handler: http.NotFoundHandler(),
		ErrorLog: slog.NewLogLogger(slog.DiscardHandler, 0)}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	go func() { _ = server.ServeTLS(l, "", "") }()
	defer server.Close()
	if _, err := connect(l.Addr().String(), "one.example.com", tlskit.Pool(t, cert)); err != nil {
		t.Fatal(err)
	}

	// The certificate and the key are replaced one after the other.
	tlskit.WriteValid(t, cert+".2", key+".2", "two.example.com")
	if err := os.Rename(cert+".2", cert); err != nil {
		t.Fatal(err)
	}
	kit.WaitFor(t, "the log says that they don't fit",
		func() bool { return strings.Contains(logged.String(), "can't be used; the former one stays in use") })
	if got := f.current.Load(); got != p {
		t.Error("half of the files is used")
	}
	if err := os.Rename(key+".2", key); err != nil {
		t.Fatal(err)
	}
	kit.WaitUntil(t, func() error {
		_, err := connect(l.Addr().String(), "two.example.com", tlskit.Pool(t, cert))
		return err
	})
	if n := strings.Count(logged.String(), "the former one stays in use"); n != 1 ||
		!strings.Contains(logged.String(), "the certificate has changed") {
		t.Error(logged)
	}
	if strings.Contains(logged.String(), "PRIVATE KEY") {
		t.Error("the key is in the log")
	}
	conn, err := tls.Dial("tcp",
		l.Addr().String(), &tls.Config{RootCAs: tlskit.Pool(t, cert), ServerName: "two.example.com",
			MaxVersion: tls.VersionTLS11, MinVersion: tls.VersionTLS10})
	if err == nil {
		_ = conn.Close()
		t.Error("TLS 1.1 is accepted")
	}
}

func TestCertificatesThatCannotBeUsed(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	path := func(name string) string { return filepath.Join(folder, name) }
	tlskit.WriteValid(t, path("a.pem"), path("a.key"), "a.example.com")
	tlskit.WriteValid(t, path("b.pem"), path("b.key"), "b.example.com")
	a, _ := os.ReadFile(path("a.pem"))
	b, _ := os.ReadFile(path("b.pem"))
	for name, data := range map[string][]byte{"text": []byte("hunter2"), "chain.pem": append(b, a...)} {
		if err := os.WriteFile(path(name), data, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for _, c := range []struct{ cert, key, says string }{
		{"a.pem", "b.key", "private key does not match public key"},
		{"none", "a.key", "the certificate can't be read"},
		{"a.pem", "none", "the key can't be read"},
		{"text", "a.key", "failed to find any PEM data in certificate input"},
		{"a.pem", "text", "failed to find any PEM data in key input"},
		{"a.key", "a.pem", "switched"},
		{"chain.pem", "a.key", "chain.pem has the certificate of the key " + path("a.key") + " in place 2"},
		{".", "a.key", "it is not a regular file"},
	} {
		_, err := Load(path(c.cert), path(c.key))
		if !errors.Is(err, errs.Invalid) || !strings.Contains(err.Error(), c.says) ||
			strings.Contains(err.Error(), "hunter2") {
			t.Errorf("%s, %s: %v", c.cert, c.key, err)
		}
	}
}

func TestCertificatesThatClientsRefuseAreWarnedAbout(t *testing.T) {
	t.Parallel()
	folder, now := t.TempDir(), time.Now()
	cert, key := filepath.Join(folder, "cert.pem"), filepath.Join(folder, "key.pem")
	for _, c := range []struct {
		from, until time.Duration
		host, says  string
	}{
		{-2 * time.Hour, -time.Hour, "a.example.com", "has expired at"},
		{time.Hour, 1000 * time.Hour, "a.example.com", "is valid from"},
		{-time.Hour, time.Hour, "a.example.com", "expires at"},
		{-time.Hour, 1000 * time.Hour, "b.example.com", "is not for b.example.com"},
		{-time.Hour, 1000 * time.Hour, "a.example.com", ""},
		{-time.Hour, 1000 * time.Hour, "", ""},
	} {
		tlskit.Write(t, cert, key, now.Add(c.from), now.Add(c.until), "a.example.com")
		p, err := Load(cert, key)
		if err != nil {
			t.Fatal(err)
		}
		all := p.Warnings(c.host, now)
		if says := strings.Join(all, "; "); c.says == "" && len(all) > 0 || !strings.Contains(says, c.says) {
			t.Errorf("%s: %q", c.says, all)
		}
	}
}

// A certificate that nobody renews is warned about while the server runs, each time once.
func TestACertificateThatIsNotRenewedIsWarnedAbout(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	cert, key := filepath.Join(folder, "cert.pem"), filepath.Join(folder, "key.pem")
	tlskit.Write(t, cert, key, time.Now().Add(-time.Hour), time.Now().Add(30*24*time.Hour), "a.example.com")
	p, err := Load(cert, key)
	if err != nil {
		t.Fatal(err)
	}
	logged := &kit.Tail{}
	var ahead atomic.Int64
	now := func() time.Time { return time.Now().Add(time.Duration(ahead.Load())) }
	f := newFiles(p, "a.example.com", slog.New(slog.NewTextHandler(logged, nil)), time.Hour, now)
	defer f.Close()
	for _, step := range []struct {
		days time.Duration
		says string
	}{{1, ""}, {25, "expires at"}, {26, "expires at"}, {31, "has expired at"}, {32, "has expired at"}} {
		ahead.Store(int64(step.days * 24 * time.Hour))
		f.check()
		if text := logged.String(); step.says == "" && text != "" ||
			strings.Count(text, step.says) != 1 && step.says != "" {
			t.Errorf("after %d days: %s", step.days, text)
		}
	}
	f.Use(p, "b.example.com") // as after a reload of baseURL
	f.check()
	if text := logged.String(); strings.Count(text, "is not for b.example.com") != 1 {
		t.Errorf("clients use another name: %s", text)
	}
}
