package app

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go"

	"belfry/pkg/app/command"
	"belfry/pkg/app/examine"
	"belfry/pkg/app/hold"
	"belfry/pkg/app/plan"
	"belfry/pkg/bus"
	"belfry/pkg/operations/doctor"
	"belfry/test/kit"
	"belfry/test/kit/natsserver"
	"belfry/test/kit/tlskit"
	"belfry/test/mailbox"
)

// examined returns what is found in a place.
func (p *place) examined(change ...func(*examine.Examination)) *doctor.Report {
	p.Helper()
	compiled, err := plan.Compile(p.config)
	if err != nil {
		return examine.DoctorConfig(err)
	}
	e := examine.NewExamination(compiled, examine.DoctorOptions{})
	for _, c := range change {
		c(e)
	}
	return e.Run(p.Context(), kit.Limit)
}

// finding returns the first finding of a name, nil for none.
func finding(r *doctor.Report, name string) *doctor.Finding {
	i := slices.IndexFunc(r.Findings, func(f doctor.Finding) bool { return f.Name == name })
	if i < 0 {
		return nil
	}
	return &r.Findings[i]
}

func shownReport(r *doctor.Report) string {
	text, _ := json.MarshalIndent(r.Urgent(), "", " ")
	return string(text)
}

// lone is a configuration without anything to find but what a test spoils.
const lone = `
listen: 127.0.0.1:0
bus: {listen: ""}
stores: {Books: {policy: owner}}
`

// closedPort is an address at which nothing listens.
func closedPort(t *testing.T) string { return fmt.Sprint("127.0.0.1:", kit.FreePort(t)) }

// production starts a server with the nats.conf that belfry ships, with the streams and consumers of a configuration if
// it is to be set up.
func (p *place) production(text string, setUp bool) (url string) {
	p.Helper()
	return p.productionOf("../../nats.conf", text, setUp)
}

// without is production where the user belfry lacks a permission. What is set up is so by the admin.
func (p *place) without(permission string) {
	p.Helper()
	file, err := os.ReadFile("../../nats.conf")
	if err != nil {
		p.Fatal(err)
	}
	before, all, _ := strings.Cut(string(file), "\nALL: {")
	all, after, _ := strings.Cut(all, "\nLISTENER: {")
	if !strings.Contains(all, permission) {
		p.Fatalf("the user has no permission %s", permission)
	}
	p.write("nats.conf", before+"\nALL: {"+strings.Replace(all, permission, "", 1)+"\nLISTENER: {"+after)
	p.productionOf(p.path("nats.conf"), onNATS, true)
}

// productionOf is production with another file.
func (p *place) productionOf(file, text string, setUp bool) (url string) {
	p.Helper()
	p.Setenv("BELFRY_NATS_NAME", "test")
	p.Setenv("BELFRY_NATS_STORE", p.TempDir())
	for _, name := range []string{"FRONT", "WORKER", "ALL", "LISTENER", "OBSERVER", "CLIENT", "ADMIN", "SYSTEM"} {
		p.Setenv("BELFRY_"+name+"_PASSWORD", "pw-of-"+strings.ToLower(name))
	}
	url = natsserver.ServeFile(p, file).ClientURL()
	p.config = p.load(fmt.Sprintf(text, url))
	if setUp {
		admin, err := bus.Dial(bus.Options{URL: url, Auth: bus.Auth{User: "admin", Password: "pw-of-admin"}})
		if err != nil {
			p.Fatal(err)
		}
		p.Cleanup(admin.Close)
		if _, err := command.SetupBus(p.Context(), p.config, admin, nil, false); err != nil {
			p.Fatal(err)
		}
	}
	return url
}

// onNATS is a configuration with an external bus, for its URL.
const onNATS = `
listen: 127.0.0.1:0
stores: {Authors: {policy: owner}, Books: {policy: owner, map: {Authors: {key: author, target: books, fields: title}}}}
bus: {url: %q, user: belfry, password: pw-of-all}
`

// Each of these deployments is broken in one way, which is found, named, and said what to do about. The texts have no
// secret.
func TestTheDoctorNamesWhatIsBroken(t *testing.T) {
	secret := "s3cret-of-this-test"
	for name, c := range map[string]struct {
		text  string                       // of the configuration
		spoil func(p *place)               // before; p.config is that of text, if there is one
		with  func(e *examine.Examination) // changes how it is asked
		want  string                       // the name of the finding
		level doctor.Level                 // Problem by default
		says  string
	}{
		"a rule that can't be compiled": {text: strings.Replace(lone, "policy: owner", "policy: {get: x +}", 1),
			want: "configuration.invalid", says: "stores.Books.policy.get"},
		"a store without rules": {text: strings.Replace(lone, "policy: owner", "expose: {}", 1),
			want: "configuration.open", level: doctor.Warning, says: "everyone has access"},
		"another program has the port": {
			spoil: func(p *place) {
				l, err := net.Listen("tcp", "127.0.0.1:0")
				if err != nil {
					p.Fatal(err)
				}
				p.Cleanup(func() { _ = l.Close() })
				p.config = p.load(strings.Replace(lone, "127.0.0.1:0", l.Addr().String(), 1))
			}, want: "process.port", says: "in use",
		},
		"MongoDB is down": {
			spoil: func(p *place) {
				p.config = p.load(lone + fmt.Sprintf("backends: {default: {type: mongodb, url: "+
					"'mongodb://u:%s@%s/?serverSelectionTimeoutMS=200', database: x}}", secret, closedPort(t)))
			}, want: "backend.unavailable", says: "MongoDB",
		},
		"a folder of data is damaged": {
			text: lone,
			spoil: func(p *place) {
				p.stop(p.start())
				all, err := filepath.Glob(filepath.Join(p.config.Backends["default"].File.Folder, "MANIFEST-*"))
				if err != nil || len(all) == 0 {
					p.Fatal(all, err)
				}
				for _, file := range all {
					if err := os.WriteFile(file, []byte("not what it was"), 0o600); err != nil {
						p.Fatal(err)
					}
				}
			}, want: "backend.damaged",
		},
		"there is no data": {text: lone, want: "backend.empty", level: doctor.Warning, says: "does not exist"},
		"a bucket is missing": {
			spoil: func(p *place) {
				s3 := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
					w.WriteHeader(http.StatusNotFound)
					_, _ = w.Write(
						[]byte(`<Error><Code>NoSuchBucket</Code><Message>The bucket does not exist</Message></Error>`))
				}))
				p.Cleanup(s3.Close)
				p.Setenv("AWS_ACCESS_KEY_ID", "id")
				p.Setenv("AWS_SECRET_ACCESS_KEY", secret)
				p.config = p.load(lone + fmt.Sprintf("binaries: {files: {type: S3Storage, bucket: none, region: eu, "+
					"endpoint: %q, map: {Books: cover}}}", s3.URL))
			}, want: "binaries.unavailable", says: "none",
		},
		"the bus is down": {
			spoil: func(p *place) {
				p.config = p.load(fmt.Sprintf(strings.Replace(onNATS, "pw-of-all", secret, 1), "nats://"+closedPort(t)))
			}, want: "bus.unreachable", says: "can't connect",
		},
		"a wrong password of the bus": {
			spoil: func(p *place) { p.production(strings.Replace(onNATS, "pw-of-all", secret, 1), false) },
			want:  "bus.login", says: "rejects the user",
		},
		"nobody has set up the bus": {spoil: func(p *place) { p.production(onNATS, false) }, want: "bus.missing",
			says: "does not exist"},
		"the user may not publish events": {
			spoil: func(p *place) {
				p.production(onNATS, true)
				p.config = p.load(fmt.Sprintf(strings.NewReplacer("user: belfry", "user: client", "pw-of-all",
					"pw-of-client").Replace(onNATS), p.config.Bus.URL[0]))
			}, want: "bus.mayNotPublish", says: "client",
		},
		"the user may not read a stream": {
			spoil: func(p *place) { p.without(`"$JS.API.STREAM.INFO.EVENTS", `) }, want: "bus.mayNotRead",
			says: "lacks the permission for $JS.API.STREAM.INFO.EVENTS",
		},
		"the user may not receive events": {
			spoil: func(p *place) { p.without(`"$JS.API.CONSUMER.MSG.NEXT.EVENTS.mapping", `) }, want: "bus.mayNotWork",
			says: "lacks the permission for $JS.API.CONSUMER.MSG.NEXT.EVENTS.mapping: ",
		},
		"the user may not acknowledge events": {
			spoil: func(p *place) { p.without(`"$JS.ACK.RETRY.cascade.>",`) }, want: "bus.mayNotWork",
			says: "$JS.ACK.RETRY.cascade.doctor",
		},
		"the user may not store dead letters": {spoil: func(p *place) { p.without(`"dead.mapping", `) },
			want: "bus.mayNotWork", says: "dead.mapping"},
		"a front does not see what workers do": {
			spoil: func(p *place) {
				p.production(onNATS, true)
				p.config = p.load(fmt.Sprintf(strings.NewReplacer("user: belfry", "user: front", "pw-of-all",
					"pw-of-front").Replace(onNATS), p.config.Bus.URL[0]))
			}, want: "bus.denied", level: doctor.Unseen,
			says: "the bus's user front may not see it: it lacks the permission for listeners.missed",
		},
		"a stream has other settings": {
			spoil: func(p *place) {
				url := p.production(onNATS, true)
				js := natsserver.JetStream(p, url, nats.UserInfo("admin", "pw-of-admin"))
				s, err := js.Stream(p.Context(), bus.StreamEvents)
				if err != nil {
					p.Fatal(err)
				}
				config := s.CachedInfo().Config
				config.MaxMsgs = 7
				if _, err := js.UpdateStream(p.Context(), config); err != nil {
					p.Fatal(err)
				}
			}, want: "bus.drifted", says: "max_msgs 7",
		},
		"dead letters": {
			spoil: func(p *place) {
				url := p.production(onNATS, true)
				js := natsserver.JetStream(p, url, nats.UserInfo("admin", "pw-of-admin"))
				if _, err := js.Publish(p.Context(), "dead.mapping", []byte("{}")); err != nil {
					p.Fatal(err)
				}
			}, want: "listener.deadLetters", says: "1 event could not be handled",
		},
		"a paused listener": {
			spoil: func(p *place) {
				url := p.production(onNATS, true)
				js := natsserver.JetStream(p, url, nats.UserInfo("admin", "pw-of-admin"))
				if _, err := js.PauseConsumer(p.Context(), bus.StreamEvents, "mapping",
					time.Now().Add(time.Hour)); err != nil {
					p.Fatal(err)
				}
			}, want: "listener.paused", says: "receives nothing",
		},
		"no worker runs": {spoil: func(p *place) {
			p.production(strings.NewReplacer("user: belfry", "user: admin", "pw-of-all", "pw-of-admin").Replace(onNATS),
				true)
		}, want: "bus.noWorker", level: doctor.Unseen, says: "no belfry"},
		"the clock is an hour ahead": {spoil: func(p *place) { p.production(onNATS, true) },
			with: func(e *examine.Examination) { e.Now = func() time.Time { return time.Now().Add(time.Hour) } },
			want: "clock.differs", says: "behind"},
		"a wrong password of the mail server": {
			spoil: func(p *place) {
				s := mailbox.Start(p, mailbox.Login("belfry", "another"))
				p.config = p.load(lone + fmt.Sprintf("mailers: {m: {type: smtp, host: %s, port: %d, user: belfry, "+
					"password: %s, tls: none}}", s.Host, s.Port, secret))
			}, want: "mailer.unavailable", says: "logging in was refused",
		},
		"a mail server without TLS": {
			spoil: func(p *place) {
				s := mailbox.Start(p)
				p.config = p.load(lone + fmt.Sprintf("mailers: {m: {type: smtp, host: %s, port: %d}}", s.Host, s.Port))
			}, want: "mailer.unavailable", says: "STARTTLS",
		},
		"mails go into a folder": {text: strings.Replace(lone, "127.0.0.1:0", "0.0.0.0:0", 1) +
			"baseURL: http://belfry.example\nauthentication: {providers: {email: {from: b@example.com}}}",
			want: "mailer.folder", level: doctor.Warning},
		"an expired certificate": {
			spoil: func(p *place) {
				tlskit.Write(p, p.path("cert.pem"), p.path("key.pem"), time.Now().Add(-48*time.Hour),
					time.Now().Add(-time.Hour), "belfry.example")
				p.config = p.load(lone + "http: {tls: {cert: cert.pem, key: key.pem}}")
			}, want: "certificate.expired",
		},
		"the authority of ca has expired": {
			spoil: func(p *place) {
				tlskit.Write(p, p.path("cert.pem"), p.path("key.pem"), time.Now().Add(-48*time.Hour),
					time.Now().Add(-time.Hour), "authority")
				p.config = p.load("ca: cert.pem\n" + lone)
			}, want: "certificate.expired", says: "ca: it has expired",
		},
		"a certificate for another name": {
			spoil: func(p *place) {
				tlskit.WriteValid(p, p.path("cert.pem"), p.path("key.pem"), "other.example")
				p.config = p.load(lone + "baseURL: https://belfry.invalid\nhttp: {tls: {cert: cert.pem, key: key.pem}}")
			}, want: "certificate.otherName", says: "belfry.invalid",
		},
		"a certificate that clients do not trust": {
			spoil: func(p *place) {
				s := httptest.NewTLSServer(http.NotFoundHandler())
				p.Cleanup(s.Close)
				p.config = p.load(lone + "baseURL: " + s.URL)
			}, want: "certificate.untrusted",
		},
		"no backups":                  {text: lone, want: "backup.none", level: doctor.Warning},
		"the first backup is missing": {text: lone + "backup: {folder: backups}", want: "backup.missing"},
		"the latest backup is old": {
			text: lone + "backup: {folder: backups, schedule: '@daily'}",
			spoil: func(p *place) {
				p.stop(p.start())
				if _, err := command.Backup.Do(p.Context(), p.config, command.BackupRequest{}); err != nil {
					p.Fatal(err)
				}
			},
			with: func(e *examine.Examination) { e.Now = func() time.Time { return time.Now().Add(72 * time.Hour) } },
			want: "backup.old",
		},
	} {
		t.Run(name, func(t *testing.T) {
			p := &place{T: t, folder: t.TempDir(), logged: &kit.Tail{}}
			if c.text != "" {
				p.config = p.load(c.text)
			}
			if c.spoil != nil {
				c.spoil(p)
			}
			var with []func(*examine.Examination)
			if c.with != nil {
				with = append(with, c.with)
			}
			r := p.examined(with...)
			text := shownReport(r)
			f := finding(r, c.want)
			if f == nil {
				t.Fatalf("%s is not found in %s", c.want, text)
			}
			if f.Level != cmp.Or(c.level, doctor.Problem) || !strings.Contains(f.Subject+": "+f.Says, c.says) ||
				f.Do == "" {
				t.Errorf("found %+v, want %q", f, c.says)
			}
			if r.Healthy() != (c.level != "") {
				t.Errorf("healthy: %t with %s", r.Healthy(), text)
			}
			for _, s := range p.config.Secrets() {
				if strings.Contains(text, s) {
					t.Errorf("the secret %q is in %s", s, text)
				}
			}
			if strings.Contains(text, secret) {
				t.Errorf("the report has a secret: %s", text)
			}
		})
	}
}

// healthy fails unless no problem was found, and what must have been asked is there.
func (p *place) healthy(r *doctor.Report, names ...string) {
	p.Helper()
	if !r.Healthy() {
		p.Errorf("problems: %s", shownReport(r))
	}
	for _, name := range names {
		if finding(r, name) == nil {
			p.Errorf("%s is missing in %s", name, shownReport(r))
		}
	}
}

// A deployment that works has no problem: on files, beside a belfry that serves them and without one.
func TestTheDoctorFindsNothingWhereNothingIsWrong(t *testing.T) {
	p := newPlace(t, lone+"binaries: {files: {map: {Books: cover}}}\nbackup: {folder: backups}\n")
	a := p.start()
	p.want(a, "GET", "/readyz", "", http.StatusOK)
	if _, err := command.Backup.Do(t.Context(), p.config, command.BackupRequest{}); err != nil {
		t.Fatal(err)
	}
	p.healthy(p.examined(), "configuration.ok", "process.ready", "process.parts", "bus.connected", "bus.inSync",
		"bus.publishes", "listener.ok", "clock.ok", "version.ok", "binaries.ok", "disk.ok", "backup.ok")
	p.stop(a)
	p.healthy(p.examined(), "configuration.ok", "process.none", "backend.ok", "binaries.ok", "disk.ok", "backup.ok")
	if a = p.start(); a == nil {
		t.Fatal("what the doctor did keeps belfry from starting")
	}
}

// With the users of nats.conf, those of a process with all roles see all but what only the admin may.
func TestTheDoctorWorksWithTheUsersOfNATS(t *testing.T) {
	p := &place{T: t, folder: t.TempDir(), logged: &kit.Tail{}}
	url := p.production(onNATS, true)
	js := natsserver.JetStream(t, url, nats.UserInfo("admin", "pw-of-admin"))
	stored := func() (n uint64) {
		for _, name := range []string{bus.StreamEvents, bus.StreamDead, bus.StreamRetry} {
			s, err := js.Stream(t.Context(), name)
			if err != nil {
				t.Fatal(err)
			}
			n += s.CachedInfo().State.LastSeq
		}
		return n
	}
	before := stored()
	p.healthy(p.examined(), "bus.publishes", "bus.works", "listener.ok")
	a := p.start()
	kit.WaitUntil(t, func() error { return degraded(a, "") })
	p.healthy(p.examined(), "process.ready", "bus.connected", "bus.inSync", "bus.publishes", "bus.works", "listener.ok",
		"clock.ok")
	admin := bus.Options{URL: url, Auth: bus.Auth{User: "admin", Password: "pw-of-admin"}}
	r := p.examined(func(e *examine.Examination) { e.Bus = &admin })
	p.healthy(r, "bus.inSync", "listener.ok", "listener.complete")
	if f := finding(r, "bus.denied"); f != nil {
		t.Errorf("the admin may not see %+v", f)
	}
	if after := stored(); after != before {
		t.Errorf("the doctor has written %d events", after-before)
	}
}

// The process with an embedded bus reports what its user may not see. Another user of the bus sees it.
func TestTheDoctorOfAnAdminLeavesOutWhatTheProcessMayNotSee(t *testing.T) {
	p := newPlace(t, "")
	p.write("nats.conf", `
listen: "127.0.0.1:-1"
jetstream: {store_dir: "`+t.TempDir()+`"}
accounts: {BELFRY: {jetstream: enabled, users: [
  {user: belfry, password: pw-of-all, permissions: {publish: {deny: listeners.missed}}}
  {user: admin, password: pw-of-admin}
]}}
`)
	p.config = p.load(strings.Replace(lone, `listen: ""`, "config: nats.conf, user: belfry, password: pw-of-all", 1))
	a := p.start()
	kit.WaitUntil(t, func() error { return degraded(a, "") })
	if f := finding(p.examined(), "bus.denied"); f == nil {
		t.Error("the user of the process sees everything")
	}
	admin := bus.Options{URL: a.Bus().ClientURL(), Auth: bus.Auth{User: "admin", Password: "pw-of-admin"}}
	r := p.examined(func(e *examine.Examination) { e.Bus = &admin })
	p.healthy(r, "listener.complete")
	if f := finding(r, "bus.denied"); f != nil {
		t.Errorf("the admin may not see %+v", f)
	}
}

// What only the process that serves knows comes from it: that it is not ready, and that its file has another
// configuration.
func TestTheDoctorAsksTheProcessThatServes(t *testing.T) {
	p := newPlace(t, lone)
	a, _ := p.reloadable()
	p.write("belfry.yaml", strings.Replace(lone, "policy: owner", "policy: owner, expose: {url: /b}", 1))
	if f := finding(p.examined(), "configuration.outdated"); f == nil ||
		!strings.Contains(f.Says, "stores.Books.expose") {
		t.Errorf("found %+v", f)
	}
	p.write("belfry.yaml", "listen: [")
	if f := finding(p.examined(), "configuration.broken"); f == nil || f.Level != doctor.Problem {
		t.Errorf("found %+v", f)
	}
	p.write("belfry.yaml", lone)
	if err := a.Bus().StopServer(); err != nil {
		t.Fatal(err)
	}
	kit.WaitUntil(t, func() error {
		r := p.examined()
		if f := finding(r, "process.part"); f == nil || f.Subject != "Bus" {
			return fmt.Errorf("found %s", shownReport(r))
		}
		return nil
	})
}

// Another command that has the data folder is named, and not taken for a fault.
func TestTheDoctorNamesWhoHoldsTheData(t *testing.T) {
	p := newPlace(t, lone)
	lock, err := hold.LockData(p.config.Data, "export")
	if err != nil {
		t.Fatal(err)
	}
	defer lock.Unlock()
	r := p.examined()
	p.healthy(r)
	if f := finding(r, "process.other"); f == nil || !strings.Contains(f.Says, "belfry export") {
		t.Errorf("found %s", shownReport(r))
	}
}

func TestSpaceIsJudged(t *testing.T) {
	for _, c := range []struct {
		free, total int64
		want        string
	}{
		{100 << 30, 200 << 30, "disk.ok"}, {2 << 30, 200 << 30, "disk.ok"}, {900 << 20, 200 << 30, "disk.low"},
		{900 << 20, 2 << 30, "disk.ok"}, {100 << 20, 200 << 30, "disk.full"}, {0, 1 << 20, "disk.full"},
	} {
		if f := examine.JudgeDisk("data", "/data", c.free, c.total); f.Name != c.want ||
			(f.Do == "") != (f.Level == doctor.OK) {
			t.Errorf("%d of %d: %+v, want %s", c.free, c.total, f, c.want)
		}
	}
}

// A server that accepts a connection and says nothing delays the report no longer than the time for it.
func TestTheDoctorEndsInTime(t *testing.T) {
	silent, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = silent.Close() })
	port := silent.Addr().(*net.TCPAddr).Port
	p := newPlace(t, lone+fmt.Sprintf("mailers: {m: {type: smtp, host: 127.0.0.1, port: %d}}", port))
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	for within := 50 * time.Millisecond; ; within *= 4 { // a slow machine needs longer to connect
		r := examine.Doctor(ctx, p.config, examine.DoctorOptions{Within: within})
		f := finding(r, "mailer.unavailable")
		if f != nil && strings.Contains(f.Says, "greeting did not end in time") {
			return
		}
		if within > time.Minute {
			t.Fatalf("found %s", shownReport(r))
		}
	}
}
