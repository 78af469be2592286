package search

import (
	"encoding/json"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/blevesearch/bleve/v2"

	"belfry/pkg/errs"
	"belfry/pkg/event"
	"belfry/pkg/object"
	"belfry/pkg/store"
)

// TestAnIndexOfAnotherFormIsBuiltAgain: what another version made of words is not searched by this one's; of the
// version before there is testdata.
func TestAnIndexOfAnotherFormIsBuiltAgain(t *testing.T) {
	folder, s := filepath.Join(t.TempDir(), "index"), Settings{Fields: []string{"title"}}
	x, err := newIndex(folder, s)
	if err != nil {
		t.Fatal(err)
	}
	storeState(t, x.bleve, nil) // else what a new index consists of may not be on disk
	if err := x.bleve.Close(); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		form int
		same bool
	}{{form, true}, {form + 1, false}, {0, false}} {
		data, err := json.Marshal(state{Form: c.form, Settings: s})
		if err != nil {
			t.Fatal(err)
		}
		before, err := bleve.Open(folder)
		if err != nil {
			t.Fatal(err)
		}
		storeState(t, before, data)
		if err := before.Close(); err != nil {
			t.Fatal(err)
		}
		opened, ok := openIndex(folder, s)
		if ok != c.same {
			t.Errorf("an index of the form %d is opened: %v", c.form, ok)
		}
		if ok {
			if err := opened.bleve.Close(); err != nil {
				t.Fatal(err)
			}
		}
	}
}

// storeState writes the state of an index, and waits until it is on disk.
func storeState(t *testing.T, index bleve.Index, data []byte) {
	t.Helper()
	storeInternal(t, index, stateKey, data)
}

func storeInternal(t *testing.T, index bleve.Index, key, data []byte) {
	t.Helper()
	onDisk, b := make(chan struct{}), index.NewBatch()
	b.SetInternal(key, data)
	b.SetPersistedCallback(func(error) { close(onDisk) })
	if err := index.Batch(b); err != nil {
		t.Fatal(err)
	}
	<-onDisk
}

// TestWhichIndexIsOpened: the one of this form and these settings, else one that can answer until there is; others are
// removed.
func TestWhichIndexIsOpened(t *testing.T) {
	now := Settings{Fields: []string{"title", "text"}, Language: "en", Backend: "one", Rule: "rule"}
	with := func(change func(s *Settings)) state {
		s := state{Form: form, Settings: now}
		s.Settings.Fields = slices.Clone(now.Fields)
		change(&s.Settings)
		return s
	}
	same := with(func(*Settings) {})
	former := state{Form: formerForm, Settings: now}
	language := with(func(s *Settings) { s.Language = "de" })
	more := with(func(s *Settings) { s.Fields = append(s.Fields, "more") })
	less := with(func(s *Settings) { s.Fields = s.Fields[:1] })
	backend := with(func(s *Settings) { s.Backend = "two" })
	rule := with(func(s *Settings) { s.Rule = "other" })
	for name, c := range map[string]struct {
		states []state // of the folders 1, 2, ...; the zero value: a build that did not end
		opens  int
	}{
		"none":                         {nil, 0},
		"this one":                     {[]state{same}, 1},
		"a build did not end":          {[]state{same, {}}, 1},
		"a former one":                 {[]state{former}, 1},
		"a former one, and a build":    {[]state{former, {}}, 1},
		"a former one, and this one":   {[]state{former, same}, 2},
		"this one, and a former one":   {[]state{same, former}, 1},
		"two former ones, the last":    {[]state{former, language}, 2},
		"another language":             {[]state{language, {}, {}}, 1},
		"more fields":                  {[]state{more}, 1},
		"fewer fields":                 {[]state{less}, 0},
		"objects of another backend":   {[]state{backend}, 0},
		"the terms of another rule":    {[]state{rule}, 0},
		"a form of long ago":           {[]state{{Form: formerForm - 1, Settings: now}}, 0},
		"a form of a version to come":  {[]state{{Form: form + 1, Settings: now}}, 0},
		"a former one and this, in it": {[]state{language, same, former}, 2},
	} {
		t.Run(name, func(t *testing.T) {
			x := &storeIndex{folder: t.TempDir(), log: slog.New(slog.DiscardHandler)}
			x.of.Store(&Indexed{Settings: now})
			for i, s := range c.states {
				made, err := newIndex(x.numbered(i+1), s.Settings)
				if err != nil {
					t.Fatal(err)
				}
				var data []byte
				if s.Form != 0 {
					if data, err = json.Marshal(s); err != nil {
						t.Fatal(err)
					}
				}
				storeState(t, made.bleve, data)
				if err := made.bleve.Close(); err != nil {
					t.Fatal(err)
				}
			}
			x.open()
			defer x.close()
			current, opened := x.current.Load(), 0
			for i := range c.states {
				if current != nil && current.folder == x.numbered(i+1) {
					opened = i + 1
				}
			}
			if opened != c.opens {
				t.Errorf("opened %d, expected %d", opened, c.opens)
			}
			if current != nil && x.outdated() != !reflect.DeepEqual(c.states[opened-1], same) {
				t.Errorf("another one is built: %v", x.outdated())
			}
			var left []int
			if c.opens > 0 {
				left = []int{c.opens}
			}
			if got := x.numbers(); !slices.Equal(got, left) {
				t.Errorf("the folders %v are left", got)
			}
		})
	}
}

// TestWhichBuildIsContinued: the last one of this form and these settings; others are removed, and it is too, once
// nobody needs it.
func TestWhichBuildIsContinued(t *testing.T) {
	now := Settings{Fields: []string{"title"}}
	this := unfinished{Form: form, Settings: now}
	former, other := unfinished{Form: formerForm, Settings: now},
		unfinished{Form: form, Settings: Settings{Fields: []string{"text"}}}
	for name, c := range map[string]struct {
		states []any // of the folders 1, 2, ...: a state, an unfinished, or nil
		left   []int
		of     int // the folder of the build that is continued
	}{
		"a build":                       {[]any{this}, []int{1}, 1},
		"a build without a place":       {[]any{nil}, nil, 0},
		"a build of the version before": {[]any{former}, nil, 0},
		"a build of other settings":     {[]any{other}, nil, 0},
		"two builds":                    {[]any{this, this}, []int{2}, 2},
		"a build before others":         {[]any{this, other, nil}, []int{1}, 1},
		"an index and a build":          {[]any{state{Form: form, Settings: now}, this}, []int{1, 2}, 2},
	} {
		t.Run(name, func(t *testing.T) {
			x := &storeIndex{folder: t.TempDir(), log: slog.New(slog.DiscardHandler)}
			x.of.Store(&Indexed{Settings: now})
			for i, s := range c.states {
				made, err := newIndex(x.numbered(i+1), now)
				if err != nil {
					t.Fatal(err)
				}
				storeAny(t, made.bleve, s)
				if err := made.bleve.Close(); err != nil {
					t.Fatal(err)
				}
			}
			x.open()
			defer x.close()
			want := ""
			if c.of > 0 {
				want = x.numbered(c.of)
			}
			if x.unfinished != want || !slices.Equal(x.numbers(), c.left) {
				t.Errorf("%q is continued, %v are left", x.unfinished, x.numbers())
			}
			x.forget()
			if slices.Contains(x.numbers(), c.of) || x.unfinished != "" {
				t.Errorf("%v are left after it is not needed", x.numbers())
			}
		})
	}
}

// storeAny writes a state, or how far a build is.
func storeAny(t *testing.T, index bleve.Index, of any) {
	t.Helper()
	data, err := json.Marshal(of)
	if err != nil {
		t.Fatal(err)
	}
	key := stateKey
	if _, ok := of.(unfinished); ok {
		key = buildKey
	}
	storeInternal(t, index, key, data)
}

func TestAnIndexIsLateBeyondALimit(t *testing.T) {
	began := time.Now()
	for _, c := range []struct {
		ends     []uint64 // every five seconds
		followed uint64
		behind   uint64
		late     bool
	}{
		{nil, 0, 0, false},
		{[]uint64{10}, 10, 0, false},
		{[]uint64{10}, 5, 5, false}, // it may have been there for a moment
		{[]uint64{10, 20}, 10, 10, false},
		{[]uint64{10, 20, 30}, 10, 20, false},
		{[]uint64{10, 20, 30}, 9, 21, true},
		{[]uint64{10, 20, 30, 40}, 19, 21, true},
		{[]uint64{10, 20, 30, 40}, 20, 20, false},
		{[]uint64{20_000}, 0, 20_000, true},
		{[]uint64{10, 20, 30, 5}, 4, 1, false}, // the log was replaced
	} {
		l := &sharedLog{}
		for i, end := range c.ends {
			l.note(end, began.Add(time.Duration(i)*5*time.Second))
		}
		if behind, late := l.behind(c.followed); behind != c.behind || late != c.late {
			t.Errorf("%v, %d: behind %d, late %v", c.ends, c.followed, behind, late)
		}
	}
}

// One caller has half of the slots, and keeps nobody else from searching; who waits in vain is told to come back.
func TestACallerHasSomeOfTheSlots(t *testing.T) {
	var c callers
	var ends []func()
	for range maxOwn {
		end, err := c.begin(t.Context(), "user ada")
		if err != nil {
			t.Fatal(err)
		}
		ends = append(ends, end)
	}
	if _, err := c.begin(t.Context(), "user ada"); errs.KindOf(err) != errs.Limited {
		t.Errorf("one more: %v", err)
	}
	for _, other := range []string{"address 192.0.2.1", ""} {
		end, err := c.begin(t.Context(), other)
		if err != nil {
			t.Errorf("%q: %v", other, err)
		}
		end()
	}
	for _, end := range ends {
		end()
	}
	if len(c.all) != 0 {
		t.Errorf("%d callers are left", len(c.all))
	}
	user := object.Object{}
	user.Set("uuid", "ada")
	for who, call := range map[string]store.Call{
		"":                          {},
		"user ada":                  {Client: true, User: user, Ctx: event.Ctx{Address: "192.0.2.1"}},
		"address 192.0.2.1":         {Client: true, Ctx: event.Ctx{Address: "192.0.2.1"}},
		"address 2001:db8:0:1::/64": {Client: true, Ctx: event.Ctx{Address: "2001:db8:0:1::7"}},
	} {
		if got := callerOf(call); got != who {
			t.Errorf("%q, want %q", got, who)
		}
	}
}

// TestAnIndexThatIsDamagedIsNotOpened: whatever of it is on disk, a start does not fail.
func TestAnIndexThatIsDamagedIsNotOpened(t *testing.T) {
	s := Settings{Fields: []string{"title"}}
	whole := filepath.Join(t.TempDir(), "index")
	x, err := newIndex(whole, s)
	if err != nil {
		t.Fatal(err)
	}
	b := x.batch()
	if err := b.batch.Index("one", map[string]any{fieldName(0): []any{"white whale"}}); err != nil {
		t.Fatal(err)
	}
	if err := b.write(t.Context(), &position{Sequence: 1}); err != nil {
		t.Fatal(err)
	}
	x.close()
	var files []string
	err = filepath.WalkDir(whole, func(path string, e fs.DirEntry, err error) error {
		if err == nil && !e.IsDir() {
			files = append(files, strings.TrimPrefix(path, whole))
		}
		return err
	})
	if err != nil || len(files) < 3 {
		t.Fatal(files, err)
	}
	for _, file := range files {
		damages := map[string]func(data []byte) []byte{
			"nothing":   func([]byte) []byte { return nil },
			"a half":    func(data []byte) []byte { return data[:len(data)/2] },
			"the start": func(data []byte) []byte { return data[:min(10, len(data))] },
			"no end":    func(data []byte) []byte { return data[:len(data)-1] },
			"zeros":     func(data []byte) []byte { return make([]byte, len(data)) },
			"a torn end": func(data []byte) []byte {
				for i := max(0, len(data)-64); i < len(data); i++ {
					data[i] = 0xff
				}
				return data
			},
		}
		for page := range 16 { // those of bbolt lack in turn, each of which means something else to it
			const size = 4096
			damages[fmt.Sprintf("%d pages", page)] = func(data []byte) []byte {
				return data[:min(len(data), page*size)]
			}
			damages[fmt.Sprintf("no page %d", page)] = func(data []byte) []byte {
				clear(data[min(len(data), page*size):min(len(data), (page+1)*size)])
				return data
			}
		}
		for name, damage := range damages {
			t.Run(filepath.Base(file)+" has "+name, func(t *testing.T) {
				folder := filepath.Join(t.TempDir(), "index")
				if err := os.CopyFS(folder, os.DirFS(whole)); err != nil {
					t.Fatal(err)
				}
				data, err := os.ReadFile(folder + file)
				if err == nil {
					err = os.WriteFile(folder+file, damage(data), 0o600)
				}
				if err != nil {
					t.Fatal(err)
				}
				if x, ok := openIndex(folder, s); ok {
					_ = caught(x.bleve.Close)
				}
			})
		}
	}
}
