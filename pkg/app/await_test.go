package app

import (
	"context"
	"errors"
	"maps"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"belfry/pkg/app/command"
	"belfry/pkg/app/hold"
	"belfry/pkg/app/plan"
	"belfry/pkg/errs"
	"belfry/test/kit"
)

// starting is a belfry that starts in another goroutine.
type starting struct {
	app    *App
	cancel context.CancelFunc
	ended  chan error // of the start
}

// beginStart begins the start of a belfry, and returns once it listens.
func (p *place) beginStart() *starting {
	p.Helper()
	plan, err := plan.Compile(p.config)
	if err != nil {
		p.Fatal(err)
	}
	ctx, cancel := context.WithCancel(p.Context())
	s := &starting{app: newApp(p.config, plan, p.log(), nil), cancel: cancel, ended: make(chan error, 1)}
	p.Cleanup(func() { _ = s.app.Stop(context.Background()) })
	p.Cleanup(cancel)
	listens := make(chan struct{})
	go func() {
		said := false
		for _, p := range s.app.wiring.parts {
			if err := s.app.parts.Start(ctx, p, s.app.now()); err != nil {
				s.ended <- err
				return
			}
			if s.app.now().Address != "" && !said {
				close(listens)
				said = true
			}
		}
		s.ended <- nil
	}()
	select {
	case <-listens:
	case err := <-s.ended:
		s.ended <- err
	}
	return s
}

// doings are what the sources say that a process does that locks a data folder.
func doings(t *testing.T) []string {
	t.Helper()
	files, err := filepath.Glob("command/*.go")
	if err != nil {
		t.Fatal(err)
	}
	found := map[string]bool{hold.DoingServe: true}
	locks := regexp.MustCompile(
		`(?:LockData|LockFolder|WithStores)\((?:ctx, )?(?:\w+(?:\.\w+)?, )*"([^"]+)"|Name: +"([^"]+)",(?:[^{}]*\s(Storeless|Own|Served|Bus):)?`)
	for _, file := range files {
		if strings.HasSuffix(file, "_test.go") {
			continue
		}
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range locks.FindAllSubmatch(text, -1) {
			if len(m[3]) == 0 { // operations that open stores lock the folder in their names
				found[string(m[1])+string(m[2])] = true
			}
		}
	}
	return slices.Sorted(maps.Keys(found))
}

// Whatever holds the data folder, a belfry that starts waits for it to end, and says for whom; but for one that serves.
func TestABelfryWaitsForACommandThatHoldsItsData(t *testing.T) {
	all := append(slices.Collect(maps.Keys(dataCommands)), "restore", hold.DoingServe)
	slices.Sort(all)
	if found := doings(t); !slices.Equal(all, found) {
		t.Fatalf("the commands that lock a data folder are %q, and those of this test %q", found, all)
	}
	every := hold.WaitLogInterval
	hold.WaitLogInterval = time.Nanosecond
	defer func() { hold.WaitLogInterval = every }()
	for _, doing := range all {
		p := newPlace(t, books)
		lock, err := hold.LockData(p.config.Data, doing)
		if err != nil {
			t.Fatal(err)
		}
		if doing == hold.DoingServe {
			a, err := Start(t.Context(), p.config, p.log())
			if held, ok := errors.AsType[*hold.Held](err); !ok || held.Holder.PID != os.Getpid() {
				t.Errorf("a second belfry on one folder: %v, %v", a, err)
			}
			lock.Unlock()
			continue
		}
		s := p.beginStart()
		kit.WaitFor(t, "the log says twice for whom it waits", func() bool {
			line := regexp.MustCompile(
				`level=WARN msg="waiting for a command that holds the data folder" command="?belfry ` + doing +
					`"? process=\d+ host=`)
			return len(line.FindAllString(p.logged.String(), -1)) > 1
		})
		if status, text := p.do(s.app, "GET", "/readyz", ""); status != http.StatusServiceUnavailable ||
			!strings.Contains(text, "waits for `belfry "+doing+"`, which has its data") {
			t.Errorf("%s: /readyz is %d %s", doing, status, text)
		}
		if status, _ := p.do(s.app, "GET", "/livez", ""); status != http.StatusOK {
			t.Errorf("%s: /livez is %d", doing, status)
		}
		if !hold.Awaited(p.config.Data) {
			t.Errorf("%s: the command can't know that somebody waits", doing)
		}
		lock.Unlock()
		if err := <-s.ended; err != nil {
			t.Errorf("%s has ended, and the start returns %v", doing, err)
			continue
		}
		p.want(s.app, "POST", "/authors", `{"uuid":"lem"}`, http.StatusCreated)
		if hold.Awaited(p.config.Data) {
			t.Errorf("%s: somebody waits for a belfry that serves", doing)
		}
		p.stop(s.app)
	}
}

// A process whose lock file is not written yet may be a command; one that never says so is refused.
func TestABelfryDoesNotWaitForAnUnknownProcess(t *testing.T) {
	p := newPlace(t, books)
	lock, err := hold.LockData(p.config.Data, "verify")
	if err != nil {
		t.Fatal(err)
	}
	defer lock.Unlock()
	if err := os.WriteFile(filepath.Join(p.config.Data, hold.LockFile), []byte("{}"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := <-p.beginStart().ended; !errors.As(err, new(*hold.Held)) ||
		!strings.Contains(err.Error(), "in use by another process") {
		t.Errorf("the start returns %v", err)
	}
}

// What another belfry has held is not what the next holder does.
func TestALockThatIsReleasedNamesNobody(t *testing.T) {
	folder := t.TempDir()
	lock, err := hold.LockData(folder, hold.DoingServe)
	if err != nil {
		t.Fatal(err)
	}
	lock.Unlock()
	if h := hold.ReadHolder(filepath.Join(folder, hold.LockFile)); h != (hold.Holder{}) {
		t.Errorf("%+v", h)
	}
}

// A belfry that waits is refused as soon as another one serves: both have waited for the same command.
func TestOfTwoThatWaitOneServes(t *testing.T) {
	p := newPlace(t, books)
	lock, err := hold.LockData(p.config.Data, "verify")
	if err != nil {
		t.Fatal(err)
	}
	one, two := p.beginStart(), p.beginStart()
	kit.WaitFor(t, "both wait", func() bool { return strings.Count(p.logged.String(), "waiting for a command") >= 2 })
	lock.Unlock()
	first, second := <-one.ended, <-two.ended
	if first == nil {
		first, second = second, first
	}
	if second != nil || !errors.As(first, new(*hold.Held)) ||
		!strings.Contains(first.Error(), "belfry serve, process ") {
		t.Errorf("%v, %v", first, second)
	}
}

func TestAStartThatWaitsCanBeInterrupted(t *testing.T) {
	p := newPlace(t, books)
	lock, err := hold.LockData(p.config.Data, "verify")
	if err != nil {
		t.Fatal(err)
	}
	defer lock.Unlock()
	s := p.beginStart()
	kit.WaitFor(t, "it waits", func() bool { return hold.Awaited(p.config.Data) })
	s.cancel()
	if err := <-s.ended; !errors.Is(err, errs.Canceled) || !errors.Is(err, context.Canceled) {
		t.Errorf("the start returns %v", err)
	}
	if hold.Awaited(p.config.Data) {
		t.Error("somebody waits")
	}
}

// A backup that nothing else would end gives way, which is no failure of it.
func TestABackupGivesWayToABelfryThatWaits(t *testing.T) {
	after := hold.GiveWayAfter
	hold.GiveWayAfter = 0
	defer func() { hold.GiveWayAfter = after }()
	t.Setenv("AWS_ACCESS_KEY_ID", "x")
	t.Setenv("AWS_SECRET_ACCESS_KEY", "x")
	began, ended := make(chan struct{}, 1), make(chan error, 1)
	slow := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		select {
		case began <- struct{}{}:
		default:
		}
		<-r.Context().Done()
	}))
	defer slow.Close()
	p := newPlace(t, books+"backup: {s3: {bucket: b, region: here, endpoint: '"+slow.URL+"'}}\n")
	p.stop(p.start())
	go func() {
		_, err := command.Backup.Do(context.WithoutCancel(t.Context()), p.config, command.BackupRequest{})
		ended <- err
	}()
	<-began
	a := p.start()
	if err := <-ended; !errors.Is(err, hold.ErrGaveWay) {
		t.Errorf("the backup returns %v", err)
	}
	kit.WaitFor(t, "the state", func() bool { return a.wiring.backups.Last.Load() != nil })
	if state := a.wiring.backups.Last.Load(); state.Error != "" || state.Lease != nil || len(state.Recent) > 0 {
		t.Errorf("%+v", state)
	}
	p.backup() // by the belfry that serves
}
