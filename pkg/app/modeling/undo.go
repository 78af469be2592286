package modeling

import (
	"context"
	"path/filepath"

	"belfry/config"
	"belfry/config/edit"
	"belfry/internal/smallfile"
	"belfry/pkg/api/console"
	"belfry/pkg/errs"
)

// ProposeUndo implements console.ModelEditor.
func (e *Editor) ProposeUndo(ctx context.Context, number int) (*console.ModelProposal, error) {
	e.changing.Lock()
	defer e.changing.Unlock()
	p, err := e.proposeUndo(ctx, number)
	if err != nil {
		return nil, err
	}
	return &p.ModelProposal, nil
}

// Undo implements console.ModelEditor.
func (e *Editor) Undo(
	ctx context.Context, number int, base string, by console.ModelActor,
) (*console.ModelVersion, error) {
	e.changing.Lock()
	defer e.changing.Unlock()
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), applyTime)
	defer cancel()
	p, err := e.proposeUndo(ctx, number)
	switch {
	case err != nil:
		return nil, err
	case p.Base != base:
		return nil, errs.New(errs.Mismatch, "the configuration has changed since you opened it: open the page again")
	}
	return e.write(ctx, p, &entry{By: by, Undoes: number})
}

// proposeUndo validates the reverse of a change. The files are from the journal, so only their validity is checked.
func (e *Editor) proposeUndo(ctx context.Context, number int) (*proposal, error) {
	c, err := e.read()
	if err != nil {
		return nil, err
	}
	made, err := journalIn(c.parsed.Data).get(number)
	switch {
	case err != nil:
		return nil, err
	case made.Pending:
		return nil, errs.New(errs.NotFound, "change %d was not completed", number)
	case !made.undoable():
		return nil, errs.New(errs.Conflict, "change %d can't be undone: its files have been changed since", number)
	}
	x := &draft{current: c, draft: &console.ModelDraft{}}
	defer x.discard()
	p := &proposal{}
	p.Base, p.ReadOnly = c.base, e.readOnly(ctx, c)
	text := c.text
	for _, f := range made.Files {
		switch now, err := smallfile.Read(f.Path, maxEntry); {
		case f.Secret: // the change may be made again
		case f.After != "" && err != nil:
			return nil, errs.Wrap(err, errs.Unavailable, "%s can't be read", f.Path)
		default:
			p.files = append(p.files, written{path: f.Path, before: now, existed: err == nil, after: f.Before,
				removed: !f.Existed})
		}
		if f.Path == c.path {
			text = f.Before
		}
	}
	if err := x.stageFiles(p.files, text); err != nil {
		return nil, err
	}
	return p, e.judge(ctx, p, x, text, func(_, _ *config.Config, _ []string) error { return nil })
}

// stageFiles has the configuration validated with the schemas that an undo writes.
func (x *draft) stageFiles(files []written, text []byte) error {
	values, err := edit.Read(text)
	if err != nil {
		return errs.Wrap(err, errs.Unavailable, "the configuration of before can't be read")
	}
	stores, _ := values.At("stores")
	all, _ := stores.(edit.Map)
	for _, f := range files {
		if f.path == x.path || f.removed {
			continue
		}
		staged, err := x.stage(filepath.Base(f.path), f.after)
		if err != nil {
			return err
		}
		x.names = append(x.names, staged, f.path)
		for _, s := range all {
			settings, _ := s.Value.(edit.Map)
			schema, _ := settings.Get("schema")
			if name, single := edit.Text(schema); single && x.absolute(unescaped(name)) == f.path {
				key := []string{"stores", s.Key, "schema"}
				x.stand = append(x.stand, edit.Change{Path: key, Value: edit.Literal(staged)})
				x.replaced = append(x.replaced, edit.Key(key))
			}
		}
	}
	return nil
}

// absolute returns a path that the configuration names.
func (c *current) absolute(path string) string {
	if filepath.IsAbs(path) {
		return path
	}
	return filepath.Join(filepath.Dir(c.path), path)
}
