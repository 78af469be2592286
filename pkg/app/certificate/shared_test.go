package certificate

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"belfry/test/backing"
	"belfry/test/kit"
	"belfry/test/kit/gotest"
)

// frontEnv has the ACMEOptions of a process that is a front of a test.
const frontEnv = "BELFRY_TEST_ACME_FRONT"

func TestMain(m *testing.M) {
	if options := os.Getenv(frontEnv); options != "" {
		if err := runFront(options); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	os.Exit(m.Run())
}

// runFront serves until its input ends. The library keeps challenges of one process in its memory, so that fronts which
// share nothing but the storage have to be processes.
func runFront(options string) error {
	var o ACMEOptions
	if err := json.Unmarshal([]byte(options), &o); err != nil {
		return err
	}
	o.Log, o.onlyHTTP = slog.New(slog.NewTextHandler(os.Stderr, nil)), true
	secure, err := net.Listen("tcp", o.Listen)
	if err != nil {
		return err
	}
	plain, err := net.Listen("tcp", o.Redirect)
	if err != nil {
		return err
	}
	a, err := NewACME(o)
	if err != nil {
		return err
	}
	defer a.Close()
	go func() { _ = (&http.Server{Handler: a.Challenge(http.NotFoundHandler())}).Serve(plain) }()
	go func() {
		_ = (&http.Server{TLSConfig: a.TLSConfig(), Handler: http.NotFoundHandler(),
			ErrorLog: slog.NewLogLogger(slog.DiscardHandler, 0)}).ServeTLS(secure, "", "")
	}()
	_, err = io.Copy(io.Discard, os.Stdin)
	return err
}

// front is such a process.
type front struct {
	address string // of TLS
	logged  *kit.Tail
	cmd     *exec.Cmd
}

func startFront(t *testing.T, o ACMEOptions) *front {
	t.Helper()
	o.Listen = fmt.Sprint("127.0.0.1:", kit.FreePort(t))
	options, err := json.Marshal(o)
	if err != nil {
		t.Fatal(err)
	}
	f := &front{address: o.Listen, logged: &kit.Tail{}, cmd: exec.Command(os.Args[0])}
	f.cmd.Env, f.cmd.Stderr = append(os.Environ(), frontEnv+"="+string(options), gotest.RaceOptions), f.logged
	if _, err := f.cmd.StdinPipe(); err != nil {
		t.Fatal(err)
	}
	if err := kit.Start(f.cmd); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(f.kill)
	return f
}

func (f *front) kill() {
	_ = f.cmd.Process.Kill()
	_ = f.cmd.Wait()
}

// Fronts that share a storage obtain one certificate, and each answers the challenges of the others, also after one of
// them was killed in the middle of an order, while it held the lock.
func TestFrontsShareAStorage(t *testing.T) {
	t.Parallel()
	challenges := kit.FreePort(t)
	silent, err := net.Listen("tcp", fmt.Sprint("127.0.0.1:", challenges))
	if err != nil {
		t.Fatal(err)
	}
	authority := backing.ACME(t, 3600, challenges, kit.FreePort(t))
	const name = "shared.example.com"
	o := ACMEOptions{Domains: []string{name}, Directory: authority.Directory, CA: authority.CAFile,
		Storage: filepath.Join(t.TempDir(), "acme")}
	elsewhere := func() ACMEOptions {
		o := o
		o.Redirect = fmt.Sprint("127.0.0.1:", kit.FreePort(t))
		return o
	}
	killed := startFront(t, elsewhere())
	asked, err := silent.Accept() // the authority asks for the answer to a challenge
	if err != nil {
		t.Fatal(err)
	}
	killed.kill()
	_, _ = asked.Close(), silent.Close()
	if locks, err := filepath.Glob(filepath.Join(o.Storage, "locks", "*")); err != nil || len(locks) == 0 {
		t.Fatalf("the front that was killed held no lock: %v", err)
	}

	answering := o
	answering.Redirect = fmt.Sprint("127.0.0.1:", challenges)
	fronts := []*front{startFront(t, elsewhere()), startFront(t, answering), startFront(t, elsewhere())}
	roots, serials, obtained := authority.Roots(t), map[string]bool{}, 0
	for _, f := range fronts {
		// After a challenge that failed, the library waits for a minute.
		if err := kit.Await(3*time.Minute, func() error {
			c, err := connect(f.address, name, roots)
			if err != nil {
				return errors.Join(err, errors.New(f.logged.String()))
			}
			serials[c.SerialNumber.String()] = true
			return nil
		}); err != nil {
			t.Fatal(err)
		}
	}
	for _, f := range fronts {
		obtained += strings.Count(f.logged.String(), "a certificate was obtained")
	}
	if len(serials) != 1 || obtained != 1 {
		t.Errorf("%d certificates, obtained %d times", len(serials), obtained)
	}
	if keys, err := filepath.Glob(filepath.Join(o.Storage, "certificates", "*", name, "*")); err != nil ||
		len(keys) != 3 {
		t.Errorf("%q, %v", keys, err)
	}
}

// Strangers who begin challenges cause no errors in the log, and learn nothing.
func TestChallengesOfStrangers(t *testing.T) {
	t.Parallel()
	logged := &kit.Tail{}
	secure, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	plain, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	storage := filepath.Join(t.TempDir(), "acme")
	a, err := NewACME(ACMEOptions{
		Domains: []string{"ours.example.com"}, Directory: "https://127.0.0.1:1/dir", Storage: storage,
		Listen: secure.Addr().String(), Redirect: plain.Addr().String(),
		Log: slog.New(slog.NewTextHandler(logged, nil)),
	})
	if err != nil {
		t.Fatal(err)
	}
	defer a.Close()
	serve(t, a, secure, plain)
	for _, name := range []string{"ours.example.com", "theirs.example.com", strings.Repeat("x", 60) + ".example.com"} {
		if _, err := connectAs(secure.Addr().String(), name, "acme-tls/1"); err == nil {
			t.Errorf("%s has an answer to a challenge", name)
		}
		for _, host := range []string{name, name + ":80", "../../" + name, ""} {
			req, err := http.NewRequestWithContext(t.Context(), http.MethodGet,
				"http://"+plain.Addr().String()+"/.well-known/acme-challenge/x", nil)
			if err != nil {
				t.Fatal(err)
			}
			req.Host = host
			res, err := http.DefaultClient.Do(req)
			if err != nil {
				continue // no host at all
			}
			_ = res.Body.Close()
			if res.StatusCode/100 == 2 {
				t.Errorf("%s: %s", host, res.Status)
			}
		}
	}
	if text := logged.String(); strings.Contains(text, "challenge") && strings.Contains(text, "theirs") ||
		strings.Contains(text, unanswered) {
		t.Error(text)
	}
}
