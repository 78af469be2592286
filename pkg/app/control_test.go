package app

import (
	"bytes"
	"context"
	"errors"
	"net/http"
	"path/filepath"
	"strings"
	"testing"

	"belfry/config"
	"belfry/pkg/app/command"
	"belfry/pkg/app/hold"
	"belfry/pkg/errs"
)

func TestControlNeedsTheToken(t *testing.T) {
	p := newPlace(t, books)
	p.start()
	h := hold.ReadHolder(filepath.Join(p.config.Data, hold.LockFile))
	if h.Control == "" || len(h.Token) < 26 {
		t.Fatalf("%+v", h)
	}
	ask := func(path, authorization string) int {
		t.Helper()
		req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, h.Control+path, nil)
		if err != nil {
			t.Fatal(err)
		}
		if authorization != "" {
			req.Header.Set("Authorization", authorization)
		}
		res, err := http.DefaultClient.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		_ = res.Body.Close()
		return res.StatusCode
	}
	for _, path := range []string{"/export", "/verify", "/access", "/users", "/debug/pprof/", "/nothing"} {
		for _, authorization := range []string{"", "Bearer", "Bearer ", "Bearer wrong", "Bearer " + h.Token + "x",
			"Bearer " + h.Token[1:], "Basic " + h.Token, h.Token} {
			if status := ask(path, authorization); status != http.StatusUnauthorized {
				t.Errorf("%s with %q: %d", path, authorization, status)
			}
		}
	}
	if status := ask("/debug/pprof/", "Bearer "+h.Token); status != http.StatusOK {
		t.Errorf("with the token: %d", status)
	}
}

func TestAControlTokenIsValidForOneProcess(t *testing.T) {
	p := newPlace(t, books)
	path := filepath.Join(p.config.Data, hold.LockFile)
	a := p.start()
	first := hold.ReadHolder(path)
	p.stop(a)
	if left := hold.ReadHolder(path); left.Token != "" || left.PID != 0 {
		t.Errorf("a folder that nobody holds has %+v", left)
	}
	p.start()
	if second := hold.ReadHolder(path); first.Token == "" || second.Token == first.Token {
		t.Errorf("%q, then %q", first.Token, second.Token)
	}
}

func (p *place) export(c *config.Config, store string) (string, error) {
	var out bytes.Buffer
	_, err := command.Export.Do(p.Context(), c, command.ExportRequest{Store: store, To: &out})
	return out.String(), err
}

// Commands give the same answer from the process that serves and, once it has
// stopped, from its folder.
func TestCommandsWhileServingAndStopped(t *testing.T) {
	p := newPlace(t, books+"  Notes: {private: [secret]}\n")
	a := p.start()
	p.want(a, "POST", "/authors", `{"uuid":"lem"}`, http.StatusCreated)
	p.want(a, "POST", "/books", `{"uuid":"solaris","author":"lem","title":"Solaris"}`, http.StatusCreated)
	p.want(a, "POST", "/books", `{"uuid":"eden","author":"lem","title":"Eden"}`, http.StatusCreated)

	// The copies may lag; verify rechecks differences.
	served, err := command.Verify.Do(t.Context(), p.config, command.VerifyRequest{})
	if err != nil || !served.Clean() || served.Entries > 2 {
		t.Fatalf("%+v, %v", served, err)
	}
	line, err := p.export(p.config, "Books")
	if err != nil || strings.Count(line, "\n") != 2 || strings.Index(line, "eden") > strings.Index(line, "solaris") {
		t.Fatalf("%s, %v", line, err)
	}
	p.stop(a)
	stopped, err := command.Verify.Do(t.Context(), p.config, command.VerifyRequest{})
	if err != nil || !stopped.Clean() || stopped.Entries != 2 || stopped.Objects != served.Objects {
		t.Errorf("%+v, %v, served: %+v", stopped, err, served)
	}
	if again, err := p.export(p.config, "Books"); err != nil || again != line {
		t.Errorf("%s, %v, served: %s", again, err, line)
	}
}

// A command that reads creates nothing: a mistyped folder is an error.
func TestCommandsFailWithoutData(t *testing.T) {
	for name, prepare := range map[string]func(p *place){
		"no folder": func(*place) {},
		"the folder of something else": func(p *place) {
			p.config.Data = p.folder
		},
	} {
		p := newPlace(t, books)
		prepare(p)
		before, err := filepath.Glob(p.path("*"))
		if err != nil {
			t.Fatal(err)
		}
		if _, err := command.Verify.Do(t.Context(), p.config, command.VerifyRequest{Repair: true}); !errors.Is(err,
			errs.Invalid) || !strings.Contains(err.Error(), "--data") {
			t.Errorf("%s: verify: %v", name, err)
		}
		if _, err := p.export(p.config, "Books"); !errors.Is(err, errs.Invalid) {
			t.Errorf("%s: export: %v", name, err)
		}
		if after, err := filepath.Glob(p.path("*")); err != nil || len(after) != len(before) {
			t.Errorf("%s: made %v, %v", name, after, err)
		}
	}
}

func TestUnknownStores(t *testing.T) {
	p := newPlace(t, books)
	for name, c := range map[string]*config.Config{"": p.config, "Nothing": p.config, "../Books": p.config} {
		if _, err := p.export(c, name); !errors.Is(err, errs.Invalid) ||
			!strings.Contains(err.Error(), "there are Authors, Books, Idents, Users") {
			t.Errorf("%q: %v", name, err)
		}
	}
	// The process that serves may have another configuration.
	p.start()
	other := p.load(books + "  Other: {}\n")
	if _, err := p.export(other, "Other"); !errors.Is(err, errs.Unavailable) ||
		!strings.Contains(err.Error(), `no store "Other"`) {
		t.Errorf("%v", err)
	}
}

// full is a disk that has no room after some bytes.
type full int

var errFull = errors.New("no space left on device")

func (f *full) Write(data []byte) (int, error) {
	if *f -= full(len(data)); *f < 0 {
		return 0, errFull
	}
	return len(data), nil
}

func TestAnExportThatCannotBeWrittenFails(t *testing.T) {
	p := newPlace(t, books)
	a := p.start()
	for range 20 {
		p.want(a, "POST", "/authors", `{"text":"`+strings.Repeat("x", 50_000)+`"}`, http.StatusCreated)
	}
	check := func() {
		t.Helper()
		room := full(300_000)
		if _, err := command.Export.Do(t.Context(), p.config,
			command.ExportRequest{Store: "Authors", To: &room}); !errors.Is(err, errFull) {
			t.Errorf("%v", err)
		}
	}
	check()
	p.stop(a)
	check()
}

func TestCommandsCanBeCanceled(t *testing.T) {
	p := newPlace(t, books)
	a := p.start()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	check := func() {
		t.Helper()
		if _, err := command.Verify.Do(ctx, p.config, command.VerifyRequest{}); !errors.Is(err, context.Canceled) {
			t.Errorf("%v", err)
		}
	}
	check()
	p.stop(a)
	check()
}
