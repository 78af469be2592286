package check

import (
	"bytes"

	"belfry/pkg/event"
	"belfry/test/chaos/history"
)

// Accounts checks that every registered address has one user, who can log in, has the ident of the address
// and one event of the registration, unless that may have been lost with the log. It is for a time at which
// nothing is pending.
func Accounts(accounts []history.Account, users []history.User, s *history.Segment, r *Report) {
	owners := map[string][]history.User{}
	for _, u := range users {
		owners[u.Address] = append(owners[u.Address], u)
	}
	registered := map[string]map[string]bool{} // ids of events by user
	for _, e := range s.Published() {
		if e.Event != event.Register {
			continue
		}
		if registered[e.UUID] == nil {
			registered[e.UUID] = map[string]bool{}
		}
		registered[e.UUID][e.ID] = true
		if bytes.Contains(e.User, []byte(`"password"`)) || bytes.Contains(e.Datas, []byte(`"password"`)) {
			r.add(WrongAccount, e.Object(), "the event of the registration has the password")
		}
	}
	for _, a := range accounts {
		events := len(registered[a.User])
		if s.Loss != nil && events == 0 {
			events = 1
		}
		account(r, a, owners[a.Address], events)
	}
}

func account(r *Report, a history.Account, own []history.User, events int) {
	address := name(a.Address)
	switch {
	case a.User == "" && a.Acknowledged:
		r.add(WrongAccount, address, "its registration was acknowledged, and nobody can log in")
	case len(own) != 1:
		r.add(WrongAccount, address, "%d users have it: %v", len(own), own)
	case own[0].UUID != a.User:
		r.add(WrongAccount, address, "%s logs in, but its user is %s", a.User, own[0].UUID)
	case len(own[0].Idents) != 1 || own[0].Idents[0].UUID != a.Address+"_email" || own[0].Idents[0].Type != "email":
		r.add(WrongAccount, address, "its user has the idents %v", own[0].Idents)
	case events != 1:
		r.add(WrongAccount, address, "the user %s has %d events of the registration", a.User, events)
	}
}
