package embedded

import (
	"fmt"
	"slices"

	"github.com/nats-io/nats-server/v2/server"
)

const (
	logSubject  = "events.1.Store.Saved.STORE.UUID" // of an event
	apiSubjects = "$JS.API.>"                       // of requests to which the server replies
)

// sharedAccounts warns of users who can make the server reply where they must not
// publish themselves: those who may send requests to it and may not publish
// events, in an account of others who may.
func sharedAccounts(o *server.Options) (warnings []error) {
	type user struct {
		name    string
		account *server.Account // nil without accounts
		may     *server.Permissions
	}
	var users []user
	for _, u := range o.Users {
		users = append(users, user{u.Username, u.Account, u.Permissions})
	}
	for _, u := range o.Nkeys {
		users = append(users, user{u.Nkey, u.Account, u.Permissions})
	}
	writers := map[*server.Account]bool{}
	for _, u := range users {
		writers[u.account] = writers[u.account] || mayPublish(u.may, logSubject)
	}
	for _, u := range users {
		if writers[u.account] && !mayPublish(u.may, logSubject) && mayRequest(u.may) {
			warnings = append(warnings,
				fmt.Errorf("user %s is in the account of the log: it can have replies of the server stored in "+
					"the log, "+
					"and executed as requests of its choice, such as to delete the log; give it an account of its "+
					"own, as `belfry bus account` prints it (docs/reference/bus.md)", u.name))
		}
	}
	return warnings
}

func mayPublish(p *server.Permissions, subject string) bool {
	if p == nil || p.Publish == nil {
		return true
	}
	matches := func(filter string) bool { return server.SubjectMatchesFilter(subject, filter) }
	return (p.Publish.Allow == nil || slices.ContainsFunc(p.Publish.Allow, matches)) &&
		!slices.ContainsFunc(p.Publish.Deny, matches)
}

func mayRequest(p *server.Permissions) bool {
	return p == nil || p.Publish == nil || p.Publish.Allow == nil ||
		slices.ContainsFunc(p.Publish.Allow, func(s string) bool { return server.SubjectsCollide(s, apiSubjects) })
}
