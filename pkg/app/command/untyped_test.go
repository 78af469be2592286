package command

import (
	"bytes"
	"context"
	"io"
	"log/slog"
	"net/http/httptest"
	"net/url"
	"reflect"
	"runtime"
	"slices"
	"strings"
	"testing"

	"belfry/config"
	"belfry/pkg/api/console"
	"belfry/pkg/app/hold"
	"belfry/pkg/app/plan"
	"belfry/pkg/store"
	"belfry/test/model"
)

// untyped is an operation whose Run returns a result without data, after such a report.
type untyped struct {
	*testing.T
	Untyped
	ran int
}

func newUntyped(t *testing.T, of *Untyped) *untyped {
	f := &untyped{T: t, Untyped: *of}
	f.run = func(_ context.Context, _ *Place, in any, report func(any)) (any, error) {
		f.isA("the request", in, f.request)
		f.ran++
		report(fresh(f.progress))
		return f.out(), nil
	}
	return f
}

// out is a result without data: what it points to is there.
func (f *untyped) out() any {
	v := reflect.New(f.result)
	switch f.result.Kind() {
	case reflect.Slice:
		v.Elem().Set(reflect.MakeSlice(f.result, 0, 0)) // nil is no answer
	case reflect.Struct:
		for i := range f.result.NumField() {
			if to := v.Elem().Field(i); to.Kind() == reflect.Pointer && to.CanSet() {
				to.Set(reflect.New(to.Type().Elem()))
			}
		}
	}
	return v.Interface()
}

// isA checks that a value is a pointer to a type.
func (f *untyped) isA(what string, v any, of reflect.Type) {
	f.Helper()
	if got := reflect.TypeOf(v); got != reflect.PointerTo(of) {
		f.Errorf("%s is a %v, not a pointer to %v", what, got, of)
	}
}

// fits calls a function, which may fail for lack of a place or data, but not because of a type.
func (f *untyped) fits(what string, call func()) {
	f.Helper()
	defer func() {
		if wrong, ok := recover().(*runtime.TypeAssertionError); ok {
			f.Errorf("%s: %v", what, wrong)
		}
	}()
	call()
}

// All functions of operations get the types that they have, wherever operations are done without them.
func TestEveryOperationIsDoneWithoutItsTypes(t *testing.T) {
	t.Parallel()
	for _, of := range Operations {
		t.Run(of.name, func(t *testing.T) {
			t.Parallel()
			f := newUntyped(t, of)
			f.functions(of)
			f.lines()
			f.control()
			f.inConsole()
		})
	}
}

func (f *untyped) functions(of *Untyped) {
	in, out := func() any { return fresh(f.request) }, f.out()
	f.fits("Run", func() { _, _ = of.run(f.Context(), &Place{}, in(), func(any) {}) })
	c := &config.Config{Stores: map[string]*config.Store{}}
	for name, call := range map[string]func(){
		"Reads":   func() { f.reads(in()) },
		"Creates": func() { f.creates(in()) },
		"Check":   func() { _ = f.check(c, in()) },
		"Doing":   func() { f.doing(in()) },
		"Input":   func() { f.input(in()) },
		"Output":  func() { f.output(in()) },
		"Text":    func() { _ = f.text(io.Discard, in(), out) },
		"Show": func() {
			report, end := f.show(Streams{Out: io.Discard, Err: io.Discard}, in())
			report(fresh(f.progress))
			end(nil)
		},
		"Done":  func() { f.console.done(out) },
		"Stays": func() { f.console.stays(in()) },
		"Short": func() { f.isA("a short result", f.console.short(out), f.result) },
	} {
		f.fits(name, call)
	}
}

// lines are the commands, with their own flags, or with the fields of the request.
func (f *untyped) lines() {
	var all []lineFlags
	for _, c := range f.commands {
		all = append(all, c.typed(c.flags))
	}
	if f.help != "" {
		for f.prints = range PrintText + 1 {
			all = append(all, f.plainFlags())
		}
	}
	if n := len(f.Lines()); n == 0 && !slices.Contains([]string{"import", "doctor"}, f.name) {
		f.Error("it has no command")
	}
	s := Streams{Out: io.Discard, Err: io.Discard,
		Password: func(context.Context) (string, error) { return "", nil },
		Confirm:  func(context.Context, string) error { return nil }}
	for _, flags := range all {
		f.fits("Request", func() {
			in, _ := flags.request(f.Context(), s)
			f.isA("the request of flags", in, f.request)
		})
		f.fits("Print", func() { _ = flags.print(s, f.out()) })
		f.fits("Show", func() {
			report, end := f.shown(flags, s, fresh(f.request))
			report(fresh(f.progress))
			end(nil)
		})
	}
}

// control is a control request and its reply.
func (f *untyped) control() {
	if f.Route() == "" {
		return
	}
	server := httptest.NewServer(f.Handle(slog.New(slog.DiscardHandler),
		func(bool) (*Place, func()) { return &Place{}, func() {} }))
	defer server.Close()
	in, before, reports := fresh(f.request), f.ran, 0
	if f.input != nil {
		*f.input(in) = strings.NewReader("")
	}
	if f.output != nil {
		*f.output(in) = io.Discard
	}
	out, err := f.ask(f.Context(), hold.Holder{Control: server.URL}, in, func(p any) {
		f.isA("the progress", p, f.progress)
		reports++
	})
	if f.isA("the answer", out, f.result); err != nil || f.ran != before+1 || reports != 1 && f.output == nil {
		f.Errorf("%d runs, %d reports, %v", f.ran-before, reports, err)
	}
}

// inConsole is a run of the console, which another process shows as well.
func (f *untyped) inConsole() {
	if f.console == nil {
		return
	}
	at := &Place{Plan: &plan.Plan{Config: &config.Config{}}}
	if f.console.done != nil {
		_, err := f.Job(&Host{Serving: func(bool) (*Place, func()) { return at, func() {} }}).Do(f.Context(), url.Values{})
		if err != nil {
			f.Error(err)
		}
		return
	}
	records, err := store.Open(f.Context(), model.NewMemory(), store.Options{Name: "Tokens"})
	if err != nil {
		f.Fatal(err)
	}
	var log bytes.Buffer
	one, other := testRuns(&f.Untyped, f.Context(), &log, records, at), testRuns(&f.Untyped, f.Context(), &log, records, at)
	if err := one.Start(f.Context(), "ada", "r-17", url.Values{}); err != nil {
		f.Fatal(err)
	}
	one.running.Wait()
	for _, r := range []*consoleRuns{one, other} {
		last, err := r.Last(f.Context())
		if err != nil || last.Err != nil {
			f.Fatal(last, err)
		}
		f.shows(last)
	}
	if log.Len() > 0 {
		f.Errorf("logged: %s", &log)
	}
}

// shows checks what pages get of a run.
func (f *untyped) shows(r *console.Run) {
	f.Helper()
	if in, p := reflect.TypeOf(r.In), reflect.TypeOf(r.Progress); in != f.request || p != f.progress {
		f.Errorf("the request is a %v, the progress a %v", in, p)
	}
	f.isA("the result", r.Out, f.result)
	f.fits("Text", func() { _, _ = r.Text() })
}
