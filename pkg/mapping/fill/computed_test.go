package fill

import (
	"strings"
	"testing"

	"belfry/pkg/object"
	"belfry/pkg/store"
	"belfry/pkg/store/policy"
	"belfry/test/kit"
)

// computing opens a process whose authors have computed fields.
func (i *installation) computing(expression string) *process {
	i.Helper()
	computed, problems := policy.CompileComputed(map[string]string{"n": expression}, policy.Known{})
	if len(problems) > 0 {
		i.Fatal(problems)
	}
	p := i.process(nil)
	authors := p.set.Store("Authors").WithOptions(func(o *store.Options) { o.Computed = computed })
	p.set = store.NewSet([]*store.Store{p.set.Store("Books"), authors}, nil)
	return p
}

// Objects that there were before an expression are computed by it, and by the next one; one that gives the same writes
// nothing.
func TestComputedFieldsOfExistingObjectsAreFilled(t *testing.T) {
	i := newInstallation(t)
	before := i.process(nil)
	save(i, before.set.Store("Authors"), "a", `{"name":"a"}`)
	save(i, before.set.Store("Authors"), "b", `{}`)
	for _, c := range []struct {
		expression, want string
		writes           int64
		begins           bool
	}{
		{"name + '1'", `"a1"`, 1, true},
		{"name + '2'", `"a2"`, 1, true},
		{"name + '2'", `"a2"`, 0, false},
		{"name+'2'", `"a2"`, 0, true},
	} {
		p := i.computing(c.expression).start()
		p.fillAndEnd()
		p.right()
		o, err := p.set.Store("Authors").Get(t.Context(), "a")
		i.must(err)
		if got := string(object.Field(o.Body, "n")); got != c.want || p.hooks.writes.Load() != c.writes {
			t.Errorf("%s: got %s with %d writes, want %s with %d", c.expression, got, p.hooks.writes.Load(), c.want,
				c.writes)
		}
		if begins := strings.Contains(p.logged.String(),
			"computed properties are new or have changed"); begins != c.begins {
			t.Errorf("%s: begins %v, want %v\n%s", c.expression, begins, c.begins, p.logged)
		}
	}
}

// As long as a process with another expression runs, nothing counts as filled: it may write objects.
func TestComputedFieldsWaitForProcessesWithOthers(t *testing.T) {
	i := newInstallation(t)
	save(i, i.process(nil).set.Store("Authors"), "a", `{"name":"a"}`)
	c := &clock{}
	front := i.computing("name + '1'").start(c.shared, func(o *Options) { o.Fills = false })
	worker := i.computing("name + '2'").start(c.shared)
	kit.WaitFor(worker, "it waits", func() bool {
		return strings.Contains(worker.logged.String(),
			"a process with another configuration runs: the computed properties of a store are filled once")
	})
	front.filler.Close()
	c.gone(worker)
	worker.right()
}
