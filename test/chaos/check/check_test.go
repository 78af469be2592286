package check

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"belfry/pkg/event"
	"belfry/test/chaos/history"
)

func TestAHistoryThatKeepsAllPromisesHasNoViolation(t *testing.T) {
	expect(t, good(t))
}

func TestALostWriteIsFound(t *testing.T) {
	s := good(t)
	acknowledged := s.Ops[1]
	s.Final[register] = history.State{Revision: s.Ops[0].Revision, Body: s.Ops[0].Body}
	if acknowledged.Object != register {
		t.Fatal("the history has changed")
	}
	expect(t, s, LostWrite)
}

func TestALostObjectIsFound(t *testing.T) {
	s := good(t)
	delete(s.Final, register)
	expect(t, s, LostWrite)
}

func TestALostWriteIsFoundWithoutALog(t *testing.T) {
	s := good(t)
	s.Final[register] = history.State{Revision: s.Ops[0].Revision, Body: s.Ops[0].Body}
	s.Ops = slices.DeleteFunc(s.Ops, func(op history.Op) bool { return op.Kind == history.Get })
	s.lose()
	expect(t, s, LostWrite)
}

func TestALostEventIsFound(t *testing.T) {
	s := good(t)
	s.drop(s.find(register))
	expect(t, s, LostEvent, DirtyRead)
}

func TestALostEventOfADeletionIsFound(t *testing.T) {
	s := good(t)
	o := obj(history.Registers, 1)
	s.do(history.Create, o, map[string]any{"title": "x"})
	s.do(history.Delete, o, nil)
	s.drop(s.find(o))
	expect(t, s, LostEvent, LostWrite)
}

func TestAnEventOfARefusedWriteIsFound(t *testing.T) {
	s := good(t)
	op := s.refuse(history.Put, register, 412, "refused too")
	op.IfMatch = 7
	s.happen(register, event.StoreUpdated, event.OriginHTTP, op.Request, map[string]any{"title": "refused too"})
	expect(t, s, RefusedEvent)
}

func TestARequestThatIsAppliedTwiceIsFound(t *testing.T) {
	s := good(t)
	op := s.do(history.Put, register, map[string]any{"title": "once"})
	s.happen(register, event.StoreUpdated, event.OriginHTTP, op.Request, map[string]any{"title": "once"})
	expect(t, s, AppliedTwice)
}

func TestARequestWithoutAReplyThatIsAppliedTwiceIsFound(t *testing.T) {
	s := good(t)
	op := s.do(history.Put, register, map[string]any{"title": "once"})
	op.Outcome, op.Return, op.Revision, op.Body = history.Unknown, history.Never, 0, nil
	expect(t, s)
	s.happen(register, event.StoreUpdated, event.OriginHTTP, op.Request, map[string]any{"title": "once"})
	expect(t, s, AppliedTwice)
}

func TestAWriteOfNobodyIsFound(t *testing.T) {
	s := good(t)
	s.happen(register, event.StoreUpdated, event.OriginHTTP, "nobody's", map[string]any{"title": "b", "value": 4})
	expect(t, s, Unexplained)
}

func TestAnEventThatDiffersFromTheReplyIsFound(t *testing.T) {
	s := good(t)
	i := s.find(register)
	s.Events[i].Envelope.Object = json.RawMessage(strings.Replace(string(s.Events[i].Envelope.Object), `"value":3`,
		`"value":4`, 1))
	expect(t, s, EventDiffers, DirtyRead, NotLinearizable)
}

func TestEventsInTheWrongOrderAreFound(t *testing.T) {
	s := good(t)
	s.Events[0], s.Events[1] = s.Events[1], s.Events[0]
	expect(t, s, EventOrder)
	s.Ordered = false // several processes
	expect(t, s)
}

func TestAnEventThatComesAgainIsNoViolation(t *testing.T) {
	s := good(t)
	s.Events = append(s.Events, s.Events[0], s.Events[1])
	expect(t, s)
	if r := Segment(s.Segment); r.Repeated != 2 {
		t.Errorf("%d events were counted as repeated, want 2", r.Repeated)
	}
}

func TestAnEventThatAListenerDidNotReceiveIsFound(t *testing.T) {
	s := good(t)
	delete(s.Received, s.Events[2].ID)
	expect(t, s, NotDelivered)
}

func TestAnEventThatIsTakenBackIsFound(t *testing.T) {
	s := good(t)
	s.Received["of a write that a power cut took back"] = true
	expect(t, s, EventTakenBack)
}

func TestAStaleReadIsFound(t *testing.T) {
	s := good(t)
	op := s.get(register)
	op.Revision, op.Body = s.Ops[0].Revision, s.Ops[0].Body
	expect(t, s, StaleRead, NotLinearizable)
}

func TestAReadOfAnObjectThatWasDeletedBeforeIsFound(t *testing.T) {
	s := good(t)
	read := *s.get(register)
	s.do(history.Delete, register, nil)
	again := s.get(register)
	read.Call, read.Return = again.Call, again.Return
	*again = read
	expect(t, s, NotLinearizable)
}

func TestAReadOfAWriteThatAPowerCutTookBackIsFound(t *testing.T) {
	s := good(t)
	lost := s.do(history.Put, register, map[string]any{"title": "lost"})
	s.get(register)
	lost.Outcome, lost.Return, lost.Revision, lost.Body = history.Unknown, history.Never, 0, nil
	s.drop(s.find(register))
	s.Final[register] = history.State{Revision: s.Ops[1].Revision, Body: s.Ops[1].Body}
	expect(t, s, DirtyRead, NotLinearizable)
}

func TestACopyOfAWriteThatNobodyMadeIsFound(t *testing.T) {
	s := good(t)
	op := s.get(parent)
	op.Body = []byte(strings.Replace(string(op.Body), `"title":"c"`, `"title":"phantom"`, 1))
	expect(t, s, DirtyRead)
}

func TestTwoConditionalWritesAtOneRevisionAreFound(t *testing.T) {
	s := good(t)
	at := s.Final[register].Revision
	s.do(history.Put, register, map[string]any{"title": "first"}).IfMatch = at
	expect(t, s)
	s.do(history.Put, register, map[string]any{"title": "second"}).IfMatch = at
	expect(t, s, NotLinearizable)
}

func TestAConditionalWriteThatIsRefusedAtItsRevisionIsFound(t *testing.T) {
	s := good(t)
	op := s.refuse(history.Put, register, 412, "refused")
	op.IfMatch = s.Final[register].Revision
	expect(t, s, NotLinearizable)
}

func TestAnUpdateThatLosesAnotherOneIsFound(t *testing.T) {
	s := good(t)
	s.do(history.Put, register, map[string]any{"note": 1})
	delete(s.objects[register], "value") // the update before
	s.do(history.Put, register, map[string]any{"title": "later"})
	expect(t, s, NotLinearizable)
}

func TestARequestWithoutAReplyMayHaveHappenedOrNot(t *testing.T) {
	for _, happened := range []bool{false, true} {
		s := good(t)
		op := s.do(history.Put, register, map[string]any{"title": "unknown"})
		op.Outcome, op.Return, op.Revision, op.Body = history.Unknown, history.Never, 0, nil
		if !happened {
			s.drop(s.find(register))
			s.Final[register] = history.State{Revision: s.Ops[1].Revision, Body: s.Ops[1].Body}
		}
		s.get(register)
		expect(t, s)
		s.lose()
		expect(t, s)
	}
}

func TestAWrongArrayIsFound(t *testing.T) {
	for name, wrong := range map[string]func(string) string{
		"an entry's field": func(s string) string { return strings.Replace(s, `"value":1`, `"value":9`, 1) },
		"no entry":         func(s string) string { return strings.Replace(s, `"children":[`, `"other":[`, 1) },
		"a second entry": func(s string) string {
			return strings.Replace(s, `"children":[`, `"children":[{"uuid":"`+child.UUID+`","title":"c","value":1},`, 1)
		},
		"an entry of no object": func(s string) string {
			return strings.Replace(s, `"children":[`, `"children":[{"uuid":"nobody"},`, 1)
		},
		"an array that has room": func(s string) string {
			return strings.Replace(s, `{"uuid":"`+small.UUID+`","title":"s0","value":0},`, ``, 1)
		},
		"no array": func(s string) string { return strings.Replace(s, `"children":[`, `"children":7,"other":[`, 1) },
	} {
		s := good(t)
		before := string(s.Final[parent].Body)
		body := wrong(before)
		if body == before {
			t.Fatalf("%s: nothing was changed in %s", name, before)
		}
		s.Final[parent] = history.State{Revision: s.Final[parent].Revision, Body: []byte(body)}
		r := &Report{}
		arrays(s.Segment, r)
		if len(r.Violations) == 0 {
			t.Errorf("%s: not found", name)
		}
		for _, v := range r.Violations {
			if v.Kind != WrongArray {
				t.Errorf("%s: %s", name, v)
			}
		}
	}
}

func TestAWrongListIsFound(t *testing.T) {
	s := good(t)
	s.Listed = maps.Clone(s.Final)
	expect(t, s)
	delete(s.Listed, child)
	expect(t, s, WrongList)
	s.Listed = maps.Clone(s.Final)
	s.Listed[obj(history.Registers, 2)] = history.State{Body: []byte(`{}`)}
	expect(t, s, WrongList)
}

func TestAnIncompleteCascadeIsFound(t *testing.T) {
	s := good(t)
	orphan := obj(history.Children, 1)
	e := s.Events[s.find(orphan)]
	s.drop(s.find(orphan))
	s.Ops = s.Ops[:len(s.Ops)-1] // the read that did not find it
	s.Final[orphan] = history.State{Revision: s.Events[s.find(orphan)].Revision, Body: e.Envelope.Object}
	expect(t, s, Undeleted, WrongCopy)
}

func TestAnIncompleteCascadeOfATargetThatWasCreatedAgainIsFound(t *testing.T) {
	s := good(t)
	orphan := obj(history.Children, 1)
	e := s.Events[s.find(orphan)]
	s.drop(s.find(orphan))
	s.Ops = s.Ops[:len(s.Ops)-1]
	s.Final[orphan] = history.State{Revision: s.Events[s.find(orphan)].Revision, Body: e.Envelope.Object}
	s.objects[orphan] = map[string]any{}
	if err := json.Unmarshal(e.Envelope.Object, new(map[string]any)); err != nil {
		t.Fatal(err)
	}
	s.do(history.Create, obj(history.Parents, 1), map[string]any{"title": "again"})
	r := &Report{}
	cascades(s.Segment, r)
	if len(r.Violations) != 1 || r.Violations[0].Kind != Undeleted {
		t.Errorf("found %v", r.Violations)
	}
}

func TestAnObjectWrittenLongAfterTheDeletionOfItsTargetStays(t *testing.T) {
	s := good(t)
	s.revision += 3_000_000
	s.do(history.Create, obj(history.Children, 2),
		map[string]any{"title": "late", "parent": obj(history.Parents, 1).UUID})
	expect(t, s)
}

func TestADeletionByACascadeWithoutAReasonIsFound(t *testing.T) {
	s := good(t)
	s.happen(child, event.StoreDeleted, event.OriginCascade, "", nil)
	s.array(parent, history.StoreOf(history.Children))
	expect(t, s, WronglyDeleted)
}

func TestWrongFilesAreFound(t *testing.T) {
	attached := func(t *testing.T) (*story, *history.Op) {
		s := good(t)
		op := s.do(history.Attach, child,
			map[string]any{history.Picture: []any{map[string]any{"hash": hashOfAbc, "size": 3}}})
		op.Fields, op.Body, op.Revision, op.File = nil, nil, 0, hashOfAbc
		s.Files[hashOfAbc] = []byte("abc")
		return s, op
	}
	s, _ := attached(t)
	expect(t, s)

	s.Files[hashOfAbc] = []byte("abd")
	expect(t, s, WrongFile)

	s, _ = attached(t)
	delete(s.Files, hashOfAbc)
	expect(t, s, WrongFile)

	s, _ = attached(t)
	s.happen(child, event.StoreUpdated, event.OriginMapping, "", map[string]any{history.Picture: []any{}})
	expect(t, s, WrongFile)

	s, op := attached(t)
	op.Outcome, op.Status = history.Refused, 412
	expect(t, s, RefusedEvent)

	s, _ = attached(t)
	s.Ops = append(s.Ops, history.Op{
		Object: child, Kind: history.Remove, File: hashOfAbc, Request: "removes", Outcome: history.Done, Status: 204,
		Call: s.now(), Return: s.now(),
	})
	expect(t, s, WrongFile, LostEvent)
}

// hashOfAbc is the SHA-256 of "abc".
const hashOfAbc = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"

func TestWrongAccountsAreFound(t *testing.T) {
	user := history.User{UUID: "u", Address: "a@example.com",
		Idents: []struct{ UUID, Type string }{{"a@example.com_email", "email"}}}
	registration := history.Event{Envelope: event.Envelope{ID: "1", Event: event.Register, UUID: "u"}}
	account := history.Account{Address: "a@example.com", Acknowledged: true, User: "u"}
	second := registration
	second.ID = "2"
	secret := registration
	secret.Datas = json.RawMessage(`{"password":"secret"}`)
	twin, bare := user, user
	twin.UUID, bare.Idents = "v", nil
	for name, c := range map[string]struct {
		account history.Account
		users   []history.User
		events  []history.Event
		right   bool
	}{
		"right":                  {account, []history.User{user}, []history.Event{registration, registration}, true},
		"nobody can log in":      {history.Account{Address: "a@example.com", Acknowledged: true}, nil, nil, false},
		"the user is lost":       {account, nil, []history.Event{registration}, false},
		"two users":              {account, []history.User{user, twin}, []history.Event{registration}, false},
		"another user":           {account, []history.User{twin}, []history.Event{registration}, false},
		"no ident":               {account, []history.User{bare}, []history.Event{registration}, false},
		"no event":               {account, []history.User{user}, nil, false},
		"two events":             {account, []history.User{user}, []history.Event{registration, second}, false},
		"a password in an event": {account, []history.User{user}, []history.Event{secret}, false},
	} {
		r := &Report{}
		Accounts([]history.Account{c.account}, c.users, &history.Segment{Events: c.events}, r)
		if (len(r.Violations) == 0) != c.right {
			t.Errorf("%s: found %v", name, r.Violations)
		}
	}
}

// Each request has been open for as long as all others: the search must not take time that grows with
// their orders.
func TestManyRequestsWithoutAReplyAreDecided(t *testing.T) {
	s := newStory(t)
	s.do(history.Create, register, map[string]any{"title": "first"})
	for n := range 60 {
		op := s.do(history.Put, register, map[string]any{"title": fmt.Sprint("unknown ", n)})
		op.Outcome, op.Return, op.Revision, op.Body = history.Unknown, history.Never, 0, nil
		if n%2 == 0 {
			s.get(register)
		}
	}
	r := &Report{}
	linear(s.Segment, r)
	if len(r.Violations) > 0 {
		t.Error(r.Violations)
	}
}
