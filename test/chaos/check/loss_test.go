package check

import (
	"fmt"
	"slices"
	"testing"

	"belfry/pkg/event"
	"belfry/test/chaos/history"
)

func TestALossOfTheLogAloneIsNoViolation(t *testing.T) {
	for _, lose := range []func(*story){(*story).lose, (*story).loseReceived} {
		s := good(t)
		lose(s)
		s.do(history.Put, register, map[string]any{"title": "after the loss"})
		s.get(register)
		expect(t, s)
	}
}

func TestAWriteThatIsLostWithTheLogIsFound(t *testing.T) {
	s := good(t)
	s.lose()
	s.Final[register] = history.State{Revision: s.Ops[0].Revision, Body: s.Ops[0].Body}
	expect(t, s, LostWrite)
}

func TestAnObjectThatIsLostWithTheLogIsFound(t *testing.T) {
	s := good(t)
	s.lose()
	delete(s.Final, register)
	s.Ops = slices.DeleteFunc(s.Ops, func(op history.Op) bool { return op.Kind == history.Get })
	expect(t, s, LostWrite)
}

// A worker may have deleted it with its target, if that was deleted.
func TestAnObjectThatWorkersMayDeleteIsLostWithTheLogOnlyIfItsTargetStays(t *testing.T) {
	for _, deleted := range []bool{false, true} {
		s := newStory(t)
		s.do(history.Create, parent, map[string]any{"title": "p"})
		s.do(history.Create, child, map[string]any{"title": "c", "value": 1, "parent": parent.UUID})
		want := []Kind{LostWrite}
		if deleted {
			s.do(history.Delete, parent, nil)
			want = nil
		}
		s.lose()
		delete(s.Final, child)
		s.get(child)
		if !deleted {
			want = append(want, NotLinearizable)
		}
		expect(t, s, want...)
	}
}

func TestALostEventOfAWriteAfterTheLossIsFound(t *testing.T) {
	s := good(t)
	s.loseReceived()
	s.do(history.Put, register, map[string]any{"title": "after the loss"})
	s.drop(s.find(register))
	expect(t, s, LostEvent)
}

func TestADirtyReadAfterTheLossIsFound(t *testing.T) {
	s := good(t)
	s.loseReceived()
	s.do(history.Put, register, map[string]any{"title": "after the loss"})
	s.get(register)
	s.Ops[len(s.Ops)-1].Revision++
	s.Final[register] = history.State{Revision: s.Final[register].Revision, Body: s.Final[register].Body}
	expect(t, s, DirtyRead, NotLinearizable)
}

func TestWhatAListenerReceivedOfTheLostLogIsNotTakenBack(t *testing.T) {
	s := good(t)
	s.loseReceived()
	expect(t, s)
	s.Received["never published"] = true
	expect(t, s, EventTakenBack)
}

// The workers had perhaps not received the deletion: belfry's repair must find it.
func TestACascadeThatIsLostWithTheLogIsFound(t *testing.T) {
	s := newStory(t)
	s.do(history.Create, parent, map[string]any{"title": "p"})
	s.do(history.Create, child, map[string]any{"title": "c", "parent": parent.UUID})
	s.do(history.Delete, parent, nil)
	s.loseReceived()
	s.settle()
	expect(t, s, Undeleted)
	s.happen(child, event.StoreDeleted, event.OriginCascade, "", nil)
	expect(t, s)
}

func TestAWriteIsMadeTwiceAroundALoss(t *testing.T) {
	s := good(t)
	op := s.do(history.Put, register, map[string]any{"title": "once"})
	s.loseReceived()
	s.happen(register, event.StoreUpdated, event.OriginHTTP, op.Request, map[string]any{"title": "once"})
	expect(t, s, AppliedTwice)
}

// Without a log each of these requests may have been made, at any time: orders of most of them need not be tried.
func TestRequestsWithoutAReplyAreDecidedAfterALoss(t *testing.T) {
	s := newStory(t)
	s.do(history.Create, register, map[string]any{"title": "first"})
	for n := range 40 {
		op := s.do(history.Put, register, map[string]any{"title": fmt.Sprint("unknown ", n), "value": n})
		op.Outcome, op.Return, op.Revision, op.Body = history.Unknown, history.Never, 0, nil
		if n%8 == 0 {
			s.get(register)
		}
		if n%8 == 1 {
			s.do(history.Put, register, map[string]any{"title": fmt.Sprint("known ", n)})
			s.get(register)
		}
	}
	s.lose()
	expect(t, s)
}
