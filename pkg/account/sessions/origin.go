package sessions

import (
	"encoding/json"

	"github.com/medama-io/go-useragent"
	"github.com/medama-io/go-useragent/agents"

	"belfry/pkg/account/places"
	"belfry/pkg/event"
)

// Origin is the origin of a request. The device and the place are derived when they are read, and not stored.
type Origin struct {
	Address   string        `json:"address,omitempty"` // of the network
	Place     *places.Place `json:"place,omitempty"`   // of the address; nil if it is unknown
	UserAgent string        `json:"userAgent,omitempty"`
	// for people: the browser and the system, as claimed by the client
	Device string `json:"device,omitempty"`
}

// OriginOf returns the origin of a request.
func (s *Sessions) OriginOf(address, userAgent string) Origin {
	return Origin{Address: address, Place: s.Places.Of(address), UserAgent: userAgent, Device: deviceOf(userAgent)}
}

// deviceOf returns the browser and the system that a user agent names, for instance "Firefox on Linux"; "" for other
// programs. Both are names that the library knows, and no text of the client.
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

// Activity is an event about the security of an account, as its user sees it: the event, its origin, and its actor.
type Activity struct {
	Event event.Name `json:"event"`
	Time  string     `json:"time"`
	By    string     `json:"by,omitempty"` // user or admin; absent if unknown, as of a failed login
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
		return a // the origin of an admin's request is not shown to the user
	}
	a.Origin = s.OriginOf(e.Ctx.Address, e.Ctx.UserAgent)
	return a
}
