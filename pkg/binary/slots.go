package binary

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"slices"
	"time"

	"belfry/pkg/errs"
	"belfry/pkg/object"
	"belfry/pkg/store"
)

// Fields of a record of the store Quotas. The names are stored.
const (
	fieldSlots   = "slots"
	fieldExpires = "expires"
)

// slotsOfGrace is the number of slots in the grace period. Two more count, so that bytes
// count for at least the whole period. One is the slot in which the period began. The
// other covers clock skew and the time that it takes to commit a content and to write its
// record.
const (
	slotsOfGrace = 12
	slotsCounted = slotsOfGrace + 2
)

// oldestSlot returns the first of the slots that count in a slot.
func oldestSlot(now time.Time, length time.Duration) time.Time {
	return now.Add(-(slotsCounted - 1) * length)
}

// slot is the bytes that a caller has uploaded, or is uploading, since a time.
type slot struct {
	From  time.Time `json:"from"`
	Bytes int64     `json:"bytes"`
}

// slots are those that count, in the order of time.
type slots []slot

// quotaUUID returns the uuid of the record of a caller. It does not name the caller.
func quotaUUID(service, by, caller string) string {
	sum := sha256.Sum256([]byte(by + " " + caller))
	return service + "." + hex.EncodeToString(sum[:20])
}

// slotLength is the length of a slot of a grace period.
func slotLength(grace time.Duration) time.Duration { return max(1, grace/slotsOfGrace) }

// slotAt returns the beginning of the slot of a time.
func slotAt(t time.Time, length time.Duration) time.Time { return t.UTC().Truncate(length) }

// decodeSlots returns the slots of a record that count in a slot. Those of a clock that
// is ahead by more than a slot do not: nobody could upload until it is that late.
func decodeSlots(stored store.Stored, now time.Time, length time.Duration) (slots, error) {
	var all slots
	raw := object.Field(stored.Body, fieldSlots)
	if raw == nil {
		return nil, nil
	}
	if err := json.Unmarshal(raw, &all); err != nil {
		return nil, errs.Wrap(err, errs.Internal, "the record %q of the quotas can't be decoded: delete it",
			stored.UUID)
	}
	oldest, newest := oldestSlot(now, length), now.Add(length)
	all = slices.DeleteFunc(all,
		func(s slot) bool { return s.From.Before(oldest) || s.From.After(newest) || s.Bytes <= 0 })
	slices.SortFunc(all, func(a, b slot) int { return a.From.Compare(b.From) })
	return all, nil
}

// fields returns the fields of a record whose last slot is that of now.
func (s slots) fields(now time.Time, length time.Duration) object.Object {
	o := object.Object{}
	o.Set(fieldSlots, s)
	o.Set(fieldExpires, object.FormatTime(now.Add((slotsCounted+1)*length)))
	return o
}

func (s slots) sum() (bytes int64) {
	for _, each := range s {
		bytes += each.Bytes
	}
	return bytes
}

// add returns the slots with bytes added to one of them, or, if they are negative, taken
// off as far as there are so many.
func (s slots) add(from time.Time, bytes int64) slots {
	i, found := slices.BinarySearchFunc(s, from, func(each slot, t time.Time) int { return each.From.Compare(t) })
	if !found {
		if bytes <= 0 {
			return s
		}
		return slices.Insert(slices.Clone(s), i, slot{from, bytes})
	}
	s = slices.Clone(s)
	if s[i].Bytes += bytes; s[i].Bytes <= 0 {
		return slices.Delete(s, i, i+1)
	}
	return s
}

// wait returns how long it takes until enough slots have expired that at most the given
// bytes are left.
func (s slots) wait(left int64, now time.Time, length time.Duration) time.Duration {
	until := slotAt(now, length)
	for sum := s.sum(); len(s) > 0 && sum > left; s = s[1:] {
		sum -= s[0].Bytes
		until = s[0].From
	}
	return cmp.Or(max(0, until.Add(slotsCounted*length).Sub(now)), length)
}
