package app

import (
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"belfry/config"
	"belfry/pkg/account/oauth"
	"belfry/pkg/account/weak"
	"belfry/pkg/app/certificate"
	"belfry/pkg/app/command"
	"belfry/pkg/app/examine"
	"belfry/pkg/app/front"
	"belfry/pkg/app/open"
	"belfry/pkg/app/plan"
	"belfry/pkg/bus"
	"belfry/pkg/operations/importer"
	"belfry/test/kit"
	"belfry/test/kit/tlskit"
)

// witness is a server with TLS that counts the clients that trust its certificate, and those that don't.
type witness struct {
	address           string // localhost:port
	trusted, distrust atomic.Int32
	connected         context.Context // ends once one of them is counted
}

// newWitness serves with a certificate. says is sent before TLS begins.
func newWitness(t *testing.T, cert, key, says string) *witness {
	t.Helper()
	pair, err := tls.LoadX509KeyPair(cert, key)
	if err != nil {
		t.Fatal(err)
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })
	_, port, _ := net.SplitHostPort(l.Addr().String())
	connected, end := context.WithCancel(t.Context())
	w := &witness{address: "localhost:" + port, connected: connected}
	serve := func(conn net.Conn) {
		defer end()
		defer conn.Close()
		_, _ = io.WriteString(conn, says)
		if err := tls.Server(conn,
			&tls.Config{Certificates: []tls.Certificate{pair},
				MinVersion: tls.VersionTLS12}).HandshakeContext(t.Context()); err != nil {
			w.distrust.Add(1)
			return
		}
		w.trusted.Add(1)
	}
	go func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			go serve(conn)
		}
	}()
	return w
}

// natsGreeting is of a NATS server that requires TLS.
const natsGreeting = "INFO {\"server_id\":\"x\",\"version\":\"2.10.0\",\"proto\":1,\"max_payload\":1048576,\"tls_required\":true}\r\n"

// Whatever connects by TLS to servers of others trusts the authorities of ca, and without the key those of the system
// alone.
func TestEverythingTrustsTheAuthoritiesOfCA(t *testing.T) {
	t.Setenv("AWS_ACCESS_KEY_ID", "x")
	t.Setenv("AWS_SECRET_ACCESS_KEY", "x")
	t.Setenv("AWS_REGION", "eu-west-1")
	folder := t.TempDir()
	cert, key := filepath.Join(folder, "cert.pem"), filepath.Join(folder, "key.pem")
	tlskit.WriteValid(t, cert, key, "localhost")
	callback := oauth.Callback{CallbackURL: "http://localhost/auth/callback",
		Query: url.Values{"code": {"x"}, "state": {"y"}}, Verifier: strings.Repeat("v", 43)}
	begin := oauth.AuthRequest{CallbackURL: "http://localhost/auth/callback", State: "s",
		Verifier: strings.Repeat("v", 43)}
	ended, end := context.WithCancel(t.Context())
	defer end()
	for name, c := range map[string]struct {
		says string
		text string // of the configuration; ADDRESS is the witness
		// ctx ends once a client has connected. Errors are expected: the witness replies nothing.
		connect func(ctx context.Context, p *plan.Plan, address string)
	}{
		"a mailer": {"", "mailers: {default: {type: smtp, host: localhost, port: PORT, tls: tls}}",
			func(ctx context.Context, p *plan.Plan, _ string) {
				_, _ = command.Mail.Do(ctx, p.Config, command.MailTest{To: "ada@example.com"})
			}},
		"OpenID Connect": {"", "authentication: {providers: {oidc: {issuer: 'https://ADDRESS', clientID: x}}}",
			func(ctx context.Context, p *plan.Plan, _ string) {
				_, _ = p.Auth.Providers["oidc"].Begin(ctx, begin)
			}},
		"OAuth 2": {"",
			"authentication: {providers: {github: {clientID: x, clientSecret: y, tokenURL: 'https://ADDRESS/'}}}",
			func(ctx context.Context, p *plan.Plan, _ string) {
				_, _ = p.Auth.Providers["github"].Finish(ctx, callback)
			}},
		"OAuth 1": {"", "authentication: {providers: {twitter: {consumerKey: x, consumerSecret: y, requestTokenURL: " +
			"'https://ADDRESS/'}}}", func(ctx context.Context, p *plan.Plan, _ string) {
			_, _ = p.Auth.Providers["twitter"].Begin(ctx, begin)
		}},
		"a site with OpenID Connect": {"",
			"authentication: {providers: {microsoft: {clientID: x, clientSecret: y, tokenURL: 'https://ADDRESS/'}}}",
			func(ctx context.Context, p *plan.Plan, _ string) {
				_, _ = p.Auth.Providers["microsoft"].Finish(ctx, callback)
			}},
		"breached passwords": {"", "authentication: {passwords: {breached: {url: 'https://ADDRESS/range'}}}",
			func(_ context.Context, p *plan.Plan, _ string) {
				options := p.Auth.Passwords
				options.Slot = func(context.Context) (func(), error) { return func() {}, nil }
				_, _ = weak.New(options).Check(t.Context(), "correct horse battery staple", nil)
			}},
		"MongoDB": {"",
			"backends: {default: {type: mongodb, url: 'mongodb://ADDRESS/?tls=true'}}",
			func(ctx context.Context, p *plan.Plan, _ string) {
				b, err := open.BackendOnce(t.Context(), "", p.Config.Backends["default"])
				if err != nil {
					t.Error(err)
					return
				}
				_ = b.Ping(ctx)
				_ = b.Close()
			}},
		"DynamoDB": {"", "backends: {default: {type: dynamodb, endpoint: 'https://ADDRESS'}}",
			func(ctx context.Context, p *plan.Plan, _ string) {
				b, err := open.BackendOnce(t.Context(), "", p.Config.Backends["default"])
				if err != nil {
					t.Error(err)
					return
				}
				_ = b.Ping(ctx)
				_ = b.Close()
			}},
		"S3": {"", "binaries: {b: {type: S3Storage, bucket: x, endpoint: 'https://ADDRESS'}}",
			func(ctx context.Context, p *plan.Plan, _ string) {
				s, err := open.Storage(t.Context(), p.Config.Binaries["b"])
				if err != nil {
					t.Error(err)
					return
				}
				_ = s.Ping(ctx)
				_ = s.Close()
			}},
		"backups": {"", "backup: {s3: {bucket: x, endpoint: 'https://ADDRESS'}}",
			func(ctx context.Context, p *plan.Plan, _ string) {
				_, _ = command.ListBackups(ctx, p.Config, nil)
			}},
		"backups at another place": {"", "", func(ctx context.Context, p *plan.Plan, address string) {
			_, _ = command.ListBackups(ctx, p.Config,
				&config.BackupPlace{S3: &config.S3Storage{Bucket: "x", Endpoint: "https://" + address}})
		}},
		"a bus": {natsGreeting, "bus: {url: 'tls://ADDRESS'}", func(_ context.Context, p *plan.Plan, _ string) {
			o, err := p.BusOptions()
			if err != nil {
				t.Error(err)
				return
			}
			_, _ = bus.Dial(o)
		}},
		"a bus without tls in its URL": {natsGreeting, "bus: {url: 'nats://ADDRESS'}",
			func(_ context.Context, p *plan.Plan, _ string) {
				o, err := p.BusOptions()
				if err != nil {
					t.Error(err)
					return
				}
				_, _ = bus.Dial(o)
			}},
		"the doctor, of a mailer": {"", "mailers: {default: {type: smtp, host: localhost, port: PORT, tls: tls}}",
			func(ctx context.Context, p *plan.Plan, _ string) {
				_ = examine.NewExamination(p, examine.DoctorOptions{}).Run(ctx, kit.Limit)
			}},
		"the doctor, of MongoDB": {"", "stores: {Books: {policy: owner}}\nbackends: {default: {type: mongodb, url: " +
			"'mongodb://ADDRESS/?tls=true'}}", func(ctx context.Context, p *plan.Plan, _ string) {
			_ = examine.NewExamination(p, examine.DoctorOptions{}).Run(ctx, kit.Limit)
		}},
		"the doctor, of baseURL": {"", "baseURL: https://ADDRESS", func(ctx context.Context, p *plan.Plan, _ string) {
			_ = examine.NewExamination(p, examine.DoctorOptions{}).Run(ctx, kit.Limit)
		}},
		"the doctor, of another bus": {natsGreeting, "", func(ctx context.Context, p *plan.Plan, address string) {
			trust, err := plan.BusTrust(p.Config)
			if err != nil {
				t.Error(err)
			}
			o := bus.Options{URL: "nats://" + address, TLS: trust}
			_ = examine.NewExamination(p, examine.DoctorOptions{Bus: &o}).Run(ctx, kit.Limit)
		}},
		"verify, of MongoDB": {"", "stores: {Books: {policy: owner}}\nbackends: {default: {type: mongodb, url: " +
			"'mongodb://ADDRESS/?tls=true'}}", func(ctx context.Context, p *plan.Plan, _ string) {
			_, _ = command.Verify.Do(ctx, p.Config, command.VerifyRequest{})
		}},
		"import": {"", "", func(ctx context.Context, p *plan.Plan, address string) {
			roots, err := plan.WebTrust(p.Config)
			if err != nil {
				t.Error(err)
			}
			_ = importer.New(importer.Options{URL: "https://" + address + "/books", RootCAs: roots}).Run(ctx,
				strings.NewReader("{}"))
		}},
		"ACME": {"", "baseURL: https://app.example.com\nhttp: {acme: {directory: 'https://ADDRESS/dir'}}",
			func(_ context.Context, p *plan.Plan, _ string) {
				h := p.Config.HTTP.ACME
				acme, err := certificate.NewACME(certificate.ACMEOptions{
					Domains: h.Domains, Directory: h.Directory, CA: h.CA, ExtraCA: h.ExtraCA, Storage: h.Storage,
					Listen: "127.0.0.1:0", Log: slog.New(slog.DiscardHandler),
				})
				if err != nil {
					t.Error(err)
					return
				}
				context.AfterFunc(ended, acme.Close)
			}},
		"traces": {"", "tracing: {endpoint: 'https://ADDRESS'}", func(_ context.Context, p *plan.Plan, _ string) {
			tracer, err := (&front.Traces{Log: slog.New(slog.DiscardHandler)}).Open(t.Context(), p.Config)
			if err != nil {
				t.Error(err)
				return
			}
			_, span := tracer.Provider().Tracer("x").Start(t.Context(), "y")
			span.End()
			_ = tracer.Close(t.Context())
		}},
	} {
		for _, with := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s, %v", name, with), func(t *testing.T) {
				w := newWitness(t, cert, key, c.says)
				_, port, _ := net.SplitHostPort(w.address)
				text := strings.NewReplacer("ADDRESS", w.address, "PORT", port).Replace(c.text)
				if with {
					text = "ca: " + cert + "\n" + text
				}
				place := newPlace(t, text)
				p, err := plan.Compile(place.config)
				if err != nil {
					t.Fatal(err)
				}
				c.connect(w.connected, p, w.address)
				kit.WaitFor(t, "a client has connected", func() bool { return w.trusted.Load()+w.distrust.Load() > 0 })
				if trusted := w.trusted.Load() > 0; trusted != with {
					t.Errorf("the certificate is trusted: %v", trusted)
				}
			})
		}
	}
}

// Settings of their own stay, and are trusted alone.
func TestAuthoritiesOfTheBusAndOfACMEStay(t *testing.T) {
	folder := t.TempDir()
	cert, key := filepath.Join(folder, "cert.pem"), filepath.Join(folder, "key.pem")
	tlskit.WriteValid(t, cert, key, "localhost")
	p := newPlace(t, "ca: "+cert+"\nbaseURL: https://app.example.com\nbus: {url: 'tls://a', tls: {ca: "+cert+
		"}}\nhttp: {acme: {ca: "+cert+"}}\n")
	if p.config.Bus.ExtraCA != "" || p.config.HTTP.ACME.ExtraCA != "" {
		t.Errorf("%+v, %+v", p.config.Bus, p.config.HTTP.ACME)
	}
}

func TestAFileOfAuthoritiesIsChecked(t *testing.T) {
	p := newPlace(t, "")
	tlskit.WriteValid(t, p.path("cert.pem"), p.path("key.pem"), "localhost")
	p.write("empty.pem", "")
	p.write("text.pem", "hello")
	good, err := os.ReadFile(p.path("cert.pem"))
	if err != nil {
		t.Fatal(err)
	}
	p.write("marked.pem", "\ufeff"+string(good))
	p.write("cut.pem", string(good)+string(good[:len(good)/2]))
	p.write("damaged.pem", strings.Replace(string(good), "\nMI", "\n!MI", 1)+string(good))
	p.write("indented.pem", string(good)+"  "+string(good))
	p.write("wrong.pem", "-----BEGIN CERTIFICATE-----\nMTIz\n-----END CERTIFICATE-----\n")
	for file, want := range map[string]string{
		"cert.pem": "", "empty.pem": "has no certificate in the format PEM",
		"text.pem":   "has no certificate in the format PEM",
		"marked.pem": "", "cut.pem": "of the 2 certificates in ", "damaged.pem": ", 1 can't be decoded",
		"indented.pem": "of the 2 certificates in ",
		"wrong.pem":    "certificate 1 of ", "key.pem": `a block "PRIVATE KEY"`,
	} {
		_, err := plan.Compile(p.load("ca: " + file))
		if want == "" &&
			err != nil || want != "" && (err == nil || !strings.Contains(err.Error(), "belfry.yaml:1:1: ca: ") ||
			!strings.Contains(err.Error(), want)) {
			t.Errorf("%s: %v", file, err)
		}
	}
}
