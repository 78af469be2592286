package console

import (
	"cmp"
	"context"
	"errors"

	"belfry/pkg/errs"
	"belfry/pkg/mapping"
	"belfry/pkg/object"
	"belfry/pkg/store"
	"belfry/pkg/store/policy"
)

// Bounds of what is read before a deletion.
const (
	maxCascade      = 100 // objects
	maxCascadeReads = 50  // objects whose dependents are searched, once for each mapping
	// objects that name one of these: any user can name any target of a mapping that requires the same owner
	maxNaming = 500

	// maxLinks is how many objects are read to find whether the admin is deleted with an object.
	maxLinks = 1000
)

// cascaded are the objects of a store that are deleted with another object.
type cascaded struct {
	Store   string
	Objects []cascadedObject
}

// cascadedObject is an object that is deleted with another one.
type cascadedObject struct {
	named
	Admin bool // it is a user who is an admin
}

// deletion is the data of the page before a deletion.
type deletion struct {
	Store    StoreInfo
	UUID     string
	Name     string // "" for none
	Revision uint64
	Admin    bool // the object is a user who is an admin
	Cascaded []cascaded
	Count    int
	Admins   int // of those that are deleted with it
	More     bool
	Files    int
	Refused  string // why nothing can be deleted; "" where it can

	Cleared    []namedBy // the references that the deletion clears
	Restricted []namedBy // those that refuse it
}

// askDelete lists the objects that are deleted with an object, and asks for confirmation.
func (v *objectsView) askDelete(r *request) error {
	if _, _, err := v.writable(r); err != nil {
		return err
	}
	info, st, shown, full, err := v.one(r)
	if err != nil {
		return err
	}
	ctx, err := r.Call()
	if err != nil {
		return err
	}
	d := deletion{Store: info, UUID: shown.UUID, Name: nameOf(info, shown.Body), Revision: shown.Revision}
	if d.Admin, err = v.isAdmin(ctx, info.Name, full); err != nil {
		return err
	}
	if err := v.cascade(ctx, info.Name, full, &d); err != nil {
		return err
	}
	read := 0
	if d.Restricted, err = v.namedBy(ctx, info.Name, full.UUID, store.OnDeleteRestrict, &read); err != nil {
		return err
	}
	if d.Cleared, err = v.namedBy(ctx, info.Name, full.UUID, store.OnDeleteClear, &read); err != nil {
		return err
	}
	refused := v.refuseOwn(ctx, r.Session.User.UUID, info, full)
	if refused != nil && !errors.Is(refused, errs.Conflict) {
		return refused
	}
	if refused != nil {
		d.Refused, _ = messageOf(refused)
	}
	files, err := v.filesOf(info, st, shown)
	for _, f := range files {
		d.Files += len(f.Records)
	}
	if err != nil {
		return err
	}
	return r.Page("objects_delete", "Delete "+cmp.Or(d.Name, d.UUID), d)
}

// cascade adds the objects that are deleted with an object. It finds them as the worker does, recursively by the
// indexes of keys. It ends at the bounds; More means that there are, or may be, others.
func (v *objectsView) cascade(ctx context.Context, name string, target store.Stored, d *deletion) error {
	type node struct {
		store string
		store.Stored
	}
	seen := map[string]bool{name + "/" + target.UUID: true}
	reads, naming := 0, 0
	for queue := []node{{name, target}}; len(queue) > 0; queue = queue[1:] {
		at := queue[0]
		for _, m := range v.set.Cascades()[at.store] {
			if reads++; reads > maxCascadeReads {
				d.More = true
				return nil
			}
			for x, err := range v.set.Store(m.Source).Linked(ctx, m.Key, at.UUID, maxCascade) {
				if err != nil {
					return err
				}
				if naming++; naming > maxNaming {
					d.More = true
					return nil
				}
				if seen[m.Source+"/"+x.UUID] || !mapping.LinkedTo(m, x, m.TargetOf(at.UUID, at.Body)) {
					continue
				}
				if d.Count == maxCascade {
					d.More = true
					return nil
				}
				seen[m.Source+"/"+x.UUID] = true
				if err := v.addCascaded(ctx, d, m.Source, x); err != nil {
					return err
				}
				queue = append(queue, node{m.Source, x})
			}
		}
	}
	return nil
}

func (v *objectsView) addCascaded(ctx context.Context, d *deletion, name string, x store.Stored) error {
	admin, err := v.isAdmin(ctx, name, x)
	if err != nil {
		return err
	}
	d.Count++
	if admin {
		d.Admins++
	}
	o := cascadedObject{v.names.named(name, x), admin}
	for i := range d.Cascaded {
		if d.Cascaded[i].Store == name {
			d.Cascaded[i].Objects = append(d.Cascaded[i].Objects, o)
			return nil
		}
	}
	d.Cascaded = append(d.Cascaded, cascaded{Store: name, Objects: []cascadedObject{o}})
	return nil
}

// isAdmin reports whether an object, with all its fields, is a user who is an admin.
func (v *objectsView) isAdmin(ctx context.Context, name string, x store.Stored) (bool, error) {
	if info, _ := v.shown(name); !info.Users {
		return false, nil
	}
	a, err := v.admins.Account(ctx, x)
	return a.Admin, err
}

// delete deletes an object at the revision that was shown.
func (v *objectsView) delete(r *request) error {
	if _, _, err := v.writable(r); err != nil {
		return err
	}
	revision, err := r.revision()
	if err != nil {
		return err
	}
	info, st, shown, full, err := v.one(r)
	if err != nil {
		return err
	}
	ctx, err := r.Call()
	if err != nil {
		return err
	}
	if err := v.refuseOwn(ctx, r.Session.User.UUID, info, full); err != nil {
		return err
	}
	if store.OnlyWorkersSince(full, revision) {
		revision = shown.Revision
	}
	if err := st.Delete(ctx, shown.UUID, revision); err != nil {
		if errs.KindOf(err) == errs.Mismatch {
			err = errs.Wrap(err, errs.Mismatch,
				"the object has been changed since this page was shown: open it again to see what would be deleted")
		}
		return err
	}
	return r.RedirectUndo(pathOf("objects", info.Name),
		cmp.Or(nameOf(info, shown.Body), shown.UUID)+" has been deleted.", v.undoDeletion(info, st, full))
}

// refuseOwn returns Conflict if a deletion would delete the admin who requests it. Admins who delete only others remain
// admins, so no deletion here removes the last admin.
//
// The search begins at the admin and follows the objects that cascade to them. There are few of these, however many
// objects a deletion removes.
func (v *objectsView) refuseOwn(ctx context.Context, admin string, info StoreInfo, target store.Stored) error {
	// Not as a client: the objects are only used for the decision, and are not shown.
	ctx = store.WithCall(ctx, store.Call{})
	if info.Users && target.UUID == admin {
		return errs.New(errs.Conflict, "you can't delete yourself: you may be the last admin; ask another one, or "+
			"use `belfry user delete` beside the data")
	}
	type node struct {
		store string
		store.Stored
	}
	var queue []node
	for _, users := range v.all {
		if !users.Users {
			continue
		}
		user, err := v.set.Store(users.Name).GetAuthorized(ctx, admin, policy.Get, nil)
		if err != nil && !errors.Is(err, errs.NotFound) {
			return err
		}
		if err == nil {
			queue = append(queue, node{users.Name, user})
		}
	}
	seen := map[string]bool{}
	for ; len(queue) > 0; queue = queue[1:] {
		at := queue[0]
		for _, m := range v.cascadesFrom(at.store) {
			for _, uuid := range store.KeyTargets(object.Field(at.Body, m.Key)) {
				if m.Target == info.Name && uuid == target.UUID {
					if mapping.LinkedTo(m, at.Stored, m.TargetOf(uuid, target.Body)) {
						return errs.New(errs.Conflict,
							"this deletion would delete you, by the cascade of the mapping of %s by %s, and you may "+
								"be the last admin: "+
								"remove the link first, ask an admin whom it does not delete, or create one with "+
								"`belfry user create --admin`", m.Source, m.Key)
					}
					continue
				}
				if seen[m.Target+"/"+uuid] {
					continue
				}
				if seen[m.Target+"/"+uuid] = true; len(seen) > maxLinks {
					return errs.New(errs.Conflict,
						"more than %d objects cascade to your user, so belfry can't tell whether this deletion would "+
							"delete you: "+
							"remove links of your user first, or ask an admin who has fewer", maxLinks)
				}
				x, err := v.set.Store(m.Target).GetAuthorized(ctx, uuid, policy.Get, nil)
				if errors.Is(err, errs.NotFound) {
					continue
				}
				if err != nil {
					return err
				}
				if mapping.LinkedTo(m, at.Stored, m.TargetOf(uuid, x.Body)) {
					queue = append(queue, node{m.Target, x})
				}
			}
		}
	}
	return nil
}

// cascadesFrom returns the mappings by which objects of a store are deleted with others.
func (v *objectsView) cascadesFrom(source string) (all []*store.Mapping) {
	for _, mappings := range v.set.Cascades() {
		for _, m := range mappings {
			if m.Source == source {
				all = append(all, m)
			}
		}
	}
	return all
}
