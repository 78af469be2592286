package sse

import (
	"encoding/json"
	"slices"

	"belfry/pkg/bus/eventlog"
	"belfry/pkg/event"
)

// accountEvent is an event about the security of an account as it is sent: actor, act and address, and no field of the
// user.
type accountEvent struct {
	ID       string          `json:"id"`
	Event    event.Name      `json:"event"`
	Time     string          `json:"time"`
	Store    string          `json:"store"`
	UUID     string          `json:"uuid"`
	Revision uint64          `json:"revision,string"`
	Actor    *string         `json:"actor"`
	Origin   string          `json:"origin"`
	Auth     json.RawMessage `json:"auth,omitempty"`
	Ctx      accountCtx      `json:"ctx"`
}

type accountCtx struct {
	Request   string `json:"request,omitempty"`
	Address   string `json:"address,omitempty"`
	UserAgent string `json:"userAgent,omitempty"`
}

// accountEntry completes the entry of an event about the security of an account. It does not change the user, so no
// client has to be authenticated again.
func (h *Hub) accountEntry(e *entry, log uint64, name event.Name, storeName, uuid string, in *eventlog.Entry) {
	if storeName != h.opts.Accounts || !slices.Contains(event.Auth(), name) {
		return
	}
	x, ok := h.decode(in, name, storeName, uuid)
	if !ok {
		return
	}
	data, err := json.Marshal(accountEvent{
		ID: x.ID, Event: x.Event, Time: x.Time, Store: x.Store, UUID: x.UUID, Revision: x.Revision, Actor: x.Actor,
		Origin: x.Origin, Auth: x.Auth,
		Ctx: accountCtx{Request: x.Ctx.Request, Address: x.Ctx.Address, UserAgent: x.Ctx.UserAgent},
	})
	if err != nil {
		return // its details are no JSON
	}
	e.name, e.source, e.uuid = name, h.sources[storeName], uuid
	out := h.appendID(make([]byte, 0, frameSize+len(data)), place{sequence: in.Sequence, log: log, event: e.mark})
	e.idSize = len(out)
	out = append(append(append(out, "event: "...), name...), "\ndata: "...)
	e.frame = append(append(out, data...), "\n\n"...)
	e.objectAt = len(e.frame) // there is no object
}
