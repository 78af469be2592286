package mapping_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"regexp"
	"slices"
	"time"

	"belfry/pkg/event"
	"belfry/pkg/mapping"
	"belfry/pkg/mapping/verify"
	encoded "belfry/pkg/object"
	"belfry/pkg/store"
	"belfry/test/model"
)

// checkInvariant checks a state in which workers have nothing to do: arrays match
// objects. It is implemented independently of verify, which must agree.
func checkInvariant(ctx context.Context, set *store.Set, histories model.Histories) error {
	for i := range set.Mappings() {
		if err := checkArrays(ctx, set, &set.Mappings()[i]); err != nil {
			return err
		}
	}
	if err := checkCascades(ctx, set, histories); err != nil {
		return err
	}
	if err := checkReferences(ctx, set, histories); err != nil {
		return err
	}
	if err := checkCounts(ctx, set); err != nil {
		return err
	}
	if err := checkCopies(ctx, set); err != nil {
		return err
	}
	report, err := verify.Run(ctx, set, verify.Options{})
	if err == nil && !report.Clean() {
		err = fmt.Errorf("verify reports %+v", report.Differences)
	}
	return err
}

type object map[string]any

func objects(ctx context.Context, s *store.Store) (map[string]object, error) {
	found, next, err := s.Scan(ctx, nil, 1000)
	if err != nil || next != nil {
		return nil, fmt.Errorf("too many objects: %w", err)
	}
	all := map[string]object{}
	for _, o := range found {
		decoded := object{}
		d := json.NewDecoder(bytes.NewReader(o.Body))
		d.UseNumber()
		if err := d.Decode(&decoded); err != nil {
			return nil, err
		}
		all[o.UUID] = decoded
	}
	return all, nil
}

// names reports whether an object's key names a target.
func names(m *store.Mapping, o object, target string) bool {
	if list, ok := o[m.Key].([]any); ok {
		return slices.ContainsFunc(list, func(v any) bool { return namesIt(v, target) })
	}
	return namesIt(o[m.Key], target)
}

var whole = regexp.MustCompile(`^[0-9]+$`)

func namesIt(v any, target string) bool {
	if n, ok := v.(json.Number); ok {
		return whole.MatchString(n.String()) && n.String() == target
	}
	return v == any(target)
}

func checkArrays(ctx context.Context, set *store.Set, m *store.Mapping) error {
	sources, err := objects(ctx, set.Store(m.Source))
	if err != nil {
		return err
	}
	targets, err := objects(ctx, set.Store(m.Target))
	if err != nil {
		return err
	}
	for uuid, target := range targets {
		want := map[string]object{}
		for id, o := range sources {
			if !names(m, o, uuid) || m.When != nil && o["published"] != true || !isOwned(m, o, target) {
				continue
			}
			want[id] = object{"uuid": id}
			for _, f := range m.Fields {
				if value, ok := o[f]; ok {
					want[id][f] = value
				}
			}
			if m.MaxEntry > 0 && sizeOf(want[id]) > m.MaxEntry {
				delete(want, id)
			}
		}
		array, _ := target[m.Array].([]any)
		if err := checkEntries(array, want, m); err != nil {
			return fmt.Errorf("%s/%s.%s: %w", m.Target, uuid, m.Array, err)
		}
	}
	return nil
}

// isOwned reports whether an object has the owner of a target, if the mapping asks for that.
func isOwned(m *store.Mapping, o, target object) bool {
	return m.SourceOwner == "" || o["owner"] != nil && o["owner"] == target["owner"]
}

// sizeOf returns how many bytes a value has as JSON.
func sizeOf(v any) int {
	encoded, err := json.Marshal(v)
	if err != nil {
		panic(err)
	}
	return len(encoded)
}

func checkEntries(array []any, want map[string]object, m *store.Mapping) error {
	found, size := map[string]bool{}, 0
	for _, e := range array {
		entry, _ := e.(map[string]any)
		uuid, _ := entry["uuid"].(string)
		if found[uuid] {
			return fmt.Errorf("two entries for %s: %v", uuid, array)
		}
		found[uuid] = true
		size += sizeOf(entry) + 1
		if !reflect.DeepEqual(object(entry), want[uuid]) {
			return fmt.Errorf("entry %v, want %v", entry, want[uuid])
		}
	}
	// An array that is not full has every entry: one that is takes no other, by its count or its bytes.
	full := len(array) >= m.Limit || m.MaxBytes > 0 && size > m.MaxBytes-m.MaxEntry
	if len(array) > m.Limit || m.MaxBytes > 0 && size > m.MaxBytes || !full && len(array) != len(want) {
		return fmt.Errorf("%v holds %d entries with %d bytes, want those of %v", array, len(array), size,
			slices.Sorted(maps.Keys(want)))
	}
	return nil
}

// deletedTarget stands for each target that is deleted where a mapping asks for the same owner.
var deletedTarget = object{"owner": "ann"}

const gracePeriod = uint64(mapping.GracePeriod / time.Microsecond) // in revisions

// checkCascades checks that no object is left that was linked to its target when
// that was deleted, or was written during the deletion.
func checkCascades(ctx context.Context, set *store.Set, histories model.Histories) error {
	for i := range set.Mappings() {
		m := &set.Mappings()[i]
		sources, err := objects(ctx, set.Store(m.Source))
		if err != nil {
			return err
		}
		for uuid, o := range sources {
			x := histories[m.Source+"/"+uuid]
			for key, t := range histories {
				target, ok := ofStore(key, m.Target)
				if ok && m.Cascade && t.Deleted > 0 && names(m, o, target) && isOwned(m, o, deletedTarget) &&
					mustBeGone(x, t) {
					return fmt.Errorf("%s/%s %+v should have been deleted with %s %+v", m.Source, uuid, x, key, t)
				}
			}
		}
	}
	return nil
}

func ofStore(key, name string) (uuid string, ok bool) {
	if len(key) <= len(name) || key[:len(name)+1] != name+"/" {
		return "", false
	}
	return key[len(name)+1:], true
}

// mustBeGone reports whether an object that names a deleted target must have
// been deleted. A write and a deletion that overlap may have either order, and
// objects created during a deletion that takes longer than the grace period to
// be stored may remain.
func mustBeGone(x, target model.History) bool {
	if target.Live {
		return x.WrittenAt <= target.DeletedAt && x.Written < target.Deleted
	}
	until := target.DeletedAt + gracePeriod
	return x.Linked < target.Deleted && model.Epoch+x.Created*model.Tick <= until || x.WrittenAt <= until
}

// checkDeletion checks the deletions that workers make: none deletes an object
// that was written after its target was created again, or created after the
// grace period.
func checkDeletion(mappings []store.Mapping) func(histories model.Histories, e *event.Envelope) error {
	return func(histories model.Histories, e *event.Envelope) error {
		if e.Event != event.StoreDeleted || e.Origin == event.OriginGo {
			return nil
		}
		x := histories[e.Store+"/"+e.UUID]
		for _, m := range mappings {
			if m.Source != e.Store || !m.Cascade {
				continue
			}
			for _, target := range store.KeyTargets(encoded.Field(e.Object, m.Key)) {
				if owner, _ := encoded.Text(encoded.Field(e.Object, "owner")); m.SourceOwner != "" &&
					owner != deletedTarget["owner"] {
					return fmt.Errorf("%s/%s of %q was deleted with the target of somebody else", e.Store, e.UUID,
						owner)
				}
				t := histories[m.Target+"/"+target]
				if t.Live && t.Deleted > 0 && x.WriteBegan < t.Created ||
					!t.Live && t.Deleted > 0 && model.Epoch+x.CreateBegan*model.Tick <= t.DeletedAt+gracePeriod {
					return nil
				}
			}
		}
		return fmt.Errorf("%s/%s %+v was deleted without a reason: %+v", e.Store, e.UUID, x, histories)
	}
}
