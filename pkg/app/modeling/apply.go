package modeling

import (
	"context"
	"errors"
	"slices"
	"time"

	"belfry/config"
	"belfry/pkg/api/console"
	"belfry/pkg/errs"
)

// applyTime is how long a change may take. It does not end with the request of the admin: a change is made as a whole.
const applyTime = 2 * time.Minute

// Apply implements console.ModelEditor.
func (e *Editor) Apply(
	ctx context.Context, d *console.ModelDraft, by console.ModelActor,
) (*console.ModelVersion, error) {
	e.changing.Lock()
	defer e.changing.Unlock()
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), applyTime)
	defer cancel()
	p, err := e.propose(ctx, d, true)
	if err != nil {
		return nil, err
	}
	return e.write(ctx, p, &entry{By: by})
}

// write writes the files of a proposal, and applies them by a reload. With an error, everything is as it was before.
func (e *Editor) write(ctx context.Context, p *proposal, made *entry) (*console.ModelVersion, error) {
	switch {
	case p.ReadOnly != "":
		return nil, errs.New(errs.Denied, "belfry does not write the configuration here: %s", p.ReadOnly)
	case len(p.Problems) > 0:
		return nil, refused(p.Problems)
	}
	j := journalIn(e.Served.Now().Config.Data)
	numbers, err := j.numbers()
	if err != nil {
		return nil, errs.Wrap(err, errs.Unavailable, "the changes of the configuration can't be read")
	}
	made.Number, made.At, made.Keys, made.Pending, made.Silent = 1, time.Now().UTC(), p.Keys, true, true
	if len(numbers) > 0 {
		latest, err := j.get(slices.Max(numbers))
		if err != nil {
			return nil, err
		}
		made.Number, made.Secrets = latest.Number+1, latest.Secrets
	}
	for _, f := range p.files {
		one := fileEntry{Path: f.path, Existed: f.existed, Before: f.before, Secret: f.secret, Mode: 0o600}
		if !f.removed {
			one.After = digestOf(f.after)
		}
		if f.existed {
			if one.Mode, err = modeOf(f.path); err != nil {
				return nil, err
			}
		}
		made.Files = append(made.Files, one)
		if f.secret {
			made.Secrets = append(made.Secrets, fileEntry{Path: one.Path, After: one.After})
		}
	}
	if err := j.put(made); err != nil {
		return nil, err
	}
	if err := e.apply(ctx, p, made); err != nil {
		if failed := made.restore(); failed != nil {
			// The entry stays, so the next start restores the files.
			return nil, errors.Join(err, failed)
		}
		return nil, errors.Join(err, j.remove(made.Number))
	}
	made.Pending = false
	made.Secrets = j.prune(p.text, made.Secrets)
	if err := j.put(made); err != nil {
		return nil, err
	}
	e.announce(ctx)
	return version(made, true), nil
}

func (e *Editor) apply(ctx context.Context, p *proposal, made *entry) error {
	for i, f := range p.files {
		err := replace(f.path, f.after, made.Files[i].Mode)
		if f.removed {
			err = remove(f.path)
		}
		if err != nil {
			return err
		}
	}
	err := e.Reload(ctx)
	var problems config.Problems
	if errors.As(err, &problems) {
		all := make([]console.ModelProblem, len(problems))
		for i, p := range problems {
			all[i] = console.ModelProblem{Key: p.Key, Message: p.Message, Line: p.Line}
		}
		return refused(all)
	}
	return err
}

// refused is the error for a change with problems.
func refused(problems []console.ModelProblem) error {
	err := &errs.Error{Kind: errs.Invalid, Message: "the configuration would have problems, so nothing has changed"}
	for _, p := range problems {
		err.Fields = append(err.Fields, errs.Field{Pointer: "/" + p.Key, Message: p.Message})
	}
	return err
}

// Versions implements console.ModelEditor.
func (e *Editor) Versions(context.Context) ([]console.ModelVersion, error) {
	all, err := journalIn(e.Served.Now().Config.Data).all()
	if err != nil {
		return nil, err
	}
	var versions []console.ModelVersion
	for _, each := range all {
		if !each.Pending {
			versions = append(versions, *version(each, each.undoable()))
		}
	}
	return versions, nil
}

// undoable reports whether all files are as the change has left them.
func (e *entry) undoable() bool {
	return !slices.ContainsFunc(e.Files, func(f fileEntry) bool { return !f.Secret && !f.current() })
}

func version(e *entry, undoable bool) *console.ModelVersion {
	return &console.ModelVersion{Number: e.Number, At: e.At, Actor: e.By.UUID, Name: e.By.Name, Keys: e.Keys,
		Undoes: e.Undoes, Undoable: undoable}
}
