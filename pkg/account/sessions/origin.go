package sessions

import (
	"encoding/json"

	"github.com/medama-io/go-useragent"
	"github.com/medama-io/go-useragent/agents"

	"belfry/pkg/account/places"
	"belfry/pkg/event"
)

// Origin is where a request came from. The device and the place are derived when they are read, and not stored.
type Origin struct {
	Address   string        `json:"address,omitempty"` // of the network
	Place     *places.Place `json:"place,omitempty"`   // of the address; nil where it is not known
	UserAgent string        `json:"userAgent,omitempty"`
	Device    string        `json:"device,omitempty"` // for people: the browser and the system, which a client can claim to be
}

// OriginOf returns where a request came from.
func (s *Sessions) OriginOf(address, userAgent string) Origin {
	return Origin{Address: address, Place: s.Places.Of(address), UserAgent: userAgent, Device: deviceOf(userAgent)}
}

// deviceOf returns the browser and the system that a user agent names, for instance "Firefox on Linux"; "" for other programs.
// Both are names that the library knows, and no text of the client.
func deviceOf(userAgent string) string {
	if userAgent == "" {
		return ""
	}
	agent := useragent.NewParser().Parse(userAgent) // of the process: the first call makes it
	browser, system := agent.Browser().String(), agent.OS().String()
	if agent.OS() == agents.OSMacOS {
		system = "macOS"
	}
	if browser == "" || system == "" {
		return browser + system
	}
	return browser + " on " + system
}

// Activity is an event about the security of an account as its user sees it: what happened, from where, and who did it.
type Activity struct {
	Event event.Name `json:"event"`
	Time  string     `json:"time"`
	By    string     `json:"by,omitempty"` // user or admin; absent where that is not known, as of a failed login
	event.AuthDetails
	Origin
}

// Causes of an activity.
const (
	byUser  = "user"
	byAdmin = "admin"
)

// ActivityOf returns an event as its user sees it.
func (s *Sessions) ActivityOf(e *event.Envelope) Activity {
	a := Activity{Event: e.Event, Time: e.Time}
	_ = json.Unmarshal(e.Auth, &a.AuthDetails)
	switch {
	case e.Actor != nil && *e.Actor == e.UUID:
		a.By = byUser
	case e.Actor != nil || e.Origin == event.OriginCommand:
		a.By = byAdmin
		return a // where an admin works does not concern the user
	}
	a.Origin = s.OriginOf(e.Ctx.Address, e.Ctx.UserAgent)
	return a
}
