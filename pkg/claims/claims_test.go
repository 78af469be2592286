package claims

import (
	"log/slog"
	"strings"
	"testing"
	"time"

	"belfry/pkg/errs"
	"belfry/pkg/store"
	"belfry/pkg/store/driver"
	"belfry/pkg/store/object"
	"belfry/test/kit"
	"belfry/test/model"
)

// process is a belfry over stores that others may use too.
type process struct {
	*testing.T
	books  *store.Store
	opts   Options
	logged *kit.Tail
}

func newProcess(t *testing.T, backend driver.Backend, unique ...[]string) *process {
	t.Helper()
	p := &process{T: t, logged: &kit.Tail{}}
	books, err := store.Open(t.Context(), backend, store.Options{Name: "Books", Unique: unique, FenceAfter: -1})
	p.must(err)
	state, err := store.Open(t.Context(), backend, store.Options{Name: "State", NoEvents: true})
	p.must(err)
	p.books = books
	p.opts = Options{
		Set: store.NewSet([]*store.Store{books}, nil), State: state, Logger: slog.New(slog.NewTextHandler(p.logged, nil)), Alone: true,
		interval: time.Millisecond,
	}
	return p
}

func (p *process) must(err error) {
	p.Helper()
	if err != nil {
		p.Fatal(err)
	}
}

func (p *process) start() *Holder {
	p.Helper()
	h, err := Start(p.Context(), p.opts)
	p.must(err)
	p.Cleanup(h.Close)
	return h
}

func (p *process) save(uuid, slug string) error {
	p.Helper()
	_, err := p.books.Save(p.Context(), object.Object{"slug": object.AppendString(nil, slug)}, uuid)
	return err
}

func (p *process) trusts(want bool) {
	p.Helper()
	kit.WaitFor(p.T, "the claims to be trusted, or not", func() bool { return p.books.TrustsClaims() == want })
}

func TestAnEmptyStoreTrustsItsClaimsAtOnce(t *testing.T) {
	p := newProcess(t, model.NewMemory(), []string{"slug"})
	p.start()
	if !p.books.TrustsClaims() {
		t.Error("the first object is refused")
	}
}

func TestValuesOfObjectsThatThereWereAreClaimed(t *testing.T) {
	backend := model.NewMemory()
	before := newProcess(t, backend)
	for uuid, slug := range map[string]string{"a": "x", "b": "x", "c": "y"} {
		before.must(before.save(uuid, slug))
	}
	p := newProcess(t, backend, []string{"slug"})
	p.start()
	p.trusts(true)
	for _, slug := range []string{"x", "y"} {
		if err := p.save("new", slug); errs.KindOf(err) != errs.Taken {
			t.Errorf("%s: %v", slug, err)
		}
	}
	p.must(p.save("new", "z"))
	if text := p.logged.String(); !strings.Contains(text, "uuid=a") || !strings.Contains(text, "other=b") {
		if !strings.Contains(text, "uuid=b") || !strings.Contains(text, "other=a") {
			t.Errorf("the log does not name the duplicates: %s", text)
		}
	}
}

// While the constraint was not configured, values were given without claims.
func TestClaimsAreMadeAgainAfterTheConstraintWasAway(t *testing.T) {
	backend := model.NewMemory()
	first := newProcess(t, backend, []string{"slug"})
	h := first.start()
	first.must(first.save("a", "x"))
	h.Close()

	without := newProcess(t, backend)
	h = without.start()
	without.must(without.save("b", "y"))
	h.Close()

	again := newProcess(t, backend, []string{"slug"})
	again.must(Load(t.Context(), again.opts))
	if again.books.TrustsClaims() {
		t.Error("claims are trusted although there were writes without")
	}
	again.start()
	again.trusts(true)
	if err := again.save("c", "y"); errs.KindOf(err) != errs.Taken {
		t.Error(err)
	}
}

// A process with another configuration that runs is noticed, and no value is given meanwhile.
func TestClaimsAreNotTrustedWhileAProcessHasAnotherConfiguration(t *testing.T) {
	backend := model.NewMemory()
	p := newProcess(t, backend, []string{"slug"})
	p.opts.Alone, p.opts.quiet = false, time.Hour
	p.start()
	p.trusts(true)
	other := newProcess(t, backend)
	other.opts.Alone, other.opts.State = false, p.opts.State // what was opened first is no more that of the backend
	h := other.start()
	p.trusts(false)
	if err := p.save("a", "x"); errs.KindOf(err) != errs.Unavailable {
		t.Error(err)
	}
	h.Close()
}

func TestCopiedRecordsBeginAnotherGeneration(t *testing.T) {
	backend := model.NewMemory()
	p := newProcess(t, backend, []string{"slug"})
	h := p.start()
	p.must(p.save("a", "x"))
	h.Close()
	p.must(p.books.RenewClaims(t.Context()))

	again := newProcess(t, backend, []string{"slug"})
	again.must(Load(t.Context(), again.opts))
	if again.books.TrustsClaims() {
		t.Error("the claims of the generation before are trusted")
	}
}
