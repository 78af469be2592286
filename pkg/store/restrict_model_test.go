package store_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"belfry/pkg/errs"
	"belfry/pkg/object"
	"belfry/pkg/store"
	"belfry/pkg/store/driver"
	"belfry/test/model"
)

// restrictScenario has books that name authors: these can't be deleted meanwhile.
func restrictScenario(required bool, setup []model.Op, clients ...[]model.Op) model.Scenario {
	return model.Scenario{
		Mappings: []store.Mapping{{Source: "Books", Target: "Authors", Key: "author"}}, // opens the stores
		Setup:    setup, Clients: clients, CrashClients: true,
		Options: func(o *store.Options) {
			o.Arrays, o.Maps, o.NoEvents = nil, nil, true
			if o.Name == "Books" {
				o.References = []store.Reference{{
					Field: "author", Target: "Authors", Required: required, Indexed: true,
					OnDelete: store.OnDeleteRestrict,
				}}
			}
		},
	}
}

// acknowledged is an operation on a book that an object records once it has succeeded, as a client that has the reply.
func acknowledged(name, uuid string, run func(ctx context.Context, s *store.Store) error) model.Op {
	return model.Do(name, "Books", uuid, func(ctx context.Context, s *store.Store) error {
		err := run(ctx, s)
		if errors.Is(err, errs.Invalid) {
			return nil
		}
		if err == nil {
			_, err = store.NewWorker(s).CopyRecord(ctx,
				driver.Record{UUID: "acknowledged-" + uuid, Revision: model.Epoch, Body: []byte(`{}`)}, nil)
		}
		return err
	})
}

func saveBook(uuid, author string) model.Op {
	return acknowledged("save", uuid, func(ctx context.Context, s *store.Store) error {
		_, err := s.Save(ctx, object.Object{"author": object.AppendString(nil, author)}, uuid)
		return err
	})
}

func moveBook(uuid, author string) model.Op {
	return acknowledged("move", uuid, func(ctx context.Context, s *store.Store) error {
		_, err := s.Update(ctx, object.Object{"author": object.AppendString(nil, author)},
			store.UpdateOptions{UUID: uuid})
		return err
	})
}

// moveBookOrNot is moveBook of a book whose creation was acknowledged: it names an author also if the move is refused.
func moveBookOrNot(uuid, author string) model.Op {
	return acknowledged("move", uuid, func(ctx context.Context, s *store.Store) error {
		_, err := s.Update(ctx, object.Object{"author": object.AppendString(nil, author)},
			store.UpdateOptions{UUID: uuid})
		if errors.Is(err, errs.Invalid) {
			return nil
		}
		return err
	})
}

func restrictScenarios() map[string]model.Scenario {
	author := model.Save("Authors", "a", `{}`)
	remove := model.Delete("Authors", "a")
	all := map[string]model.Scenario{}
	for name, required := range map[string]bool{"": false, ", required": true} {
		all["a book is created while its author is deleted"+name] = restrictScenario(required, ops(author),
			ops(remove), ops(saveBook("x", "a")))
		all["an author is deleted twice while a book is created"+name] = restrictScenario(required, ops(author),
			ops(remove), ops(remove), ops(saveBook("x", "a")))
		all["a book moves to an author that is deleted"+name] = restrictScenario(required,
			ops(author, model.Save("Authors", "b", `{}`), model.Save("Books", "x", `{"author":"b"}`)),
			ops(remove), ops(moveBook("x", "a")))
	}
	all["a deletion has been forgotten when a book is created"] = withoutCrashes(restrictScenario(false, ops(author),
		ops(remove), ops(model.Ahead(saveBook("x", "a"), 20_000_000))))
	all["a book moves from an author to another, and both are deleted"] = withoutCrashes(restrictScenario(false,
		ops(author, model.Save("Authors", "b", `{}`), model.Save("Books", "x", `{"author":"b"}`)),
		ops(remove), ops(model.Delete("Authors", "b")), ops(moveBookOrNot("x", "a"))))
	all["an author changes while deleted"] = withoutCrashes(restrictScenario(false, ops(author),
		ops(remove), ops(saveBook("x", "a")), ops(model.Update("Authors", "a", `{"name":"n"}`))))
	all["two books are created"] = withoutCrashes(restrictScenario(false, ops(author),
		ops(remove), ops(saveBook("x", "a")), ops(saveBook("y", "a"))))
	all["an author is created again"] = withoutCrashes(restrictScenario(false, ops(author),
		ops(remove, author, remove), ops(saveBook("x", "a"))))
	return all
}

// checkRestricted checks that each book whose write was acknowledged names an author that exists.
func checkRestricted(ctx context.Context, set *store.Set, _ model.Histories) error {
	for o, err := range set.Store("Books").All(ctx, 100) {
		if err != nil {
			return err
		}
		uuid, acknowledged := strings.CutPrefix(o.UUID, "acknowledged-")
		if !acknowledged {
			continue
		}
		book, err := set.Store("Books").Get(ctx, uuid)
		if err != nil {
			return fmt.Errorf("the acknowledged book %s: %w", uuid, err)
		}
		author, _ := object.Text(object.Field(book.Body, "author"))
		if exists, err := set.Store("Authors").Exists(ctx, author); err != nil || !exists {
			return fmt.Errorf("%s names %s, which was deleted: %w", uuid, author, err)
		}
	}
	return nil
}

func restrictChecker(t *testing.T, s model.Scenario) *model.Checker {
	t.Helper()
	c, err := model.New(t.Context(), s, func(*store.Set) []model.Consumer { return nil }, checkRestricted)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// In no interleaving, with crashes of deletions and writes between any two steps, is an object deleted that an
// acknowledged write names.
func TestAcknowledgedReferencesHoldInEveryInterleaving(t *testing.T) {
	defer store.SetMaxAttempts(2)()
	for name, s := range restrictScenarios() {
		t.Run(name, func(t *testing.T) {
			stats, err := restrictChecker(t, s).Explore(t.Context(), 1_000_000)
			if err != nil {
				t.Fatal(err)
			}
			if !stats.Complete || stats.Quiescent < 2 {
				t.Fatalf("not every state was visited: %v", stats)
			}
			t.Log(stats)
		})
	}
}
