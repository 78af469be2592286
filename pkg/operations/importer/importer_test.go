package importer

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"reflect"
	"regexp"
	"runtime"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"belfry/pkg/errs"
	"belfry/test/kit"
)

// books are n objects as JSON lines, without uuids.
func books(n int) string {
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, "{\"title\":\"Book %d\",\"year\":%d}\n", i, 1900+i%100)
	}
	return b.String()
}

func asArray(lines string) string {
	return "[\n" + strings.Join(strings.Split(strings.TrimSpace(lines), "\n"), ",\n") + "\n]\n"
}

func TestArrayAndLinesAreTheSame(t *testing.T) {
	s := serve(t)
	lines := books(300) + `{"uuid":"mine","title":"Żółć 日本語 \"quoted\" \ud83d\ude00"}` + "\n"
	p, failures, err := s.run(Options{}, lines)
	s.must(err)
	s.wantProgress(p, Progress{Read: 301, Created: 301, Complete: 301})
	if title, _ := s.wantObjects(301)["mine"].Text("title"); title != `Żółć 日本語 "quoted" 😀` {
		t.Errorf("UTF-8 came as %q", title)
	}
	p, again, err := s.run(Options{Concurrency: 1}, asArray(lines))
	s.must(err)
	s.wantProgress(p, Progress{Read: 301, Existing: 301, Complete: 301})
	s.wantObjects(301)
	if len(failures)+len(again) > 0 {
		t.Errorf("failures: %v %v", failures, again)
	}
}

func TestEqualObjectsAreDistinct(t *testing.T) {
	s := serve(t)
	p, _, err := s.run(Options{}, strings.Repeat("{\"title\":\"twin\"}\n", 40))
	s.must(err)
	s.wantProgress(p, Progress{Read: 40, Created: 40, Complete: 40})
	_, _, err = s.run(Options{Batch: "another"}, strings.Repeat("{\"title\":\"twin\"}\n", 40))
	s.must(err)
	s.wantObjects(80)
}

func TestExistingObjectsAreSkippedOrUpdated(t *testing.T) {
	s := serve(t)
	_, _, err := s.run(Options{}, `{"uuid":"a","title":"first","year":1}`)
	s.must(err)
	second := `[{"uuid":"a","title":"second"},{"uuid":"b","title":"new"}]`
	p, _, err := s.run(Options{}, second)
	s.must(err)
	s.wantProgress(p, Progress{Read: 2, Created: 1, Existing: 1, Complete: 2})
	if title, _ := s.objects()["a"].Text("title"); title != "first" {
		t.Errorf("title is %q without Update", title)
	}
	p, _, err = s.run(Options{Update: true}, second)
	s.must(err)
	s.wantProgress(p, Progress{Read: 2, Updated: 2, Complete: 2})
	a := s.wantObjects(2)["a"]
	if title, _ := a.Text("title"); title != "second" || string(a["year"]) != "1" {
		t.Errorf("after Update: %s", a.Encode())
	}
}

func TestKeyFieldIsTheUUID(t *testing.T) {
	s := serve(t)
	_, failures, err := s.run(Options{Key: "isbn"},
		`{"isbn":"0-19","uuid":"no"}`+"\n"+`{"isbn":20}`+"\n"+`{"title":"none"}`+"\n")
	s.must(err)
	all := s.wantObjects(2)
	if all["0-19"] == nil || all["20"] == nil {
		t.Errorf("objects: %v", all)
	}
	want := []string{"3:1: no valid uuid; /isbn: is missing; it is to be the object's uuid"}
	if !reflect.DeepEqual(failures, want) {
		t.Errorf("failures: %q", failures)
	}
}

// Fields that the server owns don't count against the size it takes.
func TestOmittedFieldsAreNotSent(t *testing.T) {
	s := serve(t)
	var bodies []string
	s.fault(func(_ int64, w http.ResponseWriter, r *http.Request, _ http.Handler) {
		body, _ := io.ReadAll(r.Body)
		bodies = append(bodies, string(body))
		w.WriteHeader(http.StatusCreated)
	})
	owned := func(name string) bool { return name == "copies" }
	_, _, err := s.run(Options{Omit: owned},
		`{"title":"x","copies":[`+strings.Repeat(`{"uuid":"y"},`, 50_000)+`{}],"uuid":"a"}`)
	s.must(err)
	if want := []string{`{"uuid":"a","title":"x"}`}; !reflect.DeepEqual(bodies, want) {
		t.Errorf("%d bodies were sent: %.100q", len(bodies), bodies)
	}
}

func TestFailuresAreReportedAndTheImportContinues(t *testing.T) {
	s := serve(t)
	input := strings.Join([]string{
		`{"uuid":"a","title":"good"}`,
		`{"uuid":"b","title":}`,
		`{"uuid":"c","year":"MCMXC"}`,
		`[]`,
		`{"uuid":"d/e"}`,
		`{"uuid":"f","title":"` + strings.Repeat("x", 300<<10) + `"}`,
		`{"uuid":"g","title":"` + strings.Repeat("日", 80<<10) + `"}`,
		`{"uuid":"h"}`,
	}, "\n")
	p, failures, err := s.run(Options{Concurrency: 1}, input)
	s.must(err)
	s.wantProgress(p, Progress{Read: 8, Created: 3, Failed: 5, Complete: 8})
	all := s.wantObjects(3)
	if title, _ := all["g"].Text("title"); len(title) != 240<<10 {
		t.Errorf("a line of 240 KiB came as %d bytes", len(title))
	}
	for i, want := range []string{
		"2:21: malformed JSON", "3:1: c: ", "4:1: a JSON object is expected, not an array",
		"5:1: no valid uuid; /uuid: ", "6:1: f: ",
	} {
		if !strings.HasPrefix(failures[i], want) {
			t.Errorf("failure %d is %q; want %q", i, failures[i], want)
		}
	}
	if !strings.Contains(failures[1], "(400); /year: ") || !strings.Contains(failures[4], "(413)") {
		t.Errorf("the server's own words are missing: %q, %q", failures[1], failures[4])
	}
}

func TestStopOnFailure(t *testing.T) {
	s := serve(t)
	p, failures, err := s.run(Options{StopOnFailure: true, Concurrency: 1},
		"{\"uuid\":\"a\"}\n{\"year\":\"x\",\"uuid\":\"b\"}\n{\"uuid\":\"c\"}\n")
	s.must(err)
	s.wantProgress(p, Progress{Read: 2, Created: 1, Failed: 1, Complete: 2})
	if len(failures) != 1 {
		t.Errorf("failures: %q", failures)
	}
	s.wantObjects(1)
}

func TestSyntaxErrorKeepsObjectsBeforeIt(t *testing.T) {
	s := serve(t)
	array := asArray(books(100))
	_, _, err := s.run(Options{}, array[:len(array)-40])
	var bad *SyntaxError
	if !errors.As(err, &bad) || bad.Line != 100 {
		t.Fatalf("got %v", err)
	}
	s.wantObjects(98)
	_, _, err = s.run(Options{}, array)
	s.must(err)
	s.wantObjects(100)
}

func TestInterruptedImportCanBeRepeated(t *testing.T) {
	const n = 400
	for _, how := range []string{"from the beginning", "from where it was"} {
		t.Run(how, func(t *testing.T) {
			s := serve(t)
			ctx, interrupt := context.WithCancel(t.Context())
			defer interrupt()
			s.fault(func(n int64, w http.ResponseWriter, r *http.Request, next http.Handler) {
				if n == 150 {
					interrupt()
				}
				next.ServeHTTP(w, r)
			})
			p, _, err := s.runWith(ctx, Options{}, &fakeClock{}, books(n))
			if !errors.Is(err, context.Canceled) {
				t.Fatalf("interrupted: %v", err)
			}
			if sent := s.requests.Load(); p.Created != sent || p.Complete > p.Created || sent < 150 || sent == n {
				t.Errorf("%d were sent, and what was on its way was not finished: %+v", sent, p)
			}
			s.wantObjects(int(p.Created))

			s.fault(nil)
			o := Options{}
			if how == "from where it was" {
				o.Skip = p.Complete
			}
			again, _, err := s.run(o, books(n))
			s.must(err)
			s.wantProgress(again,
				Progress{Read: n, Skipped: o.Skip, Created: n - p.Created, Existing: p.Created - o.Skip, Complete: n})
			s.wantObjects(n)
			if asked := s.requests.Load(); asked != n-o.Skip {
				t.Errorf("%d requests instead of %d", asked, n-o.Skip)
			}
		})
	}
}

// A reply that is lost leaves open whether the object was stored.
func TestLostRepliesCreateNoDuplicates(t *testing.T) {
	s := serve(t)
	s.fault(func(n int64, w http.ResponseWriter, r *http.Request, next http.Handler) {
		if n%5 == 4 {
			next.ServeHTTP(discard{}, r)
			panic(http.ErrAbortHandler)
		}
		next.ServeHTTP(w, r)
	})
	p, failures, err := s.run(Options{Concurrency: 4}, books(200))
	s.must(err)
	if p.Created+p.Existing != 200 || p.Existing == 0 || len(failures) > 0 {
		t.Errorf("%+v %v", p, failures)
	}
	s.wantObjects(200)
}

type discard struct{}

func (discard) Header() http.Header         { return http.Header{} }
func (discard) Write(p []byte) (int, error) { return len(p), nil }
func (discard) WriteHeader(int)             {}

func TestObjectInFlightIsNotComplete(t *testing.T) {
	s := serve(t)
	ctx, interrupt := context.WithCancel(t.Context())
	defer interrupt()
	var held atomic.Int64 // requests; once each worker has one, all other replies are counted
	interrupted := make(chan struct{})
	number := regexp.MustCompile(`"Book (\d+)"`)
	s.fault(func(_ int64, w http.ResponseWriter, r *http.Request, next http.Handler) {
		body, _ := io.ReadAll(r.Body)
		if n, _ := strconv.Atoi(string(number.FindSubmatch(body)[1])); n < 100 && n != 30 {
			w.WriteHeader(http.StatusCreated)
			return
		}
		if held.Add(1) == DefaultConcurrency {
			interrupt()
			close(interrupted)
		}
		<-interrupted
		w.WriteHeader(http.StatusServiceUnavailable)
	})
	p, _, err := s.runWith(ctx, Options{}, &fakeClock{}, books(5000))
	if !errors.Is(err, context.Canceled) {
		t.Fatal(err)
	}
	if p.Complete != 30 || p.Created != 99 {
		t.Errorf("%+v; the first 30 are complete, and 69 after them", p)
	}
}

func TestWrongURLIsReportedOnce(t *testing.T) {
	s := serve(t)
	for path, want := range map[string]errs.Kind{"/nowhere": errs.NotFound, "/closed": errs.NotFound} {
		_, failures, err := s.run(Options{URL: strings.TrimSuffix(s.url, "/books") + path}, books(50))
		s.wantKind(err, want)
		if len(failures) > 0 {
			t.Errorf("%s: the failure is reported for each object: %q", path, failures)
		}
	}
	_, _, err := s.run(Options{URL: "http://127.0.0.1:1/books"}, books(50))
	s.wantKind(err, errs.Unavailable)
	if !strings.Contains(err.Error(), "--url") {
		t.Error(err)
	}
}

func TestRedirectsAreNotFollowed(t *testing.T) {
	s := serve(t)
	s.fault(func(_ int64, w http.ResponseWriter, r *http.Request, _ http.Handler) {
		http.Redirect(w, r, "https://elsewhere.example/books", http.StatusMovedPermanently)
	})
	_, _, err := s.run(Options{}, books(1))
	s.wantKind(err, errs.NotFound)
	if !strings.Contains(err.Error(), "https://elsewhere.example/books") {
		t.Error(err)
	}
}

func TestDryRun(t *testing.T) {
	s := serve(t)
	o := Options{DryRun: true, Schema: s.schema, MaxSize: 1000, Concurrency: 1}
	p, failures, err := s.run(o, strings.Join([]string{
		`{"title":"good"}`, `{"uuid":"x","title":1}`, `{"uuid":""}`,
		`{"uuid":"y","a":"` + strings.Repeat("x", 1000) + `"}`, `{`, `{}`,
	}, "\n"))
	s.must(err)
	s.wantProgress(p, Progress{Read: 6, Checked: 2, Failed: 4, Complete: 6})
	if !strings.HasPrefix(failures[0], "2:1: x: ") || !strings.Contains(failures[0], "/title: ") ||
		!strings.Contains(failures[2], "at most 1000") {
		t.Errorf("failures: %q", failures)
	}
	if n := s.requests.Load(); n > 0 {
		t.Errorf("%d requests were sent", n)
	}
}

// generated is n times the same text, without holding it.
type generated struct {
	text string
	n    int
	rest string
	seen func()
}

func (g *generated) Read(p []byte) (int, error) {
	if g.rest == "" {
		if g.n == 0 {
			return 0, io.EOF
		}
		g.n--
		g.rest = g.text
		g.seen()
	}
	n := copy(p, g.rest)
	g.rest = g.rest[n:]
	return n, nil
}

// TestMemoryDoesNotGrowWithTheInput measures the heap whenever every object that was
// read has been handled: while others are in flight, the heap depends on the scheduler.
func TestMemoryDoesNotGrowWithTheInput(t *testing.T) {
	const size, most = 8 << 20, 3 << 20
	text := `{"title":"` + strings.Repeat("x", 3<<10) + `"},` + "\n"
	for name, input := range map[string]func(io.Reader) io.Reader{
		"lines": func(r io.Reader) io.Reader { return r },
		"array": func(r io.Reader) io.Reader {
			return io.MultiReader(strings.NewReader("["), r, strings.NewReader("{}]"))
		},
	} {
		t.Run(name, func(t *testing.T) {
			piece := text
			if name == "lines" {
				piece = strings.Replace(text, "},", "}", 1)
			}
			runtime.GC()
			var before, now runtime.MemStats
			runtime.ReadMemStats(&before)
			var peak uint64
			n := size / len(piece)
			g := &generated{text: piece, n: n}
			i := New(Options{DryRun: true})
			g.seen = func() {
				if g.n%256 == 0 {
					err := kit.Await(time.Minute, func() error {
						if p := i.Progress(); p.Checked != p.Read {
							return fmt.Errorf("%d of %d objects that were read are checked", p.Checked, p.Read)
						}
						return nil
					})
					if err != nil {
						t.Error(err)
					}
					runtime.GC()
					runtime.ReadMemStats(&now)
					peak = max(peak, now.HeapAlloc-min(before.HeapAlloc, now.HeapAlloc))
				}
			}
			if err := i.Run(t.Context(), input(g)); err != nil {
				t.Fatal(err)
			}
			if p := i.Progress(); p.Failed > 0 || p.Checked < int64(n) {
				t.Fatalf("%+v", p)
			}
			if peak > most {
				t.Errorf("%d MiB in use while %d MiB were read", peak>>20, size>>20)
			}
		})
	}
}

// Of the conflicts, one says that the object is there, one to try again, and one that its values are another's.
func TestConflictsAreToldApart(t *testing.T) {
	for kind, want := range map[string][2]bool{"exists": {true, false}, "conflict": {false, true},
		"taken": {false, false}} {
		r := &reply{status: http.StatusConflict, kind: "urn:belfry:problem:" + kind}
		if got := [2]bool{r.exists(), r.retryable()}; got != want {
			t.Errorf("%s: exists, retryable: %v", kind, got)
		}
	}
}
