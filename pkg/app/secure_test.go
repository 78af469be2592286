package app

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"io"
	"net/http"
	"os"
	"strings"
	"testing"
	"time"

	"belfry/config"
	"belfry/pkg/app/plan"
	"belfry/test/backing"
	"belfry/test/kit"
	"belfry/test/kit/tlskit"
)

// browser is a client that knows belfry as app.example.com and follows no redirects.
func browser(t *testing.T, a *App, roots *x509.CertPool) *http.Client {
	t.Helper()
	transport := &http.Transport{ForceAttemptHTTP2: true,
		TLSClientConfig: &tls.Config{RootCAs: roots, ServerName: "app.example.com", MinVersion: tls.VersionTLS12}}
	t.Cleanup(transport.CloseIdleConnections)
	return &http.Client{Transport: transport,
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
}

// send sends a request to the name app.example.com.
func send(t *testing.T, c *http.Client, method, url, body string) (res *http.Response, text string) {
	t.Helper()
	res, err := try(t, c, method, url, body)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = res.Body.Close() }()
	data, err := io.ReadAll(res.Body)
	if err != nil {
		t.Fatal(err)
	}
	return res, string(data)
}

func try(t *testing.T, c *http.Client, method, url, body string) (*http.Response, error) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), method, url, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	req.Host = "app.example.com"
	req.Header.Set("Content-Type", "application/json")
	return c.Do(req)
}

const overTLS = `
listen: 127.0.0.1:0
baseURL: https://app.example.com
bus: {listen: ""}
http: {tls: {cert: cert.pem, key: key.pem}, redirect: "127.0.0.1:0"}
authentication: {providers: {email: {from: a@example.com, postValidation: true}}}
stores: {Books: {expose: {events: true}}}
`

func TestTLSByFiles(t *testing.T) {
	p := &place{T: t, folder: t.TempDir(), logged: &kit.Tail{}}
	cert, key := p.path("cert.pem"), p.path("key.pem")
	tlskit.WriteValid(t, cert, key, "app.example.com")
	p.config = p.load(overTLS)
	a, _ := p.reloadable()
	base, redirect := "https://"+a.HTTPAddress(), "http://"+a.wiring.tls.Address
	if banner := a.Banner(""); !strings.Contains(banner, base) || !strings.Contains(banner, redirect) {
		t.Error(banner)
	}
	c := browser(t, a, tlskit.Pool(t, cert))

	res, _ := send(t, c, "POST", base+"/books", `{"title":"Emma"}`)
	if res.StatusCode != http.StatusCreated || res.ProtoMajor != 2 ||
		res.Header.Get("Strict-Transport-Security") != "max-age=2592000" {
		t.Errorf("%s by %s, HSTS %q", res.Status, res.Proto, res.Header.Get("Strict-Transport-Security"))
	}
	res, _ = send(t, c, "POST", base+"/auth/email",
		`{"login":"ada@example.com","password":"the password of ada","register":true}`)
	cookies := res.Cookies()
	if len(cookies) == 0 {
		t.Errorf("%s: no cookie", res.Status)
	}
	for _, c := range cookies {
		if !c.Secure || !strings.HasPrefix(c.Name, "__Host-") {
			t.Errorf("%s: cookie %v", res.Status, c)
		}
	}

	res, _ = send(t, c, "POST", redirect+"//evil.example/books?a=b", "")
	if to := res.Header.Get("Location"); res.StatusCode != http.StatusPermanentRedirect ||
		to != "https://app.example.com//evil.example/books?a=b" || res.Header.Get("Strict-Transport-Security") != "" {
		t.Errorf("%s to %q", res.Status, to)
	}
	for host, want := range map[string]string{"127.0.0.1": base + "/x",
		"localhost:1": "https://localhost:" + a.HTTPAddress()[len("127.0.0.1:"):] + "/x", "evil.example": "",
		"APP.example.com.": "https://APP.example.com./x", "app.example.com:evil": "https://app.example.com/x",
		"app.example.com:1:2": ""} {
		req, _ := http.NewRequestWithContext(t.Context(), "GET", redirect+"/x", nil)
		req.Host = host
		res, err := c.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		_ = res.Body.Close()
		if to := res.Header.Get("Location"); to != want ||
			want == "" && res.StatusCode != http.StatusMisdirectedRequest {
			t.Errorf("%s: %s to %q, want %q", host, res.Status, to, want)
		}
	}
	// HSTS is for names: an address or the machine itself is not one.
	req, _ := http.NewRequestWithContext(t.Context(), "GET", base+"/healthz", nil)
	req.Host = "localhost"
	if res, err := c.Do(req); err != nil || res.Header.Get("Strict-Transport-Security") != "" {
		t.Errorf("localhost: %v, %v", res, err)
	} else {
		_ = res.Body.Close()
	}

	// Another certificate is used from a reload on, also from other files, and ends no stream of events.
	stream, err := try(t, c, "GET", base+"/events?store=Books", "")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = stream.Body.Close() }()
	received := ""
	receive := func(text string) {
		t.Helper()
		for part := make([]byte, 4096); !strings.Contains(received, text); {
			n, err := stream.Body.Read(part)
			if received += string(part[:n]); err != nil || strings.Contains(received, "dropped") {
				t.Fatalf("the stream has ended: %v\n%s", err, received)
			}
		}
	}
	receive("event: ready")
	before := tlskit.Pool(t, cert)
	tlskit.WriteValid(t, cert, key, "app.example.com")
	if keys := p.reload(a, overTLS); len(keys) != 1 || !strings.HasPrefix(keys[0], "http.tls (") {
		t.Errorf("changed are %q", keys)
	}
	if _, err := try(t, browser(t, a, before), "GET", base+"/healthz", ""); err == nil {
		t.Error("the certificate of before is used")
	}
	send(t, browser(t, a, tlskit.Pool(t, cert)), "GET", base+"/healthz", "")
	send(t, browser(t, a, tlskit.Pool(t, cert)), "POST", base+"/books", `{"title":"the next"}`)
	receive("the next")
	other := strings.NewReplacer("cert.pem", "other.pem", "key.pem", "other.key", "redirect:", "hsts: 0s, redirect:")
	tlskit.WriteValid(t, p.path("other.pem"), p.path("other.key"), "app.example.com")
	p.reload(a, other.Replace(overTLS))
	res, _ = send(t, browser(t, a, tlskit.Pool(t, p.path("other.pem"))), "GET", base+"/healthz", "")
	if hsts := res.Header.Get("Strict-Transport-Security"); hsts != "" {
		t.Errorf("HSTS %q", hsts)
	}

	// One that can't be used changes nothing.
	taken := occupy(t).Addr().String()
	for _, one := range []struct {
		says   string
		change func() string
	}{
		{"http.tls: ", func() string {
			tlskit.WriteValid(t, p.path("x.pem"), p.path("other.key"), "x")
			return overTLSOther(other)
		}},
		{"can't listen on", func() string {
			tlskit.WriteValid(t, p.path("other.pem"), p.path("other.key"), "app.example.com")
			return strings.Replace(overTLSOther(other), "127.0.0.1:0\"}", taken+"\"}", 1)
		}}, // which has the key fit again
	} {
		p.write("belfry.yaml", one.change())
		if _, err := a.Reload(t.Context()); err == nil || !strings.Contains(err.Error(), one.says) {
			t.Errorf("%s: %v", one.says, err)
		}
	}
	p.reload(a, other.Replace(overTLS))
	send(t, browser(t, a, tlskit.Pool(t, p.path("other.pem"))), "GET", base+"/healthz", "")

	// TLS ends and begins without a restart, also where no port redirects.
	p.reload(a, strings.Replace(strings.Replace(overTLS, "https:", "http:", 1),
		"http: {tls: {cert: cert.pem, key: key.pem}, redirect: \"127.0.0.1:0\"}", "", 1))
	p.want(a, "GET", "/healthz", "", http.StatusOK)
	p.reload(a, strings.Replace(other.Replace(overTLS), ", redirect: \"127.0.0.1:0\"", "", 1))
	send(t, browser(t, a, tlskit.Pool(t, p.path("other.pem"))), "GET", base+"/healthz", "")
	if a.wiring.tls.Address != "" {
		t.Errorf("a port redirects: %s", a.wiring.tls.Address)
	}
	if strings.Contains(p.logged.String(), "handshake") {
		t.Error("the log has a failed handshake:", p.logged)
	}
}

func overTLSOther(r *strings.Replacer) string { return r.Replace(overTLS) }

// What is wrong with TLS is found before anything starts, or keeps belfry from starting.
func TestTLSThatCannotWork(t *testing.T) {
	p := &place{T: t, folder: t.TempDir(), logged: &kit.Tail{}}
	p.write("empty", "")
	tlskit.WriteValid(t, p.path("a.pem"), p.path("a.key"), "a.example.com")
	tlskit.WriteValid(t, p.path("b.pem"), p.path("b.key"), "b.example.com")
	taken := occupy(t).Addr().String()
	for text, says := range map[string]string{
		"http: {tls: {cert: none, key: a.key}}":  "http.tls.cert: ",
		"http: {tls: {cert: a.pem}}":             "http.tls.key: is missing",
		"http: {tls: {cert: a.pem, key: b.key}}": "private key does not match public key",
		"http: {tls: {cert: empty, key: a.key}}": "failed to find any PEM data",
		"baseURL: http://a.example.com\nhttp: {tls: {cert: a.pem, " +
			"key: a.key}}": "baseURL: expected https://",
		"http: {redirect: \":80\"}": "http.redirect: has an effect with TLS alone",
		"http: {hsts: 1d}":          "http.hsts: has an effect with TLS alone",
		"http: {tls: {cert: a.pem, key: a.key}, acme: {domains: [a.b]}}": "not both",
		"http: {acme: {}}": "http.acme.domains: is missing",
		"http: {acme: {domains: [localhost]}}": "expected a name " +
			"such as app.example.com",
		"http: {acme: {domains: [127.0.0.1]}}": "expected a name " +
			"such as app.example.com",
		"http: {acme: {domains: [a.b], ca: empty}}": "http.acme.ca: ",
		"http: {acme: {domains: [a.b], directory: " +
			"\"http://a.b\"}}": "http.acme.directory: expected a URL such as https://",
		"http: {tls: {cert: a.pem, key: a.key}, redirect: \"" + taken + "\"}": "can't listen on " +
			taken + ", which redirects to https",
		"listen: 127.0.0.1:1\nhttp: {tls: {cert: a.pem, key: a.key}, redirect: \"127.0.0.1:1\"}": "http.redirect: is " +
			"also the address of listen",
	} {
		if !strings.Contains(text, "listen:") {
			text += "\nlisten: 127.0.0.1:0"
		}
		c, err := config.Load(p.write("belfry.yaml", text+"\nbus: {listen: \"\"}\n"), os.LookupEnv)
		if err == nil {
			var a *App
			if a, err = Start(t.Context(), c, p.log()); err == nil {
				_ = a.Stop(context.Background())
			}
		}
		if err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("%s: %v, want %s", text, err, says)
		}
	}
	tlskit.Write(t, p.path("a.pem"), p.path("a.key"), time.Now().Add(-2*time.Hour), time.Now().Add(-time.Hour),
		"a.example.com")
	c := p.load("listen: 127.0.0.1:0\nbaseURL: https://app.example.com\nhttp: {tls: {cert: a.pem, key: a.key}}\n")
	if all := strings.Join(plan.Warnings(c), "\n"); !strings.Contains(all, "has expired") ||
		!strings.Contains(all, "is not for app.example.com") {
		t.Error(all)
	}
}

// belfry obtains its certificate by itself, and serves meanwhile: here by both challenges, whichever the authority
// takes.
func TestTLSByACME(t *testing.T) {
	p := &place{T: t, folder: t.TempDir(), logged: &kit.Tail{}}
	listen, redirect := kit.FreePort(t), kit.FreePort(t)
	authority := backing.ACME(t, 3600, redirect, listen)
	p.config = p.load(fmt.Sprintf(`
listen: 127.0.0.1:%d
baseURL: https://app.example.com
bus: {listen: ""}
http:
  acme: {email: admin@example.com, directory: %q, ca: %q}
  redirect: 127.0.0.1:%d
stores: {Books: {expose: {}}}
`, listen, authority.Directory, authority.CAFile, redirect))
	a := p.start()
	c := browser(t, a, authority.Roots(t))
	kit.WaitUntil(t, func() error {
		res, err := try(t, c, "POST", "https://"+a.HTTPAddress()+"/books", "{}")
		if err == nil {
			_ = res.Body.Close()
		}
		return err
	})
	if res, _ := send(t, c, "GET", "http://"+a.wiring.tls.Address+"/books", ""); res.Header.Get(
		"Location") != "https://app.example.com/books" {
		t.Errorf("%s to %s", res.Status, res.Header.Get("Location"))
	}
	if !strings.Contains(p.logged.String(), "a certificate was obtained") ||
		strings.Contains(p.logged.String(), "PRIVATE KEY") {
		t.Error(p.logged)
	}
	folder, err := os.Stat(p.path("data/acme"))
	if err != nil || folder.Mode().Perm() != 0o700 {
		t.Errorf("%v, %v", folder, err)
	}
}
