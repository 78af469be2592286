package driver

import (
	"fmt"
	"slices"

	"belfry/pkg/errs"
)

// Catalog is the indexes of a store, as a backend stores them that gives indexes numbers. Its methods return changed
// copies, with false when there is nothing to store. A backend that stores one makes the changes one after another.
type Catalog []CatalogIndex

// CatalogIndex is an index in a catalog.
type CatalogIndex struct {
	ID    uint32 `json:"id"` // is never used for another index
	Name  string `json:"name"`
	Parts int    `json:"parts"`
	Multi bool   `json:"multi"`

	Filled bool `json:"filled"` // it is complete
	// a handle that does not list it has written since a handle that does was opened
	Unlisted bool   `json:"unlisted,omitempty"`
	Build    uint64 `json:"build,omitempty"` // of Build.ID
}

// Index returns the index as it was given to Open.
func (i CatalogIndex) Index() Index { return Index{Name: i.Name, Parts: i.Parts, Multi: i.Multi} }

func (i CatalogIndex) build() Build {
	return Build{Index: i.Name, ID: fmt.Sprintf("%d.%d", i.ID, i.Build)}
}

func (c Catalog) find(id uint32) int {
	return slices.IndexFunc(c, func(i CatalogIndex) bool { return i.ID == id })
}

// List adds the indexes of a handle that are not in the catalog. They are complete if the store is new. own are those
// of the handle.
func (c Catalog) List(wanted []Index, isNew bool,
	newID func() uint32) (next Catalog, own []CatalogIndex, changed bool) {
	next = slices.Clone(c)
	for _, want := range wanted {
		at := slices.IndexFunc(next, func(i CatalogIndex) bool { return i.Index() == want })
		switch {
		case at < 0:
			at = len(next)
			next = append(next,
				CatalogIndex{ID: newID(), Name: want.Name, Parts: want.Parts, Multi: want.Multi, Filled: isNew})
			changed = true
		case next[at].Unlisted:
			next[at].Unlisted, changed = false, true
		}
		own = append(own, next[at])
	}
	return next, own, changed
}

// Unlist makes the indexes incomplete that a handle does not list, before its first write. A build of one of them is
// over.
func (c Catalog) Unlist(own func(id uint32) bool) (next Catalog, changed bool) {
	next = slices.Clone(c)
	for i := range next {
		if ix := &next[i]; !own(ix.ID) && !ix.Unlisted {
			ix.Unlisted, ix.Filled = true, false
			ix.Build++
			changed = true
		}
	}
	return next, changed
}

// Building returns the indexes of a handle that are not complete. One that the handle lists again is in the catalog
// again; one that has been released meanwhile has a build that never ends.
func (c Catalog) Building(own []CatalogIndex) (builds []Build, next Catalog, changed bool) {
	next = slices.Clone(c)
	for _, mine := range own {
		at := next.find(mine.ID)
		switch {
		case at < 0:
			builds = append(builds, Build{Index: mine.Name})
		case !next[at].Filled:
			builds = append(builds, next[at].build())
			changed = changed || next[at].Unlisted
			next[at].Unlisted = false
		}
	}
	return builds, next, changed
}

// Complete makes indexes complete; errs.Mismatch when one of the builds is over.
func (c Catalog) Complete(own []CatalogIndex, builds []Build) (next Catalog, changed bool, err error) {
	next = slices.Clone(c)
	for _, b := range builds {
		mine := slices.IndexFunc(own, func(i CatalogIndex) bool { return i.Name == b.Index })
		at := -1
		if mine >= 0 {
			at = next.find(own[mine].ID)
		}
		if at < 0 || next[at].Unlisted || next[at].build() != b {
			return nil, false, ErrBuildOver(b)
		}
		changed = changed || !next[at].Filled
		next[at].Filled = true
	}
	return next, changed, nil
}

// ErrBuildOver is the error of Complete for a build that is over.
func ErrBuildOver(b Build) error {
	return errs.New(errs.Mismatch,
		"the index %s has to be built again: something without it has written to the store meanwhile", b.Index)
}

// Release removes the indexes that a handle does not list. removed are these.
func (c Catalog) Release(own func(id uint32) bool) (next, removed Catalog) {
	for _, ix := range c {
		if own(ix.ID) {
			next = append(next, ix)
		} else {
			removed = append(removed, ix)
		}
	}
	return next, removed
}
