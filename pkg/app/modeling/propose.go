package modeling

import (
	"cmp"
	"context"
	"errors"
	"os"
	"slices"
	"strings"

	"belfry/config"
	"belfry/config/edit"
	"belfry/pkg/api/console"
	"belfry/pkg/app/plan"
	"belfry/pkg/errs"
)

// written is a file that a change writes.
type written struct {
	path          string
	before, after []byte
	existed       bool
	removed       bool
	secret        bool
}

// proposal is a change that was validated.
type proposal struct {
	console.ModelProposal
	files []written // in the order in which they are written: the configuration is the last
	text  []byte    // of the configuration
}

// Propose implements console.ModelEditor.
func (e *Editor) Propose(ctx context.Context, d *console.ModelDraft) (*console.ModelProposal, error) {
	e.changing.Lock()
	defer e.changing.Unlock()
	p, err := e.propose(ctx, d, false)
	if err != nil {
		return nil, err
	}
	return &p.ModelProposal, nil
}

// propose validates a draft; complete: with its secrets.
func (e *Editor) propose(ctx context.Context, d *console.ModelDraft, complete bool) (*proposal, error) {
	c, err := e.read()
	switch {
	case err != nil:
		return nil, err
	case d.Base != c.base:
		return nil, errs.New(errs.Mismatch, "the configuration has changed since you opened it: open the page again")
	}
	x := &draft{current: c, draft: d}
	defer x.discard()
	if err := x.translate(complete); err != nil {
		return nil, err
	}
	p := &proposal{files: x.files}
	p.Base, p.ReadOnly = c.base, e.readOnly(ctx, c)
	text, err := edit.Apply(c.text, x.changes...)
	if err != nil {
		return nil, errs.New(errs.Invalid, "%v", err)
	}
	if string(text) != string(c.text) {
		p.files = append(p.files, written{path: c.path, before: c.text, after: text, existed: true})
	}
	if len(p.files) == 0 {
		return nil, errs.New(errs.Invalid, "nothing changes")
	}
	if err := e.judge(ctx, p, x, text, checkPaths); err != nil {
		return nil, err
	}
	return p, nil
}

// judge validates the configuration that a change makes, and completes the proposal.
func (e *Editor) judge(ctx context.Context, p *proposal, x *draft, text []byte, check pathCheck) error {
	now, compiled, problems, err := x.compile(e, text, check)
	if err != nil {
		return err
	}
	p.text, p.Problems = text, x.placed(problems)
	p.Keys = x.keys(now)
	if len(p.Problems) == 0 && compiled != nil {
		served := e.Served.Now()
		known := plan.Warnings(x.parsed)
		for _, w := range plan.Warnings(now) {
			if !slices.Contains(known, w) {
				p.Warnings = append(p.Warnings, x.readable(w))
			}
		}
		p.Effects = e.effects(ctx, served, compiled)
	}
	p.Files, err = x.shownFiles(p.files, now)
	return err
}

// pathCheck refuses the paths of a configuration.
type pathCheck func(before, now *config.Config, own []string) error

// draft is a draft that is being validated. Schemas and secrets that do not exist yet are in a folder of their own,
// under the names that the configuration is validated with.
type draft struct {
	*current
	draft    *console.ModelDraft
	changes  []edit.Change
	files    []written       // schemas and secrets
	folder   string          // "" until it is needed
	stand    []edit.Change   // the names of the files in the folder, in place of those that are written
	names    []string        // pairs for readable: a name in the folder, and the one that is written
	own      []string        // the files that the change writes, or has in the folder
	unknown  map[string]bool // keys of secrets that are not known yet
	replaced []string        // keys of schemas that have another content
}

func (x *draft) discard() {
	if x.folder != "" {
		_ = os.RemoveAll(x.folder)
	}
}

// readable returns a message with the names of files as they will be.
func (x *draft) readable(text string) string { return strings.NewReplacer(x.names...).Replace(text) }

// translate makes changes of the text of the draft's changes.
func (x *draft) translate(complete bool) error {
	for _, change := range x.draft.Changes {
		if err := x.admit(change.Path); err != nil {
			return err
		}
		before, had := x.values.At(change.Path...)
		switch {
		case change.Secret:
			if err := x.addSecret(change.Path, complete); err != nil {
				return err
			}
			continue
		case change.Value == nil && !had:
			continue
		case change.Value == nil:
			x.changes = append(x.changes, edit.Change{Path: change.Path})
			continue
		}
		v, err := typed(change.Value, before)
		if err != nil {
			return errs.Wrap(err, errs.KindOf(err), "%s: %s", edit.Key(change.Path), errs.Messages(err))
		}
		v = x.withHidden(change.Path, v)
		if err := checkLeaves(change.Path, v, before); err != nil {
			return err
		}
		x.changes = append(x.changes, edit.Change{Path: change.Path, Value: v})
	}
	removed, err := x.addSchemas()
	if err != nil {
		return err
	}
	return x.checkRemoval(x.draft, x.changes, removed)
}

// withHidden returns a value with what the file has in it and does not show.
func (x *draft) withHidden(path []string, v edit.Value) edit.Value {
	m, ok := v.(edit.Map)
	if !ok {
		return v
	}
	for _, keys := range config.HiddenKeys(x.parsed) {
		if len(keys) <= len(path) || !slices.Equal(keys[:len(path)], path) {
			continue
		}
		if _, sent := m.At(keys[len(path):]...); sent {
			continue
		}
		// The list or map of the value must still be there: otherwise the admin has removed all of it.
		if _, stays := m.At(keys[len(path) : len(keys)-1]...); stays || len(keys) == len(path)+1 {
			hidden, _ := x.values.At(keys...)
			m = m.With(keys[len(path):], hidden)
		}
	}
	return m
}

// checkLeaves refuses paths, and secrets that would be in the configuration itself.
func checkLeaves(keys []string, v, before edit.Value) error {
	switch v := v.(type) {
	case edit.Map:
		was, _ := before.(edit.Map)
		for _, each := range v {
			old, _ := was.Get(each.Key)
			if err := checkLeaves(append(slices.Clone(keys), each.Key), each.Value, old); err != nil {
				return err
			}
		}
		return nil
	case []edit.Value:
		was, _ := before.([]edit.Value)
		for i, item := range v {
			var old edit.Value
			if i < len(was) {
				old = was[i]
			}
			if err := checkLeaves(keys, item, old); err != nil {
				return err
			}
		}
		return nil
	}
	text, _ := edit.Text(v)
	if old, single := edit.Text(before); single && old == text {
		return nil
	}
	switch {
	case config.NamesPath(keys):
		return errs.New(errs.Denied,
			"%s names a file or a folder, which is changed only in the file of the configuration",
			edit.Key(keys))
	case keys[0] != "stores" && config.SecretKey(keys[len(keys)-1]):
		return errs.New(errs.Invalid, "%s is a secret, which is written to a file of its own", edit.Key(keys))
	}
	return nil
}

// compile validates the configuration as the change makes it. Problems are those of the configuration.
func (x *draft) compile(e *Editor, text []byte, check pathCheck) (*config.Config, *plan.Plan, config.Problems, error) {
	checked, err := edit.Apply(text, x.stand...)
	if err != nil {
		return nil, nil, nil, errs.New(errs.Invalid, "%v", err)
	}
	var problems config.Problems
	now, err := e.Parse(checked)
	if errors.As(err, &problems) {
		return nil, nil, problems, nil
	} else if err != nil {
		return nil, nil, nil, err
	}
	if err := check(x.parsed, now, x.own); err != nil {
		return nil, nil, nil, err
	}
	compiled, err := plan.CompileFor(now, e.Roles)
	if errors.As(err, &problems) {
		return now, nil, problems, nil
	} else if err != nil {
		return nil, nil, nil, err
	}
	return now, compiled, config.Refusals(e.Served.Now().Config, now), nil
}

// placed are problems as the admin sees them. Those of secrets that are not known yet are left out.
func (x *draft) placed(problems config.Problems) (all []console.ModelProblem) {
	for _, p := range problems {
		if !x.unknown[p.Key] {
			all = append(all, console.ModelProblem{Key: p.Key, Line: p.Line, Message: x.readable(p.Message)})
		}
	}
	return all
}

// keys returns the keys that differ, with those of schemas whose content differs. now is nil if it can't be known.
func (x *draft) keys(now *config.Config) []string {
	all := x.replaced
	if now != nil {
		all = append(config.Changed(x.parsed, now), all...)
	}
	slices.Sort(all)
	return slices.Compact(all)
}

// shownFiles returns the files of a change without secrets.
func (x *draft) shownFiles(files []written, now *config.Config) (all []console.ModelFile, err error) {
	now = cmp.Or(now, x.parsed)
	for _, f := range files {
		shown := console.ModelFile{Name: f.path, New: !f.existed, Secret: f.secret}
		switch {
		case f.secret:
		case f.path == x.path:
			if shown.Before, err = masked(f.before, x.parsed, now); err == nil {
				shown.After, err = masked(f.after, now, x.parsed)
			}
		default:
			shown.Before, shown.After = string(f.before), string(f.after)
		}
		if err != nil {
			return nil, err
		}
		all = append(all, shown)
	}
	return all, nil
}
